//! Made-up experiments: figures of runs on a bench of two CPUs, analysed by the real analysis. All numbers are
//! fixed.

use dyno_analyze::estimate::Quantity;
use dyno_analyze::experiment::figures::{Figure, Figures, PERCENTILES, resource_name};
use dyno_analyze::experiment::findings::findings;
use dyno_analyze::experiment::sweep::{CLIENTS, RATE, SweepAnswer, analyze};
use dyno_analyze::experiment::{Answer, Axis, Experiment, Point, SCHEMA_VERSION, Verb};
use dyno_analyze::laws;
use dyno_analyze::laws::demand::Resource;
use dyno_analyze::resampling::Resampling;
use dyno_record::model::{Caveat, CaveatKind, ResourceKind, RunStatus};
use serde_json::json;
use std::collections::BTreeMap;

/// What an operation needs of the server's CPU, the client's CPU and the disk.
const DEMANDS_S: [f64; 3] = [80e-6, 20e-6, 1e-6];

/// A run as it is described in a line: load, rate, mean response time in microseconds, and the share by which
/// the rate is uncertain.
type Line = (u32, Option<f64>, f64, f64, f64);

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

fn figures((clients, offered_rate_per_s, rate, mean_us, error_ratio): Line) -> Figures {
    let rate_per_s = figure(rate, error_ratio);
    let resources = resources(rate);
    let tail = [0.85, 1.6, 2.1, 4.2, 11.0];
    let levels = PERCENTILES.iter().zip(tail);
    let in_flight = Quantity::exact(rate * mean_us * 1e-6 * 1.000_4);
    let mut checks: Vec<laws::LawCheck> = Vec::new();
    checks.extend(laws::little(
        in_flight,
        Quantity::exact(rate),
        Quantity::exact(mean_us * 1e-6),
    ));
    if offered_rate_per_s.is_none() {
        checks.extend(laws::response_time(
            clients,
            Quantity::exact(rate),
            0.0,
            Quantity::exact(mean_us * 1e-6),
        ));
    }
    let reads = Quantity {
        value: rate * 0.501,
        uncertainty_ratio: 0.008,
    };
    let half = Quantity::exact(0.5);
    checks.extend(laws::forced_flow(
        "read",
        reads,
        half,
        Quantity::exact(rate),
    ));
    Figures {
        clients,
        threads: 1,
        offered_rate_per_s,
        rate_per_s,
        response_mean_us: figure(mean_us, error_ratio),
        response_us: levels
            .map(|((name, _), times)| {
                (
                    (*name).to_owned(),
                    figure(mean_us * times, error_ratio * 2.0),
                )
            })
            .collect(),
        service_mean_us: mean_us,
        mean_in_flight: in_flight.value,
        succeeded: 60_000,
        failed_ratio: 0.0,
        dropped_ratio: 0.0,
        duration_s: 10.0,
        steady: Some(true),
        demands: resources
            .iter()
            .filter_map(|resource| resource.demand(rate_per_s.quantity()))
            .collect(),
        resources,
        laws: checks,
        caveats: vec![CaveatKind::Durability, CaveatKind::SharedMachine],
    }
}

fn experiment(key: &str, lines: &[(&str, Line)]) -> Experiment {
    let point = |(number, (value, line)): (usize, &(&str, Line))| Point {
        settings: BTreeMap::from([(key.to_owned(), (*value).to_owned())]),
        side: None,
        repeat: 0,
        directory: format!("runs/{:03}-{value}", number + 1),
        figures: Some(figures(*line)),
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
        options: BTreeMap::from([("order".into(), "random".into())]),
        axes: vec![Axis {
            key: key.to_owned(),
            values,
        }],
        points: lines.iter().enumerate().map(point).collect(),
        answer: None,
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
    Caveat {
        kind,
        message: message.into(),
        hint: hint.map(Into::into),
        phase: None,
    }
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
            "writes are acknowledged before the journal is on the disk; a crash may lose the last ones",
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

/// A sweep over clients in which nearly everything went wrong, and that was interrupted.
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
        answer.usl_problem = Some("no parameters of the scalability law fit the points".into());
    })
}

/// A sweep over offered rates, beyond what the bench can do.
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

/// An experiment of which nothing was measured.
pub(crate) fn empty_sweep() -> Experiment {
    let mut experiment = experiment(CLIENTS, &[("1", (1, None, 1.0, 1.0, 0.1))]);
    experiment.points[0].figures = None;
    experiment.status = RunStatus::Failed;
    experiment.status_reason = Some("the server did not start".into());
    experiment
}
