use super::*;
use crate::experiment::figures::resource_name;
use crate::experiment::stations::{SHARED_CPUS, Sharing, stations};
use crate::experiment::sweep::analyze;
use crate::laws;
use crate::laws::demand::bottleneck;
use crate::laws::demand::demand;
use crate::resampling::Resampling;
use crate::uncertainty::histogram::SparseHistogram;
use crate::uncertainty::series::IntervalSample;
use crate::values::reported;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::FindingKind;
use dyno_record::experiment::{
    Axis, CLIENTS, Demand, DiskFigures, Figure, Figures, Knee, Options, Point, RATE, Resource,
    SCHEMA_VERSION, SweepAnswer, Verb,
};
use dyno_record::model::{Caveat, CaveatKind, ResourceKind};
use dyno_record::statement::Statement;
use std::collections::BTreeMap;

mod blocks;
mod cases;
mod disks;
mod disturbed;
mod intervals;
mod relative;
mod think_time;

/// Server CPU demand of an operation on the bench of these tests: 80 µs, and 20 µs for the client's CPU.
const SERVER_S: f64 = 80e-6;
const CLIENT_S: f64 = 20e-6;
const DISK_S: f64 = 1e-6;

fn figure(value: f64, error_ratio: f64) -> Figure {
    Figure {
        value,
        low: Some(value * (1.0 - error_ratio)),
        high: Some(value * (1.0 + error_ratio)),
    }
}

fn resource(kind: ResourceKind, servers: u32, busy_servers: f64) -> Resource {
    Resource {
        name: resource_name(kind).to_owned(),
        servers,
        quota: None,
        busy_ratio: busy_servers / f64::from(servers),
        uncertainty_ratio: 0.01,
    }
}

/// A run on two CPUs that client and server share, with a rate known to ± 1 %.
pub(super) fn figures(
    clients: u32,
    offered_rate_per_s: Option<f64>,
    rate: f64,
    mean_us: f64,
) -> Figures {
    let both = rate * (SERVER_S + CLIENT_S);
    let resources = vec![
        resource(ResourceKind::ServerCpu, 2, rate * SERVER_S),
        resource(ResourceKind::HostCpu, 2, both),
        resource(ResourceKind::Disk, 1, rate * DISK_S),
        resource(ResourceKind::ClientCpu, 2, rate * CLIENT_S),
    ];
    let rate_per_s = figure(rate, 0.01);
    Figures {
        costs: None,
        clients,
        threads: 1,
        offered_rate_per_s,
        rate_per_s,
        response_mean_us: figure(mean_us, 0.02),
        response_us: BTreeMap::from([("p99".to_owned(), figure(mean_us * 3.0, 0.05))]),
        service_mean_us: mean_us,
        think_mean_us: None,
        mean_in_flight: rate * mean_us * 1e-6,
        succeeded: 10_000,
        failed_ratio: 0.0,
        dropped_ratio: 0.0,
        duration_s: 10.0,
        warm_up_s: 0.0,
        shares_cpus: true,
        shared_cpus: None,
        stolen_ratio: None,
        server: None,
        server_address: None,
        steady: Some(true),
        demands: resources
            .iter()
            .filter_map(|resource| demand(resource, Quantity::exact(rate)))
            .collect(),
        resources,
        disks: vec![DiskFigures {
            device: "sda".into(),
            serves_several: Some(false),
            busy_ratio: rate * DISK_S,
            ..DiskFigures::default()
        }],
        laws: laws::little(
            Quantity::exact(rate * mean_us * 1.001),
            Quantity::exact(rate),
            Quantity::exact(mean_us),
        )
        .into_iter()
        .collect(),
        caveats: Vec::new(),
    }
}

