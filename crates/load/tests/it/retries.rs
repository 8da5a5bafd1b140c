//! Retried commands and messages of refusals, with scripted servers and the responder.

use bson::{Bson, Document, doc};
use dyno_load::LoadError;
use dyno_load::backend::Backend;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec, RetryRule};
use dyno_load::responder::{Behaviour, Fault, FaultRule, Responder};
use dyno_load::workload::{Concerns, LoadTask, Workload};
use dyno_plan::Plan;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_testkit::scripted;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A server that records its data commands.
#[derive(Clone, Default)]
struct Commands(Arc<Mutex<Vec<Document>>>);

impl Commands {
    /// Records a command; returns the number of commands.
    fn note(&self, command: &Document) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(command.clone());
        all.len()
    }

    fn all(&self) -> Vec<Document> {
        self.0.lock().unwrap().clone()
    }

    /// The transaction numbers of the writes.
    fn numbers(&self) -> Vec<i64> {
        let all = self.all();
        all.iter().map(|it| it.get_i64("txnNumber").unwrap()).collect()
    }
}

/// Starts a server that answers data commands by `answer`, which gets their number, from 1.
fn serve(
    set: Option<&'static str>,
    answer: impl Fn(usize) -> Document + Send + Sync + 'static,
) -> (String, Commands) {
    let commands = Commands::default();
    let kept = commands.clone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    scripted::serve_on(listener, move |command: &Document| {
        let name = command.keys().next().map_or("", String::as_str);
        match name {
            "hello" | "isMaster" => hello(set, port),
            "find" | "insert" | "update" | "delete" => answer(kept.note(command)),
            _ => doc! { "ok": 1.0 },
        }
    });
    (format!("127.0.0.1:{port}"), commands)
}

fn hello(set: Option<&str>, port: u16) -> Document {
    let mut hello = doc! {
        "isWritablePrimary": true, "helloOk": true, "maxWireVersion": 17, "minWireVersion": 0,
        "logicalSessionTimeoutMinutes": 30, "ok": 1.0,
    };
    if let Some(set) = set {
        let host = format!("127.0.0.1:{port}");
        hello.extend(doc! { "setName": set, "hosts": [&host], "primary": &host, "me": &host });
    }
    hello
}

fn written() -> Document {
    doc! { "n": 1, "nModified": 1, "ok": 1.0 }
}

fn refused(code: i32, labels: &[&str]) -> Document {
    doc! { "ok": 0.0, "code": code, "codeName": "Name", "errmsg": "no", "errorLabels": labels }
}

/// A plan with operations of a single kind.
fn plan(of: fn(&mut Plan)) -> Plan {
    let mut plan = dyno_plan::builtin::find("a").unwrap();
    plan.data.records = 1000;
    (plan.operations.read, plan.operations.update) = (0.0, 0.0);
    of(&mut plan);
    plan
}

fn updates() -> Plan {
    plan(|plan| plan.operations.update = 1.0)
}

fn reads() -> Plan {
    plan(|plan| plan.operations.read = 1.0)
}

/// Performs operations of one client.
fn perform(plan: &Plan, address: &str, options: &str, operations: u64) -> PhaseRecord {
    let text = format!("mongodb://{address}/?{options}");
    let (target, credentials) = dyno_plan::uri::parse(&text).unwrap();
    let workload = Arc::new(Workload::mix(plan, &Concerns::default()).unwrap());
    let backend = Backend::Wire(Connector::new(&target, credentials).unwrap());
    let pair = Pair { clients: 1, threads: 1, ..Pair::from_plan(plan, workload, backend) };
    let job = Job {
        phases: vec![PhaseSpec {
            kind: PhaseKind::Measure,
            duration: None,
            operations: Some(operations),
        }],
        timeout: Duration::from_secs(5),
        ..Job::from_plan(plan, vec![pair])
    };
    let mut phase = PhaseAccumulator::new(PhaseKind::Measure, None);
    dyno_load::run(job, &mut |window| Ok(phase.add(&window.merged)?)).unwrap();
    phase.to_record()
}

/// Successful and failed operations, retries, replaced connections.
fn counts(phase: &PhaseRecord) -> (u64, u64, u64, u64) {
    (phase.succeeded, phase.failed, phase.retries, phase.reconnects)
}

#[test]
fn write_with_a_label_is_sent_again_with_its_number() {
    let (address, commands) = serve(Some("rs"), |number| match number {
        3 => refused(112, &["RetryableWriteError"]),
        _ => written(),
    });
    let phase = perform(&updates(), &address, "retryWrites=true", 5);
    assert_eq!(counts(&phase), (5, 0, 1, 0));
    assert_eq!(commands.numbers(), [1, 2, 3, 3, 4, 5]);
    let all = commands.all();
    assert_eq!(all[2].get("updates"), all[3].get("updates"));
    let sessions: Vec<_> = all.iter().map(|it| it.get("lsid").unwrap()).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    assert!(phase.errors.is_empty() && phase.error_examples.is_empty());
}

