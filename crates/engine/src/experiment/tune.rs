//! `dyno tune`: which settings make a server better at its work, by comparisons of runs one beside the other.

mod knobs;
mod preview;

pub use preview::preview;

use super::campaign::{Campaign, Failure};
use super::request::{Resolve, document};
use crate::error::{Error, Kind};
use crate::run::limits::WindowLimits;
use dyno_analyze::experiment::ab::{Deciding, analyze, explained, pairs};
use dyno_analyze::experiment::tune::{
    BASELINE_RUNS, LEAST_PAIRS, RunOutcome, TuneCourse, TuneNext, budget,
};
use dyno_analyze::resampling::Resampling;
use dyno_plan::knobs::{Allowed, Knob};
use dyno_plan::model::Schedule;
use dyno_plan::request::ScheduleKind;
use dyno_plan::task::Task;
use dyno_record::experiment::{
    self as record, AbAnswer, Answer, Experiment, Figures, LeftOutKnob, LeftOutReason, Side, TUNE,
    TuneGoal, TuneOptions, Verb,
};
use dyno_record::quantity::Quantity;
use knobs::Facts;
use std::time::{Duration, Instant};

/// Share of the operations that may fail, where the plan tolerates none: a few fail on any bench.
const FAILED_RATIO: f64 = 0.001;

/// How many times the 99th percentile before any change an operation may take, where no limit is given.
const LONGER: f64 = 20.0;

/// Comparisons of a search whose runs take longer than the time allows.
const LEAST_TRIALS: u32 = 4;

/// Time of a run besides its phases, before one was made.
const OVERHEAD_S: f64 = 0.5;

/// Name of the option that holds the knobs as they were asked for.
const WANTED: &str = "knobs";

/// What is searched for.
#[derive(Clone, Debug)]
pub struct TuneRequest {
    /// Keys of the plan and their values.
    pub settings: Vec<(String, String)>,
    /// What is to become better.
    pub goal: TuneGoal,
    /// Offered rate; the goals other than [`TuneGoal::Rate`] need one.
    pub rate: Option<f64>,
    /// When operations start; `None` for the schedule of the plan, or a constant one.
    pub schedule: Option<ScheduleKind>,
    /// Concurrent connections; `None` for those of the plan.
    pub clients: Option<u32>,
    /// Longest 99th percentile of the response time.
    pub p99: Option<Duration>,
    /// Time for all runs.
    pub budget: Duration,
    /// Groups, files, and parameters with their values; empty for all groups.
    pub knobs: Vec<String>,
    /// What may be changed besides parameters of running servers.
    pub allowed: Allowed,
    /// Gain that is of no interest, as a share, above 0 and below 1.
    pub margin: f64,
    /// Start of all that is drawn at random; `None` for that of the plan.
    pub seed: Option<u64>,
}

/// The experiment that was asked for.
///
/// # Errors
/// A plan that is not valid, knobs that cannot be turned, a goal without its rate, and a time that is too short.
pub fn plan(request: &TuneRequest, resolve: Resolve<'_>) -> Result<(Experiment, Task), Error> {
    let mut task = resolve(None, &request.settings, offered(request)?)?;
    if let Some(clients) = request.clients {
        task.set_clients(clients)?;
    }
    let is_closed = matches!(task.plan.schedule, Schedule::Closed {});
    if request.goal == TuneGoal::Rate && !is_closed {
        let text = "the goal `rate` needs a closed loop, and the plan offers a rate";
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("give `--goal p99` or `--goal cpu` with `--rate`, or `--schedule closed`"));
    }
    let mut wanted = dyno_plan::knobs::find(&request.knobs, request.allowed, knobs::machine())?;
    knobs::as_planned(&mut wanted, &task);
    let left_out = knobs::sift(&mut wanted, &Facts::planned(&task, None));
    knobs::check_some(&wanted, &left_out)?;
    knobs::check(&wanted, &task)?;
    let question = format!(
        "Which settings make `{}` better, by its {}?",
        task.plan.name,
        in_words(request)
    );
    let mut experiment = document(Verb::Tune, question, &task);
    let options = TuneOptions {
        goal: request.goal,
        p99_limit_us: request.p99.map(|limit| limit.as_secs_f64() * 1e6),
        failed_ratio: task.plan.client.tolerated_error_ratio.max(FAILED_RATIO),
        seed: request.seed.unwrap_or(task.plan.client.seed),
        margin_ratio: request.margin,
        budget_s: request.budget.as_secs_f64(),
        allows_less_durable: request.allowed.durability,
        knobs: None,
        left_out,
        run_s: None,
        trials: None,
        max_pairs: None,
    };
    check_budget(options.budget_s, planned_run_s(&task))?;
    let kept = &mut experiment.options;
    kept.insert(
        TUNE.into(),
        serde_json::to_value(&options).expect("it is plain data"),
    );
    kept.insert(
        WANTED.into(),
        serde_json::to_value(&wanted).expect("it is plain data"),
    );
    Ok((experiment, task))
}

