//! Reads the recording windows of a run one at a time, for export to other formats. Memory holds one window.

use crate::error::RecordError;
use crate::hlog::{self, Clock};
use crate::interval::WindowCounts;
use crate::lines::Lines;
use crate::model::PhaseKind;
use crate::windows::{self, Windows};
use crate::writer::LATENCY;
use hdrhistogram::Histogram;
use std::io::Write;
use std::path::Path;

/// One recording window.
#[derive(Clone, Debug)]
pub struct RecordedWindow {
    pub phase: PhaseKind,
    /// Number of the window in its phase, from 0.
    pub index: u64,
    /// Start, in nanoseconds from the start of the run.
    pub start_ns: u64,
    pub duration_ns: u64,
    /// Totals of all operations.
    pub counts: WindowCounts,
    /// Operations with activity in the window.
    pub operations: Vec<RecordedOperation>,
    pub errors: Vec<RecordedError>,
}

/// One operation in a recording window.
#[derive(Clone, Debug)]
pub struct RecordedOperation {
    pub name: String,
    /// Successful operations.
    pub count: u64,
    /// Failed operations.
    pub errors: u64,
    /// Documents returned or written.
    pub documents: u64,
    /// From intended start to end; like the other two, empty without successful operations.
    pub response: RecordedLatency,
    /// From send to end.
    pub service: RecordedLatency,
    /// From intended start to send.
    pub start_delay: RecordedLatency,
}

/// One latency of an operation in a recording window.
#[derive(Clone, Debug, Default)]
pub struct RecordedLatency {
    /// Values in nanoseconds; absent without values.
    pub values: Option<Histogram<u64>>,
    /// Exact sum in nanoseconds.
    pub sum_ns: u128,
}

/// Failures of one kind of one operation in a recording window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedError {
    pub operation: String,
    pub kind: String,
    pub count: u64,
}

/// The windows of a run directory, in the order of time.
pub struct RecordedWindows(Windows);

impl RecordedWindows {
    /// Opens the files of a run.
    ///
    /// # Errors
    /// [`RecordError`] if the files are missing or are not the files of a run.
    pub fn open(directory: &Path) -> Result<Self, RecordError> {
        Windows::open(directory, &Clock::ALL).map(RecordedWindows)
    }

    /// The next complete window; `None` after the last one. Truncated data at the end is skipped.
    ///
    /// # Errors
    /// [`RecordError`] if a row is invalid.
    pub fn next_window(&mut self) -> Result<Option<RecordedWindow>, RecordError> {
        Ok(self.0.next_window()?.map(RecordedWindow::from))
    }

    /// Descriptions of skipped data. Call it after the last window.
    pub fn into_notes(self) -> Vec<String> {
        self.0.into_notes()
    }
}

impl From<windows::Window> for RecordedWindow {
    fn from(window: windows::Window) -> Self {
        let row = window.interval;
        let mut operations: Vec<RecordedOperation> = window
            .operations
            .into_iter()
            .map(|row| {
                let latency = |sum_ns| RecordedLatency { values: None, sum_ns };
                RecordedOperation {
                    name: row.operation,
                    count: row.count,
                    errors: row.errors,
                    documents: row.documents,
                    response: latency(row.response_sum_ns),
                    service: latency(row.service_sum_ns),
                    start_delay: latency(row.start_delay_sum_ns),
                }
            })
            .collect();
        for histogram in window.histograms {
            let operation = &mut operations[histogram.operation];
            let latency = match histogram.clock {
                Clock::Response => &mut operation.response,
                Clock::Service => &mut operation.service,
                Clock::StartDelay => &mut operation.start_delay,
            };
            latency.values = Some(histogram.values.to_histogram());
        }
        let errors = window.errors.into_iter().map(|row| RecordedError {
            operation: row.operation,
            kind: row.kind,
            count: row.count,
        });
        RecordedWindow {
            phase: row.phase,
            index: row.index,
            start_ns: row.start_ns,
            duration_ns: row.duration_ns,
            counts: row.counts(),
            operations,
            errors: errors.collect(),
        }
    }
}

/// A failure to copy a latency log.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot write the copy")]
    Write(#[source] std::io::Error),
}

/// Copies the latency log of a run to `output`, all of it or one phase, except for unfinished data at its end, and
/// returns notes about that data. Every histogram is decoded and compared with the tables first.
///
/// # Errors
/// [`CopyError`]; nothing is written if the run is damaged.
pub fn copy_latency_log(
    directory: &Path,
    phase: Option<PhaseKind>,
    output: &mut dyn Write,
) -> Result<Vec<String>, CopyError> {
    let mut windows = Windows::open(directory, &Clock::ALL)?;
    let mut whole: u64 = 0;
    while let Some(window) = windows.next_window()? {
        whole += window.histograms.len() as u64;
    }
    let notes = windows.into_notes();
    let start = phase.map(|phase| format!("Tag={}.", phase.as_str()));
    let mut lines = Lines::open(&directory.join(LATENCY))?;
    while let Some(line) = lines.next_line()? {
        let is_heading = hlog::is_heading(line);
        if !is_heading {
            if whole == 0 {
                break;
            }
            whole -= 1;
        }
        let is_wanted = start.as_ref().is_none_or(|start| line.starts_with(start));
        if is_heading || is_wanted {
            writeln!(output, "{line}").map_err(CopyError::Write)?;
        }
    }
    output.flush().map_err(CopyError::Write)?;
    Ok(notes)
}
