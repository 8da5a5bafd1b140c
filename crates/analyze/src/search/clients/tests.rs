use super::*;
use dyno_testkit::simulate::{Service, Source, Station, System, normal, simulate};

fn search(settings: ClientsSettings, mut rate: impl FnMut(u32) -> f64) -> (ClientsResult, u32) {
    let mut search = ClientsSearch::new(settings);
    for measurements in 0.. {
        match search.step() {
            ClientsStep::Measure { clients } => search.record(rate(clients)),
            ClientsStep::Done(result) => return (result, measurements),
        }
    }
    unreachable!("the number of measurements is limited")
}

/// A server that slows down beyond its peak at √((1 − σ) / κ).
fn retrograde(sigma: f64, kappa: f64) -> impl Fn(u32) -> f64 {
    move |clients| {
        let n = f64::from(clients);
        1000.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
    }
}

#[test]
fn peak_is_found_to_within_a_neighbour() {
    for (sigma, kappa) in [(0.02, 0.01), (0.05, 0.0005), (0.01, 0.0001), (0.5, 0.1)] {
        let server = retrograde(sigma, kappa);
        let highest = (1..=1024).map(&server).fold(0.0, f64::max);
        let (found, measurements) = search(ClientsSettings::default(), &server);
        assert!(found.rate_per_s > 0.99 * highest, "{sigma} {kappa}: {found:?}");
        assert_eq!(found.end, ClientsEnd::Plateau);
        assert!(measurements <= 25, "{measurements}");
    }
}

#[test]
fn clients_beyond_the_saturation_are_not_called_enough() {
    let (found, _) = search(ClientsSettings::default(), |n| f64::from(n.min(10)) * 100.0);
    assert_eq!(found.rate_per_s, 1000.0);
    assert!((10..=13).contains(&found.enough_clients), "{found:?}");
    let estimate = found.estimate_per_s.unwrap();
    assert_eq!((estimate.low, estimate.high), (1000.0, 1000.0));
}

#[test]
fn rate_that_still_grows_at_the_limit_is_not_a_maximum() {
    let limited = ClientsSettings { max_clients: 50, ..ClientsSettings::default() };
    let (found, _) = search(limited, |n| f64::from(n) * 100.0);
    assert_eq!((found.clients, found.end), (50, ClientsEnd::StillGrowing));
    let few = ClientsSettings { max_measurements: 4, ..ClientsSettings::default() };
    let (found, measurements) = search(few, f64::from);
    assert_eq!((found.end, measurements), (ClientsEnd::OutOfMeasurements, 4));
    assert_eq!((found.clients, found.estimate_per_s), (8, None));
}

#[test]
fn last_allowed_measurement_can_decide_the_search() {
    let server = |n: u32| f64::from(n.min(10)) * 100.0;
    let (found, needed) = search(ClientsSettings::default(), server);
    let with = |max_measurements| {
        let limited = ClientsSettings { max_measurements, ..ClientsSettings::default() };
        search(limited, server).0
    };
    assert_eq!(with(needed), found);
    assert_eq!(with(needed - 1).end, ClientsEnd::OutOfMeasurements);
}

#[test]
fn limit_before_two_doublings_without_gain_is_not_a_plateau() {
    let limited = |max_clients| ClientsSettings { max_clients, ..ClientsSettings::default() };
    let server = |n: u32| f64::from(n.min(8)) * 100.0;
    for (max_clients, end) in [
        (1, ClientsEnd::LimitReached),
        (2, ClientsEnd::StillGrowing),
        (8, ClientsEnd::StillGrowing),
        (16, ClientsEnd::LimitReached),
        (32, ClientsEnd::Plateau),
        (1024, ClientsEnd::Plateau),
    ] {
        let (found, _) = search(limited(max_clients), server);
        assert_eq!(found.end, end, "{max_clients}");
    }
}

#[test]
fn a_failing_server_ends_the_search() {
    let (found, _) = search(ClientsSettings::default(), |_| f64::NAN);
    assert_eq!((found.rate_per_s, found.end), (0.0, ClientsEnd::Plateau));
}

#[test]
fn one_slow_measurement_does_not_stop_the_doubling() {
    let mut number = 0;
    let (found, _) = search(ClientsSettings::default(), |n| {
        number += 1;
        if number == 3 { 10.0 } else { f64::from(n.min(32)) * 100.0 }
    });
    assert!(found.rate_per_s > 3100.0, "{found:?}");
}

#[test]
fn noise_does_not_raise_the_maximum() {
    let truth = 100_000.0;
    let mut sum = 0.0;
    for seed in 0..100 {
        let errors = normal(seed, 100);
        let mut number = 0;
        let (found, _) = search(ClientsSettings::default(), |n| {
            number += 1;
            f64::from(n.min(20)) / 20.0 * truth * (1.0 + 0.03 * errors[number])
        });
        assert!((found.rate_per_s / truth - 1.0).abs() < 0.07, "{seed}: {found:?}");
        sum += found.rate_per_s;
    }
    let bias = sum / 100.0 / truth - 1.0;
    // 3 % / √300 is 0.2 %.
    assert!(bias.abs() < 0.006, "{bias}");
}

#[test]
fn a_simulated_server_gives_the_best_of_a_sweep() {
    let server = |clients: u32, window_s: f64, seed: u64| {
        let station =
            |servers: u32, mean_s: f64| Station { servers, service: Service::Exponential(mean_s) };
        let system = System {
            source: Source::Closed { clients, think: Service::Constant(0.0) },
            stations: vec![station(2, 0.001), station(u32::MAX, 0.002)],
            warm_up_s: 0.5,
            window_s,
        };
        simulate(&system, seed).rate_per_s()
    };
    let sweep = [1, 2, 4, 8, 16, 32, 64].map(|n| server(n, 50.0, 1));
    let best = sweep.into_iter().fold(0.0, f64::max);
    for seed in 0..50 {
        let mut number = 0;
        let (found, _) = search(ClientsSettings::default(), |clients| {
            number += 1;
            server(clients, 2.0, seed * 100 + number)
        });
        assert!((found.rate_per_s / best - 1.0).abs() < 0.05, "{seed}: {found:?} {best}");
    }
}