pub(super) fn experiment(axis: (&str, &[&str]), runs: Vec<Figures>) -> Experiment {
    let (key, values) = axis;
    let points = values.iter().zip(runs).enumerate();
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        verb: Verb::Sweep,
        question: "how".into(),
        name: "a".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Complete,
        ended_at: None,
        status_reason: None,
        plan: serde_json::Value::Null,
        options: Options::default(),
        axes: vec![Axis {
            key: key.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        }],
        environment: None,
        hosts: BTreeMap::new(),
        server_machines: BTreeMap::new(),
        points: points
            .map(|(number, (value, figures))| Point {
                settings: BTreeMap::from([(key.to_owned(), (*value).to_owned())]),
                side: None,
                workload: None,
                block: None,
                repeat: 0,
                directory: format!("runs/{number}"),
                figures: Some(figures),
                problem: None,
                refused: None,
                stolen_ratio: None,
                ended_after_s: None,
                server_ended: false,
                storage: None,
            })
            .collect(),
        answer: None,
        limits: Vec::new(),
        findings: Vec::new(),
        caveats: Vec::new(),
    }
}

fn answered(mut experiment: Experiment) -> Experiment {
    let resampling = Resampling::seeded(1);
    let answer = analyze(&experiment, &BTreeMap::new(), resampling).expect("points");
    experiment.answer = Some(Answer::Sweep(Box::new(answer)));
    experiment
}

fn answer(experiment: &mut Experiment) -> &mut SweepAnswer {
    match experiment.answer.as_mut().expect("an answer") {
        Answer::Sweep(answer) => answer,
        other => panic!("not a sweep: {other:?}"),
    }
}

/// 1 to 16 clients: 2 CPUs at 100 µs per operation saturate at 20,000/s.
fn clients() -> Experiment {
    let rows = [
        (1, 8_000.0, 125.0),
        (2, 14_000.0, 143.0),
        (4, 18_000.0, 222.0),
        (8, 18_800.0, 425.0),
        (16, 17_000.0, 941.0),
    ];
    let runs = rows.map(|(clients, rate, mean_us)| figures(clients, None, rate, mean_us));
    answered(experiment((CLIENTS, &["1", "2", "4", "8", "16"]), runs.to_vec()))
}

/// Random arrivals, as in a queue with Poisson arrivals.
fn rates() -> Experiment {
    rates_of("poisson")
}

fn rates_of(schedule: &str) -> Experiment {
    let rows = [
        (1_000.0, 1_000.0, 130.0),
        (10_000.0, 10_000.0, 180.0),
        (16_000.0, 16_000.0, 700.0),
        (30_000.0, 19_000.0, 90_000.0),
    ];
    let runs = rows.map(|(offered, rate, mean_us)| figures(64, Some(offered), rate, mean_us));
    let mut experiment = experiment((RATE, &["1000", "10000", "16000", "30000"]), runs.to_vec());
    experiment.plan = serde_json::json!({"schedule": {"kind": schedule, "rate_per_s": 1000}});
    answered(experiment)
}

fn texts(experiment: &Experiment) -> Vec<String> {
    let all = findings(experiment);
    assert!(all.iter().all(|finding| !finding.evidence.is_empty()));
    all.into_iter().map(|finding| finding.statement.to_string()).collect()
}

fn the(experiment: &Experiment, word: &str) -> Finding {
    let all = findings(experiment);
    let found: Vec<&Finding> =
        all.iter().filter(|f| f.statement.to_string().contains(word)).collect();
    assert_eq!(found.len(), 1, "{word}: {all:#?}");
    found[0].clone()
}

/// The only evidence with this code.
fn evidence(experiment: &Experiment, code: &str) -> Statement {
    let all = findings(experiment).into_iter().flat_map(|finding| finding.evidence);
    let found: Vec<Statement> = all.filter(|one| one.code == code).collect();
    assert_eq!(found.len(), 1, "{code}: {found:?}");
    found[0].clone()
}

fn none_says(experiment: &Experiment, word: &str) {
    let evidence = findings(experiment).into_iter().flat_map(|finding| finding.evidence);
    let codes = evidence.map(|one| one.code);
    let texts: Vec<String> = texts(experiment).into_iter().chain(codes).collect();
    assert!(!texts.iter().any(|text| text.contains(word)), "{texts:#?}");
}

