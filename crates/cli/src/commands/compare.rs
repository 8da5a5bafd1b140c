//! `dyno compare`: compares existing runs.

use crate::args::CompareArguments;
use crate::commands::history::find_runs;
use crate::exit::Exit;
use crate::messages::{Messages, print_data};
use crate::reports::{refused, terminal_options};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::ab::{RunComparison, undecided};
use dyno_analyze::experiment::figures::{is_open, measured};
use dyno_analyze::resampling::Resampling;
use dyno_analyze::uncertainty::series::IntervalSample;
use dyno_engine::{Error, Kind};
use dyno_record::document::Document;
use dyno_record::model::{PhaseKind, RunDocument};
use dyno_record::responses::responses;
use dyno_report::Extent;
use dyno_report::experiment::comparison;
use dyno_report::texts;
use std::path::Path;

/// Executes `dyno compare`.
pub(crate) fn compare(
    arguments: &CompareArguments,
    surroundings: &Surroundings,
    messages: Messages,
) -> Result<Exit, Error> {
    let margin = arguments.fail_if_slower.unwrap_or(arguments.margin);
    let operation = arguments.operation.as_deref();
    let [(a, windows_a), (b, windows_b)] =
        [side(&arguments.run_a, operation)?, side(&arguments.run_b, operation)?];
    let found = RunComparison::new(
        [&arguments.run_a, &arguments.run_b].map(|path| path.display().to_string()),
        [&a, &b],
        [&windows_a, &windows_b],
        operation.is_some(),
        margin,
        &arguments.allow,
        Resampling::seeded(SEED),
    );
    let is_known = |what: &&String| found.differences.iter().all(|one| one.what != **what);
    if let Some(unknown) = arguments.allow.iter().find(is_known) {
        messages
            .warning(&format!("`--allow {unknown}` has no effect: the runs do not differ in it"));
    }
    let options = terminal_options(surroundings, Extent::Full);
    print_data(&comparison::render(&found, arguments.format, &options).map_err(refused)?)?;
    let Some(share) = arguments.fail_if_slower else {
        if found.answer.is_none() {
            messages.warning(&format!("{TOO_SHORT}: {LONGER}"));
        }
        return Ok(Exit::Done);
    };
    check_decides(&found)?;
    if found.is_slower_by(share) {
        messages.warning(&format!("B is slower by more than {} %", share * 100.0));
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}

/// Fails if the runs cannot show whether B is slower.
fn check_decides(found: &RunComparison) -> Result<(), Error> {
    let refuse = |text: String, hint: Option<&str>| {
        Err(Error::new(Kind::CheckFailed, text).with_optional_hint(hint))
    };
    let Some(answer) = &found.answer else {
        return refuse(TOO_SHORT.to_owned(), Some(LONGER));
    };
    if let Some(why) = undecided(answer) {
        let why = texts::text(&why);
        let text = format!("the runs are too short for a verdict: {why}");
        return refuse(text, Some(LONGER));
    }
    if !found.comparable {
        let text = "cannot decide which is slower: the runs are not comparable";
        return refuse(text.to_owned(), None);
    }
    if found.is_of_single_runs() {
        let text = "cannot decide which is slower from one run of each: the variation between runs is unknown";
        return refuse(text.to_owned(), Some(REPEAT));
    }
    Ok(())
}

/// Opens the runs of a side with the windows of their measure phases.
fn side(
    path: &Path,
    operation: Option<&str>,
) -> Result<(Vec<RunDocument>, Vec<Vec<IntervalSample>>), Error> {
    let mut folders = Vec::new();
    if path.is_dir() && !path.join(RunDocument::FILE).is_file() {
        find_runs(path, DEPTH, &mut folders)?;
        folders.sort();
    }
    if folders.is_empty() {
        // Opening reports the error if this is not a run.
        folders.push(path.to_owned());
    }
    let mut documents = Vec::new();
    let mut windows = Vec::new();
    for folder in folders {
        let document = dyno_results::run::open(&folder)?.document;
        if let Some(operation) = operation {
            check_operation(&document, &folder, operation)?;
        }
        let responses = responses(&folder, PhaseKind::Measure, operation)?;
        windows.push(measured(&responses, is_open(&document)).samples);
        documents.push(document);
    }
    Ok((documents, windows))
}

/// Search depth for runs below a folder: a suite keeps its runs in `runs/`.
const DEPTH: usize = 2;

/// Message and hints for runs that cannot be compared.
const TOO_SHORT: &str = "the runs are too short to compare: they need more windows with operations";
const REPEAT: &str =
    "repeat both plans with `--repeat 5` and compare the two folders, or use `dyno ab`";
const LONGER: &str = "make them longer with `--duration`, or more of them with `dyno ab`";

/// Fails if a run did not measure the operation.
fn check_operation(document: &RunDocument, run: &Path, operation: &str) -> Result<(), Error> {
    let phase = document.phases.iter().find(|phase| phase.name == PhaseKind::Measure);
    let names: Vec<&str> =
        phase.iter().flat_map(|phase| phase.operations.keys()).map(String::as_str).collect();
    if names.contains(&operation) {
        return Ok(());
    }
    let text = format!("`{}` did not measure `{operation}`", run.display());
    let hint = if names.is_empty() {
        "the run did not measure any operation".to_owned()
    } else {
        format!("the run measured {}", names.join(", "))
    };
    Err(Error::new(Kind::BadInput, text).with_hint(hint))
}

/// Fixed, so that the same runs give the same intervals.
const SEED: u64 = 42;
