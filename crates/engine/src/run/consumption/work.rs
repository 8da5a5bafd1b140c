//! Counts the consumption of work without phases, such as an index build or the messages of
//! drivers, between calls of its caller.

use super::{AHEAD, Clock, EndedMeter, Over, Reader, subject};
use crate::cancel::Cancel;
use crate::deployment::DeploymentUnderTest;
use dyno_load::connect::Connector;
use dyno_observe::consumption::ConsumptionSubject;
use dyno_record::consumption::Consumption;
use dyno_record::model::PhaseKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Counts what servers use for some work, any number of times.
pub struct WorkMeter<'a> {
    subject: ConsumptionSubject,
    servers: Vec<Connector>,
    writes_back: bool,
    cancel: &'a Cancel,
}

/// A running count.
pub struct StartedMeter {
    /// Start of the work.
    start_s: f64,
    over: Arc<Over>,
    thread: JoinHandle<Reader>,
}

/// The counters of finished work.
pub struct EndedWork {
    start_s: f64,
    meter: EndedMeter,
}

impl<'a> WorkMeter<'a> {
    /// For these processes and folders, and for the servers at these connectors. With
    /// `writes_back`, the servers write their pending changes to their files after the work, and
    /// the bytes are counted.
    pub fn new(
        subject: ConsumptionSubject,
        servers: Vec<Connector>,
        writes_back: bool,
        cancel: &'a Cancel,
    ) -> Self {
        WorkMeter { subject, servers, writes_back, cancel }
    }

    /// For the servers of a deployment with data in these folders. Only started servers write back.
    pub fn of_deployment(
        deployment: &DeploymentUnderTest,
        data_folders: &[PathBuf],
        cancel: &'a Cancel,
    ) -> Self {
        WorkMeter::new(
            subject(deployment, data_folders),
            deployment.data_servers().into_iter().map(|server| server.connector).collect(),
            deployment.is_started(),
            cancel,
        )
    }

    /// Opens connections, and reads the counters shortly before the work begins, or at once if it
    /// is already later.
    pub fn start(&self, begins: Instant) -> StartedMeter {
        let clock = Clock::start();
        let servers = self.servers.iter().cloned();
        let mut reader = Reader::new(self.subject.clone(), servers, None, clock);
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
        StartedMeter { start_s, over, thread }
    }

    /// Consumption of the work, with times relative to its start.
    pub fn finish(&self, ended: EndedWork) -> Option<Consumption> {
        let found = ended.meter.finish(self.writes_back, self.cancel).pop();
        found.map(|found| found.since(ended.start_s))
    }
}

impl StartedMeter {
    /// Reads the counters again.
    pub fn end(self) -> EndedWork {
        self.over.end();
        EndedWork { start_s: self.start_s, meter: EndedMeter { reader: self.thread.join().ok() } }
    }
}
