//! Reads `series/sub_second.csv`: operations that ended in each 10 ms of the first minute of the measure phase.

use crate::error::RecordError;
use crate::series::SubSecondRow;
use crate::windows::{next_row, open_table};
use crate::writer::FINE;
use std::path::Path;

/// A part of a recording window, of the length [`FINE_NS`](crate::interval::FINE_NS).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubSecondPoint {
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Finished logical operations, including failures.
    pub ended: u64,
    /// Failed logical operations.
    pub failed: u64,
    /// Sum of their response times.
    pub response_sum_us: f64,
}

/// Parts in a run directory, in the order of time; empty for versions without them. A truncated last row is skipped.
pub(crate) fn read(directory: &Path) -> Result<Vec<SubSecondPoint>, RecordError> {
    let path = directory.join(FINE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut lines = open_table::<SubSecondRow>(&path)?;
    let mut points = Vec::new();
    while let Some(row) = next_row::<SubSecondRow>(&mut lines)? {
        points.push(SubSecondPoint {
            start_s: row.start_ns as f64 / 1e9,
            ended: row.ended,
            failed: row.failed,
            response_sum_us: row.response_sum_ns as f64 / 1e3,
        });
    }
    Ok(points)
}
