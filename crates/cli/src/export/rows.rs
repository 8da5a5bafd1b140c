//! All values of a run over time as one long table, with a row per value of a metric of a source.

use crate::export::table::{self, Cell, Column, Table, unit};
use crate::metrics::window::{end_s, mean_in_flight, seconds};
use dyno_analyze::costs::of_phase;
use dyno_engine::{Error, Kind};
use dyno_record::experiment::Figure;
use dyno_record::metrics::MetricTable;
use dyno_record::model::{PhaseKind, PhaseRecord, RunDocument};
use dyno_record::reader::Run;
use dyno_record::recorded::{RecordedLatency, RecordedOperation, RecordedWindow, RecordedWindows};
use jiff::Timestamp;

/// Source name of the load generator.
pub(crate) const CLIENT: &str = "client";

/// Source name of the cost of phases.
const COST: &str = "cost";

/// Percentiles of each window, with their name suffixes.
const PERCENTILES: [(f64, &str); 6] = [
    (0.5, "p50_us"),
    (0.9, "p90_us"),
    (0.95, "p95_us"),
    (0.99, "p99_us"),
    (0.999, "p99_9_us"),
    (1.0, "max_us"),
];

/// The columns of the table.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("time", table::Kind::Time),
        Column::new("at_s", table::Kind::Seconds),
        Column::new("duration_s", table::Kind::Seconds),
        Column::optional("phase", table::Kind::Text),
        Column::new("source", table::Kind::Text),
        Column::new("metric", table::Kind::Text),
        Column::optional("instance", table::Kind::Text),
        Column::new("value", table::Kind::Number),
        Column::new("unit", table::Kind::Text),
    ]
}

/// The time range of rows.
struct Span {
    /// End, in microseconds since 1970.
    time_us: i64,
    /// End, from the start of the run.
    at_s: f64,
    /// Length; 0 for the first reading of a source.
    duration_s: f64,
    /// Phase at the end.
    phase: Option<PhaseKind>,
}

impl Span {
    fn new(origin_us: i64, at_s: f64, duration_s: f64, phase: Option<PhaseKind>) -> Span {
        Span { time_us: origin_us + (at_s * 1e6).round() as i64, at_s, duration_s, phase }
    }

    /// Writes the row of a value; the instance is an operation, a device and so on.
    fn write(
        &self,
        table: &mut dyn Table,
        [source, metric]: [&str; 2],
        instance: Option<&str>,
        value: f64,
    ) -> Result<(), Error> {
        table.row(&[
            Cell::Time(self.time_us),
            Cell::Seconds(self.at_s),
            Cell::Seconds(self.duration_s),
            self.phase.map(|phase| phase.as_str()).into(),
            Cell::Text(source),
            Cell::Text(metric),
            instance.into(),
            Cell::Number(value),
            Cell::Text(unit(metric)),
        ])
    }
}

/// Parses the start of a run.
pub(crate) fn started(document: &RunDocument) -> Result<Timestamp, Error> {
    document.started_at.parse().map_err(|error: jiff::Error| {
        Error::from_cause(Kind::BadInput, error)
            .context(format!("invalid start time `{}`", document.started_at))
    })
}

/// Writes all rows of a run: the load generator, the cost of each phase, then each source, each in time order. Values that were
/// not reported have no row.
pub(crate) fn fill(run: &Run, table: &mut dyn Table) -> Result<(), Error> {
    let origin_us = started(&run.document)?.as_microsecond();
    let mut windows = RecordedWindows::open(&run.directory)?;
    while let Some(window) = windows.next_window()? {
        let duration_s = seconds(window.duration_ns);
        let span = Span::new(origin_us, end_s(&window), duration_s, Some(window.phase));
        let mut put = |metric: &str, instance: Option<&str>, value: f64| {
            span.write(table, [CLIENT, metric], instance, value)
        };
        of_window(&window, &mut put)?;
    }
    of_costs(&run.document, origin_us, table)?;
    for source in &run.metrics {
        of_source(source, &run.document.phases, origin_us, table)?;
    }
    Ok(())
}

type Put<'p> = dyn FnMut(&str, Option<&str>, f64) -> Result<(), Error> + 'p;

