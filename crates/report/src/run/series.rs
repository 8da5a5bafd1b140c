//! The chart data of a run: rates and latencies over time, and percentile curves. Long runs are downsampled to keep the
//! page small.

use crate::page::time::{
    DistributionCurves, LatencySeries, OperationSeries, PercentileCurve, PhaseSpan, TimeCharts,
    TimeSeries,
};
use crate::rounding::{digits, rounded};
use dyno_record::model::PhaseKind;
use dyno_record::quantity::Quantity;
use dyno_record::reader::{IntervalPoint, Run, SeriesPoint, WindowLatency};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Largest number of points per curve over time, about two per pixel of a wide chart.
pub(super) const MAX_POINTS: usize = 2_000;

/// Points of a percentile curve for each halving of the distance to 100 %, the usual number of
/// HdrHistogram's percentile output.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// Makes the chart data. `operations` are the names in display order, `phase` is the phase of the distributions, `limit`
/// the largest number of points per curve over time.
pub(crate) fn charts(
    run: &Run,
    operations: Vec<String>,
    phase: Option<PhaseKind>,
    limit: usize,
) -> TimeCharts {
    let groups = group_windows(&run.intervals, limit);
    let read_per_point = usize::try_from(run.windows_per_point).unwrap_or(usize::MAX);
    let points_per_group = groups.iter().map(|group| group.len()).max().unwrap_or(1);
    let windows_per_point = points_per_group.saturating_mul(read_per_point);
    let points = points_by_window(&run.series);
    let mut time = TimeSeries::default();
    time.operations.resize_with(operations.len(), OperationSeries::default);
    let mut offered = Vec::new();
    let mut failed = Vec::new();
    let mut previous: Option<PhaseKind> = None;
    for group in &groups {
        let kind = group[0].phase;
        if previous.is_some_and(|previous| previous != kind) {
            push_gap(&mut time, &mut offered, &mut failed);
        }
        previous = Some(kind);
        let seconds = seconds_of(group);
        let (first, last) = (&group[0], &group[group.len() - 1]);
        time.start_s.push(digits(first.start_s, 3));
        time.end_s.push(digits(last.start_s + last.duration_s, 3));
        let sum = |count: fn(&IntervalPoint) -> u64| group.iter().map(count).sum::<u64>();
        time.achieved_per_s.push(rate(sum(|w| w.succeeded), seconds));
        failed.push(rate(sum(|w| w.failed), seconds));
        offered.push(rate(sum(|w| w.arrivals.due), seconds));
        for (name, series) in operations.iter().zip(&mut time.operations) {
            let of_group: Vec<&SeriesPoint> = group
                .iter()
                .filter_map(|w| points.get(&(w.phase, w.index, name.as_str())).copied())
                .collect();
            push_operation(series, &of_group, seconds);
        }
    }
    time.offered_per_s = any_above_zero(blank_closed_phases(offered, &groups));
    time.failed_per_s = any_above_zero(failed);
    for series in &mut time.operations {
        series.errors_per_s = series.errors_per_s.take().and_then(any_above_zero);
    }
    TimeCharts {
        phases: phase_spans(&run.intervals),
        distributions: distributions(run, &operations, phase),
        operations,
        time,
        windows_per_point,
        downsampling: (windows_per_point > 1).then(|| downsampling_note(run, windows_per_point)),
        panels: Vec::new(),
        changes: Vec::new(),
    }
}

fn downsampling_note(run: &Run, windows_per_point: usize) -> String {
    let read = run.windows_per_point.max(1);
    // The last window of a phase is shorter, and a load phase may have no other window.
    let longest_s = run.intervals.iter().map(|window| window.duration_s);
    let usual_s = longest_s.fold(0.0, f64::max) / read as f64;
    let about = if read > 1 { "about " } else { "" };
    format!(
        "The run has {about}{} recording windows; each point covers {windows_per_point} of them ({}). Rates \
         cover the whole point; a percentile is the highest of its windows, \
         because percentiles cannot be averaged; the maximum is exact.{}",
        Quantity::count(run.intervals.len() as u64 * read),
        Quantity::seconds(usual_s * windows_per_point as f64),
        if run.metrics.is_empty() { "" } else { " Watched values are means over the points." },
    )
}

