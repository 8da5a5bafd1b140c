use super::*;
use dyno_record::experiment::NotMeasured;
use dyno_testkit::simulate::{Service, Source, Station, System, normal, simulate};
use proptest::prelude::*;

fn settings() -> ObjectiveSettings {
    ObjectiveSettings::starting_at(1000.0)
}

/// Searches with a server that decides whether a rate meets the objective.
fn search(
    settings: ObjectiveSettings,
    mut kept: impl FnMut(f64) -> bool,
) -> (ObjectiveResult, u32) {
    let mut search = ObjectiveSearch::new(settings);
    for measurements in 0.. {
        match search.step() {
            ObjectiveStep::Measure { rate_per_s } => search.record(kept(rate_per_s)),
            ObjectiveStep::Done(result) => return (*result, measurements),
        }
    }
    unreachable!("the number of measurements is limited")
}

#[test]
fn a_sharp_boundary_is_found_to_within_a_step_wherever_it_lies() {
    for boundary in [1.5, 40.0, 999.0, 1001.0, 3333.0, 250_000.0, 9.9e6] {
        let (found, measurements) = search(settings(), |rate| rate <= boundary);
        let rate = found.rate_per_s.unwrap();
        assert!(rate <= boundary * 1.04 && rate * 1.04 > boundary, "{boundary}: {found:?}");
        assert_eq!(found.end, ObjectiveEnd::Resolved);
        let half = found.boundary.unwrap().half_per_s;
        assert_eq!(half.value, rate);
        assert!(half.contains(boundary), "{boundary}: {half:?}");
        assert!(half.high / half.low <= 1.04f64.powf(2.5), "{half:?}");
        // Nothing was measured between the neighbours of the boundary.
        let kept = found.always_kept_up_to_per_s.unwrap();
        let missed = found.always_missed_from_per_s.unwrap();
        assert!(kept <= boundary && boundary < missed);
        assert!((missed / kept - 1.04).abs() < 0.01, "{boundary}: {missed}");
        assert!(measurements <= 20, "{boundary}: {measurements}");
    }
}

#[test]
fn sharp_boundary_near_the_closed_loop_rate_is_found_quickly() {
    // The search starts at half of that rate, and is limited to one and a half times the rate.
    let limited = ObjectiveSettings { max_rate_per_s: 3000.0, ..settings() };
    for percent in 30..280 {
        let boundary = f64::from(percent) * 10.0;
        let (found, measurements) = search(limited, |rate| rate <= boundary);
        let error = (found.rate_per_s.unwrap() / boundary).ln().abs();
        assert!(error <= 1.04f64.ln(), "{boundary}: {found:?}");
        assert_eq!(found.end, ObjectiveEnd::Resolved);
        assert!(measurements <= 14, "{boundary}: {measurements}");
    }
}

#[test]
fn hiccup_far_below_the_boundary_ends_the_clean_range() {
    // Kept up to 5000; the second measurement, at 2000, misses once by chance.
    let mut number = 0;
    let (found, _) = search(settings(), |rate| {
        number += 1;
        rate <= 5000.0 && number != 2
    });
    let hiccup = found.tried.iter().find(|one| one.missed_count > 0).unwrap();
    assert!(found.rate_per_s.unwrap() > 4800.0 && hiccup.rate_per_s < 2100.0);
    // Other measurements outvote it, wherever they were made.
    let above = found.tried.iter().filter(|one| one.rate_per_s > hiccup.rate_per_s);
    assert!(above.map(|one| one.kept_count).sum::<u32>() > 2, "{found:?}");
    assert!(found.always_kept_up_to_per_s.unwrap() < hiccup.rate_per_s);
}

proptest! {
    #[test]
    fn no_measurement_contradicts_what_was_always_kept_or_missed(
        outcomes in proptest::collection::vec(any::<bool>(), 60),
    ) {
        let mut outcomes = outcomes.into_iter();
        let limited = ObjectiveSettings { min_rate_per_s: 500.0, max_rate_per_s: 4000.0, ..settings() };
        let (found, _) = search(limited, |_| outcomes.next().unwrap_or(true));
        let (kept, missed) = (found.always_kept_up_to_per_s, found.always_missed_from_per_s);
        for one in &found.tried {
            let is_below = kept.is_some_and(|kept| one.rate_per_s <= kept);
            prop_assert!(!is_below || one.missed_count == 0, "{found:?}");
            let is_above = missed.is_some_and(|missed| one.rate_per_s >= missed);
            prop_assert!(!is_above || one.kept_count == 0, "{found:?}");
        }
        // They extend as far as possible.
        let lowest_miss = found.tried.iter().position(|one| one.missed_count > 0);
        let last_kept = lowest_miss.unwrap_or(found.tried.len()).checked_sub(1);
        prop_assert_eq!(kept, last_kept.map(|place| found.tried[place].rate_per_s));
        let highest_kept = found.tried.iter().rposition(|one| one.kept_count > 0);
        let first_missed = found.tried.get(highest_kept.map_or(0, |place| place + 1));
        prop_assert_eq!(missed, first_missed.map(|one| one.rate_per_s));
    }
}