#[test]
fn bottleneck_is_reported_with_demand_bound_and_measured_share() {
    let found = the(&clients(), "is_near: true");
    assert_eq!(
        found.statement.to_string(),
        "bottleneck (bound: 20,000/s, demand: 100 µs, is_highest_rate: true, is_near: true, rate: 18,800/s, resource: \
         resource (name: CPUs of server and client), share: 94 %, units: cpus (number: 2))"
    );
    assert_eq!(
        found.evidence[1].to_string(),
        "busy (at: with-clients (clients: [8]), resources: [resource-busy (is_first: true, resource: resource (name: \
         server CPU), share: 75 %), resource-busy (is_first: false, resource: resource (name: client CPU), share: 19 %), \
         resource-busy (is_first: false, resource: resource (name: disk), share: 1.9 %), resource-busy (is_first: false, \
         resource: resource (name: all CPUs of the machine), share: 94 %)])"
    );
}

#[test]
fn waiting_that_measured_queues_do_not_explain_is_reported() {
    let mut experiment = clients();
    answer(&mut experiment).levels[4].response_mean_us = figure(850.0, 0.02);
    let explained = the(&experiment, "waiting-explained");
    assert!(explained.evidence[0].to_string().contains("(clients: [16]), measured: 850 µs"));
    let last = answer(&mut experiment).levels.last_mut().unwrap();
    last.response_mean_us = figure(1_600.0, 0.02);
    let found = the(&experiment, "waiting-unexplained");
    assert_eq!(
        found.statement.to_string(),
        "waiting-unexplained (at: with-clients (clients: [16]), share: 50 %)"
    );
}

#[test]
fn a_queue_is_fitted_to_rates_that_were_kept_only() {
    none_says(&rates_of("constant"), "queue");
    let found = the(&rates(), "queue-contradicted");
    assert!(
        found.evidence[0].to_string().contains("highest: 16,000/s, lowest: 1,000/s"),
        "{found:?}"
    );
    let mut experiment = rates();
    let queue = answer(&mut experiment).queue.as_mut().unwrap();
    (queue.contradicted_by_per_s, queue.applies) = (None, true);
    let found = the(&experiment, "queue-fits");
    assert!(found.evidence[1].to_string().contains("is_extrapolated: true"));
    answer(&mut experiment).queue.as_mut().unwrap().applies = false;
    the(&experiment, "no-simple-queue");
}

#[test]
fn unwatched_server_has_no_bottleneck_and_no_bounds() {
    let runs = [(1, 8_000.0), (4, 18_000.0), (8, 18_800.0)].map(|(clients, rate)| {
        let mut run = figures(clients, None, rate, f64::from(clients) / rate * 1e6);
        let client = resource_name(ResourceKind::ClientCpu);
        run.resources.retain(|resource| resource.name == client);
        run.demands.retain(|demand| demand.name == client);
        run
    });
    let mut experiment = answered(experiment((CLIENTS, &["1", "4", "8"]), runs.to_vec()));
    assert_eq!(
        the(&experiment, "server-not-watched").evidence[0].to_string(),
        "runs-without-figure (all: 3, figure: use-of (resource: resource (name: server CPU)), runs: 3)"
    );
    for word in ["bottleneck", "operations-wait-beyond", "waiting-unexplained", "more-cpus"] {
        none_says(&experiment, word);
    }
    let answer = answer(&mut experiment);
    assert!(answer.system.is_none() && answer.bounds.is_empty() && answer.network.is_empty());
}

#[test]
fn without_a_lone_client_only_the_demand_bounds() {
    let runs = [(2, 14_000.0), (4, 18_000.0), (8, 18_800.0)]
        .map(|(clients, rate)| figures(clients, None, rate, f64::from(clients) / rate * 1e6));
    let mut experiment = answered(experiment((CLIENTS, &["2", "4", "8"]), runs.to_vec()));
    assert!(the(&experiment, "is_near: true").statement.to_string().contains("20,000/s"));
    none_says(&experiment, "operations-wait-beyond");
    none_says(&experiment, "law.response_bound");
    let answer = answer(&mut experiment);
    assert!(answer.bounds.is_empty() && answer.network.is_empty());
    assert_eq!(answer.saturation_clients, None);
}

