//! Rate, mean and percentiles of repeated runs, whose recording intervals vary within each run and
//! whose levels vary from run to run.
//!
//! The two levels are resampled apart. Whole runs are drawn with replacement, which shows the
//! variation of both levels together (A. C. Davison and D. V. Hinkley, *Bootstrap Methods and their
//! Application* (1997), section 3.8: drawing inside the drawn runs as well counts the inner level
//! twice). Few runs may agree by chance, so the uncertainty within the runs ([`super::series`]) is
//! the least that is reported.

use super::series::{IntervalSample, Series, standard_deviation};
use crate::estimate::combined;
use crate::resampling::Resampling;
use crate::student::two_sided;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::{Basis, Statistic};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Random numbers of this method, see [`Resampling::rng`].
const STREAM: u64 = 3;

/// An estimate from one or more runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsEstimate {
    /// The value over all runs together, with its interval.
    pub estimate: Estimate,
    /// What the interval rests on.
    pub basis: Basis,
    /// Number of runs.
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

    /// The statistic over all runs together, also where it has no interval; `None` if nothing was done.
    pub fn value(&self, statistic: Statistic) -> Option<f64> {
        self.all.value(statistic)
    }

    /// The statistic over all runs with its interval. `None` if nothing was done, or if a single
    /// run is worth less than three independent intervals.
    pub fn estimate(&self, statistic: Statistic, resampling: Resampling) -> Option<RunsEstimate> {
        let value = self
            .all
            .value(statistic)
            .filter(|_| self.all.knows(statistic))?;
        let within = self.within(statistic, resampling);
        let (half_width, basis) = match self.each.len() {
            1 => (within?, Basis::WithinRun),
            _ => {
                let between = self.between(statistic, resampling)?;
                (between.max(within.unwrap_or(0.0)), Basis::BetweenRuns)
            }
        };
        let factor = half_width.exp();
        let estimate = Estimate {
            value,
            low: value / factor,
            high: value * factor,
            confidence_ratio: resampling.confidence_ratio,
        };
        factor.is_finite().then_some(RunsEstimate {
            estimate,
            basis,
            runs: self.each.len(),
        })
    }

    /// Half-width on the scale of logarithms, from the variation inside of the runs alone.
    fn within(&self, statistic: Statistic, resampling: Resampling) -> Option<f64> {
        let spreads: Option<Vec<_>> = self
            .each
            .iter()
            .map(|run| run.log_spread(statistic, resampling))
            .collect();
        let spreads = spreads?;
        let deviations: Vec<f64> = spreads.iter().map(|spread| spread.deviation).collect();
        let degrees_of_freedom = spreads.iter().map(|spread| spread.degrees_of_freedom).sum();
        let deviation = combined(&deviations) / deviations.len() as f64;
        let half_width = two_sided(resampling.confidence_ratio, degrees_of_freedom) * deviation;
        half_width.is_finite().then_some(half_width)
    }

    /// Half-width on the scale of logarithms, from drawing whole runs.
    fn between(&self, statistic: Statistic, resampling: Resampling) -> Option<f64> {
        let count = self.ranges.len();
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
        let deviation = standard_deviation(&logarithms?) * (n / (n - 1.0)).sqrt();
        Some(two_sided(resampling.confidence_ratio, n - 1.0) * deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::histogram::SparseHistogram;
    use dyno_testkit::simulate::{autoregressive, normal};

    /// Runs of 40 intervals around 1000 per second; each interval records its rate as a time too.
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

    fn coverage(count: usize, between_ratio: f64, statistic: Statistic) -> usize {
        let holds = |seed: &u64| {
            let resampling = Resampling {
                draws: 300,
                ..Resampling::seeded(*seed)
            };
            let runs = runs(*seed, count, between_ratio, 0.05);
            let found = runs.estimate(statistic, resampling).unwrap();
            found.estimate.contains(9_999.5)
        };
        (0..200).filter(holds).count()
    }

    #[test]
    fn repetitions_hold_the_truth_as_often_as_they_say() {
        for count in [2, 3, 5, 10] {
            for between_ratio in [0.0, 0.03] {
                for statistic in [Statistic::Rate, Statistic::Percentile { percent: 50.0 }] {
                    let hits = coverage(count, between_ratio, statistic);
                    assert!(hits >= 180, "{count} {between_ratio} {statistic:?}: {hits}");
                }
            }
        }
    }

    #[test]
    fn a_single_run_misses_what_differs_between_runs() {
        let hits = coverage(1, 0.05, Statistic::Rate);
        assert!(hits < 120, "{hits}");
        let found = runs(1, 1, 0.0, 0.05)
            .estimate(Statistic::Rate, Resampling::seeded(1))
            .unwrap();
        assert_eq!((found.basis, found.runs), (Basis::WithinRun, 1));
    }

    #[test]
    fn two_runs_that_agree_by_chance_are_no_certainty() {
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
