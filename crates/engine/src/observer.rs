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

/// Is told what happens. All methods are called by a thread that does the work, and hold it up: they should be quick.
pub trait Observer: Send {
    /// A run begins.
    fn run_started(&mut self, _run: &RunFacts) {}
    /// What the sources of the run report can be read from `board` from now on; `None` once they have ended.
    fn sources(&mut self, _board: Option<&Board>) {}
    /// A phase begins.
    fn phase_started(&mut self, _expected: &Expectation) {}
    /// A recording window has ended.
    fn window(&mut self, _window: &IntervalRecord) {}
    /// A phase has ended.
    fn phase_ended(&mut self, _phase: &PhaseRecord) {}
    /// The load of a run is over, and it ended in this way.
    fn run_ended(&mut self, _status: RunStatus) {}
    /// The record of a run is complete, or that of one of its instances. This is the time to write reports beside it.
    ///
    /// # Errors
    /// What it returns ends the run with this error; its record is kept.
    fn run_saved(&mut self, _run: &AnalysedRun) -> Result<(), Error> {
        Ok(())
    }
    /// An experiment has ended, in whichever way, and its document is complete. This is the time to write reports
    /// beside it.
    ///
    /// # Errors
    /// What it returns is the error of the experiment, unless that has one; its record is kept.
    fn experiment_saved(&mut self, _experiment: &Experiment, _folder: &Path) -> Result<(), Error> {
        Ok(())
    }
    /// Something to tell a person.
    fn notice(&mut self, _notice: &Notice) {}
}

/// Sees nothing.
impl Observer for () {}

/// Both observe, the first one first.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn run_started(&mut self, run: &RunFacts) {
        self.0.run_started(run);
        self.1.run_started(run);
    }
    fn sources(&mut self, board: Option<&Board>) {
        self.0.sources(board);
        self.1.sources(board);
    }
    fn phase_started(&mut self, expected: &Expectation) {
        self.0.phase_started(expected);
        self.1.phase_started(expected);
    }
    fn window(&mut self, window: &IntervalRecord) {
        self.0.window(window);
        self.1.window(window);
    }
    fn phase_ended(&mut self, phase: &PhaseRecord) {
        self.0.phase_ended(phase);
        self.1.phase_ended(phase);
    }
    fn run_ended(&mut self, status: RunStatus) {
        self.0.run_ended(status);
        self.1.run_ended(status);
    }
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        self.0.run_saved(run)?;
        self.1.run_saved(run)
    }
    fn experiment_saved(&mut self, experiment: &Experiment, folder: &Path) -> Result<(), Error> {
        self.0.experiment_saved(experiment, folder)?;
        self.1.experiment_saved(experiment, folder)
    }
    fn notice(&mut self, notice: &Notice) {
        self.0.notice(notice);
        self.1.notice(notice);
    }
}

/// Nobody may observe.
impl<T: Observer> Observer for Option<T> {
    fn run_started(&mut self, run: &RunFacts) {
        self.iter_mut().for_each(|one| one.run_started(run));
    }
    fn sources(&mut self, board: Option<&Board>) {
        self.iter_mut().for_each(|one| one.sources(board));
    }
    fn phase_started(&mut self, expected: &Expectation) {
        self.iter_mut().for_each(|one| one.phase_started(expected));
    }
    fn window(&mut self, window: &IntervalRecord) {
        self.iter_mut().for_each(|one| one.window(window));
    }
    fn phase_ended(&mut self, phase: &PhaseRecord) {
        self.iter_mut().for_each(|one| one.phase_ended(phase));
    }
    fn run_ended(&mut self, status: RunStatus) {
        self.iter_mut().for_each(|one| one.run_ended(status));
    }
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        self.iter_mut().try_for_each(|one| one.run_saved(run))
    }
    fn experiment_saved(&mut self, experiment: &Experiment, folder: &Path) -> Result<(), Error> {
        self.iter_mut()
            .try_for_each(|one| one.experiment_saved(experiment, folder))
    }
    fn notice(&mut self, notice: &Notice) {
        self.iter_mut().for_each(|one| one.notice(notice));
    }
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn run_started(&mut self, run: &RunFacts) {
        (**self).run_started(run);
    }
    fn sources(&mut self, board: Option<&Board>) {
        (**self).sources(board);
    }
    fn phase_started(&mut self, expected: &Expectation) {
        (**self).phase_started(expected);
    }
    fn window(&mut self, window: &IntervalRecord) {
        (**self).window(window);
    }
    fn phase_ended(&mut self, phase: &PhaseRecord) {
        (**self).phase_ended(phase);
    }
    fn run_ended(&mut self, status: RunStatus) {
        (**self).run_ended(status);
    }
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        (**self).run_saved(run)
    }
    fn experiment_saved(&mut self, experiment: &Experiment, folder: &Path) -> Result<(), Error> {
        (**self).experiment_saved(experiment, folder)
    }
    fn notice(&mut self, notice: &Notice) {
        (**self).notice(notice);
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
    fn doubt(&self, doubt: &Statement) {
        let (level, statement) = (Level::Warning, doubt.clone());
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
    fn run_started(&mut self, run: &RunFacts) {
        self.with(&mut |observer| observer.run_started(run));
    }
    fn sources(&mut self, board: Option<&Board>) {
        self.with(&mut |observer| observer.sources(board));
    }
    fn phase_started(&mut self, expected: &Expectation) {
        self.with(&mut |observer| observer.phase_started(expected));
    }
    fn window(&mut self, window: &IntervalRecord) {
        self.with(&mut |observer| observer.window(window));
    }
    fn phase_ended(&mut self, phase: &PhaseRecord) {
        self.with(&mut |observer| observer.phase_ended(phase));
    }
    fn run_ended(&mut self, status: RunStatus) {
        self.with(&mut |observer| observer.run_ended(status));
    }
    fn run_saved(&mut self, run: &AnalysedRun) -> Result<(), Error> {
        let mut result = Ok(());
        self.with(&mut |observer| result = observer.run_saved(run));
        result
    }
    fn experiment_saved(&mut self, experiment: &Experiment, folder: &Path) -> Result<(), Error> {
        let mut result = Ok(());
        self.with(&mut |observer| result = observer.experiment_saved(experiment, folder));
        result
    }
    fn notice(&mut self, notice: &Notice) {
        self.with(&mut |observer| observer.notice(notice));
    }
}
