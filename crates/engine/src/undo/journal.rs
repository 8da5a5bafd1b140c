//! Journal of changes that are to be undone. An entry is written before its change is made: a
//! program that is killed in between leaves an entry too many, never one too few. Only one process
//! at a time has the journal open.

use super::parameters::ChangedParameter;
use super::step::{NotUndone, Step, Ways};
use crate::error::{Error, Kind, OrFault};
use crate::files::{PRIVATE, replace_file, write_error};
use crate::observer::SharedObserver;
use crate::owner::Owner;
use dyno_observe::doctor::change::{self, Reverted, Undo};
use dyno_observe::doctor::processes;
use dyno_record::verdict::{CheckName, Verdict};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FILE: &str = "doctor-undo.json";
/// Locked by the process that has the journal open. The journal file itself is replaced and
/// removed.
const LOCK: &str = "doctor-undo.lock";
const SCHEMA_VERSION: u32 = 1;

/// Changes that have not been undone.
#[derive(Debug)]
pub struct Journal<'a> {
    /// `None` if nothing is kept, because the changes end with this program.
    path: Option<PathBuf>,
    content: Content,
    ways: Ways<'a>,
    /// Other processes wait until it is closed.
    _lock: Option<File>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Content {
    schema_version: u32,
    /// Boot in which the changes were made; a restart undoes kernel changes.
    boot_id: Option<String>,
    /// Root of the changed files.
    root: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    step: Step,
    /// The process of the run that made the change and undoes it; absent if the doctor made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<Owner>,
}

impl Entry {
    fn new(step: Step) -> Self {
        let owner = Owner::current().filter(|_| step.is_of_run());
        Entry { step, owner }
    }

    /// The process that made the change, if it is another one and still runs.
    fn living_owner(&self) -> Option<Owner> {
        let other = self.owner.filter(|_| self.owner != Owner::current());
        other.filter(|owner| owner.lives())
    }
}

/// Folder of the journal.
pub fn folder(state_dir: Option<&Path>) -> Result<&Path, Error> {
    state_dir.ok_or_else(|| {
        Error::new(Kind::Environment, "cannot keep a list of changes: `HOME` is not set")
            .with_hint("name one with `--state-dir`")
    })
}

/// Result of undoing entries.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// Machine settings that were undone, in this order.
    pub reverted: Vec<Undo>,
    /// Server parameters that were undone, in this order.
    pub parameters: Vec<ChangedParameter>,
    /// Number of remaining entries: the value has changed since, cannot be set, or belongs to a run
    /// in progress.
    pub refused: usize,
}

/// Why [`Journal::apply`] changes nothing for a verdict; `None` if it does.
pub fn not_applied(verdict: &Verdict) -> Option<String> {
    let name = verdict.check;
    match &verdict.change {
        None => {
            let level = verdict.level.as_str();
            Some(format!("`{name}` ({level}): nothing to change"))
        }
        Some(change) if change.actions.is_empty() => {
            let command = &change.command;
            Some(format!("`{name}` must be changed by hand: {command}"))
        }
        Some(_) => None,
    }
}

impl Journal<'static> {
    /// Opens the journal in a folder for files below `root`; a missing one is empty. Waits while
    /// another process has it open, so keep it only while its entries must not change.
    pub fn open(folder: &Path, root: &Path) -> Result<Self, Error> {
        Journal::open_by(Some(folder), Ways::new(root, None))
    }
}

impl<'a> Journal<'a> {
    /// Like [`open`](Self::open), with explicit ways to the changed objects. Without a folder
    /// nothing is kept.
    pub fn open_by(folder: Option<&Path>, ways: Ways<'a>) -> Result<Self, Error> {
        let empty = Content {
            schema_version: SCHEMA_VERSION,
            boot_id: processes::boot_id(&ways.root).ok(),
            root: ways.root.clone(),
            entries: Vec::new(),
        };
        let Some(folder) = folder else {
            return Ok(Journal { path: None, content: empty, ways, _lock: None });
        };
        let lock = lock(folder)?;
        let path = folder.join(FILE);
        let content = read(&path, empty)?;
        Ok(Journal { path: Some(path), content, ways, _lock: Some(lock) })
    }

