//! Charts with one bar, or point with its interval, per row. They are laid out in percent of their width and need no
//! script.

use serde::Serialize;

/// Largest number of labels on the axis.
const MOST_TICKS: usize = 6;

/// A chart of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RowsChart {
    pub title: String,
    /// Description in one sentence.
    pub caption: String,
    /// Label of the axis with its unit.
    pub axis: String,
    /// Labels on the axis.
    pub ticks: Vec<Tick>,
    /// A shaded range, such as differences of no interest.
    pub band: Option<Span>,
    /// A reference line, such as a ratio of 1, in percent of the width.
    pub reference_percent: Option<f64>,
    pub rows: Vec<Row>,
}

/// A label on the axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tick {
    /// In percent of the width.
    pub at_percent: f64,
    pub label: String,
}

/// A part of the width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Start in percent of the width.
    pub from_percent: f64,
    /// In percent of the width.
    pub width_percent: f64,
}

/// A row of the chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub label: String,
    /// The value as text.
    pub value: String,
    /// Additional text below the value.
    pub detail: String,
    /// Whether the row is emphasized.
    pub is_strong: bool,
    /// A bar from the start of the axis.
    pub bar: Option<Span>,
    /// Place of the value.
    pub point_percent: Option<f64>,
    /// The interval of the value, cut at the ends of the chart.
    pub interval: Option<Span>,
    /// Whether the interval is cut at its start and at its end.
    pub is_cut: [bool; 2],
}

/// Input for a row: a value with its interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowValue {
    pub label: String,
    /// The value as text.
    pub value_text: String,
    /// Additional text below the value.
    pub detail: String,
    /// Whether the row is emphasized.
    pub is_strong: bool,
    pub value: f64,
    /// Ends of the interval.
    pub interval: Option<(f64, f64)>,
}

impl RowsChart {
    /// Rows on an axis from 0 with labels at round values, each as a [`Scale::bar`] or a [`Scale::point`]. The title is
    /// still empty.
    pub fn from_zero(
        values: Vec<RowValue>,
        row: fn(&Scale, RowValue) -> Row,
        write: impl Fn(f64) -> String,
    ) -> RowsChart {
        let scale = Scale::from_zero(&values);
        RowsChart {
            ticks: scale.ticks(write),
            rows: values.into_iter().map(|value| row(&scale, value)).collect(),
            ..RowsChart::default()
        }
    }
}

/// Maps values to places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Scale {
    /// From 0 to slightly above the largest value; intervals extend the scale by half of that value at most.
    pub fn from_zero(values: &[RowValue]) -> Scale {
        let largest = values.iter().map(|row| row.value).fold(0.0, f64::max);
        let reach = values.iter().filter_map(|row| row.interval);
        let reach = reach.map(|(_, high)| high).fold(largest, f64::max);
        let high = reach.min(largest * 1.5) * 1.04;
        Scale { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, is_logarithmic: false }
    }

    /// A logarithmic scale from `low` to `high`, both positive.
    pub fn logarithmic(low: f64, high: f64) -> Scale {
        Scale { low, high, is_logarithmic: true }
    }

    /// The place of a value in percent, clamped to the ends.
    pub fn percent(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        (share.clamp(0.0, 1.0) * 10_000.0).round() / 100.0
    }

    /// The span between two values.
    pub fn span(&self, from: f64, to: f64) -> Span {
        let (from, to) = (self.percent(from), self.percent(to));
        Span { from_percent: from, width_percent: ((to - from) * 100.0).round() / 100.0 }
    }

    /// Round values along a linear scale.
    pub fn ticks(&self, write: impl Fn(f64) -> String) -> Vec<Tick> {
        let step = round_step((self.high - self.low) / (MOST_TICKS - 1) as f64);
        let first = (self.low / step).ceil();
        (0..)
            .map(|place| (first + f64::from(place)) * step)
            .take_while(|value| *value <= self.high)
            .map(|value| self.tick(value, write(value)))
            .collect()
    }

    /// A label at a value.
    pub fn tick(&self, value: f64, label: String) -> Tick {
        Tick { at_percent: self.percent(value), label }
    }

    /// A row with a bar.
    pub fn bar(&self, row: RowValue) -> Row {
        let bar = self.span(self.low, row.value);
        Row { bar: Some(bar), point_percent: None, ..self.point(row) }
    }

    /// A row with a point.
    pub fn point(&self, row: RowValue) -> Row {
        Row {
            point_percent: Some(self.percent(row.value)),
            interval: row.interval.map(|(low, high)| self.span(low, high)),
            is_cut: row
                .interval
                .map_or([false; 2], |(low, high)| [low < self.low, high > self.high]),
            label: row.label,
            value: row.value_text,
            detail: row.detail,
            is_strong: row.is_strong,
            bar: None,
        }
    }
}

/// The next number of the series 1, 2, 5, 10, … that is at least as large.
fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps.iter().find(|step| *step * decade >= least * (1.0 - 1e-9));
    step.unwrap_or(&10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(value: f64, interval: Option<(f64, f64)>) -> RowValue {
        RowValue {
            label: "a".into(),
            value_text: value.to_string(),
            detail: String::new(),
            is_strong: false,
            value,
            interval,
        }
    }

    #[test]
    fn a_wild_interval_does_not_squeeze_the_values() {
        let scale = Scale::from_zero(&[value(100.0, Some((1.0, 1e9)))]);
        let row = scale.point(value(100.0, Some((1.0, 1e9))));
        assert!(row.point_percent.is_some_and(|at| at > 60.0), "{row:?}");
        let interval = row.interval.unwrap();
        assert_eq!(interval.from_percent + interval.width_percent, 100.0);
        assert_eq!(row.is_cut, [false, true]);
        assert_eq!(scale.point(value(100.0, Some((90.0, 110.0)))).is_cut, [false; 2]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        let scale = Scale::from_zero(&[value(137.0, None)]);
        let labels: Vec<String> =
            scale.ticks(|tick| tick.to_string()).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0", "50", "100"]);
        assert_eq!(round_step(20.0), 20.0);
        assert_eq!(round_step(0.3), 0.5);
    }

    #[test]
    fn logarithmic_scale_places_half_as_far_as_double() {
        let scale = Scale::logarithmic(0.25, 4.0);
        assert_eq!(scale.percent(1.0), 50.0);
        assert_eq!(scale.percent(2.0) - 50.0, 50.0 - scale.percent(0.5));
        assert_eq!(scale.percent(100.0), 100.0);
    }

    #[test]
    fn scale_exists_without_values() {
        assert_eq!(Scale::from_zero(&[]).percent(0.5), 50.0);
    }
}
