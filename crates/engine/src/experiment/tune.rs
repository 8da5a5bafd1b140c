//! `dyno tune`: searches for settings that improve a server at its work, by comparing runs in
//! pairs.

pub(super) mod across;
mod baseline;
mod budget;
mod knobs;
mod preview;
pub(super) mod values;

pub(super) use budget::planned_run_s;
pub use preview::preview;

use super::clock::Clock;
use super::objectives::{self, ObjectiveRequest, completed};
use super::points::WhichPlan;
use super::request::{Resolve, Tasks, document};
use super::runner::ExperimentRunner;
use super::suite::{by_workload, names};
use crate::error::{Error, Kind, refuse};
use crate::run::limits::WindowLimits;
use baseline::FirstRuns;
use dyno_analyze::experiment::ab::{analyze, deciding, explained, pairs};
use dyno_analyze::experiment::tune::across::{AcrossProgress, budget_across, own_part};
use dyno_analyze::experiment::tune::{
    LEAST_PAIRS, SEARCH_PART, TuneProgress, TuneRun, visible_ratio,
};
use dyno_analyze::resampling::Resampling;
use dyno_plan::knobs::{Allowed, Knob};
use dyno_plan::model::{Schedule, ScheduleKind};
use dyno_plan::task::Task;
use dyno_record::experiment::{AbAnswer, Experiment, Side, TuneGoal, TuneOptions, Verb};
use dyno_record::quantity::Quantity;
use knobs::{Facts, Selection};
use std::time::Duration;

/// Default share of failed operations that is allowed if the plan tolerates none: a few fail on any
/// bench.
const FAILED_RATIO: f64 = 0.001;

/// Comparisons of a search with runs that are too long for its time.
const LEAST_TRIALS: u32 = 4;

/// Options of a search.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// Further workloads, each with its own search.
    pub across: Vec<String>,
    /// Plan keys and their values.
    pub settings: Vec<(String, String)>,
    /// Figure to improve.
    pub goal: TuneGoal,
    /// Offered rate; required by the goals other than [`TuneGoal::Rate`].
    pub rate: Option<f64>,
    /// Schedule at the offered rate. Default: the plan's schedule, or a constant one.
    pub schedule: Option<ScheduleKind>,
    /// Concurrent connections; `None` for the plan's number.
    pub clients: Option<u32>,
    /// Limits for every setting. Default for failed operations: the plan's tolerance, or a few.
    pub objectives: ObjectiveRequest,
    /// Time for all runs.
    pub budget: Duration,
    /// Groups, files, and parameters with their values; empty for all groups.
    pub knobs: Vec<String>,
    /// Allowed changes besides parameters of running servers.
    pub allowed: Allowed,
    /// Smallest gain of interest, as a share, above 0 and below 1.
    pub margin: f64,
    /// A pair in which the hypervisor took more than this share of the CPU time does not count.
    pub max_steal_ratio: f64,
    /// Seed of random choices; `None` for the plan's seed.
    pub seed: Option<u64>,
}

/// Plans the experiment and resolves the tasks of its workloads.
///
/// # Errors
/// A plan is invalid, as it is or with a knob value, two workloads have the same name, a knob
/// cannot be changed, the goal lacks its rate, limits contradict each other or the goal, or the
/// time is too short.
pub fn plan(request: &TuneRequest, resolve: Resolve<'_>) -> Result<(Experiment, Tasks), Error> {
    let offered = offered(request)?;
    check_limits(request)?;
    let tasks = across::tasks(&request.across, |workload| {
        let mut task = resolve(workload, &request.settings, offered)?;
        if let Some(clients) = request.clients {
            task.set_clients(clients)?;
        }
        check_schedule(request.goal, &task)?;
        Ok(task)
    })?;
    let machine = knobs::machine(&tasks);
    let knobs = dyno_plan::knobs::find(&request.knobs, request.allowed, machine)?;
    let mut selection = Selection { knobs, left_out: Vec::new() };
    for task in &tasks {
        knobs::with_values_of(&mut selection.knobs, task);
        let facts = Facts::planned(task);
        selection.sift(|knob| facts.check(knob));
    }
    selection.check_some()?;
    for task in &tasks {
        knobs::check(&selection.knobs, task)?;
        values::check(&selection.knobs, task)?;
    }
    let question = across::question(&names(&tasks), &in_words(request));
    let mut experiment = document(Verb::Tune, question, &tasks[0]);
    let options = |task: &Task| TuneOptions {
        goal: request.goal,
        responses: request.objectives.responses.clone(),
        failed_ratio: failed_ratio(request, task),
        seed: request.seed.unwrap_or(task.plan.client.seed),
        margin_ratio: request.margin,
        max_steal_ratio: Some(request.max_steal_ratio),
        budget_s: request.budget.as_secs_f64(),
        allows_less_durable: request.allowed.durability,
        knobs: selection.knobs.clone(),
        left_out: selection.left_out.clone(),
        ..TuneOptions::default()
    };
    budget::check(request.budget.as_secs_f64(), &tasks)?;
    experiment.options.tune = Some(options(&tasks[0]));
    if let [task] = &tasks[..] {
        return Ok((experiment, vec![(WhichPlan::Only, task.clone())]));
    }
    across::keep_plans(&mut experiment, &tasks, options);
    Ok((experiment, by_workload(tasks)))
}

