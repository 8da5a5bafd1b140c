//! Performs a session: run directory, server, collection, phases, and the saved run, in this order.
//! Everything is undone if nothing was recorded, and kept otherwise.

pub mod collection;
pub mod consumption;
pub mod directory;
pub mod document;
mod documents;
mod elsewhere;
mod events;
mod exporters;
pub mod guard;
pub mod host_settings;
#[cfg(test)]
mod hour;
mod instance;
pub mod limits;
pub mod live;
mod machine;
pub mod observation;
pub mod options;
mod own;
mod phases;
pub mod preflight;
mod recorder;
mod saving;
mod sink;
mod trace;

use crate::cancel::Cancel;
use crate::context::Context;
use crate::deployment::parameters::{RuntimeParameters, ServerValues};
use crate::deployment::placement::HostPlacement;
use crate::deployment::server::{ServerPaths, data_folder};
use crate::deployment::{DeploymentUnderTest, locality};
use crate::error::{Error, Kind};
use crate::load_source::Readings;
use crate::observer::{Observer, RunFacts, Shared};
use crate::run::directory::RunDirectory;
use crate::run::documents::RECONNECT_LIMIT;
use crate::run::guard::SYNC_EVERY;
use crate::run::host_settings::HostSettings;
use crate::run::instance::InstanceRun;
use crate::run::live::Live;
use crate::run::observation::DataFolders;
use crate::run::options::{Extent, Finished, RunOptions};
use crate::run::recorder::Recorder;
use crate::task;
use crate::version::VERSION;
use dyno_load::clock::Clock;
use dyno_load::connect::Control;
use dyno_load::prepare;
use dyno_load::workload::Workload;
use dyno_observe::watch::{Board, OutputOptions, Watcher};
use dyno_plan::Plan;
use dyno_plan::task::Task;
use dyno_record::document::variant_name;
use dyno_record::model::{Caveat, FleetRecord, PhaseEdge, PhaseKind, RunDocument, ServerRecord};
use dyno_record::writer::RunWriter;
use dyno_results::AnalysedTrace;
use jiff::Timestamp;
pub use phases::usage;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest time for a command before a run: long enough for a slow check, and short enough to
/// notice a hanging server.
const SET_UP_LIMIT: Duration = Duration::from_secs(60);

/// Longest time to drop a collection.
const DROP_LIMIT: Duration = Duration::from_secs(600);

/// Lines of a server's log in an error.
const LOG_TAIL_LINES: usize = 12;

/// Performs a run: servers, load phase, measured phases, record. `None` if there was nothing to do.
///
/// # Errors
/// Nothing was recorded, and nothing is left behind. A run that ends early after something was
/// recorded is a [`Finished`] with a fault.
pub fn run(
    task: &Task,
    options: &RunOptions<'_>,
    observer: &mut dyn Observer,
    cancel: &Cancel,
) -> Result<Option<Finished>, Error> {
    let observer = Shared::new(observer);
    run_on(task, options, options.context(&observer, cancel), None, Vec::new())
}

/// Like [`run`], on servers that are already open and stay open, with the machine settings made for
/// the run, or with its own.
pub(crate) fn run_on<'a>(
    task: &Task,
    options: &RunOptions<'_>,
    context: Context<'a>,
    deployment: Option<&mut DeploymentUnderTest>,
    settings: Vec<HostSettings<'a>>,
) -> Result<Option<Finished>, Error> {
    task::announce(task, context.observer);
    preflight::machine(task, context)?;
    let started = Timestamp::now();
    let clock = Clock::start();
    let directory = RunDirectory::create(options.out.as_deref(), &task.plan.name, started)?;
    let path = directory.path().to_owned();
    let mut session = match Session::new(task, options, context, &path, started, clock) {
        Ok(session) => session,
        Err(error) => {
            directory.discard();
            return Err(error);
        }
    };
    session.note_host(settings);
    let result = session.perform(deployment);
    if session.recorder.is_empty() {
        drop(session);
        directory.discard();
        return match result {
            _ if context.cancel.requested() => {
                Err(Error::new(Kind::Interrupted, "interrupted before anything was recorded"))
            }
            result => result.map(|()| None),
        };
    }
    session.save(result.err()).map(Some)
}

