//! `dyno sweep`: every combination of the values of some keys, in random order.

use super::campaign::{Campaign, point};
use super::document;
use crate::args::{OrderName, ScheduleName, SweepArguments};
use crate::exit::{Exit, Failure};
use crate::session::task::{self, Task};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::sweep::{CLIENTS, RATE, analyze};
use dyno_analyze::experiment::{Answer, Axis, Experiment, Point, Verb};
use dyno_analyze::resampling::Resampling;
use dyno_plan::axis::{self, AxisError};
use dyno_plan::model::Schedule;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

/// Most runs of a sweep: more take days.
const MOST_RUNS: usize = 10_000;

/// Keys whose values may hold commas; theirs are separated by `;`.
const KEYS_WITH_COMMAS: [&str; 4] = [
    "server.topology",
    "server.placement",
    "server.connection_options",
    "description",
];

/// The experiment that was asked for, with all its points, and the task that they change.
pub(crate) fn plan(
    arguments: &SweepArguments,
    surroundings: &Surroundings,
) -> Result<(Experiment, Task), Failure> {
    let (fixed, mut axes) = split(&arguments.experiment.target.start.settings);
    if let Some(text) = &arguments.clients {
        check_once(CLIENTS, "--clients", &fixed, &axes)?;
        axes.push(axis(CLIENTS, axis::whole_numbers(text))?);
    }
    if let Some(text) = &arguments.rates {
        check_once(RATE, "--rates", &fixed, &axes)?;
        axes.push(axis(RATE, axis::numbers(text))?);
    }
    if axes.is_empty() {
        let hint = "give `--clients`, `--rates`, or several values with `--set`, such as `--set server.cache=1GiB,2GiB`";
        return Err(Failure::new(Exit::BadInput, "nothing is swept").with_hint(hint));
    }
    let rate = axes.iter().find(|axis| axis.key == RATE);
    let schedule = rate.map(|axis| {
        let first = axis.values[0].parse().unwrap_or(1.0);
        (arguments.schedule.unwrap_or(ScheduleName::Constant), first)
    });
    let mut task = task::of_experiment(&arguments.experiment, &fixed, None, surroundings)?;
    if let Some((name, first)) = schedule {
        // A plan that has a random schedule keeps it unless another one is asked for.
        let keeps =
            arguments.schedule.is_none() && matches!(task.plan.schedule, Schedule::Poisson { .. });
        let name = if keeps { ScheduleName::Poisson } else { name };
        task = task::of_experiment(
            &arguments.experiment,
            &fixed,
            Some((name, first)),
            surroundings,
        )?;
    }
    let question = format!(
        "How does `{}` respond to {}?",
        task.plan.name,
        axes.iter().map(in_words).collect::<Vec<_>>().join(" and ")
    );
    let mut experiment = document(Verb::Sweep, question, &task);
    experiment.points = points(&axes, arguments, &task)?;
    experiment.axes = axes;
    let options = &mut experiment.options;
    options.insert("repeat".into(), arguments.repeat.into());
    let is_random = arguments.order == OrderName::Random;
    options.insert(
        "order".into(),
        if is_random { "random" } else { "given" }.into(),
    );
    Ok((experiment, task))
}

fn in_words(axis: &Axis) -> String {
    let what = match axis.key.as_str() {
        CLIENTS => "clients",
        RATE => "operations offered per second",
        key => key,
    };
    match axis.values.as_slice() {
        [first, .., last] => format!("{what} from {first} to {last}"),
        values => format!("{what} of {}", values.concat()),
    }
}

