//! Messages through a database: starts or reaches the server, then measures each combination of drivers, bound and pool, one after
//! the other.

use crate::driver::{Found, WIRE, find};
use crate::run::{Bench, Machines, run};
use crate::sums::what_is_wrong;
use crate::{TailError, cells};
use dyno_engine::context::Context;
use dyno_engine::deployment::server::{ServerPaths, data_folder};
use dyno_engine::deployment::{DeploymentUnderTest, describe, topology_of};
use dyno_engine::experiment::folder::ExperimentFolder;
use dyno_engine::observer::Shared;
use dyno_engine::run::consumption::WorkMeter;
use dyno_engine::run::preflight;
use dyno_engine::standalone::{self, FinishedStandalone};
use dyno_engine::{Cancel, Error, Kind, Observer, OrFault, RunOptions, VERSION};
use dyno_plan::task::Task;
use dyno_plan::uri::has_option;
use dyno_record::Document;
use dyno_record::model::RunStatus;
use dyno_record::quantity::Quantity;
use dyno_record::tail::{
    Cell, CellStatus, EMBEDDED_PRODUCT, HostMachine, Measured, SCHEMA_VERSION, SkippedDriver,
    TailDocument,
};
use dyno_results::messages::CELLS;
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Data folder of the server, in the experiment's folder.
const SERVER_DATA: &str = "server-data";

/// Advice without a folder of drivers.
const DRIVERS_HINT: &str = "only `wire` is inside the program; for the others run `make drivers` in the source folder, and name its `drivers` with `--drivers DIR` or `DYNO_DRIVERS`";

/// Name of the clock if processes run on several hosts.
const CLOCKS_OF_HOSTS: &str = "CLOCK_REALTIME of each host, corrected to this host's clock";

/// Options of an experiment, in addition to its plan.
#[derive(Clone, Default)]
pub struct TailOptions {
    /// Options shared with other experiments.
    pub common: RunOptions<'static>,
    /// Folder of the drivers that are not in this program; default: in the current folder or above the program.
    pub drivers: Option<PathBuf>,
    /// Connection string of a running server, with its password.
    pub uri: Option<String>,
}

