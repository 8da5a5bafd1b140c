//! `dyno sweep`: every combination of the values of some keys, in random order. Client numbers and
//! offered rates form two separate blocks, unless `--cross` combines them.

use super::axes::{check_once, check_secrets, resolved, split};
use super::points::{WhichPlan, point};
use super::request::{Resolve, document, kind_at_rate};
use super::runner::ExperimentRunner;
use super::slo::max_start_delay;
use crate::environment::Environment;
use crate::error::{Error, Kind, OrFault, refuse};
use dyno_analyze::experiment::blocks;
use dyno_analyze::resampling::Resampling;
use dyno_plan::axis::{self, AxisError};
use dyno_plan::model::ScheduleKind;
use dyno_plan::task::Task;
use dyno_record::experiment::{
    Axis, Base, Block, CLIENTS, Experiment, Keys, Options, Point, RATE, Verb,
};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use std::path::PathBuf;

/// Most runs of a sweep: more would take days.
pub(super) const MOST_RUNS: usize = 10_000;

/// Plan key that decides whether a rate is offered.
const KIND: &str = "schedule.kind";

/// Swept keys and options of a sweep.
#[derive(Clone, Debug, Default)]
pub struct SweepRequest {
    /// Plan keys and their values; several values of one key, separated by commas, are swept.
    pub settings: Vec<(String, String)>,
    /// Numbers of clients, such as `1,2,4` or `1..100 by 2x`.
    pub clients: Option<String>,
    /// Offered rates in operations per second, in the same form.
    pub rates: Option<String>,
    /// Offer every rate with every number of clients, instead of a closed loop over the clients and
    /// an open loop over the rates.
    pub cross: bool,
    /// The value that others are compared with.
    pub base: Option<String>,
    /// Schedule at offered rates. Default: the plan's schedule, or a constant one.
    pub schedule: Option<ScheduleKind>,
    /// Runs of each point.
    pub repeat: u32,
    /// Whether the points are run in random order.
    pub is_random: bool,
    /// Path of the embedded server, if it was given.
    pub embedded_server: Option<PathBuf>,
}

/// Plans the experiment with all its points, and the task that they change.
///
/// # Errors
/// Nothing or too much is swept, a value is invalid, or a server is missing.
pub fn plan(
    request: &SweepRequest,
    resolve: Resolve<'_>,
    environment: &Environment,
) -> Result<(Experiment, Task), Error> {
    let (fixed, mut axes) = split(&request.settings);
    if let Some(text) = &request.clients {
        check_once(CLIENTS, "--clients", &fixed, &axes)?;
        axes.push(axis(CLIENTS, axis::whole_numbers(text))?);
    }
    if let Some(text) = &request.rates {
        check_once(RATE, "--rates", &fixed, &axes)?;
        axes.push(axis(RATE, axis::numbers(text))?);
    }
    if axes.is_empty() {
        let hint = "give `--clients`, `--rates`, or several values with `--set`, such as `--set server.cache=1GiB,2GiB`";
        return refuse("nothing is swept", hint);
    }
    let is_swept = |key: &str| axes.iter().any(|axis| axis.key == key);
    if is_swept(RATE) && is_swept(KIND) {
        let text =
            format!("`{KIND}` is swept together with offered rates, but a closed loop has none");
        let hint = "choose it with `--schedule`, or give `--clients` and `--rates` for a closed and an open loop";
        return refuse(text, hint);
    }
    let base = base(request.base.as_deref(), &axes)?;
    let has_blocks = has_blocks(&axes, request.cross)?;
    let rate = axes.iter().find(|axis| axis.key == RATE);
    let embedded = request.embedded_server.as_deref();
    let resolved = resolved(fixed, &axes, embedded, environment)?;
    let rate_per_s = rate.map(|axis| axis.values[0].parse().unwrap_or(1.0));
    // A random schedule in the plan stays unless another one is requested.
    let task = resolve(None, &resolved, (request.schedule, rate_per_s))?;
    axes.iter().try_for_each(|axis| check_secrets(axis, &task))?;
    let blocks: Vec<Combinations> = if has_blocks {
        Block::ALL.map(|block| Combinations::of(&axes, Some(block), &task)).into()
    } else {
        vec![Combinations::of(&axes, None, &task)]
    };
    let question = format!(
        "How does `{}` respond to {}?",
        task.plan.name,
        axes.iter().map(in_words).collect::<Vec<_>>().join(if has_blocks {
            ", and then to "
        } else {
            " and "
        })
    );
    let mut experiment = document(Verb::Sweep, question, &task);
    experiment.points = points(&blocks, request, &task)?;
    experiment.axes = axes;
    experiment.options = Options {
        repeat: Some(request.repeat),
        random_order: request.is_random,
        base,
        ..Options::default()
    };
    Ok((experiment, task))
}

