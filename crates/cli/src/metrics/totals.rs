//! Sums of the recording windows: the state behind the metrics.

use crate::metrics::buckets::Buckets;
use crate::metrics::window::{mean_in_flight, seconds};
use dyno_engine::observer::RunFacts;
use dyno_load::operation::OperationError;
use dyno_record::interval::WindowCounts;
use dyno_record::model::{PhaseKind, RunStatus};
use dyno_record::recorded::{RecordedLatency, RecordedWindow};
use std::collections::BTreeMap;

/// Failure kinds that every operation can have. Their counters start at 0, so that a healthy run shows them and rates include
/// the first failure. Other kinds appear with their first failure.
const USUAL_ERRORS: [OperationError; 2] = [OperationError::Timeout, OperationError::Disconnected];

/// Sums over all runs of an experiment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) run: Option<RunFacts>,
    pub(crate) status: Option<RunStatus>,
    /// The current phase.
    pub(crate) phase: Option<PhaseKind>,
    /// Last start of each phase, in seconds since 1970.
    pub(crate) phase_starts_s: BTreeMap<PhaseKind, f64>,
    /// Logical operations of each phase that succeeded and failed.
    pub(crate) logical: BTreeMap<PhaseKind, (u64, u64)>,
    pub(crate) operations: BTreeMap<(PhaseKind, String), OperationTotals>,
    /// Failures by phase, operation and kind.
    pub(crate) errors: BTreeMap<(PhaseKind, String, String), u64>,
    /// Totals over all phases. The time of thinking starts with each run.
    pub(crate) counts: WindowCounts,
    /// Of the last window, during a phase.
    pub(crate) mean_in_flight: Option<f64>,
}

/// Totals of one operation in one phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationTotals {
    pub(crate) succeeded: u64,
    pub(crate) documents: u64,
    pub(crate) response: Buckets,
    pub(crate) service: Buckets,
    pub(crate) start_delay: Buckets,
}

impl Totals {
    /// Starts a run.
    pub(crate) fn begin(&mut self, run: RunFacts) {
        self.run = Some(run);
        self.status = Some(RunStatus::Running);
        self.phase_starts_s.clear();
        self.counts.thinking_ns = 0;
        self.end_phase();
    }

    /// Starts a phase.
    pub(crate) fn begin_phase(&mut self, phase: PhaseKind, now_s: f64) {
        self.phase = Some(phase);
        self.phase_starts_s.insert(phase, now_s);
    }

    /// Ends the current phase.
    pub(crate) fn end_phase(&mut self) {
        self.phase = None;
        self.mean_in_flight = None;
    }

    /// Adds a window.
    pub(crate) fn add(&mut self, window: &RecordedWindow) {
        if let (0, Some(run)) = (window.index, &self.run) {
            // More exact than the announcement of the phase.
            let start_s = run.started_s + seconds(window.start_ns);
            self.phase_starts_s.insert(window.phase, start_s);
        }
        self.phase = Some(window.phase);
        let (succeeded, failed) = self.logical.entry(window.phase).or_default();
        *succeeded += window.counts.succeeded;
        *failed += window.counts.failed;
        for operation in &window.operations {
            let key = (window.phase, operation.name.clone());
            let totals = self.operations.entry(key).or_default();
            totals.succeeded += operation.count;
            totals.documents += operation.documents;
            put(&mut totals.response, &operation.response);
            put(&mut totals.service, &operation.service);
            put(&mut totals.start_delay, &operation.start_delay);
            for error in USUAL_ERRORS {
                let key = (window.phase, operation.name.clone(), error.to_string());
                self.errors.entry(key).or_default();
            }
        }
        for error in &window.errors {
            let key = (window.phase, error.operation.clone(), error.kind.clone());
            *self.errors.entry(key).or_default() += error.count;
        }
        self.counts.add(&window.counts);
        self.mean_in_flight = Some(mean_in_flight(window));
    }

    /// Current offered rate.
    pub(crate) fn offered_rate_per_s(&self) -> Option<f64> {
        let is_measured = matches!(self.phase, Some(PhaseKind::Warmup | PhaseKind::Measure));
        let offered = self.run.as_ref()?.offered_rate_per_s;
        offered.filter(|_| is_measured)
    }

    /// Whether arrivals are counted.
    pub(crate) fn has_arrivals(&self) -> bool {
        // Clients that wait for their own next starts do not have arrivals.
        let thinks = self.counts.thinking_ns > 0;
        let is_open = |run: &RunFacts| run.offered_rate_per_s.is_some() && !thinks;
        self.counts.arrivals.due > 0 || self.run.as_ref().is_some_and(is_open)
    }
}

fn put(buckets: &mut Buckets, latency: &RecordedLatency) {
    if let Some(values) = &latency.values {
        buckets.add(values, latency.sum_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(offered_rate_per_s: Option<f64>) -> RunFacts {
        RunFacts {
            name: "a".into(),
            version: "0.1.0".into(),
            server: "embedded".into(),
            directory: "run".into(),
            started_s: 1_000.0,
            offered_rate_per_s,
        }
    }

    fn window(phase: PhaseKind, index: u64) -> RecordedWindow {
        RecordedWindow {
            phase,
            index,
            start_ns: (5 + index) * 1_000_000_000,
            duration_ns: 1_000_000_000,
            counts: WindowCounts {
                succeeded: 3,
                failed: 1,
                in_flight_ns: 2_000_000_000,
                reconnects: 1,
                retries: 2,
                own: Default::default(),
                cpu_user_ns: 500_000_000,
                max_rss_bytes: 7,
                ..WindowCounts::default()
            },
            operations: Vec::new(),
            errors: Vec::new(),
        }
    }

    #[test]
    fn sums_continue_over_runs_and_run_values_restart() {
        let mut totals = Totals::default();
        for _ in 0..2 {
            totals.begin(facts(None));
            assert_eq!((totals.phase, totals.phase_starts_s.len()), (None, 0));
            totals.begin_phase(PhaseKind::Measure, 1_005.5);
            totals.add(&window(PhaseKind::Measure, 0));
            totals.add(&window(PhaseKind::Measure, 1));
            assert_eq!(totals.phase_starts_s[&PhaseKind::Measure], 1_005.0);
            totals.end_phase();
            assert_eq!((totals.phase, totals.mean_in_flight), (None, None));
        }
        assert_eq!(totals.logical[&PhaseKind::Measure], (12, 4));
        assert_eq!((totals.counts.reconnects, totals.counts.retries), (4, 8));
        assert_eq!(totals.counts.cpu_user_ns, 2_000_000_000);
        assert!(!totals.has_arrivals());
    }

    #[test]
    fn rate_is_offered_after_the_load_phase() {
        let mut totals = Totals::default();
        totals.begin(facts(Some(50.0)));
        assert!(totals.has_arrivals());
        for (phase, offered) in [
            (PhaseKind::Load, None),
            (PhaseKind::Warmup, Some(50.0)),
            (PhaseKind::Measure, Some(50.0)),
        ] {
            totals.begin_phase(phase, 0.0);
            assert_eq!(totals.offered_rate_per_s(), offered, "{phase:?}");
        }
        totals.end_phase();
        assert_eq!(totals.offered_rate_per_s(), None);
    }
}
