//! Errors of the engine: the kind of the fault, its causes, a hint, and the server's last log
//! lines. Exit codes are left to the front end.

use dyno_load::LoadError;
use dyno_load::connect::{ConnectError, ControlError};
use dyno_plan::resolve::PlanError;
use dyno_plan::uri::UriError;
use dyno_record::{RecordError, experiment};
use dyno_results::ResultsError;
use dyno_servers::{InstallError, ServerError};
use dyno_trace::TraceError;
use std::fmt;
use std::io::ErrorKind;

/// Kind of a fault, which decides how a caller reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request, the plan or the connection string is wrong. Nothing was done.
    BadInput,
    /// Something that the engine needs is missing or failed: server, permission, disk, program.
    Environment,
    /// A bug of this program.
    Internal,
    /// The work was cancelled. Earlier results are kept.
    Interrupted,
    /// The work was done, but a check of it failed.
    CheckFailed,
}

/// An error with its causes and a hint.
pub struct Error {
    pub kind: Kind,
    /// The error and its causes, outermost first.
    pub cause: anyhow::Error,
    pub hint: Option<String>,
    /// Last lines of the log of a started server.
    pub log_tail: Vec<String>,
}

impl Error {
    /// An error with a message and no cause.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error::from_cause(kind, anyhow::Error::msg(message.into()))
    }

    /// An error with a cause.
    pub fn from_cause(kind: Kind, cause: impl Into<anyhow::Error>) -> Self {
        Error { kind, cause: cause.into(), hint: None, log_tail: Vec::new() }
    }

    /// Adds a hint. An existing hint is more specific, and stays.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Wraps the error in a statement of the intent.
    pub fn context(mut self, intent: impl Into<String>) -> Self {
        self.cause = self.cause.context(intent.into());
        self
    }

    /// The error and its causes on one line, without credentials.
    pub fn reason(&self) -> String {
        dyno_plan::uri::redact(&format!("{:#}", self.cause))
    }

    /// Adds a hint, if there is one and the error has none yet.
    pub fn with_optional_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = self.hint.or(hint.map(Into::into));
        self
    }
}

/// Refuses a wrong request, with a hint how to correct it.
///
/// # Errors
/// Always: [`Kind::BadInput`].
pub fn refuse<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(Kind::BadInput, message).with_hint(hint))
}

/// Converts failures into errors of a kind.
pub trait OrFault<T, E> {
    /// Wraps a failure in an error of this kind that states the intent.
    ///
    /// # Errors
    /// The wrapped failure.
    fn or_fault<I: Into<String>>(self, kind: Kind, intent: impl FnOnce() -> I) -> Result<T, Error>
    where
        E: Into<anyhow::Error>;

    /// Adds a hint to a failure.
    ///
    /// # Errors
    /// The failure with the hint.
    fn with_hint(self, hint: impl Into<String>) -> Result<T, Error>
    where
        E: Into<Error>;
}

impl<T, E> OrFault<T, E> for Result<T, E> {
    fn or_fault<I: Into<String>>(self, kind: Kind, intent: impl FnOnce() -> I) -> Result<T, Error>
    where
        E: Into<anyhow::Error>,
    {
        self.map_err(|cause| Error::from_cause(kind, cause).context(intent()))
    }

    fn with_hint(self, hint: impl Into<String>) -> Result<T, Error>
    where
        E: Into<Error>,
    {
        self.map_err(|failure| failure.into().with_hint(hint))
    }
}

/// The outermost message; with `{:#}` all causes on one line.
impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, formatter)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {:?}", self.kind, self.cause)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.chain().nth(1)
    }
}

