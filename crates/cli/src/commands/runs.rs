//! `dyno runs`: lists the records in a folder, and deletes those that are no longer needed.

use crate::args::runs::RunsArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::{DataFormat, pretty_json, print_data};
use crate::records::{self, Entry, Server};
use crate::reports::{HOMES, RecordKind};
use dyno_engine::removal::remove_record;
use dyno_engine::{Error, Kind};
use dyno_record::document::variant_name;
use dyno_record::model::RunStatus;
use dyno_record::quantity::Quantity;
use dyno_report::page::table::{Cell, Column, Table};
use dyno_report::table_text;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Executes `dyno runs`.
pub(crate) fn runs(arguments: &RunsArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let named = arguments.directories.iter().map(|given| records::folder(given));
    let mut homes: Vec<PathBuf> = named.collect::<Result<_, _>>()?;
    if let Some(file) = homes.iter().find(|place| !place.is_dir()) {
        let text = format!("`{}` is not a folder", file.display());
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("name a folder with run directories, such as `runs`"));
    }
    let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if arguments.prune && !arguments.yes && !can_ask {
        let text = "cannot ask before deleting: this is not a terminal";
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("look at the list without `--prune`, then add `--yes`"));
    }
    if homes.is_empty() {
        homes = HOMES.map(PathBuf::from).to_vec();
    }
    let mut found = records::all(&homes)?;
    found.retain(|entry| is_wanted(entry, arguments));
    let messages = invocation.messages;
    if arguments.prune {
        let (busy, idle): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.in_progress);
        for entry in busy {
            messages.note(&format!("in progress, stays: {}", entry.directory.display()));
        }
        found = idle;
    }
    match arguments.format {
        DataFormat::Json => print_data(&pretty_json(&found))?,
        DataFormat::Human if found.is_empty() => {
            let shown: Vec<String> =
                homes.iter().map(|home| format!("`{}`", home.display())).collect();
            let elsewhere = if arguments.directories.is_empty() {
                "; `dyno runs DIR` lists those with `--out` elsewhere"
            } else {
                ""
            };
            messages.note(&format!("no such runs in {}{elsewhere}", shown.join(" and ")));
        }
        DataFormat::Human => {
            let width = invocation.surroundings.columns;
            print_data(&table_text(&table(&found), width))?;
            if found.iter().any(|entry| entry.response_p99_us.is_some()) {
                messages.note(WHOLE_PHASE);
            }
        }
    }
    if !arguments.prune || found.is_empty() {
        return Ok(Exit::Done);
    }
    let bytes = found.iter().map(|entry| size_bytes(&entry.directory)).sum();
    let what = format!("{}, {}", counted(&found), Quantity::bytes(bytes));
    if !arguments.yes && !is_confirmed(&format!("Delete {what}? [y/N] "))? {
        messages.note("nothing was deleted");
        return Ok(Exit::CheckFailed);
    }
    for entry in &found {
        let left = remove_record(&entry.directory)?;
        if !left.is_empty() {
            let place = entry.directory.display();
            messages.warning(&format!("`{place}` stays, with other files: {}", left.join(", ")));
        }
    }
    messages.note(&format!("deleted {what}"));
    Ok(Exit::Done)
}

/// Why a report may have another rate and p99.
const WHOLE_PHASE: &str = "rate and p99 are of the whole measure phase; reports leave out a start that still belonged to the warm-up";

fn is_wanted(entry: &Entry, arguments: &RunsArguments) -> bool {
    let has_server = |text: &String| {
        let known = entry.server.as_ref().map(server).unwrap_or_default();
        known.to_lowercase().contains(&text.to_lowercase())
    };
    // A record without a readable time is neither before nor after one.
    let started = entry.started();
    arguments.plan.as_ref().is_none_or(|plan| *plan == entry.name)
        && arguments.tags.iter().all(|tag| entry.tags.contains(tag))
        && arguments.server.as_ref().is_none_or(has_server)
        && arguments.since.is_none_or(|since| started.is_some_and(|at| at >= since))
        && arguments.until.is_none_or(|until| started.is_some_and(|at| at < until))
}

