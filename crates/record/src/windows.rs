//! Reads the four series files side by side, one recording window at a time.
//!
//! A window counts if all of its rows are there. The files are written in an order that lets only
//! the last window be incomplete, so the first incomplete one ends the reading.

use crate::error::RecordError;
use crate::hlog::{self, Clock, Decoder};
use crate::lines::Lines;
use crate::model::PhaseKind;
use crate::series::{ErrorRow, IntervalRow, OperationRow, Row};
use crate::sparse::SparseHistogram;
use crate::writer::{ERRORS, INTERVALS, LATENCY, OPERATIONS};
use std::path::Path;

/// One recording window as it was written.
pub(crate) struct Window {
    pub(crate) interval: IntervalRow,
    pub(crate) operations: Vec<OperationRow>,
    pub(crate) errors: Vec<ErrorRow>,
    pub(crate) histograms: Vec<WindowHistogram>,
}

/// One histogram of a window.
pub(crate) struct WindowHistogram {
    /// Place of its operation in the window's `operations`.
    pub(crate) operation: usize,
    pub(crate) clock: Clock,
    pub(crate) values: SparseHistogram,
}

/// Windows that a run directory holds, at least; found without parsing them.
pub(crate) fn count(directory: &Path) -> Result<u64, RecordError> {
    let mut lines = Lines::open(&directory.join(INTERVALS))?;
    let mut count: u64 = 0;
    while lines.next_line()?.is_some() {
        count += 1;
    }
    // The header is no window.
    Ok(count.saturating_sub(1))
}

/// The series files of one run.
pub(crate) struct Windows {
    intervals: Lines,
    operations: Lines,
    errors: Lines,
    latency: Lines,
    decoder: Decoder,
    /// Clocks whose histograms are decoded.
    clocks: &'static [Clock],
    /// The window that lacks rows, and the file that should have them.
    incomplete: Option<String>,
}

impl Windows {
    /// Opens the files and checks their headers.
    pub(crate) fn open(directory: &Path) -> Result<Windows, RecordError> {
        Ok(Windows {
            intervals: open_table::<IntervalRow>(&directory.join(INTERVALS))?,
            operations: open_table::<OperationRow>(&directory.join(OPERATIONS))?,
            errors: open_table::<ErrorRow>(&directory.join(ERRORS))?,
            latency: Lines::open(&directory.join(LATENCY))?,
            decoder: Decoder::default(),
            clocks: &Clock::ALL,
            incomplete: None,
        })
    }

    /// The same with the histograms of response times only.
    pub(crate) fn open_responses(directory: &Path) -> Result<Windows, RecordError> {
        Ok(Windows {
            clocks: &[Clock::Response],
            ..Windows::open(directory)?
        })
    }

    /// The next whole window; `None` after the last one.
    pub(crate) fn next_window(&mut self) -> Result<Option<Window>, RecordError> {
        if self.incomplete.is_some() {
            return Ok(None);
        }
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
        Ok(Some(Window {
            interval,
            operations,
            errors,
            histograms,
        }))
    }

    /// What was left out, in words for people. To be called after the last window.
    pub(crate) fn into_notes(mut self) -> Vec<String> {
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
            // What follows the last whole window was never finished, so its content says nothing.
            let left_over = matches!(next_content(lines), Ok(Some(_)) | Err(_));
            if left_over || lines.is_torn() {
                unfinished.push(format!("`{name}`"));
            }
        }
        if unfinished.is_empty() {
            return Vec::new();
        }
        let files = unfinished.join(", ");
        vec![format!(
            "a window that was not finished is left out at the end of {files}"
        )]
    }

    /// An error about the histogram that was read last.
    pub(crate) fn corrupt_histogram(&self, error: &dyn std::error::Error) -> RecordError {
        self.latency
            .corrupt(format!("the histogram does not fit: {error}"))
    }

    fn stop(&mut self, (phase, index): (PhaseKind, u64), file: &str) -> Option<Window> {
        self.incomplete = Some(format!(
            "`{file}` ends before window {index} of phase `{}`; that window and later ones are left out",
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

    fn histograms(
        &mut self,
        operations: &[OperationRow],
    ) -> Result<Option<Vec<WindowHistogram>>, RecordError> {
        let mut histograms = Vec::new();
        for (operation, row) in operations
            .iter()
            .enumerate()
            .filter(|(_, row)| row.count > 0)
        {
            for clock in Clock::ALL {
                let Some(line) = next_content(&mut self.latency)? else {
                    return Ok(None);
                };
                if !self.clocks.contains(&clock) {
                    continue;
                }
                let tag = hlog::tag(row.phase.as_str(), &row.operation, clock);
                let decoded = self.decoder.histogram(line, &tag).and_then(|histogram| {
                    check_count(&histogram, row.count)?;
                    Ok(histogram)
                });
                histograms.push(WindowHistogram {
                    operation,
                    clock,
                    values: decoded.map_err(|reason| self.latency.corrupt(reason))?,
                });
            }
        }
        Ok(Some(histograms))
    }
}

fn check_count(histogram: &SparseHistogram, count: u64) -> Result<(), String> {
    if histogram.len() == count {
        return Ok(());
    }
    let found = histogram.len();
    Err(format!(
        "the histogram holds {found} values and `{OPERATIONS}` says {count}"
    ))
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
        "found window {} of phase `{}` in place of window {} of phase `{}`",
        found.1,
        found.0.as_str(),
        expected.1,
        expected.0.as_str()
    )))
}

/// Opens a table. One whose header was cut off has no rows.
/// Opens a table and checks its header.
pub(crate) fn open_table<R: Row>(path: &Path) -> Result<Lines, RecordError> {
    let mut lines = Lines::open(path)?;
    match lines.next_line()? {
        Some(header) if !is_header_of::<R>(header) => {
            Err(lines.corrupt(format!("the columns are not `{}`", R::HEADER)))
        }
        _ => Ok(lines),
    }
}

/// Whether it is the header of this version or of an earlier one, which lacked some of the last columns.
fn is_header_of<R: Row>(header: &str) -> bool {
    let rest = R::HEADER.strip_prefix(header);
    header.len() >= R::FIRST_HEADER.len()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
}

/// The next row of a table; `None` at its end.
pub(crate) fn next_row<R: Row>(lines: &mut Lines) -> Result<Option<R>, RecordError> {
    let parsed = match lines.next_line()? {
        None => return Ok(None),
        Some(line) => R::parse(line),
    };
    parsed.map(Some).map_err(|reason| lines.corrupt(reason))
}

/// The next line that is not a heading of the interval log. Tables have no such lines left.
fn next_content(lines: &mut Lines) -> Result<Option<&str>, RecordError> {
    loop {
        // The borrow of the returned line would last over the loop, so the line is looked at twice.
        match lines.next_line()? {
            None => return Ok(None),
            Some(line) if hlog::is_heading(line) => {}
            Some(_) => return Ok(Some(lines.current())),
        }
    }
}
