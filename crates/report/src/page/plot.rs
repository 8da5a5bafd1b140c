//! Charts over a numeric axis, as data: curves, points with interval bars, and lines that mark a place. They
//! are drawn by `web/src/experiment.ts`.

use serde::Serialize;

/// What the numbers of an axis are, which decides how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Whole things, such as clients, and percents.
    Count,
    /// Events per second.
    Rate,
    /// Microseconds.
    Time,
    /// Seconds from the start.
    Seconds,
    /// Bytes.
    Bytes,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotAxis {
    /// What it is, with its unit.
    pub label: &'static str,
    /// What its numbers are.
    pub measure: Measure,
    /// Whether it is logarithmic at first.
    pub is_logarithmic: bool,
}

/// What a curve is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What was measured.
    Measured,
    /// Another thing that was measured: the 50th percentile.
    P50,
    /// The 99th percentile.
    P99,
    /// Asymptotic bounds, and what was asked for.
    Bound,
    /// Balanced job bounds.
    Balanced,
    /// What waiting for the measured resources alone explains.
    Network,
    /// A fitted curve.
    Model,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stroke {
    /// A line.
    Line,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
    /// Points with their intervals.
    Points,
    /// Points with their intervals, and a line between them.
    LineAndPoints,
    /// Steps with the area below them: a histogram, whose places are where its bars begin.
    Steps,
}

/// A curve, or points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotSeries {
    /// Its name in the legend.
    pub label: String,
    /// What it is.
    pub role: Role,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Places, in ascending order.
    pub x: Vec<f64>,
    /// Values at the places.
    pub y: Vec<f64>,
    /// Lower ends of the intervals; empty for a curve.
    pub low: Vec<Option<f64>>,
    /// Upper ends of the intervals.
    pub high: Vec<Option<f64>>,
}

/// A line across the chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotMark {
    /// Its name, beside the line.
    pub label: String,
    /// Whether it stands at a place of the horizontal axis.
    pub is_vertical: bool,
    /// Where.
    pub at: f64,
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// Its name in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The horizontal axis.
    pub x: PlotAxis,
    /// The vertical axis.
    pub y: PlotAxis,
    /// What is drawn, the first at the bottom.
    pub series: Vec<PlotSeries>,
    /// Places to look at.
    pub marks: Vec<PlotMark>,
}

impl PlotAxis {
    /// An axis on which equal steps have equal lengths.
    pub fn linear(label: &'static str, measure: Measure) -> PlotAxis {
        PlotAxis {
            label,
            measure,
            is_logarithmic: false,
        }
    }

    /// An axis on which equal ratios have equal lengths.
    pub fn logarithmic(label: &'static str, measure: Measure) -> PlotAxis {
        PlotAxis {
            is_logarithmic: true,
            ..PlotAxis::linear(label, measure)
        }
    }

    /// The one of them on which these places do not crowd.
    pub fn fitting(label: &'static str, measure: Measure, places: &[f64]) -> PlotAxis {
        PlotAxis {
            is_logarithmic: wants_logarithm(places),
            ..PlotAxis::linear(label, measure)
        }
    }
}

impl PlotMark {
    /// A line at a place of the horizontal axis.
    pub fn vertical(label: String, at: f64) -> PlotMark {
        PlotMark {
            label,
            is_vertical: true,
            at,
        }
    }

    /// A line at a place of the vertical axis.
    pub fn horizontal(label: String, at: f64) -> PlotMark {
        PlotMark {
            is_vertical: false,
            ..PlotMark::vertical(label, at)
        }
    }
}

impl PlotSeries {
    /// A curve from its points; those without a finite value are left out.
    pub fn curve(
        label: impl Into<String>,
        role: Role,
        stroke: Stroke,
        points: impl Iterator<Item = (f64, f64)>,
    ) -> PlotSeries {
        let finite = points.filter(|(x, y)| x.is_finite() && y.is_finite());
        let (x, y) = finite.unzip();
        PlotSeries {
            label: label.into(),
            role,
            stroke,
            x,
            y,
            low: Vec::new(),
            high: Vec::new(),
        }
    }
}

/// Whether places are spread over so wide a range that a linear axis would crowd most of them at its start.
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