/// Refuses a goal that does not fit the plan's schedule.
fn check_schedule(goal: TuneGoal, task: &Task) -> Result<(), Error> {
    let is_closed = matches!(task.plan.schedule, Schedule::Closed {});
    if goal != TuneGoal::Rate || is_closed {
        return Ok(());
    }
    let text = format!(
        "the goal `rate` needs a closed loop, but the plan of `{}` offers a rate",
        task.plan.name
    );
    refuse(text, "give `--goal p99` or `--goal cpu` with `--rate`, or `--schedule closed`")
}

/// Schedule and offered rate of the goal.
fn offered(request: &TuneRequest) -> Result<(Option<ScheduleKind>, Option<f64>), Error> {
    match (request.goal, request.rate) {
        (TuneGoal::Rate, Some(_)) => refuse(
            "the goal `rate` does not accept `--rate`: it searches for the highest one",
            "give `--goal p99` or `--goal cpu`",
        ),
        (TuneGoal::P99 | TuneGoal::Cpu, None) => refuse(
            "`--goal p99` and `--goal cpu` require `--rate`",
            "give `--rate`, such as `--rate 5k`",
        ),
        (TuneGoal::Rate, None) => Ok((request.schedule, None)),
        (TuneGoal::P99 | TuneGoal::Cpu, rate) => {
            let kind = request.schedule.unwrap_or(ScheduleKind::Constant);
            Ok((Some(kind), rate))
        }
    }
}

/// Refuses limits that contradict each other or the goal.
fn check_limits(request: &TuneRequest) -> Result<(), Error> {
    let mut responses = request.objectives.responses.iter();
    if request.goal == TuneGoal::P99 && responses.any(|one| one.statistic == "p99") {
        let text = "`--p99` sets a limit, but the p99 is the goal";
        return refuse(text, "leave out `--p99`, or give `--goal rate`");
    }
    request.objectives.check()
}

/// Share of operations that may fail with any setting.
fn failed_ratio(request: &TuneRequest, task: &Task) -> f64 {
    let tolerated = task.plan.client.tolerated_error_ratio;
    let given = request.objectives.failed_ratio;
    given.unwrap_or(tolerated.max(FAILED_RATIO))
}

fn in_words(request: &TuneRequest) -> String {
    let rate = Quantity::per_second(request.rate.unwrap_or_default());
    let goal = match request.goal {
        TuneGoal::Rate => "rate".to_owned(),
        TuneGoal::P99 => format!("p99 at {rate}"),
        TuneGoal::Cpu => format!("server CPU per operation at {rate}"),
    };
    let objectives = &request.objectives;
    if objectives.is_empty() {
        return goal;
    }
    let limits = objectives::in_words(&objectives.responses, objectives.failed_ratio);
    format!("{goal} with {limits}")
}

