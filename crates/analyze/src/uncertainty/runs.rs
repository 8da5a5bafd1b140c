//! Rate, mean and percentiles of repeated runs, whose recording intervals vary within each run and whose levels
//! vary from run to run.
//!
//! The two levels are resampled separately. Whole runs are drawn with replacement, which shows the variation of
//! both levels together (A. C. Davison and D. V. Hinkley, *Bootstrap Methods and their Application* (1997),
//! section 3.8: drawing inside the drawn runs as well counts the inner level twice). Few runs may agree by
//! chance, so the uncertainty within the runs ([`super::series`]) is the minimum. Sweep levels with a few runs
//! each share their information about the variation between runs: [`estimate_levels`].

use super::series::{IntervalSample, Series, standard_deviation};
use crate::estimate::Spread;
use crate::resampling::Resampling;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{Basis, Statistic};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Random number stream of this method, see [`Resampling::rng`].
const STREAM: u64 = 3;

/// An estimate from one or more runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsEstimate {
    /// The value over all runs together, with its interval.
    pub estimate: Estimate,
    /// Basis of the interval.
    pub basis: Basis,
    pub runs: usize,
}

/// Repeated runs of the same plan, ready to be resampled.
#[derive(Clone, Debug)]
pub struct Runs {
    each: Vec<Series>,
    all: Series,
    ranges: Vec<Range<usize>>,
}

impl Runs {
    /// Takes the recording intervals of each run in their order.
    pub fn new(runs: &[Vec<IntervalSample>]) -> Runs {
        let mut end = 0;
        let range = |run: &Vec<IntervalSample>| {
            let start = end;
            end += run.len();
            start..end
        };
        Runs {
            ranges: runs.iter().map(range).collect(),
            each: runs.iter().map(|run| Series::new(run)).collect(),
            all: Series::new(&runs.concat()),
        }
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.each.len()
    }

    /// Whether it has zero runs.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Operations of all runs beyond a percentile; infinite for other statistics.
    pub(crate) fn beyond(&self, statistic: Statistic) -> f64 {
        self.all.beyond(statistic)
    }

    /// The statistic over all runs together, even without an interval; `None` without operations.
    pub fn value(&self, statistic: Statistic) -> Option<f64> {
        self.all.value(statistic)
    }

    /// The statistic over all runs with its interval. `None` without operations, if a single run is worth less
    /// than three independent intervals, or if there are too few runs for an interval.
    pub fn estimate(&self, statistic: Statistic, resampling: Resampling) -> Option<RunsEstimate> {
        let own = self.run_to_run(statistic, resampling);
        self.estimate_with(statistic, resampling, own)
    }

    /// The estimate with a given variation from run to run.
    fn estimate_with(
        &self,
        statistic: Statistic,
        resampling: Resampling,
        run_to_run: Option<Spread>,
    ) -> Option<RunsEstimate> {
        let value = self.all.value(statistic).filter(|_| self.all.knows(statistic))?;
        let within = self.within(statistic, resampling);
        let runs = self.each.len();
        let (spread, basis) = if runs == 1 {
            (within?, Basis::WithinRun)
        } else {
            (run_to_run?.of_mean(runs).or_wider(within), Basis::BetweenRuns)
        };
        Some(RunsEstimate { estimate: spread.around(value)?, basis, runs })
    }

    /// Standard error of the statistic's logarithm, from the variation within the runs alone.
    pub(crate) fn within(&self, statistic: Statistic, resampling: Resampling) -> Option<Spread> {
        let spreads: Option<Vec<_>> =
            self.each.iter().map(|run| run.log_spread(statistic, resampling)).collect();
        Spread::of_sum(&spreads?, self.each.len())
    }

    /// Variation of the statistic's logarithm from run to run, by drawing whole runs. `None` for a single run.
    pub(crate) fn run_to_run(
        &self,
        statistic: Statistic,
        resampling: Resampling,
    ) -> Option<Spread> {
        let count = self.ranges.len();
        if count < 2 || !self.all.knows(statistic) {
            return None;
        }
        let mut rng = resampling.rng(STREAM);
        let logarithms: Option<Vec<f64>> = (0..resampling.draws)
            .map(|_| {
                let drawn: Vec<usize> = (0..count).map(|_| rng.random_range(0..count)).collect();
                let intervals = drawn.into_iter().flat_map(|run| self.ranges[run].clone());
                self.all.of_selection(statistic, intervals).map(f64::ln)
            })
            .collect();
        // Draws from a few runs vary around their mean, which hides the variation of that mean.
        let n = count as f64;
        Some(Spread {
            deviation: standard_deviation(&logarithms?) * n / (n - 1.0).sqrt(),
            degrees_of_freedom: n - 1.0,
        })
    }
}

