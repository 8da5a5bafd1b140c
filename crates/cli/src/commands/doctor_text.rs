//! Text and JSON of the verdicts of `dyno doctor`.

use crate::messages::pretty_json;
use dyno_engine::doctor::tracing::Tracing;
use dyno_engine::undo::journal::Outcome;
use dyno_observe::doctor::change::Undo;
use dyno_record::verdict::{Level, Verdict};
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum width of the column of found values; longer values push the rest to the right.
const FOUND_WIDTH: usize = 44;

#[derive(Serialize)]
struct Document<'a> {
    /// Worst level of all checks.
    level: Level,
    verdicts: &'a [Verdict],
    changed: &'a [Undo],
    /// Absent for the file tree of another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracing: Option<&'a Tracing>,
}

/// Formats the verdicts as one JSON document with a final newline.
pub(crate) fn json(verdicts: &[Verdict], changed: &[Undo], tracing: Option<&Tracing>) -> String {
    let level = verdicts.iter().map(|verdict| verdict.level).max();
    pretty_json(&Document { level: level.unwrap_or(Level::Pass), verdicts, changed, tracing })
}

/// Formats changes, checks, recommendations and a summary for people.
pub(crate) fn human(verdicts: &[Verdict], changed: &[Undo]) -> String {
    let mut text = String::new();
    for undo in changed {
        let _ = writeln!(
            text,
            "changed {} from `{}` to `{}`; to revert: {}",
            undo.target().display(),
            undo.before,
            undo.value(),
            undo.revert_command()
        );
    }
    if !changed.is_empty() {
        text.push_str("revert all changes with `dyno doctor --revert`\n\n");
    }
    let check_width = width(verdicts.iter().map(|verdict| verdict.check.as_str()));
    let found_width = width(verdicts.iter().map(|verdict| verdict.found.as_str())).min(FOUND_WIDTH);
    for verdict in verdicts {
        let _ = writeln!(
            text,
            "{:<5} {:<check_width$}  {:<found_width$}  advised: {}",
            mark(verdict.level),
            verdict.check,
            verdict.found,
            verdict.advised
        );
        if verdict.level >= Level::Warn {
            let _ = writeln!(text, "      why: {}", verdict.why);
            if let Some(change) = &verdict.change {
                let _ = writeln!(text, "      do:  {}", change.command);
            }
        }
    }
    let _ = writeln!(text, "\n{}", summary(verdicts));
    text
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

fn mark(level: Level) -> &'static str {
    match level {
        Level::Pass => "ok",
        Level::Unknown => "?",
        Level::Warn => "warn",
        Level::Fail => "FAIL",
    }
}

fn summary(verdicts: &[Verdict]) -> String {
    let count = |level| verdicts.iter().filter(|verdict| verdict.level == level).count();
    format!(
        "{} fail, {} warn, {} unknown, {} pass",
        count(Level::Fail),
        count(Level::Warn),
        count(Level::Unknown),
        count(Level::Pass)
    )
}

/// Formats the reverted changes for people.
pub(crate) fn reverted_human(outcome: &Outcome) -> String {
    let mut text = String::new();
    for undo in &outcome.reverted {
        let place = undo.target().display();
        let _ = writeln!(text, "reverted {place} to `{}` from `{}`", undo.before, undo.value());
    }
    for change in &outcome.parameters {
        let _ = writeln!(text, "{}", change.reverted());
    }
    if text.is_empty() && outcome.refused == 0 {
        text.push_str("no changes to revert\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::verdict::{Change, CheckName};

    fn verdict(level: Level) -> Verdict {
        Verdict {
            check: CheckName::Swappiness,
            level,
            found: "60".into(),
            advised: "0 or 1".into(),
            why: "swapping is slow".into(),
            change: Some(Change {
                command: "sudo sysctl -w vm.swappiness=1".into(),
                actions: Vec::new(),
            }),
        }
    }

    #[test]
    fn failing_check_shows_its_reason_and_command() {
        let text = human(&[verdict(Level::Fail), verdict(Level::Unknown)], &[]);
        assert_eq!(
            text,
            "FAIL  swappiness  60  advised: 0 or 1\n      why: swapping is slow\n      do:  sudo sysctl -w vm.swappiness=1\n\
             ?     swappiness  60  advised: 0 or 1\n\n1 fail, 0 warn, 1 unknown, 0 pass\n"
        );
    }

    #[test]
    fn json_has_the_worst_level() {
        let text = json(&[verdict(Level::Pass), verdict(Level::Warn)], &[], None);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["level"], "warn");
        assert_eq!(value["verdicts"][1]["check"], "swappiness");
    }
}