/// Searches and confirms: for one workload, or for each of several and across all of them.
pub(crate) fn run(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    runner.check_undone()?;
    let clock = Clock::of(runner);
    let plans = across::plans(&runner.document);
    let first = baseline::measure(runner, &plans)?;
    let mut of_each = resolved(runner, &plans, &first)?;
    let is_local = !runner.is_remote() && runner.context.source.is_none();
    let (mut searches, mut limits_of_each) = (Vec::new(), Vec::new());
    let mut number = first.last().map_or(0, |first| first.baseline.end());
    let is_begun = runner.document.points.len() > number;
    for ((which, options), first) in plans.iter().zip(&mut of_each).zip(&first) {
        let name = runner.task(which).plan.name.clone();
        let progress = TuneProgress::new(options, &first.baseline).map_err(|text| {
            unusable(format!("`{name}`: {text}"))
                .with_hint("give another goal, another rate, other limits, or another plan")
        })?;
        if !is_begun {
            tell_noise(runner, &name, options, progress.noise_ratio());
        }
        // A fleet's agents do not report everything about a run that was ended.
        let may_end_if_slow = runner.context.source.is_none();
        let mut limits = baseline::limits(
            options,
            first.baseline.counted(),
            is_local,
            &runner.task(which).plan.phases,
            may_end_if_slow,
        );
        limits.may_stall = match options.may_stall {
            Some(known) => known,
            None => baseline::stalls(runner, &first.baseline, &limits)?,
        };
        options.may_stall = Some(limits.may_stall);
        if limits.may_stall && !is_begun {
            runner.context.warning(format!(
                "`{name}`: the server stalls with its current settings; stalls will not end runs early"
            ));
        }
        limits_of_each.push(limits);
        searches.push((name, progress));
    }
    across::keep_options(runner, &of_each)?;
    let mut progress = AcrossProgress::new(searches);
    loop {
        let is_new = runner.document.points.len() <= number;
        keep_to_time(runner, &mut of_each, &mut progress, is_new.then_some(&clock))?;
        let Some((workload, run)) = progress.next_run() else {
            break;
        };
        let TuneRun { keys, is_tried, may_end_early, on_new_servers } = run;
        let which = &plans[workload];
        if on_new_servers && is_new && !runner.is_remote() {
            runner.close()?;
        }
        let made = runner.document.points.get(number);
        let is_made_now = made.is_none_or(|made| made.figures.is_none() && made.problem.is_none());
        // The compared settings are also changes, unless they are the original ones.
        let outcome = if is_tried || !keys.is_empty() {
            let limits = limits_of_each[workload].clone();
            let clients = runner.task(which).plan.client.clients;
            let limits = WindowLimits {
                client_ratio: baseline::client_ratio(&keys, clients),
                if_slow_s: limits.if_slow_s.filter(|_| may_end_early),
                ..limits
            };
            runner.attempt(keys, which, number, limits)?
        } else {
            Ok(runner.measure(keys, which, number)?)
        };
        let outcome = match outcome {
            Ok(figures) => {
                let responses = &of_each[workload].responses;
                Ok(completed(runner, responses, figures, number)?)
            }
            failed => failed,
        };
        let stolen_ratio = progress.take(outcome.as_ref()).map_err(unusable)?;
        if is_made_now {
            runner.note_set_aside(stolen_ratio);
        }
        if is_new {
            clock.keep(runner)?;
        }
        number += 1;
    }
    let mut answer = progress.answer();
    for search in &mut answer.searches {
        let confirmations = search.answer.confirmations();
        let confirmed: Vec<[usize; 2]> = confirmations.flat_map(|trial| trial.pairs()).collect();
        let compared = compared(runner, &confirmed, &search.options)?;
        search.answer.comparison = compared.map(Box::new);
    }
    runner.document.answer = across::answered(answer, &plans);
    Ok(())
}

/// Shows which gains the runs before any change can detect, while the budget can still be changed.
fn tell_noise(runner: &ExperimentRunner<'_>, name: &str, options: &TuneOptions, noise_ratio: f64) {
    let pairs = options.max_pairs.unwrap_or(LEAST_PAIRS as u32);
    let visible = visible_ratio(noise_ratio, pairs);
    let text = format!(
        "`{name}`: runs vary by {}, so {pairs} pairs can detect gains of about {} or more",
        Quantity::ratio(noise_ratio),
        Quantity::ratio(visible)
    );
    match visible <= options.margin_ratio {
        true => runner.context.note(text),
        false => runner.context.warning(format!(
            "{text}, which exceeds `--margin`; use a longer `--budget` or `--duration` or a quieter machine to detect smaller gains"
        )),
    }
}

