//! `dyno slo`: open-loop runs at rates that close in on the highest one that keeps an objective.

use super::campaign::Campaign;
use super::document;
use crate::args::SloArguments;
use crate::exit::{Exit, Failure};
use crate::session::task;
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::figures::{Figures, measured};
use dyno_analyze::experiment::slo::{Attempt, Objective, Objectives, SloAnswer, attempt};
use dyno_analyze::experiment::sweep::RATE;
use dyno_analyze::experiment::{Answer, Experiment, Verb};
use dyno_analyze::search::objective::{ObjectiveSearch, ObjectiveSettings, ObjectiveStep};
use dyno_plan::model::Schedule;
use dyno_plan::request::ScheduleKind;
use dyno_plan::task::Task;
use dyno_plan::units::Span;
use dyno_record::model::PhaseKind;
use dyno_record::responses::{WindowResponses, responses};

/// Share of the closed-loop rate that is offered first: surely sustained, and not far from the boundary.
const START_RATIO: f64 = 0.5;

/// No rate above this share of the closed-loop rate is tried: it would not be achieved.
const MOST_RATIO: f64 = 1.5;

/// At most one run is made again for each so many that are allowed: where the hypervisor always takes CPU time, that is
/// the machine to be measured.
const SET_ASIDE_PART: usize = 2;

/// The experiment that was asked for.
pub(crate) fn plan(
    arguments: &SloArguments,
    surroundings: &Surroundings,
) -> Result<(Experiment, Task), Failure> {
    let settings = &arguments.experiment.target.start.settings;
    let mut task =
        task::of_experiment(&arguments.experiment, settings, (None, None), surroundings)?;
    let is_poisson = matches!(task.plan.schedule, Schedule::Poisson { .. });
    if let Some(clients) = arguments.clients {
        task.set_clients(clients)?;
    }
    let kind = match arguments.schedule {
        Some(ScheduleKind::Poisson) => "poisson",
        None if is_poisson => "poisson",
        Some(ScheduleKind::Closed) => {
            let text = "an objective needs an offered rate, and a closed loop has none";
            return Err(Failure::new(Exit::BadInput, text)
                .with_hint("use `--schedule constant` or `--schedule poisson`"));
        }
        _ => "constant",
    };
    let delay = max_start_delay(&task.plan.schedule);
    // The first run finds out how fast a closed loop is.
    task.plan.schedule = Schedule::Closed {};
    task::check(&task.plan)?;
    let objectives = objectives(arguments)?;
    let question = format!(
        "Which rate of `{}` keeps {}?",
        task.plan.name,
        in_words(&objectives)
    );
    let mut experiment = document(Verb::Slo, question, &task);
    let options = &mut experiment.options;
    let value = serde_json::to_value(&objectives).expect("it is plain data");
    options.insert("objectives".into(), value);
    options.insert("schedule".into(), kind.into());
    if let Some(delay) = delay {
        options.insert("max_start_delay".into(), delay.into());
    }
    options.insert("resolution".into(), arguments.resolution.into());
    options.insert("max_runs".into(), arguments.max_runs.into());
    options.insert("max_steal".into(), arguments.max_steal.into());
    Ok((experiment, task))
}

/// How late an arrival may start by a plan that has its own idea of it.
pub(super) fn max_start_delay(schedule: &Schedule) -> Option<String> {
    match schedule {
        Schedule::Closed {} => None,
        Schedule::Constant {
            max_start_delay, ..
        }
        | Schedule::Poisson {
            max_start_delay, ..
        } => (*max_start_delay != Schedule::DEFAULT_MAX_START_DELAY)
            .then(|| max_start_delay.to_string()),
    }
}

/// What makes a run one at an offered rate.
fn offering(
    campaign: &Campaign<'_>,
    rate_per_s: f64,
) -> Result<Vec<(&'static str, String)>, Failure> {
    let delay: Option<String> = campaign.value("max_start_delay")?;
    let mut settings = vec![
        ("schedule.kind", campaign.value("schedule")?),
        (RATE, rounded(rate_per_s)),
    ];
    settings.extend(delay.map(|delay| ("schedule.max_start_delay", delay)));
    Ok(settings)
}

/// The objectives as they stand in a question.
fn in_words(objectives: &Objectives) -> String {
    let responses = objectives.responses.iter().map(|one| {
        let name = one.statistic.replace('_', ".");
        format!("{name} at or below {} ms", one.limit_us / 1e3)
    });
    let mut limits: Vec<String> = responses.collect();
    if limits.is_empty() || objectives.failed_ratio > 0.0 {
        // Without the digits that a product of binary fractions has too many.
        let percent = (objectives.failed_ratio * 1e8).round() / 1e6;
        limits.push(format!("failed operations at or below {percent} %"));
    }
    limits.join(" and ")
}

