use super::*;
use dyno_record::disk::DiskUse;
use dyno_record::experiment::{FindingKind, Law, LawCheck, LawVerdict};
use dyno_record::model::{
    Caveat, CaveatKind, ClientUsage, Effect, Environment, FleetAgentRecord, FleetRecord,
    LatencySummary, Operation, OperationRecord, PhaseKind, PhaseRecord, PlacementRecord,
    ResourceKind, ResourceUse, RunStatus, SCHEMA_VERSION, ServerRecord,
};
use dyno_record::responses::WindowResponses;
use dyno_record::statement::Statement;
use serde_json::json;
use std::collections::HashSet;

pub(in crate::experiment) mod cases;
mod elsewhere;
mod judgement;

/// Operations per window of one second.
const RATE: u64 = 38_900;
/// Length of the measure phase.
const WINDOWS: u64 = 30;

/// The window with the sum of its times.
fn timed(window: WindowResponses) -> WindowResponses {
    WindowResponses {
        response_sum_ns: window
            .response_ns
            .iter()
            .map(|(time_ns, count)| u128::from(time_ns * count))
            .sum(),
        ..window
    }
}

/// Windows of one second with about this many operations each, of which one in a thousand is slow.
fn windows(count: u64, per_window: u64) -> Vec<WindowResponses> {
    (0..count)
        .map(|place| {
            let succeeded = per_window + place * 37 % 101;
            let slow = succeeded / 1000;
            timed(WindowResponses {
                start_s: place as f64,
                duration_s: 1.0,
                succeeded,
                response_ns: vec![
                    (190_000 + place * 17 % 5 * 1000, succeeded / 2),
                    (217_000, succeeded - succeeded / 2 - slow),
                    (900_000 + place * 13 % 7 * 10_000, slow),
                ],
                ..WindowResponses::default()
            })
        })
        .collect()
}

fn resource(resource: ResourceKind, units: u64, busy_s: f64) -> ResourceUse {
    ResourceUse {
        phase: PhaseKind::Measure,
        resource,
        units,
        allowed: None,
        busy_s,
        duration_s: WINDOWS as f64,
        reported: None,
        disks: match resource {
            // A device that serves one request at a time.
            ResourceKind::Disk if units == 1 => vec![DiskUse {
                device: "sda".into(),
                serves_several: Some(false),
                busy_s,
                ..DiskUse::default()
            }],
            _ => Vec::new(),
        },
    }
}

fn measure_phase(windows: &[WindowResponses], response_us: f64) -> PhaseRecord {
    let succeeded: u64 = windows.iter().map(|window| window.succeeded).sum();
    let duration_s = windows.len() as f64;
    let rate = succeeded as f64 / duration_s;
    let latency = LatencySummary { mean: response_us, ..LatencySummary::default() };
    let operation = OperationRecord {
        count: succeeded,
        errors: 0,
        rate_per_s: rate,
        documents: succeeded,
        clamped: 0,
        response_time_us: latency,
        service_time_us: latency,
        start_delay_us: LatencySummary::default(),
    };
    PhaseRecord {
        name: PhaseKind::Measure,
        start_s: 0.0,
        duration_s,
        offered_rate_per_s: None,
        achieved_rate_per_s: rate,
        succeeded,
        failed: 0,
        operations: [("read".to_owned(), operation)].into(),
        errors: Default::default(),
        error_examples: Default::default(),
        arrivals: None,
        mean_think_time_us: None,
        client: ClientUsage {
            cpu_user_s: 0.1 * duration_s,
            cpu_system_s: 0.2 * duration_s,
            ..ClientUsage::default()
        },
        mean_in_flight: rate * response_us * 1e-6,
        little_ratio: Some(1.0),
        keys: None,
        reconnects: 0,
        retries: 0,
        own: Default::default(),
    }
}

