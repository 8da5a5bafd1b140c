//! Random series with known properties, as stand-ins for measured ones.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal};

/// Independent standard normal values; the same for the same seed.
pub fn normal(seed: u64, count: usize) -> Vec<f64> {
    autoregressive(seed, count, 0.0)
}

/// A stationary first-order autoregression with mean 0, variance 1 and this correlation between
/// neighbours, which is above -1 and below 1.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_has_the_moments_it_was_asked_for() {
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
