//! YCSB's `zipfian`: a draw over ten billion items independent of the data set, hashed into the data set.
//!
//! Flatter than a zipfian over the data set itself: with a million documents, the hottest 1 % get 40 % of the draws,
//! not 67 %. It is reproduced exactly, so that results can be compared with YCSB's.

use super::hash::fnv_hash_64;
use super::zipfian::Zipfian;
use rand::{Rng, RngExt};

/// Items that YCSB draws over: its ten billion are taken for an inclusive bound, so there is one more.
const ITEMS: u64 = 10_000_000_001;
/// YCSB's precomputed `sum(i^-0.99, i = 1..=10^10)`.
const ZETA_ITEMS: f64 = 26.469_028_201_783_02;

/// Scrambled zipfian over `first..first + count`.
#[derive(Clone, Debug)]
pub struct ScrambledZipfian {
    zipfian: Zipfian,
    first: u64,
    count: u64,
}

impl ScrambledZipfian {
    /// Over `count` numbers from `first`; `count` is at least 1, at most 2^63, and the sum does not
    /// overflow. YCSB counts the documents that a run is expected to add (twice, to be safe) and
    /// one more, see [`KeyChooser`](super::KeyChooser).
    #[must_use]
    pub fn new(first: u64, count: u64) -> Self {
        ScrambledZipfian { zipfian: Zipfian::with_zeta(ITEMS, ZETA_ITEMS), first, count }
    }

    /// The document at `u` in `[0, 1)`: the one that YCSB returns for the same uniform number.
    ///
    /// Equal to the extent that Java's and this platform's `pow` agree; both are within one unit in the last place, and
    /// the tests compare two million draws.
    #[must_use]
    #[inline]
    pub fn document_at(&self, u: f64) -> u64 {
        let hash = fnv_hash_64(self.zipfian.unclamped_rank_at(u));
        // `rem_euclid` differs from YCSB only for the hash `i64::MIN`, which would leave the range.
        self.first + hash.rem_euclid(self.count as i64) as u64
    }

    /// Draws a document number.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        self.document_at(rng.random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{generator, top_share};

    #[test]
    fn documents_equal_those_of_the_java_generator() {
        // From an independent Java program: 1 000 000 documents from number 5.
        let scrambled = ScrambledZipfian::new(5, 1_000_000);
        let vectors = [
            (0.0, 377_216),
            (0.037, 377_216),
            (0.05, 966_625),
            (0.06, 198_398),
            (0.1, 995_592),
            (0.25, 933_619),
            (0.333_333_333_333_333_3, 592_432),
            (0.5, 280_265),
            (0.618_033_988_749_894_9, 649_210),
            (0.75, 210_444),
            (0.9, 781_675),
            (0.99, 761_526),
            (0.999_999, 16_094),
            (0.999_999_999_999_999_9, 288_922),
        ];
        for (u, document) in vectors {
            assert_eq!(scrambled.document_at(u), document, "document at {u}");
        }
    }

    #[test]
    fn two_million_ranks_equal_those_of_the_java_generator() {
        // Both sides draw from SplitMix64 with state 42 and fold the ranks into a checksum.
        let scrambled = ScrambledZipfian::new(0, 1);
        let mut state = 42_u64;
        let mut checksum = 0_u64;
        for _ in 0..2_000_000 {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            let u = (z >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
            checksum =
                checksum.wrapping_mul(31).wrapping_add(scrambled.zipfian.unclamped_rank_at(u));
        }
        assert_eq!(checksum, 2_947_780_307_814_678_306);
    }

    #[test]
    fn the_hottest_documents_get_the_shares_measured_with_ycsb() {
        let mut rng = generator(51);
        let scrambled = ScrambledZipfian::new(0, 1_000_000);
        let mut counts = vec![0_u32; 1_000_000];
        for _ in 0..20_000_000 {
            counts[scrambled.draw(&mut rng) as usize] += 1;
        }
        for (top, share) in [(1, 0.0378), (100, 0.207), (10_000, 0.399), (100_000, 0.549)] {
            let realised = top_share(&counts, top);
            assert!((realised - share).abs() < 0.002, "top {top}: {realised}");
        }
    }

    #[test]
    fn documents_beyond_32_bits_are_reached() {
        let mut rng = generator(52);
        let scrambled = ScrambledZipfian::new(1 << 40, 100_000_000_000);
        let draws: Vec<u64> = (0..10_000).map(|_| scrambled.draw(&mut rng)).collect();
        assert!(draws.iter().all(|d| (1 << 40..(1 << 40) + 100_000_000_000).contains(d)));
        assert!(draws.iter().any(|&d| d > (1 << 40) + 90_000_000_000));
    }
}
