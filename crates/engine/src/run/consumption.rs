//! Reads the counters of servers, devices and processors at the start and the end of each phase, on
//! a separate thread, because nothing else waits for the end of a warm-up.
//!
//! The first phase is read shortly before it starts, when the servers are idle; a following phase
//! at its planned start; and the end when the last operation has ended.

pub(super) mod fleet;
mod work;

use super::observation::{Asker, server_processes};
use super::trace::Over;
use crate::cancel::Cancel;
use crate::deployment::server::ServerUnderTest;
use crate::deployment::{DeploymentUnderTest, WatchedServer};
use dyno_load::clock::Clock;
use dyno_load::connect::Connector;
use dyno_load::job::OnEnded;
use dyno_observe::consumption::{
    ConsumptionCounters, ConsumptionSubject, CountersAt, Known, ServerCounters, consumption,
    server_counters, write_back,
};
use dyno_record::consumption::{Consumption, Counted, Unknown};
use dyno_record::model::PhaseKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub use work::{EndedWork, StartedMeter, WorkMeter};

/// Interval for counters that wrap around. The smallest ones wrap within a minute at the highest
/// power.
const FOLLOW_EVERY: Duration = Duration::from_secs(10);

/// Longest time until a server has written everything to its files.
const WRITE_BACK_LIMIT: Duration = Duration::from_secs(120);

/// How long before the first phase its counters are read: about the time of a server command.
const AHEAD: Duration = Duration::from_millis(5);

/// Reason with `observe.server = false`.
const NOT_ASKED: &str = "the servers were not queried (`observe.server = false`)";

/// Kinds of the phases and their starts by the run's clock.
pub(super) type Starts = Vec<(PhaseKind, u64)>;

/// Reads the counters of the phases that are about to start.
pub(super) struct ConsumptionMeter {
    over: Arc<Over>,
    starts: Sender<Starts>,
    thread: JoinHandle<Reader>,
}

/// State of the thread.
struct Reader {
    counters: ConsumptionCounters,
    servers: Vec<Asker>,
    /// Why no server is queried, if so.
    not_asked: Option<String>,
    clock: Clock,
    /// The counters at the start of each phase, and at the end of the last one.
    readings: Vec<(Option<PhaseKind>, CountersAt)>,
}

impl ConsumptionMeter {
    /// Starts the thread, which waits for the starts of the phases.
    pub(super) fn new(
        deployment: &DeploymentUnderTest,
        data_folders: &[PathBuf],
        asks: bool,
        clock: Clock,
    ) -> Self {
        let subject = subject(deployment, data_folders);
        let servers = match asks {
            true => deployment.data_servers(),
            false => Vec::new(),
        };
        let servers = servers.into_iter().map(|one| one.connector);
        let not_asked = (!asks).then(|| NOT_ASKED.to_owned());
        let mut reader = Reader::new(subject, servers, not_asked, clock);
        let over = Arc::<Over>::default();
        let (starts, planned) = mpsc::channel();
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            reader.follow(&planned, &until);
            reader
        });
        ConsumptionMeter { over, starts, thread }
    }

    /// Channel for the starts of the phases, once they are known.
    pub(super) fn starts(&self) -> Sender<Starts> {
        self.starts.clone()
    }

    /// Callback for the end of the last operation, which triggers the last reading.
    pub(super) fn on_ended(&self) -> OnEnded {
        let over = Arc::clone(&self.over);
        Box::new(move || over.end())
    }

    /// Waits for the last reading. Phases that have not ended count as ended.
    pub(super) fn end(self) -> EndedMeter {
        self.over.end();
        drop(self.starts);
        EndedMeter { reader: self.thread.join().ok() }
    }
}

/// The counters of ended phases.
pub(super) struct EndedMeter {
    reader: Option<Reader>,
}

impl EndedMeter {
    /// Consumption of the phases. With `writes_back`, the servers first write their pending changes
    /// to their files, and the bytes are counted; other observers of the phases should have ended.
    pub(super) fn finish(self, writes_back: bool, cancel: &Cancel) -> Vec<Consumption> {
        let Some(mut reader) = self.reader else {
            return Vec::new();
        };
        let mut found = reader.found();
        if let (Some(last), true) = (found.last_mut(), writes_back) {
            reader.write_back(last, cancel);
        }
        found
    }
}

/// Note while servers write their pending changes.
pub(super) const WRITING_BACK: &str = "the servers write their changes to their files";

