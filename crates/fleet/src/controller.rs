//! The controller: waits for the agents, distributes the shares, starts each stage, reads the results, and cleans up. Every wait
//! has a deadline, and every failure names the host and its last action.

mod lease;
mod roster;

use crate::agent::{Clocks, Start, ask, keep, measure};
use crate::clock::{Offset, monotonic_ns};
use crate::endpoint::{Endpoint, Reply};
use crate::error::FleetError;
use crate::merge::Began;
use crate::names::RunName;
use crate::protocol::{Announcement, Down, Registration, Step, Up, Version, Work, decode, encode};
use crate::readings::{HostReading, Inlet};
use crate::shares::Share;
use crate::window::WindowDecoder;
use dyno_engine::Cancel;
use dyno_plan::operation::Operations;
use dyno_record::interval::IntervalRecord;
use lease::Lease;
use redis::{Connection, RedisError};
use roster::Roster;
use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

/// Longest single wait for messages.
const BLOCK: Duration = Duration::from_millis(100);
/// Messages that are read at once.
const BATCH: u64 = 256;
/// Unread messages kept in Redis for each agent and server that it loads, and the minimum for all.
const UNREAD: (u64, u64) = (20, 2_000);
/// Messages to all agents kept in Redis; an agent that is further behind has missed a run.
const WORDS: u64 = 1_000;

/// How to open a run.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    pub endpoint: Endpoint,
    pub run: RunName,
    /// Version of this program.
    pub version: Version,
    /// Longest silence of an agent or controller.
    pub lease: Duration,
    /// Host names of the agents, by agent number.
    pub hosts: Vec<String>,
    /// Ends waits for agents with [`FleetError::Interrupted`].
    pub cancel: Cancel,
}

/// Event from the fleet.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are windows")]
pub enum Event {
    /// An agent has begun a stage.
    Begun { agent: u32, began: Began },
    /// An agent sent a window.
    Window { agent: u32, server: u32, window: IntervalRecord },
    /// An agent sends no more windows of a server.
    ServerDone { agent: u32, server: u32 },
    /// An agent has ended a stage.
    Done {
        agent: u32,
        /// The agent's record.
        summary: serde_json::Value,
        /// Clock of the agent's host.
        realtime: Offset,
    },
    /// An agent will not continue; reported once.
    Gone {
        agent: u32,
        /// The agent was lost, failed, or left early.
        error: FleetError,
    },
    /// Windows of an agent were lost; the agent continues.
    Missing { agent: u32, error: FleetError },
}

/// A controller's run.
pub struct Controller {
    options: ControllerOptions,
    connection: Option<Connection>,
    lease: Lease,
    roster: Roster,
    decoder: WindowDecoder,
    position: String,
    events: VecDeque<Event>,
    work: u32,
    clocks: Clocks,
    readings: Inlet,
    heard: Instant,
    looked: Instant,
    is_closed: bool,
    /// Whether it ends and no longer waits for a connection.
    is_ending: bool,
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Controller({})", self.options.run)
    }
}

impl Controller {
    /// Takes the run, and keeps it by a lease.
    ///
    /// # Errors
    /// Redis cannot be reached, or another controller has the run.
    pub fn open(options: ControllerOptions) -> Result<Self, FleetError> {
        let mut connection = options.endpoint.connect_patiently()?;
        let clocks = measure(&mut connection).map_err(|error| options.endpoint.error(&error))?;
        let announcement = Announcement {
            version: options.version.clone(),
            lease_ms: options.lease.as_millis() as u64,
            unread: unread(options.hosts.len()),
            token: u64::from(std::process::id()) << 32 | (monotonic_ns() as u64 & 0xffff_ffff),
        };
        let lease = Lease::take(&mut connection, &options, &announcement)?;
        Ok(Controller {
            roster: Roster::new(&options.hosts),
            readings: Inlet::new(&options.run),
            options,
            connection: None,
            lease,
            decoder: WindowDecoder::default(),
            position: "0-0".into(),
            events: VecDeque::new(),
            work: 0,
            clocks,
            heard: Instant::now(),
            looked: Instant::now(),
            is_closed: false,
            is_ending: false,
        })
    }

