//! Rate, mean and percentiles of a run with confidence intervals, from its recording intervals.
//!
//! The recording intervals are resampled in pieces ([`super::blocks`]), and the histograms of each
//! selection are merged before a percentile is read: percentiles themselves are never averaged. The
//! interval is `value · exp(± t · s)` with the standard deviation `s` of the logarithms over the
//! draws, and Student's `t` for the effective size of the series that moves the statistic: B. Efron
//! and R. Tibshirani, *An Introduction to the Bootstrap* (1993), section 12.5; for a percentile that
//! series is the number of values above it in each interval (R. R. Bahadur, "A Note on Quantiles in
//! Large Samples", *Annals of Mathematical Statistics* 37 (1966)). The logarithm fits values that
//! are positive and skewed.

use super::autocorrelation::{degrees_of_freedom, effective_size};
use super::blocks::{block_length, resample};
use super::histogram::{HistogramTable, SparseHistogram};
use crate::estimate::Spread;
use crate::resampling::Resampling;
use dyno_record::estimate::Estimate;
use dyno_record::experiment::Statistic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Random number stream of this method, see [`Resampling::rng`].
const STREAM: u64 = 2;

/// Fewest operations beyond a percentile for its interval: resampling cannot show unseen values, so it cannot
/// show how far the last few might have been.
pub const MIN_BEYOND_PERCENTILE: f64 = 10.0;

/// Half-width of the interval for which a required time is estimated.
pub(crate) const PRECISE_RATIO: f64 = 0.1;

/// Longest required run that is reported, as a multiple of the run's length.
const MOST_TIMES_LONGER: f64 = 1_000.0;

/// One recording interval of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalSample {
    /// Length in seconds.
    pub duration_s: f64,
    /// Operations that succeeded in the interval.
    pub operations: u64,
    /// Their times, in any unit.
    pub times: SparseHistogram,
}

/// Why a statistic has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoInterval {
    /// There are too few windows, however independent they are.
    TooFewWindows,
    /// There are enough windows, but each resembles the one before.
    Correlated,
    /// Fewer than ten operations took longer than the percentile.
    TooFewBeyond,
}

/// Why a statistic has no interval, and what would give it one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shortage {
    pub(crate) reason: NoInterval,
    /// Effective number of independent windows.
    pub(crate) independent_windows: f64,
    /// Measured time that would probably give an interval of ± [`PRECISE_RATIO`]; `None` if the windows do not allow an
    /// estimate.
    pub(crate) needed_s: Option<f64>,
}

/// The recording intervals of a run, ready to be resampled.
#[derive(Clone, Debug)]
pub struct Series {
    durations_s: Vec<f64>,
    operations: Vec<f64>,
    table: HistogramTable,
}

impl Series {
    /// Adds the intervals of a run in their order.
    pub fn new(intervals: &[IntervalSample]) -> Series {
        Series {
            durations_s: intervals.iter().map(|i| i.duration_s).collect(),
            operations: intervals.iter().map(|i| i.operations as f64).collect(),
            table: HistogramTable::new(intervals.iter().map(|i| &i.times)),
        }
    }

    /// Number of recording intervals.
    pub fn len(&self) -> usize {
        self.durations_s.len()
    }

    /// Whether it has zero recording intervals.
    pub fn is_empty(&self) -> bool {
        self.durations_s.is_empty()
    }

    /// The statistic over the whole run; `None` without operations.
    pub fn value(&self, statistic: Statistic) -> Option<f64> {
        self.of_selection(statistic, 0..self.len())
    }