/// Degrees of freedom from which a level's own variation is sufficient: four runs.
const ENOUGH_DEGREES_OF_FREEDOM: f64 = 3.0;

/// Ratio of a level's variance to the others' from which it is unlike them.
const UNLIKE_FACTOR: f64 = 4.0;

/// Pools the variation of each level with the others. A level with a few runs has an interval that is too wide
/// to be useful, or too narrow because two runs agree by chance. The levels are assumed to vary about alike,
/// relative to their means. As this is never exact, the larger of its own and the common variation counts, with
/// at most [`ENOUGH_DEGREES_OF_FREEDOM`]; a level that clearly varies more than the others ([`UNLIKE_FACTOR`])
/// uses only its own.
///
/// Among six simulated levels with two runs each, the interval covers the truth in 99 % of cases for a level
/// that varies like the others, in 93 % for one that varies twice as much, and in 87 to 89 % for three to ten
/// times as much.
pub(crate) fn with_pooled(own: &[Option<Spread>]) -> Vec<Option<Spread>> {
    let of_level = |(place, own_spread): (usize, &Option<Spread>)| {
        let own_spread = (*own_spread)?;
        let is_other =
            |(other, spread): (usize, &Option<Spread>)| spread.filter(|_| other != place);
        let others: Vec<Spread> = own.iter().enumerate().filter_map(is_other).collect();
        let Some(common) = Spread::pooled(&others) else {
            return Some(own_spread);
        };
        let is_unlike = own_spread.deviation.powi(2) > UNLIKE_FACTOR * common.deviation.powi(2);
        if is_unlike || own_spread.degrees_of_freedom >= ENOUGH_DEGREES_OF_FREEDOM {
            return Some(own_spread);
        }
        let all = Spread::pooled(&[own_spread, common])?;
        Some(Spread {
            deviation: own_spread.deviation.max(all.deviation),
            degrees_of_freedom: all.degrees_of_freedom.min(ENOUGH_DEGREES_OF_FREEDOM),
        })
    };
    own.iter().enumerate().map(of_level).collect()
}

