//! Data of charts over a numeric axis: curves, points with interval bars, and marker lines. `web/src/experiment.ts` draws
//! them.

use serde::Serialize;

/// The kind of numbers on an axis, which determines their format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Counts, such as clients, and percentages.
    Count,
    Rate,
    /// Microseconds.
    Time,
    /// Seconds from the start.
    Seconds,
    Bytes,
}

/// An axis of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotAxis {
    /// Label with its unit.
    pub label: &'static str,
    pub measure: Measure,
    /// Whether it is initially logarithmic.
    pub is_logarithmic: bool,
}

/// The meaning of a curve, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Measured,
    /// Another measured value: the 50th percentile.
    P50,
    /// The 99th percentile.
    P99,
    /// Bounds, and requested values.
    Bound,
    /// Prediction from waiting for the measured resources alone.
    Network,
    /// A fitted curve.
    Model,
}

/// The line style of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stroke {
    Line,
    Dashed,
    Dotted,
    /// Points with their intervals.
    Points,
    /// Points with their intervals, connected by a line.
    LineAndPoints,
    /// A histogram: steps with the area below them; x values are the starts of the bars.
    Steps,
}

/// A curve or points of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotSeries {
    /// Name in the legend.
    pub label: String,
    pub role: Role,
    pub stroke: Stroke,
    /// Values on the horizontal axis, in ascending order.
    pub x: Vec<f64>,
    /// Values on the vertical axis.
    pub y: Vec<f64>,
    /// Lower ends of the intervals; empty for a curve.
    pub low: Vec<Option<f64>>,
    /// Upper ends of the intervals.
    pub high: Vec<Option<f64>>,
}

/// A marker line across the chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotMark {
    /// Label next to the line.
    pub label: String,
    /// Whether `at` is on the horizontal axis.
    pub is_vertical: bool,
    pub at: f64,
}

/// A chart over a numeric axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// Element name in the page.
    pub id: String,
    pub title: String,
    /// Description in one sentence.
    pub caption: String,
    pub x: PlotAxis,
    pub y: PlotAxis,
    /// Drawn in order, the first at the bottom.
    pub series: Vec<PlotSeries>,
    /// Marker lines.
    pub marks: Vec<PlotMark>,
}

impl PlotAxis {
    /// A linear axis.
    pub fn linear(label: &'static str, measure: Measure) -> PlotAxis {
        PlotAxis { label, measure, is_logarithmic: false }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: &'static str, measure: Measure) -> PlotAxis {
        PlotAxis { is_logarithmic: true, ..PlotAxis::linear(label, measure) }
    }

    /// A logarithmic axis if the places would crowd on a linear one, otherwise a linear axis.
    pub fn fitting(label: &'static str, measure: Measure, places: &[f64]) -> PlotAxis {
        PlotAxis { is_logarithmic: wants_logarithm(places), ..PlotAxis::linear(label, measure) }
    }
}

impl PlotMark {
    /// A vertical line at a value of the horizontal axis.
    pub fn vertical(label: String, at: f64) -> PlotMark {
        PlotMark { label, is_vertical: true, at }
    }

    /// A horizontal line at a value of the vertical axis.
    pub fn horizontal(label: String, at: f64) -> PlotMark {
        PlotMark { is_vertical: false, ..PlotMark::vertical(label, at) }
    }
}

impl PlotSeries {
    /// A curve from points; points without a finite value are omitted.
    pub fn curve(
        label: impl Into<String>,
        role: Role,
        stroke: Stroke,
        points: impl Iterator<Item = (f64, f64)>,
    ) -> PlotSeries {
        let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let (x, y) = finite.unzip();
        PlotSeries { label: label.into(), role, stroke, x, y, low: Vec::new(), high: Vec::new() }
    }
}

/// Whether the places span so wide a range that a linear axis would crowd most of them at its start.
fn wants_logarithm(places: &[f64]) -> bool {
    let most = places.iter().copied().fold(0.0, f64::max);
    let least = places.iter().copied().fold(f64::INFINITY, f64::min);
    let crowded = places.iter().filter(|place| **place <= most / 4.0).count();
    least > 0.0 && places.len() > 3 && crowded * 2 > places.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_is_logarithmic_when_values_double() {
        assert!(wants_logarithm(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]));
        assert!(!wants_logarithm(&[10.0, 20.0, 30.0, 40.0, 50.0]));
        assert!(!wants_logarithm(&[1.0, 100.0]));
        assert!(!wants_logarithm(&[]));
    }

    #[test]
    fn plot_omits_values_that_are_not_finite() {
        let points = [(1.0, 2.0), (2.0, f64::INFINITY), (3.0, 4.0)];
        let curve = PlotSeries::curve("a", Role::Bound, Stroke::Line, points.into_iter());
        assert_eq!((curve.x, curve.y), (vec![1.0, 3.0], vec![2.0, 4.0]));
    }
}
