//! The laws on simulated systems with independent counts.

use super::*;
use dyno_record::experiment::ClosedSystem;
use dyno_testkit::simulate::{Observation, Service, Source, Station, System, simulate};

/// Two CPUs with 4 ms, a disk with 1.5 ms and a network delay of 1 ms.
const CPU: usize = 0;
const DISK: usize = 1;
const STATIONS: [Station; 3] = [
    Station { servers: 2, service: Service::Exponential(0.004) },
    Station { servers: 1, service: Service::Exponential(0.0015) },
    Station { servers: u32::MAX, service: Service::Constant(0.001) },
];
const THINK_TIME_S: f64 = 0.02;

fn closed(clients: u32, seed: u64) -> Observation {
    let system = System {
        source: Source::Closed { clients, think: Service::Exponential(THINK_TIME_S) },
        stations: STATIONS.to_vec(),
        warm_up_s: 5.0,
        window_s: 200.0,
    };
    simulate(&system, seed)
}

fn resource(seen: &Observation, station: usize) -> Resource {
    let servers = STATIONS[station].servers;
    Resource {
        name: format!("station {station}"),
        servers,
        quota: None,
        busy_ratio: seen.busy_s[station] / seen.window_s / f64::from(servers),
        uncertainty_ratio: 0.02,
    }
}

fn measured(value: f64) -> Quantity {
    Quantity { value, uncertainty_ratio: 0.01 }
}

fn true_system() -> ClosedSystem {
    let demand = |station: usize| Demand {
        name: format!("station {station}"),
        servers: STATIONS[station].servers,
        quota: None,
        demand_s: STATIONS[station].service.mean_s(),
        uncertainty_ratio: 0.02,
    };
    ClosedSystem {
        demands: vec![demand(CPU), demand(DISK)],
        delay_s: 0.001,
        think_time_s: THINK_TIME_S,
    }
}

fn assert_holds(check: Option<LawCheck>) {
    let check = check.unwrap();
    assert_eq!(check.verdict, LawVerdict::Holds, "{check:?}");
}

#[test]
fn every_law_holds_in_a_closed_system_at_every_load() {
    for (seed, clients) in [1, 2, 4, 8, 16, 32, 64].into_iter().enumerate() {
        let seen = closed(clients, seed as u64);
        let rate = measured(seen.rate_per_s());
        let response = measured(seen.mean_response_s());
        assert_holds(little(measured(seen.mean_in_flight), rate, response));
        assert_holds(response_time(clients, rate, THINK_TIME_S, response));
        for (station, demand) in true_system().demands.iter().enumerate() {
            assert_holds(utilization(&resource(&seen, station), rate, demand));
        }
        let bound = bounds::rate_bound_per_s(&true_system(), clients, 0.02);
        assert_holds(rate_within_bound(rate, bound));
        let bounds = bounds::bounds(&true_system(), clients).unwrap();
        let fastest = Quantity::exact(bounds.response_low_s);
        assert_holds(response_within_bound(response, fastest));
        let inside = bounds.rate_low_per_s * 0.98..=bounds.rate_high_per_s * 1.02;
        assert!(inside.contains(&rate.value), "{clients}: {rate:?}, {bounds:?}");
    }
}

#[test]
fn little_and_utilization_hold_under_open_load() {
    for (seed, rate_per_s) in [(1, 50.0), (2, 250.0), (3, 450.0)] {
        let system = System {
            source: Source::Open { rate_per_s },
            stations: STATIONS.to_vec(),
            warm_up_s: 10.0,
            window_s: 400.0,
        };
        let seen = simulate(&system, seed);
        let rate = measured(seen.rate_per_s());
        let response = measured(seen.mean_response_s());
        assert_holds(little(measured(seen.mean_in_flight), rate, response));
        let demand = &true_system().demands[CPU];
        assert_holds(utilization(&resource(&seen, CPU), rate, demand));
        // Each operation visits each station once, and the station counts separately.
        for served in &seen.served {
            let flow = measured(*served as f64 / seen.window_s);
            assert_holds(forced_flow("visits", flow, Quantity::exact(1.0), rate));
        }
        let twice = measured(2.0 * seen.served[CPU] as f64 / seen.window_s);
        let check = forced_flow("visits", twice, Quantity::exact(1.0), rate);
        assert_eq!(check.unwrap().verdict, LawVerdict::Broken);
    }
}

