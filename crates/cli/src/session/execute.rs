//! The course of a session: run directory, server, collection, phases, and the saved run, in this
//! order, with everything taken back when nothing was recorded and everything kept once it was.

use crate::exit::{Exit, Failure};
use crate::fleet::{self, Fleet, Phases};
use crate::interrupt::Interrupt;
use crate::io_trace::roles::Tables;
use crate::messages::Messages;
use crate::metrics::{Feed, Metrics, RunFacts};
use crate::session::collection::{self, Decision, Wishes};
use crate::session::directory::RunDirectory;
use crate::session::guard::{Guard, SYNC_EVERY};
use crate::session::instance::InstanceRun;
use crate::session::lab::{self, Lab};
use crate::session::live::Live;
use crate::session::place::{self, Place};
use crate::session::recorder::{Expectation, Recorder, Totals, Watch};
use crate::session::server::{ServerPlaces, ServerUnderTest, data_folder};
use crate::session::steering::Steering;
use crate::session::task::Task;
use crate::session::trace::io::{Attached, RunTrace};
use crate::session::trace::{self, Watched, Watchers};
use crate::session::{document, observation, output};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_fleet::protocol::Stage;
use dyno_load::LoadError;
use dyno_load::backend::RetryRule;
use dyno_load::clock::Clock;
use dyno_load::connect::{Control, Patience};
use dyno_load::engine::{self, Announce, Job, Pair, PhaseSpec, ProcessUsage};
use dyno_load::prepare;
use dyno_load::workload::{LoadTask, Workload};
use dyno_observe::doctor::{self, Subject};
use dyno_observe::usage::UsageSampler;
use dyno_observe::watch::{Board, Keep, Watcher};
use dyno_plan::Plan;
use dyno_plan::model::{PageCache, Schedule, ServerKind};
use dyno_plan::units::Span;
use dyno_record::model::{
    Caveat, CaveatKind, FleetRecord, PhaseEdge, PhaseKind, ResourceUse, RunDocument, RunStatus,
    ServerRecord,
};
use dyno_record::reader::Run;
use dyno_record::writer::RunWriter;
use jiff::Timestamp;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest time for a command before a run: long for a look, and short enough to find out that a server hangs.
const SET_UP_LIMIT: Duration = Duration::from_secs(60);

/// Longest time to drop a collection.
const DROP_LIMIT: Duration = Duration::from_secs(600);

/// Longest time for the look at the collection after a run, and after one that was interrupted: the
/// server may hang, and what was measured is worth more than the sizes.
const LOOK_BACK_LIMIT: Duration = Duration::from_secs(60);
const LOOK_BACK_LIMIT_INTERRUPTED: Duration = Duration::from_secs(2);

/// How long other processes are watched before a run: long enough for one that is busy, and no
/// longer than the start of a server.
const WATCH: Duration = Duration::from_millis(100);

/// Lines of a server's log that an error shows.
const LOG_TAIL_LINES: usize = 12;

/// Which phases are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Load what is missing, warm up, measure.
    Whole,
    /// Load only.
    Load,
    /// Load the documents of this client whatever is there, as YCSB does.
    BlindLoad,
    /// Measure whatever is there, as YCSB does.
    BlindMix,
}

/// How a session is done.
pub(crate) struct Conduct<'a> {
    pub(crate) extent: Extent,
    pub(crate) wishes: Wishes,
    /// Drop the collection first.
    pub(crate) fresh: bool,
    /// When failed inserts of the load phase are sent again.
    pub(crate) retry: RetryRule,
    /// End the load phase with the first insert that finally fails.
    pub(crate) abort_load: bool,
    /// Run directory that was asked for.
    pub(crate) out: Option<&'a Path>,
    /// Path of the embedded server that was named.
    pub(crate) embedded_server: Option<&'a Path>,
    /// Result of the last selfcheck.
    pub(crate) selfcheck: Option<serde_json::Value>,
    /// Folder for what is kept between runs.
    pub(crate) state_dir: Option<&'a Path>,
    /// What makes a long run safe to leave alone.
    pub(crate) guard: Option<Guard>,
}

/// What the program has at hand.
#[derive(Clone, Copy)]
pub(crate) struct Hands<'a> {
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) messages: Messages,
    /// Metrics that are served meanwhile.
    pub(crate) metrics: Option<&'a Metrics>,
    /// Hosts that the load comes from, if not this one.
    pub(crate) fleet: Option<&'a Fleet<'a>>,
}

impl<'a> Hands<'a> {
    /// The same, with metrics that are served.
    pub(crate) fn telling<'b>(self, metrics: Option<&'b Metrics>) -> Hands<'b>
    where
        'a: 'b,
    {
        Hands { metrics, ..self }
    }
}

/// A run as it is in its folder, with its analysis.
type Saved = (Run, Option<RunAnalysis>);

/// A session that has a saved run.
pub(crate) struct Finished {
    pub(crate) run: Run,
    /// What the run means; absent if it has measured nothing.
    pub(crate) analysis: Option<RunAnalysis>,
    pub(crate) directory: PathBuf,
    /// Operations of the last phase that was meant to be the result.
    pub(crate) totals: Totals,
    pub(crate) interrupted: bool,
    /// What ended the session early, other than a signal.
    pub(crate) fault: Option<Failure>,
}

/// Does the session. An error means that nothing was recorded and nothing is left behind; `None` means
/// that there was nothing to do.
pub(crate) fn execute(
    task: &Task,
    conduct: &Conduct<'_>,
    watch: &mut dyn Watch,
    hands: Hands<'_>,
) -> Result<Option<Finished>, Failure> {
    execute_on(task, conduct, watch, hands, None)
}