/// The rate at which the goal is looked at.
fn offered(request: &TuneRequest) -> Result<(Option<ScheduleKind>, Option<f64>), Error> {
    let refuse = |text: &str, hint: &str| Err(Error::new(Kind::BadInput, text).with_hint(hint));
    match (request.goal, request.rate) {
        (TuneGoal::Rate, Some(_)) => refuse(
            "`--rate` offers a rate, and the goal `rate` is to reach the highest one",
            "give `--goal p99` or `--goal cpu`",
        ),
        (TuneGoal::P99 | TuneGoal::Cpu, None) => refuse(
            "this goal needs the rate at which it is looked at: at another rate it is another one",
            "give `--rate`, such as `--rate 5k`",
        ),
        (TuneGoal::P99, Some(_)) if request.p99.is_some() => refuse(
            "`--p99` is a limit, and here the p99 is the goal",
            "leave out `--p99`, or give `--goal rate`",
        ),
        (TuneGoal::Rate, None) => Ok((request.schedule, None)),
        (TuneGoal::P99 | TuneGoal::Cpu, rate) => {
            let kind = request.schedule.unwrap_or(ScheduleKind::Constant);
            Ok((Some(kind), rate))
        }
    }
}

fn in_words(request: &TuneRequest) -> String {
    match (request.goal, request.rate, request.p99) {
        (TuneGoal::Rate, _, Some(limit)) => {
            let limit = Quantity::microseconds(limit.as_secs_f64() * 1e6);
            format!("rate with a p99 of {limit} at most")
        }
        (TuneGoal::Rate, ..) => "rate".to_owned(),
        (TuneGoal::P99, rate, _) => {
            format!("p99 at {}", Quantity::per_second(rate.unwrap_or_default()))
        }
        (TuneGoal::Cpu, rate, _) => {
            format!(
                "server CPU per operation at {}",
                Quantity::per_second(rate.unwrap_or_default())
            )
        }
    }
}

/// Time of a run by its plan.
fn planned_run_s(task: &Task) -> f64 {
    let phases = &task.plan.phases;
    let duration = phases.duration.map_or(0.0, |length| length.0.as_secs_f64());
    phases.warmup.0.as_secs_f64() + duration + OVERHEAD_S
}

/// Refuses a time that is too short for a search.
fn check_budget(budget_s: f64, run_s: f64) -> Result<(), Error> {
    if budget(budget_s, run_s).is_some() {
        return Ok(());
    }
    let text = format!(
        "`--budget` is {}, too short for runs of {} each",
        Quantity::seconds(budget_s),
        Quantity::seconds(run_s)
    );
    let hint = format!(
        "give {} at least, or make the runs shorter with `--duration` and `--warmup`",
        Quantity::seconds((run_s * 30.0).ceil())
    );
    Err(Error::new(Kind::BadInput, text).with_hint(hint))
}

