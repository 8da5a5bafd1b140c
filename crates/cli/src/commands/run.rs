//! `dyno run`: executes a workload and prints its report. `suite` handles several workloads.

use crate::annotator::Annotator;
use crate::args::{OutputArguments, RunArguments, SuiteArguments};
use crate::commands::suite;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::print_data;
use crate::metrics::{Endpoint, Metrics};
use crate::progress::Progress;
use crate::reports::{self, ReportFiles};
use crate::task;
use dyno_engine::observer::Shared;
use dyno_engine::run::guard::Guard;
use dyno_engine::run::preflight;
use dyno_engine::task::announce;
use dyno_engine::{Error, Finished, Kind, Observer, RunOptions};
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

/// Executes a run for `dyno run` or `dyno soak`.
pub(crate) fn perform(
    task: &Task,
    arguments: &RunArguments,
    guard: Option<Guard>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let endpoint = Endpoint::resolve(&arguments.metrics, invocation.surroundings)?;
    reports::check_run_format(arguments.output.format)?;
    let options = RunOptions {
        environment: invocation.environment().clone(),
        no_load: arguments.no_load,
        fresh: arguments.data.fresh,
        drop_foreign: arguments.data.drop_foreign,
        abort_load: true,
        out: arguments.output.out.clone(),
        embedded_server: arguments.target.start.embedded_server.clone(),
        selfcheck: invocation.selfcheck(),
        guard,
        source: invocation.source,
        ..RunOptions::default()
    };
    if arguments.output.dry_run {
        return dry_run(task, &options, invocation);
    }
    let finished = observe(task, &options, endpoint, invocation)?;
    let finished =
        finished.ok_or_else(|| Error::new(Kind::Internal, "the run did not record anything"))?;
    let tolerated_error_ratio = task.plan.client.tolerated_error_ratio;
    end(finished, &arguments.output, tolerated_error_ratio, invocation)
}

/// Prints the plan, and fails where the run would fail its checks.
pub(crate) fn dry_run(
    task: &Task,
    options: &RunOptions<'_>,
    invocation: Invocation<'_>,
) -> Result<Exit, Error> {
    let mut messages = invocation.messages;
    announce(task, &Shared::new(&mut messages));
    print_data(&task.plan_text())?;
    preflight::check_run(task, options, &mut messages, invocation.cancel)?;
    Ok(Exit::Done)
}

/// Executes a run, with progress on the terminal and optional metrics.
pub(crate) fn observe(
    task: &Task,
    options: &RunOptions<'_>,
    endpoint: Option<Endpoint>,
    invocation: Invocation<'_>,
) -> Result<Option<Finished>, Error> {
    if endpoint.is_some() {
        // Check before serving metrics, so that a refused run serves none. The run repeats the notices.
        preflight::check_run(task, options, &mut (), invocation.cancel)?;
    }
    let (_metrics, mut observer) = observer(endpoint, invocation)?;
    dyno_engine::run(task, options, &mut observer, invocation.cancel)
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
pub(crate) fn end(
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
    let text = reports::run_text(&finished.results, output.format, &options)?;
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