/// As [`execute`], on servers that are open already and stay open.
pub(crate) fn execute_on(
    task: &Task,
    conduct: &Conduct<'_>,
    watch: &mut dyn Watch,
    hands: Hands<'_>,
    lab: Option<&mut Lab>,
) -> Result<Option<Finished>, Failure> {
    task.tell(hands.messages);
    let started = Timestamp::now();
    let clock = Clock::start();
    let directory = RunDirectory::create(conduct.out, &task.plan.name, started)?;
    let path = directory.path().to_owned();
    let mut session = match Session::new(task, conduct, watch, hands, &path, started, clock) {
        Ok(session) => session,
        Err(failure) => {
            directory.discard();
            return Err(failure);
        }
    };
    let result = session.perform(lab);
    if session.recorder.is_empty() {
        drop(session);
        directory.discard();
        return match result {
            _ if hands.interrupt.requested() => Err(Failure::new(
                Exit::Interrupted,
                "interrupted before anything was recorded",
            )),
            result => result.map(|()| None),
        };
    }
    session.save(result.err()).map(Some)
}

struct Session<'a> {
    plan: &'a Plan,
    task: &'a Task,
    conduct: &'a Conduct<'a>,
    hands: Hands<'a>,
    directory: PathBuf,
    places: ServerPlaces<'a>,
    clock: Clock,
    document: RunDocument,
    recorder: Recorder<'a>,
    /// The records of the instances, if there are several.
    instances: Vec<InstanceRun>,
    /// What is known of each server.
    servers: Vec<ServerRecord>,
    /// Places of servers and clients on this machine; absent if all run elsewhere.
    place: Option<Place>,
    /// Whether the clients ran where they were planned, once that was seen.
    clients_as_planned: Option<bool>,
    /// Packets of a network card that go to other CPUs until the run is over.
    steering: Option<Steering>,
    /// What the sources that watch the run told last, while they do.
    board: Option<Board>,
    /// Where the metrics of the run go, if they are served.
    feed: Option<Feed>,
    /// Caveats that only this program can know of.
    caveats: Vec<Caveat>,
    /// Documents of the servers after the run, as far as they told.
    documents_after: Vec<u64>,
    /// Servers that are loaded, and whether documents that they have stay.
    keeps: Vec<(usize, bool)>,
    /// What becomes of a fleet.
    fleet: RefCell<FleetRecord>,
}

/// What a server calls the folder of its data.
const DATA_FOLDER_SETTING: &str = "storage.dbPath";

impl<'a> Session<'a> {
    fn new(
        task: &'a Task,
        conduct: &'a Conduct<'a>,
        watch: &'a mut dyn Watch,
        hands: Hands<'a>,
        directory: &'a Path,
        started: Timestamp,
        clock: Clock,
    ) -> Result<Self, Failure> {
        let plan = &task.plan;
        let place = match (&task.remote, hands.fleet) {
            (None, None) => Place::of_plan(plan)?,
            _ => None,
        };
        let places = ServerPlaces {
            surroundings: hands.surroundings,
            embedded: conduct.embedded_server,
            folder: directory,
        };
        let folder = data_folder(plan, &places).filter(|_| hands.fleet.is_none());
        let observation = dyno_observe::environment::observe(folder.as_deref());
        let mut document = document::initial(plan, started, observation.environment);
        document.selfcheck.clone_from(&conduct.selfcheck);
        let writer = RunWriter::create(directory, &dyno_plan::file::to_toml(plan), &document)?;
        let per_row = observation::per_row(plan, Duration::from_nanos(engine::INTERVAL_NS));
        let instances = match plan.server.pairs {
            0 | 1 => Vec::new(),
            pairs => (0..pairs as usize)
                .map(|number| InstanceRun::create(number, directory, plan, &document, per_row))
                .collect::<Result<_, _>>()?,
        };
        let live = Live::new(
            directory,
            &plan.name,
            started.to_string(),
            conduct.state_dir,
            Box::new(watch),
        );
        let feed = hands.metrics.map(Metrics::feed);
        if let Some(feed) = &feed {
            feed.begin(run_facts(plan, directory, started));
        }
        let mut recorder = Recorder::new(writer, Box::new((live, feed.clone())));
        recorder.join_windows(per_row);
        Ok(Session {
            plan,
            task,
            conduct,
            hands,
            directory: directory.to_owned(),
            places,
            clock,
            document,
            recorder,
            instances,
            servers: Vec::new(),
            place,
            clients_as_planned: None,
            steering: None,
            board: None,
            feed,
            documents_after: Vec::new(),
            keeps: Vec::new(),
            fleet: RefCell::default(),
            caveats: dyno_observe::health::caveat(&observation.probes)
                .into_iter()
                .collect(),
        })
    }

    /// Everything between the run directory and the saved run. The servers are gone when it returns.
    fn perform(&mut self, lab: Option<&mut Lab>) -> Result<(), Failure> {
        self.hands.interrupt.check()?;
        trace::check(&self.plan.traces, self.hands.surroundings.path.as_deref())?;
        observation::check(self.plan)?;
        trace::io::check(self.plan, self.task.remote.is_some())?;
        if let Some(guard) = &self.conduct.guard {
            let folders = vec![self.directory.clone()];
            guard.watch(folders).fault().map_or(Ok(()), Err)?;
        }
        self.steering = Steering::set(self.plan, self.conduct.state_dir, self.hands.messages)?;
        self.document.packet_steering = self.steering.as_ref().map(|set| set.record().clone());
        let result = match lab {
            Some(lab) => self
                .with_servers(lab)
                .map_err(|failure| explain(failure, lab)),
            None => self.with_own_servers(),
        };
        if let Some(steering) = self.steering.take() {
            steering.put_back();
        }
        result
    }

    fn with_own_servers(&mut self) -> Result<(), Failure> {
        let remote = self.task.remote.as_ref();
        let place = self.place.as_ref();
        let mut lab = Lab::open(self.plan, remote, &self.places, place, self.hands)?;
        let result = self
            .with_servers(&mut lab)
            .map_err(|failure| explain(failure, &mut lab));
        let (stopped, caveats) = lab.stop();
        self.caveats.extend(caveats);
        result.and(stopped)
    }

    /// Whether the servers are none that this program starts on this machine.
    fn is_elsewhere(&self) -> bool {
        self.task.remote.is_some() || self.hands.fleet.is_some()
    }

