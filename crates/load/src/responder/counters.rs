//! Counters of a responder, readable while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Totals since the start of a responder, either as numbers or as live counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters<N = u64> {
    /// Connections accepted.
    pub connections: N,
    pub open_connections: N,
    pub commands: N,
    /// Data commands read (find, getMore, insert, update, delete), which fault rules count.
    pub data_commands: N,
    /// Complete and correct replies, including error codes, passed to the socket.
    pub replies: N,
    /// Commands that requested no reply (`moreToCome`) and got none.
    pub unacknowledged: N,
    /// Connections closed because they sent invalid data.
    pub malformed: N,
    /// Documents inserted.
    pub inserted: N,
    /// Current result of `count`.
    pub documents: N,
    /// Commands with a fault.
    pub faults: N,
}

/// A number with one writer, the event loop, so that counting needs no locked instruction.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }

    pub(super) fn subtract(&self, n: u64) {
        self.set(self.get().saturating_sub(n));
    }

    pub(super) fn set(&self, n: u64) {
        // Release: a reader that sees a count also sees earlier increments of other counters.
        self.0.store(n, Ordering::Release);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The live form of [`Counters`].
pub(super) type SharedCounters = Counters<Count>;

impl SharedCounters {
    pub(super) fn snapshot(&self) -> Counters {
        Counters {
            connections: self.connections.get(),
            open_connections: self.open_connections.get(),
            commands: self.commands.get(),
            data_commands: self.data_commands.get(),
            replies: self.replies.get(),
            unacknowledged: self.unacknowledged.get(),
            malformed: self.malformed.get(),
            inserted: self.inserted.get(),
            documents: self.documents.get(),
            faults: self.faults.get(),
        }
    }
}
