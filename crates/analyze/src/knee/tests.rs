use super::*;
use dyno_testkit::simulate::{Service, Source, Station, System, simulate};
use proptest::prelude::*;

fn point(load: f64, rate: f64, response: f64) -> LoadPoint {
    let quantity = |value| Quantity { value, uncertainty_ratio: 0.02 };
    LoadPoint { load, rate_per_s: quantity(rate), response_s: quantity(response) }
}

/// One exponential server with 1 ms at these rates.
fn one_server(rates: &[f64]) -> Vec<LoadPoint> {
    let response = |rate: f64| 0.001 / (1.0 - rate * 0.001);
    rates.iter().map(|rate| point(*rate, *rate, response(*rate))).collect()
}

#[test]
fn one_server_bends_at_half_of_its_capacity() {
    let points = one_server(&[100.0, 200.0, 300.0, 450.0, 600.0, 800.0, 900.0, 950.0]);
    let Knee::Found { load, low, high, rate_per_s, response_s } = knee(&points) else {
        panic!("{:?}", knee(&points));
    };
    assert!((load / 500.0 - 1.0).abs() < 0.05, "{load}");
    assert!((rate_per_s / load - 1.0).abs() < 0.01, "{rate_per_s}");
    assert!((response_s / 0.002 - 1.0).abs() < 0.05, "{response_s}");
    assert_eq!((low, high), (300.0, 800.0));
}

#[test]
fn measured_range_does_not_move_the_knee() {
    let near = one_server(&[300.0, 450.0, 600.0, 700.0]);
    let far = one_server(&[10.0, 100.0, 300.0, 450.0, 600.0, 700.0, 900.0, 990.0, 999.0]);
    let load = |points: &[LoadPoint]| match knee(points) {
        Knee::Found { load, .. } => load,
        other => panic!("{other:?}"),
    };
    assert_eq!(load(&near), load(&far));
}

#[test]
fn simulated_servers_bend_where_theory_predicts() {
    // One server at half of its capacity; two at 1 / √3 of theirs, as R = S / (1 − U²).
    for (servers, expected) in [(1, 500.0), (2, 2000.0 / 3f64.sqrt())] {
        let capacity = 1000.0 * f64::from(servers);
        let measure = |share: f64| {
            let rate_per_s = share * capacity;
            let system = System {
                source: Source::Open { rate_per_s },
                stations: vec![Station { servers, service: Service::Exponential(0.001) }],
                warm_up_s: 5.0,
                window_s: 60.0,
            };
            let seen = simulate(&system, (share * 1e4) as u64);
            point(rate_per_s, seen.rate_per_s(), seen.mean_response_s())
        };
        let points: Vec<LoadPoint> =
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9].map(measure).to_vec();
        let Knee::Found { load, low, high, .. } = knee(&points) else {
            panic!("{:?}", knee(&points));
        };
        assert!((load / expected - 1.0).abs() < 0.1, "{servers}: {load}");
        assert!(low < expected && expected < high, "{servers}: {low} {high}");
    }
}

#[test]
fn clients_bend_where_the_rate_stops_growing() {
    // Ideal growth up to 8 clients, then a plateau: R = N / X.
    let points = [1u32, 2, 4, 8, 16, 32].map(|n| {
        let rate = f64::from(n.min(8)) * 100.0;
        point(f64::from(n), rate, f64::from(n) / rate)
    });
    match knee(&points) {
        Knee::Found { load, low, high, .. } => {
            assert!((load / 8.0 - 1.0).abs() < 0.01, "{load}");
            assert_eq!((low, high), (4.0, 16.0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn knee_outside_the_measured_loads_is_not_guessed() {
    let below = one_server(&[600.0, 700.0, 800.0, 900.0]);
    assert_eq!(knee(&below), Knee::BelowMeasured { lowest_load: 600.0 });
    let above = one_server(&[100.0, 200.0, 300.0, 400.0]);
    assert_eq!(knee(&above), Knee::AboveMeasured { highest_load: 400.0 });
    assert_eq!(knee(&above[1..]), Knee::TooFewLoads);
    let mut broken = above.clone();
    broken[0].response_s.value = 0.0;
    assert_eq!(knee(&broken), Knee::TooFewLoads);
}

#[test]
fn vague_powers_widen_the_range() {
    let mut points = one_server(&[100.0, 200.0, 300.0, 450.0, 600.0, 800.0, 900.0]);
    for point in &mut points {
        point.response_s.uncertainty_ratio = 0.3;
    }
    match knee(&points) {
        Knee::Found { low, high, .. } => assert_eq!((low, high), (200.0, 800.0)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn repeated_loads_are_taken_together() {
    let once = one_server(&[300.0, 450.0, 600.0, 700.0]);
    let mut twice = [once.clone(), once.clone()].concat();
    twice[0].response_s.value *= 1.5;
    twice[4].response_s.value /= 1.5;
    match (knee(&once), knee(&twice)) {
        (Knee::Found { load: a, .. }, Knee::Found { load: b, .. }) => {
            assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn units_do_not_matter_and_the_knee_is_inside_its_range(scale in 1e-3..1e3f64, rates in prop::collection::vec(1.0..999.0f64, 4..20)) {
        let points = one_server(&rates);
        let scaled: Vec<LoadPoint> = points.iter().map(|p| LoadPoint {
            load: p.load * scale,
            response_s: Quantity { value: p.response_s.value * scale, ..p.response_s },
            ..*p
        }).collect();
        if let (Knee::Found { load, low, high, .. }, Knee::Found { load: other, .. }) = (knee(&points), knee(&scaled)) {
            prop_assert!((other / load / scale - 1.0).abs() < 1e-6);
            prop_assert!(low <= load && load <= high);
        }
    }
}