    /// Refuses a change that another run has made and not undone: its value would pass for the
    /// original one.
    ///
    /// # Errors
    /// There is such a run.
    pub(crate) fn check_runs(&self, counts: impl Fn(&Step) -> bool) -> Result<(), Error> {
        let mut steps = self.content.entries.iter().map(|entry| &entry.step);
        let Some(step) = steps.find(|step| step.is_of_run() && counts(step)) else {
            return Ok(());
        };
        let text = format!("another run has set {} and not restored it", step.subject());
        Err(Error::new(Kind::Environment, text)
            .with_hint("run `dyno doctor --revert` once that run has ended; if the value has changed since, restore it first"))
    }

    /// Makes the changes that the verdicts of these checks request, and returns them.
    pub fn apply(
        &mut self,
        verdicts: &[Verdict],
        wanted: &[CheckName],
        observer: &dyn SharedObserver,
    ) -> Result<Vec<Undo>, Error> {
        let all = wanted.len() == CheckName::ALL.len();
        let mut changed = Vec::new();
        for verdict in verdicts.iter().filter(|verdict| wanted.contains(&verdict.check)) {
            if let Some(text) = not_applied(verdict) {
                match verdict.change {
                    Some(_) => observer.warning(&text),
                    None if all => {}
                    None => observer.note(&text),
                }
                continue;
            }
            let (name, Some(change)) = (verdict.check, &verdict.change) else {
                continue;
            };
            let hint = format!("run it yourself: {}", change.command);
            let steps = change::prepare(name, change, &self.ways.root);
            let steps = steps.map_err(|error| Error::from_cause(Kind::Environment, error));
            for undo in steps.with_hint(&hint)? {
                self.perform(&mut undo.clone().into()).with_hint(&hint)?;
                changed.push(undo);
            }
        }
        Ok(changed)
    }

    /// Performs the steps that change something, and updates each with the value read back. If a
    /// step fails, the earlier ones are undone.
    pub fn perform_all(
        &mut self,
        steps: &mut [Step],
        observer: &dyn SharedObserver,
    ) -> Result<(), Error> {
        for number in 0..steps.len() {
            if !steps[number].is_needed() {
                continue;
            }
            if let Err(failure) = self.perform(&mut steps[number]) {
                if let Err(second) = self.take_back(&steps[..number], observer) {
                    // The caller needs the first failure, which caused the undo.
                    observer.warning(&format!(
                        "cannot undo all earlier changes: {}; `dyno doctor --revert` tries again",
                        second.reason()
                    ));
                }
                return Err(failure);
            }
        }
        Ok(())
    }

    fn perform(&mut self, step: &mut Step) -> Result<(), Error> {
        self.content.entries.push(Entry::new(step.clone()));
        self.save()?;
        let set = match self.ways.perform(step) {
            Ok(set) if set == *step => return Ok(()),
            Err(failed) if failed.is_left => {
                let hint = "run `dyno doctor --revert` once the server answers";
                return Err(failed.failure.with_hint(hint));
            }
            set => set,
        };
        self.content.entries.pop();
        let result = set.map_err(|failed| failed.failure).map(|set| *step = set);
        if result.is_ok() && step.is_needed() {
            self.content.entries.push(Entry::new(step.clone()));
        }
        self.save()?;
        result
    }

