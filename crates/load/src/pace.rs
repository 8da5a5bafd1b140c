//! When a client of a closed loop starts its next operation: immediately, after a think time, or in its next slot.
//!
//! Think times depend only on the seed and the number of the preceding operation, so a run has the same ones whichever
//! client performs it.

use dyno_plan::model::{Schedule, ThinkTime};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Selects the random sequence of waits, independent of keys and values.
const WAIT_STREAM: u64 = 0x2545_f491_4f6c_dd1d;

/// Marks the first wait of a client, which has no preceding operation.
const FIRST_BIT: u64 = 1 << 63;

/// Think time of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// In nanoseconds; 0 for none.
    pub mean_ns: u64,
    pub distribution: ThinkTime,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    kind: Kind,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// When the last operation has ended; in an open loop, the arrivals decide.
    AtOnce,
    Thinking(Think),
    /// Like YCSB's throttled threads: starts at equal intervals, and immediately while it is behind.
    Slots {
        distance_ns: f64,
    },
}

/// The next start of one client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Not before this time.
    pub(crate) due_ns: u64,
    first_ns: u64,
    /// Number of used or missed slots.
    slot: u64,
}

impl Pace {
    /// The pace of each of `clients` clients of one server.
    pub(crate) fn new(schedule: &Schedule, think: Think, clients: usize, seed: u64) -> Self {
        let kind = match *schedule {
            Schedule::Closed {} if think.mean_ns > 0 => Kind::Thinking(think),
            Schedule::Throttled { rate_per_s } => {
                Kind::Slots { distance_ns: 1e9 / rate_per_s * clients as f64 }
            }
            Schedule::Closed {} | Schedule::Constant { .. } | Schedule::Poisson { .. } => {
                Kind::AtOnce
            }
        };
        Pace { kind, seed }
    }

    /// Whether clients wait between an answer and their next operation.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        !matches!(self.kind, Kind::AtOnce)
    }

    /// The first turn of a client after `start_ns`: the rest of a wait that began earlier. If all waits began together,
    /// the clients would stay synchronized.
    pub(crate) fn first(&self, start_ns: u64, client: u64) -> Turn {
        let mut rng = self.rng(client | FIRST_BIT);
        let wait_ns = match self.kind {
            Kind::AtOnce => return Turn::default(),
            Kind::Thinking(Think { mean_ns, distribution: ThinkTime::Constant }) => {
                rng.random::<f64>() * mean_ns as f64
            }
            Kind::Thinking(think) => think.draw_ns(&mut rng),
            Kind::Slots { distance_ns } => rng.random::<f64>() * distance_ns,
        };
        let due_ns = start_ns.saturating_add(wait_ns as u64);
        Turn { due_ns, first_ns: due_ns, slot: 0 }
    }

    /// The turn after operation `number`, which has ended at `end_ns`.
    #[inline]
    pub(crate) fn next(&self, turn: Turn, number: u64, end_ns: u64) -> Turn {
        match self.kind {
            Kind::AtOnce => turn,
            Kind::Thinking(think) => Turn {
                due_ns: end_ns.saturating_add(think.draw_ns(&mut self.rng(number)) as u64),
                ..turn
            },
            Kind::Slots { distance_ns } => turn.at(turn.slot + 1, distance_ns),
        }
    }

    /// The turn in a phase that starts at `start_ns`: slots missed before are skipped.
    #[inline]
    pub(crate) fn in_phase(&self, turn: Turn, start_ns: u64) -> Turn {
        match self.kind {
            Kind::Slots { distance_ns } if turn.due_ns < start_ns => {
                let slots = (start_ns - turn.first_ns) as f64 / distance_ns;
                turn.at(slots.ceil() as u64, distance_ns)
            }
            _ => turn,
        }
    }

    /// Intended start of an operation of a client that has been free since `free_since_ns`: a slot keeps its time even
    /// if the client was too busy for it.
    #[inline]
    pub(crate) fn intended_ns(&self, turn: Turn, free_since_ns: u64) -> u64 {
        match self.kind {
            Kind::Slots { .. } => turn.due_ns,
            Kind::AtOnce | Kind::Thinking(_) => turn.due_ns.max(free_since_ns),
        }
    }

    fn rng(&self, number: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed.rotate_left(32) ^ number ^ WAIT_STREAM)
    }
}

impl Turn {
    /// Computed from the number instead of adding intervals, so that rounding errors do not accumulate.
    fn at(self, slot: u64, distance_ns: f64) -> Turn {
        Turn {
            due_ns: (self.first_ns).saturating_add((slot as f64 * distance_ns) as u64),
            slot,
            ..self
        }
    }
}