#[test]
fn load_dependent_demand_is_reported_and_breaks_no_law() {
    let mut runs = vec![
        figures(1, None, 8_000.0, 125.0),
        figures(4, None, 18_000.0, 222.0),
        figures(8, None, 18_800.0, 425.0),
    ];
    none_says(&answered(experiment((CLIENTS, &["1", "4", "8"]), runs.clone())), "demand-varies");
    let server = resource(ResourceKind::ServerCpu, 2, 8_000.0 * 2.0 * SERVER_S);
    runs[0].demands[0] = demand(&server, Quantity::exact(8_000.0)).unwrap();
    runs[0].resources[0] = server;
    let of = |axis: (&str, &[&str])| answered(experiment(axis, runs.clone()));
    let setting = of(("server.cache", &["1GiB", "2GiB", "4GiB"]));
    let setting = &the(&setting, "demand-varies").statement.to_string();
    assert!(setting.contains("what: setting"), "{setting}");
    let experiment = of((CLIENTS, &["1", "4", "8"]));
    let found = the(&experiment, "demand-varies");
    assert_eq!(
        reported(&found.evidence),
        [
            "demand-at-level (at: with-clients (clients: [1]), best: with-clients (clients: [8]), best_demand: 80.0 µs, \
             demand: 160 µs, difference: 100 %, resource: resource (name: server CPU))"
        ]
    );
    none_says(&experiment, "law-broken");
}

#[test]
fn single_point_is_named_by_its_settings() {
    let runs = vec![figures(8, None, 18_800.0, 425.0)];
    let experiment = answered(experiment((CLIENTS, &["8"]), runs));
    assert!(
        the(&experiment, "highest-rate (")
            .statement
            .to_string()
            .contains("with-settings (settings: [`client.clients=8`])")
    );
}

#[test]
fn connections_at_an_offered_rate_are_not_load() {
    let runs = [2, 4, 8].map(|clients| figures(clients, Some(5_000.0), 5_000.0, 150.0));
    let experiment = answered(experiment((CLIENTS, &["2", "4", "8"]), runs.to_vec()));
    none_says(&experiment, "knee");
    none_says(&experiment, "more-load");
    // The schedule is the limit here.
    none_says(&experiment, "more-cpus");
}

#[test]
fn no_bottleneck_is_named_far_from_its_bound() {
    let mut runs = Vec::new();
    for clients in [1, 2] {
        runs.push(figures(clients, None, 1_000.0 * f64::from(clients), 1_000.0));
    }
    let experiment = answered(experiment((CLIENTS, &["1", "2"]), runs));
    none_says(&experiment, "is_near: true");
    assert!(the(&experiment, "is_near: false").statement.to_string().contains("10 %"));
    none_says(&experiment, "more-cpus");
}

#[test]
fn highest_rate_names_a_setting_that_may_be_as_fast() {
    let runs = vec![figures(8, None, 18_000.0, 444.0), figures(8, None, 18_800.0, 425.0)];
    let mut experiment = answered(experiment(("server.cache", &["1GiB", "2GiB"]), runs));
    let rival = "rival: with-settings (settings: [`server.cache=1GiB`])";
    assert!(!the(&experiment, "highest-rate (").statement.to_string().contains("rival"));
    for uncertain in [figure(18_000.0, 0.05), Figure::bare(18_000.0)] {
        answer(&mut experiment).levels[0].rate_per_s = uncertain;
        let found = the(&experiment, "highest-rate (");
        assert!(found.statement.to_string().contains(rival), "{found:?}");
        assert!(found.evidence[1].to_string().contains("rate: 18,000/s"), "{found:?}");
    }
}

#[test]
fn waiting_begins_where_the_asymptotes_meet() {
    assert_eq!(
        evidence(&clients(), "operations-wait-beyond").to_string(),
        "operations-wait-beyond (clients: 2.50 in 2.44 to 2.56, is_certain: true)"
    );
    assert_eq!(
        evidence(&clients(), "lone-operation").to_string(),
        "lone-operation (clients: 2.50, each: 50.0 µs, lone: 125 µs, resource: resource (name: CPUs of server and client))"
    );
}

#[test]
fn knee_is_placed_or_reported_as_outside() {
    let mut experiment = clients();
    let mut reported = |knee, code| {
        answer(&mut experiment).knee = Some(knee);
        evidence(&experiment, code).to_string()
    };
    let found =
        Knee::Found { load: 3.21, low: 2.0, high: 4.0, rate_per_s: 16_500.0, response_s: 190e-6 };
    assert_eq!(reported(found, "knee"), "knee (high: 4, is_rate: false, load: 3.21, low: 2)");
    let above = Knee::AboveMeasured { highest_load: 16.0 };
    assert_eq!(reported(above, "knee-above"), "knee-above (is_rate: false, load: 16)");
    let below = Knee::BelowMeasured { lowest_load: 1.0 };
    assert_eq!(reported(below, "knee-below"), "knee-below (is_rate: false, load: 1)");
}

