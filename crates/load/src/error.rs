//! What can end a run.

use crate::connect::ConnectError;
use crate::operation::{OperationError, OperationKind};
use dyno_record::error_example::ErrorExample;
use std::sync::Arc;

/// A fault that ends a run, or keeps it from starting. Failures of single operations are not errors but data.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The first connections could not be made.
    #[error("cannot connect to the server")]
    Connect(#[source] ConnectError),
    /// All connections were lost and none could be made again for too long.
    #[error("lost all connections to the server and could not reconnect")]
    Unreachable(#[source] Option<Arc<ConnectError>>),
    /// Something ended the run of one of several pairs of server and client.
    #[error("instance {pair} ended the run")]
    Pair {
        /// Which, from 0.
        pair: usize,
        /// What it was.
        #[source]
        source: Box<LoadError>,
    },
    /// An operation failed in a phase in which none may.
    #[error("{}", operation_text(*kind, *error, example.as_ref()))]
    Operation {
        /// Operation.
        kind: OperationKind,
        /// Failure.
        error: OperationError,
        /// Text of the server or the driver.
        example: Option<ErrorExample>,
    },
    /// Waiting for sockets failed.
    #[error("cannot wait for sockets")]
    Poll(#[source] std::io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    /// The cores that may be used could not be read.
    #[error("cannot read which cores this process may use")]
    Pin(#[source] std::io::Error),
    /// A bug in a worker.
    #[error("a worker thread panicked")]
    WorkerPanicked,
    /// The receiver of the recording windows failed.
    #[error("cannot record the run")]
    Sink(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The workload cannot be performed as described.
    #[error("cannot run the workload: {reason}")]
    Workload {
        /// What is wrong.
        reason: String,
    },
    /// A command of the set-up was refused or not answered.
    #[error("cannot {intent}")]
    Setup {
        /// What was tried.
        intent: String,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The driver could not be set up, for the reason that it gives.
    #[error("cannot set up the driver: {0}")]
    Driver(String),
    /// The driver cannot do what the wire backend can.
    #[error("cannot use the driver: {reason}")]
    DriverLimit {
        /// The limit.
        reason: String,
        /// What to do instead.
        hint: String,
    },
    /// The driver does not take the connection string, for the reason that it gives.
    #[error("the driver rejects the connection string: {0}")]
    DriverOption(String),
}

fn operation_text(
    kind: OperationKind,
    error: OperationError,
    example: Option<&ErrorExample>,
) -> String {
    let name = kind.name();
    match example {
        Some(example) if example.code.is_some() => {
            format!("the server refused `{name}`: {example}")
        }
        Some(example) => format!("operation `{name}` failed: {example}"),
        None => format!("operation `{name}` failed with `{error}`"),
    }
}
