//! Messages through a database: the server is started or reached, and each combination of drivers, bound and pool is
//! measured by itself, one after the other.

mod cells;
pub(crate) mod reports;

use crate::args::TailArguments;
use crate::exit::{Exit, Failure};
use crate::experiment::folder::ExperimentFolder;
use crate::session::document::VERSION;
use crate::session::execute::Hands;
use crate::session::lab::{Lab, describe};
use crate::session::preflight;
use crate::session::server::ServerPlaces;
use crate::tail::reports::CELLS;
use dyno_analyze::messages::record::{
    Cell, CellStatus, Measured, SCHEMA_VERSION, SkippedDriver, TailDocument,
};
use dyno_plan::task::Task;
use dyno_plan::uri::has_option;
use dyno_record::model::RunStatus;
use dyno_record::quantity::Quantity;
use dyno_record::server::ExperimentServer;
use dyno_tail::TailError;
use dyno_tail::document;
use dyno_tail::driver::{Found, find_some};
use dyno_tail::run::{Bench, run};
use dyno_tail::sums::what_is_wrong;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// Data of a server, in the folder of the experiment.
const SERVER_DATA: &str = "server-data";

/// The clock where processes are on several hosts.
const CLOCKS_OF_HOSTS: &str = "CLOCK_REALTIME of each host, brought to that of this one";

/// Does what the plan says, in this folder, which is discarded with an error if nothing was measured. Gives what is wrong
/// with what was measured, if something is.
pub(crate) fn perform(
    task: &Task,
    arguments: &TailArguments,
    hands: Hands<'_>,
    folder: ExperimentFolder,
) -> Result<Option<Failure>, Failure> {
    let path = folder.path().to_owned();
    let embedded = arguments.start.embedded_server.as_deref();
    let mut document = empty(task);
    let result = measure(task, arguments, hands, embedded, &path, &mut document);
    let _ = std::fs::remove_dir_all(path.join(SERVER_DATA));
    let measured = document.cells.iter().any(|cell| cell.measured.is_some());
    match result {
        Err(failure) if !measured => {
            let _ = std::fs::remove_dir_all(path.join(CELLS));
            let _ = std::fs::remove_file(path.join(dyno_analyze::messages::record::FILE));
            folder.discard();
            Err(failure)
        }
        Err(failure) => {
            document.status = match failure.exit {
                Exit::Interrupted => RunStatus::Partial,
                _ => RunStatus::Failed,
            };
            document.status_reason = Some(format!("{:#}", failure.error));
            document::write(&document, &path)?;
            Ok(Some(failure))
        }
        Ok(()) => {
            document.status = RunStatus::Complete;
            document::write(&document, &path)?;
            Ok(None)
        }
    }
}

/// Refuses what [`perform`] would refuse, as far as that is known before the server runs.
pub(crate) fn check(
    task: &Task,
    arguments: &TailArguments,
    hands: Hands<'_>,
) -> Result<(), Failure> {
    chosen(task, arguments, hands)?;
    preflight::servers(task, arguments.start.embedded_server.as_deref(), hands)
}

/// What is measured, and by whom.
struct Chosen {
    drivers: PathBuf,
    found: Found,
    wanted: Vec<Cell>,
    skipped: Vec<SkippedDriver>,
}

/// Asks the drivers what they can, and says which are left out.
fn chosen(task: &Task, arguments: &TailArguments, hands: Hands<'_>) -> Result<Chosen, Failure> {
    let plan = task.plan.tail.clone().unwrap_or_default();
    hands.messages.note("asking the drivers what they are");
    let named = |name: &str| {
        let mut names = plan.producers.iter().chain(&plan.consumers);
        plan.producers.is_empty() || names.any(|wanted| wanted == name)
    };
    let drivers = drivers_folder(arguments)?;
    let drivers = std::path::absolute(&drivers).unwrap_or(drivers);
    let found = find_some(&drivers, named)?;
    let (wanted, skipped) = cells::cells(&task.plan, &plan, &found)?;
    for skipped in &skipped {
        let text = format!("`{}` is left out: {}", skipped.name, skipped.reason);
        hands.messages.warning(&text);
    }
    if wanted.is_empty() {
        return Err(
            Failure::new(Exit::Environment, "no driver that is wanted can run")
                .with_hint("`make drivers` builds them, and says what is missing"),
        );
    }
    Ok(Chosen {
        drivers,
        found,
        wanted,
        skipped,
    })
}

