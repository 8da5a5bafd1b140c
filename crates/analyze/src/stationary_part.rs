//! The part of a phase that may be measured: the phase without its warm-up, if it is stationary.
//!
//! The start is cut off where that minimizes the standard error of the mean of the rest: the marginal standard
//! error rule of K. P. White, "An Effective Truncation Heuristic for Bias Reduction in Simulation Output",
//! *Simulation* 69 (1997). The cut is at most half: a phase that needs longer has not reached its steady state.
//! A cut that would not change the mean is not made.
//!
//! The rest must then pass two tests with a significance of 1 % each:
//!
//! - a linear trend, which finds slow drifts, with the lag-1 autocorrelation of its residuals: B. D. Santer et al.,
//!   "Statistical significance of trends and trend differences in layer-average atmospheric temperature time series",
//!   *Journal of Geophysical Research* 105 (2000);
//! - a step at any place, which finds a collapse late in the phase (burst credits, a full cache): the largest t
//!   statistic over the places in the middle 70 %, against the 1 % limit of D. W. K. Andrews, "Tests for Parameter
//!   Instability and Structural Change with Unknown Change Point", *Econometrica* 61 (1993).
//!
//! Neighbouring windows resemble each other, so both use the effective number of windows. Assumption: windows of
//! equal length.

use crate::robust::mean;
use crate::student::two_sided_1_percent;
use crate::uncertainty::autocorrelation::effective_size;
use std::ops::Range;

/// Largest share of a phase that may be cut off as its warm-up.
const MOST_CUT_RATIO: f64 = 0.5;

/// Share of a relevant change that a cut must move the mean by.
const RELEVANT_CUT_SHARE: f64 = 0.1;

/// Fewest windows for a verdict. With fewer, an autocorrelation cannot be estimated.
const MIN_WINDOWS: usize = 8;

/// A change below 5 % over the whole phase is not called unsteady, however significant it is: it moves a mean
/// rate by at most half of that, and in long series any tiny change is significant.
const RELEVANT_CHANGE_RATIO: f64 = 0.05;

/// Residuals below this share of the mean are rounding errors with a meaningless order.
const ROUNDING_RATIO: f64 = 1e-9;

/// From this autocorrelation on, a series with too few effective values for a test moves as one: its memory
/// fills the phase, as in a warm-up. It cannot be called steady, so a relevant change counts without the test.
/// Independent noise reached it in 3 of 20,000 series of 10 windows.
const MEMORY_FILLS_PHASE: f64 = 0.7;

/// A mean response time follows the smallest changes of a load near saturation, so it counts as changed only
/// from a quarter of its mean on; a rate counts from [`RELEVANT_CHANGE_RATIO`] on.
const RELEVANT_RESPONSE_CHANGE_RATIO: f64 = 0.25;

/// Share of the windows at each end that are not searched for a step.
const TRIMMED_RATIO: f64 = 0.15;

/// 1 % limit of the largest |t| over the places of a step, √12.35 in Andrews' table, divided by the limit for a
/// single place.
const LIMIT_OVER_SINGLE: f64 = 3.514 / 2.576;

/// Steady state of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Stationarity {
    /// Positions of the windows to measure: the windows after the warm-up if they are steady, otherwise all.
    pub part: Range<usize>,
    /// The verdict on the phase without its warm-up.
    pub verdict: SteadyState,
    /// The series that the verdict describes.
    pub subject: Subject,
}

/// Verdict on a series of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyState {
    /// No relevant and significant change was found.
    Steady,
    /// The rate follows a line; the value is the change from start to end divided by the mean.
    Trend {
        /// Positive when the rate rises.
        change_ratio: f64,
    },
    /// The level changed.
    Shift {
        /// Number of windows before the change.
        position: usize,
        /// The change divided by the mean of both levels; positive when the later part is faster.
        change_ratio: f64,
    },
    /// Too few windows, or no operations at all.
    Undecided,
}

/// A series that can be steady or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Operations per second.
    Rate,
    ResponseTime,
}

