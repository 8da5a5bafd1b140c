//! Common interface of all key distributions: maps operation numbers to document numbers.

use super::exponential::Exponential;
use super::hotspot::Hotspot;
use super::latest::Latest;
use super::scrambled_zipfian::ScrambledZipfian;
use super::zipfian_exact::ExactZipfian;
use dyno_plan::model::KeyDistribution;
use rand::{Rng, RngExt};

/// Draws that may be repeated because the document does not exist yet. Enough to hide the shortage
/// when a third of the range exists (0.67^32 is 3 in a million), and cheap when hardly any does.
const MAX_REDRAWS: u32 = 32;

/// Chooses the document of each operation.
///
/// Built once per worker and never shared: `latest` keeps the sum of its growing range.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    first: u64,
    distribution: Distribution,
}

#[derive(Clone, Debug)]
enum Distribution {
    Uniform {
        count: u64,
    },
    ScrambledZipfian(ScrambledZipfian),
    ExactZipfian(ExactZipfian),
    Latest(Latest),
    Hotspot(Hotspot),
    /// One after the other, repeating from the start after the last.
    Sequential {
        count: u64,
    },
    Exponential(Exponential),
}

impl KeyChooser {
    /// A chooser over `count` documents (at least 1) from number `first`, of a run that may insert
    /// `expected_new` more (0 when it inserts nothing; YCSB takes twice its share of the operations).
    ///
    /// Visibility of inserted documents: `latest` and `exponential` see them as soon as they are acknowledged;
    /// `scrambled-zipfian` draws over all of `count + expected_new` as in YCSB, and draws again if the document does
    /// not exist; the others stay inside `count`.
    ///
    /// Needs no time that depends on `count`. The validation of plans limits the parameters of the distribution, and
    /// the numbers to 63 bits.
    #[must_use]
    pub fn new(distribution: &KeyDistribution, first: u64, count: u64, expected_new: u64) -> Self {
        let distribution = match *distribution {
            KeyDistribution::Uniform {} => Distribution::Uniform { count },
            KeyDistribution::ScrambledZipfian {} => {
                // YCSB treats its exclusive upper bound as inclusive: one document too many, which the redraw hides.
                // Kept, or every key would differ from YCSB's.
                let count = count + expected_new + 1;
                Distribution::ScrambledZipfian(ScrambledZipfian::new(first, count))
            }
            KeyDistribution::Zipfian { exponent } => {
                Distribution::ExactZipfian(ExactZipfian::new(first, count, exponent))
            }
            KeyDistribution::Latest {} => Distribution::Latest(Latest::new(first, count)),
            KeyDistribution::Hotspot { hot_data_ratio: data, hot_operation_ratio: operations } => {
                Distribution::Hotspot(Hotspot::new(first, count, data, operations))
            }
            KeyDistribution::Sequential {} => Distribution::Sequential { count },
            KeyDistribution::Exponential { percentile, data_ratio } => {
                Distribution::Exponential(Exponential::new(first, count, percentile, data_ratio))
            }
        };
        KeyChooser { first, distribution }
    }

    /// The document of the operation with this number.
    ///
    /// `bound` is the newest document known to exist; the result is in `first..=bound` (`first`
    /// when `bound` lies before it). With the same `bound` and the same state of `rng` the result is
    /// the same; seed `rng` from the operation number for a stream that can be repeated. A draw
    /// beyond `bound` is repeated at most 32 times, then folded into the range by its remainder.
    #[inline]
    pub fn next<R: Rng + ?Sized>(&mut self, operation_number: u64, rng: &mut R, bound: u64) -> u64 {
        let first = self.first;
        let bound = bound.max(first);
        match &mut self.distribution {
            Distribution::Uniform { count } => {
                existing(first, bound, || first + rng.random_range(0..*count))
            }
            Distribution::ScrambledZipfian(zipfian) => existing(first, bound, || zipfian.draw(rng)),
            Distribution::ExactZipfian(zipfian) => existing(first, bound, || zipfian.draw(rng)),
            Distribution::Hotspot(hotspot) => existing(first, bound, || hotspot.draw(rng)),
            // Without a counter: workers that share the operation numbers share the documents, and repeating an
            // operation repeats its document.
            Distribution::Sequential { count } => {
                fold(first, bound, first + operation_number % *count)
            }
            Distribution::Latest(latest) => latest.draw(bound, rng),
            Distribution::Exponential(exponential) => exponential.draw(bound, rng),
        }
    }
}

/// The first existing document of a bounded number of draws, or the last draw folded into the range.
#[inline]
fn existing(first: u64, bound: u64, mut draw: impl FnMut() -> u64) -> u64 {
    let mut document = draw();
    for _ in 0..MAX_REDRAWS {
        if document <= bound {
            return document;
        }
        document = draw();
    }
    fold(first, bound, document)
}

