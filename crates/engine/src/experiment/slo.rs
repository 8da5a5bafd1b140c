//! `dyno slo`: open-loop runs at rates that approach the highest one that meets an objective.

use super::clock::Clock;
use super::objectives::{ObjectiveRequest, completed, in_words};
use super::points::WhichPlan;
use super::request::{Resolve, document, kind_at_rate, refuse_think_time};
use super::runner::ExperimentRunner;
use crate::error::{Error, refuse};
use dyno_analyze::experiment::slo::attempt;
use dyno_analyze::search::objective::{ObjectiveSearch, ObjectiveSettings, ObjectiveStep};
use dyno_plan::model::{Schedule, ScheduleKind};
use dyno_plan::task::{self, Task};
use dyno_record::experiment::{
    Answer, Attempt, Experiment, Figures, Keys, ObjectiveEnd, Objectives, RATE, SloAnswer,
    SloOptions, Verb,
};
use dyno_record::quantity::Quantity;
use std::time::Duration;

/// The objective, and the precision of the search.
#[derive(Clone, Debug, Default)]
pub struct SloRequest {
    /// Plan keys and their values.
    pub settings: Vec<(String, String)>,
    /// Concurrent connections; `None` for the plan's number.
    pub clients: Option<u32>,
    /// Schedule at offered rates. Default: the plan's schedule, or a constant one.
    pub schedule: Option<ScheduleKind>,
    /// Required limits; no operation may fail unless they allow it.
    pub objectives: ObjectiveRequest,
    /// Relative distance between neighbouring rates, above 0 and below 1.
    pub resolution: f64,
    /// Most runs.
    pub max_runs: u32,
    /// No further run begins after this time.
    pub time_limit: Option<Duration>,
    /// A run in which the hypervisor took more than this share of the CPU time is repeated.
    pub max_steal_ratio: f64,
}

/// First offered rate, as a share of the closed-loop rate: surely sustained, and not far from the
/// boundary.
const START_RATIO: f64 = 0.5;

/// Highest offered rate, as a share of the closed-loop rate: higher ones would not be achieved.
const MOST_RATIO: f64 = 1.5;

/// One repeated run is allowed for each this many runs: on a machine that always loses CPU time to
/// the hypervisor, that is the machine to measure.
const SET_ASIDE_PART: usize = 2;

/// Plans the experiment.
///
/// # Errors
/// The plan is invalid, or objectives are missing or contradict each other.
pub fn plan(request: &SloRequest, resolve: Resolve<'_>) -> Result<(Experiment, Task), Error> {
    let mut settings = request.settings.clone();
    let value = |name: &str| settings.iter().find(|(key, _)| key == name);
    let names_open = value("schedule.kind").is_some_and(|(_, kind)| kind != "closed");
    if names_open && value(RATE).is_none() {
        // Placeholder: the search offers its own rates.
        settings.push((RATE.to_owned(), "1".to_owned()));
    }
    let mut task = resolve(None, &settings, (None, None))?;
    refuse_think_time(&task.plan)?;
    if let Some(clients) = request.clients {
        task.set_clients(clients)?;
    }
    if request.schedule == Some(ScheduleKind::Closed) {
        let text = "an objective needs an offered rate, but a closed loop has none";
        return refuse(text, "use `--schedule constant`, `poisson` or `throttled`");
    }
    let planned = kind_at_rate(&task.plan.schedule);
    let kind = request.schedule.map_or(planned, ScheduleKind::as_str);
    let delay =
        max_start_delay(&task.plan.schedule).filter(|_| kind != ScheduleKind::Throttled.as_str());
    // The first run measures the rate of a closed loop.
    task.plan.schedule = Schedule::Closed {};
    task::check(&task.plan)?;
    let objectives = objectives(&request.objectives)?;
    let responses = &objectives.responses;
    let failed_ratio = Some(objectives.failed_ratio);
    let failed_ratio = failed_ratio.filter(|ratio| responses.is_empty() || *ratio > 0.0);
    let question =
        format!("Which rate of `{}` meets {}?", task.plan.name, in_words(responses, failed_ratio));
    let mut experiment = document(Verb::Slo, question, &task);
    experiment.options.max_steal = Some(request.max_steal_ratio);
    experiment.options.slo = Some(SloOptions {
        objectives,
        schedule: kind.to_owned(),
        max_start_delay: delay,
        resolution: request.resolution,
        max_runs: request.max_runs,
        time_limit_s: request.time_limit.map(|limit| limit.as_secs_f64()),
    });
    Ok((experiment, task))
}

/// The plan's limit for the start delay, if it is not the default.
pub(super) fn max_start_delay(schedule: &Schedule) -> Option<String> {
    let own = schedule.max_start_delay();
    let own = own.filter(|delay| *delay != Schedule::DEFAULT_MAX_START_DELAY);
    own.map(|delay| delay.to_string())
}

/// Plan keys of a run at an offered rate.
fn offering(options: &SloOptions, rate_per_s: f64) -> Keys {
    let kind = ("schedule.kind".to_owned(), options.schedule.clone());
    let mut settings = Keys::from([kind, (RATE.to_owned(), format!("{rate_per_s:.2}"))]);
    let delay = options.max_start_delay.clone();
    settings.extend(delay.map(|delay| ("schedule.max_start_delay".to_owned(), delay)));
    settings
}

