use super::*;
use dyno_testkit::simulate::{Observation, Service, Source, Station, System, normal, simulate};

fn queue(servers: u32, service_s: f64) -> OpenQueue {
    OpenQueue { servers, service_s, delay_s: 0.0 }
}

/// The response time that this percentage of operations does not exceed, in seconds, with service in order of
/// arrival; infinite from the capacity on and at 100 %.
fn response_percentile_s(queue: &OpenQueue, rate_per_s: f64, percent: f64) -> f64 {
    let above = 1.0 - percent / 100.0;
    if rate_per_s >= queue.capacity_per_s() || above <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, queue.service_s);
    while share_above(queue, rate_per_s, high) > above {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if share_above(queue, rate_per_s, middle) > above { low = middle } else { high = middle }
    }
    queue.delay_s + high
}

/// Share of operations with a longer time in the queue and in service.
fn share_above(queue: &OpenQueue, rate_per_s: f64, time_s: f64) -> f64 {
    let rate = 1.0 / queue.service_s;
    let spare = queue.capacity_per_s() - rate_per_s;
    let waiting = waiting_ratio(queue, rate_per_s);
    let served = (-rate * time_s).exp();
    // Waiting is exponential with the spare rate, service with its own; if the two rates are equal, their sum
    // is the limit of the general form.
    let difference = spare - rate;
    let sum_above = if difference.abs() < 1e-9 * rate {
        (1.0 + rate * time_s) * served
    } else {
        (spare * served - rate * (-spare * time_s).exp()) / difference
    };
    (1.0 - waiting) * served + waiting * sum_above
}

#[test]
fn one_server_gives_the_closed_forms() {
    let queue = queue(1, 0.001);
    assert!((waiting_ratio(&queue, 800.0) - 0.8).abs() < 1e-12);
    assert!((mean_response_s(&queue, 800.0) - 0.005).abs() < 1e-12);
    let p99 = response_percentile_s(&queue, 800.0, 99.0);
    assert!((p99 - 0.005 * 100f64.ln()).abs() < 1e-9, "{p99}");
    assert_eq!(mean_response_s(&queue, 1000.0), f64::INFINITY);
    assert_eq!(response_percentile_s(&queue, 1000.0, 50.0), f64::INFINITY);
    assert_eq!(response_percentile_s(&queue, 10.0, 100.0), f64::INFINITY);
}

#[test]
fn erlang_c_agrees_with_printed_values() {
    // (servers, offered load, probability of waiting)
    for (servers, offered, expected) in
        [(2, 1.0, 1.0 / 3.0), (3, 2.0, 4.0 / 9.0), (10, 5.0, 0.0361), (100, 80.0, 0.0197)]
    {
        let found = waiting_ratio(&queue(servers, 1.0), offered);
        assert!((found - expected).abs() < 6e-5, "{servers} {offered}: {found}");
    }
}

fn simulated(queue: &OpenQueue, rate_per_s: f64, window_s: f64, seed: u64) -> Observation {
    let station = |servers: u32, service: Service| Station { servers, service };
    simulate(
        &System {
            source: Source::Open { rate_per_s },
            stations: vec![
                station(queue.servers, Service::Exponential(queue.service_s)),
                station(u32::MAX, Service::Constant(queue.delay_s)),
            ],
            warm_up_s: 5.0,
            window_s,
        },
        seed,
    )
}

#[test]
fn means_and_percentiles_agree_with_simulated_queues() {
    for (servers, rate) in [(1, 700.0), (2, 1000.0), (2, 1600.0), (4, 3200.0), (16, 14_000.0)] {
        let queue = OpenQueue { delay_s: 0.0005, ..queue(servers, 0.001) };
        let seen = simulated(&queue, rate, 100.0, u64::from(servers));
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.05;
        let mean = mean_response_s(&queue, rate);
        assert!(close(seen.mean_response_s(), mean), "{servers} {rate}: {mean}");
        for percent in [50.0, 90.0, 99.0] {
            let expected = response_percentile_s(&queue, rate, percent);
            let found = seen.response_quantile_s(percent / 100.0);
            assert!(close(found, expected), "{servers} {rate} {percent}: {found} {expected}");
        }
    }
}

const SHARES: [f64; 7] = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9];

fn quick(seed: u64) -> Resampling {
    Resampling { draws: 100, ..Resampling::seeded(seed) }
}

fn points(queue: &OpenQueue, noise_ratio: f64, seed: u64) -> Vec<ResponsePoint> {
    let point = |(share, error): (&f64, f64)| {
        let rate_per_s = share * queue.capacity_per_s();
        let mean_s = mean_response_s(queue, rate_per_s) * (noise_ratio * error).exp();
        ResponsePoint { rate_per_s, mean_response_s: Quantity::exact(mean_s) }
    };
    SHARES.iter().zip(normal(seed, SHARES.len())).map(point).collect()
}

#[test]
fn parameter_intervals_have_their_stated_coverage() {
    for (servers, delay_s) in [(1, 0.001), (2, 0.0005), (2, 0.0), (8, 0.0)] {
        let truth = OpenQueue { delay_s, ..queue(servers, 0.001) };
        let mut hits = [0; 3];
        for seed in 0..200 {
            let found = fit(&points(&truth, 0.03, seed), servers, quick(seed)).unwrap();
            hits[0] += usize::from(found.service_s.contains(truth.service_s));
            hits[1] += usize::from(found.delay_s.contains(truth.delay_s));
            hits[2] += usize::from(found.capacity_per_s.contains(truth.capacity_per_s()));
            assert!(applies(&found), "{servers} {seed}: {found:?}");
        }
        // 95 % of 200 are 190; fewer than 179 have a probability of 0.1 % then.
        assert!(hits.iter().all(|hits| *hits >= 179), "{servers} {delay_s}: {hits:?}");
    }
}

#[test]
fn fit_recovers_the_service_time_of_a_simulated_server() {
    let truth = OpenQueue { delay_s: 0.0004, ..queue(2, 0.001) };
    let point = |share: f64| {
        let rate = share * truth.capacity_per_s();
        let seen = simulated(&truth, rate, 100.0, (share * 100.0) as u64);
        ResponsePoint {
            rate_per_s: seen.rate_per_s(),
            mean_response_s: Quantity::exact(seen.mean_response_s()),
        }
    };
    let found = fit(&SHARES.map(point), 2, quick(1)).unwrap();
    assert!((found.service_s.value / 0.001 - 1.0).abs() < 0.02, "{found:?}");
    assert!((found.delay_s.value / 0.0004 - 1.0).abs() < 0.1, "{found:?}");
    assert!(is_extrapolated(&found, 1950.0) && !is_extrapolated(&found, 1000.0));
}

#[test]
fn unsuitable_curve_is_reported_as_not_a_queue() {
    // A response time that grows by steps, far below a single-server queue.
    let point = |(rate_per_s, mean_s): (f64, f64)| ResponsePoint {
        rate_per_s,
        mean_response_s: Quantity::exact(mean_s),
    };
    let steps = [(100.0, 0.001), (200.0, 0.001), (300.0, 0.004), (400.0, 0.004), (500.0, 0.004)];
    let found = fit(&steps.map(point), 1, quick(1)).unwrap();
    assert!(!applies(&found), "{found:?}");
    assert_eq!(fit(&steps.map(point)[..2], 1, quick(1)), None);
    assert_eq!(fit(&[point((1.0, 0.0)); 3], 1, quick(1)), None);
    assert_eq!(fit(&steps.map(point), 0, quick(1)), None);
}
