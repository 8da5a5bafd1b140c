//! The two ways to perform operations: our own protocol path and the official driver. Both are
//! driven by the same core and record in the same way.

pub mod driver;
pub(crate) mod poller;
pub(crate) mod reconnect;
pub(crate) mod wire;

use crate::clock::Clock;
use crate::connect::ConnectError;
use crate::operation::{OperationError, OperationKind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// When failed operations are sent again. Only the load phase does that.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryRule {
    /// Further attempts after the first.
    pub limit: u32,
    /// Mean delay before a further attempt, in nanoseconds; the delay varies by ± 20 %.
    pub interval_ns: u64,
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

/// How a worker ended.
#[derive(Debug, Default)]
pub(crate) struct WorkerEnd {
    pub(crate) fault: Option<WorkerFault>,
}
