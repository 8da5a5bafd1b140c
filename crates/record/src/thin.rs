//! Points over time of a run, bounded in number: of a long run a point covers several recording
//! windows, so that reading it takes no more memory the longer it was.

use crate::hlog::Clock;
use crate::interval::latency_histogram;
use crate::model::{Arrivals, PhaseKind};
use crate::reader::{IntervalPoint, SeriesPoint, WindowLatency};
use crate::series::{IntervalRow, OperationRow};
use crate::summary::mean_us;
use crate::windows::Window;
use hdrhistogram::Histogram;

const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;

/// Collects points; each covers up to `windows_per_point` windows that follow each other in one phase.
pub(crate) struct Thinner {
    windows_per_point: u64,
    intervals: Vec<IntervalPoint>,
    series: Vec<SeriesPoint>,
    open: Option<OpenPoint>,
}

/// Several windows that become one point.
struct OpenPoint {
    windows: u64,
    total: IntervalRow,
    operations: Vec<OpenSeries>,
}

struct OpenSeries {
    total: OperationRow,
    response: Histogram<u64>,
    service: Histogram<u64>,
}

impl Thinner {
    /// For a run of `windows` windows, of which at most about `most_points` points are made.
    pub(crate) fn new(windows: u64, most_points: u64) -> Self {
        Thinner {
            windows_per_point: windows.div_ceil(most_points.max(1)).max(1),
            intervals: Vec::new(),
            series: Vec::new(),
            open: None,
        }
    }

    /// Adds the next window. An error means that its histograms do not fit.
    pub(crate) fn add(&mut self, window: &Window) -> Result<(), hdrhistogram::AdditionError> {
        if self.windows_per_point == 1 {
            self.intervals.push(interval_point(&window.interval));
            self.series
                .extend(window.operations.iter().map(series_point));
            return Ok(());
        }
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.total.phase != window.interval.phase)
        {
            self.close();
        }
        let open = self
            .open
            .get_or_insert_with(|| OpenPoint::begin(&window.interval));
        open.add(window)?;
        if open.windows == self.windows_per_point {
            self.close();
        }
        Ok(())
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.intervals.push(interval_point(&open.total));
        let (start_ns, duration_ns) = (open.total.start_ns, open.total.duration_ns);
        self.series
            .extend(open.operations.into_iter().map(|mut series| {
                series.total.start_ns = start_ns;
                series.total.duration_ns = duration_ns;
                series.point()
            }));
    }

    /// The points, and how many windows each covers at most.
    pub(crate) fn finish(mut self) -> (Vec<IntervalPoint>, Vec<SeriesPoint>, u64) {
        self.close();
        (self.intervals, self.series, self.windows_per_point)
    }
}

impl OpenPoint {
    fn begin(first: &IntervalRow) -> Self {
        OpenPoint {
            windows: 0,
            total: IntervalRow {
                phase: first.phase,
                index: first.index,
                start_ns: first.start_ns,
                duration_ns: 0,
                succeeded: 0,
                failed: 0,
                busy_ns: 0,
                in_flight_ns: 0,
                arrivals_due: 0,
                arrivals_started: 0,
                arrivals_dropped: 0,
                arrivals_late: 0,
                reconnects: 0,
                cpu_user_ns: 0,
                cpu_system_ns: 0,
                max_rss_bytes: 0,
                operation_rows: 0,
                error_rows: 0,
            },
            operations: Vec::new(),
        }
    }

