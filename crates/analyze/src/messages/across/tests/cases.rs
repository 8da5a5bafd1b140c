//! Every finding of messages with its measurement, and without it.

use super::*;
use dyno_record::tail::{HostClock, Sample};
use dyno_testkit::findings::{Reported, case};

type Case = dyno_testkit::findings::Case<TailDocument>;

#[test]
fn every_finding_is_measured_and_silent_where_it_is_not() {
    let mut reported = Reported::default();
    for cases in [latencies(), sizes_and_drivers(), events(), caveats(), programs()] {
        reported.check(findings, cases);
    }
    reported.finish("crates/analyze/src/messages");
}

/// Documents with one cell of a producer that waits for each insert.
fn one(change: impl FnOnce(&mut Cell)) -> TailDocument {
    let mut cell = cell("node", Some(1), 10, 100.0, false);
    measured(&mut cell).producers[0].resources.cpu_s = Some(0.1);
    measured(&mut cell).consumers[0].resources.cpu_s = Some(0.1);
    measured(&mut cell).server = Some(Resources {
        cpu_s: Some(4.0),
        samples: [0.0, 10.0].map(|at_s| Sample { at_s, ..Sample::default() }).into(),
    });
    change(&mut cell);
    document(vec![cell])
}

fn measured(cell: &mut Cell) -> &mut Measured {
    cell.measured.as_mut().unwrap()
}

fn first(document: &mut TailDocument) -> &mut Measured {
    measured(&mut document.cells[0])
}

fn consumer(document: &mut TailDocument) -> &mut ConsumerRecord {
    &mut first(document).consumers[0]
}

fn as_usual(document: &mut TailDocument) {
    *document = one(|_| ());
}

/// Removes all received messages.
fn without_deliveries(document: &mut TailDocument) {
    for cell in &mut document.cells {
        measured(cell).consumers[0].deliveries.clear();
    }
}

/// Keeps a sixth of each producer's messages.
fn few_messages(document: &mut TailDocument) {
    for cell in &mut document.cells {
        let producer = &mut measured(cell).producers[0];
        producer.timeline.points.truncate(8);
        producer.verdict = judge(&producer.timeline);
    }
}

fn latencies() -> Vec<Case> {
    let both = document(vec![
        cell("node", Some(1), 10, 200.0, false),
        cell("node", None, 10, 900.0, true),
    ]);
    vec![
        case("missing-bound-is-the-cause", both)
            .not_if("it grows with a bound alone", |it| {
                it.cells[0] = cell("node", Some(1), 10, 200.0, true);
                it.cells[1] = cell("node", None, 10, 900.0, false);
            })
            .not_if("one of them failed", |it| it.cells[1].status = CellStatus::Failed)
            .not_without("latency-trend", "not-watched", few_messages),
        case("grows-in-repetitions", rounds_that_grow())
            .not_if("latency is flat in all", |it| {
                it.cells = rounds(&[("go", &[100.0, 101.0])]);
            })
            .not_without("latency-trend", "not-watched", few_messages),
        case("judgement-of-producer", document(vec![cell("go", None, 10, 900.0, true)]))
            .not_if("latency is flat", as_usual)
            .not_without("latency-trend", "not-watched", few_messages),
        case("latency-does-not-grow-with", one(|_| ()))
            .not_if("it grows", |it| it.cells[0] = cell("go", None, 10, 900.0, true))
            .not_without("latency-trend", "not-watched", few_messages),
    ]
}

/// Two repetitions, of which the second grows.
fn rounds_that_grow() -> TailDocument {
    let mut cells = rounds(&[("go", &[100.0, 101.0])]);
    cells[1] = Cell { repetition: Some(2), ..cell("go", Some(1), 10, 100.0, true) };
    document(cells)
}

fn sizes_and_drivers() -> Vec<Case> {
    let pools = |medians_us: [f64; 2]| {
        let pool = |pool, median_us| cell("go", Some(64), pool, median_us, false);
        document(vec![pool(5, medians_us[0]), pool(100, medians_us[1])])
    };
    let of_others = |it: &mut TailDocument| it.cells[1].settings.producers = vec!["ruby".into()];
    vec![
        case("pool-size-makes-a-difference", pools([900.0, 300.0]))
            .not_if("it makes none", |it| it.cells[0] = it.cells[1].clone())
            .not_if("other producers had the other size", of_others)
            .not_if("nothing was received", without_deliveries),
        case("pool-size-makes-no-difference", pools([500.0, 550.0]))
            .not_if("it makes one", |it| {
                it.cells[0] = cell("go", Some(64), 5, 5_000.0, false);
            })
            .not_if("other producers had the other size", of_others)
            .not_if("nothing was received", without_deliveries),
        case(
            "differences-beyond-intervals",
            document(rounds(&[("wire", &[100.0, 101.0, 102.0]), ("ruby", &[700.0, 705.0, 710.0])])),
        )
        .not_if("there is one alone", |it| it.cells.truncate(3))
        .not_if("nothing was received", without_deliveries),
    ]
}

