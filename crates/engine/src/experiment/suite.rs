//! `dyno run` with several workloads: each workload with each setting, in rounds, on servers that
//! stay up between workloads.

use super::axes::{check_secrets, resolved, split};
use super::points::{WhichPlan, changes_the_collection, point};
use super::request::{Resolve, Tasks, document};
use super::runner::ExperimentRunner;
use super::sweep::{Combinations, base, check_count};
use crate::environment::Environment;
use crate::error::{Error, refuse};
use dyno_plan::task::Task;
use dyno_record::experiment::{Axis, Experiment, Options, Point, RATE, Verb, WORKLOAD};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Most characters of a name made from the workload names, which are ASCII.
const NAME_CHARACTERS: usize = 40;

/// Workloads and options of a suite.
#[derive(Clone, Debug, Default)]
pub struct SuiteRequest {
    /// Name of the suite; `None` for a name made from its workloads.
    pub name: Option<String>,
    /// Built-in plans, or paths of plan and property files; at least one.
    pub workloads: Vec<String>,
    /// Plan keys and their values; several values of one key are run side by side.
    pub settings: Vec<(String, String)>,
    /// Runs of each workload with each setting.
    pub repeat: u32,
    /// Time limit for reporting the share of faster operations.
    pub below: Option<Duration>,
    /// Path of the embedded server, if it was given.
    pub embedded_server: Option<PathBuf>,
}

/// Plans the experiment with all its points, and the tasks of the workloads.
///
/// # Errors
/// Invalid values, two workloads with the same name, too many runs, or missing servers.
pub fn plan(
    request: &SuiteRequest,
    resolve: Resolve<'_>,
    environment: &Environment,
) -> Result<(Experiment, Tasks), Error> {
    let (fixed, axes) = split(&request.settings);
    let base = base(None, &axes)?;
    let rate = axes.iter().find(|axis| axis.key == RATE);
    let rate_per_s = rate.map(|axis| axis.values[0].parse().unwrap_or(1.0));
    let embedded = request.embedded_server.as_deref();
    let resolved = resolved(fixed, &axes, embedded, environment)?;
    let mut tasks = Vec::new();
    for workload in &request.workloads {
        let task = resolve(Some(workload), &resolved, (None, rate_per_s))?;
        axes.iter().try_for_each(|axis| check_secrets(axis, &task))?;
        add(&mut tasks, task)?;
    }
    let names = names(&tasks);
    let mut experiment = document(Verb::Suite, question(&names, &axes), &tasks[0]);
    experiment.name = request.name.clone().unwrap_or_else(|| joined(&names));
    experiment.points = points(&tasks, &axes, request.repeat)?;
    let workloads = Axis { key: WORKLOAD.to_owned(), values: names };
    experiment.axes = std::iter::once(workloads).chain(axes).collect();
    experiment.options = Options {
        plans: recorded(&tasks),
        repeat: Some(request.repeat),
        below_us: request.below.map(|below| below.as_secs_f64() * 1e6),
        base,
        ..Options::default()
    };
    Ok((experiment, by_workload(tasks)))
}

/// Names of the workloads, in their order.
pub(super) fn names(tasks: &[Task]) -> Vec<String> {
    tasks.iter().map(|task| task.plan.name.clone()).collect()
}

/// The tasks with the names of their workloads.
pub(super) fn by_workload(tasks: Vec<Task>) -> Tasks {
    let named = |task: Task| (WhichPlan::Workload(task.plan.name.clone()), task);
    tasks.into_iter().map(named).collect()
}

/// Adds a workload's task; its name must be new.
pub(super) fn add(tasks: &mut Vec<Task>, task: Task) -> Result<(), Error> {
    let name = &task.plan.name;
    if tasks.iter().any(|other| other.plan.name == *name) {
        let text = format!("two workloads have the name `{name}`");
        return refuse(text, "give each workload once, and set a unique `name` in your own plans");
    }
    tasks.push(task);
    Ok(())
}

/// The plans of all workloads by name, as in the document.
pub(super) fn recorded(tasks: &[Task]) -> BTreeMap<String, serde_json::Value> {
    let plans = tasks.iter().map(|task| &task.plan);
    plans.map(|plan| (plan.name.clone(), dyno_plan::file::recorded(plan))).collect()
}

