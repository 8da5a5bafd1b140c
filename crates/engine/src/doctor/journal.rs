//! Keeps what was changed until it is taken back. An entry is written before its change is made: a
//! program that is killed in between leaves an entry too many, never one too few. One process at a
//! time has the journal open.

use crate::error::{Error, Kind, OrFault};
use crate::files::{replace_private_file, write_error};
use crate::observer::SharedObserver;
use dyno_observe::doctor::change::{self, ChangeError, Reverted, Run, Undo};
use dyno_observe::doctor::processes;
use dyno_record::verdict::{CheckName, Verdict};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FILE: &str = "doctor-undo.json";
/// Locked by the process that has the journal open. The journal itself is replaced and removed.
const LOCK: &str = "doctor-undo.lock";
const SCHEMA_VERSION: u32 = 1;

/// What was changed and is not taken back yet.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    content: Content,
    /// Others wait until it is closed.
    _lock: File,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    schema_version: u32,
    /// The start of the machine that the changes were made after; a restart undoes them.
    boot_id: Option<String>,
    /// The tree that was changed.
    root: PathBuf,
    entries: Vec<Undo>,
}

/// The folder for the journal.
pub fn folder(state_dir: Option<&Path>) -> Result<&Path, Error> {
    state_dir.ok_or_else(|| {
        Error::new(
            Kind::Environment,
            "there is no folder to keep what was changed in: `HOME` is not set",
        )
        .with_hint("name one with `--state-dir`")
    })
}

/// What became of the entries.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// Taken back, in this order.
    pub reverted: Vec<Undo>,
    /// Entries whose value somebody else has changed; they are kept.
    pub refused: usize,
}

/// Why [`Journal::apply`] changes nothing for a verdict; `None` if it does.
pub fn not_applied(verdict: &Verdict) -> Option<String> {
    let name = verdict.check;
    match &verdict.change {
        None => {
            let level = verdict.level.as_str();
            Some(format!("`{name}` ({level}): there is nothing to change"))
        }
        Some(change) if change.actions.is_empty() => {
            let command = &change.command;
            Some(format!("`{name}` must be changed by hand: {command}"))
        }
        Some(_) => None,
    }
}

