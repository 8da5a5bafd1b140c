//! Suggested changes, each with the measurement that supports it.

use super::disks::IDLE_RATIO;
use super::saturation;
use super::view::{View, busy_of, servers_of, statements_of};
use crate::experiment::figures::resource_name;
use crate::experiment::queueing::is_missed;
use crate::values::{percent, rate, times, us_of};
use dyno_record::experiment::{Demand, Finding, Level};
use dyno_record::model::{Caveat, CaveatKind, ResourceKind};
use dyno_record::statement;
use dyno_record::statement::Statement;

/// Factor of useless growth in response time from which it is worth saving.
const GROWTH_RATIO: f64 = 1.5;

/// Suggestions from the levels of a sweep, the most promising first.
pub(super) fn all(view: &View<'_>) -> Vec<Finding> {
    // At an achieved offered rate the schedule is the limit, and nothing would raise the rate.
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

/// Suggestions from the runs' caveats, independent of the question.
pub(super) fn of_caveats(caveats: &[Caveat]) -> Vec<Finding> {
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
    if most.clients <= best.clients || growth < GROWTH_RATIO {
        return None;
    }
    let mean = |level: &Level| {
        statement!(
            "rate-at-response-time",
            at = view.at(level),
            rate = rate(level.rate_per_s.value),
            mean = us_of(&level.response_mean_us)
        )
    };
    Some(Finding::opportunity(
        statement!(
            "fewer-clients-are-enough",
            clients = best.clients,
            growth = times(growth),
            at = view.at(most)
        ),
        vec![mean(best), mean(most)],
    ))
}

/// A faster disk would not help.
fn disk_is_idle(view: &View<'_>) -> Option<Finding> {
    let busy =
        view.levels().iter().filter_map(|level| Some((level, busy_of(level, ResourceKind::Disk)?)));
    let (level, most) = busy.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    idle_disk(
        servers_of(level, ResourceKind::Disk).unwrap_or(1),
        most,
        view.answer.bottleneck.as_ref(),
        statement!("at-most", at = view.at(level)),
    )
}

/// An idle disk with the share of time that it was busy; of several devices, the busiest. Records without
/// separate devices have a mean, which can hide a full device, so they give no statement.
pub(super) fn idle_disk(
    devices: u32,
    busy_ratio: f64,
    bottleneck: Option<&Demand>,
    when: Statement,
) -> Option<Finding> {
    let disk = resource_name(ResourceKind::Disk);
    let is_bottleneck = bottleneck.is_some_and(|demand| demand.name == disk);
    (devices == 1 && busy_ratio <= IDLE_RATIO && !is_bottleneck).then(|| {
        Finding::opportunity(
            statement!("disk-is-idle"),
            vec![statement!("disk-busy", share = percent(busy_ratio), when = when)],
        )
    })
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
