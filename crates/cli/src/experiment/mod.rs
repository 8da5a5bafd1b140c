//! Experiments: several runs that answer one question, from what was typed to the saved answer. What the
//! runs mean is found by `analyze`.

pub(crate) mod ab;
pub(crate) mod campaign;
pub(crate) mod folder;
pub(crate) mod outcome;
pub(crate) mod slo;
pub(crate) mod sweep;
pub(crate) mod xmax;

use crate::args::{ExperimentArguments, ResumeArguments};
use crate::exit::{Exit, Failure};
use crate::messages::{Messages, print_data};
use crate::metrics::{Endpoint, Metrics};
use crate::selfcheck;
use crate::session::execute::Hands;
use crate::session::task;
use crate::session::{observation, preflight};
use campaign::{Bench, Campaign};
use dyno_analyze::experiment::figures::measured;
use dyno_analyze::experiment::relative::{BASE, Base};
use dyno_analyze::experiment::{Experiment, Point, SCHEMA_VERSION, Side, Verb};
use dyno_analyze::uncertainty::series::IntervalSample;
use dyno_plan::Plan;
use dyno_plan::task::Task;
use dyno_record::model::{PhaseKind, RunStatus};
use dyno_record::responses::responses;
use dyno_report::experiment::ExperimentFormat;
use folder::{DOCUMENT, ExperimentFolder};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A document that has no points yet.
pub(crate) fn document(verb: Verb, question: String, task: &Task) -> Experiment {
    Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        verb,
        question,
        name: task.plan.name.clone(),
        started_at: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        status: RunStatus::Running,
        status_reason: None,
        plan: serde_json::to_value(&task.plan).expect("a plan is plain data"),
        options: BTreeMap::new(),
        axes: Vec::new(),
        points: Vec::new(),
        answer: None,
        findings: Vec::new(),
        caveats: Vec::new(),
    }
}

/// The recording windows of all points that were run, by their place.
pub(crate) fn windows(
    campaign: &Campaign<'_>,
) -> Result<BTreeMap<usize, Vec<IntervalSample>>, Failure> {
    let mut all = BTreeMap::new();
    for (place, point) in campaign.document.points.iter().enumerate() {
        if let Some(figures) = &point.figures {
            let is_open = figures.offered_rate_per_s.is_some();
            let directory = campaign.folder().path().join(&point.directory);
            let windows = responses(&directory, PhaseKind::Measure, None)?;
            all.insert(place, measured(&windows, is_open).samples);
        }
    }
    Ok(all)
}

/// The tasks of an experiment: one, or one for each side.
pub(crate) type Tasks = Vec<(Option<Side>, Task)>;

/// Name of the copy of a plan in the folder.
fn plan_file(side: Option<Side>) -> &'static str {
    match side {
        None => "plan.toml",
        Some(Side::A) => "plan-a.toml",
        Some(Side::B) => "plan-b.toml",
    }
}

/// Begins an experiment, does it, and shows the answer.
pub(crate) fn begin(
    mut document: Experiment,
    tasks: Tasks,
    arguments: &ExperimentArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    for (_, task) in &tasks {
        task::tell(task, hands.messages);
    }
    let tasks: BTreeMap<_, _> = tasks.into_iter().collect();
    let wishes = (arguments.data.fresh, arguments.no_load);
    let planned = campaign::planned(&document, &tasks, wishes)?;
    let embedded = arguments.target.start.embedded_server.as_deref();
    let endpoint = Endpoint::resolve(&arguments.metrics, hands.surroundings)?;
    if arguments.dry_run {
        print_data(&design(&document))?;
    }
    preflight::of_experiment(&planned.tasks, embedded, hands)?;
    if arguments.dry_run {
        let out = arguments.out.as_deref();
        out.map_or(Ok(()), ExperimentFolder::check)?;
        return Ok(Exit::Done);
    }
    let metrics = Metrics::serve(endpoint, hands.messages)?;
    let hands = hands.telling(metrics.as_ref());
    let options = &mut document.options;
    options.insert("fresh".into(), arguments.data.fresh.into());
    options.insert("no_load".into(), arguments.no_load.into());
    if hands.fleet.is_some() {
        options.insert(ON_FLEET.into(), true.into());
    }
    for (side, task) in &tasks {
        let threads = serde_json::to_value(task.threads).expect("it is plain data");
        options.insert(threads_option(*side).into(), threads);
    }
    let name = format!("{}-{}", document.verb.as_str(), document.name);
    let folder = ExperimentFolder::create(arguments.out.as_deref(), &name, Timestamp::now())?;
    let embedded = arguments.target.start.embedded_server.clone();
    let bench = bench(&document, embedded, state_dir, hands);
    let saved = tasks
        .iter()
        .try_for_each(|(side, task)| folder.save_plan(plan_file(*side), task));
    let campaign = saved.and_then(|()| Campaign::new(document, folder.clone(), tasks, bench));
    let mut campaign = campaign.inspect_err(|_| folder.discard())?;
    perform(&mut campaign, arguments.format)
}