/// The statistic at each of several levels with its interval, from the variation within the runs and between
/// the repetitions of all levels. Levels with few runs are assumed to vary about as much as the others,
/// relative to their means.
pub fn estimate_levels(
    levels: &[&Runs],
    statistic: Statistic,
    resampling: Resampling,
) -> Vec<Option<RunsEstimate>> {
    let own = levels.iter();
    let own: Vec<_> = own.map(|runs| runs.run_to_run(statistic, resampling)).collect();
    levels
        .iter()
        .zip(with_pooled(&own))
        .map(|(runs, run_to_run)| runs.estimate_with(statistic, resampling, run_to_run))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::histogram::SparseHistogram;
    use dyno_testkit::simulate::{autoregressive, normal};

    /// Runs of 40 intervals around 1000 per second; each interval also records its rate as a time.
    fn runs(seed: u64, count: usize, between_ratio: f64, within_ratio: f64) -> Runs {
        let run = |(number, level): (u64, f64)| {
            let noise = autoregressive(seed * 1000 + number, 40, 0.5);
            let interval = |error: f64| {
                let rate = 10_000.0 * (1.0 + between_ratio * level + within_ratio * error);
                IntervalSample {
                    duration_s: 1.0,
                    operations: rate as u64,
                    times: SparseHistogram::from_counts([(rate as u64, 1)]),
                }
            };
            noise.into_iter().map(interval).collect::<Vec<_>>()
        };
        let levels = normal(seed * 7919 + 1, count);
        Runs::new(&(0..).zip(levels).map(run).collect::<Vec<_>>())
    }

    /// Number of experiments, of 200, in which the interval covers the truth or is absent, which is rare.
    fn coverage(count: usize, between_ratio: f64, statistic: Statistic) -> usize {
        let estimate = |seed: u64| {
            let resampling = Resampling { draws: 300, ..Resampling::seeded(seed) };
            runs(seed, count, between_ratio, 0.05).estimate(statistic, resampling)
        };
        let found: Vec<RunsEstimate> = (0..200).filter_map(estimate).collect();
        assert!(found.len() >= 190, "{count} {between_ratio}: {}", found.len());
        let hits = found.iter().filter(|one| one.estimate.contains(9_999.5));
        hits.count() + 200 - found.len()
    }

    #[test]
    fn intervals_of_repetitions_have_their_stated_coverage() {
        for count in [2, 3, 5, 10] {
            for between_ratio in [0.0, 0.03] {
                for statistic in [Statistic::Rate, Statistic::Percentile { percent: 50.0 }] {
                    let hits = coverage(count, between_ratio, statistic);
                    assert!(hits >= 180, "{count} {between_ratio} {statistic:?}: {hits}");
                }
            }
        }
    }

    /// Of 100 sweeps over six levels with two runs each: how often the interval of the last level covers the
    /// truth, how often it is absent, and the median half-width. Its runs differ by `factor` times as much as
    /// the others'.
    fn coverage_of_levels(factor: f64) -> (usize, usize, f64) {
        let mut widths = Vec::new();
        let mut hits = 0;
        for seed in 0..100 {
            let resampling = Resampling { draws: 200, ..Resampling::seeded(seed) };
            let level = |number: u64| {
                let ratio = if number == 5 { 0.03 * factor } else { 0.03 };
                runs(seed * 100 + number, 2, ratio, 0.02)
            };
            let levels: Vec<Runs> = (0..6).map(level).collect();
            let levels: Vec<&Runs> = levels.iter().collect();
            let found = estimate_levels(&levels, Statistic::Rate, resampling);
            if let Some(last) = found[5] {
                hits += usize::from(last.estimate.contains(9_999.5));
                widths.push(last.estimate.half_width_ratio());
            }
        }
        let none = 100 - widths.len();
        widths.sort_by(f64::total_cmp);
        (hits, none, widths[widths.len() / 2])
    }

    #[test]
    fn levels_of_two_runs_learn_from_each_other() {
        let (hits, none, width) = coverage_of_levels(1.0);
        assert!(hits >= 93 && none <= 5, "{hits}, {none}");
        // About 3.2 · 0.03 / √2; without pooling 12.7 · 0.03 · 0.8 / √2 = 0.22.
        assert!((0.05..0.12).contains(&width), "{width}");
        // A larger variation is detected often enough, or its interval is absent.
        for factor in [2.0, 4.0] {
            let (hits, none, _) = coverage_of_levels(factor);
            assert!(hits + none >= 82, "{factor}: {hits}, {none}");
        }
    }

    #[test]
    fn two_very_different_runs_alone_have_no_interval() {
        let resampling = Resampling::seeded(1);
        let windows = |rate: u64| {
            let window = |number: u64| IntervalSample {
                duration_s: 1.0,
                operations: rate + number % 7,
                times: SparseHistogram::default(),
            };
            (0..40).map(window).collect::<Vec<_>>()
        };
        let both = Runs::new(&[windows(10_000), windows(12_000)]);
        assert_eq!(both.estimate(Statistic::Rate, resampling), None);
        assert!(both.value(Statistic::Rate).is_some());
    }

    #[test]
    fn interval_of_one_run_misses_variation_between_runs() {
        let hits = coverage(1, 0.05, Statistic::Rate);
        assert!(hits < 120, "{hits}");
        let found = runs(1, 1, 0.0, 0.05).estimate(Statistic::Rate, Resampling::seeded(1)).unwrap();
        assert_eq!((found.basis, found.runs), (Basis::WithinRun, 1));
    }

    #[test]
    fn two_runs_agreeing_by_chance_are_not_certain() {
        let resampling = Resampling::seeded(1);
        let alone = runs(1, 1, 0.0, 0.05);
        let series: Vec<IntervalSample> = (0..40)
            .map(|i| IntervalSample {
                duration_s: 1.0,
                operations: 900 + 200 * (i % 2) + i,
                times: SparseHistogram::default(),
            })
            .collect();
        let twice = Runs::new(&[series.clone(), series]);
        let found = twice.estimate(Statistic::Rate, resampling).unwrap();
        assert_eq!(found.basis, Basis::BetweenRuns);
        assert!(found.estimate.half_width_ratio() > 0.005, "{found:?}");
        assert!(alone.estimate(Statistic::MeanTime, resampling).is_some());
        assert_eq!(Runs::new(&[]).estimate(Statistic::Rate, resampling), None);
    }
}
