//! A small run with known figures, shared by the tests of this folder.
#![allow(dead_code, reason = "each test file uses its own part")]

use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::{
    ErrorCount, IntervalRecord, OperationInterval, SubSecondPart, WindowCounts, latency_histogram,
};
use dyno_record::model::{
    Arrivals, Effect, Environment, Operation, PhaseKind, RunDocument, RunStatus, SCHEMA_VERSION,
    ServerRecord,
};
use dyno_record::writer::RunWriter;
use std::path::Path;

pub(crate) const PLAN: &str = "name = \"sample\"\n";
pub(crate) const OFFERED_PER_S: f64 = 12.0;
/// Parts of each window.
pub(crate) const FINE: [SubSecondPart; 2] = [
    SubSecondPart { ended: 0, failed: 0, response_sum_ns: 0 },
    SubSecondPart { ended: 3, failed: 0, response_sum_ns: 7_000_000 },
];

/// The document of a running run.
pub(crate) fn document() -> RunDocument {
    RunDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".to_owned(),
        name: "sample".to_owned(),
        started_at: "2026-08-22T10:15:00Z".to_owned(),
        status: RunStatus::Running,
        status_reason: None,
        plan: serde_json::json!({"schedule": {"kind": "constant", "rate_per_s": OFFERED_PER_S}}),
        operations: vec![
            Operation::new("read", Effect::Read),
            Operation::new("update", Effect::Update),
        ]
        .into(),
        environment: Environment::default(),
        server: ServerRecord {
            kind: "embedded".to_owned(),
            address: "127.0.0.1:27017".to_owned(),
            local: true,
            write_concern: "w: 1".to_owned(),
            read_concern: "server default".to_owned(),
            ..ServerRecord::default()
        },
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

/// One operation with the given latencies; half a millisecond of each is start delay.
pub(crate) fn operation(name: &'static str, response_ns: &[u64]) -> OperationInterval {
    const DELAY_NS: u64 = 500_000;
    let mut operation = OperationInterval {
        name: name.into(),
        response: latency_histogram(),
        service: latency_histogram(),
        start_delay: latency_histogram(),
        response_sum_ns: 0,
        service_sum_ns: 0,
        start_delay_sum_ns: 0,
        documents: response_ns.len() as u64,
        errors: 0,
        clamped: 0,
    };
    for value_ns in response_ns {
        operation.response.record(*value_ns).unwrap();
        operation.service.record(value_ns - DELAY_NS).unwrap();
        operation.start_delay.record(DELAY_NS).unwrap();
        operation.response_sum_ns += u128::from(*value_ns);
        operation.service_sum_ns += u128::from(value_ns - DELAY_NS);
        operation.start_delay_sum_ns += u128::from(DELAY_NS);
    }
    operation
}

/// Window `index` of a phase that starts at `index` seconds: ten reads of 1 to 10 ms plus `index` ms, one update, and
/// one failed update without details.
pub(crate) fn window(phase: PhaseKind, index: u64) -> IntervalRecord {
    let reads: Vec<u64> = (1..=10).map(|n| (n + index) * 1_000_000).collect();
    let mut update = operation("update", &[20_000_000]);
    update.errors = 1;
    IntervalRecord {
        duration_ns: 1_000_000_000,
        operations: vec![operation("read", &reads), update],
        errors: vec![ErrorCount {
            operation: "update".into(),
            kind: "timeout".to_owned(),
            count: 1,
            example: None,
        }],
        counts: WindowCounts {
            succeeded: 11,
            failed: 1,
            busy_ns: 120_000_000,
            in_flight_ns: 121_000_000,
            thinking_ns: 0,
            reconnects: 1,
            retries: 0,
            own: Default::default(),
            cpu_user_ns: 3_000_000,
            cpu_system_ns: 9_000_000,
            max_rss_bytes: 10_000_000 + index,
            arrivals: Arrivals { due: 12, started: 12, late: 1, ..Arrivals::default() },
        },
        sub_second: FINE.to_vec(),
        ..IntervalRecord::empty(phase, index, index * 1_000_000_000)
    }
}

/// A run of `count` measured windows in the state that a killed process leaves.
pub(crate) fn killed_run(directory: &Path, count: u64) {
    let mut writer = RunWriter::create(directory, PLAN, &document()).unwrap();
    for index in 0..count {
        writer.record(&window(PhaseKind::Measure, index)).unwrap();
    }
    // No destructor runs in a killed process.
    std::mem::forget(writer);
}

/// The sums that the engine would have after `count` windows.
pub(crate) fn accumulated(count: u64) -> PhaseAccumulator {
    let mut phase = PhaseAccumulator::new(PhaseKind::Measure, Some(OFFERED_PER_S));
    for index in 0..count {
        phase.add(&window(PhaseKind::Measure, index)).unwrap();
    }
    phase
}
