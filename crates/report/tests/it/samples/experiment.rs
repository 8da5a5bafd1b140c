//! Synthetic experiments on a bench of two CPUs, analysed by the real analysis. All numbers are fixed.

use dyno_analyze::experiment::ab::explained;
use dyno_analyze::experiment::ab::side;
use dyno_analyze::experiment::blocks;
use dyno_analyze::experiment::figures::resource_name;
use dyno_analyze::experiment::findings::findings;
use dyno_analyze::experiment::slo::are_kept;
use dyno_analyze::experiment::slo::attempt;
use dyno_analyze::experiment::sweep::analyze;
use dyno_analyze::experiment::xmax;
use dyno_analyze::experiment::xmax::confirmation;
use dyno_analyze::laws;
use dyno_analyze::laws::demand::demand;
use dyno_analyze::resampling::Resampling;
use dyno_analyze::search::objective::ObjectiveSearch;
use dyno_analyze::search::objective::ObjectiveSettings;
use dyno_analyze::search::objective::ObjectiveStep;
use dyno_analyze::uncertainty::histogram::SparseHistogram;
use dyno_analyze::uncertainty::series::IntervalSample;
use dyno_record::estimate::{Estimate, Quantity};
use dyno_record::experiment::{
    AbAnswer, AbEnd, AbOptions, Answer, Axis, Base, Basis, Block, CLIENTS, ClientsEnd,
    ClientsResult, Comparison, ComparisonVerdict, Confirmation, DiskFigures, Experiment, Figure,
    Figures, LawCheck, Objective, Objectives, Options, PERCENTILES, Point, RATE, Resource,
    SCHEMA_VERSION, Side, SloAnswer, Statistic, SweepAnswer, TriedClients, Verb,
};
use dyno_record::model::{Caveat, CaveatKind, ResourceKind, RunStatus};
use dyno_record::statement::Statement;
use serde_json::json;
use std::collections::BTreeMap;

/// Demand of an operation on the server's CPU, the client's CPU and the disk.
const DEMANDS_S: [f64; 3] = [80e-6, 20e-6, 1e-6];

/// A run described by its load, rate, mean response time in microseconds, and the relative uncertainty of the rate.
pub(super) type Line = (u32, Option<f64>, f64, f64, f64);

fn figure(value: f64, error_ratio: f64) -> Figure {
    Figure {
        value,
        low: Some(value / (1.0 + error_ratio)),
        high: Some(value * (1.0 + error_ratio)),
    }
}

fn resources(rate: f64) -> Vec<Resource> {
    let [server_s, client_s, disk_s] = DEMANDS_S;
    let resource = |kind, servers: u32, busy_s: f64| Resource {
        name: resource_name(kind).to_owned(),
        servers,
        quota: None,
        busy_ratio: rate * busy_s / f64::from(servers),
        uncertainty_ratio: 0.01,
    };
    vec![
        resource(ResourceKind::ServerCpu, 2, server_s),
        resource(ResourceKind::HostCpu, 2, server_s + client_s + 1e-6),
        resource(ResourceKind::Disk, 1, disk_s),
        resource(ResourceKind::ClientCpu, 2, client_s),
    ]
}

pub(super) fn figures((clients, offered_rate_per_s, rate, mean_us, error_ratio): Line) -> Figures {
    let rate_per_s = figure(rate, error_ratio);
    let resources = resources(rate);
    let tail = [0.85, 1.6, 2.1, 4.2, 11.0];
    let levels = PERCENTILES.iter().zip(tail);
    let in_flight = Quantity::exact(rate * mean_us * 1e-6 * 1.000_4);
    let mut checks: Vec<LawCheck> = Vec::new();
    checks.extend(laws::little(in_flight, Quantity::exact(rate), Quantity::exact(mean_us * 1e-6)));
    let reads = Quantity { value: rate * 0.501, uncertainty_ratio: 0.008 };
    let half = Quantity::exact(0.5);
    checks.extend(laws::forced_flow("read", reads, half, Quantity::exact(rate)));
    Figures {
        costs: None,
        clients,
        threads: 1,
        offered_rate_per_s,
        rate_per_s,
        response_mean_us: figure(mean_us, error_ratio),
        response_us: levels
            .map(|((name, _), times)| {
                ((*name).to_owned(), figure(mean_us * times, error_ratio * 2.0))
            })
            .collect(),
        service_mean_us: mean_us,
        think_mean_us: None,
        mean_in_flight: in_flight.value,
        succeeded: 60_000,
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
        // A disk that serves one request at a time.
        disks: vec![DiskFigures {
            device: "sda".into(),
            serves_several: Some(false),
            busy_ratio: rate * DEMANDS_S[2],
            ..DiskFigures::default()
        }],
        laws: checks,
        caveats: vec![CaveatKind::Durability, CaveatKind::SharedMachine],
    }
}

