//! Common parts of experiments with their own kind of document, such as index builds and messages.

use crate::error::{Error, Kind};
use dyno_record::model::RunStatus;
use std::path::PathBuf;

/// Such an experiment with a written document.
#[derive(Debug)]
pub struct FinishedStandalone {
    pub folder: PathBuf,
    /// Why it ended early or is incorrect, if so.
    pub fault: Option<Error>,
}

/// Status of its end, and the reason if it ended early.
pub fn status(fault: Option<&Error>) -> (RunStatus, Option<String>) {
    match fault {
        None => (RunStatus::Complete, None),
        Some(fault) if fault.kind == Kind::Interrupted => {
            (RunStatus::Partial, Some("interrupted by a signal".to_owned()))
        }
        Some(fault) => (RunStatus::Failed, Some(fault.reason())),
    }
}
