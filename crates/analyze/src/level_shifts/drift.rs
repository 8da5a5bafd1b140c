//! The slope within the levels, and its significance.
//!
//! Slope: H. Theil, "A rank-invariant method of linear and polynomial regression analysis", *Indagationes
//! Mathematicae* 12 (1950), and P. K. Sen, *Journal of the American Statistical Association* 63 (1968): the
//! median of the slopes of all pairs, here of pairs within a level. Significance: H. B. Mann, *Econometrica* 13
//! (1945), and M. G. Kendall, *Rank Correlation Methods* (1975): the number of rising pairs minus the number of
//! falling pairs, added up over the levels. Autocorrelation increases its variance: K. H. Hamed and A. R. Rao,
//! "A modified Mann-Kendall trend test for autocorrelated data", *Journal of Hydrology* 204 (1998). They add
//! the significant autocorrelations of the ranks; here all up to the first that is not positive count, and
//! Student's distribution replaces the normal one, with the degrees of freedom of the effective number of
//! blocks: in short series the memory is as uncertain as the drift.
//!
//! Long levels are reduced to the medians of blocks of equal length. O(b²) for b ≤ 300 blocks.

use super::scores::Scale;
use crate::robust::{median, ordered_pairs, ranks};
use crate::student::MIN_DEGREES_OF_FREEDOM;
use crate::uncertainty::autocorrelation::{autocovariances, degrees_of_freedom};
use statrs::distribution::{ContinuousCDF, StudentsT};
use std::ops::Range;

/// Most blocks of a series.
const MOST_BLOCKS: usize = 300;

/// Fewest blocks of a level that can show a drift.
const FEWEST_BLOCKS: usize = 8;

/// Smallest share of the level that remains after a drift by a constant amount.
const LEAST_REMAINDER: f64 = 0.05;

/// A change in one direction, on the scale of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slope {
    /// Change per window.
    per_window: f64,
    /// Whether the change per window is a constant amount although the values are logarithms, so that their
    /// difference is not constant.
    is_amount: bool,
}

impl Slope {
    /// The slope within these parts of a series.
    pub(super) fn within(values: &[f64], parts: &[Range<usize>]) -> Slope {
        let mut slopes = Vec::new();
        for part in parts {
            let blocks = Blocks::of(values, part.clone(), values.len());
            for (first, before) in blocks.medians.iter().enumerate() {
                for (second, after) in blocks.medians.iter().enumerate().skip(first + 1) {
                    let distance = (second - first) as f64 * blocks.length as f64;
                    slopes.push((after - before) / distance);
                }
            }
        }
        Slope { per_window: median(slopes).unwrap_or_default(), is_amount: false }
    }

    /// The slopes of the whole series: by a constant difference on its scale, and for logarithms also by a
    /// constant amount.
    pub(super) fn of_whole(values: &[f64], scale: Scale) -> Vec<Slope> {
        let whole = 0..values.len();
        let mut slopes = vec![Slope::within(values, std::slice::from_ref(&whole))];
        if scale != Scale::Linear {
            let amounts: Vec<f64> = values.iter().map(|value| value.exp()).collect();
            let slope = Slope::within(&amounts, &[whole]).per_window;
            let start = median(
                amounts.iter().enumerate().map(|(place, amount)| amount - slope * place as f64),
            );
            let per_window = slope / start.unwrap_or(1.0);
            // A line that reaches 0 within the series cannot describe positive values.
            let is_positive = 1.0 + per_window * values.len() as f64 > LEAST_REMAINDER;
            slopes.extend(is_positive.then_some(Slope { per_window, is_amount: true }));
        }
        slopes
    }

    /// The change from the first window to this one, on the scale of the values.
    pub(super) fn at(self, place: f64) -> f64 {
        if self.is_amount {
            (self.per_window * place).max(LEAST_REMAINDER - 1.0).ln_1p()
        } else {
            self.per_window * place
        }
    }

    /// The values without the slope, which is 0 at the first one.
    pub(super) fn removed_from(self, values: &[f64]) -> Vec<f64> {
        let level = |(place, value): (usize, &f64)| value - self.at(place as f64);
        values.iter().enumerate().map(level).collect()
    }
}