impl Journal {
    /// Opens the journal of a folder; one that is not there is empty. Waits while another one is open,
    /// so keep it for as long as its entries must not change, and no longer.
    pub fn open(folder: &Path, root: &Path) -> Result<Self, Error> {
        let lock = lock(folder)?;
        let path = folder.join(FILE);
        let empty = Content {
            schema_version: SCHEMA_VERSION,
            boot_id: processes::boot_id(root).ok(),
            root: root.to_owned(),
            entries: Vec::new(),
        };
        let text = match read_own(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Journal {
                    path,
                    content: empty,
                    _lock: lock,
                });
            }
            text => text.map_err(|error| unusable(&path, error))?,
        };
        let content: Content =
            serde_json::from_str(&text).map_err(|error| unusable(&path, error))?;
        if let Some(undo) = content.entries.iter().find(|undo| !undo.is_of_kernel()) {
            let text = format!(
                "`{}` is not a setting of the kernel or of a mount",
                undo.revert_command()
            );
            return Err(unusable(&path, anyhow::anyhow!(text)));
        }
        if content.schema_version != SCHEMA_VERSION {
            let version = content.schema_version;
            return Err(unusable(&path, anyhow::anyhow!("it has version {version}")));
        }
        if content.root != root {
            let other = content.root.display();
            return Err(unusable(&path, anyhow::anyhow!("it is about `{other}`")));
        }
        // Nothing of what is set in the kernel or for a mount outlives a restart.
        let restarted = content.boot_id != empty.boot_id;
        Ok(Journal {
            path,
            content: if restarted { empty } else { content },
            _lock: lock,
        })
    }

    /// Refuses a file that another run has set and not put back: what it held before would be taken for what belongs there.
    ///
    /// # Errors
    /// There is such a run.
    pub(crate) fn check_run(&self, file: &Path) -> Result<(), Error> {
        self.check_runs(|entry| entry.target() == file)
    }

    /// As [`check_run`](Self::check_run), of all that runs set.
    ///
    /// # Errors
    /// There is such a run.
    pub(crate) fn check_all_runs(&self) -> Result<(), Error> {
        self.check_runs(|_| true)
    }

    fn check_runs(&self, counts: impl Fn(&Undo) -> bool) -> Result<(), Error> {
        let mut of_runs = self
            .content
            .entries
            .iter()
            .filter(|entry| entry.check.is_none());
        let Some(entry) = of_runs.find(|entry| counts(entry)) else {
            return Ok(());
        };
        let file = entry.target().display();
        let text = format!("another run has set `{file}` and not put it back");
        Err(Error::new(Kind::Environment, text)
            .with_hint("`dyno doctor --revert` does, once that run has ended"))
    }

    /// Makes the changes that the verdicts of these checks ask for. Returns what was changed.
    pub fn apply(
        &mut self,
        verdicts: &[Verdict],
        wanted: &[CheckName],
        root: &Path,
        observer: &dyn SharedObserver,
    ) -> Result<Vec<Undo>, Error> {
        let all = wanted.len() == CheckName::ALL.len();
        let mut changed = Vec::new();
        for verdict in verdicts
            .iter()
            .filter(|verdict| wanted.contains(&verdict.check))
        {
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
            let command = &change.command;
            for step in
                change::prepare(name, change, root).map_err(|error| failure(error, command))?
            {
                self.perform(&step, root)
                    .map_err(|failure| failure.with_hint(format!("type it yourself: {command}")))?;
                changed.push(step);
            }
        }
        Ok(changed)
    }

    /// Performs steps; if one of them fails, those before it are taken back.
    pub fn perform_all(
        &mut self,
        steps: &[Undo],
        root: &Path,
        observer: &dyn SharedObserver,
    ) -> Result<(), Error> {
        for (number, step) in steps.iter().enumerate() {
            if let Err(failure) = self.perform(step, root) {
                self.take_back(&steps[..number], root, observer)?;
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Takes steps back, the last one first, and leaves the rest of the journal as it is. What somebody
    /// else has changed is left alone, and its entry is kept.
    pub fn take_back(
        &mut self,
        steps: &[Undo],
        root: &Path,
        observer: &dyn SharedObserver,
    ) -> Result<(), Error> {
        for step in steps.iter().rev() {
            match change::revert(step, root, runner(root)) {
                Ok(Reverted::Now | Reverted::Already | Reverted::Gone) => {
                    let entries = &mut self.content.entries;
                    if let Some(place) = entries.iter().rposition(|entry| entry == step) {
                        entries.remove(place);
                    }
                    self.save()?;
                }
                Err(error @ ChangeError::ChangedMeanwhile { .. }) => {
                    self.left_alone(step, &error, observer);
                }
                Err(error) => return Err(failure(error, &step.revert_command())),
            }
        }
        Ok(())
    }

    fn left_alone(&self, undo: &Undo, error: &ChangeError, observer: &dyn SharedObserver) {
        let place = self.path.display();
        observer.warning(&format!(
            "{error}; it is left as it is (before it was `{}`); remove the entry from `{place}` if that is right",
            undo.before
        ));
    }

    fn perform(&mut self, step: &Undo, root: &Path) -> Result<(), Error> {
        self.content.entries.push(step.clone());
        self.save()?;
        let result = change::apply(step, root, runner(root));
        if result.is_err() {
            self.content.entries.pop();
            self.save()?;
        }
        result.map_err(|error| failure(error, &step.command()))
    }

    /// Takes everything back, the last change first. What somebody else has changed is left alone.
    pub fn revert(&mut self, root: &Path, observer: &dyn SharedObserver) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let mut kept = Vec::new();
        while let Some(undo) = self.content.entries.pop() {
            match change::revert(&undo, root, runner(root)) {
                Ok(Reverted::Now) => outcome.reverted.push(undo),
                Ok(Reverted::Already) => observer.note(&format!(
                    "`{}` was `{}` again already",
                    undo.target().display(),
                    undo.before
                )),
                Ok(Reverted::Gone) => observer.note(&format!(
                    "`{}` is not there any more, nothing is left to take back",
                    undo.target().display()
                )),
                Err(error @ ChangeError::ChangedMeanwhile { .. }) => {
                    self.left_alone(&undo, &error, observer);
                    outcome.refused += 1;
                    kept.push(undo);
                }
                Err(error) => {
                    let command = undo.revert_command();
                    self.content.entries.push(undo);
                    self.content.entries.extend(kept.into_iter().rev());
                    self.save()?;
                    return Err(failure(error, &command));
                }
            }
        }
        self.content.entries.extend(kept.into_iter().rev());
        self.save()?;
        Ok(outcome)
    }

    /// A journal without entries is no file.
    fn save(&self) -> Result<(), Error> {
        let is_empty = self.content.entries.is_empty();
        keep(&self.path, (!is_empty).then_some(&self.content))
    }
}

/// Writes a list of changes; without one there is no file.
pub(super) fn keep(path: &Path, list: Option<&impl Serialize>) -> Result<(), Error> {
    let Some(list) = list else {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(path, error)),
            _ => Ok(()),
        };
    };
    let mut text =
        serde_json::to_string_pretty(list).expect("paths from options and texts can be written");
    text.push('\n');
    replace_private_file(path, text.as_bytes())
        .map_err(|error| write_error(error).context(format!("cannot write `{}`", path.display())))
}

