//! The part of a phase that may be measured: the phase without its warm-up, if it is stationary.
//!
//! The start is cut off where that minimizes the standard error of the mean of the rest: the marginal standard
//! error rule of K. P. White, "An Effective Truncation Heuristic for Bias Reduction in Simulation Output",
//! *Simulation* 69 (1997). The cut is at most half: a phase that needs longer has not reached its steady state.
//! A cut that would not change the mean is not made.
//!
//! The rest must then pass the tests of [`crate::steady_state`], and a test for a step at any place, which
//! finds a collapse late in the phase (burst credits, a full cache): the largest t statistic over the places in
//! the middle 70 %, against the 1 % limit of D. W. K. Andrews, "Tests for Parameter Instability and Structural
//! Change with Unknown Change Point", *Econometrica* 61 (1993), with the effective number of windows.

use crate::robust::mean;
use crate::steady_state::{MIN_WINDOWS, RELEVANT_CHANGE_RATIO, SteadyState, assess_beyond};
use crate::student::two_sided_1_percent;
use crate::uncertainty::autocorrelation::effective_size;
use std::ops::Range;

/// Largest share of a phase that may be cut off as its warm-up.
const MOST_CUT_RATIO: f64 = 0.5;

/// Share of a relevant change that a cut must move the mean by.
const RELEVANT_CUT_SHARE: f64 = 0.1;

/// A mean response time follows the smallest changes of a load near saturation, so it counts as changed only
/// from a quarter of its mean on; a rate counts from [`RELEVANT_CHANGE_RATIO`] on.
pub const RELEVANT_RESPONSE_CHANGE_RATIO: f64 = 0.25;

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
    let verdict = match assess_beyond(rest, relevant_ratio) {
        SteadyState::Undecided => SteadyState::Undecided,
        SteadyState::Steady => shift().unwrap_or(SteadyState::Steady),
        // Report the description that leaves the least unexplained.
        found => match shift() {
            Some(shift) if !is_line(rest) => shift,
            _ => found,
        },
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

/// Whether a line leaves less unexplained than the best step.
fn is_line(rates: &[f64]) -> bool {
    let center = (rates.len() as f64 - 1.0) / 2.0;
    let offsets = || (0..rates.len()).map(|place| place as f64 - center);
    let products: f64 = offsets().zip(rates).map(|(x, y)| x * y).sum();
    let spread: f64 = offsets().map(|x| x * x).sum();
    let by_line = squares_around_mean(rates) - products * products / spread;
    let by_step = best_step(rates).map_or(f64::INFINITY, |(_, squares)| squares);
    by_line < by_step
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

    /// The steady part of a series of rates.
    fn stationary_part(rates: &[f64]) -> Option<Range<usize>> {
        let found = judge(rates, None);
        (found.verdict == SteadyState::Steady).then_some(found.part)
    }

    /// Rates with autocorrelated noise around a function of the position from 0 to 1.
    fn rates(seed: u64, deviation: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        let noise = autoregressive(seed, 60, 0.3).into_iter().enumerate();
        let rate = |(i, e): (usize, f64)| 1000.0 * (shape(i as f64 / 59.0) + deviation * e);
        noise.map(rate).collect()
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
            // The halves differ as well.
            assert!(matches!(found.verdict, SteadyState::Trend { .. } | SteadyState::Step { .. }));
            return;
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
        // Three tests at 1 % each, and some windows lost at the start.
        assert!(refused <= 40, "{refused} of 1000");
        assert!(cut <= 10_000, "{cut} windows of 60,000");
    }

    #[test]
    fn short_and_idle_phases_have_no_steady_part() {
        assert_eq!(stationary_part(&[]), None);
        assert_eq!(stationary_part(&[1000.0; 7]), None);
        assert_eq!(stationary_part(&[0.0; 30]), None);
        assert_eq!(stationary_part(&[1000.0; 8]), Some(0..8));
    }
}
