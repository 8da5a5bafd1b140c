//! Charts over the time of a run, which share one axis, cursor and zoom, and its curves of percentiles, as data. They are
//! drawn by `web/src/time.ts`, `panels.ts` and `percentiles.ts`.

use dyno_record::model::PhaseKind;
use serde::Serialize;

/// What stands above a chart; the page finds its data by its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeChart {
    /// Its name in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// Numbers of the caveats that touch it.
    pub marks: Vec<usize>,
    /// Whether it is one of many, which are lower.
    pub is_low: bool,
}

/// Everything that charts over time and curves of percentiles show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeCharts {
    /// Phases that have points.
    pub phases: Vec<PhaseSpan>,
    /// Operation names, most frequent in the headline phase first.
    pub operations: Vec<String>,
    /// Curves over time.
    pub time: TimeSeries,
    /// Percentile curves of the headline phase.
    pub distributions: Vec<DistributionCurves>,
    /// Recording windows per point; 1 unless the run was thinned.
    pub windows_per_point: usize,
    /// How thinned points were made, in words; absent when the run was not thinned.
    pub downsampling: Option<String>,
    /// Charts of resources, on the same points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub panels: Vec<Panel>,
    /// Lines that mark changes in all charts over time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeMark>,
}

/// The time that a phase took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseSpan {
    /// The phase.
    pub name: PhaseKind,
    /// Start, from the start of the run.
    pub start_s: f64,
    /// End, from the start of the run.
    pub end_s: f64,
}

/// Curves over time. All lists have the same length; a row of `None` separates phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeSeries {
    /// Start of each point's time, from the start of the run.
    pub start_s: Vec<f64>,
    /// End of each point's time.
    pub end_s: Vec<f64>,
    /// Arrivals that became due; absent if no phase had an open-loop schedule.
    pub offered_per_s: Option<Vec<Option<f64>>>,
    /// Logical operations that succeeded.
    pub achieved_per_s: Vec<Option<f64>>,
    /// Logical operations that failed; absent if none did.
    pub failed_per_s: Option<Vec<Option<f64>>>,
    /// Per operation, in the order of [`TimeCharts::operations`].
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
    /// Median.
    pub p50: Vec<Option<f64>>,
    /// 99th percentile.
    pub p99: Vec<Option<f64>>,
    /// 99.9th percentile.
    pub p99_9: Vec<Option<f64>>,
    /// Largest value.
    pub max: Vec<Option<f64>>,
}

/// Percentile curves of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DistributionCurves {
    /// Operation name.
    pub operation: String,
    /// Number of values.
    pub count: u64,
    /// From intended start to end.
    pub response: PercentileCurve,
    /// From send to end.
    pub service: PercentileCurve,
}

/// Values at ascending percentile levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PercentileCurve {
    /// `1 / (1 - quantile)`: 2 is the median, 100 the 99th percentile. The last one is the number
    /// of values and stands for the maximum.
    pub inverse: Vec<f64>,
    /// Value at the level, in microseconds.
    pub value_us: Vec<f64>,
}

/// A vertical line in the charts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeMark {
    /// When, from the start of the run.
    pub at_s: f64,
    /// What stands beside it.
    pub label: String,
}

/// The data of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// Its name in the page.
    pub id: String,
    /// What its values are.
    pub unit: PanelUnit,
    /// Whether each curve stands on the one before it.
    pub is_stacked: bool,
    /// Its curves.
    pub curves: Vec<PanelCurve>,
}

/// What the values of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelUnit {
    /// Shares from 0 to 1.
    Ratio,
    /// Numbers of things.
    Count,
    /// Events per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Times in milliseconds.
    Milliseconds,
}

/// A curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PanelCurve {
    /// What it shows.
    pub label: String,
    /// Number of its colour, from 0.
    pub colour: usize,
    /// Whether it is dashed, to tell it from another one of the same colour.
    pub is_dashed: bool,
    /// Whether the area below it is filled.
    pub is_area: bool,
    /// A value for each point in time; nothing where nothing was told.
    pub values: Vec<Option<f64>>,
}
