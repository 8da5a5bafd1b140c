//! Errors of creating or changing a layout.

use dyno_load::connect::{ConnectError, ControlError};
use std::path::PathBuf;

/// Loading or a remedy failed. The collection is unchanged unless an error says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A connection failed.
    #[error("cannot connect to the server")]
    Connect(#[source] Box<ConnectError>),
    /// A command failed.
    #[error("cannot {intent}")]
    Command {
        /// The failed action.
        intent: String,
        #[source]
        source: Box<ControlError>,
    },
    /// An answer is not valid.
    #[error("cannot understand the server's answer to `{command}`: {reason}")]
    Answer { command: &'static str, reason: String },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// The collection does not exist.
    #[error("the collection `{namespace}` does not exist")]
    Missing {
        /// `database.collection`.
        namespace: String,
    },
    /// It is not an ordinary collection.
    #[error("`{namespace}` is a {kind}, not an ordinary collection")]
    NotOrdinary {
        /// `database.collection`.
        namespace: String,
        /// Its type, such as `view`.
        kind: String,
    },
    /// The collection to load into contains documents.
    #[error("`{namespace}` already contains {documents} documents")]
    NotEmpty {
        /// `database.collection`.
        namespace: String,
        documents: u64,
    },
    /// The collection belongs to a sharded cluster; a rewritten one would not be sharded.
    #[error("`{namespace}` is part of a sharded cluster, where a collection cannot be rewritten")]
    Routed {
        /// `database.collection`.
        namespace: String,
    },
    /// A copy of an earlier remedy exists.
    #[error("an unfinished remedy has left the copy `{namespace}`")]
    CopyExists {
        /// `database.collection` of the copy.
        namespace: String,
    },
    /// A remedy failed, and its copy could not be dropped. The collection is unchanged.
    #[error("cannot drop the copy `{namespace}`")]
    CopyLeft {
        /// `database.collection` of the copy.
        namespace: String,
        /// Error of the remedy.
        #[source]
        source: Box<LayoutError>,
    },
    /// The server did not confirm that the copy replaced the collection.
    #[error("cannot determine whether the copy `{copy}` replaced `{collection}`")]
    Unknown {
        /// `database.collection` of the verified copy.
        copy: String,
        /// `database.collection`.
        collection: String,
        /// Error of the server or of the connection.
        #[source]
        source: Box<LayoutError>,
    },
    /// The collection is internal to the server.
    #[error("`{namespace}` is one of the server's own collections")]
    OfServer {
        /// `database.collection`.
        namespace: String,
    },
    /// The number of loaded documents is wrong.
    #[error("{found} documents were loaded instead of {expected}")]
    WrongCount { found: u64, expected: u64 },
    /// The copy differs from its original. It was dropped, and nothing was replaced.
    #[error("the copy differs from the collection: {0}")]
    CopyDiffers(String),
    /// The collection changed while it was copied. The copy was dropped, and nothing was replaced.
    #[error("`{namespace}` was changed by others while it was copied")]
    Changed {
        /// `database.collection`.
        namespace: String,
    },
    /// After the replacement, the collection differs from the original.
    #[error("the collection differs from its earlier state: {0}")]
    NotIdentical(String),
    /// The server does not support a command.
    #[error("the server does not support `{command}`")]
    Unsupported { command: &'static str },
    /// A file could not be written or read.
    #[error("cannot {intent} `{path}`")]
    File {
        /// The failed action, such as `write a dump in`.
        intent: &'static str,
        /// Folder of the file.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

impl LayoutError {
    /// Advice, if any.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            LayoutError::Missing { .. } => {
                "name it with `--set data.database=…` and `--set data.collection=…`, or use a layout that loads documents".into()
            }
            LayoutError::NotEmpty { .. } => {
                "use the layout `existing`, or name another collection with `--set data.collection=…`".into()
            }
            LayoutError::Routed { .. } => {
                "omit the remedy: an index can be built and traced without it".into()
            }
            LayoutError::CopyExists { namespace } | LayoutError::CopyLeft { namespace, .. } => {
                let name = namespace.split_once('.').map_or("", |(_, name)| name);
                format!(
                    "if the collection exists, it is unchanged; then drop the copy: `db.getCollection(\"{name}\").drop()`"
                )
            }
            LayoutError::Changed { .. } => {
                "stop all writers: a remedy needs exclusive use of the collection".into()
            }
            LayoutError::Unknown { copy, collection, .. } => format!(
                "if `{collection}` exists, it is complete: drop `{copy}`; otherwise rename the copy, which has all documents"
            ),
            LayoutError::Unsupported { .. } => "use the remedy `rewrite`".into(),
            _ => return None,
        })
    }
}

impl From<ConnectError> for LayoutError {
    fn from(error: ConnectError) -> Self {
        LayoutError::Connect(Box::new(error))
    }
}
