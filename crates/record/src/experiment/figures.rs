//! What one run of an experiment says, with its uncertainty.

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

/// A figure with its interval, where the run was long enough for one.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written")]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Figure {
    /// A value whose error is not known.
    pub fn bare(value: f64) -> Figure {
        Figure {
            value,
            low: None,
            high: None,
        }
    }

    /// A quotient whose error is that of its divisor; without an interval if that may be anything, from a share of 1 on.
    pub fn of_quotient(quotient: Quantity) -> Figure {
        let Quantity {
            value,
            uncertainty_ratio: error,
        } = quotient;
        if error < 1.0 {
            Figure {
                value,
                low: Some(value / (1.0 + error)),
                high: Some(value / (1.0 - error)),
            }
        } else {
            Figure::bare(value)
        }
    }

    /// The rate at which a resource with this demand has no time left: its servers divided by the demand.
    pub fn bound_by(demand: &Demand) -> Figure {
        Figure::of_quotient(demand.saturation_rate_per_s())
    }

    /// It in a statement, in this unit.
    pub fn number(&self, unit: Unit) -> Number {
        Number {
            low: self.low,
            high: self.high,
            ..Number::new(self.value, unit)
        }
    }

    /// The value with its relative uncertainty; without an interval that is all of it.
    pub fn quantity(&self) -> Quantity {
        let width = self.high.zip(self.low).map(|(high, low)| high - low);
        Quantity {
            value: self.value,
            uncertainty_ratio: width.map_or(1.0, |width| width / 2.0 / self.value.abs()),
        }
    }
}

/// How a figure is written: some were numbers before they had intervals.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    /// The value alone.
    Number(f64),
    /// The value, perhaps with its interval.
    Interval {
        /// The value.
        value: f64,
        /// Lower end.
        low: Option<f64>,
        /// Upper end.
        high: Option<f64>,
    },
}

impl From<Written> for Figure {
    fn from(written: Written) -> Figure {
        match written {
            Written::Number(value) => Figure::bare(value),
            Written::Interval { value, low, high } => Figure { value, low, high },
        }
    }
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Figure {
        Figure {
            value: estimate.value,
            low: Some(estimate.low),
            high: Some(estimate.high),
        }
    }
}

/// The measure phase of one run.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Concurrent clients, all pairs together.
    pub clients: u32,
    /// Worker threads, all pairs together.
    pub threads: u32,
    /// Rate that the schedule asked for; absent with a closed loop.
    pub offered_rate_per_s: Option<f64>,
    /// Operations that succeeded per second.
    pub rate_per_s: Figure,
    /// Mean response time of all operations of the database; the read and the update of a read-modify-write count one
    /// by one.
    pub response_mean_us: Figure,
    /// Percentiles of the same response times, by their names in [`super::PERCENTILES`].
    pub response_us: BTreeMap<String, Figure>,
    /// Mean service time of all operations.
    pub service_mean_us: f64,
    /// Mean time that clients waited between an answer and the send of their next operation; absent unless the schedule
    /// makes them wait.
    pub think_mean_us: Option<f64>,
    /// Operations sent and not yet answered, as a mean over time.
    pub mean_in_flight: f64,
    /// Operations that succeeded.
    pub succeeded: u64,
    /// Share of the finished operations that failed.
    pub failed_ratio: f64,
    /// Share of the arrivals that were never sent; 0 with a closed loop.
    pub dropped_ratio: f64,
    /// Length of the phase.
    pub duration_s: f64,
    /// Length of the start of the phase that was still a warm-up. Rate, mean and percentiles are those after it; what
    /// is counted (operations, failures, busy times) and the laws are those of the whole phase.
    #[serde(default)]
    pub warm_up_s: f64,
    /// Whether the rest is a steady state; absent where the phase is too short to tell.
    pub steady: Option<bool>,
    /// How busy the resources were.
    pub resources: Vec<Resource>,
    /// The devices with the data, one by one; empty where they were not told apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskFigures>,
    /// What an operation needed of each. The uncertainty is that of the counters: busy times and operations are
    /// counted in the same phase.
    pub demands: Vec<Demand>,
    /// What an operation cost; absent in records that did not count it.
    #[serde(default)]
    pub costs: Option<Costs>,
    /// Whether server and client wait for the same CPUs.
    #[serde(default)]
    pub shares_cpus: bool,
    /// The CPUs of both together, where they compete and it is known which these are.
    pub shared_cpus: Option<SharedCpus>,
    /// Share of the CPU time that the hypervisor took; absent where no machine told.
    pub stolen_ratio: Option<f64>,
    /// The server by its program and version, such as `mongod 6.0.5`; absent where it did not tell.
    pub server: Option<String>,
    /// The laws that can be checked in a single run.
    pub laws: Vec<LawCheck>,
    /// Doubts that the run has of itself.
    pub caveats: Vec<CaveatKind>,
}

impl Figures {
    /// Whether the run says that the client was the limit and not the server.
    pub fn is_generator_bound(&self) -> bool {
        self.caveats.contains(&CaveatKind::GeneratorBottleneck)
    }

    /// A percentile by its name in [`super::PERCENTILES`].
    pub fn percentile(&self, name: &str) -> Option<Figure> {
        self.response_us.get(name).copied()
    }
}

/// CPUs that server and client may use together.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedCpus {
    /// How many.
    pub cpus: u32,
    /// The time per unit of time that quotas leave of them; absent where there is no quota or it is not less.
    pub quota: Option<f64>,
}

/// How busy a resource was while a rate was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Name, such as `server CPU`.
    pub name: String,
    /// Servers that work side by side, such as CPUs; at least 1.
    pub servers: u32,
    /// The time per unit of time that quotas leave of these CPUs; absent where there is no quota or it is not less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// Share of the time that they may be used in which they were, 0 to 1, as a mean over the servers.
    pub busy_ratio: f64,
    /// Half-width of the confidence interval of `busy_ratio`, as a share of it.
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

/// What one operation needs of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// Name of the resource.
    pub name: String,
    /// Servers of the resource.
    pub servers: u32,
    /// The time per unit of time that quotas leave of these CPUs; absent where there is no quota or it is not less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// Time of one server that one operation needs, in seconds.
    pub demand_s: f64,
    /// Half-width of the confidence interval of `demand_s`, as a share of it.
    pub uncertainty_ratio: f64,
}

impl Demand {
    /// The demand as a number with its error, in seconds.
    pub fn quantity(&self) -> Quantity {
        Quantity {
            value: self.demand_s,
            uncertainty_ratio: self.uncertainty_ratio,
        }
    }

    /// How many servers can be busy on average: as many as there are, or less by a quota.
    pub fn usable(&self) -> f64 {
        self.quota.unwrap_or(f64::from(self.servers))
    }

    /// The time for which an operation occupies one of the servers: under a quota that is longer than the time it needs.
    pub fn occupied_s(&self) -> f64 {
        self.per_server_s() * f64::from(self.servers)
    }

    /// The time between two operations when all servers are busy, in seconds.
    pub fn per_server_s(&self) -> f64 {
        self.demand_s / self.usable()
    }

    /// The rate at which all servers are busy: no run can be faster. Infinite without a demand.
    pub fn saturation_rate_per_s(&self) -> Quantity {
        Quantity {
            value: 1.0 / self.per_server_s(),
            uncertainty_ratio: self.uncertainty_ratio,
        }
    }
}
