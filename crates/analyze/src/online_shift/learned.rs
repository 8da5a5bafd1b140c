//! The learned level: its values, their order, and their memory.

use super::{LEARNING_WINDOWS, MOST_LEARNED, WINDOWS_PER_FALSE_ALARM};
use crate::resampling::sorted_quantile;
use crate::robust::{DEVIATION_PER_MEDIAN, median, normal_quantile};
use crate::uncertainty::autocorrelation::effective_size_within;
use std::collections::VecDeque;

/// Half of the smallest change that the sums are designed for, in standard deviations.
const REFERENCE: f64 = 1.0;

/// Safety margin of the memory and the centre, in standard errors.
const MARGIN: f64 = 1.5;

/// In theory both sums together alarm once in this many times [`WINDOWS_PER_FALSE_ALARM`]: room for errors that
/// the margins do not cover.
const SAFETY: f64 = 3.0;

/// Number of lags whose autocorrelations are added up.
const MOST_LAGS: usize = 80;

/// Robust standard deviations from which a value is far outside; it must also exceed a multiple of the distance
/// of the outermost learned value.
const FAR_DEVIATIONS: f64 = 8.0;
const FAR_FACTOR: f64 = 1.5;

/// Share of changed values from which the statistics are renewed.
const RENEWED_RATIO: f64 = 0.1;

/// The learned level.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    /// Values in order of time.
    values: VecDeque<f64>,
    /// Values in order of size, at the last renewal.
    sorted: Vec<f64>,
    /// Number of values since the last renewal.
    changed: usize,
    /// Long-run variance of the scores, with the safety margin.
    variance: f64,
    reference: f64,
    deviation: f64,
}

impl Learned {
    /// Adds values and drops the oldest ones.
    pub(super) fn extend(&mut self, values: impl IntoIterator<Item = f64>) {
        for value in values {
            if self.values.len() == MOST_LEARNED {
                self.values.pop_front();
            }
            self.values.push_back(value);
            self.changed += 1;
        }
        let has_changed = self.changed as f64 >= RENEWED_RATIO * self.values.len() as f64;
        if self.values.len() >= LEARNING_WINDOWS && (has_changed || !self.is_ready()) {
            self.look();
        }
    }

    /// Whether there are enough values.
    pub(super) fn is_ready(&self) -> bool {
        !self.sorted.is_empty()
    }

    /// Memory of the stored values.
    #[cfg(test)]
    pub(super) fn remembered_bytes(&self) -> usize {
        (self.values.capacity() + self.sorted.capacity()) * size_of::<f64>()
    }

    fn look(&mut self) {
        self.changed = 0;
        self.sorted = self.values.iter().copied().collect();
        self.sorted.sort_by(f64::total_cmp);
        let scores: Vec<f64> = self.values.iter().map(|value| self.score(*value)).collect();
        let count = scores.len() as f64;
        let independent = effective_size_within(&scores, MOST_LAGS);
        let spread = scores.iter().map(|score| score * score).sum::<f64>() / count;
        // The relative error of a sum of autocorrelations is about the root of twice its lags over the number
        // of values.
        let time = count / independent;
        let error = (2.0 * (1.0 + 2.0 * time) / count).sqrt();
        self.variance = spread * time * (1.0 + MARGIN * error);
        self.reference = REFERENCE + MARGIN * (self.variance / count).sqrt();
        let center = self.median();
        let distances = self.values.iter().map(|value| (value - center).abs());
        self.deviation = DEVIATION_PER_MEDIAN * median(distances).unwrap_or_default();
    }

    pub(super) fn median(&self) -> f64 {
        sorted_quantile(&self.sorted, 0.5).unwrap_or_default()
    }

    /// The normal score of a value by its rank, limited by the number of learned values.
    pub(super) fn score(&self, value: f64) -> f64 {
        let below = self.sorted.partition_point(|other| *other < value) as f64;
        let up_to = self.sorted.partition_point(|other| *other <= value) as f64;
        let count = self.sorted.len() as f64;
        let rank = ((below + up_to) / 2.0).clamp(0.5, count - 0.5);
        normal_quantile(rank / count)
    }

    /// Amount that is subtracted from each score before adding.
    pub(super) fn reference(&self) -> f64 {
        self.reference
    }

    /// The height of a sum that raises an alarm.
    pub(super) fn limit(&self) -> f64 {
        let exponent = self.exponent();
        let windows = 2.0 * SAFETY * WINDOWS_PER_FALSE_ALARM;
        (REFERENCE * exponent * windows).max(1.0).ln() / exponent
    }

    /// The probability that a stationary load has a sum of this height in a given window.
    pub(super) fn chance(&self, height: f64) -> f64 {
        let exponent = self.exponent();
        2.0 * REFERENCE * exponent * (-exponent * height).exp()
    }

    /// Decay rate of a height's probability.
    fn exponent(&self) -> f64 {
        2.0 * REFERENCE / self.variance.max(1.0)
    }

    /// Whether a value is far outside all learned values, above (`side` 1) or below (−1).
    pub(super) fn is_far_outside(&self, value: f64, side: f64) -> bool {
        let center = self.median();
        let outermost = if side > 0.0 { self.sorted.last() } else { self.sorted.first() };
        let reach = outermost.map_or(0.0, |outermost| (outermost - center) * side);
        let distance = (value - center) * side;
        distance > FAR_DEVIATIONS * self.deviation && distance > FAR_FACTOR * reach
    }
}
