//! How the server is asked: the connection belongs to the caller.

use crate::health::Health;
use bson::Document;

/// Codes of a server that does not let this user do it: `Unauthorized` and `AuthenticationFailed`.
const NOT_ALLOWED: [i32; 2] = [13, 18];

/// Codes of a server that has no such thing: `CommandNotFound`, `CommandNotSupported` and its form in views,
/// `NoReplicationEnabled`, `NotYetInitialized`, `NotImplemented`.
const NOT_THERE: [i32; 6] = [59, 115, 166, 76, 94, 238];

/// Commands to a server.
pub trait Ask: Send {
    /// Sends a command and waits for the answer, for no longer than about 2 s. After a connection was lost the next
    /// call makes a new one.
    ///
    /// # Errors
    /// [`AskError`].
    fn ask(&mut self, database: &str, command: Document) -> Result<Document, AskError>;
}

/// Why a command gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// Its `code`, 0 when it gave none.
        code: i32,
        /// Its `errmsg`.
        message: String,
    },
    /// There was no answer.
    #[error("{reason}")]
    Lost {
        /// What went wrong with the connection.
        reason: String,
    },
}

/// What the refusal of a command says about the thing that was asked for.
pub(super) fn refusal(command: &str, code: i32, message: &str) -> Health {
    let reason = format!("`{command}` was refused with error {code}: {message}");
    match code {
        code if NOT_THERE.contains(&code) => Health::Unsupported { reason },
        _ => Health::Failed { reason },
    }
}

/// The same for any failure.
pub(super) fn failure(command: &str, error: &AskError) -> Health {
    match error {
        AskError::Refused { code, message } => refusal(command, *code, message),
        AskError::Lost { reason } => Health::Failed {
            reason: reason.clone(),
        },
    }
}

/// Whether the user of the connection may not do it.
pub(super) fn is_forbidden(error: &AskError) -> bool {
    matches!(error, AskError::Refused { code, .. } if NOT_ALLOWED.contains(code))
}
