//! `dyno doctor`: checks the machine and a server, and applies and reverts changes.

use crate::args::groups::wrapped;
use crate::args::tools::DoctorArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::Messages;
use dyno_engine::doctor::subject::CheckRequest;
use dyno_engine::doctor::tracing::Tracing;
use dyno_engine::doctor::{subject, tracing};
use dyno_engine::observer::Shared;
use dyno_engine::undo::journal::{self, Outcome};
use dyno_engine::undo::step::Ways;
use dyno_engine::{Error, Kind};
use dyno_observe::doctor::change::Undo;
use dyno_observe::doctor::{Facts, examine, observe};
use dyno_plan::task::Remote;
use dyno_record::verdict::{CheckName, Level, Verdict};
use dyno_trace::LiveKernel;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// Executes `dyno doctor`.
pub(crate) fn doctor(
    arguments: &DoctorArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let Invocation { surroundings, mut messages, .. } = invocation;
    let state_dir = surroundings.environment.state_dir.as_deref();
    let wanted = wanted(&arguments.apply)?;
    let root = arguments.root.as_path();
    if arguments.revert {
        return revert(arguments, state_dir, messages);
    }
    let subject = subject::subject(&request(arguments), &surroundings.environment)?;
    // Locked before the checks, so that no other process changes settings between check and change.
    let journal = match &wanted {
        Some(_) => Some(journal::Journal::open(journal::folder(state_dir)?, root)?),
        None => None,
    };
    let facts = observe(root, &subject);
    tell_storage_folder(&facts, messages);
    let mut verdicts = examine(&facts);
    let mut changed = Vec::new();
    if let (Some(wanted), Some(mut journal)) = (wanted, journal) {
        changed = journal.apply(&verdicts, &wanted, &Shared::new(&mut messages))?;
        if !changed.is_empty() {
            verdicts = examine(&observe(root, &subject));
        }
    }
    // A file tree of another machine does not describe its kernel.
    let tracing = (root == Path::new("/")).then(|| tracing::tracing(&LiveKernel::new()));
    let document = Document::new(&verdicts, &changed, tracing.as_ref());
    // Other programs get whole lines.
    let width = surroundings.columns.unwrap_or(usize::MAX);
    arguments
        .format
        .print(&document, |document| human(document, names_server(arguments), width))?;
    let fails = verdicts.iter().any(|verdict| verdict.level == Level::Fail);
    Ok(Exit::of_check(!fails))
}

/// Warns if the data folder does not exist, because its name may be misspelt. The storage of its nearest existing
/// parent is then checked.
fn tell_storage_folder(facts: &Facts, messages: Messages) {
    let folder = facts.subject.data_dir.as_deref();
    if let (Some(folder), Some(checked)) = (folder, facts.storage_folder())
        && !folder.exists()
    {
        messages.warning(&format!(
            "the folder `{}` does not exist; checking the storage of `{}` instead",
            folder.display(),
            checked.display()
        ));
    }
}

/// Whether an option says something about a server.
fn names_server(arguments: &DoctorArguments) -> bool {
    arguments.uri.is_some()
        || arguments.server_pid.is_some()
        || arguments.server_version.is_some()
        || arguments.data_dir.is_some()
}

fn request(arguments: &DoctorArguments) -> CheckRequest {
    CheckRequest {
        root: arguments.root.clone(),
        uri: arguments.uri.clone(),
        server_pid: arguments.server_pid,
        instances: arguments.instances,
        cache_bytes: arguments.cache.map(|size| size.0),
        server_version: arguments.server_version.clone(),
        data_dir: arguments.data_dir.clone(),
        planned_data_bytes: arguments.data_size.map(|size| size.0),
        connections: arguments.connections,
    }
}

fn revert(
    arguments: &DoctorArguments,
    state_dir: Option<&Path>,
    mut messages: Messages,
) -> Result<Exit, Error> {
    let given = arguments.uri.as_deref().map(Remote::parse).transpose()?;
    let ways = Ways::new(&arguments.root, given);
    let mut journal = journal::Journal::open_by(Some(journal::folder(state_dir)?), ways)?;
    let outcome = journal.revert(&Shared::new(&mut messages))?;
    arguments.format.print(&outcome, reverted_human)?;
    Ok(Exit::of_check(outcome.refused == 0))
}

/// Parses the checks to apply; `None` if no changes are requested.
pub(crate) fn wanted(names: &[String]) -> Result<Option<Vec<CheckName>>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    if names.iter().any(|name| name == "all") {
        return Ok(Some(CheckName::ALL.to_vec()));
    }
    let parse = |name: &String| {
        name.parse::<CheckName>().map_err(|error| {
            let all: Vec<&str> = CheckName::ALL.iter().map(|check| check.as_str()).collect();
            Error::from_cause(Kind::BadInput, error)
                .with_hint(format!("the checks are: {}", all.join(", ")))
        })
    };
    names.iter().map(parse).collect::<Result<Vec<_>, _>>().map(Some)
}

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

