//! Cost of a histogram record, of merging one window, and of writing one window to the disk.
//! `cargo bench -p dyno-record`; the process is expected to have a core for itself.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a bench that fails should stop")]

use criterion::{Criterion, criterion_group, criterion_main};
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::{IntervalRecord, OperationInterval, WindowCounts, latency_histogram};
use dyno_record::model::{
    Environment, Operations, PhaseKind, RunDocument, RunStatus, SCHEMA_VERSION, ServerRecord,
};
use dyno_record::summary::latency_summary;
use dyno_record::writer::RunWriter;
use hdrhistogram::Histogram;
use std::hint::black_box;

/// Latencies around 300 µs with a tail, the same on every run.
fn latencies_ns() -> Vec<u64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..10_000)
        .map(|_| {
            200_000 + next() % 200_000 + if next() % 100 == 0 { next() % 20_000_000 } else { 0 }
        })
        .collect()
}

fn filled() -> Histogram<u64> {
    let mut histogram = latency_histogram();
    for value_ns in latencies_ns() {
        histogram.record(value_ns).unwrap();
    }
    histogram
}

/// A window of the two operations of workload A.
fn window() -> IntervalRecord {
    let histogram = filled();
    let operation = |name: &str| OperationInterval {
        name: name.into(),
        response: histogram.clone(),
        service: histogram.clone(),
        start_delay: histogram.clone(),
        response_sum_ns: 1,
        service_sum_ns: 1,
        start_delay_sum_ns: 1,
        documents: 1,
        errors: 0,
        clamped: 0,
    };
    IntervalRecord {
        duration_ns: 1_000_000_000,
        operations: vec![operation("read"), operation("update")],
        counts: WindowCounts {
            succeeded: 20_000,
            busy_ns: 1,
            in_flight_ns: 1,
            ..WindowCounts::default()
        },
        ..IntervalRecord::empty(PhaseKind::Measure, 0, 0)
    }
}

fn document() -> RunDocument {
    RunDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: String::new(),
        name: String::new(),
        started_at: "2026-08-22T10:15:00Z".to_owned(),
        status: RunStatus::Running,
        status_reason: None,
        plan: serde_json::Value::Null,
        operations: Operations::default(),
        environment: Environment::default(),
        server: ServerRecord::default(),
        phases: Vec::new(),
        instances: Vec::new(),
        fleet: None,
        placement: None,
        host_settings: Vec::new(),
        traces: Vec::new(),
        consumption: Vec::new(),
        resources: Vec::new(),
        sources: Vec::new(),
        collections: Vec::new(),
        secondary_indexes: None,
        checks: Vec::new(),
        dropped: Vec::new(),
        events: Vec::new(),
        caveats: Vec::new(),
        selfcheck: None,
    }
}

fn benches(criterion: &mut Criterion) {
    let values = latencies_ns();
    let mut histogram = latency_histogram();
    let mut position = 0;
    criterion.bench_function("record_one_latency", |bench| {
        bench.iter(|| {
            position = (position + 1) % values.len();
            histogram.record(black_box(values[position])).unwrap();
        });
    });
    let window = window();
    let mut phase = PhaseAccumulator::new(PhaseKind::Measure, None);
    criterion.bench_function("merge_window_of_two_operations", |bench| {
        bench.iter(|| phase.add(black_box(&window)).unwrap());
    });
    let filled = filled();
    criterion.bench_function("summarise_histogram", |bench| {
        bench.iter(|| latency_summary(black_box(&filled), 1));
    });
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(folder.path(), "", &document()).unwrap();
    criterion.bench_function("write_window_of_two_operations", |bench| {
        bench.iter(|| writer.record(black_box(&window)).unwrap());
    });
}

criterion_group!(group, benches);
criterion_main!(group);