impl From<ResultsError> for Error {
    fn from(error: ResultsError) -> Self {
        match error {
            ResultsError::Record(error) => error.into(),
            error => {
                let hint = error.hint();
                Error::from_cause(Kind::BadInput, error).with_optional_hint(hint)
            }
        }
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        let hint = error.hint();
        let kind = match &error {
            TraceError::NoProcess { .. }
            | TraceError::Pattern { .. }
            | TraceError::Setting { .. }
            | TraceError::Command { .. } => Kind::BadInput,
            _ => Kind::Environment,
        };
        Error::from_cause(kind, error).with_optional_hint(hint)
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        let hint = error.hint();
        match error {
            PlanError::Host(error) => match error.downcast::<ServerError>() {
                Ok(error) => (*error).into(),
                Err(error) => {
                    Error::from_cause(Kind::Environment, anyhow::Error::from_boxed(error))
                }
            },
            error @ PlanError::Folder { .. } => Error::from_cause(Kind::Environment, error),
            error => Error::from_cause(Kind::BadInput, error).with_optional_hint(hint),
        }
    }
}

impl From<UriError> for Error {
    fn from(error: UriError) -> Self {
        let hint = error.hint();
        Error::from_cause(Kind::BadInput, error).with_optional_hint(hint)
    }
}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Self {
        let hint = error.hint();
        Error::from_cause(server_kind(&error), error).with_optional_hint(hint)
    }
}

impl From<InstallError> for Error {
    fn from(error: InstallError) -> Self {
        let kind = match &error {
            InstallError::NotPinned { .. } | InstallError::NotInstalled(_) => Kind::BadInput,
            InstallError::Interrupted => Kind::Interrupted,
            _ => Kind::Environment,
        };
        let hint = error.hint();
        Error::from_cause(kind, error).with_optional_hint(hint)
    }
}

fn server_kind(error: &ServerError) -> Kind {
    match error {
        ServerError::Setting { .. }
        | ServerError::Topology(_)
        | ServerError::TooFewFolders { .. }
        | ServerError::NoMemory { .. } => Kind::BadInput,
        ServerError::NothingToStart => Kind::Internal,
        ServerError::Interrupted { .. } => Kind::Interrupted,
        ServerError::Member { source, .. } => server_kind(source),
        _ => Kind::Environment,
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        let hint = error.hint();
        Error::from_cause(connect_kind(&error), error).with_optional_hint(hint)
    }
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        let (kind, hint) = load_kind(&error);
        Error::from_cause(kind, error).with_optional_hint(hint)
    }
}

fn load_kind(error: &LoadError) -> (Kind, Option<String>) {
    match error {
        LoadError::Connect(cause) => (connect_kind(cause), cause.hint()),
        LoadError::Unreachable(cause) => {
            (Kind::Environment, cause.as_ref().and_then(|cause| cause.hint()))
        }
        LoadError::Pair { source, .. } => load_kind(source),
        LoadError::Sink(cause) => match cause.downcast_ref::<RecordError>() {
            Some(RecordError::Write { .. }) => (Kind::Environment, Some(WRITE_HINT.to_owned())),
            _ => (Kind::Environment, None),
        },
        LoadError::Workload { .. } => (Kind::BadInput, None),
        LoadError::Setup { source, .. } => {
            let code = source.downcast_ref::<ControlError>().and_then(ControlError::code);
            let hint = match code {
                Some(UNAUTHORIZED) => Some(USER_HINT.to_owned()),
                Some(code) if NOT_PRIMARY.contains(&code) => Some(MEMBER_HINT.to_owned()),
                _ => None,
            };
            (Kind::Environment, hint)
        }
        LoadError::DriverOption(_) => {
            (Kind::BadInput, Some("leave the option out, or use `--backend wire`".to_owned()))
        }
        LoadError::DriverLimit { hint, .. } => (Kind::BadInput, Some(hint.clone())),
        LoadError::WorkerPanicked => (Kind::Internal, None),
        _ => (Kind::Environment, None),
    }
}

/// Server code of a command that needs a user, or one with more rights.
const UNAUTHORIZED: i32 = 13;
/// Server codes of members that refuse a command because they are not the primary or cannot be
/// read.
const NOT_PRIMARY: [i32; 3] = [10_107, 13_435, 13_436];
const MEMBER_HINT: &str =
    "connect to the primary: leave `directConnection=true` out and name the set by `replicaSet`";
