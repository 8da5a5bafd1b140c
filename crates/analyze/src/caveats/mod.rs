//! Reasons to doubt a run, found in its document and its windows. One function per kind, each with
//! its threshold and why it is that one. What only the run itself can see (probes that failed,
//! server settings that differ) is added by those who see it.

mod client;
mod machine;
mod result;
mod server;
mod steadiness;

use dyno_record::model::{Caveat, CaveatKind, PhaseKind, PhaseRecord, RunDocument};
use dyno_record::reader::{IntervalPoint, Run};
use serde_json::Value;
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

/// All caveats that follow from a document and its windows, the gravest kinds first. The caveats
/// that the document holds already are not looked at and not repeated.
pub fn caveats(document: &RunDocument, intervals: &[IntervalTotals]) -> Vec<Caveat> {
    let facts = Facts::new(document, intervals);
    const FINDERS: [fn(&Facts<'_>) -> Vec<Caveat>; 24] = [
        result::partial,
        result::integrity,
        result::errors,
        client::generator_bottleneck,
        client::dropped_arrivals,
        client::rate_not_achieved,
        client::late_starts,
        result::little_law,
        result::uneven_shares,
        steadiness::not_steady,
        steadiness::warm_up_measured,
        result::too_few_intervals,
        result::too_few_operations,
        result::clamped_values,
        result::reconnects,
        server::document_count,
        server::fits_in_cache,
        server::durability,
        machine::shared_machine,
        machine::cpu_frequency,
        machine::clock_coarse,
        machine::failed_checks,
        machine::settings,
        machine::storage_settings,
    ];
    FINDERS.iter().flat_map(|find| find(&facts)).collect()
}

/// The document seen from the caveats' side.
struct Facts<'a> {
    document: &'a RunDocument,
    /// The phase that is the result.
    measure: Option<&'a PhaseRecord>,
    intervals: &'a [IntervalTotals],
}

impl<'a> Facts<'a> {
    fn new(document: &'a RunDocument, intervals: &'a [IntervalTotals]) -> Self {
        let is_measure = |phase: &&PhaseRecord| phase.name == PhaseKind::Measure;
        Facts {
            document,
            measure: document.phases.iter().find(is_measure),
            intervals,
        }
    }

    /// A value of the plan.
    fn plan(&self, pointer: &str) -> Option<&'a Value> {
        self.document.plan.pointer(pointer)
    }

    /// Worker threads of the client, but not more than it has CPUs.
    fn worker_cpus(&self) -> f64 {
        if let Some(fleet) = &self.document.fleet {
            return fleet.usable_cpus() as f64;
        }
        let threads = self.plan("/client/threads").and_then(Value::as_u64);
        let cpus = self.document.environment.cpus;
        let usable = match (threads, cpus) {
            (Some(threads), Some(cpus)) => threads.min(cpus),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => 1,
        };
        // Each instance has a client of its own, all in this process.
        let clients = self.document.instances.len().max(1) as u64;
        let usable = (usable * clients).min(cpus.unwrap_or(u64::MAX));
        usable.max(1) as f64
    }

    /// Windows of the measure phase that are long enough to compare: the last one of a phase is
    /// cut where the phase ends, and the last planned one may be longer while operations end.
    fn full_measure_windows(&self) -> Vec<&'a IntervalTotals> {
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
    fn finished(&self, phase: PhaseKind) -> (u64, u64) {
        let windows = self.intervals.iter().filter(|window| window.phase == phase);
        windows.fold((0, 0), |(succeeded, failed), window| {
            (succeeded + window.succeeded, failed + window.failed)
        })
    }
}

/// A caveat about one phase.
fn about_phase(kind: CaveatKind, phase: PhaseKind, message: String, hint: &str) -> Caveat {
    Caveat {
        kind,
        message,
        hint: Some(hint.to_owned()),
        phase: Some(phase),
    }
}

/// A caveat about the whole run.
fn about_run(kind: CaveatKind, message: String, hint: &str) -> Caveat {
    Caveat {
        kind,
        message,
        hint: Some(hint.to_owned()),
        phase: None,
    }
}

#[cfg(test)]
mod tests;
