//! One agent: it joins the meeting point, takes its share, waits at barriers, and reports its results. The caller does the work in
//! between, and asks [`Agent::check`] whether to continue.
//!
//! An agent never outlives the others: it ends within [`Agent::gone_within`] when the controller or Redis has gone.

mod listen;
mod send;

use crate::clock::{Offset, monotonic_ns};
use crate::endpoint::{ANSWER_WITHIN, Endpoint, STALL};
use crate::error::{FleetError, leaves_agent_alone, reason_with_log};
use crate::merge::Began;
use crate::names::RunName;
use crate::protocol::{
    Announcement, Down, HostFacts, Registration, Step, Up, Version, Work, decode, encode,
};
use crate::readings::{self, encode_reading};
use crate::shares::Share;
use crate::window::WindowEncoder;
use dyno_engine::Error;
use dyno_record::interval::IntervalRecord;
use dyno_record::metrics::MetricId;
pub(crate) use listen::{Clocks, ask, beat, keep, measure};
use listen::{Heard, Listener};
use send::{Outgoing, Sender};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Polling interval for states without a signal.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How to join a run.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    pub endpoint: Endpoint,
    pub run: RunName,
    /// Number of the agent, from 0.
    pub index: u32,
    /// Version of this program.
    pub version: Version,
    /// Facts that the host reports.
    pub host: HostFacts,
    /// Longest wait for Redis and the controller.
    pub join_within: Duration,
    /// Ends the agent with [`FleetError::Interrupted`] when set, such as by a signal.
    pub stop: Arc<AtomicBool>,
}

/// The common instant at which a stage begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub work: u32,
    pub step: Step,
    /// The instant on the clock of Redis, in nanoseconds since 1970.
    pub at_ns: i64,
    /// The instant on this host's monotonic clock, as known when the start message arrived.
    pub local_ns: i64,
    /// Uncertainty of `local_ns` in either direction, by the last round trip before; it grows with time, see
    /// [`Offset::uncertainty_ns`](crate::clock::Offset::uncertainty_ns). Later round trips are more accurate, so a stage may turn
    /// out to have begun early by as much.
    pub uncertainty_ns: u64,
}

/// State that an agent's threads share.
#[derive(Debug)]
struct Shared {
    stop: Arc<AtomicBool>,
    end: Mutex<Option<FleetError>>,
    /// Current action, for messages.
    last: Mutex<String>,
    /// Last answer of Redis, on the monotonic clock.
    heard_ns: AtomicI64,
    /// Work that was cancelled.
    cancelled: AtomicU32,
    clocks: Mutex<listen::Clocks>,
    lease: Duration,
    /// The threads are to end, in order.
    leaving: AtomicBool,
    /// Bound on unread messages of all agents in Redis.
    unread: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is replaced as a whole, so a thread that panicked leaves no partial update.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Ends the agent; the first reason counts.
    fn end(&self, reason: FleetError) {
        lock(&self.end).get_or_insert(reason);
        self.stop.store(true, Ordering::SeqCst);
    }

    fn silent(&self) -> Duration {
        let heard = self.heard_ns.load(Ordering::SeqCst);
        Duration::from_nanos(monotonic_ns().saturating_sub(heard).max(0) as u64)
    }

    fn last(&self) -> String {
        lock(&self.last).clone()
    }

    fn redis_gone(&self, reason: String) -> FleetError {
        FleetError::RedisGone { silent: self.silent(), reason, last: self.last() }
    }
}

/// An agent that has joined.
pub struct Agent {
    shared: Arc<Shared>,
    sender: Sender,
    inbox: Receiver<Heard>,
    encoder: WindowEncoder,
    readings: readings::Outlet,
    listening: Option<thread::JoinHandle<()>>,
    sending: Option<thread::JoinHandle<()>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Agent({})", self.shared.last())
    }
}

