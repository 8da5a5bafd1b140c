//! `dyno compare`: compares existing runs.

use crate::args::experiments::CompareArguments;
use crate::commands::history::find_runs;
use crate::commands::limits;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::records;
use crate::reports::{refused, terminal_options};
use dyno_analyze::experiment::ab::{RunComparison, SideRuns};
use dyno_analyze::experiment::comparable::is_same_setting;
use dyno_analyze::experiment::figures::{is_open, measured};
use dyno_analyze::resampling::Resampling;
use dyno_analyze::uncertainty::series::IntervalSample;
use dyno_engine::{Error, Kind};
use dyno_record::document::Document;
use dyno_record::model::{PhaseKind, RunDocument, RunStatus};
use dyno_record::reader::Run;
use dyno_record::responses::responses;
use dyno_report::Extent;
use dyno_report::experiment::comparison;
use std::path::{Path, PathBuf};

/// Executes `dyno compare`.
pub(crate) fn compare(
    arguments: &CompareArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let junit = arguments.limits.junit.as_deref();
    limits::or_junit(compared(arguments, invocation), junit, SUITE)
}

fn compared(arguments: &CompareArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let Invocation { surroundings, messages, .. } = invocation;
    if let Some(share) = &arguments.fail_if_slower {
        let hint =
            format!("use `--fail-if-worse rate={share}`, or `p99={share}` at an offered rate");
        let text = "`--fail-if-slower` is `--fail-if-worse` now, and names a figure";
        return Err(Error::new(Kind::BadInput, text).with_hint(hint));
    }
    let operation = arguments.operation.as_deref();
    let paths = [&arguments.run_a, &arguments.run_b].map(|path| run_folders(path));
    let [folders_a, folders_b] = paths;
    let folders = [folders_a?, folders_b?];
    refuse_same(&folders)?;
    let [a, b] = [&arguments.run_a, &arguments.run_b].map(|path| path.display().to_string());
    let mut sides = [side(a, &folders[0], operation)?, side(b, &folders[1], operation)?];
    add_earlier(&mut sides, &folders, operation)?;
    let found = RunComparison::new(
        &sides,
        operation.is_some(),
        arguments.margin,
        &arguments.limits.fail_if_worse,
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
    let forbidding = || found.differences.iter().filter(|one| one.forbids);
    let reason = (!found.comparable).then(|| {
        let named = forbidding().map(|one| format!("{} ({}; {})", one.what, one.a, one.b));
        let named = named.collect::<Vec<_>>().join(", ");
        format!("the runs cannot be compared because of {named}")
    });
    if let Some(path) = &arguments.limits.junit {
        limits::write_junit(path, SUITE, limits::cases(&found.limits, reason.as_deref()))?;
    }
    if !found.comparable {
        let options = forbidding().map(|one| format!("--allow \"{}\"", one.what));
        let options = options.collect::<Vec<_>>().join(" ");
        messages.warning(&format!(
            "the runs cannot be compared; to compare them anyway, add `{options}`"
        ));
        return Ok(Exit::NotComparable);
    }
    Ok(limits::exit(&found.limits, messages))
}

/// Name of the test suite in the JUnit file.
const SUITE: &str = "dyno compare";

/// The run directories of a side: the run itself, or the repetitions below a folder.
fn run_folders(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let path = &records::folder(path)?;
    let mut folders = Vec::new();
    if path.is_dir() && !path.join(RunDocument::FILE).is_file() {
        find_runs(path, DEPTH, &mut folders)?;
        folders.sort();
    }
    if folders.is_empty() {
        // Opening reports the error if this is not a run.
        folders.push(path.to_owned());
    }
    Ok(folders)
}

/// Fails if a run is on both sides, which would compare it with itself.
fn refuse_same(folders: &[Vec<PathBuf>; 2]) -> Result<(), Error> {
    let places = folders.each_ref().map(|side| -> Vec<PathBuf> {
        side.iter().filter_map(|folder| folder.canonicalize().ok()).collect()
    });
    let Some(same) = places[0].iter().find(|place| places[1].contains(place)) else {
        return Ok(());
    };
    let text = format!("both sides are the same record: `{}`", same.display());
    Err(Error::new(Kind::BadInput, text).with_hint("list other runs with `dyno runs`"))
}

/// Opens the runs of a side with the windows of their measure phases.
fn side(name: String, folders: &[PathBuf], operation: Option<&str>) -> Result<SideRuns, Error> {
    let mut found = SideRuns { name, ..SideRuns::default() };
    for folder in folders {
        let document = dyno_results::run::open(folder)?.document;
        if let Some(operation) = operation {
            check_operation(&document, folder, operation)?;
        }
        found.names.push(folder.display().to_string());
        found.windows.push(windows(folder, &document, operation)?);
        found.documents.push(document);
    }
    Ok(found)
}

fn windows(
    folder: &Path,
    document: &RunDocument,
    operation: Option<&str>,
) -> Result<Vec<IntervalSample>, Error> {
    let responses = responses(folder, PhaseKind::Measure, operation)?;
    Ok(measured(&responses, is_open(document)).samples)
}

/// Adds other runs with the same settings from the folder of each side with a single run: they show how much a
/// run varies. Both sides with the same settings share them, which counts them once, for A.
fn add_earlier(
    sides: &mut [SideRuns; 2],
    folders: &[Vec<PathBuf>; 2],
    operation: Option<&str>,
) -> Result<(), Error> {
    let known: Vec<PathBuf> =
        folders.iter().flatten().filter_map(|folder| folder.canonicalize().ok()).collect();
    let mut used: Vec<PathBuf> = Vec::new();
    for (side, own) in sides.iter_mut().zip(folders) {
        let ([document], [folder]) = (side.documents.as_slice(), own.as_slice()) else {
            continue;
        };
        let Some(parent) = folder.canonicalize().ok().and_then(|it| Some(it.parent()?.to_owned()))
        else {
            continue;
        };
        let mut beside = Vec::new();
        if find_runs(&parent, 1, &mut beside).is_err() {
            continue;
        }
        beside.retain(|other| !known.contains(other) && !used.contains(other));
        let mut same = Vec::new();
        for other in beside {
            // A folder may hold anything; only complete runs of this plan count.
            let Ok(run) = Run::open(&other) else { continue };
            let is_complete = run.document.status == RunStatus::Complete;
            if is_complete && is_same_setting(document, &run.document) {
                same.push((run.document.started_at.clone(), other, run.document));
            }
        }
        same.sort_by(|one, other| other.0.cmp(&one.0));
        same.truncate(MOST_EARLIER);
        for (_, other, document) in same {
            side.earlier.push(windows(&other, &document, operation)?);
            used.push(other);
        }
    }
    Ok(())
}

/// Search depth for runs below a folder: a suite keeps its runs in `runs/`.
const DEPTH: usize = 2;

/// Most other runs that are read for the variation of a run, the newest ones.
const MOST_EARLIER: usize = 20;

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
