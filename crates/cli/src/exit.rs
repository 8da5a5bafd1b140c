//! Exit codes, and their mapping from errors of the engine. `messages` formats the errors.

use dyno_engine::Kind;
use std::process::ExitCode;

/// Exit codes. Scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// Done, but a check failed, such as more failed operations than tolerated.
    CheckFailed = 1,
    /// Bad arguments, plan or properties; nothing was done.
    BadInput = 2,
    /// Environment error: server, permission, disk, missing program.
    Environment = 3,
    /// A bug in this program.
    Internal = 4,
    /// Done, but the measurements do not show whether a limit is kept.
    Undecided = 5,
    /// The runs measured different things; they were not compared.
    NotComparable = 6,
    /// Interrupted by a signal. The record so far is saved and marked partial.
    Interrupted = 130,
}

impl Exit {
    /// Exit code for the outcome of a check.
    pub(crate) fn of_check(is_good: bool) -> Self {
        if is_good { Exit::Done } else { Exit::CheckFailed }
    }

    /// Exit code of another `dyno` process; `Internal` if the code is unknown.
    pub(crate) fn from_code(code: Option<i32>) -> Self {
        let all = [
            Exit::Done,
            Exit::CheckFailed,
            Exit::BadInput,
            Exit::Environment,
            Exit::Undecided,
            Exit::NotComparable,
            Exit::Interrupted,
        ];
        all.into_iter().find(|exit| Some(*exit as i32) == code).unwrap_or(Exit::Internal)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_have_their_documented_values() {
        let codes = [
            Exit::Done,
            Exit::CheckFailed,
            Exit::BadInput,
            Exit::Environment,
            Exit::Internal,
            Exit::Undecided,
            Exit::NotComparable,
            Exit::Interrupted,
        ];
        assert_eq!(codes.map(|exit| exit as u8), [0, 1, 2, 3, 4, 5, 6, 130]);
    }
}