impl Agent {
    /// Joins the run: waits for Redis and the controller, compares versions, measures the clock offset, and registers.
    ///
    /// # Errors
    /// Redis or the controller is missing in time, versions differ, or another agent has the number.
    pub fn join(options: AgentOptions) -> Result<Self, FleetError> {
        let deadline = Instant::now() + options.join_within;
        let mut connection = loop {
            // Redis is asked once, without a retry.
            match options.endpoint.connect(STALL) {
                Ok(connection) => break connection,
                Err(error) if Instant::now() >= deadline => return Err(error),
                // If the agent is ended while waiting, report what it waited for.
                Err(error) => wait(&options).map_err(|_| error)?,
            }
        };
        let announcement = announcement(&mut connection, &options, deadline)?;
        let clocks = measure(&mut connection).map_err(|error| options.endpoint.error(&error))?;
        register(&mut connection, &options, &announcement, &clocks)?;
        if announcement.version != options.version {
            return Err(FleetError::Version {
                host: options.host.name,
                found: options.version.to_string(),
                expected: announcement.version.to_string(),
            });
        }
        let shared = Arc::new(Shared {
            stop: options.stop.clone(),
            end: Mutex::default(),
            last: Mutex::new("joined".into()),
            heard_ns: AtomicI64::new(monotonic_ns()),
            cancelled: AtomicU32::new(0),
            clocks: Mutex::new(clocks),
            lease: Duration::from_millis(announcement.lease_ms),
            leaving: AtomicBool::new(false),
            unread: AtomicU64::new(announcement.unread),
        });
        let (heard, inbox) = channel();
        let (sender, sending) = send::start(&options, shared.clone());
        let readings = readings::Outlet {
            endpoint: options.endpoint.clone(),
            run: options.run.clone(),
            index: options.index,
            unread: announcement.unread,
            keep: keep(shared.lease),
        };
        let listener = Listener::new(&options, announcement, shared.clone(), heard);
        drop(connection);
        let listening = thread::spawn(move || listener.run());
        Ok(Agent {
            shared,
            sender,
            inbox,
            encoder: WindowEncoder::default(),
            readings,
            listening: Some(listening),
            sending: Some(sending),
        })
    }

    /// Longest time from the loss of the controller or Redis to the end of this agent.
    pub fn gone_within(&self) -> Duration {
        self.shared.lease + beat(self.shared.lease) + 2 * ANSWER_WITHIN
    }

    /// Whether to continue. Call it several times per second while a load runs.
    ///
    /// # Errors
    /// The reason why the agent must end.
    pub fn check(&self) -> Result<(), FleetError> {
        if !self.shared.stop.load(Ordering::SeqCst) {
            // The listening thread may hang in a system call.
            if self.shared.silent() <= self.gone_within() {
                return Ok(());
            }
            let reason = "the connection hangs".to_owned();
            self.shared.end(self.shared.redis_gone(reason));
        }
        match &*lock(&self.shared.end) {
            Some(error) => Err(error.clone()),
            None => Err(FleetError::Interrupted),
        }
    }

    /// Whether a work was cancelled. The load must end; other work may follow.
    pub fn is_cancelled(&self, work: u32) -> bool {
        self.shared.cancelled.load(Ordering::SeqCst) >= work
    }

    /// The next work and this agent's share of it; `None` when there is no more.
    ///
    /// # Errors
    /// The run has ended, or no message came within `within`.
    pub fn next_work(&self, within: Duration) -> Result<Option<(Work, Share)>, FleetError> {
        let deadline = Instant::now() + within;
        loop {
            match self.hear(deadline, "give work", within)? {
                Heard::Work(work, share) => return Ok(Some((work, share))),
                Heard::Said(Down::Finish) => return Ok(None),
                // Belongs to work that has ended.
                Heard::Said(_) => {}
            }
        }
    }

    /// Reports that a stage can begin, and waits for the common instant; `None` if the work was cancelled.
    ///
    /// # Errors
    /// The run has ended, no message came within `within`, or it came after the instant.
    pub fn wait_start(
        &self,
        work: u32,
        step: Step,
        within: Duration,
    ) -> Result<Option<Start>, FleetError> {
        self.say(Up::Ready { work, step }, &format!("ready for {step}"))?;
        let deadline = Instant::now() + within;
        loop {
            let Heard::Said(said) = self.hear(deadline, &format!("start {step}"), within)? else {
                continue;
            };
            match said {
                Down::Start { work: number, step: begun, at_ns }
                    if (number, begun) == (work, step) =>
                {
                    return self.start(work, step, at_ns).map(Some);
                }
                Down::Cancel { work: number, .. } if number >= work => return Ok(None),
                _ => {}
            }
        }
    }

