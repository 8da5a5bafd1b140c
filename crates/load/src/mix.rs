//! The operations of a mix.

use crate::operation::Planned;
use dyno_plan::model::{OperationOrder, OperationWeights};
use dyno_plan::operation::{OperationId, Operations};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// Operations by their weights.
pub(crate) struct Mix {
    entries: Vec<Entry>,
    order: OperationOrder,
}

struct Entry {
    planned: Planned,
    /// Upper end of its part of `0..1`.
    upper: f64,
}

/// 2⁶⁴ divided by the golden ratio. Of the multiples of an irrational number the fractional parts of these are spread most evenly
/// (D. Knuth, *The Art of Computer Programming*, volume 3, section 6.4, theorem S), also of every second or every eighth one: workers
/// take turns, and each gets its share of each kind.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Mix {
    /// `None` if no weight is positive.
    pub(crate) fn new(
        weights: &OperationWeights,
        order: OperationOrder,
        operations: &Operations,
    ) -> Option<Self> {
        let weights = weights.by_name().into_iter().filter(|(_, weight)| *weight > 0.0);
        let planned = weights.map(|(name, weight)| Some((Planned::new(operations, name)?, weight)));
        Self::of(&planned.collect::<Option<Vec<_>>>()?, order)
    }

    /// Operations with their weights; `None` if no weight is positive.
    pub(crate) fn of(weights: &[(Planned, f64)], order: OperationOrder) -> Option<Self> {
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let (mut before, mut entries) = (0.0, Vec::new());
        for (planned, weight) in weights.iter().copied().filter(|(_, weight)| *weight > 0.0) {
            before += weight;
            entries.push(Entry { planned, upper: before / total });
        }
        // The last part ends at 1 whatever rounding made of the sum.
        entries.last_mut()?.upper = f64::INFINITY;
        Some(Mix { entries, order })
    }

    /// Indexes under which its operations count.
    pub(crate) fn counted(&self) -> Vec<OperationId> {
        let mut counted: Vec<OperationId> =
            self.entries.iter().flat_map(|one| one.planned.counted()).collect();
        counted.sort_unstable();
        counted.dedup();
        counted
    }

    /// Operation `number` of a phase.
    #[inline]
    pub(crate) fn planned(&self, number: u64, rng: &mut Xoshiro256PlusPlus) -> Planned {
        let place: f64 = match self.order {
            OperationOrder::Random => rng.random(),
            OperationOrder::Even => number.wrapping_mul(GOLDEN) as f64 / 2f64.powi(64),
        };
        let entry = self.entries.iter().find(|one| place < one.upper);
        entry.expect("the last entry has no upper end").planned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Action;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn kinds_of(weights: &OperationWeights, order: OperationOrder, count: u64) -> Vec<Action> {
        let mix = Mix::new(weights, order, &Operations::of_weights(weights, 1)).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        (0..count).map(|number| mix.planned(number, &mut rng).action).collect()
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
            .filter(|(_, kind)| **kind == Action::Insert)
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
                        .filter(|kind| **kind == Action::Insert)
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
        let inserts = kinds.iter().filter(|kind| **kind == Action::Insert).count();
        // Four deviations of a binomial share.
        assert!((inserts as f64 - 25_000.0).abs() < 4.0 * 137.0, "{inserts}");
        let pairs = kinds.windows(2).filter(|two| two == &[Action::Insert; 2]);
        assert!(pairs.count() > 5_000);
    }

    #[test]
    fn without_weights_there_is_no_mix() {
        let none = weights(0.0, 0.0, 0.0);
        let operations = Operations::of_weights(&none, 1);
        assert!(Mix::new(&none, OperationOrder::Even, &operations).is_none());
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
                (insert, Action::Insert), (scan, Action::Scan), (read, Action::Read),
            ] {
                let found = kinds.iter().filter(|one| **one == kind).count() as f64;
                let expected = f64::from(weight) / total * count as f64;
                prop_assert!((found - expected).abs() < 6.0, "{:?} {} {}", kind, found, expected);
            }
        }
    }
}
