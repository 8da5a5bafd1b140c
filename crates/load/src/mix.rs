//! Which kind an operation of a mix has.

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
    /// Its share of the operations that are of none of the kinds before it.
    share_of_rest: f64,
}

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
            let share_of_rest = weight / (total - before);
            before += weight;
            kinds.push(Kind {
                kind,
                upper: before / total,
                share_of_rest,
            });
        }
        // The last part ends at 1 whatever rounding made of the sum.
        let last = kinds.last_mut()?;
        (last.upper, last.share_of_rest) = (f64::INFINITY, 1.0);
        Some(Mix { kinds, order })
    }

    /// Those that occur.
    pub(crate) fn kinds(&self) -> Vec<OperationKind> {
        self.kinds.iter().map(|one| one.kind).collect()
    }

    /// The kind of operation `number` of a phase.
    #[inline]
    pub(crate) fn kind(&self, number: u64, rng: &mut Xoshiro256PlusPlus) -> OperationKind {
        match self.order {
            OperationOrder::Random => {
                let draw: f64 = rng.random();
                let mut kinds = self.kinds.iter();
                let drawn = kinds.find(|one| draw < one.upper);
                drawn.map_or(OperationKind::Read, |one| one.kind)
            }
            OperationOrder::Even => self.dealt(number),
        }
    }

    /// Of the first `n` operations a share `p` is of the first kind, up to one operation: the one is of it at which
    /// `p n` passes a whole number. The others are dealt out among the rest in the same way.
    fn dealt(&self, mut number: u64) -> OperationKind {
        for one in &self.kinds {
            let before = (number as f64 * one.share_of_rest) as u64;
            let after = ((number + 1) as f64 * one.share_of_rest) as u64;
            if after > before {
                return one.kind;
            }
            number -= before;
        }
        // The last kind takes all that is left.
        self.kinds
            .last()
            .map_or(OperationKind::Read, |one| one.kind)
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
        (0..count)
            .map(|number| mix.kind(number, &mut rng))
            .collect()
    }

    fn weights(insert: f64, scan: f64, read: f64) -> OperationWeights {
        OperationWeights {
            insert,
            scan,
            read,
            ..OperationWeights::default()
        }
    }

    #[test]
    fn evenly_dealt_kinds_have_the_same_distance() {
        let kinds = kinds_of(
            &weights(100.0, 1000.0, 0.0),
            OperationOrder::Even,
            11_000_000,
        );
        let places = kinds.iter().enumerate();
        let inserts: Vec<usize> = places
            .filter(|(_, kind)| **kind == OperationKind::Insert)
            .map(|(place, _)| place)
            .collect();
        assert_eq!(inserts.len(), 1_000_000);
        let mut distances: Vec<usize> = inserts.windows(2).map(|two| two[1] - two[0]).collect();
        distances.dedup();
        assert_eq!(distances, [11]);
    }

    #[test]
    fn drawn_kinds_have_their_shares_on_average_and_no_rhythm() {
        let kinds = kinds_of(&weights(1.0, 3.0, 0.0), OperationOrder::Random, 100_000);
        let inserts = kinds
            .iter()
            .filter(|kind| **kind == OperationKind::Insert)
            .count();
        // Four deviations of a binomial share.
        assert!((inserts as f64 - 25_000.0).abs() < 4.0 * 137.0, "{inserts}");
        let pairs = kinds
            .windows(2)
            .filter(|two| two == &[OperationKind::Insert; 2]);
        assert!(pairs.count() > 5_000);
    }

    #[test]
    fn without_weights_there_is_no_mix() {
        assert!(Mix::new(&weights(0.0, 0.0, 0.0), OperationOrder::Even).is_none());
    }

    proptest! {
        #[test]
        fn at_every_moment_each_kind_has_its_share_up_to_a_few_operations(
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
                prop_assert!((found - expected).abs() < 3.0, "{:?} {} {}", kind, found, expected);
            }
        }
    }
}