/// Ends a search when its time is over, and limits the confirmation of each candidate to the
/// remaining time. Both decisions are recorded, so that a resumed search takes the same course;
/// known runs have no clock.
fn keep_to_time(
    runner: &mut ExperimentRunner<'_>,
    of_each: &mut [TuneOptions],
    progress: &mut AcrossProgress,
    clock: Option<&Clock>,
) -> Result<(), Error> {
    let own_part = own_part(of_each.len());
    let shares_s = of_each.iter().map(|options| options.budget_s * own_part);
    let shares_s: Vec<f64> = shares_s.collect();
    let Some((workload, search)) = progress.search() else {
        return Ok(());
    };
    // Time that earlier searches did not use is left to the later ones.
    let end_s: f64 = shares_s[..=workload].iter().sum();
    let options = &mut of_each[workload];
    let mut is_changed = false;
    if let Some(comparisons) = search.searched() {
        let rest_s = shares_s[workload] * (1.0 - SEARCH_PART);
        let is_over = |clock: &Clock| clock.spent_s() > end_s - rest_s;
        if options.ended_after.is_none() && clock.is_some_and(is_over) {
            options.ended_after = Some(comparisons);
            is_changed = true;
        }
        if options.ended_after == Some(comparisons) {
            search.end_search();
        }
    }
    if let Some(next) = search.to_confirm() {
        if let Some(clock) = clock {
            let start_s = options.start_s.filter(|_| !runner.is_remote());
            let pair_s = 2.0 * options.run_s.unwrap_or_default() + start_s.unwrap_or_default();
            let left_s = end_s - clock.spent_s();
            // After an interruption, the candidate gets the pairs that fit now.
            options.confirmation_pairs.truncate(next.before);
            options.confirmation_pairs.push(next.pairs_in(left_s, pair_s));
            is_changed = true;
        }
        let of_each = &options.confirmation_pairs;
        if let Some(pairs) = of_each.get(next.before).or(of_each.last()) {
            search.set_confirmation_pairs(*pairs);
        }
    }
    if is_changed {
        across::keep_options(runner, of_each)?;
    }
    Ok(())
}

fn unusable(text: String) -> Error {
    Error::new(Kind::Environment, text)
}

/// Completes the options of each search from the first runs: the servers' knobs with their current
/// values, and the time of a run. Options that are complete stay, also when the search is resumed
/// later.
fn resolved(
    runner: &mut ExperimentRunner<'_>,
    plans: &[WhichPlan],
    first: &[FirstRuns],
) -> Result<Vec<TuneOptions>, Error> {
    let mut of_each = across::options(runner)?;
    if of_each.iter().all(|options| options.trials.is_some()) {
        return Ok(of_each);
    }
    let (knobs, selection) = knobs_of_each(runner, plans, first, &of_each[0])?;
    let needs_start = selection.knobs.iter().any(Knob::needs_start);
    let first_s = first.iter().map(|first| first.run_s.first().copied());
    let first_s: Vec<Option<f64>> = first_s.collect();
    let mut typical_s = Vec::new();
    for (which, first) in plans.iter().zip(first) {
        let run_s = &first.run_s;
        let planned = budget::planned_run_s(runner.task(which));
        // The first run starts the servers and loads the documents, like each run that needs a
        // restart.
        let found_s = if needs_start {
            run_s.first().copied()
        } else {
            run_s.iter().copied().reduce(f64::min)
        };
        typical_s.push(found_s.map_or(planned, |own| own.max(planned - budget::OVERHEAD_S)));
    }
    let budget_s = runner.own(|options| &options.tune)?.budget_s;
    let round_s: f64 = typical_s.iter().sum();
    let fits = budget_across(budget_s, round_s, plans.len());
    let (trials, pairs) = fits.unwrap_or((LEAST_TRIALS, LEAST_PAIRS as u32));
    let run_s = Quantity::seconds(round_s / plans.len() as f64);
    if fits.is_none() {
        runner.context.warning(format!(
            "runs take {run_s} each, longer than their phases: the search goes beyond `--budget`"
        ));
    }
    let resolved = of_each.iter_mut().zip(knobs).zip(typical_s).zip(first_s);
    for (((options, knobs), run_s), first_s) in resolved {
        options.left_out.clone_from(&selection.left_out);
        options.run_s = Some(run_s);
        options.start_s = first_s.map(|first| (first - run_s).max(0.0));
        options.trials = Some(trials);
        options.max_pairs = Some(pairs);
        options.knobs = knobs;
        if plans.len() > 1 {
            options.budget_s = budget_s * run_s / round_s;
        }
    }
    across::keep_options(runner, &of_each)?;
    let noun = if trials == 1 { "comparison" } else { "comparisons" };
    let of_each_workload = if plans.len() > 1 { ", for each workload" } else { "" };
    runner.context.note(format!(
        "a run takes {run_s}: up to {trials} {noun}, then confirmations of {}{of_each_workload}",
        budget::pairs_in_words(pairs)
    ));
    Ok(of_each)
}

