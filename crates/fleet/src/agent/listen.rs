//! The thread that listens to the controller, renews the agent's lease, and tracks the clock offsets.

use super::{AgentOptions, LOOK_EVERY, Shared, lock};
use crate::clock::{Offset, OffsetEstimator, RoundTrip, monotonic_ns, realtime_ns};
use crate::endpoint::{Endpoint, Reply};
use crate::error::FleetError;
use crate::names::RunName;
use crate::protocol::{Announcement, Down, Work, decode};
use crate::shares::Share;
use redis::{Connection, RedisError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// Round trips at the beginning; later there is one per beat.
const FIRST_TRIPS: usize = 16;

/// Interval of lease renewals.
pub(crate) fn beat(lease: Duration) -> Duration {
    (lease / 4).clamp(Duration::from_millis(100), Duration::from_secs(2))
}

/// Expiry of keys that are not renewed.
pub(crate) fn keep(lease: Duration) -> Duration {
    (lease * 6).max(Duration::from_secs(60))
}

/// Offsets of a host's two clocks from the clock of Redis.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    monotonic: OffsetEstimator,
    realtime: OffsetEstimator,
}

impl Clocks {
    pub(crate) fn monotonic(&self) -> Offset {
        self.monotonic.estimate().expect("the first round trips are in")
    }

    pub(crate) fn realtime(&self) -> Offset {
        self.realtime.estimate().expect("the first round trips are in")
    }

    pub(crate) fn add(&mut self, trips: Trips) {
        self.monotonic.add(trips.monotonic);
        self.realtime.add(trips.realtime);
    }
}

/// One round trip, timed on both clocks.
pub(crate) struct Trips {
    monotonic: RoundTrip,
    realtime: RoundTrip,
}

impl Trips {
    /// The answer, in microseconds since 1970.
    pub(crate) fn now_us(&self) -> i64 {
        self.monotonic.remote_ns / 1_000
    }
}

/// Asks Redis for its time.
pub(crate) fn ask(connection: &mut Connection) -> Result<Trips, RedisError> {
    let (real_sent, sent_ns) = (realtime_ns(), monotonic_ns());
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(connection)?;
    let (received_ns, real_received) = (monotonic_ns(), realtime_ns());
    let remote_ns = (seconds * 1_000_000 + micros) * 1_000;
    Ok(Trips {
        monotonic: RoundTrip { sent_ns, remote_ns, received_ns },
        realtime: RoundTrip { sent_ns: real_sent, remote_ns, received_ns: real_received },
    })
}

/// Measures the first round trips.
pub(crate) fn measure(connection: &mut Connection) -> Result<Clocks, RedisError> {
    let mut clocks = Clocks::default();
    for _ in 0..FIRST_TRIPS {
        clocks.add(ask(connection)?);
    }
    Ok(clocks)
}

/// Message to the agent.
#[derive(Debug)]
pub(super) enum Heard {
    Work(Work, Share),
    Said(Down),
}

pub(super) struct Listener {
    endpoint: Endpoint,
    run: RunName,
    index: u32,
    announcement: Announcement,
    shared: Arc<Shared>,
    heard: Sender<Heard>,
    /// Last stream entry that was read.
    position: String,
    /// Number of the newest work. Work that was sent again after a lost answer is not repeated.
    work: u32,
    controller_seen: Instant,
}

impl Listener {
    pub(super) fn new(
        options: &AgentOptions,
        announcement: Announcement,
        shared: Arc<Shared>,
        heard: Sender<Heard>,
    ) -> Self {
        Listener {
            endpoint: options.endpoint.clone(),
            run: options.run.clone(),
            index: options.index,
            announcement,
            shared,
            heard,
            position: "0-0".into(),
            work: 0,
            controller_seen: Instant::now(),
        }
    }