/// Splits the windows into groups of equal length within phases, so that there are at most `limit` groups, including the
/// gaps between phases.
fn group_windows(windows: &[IntervalPoint], limit: usize) -> Vec<&[IntervalPoint]> {
    let phases: Vec<&[IntervalPoint]> = windows.chunk_by(|a, b| a.phase == b.phase).collect();
    let points = |size: usize| -> usize {
        let groups: usize = phases.iter().map(|p| p.len().div_ceil(size)).sum();
        groups + phases.len().saturating_sub(1)
    };
    let mut size = windows.len().div_ceil(limit).max(1);
    while points(size) > limit && size < windows.len() {
        size += 1;
    }
    phases.iter().flat_map(|p| p.chunks(size)).collect()
}

type PointsByWindow<'a> = BTreeMap<(PhaseKind, u64, &'a str), &'a SeriesPoint>;

fn points_by_window(series: &[SeriesPoint]) -> PointsByWindow<'_> {
    series
        .iter()
        .map(|point| ((point.phase, point.index, point.operation.as_str()), point))
        .collect()
}

fn seconds_of(group: &[IntervalPoint]) -> f64 {
    group.iter().map(|window| window.duration_s).sum()
}

fn rate(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| significant(count as f64 / seconds))
}

fn push_operation(series: &mut OperationSeries, group: &[&SeriesPoint], seconds: f64) {
    let count: u64 = group.iter().map(|point| point.count).sum();
    let errors: u64 = group.iter().map(|point| point.errors).sum();
    series.rate_per_s.push(rate(count, seconds));
    let errors_per_s = series.errors_per_s.get_or_insert_default();
    errors_per_s.push(rate(errors, seconds));
    push_latency(&mut series.response_us, group, |point| &point.response);
    push_latency(&mut series.service_us, group, |point| &point.service);
}

fn push_latency(
    series: &mut LatencySeries,
    group: &[&SeriesPoint],
    of: fn(&SeriesPoint) -> &WindowLatency,
) {
    let highest = |field: fn(&WindowLatency) -> f64| {
        let values = group.iter().filter(|point| point.count > 0);
        values.map(|point| significant(field(of(point)))).reduce(f64::max)
    };
    series.p50.push(highest(|latency| latency.p50_us));
    series.p99.push(highest(|latency| latency.p99_us));
    series.p99_9.push(highest(|latency| latency.p99_9_us));
    series.max.push(highest(|latency| latency.max_us));
}

/// A row without values at the end of the last point, so that curves do not connect phases.
fn push_gap(time: &mut TimeSeries, offered: &mut Vec<Option<f64>>, failed: &mut Vec<Option<f64>>) {
    let end_s = time.end_s.last().copied().unwrap_or(0.0);
    time.start_s.push(end_s);
    time.end_s.push(end_s);
    time.achieved_per_s.push(None);
    offered.push(None);
    failed.push(None);
    for series in &mut time.operations {
        series.rate_per_s.push(None);
        series.errors_per_s.get_or_insert_default().push(None);
        for latency in [&mut series.response_us, &mut series.service_us] {
            for values in [&mut latency.p50, &mut latency.p99, &mut latency.p99_9, &mut latency.max]
            {
                values.push(None);
            }
        }
    }
}

/// Removes the zeros of phases with a closed loop: they have no offered rate, which differs from an offered rate of 0/s.
fn blank_closed_phases(
    mut offered: Vec<Option<f64>>,
    groups: &[&[IntervalPoint]],
) -> Vec<Option<f64>> {
    let open = |kind: PhaseKind| {
        let windows = groups.iter().flat_map(|group| group.iter());
        windows.filter(|window| window.phase == kind).any(|window| window.arrivals.due > 0)
    };
    let mut kinds = groups.iter().map(|group| group[0].phase);
    let mut is_open: BTreeMap<PhaseKind, bool> = BTreeMap::new();
    for value in offered.iter_mut().filter(|value| value.is_some()) {
        let Some(kind) = kinds.next() else { break };
        if !*is_open.entry(kind).or_insert_with(|| open(kind)) {
            *value = None;
        }
    }
    offered
}

