//! Reads the four series files together, one recording window at a time.
//!
//! A window counts if all of its rows exist. Because of the order in which the files are written, only the last window
//! can be incomplete, so reading ends at the first incomplete window.

use crate::error::RecordError;
use crate::hlog::{self, Clock, Decoder};
use crate::lines::Lines;
use crate::model::PhaseKind;
use crate::series::{ErrorRow, IntervalRow, OperationRow, Row};
use crate::sparse::SparseHistogram;
use crate::writer::{ERRORS, INTERVALS, LATENCY, OPERATIONS};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::vec;

/// Windows that are decoded together: more need more memory, fewer start threads more often.
const BATCH_WINDOWS: usize = 256;
/// Decoded batches that may wait.
const BATCHES_AHEAD: usize = 2;
/// Minimum number of windows per thread.
const FEWEST_FOR_THREAD: usize = 16;
/// More threads do not help: one thread does all other work on a window.
const MOST_THREADS: usize = 8;

/// A recording window from the files.
pub(crate) struct Window {
    pub(crate) interval: IntervalRow,
    pub(crate) operations: Vec<OperationRow>,
    pub(crate) errors: Vec<ErrorRow>,
    pub(crate) histograms: Vec<WindowHistogram>,
}

/// A histogram of a window.
pub(crate) struct WindowHistogram {
    /// Index of its operation in the window's `operations`.
    pub(crate) operation: usize,
    pub(crate) clock: Clock,
    pub(crate) values: SparseHistogram,
}

/// A window with encoded histograms.
struct RawWindow {
    interval: IntervalRow,
    operations: Vec<OperationRow>,
    errors: Vec<ErrorRow>,
    histograms: Vec<RawHistogram>,
}

/// A line of the latency log.
struct RawHistogram {
    operation: usize,
    clock: Clock,
    text: String,
    line: u64,
}

/// Lower bound of the number of windows in a run directory, without parsing them.
pub(crate) fn count(directory: &Path) -> Result<u64, RecordError> {
    let mut lines = Lines::open(&directory.join(INTERVALS))?;
    let mut count: u64 = 0;
    while lines.next_line()?.is_some() {
        count += 1;
    }
    // Do not count the header.
    Ok(count.saturating_sub(1))
}

/// The windows of one run. A thread reads and decodes ahead while earlier windows are used.
pub(crate) struct Windows {
    batches: Receiver<Vec<Result<Window, RecordError>>>,
    reader: JoinHandle<Reader>,
    ready: vec::IntoIter<Result<Window, RecordError>>,
}

impl Windows {
    /// Opens the files and checks their headers. Only histograms of `clocks` are decoded.
    pub(crate) fn open(directory: &Path, clocks: &'static [Clock]) -> Result<Windows, RecordError> {
        let mut reader = Reader::open(directory, clocks)?;
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        Ok(Windows {
            batches,
            reader: thread::spawn(move || {
                while !reader.is_at_end {
                    // The receiver is gone, so the rest is not needed.
                    if sender.send(reader.batch()).is_err() {
                        break;
                    }
                }
                reader
            }),
            ready: Vec::new().into_iter(),
        })
    }

    /// The next complete window; `None` after the last one.
    pub(crate) fn next_window(&mut self) -> Result<Option<Window>, RecordError> {
        loop {
            if let Some(window) = self.ready.next() {
                return window.map(Some);
            }
            match self.batches.recv() {
                Ok(batch) => self.ready = batch.into_iter(),
                Err(_) => return Ok(None),
            }
        }
    }

    /// Descriptions of skipped data. Call it after the last window.
    pub(crate) fn into_notes(self) -> Vec<String> {
        drop(self.batches);
        let reader = self.reader.join();
        reader.unwrap_or_else(|panic| resume_unwind(panic)).into_notes()
    }
}

/// Reads the series files of one run.
struct Reader {
    intervals: Lines,
    operations: Lines,
    errors: Lines,
    latency: Lines,
    decoders: Vec<Decoder>,
    /// Clocks with histograms to decode.
    clocks: &'static [Clock],
    /// Description of the window without all rows, and of the file that lacks them.
    incomplete: Option<String>,
    is_at_end: bool,
}

