//! Histograms of latencies and sizes, and the score over time.

use super::pairs::Pair;
use super::tables::noun;
use crate::page::plot::{Measure, Plot, PlotAxis, PlotSeries, Role, Stroke};
use crate::page::rows::{RowValue, RowsChart, Scale};
use crate::page::{Section, charts_of};
use dyno_analyze::access_pattern::{FilePattern, Slice};
use dyno_record::io_trace::event::Operation;
use dyno_record::io_trace::log_histogram::LogHistogram;
use dyno_record::quantity::Quantity;

/// Bars per power of two in the charts, as bits; recorded totals have one bar.
const PART_BITS: u8 = 2;
/// Largest number of files with a histogram of their own.
const MOST_FILES: usize = 6;
/// Largest number of curves in a chart.
const MOST_CURVES: usize = 4;
/// Largest number of rows in a histogram of sizes.
const MOST_SIZES: usize = 14;
/// Files with a smaller share of all calls have no histogram.
const SMALL_RATIO: f64 = 0.01;

const ROLES: [Role; MOST_CURVES] = [Role::Measured, Role::P99, Role::P50, Role::Balanced];

/// A file, or both files of a pair with the names of their sides.
type Sides<'a> = Vec<(&'static str, &'a FilePattern)>;

/// The histograms of files, each alone.
pub(super) fn of_files(files: &[&FilePattern]) -> [Option<Section>; 2] {
    let files: Vec<Sides<'_>> = largest(files).into_iter().map(|file| vec![("", file)]).collect();
    [latencies("", &files), sizes(&files)]
}

/// The histograms of two traces.
pub(super) fn of_pairs(pairs: &[Pair<'_>]) -> [Option<Section>; 2] {
    let mut files: Vec<Sides<'_>> = Vec::new();
    for pair in pairs {
        let sides = pair.sides().into_iter();
        files.push(sides.filter_map(|(label, file)| Some((label, file?))).collect());
    }
    [latencies("pair-", &files), sizes(&files)]
}

fn latencies(kind: &str, files: &[Sides<'_>]) -> Option<Section> {
    let plots: Vec<Plot> = files.iter().filter_map(|sides| latency_plot(kind, sides)).collect();
    (!plots.is_empty()).then(|| Section {
        title: "How long".into(),
        lead: "Time from entry to exit of a call. Bars get wider with time: there are at most four per power of two.".into(),
        charts: charts_of(plots),
        ..Section::default()
    })
}

/// The files with the most calls.
fn largest<'a>(files: &[&'a FilePattern]) -> Vec<&'a FilePattern> {
    let all: u64 = files.iter().map(|file| file.calls).sum();
    let large = files.iter().filter(|file| file.calls as f64 >= all as f64 * SMALL_RATIO);
    large.take(MOST_FILES).copied().collect()
}

fn latency_plot(kind: &str, sides: &Sides<'_>) -> Option<Plot> {
    let (_, file) = sides.last()?;
    let known = sides.iter().map(|(label, file)| (*label, &file.latency_ns));
    let histograms: Vec<(&str, &LogHistogram)> =
        known.filter(|(_, times)| times.count() > 0).collect();
    let part_bits = histograms.iter().map(|(_, times)| times.part_bits()).min()?.min(PART_BITS);
    let coarse: Vec<(&str, LogHistogram)> = histograms
        .iter()
        .map(|(label, times)| {
            let mut coarse = LogHistogram::new(part_bits);
            coarse.merge(times);
            (*label, coarse)
        })
        .collect();
    let first = |times: &LogHistogram| times.counts().iter().position(|&count| count > 0);
    let from = coarse.iter().filter_map(|(_, times)| first(times)).min()?;
    let to = coarse.iter().map(|(_, times)| times.counts().len()).max()?;
    let series = coarse.iter().zip(ROLES).map(|((label, times), role)| {
        // An empty bar at each end gives a single bar some width.
        let points = (from.saturating_sub(1).max(1)..=to + 1).map(|bucket| {
            let us = LogHistogram::lower_bound(part_bits, bucket) as f64 / 1e3;
            let count = times.counts().get(bucket).copied().unwrap_or(0);
            (us, count as f64 * 100.0 / times.count() as f64)
        });
        let label = if label.is_empty() { "calls" } else { label };
        PlotSeries::curve(label, role, Stroke::Steps, points)
    });
    Some(Plot {
        id: format!("latency-histogram-{kind}{}-{}", file.file, file.operation.as_str()),
        title: format!("Latency of the {} of {}", noun(file.operation), file.label()),
        caption: "Share of the calls by duration.".into(),
        x: PlotAxis::logarithmic("latency", Measure::Time),
        y: PlotAxis::linear("% of the calls", Measure::Count),
        series: series.collect(),
        marks: Vec::new(),
    })
}

