use super::super::judge::judge;
use super::*;
use crate::values::reported;
use dyno_record::experiment::FindingKind;
use dyno_record::model::RunStatus;
use dyno_record::server::ExperimentServer;
use dyno_record::tail::{
    BlindCursor, ConsumerRecord, ConsumerSum, DeliverySplit, DriverRecord, DriverVersion, Point,
    ProducerSplit, ProducerSum, QueuePlace, Rates, Resources, Schedule, Settings, SkippedDriver,
    TailArrivals, TailMode, Timeline,
};
use dyno_record::tail::{Latency, Measured, ProducerRecord};
use serde_json::Value;

mod cases;

fn driver(name: &str) -> DriverRecord {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    DriverRecord {
        name: name.into(),
        version: DriverVersion {
            contract: 1,
            language: name.into(),
            driver: name.into(),
            driver_version: "1".into(),
            runtime: "r".into(),
            runtime_version: "2".into(),
            roles: texts(&["produce", "consume"]),
            in_flight: texts(&["one", "bounded", "unbounded"]),
            unbounded: Some("driver".into()),
            modes: texts(&["tailable"]),
            pool: true,
            monitors: true,
            build: None,
        },
    }
}

fn latency(p50_us: f64) -> Latency {
    Latency {
        count: 1000,
        mean_us: p50_us,
        p50_us,
        p99_us: 2.0 * p50_us,
        p99_9_us: 3.0 * p50_us,
        max_us: 4.0 * p50_us,
        clamped: 0,
        below_zero: 0,
        percentiles: vec![(50.0, p50_us)],
        histogram: String::new(),
        series: Vec::new(),
    }
}

/// A timeline with a flat insert time, or one that climbs with the inserts in flight.
fn timeline(in_flight: InFlight, pool: u64, median_us: f64, climbs: bool) -> Timeline {
    let points = (0..50).map(|place| {
        let factor = if climbs { 1.0 + f64::from(place) } else { 1.0 };
        let time = median_us * 1e3 * factor;
        Point {
            message: f64::from(place) * 20.0,
            wait_ns: 0.0,
            acknowledged_ns: time,
            after_ns: Some(1000.0),
            total_ns: Some(time + 1000.0),
            in_flight: factor,
            batch_messages: Some(1.0),
        }
    });
    Timeline {
        messages: 1000,
        in_flight,
        place: QueuePlace::Driver,
        pool: Some(pool),
        points: points.collect(),
        rates: Rates {
            offered_per_s: None,
            sent_per_s: 1e6 / median_us,
            acknowledged_per_s: 1e6 / median_us,
            acknowledged_first_half_per_s: 1e6 / median_us,
            acknowledged_second_half_per_s: 1e6 / median_us,
            handed_over_s: 0.1,
            all_s: 1.0,
        },
    }
}

pub(crate) fn cell(
    name: &str,
    bound: Option<u64>,
    pool: u64,
    median_us: f64,
    climbs: bool,
) -> Cell {
    let in_flight = bound.map_or(InFlight::Unbounded, InFlight::Bounded);
    let timeline = timeline(in_flight, pool, median_us, climbs);
    let split = ProducerSplit { wait: latency(1.0), acknowledged: latency(median_us) };
    let producer = ProducerRecord {
        driver: driver(name),
        sum: ProducerSum { acknowledged: 1000, ..ProducerSum::default() },
        failure: None,
        split,
        resources: Resources::default(),
        verdict: judge(&timeline),
        timeline,
    };
    let consumer = ConsumerRecord {
        driver: driver("wire"),
        sum: ConsumerSum { received: 1000, ..ConsumerSum::default() },
        deliveries: vec![DeliverySplit { delivery: latency(median_us), total: latency(median_us) }],
        resources: Resources::default(),
        received_per_s: None,
        idle: false,
        stopped: false,
        reopened: Some(1),
        reopened_empty: Some(1),
        position_lost: Some(0),
        blind: Vec::new(),
        caught_up: Some(0),
        duplicates_skipped: Some(0),
    };
    Cell {
        name: format!("{name}-{bound:?}-{pool}"),
        repetition: None,
        status: CellStatus::Complete,
        reason: None,
        settings: Settings {
            database: "d".into(),
            collection: "c".into(),
            producers: vec![name.into()],
            consumers: vec!["wire".into()],
            messages: 1000,
            in_flight,
            pool,
            size_bytes: 0,
            capped_bytes: 4096,
            write_concern: "1".into(),
            journal: false,
            mode: TailMode::Tailable,
            schedule: Some(Schedule { rate_per_s: 1.0, arrive: TailArrivals::Constant, seed: 1 }),
            idle_s: 1,
            delay_us: 0,
            limit_s: 1,
            points: 1,
            producer_host: None,
            consumer_host: None,
        },
        measured: Some(Measured {
            producers: vec![producer],
            consumers: vec![consumer],
            server: None,
            consumption: None,
            interrupted: false,
            clocks: Vec::new(),
        }),
    }
}