/// The knobs that the servers of all plans and their machine have, with each plan's own defaults,
/// and the same knobs with those that are left out.
fn knobs_of_each(
    runner: &mut ExperimentRunner<'_>,
    plans: &[WhichPlan],
    first: &[FirstRuns],
    options: &TuneOptions,
) -> Result<(Vec<Vec<Knob>>, Selection), Error> {
    let durability = options.allows_less_durable;
    let mut selection =
        Selection { knobs: options.knobs.clone(), left_out: options.left_out.clone() };
    let (mut caches, mut servers, mut is_unjournaled) = (Vec::new(), 1, false);
    for (which, first) in plans.iter().zip(first) {
        let server = runner.server_of(first.baseline.first())?;
        let facts = server.as_ref().map_or(Facts::default(), Facts::reported);
        selection.sift(|knob| facts.check(knob));
        is_unjournaled |= server.as_ref().is_some_and(knobs::is_unjournaled);
        let task = runner.task(which);
        caches.push(knobs::cache_of(server.as_ref(), task));
        let topology = task.plan.server.topology();
        servers = servers.max(topology.map_or(1, |one| one.data_servers()));
    }
    let memory_bytes = dyno_observe::environment::capture(None).memory_bytes;
    let most_bytes = memory_bytes.unwrap_or_default() / 2 / u64::from(servers);
    selection.sift(|knob| knobs::fit_cache(knob, &caches, most_bytes));
    let parameters = selection.knobs.iter().filter_map(Knob::reported_parameter);
    let parameters: Vec<String> = parameters.map(str::to_owned).collect();
    let parameters: Vec<&String> = parameters.iter().collect();
    let mut found = Vec::new();
    for which in plans {
        found.push(runner.server_parameters(which, &parameters)?);
    }
    let mut partly = Vec::new();
    let near = |name: &str| runner.near_parameter(name);
    let folders = runner.data_folders();
    selection.sift(|knob| {
        knobs::resolve_parameter(knob, &found, durability, &mut partly, near)?;
        knobs::resolve_checkpoints(knob, is_unjournaled, durability, &mut partly)?;
        knobs::resolve_host(knob, &folders)
    });
    selection.left_out.extend(partly);
    selection.in_words().for_each(|left_out| runner.context.note(left_out));
    selection.check_some()?;
    // All values are known now; each plan starts with its own.
    let of_each = plans.iter().zip(&found).zip(&caches);
    let of_each = of_each.map(|((which, found), cache)| {
        let mut own = selection.knobs.clone();
        knobs::with_cache(&mut own, cache.as_deref());
        knobs::as_planned(&mut own, runner.task(which));
        own.iter_mut().for_each(|knob| knobs::as_reported(knob, found));
        own
    });
    Ok((of_each.collect(), selection))
}

/// The confirmation pairs, compared as by `dyno ab`, with the original settings as A.
fn compared(
    runner: &ExperimentRunner<'_>,
    confirmed: &[[usize; 2]],
    options: &TuneOptions,
) -> Result<Option<AbAnswer>, Error> {
    let mut part = runner.document.clone();
    part.points.clear();
    let mut places = Vec::new();
    for [tuned, before] in confirmed {
        let mut runs = [(*before, Side::A), (*tuned, Side::B)];
        runs.sort_by_key(|(place, _)| *place);
        for (place, side) in runs {
            let mut point = runner.document.points[place].clone();
            if point.figures.is_none() {
                // One side of this pair did harm.
                return Ok(None);
            }
            point.side = Some(side);
            part.points.push(point);
            places.push(place);
        }
    }
    let windows = runner.windows_of(&places)?;
    let deciding = deciding(options.goal != TuneGoal::Rate);
    let seeded = Resampling::seeded(options.seed);
    let found = analyze(&pairs(&part, &windows, &[]), deciding, options.margin_ratio, &[], seeded);
    Ok(found.map(|answer| {
        let answer = explained(answer, &part);
        // The explanation concerns the deciding figure, which is not the CPU time.
        let explanation = answer.explanation.clone();
        AbAnswer { explanation: explanation.filter(|_| options.goal != TuneGoal::Cpu), ..answer }
    }))
}
