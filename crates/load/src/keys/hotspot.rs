//! A share of the operations goes to a share of the documents, uniformly inside both.

use rand::{Rng, RngExt};

/// Two uniform ranges: the hot documents are the first ones of the range, as in YCSB.
#[derive(Clone, Debug)]
pub struct Hotspot {
    first: u64,
    hot_count: u64,
    cold_count: u64,
    hot_operation_ratio: f64,
}

impl Hotspot {
    /// The first `hot_data_ratio` (above 0, at most 1) of `count` documents from `first` get
    /// `hot_operation_ratio` (0 to 1) of the draws.
    ///
    /// The hot set is rounded down as in YCSB, but holds at least one document. When it holds all,
    /// every draw is hot.
    #[must_use]
    pub fn new(first: u64, count: u64, hot_data_ratio: f64, hot_operation_ratio: f64) -> Self {
        let hot_count = ((count as f64 * hot_data_ratio) as u64).clamp(1, count);
        Hotspot { first, hot_count, cold_count: count - hot_count, hot_operation_ratio }
    }

    /// Draws a document number.
    #[inline]
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        let hot = rng.random::<f64>() < self.hot_operation_ratio;
        if hot || self.cold_count == 0 {
            self.first + rng.random_range(0..self.hot_count)
        } else {
            self.first + self.hot_count + rng.random_range(0..self.cold_count)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{chi_square, chi_square_bound, generator};

    #[test]
    fn hot_and_cold_documents_get_their_shares_uniformly() {
        let mut rng = generator(21);
        let hotspot = Hotspot::new(1000, 500, 0.2, 0.8);
        let mut counts = vec![0_u64; 500];
        for _ in 0..1_000_000 {
            counts[(hotspot.draw(&mut rng) - 1000) as usize] += 1;
        }
        let expected: Vec<f64> = (0..500).map(|i| if i < 100 { 8000.0 } else { 500.0 }).collect();
        let statistic = chi_square(&counts, &expected);
        assert!(statistic < chi_square_bound(499), "chi-square {statistic}");
    }

    #[test]
    fn a_hot_set_that_rounds_to_nothing_holds_one_document() {
        let mut rng = generator(22);
        let hotspot = Hotspot::new(0, 4, 0.2, 1.0);
        assert!((0..1000).all(|_| hotspot.draw(&mut rng) == 0));
    }

    #[test]
    fn a_hot_set_of_everything_reaches_every_document() {
        let mut rng = generator(23);
        let hotspot = Hotspot::new(0, 4, 1.0, 0.0);
        let mut seen = [false; 4];
        for _ in 0..1000 {
            seen[hotspot.draw(&mut rng) as usize] = true;
        }
        assert_eq!(seen, [true; 4]);
    }

    #[test]
    fn no_operation_is_hot_at_a_ratio_of_zero() {
        let mut rng = generator(24);
        let hotspot = Hotspot::new(0, 10, 0.5, 0.0);
        assert!((0..1000).all(|_| hotspot.draw(&mut rng) >= 5));
    }
}