    /// Folders of this machine that hold the data: of servers that were started those of the plan, of one that runs here
    /// the one that it names.
    fn data_folders(&self, lab: &Lab) -> Vec<PathBuf> {
        if !self.is_elsewhere() {
            let several = &self.plan.server.data_dirs;
            let all = several.iter().map(PathBuf::from);
            return match several.is_empty() || self.plan.server.data_dir.is_some() {
                true => data_folder(self.plan, &self.places).into_iter().collect(),
                false => all.collect(),
            };
        }
        let local = lab.servers.iter().zip(&self.servers);
        let local = local.filter(|(server, _)| server.is_local());
        let named = local.filter_map(|(_, record)| record.settings.get(DATA_FOLDER_SETTING));
        // That of a server in a container is not a folder here.
        named
            .map(PathBuf::from)
            .filter(|path| path.is_dir())
            .collect()
    }

    fn with_servers(&mut self, lab: &mut Lab) -> Result<(), Failure> {
        let mut controls = Vec::new();
        for server in &lab.servers {
            let mut control = server.control()?;
            control.set_patience(self.hands.interrupt.patience());
            control.set_limit(Some(SET_UP_LIMIT));
            controls.push(control);
        }
        for (server, control) in lab.servers.iter().zip(&mut controls) {
            self.servers.push(server.describe(control, self.plan)?);
        }
        self.describe_members(lab);
        self.document_servers();
        let folder = self.data_folders(lab).into_iter().next();
        let sync_every = self.conduct.guard.as_ref().map(|_| SYNC_EVERY);
        let keep = Keep {
            run_directory: self.directory.clone(),
            readings_per_row: observation::per_row(self.plan, self.plan.observe.interval.0),
            sync_every,
        };
        let watcher = observation::start(self.plan, lab, folder, &keep, self.clock)?;
        self.set_board(watcher.as_ref().map(Watcher::board));
        let result = self.work(lab, controls);
        if let Some(watcher) = watcher {
            self.document.sources = watcher.end();
            self.caveats
                .extend(observation::caveats(&self.document.sources));
        }
        self.set_board(None);
        result
    }

    /// Whom to ask for what the sources told last.
    fn set_board(&mut self, board: Option<Board>) {
        if let Some(feed) = &self.feed {
            feed.watch(board.clone());
        }
        self.board = board;
    }

    /// Everything that is done with servers that are known, while they are watched.
    fn work(&mut self, lab: &mut Lab, mut controls: Vec<Control>) -> Result<(), Failure> {
        // The collection of a cluster is new, and dropping it would leave an unsharded one.
        let is_joined = self.plan.server.topology.is_some();
        let is_fresh = self.conduct.fresh || self.plan.data.fresh.is_for_each_run();
        if is_fresh && !is_joined {
            for control in &mut controls {
                // A large collection takes its time.
                control.set_limit(Some(DROP_LIMIT));
                prepare::drop_collection(control, &self.plan.data)?;
                control.set_limit(Some(SET_UP_LIMIT));
            }
        }
        self.check_machine(&lab.servers, &mut controls);
        self.load_what_is_missing(lab, &mut controls)?;
        self.note_collections(&mut controls, PhaseEdge::Start);
        for (number, control) in controls.iter_mut().enumerate() {
            self.check_collection(number, control)?;
        }
        self.document_servers();
        self.save_progress()?;
        self.drop_page_cache(lab)?;
        if matches!(self.conduct.extent, Extent::Whole | Extent::BlindMix) {
            let mut parties = Vec::new();
            for (number, server) in lab.servers.iter().enumerate() {
                let workload = Workload::mix(self.plan, &server.concerns())?;
                parties.push((number, Arc::new(workload)));
            }
            self.measure(&parties, lab)?;
        }
        self.verify_placement(lab);
        self.verify_steering();
        self.save_progress()?;
        for (number, control) in controls.iter_mut().enumerate() {
            self.look_back(number, control);
        }
        self.check_sum_of_documents();
        self.note_collections(&mut controls, PhaseEdge::End);
        self.document_servers();
        Ok(())
    }

    /// Takes the files out of the machine's memory, if the plan wants reads from the disk.
    fn drop_page_cache(&self, lab: &Lab) -> Result<(), Failure> {
        if self.plan.data.page_cache == PageCache::Keep {
            return Ok(());
        }
        if !lab.servers.iter().all(ServerUnderTest::is_local) {
            let text =
                "`data.page_cache = \"drop\"` is about this machine, and the server is on another";
            return Err(Failure::new(Exit::BadInput, text)
                .with_hint("drop it there, and set `data.page_cache` to `keep`"));
        }
        dyno_observe::environment::drop_page_cache().map_err(|error| {
            Failure::of(Exit::Environment, error)
                .context("cannot drop the page cache of this machine, as `data.page_cache` wants")
                .with_hint("run it as root, or set `data.page_cache` to `keep`")
        })
    }

    /// Records what the servers say of their collections before or after the measured load.
    fn note_collections(&mut self, controls: &mut [Control], at: PhaseEdge) {
        let phase = match self.conduct.extent {
            Extent::Whole | Extent::BlindMix => PhaseKind::Measure,
            Extent::Load | Extent::BlindLoad => PhaseKind::Load,
        };
        if !self.plan.observe.server || self.hands.interrupt.requested() {
            return;
        }
        let is_one = controls.len() == 1;
        for (number, control) in controls.iter_mut().enumerate() {
            let instance = if is_one {
                "server".to_owned()
            } else {
                format!("pair-{number}")
            };
            let found = observation::collection(control, self.plan, instance, phase, at);
            self.document.collections.extend(found);
        }
    }

