//! Performs and undoes steps of a change, of the kernel or of a server.

use super::parameters::{ChangedParameter, is_same, text};
use crate::error::{Error, Kind};
use dyno_load::connect::Control;
use dyno_observe::doctor::change::{self, ChangeError, Reverted, Run, Undo};
use dyno_plan::task::Remote;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// One change with its earlier value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A kernel file or a mount.
    Kernel(Undo),
    /// A server parameter.
    Parameter(Box<ChangedParameter>),
}

impl Step {
    /// The file or mount point, or the server.
    pub(crate) fn target(&self) -> String {
        match self {
            Step::Kernel(undo) => undo.target().display().to_string(),
            Step::Parameter(change) => change.server.clone(),
        }
    }

    /// The file or the parameter, as part of a sentence.
    pub(super) fn subject(&self) -> String {
        match self {
            Step::Kernel(_) => format!("`{}`", self.target()),
            Step::Parameter(change) => format!("`{}` of `{}`", change.name, change.server),
        }
    }

    /// The value before.
    pub(crate) fn before(&self) -> String {
        match self {
            Step::Kernel(undo) => undo.before.clone(),
            Step::Parameter(change) => text(&change.before),
        }
    }

    /// The value that is set.
    pub(crate) fn value(&self) -> String {
        match self {
            Step::Kernel(undo) => undo.value().to_owned(),
            Step::Parameter(change) => text(&change.set),
        }
    }

    /// Whether the value differs from the earlier one.
    pub(crate) fn is_needed(&self) -> bool {
        match self {
            Step::Kernel(undo) => undo.before != undo.value(),
            Step::Parameter(change) => !is_same(&change.before, &change.set),
        }
    }

    /// Whether it changes this machine.
    pub(crate) fn is_of_machine(&self) -> bool {
        matches!(self, Step::Kernel(_))
    }

    /// Whether it changes a server of the deployment with this connection string.
    pub(crate) fn is_of_deployment(&self, uri: &str) -> bool {
        matches!(self, Step::Parameter(change) if change.uri == uri)
    }

    /// Whether a run made the change, not the doctor.
    pub(super) fn is_of_run(&self) -> bool {
        !matches!(self, Step::Kernel(undo) if undo.check.is_some())
    }
}

impl From<Undo> for Step {
    fn from(undo: Undo) -> Self {
        Step::Kernel(undo)
    }
}

/// Why a step was not undone.
#[derive(Debug)]
pub(super) enum NotUndone {
    /// The value has changed since.
    Changed(String),
    /// The undo failed.
    Failed(Error),
}

/// A failed step.
pub(super) struct NotPerformed {
    pub(super) failure: Error,
    /// Whether the change may have been made and could not be undone.
    pub(super) is_left: bool,
}

/// Connects to the server of a change.
type Connect<'a> = Rc<dyn Fn(&ChangedParameter) -> Result<Control, Error> + 'a>;

/// Access to the changed files and servers.
#[derive(Clone)]
pub struct Ways<'a> {
    pub(super) root: PathBuf,
    connect: Connect<'a>,
}

impl<'a> Ways<'a> {
    /// Files below `root`, and servers by the connection strings of the steps, with the user of
    /// `given` where it names the same deployment.
    pub fn new(root: &Path, given: Option<Remote>) -> Self {
        Ways {
            root: root.to_owned(),
            connect: Rc::new(move |change| change.connect(given.as_ref())),
        }
    }

    /// Files of this machine, and servers through `connect`.
    pub(crate) fn to_servers(
        connect: impl Fn(&ChangedParameter) -> Result<Control, Error> + 'a,
    ) -> Self {
        Ways { root: PathBuf::from("/"), connect: Rc::new(connect) }
    }

    /// Performs a step and returns it with the value read back.
    pub(super) fn perform(&self, step: &Step) -> Result<Step, NotPerformed> {
        match step {
            Step::Kernel(undo) => match change::apply(undo, &self.root, self.runner()) {
                Ok(()) => Ok(step.clone()),
                Err(error) => {
                    Err(NotPerformed { failure: failure(error, &undo.command()), is_left: false })
                }
            },
            Step::Parameter(change) => {
                let set = (self.connect)(change).and_then(|mut control| change.apply(&mut control));
                set.map(|set| Step::Parameter(Box::new(set))).map_err(|failure| NotPerformed {
                    failure,
                    // An error may come after the change.
                    is_left: matches!(self.undo(step), Err(NotUndone::Failed(_))),
                })
            }
        }
    }

    /// Restores the earlier value, if the set value is unchanged.
    pub(super) fn undo(&self, step: &Step) -> Result<Reverted, NotUndone> {
        match step {
            Step::Kernel(undo) => match change::revert(undo, &self.root, self.runner()) {
                Ok(reverted) => Ok(reverted),
                Err(error @ ChangeError::ChangedMeanwhile { .. }) => {
                    Err(NotUndone::Changed(error.to_string()))
                }
                Err(error) => Err(NotUndone::Failed(failure(error, &undo.revert_command()))),
            },
            Step::Parameter(change) => {
                let mut control = (self.connect)(change).map_err(NotUndone::Failed)?;
                change.undo(&mut control)
            }
        }
    }

    /// The current value.
    pub(super) fn value_now(&self, step: &Step) -> Result<String, Error> {
        match step {
            Step::Kernel(undo) => change::current(&undo.action, &self.root)
                .map_err(|error| Error::from_cause(Kind::Environment, error)),
            Step::Parameter(change) => {
                let now = change.value_now(&mut (self.connect)(change)?)?;
                let missing =
                    || Error::new(Kind::Environment, "the server does not have this parameter");
                now.as_ref().map(text).ok_or_else(missing)
            }
        }
    }

    /// Runs programs only for this machine, never for a tree of files in a test.
    fn runner(&self) -> Run<'static> {
        if self.root == Path::new("/") {
            &change::run_program
        } else {
            &|words| {
                Err(io::Error::other(format!(
                    "`{}` is not run for a tree of files",
                    words.join(" ")
                )))
            }
        }
    }
}

impl std::fmt::Debug for Ways<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ways").field("root", &self.root).finish()
    }
}

fn failure(error: ChangeError, command: &str) -> Error {
    let denied = matches!(
        &error,
        ChangeError::Set { source, .. } if source.kind() == io::ErrorKind::PermissionDenied
    );
    let failure = Error::from_cause(Kind::Environment, error);
    match denied {
        true => failure.with_hint(format!("run it as root, or type: {command}")),
        false => failure,
    }
}
