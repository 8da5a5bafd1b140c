//! Measurements of one recording window, before they are written.

use crate::error_example::ErrorExample;
use crate::model::{Arrivals, OwnCounts, PhaseKind};
use hdrhistogram::Histogram;
use hdrhistogram::errors::AdditionError;
use serde::{Deserialize, Serialize};

/// Smallest value that the latency histograms distinguish from 0, in nanoseconds.
pub const LOWEST_NS: u64 = 1_000;
/// Largest value of the latency histograms, in nanoseconds: 60 s. Larger values are recorded as this value and counted
/// as clamped.
pub const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant digits of the latency histograms.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// An empty histogram with the bounds of all latency histograms. It needs 147 kB.
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LOWEST_NS, HIGHEST_NS, SIGNIFICANT_DIGITS)
        .expect("the bounds are valid constants")
}

/// One recording window of one phase, merged over all workers. Its serialized form has neither histograms nor parts below a
/// second, which agents send in a shorter form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalRecord {
    pub phase: PhaseKind,
    /// Number of the window in its phase, from 0.
    pub index: u64,
    /// Start, in nanoseconds from the start of the run.
    pub start_ns: u64,
    /// Length in nanoseconds; the last window of a phase is usually shorter.
    pub duration_ns: u64,
    /// Operations; those without activity in the window may be absent.
    pub operations: Vec<OperationInterval>,
    pub errors: Vec<ErrorCount>,
    /// Totals of all operations.
    pub counts: WindowCounts,
    /// Parts of length [`FINE_NS`], which show patterns below one second.
    #[serde(skip)]
    pub sub_second: Vec<SubSecondPart>,
}

/// Totals of a recording window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCounts {
    /// Successful logical operations (a read-modify-write counts once).
    pub succeeded: u64,
    /// Failed logical operations.
    pub failed: u64,
    /// Sum of the service times of all finished logical operations, including failures, in nanoseconds.
    pub busy_ns: u128,
    /// Integral of the number of operations in flight over the window, in operation-nanoseconds.
    pub in_flight_ns: u128,
    /// Integral of the number of clients waiting between an answer and their next send, in client-nanoseconds; 0 unless
    /// the schedule makes them wait.
    #[serde(default)]
    pub thinking_ns: u128,
    /// Outcome of the arrivals; zeros if clients start their operations themselves.
    pub arrivals: Arrivals,
    pub reconnects: u64,
    /// Commands that were sent again because of `retryWrites` or `retryReads`.
    #[serde(default)]
    pub retries: u64,
    #[serde(default)]
    pub own: OwnCounts,
    /// User CPU time of the process in the window.
    pub cpu_user_ns: u64,
    /// System CPU time of the process in the window.
    pub cpu_system_ns: u64,
    /// Largest resident set of the process so far.
    pub max_rss_bytes: u64,
}

impl WindowCounts {
    /// Adds the totals of another window of the same process. Sums saturate: numbers of a damaged file must not stop
    /// the reader.
    pub fn add(&mut self, more: &WindowCounts) {
        let (arrivals, more_arrivals) = (&mut self.arrivals, &more.arrivals);
        for (total, more) in [
            (&mut self.succeeded, more.succeeded),
            (&mut self.failed, more.failed),
            (&mut arrivals.due, more_arrivals.due),
            (&mut arrivals.started, more_arrivals.started),
            (&mut arrivals.dropped, more_arrivals.dropped),
            (&mut arrivals.late, more_arrivals.late),
            (&mut self.reconnects, more.reconnects),
            (&mut self.retries, more.retries),
            (&mut self.cpu_user_ns, more.cpu_user_ns),
            (&mut self.cpu_system_ns, more.cpu_system_ns),
        ] {
            *total = total.saturating_add(more);
        }
        self.own.add(&more.own);
        self.busy_ns = self.busy_ns.saturating_add(more.busy_ns);
        self.in_flight_ns = self.in_flight_ns.saturating_add(more.in_flight_ns);
        self.thinking_ns = self.thinking_ns.saturating_add(more.thinking_ns);
        self.max_rss_bytes = self.max_rss_bytes.max(more.max_rss_bytes);
    }
}

