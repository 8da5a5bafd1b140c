//! Bounds, N* and the network of clients that think, against a system whose truth is known.

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
        demand_s,
        uncertainty_ratio: 0.0,
    };
    ClosedSystem {
        demands: vec![station(2, SERVER_S + CLIENT_S), station(1, DISK_S)],
        delay_s: 24e-6,
        think_time_s: THINK_S,
    }
}

/// What a sweep over clients measures there, and what it knows of their thinking.
fn measured(think_mean_us: Option<f64>) -> Experiment {
    let points = curve(&truth(), 64);
    let runs = CLIENTS_OF_LEVELS.map(|clients| {
        let point = points[clients as usize - 1];
        let response_us = point.response_s * 1e6;
        Figures {
            think_mean_us,
            ..figures(clients, None, point.rate_per_s, response_us)
        }
    });
    let names = CLIENTS_OF_LEVELS.map(|clients| clients.to_string());
    let names = names.each_ref().map(String::as_str);
    answered(experiment((CLIENTS, &names), runs.to_vec()))
}

fn verdicts(experiment: &mut Experiment, law: Law) -> Vec<LawVerdict> {
    let levels = answer(experiment).levels.iter();
    let checks = levels.flat_map(|level| level.laws.clone());
    let checks = checks.filter(|check| check.law == law);
    checks.map(|check| check.verdict).collect()
}

#[test]
fn bounds_n_star_and_network_know_what_clients_think() {
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
    // 125 µs of an operation and 1 ms of thinking, in which the two CPUs could serve one every 50 µs.
    let saturation = answer.saturation_clients.unwrap().value;
    assert!((saturation - 22.5).abs() < 0.01, "{saturation}");
    let last = answer.bounds.last().unwrap();
    let low_s = 64.0 * 50e-6 - THINK_S;
    assert!((last.response_low_s / low_s - 1.0).abs() < 1e-9, "{last:?}");
}

#[test]
fn a_think_time_that_nobody_counted_would_break_a_bound() {
    let mut experiment = measured(None);
    let found = verdicts(&mut experiment, Law::ResponseBound);
    assert!(found.contains(&LawVerdict::Broken), "{found:?}");
}
