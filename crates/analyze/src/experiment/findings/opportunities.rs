//! What could be changed, each with the measurement that says so.

use super::view::{View, busy_of, doubts, servers_of};
use super::{opportunity, saturation};
use crate::experiment::figures::resource_name;
use crate::experiment::sweep::is_missed;
use crate::experiment::words::{count, interval, percent, rate, time, times};
use dyno_record::experiment::{Demand, Finding, Level};
use dyno_record::model::{Caveat, CaveatKind, ResourceKind};

/// Up to this share of the time a disk does not matter.
const IDLE_RATIO: f64 = 0.05;

/// A response time that grows by this factor for nothing is worth saving.
const GROWTH_RATIO: f64 = 1.5;

/// What the levels of a sweep suggest, those that promise most first.
pub(super) fn all(view: &View<'_>) -> Vec<Finding> {
    // At an offered rate that was achieved the schedule is the limit, and nothing would raise the rate.
    let at_best = view
        .at_best()
        .filter(|_| view.best().offered_rate_per_s.is_none() || is_missed(view.best()));
    let rules = [
        at_best.as_ref().and_then(saturation::widen),
        at_best.as_ref().and_then(saturation::two_machines),
        fewer_clients(view),
        disk_is_idle(view),
    ];
    rules.into_iter().flatten().collect()
}

/// What the doubts of the runs suggest, whatever was asked.
pub(super) fn of_doubts(caveats: &[Caveat]) -> Vec<Finding> {
    let mut found = conditions(caveats);
    found.extend(machine_settings(caveats));
    found
}

/// Clients beyond the best level only wait.
fn fewer_clients(view: &View<'_>) -> Option<Finding> {
    if !view.is_over_clients() {
        return None;
    }
    let best = view.best();
    let most = view.levels().last()?;
    let growth = most.response_mean_us.value / best.response_mean_us.value;
    let gains = most.rate_per_s.value > best.rate_per_s.high.unwrap_or(best.rate_per_s.value);
    if most.clients <= best.clients || growth < GROWTH_RATIO || gains {
        return None;
    }
    let mean = |level: &Level| {
        format!(
            "{}: {} at a mean response time of {}{}",
            view.at(level),
            rate(level.rate_per_s.value),
            time(level.response_mean_us.value * 1e-6),
            interval(&level.response_mean_us, |us| time(us * 1e-6))
        )
    };
    Some(opportunity(
        format!(
            "{} enough: more of them only wait, {} times as long {}",
            count(best.clients as usize, "client is", "clients are"),
            times(growth),
            view.at(most)
        ),
        vec![mean(best), mean(most)],
    ))
}

/// Money for a faster disk would buy nothing here.
fn disk_is_idle(view: &View<'_>) -> Option<Finding> {
    let busy = view
        .levels()
        .iter()
        .filter_map(|level| Some((level, busy_of(level, ResourceKind::Disk)?)));
    let (level, most) = busy.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    idle_disk(
        servers_of(level, ResourceKind::Disk).unwrap_or(1),
        most,
        view.answer.bottleneck.as_ref(),
        &format!("at most, {}", view.at(level)),
    )
}

/// The same of any disk with the share of the time that it was busy. Of several the share is a mean, behind which one can be
/// full: of them nothing is said.
pub(super) fn idle_disk(
    devices: u32,
    busy_ratio: f64,
    bottleneck: Option<&Demand>,
    when: &str,
) -> Option<Finding> {
    let disk = resource_name(ResourceKind::Disk);
    let is_bottleneck = bottleneck.is_some_and(|demand| demand.name == disk);
    (devices == 1 && busy_ratio <= IDLE_RATIO && !is_bottleneck).then(|| {
        opportunity(
            "a faster disk would not raise this rate".to_owned(),
            vec![format!(
                "the disk was busy {} of the time {when}",
                percent(busy_ratio)
            )],
        )
    })
}

/// What the figures hold for, and how to measure the other case.
fn conditions(caveats: &[Caveat]) -> Vec<Finding> {
    let texts = [
        (
            CaveatKind::Durability,
            "writes that wait for the disk are another measurement: compare with durable ones before relying on these rates",
        ),
        (
            CaveatKind::FitsInCache,
            "a larger cache would bring nothing, and a larger data set is another measurement",
        ),
    ];
    texts
        .iter()
        .flat_map(|(kind, text)| {
            doubts(caveats, *kind)
                .into_iter()
                .map(|(message, _)| opportunity((*text).to_owned(), vec![message.to_owned()]))
        })
        .collect()
}

/// Settings that were found to differ from what is advised.
fn machine_settings(caveats: &[Caveat]) -> Vec<Finding> {
    [CaveatKind::MachineSetting, CaveatKind::CpuFrequency]
        .into_iter()
        .flat_map(|kind| doubts(caveats, kind))
        .map(|(message, hint)| {
            let advice = hint.map(|hint| format!("advised: {hint}"));
            let evidence = std::iter::once(message.to_owned()).chain(advice);
            let text = "a setting of the machine disturbs measurements and can be changed";
            opportunity(text.to_owned(), evidence.collect())
        })
        .collect()
}
