//! Steps and transactions of own operations, with a scripted server: which commands are sent, and what is counted.

use bson::{Document, doc};
use dyno_load::backend::Backend;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::workload::{Concerns, Workload};
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_testkit::scripted;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const DATA: &str =
    "[[data.collections]]\nname = 'stock'\nrecords = 100\ndocument = '{_id: \"%number\"}'\n";

const CHECKOUT: &str = r#"
[[operations]]
name = "checkout"
weight = 1
transaction = true
let = { sku = '{%from: "stock._id"}' }
expect = 2
steps = [
  '{update: "stock", updates: [{q: {_id: "%sku"}, u: {$inc: {left: -1}}}]}',
  '{insert: "orders", documents: [{sku: "%sku"}]}',
]
"#;

/// Performs operations of one client against a server that answers the n-th command, from 1, by `answer`. Returns the
/// commands as well.
fn perform(
    operations_of_plan: &str,
    operations: u64,
    answer: impl Fn(usize) -> Document + Send + Sync + 'static,
) -> (PhaseRecord, Vec<Document>) {
    let commands = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&commands);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    scripted::serve_on(listener, move |command: &Document| {
        let host = format!("127.0.0.1:{port}");
        match command.keys().next().map_or("", String::as_str) {
            "hello" | "isMaster" => doc! {
                "isWritablePrimary": true, "helloOk": true, "maxWireVersion": 17, "minWireVersion": 0,
                "logicalSessionTimeoutMinutes": 30, "setName": "rs", "hosts": [&host],
                "primary": &host, "me": &host, "ok": 1.0,
            },
            "update" | "insert" | "commitTransaction" | "abortTransaction" => {
                let mut all = kept.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(command.clone());
                answer(all.len())
            }
            _ => doc! { "ok": 1.0 },
        }
    });
    let plan = dyno_plan::file::parse(&format!("{DATA}{operations_of_plan}"), "t").unwrap();
    let text = format!("mongodb://127.0.0.1:{port}/");
    let (target, credentials) = dyno_plan::uri::parse(&text).unwrap();
    let workload = Arc::new(Workload::mix(&plan, &Concerns::default()).unwrap());
    let backend = Backend::Wire(Connector::new(&target, credentials).unwrap());
    let pair = Pair { clients: 1, threads: 1, ..Pair::from_plan(&plan, workload, backend) };
    let job = Job {
        phases: vec![PhaseSpec {
            kind: PhaseKind::Measure,
            duration: None,
            operations: Some(operations),
        }],
        timeout: Duration::from_secs(2),
        ..Job::from_plan(&plan, vec![pair])
    };
    let mut phase = PhaseAccumulator::new(PhaseKind::Measure, None);
    dyno_load::run(job, &mut |window| Ok(phase.add(&window.merged)?)).unwrap();
    let commands = commands.lock().unwrap().clone();
    (phase.to_record(), commands)
}

fn names(commands: &[Document]) -> Vec<&str> {
    commands.iter().map(|command| command.keys().next().unwrap().as_str()).collect()
}

fn written() -> Document {
    doc! { "n": 1, "ok": 1.0 }
}

fn refused(code: i32, labels: &[&str]) -> Document {
    doc! { "ok": 0.0, "code": code, "codeName": "Name", "errmsg": "no", "errorLabels": labels }
}

/// Successful and failed operations, restarts, commits that were sent again, and deliberate aborts.
fn counts(phase: &PhaseRecord) -> [u64; 5] {
    let own = phase.own;
    let counted = [own.transaction_restarts, own.commit_retries, own.transaction_aborts];
    [phase.succeeded, phase.failed, counted[0], counted[1], counted[2]]
}

#[test]
fn steps_count_as_one_operation_and_on_their_own() {
    let steps = CHECKOUT.replace("transaction = true\n", "");
    let (phase, commands) = perform(&steps, 3, |number| match number {
        2 => refused(2, &[]),
        _ => written(),
    });
    assert_eq!(names(&commands), ["update", "insert", "update", "insert", "update", "insert"]);
    assert_eq!(counts(&phase), [2, 1, 0, 0, 0]);
    let count = |name: &str| (phase.operations[name].count, phase.operations[name].errors);
    assert_eq!(count("checkout"), (2, 1));
    assert_eq!(count("checkout:1"), (3, 0));
    assert_eq!(count("checkout:2"), (2, 1));
    assert_eq!(phase.operations["checkout"].documents, 4);
    assert_eq!(phase.errors.values().sum::<u64>(), 1, "a failed step is one failure");
    let all = phase.operations["checkout"].response_time_us.mean;
    let first = phase.operations["checkout:1"].response_time_us.mean;
    assert!(all > first, "{all} {first}");
}

