//! The trace of file I/O of a run: attached before the phases begin, recorded in its window, with
//! file roles from the servers, and reported in a folder of the run directory.

use super::{Over, Window};
use crate::error::{Error, refuse};
use crate::recording::roles::Tables;
use crate::recording::settings;
use crate::recording::trace::{Recorded, Recording};
use dyno_load::clock::Clock;
use dyno_plan::Plan;
use dyno_plan::io_trace::IoTracePlan;
use dyno_record::io_trace::FOLDER;
use dyno_record::io_trace::document::TraceTarget;
use dyno_record::model::{PhaseKind, TraceRecord};
use dyno_results::{AnalysedTrace, TraceOptions};
use dyno_trace::LiveKernel;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for events between checks for the end.
const POLL: Duration = Duration::from_millis(50);

/// Refuses a trace that cannot be made, before anything is started.
pub(crate) fn check(plan: &Plan, is_remote: bool) -> Result<(), Error> {
    let Some(trace) = &plan.trace else {
        return Ok(());
    };
    if is_remote {
        let text = "the plan's `trace` needs servers that are started for the run, but this one is already running";
        return refuse(text, "use `dyno trace --server URI` on its machine during the run");
    }
    let wanted = settings::from_plan(trace, 0);
    let refusal = dyno_trace::possibilities(&LiveKernel::new()).refusal;
    wanted
        .check()
        .and(refusal.map_or(Ok(()), Err))
        .map_err(|error| Error::from(error).context("cannot make the plan's trace"))
}

/// A trace that is attached and waits for its window.
pub(crate) struct Attached {
    recording: Recording,
    plan: IoTracePlan,
    processes: Vec<u32>,
    run: PathBuf,
    clock: Clock,
}

impl Attached {
    /// Attaches the plan's trace, if its window is in one of the phases.
    pub(crate) fn new(
        plan: &Plan,
        phases: &[PhaseKind],
        processes: Vec<u32>,
        run: &Path,
        clock: Clock,
    ) -> Result<Option<Attached>, Error> {
        let Some(trace) = &plan.trace else {
            return Ok(None);
        };
        if !phases.contains(&trace.phase) {
            return Ok(None);
        }
        let target = TraceTarget {
            processes: Vec::new(),
            command: None,
            name: Some("the servers of the run".to_owned()),
        };
        let settings = settings::from_plan(trace, settings::zero_of(clock));
        let recording = Recording::start(settings, target, None, &run.join(FOLDER))?;
        Ok(Some(Attached { recording, plan: trace.clone(), processes, run: run.to_owned(), clock }))
    }

    /// Waits for the window on a separate thread, once the starts of the phases are known.
    pub(super) fn start(self, phases: &[(PhaseKind, u64)], over: &Arc<Over>) -> Option<RunTrace> {
        let (from, length) = (self.plan.from, self.plan.length);
        let window = Window::new(self.plan.phase, from, length, phases, self.clock)?;
        let over = Arc::clone(over);
        Some(RunTrace {
            run: self.run.clone(),
            thread: std::thread::spawn(move || self.watch(window, &over)),
        })
    }

    /// Records from the start of the window to its end.
    fn watch(mut self, window: Window, over: &Over) -> Taken {
        let now_s = |clock: Clock| clock.now_ns() as f64 / 1e9;
        if over.wait_until(window.start) {
            return Taken { start_s: None, end_s: None, recorded: self.recording.stop() };
        }
        let start_s = now_s(self.clock);
        let mut result = Ok(());
        for process in std::mem::take(&mut self.processes) {
            result = result.and_then(|()| self.recording.follow(process));
        }
        let is_due = || window.end.is_some_and(|end| Instant::now() >= end);
        while result.is_ok() && !is_due() && !over.wait_until(Instant::now()) {
            result = self.recording.poll(POLL);
        }
        let end_s = now_s(self.clock);
        let stopped = self.recording.stop().map(|mut recorded| {
            recorded.set_window(start_s, end_s);
            recorded
        });
        Taken { start_s: Some(start_s), end_s: Some(end_s), recorded: result.and(stopped) }
    }
}

/// A trace in or before its window.
pub(crate) struct RunTrace {
    run: PathBuf,
    thread: JoinHandle<Taken>,
}

/// A complete trace.
pub(crate) struct Completed {
    pub(crate) record: TraceRecord,
    /// Failure, if any.
    pub(crate) fault: Option<String>,
    /// Its analysis, if it can be read.
    pub(crate) trace: Option<AnalysedTrace>,
}

/// State of a trace after its phases.
struct Taken {
    start_s: Option<f64>,
    end_s: Option<f64>,
    recorded: Result<Recorded, Error>,
}

impl RunTrace {
    /// Completes the trace after the end of the phases: adds the file roles, and analyses it.
    pub(crate) fn finish(self, tables: impl FnOnce() -> Tables) -> Completed {
        let mut record = TraceRecord {
            name: FOLDER.to_owned(),
            command: Vec::new(),
            directory: FOLDER.to_owned(),
            start_s: None,
            end_s: None,
            outcome: String::new(),
        };
        let taken = match self.thread.join() {
            Ok(taken) => taken,
            Err(_) => {
                record.outcome = "its thread panicked".to_owned();
                return Completed { fault: Some(record.outcome.clone()), record, trace: None };
            }
        };
        (record.start_s, record.end_s) = (taken.start_s, taken.end_s);
        let finished = taken.recorded.and_then(|recorded| {
            let document = recorded.finish(&tables())?;
            let folder = self.run.join(FOLDER);
            let trace = AnalysedTrace::open(&folder, &TraceOptions::default())?;
            Ok((document, trace))
        });
        let fault = match (&finished, record.start_s) {
            (Err(failure), _) => Some(failure.reason()),
            (Ok(_), None) => Some("the phases ended before its window".to_owned()),
            (Ok((document, _)), Some(_)) if document.lost_calls > 0 => Some(format!(
                "{} of {} calls were lost on their way from the kernel",
                document.lost_calls,
                document.lost_calls + document.calls
            )),
            _ => None,
        };
        record.outcome = match (&finished, &fault) {
            (Ok((document, _)), None) => {
                format!("{} calls on {} files", document.calls, document.files.len())
            }
            (_, Some(fault)) => fault.clone(),
            (Err(_), None) => unreachable!("an error is a fault"),
        };
        Completed { record, fault, trace: finished.ok().map(|(_, trace)| trace) }
    }
}