    fn start(&self, work: u32, step: Step, at_ns: i64) -> Result<Start, FleetError> {
        let offset = self.monotonic_offset();
        let local_ns = offset.to_local_ns(at_ns);
        let late_ns = monotonic_ns() - local_ns;
        if late_ns > 0 {
            let late = Duration::from_nanos(late_ns as u64);
            return Err(FleetError::StartPassed { step, late });
        }
        Ok(Start { work, step, at_ns, local_ns, uncertainty_ns: offset.uncertainty_ns })
    }

    fn hear(&self, deadline: Instant, step: &str, within: Duration) -> Result<Heard, FleetError> {
        loop {
            self.check()?;
            match self.inbox.recv_timeout(LOOK_EVERY) {
                Ok(heard) => return Ok(heard),
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    let step = step.to_owned();
                    return Err(FleetError::NoWord { step, within });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.check()?;
                    return Err(self.shared.redis_gone("the connection has ended".into()));
                }
            }
        }
    }

    /// Offset from this host's monotonic clock to the clock of Redis, by the newest round trips.
    pub fn monotonic_offset(&self) -> Offset {
        lock(&self.shared.clocks).monotonic()
    }

    /// Reports the current action, for messages if the agent falls silent.
    ///
    /// # Errors
    /// The run has ended.
    pub fn doing(&self, what: &str) -> Result<(), FleetError> {
        let what = what.to_owned();
        self.say(Up::Doing { what: what.clone() }, &what)
    }

    /// Reports the actual beginning of a stage on this host's monotonic clock, and the origin of its windows in nanoseconds after
    /// the common instant.
    ///
    /// # Errors
    /// The run has ended.
    pub fn begun(
        &self,
        start: &Start,
        began_ns: i64,
        windows_from_ns: i64,
    ) -> Result<(), FleetError> {
        let offset = self.monotonic_offset();
        let message = Up::Begun {
            work: start.work,
            step: start.step,
            began: Began {
                late_ns: offset.to_remote_ns(began_ns) - start.at_ns,
                uncertainty_ns: offset.uncertainty_ns,
                windows_from_ns,
            },
        };
        self.say(message, &start.step.to_string())
    }

    /// Queues a window of the load on `server` for sending; does not wait.
    ///
    /// # Errors
    /// The run has ended, or Redis accepts no more messages.
    pub fn window(
        &mut self,
        work: u32,
        server: u32,
        window: &IntervalRecord,
    ) -> Result<(), FleetError> {
        let blob = self.encoder.encode(window);
        let last = format!("window {} of {}", window.index, window.phase.as_str());
        self.put(encode(&Up::Window { work, server, window }), blob, &last)
    }

    /// Reports that no more windows of a server follow in this work.
    ///
    /// # Errors
    /// The run has ended.
    pub fn server_done(&self, work: u32, server: u32) -> Result<(), FleetError> {
        let last = format!("done with server {server}");
        self.say(Up::ServerDone { work, server }, &last)
    }

    /// A sender for readings of this host, for use in another thread. Drop it before this agent leaves.
    pub fn readings(&self) -> Readings {
        Readings { shared: self.shared.clone(), outlet: self.readings.clone(), connection: None }
    }

    /// Reports the end of a stage, with this agent's record.
    ///
    /// # Errors
    /// The run has ended.
    pub fn done(
        &self,
        work: u32,
        step: Step,
        summary: serde_json::Value,
    ) -> Result<(), FleetError> {
        let realtime = lock(&self.shared.clocks).realtime();
        let message = Up::Done { work, step, summary, realtime };
        self.say(message, &format!("{step} has ended"))
    }

    /// Reports an error, and ends the agent.
    pub fn fail(mut self, reason: &str) {
        let reason = reason.to_owned();
        self.end_with(Up::Failed { reason });
    }

    /// Ends in order: queued messages are delivered first, if Redis answers within the lease.
    pub fn leave(mut self) {
        self.end_with(Up::Bye);
    }

    /// Ends in order, or reports the error of its work.
    pub(crate) fn end(self, result: &Result<(), Error>) {
        match result {
            Ok(()) => self.leave(),
            // If the others have gone, the report would have no receiver.
            Err(error) if leaves_agent_alone(error) => drop(self),
            Err(error) => self.fail(&reason_with_log(error)),
        }
    }

    /// Sends the last message after the last lease renewal, so that nothing is written after the controller has cleaned up.
    fn end_with(&mut self, word: Up) {
        self.shared.leaving.store(true, Ordering::SeqCst);
        // A thread that panicked has ended as well, and the message may have no receiver.
        let _ = self.listening.take().map(thread::JoinHandle::join);
        let text = encode(&word);
        let blob = Vec::new();
        let _ = self.sender.put(Outgoing { text, blob });
        self.sender.close();
        let _ = self.sending.take().map(thread::JoinHandle::join);
    }

    fn say(&self, message: Up, last: &str) -> Result<(), FleetError> {
        self.put(encode(&message), Vec::new(), last)
    }

    fn put(&self, text: String, blob: Vec<u8>, last: &str) -> Result<(), FleetError> {
        self.check()?;
        *lock(&self.shared.last) = last.to_owned();
        if self.sender.put(Outgoing { text, blob }) {
            return Ok(());
        }
        let error = self.shared.redis_gone("messages are not taken".into());
        self.shared.end(error.clone());
        Err(error)
    }
}

