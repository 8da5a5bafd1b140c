//! Options and result of a run.

use crate::cancel::Cancel;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::Error;
use crate::load_source::LoadSource;
use crate::observer::SharedObserver;
use crate::run::guard::Guard;
use crate::run::limits::WindowLimits;
use dyno_load::job::RetryRule;
use dyno_record::model::RunDocument;
use dyno_results::AnalysedRun;
use std::path::PathBuf;

/// Phases to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Load the missing documents, warm up, measure.
    #[default]
    Whole,
    /// Load only.
    Load,
    /// Load the documents of this client whatever exists, as YCSB does.
    BlindLoad,
    /// Measure whatever exists, as YCSB does.
    BlindMix,
}

/// Options of a run, or of all runs of an experiment, that are not in their plans. Index builds and
/// messages use only the environment, the embedded server and the folder.
#[derive(Clone, Default)]
pub struct RunOptions<'a> {
    pub environment: Environment,
    pub extent: Extent,
    /// Load nothing, and refuse a collection that lacks documents.
    pub no_load: bool,
    /// Drop the collection first.
    pub fresh: bool,
    /// Drop it even if it holds documents that neither this program nor YCSB has written.
    pub drop_foreign: bool,
    /// When failed inserts of the load phase are sent again.
    pub retry: RetryRule,
    /// End the load phase with the first insert that finally fails.
    pub abort_load: bool,
    /// The run directory, or the folder of the experiment. Default: a new one below `runs` or
    /// `experiments`.
    pub out: Option<PathBuf>,
    /// Path of the embedded server, if it was given.
    pub embedded_server: Option<PathBuf>,
    /// Result of the last selfcheck.
    pub selfcheck: Option<serde_json::Value>,
    /// Makes long runs safe without supervision.
    pub guard: Option<Guard>,
    /// End a harmful run early.
    pub limits: Option<WindowLimits>,
    /// Refuses unsuitable servers and machines, before anything is loaded.
    pub check: Option<CheckRun<'a>>,
    /// Source of the load, if not this process.
    pub source: Option<&'a dyn LoadSource>,
}

impl RunOptions<'_> {
    /// Context of the work.
    pub fn context<'a>(
        &'a self,
        observer: &'a dyn SharedObserver,
        cancel: &'a Cancel,
    ) -> Context<'a> {
        Context { environment: &self.environment, cancel, observer, source: self.source }
    }
}

/// Refuses a run by the facts about its servers and machine.
pub type CheckRun<'a> = &'a dyn Fn(&RunDocument) -> Result<(), Error>;

/// A saved run.
pub struct Finished {
    /// The record and its analysis.
    pub results: AnalysedRun,
    /// Operations of the last phase that was meant to be the result.
    pub totals: Totals,
    /// Whether it was cancelled.
    pub interrupted: bool,
    /// Why it ended early, other than by a cancellation.
    pub fault: Option<Error>,
}

/// Logical operations of the measure phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub succeeded: u64,
    pub failed: u64,
}

impl Totals {
    /// Share of the operations that failed; 0 without operations.
    pub fn failed_ratio(self) -> f64 {
        let finished = self.succeeded + self.failed;
        if finished == 0 { 0.0 } else { self.failed as f64 / finished as f64 }
    }
}
