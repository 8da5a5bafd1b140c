//! A live connection of the `wire` backend: bytes in and out without blocking.

use crate::backend::poller::Poller;
use crate::connect::{Connected, Transport};
use dyno_wire::compress::{Compressor, Scratch};
use std::io;
use std::os::fd::RawFd;

/// Both buffers are empty except when a message does not fit into one system call.
pub(super) struct Connection {
    transport: Transport,
    compressor: Option<Compressor>,
    /// The beginning of a message whose end has not arrived.
    pub(super) input: Vec<u8>,
    output: Vec<u8>,
    watches_output: bool,
}

/// What a read gave.
pub(super) enum Read {
    Bytes {
        count: usize,
        /// The socket is known to be empty now.
        is_last: bool,
    },
    /// Nothing has arrived.
    Nothing,
    /// A signal came first; read again.
    Interrupted,
    /// The connection is gone.
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

    /// TLS has bytes of its own to send.
    pub(super) fn wants_write(&self) -> bool {
        self.transport.wants_write()
    }

    /// Sends `message`; returns whether the socket took all of it. What it did not take is kept for
    /// [`flush`](Self::flush).
    pub(super) fn send(&mut self, message: &[u8], packing: &mut Scratch) -> io::Result<bool> {
        let bytes = match self.compressor {
            None => message,
            // A server must take plain messages as well.
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

    /// Sends what is left over. Returns whether nothing is any more.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let sent = write_all(&mut self.transport, &self.output)?;
        self.output.drain(..sent);
        let flushed = self.transport.flush_pending();
        Ok(self.output.is_empty() && flushed.is_ok() && !self.transport.wants_write())
    }

    /// Asks for events when there is room to write, or no longer.
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
            // A plain socket that gave less than asked for is empty; asking again would cost a
            // system call to learn that. Decrypted bytes are invisible to epoll, so TLS asks on.
            Ok(count) => Read::Bytes {
                count,
                is_last: count < buffer.len() && !self.transport.is_tls(),
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Read::Interrupted,
            Err(_) => Read::Closed,
        }
    }
}

/// Writes until everything is written or the socket is full; returns how much was taken.
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
