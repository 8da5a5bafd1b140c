//! The Redis address and credentials. The address may hold a password: it comes from the environment or a file, and is shown
//! without user and password.

use crate::error::FleetError;
use redis::{Client, Connection, ConnectionAddr, RedisError, TlsCertificates};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for a connection, and for an answer beyond a command's own blocking time.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Longest stall of an overloaded machine. Queries without a retry wait this long.
pub(crate) const STALL: Duration = Duration::from_secs(30);

/// Entries of a stream: ID, and fields with their values.
pub(crate) type Entries = Vec<(String, Vec<Vec<u8>>)>;
/// Answer of `XREAD`: nothing, or each stream with its entries.
pub(crate) type Reply = Option<Vec<(String, Entries)>>;

/// The Redis server of a fleet.
#[derive(Clone)]
pub struct Endpoint {
    client: Client,
    shown: String,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Endpoint({})", self.shown)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl Endpoint {
    /// Parses the address: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` with TLS. `authority` is a file of
    /// certificates (PEM) to trust with `rediss://`, instead of the system's.
    ///
    /// # Errors
    /// An unreadable file, or an invalid address; the text is never part of the message.
    pub fn new(text: &str, authority: Option<&Path>) -> Result<Self, FleetError> {
        let text = text.trim();
        let scheme = text.split("://").next();
        if !matches!(scheme, Some("redis" | "rediss")) {
            let reason = "it must begin with `redis://` or `rediss://`";
            return Err(FleetError::EndpointText { reason });
        }
        if text.contains("#insecure") {
            let reason = "`#insecure` is not supported: certificates are always checked";
            return Err(FleetError::EndpointText { reason });
        }
        let not_valid = |_: RedisError| FleetError::EndpointText { reason: "it cannot be parsed" };
        let client = match authority {
            Some(path) if scheme == Some("rediss") => {
                let root_cert = Some(read(path)?.into_bytes());
                let certificates = TlsCertificates { client_tls: None, root_cert };
                Client::build_with_tls(text, certificates)
            }
            _ => Client::open(text),
        };
        let client = client.map_err(not_valid)?;
        let shown = match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                format!("{host}:{port}")
            }
            other => other.to_string(),
        };
        Ok(Endpoint { client, shown })
    }

    /// Why others could write to Redis, if it is on another host.
    pub fn weakness(&self) -> Option<&'static str> {
        let info = self.client.get_connection_info();
        let (host, is_encrypted) = match info.addr() {
            ConnectionAddr::Tcp(host, _) => (host, false),
            ConnectionAddr::TcpTls { host, .. } => (host, true),
            _ => return None,
        };
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            return None;
        }
        match (info.redis_settings().password().is_some(), is_encrypted) {
            (true, true) => None,
            (true, false) => Some("without encryption"),
            (false, true) => Some("without a password"),
            (false, false) => Some("without a password and without encryption"),
        }
    }

    /// Opens a connection. Its commands end within [`ANSWER_WITHIN`] plus `longest_block`, the longest blocking time of a command.
    ///
    /// # Errors
    /// [`FleetError::Redis`] if the connection fails.
    pub fn connect(&self, longest_block: Duration) -> Result<Connection, FleetError> {
        self.try_connect(longest_block).map_err(|error| self.error(&error))
    }

    /// Opens a connection for queries without a retry. Timeouts are repeated for [`STALL`]; a refused connection is not.
    ///
    /// # Errors
    /// [`FleetError::Redis`].
    pub(crate) fn connect_patiently(&self) -> Result<Connection, FleetError> {
        let deadline = Instant::now() + STALL;
        loop {
            match self.try_connect(STALL) {
                Err(error) if error.is_timeout() && Instant::now() < deadline => {}
                result => return result.map_err(|error| self.error(&error)),
            }
        }
    }

    pub(crate) fn try_connect(&self, longest_block: Duration) -> Result<Connection, RedisError> {
        let connection = self.client.get_connection_with_timeout(ANSWER_WITHIN)?;
        connection.set_read_timeout(Some(ANSWER_WITHIN + longest_block))?;
        connection.set_write_timeout(Some(ANSWER_WITHIN))?;
        Ok(connection)
    }

    /// The kept connection, or a new one.
    pub(crate) fn kept<'c>(
        &self,
        connection: &'c mut Option<Connection>,
        longest_block: Duration,
    ) -> Result<&'c mut Connection, RedisError> {
        match connection {
            Some(connection) => Ok(connection),
            None => Ok(connection.insert(self.try_connect(longest_block)?)),
        }
    }

    /// The error with the displayable address.
    pub fn error(&self, error: &RedisError) -> FleetError {
        FleetError::Redis { endpoint: self.shown.clone(), reason: error.to_string() }
    }
}

/// Reads a file with an address or certificates.
pub(crate) fn read(path: &Path) -> Result<String, FleetError> {
    std::fs::read_to_string(path)
        .map_err(|source| FleetError::EndpointFile { path: path.into(), source: source.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Result<Endpoint, FleetError> {
        Endpoint::new(text, None)
    }

    #[test]
    fn password_is_never_shown() {
        let endpoint = find("redis://anna:secret@localhost:7000/2").expect("valid");
        assert_eq!(endpoint.to_string(), "localhost:7000");
        assert!(!format!("{endpoint:?}").contains("secret"));
        for wrong in
            ["http://:secret@h", "redis://:secret@h:port", "secret", "rediss://:secret@h/#insecure"]
        {
            let error = find(wrong).expect_err(wrong);
            assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        }
    }
}
