//! `dyno slo`: open-loop runs at rates that close in on the highest one that keeps an objective.

use super::campaign::Campaign;
use super::document;
use crate::args::{ScheduleName, SloArguments};
use crate::exit::{Exit, Failure};
use crate::session::task::{self, Task};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::slo::{Objective, Objectives, SloAnswer, attempt};
use dyno_analyze::experiment::sweep::RATE;
use dyno_analyze::experiment::{Answer, Experiment, Verb};
use dyno_analyze::search::objective::{ObjectiveSearch, ObjectiveSettings, ObjectiveStep};
use dyno_plan::model::Schedule;

/// Share of the closed-loop rate that is offered first: surely sustained, and not far from the boundary.
const START_RATIO: f64 = 0.5;

/// No rate above this share of the closed-loop rate is tried: it would not be achieved.
const MOST_RATIO: f64 = 1.5;

/// The experiment that was asked for.
pub(crate) fn plan(
    arguments: &SloArguments,
    surroundings: &Surroundings,
) -> Result<(Experiment, Task), Failure> {
    let settings = &arguments.experiment.target.start.settings;
    let mut task = task::of_experiment(&arguments.experiment, settings, None, surroundings)?;
    let is_poisson = matches!(task.plan.schedule, Schedule::Poisson { .. });
    if let Some(clients) = arguments.clients {
        task.set_clients(clients)?;
    }
    let kind = match arguments.schedule {
        Some(ScheduleName::Poisson) => "poisson",
        None if is_poisson => "poisson",
        Some(ScheduleName::Closed) => {
            let text = "an objective needs an offered rate, and a closed loop has none";
            return Err(Failure::new(Exit::BadInput, text)
                .with_hint("use `--schedule constant` or `--schedule poisson`"));
        }
        _ => "constant",
    };
    // The first run finds out how fast a closed loop is.
    task.plan.schedule = Schedule::Closed {};
    task::check(&task.plan)?;
    let objectives = objectives(arguments)?;
    let question = format!(
        "Which rate of `{}` keeps {}?",
        task.plan.name,
        objectives
            .responses
            .iter()
            .map(|one| {
                let name = one.statistic.replace('_', ".");
                format!("{name} at or below {} ms", one.limit_us / 1e3)
            })
            .collect::<Vec<_>>()
            .join(" and ")
    );
    let mut experiment = document(Verb::Slo, question, &task);
    let options = &mut experiment.options;
    let value = serde_json::to_value(&objectives).expect("it is plain data");
    options.insert("objectives".into(), value);
    options.insert("schedule".into(), kind.into());
    options.insert("resolution".into(), arguments.resolution.into());
    options.insert("max_runs".into(), arguments.max_runs.into());
    Ok((experiment, task))
}

fn objectives(arguments: &SloArguments) -> Result<Objectives, Failure> {
    let given = [
        ("mean", arguments.mean),
        ("p50", arguments.p50),
        ("p90", arguments.p90),
        ("p95", arguments.p95),
        ("p99", arguments.p99),
        ("p99_9", arguments.p999),
    ];
    let responses: Vec<Objective> = given
        .into_iter()
        .filter_map(|(name, limit)| {
            Some(Objective {
                statistic: name.to_owned(),
                limit_us: limit?.0.as_secs_f64() * 1e6,
            })
        })
        .collect();
    if responses.is_empty() {
        return Err(Failure::new(Exit::BadInput, "there is no objective")
            .with_hint("give one, such as `--p99 5ms`"));
    }
    if let Some(one) = responses.iter().find(|one| one.limit_us <= 0.0) {
        let text = format!(
            "no response time keeps `--{} 0s`",
            one.statistic.replace('_', ".")
        );
        return Err(Failure::new(Exit::BadInput, text).with_hint("give a time above 0"));
    }
    if !(0.0..=1.0).contains(&arguments.errors) {
        let text = format!("`--errors` is `{}`, but must be 0 to 1", arguments.errors);
        return Err(Failure::new(Exit::BadInput, text).with_hint("such as `--errors 0.001`"));
    }
    Ok(Objectives {
        responses,
        failed_ratio: arguments.errors,
    })
}

/// Searches and finds the answer.
pub(crate) fn run(campaign: &mut Campaign<'_>) -> Result<(), Failure> {
    let objectives: Objectives = campaign.value("objectives")?;
    let kind: String = campaign.value("schedule")?;
    let closed = campaign.measure(&[], None, 0)?;
    let closed_rate_per_s = closed.rate_per_s.value;
    let mut search = ObjectiveSearch::new(ObjectiveSettings {
        resolution_ratio: campaign.value("resolution")?,
        max_rate_per_s: (closed_rate_per_s * MOST_RATIO).max(1.0),
        max_measurements: campaign.option("max_runs"),
        votes: VOTES,
        ..ObjectiveSettings::starting_at((closed_rate_per_s * START_RATIO).max(1.0))
    });
    let mut attempts = Vec::new();
    let found = loop {
        match search.step() {
            ObjectiveStep::Done(found) => break found,
            ObjectiveStep::Measure { rate_per_s } => {
                let settings = [("schedule.kind", kind.clone()), (RATE, rounded(rate_per_s))];
                let figures = campaign.measure(&settings, None, attempts.len() + 1)?;
                let attempt = attempt(rate_per_s, &objectives, &figures);
                search.record(attempt.kept);
                attempts.push(attempt);
            }
        }
    };
    campaign.document.answer = Some(Answer::Slo(Box::new(SloAnswer {
        objectives,
        closed_rate_per_s,
        search: found,
        attempts,
    })));
    Ok(())
}

/// Runs of which the majority decides about a rate.
const VOTES: u32 = 3;

fn rounded(rate_per_s: f64) -> String {
    format!("{rate_per_s:.2}")
}