/// Reads a journal that this user alone can have written: what it says is done, often by root.
pub(super) fn read_own(path: &Path) -> io::Result<String> {
    let mut file = File::options()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != nix::unistd::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        let text = "it belongs to another user, or others can write to it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Waits for the others that use the journal of this folder. The lock ends with the file, and so with
/// the process.
pub(super) fn lock(folder: &Path) -> Result<File, Error> {
    std::fs::create_dir_all(folder)
        .or_fault(Kind::Environment, || {
            format!("cannot make the folder `{}`", folder.display())
        })
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
        .or_fault(Kind::Environment, || {
            format!("cannot lock `{}`", path.display())
        })
        .with_hint("choose another folder with `--state-dir`; nothing was changed")
}

/// Programs change this machine, never a tree of files that stands for one.
fn runner(root: &Path) -> Run<'static> {
    if root == Path::new("/") {
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

fn failure(error: ChangeError, command: &str) -> Error {
    let denied = matches!(
        &error,
        ChangeError::Set { source, .. } if source.kind() == io::ErrorKind::PermissionDenied
    );
    let failure = Error::from_cause(Kind::Environment, error);
    if denied {
        failure.with_hint(format!("run it as root, or type: {command}"))
    } else {
        failure
    }
}

pub(super) fn unusable(path: &Path, error: impl Into<anyhow::Error>) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!(
            "cannot use the list of changes `{}`",
            path.display()
        ))
        .with_hint("look into it, then remove it, or choose another folder with `--state-dir`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observer::Unobserved;
    use dyno_record::verdict::Action;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;
    use std::time::Duration;
    use tempfile::TempDir;

    /// Sets a file of the tree from 0 to 1.
    fn step(root: &Path, name: &str) -> Undo {
        fs::create_dir_all(root.join("sys")).unwrap();
        fs::write(root.join("sys").join(name), "0\n").unwrap();
        Undo {
            check: None,
            action: Action::Write {
                path: Path::new("/sys").join(name),
                value: "1".into(),
            },
            before: "0".into(),
        }
    }

    #[test]
    fn of_two_that_change_something_at_once_no_entry_is_lost() {
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
                journal.perform_all(&[second], &root, observer).unwrap();
            })
        };
        let early = is_open.recv_timeout(Duration::from_millis(200));
        assert!(early.is_err(), "two have the journal open");
        journal.perform_all(&[first], &root, observer).unwrap();
        drop(journal);
        other.join().unwrap();
        let journal = Journal::open(&state, &root).unwrap();
        assert_eq!(journal.content.entries.len(), 2);
    }

    /// What is in the way of a journal with this entry and this mode.
    fn refusal(action: Action, before: &str, mode: u32) -> Option<String> {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("machine");
        let content = Content {
            schema_version: SCHEMA_VERSION,
            boot_id: None,
            root: root.clone(),
            entries: vec![Undo {
                check: None,
                action,
                before: before.into(),
            }],
        };
        let path = folder.path().join(FILE);
        fs::write(&path, serde_json::to_string(&content).unwrap()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = Journal::open(folder.path(), &root);
        opened.err().map(|error| error.to_string())
    }

    #[test]
    fn a_journal_changes_nothing_but_the_kernel_and_its_mounts() {
        let write = |path: &str| Action::Write {
            path: path.into(),
            value: "1".into(),
        };
        let mount = |point: &str, value: &str| Action::Remount {
            mount_point: point.into(),
            value: value.into(),
        };
        for action in [
            write("/proc/sys/vm/swappiness"),
            write("/sys/block/a/queue/b"),
        ] {
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
            assert!(
                refused.contains("cannot use the list of changes"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_journal_that_others_can_write_is_refused() {
        let action = Action::Write {
            path: "/sys/a".into(),
            value: "1".into(),
        };
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
        journal.perform_all(&[step], &root, &Unobserved).unwrap();
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