/// `a-b-c`, shortened to fit into a folder name.
pub(super) fn joined(names: &[String]) -> String {
    let mut text = names.join("-");
    text.truncate(NAME_CHARACTERS);
    text
}

/// `` `a`, `b` and `c` ``.
pub(super) fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}

fn question(names: &[String], axes: &[Axis]) -> String {
    let is_or_are = if names.len() == 1 { "is" } else { "are" };
    let what = format!("How fast {is_or_are} {}", quoted(names));
    let settings = axes.iter();
    let settings = settings.map(|axis| format!("{} of {}", axis.key, axis.values.join(" and of ")));
    match settings.collect::<Vec<_>>().as_slice() {
        [] => format!("{what}?"),
        settings => format!("{what}, with {}?", settings.join(" and ")),
    }
}

/// All runs. Workloads that leave the documents unchanged come before workloads that insert or
/// delete, to save loads. Every other round reverses the order of the settings, so that a drift of
/// the machine affects all of them alike.
fn points(tasks: &[Task], axes: &[Axis], repeat: u32) -> Result<Vec<Point>, Error> {
    let combinations = tasks.iter().map(|task| (&task.plan, Combinations::of(axes, None, task)));
    let mut combinations: Vec<_> = combinations.collect();
    check_count(combinations.iter().map(|(_, one)| one), repeat, "suite")?;
    combinations.sort_by_key(|(plan, _)| changes_the_collection(plan));
    let all: Vec<_> = combinations.iter().map(|(plan, one)| (&plan.name, one.all())).collect();
    let settings = all.first().map_or(0, |(_, settings)| settings.len());
    let mut points = Vec::new();
    for repeat in 0..repeat {
        let mut order: Vec<usize> = (0..settings).collect();
        if repeat % 2 == 1 {
            order.reverse();
        }
        for place in order {
            for (name, settings) in &all {
                let which = WhichPlan::Workload((*name).clone());
                points.push(point(points.len(), settings[place].clone(), which, repeat));
            }
        }
    }
    Ok(points)
}

/// Runs the rest of the suite and computes the answer.
pub(crate) fn run(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    let ran = runner.run_all();
    let found = dyno_results::suite::answer(&runner.document, runner.folder.path());
    let answered = found.map(|found| {
        if found.is_some() {
            runner.document.answer = found;
        }
    });
    ran.and(answered.map_err(Error::from))
}

#[cfg(test)]
mod tests {
    use super::super::sweep::MOST_RUNS;
    use super::*;
    use dyno_plan::request::Request;
    use dyno_plan::resolve::resolve;

    fn tasks(names: &[&str]) -> Vec<Task> {
        let environment =
            Environment { home: crate::environment::ServerHome::Hosts, ..Environment::default() };
        let task = |name: &&str| {
            let request = Request { source: Some((*name).to_owned()), ..Request::default() };
            resolve(&request, &environment).unwrap()
        };
        names.iter().map(task).collect()
    }

    fn order(points: &[Point], key: &str) -> Vec<String> {
        let label = |point: &Point| {
            let value = point.settings.get(key).map_or("", String::as_str);
            format!("{}{value}", point.workload.as_deref().unwrap_or_default())
        };
        points.iter().map(label).collect()
    }

    #[test]
    fn inserting_workloads_run_last_and_settings_reverse_by_round() {
        let axes = [Axis { key: "client.clients".into(), values: vec!["1".into(), "2".into()] }];
        let points = points(&tasks(&["d", "a", "e", "c"]), &axes, 2).unwrap();
        assert_eq!(
            order(&points, "client.clients").join(" "),
            "a1 c1 d1 e1 a2 c2 d2 e2 a2 c2 d2 e2 a1 c1 d1 e1"
        );
        assert_eq!(points[0].directory, "runs/001-a-clients-1");
        assert_eq!((points[7].repeat, points[8].repeat), (0, 1));
    }

    #[test]
    fn suite_is_refused_above_the_sweep_limit_of_runs() {
        let failure = points(&tasks(&["a", "b"]), &[], 5_001).unwrap_err();
        assert!(failure.reason().contains(&MOST_RUNS.to_string()));
        assert_eq!(points(&tasks(&["a"]), &[], 3).unwrap().len(), 3);
    }
}
