//! Limits of the bench and their causes.

use super::disks;
use super::saturation;
use super::view::View;
use crate::experiment::queueing::is_missed;
use crate::experiment::sweep::kept_rate_per_s;
use crate::values::{percent, rate, rate_of, us};
use dyno_record::experiment::{Finding, Level};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// The highest rate, its level, and whether the next best can be distinguished.
pub(super) fn highest_rate(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let said = statement!("highest-rate", rate = rate_of(&best.rate_per_s), at = view.at(best));
    let p99 = best.response_us.get("p99").map(|p99| us(p99.value));
    let mut evidence = vec![statement!(
        "response-times-at-highest-rate",
        at = view.at(best),
        mean = us(best.response_mean_us.value),
        p99 = p99
    )];
    evidence.extend(second_best(view, best));
    Some(Finding::found(said, evidence))
}

fn second_best(view: &View<'_>, best: &Level) -> Option<Statement> {
    let others = view.levels().iter().filter(|level| !std::ptr::eq(*level, best));
    let second = others.max_by(|a, b| a.rate_per_s.value.total_cmp(&b.rate_per_s.value))?;
    let ends = second.rate_per_s.high.zip(best.rate_per_s.low);
    Some(statement!(
        "second-best",
        rate = rate(second.rate_per_s.value),
        at = view.at(second),
        overlaps = ends.map(|(high, low)| high >= low)
    ))
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

/// Offered rates that the bench did not achieve.
pub(super) fn rates_not_achieved(view: &View<'_>) -> Option<Finding> {
    let share = |level: &Level| Some(level.rate_per_s.value / level.offered_rate_per_s?);
    let missed = view.levels_where(is_missed);
    let first = missed.first()?;
    let said = statement!(
        "rates-not-achieved",
        at = view.at(first),
        achieved = rate(first.rate_per_s.value),
        kept = kept_rate_per_s(view.answer).map(rate)
    );
    let evidence = missed.iter().map(|level| {
        statement!(
            "achieved-of-offered",
            at = view.at(level),
            rate = rate_of(&level.rate_per_s),
            share = percent(share(level).unwrap_or(0.0))
        )
    });
    Some(Finding::found(said, evidence.collect()))
}
