use super::*;
use crate::experiment::figures::OperationFigures;
use crate::laws::demand::demand;
use crate::resampling::Resampling;
use crate::uncertainty::histogram::SparseHistogram;
use crate::uncertainty::series::IntervalSample;
use dyno_record::experiment::{Figure, Resource};
use dyno_testkit::simulate::{autoregressive, normal};
use std::collections::BTreeMap;

/// CPU demand of an operation in these tests.
const TRUE_DEMAND_S: f64 = 100e-6;

/// Number of CPUs in these tests, all always busy: the bound is 20,000/s.
const CPUS: u32 = 2;

fn run(rate_per_s: Figure, demand_s: f64) -> Figures {
    let cpu = Resource {
        name: "server CPU".into(),
        servers: CPUS,
        quota: None,
        busy_ratio: demand_s * rate_per_s.value / f64::from(CPUS),
        uncertainty_ratio: 0.002,
    };
    Figures {
        costs: None,
        clients: 8,
        threads: 1,
        offered_rate_per_s: None,
        rate_per_s,
        response_mean_us: Figure::bare(400.0),
        response_us: BTreeMap::new(),
        service_mean_us: 400.0,
        think_mean_us: None,
        mean_in_flight: 8.0,
        succeeded: 100_000,
        failed_ratio: 0.0,
        dropped_ratio: 0.0,
        duration_s: 10.0,
        warm_up_s: 0.0,
        steady: None,
        demands: demand(&cpu, Quantity::exact(rate_per_s.value)).into_iter().collect(),
        resources: vec![cpu],
        disks: Vec::new(),
        shares_cpus: false,
        shared_cpus: None,
        stolen_ratio: None,
        server: None,
        server_address: None,
        laws: Vec::new(),
        caveats: Vec::new(),
    }
}

/// A saturated run: in each of its windows operations need `level` times the demand, plus autocorrelated noise.
fn saturated(seed: u64, level: f64, noise: f64) -> Figures {
    let window = |error: f64| {
        let demand_s = TRUE_DEMAND_S * level * (noise * error).exp();
        IntervalSample {
            duration_s: 1.0,
            operations: (f64::from(CPUS) / demand_s) as u64,
            times: SparseHistogram::from_counts([(400_000, 1)]),
        }
    };
    let windows: Vec<IntervalSample> =
        autoregressive(seed, 40, 0.5).into_iter().map(window).collect();
    let resampling = Resampling { draws: 300, ..Resampling::seeded(seed) };
    let rate = OperationFigures::of(&windows, resampling).unwrap().rate_per_s;
    run(rate, f64::from(CPUS) / rate.value)
}

/// Number of experiments, of 400, in which the intervals of the demand and of the bound contain the true
/// values.
fn coverage(count: usize, between: f64, within: f64) -> [usize; 2] {
    let mut hits = [0; 2];
    for seed in 0..400 {
        let levels = normal(seed * 7919 + 1, count);
        let runs: Vec<Figures> = (0..)
            .zip(levels)
            .map(|(number, level)| saturated(seed * 100 + number, 1.0 + between * level, within))
            .collect();
        let found = of_runs(&runs.iter().collect::<Vec<_>>());
        let error_s = found[0].quantity().uncertainty();
        hits[0] += usize::from((found[0].demand_s - TRUE_DEMAND_S).abs() <= error_s);
        let bound = Figure::bound_by(&found[0]);
        let held = bound.low.unwrap()..=bound.high.unwrap();
        hits[1] += usize::from(held.contains(&(f64::from(CPUS) / TRUE_DEMAND_S)));
    }
    hits
}

#[test]
fn demands_of_repeated_runs_have_their_stated_coverage() {
    for count in [2, 3, 5, 10] {
        for between in [0.0, 0.03] {
            let hits = coverage(count, between, 0.02);
            // 95 % are 380; the lower limit by the runs' own uncertainty adds some if the runs are alike.
            assert!(hits.iter().all(|hits| *hits >= 364), "{count} {between}: {hits:?} of 400");
        }
    }
}

#[test]
fn intervals_of_repeated_runs_are_not_wider_than_needed() {
    let hits = coverage(5, 0.03, 0.002);
    assert!(hits.iter().all(|hits| *hits <= 392), "{hits:?} of 400");
}

#[test]
fn saturated_run_knows_its_demand_as_well_as_its_rate() {
    let hits = coverage(1, 0.0, 0.02);
    assert!(hits.iter().all(|hits| *hits >= 352), "{hits:?} of 400");
    // A single run cannot show the variation from run to run.
    let hits = coverage(1, 0.05, 0.02);
    assert!(hits.iter().all(|hits| *hits < 240), "{hits:?} of 400");
}

fn known(value: f64, ratio: f64) -> Figure {
    Figure { value, low: Some(value * (1.0 - ratio)), high: Some(value * (1.0 + ratio)) }
}

fn error(runs: &[&Figures]) -> f64 {
    of_runs(runs)[0].uncertainty_ratio
}

