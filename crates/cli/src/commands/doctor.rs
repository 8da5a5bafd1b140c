//! `dyno doctor`: checks the machine and a server, and applies and reverts changes.

use crate::args::DoctorArguments;
use crate::commands::doctor_text as text;
use crate::exit::Exit;
use crate::messages::{Messages, pretty_json, print_data};
use crate::surroundings::Surroundings;
use dyno_engine::doctor::subject::CheckRequest;
use dyno_engine::doctor::{subject, tracing};
use dyno_engine::observer::Shared;
use dyno_engine::undo::journal;
use dyno_engine::undo::step::Ways;
use dyno_engine::{Error, Kind};
use dyno_observe::doctor::{Facts, examine, observe};
use dyno_plan::task::Remote;
use dyno_record::verdict::{CheckName, Level};
use dyno_report::Format;
use dyno_trace::LiveKernel;
use std::path::Path;

/// Executes `dyno doctor`.
pub(crate) fn doctor(
    arguments: &DoctorArguments,
    surroundings: &Surroundings,
    mut messages: Messages,
) -> Result<Exit, Error> {
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
    print_data(&match arguments.format {
        Format::Json => text::json(&verdicts, &changed, tracing.as_ref()),
        _ => {
            let tracing = tracing.as_ref().map(tracing::human);
            text::human(&verdicts, &changed) + &tracing.unwrap_or_default()
        }
    })?;
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
    print_data(&match arguments.format {
        Format::Json => pretty_json(&outcome),
        _ => text::reverted_human(&outcome),
    })?;
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