fn any_above_zero(values: Vec<Option<f64>>) -> Option<Vec<Option<f64>>> {
    let above = values.iter().flatten().any(|value| *value > 0.0);
    above.then_some(values)
}

fn phase_spans(windows: &[IntervalPoint]) -> Vec<PhaseSpan> {
    windows
        .chunk_by(|a, b| a.phase == b.phase)
        .map(|phase| {
            let (first, last) = (&phase[0], &phase[phase.len() - 1]);
            PhaseSpan {
                name: first.phase,
                start_s: digits(first.start_s, 3),
                end_s: digits(last.start_s + last.duration_s, 3),
            }
        })
        .collect()
}

fn distributions(
    run: &Run,
    operations: &[String],
    phase: Option<PhaseKind>,
) -> Vec<DistributionCurves> {
    let of = |operation: &String| {
        let latency = run.distribution(phase?, operation)?;
        Some(DistributionCurves {
            operation: operation.clone(),
            count: latency.response.len(),
            response: percentile_curve(&latency.response),
            service: percentile_curve(&latency.service),
        })
    };
    operations.iter().filter_map(of).collect()
}

/// The curve of a histogram of nanoseconds; empty for an empty histogram.
pub(crate) fn percentile_curve(histogram: &Histogram<u64>) -> PercentileCurve {
    let mut curve = PercentileCurve::default();
    if histogram.is_empty() {
        return curve;
    }
    // Beyond this level only the maximum is left.
    let last = histogram.len() as f64;
    let levels = histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE);
    for level in levels {
        let inverse = 1.0 / (1.0 - level.quantile_iterated_to());
        if inverse >= last {
            break;
        }
        push_level(&mut curve, inverse, level.value_iterated_to());
    }
    push_level(&mut curve, last.max(1.0), histogram.max());
    curve
}

fn push_level(curve: &mut PercentileCurve, inverse: f64, value_ns: u64) {
    // Levels that round to the same place would make the axis decrease by rounding.
    let inverse = significant(inverse);
    if curve.inverse.last().is_some_and(|last| *last >= inverse) {
        curve.inverse.pop();
        curve.value_us.pop();
    }
    curve.inverse.push(inverse);
    curve.value_us.push(significant(value_ns as f64 / 1_000.0));
}

