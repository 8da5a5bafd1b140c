//! Reversible changes of the machine. A caller saves an [`Undo`] before it performs the change, so
//! that no change is lost, whatever happens in between.

use super::finding::shell_word;
use crate::health::Health;
use crate::host::{below, selected};
use crate::storage;
use dyno_record::verdict::{Action, Change, CheckName};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// Rules for access times (mount(8)).
const ACCESS_TIME_RULES: [&str; 3] = ["noatime", "relatime", "strictatime"];

/// One step of a change with the previous value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The check that asked for it; absent for a change made by a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckName>,
    pub action: Action,
    pub before: String,
}

/// Outcome of reverting a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reverted {
    /// The previous value was restored.
    Now,
    /// The previous value was already there.
    Already,
    /// The changed value no longer exists: a network card is gone, or a server was restarted.
    Gone,
}

/// Why a value could not be changed or reverted.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The current value cannot be read.
    #[error("cannot read the current value of `{}`: {}", target.display(), health.reason())]
    Read { target: PathBuf, health: Health },
    /// The value cannot be set.
    #[error("cannot set `{}` to `{value}`", target.display())]
    Set {
        target: PathBuf,
        value: String,
        #[source]
        source: io::Error,
    },
    /// Setting the value succeeded, but the value did not change.
    #[error("the system did not accept `{value}` for `{}`; it is `{found}`", target.display())]
    NotTaken { target: PathBuf, value: String, found: String },
    /// The value was changed by someone else since.
    #[error("`{}` is `{found}`, not `{expected}`: it was changed after this program set it", target.display())]
    ChangedMeanwhile { target: PathBuf, expected: String, found: String },
}

/// Runs a program with arguments, used to change mounts. Tests pass their own.
pub type Run<'a> = &'a dyn Fn(&[&str]) -> io::Result<()>;

impl Undo {
    /// The value to set.
    pub fn value(&self) -> &str {
        match &self.action {
            Action::Write { value, .. } | Action::Remount { value, .. } => value,
        }
    }

    /// File or mount point.
    pub fn target(&self) -> &Path {
        match &self.action {
            Action::Write { path, .. } => path,
            Action::Remount { mount_point, .. } => mount_point,
        }
    }

    /// Whether the action is one that a change may contain: a kernel file, or the access time rule
    /// of a mount. An [`Undo`] read from a file could contain anything.
    pub fn is_of_kernel(&self) -> bool {
        match &self.action {
            Action::Write { path, .. } => {
                let is_below = |folder| path.starts_with(folder);
                let goes_up = |part: Component<'_>| part == Component::ParentDir;
                (is_below("/proc/sys") || is_below("/sys")) && !path.components().any(goes_up)
            }
            Action::Remount { mount_point, value } => {
                let is_rule = |text: &str| ACCESS_TIME_RULES.contains(&text);
                mount_point.is_absolute() && is_rule(value) && is_rule(&self.before)
            }
        }
    }

    /// The shell command for this step.
    pub fn command(&self) -> String {
        self.command_for(self.value())
    }

    /// The shell command that reverts this step.
    pub fn revert_command(&self) -> String {
        self.command_for(&self.before)
    }

    fn command_for(&self, value: &str) -> String {
        let target = self.target().to_string_lossy();
        let target = shell_word(&target);
        match &self.action {
            Action::Write { .. } => format!("echo {value} | sudo tee {target}"),
            Action::Remount { .. } => format!("sudo mount -o remount,{value} {target}"),
        }
    }
}

/// The steps of a change that are still needed, each with the current value. Changes nothing.
///
/// # Errors
/// [`ChangeError::Read`].
pub fn prepare(check: CheckName, change: &Change, root: &Path) -> Result<Vec<Undo>, ChangeError> {
    let mut steps = read(Some(check), &change.actions, root)?;
    steps.retain(|undo| undo.before != undo.value());
    Ok(steps)
}

/// The steps of a change, each with the current value, including steps that are not needed. `check`
/// asked for them, or a run without one.
///
/// # Errors
/// [`ChangeError::Read`].
pub fn read(
    check: Option<CheckName>,
    actions: &[Action],
    root: &Path,
) -> Result<Vec<Undo>, ChangeError> {
    let step = |action: &Action| {
        Ok(Undo { check, before: current(action, root)?, action: action.clone() })
    };
    actions.iter().map(step).collect()
}

/// Performs one step and checks that the system accepted it.
///
/// # Errors
/// [`ChangeError`]; the previous value is then restored if the system allows it.
pub fn apply(undo: &Undo, root: &Path, run: Run<'_>) -> Result<(), ChangeError> {
    let result = set(&undo.action, undo.value(), root, run)
        .and_then(|()| current(&undo.action, root))
        .and_then(|found| taken(undo, undo.value(), found));
    if result.is_err() {
        // The error above says more than an error of the way back.
        let _ = set(&undo.action, &undo.before, root, run);
    }
    result
}

