//! Charts of ratios: between two plans, two runs, or the levels of a sweep and their base.

use super::difference;
use super::figure::TOO_SHORT;
use crate::page::rows::{Row, RowValue, RowsChart, Scale, Tick};
use crate::page::table::{Cell, Tone};
use dyno_record::experiment::{Basis, Comparison, DemandRatio, Statistic};

/// Distances of labels from 1, and between labels.
const STEPS: [f64; 8] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// Largest ratio, in both directions, on a chart.
const MOST_RATIO: f64 = 8.0;

/// Axis label of charts of changes.
pub(super) const AXIS: &str = "change from A to B";

/// Name of a figure.
pub(super) fn statistic(statistic: Statistic) -> String {
    match statistic {
        Statistic::Rate => "rate".into(),
        Statistic::MeanTime => "mean response".into(),
        Statistic::Percentile { percent } => format!("p{percent} response"),
    }
}

/// A number with at most three decimals.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The basis of the intervals.
pub(super) fn basis(rows: &[Comparison]) -> String {
    match rows.first() {
        Some(row) if row.basis == Basis::WithinRun => {
            "Intervals of 95 % from the windows of one run each, which do not show variation between runs."
                .into()
        }
        Some(row) => match row.pairs {
            1 => "Intervals of 95 % from one pair of runs.".into(),
            pairs => format!("Intervals of 95 % from {pairs} pairs of runs."),
        },
        None => String::new(),
    }
}

/// The interval of a ratio, or the reason why it has no useful one.
pub(super) fn range(row: &Comparison) -> String {
    match row.basis {
        _ if !row.is_vague() => ends(row.ratio.low, row.ratio.high),
        Basis::WithinRun => TOO_SHORT.to_owned(),
        Basis::BetweenRuns => "too few pairs".to_owned(),
    }
}

/// The row of a chart for a ratio.
pub(super) fn row_value(label: String, row: &Comparison) -> RowValue {
    RowValue {
        label,
        value_text: format!("{:.3}", row.ratio.value),
        detail: range(row),
        is_strong: false,
        value: row.ratio.value,
        interval: (!row.is_vague()).then_some((row.ratio.low, row.ratio.high)),
    }
}

/// Ratios with their intervals around 1.
pub(super) fn ratios(rows: &[Comparison]) -> RowsChart {
    let values: Vec<RowValue> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let plain = row_value(statistic(row.statistic), row);
            RowValue {
                is_strong: place == 0,
                value_text: difference::change(row.ratio.value),
                detail: difference::range(row),
                interval: difference::interval(row),
                ..plain
            }
        })
        .collect();
    chart(
        "B against A",
        "Each change with its 95 % interval; the shaded band holds differences of no interest. For rates more is \
         better, for times less.",
        (AXIS, difference::change),
        rows.first().map_or(0.0, |row| row.margin_ratio),
        values,
    )
}

/// Ratios around 1, with the margin as a band if there is one. The axis has a label, and labels for its ratios.
pub(super) fn chart(
    title: &str,
    caption: &str,
    (axis, label): (&str, fn(f64) -> String),
    margin_ratio: f64,
    values: Vec<RowValue>,
) -> RowsChart {
    let reach = reach(&values, margin_ratio);
    let scale = Scale::logarithmic(1.0 / reach, reach);
    let margin = 1.0 + margin_ratio;
    let rows: Vec<Row> = values.into_iter().map(|value| scale.point(value)).collect();
    RowsChart {
        title: title.to_owned(),
        caption: caption.to_owned(),
        axis: axis.to_owned(),
        ticks: ticks(&scale, reach, label),
        band: (margin_ratio > 0.0).then(|| scale.span(1.0 / margin, margin)),
        reference_percent: Some(scale.percent(1.0)),
        rows,
    }
}

/// The distance of the ends of the chart from 1: all values, their intervals up to a limit, and the margin.
fn reach(values: &[RowValue], margin_ratio: f64) -> f64 {
    let distance = |ratio: f64| ratio.ln().abs();
    let ends = values
        .iter()
        .flat_map(|row| row.interval.into_iter().flat_map(|(low, high)| [low, high]))
        .map(distance)
        .filter(|distance| distance.is_finite())
        .map(|distance| distance.min(MOST_RATIO.ln()));
    let centers = values.iter().map(|row| distance(row.value));
    let farthest = ends
        .chain(centers.filter(|distance| distance.is_finite()))
        .fold(1.5 * margin_ratio.ln_1p(), f64::max);
    (farthest.max(1e-3) * 1.1).exp()
}

