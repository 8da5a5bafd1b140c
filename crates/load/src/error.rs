//! Errors that end a run.

use crate::connect::ConnectError;
use crate::operation::OperationError;
use dyno_record::error_example::ErrorExample;
use std::sync::Arc;

/// An error that ends a run, or prevents its start. Failures of single operations are data, not errors.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot connect to the server")]
    Connect(#[source] ConnectError),
    /// All connections were lost, and reconnecting failed for too long.
    #[error("lost all connections to the server and could not reconnect")]
    Unreachable(#[source] Option<Arc<ConnectError>>),
    /// An error of one of several pairs of server and client.
    #[error("instance {pair} ended the run")]
    Pair {
        /// Number of the pair, from 0.
        pair: usize,
        #[source]
        source: Box<LoadError>,
    },
    /// An operation failed in a phase that does not allow failures.
    #[error("{}", operation_text(name, *error, example.as_ref()))]
    Operation {
        /// Name of the operation.
        name: String,
        error: OperationError,
        /// Message of the server or driver.
        example: Option<ErrorExample>,
    },
    #[error("cannot wait for sockets")]
    Poll(#[source] std::io::Error),
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    /// The usable cores could not be read.
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
    Workload { reason: String },
    /// A set-up command was refused or not answered.
    #[error("cannot {intent}")]
    Setup {
        /// Intended action, for the message.
        intent: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The driver could not be set up.
    #[error("cannot set up the driver: {0}")]
    Driver(String),
    /// The driver lacks a feature of the wire backend.
    #[error("cannot use the driver: {reason}")]
    DriverLimit {
        reason: String,
        /// Alternative.
        hint: String,
    },
    /// The driver rejects the connection string.
    #[error("the driver rejects the connection string: {0}")]
    DriverOption(String),
}

fn operation_text(name: &str, error: OperationError, example: Option<&ErrorExample>) -> String {
    match example {
        Some(example) if example.code.is_some() => {
            format!("the server refused `{name}`: {example}")
        }
        Some(example) => format!("operation `{name}` failed: {example}"),
        None => format!("operation `{name}` failed with `{error}`"),
    }
}
