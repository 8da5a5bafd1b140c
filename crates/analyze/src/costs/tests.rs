mod late;
mod work;

use super::*;
use dyno_record::consumption::{DeviceUse, EnergyUse, NetworkUse, ReadTime, ReadTimes};
use dyno_record::model::{
    ClientUsage, CollectionStatistics, LatencySummary, OperationRecord, ResourceKind, ResourceUse,
    RunStatus,
};
use serde_json::json;

const DURATION_S: f64 = 20.0;
const OPERATIONS: u64 = 100_000;

fn operation(count: u64) -> OperationRecord {
    OperationRecord {
        count,
        errors: 0,
        rate_per_s: count as f64 / DURATION_S,
        documents: count,
        clamped: 0,
        response_time_us: LatencySummary::default(),
        service_time_us: LatencySummary::default(),
        start_delay_us: LatencySummary::default(),
    }
}

/// 60,000 reads, 30,000 updates, 9,000 inserts, 500 deletes and 500 failures.
fn phase() -> PhaseRecord {
    let operations = [("read", 60_000), ("update", 30_000), ("insert", 9_000), ("delete", 500)];
    PhaseRecord {
        name: PhaseKind::Measure,
        start_s: 1.0,
        duration_s: DURATION_S,
        offered_rate_per_s: None,
        achieved_rate_per_s: 4_975.0,
        succeeded: OPERATIONS - 500,
        failed: 500,
        operations: operations.map(|(name, count)| (name.to_owned(), operation(count))).into(),
        errors: Default::default(),
        error_examples: Default::default(),
        arrivals: None,
        mean_think_time_us: None,
        client: ClientUsage { cpu_user_s: 1.0, cpu_system_s: 3.0, ..ClientUsage::default() },
        mean_in_flight: 1.0,
        little_ratio: None,
        keys: None,
        reconnects: 0,
        retries: 0,
        own: Default::default(),
    }
}

fn used() -> Consumption {
    Consumption {
        phase: PhaseKind::Measure,
        start_s: 1.0,
        end_s: 21.0,
        read: None,
        every_s: None,
        processes: 1,
        servers: 1,
        server_cpu_s: Some(5.0),
        server_cpu_error_s: Some(0.02),
        context_switches: Some(300_000),
        context_switches_by: None,
        resident_bytes: Some(200 << 20),
        peak_resident_bytes: Some(300 << 20),
        server_read_bytes: None,
        server_written_bytes: None,
        device: Some(DeviceUse {
            names: vec!["vda".into()],
            read_bytes: 0,
            read_requests: 0,
            written_bytes: 117_000_000,
            write_requests: 2_000,
            flushes: Some(400),
            deferred_bytes: None,
        }),
        network: Some(NetworkUse { received_bytes: 20_000_000, sent_bytes: 80_000_000 }),
        cache_misses: Some(25_000),
        journal_sync_s: Some(2.0),
        dirty_at_start_bytes: Some(0),
        dirty_at_end_bytes: Some(0),
        energy: Some(EnergyUse { energy_joules: 450.0, domains: vec!["package-0".into()] }),
        unknown: Vec::new(),
    }
}

fn read(from_s: f64, until_s: f64) -> ReadTime {
    ReadTime { from_s, until_s }
}

/// A record with a warm-up until the measure phase begins at 1 s, and readings at these times.
fn read_at(kernel: [ReadTime; 2], servers: [ReadTime; 2], is_led: bool) -> RunDocument {
    let mut document = document();
    if is_led {
        let warmup =
            PhaseRecord { name: PhaseKind::Warmup, start_s: 0.0, duration_s: 1.0, ..phase() };
        document.phases.insert(0, warmup);
    }
    document.consumption[0].read = Some(ReadTimes {
        kernel_at_start: kernel[0],
        kernel_at_end: kernel[1],
        servers_at_start: servers[0],
        servers_at_end: servers[1],
    });
    document
}

fn statistics() -> CollectionStatistics {
    CollectionStatistics {
        documents: 100_000,
        data_bytes: Some(100_000_000),
        storage_bytes: Some(90_000_000),
        indexes_bytes: Some(10_000_000),
        ..CollectionStatistics::default()
    }
}

