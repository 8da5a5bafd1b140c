//! The result of a fleet.

use dyno_record::model::PhaseRecord;

/// One agent in the result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOutcome {
    /// Operations of the measure phase that succeeded.
    pub succeeded: u64,
    /// Operations of the measure phase that failed.
    pub failed: u64,
    /// From the common instant to its real start, in nanoseconds; absent if it never began.
    pub start_late_ns: Option<i64>,
    /// How far that may be off, in nanoseconds.
    pub start_uncertainty_ns: Option<u64>,
    /// Intervals of the measure phase that it was not there for from their start on, as it began later.
    pub late_intervals: u64,
    /// Intervals of the measure phase by which it ended before the last agent.
    pub ended_early: u64,
    /// Why it did not go on to the end.
    pub lost: Option<String>,
}

/// Rates of a phase in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommonWindow {
    /// Its first interval.
    pub first_interval: u64,
    /// Its last interval.
    pub last_interval: u64,
    /// Its intervals. None if the agents were never all there.
    pub intervals: u64,
    /// Operations that succeeded in it.
    pub succeeded: u64,
    /// Operations that failed in it.
    pub failed: u64,
    /// Successes per second in it; 0 without an interval.
    pub rate_per_s: f64,
}

/// The result of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Phases with everything that arrived, in the order they ran.
    pub phases: Vec<PhaseRecord>,
    /// The common window of the measure phase.
    pub common: CommonWindow,
    /// All intervals of the measure phase.
    pub measured_intervals: u64,
    /// The agents.
    pub agents: Vec<AgentOutcome>,
    /// From the first start of an agent to the last, in nanoseconds.
    pub start_skew_ns: u64,
    /// How far that may be off, in nanoseconds.
    pub start_skew_uncertainty_ns: u64,
    /// Windows that came when their interval was closed; they are in the sums of the phases, and in no interval.
    pub late_windows: u64,
    /// Windows that are known to be missing.
    pub missing_windows: u64,
}

/// From the first start to the last, and how far it may be off.
pub(super) fn skew(agents: &[AgentOutcome]) -> (u64, u64) {
    let starts = agents.iter().filter_map(|agent| agent.start_late_ns);
    let (first, last) = (starts.clone().min(), starts.max());
    let uncertainty = |at: Option<i64>| {
        let agent = agents
            .iter()
            .find(|agent| agent.start_late_ns == at && at.is_some());
        agent
            .and_then(|agent| agent.start_uncertainty_ns)
            .unwrap_or(0)
    };
    match (first, last) {
        (Some(low), Some(high)) => (high.abs_diff(low), uncertainty(first) + uncertainty(last)),
        _ => (0, 0),
    }
}
