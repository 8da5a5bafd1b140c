//! The course of a session: run directory, server, collection, phases, and the saved run, in this
//! order, with everything taken back when nothing was recorded and everything kept once it was.

mod documents;
mod phases;
mod saving;

use crate::exit::{Exit, Failure};
use crate::fleet::{Fleet, Relays};
use crate::interrupt::Interrupt;
use crate::messages::Messages;
use crate::metrics::{Feed, Metrics, RunFacts};
use crate::session::collection::{self, Wishes};
use crate::session::directory::RunDirectory;
use crate::session::guard::{Guard, SYNC_EVERY};
use crate::session::instance::InstanceRun;
use crate::session::lab::{self, Lab};
use crate::session::live::Live;
use crate::session::place::Place;
use crate::session::recorder::{Recorder, Totals, Watch};
use crate::session::server::{ServerPlaces, ServerUnderTest, data_folder, kind_name};
use crate::session::steering::Steering;
use crate::session::task::Task;
use crate::session::{document, observation, preflight};
use crate::surroundings::Surroundings;
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_load::backend::RetryRule;
use dyno_load::clock::Clock;
use dyno_load::connect::Control;
use dyno_load::engine;
use dyno_load::prepare;
use dyno_load::workload::Workload;
use dyno_observe::doctor::{self, Subject};
use dyno_observe::watch::{Board, OutputOptions, Watcher};
use dyno_plan::Plan;
use dyno_plan::model::PageCache;
use dyno_record::model::{Caveat, FleetRecord, PhaseEdge, RunDocument, ServerRecord};
use dyno_record::reader::Run;
use dyno_record::verdict::CheckName;
use dyno_record::writer::RunWriter;
use jiff::Timestamp;
pub(crate) use phases::usage;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longest time for a command before a run: long for a look, and short enough to find out that a server hangs.
const SET_UP_LIMIT: Duration = Duration::from_secs(60);

/// Longest time to drop a collection.
const DROP_LIMIT: Duration = Duration::from_secs(600);

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
    preflight::machine(task, hands)?;
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
    /// Where what its agents read of their hosts goes, while it is watched.
    relays: RefCell<Option<Relays>>,
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
        let writer = RunWriter::create(directory, &task.plan_text(), &document)?;
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
            relays: RefCell::default(),
            caveats: dyno_observe::health::caveat(&observation.probes)
                .into_iter()
                .collect(),
        })
    }

    /// Everything between the run directory and the saved run. The servers are gone when it returns.
    fn perform(&mut self, lab: Option<&mut Lab>) -> Result<(), Failure> {
        self.hands.interrupt.check()?;
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
        let keep = OutputOptions {
            run_directory: self.directory.clone(),
            readings_per_row: observation::per_row(self.plan, self.plan.observe.interval.0),
            sync_every,
        };
        let watcher = observation::start(self.plan, lab, folder, &keep, self.clock)?;
        let board = watcher.as_ref().map(Watcher::board);
        self.relays = RefCell::new(match (&board, self.hands.fleet) {
            (Some(board), Some(_)) if self.plan.observe.host => {
                let interval = self.plan.observe.interval.0;
                Some(Relays::new(board.clone(), keep, interval, self.clock))
            }
            _ => None,
        });
        self.set_board(board);
        let result = self.work(lab, controls);
        if let Some(relays) = self.relays.take() {
            relays.end();
        }
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
            return Err(preflight::page_cache_of_others());
        }
        dyno_observe::environment::drop_page_cache().map_err(preflight::page_cache_stays)
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
        let mut verdicts = doctor::examine(&facts);
        if self.hands.fleet.is_some() && self.task.remote.is_none() {
            // Servers that other hosts are to reach cannot listen on this one alone; docs/fleet.md says where that is safe.
            verdicts.retain(|verdict| verdict.check != CheckName::BindAddress);
        }
        self.document.environment.doctor = verdicts;
    }

    /// Puts what is known of the servers into the document.
    fn document_servers(&mut self) {
        self.document.server = document::server_of_all(&self.servers);
    }
}

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

/// What the metrics say of a run.
fn run_facts(plan: &Plan, directory: &Path, started: Timestamp) -> RunFacts {
    let name = directory.file_name().unwrap_or_default();
    let offered = plan.schedule.rate_per_s();
    RunFacts {
        name: plan.name.clone(),
        version: document::VERSION.to_owned(),
        server: kind_name(plan.server.kind).to_owned(),
        directory: name.to_string_lossy().into_owned(),
        started_s: started.as_millisecond() as f64 / 1e3,
        offered_rate_per_s: offered.map(|rate| rate * f64::from(plan.server.pairs.max(1))),
    }
}
