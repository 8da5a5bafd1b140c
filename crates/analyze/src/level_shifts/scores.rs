//! Converts values to scores that no outlier dominates.

use crate::resampling::sorted_quantile;
use crate::robust::{DEVIATION_PER_MEDIAN, median};
use std::f64::consts::SQRT_2;

/// Largest score; larger ones are cut off. Small enough that a dip of a few windows stays small compared with
/// the ten windows of a level, large enough that noise is rarely cut off.
const LARGEST_SCORE: f64 = 2.0;

/// Values that count as 0 on a logarithmic scale, as a share of the 90th percentile.
const NOTHING_RATIO: f64 = 1e-3;

/// The scale of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Differences are ratios. Smaller values count as `nothing`.
    Logarithm {
        /// The smallest value that is distinguished from 0.
        nothing: f64,
    },
    /// Differences are amounts: some values are negative, or nearly all are 0.
    Linear,
}

impl Scale {
    pub(super) fn of(series: &[f64]) -> Scale {
        let mut sorted = series.to_vec();
        sorted.sort_by(f64::total_cmp);
        let high = sorted_quantile(&sorted, 0.9).unwrap_or_default();
        let is_positive = sorted.first().is_some_and(|least| *least >= 0.0) && high > 0.0;
        if is_positive { Scale::Logarithm { nothing: high * NOTHING_RATIO } } else { Scale::Linear }
    }

    /// The values on this scale.
    pub(super) fn forth(self, series: &[f64]) -> Vec<f64> {
        match self {
            Scale::Logarithm { nothing } => {
                series.iter().map(|value| value.max(nothing).ln()).collect()
            }
            Scale::Linear => series.to_vec(),
        }
    }

    /// A level in the unit of the series.
    pub(super) fn back(self, value: f64) -> f64 {
        match self {
            Scale::Logarithm { nothing } if value <= nothing.ln() => 0.0,
            Scale::Logarithm { .. } => value.exp(),
            Scale::Linear => value,
        }
    }

    /// A difference on this scale as a share of its initial level.
    pub(super) fn ratio(self, difference: f64, level: f64) -> f64 {
        match self {
            Scale::Logarithm { .. } => difference.exp_m1(),
            Scale::Linear => difference / level.abs(),
        }
    }
}

/// The change from one level to another as a share of the first; `None` if the first is 0.
pub(super) fn change_ratio(before: f64, after: f64) -> Option<f64> {
    (before != 0.0).then(|| (after - before) / before.abs())
}

/// Distances from the median in units of the noise between neighbours, cut off on both sides. All are 0 for a
/// series without variation.
pub(super) fn scores(values: &[f64]) -> Vec<f64> {
    let center = median(values.iter().copied()).unwrap_or_default();
    let noise = noise(values);
    if noise <= 1e-12 * center.abs() || noise == 0.0 {
        return vec![0.0; values.len()];
    }
    let score = |value: &f64| ((value - center) / noise).clamp(-LARGEST_SCORE, LARGEST_SCORE);
    values.iter().map(score).collect()
}

/// Standard deviation of the noise from the differences of neighbours: their median, or their mean if most are
/// 0.
fn noise(values: &[f64]) -> f64 {
    let differences = || values.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    match median(differences()) {
        Some(middle) if middle > 0.0 => middle * DEVIATION_PER_MEDIAN / SQRT_2,
        _ => differences().sum::<f64>() / values.len().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_testkit::simulate::normal;

    #[test]
    fn noise_is_measured_between_neighbours_at_any_level() {
        let series = normal(1, 2_000);
        let stepped: Vec<f64> = series
            .iter()
            .enumerate()
            .map(|(place, value)| 3.0 * value + 50.0 * (place / 500) as f64)
            .collect();
        assert!((noise(&stepped) / 3.0 - 1.0).abs() < 0.1);
    }

    #[test]
    fn an_outlier_counts_no_more_than_a_clear_deviation() {
        let mut series = normal(2, 100);
        series[7] = 1e9;
        let scores = scores(&series);
        assert_eq!(scores[7], LARGEST_SCORE);
        assert!(scores.iter().all(|score| score.abs() <= LARGEST_SCORE));
        assert_eq!(super::scores(&[4.0; 30]), [0.0; 30]);
    }

    #[test]
    fn levels_come_back_from_their_scale() {
        let series = [100.0, 200.0, 0.0, 400.0];
        let scale = Scale::of(&series);
        let there = scale.forth(&series);
        for (value, expected) in there.iter().zip(series) {
            assert!((scale.back(*value) - expected).abs() < 1e-9);
        }
        assert!((scale.ratio(2.0_f64.ln(), 0.0) - 1.0).abs() < 1e-12);
        assert_eq!(Scale::of(&[-1.0, 5.0, 6.0]), Scale::Linear);
        assert_eq!(Scale::of(&[0.0; 9]), Scale::Linear);
        assert_eq!(change_ratio(-2.0, -3.0), Some(-0.5));
        assert_eq!(change_ratio(0.0, 1.0), None);
    }
}