/// A closed loop of eight clients against a server on two CPUs of its own, with 48 µs per operation.
fn run_of(windows: Vec<WindowResponses>) -> (RunDocument, PhaseResponses) {
    let phase = measure_phase(&windows, 8.0 / (RATE as f64 + 50.0) * 1e6);
    let busy_s = 48e-6 * phase.succeeded as f64;
    let document = RunDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".to_owned(),
        name: "c".to_owned(),
        started_at: "2026-08-22T10:15:00Z".to_owned(),
        status: RunStatus::Complete,
        status_reason: None,
        plan: json!({
            "client": {"threads": 1, "clients": 8, "seed": 1},
            "operations": {"read": 1.0},
            "schedule": {"kind": "closed"},
        }),
        operations: vec![Operation::new("read", Effect::Read)].into(),
        environment: Environment { cpus: Some(4), ..Environment::default() },
        server: ServerRecord::default(),
        phases: vec![phase],
        instances: Vec::new(),
        fleet: None,
        placement: None,
        host_settings: Vec::new(),
        traces: Vec::new(),
        consumption: Vec::new(),
        resources: vec![
            resource(ResourceKind::ServerCpu, 2, busy_s),
            resource(ResourceKind::Disk, 1, 0.3),
        ],
        sources: Vec::new(),
        collections: Vec::new(),
        secondary_indexes: None,
        checks: Vec::new(),
        dropped: Vec::new(),
        events: Vec::new(),
        caveats: Vec::new(),
        selfcheck: None,
    };
    let responses = PhaseResponses {
        operations: BTreeMap::from([("read".to_owned(), windows.clone())]),
        all: windows,
    };
    (document, responses)
}

pub(in crate::experiment) fn usual() -> (RunDocument, PhaseResponses) {
    run_of(windows(WINDOWS, RATE))
}

fn analysis((document, responses): &(RunDocument, PhaseResponses)) -> RunAnalysis {
    analyze(document, responses, 1).unwrap()
}

fn texts(analysis: &RunAnalysis, kind: FindingKind) -> Vec<String> {
    analysis
        .findings
        .iter()
        .filter(|finding| finding.kind == kind)
        .map(|finding| finding.statement.to_string())
        .collect()
}

#[test]
fn every_headline_number_has_an_interval_that_holds_it() {
    let found = analysis(&usual());
    let read = &found.operations["read"];
    let mut figures = vec![found.figures.rate_per_s, found.figures.response_mean_us];
    figures.extend([read.rate_per_s, read.response_mean_us]);
    for name in ["p50", "p95", "p99", "p99_9"] {
        figures.extend(found.figures.percentile(name));
        figures.push(read.response_us[name]);
    }
    assert_eq!(figures.len(), 12);
    for figure in figures {
        let (low, high) = figure.low.zip(figure.high).unwrap();
        assert!(low <= figure.value && figure.value <= high, "{figure:?}");
    }
    assert_eq!(found.without_interval, []);
    assert_eq!(found.windows, 30);
}

#[test]
fn bottleneck_bounds_the_rate_and_gets_matching_advice() {
    let found = analysis(&usual());
    let bottleneck = found.bottleneck.as_ref().unwrap();
    assert_eq!(bottleneck.demand.name, "server CPU");
    assert!((bottleneck.bound_per_s / (2.0 / 48e-6) - 1.0).abs() < 1e-6);
    assert!((bottleneck.reached_ratio - 0.935).abs() < 0.001);
    let reported = texts(&found, FindingKind::Finding);
    let expected = "bottleneck (bound: 41,700/s, demand: 48.0 µs, is_highest_rate: false, is_near: true, rate: 38,900/s, \
                    resource: resource (name: server CPU), share: 93 %, units: cpus (number: 2))";
    let sentence = reported.iter().find(|text| text.contains("bottleneck"));
    assert_eq!(sentence.map(String::as_str), Some(expected));
    let could = texts(&found, FindingKind::Opportunity);
    assert!(could[0].starts_with("more-cpus"), "{could:?}");
    assert!(!could.iter().any(|text| text.contains("more-clients")));
}