/// Goes on with an experiment; of one that is complete the answer is found again.
pub(crate) fn resume(
    arguments: &ResumeArguments,
    state_dir: Option<&Path>,
    hands: Hands<'_>,
) -> Result<Exit, Failure> {
    let endpoint = Endpoint::resolve(&arguments.metrics, hands.surroundings)?;
    let (folder, mut document) = ExperimentFolder::open(&arguments.experiment)?;
    check_place(&document, &folder, hands)?;
    let sides: &[Option<Side>] = match document.verb {
        Verb::Ab => &[Some(Side::A), Some(Side::B)],
        Verb::Sweep | Verb::Xmax | Verb::Slo => &[None],
    };
    let mut tasks = BTreeMap::new();
    for side in sides {
        let plan = folder.plan(plan_file(*side))?;
        let known = match side {
            Some(Side::B) => document.options.get(PLAN_OF_B),
            Some(Side::A) | None => Some(&document.plan),
        };
        // Older documents have no plan of B.
        if let Some(known) = known {
            check_same(&plan, known, plan_file(*side))?;
        }
        let threads = document.options.get(threads_option(*side));
        let threads = threads.and_then(|value| serde_json::from_value(value.clone()).ok());
        let task = Task::from_plan(plan, threads, arguments.uri.as_deref())?;
        task::tell(&task, hands.messages);
        tasks.insert(*side, task);
    }
    check_exporters(&tasks)?;
    let metrics = Metrics::serve(endpoint, hands.messages)?;
    let hands = hands.telling(metrics.as_ref());
    forget_lost_runs(&mut document, &folder, hands.messages);
    let bench = bench(
        &document,
        arguments.embedded_server.clone(),
        state_dir,
        hands,
    );
    let mut campaign = Campaign::new(document, folder, tasks, bench)?;
    perform(&mut campaign, arguments.format)
}

/// Runs of one machine and runs of a fleet answer no question together. What is complete needs no runs.
fn check_place(
    document: &Experiment,
    folder: &ExperimentFolder,
    hands: Hands<'_>,
) -> Result<(), Failure> {
    let option = document.options.get(ON_FLEET);
    let on_fleet = option.and_then(|value| value.as_bool()).unwrap_or(false);
    if document.status == RunStatus::Complete || on_fleet == hands.fleet.is_some() {
        return Ok(());
    }
    let place = folder.path().display();
    let (text, hint) = match on_fleet {
        true => (
            "the experiment began on a fleet",
            format!("go on with `dyno fleet resume {place} --inventory …`"),
        ),
        false => (
            "the experiment began on one machine",
            format!("go on there with `dyno resume {place}`"),
        ),
    };
    Err(Failure::new(Exit::BadInput, text).with_hint(hint))
}

/// Runs of different plans answer no question together.
fn check_same(plan: &Plan, known: &serde_json::Value, file: &str) -> Result<(), Failure> {
    let known: Plan = serde_json::from_value(known.clone()).map_err(|error| {
        Failure::of(Exit::BadInput, error)
            .context(format!("the plan in `{DOCUMENT}` is not valid"))
            .with_hint("another version of `dyno` may have written it: use that one")
    })?;
    if known != *plan {
        let text = format!("`{file}` is not the plan of the runs that are done");
        return Err(Failure::new(Exit::BadInput, text)
            .with_hint("take the change back, or begin a new experiment with it"));
    }
    Ok(())
}

/// A run whose directory has gone is one to be made.
fn forget_lost_runs(document: &mut Experiment, folder: &ExperimentFolder, messages: Messages) {
    for point in &mut document.points {
        if point.figures.is_some() && !folder.holds(point) {
            let text = format!("`{}` is gone, and is measured again", point.directory);
            messages.warning(&text);
            point.figures = None;
        }
    }
}

/// Name of the option that holds the plan of the side that is not that of the document.
pub(crate) const PLAN_OF_B: &str = "plan_of_b";

/// Name of the option that tells that the runs are those of a fleet.
const ON_FLEET: &str = "fleet";

/// Name of the option that holds the threads of a side.
fn threads_option(side: Option<Side>) -> &'static str {
    match side {
        None => "threads",
        Some(Side::A) => "threads_a",
        Some(Side::B) => "threads_b",
    }
}

