//! How the program ends: the table of exit codes, and which of them an error of the engine has. How an error looks is left
//! to `messages`.

use dyno_engine::Kind;
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
    /// That of a command that has checked something.
    pub(crate) fn of_check(is_good: bool) -> Self {
        if is_good {
            Exit::Done
        } else {
            Exit::CheckFailed
        }
    }

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
}
