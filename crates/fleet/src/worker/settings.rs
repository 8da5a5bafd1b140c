//! Changes settings of a server host that `dyno doctor` advises against, for the time of the run. A journal in the run's folder
//! holds the previous values, and the folder is kept until the journal is empty, so that the changes can be reverted after an agent
//! was killed.

use crate::options::WorkerOptions;
use dyno_engine::Error;
use dyno_engine::context::Context;
use dyno_engine::undo::journal::{Journal, not_applied};
use dyno_observe::doctor::{ServerFacts, Subject, examine, observe};
use dyno_record::verdict::{CheckName, Level, Verdict};
use std::path::{Path, PathBuf};

/// Folder of the journal, below the run's folder.
const STATE: &str = "state";
/// File name of the journal.
const JOURNAL: &str = "doctor-undo.json";

/// Folder in which an agent records its changes to the host.
pub(super) fn state_folder(folder: &Path) -> PathBuf {
    folder.join(STATE)
}

/// Whether changes are still to be reverted.
pub(super) fn are_changed(folder: &Path) -> bool {
    state_folder(folder).join(JOURNAL).exists()
}

/// Changes of this host's settings; reverted on drop.
pub(super) struct AppliedSettings<'a> {
    options: &'a WorkerOptions,
    pub(super) context: Context<'a>,
    /// Settings that could not be changed, as texts.
    pub(super) not_applied: Vec<String>,
}

impl<'a> AppliedSettings<'a> {
    /// Starts without any change.
    pub(super) fn new(options: &'a WorkerOptions, context: Context<'a>) -> Self {
        AppliedSettings { options, context, not_applied: Vec::new() }
    }

    /// Applies the requested changes (`--apply`) for these servers and folders. Earlier changes stay.
    ///
    /// # Errors
    /// The kernel refuses a change.
    pub(super) fn apply(&mut self, subjects: &[Subject]) -> Result<(), Error> {
        self.not_applied.clear();
        let wanted = &self.options.apply;
        if wanted.is_empty() {
            return Ok(());
        }
        let root = Path::new("/");
        let mut journal = Journal::open(&state_folder(&self.options.folder), root)?;
        for (number, subject) in subjects.iter().enumerate() {
            let verdicts = examine(&observe(root, subject));
            let is_new = |check: &CheckName| number == 0 || is_about_folder(*check);
            let own: Vec<CheckName> = wanted.iter().copied().filter(is_new).collect();
            journal.apply(&verdicts, &own, self.context.observer)?;
            // `--apply` of all checks covers only the changeable ones.
            let is_all = wanted.len() == CheckName::ALL.len();
            let is_left = |verdict: &&Verdict| {
                own.contains(&verdict.check)
                    && verdict.level != Level::Pass
                    && (!is_all || verdict.change.is_some())
            };
            for left in verdicts.iter().filter(is_left).filter_map(not_applied) {
                // Folders on one disk have the same settings.
                if !self.not_applied.contains(&left) {
                    self.not_applied.push(left);
                }
            }
        }
        Ok(())
    }
}

/// Subjects to check for servers that are alike: one for each of their folders.
pub(super) fn subjects(server: Option<&ServerFacts>, folders: &[PathBuf]) -> Vec<Subject> {
    let subject = |folder: Option<&PathBuf>| Subject {
        data_dir: folder.cloned(),
        server: server.cloned(),
        ..Subject::default()
    };
    match folders {
        [] => vec![subject(None)],
        folders => folders.iter().map(|folder| subject(Some(folder))).collect(),
    }
}

/// Verdicts of the host checks; over several folders, the worst.
pub(super) fn verdicts(subjects: &[Subject]) -> Vec<Verdict> {
    let mut all = subjects.iter().map(|subject| examine(&observe(Path::new("/"), subject)));
    let mut worst = all.next().unwrap_or_default();
    for verdicts in all {
        for (known, other) in worst.iter_mut().zip(verdicts) {
            if other.level > known.level {
                *known = other;
            }
        }
    }
    worst
}

/// Whether the result of a check depends on the data folder.
fn is_about_folder(check: CheckName) -> bool {
    matches!(
        check,
        CheckName::Readahead | CheckName::Filesystem | CheckName::AccessTimes | CheckName::FreeDisk
    )
}

impl Drop for AppliedSettings<'_> {
    fn drop(&mut self) {
        // Another agent may use this folder without changing settings.
        let is_own = self.options.is_of_server() || !self.options.apply.is_empty();
        if !is_own || !are_changed(&self.options.folder) {
            return;
        }
        let state = state_folder(&self.options.folder);
        let (root, observer) = (Path::new("/"), self.context.observer);
        let reverted = Journal::open(&state, root)
            .and_then(|mut journal| journal.revert(observer).map(|_| ()));
        if let Err(error) = &reverted {
            self.context.warning(error.reason());
        }
        if are_changed(&self.options.folder) {
            self.context.warning(format!(
                "settings of this host are not restored; run `dyno doctor --revert --state-dir {}` to try again",
                state.display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_is_checked_and_the_worst_counts() {
        let server = ServerFacts::default();
        assert_eq!(subjects(None, &[]), [Subject::default()]);
        let folders: [PathBuf; 2] = ["/".into(), "/proc".into()];
        let both = subjects(Some(&server), &folders);
        assert!(both.iter().all(|one| one.server.as_ref() == Some(&server)));
        let level = |subjects: &[Subject]| {
            let all = verdicts(subjects);
            let mut own = all.into_iter().filter(|one| one.check == CheckName::FreeDisk);
            own.next().expect("present").level
        };
        let each = both.iter().map(|one| level(std::slice::from_ref(one)));
        assert_eq!(Some(level(&both)), each.max());
    }
}
