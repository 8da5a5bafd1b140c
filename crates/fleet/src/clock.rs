//! Offset between a clock of this host and the clock of Redis, with its uncertainty, from round trips.
//!
//! Redis reads its clock (`TIME`, in whole microseconds) between sending and receiving, so each round trip bounds the offset from
//! both sides, whatever the delays. Bounds of several trips are intersected; the fastest trip bounds most. Hosts compare through
//! the clock of Redis. Offsets place instants and windows of different hosts on one time axis; they never enter a latency.

use nix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;

/// Resolution of the clock of Redis: it truncates to microseconds.
const RESOLUTION_NS: i128 = 1_000;
/// Round trips of an estimate.
const KEPT: usize = 32;
/// Largest relative drift of two clocks: an uncorrected quartz is off by about 20 millionths, and NTP may adjust the clock of Redis
/// at the same time. Older round trips therefore bound less.
const DRIFT: f64 = 50e-6;

/// Nanoseconds of the monotonic clock.
pub fn monotonic_ns() -> i64 {
    now_ns(ClockId::CLOCK_MONOTONIC)
}

/// Nanoseconds of the wall clock, since 1970.
pub fn realtime_ns() -> i64 {
    now_ns(ClockId::CLOCK_REALTIME)
}

fn now_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock).expect("Linux has the clock");
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Before the request, on this host's clock.
    pub sent_ns: i64,
    /// The answer of Redis.
    pub remote_ns: i64,
    /// After the answer, on this host's clock.
    pub received_ns: i64,
}

impl RoundTrip {
    /// Duration.
    pub fn length_ns(&self) -> i64 {
        self.received_ns - self.sent_ns
    }

    /// Smallest and largest offset that it allows at an instant after its end, on this host's clock.
    fn bounds(&self, now_ns: i64) -> (i128, i128) {
        let remote = i128::from(self.remote_ns);
        let age_ns = now_ns.saturating_sub(self.sent_ns).max(0);
        let drift_ns = (age_ns as f64 * DRIFT).ceil() as i128;
        (
            remote - i128::from(self.received_ns) - drift_ns,
            remote + RESOLUTION_NS - i128::from(self.sent_ns) + drift_ns,
        )
    }
}

/// Difference to add to a host's clock to get the clock of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Offset {
    pub offset_ns: i64,
    /// Largest error at the last round trip, unless a clock was set or drifts by more than 50 millionths; it grows by 50
    /// microseconds per second.
    pub uncertainty_ns: u64,
    /// The fastest round trip.
    pub round_trip_ns: u64,
    /// Round trips of the estimate.
    pub samples: u32,
    /// Whether all round trips allow a common offset. If not, a clock was set, and only the newest trip counts.
    pub consistent: bool,
}

impl Offset {
    /// Converts an instant of this host to the clock of Redis.
    pub fn to_remote_ns(&self, local_ns: i64) -> i64 {
        local_ns.saturating_add(self.offset_ns)
    }

    /// Converts an instant of the clock of Redis to this host's clock.
    pub fn to_local_ns(&self, remote_ns: i64) -> i64 {
        remote_ns.saturating_sub(self.offset_ns)
    }
}

/// Collects round trips.
#[derive(Clone, Debug, Default)]
pub struct OffsetEstimator {
    trips: VecDeque<RoundTrip>,
}

impl OffsetEstimator {
    /// Adds a round trip and keeps the newest ones. Ignores a trip that ends before it begins, because the clock was set.
    pub fn add(&mut self, trip: RoundTrip) {
        if trip.length_ns() < 0 {
            return;
        }
        if self.trips.len() == KEPT {
            self.trips.pop_front();
        }
        self.trips.push_back(trip);
    }

    /// The offset by the round trips so far; `None` without any.
    pub fn estimate(&self) -> Option<Offset> {
        let quickest = self.trips.iter().min_by_key(|trip| trip.length_ns())?;
        let newest = self.trips.back()?;
        let now_ns = newest.received_ns;
        let bounds = self.trips.iter().map(|trip| trip.bounds(now_ns));
        let (low, high) = bounds
            .fold((i128::MIN, i128::MAX), |(low, high), trip| (low.max(trip.0), high.min(trip.1)));
        let consistent = low <= high;
        let (low, high) = if consistent { (low, high) } else { newest.bounds(now_ns) };
        let middle = (low + high).div_euclid(2);
        Some(Offset {
            offset_ns: i64::try_from(middle).ok()?,
            // Rounded up, so that the bounds stay inside.
            uncertainty_ns: u64::try_from(high - middle).ok()?,
            round_trip_ns: quickest.length_ns().unsigned_abs(),
            samples: self.trips.len() as u32,
            consistent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A round trip to a clock that is `offset` ahead, with these delays in both directions.
    fn trip(at: i64, offset: i64, there: i64, back: i64) -> RoundTrip {
        RoundTrip {
            sent_ns: at,
            remote_ns: (at + there + offset).div_euclid(1_000) * 1_000,
            received_ns: at + there + back,
        }
    }

    /// Drift of a clock after a time.
    fn drifted(after_ns: i64, share: f64) -> i64 {
        (after_ns as f64 * share) as i64
    }

    #[test]
    fn one_slow_direction_moves_the_estimate_within_its_uncertainty() {
        let mut estimator = OffsetEstimator::default();
        estimator.add(trip(0, 5_000_000, 10_000, 900_000));
        let alone = estimator.estimate().expect("present");
        assert!((alone.offset_ns - 5_000_000).unsigned_abs() <= alone.uncertainty_ns);
        assert!(alone.uncertainty_ns > 400_000);
        // A later fast trip bounds the offset from both sides.
        estimator.add(trip(1_000_000, 5_000_000, 30_000, 30_000));
        let both = estimator.estimate().expect("present");
        assert!(both.uncertainty_ns <= 31_000, "{both:?}");
        assert!((both.offset_ns - 5_000_000).unsigned_abs() <= both.uncertainty_ns);
        assert_eq!((both.samples, both.consistent), (2, true));
    }

    #[test]
    fn clock_that_was_set_is_reported() {
        let mut estimator = OffsetEstimator::default();
        estimator.add(trip(0, 0, 20_000, 20_000));
        estimator.add(trip(1_000_000, 80_000_000, 10_000, 10_000));
        let estimate = estimator.estimate().expect("present");
        assert!(!estimate.consistent);
        assert!((estimate.offset_ns - 80_000_000).abs() < 20_000, "the newest counts");
    }

    proptest! {
        #[test]
        fn true_offset_is_always_within_the_bounds(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            delays in proptest::collection::vec((0i64..5_000_000, 0i64..5_000_000), 1..60),
            drift in -45e-6..45e-6,
        ) {
            let mut estimator = OffsetEstimator::default();
            let mut now = offset;
            for (number, (there, back)) in delays.iter().enumerate() {
                let at = number as i64 * 2_000_000_000;
                now = offset + drifted(at + there, drift);
                estimator.add(trip(at, now, *there, *back));
                now = offset + drifted(at + there + back, drift);
            }
            let estimate = estimator.estimate().expect("present");
            prop_assert!(estimate.consistent);
            prop_assert!((estimate.offset_ns - now).unsigned_abs() <= estimate.uncertainty_ns);
            let (there, back) = delays.last().expect("present");
            prop_assert!(estimate.uncertainty_ns <= (there + back) as u64 / 2 + 1_501);
        }
    }
}