#[test]
fn demands_are_recovered_and_name_the_bottleneck() {
    let seen = closed(30, 9);
    let rate = measured(seen.rate_per_s());
    let demands: Vec<Demand> = [CPU, DISK]
        .into_iter()
        .filter_map(|station| demand::demand(&resource(&seen, station), rate))
        .collect();
    for (found, truth) in demands.iter().zip(true_system().demands) {
        let ratio = found.demand_s / truth.demand_s;
        assert!((ratio - 1.0).abs() < found.uncertainty_ratio, "{found:?}");
    }
    let bottleneck = demand::bottleneck(&demands).unwrap();
    assert_eq!(bottleneck.name, "station 0");
    let bound = bottleneck.saturation_rate_per_s().value;
    assert!((bound / 500.0 - 1.0).abs() < 0.02, "{bound}");
}

#[test]
fn wrong_counts_break_their_law() {
    let seen = closed(16, 5);
    let rate = measured(seen.rate_per_s());
    let response = measured(seen.mean_response_s());
    let broken = |check: Option<LawCheck>| check.unwrap().verdict == LawVerdict::Broken;
    let lost = measured(seen.rate_per_s() * 0.95);
    assert!(broken(little(measured(seen.mean_in_flight), lost, response)));
    assert!(broken(response_time(17, rate, THINK_TIME_S, response)));
    assert!(broken(response_time(16, rate, 0.0, response)));
    let mut overstated = true_system().demands[CPU].clone();
    overstated.demand_s *= 1.2;
    assert!(broken(utilization(&resource(&seen, CPU), rate, &overstated)));
    assert!(broken(forced_flow("commands", rate, Quantity::exact(1.1), rate)));
    assert!(broken(rate_within_bound(rate, measured(rate.value * 0.9))));
    assert!(broken(response_within_bound(response, measured(response.value * 1.1))));
}

#[test]
fn bounds_are_broken_from_one_side_only() {
    let far = rate_within_bound(measured(10.0), measured(1000.0)).unwrap();
    assert_eq!(far.verdict, LawVerdict::Holds);
    assert!((far.difference_ratio + 0.99).abs() < 1e-12);
    let slow = response_within_bound(measured(10.0), measured(1.0)).unwrap();
    assert_eq!(slow.verdict, LawVerdict::Holds);
}

#[test]
fn agreement_of_vague_numbers_does_not_confirm_a_law() {
    let vague = Quantity { value: 1.0, uncertainty_ratio: 0.4 };
    let check = little(vague, Quantity::exact(1.0), Quantity::exact(1.0)).unwrap();
    assert_eq!(check.verdict, LawVerdict::TooUncertain);
    let check = little(vague, Quantity::exact(1.0), Quantity::exact(5.0)).unwrap();
    assert_eq!(check.verdict, LawVerdict::Broken);
}

#[test]
fn uncertainty_of_short_responses_grows_with_think_time() {
    let check = response_time(10, measured(10.0), 0.9, measured(0.1)).unwrap();
    assert!((check.predicted - 0.1).abs() < 1e-9);
    assert!((check.uncertainty_ratio - (0.1f64 * 0.1 + 0.01 * 0.01).sqrt()).abs() < 1e-9);
}

#[test]
fn laws_are_not_compared_without_measurements() {
    let (zero, one) = (Quantity::exact(0.0), Quantity::exact(1.0));
    assert_eq!(little(zero, one, one), None);
    assert_eq!(little(one, one, Quantity::exact(f64::NAN)), None);
    assert_eq!(response_time(1, one, 2.0, one), None);
}
