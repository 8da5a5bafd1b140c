//! The search decides a confirmation, and its page shows the comparison of `dyno ab` for the same pairs.

use super::*;
use crate::comparison::Pair;
use crate::experiment::ab::analyze;
use crate::resampling::Resampling;
use crate::uncertainty::histogram::SparseHistogram;
use crate::uncertainty::series::{IntervalSample, Series};
use dyno_record::experiment::{Comparison as AbComparison, ComparisonVerdict, Statistic};
use dyno_testkit::simulate::normal;

/// A run of ten seconds that is better than usual by this logarithm.
fn run(better: f64, seed: u64) -> Series {
    let noise = normal(seed, 11);
    let level_per_s = 10_000.0 * (better + NOISE * noise[0]).exp();
    let window = |error: &f64| {
        let rate_per_s = level_per_s * (1.0 + 0.03 * error);
        let time_ns = (1e9 / rate_per_s) as u64;
        let long = rate_per_s as u64 / 20;
        IntervalSample {
            duration_s: 1.0,
            operations: rate_per_s as u64,
            times: SparseHistogram::from_counts([
                (time_ns, rate_per_s as u64 - long),
                (10 * time_ns, long),
            ]),
        }
    };
    let windows: Vec<IntervalSample> = noise[1..].iter().map(window).collect();
    Series::new(&windows)
}

/// Both results for the same pairs: the tuned runs are better by this logarithm, and the second runs by
/// another.
fn both(goal: TuneGoal, better: f64, second: f64, seed: u64) -> (Figure, AbComparison) {
    let (statistic, sign) = match goal {
        TuneGoal::Rate => (Statistic::Rate, 1.0),
        _ => (Statistic::Percentile { percent: 99.0 }, -1.0),
    };
    let options = options(goal);
    let mut progress = Bench::of(goal, seed).begin(&options);
    progress.set_confirmation_pairs(8);
    let mut now = UnderWay::new(TunePurpose::Confirm, Setting::new(), Setting::new());
    let mut pairs = Vec::new();
    let found = loop {
        let number = pairs.len() as u64;
        let of_pair = 1_000 * (seed + 1) + 2 * number;
        let baseline_first = number.is_multiple_of(2);
        let if_second = |is_second| if is_second { second } else { 0.0 };
        let pair = Pair {
            baseline: run(if_second(!baseline_first), of_pair),
            candidate: run(better + if_second(baseline_first), of_pair + 1),
            baseline_first,
        };
        let value = |side: &Series| side.value(statistic).unwrap();
        let ratio = value(&pair.candidate) / value(&pair.baseline);
        now.ratios.push(sign * ratio.ln());
        pairs.push(pair);
        if let Some((found, _)) = progress.judged(&now) {
            break found;
        }
    };
    let resampling = Resampling { draws: 60, ..Resampling::seeded(seed) };
    let answer = analyze(&pairs, statistic, options.margin_ratio, &[], resampling).unwrap();
    (progress.ratio(&found), *answer.decision().unwrap())
}

#[test]
fn search_and_ab_agree_on_a_confirmation() {
    // `dyno ab` does not compare the servers' CPU time.
    for (goal, seed) in [TuneGoal::Rate, TuneGoal::P99]
        .into_iter()
        .flat_map(|goal| (0..20).map(move |seed| (goal, seed)))
    {
        let better = [-0.2, 0.0, 0.05, 0.2][seed as usize % 4];
        let (search, ab) = both(goal, better, 0.0, seed);
        // Equal ratios: one is never certain of a gain and the other of a loss.
        assert!((search.value / ab.ratio.value).ln().abs() < 1e-9);
        let is_certain = search.low.unwrap() > 1.0 || search.high.unwrap() < 1.0;
        // The search assumes at least half of the known noise for the pairs, so it claims less.
        assert!(!is_certain || !ab.ratio.contains(1.0), "{search:?} {ab:?}");
        let expected = match better {
            0.2 => ComparisonVerdict::Faster,
            -0.2 => ComparisonVerdict::Slower,
            _ => continue,
        };
        assert!(is_certain, "{search:?}");
        assert_eq!(ab.verdict, expected, "{ab:?}");
    }
}

#[test]
fn warm_second_run_leaves_search_as_certain_as_ab() {
    for seed in 0..5 {
        let (search, ab) = both(TuneGoal::Rate, 0.1, 0.2, seed);
        assert!(ab.order_effect_ratio.is_some_and(|effect| effect > 1.1), "{ab:?}");
        assert_eq!(ab.verdict, ComparisonVerdict::Faster, "{ab:?}");
        assert!(search.low.unwrap() > 1.0, "{search:?}");
    }
}
