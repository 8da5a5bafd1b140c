//! `dyno run`, `dyno soak` and `dyno load`: execute a workload and print its report. `suite` handles several workloads.

use crate::annotator::Annotator;
use crate::args::run::{
    DataArguments, LoadArguments, OutputArguments, RunArguments, SuiteArguments, TargetArguments,
};
use crate::args::standing::SoakArguments;
use crate::commands::suite;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::metrics::{Endpoint, Metrics};
use crate::progress::Progress;
use crate::reports::{self, ReportFiles};
use crate::task;
use dyno_engine::deployment::storage::check_least_free;
use dyno_engine::experiment::estimate::of_run;
use dyno_engine::observer::Shared;
use dyno_engine::run::guard::Guard;
use dyno_engine::run::options::Extent;
use dyno_engine::run::preflight;
use dyno_engine::task::announce;
use dyno_engine::{Error, Finished, Kind, Observer, RunOptions};
use dyno_load::own::Shown;
use dyno_plan::Plan;
use dyno_plan::task::Task;
use dyno_report::Format;

/// Executes `dyno run`.
pub(crate) fn run(arguments: &SuiteArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    if let Some(request) = suite::request(arguments)? {
        return suite::suite(&request, &arguments.run, invocation);
    }
    let task = task::of_run(&arguments.run, invocation.surroundings)?;
    perform(&task, &arguments.run, None, invocation)
}

/// Executes `dyno soak`.
pub(crate) fn soak(arguments: &SoakArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let task = task::of_soak(arguments, invocation.surroundings)?;
    check_least_free(&task.plan, arguments.least_free)?;
    let guard = Guard::new(arguments.least_free);
    perform(&task, &arguments.run, Some(guard), invocation)
}

fn perform(
    task: &Task,
    arguments: &RunArguments,
    guard: Option<Guard>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let base = &arguments.base;
    let endpoint = Endpoint::resolve(&base.metrics, invocation.surroundings)?;
    let options = RunOptions {
        no_load: base.no_load,
        selfcheck: invocation.selfcheck(),
        guard,
        ..options(&base.target, &base.data, &base.output, invocation)?
    };
    finish(task, &options, endpoint, &base.output, invocation)
}

/// Executes `dyno load`.
pub(crate) fn load(arguments: &LoadArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let LoadArguments { target, data, output, metrics, .. } = arguments;
    let task = task::of_load(arguments, invocation.surroundings)?;
    let endpoint = Endpoint::resolve(metrics, invocation.surroundings)?;
    let options = RunOptions { extent: Extent::Load, ..options(target, data, output, invocation)? };
    finish(&task, &options, endpoint, output, invocation)
}

/// The options that runs and loads share.
fn options<'a>(
    target: &TargetArguments,
    data: &DataArguments,
    output: &OutputArguments,
    invocation: Invocation<'a>,
) -> Result<RunOptions<'a>, Error> {
    reports::check_run_format(output.format)?;
    Ok(RunOptions {
        environment: invocation.environment().clone(),
        fresh: data.fresh,
        drop_foreign: data.drop_foreign,
        abort_load: true,
        out: output.out.clone(),
        embedded_server: target.server.start.embedded_server.clone(),
        source: invocation.source,
        ..RunOptions::default()
    })
}

/// Runs the task, or prints its plan for `--dry-run`.
fn finish(
    task: &Task,
    options: &RunOptions<'_>,
    endpoint: Option<Endpoint>,
    output: &OutputArguments,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    if output.dry_run {
        return dry_run(task, options, output.show, invocation);
    }
    if endpoint.is_some() {
        // Check before serving metrics, so that a refused run serves none. The run repeats the notices.
        preflight::check_run(task, options, &mut (), invocation.cancel)?;
    }
    let (_metrics, mut observer) = observer(endpoint, invocation)?;
    match dyno_engine::run(task, options, &mut observer, invocation.cancel)? {
        Some(finished) => end(finished, output, task.plan.client.tolerated_error_ratio, invocation),
        // All documents were loaded before.
        None if matches!(options.extent, Extent::Load) => Ok(Exit::Done),
        None => Err(Error::new(Kind::Internal, "the run did not record anything")),
    }
}

