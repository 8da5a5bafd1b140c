//! Exponential distribution over the age of documents: older documents are chosen less often.

use rand::{Rng, RngExt};

/// Exponential over age: the age of a draw, in documents behind the newest, has the density
/// `gamma * exp(-gamma * age)`, cut off at the oldest document.
///
/// YCSB draws again while the age goes beyond the oldest document. Here the cut-off distribution is
/// inverted instead, which gives the same probabilities with one random number and no loop.
#[derive(Clone, Debug)]
pub struct Exponential {
    first: u64,
    gamma: f64,
}

impl Exponential {
    /// `percentile` percent (0 to 100, both exclusive) of the draws go to the newest `data_ratio * count` documents
    /// (`data_ratio` above 0), as with YCSB's `exponential.percentile` and `exponential.frac`. Numbers below `first`
    /// are never drawn.
    #[must_use]
    pub fn new(first: u64, count: u64, percentile: f64, data_ratio: f64) -> Self {
        let gamma = -(-percentile / 100.0).ln_1p() / (data_ratio * count as f64);
        Exponential { first, gamma }
    }

    /// Draws a document number in `first..=newest`; `newest` is at least `first`.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, newest: u64, rng: &mut R) -> u64 {
        let documents = newest - self.first + 1;
        let u: f64 = rng.random();
        // Inverse of the cut-off distribution function: (1 - e^(-gamma x)) / (1 - e^(-gamma n)).
        let cut_off = (-self.gamma * documents as f64).exp_m1();
        let age = (-(u * cut_off).ln_1p() / self.gamma) as u64;
        newest - age.min(documents - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{chi_square, chi_square_bound, generator};

    #[test]
    fn frequencies_fall_exponentially_with_age() {
        let mut rng = generator(31);
        let exponential = Exponential::new(0, 100, 95.0, 0.857_142_857_1);
        let draws = 1_000_000;
        let mut counts = vec![0_u64; 100];
        for _ in 0..draws {
            counts[(99 - exponential.draw(99, &mut rng)) as usize] += 1;
        }
        let gamma = 20_f64.ln() / 85.714_285_71;
        let mass = 1.0 - (-gamma * 100.0).exp();
        let expected: Vec<f64> = (0..100)
            .map(|age| {
                let (from, to) = (f64::from(age), f64::from(age + 1));
                ((-gamma * from).exp() - (-gamma * to).exp()) / mass * f64::from(draws)
            })
            .collect();
        let statistic = chi_square(&counts, &expected);
        assert!(statistic < chi_square_bound(99), "chi-square {statistic}");
    }

    #[test]
    fn the_percentile_goes_to_the_share_of_the_newest_documents() {
        let mut rng = generator(32);
        // The range reaches so far that nothing is cut off.
        let exponential = Exponential::new(0, 1_000_000, 90.0, 0.01);
        let newest = 999_999;
        let hits =
            (0..100_000).filter(|_| newest - exponential.draw(newest, &mut rng) < 10_000).count();
        assert!((89_500..90_500).contains(&hits), "{hits}");
    }

    #[test]
    fn a_single_document_is_always_chosen() {
        let exponential = Exponential::new(7, 1, 95.0, 0.5);
        assert!((0..100).all(|seed| exponential.draw(7, &mut generator(seed)) == 7));
    }
}