#[test]
fn decline_is_reported_with_its_size() {
    let said = evidence(&clients(), "more-load-is-slower").to_string();
    assert!(said.contains(
        "at: with-clients (clients: [16]), best: with-clients (clients: [8]), loss: 9.6 %"
    ));
}

#[test]
fn a_broken_law_is_a_warning_with_its_meaning_and_the_level() {
    let mut experiment = clients();
    let check = &mut answer(&mut experiment).levels[4].laws[0];
    check.verdict = dyno_record::experiment::LawVerdict::Broken;
    check.difference_ratio = -0.2;
    let found = the(&experiment, "law-broken");
    assert_eq!(found.kind, FindingKind::Warning);
    assert!(
        found.statement.to_string().starts_with(
            "law-broken-at-levels (at: with-clients (clients: [16]), law: law.little,"
        )
    );
    assert!(found.evidence[0].to_string().contains("difference: -20 %"), "{found:?}");
}

#[test]
fn answer_over_rates_names_the_highest_achieved_and_the_next() {
    let found = the(&rates(), "achieved-offered-rates");
    let said = found.statement.to_string();
    assert!(said.contains("kept: 16,000/s, next: at-offered-rates (rates: [30,000/s])"), "{said}");
    assert!(found.evidence[1].to_string().ends_with("share: 63 %)"), "{found:?}");
}

#[test]
fn answer_over_clients_is_a_range_by_the_intervals() {
    let recommended = |experiment: &Experiment| {
        let found = the(experiment, "recommended-clients").statement;
        let flag = found.values.contains_key("rises");
        (found.number("clients"), found.number("most"), flag)
    };
    let mut experiment = clients();
    // 4 clients reach 96 % of the highest rate, and 16 certainly less than 95 %.
    assert_eq!(recommended(&experiment), (Some(4.0), Some(8.0), false));
    answer(&mut experiment).levels[2].rate_per_s = figure(18_800.0 * 0.92, 0.01);
    assert_eq!(recommended(&experiment), (Some(8.0), None, false));
    answer(&mut experiment).levels[4].rate_per_s = figure(30_000.0, 0.01);
    answer(&mut experiment).best = 4;
    assert_eq!(recommended(&experiment), (Some(16.0), None, true));
}

#[test]
fn answer_over_clients_recommends_nothing_by_chance() {
    let with_error = |error_ratio| {
        let mut experiment = clients();
        let rates = [12_800.0, 12_500.0, 12_700.0, 12_600.0, 12_611.0];
        let answer = answer(&mut experiment);
        for (level, rate) in answer.levels.iter_mut().zip(rates) {
            level.rate_per_s = figure(rate, error_ratio);
        }
        answer.best = 0;
        experiment
    };
    let mut uncertain = with_error(0.25);
    none_says(&uncertain, "recommended-clients");
    let said = |experiment: &Experiment| the(experiment, "indistinct-clients").statement;
    assert_eq!(
        said(&uncertain).to_string(),
        "indistinct-clients (clients: 1, enough: 1, highest: 12,800/s, is_overlapping: true, lowest: 12,500/s, most: 16, repeat: 3, \
         waits_less: true)"
    );
    answer(&mut uncertain).levels[0].rate_per_s = Figure::bare(12_800.0);
    assert!(said(&uncertain).to_string().contains("lacks_interval: true"));
    // Certainly the same rate within 5 %: all are enough.
    let certain = the(&with_error(0.002), "recommended-clients").statement;
    assert_eq!((certain.number("clients"), certain.number("most")), (Some(1.0), Some(16.0)));
}

#[test]
fn limiting_generator_comes_first() {
    let mut experiment = clients();
    answer(&mut experiment).levels[3].generator_bound = true;
    let first = &findings(&experiment)[0];
    assert_eq!(first.kind, FindingKind::Warning);
    assert!(first.statement.to_string().contains("(clients: [8])"));
    assert!(first.statement.to_string().contains("includes_best: true"));
}

