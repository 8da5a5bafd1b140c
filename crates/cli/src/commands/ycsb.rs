//! `dyno ycsb`: replaces `bin/ycsb`, and reports where it deviates to be correct.

use crate::args::run::YcsbArguments;
use crate::args::standing::MetricsArguments;
use crate::exit::Exit;
use crate::invocation::Invocation;
use crate::messages::{Messages, print_data};
use crate::metrics::{Endpoint, Metrics};
use crate::reports::{ReportFiles, refused};
use crate::surroundings::Surroundings;
use crate::ycsb::arguments::{self, Parsed, YcsbCommand, parse};
use crate::ycsb::status::Status;
use dyno_engine::files::write_file;
use dyno_engine::run::options::Extent;
use dyno_engine::{Error, Finished, Kind, OrFault, RunOptions, VERSION};
use dyno_load::LoadError;
use dyno_load::connect::ConnectError;
use dyno_load::job::RetryRule;
use dyno_load::operation::OperationError;
use dyno_plan::resolve::{PlanError, resolve_ycsb};
use dyno_plan::task::Task;
use dyno_plan::uri::redact;
use dyno_plan::ycsb::{
    Phase, Properties, YcsbClientOptions, YcsbPlan, in_ycsb_words, property_of_option, resolve,
};
use dyno_record::model::PhaseKind;
use dyno_record::reader::Run;
use dyno_report::ycsb::YcsbOptions;
use dyno_report::{Format, RenderOptions};
use dyno_wire::code::DUPLICATE_KEY;
use std::path::Path;

/// Executes `dyno ycsb`. Hints use the option names of `dyno ycsb`.
pub(crate) fn ycsb(arguments: &YcsbArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    run(arguments, invocation).map_err(|mut error| {
        error.hint = error.hint.as_deref().map(in_ycsb_words);
        error
    })
}

fn run(arguments: &YcsbArguments, invocation: Invocation<'_>) -> Result<Exit, Error> {
    let command = match parse(&arguments.arguments)? {
        Parsed::Help => {
            print_data(&arguments::help())?;
            return Ok(Exit::Done);
        }
        Parsed::Run(command) => command,
    };
    let messages = invocation.messages;
    greet(&arguments.arguments, messages);
    let resolved =
        resolve(&command.properties, command.phase, command.lenient).map_err(|mut problems| {
            for problem in &mut problems {
                problem.hint = problem.hint.as_deref().map(in_ycsb_words);
            }
            PlanError::Properties(problems)
        })?;
    let options = resolved.client.clone();
    check_granularity(&options)?;
    let task = task(resolved, &command, invocation.surroundings)?;
    let temporary;
    let folder = match command.out.as_deref() {
        Some(out) => out,
        // YCSB does not leave files in the current folder.
        None => {
            temporary = tempfile::Builder::new()
                .prefix("dyno-ycsb-")
                .tempdir()
                .or_fault(Kind::Environment, || "cannot create a temporary folder")?;
            temporary.path()
        }
    };
    let run_options = run_options(&command, &options, folder, invocation);
    let arguments = MetricsArguments { metrics: command.metrics, metrics_token: None };
    let endpoint = Endpoint::resolve(&arguments, invocation.surroundings)?;
    let metrics = Metrics::serve(endpoint, messages)?;
    let feed = metrics.as_ref().map(Metrics::feed);
    let mut status = Status::new(options.clone());
    messages.note("Starting test.");
    let mut observer = ((&mut status, messages), (feed, ReportFiles { messages }));
    let outcome = dyno_engine::run(&task, &run_options, &mut observer, invocation.cancel);
    let outcome = outcome.map_err(|error| in_properties(error, &command.properties));
    let finished =
        outcome?.ok_or_else(|| Error::new(Kind::Internal, "the run did not record anything"))?;
    let exit = end(
        finished,
        command.phase,
        &options,
        task.plan.client.tolerated_error_ratio,
        status.failure,
        messages,
    );
    if command.out.is_none() {
        messages
            .note("The record and the report of this run were deleted; `--out DIR` keeps them.");
    }
    exit
}

/// Names connection string options in an error by the properties that set them.
fn in_properties(mut error: Error, properties: &Properties) -> Error {
    if let Some(ConnectError::Unsupported { options }) = error.cause.downcast_mut() {
        for option in options {
            let given = property_of_option(&option.name)
                .and_then(|name| Some((name, properties.get(name)?)));
            if let Some((name, value)) = given {
                option.name = name.to_owned();
                option.value = value.to_owned();
            }
        }
    }
    error
}

/// Refuses a time series with steps shorter than the recording windows that it is made from.
fn check_granularity(options: &YcsbClientOptions) -> Result<(), Error> {
    let window_ms = dyno_load::WINDOW_NS / 1_000_000;
    let is_series = options.measurement_type == dyno_plan::ycsb::MeasurementType::TimeSeries;
    if is_series && options.timeseries_granularity_ms < window_ms {
        let message = format!(
            "`timeseries.granularity={}` is finer than the recording windows of {window_ms} ms",
            options.timeseries_granularity_ms
        );
        return Err(Error::new(Kind::BadInput, message).with_hint(format!(
            "set it to {window_ms} or more, or use another `measurementtype`"
        )));
    }
    Ok(())
}

