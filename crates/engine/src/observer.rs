//! Observers of work in progress: phases, windows, notices, and saved runs.

use crate::error::Error;
use dyno_observe::watch::Board;
use dyno_record::experiment::Experiment;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{PhaseKind, PhaseRecord, RunStatus};
use dyno_record::statement::Statement;
use dyno_results::AnalysedRun;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Expected extent of a phase, for estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    pub kind: PhaseKind,
    /// Longest time.
    pub duration: Option<Duration>,
    /// Operations; documents in the load phase.
    pub operations: Option<u64>,
}

/// Facts about a run at its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// Name of the plan.
    pub name: String,
    /// Version of this program.
    pub version: String,
    /// Kind of the server.
    pub server: String,
    /// Name of the run directory.
    pub directory: String,
    /// Start time, in seconds since 1970.
    pub started_s: f64,
    /// Offered operations per second of all servers together; absent in a closed loop.
    pub offered_rate_per_s: Option<f64>,
}

/// Importance of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A useful fact.
    Note,
    /// Something that needs attention.
    Warning,
}

/// A message for the user during the work.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub level: Level,
    /// The message. A plain text is one sentence, lower case, without a full stop.
    pub statement: Statement,
}

impl Notice {
    /// A notice with a plain sentence.
    pub fn of_text(level: Level, text: &str) -> Notice {
        let statement = Statement::recorded(text);
        Notice { level, statement }
    }
}

/// Receives the events of the work. The working thread calls all methods and waits for them, so
/// they should be quick. Default methods forward the event to the inner observers, if there are
/// any.
pub trait Observer: Send {
    /// Calls `_tell` with each inner observer, the first one first.
    fn pass_on(&mut self, _tell: &mut dyn FnMut(&mut dyn Observer)) {}

    /// A run begins.
    fn run_started(&mut self, run: &RunFacts) {
        self.pass_on(&mut |one| one.run_started(run));
    }
    /// The latest readings of the run's sources are on `board` from now on; `None` after their end.
    fn sources(&mut self, board: Option<&Board>) {
        self.pass_on(&mut |one| one.sources(board));
    }
    /// A phase begins.
    fn phase_started(&mut self, expected: &Expectation) {
        self.pass_on(&mut |one| one.phase_started(expected));
    }
    /// A recording window has ended.
    fn window(&mut self, window: &IntervalRecord) {
        self.pass_on(&mut |one| one.window(window));
    }
    /// A phase has ended.
    fn phase_ended(&mut self, phase: &PhaseRecord) {
        self.pass_on(&mut |one| one.phase_ended(phase));
    }
    /// The load of a run has ended with this status.
    fn run_ended(&mut self, status: RunStatus) {
        self.pass_on(&mut |one| one.run_ended(status));
    }
    /// The record of a run or of one of its instances is complete. Reports can now be written into
    /// its directory.
    ///
    /// # Errors
    /// The error ends the run; its record is kept.
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        let mut result = Ok(());
        self.pass_on(&mut |one| {
            if result.is_ok() {
                result = one.run_saved(run);
            }
        });
        result
    }
    /// An experiment has ended with any status, and its document is complete. Reports can now be
    /// written into its folder.
    ///
    /// # Errors
    /// The error of the experiment, unless it already has one; its record is kept.
    fn experiment_saved(&mut self, experiment: &Experiment, folder: &Path) -> Result<(), Error> {
        let mut result = Ok(());
        self.pass_on(&mut |one| {
            if result.is_ok() {
                result = one.experiment_saved(experiment, folder);
            }
        });
        result
    }
    /// A message for the user.
    fn notice(&mut self, notice: &Notice) {
        self.pass_on(&mut |one| one.notice(notice));
    }
}

/// Ignores all events.
impl Observer for () {}

/// Forwards to both, the first one first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn pass_on(&mut self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut self.0);
        tell(&mut self.1);
    }
}

/// Forwards if there is an observer.
impl<T: Observer> Observer for Option<T> {
    fn pass_on(&mut self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        self.iter_mut().for_each(|one| tell(one));
    }
}

impl<T: Observer> Observer for &mut T {
    fn pass_on(&mut self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut **self);
    }
}

/// An observer shared by several parts of the engine.
pub trait SharedObserver: Sync {
    /// Calls `tell` with the observer. Must not be nested.
    fn with(&self, tell: &mut dyn FnMut(&mut dyn Observer));

    /// Notifies the user of a useful fact.
    fn note(&self, text: &str) {
        self.notice(Notice::of_text(Level::Note, text));
    }

    /// Warns the user.
    fn warning(&self, text: &str) {
        self.notice(Notice::of_text(Level::Warning, text));
    }

    /// Shows the user a reason to doubt the results.
    fn caveat(&self, caveat: &Statement) {
        let (level, statement) = (Level::Warning, caveat.clone());
        self.notice(Notice { level, statement });
    }

    /// Shows the user a message.
    fn notice(&self, notice: Notice) {
        self.with(&mut |observer| observer.notice(&notice));
    }
}

/// No observer: ignores all events.
pub struct Unobserved;

impl SharedObserver for Unobserved {
    fn with(&self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut ());
    }
}

/// Shares an observer.
pub struct Shared<'a>(Mutex<&'a mut dyn Observer>);

impl<'a> Shared<'a> {
    /// Shares an observer as long as this exists.
    pub fn new(observer: &'a mut dyn Observer) -> Self {
        Shared(Mutex::new(observer))
    }
}

impl SharedObserver for Shared<'_> {
    fn with(&self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut **self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Observer for &dyn SharedObserver {
    fn pass_on(&mut self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        self.with(tell);
    }
}
