//! A connected byte stream: TCP or a Unix-domain socket, with or without TLS.
//!
//! # Use in an event loop
//! All kinds behave like a plain non-blocking socket: `WouldBlock` means that the descriptor must
//! become readable (or writable) first. Two things differ for TLS and must be obeyed:
//! - Decrypted bytes are invisible to epoll. After readiness, call [`read`](Transport::read) until
//!   it returns `WouldBlock`, not until it returns less than was requested.
//! - A [`write`](Transport::write) that succeeded may leave encrypted bytes behind. While
//!   [`wants_write`](Transport::wants_write), watch for writability and call
//!   [`flush_pending`](Transport::flush_pending). Reading can cause such bytes too (answers of the
//!   TLS layer); they are sent along when possible.

use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected byte stream.
#[derive(Debug)]
pub struct Transport {
    /// For a Unix-domain socket as well: the system calls are the same.
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl From<TcpStream> for Transport {
    fn from(socket: TcpStream) -> Self {
        Transport { socket, tls: None }
    }
}

impl From<UnixStream> for Transport {
    fn from(socket: UnixStream) -> Self {
        TcpStream::from(OwnedFd::from(socket)).into()
    }
}

impl Transport {
    /// Performs the TLS handshake on a blocking socket.
    pub(super) fn begin_tls(&mut self, mut tls: ClientConnection) -> io::Result<()> {
        while tls.is_handshaking() {
            tls.complete_io(&mut self.socket)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Reads available data, at most the length of `buffer`; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if no data is available; otherwise the socket's error, or `InvalidData` from TLS.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => read_tls(tls, &mut self.socket, buffer),
        }
    }

    /// Writes a part of `bytes` and returns its length.
    ///
    /// # Errors
    /// `WouldBlock` if nothing can be written now; otherwise the socket's error.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(bytes);
        };
        // Encrypted bytes of earlier calls go first, so that they do not pile up.
        flush_tls(tls, &mut self.socket)?;
        if tls.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = tls.writer().write(bytes)?;
        flush_tls(tls, &mut self.socket)?;
        Ok(taken)
    }

    /// Sends encrypted bytes of earlier calls until the socket is full.
    ///
    /// # Errors
    /// The socket's error. A full socket is not an error: see [`wants_write`](Self::wants_write).
    pub fn flush_pending(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| flush_tls(tls, &mut self.socket))
    }

    /// Whether accepted bytes still wait for the socket. Always false without TLS.
    #[inline]
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether the stream is encrypted, so that decrypted bytes may be buffered on this side.
    #[inline]
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Switches between blocking and non-blocking use.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    /// Limits how long a blocking call may take; `None` removes the limit.
    pub(super) fn set_timeouts(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(limit)?;
        self.socket.set_write_timeout(limit)
    }
}

/// The descriptor for polling. The transport still owns it.
impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn read_tls(
    tls: &mut ClientConnection,
    socket: &mut TcpStream,
    buffer: &mut [u8],
) -> io::Result<usize> {
    loop {
        match tls.reader().read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Closed without TLS's close notification. Messages have lengths, so truncation is noticed.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            result => return result,
        }
        tls.read_tls(socket)?;
        let processed = tls.process_new_packets();
        // Messages of the TLS layer, such as the reason for a failure, should reach the peer.
        let flushed = flush_tls(tls, socket);
        processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        flushed?;
    }
}

fn flush_tls(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