/// Searches and confirms.
pub(crate) fn run(campaign: &mut Campaign<'_>) -> Result<(), Error> {
    campaign.check_undone()?;
    begin(campaign)?;
    let mut baseline = Vec::new();
    let mut run_s = Vec::new();
    for number in 0..BASELINE_RUNS {
        let point = campaign.document.points.get(number);
        let is_new = point.is_none_or(|point| point.figures.is_none());
        let begin = Instant::now();
        baseline.push(campaign.measure(&[], None, number)?);
        run_s.extend(is_new.then(|| begin.elapsed().as_secs_f64()));
    }
    let options = settled(campaign, &run_s)?;
    let figures: Vec<&Figures> = baseline.iter().collect();
    let unusable = |text: String| Error::new(Kind::Environment, text);
    let mut course = TuneCourse::new(&options, &figures).map_err(|text| {
        unusable(text).with_hint("give another goal, other limits, or another plan")
    })?;
    let is_local = !campaign.is_remote() && campaign.context.source.is_none();
    let limits = limits(&options, &baseline, is_local);
    let mut number = BASELINE_RUNS;
    while let TuneNext::Run {
        keys,
        is_tried,
        on_new_servers,
    } = course.next_run()
    {
        let keys: Vec<(&str, String)> = keys
            .iter()
            .map(|(key, value)| (key.as_str(), value.clone()))
            .collect();
        let is_new = campaign.document.points.len() <= number;
        if on_new_servers && is_new && !campaign.is_remote() {
            campaign.close()?;
        }
        let outcome = if is_tried {
            campaign.attempt(&keys, number, limits)?
        } else {
            Ok(campaign.measure(&keys, None, number)?)
        };
        let taken = match &outcome {
            Ok(figures) => course.take(RunOutcome::Measured(figures)),
            Err(Failure::Harm(reason)) => course.take(RunOutcome::Harmful(reason)),
            Err(Failure::Refused { reason, key }) => {
                course.take(RunOutcome::Refused { reason, key })
            }
        };
        taken.map_err(unusable)?;
        number += 1;
    }
    let mut answer = course.answer();
    let confirmed: Vec<[usize; 2]> = answer
        .confirmation()
        .into_iter()
        .flat_map(|trial| trial.pairs())
        .collect();
    answer.comparison = compared(campaign, &confirmed, &options)?.map(Box::new);
    campaign.document.answer = Some(Answer::Tune(Box::new(answer)));
    Ok(())
}

/// Takes out, before the first run, the knobs that the program of the server is known not to have, and tells which are left out.
fn begin(campaign: &mut Campaign<'_>) -> Result<(), Error> {
    let mut options: TuneOptions = campaign.value(TUNE)?;
    if options.knobs.is_some() {
        return Ok(());
    }
    let mut wanted: Vec<Knob> = campaign.value(WANTED)?;
    let task = campaign.tasks().next().cloned();
    let environment = campaign.context.environment;
    let facts = task.map_or(Facts::default(), |task| {
        Facts::planned(&task, Some(environment))
    });
    options.left_out.extend(knobs::sift(&mut wanted, &facts));
    knobs::note(&options.left_out, campaign.context);
    knobs::check_some(&wanted, &options.left_out)?;
    campaign.keep(TUNE, &options);
    campaign.keep(WANTED, &wanted);
    campaign.save()
}

/// The options with what the first runs have shown: which knobs the server has and where they stand, and how long a run takes.
/// What is settled stays, also when the search goes on later.
fn settled(campaign: &mut Campaign<'_>, run_s: &[f64]) -> Result<TuneOptions, Error> {
    let mut options: TuneOptions = campaign.value(TUNE)?;
    if options.knobs.is_some() {
        return Ok(options);
    }
    let (knobs, needs_start) = found_knobs(campaign, &mut options.left_out)?;
    let planned = campaign.tasks().next().map_or(0.0, planned_run_s);
    // The first run starts the servers and loads the documents, as each does that needs another start.
    let found_s = if needs_start {
        run_s.first().copied()
    } else {
        run_s.iter().copied().reduce(f64::min)
    };
    let run_s = found_s.map_or(planned, |own| own.max(planned - OVERHEAD_S));
    let fits = budget(options.budget_s, run_s);
    let (trials, pairs) = fits.unwrap_or((LEAST_TRIALS, LEAST_PAIRS as u32));
    if fits.is_none() {
        campaign.context.warning(format!(
            "runs take {} each, longer than their phases: the search goes beyond `--budget`",
            Quantity::seconds(run_s)
        ));
    }
    options.run_s = Some(run_s);
    options.trials = Some(trials);
    options.max_pairs = Some(pairs);
    options.knobs = Some(knobs);
    campaign.keep(TUNE, &options);
    campaign.save()?;
    let noun = if trials == 1 {
        "comparison"
    } else {
        "comparisons"
    };
    campaign.context.note(format!(
        "a run takes {}: up to {trials} {noun}, then confirmations of {LEAST_PAIRS} to {pairs} pairs",
        Quantity::seconds(run_s)
    ));
    Ok(options)
}

