//! Records a trace from the kernel into its folder.

use crate::error::Error;
use crate::recording::roles::Tables;
use crate::recording::settings::monotonic_ns;
use crate::version::VERSION;
use dyno_record::RecordError;
use dyno_record::io_trace::document::{TraceDocument, TraceFilter, TraceTarget};
use dyno_record::io_trace::event::{BlockRequest, Call};
use dyno_record::io_trace::writer::{PartLimits, TraceWriter};
use dyno_record::model::Environment;
use dyno_trace::{Settings, Sink, Tracer};
use jiff::Timestamp;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Interval of making the incomplete folder readable.
const KEEP: Duration = Duration::from_secs(10);

/// A trace in progress. It records nothing before it follows a process.
pub struct Recording {
    tracer: Tracer,
    storage: Storage,
    document: TraceDocument,
    /// When the folder was last made readable.
    kept: Instant,
}

/// Destination of events. Keeps the first fault, because events cannot be refused.
struct Storage {
    writer: TraceWriter,
    fault: Option<RecordError>,
}

impl Storage {
    fn keep(&mut self, result: Result<(), RecordError>) {
        if let Err(error) = result {
            self.fault.get_or_insert(error);
        }
    }
}

impl Sink for Storage {
    fn calls(&mut self, calls: &[Call]) {
        let written = self.writer.calls(calls);
        self.keep(written);
    }

    fn block(&mut self, requests: &[BlockRequest]) {
        let written = self.writer.block(requests);
        self.keep(written);
    }
}

/// A finished trace without its document.
pub struct Recorded {
    writer: TraceWriter,
    /// Trace target and totals, without file roles.
    pub document: TraceDocument,
}

impl Recording {
    /// Attaches the tracer, and creates the folder of the trace.
    pub fn start(
        settings: Settings,
        target: TraceTarget,
        gap_bytes: Option<u64>,
        folder: &Path,
    ) -> Result<Recording, Error> {
        let now_ns = monotonic_ns();
        let zero_ns = settings.zero_monotonic_ns.unwrap_or(now_ns).min(now_ns);
        let zero = Timestamp::now() - Duration::from_nanos(now_ns - zero_ns);
        let mut document = TraceDocument::new(VERSION, &zero.to_string(), settings.mode);
        document.zero_monotonic_ns = zero_ns;
        document.target = target;
        document.filter = TraceFilter {
            files: settings.filter.files.clone(),
            operations: settings.filter.operations.clone(),
            smallest_bytes: settings.filter.smallest_bytes,
        };
        document.gap_bytes = gap_bytes;
        document.block_traced = settings.block;
        let tracer = Tracer::start(settings)?;
        let writer = TraceWriter::create(folder, &document, PartLimits::default())?;
        Ok(Recording {
            tracer,
            storage: Storage { writer, fault: None },
            document,
            kept: Instant::now(),
        })
    }

    /// Sets the machine. A trace inside a run needs none, because the run records it.
    pub fn is_on(&mut self, environment: Environment) {
        self.document.environment = Some(environment);
    }

    /// Traces one more process.
    pub fn follow(&mut self, process: u32) -> Result<(), Error> {
        self.tracer.follow(process)?;
        self.document.target.processes.push(process);
        self.keep();
        Ok(())
    }

    /// Starts a program and traces it from its first instruction.
    pub fn spawn(&mut self, command: &mut Command) -> Result<Child, Error> {
        let child = self.tracer.spawn(command)?;
        self.document.target.processes.push(child.id());
        Ok(child)
    }

    /// Takes new events, waiting at most `timeout` for one.
    pub fn poll(&mut self, timeout: Duration) -> Result<(), Error> {
        self.tracer.poll(&mut self.storage, timeout)?;
        if self.kept.elapsed() >= KEEP {
            self.kept = Instant::now();
            self.keep();
        }
        match self.storage.fault.take() {
            Some(fault) => Err(Error::from(fault).context("cannot store the trace")),
            None => Ok(()),
        }
    }

    /// Makes the folder readable in case this program is killed: closes old parts even without new
    /// events, and writes the file names.
    fn keep(&mut self) {
        self.document.files = self.tracer.files();
        let writer = &mut self.storage.writer;
        let kept = writer
            .calls(&[])
            .and_then(|()| writer.block(&[]))
            .and_then(|()| writer.set_document(&self.document));
        self.storage.keep(kept);
    }

    /// Ends the trace and takes the remaining events.
    pub fn stop(self) -> Result<Recorded, Error> {
        let Recording { tracer, mut storage, mut document, kept: _ } = self;
        let traced = tracer.stop(&mut storage)?;
        if let Some(fault) = storage.fault {
            return Err(Error::from(fault).context("cannot store the trace"));
        }
        document.zero_monotonic_ns = traced.zero_monotonic_ns;
        document.start_s = traced.start_ns as f64 / 1e9;
        document.duration_s = (traced.end_ns - traced.start_ns).max(0) as f64 / 1e9;
        document.probes = traced.probes;
        document.calls = traced.calls;
        document.lost_calls = traced.lost_calls;
        document.block_requests = traced.block_requests;
        document.lost_block_requests = traced.lost_block_requests;
        document.files = traced.files;
        document.totals = traced.totals;
        document.devices = traced.devices;
        document.cost = traced.cost;
        document.caveats = traced.caveats;
        Ok(Recorded { writer: storage.writer, document })
    }
}

impl Recorded {
    /// Sets the observed time range of a trace that was attached earlier.
    pub fn set_window(&mut self, start_s: f64, end_s: f64) {
        self.document.start_s = start_s;
        self.document.duration_s = (end_s - start_s).max(0.0);
    }

    /// Sets the file roles, and completes the folder.
    pub fn finish(mut self, tables: &Tables) -> Result<TraceDocument, Error> {
        tables.name(&mut self.document.files);
        Ok(self.writer.finish(self.document)?)
    }
}
