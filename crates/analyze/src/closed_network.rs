//! Exact rate and response time of a closed system over the number of clients, if it is separable: exponential
//! service (or any, with processor sharing), queues that do not block.
//!
//! The values match exact mean value analysis (M. Reiser and S. S. Lavenberg, "Mean-Value Analysis of Closed
//! Multichain Queueing Networks", *Journal of the ACM* 27 (1980)). They are computed by convolution (J. P.
//! Buzen, "Computational Algorithms for Closed Queueing Networks with Exponential Servers", *Communications of
//! the ACM* 16 (1973)) on logarithms, because the recursion of mean value analysis loses all digits for
//! resources with many servers, such as 64 CPUs.

use dyno_record::experiment::{ClosedPoint, ClosedSystem};

/// The curves from 1 to `max_clients` clients; empty if an operation takes no time at all. The time grows with
/// the square of `max_clients`: about 0.1 s for 1000 with four resources.
pub fn curve(system: &ClosedSystem, max_clients: u32) -> Vec<ClosedPoint> {
    let count = max_clients as usize;
    let delay_s = system.delay_s + system.think_time_s;
    // The logarithm of the normalization constant, by number of clients.
    let mut constants = factors(delay_s, u32::MAX, count);
    for demand in &system.demands {
        constants = convolved(&constants, &factors(demand.occupied_s(), demand.servers, count));
    }
    let point = |clients: u32| {
        let n = clients as usize;
        let rate_per_s = (constants[n - 1] - constants[n]).exp();
        ClosedPoint {
            clients,
            rate_per_s,
            response_s: f64::from(clients) / rate_per_s - system.think_time_s,
        }
    };
    if count > 0 && constants[1] == f64::NEG_INFINITY {
        Vec::new()
    } else {
        (1..=max_clients).map(point).collect()
    }
}

/// Logarithms of a station's factors for 0 to `count` clients: `Dʲ / Π min(i, m)`.
fn factors(demand_s: f64, servers: u32, count: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let factor = |clients: usize| {
        if clients > 0 {
            sum += demand_s.ln() - (clients as f64).min(f64::from(servers)).ln();
        }
        sum
    };
    (0..=count).map(factor).collect()
}

/// `Σ exp(aᵢ + bₙ₋ᵢ)` for each n, as logarithms.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let sum = |n: usize| {
        let terms = || a[..=n].iter().zip(b[..=n].iter().rev()).map(|(a, b)| a + b);
        let largest = terms().fold(f64::NEG_INFINITY, f64::max);
        if largest.is_finite() {
            largest + terms().map(|term| (term - largest).exp()).sum::<f64>().ln()
        } else {
            largest
        }
    };
    (0..a.len()).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::bounds;
    use dyno_record::experiment::Demand;
    use dyno_testkit::simulate::{Service, Source, Station, System, simulate};
    use proptest::prelude::*;

    fn system(demands: &[(u32, f64)], delay_s: f64, think_time_s: f64) -> ClosedSystem {
        let demand = |(servers, demand_s): &(u32, f64)| Demand {
            name: String::new(),
            servers: *servers,
            quota: None,
            demand_s: *demand_s,
            uncertainty_ratio: 0.0,
        };
        ClosedSystem { demands: demands.iter().map(demand).collect(), delay_s, think_time_s }
    }

    /// Mean value analysis of single servers, as in the paper.
    fn mean_value_analysis(demands: &[f64], think_time_s: f64, clients: u32) -> f64 {
        let mut queues = vec![0.0; demands.len()];
        let mut rate = 0.0;
        for n in 1..=clients {
            let times: Vec<f64> = demands.iter().zip(&queues).map(|(d, q)| d * (1.0 + q)).collect();
            rate = f64::from(n) / (think_time_s + times.iter().sum::<f64>());
            queues = times.iter().map(|time| rate * time).collect();
        }
        rate
    }

    #[test]
    fn single_servers_agree_with_mean_value_analysis() {
        let demands = [0.605, 2.1, 1.35];
        let with_servers = demands.map(|demand| (1, demand));
        let points = curve(&system(&with_servers, 0.0, 15.0), 60);
        for point in &points {
            let expected = mean_value_analysis(&demands, 15.0, point.clients);
            assert!((point.rate_per_s / expected - 1.0).abs() < 1e-9, "{point:?} {expected}");
        }
    }

    #[test]
    fn two_clients_on_two_servers_never_wait() {
        let points = curve(&system(&[(2, 0.01)], 0.0, 0.0), 4);
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        near(points[0].response_s, 0.01);
        near(points[1].response_s, 0.01);
        near(points[3].rate_per_s, 200.0);
    }

    #[test]
    fn many_servers_and_clients_keep_their_digits() {
        let points = curve(&system(&[(64, 0.001), (1, 1e-6)], 0.0005, 0.0), 1000);
        for point in &points {
            assert!(point.rate_per_s.is_finite() && point.rate_per_s <= 64_000.0 * (1.0 + 1e-9));
        }
        assert!(points.windows(2).all(|p| p[1].rate_per_s >= p[0].rate_per_s * (1.0 - 1e-9)));
        assert!((points[999].rate_per_s / 64_000.0 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn simulated_systems_lie_on_the_curve() {
        let system = system(&[(2, 0.004), (1, 0.0015)], 0.001, 0.02);
        let points = curve(&system, 32);
        for clients in [1, 4, 8, 16, 32] {
            let station = |servers: u32, service: Service| Station { servers, service };
            let seen = simulate(
                &System {
                    source: Source::Closed { clients, think: Service::Exponential(0.02) },
                    stations: vec![
                        station(2, Service::Exponential(0.004)),
                        station(1, Service::Exponential(0.0015)),
                        station(u32::MAX, Service::Constant(0.001)),
                    ],
                    warm_up_s: 5.0,
                    window_s: 300.0,
                },
                u64::from(clients),
            );
            let expected = points[clients as usize - 1];
            let rate_error = seen.rate_per_s() / expected.rate_per_s - 1.0;
            let response_error = seen.mean_response_s() / expected.response_s - 1.0;
            assert!(rate_error.abs() < 0.02, "{expected:?} {rate_error}");
            assert!(response_error.abs() < 0.03, "{expected:?} {response_error}");
        }
    }

    #[test]
    fn empty_network_has_no_curve() {
        assert_eq!(curve(&system(&[], 0.0, 0.0), 5), []);
        assert_eq!(curve(&system(&[(1, 1.0)], 0.0, 0.0), 0), []);
        let thinking = curve(&system(&[(1, 0.0)], 0.0, 2.0), 4);
        assert!((thinking[3].rate_per_s - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn the_curve_lies_within_all_bounds(
            demands in prop::collection::vec((1u32..9, 0.001..1.0f64), 1..5),
            delay_s in 0.0..1.0f64,
            think_time_s in 0.0..10.0f64,
        ) {
            let system = system(&demands, delay_s, think_time_s);
            for point in curve(&system, 60) {
                let bounds = bounds::bounds(&system, point.clients).unwrap();
                let close = 1.0 + 1e-9;
                prop_assert!(point.rate_per_s >= bounds.rate_low_per_s / close, "{:?} {:?}", point, bounds);
                prop_assert!(point.rate_per_s <= bounds.rate_high_per_s * close, "{:?} {:?}", point, bounds);
            }
        }
    }
}
