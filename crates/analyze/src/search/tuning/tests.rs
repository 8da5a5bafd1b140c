//! Searches on simulated benches with a known best setting.

use super::*;
use dyno_testkit::simulate::{
    EFFECTIVE, SURFACE, SurfaceSetting, noisy_pairs, service_time, shortest_service_time,
};

/// Standard deviation of a measurement's logarithm.
const NOISE: f64 = 0.05;
/// Pairs of a search comparison, and of a final comparison.
const PAIRS: (usize, usize) = (2, 24);
const MARGIN: f64 = 0.04;

/// A knob with this many values.
fn knob(values: usize, default: usize, ordered: bool) -> Knob {
    let values = (0..values).map(|value| value.to_string()).collect();
    let knob = Knob::new("simulated", "client.clients".to_owned(), values);
    Knob { default: Some(default), ordered, ..knob }
}

/// Knobs of the simulated server.
fn knobs() -> Vec<Knob> {
    let one = |setting: &SurfaceSetting| knob(setting.values, setting.default, setting.is_ordered);
    SURFACE.iter().map(one).collect()
}

/// The logarithm of the objective; `None` for a failing setting.
type Truth = fn(&Setting) -> Option<f64>;

fn slope(setting: &Setting) -> Option<f64> {
    Some(-service_time(setting).ln())
}

/// The objective with a failing region of a fifth of all settings.
fn cliff(setting: &Setting) -> Option<f64> {
    (setting[1] < 7).then(|| -service_time(setting).ln())
}

/// A search with at most this many comparisons.
fn tuning(seed: u64, trials: usize) -> Tuning {
    let settings = TuningSettings { seed, trials, margin: MARGIN };
    Tuning::new(knobs(), settings)
}

fn flat(_: &Setting) -> Option<f64> {
    Some(0.0)
}

/// A bench with the record of a search.
struct Bench {
    truth: Truth,
    random: Xoshiro256PlusPlus,
    searched: usize,
    failed: usize,
}

impl Bench {
    fn new(truth: Truth, seed: u64) -> Bench {
        Bench {
            truth,
            random: Xoshiro256PlusPlus::seed_from_u64(seed + 1000),
            searched: 0,
            failed: 0,
        }
    }

    fn compare(&mut self, purpose: Purpose, one: &Setting, other: &Setting) -> Outcome {
        let pairs = if purpose == Purpose::Search {
            self.searched += 1;
            PAIRS.0
        } else {
            PAIRS.1
        };
        let Some(found) = (self.truth)(one) else {
            self.failed += 1;
            return Outcome::Violated;
        };
        let beside = (self.truth)(other).expect("the reference succeeded before");
        let found = noisy_pairs(&mut self.random, found - beside, NOISE, pairs);
        Outcome::Compared(Comparison {
            log_ratio: found.log_ratio,
            error: found.error,
            degrees_of_freedom: found.degrees_of_freedom,
        })
    }

    fn search(&mut self, seed: u64) -> TuningResult {
        let mut tuning = tuning(seed, 40);
        loop {
            match tuning.step() {
                TuningStep::Compare { purpose, one, other } => {
                    let outcome = self.compare(purpose, &one, &other);
                    tuning.record(outcome);
                }
                TuningStep::Done(result) => return result,
            }
        }
    }
}

fn changed(setting: &Setting) -> Vec<usize> {
    let base = defaults(&knobs());
    (0..setting.len()).filter(|place| setting[*place] != base[*place]).collect()
}

/// The largest value of the objective.
fn best() -> f64 {
    -shortest_service_time().ln()
}

#[test]
fn best_setting_is_found_and_its_effective_changes_are_named() {
    let found = (0..10).filter(|seed| {
        let mut bench = Bench::new(slope, *seed);
        let result = bench.search(*seed);
        assert!(bench.searched <= 40);
        let TuningResult::Better { setting, .. } = result else {
            return false;
        };
        changed(&setting) == EFFECTIVE && best() - slope(&setting).unwrap() < MARGIN
    });
    assert!(found.count() >= 9);
}