/// Sends host readings. Lost readings never delay a run.
pub struct Readings {
    shared: Arc<Shared>,
    outlet: readings::Outlet,
    connection: Option<redis::Connection>,
}

impl Readings {
    /// Whether the agent ends or has left: nothing more is sent.
    pub fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::SeqCst) || self.shared.leaving.load(Ordering::SeqCst)
    }

    /// Sends a reading with its instant on this host's monotonic clock. `account` is for the caller of the controller.
    ///
    /// # Errors
    /// Redis does not accept the reading; a later one may succeed.
    pub fn send(
        &mut self,
        read_ns: i64,
        values: &[(MetricId, f64)],
        account: serde_json::Value,
    ) -> Result<(), FleetError> {
        if self.is_over() {
            return Ok(());
        }
        let at_ns = lock(&self.shared.clocks).monotonic().to_remote_ns(read_ns);
        self.outlet.send(&mut self.connection, &encode_reading(at_ns, values, account))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.leaving.store(true, Ordering::SeqCst);
    }
}

/// Waits a moment; fails if the agent was asked to end.
fn wait(options: &AgentOptions) -> Result<(), FleetError> {
    thread::sleep(LOOK_EVERY * 10);
    if options.stop.load(Ordering::SeqCst) { Err(FleetError::Interrupted) } else { Ok(()) }
}

fn announcement(
    connection: &mut redis::Connection,
    options: &AgentOptions,
    deadline: Instant,
) -> Result<Announcement, FleetError> {
    loop {
        let found: Option<Vec<u8>> = redis::cmd("GET")
            .arg(options.run.controller())
            .query(connection)
            .map_err(|error| options.endpoint.error(&error))?;
        if let Some(text) = found {
            return decode(&text, "the controller");
        }
        if Instant::now() >= deadline {
            return Err(FleetError::NoWord { step: "come".into(), within: options.join_within });
        }
        wait(options)?;
    }
}

fn register(
    connection: &mut redis::Connection,
    options: &AgentOptions,
    announcement: &Announcement,
    clocks: &listen::Clocks,
) -> Result<(), FleetError> {
    let failed = |error: redis::RedisError| options.endpoint.error(&error);
    let registration = Registration {
        version: options.version.clone(),
        index: options.index,
        host: options.host.clone(),
        realtime: clocks.realtime(),
    };
    let now_us = clocks.monotonic().to_remote_ns(monotonic_ns()) / 1_000;
    let keep = keep(Duration::from_millis(announcement.lease_ms)).as_millis() as u64;
    let (agents, beats) = (options.run.agents(), options.run.beats());
    let (is_new,): (bool,) = redis::pipe()
        .hset_nx(&agents, options.index, encode(&registration))
        .pexpire(&agents, keep as i64)
        .ignore()
        .query(connection)
        .map_err(failed)?;
    if !is_new {
        let other: Vec<u8> =
            redis::cmd("HGET").arg(&agents).arg(options.index).query(connection).map_err(failed)?;
        let other: Registration = decode(&other, "the other agent")?;
        return Err(FleetError::IndexTaken {
            run: options.run.to_string(),
            index: options.index,
            host: other.host.name,
        });
    }
    redis::pipe()
        .zadd(&beats, options.index, now_us)
        .ignore()
        .pexpire(&beats, keep as i64)
        .ignore()
        .query(connection)
        .map_err(failed)
}
