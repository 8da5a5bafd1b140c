//! The rules of a sweep, stage by stage.

use super::view::View;
use super::{laws, limits, opportunities, relative, scaling, trust};
use dyno_record::experiment::Finding;

/// The rules of a sweep in the order in which they are told.
pub(super) const STAGES: [fn(&View<'_>) -> Vec<Finding>; 4] =
    [alarms, facts, caveats, opportunities::all];

/// What makes a sweep worthless.
fn alarms(view: &View<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(trust::generator_bound(view));
    found.extend(trust::failed_operations(view));
    found.extend(laws::broken(view));
    found
}

/// What a sweep has found.
fn facts(view: &View<'_>) -> Vec<Finding> {
    let rules = [
        limits::highest_rate(view),
        limits::bottleneck(view),
        limits::disk_without_bound(view),
        limits::disks_used_unevenly(view),
        laws::demand_varies(view),
        limits::rates_not_achieved(view),
        limits::response_over_rates(view),
        scaling::queue(view),
        scaling::waiting(view),
        scaling::unexplained(view),
        scaling::knee(view),
        scaling::decline(view),
        scaling::scalability_law(view),
        laws::hold(view),
    ];
    // What the levels are relative to each other is what was asked, where there is a base.
    let relative = relative::all(view).into_iter();
    relative.chain(rules.into_iter().flatten()).collect()
}

/// What limits its reach.
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