#[test]
fn transaction_has_one_number_and_begins_once() {
    let (phase, commands) = perform(CHECKOUT, 2, |_| written());
    assert_eq!(counts(&phase), [2, 0, 0, 0, 0]);
    let one = ["update", "insert", "commitTransaction"];
    assert_eq!(names(&commands), [one, one].concat());
    let number = |command: &Document| command.get_i64("txnNumber").unwrap();
    assert_eq!(commands.iter().map(number).collect::<Vec<_>>(), [1, 1, 1, 2, 2, 2]);
    let starts = |command: &Document| command.get_bool("startTransaction").unwrap_or(false);
    let started: Vec<bool> = commands.iter().map(starts).collect();
    assert_eq!(started, [true, false, false, true, false, false]);
    assert!(commands.iter().all(|command| command.get_bool("autocommit").ok() == Some(false)));
    assert!(commands.iter().all(|command| command.get("lsid") == commands[0].get("lsid")));
    assert_eq!(commands[2].get_str("$db").ok(), Some("admin"));
}

#[test]
fn transient_error_repeats_the_whole_transaction() {
    let (phase, commands) = perform(CHECKOUT, 2, |number| match number {
        2 => refused(112, &["TransientTransactionError"]),
        // The end of a transaction that the server has aborted already.
        3 => refused(251, &["TransientTransactionError"]),
        _ => written(),
    });
    assert_eq!(counts(&phase), [2, 0, 1, 0, 0]);
    let first = ["update", "insert", "abortTransaction", "update", "insert", "commitTransaction"];
    assert_eq!(names(&commands)[..6], first);
    assert_eq!(commands[0].get("updates"), commands[3].get("updates"), "values are the same");
    assert_eq!(commands[3].get_i64("txnNumber").ok(), Some(2));
    assert_eq!(commands[3].get_bool("startTransaction").ok(), Some(true));
    assert!(phase.errors.is_empty(), "{:?}", phase.errors);
}

#[test]
fn unknown_commit_is_sent_again() {
    let (phase, commands) = perform(CHECKOUT, 1, |number| match number {
        3 | 4 => refused(6, &["UnknownTransactionCommitResult"]),
        _ => written(),
    });
    assert_eq!(counts(&phase), [1, 0, 0, 2, 0]);
    assert_eq!(names(&commands)[2..], ["commitTransaction"; 3]);
    let concern = |command: &Document| command.get_document("writeConcern").ok().cloned();
    assert_eq!(concern(&commands[2]), None);
    assert_eq!(concern(&commands[3]).unwrap().get_str("w").ok(), Some("majority"));
}

#[test]
fn commit_that_lost_the_transaction_repeats_it() {
    let (phase, commands) = perform(CHECKOUT, 1, |number| match number {
        3 => refused(251, &["TransientTransactionError"]),
        _ => written(),
    });
    assert_eq!(counts(&phase), [1, 0, 1, 0, 0]);
    assert_eq!(commands.len(), 6);
}

#[test]
fn lost_connection_repeats_a_transaction_and_a_commit() {
    for (closed, expected) in [(2, [1, 0, 1, 0, 0]), (3, [1, 0, 0, 1, 0])] {
        let (phase, _) = perform(CHECKOUT, 1, move |number| match number {
            number if number == closed => Document::new(),
            _ => written(),
        });
        assert_eq!(counts(&phase), expected, "command {closed}");
        assert_eq!(phase.reconnects, 1);
    }
}

#[test]
fn other_error_aborts_the_transaction_and_fails() {
    let (phase, commands) = perform(CHECKOUT, 1, |number| match number {
        1 => refused(2, &[]),
        _ => written(),
    });
    assert_eq!(counts(&phase), [0, 1, 0, 0, 0]);
    assert_eq!(names(&commands), ["update", "abortTransaction"]);
    assert_eq!(phase.errors["server_2"], 1);
}

#[test]
fn share_of_transactions_is_aborted_on_purpose() {
    let plan = CHECKOUT.replace("transaction = true", "transaction = true\nabort = 0.25");
    let (phase, commands) = perform(&plan, 400, |_| written());
    let aborts = names(&commands).iter().filter(|name| **name == "abortTransaction").count();
    assert_eq!(counts(&phase), [400, 0, 0, 0, aborts as u64]);
    // Six standard deviations.
    assert!(aborts.abs_diff(100) < 52, "{aborts}");
}

#[test]
fn endless_transient_errors_end_with_the_time_limit() {
    let start = std::time::Instant::now();
    let (phase, _) = perform(CHECKOUT, 1, move |number| {
        // Slow enough that the client is not busy all the time.
        std::thread::sleep(Duration::from_millis(20));
        match number {
            _ if start.elapsed() > Duration::from_secs(30) => written(),
            _ => refused(112, &["TransientTransactionError"]),
        }
    });
    let [succeeded, failed, restarts, ..] = counts(&phase);
    assert_eq!((succeeded, failed), (0, 1));
    assert!(restarts > 1, "{restarts}");
}
