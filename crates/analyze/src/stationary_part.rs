//! The part of a phase that may be measured: what is left without the warm-up, if it is stationary.
//!
//! The start is cut off where that makes the standard error of the mean of the rest smallest: the
//! marginal standard error rule of K. P. White, "An Effective Truncation Heuristic for Bias
//! Reduction in Simulation Output", *Simulation* 69 (1997). At most half may go: a phase that needs
//! longer has not reached its steady state. A cut that would not change the mean is not made.
//!
//! The rest must then pass the tests of [`crate::steady_state`], and one for a step at any place,
//! which finds a collapse late in the phase (burst credits, a full cache): the largest t statistic
//! over the places in the middle 70 %, against the 1 % limit of D. W. K. Andrews, "Tests for
//! Parameter Instability and Structural Change with Unknown Change Point", *Econometrica* 61 (1993),
//! with the effective number of windows in place of their number.

use crate::steady_state::{MIN_WINDOWS, RELEVANT_CHANGE_RATIO, SteadyState, assess};
use crate::student::two_sided_1_percent;
use crate::uncertainty::autocorrelation::effective_size;
use std::ops::Range;

/// Most of a phase that may be cut off as its warm-up.
const MOST_CUT_RATIO: f64 = 0.5;

/// A cut that moves the mean by less is not made.
const RELEVANT_CUT_RATIO: f64 = 0.005;

/// Share of the windows at each end where no step is looked for.
const TRIMMED_RATIO: f64 = 0.15;

/// 1 % limit of the largest |t| over the places of a step, √12.35 in Andrews' table, divided by that
/// of a single place.
const LIMIT_OVER_SINGLE: f64 = 3.514 / 2.576;

/// The windows to measure, as positions in `rates`, which are those of consecutive windows of equal
/// length. `None` if no steady state was reached, or if less than [`MIN_WINDOWS`] are left.
pub fn stationary_part(rates: &[f64]) -> Option<Range<usize>> {
    let start = warm_up_end(rates);
    let rest = &rates[start..];
    let is_steady = assess(rest) == SteadyState::Steady && !has_step(rest);
    is_steady.then_some(start..rates.len())
}

/// Number of windows to cut off at the start.
fn warm_up_end(rates: &[f64]) -> usize {
    let most = (rates.len() as f64 * MOST_CUT_RATIO) as usize;
    let most = most.min(rates.len().saturating_sub(MIN_WINDOWS));
    let error = |start: &usize| {
        let rest = &rates[*start..];
        squares_around_mean(rest) / (rest.len() as f64).powi(2)
    };
    let best = (0..=most).min_by(|a, b| error(a).total_cmp(&error(b)));
    let moves_mean = |start: &usize| {
        let change = mean(&rates[*start..]) / mean(rates) - 1.0;
        change.abs() >= RELEVANT_CUT_RATIO
    };
    best.filter(moves_mean).unwrap_or(0)
}

/// Whether the level changes by a relevant and significant step somewhere in the middle.
fn has_step(rates: &[f64]) -> bool {
    let trimmed = ((rates.len() as f64 * TRIMMED_RATIO).ceil() as usize).max(2);
    let error = |position: &usize| {
        let (before, after) = rates.split_at(*position);
        squares_around_mean(before) + squares_around_mean(after)
    };
    let places = trimmed..rates.len().saturating_sub(trimmed);
    let best = places.min_by(|a, b| error(a).total_cmp(&error(b)));
    best.is_some_and(|position| is_step(rates.split_at(position)))
}

fn is_step((before, after): (&[f64], &[f64])) -> bool {
    let (mean_before, mean_after) = (mean(before), mean(after));
    let residuals: Vec<f64> = before
        .iter()
        .map(|rate| rate - mean_before)
        .chain(after.iter().map(|rate| rate - mean_after))
        .collect();
    let n = residuals.len() as f64;
    let effective_share = effective_size(&residuals) / n;
    let (size_before, size_after) = (
        before.len() as f64 * effective_share,
        after.len() as f64 * effective_share,
    );
    let degrees_of_freedom = size_before + size_after - 2.0;
    let variance = squares_around_mean(&residuals) * effective_share / degrees_of_freedom;
    let error = (variance * (1.0 / size_before + 1.0 / size_after)).sqrt();
    let change = (mean_after - mean_before).abs();
    let overall = (mean_before + mean_after) / 2.0;
    change >= RELEVANT_CHANGE_RATIO * overall
        && change > two_sided_1_percent(degrees_of_freedom) * LIMIT_OVER_SINGLE * error
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares_around_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::autoregressive;

    /// Rates with noise that has memory, in the shape of a function of the position from 0 to 1.
    fn rates(seed: u64, deviation: f64, shape: impl Fn(f64) -> f64) -> Vec<f64> {
        let noise = autoregressive(seed, 60, 0.3).into_iter().enumerate();
        let rate = |(i, e): (usize, f64)| 1000.0 * (shape(i as f64 / 59.0) + deviation * e);
        noise.map(rate).collect()
    }

    #[test]
    fn a_warm_up_is_cut_off_and_little_more() {
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
    fn a_collapse_or_a_drift_leaves_no_steady_part() {
        for seed in 0..50 {
            for place in [0.4, 0.6, 0.7, 0.8] {
                let collapse = rates(seed, 0.03, |x| if x < place { 1.0 } else { 0.6 });
                let part = stationary_part(&collapse);
                // What is left after an early one is steady again.
                assert!(
                    part.is_none_or(|part| place < 0.5 && part.start >= 22),
                    "{seed} {place}"
                );
            }
            let drift = rates(seed, 0.02, |x| 1.0 - 0.5 * x);
            assert_eq!(stationary_part(&drift), None, "{seed}");
        }
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