    /// Passes the processes that were started to the records of those that they belong to.
    fn describe_members(&mut self, lab: &Lab) {
        let (members, caveats) = lab.describe();
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

    /// Looks where the servers were after they have worked, when their memory is where it will be.
    fn verify_placement(&mut self, lab: &Lab) {
        let Some(place) = &self.place else { return };
        let (mut record, caveats) = place.verify(&lab.processes());
        record.clients_as_planned = self.clients_as_planned;
        self.document.placement = Some(record);
        self.caveats.extend(caveats);
    }

    /// Looks whether the packets of the network card went where they should to the end.
    fn verify_steering(&mut self) {
        let Some(steering) = &self.steering else {
            return;
        };
        let (record, caveat) = steering.look();
        self.document.packet_steering = Some(record);
        self.caveats.extend(caveat);
    }

    /// Loads those collections that lack documents, all at once, and waits until all are loaded.
    fn load_what_is_missing(
        &mut self,
        lab: &mut Lab,
        controls: &mut [Control],
    ) -> Result<(), Failure> {
        let mut parties = Vec::new();
        self.keeps.clear();
        let mut count = 0;
        for (number, control) in controls.iter_mut().enumerate() {
            let Some(load) = self.plan_load(control)? else {
                continue;
            };
            prepare::create_collection(control, &self.plan.data)?;
            let concerns = lab.servers[number].concerns();
            let workload = Arc::new(Workload::load(self.plan, load, &concerns)?);
            count += load.count;
            self.keeps.push((number, load.keep_existing));
            parties.push((number, workload));
        }
        if parties.is_empty() {
            return Ok(());
        }
        self.load(&parties, count, lab)?;
        self.hands.interrupt.check()
    }

    /// What `dyno doctor` says of the machine and the first server goes into the record; a check that
    /// fails becomes a caveat there.
    fn check_machine(&mut self, servers: &[ServerUnderTest], controls: &mut [Control]) {
        let (Some(server), Some(control)) = (servers.first(), controls.first_mut()) else {
            return;
        };
        // A server of ours with a folder of its own has nothing yet; of others it is not known what is missing.
        let is_kept = self.plan.server.data_dir.is_some() || !self.plan.server.data_dirs.is_empty();
        let is_empty = !self.is_elsewhere() && !is_kept;
        let documents = collection::own_documents(self.plan).saturating_mul(servers.len() as u64);
        let instances = match &self.task.remote {
            None => lab::topology_of(self.plan).map_or(1, |topology| lab::data_servers(&topology)),
            Some(_) => 1,
        };
        let instances = u64::from(instances);
        let subject = Subject {
            data_dir: data_folder(self.plan, &self.places).filter(|_| !self.is_elsewhere()),
            planned_data_bytes: is_empty
                .then(|| collection::planned_bytes(&self.plan.data, documents))
                .flatten(),
            connections: Some(u64::from(self.plan.client.clients)),
            server: Some(server.checked(control, &self.servers[0], instances)),
            watch: WATCH,
        };
        let round_trip = subject.server.as_ref().and_then(|server| server.round_trip);
        self.servers[0].round_trip_us = round_trip.map(|time| time.median_us);
        let facts = doctor::observe(Path::new("/"), &subject);
        self.document.environment.doctor = doctor::examine(&facts);
    }

    /// The load phase, if there is something to load.
    fn plan_load(&mut self, control: &mut Control) -> Result<Option<LoadTask>, Failure> {
        let data = &self.plan.data;
        let load = |keep_existing| LoadTask {
            first: data.insert_start,
            count: collection::own_documents(self.plan),
            batch: self.plan.client.batch,
            keep_existing,
        };
        match self.conduct.extent {
            Extent::BlindMix => return Ok(None),
            Extent::BlindLoad => return Ok(Some(load(false))),
            Extent::Whole | Extent::Load => {}
        }
        let state = prepare::collection_state(control, self.plan)?;
        Ok(
            match collection::decide(self.plan, &state, self.conduct.wishes)? {
                Decision::Ready => {
                    let note = format!(
                        "the collection holds its {} documents, nothing to load",
                        state.documents
                    );
                    self.hands.messages.note(&note);
                    None
                }
                Decision::Load => Some(load(false)),
                Decision::Complete => {
                    let note = format!(
                        "the collection holds {} of {} documents, loading the rest",
                        state.documents, data.records
                    );
                    self.hands.messages.note(&note);
                    Some(load(true))
                }
            },
        )
    }

    fn load(&mut self, parties: &[Party], documents: u64, lab: &mut Lab) -> Result<(), Failure> {
        let client = &self.plan.client;
        let clients = client.load_clients.unwrap_or(client.clients);
        let expected = Expectation {
            kind: PhaseKind::Load,
            duration: None,
            operations: Some(documents),
        };
        // YCSB throttles and limits its load phase too.
        let blind = self.conduct.extent == Extent::BlindLoad;
        let duration = self.plan.phases.duration.map(|duration| duration.0);
        let spec = PhaseSpec {
            kind: PhaseKind::Load,
            duration: duration.filter(|_| blind),
            operations: parties
                .iter()
                .filter_map(|(_, workload)| workload.load_operations())
                .max(),
        };
        let schedule = if blind {
            load_schedule(self.plan)
        } else {
            Schedule::Closed {}
        };
        self.begin(parties, &[expected], None);
        let part = JobPart {
            phases: vec![spec],
            schedule,
            clients,
            retry: self.conduct.retry,
            abort_on_failure: self.conduct.abort_load,
        };
        self.drive(part, parties, lab)
            .map_err(|failure| failure.context("the load phase failed"))
    }

    fn measure(&mut self, parties: &[Party], lab: &mut Lab) -> Result<(), Failure> {
        let phases = &self.plan.phases;
        let mut specs = Vec::new();
        if !phases.warmup.0.is_zero() {
            specs.push(PhaseSpec {
                kind: PhaseKind::Warmup,
                duration: Some(phases.warmup.0),
                operations: None,
            });
        }
        specs.push(PhaseSpec {
            kind: PhaseKind::Measure,
            duration: phases.duration.map(|duration| duration.0),
            operations: phases.operations,
        });
        let expected: Vec<Expectation> = specs
            .iter()
            .map(|spec| Expectation {
                kind: spec.kind,
                duration: spec.duration,
                operations: spec.operations.map(|count| match self.hands.fleet {
                    Some(fleet) => fleet.in_all(self.plan, count),
                    None => count.saturating_mul(parties.len() as u64),
                }),
            })
            .collect();
        let offered = self.plan.schedule.rate_per_s();
        self.begin(parties, &expected, offered);
        let part = JobPart {
            phases: specs,
            schedule: self.plan.schedule.clone(),
            clients: self.plan.client.clients,
            retry: RetryRule::default(),
            abort_on_failure: false,
        };
        self.drive(part, parties, lab)
            .map_err(|failure| failure.context("the run failed"))
    }

    /// Tells the records that phases begin. The offered rate is that of one server.
    fn begin(
        &mut self,
        parties: &[Party],
        expected: &[Expectation],
        offered_rate_per_s: Option<f64>,
    ) {
        // Agents count the keys of their own.
        let alone = match (parties, self.hands.fleet) {
            ([(_, workload)], None) => Some(Arc::clone(workload)),
            _ => None,
        };
        let offered = match self.hands.fleet {
            Some(fleet) => offered_rate_per_s.and_then(|_| fleet.offered_rate_per_s(self.plan)),
            None => offered_rate_per_s.map(|rate| rate * parties.len() as f64),
        };
        self.recorder.begin(alone, expected.to_vec(), offered);
        for (number, workload) in parties {
            if let Some(instance) = self.instances.get_mut(*number) {
                instance.recorder.begin(
                    Some(Arc::clone(workload)),
                    expected.to_vec(),
                    offered_rate_per_s,
                );
            }
        }
    }

    /// Runs phases and passes their windows to the recorders, also when they end with a fault.
    fn drive(&mut self, part: JobPart, parties: &[Party], lab: &mut Lab) -> Result<(), Failure> {
        let clients = part.clients;
        let stop = self.hands.interrupt.stop_flag()?;
        let phases: Vec<PhaseKind> = part.phases.iter().map(|phase| phase.kind).collect();
        let attached = Attached::new(
            self.plan,
            &phases,
            lab.processes(),
            &self.directory,
            self.clock,
        )?;
        let watchers = Arc::new(Mutex::new(Watchers::new(attached)));
        let announce = self.announce(Arc::clone(&watchers), lab);
        let stage = match phases.contains(&PhaseKind::Load) {
            true => Stage::Load,
            false => Stage::Run,
        };
        let job = match self.hands.fleet {
            Some(_) => None,
            None => Some(self.job(part, parties, &lab.servers, stop.flag(), announce)?),
        };
        let data_folders = self.data_folders(lab);
        let (recorder, instances) = (&mut self.recorder, &mut self.instances);
        let ending = stop.flag();
        let mut ended = false;
        // With fewer parties than clients the workers have other numbers.
        let is_whole = parties.len() == lab.servers.len();
        let place = self.place.as_ref().filter(|_| is_whole);
        let threads = (self.plan.client.threads.min(clients).max(1)) as usize;
        let mut seen_clients = None;
        let clock = self.clock;
        let folder = data_folders.first().map(PathBuf::as_path);
        let folder = folder.filter(|_| !lab.processes().is_empty());
        let mut sampler = UsageSampler::new(Path::new("/"), &lab.processes(), folder);
        let is_local = lab.servers.iter().all(ServerUnderTest::is_local);
        sampler.sample(seconds(&clock));
        let mut watchman = self.conduct.guard.as_ref().map(|guard| {
            let own = std::iter::once(self.directory.clone());
            guard.watch(own.chain(data_folders.iter().cloned()).collect())
        });
        let mut guarded = None;
        let mut sink = |window: engine::Window| {
            recorder.record(&window.merged)?;
            if let Some(watchman) = &mut watchman
                && guarded.is_none()
            {
                if watchman.sync_is_due() {
                    recorder.sync()?;
                    for instance in instances.iter_mut() {
                        instance.recorder.sync()?;
                    }
                }
                guarded = watchman.fault();
                if guarded.is_some() {
                    ending.store(true, Ordering::Relaxed);
                }
            }
            record_instances(instances, parties, &window)?;
            if seen_clients.is_none()
                && let Some(place) = place
            {
                seen_clients = place::client_deviations(place, parties.len(), threads);
            }
            sampler.sample(seconds(&clock));
            // A server of ours that has ended does not come back: no need to try for long. What the
            // clients still see of its end belongs to the record.
            ended = ended || lab.ended().is_some();
            if ended {
                ending.store(true, Ordering::Relaxed);
            }
            Ok(())
        };
        let result = match (job, self.hands.fleet) {
            (Some(job), _) => engine::run(job, &mut sink).map_err(|error| of_party(error, parties)),
            (None, Some(fleet)) => {
                let shared = Phases {
                    stage,
                    plan: self.plan,
                    parties: self.keeps.clone(),
                    threads: self.task.threads,
                    clock,
                    stop: &ending,
                    record: &self.fleet,
                };
                fleet.perform(&shared, self.hands, &mut sink)
            }
            (None, None) => Ok(()),
        };
        sampler.sample(seconds(&clock));
        recorder.end();
        for (number, _) in parties {
            if let Some(instance) = instances.get_mut(*number) {
                instance.recorder.end();
            }
        }
        self.keep_fleet();
        let watchers = std::mem::replace(
            &mut *watchers.lock().unwrap_or_else(PoisonError::into_inner),
            Watchers::new(None),
        );
        let (watched, traced) = watchers.end();
        self.keep_traces(watched);
        if let Some(traced) = traced {
            self.keep_io_trace(traced, lab);
        }
        if is_local {
            self.keep_usage(&sampler);
        }
        // The load phase may be too short to be looked at, and has the same places.
        if let Some(caveats) = seen_clients
            && self.clients_as_planned.is_none()
        {
            self.clients_as_planned = Some(caveats.is_empty());
            self.caveats.extend(caveats);
        }
        match result {
            Ok(()) if guarded.is_some() => guarded.map_or(Ok(()), Err),
            Ok(()) if ended => Err(LoadError::Unreachable(None).into()),
            result => result,
        }
    }

    /// Puts into the document what the hosts of a fleet did so far.
    fn keep_fleet(&mut self) {
        if self.hands.fleet.is_some() {
            self.document.fleet = Some(self.fleet.borrow().clone());
        }
    }

    /// Puts into the document how busy the resources were in the phases that have just ended.
    fn keep_usage(&mut self, sampler: &UsageSampler) {
        for phase in self.recorder.phases() {
            let is_known = |known: &ResourceUse| known.phase == phase.name;
            if !self.document.resources.iter().any(is_known) {
                let end_s = phase.start_s + phase.duration_s;
                let found = sampler.between(phase.name, phase.start_s, end_s);
                self.document.resources.extend(found);
            }
        }
    }

    /// What starts the watching programs once the starts of the phases are known.
    fn announce(&self, watchers: Arc<Mutex<Watchers>>, lab: &Lab) -> Announce {
        let traces = self.plan.traces.clone();
        let subject = trace::Subject {
            run: self.directory.clone(),
            servers: lab.processes(),
            clock: self.clock,
        };
        Box::new(move |phases| {
            let mut watchers = watchers.lock().unwrap_or_else(PoisonError::into_inner);
            watchers.start(&traces, phases, &subject);
        })
    }

    /// Puts into the document what became of the watching programs, with a caveat where one failed.
    fn keep_traces(&mut self, watched: Vec<Watched>) {
        for Watched { record, fault } in watched {
            if let Some(fault) = fault {
                self.caveats.push(Caveat {
                    kind: CaveatKind::ProbeUnavailable,
                    message: format!("trace `{}`: {fault}", record.name),
                    hint: Some(format!("see `{}/output.log`", record.directory)),
                    phase: None,
                });
            }
            self.document.traces.push(record);
        }
    }

    /// Completes the trace of file I/O and puts into the document what became of it.
    fn keep_io_trace(&mut self, traced: RunTrace, lab: &Lab) {
        let tables = || {
            let mut all = Tables::default();
            for server in &lab.servers {
                let asked = server.control().ok().and_then(|mut control| {
                    control.set_limit(Some(LOOK_BACK_LIMIT_INTERRUPTED));
                    Tables::ask(&mut control).ok()
                });
                // A server that has ended says nothing, and the trace is worth having all the same.
                all.join(asked.unwrap_or_default());
            }
            all
        };
        let (record, fault) = traced.finish(tables);
        if let Some(fault) = fault {
            self.caveats.push(Caveat {
                kind: CaveatKind::ProbeUnavailable,
                message: format!("trace of file I/O: {fault}"),
                hint: Some(format!("see `{}/report.html`", record.directory)),
                phase: None,
            });
        }
        self.document.traces.push(record);
    }

    fn job(
        &self,
        part: JobPart,
        parties: &[Party],
        servers: &[ServerUnderTest],
        stop: Arc<AtomicBool>,
        announce: Announce,
    ) -> Result<Job, Failure> {
        let client = &self.plan.client;
        let clients = part.clients as usize;
        let mut pairs = Vec::new();
        for (number, workload) in parties {
            pairs.push(Pair {
                workload: Arc::clone(workload),
                transporter: servers[*number].transporter()?,
                clients,
                threads: (client.threads as usize).clamp(1, clients),
                cpus: self
                    .place
                    .as_ref()
                    .and_then(|place| place.of_client(*number, servers.len())),
                pin: client.pin,
            });
        }
        Ok(Job {
            pairs,
            phases: part.phases,
            schedule: part.schedule,
            seed: client.seed,
            timeout: client.timeout.0,
            give_up: client.give_up.0,
            retry: part.retry,
            abort_on_failure: part.abort_on_failure,
            clock: self.clock,
            stop,
            usage,
            announce: Some(announce),
            hold: None,
            shift_ns: 0,
        })
    }

    /// Puts what is known of the servers into the document.
    fn document_servers(&mut self) {
        self.document.server = document::server_of_all(&self.servers);
    }

    /// After loading, and before measuring: the collection must be what the plan assumes, or, for
    /// those who measure whatever is there, it is said what is.
    fn check_collection(&mut self, number: usize, control: &mut Control) -> Result<(), Failure> {
        let state = match self.conduct.extent {
            Extent::Whole | Extent::Load => prepare::collection_state(control, self.plan)?,
            Extent::BlindLoad | Extent::BlindMix => {
                prepare::collection_size(control, &self.plan.data)?
            }
        };
        match self.conduct.extent {
            Extent::Whole | Extent::Load => collection::check_loaded(self.plan, &state)?,
            Extent::BlindLoad => {}
            Extent::BlindMix => self.warn_about_count(state.documents),
        }
        let server = &mut self.servers[number];
        server.documents = Some(state.documents);
        server.data_bytes = state.data_bytes;
        server.storage_bytes = state.storage_bytes;
        Ok(())
    }

    fn warn_about_count(&mut self, found: u64) {
        let planned = self.plan.data.records;
        if found != planned {
            let message =
                format!("the collection holds {found} documents, `recordcount` says {planned}");
            self.hands.messages.warning(&message);
        }
    }

    /// Sizes after the run, and whether the documents that were written are there.
    fn look_back(&mut self, number: usize, control: &mut Control) {
        let limit = if self.hands.interrupt.requested() {
            // It has asked for the end already: what is left is this look, with a limit of its own.
            control.set_patience(Patience::new(|| false));
            LOOK_BACK_LIMIT_INTERRUPTED
        } else {
            LOOK_BACK_LIMIT
        };
        control.set_limit(Some(limit));
        let Ok(state) = prepare::collection_size(control, &self.plan.data) else {
            return;
        };
        let changes = self.document_changes(number);
        let server = &mut self.servers[number];
        server.data_bytes = state.data_bytes.or(server.data_bytes);
        server.storage_bytes = state.storage_bytes.or(server.storage_bytes);
        let before = server.documents.unwrap_or(0);
        self.documents_after.push(state.documents);
        if self.has_common_record() {
            return;
        }
        let caveat = count_caveat(self.plan, before, state.documents, &changes);
        match self.instances.get_mut(number) {
            None => self.caveats.extend(caveat),
            Some(instance) => {
                let of_instance = |caveat: Caveat| Caveat {
                    message: format!("instance {number}: {}", caveat.message),
                    ..caveat
                };
                self.caveats.extend(caveat.clone().map(of_instance));
                instance.caveats.extend(caveat);
            }
        }
    }

    /// Whether several servers have one record, as in a fleet: it does not tell which of them changed.
    fn has_common_record(&self) -> bool {
        self.servers.len() > 1 && self.instances.is_empty()
    }

    fn check_sum_of_documents(&mut self) {
        if !self.has_common_record() || self.documents_after.len() < self.servers.len() {
            return;
        }
        let before = self.servers.iter().filter_map(|server| server.documents);
        let (before, after) = (before.sum(), self.documents_after.iter().sum());
        let changes = self.document_changes(0);
        self.caveats
            .extend(count_caveat(self.plan, before, after, &changes));
    }

    fn document_changes(&self, number: usize) -> Changes {
        let mut changes = Changes::default();
        let recorder = match self.instances.get(number) {
            Some(instance) => &instance.recorder,
            None => &self.recorder,
        };
        for phase in recorder
            .phases()
            .iter()
            .filter(|phase| phase.name != PhaseKind::Load)
        {
            let count = |name: &str| {
                phase
                    .operations
                    .get(name)
                    .map_or(0, |operation| operation.count)
            };
            changes.inserted += count("insert");
            changes.deleted += count("delete");
            let unclear = ["timeout", "disconnected", "protocol", "cancelled", "driver"];
            changes.unclear += unclear
                .iter()
                .filter_map(|kind| phase.errors.get(*kind))
                .sum::<u64>();
        }
        changes
    }

    fn save_progress(&mut self) -> Result<(), Failure> {
        for (instance, server) in self.instances.iter_mut().zip(&self.servers) {
            instance.save(server)?;
        }
        self.document.instances = self.instances.iter().map(InstanceRun::to_record).collect();
        if let Some(board) = &self.board {
            let latest = board.look().into_iter();
            self.document.sources = latest.map(|latest| latest.record).collect();
        }
        self.recorder.save(&mut self.document)?;
        Ok(())
    }

    /// Completes the document, finds the caveats, and writes reports.
    fn save(mut self, fault: Option<Failure>) -> Result<Finished, Failure> {
        let interrupted = self.hands.interrupt.requested();
        let fault = fault.filter(|_| !interrupted);
        (self.document.status, self.document.status_reason) = match (&fault, interrupted) {
            (_, true) => (RunStatus::Partial, Some("interrupted by a signal".into())),
            (Some(fault), false) => (RunStatus::Failed, Some(reason(fault))),
            (None, false) => (RunStatus::Complete, None),
        };
        if let Some(feed) = &self.feed {
            feed.end(self.document.status);
        }
        let kind = match self.conduct.extent {
            Extent::Whole | Extent::BlindMix => PhaseKind::Measure,
            Extent::Load | Extent::BlindLoad => PhaseKind::Load,
        };
        let totals = self.recorder.totals(kind);
        let saved = self.write();
        let failure = match (saved, fault) {
            (Ok(saved), fault) => return self.finished(saved, totals, interrupted, fault),
            // The fault that ended the run is usually also why it cannot be saved.
            (Err(_), Some(fault)) => fault,
            (Err(failure), None) => failure,
        };
        let place = self.directory.display();
        self.hands.messages.note(&format!(
            "what was recorded is in `{place}`, `dyno report {place}` shows it"
        ));
        Err(failure)
    }

    fn finished(
        self,
        (run, analysis): Saved,
        totals: Totals,
        interrupted: bool,
        fault: Option<Failure>,
    ) -> Result<Finished, Failure> {
        let document = run.document.clone();
        let directory = self.directory;
        for instance in self.instances {
            instance.finish()?;
        }
        self.recorder.finish(&document)?;
        Ok(Finished {
            run,
            analysis,
            directory,
            totals,
            interrupted,
            fault,
        })
    }

    fn write(&mut self) -> Result<Saved, Failure> {
        for instance in &mut self.instances {
            instance.document.status = self.document.status;
            instance
                .document
                .status_reason
                .clone_from(&self.document.status_reason);
        }
        self.save_progress()?;
        if let Some(record) = &self.document.fleet {
            self.caveats.extend(fleet::caveats(record));
        }
        for instance in &mut self.instances {
            instance.write_reports()?;
        }
        let mut run = Run::open(&self.directory)?;
        output::find_caveats(&mut run, std::mem::take(&mut self.caveats));
        self.document.caveats.clone_from(&run.document.caveats);
        self.recorder.save(&mut self.document)?;
        let analysis = output::write_reports(&run)?;
        Ok((run, analysis))
    }
}

/// Time since the start of the run.
fn seconds(clock: &Clock) -> f64 {
    clock.now_ns() as f64 / 1e9
}

/// The engine counts the parties of its job, and people the servers.
fn of_party(error: LoadError, parties: &[Party]) -> Failure {
    match error {
        LoadError::Pair { pair, source } if parties.len() > pair => {
            let number = parties[pair].0;
            Failure::from(*source).context(format!("instance {number} failed"))
        }
        error => error.into(),
    }
}

/// A server that takes part in a phase: its number, and what is done with it.
type Party = (usize, Arc<Workload>);

/// Says of a failure whether a server of ours is the reason, and shows its last output.
fn explain(mut failure: Failure, lab: &mut Lab) -> Failure {
    if let Some((number, ended)) = lab.ended() {
        // Whatever failed then failed for this reason.
        let what = match (number, lab.servers.len()) {
            (Some(number), 2..) => {
                let address = lab.servers[number].address();
                format!("instance {number} at `{address}`: ")
            }
            _ if ended.name == "server" => String::new(),
            _ => format!("`{}`: ", ended.name),
        };
        let reason = format!("{what}the server ended by itself ({})", ended.status);
        failure = Failure::new(Exit::Environment, reason).context(failure.error.to_string());
        failure.log_tail = ended.log_tail;
    } else if failure.exit == Exit::Environment {
        failure.log_tail = lab.only_log_tail(LOG_TAIL_LINES);
    }
    failure
}

/// Passes the windows of single instances to their records.
fn record_instances(
    instances: &mut [InstanceRun],
    parties: &[Party],
    window: &engine::Window,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    if instances.is_empty() {
        return Ok(());
    }
    // With one party the engine has nothing to tell apart.
    if let [(number, _)] = parties {
        return instances[*number].recorder.record(&window.merged);
    }
    for ((number, _), interval) in parties.iter().zip(&window.pairs) {
        if let Some(interval) = interval {
            instances[*number].recorder.record(interval)?;
        }
    }
    Ok(())
}

/// What differs between the load phase and the rest.
struct JobPart {
    phases: Vec<PhaseSpec>,
    schedule: Schedule,
    clients: u32,
    retry: RetryRule,
    abort_on_failure: bool,
}

/// Documents that the phases after the load wrote and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changes {
    inserted: u64,
    deleted: u64,
    /// Operations of which nobody knows whether they took effect.
    unclear: u64,
}

