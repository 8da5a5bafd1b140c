//! `dyno history`: runs of the same plan over time, and where their level changed.

use crate::args::{ExperimentFormat, HistoryArguments};
use crate::exit::{Exit, Failure};
use crate::messages::{Messages, print_data};
use crate::session::output::write_file;
use dyno_analyze::change_point::ChangePointSettings;
use dyno_analyze::experiment::figures::{is_open, measured};
use dyno_analyze::experiment::history::{HistoryRun, analyze};
use dyno_analyze::uncertainty::series::{Series, Statistic};
use dyno_record::model::{PhaseKind, RunDocument, RunStatus};
use dyno_record::reader::Run;
use dyno_record::responses::responses;
use dyno_report::experiment::history as picture;
use std::path::{Path, PathBuf};

/// The same runs give the same answer.
const SEED: u64 = 42;

/// Deepest folder below the one that was named that is looked into.
const DEPTH: usize = 3;

/// See the module.
pub(crate) fn history(arguments: &HistoryArguments, messages: Messages) -> Result<Exit, Failure> {
    let mut folders = Vec::new();
    find_runs(&arguments.directory, DEPTH, &mut folders)?;
    let mut left_out = Vec::new();
    let mut runs: Vec<(RunDocument, HistoryRun)> = Vec::new();
    for folder in folders {
        let name = folder
            .strip_prefix(&arguments.directory)
            .unwrap_or(&folder)
            .display()
            .to_string();
        match read(&folder, &name, arguments.workload.as_deref()) {
            Ok(Some(run)) => runs.push(run),
            Ok(None) => {}
            Err(reason) => left_out.push(format!("`{name}`: {reason}")),
        }
    }
    runs.sort_by(|a, b| a.1.started_at.cmp(&b.1.started_at));
    check_same_plan(&runs)?;
    let Some((first, _)) = runs.first() else {
        let text = format!(
            "there are no complete runs in `{}`",
            arguments.directory.display()
        );
        let failure = Failure::new(Exit::BadInput, text);
        return Err(match left_out.first() {
            Some(one) => failure.with_hint(format!("left out: {one}")),
            None => failure.with_hint("name a folder that holds run directories, such as `runs`"),
        });
    };
    let name = first.name.clone();
    let settings = ChangePointSettings {
        significance_ratio: arguments.significance,
        ..ChangePointSettings::seeded(SEED)
    };
    let runs = runs.into_iter().map(|(_, run)| run).collect();
    let found = analyze(&name, runs, left_out, arguments.margin, settings);
    print_data(&match arguments.format {
        ExperimentFormat::Json => {
            serde_json::to_string_pretty(&found).expect("it is plain data") + "\n"
        }
        ExperimentFormat::Human => picture::human(&found),
        ExperimentFormat::Markdown => picture::markdown(&found),
    })?;
    if let Some(path) = &arguments.picture {
        write_file(path, &picture::svg(&found))?;
        messages.note(&format!("picture: {}", path.display()));
    }
    Ok(match found.has_regression() {
        true => Exit::CheckFailed,
        false => Exit::Done,
    })
}

/// Run directories below a folder. What is inside of a run belongs to it.
fn find_runs(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unusable = |error: std::io::Error| {
        Failure::of(Exit::Environment, error).context(format!("cannot read `{}`", folder.display()))
    };
    for entry in std::fs::read_dir(folder).map_err(unusable)? {
        let path = entry.map_err(unusable)?.path();
        if path.join("run.json").is_file() {
            found.push(path);
        } else if depth > 1 && path.is_dir() && !path.is_symlink() {
            find_runs(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// A run of the series; `None` if it is of another workload than the wanted one.
fn read(
    folder: &Path,
    name: &str,
    workload: Option<&str>,
) -> Result<Option<(RunDocument, HistoryRun)>, String> {
    let document = Run::open(folder)
        .map_err(|error| error.to_string())?
        .document;
    if workload.is_some_and(|workload| workload != document.name) {
        return Ok(None);
    }
    if document.status != RunStatus::Complete {
        return Err("it is not complete".into());
    }
    let windows = responses(folder, PhaseKind::Measure, None).map_err(|error| error.to_string())?;
    let series = Series::new(&measured(&windows, is_open(&document)).samples);
    const US_PER_NS: f64 = 1e-3;
    let value = |statistic, unit: f64| series.value(statistic).map(|value| value * unit);
    let percentile = |percent| value(Statistic::Percentile { percent }, US_PER_NS);
    let values: Option<Vec<f64>> = [
        value(Statistic::Rate, 1.0),
        value(Statistic::MeanTime, US_PER_NS),
        percentile(95.0),
        percentile(99.0),
    ]
    .into_iter()
    .collect();
    let run = HistoryRun {
        directory: name.to_owned(),
        started_at: document.started_at.clone(),
        values: values.ok_or("it has measured nothing")?,
    };
    Ok(Some((document, run)))
}

/// Results of different plans are no series.
fn check_same_plan(runs: &[(RunDocument, HistoryRun)]) -> Result<(), Failure> {
    let Some((first, _)) = runs.first() else {
        return Ok(());
    };
    let key = |document: &RunDocument| {
        let part = |name: &str| document.plan.get(name).cloned().unwrap_or_default();
        ["name", "data", "operations", "keys", "access", "schedule"].map(part)
    };
    let other = runs
        .iter()
        .find(|(document, _)| key(document) != key(first));
    match other {
        None => Ok(()),
        Some((document, run)) => {
            let text = format!(
                "the runs are of different plans: `{}` is of `{}`, `{}` of another one or with other data",
                run.directory, document.name, first.name
            );
            Err(Failure::new(Exit::BadInput, text).with_hint(
                "choose one with `--workload NAME`, or keep each series in a folder of its own",
            ))
        }
    }
}
