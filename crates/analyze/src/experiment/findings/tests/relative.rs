use super::*;
use dyno_record::experiment::{AgainstBase, Base, Explanation, Statistic};

const VALUES: [&str; 2] = ["6.0.5", "6.0.27"];

/// A sweep over two versions in rounds of one run each, with the rate and the server's CPU time per operation
/// of both.
pub(super) fn versions(rounds: &[[(f64, f64); 2]]) -> Experiment {
    let mut runs = Vec::new();
    for round in rounds {
        for (value, (rate, server_s)) in VALUES.iter().zip(round) {
            let mut run = figures(8, None, *rate, 8e6 / rate);
            for demand in &mut run.demands {
                if demand.name == resource_name(ResourceKind::ServerCpu) {
                    demand.demand_s = *server_s;
                }
            }
            run.server = Some(format!("mongod {value}"));
            runs.push(run);
        }
    }
    let values: Vec<&str> = rounds.iter().flat_map(|_| VALUES).collect();
    let mut experiment = experiment(("server.mongod", &values), runs);
    for (place, point) in experiment.points.iter_mut().enumerate() {
        point.repeat = place as u32 / 2;
    }
    experiment.axes[0].values = VALUES.map(str::to_owned).to_vec();
    experiment.options.base = Some(Base { key: "server.mongod".into(), value: "6.0.5".into() });
    let window = |rate: f64, number: u64| IntervalSample {
        duration_s: 1.0,
        operations: rate as u64 + number % 3,
        times: SparseHistogram::from_counts([((8e9 / rate) as u64, rate as u64)]),
    };
    let of = |point: &Point| -> Vec<IntervalSample> {
        let rate = point.figures.as_ref().map_or(0.0, |run| run.rate_per_s.value);
        (0..20).map(|number| window(rate, number)).collect()
    };
    let windows = experiment.points.iter().map(of).enumerate().collect();
    let found = analyze(&experiment, &windows, Resampling::seeded(1)).expect("points");
    experiment.answer = Some(Answer::Sweep(Box::new(found)));
    experiment
}

fn row(experiment: &mut Experiment) -> AgainstBase {
    let relative = answer(experiment).relative.clone().expect("a base");
    let [row] = relative.levels.try_into().expect("a level and its base");
    row
}

/// Three rounds on a machine that becomes slower, with these ratios of the rate and of the server's CPU time,
/// which is most of the time that eight clients wait.
pub(super) fn drifting(rate_ratio: f64, server_ratio: f64) -> Experiment {
    let round = |(drift, luck): (f64, f64)| {
        let rate = 10_000.0 * drift;
        [(rate, 180e-6 / drift), (rate * rate_ratio * luck, 180e-6 / drift * server_ratio * luck)]
    };
    versions(&[(1.0, 1.001), (0.8, 0.999), (0.6, 1.0)].map(round))
}

/// Three rounds with no difference in the rate but in the server's CPU time per operation.
pub(super) fn lucky() -> Experiment {
    let rounds = [(10_000.0, 0.9), (10_000.0, 1.1), (10_000.0, 1.0)];
    versions(&rounds.map(|(rate, luck)| [(rate, 80e-6), (rate * luck, 88e-6)]))
}

#[test]
fn slower_version_is_explained_by_its_extra_cpu_time() {
    let mut experiment = drifting(0.9, 1.1);
    let found = row(&mut experiment);
    let rate = found.comparisons[0];
    assert_eq!((rate.statistic, rate.pairs), (Statistic::Rate, 3));
    // Pairs of a round: neither interval includes the drift of 40 %.
    assert!((rate.ratio.value - 0.9).abs() < 1e-3 && rate.ratio.contains(0.9), "{rate:?}");
    assert!(rate.ratio.high < 0.92, "{rate:?}");
    let name = resource_name(ResourceKind::ServerCpu);
    let demand = found.demands.iter().find(|one| one.name == name).expect("a watched resource");
    assert!((demand.ratio.value - 1.1).abs() < 1e-3, "{demand:?}");
    assert!(demand.is_certain());
    assert_eq!(found.explanation, Some(Explanation::Demand { name: name.to_owned() }));
    let sentence = the(&experiment, "needs (");
    assert!(
        sentence
            .statement
            .to_string()
            .starts_with("level-differs (at: with-settings (settings: [mongod 6.0.27])"),
        "{sentence:?}"
    );
    assert!(
        sentence
            .statement
            .to_string()
            .contains("needs (baseline: 230 µs, candidate: 253 µs, ratio: 1.10"),
        "{sentence:?}"
    );
}

