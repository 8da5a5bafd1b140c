//! Histograms of latencies and sizes.

use super::tables::noun;
use crate::page::plot::{Measure, Plot, PlotAxis, PlotSeries, Role, Stroke};
use crate::page::rows::{RowValue, RowsChart, Scale};
use crate::page::{Section, charts_of};
use dyno_analyze::access_pattern::FilePattern;
use dyno_record::io_trace::event::Operation;
use dyno_record::io_trace::log_histogram::LogHistogram;
use dyno_record::quantity::Quantity;

/// Bars per power of two in the charts, as bits; recorded totals have one bar.
const PART_BITS: u8 = 2;
/// Largest number of files with a histogram of their own.
const MOST_FILES: usize = 6;
/// Largest number of rows in a histogram of sizes.
const MOST_SIZES: usize = 14;
/// Files with a smaller share of all calls have no histogram.
const SMALL_RATIO: f64 = 0.01;

/// The histograms of the latencies and of the sizes of files.
pub(super) fn of_files(files: &[&FilePattern]) -> [Option<Section>; 2] {
    let files = largest(files);
    let plots: Vec<Plot> = files.iter().filter_map(|file| latency_plot(file)).collect();
    let sizes: Vec<RowsChart> = files.iter().filter_map(|file| size_chart(file)).collect();
    let latencies = (!plots.is_empty()).then(|| Section {
        title: "How long".into(),
        lead: "Time from entry to exit of a call. Bars get wider with time: there are at most four per power of two.".into(),
        charts: charts_of(plots),
        ..Section::default()
    });
    let sizes = (!sizes.is_empty()).then(|| Section {
        title: "Sizes of calls".into(),
        lead: "Bytes moved by a call. A row covers sizes from one power of two up to the next."
            .into(),
        charts: charts_of(sizes),
        ..Section::default()
    });
    [latencies, sizes]
}

/// The files with the most calls.
fn largest<'a>(files: &[&'a FilePattern]) -> Vec<&'a FilePattern> {
    let all: u64 = files.iter().map(|file| file.calls).sum();
    let large = files.iter().filter(|file| file.calls as f64 >= all as f64 * SMALL_RATIO);
    large.take(MOST_FILES).copied().collect()
}

fn latency_plot(file: &FilePattern) -> Option<Plot> {
    let part_bits = file.latency_ns.part_bits().min(PART_BITS);
    let mut times = LogHistogram::new(part_bits);
    times.merge(&file.latency_ns);
    let from = times.counts().iter().position(|&count| count > 0)?;
    // An empty bar at each end gives a single bar some width.
    let points = (from.saturating_sub(1).max(1)..=times.counts().len() + 1).map(|bucket| {
        let us = LogHistogram::lower_bound(part_bits, bucket) as f64 / 1e3;
        let count = times.counts().get(bucket).copied().unwrap_or(0);
        (us, count as f64 * 100.0 / times.count() as f64)
    });
    Some(Plot {
        id: format!("latency-histogram-{}-{}", file.file, file.operation.as_str()),
        title: format!("Latency of the {} of {}", noun(file.operation), file.label()),
        caption: "Share of the calls by duration.".into(),
        x: PlotAxis::logarithmic("latency", Measure::Time),
        y: PlotAxis::linear("% of the calls", Measure::Count),
        series: vec![PlotSeries::curve("calls", Role::Measured, Stroke::Steps, points)],
        marks: Vec::new(),
    })
}

fn size_chart(file: &FilePattern) -> Option<RowsChart> {
    if file.operation == Operation::Sync {
        return None;
    }
    let mut coarse = LogHistogram::new(0);
    coarse.merge(&file.size_bytes);
    let all = coarse.count() as f64;
    let value = |(from, below, count): (u64, u64, u64)| {
        let name = match is_one_size(file, from, below) {
            Some(size) => Quantity::bytes(size).to_string(),
            None => format!("{} to {}", Quantity::bytes(from), Quantity::bytes(below)),
        };
        RowValue {
            label: if from == 0 { "nothing".to_owned() } else { name },
            value_text: Quantity::ratio(count as f64 / all).to_string(),
            detail: Quantity::count(count).to_string(),
            is_strong: count as f64 >= 0.5 * all,
            value: count as f64 * 100.0 / all,
            interval: None,
        }
    };
    let mut values: Vec<RowValue> = coarse.buckets().map(value).collect();
    // If there are too many sizes, the most frequent ones.
    while values.len() > MOST_SIZES {
        let least = values.iter().enumerate();
        let least = least.min_by(|a, b| a.1.value.total_cmp(&b.1.value)).map(|(place, _)| place)?;
        values.remove(least);
    }
    (!values.is_empty()).then(|| RowsChart {
        title: format!("Sizes of the {} of {}", noun(file.operation), file.label()),
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
