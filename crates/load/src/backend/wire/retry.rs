//! Failures that allow a second attempt, by the drivers' specifications of retryable writes and retryable reads.
//!
//! A label of the server decides about writes. Servers before 4.4 do not have labels; for these, and for reads, the
//! error code decides. For overloaded servers, the drivers' rules are followed for one attempt with a random delay, but
//! not for further attempts.

use crate::connect::Hello;
use crate::own::TransactionLabels;
use dyno_plan::uri::redact;
use dyno_record::error_example::ErrorExample;
use dyno_wire::command::Transaction;
use dyno_wire::reply::{Refusal, Reply};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Maximum delay before a command is sent again to a server that shed it: the first step of the drivers' backoff.
pub(super) const LONGEST_DELAY_NS: u64 = 100_000_000;

/// Oldest wire version whose servers label retryable writes: MongoDB 4.4.
const LABELLING_WIRE_VERSION: i32 = 9;

/// Codes of a server that is shutting down. It closes its connections itself.
pub(super) const SHUTDOWN: [i32; 2] = [91, 11_600];
/// Codes of a server that is no longer primary.
const NOT_PRIMARY: [i32; 5] = [189, 10_107, 11_602, 13_435, 13_436];
/// Code of a server that wants the client to authenticate again, because a token has expired.
const REAUTHENTICATE: i32 = 391;
/// Codes of failures between servers, which also allow a second attempt.
const NETWORK: [i32; 5] = [6, 7, 89, 262, 9001];
/// Code of a read that allows a second attempt: `ReadConcernMajorityNotAvailableYet`.
const NO_MAJORITY_YET: i32 = 134;

/// Where and when a command is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// At once, on the same connection.
    Here,
    /// On a new connection to the current primary.
    Elsewhere,
    /// On the same connection, after a random delay.
    Later,
}

/// Retries that the server of a connection supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerRetries {
    /// Whether the server applies a write with a session and a number only once.
    pub(super) takes_writes: bool,
    labels: bool,
    was_primary: bool,
}

impl ServerRetries {
    pub(super) fn of(hello: &Hello) -> Self {
        ServerRetries {
            takes_writes: hello.takes_retryable_writes(),
            was_primary: hello.is_writable_primary,
            labels: hello.max_wire_version >= LABELLING_WIRE_VERSION,
        }
    }
}

/// Whether and how the failure in `reply` allows sending the command again.
pub(super) fn again(reply: &Reply<'_>, is_read: bool, server: ServerRetries) -> Option<Again> {
    let code = match (reply.ok, reply.write_concern_error) {
        (false, _) => reply.code,
        (true, Some(error)) => error.code,
        // A single write that failed would fail again.
        (true, None) => 0,
    };
    if NOT_PRIMARY.contains(&code) || SHUTDOWN.contains(&code) {
        // A secondary that the connection string names directly stays a secondary.
        return server.was_primary.then_some(Again::Elsewhere);
    }
    if code == REAUTHENTICATE {
        return Some(Again::Elsewhere);
    }
    if reply.labels.overloaded {
        return reply.labels.retryable.then_some(Again::Later);
    }
    let by_code = NETWORK.contains(&code) || (is_read && code == NO_MAJORITY_YET);
    let is_retryable = match (is_read, server.labels) {
        (true, _) => by_code && !reply.ok,
        (false, true) => reply.labels.retryable_write,
        (false, false) => by_code,
    };
    is_retryable.then_some(Again::Here)
}

/// Codes of a write concern that no server can satisfy: the commit is known to be lost.
const UNSATISFIABLE: [i32; 2] = [79, 100];
/// Code of a command that took longer than its limit.
const MAX_TIME_EXPIRED: i32 = 50;

/// Labels of a failure in a transaction, also those that drivers add by themselves.
pub(super) fn transaction_labels(reply: &Reply<'_>) -> TransactionLabels {
    let concern = reply.write_concern_error.map(|error| error.code);
    let by_code = match (reply.ok, concern) {
        (true, Some(code)) => !UNSATISFIABLE.contains(&code),
        (true, None) => false,
        (false, _) => {
            reply.code == MAX_TIME_EXPIRED
                || NOT_PRIMARY.contains(&reply.code)
                || SHUTDOWN.contains(&reply.code)
        }
    };
    let labels = reply.labels;
    TransactionLabels {
        is_transient: labels.transient_transaction,
        is_unknown: labels.unknown_commit || labels.retryable_write || by_code,
    }
}