#[test]
fn boundary_rates_end_at_the_tried_rates() {
    // Chance decides in a wide range below the highest allowed rate, so the curve extends beyond it.
    let limited = ObjectiveSettings { max_rate_per_s: 3000.0, ..settings() };
    let mut cut = 0;
    for seed in 0..50 {
        let errors = normal(seed, 100);
        let mut number = 0;
        let (found, _) = search(limited, |rate| {
            number += 1;
            rate * (0.4 * errors[number]).exp() <= 2500.0
        });
        let Some(boundary) = found.boundary else {
            continue;
        };
        let tried = found.tried.iter().map(|one| one.rate_per_s);
        let (lowest, highest) = (tried.clone().reduce(f64::min), tried.reduce(f64::max));
        let (lowest, highest) = (lowest.unwrap(), highest.unwrap());
        for rate in [boundary.half_per_s, boundary.most_per_s, boundary.few_per_s] {
            for rate in [rate.low, rate.value, rate.high] {
                assert!((lowest..=highest).contains(&rate), "{seed}: {found:?}");
            }
        }
        let above = boundary.not_measured(boundary.few_per_s.high);
        cut += usize::from(above == Some(NotMeasured::Above));
        let inside = boundary.not_measured((lowest * highest).sqrt());
        assert_eq!(inside, None, "{seed}: {found:?}");
    }
    assert!(cut >= 25, "{cut} of 50 were cut");
}

#[test]
fn both_sides_of_a_sharp_boundary_are_measured_again() {
    let (found, _) = search(settings(), |rate| rate <= 3000.0);
    let near = |one: &&TriedRate| (one.rate_per_s / 3000.0).ln().abs() < 0.1;
    let near: Vec<&TriedRate> = found.tried.iter().filter(near).collect();
    let kept: u32 = near.iter().map(|one| one.kept_count).sum();
    let missed: u32 = near.iter().map(|one| one.missed_count).sum();
    assert!(kept >= 3 && missed >= 3, "{found:?}");
}

#[test]
fn limits_end_the_search_with_their_reason() {
    let (found, _) = search(settings(), |_| true);
    assert_eq!((found.end, found.rate_per_s), (ObjectiveEnd::AlwaysKept, Some(1e7)));
    let (found, _) = search(settings(), |_| false);
    assert_eq!((found.end, found.rate_per_s), (ObjectiveEnd::NeverKept, None));
    assert_eq!(found.always_missed_from_per_s, Some(1.0));
    let few = ObjectiveSettings { max_measurements: 3, ..settings() };
    let (found, measurements) = search(few, |rate| rate < 3000.0);
    assert_eq!((found.end, measurements), (ObjectiveEnd::OutOfMeasurements, 3));
    // The third was missed: the boundary is known to lie between the others.
    let half = found.boundary.unwrap().half_per_s;
    assert_eq!(found.rate_per_s, Some(half.value));
    assert!(half.low < found.tried[1].rate_per_s * 1.1 && half.contains(3000.0));
    assert!(half.high > found.tried[2].rate_per_s * 0.9, "{half:?}");
    let few = ObjectiveSettings { max_measurements: 2, ..settings() };
    let (found, _) = search(few, |rate| rate < 3000.0);
    assert_eq!((found.rate_per_s, found.boundary), (Some(found.tried[1].rate_per_s), None));
    let mut stopped = ObjectiveSearch::new(settings());
    stopped.record(true);
    stopped.stop(ObjectiveEnd::OutOfMeasurements);
    let ObjectiveStep::Done(found) = stopped.step() else { panic!("it goes on") };
    assert_eq!((found.end, found.tried.len()), (ObjectiveEnd::OutOfMeasurements, 1));
}

#[test]
fn interrupted_search_has_the_kept_and_the_missed_rate() {
    let mut search = ObjectiveSearch::new(settings());
    search.record(true);
    search.record(false);
    let (kept, missed) = search.bracket();
    search.stop(ObjectiveEnd::Interrupted);
    let ObjectiveStep::Done(found) = search.step() else { panic!("it goes on") };
    assert_eq!((found.end, found.boundary), (ObjectiveEnd::Interrupted, None));
    assert_eq!((found.always_kept_up_to_per_s, found.always_missed_from_per_s), (kept, missed));
    assert_eq!(found.rate_per_s, kept);
    assert!(kept < missed && kept.is_some(), "{found:?}");
}

#[test]
fn last_allowed_measurement_can_decide_the_search() {
    for (boundary, end) in [
        (3000.0, ObjectiveEnd::Resolved),
        (1e9, ObjectiveEnd::AlwaysKept),
        (0.1, ObjectiveEnd::NeverKept),
    ] {
        let (found, needed) = search(settings(), |rate| rate <= boundary);
        assert_eq!(found.end, end);
        let with = |max_measurements| {
            let limited = ObjectiveSettings { max_measurements, ..settings() };
            search(limited, |rate| rate <= boundary).0
        };
        assert_eq!(with(needed), found);
        assert_eq!(with(needed - 1).end, ObjectiveEnd::OutOfMeasurements);
    }
}

