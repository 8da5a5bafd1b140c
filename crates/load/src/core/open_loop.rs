//! The arrivals of an open loop: the next start, and the due arrivals.

use crate::schedule::{Arrivals, Share};
use dyno_plan::model::Schedule;

/// A second pass over the schedule, which counts arrivals in the window in which they become due instead of the window
/// in which a client becomes free.
pub(super) struct DueCounter {
    pub(super) arrivals: Arrivals,
    /// Arrivals from here on do not count, because the run was stopped.
    pub(super) until_ns: u64,
}

impl DueCounter {
    pub(super) fn new(arrivals: Arrivals) -> Self {
        DueCounter { arrivals, until_ns: u64::MAX }
    }
}

/// The next arrival to start.
pub(super) struct OpenLoop {
    pub(super) arrivals: Arrivals,
    /// Phase of the next arrival.
    pub(super) phase: usize,
    pub(super) max_start_delay_ns: u64,
    schedule: Schedule,
    share: Share,
    seed: u64,
}

impl OpenLoop {
    /// Starts with the first phase; `None` for a closed loop.
    pub(super) fn new(schedule: &Schedule, start_ns: u64, share: Share, seed: u64) -> Option<Self> {
        let max_start_delay = schedule.max_start_delay()?;
        Some(OpenLoop {
            arrivals: arrivals(schedule, start_ns, share, seed, 0)?,
            phase: 0,
            max_start_delay_ns: u64::try_from(max_start_delay.0.as_nanos()).unwrap_or(u64::MAX),
            schedule: schedule.clone(),
            share,
            seed,
        })
    }

    /// Moves to the arrivals of the next phase.
    pub(super) fn enter(&mut self, phase: usize, start_ns: u64) {
        self.phase = phase;
        self.arrivals = self.arrivals_of(phase, start_ns);
    }

    /// All arrivals of a phase.
    pub(super) fn arrivals_of(&self, phase: usize, start_ns: u64) -> Arrivals {
        arrivals(&self.schedule, start_ns, self.share, self.seed, phase)
            .expect("only a closed loop has no arrivals")
    }
}

fn arrivals(
    schedule: &Schedule,
    base_ns: u64,
    share: Share,
    seed: u64,
    phase: usize,
) -> Option<Arrivals> {
    match *schedule {
        Schedule::Constant { rate_per_s, .. } => {
            Some(Arrivals::constant(rate_per_s, base_ns, share))
        }
        Schedule::Poisson { rate_per_s, .. } => {
            let seed = seed.wrapping_add(phase as u64);
            Some(Arrivals::poisson(rate_per_s, base_ns, share, seed))
        }
        Schedule::Closed {} | Schedule::Throttled { .. } => None,
    }
}
