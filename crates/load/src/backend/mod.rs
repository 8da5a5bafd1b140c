//! The two ways to perform operations: our own protocol path and the official driver. Both are
//! driven by the same core and record in the same way.

pub mod driver;
pub(crate) mod poller;
pub(crate) mod reconnect;
pub(crate) mod wire;

use crate::clock::Clock;
use crate::connect::{ConnectError, Connector};
use crate::error::LoadError;
use crate::job::RetryRule;
use crate::operation::{OperationError, OperationKind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What performs the operations, and on which deployment.
pub enum Backend {
    /// Our own protocol path.
    Wire(Connector),
    /// The official driver.
    Driver(Box<driver::DriverTarget>),
}

/// What every worker needs to know.
#[derive(Clone)]
pub(crate) struct WorkerSetup {
    pub(crate) clock: Clock,
    /// Set from outside, or by a worker that met a fault, to end the run.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) timeout_ns: u64,
    /// A worker without any connection for this long gives up.
    pub(crate) unreachable_limit_ns: u64,
    pub(crate) retry: RetryRule,
    pub(crate) abort_on_failure: bool,
}

/// Why a worker ended the run.
#[derive(Debug)]
pub(crate) enum WorkerFault {
    /// Waiting for sockets failed.
    Poll(std::io::Error),
    /// The driver could not be set up.
    Driver(String),
    /// No connection could be made for too long.
    Unreachable(Option<Arc<ConnectError>>),
    /// An operation failed in a phase in which none may.
    Operation {
        kind: OperationKind,
        error: OperationError,
    },
}

impl From<WorkerFault> for LoadError {
    fn from(fault: WorkerFault) -> Self {
        match fault {
            WorkerFault::Poll(source) => LoadError::Poll(source),
            WorkerFault::Driver(source) => LoadError::Driver(source),
            WorkerFault::Unreachable(source) => LoadError::Unreachable(source),
            WorkerFault::Operation { kind, error } => LoadError::Operation { kind, error },
        }
    }
}

/// How a worker ended.
#[derive(Debug, Default)]
pub(crate) struct WorkerEnd {
    pub(crate) fault: Option<WorkerFault>,
}
