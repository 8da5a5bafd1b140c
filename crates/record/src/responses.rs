//! Response times of single windows, for statistics that need to know how they vary over time.

use crate::error::RecordError;
use crate::hlog::Clock;
use crate::model::PhaseKind;
use crate::windows::{self, Windows};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the operation that also counts its parts under other names.
const READ_MODIFY_WRITE: &str = "read_modify_write";

/// What was done in one recording window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowResponses {
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Length; the last window of a phase is usually not a full one.
    pub duration_s: f64,
    /// Logical operations that ended successfully.
    pub succeeded: u64,
    /// Logical operations that failed.
    pub failed: u64,
    /// Response times in nanoseconds, ascending, each with the number of operations that had it. Values are
    /// those of the histogram's buckets, exact to three digits.
    pub response_ns: Vec<(u64, u64)>,
}

/// Reads the windows of one phase. Memory is that of the different values, not of the operations.
///
/// `operation` names one operation; without it all are taken together. A read-modify-write counts then as a
/// whole and its update is left out; its read cannot be told from other reads and counts besides.
///
/// # Errors
/// [`RecordError`] if the folder is no run or a row is wrong in itself. Rows that were cut off are left out.
pub fn responses(
    directory: &Path,
    phase: PhaseKind,
    operation: Option<&str>,
) -> Result<Vec<WindowResponses>, RecordError> {
    let mut windows = Windows::open(directory)?;
    let mut found = Vec::new();
    while let Some(window) = windows.next_window()? {
        if window.interval.phase == phase {
            found.push(of_window(&window, operation));
        }
    }
    Ok(found)
}

fn of_window(window: &windows::Window, operation: Option<&str>) -> WindowResponses {
    let names: Vec<&str> = window
        .operations
        .iter()
        .map(|row| row.operation.as_str())
        .collect();
    let has_whole = names.contains(&READ_MODIFY_WRITE);
    let is_wanted = |name: &str| match operation {
        Some(wanted) => name == wanted,
        None => !(has_whole && name == "update"),
    };
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let wanted = window.histograms.iter().filter(|entry| {
        matches!(entry.clock, Clock::Response) && is_wanted(names[entry.operation])
    });
    for entry in wanted {
        for value in entry.values.iter_recorded() {
            let middle = entry.values.median_equivalent(value.value_iterated_to());
            *counts.entry(middle).or_default() += value.count_at_value();
        }
    }
    let row = &window.interval;
    let is_one = |name: &str| operation.is_some_and(|wanted| wanted == name);
    let one = window.operations.iter().find(|row| is_one(&row.operation));
    WindowResponses {
        start_s: row.start_ns as f64 / 1e9,
        duration_s: row.duration_ns as f64 / 1e9,
        succeeded: match operation {
            None => row.succeeded,
            Some(_) => one.map_or(0, |row| row.count),
        },
        failed: match operation {
            None => row.failed,
            Some(_) => one.map_or(0, |row| row.errors),
        },
        response_ns: counts.into_iter().collect(),
    }
}
