//! `dyno sweep`, `xmax`, `slo`, `ab`, `tune` and `resume`: from arguments to the answer of an experiment.

use crate::args::experiments::{
    AbArguments, AllowName, ExperimentArguments, ExperimentCommand, ObjectiveArguments,
    ResumeArguments, SloArguments, SweepArguments, TuneArguments, XmaxArguments,
};
use crate::args::run::{BaseArguments, ExtentArguments, OrderName};
use crate::commands::limits;
use crate::commands::run::{examples, observer};
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::metrics::Endpoint;
use crate::records;
use crate::reports::{check_experiment_format, experiment_text, extent_of, terminal_options};
use crate::task::{self, Offered, Settings};
use clap::Args;
use dyno_engine::experiment::ab::AbRequest;
use dyno_engine::experiment::estimate::Estimate;
use dyno_engine::experiment::objectives::ObjectiveRequest;
use dyno_engine::experiment::request::{Tasks, WhichPlan};
use dyno_engine::experiment::slo::SloRequest;
use dyno_engine::experiment::sweep::SweepRequest;
use dyno_engine::experiment::tune::TuneRequest;
use dyno_engine::experiment::xmax::XmaxRequest;
use dyno_engine::experiment::{self, FinishedExperiment, ab, slo, sweep, tune, xmax};
use dyno_engine::observer::Shared;
use dyno_engine::task::announce;
use dyno_engine::{Error, Kind, RunOptions};
use dyno_plan::knobs::Allowed;
use dyno_plan::task::Task;
use dyno_plan::units::Span;
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Objective, Verb};
use dyno_report::Format;
use std::fmt::Write as _;
use std::path::Path;

