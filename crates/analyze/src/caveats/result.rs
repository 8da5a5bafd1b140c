//! Caveats about the figures: too few, unsteady, incomplete, or contradictory.

use super::facts::{Facts, of_measure, of_phases};
use crate::little;
use crate::values::{number, percent};
use dyno_record::model::{Caveat, CaveatKind, PhaseKind, RunStatus};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Fewest windows of the measure phase. With fewer, one checkpoint or one stall decides the result, and the
/// steady-state tests do not work.
const MIN_INTERVALS: usize = 10;
/// Fewest values beyond a sound percentile: with 10 of them the relative standard error of their number is
/// 1/√10, a third.
const VALUES_BEYOND: u64 = 10;
/// The displayed percentiles, from the highest on, with the operations per value beyond them.
const PERCENTILES: [(&str, u64); 5] =
    [("p99.99", 10_000), ("p99.9", 1_000), ("p99", 100), ("p95", 20), ("p90", 10)];
/// Largest difference of the servers' operations that is not reported, as a share of their mean.
const MAX_SHARE_SPREAD: f64 = 0.1;
/// Error kind of wrong values that were read.
const INTEGRITY: &str = "integrity";

/// The run ended early.
pub(super) fn partial(facts: &Facts<'_>) -> Option<Caveat> {
    let reason = &facts.document.status_reason;
    let statement = match facts.document.status {
        RunStatus::Complete => return None,
        RunStatus::Running => statement!("run-has-not-ended", reason = reason.as_ref()),
        RunStatus::Partial => statement!("run-ended-early", reason = reason.as_ref()),
        RunStatus::Failed => statement!("run-failed", reason = reason.as_ref()),
    };
    Some(Caveat::of_run(CaveatKind::Partial, statement))
}

/// With a fixed number of operations for several servers, some did far more than others: the combined latencies
/// are mostly the fast servers'.
pub(super) fn uneven_shares(facts: &Facts<'_>) -> Option<Caveat> {
    let limit = facts.plan.most_operations()?;
    let counts: Vec<u64> = facts
        .document
        .instances
        .iter()
        .filter_map(|instance| instance.phases.iter().find(|p| p.name == PhaseKind::Measure))
        .map(|phase| phase.succeeded.saturating_add(phase.failed))
        .collect();
    let (least, most) = (*counts.iter().min()?, *counts.iter().max()?);
    let total: u64 = counts.iter().fold(0, |sum, count| sum.saturating_add(*count));
    let mean = total as f64 / counts.len() as f64;
    // A phase that ends by time gives every server the same time.
    let is_shared_out = total >= limit.saturating_mul(counts.len() as u64);
    let is_uneven = (most - least) as f64 > MAX_SHARE_SPREAD * mean;
    let said = statement!("uneven-shares", total = total, most = most, least = least);
    (is_shared_out && is_uneven).then(|| of_measure(CaveatKind::UnevenShares, said))
}

/// Verification of read values found wrong ones.
pub(super) fn integrity(facts: &Facts<'_>) -> Vec<Caveat> {
    of_phases(facts, CaveatKind::Integrity, |phase| {
        let wrong = *phase.errors.get(INTEGRITY)?;
        (wrong > 0).then(|| statement!("wrong-values-read", operations = wrong))
    })
}

/// Own operations that never returned or changed a document. No threshold applies: commands that match nothing cost less than
/// production commands. Steps of an operation do not count: some do not concern documents.
pub(super) fn nothing_found(facts: &Facts<'_>) -> Option<Caveat> {
    let is_own = facts.plan.data.as_ref().is_some_and(|data| !data.collections.is_empty());
    let measure = facts.measure.filter(|_| is_own)?;
    let operations = facts.document.commands(measure);
    let empty: Vec<(&str, u64)> = operations
        .filter(|(_, operation)| operation.documents == 0 && operation.count > 0)
        .map(|(name, operation)| (name, operation.count))
        .collect();
    let count: u64 = empty.iter().map(|(_, count)| count).sum();
    let names: Vec<String> = empty.iter().map(|(name, _)| format!("`{name}`")).collect();
    (count > 0).then(|| {
        let said = statement!("nothing-found", operations = names.join(", "), count = count);
        super::facts::of_measure(CaveatKind::NothingFound, said)
    })
}