/// Length of a part of a window in [`IntervalRecord::sub_second`].
pub const FINE_NS: u64 = 10_000_000;

/// Operations that ended in a part of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubSecondPart {
    /// Finished logical operations, including failures.
    pub ended: u64,
    /// Failed logical operations.
    pub failed: u64,
    /// Sum of their response times in nanoseconds.
    pub response_sum_ns: u64,
}

impl IntervalRecord {
    /// An empty window of length 0.
    pub fn empty(phase: PhaseKind, index: u64, start_ns: u64) -> Self {
        IntervalRecord {
            phase,
            index,
            start_ns,
            duration_ns: 0,
            operations: Vec::new(),
            errors: Vec::new(),
            counts: WindowCounts::default(),
            sub_second: Vec::new(),
        }
    }

    /// Progress of the phase: documents in the load phase, otherwise logical operations.
    pub fn progress(&self) -> u64 {
        match self.phase {
            PhaseKind::Load => self.operations.iter().map(|operation| operation.documents).sum(),
            _ => self.counts.succeeded,
        }
    }

    /// Appends the next window of the same phase: the result covers both, and keeps the number of the first.
    pub fn join(&mut self, mut next: IntervalRecord) {
        let end_ns = next.start_ns + next.duration_ns;
        self.duration_ns = end_ns.saturating_sub(self.start_ns);
        self.sub_second.append(&mut next.sub_second);
        self.add_counts(next).expect("all latency histograms have the same bounds");
    }

    /// Adds another generator's window of the same interval: the result covers both.
    ///
    /// # Errors
    /// A histogram has values outside this one's bounds.
    pub fn add_beside(&mut self, more: IntervalRecord) -> Result<(), AdditionError> {
        self.start_ns = self.start_ns.min(more.start_ns);
        self.duration_ns = self.duration_ns.max(more.duration_ns);
        // The processes run at the same time, so their memory is added.
        let max_rss_bytes = self.counts.max_rss_bytes + more.counts.max_rss_bytes;
        if self.sub_second.len() < more.sub_second.len() {
            self.sub_second.resize(more.sub_second.len(), SubSecondPart::default());
        }
        for (part, more) in self.sub_second.iter_mut().zip(&more.sub_second) {
            part.ended += more.ended;
            part.failed += more.failed;
            part.response_sum_ns += more.response_sum_ns;
        }
        self.add_counts(more)?;
        self.counts.max_rss_bytes = max_rss_bytes;
        Ok(())
    }

    /// Adds the values that are summed both for consecutive and for simultaneous windows.
    fn add_counts(&mut self, more: IntervalRecord) -> Result<(), AdditionError> {
        for operation in more.operations {
            let known = self.operations.iter_mut();
            match known.into_iter().find(|known| known.name == operation.name) {
                Some(known) => known.add(&operation)?,
                None => self.operations.push(operation),
            }
        }
        for error in more.errors {
            let is_same = |known: &&mut ErrorCount| {
                known.operation == error.operation && known.kind == error.kind
            };
            match self.errors.iter_mut().find(is_same) {
                Some(known) => {
                    known.count += error.count;
                    known.example = known.example.take().or(error.example);
                }
                None => self.errors.push(error),
            }
        }
        self.counts.add(&more.counts);
        Ok(())
    }
}

/// Placeholder for a histogram that is sent separately.
fn no_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 2, 0).expect("the bounds are valid constants")
}

/// One operation in one recording window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationInterval {
    /// Name in the plan's list of operations.
    pub name: String,
    /// From intended start to end, in nanoseconds, successes only.
    #[serde(skip, default = "no_histogram")]
    pub response: Histogram<u64>,
    /// From send to end, in nanoseconds, successes only.
    #[serde(skip, default = "no_histogram")]
    pub service: Histogram<u64>,
    /// From intended start to send, in nanoseconds, successes only.
    #[serde(skip, default = "no_histogram")]
    pub start_delay: Histogram<u64>,
    /// Exact sums of the three, in nanoseconds.
    pub response_sum_ns: u128,
    /// See `response_sum_ns`.
    pub service_sum_ns: u128,
    /// See `response_sum_ns`.
    pub start_delay_sum_ns: u128,
    /// Documents returned or written.
    pub documents: u64,
    pub errors: u64,
    /// Values above [`HIGHEST_NS`].
    pub clamped: u64,
}