/// Executes a command in the place that `on` prepares from the options of its hosts.
pub(crate) fn execute<H: Args>(
    command: &ExperimentCommand<H>,
    on: impl FnOnce(&H, &dyn Fn(Invocation<'_>) -> Result<Exit, Error>) -> Result<Exit, Error>,
) -> Result<Exit, Error> {
    use ExperimentCommand::{Ab, Resume, Slo, Sweep, Tune, Xmax};
    match command {
        Sweep(typed) => on(&typed.hosts, &|invocation| sweep(&typed.verb, invocation)),
        Xmax(typed) => on(&typed.hosts, &|invocation| xmax(&typed.verb, invocation)),
        Slo(typed) => on(&typed.hosts, &|invocation| slo(&typed.verb, invocation)),
        Ab(typed) => {
            let result = on(&typed.hosts, &|invocation| ab(&typed.verb, invocation));
            let is_run = !typed.verb.experiment.base.output.dry_run;
            let junit = typed.verb.limits.junit.as_deref().filter(|_| is_run);
            limits::or_junit(result, junit, "dyno ab")
        }
        Tune(typed) => on(&typed.hosts, &|invocation| tune(&typed.verb, invocation)),
        Resume(typed) => on(&typed.hosts, &|invocation| resume(&typed.verb, invocation)),
    }
}

/// Executes `dyno sweep`: measures several loads or settings.
fn sweep(arguments: &SweepArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let start = &common.base.target.server.start;
    let request = SweepRequest {
        settings: start.settings.clone(),
        clients: arguments.clients.clone(),
        rates: arguments.rates.clone(),
        cross: arguments.cross,
        base: arguments.base.clone(),
        schedule: arguments.schedule,
        repeat: arguments.repeat,
        is_random: arguments.order == OrderName::Random,
        embedded_server: start.embedded_server.clone(),
    };
    let (document, task) =
        sweep::plan(&request, &resolver(common, invocation), invocation.environment())?;
    perform(document, vec![(WhichPlan::Only, task)], &common.base, invocation)
}

/// Executes `dyno xmax`: finds the highest rate that the server sustains.
fn xmax(arguments: &XmaxArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = XmaxRequest {
        settings: common.base.target.server.start.settings.clone(),
        max_clients: arguments.max_clients,
        repeat: arguments.repeat,
    };
    let (document, task) = xmax::plan(&request, &resolver(common, invocation))?;
    perform(document, vec![(WhichPlan::Only, task)], &common.base, invocation)
}

/// Executes `dyno slo`: finds the highest offered rate that meets an objective.
fn slo(arguments: &SloArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = SloRequest {
        settings: common.base.target.server.start.settings.clone(),
        clients: arguments.clients,
        schedule: arguments.schedule,
        objectives: objectives(&arguments.objectives),
        resolution: arguments.resolution,
        max_runs: arguments.max_runs,
        time_limit: arguments.time_limit.map(|limit| limit.0),
        max_steal_ratio: arguments.max_steal,
    };
    let (document, task) = slo::plan(&request, &resolver(common, invocation))?;
    perform(document, vec![(WhichPlan::Only, task)], &common.base, invocation)
}

/// Converts the given limits.
fn objectives(arguments: &ObjectiveArguments) -> ObjectiveRequest {
    let limit_us = |limit: Span| limit.0.as_secs_f64() * 1e6;
    let mean = arguments
        .mean
        .map(|limit| Objective { statistic: "mean".to_owned(), limit_us: limit_us(limit) });
    let named = [
        (50.0, arguments.p50),
        (90.0, arguments.p90),
        (95.0, arguments.p95),
        (99.0, arguments.p99),
        (99.9, arguments.p999),
    ];
    let named = named.into_iter().filter_map(|(name, limit)| Some((name, limit?)));
    let percentiles = named
        .chain(arguments.percentile.iter().copied())
        .map(|(percent, limit)| Objective::of_percentile(percent, limit_us(limit)));
    ObjectiveRequest {
        responses: mean.into_iter().chain(percentiles).collect(),
        failed_ratio: arguments.errors,
    }
}

/// Executes `dyno ab`: decides whether one of two plans is faster.
fn ab(arguments: &AbArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = AbRequest {
        workload_b: arguments.workload_b.clone(),
        settings_a: arguments.set_a.clone(),
        // Its option is called `--set-b` here.
        settings_b: common.base.target.server.start.settings.clone(),
        settings_of_both: arguments.set_both.clone(),
        clients: arguments.clients,
        rate_per_s: arguments.rate.map(|rate| rate.0),
        schedule: arguments.schedule,
        margin: arguments.margin,
        limits: arguments.limits.fail_if_worse.clone(),
        junit: arguments.limits.junit.as_deref().map(absolute),
        min_pairs: arguments.min_pairs,
        max_pairs: arguments.max_pairs,
        time_limit: arguments.time_limit.map(|limit| limit.0),
        max_steal_ratio: arguments.max_steal,
    };
    let (document, tasks) = ab::plan(&request, &resolver(common, invocation))?;
    perform(document, tasks, &common.base, invocation)
}

/// Executes `dyno tune`: searches for better settings.
fn tune(arguments: &TuneArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = TuneRequest {
        across: arguments.across.clone(),
        settings: common.base.target.server.start.settings.clone(),
        goal: arguments.goal,
        rate: arguments.rate.map(|rate| rate.0),
        schedule: arguments.schedule,
        clients: arguments.clients,
        objectives: objectives(&arguments.objectives),
        budget: arguments.budget.0,
        knobs: arguments.knobs.clone(),
        allowed: Allowed {
            restart: arguments.allow.contains(&AllowName::Restart),
            host: arguments.allow.contains(&AllowName::Host),
            durability: arguments.allow.contains(&AllowName::Durability),
        },
        margin: arguments.margin,
        max_steal_ratio: arguments.max_steal,
        seed: arguments.search_seed,
    };
    let (document, tasks) = tune::plan(&request, &resolver(common, invocation))?;
    perform(document, tasks, &common.base, invocation)
}

/// Executes `dyno resume`: continues an interrupted experiment.
fn resume(arguments: &ResumeArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let endpoint = Endpoint::resolve(&arguments.metrics, invocation.surroundings)?;
    let folder = records::folder(&arguments.experiment)?;
    let document = Experiment::read(&folder)?;
    check_experiment_format(document.verb, arguments.format)?;
    let recorded = document.options.ab;
    let has_limits = recorded.as_ref().is_some_and(|options| !options.limits.is_empty());
    if arguments.junit.is_some() && !has_limits {
        let text =
            "`--junit` writes the outcomes of `--fail-if-worse`, but the experiment has none";
        return Err(Error::new(Kind::BadInput, text).with_hint("leave it out"));
    }
    let given = arguments.junit.as_deref().map(absolute);
    let junit = given.or(recorded.and_then(|options| options.junit));
    let options = RunOptions {
        embedded_server: arguments.embedded_server.clone(),
        selfcheck: invocation.selfcheck(),
        ..options(invocation)
    };
    let (_metrics, mut observer) = observer(endpoint, invocation)?;
    let finished = experiment::resume(
        &folder,
        arguments.uri.as_deref(),
        &options,
        &mut observer,
        invocation.cancel,
    );
    let result = finished.and_then(|mut finished| {
        if let Some(options) = finished.document.options.ab.as_mut() {
            options.junit.clone_from(&junit);
        }
        end(&finished, (arguments.format, &arguments.extent), invocation)
    });
    limits::or_junit(result, junit.as_deref().map(Path::new), "dyno resume")
}

/// The path for a document: `dyno resume` may run in another folder.
fn absolute(path: &Path) -> String {
    let full = std::path::absolute(path);
    full.unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Returns a resolver of the arguments to the tasks of an experiment.
fn resolver(
    arguments: &ExperimentArguments,
    invocation: Invocation<'_>,
) -> impl Fn(Option<&str>, Settings<'_>, Offered) -> Result<Task, Error> {
    move |workload, settings, schedule| {
        let mut arguments = arguments.clone();
        if let Some(workload) = workload {
            arguments.base.target.workload = Some(workload.to_owned());
        }
        task::of_experiment(&arguments, settings, schedule, invocation.surroundings)
    }
}

fn options(invocation: Invocation<'_>) -> RunOptions<'_> {
    RunOptions {
        environment: invocation.environment().clone(),
        source: invocation.source,
        ..RunOptions::default()
    }
}

/// Runs an experiment and shows its answer, or prints the design for `--dry-run`.
pub(super) fn perform(
    document: Experiment,
    tasks: Tasks,
    arguments: &BaseArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let BaseArguments { target, data, output, metrics, .. } = arguments;
    check_experiment_format(document.verb, output.format)?;
    let endpoint = Endpoint::resolve(metrics, invocation.surroundings)?;
    let options = RunOptions {
        fresh: data.fresh,
        drop_foreign: data.drop_foreign,
        no_load: arguments.no_load,
        out: output.out.clone(),
        embedded_server: target.server.start.embedded_server.clone(),
        ..options(invocation)
    };
    if output.dry_run {
        let mut messages = invocation.messages;
        tasks.iter().for_each(|(_, task)| announce(task, &Shared::new(&mut messages)));
        experiment::check_plans(&document, &tasks, &options)?;
        if let (Some(count), Some((_, task))) = (output.show, tasks.first()) {
            print_data(&examples(&task.plan, count)?)?;
        }
        print_data(&design(&document, &experiment::estimate(&document, &tasks)))?;
        if let Some(preview) = tune::preview(&document, &tasks) {
            print_data(&preview)?;
        }
        experiment::check(&document, &tasks, &options, &mut messages, invocation.cancel)?;
        return Ok(Exit::Done);
    }
    let options = RunOptions { selfcheck: invocation.selfcheck(), ..options };
    let cancel = invocation.cancel;
    if endpoint.is_some() {
        // Check before serving metrics, so that a refused experiment serves none. The experiment repeats the notices.
        experiment::check(&document, &tasks, &options, &mut (), cancel)?;
    }
    let (_metrics, mut observer) = observer(endpoint, invocation)?;
    let finished = experiment::run(document, tasks, &options, &mut observer, cancel)?;
    end(&finished, (output.format, &output.extent), invocation)
}

/// Prints the answer and its folder, writes the outcomes of the limits, and checks the failed operations.
fn end(
    finished: &FinishedExperiment,
    (format, extent): (Format, &ExtentArguments),
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let messages = invocation.messages;
    let document = &finished.document;
    let is_brief = format == Format::Human && !extent.full;
    let extent = extent_of(&finished.folder, extent);
    let options = terminal_options(invocation.surroundings, extent);
    print_data(&experiment_text(document, format, &options)?)?;
    // The brief report names the folder itself.
    if !is_brief {
        let place = finished.folder.display();
        messages.note(&format!("experiment: {place}"));
    }
    if document.answer.is_none() {
        let text = if document.verb == Verb::Ab && finished.all_are_set_aside {
            "no answer: the hypervisor took CPU time in every pair; repeat on a quieter machine, or raise `--max-steal`"
        } else {
            "no answer: too little data; make the runs longer with `--duration`, or make more runs"
        };
        messages.warning(text);
    }
    let exit = limits::exit(&document.limits, messages);
    let failed = &finished.failed_runs;
    let failed = (!failed.is_empty()).then(|| {
        format!(
            "more operations failed than the plan tolerates in {} of {} runs: {}",
            failed.len(),
            document.points.len(),
            failed.join(", ")
        )
    });
    let options = document.options.ab.as_ref();
    if let Some(path) = options.and_then(|options| options.junit.as_deref()) {
        let mut cases = limits::cases(&document.limits, None);
        cases.extend(failed.as_deref().map(limits::failed_operations));
        limits::write_junit(Path::new(path), &format!("dyno ab {}", document.name), cases)?;
    }
    match failed {
        None => Ok(exit),
        Some(text) => {
            messages.warning(&text);
            Ok(Exit::CheckFailed)
        }
    }
}

/// The question, what the answer takes, and the planned runs, one per line.
fn design(document: &Experiment, estimate: &Estimate) -> String {
    let mut text = format!("{}\nTakes {estimate}.\n", document.question);
    if let Some(base) = &document.options.base {
        let _ = writeln!(text, "relative to {}={}", base.key, base.value);
    }
    for point in &document.points {
        let settings = point.settings.iter();
        let settings = settings.map(|(key, value)| format!("{key}={value}"));
        let settings: Vec<String> = point.workload.iter().cloned().chain(settings).collect();
        let _ = writeln!(text, "{}  {}", point.directory, settings.join(" "));
    }
    text
}
