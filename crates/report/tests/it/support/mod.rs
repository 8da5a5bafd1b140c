//! Synthetic runs for tests, written and read by the real run directory code. All numbers are
//! fixed: the only randomness is a small generator with a constant seed.

use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::experiment::run::analyze;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::disk::DiskUse;
use dyno_record::interval::{
    ErrorCount, IntervalRecord, OperationInterval, WindowCounts, latency_histogram,
};
use dyno_record::model::{
    Caveat, CaveatKind, CpuSettings, Effect, Environment, KeyShares, Operation, PhaseKind,
    ResourceKind, ResourceUse, RunDocument, RunStatus, SCHEMA_VERSION, ServerRecord, StorageRecord,
};
use dyno_record::reader::Run;
use dyno_record::statement::Statement;
use dyno_record::writer::RunWriter;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// A recording window under construction; one second long by default.
#[derive(Clone)]
pub(crate) struct Window(IntervalRecord);

/// A window without operations.
pub(crate) fn window(phase: PhaseKind, index: u64, start_s: u64) -> Window {
    Window(IntervalRecord {
        duration_ns: 1_000_000_000,
        counts: WindowCounts {
            cpu_user_ns: 120_000_000,
            cpu_system_ns: 310_000_000,
            max_rss_bytes: 18_874_368,
            ..WindowCounts::default()
        },
        ..IntervalRecord::empty(phase, index, start_s * 1_000_000_000)
    })
}

impl Window {
    /// Adds successes: counts by response time in microseconds, without start delay.
    pub(crate) fn operation(self, name: &'static str, values: &[(u64, u64)]) -> Self {
        let undelayed: Vec<_> = values.iter().map(|(us, count)| (0, *us, *count)).collect();
        self.delayed(name, &undelayed)
    }

    /// Adds successes: counts by start delay and service time, both in microseconds.
    pub(crate) fn delayed(mut self, name: &'static str, values: &[(u64, u64, u64)]) -> Self {
        for &(delay_us, service_us, count) in values {
            let (delay, service) = (delay_us * 1_000, service_us * 1_000);
            let response = delay + service;
            self.0.counts.succeeded += count;
            self.0.counts.busy_ns += u128::from(service * count);
            self.0.counts.in_flight_ns += u128::from(service * count);
            let entry = self.entry(name);
            entry.response.record_n(response, count).unwrap();
            entry.service.record_n(service, count).unwrap();
            entry.start_delay.record_n(delay, count).unwrap();
            entry.response_sum_ns += u128::from(response * count);
            entry.service_sum_ns += u128::from(service * count);
            entry.start_delay_sum_ns += u128::from(delay * count);
            entry.documents += count;
        }
        self
    }

    /// Adds failures.
    pub(crate) fn failures(mut self, name: &'static str, kind: &str, count: u64) -> Self {
        self.entry(name).errors += count;
        self.0.counts.failed += count;
        self.0.errors.push(ErrorCount {
            operation: name.into(),
            kind: kind.into(),
            count,
            example: None,
        });
        self
    }

    /// Sets the counts of arrivals.
    pub(crate) fn arrivals(mut self, due: u64, started: u64, dropped: u64, late: u64) -> Self {
        self.0.counts.arrivals.due = due;
        self.0.counts.arrivals.started = started;
        self.0.counts.arrivals.dropped = dropped;
        self.0.counts.arrivals.late = late;
        self
    }

    fn entry(&mut self, name: &'static str) -> &mut OperationInterval {
        let operations = &mut self.0.operations;
        let index = match operations.iter().position(|o| o.name == name) {
            Some(index) => index,
            None => {
                operations.push(OperationInterval {
                    name: name.into(),
                    response: latency_histogram(),
                    service: latency_histogram(),
                    start_delay: latency_histogram(),
                    response_sum_ns: 0,
                    service_sum_ns: 0,
                    start_delay_sum_ns: 0,
                    documents: 0,
                    errors: 0,
                    clamped: 0,
                });
                operations.len() - 1
            }
        };
        &mut operations[index]
    }
}

/// Writes a run with these windows and opens it. Its phases are made from the windows.
pub(crate) fn run(document: RunDocument, windows: &[Window]) -> Run {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("run"), document, windows)
}

/// A run with its analysis.
pub(crate) fn analysed(document: RunDocument, windows: &[Window]) -> (Run, RunAnalysis) {
    let directory = tempfile::tempdir().unwrap();
    let run = write(&directory.path().join("run"), document, windows);
    let analysis = analyze(&run.document, &run.responses, 1).unwrap();
    (run, analysis)
}