impl OperationInterval {
    fn add(&mut self, more: &OperationInterval) -> Result<(), AdditionError> {
        self.response.add(&more.response)?;
        self.service.add(&more.service)?;
        self.start_delay.add(&more.start_delay)?;
        self.response_sum_ns += more.response_sum_ns;
        self.service_sum_ns += more.service_sum_ns;
        self.start_delay_sum_ns += more.start_delay_sum_ns;
        self.documents += more.documents;
        self.errors += more.errors;
        self.clamped += more.clamped;
        Ok(())
    }
}

/// Failures of one kind in one recording window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Name of the operation.
    pub operation: String,
    /// Kind: `timeout`, `disconnected`, `protocol`, `not_found`, `server_11000`, …
    pub kind: String,
    pub count: u64,
    /// First failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<ErrorExample>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start_s: u64, kind: &str, value_ns: u64) -> IntervalRecord {
        let mut response = latency_histogram();
        response.record(value_ns).unwrap();
        IntervalRecord {
            duration_ns: 1_000_000_000,
            operations: vec![OperationInterval {
                name: "read".into(),
                service: response.clone(),
                start_delay: latency_histogram(),
                response,
                response_sum_ns: value_ns.into(),
                service_sum_ns: value_ns.into(),
                start_delay_sum_ns: 0,
                documents: 1,
                errors: 1,
                clamped: 0,
            }],
            errors: vec![ErrorCount {
                operation: "read".into(),
                kind: kind.to_owned(),
                count: 1,
                example: Some(ErrorExample::new(None, "", &format!("at {start_s} s"))),
            }],
            counts: WindowCounts {
                succeeded: 1,
                failed: 1,
                busy_ns: value_ns.into(),
                in_flight_ns: 5,
                thinking_ns: 7,
                arrivals: Arrivals { due: 2, started: 2, dropped: 0, late: 1 },
                reconnects: 1,
                retries: 4,
                own: OwnCounts { commit_retries: 2, ..OwnCounts::default() },
                cpu_user_ns: 10,
                cpu_system_ns: 20,
                max_rss_bytes: 100 + start_s,
            },
            ..IntervalRecord::empty(PhaseKind::Measure, start_s, start_s * 1_000_000_000)
        }
    }

    #[test]
    fn joined_windows_hold_the_operations_of_both() {
        let mut joined = window(3, "timeout", 1_000_000);
        joined.join(window(4, "timeout", 9_000_000));
        joined.join(window(5, "protocol", 9_000_000));
        assert_eq!((joined.index, joined.start_ns), (3, 3_000_000_000));
        assert_eq!(joined.duration_ns, 3_000_000_000);
        let read = &joined.operations[0];
        assert_eq!((read.response.len(), read.response_sum_ns), (3, 19_000_000));
        assert_eq!((read.documents, read.errors), (3, 3));
        let errors: Vec<(&str, u64)> =
            joined.errors.iter().map(|error| (error.kind.as_str(), error.count)).collect();
        assert_eq!(errors, [("timeout", 2), ("protocol", 1)]);
        let first = joined.errors[0].example.as_ref();
        assert_eq!(first.map(|it| it.message.as_str()), Some("at 3 s"));
        let counts = joined.counts;
        assert_eq!((counts.succeeded, counts.arrivals.due), (3, 6));
        assert_eq!((counts.cpu_system_ns, counts.max_rss_bytes), (60, 105));
        assert_eq!((counts.in_flight_ns, counts.thinking_ns), (15, 21));
        assert_eq!((counts.reconnects, counts.retries), (3, 12));
        assert_eq!((counts.own.commit_retries, counts.own.transaction_aborts), (6, 0));
    }
}
