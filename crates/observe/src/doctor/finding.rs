//! Results of checks, and the changes that they may advise.

use crate::health::{Health, Reading};
use dyno_record::verdict::{Action, Change, Level};
use std::borrow::Cow;
use std::path::PathBuf;

/// A verdict without the name of its check.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) found: String,
    pub(super) advised: String,
    pub(super) why: &'static str,
    pub(super) change: Option<Change>,
}

impl Finding {
    pub(super) fn new(
        level: Level,
        found: impl Into<String>,
        advised: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Finding { level, found: found.into(), advised: advised.into(), why, change: None }
    }

    pub(super) fn elsewhere() -> Self {
        Finding::new(
            Level::Unknown,
            "the server is on another machine",
            "run `dyno doctor` there",
            "the setting matters on the server's machine",
        )
    }

    /// Shown only if the check does not pass.
    pub(super) fn with_change(mut self, change: Option<Change>) -> Self {
        self.change = change;
        self
    }
}

/// Finding of a check whose value cannot be read.
pub(super) fn unread(health: &Health, advised: impl Into<String>, why: &'static str) -> Finding {
    let reason = health.reason();
    Finding::new(Level::Unknown, format!("unknown: {reason}"), advised, why)
}

/// Judges a value that was read.
pub(super) fn judged<T>(
    reading: &Reading<T>,
    advised: &str,
    why: &'static str,
    judge: impl FnOnce(&T) -> (Level, String, Option<Change>),
) -> Finding {
    match reading {
        Ok(value) => {
            let (level, found, change) = judge(value);
            Finding::new(level, found, advised, why).with_change(change)
        }
        Err(health) => unread(health, advised, why),
    }
}

/// Quotes a text as one word of a shell command.
pub(super) fn shell_word(text: &str) -> Cow<'_, str> {
    // Only a NUL cannot be quoted, and paths do not contain one.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed("''"))
}

/// Writes one value to one file.
pub(super) fn write_file(path: &str, value: &str) -> Change {
    Change {
        command: format!("echo {value} | sudo tee {path}"),
        actions: vec![write_action(path, value)],
    }
}

pub(super) fn write_action(path: &str, value: &str) -> Action {
    Action::Write { path: PathBuf::from(path), value: value.to_owned() }
}

/// Sets one kernel variable.
pub(super) fn sysctl(name: &str, value: &str) -> Change {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    Change {
        command: format!("sudo sysctl -w {name}={value}"),
        actions: vec![write_action(&path, value)],
    }
}

/// A change that only a person can make.
pub(super) fn by_hand(command: impl Into<String>) -> Change {
    Change { command: command.into(), actions: Vec::new() }
}