#[test]
fn write_is_sent_again_when_its_connection_closes() {
    let (address, commands) = serve(Some("rs"), |number| match number {
        2 => Document::new(),
        _ => written(),
    });
    let phase = perform(&updates(), &address, "retryWrites=true", 4);
    assert_eq!(counts(&phase), (4, 0, 1, 1));
    assert_eq!(commands.numbers(), [1, 2, 2, 3, 4]);
}

#[test]
fn write_that_fails_twice_has_failed() {
    let (address, commands) = serve(Some("rs"), |number| match number {
        2 => Document::new(),
        3 => refused(112, &["RetryableWriteError"]),
        _ => written(),
    });
    let phase = perform(&updates(), &address, "retryWrites=true", 3);
    assert_eq!(counts(&phase), (2, 1, 1, 1));
    assert_eq!(commands.numbers(), [1, 2, 2, 3]);
    // It is unknown whether the first attempt was applied.
    assert_eq!(phase.errors, BTreeMap::from([("disconnected".into(), 1)]));
}

#[test]
fn insert_may_exist_when_its_retry_is_refused() {
    let exists = || {
        let error = doc! { "index": 0, "code": 11_000, "errmsg": "exists" };
        doc! { "n": 0, "writeErrors": [error], "ok": 1.0 }
    };
    let (address, commands) = serve(Some("rs"), move |number| match number {
        1 => Document::new(),
        2 => refused(112, &[]),
        3 => exists(),
        _ => written(),
    });
    let plan = updates();
    let task = LoadTask { first: 0, count: 2, batch: 1, keep_existing: false };
    let workload = Arc::new(Workload::load(&plan, task, &Concerns::default()).unwrap());
    let backend = wire(&format!("mongodb://{address}/?retryWrites=true"));
    let pair = Pair { clients: 1, threads: 1, ..Pair::from_plan(&plan, workload, backend) };
    let job = Job {
        retry: RetryRule { limit: 1, interval_ns: 1_000_000 },
        ..Job::from_plan(&plan, vec![pair])
    };
    let mut phase = PhaseAccumulator::new(PhaseKind::Load, None);
    dyno_load::run(job, &mut |window| Ok(phase.add(&window.merged)?)).unwrap();
    let phase = phase.to_record();
    assert_eq!((phase.succeeded, phase.failed), (2, 0));
    assert_eq!(commands.numbers(), [1, 1, 2, 3]);
}

#[test]
fn write_is_not_repeated_if_the_server_cannot_recognize_it() {
    let commands = Commands::default();
    let kept = commands.clone();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    scripted::serve_on(listener, move |command: &Document| {
        match command.keys().next().map_or("", String::as_str) {
            "hello" | "isMaster" => {
                let mut hello = hello(Some("rs"), port);
                if !kept.all().is_empty() {
                    hello.remove("logicalSessionTimeoutMinutes");
                }
                hello
            }
            "update" => match kept.note(command) {
                1 => Document::new(),
                _ => written(),
            },
            _ => doc! { "ok": 1.0 },
        }
    });
    let address = format!("127.0.0.1:{port}");
    let phase = perform(&updates(), &address, "retryWrites=true", 1);
    assert_eq!((phase.succeeded, phase.failed), (0, 1));
    assert_eq!(phase.errors, BTreeMap::from([("disconnected".into(), 1)]));
    assert_eq!(commands.all().len(), 1, "it is not sent again");
}

#[test]
fn write_that_wrote_nothing_counts_by_its_first_failure() {
    let (address, _) = serve(Some("rs"), |number| match number {
        1 => refused(91, &["RetryableWriteError"]),
        2 => refused(112, &["RetryableWriteError", "NoWritesPerformed"]),
        _ => written(),
    });
    let phase = perform(&updates(), &address, "retryWrites=true", 2);
    assert_eq!(phase.errors, BTreeMap::from([("server_91".into(), 1)]));
}

#[test]
fn primary_is_looked_for_again_after_a_step_down() {
    let (address, commands) = serve(Some("rs"), |number| match number {
        2 => refused(10_107, &["RetryableWriteError"]),
        _ => written(),
    });
    let phase = perform(&updates(), &address, "retryWrites=true", 3);
    assert_eq!(counts(&phase), (3, 0, 1, 1));
    assert_eq!(commands.numbers(), [1, 2, 2, 3]);
    let phase = perform(&updates(), &address, "", 3);
    assert_eq!(counts(&phase), (3, 0, 0, 0), "the second command is over");
}

