//! A connected byte stream: TCP, Unix-domain socket, or TLS over one of them.
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
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected byte stream.
#[derive(Debug)]
pub enum Transport {
    /// Plain TCP.
    Tcp(TcpStream),
    /// Unix-domain socket.
    Unix(UnixStream),
    /// TLS.
    Tls(Box<TlsStream>),
}

/// The client side of a TLS connection over a socket.
#[derive(Debug)]
pub struct TlsStream {
    connection: ClientConnection,
    socket: Socket,
}

/// What TLS runs over.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => socket.set_nonblocking(nonblocking),
            Socket::Unix(socket) => socket.set_nonblocking(nonblocking),
        }
    }

    pub(super) fn set_timeouts(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Tcp(socket) => {
                socket.set_read_timeout(limit)?;
                socket.set_write_timeout(limit)
            }
            Socket::Unix(socket) => {
                socket.set_read_timeout(limit)?;
                socket.set_write_timeout(limit)
            }
        }
    }

    fn as_raw_fd(&self) -> RawFd {
        match self {
            Socket::Tcp(socket) => socket.as_raw_fd(),
            Socket::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(buffer),
            Socket::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    pub(super) fn new(connection: ClientConnection, socket: Socket) -> Self {
        TlsStream { connection, socket }
    }

    /// Performs the TLS handshake on a blocking socket.
    pub(super) fn handshake(&mut self) -> io::Result<()> {
        while self.connection.is_handshaking() {
            self.connection.complete_io(&mut self.socket)?;
        }
        Ok(())
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Closed without TLS's close notification. Messages have lengths, so truncation is noticed.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            self.connection.read_tls(&mut self.socket)?;
            let processed = self.connection.process_new_packets();
            // Messages of the TLS layer, such as the reason for a failure, should reach the peer.
            let flushed = self.flush_pending();
            processed.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            flushed?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Encrypted bytes of earlier calls go first, so that they do not pile up.
        self.flush_pending()?;
        if self.connection.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.connection.writer().write(bytes)?;
        self.flush_pending()?;
        Ok(taken)
    }

    fn flush_pending(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Transport {
    /// Reads available data, at most the length of `buffer`; 0 at the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` if no data is available; otherwise the socket's error, or `InvalidData` from TLS.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(socket) => socket.read(buffer),
            Transport::Unix(socket) => socket.read(buffer),
            Transport::Tls(stream) => stream.read(buffer),
        }
    }

    /// Writes a part of `bytes` and returns its length.
    ///
    /// # Errors
    /// `WouldBlock` if nothing can be written now; otherwise the socket's error.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Tcp(socket) => socket.write(bytes),
            Transport::Unix(socket) => socket.write(bytes),
            Transport::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends encrypted bytes of earlier calls until the socket is full.
    ///
    /// # Errors
    /// The socket's error. A full socket is not an error: see [`wants_write`](Self::wants_write).
    pub fn flush_pending(&mut self) -> io::Result<()> {
        match self {
            Transport::Tcp(_) | Transport::Unix(_) => Ok(()),
            Transport::Tls(stream) => stream.flush_pending(),
        }
    }

    /// Whether accepted bytes still wait for the socket. Always false without TLS.
    #[inline]
    pub fn wants_write(&self) -> bool {
        match self {
            Transport::Tcp(_) | Transport::Unix(_) => false,
            Transport::Tls(stream) => stream.connection.wants_write(),
        }
    }

    /// Whether the stream is encrypted, so that decrypted bytes may be buffered on this side.
    #[inline]
    pub fn is_tls(&self) -> bool {
        matches!(self, Transport::Tls(_))
    }

    /// Switches between blocking and non-blocking use.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Transport::Tcp(socket) => socket.set_nonblocking(nonblocking),
            Transport::Unix(socket) => socket.set_nonblocking(nonblocking),
            Transport::Tls(stream) => stream.socket.set_nonblocking(nonblocking),
        }
    }

    /// The descriptor for polling. The transport still owns it.
    pub fn as_raw_fd(&self) -> RawFd {
        match self {
            Transport::Tcp(socket) => socket.as_raw_fd(),
            Transport::Unix(socket) => socket.as_raw_fd(),
            Transport::Tls(stream) => stream.socket.as_raw_fd(),
        }
    }

    /// Limits how long a blocking call may take; `None` removes the limit.
    pub(super) fn set_timeouts(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Transport::Tcp(socket) => {
                socket.set_read_timeout(limit)?;
                socket.set_write_timeout(limit)
            }
            Transport::Unix(socket) => {
                socket.set_read_timeout(limit)?;
                socket.set_write_timeout(limit)
            }
            Transport::Tls(stream) => stream.socket.set_timeouts(limit),
        }
    }
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        Transport::as_raw_fd(self)
    }
}