/// A run with think times.
fn waiting(run: Figures, think_us: f64) -> Figures {
    let mut run = run;
    run.think_mean_us = Some(think_us);
    run.laws.extend(laws::response_time(
        run.clients,
        Quantity::exact(run.rate_per_s.value),
        think_us * 1e-6,
        Quantity::exact(run.service_mean_us * 1e-6),
    ));
    run
}

fn experiment(key: &str, lines: &[(&str, Line)]) -> Experiment {
    let point = |(number, (value, line)): (usize, &(&str, Line))| Point {
        settings: BTreeMap::from([(key.to_owned(), (*value).to_owned())]),
        side: None,
        workload: None,
        block: None,
        repeat: 0,
        directory: format!("runs/{:03}-{value}", number + 1),
        figures: Some(figures(*line)),
        problem: None,
        refused: None,
        stolen_ratio: None,
        ended_after_s: None,
        server_ended: false,
        storage: None,
    };
    let values: Vec<String> = lines.iter().map(|(value, _)| (*value).to_owned()).collect();
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        verb: Verb::Sweep,
        question: format!("How does `a` respond to {key} of {}?", values.join(", ")),
        name: "a".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Complete,
        ended_at: None,
        status_reason: None,
        plan: json!({
            "name": "a",
            "data": {"records": 100_000, "field_count": 10, "key_order": "hashed",
                "field_length": {"distribution": "constant", "bytes": 100}},
            "operations": {"read": 0.5, "update": 0.5},
            "keys": {"distribution": "scrambled-zipfian"},
            "client": {"clients": 32, "seed": 42},
            "phases": {"warmup": "5s", "duration": "10s"},
        }),
        options: Options { random_order: true, ..Options::default() },
        axes: vec![Axis { key: key.to_owned(), values }],
        environment: None,
        hosts: BTreeMap::new(),
        server_machines: BTreeMap::new(),
        points: lines.iter().enumerate().map(point).collect(),
        answer: None,
        limits: Vec::new(),
        findings: Vec::new(),
        caveats: Vec::new(),
    }
}

fn answered(mut experiment: Experiment, change: impl FnOnce(&mut SweepAnswer)) -> Experiment {
    let resampling = Resampling::seeded(7);
    let mut answer = analyze(&experiment, &BTreeMap::new(), resampling).unwrap();
    change(&mut answer);
    experiment.answer = Some(Answer::Sweep(Box::new(answer)));
    experiment.findings = findings(&experiment);
    experiment
}

fn caveat(kind: CaveatKind, message: &str, hint: Option<&str>) -> Caveat {
    Caveat { kind, statement: Statement::recorded(message).with("hint", hint), phase: None }
}

/// A sweep over clients that obeys all laws.
pub(crate) fn clients_sweep() -> Experiment {
    let mut experiment = experiment(
        CLIENTS,
        &[
            ("1", (1, None, 8_000.0, 125.0, 0.006)),
            ("2", (2, None, 13_700.0, 146.0, 0.008)),
            ("4", (4, None, 17_900.0, 223.0, 0.012)),
            ("8", (8, None, 18_900.0, 423.0, 0.01)),
            ("16", (16, None, 18_100.0, 884.0, 0.015)),
            ("32", (32, None, 16_900.0, 1_893.0, 0.02)),
        ],
    );
    experiment.caveats = vec![
        caveat(
            CaveatKind::SharedMachine,
            "client and server share the machine and its 2 CPUs; each slows the other",
            Some("for absolute figures use two machines and `--uri`"),
        ),
        caveat(
            CaveatKind::Durability,
            "writes are acknowledged before the journal is on disk; a crash may lose the most recent writes",
            None,
        ),
        caveat(
            CaveatKind::TooFewOperations,
            "p99.9 rests on fewer than 10 values (in 2 of 6 runs)",
            Some("measure longer"),
        ),
    ];
    answered(experiment, |_| {})
}