const USER_HINT: &str = "name a user with these rights in the connection string: `mongodb://USER:PASSWORD@HOST/?authSource=admin`";
const WRITE_HINT: &str = "check the free space and the permissions there";

/// An unsupported connection string is bad input; other failures are environment errors.
fn connect_kind(error: &ConnectError) -> Kind {
    match error {
        ConnectError::Unsupported { .. } | ConnectError::NoCertificate => Kind::BadInput,
        ConnectError::Interrupted => Kind::Interrupted,
        _ => Kind::Environment,
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        let (kind, hint) = match &error {
            RecordError::NoSuchFolder { .. } | RecordError::NoDocument { .. } => (
                Kind::BadInput,
                Some("give the folder that `dyno` printed at the end of the run or experiment"),
            ),
            RecordError::Document { path, .. } if path.ends_with(experiment::FILE) => (
                Kind::BadInput,
                Some("restore it from a copy, or show single runs below `runs` with `dyno report`"),
            ),
            RecordError::Document { .. } => {
                (Kind::BadInput, Some("the file was changed or damaged; restore it from a copy"))
            }
            RecordError::HoldsRun { .. } => {
                (Kind::BadInput, Some("choose another folder with `--out`"))
            }
            // A link, a pipe or a device, or a file larger than any record.
            RecordError::Read { source, .. }
                if matches!(source.kind(), ErrorKind::InvalidInput | ErrorKind::FileTooLarge) =>
            {
                (Kind::BadInput, Some("a record contains only plain files; restore it from a copy"))
            }
            RecordError::NewerSchema { .. } => {
                (Kind::BadInput, Some("use the version of `dyno` that wrote it, or a later one"))
            }
            RecordError::Create { .. } => {
                (Kind::Environment, Some("choose a writable folder with `--out`"))
            }
            RecordError::Write { .. } => (Kind::Environment, Some(WRITE_HINT)),
            RecordError::EncodeDocument { .. }
            | RecordError::Encode { .. }
            | RecordError::Name { .. } => (Kind::Internal, None),
            _ => (Kind::Environment, None),
        };
        Error::from_cause(kind, error).with_optional_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_command_names_the_missing_user() {
        let refused = |code| {
            let error = ControlError::Server {
                command: "count".into(),
                code,
                code_name: String::new(),
                message: "command count requires authentication".into(),
            };
            Error::from(LoadError::Setup { intent: "count".into(), source: Box::new(error) })
        };
        assert!(refused(13).hint.is_some_and(|hint| hint.contains("USER:PASSWORD")));
        let member = refused(10_107).hint;
        assert!(member.is_some_and(|hint| hint.contains("primary")));
        assert_eq!(refused(26).hint, None);
    }

    #[test]
    fn the_first_hint_stays() {
        let found = Error::new(Kind::BadInput, "no").with_hint("first").with_hint("second");
        assert_eq!(found.hint.as_deref(), Some("first"));
    }

    #[test]
    fn full_disk_is_environment_and_existing_run_is_bad_input() {
        let full = RecordError::Write {
            path: "/x/run.json".into(),
            source: std::io::Error::from_raw_os_error(libc::ENOSPC),
        };
        let found = Error::from(full);
        assert_eq!(found.kind, Kind::Environment);
        assert!(found.hint.is_some_and(|hint| hint.contains("free space")));
        let in_the_way = RecordError::HoldsRun { directory: "/x".into(), found: "run.json" };
        assert_eq!(Error::from(in_the_way).kind, Kind::BadInput);
    }

    #[test]
    fn invalid_connection_string_is_bad_input() {
        let error = dyno_plan::uri::parse("http://host").expect_err("the scheme is wrong");
        let found = Error::from(error);
        assert_eq!(found.kind, Kind::BadInput);
        assert!(found.hint.is_some());
    }
}
