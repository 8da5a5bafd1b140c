//! The index-build experiment: loads documents in the order of a layout, builds an index on them under trace, and again after a
//! remedy for their order on disk.

mod build;
mod configuration;
mod estimate;
mod existing;
mod figures;
pub mod layout;
mod progress;
mod servers;

use crate::configuration::{Configuration, SERVERS};
use crate::estimate::Estimate;
use crate::layout::LayoutError;
use crate::servers::{SERVER_DATA, Servers};
use dyno_engine::VERSION;
use dyno_engine::context::Context;
use dyno_engine::deployment::storage;
use dyno_engine::experiment::folder::ExperimentFolder;
use dyno_engine::observer::Shared;
use dyno_engine::run::preflight;
use dyno_engine::standalone::{self, FinishedStandalone};
use dyno_engine::{Cancel, Observer, RunOptions};
use dyno_engine::{Error, Kind, refuse};
use dyno_plan::Plan;
use dyno_plan::index_build::{IndexBuildPlan, Layout, Start};
use dyno_plan::model::ServerKind;
use dyno_plan::task::Task;
use dyno_plan::topology::Topology;
use dyno_record::Document;
use dyno_record::index_build::{IndexBuildDocument, SCHEMA_VERSION};
use dyno_record::model::RunStatus;
use dyno_record::quantity::Quantity;
use dyno_trace::LiveKernel;
use jiff::Timestamp;
use std::path::Path;

