//! The thread that renews the controller's lease while the controller waits for something else.

use super::ControllerOptions;
use crate::agent::{beat, keep};
use crate::error::FleetError;
use crate::protocol::{Announcement, encode};
use redis::{Connection, RedisError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Renews a key and its expiry unless it has another value. Sets a key that expired or was lost again, so that a stalled machine or
/// a Redis that lost the key does not end a run.
const RENEW: &str = "local held = redis.call('GET', KEYS[1]) \
                     if held and held ~= ARGV[1] then return 0 end \
                     redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1";

/// Takes the run if it is free, and deletes what an earlier controller of the same name left. Both in one step, so that the
/// registration of an agent that sees the run is kept.
const TAKE: &str = "if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end \
                    for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end return 1";

#[derive(Debug)]
pub(super) struct Lease {
    end: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    lost: Arc<Mutex<Option<FleetError>>>,
}

impl Lease {
    /// Takes the run.
    pub(super) fn take(
        connection: &mut Connection,
        options: &ControllerOptions,
        announcement: &Announcement,
    ) -> Result<Self, FleetError> {
        let failed = |error: RedisError| options.endpoint.error(&error);
        let text = encode(announcement);
        let keys = options.run.all();
        let taken: bool = redis::cmd("EVAL")
            .arg(TAKE)
            .arg(keys.len())
            .arg(&keys)
            .arg(&text)
            .arg(announcement.lease_ms)
            .query(connection)
            .map_err(failed)?;
        if !taken {
            return Err(FleetError::RunTaken { run: options.run.to_string() });
        }
        let (end, ending) = channel();
        let lost = Arc::new(Mutex::new(None));
        let keeper = Keeper { options: options.clone(), text, ending, lost: lost.clone() };
        Ok(Lease { end: Some(end), thread: Some(thread::spawn(move || keeper.run())), lost })
    }

    /// Fails if another controller has taken the run.
    pub(super) fn check(&self) -> Result<(), FleetError> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.clone().map_or(Ok(()), Err)
    }

    /// Stops renewing before it returns.
    pub(super) fn end(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

struct Keeper {
    options: ControllerOptions,
    text: String,
    ending: Receiver<()>,
    lost: Arc<Mutex<Option<FleetError>>>,
}

impl Keeper {
    fn run(self) {
        let beat = beat(self.options.lease);
        let mut connection: Option<Connection> = None;
        // Count from the first failure on: a stalled thread did not ask in between.
        let mut failing: Option<Instant> = None;
        // A dropped sender ends the wait at once.
        while self.ending.recv_timeout(beat) == Err(RecvTimeoutError::Timeout) {
            let kept = self.options.endpoint.kept(&mut connection, Duration::ZERO);
            let result = kept.and_then(|connection| self.renew(connection));
            match result {
                Ok(true) => failing = None,
                Ok(false) => {
                    self.lose(FleetError::Aborted {
                        reason: "the run's lease was lost: another controller has taken it".into(),
                    });
                    return;
                }
                Err(error) => {
                    connection = None;
                    let silent = failing.get_or_insert_with(Instant::now).elapsed();
                    if silent > self.options.lease {
                        self.lose(FleetError::RedisGone {
                            silent,
                            reason: error.to_string(),
                            last: "renewing the run's lease".into(),
                        });
                        return;
                    }
                }
            }
        }
    }

    fn renew(&self, connection: &mut Connection) -> Result<bool, RedisError> {
        let keep_ms = keep(self.options.lease).as_millis() as i64;
        let mut pipe = redis::pipe();
        pipe.cmd("EVAL")
            .arg(RENEW)
            .arg(1)
            .arg(self.options.run.controller())
            .arg(&self.text)
            .arg(self.options.lease.as_millis() as u64);
        for key in self.options.run.all().iter().skip(1) {
            pipe.pexpire(key, keep_ms).ignore();
        }
        let (renewed,): (bool,) = pipe.query(connection)?;
        Ok(renewed)
    }

    fn lose(&self, error: FleetError) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