fn sizes(files: &[Sides<'_>]) -> Option<Section> {
    let charts: Vec<RowsChart> = files.iter().filter_map(size_chart).collect();
    (!charts.is_empty()).then(|| Section {
        title: "Sizes of calls".into(),
        lead: "Bytes moved by a call. A row covers sizes from one power of two up to the next."
            .into(),
        charts: charts_of(charts),
        ..Section::default()
    })
}

fn size_chart(sides: &Sides<'_>) -> Option<RowsChart> {
    let (_, named) = sides.last()?;
    let mut values = Vec::new();
    for (label, file) in sides.iter().filter(|(_, file)| file.operation != Operation::Sync) {
        let mut coarse = LogHistogram::new(0);
        coarse.merge(&file.size_bytes);
        let all = coarse.count() as f64;
        values.extend(coarse.buckets().map(|(from, below, count)| {
            let name = match is_one_size(file, from, below) {
                Some(size) => Quantity::bytes(size).to_string(),
                None => format!("{} to {}", Quantity::bytes(from), Quantity::bytes(below)),
            };
            let name = if from == 0 { "nothing".to_owned() } else { name };
            RowValue {
                label: format!("{label} {name}").trim().to_owned(),
                value_text: Quantity::ratio(count as f64 / all).to_string(),
                detail: Quantity::count(count).to_string(),
                is_strong: count as f64 >= 0.5 * all,
                value: count as f64 * 100.0 / all,
                interval: None,
            }
        }));
    }
    // If there are too many sizes, the most frequent ones.
    while values.len() > MOST_SIZES {
        let least = values.iter().enumerate();
        let least = least.min_by(|a, b| a.1.value.total_cmp(&b.1.value)).map(|(place, _)| place)?;
        values.remove(least);
    }
    (!values.is_empty()).then(|| RowsChart {
        title: format!("Sizes of the {} of {}", noun(named.operation), named.label()),
        axis: "% of the calls".to_owned(),
        ..RowsChart::from_zero(values, Scale::bar, |value| format!("{value}"))
    })
}

/// The size of the calls of a range, if the file's finer histogram has all of them in the bucket that starts with a power
/// of two, as for databases.
fn is_one_size(file: &FilePattern, from: u64, below: u64) -> Option<u64> {
    let fine = &file.size_bytes;
    if fine.part_bits() == 0 {
        return None;
    }
    let mut inside = fine.buckets().filter(|(lower, _, _)| (from..below).contains(lower));
    let (lower, _, _) = inside.next()?;
    (inside.next().is_none() && lower == from).then_some(from)
}

/// The score over time of the files with the most calls.
pub(super) fn scores(files: &[&FilePattern]) -> Option<Section> {
    let curves = files.iter().filter(|file| file.score.is_some()).take(MOST_CURVES);
    let series: Vec<PlotSeries> =
        curves.zip(ROLES).filter_map(|(file, role)| score_curve(file, role)).collect();
    let plot = Plot {
        id: "score-over-time".to_owned(),
        title: "Score over time".to_owned(),
        caption: "1 is sequential, 0 is random.".to_owned(),
        x: PlotAxis::linear("time (s)", Measure::Seconds),
        y: PlotAxis::linear("score", Measure::Count),
        series,
        marks: Vec::new(),
    };
    (!plot.series.is_empty()).then(|| Section {
        title: "Order over time".into(),
        charts: charts_of([plot]),
        ..Section::default()
    })
}

fn score_curve(file: &FilePattern, role: Role) -> Option<PlotSeries> {
    let slices = file.slices.as_ref()?;
    let middle = slices.length_ns as f64 / 2.0;
    let points = slices.slices.iter().enumerate().filter_map(|(place, slice): (usize, &Slice)| {
        let start = slices.start_ns as f64 + place as f64 * slices.length_ns as f64;
        Some(((start + middle) * 1e-9, slice.score()?))
    });
    let label = format!("{} of {}", noun(file.operation), file.label());
    let curve = PlotSeries::curve(label, role, Stroke::Line, points);
    (curve.x.len() > 1).then_some(curve)
}
