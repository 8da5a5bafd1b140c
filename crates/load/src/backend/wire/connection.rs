//! A live connection of the `wire` backend: non-blocking input and output of bytes.

use crate::backend::poller::Poller;
use crate::connect::{Connected, Transport};
use dyno_wire::compress::{Compressor, Scratch};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Both buffers are usually empty; they hold the rest of messages that do not fit into one system call.
pub(super) struct Connection {
    transport: Transport,
    compressor: Option<Compressor>,
    /// Beginning of an incomplete message.
    pub(super) input: Vec<u8>,
    output: Vec<u8>,
    watches_output: bool,
}

/// Result of a read.
pub(super) enum Read {
    Bytes {
        count: usize,
        /// The socket is known to be empty now.
        is_last: bool,
    },
    /// No data has arrived.
    Nothing,
    /// Interrupted by a signal; read again.
    Interrupted,
    /// The connection is closed.
    Closed,
}

impl Connection {
    pub(super) fn new(connected: Connected) -> io::Result<Self> {
        connected.transport.set_nonblocking(true)?;
        Ok(Connection {
            transport: connected.transport,
            compressor: connected.compressor,
            input: Vec::new(),
            output: Vec::new(),
            watches_output: false,
        })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.transport.as_raw_fd()
    }

    /// Whether the TLS layer has bytes to send.
    pub(super) fn wants_write(&self) -> bool {
        self.transport.wants_write()
    }

    /// Sends `message`; returns whether the socket accepted all of it. The rest is kept for [`flush`](Self::flush).
    pub(super) fn send(&mut self, message: &[u8], packing: &mut Scratch) -> io::Result<bool> {
        let bytes = match self.compressor {
            None => message,
            // A server must accept uncompressed messages as well.
            Some(compressor) => packing.compress(compressor, message).unwrap_or(message),
        };
        let sent = write_all(&mut self.transport, bytes)?;
        if sent == bytes.len() && !self.transport.wants_write() {
            return Ok(true);
        }
        self.output.clear();
        self.output.extend_from_slice(&bytes[sent..]);
        Ok(false)
    }

    /// Sends the rest of earlier messages. Returns whether everything was sent.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let sent = write_all(&mut self.transport, &self.output)?;
        self.output.drain(..sent);
        let flushed = self.transport.flush_pending();
        Ok(self.output.is_empty() && flushed.is_ok() && !self.transport.wants_write())
    }

    /// Starts or stops waiting for writability.
    pub(super) fn watch_output(
        &mut self,
        poller: &Poller,
        token: u64,
        wanted: bool,
    ) -> io::Result<()> {
        if self.watches_output == wanted {
            return Ok(());
        }
        self.watches_output = wanted;
        poller.set_writable(self.descriptor(), token, wanted)
    }

    /// Reads once.
    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Read {
        match self.transport.read(buffer) {
            Ok(0) => Read::Closed,
            // A plain socket that returned less than requested is empty; another read would only cost a system call.
            // TLS must read on, because epoll does not see decrypted bytes.
            Ok(count) => {
                Read::Bytes { count, is_last: count < buffer.len() && !self.transport.is_tls() }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Read::Interrupted,
            Err(_) => Read::Closed,
        }
    }
}

/// Writes until everything is written or the socket is full; returns the number of bytes written.
fn write_all(transport: &mut Transport, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match transport.write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
