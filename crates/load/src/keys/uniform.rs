//! Every document with the same probability.

use rand::{Rng, RngExt};

/// Uniform over `first..first + count`.
#[derive(Clone, Debug)]
pub struct Uniform {
    first: u64,
    count: u64,
}

impl Uniform {
    /// Uniform over `count` numbers from `first`; `count` is at least 1 and the sum does not overflow.
    #[must_use]
    pub fn new(first: u64, count: u64) -> Self {
        Uniform { first, count }
    }

    /// Draws a document number.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        self.first + rng.random_range(0..self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{chi_square, chi_square_bound, generator};

    #[test]
    fn all_documents_are_equally_frequent() {
        let mut rng = generator(11);
        let uniform = Uniform::new(50, 200);
        let mut counts = vec![0_u64; 200];
        for _ in 0..400_000 {
            counts[(uniform.draw(&mut rng) - 50) as usize] += 1;
        }
        let statistic = chi_square(&counts, &[2000.0; 200]);
        assert!(statistic < chi_square_bound(199), "chi-square {statistic}");
    }

    #[test]
    fn a_range_beyond_32_bits_is_covered_to_its_ends() {
        let mut rng = generator(12);
        let first = 5_000_000_000;
        let uniform = Uniform::new(first, 100_000_000_000);
        let draws: Vec<u64> = (0..10_000).map(|_| uniform.draw(&mut rng)).collect();
        assert!(draws.iter().all(|d| (first..first + 100_000_000_000).contains(d)));
        assert!(draws.iter().any(|&d| d > first + 99_000_000_000));
        assert!(draws.iter().any(|&d| d < first + 1_000_000_000));
    }

    #[test]
    fn a_single_document_is_always_chosen() {
        let uniform = Uniform::new(9, 1);
        assert_eq!(uniform.draw(&mut generator(13)), 9);
    }
}
