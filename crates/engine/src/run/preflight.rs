//! Preflight checks, shared by `run` and `--dry-run`. They need no running server.

use crate::cancel::Cancel;
use crate::context::Context;
use crate::deployment;
use crate::deployment::locality;
use crate::deployment::placement::HostPlacement;
use crate::deployment::server::ServerPaths;
use crate::deployment::storage;
use crate::environment::Environment;
use crate::error::{Error, Kind, refuse};
use crate::observer::{Observer, Shared};
use crate::run::directory::RunDirectory;
use crate::run::options::RunOptions;
use crate::run::{host_settings, observation, trace};
use dyno_observe::environment;
use dyno_plan::Plan;
use dyno_plan::model::PageCache;
use dyno_plan::task::Task;
use std::path::Path;

/// Hypothetical run directory of a dry run, which is never created.
const NOWHERE: &str = "runs/dry-run";

/// Checks the machine's part of a run, without its servers.
pub fn machine(task: &Task, context: Context<'_>) -> Result<(), Error> {
    let plan = &task.plan;
    secrets(plan)?;
    if context.source.is_some() && plan.server.storage.is_some() {
        let text = "`server.storage` is prepared on this machine, but the servers of a fleet are on others";
        return refuse(
            text,
            "prepare a file system on each host, and set its folder in `server.data_dir`",
        );
    }
    trace::check(&plan.traces, context.environment.path.as_deref())?;
    if task.remote.is_some() {
        trace::check_servers(&plan.traces)?;
    }
    observation::check(plan)?;
    trace::io::check(plan, task.remote.is_some())?;
    if context.source.is_none() {
        host_settings::check(plan)?;
    }
    page_cache(task, context)
}

/// Refuses exporters and a Grafana with unreadable credentials or certificates.
pub fn watching(plan: &Plan) -> Result<(), Error> {
    observation::check(plan)
}

/// Refuses a recorded plan that lacks a required secret.
pub fn secrets(plan: &Plan) -> Result<(), Error> {
    if !plan.lacks_secrets() {
        return Ok(());
    }
    let text = "a secret of a watching command or of an exporter was not recorded: the plan has `***` instead";
    refuse(text, "add it to the plan again")
}

/// Refuses servers that could not be started or reached. The source checks the servers of a fleet,
/// which are on other machines.
pub fn servers(task: &Task, embedded: Option<&Path>, context: Context<'_>) -> Result<(), Error> {
    if let Some(source) = context.source {
        let plans = [(&task.plan, task.remote.as_ref())];
        source.check_plans(&plans, embedded, context)?;
        return source.check_shares(&plans, context);
    }
    let paths = paths(embedded, context.environment);
    match &task.remote {
        Some(remote) => deployment::check_remote(&task.plan, remote, &paths),
        None => {
            storage::check(&task.plan, Path::new("."), context)?;
            let placement = HostPlacement::from_plan(&task.plan)?;
            deployment::check(&task.plan, &paths, placement.as_ref())
        }
    }
}

/// Server paths for checks without a start.
pub fn paths<'a>(embedded: Option<&'a Path>, environment: &'a Environment) -> ServerPaths<'a> {
    ServerPaths { environment, embedded, folder: Path::new(NOWHERE) }
}

/// Refuses a run if the machine, the folders or the servers cannot perform it.
///
/// # Errors
/// The machine, the folders or the servers lack something.
pub fn check_run(
    task: &Task,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(), Error> {
    let observer = Shared::new(observer);
    let context = options.context(&observer, cancel);
    machine(task, context)?;
    if let Some(out) = &options.out {
        RunDirectory::check(out)?;
    }
    if let Some(guard) = &options.guard {
        let out = options.out.as_deref().unwrap_or(Path::new(NOWHERE));
        let fault = guard.watch(vec![out.to_owned()]).fault();
        fault.map_or(Ok(()), Err)?;
    }
    servers(task, options.embedded_server.as_deref(), context)
}

/// Checks the runs of an experiment before the first one. Runs that differ only in their load are
/// checked once. The checks by the hosts of a fleet are elsewhere.
pub fn of_experiment(
    tasks: &[Task],
    embedded: Option<&Path>,
    context: Context<'_>,
) -> Result<(), Error> {
    for (number, task) in tasks.iter().enumerate() {
        let is_alike = |other: &Task| needs(&other.plan) == needs(&task.plan);
        if !tasks[..number].iter().any(is_alike) {
            machine(task, context)?;
            if context.source.is_none() {
                servers(task, embedded, context)?;
            }
        }
    }
    Ok(())
}

/// The parts of a plan that the checks depend on.
fn needs(plan: &Plan) -> impl PartialEq + '_ {
    (
        (&plan.server, plan.client.backend, plan.data.page_cache),
        (&plan.traces, &plan.trace, &plan.observe),
        (&plan.data.database, &plan.data.collection),
    )
}

fn page_cache(task: &Task, context: Context<'_>) -> Result<(), Error> {
    // The hosts of a fleet check their own.
    if task.plan.data.page_cache == PageCache::Keep || context.source.is_some() {
        return Ok(());
    }
    let hostname = context.environment.hostname.as_deref();
    let remote = task.remote.as_ref();
    if remote.is_some_and(|remote| !locality::is_local(remote, hostname)) {
        return Err(page_cache_of_others());
    }
    environment::may_drop_page_cache().map_err(page_cache_stays)
}

/// Error: the server's page cache is on another machine.
pub fn page_cache_of_others() -> Error {
    let text = "`data.page_cache = \"drop\"` applies to this machine, but the server is on another";
    Error::new(Kind::BadInput, text).with_hint("drop it there, and set `data.page_cache` to `keep`")
}

/// Error: the page cache cannot be dropped.
pub fn page_cache_stays(error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context("cannot drop the page cache of this machine (`data.page_cache`)")
        .with_hint("run it as root, or set `data.page_cache` to `keep`")
}