/// Refuses what [`perform`] would refuse, if that is known before the server runs.
///
/// # Errors
/// Drivers are missing, or server or folder are not suitable.
pub fn check(
    task: &Task,
    options: &TailOptions,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<(), Error> {
    let observer = Shared::new(observer);
    let context = options.common.context(&observer, cancel);
    let out = options.common.out.as_deref();
    out.map_or(Ok(()), ExperimentFolder::check)?;
    preflight::watching(&task.plan)?;
    chosen(task, options, context)?;
    preflight::servers(task, options.common.embedded_server.as_deref(), context)
}

/// Measures every combination of the plan, one after the other.
///
/// # Errors
/// Nothing was measured, and nothing is left behind.
pub fn perform(
    task: &Task,
    options: &TailOptions,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<FinishedStandalone, Error> {
    let observer = Shared::new(observer);
    let context = options.common.context(&observer, cancel);
    let name = match task.plan.name.as_str() {
        name if name.starts_with("tail") => name.to_owned(),
        name => format!("tail-{name}"),
    };
    preflight::watching(&task.plan)?;
    let folder = ExperimentFolder::create(options.common.out.as_deref(), &name, Timestamp::now())?;
    folder.save_plan("plan.toml", task)?;
    let path = folder.path().to_owned();
    let fault = measure_in(task, options, context, folder)?;
    Ok(FinishedStandalone { folder: path, fault })
}

/// Measures in a folder, which is discarded if nothing was measured.
fn measure_in(
    task: &Task,
    options: &TailOptions,
    context: Context<'_>,
    folder: ExperimentFolder,
) -> Result<Option<Error>, Error> {
    let path = folder.path().to_owned();
    let mut document = empty(task);
    let result = measure(task, options, context, &path, &mut document);
    let _ = std::fs::remove_dir_all(path.join(SERVER_DATA));
    let measured = document.cells.iter().any(|cell| cell.measured.is_some());
    let fault = match result {
        Err(failure) if !measured => {
            let _ = std::fs::remove_dir_all(path.join(CELLS));
            let _ = std::fs::remove_file(path.join(TailDocument::FILE));
            folder.discard();
            return Err(failure);
        }
        result => result.err(),
    };
    document.ended_at = Some(Timestamp::now().to_string());
    (document.status, document.status_reason) = standalone::status(fault.as_ref());
    document.write(&path)?;
    folder.finish();
    Ok(fault)
}

/// Drivers and combinations to measure.
struct Chosen {
    host_drivers: PathBuf,
    found: Found,
    wanted: Vec<Cell>,
    skipped: Vec<SkippedDriver>,
}

/// Asks the drivers for their capabilities, and reports skipped ones.
fn chosen(task: &Task, options: &TailOptions, context: Context<'_>) -> Result<Chosen, Error> {
    let plan = task.plan.tail.clone().unwrap_or_default();
    context.note("asking the drivers for their versions");
    let named = |name: &str| {
        let mut names = plan.producers.iter().chain(&plan.consumers);
        plan.producers.is_empty() || names.any(|wanted| wanted == name)
    };
    let drivers = drivers_folder(options);
    let drivers = drivers.map(|folder| std::path::absolute(&folder).unwrap_or(folder));
    let own = options.common.environment.executable.as_deref();
    let found = find(drivers.as_deref(), own, named, context.cancel)?;
    let (wanted, skipped) =
        cells::cells(&task.plan, &plan, &found).map_err(|error| match &drivers {
            Some(_) => error,
            None => error.with_hint(DRIVERS_HINT),
        })?;
    if drivers.is_none() && plan.producers.is_empty() {
        context.note(format!("no folder `drivers` found: measuring `{WIRE}` only"));
    }
    for skipped in &skipped {
        let text = format!("skipping the driver `{}`: {}", skipped.name, skipped.reason);
        context.warning(&text);
    }
    if wanted.is_empty() {
        return Err(Error::new(Kind::Environment, "none of the chosen drivers can run")
            .with_hint("run `make drivers`, which builds them and reports missing toolchains"));
    }
    let is_elsewhere = wanted.iter().any(|cell| !cell.settings.is_here());
    let host_drivers = plan.host_drivers.map(PathBuf::from).or(drivers);
    if is_elsewhere && host_drivers.is_none() {
        return Err(Error::new(Kind::BadInput, "the folder of drivers on the other host is unknown")
            .with_hint("run `make drivers` in the source folder there, and name its `drivers` with `--host-drivers DIR`"));
    }
    Ok(Chosen { host_drivers: host_drivers.unwrap_or_default(), found, wanted, skipped })
}

fn measure(
    task: &Task,
    options: &TailOptions,
    context: Context<'_>,
    path: &Path,
    document: &mut TailDocument,
) -> Result<(), Error> {
    let Chosen { host_drivers, found, wanted, skipped } = chosen(task, options, context)?;
    document.skipped = skipped;
    if wanted.iter().any(|cell| !cell.settings.is_here()) {
        document.clock = CLOCKS_OF_HOSTS.to_owned();
    }
    context.note("starting the server");
    let experiment =
        Experiment { task, options, context, path, found: &found, host_drivers: &host_drivers };
    let (paths, remote) = (experiment.paths(), task.remote.as_ref());
    let mut deployment = DeploymentUnderTest::open(&task.plan, remote, &paths, None, context)?;
    let result = experiment.on_servers(wanted, document, &mut deployment);
    let result = result.map_err(|failure| deployment.explain(failure));
    result.and(deployment.stop_and_tell(context))
}

/// Common parts of all cells.
struct Experiment<'a> {
    task: &'a Task,
    options: &'a TailOptions,
    context: Context<'a>,
    path: &'a Path,
    found: &'a Found,
    host_drivers: &'a Path,
}

impl Experiment<'_> {
    fn paths(&self) -> ServerPaths<'_> {
        ServerPaths {
            environment: self.context.environment,
            embedded: self.options.common.embedded_server.as_deref(),
            folder: self.path,
        }
    }

    /// Measures the cells on running servers.
    fn on_servers(
        &self,
        wanted: Vec<Cell>,
        document: &mut TailDocument,
        deployment: &mut DeploymentUnderTest,
    ) -> Result<(), Error> {
        let context = self.context;
        let plan = &self.task.plan;
        let started = deployment.uri(plan);
        let is_started = started.is_some();
        let given = self.options.uri.clone().or(plan.server.uri.clone());
        let uri = started.or(given.map(|uri| uri.trim().to_owned()));
        let uri = uri.ok_or_else(|| Error::new(Kind::Internal, "a server without an address"))?;
        let server = deployment.servers.first();
        let server =
            server.ok_or_else(|| Error::new(Kind::Internal, "a deployment without servers"))?;
        let mut control = server.control()?;
        document.server = describe(&mut control, plan, Some(deployment), is_started)?;
        let data = data_folder(plan, &self.paths());
        let instances = topology_of(plan).map_or(1, |topology| topology.data_servers());
        let mut environment = server.environment(&mut control, plan, data, instances.into())?;
        if let Some(storage) = deployment.storage() {
            storage.describe(&mut environment);
        }
        document.environment = Some(environment);
        // Java's drivers refuse the heartbeats that the embedded server streams: see `drivers/README.md`.
        document.polls_heartbeats = document.server.product.starts_with(EMBEDDED_PRODUCT)
            && !has_option(&uri, "serverMonitoringMode");
        let processes = deployment.processes();
        let settings = std::iter::once(&document.server.settings);
        let folders = deployment.local_folders(plan, &self.paths(), settings);
        let meter = WorkMeter::of_deployment(deployment, &folders, context.cancel);
        let interrupted = || context.cancel.requested();
        let warn = |text: &str| context.warning(text);
        let machines = Machines::new(&warn);
        let bench = Bench {
            uri: &uri,
            machines: Some(&machines),
            found: self.found,
            server: &processes,
            meter: Some(&meter),
            host_drivers: self.host_drivers,
            polls_heartbeats: document.polls_heartbeats,
            interrupted: &interrupted,
        };
        let all = wanted.len();
        let mut failed = Vec::new();
        let begin = Instant::now();
        for (place, mut cell) in wanted.into_iter().enumerate() {
            context.cancel.check()?;
            // As long as the cells before it.
            let mean_s = begin.elapsed().as_secs_f64() / place.max(1) as f64;
            let left = Quantity::seconds(mean_s * (all - place) as f64).brief();
            let left = if place == 0 { String::new() } else { format!(", {left} left") };
            context.note(format!("cell {} of {all}: {}{left}", place + 1, cell.name));
            let failure = self.measure_cell(&bench, &mut cell)?;
            let wrong = cell.reason.as_ref().map(|reason| format!("{}: {reason}", cell.name));
            document.cells.push(cell);
            document.hosts = hosts_of(&machines);
            if let Some(failure) = failure
                && (deployment.ended().is_some() || all == 1)
            {
                return Err(failure);
            }
            if let Some(text) = wrong {
                context.warning(&text);
                failed.push(text);
            }
            // A killed process leaves its results so far.
            document.write(self.path)?;
            context.cancel.check()?;
        }
        match failed.as_slice() {
            [] => Ok(()),
            [only] => Err(Error::new(Kind::CheckFailed, only.clone())),
            several => {
                let text = format!("{} of {all} failed: {}", several.len(), several.join("; "));
                Err(Error::new(Kind::CheckFailed, text))
            }
        }
    }

    /// Measures one cell; returns why it could not be measured.
    fn measure_cell(&self, bench: &Bench<'_>, cell: &mut Cell) -> Result<Option<Error>, Error> {
        let folder = self.path.join(CELLS).join(&cell.name);
        std::fs::create_dir_all(&folder)
            .or_fault(Kind::Environment, || format!("cannot use `{}`", folder.display()))?;
        match run(bench, &cell.settings, &folder) {
            Ok(measured) => {
                cell.reason = what_is_wrong(&measured, &cell.settings);
                cell.status = match (&cell.reason, measured.interrupted) {
                    (_, true) => CellStatus::Partial,
                    (None, _) => CellStatus::Complete,
                    (Some(_), _) => CellStatus::Failed,
                };
                self.context.note(in_short(&measured));
                cell.measured = Some(measured);
                Ok(None)
            }
            Err(TailError::Interrupted) => {
                let _ = std::fs::remove_dir_all(&folder);
                Err(Error::new(Kind::Interrupted, "interrupted"))
            }
            Err(error) => {
                let failure = Error::from(error);
                cell.status = CellStatus::Failed;
                cell.reason = Some(failure.reason());
                Ok(Some(failure))
            }
        }
    }
}

