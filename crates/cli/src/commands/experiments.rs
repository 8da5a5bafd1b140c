//! `dyno sweep`, `xmax`, `slo`, `ab`, `tune` and `resume`: from arguments to the answer of an experiment.

use crate::args::{
    AbArguments, AllowName, ExperimentArguments, ExtentArguments, MetricsArguments,
    ObjectiveArguments, OrderName, ResumeArguments, SloArguments, SweepArguments, TuneArguments,
    XmaxArguments,
};
use crate::commands::run::observer;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::metrics::Endpoint;
use crate::reports::{check_experiment_format, experiment_text, extent_of, terminal_options};
use crate::task::{self, Offered, Settings};
use dyno_engine::Error;
use dyno_engine::experiment::ab::AbRequest;
use dyno_engine::experiment::objectives::ObjectiveRequest;
use dyno_engine::experiment::request::{ExperimentOptions, Tasks, WhichPlan};
use dyno_engine::experiment::slo::SloRequest;
use dyno_engine::experiment::sweep::SweepRequest;
use dyno_engine::experiment::tune::TuneRequest;
use dyno_engine::experiment::xmax::XmaxRequest;
use dyno_engine::experiment::{self, FinishedExperiment, ab, slo, sweep, tune, xmax};
use dyno_engine::observer::Shared;
use dyno_engine::task::announce;
use dyno_plan::knobs::Allowed;
use dyno_plan::task::Task;
use dyno_plan::units::Span;
use dyno_record::Document;
use dyno_record::experiment::{Experiment, Objective, Verb};
use dyno_report::Format;
use std::fmt::Write as _;

/// Executes `dyno sweep`: measures several loads or settings.
pub(crate) fn sweep(arguments: &SweepArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let start = &common.target.start;
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
    begin(document, vec![(WhichPlan::Only, task)], common, invocation)
}

/// Executes `dyno xmax`: finds the highest rate that the server sustains.
pub(crate) fn xmax(arguments: &XmaxArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = XmaxRequest {
        settings: common.target.start.settings.clone(),
        max_clients: arguments.max_clients,
        repeat: arguments.repeat,
    };
    let (document, task) = xmax::plan(&request, &resolver(common, invocation))?;
    begin(document, vec![(WhichPlan::Only, task)], common, invocation)
}