/// Labels at round ratios on both sides of 1: at most three on each, or 1, 2, 5 and 10 times for a wide range.
fn ticks(scale: &Scale, reach: f64, label: fn(f64) -> String) -> Vec<Tick> {
    let step = STEPS.iter().find(|step| 1.0 + 5.0 * **step > reach);
    let ratios: Vec<f64> = match step {
        Some(step) => (-3..=3).map(|place| 1.0 + f64::from(place) * step).collect(),
        None => (-3..=3)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|first| first * 10f64.powi(power)))
            .collect(),
    };
    ratios
        .into_iter()
        .filter(|ratio| (1.0 / reach..=reach).contains(ratio))
        .map(|ratio| scale.tick(ratio, label(ratio)))
        .collect()
}

fn ends(low: f64, high: f64) -> String {
    format!("{low:.3}–{high:.3}")
}

/// The change of a demand from A to B.
pub(super) fn demand_change(demand: &DemandRatio) -> Cell {
    let interval = demand.ratio.low.zip(demand.ratio.high);
    let range = interval.map(|(low, high)| difference::changes(low, high));
    let ratio = demand_ratio(demand);
    Cell { text: difference::change(demand.ratio.value), detail: range, ..ratio }
}

/// A demand divided by the demand of the base.
pub(super) fn demand_ratio(demand: &DemandRatio) -> Cell {
    let tone = match (demand.is_certain(), demand.ratio.value > 1.0) {
        (true, true) => Tone::Alarm,
        (true, false) => Tone::Strong,
        (false, _) => Tone::Plain,
    };
    let interval = demand.ratio.low.zip(demand.ratio.high);
    let range = interval.map(|(low, high)| ends(low, high));
    Cell::new(format!("{:.3}", demand.ratio.value), tone).with_detail(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::estimate::Estimate;
    use dyno_record::experiment::ComparisonVerdict;

    fn row(value: f64, low: f64, high: f64) -> RowValue {
        RowValue {
            label: String::new(),
            value_text: String::new(),
            detail: String::new(),
            is_strong: false,
            value,
            interval: Some((low, high)),
        }
    }

    fn labels(values: Vec<RowValue>, margin_ratio: f64) -> Vec<String> {
        let chart = chart("", "", (AXIS, short), margin_ratio, values);
        chart.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn labels_are_round_whatever_the_range() {
        let small = labels(vec![row(1.0, 0.99, 1.01)], 0.05);
        assert_eq!(small, ["0.94", "0.96", "0.98", "1", "1.02", "1.04", "1.06"]);
        assert_eq!(labels(vec![row(2.0, 1.8, 2.2)], 0.05), ["0.5", "1", "1.5", "2"]);
        assert_eq!(
            labels(vec![row(20.0, 18.0, 22.0)], 0.05),
            ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]
        );
    }

    #[test]
    fn the_band_is_the_margin_around_one() {
        let chart = chart("", "", (AXIS, short), 0.05, vec![row(1.0, 0.99, 1.01)]);
        let band = chart.band.unwrap();
        assert_eq!(chart.reference_percent, Some(50.0));
        let middle = band.from_percent + band.width_percent / 2.0;
        assert!((middle - 50.0).abs() < 0.02, "{band:?}");
        assert!(band.width_percent > 50.0 && band.width_percent < 70.0, "{band:?}");
    }

    #[test]
    fn interval_is_hidden_when_it_is_too_wide() {
        let mut row = Comparison {
            statistic: Statistic::Rate,
            ratio: Estimate { value: 1.0, low: 0.6, high: 1.6, confidence_ratio: 0.95 },
            verdict: ComparisonVerdict::NotEnoughData,
            margin_ratio: 0.05,
            basis: Basis::BetweenRuns,
            pairs: 2,
            pair_deviation_ratio: 0.05,
            degrees_of_freedom: Some(4.0),
            order_effect_ratio: None,
        };
        assert!(range(&row).contains("0.6"), "{}", range(&row));
        row.ratio.high = 4.1 * row.ratio.low;
        assert!(range(&row).ends_with("pairs"), "{}", range(&row));
        assert_eq!(row_value("B".into(), &row).interval, None);
        row.basis = Basis::WithinRun;
        assert!(range(&row).ends_with("windows"), "{}", range(&row));
        // A verdict depends on its interval.
        row.verdict = ComparisonVerdict::Slower;
        assert!(row_value("B".into(), &row).interval.is_some());
        row.verdict = ComparisonVerdict::NotEnoughData;
        row.pairs = 6;
        assert!(row_value("B".into(), &row).interval.is_some());
    }

    #[test]
    fn a_wild_interval_leaves_the_chart_instead_of_stretching_it() {
        let chart = chart("", "", (AXIS, short), 0.05, vec![row(1.1, 1e-9, 1e9)]);
        let interval = chart.rows[0].interval.unwrap();
        assert_eq!((interval.from_percent, interval.width_percent), (0.0, 100.0));
        assert!(chart.ticks.len() > 2, "{chart:?}");
    }
}
