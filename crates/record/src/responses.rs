//! Response times of single windows, for statistics that need to know how they vary over time.

use crate::document::Document;
use crate::error::RecordError;
use crate::hlog::Clock;
use crate::model::{PhaseKind, RunDocument};
use crate::plain_file;
use crate::sparse::{DenseCounts, SparseHistogram, merged};
use crate::windows::{Window, Windows};
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

/// Groups of windows for the intervals of a run; up to twice as many are kept. These resample in a moment, and more of
/// them would not make an interval narrower.
pub const MOST_WINDOWS: usize = 150;

/// The windows of a phase, of all operations together and one by one. In long runs neighbouring windows are put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResponses {
    /// All operations together, as [`responses`] takes them without a name.
    pub all: Vec<WindowResponses>,
    /// The windows of each operation, as many as there are of all together.
    pub operations: BTreeMap<String, Vec<WindowResponses>>,
}

/// Reads the windows of one phase once for all operations, with twice `most_windows` groups at most.
///
/// # Errors
/// Those of [`responses`].
pub fn by_operation(
    directory: &Path,
    phase: PhaseKind,
    most_windows: usize,
) -> Result<PhaseResponses, RecordError> {
    let mut collector = ResponsesCollector::new(directory, phase, most_windows)?;
    let mut windows = Windows::open_responses(directory)?;
    while let Some(window) = windows.next_window()? {
        collector.add(&window);
    }
    Ok(collector.finish())
}

/// Makes [`PhaseResponses`] window by window.
pub(crate) struct ResponsesCollector {
    phase: PhaseKind,
    common: Option<(u64, u64)>,
    all: Grouped,
    operations: BTreeMap<String, Grouped>,
}

impl ResponsesCollector {
    /// For windows of this phase of the run in `directory`.
    pub(crate) fn new(
        directory: &Path,
        phase: PhaseKind,
        most_windows: usize,
    ) -> Result<Self, RecordError> {
        Ok(ResponsesCollector {
            phase,
            common: common_window(directory, phase)?,
            all: Grouped::new(most_windows),
            operations: BTreeMap::new(),
        })
    }

    /// Adds the next window; those of other phases are left out.
    pub(crate) fn add(&mut self, window: &Window) {
        if window.interval.phase != self.phase {
            return;
        }
        for row in &window.operations {
            if !self.operations.contains_key(&row.operation) {
                // Windows before the first one of an operation had none of it.
                let emptied = self.all.emptied();
                self.operations.insert(row.operation.clone(), emptied);
            }
        }
        self.all.push(window, None, self.common);
        for (name, grouped) in &mut self.operations {
            grouped.push(window, Some(name), self.common);
        }
    }

    pub(crate) fn finish(self) -> PhaseResponses {
        let operations = self.operations.into_iter();
        PhaseResponses {
            all: self.all.finish(),
            operations: operations
                .map(|(name, grouped)| (name, grouped.finish()))
                .collect(),
        }
    }
}

/// Windows of which neighbours are put together when there are too many.
struct Grouped {
    most: usize,
    /// Windows in each group but the last.
    size: usize,
    /// Groups that are full.
    closed: Vec<WindowResponses>,
    /// The last group without its response times, and how many windows it has.
    open: Option<(WindowResponses, usize)>,
    /// Response times of the last group.
    counts: DenseCounts,
}

impl Grouped {
    fn new(most: usize) -> Self {
        Grouped {
            most: most.max(1),
            size: 1,
            closed: Vec::new(),
            open: None,
            counts: DenseCounts::default(),
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
        let open = self.open.as_ref();
        Grouped {
            closed: self.closed.iter().map(nothing).collect(),
            open: open.map(|(window, count)| (nothing(window), *count)),
            counts: DenseCounts::default(),
            ..*self
        }
    }

    fn push(&mut self, window: &Window, operation: Option<&str>, common: Option<(u64, u64)>) {
        let next = without_responses(window, operation, common);
        match &mut self.open {
            Some((open, count)) if *count < self.size => {
                open.append(&next);
                *count += 1;
            }
            _ => {
                self.close();
                if self.closed.len() >= 2 * self.most {
                    self.halve();
                }
                self.open = Some((next, 1));
            }
        }
        histograms(window, operation).for_each(|values| self.counts.add(values));
    }

    fn close(&mut self) {
        if let Some((mut window, _)) = self.open.take() {
            window.response_ns = self.counts.take().buckets().collect();
            self.closed.push(window);
        }
    }

    fn halve(&mut self) {
        let pairs = self.closed.chunks(2);
        let joined = pairs.map(|pair| {
            let mut first = pair[0].clone();
            pair.iter().skip(1).for_each(|second| first.append(second));
            first
        });
        self.closed = joined.collect();
        self.size *= 2;
    }

    fn finish(mut self) -> Vec<WindowResponses> {
        self.close();
        self.closed
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
    window: &Window,
    operation: Option<&str>,
    common: Option<(u64, u64)>,
) -> WindowResponses {
    let mut counts = SparseHistogram::default();
    histograms(window, operation).for_each(|values| counts.merge(values));
    WindowResponses {
        response_ns: counts.buckets().collect(),
        ..without_responses(window, operation, common)
    }
}

fn is_wanted(name: &str, operation: Option<&str>) -> bool {
    match operation {
        Some(wanted) => name == wanted,
        None => name != READ_MODIFY_WRITE,
    }
}

/// Response times of one operation, or of all.
fn histograms<'a>(
    window: &'a Window,
    operation: Option<&str>,
) -> impl Iterator<Item = &'a SparseHistogram> {
    window.histograms.iter().filter_map(move |entry| {
        let name = &window.operations[entry.operation].operation;
        let is_response = matches!(entry.clock, Clock::Response);
        (is_response && is_wanted(name, operation)).then_some(&entry.values)
    })
}

fn without_responses(
    window: &Window,
    operation: Option<&str>,
    common: Option<(u64, u64)>,
) -> WindowResponses {
    let row = &window.interval;
    let rows = window.operations.iter();
    let sums = rows.filter(|row| is_wanted(&row.operation, operation));
    let one = operation.map(|wanted| {
        let mut rows = window.operations.iter();
        let found = rows.find(|row| row.operation == wanted);
        found.map_or((0, 0), |row| (row.count, row.errors))
    });
    let (succeeded, failed) = one.unwrap_or((row.succeeded, row.failed));
    WindowResponses {
        start_s: row.start_ns as f64 / 1e9,
        duration_s: row.duration_ns as f64 / 1e9,
        is_outside: common.is_some_and(|(first, last)| !(first..=last).contains(&row.index)),
        succeeded,
        failed,
        response_ns: Vec::new(),
        response_sum_ns: sums.map(|row| row.response_sum_ns).sum(),
    }
}