/// A caveat if the number of documents is not what the acknowledged operations make of it.
fn count_caveat(plan: &Plan, before: u64, after: u64, changes: &Changes) -> Option<Caveat> {
    // An upsert does not tell an insert from a replacement.
    if plan.access.upsert && changes.inserted > 0 {
        return None;
    }
    let expected = (before + changes.inserted).saturating_sub(changes.deleted);
    // Operations that began in the warm-up and ended after it are in the statistics of no phase.
    let slack = changes.unclear + u64::from(plan.client.clients);
    (after.abs_diff(expected) > slack).then(|| Caveat {
        kind: CaveatKind::DocumentCount,
        message: format!(
            "the collection holds {after} documents after the run, {before} before it and the acknowledged operations make {expected}"
        ),
        hint: Some("somebody else may have written to it, or acknowledged writes were lost".into()),
        phase: None,
    })
}

/// The schedule of a throttled load. Its rate counts documents, the engine's counts commands; and
/// nothing may be dropped, as a dropped command is a part of the data set.
fn load_schedule(plan: &Plan) -> Schedule {
    let batch = f64::from(plan.client.batch.max(1));
    let max_start_delay = Span::from_secs(u64::from(u32::MAX));
    match plan.schedule {
        Schedule::Closed {} => Schedule::Closed {},
        Schedule::Constant { rate_per_s, .. } => Schedule::Constant {
            rate_per_s: rate_per_s / batch,
            max_start_delay,
        },
        Schedule::Poisson { rate_per_s, .. } => Schedule::Poisson {
            rate_per_s: rate_per_s / batch,
            max_start_delay,
        },
    }
}

