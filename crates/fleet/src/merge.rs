//! From the windows of all agents to the windows of the fleet.
//!
//! Histograms are added and counts summed per interval; intervals of agents are aligned by their instants on the clock of
//! Redis. An interval is closed when every agent that goes on has passed it, or when it is too far behind the newest. A
//! rate of the fleet is that of the common window: the intervals in which every agent of the fleet measured for the whole
//! interval. Memory depends on the open intervals and the number of agents, not on the length of the run.

use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::{FinePart, IntervalRecord, OperationInterval};
use dyno_record::model::{PhaseKind, PhaseRecord};
use hdrhistogram::errors::AdditionError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Open intervals behind the newest one. More wait longer for a slow agent and take more memory, about half a megabyte
/// for each operation and interval.
pub const DEFAULT_LAG: u64 = 10;
/// A window is a full one from this share of the interval on.
const FULL_RATIO: f64 = 0.999;

/// How the windows of a fleet are merged.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// Length of an interval.
    pub interval_ns: u64,
    /// See [`DEFAULT_LAG`].
    pub lag: u64,
    /// Offered rate of the fleet; absent in a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Host and share of each agent, by their numbers.
    pub agents: Vec<(String, String)>,
}

/// An interval of the fleet.
#[derive(Clone, Debug)]
pub struct Merged {
    /// All windows of it together.
    pub window: IntervalRecord,
    /// Agents that are in it.
    pub agents: u32,
    /// Whether every agent of the fleet was in it for the whole interval.
    pub is_common: bool,
}

/// One agent in the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentOutcome {
    /// Number.
    pub agent: u32,
    /// Its host.
    pub host: String,
    /// What its share was.
    pub share: String,
    /// Operations of the measure phase that succeeded.
    pub succeeded: u64,
    /// Operations of the measure phase that failed.
    pub failed: u64,
    /// Windows of all phases.
    pub windows: u64,
    /// From the common instant to its real start, in nanoseconds; absent if it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_late_ns: Option<i64>,
    /// How far that may be off, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_uncertainty_ns: Option<u64>,
    /// Intervals of the measure phase by which it ended before the last agent.
    pub ended_early: u64,
    /// Why it did not go on to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// Rates of a phase in the common window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommonWindow {
    /// Its first interval.
    pub first_interval: u64,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Phases with everything that arrived, in the order they ran.
    pub phases: Vec<PhaseRecord>,
    /// The common window of the measure phase.
    pub common: CommonWindow,
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

#[derive(Debug)]
struct AgentState {
    /// Its newest window.
    progress: Option<(PhaseKind, u64)>,
    /// Intervals that its windows are moved by.
    shift: i64,
    /// It sends no more windows.
    has_ended: bool,
    last_measured: Option<u64>,
    outcome: AgentOutcome,
}

#[derive(Debug)]
struct Open {
    window: IntervalRecord,
    agents: u32,
    full: u32,
}

/// Merges the windows of a run.
#[derive(Debug)]
pub struct Merger {
    options: MergeOptions,
    agents: Vec<AgentState>,
    open: BTreeMap<(PhaseKind, u64), Open>,
    /// First interval of each phase that is still open.
    closed_up_to: BTreeMap<PhaseKind, u64>,
    phases: BTreeMap<PhaseKind, PhaseAccumulator>,
    common: CommonWindow,
    late_windows: u64,
    missing_windows: u64,
}

impl Merger {
    /// Nothing yet.
    pub fn new(options: MergeOptions) -> Self {
        let agent = |(number, (host, share)): (usize, &(String, String))| AgentState {
            progress: None,
            shift: 0,
            has_ended: false,
            last_measured: None,
            outcome: AgentOutcome {
                agent: number as u32,
                host: host.clone(),
                share: share.clone(),
                succeeded: 0,
                failed: 0,
                windows: 0,
                start_late_ns: None,
                start_uncertainty_ns: None,
                ended_early: 0,
                lost: None,
            },
        };
        Merger {
            agents: options.agents.iter().enumerate().map(agent).collect(),
            options,
            open: BTreeMap::new(),
            closed_up_to: BTreeMap::new(),
            phases: BTreeMap::new(),
            common: CommonWindow::default(),
            late_windows: 0,
            missing_windows: 0,
        }
    }