#[test]
fn stated_gain_is_the_true_one() {
    let mut bench = Bench::new(slope, 3);
    let TuningResult::Better { setting, gain, ablation } = bench.search(3) else {
        panic!("a better setting");
    };
    let truth = slope(&setting).unwrap() - slope(&defaults(&knobs())).unwrap();
    assert!((gain.log_ratio - truth).abs() < 3.0 * gain.error, "{gain:?}, {truth}");
    // Each change was reverted alone; those that count made it worse.
    for knob in changed(&setting) {
        let (_, outcome) = ablation.iter().find(|(place, _)| *place == knob).unwrap();
        assert!(matches!(outcome, Outcome::Compared(found) if found.log_ratio < 0.0));
    }
}

#[test]
fn no_gain_is_claimed_on_a_flat_surface() {
    let claimed = (0..20).filter(|seed| {
        let result = Bench::new(flat, *seed).search(*seed);
        matches!(result, TuningResult::Better { .. })
    });
    assert!(claimed.count() <= 1);
}

#[test]
fn failing_region_is_visited_at_most_three_times() {
    let mut found = 0;
    for seed in 0..10 {
        let mut bench = Bench::new(cliff, seed);
        let result = bench.search(seed);
        assert!(bench.failed <= 3, "seed {seed}: {} visits", bench.failed);
        if let TuningResult::Better { setting, .. } = result {
            found += usize::from(best() - slope(&setting).unwrap() < 2.0 * MARGIN);
        }
    }
    assert!(found >= 7, "{found}");
}

#[test]
fn the_same_outcomes_lead_to_the_same_search() {
    let run = || Bench::new(cliff, 5).search(5);
    assert_eq!(run(), run());
}

#[test]
fn search_looks_elsewhere_when_its_start_fails() {
    let mut tuning = tuning(1, 4);
    tuning.record(Outcome::Violated);
    let step = tuning.step();
    let TuningStep::Compare { purpose, .. } = step else {
        panic!("{step:?}");
    };
    assert_eq!(purpose, Purpose::Search);
    assert_eq!(tuning.possible_gain(), None);
}

#[test]
fn search_has_no_result_when_everything_fails() {
    let result = Bench::new(|setting| (*setting == defaults(&knobs())).then_some(0.0), 1).search(1);
    assert_eq!(result, TuningResult::Nothing { candidate: None });
}

#[test]
fn refused_setting_is_not_retried_and_costs_no_comparison() {
    for knob in [Some(1), None] {
        let mut tuning = tuning(3, 20);
        let mut bench = Bench::new(slope, 3);
        let mut refused = Vec::new();
        while let TuningStep::Compare { purpose, one, other } = tuning.step() {
            let outcome = if one[1] > 6 {
                refused.push(one.clone());
                Outcome::Refused { knob }
            } else {
                bench.compare(purpose, &one, &other)
            };
            tuning.record(outcome);
        }
        assert_eq!(bench.searched, 20, "{knob:?}");
        let mut own: Vec<Vec<usize>> = match knob {
            Some(place) => refused.iter().map(|one| vec![one[place]]).collect(),
            None => refused.clone(),
        };
        own.sort();
        own.dedup();
        assert!(!refused.is_empty());
        assert_eq!(own.len(), refused.len(), "{refused:?}");
    }
}

#[test]
fn unconfirmed_gain_is_not_stated() {
    let mut tuning = tuning(1, 9);
    let outcome = |log_ratio| {
        Outcome::Compared(Comparison { log_ratio, error: 0.02, degrees_of_freedom: 5.0 })
    };
    let candidate = loop {
        match tuning.step() {
            TuningStep::Compare { purpose: Purpose::Search, .. } => tuning.record(outcome(0.2)),
            TuningStep::Compare { purpose, one, other } => {
                assert_eq!((purpose, other), (Purpose::Confirm, defaults(&knobs())));
                break one;
            }
            TuningStep::Done(result) => panic!("{result:?}"),
        }
    };
    // This also holds for other candidates that are confirmed instead.
    let mut confirmed = vec![candidate];
    tuning.record(outcome(0.03));
    while let TuningStep::Compare { purpose, one, .. } = tuning.step() {
        assert_eq!(purpose, Purpose::Confirm);
        assert!(!confirmed.contains(&one), "{one:?}");
        confirmed.push(one);
        tuning.record(outcome(0.03));
    }
    assert!(confirmed.len() <= 5, "{confirmed:?}");
    let result =
        TuningResult::Nothing { candidate: confirmed.pop().map(|one| (one, outcome(0.03))) };
    assert_eq!(tuning.step(), TuningStep::Done(result));
}