#[test]
fn small_load_shows_no_bound() {
    let found = analysis(&run_of(windows(WINDOWS, RATE / 4)));
    let reported = texts(&found, FindingKind::Finding);
    assert!(reported.iter().any(|text| text.contains("is_small: true")), "{reported:?}");
    let all = serde_json::to_string(&found.findings).unwrap();
    assert!(!all.contains("reached-of-bound") && !all.contains("next-resource"), "{all}");
}

#[test]
fn disks_that_a_record_adds_up_bound_nothing() {
    let mut run = usual();
    // Three devices that are idle on average: one of them may still be full.
    run.0.resources[1] = resource(ResourceKind::Disk, 3, 0.3);
    let found = analysis(&run);
    let could = texts(&found, FindingKind::Opportunity);
    assert!(!could.iter().any(|text| text.contains("disk")), "{could:?}");
    // Busier than the CPUs.
    run.0.resources[1] = resource(ResourceKind::Disk, 3, 87.0);
    let found = analysis(&run);
    let said = texts(&found, FindingKind::Finding);
    let open = "disk-without-bound (because: disk-kind-unknown, disk: disk-device)";
    assert!(said.iter().any(|text| text == open), "{said:#?}");
    let bottleneck = found.bottleneck.expect("the CPUs are known");
    assert_eq!(bottleneck.demand.name, "server CPU");
}

#[test]
fn all_laws_of_a_sound_run_hold() {
    let all = [Law::Little, Law::ForcedFlow, Law::RateBound, Law::ResponseTime];
    for (run, laws) in [(usual(), &all[..3]), (thinking(), &all[..])] {
        let found = analysis(&run);
        let holding = found.figures.laws.iter().filter(|one| one.verdict == LawVerdict::Holds);
        let holding: HashSet<Law> = holding.map(|one| one.law).collect();
        assert_eq!(holding, laws.iter().copied().collect());
        assert!(texts(&found, FindingKind::Warning).is_empty());
    }
}

#[test]
fn broken_law_comes_first_with_its_meaning() {
    let (mut document, responses) = usual();
    document.phases[0].little_ratio = Some(1.2);
    let found = analysis(&(document, responses));
    let first = &found.findings[0];
    assert_eq!(first.kind, FindingKind::Warning);
    let expected = "law-broken (law: law.little, meaning: law-broken.little)";
    assert_eq!(first.statement.to_string(), expected);
    let evidence = first.evidence[0].to_string();
    assert!(
        evidence.contains("difference: 20 %") && evidence.contains("uncertainty: 2.0 %"),
        "{evidence}"
    );
}

