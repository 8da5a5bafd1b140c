//! The operation kinds of a mix.

use crate::operation::OperationKind;
use dyno_plan::model::{OperationOrder, OperationWeights};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Operations by their weights.
pub(crate) struct Mix {
    kinds: Vec<Kind>,
    order: OperationOrder,
}

struct Kind {
    kind: OperationKind,
    /// Upper end of its part of `0..1`.
    upper: f64,
}

/// 2⁶⁴ divided by the golden ratio. Of the multiples of an irrational number the fractional parts of these are spread most evenly
/// (D. Knuth, *The Art of Computer Programming*, volume 3, section 6.4, theorem S), also of every second or every eighth one: workers
/// take turns, and each gets its share of each kind.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Mix {
    /// `None` if no weight is positive.
    pub(crate) fn new(weights: &OperationWeights, order: OperationOrder) -> Option<Self> {
        let entries = [
            (weights.read, OperationKind::Read),
            (weights.update, OperationKind::Update),
            (weights.insert, OperationKind::Insert),
            (weights.scan, OperationKind::Scan),
            (weights.read_modify_write, OperationKind::ReadModifyWrite),
            (weights.delete, OperationKind::Delete),
        ];
        let total: f64 = entries.iter().map(|(weight, _)| weight).sum();
        let (mut before, mut kinds) = (0.0, Vec::new());
        for (weight, kind) in entries.into_iter().filter(|(weight, _)| *weight > 0.0) {
            before += weight;
            kinds.push(Kind { kind, upper: before / total });
        }
        // The last part ends at 1 whatever rounding made of the sum.
        kinds.last_mut()?.upper = f64::INFINITY;
        Some(Mix { kinds, order })
    }

    /// Those that occur.
    pub(crate) fn kinds(&self) -> Vec<OperationKind> {
        self.kinds.iter().map(|one| one.kind).collect()
    }

    /// The kind of operation `number` of a phase.
    #[inline]
    pub(crate) fn kind(&self, number: u64, rng: &mut Xoshiro256PlusPlus) -> OperationKind {
        let place: f64 = match self.order {
            OperationOrder::Random => rng.random(),
            OperationOrder::Even => number.wrapping_mul(GOLDEN) as f64 / 2f64.powi(64),
        };
        let kind = self.kinds.iter().find(|one| place < one.upper);
        kind.map_or(OperationKind::Read, |one| one.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn kinds_of(
        weights: &OperationWeights,
        order: OperationOrder,
        count: u64,
    ) -> Vec<OperationKind> {
        let mix = Mix::new(weights, order).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        (0..count).map(|number| mix.kind(number, &mut rng)).collect()
    }

    fn weights(insert: f64, scan: f64, read: f64) -> OperationWeights {
        OperationWeights { insert, scan, read, ..OperationWeights::default() }
    }

    #[test]
    fn evenly_dealt_kinds_have_about_the_same_distance() {
        let all = weights(100.0, 1000.0, 0.0);
        let kinds = kinds_of(&all, OperationOrder::Even, 11_000_000);
        let inserts: Vec<usize> = kinds
            .iter()
            .enumerate()
            .filter(|(_, kind)| **kind == OperationKind::Insert)
            .map(|(place, _)| place)
            .collect();
        assert!(inserts.len().abs_diff(1_000_000) < 6, "{}", inserts.len());
        // Three distances at most, whatever the share (V. Sós, 1958).
        let mut distances: Vec<usize> = inserts.windows(2).map(|two| two[1] - two[0]).collect();
        distances.sort_unstable();
        distances.dedup();
        assert_eq!(distances, [5, 8, 13]);
    }

    #[test]
    fn alternating_workers_get_equal_shares_of_dealt_kinds() {
        for (insert, scan) in [(1000.0, 1000.0), (100.0, 1000.0), (1.0, 3.0)] {
            let kinds = kinds_of(&weights(insert, scan, 0.0), OperationOrder::Even, 24_000);
            for workers in [2, 3, 4, 8] {
                for worker in 0..workers {
                    let inserts = kinds
                        .iter()
                        .skip(worker)
                        .step_by(workers)
                        .filter(|kind| **kind == OperationKind::Insert)
                        .count() as f64;
                    let expected = 24_000.0 / workers as f64 * insert / (insert + scan);
                    assert!((inserts - expected).abs() < 10.0, "{worker} of {workers}: {inserts}");
                }
            }
        }
    }

    #[test]
    fn drawn_kinds_have_their_shares_on_average_and_no_rhythm() {
        let kinds = kinds_of(&weights(1.0, 3.0, 0.0), OperationOrder::Random, 100_000);
        let inserts = kinds.iter().filter(|kind| **kind == OperationKind::Insert).count();
        // Four deviations of a binomial share.
        assert!((inserts as f64 - 25_000.0).abs() < 4.0 * 137.0, "{inserts}");
        let pairs = kinds.windows(2).filter(|two| two == &[OperationKind::Insert; 2]);
        assert!(pairs.count() > 5_000);
    }

    #[test]
    fn without_weights_there_is_no_mix() {
        assert!(Mix::new(&weights(0.0, 0.0, 0.0), OperationOrder::Even).is_none());
    }

    proptest! {
        #[test]
        fn each_kind_has_its_share_at_every_moment(
            insert in 1u32..2000, scan in 0u32..2000, read in 0u32..2000, count in 1u64..5000,
        ) {
            let given = weights(insert.into(), scan.into(), read.into());
            let kinds = kinds_of(&given, OperationOrder::Even, count);
            let total = f64::from(insert + scan + read);
            for (weight, kind) in [
                (insert, OperationKind::Insert), (scan, OperationKind::Scan), (read, OperationKind::Read),
            ] {
                let found = kinds.iter().filter(|one| **one == kind).count() as f64;
                let expected = f64::from(weight) / total * count as f64;
                prop_assert!((found - expected).abs() < 6.0, "{:?} {} {}", kind, found, expected);
            }
        }
    }
}
