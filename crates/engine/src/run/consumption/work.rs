//! The same for work that has no phases, such as an index build or the messages of drivers: counters are read when whoever
//! does it says so.

use super::{AHEAD, Clock, EndedMeter, Over, Reader, ask, subject};
use crate::cancel::Cancel;
use crate::deployment::DeploymentUnderTest;
use crate::run::observation::Asker;
use dyno_load::connect::Connector;
use dyno_observe::consumption::{ConsumptionCounters, ConsumptionSubject};
use dyno_record::consumption::Consumption;
use dyno_record::model::PhaseKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Counts what servers use for some work, as often as it is done.
pub struct WorkMeter<'a> {
    subject: ConsumptionSubject,
    servers: Vec<Connector>,
    writes_back: bool,
    cancel: &'a Cancel,
}

/// Counting has begun.
pub struct StartedMeter {
    /// When the work begins.
    start_s: f64,
    over: Arc<Over>,
    thread: JoinHandle<Reader>,
}

/// The counters of work that is done.
pub struct EndedWork {
    start_s: f64,
    meter: EndedMeter,
}

impl<'a> WorkMeter<'a> {
    /// For these processes and folders, and for the servers that are reached so. With `writes_back` they are asked after the work to
    /// write to their files what they have not yet, and it is counted how much that is.
    pub fn new(
        subject: ConsumptionSubject,
        servers: Vec<Connector>,
        writes_back: bool,
        cancel: &'a Cancel,
    ) -> Self {
        WorkMeter {
            subject,
            servers,
            writes_back,
            cancel,
        }
    }

    /// For the servers of a deployment, whose data is in these folders. What was started for the work writes back.
    pub fn of_deployment(
        deployment: &DeploymentUnderTest,
        data_folders: &[PathBuf],
        cancel: &'a Cancel,
    ) -> Self {
        let servers = deployment.data_servers().into_iter();
        WorkMeter::new(
            subject(deployment, data_folders),
            servers.map(|server| server.connector).collect(),
            deployment.is_started(),
            cancel,
        )
    }

    /// Opens connections, and reads the counters shortly before the work begins, or at once if it is as late as that.
    pub fn start(&self, begins: Instant) -> StartedMeter {
        let clock = Clock::start();
        let servers = self.servers.iter().cloned();
        let mut reader = Reader {
            counters: ConsumptionCounters::new(Path::new("/"), self.subject.clone()),
            servers: servers.map(Asker::new).collect(),
            not_asked: None,
            clock,
            readings: Vec::new(),
        };
        drop(ask(&mut reader.servers, None));
        let early = begins.saturating_duration_since(Instant::now());
        std::thread::sleep(early.saturating_sub(AHEAD));
        reader.read(Some(PhaseKind::Measure));
        let ahead = begins.saturating_duration_since(Instant::now());
        let start_s = clock.now_ns() as f64 / 1e9 + ahead.as_secs_f64();
        let over = Arc::<Over>::default();
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            reader.wait_until(None, &until);
            reader.read(None);
            reader
        });
        StartedMeter {
            start_s,
            over,
            thread,
        }
    }

    /// What was used; the times that are recorded are from the begin of the work on.
    pub fn finish(&self, ended: EndedWork) -> Option<Consumption> {
        let found = ended.meter.finish(self.writes_back, self.cancel).pop();
        found.map(|found| found.since(ended.start_s))
    }
}

impl StartedMeter {
    /// Reads the counters again.
    pub fn end(self) -> EndedWork {
        self.over.end();
        EndedWork {
            start_s: self.start_s,
            meter: EndedMeter {
                reader: self.thread.join().ok(),
            },
        }
    }
}