fn measure(
    task: &Task,
    arguments: &TailArguments,
    hands: Hands<'_>,
    embedded: Option<&Path>,
    path: &Path,
    document: &mut TailDocument,
) -> Result<(), Failure> {
    let Chosen {
        drivers,
        found,
        wanted,
        skipped,
    } = chosen(task, arguments, hands)?;
    document.skipped = skipped;
    if wanted.iter().any(|cell| !cell.settings.is_here()) {
        document.clock = CLOCKS_OF_HOSTS.to_owned();
    }
    let host_drivers = task.plan.tail.as_ref();
    let host_drivers = host_drivers.and_then(|plan| plan.host_drivers.as_ref());
    let host_drivers = host_drivers.map_or(drivers, PathBuf::from);
    hands.messages.note("starting the server");
    let places = ServerPlaces {
        surroundings: hands.surroundings,
        embedded,
        folder: path,
    };
    let mut lab = Lab::open(&task.plan, task.remote.as_ref(), &places, None, hands)?;
    let result = in_lab(
        task,
        arguments,
        hands,
        path,
        document,
        &mut lab,
        (&found, &host_drivers, wanted),
    );
    let result = result.map_err(|failure| lab.explain(failure));
    let (stopped, caveats) = lab.stop();
    for caveat in caveats {
        hands.messages.warning(&caveat.message);
    }
    result.and(stopped)
}

fn in_lab(
    task: &Task,
    arguments: &TailArguments,
    hands: Hands<'_>,
    path: &Path,
    document: &mut TailDocument,
    lab: &mut Lab,
    (found, host_drivers, wanted): (&Found, &Path, Vec<Cell>),
) -> Result<(), Failure> {
    let uri = match (lab.uri(&task.plan), &arguments.uri, &task.plan.server.uri) {
        (Some(uri), ..) => uri,
        (None, Some(uri), _) | (None, None, Some(uri)) => uri.trim().to_owned(),
        (None, None, None) => {
            return Err(Failure::new(Exit::Internal, "a server without an address"));
        }
    };
    let server = lab
        .servers
        .first()
        .ok_or_else(|| Failure::new(Exit::Internal, "a deployment without servers"))?;
    let started = lab.uri(&task.plan).is_some();
    document.server = describe(&mut server.control()?, &task.plan, Some(lab), started)?;
    // Java's drivers refuse the heartbeats that it streams: see `drivers/README.md`.
    document.polls_heartbeats = document.server.product.starts_with("secantus")
        && !has_option(&uri, "serverMonitoringMode");
    let processes = lab.processes();
    let interrupted = || hands.interrupt.requested();
    let bench = Bench {
        uri: &uri,
        found,
        server: &processes,
        host_drivers,
        polls_heartbeats: document.polls_heartbeats,
        interrupted: &interrupted,
    };
    let all = wanted.len();
    let mut failed = Vec::new();
    for (place, mut cell) in wanted.into_iter().enumerate() {
        hands.interrupt.check()?;
        let name = cell.name.clone();
        hands
            .messages
            .note(&format!("{} of {all}: {name}", place + 1));
        let folder = path.join(CELLS).join(&name);
        std::fs::create_dir_all(&folder).map_err(|error| {
            Failure::of(Exit::Environment, error)
                .context(format!("cannot use `{}`", folder.display()))
        })?;
        match run(&bench, &cell.settings, &folder) {
            Ok(measured) => {
                cell.reason = what_is_wrong(&measured, &cell.settings);
                cell.status = match (&cell.reason, measured.interrupted) {
                    (_, true) => CellStatus::Partial,
                    (None, _) => CellStatus::Complete,
                    (Some(_), _) => CellStatus::Failed,
                };
                hands.messages.note(&in_short(&measured));
                cell.measured = Some(measured);
            }
            Err(TailError::Interrupted) => {
                let _ = std::fs::remove_dir_all(&folder);
                return Err(Failure::new(Exit::Interrupted, "interrupted"));
            }
            Err(error) => {
                let failure = Failure::from(error);
                cell.status = CellStatus::Failed;
                cell.reason = Some(format!("{:#}", failure.error));
                if lab.ended().is_some() || all == 1 {
                    document.cells.push(cell);
                    return Err(failure);
                }
            }
        }
        if let Some(reason) = &cell.reason {
            hands.messages.warning(&format!("{name}: {reason}"));
            failed.push(format!("{name}: {reason}"));
        }
        document.cells.push(cell);
        // A process that is killed leaves what is known.
        document::write(document, path)?;
        hands.interrupt.check()?;
    }
    match failed.as_slice() {
        [] => Ok(()),
        [only] => Err(Failure::new(Exit::CheckFailed, only.clone())),
        several => {
            let text = format!("{} of {all} failed: {}", several.len(), several.join("; "));
            Err(Failure::new(Exit::CheckFailed, text))
        }
    }
}

