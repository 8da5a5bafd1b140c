//! Bounds on rate and response time of a closed system, from its service demands alone.
//!
//! Asymptotic and balanced job bounds: Lazowska et al., *Quantitative System Performance* (1984),
//! chapter 5; J. Zahorjan, K. C. Sevcik, D. L. Eager and B. Galler, "Balanced Job Bound Analysis of
//! Queueing Networks", *Communications of the ACM* 25 (1982).
//!
//! Both are stated there for single servers. A resource with `m` servers and demand `D` saturates at `m / D`
//! and delays a lone operation by `D`. For the pessimistic side it is replaced by one server with demand `D /
//! m` and a delay of `D (m − 1) / m` (A. Seidmann, P. Schweitzer and S. Shalev-Oren, "Computerized Closed
//! Queueing Network Models of Flexible Manufacturing Systems", *Large Scale Systems* 12 (1987)), which is never
//! faster; for the optimistic balanced bound by a delay of `D`, which is never slower.
//!
//! The asymptotic bounds require only that operations do not depend on each other; the balanced ones assume
//! exponential service or processor sharing (a separable network).

use super::demand::bottleneck;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{Bounds, ClosedSystem};

/// The rate that no number of clients exceeds, with the uncertainty of the largest demand; infinite without
/// demands.
pub fn saturation_rate_per_s(system: &ClosedSystem) -> Quantity {
    match bottleneck(&system.demands) {
        Some(demand) => demand.saturation_rate_per_s(),
        None => Quantity::exact(f64::INFINITY),
    }
}

/// N*: number of clients where the two upper bounds of the rate meet. Beyond it, operations certainly wait for
/// each other. `None` without demands.
pub fn saturation_clients(system: &ClosedSystem) -> Option<f64> {
    let largest = bottleneck(&system.demands)?.per_server_s();
    Some((system.lone_response_s() + system.think_time_s) / largest)
}

/// The rate of this many clients that never wait for each other, with the uncertainty of the lone response time
/// (a share of it).
pub fn rate_without_waiting_per_s(
    system: &ClosedSystem,
    clients: u32,
    lone_uncertainty_ratio: f64,
) -> Quantity {
    let lone_s = system.lone_response_s();
    let cycle_s = lone_s + system.think_time_s;
    Quantity {
        value: f64::from(clients) / cycle_s,
        uncertainty_ratio: lone_uncertainty_ratio * lone_s / cycle_s,
    }
}

/// The upper bound of the rate at this many clients, with the uncertainty of the largest demand if it binds,
/// otherwise of the lone response time.
pub fn rate_bound_per_s(
    system: &ClosedSystem,
    clients: u32,
    lone_uncertainty_ratio: f64,
) -> Quantity {
    let light = rate_without_waiting_per_s(system, clients, lone_uncertainty_ratio);
    let heavy = saturation_rate_per_s(system);
    if light.value < heavy.value { light } else { heavy }
}

/// All bounds at this many clients; `None` without clients, or if an operation takes no time.
pub fn bounds(system: &ClosedSystem, clients: u32) -> Option<Bounds> {
    let n = f64::from(clients);
    let rate_high = rate_bound_per_s(system, clients, 0.0).value;
    if clients == 0 || !rate_high.is_finite() {
        return None;
    }
    let pessimistic = pessimistic(system);
    let rate_low = n / (n * pessimistic.demand_s + pessimistic.delay_s);
    let balanced_low = pessimistic.balanced_rate(n, pessimistic.largest_s, n);
    let optimistic = optimistic(system);
    let balanced_high = optimistic.balanced_rate(n, optimistic.mean_s, 1.0);
    let balanced_low = balanced_low.max(rate_low);
    let balanced_high = balanced_high.min(rate_high);
    let response = |rate: f64| n / rate - system.think_time_s;
    Some(Bounds {
        clients,
        rate_low_per_s: rate_low,
        rate_high_per_s: rate_high,
        response_low_s: response(rate_high),
        response_high_s: response(rate_low),
        balanced_rate_low_per_s: balanced_low,
        balanced_rate_high_per_s: balanced_high,
        balanced_response_low_s: response(balanced_high),
        balanced_response_high_s: response(balanced_low),
    })
}

/// A system of single servers and delays that is never faster.
fn pessimistic(system: &ClosedSystem) -> SingleServers {
    let (mut queues, mut delay_s) = (Vec::new(), system.delay_s + system.think_time_s);
    for demand in &system.demands {
        queues.push(demand.per_server_s());
        delay_s += demand.occupied_s() - demand.per_server_s();
    }
    SingleServers::new(&queues, delay_s)
}

/// A system of single servers and delays that is never slower.
fn optimistic(system: &ClosedSystem) -> SingleServers {
    let (mut queues, mut delay_s) = (Vec::new(), system.delay_s + system.think_time_s);
    for demand in &system.demands {
        match demand.servers {
            1 => queues.push(demand.occupied_s()),
            _ => delay_s += demand.occupied_s(),
        }
    }
    SingleServers::new(&queues, delay_s)
}

/// Single servers in a row with a delay that includes think time.
struct SingleServers {
    demand_s: f64,
    largest_s: f64,
    mean_s: f64,
    delay_s: f64,
}