fn collection(at: PhaseEdge, statistics: CollectionStatistics) -> CollectionRecord {
    CollectionRecord {
        phase: PhaseKind::Measure,
        at,
        instance: "server".into(),
        database: "ycsb".into(),
        collection: "usertable".into(),
        statistics,
    }
}

fn document() -> RunDocument {
    let server = json!({
        "kind": "mongod", "address": "x", "local": true, "write_concern": "1", "read_concern": "local", "settings": {},
    });
    let effects = [
        ("read", "read"),
        ("update", "update"),
        ("insert", "insert"),
        ("delete", "delete"),
        ("insert_batch", "insert"),
    ];
    let operations = effects.map(|(name, effect)| json!({"name": name, "effect": effect}));
    let bare = json!({
        "schema_version": 1, "dyno_version": "0", "name": "a", "started_at": "2026-08-22T10:15:00Z",
        "status": "complete", "plan": {}, "operations": operations, "environment": {}, "server": server, "phases": [], "caveats": [],
    });
    let document: RunDocument = serde_json::from_value(bare).expect("a run document");
    assert_eq!(document.status, RunStatus::Complete);
    RunDocument {
        phases: vec![phase()],
        consumption: vec![used()],
        collections: vec![
            collection(PhaseEdge::Start, CollectionStatistics::default()),
            collection(PhaseEdge::End, statistics()),
        ],
        ..document
    }
}

fn costs(document: &RunDocument) -> Costs {
    of_measure(document).expect("counters")
}

fn value(costs: &Costs, kind: CostKind) -> Option<f64> {
    costs.of(kind).map(|figure| figure.value)
}

#[test]
fn counters_are_divided_by_all_operations_that_finished() {
    let costs = costs(&document());
    assert_eq!((costs.basis, costs.basis_count), (CostBasis::Operation, OPERATIONS));
    let expected = [
        (CostKind::ServerCpu, 50.0),
        (CostKind::ClientCpu, 40.0),
        (CostKind::ContextSwitches, 3.0),
        (CostKind::ReadBytes, 0.0),
        (CostKind::WrittenBytes, 1_170.0),
        (CostKind::WriteRequests, 0.02),
        (CostKind::Flushes, 0.004),
        (CostKind::CacheMisses, 0.25),
        (CostKind::JournalSyncs, 20.0),
        (CostKind::ReceivedBytes, 200.0),
        (CostKind::SentBytes, 800.0),
        (CostKind::Energy, 4_500.0),
    ];
    for (kind, expected) in expected {
        let found = value(&costs, kind).expect("a counted figure");
        assert!((found - expected).abs() < 1e-9, "{kind:?}: {found}");
    }
    let cpu = costs.of(CostKind::ServerCpu).expect("a counted figure");
    let (low, high) = cpu.low.zip(cpu.high).expect("ticks have an error");
    assert!((low - 49.8).abs() < 1e-9 && (high - 50.2).abs() < 1e-9, "{cpu:?}");
    let kinds: Vec<CostKind> = costs.values.iter().map(|cost| cost.kind).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
    assert_eq!(value(&costs, CostKind::Price), None);
}

#[test]
fn amplification_is_relative_to_inserted_and_updated_documents() {
    let mut document = document();
    let found = costs(&document);
    // 39,000 documents of 1,000 bytes.
    assert_eq!(value(&found, CostKind::WriteAmplification), Some(3.0));
    assert_eq!(value(&found, CostKind::SpaceAmplification), Some(1.0));
    let changed = found.changed.expect("changed documents");
    assert_eq!((changed.documents, changed.mean_document_bytes), (39_000, 1_000.0));
    // Writes after the phase belong to it.
    let device = document.consumption[0].device.as_mut().expect("a value");
    device.deferred_bytes = Some(39_000_000);
    let found = costs(&document);
    assert_eq!(value(&found, CostKind::WriteAmplification), Some(4.0));
    assert_eq!(value(&found, CostKind::WrittenBytes), Some(1_170.0));
}

/// Changes a record, asserts that these costs are absent, and returns the names of all unknown counters.
fn absent(kinds: &[CostKind], change: impl FnOnce(&mut RunDocument)) -> Vec<Counted> {
    let mut changed = document();
    changed.consumption[0].server_written_bytes = Some(110_000_000);
    assert!(kinds.iter().all(|kind| costs(&changed).of(*kind).is_some()));
    change(&mut changed);
    let found = costs(&changed);
    for kind in kinds {
        assert_eq!(found.of(*kind), None, "{kind:?}");
    }
    found.unknown.iter().map(|one| one.what).collect()
}