/// Finds the stationary part of a phase in the rates of its windows, which are consecutive and of equal length,
/// and in their mean response times. In a closed loop one follows from the other, so the response times may be
/// omitted; at an offered rate they show changes that the rate hides.
pub fn judge(rates: &[f64], responses: Option<&[f64]>) -> Stationarity {
    let of_rates = judge_beyond(rates, RELEVANT_CHANGE_RATIO, Subject::Rate);
    let of_responses = responses.map(|responses| {
        judge_beyond(responses, RELEVANT_RESPONSE_CHANGE_RATIO, Subject::ResponseTime)
    });
    match of_responses {
        Some(found) if of_rates.verdict == SteadyState::Steady => Stationarity {
            part: match found.verdict {
                SteadyState::Steady => of_rates.part.start.max(found.part.start)..rates.len(),
                _ => 0..rates.len(),
            },
            ..found
        },
        _ => of_rates,
    }
}

fn judge_beyond(series: &[f64], relevant_ratio: f64, subject: Subject) -> Stationarity {
    let start = warm_up_end(series, relevant_ratio * RELEVANT_CUT_SHARE);
    let rest = &series[start..];
    let shift = || {
        shift(rest, relevant_ratio).map(|(position, change_ratio)| SteadyState::Shift {
            position: start + position,
            change_ratio,
        })
    };
    let is_usable = rest.len() >= MIN_WINDOWS && mean(rest).is_finite() && mean(rest) > 0.0;
    let verdict = match is_usable.then(|| trend(rest, relevant_ratio)) {
        None => SteadyState::Undecided,
        Some(None) => shift().unwrap_or(SteadyState::Steady),
        // Report the description that leaves the least unexplained.
        Some(Some(change_ratio)) => {
            shift().filter(|_| !is_line(rest)).unwrap_or(SteadyState::Trend { change_ratio })
        }
    };
    let begin = match verdict {
        SteadyState::Steady => start,
        _ => 0,
    };
    Stationarity { part: begin..series.len(), verdict, subject }
}

/// Upper limit of the number of windows to cut off, itself excluded.
fn cut_limit(windows: usize) -> usize {
    let most = (windows as f64 * MOST_CUT_RATIO) as usize;
    most.min(windows.saturating_sub(MIN_WINDOWS))
}

/// Number of windows to cut off at the start.
fn warm_up_end(rates: &[f64], relevant_ratio: f64) -> usize {
    let most = cut_limit(rates.len());
    let error = |start: &usize| {
        let rest = &rates[*start..];
        squares_around_mean(rest) / (rest.len() as f64).powi(2)
    };
    // A cut at the limit indicates a drift that continues, not a warm-up that ended.
    let best =
        (0..=most).min_by(|a, b| error(a).total_cmp(&error(b))).filter(|start| *start < most);
    let moves_mean = |start: &usize| {
        let change = mean(&rates[*start..]) / mean(rates) - 1.0;
        change.abs() >= relevant_ratio
    };
    best.filter(moves_mean).unwrap_or(0)
}

/// The position and size of a relevant and significant step in the middle part.
fn shift(rates: &[f64], relevant_ratio: f64) -> Option<(usize, f64)> {
    let (best, _) = best_step(rates)?;
    step(rates.split_at(best), relevant_ratio).map(|change_ratio| (best, change_ratio))
}