#[test]
fn run_too_short_for_intervals_is_reported_without_claims() {
    let mut run = run_of(windows(2, RATE));
    run.0.resources[0].duration_s = 2.0;
    let found = analysis(&run);
    assert_eq!(found.figures.rate_per_s.low, None);
    let reason = |figure: &str| {
        let mut of = found
            .without_interval
            .iter()
            .filter(|one| one.operation.is_none() && one.figure == figure);
        of.next().map(|one| one.reason)
    };
    assert_eq!(reason("rate"), Some(NoInterval::TooFewWindows));
    assert_eq!(reason("p99_9"), Some(NoInterval::TooFewWindows));
    let warnings = texts(&found, FindingKind::Warning);
    assert!(warnings[0].starts_with("intervals-missing"), "{warnings:?}");
    // The demand is counted, whatever the windows say.
    let all = serde_json::to_string(&found.findings).unwrap();
    assert!(all.contains(r#""demand":{"value":48."#), "{all}");
    assert!(!all.contains(r#""low""#), "{all}");
}

#[test]
fn a_percentile_with_nothing_beyond_has_no_interval() {
    let found = analysis(&run_of(windows(30, 200)));
    let missing: Vec<_> = found
        .without_interval
        .iter()
        .filter(|one| one.operation.is_none())
        .map(|one| (one.figure.as_str(), one.reason))
        .collect();
    assert_eq!(missing, [("p99_9", NoInterval::TooFewBeyond)]);
}

#[test]
fn operations_ending_after_the_planned_end_count() {
    let mut late = windows(30, RATE);
    // An outage held these operations back; they end within 0.3 s.
    late.push(timed(WindowResponses {
        start_s: 30.0,
        duration_s: 0.3,
        succeeded: 60_000,
        response_ns: vec![(9_970_000_000, 60_000)],
        ..WindowResponses::default()
    }));
    let whole = whole(&late);
    let found = analysis(&run_of(late)).figures;
    let percent = |percent| Statistic::Percentile { percent };
    let expected_us = whole.value(percent(99.0)).unwrap() / 1e3;
    assert_eq!(found.percentile("p99").map(|p99| p99.value), Some(expected_us));
    assert!((expected_us / 9_970_000.0 - 1.0).abs() < 0.01, "{expected_us}");
    let mean_us = whole.value(Statistic::MeanTime).unwrap() / 1e3;
    assert!((found.response_mean_us.value / mean_us - 1.0).abs() < 1e-9);
}

#[test]
fn unwatched_server_has_no_bottleneck() {
    let (mut document, responses) = usual();
    document.resources.clear();
    let found = analysis(&(document, responses));
    assert_eq!(found.bottleneck, None);
    let warnings = texts(&found, FindingKind::Warning);
    assert!(warnings[0].starts_with("server-not-watched"));
    let all = serde_json::to_string(&found.findings).unwrap();
    assert!(!all.contains(r#""bottleneck""#), "{all}");
}

#[test]
fn server_with_own_cpus_does_not_share_the_clients_cpus() {
    let (mut document, responses) = usual();
    let all_cpus = resource(ResourceKind::HostCpu, 4, 70.0);
    document.resources.push(all_cpus);
    let names = |document: &RunDocument| -> Vec<String> {
        let found = analyze(document, &responses, 1).unwrap();
        found.stations.into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(&document), ["server CPU", "client CPU", "disk"]);
    document.resources[0].units = 4;
    assert_eq!(names(&document), ["CPUs of server and client", "disk"]);
}

#[test]
fn unachieved_rate_and_waits_before_the_send_are_reported() {
    let (mut document, responses) = usual();
    let phase = &mut document.phases[0];
    phase.offered_rate_per_s = Some(60_000.0);
    let operation = phase.operations.get_mut("read").unwrap();
    operation.service_time_us.mean = 100.0;
    let found = analysis(&(document, responses));
    let reported = texts(&found, FindingKind::Finding).join("\n");
    assert!(
        reported.contains("bench-did-not-keep-up (offered: 60,000/s, share: 65 %)"),
        "{reported}"
    );
    assert!(reported.contains("wait-before-send"), "{reported}");
}

#[test]
fn client_limit_is_not_a_server_limit() {
    let (mut document, responses) = usual();
    let busy = Statement::recorded("the client used 99 % of its CPU");
    let kind = CaveatKind::GeneratorBottleneck;
    document.caveats.push(Caveat::of_run(kind, busy.clone()));
    let found = analysis(&(document, responses));
    let first = &found.findings[0];
    assert!(first.statement.code == "generator-bound");
    assert_eq!(first.evidence[0], busy);
}

#[test]
fn an_analysis_survives_json_and_is_the_same_each_time() {
    let run = usual();
    let found = analysis(&run);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<RunAnalysis>(&text).unwrap(), found);
    assert_eq!(analysis(&run), found);
}

#[test]
fn a_run_that_measured_nothing_has_no_analysis() {
    let (mut document, responses) = usual();
    document.phases.clear();
    assert_eq!(analyze(&document, &responses, 1), Err(NothingMeasured));
}

fn law(analysis: &RunAnalysis, wanted: Law) -> Option<&LawCheck> {
    analysis.figures.laws.iter().find(|check| check.law == wanted)
}

/// The usual run with clients that think half of the time; operations take the other half.
fn thinking() -> (RunDocument, PhaseResponses) {
    let (mut document, responses) = usual();
    let phase = &mut document.phases[0];
    for operation in phase.operations.values_mut() {
        operation.service_time_us.mean /= 2.0;
        phase.mean_think_time_us = Some(operation.service_time_us.mean);
    }
    phase.mean_in_flight /= 2.0;
    (document, responses)
}

#[test]
fn closed_loop_without_waits_reports_littles_law_once() {
    let found = analysis(&usual());
    assert!(law(&found, Law::Little).is_some());
    assert!(law(&found, Law::ResponseTime).is_none());
}

#[test]
fn response_time_law_uses_the_measured_think_time() {
    let (mut document, responses) = thinking();
    let found = analysis(&(document.clone(), responses.clone()));
    let check = law(&found, Law::ResponseTime).unwrap();
    assert_eq!(check.verdict, LawVerdict::Holds, "{check:?}");
    assert!(check.difference_ratio.abs() < 0.01, "{check:?}");
    assert!(check.uncertainty_ratio < 0.001, "{check:?}");
    let cycle_us = 2.0 * check.measured * 1e6;
    // A tenth of the cycle that is neither think time nor wait is time that clients have lost.
    document.phases[0].mean_think_time_us = Some(0.4 * cycle_us);
    let found = analysis(&(document, responses));
    let check = law(&found, Law::ResponseTime).unwrap();
    assert_eq!(check.verdict, LawVerdict::Broken, "{check:?}");
}

#[test]
fn long_operation_at_a_phase_end_breaks_no_response_time_law() {
    let (mut document, responses) = thinking();
    let phase = &mut document.phases[0];
    let finished = phase.succeeded as f64;
    let one = phase.operations.values_mut().next().unwrap();
    // An operation that took a twentieth of all others together, partly outside the phase.
    one.service_time_us.max =
        0.05 * finished * one.service_time_us.mean / (1.0 + phase.mean_in_flight);
    phase.mean_think_time_us = phase.mean_think_time_us.map(|think_us| 0.96 * think_us);
    let found = analysis(&(document.clone(), responses.clone()));
    let check = law(&found, Law::ResponseTime).unwrap();
    assert!((check.uncertainty_ratio - 0.05).abs() < 1e-3, "{check:?}");
    assert!(check.difference_ratio.abs() > 0.03, "{check:?}");
    assert_eq!(check.verdict, LawVerdict::Holds, "{check:?}");
    // Without it the same difference is time that clients have lost.
    document.phases[0]
        .operations
        .values_mut()
        .for_each(|one| one.service_time_us.max = one.service_time_us.mean);
    let found = analysis(&(document, responses));
    let check = law(&found, Law::ResponseTime).unwrap();
    assert_eq!(check.verdict, LawVerdict::Broken, "{check:?}");
}

#[test]
fn response_time_law_is_not_judged_for_few_operations() {
    let (mut document, responses) = thinking();
    let phase = &mut document.phases[0];
    phase.duration_s *= 2.0 / phase.succeeded as f64;
    phase.succeeded = 2;
    phase.operations.values_mut().for_each(|one| one.count = 2);
    let found = analysis(&(document, responses));
    let check = law(&found, Law::ResponseTime).unwrap();
    assert_eq!(check.verdict, LawVerdict::TooUncertain, "{check:?}");
}

#[test]
fn read_and_update_of_a_pair_each_obey_the_response_time_law() {
    // Each window has half as many pairs as database operations.
    let mut windows = windows(WINDOWS, RATE);
    for window in &mut windows {
        window.succeeded /= 2;
    }
    let (mut document, mut responses) = thinking();
    let phase = &mut document.phases[0];
    phase.succeeded = windows.iter().map(|window| window.succeeded).sum();
    // Clients think once for both.
    phase.mean_think_time_us = phase.mean_think_time_us.map(|think_us| 2.0 * think_us);
    let one = phase.operations["read"].clone();
    for name in ["read", "update", "read_modify_write"] {
        let mut part = one.clone();
        part.count = phase.succeeded;
        phase.operations.insert(name.to_owned(), part);
    }
    document.plan["operations"] = json!({"read_modify_write": 1.0});
    let parts = vec!["read".into(), "update".into()];
    document.operations = vec![
        Operation::new("read", Effect::Read),
        Operation::new("update", Effect::Update),
        Operation { parts, ..Operation::new("read_modify_write", Effect::Update) },
    ]
    .into();
    responses.all = windows;
    let found = analysis(&(document, responses));
    let check = law(&found, Law::ResponseTime).unwrap();
    assert!(check.difference_ratio.abs() < 0.01, "{check:?}");
}

#[test]
fn unknown_times_of_failed_operations_break_no_law() {
    let (mut document, responses) = thinking();
    document.phases[0].failed = 1000;
    let found = analysis(&(document, responses));
    assert!(law(&found, Law::ResponseTime).is_none());
}

#[test]
fn shares_of_operations_may_vary_as_chance_does() {
    let verdict = |deviations: f64| {
        let (mut document, responses) = usual();
        document.plan["operations"] = json!({"read": 0.95, "update": 0.05});
        let phase = &mut document.phases[0];
        let drawn = phase.succeeded as f64;
        let spread = (drawn * 0.05 * 0.95).sqrt();
        let mut update = phase.operations["read"].clone();
        update.count = (drawn * 0.05 + deviations * spread) as u64;
        phase.operations.insert("update".to_owned(), update);
        let checks = analysis(&(document, responses)).figures.laws;
        let mut checks = checks.into_iter();
        let of_update = |check: &LawCheck| check.subject.as_deref() == Some("update");
        checks.find(of_update).unwrap().verdict
    };
    assert_eq!(verdict(3.5), LawVerdict::Holds);
    // Far beyond chance and the tolerance of 2 %.
    assert_eq!(verdict(12.0), LawVerdict::Broken);
}

#[test]
fn client_capacity_is_limited_by_its_threads() {
    let found = analysis(&usual());
    let client = |found: &RunAnalysis| {
        found
            .figures
            .resources
            .iter()
            .find(|resource| resource.name == "client CPU")
            .map(|resource| resource.servers)
    };
    assert_eq!(client(&found), Some(1));
    let (mut document, responses) = usual();
    document.plan["client"]["threads"] = json!(64);
    assert_eq!(client(&analysis(&(document, responses))), Some(4));
}

#[test]
fn fleet_figures_cover_the_common_window_and_all_clients() {
    let (mut document, mut responses) = usual();
    // A single agent at the end: three windows at a tenth of the rate.
    for mut window in windows(3, RATE / 10) {
        window.is_outside = true;
        responses.all.push(window);
    }
    let with = |responses: &PhaseResponses, document: &RunDocument| {
        analysis(&(document.clone(), responses.clone())).figures
    };
    let expected = analysis(&usual()).figures;
    let found = with(&responses, &document);
    assert_eq!(found.rate_per_s, expected.rate_per_s);
    assert_eq!(found.response_us, expected.response_us);
    assert_eq!((found.clients, found.threads), (8, 1));
    let agent =
        FleetAgentRecord { host: "a".into(), cpus: 4, threads: 3, ..FleetAgentRecord::default() };
    document.fleet = Some(FleetRecord {
        clients: 24,
        agents: vec![agent.clone(), agent],
        ..FleetRecord::default()
    });
    let found = with(&responses, &document);
    assert_eq!((found.clients, found.threads), (24, 6));
    let client = found.resources.iter().find(|resource| resource.name == "client CPU");
    assert_eq!(client.map(|client| client.servers), Some(4), "one host");
}

#[test]
fn only_separate_placement_separates_client_and_server() {
    let shares = |server: &str, client: &str| {
        let (mut document, responses) = usual();
        document.environment.cpus = Some(2);
        document.resources.push(resource(ResourceKind::HostCpu, 2, 59.0));
        document.placement = Some(PlacementRecord {
            request: "as in the test".to_owned(),
            instances: vec![server.to_owned()],
            clients: vec![client.to_owned()],
            notes: Vec::new(),
            achieved: Vec::new(),
            clients_as_planned: None,
            machine: None,
        });
        analysis(&(document, responses)).figures.shares_cpus
    };
    assert!(shares("any@default", "any@default"));
    assert!(!shares("1@default", "0@default"));
    assert!(!shares("any@default", "0@default"));
}
