//! Traces of file I/O: recorded while something runs, named by what the files hold, and reported. What is traced,
//! and when, is left to `dyno trace` and to the runs.

pub(crate) mod child;
pub(crate) mod recording;
pub(crate) mod reports;
pub(crate) mod roles;
pub(crate) mod settings;
pub(crate) mod words;

use crate::exit::{Exit, Failure};
use dyno_trace::TraceError;

pub(crate) use dyno_record::io_trace::FOLDER;

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        let hint = error.hint();
        let exit = match &error {
            TraceError::NoProcess { .. }
            | TraceError::Pattern { .. }
            | TraceError::Setting { .. }
            | TraceError::Command { .. } => Exit::BadInput,
            _ => Exit::Environment,
        };
        let failure = Failure::of(exit, error);
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
