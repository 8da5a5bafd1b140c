//! The rules of a sweep, stage by stage.

use super::view::View;
use super::{advice, laws, limits, opportunities, relative, scaling, trust};
use dyno_record::experiment::Finding;

/// The rules of a sweep in reporting order.
pub(super) const STAGES: [fn(&View<'_>) -> Vec<Finding>; 4] =
    [alarms, facts, caveats, opportunities::all];

/// Findings that make a sweep invalid.
fn alarms(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(trust::generator_bound(view));
    found.extend(trust::failed_operations(view));
    found.extend(laws::broken(view));
    found
}

/// Results of a sweep.
fn facts(view: &View<'_>) -> Vec<Finding> {
    let rules = [
        advice::answer(view),
        limits::bottleneck(view),
        limits::disk_without_bound(view),
        limits::disks_used_unevenly(view),
        laws::demand_varies(view),
        scaling::queue(view),
        scaling::unexplained(view),
    ];
    // With a base, the question is how the levels compare with each other.
    relative::all(view).into_iter().chain(rules.into_iter().flatten()).collect()
}

/// Limits of the results' validity.
fn caveats(view: &View<'_>) -> Vec<Finding> {
    let rules = [
        trust::dropped_arrivals(view),
        trust::other_processes(view),
        trust::unsteady(view),
        trust::wide_intervals(view),
        trust::not_watched(view),
    ];
    rules.into_iter().flatten().collect()
}
