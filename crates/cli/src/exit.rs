//! How the program ends: the table of exit codes, and errors that carry a code, a hint and lines of
//! a server's log. How an error looks is left to `messages`.

use dyno_engine::{Error, Kind};
use dyno_fleet::FleetError;
use dyno_load::LoadError;
use dyno_load::connect::ConnectError;
use dyno_plan::resolve::PlanError;
use dyno_plan::uri::UriError;
use dyno_record::RecordError;
use dyno_report::ReportError;
use dyno_results::ResultsError;
use dyno_servers::{InstallError, ServerError};
use dyno_trace::TraceError;
use std::process::ExitCode;

/// The exit codes. They are part of the interface: scripts read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Done, and a check failed: more operations failed than are tolerated.
    CheckFailed = 1,
    /// Bad arguments, plan or properties; nothing was done.
    BadInput = 2,
    /// The surroundings are not as needed: server, permission, disk, missing program.
    Environment = 3,
    /// A bug of this program.
    Internal = 4,
    /// Interrupted by a signal. What was recorded until then is saved and marked partial.
    Interrupted = 130,
}

impl Exit {
    /// What another process of this program ended with; `Internal` if that is no code of it.
    pub(crate) fn from_code(code: Option<i32>) -> Self {
        let all = [
            Exit::Done,
            Exit::CheckFailed,
            Exit::BadInput,
            Exit::Environment,
            Exit::Interrupted,
        ];
        all.into_iter()
            .find(|exit| Some(*exit as i32) == code)
            .unwrap_or(Exit::Internal)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An error on its way to the person: with exit code, hint and what the server said last.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
    pub(crate) hint: Option<String>,
    /// Last lines of the log of a server that we started.
    pub(crate) log_tail: Vec<String>,
}

impl Failure {
    /// A failure with the text of its message.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Failure::of(exit, anyhow::Error::msg(message.into()))
    }

    /// A failure with an error and its causes.
    pub(crate) fn of(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Failure {
            exit,
            error: error.into(),
            hint: None,
            log_tail: Vec::new(),
        }
    }

    /// The same failure with a hint. A hint that is there already knows more and stays.
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The same failure, as the cause of one that says what was intended.
    pub(crate) fn context(mut self, intent: impl Into<String>) -> Self {
        self.error = self.error.context(intent.into());
        self
    }
}

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::BadInput => Exit::BadInput,
            Kind::Environment => Exit::Environment,
            Kind::Internal => Exit::Internal,
            Kind::Interrupted => Exit::Interrupted,
            Kind::CheckFailed => Exit::CheckFailed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure {
            exit: error.kind.into(),
            error: error.cause,
            hint: error.hint,
            log_tail: error.log_tail,
        }
    }
}

/// What these errors mean is known to the engine.
macro_rules! as_the_engine_says {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        })*
    };
}

as_the_engine_says!(
    PlanError,
    UriError,
    ServerError,
    InstallError,
    ConnectError,
    LoadError,
    RecordError,
    ResultsError,
    TraceError,
    FleetError
);

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        let exit = match &error {
            ReportError::Json { .. } | ReportError::Template { .. } => Exit::Internal,
            _ => Exit::BadInput,
        };
        Failure::of(exit, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_that_scripts_read() {
        let codes = [
            Exit::Done,
            Exit::CheckFailed,
            Exit::BadInput,
            Exit::Environment,
            Exit::Internal,
            Exit::Interrupted,
        ];
        assert_eq!(codes.map(|exit| exit as u8), [0, 1, 2, 3, 4, 130]);
    }

    #[test]
    fn the_first_hint_stays() {
        let failure = Failure::new(Exit::BadInput, "no")
            .with_hint("first")
            .with_hint("second");
        assert_eq!(failure.hint.as_deref(), Some("first"));
    }
}
