//! Errors of creating a task.

use crate::builtin::Plans;
use crate::file::FileError;
use crate::host::HostError;
use crate::problem::{self, Problem};
use crate::text;
use crate::topology::{INSTEAD_OF_SPLIT, NOT_DEALT};
use crate::uri::UriError;
use std::path::{Path, PathBuf};

/// Why a plan could not be created or used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan is neither built in nor a file.
    #[error("there is no built-in {} and no file `{name}`", plans.one)]
    Unknown {
        /// The built-in plans for this kind of work.
        plans: &'static Plans,
        /// The requested name.
        name: String,
        /// The built-in plan that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is not a valid plan.
    #[error(transparent)]
    File(#[from] FileError),
    /// A property file or `-p` is invalid.
    #[error("the YCSB properties are not valid:{}", problem::list(.0))]
    Properties(Vec<Problem>),
    /// The knobs for tuning are invalid.
    #[error("the knobs are not valid:{}", problem::list(.0))]
    Knobs(Vec<Problem>),
    /// File and options together do not make a valid plan.
    #[error("the plan is not valid:{}", problem::list(.0))]
    Invalid(Vec<Problem>),
    /// Parameters of the Workload Services Framework are invalid.
    #[error("the parameters in the environment cannot be used:{}", problem::list(.0))]
    Framework(Vec<Problem>),
    /// A parameter of the Workload Services Framework names something other than a workload.
    #[error("`{variable}` does not name a workload")]
    NoWorkload {
        variable: &'static str,
        #[source]
        source: Box<PlanError>,
    },
    /// The plan is for a different kind of work.
    #[error("the plan is for {what}")]
    OtherWork {
        /// The kind of work.
        what: &'static str,
        /// The command for this kind of work.
        command: &'static str,
    },
    /// A suite was given instead of a single workload.
    #[error("`{name}` is a suite of several workloads, but one workload is needed")]
    IsSuite { name: String },
    /// Servers must be started, but the plan uses a running server.
    #[error("the plan uses a server that is already running, so nothing can be started")]
    NothingToStart,
    /// The plan has several independent servers, but the work needs a single one.
    #[error("{what}")]
    OneServer {
        /// The reason.
        what: &'static str,
    },
    /// The plan distributes documents over servers, but the work does not.
    #[error("`server.topology` = `{topology}`: {NOT_DEALT}")]
    Split { topology: String },
    /// Data would be loaded into a server that does not outlive the load.
    #[error("the data would go into a temporary server that is removed right after the load")]
    DataGoesAway,
    /// The data is dropped before each run, but none is loaded.
    #[error("the plan drops the data before each run (`data.fresh`), and `--no-load` loads none")]
    NothingLoaded,
    /// A relative path cannot be resolved without a working folder.
    #[error("cannot use `{path}`")]
    Folder {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// A path that a plan cannot store.
    #[error("`{path}` is not UTF-8 text")]
    NotText {
        /// With replacements for invalid characters.
        path: String,
    },
    /// The machine lacks something that the plan needs.
    #[error(transparent)]
    Host(HostError),
    /// More than one connection string was given.
    #[error("{count} connection strings were given; one is needed")]
    SeveralUris { count: usize },
    /// The connection string is invalid.
    #[error("the connection string is not valid")]
    Uri(#[from] UriError),
}

impl PlanError {
    pub(crate) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> PlanError {
        move |source| PlanError::Unreadable { path: path.to_owned(), source }
    }

    /// Advice, unless the message contains it.
    pub fn hint(&self) -> Option<String> {
        match self {
            PlanError::Unknown { nearest, plans, .. } => Some(match nearest {
                Some(name) => format!("did you mean `{name}`?"),
                None => {
                    let names: Vec<_> = plans.names().collect();
                    format!("built-in {}: {}", plans.all, names.join(", "))
                }
            }),
            PlanError::Unreadable { source, .. } if text::is_encoding(source) => {
                Some("save it as UTF-8".into())
            }
            PlanError::Unreadable { .. } => Some("check the path and its permissions".into()),
            PlanError::SeveralUris { .. } => Some("run once for each server, or let `dyno run --pairs N` start the servers and load all of them at once".into()),
            PlanError::Uri(error) => error.hint(),
            PlanError::NoWorkload { source, .. } => source.hint(),
            PlanError::OtherWork { command, .. } => {
                Some(format!("use it with `{command}`, or remove the table"))
            }
            PlanError::IsSuite { .. } => {
                Some("use it with `dyno run`, or choose one of its workloads".into())
            }
            PlanError::NothingToStart => Some("use `--server auto`".into()),
            PlanError::Split { .. } => Some(INSTEAD_OF_SPLIT.into()),
            PlanError::OneServer { .. } => Some("omit `--pairs`".into()),
            PlanError::DataGoesAway => Some(
                "use a running server with `--uri`, or keep the data with `--data-dir DIR`".into(),
            ),
            PlanError::NothingLoaded => Some("omit one of them".into()),
            PlanError::File(_)
            | PlanError::Properties(_)
            | PlanError::Invalid(_)
            | PlanError::Framework(_)
            | PlanError::Knobs(_)
            | PlanError::Folder { .. }
            | PlanError::NotText { .. }
            | PlanError::Host(_) => None,
        }
    }
}