#[test]
fn errors_drops_and_drifts_are_reported_with_their_levels() {
    let mut experiment = rates();
    experiment.points[3].figures.as_mut().expect("a run").steady = Some(false);
    let level = &mut answer(&mut experiment).levels[3];
    (level.failed_ratio, level.dropped_ratio, level.unsteady) = (0.02, 0.3, true);
    assert_eq!(
        reported(&the(&experiment, "failed-at-levels").evidence),
        ["failed-share (at: at-offered-rates (rates: [30,000/s]), share: 2.0 %)"]
    );
    assert!(the(&experiment, "dropped-at-levels").evidence[0].to_string().contains("share: 30 %"));
    assert!(
        the(&experiment, "unsteady-at-levels").evidence[0].to_string().contains("runs: [runs/3]")
    );
}

#[test]
fn rate_with_a_wide_or_missing_interval_is_reported() {
    let mut experiment = clients();
    answer(&mut experiment).levels[0].rate_per_s = figure(8_000.0, 0.3);
    answer(&mut experiment).levels[1].rate_per_s = Figure::bare(14_000.0);
    let found = the(&experiment, "rate-poorly-known");
    assert!(found.statement.to_string().contains("(clients: [1, 2])"), "{found:?}");
    assert_eq!(
        reported(&found.evidence),
        [
            "intervals-of-rates (intervals: [interval-of-rate (at: with-clients (clients: [1]), is_known: true, rate: 8,000/s in 5,600/s to 10,400/s), \
             no-interval-of-rates (at: with-clients (clients: [2]), rates: [14,000/s])])"
        ]
    );
}

#[test]
fn other_processes_on_the_machine_are_reported() {
    let mut experiment = clients();
    let busy = &mut answer(&mut experiment).levels[0].busy_ratio;
    busy.insert(resource_name(ResourceKind::HostCpu).to_owned(), 0.95);
    let found = the(&experiment, "others-use-machine");
    // Server and client are busy for 32 % and 8 % at 8,000/s.
    assert!(found.statement.to_string().contains("(clients: [1]), most: 55 %"), "{found:?}");
    let busy = "cpus-busy-for-others (all: 1.90, at: with-clients (clients: [1]), client: 0.160, cpus: 2, others: 1.10, server: 0.640)";
    assert_eq!(reported(&found.evidence), [busy]);
}

#[test]
fn saturated_one_thread_client_is_not_another_process() {
    // A thread at its limit is half of two CPUs, and the server uses a quarter.
    let mut experiment = clients();
    let level = &mut answer(&mut experiment).levels[0];
    let client = resource_name(ResourceKind::ClientCpu);
    for demand in &mut level.demands {
        if demand.name == client {
            demand.servers = 1;
        }
    }
    let uses = [
        (ResourceKind::HostCpu, 0.85),
        (ResourceKind::ServerCpu, 0.25),
        (ResourceKind::ClientCpu, 1.0),
    ];
    for (kind, ratio) in uses {
        level.busy_ratio.insert(resource_name(kind).to_owned(), ratio);
    }
    // 1.7 of 2 CPUs less 0.5 and 1.
    assert!(the(&experiment, "others-use-machine").statement.to_string().contains("most: 10 %"));
    level_uses(&mut experiment, 0.75);
    none_says(&experiment, "others-use-machine");
}

/// Sets the utilization of all CPUs with one client.
fn level_uses(experiment: &mut Experiment, all_ratio: f64) {
    let busy = &mut answer(experiment).levels[0].busy_ratio;
    busy.insert(resource_name(ResourceKind::HostCpu).to_owned(), all_ratio);
}

#[test]
fn interrupted_experiment_states_how_much_was_done() {
    let mut experiment = clients();
    experiment.status = RunStatus::Partial;
    experiment.status_reason = Some("interrupted by a signal".into());
    experiment.points[4].figures = None;
    let first = &findings(&experiment)[0];
    assert_eq!(first.statement.to_string(), "experiment-not-complete (all: 5, done: 4)");
    assert_eq!(
        reported(&first.evidence),
        ["experiment-ended-early (reason: interrupted by a signal)"]
    );
}