/// An interrupted sweep over clients with nearly every possible fault.
pub(crate) fn doubtful_sweep() -> Experiment {
    let mut experiment = experiment(
        CLIENTS,
        &[
            ("1", (1, None, 8_000.0, 125.0, 5.0)),
            ("2", (2, None, 13_700.0, 146.0, 0.4)),
            ("4", (4, None, 17_900.0, 223.0, 0.3)),
            ("8", (8, None, 18_900.0, 500.0, 0.2)),
            ("16", (16, None, 18_100.0, 884.0, 40.0)),
        ],
    );
    for figures in experiment.points.iter_mut().filter_map(|point| point.figures.as_mut()) {
        *figures = waiting(figures.clone(), 1.0);
    }
    experiment.status = RunStatus::Partial;
    experiment.status_reason = Some("interrupted by a signal".into());
    experiment.points[4].figures = None;
    experiment.points[1].figures.as_mut().unwrap().steady = Some(false);
    experiment.points[3].figures.as_mut().unwrap().failed_ratio = 0.012;
    let busy = &mut experiment.points[2].figures.as_mut().unwrap().caveats;
    busy.push(CaveatKind::GeneratorBottleneck);
    answered(experiment, |answer| {
        answer.levels[0].response_us.remove("p99");
        answer.levels[0].rate_per_s = Figure::bare(8_000.0);
        answer.usl = None;
        answer.usl_curve.clear();
        answer.usl_problem = Some(Statement::new("usl-no-solution"));
    })
}

/// A sweep over offered rates beyond the capacity.
pub(crate) fn rates_sweep() -> Experiment {
    let line = |offered: f64, rate: f64, mean_us: f64| (64, Some(offered), rate, mean_us, 0.01);
    let mut experiment = experiment(
        RATE,
        &[
            ("1000", line(1_000.0, 1_000.0, 130.0)),
            ("2000", line(2_000.0, 2_000.0, 133.0)),
            ("5000", line(5_000.0, 5_000.0, 145.0)),
            ("10000", line(10_000.0, 9_998.0, 190.0)),
            ("16000", line(16_000.0, 15_990.0, 720.0)),
            ("30000", line(30_000.0, 19_000.0, 95_000.0)),
        ],
    );
    experiment.points[5].figures.as_mut().unwrap().dropped_ratio = 0.36;
    answered(experiment, |_| {})
}

/// A sweep over target rates, where clients wait for their own answers and for their slots.
pub(crate) fn throttled_sweep() -> Experiment {
    let line = |rate: f64, mean_us: f64| (32, Some(rate), rate, mean_us, 0.01);
    let mut experiment = experiment(
        RATE,
        &[
            ("1000", line(1_000.0, 130.0)),
            ("4000", line(4_000.0, 141.0)),
            ("8000", line(8_000.0, 165.0)),
            ("12000", line(12_000.0, 230.0)),
        ],
    );
    experiment.plan["schedule"] = json!({"kind": "throttled", "rate_per_s": 1000.0});
    for point in &mut experiment.points {
        let kind = ("schedule.kind".to_owned(), "throttled".to_owned());
        point.settings.extend([kind]);
        let run = point.figures.take().unwrap();
        // Half a percent of the response time is missing.
        let think_us = 32e6 / run.rate_per_s.value - run.service_mean_us * 1.005;
        point.figures = Some(waiting(run, think_us));
    }
    answered(experiment, |_| {})
}

