//! Sums up the recording windows of one phase.
//!
//! The engine uses it during a run, and the reader when it rebuilds a run from its files, so both get the same figures.
//! Windows may come in any order. Memory depends on the number of operations and error kinds, not on the length of the
//! phase.

use crate::error_example::ErrorExample;
use crate::hlog::Clock;
use crate::interval::{IntervalRecord, WindowCounts, latency_histogram};
use crate::model::{ClientUsage, OperationRecord, PhaseKind, PhaseRecord};
use crate::sparse::DenseCounts;
use crate::summary::latency_summary;
use crate::windows::Window;
use hdrhistogram::Histogram;
use hdrhistogram::errors::AdditionError;
use std::collections::BTreeMap;

const NS_PER_S: f64 = 1e9;

/// The merged latency histograms of one operation in one phase, in nanoseconds, successes only.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// From intended start to end.
    pub response: Histogram<u64>,
    /// From send to end.
    pub service: Histogram<u64>,
    /// From intended start to send.
    pub start_delay: Histogram<u64>,
}

impl Distribution {
    fn new() -> Self {
        Distribution {
            response: latency_histogram(),
            service: latency_histogram(),
            start_delay: latency_histogram(),
        }
    }

    fn get_mut(&mut self, clock: Clock) -> &mut Histogram<u64> {
        match clock {
            Clock::Response => &mut self.response,
            Clock::Service => &mut self.service,
            Clock::StartDelay => &mut self.start_delay,
        }
    }
}

/// Sums of an operation other than its histograms.
#[derive(Clone, Debug, Default)]
struct Sums {
    response_ns: u128,
    service_ns: u128,
    start_delay_ns: u128,
    documents: u64,
    errors: u64,
    clamped: u64,
}

/// Totals of one operation.
#[derive(Clone, Debug)]
struct OperationTotals {
    distribution: Distribution,
    /// Histograms of windows that were read, by clock, which are not part of the distribution yet.
    read: [DenseCounts; 3],
    sums: Sums,
}

/// Sums of one phase, which become its [`PhaseRecord`].
#[derive(Clone, Debug)]
pub struct PhaseAccumulator {
    phase: PhaseKind,
    offered_rate_per_s: Option<f64>,
    /// Start of the earliest and end of the latest window.
    span_ns: Option<(u64, u64)>,
    operations: BTreeMap<String, OperationTotals>,
    errors: BTreeMap<String, u64>,
    examples: BTreeMap<String, ErrorExample>,
    counts: WindowCounts,
}

impl PhaseAccumulator {
    /// An empty phase. `offered_rate_per_s` is the schedule's rate; without one the record does not have arrivals.
    pub fn new(phase: PhaseKind, offered_rate_per_s: Option<f64>) -> Self {
        PhaseAccumulator {
            phase,
            offered_rate_per_s,
            span_ns: None,
            operations: BTreeMap::new(),
            errors: BTreeMap::new(),
            examples: BTreeMap::new(),
            counts: WindowCounts::default(),
        }
    }

    /// The phase.
    pub fn phase(&self) -> PhaseKind {
        self.phase
    }

    /// Adds a window. Its histograms must have the bounds of [`latency_histogram`]; a histogram with values outside
    /// them is an error and leaves the sums partly updated.
    pub fn add(&mut self, interval: &IntervalRecord) -> Result<(), AdditionError> {
        debug_assert_eq!(interval.phase, self.phase, "the window belongs to another phase");
        self.add_counts(interval.start_ns, interval.duration_ns, &interval.counts);
        for operation in &interval.operations {
            let totals = self.operation(&operation.name);
            totals.add_sums(&Sums {
                response_ns: operation.response_sum_ns,
                service_ns: operation.service_sum_ns,
                start_delay_ns: operation.start_delay_sum_ns,
                documents: operation.documents,
                errors: operation.errors,
                clamped: operation.clamped,
            });
            let distribution = &mut totals.distribution;
            distribution.response.add(&operation.response)?;
            distribution.service.add(&operation.service)?;
            distribution.start_delay.add(&operation.start_delay)?;
        }
        for error in &interval.errors {
            self.add_errors(&error.kind, error.count);
            if let Some(example) = &error.example
                && !self.examples.contains_key(&error.kind)
            {
                self.examples.insert(error.kind.clone(), example.clone());
            }
        }
        Ok(())
    }

    fn add_counts(&mut self, start_ns: u64, duration_ns: u64, counts: &WindowCounts) {
        let end_ns = start_ns.saturating_add(duration_ns);
        let (first_ns, last_ns) = self.span_ns.unwrap_or((start_ns, end_ns));
        self.span_ns = Some((first_ns.min(start_ns), last_ns.max(end_ns)));
        self.counts.add(counts);
    }

    /// Adds a window that was read from files.
    pub(crate) fn add_window(&mut self, window: &Window) {
        let row = &window.interval;
        self.add_counts(row.start_ns, row.duration_ns, &row.counts());
        for row in &window.operations {
            self.operation(&row.operation).add_sums(&Sums {
                response_ns: row.response_sum_ns,
                service_ns: row.service_sum_ns,
                start_delay_ns: row.start_delay_sum_ns,
                documents: row.documents,
                errors: row.errors,
                clamped: row.clamped,
            });
        }
        for histogram in &window.histograms {
            let name = &window.operations[histogram.operation].operation;
            self.operation(name).read[histogram.clock as usize].add(&histogram.values);
        }
        for row in &window.errors {
            self.add_errors(&row.kind, row.count);
        }
    }

