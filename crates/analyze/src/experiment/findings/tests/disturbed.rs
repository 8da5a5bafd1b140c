//! Pairs of runs with stolen CPU time.

use super::*;
use crate::experiment::ab::{disturbed, pairs};
use dyno_record::experiment::{AbOptions, DisturbedPair, Side};

/// An A/B comparison with these stolen shares of CPU time in the first and the second run of each pair.
fn pairs_with(stolen: &[[Option<f64>; 2]]) -> Experiment {
    let runs = stolen.iter().flatten();
    let runs: Vec<Figures> = runs
        .map(|&stolen_ratio| Figures { stolen_ratio, ..figures(8, None, 10_000.0, 800.0) })
        .collect();
    let values = vec!["8"; runs.len()];
    let mut found = experiment((CLIENTS, &values), runs);
    for (place, point) in found.points.iter_mut().enumerate() {
        point.side = Some(if place % 2 == 0 { Side::A } else { Side::B });
    }
    found.options.max_steal = Some(0.01);
    found.options.ab = Some(AbOptions { max_pairs: 20, ..AbOptions::default() });
    found
}

fn numbers(set_aside: &[DisturbedPair]) -> Vec<u32> {
    set_aside.iter().map(|one| one.pair).collect()
}

const CALM: [Option<f64>; 2] = [Some(0.001), Some(0.0)];
const TAKEN: [Option<f64>; 2] = [Some(0.0), Some(0.03)];

#[test]
fn pair_is_set_aside_only_when_either_run_is_above_the_limit() {
    let mut experiment =
        pairs_with(&[CALM, TAKEN, [Some(0.05), None], [None, None], [Some(0.01), Some(0.01)]]);
    let found = disturbed(&experiment);
    assert_eq!(numbers(&found), [1, 2]);
    assert_eq!(found[0].stolen_ratio, 0.03);
    // An answer from before the limit existed stays unchanged.
    experiment.options.max_steal = None;
    assert_eq!(disturbed(&experiment), []);
}

#[test]
fn half_of_the_pairs_count_even_when_time_is_always_stolen() {
    let mut experiment = pairs_with(&[TAKEN; 9]);
    experiment.options.ab.as_mut().unwrap().max_pairs = 6;
    assert_eq!(numbers(&disturbed(&experiment)), [0, 1, 2]);
}

#[test]
fn pair_that_was_set_aside_is_not_compared() {
    let experiment = pairs_with(&[CALM, TAKEN, CALM]);
    let window = |place: usize| IntervalSample {
        duration_s: 1.0,
        operations: 1000 + place as u64 % 3,
        times: SparseHistogram::from_counts([(800_000, 1000)]),
    };
    let windows: Vec<IntervalSample> = (0..30).map(window).collect();
    let windows = (0..6).map(|place| (place, windows.clone())).collect();
    let set_aside = disturbed(&experiment);
    assert_eq!(pairs(&experiment, &windows, &[]).len(), 3);
    assert_eq!(pairs(&experiment, &windows, &set_aside).len(), 2);
}
