//! Exact zipfian with a chosen exponent: the document of rank `r` (from 1) has a probability
//! proportional to `r^-exponent`.

use super::permutation::Permutation;
use rand::Rng;
use rand_distr::{Distribution, Zipf};

/// Zipfian over `first..first + count`; the ranks are spread over the range by a [`Permutation`].
#[derive(Clone, Debug)]
pub struct ExactZipfian {
    zipf: Zipf<f64>,
    permutation: Permutation,
    first: u64,
    count: u64,
}

impl ExactZipfian {
    /// Over `count` numbers from `first` (`count` is at least 1, the sum does not overflow), with an
    /// `exponent` above 0 (1.0 included). Ready at once for any count: nothing is summed up.
    ///
    /// # Panics
    /// If the exponent is not above 0, which the validation of plans refuses.
    #[must_use]
    pub fn new(first: u64, count: u64, exponent: f64) -> Self {
        ExactZipfian {
            zipf: Zipf::new(count as f64, exponent).expect("a valid plan has an exponent above 0"),
            permutation: Permutation::new(count),
            first,
            count,
        }
    }

    /// Draws a document number. Takes a varying number of random numbers (rejection sampling).
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        let rank = (self.zipf.sample(rng) as u64).clamp(1, self.count) - 1;
        self.first + self.permutation.at(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{chi_square, chi_square_bound, generator, top_share};

    impl ExactZipfian {
        /// The document of a rank; rank 0 is the most frequent.
        fn document_of_rank(&self, rank: u64) -> u64 {
            self.first + self.permutation.at(rank)
        }
    }

    /// Counts by rank of `draws` draws over 300 documents, and what is expected.
    fn frequencies(exponent: f64, draws: u32) -> (Vec<u64>, Vec<f64>) {
        let mut rng = generator(61);
        let zipfian = ExactZipfian::new(40, 300, exponent);
        let mut by_document = vec![0_u64; 300];
        for _ in 0..draws {
            by_document[(zipfian.draw(&mut rng) - 40) as usize] += 1;
        }
        let counts = (0..300)
            .map(|rank| by_document[(zipfian.document_of_rank(rank) - 40) as usize])
            .collect();
        let zeta: f64 = (1..=300).map(|r| f64::from(r).powf(-exponent)).sum();
        let expected =
            (1..=300).map(|r| f64::from(r).powf(-exponent) / zeta * f64::from(draws)).collect();
        (counts, expected)
    }

    #[test]
    fn frequencies_follow_the_law_for_several_exponents() {
        for exponent in [0.2, 0.99, 1.0, 1.3] {
            let (counts, expected) = frequencies(exponent, 2_000_000);
            let statistic = chi_square(&counts, &expected);
            assert!(
                statistic < chi_square_bound(299),
                "exponent {exponent}: chi-square {statistic}"
            );
        }
    }

    #[test]
    fn the_hottest_documents_get_their_shares() {
        let mut rng = generator(62);
        let zipfian = ExactZipfian::new(0, 1_000_000, 0.99);
        let mut counts = vec![0_u32; 1_000_000];
        for _ in 0..20_000_000 {
            counts[zipfian.draw(&mut rng) as usize] += 1;
        }
        let zeta = |n: u32| (1..=n).map(|r| f64::from(r).powf(-0.99)).sum::<f64>();
        for top in [1, 100, 10_000, 100_000] {
            let share = zeta(top) / zeta(1_000_000);
            // The realised hottest are the luckiest as well, which adds a little in the flat tail.
            let realised = top_share(&counts, top as usize);
            assert!((realised - share).abs() < 0.003, "top {top}: {realised} for {share}");
        }
    }

    #[test]
    fn the_hottest_documents_are_not_neighbours() {
        let zipfian = ExactZipfian::new(0, 100_000, 0.99);
        let mut hottest: Vec<u64> = (0..20).map(|rank| zipfian.document_of_rank(rank)).collect();
        hottest.sort_unstable();
        assert!(hottest.windows(2).all(|pair| pair[1] - pair[0] > 1), "{hottest:?}");
    }

    #[test]
    fn one_document_and_a_hundred_billion_work() {
        let mut rng = generator(63);
        assert_eq!(ExactZipfian::new(3, 1, 0.99).draw(&mut rng), 3);
        let large = ExactZipfian::new(0, 100_000_000_000, 0.5);
        let draws: Vec<u64> = (0..1000).map(|_| large.draw(&mut rng)).collect();
        assert!(draws.iter().all(|&d| d < 100_000_000_000));
        assert!(draws.iter().any(|&d| d > 50_000_000_000));
    }
}