    /// Adds the histograms of the windows that were read to the distributions.
    pub(crate) fn finish_windows(&mut self) {
        for totals in self.operations.values_mut() {
            for clock in Clock::ALL {
                let read = totals.read[clock as usize].take();
                read.add_to(totals.distribution.get_mut(clock));
            }
        }
    }

    /// The merged histograms by operation name.
    pub fn distributions(&self) -> impl Iterator<Item = (&str, &Distribution)> {
        self.operations.iter().map(|(name, totals)| (name.as_str(), &totals.distribution))
    }

    /// Consumes the merged histograms, by operation name.
    pub fn into_distributions(self) -> impl Iterator<Item = (String, Distribution)> {
        self.operations.into_iter().map(|(name, totals)| (name, totals.distribution))
    }

    /// Record of the phase so far. Rates and means cover the time from the start of the first window to the end of the
    /// last. Windows do not contain key shares, so these stay empty.
    pub fn to_record(&self) -> PhaseRecord {
        let (first_ns, last_ns) = self.span_ns.unwrap_or((0, 0));
        let duration_ns = last_ns - first_ns;
        let duration_s = duration_ns as f64 / NS_PER_S;
        let counts = &self.counts;
        let finished = counts.succeeded.saturating_add(counts.failed);
        let operations = self.operations.iter();
        PhaseRecord {
            name: self.phase,
            start_s: first_ns as f64 / NS_PER_S,
            duration_s,
            offered_rate_per_s: self.offered_rate_per_s,
            achieved_rate_per_s: ratio(counts.succeeded as f64, duration_s),
            succeeded: counts.succeeded,
            failed: counts.failed,
            operations: operations
                .map(|(name, totals)| (name.clone(), totals.to_record(duration_s)))
                .collect(),
            errors: self.errors.clone(),
            error_examples: self.examples.clone(),
            // Clients with waits start their operations themselves, so there are no arrivals.
            arrivals: (self.offered_rate_per_s)
                .filter(|_| counts.thinking_ns == 0)
                .map(|_| counts.arrivals),
            client: self.client_usage(finished),
            mean_think_time_us: (counts.thinking_ns > 0 && finished > 0)
                .then(|| counts.thinking_ns as f64 / finished as f64 / 1_000.0),
            mean_in_flight: ratio(counts.in_flight_ns as f64, duration_ns as f64),
            // The duration and the count cancel out of Little's law:
            // (in_flight / T) / ((n / T) * (busy / n)) = in_flight / busy.
            little_ratio: (finished > 0 && counts.busy_ns > 0)
                .then(|| counts.in_flight_ns as f64 / counts.busy_ns as f64),
            keys: None,
            reconnects: counts.reconnects,
            retries: counts.retries,
            own: counts.own,
        }
    }

    fn client_usage(&self, finished: u64) -> ClientUsage {
        let counts = &self.counts;
        let cpu_ns = counts.cpu_user_ns.saturating_add(counts.cpu_system_ns);
        ClientUsage {
            cpu_user_s: counts.cpu_user_ns as f64 / NS_PER_S,
            cpu_system_s: counts.cpu_system_ns as f64 / NS_PER_S,
            cpu_us_per_operation: ratio(cpu_ns as f64 / 1_000.0, finished as f64),
            max_rss_bytes: counts.max_rss_bytes,
        }
    }

    fn operation(&mut self, name: &str) -> &mut OperationTotals {
        // `entry` would need an owned name on every call.
        if !self.operations.contains_key(name) {
            self.operations.insert(name.to_owned(), OperationTotals::new());
        }
        self.operations.get_mut(name).expect("it was inserted above")
    }

    fn add_errors(&mut self, kind: &str, count: u64) {
        match self.errors.get_mut(kind) {
            Some(total) => add(total, count),
            None => {
                self.errors.insert(kind.to_owned(), count);
            }
        }
    }
}

impl OperationTotals {
    fn new() -> Self {
        OperationTotals {
            distribution: Distribution::new(),
            read: Default::default(),
            sums: Sums::default(),
        }
    }

    fn add_sums(&mut self, more: &Sums) {
        let sums = &mut self.sums;
        add(&mut sums.documents, more.documents);
        add(&mut sums.errors, more.errors);
        add(&mut sums.clamped, more.clamped);
        sums.response_ns = sums.response_ns.saturating_add(more.response_ns);
        sums.service_ns = sums.service_ns.saturating_add(more.service_ns);
        sums.start_delay_ns = sums.start_delay_ns.saturating_add(more.start_delay_ns);
    }

    fn to_record(&self, duration_s: f64) -> OperationRecord {
        let Distribution { response, service, start_delay } = &self.distribution;
        OperationRecord {
            count: response.len(),
            errors: self.sums.errors,
            rate_per_s: ratio(response.len() as f64, duration_s),
            documents: self.sums.documents,
            clamped: self.sums.clamped,
            response_time_us: latency_summary(response, self.sums.response_ns),
            service_time_us: latency_summary(service, self.sums.service_ns),
            start_delay_us: latency_summary(start_delay, self.sums.start_delay_ns),
        }
    }
}

/// Saturating addition: numbers of a damaged file must not stop the reader.
fn add(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}

/// The quotient, or 0 for a divisor of 0: JSON does not have infinity.
fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}
