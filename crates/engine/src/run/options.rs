//! How a run is done, and what is there when it is over.

use crate::environment::Environment;
use crate::error::Error;
use crate::load_source::LoadSource;
use crate::run::guard::Guard;
use crate::run::limits::WindowLimits;
use dyno_load::job::RetryRule;
use dyno_record::model::RunDocument;
use dyno_results::AnalysedRun;
use std::path::PathBuf;

/// Which phases are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Load what is missing, warm up, measure.
    #[default]
    Whole,
    /// Load only.
    Load,
    /// Load the documents of this client whatever is there, as YCSB does.
    BlindLoad,
    /// Measure whatever is there, as YCSB does.
    BlindMix,
}

/// How a run is done, besides what its plan says.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// The place that it is done in.
    pub environment: Environment,
    /// Which phases are run.
    pub extent: Extent,
    /// Load nothing, and refuse a collection that lacks documents.
    pub no_load: bool,
    /// Drop the collection first.
    pub fresh: bool,
    /// Drop it also if it holds documents that neither this program nor YCSB has written.
    pub drop_foreign: bool,
    /// When failed inserts of the load phase are sent again.
    pub retry: RetryRule,
    /// End the load phase with the first insert that finally fails.
    pub abort_load: bool,
    /// The run directory; a new one below `runs` if none is named.
    pub out: Option<PathBuf>,
    /// Path of the embedded server, if it is named.
    pub embedded_server: Option<PathBuf>,
    /// Result of the last selfcheck.
    pub selfcheck: Option<serde_json::Value>,
    /// What makes a long run safe to leave alone.
    pub guard: Option<Guard>,
    /// What ends it early, because what is tried does harm.
    pub limits: Option<WindowLimits>,
    /// Refuses servers and a machine that the run must not have, before anything is loaded.
    pub check: Option<CheckRun<'a>>,
    /// Where the load comes from, if not from this process.
    pub source: Option<&'a dyn LoadSource>,
}

/// Refuses a run by what is known of its servers and machine.
pub type CheckRun<'a> = &'a dyn Fn(&RunDocument) -> Result<(), Error>;

/// A run that is saved.
pub struct Finished {
    /// The record, and what the run means.
    pub results: AnalysedRun,
    /// Operations of the last phase that was meant to be the result.
    pub totals: Totals,
    /// Whether it was cancelled.
    pub interrupted: bool,
    /// What ended it early, other than a cancellation.
    pub fault: Option<Error>,
}

/// Logical operations of the measure phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Operations that failed.
    pub failed: u64,
}

impl Totals {
    /// Share of the operations that failed; 0 without operations.
    pub fn failed_ratio(self) -> f64 {
        let finished = self.succeeded + self.failed;
        if finished == 0 {
            0.0
        } else {
            self.failed as f64 / finished as f64
        }
    }
}