/// The probability of at least as many pairs in one order in parts of a stationary series, with the memory that
/// remains without the slope; `None` if all parts are too short.
pub(super) fn p_value(values: &[f64], parts: &[Range<usize>], slope: Slope) -> Option<f64> {
    let flat = slope.removed_from(values);
    let (mut score, mut variance, mut effective) = (0.0, 0.0, 0.0);
    for part in parts {
        let blocks = Blocks::of(values, part.clone(), values.len()).medians;
        if blocks.len() >= FEWEST_BLOCKS {
            score += ordered_pairs(&blocks);
            let memory = memory_factor(&Blocks::of(&flat, part.clone(), values.len()).medians)?;
            variance += memory * independent_variance(blocks.len());
            effective += blocks.len() as f64 / memory;
        }
    }
    let freedom = degrees_of_freedom(effective).max(MIN_DEGREES_OF_FREEDOM / 3.0);
    let distribution = StudentsT::new(0.0, 1.0, freedom).ok()?;
    (variance > 0.0).then(|| (2.0 * distribution.sf(score.abs() / variance.sqrt())).min(1.0))
}

/// A part of a series in blocks of equal length.
struct Blocks {
    length: usize,
    medians: Vec<f64>,
}

impl Blocks {
    fn of(values: &[f64], part: Range<usize>, windows: usize) -> Blocks {
        let length = windows.div_ceil(MOST_BLOCKS);
        let medians = values[part].chunks_exact(length);
        Blocks {
            length,
            medians: medians.filter_map(|block| median(block.iter().copied())).collect(),
        }
    }
}

/// Variance of the pair count for independent values.
fn independent_variance(count: usize) -> f64 {
    let n = count as f64;
    n * (n - 1.0) * (2.0 * n + 5.0) / 18.0
}

/// Factor of the memory on this variance, for a series without drift; 1 without memory. `None` for a series
/// without variation.
fn memory_factor(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let ranks = ranks(values);
    let covariances = autocovariances(&ranks, values.len() / 2);
    let remembered: f64 = covariances
        .iter()
        .enumerate()
        .skip(1)
        .take_while(|(_, covariance)| **covariance > 0.0)
        .map(|(lag, covariance)| {
            let left = n - lag as f64;
            left * (left - 1.0) * (left - 2.0) * covariance / covariances[0]
        })
        .sum();
    (covariances[0] > 0.0).then(|| 1.0 + 2.0 * remembered / (n * (n - 1.0) * (n - 2.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_follows_the_levels_and_ignores_their_steps() {
        let value = |place: usize| 0.5 * place as f64 + if place < 40 { 0.0 } else { 1_000.0 };
        let values: Vec<f64> = (0..100).map(value).collect();
        let slope = Slope::within(&values, &[0..40, 40..100]);
        assert!((slope.per_window - 0.5).abs() < 1e-12);
        let flat = slope.removed_from(&values);
        assert!((flat[0] - flat[39]).abs() < 1e-9 && (flat[99] - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn pairs_count_with_their_sign_and_ties_count_zero() {
        assert_eq!(ordered_pairs(&[1.0, 2.0, 3.0, 3.0]), 5.0);
        assert_eq!(ordered_pairs(&[3.0, 2.0, 1.0]), -3.0);
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0]), [1.5, 0.0, 1.5, 3.0]);
    }

    #[test]
    fn memory_makes_chance_orders_more_likely() {
        use dyno_testkit::simulate::{autoregressive, normal};
        let ratio = |values: Vec<f64>| memory_factor(&values).unwrap();
        let mean = |series: &dyn Fn(u64) -> Vec<f64>| {
            (0..30).map(|s| ratio(series(s))).sum::<f64>() / 30.0
        };
        assert!((1.0..1.6).contains(&mean(&|seed| normal(seed, 200))));
        // (1 + φ) / (1 − φ) = 9, less what the estimate loses.
        assert!((5.0..12.0).contains(&mean(&|seed| autoregressive(seed, 200, 0.8))));
    }
}
