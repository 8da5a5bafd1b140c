//! Why there is no task.

use crate::builtin::Plans;
use crate::file::FileError;
use crate::host::HostError;
use crate::problem::{self, Problem};
use crate::text;
use crate::topology::{INSTEAD_OF_SPLIT, NOT_DEALT};
use crate::uri::UriError;
use std::path::{Path, PathBuf};

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan is neither a built-in one nor a file.
    #[error("there is no built-in {} and no file `{name}`", plans.one)]
    Unknown {
        /// The built-in plans of the work.
        plans: &'static Plans,
        /// What was asked for.
        name: String,
        /// The built-in plan that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no valid plan.
    #[error(transparent)]
    File(#[from] FileError),
    /// A property file or `-p` is wrong.
    #[error("the YCSB properties are not valid:{}", problem::list(.0))]
    Properties(Vec<Problem>),
    /// The knobs of a search for settings are wrong.
    #[error("the knobs cannot be turned:{}", problem::list(.0))]
    Knobs(Vec<Problem>),
    /// File and options together make no valid plan.
    #[error("the plan is not valid:{}", problem::list(.0))]
    Invalid(Vec<Problem>),
    /// Parameters of the Workload Services Framework are wrong.
    #[error("the parameters in the environment cannot be used:{}", problem::list(.0))]
    Framework(Vec<Problem>),
    /// A parameter of the Workload Services Framework names what is no workload.
    #[error("`{variable}` names no workload")]
    NoWorkload {
        /// The parameter.
        variable: &'static str,
        /// Why.
        #[source]
        source: Box<PlanError>,
    },
    /// The plan fits another kind of work than the one that was asked for.
    #[error("the plan is one of {what}")]
    OtherWork {
        /// What it is a plan of.
        what: &'static str,
        /// The command that does it.
        command: &'static str,
    },
    /// Several workloads where one is needed.
    #[error("`{name}` is a suite of several workloads, and one is needed")]
    IsSuite {
        /// Its name or file.
        name: String,
    },
    /// Servers are to be started by a plan that aims at one that runs.
    #[error("the plan uses a server that is already running: there is nothing to start")]
    NothingToStart,
    /// Several independent servers for work that is done on one.
    #[error("{what}")]
    OneServer {
        /// Why one is needed.
        what: &'static str,
    },
    /// Servers over which documents are dealt, for work that deals none.
    #[error("`server.topology` = `{topology}`: {NOT_DEALT}")]
    Split {
        /// The topology.
        topology: String,
    },
    /// Data is loaded into a server that does not outlive the load.
    #[error("the data would go into a temporary server that is removed right after the load")]
    DataGoesAway,
    /// The data is dropped before each run, and none is loaded.
    #[error("the plan drops the data before each run (`data.fresh`), and `--no-load` loads none")]
    NothingLoaded,
    /// The machine has no folder that a relative path could start from.
    #[error("cannot use `{path}`")]
    Folder {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A path that no plan can hold.
    #[error("`{path}` is not UTF-8 text")]
    NotText {
        /// The path, with replacements for what is no text.
        path: String,
    },
    /// The machine has not what the plan needs.
    #[error(transparent)]
    Host(HostError),
    /// More than one connection string where one is needed.
    #[error("{count} connection strings were given; one is needed")]
    SeveralUris {
        /// How many there are.
        count: usize,
    },
    /// The connection string is wrong.
    #[error("the connection string is not valid")]
    Uri(#[from] UriError),
}

impl PlanError {
    pub(crate) fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> PlanError {
        move |source| PlanError::Unreadable {
            path: path.to_owned(),
            source,
        }
    }

    /// What to do about it, where that is not in the message.
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
                Some(format!("give it to `{command}`, or take the table out"))
            }
            PlanError::IsSuite { .. } => {
                Some("give it to `dyno run`, or take one of its workloads".into())
            }
            PlanError::NothingToStart => Some("give `--server auto`".into()),
            PlanError::Split { .. } => Some(INSTEAD_OF_SPLIT.into()),
            PlanError::OneServer { .. } => Some("leave `--pairs` out".into()),
            PlanError::DataGoesAway => Some(
                "aim at a server with `--uri`, or keep the data with `--data-dir DIR`".into(),
            ),
            PlanError::NothingLoaded => Some("leave one of them out".into()),
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