pub(crate) fn document(cells: Vec<Cell>) -> TailDocument {
    TailDocument {
        schema_version: 1,
        dyno_version: "0".into(),
        started_at: String::new(),
        status: RunStatus::Complete,
        ended_at: None,
        status_reason: None,
        name: "t".into(),
        plan: Value::Null,
        server: ExperimentServer::default(),
        polls_heartbeats: false,
        clock: String::new(),
        cpus: 2,
        environment: None,
        hosts: Vec::new(),
        skipped: Vec::new(),
        cells,
        caveats: Vec::new(),
    }
}

fn texts(cells: Vec<Cell>) -> String {
    let found = findings(&document(cells));
    assert!(found.iter().all(|finding| !finding.evidence.is_empty()));
    let texts: Vec<String> =
        found.into_iter().map(|finding| finding.statement.to_string()).collect();
    texts.join("\n")
}

#[test]
fn growth_that_goes_with_the_bound_is_not_the_drivers() {
    let mut cells = Vec::new();
    for name in ["node", "go"] {
        cells.push(cell(name, Some(1), 10, 200.0, false));
        cells.push(cell(name, Some(64), 10, 900.0, false));
        cells.push(cell(name, None, 10, 900.0, true));
    }
    let text = texts(cells.clone());
    assert!(
        text.contains(
            "missing-bound-is-the-cause (all_grow: true, bounded: 4, drivers: 2, growing: 2"
        ),
        "{text}"
    );
    assert!(text.contains("others: [], others_number: 0"), "{text}");
    assert!(
        text.contains("in-flight-unbounded") && text.contains("cell (cell: node, unbounded)"),
        "{text}"
    );
    // A producer that grows although it waits has a reason of its own, and is named.
    cells[0] = cell("node", Some(1), 10, 200.0, true);
    let text = texts(cells.clone());
    assert!(text.contains("others: [cell (cell: node, 1 in flight)], others_number: 1"), "{text}");
    // A single driver cannot be compared.
    let of_node: Vec<Cell> = cells.drain(1..3).collect();
    let text = texts(of_node);
    assert!(text.contains("missing-bound"), "{text}");
    assert!(text.contains("drivers: 1,"), "{text}");
}

#[test]
fn pool_size_makes_a_difference_or_not() {
    let pool = |pool, median_us| cell("go", Some(64), pool, median_us, false);
    let same = texts(vec![pool(5, 500.0), pool(100, 550.0), pool(1024, 480.0)]);
    assert!(
        same.contains("pool-size-makes-no-difference (limit: 1.5, sizes: [5, 100, 1,024])"),
        "{same}"
    );
    let other = texts(vec![pool(5, 900.0), pool(100, 300.0)]);
    assert!(
        other.contains("(medians: 3.0, rates: 3.0, who: producer-with-bound (bound: 64 in flight, producer: go))"),
        "{other}"
    );
}

/// Rounds of these drivers with these medians of the repetitions.
fn rounds(drivers: &[(&str, &[f64])]) -> Vec<Cell> {
    let each = drivers.iter().flat_map(|(name, medians_us)| {
        (1..).zip(*medians_us).map(|(repetition, median_us)| Cell {
            repetition: Some(repetition),
            ..cell(name, Some(1), 10, *median_us, false)
        })
    });
    each.collect()
}

#[test]
fn differences_beyond_repetition_intervals_are_distinguished() {
    let cells = rounds(&[
        ("node", &[200.0, 206.0, 203.0]),
        ("c", &[100.0, 104.0, 102.0]),
        ("go", &[101.0, 103.0, 105.0]),
    ]);
    let text = texts(cells.clone());
    assert!(
        text.contains("differences-beyond-intervals (are_many: false, beyond: 2, bound: 1 in flight, in_rate: 2, pairs: 3)"),
        "{text}"
    );
    let found = repeated::repeated(&document(cells));
    let order: Vec<&str> = found.iter().map(|one| one.label.as_str()).collect();
    assert_eq!(order, ["c", "go", "node"]);
    assert_eq!((found[0].like[0].as_str(), found[0].like.len()), ("go", 1));
    assert_eq!(found[0].differs_from, ["node"]);
    assert_eq!(
        (&found[0].rate_like, &found[0].rate_differs_from),
        (&found[0].like, &found[0].differs_from)
    );
    // All repetitions are flat.
    assert!(
        text.contains("producers: [cell (cell: node), cell (cell: c), cell (cell: go)]"),
        "{text}"
    );
    assert_eq!((found[2].like.len(), found[2].differs_from.len()), (0, 2));
    // The geometric mean, and Student's interval over the logarithms: t(2) = 4.303, but the other two drivers
    // vary less, so the cell keeps its own deviation and uses the degrees of freedom of all, at most three:
    // t(3) = 3.182.
    let median = found[0].median_us.unwrap();
    let deviation = {
        let logs = [100f64, 104.0, 102.0].map(f64::ln);
        let mean = logs.iter().sum::<f64>() / 3.0;
        (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 2.0).sqrt()
    };
    assert!((median.value - (100f64 * 104.0 * 102.0).cbrt()).abs() < 1e-9);
    let expected = median.value * (3.182 * deviation / 3f64.sqrt()).exp();
    assert!((median.high.unwrap() - expected).abs() < 0.02, "{median:?}");
    let times = found[2].times_fastest.unwrap();
    assert!((times.value - 1.99).abs() < 0.01 && times.low.unwrap() > 1.8, "{times:?}");
    assert_eq!(found[0].times_fastest.unwrap().low, None);
}

