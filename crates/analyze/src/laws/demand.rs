//! Service demand: the time for which an operation occupies a resource, in any position of the queue.
//!
//! Lazowska et al., *Quantitative System Performance* (1984), section 3.4: `D = U / X`, with the
//! utilization `U` of a resource of several servers counted in busy servers.

use crate::estimate::combined;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{Demand, Resource};

/// Demand of one operation for this resource at this rate; `None` without operations.
pub fn demand(resource: &Resource, rate_per_s: Quantity) -> Option<Demand> {
    let demand_s = resource.busy_servers().value / rate_per_s.value;
    (demand_s.is_finite() && demand_s >= 0.0).then(|| Demand {
        name: resource.name.clone(),
        servers: resource.servers.max(1),
        quota: resource.quota,
        demand_s,
        uncertainty_ratio: combined(&[resource.uncertainty_ratio, rate_per_s.uncertainty_ratio]),
    })
}

/// The resource that saturates first: the one with the largest demand per server. `None` if no demand is above
/// 0.
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
            quota: None,
            busy_ratio,
            uncertainty_ratio: 0.03,
        }
    }

    #[test]
    fn the_demand_of_two_cpus_counts_both() {
        let rate = Quantity { value: 10_000.0, uncertainty_ratio: 0.04 };
        let demand = demand(&resource("server CPU", 2, 0.24), rate).unwrap();
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
            .filter_map(|(name, servers, busy)| demand(&resource(name, *servers, *busy), rate))
            .collect();
        assert_eq!(demands.len(), 3);
        assert_eq!(bottleneck(&demands).unwrap().name, "disk");
        assert_eq!(bottleneck(&demands[2..]), None);
    }

    #[test]
    fn no_rate_gives_no_demand() {
        assert_eq!(demand(&resource("cpu", 1, 0.1), Quantity::exact(0.0)), None);
        assert_eq!(demand(&resource("cpu", 1, 0.0), Quantity::exact(0.0)), None);
    }
}
