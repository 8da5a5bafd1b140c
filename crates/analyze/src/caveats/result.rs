//! Doubts about the figures: too few, unsteady, incomplete, or at odds with each other.

use super::{Facts, about_phase, about_run};
use crate::little;
use dyno_record::model::{Caveat, CaveatKind, PhaseKind, PhaseRecord, RunStatus};
use dyno_record::quantity::Quantity;
use serde_json::Value;

/// Fewest windows of the measure phase. With fewer, one checkpoint or one stall decides the
/// result, and the tests for a steady state have nothing to work with.
const MIN_INTERVALS: usize = 10;
/// Values that must lie beyond a percentile before it is more than an anecdote: with 10 of them
/// the relative standard error of their number is 1/√10, a third.
const VALUES_BEYOND: u64 = 10;
/// The percentiles shown, from the highest on, with the operations per value beyond them.
const PERCENTILES: [(&str, u64); 5] = [
    ("p99.99", 10_000),
    ("p99.9", 1_000),
    ("p99", 100),
    ("p95", 20),
    ("p90", 10),
];
/// Difference of the servers' operations that is told, as a part of their mean.
const MAX_SHARE_SPREAD: f64 = 0.1;
/// Kind under which wrong values that were read are counted.
const INTEGRITY: &str = "integrity";

/// The run ended early.
pub(super) fn partial(facts: &Facts<'_>) -> Vec<Caveat> {
    let what = match facts.document.status {
        RunStatus::Complete => return Vec::new(),
        RunStatus::Running => "the run has not ended",
        RunStatus::Partial => "the run ended early",
        RunStatus::Failed => "the run was stopped by a fault",
    };
    let message = match &facts.document.status_reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_owned(),
    };
    vec![about_run(
        CaveatKind::Partial,
        message,
        "the figures hold for the time that was measured, which is shorter than planned",
    )]
}

/// Of a number of operations for several servers some did far more than others: the latencies of all
/// together are mostly those of the fast ones.
pub(super) fn uneven_shares(facts: &Facts<'_>) -> Vec<Caveat> {
    let limit = facts.plan("/phases/operations").and_then(Value::as_u64);
    let Some(limit) = limit else {
        return Vec::new();
    };
    let counts: Vec<u64> = facts
        .document
        .instances
        .iter()
        .filter_map(|instance| {
            instance
                .phases
                .iter()
                .find(|p| p.name == PhaseKind::Measure)
        })
        .map(|phase| phase.succeeded.saturating_add(phase.failed))
        .collect();
    let (Some(&least), Some(&most)) = (counts.iter().min(), counts.iter().max()) else {
        return Vec::new();
    };
    let total: u64 = counts
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count));
    let mean = total as f64 / counts.len() as f64;
    // A phase that its time has ended gives every server the same time.
    let is_shared_out = total >= limit.saturating_mul(counts.len() as u64);
    if !is_shared_out || (most - least) as f64 <= MAX_SHARE_SPREAD * mean {
        return Vec::new();
    }
    vec![about_phase(
        CaveatKind::UnevenShares,
        PhaseKind::Measure,
        format!(
            "the servers share the {total} operations, and the fastest did {most} of them, the slowest {least}"
        ),
        "end the phase by time, with `--duration` in place of `--operations`: then each server has the same",
    )]
}

/// Checking values that were read found wrong ones.
pub(super) fn integrity(facts: &Facts<'_>) -> Vec<Caveat> {
    let wrong = |phase: &PhaseRecord| phase.errors.get(INTEGRITY).copied().unwrap_or(0);
    let phases = facts.document.phases.iter();
    phases
        .filter(|phase| wrong(phase) > 0)
        .map(|phase| {
            about_phase(
                CaveatKind::Integrity,
                phase.name,
                format!("{} operations read values that were never written", wrong(phase)),
                "the data was loaded with another field length or without integrity values, or the server returned wrong data",
            )
        })
        .collect()
}