fn events() -> Vec<Case> {
    let failed = one(|cell| {
        cell.status = CellStatus::Failed;
        cell.reason = Some("consumer 0 (wire) lost 3 messages".into());
    });
    let unmeasured = one(|cell| (cell.status, cell.measured) = (CellStatus::Failed, None));
    let blind = BlindCursor { blind_s: 2.5, found: 202 };
    vec![
        case("cell-failed", failed).not_if("it did not", as_usual),
        case("cell-failed", unmeasured).not_if("it did not", as_usual),
        case("position-lost", with_consumer(|one| one.position_lost = Some(2)))
            .not_if("none was", |it| consumer(it).position_lost = Some(0))
            .not_without("cursor-events", "not-watched", |it| {
                consumer(it).position_lost = None;
            }),
        case("cursor-opened-again", with_consumer(|one| one.reopened = Some(3)))
            .not_if("the collection was empty each time", |it| {
                consumer(it).reopened_empty = Some(3);
            })
            .not_without("cursor-events", "not-watched", |it| {
                consumer(it).reopened = None;
            }),
        case("found-by-query", with_consumer(|one| one.caught_up = Some(4)))
            .not_if("none was", |it| consumer(it).caught_up = Some(0))
            .not_without("cursor-events", "not-watched", |it| {
                consumer(it).caught_up = None;
            }),
        case("cursor-blind", with_consumer(|one| one.blind = vec![blind]))
            .not_if("none was", |it| consumer(it).blind.clear()),
    ]
}

fn with_consumer(change: impl FnOnce(&mut ConsumerRecord)) -> TailDocument {
    one(|cell| change(&mut measured(cell).consumers[0]))
}

/// Consumers on another host with this clock uncertainty.
fn far(uncertainty_ns: u64, consistent: bool) -> TailDocument {
    one(|cell| {
        cell.settings.consumer_host = Some("db2".into());
        measured(cell).clocks = vec![HostClock {
            host: "db2".into(),
            role: "consume".into(),
            offset_start_ns: 2_000_000,
            offset_end_ns: 90_000_000,
            uncertainty_ns,
            round_trip_ns: 1,
            consistent,
        }];
    })
}

fn caveats() -> Vec<Case> {
    let busy = |cpu_s| one(|cell| measured(cell).server.as_mut().unwrap().cpu_s = Some(cpu_s));
    let unmeasured = |it: &mut TailDocument| first(it).clocks.clear();
    vec![
        case("clock-set", far(0, false))
            .not_if("all round trips agree", |it| *it = far(0, true))
            .not_without("clock-differences", "not-watched", unmeasured),
        case("clocks-not-known-well", far(11_000, true))
            .not_if("they are known to a tenth of the median", |it| *it = far(9_000, true))
            .not_if("both hosts are the same", |it| {
                it.cells[0].settings.producer_host = Some("db2".into());
            })
            .not_if("nothing was received", without_deliveries)
            .not_without("clock-differences", "not-watched", unmeasured),
        // Two CPUs, watched for 10 s.
        case("machine-busy", busy(19.0))
            .not_if("a tenth of them was idle", |it| {
                first(it).server.as_mut().unwrap().cpu_s = Some(17.0);
            })
            .not_without("cpu-time-of-processes", "not-watched", |it| {
                first(it).server = None;
            }),
        case("not-watched", one(|cell| measured(cell).server = None))
            .not_if("everything was watched", as_usual),
    ]
}

fn programs() -> Vec<Case> {
    // A producer that waits for its start times keeps its loop turning.
    let full = one(|cell| {
        cell.settings.schedule = None;
        let producer = &mut measured(cell).producers[0];
        producer.driver.version.language = "javascript".into();
        producer.resources.cpu_s = Some(producer.timeline.rates.all_s);
    });
    let debug = one(|cell| {
        measured(cell).producers[0].driver.version.build = Some("debug".into());
    });
    let mut left_out = one(|_| ());
    left_out.skipped = vec![SkippedDriver { name: "java".into(), reason: "no javac".into() }];
    vec![
        case("one-cpu-producers", full)
            .not_if("its CPU was idle for half of the time", |it| {
                first(it).producers[0].resources.cpu_s = Some(0.5);
            })
            .not_if("it has several threads", |it| {
                first(it).producers[0].driver.version.language = "go".into();
            })
            .not_if("it waits for instants", |it| {
                it.cells[0].settings.schedule = one(|_| ()).cells[0].settings.schedule;
            })
            .not_without("cpu-time-of-processes", "not-watched", |it| {
                first(it).producers[0].resources.cpu_s = None;
            }),
        case("drivers-not-optimised", debug)
            .not_if("it is a release", |it| {
                first(it).producers[0].driver.version.build = Some("release".into());
            })
            .not_if("it does not say what it is", |it| {
                first(it).producers[0].driver.version.build = None;
            }),
        case("driver-left-out", left_out).not_if("none was", |it| it.skipped.clear()),
    ]
}
