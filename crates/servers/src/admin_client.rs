//! Interface for the commands of a deployment: the caller owns the connections, so this crate needs
//! no client of its own.

use std::net::SocketAddr;
use std::time::Duration;

use bson::Document;
use dyno_plan::uri::Credentials;

use crate::CommandFailure;
use crate::deployment::uri::{self, ConnectionMode};
use crate::tls::TlsFiles;

/// Code of a command that the server does not know.
pub(crate) const COMMAND_NOT_FOUND: i32 = 59;

/// One server process, and how to connect to it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Where this machine reaches it. The connection must go to exactly this process, as with
    /// `directConnection=true`.
    pub address: SocketAddr,
    /// Files for an encrypted connection; plain text if absent.
    pub tls: Option<&'a TlsFiles>,
    /// User to authenticate as; none before the first user is created.
    pub credentials: Option<&'a Credentials>,
}

impl Target<'_> {
    /// The connection string without user and password. It contains the client certificate even if
    /// the server does not require one.
    pub fn uri(&self) -> String {
        let host = self.address.to_string();
        uri::uri(&[host], ConnectionMode::Direct, self.tls, true)
    }
}

/// Sends commands to servers. Implemented by the owner of a client.
pub trait AdminClient {
    /// Sends one command and returns the reply, whose `ok` is 1.
    ///
    /// A connection may be kept for the next command to the same target with the same credentials.
    ///
    /// # Errors
    /// [`CommandFailure`] without a reply within `limit`, or for a reply with `ok` 0.
    fn run(
        &mut self,
        target: Target<'_>,
        database: &str,
        command: Document,
        limit: Duration,
    ) -> Result<Document, CommandFailure>;
}
