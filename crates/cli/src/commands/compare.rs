//! `dyno compare`: two runs that exist already, side by side.

use crate::args::CompareArguments;
use crate::exit::Exit;
use crate::messages::{Messages, pretty_json, print_data};
use crate::reports::refused;
use dyno_analyze::experiment::ab::{RunComparison, undecided};
use dyno_analyze::experiment::figures::{is_open, measured};
use dyno_analyze::resampling::Resampling;
use dyno_engine::{Error, Kind};
use dyno_record::model::{PhaseKind, RunDocument};
use dyno_record::responses::responses;
use dyno_report::PageFormat;
use dyno_report::experiment::comparison;
use dyno_report::texts;
use std::path::Path;

/// See the module.
pub(crate) fn compare(arguments: &CompareArguments, messages: Messages) -> Result<Exit, Error> {
    let margin = arguments.fail_if_slower.unwrap_or(arguments.margin);
    let runs = [&arguments.run_a, &arguments.run_b];
    let documents = [
        dyno_results::run::open(runs[0])?.document,
        dyno_results::run::open(runs[1])?.document,
    ];
    let operation = arguments.operation.as_deref();
    if let Some(operation) = operation {
        documents
            .iter()
            .zip(runs)
            .try_for_each(|(document, run)| check_operation(document, run, operation))?;
    }
    let samples = |run: &Path, document: &RunDocument| {
        responses(run, PhaseKind::Measure, operation)
            .map(|windows| measured(&windows, is_open(document)).samples)
    };
    let mut found = RunComparison::new(
        runs.map(|run| run.display().to_string()),
        [&documents[0], &documents[1]],
        [
            &samples(runs[0], &documents[0])?,
            &samples(runs[1], &documents[1])?,
        ],
        operation.is_some(),
        margin,
        Resampling::seeded(SEED),
    );
    if let Some(unknown) = found.allow(&arguments.allow) {
        messages.warning(&format!(
            "the runs do not differ in `{unknown}`, which is allowed"
        ));
    }
    print_data(&match arguments.format {
        PageFormat::Json => pretty_json(&found),
        PageFormat::Human => comparison::human(&found),
        PageFormat::Markdown => comparison::markdown(&found),
        PageFormat::Html => comparison::html(&found).map_err(refused)?,
    })?;
    let Some(share) = arguments.fail_if_slower else {
        if found.answer.is_none() {
            messages.warning(&format!("{TOO_SHORT}: {LONGER}"));
        }
        return Ok(Exit::Done);
    };
    if found.answer.is_none() {
        return Err(Error::new(Kind::CheckFailed, TOO_SHORT).with_hint(LONGER));
    }
    if let Some(why) = found.answer.as_ref().and_then(undecided) {
        let text = format!(
            "the runs are too short for a verdict: {}",
            texts::text(&why)
        );
        return Err(Error::new(Kind::CheckFailed, text).with_hint(LONGER));
    }
    if !found.comparable {
        let text = "the runs are not comparable, so nothing can be said about which is slower";
        return Err(Error::new(Kind::CheckFailed, text));
    }
    if found.is_slower_by(share) {
        messages.warning(&format!("B is slower by more than {} %", share * 100.0));
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}

/// Why there is nothing to compare, and what helps.
const TOO_SHORT: &str = "the runs are too short to compare: they need more windows with operations";
const LONGER: &str = "make them longer with `--duration`, or more of them with `dyno ab`";

/// Refuses an operation that a run did not measure.
fn check_operation(document: &RunDocument, run: &Path, operation: &str) -> Result<(), Error> {
    let phase = document
        .phases
        .iter()
        .find(|phase| phase.name == PhaseKind::Measure);
    let names: Vec<&str> = phase
        .iter()
        .flat_map(|phase| phase.operations.keys())
        .map(String::as_str)
        .collect();
    if names.contains(&operation) {
        return Ok(());
    }
    let text = format!("`{}` has measured no `{operation}`", run.display());
    let hint = if names.is_empty() {
        "it has measured nothing".to_owned()
    } else {
        format!("it has measured {}", names.join(", "))
    };
    Err(Error::new(Kind::BadInput, text).with_hint(hint))
}

/// The same runs give the same intervals.
const SEED: u64 = 42;
