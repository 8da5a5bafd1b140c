//! Merges the windows of all agents into windows of the fleet.
//!
//! Histograms and counts are added by interval and server; intervals of agents are aligned by their instants on the clock of Redis.
//! An interval closes when every remaining agent has passed it on each of its servers, or when it is too far behind the newest. The
//! fleet's rate is measured in the common window: the intervals in which every agent measured throughout. Memory depends on the
//! open intervals and the number of agents and servers, not on the length of the run.

mod outcome;

use dyno_record::interval::IntervalRecord;
use dyno_record::model::PhaseKind;
use hdrhistogram::errors::AdditionError;
use outcome::skew;
pub use outcome::{AgentOutcome, CommonWindow, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Open intervals behind the newest one. A larger number waits longer for slow agents and takes more memory, about half a megabyte
/// for each operation and interval.
pub const DEFAULT_LAG: u64 = 10;
/// Smallest share of the interval that makes a full window.
const FULL_RATIO: f64 = 0.999;
/// Largest share of an interval by which an agent may begin late and still count for the whole interval, or windows may be shifted
/// and still be aligned. Threads of a busy machine wake up that late.
const LATE_RATIO: f64 = 0.01;

/// Beginning of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// Actual start after the common instant, in nanoseconds.
    pub late_ns: i64,
    /// Uncertainty of it, in nanoseconds.
    pub uncertainty_ns: u64,
    /// Origin of the agent's windows after the common instant, in nanoseconds.
    pub windows_from_ns: i64,
}

/// Options of a merge.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// Length of an interval.
    pub interval_ns: u64,
    /// See [`DEFAULT_LAG`].
    pub lag: u64,
    /// Numbers of the servers that each agent sends windows of. Other windows are ignored.
    pub servers: Vec<Vec<u32>>,
}

/// An interval of the fleet.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The sum of all windows.
    pub window: IntervalRecord,
    /// The sum for each server, by number.
    pub servers: BTreeMap<u32, IntervalRecord>,
    /// Whether every agent of the fleet took part throughout.
    pub is_common: bool,
}

#[derive(Debug, Default)]
struct AgentState {
    /// Newest window of each server.
    progress: BTreeMap<u32, Option<(PhaseKind, u64)>>,
    /// Servers without further windows.
    done: BTreeSet<u32>,
    /// Shift of its windows, in intervals.
    shift: i64,
    /// Actual beginning, and whether windows are aligned with the intervals; absent while unknown.
    began: Option<(i64, bool)>,
    /// Whether it sends no more windows.
    has_ended: bool,
    last_measured: Option<u64>,
    outcome: AgentOutcome,
}

/// An interval that may receive more windows.
#[derive(Debug, Default)]
struct Open {
    /// The sum for each server.
    servers: BTreeMap<u32, IntervalRecord>,
    /// Number of full windows.
    full: u32,
}

impl Open {
    fn add(&mut self, server: u32, window: IntervalRecord) -> Result<(), AdditionError> {
        match self.servers.get_mut(&server) {
            Some(sum) => sum.add_beside(window),
            None => {
                self.servers.insert(server, window);
                Ok(())
            }
        }
    }

    /// The sum over all servers; `None` without a window.
    fn sum(&self) -> Result<Option<IntervalRecord>, AdditionError> {
        let mut servers = self.servers.values();
        let mut sum = servers.next().cloned();
        for window in servers {
            if let Some(sum) = &mut sum {
                sum.add_beside(window.clone())?;
            }
        }
        Ok(sum)
    }
}

/// Merges the windows of a run.
#[derive(Debug)]
pub struct Merger {
    options: MergeOptions,
    agents: Vec<AgentState>,
    /// Number of windows in a complete interval.
    all_windows: u32,
    open: BTreeMap<(PhaseKind, u64), Open>,
    /// First open interval of each phase.
    closed_up_to: BTreeMap<PhaseKind, u64>,
    common: CommonWindow,
    measured_intervals: u64,
    late_windows: u64,
    missing_windows: u64,
}

impl Merger {
    /// Starts without windows.
    pub fn new(options: MergeOptions) -> Self {
        let agents = options.servers.iter().map(|servers| AgentState {
            progress: servers.iter().map(|server| (*server, None)).collect(),
            ..AgentState::default()
        });
        let agents: Vec<AgentState> = agents.collect();
        let windows = agents.iter().map(|state| state.progress.len() as u32);
        Merger {
            all_windows: windows.sum(),
            agents,
            options,
            open: BTreeMap::new(),
            closed_up_to: BTreeMap::new(),
            common: CommonWindow::default(),
            measured_intervals: 0,
            late_windows: 0,
            missing_windows: 0,
        }
    }

