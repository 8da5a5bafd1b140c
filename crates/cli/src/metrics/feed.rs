//! Passes the phases and windows of a run to the metrics.

use crate::metrics::families;
use crate::metrics::family::Family;
use crate::metrics::totals::Totals;
use crate::metrics::window::recorded;
use dyno_engine::Observer;
use dyno_engine::observer::{Expectation, RunFacts};
use dyno_observe::watch::Board;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{PhaseRecord, RunStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The state behind the metrics; clones share it. The lock is held only to copy the state or to add a window, so that readers
/// do not delay a run.
#[derive(Clone, Default)]
pub(crate) struct Feed(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    totals: Totals,
    board: Option<Board>,
}

impl Feed {
    /// The current metrics.
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

impl Observer for Feed {
    fn run_started(&mut self, run: &RunFacts) {
        self.state().totals.begin(run.clone());
    }

    fn sources(&mut self, board: Option<&Board>) {
        self.state().board = board.cloned();
    }

    fn phase_started(&mut self, expected: &Expectation) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_s = since.map_or(0.0, |since| since.as_secs_f64());
        self.state().totals.begin_phase(expected.kind, now_s);
    }

    fn window(&mut self, window: &IntervalRecord) {
        self.state().totals.add(&recorded(window));
    }

    fn phase_ended(&mut self, _: &PhaseRecord) {
        self.state().totals.end_phase();
    }

    fn run_ended(&mut self, status: RunStatus) {
        self.state().totals.status = Some(status);
    }
}