struct Session<'a> {
    plan: &'a Plan,
    task: &'a Task,
    options: &'a RunOptions<'a>,
    context: Context<'a>,
    directory: PathBuf,
    paths: ServerPaths<'a>,
    clock: Clock,
    document: RunDocument,
    recorder: Recorder<'a>,
    /// Records of the instances, if there are several.
    instances: Vec<InstanceRun>,
    /// Record of each server.
    servers: Vec<ServerRecord>,
    /// Places of servers and clients on this machine; absent if all run elsewhere.
    placement: Option<HostPlacement>,
    /// Whether the clients ran where planned, once known.
    clients_as_planned: Option<bool>,
    /// Machine settings for the time of the run.
    host_settings: Vec<HostSettings<'a>>,
    /// Latest readings of the run's sources, while they run.
    board: Option<Board>,
    /// Caveats that only this program can know.
    caveats: Vec<Caveat>,
    /// Loaded servers, each with whether its existing documents stay.
    keeps: Vec<(usize, bool)>,
    /// Record of the fleet.
    fleet: RefCell<FleetRecord>,
    /// The trace of file I/O, once it is complete.
    trace: Option<AnalysedTrace>,
    /// Why the run ended early without a fault, if it did.
    ended_early: Option<String>,
}

impl<'a> Session<'a> {
    fn new(
        task: &'a Task,
        options: &'a RunOptions<'a>,
        context: Context<'a>,
        directory: &'a Path,
        started: Timestamp,
        clock: Clock,
    ) -> Result<Self, Error> {
        let plan = &task.plan;
        let placement = match (&task.remote, context.source) {
            (None, None) => HostPlacement::from_plan(plan)?,
            _ => None,
        };
        let paths = ServerPaths {
            environment: context.environment,
            embedded: options.embedded_server.as_deref(),
            folder: directory,
        };
        let folder = data_folder(plan, &paths).filter(|_| context.source.is_none());
        let (environment, caveat) = dyno_observe::environment::observe(folder.as_deref());
        let mut document = document::initial(plan, started, environment);
        document.selfcheck.clone_from(&options.selfcheck);
        let writer = RunWriter::create(directory, &task.plan_text(), &document)?;
        let per_row = observation::per_row(plan, Duration::from_nanos(dyno_load::WINDOW_NS));
        let pairs = match plan.server.pairs {
            0 | 1 => 0,
            _ if context.source.is_some() => 0,
            pairs => pairs as usize,
        };
        let instances = (0..pairs)
            .map(|number| InstanceRun::create(number, directory, plan, &document, per_row));
        let instances: Vec<InstanceRun> = instances.collect::<Result<_, _>>()?;
        let mut observer = context.observer;
        let offered = match context.source {
            Some(source) => source.offered_rate_per_s(plan),
            None => {
                let of_one = plan.schedule.rate_per_s();
                of_one.map(|rate| rate * f64::from(plan.server.pairs.max(1)))
            }
        };
        observer.run_started(&run_facts(plan, directory, started, offered));
        let live = Live::new(
            directory,
            &plan.name,
            started.to_string(),
            context.environment.state_dir.as_deref(),
            Box::new(context.observer),
        );
        Ok(Session {
            plan,
            task,
            options,
            context,
            directory: directory.to_owned(),
            paths,
            clock,
            document,
            recorder: Recorder::new(writer, Box::new(live), per_row),
            instances,
            servers: Vec::new(),
            placement,
            clients_as_planned: None,
            host_settings: Vec::new(),
            board: None,
            keeps: Vec::new(),
            fleet: RefCell::default(),
            trace: None,
            ended_early: None,
            caveats: caveat.into_iter().collect(),
        })
    }

