//! Each rule on a bench with its fault, and on a similar bench where the deciding figure differs.

use super::*;
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::*;
use dyno_record::reader::{IntervalPoint, SeriesPoint, WindowLatency};
use dyno_record::statement::Statement;
use serde_json::json;

mod elsewhere;
mod rules;
mod shares;

const SECONDS: usize = 40;

/// Metrics by name; the second value applies from the middle of the run on.
type Metrics = Vec<(&'static str, f64, f64)>;

/// A healthy run: 1,000 reads and 1,000 updates a second, offered at a constant rate, on two CPUs.
#[derive(Clone)]
struct Scene {
    is_closed: bool,
    in_flight: f64,
    rate: fn(usize) -> u64,
    has_reads: bool,
    has_writes: bool,
    read_us: f64,
    write_us: f64,
    /// Delay of the sends.
    start_delay_us: f64,
    host: Metrics,
    server: Metrics,
    /// Exporters for the server or its machine.
    exporters: Vec<(&'static str, Metrics)>,
    /// Whether the server runs on another machine.
    is_elsewhere: bool,
    /// Seconds in which the disk's figures vary by this share of their mean.
    swing: f64,
    cache_bytes: u64,
    round_trip_us: Option<f64>,
}

fn well() -> Scene {
    let same = |name, value| (name, value, value);
    Scene {
        is_closed: false,
        in_flight: 1.0,
        rate: |_| 2_000,
        has_reads: true,
        has_writes: true,
        read_us: 200.0,
        start_delay_us: 0.0,
        write_us: 300.0,
        host: vec![
            same("cpu.all.busy_ratio", 0.4),
            same("cpu.all.iowait_ratio", 0.01),
            same("cpu.all.steal_ratio", 0.0),
            same("cpu.all.irq_ratio", 0.0),
            same("cpu.all.softirq_ratio", 0.01),
            same("cpu.0.busy_ratio", 0.4),
            same("cpu.1.busy_ratio", 0.4),
            same("cpu.0.softirq_ratio", 0.01),
            same("cpu.1.softirq_ratio", 0.01),
            same("pressure.cpu.some_ratio", 0.05),
            same("pressure.io.some_ratio", 0.02),
            same("pressure.memory.some_ratio", 0.0),
            same("memory.available_bytes", 8e9),
            same("memory.total_bytes", 16e9),
            same("paging.swap_in_bytes_per_s", 0.0),
            same("paging.swap_out_bytes_per_s", 0.0),
            same("storage.sda.free_bytes", 1e11),
            same("storage.sda.holds_data_count", 1.0),
            same("disk.sda.read_per_s", 5.0),
            same("disk.sda.write_per_s", 50.0),
            same("disk.sda.flush_per_s", 5.0),
            same("disk.sda.read_bytes_per_s", 20e3),
            same("disk.sda.write_bytes_per_s", 1e6),
            same("disk.sda.utilization_ratio", 0.1),
            same("disk.sda.queue_count", 0.1),
            same("network.eth0.speed_bytes_per_s", 125e6),
            same("network.eth0.received_bytes_per_s", 2e6),
            same("network.eth0.sent_bytes_per_s", 2e6),
            same("process.server.cpu_ratio", 0.5),
            same("process.server.cpu_wait_ratio", 0.02),
            same("process.server.busiest_thread_ratio", 0.3),
            same("process.client.cpu_ratio", 0.2),
            same("process.client.cpu_wait_ratio", 0.01),
            same("process.client.busiest_thread_ratio", 0.2),
            same("process.client.workers_cpu_ratio", 0.2),
            same("process.client.workers_wait_ratio", 0.01),
            same("process.client.workers_count", 1.0),
            same("cgroup.server.cpu_throttled_periods_ratio", 0.0),
        ],
        server: vec![
            same("cache.server.hit_ratio", 0.999),
            same("cache.server.read_bytes_per_s", 1e3),
            same("cache.server.evicted_by_application_per_s", 0.0),
            same("connections.server.created_per_s", 0.2),
            same("checkpoint.server.running_count", 0.0),
            same("queue.server.total_count", 0.0),
            same("tickets.server.read_in_use_count", 2.0),
            same("tickets.server.read_total_count", 128.0),
            same("tickets.server.write_in_use_count", 2.0),
            same("tickets.server.write_total_count", 128.0),
        ],
        exporters: Vec::new(),
        is_elsewhere: false,
        swing: 0.5,
        cache_bytes: 4 << 30,
        round_trip_us: Some(40.0),
    }
}

/// Adds the kinds of CPU time: the rest beyond kernel time is user time.
fn by_kind(table: &mut MetricTable) {
    let mut split = |group: &str, instance: &str, whole: &str, user: &str, others: &[&str]| {
        let id = |name| MetricId::of_instance(group, instance, name);
        let Some(mut rest) = table.columns.get(&id(whole)).cloned() else {
            return;
        };
        for name in others {
            let column = table.columns.entry(id(name));
            let column = column.or_insert_with(|| vec![0.0; SECONDS]);
            for (rest, part) in rest.iter_mut().zip(column) {
                *rest -= *part;
            }
        }
        table.columns.insert(id(user), rest);
    };
    let others = ["irq_ratio", "softirq_ratio", "steal_ratio", "system_ratio"];
    split("cpu", "all", "busy_ratio", "user_ratio", &others);
    for process in ["server", "client"] {
        let others = ["cpu_system_ratio"];
        split("process", process, "cpu_ratio", "cpu_user_ratio", &others);
    }
}

/// Changes without a duration.
fn at(shifts_s: &[f64]) -> Vec<TimeRange> {
    let at = |at_s: &f64| TimeRange { start_s: *at_s, end_s: *at_s };
    shifts_s.iter().map(at).collect()
}

impl Scene {
    /// Sets a figure for the whole run.
    fn with(self, name: &str, value: f64) -> Scene {
        self.changing(name, value, value)
    }

    /// Changes a figure in the middle.
    fn changing(mut self, name: &str, before: f64, after: f64) -> Scene {
        let exporters = self.exporters.iter_mut().flat_map(|(_, metrics)| metrics);
        let all = exporters.chain(&mut self.host).chain(&mut self.server);
        let known = all.into_iter().find(|(known, _, _)| *known == name);
        let known = known.unwrap_or_else(|| panic!("no metric `{name}`"));
        (known.1, known.2) = (before, after);
        self
    }

    fn closed(mut self) -> Scene {
        (self.is_closed, self.in_flight) = (true, 16.0);
        self
    }

    fn judge(&self) -> Verdict {
        self.judge_with(&[])
    }

    fn judge_with(&self, shifts_s: &[f64]) -> Verdict {
        let document = self.document();
        let tables = self.tables();
        let (windows, operations) = (self.windows(), self.operations());
        let bench = Bench {
            document: &document,
            tables: &tables,
            windows: &windows,
            operations: &operations,
        };
        judge(&bench, &at(shifts_s))
    }

    #[track_caller]
    fn expect(&self, causes: &[Cause]) {
        let verdict = self.judge();
        let found: Vec<Cause> = verdict.causes.iter().map(|one| one.cause).collect();
        assert_eq!(found, causes, "{verdict:#?}");
    }

    fn tables(&self) -> Vec<MetricTable> {
        let own = [("host", &self.host), ("server", &self.server)].into_iter();
        let exporters = self.exporters.iter().map(|(name, metrics)| (*name, metrics));
        let all = exporters.chain(own);
        all.map(|(name, metrics)| self.table(name, metrics)).collect()
    }

    fn table(&self, source: &str, metrics: &[(&str, f64, f64)]) -> MetricTable {
        let column = |(name, before, after): &(&str, f64, f64)| {
            let swings = name.starts_with("disk.") && name.ends_with("_per_s");
            let values = (0..SECONDS).map(|second| {
                let level = if second < SECONDS / 2 { before } else { after };
                let swing = if swings { self.swing } else { 0.0 };
                level * (1.0 + swing * if second % 2 == 0 { 1.0 } else { -1.0 })
            });
            (MetricId::parse(name).unwrap(), values.collect())
        };
        let mut table = MetricTable {
            source: source.to_owned(),
            at_s: (1..=SECONDS).map(|second| second as f64).collect(),
            duration_s: vec![1.0; SECONDS],
            columns: metrics.iter().map(column).collect(),
        };
        by_kind(&mut table);
        table
    }

    fn windows(&self) -> Vec<IntervalPoint> {
        (0..SECONDS)
            .map(|second| IntervalPoint {
                phase: PhaseKind::Measure,
                index: second as u64,
                start_s: second as f64,
                duration_s: 1.0,
                succeeded: (self.rate)(second),
                failed: 0,
                gap_s: None,
                mean_in_flight: self.in_flight,
                arrivals: Arrivals::default(),
                reconnects: 0,
                cpu_user_s: 0.1,
                cpu_system_s: 0.1,
                max_rss_bytes: 0,
            })
            .collect()
    }

    fn operations(&self) -> Vec<SeriesPoint> {
        let point = |second: usize, operation: &str, mean_us: f64| SeriesPoint {
            phase: PhaseKind::Measure,
            index: second as u64,
            start_s: second as f64,
            duration_s: 1.0,
            operation: operation.to_owned(),
            count: (self.rate)(second) / 2,
            errors: 0,
            documents: 0,
            clamped: 0,
            response: WindowLatency {
                mean_us: mean_us + self.start_delay_us,
                ..WindowLatency::default()
            },
            service: WindowLatency { mean_us, ..WindowLatency::default() },
        };
        let kinds =
            [("read", self.read_us, self.has_reads), ("update", self.write_us, self.has_writes)];
        let of_second = |second| {
            let kinds = kinds.into_iter().filter(|(_, _, is_there)| *is_there);
            kinds.map(move |(name, mean_us, _)| point(second, name, mean_us))
        };
        (0..SECONDS).flat_map(of_second).collect()
    }

    fn document(&self) -> RunDocument {
        let source = |name: &str, kind| SourceRecord {
            name: name.to_owned(),
            kind,
            subject: "bench".to_owned(),
            machine: None,
            of_server: kind != SourceKind::Host || !self.is_elsewhere,
            interval_s: 1.0,
            readings_per_row: 1,
            health: SourceHealth::Healthy,
            reason: None,
            missing: Vec::new(),
            readings: SECONDS as u64,
            missed: 0,
            outages: Vec::new(),
            cpu_s: 0.1,
            cpu_ratio: 0.001,
        };
        let schedule = if self.is_closed {
            json!({"kind": "closed"})
        } else {
            json!({"kind": "constant", "rate_per_s": 2_000.0})
        };
        RunDocument {
            schema_version: SCHEMA_VERSION,
            dyno_version: "0.1.0".to_owned(),
            name: "a".to_owned(),
            started_at: "2026-08-22T10:15:00Z".to_owned(),
            status: RunStatus::Complete,
            status_reason: None,
            plan: json!({"client": {"threads": 1, "clients": 16}, "schedule": schedule}),
            operations: vec![
                Operation::new("read", Effect::Read),
                Operation::new("update", Effect::Update),
            ]
            .into(),
            environment: Environment { cpus: Some(2), ..Environment::default() },
            server: ServerRecord {
                data_bytes: Some(1 << 30),
                cache_bytes: Some(self.cache_bytes),
                round_trip_us: self.round_trip_us,
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
            sources: [("host", SourceKind::Host), ("server", SourceKind::Server)]
                .into_iter()
                .chain(self.exporters.iter().map(|(name, _)| (*name, SourceKind::Exporter)))
                .map(|(name, kind)| source(name, kind))
                .collect(),
            collections: Vec::new(),
            secondary_indexes: None,
            checks: Vec::new(),
            dropped: Vec::new(),
            events: Vec::new(),
            caveats: Vec::new(),
            selfcheck: None,
        }
    }
}

#[test]
fn healthy_server_has_no_causes() {
    well().expect(&[]);
    let verdict = well().judge();
    assert_eq!(verdict.headline, Statement::new("nothing-exhausted"));
    assert_eq!(verdict.not_watched, [], "all figures that rules need are known");
}

#[test]
fn cpu_limit_hides_server_saturation() {
    let throttled = well()
        .with("cgroup.server.cpu_throttled_periods_ratio", 0.8)
        .with("process.server.cpu_ratio", 1.9)
        .with("cpu.all.busy_ratio", 0.93);
    throttled.expect(&[Cause::CpuThrottled]);
    throttled.with("cgroup.server.cpu_throttled_periods_ratio", 0.02).expect(&[Cause::ServerCpu]);
}

#[test]
fn cause_at_both_ends_of_a_run_did_not_hold_between() {
    let scene = well().with("process.server.cpu_ratio", 1.9);
    let (document, windows, operations) = (scene.document(), scene.windows(), scene.operations());
    let mut tables = scene.tables();
    let id = MetricId::parse("process.server.cpu_ratio").unwrap();
    tables[0].columns.get_mut(&id).unwrap()[8..32].fill(0.5);
    // The cause in between lasted longer and comes first.
    let id = MetricId::parse("paging.swap_in_bytes_per_s").unwrap();
    tables[0].columns.get_mut(&id).unwrap()[8..32].fill(8e6);
    let bench =
        Bench { document: &document, tables: &tables, windows: &windows, operations: &operations };
    let causes = judge(&bench, &at(&[8.0, 20.0, 32.0])).causes;
    let found: Vec<Cause> = causes.iter().map(|one| one.cause).collect();
    assert_eq!(found, [Cause::Swapping, Cause::ServerCpu], "{causes:#?}");
    // Consecutive parts are joined. The first begins half a reading after the change.
    assert_eq!((causes[0].start_s, causes[0].end_s, causes[0].spans.len()), (8.5, 32.0, 0));
    let spans: Vec<(f64, f64)> =
        causes[1].spans.iter().map(|span| (span.start_s, span.end_s)).collect();
    assert_eq!(spans, [(0.0, 8.0), (32.5, 40.0)]);
    assert_eq!((causes[1].start_s, causes[1].end_s), (0.0, 40.0));
}

#[test]
fn stolen_cpu_time_is_reported() {
    well().with("cpu.all.steal_ratio", 0.12).expect(&[Cause::CpuStolen]);
    well().with("cpu.all.steal_ratio", 0.03).expect(&[]);
}

#[test]
fn client_starved_of_cpu_is_the_limit_at_any_load() {
    let starved = well()
        .closed()
        .with("process.client.workers_cpu_ratio", 0.6)
        .with("process.client.workers_wait_ratio", 0.38);
    starved.expect(&[Cause::Client]);
    // If client and server both work all the time, the server is not proven idle.
    let both = starved.with("process.server.cpu_ratio", 1.8).with("cpu.all.busy_ratio", 0.95);
    both.expect(&[Cause::ServerCpu]);
}

#[test]
fn spinning_client_is_the_cause_only_when_it_sends_late() {
    let mut spins = well()
        .with("process.client.workers_cpu_ratio", 0.97)
        .with("process.client.workers_wait_ratio", 0.02);
    spins.expect(&[]);
    spins.start_delay_us = 400.0;
    spins.expect(&[Cause::Client]);
}

#[test]
fn neighbour_counts_only_if_the_server_waited() {
    let beside = well()
        .with("cpu.1.busy_ratio", 1.0)
        .with("cpu.all.busy_ratio", 0.85)
        .with("process.server.cpu_wait_ratio", 0.8);
    beside.expect(&[Cause::NoisyNeighbour]);
    // Interrupts of the network card are not a process that could be stopped.
    let interrupted = beside.clone().with("cpu.all.softirq_ratio", 0.4);
    interrupted.with("cpu.all.irq_ratio", 0.05).expect(&[]);
    // Kernels that count by ticks also add interrupt time to the interrupted processes.
    let mut by_ticks =
        beside.clone().with("cpu.all.busy_ratio", 0.5).with("cpu.all.softirq_ratio", 0.2);
    by_ticks.host.push(("process.server.cpu_system_ratio", 0.4, 0.4));
    by_ticks.expect(&[Cause::NoisyNeighbour]);
    beside.with("process.server.cpu_wait_ratio", 0.01).expect(&[]);
}

#[test]
fn swapping_explains_the_pressure_on_memory() {
    let swaps =
        well().with("paging.swap_in_bytes_per_s", 8e6).with("pressure.memory.some_ratio", 0.3);
    swaps.expect(&[Cause::Swapping]);
    swaps
        .with("paging.swap_in_bytes_per_s", 0.0)
        .with("memory.available_bytes", 0.5e9)
        .expect(&[Cause::MemoryPressure]);
}

#[test]
fn full_network_is_reported() {
    well().with("network.eth0.sent_bytes_per_s", 120e6).expect(&[Cause::Network]);
    well().with("network.eth0.sent_bytes_per_s", 80e6).expect(&[]);
}

#[test]
fn connection_churn_is_reported() {
    well().with("connections.server.created_per_s", 100.0).expect(&[Cause::ConnectionStorm]);
    // As many as a growing pool opens.
    well().with("connections.server.created_per_s", 5.0).expect(&[]);
}

fn durable() -> Scene {
    let mut scene = well()
        .closed()
        .with("disk.sda.flush_per_s", 900.0)
        .with("disk.sda.utilization_ratio", 0.8)
        .with("disk.sda.queue_count", 1.1)
        .with("pressure.io.some_ratio", 0.8);
    scene.write_us = 12_000.0;
    scene
}

#[test]
fn writes_waiting_for_the_disk_are_distinguished_from_reads() {
    durable().expect(&[Cause::SlowSync]);
    let mut slow_reads = durable();
    slow_reads.read_us = 12_000.0;
    let causes = slow_reads.judge().causes;
    assert!(causes.iter().all(|one| one.cause != Cause::SlowSync), "{causes:?}");
}

#[test]
fn partition_uses_the_flushes_of_its_disk() {
    let rename = |name: &'static str| -> &'static str {
        if name.ends_with("flush_per_s") { name } else { name.replace(".sda.", ".sda1.").leak() }
    };
    let mut scene = durable();
    for metric in &mut scene.host {
        metric.0 = rename(metric.0);
    }
    scene.host.push(("storage.sda.holds_data_count", 1.0, 1.0));
    scene.expect(&[Cause::SlowSync]);
}

#[test]
fn evidence_does_not_mention_reads_when_there_are_none() {
    let mut writes = durable();
    writes.has_reads = false;
    writes.expect(&[Cause::SlowSync]);
    let evidence = &writes.judge().causes[0].evidence;
    assert!(evidence.iter().all(|one| !one.measure.contains("read")), "{evidence:?}");
}

/// A disk with an operation limit in the kernel: processes wait, and the disk is idle.
fn held_back() -> Scene {
    let mut scene = well()
        .closed()
        .with("disk.sda.write_per_s", 40.0)
        .with("disk.sda.flush_per_s", 20.0)
        .with("disk.sda.utilization_ratio", 0.03)
        .with("pressure.io.some_ratio", 0.95)
        .with("process.server.cpu_ratio", 0.05);
    (scene.write_us, scene.swing) = (300_000.0, 0.05);
    scene
}

#[test]
fn operation_ceiling_is_flat_with_a_queue() {
    held_back().expect(&[Cause::DiskOperations]);
    // The same figures without a queue: the load needs no more.
    let mut asked = held_back();
    (asked.is_closed, asked.in_flight, asked.write_us) = (false, 2.0, 500.0);
    asked.expect(&[]);
    // A cloud disk holds the queue itself.
    let queued =
        held_back().with("disk.sda.utilization_ratio", 1.0).with("disk.sda.queue_count", 12.0);
    queued.expect(&[Cause::DiskOperations]);
    // A disk that serves twelve requests at once, each in an eighth of a millisecond, could do more.
    let fast = queued
        .with("disk.sda.write_per_s", 90e3)
        .with("disk.sda.write_bytes_per_s", 400e6)
        .with("pressure.io.some_ratio", 0.6);
    let causes = fast.judge().causes;
    assert!(causes.iter().all(|one| one.cause != Cause::DiskOperations), "{causes:?}");
}

#[test]
fn byte_ceiling_is_distinguished_from_operation_ceiling() {
    let mut wide = held_back()
        .with("disk.sda.utilization_ratio", 1.0)
        .with("disk.sda.queue_count", 12.0)
        .with("disk.sda.write_bytes_per_s", 200e6);
    wide.swing = 0.0;
    let document = wide.document();
    let mut host = wide.table("host", &wide.host);
    // Operations of changing size: their number varies, their bytes do not.
    let id = MetricId::parse("disk.sda.write_per_s").unwrap();
    let column = host.columns.get_mut(&id).unwrap();
    column.iter_mut().enumerate().for_each(|(row, value)| *value *= 1.0 + 0.5 * (row % 2) as f64);
    let tables = [host, wide.table("server", &wide.server)];
    let (windows, operations) = (wide.windows(), wide.operations());
    let bench =
        Bench { document: &document, tables: &tables, windows: &windows, operations: &operations };
    let causes = judge(&bench, &[]).causes;
    assert_eq!(causes[0].cause, Cause::DiskBandwidth, "{causes:#?}");
}

#[test]
fn ceiling_with_large_equal_requests_is_a_byte_ceiling() {
    let large = held_back()
        .with("disk.sda.write_per_s", 200.0)
        .with("disk.sda.write_bytes_per_s", 52_428_800.0);
    large.expect(&[Cause::DiskBandwidth]);
    large.with("disk.sda.write_bytes_per_s", 1e6).expect(&[Cause::DiskOperations]);
    let fell = collapsed().changing("disk.sda.write_bytes_per_s", 200e6, 10_485_760.0);
    let headline = fell.judge_with(&[20.0]).headline;
    assert!(
        headline.code == "burst-credits" && headline.to_string().contains("after: 20.0, bytes: 10"),
        "{headline}"
    );
}

/// A disk that falls to a ceiling after half of the time under a constant load.
fn collapsed() -> Scene {
    let mut scene = held_back()
        .changing("disk.sda.write_per_s", 800.0, 40.0)
        .changing("disk.sda.flush_per_s", 400.0, 20.0)
        .changing("disk.sda.utilization_ratio", 0.4, 0.03)
        .changing("pressure.io.some_ratio", 0.4, 0.95);
    (scene.is_closed, scene.in_flight) = (false, 16.0);
    scene.rate = |second| if second < SECONDS / 2 { 2_000 } else { 200 };
    scene
}

#[test]
fn reading_with_a_level_change_belongs_to_no_part() {
    // The rate shows the change before the disk does: the reading of second 19 is still fast.
    let verdict = collapsed().judge_with(&[19.4]);
    let causes: Vec<Cause> = verdict.causes.iter().map(|one| one.cause).collect();
    assert_eq!(causes, [Cause::BurstCredits]);
}

#[test]
fn disk_falling_to_a_ceiling_at_same_load_used_up_its_credits() {
    let verdict = collapsed().judge_with(&[20.0]);
    let first = &verdict.causes[0];
    assert_eq!(first.cause, Cause::BurstCredits, "{verdict:#?}");
    assert_eq!((first.start_s, first.end_s), (20.0, 40.0));
    assert_eq!(verdict.headline.to_string(), "burst-credits (after: 20.0, operations: 65.0)");
    assert!(verdict.causes.iter().all(|one| one.cause != Cause::DiskOperations));
    // The disk has less to do because less is offered: nothing is exhausted.
    let mut less = well().changing("disk.sda.write_per_s", 800.0, 40.0);
    less.rate = |second| if second < SECONDS / 2 { 2_000 } else { 200 };
    assert_eq!(less.judge_with(&[20.0]).causes, []);
}

#[test]
fn slow_collapse_is_a_collapse() {
    let scene = collapsed();
    let (document, windows, operations) = (scene.document(), scene.windows(), scene.operations());
    let mut tables = scene.tables();
    // On the way down the disk alternates between fast and slow seconds, near its final level.
    for name in ["disk.sda.write_per_s", "disk.sda.flush_per_s"] {
        let column = tables[0].columns.get_mut(&MetricId::parse(name).unwrap());
        let column = column.unwrap();
        let last = column[SECONDS - 1];
        (14..20).for_each(|row| column[row] = last * if row % 2 == 0 { 0.4 } else { 1.8 });
    }
    let bench =
        Bench { document: &document, tables: &tables, windows: &windows, operations: &operations };
    let verdict = judge(&bench, &at(&[14.0, 20.0]));
    let first = &verdict.causes[0];
    assert_eq!(first.cause, Cause::BurstCredits, "{verdict:#?}");
    // It began when the disk was no longer fast, and includes the way down.
    assert_eq!((first.start_s, first.evidence[0].end_s), (14.0, 14.0));
    assert_eq!(first.evidence[1].start_s, 20.5);
}

#[test]
fn cache_is_too_small_when_data_do_not_fit_and_are_reread() {
    let mut small =
        well().with("cache.server.hit_ratio", 0.8).with("cache.server.read_bytes_per_s", 40e6);
    small.cache_bytes = 64 << 20;
    small.expect(&[Cause::CacheTooSmall]);
    small.clone().with("cache.server.read_bytes_per_s", 1e3).expect(&[]);
    small.cache_bytes = 2 << 30;
    small.expect(&[]);
}

#[test]
fn ticket_queues_are_distinguished_from_lock_queues() {
    let queue = well()
        .with("queue.server.total_count", 40.0)
        .with("tickets.server.write_in_use_count", 127.0);
    queue.expect(&[Cause::Tickets]);
    let code = |scene: &Scene| scene.judge().causes[0].statement.code.clone();
    assert_eq!(code(&queue), "cause.tickets");
    let mut locked = queue.with("tickets.server.write_in_use_count", 30.0);
    locked.expect(&[Cause::Tickets]);
    assert_eq!(code(&locked), "cause.locks");
    // A few of very many operations in flight.
    locked.in_flight = 400.0;
    locked.expect(&[]);
}

#[test]
fn one_full_thread_of_the_server_counts_on_whatever_cpu_it_is() {
    let one = well()
        .with("cpu.1.busy_ratio", 0.6)
        .with("cpu.all.busy_ratio", 0.6)
        .with("process.server.busiest_thread_ratio", 0.98)
        .with("process.server.cpu_ratio", 1.0);
    one.expect(&[Cause::OneCore]);
    one.with("process.server.busiest_thread_ratio", 0.3).expect(&[]);
}

#[test]
fn one_cpu_full_of_interrupts_is_reported() {
    let one = well()
        .with("cpu.1.busy_ratio", 0.99)
        .with("cpu.1.softirq_ratio", 0.8)
        .with("cpu.all.busy_ratio", 0.6)
        .with("cpu.all.softirq_ratio", 0.4);
    one.expect(&[Cause::OneCore]);
    let code = &one.judge().causes[0].statement.code;
    assert_eq!(code, "cause.interrupts-on-one-cpu");
    one.with("cpu.1.softirq_ratio", 0.1).expect(&[]);
}

#[test]
fn client_and_server_filling_a_machine_share_the_cpu() {
    let full = well()
        .closed()
        .with("cpu.all.busy_ratio", 0.98)
        .with("process.server.cpu_ratio", 1.2)
        .with("process.client.cpu_ratio", 0.7);
    full.expect(&[Cause::SharedCpu]);
}

#[test]
fn closed_loop_on_an_idle_server_has_too_few_clients() {
    well().closed().expect(&[Cause::TooFewClients]);
    let mut far = well().closed();
    far.round_trip_us = Some(220.0);
    far.expect(&[Cause::RoundTrip]);
}

/// Two servers on machines with four CPUs, each allowed to use `may_use` of them, and an agent with two
/// threads, on hosts that agents read; the controller's machine has two CPUs.
fn fleet_of(servers: [f64; 2], may_use: u64, client: f64) -> Verdict {
    let mut scene = well();
    // Typical delay of a generator without spare CPU time.
    scene.start_delay_us = if client > 1.5 { 500.0 } else { 0.0 };
    let mut document = scene.document();
    let cpu = |busy: f64| {
        let numbers = 0..4;
        let names = numbers.map(|number| format!("cpu.{number}.busy_ratio"));
        let mut all: Vec<(String, f64)> = names.map(|name| (name, busy)).collect();
        all.push(("cpu.all.busy_ratio".to_owned(), busy));
        all
    };
    let server = |used: f64| {
        let mut all = cpu(used / 4.0);
        all.push(("process.server.cpu_ratio".to_owned(), used));
        all.push(("process.server.cpu_wait_ratio".to_owned(), 0.2));
        all
    };
    let mut of_client = cpu(client / 4.0);
    of_client.push(("process.client.workers_cpu_ratio".to_owned(), client));
    of_client.push(("process.client.workers_wait_ratio".to_owned(), 0.0));
    of_client.push(("process.client.workers_count".to_owned(), 2.0));
    let hosts = [
        ("host-a", true, server(servers[0])),
        ("host-b", true, server(servers[1])),
        ("host-c", false, of_client),
    ];
    let mut tables = scene.tables();
    for source in &mut document.sources {
        source.of_server = source.kind == SourceKind::Server;
    }
    for (name, of_server, metrics) in &hosts {
        let metrics = metrics.iter();
        let metrics: Vec<_> =
            metrics.map(|(name, value)| (name.as_str(), *value, *value)).collect();
        tables.push(scene.table(name, &metrics));
        document.sources.push(SourceRecord {
            name: (*name).to_owned(),
            kind: SourceKind::Agent,
            subject: (*name).to_owned(),
            of_server: *of_server,
            ..document.sources[0].clone()
        });
    }
    let server = |(number, host): (u64, &str)| FleetServerRecord {
        environment: None,
        number,
        host: host.to_owned(),
        cpus: may_use,
        address: String::new(),
        placement: None,
        host_settings: Vec::new(),
        data_storage: Vec::new(),
        findings: Vec::new(),
        not_applied: Vec::new(),
    };
    document.fleet = Some(FleetRecord {
        clients: 16,
        servers: [(0, "host-a"), (1, "host-b")].map(server).into(),
        agents: vec![FleetAgentRecord {
            host: "host-c".to_owned(),
            cpus: 4,
            threads: 2,
            ..FleetAgentRecord::default()
        }],
        ..FleetRecord::default()
    });
    let (windows, operations) = (scene.windows(), scene.operations());
    let bench =
        Bench { document: &document, tables: &tables, windows: &windows, operations: &operations };
    judge(&bench, &[])
}

#[test]
fn fleet_servers_are_judged_by_own_machine_and_the_worst_counts() {
    let causes =
        |verdict: Verdict| -> Vec<Cause> { verdict.causes.iter().map(|one| one.cause).collect() };
    // The controller's number of CPUs is half of a server's.
    assert_eq!(causes(fleet_of([2.0, 2.0], 4, 0.3)), []);
    assert_eq!(causes(fleet_of([0.5, 3.95], 4, 0.3)), [Cause::ServerCpu]);
    assert_eq!(causes(fleet_of([1.0, 1.0], 4, 1.9)), [Cause::Client]);
    // A pod with two CPUs of its own on a machine with four.
    assert_eq!(causes(fleet_of([0.5, 1.97], 2, 0.3)), [Cause::ServerCpu]);
}

#[test]
fn checkpoints_count_if_operations_are_slower_while_they_run() {
    let scene = well().changing("checkpoint.server.running_count", 0.0, 1.0);
    let document = scene.document();
    let tables = [scene.table("host", &scene.host), scene.table("server", &scene.server)];
    let windows = scene.windows();
    for (factor, expected) in [(3.0, vec![Cause::Checkpoint]), (1.1, vec![])] {
        let mut operations = scene.operations();
        for point in operations.iter_mut().filter(|point| point.start_s >= 20.0) {
            point.response.mean_us *= factor;
        }
        let bench = Bench {
            document: &document,
            tables: &tables,
            windows: &windows,
            operations: &operations,
        };
        let causes = judge(&bench, &[]).causes;
        let found: Vec<Cause> = causes.iter().map(|one| one.cause).collect();
        assert_eq!(found, expected, "{causes:#?}");
    }
}

#[test]
fn checkpoints_shorter_than_a_row_are_found_by_their_length() {
    // Rows and windows of twelve seconds, as in a day-long run: a checkpoint of six seconds in every fifth.
    let row_s = 12.0;
    let has_one = |row: usize| row % 5 == 4;
    let scene = well();
    let document = scene.document();
    let mut tables = scene.tables();
    let mut busy = vec![0.0; SECONDS];
    for row in (0..SECONDS).filter(|row| has_one(*row)) {
        busy[row] = 0.5;
    }
    for table in &mut tables {
        table.at_s.iter_mut().for_each(|at_s| *at_s *= row_s);
        table.duration_s.fill(row_s);
        let running = MetricId::parse("checkpoint.server.running_count").unwrap();
        if let Some(running) = table.columns.get_mut(&running) {
            running.clone_from(&busy.iter().map(|share| share * 0.9).collect());
            let id = MetricId::parse("checkpoint.server.busy_ratio").unwrap();
            table.columns.insert(id, busy.clone());
        }
    }
    let (mut windows, mut operations) = (scene.windows(), scene.operations());
    for one in &mut windows {
        (one.start_s, one.duration_s) = (one.start_s * row_s, row_s);
    }
    for one in &mut operations {
        let is_slow = has_one(one.start_s as usize);
        (one.start_s, one.duration_s) = (one.start_s * row_s, row_s);
        one.response.mean_us *= if is_slow { 3.0 } else { 1.0 };
    }
    let bench =
        Bench { document: &document, tables: &tables, windows: &windows, operations: &operations };
    let causes = judge(&bench, &[]).causes;
    assert!(causes.iter().any(|one| one.cause == Cause::Checkpoint), "{causes:#?}");
}

#[test]
fn one_short_checkpoint_is_not_enough_evidence() {
    let scene = well();
    let document = scene.document();
    let mut tables = scene.tables();
    let id = MetricId::parse("checkpoint.server.running_count").unwrap();
    tables[1].columns.get_mut(&id).unwrap()[10..12].fill(1.0);
    let bench = Bench {
        document: &document,
        tables: &tables,
        windows: &scene.windows(),
        operations: &scene.operations(),
    };
    // It ran 5 % of the time, with unknown effect: neither found nor ruled out.
    let verdict = judge(&bench, &[]);
    assert_eq!((verdict.causes, verdict.not_watched), (vec![], vec![Cause::Checkpoint]));
}

#[test]
fn unwatched_figure_decides_nothing_and_is_named() {
    let mut blind = well().with("cache.server.hit_ratio", 0.5);
    blind.cache_bytes = 64 << 20;
    blind.host.retain(|(name, _, _)| !name.ends_with("read_bytes_per_s"));
    blind.server.retain(|(name, _, _)| !name.ends_with("read_bytes_per_s"));
    let verdict = blind.judge();
    assert_eq!(verdict.causes, []);
    assert_eq!(verdict.not_watched, [Cause::CacheTooSmall]);
}

#[test]
fn watched_figures_without_meaning_are_not_called_unwatched() {
    let idle =
        ["read_per_s", "write_per_s", "flush_per_s", "read_bytes_per_s", "write_bytes_per_s"];
    let names = idle.map(|name| format!("disk.sda.{name}"));
    let idle = names.iter().fold(well(), |scene, name| scene.with(name, 0.0));
    assert_eq!(idle.judge().not_watched, []);
    // Reads alone, at a constant rate: no write waits, and an open loop cannot have too few clients.
    let mut reads = well();
    (reads.has_writes, reads.round_trip_us) = (false, None);
    assert_eq!(reads.judge().not_watched, []);
    let far = reads.closed().judge();
    assert_eq!(far.not_watched, [Cause::RoundTrip]);
}

#[test]
fn few_seconds_of_measurement_decide_nothing() {
    let scene = durable();
    let document = scene.document();
    let windows = &scene.windows()[..4];
    let bench = Bench { document: &document, tables: &[], windows, operations: &[] };
    assert_eq!(judge(&bench, &[]).causes, []);
}