#[test]
fn repetition_spread_is_not_a_driver_difference() {
    let text = texts(rounds(&[("node", &[200.0, 290.0, 160.0]), ("c", &[150.0, 220.0, 180.0])]));
    assert!(text.contains("beyond: 0") && text.contains("in_rate: 0"), "{text}");
    // A single repetition each proves no difference, however large.
    let found = repeated::repeated(&document(rounds(&[("node", &[900.0]), ("c", &[100.0])])));
    assert_eq!(found[0].like, ["node"]);
    assert_eq!(found[1].median_us.unwrap().low, None);
}

#[test]
fn an_erratic_driver_does_not_blur_the_others() {
    let steady: [(&str, &[f64]); 3] = [
        ("c", &[100.0, 104.0, 102.0]),
        ("go", &[150.0, 147.0, 153.0]),
        ("java", &[200.0, 206.0, 203.0]),
    ];
    let erratic: (&str, &[f64]) = ("node", &[300.0, 9_000.0, 1_000.0]);
    let found = repeated::repeated(&document(rounds(&[&steady[..], &[erratic]].concat())));
    let without = repeated::repeated(&document(rounds(&steady)));
    assert_eq!(found[0].median_us, without[0].median_us);
    assert_eq!(found[0].differs_from, ["go", "java"]);
    assert_eq!((found[3].label.as_str(), found[3].differs_from.len()), ("node", 0));
    assert_eq!(found[3].median_us.unwrap().low, None);
}

#[test]
fn failed_and_partial_repetitions_are_not_averaged() {
    let mut cells = rounds(&[("c", &[100.0, 104.0, 900.0])]);
    cells[2].status = CellStatus::Partial;
    let found = repeated::repeated(&document(cells));
    assert_eq!(found[0].repetitions, 2);
    assert!(found[0].median_us.unwrap().value < 105.0);
}

#[test]
fn failures_are_reported_first() {
    let mut lost = cell("go", Some(1), 10, 100.0, false);
    lost.status = CellStatus::Failed;
    lost.reason = Some("consumer 0 (wire) lost 3 messages".into());
    if let Some(measured) = &mut lost.measured {
        let consumer = &mut measured.consumers[0];
        (consumer.position_lost, consumer.caught_up) = (Some(2), Some(4));
        consumer.reopened = Some(6);
        measured.producers[0].driver.version.build = Some("debug".into());
    }
    let mut document = document(vec![lost]);
    document.skipped.push(SkippedDriver { name: "java".into(), reason: "no javac".into() });
    let found = findings(&document);
    assert_eq!(
        found[0].statement.to_string(),
        "cell-failed (cell: go, reason: consumer 0 (wire) lost 3 messages)"
    );
    assert_eq!(found[0].kind, FindingKind::Warning);
    let texts: Vec<String> = found.iter().map(|finding| finding.statement.to_string()).collect();
    for part in [
        "position-lost (cell: go, times: 2)",
        "cursor-opened-again (cell: go, times: 3)",
        "found-by-query",
        "drivers-not-optimised (drivers: [go])",
        "driver-left-out (driver: java)",
    ] {
        assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
    }
}

#[test]
fn blind_cursors_are_a_server_finding_not_errors_or_losses() {
    let mut cell = cell("go", Some(1), 10, 100.0, false);
    if let Some(measured) = &mut cell.measured {
        let consumer = &mut measured.consumers[0];
        consumer.reopened = Some(3);
        consumer.blind =
            vec![BlindCursor { blind_s: 1.0, found: 201 }, BlindCursor { blind_s: 2.5, found: 1 }];
    }
    let found = findings(&document(vec![cell]));
    let blind = found.iter().find(|one| one.statement.code == "cursor-blind").unwrap();
    assert_eq!(blind.kind, FindingKind::Finding);
    assert_eq!(blind.statement.to_string(), "cursor-blind (cell: go, times: [1.00 s, 2.50 s])");
    let evidence = reported(&blind.evidence).join("\n");
    assert!(evidence.contains("messages: 202"), "{evidence}");
    assert!(evidence.contains("lost: 0"), "{evidence}");
    for other in ["cursor-opened-again", "found-by-query", "cell-failed"] {
        assert!(found.iter().all(|one| one.statement.code != other), "{found:?}");
    }
}
