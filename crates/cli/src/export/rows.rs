//! One long table of all that a run has over time: a row is one value of one metric of one source.

use crate::metrics::window::{end_s, mean_in_flight, seconds};
use dyno_analyze::costs::of_phase;
use dyno_engine::{Error, Kind};
use dyno_record::experiment::Figure;
use dyno_record::metrics::MetricTable;
use dyno_record::model::{PhaseKind, PhaseRecord, RunDocument};
use dyno_record::reader::Run;
use dyno_record::recorded::{RecordedLatency, RecordedOperation, RecordedWindow, RecordedWindows};
use jiff::Timestamp;

/// Name of the load generator among the sources.
pub(crate) const CLIENT: &str = "client";

/// Name under which it is told what each phase cost.
const COST: &str = "cost";

/// Percentiles of each window, with the end of the name.
const PERCENTILES: [(f64, &str); 6] = [
    (0.5, "p50_us"),
    (0.9, "p90_us"),
    (0.95, "p95_us"),
    (0.99, "p99_us"),
    (0.999, "p99_9_us"),
    (1.0, "max_us"),
];

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row<'a> {
    /// End of the time that the value is about, in microseconds since 1970.
    pub(crate) time_us: i64,
    /// The same from the start of the run.
    pub(crate) at_s: f64,
    /// Length of the time that the value is about; 0 for the first reading of a source.
    pub(crate) duration_s: f64,
    /// The phase that went on at the end of that time.
    pub(crate) phase: Option<PhaseKind>,
    pub(crate) source: &'a str,
    pub(crate) metric: &'a str,
    /// Operation, device and so on.
    pub(crate) instance: Option<&'a str>,
    pub(crate) value: f64,
}

impl Row<'_> {
    /// The unit of the value, as the end of the metric's name tells it.
    pub(crate) fn unit(&self) -> &'static str {
        const UNITS: [(&str, &str); 16] = [
            ("_bytes_per_s", "bytes/s"),
            ("_per_s", "1/s"),
            ("_bytes", "bytes"),
            ("_ratio", "ratio"),
            ("_percent", "percent"),
            ("_count", "count"),
            ("_us", "us"),
            ("_ms", "ms"),
            ("_ns", "ns"),
            ("_s", "s"),
            ("_hz", "hz"),
            ("_joules", "joules"),
            // In the currency of the plan.
            ("price_per_million", "price"),
            ("_celsius", "celsius"),
            (".celsius", "celsius"),
            ("average_1m", "count"),
        ];
        let fitting = UNITS.iter().find(|(end, _)| self.metric.ends_with(end));
        fitting.map_or("", |(_, unit)| unit)
    }
}

/// Start of a run.
pub(crate) fn started(document: &RunDocument) -> Result<Timestamp, Error> {
    document.started_at.parse().map_err(|error: jiff::Error| {
        Error::from_cause(Kind::BadInput, error)
            .context(format!("`{}` is no time of a start", document.started_at))
    })
}

/// Passes all rows of a run to `take`: first those of the load generator, then what each phase cost, then those of each source,
/// each in the order of time. Values that were not told have no row.
pub(crate) fn each(
    run: &Run,
    take: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let origin_us = started(&run.document)?.as_microsecond();
    let mut windows = RecordedWindows::open(&run.directory)?;
    while let Some(window) = windows.next_window()? {
        let (at_s, duration_s) = (end_s(&window), seconds(window.duration_ns));
        let mut put = |metric: &str, instance: Option<&str>, value: f64| {
            take(&Row {
                time_us: time_us(origin_us, at_s),
                at_s,
                duration_s,
                phase: Some(window.phase),
                source: CLIENT,
                metric,
                instance,
                value,
            })
        };
        of_window(&window, &mut put)?;
    }
    of_costs(&run.document, origin_us, take)?;
    for table in &run.metrics {
        of_table(table, &run.document.phases, origin_us, take)?;
    }
    Ok(())
}

fn time_us(origin_us: i64, at_s: f64) -> i64 {
    origin_us + (at_s * 1e6).round() as i64
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
    // A closed loop has no arrivals.
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

/// What each phase cost, at its end. The instance says what is divided by.
fn of_costs(
    document: &RunDocument,
    origin_us: i64,
    take: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for phase in &document.phases {
        let rate_per_s = Figure::bare(phase.achieved_rate_per_s);
        let Some(costs) = of_phase(document, phase, rate_per_s) else {
            continue;
        };
        let at_s = phase.start_s + phase.duration_s;
        for cost in &costs.values {
            take(&Row {
                time_us: time_us(origin_us, at_s),
                at_s,
                duration_s: phase.duration_s,
                phase: Some(phase.name),
                source: COST,
                metric: cost.kind.as_str(),
                instance: cost.kind.is_per_operation().then_some(costs.basis.as_str()),
                value: cost.value.value,
            })?;
        }
    }
    Ok(())
}

fn of_table(
    table: &MetricTable,
    phases: &[PhaseRecord],
    origin_us: i64,
    take: &mut dyn FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let columns: Vec<(String, Option<&str>, &Vec<f64>)> = table
        .columns
        .iter()
        .map(|(id, values)| {
            let metric = format!("{}.{}", id.group(), id.name());
            (metric, id.instance(), values)
        })
        .collect();
    for (row, (at_s, duration_s)) in table.at_s.iter().zip(&table.duration_s).enumerate() {
        for (metric, instance, values) in &columns {
            if !values[row].is_finite() {
                continue;
            }
            take(&Row {
                time_us: time_us(origin_us, *at_s),
                at_s: *at_s,
                duration_s: *duration_s,
                phase: phase_at(phases, *at_s),
                source: &table.source,
                metric,
                instance: *instance,
                value: values[row],
            })?;
        }
    }
    Ok(())
}

/// The phase that went on at a time.
fn phase_at(phases: &[PhaseRecord], at_s: f64) -> Option<PhaseKind> {
    let goes_on =
        |phase: &&PhaseRecord| phase.start_s < at_s && at_s <= phase.start_s + phase.duration_s;
    phases.iter().find(goes_on).map(|phase| phase.name)
}
