//! Opens a run directory: the document, the series for charts, and the merged histograms.
//!
//! A killed run does not have a final document. Its phases are rebuilt from the recorded windows, one window in memory
//! at a time, and the run is marked partial.

use crate::accumulate::{Distribution, PhaseAccumulator};
use crate::document::Document;
use crate::downsample::Downsampler;
use crate::error::RecordError;
use crate::hlog::Clock;
use crate::metrics::{self, MetricTable};
use crate::model::{Arrivals, Caveat, CaveatKind, PhaseKind, RunDocument, RunStatus};
use crate::responses::{MOST_WINDOWS, PhaseResponses, ResponsesCollector};
use crate::statement;
use crate::sub_second::{self, SubSecondPoint};
use crate::windows::{self, Windows};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of points over time; enough for one point per one-second window up to four hours.
const MOST_POINTS: u64 = 14_400;

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Run {
    pub directory: PathBuf,
    /// The document; complete even for a killed run, see [`Run::rebuilt`].
    pub document: RunDocument,
    /// One point per recording window, or per [`windows_per_point`](Run::windows_per_point) windows, in the order of
    /// time.
    pub intervals: Vec<IntervalPoint>,
    /// One point per operation for each of these points, in the order of time.
    pub series: Vec<SeriesPoint>,
    /// Recording windows per point: 1, or more in runs of several hours.
    pub windows_per_point: u64,
    /// First minute of the measure phase in parts of 10 ms, in the order of time.
    pub sub_second: Vec<SubSecondPoint>,
    /// Merged histograms per phase and operation, for percentile charts.
    pub distributions: Vec<PhaseDistribution>,
    /// Response times of the measure phase over time, for intervals; empty without a measure phase.
    pub responses: PhaseResponses,
    /// Metrics of host, servers and exporters during the run, by source; empty if the run was not observed.
    pub metrics: Vec<MetricTable>,
    /// Whether figures of the document come from the recorded windows because the run did not write them itself. The
    /// caveats are then incomplete and should be determined again.
    pub rebuilt: bool,
    /// Notes about truncated data that was skipped. Each is also a caveat of the document.
    pub notes: Vec<String>,
}

/// Totals of one recording window.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalPoint {
    pub phase: PhaseKind,
    /// Number of the window in its phase, from 0.
    pub index: u64,
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Length; the last window of a phase is usually shorter.
    pub duration_s: f64,
    /// Successful logical operations.
    pub succeeded: u64,
    /// Failed logical operations.
    pub failed: u64,
    /// For a point of several windows, start and end of the longest time without a successful operation.
    pub gap_s: Option<(f64, f64)>,
    /// Time average of the operations in flight.
    pub mean_in_flight: f64,
    /// Outcome of the arrivals; zeros with a closed loop.
    pub arrivals: Arrivals,
    pub reconnects: u64,
    /// User CPU time of the client process.
    pub cpu_user_s: f64,
    /// System CPU time of the client process.
    pub cpu_system_s: f64,
    /// Largest resident set of the client process so far.
    pub max_rss_bytes: u64,
}

/// One operation in one recording window.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPoint {
    pub phase: PhaseKind,
    /// Number of the window in its phase, from 0.
    pub index: u64,
    /// Start of the window, from the start of the run.
    pub start_s: f64,
    pub duration_s: f64,
    pub operation: String,
    /// Successful operations.
    pub count: u64,
    /// Failed operations.
    pub errors: u64,
    /// Documents returned or written.
    pub documents: u64,
    /// Values above the histogram's range.
    pub clamped: u64,
    /// From intended start to end.
    pub response: WindowLatency,
    /// From send to end.
    pub service: WindowLatency,
}

/// Latencies of one operation in one recording window, in microseconds; zeros without operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WindowLatency {
    /// Arithmetic mean, from the exact sum.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub max_us: f64,
}

/// Merged histograms of one operation in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseDistribution {
    pub phase: PhaseKind,
    pub operation: String,
    /// From intended start to end, in nanoseconds, successes only.
    pub response: Histogram<u64>,
    /// From send to end, likewise.
    pub service: Histogram<u64>,
}

impl Run {
    /// Reads a run directory.
    ///
    /// Truncated rows at the end of a file are skipped with a note. An invalid row is an error with its line number,
    /// because its figures could not be trusted.
    pub fn open(directory: &Path) -> Result<Run, RecordError> {
        Self::open_downsampled(directory, MOST_POINTS)
    }

