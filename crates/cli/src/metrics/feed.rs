//! Passes what a run does to the metrics.

use crate::metrics::families;
use crate::metrics::family::Family;
pub(crate) use crate::metrics::totals::RunFacts;
use crate::metrics::totals::Totals;
use crate::metrics::window::Window;
use crate::session::recorder::{Expectation, Watch};
use dyno_observe::watch::Board;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{PhaseRecord, RunStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The state behind the metrics; copies are the same state. It is held for the time of a copy or of one window only, so
/// that nobody who reads it holds up a run.
#[derive(Clone, Default)]
pub(crate) struct Feed(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    totals: Totals,
    board: Option<Board>,
}

impl Feed {
    /// A run begins.
    pub(crate) fn begin(&self, run: RunFacts) {
        self.state().totals.begin(run);
    }

    /// The run has ended in this way.
    pub(crate) fn end(&self, status: RunStatus) {
        self.state().totals.status = Some(status);
    }

    /// What the sources of the run tell from now on; `None` when they have ended.
    pub(crate) fn watch(&self, board: Option<Board>) {
        self.state().board = board;
    }

    /// All metrics as they are now.
    pub(crate) fn families(&self) -> Vec<Family> {
        let (totals, board) = {
            let state = self.state();
            (state.totals.clone(), state.board.clone())
        };
        let mut all = families::of_totals(&totals);
        if let Some(board) = board {
            all.extend(families::of_sources(&board.look()));
        }
        all
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for Feed {
    fn phase_started(&mut self, expected: &Expectation) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_s = since.map_or(0.0, |since| since.as_secs_f64());
        self.state().totals.begin_phase(expected.kind, now_s);
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        self.state().totals.add(&Window::from(interval));
    }

    fn phase_ended(&mut self, _: &PhaseRecord) {
        self.state().totals.end_phase();
    }
}

/// Nobody may have asked for metrics.
impl Watch for Option<Feed> {
    fn phase_started(&mut self, expected: &Expectation) {
        if let Some(feed) = self {
            feed.phase_started(expected);
        }
    }

    fn interval(&mut self, interval: &IntervalRecord) {
        if let Some(feed) = self {
            feed.interval(interval);
        }
    }

    fn phase_ended(&mut self, phase: &PhaseRecord) {
        if let Some(feed) = self {
            feed.phase_ended(phase);
        }
    }
}