/// The sweeps over clients and over rates as the blocks of one sweep.
pub(crate) fn blocks_sweep() -> Experiment {
    let (mut both, open) = (clients_sweep(), rates_sweep());
    both.question = "How does `a` respond to clients from 1 to 32, and then to operations offered per second from 1000 to 30000?".into();
    for point in &mut both.points {
        point.block = Some(Block::Closed);
        point.settings.insert("schedule.kind".into(), "closed".into());
    }
    both.points.extend(open.points.into_iter().map(|mut point| {
        point.block = Some(Block::Open);
        point.settings.insert(CLIENTS.into(), "64".into());
        point.settings.insert("schedule.kind".into(), "constant".into());
        point
    }));
    both.axes.extend(open.axes);
    both.answer = blocks::answer(&both, &BTreeMap::new(), Resampling::seeded(7));
    both.findings = findings(&both);
    both
}

/// A sweep over a setting of the server.
pub(crate) fn setting_sweep() -> Experiment {
    let line = |rate: f64, mean_us: f64, error: f64| (32, None, rate, mean_us, error);
    let experiment = experiment(
        "server.cache",
        &[
            ("256MiB", line(9_000.0, 3_555.0, 0.05)),
            ("1GiB", line(15_000.0, 2_133.0, 0.03)),
            ("4GiB", line(15_300.0, 2_091.0, 0.04)),
        ],
    );
    answered(experiment, |_| {})
}

/// Two rounds of a sweep over server versions, relative to the first: one version needs more CPU time, the other does not
/// differ measurably.
pub(crate) fn versions_sweep() -> Experiment {
    let lines = |rates: [f64; 3]| {
        let values = ["6.0.5", "6.0.27", "7.0.14"];
        let line = |rate: f64| (32, None, rate, 32e6 / rate, 0.01);
        values.into_iter().zip(rates).map(move |(value, rate)| (value, line(rate)))
    };
    let rounds = [[18_000.0, 15_600.0, 18_300.0], [17_600.0, 15_500.0, 17_300.0]];
    let lines: Vec<(&str, Line)> = rounds.into_iter().flat_map(lines).collect();
    let mut experiment = experiment("server.mongod", &lines);
    experiment.axes[0].values.truncate(3);
    experiment.question = "How does `a` respond to server.mongod from 6.0.5 to 7.0.14?".into();
    let windows: BTreeMap<usize, Vec<IntervalSample>> = (0..)
        .zip(&lines)
        .map(|(place, (_, line))| {
            let window = |number: u64| IntervalSample {
                duration_s: 1.0,
                operations: line.2 as u64 + number % 7,
                times: SparseHistogram::from_counts([
                    ((line.3 * 900.0) as u64, 9 * line.2 as u64 / 10),
                    ((line.3 * 1_900.0) as u64, line.2 as u64 / 10),
                ]),
            };
            (place, (0..10).map(window).collect())
        })
        .collect();
    for (place, point) in experiment.points.iter_mut().enumerate() {
        let value = &point.settings["server.mongod"];
        let figures = point.figures.as_mut().unwrap();
        figures.server = Some(format!("mongod {value}"));
        let needs = if value == "6.0.27" { 1.15 } else { 1.0 };
        for demand in &mut figures.demands {
            if demand.name == resource_name(ResourceKind::ServerCpu) {
                demand.demand_s *= needs * if place < 3 { 1.0 } else { 1.001 };
            }
        }
        point.repeat = place as u32 / 3;
    }
    experiment.options.base = Some(Base { key: "server.mongod".into(), value: "6.0.5".into() });
    let answer = analyze(&experiment, &windows, Resampling::seeded(7)).unwrap();
    experiment.answer = Some(Answer::Sweep(Box::new(answer)));
    found(experiment)
}

/// An experiment without measurements.
pub(crate) fn empty_sweep() -> Experiment {
    let mut experiment = experiment(CLIENTS, &[("1", (1, None, 1.0, 1.0, 0.1))]);
    experiment.points[0].figures = None;
    experiment.status = RunStatus::Failed;
    experiment.status_reason = Some("the server did not start".into());
    experiment
}