impl Reader {
    fn open(directory: &Path, clocks: &'static [Clock]) -> Result<Reader, RecordError> {
        let cpus = thread::available_parallelism().map_or(1, NonZero::get);
        Ok(Reader {
            intervals: open_table::<IntervalRow>(&directory.join(INTERVALS))?,
            operations: open_table::<OperationRow>(&directory.join(OPERATIONS))?,
            errors: open_table::<ErrorRow>(&directory.join(ERRORS))?,
            latency: Lines::open(&directory.join(LATENCY))?,
            decoders: (0..cpus.min(MOST_THREADS)).map(|_| Decoder::default()).collect(),
            clocks,
            incomplete: None,
            is_at_end: false,
        })
    }

    /// The next windows; an error is always the last item.
    fn batch(&mut self) -> Vec<Result<Window, RecordError>> {
        let mut batch = Vec::with_capacity(BATCH_WINDOWS);
        let mut failure = None;
        while batch.len() < BATCH_WINDOWS && !self.is_at_end {
            match self.raw_window() {
                Ok(Some(window)) => batch.push(window),
                Ok(None) => self.is_at_end = true,
                Err(error) => {
                    self.is_at_end = true;
                    failure = Some(Err(error));
                }
            }
        }
        let mut decoded = self.decode(batch);
        decoded.extend(failure);
        decoded
    }