#[test]
fn the_first_rates_differ_by_factors_of_two_four_and_sixteen() {
    for (direction, side) in [(1.0, true), (-1.0, false)] {
        let mut rates = Vec::new();
        let few = ObjectiveSettings { max_measurements: 4, min_rate_per_s: 1e-3, ..settings() };
        search(few, |rate| {
            rates.push(rate);
            side
        });
        let factors = rates.windows(2).map(|pair| (pair[1] / pair[0]).log2());
        // Up to the grid.
        for (factor, doublings) in factors.zip([1.0, 2.0, 4.0]) {
            assert!((factor * direction / doublings - 1.0).abs() < 0.03, "{rates:?}");
        }
    }
}

#[test]
fn a_start_outside_of_the_limits_is_moved_to_them() {
    let limited =
        ObjectiveSettings { min_rate_per_s: 2000.0, max_rate_per_s: 5000.0, ..settings() };
    let mut rates = Vec::new();
    search(limited, |rate| {
        rates.push(rate);
        rate < 3000.0
    });
    assert_eq!(rates[0], 2000.0);
    assert!(rates.iter().all(|rate| (2000.0..=5000.0).contains(rate)), "{rates:?}");
}

#[test]
fn unlucky_first_measurement_is_corrected() {
    for unlucky in 0..6 {
        let mut number = 0;
        let (found, _) = search(settings(), |rate| {
            number += 1;
            (rate <= 5000.0) != (number == unlucky + 1)
        });
        let rate = found.rate_per_s.unwrap();
        assert!((rate / 5000.0).ln().abs() < 0.08, "{unlucky}: {found:?}");
    }
}

/// Number of 100 triples of searches that agree within 10 %, and their mean rate.
fn agreement(mut one: impl FnMut(u64) -> f64) -> (usize, f64) {
    let (mut agreed, mut sum) = (0, 0.0);
    for trial in 0..100 {
        let rates = [0, 1, 2].map(|run| one(trial * 3 + run));
        let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = rates.iter().copied().fold(0.0, f64::max);
        agreed += usize::from(highest <= lowest * 1.1);
        sum += rates.iter().sum::<f64>();
    }
    (agreed, sum / 300.0)
}

#[test]
fn three_searches_agree_although_the_boundary_is_blurred() {
    // Measured p99s err by 10 %, and grow with the rate as on one exponential server.
    let (agreed, mean) = agreement(|seed| {
        let errors = normal(seed, 100);
        let mut number = 0;
        let server = |rate: f64| {
            number += 1;
            let p99_s = 100f64.ln() / (6000.0 - rate).max(1.0);
            p99_s * (0.1 * errors[number]).exp() <= 0.005
        };
        search(settings(), server).0.rate_per_s.unwrap()
    });
    let truth = 6000.0 - 100f64.ln() / 0.005;
    assert!(agreed >= 95, "{agreed} of 100");
    assert!((mean / truth - 1.0).abs() < 0.03, "{mean} {truth}");
}

#[test]
fn searches_on_a_simulated_server_agree_and_find_its_boundary() {
    let (agreed, mean) = agreement(|seed| {
        let mut number = 0;
        let server = |rate_per_s: f64| {
            number += 1;
            let system = System {
                source: Source::Open { rate_per_s },
                stations: vec![Station { servers: 1, service: Service::Exponential(0.001) }],
                warm_up_s: 1.0,
                window_s: 10.0,
            };
            let seen = simulate(&system, seed * 1000 + number);
            seen.response_quantile_s(0.99) <= 0.02
        };
        let settings = ObjectiveSettings::starting_at(100.0);
        search(settings, server).0.rate_per_s.unwrap()
    });
    let truth = 1000.0 - 100f64.ln() / 0.02;
    assert!(agreed >= 95, "{agreed} of 100");
    assert!((mean / truth - 1.0).abs() < 0.05, "{mean} {truth}");
}

mod noisy;

#[test]
fn bracket_has_the_sides_so_far_then_the_answers_interval() {
    let mut search = ObjectiveSearch::new(ObjectiveSettings::starting_at(1000.0));
    assert_eq!(search.bracket(), (None, None));
    search.record(true);
    assert_eq!(search.bracket(), (Some(1000.0), None));
    search.record(false);
    let (low, high) = search.bracket();
    assert!(low == Some(1000.0) && high.is_some_and(|high| (1900.0..2100.0).contains(&high)));
    while let ObjectiveStep::Measure { rate_per_s } = search.step() {
        search.record(rate_per_s < 1300.0);
    }
    let (low, high) = search.bracket();
    let (low, high) = (low.unwrap(), high.unwrap());
    assert!((300.0..1300.0).contains(&low), "{low} to {high}");
    assert!((1100.0..1460.0).contains(&high) && low < high, "{low} to {high}");
}
