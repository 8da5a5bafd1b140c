//! Errors of an experiment.

use dyno_engine::Error;
use std::io;
use std::path::PathBuf;

/// An experiment failed, or its sum is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// A file or folder cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A requested driver is missing or cannot run.
    #[error("driver `{driver}` cannot run: {reason}")]
    Driver {
        /// Folder name of the driver.
        driver: String,
        reason: String,
    },
    /// A driver violates the contract of `drivers/README.md`.
    #[error("driver `{driver}` violates the contract: {reason}")]
    Contract {
        /// Folder name of the driver.
        driver: String,
        reason: String,
    },
    /// A process cannot be started or written to.
    #[error("cannot run {process}")]
    Process {
        process: String,
        #[source]
        source: io::Error,
    },
    /// A process did not do something in time.
    #[error("{process} {what} within {limit_s} s")]
    Deadline {
        process: String,
        /// The failed action: `was not ready`.
        what: &'static str,
        limit_s: u64,
    },
    /// A process ended too early, or with an exit code other than 0.
    #[error("{process} ended with {ended}: {message}")]
    Ended {
        process: String,
        /// Exit code or signal.
        ended: String,
        /// Last lines of its standard error.
        message: String,
    },
    /// Another host cannot be used, or was lost.
    #[error("host `{host}`: {reason}")]
    Host {
        /// As passed to `ssh`.
        host: String,
        /// Error of the host or of `ssh`.
        reason: String,
    },
    /// Interrupted before the start.
    #[error("interrupted")]
    Interrupted,
    /// The tables of messages cannot be written.
    #[error("cannot write the results")]
    Record(#[from] dyno_record::RecordError),
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// A stamp file is not valid.
    #[error("invalid stamps in `{path}`: {reason}")]
    Stamps { path: PathBuf, reason: String },
    /// Sent and received messages do not add up.
    #[error("messages do not add up: {0}")]
    Sum(String),
    /// The connection string is not valid.
    #[error("invalid connection string")]
    Uri(#[from] dyno_plan::uri::UriError),
    /// The server cannot be reached.
    #[error("cannot reach the server")]
    Connect(#[from] dyno_load::connect::ConnectError),
    /// The server refuses a command.
    #[error("cannot prepare the collection")]
    Control(#[from] dyno_load::connect::ControlError),
}

impl TailError {
    /// Wraps an error of a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> TailError {
        let path = path.into();
        move |source| TailError::File { path, source }
    }
}

/// The reason of an error in one line, with its hint.
pub(crate) fn with_hint(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{}; {hint}", error.reason()),
        None => error.reason(),
    }
}
