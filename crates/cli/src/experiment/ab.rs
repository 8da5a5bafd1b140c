//! `dyno ab`: two plans in interleaved pairs, until the ratio is known well enough.

use super::campaign::Campaign;
use super::{Tasks, document};
use crate::args::AbArguments;
use crate::exit::{Exit, Failure};
use crate::session::task::{self, Task};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::ab::{AbAnswer, Deciding, analyze, pairs, side};
use dyno_analyze::experiment::{Answer, Experiment, Side, Verb};
use dyno_analyze::resampling::Resampling;
use dyno_plan::model::Schedule;
use std::time::Instant;

/// The experiment that was asked for, and the tasks of both sides.
pub(crate) fn plan(
    arguments: &AbArguments,
    surroundings: &Surroundings,
) -> Result<(Experiment, Tasks), Failure> {
    let common = &arguments.set_both;
    // As the help says, `--set` is for B here.
    let set_b = &arguments.experiment.target.start.settings;
    let task_of = |workload: &Option<String>, settings: &[(String, String)]| {
        let mut all = common.clone();
        all.extend(settings.iter().cloned());
        let mut experiment = arguments.experiment.clone();
        if workload.is_some() {
            experiment.target.workload.clone_from(workload);
        }
        let mut task = task::of_experiment(&experiment, &all, None, surroundings)?;
        if let Some(clients) = arguments.clients {
            task.set_clients(clients)?;
        }
        Ok::<Task, Failure>(task)
    };
    let (least, most) = pairs_to_run(arguments)?;
    let a = task_of(&None, &arguments.set_a)?;
    let b = task_of(&arguments.workload_b, set_b)?;
    if is_open(&a) != is_open(&b) {
        let text =
            "one plan has an offered rate and the other a closed loop, which cannot be compared";
        return Err(Failure::new(Exit::BadInput, text).with_hint("give both the same schedule"));
    }
    let question = match (&arguments.workload_b, arguments.set_a.len() + set_b.len()) {
        (None, 0) => format!("Is `{}` as fast as itself?", a.plan.name),
        _ => format!(
            "Is B (`{}`) faster than A (`{}`)?",
            b.plan.name, a.plan.name
        ),
    };
    let mut experiment = document(Verb::Ab, question, &a);
    let options = &mut experiment.options;
    let settings = |list: &[(String, String)]| -> serde_json::Value {
        list.iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .into()
    };
    options.insert("plan_b".into(), b.plan.name.clone().into());
    options.insert("set_a".into(), settings(&arguments.set_a));
    options.insert("set_b".into(), settings(set_b));
    options.insert("margin".into(), arguments.margin.into());
    options.insert("min_pairs".into(), least.into());
    options.insert("max_pairs".into(), most.into());
    let limit = arguments.time_limit.map(|limit| limit.0.as_secs_f64());
    options.insert("time_limit_s".into(), limit.into());
    Ok((experiment, vec![(Some(Side::A), a), (Some(Side::B), b)]))
}

/// Fewest and most pairs; one that was given moves the other one that was not.
fn pairs_to_run(arguments: &AbArguments) -> Result<(u32, u32), Failure> {
    match (arguments.min_pairs, arguments.max_pairs) {
        (Some(least), Some(most)) if least > most => {
            let text = format!("`--min-pairs {least}` is more than `--max-pairs {most}`");
            Err(Failure::new(Exit::BadInput, text).with_hint("give one of them, or both alike"))
        }
        (least, most) => {
            let least = least.unwrap_or_else(|| MIN_PAIRS.min(most.unwrap_or(MIN_PAIRS)));
            Ok((least, most.unwrap_or_else(|| MAX_PAIRS.max(least))))
        }
    }
}

/// Pairs unless others are asked for.
const MIN_PAIRS: u32 = 3;
const MAX_PAIRS: u32 = 20;

fn is_open(task: &Task) -> bool {
    task.plan.schedule != (Schedule::Closed {})
}

/// Runs pairs until their number, their precision or the time is enough, and finds the answer.
pub(crate) fn run(campaign: &mut Campaign<'_>) -> Result<(), Failure> {
    let begin = Instant::now();
    let (least, most): (usize, usize) =
        (campaign.value("min_pairs")?, campaign.value("max_pairs")?);
    let limit_s: Option<f64> = campaign.value("time_limit_s")?;
    for pair in 0..most {
        for number in [2 * pair, 2 * pair + 1] {
            if let Err(failure) = campaign.measure(&[], Some(side(number)), number) {
                // What is known of the pairs before is not lost.
                campaign.document.answer = answer(campaign).ok().flatten().map(boxed);
                return Err(failure);
            }
        }
        let found = answer(campaign)?;
        let is_precise = found
            .as_ref()
            .and_then(AbAnswer::decision)
            .is_some_and(|decision| decision.is_precise());
        campaign.document.answer = found.map(boxed);
        let is_over = limit_s.is_some_and(|limit_s| begin.elapsed().as_secs_f64() >= limit_s);
        if pair + 1 >= least && (is_precise || is_over) {
            break;
        }
    }
    Ok(())
}

fn boxed(answer: AbAnswer) -> Answer {
    Answer::Ab(Box::new(answer))
}

fn answer(campaign: &Campaign<'_>) -> Result<Option<AbAnswer>, Failure> {
    let windows = super::windows(campaign)?;
    let pairs = pairs(&campaign.document, &windows);
    let deciding = match campaign.tasks().any(is_open) {
        true => Deciding::P99,
        false => Deciding::Rate,
    };
    let margin = campaign.value("margin")?;
    Ok(analyze(
        &pairs,
        deciding,
        margin,
        Resampling::seeded(campaign.seed()),
    ))
}
