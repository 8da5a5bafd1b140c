//! The result of a fleet.

/// One agent in the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOutcome {
    /// Successful operations of the measure phase.
    pub succeeded: u64,
    /// Failed operations of the measure phase.
    pub failed: u64,
    /// Actual start after the common instant, in nanoseconds; absent if it never began.
    pub start_late_ns: Option<i64>,
    /// Uncertainty of it, in nanoseconds.
    pub start_uncertainty_ns: Option<u64>,
    /// Intervals of the measure phase that it missed fully or partly because it began late.
    pub late_intervals: u64,
    /// Intervals of the measure phase by which it ended before the last agent.
    pub ended_early: u64,
    /// Why it did not continue to the end.
    pub lost: Option<String>,
}

/// Rates of a phase in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommonWindow {
    pub first_interval: u64,
    pub last_interval: u64,
    /// Number of intervals; 0 if the agents never measured all together.
    pub intervals: u64,
    /// Successful operations.
    pub succeeded: u64,
    /// Successes per second; 0 without an interval.
    pub rate_per_s: f64,
}

/// The result of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The common window of the measure phase.
    pub common: CommonWindow,
    /// All intervals of the measure phase.
    pub measured_intervals: u64,
    pub agents: Vec<AgentOutcome>,
    /// Time between the first and the last start of an agent, in nanoseconds.
    pub start_skew_ns: u64,
    /// Uncertainty of it, in nanoseconds.
    pub start_skew_uncertainty_ns: u64,
    /// Windows that arrived after their interval was closed; counted only with their agent.
    pub late_windows: u64,
    /// Windows known to be missing.
    pub missing_windows: u64,
}

/// Time between the first and the last start, with its uncertainty.
pub(super) fn skew(agents: &[AgentOutcome]) -> (u64, u64) {
    let starts = agents.iter().filter_map(|agent| agent.start_late_ns);
    let (first, last) = (starts.clone().min(), starts.max());
    let uncertainty = |at: Option<i64>| {
        let agent = agents.iter().find(|agent| agent.start_late_ns == at && at.is_some());
        agent.and_then(|agent| agent.start_uncertainty_ns).unwrap_or(0)
    };
    match (first, last) {
        (Some(low), Some(high)) => (high.abs_diff(low), uncertainty(first) + uncertainty(last)),
        _ => (0, 0),
    }
}