/// `document` if it exists, otherwise its remainder in `first..=bound`: hot documents stay hot.
#[inline]
fn fold(first: u64, bound: u64, document: u64) -> u64 {
    if document <= bound { document } else { first + (document - first) % (bound - first + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::{chi_square, chi_square_bound, generator};
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    fn all() -> Vec<KeyDistribution> {
        vec![
            KeyDistribution::Uniform {},
            KeyDistribution::ScrambledZipfian {},
            KeyDistribution::Zipfian { exponent: 0.99 },
            KeyDistribution::Latest {},
            KeyDistribution::Hotspot { hot_data_ratio: 0.2, hot_operation_ratio: 0.8 },
            KeyDistribution::Sequential {},
            KeyDistribution::Exponential { percentile: 95.0, data_ratio: 0.857_142_857_1 },
        ]
    }

    #[test]
    fn every_distribution_stays_within_the_documents() {
        let mut rng = generator(81);
        for distribution in all() {
            for (count, expected_new, bound) in
                [(1, 0, 100), (7, 3, 106), (1000, 500, 1200), (1000, 0, 150)]
            {
                let mut chooser = KeyChooser::new(&distribution, 100, count, expected_new);
                for operation in 0..2000 {
                    let document = chooser.next(operation, &mut rng, bound);
                    assert!(
                        (100..=bound).contains(&document),
                        "{distribution:?}: {document} of {bound}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_stream_is_a_function_of_seed_and_operation_number() {
        for distribution in all() {
            let stream = |order: &mut dyn Iterator<Item = u64>| {
                let mut chooser = KeyChooser::new(&distribution, 0, 100_000, 0);
                let mut documents: Vec<(u64, u64)> = order
                    .map(|operation| {
                        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7 ^ operation);
                        (operation, chooser.next(operation, &mut rng, 99_999))
                    })
                    .collect();
                documents.sort_unstable();
                documents
            };
            assert_eq!(stream(&mut (0..1000)), stream(&mut (0..1000).rev()), "{distribution:?}");
        }
    }

    #[test]
    fn draws_from_a_range_beyond_the_documents_end() {
        let mut rng = generator(82);
        let mut chooser = KeyChooser::new(&KeyDistribution::ScrambledZipfian {}, 0, 10, 1 << 60);
        let draws: Vec<u64> = (0..1000).map(|i| chooser.next(i, &mut rng, 9)).collect();
        assert!(draws.iter().all(|&document| document < 10));
    }

    #[test]
    fn a_bound_below_the_range_gives_the_first_document() {
        let mut rng = generator(83);
        for distribution in all() {
            let mut chooser = KeyChooser::new(&distribution, 50, 10, 0);
            assert_eq!(chooser.next(3, &mut rng, 20), 50, "{distribution:?}");
        }
    }

    #[test]
    fn redrawing_keeps_the_existing_documents_equally_likely() {
        let mut rng = generator(84);
        let mut chooser = KeyChooser::new(&KeyDistribution::Uniform {}, 0, 100, 0);
        let mut counts = vec![0_u64; 60];
        for operation in 0..120_000 {
            counts[chooser.next(operation, &mut rng, 59) as usize] += 1;
        }
        let statistic = chi_square(&counts, &[2000.0; 60]);
        assert!(statistic < chi_square_bound(59), "chi-square {statistic}");
    }

    #[test]
    fn a_hundred_billion_documents_are_ready_at_once() {
        let mut rng = generator(85);
        let count = 100_000_000_000;
        for distribution in all() {
            let mut chooser = KeyChooser::new(&distribution, 0, count, 0);
            assert!(chooser.next(count - 1, &mut rng, count - 1) < count, "{distribution:?}");
        }
    }

    #[test]
    fn uniform_draws_reach_all_documents_equally() {
        let mut rng = generator(11);
        let mut chooser = KeyChooser::new(&KeyDistribution::Uniform {}, 50, 200, 0);
        let mut counts = vec![0_u64; 200];
        for operation in 0..400_000 {
            counts[(chooser.next(operation, &mut rng, 249) - 50) as usize] += 1;
        }
        let statistic = chi_square(&counts, &[2000.0; 200]);
        assert!(statistic < chi_square_bound(199), "chi-square {statistic}");
    }

    #[test]
    fn uniform_range_beyond_32_bits_is_covered_to_its_ends() {
        let mut rng = generator(12);
        let (first, count) = (5_000_000_000, 100_000_000_000);
        let mut chooser = KeyChooser::new(&KeyDistribution::Uniform {}, first, count, 0);
        let draws: Vec<u64> =
            (0..10_000).map(|i| chooser.next(i, &mut rng, first + count - 1)).collect();
        assert!(draws.iter().all(|d| (first..first + count).contains(d)));
        assert!(draws.iter().any(|&d| d > first + 99_000_000_000));
        assert!(draws.iter().any(|&d| d < first + 1_000_000_000));
    }

    #[test]
    fn sequential_documents_come_in_order_and_again() {
        let mut rng = generator(13);
        let mut chooser = KeyChooser::new(&KeyDistribution::Sequential {}, 10, 3, 0);
        let documents: Vec<u64> = (0..7).map(|i| chooser.next(i, &mut rng, 12)).collect();
        assert_eq!(documents, [10, 11, 12, 10, 11, 12, 10]);
        // The largest number is a multiple of 3.
        assert_eq!(chooser.next(u64::MAX, &mut rng, 12), 10);
    }
}
