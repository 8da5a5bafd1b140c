//! What experiments with a document of their own kind have in common, such as index builds and messages.

use crate::cancel::Cancel;
use crate::context::Context;
use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::observer::SharedObserver;
use dyno_record::model::RunStatus;
use std::path::PathBuf;

/// How such an experiment is done, besides what its plan says.
#[derive(Clone, Debug, Default)]
pub struct StandaloneOptions {
    /// The place that it is done in.
    pub environment: Environment,
    /// Path of the embedded server, if it is named.
    pub embedded_server: Option<PathBuf>,
    /// The folder of the experiment; a new one below `experiments` if none is named.
    pub out: Option<PathBuf>,
}

impl StandaloneOptions {
    /// What its work is done with.
    pub fn context<'a>(
        &'a self,
        observer: &'a dyn SharedObserver,
        cancel: &'a Cancel,
    ) -> Context<'a> {
        Context {
            environment: &self.environment,
            cancel,
            observer,
            source: None,
        }
    }
}

/// Such an experiment whose document is written.
#[derive(Debug)]
pub struct FinishedStandalone {
    /// The folder of the experiment.
    pub folder: PathBuf,
    /// What ended it early, or what is wrong with it, if something is.
    pub fault: Option<Error>,
}

/// How it ended, and why it did not come to its end.
pub fn status(fault: Option<&Error>) -> (RunStatus, Option<String>) {
    let reason = fault.map(Error::reason);
    let status = match fault.map(|fault| fault.kind) {
        None => RunStatus::Complete,
        Some(Kind::Interrupted) => RunStatus::Partial,
        Some(_) => RunStatus::Failed,
    };
    (status, reason)
}
