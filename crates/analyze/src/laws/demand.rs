//! Service demand: the time that an operation needs of a resource, whoever it waits for.
//!
//! Lazowska et al., *Quantitative System Performance* (1984), section 3.4: `D = U / X`, with the
//! utilization `U` of a resource of several servers counted in busy servers.

use crate::estimate::{Quantity, combined};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How busy a resource was while a rate was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// Name, such as `server CPU`.
    pub name: String,
    /// Servers that work side by side, such as CPUs; at least 1.
    pub servers: u32,
    /// Share of their time that they were busy, 0 to 1, as a mean over the servers.
    pub busy_ratio: f64,
    /// Half-width of the confidence interval of `busy_ratio`, as a share of it.
    pub uncertainty_ratio: f64,
}

impl Resource {
    /// Mean number of busy servers.
    pub fn busy_servers(&self) -> Quantity {
        Quantity {
            value: self.busy_ratio * f64::from(self.servers),
            uncertainty_ratio: self.uncertainty_ratio,
        }
    }

    /// What one operation needed of it at this rate; `None` if nothing was done.
    pub fn demand(&self, rate_per_s: Quantity) -> Option<Demand> {
        let demand_s = self.busy_servers().value / rate_per_s.value;
        (demand_s.is_finite() && demand_s >= 0.0).then(|| Demand {
            name: self.name.clone(),
            servers: self.servers.max(1),
            demand_s,
            uncertainty_ratio: combined(&[self.uncertainty_ratio, rate_per_s.uncertainty_ratio]),
        })
    }
}

/// What one operation needs of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demand {
    /// Name of the resource.
    pub name: String,
    /// Servers of the resource.
    pub servers: u32,
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

    /// The time between two operations when all servers are busy, in seconds.
    pub fn per_server_s(&self) -> f64 {
        self.demand_s / f64::from(self.servers)
    }

    /// The rate at which all servers are busy: no run can be faster. Infinite without a demand.
    pub fn saturation_rate_per_s(&self) -> Quantity {
        Quantity {
            value: 1.0 / self.per_server_s(),
            uncertainty_ratio: self.uncertainty_ratio,
        }
    }
}

/// The resource that saturates first: the one with the largest demand per server. `None` if no
/// demand is above 0.
pub fn bottleneck(demands: &[Demand]) -> Option<&Demand> {
    let needed = demands.iter().filter(|demand| demand.demand_s > 0.0);
    needed.max_by(|a, b| a.per_server_s().total_cmp(&b.per_server_s()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str, servers: u32, busy_ratio: f64) -> Resource {
        Resource {
            name: name.to_owned(),
            servers,
            busy_ratio,
            uncertainty_ratio: 0.03,
        }
    }

    #[test]
    fn the_demand_of_two_cpus_counts_both() {
        let rate = Quantity {
            value: 10_000.0,
            uncertainty_ratio: 0.04,
        };
        let demand = resource("server CPU", 2, 0.24).demand(rate).unwrap();
        assert!((demand.demand_s - 48e-6).abs() < 1e-12);
        assert!((demand.uncertainty_ratio - 0.05).abs() < 1e-12);
        let bound = demand.saturation_rate_per_s();
        assert!((bound.value - 41_666.7).abs() < 0.1, "{bound:?}");
    }

    #[test]
    fn the_bottleneck_is_the_largest_demand_per_server() {
        let rate = Quantity::exact(1000.0);
        let demands: Vec<Demand> = [("cpu", 8, 0.5), ("disk", 1, 0.6), ("idle", 1, 0.0)]
            .iter()
            .filter_map(|(name, servers, busy)| resource(name, *servers, *busy).demand(rate))
            .collect();
        assert_eq!(demands.len(), 3);
        assert_eq!(bottleneck(&demands).unwrap().name, "disk");
        assert_eq!(bottleneck(&demands[2..]), None);
    }

    #[test]
    fn no_rate_gives_no_demand() {
        assert_eq!(resource("cpu", 1, 0.1).demand(Quantity::exact(0.0)), None);
        assert_eq!(resource("cpu", 1, 0.0).demand(Quantity::exact(0.0)), None);
    }
}