#[test]
fn nothing_is_sent_again_unless_it_is_asked_for() {
    for (options, set) in
        [("", Some("rs")), ("retryReads=true", Some("rs")), ("retryWrites=true", None)]
    {
        let (address, commands) = serve(set, |number| match number {
            2 => refused(112, &["RetryableWriteError"]),
            _ => written(),
        });
        let phase = perform(&updates(), &address, options, 3);
        assert_eq!(counts(&phase), (2, 1, 0, 0), "{options}");
        assert!(commands.all().iter().all(|it| !it.contains_key("txnNumber")));
    }
}

#[test]
fn read_is_sent_again_after_a_network_error_and_by_code() {
    let found = || doc! { "cursor": { "id": 0_i64, "ns": "d.c", "firstBatch": [{ "_id": "k" }] }, "ok": 1.0 };
    let (address, commands) = serve(None, move |number| match number {
        2 => Document::new(),
        5 => refused(134, &[]),
        7 => refused(2, &["RetryableWriteError"]),
        _ => found(),
    });
    let phase = perform(&reads(), &address, "retryReads=true", 6);
    assert_eq!(counts(&phase), (5, 1, 2, 1));
    assert_eq!(commands.all().len(), 8);
    assert!(commands.all().iter().all(|it| !it.contains_key("lsid")));
    let longest_us = phase.operations["read"].response_time_us.max;
    assert!(longest_us > 0.0);
}

#[test]
fn overloaded_server_is_asked_once_more_and_counted_apart() {
    let shed = |every| {
        Responder::start(Behaviour {
            faults: vec![FaultRule { every, kind: Fault::ErrorCode(462) }],
            ..Behaviour::default()
        })
        .unwrap()
    };
    // Every third command is shed, but the following one is not.
    let responder = shed(3);
    let phase = perform(&reads(), &responder.address().to_string(), "retryReads=true", 20);
    assert_eq!(counts(&phase), (20, 0, 9, 0));
    assert_eq!(responder.counters().data_commands, 29);
    // Every command is shed: two attempts each.
    let responder = shed(1);
    let phase = perform(&reads(), &responder.address().to_string(), "retryReads=true", 5);
    assert_eq!(counts(&phase), (0, 5, 5, 0));
    assert_eq!(responder.counters().data_commands, 10);
    assert_eq!(phase.errors, BTreeMap::from([("shed_462".into(), 5)]));
    let example = &phase.error_examples["shed_462"];
    assert_eq!(example.code_name.as_deref(), Some("IngressRequestRateLimitExceeded"));
    // Without the option.
    let responder = shed(3);
    let phase = perform(&reads(), &responder.address().to_string(), "", 20);
    assert_eq!(counts(&phase), (14, 6, 0, 0));
}

/// Error of a batched load phase if the server refuses the first document with this reply.
fn failed_load(batch: u32, reply: Document) -> LoadError {
    let (address, _) = serve(None, move |_| reply.clone());
    let plan = updates();
    let task = LoadTask { first: 0, count: 100, batch, keep_existing: false };
    let workload = Arc::new(Workload::load(&plan, task, &Concerns::default()).unwrap());
    let backend = wire(&format!("mongodb://{address}"));
    let pair = Pair { clients: 1, threads: 1, ..Pair::from_plan(&plan, workload, backend) };
    dyno_load::run(Job::from_plan(&plan, vec![pair]), &mut |_| Ok(())).unwrap_err()
}

fn wire(text: &str) -> Backend {
    let (target, credentials) = dyno_plan::uri::parse(text).unwrap();
    Backend::Wire(Connector::new(&target, credentials).unwrap())
}

#[test]
fn failed_load_shows_the_error_of_the_server() {
    let validation = doc! { "index": 0, "code": 121, "errmsg": "Document failed validation" };
    let concern = doc! { "code": 64, "codeName": "WriteConcernFailed", "errmsg": "waiting for replication timed out" };
    for batch in [1, 10] {
        let errors = Bson::from(vec![validation.clone()]);
        let error = failed_load(batch, doc! { "n": 0, "writeErrors": errors, "ok": 1.0 });
        let expected = "DocumentValidationFailure (121): Document failed validation";
        assert!(error.to_string().contains(expected), "{error}");
        let reply = doc! { "n": batch as i32, "writeConcernError": &concern, "ok": 1.0 };
        let error = failed_load(batch, reply);
        let expected = "WriteConcernFailed (64): waiting for replication timed out";
        assert!(error.to_string().contains(expected), "{error}");
        let reply = doc! { "ok": 0.0, "code": 166, "codeName": "CommandNotSupportedOnView", "errmsg": "d.c is a view" };
        let error = failed_load(batch, reply);
        let expected = "CommandNotSupportedOnView (166): d.c is a view";
        assert!(error.to_string().contains(expected), "{error}");
    }
}
