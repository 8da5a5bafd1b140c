//! What was measured in one recording window, before it is written.

use crate::model::PhaseKind;
use hdrhistogram::Histogram;

/// Smallest value that the latency histograms tell apart from 0, in nanoseconds.
pub const LOWEST_NS: u64 = 1_000;
/// Largest value of the latency histograms, in nanoseconds: 60 s. Larger ones are recorded as this and counted as clamped.
pub const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant digits of the latency histograms.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// An empty histogram with the bounds that all latency histograms share. It takes 147 kB.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
        .expect("the bounds are constants that a histogram accepts")
}

/// One recording window of one phase, merged over all workers.
#[derive(Clone, Debug)]
pub struct IntervalRecord {
    /// Phase that the window belongs to.
    pub phase: PhaseKind,
    /// Number of the window in its phase, from 0.
    pub index: u64,
    /// Start, in nanoseconds from the start of the run.
    pub start_ns: u64,
    /// Length in nanoseconds; the last window of a phase is usually not a full one.
    pub duration_ns: u64,
    /// Per operation; operations that did nothing in the window may be absent.
    pub operations: Vec<OperationInterval>,
    /// Failures.
    pub errors: Vec<ErrorCount>,
    /// Logical operations that ended successfully (a read-modify-write once).
    pub succeeded: u64,
    /// Logical operations that failed.
    pub failed: u64,
    /// Sum of the service times of all logical operations that ended, failures included, in nanoseconds.
    pub busy_ns: u128,
    /// Integral of the number of operations in flight over the window, in operation-nanoseconds.
    pub in_flight_ns: u128,
    /// Open loop: arrivals that became due.
    pub arrivals_due: u64,
    /// Open loop: arrivals that were started.
    pub arrivals_started: u64,
    /// Open loop: arrivals that were dropped.
    pub arrivals_dropped: u64,
    /// Open loop: started arrivals that were more than 1 ms late.
    pub arrivals_late: u64,
    /// Connections replaced.
    pub reconnects: u64,
    /// User CPU time of the process in the window.
    pub cpu_user_ns: u64,
    /// System CPU time of the process in the window.
    pub cpu_system_ns: u64,
    /// Largest resident set of the process so far.
    pub max_rss_bytes: u64,
}

/// One operation in one recording window.
#[derive(Clone, Debug)]
pub struct OperationInterval {
    /// Name, `[a-z_]+`.
    pub name: &'static str,
    /// From intended start to end, in nanoseconds, successes only.
    pub response: Histogram<u64>,
    /// From send to end, in nanoseconds, successes only.
    pub service: Histogram<u64>,
    /// From intended start to send, in nanoseconds, successes only.
    pub start_delay: Histogram<u64>,
    /// Exact sums of the three, in nanoseconds.
    pub response_sum_ns: u128,
    /// See `response_sum_ns`.
    pub service_sum_ns: u128,
    /// See `response_sum_ns`.
    pub start_delay_sum_ns: u128,
    /// Documents returned or written.
    pub documents: u64,
    /// Failures.
    pub errors: u64,
    /// Values above [`HIGHEST_NS`].
    pub clamped: u64,
}

/// Failures of one kind in one recording window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// Operation name.
    pub operation: &'static str,
    /// Kind: `timeout`, `disconnected`, `protocol`, `not_found`, `server_11000`, …
    pub kind: String,
    /// How many.
    pub count: u64,
}
