//! Bounds on rate and response time of a closed system, from its service demands alone.
//!
//! Asymptotic bounds: Lazowska et al., *Quantitative System Performance* (1984), chapter 5. They require only that
//! operations do not depend on each other.
//!
//! They are stated there for single servers. A resource with `m` servers and demand `D` saturates at `m / D` and
//! delays a lone operation by `D`. For the lower bound of the rate it is replaced by one server with demand `D / m`
//! and a delay of `D (m − 1) / m` (A. Seidmann, P. Schweitzer and S. Shalev-Oren, "Computerized Closed Queueing
//! Network Models of Flexible Manufacturing Systems", *Large Scale Systems* 12 (1987)), which is never faster.

use super::demand::bottleneck;
use dyno_record::estimate::Quantity;
use dyno_record::experiment::{Bounds, ClosedSystem, Demand};

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
    // The resources as single servers that are never faster: everybody else's operation is always ahead.
    let queued_s: f64 = system.demands.iter().map(Demand::per_server_s).sum();
    let occupied_s: f64 = system.demands.iter().map(Demand::occupied_s).sum();
    let delay_s = system.delay_s + system.think_time_s + occupied_s - queued_s;
    let rate_low = n / (n * queued_s + delay_s);
    let response = |rate: f64| n / rate - system.think_time_s;
    Some(Bounds {
        clients,
        rate_low_per_s: rate_low,
        rate_high_per_s: rate_high,
        response_low_s: response(rate_high),
        response_high_s: response(rate_low),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for rate in [bounds.rate_low_per_s, bounds.rate_high_per_s] {
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
        assert_eq!(bounds(&system(&[(1, 0.0)], 2.0), 4).unwrap().rate_high_per_s, 2.0);
    }
}
