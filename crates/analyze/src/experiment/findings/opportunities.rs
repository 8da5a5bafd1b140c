//! Suggested changes, each with the measurement that supports it.

use super::saturation;
use super::view::{View, statements_of};
use crate::experiment::queueing::is_missed;
use dyno_record::experiment::Finding;
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::statement;

/// Suggestions from the levels of a sweep, the most promising first.
pub(super) fn all(view: &View<'_>) -> Vec<Finding> {
    // At an achieved offered rate the schedule is the limit, and nothing would raise the rate.
    let at_best = view
        .at_best()
        .filter(|_| view.best().offered_rate_per_s.is_none() || is_missed(view.best()));
    let rules = [
        at_best.as_ref().and_then(saturation::widen),
        at_best.as_ref().and_then(saturation::two_machines),
    ];
    rules.into_iter().flatten().collect()
}

/// Suggestions from the runs' caveats, independent of the question.
pub(super) fn of_caveats(caveats: &[Caveat]) -> Vec<Finding> {
    let mut found = conditions(caveats);
    found.extend(machine_settings(caveats));
    found
}

/// Conditions of the figures, and how to measure the other case.
fn conditions(caveats: &[Caveat]) -> Vec<Finding> {
    let suggested = [
        (CaveatKind::Durability, "compare-with-durable-writes"),
        (CaveatKind::FitsInCache, "try-larger-data"),
    ];
    suggested
        .iter()
        .flat_map(|(kind, code)| {
            statements_of(caveats, *kind)
                .into_iter()
                .map(|caveat| Finding::opportunity(statement!(*code), vec![caveat]))
        })
        .collect()
}

/// Settings that differ from the recommended ones.
fn machine_settings(caveats: &[Caveat]) -> Vec<Finding> {
    [CaveatKind::MachineSetting, CaveatKind::CpuFrequency]
        .into_iter()
        .flat_map(|kind| statements_of(caveats, kind))
        .map(|caveat| {
            let evidence = vec![statement!("caveat-with-advice", caveat = caveat)];
            Finding::opportunity(statement!("machine-setting-disturbs"), evidence)
        })
        .collect()
}
