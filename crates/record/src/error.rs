//! Errors of run directories.

use std::io;
use std::path::{Path, PathBuf};

/// A failure to write or read a run directory.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The folder does not exist.
    #[error("no such folder `{path}`")]
    NoSuchFolder { path: PathBuf },
    /// The folder exists, but does not have the document.
    #[error("`{path}` is not {wanted}: it holds no `{file}`")]
    NoDocument {
        path: PathBuf,
        /// Expected kind of folder.
        wanted: &'static str,
        /// Name of the document.
        file: &'static str,
    },
    /// The folder already has a run.
    #[error("`{directory}` already holds a run: found `{found}`")]
    HoldsRun {
        directory: PathBuf,
        /// File of the run, relative to the folder.
        found: &'static str,
    },
    /// A later version of the program wrote the run.
    #[error(
        "`{path}` has schema version {found}, but only versions up to {supported} are supported"
    )]
    NewerSchema {
        path: PathBuf,
        found: u64,
        /// Newest supported version.
        supported: u32,
    },
    /// The document is invalid.
    #[error("cannot understand `{path}`")]
    Document {
        path: PathBuf,
        /// Cause with line and column.
        source: serde_json::Error,
    },
    /// A line of a recorded file contradicts the format or the other files.
    #[error("`{path}` is corrupt in line {line}: {reason}")]
    Corrupt {
        path: PathBuf,
        /// Line number from 1.
        line: u64,
        reason: String,
    },
    /// A file or folder could not be created.
    #[error("cannot create `{path}`")]
    Create { path: PathBuf, source: io::Error },
    /// A file could not be written, for example because the disk is full.
    #[error("cannot write `{path}`")]
    Write { path: PathBuf, source: io::Error },
    /// A file could not be read.
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    /// An earlier write stopped in the middle of a line and could not be undone.
    #[error("`{path}` ends with an incomplete line after an earlier write error")]
    Torn { path: PathBuf },
    /// A name would break the files' format.
    #[error("{what} `{name}` {problem}")]
    Name {
        /// Kind of the name.
        what: &'static str,
        name: String,
        problem: &'static str,
    },
    /// The start time of the document is invalid.
    #[error("`{text}` is not an RFC 3339 start time")]
    StartTime { text: String, source: jiff::Error },
    /// A histogram could not be encoded for the interval log.
    #[error("cannot encode the histogram `{tag}`")]
    Encode {
        /// Tag in the log.
        tag: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The document could not be converted to JSON.
    #[error("cannot encode `{path}`")]
    EncodeDocument { path: PathBuf, source: serde_json::Error },
    /// The folder already has a trace.
    #[error("`{directory}` already holds a trace")]
    HoldsTrace { directory: PathBuf },
    /// A table of a trace could not be written.
    #[error("cannot write the table `{path}`")]
    WriteTable { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// A table of a trace could not be read.
    #[error("cannot read the table `{path}`")]
    ReadTable { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Wraps an error about a file or folder, for `map_err`.
impl RecordError {
    pub(crate) fn create(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::Create { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::Write { path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> RecordError {
        move |source| RecordError::Read { path: path.to_owned(), source }
    }
}
