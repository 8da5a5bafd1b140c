//! Files of the kernel that have other values for the time of a run. What was there before is kept in the journal of
//! `dyno doctor`, so that `dyno doctor --revert` can put it back when this program was killed.

use crate::doctor::journal::Journal;
use crate::error::Error;
use crate::observer::SharedObserver;
use dyno_observe::doctor::change::{self, Undo};
use std::path::{Path, PathBuf};

/// Files with the values of a run. They have those from before when this is dropped.
pub(super) struct FileChanges<'a> {
    root: PathBuf,
    /// Folder of the journal.
    folder: PathBuf,
    observer: &'a dyn SharedObserver,
    /// What is told where they cannot be put back.
    left: String,
    /// All files, as they were and as they are.
    pub(super) files: Vec<Undo>,
    /// What is to be put back: files that were as wanted are not touched.
    pub(super) changed: Vec<Undo>,
}

impl<'a> FileChanges<'a> {
    /// Writes these values. The journal is that of `folder`, opened before the files were read, so that nobody has changed them
    /// meanwhile. `left` begins the warning that is given if they cannot be put back.
    ///
    /// # Errors
    /// What the kernel refuses. What was written until then is put back.
    pub(super) fn make(
        files: Vec<Undo>,
        mut journal: Journal,
        [folder, root]: [&Path; 2],
        left: String,
        observer: &'a dyn SharedObserver,
    ) -> Result<Self, Error> {
        let changed = files.iter().filter(|undo| undo.before != undo.value());
        let changed: Vec<Undo> = changed.cloned().collect();
        journal.perform_all(&changed, root, observer)?;
        Ok(FileChanges {
            root: root.to_owned(),
            folder: folder.to_owned(),
            observer,
            left,
            files,
            changed,
        })
    }

    /// What is in each file now; `None` for one that cannot be read.
    pub(super) fn now(&self) -> impl Iterator<Item = Option<String>> {
        let now = |undo| change::value_now(undo, &self.root).ok();
        self.files.iter().map(now)
    }
}

impl Drop for FileChanges<'_> {
    /// Puts back what was there before. What cannot be put back is told, with the way to do it by hand.
    fn drop(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return;
        }
        let restored = Journal::open(&self.folder, &self.root)
            .and_then(|mut journal| journal.take_back(&changed, &self.root, self.observer));
        if let Err(failure) = restored {
            let commands: Vec<String> = changed.iter().map(Undo::revert_command).collect();
            self.observer.warning(&format!(
                "{}: {:#}; `dyno doctor --revert` tries again, or type: {}",
                self.left,
                failure.cause,
                commands.join("; ")
            ));
        }
    }
}