fn bench<'a>(
    document: &Experiment,
    embedded_server: Option<PathBuf>,
    state_dir: Option<&Path>,
    hands: Hands<'a>,
) -> Bench<'a> {
    let flag = |name: &str| {
        let value = document.options.get(name).and_then(|value| value.as_bool());
        value.unwrap_or(false)
    };
    Bench {
        hands,
        embedded_server,
        selfcheck: state_dir.and_then(|folder| selfcheck::state::read(folder, hands)),
        state_dir: state_dir.map(Path::to_owned),
        fresh: flag("fresh"),
        no_load: flag("no_load"),
    }
}

/// Once for all runs, before the first server is started.
fn check_exporters(tasks: &BTreeMap<Option<Side>, Task>) -> Result<(), Failure> {
    tasks
        .values()
        .try_for_each(|task| observation::check(&task.plan))
}

fn perform(campaign: &mut Campaign<'_>, format: ExperimentFormat) -> Result<Exit, Failure> {
    let result = match campaign.document.verb {
        Verb::Sweep => sweep::run(campaign),
        Verb::Xmax => xmax::run(campaign),
        Verb::Slo => slo::run(campaign),
        Verb::Ab => ab::run(campaign),
    };
    campaign.end(result)?;
    show(campaign, format)?;
    if campaign.document.answer.is_none() {
        let text = match campaign.document.verb == Verb::Ab && ab::all_are_set_aside(campaign)? {
            true => {
                "no pair counts: the hypervisor took CPU time in each of them; try again on a quieter machine, or accept more of it with `--max-steal`"
            }
            false => {
                "the runs say too little for an answer: make them longer with `--duration`, or make more of them"
            }
        };
        campaign.hands().messages.warning(text);
    }
    let document = &campaign.document;
    let tolerated = |point: &Point| campaign.tolerated_error_ratio(point);
    let failed = failed_runs(document.verb, &document.points, tolerated)?;
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    campaign.hands().messages.warning(&format!(
        "more operations failed than the plan tolerates, in {} of {} runs: {}",
        failed.len(),
        document.points.len(),
        failed.join(", ")
    ));
    Ok(Exit::CheckFailed)
}

/// The runs in which more operations failed than their plan tolerates, with both shares. A search for an objective
/// has a limit of its own, and is meant to go beyond it.
fn failed_runs(
    verb: Verb,
    points: &[Point],
    tolerated: impl Fn(&Point) -> Result<f64, Failure>,
) -> Result<Vec<String>, Failure> {
    let mut failed = Vec::new();
    for point in points {
        let Some(figures) = point.figures.as_ref().filter(|_| verb != Verb::Slo) else {
            continue;
        };
        let tolerated = tolerated(point)?;
        if figures.failed_ratio > tolerated {
            failed.push(format!(
                "`{}` (a share of {:.6}, tolerated are {tolerated})",
                point.directory, figures.failed_ratio
            ));
        }
    }
    Ok(failed)
}

/// The runs that would be made, one per line.
fn design(document: &Experiment) -> String {
    let mut text = format!("{}\n", document.question);
    let base = document.options.get(BASE).cloned();
    if let Some(base) = base.and_then(|base| serde_json::from_value::<Base>(base).ok()) {
        let _ = writeln!(text, "relative to {}={}", base.key, base.value);
    }
    if document.points.is_empty() {
        text.push_str("the runs follow from what is measured\n");
    }
    for point in &document.points {
        let settings: Vec<String> = point
            .settings
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let _ = writeln!(text, "{}  {}", point.directory, settings.join(" "));
    }
    text
}

/// Prints the result and says where it is.
pub(crate) fn show(campaign: &Campaign<'_>, format: ExperimentFormat) -> Result<(), Failure> {
    let hands = campaign.hands();
    let text = outcome::text(&campaign.document, format, hands.surroundings)?;
    print_data(&text)?;
    let place = campaign.folder().path().display();
    hands.messages.note(&format!("experiment: {place}"));
    Ok(())
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
            ..campaign::point(0, BTreeMap::new(), None, 0)
        }
    }

    #[test]
    fn failures_beyond_what_the_plan_tolerates_are_named_but_not_in_a_search_for_an_objective() {
        let points = [0.0, 0.01, 0.02].map(with_failures);
        let failed = |verb, limit| failed_runs(verb, &points, |_| Ok(limit)).expect("it is known");
        for verb in [Verb::Sweep, Verb::Xmax, Verb::Ab] {
            assert_eq!(
                failed(verb, 0.01),
                ["`runs/001` (a share of 0.020000, tolerated are 0.01)"]
            );
            assert_eq!(failed(verb, 0.0).len(), 2);
            assert_eq!(failed(verb, 0.02), Vec::<String>::new());
        }
        assert_eq!(failed(Verb::Slo, 0.0), Vec::<String>::new());
    }
}