    /// Waits until all agents have joined.
    ///
    /// # Errors
    /// An agent is missing or has another version.
    pub fn gather(&mut self, within: Duration) -> Result<Vec<Registration>, FleetError> {
        let deadline = Instant::now() + within;
        loop {
            let key = self.options.run.agents();
            let found: Vec<(u32, Vec<u8>)> =
                self.ask(|connection| redis::cmd("HGETALL").arg(&key).query(connection))?;
            for (index, text) in found {
                if self.roster.is_known(index) {
                    continue;
                }
                let registration: Registration = decode(&text, &format!("agent {index}"))?;
                if registration.version != self.options.version {
                    return Err(FleetError::Version {
                        host: registration.host.name,
                        found: registration.version.to_string(),
                        expected: self.options.version.to_string(),
                    });
                }
                self.roster.come(registration)?;
            }
            let missing = self.roster.missing();
            if missing.is_empty() {
                return Ok(self.roster.registrations().cloned().collect());
            }
            if Instant::now() >= deadline {
                return Err(FleetError::Late { step: "there".into(), within, waiting: missing });
            }
            self.lease.check()?;
            self.check_cancel()?;
            thread::sleep(BLOCK);
        }
    }

    fn check_cancel(&self) -> Result<(), FleetError> {
        if self.options.cancel.requested() { Err(FleetError::Interrupted) } else { Ok(()) }
    }

    /// Distributes the shares of a new work, whose windows have these operations; returns its number, which replaces the one in
    /// `work`.
    ///
    /// # Errors
    /// Redis does not answer.
    pub fn give(
        &mut self,
        work: Work,
        operations: Operations,
        shares: &[Share],
    ) -> Result<u32, FleetError> {
        let key = self.options.run.shares();
        let keep_ms = keep(self.options.lease).as_millis() as i64;
        self.ask(|connection| {
            let mut pipe = redis::pipe();
            // Replace the shares in one step, so that no agent finds none.
            pipe.atomic().del(&key).ignore();
            for share in shares {
                pipe.hset(&key, share.index, encode(share)).ignore();
            }
            pipe.pexpire(&key, keep_ms).ignore();
            pipe.query::<()>(connection)
        })?;
        self.work += 1;
        self.decoder = WindowDecoder::new(operations);
        // Remaining events belong to the previous work.
        self.events.retain(|event| matches!(event, Event::Gone { .. }));
        // An agent sends one window for each of its servers.
        let links = shares.iter().map(|share| share.links.len().max(1)).sum();
        self.say(&Down::Work(Work { number: self.work, unread: unread(links), ..work }))?;
        Ok(self.work)
    }

    /// Waits until all agents are ready for a stage of the newest work.
    ///
    /// # Errors
    /// Agents that are not ready, with their last actions; or the first agent that has gone or failed.
    pub fn barrier(&mut self, step: Step, within: Duration) -> Result<(), FleetError> {
        let deadline = Instant::now() + within;
        while !self.roster.all_ready(self.work, step) {
            if Instant::now() >= deadline {
                return Err(FleetError::Late {
                    step: format!("ready for {step}"),
                    within,
                    waiting: self.roster.not_ready(self.work, step),
                });
            }
            self.check_cancel()?;
            self.poll()?;
            let gone = |event: &Event| matches!(event, Event::Gone { .. });
            if let Some(at) = self.events.iter().position(gone)
                && let Some(Event::Gone { error, .. }) = self.events.remove(at)
            {
                return Err(error);
            }
            // An agent may have gone before the barrier; without it, this would be another run.
            if let Some(error) = self.roster.first_gone() {
                return Err(error);
            }
        }
        self.roster.first_gone().map_or(Ok(()), Err)
    }

    /// Lets all agents begin a stage `lead` from now. The instant on this host's clock comes from one round trip.
    ///
    /// # Errors
    /// Redis does not answer.
    pub fn start(&mut self, step: Step, lead: Duration) -> Result<Start, FleetError> {
        let (now_ns, local_ns, half_ns) = self.ask(|connection| {
            let sent_ns = monotonic_ns();
            let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(connection)?;
            let half_ns = (monotonic_ns() - sent_ns) / 2;
            let now_ns = (seconds * 1_000_000 + micros) * 1_000;
            Ok((now_ns, sent_ns + half_ns, half_ns.unsigned_abs()))
        })?;
        let lead_ns = lead.as_nanos() as i64;
        let start = Start {
            work: self.work,
            step,
            at_ns: now_ns + lead_ns,
            local_ns: local_ns + lead_ns,
            // Redis truncates to microseconds.
            uncertainty_ns: half_ns + 1_000,
        };
        let (work, at_ns) = (start.work, start.at_ns);
        self.say(&Down::Start { work, step, at_ns })?;
        self.roster.expect(lead);
        Ok(start)
    }

    /// Number of remaining agents.
    pub fn going(&self) -> usize {
        self.roster.going()
    }

    /// Agent and host, for messages.
    pub fn name(&self, agent: u32) -> String {
        self.roster.name(agent)
    }

