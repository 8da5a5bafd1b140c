//! Metric families of the totals and sources: names, help texts and points. `docs/prometheus.md` lists them.

use crate::metrics::buckets::Buckets;
use crate::metrics::family::{Family, Kind, Value};
use crate::metrics::observed;
use crate::metrics::totals::{OperationTotals, Totals};
use dyno_observe::watch::Latest;
use dyno_record::document::variant_name;
use dyno_record::model::{PhaseKind, SourceHealth, SourceRecord};
use std::collections::BTreeMap;

/// Families of a run with points, in a fixed order.
pub(crate) fn of_totals(totals: &Totals) -> Vec<Family> {
    let mut families = Vec::new();
    families.extend(of_run(totals));
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
    let mut phases =
        Family::new(Kind::Gauge, "dyno_phase", "1 for the current phase, 0 for the others");
    let mut starts = Family::new(
        Kind::Gauge,
        "dyno_phase_start_timestamp_seconds",
        "Start of each phase of the run, in seconds since 1970",
    );
    for phase in PhaseKind::ALL {
        let labels = [("phase", phase.as_str())];
        let goes_on = totals.phase == Some(phase);
        phases.put(&labels, Value::Number(f64::from(u8::from(goes_on))));
        if let Some(start_s) = totals.phase_starts_s.get(&phase) {
            starts.put(&labels, Value::Number(*start_s));
        }
    }
    vec![info, phases, starts]
}

fn of_operations(totals: &Totals) -> Vec<Family> {
    let mut logical = Family::new(
        Kind::Counter,
        "dyno_logical_operations",
        "Operations that ended, a read-modify-write counted once",
    );
    for (phase, (succeeded, failed)) in &totals.logical {
        for (outcome, count) in [("succeeded", succeeded), ("failed", failed)] {
            let labels = [("phase", phase.as_str()), ("outcome", outcome)];
            logical.put(&labels, Value::Count(*count));
        }
    }
    let per_operation = |name, help, value: fn(&OperationTotals) -> u64| {
        let mut family = Family::new(Kind::Counter, name, help);
        for ((phase, operation), of_operation) in &totals.operations {
            let labels = [("phase", phase.as_str()), ("operation", operation)];
            family.put(&labels, Value::Count(value(of_operation)));
        }
        family
    };
    let operations = per_operation(
        "dyno_operations",
        "Operations that succeeded; a read-modify-write also counts as its read and its update",
        |operation| operation.succeeded,
    );
    let documents = per_operation(
        "dyno_documents",
        "Documents that operations returned or wrote",
        |operation| operation.documents,
    );
    let mut errors = Family::new(
        Kind::Counter,
        "dyno_operation_errors",
        "Operations that failed, by the kind of failure",
    );
    for ((phase, operation, kind), count) in &totals.errors {
        let labels = [("phase", phase.as_str()), ("operation", operation), ("kind", kind)];
        errors.put(&labels, Value::Count(*count));
    }
    let mut families = vec![logical, operations, documents, errors];
    families.extend(latencies(totals));
    families
}

fn latencies(totals: &Totals) -> [Family; 3] {
    let latency = |name, help, buckets: fn(&OperationTotals) -> &Buckets| {
        let mut family = Family::new(Kind::Histogram, name, help);
        for ((phase, operation), of_operation) in &totals.operations {
            let labels = [("phase", phase.as_str()), ("operation", operation)];
            let value = Value::Buckets(Box::new(buckets(of_operation).clone()));
            family.put(&labels, value);
        }
        family
    };
    [
        latency(
            "dyno_response_time_seconds",
            "Time from the intended start to the end of successful operations, including waiting",
            |operation| &operation.response,
        ),
        latency(
            "dyno_service_time_seconds",
            "Time from sending to the end of successful operations",
            |operation| &operation.service,
        ),
        latency(
            "dyno_start_delay_seconds",
            "Time from the intended start to sending of successful operations",
            |operation| &operation.start_delay,
        ),
    ]
}

fn of_load(totals: &Totals) -> Vec<Family> {
    let mut arrivals = Family::new(
        Kind::Counter,
        "dyno_arrivals",
        "Arrivals of the schedule: due, started, dropped because they were too late, and started late",
    );
    if totals.has_arrivals() {
        let counts = &totals.arrivals;
        for (state, count) in [
            ("due", counts.due),
            ("started", counts.started),
            ("dropped", counts.dropped),
            ("late", counts.late),
        ] {
            arrivals.put(&[("state", state)], Value::Count(count));
        }
    }
    let gauge = |name, help, value: Option<f64>| {
        let mut family = Family::new(Kind::Gauge, name, help);
        if let Some(value) = value {
            family.put(&[], Value::Number(value));
        }
        family
    };
    vec![
        arrivals,
        gauge(
            "dyno_offered_rate_per_second",
            "Operations per second that the schedule asks for; absent with a closed loop",
            totals.offered_rate_per_s(),
        ),
        gauge(
            "dyno_in_flight",
            "Operations sent and not yet answered, on average over the last window",
            totals.mean_in_flight,
        ),
        Family::new(Kind::Counter, "dyno_reconnects", "Connections replaced after an error")
            .with(&[], Value::Count(totals.reconnects)),
        Family::new(
            Kind::Counter,
            "dyno_retries",
            "Commands retried because of retryWrites and retryReads",
        )
        .with(&[], Value::Count(totals.retries)),
    ]
}

fn of_client(totals: &Totals) -> Vec<Family> {
    let cpu = Family::new(
        Kind::Counter,
        "dyno_client_cpu_seconds",
        "CPU time that the load generator used during phases",
    )
    .with(&[("mode", "user")], Value::Number(totals.cpu_user_s))
    .with(&[("mode", "system")], Value::Number(totals.cpu_system_s));
    let memory = Family::new(
        Kind::Gauge,
        "dyno_client_resident_maximum_bytes",
        "Largest resident set of the load generator so far",
    )
    .with(&[], Value::Number(totals.max_rss_bytes as f64));
    vec![cpu, memory]
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
        up.put(&labels, Value::Number(f64::from(u8::from(is_up))));
        cpu.put(&labels, Value::Number(record.cpu_s));
    }
    vec![up, cpu]
}
