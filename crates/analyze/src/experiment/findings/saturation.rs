//! The resource that saturates first, as it is told of the best level of a sweep and of a single run.

use super::view::{spread, subject, units};
use super::{finding, opportunity, warning};
use crate::experiment::figures::resource_name;
use crate::experiment::sweep::SHARED_CPUS;
use crate::experiment::words::{list, percent, rate, time};
use dyno_record::experiment::{Demand, Finding};
use dyno_record::model::ResourceKind;

/// From this share of its bound on a rate is close to it.
pub(super) const NEAR_RATIO: f64 = 0.7;

/// Share of the CPU time of an operation from which on the client is worth moving.
const CLIENT_RATIO: f64 = 0.05;

/// Said of a demand whose error is above all of it.
pub(super) const ERROR_NOT_KNOWN: &str =
    "but too little was measured to tell its error: neither it nor the bound has an interval";

/// What was measured at one rate.
pub(super) struct AtRate<'a> {
    /// What an operation needs of the resource that saturates first.
    pub(super) bottleneck: &'a Demand,
    /// The same of all resources that operations wait for.
    pub(super) stations: &'a [Demand],
    /// The same of all that were watched.
    pub(super) demands: &'a [Demand],
    /// The rate.
    pub(super) rate_per_s: f64,
    /// What the rate is: `highest rate`, `rate`.
    pub(super) rate_name: &'static str,
    /// Where: `with 8 clients`.
    pub(super) at: String,
    /// How busy everything was, as a sentence.
    pub(super) busy: String,
    /// How the error of the demand is told: `known to`, `counted to`.
    pub(super) error: &'static str,
}

impl AtRate<'_> {
    fn is_disk(&self) -> bool {
        self.bottleneck.name == resource_name(ResourceKind::Disk)
    }

    /// The rate as a share of its bound.
    pub(super) fn share(&self) -> f64 {
        self.rate_per_s / bound_of(self.bottleneck)
    }

    /// The station that comes second.
    fn second(&self) -> Option<&Demand> {
        let others = self.stations.iter();
        others
            .filter(|demand| demand.name != self.bottleneck.name && demand.demand_s > 0.0)
            .max_by(|a, b| a.per_server_s().total_cmp(&b.per_server_s()))
    }

    fn demand(&self, kind: ResourceKind) -> Option<&Demand> {
        let name = resource_name(kind);
        self.demands.iter().find(|demand| demand.name == name)
    }
}

fn bound_of(demand: &Demand) -> f64 {
    demand.saturation_rate_per_s().value
}

/// The resource that saturates first, and how near the rate came to that.
pub(super) fn bottleneck(at: &AtRate<'_>) -> Finding {
    let demand = at.bottleneck;
    let what = subject(&demand.name);
    let lead = match at.share() >= NEAR_RATIO {
        true => format!("{what} is the bottleneck"),
        false => format!("{what} would saturate first, but nothing came near saturation"),
    };
    let text = format!(
        "{lead}: {} per operation on {} bound the rate at {}; the {} measured is {}, {} of it",
        time(demand.demand_s),
        units(&demand.name, demand.servers),
        rate(bound_of(demand)),
        at.rate_name,
        rate(at.rate_per_s),
        percent(at.share())
    );
    let known = match demand.uncertainty_ratio < 1.0 {
        true => format!(", {} ± {}", at.error, percent(demand.uncertainty_ratio)),
        false => format!(", {ERROR_NOT_KNOWN}"),
    };
    let mut evidence = vec![
        format!(
            "the demand of {} is the busy time divided by the operations {}{known}",
            time(demand.demand_s),
            at.at,
        ),
        at.busy.clone(),
    ];
    evidence.extend(at.second().map(|second| {
        format!(
            "next is {}: {} per operation bound the rate at {}",
            subject(&second.name),
            time(second.demand_s),
            rate(bound_of(second))
        )
    }));
    if at.is_disk() {
        let text =
            "a disk is busy while it has any request; one that serves several at once can do more";
        evidence.push(text.to_owned());
    }
    evidence.extend(spread(demand));
    finding(text, evidence)
}

/// Nothing can be said about the limits of a server that was not watched; `watched` are the resources that were.
pub(super) fn server_not_watched<'a>(watched: impl Iterator<Item = &'a str>) -> Finding {
    let known: Vec<String> = watched.map(subject).collect();
    let known = match known.as_slice() {
        [] => "no resource".to_owned(),
        known => format!("no other resource than {}", list(known)),
    };
    warning(
        "what limits the server cannot be told: its use of CPU and disk is not in this record"
            .to_owned(),
        vec![format!("the record has busy times of {known}")],
    )
}

/// More of what is saturated.
pub(super) fn widen(at: &AtRate<'_>) -> Option<Finding> {
    let demand = at.bottleneck;
    if at.share() < NEAR_RATIO {
        return None;
    }
    let what = match at.is_disk() {
        true => "a faster disk, or a cache that needs it less,",
        false => "more or faster CPUs, or operations that need less of them,",
    };
    let text = format!(
        "{what} would raise the rate: each {} adds up to {}",
        if at.is_disk() { "device" } else { "CPU" },
        rate(bound_of(demand) / f64::from(demand.servers))
    );
    let mut evidence = vec![format!(
        "{} is used {} at {}: {} per operation on {}",
        subject(&demand.name),
        percent(at.share()),
        rate(at.rate_per_s),
        time(demand.demand_s),
        units(&demand.name, demand.servers)
    )];
    evidence.extend(at.second().map(|next| {
        format!(
            "beyond {} {} would be the next limit",
            rate(bound_of(next)),
            subject(&next.name)
        )
    }));
    Some(opportunity(text, evidence))
}

/// Client and server take CPU time from each other.
pub(super) fn two_machines(at: &AtRate<'_>) -> Option<Finding> {
    let shared = Some(at.bottleneck).filter(|demand| demand.name == SHARED_CPUS)?;
    let server = at.demand(ResourceKind::ServerCpu)?;
    let client = at.demand(ResourceKind::ClientCpu)?;
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
                at.at,
                time(server.demand_s),
                time(client.demand_s),
                units(&shared.name, shared.servers)
            ),
            at.busy.clone(),
        ],
    ))
}
