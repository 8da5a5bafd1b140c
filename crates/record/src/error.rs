//! What can go wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};

/// A run directory could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The folder does not exist.
    #[error("no such folder `{path}`")]
    NoSuchFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The folder exists, and is of another kind.
    #[error("`{path}` is not {wanted}: it holds no `{file}`")]
    NoDocument {
        /// The folder.
        path: PathBuf,
        /// What it should be.
        wanted: &'static str,
        /// What it should hold.
        file: &'static str,
    },
    /// A run is to be written where there is one already.
    #[error("`{directory}` already holds a run: found `{found}`")]
    HoldsRun {
        /// The folder.
        directory: PathBuf,
        /// The file that says so, relative to the folder.
        found: &'static str,
    },
    /// The run was written by a later version of the program.
    #[error("`{path}` has schema version {found}, and only versions up to {supported} can be read")]
    NewerSchema {
        /// The run document.
        path: PathBuf,
        /// Version of the file.
        found: u64,
        /// Newest version that can be read.
        supported: u32,
    },
    /// The run document is not what it should be.
    #[error("cannot understand `{path}`")]
    Document {
        /// The run document.
        path: PathBuf,
        /// Where and what; holds line and column.
        source: serde_json::Error,
    },
    /// A line of a recorded file contradicts the format or the other files.
    #[error("`{path}` is corrupt in line {line}: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Line number from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// A file or folder could not be made.
    #[error("cannot create `{path}`")]
    Create {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file could not be written, for example because the disk is full.
    #[error("cannot write `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// An earlier write stopped in the middle of a line and could not be undone.
    #[error("`{path}` ends in half a line after an earlier write error")]
    Torn {
        /// The file.
        path: PathBuf,
    },
    /// A name would break the files' format.
    #[error("{what} `{name}` may only contain `A-Z a-z 0-9 _ : -`")]
    Name {
        /// What is named so.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The document's start is not a time.
    #[error("`{text}` is not a start time in RFC 3339")]
    StartTime {
        /// The text.
        text: String,
        /// Cause.
        source: jiff::Error,
    },
    /// A histogram could not be put into the interval log.
    #[error("cannot encode the histogram `{tag}`")]
    Encode {
        /// Tag in the log.
        tag: String,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The run document could not be turned into JSON.
    #[error("cannot encode `{path}`")]
    EncodeDocument {
        /// The run document.
        path: PathBuf,
        /// Cause.
        source: serde_json::Error,
    },
    /// A trace is to be written where there is one already.
    #[error("`{directory}` already holds a trace")]
    HoldsTrace {
        /// The folder.
        directory: PathBuf,
    },
    /// A table of a trace could not be written.
    #[error("cannot write the table `{path}`")]
    WriteTable {
        /// The table.
        path: PathBuf,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A table of a trace could not be read.
    #[error("cannot read the table `{path}`")]
    ReadTable {
        /// The table.
        path: PathBuf,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// What an error about a file or folder becomes, for `map_err`.
impl RecordError {
    pub(crate) fn create(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::Create {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::Write {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::Read {
            path: path.to_owned(),
            source,
        }
    }
}