#[test]
fn opportunities_rest_on_measured_values() {
    let experiment = clients();
    let cpus = the(&experiment, "more-cpus");
    assert_eq!(cpus.kind, FindingKind::Opportunity);
    assert!(cpus.statement.to_string().ends_with("(each: 10,000/s)"), "{cpus:?}");
    let machines = the(&experiment, "two-machines");
    assert!(machines.statement.to_string().contains("alone: 25,000/s"), "{machines:?}");
    assert!(
        machines.statement.to_string().contains("share: 20 %, together: 20,000/s"),
        "{machines:?}"
    );
}

#[test]
fn values_of_another_key_are_named_by_their_settings() {
    let runs = vec![figures(8, None, 10_000.0, 800.0), figures(8, None, 15_000.0, 533.0)];
    let experiment = answered(experiment(("server.cache", &["1GiB", "2GiB"]), runs));
    let found = the(&experiment, "highest-rate (");
    assert!(found.statement.to_string().contains("settings: [`server.cache=2GiB`]"), "{found:?}");
    none_says(&experiment, "operations-wait-beyond");
    none_says(&experiment, "more-load-is-slower");
}

#[test]
fn experiment_without_an_answer_has_no_findings() {
    let experiment = experiment((CLIENTS, &["1"]), vec![figures(1, None, 1.0, 1.0)]);
    assert!(findings(&experiment).is_empty());
}

#[test]
fn percentile_without_an_interval_is_pooled_over_all_runs() {
    let run = figures(1, None, 8_000.0, 125.0);
    let experiment = experiment((CLIENTS, &["1", "1"]), vec![run.clone(), run]);
    let window = |time_ns| IntervalSample {
        duration_s: 1.0,
        operations: 20,
        times: SparseHistogram::from_counts([(time_ns, 20)]),
    };
    let windows = BTreeMap::from([(0, vec![window(1_000_000)]), (1, vec![window(3_000_000)])]);
    let answer = analyze(&experiment, &windows, Resampling::seeded(1)).expect("points");
    let p99 = &answer.levels[0].response_us["p99"];
    assert_eq!((p99.low, p99.high), (None, None));
    assert!((p99.value - 3_000.0).abs() < 10.0, "{p99:?}");
}

#[test]
fn client_threads_saturated_before_shared_cpus_are_bottleneck() {
    let demand = |kind, servers, demand_s| Demand {
        name: resource_name(kind).to_owned(),
        servers,
        quota: None,
        demand_s,
        uncertainty_ratio: 0.01,
    };
    let of = |threads, client_s| {
        let demands = [
            demand(ResourceKind::ServerCpu, 2, 20e-6),
            demand(ResourceKind::ClientCpu, threads, client_s),
        ];
        let stations = stations(&demands, Sharing::SAME, None);
        let total_s: f64 = stations.iter().map(|one| one.demand_s).sum();
        assert!((total_s - 20e-6 - client_s).abs() < 1e-12);
        let found = bottleneck(&stations).cloned().expect("demands");
        (found.name.clone(), found.saturation_rate_per_s().value.round())
    };
    // One thread with 30 µs saturates before two CPUs with 50 µs.
    let client = resource_name(ResourceKind::ClientCpu).to_owned();
    assert_eq!(of(1, 30e-6), (client, 33_333.0));
    assert_eq!(of(1, 15e-6), (SHARED_CPUS.to_owned(), 57_143.0));
    assert_eq!(of(2, 30e-6), (SHARED_CPUS.to_owned(), 40_000.0));
}

#[test]
fn highest_rate_is_checked_against_the_lone_client() {
    let checked = |lone_us: f64| {
        let runs = vec![figures(1, None, 8_000.0, lone_us), figures(2, None, 18_000.0, 111.0)];
        answered(experiment((CLIENTS, &["1", "2"]), runs))
    };
    // Two clients are not more than twice as fast as one that takes 125 µs.
    let broken = the(&checked(125.0), "law.rate_bound");
    assert!(broken.statement.to_string().contains("(clients: [2])"), "{broken:?}");
    let sound = texts(&checked(110.0));
    assert!(!sound.iter().any(|text| text.contains("law-broken")), "{sound:#?}");
}
