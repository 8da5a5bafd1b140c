//! The difference between a box of windows and its neighbourhood, at every position.

use crate::robust::normal_quantile;

/// Fewest periods in a series.
pub const FEWEST_PERIODS: usize = 3;

/// Shortest period in windows.
pub const SHORTEST_PERIOD_WINDOWS: f64 = 4.0;

/// The contrasts of boxes of one width.
pub(super) struct Contrasts {
    /// Windows of the box.
    pub(super) width: usize,
    /// Windows on each side that are compared with the box; the first box starts after this many.
    pub(super) side: usize,
    /// Mean of the box minus mean of both sides, for each start of the box.
    pub(super) values: Vec<f64>,
}

impl Contrasts {
    /// `None` if the series is too short for three boxes with their sides.
    pub(super) fn of(series: &[f64], width: usize) -> Option<Contrasts> {
        let side = width.div_ceil(2);
        let places = (series.len() + 1).checked_sub(width + 2 * side)?;
        if places < FEWEST_PERIODS * (width + 2 * side) {
            return None;
        }
        let mut sums = Vec::with_capacity(series.len() + 1);
        sums.push(0.0);
        // Values around 0 keep the running sums exact enough.
        let center = series.iter().sum::<f64>() / series.len() as f64;
        let mut sum = 0.0;
        for value in series {
            sum += value - center;
            sums.push(sum);
        }
        let contrast = |place: usize| {
            let start = place + side;
            let end = start + width;
            let inside = sums[end] - sums[start];
            let beside = sums[end + side] - sums[end] + sums[start] - sums[place];
            inside / width as f64 - beside / (2 * side) as f64
        };
        Some(Contrasts { width, side, values: (0..places).map(contrast).collect() })
    }

    /// The shortest period whose boxes and sides do not overlap.
    pub(super) fn shortest_period(&self) -> f64 {
        ((self.width + 2 * self.side) as f64).max(SHORTEST_PERIOD_WINDOWS)
    }

    /// Normal scores of the ranks; equal contrasts have equal scores.
    pub(super) fn scores(&self) -> Vec<f64> {
        let values = &self.values;
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        // Sums in another order may differ in their last digits.
        let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let is_tie = |a: &usize, b: &usize| (values[*a] - values[*b]).abs() <= 1e-9 * largest;
        let mut scores = vec![0.0; values.len()];
        let mut start = 0;
        for group in order.chunk_by(is_tie) {
            let middle = start as f64 + group.len() as f64 / 2.0;
            let score = normal_quantile(middle / values.len() as f64);
            group.iter().for_each(|place| scores[*place] = score);
            start += group.len();
        }
        scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_has_no_contrast_and_a_dip_has_its_depth() {
        let mut series: Vec<f64> = (0..60).map(|place| 1e6 + 3.0 * f64::from(place)).collect();
        series[30] -= 8.0;
        series[31] -= 8.0;
        let contrasts = Contrasts::of(&series, 2).unwrap();
        assert!((contrasts.values[30 - contrasts.side] + 8.0).abs() < 1e-6);
        assert!(contrasts.values[..25].iter().all(|value| value.abs() < 1e-6));
        let scores = contrasts.scores();
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!(scores[30 - contrasts.side], least);
    }

    #[test]
    fn scores_are_normal_and_ties_share_theirs() {
        let series = dyno_testkit::simulate::normal(1, 300);
        let scores = Contrasts::of(&series, 1).unwrap().scores();
        let squares = scores.iter().map(|score| score * score).sum::<f64>();
        assert!((squares / scores.len() as f64 - 1.0).abs() < 0.05);
        let flat = Contrasts::of(&[5.0; 40], 1).unwrap().scores();
        assert!(flat.iter().all(|score| score.abs() < 1e-9));
        assert!(Contrasts::of(&[1.0; 20], 8).is_none());
    }
}