/// The examined machines, for the record.
fn hosts_of(machines: &Machines<'_>) -> Vec<HostMachine> {
    let known = machines.known.borrow();
    let looked_at = known.iter().filter_map(|(host, environment)| {
        Some(HostMachine { host: host.clone(), environment: environment.clone()? })
    });
    looked_at.collect()
}

/// One-line summary of a cell.
fn in_short(measured: &Measured) -> String {
    let rate: f64 =
        measured.producers.iter().map(|producer| producer.timeline.rates.acknowledged_per_s).sum();
    let consumer = measured.consumers.first();
    let median = consumer
        .and_then(|consumer| consumer.deliveries.first())
        .map_or(0.0, |delivery| delivery.total.p50_us);
    let received = consumer.map_or(0, |consumer| consumer.sum.received);
    format!(
        "  {} messages received, {}, median latency {}",
        Quantity::count(received),
        Quantity::per_second(rate),
        Quantity::microseconds(median)
    )
}

/// The folder of the drivers that are not in this program, if there is one.
fn drivers_folder(options: &TailOptions) -> Option<PathBuf> {
    if options.drivers.is_some() {
        return options.drivers.clone();
    }
    let holds_drivers = |folder: &PathBuf| folder.join("README.md").is_file();
    let here = PathBuf::from("drivers");
    let program = options.common.environment.executable.as_deref();
    let beside = program.iter().flat_map(|program| program.ancestors());
    let beside = beside.map(|folder| folder.join("drivers"));
    let mut places = std::iter::once(here).chain(beside);
    places.find(holds_drivers)
}

