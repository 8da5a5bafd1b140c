//! Changes to the kernel and to servers for the time of a run. The journal of `dyno doctor` keeps
//! the earlier values, so that `dyno doctor --revert` can restore them if this program was killed.

use super::journal::Journal;
use super::step::{Step, Ways};
use crate::error::Error;
use crate::observer::SharedObserver;
use std::path::{Path, PathBuf};

/// Restores the earlier values when it is dropped.
pub(crate) struct Changes<'a> {
    /// Folder of the journal, if there is one.
    folder: Option<PathBuf>,
    ways: Ways<'a>,
    observer: &'a dyn SharedObserver,
    /// Includes values that were already as wanted.
    pub(crate) steps: Vec<Step>,
}

impl<'a> Changes<'a> {
    /// Reads and performs steps while the journal is open, so that no other run changes the values
    /// in between.
    ///
    /// # Errors
    /// Another run has set one of the values, or the kernel or a server refuses one. Values that
    /// were set before are restored.
    pub(crate) fn make(
        folder: Option<&Path>,
        ways: Ways<'a>,
        observer: &'a dyn SharedObserver,
        read: impl FnOnce() -> Result<Vec<Step>, Error>,
    ) -> Result<Self, Error> {
        let mut journal = Journal::open_by(folder, ways.clone())?;
        let mut steps = read()?;
        for step in &steps {
            journal.check_runs(|other| other.subject() == step.subject())?;
        }
        journal.perform_all(&mut steps, observer)?;
        Ok(Changes { folder: folder.map(Path::to_owned), ways, observer, steps })
    }

    /// The current values; `None` for one that cannot be read.
    pub(crate) fn now(&self) -> impl Iterator<Item = Option<String>> {
        self.steps.iter().map(|step| self.ways.value_now(step).ok())
    }
}

impl Drop for Changes<'_> {
    fn drop(&mut self) {
        if !self.steps.iter().any(Step::is_needed) {
            return;
        }
        let restored = Journal::open_by(self.folder.as_deref(), self.ways.clone())
            .and_then(|mut journal| journal.take_back(&self.steps, self.observer));
        if let Err(failure) = restored {
            self.observer.warning(&failure.reason());
        }
    }
}