    /// Records the beginning of an agent, which aligns its later windows. Without it, the agent never counts for a whole interval.
    pub fn begun(&mut self, agent: u32, began: Began) {
        let interval_ns = self.options.interval_ns.max(1) as f64;
        let late_by = began.windows_from_ns as f64 / interval_ns;
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.shift = late_by.round() as i64;
            let is_aligned = (late_by - late_by.round()).abs() <= LATE_RATIO;
            state.began = Some((began.late_ns, is_aligned));
            state.outcome.start_late_ns = Some(began.late_ns);
            state.outcome.start_uncertainty_ns = Some(began.uncertainty_ns);
        }
    }

    /// Adds an agent's window on one server. Ignores unknown agents, and servers that the agent does not load.
    ///
    /// # Errors
    /// A histogram has values outside the common bounds.
    pub fn add(
        &mut self,
        agent: u32,
        server: u32,
        mut window: IntervalRecord,
    ) -> Result<(), AdditionError> {
        let Some(state) = self.agents.get_mut(agent as usize) else {
            return Ok(());
        };
        let is_first = state.progress.keys().next() == Some(&server);
        let Some(progress) = state.progress.get_mut(&server) else {
            return Ok(());
        };
        let interval_ns = self.options.interval_ns as f64;
        let latest_ns = window.start_ns as f64 + interval_ns * LATE_RATIO;
        let is_there = state
            .began
            .is_some_and(|(began_ns, is_aligned)| is_aligned && began_ns as f64 <= latest_ns);
        let slot = window.index.saturating_add_signed(state.shift);
        let place = (window.phase, slot);
        *progress = (*progress).max(Some(place));
        if window.phase == PhaseKind::Measure {
            state.outcome.succeeded += window.counts.succeeded;
            state.outcome.failed += window.counts.failed;
            // All servers of an agent have the same intervals.
            state.outcome.late_intervals += u64::from(!is_there && is_first);
            state.last_measured = state.last_measured.max(Some(slot));
        }
        let is_full = is_there && window.duration_ns as f64 >= interval_ns * FULL_RATIO;
        let open_from = self.closed_up_to.get(&window.phase).copied().unwrap_or(0);
        if slot < open_from {
            self.late_windows += 1;
            return Ok(());
        }
        window.index = slot;
        let open = self.open.entry(place).or_default();
        open.full += u32::from(is_full);
        open.add(server, window)
    }

    /// Records that an agent sends no more windows of a server.
    pub fn server_done(&mut self, agent: u32, server: u32) {
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.done.insert(server);
        }
    }

    /// Records that an agent ended in order.
    pub fn ended(&mut self, agent: u32) {
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.has_ended = true;
        }
    }

    /// Records that an agent will not continue; the first reason is kept.
    pub fn lost(&mut self, agent: u32, reason: &str) {
        if let Some(state) = self.agents.get_mut(agent as usize) {
            state.has_ended = true;
            state.outcome.lost.get_or_insert_with(|| reason.to_owned());
        }
    }

    /// Records lost messages of an agent.
    pub fn missing(&mut self, windows: u64) {
        self.missing_windows += windows;
    }

    /// Closes complete intervals, and returns them in order.
    ///
    /// # Errors
    /// See [`add`](Self::add).
    pub fn closed(&mut self) -> Result<Vec<Merged>, AdditionError> {
        let going = self.agents.iter().filter(|state| !state.has_ended);
        // `None` sorts first: an agent without windows keeps the first interval open.
        let passed = going.flat_map(|state| {
            let open = state.progress.iter().filter(|(server, _)| !state.done.contains(server));
            open.map(|(_, newest)| *newest)
        });
        let passed = passed.min();
        let newest = self.open.keys().next_back().copied();
        let mut closed = Vec::new();
        while let Some((&place, _)) = self.open.first_key_value() {
            // An agent's newest window completes its interval: it sends one for each interval and server.
            let all_passed = passed.is_none_or(|passed| passed >= Some(place));
            let too_old = newest.is_some_and(|(phase, slot)| {
                let behind = if phase > place.0 { slot + 1 } else { slot - place.1 };
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
        let Some(window) = open.sum()? else {
            return Ok(None);
        };
        let is_common = open.full == self.all_windows && open.full as usize >= self.agents.len();
        self.measured_intervals += u64::from(phase == PhaseKind::Measure);
        if is_common && phase == PhaseKind::Measure {
            let common = &mut self.common;
            common.last_interval = slot;
            if common.intervals == 0 {
                common.first_interval = slot;
            }
            common.intervals += 1;
            common.succeeded += window.counts.succeeded;
        }
        Ok(Some(Merged { window, servers: open.servers, is_common }))
    }

    /// Closes everything; returns the last intervals and the result.
    ///
    /// # Errors
    /// See [`add`](Self::add).
    pub fn finish(mut self) -> Result<(Vec<Merged>, Outcome), AdditionError> {
        let mut last = Vec::new();
        while !self.open.is_empty() {
            last.extend(self.close_first()?);
        }
        let seconds = self.common.intervals as f64 * self.options.interval_ns as f64 / 1e9;
        if seconds > 0.0 {
            self.common.rate_per_s = self.common.succeeded as f64 / seconds;
        }
        let end = self.agents.iter().filter_map(|state| state.last_measured).max();
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
            common: self.common,
            measured_intervals: self.measured_intervals,
            agents,
            start_skew_ns,
            start_skew_uncertainty_ns,
            late_windows: self.late_windows,
            missing_windows: self.missing_windows,
        };
        Ok((last, outcome))
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