    /// Undoes steps, the last one first, and leaves the other entries of the journal. Warns and
    /// keeps the entry if the value was changed by others or cannot be set.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn take_back(
        &mut self,
        steps: &[Step],
        observer: &dyn SharedObserver,
    ) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        for step in steps.iter().rev().filter(|step| step.is_needed()) {
            let undone = match self.ways.undo(step) {
                Ok(undone) => undone,
                Err(problem) => {
                    outcome.refused += 1;
                    self.tell_left(step, problem, observer);
                    continue;
                }
            };
            let entries = &mut self.content.entries;
            if let Some(place) = entries.iter().rposition(|entry| entry.step == *step) {
                entries.remove(place);
                self.save()?;
            }
            let subject = step.subject();
            match (undone, step) {
                (Reverted::Now, Step::Kernel(undo)) => outcome.reverted.push(undo.clone()),
                (Reverted::Now, Step::Parameter(own)) => outcome.parameters.push((**own).clone()),
                (Reverted::Already, _) => {
                    let before = step.before();
                    observer.note(&format!("{subject} is already `{before}` again"));
                }
                (Reverted::Gone, Step::Kernel(_)) => observer
                    .note(&format!("{subject} no longer exists, so there is nothing to undo")),
                (Reverted::Gone, Step::Parameter(_)) => observer
                    .note(&format!("{subject} has its start value: the server was restarted")),
            }
        }
        Ok(outcome)
    }

    fn tell_left(&self, step: &Step, problem: NotUndone, observer: &dyn SharedObserver) {
        let place = self.path.as_ref().map(|path| path.display());
        let text = match (problem, place) {
            (NotUndone::Changed(found), None) => format!("{found}; it is left unchanged"),
            (NotUndone::Changed(found), Some(place)) => format!(
                "{found}; it is left unchanged (the earlier value was `{}`); remove the entry from `{place}` if that is right",
                step.before()
            ),
            // A server started by this program ends with its parameters.
            (NotUndone::Failed(failure), None) if failure.kind == Kind::Environment => return,
            (NotUndone::Failed(failure), _) => format!(
                "cannot restore {} to `{}`: {}; `dyno doctor --revert` tries again{}",
                step.subject(),
                step.before(),
                failure.reason(),
                failure.hint.map_or_else(String::new, |hint| format!("; {hint}"))
            ),
        };
        observer.warning(&text);
    }

    /// Undoes all changes, the last one first, except changes of runs in progress.
    ///
    /// # Errors
    /// See [`take_back`](Self::take_back).
    pub fn revert(&mut self, observer: &dyn SharedObserver) -> Result<Outcome, Error> {
        let (mut steps, mut kept) = (Vec::new(), 0);
        for entry in &self.content.entries {
            let Some(owner) = entry.living_owner() else {
                steps.push(entry.step.clone());
                continue;
            };
            kept += 1;
            observer.warning(&format!(
                "{} is left unchanged: the run of process {} is in progress and restores it at its end",
                entry.step.subject(),
                owner.process()
            ));
        }
        let mut outcome = self.take_back(&steps, observer)?;
        outcome.refused += kept;
        Ok(outcome)
    }

    /// Writes the journal, or removes its file if it is empty.
    fn save(&self) -> Result<(), Error> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let is_empty = self.content.entries.is_empty();
        keep(path, (!is_empty).then_some(&self.content))
    }
}

/// Reads a journal; returns `empty` without a file.
fn read(path: &Path, empty: Content) -> Result<Content, Error> {
    let text = match read_own(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(empty),
        text => text.map_err(|error| unusable(path, error))?,
    };
    let mut content: Content =
        serde_json::from_str(&text).map_err(|error| unusable(path, error))?;
    let of_kernel = content.entries.iter().filter_map(|entry| match &entry.step {
        Step::Kernel(undo) => Some(undo),
        Step::Parameter(_) => None,
    });
    if let Some(undo) = of_kernel.into_iter().find(|undo| !undo.is_of_kernel()) {
        let text =
            format!("`{}` is not a setting of the kernel or of a mount", undo.revert_command());
        return Err(unusable(path, anyhow::anyhow!(text)));
    }
    if content.schema_version != SCHEMA_VERSION {
        let version = content.schema_version;
        return Err(unusable(path, anyhow::anyhow!("it has version {version}")));
    }
    if content.root != empty.root {
        let other = content.root.display();
        return Err(unusable(path, anyhow::anyhow!("it is about `{other}`")));
    }
    if content.boot_id != empty.boot_id {
        // A restart undoes kernel settings and mount options.
        content.boot_id = empty.boot_id;
        let mut entries = content.entries;
        entries.retain(|entry| matches!(entry.step, Step::Parameter(_)));
        content.entries = entries;
    }
    Ok(content)
}

/// Writes a list of changes, or removes the file without one.
fn keep(path: &Path, list: Option<&impl Serialize>) -> Result<(), Error> {
    let Some(list) = list else {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(path, error)),
            _ => Ok(()),
        };
    };
    let mut text =
        serde_json::to_string_pretty(list).expect("paths from options and texts can be written");
    text.push('\n');
    replace_file(path, text.as_bytes(), PRIVATE)
        .map_err(|error| write_error(error).context(format!("cannot write `{}`", path.display())))
}