/// A new, unique session.
pub(super) fn new_session() -> Transaction {
    // Its keys are random and differ for each state.
    let random = || RandomState::new().hash_one(0).to_le_bytes();
    let mut session = [0; 16];
    session[..8].copy_from_slice(&random());
    session[8..].copy_from_slice(&random());
    // Version 4, variant 1.
    session[6] = session[6] & 0x0f | 0x40;
    session[8] = session[8] & 0x3f | 0x80;
    Transaction { session, number: 0 }
}

/// A refusal for the record, without credentials.
pub(super) fn example(refusal: Refusal<'_>) -> ErrorExample {
    ErrorExample::new(Some(refusal.code), refusal.code_name, &redact(refusal.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};

    fn decide(document: &Document, is_read: bool, wire_version: i32) -> Option<Again> {
        let bytes = document.to_vec().expect("it is a plain document");
        let reply = dyno_wire::reply::read_document(&bytes).expect("it is a reply");
        let hello =
            Hello { max_wire_version: wire_version, is_writable_primary: true, ..Hello::default() };
        again(&reply, is_read, ServerRetries::of(&hello))
    }

    const READ: bool = true;
    const WRITE: bool = false;

    #[test]
    fn labels_decide_about_writes_and_codes_before_4_4() {
        let unlabelled = doc! { "ok": 0, "code": 89 };
        assert_eq!(decide(&unlabelled, WRITE, 21), None);
        assert_eq!(decide(&unlabelled, WRITE, 8), Some(Again::Here));
        let labelled = doc! { "ok": 0, "code": 112, "errorLabels": ["RetryableWriteError"] };
        assert_eq!(decide(&labelled, WRITE, 21), Some(Again::Here));
        assert_eq!(decide(&labelled, READ, 21), None);
        let single = doc! { "ok": 1, "writeErrors": [{ "index": 0, "code": 89, "errmsg": "" }] };
        assert_eq!(decide(&single, WRITE, 8), None);
    }

    #[test]
    fn codes_decide_about_reads() {
        for code in [6, 7, 89, 134, 262, 9001] {
            let reply = doc! { "ok": 0, "code": code };
            assert_eq!(decide(&reply, READ, 21), Some(Again::Here), "{code}");
        }
        assert_eq!(decide(&doc! { "ok": 0, "code": 134 }, WRITE, 8), None);
        assert_eq!(decide(&doc! { "ok": 0, "code": 2 }, READ, 21), None);
    }

    #[test]
    fn expired_token_needs_a_new_connection() {
        let expired = doc! { "ok": 0, "code": REAUTHENTICATE };
        assert_eq!(decide(&expired, WRITE, 21), Some(Again::Elsewhere));
    }

    #[test]
    fn a_server_that_is_not_primary_is_left() {
        for code in NOT_PRIMARY.into_iter().chain(SHUTDOWN) {
            for (is_read, wire_version) in [(READ, 21), (WRITE, 8), (WRITE, 21)] {
                let reply = doc! { "ok": 0, "code": code };
                let found = decide(&reply, is_read, wire_version);
                assert_eq!(found, Some(Again::Elsewhere), "{code}");
            }
        }
        let stepping_down = doc! { "ok": 1, "writeConcernError": { "code": 189, "errmsg": "" } };
        assert_eq!(decide(&stepping_down, WRITE, 21), Some(Again::Elsewhere));
        let bytes = doc! { "ok": 0, "code": 13_435 }.to_vec().expect("plain");
        let reply = dyno_wire::reply::read_document(&bytes).expect("it is a reply");
        assert_eq!(again(&reply, READ, ServerRetries::default()), None);
    }

    #[test]
    fn an_overloaded_server_is_asked_again_later_if_it_says_so() {
        let shed = |labels: &[&str]| doc! { "ok": 0, "code": 462, "errorLabels": labels };
        let both = shed(&["SystemOverloadedError", "RetryableError"]);
        assert_eq!(decide(&both, READ, 21), Some(Again::Later));
        assert_eq!(decide(&both, WRITE, 21), Some(Again::Later));
        assert_eq!(decide(&shed(&["SystemOverloadedError"]), READ, 21), None);
    }

    #[test]
    fn sessions_are_random_uuids() {
        let (one, other) = (new_session(), new_session());
        assert_ne!(one.session, other.session);
        assert_ne!(one.session[..8], one.session[8..]);
        assert_eq!((one.session[6] >> 4, one.session[8] >> 6), (4, 2));
        assert_eq!(one.number, 0);
    }

    #[test]
    fn connection_strings_in_texts_of_servers_are_masked() {
        let refusal = Refusal {
            code: 8,
            code_name: "UnknownError",
            message: "cannot reach mongodb://ann:secret@h/",
        };
        let example = example(refusal);
        assert_eq!(example.message, "cannot reach mongodb://***@h/");
    }
}
