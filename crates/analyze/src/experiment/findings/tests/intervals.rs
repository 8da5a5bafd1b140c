//! Intervals of results from demands, and the findings without them.

use super::*;
use crate::experiment::xmax;
use dyno_record::experiment::{ClientsEnd, ClientsResult};
use dyno_record::statement::Statement;
use dyno_testkit::simulate::normal;

/// N* of the benches in these tests: 125 µs of a lone client, and 50 µs between two operations.
const TRUE_SATURATION: f64 = 2.5;

/// A run with all its demands multiplied by `factor`.
fn dearer(mut run: Figures, factor: f64) -> Figures {
    for demand in &mut run.demands {
        demand.demand_s *= factor;
        // The counters' error is not under test.
        demand.uncertainty_ratio = 0.0;
    }
    run
}

/// A lone client whose mean is known to 1 %, and three runs with 8 clients whose demands differ by 2 %.
fn saturation_of(seed: u64) -> Figure {
    let errors = normal(seed, 4);
    let lone_us = 125.0 * (1.0 + 0.01 / 1.96 * errors[0]);
    let lone =
        Figures { response_mean_us: figure(lone_us, 0.01), ..figures(1, None, 8_000.0, lone_us) };
    let busy = errors[1..].iter().map(|error| {
        let run = figures(8, None, 18_800.0, 425.0);
        let known = figure(18_800.0, 0.000_1);
        dearer(Figures { rate_per_s: known, ..run }, 1.0 + 0.02 * error)
    });
    let runs = std::iter::once(lone).chain(busy).collect();
    let mut experiment = answered(experiment((CLIENTS, &["1", "8", "8", "8"]), runs));
    answer(&mut experiment).saturation_clients.unwrap()
}

#[test]
fn n_star_interval_has_its_stated_coverage() {
    let hits = (0..400).filter(|seed| {
        let found = saturation_of(seed * 7919 + 3);
        (found.low.unwrap()..=found.high.unwrap()).contains(&TRUE_SATURATION)
    });
    let hits = hits.count();
    assert!((368..=394).contains(&hits), "{hits} of 400");
}

#[test]
fn n_star_has_no_interval_without_the_lone_clients_error() {
    let mut lone = figures(1, None, 8_000.0, 125.0);
    lone.response_mean_us = Figure::bare(125.0);
    let runs = vec![lone, figures(8, None, 18_800.0, 425.0)];
    let mut experiment = answered(experiment((CLIENTS, &["1", "8"]), runs));
    let reported = evidence(&experiment, "operations-wait-beyond").to_string();
    assert!(reported == "operations-wait-beyond (clients: 2.50)", "{reported}");
    let answer = answer(&mut experiment);
    assert_eq!(answer.saturation_clients, Some(Figure::bare(2.5)));
    // The bound does not depend on it.
    let bound = answer.bound_per_s.unwrap();
    assert!(bound.low.unwrap() < 20_000.0 && bound.high.unwrap() > 20_000.0);
}

fn search(counted_runs: u32, rate_per_s: f64) -> ClientsResult {
    ClientsResult {
        clients: 8,
        rate_per_s,
        counted_runs,
        estimate_per_s: None,
        enough_clients: 8,
        end: ClientsEnd::Plateau,
        tried: Vec::new(),
    }
}

#[test]
fn maximum_from_one_run_has_that_runs_interval() {
    let elected = figures(8, None, 19_500.0, 410.0);
    let counted = figures(8, None, 18_800.0, 425.0);
    let best = [&elected, &counted];
    let found = xmax::answer(search(1, 18_800.0), &best, &best, Vec::new(), Vec::new());
    assert_eq!(found.x_max_per_s, Some(counted.rate_per_s));
    assert_eq!(found.client_maximum_per_s, None);
    let reasons = vec![Statement::recorded("the client was busy")];
    let found = xmax::answer(search(1, 18_800.0), &best, &best, reasons, Vec::new());
    assert_eq!(found.x_max_per_s, None);
    assert_eq!(found.client_maximum_per_s, Some(counted.rate_per_s));
    // A rate of 0 from a run that measured nothing does not belong to another run.
    let found = xmax::answer(search(1, 0.0), &best, &best, Vec::new(), Vec::new());
    assert_eq!(found.x_max_per_s, Some(Figure::bare(0.0)));
}

#[test]
fn demands_at_the_maximum_come_from_all_and_only_counted_runs() {
    let run = |factor| dearer(figures(8, None, 18_800.0, 425.0), factor);
    let (elected, first, second) = (run(3.0), run(0.98), run(1.02));
    let best = [&elected, &first, &second];
    let found = xmax::answer(search(2, 18_800.0), &best, &best, Vec::new(), Vec::new());
    let demand = found.bottleneck.unwrap();
    assert!((demand.demand_s - 100e-6).abs() < 1e-9, "{demand:?}");
    // s = 2.83 %, n = 2: 12.706 / √2.
    let expected = 0.04 / 2f64.sqrt() * 12.706 / 2f64.sqrt();
    assert!((demand.uncertainty_ratio - expected).abs() < 1e-4);
    let bound = found.bound_per_s.unwrap();
    assert!((bound.low.unwrap() - 20_000.0 / (1.0 + expected)).abs() < 5.0);
    assert!((bound.high.unwrap() - 20_000.0 / (1.0 - expected)).abs() < 5.0);
}
