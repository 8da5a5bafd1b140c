//! Settings of the host of a server that `dyno doctor` advises against, changed for the time of a run. What was there before is in a
//! journal in the folder of the run, which is not removed before it is empty: whoever ends a killed agent takes the changes back.

use crate::options::WorkerOptions;
use dyno_engine::Error;
use dyno_engine::context::Context;
use dyno_engine::doctor::journal::{Journal, not_applied};
use dyno_observe::doctor::{Subject, examine, observe};
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
    folder: PathBuf,
    context: Context<'a>,
    /// Another agent may have its folder here, and change nothing.
    is_own: bool,
    /// What could not be changed, in words.
    pub(super) not_applied: Vec<String>,
}

impl<'a> HostSettings<'a> {
    /// Makes the changes that the agent was started for.
    ///
    /// # Errors
    /// What the kernel refuses. What was changed before is taken back.
    pub(super) fn apply(options: &WorkerOptions, context: Context<'a>) -> Result<Self, Error> {
        let mut settings = HostSettings {
            folder: options.folder.clone(),
            context,
            is_own: options.is_of_server(),
            not_applied: Vec::new(),
        };
        if !options.apply.is_empty() {
            let root = Path::new("/");
            let mut journal = Journal::open(&state_folder(&options.folder), root)?;
            let verdicts = examine(&observe(root, &Subject::default()));
            journal.apply(&verdicts, &options.apply, root, context.observer)?;
            let is_all = options.apply.len() == CheckName::ALL.len();
            // Who asks for all of them asks for what can be changed.
            let is_wanted = |verdict: &&Verdict| {
                let is_named = options.apply.contains(&verdict.check);
                is_named && verdict.level != Level::Pass && (!is_all || verdict.change.is_some())
            };
            let wanted = verdicts.iter().filter(is_wanted);
            settings.not_applied = wanted.filter_map(not_applied).collect();
        }
        Ok(settings)
    }
}

impl Drop for HostSettings<'_> {
    fn drop(&mut self) {
        if !self.is_own || !are_changed(&self.folder) {
            return;
        }
        let state = state_folder(&self.folder);
        let (root, observer) = (Path::new("/"), self.context.observer);
        let reverted =
            Journal::open(&state, root).and_then(|mut journal| journal.revert(root, observer));
        if let Err(error) = reverted {
            self.context.warning(format!(
                "settings of this host are not as before: {:#}; `dyno doctor --revert --state-dir {}` tries again",
                error.cause,
                state.display()
            ));
        }
    }
}