impl From<TailError> for Error {
    fn from(error: TailError) -> Self {
        let kind = match &error {
            TailError::Interrupted => Kind::Interrupted,
            TailError::Driver { .. } | TailError::Settings(_) | TailError::Uri(_) => Kind::BadInput,
            TailError::Sum(_)
            | TailError::Contract { .. }
            | TailError::Stamps { .. }
            | TailError::Ended { .. }
            | TailError::Deadline { .. } => Kind::CheckFailed,
            _ => Kind::Environment,
        };
        Error::from_cause(kind, error)
    }
}

fn empty(task: &Task) -> TailDocument {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    TailDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.to_owned(),
        started_at: Timestamp::now().to_string(),
        status: RunStatus::Running,
        name: task.plan.name.clone(),
        plan: dyno_plan::file::recorded(&task.plan),
        clock: "CLOCK_MONOTONIC of this host".to_owned(),
        cpus,
        ..TailDocument::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_sum_is_a_check_and_wrong_driver_is_bad_input() {
        let kind = |error: TailError| Error::from(error).kind;
        assert_eq!(kind(TailError::Sum("no".into())), Kind::CheckFailed);
        assert_eq!(kind(TailError::Interrupted), Kind::Interrupted);
        assert_eq!(kind(TailError::Settings("no".into())), Kind::BadInput);
    }
}
