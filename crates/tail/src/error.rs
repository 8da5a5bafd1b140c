//! What can go wrong with an experiment.

use std::io;
use std::path::PathBuf;

/// An experiment could not be made, or its sum is not right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// A file or folder cannot be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A driver that was asked for is not there or cannot run.
    #[error("driver `{driver}` cannot run: {reason}")]
    Driver {
        /// Folder name of the driver.
        driver: String,
        /// Why.
        reason: String,
    },
    /// A driver does not keep the contract of `drivers/README.md`.
    #[error("driver `{driver}` does not keep the contract: {reason}")]
    Contract {
        /// Folder name of the driver.
        driver: String,
        /// What is wrong.
        reason: String,
    },
    /// A process cannot be started or spoken to.
    #[error("cannot run {process}")]
    Process {
        /// Which one.
        process: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A process did not do something in time.
    #[error("{process} {what} within {limit_s} s")]
    Deadline {
        /// Which one.
        process: String,
        /// What it did not do: `is not ready`.
        what: &'static str,
        /// Time that it had.
        limit_s: u64,
    },
    /// A process ended with another exit code than 0, or too early.
    #[error("{process} ended with {ended}: {message}")]
    Ended {
        /// Which one.
        process: String,
        /// Exit code or signal.
        ended: String,
        /// Last lines of its standard error.
        message: String,
    },
    /// Another host cannot be used, or was lost.
    #[error("host `{host}`: {reason}")]
    Host {
        /// As `ssh` takes it.
        host: String,
        /// What it or `ssh` said.
        reason: String,
    },
    /// Somebody interrupted it before it began.
    #[error("interrupted")]
    Interrupted,
    /// What each message did cannot be written.
    #[error("cannot keep what was measured")]
    Record(#[from] dyno_record::RecordError),
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// A file of stamps cannot be understood.
    #[error("stamps in `{path}` are wrong: {reason}")]
    Stamps {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The messages that were sent and received do not add up.
    #[error("the sum of messages is wrong: {0}")]
    Sum(String),
    /// The connection string is wrong.
    #[error("the connection string cannot be used")]
    Uri(#[from] dyno_plan::uri::UriError),
    /// The server cannot be reached.
    #[error("the server cannot be reached")]
    Connect(#[from] dyno_load::connect::ConnectError),
    /// The server refuses a command.
    #[error("the server refuses to prepare the collection")]
    Control(#[from] dyno_load::connect::ControlError),
}

impl TailError {
    /// An error of a file.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> TailError {
        let path = path.into();
        move |source| TailError::File { path, source }
    }
}