#[test]
fn repetitions_give_the_interval_of_the_textbook() {
    let runs = [90e-6, 100e-6, 110e-6].map(|demand_s| run(known(10_000.0, 0.01), demand_s));
    // s = 10 %, n = 3: 4.303 / √3.
    let found = error(&[&runs[0], &runs[1], &runs[2]]);
    assert!((found - 0.1 * 4.303 / 3f64.sqrt()).abs() < 1e-4, "{found}");
}

#[test]
fn runs_agreeing_by_chance_know_no_more_than_one_run() {
    let one = run(known(10_000.0, 0.03), 100e-6);
    let found = error(&[&one, &one]);
    let expected = combined(&[0.03, 0.002]) / 2f64.sqrt();
    assert!((found - expected).abs() < 1e-9, "{found}");
}

#[test]
fn unknown_error_gives_no_interval() {
    let one = run(Figure::bare(10_000.0), 100e-6);
    let found = of_runs(&[&one]);
    assert!(found[0].uncertainty_ratio >= 1.0);
    let bound = Figure::bound_by(&found[0]);
    assert_eq!((bound.low, bound.high), (None, None));
    assert!((bound.value - 20_000.0).abs() < 1e-6);
    // The runs together still show it.
    assert!(error(&[&one, &one]) < 0.01);
    assert_eq!(of_runs(&[]), []);
}

#[test]
fn offered_rate_does_not_bound_the_error_of_a_demand() {
    let offered = |rate: f64, response: Figure| Figures {
        offered_rate_per_s: Some(10_000.0),
        response_mean_us: response,
        ..run(known(rate, 0.001), 100e-6)
    };
    // 8 µs of 400 µs may all be CPU time; an operation needs 100 µs of CPU time.
    let kept = error(&[&offered(10_000.0, known(400.0, 0.02))]);
    assert!((kept - combined(&[0.08, 0.002])).abs() < 1e-9, "{kept}");
    assert!(error(&[&offered(10_000.0, Figure::bare(400.0))]) >= 1.0);
    // A missed rate is the rate that the demand allows.
    let missed = error(&[&offered(8_000.0, Figure::bare(400.0))]);
    assert!((missed - combined(&[0.001, 0.002])).abs() < 1e-9);
}

#[test]
fn idle_resource_has_a_finite_error() {
    let idle = Figures {
        offered_rate_per_s: Some(10_000.0),
        response_mean_us: known(400.0, 0.02),
        ..run(known(10_000.0, 0.01), 0.0)
    };
    for runs in [&[&idle][..], &[&idle, &idle]] {
        assert!(error(runs).is_finite());
    }
}

/// Pairs of runs on a drifting machine; the second run of each needs 1.1 times as much.
fn drifting_pairs(seed: u64, count: usize) -> Vec<[Figures; 2]> {
    let drift = |pair: usize| 1.0 + 0.2 * pair as f64;
    let noise = normal(seed * 7919 + 3, 2 * count);
    let needs = |place: usize, ratio: f64| {
        let level = drift(place / 2) * ratio * (1.0 + 0.02 * noise[place]);
        saturated(seed * 1000 + place as u64, level, 0.01)
    };
    let pair = |pair: usize| [needs(2 * pair, 1.0), needs(2 * pair + 1, 1.1)];
    (0..count).map(pair).collect()
}

fn ratio_of(pairs: &[[Figures; 2]]) -> DemandRatio {
    let pairs: Vec<[&Figures; 2]> = pairs.iter().map(|[one, other]| [one, other]).collect();
    ratios(&pairs).remove(0)
}

#[test]
fn demand_ratio_interval_holds_the_truth_and_excludes_drift() {
    let mut hits = 0;
    let mut widths = 0.0;
    for seed in 0..300 {
        let found = ratio_of(&drifting_pairs(seed, 5)).ratio;
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        hits += usize::from((low..=high).contains(&1.1));
        widths += (high / low).ln() / 2.0 / 300.0;
    }
    assert!(hits >= 279, "{hits} of 300");
    // Student's 2.78 times 2 % of each of ten runs, without the 80 % of the drift.
    assert!((0.02..0.05).contains(&widths), "{widths}");
}

#[test]
fn single_pair_has_an_interval_only_when_its_runs_have_one() {
    let pairs = drifting_pairs(1, 1);
    let found = ratio_of(&pairs);
    assert!(found.ratio.low.is_some() && found.servers == CPUS, "{found:?}");
    let [mut one, other] = pairs[0].clone();
    one.rate_per_s = Figure::bare(one.rate_per_s.value);
    let unknown = ratio_of(&[[one.clone(), other.clone()]]);
    assert_eq!((unknown.ratio.low, unknown.is_certain()), (None, false));
    assert_eq!(unknown.ratio.value, found.ratio.value);
    // A demand of 0 on one side has no ratio.
    one.demands[0].demand_s = 0.0;
    assert_eq!(ratios(&[[&one, &other]]), Vec::new());
}
