//! `dyno ab`: two plans in interleaved pairs, until the ratio is known precisely enough.

use super::clock::Clock;
use super::request::{Resolve, Tasks, WhichPlan, document, may_hold_secrets};
use super::runner::ExperimentRunner;
use crate::error::{Error, refuse};
use dyno_analyze::experiment::ab::{analyze, deciding, disturbed, explained, pairs, side};
use dyno_analyze::experiment::limits::planned;
use dyno_analyze::resampling::Resampling;
use dyno_plan::model::{Schedule, ScheduleKind};
use dyno_plan::task::Task;
use dyno_record::experiment::{
    AbAnswer, AbEnd, AbOptions, Answer, DisturbedPair, Experiment, Keys, Limit, RATE, Side, Verb,
};
use std::time::Duration;

/// The two sides of a comparison, and when it may end.
#[derive(Clone, Debug, Default)]
pub struct AbRequest {
    /// Plan of B; `None` for the plan of A.
    pub workload_b: Option<String>,
    /// Plan keys of A and their values.
    pub settings_a: Vec<(String, String)>,
    /// Plan keys of B and their values.
    pub settings_b: Vec<(String, String)>,
    /// Keys of both plans and their values; settings of one side override them.
    pub settings_of_both: Vec<(String, String)>,
    /// Concurrent connections of both sides; `None` for the plans' numbers.
    pub clients: Option<u32>,
    /// Offered rate of both sides in operations per second, unless a setting of one side names it.
    pub rate_per_s: Option<f64>,
    /// Schedule of both sides; `None` for the plans' schedules.
    pub schedule: Option<ScheduleKind>,
    /// Smallest difference of interest, as a share, above 0 and below 1.
    pub margin: f64,
    /// How much worse B may be. Pairs are added until these figures are precise, instead of the deciding one.
    pub limits: Vec<Limit>,
    /// Absolute path of the file for the outcomes of the limits, as JUnit XML.
    pub junit: Option<String>,
    /// Fewest pairs of runs; `None` for 3, or the most if that is less.
    pub min_pairs: Option<u32>,
    /// Most pairs of runs; `None` for 20, or the fewest if that is more.
    pub max_pairs: Option<u32>,
    /// No further pair begins after this time.
    pub time_limit: Option<Duration>,
    /// A pair in which the hypervisor took more than this share of the CPU time does not count.
    pub max_steal_ratio: f64,
}

/// Plans the comparison and resolves the tasks of both sides.
///
/// # Errors
/// A plan is invalid, the plans cannot be compared, or the numbers of pairs contradict each other.
pub fn plan(request: &AbRequest, resolve: Resolve<'_>) -> Result<(Experiment, Tasks), Error> {
    let task_of = |workload: Option<&str>, settings: &[(String, String)]| {
        let mut all = request.settings_of_both.clone();
        all.extend(settings.iter().cloned());
        let sets_rate = settings.iter().any(|(key, _)| key == RATE);
        let rate_per_s = request.rate_per_s.filter(|_| !sets_rate);
        let mut task = resolve(workload, &all, (request.schedule, rate_per_s))?;
        if let Some(clients) = request.clients {
            task.set_clients(clients)?;
        }
        Ok::<Task, Error>(task)
    };
    let (least, most) = pairs_to_run(request)?;
    let a = task_of(None, &request.settings_a)?;
    let b = task_of(request.workload_b.as_deref(), &request.settings_b)?;
    if is_open(&a) != is_open(&b) {
        let text =
            "one plan has an offered rate and the other a closed loop, which cannot be compared";
        return refuse(text, "give both the same schedule");
    }
    let changes = request.settings_a.len() + request.settings_b.len();
    let question = match (&request.workload_b, changes) {
        (None, 0) => format!("Is `{}` as fast as itself?", a.plan.name),
        _ => format!(
            "Is B ({}) faster than A ({})?",
            described(&b, &request.settings_b),
            described(&a, &request.settings_a)
        ),
    };
    let mut experiment = document(Verb::Ab, question, &a);
    let settings = |list: &[(String, String)]| -> Vec<String> {
        list.iter().map(|(key, value)| setting(key, value)).collect()
    };
    experiment.options.max_steal = Some(request.max_steal_ratio);
    experiment.options.ab = Some(AbOptions {
        plan_b: b.plan.name.clone(),
        plan_of_b: dyno_plan::file::recorded(&b.plan),
        set_a: settings(&request.settings_a),
        set_b: settings(&request.settings_b),
        margin: request.margin,
        min_pairs: least,
        max_pairs: most,
        time_limit_s: request.time_limit.map(|limit| limit.as_secs_f64()),
        limits: request.limits.clone(),
        junit: request.junit.clone(),
    });
    let tasks = [(Side::A, a), (Side::B, b)];
    let tasks = tasks.map(|(side, task)| (WhichPlan::Side(side), task));
    Ok((experiment, tasks.into()))
}

