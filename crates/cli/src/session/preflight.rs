//! What is looked at before anything is made: by a run, and by a dry run, which refuses what the run would refuse as far as
//! that is known without a server that runs.

use crate::exit::{Exit, Failure};
use crate::session::directory::RunDirectory;
use crate::session::execute::{Conduct, Hands};
use crate::session::locality;
use crate::session::place::Place;
use crate::session::server::ServerPlaces;
use crate::session::steering::Steering;
use crate::session::{lab, observation, trace};
use dyno_observe::environment;
use dyno_plan::Plan;
use dyno_plan::model::PageCache;
use dyno_plan::task::Task;
use std::path::Path;

/// Where a dry run would put what a server needs. It is never made.
const NOWHERE: &str = "runs/dry-run";

/// What a run needs of this machine besides its servers.
pub(crate) fn machine(task: &Task, hands: Hands<'_>) -> Result<(), Failure> {
    let plan = &task.plan;
    trace::check(&plan.traces, hands.surroundings.path.as_deref())?;
    observation::check(plan)?;
    trace::io::check(plan, task.remote.is_some())?;
    Steering::check(plan)?;
    page_cache(task, hands)
}

/// What the start of the servers would refuse, or the way to one that runs. Those of a fleet are looked at on their hosts.
pub(crate) fn servers(
    task: &Task,
    embedded: Option<&Path>,
    hands: Hands<'_>,
) -> Result<(), Failure> {
    if hands.fleet.is_some() {
        return Ok(());
    }
    let places = places(embedded, hands);
    match &task.remote {
        Some(remote) => lab::check_remote(&task.plan, remote, &places),
        None => lab::check(&task.plan, &places, Place::of_plan(&task.plan)?.as_ref()),
    }
}

/// The places of servers that are looked at and not started.
pub(crate) fn places<'a>(embedded: Option<&'a Path>, hands: Hands<'a>) -> ServerPlaces<'a> {
    ServerPlaces {
        surroundings: hands.surroundings,
        embedded,
        folder: Path::new(NOWHERE),
    }
}

/// All that is known of a run before it begins.
pub(crate) fn of_run(task: &Task, conduct: &Conduct<'_>, hands: Hands<'_>) -> Result<(), Failure> {
    machine(task, hands)?;
    if let Some(out) = conduct.out {
        RunDirectory::check(out)?;
    }
    if let Some(guard) = &conduct.guard {
        let out = conduct.out.unwrap_or(Path::new(NOWHERE));
        let fault = guard.watch(vec![out.to_owned()]).fault();
        fault.map_or(Ok(()), Err)?;
    }
    servers(task, conduct.embedded_server, hands)
}

/// All that is known of the runs of an experiment before the first one. Of runs that differ in their load alone one is
/// looked at.
pub(crate) fn of_experiment(
    tasks: &[Task],
    embedded: Option<&Path>,
    hands: Hands<'_>,
) -> Result<(), Failure> {
    for (number, task) in tasks.iter().enumerate() {
        let is_alike = |other: &Task| needs(&other.plan) == needs(&task.plan);
        if !tasks[..number].iter().any(is_alike) {
            machine(task, hands)?;
            servers(task, embedded, hands)?;
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

fn page_cache(task: &Task, hands: Hands<'_>) -> Result<(), Failure> {
    // The hosts of a fleet know theirs.
    if task.plan.data.page_cache == PageCache::Keep || hands.fleet.is_some() {
        return Ok(());
    }
    let hostname = hands.surroundings.hostname.as_deref();
    let remote = task.remote.as_ref();
    if remote.is_some_and(|remote| !locality::is_local(remote, hostname)) {
        return Err(page_cache_of_others());
    }
    environment::may_drop_page_cache().map_err(page_cache_stays)
}

/// The server is on a machine whose page cache is none of ours.
pub(crate) fn page_cache_of_others() -> Failure {
    let text = "`data.page_cache = \"drop\"` is about this machine, and the server is on another";
    Failure::new(Exit::BadInput, text)
        .with_hint("drop it there, and set `data.page_cache` to `keep`")
}

/// The page cache cannot be dropped.
pub(crate) fn page_cache_stays(error: std::io::Error) -> Failure {
    Failure::of(Exit::Environment, error)
        .context("cannot drop the page cache of this machine, as `data.page_cache` wants")
        .with_hint("run it as root, or set `data.page_cache` to `keep`")
}