/// Reverts one step if the value is still the one that was set.
///
/// # Errors
/// [`ChangeError::ChangedMeanwhile`] if the value is neither the one that was set nor the previous
/// one; nothing is changed then.
pub fn revert(undo: &Undo, root: &Path, run: Run<'_>) -> Result<Reverted, ChangeError> {
    if matches!(&undo.action, Action::Write { path, .. } if is_gone(root, path)) {
        return Ok(Reverted::Gone);
    }
    let found = current(&undo.action, root)?;
    if found == undo.before {
        return Ok(Reverted::Already);
    }
    if found != undo.value() {
        return Err(ChangeError::ChangedMeanwhile {
            target: undo.target().to_owned(),
            expected: undo.value().to_owned(),
            found,
        });
    }
    set(&undo.action, &undo.before, root, run)?;
    taken(undo, &undo.before, current(&undo.action, root)?)?;
    Ok(Reverted::Now)
}

/// Whether a file certainly does not exist.
fn is_gone(root: &Path, path: &Path) -> bool {
    matches!(below(root, path).try_exists(), Ok(false))
}

fn taken(undo: &Undo, value: &str, found: String) -> Result<(), ChangeError> {
    if found == value {
        return Ok(());
    }
    Err(ChangeError::NotTaken { target: undo.target().to_owned(), value: value.to_owned(), found })
}

/// The current value of the target of an action.
///
/// # Errors
/// [`ChangeError::Read`].
pub fn current(action: &Action, root: &Path) -> Result<String, ChangeError> {
    match action {
        Action::Write { path, .. } => {
            let text = fs::read_to_string(below(root, path)).map_err(|error| {
                ChangeError::Read { target: path.clone(), health: Health::from_io(path, &error) }
            })?;
            Ok(selected(&text).unwrap_or_else(|| text.trim().to_owned()))
        }
        Action::Remount { mount_point, .. } => {
            let options = storage::mount_options(root, mount_point)
                .map_err(|health| ChangeError::Read { target: mount_point.clone(), health })?;
            let rule = options.split(',').find(|option| ACCESS_TIME_RULES.contains(option));
            Ok(rule.unwrap_or("strictatime").to_owned())
        }
    }
}

fn set(action: &Action, value: &str, root: &Path, run: Run<'_>) -> Result<(), ChangeError> {
    let (target, result) = match action {
        Action::Write { path, .. } => (path, fs::write(below(root, path), format!("{value}\n"))),
        Action::Remount { mount_point, .. } => {
            let option = format!("remount,{value}");
            let folder = mount_point.to_string_lossy();
            (mount_point, run(&["mount", "-o", &option, &folder]))
        }
    };
    result.map_err(|source| ChangeError::Set {
        target: target.clone(),
        value: value.to_owned(),
        source,
    })
}