impl<'a> Document<'a> {
    fn new(verdicts: &'a [Verdict], changed: &'a [Undo], tracing: Option<&'a Tracing>) -> Self {
        let level = verdicts.iter().map(|verdict| verdict.level).max();
        Document { level: level.unwrap_or(Level::Pass), verdicts, changed, tracing }
    }
}

/// Formats changes, checks, recommendations and a summary for people: failures first, what could not be checked last.
/// Lines are wrapped to `width`; commands to copy are not.
fn human(document: &Document<'_>, is_of_server: bool, width: usize) -> String {
    let Document { verdicts, changed, tracing, .. } = document;
    let mut text = String::new();
    for undo in *changed {
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
    let of = |level| verdicts.iter().filter(move |verdict| verdict.level == level);
    let mark = |verdict: &Verdict| format!("{:<5} ", mark(verdict.level));
    let titled = |verdict: &Verdict| format!("{}: {}", verdict.check, verdict.found);
    for verdict in of(Level::Fail).chain(of(Level::Warn)) {
        push_wrapped(&mut text, &mark(verdict), &titled(verdict), width);
        push_wrapped(&mut text, "      advised: ", &verdict.advised, width);
        push_wrapped(&mut text, "      why:     ", &verdict.why, width);
        if let Some(change) = &verdict.change {
            let _ = writeln!(text, "      fix:     {}", change.command);
        }
        text.push('\n');
    }
    let unknown: Vec<&Verdict> = of(Level::Unknown).collect();
    let (listed, collapsed) = match is_of_server {
        true => (unknown, Vec::new()),
        false => (Vec::new(), unknown),
    };
    for verdict in of(Level::Pass).chain(listed) {
        push_wrapped(&mut text, &mark(verdict), &titled(verdict), width);
    }
    if let [first, ..] = collapsed[..] {
        let names: Vec<&str> = collapsed.iter().map(|verdict| verdict.check.as_str()).collect();
        let words = format!(
            "not checked: {}; `--uri` or `--server-pid` adds the checks of a server",
            names.join(", ")
        );
        push_wrapped(&mut text, &mark(first), &words, width);
    }
    let _ = writeln!(text, "\n{}", summary(verdicts));
    for line in tracing.map(tracing::human).unwrap_or_default().lines() {
        let words = line.trim_start_matches(' ');
        push_wrapped(&mut text, &line[..line.len() - words.len()], words, width);
    }
    text
}

/// Fewest characters of a wrapped line.
const MIN_WIDTH: usize = 20;

/// Adds words after a prefix, wrapped to `width` characters and aligned.
fn push_wrapped(text: &mut String, prefix: &str, words: &str, width: usize) {
    let indent = prefix.chars().count();
    let mut start = prefix.to_owned();
    for line in wrapped(words, width.saturating_sub(indent).max(MIN_WIDTH)) {
        let _ = writeln!(text, "{start}{line}");
        start = " ".repeat(indent);
    }
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
fn reverted_human(outcome: &Outcome) -> String {
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
    use crate::messages::pretty_json;
    use dyno_record::verdict::Change;

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

    fn shown(levels: &[Level], is_of_server: bool, width: usize) -> String {
        let verdicts: Vec<Verdict> = levels.iter().map(|level| verdict(*level)).collect();
        human(&Document::new(&verdicts, &[], None), is_of_server, width)
    }

    #[test]
    fn failures_come_first_and_the_fix_has_its_own_line() {
        let levels = [Level::Unknown, Level::Pass, Level::Warn, Level::Fail];
        let block = |mark: &str| {
            format!(
                "{mark}  swappiness: 60\n      advised: 0 or 1\n      why:     swapping is slow\n      fix:     sudo sysctl -w vm.swappiness=1\n\n"
            )
        };
        let expected = format!(
            "{}{}ok    swappiness: 60\n?     swappiness: 60\n\n1 fail, 1 warn, 1 unknown, 1 pass\n",
            block("FAIL"),
            block("warn")
        );
        assert_eq!(shown(&levels, true, 80), expected);
    }

    #[test]
    fn unknown_checks_are_one_item_without_a_server() {
        let text = shown(&[Level::Unknown, Level::Unknown], false, 40);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("?     not checked: swappiness,"), "{text}");
        assert!(lines[1].starts_with("      "), "{text}");
        assert!(text.contains("`--server-pid`") && text.contains("2 unknown"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{text}");
        assert!(shown(&[Level::Unknown; 2], false, usize::MAX).lines().count() == 3, "{text}");
    }

    #[test]
    fn json_has_the_worst_level() {
        let text =
            pretty_json(&Document::new(&[verdict(Level::Pass), verdict(Level::Warn)], &[], None));
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["level"], "warn");
        assert_eq!(value["verdicts"][1]["check"], "swappiness");
    }
}