    pub(super) fn run(mut self) {
        let beat = beat(self.shared.lease);
        let mut connection: Option<Connection> = None;
        while !self.is_over() {
            let result = match &mut connection {
                Some(connection) => self.turn(connection, beat),
                None => self.endpoint.try_connect(beat).map(|new| {
                    connection = Some(new);
                }),
            };
            match result {
                Ok(()) => self.shared.heard_ns.store(monotonic_ns(), Ordering::SeqCst),
                Err(error) => {
                    connection = None;
                    if self.shared.silent() > self.shared.lease {
                        let reason = format!("`{}`, {error}", self.endpoint);
                        self.shared.end(self.shared.redis_gone(reason));
                    }
                    thread::sleep(LOOK_EVERY * 5);
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::SeqCst) || self.shared.leaving.load(Ordering::SeqCst)
    }

    /// Listens for one beat, and renews the lease.
    fn turn(&mut self, connection: &mut Connection, beat: Duration) -> Result<(), RedisError> {
        self.sign_of_life(connection)?;
        if self.is_over() {
            return Ok(());
        }
        let reply: Reply = redis::cmd("XREAD")
            .arg("COUNT")
            .arg(16)
            .arg("BLOCK")
            .arg(beat.as_millis() as u64)
            .arg("STREAMS")
            .arg(self.run.down())
            .arg(&self.position)
            .query(connection)?;
        for (_, entries) in reply.into_iter().flatten() {
            for (id, fields) in entries {
                self.position = id;
                // An entry is one field with its value.
                let text = fields.get(1).map_or(&[][..], Vec::as_slice);
                self.take(connection, text)?;
            }
        }
        Ok(())
    }

    fn sign_of_life(&mut self, connection: &mut Connection) -> Result<(), RedisError> {
        // Outside the lock: readers of the offset must not wait for Redis.
        let trips = ask(connection)?;
        let now_us = trips.now_us();
        lock(&self.shared.clocks).add(trips);
        let keep_ms = keep(self.shared.lease).as_millis() as i64;
        let beats = self.run.beats();
        let (controller, left_ms): (Option<Vec<u8>>, i64) = redis::pipe()
            .get(self.run.controller())
            .pttl(self.run.controller())
            .zadd(&beats, self.index, now_us)
            .ignore()
            .pexpire(&beats, keep_ms)
            .ignore()
            .query(connection)?;
        let found = controller.and_then(|text| decode::<Announcement>(&text, "").ok());
        match found {
            Some(found) if found.token == self.announcement.token => {
                // The key expires one lease after the controller renewed it.
                let left = Duration::from_millis(left_ms.max(0).unsigned_abs());
                let ago = self.shared.lease.saturating_sub(left);
                self.controller_seen = Instant::now().checked_sub(ago).unwrap_or_else(Instant::now);
            }
            Some(_) => {
                let reason = "another controller has taken the run".to_owned();
                self.shared.end(FleetError::Aborted { reason });
            }
            // Redis lost the key; the controller sets it again.
            None if self.controller_seen.elapsed() + beat(self.shared.lease)
                < self.shared.lease => {}
            None => self.shared.end(FleetError::ControllerGone {
                silent: self.controller_seen.elapsed(),
                last: self.shared.last(),
            }),
        }
        Ok(())
    }

    fn take(&mut self, connection: &mut Connection, text: &[u8]) -> Result<(), RedisError> {
        let heard = match decode::<Down>(text, "the controller") {
            Ok(Down::Work(work)) if work.number <= self.work => return Ok(()),
            Ok(Down::Work(work)) => match self.share(connection)? {
                Ok(share) => {
                    self.work = work.number;
                    if work.unread > 0 {
                        self.shared.unread.store(work.unread, Ordering::SeqCst);
                    }
                    Heard::Work(work, share)
                }
                Err(error) => {
                    self.shared.end(error);
                    return Ok(());
                }
            },
            Ok(Down::Abort { reason }) => {
                self.shared.end(FleetError::Aborted { reason });
                return Ok(());
            }
            Ok(said) => {
                if let Down::Cancel { work, .. } = said {
                    self.shared.cancelled.fetch_max(work, Ordering::SeqCst);
                }
                Heard::Said(said)
            }
            Err(error) => {
                self.shared.end(error);
                return Ok(());
            }
        };
        // The agent may be about to end.
        let _ = self.heard.send(heard);
        Ok(())
    }

    fn share(&self, connection: &mut Connection) -> Result<Result<Share, FleetError>, RedisError> {
        let text: Option<Vec<u8>> =
            redis::cmd("HGET").arg(self.run.shares()).arg(self.index).query(connection)?;
        Ok(match text {
            Some(text) => decode(&text, "the controller"),
            None => Err(FleetError::Message {
                from: "the controller".into(),
                reason: format!("no share for agent {}", self.index),
            }),
        })
    }
}