    /// Performs everything between the run directory and the saved run. The servers have ended when
    /// it returns.
    fn perform(&mut self, deployment: Option<&mut DeploymentUnderTest>) -> Result<(), Error> {
        self.context.cancel.check()?;
        if let Some(guard) = &self.options.guard {
            let folders = vec![self.directory.clone()];
            guard.watch(folders).fault().map_or(Ok(()), Err)?;
        }
        let result = match deployment {
            Some(deployment) => {
                self.with_servers(deployment).map_err(|failure| explain(failure, deployment))
            }
            None => self.with_own_servers(),
        };
        // Restores the earlier values.
        self.host_settings.clear();
        result
    }

    fn with_own_servers(&mut self) -> Result<(), Error> {
        let remote = self.task.remote.as_ref();
        let (plan, context) = (self.plan, self.context);
        self.note_host(HostSettings::of_kernel(plan, context)?);
        let placement = self.placement.as_ref();
        let paths = &self.paths;
        let set = || HostSettings::of_disk(plan, &locality::planned_folders(plan, paths), context);
        let (mut deployment, of_disk) =
            DeploymentUnderTest::open_after(plan, remote, paths, placement, context, set)?;
        self.note_host(of_disk);
        let result =
            self.with_servers(&mut deployment).map_err(|failure| explain(failure, &mut deployment));
        // Before the disk of the data is removed.
        self.host_settings.clear();
        let (stopped, caveats) = deployment.stop();
        self.caveats.extend(caveats);
        result.and(stopped)
    }

    /// Whether this program starts no server on this machine.
    fn is_elsewhere(&self) -> bool {
        self.task.remote.is_some() || self.context.source.is_some()
    }

    /// Local data folders of the servers.
    fn data_folders(&self, deployment: &DeploymentUnderTest) -> Vec<PathBuf> {
        let local = deployment.servers.iter().zip(&self.servers);
        let local = local.filter(|(server, _)| server.is_local());
        let settings = local.map(|(_, record)| &record.settings);
        deployment.local_folders(self.plan, &self.paths, settings)
    }

    fn with_servers(&mut self, deployment: &mut DeploymentUnderTest) -> Result<(), Error> {
        // Restored when the servers are no longer needed.
        let parameters = RuntimeParameters::set(self.plan, deployment, self.context)?;
        let mut controls = Vec::new();
        for server in &deployment.servers {
            let mut control = server.control()?;
            control.set_cancel_check(self.context.cancel.patience());
            control.set_limit(Some(SET_UP_LIMIT));
            controls.push(control);
        }
        for (server, control) in deployment.servers.iter().zip(&mut controls) {
            self.servers.push(server.describe(control, self.plan)?);
        }
        self.describe_members(deployment);
        if let Some(parameters) = &parameters {
            self.describe_parameters(&parameters.found);
        }
        self.document_servers();
        if let Some(check) = self.options.check {
            check(&self.document)?;
        }
        self.record_servers_of_hosts()?;
        let mut named: Vec<String> = self
            .servers
            .iter()
            .filter_map(|record| record.settings.get(locality::DATA_FOLDER_SETTING).cloned())
            .collect();
        named.sort_unstable();
        named.dedup();
        let folders = DataFolders { here: self.data_folders(deployment), named };
        if let Some(storage) = deployment.storage() {
            storage.describe(&mut self.document.environment);
        }
        let sync_every = self.options.guard.as_ref().map(|_| SYNC_EVERY);
        let keep = OutputOptions {
            run_directory: self.directory.clone(),
            readings_per_row: observation::per_row(self.plan, self.plan.observe.interval.0),
            sync_every,
        };
        let watcher = observation::start(self.plan, deployment, folders, &keep, self.clock)?;
        let board = watcher.as_ref().map(Watcher::board);
        let reads = self.plan.observe.host;
        let source = self.context.source.filter(|_| reads && board.is_some());
        if let (Some(board), Some(source)) = (&board, source) {
            source.begin_readings(Readings {
                board: board.clone(),
                keep,
                interval: self.plan.observe.interval.0,
                clock: self.clock,
            });
        }
        self.set_board(board);
        let result = self.work(deployment, controls);
        if let Some(parameters) = parameters.as_ref().filter(|_| result.is_ok()) {
            let (found, caveats) = parameters.look();
            self.describe_parameters(&found);
            self.document_servers();
            self.caveats.extend(caveats);
        }
        if let Some(source) = source {
            source.end_readings();
        }
        if let Some(watcher) = watcher {
            self.document.sources = watcher.end();
            self.caveats.extend(observation::caveats(&self.document.sources));
            self.keep_reported_use();
        }
        self.set_board(None);
        result
    }

