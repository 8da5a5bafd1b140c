//! Suggested changes, each with the measurement that supports it.

use super::saturation;
use super::view::View;
use crate::experiment::queueing::is_missed;
use dyno_record::experiment::Finding;

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
