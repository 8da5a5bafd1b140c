//! Metric families of the totals and sources: names, help texts and points. `docs/prometheus.md` lists them.

use crate::metrics::family::{Family, Kind, Value};
use crate::metrics::observed;
use crate::metrics::totals::{OperationTotals, Totals};
use crate::metrics::window::seconds;
use dyno_observe::watch::Latest;
use dyno_record::document::variant_name;
use dyno_record::model::{PhaseKind, SourceHealth, SourceRecord};
use std::collections::BTreeMap;

/// Families of a run with points, in a fixed order.
pub(crate) fn of_totals(totals: &Totals) -> Vec<Family> {
    let mut families = of_run(totals);
    families.extend(of_operations(totals));
    families.extend(of_load(totals));
    families.extend(of_client(totals));
    families.retain(|family| !family.points.is_empty());
    families
}

/// Families of the sources: health, cost and last readings.
pub(crate) fn of_sources(sources: &[Latest]) -> Vec<Family> {
    let records = sources.iter().map(|latest| {
        let is_up = latest.reading.is_some();
        (&latest.record, is_up)
    });
    let mut families = of_records(records);
    let mut observed = BTreeMap::new();
    for latest in sources {
        if let Some(reading) = &latest.reading {
            let values = reading.values.iter().map(|(id, value)| (id, *value));
            observed::add(&mut observed, &latest.record.name, values);
        }
    }
    families.retain(|family| !family.points.is_empty());
    families.extend(observed.into_values());
    families
}

fn of_run(totals: &Totals) -> Vec<Family> {
    let mut info = Family::new(Kind::Info, "dyno_run", "The current run, or the last one");
    if let (Some(run), Some(status)) = (&totals.run, totals.status) {
        let labels = [
            ("name", run.name.as_str()),
            ("version", &run.version),
            ("server", &run.server),
            ("directory", &run.directory),
            ("status", &variant_name(&status)),
        ];
        info.put(&labels, Value::Info);
    }
    let phases = PhaseKind::ALL
        .map(|phase| ([("phase", phase.as_str())], Value::of_flag(totals.phase == Some(phase))));
    let starts = totals
        .phase_starts_s
        .iter()
        .map(|(phase, start_s)| ([("phase", phase.as_str())], Value::Number(*start_s)));
    vec![
        info,
        Family::with_points(
            Kind::Gauge,
            "dyno_phase",
            "1 for the current phase, 0 for the others",
            phases,
        ),
        Family::with_points(
            Kind::Gauge,
            "dyno_phase_start_timestamp_seconds",
            "Start of each phase of the run, in seconds since 1970",
            starts,
        ),
    ]
}

fn of_operations(totals: &Totals) -> Vec<Family> {
    let logical = totals.logical.iter().flat_map(|(phase, (succeeded, failed))| {
        [("succeeded", *succeeded), ("failed", *failed)].map(|(outcome, count)| {
            ([("phase", phase.as_str()), ("outcome", outcome)], Value::Count(count))
        })
    });
    let errors = totals.errors.iter().map(|((phase, operation, kind), count)| {
        let labels = [("phase", phase.as_str()), ("operation", operation), ("kind", kind)];
        (labels, Value::Count(*count))
    });
    let per_operation = |kind, name, help, value: fn(&OperationTotals) -> Value| {
        let points = totals.operations.iter().map(|((phase, operation), of_operation)| {
            ([("phase", phase.as_str()), ("operation", operation)], value(of_operation))
        });
        Family::with_points(kind, name, help, points)
    };
    let latency = |name, help, value| per_operation(Kind::Histogram, name, help, value);
    vec![
        Family::with_points(
            Kind::Counter,
            "dyno_logical_operations",
            "Operations that ended, a read-modify-write counted once",
            logical,
        ),
        per_operation(
            Kind::Counter,
            "dyno_operations",
            "Operations that succeeded; a read-modify-write also counts as its read and its update",
            |operation| Value::Count(operation.succeeded),
        ),
        per_operation(
            Kind::Counter,
            "dyno_documents",
            "Documents that operations returned or wrote",
            |operation| Value::Count(operation.documents),
        ),
        Family::with_points(
            Kind::Counter,
            "dyno_operation_errors",
            "Operations that failed, by the kind of failure",
            errors,
        ),
        latency(
            "dyno_response_time_seconds",
            "Time from the intended start to the end of successful operations, including waiting",
            |operation| Value::of_buckets(&operation.response),
        ),
        latency(
            "dyno_service_time_seconds",
            "Time from sending to the end of successful operations",
            |operation| Value::of_buckets(&operation.service),
        ),
        latency(
            "dyno_start_delay_seconds",
            "Time from the intended start to sending of successful operations",
            |operation| Value::of_buckets(&operation.start_delay),
        ),
    ]
}

