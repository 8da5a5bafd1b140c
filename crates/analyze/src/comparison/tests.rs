//! Comparisons of simulated runs with a known ratio.

use super::*;
use crate::uncertainty::histogram::SparseHistogram;
use crate::uncertainty::series::IntervalSample;
use dyno_testkit::simulate::{autoregressive, normal};

const P50: Statistic = Statistic::Percentile { percent: 50.0 };

/// Variation of simulated runs.
#[derive(Clone, Copy)]
struct Bench {
    /// True ratio of the rates of candidate and baseline.
    ratio: f64,
    /// Deviation from run to run.
    between_ratio: f64,
    /// Loss of speed from each run to the next.
    drift_ratio: f64,
}

const EQUAL: Bench = Bench { ratio: 1.0, between_ratio: 0.01, drift_ratio: 0.0 };

impl Bench {
    /// A run of 30 s: autocorrelated rates, and times that are longer at lower rates.
    fn run(&self, seed: u64, number: u64, speed: f64) -> Series {
        let level = normal(seed * 104_729 + number, 1)[0];
        let drift = 1.0 - self.drift_ratio * number as f64;
        let rate = 10_000.0 * speed * drift * (1.0 + self.between_ratio * level);
        let interval = |error: f64| {
            let rate = rate * (1.0 + 0.04 * error);
            let time_ns = |share: f64| (1e9 / rate * share) as u64;
            IntervalSample {
                duration_s: 1.0,
                operations: rate as u64,
                times: SparseHistogram::from_counts(
                    (90..110).map(|i| (time_ns(f64::from(i) / 100.0), 50)),
                ),
            }
        };
        let errors = autoregressive(seed * 15_485_863 + number, 30, 0.6);
        Series::new(&errors.into_iter().map(interval).collect::<Vec<_>>())
    }

    /// Pairs in the orders AB, BA, BA, AB.
    fn pairs(&self, seed: u64, count: usize) -> Vec<Pair> {
        let pair = |i: u64| {
            let baseline_first = matches!(i % 4, 0 | 3);
            let (a, b) = if baseline_first { (0, 1) } else { (1, 0) };
            Pair {
                baseline: self.run(seed, 2 * i + a, 1.0),
                candidate: self.run(seed, 2 * i + b, self.ratio),
                baseline_first,
            }
        };
        (0..count as u64).map(pair).collect()
    }

    fn compare(&self, seed: u64, count: usize, statistic: Statistic) -> Comparison {
        compare(&self.pairs(seed, count), statistic, 0.05, quick(seed)).unwrap()
    }
}

fn quick(seed: u64) -> Resampling {
    Resampling { draws: 60, ..Resampling::seeded(seed) }
}

/// Number of 200 comparisons with each verdict: faster, slower, no difference, not enough.
fn verdicts(comparison: impl Fn(u64) -> Comparison) -> [usize; 4] {
    let mut counts = [0; 4];
    for seed in 0..200 {
        let place = match comparison(seed).verdict {
            ComparisonVerdict::Faster => 0,
            ComparisonVerdict::Slower => 1,
            ComparisonVerdict::NoDifferenceLargerThan { .. } => 2,
            ComparisonVerdict::NotEnoughData | ComparisonVerdict::NotComparable => 3,
        };
        counts[place] += 1;
    }
    counts
}

#[test]
fn equal_sides_are_found_to_be_equal() {
    for statistic in [Statistic::Rate, P50] {
        let counts = verdicts(|seed| EQUAL.compare(seed, 8, statistic));
        // 19 of 20, and a claim in less than 1 of 20.
        assert!(counts[2] >= 190, "{statistic:?}: {counts:?}");
        assert!(counts[0] + counts[1] <= 10, "{statistic:?}: {counts:?}");
    }
}

/// Number of 200 comparisons with an interval that excludes the true ratio.
fn misses(bench: Bench, count: usize) -> usize {
    let misses = |seed: &u64| {
        let ratio = bench.compare(*seed, count, Statistic::Rate).ratio;
        !ratio.contains(bench.ratio)
    };
    (0..200).filter(misses).count()
}

#[test]
fn intervals_have_their_stated_coverage() {
    for count in [2, 3, 5, 10] {
        let ratio = if count % 2 == 0 { 1.0 } else { 0.8 };
        let missed = misses(Bench { ratio, ..EQUAL }, count);
        // 5 % of 200 are 10; more than 20 have a probability of 0.1 % then.
        assert!(missed <= 20, "{count}: {missed} of 200");
    }
}