/// The comparison base: the given value, else the first value of the only swept setting.
pub(super) fn base(named: Option<&str>, axes: &[Axis]) -> Result<Option<Base>, Error> {
    let swept = axes.iter().filter(|axis| axis.values.len() > 1);
    let of = |axis: &Axis, value: &str| Base { key: axis.key.clone(), value: value.to_owned() };
    let Some(named) = named else {
        let settings: Vec<&Axis> = swept.filter(|axis| !is_load(&axis.key)).collect();
        return Ok(match settings.as_slice() {
            [only] => Some(of(only, &only.values[0])),
            _ => None,
        });
    };
    let values = swept.flat_map(|axis| axis.values.iter().map(|value| of(axis, value)));
    let values: Vec<Base> = values.collect();
    let is_meant = |base: &&Base| {
        is_same(&base.value, named)
            || named
                .strip_prefix(&base.key)
                .and_then(|rest| rest.strip_prefix('='))
                .is_some_and(|value| is_same(&base.value, value))
    };
    let meant: Vec<&Base> = values.iter().filter(is_meant).collect();
    match meant.as_slice() {
        [only] => Ok(Some((*only).clone())),
        [] if values.is_empty() => {
            let text = format!("cannot compare with `--base {named}`: no key has several values");
            refuse(text, "give several values, such as `--set server.cache=1GiB,2GiB`")
        }
        [] => {
            let text = format!("`{named}` is not a swept value");
            let known: Vec<String> = values.iter().map(in_full).collect();
            let hint = format!("choose one of {}", known.join(", "));
            refuse(text, hint)
        }
        several => {
            let text = format!("`{named}` is a value of several swept keys");
            let known: Vec<String> = several.iter().map(|base| in_full(base)).collect();
            let hint = format!("add the key: {}", known.join(" or "));
            refuse(text, hint)
        }
    }
}

fn in_full(base: &Base) -> String {
    format!("`{}={}`", base.key, base.value)
}

fn is_load(key: &str) -> bool {
    [CLIENTS, RATE].contains(&key)
}

