//! A run as the caveats look at it.

use dyno_record::model::{Caveat, CaveatKind, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::plan::RecordedPlan;
use dyno_record::reader::{IntervalPoint, Run};
use dyno_record::statement::Statement;
use std::collections::BTreeMap;

/// What the caveats need to know of one recording window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalTotals {
    /// Phase that the window belongs to.
    pub phase: PhaseKind,
    /// Start, from the start of the run.
    pub start_s: f64,
    /// Length.
    pub duration_s: f64,
    /// Logical operations that succeeded.
    pub succeeded: u64,
    /// Logical operations that failed.
    pub failed: u64,
    /// Mean response time of the operations that succeeded; `None` without any.
    pub response_mean_us: Option<f64>,
}

impl IntervalTotals {
    /// The windows of a run.
    pub fn of_run(run: &Run) -> Vec<IntervalTotals> {
        let mut times: BTreeMap<(PhaseKind, u64), (u64, f64)> = BTreeMap::new();
        for point in &run.series {
            let (count, sum_us) = times.entry((point.phase, point.index)).or_default();
            *count += point.count;
            *sum_us += point.response.mean_us * point.count as f64;
        }
        let of_point = |point: &IntervalPoint| {
            let time = times.get(&(point.phase, point.index));
            IntervalTotals {
                phase: point.phase,
                start_s: point.start_s,
                duration_s: point.duration_s,
                succeeded: point.succeeded,
                failed: point.failed,
                response_mean_us: time
                    .filter(|(count, _)| *count > 0)
                    .map(|(count, sum_us)| sum_us / *count as f64),
            }
        };
        run.intervals.iter().map(of_point).collect()
    }
}

/// The document seen from the caveats' side.
pub(super) struct Facts<'a> {
    pub(super) document: &'a RunDocument,
    pub(super) plan: RecordedPlan,
    /// The phase that is the result.
    pub(super) measure: Option<&'a PhaseRecord>,
    intervals: &'a [IntervalTotals],
}

impl<'a> Facts<'a> {
    pub(super) fn new(document: &'a RunDocument, intervals: &'a [IntervalTotals]) -> Self {
        let is_measure = |phase: &&PhaseRecord| phase.name == PhaseKind::Measure;
        Facts {
            document,
            plan: document.recorded_plan(),
            measure: document.phases.iter().find(is_measure),
            intervals,
        }
    }

    /// Worker threads of the client, but not more than it has CPUs, or than its quota leaves of them.
    pub(super) fn worker_cpus(&self) -> f64 {
        if let Some(fleet) = &self.document.fleet {
            return fleet.usable_cpus() as f64;
        }
        let threads = self.plan.client.threads;
        let cpus = self.document.environment.cpus;
        let usable = match (threads, cpus) {
            (Some(threads), Some(cpus)) => threads.min(cpus),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => 1,
        };
        // Each instance has a client of its own, all in this process.
        let clients = self.document.instances.len().max(1) as u64;
        let usable = (usable * clients).min(cpus.unwrap_or(u64::MAX));
        let allowed = self.document.environment.allowed_cpus.as_ref();
        let quota = allowed.and_then(|allowed| allowed.quota());
        (usable.max(1) as f64).min(quota.unwrap_or(f64::INFINITY))
    }

    /// Windows of the measure phase that are long enough to compare: the last one of a phase is
    /// cut where the phase ends, and the last planned one may be longer while operations end.
    pub(super) fn full_measure_windows(&self) -> Vec<&'a IntervalTotals> {
        let of_phase = || {
            self.intervals
                .iter()
                .filter(|window| window.phase == PhaseKind::Measure)
        };
        // The median is the usual length: the last planned window can be longer, the last one is shorter.
        let mut lengths_s: Vec<f64> = of_phase().map(|window| window.duration_s).collect();
        lengths_s.sort_by(f64::total_cmp);
        let usual_s = lengths_s.get(lengths_s.len() / 2).copied().unwrap_or(0.0);
        of_phase()
            .filter(|window| window.duration_s > 0.0 && window.duration_s >= 0.9 * usual_s)
            .collect()
    }

    /// Logical operations of a phase that ended: succeeded and failed.
    pub(super) fn finished(&self, phase: PhaseKind) -> (u64, u64) {
        let windows = self.intervals.iter().filter(|window| window.phase == phase);
        windows.fold((0, 0), |(succeeded, failed), window| {
            (succeeded + window.succeeded, failed + window.failed)
        })
    }
}

/// A caveat of the measure phase.
pub(super) fn of_measure(kind: CaveatKind, said: Statement) -> Caveat {
    Caveat::of_phase(kind, PhaseKind::Measure, said)
}

/// A caveat of each phase of which there is something to say.
pub(super) fn of_phases(
    facts: &Facts<'_>,
    kind: CaveatKind,
    said: impl Fn(&PhaseRecord) -> Option<Statement>,
) -> Vec<Caveat> {
    let phases = facts.document.phases.iter();
    phases
        .filter_map(|phase| Some(Caveat::of_phase(kind, phase.name, said(phase)?)))
        .collect()
}