#[test]
fn single_pair_respects_run_memory_and_states_within_run_basis() {
    let still = Bench { between_ratio: 0.0, ..EQUAL };
    let missed = misses(still, 1);
    assert!(missed <= 20, "{missed} of 200");
    let basis = still.compare(1, 1, Statistic::Rate).basis;
    assert_eq!(basis, Basis::WithinRun);
    assert_eq!(still.compare(1, 2, Statistic::Rate).basis, Basis::BetweenRuns);
}

#[test]
fn a_slower_candidate_is_found_by_its_rate_and_by_its_times() {
    let slower = Bench { ratio: 0.9, ..EQUAL };
    for statistic in [Statistic::Rate, P50] {
        let counts = verdicts(|seed| slower.compare(seed, 6, statistic));
        assert!(counts[1] >= 190, "{statistic:?}: {counts:?}");
        assert_eq!(counts[0], 0, "{statistic:?}: {counts:?}");
    }
    let faster = Bench { ratio: 1.2, ..EQUAL };
    let found = faster.compare(1, 6, P50);
    assert_eq!(found.verdict, ComparisonVerdict::Faster);
    assert!((found.ratio.value * 1.2 - 1.0).abs() < 0.03, "{found:?}");
}

#[test]
fn a_drift_is_not_taken_for_a_difference() {
    let drifting = Bench { drift_ratio: 0.01, between_ratio: 0.005, ..EQUAL };
    let counts = verdicts(|seed| drifting.compare(seed, 8, Statistic::Rate));
    assert!(counts[2] >= 190, "{counts:?}");
    let effect = |seed| drifting.compare(seed, 8, Statistic::Rate).order_effect_ratio.unwrap();
    let mean = (0..50).map(effect).sum::<f64>() / 50.0;
    assert!((mean - 0.99).abs() < 0.004, "{mean}");
    // Without removing the effect of the order, the intervals would be half as wide again.
    let mean_width = |drift_ratio| {
        let bench = Bench { drift_ratio, ..drifting };
        let width = |seed| bench.compare(seed, 8, Statistic::Rate).ratio.half_width_ratio();
        (0..50).map(width).sum::<f64>() / 50.0
    };
    assert!(mean_width(0.03) < 1.2 * mean_width(0.0));
    let few = drifting.compare(1, 5, Statistic::Rate);
    assert_eq!(few.order_effect_ratio, None);
}

#[test]
fn adding_pairs_until_precise_keeps_the_coverage() {
    let until_precise = |seed: u64| {
        let pairs = EQUAL.pairs(seed, 20);
        let at =
            |count: usize| compare(&pairs[..count], Statistic::Rate, 0.05, quick(seed)).unwrap();
        let precise = (2..=20).map(at).find(is_precise);
        precise.unwrap_or_else(|| at(20))
    };
    let counts = verdicts(until_precise);
    assert!(counts[2] >= 190, "{counts:?}");
}

#[test]
fn too_few_pairs_are_not_enough_data() {
    let noisy = Bench { between_ratio: 0.1, ..EQUAL };
    let counts = verdicts(|seed| noisy.compare(seed, 3, Statistic::Rate));
    assert!(counts[3] >= 180 && counts[2] <= 4, "{counts:?}");
}

#[test]
fn the_number_of_pairs_needed_follows_the_deviation() {
    // t of 95 % with 15 degrees of freedom is 2.131: 2.131 · 0.02 / 4 = 0.0107.
    assert_eq!(pairs_needed(0.02, 0.0107), Some(16));
    assert_eq!(pairs_needed(0.02, 0.0106), Some(17));
    assert_eq!(pairs_needed(0.0, 0.01), Some(2));
    assert_eq!(pairs_needed(1.0, 0.001), None);
    assert_eq!(pairs_needed(f64::NAN, 0.1), None);
    let found = EQUAL.compare(1, 3, Statistic::Rate);
    let needed = pairs_expected(&found).unwrap();
    assert!(is_precise(&found) || (4..40).contains(&needed), "{needed}");
    let precise = EQUAL.compare(1, 20, Statistic::Rate);
    assert_eq!(pairs_expected(&precise), Some(20));
}