fn server(server: &Server) -> String {
    let name = server.product.as_deref().unwrap_or(&server.kind);
    let version = server.version.as_deref().unwrap_or_default();
    format!("{name} {version} {}", server.address)
}

fn table(entries: &[Entry]) -> Table {
    let started = Column { rank: 10, ..Column::text("started (UTC)") };
    let server = Column { rank: 20, ..Column::text("server") };
    Table::of(entries)
        .text("name", |entry| entry.short.clone())
        .with(started, |entry| {
            Cell::known(entry.started().map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()))
        })
        .text("what", what)
        .with(server, |entry| Cell::known(entry.server.as_ref().map(server_in_short)))
        .number("rate", 40, |entry| Cell::known(entry.rate_per_s.map(Quantity::per_second)))
        .number("p99", 30, |entry| {
            let value = entry.response_p99_us.map(Quantity::microseconds);
            let of = entry.operation.as_deref().unwrap_or_default();
            Cell::known(value.map(|value| format!("{value} {of}")))
        })
        .text("tags", |entry| entry.tags.join(" "))
        .text("state", state)
        .table("Runs")
}

/// Kind and plan, such as `a` or `slo a, 12 runs`.
fn what(entry: &Entry) -> String {
    let name = &entry.name;
    match (entry.kind, entry.verb) {
        (RecordKind::Experiment, Some(verb)) => {
            format!(
                "{} {name}, {}",
                verb.as_str(),
                Quantity::counted(entry.runs.unwrap_or(0) as u64, "run")
            )
        }
        (RecordKind::IndexBuild, _) => format!("index-build {name}"),
        (RecordKind::Tail, _) => format!("tail {name}"),
        _ => name.clone(),
    }
}

/// Product and version; the address only of a server that was already running, because others get any free port.
fn server_in_short(server: &Server) -> String {
    let name = server.product.as_deref().unwrap_or(&server.kind);
    let mut text = format!("{name} {}", server.version.as_deref().unwrap_or_default());
    if server.kind == "uri" {
        text = format!("{} at {}", text.trim_end(), server.address);
    }
    text.trim_end().to_owned()
}

/// How the record ended, unless it is complete, and the caveats that make its figures invalid.
fn state(entry: &Entry) -> String {
    let ended = match entry.status {
        RunStatus::Complete => None,
        RunStatus::Running if entry.in_progress => Some("in progress".to_owned()),
        RunStatus::Running => Some("killed".to_owned()),
        other => Some(variant_name(&other)),
    };
    let invalid = entry.invalid.iter().map(|kind| kind.replace('_', " "));
    // An interrupted run has the caveat of the same name.
    let mut all: Vec<String> = ended.into_iter().chain(invalid).collect();
    all.dedup();
    all.join(", ")
}

/// Number of runs and of other records.
fn counted(entries: &[Entry]) -> String {
    let runs = entries.iter().filter(|entry| entry.kind == RecordKind::Run).count();
    let counts = [(runs, "run"), (entries.len() - runs, "experiment")];
    let texts = counts.into_iter().filter(|(number, _)| *number > 0);
    let texts: Vec<String> =
        texts.map(|(number, what)| Quantity::counted(number as u64, what)).collect();
    texts.join(" and ")
}

/// Size of all files below a folder. What cannot be read counts as 0, and so do links.
fn size_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size_bytes(&entry.path()),
            Ok(data) if data.is_file() => data.len(),
            _ => 0,
        })
        .sum()
}

fn is_confirmed(question: &str) -> Result<bool, Error> {
    let failed = |error| Error::from_cause(Kind::Environment, error).context("cannot ask");
    let mut output = std::io::stderr().lock();
    output.write_all(question.as_bytes()).and_then(|()| output.flush()).map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