fn of_load(totals: &Totals) -> Vec<Family> {
    let arrivals = &totals.counts.arrivals;
    let states = [
        ("due", arrivals.due),
        ("started", arrivals.started),
        ("dropped", arrivals.dropped),
        ("late", arrivals.late),
    ];
    let states = states.into_iter().filter(|_| totals.has_arrivals());
    vec![
        Family::with_points(
            Kind::Counter,
            "dyno_arrivals",
            "Arrivals of the schedule: due, started, dropped because they were too late, and started late",
            states.map(|(state, count)| ([("state", state)], Value::Count(count))),
        ),
        single(
            Kind::Gauge,
            "dyno_offered_rate_per_second",
            "Operations per second that the schedule asks for; absent with a closed loop",
            totals.offered_rate_per_s().map(Value::Number),
        ),
        single(
            Kind::Gauge,
            "dyno_in_flight",
            "Operations sent and not yet answered, on average over the last window",
            totals.mean_in_flight.map(Value::Number),
        ),
        single(
            Kind::Counter,
            "dyno_reconnects",
            "Connections replaced after an error",
            Some(Value::Count(totals.counts.reconnects)),
        ),
        single(
            Kind::Counter,
            "dyno_retries",
            "Commands retried because of retryWrites and retryReads",
            Some(Value::Count(totals.counts.retries)),
        ),
        single(
            Kind::Counter,
            "dyno_transaction_restarts",
            "Transactions performed again because of TransientTransactionError",
            Some(Value::Count(totals.counts.own.transaction_restarts)),
        ),
        single(
            Kind::Counter,
            "dyno_commit_retries",
            "Commits sent again because of UnknownTransactionCommitResult",
            Some(Value::Count(totals.counts.own.commit_retries)),
        ),
        single(
            Kind::Counter,
            "dyno_transaction_aborts",
            "Transactions aborted on purpose",
            Some(Value::Count(totals.counts.own.transaction_aborts)),
        ),
    ]
}

/// A family with at most one point, without labels.
fn single(kind: Kind, name: &str, help: &str, value: Option<Value>) -> Family {
    Family::with_points(kind, name, help, value.map(|value| ([], value)))
}

fn of_client(totals: &Totals) -> [Family; 2] {
    let counts = &totals.counts;
    let modes = [("user", counts.cpu_user_ns), ("system", counts.cpu_system_ns)];
    [
        Family::with_points(
            Kind::Counter,
            "dyno_client_cpu_seconds",
            "CPU time that the load generator used during phases",
            modes.map(|(mode, ns)| ([("mode", mode)], Value::Number(seconds(ns)))),
        ),
        single(
            Kind::Gauge,
            "dyno_client_resident_maximum_bytes",
            "Largest resident set of the load generator so far",
            Some(Value::Number(counts.max_rss_bytes as f64)),
        ),
    ]
}

/// Families of the health and cost of sources.
fn of_records<'a>(records: impl Iterator<Item = (&'a SourceRecord, bool)>) -> Vec<Family> {
    let mut up = Family::new(
        Kind::Gauge,
        "dyno_source_up",
        "Whether the last reading of a source was good: 1 or 0",
    );
    let mut cpu = Family::new(
        Kind::Counter,
        "dyno_source_cpu_seconds",
        "CPU time that reading a source took in this program",
    );
    for (record, is_up) in records {
        let labels = [("source", record.name.as_str()), ("kind", &variant_name(&record.kind))];
        let is_up = is_up && record.health != SourceHealth::Failed;
        up.put(&labels, Value::of_flag(is_up));
        cpu.put(&labels, Value::Number(record.cpu_s));
    }
    vec![up, cpu]
}