#[test]
fn demand_with_opposite_or_small_change_explains_nothing() {
    // Slower, although it needs less.
    let mut other_way = drifting(0.9, 0.9);
    assert_eq!(row(&mut other_way).explanation, Some(Explanation::NoDemand));
    the(&other_way, "no-demand-explains");
    // Of the lost hundreds of microseconds, eight clients could lose only a few by it.
    let mut too_little = drifting(0.3, 1.05);
    assert_eq!(row(&mut too_little).explanation, Some(Explanation::NoDemand));
}

#[test]
fn indistinct_level_is_unexplained_but_its_demand_is_named() {
    let mut experiment = lucky();
    assert_eq!(row(&mut experiment).explanation, None);
    let sentence = the(&experiment, "level-indistinct");
    assert_eq!(sentence.kind, FindingKind::Warning);
    assert!(
        sentence
            .statement
            .to_string()
            .contains("demands: [needs (baseline: 80.0 µs, candidate: 88.0 µs"),
        "{sentence:?}"
    );
}

#[test]
fn unwatched_server_explains_nothing() {
    let mut experiment = drifting(0.9, 1.1);
    let server = resource_name(ResourceKind::ServerCpu);
    for point in &mut experiment.points {
        let figures = point.figures.as_mut().expect("a run");
        figures.demands.retain(|demand| demand.name != server);
    }
    let windows = experiment.points.iter().enumerate().map(|(place, point)| {
        let rate = point.figures.as_ref().map_or(0.0, |run| run.rate_per_s.value);
        let window = |number: u64| IntervalSample {
            duration_s: 1.0,
            operations: rate as u64 + number % 3,
            times: SparseHistogram::from_counts([(1_000_000, rate as u64)]),
        };
        (place, (0..20).map(window).collect())
    });
    let windows = windows.collect();
    let found = analyze(&experiment, &windows, Resampling::seeded(1)).expect("points");
    let relative = found.relative.clone().expect("a base");
    assert_eq!(relative.levels[0].explanation, Some(Explanation::NotWatched));
}

#[test]
fn single_round_uses_run_windows_and_states_it() {
    let mut experiment = versions(&[[(10_000.0, 80e-6), (9_000.0, 90e-6)]]);
    let found = row(&mut experiment);
    assert_eq!(found.comparisons[0].pairs, 1);
    let sentence = the(&experiment, "level-differs");
    assert!(sentence.evidence[0].to_string().contains("from-windows-of-one-run"), "{sentence:?}");
    // Runs differ more than their windows do, so this is only a reason to repeat them.
    assert_eq!(sentence.kind, FindingKind::Warning);
    let said = sentence.statement.to_string();
    assert!(said.contains("is_of_one_run: true"), "{said}");
    let repeated = drifting(0.9, 1.1);
    let sentence = the(&repeated, "level-differs");
    assert_eq!(sentence.kind, FindingKind::Finding);
    let said = sentence.statement.to_string();
    assert!(!said.contains("is_of_one_run"), "{said}");
}

#[test]
fn missing_or_unmeasured_base_gives_no_relative_results() {
    let mut experiment = drifting(0.9, 1.1);
    let again = |experiment: &Experiment| {
        analyze(experiment, &BTreeMap::new(), Resampling::seeded(1)).expect("points")
    };
    assert!(again(&experiment).relative.is_some());
    for point in &mut experiment.points {
        if point.settings["server.mongod"] == "6.0.5" {
            point.figures = None;
        }
    }
    assert_eq!(again(&experiment).relative, None);
    let mut experiment = drifting(0.9, 1.1);
    experiment.options.base = None;
    assert_eq!(again(&experiment).relative, None);
}
