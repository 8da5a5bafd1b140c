//! A fixed pseudo-random order of the numbers `0..count`, computed, not stored.
//!
//! It spreads the ranks of a distribution over the key space, so that the hottest documents are not adjacent in the
//! index, and, unlike with a hash, no two ranks share a document.

/// Rounds of the Feistel network. Four make each output depend on both halves of the input twice.
const ROUNDS: u64 = 4;
/// Constant for all key distributions: clients of a run that start separately must agree on the hot documents.
const KEY: u64 = 0x6D6F_6E67_6F64_796E;

/// A bijection of `0..count` onto itself.
///
/// A Feistel network over pairs `(left, right)` with `left < width` and `right < height`, where
/// `width * height` is the smallest near-square not below `count`. The few results outside the
/// range are sent through again ("cycle walking"), which happens to one in `sqrt(count)`.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    width: u64,
    height: u64,
    key: u64,
}

impl Permutation {
    /// The permutation of `0..count`; `count` is 1 to 2^63. The same for every run with this count.
    #[must_use]
    pub fn new(count: u64) -> Self {
        Self::with_key(count, KEY)
    }

    /// As [`new`](Self::new); each key has another order.
    #[must_use]
    pub fn with_key(count: u64, key: u64) -> Self {
        let root = count.isqrt();
        let width = if root * root < count { root + 1 } else { root };
        Permutation { count, width, height: count.div_ceil(width), key }
    }

    /// The numbers below this are permuted.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The image of `index`, which must be below `count`.
    #[must_use]
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        let mut value = self.once(index);
        while value >= self.count {
            value = self.once(value);
        }
        value
    }

    #[inline]
    fn once(&self, value: u64) -> u64 {
        let (mut left, mut right) = (value / self.height, value % self.height);
        for pair in 0..ROUNDS / 2 {
            let keys = [2 * pair + 1, 2 * pair + 2].map(|round| self.key.wrapping_mul(round));
            left = add_modulo(left, scatter(right, keys[0], self.width), self.width);
            right = add_modulo(right, scatter(left, keys[1], self.height), self.height);
        }
        left * self.height + right
    }
}

/// `a + b` modulo `modulus`, for `a` and `b` below it.
#[inline]
fn add_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    if sum >= modulus { sum - modulus } else { sum }
}

/// A pseudo-random number below `limit`, from the finalizer of SplitMix64.
#[inline]
fn scatter(value: u64, key: u64, limit: u64) -> u64 {
    let mut z = value.wrapping_add(key);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    ((u128::from(z) * u128::from(limit)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_reached_exactly_once() {
        for count in (1..300).chain([1000, 4095, 4096, 4097, 65_537, 999_983]) {
            for key in [KEY, 0, u64::MAX] {
                let permutation = Permutation::with_key(count, key);
                let mut seen = vec![false; count as usize];
                for index in 0..count {
                    let place = &mut seen[permutation.at(index) as usize];
                    assert!(!*place, "{index} of {count} meets another with {key}");
                    *place = true;
                }
            }
        }
    }

    #[test]
    fn neighbours_are_spread_over_the_range() {
        let count = 1_000_000;
        let permutation = Permutation::new(count);
        // The first hundred ranks fall into the tenths of the range about ten times each.
        let mut tenths = [0; 10];
        for rank in 0..100 {
            tenths[(permutation.at(rank) * 10 / count) as usize] += 1;
        }
        assert!(tenths.iter().all(|&n| (1..=22).contains(&n)), "{tenths:?}");
        let close = (0..9_999)
            .filter(|&rank| permutation.at(rank).abs_diff(permutation.at(rank + 1)) < 1000);
        // Expected by chance: 9 999 pairs times 2 * 1000 / 1 000 000, about 20.
        assert!(close.count() < 45);
    }

    #[test]
    fn each_key_has_another_order() {
        let orders = [KEY, 1, 2].map(|key| Permutation::with_key(10_000, key));
        let equal = |a: &Permutation, b: &Permutation| {
            (0..10_000).filter(|&index| a.at(index) == b.at(index)).count()
        };
        // Expected by chance: one.
        assert!(equal(&orders[0], &orders[1]) < 10 && equal(&orders[1], &orders[2]) < 10);
    }

    #[test]
    fn the_largest_range_does_not_overflow() {
        let count = 1 << 63;
        let permutation = Permutation::new(count);
        assert!([0, 1, count / 2, count - 1].iter().all(|&index| permutation.at(index) < count));
    }
}
