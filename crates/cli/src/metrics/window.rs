//! A recording window as the metrics see it, whether it was recorded just now or is read from a run directory.

use dyno_record::interval::{IntervalRecord, WindowCounts};
use dyno_record::model::PhaseKind;
use dyno_record::recorded::{RecordedLatency, RecordedWindow};
use hdrhistogram::Histogram;

/// See the module.
pub(crate) struct Window<'a> {
    pub(crate) phase: PhaseKind,
    /// Number in its phase, from 0.
    pub(crate) index: u64,
    /// From the start of the run.
    pub(crate) start_s: f64,
    pub(crate) duration_s: f64,
    pub(crate) counts: WindowCounts,
    /// Time average of the operations sent and not yet answered.
    pub(crate) mean_in_flight: f64,
    pub(crate) operations: Vec<Operation<'a>>,
    pub(crate) errors: Vec<Errors<'a>>,
}

/// One operation in a window.
pub(crate) struct Operation<'a> {
    pub(crate) name: &'a str,
    pub(crate) succeeded: u64,
    pub(crate) errors: u64,
    pub(crate) documents: u64,
    pub(crate) response: Latency<'a>,
    pub(crate) service: Latency<'a>,
    pub(crate) start_delay: Latency<'a>,
}

/// Values of one clock in nanoseconds, and their exact sum.
#[derive(Clone, Copy)]
pub(crate) struct Latency<'a> {
    pub(crate) values: Option<&'a Histogram<u64>>,
    pub(crate) sum_ns: u128,
}

/// Failures of one kind.
pub(crate) struct Errors<'a> {
    pub(crate) operation: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) count: u64,
}

impl Window<'_> {
    /// End of the window, from the start of the run.
    pub(crate) fn end_s(&self) -> f64 {
        self.start_s + self.duration_s
    }
}

fn mean_in_flight(in_flight_ns: u128, duration_ns: u64) -> f64 {
    match duration_ns {
        0 => 0.0,
        duration_ns => in_flight_ns as f64 / duration_ns as f64,
    }
}

impl<'a> From<&'a IntervalRecord> for Window<'a> {
    fn from(interval: &'a IntervalRecord) -> Self {
        let latency = |values, sum_ns| Latency {
            values: Some(values),
            sum_ns,
        };
        let operations = interval.operations.iter().map(|operation| Operation {
            name: operation.name,
            succeeded: operation.response.len(),
            errors: operation.errors,
            documents: operation.documents,
            response: latency(&operation.response, operation.response_sum_ns),
            service: latency(&operation.service, operation.service_sum_ns),
            start_delay: latency(&operation.start_delay, operation.start_delay_sum_ns),
        });
        let errors = interval.errors.iter().map(|error| Errors {
            operation: error.operation,
            kind: &error.kind,
            count: error.count,
        });
        Window {
            phase: interval.phase,
            index: interval.index,
            start_s: interval.start_ns as f64 / 1e9,
            duration_s: interval.duration_ns as f64 / 1e9,
            counts: interval.counts,
            mean_in_flight: mean_in_flight(interval.counts.in_flight_ns, interval.duration_ns),
            operations: operations.collect(),
            errors: errors.collect(),
        }
    }
}

impl<'a> From<&'a RecordedWindow> for Window<'a> {
    fn from(window: &'a RecordedWindow) -> Self {
        fn latency(latency: &RecordedLatency) -> Latency<'_> {
            Latency {
                values: latency.values.as_ref(),
                sum_ns: latency.sum_ns,
            }
        }
        let operations = window.operations.iter().map(|operation| Operation {
            name: &operation.name,
            succeeded: operation.count,
            errors: operation.errors,
            documents: operation.documents,
            response: latency(&operation.response),
            service: latency(&operation.service),
            start_delay: latency(&operation.start_delay),
        });
        let errors = window.errors.iter().map(|error| Errors {
            operation: &error.operation,
            kind: &error.kind,
            count: error.count,
        });
        Window {
            phase: window.phase,
            index: window.index,
            start_s: window.start_ns as f64 / 1e9,
            duration_s: window.duration_ns as f64 / 1e9,
            counts: window.counts,
            mean_in_flight: mean_in_flight(window.counts.in_flight_ns, window.duration_ns),
            operations: operations.collect(),
            errors: errors.collect(),
        }
    }
}
