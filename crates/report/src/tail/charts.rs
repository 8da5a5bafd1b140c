//! Charts of latency by message number, distributions, and parts of the latency.

use super::tables::name;
use super::view::TailView;
use crate::page::plot::{Measure, Plot, PlotAxis, PlotSeries, Role, Stroke};
use crate::page::rows::{RowValue, RowsChart, Scale};
use crate::page::scatter::{ScatterChart, panel};
use crate::page::{Section, charts_of};
use crate::texts::text;
use dyno_analyze::messages::lines::{Line, label};
use dyno_record::quantity::Quantity;
use dyno_record::tail::{Cause, Latency, TailDocument};

/// Largest number of messages in a picture, and in all pictures of a page: two bytes each.
const MOST_OF_ONE: usize = 100_000;
const MOST_OF_ALL: usize = 4_000_000;
/// Largest number of charts of the parts of latency.
const MOST_COURSES: usize = 12;

/// The sections with content.
pub(super) fn sections(view: &TailView<'_>, lines: &[Line<'_>]) -> Vec<Section> {
    let document = view.document;
    let sections = [messages(view), distributions(document, lines), timelines(document, lines)];
    sections.into_iter().flatten().collect()
}

/// All messages of all cells.
fn messages(view: &TailView<'_>) -> Option<Section> {
    let shown = view.messages.iter().flat_map(|cell| {
        let several = cell.latencies_ns.len() > 1;
        cell.latencies_ns
            .iter()
            .enumerate()
            .map(move |(number, latencies)| (cell, number, several, latencies))
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        return None;
    }
    let most = (MOST_OF_ALL / shown.len()).min(MOST_OF_ONE);
    let downsampled = shown.iter().any(|(.., latencies)| latencies.len() > most);
    let panels = shown.iter().filter_map(|(messages, number, several, latencies)| {
        let cell = view.document.cells.iter().find(|cell| cell.name == messages.cell)?;
        let mut title = label(view.document, cell);
        if *several {
            title.push_str(&format!(" #{number}"));
        }
        let producer = cell.measured.as_ref()?.producers.get(*number)?;
        let words = format!(
            "Latency of each message through {title}: {}",
            text(&producer.verdict.statement)
        );
        Some(panel(title, words, latencies, most))
    });
    let chart = ScatterChart {
        id: "messages".into(),
        title: "Latency against message number".into(),
        caption: "A point for each message, all panels on the same axes. Drag over a part to zoom in all panels; \
                  double-click to reset."
            .into(),
        x_label: "message",
        y_label: "intended → received",
        panels: panels.collect(),
    };
    let notes = if downsampled {
        vec![
            "There are too many messages to draw: the first and the slowest message represent each group of neighbours."
                .to_owned(),
        ]
    } else {
        Vec::new()
    };
    Some(Section {
        title: "Every message".into(),
        lead: "Constant latency is a flat band; growing latency climbs with the message number."
            .into(),
        charts: charts_of([chart]),
        notes,
        ..Section::default()
    })
}

fn at(latency: &Latency, percent: f64) -> Option<f64> {
    let mut known = latency.percentiles.iter();
    let (_, us) = known.find(|(known, _)| (known - percent).abs() < 1e-9)?;
    (*us > 0.0).then_some(*us)
}

/// The distributions as rows on one logarithmic axis.
fn distributions(document: &TailDocument, lines: &[Line<'_>]) -> Option<Section> {
    let values = lines.iter().filter_map(|line| {
        let total = line.total()?;
        let (low, high) = (at(total, 5.0)?, at(total, 99.0)?);
        Some(RowValue {
            label: name(document, line),
            value_text: Quantity::microseconds(total.p50_us).to_string(),
            detail: format!("{} – {}", Quantity::microseconds(low), Quantity::microseconds(high)),
            is_strong: false,
            value: total.p50_us,
            interval: Some((low, high)),
        })
    });
    let values: Vec<RowValue> = values.collect();
    let ends = values.iter().filter_map(|row| row.interval);
    let low = ends.clone().map(|(low, _)| low).fold(f64::INFINITY, f64::min);
    let high = ends.map(|(_, high)| high).fold(0.0, f64::max);
    if values.is_empty() || low.is_nan() || low <= 0.0 {
        return None;
    }
    let scale = Scale::logarithmic(low / 1.3, (high * 1.3).max(low * 2.0));
    let decades = (-1..9).map(|power| 10f64.powi(power));
    let ticks = decades.filter(|tick| *tick >= low / 1.3 && *tick <= high * 1.3);
    let ticks = ticks.map(|tick| scale.tick(tick, Quantity::microseconds(tick).to_string()));
    let rows = RowsChart {
        title: "Distributions side by side".into(),
        caption: "The point is the median, the bar goes from the 5th to the 99th percentile."
            .into(),
        axis: "latency, logarithmic".into(),
        ticks: ticks.collect(),
        rows: values.into_iter().map(|row| scale.point(row)).collect(),
        ..RowsChart::default()
    };
    Some(Section {
        title: "Distributions".into(),
        lead: "Distribution of latency over the messages of each producer.".into(),
        charts: charts_of([rows]),
        ..Section::default()
    })
}

/// Parts of the latency over the run, for producers with growing latency.
fn timelines(document: &TailDocument, lines: &[Line<'_>]) -> Option<Section> {
    let growing: Vec<&Line<'_>> = lines
        .iter()
        .filter(|line| !matches!(line.producer.verdict.cause, Cause::Stationary | Cause::TooFew))
        .collect();
    let plots = growing.iter().take(MOST_COURSES).enumerate();
    let plots: Vec<Plot> = plots.map(|(place, line)| timeline(document, line, place)).collect();
    let notes = if growing.len() > MOST_COURSES {
        vec![format!("{} more are in the JSON report.", growing.len() - MOST_COURSES)]
    } else {
        Vec::new()
    };
    (!plots.is_empty()).then(|| Section {
        title: "Where the time goes as it grows".into(),
        lead: "Medians of groups of neighbouring messages. The part that climbs is where messages wait.".into(),
        charts: charts_of(plots),
        notes,
        ..Section::default()
    })
}

fn timeline(document: &TailDocument, line: &Line<'_>, place: usize) -> Plot {
    let points = &line.producer.timeline.points;
    let curve = |label: &str, role, stroke, of: fn(&dyno_record::tail::Point) -> Option<f64>| {
        let values = points.iter().filter_map(|point| Some((point.message, of(point)? / 1e3)));
        PlotSeries::curve(label, role, stroke, values)
    };
    let series = vec![
        curve("intended → received", Role::Bound, Stroke::Dashed, |point| point.total_ns),
        curve("wait: intended → send", Role::Measured, Stroke::Line, |point| Some(point.wait_ns)),
        curve("insert: send → acknowledged", Role::P99, Stroke::Line, |point| {
            Some(point.acknowledged_ns)
        }),
        curve("after: acknowledged → received", Role::P50, Stroke::Line, |point| {
            point.after_ns.map(|ns| ns.max(0.0))
        }),
    ];

    Plot {
        id: format!("course-{place}"),
        title: name(document, line),
        caption: crate::page::sentence(&text(&line.producer.verdict.statement)),
        x: PlotAxis::linear("message", Measure::Count),
        y: PlotAxis::linear("time", Measure::Time),
        series: series.into_iter().filter(|series| !series.x.is_empty()).collect(),
        marks: Vec::new(),
    }
}
