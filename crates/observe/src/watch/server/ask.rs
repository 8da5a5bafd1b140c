//! Interface for commands to the server: the caller owns the connection.

use crate::health::Health;
use bson::Document;

/// Codes for a command that this user may not run: `Unauthorized` and `AuthenticationFailed`.
const NOT_ALLOWED: [i32; 2] = [13, 18];

/// Codes for a feature that the server does not have: `CommandNotFound`, `CommandNotSupported` and
/// its form in views, `NoReplicationEnabled`, `NotYetInitialized`, `NotImplemented`.
const NOT_THERE: [i32; 6] = [59, 115, 166, 76, 94, 238];

/// Sends commands to a server.
pub trait Ask: Send {
    /// Sends a command and waits for the answer, for at most about 2 s. After a connection was
    /// lost, the next call opens a new one.
    ///
    /// # Errors
    /// [`AskError`].
    fn ask(&mut self, database: &str, command: Document) -> Result<Document, AskError>;
}

/// Why a command gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// Its `code`, 0 if absent.
        code: i32,
        /// Its `errmsg`.
        message: String,
    },
    /// There was no answer.
    #[error("{reason}")]
    Lost {
        /// The connection's error.
        reason: String,
    },
}

/// Health of a feature whose command was refused.
pub(super) fn refusal(command: &str, code: i32, message: &str) -> Health {
    let reason = format!("`{command}` was refused with error {code}: {message}");
    match code {
        code if NOT_THERE.contains(&code) => Health::Unsupported { reason },
        _ => Health::Failed { reason },
    }
}

/// Health of a feature whose command failed.
pub(super) fn failure(command: &str, error: &AskError) -> Health {
    match error {
        AskError::Refused { code, message } => refusal(command, *code, message),
        AskError::Lost { reason } => Health::Failed { reason: reason.clone() },
    }
}

/// Whether the connection's user may not run the command.
pub(super) fn is_forbidden(error: &AskError) -> bool {
    matches!(error, AskError::Refused { code, .. } if NOT_ALLOWED.contains(code))
}