/// Refuses what [`run`] would refuse, if that is known before the server runs.
///
/// # Errors
/// The machine, the server or the folders are not suitable.
pub fn check(
    task: &Task,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(), Error> {
    let observer = Shared::new(observer);
    check_task(task, options, options.context(&observer, cancel))
}

fn check_task(task: &Task, options: &RunOptions<'_>, context: Context<'_>) -> Result<(), Error> {
    preflight::watching(&task.plan)?;
    let embedded = options.embedded_server.as_deref();
    let plan = task.plan.index_build.clone().unwrap_or_default();
    if let Some(refusal) = dyno_trace::possibilities(&LiveKernel::new()).refusal {
        return Err(refusal.into());
    }
    if plan.start == Start::Cold {
        dyno_observe::environment::may_drop_page_cache().map_err(build::page_cache_stays)?;
    }
    for (number, topology) in topologies(task)?.iter().enumerate() {
        check_servers(task, topology, number == 0, embedded, context)?;
    }
    check_folders(&task.plan, options.out.as_deref())?;
    check_room(&task.plan, &plan, options.out.as_deref(), context)
}

/// Refuses data that is kept inside the experiment's folder, which is cleaned up at the end.
fn check_folders(plan: &Plan, out: Option<&Path>) -> Result<(), Error> {
    let Some(out) = out else { return Ok(()) };
    ExperimentFolder::check(out)?;
    let Some(data) = &plan.server.data_dir else {
        return Ok(());
    };
    let out = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    if !Path::new(data).starts_with(&out) {
        return Ok(());
    }
    let text = format!("the data folder `{data}` is inside the folder of the experiment");
    refuse(text, "choose another `--out`")
}

/// Prints the least space and time, refuses documents that do not fit, and warns of a remedy whose copies may not fit.
fn check_room(
    plan: &Plan,
    build: &IndexBuildPlan,
    out: Option<&Path>,
    context: Context<'_>,
) -> Result<(), Error> {
    let Some(estimate) = Estimate::of(plan, build) else {
        return Ok(());
    };
    context.note(estimate.words());
    let server = &plan.server;
    // Prepared storage was checked, and a running server has its own.
    if server.storage.is_some() || !server.data_dirs.is_empty() || server.kind == ServerKind::Uri {
        return Ok(());
    }
    let data = server.data_dir.as_deref().map(Path::new);
    let folder = data.or(out).unwrap_or(Path::new("."));
    let free = dyno_observe::environment::free_bytes(folder);
    let Some(free) = free.filter(|free| estimate.bytes_with_remedy > *free) else {
        return Ok(());
    };
    let (what, bytes) = if estimate.bytes > free {
        ("the uncompressed documents need", estimate.bytes)
    } else {
        let what = "the uncompressed documents with all copies of the remedy need up to";
        (what, estimate.bytes_with_remedy)
    };
    let text = format!(
        "{what} {}, but `{}` has {} free",
        Quantity::bytes(bytes),
        folder.display(),
        Quantity::bytes(free)
    );
    // A compressed collection may fit.
    if estimate.bytes <= free || server.block_compressor.as_deref() != Some("none") {
        context.warning(text);
        return Ok(());
    }
    refuse(text, "load fewer with `--records`, or choose another `--out`")
}

/// Runs the experiment: loads documents, builds the index under trace, and again after a remedy.
///
/// # Errors
/// No index was built, and nothing is left behind.
pub fn run(
    task: &Task,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<FinishedStandalone, Error> {
    let observer = Shared::new(observer);
    let context = options.context(&observer, cancel);
    // Before documents are loaded for minutes.
    check_task(task, options, context)?;
    let name = format!("index-build-{}", task.plan.name);
    let folder = ExperimentFolder::create(options.out.as_deref(), &name, Timestamp::now())?;
    folder.save_plan("plan.toml", task)?;
    let path = folder.path().to_owned();
    let fault = perform(task, context, options.embedded_server.as_deref(), folder)?;
    Ok(FinishedStandalone { folder: path, fault })
}

/// The topologies on which the index is built.
fn topologies(task: &Task) -> Result<Vec<Topology>, Error> {
    let build = task.plan.index_build.clone().unwrap_or_default();
    build.topologies(&task.plan.server).map_err(|error| Error::from_cause(Kind::BadInput, error))
}

/// Refuses what the start of a topology's servers would refuse.
fn check_servers(
    task: &Task,
    topology: &Topology,
    is_first: bool,
    embedded: Option<&Path>,
    context: Context<'_>,
) -> Result<(), Error> {
    let layout = task.plan.index_build.as_ref().map(|build| build.layout);
    let servers = Servers::new(task, topology, context, embedded, SERVER_DATA.into());
    servers.check()?;
    if layout == Some(Layout::Existing) && servers.is_own() && !servers.have_data() {
        let text = "the layout `existing` needs documents, but a new server has none";
        return refuse(
            text,
            "name the server with `--uri`, or its data with `--data-dir`, and `--collection`; or use a layout that loads documents",
        );
    }
    // All servers have the same kind of storage, so it is checked once.
    if is_first && servers.is_own() {
        let mut alone = task.clone();
        alone.plan.server.topology = None;
        storage::check(&alone.plan, Path::new("."), context)?;
    }
    preflight::servers(servers.task(), embedded, context)
}

/// Performs the plan on each topology in this folder, which is discarded if no index was built. Otherwise returns the error that
/// ended it early, if any.
fn perform(
    task: &Task,
    context: Context<'_>,
    embedded: Option<&Path>,
    folder: ExperimentFolder,
) -> Result<Option<Error>, Error> {
    let plan = task.plan.index_build.clone().unwrap_or_default();
    let path = folder.path().to_owned();
    let mut document = empty(&task.plan);
    let mut failure = None;
    for named in configuration::named(&topologies(task)?) {
        let mut configuration = Configuration::new(task, &plan, named, context, embedded, &path);
        let result = configuration.run(&mut document);
        failure = result.and(configuration.end()).err();
        if failure.is_some() {
            break;
        }
    }
    if document.builds.is_empty()
        && let Some(failure) = failure
    {
        discard(&folder, &topologies(task)?);
        return Err(failure);
    }
    document.ended_at = Some(Timestamp::now().to_string());
    (document.status, document.status_reason) = standalone::status(failure.as_ref());
    document.write(&path)?;
    folder.finish();
    Ok(failure)
}

/// Removes the remains of a failed first build.
fn discard(folder: &ExperimentFolder, topologies: &[Topology]) {
    let first = topologies.first().map(configuration::file_name);
    let first = first.unwrap_or_default();
    for name in ["before", SERVERS, &first, &format!("{first}-before")] {
        let _ = std::fs::remove_dir_all(folder.path().join(name));
    }
    folder.discard();
}

/// The document of an experiment that has just begun.
fn empty(plan: &Plan) -> IndexBuildDocument {
    IndexBuildDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.to_owned(),
        started_at: Timestamp::now().to_string(),
        status: RunStatus::Running,
        name: plan.name.clone(),
        plan: dyno_plan::file::recorded(plan),
        ..IndexBuildDocument::default()
    }
}

impl From<LayoutError> for Error {
    fn from(error: LayoutError) -> Self {
        let hint = error.hint();
        let kind = match &error {
            LayoutError::Interrupted => Kind::Interrupted,
            LayoutError::NotIdentical(_) => Kind::CheckFailed,
            LayoutError::Missing { .. }
            | LayoutError::NotOrdinary { .. }
            | LayoutError::NotEmpty { .. }
            | LayoutError::Routed { .. }
            | LayoutError::CopyExists { .. } => Kind::BadInput,
            _ => Kind::Environment,
        };
        let failure = match error {
            LayoutError::Connect(source) => {
                Error::from(*source).context("cannot connect to the server")
            }
            other => Error::from_cause(kind, other),
        };
        failure.with_optional_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_collection_are_bad_input() {
        let missing = LayoutError::Missing { namespace: "a.b".into() };
        let failure = Error::from(missing);
        assert_eq!(failure.kind, Kind::BadInput);
        assert!(failure.hint.is_some());
        assert_eq!(Error::from(LayoutError::Interrupted).kind, Kind::Interrupted);
    }
}