impl SingleServers {
    fn new(queues: &[f64], delay_s: f64) -> Self {
        // A resource without demand is not a station: it would lower the mean and loosen the bound.
        let used: Vec<f64> = queues.iter().copied().filter(|demand| *demand > 0.0).collect();
        let demand_s: f64 = used.iter().sum();
        Self {
            demand_s,
            largest_s: used.iter().copied().fold(0.0, f64::max),
            mean_s: demand_s / used.len().max(1) as f64,
            delay_s,
        }
    }

    /// `N / (D + Z + (N − 1) d / (1 + Z / (s D)))`: the rate if all stations had the demand `d`.
    /// `s` is 1 in the optimistic form and N in the pessimistic one.
    fn balanced_rate(&self, n: f64, station_s: f64, s: f64) -> f64 {
        let total_s = s * self.demand_s + self.delay_s;
        let queueing_s = if self.demand_s > 0.0 {
            (n - 1.0) * station_s * s * self.demand_s / total_s
        } else {
            0.0
        };
        n / (self.demand_s + self.delay_s + queueing_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::experiment::Demand;
    use proptest::prelude::*;

    fn demand(servers: u32, demand_s: f64) -> Demand {
        Demand {
            name: format!("{servers} servers"),
            servers,
            quota: None,
            demand_s,
            uncertainty_ratio: 0.0,
        }
    }

    fn system(demands: &[(u32, f64)], think_time_s: f64) -> ClosedSystem {
        ClosedSystem {
            demands: demands.iter().map(|(m, d)| demand(*m, *d)).collect(),
            delay_s: 0.0,
            think_time_s,
        }
    }

    #[test]
    fn single_servers_give_the_numbers_of_the_formulas() {
        // Demands 5, 4 and 3 s, 15 s of think time, 3 clients.
        let bounds = bounds(&system(&[(1, 5.0), (1, 4.0), (1, 3.0)], 15.0), 3).unwrap();
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        near(bounds.rate_high_per_s, 3.0 / 27.0);
        near(bounds.rate_low_per_s, 3.0 / 51.0);
        near(bounds.response_low_s, 12.0);
        near(bounds.response_high_s, 36.0);
        near(bounds.balanced_response_low_s, 12.0 + 2.0 * 4.0 / (1.0 + 15.0 / 12.0));
        near(bounds.balanced_response_high_s, 12.0 + 2.0 * 5.0 / (1.0 + 15.0 / 36.0));
    }

    #[test]
    fn the_asymptotes_meet_at_the_saturation_point() {
        let system = system(&[(2, 4.0), (1, 1.0)], 5.0);
        assert_eq!(saturation_clients(&system), Some(5.0));
        let rates: Vec<f64> =
            (4..=6).map(|n| bounds(&system, n).unwrap().rate_high_per_s).collect();
        assert_eq!(rates, [0.4, 0.5, 0.5]);
    }

    #[test]
    fn a_lone_client_meets_all_bounds_at_once() {
        let bounds = bounds(&system(&[(4, 2.0), (1, 1.0)], 3.0), 1).unwrap();
        for rate in [
            bounds.rate_low_per_s,
            bounds.rate_high_per_s,
            bounds.balanced_rate_low_per_s,
            bounds.balanced_rate_high_per_s,
        ] {
            assert!((rate - 1.0 / 6.0).abs() < 1e-12, "{rate}");
        }
        assert!((bounds.response_low_s - 3.0).abs() < 1e-12);
    }

    #[test]
    fn bound_has_the_uncertainty_of_the_binding_side() {
        let mut system = system(&[(1, 1.0)], 9.0);
        system.demands[0].uncertainty_ratio = 0.1;
        // One of the ten seconds of a cycle is uncertain.
        let light = rate_bound_per_s(&system, 5, 0.02).uncertainty_ratio;
        assert!((light - 0.002).abs() < 1e-12, "{light}");
        assert_eq!(rate_bound_per_s(&system, 50, 0.02).uncertainty_ratio, 0.1);
    }

    #[test]
    fn zero_demand_gives_no_bound() {
        assert_eq!(bounds(&system(&[], 0.0), 3), None);
        assert_eq!(bounds(&system(&[(1, 1.0)], 0.0), 0), None);
        assert_eq!(saturation_clients(&system(&[], 1.0)), None);
        assert_eq!(bounds(&system(&[(1, 0.0)], 2.0), 4).unwrap().balanced_rate_high_per_s, 2.0);
    }

    proptest! {
        #[test]
        fn balanced_bounds_lie_between_the_asymptotic_ones(
            demands in prop::collection::vec((1u32..9, 0.001..1.0f64), 1..5),
            think_time_s in 0.0..10.0f64,
            clients in 1u32..200,
        ) {
            let bounds = bounds(&system(&demands, think_time_s), clients).unwrap();
            let close = 1.0 + 1e-9;
            prop_assert!(bounds.rate_low_per_s <= bounds.balanced_rate_low_per_s * close);
            prop_assert!(bounds.balanced_rate_low_per_s <= bounds.balanced_rate_high_per_s * close);
            prop_assert!(bounds.balanced_rate_high_per_s <= bounds.rate_high_per_s * close);
        }
    }
}