/// Runs a program to its end. Its standard error becomes the error message.
///
/// # Errors
/// The program cannot be started or does not exit with 0.
pub fn run_program(words: &[&str]) -> io::Result<()> {
    let Some((program, arguments)) = words.split_first() else {
        return Ok(());
    };
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{program}` exited with {}: {}", output.status, said.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;
    use std::cell::RefCell;

    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    fn write(path: &str, value: &str) -> Change {
        Change {
            command: String::new(),
            actions: vec![Action::Write { path: path.into(), value: value.into() }],
        }
    }

    fn no_program(_: &[&str]) -> io::Result<()> {
        panic!("no program must run")
    }

    #[test]
    fn written_value_can_be_reverted() {
        let fixture = Fixture::new().with(&PATH[1..], "always [madvise] never\n");
        let root = fixture.root();
        let steps = prepare(CheckName::HugePages, &write(PATH, "never"), root).unwrap();
        assert_eq!((steps.len(), steps[0].before.as_str()), (1, "madvise"));
        assert!(steps[0].revert_command().contains("echo madvise"));
        apply(&steps[0], root, &no_program).unwrap();
        assert_eq!(current(&steps[0].action, root).unwrap(), "never");
        assert!(prepare(CheckName::HugePages, &write(PATH, "never"), root).unwrap().is_empty());
        assert_eq!(revert(&steps[0], root, &no_program).unwrap(), Reverted::Now);
        assert_eq!(current(&steps[0].action, root).unwrap(), "madvise");
        assert_eq!(revert(&steps[0], root, &no_program).unwrap(), Reverted::Already);
    }

    #[test]
    fn revert_keeps_a_value_that_someone_else_set() {
        let fixture = Fixture::new().with(&PATH[1..], "madvise\n");
        let root = fixture.root();
        let steps = prepare(CheckName::HugePages, &write(PATH, "never"), root).unwrap();
        apply(&steps[0], root, &no_program).unwrap();
        let fixture = fixture.with(&PATH[1..], "always\n");
        let error = revert(&steps[0], fixture.root(), &no_program).unwrap_err();
        assert!(matches!(&error, ChangeError::ChangedMeanwhile { found, .. } if found == "always"));
        assert_eq!(current(&steps[0].action, fixture.root()).unwrap(), "always");
    }

    #[test]
    fn removed_file_needs_no_revert() {
        let fixture = Fixture::new().with(&PATH[1..], "madvise\n");
        let root = fixture.root();
        let change = write(PATH, "never");
        let steps = read(None, &change.actions, root).unwrap();
        assert_eq!(steps[0].check, None);
        apply(&steps[0], root, &no_program).unwrap();
        assert_eq!(current(&steps[0].action, root).unwrap(), "never");
        fs::remove_file(root.join(&PATH[1..])).unwrap();
        assert_eq!(revert(&steps[0], root, &no_program).unwrap(), Reverted::Gone);
        assert!(!root.join(&PATH[1..]).exists());
    }

    #[test]
    fn missing_file_is_not_created() {
        let fixture = Fixture::new();
        let result = prepare(CheckName::HugePages, &write(PATH, "never"), fixture.root());
        assert!(matches!(result, Err(ChangeError::Read { .. })));
        assert!(!fixture.root().join(&PATH[1..]).exists());
    }

    #[test]
    fn commands_keep_a_mount_point_one_word() {
        let undo = Undo {
            check: None,
            action: Action::Remount {
                mount_point: "/mnt/a b;reboot".into(),
                value: "noatime".into(),
            },
            before: "relatime".into(),
        };
        for (command, rule) in
            [(undo.command(), "remount,noatime"), (undo.revert_command(), "remount,relatime")]
        {
            let words = shlex::split(&command).unwrap();
            let expected = ["sudo", "mount", "-o", rule, "/mnt/a b;reboot"];
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn mount_is_changed_by_the_program_and_checked() {
        let mounts = |rule: &str| format!("29 27 8:16 / /data rw,{rule} - xfs /dev/sdb rw\n");
        let fixture = RefCell::new(Fixture::new().with("proc/self/mountinfo", &mounts("relatime")));
        let root = fixture.borrow().root().to_owned();
        let change = Change {
            command: String::new(),
            actions: vec![Action::Remount { mount_point: "/data".into(), value: "noatime".into() }],
        };
        let steps = prepare(CheckName::AccessTimes, &change, &root).unwrap();
        assert_eq!(steps[0].before, "relatime");
        let calls = RefCell::new(Vec::new());
        let mount = |words: &[&str]| {
            calls.borrow_mut().push(words.join(" "));
            let rule = words[2].strip_prefix("remount,").unwrap();
            fs::write(root.join("proc/self/mountinfo"), mounts(rule))
        };
        apply(&steps[0], &root, &mount).unwrap();
        assert_eq!(revert(&steps[0], &root, &mount).unwrap(), Reverted::Now);
        let expected = ["mount -o remount,noatime /data", "mount -o remount,relatime /data"];
        assert_eq!(*calls.borrow(), expected);
        // A program without effect is detected.
        let error = apply(&steps[0], &root, &|_| Ok(())).unwrap_err();
        assert!(matches!(error, ChangeError::NotTaken { .. }), "{error}");
    }

    #[test]
    fn error_contains_the_output_of_a_failed_program() {
        run_program(&["true"]).unwrap();
        let error = run_program(&["sh", "-c", "echo no such mount >&2; exit 32"]).unwrap_err();
        assert!(error.to_string().contains("no such mount"), "{error}");
    }

    /// Needs the permission to write there; without it the error must name it.
    #[test]
    fn swappiness_of_this_machine_is_changed_and_restored() {
        let path = "/proc/sys/vm/swappiness";
        let root = Path::new("/");
        let before: u64 = fs::read_to_string(path).unwrap().trim().parse().unwrap();
        let other = if before == 1 { 2 } else { before - 1 };
        let change = write(path, &other.to_string());
        let steps = prepare(CheckName::Swappiness, &change, root).unwrap();
        match apply(&steps[0], root, &no_program) {
            Ok(()) => {
                let now = fs::read_to_string(path).unwrap();
                let reverted = revert(&steps[0], root, &no_program).unwrap();
                assert_eq!(now.trim(), other.to_string());
                assert_eq!(reverted, Reverted::Now);
            }
            Err(ChangeError::Set { source, .. }) => {
                assert!(matches!(
                    source.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ));
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(fs::read_to_string(path).unwrap().trim(), before.to_string());
    }
}
