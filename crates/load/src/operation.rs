//! Actions of operations and their outcomes.

use dyno_plan::operation::{self, OperationId, Operations};
use std::fmt;

/// Command that performs an operation, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Find one document by key.
    Read,
    /// Set fields of one document.
    Update,
    /// Insert one document.
    Insert,
    /// Find a range of documents in key order.
    Scan,
    /// Delete one document by key.
    Delete,
    /// Insert several documents by one command; only in the load phase.
    InsertBatch,
    /// Perform a command of an own operation, by the operation's index in the workload.
    Command { index: u16, step: u16, access: Access },
}

/// Effect of a command on documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Reads,
    /// Writes that a server cannot recognize if they are sent twice.
    Writes,
    /// Writes that a server applies once if they have a session and a number.
    WritesOnce,
}

impl Action {
    /// The first command of an operation of YCSB.
    fn named(operation: &str) -> Option<Self> {
        Some(match operation {
            operation::READ | operation::READ_MODIFY_WRITE => Action::Read,
            operation::UPDATE => Action::Update,
            operation::INSERT => Action::Insert,
            operation::SCAN => Action::Scan,
            operation::DELETE => Action::Delete,
            operation::INSERT_BATCH => Action::InsertBatch,
            _ => return None,
        })
    }

    /// Whether it does not write.
    pub(crate) const fn reads(self) -> bool {
        matches!(self, Action::Read | Action::Scan | Action::Command { access: Access::Reads, .. })
    }

    /// Whether a server can recognize a second attempt at it by its session and number.
    pub(crate) const fn writes_once(self) -> bool {
        !self.reads() && !matches!(self, Action::Command { access: Access::Writes, .. })
    }

    /// Documents after which a cursor is not read further; 0 for actions without a cursor.
    pub(crate) const fn cursor_limit(self, count: u32) -> u32 {
        match self {
            Action::Scan => count,
            Action::Command { .. } => u32::MAX,
            _ => 0,
        }
    }
}

/// An operation of the plan: how it begins, and where it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// The whole operation.
    pub(crate) id: OperationId,
    /// Its first command.
    pub(crate) action: Action,
    /// As which its read and the update that follows also count; absent for a single command.
    pub(crate) parts: Option<[OperationId; 2]>,
    /// Number of its steps with statistics of their own, which are behind it.
    pub(crate) steps: u16,
}

impl Planned {
    /// `None` if no such operation is planned.
    pub(crate) fn new(operations: &Operations, name: &str) -> Option<Self> {
        let id = operations.id(name)?;
        let parts = match operations[id].parts.as_slice() {
            [] => None,
            [read, update] => Some([operations.id(read)?, operations.id(update)?]),
            _ => return None,
        };
        Some(Planned { id, action: Action::named(name)?, parts, steps: 0 })
    }

    /// The inserts of a load phase, under the name with which they count.
    pub(crate) fn of_load(operations: &Operations, name: &str) -> Option<Self> {
        let id = operations.id(name)?;
        Some(Planned { id, action: Action::InsertBatch, parts: None, steps: 0 })
    }

    /// An own operation.
    pub(crate) fn of_own(operations: &Operations, name: &str, action: Action) -> Option<Self> {
        let steps = operations.iter().filter(|one| one.step_of.as_deref() == Some(name)).count();
        let id = operations.id(name)?;
        Some(Planned { id, action, parts: None, steps: u16::try_from(steps).ok()? })
    }

    /// Index under which a step counts, if it has statistics of its own.
    #[inline]
    pub(crate) fn step(&self, step: usize) -> Option<OperationId> {
        let step = u16::try_from(step).ok().filter(|step| *step < self.steps)?;
        Some(self.id.plus(1 + step))
    }

    /// All indexes under which it counts.
    pub(crate) fn counted(&self) -> impl Iterator<Item = OperationId> {
        let steps = (1..=self.steps).map(|step| self.id.plus(step));
        self.parts.into_iter().flatten().chain([self.id]).chain(steps)
    }
}