#[test]
fn write_amplification_is_absent_when_its_premise_fails() {
    use Counted::{DeviceWrites, WriteAmplification};
    let kinds = [CostKind::WriteAmplification];
    fn device(document: &mut RunDocument) -> &mut DeviceUse {
        document.consumption[0].device.as_mut().expect("a value")
    }
    let dirty_before = absent(&kinds, |one| {
        one.consumption[0].dirty_at_start_bytes = Some(100 << 20);
        device(one).deferred_bytes = Some(1_000);
    });
    let not_written = absent(&kinds, |one| one.consumption[0].dirty_at_end_bytes = Some(100 << 20));
    let no_checkpoint = absent(&kinds, |one| one.consumption[0].dirty_at_end_bytes = None);
    let few_bytes = absent(&kinds, |one| {
        one.phases[0].operations = [("update".to_owned(), operation(1_000))].into();
    });
    let others_after = absent(&kinds, |one| device(one).deferred_bytes = Some(1 << 30));
    for found in [dirty_before, not_written, few_bytes, others_after] {
        assert_eq!(found.last(), Some(&WriteAmplification));
    }
    assert!(no_checkpoint.contains(&WriteAmplification));
    let writes = [
        CostKind::WriteAmplification,
        CostKind::WrittenBytes,
        CostKind::WriteRequests,
        CostKind::Flushes,
    ];
    let others = absent(&writes, |one| one.consumption[0].server_written_bytes = Some(1 << 20));
    assert_eq!(others, [DeviceWrites, WriteAmplification]);
}

#[test]
fn space_amplification_is_absent_when_files_lack_documents() {
    let kinds = [CostKind::SpaceAmplification];
    let not_written = absent(&kinds, |one| one.consumption[0].dirty_at_end_bytes = Some(90 << 20));
    let unknown = absent(&kinds, |one| one.consumption[0].dirty_at_end_bytes = None);
    for found in [not_written, unknown] {
        assert!(found.contains(&Counted::SpaceAmplification), "{found:?}");
    }
}

#[test]
fn reads_of_others_are_not_the_servers() {
    let kinds = [CostKind::ReadBytes, CostKind::ReadRequests];
    let found = absent(&kinds, |one| {
        let used = &mut one.consumption[0];
        used.server_read_bytes = Some(4096);
        used.device.as_mut().expect("a value").read_bytes = 5 << 20;
    });
    assert_eq!(found, [Counted::DeviceReads]);
}

#[test]
fn energy_is_absent_when_others_use_the_processors_more() {
    let kinds = [CostKind::Energy];
    // Servers and client used 9 s.
    let found = absent(&kinds, |one| one.resources.push(host_cpu(20.0)));
    assert_eq!(found, [Counted::Energy]);
    let mut document = document();
    document.resources.push(host_cpu(17.0));
    assert!(costs(&document).of(CostKind::Energy).is_some());
}

fn host_cpu(busy_s: f64) -> ResourceUse {
    ResourceUse {
        phase: PhaseKind::Measure,
        resource: ResourceKind::HostCpu,
        units: 2,
        allowed: None,
        busy_s,
        duration_s: DURATION_S,
        reported: None,
        disks: Vec::new(),
    }
}

#[test]
fn reads_have_no_write_amplification() {
    let mut document = document();
    document.phases[0].operations = [("read".to_owned(), operation(OPERATIONS))].into();
    let found = costs(&document);
    assert_eq!(value(&found, CostKind::WriteAmplification), None);
    assert_eq!((found.changed, found.unknown), (None, Vec::new()));
}

#[test]
fn without_the_size_of_documents_there_is_a_reason() {
    let mut document = document();
    document.collections.clear();
    let found = costs(&document);
    assert_eq!(value(&found, CostKind::WriteAmplification), None);
    let what: Vec<Counted> = found.unknown.iter().map(|one| one.what).collect();
    assert_eq!(what, [Counted::Files, Counted::Documents]);
}