    /// Operations beyond a percentile; infinite for other statistics.
    pub(crate) fn beyond(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Percentile { percent } => self.table.total() * (1.0 - percent / 100.0),
            Statistic::Rate | Statistic::MeanTime => f64::INFINITY,
        }
    }

    /// Whether there are enough operations beyond a percentile for its interval.
    pub(crate) fn knows(&self, statistic: Statistic) -> bool {
        self.beyond(statistic) >= MIN_BEYOND_PERCENTILE
    }

    /// The statistic with its interval. `None` without operations, if the intervals are worth less than three
    /// independent ones or too few to give its size, or if fewer than [`MIN_BEYOND_PERCENTILE`] operations lie
    /// beyond the percentile.
    pub fn estimate(&self, statistic: Statistic, resampling: Resampling) -> Option<Estimate> {
        let value = self.value(statistic)?;
        let spread = self.log_spread(statistic, resampling)?;
        spread.around(value)
    }

    /// Why the statistic has no interval; `None` if it has one, or without operations.
    pub(crate) fn shortage(
        &self,
        statistic: Statistic,
        resampling: Resampling,
    ) -> Option<Shortage> {
        let size = effective_size(&self.influence(statistic)?);
        let value = self.value(statistic)?;
        let spread = self.resampled(statistic, resampling);
        // As if the run were `factor` times as long.
        let longer = |spread: &Spread, factor: f64| Spread {
            deviation: spread.deviation / factor.sqrt(),
            degrees_of_freedom: degrees_of_freedom(size * factor),
        };
        let windows = self.len() as f64;
        let reason = if !self.knows(statistic) {
            NoInterval::TooFewBeyond
        } else {
            let is_correlated = match &spread {
                Some(spread) if spread.around(value).is_some() => return None,
                Some(spread) => longer(spread, windows / size).around(value).is_some(),
                None => windows >= 2.0 * size,
            };
            if is_correlated { NoInterval::Correlated } else { NoInterval::TooFewWindows }
        };
        let enough_beyond = MIN_BEYOND_PERCENTILE / self.beyond(statistic);
        let factors = std::iter::successors(Some(1.0), |factor| Some(factor * 1.1));
        let factor = spread.and_then(|spread| {
            factors
                .take_while(|factor| *factor <= MOST_TIMES_LONGER)
                .skip_while(|factor| *factor < enough_beyond)
                .find(|factor| longer(&spread, *factor).half_width() <= PRECISE_RATIO.ln_1p())
        });
        let length_s: f64 = self.durations_s.iter().sum();
        Some(Shortage {
            reason,
            independent_windows: size,
            needed_s: factor.map(|factor| length_s * factor),
        })
    }

    /// Standard error of the statistic's logarithm. `None` without operations, or if a selection may be empty.
    pub(crate) fn log_spread(
        &self,
        statistic: Statistic,
        resampling: Resampling,
    ) -> Option<Spread> {
        if self.knows(statistic) { self.resampled(statistic, resampling) } else { None }
    }

    /// The standard error that the windows show. It is too small for a percentile with few values beyond it.
    fn resampled(&self, statistic: Statistic, resampling: Resampling) -> Option<Spread> {
        let influence = self.influence(statistic)?;
        let length = block_length(&influence);
        let mut rng = resampling.rng(STREAM);
        let (mut logarithms, mut sums) = (Vec::new(), Vec::new());
        for _ in 0..resampling.draws {
            let selection: Vec<usize> = resample(self.len(), length, &mut rng).collect();
            sums.push(selection.iter().map(|interval| influence[*interval]).sum());
            logarithms.push(self.of_selection(statistic, selection.into_iter())?.ln());
        }
        let size = effective_size(&influence);
        let deviation = standard_deviation(&logarithms) * too_narrow(&influence, size, &sums);
        deviation
            .is_finite()
            .then(|| Spread { deviation, degrees_of_freedom: degrees_of_freedom(size) })
    }

    /// Contribution of each interval to the statistic, up to a factor: a series with mean 0.
    fn influence(&self, statistic: Statistic) -> Option<Vec<f64>> {
        let value = self.value(statistic)?;
        Some(match statistic {
            Statistic::Rate => self
                .operations
                .iter()
                .zip(&self.durations_s)
                .map(|(count, duration_s)| count - value * duration_s)
                .collect(),
            Statistic::MeanTime => self.table.sum_excess(value),
            Statistic::Percentile { percent } => self.table.excess(value, percent / 100.0),
        })
    }

    /// The statistic over some intervals, each with its multiplicity; `None` unless it is positive.
    pub(crate) fn of_selection(
        &self,
        statistic: Statistic,
        intervals: impl Iterator<Item = usize>,
    ) -> Option<f64> {
        let value = match statistic {
            Statistic::Rate => self.rate(intervals),
            Statistic::MeanTime => self.table.mean(intervals)?,
            Statistic::Percentile { percent } => self.table.quantile(intervals, percent / 100.0)?,
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }

    fn rate(&self, intervals: impl Iterator<Item = usize>) -> f64 {
        let (mut operations, mut duration_s) = (0.0, 0.0);
        for interval in intervals {
            operations += self.operations[interval];
            duration_s += self.durations_s[interval];
        }
        operations / duration_s
    }
}

