//! Figures of one run of an experiment, with their uncertainty.

use super::costs::Costs;
use super::disk::DiskFigures;
use super::laws::LawCheck;
use crate::estimate::{Estimate, Quantity};
use crate::model::CaveatKind;
use crate::quantity::Unit;
use crate::statement::Number;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A figure, with an interval if the run was long enough.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval.
    pub high: Option<f64>,
}

impl Figure {
    /// A value with an unknown error.
    pub fn bare(value: f64) -> Figure {
        Figure { value, low: None, high: None }
    }

    /// A quotient with the relative error of its divisor; without an interval if that error is 1 or more.
    pub fn of_quotient(quotient: Quantity) -> Figure {
        let Quantity { value, uncertainty_ratio: error } = quotient;
        if error < 1.0 {
            Figure { value, low: Some(value / (1.0 + error)), high: Some(value / (1.0 - error)) }
        } else {
            Figure::bare(value)
        }
    }

    /// The rate at which a resource with this demand is always busy: its servers divided by the demand.
    pub fn bound_by(demand: &Demand) -> Figure {
        Figure::of_quotient(demand.saturation_rate_per_s())
    }

    /// As a number of a statement.
    pub fn number(&self, unit: Unit) -> Number {
        Number { low: self.low, high: self.high, ..Number::new(self.value, unit) }
    }

    /// The value with its relative uncertainty, which is 1 without an interval.
    pub fn quantity(&self) -> Quantity {
        let width = self.high.zip(self.low).map(|(high, low)| high - low);
        Quantity {
            value: self.value,
            uncertainty_ratio: width.map_or(1.0, |width| width / 2.0 / self.value.abs()),
        }
    }
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Figure {
        Figure { value: estimate.value, low: Some(estimate.low), high: Some(estimate.high) }
    }
}

/// The measure phase of one run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Concurrent clients of all pairs.
    pub clients: u32,
    /// Worker threads of all pairs.
    pub threads: u32,
    /// Offered rate; absent with a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Successful operations per second.
    pub rate_per_s: Figure,
    /// Mean response time of all database operations; the read and the update of a read-modify-write count separately.
    pub response_mean_us: Figure,
    /// Percentiles of the same response times, by their names in [`super::PERCENTILES`].
    pub response_us: BTreeMap<String, Figure>,
    /// Mean service time of all operations.
    pub service_mean_us: f64,
    /// Mean time between an answer and the same client's next send; absent unless the schedule makes clients wait.
    pub think_mean_us: Option<f64>,
    /// Mean number of operations in flight.
    pub mean_in_flight: f64,
    /// Successful operations.
    pub succeeded: u64,
    /// Share of finished operations that failed.
    pub failed_ratio: f64,
    /// Share of arrivals that were never sent; 0 with a closed loop.
    pub dropped_ratio: f64,
    /// Length of the phase.
    pub duration_s: f64,
    /// Length of the part at the start of the phase that was still a warm-up. Rate, mean and percentiles exclude it;
    /// counts (operations, failures, busy times) and the laws cover the whole phase.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Whether the rest is a steady state; absent if the phase is too short to decide.
    pub steady: Option<bool>,
    /// Utilization of the resources.
    pub resources: Vec<Resource>,
    /// Each data device; empty if they were not distinguished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskFigures>,
    /// Service demands. Their uncertainty comes from the counters: busy times and operations are counted in the same
    /// phase.
    pub demands: Vec<Demand>,
    /// Costs of an operation; absent in records without these counters.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// Whether server and client compete for the same CPUs.
    #[serde(default)]
    pub shares_cpus: bool,
    /// CPUs of server and client, if they compete and the CPUs are known.
    pub shared_cpus: Option<SharedCpus>,
    /// Share of CPU time that the hypervisor took; absent if no machine reported it.
    pub stolen_ratio: Option<f64>,
    /// Program and version of the server, such as `mongod 6.0.5`; absent if it did not report them.
    pub server: Option<String>,
    /// Address of the server, as in the run's document.
    pub server_address: Option<String>,
    /// Checks of the laws that a single run allows.
    pub laws: Vec<LawCheck>,
    /// Kinds of the run's caveats.
    pub caveats: Vec<CaveatKind>,
}

impl Figures {
    /// Whether the client was the limit, not the server.
    pub fn is_generator_bound(&self) -> bool {
        self.caveats.contains(&CaveatKind::GeneratorBottleneck)
    }

    /// A percentile by its name in [`super::PERCENTILES`].
    pub fn percentile(&self, name: &str) -> Option<Figure> {
        self.response_us.get(name).copied()
    }
}

/// CPUs that server and client may both use.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedCpus {
    pub cpus: u32,
    /// CPU time per unit of time that quotas allow; absent without a quota that lowers it.
    pub quota: Option<f64>,
}

/// Utilization of a resource while a rate was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Name, such as `server CPU`.
    pub name: String,
    /// Number of parallel servers, such as CPUs; at least 1.
    pub servers: u32,
    /// CPU time per unit of time that quotas allow; absent without a quota that lowers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// Share of the usable time in which the resource was busy, 0 to 1, as a mean over the servers.
    pub busy_ratio: f64,
    /// Half-width of the confidence interval, as a share of `busy_ratio`.
    pub uncertainty_ratio: f64,
}

impl Resource {
    /// Mean number of busy servers.
    pub fn busy_servers(&self) -> Quantity {
        Quantity {
            value: self.busy_ratio * self.quota.unwrap_or(f64::from(self.servers)),
            uncertainty_ratio: self.uncertainty_ratio,
        }
    }
}

/// Service demand: time that one operation occupies a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    pub name: String,
    /// Number of parallel servers.
    pub servers: u32,
    /// CPU time per unit of time that quotas allow; absent without a quota that lowers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// Busy time of one server per operation, in seconds.
    pub demand_s: f64,
    /// Half-width of the confidence interval, as a share of `demand_s`.
    pub uncertainty_ratio: f64,
}

impl Demand {
    /// The demand with its uncertainty, in seconds.
    pub fn quantity(&self) -> Quantity {
        Quantity { value: self.demand_s, uncertainty_ratio: self.uncertainty_ratio }
    }

    /// Maximum mean number of busy servers: all, or fewer because of a quota.
    pub fn usable(&self) -> f64 {
        self.quota.unwrap_or(f64::from(self.servers))
    }

    /// Time for which an operation occupies one of the servers: longer than the demand if there is a quota.
    pub fn occupied_s(&self) -> f64 {
        self.per_server_s() * f64::from(self.servers)
    }

    /// Time between two operations when all servers are busy, in seconds.
    pub fn per_server_s(&self) -> f64 {
        self.demand_s / self.usable()
    }

    /// The rate at which all servers are busy, which bounds all runs. Infinite without a demand.
    pub fn saturation_rate_per_s(&self) -> Quantity {
        Quantity { value: 1.0 / self.per_server_s(), uncertainty_ratio: self.uncertainty_ratio }
    }
}