    /// Like [`Run::open`], with at most about `most_points` points over time.
    pub fn open_downsampled(directory: &Path, most_points: u64) -> Result<Run, RecordError> {
        let document = RunDocument::read(directory)?;
        // Only phases that must be rebuilt need the start delays, which take a third of the time.
        if document.status != RunStatus::Running {
            let clocks = &[Clock::Response, Clock::Service];
            let run = Self::read(directory, document.clone(), most_points, clocks)?;
            if !run.rebuilt {
                return Ok(run);
            }
        }
        Self::read(directory, document, most_points, &Clock::ALL)
    }

    fn read(
        directory: &Path,
        mut document: RunDocument,
        most_points: u64,
        clocks: &'static [Clock],
    ) -> Result<Run, RecordError> {
        let mut windows = Windows::open(directory, clocks)?;
        let mut phases: BTreeMap<PhaseKind, PhaseAccumulator> = BTreeMap::new();
        let mut downsampler = Downsampler::new(windows::count(directory)?, most_points);
        let mut responses = ResponsesCollector::new(directory, PhaseKind::Measure, MOST_WINDOWS)?;
        let mut window_count = 0;
        while let Some(window) = windows.next_window()? {
            let phase = window.interval.phase;
            let offered = offered_rate_per_s(&document, phase);
            phases
                .entry(phase)
                .or_insert_with(|| PhaseAccumulator::new(phase, offered))
                .add_window(&window);
            downsampler.add(&window);
            responses.add(&window);
            window_count += 1;
        }
        phases.values_mut().for_each(PhaseAccumulator::finish_windows);
        let mut notes = windows.into_notes();
        let (metrics, metric_notes) = metrics::read(directory)?;
        notes.extend(metric_notes);
        let rebuilt = complete(&mut document, &phases, window_count);
        for note in &notes {
            let statement = statement!("part-not-read", reason = note);
            let caveat = Caveat::of_run(CaveatKind::ProbeUnavailable, statement);
            document.caveats.push(caveat);
        }
        let (intervals, series, windows_per_point) = downsampler.finish();
        Ok(Run {
            directory: directory.to_owned(),
            document,
            intervals,
            series,
            windows_per_point,
            sub_second: sub_second::read(directory)?,
            metrics,
            distributions: phases.into_values().flat_map(distributions).collect(),
            responses: responses.finish(),
            rebuilt,
            notes,
        })
    }

    /// The merged histograms of an operation; `None` if it did not run in the phase.
    pub fn distribution(&self, phase: PhaseKind, operation: &str) -> Option<&PhaseDistribution> {
        self.distributions.iter().find(|entry| entry.phase == phase && entry.operation == operation)
    }
}

/// Offered rate of the plan; the load phase always runs as fast as it can.
fn offered_rate_per_s(document: &RunDocument, phase: PhaseKind) -> Option<f64> {
    if phase == PhaseKind::Load {
        return None;
    }
    document.recorded_plan().rate_per_s()
}

/// Adds phases that the document lacks and corrects its status; returns whether that was necessary.
fn complete(
    document: &mut RunDocument,
    phases: &BTreeMap<PhaseKind, PhaseAccumulator>,
    windows: usize,
) -> bool {
    let missing: Vec<&PhaseAccumulator> = phases
        .values()
        .filter(|phase| !document.phases.iter().any(|p| p.name == phase.phase()))
        .collect();
    if document.status != RunStatus::Running && missing.is_empty() {
        return false;
    }
    document.phases.extend(missing.into_iter().map(PhaseAccumulator::to_record));
    document.phases.sort_by_key(|phase| phase.name);
    let reason = format!(
        "the run was killed or is still running; its figures are rebuilt from {windows} recorded windows"
    );
    // The reason of a failure is more informative than its consequence.
    if document.status != RunStatus::Failed {
        document.status = RunStatus::Partial;
    }
    let rebuilt = statement!("rebuilt-from-windows", windows = windows);
    let caveat = Caveat::of_run(CaveatKind::Partial, rebuilt);
    document.caveats.push(caveat);
    document.status_reason.get_or_insert(reason);
    true
}

fn distributions(phase: PhaseAccumulator) -> Vec<PhaseDistribution> {
    let kind = phase.phase();
    phase
        .into_distributions()
        .map(|(operation, Distribution { response, service, .. })| PhaseDistribution {
            phase: kind,
            operation,
            response,
            service,
        })
        .collect()
}
