//! Common parts of experiments with their own kind of document, such as index builds and messages.

use crate::cancel::Cancel;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::observer::SharedObserver;
use dyno_record::model::RunStatus;
use std::path::PathBuf;

/// Options of such an experiment that are not in its plan.
#[derive(Clone, Debug, Default)]
pub struct StandaloneOptions {
    pub environment: Environment,
    /// Path of the embedded server, if it was given.
    pub embedded_server: Option<PathBuf>,
    /// Folder of the experiment. Default: a new one below `experiments`.
    pub out: Option<PathBuf>,
}

impl StandaloneOptions {
    /// Context of its work.
    pub fn context<'a>(
        &'a self,
        observer: &'a dyn SharedObserver,
        cancel: &'a Cancel,
    ) -> Context<'a> {
        Context { environment: &self.environment, cancel, observer, source: None }
    }
}

/// Such an experiment with a written document.
#[derive(Debug)]
pub struct FinishedStandalone {
    pub folder: PathBuf,
    /// Why it ended early or is incorrect, if so.
    pub fault: Option<Error>,
}

/// Status of its end, and the reason if it ended early.
pub fn status(fault: Option<&Error>) -> (RunStatus, Option<String>) {
    let reason = fault.map(Error::reason);
    let status = match fault.map(|fault| fault.kind) {
        None => RunStatus::Complete,
        Some(Kind::Interrupted) => RunStatus::Partial,
        Some(_) => RunStatus::Failed,
    };
    (status, reason)
}