impl Think {
    #[inline]
    fn draw_ns(self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let mean_ns = self.mean_ns as f64;
        match self.distribution {
            ThinkTime::Constant => mean_ns,
            // `1 - u` is in (0, 1], so that the logarithm is finite.
            ThinkTime::Exponential => -(1.0 - rng.random::<f64>()).ln() * mean_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn thinking(distribution: ThinkTime) -> Pace {
        let think = Think { mean_ns: 5 * MS, distribution };
        Pace::new(&Schedule::Closed {}, think, 8, 42)
    }

    fn throttled(rate_per_s: f64, clients: usize) -> Pace {
        let none = Think { mean_ns: 0, distribution: ThinkTime::Constant };
        Pace::new(&Schedule::Throttled { rate_per_s }, none, clients, 42)
    }

    /// Mean and coefficient of variation.
    fn spread(values: &[f64]) -> (f64, f64) {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (mean, (squares.sum::<f64>() / count).sqrt() / mean)
    }

    #[test]
    fn think_times_have_mean_and_spread_of_their_distribution() {
        for (distribution, cv) in [(ThinkTime::Constant, 0.0), (ThinkTime::Exponential, 1.0)] {
            let pace = thinking(distribution);
            let waits = (0..200_000).map(|number| {
                let turn = pace.next(Turn::default(), number, 7 * MS);
                (turn.due_ns - 7 * MS) as f64
            });
            let (mean, found_cv) = spread(&waits.collect::<Vec<_>>());
            assert!((mean / 5e6 - 1.0).abs() < 0.01, "{distribution:?}: {mean}");
            assert!((found_cv - cv).abs() < 0.02, "{distribution:?}: {found_cv}");
        }
    }

    #[test]
    fn the_first_wait_is_the_rest_of_one_that_has_begun_before() {
        // Uniform, and exponential again: means of a half and of the whole.
        let expected = [
            (thinking(ThinkTime::Constant), 2.5e6, 0.577),
            (thinking(ThinkTime::Exponential), 5e6, 1.0),
            (throttled(1000.0, 10), 5e6, 0.577),
        ];
        for (pace, mean, cv) in expected {
            let first = |client| pace.first(MS, client).due_ns - MS;
            let waits: Vec<f64> = (0..100_000).map(|client| first(client) as f64).collect();
            let found = spread(&waits);
            assert!((found.0 / mean - 1.0).abs() < 0.02, "{pace:?}: {found:?}");
            assert!((found.1 - cv).abs() < 0.02, "{pace:?}: {found:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_waits() {
        let pace = thinking(ThinkTime::Exponential);
        let due = |pace: Pace, number| pace.next(Turn::default(), number, 0).due_ns;
        assert_eq!(due(pace, 3), due(thinking(ThinkTime::Exponential), 3));
        assert_ne!(due(pace, 3), due(pace, 4));
        assert_ne!(due(pace, 3), due(Pace { seed: 43, ..pace }, 3));
    }

    #[test]
    fn slots_keep_their_places_however_late_an_operation_ends() {
        // Three clients share 1000/s: each has a slot every 3 ms.
        let pace = throttled(1000.0, 3);
        let first = pace.first(0, 1);
        let mut turn = first;
        for number in 1..=1_000_000 {
            turn = pace.next(turn, number, number * 1000 * MS);
        }
        assert_eq!(turn.due_ns, first.due_ns + 3_000_000 * MS);
        assert_eq!(pace.intended_ns(turn, u64::MAX), turn.due_ns);
    }

    #[test]
    fn slots_missed_before_a_phase_are_not_repeated() {
        let pace = throttled(1000.0, 3);
        let turn = pace.first(0, 1);
        let moved = pace.in_phase(turn, 100 * MS);
        assert!((100 * MS..103 * MS).contains(&moved.due_ns), "{moved:?}");
        assert_eq!((moved.due_ns - turn.due_ns) % (3 * MS), 0);
        assert_eq!(pace.in_phase(moved, 100 * MS).due_ns, moved.due_ns);
    }

    #[test]
    fn loops_without_think_time_do_not_wait() {
        let none = Think { mean_ns: 0, distribution: ThinkTime::Exponential };
        let pace = Pace::new(&Schedule::Closed {}, none, 4, 42);
        assert!(!pace.waits());
        let turn = pace.next(pace.first(MS, 0), 1, 9 * MS);
        assert_eq!((turn.due_ns, pace.intended_ns(turn, 9 * MS)), (0, 9 * MS));
    }
}