    fn add(&mut self, window: &Window) -> Result<(), hdrhistogram::AdditionError> {
        let (total, row) = (&mut self.total, &window.interval);
        self.windows += 1;
        total.duration_ns += row.duration_ns;
        total.succeeded += row.succeeded;
        total.failed += row.failed;
        total.busy_ns += row.busy_ns;
        total.in_flight_ns += row.in_flight_ns;
        total.arrivals_due += row.arrivals_due;
        total.arrivals_started += row.arrivals_started;
        total.arrivals_dropped += row.arrivals_dropped;
        total.arrivals_late += row.arrivals_late;
        total.reconnects += row.reconnects;
        total.cpu_user_ns += row.cpu_user_ns;
        total.cpu_system_ns += row.cpu_system_ns;
        total.max_rss_bytes = total.max_rss_bytes.max(row.max_rss_bytes);
        for row in &window.operations {
            let phase = self.total.phase;
            self.series(phase, &row.operation).add_row(row);
        }
        for histogram in &window.histograms {
            let name = &window.operations[histogram.operation].operation;
            let series = self.series(self.total.phase, name);
            match histogram.clock {
                Clock::Response => series.response.add(&histogram.values)?,
                Clock::Service => series.service.add(&histogram.values)?,
                Clock::StartDelay => {}
            }
        }
        Ok(())
    }

    fn series(&mut self, phase: PhaseKind, operation: &str) -> &mut OpenSeries {
        let place = self
            .operations
            .iter()
            .position(|series| series.total.operation == operation);
        let place = place.unwrap_or_else(|| {
            let series = OpenSeries::begin(phase, self.total.index, operation);
            self.operations.push(series);
            self.operations.len() - 1
        });
        &mut self.operations[place]
    }
}

impl OpenSeries {
    fn begin(phase: PhaseKind, index: u64, operation: &str) -> Self {
        OpenSeries {
            total: OperationRow {
                phase,
                index,
                start_ns: 0,
                duration_ns: 0,
                operation: operation.to_owned(),
                count: 0,
                errors: 0,
                documents: 0,
                clamped: 0,
                response_sum_ns: 0,
                service_sum_ns: 0,
                start_delay_sum_ns: 0,
                response_p50_us: 0.0,
                response_p99_us: 0.0,
                response_p99_9_us: 0.0,
                response_max_us: 0.0,
                service_p50_us: 0.0,
                service_p99_us: 0.0,
                service_p99_9_us: 0.0,
                service_max_us: 0.0,
            },
            response: latency_histogram(),
            service: latency_histogram(),
        }
    }

    fn add_row(&mut self, row: &OperationRow) {
        self.total.count += row.count;
        self.total.errors += row.errors;
        self.total.documents += row.documents;
        self.total.clamped += row.clamped;
        self.total.response_sum_ns += row.response_sum_ns;
        self.total.service_sum_ns += row.service_sum_ns;
        self.total.start_delay_sum_ns += row.start_delay_sum_ns;
    }

    fn point(mut self) -> SeriesPoint {
        let at = |histogram: &Histogram<u64>, quantile: f64| {
            histogram.value_at_quantile(quantile).min(histogram.max()) as f64 / NS_PER_US
        };
        let total = &mut self.total;
        total.response_p50_us = at(&self.response, 0.5);
        total.response_p99_us = at(&self.response, 0.99);
        total.response_p99_9_us = at(&self.response, 0.999);
        total.response_max_us = at(&self.response, 1.0);
        total.service_p50_us = at(&self.service, 0.5);
        total.service_p99_us = at(&self.service, 0.99);
        total.service_p99_9_us = at(&self.service, 0.999);
        total.service_max_us = at(&self.service, 1.0);
        series_point(total)
    }
}

fn interval_point(row: &IntervalRow) -> IntervalPoint {
    let duration_ns = row.duration_ns.max(1) as f64;
    IntervalPoint {
        phase: row.phase,
        index: row.index,
        start_s: row.start_ns as f64 / NS_PER_S,
        duration_s: row.duration_ns as f64 / NS_PER_S,
        succeeded: row.succeeded,
        failed: row.failed,
        mean_in_flight: row.in_flight_ns as f64 / duration_ns,
        arrivals: Arrivals {
            due: row.arrivals_due,
            started: row.arrivals_started,
            dropped: row.arrivals_dropped,
            late: row.arrivals_late,
        },
        reconnects: row.reconnects,
        cpu_user_s: row.cpu_user_ns as f64 / NS_PER_S,
        cpu_system_s: row.cpu_system_ns as f64 / NS_PER_S,
        max_rss_bytes: row.max_rss_bytes,
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
