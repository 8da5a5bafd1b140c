//! Response times of single windows, for statistics about their variation over time.

use crate::document::Document;
use crate::error::RecordError;
use crate::hlog::Clock;
use crate::model::{Operations, PhaseKind, RunDocument};
use crate::plain_file;
use crate::sparse::{DenseCounts, SparseHistogram, merged};
use crate::windows::{Window, Windows};
use std::collections::BTreeMap;
use std::path::Path;

/// Activity in one recording window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowResponses {
    /// Start, in seconds from the start of the run.
    pub start_s: f64,
    /// Length; the last window of a phase is usually shorter.
    pub duration_s: f64,
    /// Whether the window is outside the common window of a fleet: not all agents measured in it.
    pub is_outside: bool,
    /// Successful logical operations.
    pub succeeded: u64,
    /// Failed logical operations.
    pub failed: u64,
    /// Response times in nanoseconds, ascending, each with its number of operations. As in all percentiles, values are
    /// the largest of their histogram bucket, exact to three digits.
    pub response_ns: Vec<(u64, u64)>,
    /// Exact sum of the response times.
    pub response_sum_ns: u128,
}

/// Reads the windows of one phase. Memory grows with the number of distinct values, not of operations.
///
/// `operation` names one operation; without it, all database operations are combined: a read-modify-write then counts
/// as its read and its update, each with its own time, and not also as a whole.
///
/// # Errors
/// [`RecordError`] if the folder is not a run or a row is invalid. Truncated rows are skipped.
pub fn responses(
    directory: &Path,
    phase: PhaseKind,
    operation: Option<&str>,
) -> Result<Vec<WindowResponses>, RecordError> {
    let facts = Facts::read(directory, phase)?;
    let mut windows = Windows::open(directory, &[Clock::Response])?;
    let mut found = Vec::new();
    while let Some(window) = windows.next_window()? {
        if window.interval.phase == phase {
            found.push(of_window(&window, operation, &facts));
        }
    }
    Ok(found)
}

/// Groups of windows for the intervals of a run; up to twice as many are kept. Resampling this many is fast, and more
/// would not make an interval narrower.
pub const MOST_WINDOWS: usize = 150;

/// The windows of a phase, combined and by operation. In long runs, adjacent windows are merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseResponses {
    /// All operations combined, as by [`responses`] without a name.
    pub all: Vec<WindowResponses>,
    /// Windows by operation, as many as in `all`.
    pub operations: BTreeMap<String, Vec<WindowResponses>>,
}

/// Reads the windows of one phase once for all operations, with at most twice `most_windows` groups.
///
/// # Errors
/// The same as for [`responses`].
pub fn by_operation(
    directory: &Path,
    phase: PhaseKind,
    most_windows: usize,
) -> Result<PhaseResponses, RecordError> {
    let mut collector = ResponsesCollector::new(directory, phase, most_windows)?;
    let mut windows = Windows::open(directory, &[Clock::Response])?;
    while let Some(window) = windows.next_window()? {
        collector.add(&window);
    }
    Ok(collector.finish())
}

/// Builds [`PhaseResponses`] window by window.
pub(crate) struct ResponsesCollector {
    phase: PhaseKind,
    facts: Facts,
    all: Grouped,
    operations: BTreeMap<String, Grouped>,
}

impl ResponsesCollector {
    /// Collects the windows of this phase of the run in `directory`.
    pub(crate) fn new(
        directory: &Path,
        phase: PhaseKind,
        most_windows: usize,
    ) -> Result<Self, RecordError> {
        Ok(ResponsesCollector {
            phase,
            facts: Facts::read(directory, phase)?,
            all: Grouped::new(most_windows),
            operations: BTreeMap::new(),
        })
    }

    /// Adds the next window; windows of other phases are ignored.
    pub(crate) fn add(&mut self, window: &Window) {
        if window.interval.phase != self.phase {
            return;
        }
        for row in &window.operations {
            if !self.operations.contains_key(&row.operation) {
                // Pad with empty windows up to an operation's first window.
                let emptied = self.all.emptied();
                self.operations.insert(row.operation.clone(), emptied);
            }
        }
        self.all.push(window, None, &self.facts);
        for (name, grouped) in &mut self.operations {
            grouped.push(window, Some(name), &self.facts);
        }
    }

