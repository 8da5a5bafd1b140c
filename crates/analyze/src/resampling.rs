//! Common parts of all resampling methods: the seed, the number of draws, and intervals from draws.

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

/// Settings of the resampling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampling {
    /// Seed: the same seed gives the same intervals.
    pub seed: u64,
    /// Number of draws. 1000 determine the ends of a 95 % interval to a few percent of its width.
    pub draws: usize,
}

impl Resampling {
    /// 1000 draws.
    pub fn seeded(seed: u64) -> Resampling {
        Resampling { seed, draws: 1000 }
    }

    /// Random numbers of a method; methods with different `stream`s do not share them.
    pub(crate) fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// The ends of the middle part of `draws` with this share of them. Draws that are NaN count as infinite. `None`
/// without draws.
pub(crate) fn middle(draws: &mut [f64], confidence_ratio: f64) -> Option<(f64, f64)> {
    draws.iter_mut().filter(|draw| draw.is_nan()).for_each(|draw| *draw = f64::INFINITY);
    draws.sort_by(f64::total_cmp);
    let outside = (1.0 - confidence_ratio) / 2.0;
    Some((sorted_quantile(draws, outside)?, sorted_quantile(draws, 1.0 - outside)?))
}

/// The quantile of sorted values, between 0 and 1, interpolated between neighbours. `None` without values.
pub(crate) fn sorted_quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = quantile.clamp(0.0, 1.0) * last as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    // Equal neighbours may be infinite, and their difference would be NaN.
    if below == above { Some(below) } else { Some(below + (above - below) * position.fract()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_read_between_the_neighbouring_draws() {
        let mut draws: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(middle(&mut draws, 0.5), Some((25.0, 75.0)));
        assert_eq!(sorted_quantile(&[1.0, 2.0], 0.25), Some(1.25));
        assert_eq!(sorted_quantile(&[f64::INFINITY; 3], 0.5), Some(f64::INFINITY));
        assert_eq!(middle(&mut [], 0.9), None);
        assert_eq!(middle(&mut [f64::NAN, 1.0], 1.0), Some((1.0, f64::INFINITY)));
    }
}