/// Operations failed. There is no threshold: a failed operation has no latency, and the slowest
/// ones are those that fail first.
pub(super) fn errors(facts: &Facts<'_>) -> Vec<Caveat> {
    let failures = |phase: &PhaseRecord| phase.errors.values().sum::<u64>();
    let phases = facts.document.phases.iter();
    phases
        .filter(|phase| failures(phase) > 0)
        .map(|phase| {
            let kinds: Vec<String> = phase
                .errors
                .iter()
                .map(|(kind, count)| format!("{kind}: {count}"))
                .collect();
            let (succeeded, failed) = facts.finished(phase.name);
            let share = match succeeded + failed {
                0 => String::new(),
                all => format!(
                    " of {all} ({})",
                    Quantity::ratio(failed as f64 / all as f64)
                ),
            };
            // Without windows the number by kind is the only one there is.
            let count = if succeeded + failed == 0 {
                failures(phase)
            } else {
                failed
            };
            about_phase(
                CaveatKind::Errors,
                phase.name,
                format!("{count} operations{share} failed: {}", kinds.join(", ")),
                "failed operations are in neither the rate nor the latencies",
            )
        })
        .collect()
}

/// The measurement disagrees with Little's law.
pub(super) fn little_law(facts: &Facts<'_>) -> Vec<Caveat> {
    let ratio = facts.measure.and_then(|phase| phase.little_ratio);
    let Some(ratio) = ratio.filter(|ratio| !little::holds(*ratio)) else {
        return Vec::new();
    };
    vec![about_phase(
        CaveatKind::LittleLaw,
        PhaseKind::Measure,
        format!(
            "the mean number in flight is {ratio:.3} times rate × mean service time; it should be 1 within {}",
            Quantity::ratio(little::LITTLE_TOLERANCE_RATIO)
        ),
        "the phase is too short for its longest operations, or the client measured wrongly",
    )]
}

/// The measure phase is too short.
pub(super) fn too_few_intervals(facts: &Facts<'_>) -> Vec<Caveat> {
    let count = facts.full_measure_windows().len();
    if facts.measure.is_none() || count >= MIN_INTERVALS {
        return Vec::new();
    }
    vec![about_phase(
        CaveatKind::TooFewIntervals,
        PhaseKind::Measure,
        format!(
            "the measure phase has {count} full windows; below {MIN_INTERVALS} a single stall decides the result"
        ),
        "use a longer `--duration`, or more `--operations`",
    )]
}

/// Too few operations for the highest percentiles shown.
pub(super) fn too_few_operations(facts: &Facts<'_>) -> Vec<Caveat> {
    let Some(phase) = facts.measure else {
        return Vec::new();
    };
    let short: Vec<String> = phase
        .operations
        .iter()
        .filter(|(_, operation)| operation.count > 0)
        .filter_map(|(name, operation)| {
            let sound = highest_sound_percentile(operation.count);
            (sound != Some(PERCENTILES[0].0))
                .then(|| format!("`{name}` up to {}", sound.unwrap_or("the median")))
        })
        .collect();
    if short.is_empty() {
        return Vec::new();
    }
    vec![about_phase(
        CaveatKind::TooFewOperations,
        PhaseKind::Measure,
        format!(
            "too few operations for all percentiles shown; with {VALUES_BEYOND} values beyond them are {}",
            short.join(", ")
        ),
        "use a longer `--duration`, or read the higher percentiles as single cases",
    )]
}

/// The highest percentile that enough of `count` values lie beyond.
fn highest_sound_percentile(count: u64) -> Option<&'static str> {
    PERCENTILES
        .iter()
        .find(|(_, operations_per_value)| count / operations_per_value >= VALUES_BEYOND)
        .map(|(name, _)| *name)
}

/// Values above the histogram's range.
pub(super) fn clamped_values(facts: &Facts<'_>) -> Vec<Caveat> {
    let clamped = |phase: &PhaseRecord| phase.operations.values().map(|o| o.clamped).sum::<u64>();
    let phases = facts.document.phases.iter();
    phases
        .filter(|phase| clamped(phase) > 0)
        .map(|phase| {
            about_phase(
                CaveatKind::ClampedValues,
                phase.name,
                format!(
                    "{} latencies above 60 s are recorded as 60 s; maximum and high percentiles are too low",
                    clamped(phase)
                ),
                "lower the offered rate or set a `--timeout` below 60 s",
            )
        })
        .collect()
}

/// Connections were replaced during the phase.
pub(super) fn reconnects(facts: &Facts<'_>) -> Vec<Caveat> {
    let phases = facts.document.phases.iter();
    phases
        .filter(|phase| phase.reconnects > 0)
        .map(|phase| {
            about_phase(
                CaveatKind::Reconnects,
                phase.name,
                format!(
                    "{} connections were replaced during the phase",
                    phase.reconnects
                ),
                "see the errors by kind, and the server's log for why it closed them",
            )
        })
        .collect()
}