/// The knobs that the server and its machine have, with where they stand, and whether one of them needs another start.
fn found_knobs(
    campaign: &mut Campaign<'_>,
    all_left_out: &mut Vec<LeftOutKnob>,
) -> Result<(Vec<record::Knob>, bool), Error> {
    let mut wanted: Vec<Knob> = campaign.value(WANTED)?;
    let facts = campaign
        .server_of(0)?
        .map_or(Facts::default(), |server| Facts::told(&server));
    let mut left_out = knobs::sift(&mut wanted, &facts);
    let names: Vec<String> = wanted
        .iter()
        .filter_map(|knob| knob.runtime_parameter().map(str::to_owned))
        .collect();
    let names: Vec<&String> = names.iter().collect();
    let found = campaign.server_parameters(&names)?;
    let folders = campaign.data_folders();
    let mut settled = Vec::new();
    for mut knob in wanted {
        let mut files = Vec::new();
        if let Some(name) = knob.runtime_parameter() {
            let Some(value) = found.get(name) else {
                left_out.push(knobs::left(&knob, LeftOutReason::NotThere));
                continue;
            };
            if knob.text.is_none() {
                knob.set_default(value);
            }
        } else if let Some(setting) = knob.host_setting() {
            match knobs::settle_host(&mut knob, setting, &folders) {
                Ok(found) => files = found,
                Err(reason) => {
                    left_out.push(knobs::left(&knob, reason));
                    continue;
                }
            }
        }
        settled.push((knob, files));
    }
    knobs::note(&left_out, campaign.context);
    all_left_out.extend(left_out);
    let all: Vec<Knob> = settled.iter().map(|(knob, _)| knob.clone()).collect();
    knobs::check_some(&all, all_left_out)?;
    let needs_start = all.iter().any(Knob::needs_start);
    let settled = settled.into_iter();
    let knobs = settled.map(|(knob, files)| knobs::recorded(knob, files));
    Ok((knobs.collect(), needs_start))
}

/// What ends a run that does harm.
fn limits(options: &TuneOptions, baseline: &[Figures], is_local: bool) -> WindowLimits {
    let count = baseline.len().max(1) as f64;
    let rates = baseline.iter().map(|figures| figures.rate_per_s.value);
    let p99 = baseline
        .iter()
        .filter_map(|figures| figures.percentile("p99"));
    let p99_us = p99.map(|p99| p99.value).fold(0.0, f64::max);
    // A window is short: what the whole run is judged by is the limit itself.
    let limit_us = options
        .p99_limit_us
        .map_or(p99_us * LONGER, |limit| limit * 2.0);
    WindowLimits {
        failed_ratio: options.failed_ratio.max(0.01),
        response_ns: (limit_us * 1e3) as u64,
        usual_rate_per_s: rates.sum::<f64>() / count,
        is_local,
    }
}

/// The pairs of a confirmation as `dyno ab` compares them, what was before as A.
fn compared(
    campaign: &Campaign<'_>,
    confirmed: &[[usize; 2]],
    options: &TuneOptions,
) -> Result<Option<AbAnswer>, Error> {
    let mut part = campaign.document.clone();
    part.points.clear();
    let mut places = Vec::new();
    for [tuned, before] in confirmed {
        let mut runs = [(*before, Side::A), (*tuned, Side::B)];
        runs.sort_by_key(|(place, _)| *place);
        for (place, side) in runs {
            let mut point = campaign.document.points[place].clone();
            if point.figures.is_none() {
                // One side of this pair did harm.
                return Ok(None);
            }
            point.side = Some(side);
            part.points.push(point);
            places.push(place);
        }
    }
    let windows = campaign.windows_of(&places)?;
    let deciding = match options.goal {
        TuneGoal::Rate => Deciding::Rate,
        TuneGoal::P99 | TuneGoal::Cpu => Deciding::P99,
    };
    let seeded = Resampling::seeded(options.seed);
    let found = analyze(
        &pairs(&part, &windows, &[]),
        deciding,
        options.margin_ratio,
        seeded,
    );
    Ok(found.map(|answer| {
        let answer = explained(answer, &part);
        // What explains a difference is found for the figure that decides, and this one has none of its own.
        let explanation = answer.explanation.clone();
        AbAnswer {
            explanation: explanation.filter(|_| options.goal != TuneGoal::Cpu),
            ..answer
        }
    }))
}
