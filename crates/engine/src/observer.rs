//! What is told of work while it goes on: phases, windows, notices, and runs that are saved.

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

/// What a phase will do, for estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    /// Its purpose.
    pub kind: PhaseKind,
    /// Longest time.
    pub duration: Option<Duration>,
    /// Operations; documents in the load phase.
    pub operations: Option<u64>,
}

/// What is known of a run when it begins.
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
    /// When it began, in seconds since 1970.
    pub started_s: f64,
    /// Operations per second that are offered, of all servers together; absent in a closed loop.
    pub offered_rate_per_s: Option<f64>,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Good to know.
    Note,
    /// Something that the person should look at.
    Warning,
}

/// Something to tell a person while work goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// What it says; with the code of plain text, it is one sentence, lower case, without a full stop.
    pub statement: Statement,
}

impl Notice {
    /// One that is a sentence.
    pub fn of_text(level: Level, text: &str) -> Notice {
        let statement = Statement::recorded(text);
        Notice { level, statement }
    }
}

/// Is told what happens. All methods are called by a thread that does the work, and hold it up: they should be quick. What
/// an observer does not look at itself goes to those that it stands for, if there are some.
pub trait Observer: Send {
    /// Tells something to each observer that this one stands for, the first one first.
    fn pass_on(&mut self, _tell: &mut dyn FnMut(&mut dyn Observer)) {}

    /// A run begins.
    fn run_started(&mut self, run: &RunFacts) {
        self.pass_on(&mut |one| one.run_started(run));
    }
    /// What the sources of the run report can be read from `board` from now on; `None` once they have ended.
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
    /// The load of a run is over, and it ended in this way.
    fn run_ended(&mut self, status: RunStatus) {
        self.pass_on(&mut |one| one.run_ended(status));
    }
    /// The record of a run is complete, or that of one of its instances. This is the time to write reports beside it.
    ///
    /// # Errors
    /// What it returns ends the run with this error; its record is kept.
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        let mut result = Ok(());
        self.pass_on(&mut |one| {
            if result.is_ok() {
                result = one.run_saved(run);
            }
        });
        result
    }
    /// An experiment has ended, in whichever way, and its document is complete. This is the time to write reports
    /// beside it.
    ///
    /// # Errors
    /// What it returns is the error of the experiment, unless that has one; its record is kept.
    fn experiment_saved(&mut self, experiment: &Experiment, folder: &Path) -> Result<(), Error> {
        let mut result = Ok(());
        self.pass_on(&mut |one| {
            if result.is_ok() {
                result = one.experiment_saved(experiment, folder);
            }
        });
        result
    }
    /// Something to tell a person.
    fn notice(&mut self, notice: &Notice) {
        self.pass_on(&mut |one| one.notice(notice));
    }
}

/// Sees nothing.
impl Observer for () {}

/// Both observe, the first one first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn pass_on(&mut self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut self.0);
        tell(&mut self.1);
    }
}

/// Nobody may observe.
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

/// An observer that many parts of the engine tell in turn.
pub trait SharedObserver: Sync {
    /// Does something with the observer. Not to be called from within itself.
    fn with(&self, tell: &mut dyn FnMut(&mut dyn Observer));

    /// Tells a person what is good to know.
    fn note(&self, text: &str) {
        self.notice(Notice::of_text(Level::Note, text));
    }

    /// Tells a person what should be looked at.
    fn warning(&self, text: &str) {
        self.notice(Notice::of_text(Level::Warning, text));
    }

    /// Tells a person of a reason to doubt what is measured.
    fn caveat(&self, caveat: &Statement) {
        let (level, statement) = (Level::Warning, caveat.clone());
        self.notice(Notice { level, statement });
    }

    /// Tells a person something.
    fn notice(&self, notice: Notice) {
        self.with(&mut |observer| observer.notice(&notice));
    }
}

/// Nobody observes.
pub struct Unobserved;

impl SharedObserver for Unobserved {
    fn with(&self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut ());
    }
}

/// Makes an observer a shared one.
pub struct Shared<'a>(Mutex<&'a mut dyn Observer>);

impl<'a> Shared<'a> {
    /// Shares an observer as long as this lives.
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
