//! Records an hour of a soak as fast as possible, and limits its size and memory.

use crate::observer::Expectation;
use crate::run::live::Live;
use crate::run::recorder::Recorder;
use dyno_load::workload::{Concerns, Workload};
use dyno_record::interval::{IntervalRecord, OperationInterval, WindowCounts, latency_histogram};
use dyno_record::metrics::{MetricId, MetricsWriter, Reading};
use dyno_record::model::{Arrivals, PhaseKind};
use dyno_record::reader::Run;
use dyno_record::writer::RunWriter;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const HOUR_S: u64 = 3_600;
/// Windows until all sizes are stable.
const SETTLED_S: u64 = 600;
/// Largest record of an hour.
const MOST_BYTES: u64 = 20 << 20;
/// Largest growth of the process after that: less than a byte for each operation of a second.
const MOST_GROWTH_BYTES: u64 = 6 << 20;
/// Columns of a machine and of a server. With these, rows are as long as those of a machine with 2
/// CPUs (940 bytes) and of the embedded server (380 bytes).
const COLUMNS: [(&str, usize); 2] = [("host", 190), ("server", 86)];

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % below
    }
}

/// A second of two operations at 10,000/s, with a tail.
fn window(second: u64, chance: &mut Chance) -> IntervalRecord {
    let operation = |name: &str, chance: &mut Chance| {
        let (mut response, mut service) = (latency_histogram(), latency_histogram());
        for _ in 0..5_000 {
            let tail = 1 + chance.next(1_000) / 990 * 40;
            let value_ns = (150_000 + chance.next(400_000)) * tail;
            response.record(value_ns).expect("it is in range");
            service.record(value_ns * 9 / 10).expect("it is in range");
        }
        let mut start_delay = latency_histogram();
        start_delay.record_n(20_000, 5_000).expect("it is in range");
        OperationInterval {
            name: name.into(),
            response,
            service,
            start_delay,
            response_sum_ns: 5_000 * 350_000,
            service_sum_ns: 5_000 * 315_000,
            start_delay_sum_ns: 5_000 * 20_000,
            documents: 5_000,
            errors: 0,
            clamped: 0,
        }
    };
    IntervalRecord {
        duration_ns: 1_000_000_000,
        operations: vec![operation("read", chance), operation("update", chance)],
        counts: WindowCounts {
            succeeded: 10_000,
            busy_ns: 3_500_000_000,
            in_flight_ns: 3_500_000_000,
            cpu_user_ns: 100_000_000,
            cpu_system_ns: 100_000_000,
            max_rss_bytes: 20 << 20,
            arrivals: Arrivals { due: 10_000, started: 10_000, ..Arrivals::default() },
            ..WindowCounts::default()
        },
        ..IntervalRecord::empty(PhaseKind::Measure, second, second * 1_000_000_000)
    }
}

fn reading(second: u64, columns: usize, chance: &mut Chance) -> Reading {
    let value = |number: usize, chance: &mut Chance| match number % 4 {
        0 => chance.next(10_000) as f64 / 1e4,
        1 => chance.next(1 << 40) as f64,
        // Most counters of a machine do not change.
        _ => 0.0,
    };
    let id = |number: usize| MetricId::of_instance("group", &number.to_string(), "value_per_s");
    Reading {
        at_s: second as f64,
        duration_s: 1.0,
        values: (0..columns).map(|number| (id(number), value(number, chance))).collect(),
    }
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("it is there").flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

fn resident_bytes() -> u64 {
    let usage = dyno_observe::process::usage_self();
    usage.current_rss_bytes.expect("this is Linux")
}

/// In a separate process, because other tests also take memory.
#[test]
fn an_hour_is_bounded() {
    let program = std::env::current_exe().expect("a test has a program");
    let name = "run::hour::an_hour_takes_a_bounded_memory_and_less_than_20_mib";
    let output = std::process::Command::new(program)
        .args(["--exact", name, "--ignored"])
        .output()
        .expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "run by the test above in a separate process"]
fn an_hour_takes_a_bounded_memory_and_less_than_20_mib() {
    let folder = tempfile::tempdir().expect("there is room");
    let plan = dyno_plan::builtin::find("a").expect("it is built in");
    let started = jiff::Timestamp::UNIX_EPOCH;
    let document = super::document::initial(&plan, started, Default::default());
    let writer = RunWriter::create(folder.path(), "", &document).expect("it can be written");
    let live = Live::new(folder.path(), "a", started.to_string(), None, Box::new(()));
    let mut recorder = Recorder::new(writer, Box::new(live), 1);
    let workload = Workload::mix(&plan, &Concerns::default()).expect("the plan is valid");
    let expected = Expectation {
        kind: PhaseKind::Measure,
        duration: Some(Duration::from_secs(HOUR_S)),
        operations: None,
    };
    recorder.begin(Some(Arc::new(workload)), vec![expected], Some(10_000.0));
    let mut sources =
        COLUMNS.map(|(name, columns)| (MetricsWriter::new(folder.path(), name, 1), columns));
    let mut chance = Chance(1);
    let mut steady_bytes = 0;
    for second in 0..HOUR_S {
        recorder.record(&window(second, &mut chance)).expect("it can be written");
        for (writer, columns) in &mut sources {
            let reading = reading(second, *columns, &mut chance);
            writer.record(&reading).expect("it can be written");
        }
        if second == SETTLED_S {
            steady_bytes = resident_bytes();
        }
    }
    let grown_bytes = resident_bytes().saturating_sub(steady_bytes);
    recorder.end();
    for (writer, _) in sources {
        writer.finish().expect("it can be written");
    }
    let size = size_of(folder.path());
    assert!(size < MOST_BYTES, "the record has {size} bytes");
    assert!(grown_bytes < MOST_GROWTH_BYTES, "the process grew by {grown_bytes} bytes");
    let run = Run::open(folder.path()).expect("it can be read");
    assert_eq!(run.intervals.len() as u64, HOUR_S);
    assert_eq!(run.metrics.len(), COLUMNS.len());
}