fn of_window(window: &RecordedWindow, put: &mut Put<'_>) -> Result<(), Error> {
    let duration_s = seconds(window.duration_ns);
    if duration_s <= 0.0 {
        return Ok(());
    }
    let per_s = |count: u64| count as f64 / duration_s;
    let busy = |ns: u64| seconds(ns) / duration_s;
    let counts = &window.counts;
    for (metric, value) in [
        ("succeeded_per_s", per_s(counts.succeeded)),
        ("failed_per_s", per_s(counts.failed)),
        ("in_flight_count", mean_in_flight(window)),
        ("reconnects_per_s", per_s(counts.reconnects)),
        ("cpu_user_ratio", busy(counts.cpu_user_ns)),
        ("cpu_system_ratio", busy(counts.cpu_system_ns)),
        ("resident_maximum_bytes", counts.max_rss_bytes as f64),
    ] {
        put(metric, None, value)?;
    }
    // A closed loop does not have arrivals.
    let arrivals = &counts.arrivals;
    if arrivals.due + arrivals.dropped > 0 {
        for (metric, count) in [
            ("arrivals_due_per_s", arrivals.due),
            ("arrivals_started_per_s", arrivals.started),
            ("arrivals_dropped_per_s", arrivals.dropped),
            ("arrivals_late_per_s", arrivals.late),
        ] {
            put(metric, None, per_s(count))?;
        }
    }
    for operation in &window.operations {
        of_operation(operation, &per_s, put)?;
    }
    Ok(())
}

fn of_operation(
    operation: &RecordedOperation,
    per_s: &dyn Fn(u64) -> f64,
    put: &mut Put<'_>,
) -> Result<(), Error> {
    let name = Some(operation.name.as_str());
    for (metric, count) in [
        ("operations_per_s", operation.count),
        ("errors_per_s", operation.errors),
        ("documents_per_s", operation.documents),
    ] {
        put(metric, name, per_s(count))?;
    }
    for (clock, latency) in [
        ("response", &operation.response),
        ("service", &operation.service),
        ("start_delay", &operation.start_delay),
    ] {
        of_latency(clock, name, latency, put)?;
    }
    Ok(())
}

fn of_latency(
    clock: &str,
    operation: Option<&str>,
    latency: &RecordedLatency,
    put: &mut Put<'_>,
) -> Result<(), Error> {
    let values = latency.values.as_ref();
    let Some(values) = values.filter(|values| !values.is_empty()) else {
        return Ok(());
    };
    let mean_us = latency.sum_ns as f64 / values.len() as f64 / 1e3;
    put(&format!("{clock}_mean_us"), operation, mean_us)?;
    for (quantile, end) in PERCENTILES {
        let value_us = values.value_at_quantile(quantile) as f64 / 1e3;
        put(&format!("{clock}_{end}"), operation, value_us)?;
    }
    Ok(())
}

/// Writes the cost of each phase at its end. The instance names the divisor.
fn of_costs(document: &RunDocument, origin_us: i64, table: &mut dyn Table) -> Result<(), Error> {
    for phase in &document.phases {
        let rate_per_s = Figure::bare(phase.achieved_rate_per_s);
        let Some(costs) = of_phase(document, phase, rate_per_s) else {
            continue;
        };
        let end_s = phase.start_s + phase.duration_s;
        let span = Span::new(origin_us, end_s, phase.duration_s, Some(phase.name));
        for cost in &costs.values {
            let instance = cost.kind.is_per_operation().then_some(costs.basis.as_str());
            span.write(table, [COST, cost.kind.as_str()], instance, cost.value.value)?;
        }
    }
    Ok(())
}

fn of_source(
    source: &MetricTable,
    phases: &[PhaseRecord],
    origin_us: i64,
    table: &mut dyn Table,
) -> Result<(), Error> {
    let columns: Vec<(String, Option<&str>, &Vec<f64>)> = source
        .columns
        .iter()
        .map(|(id, values)| {
            let metric = format!("{}.{}", id.group(), id.name());
            (metric, id.instance(), values)
        })
        .collect();
    for (row, (at_s, duration_s)) in source.at_s.iter().zip(&source.duration_s).enumerate() {
        let span = Span::new(origin_us, *at_s, *duration_s, phase_at(phases, *at_s));
        for (metric, instance, values) in &columns {
            if values[row].is_finite() {
                span.write(table, [&source.source, metric], *instance, values[row])?;
            }
        }
    }
    Ok(())
}

/// Phase at a time.
fn phase_at(phases: &[PhaseRecord], at_s: f64) -> Option<PhaseKind> {
    let goes_on =
        |phase: &&PhaseRecord| phase.start_s < at_s && at_s <= phase.start_s + phase.duration_s;
    phases.iter().find(goes_on).map(|phase| phase.name)
}