/// One line about a cell, while the next one is measured.
fn in_short(measured: &Measured) -> String {
    let rate: f64 = measured
        .producers
        .iter()
        .map(|producer| producer.course.rates.acknowledged_per_s)
        .sum();
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

/// Where the drivers are.
fn drivers_folder(arguments: &TailArguments) -> Result<PathBuf, Failure> {
    if let Some(folder) = &arguments.drivers {
        return Ok(folder.clone());
    }
    let holds_drivers = |folder: &PathBuf| folder.join("README.md").is_file() && folder.is_dir();
    let here = PathBuf::from("drivers");
    let program = std::env::current_exe().ok();
    let beside = program.iter().flat_map(|program| program.ancestors());
    let beside = beside.map(|folder| folder.join("drivers"));
    let mut places = std::iter::once(here).chain(beside);
    places.find(holds_drivers).ok_or_else(|| {
        Failure::new(Exit::Environment, "there is no folder of drivers here")
            .with_hint("name it: `--drivers DIR`, or the variable `DYNO_DRIVERS`")
    })
}

impl From<TailError> for Failure {
    fn from(error: TailError) -> Self {
        let exit = match &error {
            TailError::Interrupted => Exit::Interrupted,
            TailError::Driver { .. } | TailError::Settings(_) | TailError::Uri(_) => Exit::BadInput,
            TailError::Sum(_)
            | TailError::Contract { .. }
            | TailError::Stamps { .. }
            | TailError::Ended { .. }
            | TailError::Deadline { .. } => Exit::CheckFailed,
            _ => Exit::Environment,
        };
        Failure::of(exit, error)
    }
}

fn empty(task: &Task) -> TailDocument {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    TailDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: VERSION.to_owned(),
        started_at: Timestamp::now().to_string(),
        status: RunStatus::Running,
        status_reason: None,
        name: task.plan.name.clone(),
        plan: serde_json::to_value(&task.plan).expect("it is plain data"),
        server: ExperimentServer::default(),
        polls_heartbeats: false,
        clock: "CLOCK_MONOTONIC of this host".to_owned(),
        cpus,
        skipped: Vec::<SkippedDriver>::new(),
        cells: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_a_check_and_a_wrong_driver_is_bad_input() {
        let exit = |error: TailError| Failure::from(error).exit;
        assert_eq!(exit(TailError::Sum("no".into())), Exit::CheckFailed);
        assert_eq!(exit(TailError::Interrupted), Exit::Interrupted);
        assert_eq!(exit(TailError::Settings("no".into())), Exit::BadInput);
    }
}