/// Single values stay settings; several of one key are an axis.
fn split(settings: &[(String, String)]) -> (Vec<(String, String)>, Vec<Axis>) {
    let mut fixed: Vec<(String, String)> = Vec::new();
    let mut axes: Vec<Axis> = Vec::new();
    for (key, text) in settings {
        let separator = match KEYS_WITH_COMMAS.contains(&key.as_str()) || text.contains(';') {
            true => ';',
            false => ',',
        };
        let values: Vec<String> = text
            .split(separator)
            .map(|value| value.trim().to_owned())
            .collect();
        let mut once: Vec<String> = Vec::new();
        for value in values {
            if !once.contains(&value) {
                once.push(value);
            }
        }
        // The last one of a key wins.
        axes.retain(|axis| axis.key != *key);
        fixed.retain(|(other, _)| other != key);
        match once.as_slice() {
            [only] => fixed.push((key.clone(), only.clone())),
            _ => axes.push(Axis {
                key: key.clone(),
                values: once,
            }),
        }
    }
    (fixed, axes)
}

/// An option and `--set` for the same key contradict each other.
fn check_once(
    key: &str,
    option: &str,
    fixed: &[(String, String)],
    axes: &[Axis],
) -> Result<(), Failure> {
    let is_set = fixed.iter().any(|(other, _)| other == key);
    if is_set || axes.iter().any(|axis| axis.key == key) {
        let text = format!("`{key}` is given by `{option}` and by `--set`");
        return Err(Failure::new(Exit::BadInput, text).with_hint("give one of them"));
    }
    Ok(())
}

fn axis(key: &str, numbers: Result<Vec<f64>, AxisError>) -> Result<Axis, Failure> {
    let numbers = numbers.map_err(|error| {
        Failure::of(Exit::BadInput, error)
            .context(format!("the values of `{key}` are not valid"))
            .with_hint("such as `1,2,4,8`, `10..50 by 10` or `100..8000 by 2x`")
    })?;
    Ok(Axis {
        key: key.to_owned(),
        values: numbers.iter().map(f64::to_string).collect(),
    })
}

/// All combinations, as often as asked for. Each round has all of them once, in an order of its own, so that a
/// drift is spread over all points alike.
fn points(axes: &[Axis], arguments: &SweepArguments, task: &Task) -> Result<Vec<Point>, Failure> {
    let mut combinations = vec![BTreeMap::new()];
    for axis in axes {
        combinations = combinations
            .iter()
            .flat_map(|settings| {
                axis.values.iter().map(|value| {
                    let mut settings: BTreeMap<String, String> = settings.clone();
                    settings.insert(axis.key.clone(), value.clone());
                    if axis.key == RATE {
                        settings.insert("schedule.kind".into(), kind(&task.plan.schedule).into());
                    }
                    settings
                })
            })
            .collect();
        let runs = combinations.len().saturating_mul(arguments.repeat as usize);
        if runs > MOST_RUNS {
            let text = format!("the sweep would have more than {MOST_RUNS} runs");
            return Err(Failure::new(Exit::BadInput, text).with_hint("give fewer values"));
        }
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(task.plan.client.seed);
    let mut points = Vec::new();
    for repeat in 0..arguments.repeat {
        let mut round = combinations.clone();
        if arguments.order == OrderName::Random {
            round.shuffle(&mut random);
        }
        for settings in round {
            points.push(point(points.len(), settings, None, repeat));
        }
    }
    Ok(points)
}

fn kind(schedule: &Schedule) -> &'static str {
    match schedule {
        Schedule::Poisson { .. } => "poisson",
        Schedule::Closed {} | Schedule::Constant { .. } => "constant",
    }
}

/// Runs what is left of the sweep and finds the answer.
pub(crate) fn run(campaign: &mut Campaign<'_>) -> Result<(), Failure> {
    let ran = campaign.run_all();
    let answered = answer(campaign);
    ran.and(answered)
}

/// What can be said of the points that were run; also of some of them after an interruption.
fn answer(campaign: &mut Campaign<'_>) -> Result<(), Failure> {
    let windows = super::windows(campaign)?;
    let seed = campaign.seed();
    let found = analyze(&campaign.document, &windows, Resampling::seeded(seed));
    if let Some(found) = found {
        campaign.document.answer = Some(Answer::Sweep(Box::new(found)));
    }
    Ok(())
}
