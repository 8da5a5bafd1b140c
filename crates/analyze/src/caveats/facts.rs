//! A run as the caveats see it.

use crate::experiment::outages::outages;
use crate::windows::{IntervalTotals, join_short};
use dyno_record::model::{Caveat, CaveatKind, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::plan::RecordedPlan;
use dyno_record::statement::Statement;

/// A document with derived facts.
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

    /// Worker threads of the client, limited to its CPUs and its quota.
    pub(super) fn worker_cpus(&self) -> f64 {
        if let Some(fleet) = &self.document.fleet {
            return fleet.usable_cpus() as f64;
        }
        let threads = self.plan.client.as_ref().map(|client| u64::from(client.threads));
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

    /// Whether no operation succeeded for a part of the measure phase, which no other load would have changed.
    pub(super) fn has_outage(&self) -> bool {
        !outages(self.document, self.intervals, &[]).is_empty()
    }

    /// The window of the measure phase that covers most of a time.
    pub(super) fn window_at(&self, start_s: f64, end_s: f64) -> Option<&'a IntervalTotals> {
        let overlap_s = |window: &IntervalTotals| {
            (window.start_s + window.duration_s).min(end_s) - window.start_s.max(start_s)
        };
        self.intervals
            .iter()
            .filter(|window| window.phase == PhaseKind::Measure && overlap_s(window) > 0.0)
            .max_by(|a, b| overlap_s(a).total_cmp(&overlap_s(b)))
    }

    /// Windows of the measure phase that its figures use.
    pub(super) fn measure_windows(&self) -> Vec<IntervalTotals> {
        let of_phase = self.intervals.iter().copied();
        let of_phase =
            of_phase.filter(|window| window.phase == PhaseKind::Measure && window.duration_s > 0.0);
        join_short(of_phase, |one| one.duration_s, IntervalTotals::append)
    }

    /// Completed logical operations of a phase: succeeded and failed.
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

/// The caveats of all phases that have one.
pub(super) fn of_phases(
    facts: &Facts<'_>,
    kind: CaveatKind,
    said: impl Fn(&PhaseRecord) -> Option<Statement>,
) -> Vec<Caveat> {
    facts
        .document
        .phases
        .iter()
        .filter_map(|phase| Some(Caveat::of_phase(kind, phase.name, said(phase)?)))
        .collect()
}
