//! `dyno tune --across`: a search for each of several workloads, and the effect of the settings of
//! each on the others. A single workload has nothing to compare afterwards.

use super::super::points::WhichPlan;
use super::super::request::Tasks;
use super::super::runner::ExperimentRunner;
use super::super::suite::{add, joined, names, quoted, recorded};
use super::budget::pairs_in_words;
use crate::error::Error;
use dyno_plan::task::Task;
use dyno_record::experiment::{Answer, Experiment, TuneAcrossAnswer, TuneOptions, WorkloadOptions};

/// Tasks of the workload and of the other workloads.
pub(super) fn tasks(
    others: &[String],
    task_of: impl Fn(Option<&str>) -> Result<Task, Error>,
) -> Result<Vec<Task>, Error> {
    let mut tasks = Vec::new();
    add(&mut tasks, task_of(None)?)?;
    for workload in others {
        add(&mut tasks, task_of(Some(workload))?)?;
    }
    Ok(tasks)
}

pub(super) fn question(names: &[String], goal: &str) -> String {
    let quoted = quoted(names);
    match names.len() {
        1 => format!("Which settings make {quoted} better, by its {goal}?"),
        _ => format!(
            "Which settings make {quoted} better, each by its {goal}, and does it depend on the workload?"
        ),
    }
}

/// Records the plans of several workloads and the options of each search.
pub(super) fn keep_plans(
    experiment: &mut Experiment,
    tasks: &[Task],
    options: impl Fn(&Task) -> TuneOptions,
) {
    experiment.name = joined(&names(tasks));
    let of_each = tasks
        .iter()
        .map(|task| WorkloadOptions { workload: task.plan.name.clone(), options: options(task) });
    experiment.options.plans = recorded(tasks);
    experiment.options.tune_across = of_each.collect();
}

/// The plans to search for, in their order.
pub(crate) fn plans(document: &Experiment) -> Vec<WhichPlan> {
    let of_each = document.options.tune_across.iter();
    let plans: Vec<WhichPlan> =
        of_each.map(|one| WhichPlan::Workload(one.workload.clone())).collect();
    if plans.is_empty() { vec![WhichPlan::Only] } else { plans }
}

/// Options of each search.
pub(super) fn options(runner: &ExperimentRunner<'_>) -> Result<Vec<TuneOptions>, Error> {
    let of_each = &runner.document.options.tune_across;
    if of_each.is_empty() {
        return Ok(vec![runner.own(|options| &options.tune)?]);
    }
    Ok(of_each.iter().map(|one| one.options.clone()).collect())
}

/// Records the options of each search.
pub(super) fn keep_options(
    runner: &mut ExperimentRunner<'_>,
    options: &[TuneOptions],
) -> Result<(), Error> {
    let kept = &mut runner.document.options;
    if kept.tune_across.is_empty() {
        kept.tune = Some(options[0].clone());
    }
    for (one, options) in kept.tune_across.iter_mut().zip(options) {
        one.options.clone_from(options);
    }
    runner.save()
}

/// Dry-run text for several workloads: before and after the figures of one search.
pub(super) fn preview(tasks: &Tasks, pairs: u32) -> (String, String) {
    if tasks.len() == 1 {
        return Default::default();
    }
    let names: Vec<String> = tasks.iter().map(|(_, task)| task.plan.name.clone()).collect();
    (
        format!("for each of {}: ", quoted(&names)),
        format!(
            "then the settings of each, and of all together, on the others: {} each\n",
            pairs_in_words(pairs)
        ),
    )
}

/// The answer of one search, or across all workloads.
pub(super) fn answered(mut answer: TuneAcrossAnswer, plans: &[WhichPlan]) -> Option<Answer> {
    match plans {
        [WhichPlan::Only] => {
            let search = answer.searches.pop()?;
            Some(Answer::Tune(Box::new(search.answer)))
        }
        _ => Some(Answer::TuneAcross(Box::new(answer))),
    }
}