/// Makes servers write all changes to their files. On a failure the server writes them later.
pub(super) fn write_all(servers: Vec<WatchedServer>, cancel: &Cancel) {
    for server in servers {
        let mut server = Asker::new(server.connector);
        if let Err(reason) = write_back(server.patient(WRITE_BACK_LIMIT, cancel)) {
            tracing::debug!("cannot make a server write its changes: {reason}");
        }
    }
}

fn subject(deployment: &DeploymentUnderTest, data_folders: &[PathBuf]) -> ConsumptionSubject {
    let is_local = deployment.servers.iter().all(ServerUnderTest::is_local);
    let elsewhere = || "the servers run on another machine".to_owned();
    let processes = server_processes(deployment);
    ConsumptionSubject {
        processes,
        data_folders: match is_local {
            true => Ok(data_folders.to_vec()),
            false => Err(elsewhere()),
        },
        is_local,
    }
}

/// Counters that servers report, or the reason without queries.
fn ask(servers: &mut [Asker], not_asked: Option<&str>) -> Vec<Known<ServerCounters>> {
    match not_asked {
        Some(reason) => vec![Err(reason.to_owned())],
        None => servers.iter_mut().map(|one| server_counters(one)).collect(),
    }
}

impl Reader {
    /// Opens its connections now, so that the first reading does not wait for them.
    fn new(
        subject: ConsumptionSubject,
        servers: impl Iterator<Item = Connector>,
        not_asked: Option<String>,
        clock: Clock,
    ) -> Self {
        let counters = ConsumptionCounters::new(Path::new("/"), subject);
        let mut servers: Vec<Asker> = servers.map(Asker::new).collect();
        drop(ask(&mut servers, not_asked.as_deref()));
        Reader { counters, servers, not_asked, clock, readings: Vec::new() }
    }

    /// Reads at the start of each phase and at the end.
    fn follow(&mut self, planned: &Receiver<Starts>, over: &Over) {
        // Without phases there is nothing to read.
        let Ok(starts) = planned.recv() else { return };
        for (place, (phase, start_ns)) in starts.into_iter().enumerate() {
            let ahead_ns = if place == 0 { AHEAD.as_nanos() as u64 } else { 0 };
            let due_ns = start_ns.saturating_sub(ahead_ns);
            let wait_ns = due_ns.saturating_sub(self.clock.now_ns());
            let start = Instant::now() + Duration::from_nanos(wait_ns);
            // A phase after an unlimited one has no start time.
            if start_ns == u64::MAX || self.wait_until(Some(start), over) {
                break;
            }
            self.read(Some(phase));
        }
        self.wait_until(None, over);
        self.read(None);
    }

    /// Waits until the time or until the phases have ended. Returns whether they have.
    fn wait_until(&mut self, due: Option<Instant>, over: &Over) -> bool {
        loop {
            let next = Instant::now() + FOLLOW_EVERY;
            let due = due.filter(|due| *due <= next);
            if over.wait_until(due.unwrap_or(next)) {
                return true;
            }
            if due.is_some() {
                return false;
            }
            self.counters.keep_up();
        }
    }

    fn read(&mut self, phase: Option<PhaseKind>) {
        let clock = self.clock;
        let now_s = || clock.now_ns() as f64 / 1e9;
        let (servers, not_asked) = (&mut self.servers, self.not_asked.as_deref());
        let mut ask = || ask(servers, not_asked);
        let reading = self.counters.read(&now_s, &mut ask);
        self.readings.push((phase, reading));
    }

    fn found(&self) -> Vec<Consumption> {
        let pairs = self.readings.windows(2);
        let of_phase = |pair: &[(Option<PhaseKind>, CountersAt)]| {
            Some(consumption(pair[0].0?, &pair[0].1, &pair[1].1))
        };
        pairs.filter_map(of_phase).collect()
    }

    /// Makes the servers write their changes, and records the bytes.
    fn write_back(&mut self, last: &mut Consumption, cancel: &Cancel) {
        let before = self.readings.last();
        let before_bytes = before.and_then(|(_, reading)| reading.written_bytes());
        let (Some(before_bytes), Some(device)) = (before_bytes, &mut last.device) else {
            return;
        };
        let asked: Known<()> = self
            .servers
            .iter_mut()
            .try_for_each(|server| write_back(server.patient(WRITE_BACK_LIMIT, cancel)));
        let none = self.servers.is_empty();
        let asked = match (none, &self.not_asked) {
            (true, Some(reason)) => Err(reason.clone()),
            _ => asked,
        };
        match asked.and_then(|()| self.counters.written_bytes()) {
            Ok(bytes) => device.deferred_bytes = bytes.checked_sub(before_bytes),
            Err(reason) => last.unknown.push(Unknown { what: Counted::Deferred, reason }),
        }
    }
}
