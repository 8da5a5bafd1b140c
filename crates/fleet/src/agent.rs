//! One agent: it comes to the meeting point, takes its share, waits at barriers, and tells what it measured. What it does
//! in between is its caller's; the caller asks [`Agent::check`] whether to go on.
//!
//! An agent never outlives the others: it ends by itself within [`Agent::gone_within`] when the controller or Redis has gone.

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
use crate::readings::{self, ReadingEncoder};
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

/// How often something that has no signal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How to come to a run.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Where Redis is.
    pub endpoint: Endpoint,
    /// The run.
    pub run: RunName,
    /// Number of the agent, from 0.
    pub index: u32,
    /// Version of this program.
    pub version: Version,
    /// What the host tells of itself.
    pub host: HostFacts,
    /// Longest time until Redis answers and the controller is there.
    pub join_within: Duration,
    /// Set, as by a signal, it ends the agent with [`FleetError::Interrupted`].
    pub stop: Arc<AtomicBool>,
}

/// The common instant at which a stage begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of the work.
    pub work: u32,
    /// The stage.
    pub step: Step,
    /// The instant on the clock of Redis, in nanoseconds from 1970.
    pub at_ns: i64,
    /// The instant on the monotonic clock of this host, as far as it was known when the start was heard of.
    pub local_ns: i64,
    /// How far off `local_ns` may be, either way, by the last round trip before; see
    /// [`Offset::uncertainty_ns`](crate::clock::Offset::uncertainty_ns) for what time adds. Later round trips know better, so a
    /// stage may turn out to have begun early by as much.
    pub uncertainty_ns: u64,
}

/// What the threads of an agent share.
#[derive(Debug)]
struct Shared {
    stop: Arc<AtomicBool>,
    end: Mutex<Option<FleetError>>,
    /// What it does, for messages.
    last: Mutex<String>,
    /// When Redis was heard of last, on the monotonic clock.
    heard_ns: AtomicI64,
    /// Work that is not wanted any more.
    cancelled: AtomicU32,
    clocks: Mutex<listen::Clocks>,
    lease: Duration,
    /// The threads are to end, in order.
    leaving: AtomicBool,
    /// Messages of all agents that stay in Redis unread.
    unread: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is replaced as a whole, so that a thread that panicked leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The first reason counts.
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
        FleetError::RedisGone {
            silent: self.silent(),
            reason,
            last: self.last(),
        }
    }
}

