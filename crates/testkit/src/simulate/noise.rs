//! Random series and comparisons with known properties, to replace measured ones.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// Independent standard normal values; the same for the same seed.
pub fn normal(seed: u64, count: usize) -> Vec<f64> {
    autoregressive(seed, count, 0.0)
}

/// A stationary first-order autoregression with mean 0, variance 1 and this correlation between neighbours, above -1
/// and below 1.
pub fn autoregressive(seed: u64, count: usize, correlation: f64) -> Vec<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
    let innovation = (1.0 - correlation * correlation).sqrt();
    let mut level = draw();
    (0..count)
        .map(|_| {
            let current = level;
            level = correlation * level + innovation * draw();
            current
        })
        .collect()
}

/// A ratio of two settings, estimated from pairs of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyRatio {
    /// Logarithm of the ratio.
    pub log_ratio: f64,
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub degrees_of_freedom: f64,
}

/// Two settings in `pairs` pairs of runs, at least 2. `truth` is the true logarithm of their ratio, and `noise` the
/// standard deviation of each run's logarithm. Two pairs do not determine their own error well, so it is then computed
/// from `noise`.
pub fn noisy_pairs(random: &mut impl Rng, truth: f64, noise: f64, pairs: usize) -> NoisyRatio {
    let mut run = || -> f64 { StandardNormal.sample(random) };
    let ratios = (0..pairs).map(|_| truth + noise * (run() - run()));
    let ratios: Vec<f64> = ratios.collect();
    let count = pairs as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let variance = match pairs {
        0..=2 => 2.0 * noise * noise,
        _ => squares / (count - 1.0),
    };
    NoisyRatio {
        log_ratio: mean,
        error: (variance / count).sqrt(),
        degrees_of_freedom: count - 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_pairs_estimate_the_ratio_with_the_stated_error() {
        const TRUTH: f64 = 0.2;
        const NOISE: f64 = 0.05;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for pairs in [2, 12] {
            let expected = NOISE * (2.0 / pairs as f64).sqrt();
            let (mut squares, mut errors) = (0.0, 0.0);
            for _ in 0..10_000 {
                let found = noisy_pairs(&mut random, TRUTH, NOISE, pairs);
                assert_eq!(found.degrees_of_freedom, pairs as f64 - 1.0);
                squares += (found.log_ratio - TRUTH).powi(2) / 1e4;
                errors += found.error.powi(2) / 1e4;
            }
            for variance in [squares, errors] {
                let error = variance.sqrt();
                assert!((error / expected - 1.0).abs() < 0.05, "{pairs}: {error}");
            }
        }
    }

    #[test]
    fn the_series_has_the_requested_moments() {
        for correlation in [0.0, 0.7, -0.5] {
            let series = autoregressive(1, 100_000, correlation);
            let n = series.len() as f64;
            let mean = series.iter().sum::<f64>() / n;
            let variance = series.iter().map(|x| x * x).sum::<f64>() / n;
            let products = series.windows(2).map(|pair| pair[0] * pair[1]);
            let neighbours = products.sum::<f64>() / n / variance;
            assert!(mean.abs() < 0.03, "{mean}");
            assert!((variance - 1.0).abs() < 0.03, "{variance}");
            assert!((neighbours - correlation).abs() < 0.02, "{neighbours}");
        }
    }
}
