//! Response times of single windows, for statistics that need to know how they vary over time.

use crate::document::Document;
use crate::error::RecordError;
use crate::hlog::Clock;
use crate::model::{PhaseKind, RunDocument};
use crate::plain_file;
use crate::sparse::{SparseHistogram, merged};
use crate::windows::{self, Windows};
use std::collections::BTreeMap;
use std::path::Path;

/// Name of the operation that also counts its parts under other names.
pub const READ_MODIFY_WRITE: &str = "read_modify_write";

/// What was done in one recording window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowResponses {
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Length; the last window of a phase is usually not a full one.
    pub duration_s: f64,
    /// It is not a part of the common window of a fleet: not all agents measured in it.
    pub is_outside: bool,
    /// Logical operations that ended successfully.
    pub succeeded: u64,
    /// Logical operations that failed.
    pub failed: u64,
    /// Response times in nanoseconds, ascending, each with the number of operations that had it. Values are
    /// the largest ones of the histogram's buckets, as in all percentiles, exact to three digits.
    pub response_ns: Vec<(u64, u64)>,
    /// Exact sum of the response times.
    pub response_sum_ns: u128,
}

/// Reads the windows of one phase. Memory is that of the different values, not of the operations.
///
/// `operation` names one operation; without it all operations of the database are taken together: a
/// read-modify-write counts then as its read and its update, each with its own time, and not as a whole besides.
///
/// # Errors
/// [`RecordError`] if the folder is no run or a row is wrong in itself. Rows that were cut off are left out.
pub fn responses(
    directory: &Path,
    phase: PhaseKind,
    operation: Option<&str>,
) -> Result<Vec<WindowResponses>, RecordError> {
    let common = common_window(directory, phase)?;
    let mut windows = Windows::open_responses(directory)?;
    let mut found = Vec::new();
    while let Some(window) = windows.next_window()? {
        if window.interval.phase == phase {
            found.push(of_window(&window, operation, common));
        }
    }
    Ok(found)
}

/// The windows of a phase, of all operations together and one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResponses {
    /// All operations together, as [`responses`] takes them without a name.
    pub all: Vec<WindowResponses>,
    /// The windows of each operation, as many as there are of all together.
    pub operations: BTreeMap<String, Vec<WindowResponses>>,
}

/// Reads the windows of one phase once for all operations. In long runs neighbouring windows are put together,
/// so that there are at most twice `most_windows` of them: memory does not grow with the length of a run.
///
/// # Errors
/// Those of [`responses`].
pub fn by_operation(
    directory: &Path,
    phase: PhaseKind,
    most_windows: usize,
) -> Result<PhaseResponses, RecordError> {
    let common = common_window(directory, phase)?;
    let mut windows = Windows::open_responses(directory)?;
    let mut all = Grouped::new(most_windows);
    let mut operations: BTreeMap<String, Grouped> = BTreeMap::new();
    while let Some(window) = windows.next_window()? {
        if window.interval.phase != phase {
            continue;
        }
        for row in &window.operations {
            // Windows before the first one of an operation had none of it.
            let known = operations.entry(row.operation.clone());
            known.or_insert_with(|| all.emptied());
        }
        all.push(of_window(&window, None, common));
        for (name, grouped) in &mut operations {
            grouped.push(of_window(&window, Some(name), common));
        }
    }
    Ok(PhaseResponses {
        all: all.windows,
        operations: operations
            .into_iter()
            .map(|(name, grouped)| (name, grouped.windows))
            .collect(),
    })
}

/// Windows of which neighbours are put together when there are too many.
struct Grouped {
    most: usize,
    /// Windows in each group but the last.
    size: usize,
    /// Windows in the last group.
    in_last: usize,
    windows: Vec<WindowResponses>,
}

impl Grouped {
    fn new(most: usize) -> Self {
        Grouped {
            most: most.max(1),
            size: 1,
            in_last: 0,
            windows: Vec::new(),
        }
    }

