//! Data of charts over the time of a run, which share one axis, cursor and zoom, and of percentile curves.
//! `web/src/time.ts`, `panels.ts` and `percentiles.ts` draw them.

use dyno_record::model::PhaseKind;
use serde::Serialize;

/// Heading of a chart; the page finds the data by `id`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeChart {
    /// Element name in the page.
    pub id: String,
    pub title: String,
    /// Description in one sentence.
    pub caption: String,
    /// Numbers of the caveats that apply to it.
    pub marks: Vec<usize>,
    /// Whether it is one of many charts, which are drawn lower.
    pub is_low: bool,
}

/// Data of all charts over time and percentile curves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeCharts {
    /// Phases that have points.
    pub phases: Vec<PhaseSpan>,
    /// Operation names, most frequent in the headline phase first.
    pub operations: Vec<String>,
    pub time: TimeSeries,
    /// Percentile curves of the headline phase.
    pub distributions: Vec<DistributionCurves>,
    /// Recording windows per point; 1 unless the run was downsampled.
    pub windows_per_point: usize,
    /// Method of downsampling in words; absent if the run was not downsampled.
    pub downsampling: Option<String>,
    /// Charts of resources, with the same points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<Panel>,
    /// Lines that mark changes in all charts over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeMark>,
}

/// The time range of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSpan {
    pub name: PhaseKind,
    /// From the start of the run.
    pub start_s: f64,
    /// From the start of the run.
    pub end_s: f64,
}

/// Curves over time. All lists have the same length; a row of `None` separates phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeSeries {
    /// Start of each point's time range, from the start of the run.
    pub start_s: Vec<f64>,
    /// End of each point's time range, from the start of the run.
    pub end_s: Vec<f64>,
    /// Arrivals that became due; absent if no phase had an open-loop schedule.
    pub offered_per_s: Option<Vec<Option<f64>>>,
    /// Logical operations that succeeded.
    pub achieved_per_s: Vec<Option<f64>>,
    /// Logical operations that failed; absent if none did.
    pub failed_per_s: Option<Vec<Option<f64>>>,
    /// One per operation, in the order of [`TimeCharts::operations`].
    pub operations: Vec<OperationSeries>,
}

/// Curves over time of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OperationSeries {
    /// Successful operations.
    pub rate_per_s: Vec<Option<f64>>,
    /// Failed operations; absent if none failed.
    pub errors_per_s: Option<Vec<Option<f64>>>,
    /// From intended start to end.
    pub response_us: LatencySeries,
    /// From send to end.
    pub service_us: LatencySeries,
}

/// Latencies over time in microseconds; `None` where no operation succeeded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LatencySeries {
    pub p50: Vec<Option<f64>>,
    pub p99: Vec<Option<f64>>,
    pub p99_9: Vec<Option<f64>>,
    pub max: Vec<Option<f64>>,
}

/// Percentile curves of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DistributionCurves {
    pub operation: String,
    pub count: u64,
    /// From intended start to end.
    pub response: PercentileCurve,
    /// From send to end.
    pub service: PercentileCurve,
}

/// Values at ascending percentile levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PercentileCurve {
    /// `1 / (1 - quantile)`: 2 is the median, 100 the 99th percentile. The last value is the number of values and
    /// represents the maximum.
    pub inverse: Vec<f64>,
    /// In microseconds.
    pub value_us: Vec<f64>,
}

/// A vertical line in the charts over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeMark {
    /// From the start of the run.
    pub at_s: f64,
    /// Text next to the line.
    pub label: String,
}

/// The data of a resource chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// Element name in the page.
    pub id: String,
    pub unit: PanelUnit,
    /// Whether the curves are stacked.
    pub is_stacked: bool,
    pub curves: Vec<PanelCurve>,
}

/// The unit of a chart's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelUnit {
    /// Shares from 0 to 1.
    Ratio,
    /// Counts.
    Count,
    PerSecond,
    Bytes,
    BytesPerSecond,
    Milliseconds,
}

/// A curve of a resource chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PanelCurve {
    pub label: String,
    /// Index of the colour, from 0.
    pub colour: usize,
    /// Distinguishes the curve from another one of the same colour.
    pub is_dashed: bool,
    /// Whether the area below the curve is filled.
    pub is_area: bool,
    /// One value per point in time; `None` without a reported value.
    pub values: Vec<Option<f64>>,
}
