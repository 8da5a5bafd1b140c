//! Settings of the host of a server that `dyno doctor` advises against, changed for the time of a run. What was there before is in a
//! journal in the folder of the run, which is not removed before it is empty: whoever ends a killed agent takes the changes back.

use crate::options::WorkerOptions;
use dyno_engine::Error;
use dyno_engine::context::Context;
use dyno_engine::doctor::journal::{Journal, not_applied};
use dyno_observe::doctor::{ServerFacts, Subject, examine, observe};
use dyno_record::verdict::{CheckName, Level, Verdict};
use std::path::{Path, PathBuf};

/// Folder of the journal in that of the run.
const STATE: &str = "state";
/// The journal itself.
const JOURNAL: &str = "doctor-undo.json";

/// Where an agent keeps what it has changed of its host.
pub(super) fn state_folder(folder: &Path) -> PathBuf {
    folder.join(STATE)
}

/// Whether changes have not been taken back.
pub(super) fn are_changed(folder: &Path) -> bool {
    state_folder(folder).join(JOURNAL).exists()
}

/// Changes of this host, which are taken back when this is dropped.
pub(super) struct HostSettings<'a> {
    options: &'a WorkerOptions,
    pub(super) context: Context<'a>,
    /// What could not be changed, in words.
    pub(super) not_applied: Vec<String>,
}

impl<'a> HostSettings<'a> {
    /// Nothing is changed yet.
    pub(super) fn new(options: &'a WorkerOptions, context: Context<'a>) -> Self {
        HostSettings {
            options,
            context,
            not_applied: Vec::new(),
        }
    }

    /// Makes the changes that the agent was started for, as its servers and their folders need them. What was changed before stays.
    ///
    /// # Errors
    /// What the kernel refuses.
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
            // Who asks for all of them asks for what can be changed.
            let is_all = wanted.len() == CheckName::ALL.len();
            let is_left = |verdict: &&Verdict| {
                own.contains(&verdict.check)
                    && verdict.level != Level::Pass
                    && (!is_all || verdict.change.is_some())
            };
            for left in verdicts.iter().filter(is_left).filter_map(not_applied) {
                // Folders of one disk have the same.
                if !self.not_applied.contains(&left) {
                    self.not_applied.push(left);
                }
            }
        }
        Ok(())
    }
}

/// What is checked of servers that are alike, once for each of their folders.
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

/// What the checks say of this host now: of several folders the worst.
pub(super) fn verdicts(subjects: &[Subject]) -> Vec<Verdict> {
    let mut all = subjects
        .iter()
        .map(|subject| examine(&observe(Path::new("/"), subject)));
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

/// Checks whose result depends on the folder of the data.
fn is_about_folder(check: CheckName) -> bool {
    matches!(
        check,
        CheckName::Readahead | CheckName::Filesystem | CheckName::AccessTimes | CheckName::FreeDisk
    )
}

impl Drop for HostSettings<'_> {
    fn drop(&mut self) {
        // Another agent may have its folder here, and change nothing.
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
                "settings of this host are not as before; `dyno doctor --revert --state-dir {}` tries again",
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
            let mut own = all
                .into_iter()
                .filter(|one| one.check == CheckName::FreeDisk);
            own.next().expect("there is one").level
        };
        let each = both.iter().map(|one| level(std::slice::from_ref(one)));
        assert_eq!(Some(level(&both)), each.max());
    }
}