#[test]
fn a_load_is_divided_by_its_documents() {
    let mut document = document();
    let mut batches = operation(100);
    batches.documents = 10_000;
    let phase = PhaseRecord {
        name: PhaseKind::Load,
        succeeded: 100,
        failed: 0,
        operations: [("insert_batch".to_owned(), batches)].into(),
        ..phase()
    };
    document.consumption[0].phase = PhaseKind::Load;
    document.plan = json!({"price": {"per_h": 0.36}});
    let found = of_phase(&document, &phase, Figure::bare(5.0)).expect("a counted figure");
    assert_eq!((found.basis, found.basis_count), (CostBasis::Document, 10_000));
    assert_eq!(value(&found, CostKind::ServerCpu), Some(500.0));
    // 0.0001 a second, and 500 documents.
    let price = value(&found, CostKind::Price).expect("a price");
    assert!((price - 0.2).abs() < 1e-12, "{price}");
}

#[test]
fn price_is_the_hourly_price_by_the_rate_with_its_interval() {
    let mut document = document();
    document.plan = json!({"price": {"per_h": 0.504, "currency": "USD"}});
    let rate = Figure { value: 10_000.0, low: Some(8_000.0), high: Some(14_000.0) };
    let found = of_phase(&document, &phase(), rate).expect("a counted figure");
    let price = found.of(CostKind::Price).expect("a price");
    let near = |found: Option<f64>, expected: f64| {
        (found.expect("a known value") - expected).abs() < 1e-12
    };
    assert!(near(Some(price.value), 0.014), "{price:?}");
    assert!(near(price.low, 0.01) && near(price.high, 0.0175), "{price:?}");
    assert_eq!(found.currency.as_deref(), Some("USD"));
    // A price is known even without counters.
    document.consumption.clear();
    let found = of_phase(&document, &phase(), rate).expect("a price");
    let kinds: Vec<CostKind> = found.values.iter().map(|cost| cost.kind).collect();
    assert_eq!(kinds, [CostKind::ClientCpu, CostKind::Price]);
    assert_eq!(found.unknown[0].what, Counted::ServerCpu);
}

#[test]
fn records_without_counters_have_no_costs() {
    let mut document = document();
    document.consumption.clear();
    assert_eq!(of_measure(&document), None);
}

fn of_cpu(us: f64) -> Costs {
    let mut found = costs(&document());
    found.values = vec![Cost { kind: CostKind::ServerCpu, value: Figure::bare(us) }];
    found
}

#[test]
fn ratios_of_pairs_have_students_interval_of_their_logarithm() {
    let sides = [(50.0, 100.0), (40.0, 88.0), (60.0, 108.0)].map(|(a, b)| [of_cpu(a), of_cpu(b)]);
    let pairs: Vec<[&Costs; 2]> = sides.iter().map(|[a, b]| [a, b]).collect();
    let found = ratios(&pairs);
    let one = found.first().expect("a ratio");
    // t with two degrees of freedom is 4.303; the logarithms of 2, 2.2 and 1.8 deviate by 0.1005.
    assert!((one.ratio.value - 1.9933).abs() < 1e-3, "{one:?}");
    let factor = (4.303 * 0.1005 / 3.0_f64.sqrt()).exp();
    let (low, high) = one.ratio.low.zip(one.ratio.high).expect("three pairs");
    assert!(
        (low - 1.9933 / factor).abs() < 2e-3 && (high - 1.9933 * factor).abs() < 2e-3,
        "{one:?}"
    );
    assert!((one.baseline - 49.32).abs() < 0.01, "{one:?}");
    assert_eq!(one.currency, None);
    // A cost of 0 before has no ratio; a cost of 0 in all runs after has one, without an interval.
    let (none, some) = (of_cpu(0.0), of_cpu(2.0));
    assert_eq!(ratios(&[[&none, &some]]), []);
    assert_eq!(ratios(&[[&none, &none]]), []);
    assert_eq!(ratios(&[[&some, &none], [&some, &some]]), []);
    let gone = &ratios(&[[&some, &none], [&some, &none]])[0];
    assert_eq!((gone.candidate, gone.ratio), (0.0, Figure::bare(0.0)));
    assert!((gone.baseline - 2.0).abs() < 1e-9, "{gone:?}");
    // Prices compare in one currency only.
    let priced = |currency: &str| Costs {
        currency: Some(currency.to_owned()),
        values: vec![Cost { kind: CostKind::Price, value: Figure::bare(2.0) }],
        ..of_cpu(1.0)
    };
    let (dollars, euros) = (priced("USD"), priced("EUR"));
    assert_eq!(ratios(&[[&dollars, &euros]]), []);
    let one = &ratios(&[[&dollars, &dollars]])[0];
    assert_eq!(one.currency.as_deref(), Some("USD"));
    // A single pair does not show the variation.
    let alone = ratios(&pairs[..1]);
    assert!((alone[0].ratio.value - 2.0).abs() < 1e-9 && alone[0].ratio.low.is_none(), "{alone:?}");
}

