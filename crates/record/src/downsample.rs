//! A bounded number of points over time: in a long run, a point covers several recording windows, so that memory does
//! not grow with its length.

use crate::hlog::Clock;
use crate::interval::WindowCounts;
use crate::model::PhaseKind;
use crate::reader::{IntervalPoint, SeriesPoint, WindowLatency};
use crate::series::{IntervalRow, OperationRow};
use crate::sparse::DenseCounts;
use crate::summary::mean_us;
use crate::windows::Window;

const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;

/// Collects points; each covers up to `windows_per_point` consecutive windows of one phase.
pub(crate) struct Downsampler {
    windows_per_point: u64,
    intervals: Vec<IntervalPoint>,
    series: Vec<SeriesPoint>,
    open: Option<OpenPoint>,
    spare: Vec<DenseCounts>,
}

/// Windows that become one point.
struct OpenPoint {
    windows: u64,
    phase: PhaseKind,
    index: u64,
    start_ns: u64,
    duration_ns: u64,
    counts: WindowCounts,
    /// Start and end in nanoseconds of the windows without success up to the last one; `None` if the last one had
    /// success.
    idle_ns: Option<(u64, u64)>,
    /// Longest such time.
    gap_ns: Option<(u64, u64)>,
    operations: Vec<OpenSeries>,
    /// Empty counts that are used again: making one takes longer than adding a window.
    spare: Vec<DenseCounts>,
}

/// An operation in these windows.
struct OpenSeries {
    point: SeriesPoint,
    response: Merged,
    service: Merged,
}

/// One latency of an operation in these windows.
struct Merged {
    counts: DenseCounts,
    sum_ns: u128,
}

impl Downsampler {
    /// For a run of `windows` windows, with at most about `most_points` points.
    pub(crate) fn new(windows: u64, most_points: u64) -> Self {
        Downsampler {
            windows_per_point: windows.div_ceil(most_points.max(1)).max(1),
            intervals: Vec::new(),
            series: Vec::new(),
            open: None,
            spare: Vec::new(),
        }
    }

    /// Adds the next window.
    pub(crate) fn add(&mut self, window: &Window) {
        if self.windows_per_point == 1 {
            let row = &window.interval;
            let place = (row.phase, row.index, row.start_ns, row.duration_ns);
            self.intervals.push(interval_point(place, &row.counts()));
            self.series.extend(window.operations.iter().map(series_point));
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.phase != window.interval.phase) {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| {
            OpenPoint::begin(&window.interval, std::mem::take(&mut self.spare))
        });
        open.add(window);
        if open.windows == self.windows_per_point {
            self.close();
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let place = (open.phase, open.index, open.start_ns, open.duration_ns);
        let in_s = |time_ns: u64| time_ns as f64 / NS_PER_S;
        let interval = IntervalPoint {
            gap_s: open.gap_ns.map(|(start_ns, end_ns)| (in_s(start_ns), in_s(end_ns))),
            ..interval_point(place, &open.counts)
        };
        let (start_s, duration_s) = (interval.start_s, interval.duration_s);
        self.intervals.push(interval);
        self.spare = open.spare;
        for mut series in open.operations {
            self.series.push(SeriesPoint {
                start_s,
                duration_s,
                response: series.response.latency(),
                service: series.service.latency(),
                ..series.point
            });
            self.spare.extend([series.response.counts, series.service.counts]);
        }
    }

    /// The points, and the maximum number of windows per point.
    pub(crate) fn finish(mut self) -> (Vec<IntervalPoint>, Vec<SeriesPoint>, u64) {
        self.close();
        (self.intervals, self.series, self.windows_per_point)
    }
}

impl OpenPoint {
    fn begin(first: &IntervalRow, spare: Vec<DenseCounts>) -> Self {
        OpenPoint {
            windows: 0,
            phase: first.phase,
            index: first.index,
            start_ns: first.start_ns,
            duration_ns: 0,
            counts: WindowCounts::default(),
            idle_ns: None,
            gap_ns: None,
            operations: Vec::new(),
            spare,
        }
    }

