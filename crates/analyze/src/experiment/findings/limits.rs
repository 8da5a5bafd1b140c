//! Limits of the bench and their causes.

use super::disks;
use super::saturation;
use super::view::{View, busy_of};
use crate::experiment::queueing::is_missed;
use crate::experiment::sweep::kept_rate_per_s;
use crate::values::{percent, rate, rate_of, times, us, us_of};
use dyno_record::experiment::{Finding, Level};
use dyno_record::model::ResourceKind;
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Multiple of the response time at the lowest rate up to which a rise is not reported.
const BEND_RATIO: f64 = 2.0;

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

/// Highest offered rate with a response time near the response time at the lowest rate.
pub(super) fn response_over_rates(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels();
    if !view.is_over_rates() || levels.len() < 2 {
        return None;
    }
    let mean_us = |level: &Level| level.response_mean_us.value;
    let base_us = mean_us(&levels[0]);
    let growth = |level: &Level| mean_us(level) / base_us;
    let offered = |level: &Level| rate(level.offered_rate_per_s.unwrap_or(0.0));
    let bend = levels.iter().position(|level| growth(level) > BEND_RATIO);
    let said = match bend {
        Some(bend) => statement!(
            "response-time-bends",
            base = view.at(&levels[0]),
            last = offered(&levels[bend - 1]),
            at = view.at(&levels[bend]),
            growth = times(growth(&levels[bend]))
        ),
        None => statement!(
            "response-time-stays-low",
            base = view.at(&levels[0]),
            last = offered(levels.last()?)
        ),
    };
    let shown = match bend {
        Some(bend) => [&levels[0], &levels[bend - 1], &levels[bend]].to_vec(),
        None => vec![&levels[0], levels.last()?],
    };
    let mut evidence: Vec<Statement> = shown
        .into_iter()
        .map(|level| {
            statement!(
                "mean-response-time-at",
                at = view.at(level),
                mean = us_of(&level.response_mean_us),
                server_busy = busy_of(level, ResourceKind::ServerCpu)
                    .or_else(|| busy_of(level, ResourceKind::ServerHostCpu))
                    .map(percent)
            )
        })
        .collect();
    evidence.dedup();
    Some(Finding::found(said, evidence))
}