    /// The next event; `None` if none arrives within `within`.
    ///
    /// # Errors
    /// Redis has gone, or this controller has lost its lease.
    pub fn next(&mut self, within: Duration) -> Result<Option<Event>, FleetError> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            self.poll()?;
        }
    }

    /// The agents' host readings since the last call, in order of arrival.
    ///
    /// # Errors
    /// Redis has gone.
    pub fn readings(&mut self) -> Result<Vec<HostReading>, FleetError> {
        let mut found = Vec::new();
        loop {
            let question = self.readings.question();
            let reply: Reply = self.ask(|connection| question.query(connection))?;
            if !self.readings.take(reply, &mut found) {
                break;
            }
        }
        if !found.is_empty() {
            let trim = self.readings.trim();
            self.ask(|connection| trim.query::<()>(connection))?;
        }
        Ok(found)
    }

    /// Converts an instant from the clock of Redis to this host's monotonic clock, by the newest round trips.
    pub fn local_ns(&self, at_ns: i64) -> i64 {
        self.clocks.monotonic().to_local_ns(at_ns)
    }

    /// Ends the newest work; the agents stay.
    ///
    /// # Errors
    /// Redis does not answer.
    pub fn cancel(&mut self, reason: &str) -> Result<(), FleetError> {
        let (work, reason) = (self.work, reason.to_owned());
        self.say(&Down::Cancel { work, reason })
    }

    /// Ends the run in order: agents leave, and its keys are deleted. Returns the agents that did not report their end.
    ///
    /// # Errors
    /// Redis does not answer.
    pub fn finish(mut self, within: Duration) -> Result<Vec<String>, FleetError> {
        self.say(&Down::Finish)?;
        self.close(within)
    }

    /// Ends the run at once: agents stop their load and leave, and its keys are deleted. Returns the agents that did not report
    /// their end; they end by their lease.
    ///
    /// # Errors
    /// Redis does not answer.
    pub fn abort(mut self, reason: &str, within: Duration) -> Result<Vec<String>, FleetError> {
        let reason = reason.to_owned();
        self.say(&Down::Abort { reason })?;
        self.close(within)
    }

    fn close(&mut self, within: Duration) -> Result<Vec<String>, FleetError> {
        self.is_closed = true;
        let deadline = Instant::now() + within;
        while !self.roster.all_left() && Instant::now() < deadline {
            self.poll()?;
        }
        self.lease.end();
        let keys = self.options.run.all();
        self.ask(|connection| redis::cmd("DEL").arg(&keys).query::<()>(connection))?;
        Ok(self.roster.not_left())
    }

    /// Agents that sent no window for longer than `longer_than` while others did: number, host and last action.
    pub fn lagging(&self, longer_than: Duration) -> Vec<String> {
        self.roster.lagging(longer_than)
    }

    fn say(&mut self, word: &Down) -> Result<(), FleetError> {
        let key = self.options.run.down();
        let keep_ms = keep(self.options.lease).as_millis() as i64;
        let text = encode(word);
        self.ask(|connection| {
            let mut pipe = redis::pipe();
            let add = pipe.cmd("XADD").arg(&key);
            add.arg("MAXLEN").arg("~").arg(WORDS).arg("*");
            add.arg("j").arg(&text).ignore();
            pipe.pexpire(&key, keep_ms).ignore();
            pipe.query::<()>(connection)
        })
    }

    /// Reads new messages, and checks for silent agents.
    fn poll(&mut self) -> Result<(), FleetError> {
        self.lease.check()?;
        let (up, position) = (self.options.run.up(), self.position.clone());
        let reply: Reply = self.ask(|connection| {
            redis::cmd("XREAD")
                .arg("COUNT")
                .arg(BATCH)
                .arg("BLOCK")
                .arg(BLOCK.as_millis() as u64)
                .arg("STREAMS")
                .arg(&up)
                .arg(&position)
                .query(connection)
        })?;
        for (_, entries) in reply.into_iter().flatten() {
            if let Some((last, _)) = entries.last() {
                self.position.clone_from(last);
            }
            for (_, fields) in &entries {
                self.take(fields)?;
            }
            // Read messages need not stay in Redis.
            let position = self.position.clone();
            self.ask(|connection| {
                let mut trim = redis::cmd("XTRIM");
                trim.arg(&up).arg("MINID").arg(&position);
                trim.query::<()>(connection)
            })?;
        }
        let since = self.looked.elapsed();
        if since >= self.options.lease / 4 {
            self.looked = Instant::now();
            // After a stall of this process or of Redis, agents may not have been heard: leave it to the next check.
            if since < self.options.lease / 2 {
                self.look_for_silent()?;
            }
        }
        Ok(())
    }

    fn look_for_silent(&mut self) -> Result<(), FleetError> {
        let beats = self.options.run.beats();
        let lease_us = self.options.lease.as_micros() as i64;
        let trips = self.ask(ask)?;
        let now_us = trips.now_us();
        self.clocks.add(trips);
        let silent: Vec<(u32, f64)> = self.ask(|connection| {
            redis::cmd("ZRANGEBYSCORE")
                .arg(&beats)
                .arg("-inf")
                .arg(now_us - lease_us)
                .arg("WITHSCORES")
                .query(connection)
        })?;
        for (agent, heard_us) in silent {
            let micros = (now_us - heard_us as i64).max(0) as u64;
            if let Some(error) = self.roster.lose(agent, Duration::from_micros(micros)) {
                self.events.push_back(Event::Gone { agent, error });
            }
        }
        Ok(())
    }

    /// Handles one stream entry: numbers of agent and message, JSON, and histograms.
    fn take(&mut self, fields: &[Vec<u8>]) -> Result<(), FleetError> {
        let field = |name: &[u8]| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find(|pair| pair[0] == name).map(|pair| &*pair[1])
        };
        let number = |name: &[u8]| std::str::from_utf8(field(name)?).ok()?.parse::<u64>().ok();
        let (Some(agent), Some(message), Some(text)) = (number(b"i"), number(b"n"), field(b"j"))
        else {
            return Err(FleetError::Message {
                from: "an agent".into(),
                reason: "no sender".into(),
            });
        };
        let agent = agent as u32;
        let missing = match self.roster.number(agent, message) {
            // Repeated after a lost connection, or not from the fleet.
            None => return Ok(()),
            Some(missing) => missing,
        };
        if let Some(error) = missing {
            self.events.push_back(Event::Missing { agent, error });
        }
        let from = self.roster.name(agent);
        let said: Up = decode(text, &from)?;
        let event = self.roster.take(agent, &said);
        if let Some(error) = event {
            self.events.push_back(Event::Gone { agent, error });
        }
        let current = self.work;
        let event = match said {
            Up::Window { work, server, window } if work == current => {
                let blob = field(b"h").unwrap_or_default();
                let window = self.decoder.decode(window, blob, &from)?;
                Event::Window { agent, server, window }
            }
            Up::ServerDone { work, server } if work == current => {
                Event::ServerDone { agent, server }
            }
            Up::Begun { work, began, .. } if work == current => Event::Begun { agent, began },
            Up::Done { work, summary, realtime, .. } if work == current => {
                Event::Done { agent, summary, realtime }
            }
            _ => return Ok(()),
        };
        self.events.push_back(event);
        Ok(())
    }

    /// Asks Redis, reconnecting if necessary, until the lease is over.
    fn ask<T>(
        &mut self,
        mut question: impl FnMut(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, FleetError> {
        // A connection lost while idle is replaced like any other.
        let mut failing = None;
        loop {
            let kept = self.options.endpoint.kept(&mut self.connection, BLOCK);
            let answer = kept.and_then(&mut question);
            match answer {
                Ok(answer) => {
                    self.heard = Instant::now();
                    return Ok(answer);
                }
                Err(error) => {
                    self.connection = None;
                    let since = *failing.get_or_insert_with(Instant::now);
                    if self.is_ending || since.elapsed() > self.options.lease {
                        // Further requests, such as an orderly end, do not wait again.
                        self.is_ending = true;
                        return Err(FleetError::RedisGone {
                            silent: self.heard.elapsed(),
                            reason: format!("`{}`, {error}", self.options.endpoint),
                            last: format!("work {}", self.work),
                        });
                    }
                    thread::sleep(BLOCK);
                }
            }
        }
    }
}

/// Bound on unread messages in Redis for this many windows in an interval.
fn unread(windows: usize) -> u64 {
    UNREAD.1.max(UNREAD.0 * windows as u64)
}

/// Deletes a run's remaining keys in Redis, once all its agents have gone.
///
/// # Errors
/// Redis does not answer; the keys then expire.
pub fn forget(endpoint: &Endpoint, run: &RunName) -> Result<(), FleetError> {
    let mut connection = endpoint.connect_patiently()?;
    let mut delete = redis::cmd("DEL");
    let deleted = delete.arg(&run.all()).query::<()>(&mut connection);
    deleted.map_err(|error| endpoint.error(&error))
}

impl Drop for Controller {
    fn drop(&mut self) {
        // With a message, agents end at once; without one, when their lease runs out.
        if !self.is_closed {
            self.is_closed = true;
            self.is_ending = true;
            let reason = "the controller has ended".to_owned();
            let _ = self.say(&Down::Abort { reason });
        }
        self.lease.end();
    }
}
