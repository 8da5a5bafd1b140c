//! What is looked at before anything is made: by a run, and by a dry run, which refuses what the run would refuse as far as
//! that is known without a server that runs.

use crate::cancel::Cancel;
use crate::context::Context;
use crate::deployment;
use crate::deployment::locality;
use crate::deployment::placement::HostPlacement;
use crate::deployment::server::ServerPaths;
use crate::deployment::storage;
use crate::environment::Environment;
use crate::error::{Error, Kind};
use crate::observer::{Observer, Shared};
use crate::run::directory::RunDirectory;
use crate::run::options::RunOptions;
use crate::run::steering::Steering;
use crate::run::{host_settings, observation, trace};
use dyno_observe::environment;
use dyno_plan::Plan;
use dyno_plan::model::PageCache;
use dyno_plan::task::Task;
use std::path::Path;

/// Where a dry run would put what a server needs. It is never made.
const NOWHERE: &str = "runs/dry-run";

/// What a run needs of this machine besides its servers.
pub fn machine(task: &Task, context: Context<'_>) -> Result<(), Error> {
    let plan = &task.plan;
    secrets(plan)?;
    if context.source.is_some() && plan.server.storage.is_some() {
        let text = "`server.storage` is prepared on this machine, and the servers of a fleet are on others";
        return Err(Error::new(Kind::BadInput, text).with_hint(
            "prepare a file system on each host, and name its folder: `server.data_dir`",
        ));
    }
    trace::check(&plan.traces, context.environment.path.as_deref())?;
    observation::check(plan)?;
    trace::io::check(plan, task.remote.is_some())?;
    if context.source.is_none() {
        Steering::check(plan)?;
        host_settings::check(plan)?;
    }
    page_cache(task, context)
}

/// Refuses exporters and a Grafana whose credentials or certificates cannot be read.
pub fn watching(plan: &Plan) -> Result<(), Error> {
    observation::check(plan)
}

/// Refuses a plan that was recorded and lacks a secret which it needs.
pub fn secrets(plan: &Plan) -> Result<(), Error> {
    if !plan.lacks_secrets() {
        return Ok(());
    }
    let text = "a secret of a watching command or of an exporter was not recorded: the plan has `***` in its place";
    Err(Error::new(Kind::BadInput, text).with_hint("write it into the plan again"))
}

/// What the start of the servers would refuse, or the way to one that runs. Those of a fleet are on other machines, and what is known
/// of these its source has to say.
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

/// The paths of servers that are looked at and not started.
pub fn paths<'a>(embedded: Option<&'a Path>, environment: &'a Environment) -> ServerPaths<'a> {
    ServerPaths {
        environment,
        embedded,
        folder: Path::new(NOWHERE),
    }
}

/// Refuses what a run would refuse, as far as that is known before it begins.
///
/// # Errors
/// What the machine, the folders or the servers lack.
pub fn check_run(
    task: &Task,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(), Error> {
    let observer = Shared::new(observer);
    let context = Context {
        environment: &options.environment,
        cancel,
        observer: &observer,
        source: options.source,
    };
    of_run(task, options, context)
}

fn of_run(task: &Task, options: &RunOptions<'_>, context: Context<'_>) -> Result<(), Error> {
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

/// All that is known of the runs of an experiment before the first one. Of runs that differ in their load alone one is
/// looked at. What hosts of a fleet say of all runs together is asked elsewhere.
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

/// What of a plan decides what is found here.
fn needs(plan: &Plan) -> impl PartialEq + '_ {
    (
        (&plan.server, plan.client.backend, plan.data.page_cache),
        (&plan.traces, &plan.trace, &plan.observe),
        (&plan.data.database, &plan.data.collection),
    )
}

fn page_cache(task: &Task, context: Context<'_>) -> Result<(), Error> {
    // The hosts of a fleet know theirs.
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

/// The server is on a machine whose page cache is none of ours.
pub fn page_cache_of_others() -> Error {
    let text = "`data.page_cache = \"drop\"` applies to this machine, and the server is on another";
    Error::new(Kind::BadInput, text).with_hint("drop it there, and set `data.page_cache` to `keep`")
}

/// The page cache cannot be dropped.
pub fn page_cache_stays(error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context("cannot drop the page cache of this machine, as `data.page_cache` demands")
        .with_hint("run it as root, or set `data.page_cache` to `keep`")
}
