//! The stationary bootstrap: series like the measured one, composed of its pieces, so that neighbours stay
//! neighbours.
//!
//! D. N. Politis and J. P. Romano, "The Stationary Bootstrap", *Journal of the American Statistical
//! Association* 89 (1994). The mean length of the pieces follows D. N. Politis and H. White,
//! "Automatic Block-Length Selection for the Dependent Bootstrap", *Econometric Reviews* 23 (2004),
//! with the correction of A. Patton, D. N. Politis and H. White, *Econometric Reviews* 28 (2009).
//! Assumption: a stationary series with a memory that is short compared with its length.

use super::autocorrelation::autocovariances;
use rand::{Rng, RngExt};

/// Mean length of the pieces for the mean of this series: at least 1, at most a third of it.
pub fn block_length(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 4 {
        return 1.0;
    }
    let longest = (3.0 * n.sqrt()).min(n / 3.0).ceil();
    let quiet_lags = n.log10().sqrt().ceil().max(5.0) as usize;
    let most_lags = (n.sqrt().ceil() as usize + quiet_lags).min(values.len() - 1);
    let covariances = autocovariances(values, most_lags);
    if covariances[0] <= 0.0 {
        return 1.0;
    }
    let threshold = 2.0 * (n.log10() / n).sqrt() * covariances[0];
    let bandwidth = 2 * last_lag_that_matters(&covariances, threshold, quiet_lags);
    let bandwidth = bandwidth.clamp(1, most_lags);
    let (mut spectrum, mut curvature) = (covariances[0], 0.0);
    for (lag, covariance) in covariances.iter().enumerate().take(bandwidth + 1).skip(1) {
        let weighted = 2.0 * flat_top(lag as f64 / bandwidth as f64) * covariance;
        spectrum += weighted;
        curvature += lag as f64 * weighted;
    }
    let length = (curvature * curvature / (spectrum * spectrum) * n).cbrt();
    if length.is_finite() { length.clamp(1.0, longest) } else { longest }
}

/// The last lag before `quiet_lags` consecutive lags with noise covariances, or before the end.
fn last_lag_that_matters(covariances: &[f64], threshold: f64, quiet_lags: usize) -> usize {
    let mut last = 0;
    for (lag, covariance) in covariances.iter().enumerate().skip(1) {
        if covariance.abs() >= threshold {
            last = lag;
        } else if lag - last >= quiet_lags {
            break;
        }
    }
    last
}

/// The lag window of Politis and Romano: 1 up to a half, then down to 0 at 1.
fn flat_top(t: f64) -> f64 {
    (2.0 * (1.0 - t)).clamp(0.0, 1.0)
}

/// Positions of a resampled series of `count` values, from pieces with this mean length that start anywhere and
/// wrap around at the end.
pub(crate) fn resample(
    count: usize,
    block_length: f64,
    rng: &mut impl Rng,
) -> impl Iterator<Item = usize> {
    let new_block = 1.0 / block_length.max(1.0);
    let mut position = None;
    (0..count).map(move |_| {
        let next = match position {
            Some(position) if rng.random::<f64>() >= new_block => (position + 1) % count,
            _ => rng.random_range(0..count),
        };
        position = Some(next);
        next
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::Resampling;
    use dyno_testkit::simulate::autoregressive;

    fn mean_length(count: usize, correlation: f64) -> f64 {
        let length = |seed| block_length(&autoregressive(seed, count, correlation));
        (0..100).map(length).sum::<f64>() / 100.0
    }

    #[test]
    fn blocks_grow_with_memory_and_with_the_series() {
        // Theory for a first-order autoregression: (2 φ / (1 − φ²))^⅔ n^⅓, here 7.6, 16.1, 34.
        for (count, correlation, expected) in [(250, 0.5, 7.6), (250, 0.7, 12.4), (2000, 0.7, 24.8)]
        {
            let found = mean_length(count, correlation);
            assert!((found / expected - 1.0).abs() < 0.25, "{correlation}: {found}");
        }
        assert!(mean_length(250, 0.0) < 3.0);
    }

    #[test]
    fn blocks_stay_within_their_limits() {
        let line: Vec<f64> = (0..60).map(f64::from).collect();
        assert!(block_length(&line) <= 20.0);
        assert_eq!(block_length(&[1.0; 60]), 1.0);
        assert_eq!(block_length(&[1.0, 2.0]), 1.0);
    }

    #[test]
    fn pieces_have_the_requested_mean_length() {
        let mut rng = Resampling::seeded(1).rng(0);
        let positions: Vec<usize> = resample(100_000, 8.0, &mut rng).collect();
        let breaks = positions.windows(2).filter(|pair| pair[1] != (pair[0] + 1) % 100_000).count();
        assert!((12_000..13_000).contains(&breaks), "{breaks}");
        let unbroken = resample(5, f64::INFINITY, &mut rng).collect::<Vec<_>>();
        assert!(unbroken.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 5));
        assert_eq!(resample(0, 2.0, &mut rng).count(), 0);
    }
}
