//! A run as the caveats look at it.

use crate::experiment::outages::outages;
use crate::windows::{IntervalTotals, join_short};
use dyno_record::model::{Caveat, CaveatKind, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::plan::RecordedPlan;
use dyno_record::statement::Statement;

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

    /// Whether no operation succeeded for a part of the measure phase: no other load would have helped.
    pub(super) fn has_outage(&self) -> bool {
        !outages(self.document, self.intervals, &[]).is_empty()
    }

    /// The window of the measure phase in which most of a time lies.
    pub(super) fn window_at(&self, start_s: f64, end_s: f64) -> Option<&'a IntervalTotals> {
        let overlap_s = |window: &IntervalTotals| {
            (window.start_s + window.duration_s).min(end_s) - window.start_s.max(start_s)
        };
        let windows = self.intervals.iter();
        windows
            .filter(|window| window.phase == PhaseKind::Measure && overlap_s(window) > 0.0)
            .max_by(|a, b| overlap_s(a).total_cmp(&overlap_s(b)))
    }

    /// Windows of the measure phase, those that its figures are made of.
    pub(super) fn measure_windows(&self) -> Vec<IntervalTotals> {
        let of_phase = self.intervals.iter().copied();
        let of_phase =
            of_phase.filter(|window| window.phase == PhaseKind::Measure && window.duration_s > 0.0);
        join_short(of_phase, |one| one.duration_s, IntervalTotals::append)
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