/// Prints the plan, and fails where the run would fail its checks.
fn dry_run(
    task: &Task,
    options: &RunOptions<'_>,
    show: Option<u32>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let mut messages = invocation.messages;
    announce(task, &Shared::new(&mut messages));
    // On standard output it would get into a file with the plan.
    messages.note(&format!("the run {}", of_run(task, options)));
    print_data(&task.plan_text())?;
    if let Some(count) = show {
        print_data(&examples(&task.plan, count)?)?;
    }
    preflight::check_run(task, options, &mut messages, invocation.cancel)?;
    Ok(Exit::Done)
}

/// The first documents of each own collection, and the first commands of each own operation.
pub(crate) fn examples(plan: &Plan, count: u32) -> Result<String, Error> {
    if !plan.is_own() {
        let text = "`--show` needs a plan with own collections";
        return Err(Error::new(Kind::BadInput, text)
            .with_hint("describe them with `[[data.collections]]`, see docs/workloads.md"));
    }
    let (collections, operations) = dyno_load::own::show(plan, count)?;
    let mut text = String::new();
    for (kind, all) in [("collection", collections), ("operation", operations)] {
        for Shown { name, examples } in all {
            text.push_str(&format!("# {kind} `{name}`\n"));
            for (example, bytes) in examples {
                text.push_str(&format!("# {bytes} bytes\n{example}\n"));
            }
        }
    }
    Ok(text)
}

/// Observer for progress on the terminal, metrics (until the returned `Metrics` is dropped), reports of each record, and
/// Grafana annotations.
pub(crate) fn observer(
    endpoint: Option<Endpoint>,
    invocation: Invocation<'_>,
) -> Result<(Option<Metrics>, impl Observer), Error> {
    let messages = invocation.messages;
    let metrics = Metrics::serve(endpoint, messages)?;
    let feed = metrics.as_ref().map(Metrics::feed);
    let records = (ReportFiles { messages }, Annotator::new(invocation));
    let observer = (Progress::new(messages), (feed, records));
    Ok((metrics, observer))
}

/// Prints the result and checks the failed operations.
fn end(
    finished: Finished,
    output: &OutputArguments,
    tolerated_error_ratio: f64,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let messages = invocation.messages;
    let directory = &finished.results.run.directory;
    let place = directory.display();
    if let Some(fault) = finished.fault {
        messages.note(&format!(
            "the partial record is in `{place}`; show it with `dyno report {place}`"
        ));
        return Err(fault);
    }
    let extent = reports::extent_of(directory, &output.extent);
    let options = reports::terminal_options(invocation.surroundings, extent);
    let text =
        reports::run_text(&finished.results, output.format, &options).map_err(reports::refused)?;
    print_data(&text)?;
    // The brief report names the HTML page itself.
    if output.format != Format::Human || output.extent.full {
        let report = directory.join(reports::HTML);
        messages.note(&format!("report: {}", report.display()));
    }
    if finished.interrupted {
        messages.warning(&format!("interrupted; the partial run is in `{place}`"));
        return Ok(Exit::Interrupted);
    }
    let violated = finished.results.run.document.checks.iter().filter(|check| !check.passed);
    let violated = violated.count();
    if violated > 0 {
        messages.warning(&format!("{violated} of the plan's checks failed"));
        return Ok(Exit::CheckFailed);
    }
    let ratio = finished.totals.failed_ratio();
    if ratio > tolerated_error_ratio {
        let totals = finished.totals;
        messages.warning(&format!(
            "{} of {} operations failed (share {ratio:.6}, tolerated {tolerated_error_ratio})",
            totals.failed,
            totals.failed + totals.succeeded
        ));
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}