/// Operations failed. No threshold applies: a failed operation has no latency, and the slowest ones fail
/// first.
pub(super) fn errors(facts: &Facts<'_>) -> Vec<Caveat> {
    of_phases(facts, CaveatKind::Errors, |phase| {
        let failures: u64 = phase.errors.values().sum();
        let kinds: Vec<Statement> = phase
            .errors
            .iter()
            .map(|(kind, count)| {
                let example = phase.error_examples.get(kind);
                let name = example.and_then(|example| example.code_name.as_deref());
                statement!("errors-of-kind", kind = kind, count = *count, name = name)
            })
            .collect();
        let (succeeded, failed) = facts.finished(phase.name);
        let all = Some(succeeded + failed).filter(|all| *all > 0);
        let said = statement!(
            "operations-failed",
            // Without windows only the number by kind is known.
            failed = all.map_or(failures, |_| failed),
            all = all,
            share = all.map(|all| percent(failed as f64 / all as f64)),
            kinds = kinds
        );
        (failures > 0).then_some(said)
    })
}

/// The measurement contradicts Little's law.
pub(super) fn little_law(facts: &Facts<'_>) -> Option<Caveat> {
    let ratio = facts.measure?.little_ratio?;
    let said = statement!(
        "littles-law-differs",
        ratio = number(ratio),
        tolerance = percent(little::LITTLE_TOLERANCE_RATIO)
    );
    (!little::holds(ratio)).then(|| of_measure(CaveatKind::LittleLaw, said))
}

/// The measure phase is too short.
pub(super) fn too_few_intervals(facts: &Facts<'_>) -> Option<Caveat> {
    let count = facts.measure_windows().len();
    let said = statement!("few-windows", windows = count, least = MIN_INTERVALS);
    let are_few = facts.measure.is_some() && count < MIN_INTERVALS;
    are_few.then(|| of_measure(CaveatKind::TooFewIntervals, said))
}

/// Too few operations for the highest displayed percentiles.
pub(super) fn too_few_operations(facts: &Facts<'_>) -> Option<Caveat> {
    let short: Vec<Statement> = facts
        .measure?
        .operations
        .iter()
        .filter(|(_, operation)| operation.count > 0)
        .filter_map(|(name, operation)| {
            let sound = highest_sound_percentile(operation.count);
            (sound != Some(PERCENTILES[0].0))
                .then(|| statement!("sound-up-to", operation = name, percentile = sound))
        })
        .collect();
    (!short.is_empty()).then(|| {
        let said = statement!("few-operations", beyond = VALUES_BEYOND, sound = short);
        of_measure(CaveatKind::TooFewOperations, said)
    })
}

/// The highest percentile with enough of `count` values beyond it.
fn highest_sound_percentile(count: u64) -> Option<&'static str> {
    PERCENTILES
        .iter()
        .find(|(_, operations_per_value)| count / operations_per_value >= VALUES_BEYOND)
        .map(|(name, _)| *name)
}

/// Values above the histogram's range.
pub(super) fn clamped_values(facts: &Facts<'_>) -> Vec<Caveat> {
    of_phases(facts, CaveatKind::ClampedValues, |phase| {
        let clamped: u64 = phase.operations.values().map(|o| o.clamped).sum();
        (clamped > 0).then(|| statement!("latencies-clamped", latencies = clamped))
    })
}

/// Connections were replaced during the phase.
pub(super) fn reconnects(facts: &Facts<'_>) -> Vec<Caveat> {
    of_phases(facts, CaveatKind::Reconnects, |phase| {
        let connections = phase.reconnects;
        (connections > 0).then(|| statement!("connections-replaced", connections = connections))
    })
}