fn objectives(request: &ObjectiveRequest) -> Result<Objectives, Error> {
    if request.is_empty() {
        return refuse(
            "no objective is given",
            "give one, such as `--p99 5ms`, `--percentile 75=5ms` or `--errors 0.001`",
        );
    }
    request.check()?;
    Ok(Objectives {
        responses: request.responses.clone(),
        failed_ratio: request.failed_ratio.unwrap_or(0.0),
    })
}

/// Searches and computes the answer.
pub(crate) fn run(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    let options = runner.own(|options| &options.slo)?;
    let objectives = &options.objectives;
    let clock = Clock::of(runner);
    let closed = runner.measure(Keys::new(), &WhichPlan::Only, 0)?;
    let closed_rate_per_s = closed.rate_per_s;
    let mut search = ObjectiveSearch::new(ObjectiveSettings {
        resolution_ratio: options.resolution,
        max_rate_per_s: (closed_rate_per_s.value * MOST_RATIO).max(1.0),
        max_measurements: options.max_runs,
        ..ObjectiveSettings::starting_at((closed_rate_per_s.value * START_RATIO).max(1.0))
    });
    let max_steal = runner.document.options.max_steal;
    let most_set_aside = options.max_runs as usize / SET_ASIDE_PART;
    let (mut attempts, mut set_aside) = (Vec::new(), Vec::new());
    let mut failure = None;
    let found = loop {
        match search.step() {
            ObjectiveStep::Done(found) => break *found,
            ObjectiveStep::Measure { rate_per_s } => {
                let number = attempts.len() + set_aside.len() + 1;
                // A resumed search repeats nothing that was said.
                let is_new = !runner.has_run(number);
                let has_limit = options.time_limit_s.is_some();
                let is_over =
                    has_limit && runner.was_complete || clock.has_reached(options.time_limit_s);
                // Removed runs are made again.
                let is_planned = number < runner.document.points.len();
                if is_over && !is_planned && !attempts.is_empty() {
                    search.stop(ObjectiveEnd::OutOfMeasurements);
                    continue;
                }
                let figures = runner.probe(offering(&options, rate_per_s), number);
                if is_new && has_limit {
                    clock.keep(runner)?;
                }
                let attempt = figures
                    .and_then(|figures| judged(runner, rate_per_s, objectives, figures, number));
                let attempt = match attempt {
                    Ok(attempt) => attempt,
                    Err(error) if attempts.is_empty() => return Err(error),
                    // The rates that were kept and missed before are an answer.
                    Err(error) => {
                        let so_far = so_far(search.bracket());
                        runner.context.note(format!("the search is incomplete: {so_far}"));
                        failure = Some(error);
                        search.stop(ObjectiveEnd::Interrupted);
                        continue;
                    }
                };
                let said = outcome(objectives, &attempt);
                let stolen = attempt.stolen_ratio.unwrap_or_default();
                if stolen > max_steal.unwrap_or(1.0) && set_aside.len() < most_set_aside {
                    runner.note_set_aside(Some(stolen));
                    set_aside.push(attempt);
                } else {
                    search.record(attempt.kept);
                    attempts.push(attempt);
                    if is_new {
                        runner.context.note(format!("{said}; {}", so_far(search.bracket())));
                    }
                }
            }
        }
    };
    runner.document.answer = Some(Answer::Slo(Box::new(SloAnswer {
        objectives: options.objectives,
        closed_rate_per_s,
        search: found.within_reach(closed_rate_per_s.value),
        attempts,
        set_aside,
    })));
    failure.map_or(Ok(()), Err)
}

/// Outcome of a run: `531/s: p99 4.20 ms, kept`.
fn outcome(objectives: &Objectives, attempt: &Attempt) -> String {
    let values = objectives.responses.iter().zip(&attempt.values_us);
    let values = values.map(|(one, us)| format!("{} {}", one.name(), Quantity::microseconds(*us)));
    let share = |ratio: f64, what| {
        (ratio > 0.0).then(|| format!("{} {what}", Quantity::ratio(ratio).brief()))
    };
    let failed = share(attempt.failed_ratio, "failed");
    let dropped = share(attempt.dropped_ratio, "never sent");
    let ended = attempt.ended_rate_per_s.map(|rate| format!("only {} ended", per_s(rate)));
    let decision = if attempt.kept { "kept" } else { "missed" };
    let parts = values.chain(failed).chain(dropped).chain(ended).chain([decision.to_owned()]);
    format!("{}: {}", per_s(attempt.rate_per_s), parts.collect::<Vec<_>>().join(", "))
}

/// Where the answer lies so far.
fn so_far(bracket: (Option<f64>, Option<f64>)) -> String {
    match bracket {
        (Some(low), Some(high)) => {
            format!("the answer lies between {} and {}", per_s(low), per_s(high))
        }
        (Some(low), None) => format!("the answer is above {}", per_s(low)),
        (None, Some(high)) => format!("the answer is below {}", per_s(high)),
        (None, None) => "the answer is still open".to_owned(),
    }
}

fn per_s(rate: f64) -> Quantity {
    Quantity::per_second(rate).brief()
}

/// Whether a run met the objectives; a run without successes did not.
fn judged(
    runner: &ExperimentRunner<'_>,
    rate_per_s: f64,
    objectives: &Objectives,
    figures: Option<Figures>,
    number: usize,
) -> Result<Attempt, Error> {
    let Some(figures) = figures else {
        return Ok(Attempt::without_success(rate_per_s));
    };
    let figures = completed(runner, &objectives.responses, figures, number)?;
    Ok(attempt(rate_per_s, objectives, &figures))
}
