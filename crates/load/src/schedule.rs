//! Intended starts of operations, computed only from the schedule.
//!
//! An arrival's intended start never depends on a clock reading or on the server, so time that an
//! operation spends waiting for a free connection is part of its response time.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The arrivals of one worker in one phase.
///
/// `worker_count` workers share the offered rate: with constant distances worker `w` owns the
/// arrivals `w, w + worker_count, …`; Poisson streams are independent and add up to a Poisson stream
/// of the whole rate.
#[derive(Debug)]
pub struct Arrivals {
    kind: ArrivalKind,
    base_ns: u64,
    worker: u64,
    worker_count: u64,
    /// Arrivals of this worker so far.
    consumed: u64,
    next_ns: u64,
}

#[derive(Debug)]
enum ArrivalKind {
    Constant { distance_ns: f64 },
    Poisson { mean_ns: f64, elapsed_ns: f64, rng: Xoshiro256PlusPlus },
}

/// Place of a worker among its peers.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Number of the worker, from 0 and below `worker_count`.
    pub worker: u64,
    /// Number of workers, from 1.
    pub worker_count: u64,
    /// Time from the start of a phase to the first arrival of a constant schedule, in nanoseconds, so that generators
    /// for the same server take turns.
    pub offset_ns: u64,
}

impl Arrivals {
    /// Arrivals at equal distances of `1 / rate_per_s`, the first at `base_ns`.
    pub fn constant(rate_per_s: f64, base_ns: u64, share: Share) -> Self {
        let kind = ArrivalKind::Constant { distance_ns: 1e9 / rate_per_s };
        Self::new(kind, base_ns + share.offset_ns, share)
    }

    /// Arrivals with exponentially distributed distances of mean `1 / rate_per_s` over all workers.
    pub fn poisson(rate_per_s: f64, base_ns: u64, share: Share, seed: u64) -> Self {
        let kind = ArrivalKind::Poisson {
            mean_ns: 1e9 / rate_per_s * share.worker_count as f64,
            elapsed_ns: 0.0,
            rng: Xoshiro256PlusPlus::seed_from_u64(
                seed ^ share.worker.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
        };
        Self::new(kind, base_ns, share)
    }

    fn new(kind: ArrivalKind, base_ns: u64, share: Share) -> Self {
        let mut arrivals = Arrivals {
            kind,
            base_ns,
            worker: share.worker,
            worker_count: share.worker_count,
            consumed: 0,
            next_ns: 0,
        };
        arrivals.compute_next();
        arrivals
    }

    /// Intended start of the next arrival.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Number of the next arrival over all workers, from 0.
    #[inline]
    pub fn next_number(&self) -> u64 {
        self.consumed * self.worker_count + self.worker
    }

    /// Takes the next arrival.
    #[inline]
    pub fn advance(&mut self) {
        self.consumed += 1;
        self.compute_next();
    }

    fn compute_next(&mut self) {
        let number = self.next_number();
        let offset_ns = match &mut self.kind {
            // Computed from the number instead of adding intervals, so that rounding errors do not accumulate.
            ArrivalKind::Constant { distance_ns } => number as f64 * *distance_ns,
            ArrivalKind::Poisson { mean_ns, elapsed_ns, rng } => {
                // `1 - u` is in (0, 1], so that the logarithm is finite.
                let u: f64 = rng.random();
                *elapsed_ns += -(1.0 - u).ln() * *mean_ns;
                *elapsed_ns
            }
        };
        self.next_ns = self.base_ns + offset_ns as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALONE: Share = Share { worker: 0, worker_count: 1, offset_ns: 0 };

    fn take(arrivals: &mut Arrivals, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let at = arrivals.next_ns();
                arrivals.advance();
                at
            })
            .collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let mut arrivals = Arrivals::constant(3.0, 1_000, ALONE);
        let times = take(&mut arrivals, 3_000_001);
        assert_eq!(times[0], 1_000);
        assert_eq!(times[3], 1_000_001_000);
        assert_eq!(times[3_000_000], 1_000_000 * 1_000_000_000 + 1_000);
    }

    #[test]
    fn generators_that_share_a_server_take_turns() {
        let second = Share { offset_ns: 500, ..ALONE };
        assert_eq!(take(&mut Arrivals::constant(1e6, 1_000, second), 2), [1_500, 2_500]);
    }

    #[test]
    fn workers_split_constant_arrivals_without_gap_or_overlap() {
        let mut merged: Vec<u64> = (0..3)
            .flat_map(|worker| {
                take(
                    &mut Arrivals::constant(
                        1000.0,
                        0,
                        Share { worker, worker_count: 3, offset_ns: 0 },
                    ),
                    100,
                )
            })
            .collect();
        merged.sort_unstable();
        assert_eq!(merged, (0..300).map(|i| i * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn poisson_distances_have_mean_and_spread_of_an_exponential() {
        let mut arrivals = Arrivals::poisson(1000.0, 0, ALONE, 7);
        let times = take(&mut arrivals, 200_001);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "coefficient of variation");
    }

    #[test]
    fn same_seed_gives_the_same_poisson_arrivals() {
        let first = take(&mut Arrivals::poisson(500.0, 0, ALONE, 1), 50);
        assert_eq!(first, take(&mut Arrivals::poisson(500.0, 0, ALONE, 1), 50));
        assert_ne!(first, take(&mut Arrivals::poisson(500.0, 0, ALONE, 2), 50));
    }

    proptest! {
        #[test]
        fn intended_starts_never_go_back(rate in 0.1f64..1e6, seed: u64, poisson: bool) {
            let mut arrivals = if poisson {
                Arrivals::poisson(rate, 5, ALONE, seed)
            } else {
                Arrivals::constant(rate, 5, ALONE)
            };
            let times = take(&mut arrivals, 200);
            prop_assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