    fn add(&mut self, window: &Window) {
        self.windows += 1;
        self.duration_ns += window.interval.duration_ns;
        self.counts.add(&window.interval.counts());
        self.idle_ns = (window.interval.succeeded == 0).then(|| {
            let start_ns = window.interval.start_ns;
            let first_ns = self.idle_ns.map_or(start_ns, |(first_ns, _)| first_ns);
            (first_ns, start_ns + window.interval.duration_ns)
        });
        let length_ns = |span: &Option<(u64, u64)>| span.map_or(0, |(start, end)| end - start);
        self.gap_ns = std::cmp::max_by_key(self.gap_ns, self.idle_ns, length_ns);
        for row in &window.operations {
            let series = self.series(&row.operation);
            series.point.count += row.count;
            series.point.errors += row.errors;
            series.point.documents += row.documents;
            series.point.clamped += row.clamped;
            series.response.sum_ns += row.response_sum_ns;
            series.service.sum_ns += row.service_sum_ns;
        }
        for histogram in &window.histograms {
            let series = self.series(&window.operations[histogram.operation].operation);
            match histogram.clock {
                Clock::Response => series.response.counts.add(&histogram.values),
                Clock::Service => series.service.counts.add(&histogram.values),
                Clock::StartDelay => {}
            }
        }
    }

    fn series(&mut self, operation: &str) -> &mut OpenSeries {
        let place = self.operations.iter().position(|series| series.point.operation == operation);
        let place = place.unwrap_or_else(|| {
            let mut spare = || Merged { counts: self.spare.pop().unwrap_or_default(), sum_ns: 0 };
            let (response, service) = (spare(), spare());
            let series = OpenSeries::begin(self.phase, self.index, operation, [response, service]);
            self.operations.push(series);
            self.operations.len() - 1
        });
        &mut self.operations[place]
    }
}

impl OpenSeries {
    fn begin(
        phase: PhaseKind,
        index: u64,
        operation: &str,
        [response, service]: [Merged; 2],
    ) -> Self {
        OpenSeries {
            point: SeriesPoint {
                phase,
                index,
                start_s: 0.0,
                duration_s: 0.0,
                operation: operation.to_owned(),
                count: 0,
                errors: 0,
                documents: 0,
                clamped: 0,
                response: WindowLatency::default(),
                service: WindowLatency::default(),
            },
            response,
            service,
        }
    }
}

impl Merged {
    /// Empties the counts.
    fn latency(&mut self) -> WindowLatency {
        let values = self.counts.take();
        let at_us = |quantile: f64| values.value_at_quantile(quantile) as f64 / NS_PER_US;
        WindowLatency {
            mean_us: mean_us(self.sum_ns, values.len()),
            p50_us: at_us(0.5),
            p99_us: at_us(0.99),
            p99_9_us: at_us(0.999),
            max_us: at_us(1.0),
        }
    }
}

/// The point of a window by phase, number, start and length.
fn interval_point(
    (phase, index, start_ns, duration_ns): (PhaseKind, u64, u64, u64),
    counts: &WindowCounts,
) -> IntervalPoint {
    IntervalPoint {
        phase,
        index,
        start_s: start_ns as f64 / NS_PER_S,
        duration_s: duration_ns as f64 / NS_PER_S,
        succeeded: counts.succeeded,
        failed: counts.failed,
        gap_s: None,
        mean_in_flight: counts.in_flight_ns as f64 / duration_ns.max(1) as f64,
        arrivals: counts.arrivals,
        reconnects: counts.reconnects,
        cpu_user_s: counts.cpu_user_ns as f64 / NS_PER_S,
        cpu_system_s: counts.cpu_system_ns as f64 / NS_PER_S,
        max_rss_bytes: counts.max_rss_bytes,
    }
}

fn series_point(row: &OperationRow) -> SeriesPoint {
    SeriesPoint {
        phase: row.phase,
        index: row.index,
        start_s: row.start_ns as f64 / NS_PER_S,
        duration_s: row.duration_ns as f64 / NS_PER_S,
        operation: row.operation.clone(),
        count: row.count,
        errors: row.errors,
        documents: row.documents,
        clamped: row.clamped,
        response: WindowLatency {
            mean_us: mean_us(row.response_sum_ns, row.count),
            p50_us: row.response_p50_us,
            p99_us: row.response_p99_us,
            p99_9_us: row.response_p99_9_us,
            max_us: row.response_max_us,
        },
        service: WindowLatency {
            mean_us: mean_us(row.service_sum_ns, row.count),
            p50_us: row.service_p50_us,
            p99_us: row.service_p99_us,
            p99_9_us: row.service_p99_9_us,
            max_us: row.service_max_us,
        },
    }
}