/// An experiment other than a sweep, with an answer.
pub(super) fn other(verb: Verb, question: &str, lines: &[Line], answer: Answer) -> Experiment {
    let named: Vec<(String, Line)> = lines.iter().map(|line| ("run".to_owned(), *line)).collect();
    let named: Vec<(&str, Line)> =
        named.iter().map(|(name, line)| (name.as_str(), *line)).collect();
    let mut experiment = experiment("x", &named);
    experiment.verb = verb;
    experiment.question = question.into();
    experiment.axes.clear();
    for point in &mut experiment.points {
        point.settings.clear();
    }
    experiment.options = Options::default();
    experiment.answer = Some(answer);
    experiment
}

pub(super) fn found(mut experiment: Experiment) -> Experiment {
    experiment.findings = findings(&experiment);
    experiment
}

fn comparison(statistic: Statistic, ratio: [f64; 3], verdict: ComparisonVerdict) -> Comparison {
    Comparison {
        statistic,
        ratio: Estimate { value: ratio[1], low: ratio[0], high: ratio[2], confidence_ratio: 0.95 },
        verdict,
        margin_ratio: 0.05,
        basis: Basis::BetweenRuns,
        pairs: 3,
        pair_deviation_ratio: 0.02,
        degrees_of_freedom: Some(4.0),
        order_effect_ratio: None,
    }
}

/// Three pairs in which B is slower.
pub(crate) fn ab() -> Experiment {
    let percentile = |percent| Statistic::Percentile { percent };
    let slower = ComparisonVerdict::Slower;
    let same = ComparisonVerdict::NoDifferenceLargerThan { margin_ratio: 0.05 };
    let answer = AbAnswer {
        deciding: Statistic::Rate,
        comparisons: vec![
            comparison(Statistic::Rate, [0.86, 0.9, 0.94], slower),
            comparison(Statistic::MeanTime, [1.06, 1.11, 1.16], slower),
            comparison(percentile(50.0), [0.98, 1.0, 1.02], same),
            comparison(percentile(95.0), [0.93, 1.03, 1.13], ComparisonVerdict::NotEnoughData),
            comparison(percentile(99.0), [1.2, 1.4, 1.65], slower),
        ],
        pairs_needed: Some(3),
        end: AbEnd::Precise,
        set_aside: Vec::new(),
        demands: Vec::new(),
        costs: Vec::new(),
        explanation: None,
    };
    let lines: Vec<Line> = (0..6u32)
        .map(|number| {
            let rate = match side(number as usize) {
                Side::A => 18_000.0 + 50.0 * f64::from(number),
                Side::B => 16_200.0 - 40.0 * f64::from(number),
            };
            (32, None, rate, 32e6 / rate, 0.01)
        })
        .collect();
    let question = "Is B (`a`) faster than A (`a`)?";
    let mut experiment = other(Verb::Ab, question, &lines, Answer::Ab(Box::new(answer)));
    for (number, point) in experiment.points.iter_mut().enumerate() {
        let side = side(number);
        point.side = Some(side);
        let figures = point.figures.as_mut().unwrap();
        figures.server = Some("mongod 6.0.5".into());
        for demand in figures.demands.iter_mut().filter(|_| side == Side::B) {
            if demand.name == resource_name(ResourceKind::Disk) {
                demand.demand_s *= 20.0 + number as f64;
            }
        }
    }
    if let Some(Answer::Ab(answer)) = experiment.answer.take() {
        let answer = explained(*answer, &experiment);
        experiment.answer = Some(Answer::Ab(Box::new(answer)));
    }
    experiment.options.ab = Some(AbOptions {
        plan_b: "a".into(),
        set_b: vec!["server.durable_writes=true".into()],
        ..AbOptions::default()
    });
    found(experiment)
}

