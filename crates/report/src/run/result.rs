//! Chooses the result phase of a run, and describes a run that did not end as planned.

use dyno_record::error_example::ErrorExample;
use dyno_record::model::{OperationRecord, PhaseKind, PhaseRecord, RunDocument, RunStatus};

/// The phase of the headline: the measure phase, or the last phase with operations.
pub(crate) fn result_phase(document: &RunDocument) -> Option<&PhaseRecord> {
    let measured = |phase: &&PhaseRecord| phase.name == PhaseKind::Measure;
    let worked = |phase: &&PhaseRecord| phase.operations.values().any(|o| o.count + o.errors > 0);
    let phases = &document.phases;
    let measure = phases.iter().find(measured);
    let last_that_worked = phases.iter().rev().find(worked);
    measure.or(last_that_worked).or(phases.last())
}

/// Operations of a phase, most frequent first, then by name. Steps stand behind their operation, however often they were
/// performed.
pub(super) fn by_count<'a>(
    document: &RunDocument,
    phase: &'a PhaseRecord,
) -> Vec<(&'a String, &'a OperationRecord)> {
    let operation_of = |name: &str| document.operations.find(name)?.step_of.clone();
    let total = |record: &OperationRecord| record.count + record.errors;
    let mut operations: Vec<_> = phase.operations.iter().collect();
    operations.sort_by_cached_key(|(name, _)| {
        let step_of = operation_of(name);
        let is_step = step_of.is_some();
        let operation = step_of.unwrap_or_else(|| (*name).clone());
        let performed = phase.operations.get(&operation).map_or(0, total);
        (std::cmp::Reverse(performed), operation, is_step)
    });
    operations
}

/// Failed operations of a phase, and their share.
pub(super) fn failed(phase: &PhaseRecord) -> (u64, f64) {
    // A run of an earlier version has failures by kind only.
    let failed = match phase.failed {
        0 => phase.errors.values().sum(),
        failed => failed,
    };
    let succeeded = (phase.achieved_rate_per_s * phase.duration_s).round();
    (failed, failed as f64 / (succeeded + failed as f64))
}

/// Failures of a phase by kind, most frequent first.
pub(super) fn failures(phase: &PhaseRecord) -> Vec<(&str, u64)> {
    let mut errors: Vec<(&str, u64)> = phase
        .errors
        .iter()
        .map(|(kind, count)| (kind.as_str(), *count))
        .filter(|(_, count)| *count > 0)
        .collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

/// A kind of failure, with the server's name of its code if known.
pub(super) fn failure_label(phase: &PhaseRecord, kind: &str) -> String {
    let example = phase.error_examples.get(kind);
    match example.and_then(ErrorExample::code_text) {
        None => kind.to_owned(),
        Some(code) if is_shed(kind) => format!("shed, {code}"),
        Some(code) if kind.starts_with("write_concern_") => format!("write concern, {code}"),
        Some(code) => code,
    }
}

/// Operations that an overloaded server refused to start.
pub(super) fn shed(phase: &PhaseRecord) -> u64 {
    let kinds = phase.errors.iter().filter(|(kind, _)| is_shed(kind));
    kinds.map(|(_, count)| count).sum()
}

fn is_shed(kind: &str) -> bool {
    kind.starts_with("shed_")
}

/// The first line of lists for scripts if the run did not end as planned: they have no other place for it. Scripts look for
/// labels, and skip it.
pub fn incomplete(document: &RunDocument) -> String {
    let status = match document.status {
        RunStatus::Complete => return String::new(),
        RunStatus::Running => "the run is still running or was killed",
        RunStatus::Partial => "the run was stopped early",
        RunStatus::Failed => "the run failed",
    };
    let reason = document.status_reason.as_deref().unwrap_or(status);
    // A reason may contain the last lines of a log.
    let line: Vec<&str> = reason.lines().map(str::trim).collect();
    format!("INCOMPLETE: {}\n", line.join(" "))
}
