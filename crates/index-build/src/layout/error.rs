//! Why a layout could not be made or changed.

use dyno_load::connect::{ConnectError, ControlError};
use std::path::PathBuf;

/// Loading or a remedy did not come to its end. Unless an error says otherwise, the collection is what it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A connection could not be made.
    #[error("cannot connect to the server")]
    Connect(#[source] Box<ConnectError>),
    /// A command failed.
    #[error("cannot {intent}")]
    Command {
        /// What was tried.
        intent: String,
        /// Why it failed.
        #[source]
        source: Box<ControlError>,
    },
    /// An answer is not what it should be.
    #[error("cannot understand the server's answer to `{command}`: {reason}")]
    Answer {
        /// Name of the command.
        command: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// It was asked to end.
    #[error("interrupted")]
    Interrupted,
    /// The collection to work on is not there.
    #[error("there is no collection `{namespace}`")]
    Missing {
        /// `database.collection`.
        namespace: String,
    },
    /// The collection to work on is something else.
    #[error("`{namespace}` is a {kind}, not an ordinary collection")]
    NotOrdinary {
        /// `database.collection`.
        namespace: String,
        /// What it is, such as `view`.
        kind: String,
    },
    /// The collection to load into has documents.
    #[error("`{namespace}` holds {documents} documents already")]
    NotEmpty {
        /// `database.collection`.
        namespace: String,
        /// How many.
        documents: u64,
    },
    /// It is part of a sharded cluster: a rewritten collection would not be sharded as the old one is.
    #[error("`{namespace}` is part of a sharded cluster, where a collection cannot be rewritten")]
    Routed {
        /// `database.collection`.
        namespace: String,
    },
    /// A copy of an earlier remedy is there.
    #[error("a remedy that did not finish has left a copy: `{namespace}`")]
    CopyExists {
        /// `database.collection` of the copy.
        namespace: String,
    },
    /// A remedy failed, and the copy that it had made could not be dropped. The collection is what it was.
    #[error("the copy `{namespace}` was left behind")]
    CopyLeft {
        /// `database.collection` of the copy.
        namespace: String,
        /// What the remedy failed with.
        #[source]
        source: Box<LayoutError>,
    },
    /// The server did not say whether the copy took the place of the collection.
    #[error("it is not known whether the copy `{copy}` took the place of `{collection}`")]
    Unknown {
        /// `database.collection` of the copy, which is verified.
        copy: String,
        /// `database.collection`.
        collection: String,
        /// What the server said, or why it said nothing.
        #[source]
        source: Box<LayoutError>,
    },
    /// The collection belongs to the server.
    #[error("`{namespace}` is one of the server's own collections")]
    OfServer {
        /// `database.collection`.
        namespace: String,
    },
    /// Not all documents are there after loading.
    #[error("{found} documents were loaded, and {expected} should have been")]
    WrongCount {
        /// How many are there.
        found: u64,
        /// How many should be.
        expected: u64,
    },
    /// The copy is not what it is a copy of. It was dropped, and nothing was replaced.
    #[error("the copy differs from the collection: {0}")]
    CopyDiffers(String),
    /// Others wrote to the collection while it was copied. The copy was dropped, and nothing was replaced.
    #[error("`{namespace}` was changed by others while it was copied")]
    Changed {
        /// `database.collection`.
        namespace: String,
    },
    /// After the copy took its place the collection is not what it was.
    #[error("the collection is not what it was before: {0}")]
    NotIdentical(String),
    /// The server has no such command.
    #[error("the server does not know `{command}`")]
    Unsupported {
        /// Name of the command.
        command: &'static str,
    },
    /// A file could not be written or read.
    #[error("cannot {intent} `{path}`")]
    File {
        /// What was tried, such as `write a dump in`.
        intent: &'static str,
        /// Its folder.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

impl LayoutError {
    /// What to do about it, where that can be said.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            LayoutError::Missing { .. } => {
                "name it with `--set data.database=…` and `--set data.collection=…`, or have it loaded by a layout other than `existing`".into()
            }
            LayoutError::NotEmpty { .. } => {
                "take it as it is with the layout `existing`, or name another collection with `--set data.collection=…`".into()
            }
            LayoutError::Routed { .. } => {
                "leave the remedy out: an index can be built and traced there".into()
            }
            LayoutError::CopyExists { namespace } | LayoutError::CopyLeft { namespace, .. } => {
                let name = namespace.split_once('.').map_or("", |(_, name)| name);
                format!(
                    "the collection itself was not touched if it is there; then drop the copy: `db.getCollection(\"{name}\").drop()`"
                )
            }
            LayoutError::Changed { .. } => {
                "stop those who write to it; a remedy needs the collection for itself".into()
            }
            LayoutError::Unknown { copy, collection, .. } => format!(
                "all documents are in one of the two: if `{collection}` is there, it is complete, and `{copy}` can be dropped; if it is not, rename the copy"
            ),
            LayoutError::Unsupported { .. } => "take the remedy `rewrite`".into(),
            _ => return None,
        })
    }
}

impl From<ConnectError> for LayoutError {
    fn from(error: ConnectError) -> Self {
        LayoutError::Connect(Box::new(error))
    }
}
