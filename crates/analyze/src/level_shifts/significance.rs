//! Probability that a stationary series shows an equally clear split anywhere.
//!
//! Series of normal noise with the same memory and length are simulated and pass through the same scores and
//! the same scan. Half the square of their largest split has an exponential tail, so its maximum over many
//! positions is close to a Gumbel distribution (E. J. Gumbel, *Statistics of Extremes* (1958)), which is fitted
//! by its mean and deviation: this resolves p values far below one over the number of simulations, and clear
//! cases need fewer simulations.

use super::SIMULATED_SERIES;
use super::memory::Memory;
use super::scan::clearest_split;
use super::scores::scores;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;

/// Number of simulations after which a clear case is decided.
const FIRST_LOOK: usize = 60;

/// A p value above the limit times this, or below the limit divided by its square, is a clear case.
const CLEAR_FACTOR: f64 = 20.0;

/// Euler's constant: the mean of a standard Gumbel variable.
const GUMBEL_MEAN: f64 = 0.577_215_664_901_532_9;

/// The probability of a split of at least `size` in a stationary series of `count` windows; `limit` is the
/// relevant probability.
pub(super) fn p_value(
    size: f64,
    count: usize,
    least: usize,
    memory: Memory,
    limit: f64,
    rng: &mut impl Rng,
) -> f64 {
    let mut heights = Vec::with_capacity(SIMULATED_SERIES);
    let mut p_value = 1.0;
    while heights.len() < SIMULATED_SERIES {
        let simulated = simulated(count, memory, rng);
        let split = clearest_split(&scores(&simulated), least);
        heights.push(split.map_or(0.0, |split| split.size * split.size / 2.0));
        if heights.len() == FIRST_LOOK || heights.len() == SIMULATED_SERIES {
            p_value = gumbel_tail(&heights, size * size / 2.0);
            let is_clear =
                p_value > limit * CLEAR_FACTOR || p_value < limit / (CLEAR_FACTOR * CLEAR_FACTOR);
            if is_clear {
                break;
            }
        }
    }
    p_value
}

/// Normal noise with this memory.
fn simulated(count: usize, memory: Memory, rng: &mut impl Rng) -> Vec<f64> {
    let mut draw = || -> f64 { StandardNormal.sample(rng) };
    let innovation = (1.0 - memory.correlation * memory.correlation).sqrt();
    let (slow_part, fast_part) = (memory.share.sqrt(), (1.0 - memory.share).sqrt());
    let mut slow = draw();
    let next = |_| {
        let value = slow_part * slow + fast_part * draw();
        slow = memory.correlation * slow + innovation * draw();
        value
    };
    (0..count).map(next).collect()
}

/// The probability of at least `height` by the Gumbel distribution of these maxima.
fn gumbel_tail(maxima: &[f64], height: f64) -> f64 {
    let count = maxima.len() as f64;
    let mean = maxima.iter().sum::<f64>() / count;
    let squares: f64 = maxima.iter().map(|value| (value - mean).powi(2)).sum();
    let spread = (squares / (count - 1.0)).sqrt() * 6.0_f64.sqrt() / PI;
    let place = mean - GUMBEL_MEAN * spread;
    -(-(-(height - place) / spread).exp()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampling::Resampling;

    #[test]
    fn p_values_of_independent_noise_match_their_frequency() {
        let memory = Memory { correlation: 0.0, share: 0.0 };
        let mut rng = Resampling::seeded(1).rng(99);
        let mut below = 0;
        for _ in 0..300 {
            let series = simulated(100, memory, &mut rng);
            let size = clearest_split(&scores(&series), 10).unwrap().size;
            let p_value = p_value(size, 100, 10, memory, 0.05, &mut rng);
            below += usize::from(p_value <= 0.05);
        }
        // 15 are expected; more than 25 or fewer than 6 have a probability of 1 %.
        assert!((6..=25).contains(&below), "{below} of 300");
    }

    #[test]
    fn gumbel_tail_matches_its_definition() {
        // Quantiles of the standard Gumbel distribution.
        let maxima: Vec<f64> =
            (0..10_000).map(|i| -(-((f64::from(i) + 0.5) / 10_000.0).ln()).ln()).collect();
        let p_value = gumbel_tail(&maxima, 4.600_149);
        assert!((p_value / 0.01 - 1.0).abs() < 0.02, "{p_value}");
    }
}