    /// Creates a record for each server of other hosts, which are known only once they run.
    fn record_servers_of_hosts(&mut self) -> Result<(), Error> {
        let Some(source) = self.context.source.filter(|_| self.servers.len() > 1) else {
            return Ok(());
        };
        let per_row = observation::per_row(self.plan, Duration::from_nanos(dyno_load::WINDOW_NS));
        for number in 0..self.servers.len() {
            let plan = source.plan_of_server(self.plan, number);
            let plan = plan.as_ref().unwrap_or(self.plan);
            let instance =
                InstanceRun::create(number, &self.directory, plan, &self.document, per_row)?;
            self.instances.push(instance);
        }
        Ok(())
    }

    /// Sets the board with the latest readings of the sources.
    fn set_board(&mut self, board: Option<Board>) {
        let mut observer = self.context.observer;
        observer.sources(board.as_ref());
        self.board = board;
    }

    /// Performs the work on known servers while they are observed.
    fn work(
        &mut self,
        deployment: &mut DeploymentUnderTest,
        mut controls: Vec<Control>,
    ) -> Result<(), Error> {
        // A cluster's collection is new, and dropping it would leave an unsharded one.
        let is_sharded = self.plan.server.is_sharded();
        let is_fresh = self.options.fresh || self.plan.data.fresh.is_for_each_run();
        if is_fresh && !is_sharded {
            if self.plan.is_own() {
                self.drop_own_collections(&mut controls)?;
            } else {
                self.drop_collections(&mut controls)?;
            }
        }
        let has_mix = matches!(self.options.extent, Extent::Whole | Extent::BlindMix);
        if has_mix && self.plan.operations.has_writes() {
            for control in &controls {
                documents::refuse_writes(control, "run operations that write on")?;
            }
        }
        self.check_machine(deployment, &mut controls);
        self.load_what_is_missing(deployment, &mut controls)?;
        self.create_indexes(deployment, &mut controls)?;
        self.note_collections(&mut controls, PhaseEdge::Start);
        for (number, control) in controls.iter_mut().enumerate() {
            self.check_collection(number, control)?;
        }
        self.perform_checks(&mut controls, PhaseKind::Load);
        self.document_servers();
        self.save_progress()?;
        self.drop_page_cache(deployment)?;
        if has_mix {
            let mut targets = Vec::new();
            for (number, server) in deployment.servers.iter().enumerate() {
                let workload = Workload::mix(self.plan, &server.concerns())?;
                targets.push((number, Arc::new(workload)));
            }
            let measured = self.measure(&targets, deployment);
            if measured.is_err() && !self.recorder.is_empty() {
                self.look_back_at_all(&mut controls, deployment, Duration::ZERO);
            }
            measured?;
            self.perform_checks(&mut controls, PhaseKind::Measure);
        }
        self.verify_placement(deployment);
        self.verify_host();
        self.save_progress()?;
        self.look_back_at_all(&mut controls, deployment, RECONNECT_LIMIT);
        Ok(())
    }