/// Factor by which the draws vary too little. Pieces of a short series lose the memory across their ends, and
/// vary around the mean of the series; both show in the sums of a series with a known effective size.
fn too_narrow(influence: &[f64], effective_size: f64, drawn_sums: &[f64]) -> f64 {
    let n = influence.len() as f64;
    let deviation = standard_deviation(influence);
    let magnitude = influence.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let drawn = standard_deviation(drawn_sums);
    // Without variation there is only rounding to compare.
    if deviation <= 1e-9 * magnitude || drawn <= 1e-9 * magnitude {
        return 1.0;
    }
    let expected = deviation * (n * (n - 1.0) / (effective_size - 1.0)).sqrt();
    (expected / drawn).max(1.0)
}

/// Standard deviation of values around their mean, with n − 1.
pub(crate) fn standard_deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uncertainty::histogram::SparseHistogram;
    use dyno_testkit::simulate::{Service, Source, Station, System, autoregressive, simulate};

    fn resampling(seed: u64) -> Resampling {
        Resampling { draws: 100, ..Resampling::seeded(seed) }
    }

    /// Buckets of 1 %, in microseconds.
    fn bucket_us(time_s: f64) -> u64 {
        (((time_s * 1e6).ln() * 100.0).round() / 100.0).exp() as u64
    }

    /// A run of 60 intervals on one exponential server at this utilization, 500 operations in each.
    fn queue(utilization: f64, seed: u64) -> Series {
        let system = System {
            source: Source::Open { rate_per_s: 500.0 },
            stations: vec![Station {
                servers: 1,
                service: Service::Exponential(utilization / 500.0),
            }],
            warm_up_s: 5.0,
            window_s: 60.0,
        };
        let intervals: Vec<IntervalSample> = simulate(&system, seed)
            .response_by_interval(60)
            .into_iter()
            .map(|times| IntervalSample {
                duration_s: 1.0,
                operations: times.len() as u64,
                times: SparseHistogram::from_counts(times.iter().map(|s| (bucket_us(*s), 1))),
            })
            .collect();
        Series::new(&intervals)
    }

    #[test]
    fn intervals_of_a_queue_have_their_stated_coverage() {
        for (utilization, least) in [(0.5, 182), (0.8, 174)] {
            let mean_us = utilization / 500.0 / (1.0 - utilization) * 1e6;
            let truths = [
                (Statistic::Rate, 500.0),
                (Statistic::MeanTime, mean_us),
                (Statistic::Percentile { percent: 50.0 }, mean_us * 2f64.ln()),
                (Statistic::Percentile { percent: 99.0 }, mean_us * 100f64.ln()),
            ];
            let mut hits = [0; 4];
            for seed in 0..200 {
                let series = queue(utilization, seed);
                for (hit, (statistic, truth)) in hits.iter_mut().zip(truths) {
                    let estimate = series.estimate(statistic, resampling(seed)).unwrap();
                    *hit += usize::from(estimate.contains(truth));
                }
            }
            assert!(hits.iter().all(|hits| *hits >= least), "{utilization}: {hits:?} of 200");
        }
    }

    /// A run whose rate is an autoregression with a deviation of 5 % around 1000 per second.
    fn rates(seed: u64, correlation: f64) -> Series {
        let interval = |error: f64| IntervalSample {
            duration_s: 1.0,
            operations: (1000.0 * (1.0 + 0.05 * error)) as u64,
            times: SparseHistogram::default(),
        };
        let errors = autoregressive(seed, 60, correlation);
        Series::new(&errors.into_iter().map(interval).collect::<Vec<_>>())
    }

    #[test]
    fn the_interval_of_a_rate_respects_its_memory() {
        let mut hits = 0;
        for seed in 0..200 {
            let estimate = rates(seed, 0.7).estimate(Statistic::Rate, resampling(seed)).unwrap();
            hits += usize::from(estimate.contains(999.5));
        }
        assert!(hits >= 180, "{hits} of 200");
    }

    #[test]
    fn times_that_never_vary_are_known_exactly() {
        let interval = |i: u64| IntervalSample {
            duration_s: 1.0,
            operations: 1000 + i % 3,
            times: SparseHistogram::from_counts([(100, 900), (200 + i % 7, 100)]),
        };
        let series = Series::new(&(0..30).map(interval).collect::<Vec<_>>());
        let median = Statistic::Percentile { percent: 50.0 };
        let found = series.estimate(median, resampling(1)).unwrap();
        assert_eq!(found.value, 100.0);
        assert!(found.half_width_ratio() < 1e-9, "{found:?}");
    }

    #[test]
    fn percentile_with_few_values_beyond_it_has_no_interval() {
        let series = queue(0.5, 1);
        let interval = |percent| series.estimate(Statistic::Percentile { percent }, resampling(1));
        // About 30,000 operations.
        assert!(interval(99.9).is_some());
        assert_eq!(interval(99.99), None);
        assert_eq!(interval(100.0), None);
        assert!(series.value(Statistic::Percentile { percent: 100.0 }).is_some());
    }

    #[test]
    fn statistic_without_an_interval_names_the_reason() {
        let why = |series: &Series| series.shortage(Statistic::Rate, resampling(1));
        let of_rates = |rates: &[u64]| {
            let interval = |rate: &u64| IntervalSample {
                duration_s: 1.0,
                operations: *rate,
                times: SparseHistogram::default(),
            };
            Series::new(&rates.iter().map(interval).collect::<Vec<_>>())
        };
        assert_eq!(why(&rates(1, 0.0)), None);
        // Three windows that differ by half.
        let few = why(&of_rates(&[1_000, 1_500, 900])).expect("too few windows");
        assert_eq!(few.reason, NoInterval::TooFewWindows);
        assert_eq!(few.independent_windows, 3.0);
        // Ten windows in two parts.
        let halves = [900, 910, 905, 890, 900, 1_500, 1_510, 1_490, 1_505, 1_500];
        let correlated = why(&of_rates(&halves)).expect("correlated windows");
        assert_eq!(correlated.reason, NoInterval::Correlated);
        assert!(correlated.independent_windows < 5.0, "{correlated:?}");
        // The parts differ by half of their mean, so ±10 % needs about 30 of them, each longer than the five windows seen of it.
        let needed_s = correlated.needed_s.expect("a required time");
        assert!((150.0..300.0).contains(&needed_s), "{needed_s}");
        let p99 = Statistic::Percentile { percent: 99.99 };
        let beyond = queue(0.5, 1).shortage(p99, resampling(1)).expect("a required time");
        assert_eq!(beyond.reason, NoInterval::TooFewBeyond);
        let needed_s = beyond.needed_s.expect("a required time");
        assert!(needed_s > 150.0, "{needed_s}");
    }

    #[test]
    fn idle_series_has_no_statistic() {
        let empty = Series::new(&[]);
        assert!(empty.is_empty());
        let idle = Series::new(&vec![
            IntervalSample {
                duration_s: 1.0,
                operations: 0,
                times: SparseHistogram::default(),
            };
            20
        ]);
        for statistic in
            [Statistic::Rate, Statistic::MeanTime, Statistic::Percentile { percent: 99.0 }]
        {
            assert_eq!(empty.estimate(statistic, resampling(1)), None);
            assert_eq!(idle.estimate(statistic, resampling(1)), None);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let series = queue(0.5, 1);
        let estimate =
            |seed| series.estimate(Statistic::Percentile { percent: 99.0 }, resampling(seed));
        assert_eq!(estimate(1), estimate(1));
        assert_ne!(estimate(1), estimate(2));
    }
}