    /// The same groups with nothing done in them.
    fn emptied(&self) -> Self {
        let nothing = |window: &WindowResponses| WindowResponses {
            start_s: window.start_s,
            duration_s: window.duration_s,
            is_outside: window.is_outside,
            ..WindowResponses::default()
        };
        Grouped {
            windows: self.windows.iter().map(nothing).collect(),
            ..*self
        }
    }

    fn push(&mut self, window: WindowResponses) {
        match self.windows.last_mut() {
            Some(last) if self.in_last < self.size => {
                last.append(&window);
                self.in_last += 1;
            }
            _ => {
                if self.windows.len() >= 2 * self.most {
                    self.halve();
                }
                self.windows.push(window);
                self.in_last = 1;
            }
        }
    }

    fn halve(&mut self) {
        let pairs = self.windows.chunks(2);
        let joined = pairs.map(|pair| {
            let mut first = pair[0].clone();
            pair.iter().skip(1).for_each(|second| first.append(second));
            first
        });
        self.windows = joined.collect();
        self.size *= 2;
    }
}

impl WindowResponses {
    /// Adds the window that follows.
    pub fn append(&mut self, next: &WindowResponses) {
        self.duration_s += next.duration_s;
        self.is_outside |= next.is_outside;
        self.succeeded += next.succeeded;
        self.failed += next.failed;
        let own = std::mem::take(&mut self.response_ns);
        self.response_ns = merged(own, &next.response_ns);
        self.response_sum_ns += next.response_sum_ns;
    }
}

/// First and last interval of the common window of a fleet; `None` if there is none, or if it is not of this phase.
fn common_window(directory: &Path, phase: PhaseKind) -> Result<Option<(u64, u64)>, RecordError> {
    #[derive(serde::Deserialize)]
    struct Document {
        fleet: Option<Fleet>,
    }
    #[derive(serde::Deserialize)]
    struct Fleet {
        #[serde(default)]
        common_first_interval: u64,
        common_last_interval: Option<u64>,
    }
    let path = directory.join(RunDocument::FILE);
    if phase != PhaseKind::Measure || !path.exists() {
        return Ok(None);
    }
    let text = plain_file::read(&path).map_err(RecordError::read(&path))?;
    let document: Document =
        serde_json::from_slice(&text).map_err(|source| RecordError::Document { path, source })?;
    Ok(document.fleet.and_then(|fleet| {
        let last = fleet.common_last_interval?;
        Some((fleet.common_first_interval, last))
    }))
}

fn of_window(
    window: &windows::Window,
    operation: Option<&str>,
    common: Option<(u64, u64)>,
) -> WindowResponses {
    let names: Vec<&str> = window
        .operations
        .iter()
        .map(|row| row.operation.as_str())
        .collect();
    let is_wanted = |name: &str| match operation {
        Some(wanted) => name == wanted,
        None => name != READ_MODIFY_WRITE,
    };
    let mut counts = SparseHistogram::default();
    let wanted = window.histograms.iter().filter(|entry| {
        matches!(entry.clock, Clock::Response) && is_wanted(names[entry.operation])
    });
    for entry in wanted {
        counts.merge(&entry.values);
    }
    let row = &window.interval;
    let is_one = |name: &str| operation.is_some_and(|wanted| wanted == name);
    let one = window.operations.iter().find(|row| is_one(&row.operation));
    let rows = window.operations.iter();
    let sums = rows
        .filter(|row| is_wanted(&row.operation))
        .map(|row| row.response_sum_ns);
    WindowResponses {
        start_s: row.start_ns as f64 / 1e9,
        duration_s: row.duration_ns as f64 / 1e9,
        is_outside: common.is_some_and(|(first, last)| !(first..=last).contains(&row.index)),
        succeeded: match operation {
            None => row.succeeded,
            Some(_) => one.map_or(0, |row| row.count),
        },
        failed: match operation {
            None => row.failed,
            Some(_) => one.map_or(0, |row| row.errors),
        },
        response_ns: counts.buckets().collect(),
        response_sum_ns: sums.sum(),
    }
}
