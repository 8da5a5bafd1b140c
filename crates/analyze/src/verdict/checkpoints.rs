//! Checkpoint times of the servers, and their effect on the operations.

use super::bench::{Bench, Read, View, mean_us};
use crate::robust::mean;
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::names::checkpoint::{BUSY_RATIO, RUNNING_COUNT};

/// Fewest windows with a checkpoint, and without one, for a comparison.
const FEWEST: usize = 3;
/// Share of a window from which it counts as with a checkpoint. In long runs the windows are longer than
/// checkpoints.
const IN_IT: f64 = 0.25;
/// Share up to which it counts as without one.
const NOT_IN_IT: f64 = 0.02;

/// Start and end in seconds.
type Span = (f64, f64);

/// Reported checkpoints.
struct Reported {
    /// Times in which a checkpoint ran, in order and without overlaps.
    spans: Vec<Span>,
    /// Source series.
    series: Vec<String>,
}

/// Share of a time range in which a checkpoint ran.
pub(super) fn ratio(view: &View<'_>) -> Option<Read> {
    let (time_range, Reported { spans, series }) = (view.time_range, reported(view)?);
    let value = overlap_s(&spans, time_range.start_s, time_range.end_s) / time_range.length_s();
    (time_range.length_s() > 0.0).then_some(Read { value, series })
}

/// Mean response time of the windows with a checkpoint, divided by the mean of the windows without one.
pub(super) fn slowdown(view: &View<'_>) -> Option<Read> {
    let Reported { spans, series } = reported(view)?;
    let commands = view.commands_by_window();
    let (mut during, mut outside) = (Vec::new(), Vec::new());
    for window in view.inside() {
        let end_s = window.start_s + window.duration_s;
        let share = overlap_s(&spans, window.start_s, end_s) / window.duration_s;
        let response_us = commands
            .get(&window.index)
            .and_then(|commands| mean_us(commands.iter().copied(), |one| one.response));
        match response_us {
            Some(response_us) if share >= IN_IT => during.push(response_us),
            Some(response_us) if share <= NOT_IN_IT => outside.push(response_us),
            _ => {}
        }
    }
    if during.len() < FEWEST || outside.len() < FEWEST {
        return None;
    }
    let value = mean(&during) / mean(&outside);
    Some(Read { value, series })
}

/// Checkpoints of the first server that reports any; otherwise `None`.
fn reported(bench: &Bench<'_>) -> Option<Reported> {
    bench.tables.iter().find_map(|table| {
        let column = |metric| table.columns_of(metric).next();
        let (ended, running) = (column(BUSY_RATIO), column(RUNNING_COUNT));
        let series = |(id, _): (&MetricId, &[f64])| format!("{}/{id}", table.source);
        let series: Vec<String> = running.into_iter().chain(ended).map(series).collect();
        let values = |column: Option<(_, &[f64])>| column.map(|(_, values)| values.to_vec());
        (!series.is_empty())
            .then(|| Reported { spans: spans(table, values(ended), values(running)), series })
    })
}

/// A server reports a checkpoint at its end, with its duration in the row's unit, and while it runs: in a row
/// of several readings as the share of readings that saw it.
fn spans(table: &MetricTable, ended: Option<Vec<f64>>, running: Option<Vec<f64>>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (row, (at_s, length_s)) in table.at_s.iter().zip(&table.duration_s).enumerate() {
        let of = |column: &Option<Vec<f64>>| column.as_ref().map_or(0.0, |values| values[row]);
        let share = of(&running);
        if of(&ended) > 0.0 {
            spans.push((at_s - of(&ended) * length_s, *at_s));
        } else if share > 0.0 {
            spans.push((at_s - share * length_s, *at_s));
        }
    }
    united(spans)
}

/// Time spans, in seconds, merged and sorted.
pub fn united(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut united: Vec<Span> = Vec::new();
    for span in spans {
        match united.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => united.push(span),
        }
    }
    united
}

fn overlap_s(spans: &[Span], start_s: f64, end_s: f64) -> f64 {
    let first = spans.partition_point(|span| span.1 <= start_s);
    let inside = spans[first..].iter().take_while(|span| span.0 < end_s);
    inside.map(|span| span.1.min(end_s) - span.0.max(start_s)).sum()
}
