//! The time base of a run: nanoseconds since its origin on the monotonic clock.
//!
//! Every timestamp of the engine, of schedules and of the record is a `u64` from this clock, so
//! that they can be subtracted without asking where they came from.

use std::time::Instant;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Monotonic clock with a fixed origin; copies share the origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads 0 now.
    pub fn start() -> Self {
        Clock { origin: Instant::now() }
    }

    /// Seconds from the origin to `moment`; 0 if it was before.
    pub fn seconds_at(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.origin).as_secs_f64()
    }

    /// Nanoseconds since the origin. Wraps after 584 years.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}
