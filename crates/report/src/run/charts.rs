//! The charts of a run: over time, and its distributions.

use crate::caveat::{CaveatBook, Topic};
use crate::page::time::{TimeChart, TimeCharts};
use crate::page::{Section, charts_of};

fn chart(id: &str, title: &str, caption: &str, marks: Vec<usize>) -> TimeChart {
    TimeChart {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        marks,
        is_low: false,
    }
}

/// Caveats that apply to percentiles, including high ones.
fn marks_of_latency(book: &CaveatBook) -> Vec<usize> {
    let mut marks = book.marks(Topic::Latency, None);
    marks.extend(book.marks(Topic::Tail, None));
    marks.sort_unstable();
    marks.dedup();
    marks
}

/// Rate, latency and errors over time; absent without windows.
pub(super) fn over_time(charts: &TimeCharts, book: &CaveatBook) -> Option<Section> {
    if charts.time.start_s.is_empty() {
        return None;
    }
    let offered = match charts.time.offered_per_s {
        Some(_) => ", and the rate offered by the schedule",
        None => "",
    };
    let of_window = match charts.downsampling {
        Some(_) => "In each recording window.",
        None => "In each recording window, for operations that ended in it.",
    };
    let mut shown = vec![
        chart(
            "rate",
            "Rate",
            &format!("Successful operations per second{offered}."),
            book.marks(Topic::Rate, None),
        ),
        chart("latency", "Latency", of_window, marks_of_latency(book)),
    ];
    if charts.time.failed_per_s.is_some() {
        shown.push(chart(
            "errors",
            "Errors",
            "Failed operations per second. They are not part of any rate or latency.",
            book.marks(Topic::Errors, None),
        ));
    }
    Some(Section {
        title: "Over time".into(),
        lead: charts.downsampling.clone().unwrap_or_default(),
        charts: charts_of(shown),
        ..Section::default()
    })
}

/// Percentiles; absent without windows.
pub(super) fn distribution(charts: &TimeCharts, book: &CaveatBook) -> Option<Section> {
    let shown = [
        chart(
            "distribution",
            "Response time by operation",
            "Response time of all but the slowest operations; each step to the right excludes ten times fewer.",
            marks_of_latency(book),
        ),
        chart(
            "comparison",
            "Response against service time",
            "Where the curves part, operations waited before they were sent.",
            marks_of_latency(book),
        ),
    ];
    (!charts.time.start_s.is_empty()).then(|| Section {
        title: "Distribution".into(),
        charts: charts_of(shown),
        is_grid: true,
        ..Section::default()
    })
}
