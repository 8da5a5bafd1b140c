//! Experiments: several runs that answer one question, from the request to the saved answer.
//! `analyze` interprets the runs.

pub mod ab;
pub mod axes;
mod clock;
mod deployment_key;
pub mod estimate;
pub mod folder;
mod hosts;
pub mod objectives;
mod points;
pub mod request;
pub mod runner;
pub mod slo;
pub mod suite;
pub mod sweep;
pub mod tune;
pub mod xmax;

use crate::cancel::Cancel;
use crate::context::Context;
use crate::error::{Error, Kind, OrFault, refuse};
use crate::observer::{Observer, Shared};
use crate::run::options::RunOptions;
use crate::run::{observation, preflight};
use crate::task;
use dyno_plan::Plan;
use dyno_plan::task::Task;
use dyno_record::experiment::{Experiment, FILE, Options, Point, Side, Verb};
use dyno_record::model::RunStatus;
use dyno_record::sums;
use estimate::Estimate;
use folder::{ExperimentFolder, PLANS, RUNS};
use jiff::Timestamp;
use request::{Tasks, WhichPlan};
use runner::ExperimentRunner;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An experiment that ended as planned.
#[derive(Debug)]
pub struct FinishedExperiment {
    /// The runs and the answer.
    pub document: Experiment,
    pub folder: PathBuf,
    /// Whether no run counts, because the hypervisor took CPU time from all of them.
    pub all_are_set_aside: bool,
    /// Runs with more failed operations than their plan tolerates, with both shares.
    pub failed_runs: Vec<String>,
}