/// Reads a journal that only this user can have written: its entries are applied, often as root.
fn read_own(path: &Path) -> io::Result<String> {
    let mut file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != nix::unistd::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        let text = "it belongs to another user, or others can write to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Waits for other processes that use the journal of this folder. The lock ends with the file, and
/// so with the process.
fn lock(folder: &Path) -> Result<File, Error> {
    std::fs::create_dir_all(folder)
        .or_fault(Kind::Environment, || format!("cannot make the folder `{}`", folder.display()))
        .with_hint("choose another one with `--state-dir`; nothing was changed")?;
    let path = folder.join(LOCK);
    let open = || {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)?;
        file.lock()?;
        Ok::<File, io::Error>(file)
    };
    open()
        .or_fault(Kind::Environment, || format!("cannot lock `{}`", path.display()))
        .with_hint("choose another folder with `--state-dir`; nothing was changed")
}

fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot use the list of changes `{}`", path.display()))
        .with_hint("check and remove it, or choose another folder with `--state-dir`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;
    use crate::undo::parameters::tests::change;
    use dyno_record::verdict::Action;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;
    use std::time::Duration;
    use tempfile::TempDir;

    /// A step that sets a file of the tree from 0 to 1.
    fn step(root: &Path, name: &str) -> Step {
        fs::create_dir_all(root.join("sys")).unwrap();
        fs::write(root.join("sys").join(name), "0\n").unwrap();
        Step::Kernel(Undo {
            check: None,
            action: Action::Write { path: Path::new("/sys").join(name), value: "1".into() },
            before: "0".into(),
        })
    }

    #[test]
    fn concurrent_changes_lose_no_journal_entry() {
        let folder = TempDir::new().unwrap();
        let (state, root) = (folder.path().join("state"), folder.path().join("machine"));
        let (first, second) = (step(&root, "first"), step(&root, "second"));
        let observer = &Unobserved;
        let mut journal = Journal::open(&state, &root).unwrap();
        let (opened, is_open) = mpsc::channel();
        let other = {
            let (state, root) = (state.clone(), root.clone());
            std::thread::spawn(move || {
                let mut journal = Journal::open(&state, &root).unwrap();
                opened.send(()).unwrap();
                journal.perform_all(&mut [second], observer).unwrap();
            })
        };
        let early = is_open.recv_timeout(Duration::from_millis(200));
        assert!(early.is_err(), "the journal is open twice");
        journal.perform_all(&mut [first], observer).unwrap();
        drop(journal);
        other.join().unwrap();
        let journal = Journal::open(&state, &root).unwrap();
        assert_eq!(journal.content.entries.len(), 2);
    }

    /// Why a journal with this entry and this mode is refused.
    fn refusal(action: Action, before: &str, mode: u32) -> Option<String> {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("machine");
        let content = Content {
            schema_version: SCHEMA_VERSION,
            boot_id: None,
            root: root.clone(),
            entries: vec![Entry::new(Step::Kernel(Undo {
                check: None,
                action,
                before: before.into(),
            }))],
        };
        let path = folder.path().join(FILE);
        fs::write(&path, serde_json::to_string(&content).unwrap()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = Journal::open(folder.path(), &root);
        opened.err().map(|error| error.to_string())
    }

    #[test]
    fn journal_changes_only_kernel_settings_and_mounts() {
        let write = |path: &str| Action::Write { path: path.into(), value: "1".into() };
        let mount = |point: &str, value: &str| Action::Remount {
            mount_point: point.into(),
            value: value.into(),
        };
        for action in [write("/proc/sys/vm/swappiness"), write("/sys/block/a/queue/b")] {
            assert_eq!(refusal(action, "0", 0o600), None);
        }
        assert_eq!(refusal(mount("/data", "noatime"), "relatime", 0o644), None);
        for (action, before) in [
            (write("/etc/cron.d/job"), "* * * * * root id"),
            (write("/sys/../etc/passwd"), "0"),
            (write("sys/a"), "0"),
            (mount("/data", "noatime"), "suid"),
            (mount("/data", "noatime,suid"), "relatime"),
            (mount("-obind", "noatime"), "relatime"),
        ] {
            let shown = format!("{action:?}");
            let refused = refusal(action, before, 0o600).expect(&shown);
            assert!(refused.contains(&format!("{FILE}`")), "{refused}");
        }
    }

    #[test]
    fn journal_writable_by_others_is_refused() {
        let action = Action::Write { path: "/sys/a".into(), value: "1".into() };
        for mode in [0o602, 0o620, 0o660, 0o666] {
            assert!(refusal(action.clone(), "0", mode).is_some(), "{mode:o}");
        }
        assert_eq!(refusal(action, "0", 0o644), None);
    }

    #[test]
    fn a_journal_is_written_for_its_owner_alone() {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("machine");
        let mut journal = Journal::open(folder.path(), &root).unwrap();
        let step = step(&root, "a");
        journal.perform_all(&mut [step], &Unobserved).unwrap();
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn first_failure_is_reported_when_the_undo_fails() {
        let folder = TempDir::new().unwrap();
        let (state, root) = (folder.path().join("state"), folder.path().join("machine"));
        let lost = state.clone();
        // The journal cannot be written once the server has failed.
        let mut ways = Ways::to_servers(move |_| {
            let _ = fs::remove_dir_all(&lost);
            Err(Error::new(Kind::Environment, "the server is gone"))
        });
        ways.root = root.clone();
        let mut journal = Journal::open_by(Some(state.as_path()), ways).unwrap();
        let mut steps = [step(&root, "a"), Step::Parameter(Box::new(change("b")))];
        let failure = journal.perform_all(&mut steps, &Unobserved).unwrap_err();
        assert_eq!(failure.to_string(), "the server is gone");
        assert_eq!(fs::read_to_string(root.join("sys/a")).unwrap(), "0\n");
    }

    #[test]
    fn parameters_outlive_program_and_restart_with_their_types() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        let boot_id = root.join("proc/sys/kernel/random/boot_id");
        fs::create_dir_all(boot_id.parent().unwrap()).unwrap();
        fs::write(&boot_id, "one\n").unwrap();
        let mut journal = Journal::open(root, root).unwrap();
        let parameters = ["a", "b"].map(|name| Step::Parameter(Box::new(change(name))));
        journal
            .content
            .entries
            .extend([step(root, "a")].into_iter().chain(parameters.clone()).map(Entry::new));
        journal.save().unwrap();
        drop(journal);
        let found = |journal: &Journal<'_>| -> Vec<Step> {
            journal.content.entries.iter().map(|entry| entry.step.clone()).collect()
        };
        let journal = Journal::open(root, root).unwrap();
        assert_eq!(found(&journal)[1..], parameters);
        assert!(journal.check_runs(Step::is_of_machine).is_err());
        drop(journal);
        fs::write(&boot_id, "two\n").unwrap();
        let journal = Journal::open(root, root).unwrap();
        assert_eq!(found(&journal), parameters);
        assert!(journal.check_runs(Step::is_of_machine).is_ok());
        let is_of = |wanted: &Step| {
            let subject = wanted.subject();
            move |step: &Step| step.subject() == subject
        };
        assert!(journal.check_runs(is_of(&parameters[1])).is_err());
        assert!(journal.check_runs(is_of(&Step::Parameter(Box::new(change("c"))))).is_ok());
        assert!(journal.check_runs(|step| step.is_of_deployment(&change("a").uri)).is_err());
    }

    #[test]
    fn revert_keeps_settings_of_a_living_process() {
        let folder = TempDir::new().unwrap();
        let root = folder.path();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let owner = Owner::of(i32::try_from(child.id()).unwrap());
        let mut journal = Journal::open(root, root).unwrap();
        let mut steps = [step(root, "a")];
        journal.perform_all(&mut steps, &Unobserved).unwrap();
        journal.content.entries[0].owner = owner;
        let value = || fs::read_to_string(root.join("sys/a")).unwrap();
        let outcome = journal.revert(&Unobserved).unwrap();
        assert_eq!((outcome.reverted.len(), outcome.refused), (0, 1));
        assert_eq!(value(), "1\n");
        child.kill().unwrap();
        child.wait().unwrap();
        let outcome = journal.revert(&Unobserved).unwrap();
        assert_eq!((outcome.reverted.len(), outcome.refused), (1, 0));
        assert_eq!(value(), "0\n");
    }
}
