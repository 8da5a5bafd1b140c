//! What a responder is told to do, and the check that it can be done.

use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// How a responder behaves. `default()` answers everything at once and without fault.
///
/// Only data commands (find, getMore, insert, update, delete) take service time and meet faults;
/// handshakes and other set-up commands are answered at once, except during a stall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behaviour {
    /// Bytes of all values of the canned document, spread over ten fields `field0` to `field9`. Its `_id` is the one that
    /// was asked for.
    pub document_bytes: u32,
    /// Documents that `count` reports before the first insert or delete.
    pub documents: u64,
    /// How long a command takes.
    pub service: Service,
    /// Times in which nothing is answered.
    pub stall: Option<Stall>,
    /// Commands that are answered wrongly. A command meets the first rule that applies to it.
    pub faults: Vec<FaultRule>,
    /// Start of the random sequence of service times and document bytes.
    pub seed: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            document_bytes: 1000,
            documents: 0,
            service: Service::Null,
            stall: None,
            faults: Vec::new(),
            seed: 1,
        }
    }
}

/// How long a command takes, from its arrival to its reply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Service {
    /// No time: answered as soon as it is read.
    Null,
    /// One server with one queue over all connections, first come, first served: the service of a
    /// command begins when it has arrived and its predecessor is done. Under Poisson arrivals this
    /// is M/D/1 or M/M/1. Arrival means that the event loop saw the command.
    SingleQueue {
        /// Time of one service.
        time: ServiceTime,
    },
    /// As many servers as commands: each reply is delayed by its own service time (M/D/inf, M/M/inf).
    /// Replies to pipelined commands of one connection can overtake each other.
    Parallel {
        /// Time of one service.
        time: ServiceTime,
    },
}

/// Distribution of the service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceTime {
    /// Always the same.
    Fixed(Duration),
    /// Exponentially distributed.
    Exponential {
        /// Mean.
        mean: Duration,
    },
}

/// Times in which nothing is answered: `[first + k * every, first + k * every + length)` after the
/// start of the responder, for `k` = 0, 1, …
///
/// Commands are still read and served meanwhile; replies that come due leave together at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Distance from the beginning of one stall to the next.
    pub every: Duration,
    /// Length of a stall, below `every`.
    pub length: Duration,
    /// Beginning of the first stall, from the start of the responder.
    pub first: Duration,
}

impl Stall {
    /// Stalls of `length` that begin at `every`, 2 × `every`, … after the start.
    #[must_use]
    pub fn new(every: Duration, length: Duration) -> Self {
        Stall {
            every,
            length,
            first: every,
        }
    }
}

/// A fault that meets every Nth data command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRule {
    /// N, counted over all connections from 1 in the order of arrival. At least 1.
    pub every: u64,
    /// What happens to it.
    pub kind: Fault,
}

/// What a command gets instead of its reply. The command has no effect on the document count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// `ok: 0` with this server error code.
    ErrorCode(i32),
    /// `ok: 1`, nothing written, and one write error with this code. A command that is no write gets
    /// the code as in [`ErrorCode`](Self::ErrorCode).
    WriteError(i32),
    /// The connection is closed without a reply.
    Drop,
    /// No reply, ever; the connection goes on to answer later commands.
    Hang,
    /// 64 bytes whose length field is negative; the connection stays open.
    Garbage,
    /// The first half of the reply, then the connection is closed.
    Truncate,
    /// The right reply, marked as the answer to another request (all bits of the number inverted).
    WrongResponseTo,
    /// No document: an empty batch for reads, `n: 0` for writes.
    NotFound,
}

impl Behaviour {
    /// Refuses what cannot be done: rules that never or always apply by mistake.
    pub(super) fn check(&self) -> io::Result<()> {
        let refuse = |message: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if self.faults.iter().any(|rule| rule.every == 0) {
            return refuse("a fault rule needs `every` of at least 1");
        }
        if self.document_bytes > 16_000_000 {
            return refuse("`document_bytes` is above 16000000, the limit of a document");
        }
        match self.stall {
            Some(stall) if stall.length >= stall.every => {
                refuse("the `length` of a stall must be below its `every`")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_possible() {
        Behaviour::default().check().unwrap();
    }

    #[test]
    fn impossible_behaviour_is_refused() {
        let second = Duration::from_secs(1);
        let impossible = [
            Behaviour {
                faults: vec![FaultRule {
                    every: 0,
                    kind: Fault::Drop,
                }],
                ..Behaviour::default()
            },
            Behaviour {
                stall: Some(Stall::new(second, second)),
                ..Behaviour::default()
            },
            Behaviour {
                stall: Some(Stall::new(Duration::ZERO, Duration::ZERO)),
                ..Behaviour::default()
            },
            Behaviour {
                document_bytes: 16_000_001,
                ..Behaviour::default()
            },
        ];
        for behaviour in impossible {
            assert_eq!(
                behaviour.check().unwrap_err().kind(),
                io::ErrorKind::InvalidInput
            );
        }
    }
}
