//! Replies that wait until they are due.

use super::behaviour::Fault;
use super::protocol::Request;
use std::cmp::Ordering;

/// A reply that is not due yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) due_ns: u64,
    pub(super) sequence: u64,
    pub(super) index: usize,
    pub(super) connection_id: u64,
    pub(super) reply: Reply,
}

/// Progress of a waiting reply.
#[derive(Debug)]
pub(super) enum Reply {
    /// To be made when it is due.
    ToMake { request: Request, fault: Option<Fault> },
    /// A complete message.
    Made(Vec<u8>),
}

impl Ord for Pending {
    /// Reversed, because the heap returns the greatest: the earliest due time, then the earliest arrival.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due_ns, other.sequence).cmp(&(self.due_ns, self.sequence))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}