#[test]
fn ratios_of_independent_runs_use_all_runs_and_welchs_interval() {
    let runs = |all: &[f64]| -> Vec<RunDocument> {
        let with = |cpu_s: &f64| {
            let mut run = document();
            run.consumption[0].server_cpu_s = Some(*cpu_s);
            run
        };
        all.iter().map(with).collect()
    };
    let compared = |a: &[f64], b: &[f64]| {
        let found = ratios_of_runs([&runs(a), &runs(b)]).into_iter();
        let mut found = found.filter(|one| one.kind == CostKind::ServerCpu);
        found.next().expect("a ratio")
    };
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-3;
    // The logarithms of A deviate by ln 1.25, those in B do not: t with two degrees of freedom is 4.303.
    let one = compared(&[4.0, 6.25, 5.0], &[10.0, 10.0]);
    assert!(near(one.baseline, 50.0), "{one:?}");
    assert!(near(one.ratio.value, 2.0), "{one:?}");
    let factor = (4.303 * 1.25_f64.ln() / 3.0_f64.sqrt()).exp();
    let (low, high) = one.ratio.low.zip(one.ratio.high).expect("A has three runs");
    assert!(near(low, 2.0 / factor), "{one:?}");
    assert!(near(high, 2.0 * factor), "{one:?}");
    // A single run is assumed to vary like the other side's runs.
    let one = compared(&[4.0, 5.0, 6.25], &[10.0]);
    let deviation = 1.25_f64.ln() * (1.0 / 3.0 + 1.0_f64).sqrt();
    let high = one.ratio.high.expect("A has three runs");
    assert!(near(high, 2.0 * (4.303 * deviation).exp()), "{one:?}");
    assert_eq!(compared(&[5.0], &[10.0]).ratio.high, None);
}

/// A recorded run with this CPU time of the servers, uncertain by `error_us` to each side.
fn run_with(us: f64, error_us: f64) -> Figures {
    let golden = include_str!("../../../record/tests/golden/experiments/xmax.json");
    let experiment: dyno_record::experiment::Experiment =
        serde_json::from_str(golden).expect("an experiment");
    let mut recorded = experiment.points.into_iter().filter_map(|point| point.figures);
    let figures = recorded.next().expect("a run");
    let value = Figure { value: us, low: Some(us - error_us), high: Some(us + error_us) };
    let kind = CostKind::ServerCpu;
    let costs = Costs { values: vec![Cost { kind, value }], ..of_cpu(us) };
    Figures { costs: Some(costs), ..figures }
}

#[test]
fn students_interval_of_runs_is_at_least_their_own_uncertainty() {
    let of = |us: [f64; 2], error_us: f64| {
        let runs = us.map(|us| run_with(us, error_us));
        let found = of_runs(&[&runs[0], &runs[1]]);
        let one = found.first().expect("a cost").value;
        let half = |end: Option<f64>| (end.expect("two ends") - one.value).abs();
        (one.value, half(one.low), half(one.high))
    };
    // If equal: the mean of both errors, which may have the same direction.
    let (mean, below, above) = of([50.0, 50.0], 10.0);
    assert_eq!(mean, 50.0);
    assert!((below - 10.0).abs() < 1e-9 && (above - below).abs() < 1e-9, "{below}");
    // If they differ by 2: t with one degree of freedom is 12.706, and the mean deviates by 1.
    let (mean, below, _) = of([49.0, 51.0], 0.1);
    assert!((mean - 50.0).abs() < 1e-9 && (below - 12.706).abs() < 1e-2, "{below}");
    // Costs that only some runs know are not reported.
    let (known, mut other) = (run_with(50.0, 1.0), run_with(50.0, 1.0));
    other.costs = None;
    assert_eq!(of_runs(&[&known, &other]), []);
}