/// Executes `dyno slo`: finds the highest offered rate that meets an objective.
pub(crate) fn slo(arguments: &SloArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = SloRequest {
        settings: common.target.start.settings.clone(),
        clients: arguments.clients,
        schedule: arguments.schedule,
        objectives: objectives(&arguments.objectives),
        resolution: arguments.resolution,
        max_runs: arguments.max_runs,
        max_steal_ratio: arguments.max_steal,
    };
    let (document, task) = slo::plan(&request, &resolver(common, invocation))?;
    begin(document, vec![(WhichPlan::Only, task)], common, invocation)
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
pub(crate) fn ab(arguments: &AbArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = AbRequest {
        workload_b: arguments.workload_b.clone(),
        settings_a: arguments.set_a.clone(),
        // Here `--set` applies to B only.
        settings_b: common.target.start.settings.clone(),
        settings_of_both: arguments.set_both.clone(),
        clients: arguments.clients,
        margin: arguments.margin,
        min_pairs: arguments.min_pairs,
        max_pairs: arguments.max_pairs,
        time_limit: arguments.time_limit.map(|limit| limit.0),
        max_steal_ratio: arguments.max_steal,
    };
    let (document, tasks) = ab::plan(&request, &resolver(common, invocation))?;
    begin(document, tasks, common, invocation)
}

/// Executes `dyno tune`: searches for better settings.
pub(crate) fn tune(arguments: &TuneArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let common = &arguments.experiment;
    let request = TuneRequest {
        across: arguments.across.clone(),
        settings: common.target.start.settings.clone(),
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
    begin(document, tasks, common, invocation)
}

/// Executes `dyno resume`: continues an interrupted experiment.
pub(crate) fn resume(
    arguments: &ResumeArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let endpoint = Endpoint::resolve(&arguments.metrics, invocation.surroundings)?;
    check_experiment_format(Experiment::read(&arguments.experiment)?.verb, arguments.format)?;
    let options = ExperimentOptions {
        embedded_server: arguments.embedded_server.clone(),
        selfcheck: invocation.selfcheck(),
        ..options(invocation)
    };
    let (_metrics, mut observer) = observer(endpoint, invocation)?;
    let finished = experiment::resume(
        &arguments.experiment,
        arguments.uri.as_deref(),
        &options,
        &mut observer,
        invocation.cancel,
    )?;
    end(&finished, (arguments.format, &arguments.extent), invocation)
}

/// Returns a resolver of the arguments to the tasks of an experiment.
fn resolver(
    arguments: &ExperimentArguments,
    invocation: Invocation<'_>,
) -> impl Fn(Option<&str>, Settings<'_>, Offered) -> Result<Task, Error> {
    move |workload, settings, schedule| {
        let mut arguments = arguments.clone();
        if let Some(workload) = workload {
            arguments.target.workload = Some(workload.to_owned());
        }
        task::of_experiment(&arguments, settings, schedule, invocation.surroundings)
    }
}

pub(super) fn options(invocation: Invocation<'_>) -> ExperimentOptions<'_> {
    ExperimentOptions {
        environment: invocation.environment().clone(),
        source: invocation.source,
        ..ExperimentOptions::default()
    }
}

/// Creates and performs an experiment.
fn begin(
    document: Experiment,
    tasks: Tasks,
    arguments: &ExperimentArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let options = ExperimentOptions {
        fresh: arguments.data.fresh,
        drop_foreign: arguments.data.drop_foreign,
        no_load: arguments.no_load,
        out: arguments.out.clone(),
        embedded_server: arguments.target.start.embedded_server.clone(),
        ..options(invocation)
    };
    let output = Output {
        metrics: &arguments.metrics,
        dry_run: arguments.dry_run,
        format: arguments.format.into(),
        extent: &arguments.extent,
    };
    perform(document, tasks, options, output, invocation)
}

/// Output options of an experiment.
pub(super) struct Output<'a> {
    pub(super) metrics: &'a MetricsArguments,
    pub(super) dry_run: bool,
    pub(super) format: Format,
    pub(super) extent: &'a ExtentArguments,
}

/// Runs an experiment and shows its answer, or prints the design for `--dry-run`.
pub(super) fn perform(
    document: Experiment,
    tasks: Tasks,
    options: ExperimentOptions<'_>,
    output: Output<'_>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let endpoint = Endpoint::resolve(output.metrics, invocation.surroundings)?;
    if output.dry_run {
        let mut messages = invocation.messages;
        tasks.iter().for_each(|(_, task)| announce(task, &Shared::new(&mut messages)));
        experiment::check_plans(&document, &tasks, &options)?;
        print_data(&design(&document))?;
        if let Some(preview) = tune::preview(&document, &tasks) {
            print_data(&preview)?;
        }
        experiment::check(&document, &tasks, &options, &mut messages, invocation.cancel)?;
        return Ok(Exit::Done);
    }
    let options = ExperimentOptions { selfcheck: invocation.selfcheck(), ..options };
    let cancel = invocation.cancel;
    if endpoint.is_some() {
        // Check before serving metrics, so that a refused experiment serves none. The experiment repeats the notices.
        experiment::check(&document, &tasks, &options, &mut (), cancel)?;
    }
    let (_metrics, mut observer) = observer(endpoint, invocation)?;
    let finished = experiment::run(document, tasks, &options, &mut observer, cancel)?;
    end(&finished, (output.format, output.extent), invocation)
}

/// Prints the answer and its folder, and checks the failed operations.
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
    let failed = &finished.failed_runs;
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    messages.warning(&format!(
        "more operations failed than the plan tolerates in {} of {} runs: {}",
        failed.len(),
        document.points.len(),
        failed.join(", ")
    ));
    Ok(Exit::CheckFailed)
}

/// Lists the planned runs, one per line.
fn design(document: &Experiment) -> String {
    let mut text = format!("{}\n", document.question);
    if let Some(base) = &document.options.base {
        let _ = writeln!(text, "relative to {}={}", base.key, base.value);
    }
    if document.points.is_empty() {
        text.push_str("the runs are chosen one by one, from the results so far\n");
    }
    for point in &document.points {
        let settings = point.settings.iter();
        let settings = settings.map(|(key, value)| format!("{key}={value}"));
        let settings: Vec<String> = point.workload.iter().cloned().chain(settings).collect();
        let _ = writeln!(text, "{}  {}", point.directory, settings.join(" "));
    }
    text
}