#[test]
fn confirming_one_setting_does_not_rule_out_gain_of_others() {
    let mut tuning = tuning(1, 12);
    let possible = |tuning: &Tuning, setting: &Setting| {
        let gain = tuning.gain(setting);
        gain.mean + 1.645 * gain.deviation
    };
    let mut confirmed = 0;
    while let TuningStep::Compare { purpose, one, .. } = tuning.step() {
        // All seem promising, but none has a gain.
        let (log_ratio, error) = match purpose {
            Purpose::Search => (0.1, 0.1),
            _ => (0.0, 0.01),
        };
        if purpose == Purpose::Confirm {
            // Each needs half of the previous error probability.
            let caveat = 0.05 / 2_f64.powi(confirmed);
            assert!((tuning.caveat() - caveat).abs() < 1e-12);
        }
        let before = possible(&tuning, &one);
        tuning.record(Outcome::Compared(Comparison { log_ratio, error, degrees_of_freedom: 23.0 }));
        if purpose == Purpose::Confirm {
            // The model has learned from it.
            assert!(possible(&tuning, &one) < before, "{one:?}");
            confirmed += 1;
        }
    }
    assert!(confirmed > 1, "others may gain as much");
    let all = tuning.surface.tried().iter();
    let mut all = all.filter(|setting| **setting != defaults(&knobs()));
    let left = tuning.possible_gain().unwrap();
    assert!(all.all(|setting| possible(&tuning, setting) <= left));
}

#[test]
fn confirmed_pairs_count_when_their_setting_becomes_risky() {
    let mut tuning = tuning(1, 12);
    let found = Comparison { log_ratio: 0.11, error: 0.06, degrees_of_freedom: 5.0 };
    while let TuningStep::Compare { purpose: Purpose::Search, .. } = tuning.step() {
        tuning.record(Outcome::Compared(found));
    }
    assert!(tuning.to_confirm().is_some());
    tuning.record(Outcome::Compared(found));
    for setting in tuning.surface.tried().to_vec() {
        if setting != defaults(&knobs()) {
            tuning.limits.went(&setting, false);
        }
    }
    // All compared settings are excluded now, but a gain was not ruled out.
    assert_eq!(tuning.possible_gain(), Some(found.high()));
}

#[test]
fn harmful_candidate_makes_room_for_the_next_one() {
    let mut tuning = tuning(3, 40);
    let mut bench = Bench::new(slope, 3);
    let mut harmful: Option<Setting> = None;
    let result = loop {
        match tuning.step() {
            TuningStep::Compare { purpose, one, other } => {
                let is_first = purpose == Purpose::Confirm && harmful.is_none();
                let outcome = match is_first || harmful.as_ref() == Some(&one) {
                    true => {
                        assert!(is_first || purpose != Purpose::Confirm, "it is confirmed again");
                        harmful = Some(one);
                        Outcome::Violated
                    }
                    false => bench.compare(purpose, &one, &other),
                };
                tuning.record(outcome);
            }
            TuningStep::Done(result) => break result,
        }
    };
    let TuningResult::Better { setting, .. } = result else {
        panic!("{result:?}");
    };
    assert_ne!(Some(&setting), harmful.as_ref());
    assert!(slope(&setting) > slope(&defaults(&knobs())));
    // If all of them do harm, the search ends.
    let mut tuning = self::tuning(3, 9);
    let mut confirmed = Vec::new();
    while let TuningStep::Compare { purpose, one, other } = tuning.step() {
        let outcome = match purpose {
            Purpose::Search => bench.compare(purpose, &one, &other),
            _ => {
                confirmed.push(one);
                Outcome::Violated
            }
        };
        tuning.record(outcome);
    }
    assert!((1..=3).contains(&confirmed.len()), "{confirmed:?}");
    let last = confirmed.pop().map(|one| (one, Outcome::Violated));
    let nothing = TuningResult::Nothing { candidate: last };
    assert_eq!(tuning.step(), TuningStep::Done(nothing));
}

