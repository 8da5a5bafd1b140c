//! Zipfian over the documents from newest to oldest: the last inserted documents are read most.

use super::zipfian::Zipfian;
use rand::Rng;

/// Zipfian (exponent 0.99) over age, where age 0 is the newest acknowledged document.
#[derive(Clone, Debug)]
pub struct Latest {
    zipfian: Zipfian,
    first: u64,
}

impl Latest {
    /// Over `count` numbers (at least 1) from `first`, and over numbers that are acknowledged later.
    #[must_use]
    pub fn new(first: u64, count: u64) -> Self {
        Latest { zipfian: Zipfian::new(count), first }
    }

    /// Draws a document number in `first..=newest`; `newest` is at least `first`.
    ///
    /// YCSB never draws the first document; here the oldest document has the probability of its rank.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&mut self, newest: u64, rng: &mut R) -> u64 {
        let documents = newest - self.first + 1;
        self.zipfian.grow_to(documents);
        // `newest` can be lower than in an earlier call if callers disagree about acknowledged numbers.
        newest - self.zipfian.draw(rng).min(documents - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::generator;

    #[test]
    fn the_newest_document_is_the_most_frequent() {
        let mut rng = generator(71);
        let mut latest = Latest::new(0, 1000);
        let mut counts = vec![0_u32; 1000];
        for _ in 0..200_000 {
            counts[latest.draw(999, &mut rng) as usize] += 1;
        }
        // 1 / zeta(1000) = 12.94 % and 2^-0.99 / zeta(1000) = 6.51 %.
        assert!((25_200..26_600).contains(&counts[999]), "{}", counts[999]);
        assert!((12_500..13_550).contains(&counts[998]), "{}", counts[998]);
    }

    #[test]
    fn the_peak_moves_with_the_newest_document() {
        let mut rng = generator(72);
        let mut latest = Latest::new(100, 50);
        for newest in [149, 150, 400, 100_000] {
            let draws: Vec<u64> = (0..2000).map(|_| latest.draw(newest, &mut rng)).collect();
            assert!(draws.iter().all(|d| (100..=newest).contains(d)));
            assert!(draws.iter().filter(|&&d| d == newest).count() > 100);
            // The tail grows along: the oldest half is still reached.
            assert!(draws.iter().any(|&d| d < 100 + (newest - 100) / 2));
        }
    }

    #[test]
    fn every_document_is_reachable_the_first_included() {
        let mut rng = generator(73);
        let mut latest = Latest::new(5, 10);
        let mut seen = [false; 10];
        for _ in 0..10_000 {
            seen[(latest.draw(14, &mut rng) - 5) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn a_newest_document_that_falls_back_stays_in_range() {
        let mut rng = generator(74);
        let mut latest = Latest::new(0, 1000);
        assert!((0..1000).all(|_| latest.draw(3, &mut rng) <= 3));
    }
}