    /// Decodes in parallel on all CPUs.
    fn decode(&mut self, batch: Vec<RawWindow>) -> Vec<Result<Window, RecordError>> {
        let threads = self.decoders.len().min(batch.len() / FEWEST_FOR_THREAD).max(1);
        let size = batch.len().div_ceil(threads);
        let mut rest = batch.into_iter();
        let lines = &self.latency;
        let parts = self.decoders.iter_mut().take(threads).map(|decoder| {
            let part: Vec<RawWindow> = rest.by_ref().take(size).collect();
            move || part.into_iter().map(|raw| raw.decode(decoder, lines)).collect::<Vec<_>>()
        });
        let mut parts: Vec<_> = parts.collect();
        let own = parts.remove(0);
        thread::scope(|scope| {
            let others: Vec<_> = parts.into_iter().map(|part| scope.spawn(part)).collect();
            let mut decoded = own();
            for other in others {
                decoded.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            decoded
        })
    }

    fn raw_window(&mut self) -> Result<Option<RawWindow>, RecordError> {
        let Some(interval) = next_row::<IntervalRow>(&mut self.intervals)? else {
            return Ok(None);
        };
        let place = (interval.phase, interval.index);
        let Some(operations) = self.operation_rows(place, interval.operation_rows)? else {
            return Ok(self.stop(place, OPERATIONS));
        };
        let Some(histograms) = self.histograms(&operations)? else {
            return Ok(self.stop(place, LATENCY));
        };
        let Some(errors) = self.error_rows(place, interval.error_rows)? else {
            return Ok(self.stop(place, ERRORS));
        };
        Ok(Some(RawWindow { interval, operations, errors, histograms }))
    }

    fn into_notes(mut self) -> Vec<String> {
        if let Some(note) = self.incomplete.take() {
            return vec![note];
        }
        let mut unfinished = Vec::new();
        for (lines, name) in [
            (&mut self.latency, LATENCY),
            (&mut self.operations, OPERATIONS),
            (&mut self.errors, ERRORS),
            (&mut self.intervals, INTERVALS),
        ] {
            // Any content after the last complete window is unfinished, so even errors in it are ignored.
            let left_over = matches!(next_content(lines), Ok(Some(_)) | Err(_));
            if left_over || lines.is_torn() {
                unfinished.push(format!("`{name}`"));
            }
        }
        if unfinished.is_empty() {
            return Vec::new();
        }
        let files = unfinished.join(", ");
        vec![format!("skipped an unfinished window at the end of {files}")]
    }

    fn stop(&mut self, (phase, index): (PhaseKind, u64), file: &str) -> Option<RawWindow> {
        self.incomplete = Some(format!(
            "`{file}` ends before window {index} of phase `{}`; skipped this window and later ones",
            phase.as_str()
        ));
        None
    }

    fn operation_rows(
        &mut self,
        place: (PhaseKind, u64),
        count: u64,
    ) -> Result<Option<Vec<OperationRow>>, RecordError> {
        let mut rows: Vec<OperationRow> = Vec::new();
        for _ in 0..count {
            let Some(row) = next_row::<OperationRow>(&mut self.operations)? else {
                return Ok(None);
            };
            check_place(&self.operations, place, (row.phase, row.index))?;
            rows.push(row);
        }
        Ok(Some(rows))
    }

    fn error_rows(
        &mut self,
        place: (PhaseKind, u64),
        count: u64,
    ) -> Result<Option<Vec<ErrorRow>>, RecordError> {
        let mut rows: Vec<ErrorRow> = Vec::new();
        for _ in 0..count {
            let Some(row) = next_row::<ErrorRow>(&mut self.errors)? else {
                return Ok(None);
            };
            check_place(&self.errors, place, (row.phase, row.index))?;
            rows.push(row);
        }
        Ok(Some(rows))
    }

    /// Lines of the latency log that belong to these rows.
    fn histograms(
        &mut self,
        operations: &[OperationRow],
    ) -> Result<Option<Vec<RawHistogram>>, RecordError> {
        let mut histograms = Vec::new();
        let rows = operations.iter().enumerate();
        for (operation, _) in rows.filter(|(_, row)| row.count > 0) {
            for clock in Clock::ALL {
                let Some(line) = next_content(&mut self.latency)? else {
                    return Ok(None);
                };
                if !self.clocks.contains(&clock) {
                    continue;
                }
                histograms.push(RawHistogram {
                    operation,
                    clock,
                    text: line.to_owned(),
                    line: self.latency.number(),
                });
            }
        }
        Ok(Some(histograms))
    }
}

impl RawWindow {
    fn decode(self, decoder: &mut Decoder, lines: &Lines) -> Result<Window, RecordError> {
        let mut histograms = Vec::with_capacity(self.histograms.len());
        for raw in self.histograms {
            let row = &self.operations[raw.operation];
            let tag = hlog::tag(row.phase.as_str(), &row.operation, raw.clock);
            let decoded = decoder.histogram(&raw.text, &tag).and_then(|histogram| {
                check_count(&histogram, row.count)?;
                Ok(histogram)
            });
            histograms.push(WindowHistogram {
                operation: raw.operation,
                clock: raw.clock,
                values: decoded.map_err(|reason| lines.corrupt_at(raw.line, reason))?,
            });
        }
        Ok(Window {
            interval: self.interval,
            operations: self.operations,
            errors: self.errors,
            histograms,
        })
    }
}

fn check_count(histogram: &SparseHistogram, count: u64) -> Result<(), String> {
    if histogram.len() == count {
        return Ok(());
    }
    let found = histogram.len();
    Err(format!("the histogram has {found} values, but `{OPERATIONS}` has {count}"))
}

fn check_place(
    lines: &Lines,
    expected: (PhaseKind, u64),
    found: (PhaseKind, u64),
) -> Result<(), RecordError> {
    if expected == found {
        return Ok(());
    }
    Err(lines.corrupt(format!(
        "found window {} of phase `{}` instead of window {} of phase `{}`",
        found.1,
        found.0.as_str(),
        expected.1,
        expected.0.as_str()
    )))
}

/// Columns that records from before own operations do not have, and their values.
const OWN_COLUMNS: &str =
    ",transaction_restarts,commit_retries,transaction_aborts,reply_operations";
const NO_OWN_COUNTS: &str = ",0,0,0,0";

/// Opens a table and checks its header. A table with a truncated header has no rows.
pub(crate) fn open_table<R: Row>(path: &Path) -> Result<Lines, RecordError> {
    let mut lines = Lines::open(path)?;
    match lines.next_line()? {
        Some(header) if R::HEADER.strip_suffix(OWN_COLUMNS) == Some(header) => {
            lines.complete_with(NO_OWN_COUNTS);
            Ok(lines)
        }
        Some(header) if header != R::HEADER => {
            Err(lines.corrupt(format!("the columns are not `{}`", R::HEADER)))
        }
        _ => Ok(lines),
    }
}

/// The next row of a table; `None` at its end.
pub(crate) fn next_row<R: Row>(lines: &mut Lines) -> Result<Option<R>, RecordError> {
    let parsed = match lines.next_line()? {
        None => return Ok(None),
        Some(line) => R::parse(line),
    };
    parsed.map(Some).map_err(|reason| lines.corrupt(reason))
}

/// The next line that is not a heading of the interval log. Tables do not have such lines after their header.
fn next_content(lines: &mut Lines) -> Result<Option<&str>, RecordError> {
    loop {
        // Peek first: the borrow of the returned line would last over the loop.
        match lines.next_line()? {
            None => return Ok(None),
            Some(line) if hlog::is_heading(line) => {}
            Some(_) => return Ok(Some(lines.current())),
        }
    }
}
