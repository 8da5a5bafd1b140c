//! Sockets of a responder: TCP and Unix sockets with one interface.

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Address of a responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Address and port of a TCP socket.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// The TCP address, if it is one.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// Connection string for a client.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("mongodb://{self}/?directConnection=true")
    }
}

/// Writes the address as in a connection string: a path is percent-encoded.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(formatter, "{address}"),
            Address::Unix(path) => {
                path.as_os_str().as_encoded_bytes().iter().try_for_each(|&byte| {
                    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                        write!(formatter, "{}", char::from(byte))
                    } else {
                        write!(formatter, "%{byte:02X}")
                    }
                })
            }
        }
    }
}

/// A bound socket, not yet served. A Unix socket's path is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: ListenerSocket,
    address: Address,
}

#[derive(Debug)]
enum ListenerSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Binds a TCP address; port 0 selects a free one.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        let address = Address::Tcp(socket.local_addr()?);
        Ok(Listener { socket: ListenerSocket::Tcp(socket), address })
    }

    /// Binds a Unix socket; `path` must not exist.
    pub fn unix(path: &Path) -> io::Result<Self> {
        Ok(Listener {
            socket: ListenerSocket::Unix(UnixListener::bind(path)?),
            address: Address::Unix(path.to_owned()),
        })
    }

    /// The bound address.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            ListenerSocket::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            ListenerSocket::Tcp(listener) => listener.register(registry, token, Interest::READABLE),
            ListenerSocket::Unix(listener) => {
                listener.register(registry, token, Interest::READABLE)
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection's socket.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        // Both at once: readiness is edge-triggered, so writability costs an event only after a
        // full socket buffer has drained.
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Stream::Tcp(stream) => stream.register(registry, token, interest),
            Stream::Unix(stream) => stream.register(registry, token, interest),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_connection_strings() {
        let tcp = Address::Tcp(([127, 0, 0, 1], 27017).into());
        assert_eq!(tcp.uri(), "mongodb://127.0.0.1:27017/?directConnection=true");
        let unix = Address::Unix("/tmp/a b/m.sock".into());
        assert_eq!(unix.uri(), "mongodb://%2Ftmp%2Fa%20b%2Fm.sock/?directConnection=true");
    }
}
