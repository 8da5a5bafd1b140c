//! Reads `series/sub_second.csv`: what ended in each hundredth of a second of the first minute of the measured time.

use crate::error::RecordError;
use crate::series::SubSecondRow;
use crate::windows::{next_row, open_table};
use crate::writer::FINE;
use std::path::Path;

/// A part of a recording window. Its length is [`FINE_NS`](crate::interval::FINE_NS).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubSecondPoint {
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Logical operations that ended, failures included.
    pub ended: u64,
    /// Those of them that failed; 0 in older records.
    pub failed: u64,
    /// Sum of their response times.
    pub response_sum_us: f64,
}

/// The parts that a run directory holds, in the order of time; none if the run is of a version without them. A last
/// row that was cut off is left out.
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