/// An agent that has come.
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
    /// Comes to the run: waits for Redis and the controller, compares versions, measures its clock, and registers.
    ///
    /// # Errors
    /// Redis or the controller is not there in time, versions differ, or another agent has the number.
    pub fn join(options: AgentOptions) -> Result<Self, FleetError> {
        let deadline = Instant::now() + options.join_within;
        let mut connection = loop {
            // Its questions are asked once.
            match options.endpoint.connect(STALL) {
                Ok(connection) => break connection,
                Err(error) if Instant::now() >= deadline => return Err(error),
                // Who is ended meanwhile tells what it waited for.
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

    /// Longest time from the end of the controller or of Redis to the stop of this agent.
    pub fn gone_within(&self) -> Duration {
        self.shared.lease + beat(self.shared.lease) + 2 * ANSWER_WITHIN
    }

    /// Whether to go on. To be asked several times per second while a load runs.
    ///
    /// # Errors
    /// Why the agent must end.
    pub fn check(&self) -> Result<(), FleetError> {
        if !self.shared.stop.load(Ordering::SeqCst) {
            // The thread that listens may hang in the system itself.
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

    /// Whether a work is not wanted any more; the load is to end, and there may be other work.
    pub fn is_cancelled(&self, work: u32) -> bool {
        self.shared.cancelled.load(Ordering::SeqCst) >= work
    }

    /// The next work and the share of this agent in it; `None` when there is no more.
    ///
    /// # Errors
    /// The run has ended, or there is no word within `within`.
    pub fn next_work(&self, within: Duration) -> Result<Option<(Work, Share)>, FleetError> {
        let deadline = Instant::now() + within;
        loop {
            match self.hear(deadline, "give work", within)? {
                Heard::Work(work, share) => return Ok(Some((work, share))),
                Heard::Said(Down::Finish) => return Ok(None),
                // Of a work that has ended.
                Heard::Said(_) => {}
            }
        }
    }

    /// Says that a stage can begin, and waits for the common instant; `None` if the work was cancelled.
    ///
    /// # Errors
    /// The run has ended, there is no word within `within`, or it came after the instant.
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
                Down::Start {
                    work: number,
                    step: begun,
                    at_ns,
                } if (number, begun) == (work, step) => {
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
        Ok(Start {
            work,
            step,
            at_ns,
            local_ns,
            uncertainty_ns: offset.uncertainty_ns,
        })
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

    /// Offset of the monotonic clock of this host to the clock of Redis, by the newest round trips.
    pub fn monotonic_offset(&self) -> Offset {
        lock(&self.shared.clocks).monotonic()
    }

    /// Tells what it does now, for the case that nothing more is heard of it.
    ///
    /// # Errors
    /// The run has ended.
    pub fn doing(&self, what: &str) -> Result<(), FleetError> {
        let what = what.to_owned();
        self.say(Up::Doing { what: what.clone() }, &what)
    }

    /// Tells when a stage really began, on the monotonic clock of this host, and what its windows count from, in nanoseconds
    /// after the common instant.
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

    /// Sends a window of the load on `server`. It waits for nobody: the window is on its way when this returns.
    ///
    /// # Errors
    /// The run has ended, or Redis takes nothing any more.
    pub fn window(
        &mut self,
        work: u32,
        server: u32,
        window: &IntervalRecord,
    ) -> Result<(), FleetError> {
        let (header, blob) = self.encoder.encode(window);
        let last = format!("window {} of {}", window.index, window.phase.as_str());
        let message = Up::Window {
            work,
            server,
            window: header,
        };
        self.put(message, blob, &last)
    }

    /// Tells that no more windows of a server come in this work.
    ///
    /// # Errors
    /// The run has ended.
    pub fn server_done(&self, work: u32, server: u32) -> Result<(), FleetError> {
        let last = format!("done with server {server}");
        self.say(Up::ServerDone { work, server }, &last)
    }

    /// A way for readings of this host, for a thread of its own. It is to be dropped before this agent leaves.
    pub fn readings(&self) -> Readings {
        Readings {
            shared: self.shared.clone(),
            sender: readings::Sender::new(
                self.readings.clone(),
                ReadingEncoder::new(monotonic_ns() as u64),
            ),
        }
    }

    /// Tells that a stage has ended, with the record of this agent.
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
        let message = Up::Done {
            work,
            step,
            summary,
            realtime,
        };
        self.say(message, &format!("{step} has ended"))
    }

    /// Tells that this agent ends because of an error, and ends.
    pub fn fail(mut self, reason: &str) {
        let reason = reason.to_owned();
        self.end_with(Up::Failed { reason });
    }

    /// Ends in order: what was said arrives first, if Redis is there within the lease.
    pub fn leave(mut self) {
        self.end_with(Up::Bye);
    }

    /// Ends as its work did: in order, or with an error that the controller hears of.
    pub(crate) fn end(self, result: &Result<(), Error>) {
        match result {
            Ok(()) => self.leave(),
            // If the others are gone, there is nobody to report to.
            Err(error) if leaves_agent_alone(error) => drop(self),
            Err(error) => self.fail(&reason_with_log(error)),
        }
    }

    /// The last word comes after the last sign of life, so that nothing is written once the controller has cleaned up.
    fn end_with(&mut self, word: Up) {
        self.shared.leaving.store(true, Ordering::SeqCst);
        // A thread that panicked has ended too, and nobody may be there to hear the word.
        let _ = self.listening.take().map(thread::JoinHandle::join);
        let text = encode(&word);
        let blob = Vec::new();
        let _ = self.sender.put(Outgoing { text, blob });
        self.sender.close();
        let _ = self.sending.take().map(thread::JoinHandle::join);
    }

    fn say(&self, message: Up, last: &str) -> Result<(), FleetError> {
        self.put(message, Vec::new(), last)
    }

    fn put(&self, message: Up, blob: Vec<u8>, last: &str) -> Result<(), FleetError> {
        self.check()?;
        *lock(&self.shared.last) = last.to_owned();
        let text = encode(&message);
        if self.sender.put(Outgoing { text, blob }) {
            return Ok(());
        }
        let error = self.shared.redis_gone("messages are not taken".into());
        self.shared.end(error.clone());
        Err(error)
    }
}

/// Sends readings of a host. What cannot be sent is lost: they never hold up a run.
pub struct Readings {
    shared: Arc<Shared>,
    sender: readings::Sender,
}

impl Readings {
    /// Whether the agent is to end, or has left: nothing is sent any more.
    pub fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::SeqCst) || self.shared.leaving.load(Ordering::SeqCst)
    }

    /// Sends what was read at an instant of the monotonic clock of this host. `account` is for the caller of the controller.
    ///
    /// # Errors
    /// Redis does not take it; a later one may go again.
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
        self.sender.send(at_ns, values, account)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.shared.leaving.store(true, Ordering::SeqCst);
    }
}

/// A moment, while nothing has asked for the end.
fn wait(options: &AgentOptions) -> Result<(), FleetError> {
    thread::sleep(LOOK_EVERY * 10);
    if options.stop.load(Ordering::SeqCst) {
        Err(FleetError::Interrupted)
    } else {
        Ok(())
    }
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
            return Err(FleetError::NoWord {
                step: "come".into(),
                within: options.join_within,
            });
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
        token: u64::from(std::process::id()) << 32 | (monotonic_ns() as u64 & 0xffff_ffff),
        host: options.host.clone(),
        realtime: clocks.realtime(),
        monotonic: clocks.monotonic(),
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
        let other: Vec<u8> = redis::cmd("HGET")
            .arg(&agents)
            .arg(options.index)
            .query(connection)
            .map_err(failed)?;
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
