//! Bounds, N* and the network of clients with think time, against a system with known values.

use super::*;
use crate::closed_network::curve;
use dyno_record::experiment::{ClosedSystem, Law, LawVerdict};

const CLIENTS_OF_LEVELS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const THINK_S: f64 = 1e-3;

/// The bench of these tests with clients that think for a millisecond.
fn truth() -> ClosedSystem {
    let station = |servers, demand_s| Demand {
        name: String::new(),
        servers,
        quota: None,
        demand_s,
        uncertainty_ratio: 0.0,
    };
    ClosedSystem {
        demands: vec![station(2, SERVER_S + CLIENT_S), station(1, DISK_S)],
        delay_s: 24e-6,
        think_time_s: THINK_S,
    }
}

/// The measurements of a sweep over clients there, with this recorded think time.
fn measured(think_mean_us: Option<f64>) -> Experiment {
    let points = curve(&truth(), 64);
    let runs = CLIENTS_OF_LEVELS.map(|clients| {
        let point = points[clients as usize - 1];
        let response_us = point.response_s * 1e6;
        Figures { think_mean_us, ..figures(clients, None, point.rate_per_s, response_us) }
    });
    let names = CLIENTS_OF_LEVELS.map(|clients| clients.to_string());
    let names = names.each_ref().map(String::as_str);
    answered(experiment((CLIENTS, &names), runs.to_vec()))
}

fn verdicts(experiment: &mut Experiment, law: Law) -> Vec<LawVerdict> {
    let checks = answer(experiment).levels.iter().flat_map(|level| level.laws.clone());
    let checks = checks.filter(|check| check.law == law);
    checks.map(|check| check.verdict).collect()
}

#[test]
fn bounds_n_star_and_network_include_think_time() {
    let mut experiment = measured(Some(THINK_S * 1e6));
    for law in [Law::RateBound, Law::ResponseBound] {
        let found = verdicts(&mut experiment, law);
        assert_eq!(found, [LawVerdict::Holds; 6], "{law:?}");
    }
    let answer = answer(&mut experiment);
    let points = curve(&truth(), 64);
    for found in &answer.network {
        let expected = points[found.clients as usize - 1];
        let off = found.response_s / expected.response_s - 1.0;
        assert!(off.abs() < 1e-6, "{found:?} {expected:?}");
    }
    // 125 µs of an operation and 1 ms of think time, in which the two CPUs could serve one every 50 µs.
    let saturation = answer.saturation_clients.unwrap().value;
    assert!((saturation - 22.5).abs() < 0.01, "{saturation}");
    let last = answer.bounds.last().unwrap();
    let low_s = 64.0 * 50e-6 - THINK_S;
    assert!((last.response_low_s / low_s - 1.0).abs() < 1e-9, "{last:?}");
}

#[test]
fn uncounted_think_time_would_break_a_bound() {
    let mut experiment = measured(None);
    let found = verdicts(&mut experiment, Law::ResponseBound);
    assert!(found.contains(&LawVerdict::Broken), "{found:?}");
}

/// Clients that think for 5 ms, by their number: response time from the intended start, and start delay.
#[test]
fn late_client_at_high_rates_lowers_no_bound() {
    let think_us = 5_000.0;
    let rows = [
        (1, 130.0, 4.0),
        (8, 142.0, 14.0),
        (32, 164.0, 40.0),
        (64, 327.0, 150.0),
        (128, 1_500.0, 213.0),
    ];
    let runs = rows.map(|(clients, response_us, late_us)| {
        let rate = f64::from(clients) / (think_us + response_us) * 1e6;
        Figures {
            service_mean_us: response_us - late_us,
            think_mean_us: Some(think_us + late_us),
            ..figures(clients, None, rate, response_us)
        }
    });
    let names = ["1", "8", "32", "64", "128"];
    let mut experiment = answered(experiment((CLIENTS, &names), runs.to_vec()));
    for law in [Law::RateBound, Law::ResponseBound] {
        let found = verdicts(&mut experiment, law);
        assert_eq!(found, [LawVerdict::Holds; 4], "{law:?}");
    }
    let answer = answer(&mut experiment);
    // The lone client's cycle of 5.13 ms, in which the two CPUs could serve one every 50 µs.
    let saturation = answer.saturation_clients.unwrap().value;
    assert!((saturation - 102.6).abs() < 1e-6, "{saturation}");
    for level in &answer.levels {
        let bound = answer.bounds.iter().find(|one| one.clients == level.clients).unwrap();
        let by_hand = (f64::from(level.clients) / 5.13e-3).min(20_000.0);
        assert!((bound.rate_high_per_s / by_hand - 1.0).abs() < 1e-9, "{bound:?}");
        let (rate, response_s) = (level.rate_per_s.value, level.response_mean_us.value * 1e-6);
        assert!(rate < bound.rate_high_per_s * (1.0 + 1e-9), "{rate} {bound:?}");
        assert!(response_s > bound.response_low_s * (1.0 - 1e-9), "{response_s} {bound:?}");
    }
}

#[test]
fn throttled_loop_has_no_bounds_as_its_waits_depend_on_level() {
    let runs = [1, 8, 32].map(|clients| {
        let think_us = f64::from(clients) * 1_000.0 - 130.0;
        Figures { think_mean_us: Some(think_us), ..figures(clients, Some(1_000.0), 1_000.0, 130.0) }
    });
    let mut experiment = answered(experiment((CLIENTS, &["1", "8", "32"]), runs.to_vec()));
    for law in [Law::RateBound, Law::ResponseBound] {
        assert_eq!(verdicts(&mut experiment, law), [], "{law:?}");
    }
    let answer = answer(&mut experiment);
    assert!(answer.bounds.is_empty() && answer.network.is_empty());
    assert_eq!(answer.saturation_clients, None);
}
