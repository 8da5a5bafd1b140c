//! How a deployment sends commands: the connections belong to the caller, so that this crate needs
//! no client of its own.

use std::net::SocketAddr;
use std::time::Duration;

use bson::Document;
use dyno_plan::uri::Credentials;

use crate::deployment::uri::{self, Reach};
use crate::tls::TlsFiles;

/// Code of a command that the server does not know.
pub(crate) const COMMAND_NOT_FOUND: i32 = 59;

/// One server process, and what it takes to talk to it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Where it listens. The connection must go to this very process, as with
    /// `directConnection=true`.
    pub address: SocketAddr,
    /// Files for an encrypted connection; plain text when absent.
    pub tls: Option<&'a TlsFiles>,
    /// User to authenticate as; none before the first one is made.
    pub credentials: Option<&'a Credentials>,
}

impl Target<'_> {
    /// The connection string without user and password. The client certificate is in it also where the
    /// server asks for none.
    pub fn uri(&self) -> String {
        uri::uri(&[self.address], Reach::Direct, self.tls, true)
    }
}

/// Sends commands to servers. Implemented by whoever owns a client.
pub trait Commander {
    /// Sends one command and returns the reply, whose `ok` is 1.
    ///
    /// A connection may be kept for the next command to the same target with the same credentials.
    ///
    /// # Errors
    /// A [`CommandFailure`] when there is no reply within `limit`, or one whose `ok` is 0.
    fn run(
        &mut self,
        target: Target<'_>,
        database: &str,
        command: Document,
        limit: Duration,
    ) -> Result<Document, CommandFailure>;
}

/// Why a command gave no usable reply.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// Its `code`, 0 when it gave none.
        code: i32,
        /// Its `errmsg`.
        message: String,
    },
    /// No connection, no encryption, no authentication, or no answer in time.
    #[error("no answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The reply lacks something.
    #[error("the reply has no usable `{field}`")]
    Malformed {
        /// What is missing.
        field: &'static str,
    },
}

impl CommandFailure {
    /// Reads the code of the server; `None` when it did not answer.
    pub fn code(&self) -> Option<i32> {
        match self {
            CommandFailure::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The failure that a reply with `ok` = 0 tells of; `None` for a good reply.
    pub fn from_reply(reply: &Document) -> Option<CommandFailure> {
        let ok = match reply.get("ok") {
            Some(bson::Bson::Double(ok)) => *ok == 1.0,
            Some(bson::Bson::Int32(ok)) => *ok == 1,
            Some(bson::Bson::Boolean(ok)) => *ok,
            _ => false,
        };
        (!ok).then(|| CommandFailure::Refused {
            code: reply.get_i32("code").unwrap_or(0),
            message: reply.get_str("errmsg").unwrap_or_default().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_reply_is_good_when_its_ok_is_one_in_any_type() {
        for reply in [doc! { "ok": 1.0 }, doc! { "ok": 1 }, doc! { "ok": true }] {
            assert!(CommandFailure::from_reply(&reply).is_none(), "{reply}");
        }
        let failed = doc! { "ok": 0.0, "code": 94, "errmsg": "no replset config" };
        let failure = CommandFailure::from_reply(&failed).unwrap();
        assert_eq!(failure.code(), Some(94));
        assert_eq!(
            failure.to_string(),
            "the server answered with error 94: no replset config"
        );
        assert!(CommandFailure::from_reply(&doc! {}).is_some());
    }
}
