//! Limits of the bench and their causes.

use super::disks;
use super::saturation;
use super::view::View;
use crate::values::{rate_of, us};
use dyno_record::experiment::{Finding, Level};
use dyno_record::statement;

/// The highest rate, its level, and the levels that cannot be distinguished from it.
pub(super) fn highest_rate(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let second = second_best(view, best);
    let rivals =
        view.levels_where(|level| !std::ptr::eq(level, best) && !is_certainly_slower(level, best));
    let said = statement!(
        "highest-rate",
        rate = rate_of(&best.rate_per_s),
        at = view.at(best),
        rival = (!rivals.is_empty()).then(|| view.at_all(&rivals))
    );
    let p99 = best.response_us.get("p99").map(|p99| us(p99.value));
    let mut evidence = vec![statement!(
        "response-times-at-highest-rate",
        at = view.at(best),
        mean = us(best.response_mean_us.value),
        p99 = p99
    )];
    evidence.extend(second.map(|second| {
        let rate = rate_of(&second.rate_per_s);
        statement!("second-best", rate = rate, at = view.at(second))
    }));
    Some(Finding::found(said, evidence))
}

fn second_best<'a>(view: &View<'a>, best: &Level) -> Option<&'a Level> {
    let others = view.levels().iter().filter(|level| !std::ptr::eq(*level, best));
    others.max_by(|a, b| a.rate_per_s.value.total_cmp(&b.rate_per_s.value))
}

/// Whether both intervals are known and do not overlap.
pub(super) fn is_certainly_slower(level: &Level, best: &Level) -> bool {
    let ends = level.rate_per_s.high.zip(best.rate_per_s.low);
    ends.is_some_and(|(high, low)| high < low)
}

/// The resource that saturates first, and how close the bench came to it.
pub(super) fn bottleneck(view: &View<'_>) -> Option<Finding> {
    view.at_best().as_ref().map(saturation::bottleneck)
}

/// A disk at the highest rate that may limit before that resource does.
pub(super) fn disk_without_bound(view: &View<'_>) -> Option<Finding> {
    let limits = view.answer.disk.as_ref();
    let limits = limits.filter(|_| view.answer.system.is_some());
    disks::without_bound(limits, &view.at(view.best()))
}

/// One of several disks that does more than the others at the highest rate.
pub(super) fn disks_used_unevenly(view: &View<'_>) -> Option<Finding> {
    disks::uneven(&view.best().disks, &view.at(view.best()))
}
