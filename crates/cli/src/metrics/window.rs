//! Converts a recording window of the current run to the form read from a run directory.

use dyno_record::interval::IntervalRecord;
use dyno_record::recorded::{RecordedError, RecordedLatency, RecordedOperation, RecordedWindow};
use hdrhistogram::Histogram;

/// Converts a window of the current run.
pub(crate) fn recorded(interval: &IntervalRecord) -> RecordedWindow {
    let latency =
        |values: &Histogram<u64>, sum_ns| RecordedLatency { values: Some(values.clone()), sum_ns };
    let operations = interval.operations.iter();
    let operations = operations.map(|operation| RecordedOperation {
        name: operation.name.to_owned(),
        count: operation.response.len(),
        errors: operation.errors,
        documents: operation.documents,
        response: latency(&operation.response, operation.response_sum_ns),
        service: latency(&operation.service, operation.service_sum_ns),
        start_delay: latency(&operation.start_delay, operation.start_delay_sum_ns),
    });
    let errors = interval.errors.iter().map(|error| RecordedError {
        operation: error.operation.to_owned(),
        kind: error.kind.clone(),
        count: error.count,
    });
    RecordedWindow {
        phase: interval.phase,
        index: interval.index,
        start_ns: interval.start_ns,
        duration_ns: interval.duration_ns,
        counts: interval.counts,
        operations: operations.collect(),
        errors: errors.collect(),
    }
}

/// Converts nanoseconds to seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// End of a window, in seconds from the start of the run.
pub(crate) fn end_s(window: &RecordedWindow) -> f64 {
    seconds(window.start_ns) + seconds(window.duration_ns)
}

/// Time average of the operations in flight.
pub(crate) fn mean_in_flight(window: &RecordedWindow) -> f64 {
    match window.duration_ns {
        0 => 0.0,
        duration_ns => window.counts.in_flight_ns as f64 / duration_ns as f64,
    }
}