fn clients_search(clients: u32, rate_per_s: f64, lines: &[Line]) -> ClientsResult {
    let mut tried: Vec<TriedClients> = Vec::new();
    for (clients, _, rate, ..) in lines {
        match tried.iter_mut().find(|one| one.clients == *clients) {
            Some(known) => known.rates_per_s.push(*rate),
            None => tried.push(TriedClients { clients: *clients, rates_per_s: vec![*rate] }),
        }
    }
    ClientsResult {
        clients,
        rate_per_s,
        counted_runs: 1,
        estimate_per_s: Some(Estimate {
            value: rate_per_s,
            low: rate_per_s * 0.985,
            high: rate_per_s * 1.015,
            confidence_ratio: 0.95,
        }),
        enough_clients: 4,
        end: ClientsEnd::Plateau,
        tried,
    }
}

/// A search for the highest rate; with `by_client`, the client was the limit.
pub(crate) fn highest_rate(by_client: bool) -> Experiment {
    let lines: Vec<Line> = [
        (1, 8_000.0),
        (2, 13_900.0),
        (4, 18_400.0),
        (8, 18_900.0),
        (8, 18_700.0),
        (16, 18_300.0),
        (32, 17_000.0),
    ]
    .iter()
    .map(|(clients, rate)| (*clients, None, *rate, f64::from(*clients) / rate * 1e6, 0.01))
    .collect();
    let best = figures(lines[3]);
    let confirmations: Vec<Confirmation> = [(0.98, 18_424.0, 17_900.0), (0.95, 17_860.0, 17_855.0)]
        .iter()
        .map(|(ratio, offered, rate)| {
            confirmation(*ratio, *offered, &figures((16, Some(*offered), *rate, 900.0, 0.01)))
        })
        .collect();
    let reasons = match by_client {
        true => {
            vec![Statement::recorded("2 of 2 runs with 8 clients reported the client as the limit")]
        }
        false => Vec::new(),
    };
    let confirmations = if by_client { Vec::new() } else { confirmations };
    let search = clients_search(8, 18_800.0, &lines);
    let answer = xmax::answer(search, &[&best], &[&best], reasons, confirmations);
    let question = "How many operations of `a` per second can it take?";
    found(other(Verb::Xmax, question, &lines, Answer::Xmax(Box::new(answer))))
}

/// A search for the rate that keeps two objectives.
pub(crate) fn objective() -> Experiment {
    let objectives = Objectives {
        responses: vec![
            Objective { statistic: "p99".into(), limit_us: 5_000.0 },
            Objective { statistic: "mean".into(), limit_us: 2_000.0 },
        ],
        failed_ratio: 0.0,
    };
    let closed = figure(18_800.0, 0.01);
    let closed_rate_per_s = closed.value;
    let mut search = ObjectiveSearch::new(ObjectiveSettings {
        max_rate_per_s: closed_rate_per_s * 1.5,
        ..ObjectiveSettings::starting_at(closed_rate_per_s / 2.0)
    });
    // Times rise towards the rate of the closed loop, and vary from run to run.
    let luck = [1.0, 1.1, 0.85, 1.2, 0.95, 0.9, 1.15];
    let mut lines: Vec<Line> = Vec::new();
    let (attempts, search) = loop {
        match search.step() {
            ObjectiveStep::Done(found) => {
                let judged = |line: &Line| attempt(line.2, &objectives, &figures(*line));
                let attempts: Vec<_> = lines.iter().map(judged).collect();
                break (attempts, *found);
            }
            ObjectiveStep::Measure { rate_per_s } => {
                let mean_us = match rate_per_s < closed_rate_per_s * 0.99 {
                    true => 260.0 / (1.0 - rate_per_s / closed_rate_per_s),
                    false => 40_000.0,
                };
                let mean_us = mean_us * luck[lines.len() % luck.len()];
                let line = (32, Some(rate_per_s), rate_per_s, mean_us, 0.01);
                search.record(are_kept(&objectives, &figures(line)));
                lines.push(line);
            }
        }
    };
    let answer = SloAnswer {
        objectives,
        closed_rate_per_s: closed,
        search,
        attempts,
        set_aside: Vec::new(),
    };
    let question = "Which rate of `a` keeps p99 at or below 5 ms and mean at or below 2 ms?";
    found(other(Verb::Slo, question, &lines, Answer::Slo(Box::new(answer))))
}