/// The position of the step with the smallest sum of squares, and that sum.
fn best_step(rates: &[f64]) -> Option<(usize, f64)> {
    let trimmed = ((rates.len() as f64 * TRIMMED_RATIO).ceil() as usize).max(2);
    (trimmed..rates.len().saturating_sub(trimmed))
        .map(|position| {
            let (before, after) = rates.split_at(position);
            (position, squares_around_mean(before) + squares_around_mean(after))
        })
        .min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// Offsets of the windows from the middle of the series, the sum of their squares, and the slope of the
/// least-squares line.
fn line(rates: &[f64]) -> (impl Iterator<Item = f64>, f64, f64) {
    let center = (rates.len() as f64 - 1.0) / 2.0;
    let offsets = (0..rates.len()).map(move |place| place as f64 - center);
    let spread: f64 = offsets.clone().map(|x| x * x).sum();
    let products: f64 = offsets.clone().zip(rates).map(|(x, y)| x * y).sum();
    (offsets, spread, products / spread)
}

/// Whether a line leaves less unexplained than the best step.
fn is_line(rates: &[f64]) -> bool {
    let (_, spread, slope) = line(rates);
    let by_line = squares_around_mean(rates) - slope * slope * spread;
    let by_step = best_step(rates).map_or(f64::INFINITY, |(_, squares)| squares);
    by_line < by_step
}

/// The relative change along the least-squares line, if it is relevant and significant.
fn trend(rates: &[f64], relevant_ratio: f64) -> Option<f64> {
    let (offsets, spread, slope) = line(rates);
    let overall = mean(rates);
    let residuals: Vec<f64> = offsets.zip(rates).map(|(x, y)| y - overall - slope * x).collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let (n, rounding) = (rates.len() as f64, overall * ROUNDING_RATIO);
    // A negative one counts as 0, so that a series never seems longer than it is.
    let autocorrelation = match squares <= n * rounding * rounding {
        true => 0.0,
        false => (products / squares).clamp(0.0, 0.999),
    };
    let degrees_of_freedom = n * (1.0 - autocorrelation) / (1.0 + autocorrelation) - 2.0;
    let change = slope * (n - 1.0);
    let limit = match two_sided_1_percent(degrees_of_freedom) {
        limit if limit.is_finite() => {
            limit * (squares / degrees_of_freedom / spread).sqrt() * (n - 1.0)
        }
        _ if autocorrelation >= MEMORY_FILLS_PHASE => 0.0,
        limit => limit,
    };
    relative(change, overall, relevant_ratio, limit)
}

/// The relative change between two parts, if it is relevant and significant.
fn step((before, after): (&[f64], &[f64]), relevant_ratio: f64) -> Option<f64> {
    let (mean_before, mean_after) = (mean(before), mean(after));
    let residuals: Vec<f64> = before
        .iter()
        .map(|rate| rate - mean_before)
        .chain(after.iter().map(|rate| rate - mean_after))
        .collect();
    let n = residuals.len() as f64;
    let effective_share = effective_size(&residuals) / n;
    let (size_before, size_after) =
        (before.len() as f64 * effective_share, after.len() as f64 * effective_share);
    let degrees_of_freedom = size_before + size_after - 2.0;
    let variance = squares_around_mean(&residuals) * effective_share / degrees_of_freedom;
    let error = (variance * (1.0 / size_before + 1.0 / size_after)).sqrt();
    let change = mean_after - mean_before;
    let overall = (mean_before + mean_after) / 2.0;
    let limit = two_sided_1_percent(degrees_of_freedom) * LIMIT_OVER_SINGLE * error;
    relative(change, overall, relevant_ratio, limit)
}

/// A change relative to the mean, if it is relevant and beyond the limit of its test.
fn relative(change: f64, overall: f64, relevant_ratio: f64, limit: f64) -> Option<f64> {
    let counts = change.abs() >= relevant_ratio * overall && change.abs() > limit;
    counts.then_some(change / overall)
}

fn squares_around_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::autoregressive;
    use proptest::prelude::*;

    fn assess(rates: &[f64]) -> SteadyState {
        judge(rates, None).verdict
    }

    /// The steady part of a series of rates.
    fn stationary_part(rates: &[f64]) -> Option<Range<usize>> {
        let found = judge(rates, None);
        (found.verdict == SteadyState::Steady).then_some(found.part)
    }

    /// Rates of `count` windows around a function of the position from 0 to 1, with noise of this memory.
    fn noisy(
        seed: u64,
        (count, memory): (usize, f64),
        deviation: f64,
        shape: impl Fn(f64) -> f64,
    ) -> Vec<f64> {
        let noise = autoregressive(seed, count, memory).into_iter().enumerate();
        let position = |i: usize| i as f64 / (count - 1) as f64;
        noise.map(|(i, e)| 1000.0 * (shape(position(i)) + deviation * e)).collect()
    }

    fn rates(seed: u64, deviation: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        noisy(seed, (60, 0.3), deviation, shape)
    }

    /// Number of 1,000 series that are called unsteady.
    fn unsteady(series: impl Fn(u64) -> Vec<f64>) -> usize {
        (0..1000).filter(|seed| assess(&series(*seed)) != SteadyState::Steady).count()
    }

    #[test]
    fn warm_up_is_cut_off_and_little_more() {
        let (mut refused, mut cut) = (0, 0);
        for seed in 0..200 {
            let series = rates(seed, 0.03, |x| if x < 0.15 { 0.4 + 4.0 * x } else { 1.0 });
            let Some(part) = stationary_part(&series) else {
                refused += 1;
                continue;
            };
            assert!(part.start >= 5, "{seed}: {part:?}");
            cut += part.start;
            assert_eq!(part.end, 60);
            let mean = mean(&series[part]);
            assert!((mean / 1000.0 - 1.0).abs() < 0.03, "{seed}: {mean}");
        }
        assert!(refused <= 10, "{refused} of 200");
        // The warm-up takes 9 windows.
        let mean_cut = cut as f64 / f64::from(200 - refused);
        assert!((8.0..13.0).contains(&mean_cut), "{mean_cut}");
    }

    #[test]
    fn collapse_or_drift_leaves_no_steady_part() {
        for seed in 0..50 {
            for place in [0.4, 0.6, 0.7, 0.8] {
                let collapse = rates(seed, 0.03, |x| if x < place { 1.0 } else { 0.6 });
                let part = stationary_part(&collapse);
                // After an early collapse the rest is steady again.
                assert!(part.is_none_or(|part| place < 0.5 && part.start >= 22), "{seed} {place}");
            }
            let drift = rates(seed, 0.02, |x| 1.0 - 0.5 * x);
            assert_eq!(stationary_part(&drift), None, "{seed}");
        }
    }

    #[test]
    fn late_collapse_is_reported_with_its_place() {
        let collapse = rates(1, 0.03, |x| if x < 0.8 { 1.0 } else { 0.6 });
        let found = judge(&collapse, None);
        assert_eq!(found.part, 0..60);
        let SteadyState::Shift { position, change_ratio } = found.verdict else {
            panic!("{found:?}");
        };
        assert!((45..=50).contains(&position), "{position}");
        assert!((-0.6..-0.4).contains(&change_ratio), "{change_ratio}");
    }

    #[test]
    fn response_times_show_a_trend_that_the_offered_rate_hides() {
        let offered = vec![1000.0; 60];
        let climbing = rates(3, 0.03, |x| 1.0 + x);
        assert_eq!(judge(&offered, None).verdict, SteadyState::Steady);
        let found = judge(&offered, Some(&climbing));
        assert!(matches!(found.verdict, SteadyState::Trend { .. }), "{found:?}");
        let settling = rates(3, 0.03, |x| if x < 0.2 { 3.0 } else { 1.0 });
        let found = judge(&offered, Some(&settling));
        assert_eq!(found.verdict, SteadyState::Steady);
        assert!((11..=14).contains(&found.part.start), "{found:?}");
        // Noise of a tenth is not a change of a response time.
        let noise = rates(3, 0.1, |_| 1.0);
        assert_eq!(judge(&offered, Some(&noise)).part, 0..60);
    }

    #[test]
    fn stationary_noise_is_kept() {
        let (mut refused, mut cut) = (0, 0);
        for seed in 0..1000 {
            match stationary_part(&rates(seed, 0.1, |_| 1.0)) {
                Some(part) => cut += part.start,
                None => refused += 1,
            }
        }
        // Two tests at 1 % each, and some windows lost at the start.
        assert!(refused <= 40, "{refused} of 1000");
        assert!(cut <= 10_000, "{cut} windows of 60,000");
    }

    #[test]
    fn short_and_idle_phases_have_no_steady_part() {
        assert_eq!(stationary_part(&[]), None);
        assert_eq!(stationary_part(&[1000.0; 7]), None);
        assert_eq!(stationary_part(&[0.0; 30]), None);
        assert_eq!(stationary_part(&[1000.0; 8]), Some(0..8));
        assert_eq!(assess(&[1000.0; 7]), SteadyState::Undecided);
    }

    #[test]
    fn straight_line_is_judged_by_its_size() {
        let line = |change: f64| -> Vec<f64> {
            (0..30).map(|i| 1000.0 * (1.0 + change * (f64::from(i) / 29.0 - 0.5))).collect()
        };
        assert_eq!(assess(&line(0.049)), SteadyState::Steady);
        assert_eq!(assess(&line(0.0)), SteadyState::Steady);
        for change in [0.051, -0.2] {
            match assess(&line(change)) {
                SteadyState::Trend { change_ratio } => {
                    assert!((change_ratio - change).abs() < 1e-9, "{change_ratio}");
                }
                other => panic!("{change}: {other:?}"),
            }
        }
    }

    #[test]
    fn smooth_warm_up_is_found_although_it_is_not_a_line() {
        for (depth, speed) in [(0.8, 8.0), (0.4, 5.0)] {
            for deviation in [0.0, 0.01, 0.03] {
                let is_found = |seed: &u64| {
                    let found =
                        judge(&rates(*seed, deviation, |x| 1.0 - depth * (-speed * x).exp()), None);
                    found.verdict != SteadyState::Steady || found.part.start > 0
                };
                let found = (0..100).filter(is_found).count();
                assert!(found >= 95, "{depth}, {deviation}: {found} of 100");
            }
        }
    }

    #[test]
    fn step_of_a_fifth_in_the_middle_is_found() {
        for count in [10, 30] {
            let is_found = |seed: &u64| {
                let step = |x: f64| if x < 0.5 { 1.0 } else { 0.8 };
                match assess(&noisy(*seed, (count, 0.0), 0.03, step)) {
                    SteadyState::Trend { change_ratio }
                    | SteadyState::Shift { change_ratio, .. } => change_ratio < -0.1,
                    SteadyState::Steady | SteadyState::Undecided => false,
                }
            };
            let found = (0..1000).filter(is_found).count();
            assert!(found >= 950, "{count} windows: {found} of 1000");
        }
    }

    #[test]
    fn drift_hidden_by_noise_is_not_claimed() {
        let claims = unsteady(|seed| noisy(seed, (20, 0.0), 0.3, |x| 1.0 + 0.06 * (x - 0.5)));
        assert!(claims <= 40, "{claims} of 1000");
    }

    #[test]
    fn short_or_remembering_noise_is_rarely_called_unsteady() {
        // Two dependent tests at 1 % each: none at all would mean that they find nothing.
        let short = unsteady(|seed| noisy(seed, (10, 0.0), 0.2, |_| 1.0));
        assert!((3..=40).contains(&short), "{short} of 1000");
        let remembering = unsteady(|seed| noisy(seed, (60, 0.6), 0.06, |_| 1.0));
        assert!((3..=60).contains(&remembering), "{remembering} of 1000");
    }

    proptest! {
        #[test]
        fn any_numbers_give_a_verdict(series in prop::collection::vec(0.0..1e9f64, 0..60)) {
            match assess(&series) {
                SteadyState::Trend { change_ratio } | SteadyState::Shift { change_ratio, .. } => {
                    prop_assert!(change_ratio.abs() >= RELEVANT_CHANGE_RATIO * (1.0 - 1e-9));
                }
                SteadyState::Steady | SteadyState::Undecided => {}
            }
        }

        #[test]
        fn unit_of_the_rates_does_not_matter(seed in 1u64..500, scale in 1e-3..1e6f64) {
            let series = rates(seed, 0.05, |x| 1.0 + 0.1 * x);
            let scaled: Vec<f64> = series.iter().map(|rate| rate * scale).collect();
            let same_kind = std::mem::discriminant(&assess(&series)) == std::mem::discriminant(&assess(&scaled));
            prop_assert!(same_kind);
        }
    }
}