/// Whether two texts are the same value, such as `1` and `1.0`.
fn is_same(one: &str, other: &str) -> bool {
    let numbers = one.parse::<f64>().ok().zip(other.parse::<f64>().ok());
    one == other || numbers.is_some_and(|(one, other)| one == other)
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

fn axis(key: &str, numbers: Result<Vec<f64>, AxisError>) -> Result<Axis, Error> {
    let numbers = numbers
        .or_fault(Kind::BadInput, || format!("the values of `{key}` are not valid"))
        .with_hint("such as `1,2,4,8`, `10..50 by 10` or `100..8000 by 2x`")?;
    Ok(Axis { key: key.to_owned(), values: numbers.iter().map(f64::to_string).collect() })
}

/// Whether the closed loop and the open loop form separate blocks: several numbers of clients and
/// several rates without `--cross`.
fn has_blocks(axes: &[Axis], cross: bool) -> Result<bool, Error> {
    let is_swept = |key: &str| axes.iter().any(|axis| axis.key == key && axis.values.len() > 1);
    let has_both = is_swept(CLIENTS) && is_swept(RATE);
    if cross && !has_both {
        let text = "`--cross` needs several numbers of clients and several rates";
        return refuse(
            text,
            "give `--clients` and `--rates`, each with several values, or leave out `--cross`",
        );
    }
    Ok(has_both && !cross)
}

/// The points of a block, or of a sweep without blocks.
pub(super) struct Combinations {
    block: Option<Block>,
    /// Settings of all points.
    common: Keys,
    axes: Vec<Axis>,
    /// Settings of an offered rate.
    schedule: Vec<(&'static str, String)>,
}

impl Combinations {
    pub(super) fn of(axes: &[Axis], block: Option<Block>, task: &Task) -> Self {
        let common = match block {
            None => Keys::new(),
            Some(Block::Closed) => Keys::from([(KIND.to_owned(), "closed".to_owned())]),
            Some(Block::Open) => {
                let clients = clients_of_the_open_loop(axes, task);
                Keys::from([(CLIENTS.to_owned(), clients.to_string())])
            }
        };
        let is_varied = |axis: &&Axis| block.is_none_or(|block| block.varies(&axis.key));
        let schedule = &task.plan.schedule;
        let delay = max_start_delay(schedule).map(|delay| ("schedule.max_start_delay", delay));
        Combinations {
            block,
            common,
            axes: axes.iter().filter(is_varied).cloned().collect(),
            schedule: std::iter::once((KIND, kind_at_rate(schedule).to_owned()))
                .chain(delay)
                .collect(),
        }
    }

    /// Number of points. Saturates when it exceeds the limit of a sweep.
    fn count(&self) -> usize {
        let sizes = self.axes.iter().map(|axis| axis.values.len());
        sizes.fold(1, usize::saturating_mul)
    }

    /// Settings of each point.
    pub(super) fn all(&self) -> Vec<Keys> {
        let mut all = vec![self.common.clone()];
        for axis in &self.axes {
            let with = |settings: &Keys, value: &String| {
                let mut settings = settings.clone();
                settings.insert(axis.key.clone(), value.clone());
                if axis.key == RATE {
                    for (key, text) in &self.schedule {
                        // A swept setting stays.
                        let setting = settings.entry((*key).to_owned());
                        setting.or_insert_with(|| text.clone());
                    }
                }
                settings
            };
            all = all
                .iter()
                .flat_map(|settings| axis.values.iter().map(|value| with(settings, value)))
                .collect();
        }
        all
    }
}

/// Refuses an experiment with too many runs.
pub(super) fn check_count<'a>(
    all: impl IntoIterator<Item = &'a Combinations>,
    repeat: u32,
    what: &str,
) -> Result<(), Error> {
    let round = all.into_iter().map(Combinations::count).fold(0, usize::saturating_add);
    if round.saturating_mul(repeat as usize) > MOST_RUNS {
        let text = format!("the {what} would have more than {MOST_RUNS} runs");
        return refuse(text, "give fewer values");
    }
    Ok(())
}

/// Connections for the offered rates: the largest swept number, or the plan's if it is larger. An
/// arrival without a free connection would wait, which is not server time.
fn clients_of_the_open_loop(axes: &[Axis], task: &Task) -> u32 {
    let swept = axes.iter().filter(|axis| axis.key == CLIENTS);
    let swept = swept.flat_map(|axis| &axis.values);
    let numbers = swept.filter_map(|value| value.parse::<u32>().ok());
    numbers.fold(task.plan.client.clients, u32::max)
}

/// All combinations, repeated as requested. Each round contains all of them once, block by block,
/// in its own order, so that a drift affects all points of a block alike.
fn points(
    blocks: &[Combinations],
    request: &SweepRequest,
    task: &Task,
) -> Result<Vec<Point>, Error> {
    check_count(blocks, request.repeat, "sweep")?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(task.plan.client.seed);
    let mut points = Vec::new();
    for repeat in 0..request.repeat {
        for block in blocks {
            let mut all = block.all();
            if request.is_random {
                all.shuffle(&mut random);
            }
            for settings in all {
                points.push(Point {
                    block: block.block,
                    ..point(points.len(), settings, WhichPlan::Only, repeat)
                });
            }
        }
    }
    Ok(points)
}

/// Runs the rest of the sweep and computes the answer.
pub(crate) fn run(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    let ran = runner.run_all();
    let answered = answer(runner);
    ran.and(answered)
}

/// Computes the answer from the measured points, also after an interruption.
fn answer(runner: &mut ExperimentRunner<'_>) -> Result<(), Error> {
    let windows = runner.windows()?;
    let seed = runner.seed();
    let found = blocks::answer(&runner.document, &windows, Resampling::seeded(seed));
    if found.is_some() {
        runner.document.answer = found;
    }
    Ok(())
}