/// What the metrics say of a run.
fn run_facts(plan: &Plan, directory: &Path, started: Timestamp) -> RunFacts {
    let name = directory.file_name().unwrap_or_default();
    let offered = plan.schedule.rate_per_s();
    RunFacts {
        name: plan.name.clone(),
        version: document::VERSION.to_owned(),
        server: match plan.server.kind {
            ServerKind::Embedded => "embedded",
            ServerKind::Mongod => "mongod",
            ServerKind::Uri => "uri",
        }
        .to_owned(),
        directory: name.to_string_lossy().into_owned(),
        started_s: started.as_millisecond() as f64 / 1e3,
        offered_rate_per_s: offered.map(|rate| rate * f64::from(plan.server.pairs.max(1))),
    }
}

/// Error and causes in one line, for the document.
fn reason(failure: &Failure) -> String {
    let chain: Vec<String> = failure.error.chain().map(ToString::to_string).collect();
    dyno_plan::uri::redact(&chain.join(": "))
}

/// CPU time and memory of this process, as the engine wants them.
pub(crate) fn usage() -> ProcessUsage {
    let usage = dyno_observe::process::usage_self();
    ProcessUsage {
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        max_rss_bytes: usage.max_rss_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let mut plan = dyno_plan::builtin::find("d").expect("it is built in");
        plan.client.clients = 2;
        plan
    }

    #[test]
    fn documents_that_were_acknowledged_and_are_missing_are_a_caveat() {
        let changes = Changes {
            inserted: 10,
            deleted: 3,
            unclear: 1,
        };
        assert_eq!(count_caveat(&plan(), 100, 107, &changes), None);
        assert_eq!(count_caveat(&plan(), 100, 104, &changes), None);
        let caveat = count_caveat(&plan(), 100, 103, &changes).expect("four are missing");
        assert_eq!(caveat.kind, CaveatKind::DocumentCount);
        assert!(
            caveat.message.contains("103") && caveat.message.contains("make 107"),
            "{}",
            caveat.message
        );
    }

    #[test]
    fn a_throttled_load_counts_documents_and_drops_none() {
        let mut plan = plan();
        plan.client.batch = 10;
        plan.schedule = Schedule::Constant {
            rate_per_s: 500.0,
            max_start_delay: Span::from_secs(1),
        };
        let Schedule::Constant {
            rate_per_s,
            max_start_delay,
        } = load_schedule(&plan)
        else {
            panic!("it stays constant")
        };
        assert_eq!(rate_per_s, 50.0);
        assert!(max_start_delay > Span::from_secs(1_000_000));
        plan.schedule = Schedule::Closed {};
        assert_eq!(load_schedule(&plan), Schedule::Closed {});
    }

    #[test]
    fn an_upsert_tells_nothing_about_the_number_of_documents() {
        let mut plan = plan();
        plan.access.upsert = true;
        assert_eq!(
            count_caveat(
                &plan,
                100,
                100,
                &Changes {
                    inserted: 50,
                    ..Changes::default()
                }
            ),
            None
        );
    }

    #[test]
    fn the_reason_in_the_document_has_no_credentials() {
        let failure = Failure::new(Exit::Environment, "mongodb://me:secret@h is gone")
            .context("the run failed");
        assert_eq!(reason(&failure), "the run failed: mongodb://***@h is gone");
    }
}