    /// An agent began this long after the common instant. Windows that come after this are aligned by it.
    pub fn begun(&mut self, agent: u32, late_ns: i64, uncertainty_ns: u64) {
        let interval_ns = self.options.interval_ns.max(1) as f64;
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.shift = (late_ns as f64 / interval_ns).round() as i64;
            state.outcome.start_late_ns = Some(late_ns);
            state.outcome.start_uncertainty_ns = Some(uncertainty_ns);
        }
    }

    /// Adds a window of an agent. An agent that is not known is left out.
    ///
    /// # Errors
    /// A histogram has values outside of the bounds of all.
    pub fn add(&mut self, agent: u32, window: IntervalRecord) -> Result<(), AdditionError> {
        let Some(state) = self.agents.get_mut(agent as usize) else {
            return Ok(());
        };
        let slot = window.index.saturating_add_signed(state.shift);
        let place = (window.phase, slot);
        state.progress = state.progress.max(Some(place));
        state.outcome.windows += 1;
        if window.phase == PhaseKind::Measure {
            state.outcome.succeeded += window.succeeded;
            state.outcome.failed += window.failed;
            state.last_measured = state.last_measured.max(Some(slot));
        }
        let is_full = window.duration_ns as f64 >= self.options.interval_ns as f64 * FULL_RATIO;
        let open_from = self.closed_up_to.get(&window.phase).copied().unwrap_or(0);
        if slot < open_from {
            self.late_windows += 1;
            return self.total(&window);
        }
        match self.open.get_mut(&place) {
            Some(open) => {
                add_beside(&mut open.window, window)?;
                open.agents += 1;
                open.full += u32::from(is_full);
            }
            None => {
                let mut window = window;
                window.index = slot;
                let open = Open {
                    window,
                    agents: 1,
                    full: u32::from(is_full),
                };
                self.open.insert(place, open);
            }
        }
        Ok(())
    }

    /// An agent sends no more windows, in order.
    pub fn ended(&mut self, agent: u32) {
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.has_ended = true;
        }
    }

    /// An agent will not go on; the first reason is kept.
    pub fn lost(&mut self, agent: u32, reason: &str) {
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.has_ended = true;
            state.outcome.lost.get_or_insert_with(|| reason.to_owned());
        }
    }

    /// Messages of an agent never came.
    pub fn missing(&mut self, windows: u64) {
        self.missing_windows += windows;
    }

    /// Closes the intervals that nobody adds to any more, and gives them in their order.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn closed(&mut self) -> Result<Vec<Merged>, AdditionError> {
        let going = self.agents.iter().filter(|state| !state.has_ended);
        // `None` comes first: an agent that has sent nothing keeps the first interval open.
        let passed = going.map(|state| state.progress).min();
        let newest = self.open.keys().next_back().copied();
        let mut closed = Vec::new();
        while let Some((&place, _)) = self.open.first_key_value() {
            // The interval of the newest window of an agent is complete: it sends one for each.
            let all_passed = passed.is_none_or(|passed| passed >= Some(place));
            let too_old = newest.is_some_and(|(phase, slot)| {
                let behind = match phase > place.0 {
                    true => slot + 1,
                    false => slot - place.1,
                };
                behind >= self.options.lag
            });
            if !(all_passed || too_old) {
                break;
            }
            closed.extend(self.close_first()?);
        }
        Ok(closed)
    }

    fn close_first(&mut self) -> Result<Option<Merged>, AdditionError> {
        let Some(((phase, slot), open)) = self.open.pop_first() else {
            return Ok(None);
        };
        self.closed_up_to.insert(phase, slot + 1);
        self.total(&open.window)?;
        let is_common = open.full as usize == self.agents.len();
        if is_common && phase == PhaseKind::Measure {
            let common = &mut self.common;
            if common.intervals == 0 {
                common.first_interval = slot;
            }
            common.intervals += 1;
            common.succeeded += open.window.succeeded;
            common.failed += open.window.failed;
        }
        Ok(Some(Merged {
            window: open.window,
            agents: open.agents,
            is_common,
        }))
    }

    fn total(&mut self, window: &IntervalRecord) -> Result<(), AdditionError> {
        let offered = self.options.offered_rate_per_s;
        let offered = offered.filter(|_| window.phase != PhaseKind::Load);
        let phase = window.phase;
        let totals = self.phases.entry(phase);
        totals
            .or_insert_with(|| PhaseAccumulator::new(phase, offered))
            .add(window)
    }

    /// Closes everything; the last intervals and the result.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn finish(mut self) -> Result<(Vec<Merged>, Outcome), AdditionError> {
        let mut last = Vec::new();
        while !self.open.is_empty() {
            last.extend(self.close_first()?);
        }
        let seconds = self.common.intervals as f64 * self.options.interval_ns as f64 / 1e9;
        if seconds > 0.0 {
            self.common.rate_per_s = self.common.succeeded as f64 / seconds;
        }
        let end = self
            .agents
            .iter()
            .filter_map(|state| state.last_measured)
            .max();
        for state in &mut self.agents {
            state.outcome.ended_early = match (end, state.last_measured) {
                (Some(end), Some(last)) => end - last,
                (Some(end), None) => end + 1,
                (None, _) => 0,
            };
        }
        let agents: Vec<AgentOutcome> =
            self.agents.into_iter().map(|state| state.outcome).collect();
        let (start_skew_ns, start_skew_uncertainty_ns) = skew(&agents);
        let outcome = Outcome {
            phases: self
                .phases
                .values()
                .map(PhaseAccumulator::to_record)
                .collect(),
            common: self.common,
            agents,
            start_skew_ns,
            start_skew_uncertainty_ns,
            late_windows: self.late_windows,
            missing_windows: self.missing_windows,
        };
        Ok((last, outcome))
    }

    /// Open intervals, for those who watch the memory.
    pub fn open_intervals(&self) -> usize {
        self.open.len()
    }
}

