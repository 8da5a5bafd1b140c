//! What a responder did, readable while it runs.

use super::behaviour::Fault;
use std::sync::atomic::{AtomicU64, Ordering};

/// Totals since the start of a responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections accepted.
    pub connections: u64,
    /// Connections open now.
    pub open_connections: u64,
    /// Commands read, of every kind.
    pub commands: u64,
    /// Data commands read (find, getMore, insert, update, delete): what fault rules count.
    pub data_commands: u64,
    /// Whole and truthful replies, those with error codes included, handed to the socket.
    pub replies: u64,
    /// Commands that asked for no reply (`moreToCome`) and got none.
    pub unacknowledged: u64,
    /// Connections closed because they sent something that is no command.
    pub malformed: u64,
    /// Documents inserted.
    pub inserted: u64,
    /// What `count` would report.
    pub documents: u64,
    /// Faults by kind.
    pub faults: FaultCounts,
}

/// Commands that met a fault, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// See [`Fault::ErrorCode`].
    pub error_code: u64,
    /// See [`Fault::WriteError`].
    pub write_error: u64,
    /// See [`Fault::Drop`].
    pub drop: u64,
    /// See [`Fault::Hang`].
    pub hang: u64,
    /// See [`Fault::Garbage`].
    pub garbage: u64,
    /// See [`Fault::Truncate`].
    pub truncate: u64,
    /// See [`Fault::WrongResponseTo`].
    pub wrong_response_to: u64,
    /// See [`Fault::NotFound`].
    pub not_found: u64,
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
        // Release: who sees a count also sees those that were raised before it.
        self.0.store(n, Ordering::Release);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// The live form of [`Counters`].
#[derive(Debug, Default)]
pub(super) struct SharedCounters {
    pub(super) connections: Count,
    pub(super) open_connections: Count,
    pub(super) commands: Count,
    pub(super) data_commands: Count,
    pub(super) replies: Count,
    pub(super) unacknowledged: Count,
    pub(super) malformed: Count,
    pub(super) inserted: Count,
    pub(super) documents: Count,
    error_code: Count,
    write_error: Count,
    drop: Count,
    hang: Count,
    garbage: Count,
    truncate: Count,
    wrong_response_to: Count,
    not_found: Count,
}

impl SharedCounters {
    pub(super) fn count_fault(&self, fault: Fault) {
        let count = match fault {
            Fault::ErrorCode(_) => &self.error_code,
            Fault::WriteError(_) => &self.write_error,
            Fault::Drop => &self.drop,
            Fault::Hang => &self.hang,
            Fault::Garbage => &self.garbage,
            Fault::Truncate => &self.truncate,
            Fault::WrongResponseTo => &self.wrong_response_to,
            Fault::NotFound => &self.not_found,
        };
        count.add(1);
    }

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
            faults: FaultCounts {
                error_code: self.error_code.get(),
                write_error: self.write_error.get(),
                drop: self.drop.get(),
                hang: self.hang.get(),
                garbage: self.garbage.get(),
                truncate: self.truncate.get(),
                wrong_response_to: self.wrong_response_to.get(),
                not_found: self.not_found.get(),
            },
        }
    }
}