/// Plan name of one side, with the settings that the other side lacks.
fn described(task: &Task, settings: &[(String, String)]) -> String {
    let mut text = format!("`{}`", task.plan.name);
    for (index, (key, value)) in settings.iter().enumerate() {
        let joint = if index == 0 { " with" } else { "," };
        text.push_str(&format!("{joint} `{}`", setting(key, value)));
    }
    text
}

/// A setting as it is recorded, without secrets.
fn setting(key: &str, value: &str) -> String {
    let shown = if may_hold_secrets(key) { "***" } else { value };
    format!("{key}={shown}")
}

/// Fewest and most pairs; a given number adjusts the default of the other.
fn pairs_to_run(request: &AbRequest) -> Result<(u32, u32), Error> {
    match (request.min_pairs, request.max_pairs) {
        (Some(least), Some(most)) if least > most => {
            let text = format!("`--min-pairs {least}` is more than `--max-pairs {most}`");
            refuse(text, "give only one, or the same value for both")
        }
        (least, most) => {
            let least = least.unwrap_or_else(|| MIN_PAIRS.min(most.unwrap_or(MIN_PAIRS)));
            Ok((least, most.unwrap_or_else(|| MAX_PAIRS.max(least))))
        }
    }
}

/// Default numbers of pairs.
const MIN_PAIRS: u32 = 3;
const MAX_PAIRS: u32 = 20;

fn is_open(task: &Task) -> bool {
    task.plan.schedule != (Schedule::Closed {})
}

/// Runs pairs until their number, their precision or the time suffices, and computes the answer.
pub(crate) fn run(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    if runner.was_complete {
        // Only removed runs are made again.
        runner.run_all()?;
        runner.document.answer = answer(runner)?.map(boxed);
        return Ok(());
    }
    let options = runner.own(|options| &options.ab)?;
    let (least, most) = (options.min_pairs as usize, options.max_pairs as usize);
    let clock = Clock::of(runner);
    let mut pair = 0;
    loop {
        let made = measure_pair(runner, pair, &clock);
        let set_aside = disturbed(&runner.document);
        let own = set_aside.iter().find(|one| one.pair as usize == pair);
        runner.note_set_aside(own.map(|one| one.stolen_ratio));
        let found = answer(runner);
        if let Err(failure) = made {
            // Keeps the answer from the earlier pairs.
            runner.document.answer = found.ok().flatten().map(boxed);
            return Err(failure);
        }
        let found = found?;
        let is_precise = found.as_ref().is_some_and(|answer| answer.end == AbEnd::Precise);
        runner.document.answer = found.map(boxed);
        let is_over = clock.has_reached(options.time_limit_s);
        pair += 1;
        let counted = counted(pair, &set_aside);
        if counted >= most || counted >= least && is_precise || pair >= least && is_over {
            return Ok(());
        }
    }
}

/// How many of the first pairs count. A resumed experiment also has later pairs.
fn counted(pairs: usize, set_aside: &[DisturbedPair]) -> usize {
    let is_before = |one: &&DisturbedPair| (one.pair as usize) < pairs;
    pairs - set_aside.iter().filter(is_before).count()
}

/// Whether pairs were run and none of them counts.
pub(crate) fn all_are_set_aside(document: &Experiment) -> bool {
    let pairs = document.points.len() / 2;
    pairs > 0 && counted(pairs, &disturbed(document)) == 0
}

fn measure_pair(
    runner: &mut ExperimentRunner<'_>,
    pair: usize,
    clock: &Clock,
) -> Result<(), Error> {
    for number in [2 * pair, 2 * pair + 1] {
        let which = WhichPlan::Side(side(number));
        let measured = runner.measure(Keys::new(), &which, number);
        clock.keep(runner)?;
        measured?;
    }
    Ok(())
}

fn boxed(answer: AbAnswer) -> Answer {
    Answer::Ab(Box::new(answer))
}

fn answer(runner: &ExperimentRunner<'_>) -> Result<Option<AbAnswer>, Error> {
    let windows = runner.windows()?;
    let set_aside = disturbed(&runner.document);
    let pairs = pairs(&runner.document, &windows, &set_aside);
    let deciding = deciding(runner.tasks().any(is_open));
    let options = runner.own(|options| &options.ab)?;
    let seeded = Resampling::seeded(runner.seed());
    let found = analyze(&pairs, deciding, options.margin, &options.limits, seeded);
    Ok(found.map(|answer| {
        let answer = AbAnswer { set_aside, ..answer };
        planned(explained(answer, &runner.document), &options.limits)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_set_aside_pairs_are_not_subtracted_from_first_pairs() {
        let aside = |pair: u32| DisturbedPair { pair, stolen_ratio: 0.1 };
        let set_aside = [aside(0), aside(4), aside(5)];
        assert_eq!(counted(1, &set_aside), 0);
        assert_eq!(counted(4, &set_aside), 3);
        assert_eq!(counted(6, &set_aside), 3);
    }
}