/// Six significant digits: more than a chart can show, half the bytes of the full number.
fn significant(value: f64) -> f64 {
    rounded(value, 6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata;

    fn windows(load: u64, measure: u64) -> Vec<IntervalPoint> {
        let run = testdata::run(testdata::closed_document(), &[]);
        let template = run.intervals;
        assert!(template.is_empty());
        let point = |phase, index: u64, offset: u64| IntervalPoint {
            phase,
            index,
            start_s: (index + offset) as f64,
            duration_s: 1.0,
            succeeded: 100,
            failed: 0,
            gap_s: None,
            mean_in_flight: 1.0,
            arrivals: Default::default(),
            reconnects: 0,
            cpu_user_s: 0.0,
            cpu_system_s: 0.0,
            max_rss_bytes: 0,
        };
        let load_points = (0..load).map(|index| point(PhaseKind::Load, index, 0));
        let measure_points = (0..measure).map(|index| point(PhaseKind::Measure, index, load));
        load_points.chain(measure_points).collect()
    }

    #[test]
    fn a_point_is_as_long_as_its_full_windows() {
        let mut run = testdata::run(testdata::closed_document(), &[]);
        run.intervals = windows(1, 3_600);
        run.intervals[0].duration_s = 0.045;
        let note = downsampling_note(&run, 2);
        assert!(note.contains("covers 2 of"), "{note}");
        assert!(note.contains("(2.0 s)"), "{note}");
    }

    #[test]
    fn short_run_is_not_downsampled() {
        let windows = windows(3, 5);
        let groups = group_windows(&windows, MAX_POINTS);
        assert_eq!(groups.len(), 8);
        assert!(groups.iter().all(|group| group.len() == 1));
    }

    #[test]
    fn long_run_is_downsampled_within_phases() {
        let windows = windows(1, 7_199);
        let groups = group_windows(&windows, MAX_POINTS);
        assert!(groups.len() < MAX_POINTS, "{}", groups.len());
        assert!(groups.len() > MAX_POINTS / 2, "{}", groups.len());
        assert_eq!(groups[0].len(), 1);
        assert_eq!(groups.iter().map(|g| g.len()).sum::<usize>(), 7_200);
        let mixed = |g: &&[IntervalPoint]| g.iter().any(|w| w.phase != g[0].phase);
        assert!(!groups.iter().any(mixed));
    }

    #[test]
    fn downsampling_keeps_the_largest_value_and_the_rate() {
        let intervals: Vec<_> = (0..40u64)
            .map(|index| {
                let slow_us = if index == 13 { 90_000 } else { 500 };
                testdata::window(PhaseKind::Measure, index, index)
                    .operation("read", &[(100, 200), (slow_us, index % 2 * 2)])
            })
            .collect();
        let run = testdata::run(testdata::closed_document(), &intervals);
        let charts = charts(&run, vec!["read".into()], Some(PhaseKind::Measure), 20);
        assert_eq!(charts.windows_per_point, 2);
        assert!(charts.downsampling.is_some());
        let read = &charts.time.operations[0];
        assert_eq!(read.rate_per_s, vec![Some(201.0); 20]);
        let slow = |i: &usize| read.response_us.max[*i] > Some(80_000.0);
        assert_eq!((0..20).filter(slow).collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn curves_are_interrupted_between_phases() {
        let intervals = [
            testdata::window(PhaseKind::Load, 0, 0).operation("insert", &[(100, 10)]),
            testdata::window(PhaseKind::Measure, 0, 5).operation("read", &[(100, 20)]),
        ];
        let run = testdata::run(testdata::closed_document(), &intervals);
        let charts = charts(&run, vec!["read".into(), "insert".into()], None, 9);
        assert_eq!(charts.time.start_s, [0.0, 1.0, 5.0]);
        assert_eq!(charts.time.achieved_per_s, [Some(10.0), None, Some(20.0)]);
        let read = &charts.time.operations[0];
        assert_eq!(read.rate_per_s, [Some(0.0), None, Some(20.0)]);
        assert_eq!(read.response_us.max[..2], [None, None]);
        assert_eq!(charts.time.offered_per_s, None);
        assert_eq!(charts.time.failed_per_s, None);
        assert_eq!(charts.phases[1].start_s, 5.0);
        assert_eq!(charts.phases[1].end_s, 6.0);
    }

    #[test]
    fn a_closed_phase_has_no_offered_rate_beside_an_open_one() {
        let intervals = [
            testdata::window(PhaseKind::Load, 0, 0).operation("insert", &[(100, 10)]),
            testdata::window(PhaseKind::Measure, 0, 5)
                .operation("read", &[(100, 20)])
                .arrivals(25, 20, 5, 3),
        ];
        let run = testdata::run(testdata::closed_document(), &intervals);
        let charts = charts(&run, vec!["read".into()], None, 9);
        let offered = charts.time.offered_per_s.unwrap();
        assert_eq!(offered, [None, None, Some(25.0)]);
    }

    #[test]
    fn a_percentile_curve_ends_at_the_maximum() {
        let mut histogram = dyno_record::interval::latency_histogram();
        for microsecond in 1..=1_000u64 {
            histogram.record(microsecond * 1_000).unwrap();
        }
        let curve = percentile_curve(&histogram);
        assert_eq!(curve.inverse[0], 1.0);
        assert_eq!(curve.inverse.last(), Some(&1_000.0));
        let max_us = *curve.value_us.last().unwrap();
        assert!((max_us - 1_000.0).abs() < 1.0, "{max_us}");
        let median = curve.inverse.iter().position(|&x| x == 2.0).unwrap();
        assert!((curve.value_us[median] - 500.0).abs() < 1.0);
        assert!(curve.inverse.is_sorted_by(|a, b| a < b));
        assert!(curve.value_us.is_sorted());
    }

    #[test]
    fn curve_of_one_value_is_a_point_and_of_none_is_empty() {
        let mut histogram = dyno_record::interval::latency_histogram();
        assert_eq!(percentile_curve(&histogram), PercentileCurve::default());
        histogram.record(5_000).unwrap();
        let curve = percentile_curve(&histogram);
        assert_eq!(curve.inverse, [1.0]);
        assert_eq!(curve.value_us.len(), 1);
    }
}
