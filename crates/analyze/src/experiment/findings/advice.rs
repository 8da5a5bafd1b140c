//! The sentence that answers a sweep: how many clients to use, or which offered rates were achieved. Its evidence
//! is what the models say about it: N*, the knee and the peak.

use super::limits;
use super::scaling;
use super::view::View;
use crate::experiment::queueing::is_missed;
use crate::experiment::sweep::kept_rate_per_s;
use crate::values::{exact, number, percent, rate, rate_of, us};
use dyno_record::experiment::{Finding, Level};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// A number of clients is enough if its rate is at least this share of the highest.
pub(in crate::experiment) const ENOUGH_RATIO: f64 = 0.95;
/// From this share of the levels on, a range is nearly the whole sweep.
const NEARLY_ALL_RATIO: f64 = 0.8;
/// Fewest repeats to advise if the levels cannot be distinguished.
const LEAST_REPEATS: usize = 3;

/// The answer, by what was swept.
pub(super) fn answer(view: &View<'_>) -> Option<Finding> {
    match view.levels() {
        [_, _, ..] if view.is_over_clients() => clients(view),
        [_, _, ..] if view.is_over_rates() => rates(view),
        _ => limits::highest_rate(view),
    }
}

/// The numbers of clients to use: from the smallest to the largest one that may be enough by the intervals.
fn clients(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let may_be_enough = |level: &&Level| !is_certainly_less(level, best);
    let enough: Vec<&Level> = view.levels().iter().filter(may_be_enough).collect();
    let (fewest, most) = (*enough.first()?, *enough.last()?);
    let said = if is_undecided(view, &enough) {
        indistinct(&enough, best)
    } else {
        let is_range = fewest.clients < most.clients;
        let is_highest = std::ptr::eq(fewest, best);
        // The rate rose noticeably with the last step.
        let is_last = view.levels().last().is_some_and(|last| std::ptr::eq(last, best));
        statement!(
            "recommended-clients",
            clients = exact(f64::from(fewest.clients)),
            most = is_range.then(|| exact(f64::from(most.clients))),
            rate = rate_of(&fewest.rate_per_s),
            p99 = p99(fewest),
            highest = (!is_highest).then(|| rate_of(&best.rate_per_s)),
            at = (!is_highest).then(|| view.at(best)),
            rises = (!is_range && is_last).then_some(true),
            waits_less = waits_less(fewest, most).then_some(true)
        )
    };
    let mut evidence = vec![statement!(
        "enough-clients",
        share = percent(ENOUGH_RATIO),
        rate = rate_of(&best.rate_per_s),
        at = view.at(best)
    )];
    evidence.extend(scaling::waiting(view).into_iter().flatten());
    let models = [scaling::knee(view), peak(view), scaling::decline(view)];
    evidence.extend(models.into_iter().flatten());
    Some(Finding::found(said, evidence))
}

/// Whether the intervals exclude that a level is enough.
fn is_certainly_less(level: &Level, best: &Level) -> bool {
    let ends = level.rate_per_s.high.zip(best.rate_per_s.low);
    ends.is_some_and(|(high, low)| high < ENOUGH_RATIO * low)
}

/// Whether a level is enough at both ends of the intervals.
fn is_certainly_enough(level: &Level, best: &Level) -> bool {
    let ends = level.rate_per_s.low.zip(best.rate_per_s.high);
    ends.is_some_and(|(low, high)| low >= ENOUGH_RATIO * high)
}

/// Whether the levels that may be enough are too uncertain for a recommendation: one has no interval, or nearly
/// the whole sweep may be enough and some of it may not.
fn is_undecided(view: &View<'_>, enough: &[&Level]) -> bool {
    let best = view.best();
    let is_certain =
        |level: &&Level| std::ptr::eq(*level, best) || is_certainly_enough(level, best);
    let share = enough.len() as f64 / view.levels().len() as f64;
    enough.iter().any(|level| !has_interval(level))
        || share >= NEARLY_ALL_RATIO && !enough.iter().all(is_certain)
}

/// Numbers of clients whose rates do not show which one is better.
fn indistinct(enough: &[&Level], best: &Level) -> Statement {
    let (fewest, most) = (enough[0], enough[enough.len() - 1]);
    let lowest = enough.iter().map(|level| level.rate_per_s.value).fold(f64::INFINITY, f64::min);
    let lacks_interval = enough.iter().any(|level| !has_interval(level));
    let is_overlapping = enough.iter().all(|level| !limits::is_certainly_slower(level, best));
    // Without the intervals.
    let least_per_s = ENOUGH_RATIO * best.rate_per_s.value;
    let by_values = enough.iter().find(|level| level.rate_per_s.value >= least_per_s);
    statement!(
        "indistinct-clients",
        enough = by_values.unwrap_or(&best).clients,
        clients = exact(f64::from(fewest.clients)),
        most = exact(f64::from(most.clients)),
        lowest = rate(lowest),
        highest = rate(best.rate_per_s.value),
        lacks_interval = lacks_interval.then_some(true),
        is_overlapping = (is_overlapping && !lacks_interval).then_some(true),
        repeat = (2 * fewest.runs.len()).max(LEAST_REPEATS),
        waits_less = waits_less(fewest, most).then_some(true)
    )
}

fn has_interval(level: &Level) -> bool {
    level.rate_per_s.low.is_some() && level.rate_per_s.high.is_some()
}

/// Whether operations certainly take less time with the fewest clients than with the most.
fn waits_less(fewest: &Level, most: &Level) -> bool {
    let ends = fewest.response_mean_us.high.zip(most.response_mean_us.low);
    ends.is_some_and(|(few, many)| few < many)
}

/// The highest point of the fitted scalability law.
fn peak(view: &View<'_>) -> Option<Statement> {
    let peak = view.answer.usl.as_ref()?.peak?;
    Some(statement!(
        "peak-of-law",
        clients = number(peak.clients.value),
        low = number(peak.clients.low),
        high = peak.clients.high.map(number),
        is_extrapolated = peak.extrapolated.then_some(true)
    ))
}

/// The offered rates that the bench achieved.
fn rates(view: &View<'_>) -> Option<Finding> {
    let missed = view.levels_where(is_missed);
    let kept = kept_rate_per_s(view.answer);
    let level =
        view.levels().iter().find(|level| kept.is_some() && level.offered_rate_per_s == kept);
    let mut evidence: Vec<Statement> =
        level.into_iter().chain(missed.iter().copied()).map(|one| achieved(view, one)).collect();
    let models = [scaling::knee(view), scaling::decline(view)];
    evidence.extend(models.into_iter().flatten());
    let Some(kept) = kept else {
        let highest = rate_of(&view.best().rate_per_s);
        let said = statement!("no-offered-rate-achieved", rate = highest);
        return Some(Finding::found(said, evidence));
    };
    let next = missed.iter().find(|level| level.offered_rate_per_s > Some(kept));
    let said = statement!(
        "achieved-offered-rates",
        kept = rate(kept),
        p99 = level.and_then(p99),
        next = next.map(|level| view.at(level)),
        achieved = next.map(|level| rate_of(&level.rate_per_s))
    );
    Some(Finding::found(said, evidence))
}

fn achieved(view: &View<'_>, level: &Level) -> Statement {
    let offered = level.offered_rate_per_s.unwrap_or(f64::NAN);
    statement!(
        "achieved-of-offered",
        at = view.at(level),
        rate = rate_of(&level.rate_per_s),
        share = percent(level.rate_per_s.value / offered)
    )
}

fn p99(level: &Level) -> Option<dyno_record::statement::Number> {
    level.response_us.get("p99").map(|p99| us(p99.value))
}
