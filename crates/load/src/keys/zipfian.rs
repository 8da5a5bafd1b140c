//! YCSB's zipfian generator (exponent 0.99): the approximate inversion of Gray et al., "Quickly
//! generating billion-record synthetic databases", SIGMOD 1994.
//!
//! Used where YCSB uses it: `latest`, field lengths, scan lengths, and below the scrambled zipfian.
//! It is an approximation (ranks from the third on are smoothed); the exact distribution with a
//! chosen exponent is in `zipfian_exact`.

use rand::{Rng, RngExt};

/// YCSB's `ZipfianGenerator.ZIPFIAN_CONSTANT`.
pub const EXPONENT: f64 = 0.99;

/// Terms that are always added one by one. Above, the sum takes the Euler-Maclaurin formula, so
/// that a distribution over 10^11 documents is ready in a millisecond.
const DIRECT_TERMS: u64 = 50_000;

/// Zipfian ranks `0..items`, rank 0 most frequent; the number of items may grow.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    zeta_items: f64,
    eta: f64,
}

impl Zipfian {
    /// Ranks `0..items`; `items` is at least 1.
    #[must_use]
    pub fn new(items: u64) -> Self {
        Self::with_zeta(items, power_sum(0, items))
    }

    /// Ranks `0..items` with a given `sum(i^-0.99, i = 1..=items)`.
    pub(super) fn with_zeta(items: u64, zeta_items: f64) -> Self {
        Zipfian { items, zeta_items, eta: eta(items, zeta_items) }
    }

    /// Extends the ranks to `0..items`. As in YCSB, a smaller number is ignored, because earlier draws have been
    /// counted.
    #[inline]
    pub fn grow_to(&mut self, items: u64) {
        if items > self.items {
            self.zeta_items += power_sum(self.items, items);
            self.items = items;
            self.eta = eta(items, self.zeta_items);
        }
    }

    /// Number of ranks.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The rank at `u` in `[0, 1)`, always below the number of items.
    #[must_use]
    #[inline]
    pub fn rank_at(&self, u: f64) -> u64 {
        // Rounding reaches `items` itself for the largest `u`, where YCSB leaves the range by one.
        self.unclamped_rank_at(u).min(self.items - 1)
    }

    /// Draws a rank.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        self.rank_at(rng.random())
    }

    /// The rank as YCSB computes it, which can be `items` for `u` close to 1.
    #[inline]
    pub(super) fn unclamped_rank_at(&self, u: f64) -> u64 {
        const ALPHA: f64 = 1.0 / (1.0 - EXPONENT);
        let uz = u * self.zeta_items;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(EXPONENT) {
            return 1;
        }
        (self.items as f64 * (self.eta * u - self.eta + 1.0).powf(ALPHA)) as u64
    }
}

/// Gray's `eta`. For two items it is 0/0, but then no draw gets past the first two ranks.
fn eta(items: u64, zeta_items: f64) -> f64 {
    let zeta_2 = 1.0 + 1.0 / 2_f64.powf(EXPONENT);
    (1.0 - (2.0 / items as f64).powf(1.0 - EXPONENT)) / (1.0 - zeta_2 / zeta_items)
}

/// `sum(i^-0.99, i = from + 1..=to)`, with an absolute error below 1e-9 for any `to` up to 2^63.
fn power_sum(from: u64, to: u64) -> f64 {
    let direct_end = if to - from <= DIRECT_TERMS { to } else { from + DIRECT_TERMS };
    let direct: f64 = (from + 1..=direct_end).map(|i| 1.0 / (i as f64).powf(EXPONENT)).sum();
    if direct_end == to {
        return direct;
    }
    // Euler-Maclaurin from `direct_end` (whose own term is in `direct`) to `to`. The first
    // correction left out is s / 12 * DIRECT_TERMS^-(s+1), below 1e-10.
    let (a, b, s) = (direct_end as f64, to as f64, EXPONENT);
    let integral = (b.powf(1.0 - s) - a.powf(1.0 - s)) / (1.0 - s);
    let ends = (b.powf(-s) - a.powf(-s)) / 2.0;
    direct + integral + ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{generator, top_share};

    #[test]
    fn ranks_equal_those_of_the_java_generator() {
        // From an independent Java program over 1000 items; 1000 itself is cut to the last rank.
        let zipfian = Zipfian::new(1000);
        assert!((zipfian.zeta_items - 7.728_953_217_284_729).abs() < 1e-12);
        let vectors = [
            (0.0, 0),
            (0.1, 0),
            (0.25, 3),
            (0.333_333_333_333_333_3, 6),
            (0.5, 22),
            (0.618_033_988_749_894_9, 55),
            (0.75, 151),
            (0.9, 471),
            (0.99, 927),
            (0.999_999, 999),
            (0.999_999_999_999_999_9, 999),
        ];
        for (u, rank) in vectors {
            assert_eq!(zipfian.rank_at(u), rank, "rank at {u}");
        }
    }

    #[test]
    fn the_sum_over_many_items_is_as_good_as_adding_them_up() {
        // Sums of a Java program that adds every term.
        assert!((power_sum(0, 1_000_000) - 15.391_849_746_037_371).abs() < 1e-9);
        assert!((power_sum(0, 100_000_000) - 20.802_930_490_020_14).abs() < 1e-9);
        // YCSB's constant for ten billion items.
        assert!((power_sum(0, 10_000_000_000) - 26.469_028_201_783_02).abs() < 1e-7);
    }

    #[test]
    fn growing_gives_the_distribution_of_the_larger_number() {
        let mut grown = Zipfian::new(10);
        for items in (11..1000).chain([70_000, 5_000_000, 5_000_001]) {
            grown.grow_to(items);
        }
        let fresh = Zipfian::new(5_000_001);
        assert!((grown.zeta_items - fresh.zeta_items).abs() < 1e-9);
        assert!((grown.eta - fresh.eta).abs() < 1e-9);
        grown.grow_to(3);
        assert_eq!(grown.items(), 5_000_001);
    }

    #[test]
    fn ranks_stay_in_range_for_few_items_and_extreme_draws() {
        for items in 1..20 {
            let zipfian = Zipfian::new(items);
            for u in [0.0, 0.3, 0.5, 0.7, 0.9, 0.999, 1.0 - f64::EPSILON / 2.0] {
                assert!(zipfian.rank_at(u) < items, "{items} items at {u}");
            }
        }
    }

    #[test]
    fn the_hottest_items_get_the_shares_measured_with_ycsb() {
        let mut rng = generator(41);
        let zipfian = Zipfian::new(1_000_000);
        let mut counts = vec![0_u32; 1_000_000];
        for _ in 0..5_000_000 {
            counts[zipfian.draw(&mut rng) as usize] += 1;
        }
        for (top, share) in [(1, 0.0651), (100, 0.354), (10_000, 0.670)] {
            let realised = top_share(&counts, top);
            assert!((realised - share).abs() < 0.006, "top {top}: {realised}");
        }
    }

    #[test]
    fn a_hundred_billion_items_are_set_up_at_once_and_reached() {
        let mut rng = generator(42);
        let zipfian = Zipfian::new(100_000_000_000);
        let draws: Vec<u64> = (0..10_000).map(|_| zipfian.draw(&mut rng)).collect();
        assert!(draws.iter().any(|&rank| rank > u64::from(u32::MAX)));
        assert!(draws.iter().all(|&rank| rank < 100_000_000_000));
    }
}