/// Why an operation failed. Failures are data: they are counted, and the run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperationError {
    /// No answer within the time limit; the connection was replaced.
    Timeout,
    /// The connection was closed or reset before the answer.
    Disconnected,
    /// The answer was invalid or belonged to another command; the connection was replaced.
    Protocol,
    /// No document had the key.
    NotFound,
    /// The server refused the command or the write, with this code.
    Server(i32),
    /// The server is overloaded and refused to start, with this code.
    Shed(i32),
    /// The write was applied, but not with the requested durability; with this code.
    WriteConcern(i32),
    /// A value read differs from what was written.
    Integrity,
    /// An own operation returned or changed fewer or more documents than its `expect` states.
    Expect,
    /// The driver reported an error that has no server code.
    Driver,
    /// The run was stopped before the answer.
    Cancelled,
}

impl OperationError {
    /// Whether the command may have taken effect without an answer that confirms it.
    pub(crate) const fn is_unsure(self) -> bool {
        matches!(
            self,
            OperationError::Timeout
                | OperationError::Disconnected
                | OperationError::Protocol
                | OperationError::Driver
        )
    }

    /// Whether a read-modify-write ends with this failure of its read.
    pub(crate) const fn ends_pair(self) -> bool {
        matches!(
            self,
            OperationError::Timeout
                | OperationError::Disconnected
                | OperationError::Protocol
                | OperationError::Cancelled
        )
    }
}

/// Server code for exceeding its rate limit.
pub(crate) const RATE_LIMIT_EXCEEDED: i32 = 462;

impl OperationError {
    /// A command that the server refused.
    pub(crate) const fn refused(code: i32, is_overloaded: bool) -> Self {
        if is_overloaded || code == RATE_LIMIT_EXCEEDED {
            OperationError::Shed(code)
        } else {
            OperationError::Server(code)
        }
    }
}

impl fmt::Display for OperationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationError::Timeout => formatter.write_str("timeout"),
            OperationError::Disconnected => formatter.write_str("disconnected"),
            OperationError::Protocol => formatter.write_str("protocol"),
            OperationError::NotFound => formatter.write_str("not_found"),
            OperationError::Server(code) => write!(formatter, "server_{code}"),
            OperationError::Shed(code) => write!(formatter, "shed_{code}"),
            OperationError::WriteConcern(code) => write!(formatter, "write_concern_{code}"),
            OperationError::Integrity => formatter.write_str("integrity"),
            OperationError::Expect => formatter.write_str("expect"),
            OperationError::Driver => formatter.write_str("driver"),
            OperationError::Cancelled => formatter.write_str("cancelled"),
        }
    }
}

/// How an operation ended: documents returned or written, or the failure.
pub type Outcome = Result<u32, OperationError>;

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::model::OperationWeights;

    #[test]
    fn every_operation_of_a_plan_has_an_action() {
        let (read_modify_write, insert, scan, delete) = (1.0, 1.0, 1.0, 1.0);
        let weights =
            OperationWeights { read_modify_write, insert, scan, delete, ..Default::default() };
        let operations = Operations::of_weights(&weights, 100);
        assert_eq!(operations.len(), 7);
        for operation in operations.iter() {
            let planned = Planned::new(&operations, &operation.name).expect(&operation.name);
            assert_eq!(planned.parts.is_some(), operation.name == operation::READ_MODIFY_WRITE);
        }
    }

    #[test]
    fn kinds_of_failure_have_names_fit_for_files() {
        assert_eq!(OperationError::Server(11000).to_string(), "server_11000");
        assert_eq!(OperationError::WriteConcern(64).to_string(), "write_concern_64");
        assert_eq!(OperationError::NotFound.to_string(), "not_found");
        assert_eq!(OperationError::refused(462, false).to_string(), "shed_462");
        assert_eq!(OperationError::refused(91, true).to_string(), "shed_91");
        assert_eq!(OperationError::refused(91, false).to_string(), "server_91");
    }
}