fn objectives(arguments: &SloArguments) -> Result<Objectives, Failure> {
    let responses = limits(arguments);
    if responses.is_empty() && arguments.errors.is_none() {
        return Err(
            Failure::new(Exit::BadInput, "there is no objective").with_hint(
                "give one, such as `--p99 5ms`, `--percentile 75=5ms` or `--errors 0.001`",
            ),
        );
    }
    if let Some(one) = responses.iter().find(|one| one.limit_us <= 0.0) {
        let text = format!(
            "no response time keeps `--{} 0s`",
            one.statistic.replace('_', ".")
        );
        return Err(Failure::new(Exit::BadInput, text).with_hint("give a time above 0"));
    }
    for (place, one) in responses.iter().enumerate() {
        let is_same = |other: &Objective| other.statistic == one.statistic;
        if responses[..place].iter().any(is_same) {
            let name = one.statistic.replace('_', ".");
            let text = format!("`{name}` has two limits");
            return Err(Failure::new(Exit::BadInput, text).with_hint("give the smaller one"));
        }
    }
    let failed_ratio = arguments.errors.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&failed_ratio) {
        let text = format!("`--errors` is `{failed_ratio}`, but must be 0 to 1");
        return Err(Failure::new(Exit::BadInput, text).with_hint("such as `--errors 0.001`"));
    }
    Ok(Objectives {
        responses,
        failed_ratio,
    })
}

/// The limits of response times that were given.
fn limits(arguments: &SloArguments) -> Vec<Objective> {
    let limit_us = |limit: Span| limit.0.as_secs_f64() * 1e6;
    let mean = arguments.mean.map(|limit| Objective {
        statistic: "mean".to_owned(),
        limit_us: limit_us(limit),
    });
    let named = [
        (50.0, arguments.p50),
        (90.0, arguments.p90),
        (95.0, arguments.p95),
        (99.0, arguments.p99),
        (99.9, arguments.p999),
    ];
    let named = named
        .into_iter()
        .filter_map(|(name, limit)| Some((name, limit?)));
    let percentiles = named
        .chain(arguments.percentile.iter().copied())
        .map(|(percent, limit)| Objective::of_percentile(percent, limit_us(limit)));
    mean.into_iter().chain(percentiles).collect()
}

/// Searches and finds the answer.
pub(crate) fn run(campaign: &mut Campaign<'_>) -> Result<(), Failure> {
    let objectives: Objectives = campaign.value("objectives")?;
    let closed = campaign.measure(&[], None, 0)?;
    let closed_rate_per_s = closed.rate_per_s;
    let mut search = ObjectiveSearch::new(ObjectiveSettings {
        resolution_ratio: campaign.value("resolution")?,
        max_rate_per_s: (closed_rate_per_s.value * MOST_RATIO).max(1.0),
        max_measurements: campaign.option("max_runs"),
        ..ObjectiveSettings::starting_at((closed_rate_per_s.value * START_RATIO).max(1.0))
    });
    let max_steal: Option<f64> = campaign.value("max_steal")?;
    let most_set_aside = campaign.option("max_runs") as usize / SET_ASIDE_PART;
    let (mut attempts, mut set_aside) = (Vec::new(), Vec::new());
    let found = loop {
        match search.step() {
            ObjectiveStep::Done(found) => break *found,
            ObjectiveStep::Measure { rate_per_s } => {
                let settings = offering(campaign, rate_per_s)?;
                let number = attempts.len() + set_aside.len() + 1;
                let figures = campaign.probe(&settings, number)?;
                let attempt = judged(campaign, rate_per_s, &objectives, figures, number)?;
                let stolen = attempt.stolen_ratio.unwrap_or_default();
                if stolen > max_steal.unwrap_or(1.0) && set_aside.len() < most_set_aside {
                    campaign.hands().messages.note(&format!(
                        "set aside: the hypervisor took {:.1} % of the CPU time",
                        stolen * 100.0
                    ));
                    set_aside.push(attempt);
                } else {
                    search.record(attempt.kept);
                    attempts.push(attempt);
                }
            }
        }
    };
    campaign.document.answer = Some(Answer::Slo(Box::new(SloAnswer {
        objectives,
        closed_rate_per_s,
        search: found,
        attempts,
        set_aside,
    })));
    Ok(())
}

/// Whether a run kept the objectives; one in which nothing succeeded did not.
fn judged(
    campaign: &Campaign<'_>,
    rate_per_s: f64,
    objectives: &Objectives,
    figures: Option<Figures>,
    number: usize,
) -> Result<Attempt, Failure> {
    let Some(mut figures) = figures else {
        return Ok(Attempt::without_success(rate_per_s));
    };
    if objectives.need_more(&figures) {
        let windows = windows_of(campaign, number)?;
        objectives.complete(&mut figures, &measured(&windows, true).samples);
    }
    Ok(attempt(rate_per_s, objectives, &figures))
}

/// The recording windows of the measure phase of a run.
fn windows_of(campaign: &Campaign<'_>, number: usize) -> Result<Vec<WindowResponses>, Failure> {
    let point = &campaign.document.points[number];
    let directory = campaign.folder().path().join(&point.directory);
    Ok(responses(&directory, PhaseKind::Measure, None)?)
}

fn rounded(rate_per_s: f64) -> String {
    format!("{rate_per_s:.2}")
}
