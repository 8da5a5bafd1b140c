//! What could be changed, each with the measurement that says so.

use super::opportunity;
use super::view::{View, busy_of, demand_of, doubts, subject, units};
use crate::experiment::figures::resource_name;
use crate::experiment::sweep::{Level, SHARED_CPUS};
use crate::experiment::words::{count, interval, percent, rate, time, times};
use crate::experiment::{Experiment, Finding};
use crate::laws::demand::Demand;
use dyno_record::model::{CaveatKind, ResourceKind};

/// A resource that is busy for this share of the time is worth widening.
const BUSY_RATIO: f64 = 0.7;

/// Share of the CPU time of an operation from which on the client is worth moving.
const CLIENT_RATIO: f64 = 0.05;

/// A response time that grows by this factor for nothing is worth saving.
const GROWTH_RATIO: f64 = 1.5;

/// What the levels of a sweep suggest, those that promise most first.
pub(super) fn all(view: &View<'_>) -> Vec<Finding> {
    let rules = [
        widen_the_bottleneck(view),
        two_machines(view),
        fewer_clients(view),
        disk_is_idle(view),
    ];
    rules.into_iter().flatten().collect()
}

/// What the doubts of the runs suggest, whatever was asked.
pub(super) fn of_doubts(experiment: &Experiment) -> Vec<Finding> {
    let mut found = conditions(experiment);
    found.extend(machine_settings(experiment));
    found
}

/// More of what is saturated.
fn widen_the_bottleneck(view: &View<'_>) -> Option<Finding> {
    let demand = view.answer.bottleneck.as_ref()?;
    let best = view.best();
    let bound = demand.saturation_rate_per_s().value;
    let busy = best.rate_per_s.value / bound;
    if busy < BUSY_RATIO {
        return None;
    }
    let is_disk = demand.name == resource_name(ResourceKind::Disk);
    let what = match is_disk {
        true => "a faster disk, or a cache that needs it less,",
        false => "more or faster CPUs, or operations that need less of them,",
    };
    let each = bound / f64::from(demand.servers);
    let text = format!(
        "{what} would raise the rate: each {} adds up to {}",
        if is_disk { "device" } else { "CPU" },
        rate(each)
    );
    let mut evidence = vec![format!(
        "{} is used {} at {}: {} per operation on {}",
        subject(&demand.name),
        percent(busy),
        rate(best.rate_per_s.value),
        time(demand.demand_s),
        units(&demand.name, demand.servers)
    )];
    let next = view.answer.system.as_ref().and_then(|system| {
        let others = system.demands.iter().filter(|d| d.name != demand.name);
        others
            .filter(|other| other.demand_s > 0.0)
            .min_by(|a, b| bound_of(a).total_cmp(&bound_of(b)))
    });
    evidence.extend(next.map(|next| {
        format!(
            "beyond {} {} would be the next limit",
            rate(bound_of(next)),
            subject(&next.name)
        )
    }));
    Some(opportunity(text, evidence))
}

fn bound_of(demand: &Demand) -> f64 {
    demand.saturation_rate_per_s().value
}

/// Client and server take CPU time from each other.
fn two_machines(view: &View<'_>) -> Option<Finding> {
    let demand = view.answer.bottleneck.as_ref();
    let shared = demand.filter(|demand| demand.name == SHARED_CPUS)?;
    let best = view.best();
    let server = demand_of(best, ResourceKind::ServerCpu)?;
    let client = demand_of(best, ResourceKind::ClientCpu)?;
    let share = client.demand_s / (server.demand_s + client.demand_s);
    if share < CLIENT_RATIO {
        return None;
    }
    Some(opportunity(
        format!(
            "on a machine of its own the server could reach {} instead of {}: the client takes {} of the CPU time of an operation",
            rate(bound_of(server)),
            rate(bound_of(shared)),
            percent(share)
        ),
        vec![
            format!(
                "{} an operation needs {} of the server's CPU and {} of the client's, on the same {}",
                view.at(best),
                time(server.demand_s),
                time(client.demand_s),
                units(&shared.name, shared.servers)
            ),
            view.busy(best),
        ],
    ))
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
    let is_bottleneck = view
        .answer
        .bottleneck
        .as_ref()
        .is_some_and(|demand| demand.name == resource_name(ResourceKind::Disk));
    if most > CLIENT_RATIO || is_bottleneck {
        return None;
    }
    Some(opportunity(
        "a faster disk would not raise this rate".to_owned(),
        vec![format!(
            "the disk was busy {} of the time at most, {}",
            percent(most),
            view.at(level)
        )],
    ))
}

/// What the figures hold for, and how to measure the other case.
fn conditions(experiment: &Experiment) -> Vec<Finding> {
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
            doubts(experiment, *kind)
                .into_iter()
                .map(|(message, _)| opportunity((*text).to_owned(), vec![message.to_owned()]))
        })
        .collect()
}

/// Settings that were found to differ from what is advised.
fn machine_settings(experiment: &Experiment) -> Vec<Finding> {
    [CaveatKind::MachineSetting, CaveatKind::CpuFrequency]
        .into_iter()
        .flat_map(|kind| doubts(experiment, kind))
        .map(|(message, hint)| {
            let advice = hint.map(|hint| format!("advised: {hint}"));
            let evidence = std::iter::once(message.to_owned()).chain(advice);
            let text = "a setting of the machine disturbs measurements and can be changed";
            opportunity(text.to_owned(), evidence.collect())
        })
        .collect()
}