    /// Counts documents and reads sizes on all servers after the load.
    fn look_back_at_all(
        &mut self,
        controls: &mut [Control],
        deployment: &mut DeploymentUnderTest,
        patience: Duration,
    ) {
        for (number, control) in controls.iter_mut().enumerate() {
            self.look_back(number, control, &deployment.servers[number], patience);
        }
        self.note_collections(controls, PhaseEdge::End);
        self.document_servers();
        self.keep_events(Vec::new(), deployment);
    }

    /// Drops the collection of each server, after checking the owners of all documents.
    fn drop_collections(&mut self, controls: &mut [Control]) -> Result<(), Error> {
        let mut dropped = Vec::new();
        for control in controls.iter_mut() {
            // A large collection takes time to drop.
            control.set_limit(Some(DROP_LIMIT));
            documents::refuse_writes(control, "drop the collection of")?;
            let found = collection::about_to_drop(control, self.plan)?;
            if !self.options.drop_foreign {
                collection::refuse_foreign(&found)?;
            }
            dropped.push(found);
        }
        for (control, found) in controls.iter_mut().zip(dropped) {
            prepare::drop_collection(control, &self.plan.data)?;
            control.set_limit(Some(SET_UP_LIMIT));
            if found.documents > 0 {
                let text = collection::dropped_text(&found);
                match &found.foreign_key {
                    Some(_) => self.context.observer.warning(&text),
                    None => self.context.observer.note(&text),
                }
                self.document.dropped.push(found);
            }
        }
        Ok(())
    }

    /// Adds the started processes to the records of their servers.
    fn describe_members(&mut self, deployment: &DeploymentUnderTest) {
        let (members, caveats) = deployment.describe();
        self.caveats.extend(caveats);
        match self.servers.as_mut_slice() {
            [only] => only.members = members,
            several => {
                for (server, member) in several.iter_mut().zip(members) {
                    server.members = vec![member];
                }
            }
        }
    }

    /// Adds the parameters that were set to the records of the servers.
    fn describe_parameters(&mut self, found: &[ServerValues]) {
        for (number, server) in self.servers.iter_mut().enumerate() {
            let own = found.get(number).or(found.first());
            let named =
                |(name, value): (&String, &String)| (format!("parameter.{name}"), value.clone());
            let own = own.into_iter().flat_map(|(_, values)| values);
            server.settings.extend(own.map(named));
            for member in &mut server.members {
                let mut all = found.iter();
                if let Some((_, values)) = all.find(|(name, _)| *name == member.name) {
                    member.found.extend(values.iter().map(named));
                }
            }
        }
    }

    /// Writes the server records into the document.
    fn document_servers(&mut self) {
        self.document.server = document::server_of_all(&self.servers);
    }
}

/// Makes a server that ended the cause of a failure, and adds its last log lines.
fn explain(mut failure: Error, deployment: &mut DeploymentUnderTest) -> Error {
    if let Some((number, ended)) = deployment.ended() {
        // The end of the server explains any failure.
        let what = match (number, deployment.servers.len()) {
            (Some(number), 2..) => {
                let address = deployment.servers[number].address();
                format!("instance {number} at `{address}`: ")
            }
            _ if ended.name == "server" => String::new(),
            _ => format!("`{}`: ", ended.name),
        };
        let reason = format!("{what}the server ended by itself ({})", ended.status);
        failure = Error::new(Kind::Environment, reason).context(failure.cause.to_string());
        failure.log_tail = ended.log_tail;
    } else if failure.kind == Kind::Environment {
        failure.log_tail = deployment.only_log_tail(LOG_TAIL_LINES);
    }
    failure
}

/// Facts about a run for its metrics.
fn run_facts(
    plan: &Plan,
    directory: &Path,
    started: Timestamp,
    offered_rate_per_s: Option<f64>,
) -> RunFacts {
    let name = directory.file_name().unwrap_or_default();
    RunFacts {
        name: plan.name.clone(),
        version: VERSION.to_owned(),
        server: variant_name(&plan.server.kind),
        directory: name.to_string_lossy().into_owned(),
        started_s: started.as_millisecond() as f64 / 1e3,
        offered_rate_per_s,
    }
}
