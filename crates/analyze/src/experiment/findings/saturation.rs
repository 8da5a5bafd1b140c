//! The resource that saturates first: at the best level of a sweep, at the highest rate, or in a single run.

use super::disks;
use super::view::{subject, units, used_up};
use crate::estimate::combined;
use crate::experiment::figures::resource_name;
use crate::experiment::saturation::{NEAR_RATIO, SHOWN_RATIO, UsedUp};
use crate::experiment::stations::SHARED_CPUS;
use crate::values::{percent, rate, time};
use dyno_record::experiment::{Demand, DiskLimits, Figure, Finding, LimitBasis};
use dyno_record::model::ResourceKind;
use dyno_record::statement;
use dyno_record::statement::{Number, Statement};

/// Share of an operation's CPU time from which moving the client is worthwhile.
const CLIENT_RATIO: f64 = 0.05;

/// Measurements at one rate.
pub(super) struct AtRate<'a> {
    /// Demand for the resource that saturates first.
    pub(super) bottleneck: &'a Demand,
    /// Demands for all resources that operations wait for.
    pub(super) stations: &'a [Demand],
    /// Demands for all watched resources.
    pub(super) demands: &'a [Demand],
    /// Limits by the disks.
    pub(super) disk: Option<&'a DiskLimits>,
    pub(super) rate_per_s: Figure,
    /// Whether it is the highest rate of an experiment.
    pub(super) is_of_sweep: bool,
    /// The load: `with 8 clients`.
    pub(super) at: Statement,
    /// Utilization of all resources, if known.
    pub(super) busy: Option<Statement>,
    /// Resources close to saturation, including use by other processes.
    pub(super) used_up: Vec<UsedUp>,
}

impl AtRate<'_> {
    /// Whether the rate is close to its bound.
    pub(super) fn is_near(&self) -> bool {
        self.share() >= NEAR_RATIO
    }

    /// Whether the load of a single run was too small to show the bound.
    pub(super) fn is_small(&self) -> bool {
        !self.is_of_sweep && self.share() < SHOWN_RATIO
    }

    fn is_disk(&self) -> bool {
        self.bottleneck.name == resource_name(ResourceKind::Disk)
    }

    /// The rate as a share of its bound.
    pub(super) fn share(&self) -> f64 {
        self.rate_per_s.value / bound_of(self.bottleneck)
    }

    /// The station with the second largest demand.
    fn second(&self) -> Option<&Demand> {
        self.stations
            .iter()
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

/// The error of a demand, if it is less than the demand itself.
fn error_of(demand: &Demand) -> Option<Number> {
    (demand.uncertainty_ratio < 1.0).then(|| percent(demand.uncertainty_ratio))
}

/// Whether a rate above a demand's bound is within the errors of both; `None` if it is not above the bound.
fn above_bound(rate_per_s: &Figure, demand: &Demand) -> Option<Statement> {
    let beyond_ratio = rate_per_s.value / bound_of(demand) - 1.0;
    let errors = [rate_per_s.quantity().uncertainty_ratio, demand.uncertainty_ratio];
    let uncertainty_ratio = combined(&errors);
    // Without an interval the error may be the whole figure.
    let is_known = errors.iter().all(|error| *error < 1.0);
    (beyond_ratio > 0.0).then(|| {
        statement!(
            "above-bound",
            is_covered = is_known.then_some(beyond_ratio <= uncertainty_ratio),
            uncertainty = is_known.then(|| percent(uncertainty_ratio))
        )
    })
}

/// The resource that saturates first, and how close the rate came to its bound.
pub(super) fn bottleneck(at: &AtRate<'_>) -> Finding {
    let demand = at.bottleneck;
    // Without utilizations, nothing is known about resources that the demands do not show.
    let is_of_known = disks::may_limit(at.disk) || at.busy.is_none() && !at.is_near();
    let said = statement!(
        "bottleneck",
        resource = subject(&demand.name),
        is_near = at.is_near(),
        is_beside_verdict = None::<bool>,
        is_of_known = is_of_known.then_some(true),
        is_small = at.is_small().then_some(true),
        demand = time(demand.demand_s),
        units = units(demand),
        bound = rate(bound_of(demand)),
        is_highest_rate = at.is_of_sweep,
        rate = rate(at.rate_per_s.value),
        share = percent(at.share()),
        used_up = used_up(&at.used_up).filter(|_| !at.is_near())
    );
    let limit = at.disk.and_then(|disk| disk.known.as_ref());
    let limit = limit.filter(|_| at.is_disk());
    let is_part = limit.is_some_and(|limit| limit.basis != LimitBasis::OneAtATime);
    let is_least = limit.is_some_and(|limit| limit.basis == LimitBasis::Measured);
    let mut evidence = vec![statement!(
        "demand-is-busy-time-per-operation",
        demand = time(demand.demand_s),
        is_part_of_limit = is_part.then_some(true),
        is_least = is_least.then_some(true),
        at = &at.at,
        error = error_of(demand),
        is_known = at.is_of_sweep
    )];
    evidence.extend(at.busy.clone());
    evidence.extend(above_bound(&at.rate_per_s, demand));
    evidence.extend(at.second().filter(|_| !at.is_small()).map(|second| {
        statement!(
            "next-resource",
            resource = subject(&second.name),
            demand = time(second.demand_s),
            bound = rate(bound_of(second))
        )
    }));
    evidence.extend(limit.map(disks::basis));
    Finding::found(said, evidence)
}

/// Advice to add more of the saturated resource.
pub(super) fn widen(at: &AtRate<'_>) -> Option<Finding> {
    let demand = at.bottleneck;
    if !at.is_near() {
        return None;
    }
    let code = if at.is_disk() { "faster-disk" } else { "more-cpus" };
    let each = rate(bound_of(demand) / demand.usable());
    let mut evidence = vec![statement!(
        "resource-used",
        resource = subject(&demand.name),
        share = percent(at.share()),
        rate = rate(at.rate_per_s.value),
        demand = time(demand.demand_s),
        units = units(demand)
    )];
    evidence.extend(at.second().map(|next| {
        let bound = rate(bound_of(next));
        statement!("next-limit", bound = bound, resource = subject(&next.name))
    }));
    Some(Finding::opportunity(statement!(code, each = each), evidence))
}

/// Client and server compete for CPU time.
pub(super) fn two_machines(at: &AtRate<'_>) -> Option<Finding> {
    let shared = Some(at.bottleneck).filter(|demand| demand.name == SHARED_CPUS)?;
    let server = at.demand(ResourceKind::ServerCpu)?;
    let client = at.demand(ResourceKind::ClientCpu)?;
    let share = client.demand_s / (server.demand_s + client.demand_s);
    if share < CLIENT_RATIO {
        return None;
    }
    let said = statement!(
        "two-machines",
        alone = rate(bound_of(server)),
        together = rate(bound_of(shared)),
        share = percent(share)
    );
    let needs = statement!(
        "needs-on-same-cpus",
        at = &at.at,
        server = time(server.demand_s),
        client = time(client.demand_s),
        units = units(shared)
    );
    Some(Finding::opportunity(said, std::iter::once(needs).chain(at.busy.clone()).collect()))
}