impl Outcome {
    /// Reasons to doubt the result, one sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        for agent in &self.agents {
            let AgentOutcome {
                agent: number,
                host,
                share,
                ..
            } = agent;
            if let Some(reason) = &agent.lost {
                doubts.push(format!(
                    "agent {number} on `{host}` was lost with its share of {share}: {reason}"
                ));
            } else if agent.ended_early > 1 {
                doubts.push(format!(
                    "agent {number} on `{host}` ended {} intervals before the last one",
                    agent.ended_early
                ));
            }
        }
        if self.missing_windows > 0 {
            doubts.push(format!(
                "{} messages of agents are missing",
                self.missing_windows
            ));
        }
        if self.late_windows > 0 {
            doubts.push(format!(
                "{} windows came too late for their interval; they are in the sums alone",
                self.late_windows
            ));
        }
        let hosts: BTreeSet<&str> = self
            .agents
            .iter()
            .map(|agent| agent.host.as_str())
            .collect();
        if self.common.intervals == 0 && !hosts.is_empty() {
            doubts.push("there is no interval in which all agents measured".into());
        }
        doubts
    }
}

/// From the first start to the last, and how far it may be off.
fn skew(agents: &[AgentOutcome]) -> (u64, u64) {
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

/// Adds a window of the same interval.
fn add_beside(sum: &mut IntervalRecord, more: IntervalRecord) -> Result<(), AdditionError> {
    sum.start_ns = sum.start_ns.min(more.start_ns);
    sum.duration_ns = sum.duration_ns.max(more.duration_ns);
    for operation in more.operations {
        match sum
            .operations
            .iter_mut()
            .find(|known| known.name == operation.name)
        {
            Some(known) => add_operation(known, &operation)?,
            None => sum.operations.push(operation),
        }
    }
    for error in more.errors {
        let mut known = sum.errors.iter_mut();
        match known.find(|known| known.operation == error.operation && known.kind == error.kind) {
            Some(known) => known.count += error.count,
            None => sum.errors.push(error),
        }
    }
    sum.succeeded += more.succeeded;
    sum.failed += more.failed;
    sum.busy_ns += more.busy_ns;
    sum.in_flight_ns += more.in_flight_ns;
    sum.arrivals_due += more.arrivals_due;
    sum.arrivals_started += more.arrivals_started;
    sum.arrivals_dropped += more.arrivals_dropped;
    sum.arrivals_late += more.arrivals_late;
    sum.reconnects += more.reconnects;
    sum.cpu_user_ns += more.cpu_user_ns;
    sum.cpu_system_ns += more.cpu_system_ns;
    // Of all processes together, so the sum.
    sum.max_rss_bytes += more.max_rss_bytes;
    if sum.fine.len() < more.fine.len() {
        sum.fine.resize(more.fine.len(), FinePart::default());
    }
    for (part, more) in sum.fine.iter_mut().zip(&more.fine) {
        part.ended += more.ended;
        part.response_sum_ns += more.response_sum_ns;
    }
    Ok(())
}

fn add_operation(
    sum: &mut OperationInterval,
    more: &OperationInterval,
) -> Result<(), AdditionError> {
    sum.response.add(&more.response)?;
    sum.service.add(&more.service)?;
    sum.start_delay.add(&more.start_delay)?;
    sum.response_sum_ns += more.response_sum_ns;
    sum.service_sum_ns += more.service_sum_ns;
    sum.start_delay_sum_ns += more.start_delay_sum_ns;
    sum.documents += more.documents;
    sum.errors += more.errors;
    sum.clamped += more.clamped;
    Ok(())
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
