//! Kinds of operations and their outcomes.

use std::fmt;

/// One logical action with its own statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OperationKind {
    /// Find one document by key.
    Read,
    /// Set fields of one document.
    Update,
    /// Insert one document.
    Insert,
    /// Find a range of documents in key order.
    Scan,
    /// Read a document, then update it.
    ReadModifyWrite,
    /// Delete one document by key.
    Delete,
    /// Insert several documents by one command; only in the load phase.
    InsertBatch,
}

/// Number of operation kinds.
pub const OPERATION_KINDS: usize = 7;

impl OperationKind {
    /// All kinds, in the order of their index.
    pub const ALL: [OperationKind; OPERATION_KINDS] = [
        OperationKind::Read,
        OperationKind::Update,
        OperationKind::Insert,
        OperationKind::Scan,
        OperationKind::ReadModifyWrite,
        OperationKind::Delete,
        OperationKind::InsertBatch,
    ];

    /// Name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            OperationKind::Read => "read",
            OperationKind::Update => "update",
            OperationKind::Insert => "insert",
            OperationKind::Scan => "scan",
            OperationKind::ReadModifyWrite => "read_modify_write",
            OperationKind::Delete => "delete",
            OperationKind::InsertBatch => "insert_batch",
        }
    }

    /// Whether its first command reads.
    pub(crate) const fn begins_with_read(self) -> bool {
        matches!(self, OperationKind::Read | OperationKind::Scan | OperationKind::ReadModifyWrite)
    }

    /// Index into tables by kind.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Kinds that need statistics when `weighted` kinds are performed.
pub(crate) fn recorded_kinds(weighted: &[OperationKind]) -> Vec<OperationKind> {
    let mut kinds = weighted.to_vec();
    if kinds.contains(&OperationKind::ReadModifyWrite) {
        kinds.extend([OperationKind::Read, OperationKind::Update]);
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
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

    #[test]
    fn index_of_every_kind_is_its_place_in_the_list() {
        for (place, kind) in OperationKind::ALL.iter().enumerate() {
            assert_eq!(kind.index(), place);
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
