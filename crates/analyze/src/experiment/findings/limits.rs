//! How much the bench can take, and what stops it.

use super::view::{View, busy_of};
use super::{finding, saturation};
use crate::experiment::sweep::knows_server;
use crate::experiment::sweep::{is_missed, kept_rate_per_s};
use crate::experiment::words::{exact, interval, interval_or_none, percent, rate, time, times};
use dyno_record::experiment::{Finding, Level};
use dyno_record::model::ResourceKind;

/// Up to this many times the response time at the lowest rate, the rise is not worth a word.
const BEND_RATIO: f64 = 2.0;

/// The highest rate, where, and whether the next best can be told from it.
pub(super) fn highest_rate(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let text = format!(
        "the highest rate is {}{}, measured {}",
        rate(best.rate_per_s.value),
        interval_or_none(&best.rate_per_s, rate),
        view.at(best)
    );
    let p99 = best.response_us.get("p99").map_or(String::new(), |p99| {
        format!(", and 99 % of them at most {}", time(p99.value * 1e-6))
    });
    let mut evidence = vec![format!(
        "{} operations took {} on average{p99}",
        view.at(best),
        time(best.response_mean_us.value * 1e-6)
    )];
    evidence.extend(second_best(view, best));
    Some(finding(text, evidence))
}

fn second_best(view: &View<'_>, best: &Level) -> Option<String> {
    let others = view
        .levels()
        .iter()
        .filter(|level| !std::ptr::eq(*level, best));
    let second = others.max_by(|a, b| a.rate_per_s.value.total_cmp(&b.rate_per_s.value))?;
    let overlaps = match (second.rate_per_s.high, best.rate_per_s.low) {
        (Some(high), Some(low)) => high >= low,
        _ => true,
    };
    let note = match overlaps {
        true => "their intervals overlap, so that either may be the faster one",
        false => "their intervals do not overlap",
    };
    Some(format!(
        "the next best is {} {}: {note}",
        rate(second.rate_per_s.value),
        view.at(second)
    ))
}

/// The resource that saturates first, and how near the bench came to that.
pub(super) fn bottleneck(view: &View<'_>) -> Option<Finding> {
    view.at_best().as_ref().map(saturation::bottleneck)
}

/// Nothing can be said about the limits of a server that was not watched.
pub(super) fn server_not_watched(view: &View<'_>) -> Option<Finding> {
    let best = view.best();
    let names = best.demands.iter().map(|demand| demand.name.as_str());
    (!knows_server(&best.demands)).then(|| saturation::server_not_watched(names))
}

/// Offered rates that the bench did not keep up with.
pub(super) fn rates_not_achieved(view: &View<'_>) -> Option<Finding> {
    let share = |level: &Level| Some(level.rate_per_s.value / level.offered_rate_per_s?);
    let missed = view.levels_where(is_missed);
    let first = missed.first()?;
    let kept = kept_rate_per_s(view.answer);
    let kept = match kept {
        Some(kept) => format!(
            "the highest offered rate that it kept up with is {}",
            rate(kept)
        ),
        None => "it kept up with none of the offered rates".to_owned(),
    };
    let text = format!(
        "{} the bench achieved {}; {kept}",
        view.at(first),
        rate(first.rate_per_s.value)
    );
    let evidence = missed.iter().map(|level| {
        format!(
            "{} {}{} were achieved, {} of it",
            view.at(level),
            rate(level.rate_per_s.value),
            interval(&level.rate_per_s, rate),
            percent(share(level).unwrap_or(0.0))
        )
    });
    Some(finding(text, evidence.collect()))
}

/// Up to which offered rate the response time stays near that of the lowest one.
pub(super) fn response_over_rates(view: &View<'_>) -> Option<Finding> {
    let levels = view.levels();
    if !view.is_over_rates() || levels.len() < 2 {
        return None;
    }
    let mean_s = |level: &Level| level.response_mean_us.value * 1e-6;
    let base_s = mean_s(&levels[0]);
    let growth = |level: &Level| mean_s(level) / base_s;
    let bend = levels.iter().position(|level| growth(level) > BEND_RATIO);
    let text = match bend {
        Some(bend) => format!(
            "the mean response time stays below twice that {} up to {} offered; {} it is {} times as long",
            view.at(&levels[0]),
            offered(&levels[bend - 1]),
            view.at(&levels[bend]),
            times(growth(&levels[bend]))
        ),
        None => {
            let last = levels.last()?;
            format!(
                "the mean response time stays below twice that {} up to the highest rate, {} offered",
                view.at(&levels[0]),
                offered(last)
            )
        }
    };
    let shown = match bend {
        Some(bend) => [&levels[0], &levels[bend - 1], &levels[bend]].to_vec(),
        None => vec![&levels[0], levels.last()?],
    };
    let mut evidence: Vec<String> = shown
        .into_iter()
        .map(|level| {
            format!(
                "mean response time {}: {}{}{}",
                view.at(level),
                time(mean_s(level)),
                interval(&level.response_mean_us, |us| time(us * 1e-6)),
                server_cpu(level)
            )
        })
        .collect();
    evidence.dedup();
    Some(finding(text, evidence))
}

fn offered(level: &Level) -> String {
    format!("{}/s", exact(level.offered_rate_per_s.unwrap_or(0.0)))
}

fn server_cpu(level: &Level) -> String {
    let busy = busy_of(level, ResourceKind::ServerCpu);
    busy.map_or(String::new(), |busy| {
        format!(", with the server's CPU busy {}", percent(busy))
    })
}
