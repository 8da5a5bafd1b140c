//! Whole experiments against the embedded server, with the built drivers.
use dyno_engine::Cancel;
use dyno_record::messages::{MESSAGE_COLUMNS, MESSAGES, RECEIPT_COLUMNS, RECEIPTS, read};
use dyno_record::tail::{Cause, InFlight, Measured, Schedule, Settings, TailArrivals, TailMode};
use dyno_tail::driver::{Found, find};
use dyno_tail::run::{Bench, run};
use dyno_testkit::{Skip, embedded, or_skip, project_dir};
use std::path::Path;

fn settings(driver: &str) -> Settings {
    Settings {
        database: "tail_test".to_owned(),
        collection: "messages".to_owned(),
        producers: vec![driver.to_owned()],
        consumers: vec![driver.to_owned()],
        messages: 500,
        in_flight: InFlight::Bounded(4),
        pool: 10,
        size_bytes: 16,
        capped_bytes: 16 << 20,
        write_concern: "1".to_owned(),
        journal: false,
        mode: TailMode::Tailable,
        schedule: None,
        idle_s: 10,
        delay_us: 0,
        limit_s: 60,
        points: 100,
        producer_host: None,
        consumer_host: None,
    }
}

fn bench<'a>(uri: &'a str, found: &'a Found) -> Bench<'a> {
    Bench {
        uri,
        found,
        server: &[],
        meter: None,
        machines: None,
        interrupted: &|| false,
        host_drivers: Path::new("."),
        polls_heartbeats: true,
    }
}

/// The drivers, or a skip that names the missing one.
fn drivers(needed: &str) -> Result<Found, Skip> {
    let found = find(Some(&project_dir().join("drivers")), None, |_| true, &Cancel::new()).unwrap();
    match found.named(needed, "produce") {
        Ok(_) => Ok(found),
        Err(error) => Err(Skip::new(error.to_string(), "run `make drivers`")),
    }
}

fn experiment(driver: &str, change: impl FnOnce(&mut Settings)) -> Option<Measured> {
    let found = or_skip(drivers(driver))?;
    let server = or_skip(embedded())?;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(driver);
    change(&mut settings);
    let uri = server.uri();
    let bench = bench(&uri, &found);
    let measured = run(&bench, &settings, folder.path()).unwrap();
    let sent = read(&folder.path().join(MESSAGES), MESSAGE_COLUMNS).unwrap();
    let acknowledged = measured.producers.iter().map(|one| one.sum.acknowledged);
    assert_eq!(sent[1].len() as u64, acknowledged.sum::<u64>());
    let received = read(&folder.path().join(RECEIPTS), RECEIPT_COLUMNS).unwrap();
    let receipts = measured.consumers.iter().map(|one| one.sum.received + one.sum.duplicated);
    assert_eq!(received[3].len() as u64, receipts.sum::<u64>());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    // The collection is removed, so the same run succeeds again.
    run(&bench, &settings, folder.path()).unwrap();
    Some(measured)
}

fn nothing_lost(document: &Measured) {
    for producer in &document.producers {
        assert_eq!(producer.sum.acknowledged, 500, "{:?}", producer.sum);
        assert_eq!(producer.split.wait.count, 500);
        assert!(producer.resources.samples.iter().any(|sample| sample.threads > 0));
        assert!(producer.resources.cpu_s.is_some_and(|cpu_s| cpu_s < 60.0));
    }
    let all = 500 * document.producers.len() as u64;
    for consumer in &document.consumers {
        let sum = consumer.sum;
        assert_eq!((sum.received, sum.lost, sum.duplicated), (all, 0, 0));
        assert!(!consumer.idle);
        for delivery in &consumer.deliveries {
            assert_eq!(delivery.delivery.count, 500);
            assert_eq!(delivery.delivery.below_zero, 0);
        }
    }
}

#[test]
fn wire_driver_loses_nothing() {
    if let Some(document) = experiment("wire", |_| {}) {
        nothing_lost(&document);
    }
}

#[test]
fn python_driver_loses_nothing() {
    if let Some(document) = experiment("python", |_| {}) {
        nothing_lost(&document);
    }
}

#[test]
fn several_producers_and_consumers_share_a_schedule() {
    let several = |settings: &mut Settings| {
        settings.producers.push("wire".to_owned());
        settings.consumers.push("wire".to_owned());
        settings.schedule =
            Some(Schedule { rate_per_s: 1000.0, arrive: TailArrivals::Poisson, seed: 3 });
    };
    if let Some(document) = experiment("wire", several) {
        nothing_lost(&document);
        assert_eq!(document.consumers[1].deliveries.len(), 2);
    }
}

/// The schedule offers far more than any machine can send.
#[test]
fn schedule_beyond_the_driver_is_reported() {
    let beyond = |settings: &mut Settings| {
        settings.in_flight = InFlight::Bounded(1);
        settings.schedule =
            Some(Schedule { rate_per_s: 1e6, arrive: TailArrivals::Constant, seed: 3 });
    };
    if let Some(document) = experiment("wire", beyond) {
        let verdict = &document.producers[0].verdict;
        assert_eq!(verdict.cause, Cause::MoreOfferedThanSent, "{}", verdict.statement);
    }
}

#[test]
fn unbounded_messages_are_reported() {
    let unbounded = |settings: &mut Settings| settings.in_flight = InFlight::Unbounded;
    if let Some(document) = experiment("wire", unbounded) {
        nothing_lost(&document);
        let verdict = &document.producers[0].verdict;
        assert_eq!(verdict.cause, Cause::UnboundedInFlight, "{}", verdict.statement);
    }
}

#[test]
fn existing_collection_is_left_alone() {
    let Some(found) = or_skip(drivers("wire")) else {
        return;
    };
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let (target, credentials) = dyno_plan::uri::parse(&server.uri()).unwrap();
    let connector = dyno_load::connect::Connector::new(&target, credentials).unwrap();
    let mut control = connector.control().unwrap();
    // With exactly the options of the experiment.
    let create = bson::doc! { "create": "messages", "capped": true, "size": 16i64 << 20 };
    control.run("tail_test", create).unwrap();
    let insert = bson::doc! { "insert": "messages", "documents": [{ "_id": "mine" }] };
    control.run("tail_test", insert).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let refused = run(&bench(&server.uri(), &found), &settings("wire"), folder.path()).unwrap_err();
    assert!(refused.to_string().contains("already exists"), "{refused}");
    let count = control.run("tail_test", bson::doc! { "count": "messages" });
    assert_eq!(count.unwrap().get_i32("n").unwrap(), 1);
}