#[test]
fn the_verdict_follows_from_the_interval() {
    let judged = |low: f64, high: f64| {
        let ratio = Estimate { value: (low * high).sqrt(), low, high, confidence_ratio: 0.95 };
        verdict(Statistic::Rate, &ratio, 0.05)
    };
    let equal = ComparisonVerdict::NoDifferenceLargerThan { margin_ratio: 0.05 };
    assert_eq!(judged(0.98, 1.03), equal);
    assert_eq!(judged(1.01, 1.04), equal);
    assert_eq!(judged(1.01, 1.06), ComparisonVerdict::Faster);
    assert_eq!(judged(0.9, 0.99), ComparisonVerdict::Slower);
    assert_eq!(judged(0.9, 1.01), ComparisonVerdict::NotEnoughData);
    assert_eq!(judged(0.5, 2.0), ComparisonVerdict::NotEnoughData);
}

#[test]
fn missing_or_empty_pairs_give_no_comparison() {
    let idle =
        Pair { baseline: Series::new(&[]), candidate: EQUAL.run(1, 1, 1.0), baseline_first: true };
    assert_eq!(compare(&[], Statistic::Rate, 0.05, quick(1)), None);
    assert_eq!(compare(&[idle], Statistic::Rate, 0.05, quick(1)), None);
}

#[test]
fn percentile_with_under_ten_values_beyond_is_not_compared() {
    let few = |pairs: usize| {
        let pairs = EQUAL.pairs(1, pairs);
        let percentile = Statistic::Percentile { percent: 99.99 };
        compare(&pairs, percentile, 0.05, Resampling::seeded(1))
    };
    let beyond = EQUAL.pairs(1, 1)[0].baseline.beyond(Statistic::Percentile { percent: 99.99 });
    let enough = (MIN_BEYOND_PERCENTILE / beyond).ceil() as usize;
    assert!(few(enough - 1).is_none() && enough > 2, "{enough}");
    assert!(few(enough).is_some());
}

/// Repetitions of a side with the true level `speed`.
fn side(bench: Bench, seed: u64, first: u64, count: u64, speed: f64) -> Runs {
    let run = |number: u64| {
        let level = normal(seed * 104_729 + first + number, 1)[0];
        let rate = 10_000.0 * speed * (1.0 + bench.between_ratio * level);
        let errors = autoregressive(seed * 15_485_863 + first + number, 30, 0.6).into_iter();
        let interval = |error: f64| IntervalSample {
            duration_s: 1.0,
            operations: (rate * (1.0 + 0.02 * error)) as u64,
            times: SparseHistogram::default(),
        };
        errors.map(interval).collect::<Vec<_>>()
    };
    Runs::new(&(0..count).map(run).collect::<Vec<_>>())
}

fn of_sides(bench: Bench, seed: u64, counts: [u64; 2], earlier: u64) -> Comparison {
    let a = side(bench, seed, 0, counts[0], 1.0);
    let b = side(bench, seed, 1_000, counts[1], bench.ratio);
    let (earlier, none) = (side(bench, seed, 2_000, earlier, 1.0), Runs::new(&[]));
    let resampling = Resampling { draws: 200, ..Resampling::seeded(seed) };
    compare_sides([&a, &b], [&earlier, &none], Statistic::Rate, 0.05, resampling)
        .expect("a comparison")
}

#[test]
fn runs_of_two_sides_differ_by_chance_in_few_comparisons() {
    let noisy = Bench { between_ratio: 0.1, ..EQUAL };
    for (counts, earlier) in [([5, 5], 0), ([3, 8], 0), ([5, 1], 0), ([1, 1], 3), ([1, 1], 8)] {
        let claims = (0..200).filter(|seed| {
            let verdict = of_sides(noisy, *seed, counts, earlier).verdict;
            matches!(verdict, ComparisonVerdict::Faster | ComparisonVerdict::Slower)
        });
        // 5 % of 200 are 10; more than 20 have a probability of 0.1 % then.
        let claims = claims.count();
        assert!(claims <= 20, "{counts:?}, {earlier}: {claims} of 200");
    }
}

#[test]
fn enough_runs_of_two_sides_show_a_slower_one() {
    let slower = Bench { ratio: 0.85, between_ratio: 0.02, ..EQUAL };
    for (counts, earlier) in [([5, 5], 0), ([5, 1], 0), ([1, 1], 8)] {
        let found = of_sides(slower, 1, counts, earlier);
        assert_eq!(found.verdict, ComparisonVerdict::Slower, "{found:?}");
        assert_eq!(found.basis, Basis::BetweenRuns);
    }
    assert_eq!(of_sides(slower, 1, [1, 1], 0).basis, Basis::WithinRun);
}