/// Formats the command line without connection strings and possible secrets.
fn shown(arguments: &[String]) -> String {
    let words = arguments.iter().map(|argument| {
        let (name, value) = argument.split_once('=').unwrap_or(("", argument));
        let lower = name.to_ascii_lowercase();
        let is_secret =
            ["passw", "pwd", "secret", "credential"].iter().any(|part| lower.contains(part));
        let is_odd_address =
            lower.ends_with(".url") && value.contains('@') && !value.contains("://");
        if is_secret || is_odd_address { format!("{name}=***") } else { argument.clone() }
    });
    redact(&words.collect::<Vec<_>>().join(" "))
}

/// Prints the lines that scripts expect on standard error.
fn greet(arguments: &[String], messages: Messages) {
    messages.note(&format!("Command line: {}", shown(arguments)));
    messages.note(&format!("YCSB Client: mongodyno {VERSION}\n\nLoading workload..."));
}

fn task(
    resolved: YcsbPlan,
    command: &YcsbCommand,
    surroundings: &Surroundings,
) -> Result<Task, Error> {
    let mut warnings = command.notes.clone();
    let client = &resolved.client;
    let has_own_latencies =
        client.report_latency_for_each_error || !client.latency_tracked_errors.is_empty();
    let mut task = resolve_ycsb(resolved, command.phase, &surroundings.environment)?;
    warnings.append(&mut task.warnings);
    if has_own_latencies {
        warnings.push(
            "`reportlatencyforeacherror` and `latencytrackederrors` have no effect: latencies of failures are not recorded".into(),
        );
    }
    task.warnings = warnings;
    Ok(task)
}

fn run_options(
    command: &YcsbCommand,
    options: &YcsbClientOptions,
    folder: &Path,
    invocation: Invocation<'_>,
) -> RunOptions<'static> {
    let started = command.properties.get("dyno.server").is_some_and(|kind| kind != "uri");
    RunOptions {
        environment: invocation.environment().clone(),
        extent: match command.phase {
            Phase::Load => Extent::BlindLoad,
            // A server that was started for the run is empty.
            Phase::Run if started => Extent::Whole,
            Phase::Run => Extent::BlindMix,
        },
        retry: RetryRule {
            limit: options.insertion_retry_limit,
            interval_ns: options.insertion_retry_interval_s.saturating_mul(1_000_000_000),
        },
        abort_load: !options.keep_going_on_error,
        out: Some(folder.to_owned()),
        embedded_server: invocation.surroundings.environment.embedded_server.clone(),
        selfcheck: invocation.selfcheck(),
        ..RunOptions::default()
    }
}

/// Prints the final output and checks the failed operations. YCSB's exit status is always 0.
fn end(
    finished: Finished,
    phase: Phase,
    options: &YcsbClientOptions,
    tolerated_error_ratio: f64,
    log_failure: Option<Error>,
    messages: Messages,
) -> Result<Exit, Error> {
    let kind = match phase {
        Phase::Load => PhaseKind::Load,
        Phase::Run => PhaseKind::Measure,
    };
    if finished.results.run.document.phases.iter().any(|record| record.name == kind) {
        export(&finished.results.run, kind, options)?;
    }
    let totals = finished.totals;
    if let Some(fault) = finished.fault {
        // Failed inserts end a load: a failed check rather than an environment error.
        if phase == Phase::Load && totals.failed > 0 && fault.kind == Kind::Environment {
            let is_known = fault.cause.downcast_ref::<LoadError>().is_some_and(is_duplicate);
            messages.failure(&if is_known { fault.with_hint(LOADED_BEFORE) } else { fault });
            return Ok(Exit::CheckFailed);
        }
        return Err(fault);
    }
    if let Some(failure) = log_failure {
        return Err(failure);
    }
    if finished.interrupted {
        messages.warning("interrupted; the output covers the operations until then");
        return Ok(Exit::Interrupted);
    }
    if totals.failed_ratio() > tolerated_error_ratio {
        messages.warning(&format!(
            "{} of {} operations failed; unlike YCSB, the exit status is 1 and the throughput excludes failed operations",
            totals.failed,
            totals.failed + totals.succeeded
        ));
        return Ok(Exit::CheckFailed);
    }
    Ok(Exit::Done)
}

/// Remedy for a load of documents that the collection already has.
const LOADED_BEFORE: &str = "drop the collection, measure its documents with `dyno ycsb run`, or load others with a larger `-p recordcount` and `-p insertstart`";

fn is_duplicate(error: &LoadError) -> bool {
    match error {
        LoadError::Pair { source, .. } => is_duplicate(source),
        LoadError::Operation { error, .. } => *error == OperationError::Server(DUPLICATE_KEY),
        _ => false,
    }
}

/// Prints YCSB's output of a phase, or writes it to `exportfile`.
fn export(run: &Run, phase: PhaseKind, client: &YcsbClientOptions) -> Result<(), Error> {
    let ycsb = YcsbOptions { phase: Some(phase), client: client.clone() };
    let options = RenderOptions { ycsb, ..RenderOptions::default() };
    let text = dyno_report::render(run, None, Format::Ycsb, &options).map_err(refused)?;
    match &client.export_file {
        Some(path) => Ok(write_file(path, &text)?),
        None => print_data(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_by_their_properties() {
        let (target, _) = dyno_plan::uri::parse("mongodb://h/?readPreference=secondary").unwrap();
        let options = target.unsupported_by_wire;
        let mut properties = Properties::default();
        properties.set("mongodb.readPreference", "secondary");
        let failure = Error::from(ConnectError::Unsupported { options });
        let failure = in_properties(failure.context("cannot use the string"), &properties);
        let text = failure.reason();
        assert!(text.contains("`mongodb.readPreference=secondary`"), "{text}");
    }
}