#[test]
fn refused_candidate_is_harmless_and_its_value_is_not_retried() {
    let mut tuning = tuning(3, 40);
    let mut bench = Bench::new(slope, 3);
    let mut refused = None;
    let mut confirmed = 0;
    while let TuningStep::Compare { purpose, one, other } = tuning.step() {
        if let Some((place, value)) = refused {
            assert_ne!(one[place], value, "{one:?}");
        }
        confirmed += usize::from(purpose == Purpose::Confirm);
        let outcome = if purpose == Purpose::Confirm && refused.is_none() {
            // Three harmful candidates are enough; others are not limited.
            let knobs = knobs();
            let all_changed = knobs.iter().map(|one| usize::from(one.default_place() == 0));
            let all_changed: Setting = all_changed.collect();
            assert_ne!(one, all_changed);
            let goes_on = |outcome| {
                let mut other = tuning.clone();
                other.given_up = vec![(all_changed.clone(), outcome); 3];
                matches!(other.next_candidate(), State::Confirm(_))
            };
            assert!(goes_on(Outcome::Refused { knob: None }));
            assert!(!goes_on(Outcome::Violated));
            let place = changed(&one)[0];
            refused = Some((place, one[place]));
            let knob = Some(place);
            Outcome::Refused { knob }
        } else {
            bench.compare(purpose, &one, &other)
        };
        tuning.record(outcome);
    }
    assert!(confirmed > 1, "others gain as well");
}

#[test]
fn changes_unproven_alone_must_be_proven_together_twice() {
    let run = |again: f64| {
        let mut tuning = tuning(2, 9);
        let mut confirmed = 0;
        loop {
            let log_ratio = match tuning.step() {
                TuningStep::Compare { purpose: Purpose::Search, .. } => 0.3,
                TuningStep::Compare { purpose: Purpose::Ablate { .. }, .. } => 0.0,
                TuningStep::Compare { purpose: Purpose::Confirm, .. } => {
                    confirmed += 1;
                    if confirmed == 1 { 0.3 } else { again }
                }
                TuningStep::Done(result) => return result,
            };
            let found = Comparison { log_ratio, error: 0.02, degrees_of_freedom: 9.0 };
            tuning.record(Outcome::Compared(found));
        }
    };
    assert!(matches!(run(0.3), TuningResult::Better { .. }));
    assert!(matches!(run(0.0), TuningResult::Nothing { candidate: Some(_) }));
}

#[test]
fn changes_needed_to_prove_the_gain_stay_but_are_unproven() {
    let mut tuning = tuning(2, 9);
    let mut candidate = None;
    let result = loop {
        let log_ratio = match tuning.step() {
            TuningStep::Compare { purpose: Purpose::Search, .. } => 0.3,
            TuningStep::Compare { purpose: Purpose::Ablate { knob }, other, .. } => {
                match changed(&other)[0] == knob {
                    true => -0.3,
                    false => 0.0,
                }
            }
            TuningStep::Compare { purpose: Purpose::Confirm, one, .. } => {
                match *candidate.get_or_insert_with(|| one.clone()) == one {
                    true => 0.3,
                    false => 0.0,
                }
            }
            TuningStep::Done(result) => break result,
        };
        tuning.record(Outcome::Compared(Comparison {
            log_ratio,
            error: 0.02,
            degrees_of_freedom: 9.0,
        }));
    };
    let TuningResult::Better { setting, gain, ablation } = result else {
        panic!("{result:?}");
    };
    assert_eq!((Some(&setting), gain.log_ratio), (candidate.as_ref(), 0.3));
    let all = changed(&setting);
    assert!(all.len() > 1, "{setting:?}");
    assert_eq!(proven(&ablation), all[..1]);
}

#[test]
fn failure_is_explained_by_values_of_no_good_setting() {
    let knobs = vec![knob(11, 5, true), knob(11, 5, true), knob(3, 0, false)];
    let mut limits = Limits::new(&knobs);
    for setting in [[5, 5, 0], [6, 10, 1], [0, 0, 2]] {
        limits.went(&setting.to_vec(), true);
    }
    assert_eq!(limits.risk(&vec![10, 10, 2]), Some(0.0));
    limits.went(&vec![9, 9, 1], false);
    // Only the first knob was never this large.
    assert_eq!(limits.risk(&vec![9, 0, 0]), None);
    assert_eq!(limits.risk(&vec![10, 5, 2]), None);
    assert!(limits.risk(&vec![6, 10, 1]).unwrap() < 0.05);
    assert_eq!(limits.risk(&vec![2, 9, 2]), Some(0.0));
}