fn write(path: &Path, mut document: RunDocument, windows: &[Window]) -> Run {
    let mut writer = RunWriter::create(path, "", &document).unwrap();
    let mut phases: BTreeMap<PhaseKind, PhaseAccumulator> = BTreeMap::new();
    for Window(interval) in windows {
        writer.record(interval).unwrap();
        let is_open = interval.counts.arrivals.due > 0;
        let offered = document.plan.pointer("/schedule/rate_per_s");
        let offered = offered.and_then(|rate| rate.as_f64()).filter(|_| is_open);
        phases
            .entry(interval.phase)
            .or_insert_with(|| PhaseAccumulator::new(interval.phase, offered))
            .add(interval)
            .unwrap();
    }
    document.phases = phases.values().map(PhaseAccumulator::to_record).collect();
    for phase in document.phases.iter_mut().filter(|p| p.name != PhaseKind::Load) {
        phase.keys = Some(KeyShares {
            draws: phase.operations.values().map(|o| o.count).sum(),
            hottest_1_percent_ratio: 0.399,
            hottest_10_percent_ratio: 0.549,
        });
    }
    writer.finish(&document).unwrap();
    Run::open(path).unwrap()
}

/// Document of a complete closed-loop run of workload `a` without caveats.
pub(crate) fn closed_document() -> RunDocument {
    RunDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        name: "a".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Complete,
        status_reason: None,
        plan: json!({
            "name": "a",
            "description": "Session store: half reads, half updates of recent actions.",
            "data": {
                "records": 100_000, "field_count": 10, "key_order": "hashed",
                "field_length": {"distribution": "constant", "bytes": 100},
            },
            "operations": {"read": 0.5, "update": 0.5, "scan": 0.0},
            "keys": {"distribution": "scrambled-zipfian"},
            "client": {"clients": 32, "threads": 1, "backend": "wire", "seed": 42},
            "schedule": {"kind": "closed"},
        }),
        operations: vec![
            Operation::new("read", Effect::Read),
            Operation::new("update", Effect::Update),
        ]
        .into(),
        environment: environment(),
        server: server(),
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

fn environment() -> Environment {
    Environment {
        doctor: Vec::new(),
        hostname: Some("bench-1".into()),
        kernel: Some("Linux 6.1.0-25-amd64".into()),
        os: Some("Debian GNU/Linux 12 (bookworm)".into()),
        cpu_model: Some("AMD EPYC 7763".into()),
        cpus: Some(2),
        allowed_cpus: None,
        machine_cpus: None,
        numa_nodes: Some(1),
        cpu_governor: None,
        cpu_settings: CpuSettings::default(),
        memory_bytes: Some(8 << 30),
        swap_bytes: Some(0),
        transparent_hugepages: Some("madvise".into()),
        clock_source: Some("tsc".into()),
        clock_read_ns: Some(22.4),
        load_average: Some(0.08),
        virtualization: Some("kvm".into()),
        data_storage: Some(StorageRecord {
            path: "/srv/data".into(),
            filesystem: Some("ext4".into()),
            mount_options: Some("rw,relatime".into()),
            device: Some("vda".into()),
            readahead_bytes: Some(131_072),
            scheduler: Some("none".into()),
            rotational: Some(false),
            free_bytes: Some(40 << 30),
            capacities: BTreeMap::new(),
            prepared: None,
        }),
    }
}

fn server() -> ServerRecord {
    ServerRecord {
        kind: "embedded".into(),
        address: "127.0.0.1:27018".into(),
        version: Some("0.5.3".into()),
        product: Some("secantusd-rs".into()),
        storage_engine: Some("wiredTiger".into()),
        topology: Some("standalone".into()),
        local: true,
        cache_bytes: Some(256 << 20),
        write_concern: "w: 1".into(),
        read_concern: "server default".into(),
        settings: BTreeMap::from([("block_compressor".into(), "snappy".into())]),
        documents: Some(100_000),
        data_bytes: Some(110_000_000),
        storage_bytes: Some(121_000_000),
        round_trip_us: None,
        machine: None,
        members: Vec::new(),
    }
}

/// A closed-loop run: load, warm-up, twelve windows of reads and updates, no caveats.
pub(crate) fn closed_run() -> Run {
    let mut spread = Spread(7);
    let mut windows = Vec::new();
    for index in 0..3 {
        let batches = spread.values(4_200, 330);
        windows.push(window(PhaseKind::Load, index, index).operation("insert", &batches));
    }
    for index in 0..2 {
        let reads = spread.values(190, 2_600 + 400 * index);
        let updates = spread.values(240, 2_600 + 400 * index);
        let start = window(PhaseKind::Warmup, index, 4 + index);
        windows.push(start.operation("read", &reads).operation("update", &updates));
    }
    for index in 0..12 {
        let reads = spread.values(180, 3_104);
        let updates = spread.values(230, 3_096);
        let start = window(PhaseKind::Measure, index, 6 + index);
        windows.push(start.operation("read", &reads).operation("update", &updates));
    }
    run(closed_document(), &windows)
}

/// A closed loop of two clients that shares two CPUs with the server, with resource use of both and an analysis.
pub(crate) fn watched_run() -> (Run, RunAnalysis) {
    watched(24)
}

/// The same run with a measure phase of this many seconds.
pub(crate) fn watched(length_s: u64) -> (Run, RunAnalysis) {
    let mut document = closed_document();
    document.plan["client"]["clients"] = json!(2);
    let duration_s = length_s as f64;
    let resource = |resource, units, busy_s| ResourceUse {
        phase: PhaseKind::Measure,
        resource,
        units,
        allowed: None,
        busy_s,
        duration_s,
        reported: None,
        disks: match resource {
            ResourceKind::Disk => vec![DiskUse {
                device: "nvme0n1".into(),
                serves_several: Some(true),
                busy_s,
                queued_s: Some(1.5 * busy_s),
                reads: Some(400.0 * busy_s),
                writes: Some(90.0 * busy_s),
                ..DiskUse::default()
            }],
            _ => Vec::new(),
        },
    };
    document.resources = vec![
        resource(ResourceKind::ServerCpu, 2, 1.15 * duration_s),
        resource(ResourceKind::HostCpu, 2, 1.75 * duration_s),
        resource(ResourceKind::Disk, 1, 0.02 * duration_s),
    ];
    let mut spread = Spread(13);
    let windows: Vec<Window> = (0..length_s)
        .map(|index| {
            let more = index * 37 % 41;
            let reads = spread.values(242, 3_080 + more);
            let updates = spread.values(302, 3_080 + more);
            let start = window(PhaseKind::Measure, index, index);
            start.operation("read", &reads).operation("update", &updates)
        })
        .collect();
    analysed(document, &windows)
}

/// An open-loop run with a stall of the server, failures, dropped arrivals and many caveats.
pub(crate) fn open_run() -> Run {
    let mut document = closed_document();
    document.plan["schedule"] =
        json!({"kind": "poisson", "rate_per_s": 1000.0, "max_start_delay": "1s"});
    document.caveats = open_caveats();
    let mut spread = Spread(11);
    let mut windows = vec![
        window(PhaseKind::Load, 0, 0).operation("insert", &spread.values(4_200, 330)),
        window(PhaseKind::Warmup, 0, 1)
            .operation("read", &spread.values(200, 990))
            .arrivals(990, 990, 0, 0),
    ];
    for index in 0..30 {
        let start = window(PhaseKind::Measure, index, 2 + index);
        windows.push(if index % 10 == 4 {
            stalled(start, &mut spread)
        } else {
            let delayed = |values: Vec<(u64, u64)>| -> Vec<(u64, u64, u64)> {
                values.into_iter().map(|(us, n)| (us / 40, us, n)).collect()
            };
            start
                .delayed("read", &delayed(spread.values(210, 510)))
                .delayed("update", &delayed(spread.values(260, 490)))
                .arrivals(1_000, 1_000, 0, 2)
        });
    }
    run(document, &windows)
}

/// A window in which the server hangs: arrivals wait, some fail and some are dropped.
fn stalled(window: Window, spread: &mut Spread) -> Window {
    let waits: Vec<(u64, u64, u64)> = (0..100).map(|i| (i * 10_000, 800 + i, 4)).collect();
    window
        .delayed("read", &waits)
        .delayed("read", &[(20, 990_000, 1)])
        .operation("update", &spread.values(260, 480))
        .failures("read", "not_found", 6)
        .failures("update", "timeout", 3)
        .failures("update", "server_11000", 1)
        .arrivals(1_000, 891, 109, 400)
}

fn open_caveats() -> Vec<Caveat> {
    let caveat = |kind, message: &str, hint: Option<&str>, phase| Caveat {
        kind,
        statement: Statement::recorded(message).with("hint", hint),
        phase,
    };
    let measure = Some(PhaseKind::Measure);
    vec![
        caveat(
            CaveatKind::Durability,
            "writes are acknowledged before they are on disk (w: 1, journal not awaited)",
            None,
            None,
        ),
        caveat(
            CaveatKind::DroppedArrivals,
            "327 of 30,000 arrivals (1.09 %) were never sent, so response times are too good",
            Some("offer a lower rate, or more connections with `--clients`"),
            measure,
        ),
        caveat(
            CaveatKind::TooFewOperations,
            "p99.99 rests on fewer than 10 values",
            Some("measure longer"),
            measure,
        ),
        caveat(
            CaveatKind::Errors,
            "30 operations failed, most of them with `not_found`",
            None,
            measure,
        ),
        caveat(
            CaveatKind::SharedMachine,
            "client and server share 2 CPUs of one machine",
            None,
            None,
        ),
        caveat(
            CaveatKind::FitsInCache,
            "the data (105 MiB) fits into the cache (256 MiB): reads never wait for the disk",
            Some("load more documents with `--records`"),
            None,
        ),
    ]
}

/// Reproducible latencies with a long tail.
pub(crate) struct Spread(pub(crate) u64);

impl Spread {
    /// `count` response times around `typical_us`, as (value, count).
    pub(crate) fn values(&mut self, typical_us: u64, count: u64) -> Vec<(u64, u64)> {
        (0..count).map(|_| (self.value(typical_us), 1)).collect()
    }

    fn value(&mut self, typical_us: u64) -> u64 {
        // Multiplier of Knuth's MMIX generator; the upper bits are random enough for test data.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        let uniform = 1 + (self.0 >> 44); // 1 to 2^20
        let rarity = (1u64 << 20) / uniform; // 1 half of the time, 1000 once in a thousand
        let bell = (self.0 >> 34) & 0x3ff;
        typical_us * (768 + bell / 2) / 1024 + typical_us * rarity.min(2_000) / 40
    }
}
