//! Checks an experiment with the hosts of a fleet before its first run.

use crate::context::Context;
use crate::error::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::task::{Remote, Task};
use dyno_record::experiment::{Experiment, Verb};
use std::path::Path;

/// Refuses an experiment that these hosts cannot perform. `first` is the task of its runs, and
/// `planned` are the runs known now.
pub(super) fn check(
    document: &Experiment,
    first: Option<&Task>,
    planned: &[Task],
    embedded: Option<&Path>,
    context: Context<'_>,
) -> Result<(), Error> {
    let Some(source) = context.source else {
        return Ok(());
    };
    let tried = super::tune::values::of_search(document, planned)?;
    let planned: Vec<&Task> = planned.iter().chain(&tried).collect();
    let plans: Vec<&Plan> = planned.iter().map(|task| &task.plan).collect();
    source.check_same(&plans)?;
    if matches!(document.verb, Verb::Xmax | Verb::Slo) {
        let verb = document.verb.as_str();
        plans.iter().try_for_each(|plan| source.check_amounts(plan, verb))?;
    }
    let plans = planned.iter();
    let plans: Vec<(&Plan, Option<&Remote>)> =
        plans.map(|task| (&task.plan, task.remote.as_ref())).collect();
    source.check_plans(&plans, embedded, context)?;
    match document.verb {
        // The plan's number of clients does not matter: the search varies it.
        Verb::Xmax => check_most_clients(document, first, context),
        _ => source.check_shares(&plans, context),
    }
}

fn check_most_clients(
    document: &Experiment,
    first: Option<&Task>,
    context: Context<'_>,
) -> Result<(), Error> {
    let most = document.options.max_clients.unwrap_or(1);
    let least = least_clients(first, context)?;
    if most >= least {
        return Ok(());
    }
    let text = format!(
        "`--max-clients` is {most}, but must be at least {least}: one for each agent and server that it loads"
    );
    Err(Error::new(Kind::BadInput, text))
}

/// Fewest clients that a run of a task can have: each agent of a fleet needs one.
pub(super) fn least_clients(task: Option<&Task>, context: Context<'_>) -> Result<u32, Error> {
    let Some((source, task)) = context.source.zip(task) else {
        return Ok(1);
    };
    source.least_clients(&task.plan, task.remote.as_ref(), context)
}