/// Preflight check of an experiment, before its first run.
///
/// # Errors
/// A plan of a single run is invalid, or this machine or its servers lack something.
pub fn check(
    document: &Experiment,
    tasks: &Tasks,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(), Error> {
    let observer = Shared::new(observer);
    let context = options.context(&observer, cancel);
    let tasks = tasks.iter().cloned().collect();
    check_planned(document, &tasks, options, context)?;
    let out = options.out.as_deref();
    out.map_or(Ok(()), ExperimentFolder::check)
}

/// Refuses invalid plans of single runs. Checks nothing else.
///
/// # Errors
/// The first invalid plan.
pub fn check_plans(
    document: &Experiment,
    tasks: &Tasks,
    options: &RunOptions<'_>,
) -> Result<(), Error> {
    let tasks = tasks.iter().cloned().collect();
    points::planned(document, &tasks, (options.fresh, options.no_load)).map(drop)
}

/// Estimates the runs and the time of an experiment before its first run.
pub fn estimate(document: &Experiment, tasks: &Tasks) -> Estimate {
    Estimate::of(document, &tasks.iter().cloned().collect())
}

fn check_planned(
    document: &Experiment,
    tasks: &BTreeMap<WhichPlan, Task>,
    options: &RunOptions<'_>,
    context: Context<'_>,
) -> Result<(), Error> {
    let planned = points::planned(document, tasks, (options.fresh, options.no_load))?.tasks;
    let embedded = options.embedded_server.as_deref();
    preflight::of_experiment(&planned, embedded, context)?;
    hosts::check(document, tasks.values().next(), &planned, embedded, context)
}

/// Performs an experiment from its first run to the answer.
///
/// # Errors
/// The request is wrong or impossible, a run failed, or the experiment was cancelled. Earlier
/// results are kept, and [`resume`] continues from them.
pub fn run(
    mut document: Experiment,
    tasks: Tasks,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<FinishedExperiment, Error> {
    let observer = Shared::new(observer);
    let context = options.context(&observer, cancel);
    let tasks: BTreeMap<_, _> = tasks.into_iter().collect();
    tasks.values().for_each(|task| task::announce(task, context.observer));
    check_planned(&document, &tasks, options, context)?;
    let threads_of = |(which, task): (&WhichPlan, &Task)| {
        (which.file(), serde_json::to_value(task.threads).expect("it is plain data"))
    };
    document.options = Options {
        fresh: options.fresh,
        no_load: options.no_load,
        drop_foreign: options.drop_foreign,
        fleet: context.source.is_some(),
        threads: tasks.iter().map(threads_of).collect(),
        ..document.options
    };
    let name = format!("{}-{}", document.verb.as_str(), document.name);
    let folder = ExperimentFolder::create(options.out.as_deref(), &name, Timestamp::now())?;
    let saved = tasks.iter().try_for_each(|(which, task)| folder.save_plan(&which.file(), task));
    let runner = saved
        .and_then(|()| ExperimentRunner::new(document, folder.clone(), tasks, options, context));
    let mut runner = runner.inspect_err(|_| folder.discard())?;
    perform(&mut runner)
}

/// Continues the experiment in a folder; for a complete one it only computes the answer again.
/// `uri` is the connection string of servers that are already running, because their passwords are
/// not kept. The original options decide whether runs start fresh and whether they load.
///
/// # Errors
/// See [`run`]. Also, the folder holds no experiment, or its plans were changed.
pub fn resume(
    path: &Path,
    uri: Option<&str>,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<FinishedExperiment, Error> {
    let observer = Shared::new(observer);
    let context = options.context(&observer, cancel);
    let (folder, mut document) = ExperimentFolder::open(path)?;
    check_place(&document, &folder, context)?;
    let all = match document.verb {
        Verb::Ab => [Side::A, Side::B].map(WhichPlan::Side).into(),
        Verb::Suite => document.points.iter().map(WhichPlan::of).collect(),
        Verb::Tune => tune::across::plans(&document).into_iter().collect(),
        Verb::Sweep | Verb::Xmax | Verb::Slo => BTreeSet::from([WhichPlan::Only]),
    };
    let mut tasks = BTreeMap::new();
    for which in all {
        let file = which.file();
        let plan = folder.plan(&file)?;
        let known = match &which {
            WhichPlan::Side(Side::B) => document.options.ab.as_ref().map(|ab| &ab.plan_of_b),
            WhichPlan::Side(Side::A) | WhichPlan::Only => Some(&document.plan),
            WhichPlan::Workload(workload) => document.options.plans.get(workload),
        };
        if let Some(known) = known {
            check_same(&plan, known, &file)?;
        }
        let threads = document.options.threads.get(&file);
        let threads = threads.and_then(|value| serde_json::from_value(value.clone()).ok());
        let task = Task::from_plan(plan, threads, uri)?;
        task::announce(&task, context.observer);
        tasks.insert(which, task);
    }
    // Once for all runs, before the first server is started.
    tasks.values().try_for_each(|task| observation::check(&task.plan))?;
    check_unchanged(path)?;
    forget_lost_runs(&mut document, &folder, context);
    let is_done = |point: &Point| point.figures.is_some();
    if document.status != RunStatus::Complete || !document.points.iter().all(is_done) {
        let mut plans = tasks.values().map(|task| &task.plan);
        plans.try_for_each(preflight::secrets)?;
    }
    let options = RunOptions {
        fresh: document.options.fresh,
        no_load: document.options.no_load,
        drop_foreign: document.options.drop_foreign,
        out: None,
        ..options.clone()
    };
    let planned = points::planned(&document, &tasks, (options.fresh, options.no_load))?.tasks;
    let embedded = options.embedded_server.as_deref();
    hosts::check(&document, tasks.values().next(), &planned, embedded, context)?;
    let mut runner = ExperimentRunner::new(document, folder, tasks, &options, context)?;
    perform(&mut runner)
}

/// Refuses an experiment that was changed after it finished: its answer might not belong to its
/// runs. Missing runs are allowed, because they are made again. Plan files are allowed to differ,
/// because users must add secrets to them; they are compared with the runs' plans.
fn check_unchanged(path: &Path) -> Result<(), Error> {
    let changes = sums::check(path)?;
    let plans = [Side::A, Side::B].map(WhichPlan::Side);
    let plans = plans.into_iter().chain([WhichPlan::Only]);
    let plans: Vec<String> = plans.map(|which| which.file()).collect();
    let is_plan =
        |file: &Path| file.starts_with(PLANS) || plans.iter().any(|plan| file == Path::new(plan));
    let is_of_lost_run = |file: &Path| {
        let run: PathBuf = file.components().take(2).collect();
        run.starts_with(RUNS) && !path.join(run).exists()
    };
    let Some(file) = changes
        .changed
        .iter()
        .chain(&changes.added)
        .chain(&changes.unreadable)
        .chain(&changes.missing)
        .find(|file| !is_plan(file) && !is_of_lost_run(file))
    else {
        return Ok(());
    };
    let text = format!("`{}` has changed since the experiment ended", path.join(file).display());
    let hint = format!(
        "restore it, or remove `{}` to continue with the current files",
        path.join(sums::FILE).display()
    );
    refuse(text, hint)
}

/// Refuses to mix runs of one machine and runs of a fleet. A complete experiment needs no runs.
fn check_place(
    document: &Experiment,
    folder: &ExperimentFolder,
    context: Context<'_>,
) -> Result<(), Error> {
    let on_fleet = document.options.fleet;
    if document.status == RunStatus::Complete || on_fleet == context.source.is_some() {
        return Ok(());
    }
    let place = folder.path().display();
    let (text, hint) = if on_fleet {
        (
            "the experiment began on a fleet",
            format!("continue with `dyno fleet resume {place} --inventory …`"),
        )
    } else {
        (
            "the experiment began on one machine",
            format!("continue there with `dyno resume {place}`"),
        )
    };
    refuse(text, hint)
}

/// Refuses to mix runs of different plans.
fn check_same(plan: &Plan, known: &serde_json::Value, file: &str) -> Result<(), Error> {
    let known = dyno_plan::file::from_recorded(known.clone())
        .or_fault(Kind::BadInput, || format!("the plan in `{FILE}` is not valid"))
        .with_hint("use the version of `dyno` that wrote it")?;
    if known.without_secrets() != plan.without_secrets() {
        let text = format!("`{file}` is not the plan of the completed runs");
        return refuse(text, "undo the change, or start a new experiment with it");
    }
    Ok(())
}

/// Marks runs with missing directories to be made again.
fn forget_lost_runs(document: &mut Experiment, folder: &ExperimentFolder, context: Context<'_>) {
    for point in &mut document.points {
        if point.figures.is_some() && !folder.holds(point) {
            let text = format!("`{}` is missing and will be measured again", point.directory);
            context.warning(&text);
            point.figures = None;
        }
    }
}

fn perform(runner: &mut ExperimentRunner<'_>) -> Result<FinishedExperiment, Error> {
    if !runner.was_complete {
        runner.announce_extent();
    }
    let result = match runner.document.verb {
        Verb::Sweep => sweep::run(runner),
        Verb::Xmax => xmax::run(runner),
        Verb::Slo => slo::run(runner),
        Verb::Ab => ab::run(runner),
        Verb::Suite => suite::run(runner),
        Verb::Tune => tune::run(runner),
    };
    runner.end(result)?;
    let document = &runner.document;
    let all_are_set_aside = ab::all_are_set_aside(document);
    let tolerated = |point: &Point| runner.tolerated_error_ratio(point);
    Ok(FinishedExperiment {
        all_are_set_aside,
        failed_runs: failed_runs(document.verb, &document.points, tolerated)?,
        folder: runner.folder.path().to_owned(),
        document: document.clone(),
    })
}

/// Runs with more failed operations than their plan tolerates, with both shares. Searches for an
/// objective or for settings may exceed it: they have their own limits.
fn failed_runs(
    verb: Verb,
    points: &[Point],
    tolerated: impl Fn(&Point) -> Result<f64, Error>,
) -> Result<Vec<String>, Error> {
    let mut failed = Vec::new();
    for point in points {
        let is_search = matches!(verb, Verb::Slo | Verb::Tune);
        let Some(figures) = point.figures.as_ref().filter(|_| !is_search) else {
            continue;
        };
        let tolerated = tolerated(point)?;
        if figures.failed_ratio > tolerated {
            failed.push(format!(
                "`{}` (a share of {:.6}; the plan tolerates {tolerated})",
                point.directory, figures.failed_ratio
            ));
        }
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_failures(failed_ratio: f64) -> Point {
        let figures = json!({
            "clients": 1, "threads": 1, "rate_per_s": {"value": 100.0}, "response_mean_us": {"value": 10.0},
            "response_us": {}, "service_mean_us": 10.0, "mean_in_flight": 1.0, "succeeded": 100,
            "failed_ratio": failed_ratio, "dropped_ratio": 0.0, "duration_s": 1.0, "resources": [],
            "demands": [], "laws": [], "caveats": [],
        });
        Point {
            figures: Some(serde_json::from_value(figures).expect("it has all fields")),
            ..points::point(0, BTreeMap::new(), WhichPlan::Only, 0)
        }
    }

    #[test]
    fn runs_above_tolerated_failures_are_named_except_in_slo() {
        let points = [0.0, 0.01, 0.02].map(with_failures);
        let failed = |verb, limit| failed_runs(verb, &points, |_| Ok(limit)).expect("it is known");
        for verb in [Verb::Sweep, Verb::Xmax, Verb::Ab] {
            let one = failed(verb, 0.01);
            assert_eq!(one.len(), 1, "{one:?}");
            for part in ["`runs/001`", "0.020000", "0.01"] {
                assert!(one[0].contains(part), "{one:?}");
            }
            assert_eq!(failed(verb, 0.0).len(), 2);
            assert_eq!(failed(verb, 0.02), Vec::<String>::new());
        }
        assert_eq!(failed(Verb::Slo, 0.0), Vec::<String>::new());
    }
}
