//! Server addresses: resolves host names and opens connections.

use super::error::{ConnectError, TLS_STEP};
use super::session::{Deadline, io_error};
use super::tls;
use super::transport::Transport;
use dyno_plan::uri::Host;
use rustls::{ClientConfig, ClientConnection};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

const STEP: &str = "connecting";

/// A server's address, as given and as resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: Host,
    /// At least one for TCP, none for a Unix-domain socket.
    addresses: Vec<SocketAddr>,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.fmt(formatter)
    }
}

impl Endpoint {
    /// Resolves the address with the system's resolver.
    ///
    /// # Errors
    /// [`ConnectError::Resolve`] if the name has no address.
    pub fn resolve(host: &Host) -> Result<Self, ConnectError> {
        let addresses = match host {
            Host::Unix(_) => Vec::new(),
            Host::Tcp { host, port } => {
                let failed = |source| ConnectError::Resolve { host: host.clone(), source };
                let addresses: Vec<SocketAddr> =
                    (host.as_str(), *port).to_socket_addrs().map_err(failed)?.collect();
                if addresses.is_empty() {
                    let none = io::Error::new(ErrorKind::NotFound, "the name has no address");
                    return Err(failed(none));
                }
                addresses
            }
        };
        Ok(Endpoint { host: host.clone(), addresses })
    }

    /// The address as it was given.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The addresses of a TCP endpoint; empty for a Unix-domain socket.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connects, with TLS if there are settings for it.
    pub(super) fn open(
        &self,
        tls_config: Option<&Arc<ClientConfig>>,
        deadline: Deadline,
    ) -> Result<Transport, ConnectError> {
        let mut transport = match &self.host {
            Host::Unix(path) => UnixStream::connect(path)
                .map(Transport::from)
                .map_err(|error| self.unix_error(error, deadline))?,
            Host::Tcp { .. } => self
                .open_tcp(deadline)
                .map(Transport::from)
                .map_err(|error| io_error(error, self.host.clone(), STEP, deadline, false))?,
        };
        if let Some(config) = tls_config {
            self.begin_tls(&mut transport, config, deadline)?;
        }
        Ok(transport)
    }

    /// Tries the addresses in order; reports the last failure.
    fn open_tcp(&self, deadline: Deadline) -> io::Result<TcpStream> {
        let mut failure = io::Error::from(ErrorKind::NotFound);
        for address in &self.addresses {
            let result = match deadline.remaining()? {
                Some(limit) => TcpStream::connect_timeout(address, limit),
                None => TcpStream::connect(address),
            };
            match result {
                Ok(socket) => {
                    // A command is one small write that must not wait for the acknowledgement of an earlier one.
                    socket.set_nodelay(true)?;
                    return Ok(socket);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn begin_tls(
        &self,
        transport: &mut Transport,
        config: &Arc<ClientConfig>,
        deadline: Deadline,
    ) -> Result<(), ConnectError> {
        let name = tls::server_name(&self.host)?;
        let connection = ClientConnection::new(Arc::clone(config), name).map_err(|source| {
            ConnectError::Tls { endpoint: self.host.clone(), source: source.into() }
        })?;
        let handshake = deadline
            .remaining()
            .and_then(|left| transport.set_timeouts(left))
            .and_then(|()| transport.begin_tls(connection));
        handshake.map_err(|error| io_error(error, self.host.clone(), TLS_STEP, deadline, true))
    }

    fn unix_error(&self, error: io::Error, deadline: Deadline) -> ConnectError {
        // A missing socket file and one without a listener mean the same to the user.
        if error.kind() == ErrorKind::NotFound {
            return ConnectError::Refused { endpoint: self.host.clone(), source: error };
        }
        io_error(error, self.host.clone(), STEP, deadline, false)
    }
}