#[test]
fn surface_without_priors_is_a_regression_by_hand() {
    let knobs = vec![knob(3, 0, true)];
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut surface = Surface::new(&knobs);
    let difference = Difference { one: vec![2], other: vec![0], log_ratio: 0.3, error: 1e-4 };
    surface.learn(&difference, &mut random);
    let gain = |one: usize, other: usize| surface.gain(&vec![one], &vec![other]);
    // A nearly exact measurement is known, and its opposite as well; nothing is better than itself.
    assert!((gain(2, 0).mean - 0.3).abs() < 0.02 && gain(2, 0).deviation < 0.05);
    assert!((gain(0, 2).mean + gain(2, 0).mean).abs() < 1e-12);
    assert_eq!((gain(1, 1).mean, gain(1, 1).deviation), (0.0, 0.0));
    // By symmetry the middle lies halfway, and is less certain than the ends.
    assert!((gain(1, 0).mean - gain(2, 0).mean / 2.0).abs() < 1e-9);
    assert!(gain(1, 0).deviation > gain(2, 0).deviation);
    // The middle may be better than the end, but is not expected to be.
    let improvement = surface.expected_improvement(&vec![1], &vec![2]);
    assert!(improvement > 0.0 && improvement < 0.1, "{improvement}");
}

#[test]
fn surface_intervals_contain_the_true_value() {
    let knobs = knobs();
    let (mut all, mut held) = (0, 0);
    for seed in 0..10 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut bench = Bench::new(slope, seed);
        let mut surface = Surface::new(&knobs);
        let base = defaults(&knobs);
        for setting in spread(&knobs, 25, &mut random) {
            let Outcome::Compared(found) = bench.compare(Purpose::Search, &setting, &base) else {
                continue;
            };
            let difference = Difference {
                one: setting,
                other: base.clone(),
                log_ratio: found.log_ratio,
                error: found.error,
            };
            surface.learn(&difference, &mut random);
        }
        for _ in 0..50 {
            let setting = any(&knobs, &mut random);
            let gain = surface.gain(&setting, &base);
            let truth = slope(&setting).unwrap() - slope(&base).unwrap();
            all += 1;
            held += usize::from((gain.mean - truth).abs() < 1.96 * gain.deviation);
        }
    }
    let share = f64::from(held as u32) / f64::from(all);
    assert!((0.85..=1.0).contains(&share), "{share}");
}

mod factors {
    use super::super::cholesky::{Cholesky, dot};
    use proptest::prelude::*;

    proptest! {
        /// Solving L·x = b and then measuring x: bᵀ·A⁻¹·b, which for A = B·Bᵀ + I has another formula for one
        /// column.
        #[test]
        fn a_factor_solves(column in prop::collection::vec(-2.0..2.0_f64, 1..8), scale in 0.1..3.0_f64) {
            let size = column.len();
            let mut matrix = vec![0.0; size * size];
            for row in 0..size {
                for other in 0..size {
                    matrix[row * size + other] = column[row] * column[other];
                }
                matrix[row * size + row] += scale;
            }
            let factor = Cholesky::of(matrix, size).unwrap();
            let solved = factor.forward(column.clone());
            // Sherman and Morrison: for b = column, bᵀ(s·I + b·bᵀ)⁻¹b = |b|² / (s + |b|²).
            let norm = dot(&column, &column);
            prop_assert!((dot(&solved, &solved) - norm / (scale + norm)).abs() < 1e-9);
            let determinant = scale.powi(size as i32 - 1) * (scale + norm);
            prop_assert!((2.0 * factor.half_log_determinant() - determinant.ln()).abs() < 1e-9);
        }
    }

    #[test]
    fn matrix_has_no_factor_when_not_positive_definite() {
        assert!(Cholesky::of(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::of(vec![f64::NAN], 1).is_none());
    }
}
