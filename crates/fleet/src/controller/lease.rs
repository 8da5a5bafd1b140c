//! The thread that renews the lease of the controller, whatever the controller itself waits for.

use super::ControllerOptions;
use crate::agent::{beat, keep};
use crate::error::FleetError;
use crate::protocol::{Announcement, encode};
use redis::{Connection, RedisError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Renews the value of a key and its life, if the value is still ours.
const RENEW: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                     return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end";

/// Takes the run if nobody has it, and takes away what an earlier controller of the same name left: in one step, so that an agent that
/// sees the run finds its own registration kept.
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
            return Err(FleetError::RunTaken {
                run: options.run.to_string(),
            });
        }
        let (end, ending) = channel();
        let lost = Arc::new(Mutex::new(None));
        let keeper = Keeper {
            options: options.clone(),
            text,
            ending,
            lost: lost.clone(),
        };
        Ok(Lease {
            end: Some(end),
            thread: Some(thread::spawn(move || keeper.run())),
            lost,
        })
    }

    /// Whether the run is still ours.
    pub(super) fn check(&self) -> Result<(), FleetError> {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.clone().map_or(Ok(()), Err)
    }

    /// Renews no more, from when this returns on.
    pub(super) fn end(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
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
        let mut renewed = Instant::now();
        // A dropped sender ends the wait at once.
        while self.ending.recv_timeout(beat) == Err(RecvTimeoutError::Timeout) {
            let kept = self.options.endpoint.kept(&mut connection, Duration::ZERO);
            let result = kept.and_then(|connection| self.renew(connection));
            match result {
                Ok(true) => renewed = Instant::now(),
                Ok(false) => {
                    self.lose(FleetError::Aborted {
                        reason: "the lease of the run is lost: Redis has forgotten it, or another controller has it"
                            .into(),
                    });
                    return;
                }
                Err(error) => {
                    connection = None;
                    if renewed.elapsed() > self.options.lease {
                        self.lose(FleetError::RedisGone {
                            silent: renewed.elapsed(),
                            reason: error.to_string(),
                            last: "renewing the lease of the run".into(),
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