    pub(crate) fn finish(self) -> PhaseResponses {
        let operations = self.operations.into_iter();
        PhaseResponses {
            all: self.all.finish(),
            operations: operations.map(|(name, grouped)| (name, grouped.finish())).collect(),
        }
    }
}

/// Windows that are merged with their neighbours when there are too many.
struct Grouped {
    most: usize,
    /// Windows in each group except the last.
    size: usize,
    /// Full groups.
    closed: Vec<WindowResponses>,
    /// The last group without its response times, and its number of windows.
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

    /// The same groups without activity.
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

    fn push(&mut self, window: &Window, operation: Option<&str>, facts: &Facts) {
        let next = without_responses(window, operation, facts);
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
        histograms(window, operation, facts).for_each(|values| self.counts.add(values));
    }

    fn close(&mut self) {
        if let Some((mut window, _)) = self.open.take() {
            window.response_ns = self.counts.take().buckets().collect();
            self.closed.push(window);
        }
    }

    fn halve(&mut self) {
        let joined = self.closed.chunks(2).map(|pair| {
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
    /// Adds the next window.
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

/// Facts of a run that its windows do not have.
#[derive(Default)]
struct Facts {
    /// First and last interval of the common window of a fleet; `None` without one, or if it belongs to another phase.
    common: Option<(u64, u64)>,
    operations: Operations,
}

impl Facts {
    fn read(directory: &Path, phase: PhaseKind) -> Result<Self, RecordError> {
        #[derive(serde::Deserialize)]
        struct Document {
            fleet: Option<Fleet>,
            operations: Operations,
        }
        #[derive(serde::Deserialize)]
        struct Fleet {
            #[serde(default)]
            common_first_interval: u64,
            common_last_interval: Option<u64>,
        }
        let path = directory.join(RunDocument::FILE);
        if !path.exists() {
            return Ok(Facts::default());
        }
        let text = plain_file::read(&path).map_err(RecordError::read(&path))?;
        let document: Document = serde_json::from_slice(&text)
            .map_err(|source| RecordError::Document { path, source })?;
        let fleet = document.fleet.filter(|_| phase == PhaseKind::Measure);
        Ok(Facts {
            common: fleet
                .and_then(|fleet| Some((fleet.common_first_interval, fleet.common_last_interval?))),
            operations: document.operations,
        })
    }

    fn includes(&self, name: &str, operation: Option<&str>) -> bool {
        match operation {
            Some(wanted) => name == wanted,
            None => self.operations.is_summed(name),
        }
    }
}

fn of_window(window: &Window, operation: Option<&str>, facts: &Facts) -> WindowResponses {
    let mut counts = SparseHistogram::default();
    histograms(window, operation, facts).for_each(|values| counts.merge(values));
    WindowResponses {
        response_ns: counts.buckets().collect(),
        ..without_responses(window, operation, facts)
    }
}

/// Response times of one operation, or of all.
fn histograms<'a>(
    window: &'a Window,
    operation: Option<&str>,
    facts: &Facts,
) -> impl Iterator<Item = &'a SparseHistogram> {
    window.histograms.iter().filter_map(move |entry| {
        let name = &window.operations[entry.operation].operation;
        let is_response = matches!(entry.clock, Clock::Response);
        (is_response && facts.includes(name, operation)).then_some(&entry.values)
    })
}

fn without_responses(window: &Window, operation: Option<&str>, facts: &Facts) -> WindowResponses {
    let row = &window.interval;
    let rows = window.operations.iter();
    let sums = rows.filter(|row| facts.includes(&row.operation, operation));
    let one = operation.map(|wanted| {
        let found = window.operations.iter().find(|row| row.operation == wanted);
        found.map_or((0, 0), |row| (row.count, row.errors))
    });
    let (succeeded, failed) = one.unwrap_or((row.succeeded, row.failed));
    WindowResponses {
        start_s: row.start_ns as f64 / 1e9,
        duration_s: row.duration_ns as f64 / 1e9,
        is_outside: facts.common.is_some_and(|(first, last)| !(first..=last).contains(&row.index)),
        succeeded,
        failed,
        response_ns: Vec::new(),
        response_sum_ns: sums.map(|row| row.response_sum_ns).sum(),
    }
}
