//! `dyno doctor`: checks the machine and a server, changes what it is told to, and takes it back.

use crate::args::{DoctorArguments, DoctorFormat};
use crate::doctor::{journal, subject, text};
use crate::exit::{Exit, Failure};
use crate::messages::{Messages, print_data};
use crate::surroundings::Surroundings;
use dyno_observe::doctor::{examine, observe};
use dyno_record::verdict::{CheckName, Level};
use std::path::Path;

/// See the module.
pub(crate) fn doctor(
    arguments: &DoctorArguments,
    state_dir: Option<&Path>,
    surroundings: &Surroundings,
    messages: Messages,
) -> Result<Exit, Failure> {
    let wanted = wanted(&arguments.apply)?;
    let root = arguments.root.as_path();
    if arguments.revert {
        return revert(arguments, state_dir, messages);
    }
    let subject = subject::subject(arguments, surroundings)?;
    // Opened before looking: what is seen is not changed by another one until it is acted on.
    let journal = match &wanted {
        Some(_) => Some(journal::Journal::open(journal::folder(state_dir)?, root)?),
        None => None,
    };
    let mut verdicts = examine(&observe(root, &subject));
    let mut changed = Vec::new();
    if let (Some(wanted), Some(mut journal)) = (wanted, journal) {
        changed = journal.apply(&verdicts, &wanted, root, messages)?;
        if !changed.is_empty() {
            verdicts = examine(&observe(root, &subject));
        }
    }
    print_data(&match arguments.format {
        DoctorFormat::Human => text::human(&verdicts, &changed),
        DoctorFormat::Json => text::json(&verdicts, &changed),
    })?;
    let fails = verdicts.iter().any(|verdict| verdict.level == Level::Fail);
    Ok(if fails { Exit::CheckFailed } else { Exit::Done })
}

fn revert(
    arguments: &DoctorArguments,
    state_dir: Option<&Path>,
    messages: Messages,
) -> Result<Exit, Failure> {
    let root = arguments.root.as_path();
    let mut journal = journal::Journal::open(journal::folder(state_dir)?, root)?;
    let outcome = journal.revert(root, messages)?;
    print_data(&match arguments.format {
        DoctorFormat::Human => text::reverted_human(&outcome),
        DoctorFormat::Json => text::reverted_json(&outcome),
    })?;
    Ok(if outcome.refused == 0 {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

/// Names of the checks whose advice is to be followed; `None` if nothing is to be changed.
fn wanted(names: &[String]) -> Result<Option<Vec<CheckName>>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    if names.iter().any(|name| name == "all") {
        return Ok(Some(CheckName::ALL.to_vec()));
    }
    let parse = |name: &String| {
        name.parse::<CheckName>().map_err(|error| {
            let all: Vec<&str> = CheckName::ALL.iter().map(|check| check.as_str()).collect();
            Failure::of(Exit::BadInput, error)
                .with_hint(format!("the checks are: {}", all.join(", ")))
        })
    };
    names
        .iter()
        .map(parse)
        .collect::<Result<Vec<_>, _>>()
        .map(Some)
}
