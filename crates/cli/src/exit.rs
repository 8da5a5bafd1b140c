//! How the program ends: the table of exit codes, and errors that carry a code, a hint and lines of
//! a server's log. How an error looks is left to `messages`.

use dyno_load::LoadError;
use dyno_load::connect::{ConnectError, ControlError};
use dyno_plan::resolve::PlanError;
use dyno_plan::uri::UriError;
use dyno_record::RecordError;
use dyno_report::ReportError;
use dyno_servers::{InstallError, ServerError};
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

    fn with_optional_hint(mut self, hint: Option<String>) -> Self {
        self.hint = self.hint.or(hint);
        self
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let hint = error.hint();
        match error {
            PlanError::Host(error) => match error.downcast::<ServerError>() {
                Ok(error) => (*error).into(),
                Err(error) => Failure::of(Exit::Environment, anyhow::Error::from_boxed(error)),
            },
            error @ PlanError::Folder { .. } => Failure::of(Exit::Environment, error),
            error => Failure::of(Exit::BadInput, error).with_optional_hint(hint),
        }
    }
}

impl From<UriError> for Failure {
    fn from(error: UriError) -> Self {
        let hint = error.hint();
        Failure::of(Exit::BadInput, error).with_optional_hint(hint)
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        let hint = error.hint();
        Failure::of(server_exit(&error), error).with_optional_hint(hint)
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let exit = match &error {
            InstallError::NotPinned { .. } | InstallError::NotInstalled(_) => Exit::BadInput,
            InstallError::Interrupted => Exit::Interrupted,
            _ => Exit::Environment,
        };
        let hint = error.hint();
        Failure::of(exit, error).with_optional_hint(hint)
    }
}

fn server_exit(error: &ServerError) -> Exit {
    match error {
        ServerError::Setting { .. }
        | ServerError::Topology(_)
        | ServerError::TooFewFolders { .. }
        | ServerError::NoMemory { .. } => Exit::BadInput,
        ServerError::NothingToStart => Exit::Internal,
        ServerError::Interrupted { .. } => Exit::Interrupted,
        ServerError::Member { source, .. } => server_exit(source),
        _ => Exit::Environment,
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let hint = error.hint();
        Failure::of(connect_exit(&error), error).with_optional_hint(hint)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let (exit, hint) = load_exit(&error);
        Failure::of(exit, error).with_optional_hint(hint)
    }
}

fn load_exit(error: &LoadError) -> (Exit, Option<String>) {
    match error {
        LoadError::Connect(cause) => (connect_exit(cause), cause.hint()),
        LoadError::Unreachable(cause) => (
            Exit::Environment,
            cause.as_ref().and_then(|cause| cause.hint()),
        ),
        LoadError::Pair { source, .. } => load_exit(source),
        LoadError::Sink(cause) => match cause.downcast_ref::<RecordError>() {
            Some(RecordError::Write { .. }) => (Exit::Environment, Some(WRITE_HINT.to_owned())),
            _ => (Exit::Environment, None),
        },
        LoadError::Workload { .. } => (Exit::BadInput, None),
        LoadError::Setup { source, .. } => {
            let code = source
                .downcast_ref::<ControlError>()
                .and_then(ControlError::code);
            let hint = (code == Some(UNAUTHORIZED)).then(|| USER_HINT.to_owned());
            (Exit::Environment, hint)
        }
        LoadError::DriverOption(_) => (
            Exit::BadInput,
            Some("leave the option out, or use `--backend wire` if it honours it".to_owned()),
        ),
        LoadError::WorkerPanicked => (Exit::Internal, None),
        _ => (Exit::Environment, None),
    }
}

/// Server code of a command that needs a user, or one with more rights.
const UNAUTHORIZED: i32 = 13;
const USER_HINT: &str = "name a user with the rights in the connection string: `mongodb://USER:PASSWORD@HOST/?authSource=admin`";
const WRITE_HINT: &str = "check the free space and the permissions there";

/// A connection string that asks for what cannot be done is bad input, everything else is the surroundings.
fn connect_exit(error: &ConnectError) -> Exit {
    match error {
        ConnectError::Unsupported { .. } => Exit::BadInput,
        _ => Exit::Environment,
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        let (exit, hint) = match &error {
            RecordError::NoSuchFolder { .. } | RecordError::NotARun { .. } => (
                Exit::BadInput,
                Some("give the folder that `dyno run` printed"),
            ),
            RecordError::HoldsRun { .. } => {
                (Exit::BadInput, Some("choose another folder with `--out`"))
            }
            RecordError::NewerSchema { .. } => (
                Exit::BadInput,
                Some("use the `dyno` that wrote it, or a later one"),
            ),
            RecordError::Create { .. } => (
                Exit::Environment,
                Some("choose a folder that can be written with `--out`"),
            ),
            RecordError::Write { .. } => (Exit::Environment, Some(WRITE_HINT)),
            RecordError::EncodeDocument { .. }
            | RecordError::Encode { .. }
            | RecordError::Name { .. } => (Exit::Internal, None),
            _ => (Exit::Environment, None),
        };
        let hint = hint.map(str::to_owned);
        Failure::of(exit, error).with_optional_hint(hint)
    }
}

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
    fn a_refused_command_says_that_a_user_is_missing() {
        let refused = |code| {
            let error = ControlError::Server {
                command: "count".into(),
                code,
                code_name: String::new(),
                message: "command count requires authentication".into(),
            };
            Failure::from(LoadError::Setup {
                intent: "count".into(),
                source: Box::new(error),
            })
        };
        assert!(
            refused(13)
                .hint
                .is_some_and(|hint| hint.contains("USER:PASSWORD"))
        );
        assert_eq!(refused(26).hint, None);
    }

    #[test]
    fn the_first_hint_stays() {
        let failure = Failure::new(Exit::BadInput, "no")
            .with_hint("first")
            .with_hint("second");
        assert_eq!(failure.hint.as_deref(), Some("first"));
    }

    #[test]
    fn a_full_disk_is_the_surroundings_and_a_run_in_the_way_is_bad_input() {
        let full = RecordError::Write {
            path: "/x/run.json".into(),
            source: std::io::Error::from_raw_os_error(libc::ENOSPC),
        };
        let failure = Failure::from(full);
        assert_eq!(failure.exit, Exit::Environment);
        assert!(failure.hint.is_some_and(|hint| hint.contains("free space")));
        let in_the_way = RecordError::HoldsRun {
            directory: "/x".into(),
            found: "run.json",
        };
        assert_eq!(Failure::from(in_the_way).exit, Exit::BadInput);
    }

    #[test]
    fn a_connection_string_that_is_wrong_is_bad_input() {
        let error = dyno_plan::uri::parse("http://host").expect_err("the scheme is wrong");
        let failure = Failure::from(error);
        assert_eq!(failure.exit, Exit::BadInput);
        assert!(failure.hint.is_some());
    }
}
