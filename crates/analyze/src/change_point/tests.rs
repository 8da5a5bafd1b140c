use super::*;
use dyno_testkit::simulate::{autoregressive, normal};
use proptest::prelude::*;

fn settings(seed: u64) -> ChangePointSettings {
    ChangePointSettings { permutations: 199, ..ChangePointSettings::seeded(seed) }
}

/// Rates around levels, each for a number of results, with noise of 2 %.
fn history(seed: u64, levels: &[(f64, usize)]) -> Vec<f64> {
    let levels = levels.iter().flat_map(|(level, count)| vec![*level; *count]);
    let levels: Vec<f64> = levels.collect();
    let noise = normal(seed, levels.len());
    levels.iter().zip(noise).map(|(level, e)| level * (1.0 + 0.02 * e)).collect()
}

#[test]
fn a_drop_is_found_with_its_place_and_its_size() {
    let mut exact = 0;
    for seed in 0..50 {
        let series = history(seed, &[(1000.0, 30), (930.0, 10)]);
        let found = change_points(&series, settings(seed));
        assert_eq!(found.len(), 1, "{seed}: {found:?}");
        assert!((28..=32).contains(&found[0].position), "{seed}: {found:?}");
        assert!((found[0].change_ratio + 0.07).abs() < 0.03, "{seed}: {found:?}");
        assert!(found[0].p_value_ratio <= 0.01);
        exact += usize::from(found[0].position == 30);
    }
    assert!(exact >= 35, "{exact} of 50");
}

#[test]
fn several_changes_are_found_each_against_its_neighbours() {
    let series = history(3, &[(1000.0, 20), (1200.0, 15), (1100.0, 25), (1000.0, 20)]);
    let found = change_points(&series, settings(1));
    let positions: Vec<usize> = found.iter().map(|point| point.position).collect();
    assert_eq!(positions, [20, 35, 60]);
    assert!((found[1].before_mean / 1200.0 - 1.0).abs() < 0.02);
    assert!((found[1].after_mean / 1100.0 - 1.0).abs() < 0.02);
}

/// Number of 500 series with an alarm.
fn alarms(significance_ratio: f64, series: impl Fn(u64) -> Vec<f64>) -> usize {
    let settings = |seed| ChangePointSettings {
        significance_ratio,
        permutations: 99,
        ..ChangePointSettings::seeded(seed)
    };
    let alarm = |seed: &u64| !change_points(&series(*seed), settings(*seed)).is_empty();
    (0..500).filter(alarm).count()
}

#[test]
fn false_alarm_rate_matches_the_significance() {
    // More than 11 of 500 have a probability of 1 % at 1 %, and more than 37 at 5 %.
    let quiet = alarms(0.01, |seed| normal(seed, 30));
    assert!(quiet <= 11, "{quiet} of 500");
    let loud = alarms(0.05, |seed| normal(seed, 30));
    assert!((13..=37).contains(&loud), "{loud} of 500");
    // Outliers are not a change of level.
    let heavy = alarms(0.05, |seed| normal(seed, 30).iter().map(|e| e.powi(5)).collect());
    assert!(heavy <= 37, "{heavy} of 500");
}

#[test]
fn autocorrelation_raises_more_alarms() {
    let found = alarms(0.05, |seed| autoregressive(seed, 30, 0.7));
    assert!(found > 50, "{found} of 500");
}

#[test]
fn short_constant_and_broken_series_have_no_changes() {
    for series in [vec![], vec![1.0, 2.0, 3.0, 9.0, 9.0], vec![5.0; 40], vec![f64::NAN; 10]] {
        assert_eq!(change_points(&series, settings(1)), [], "{series:?}");
    }
}

#[test]
fn a_split_has_the_size_of_its_definition() {
    // Sides 0 0 and 1 1: distance 2, scaled by 2 · 2 / 4.
    let found = split(&[0.0, 0.0, 1.0, 1.0], 2).unwrap();
    assert_eq!((found.position, found.size), (2, 2.0));
    assert_eq!(split(&[0.0, 0.0, 1.0], 2), None);
    assert_eq!(split(&[], 2), None);
}

proptest! {
    #[test]
    fn the_running_sums_agree_with_the_definition(series in prop::collection::vec(-9.0..9.0f64, 6..20)) {
        let found = split(&series, 2).unwrap();
        let mean = |a: &[f64], b: &[f64], pairs: f64| a.iter().map(|x| distance_to(*x, b)).sum::<f64>() / pairs;
        let (left, right) = series.split_at(found.position);
        let (a, b) = (left.len() as f64, right.len() as f64);
        let energy = 2.0 * mean(left, right, a * b) - mean(left, left, a * (a - 1.0)) - mean(right, right, b * (b - 1.0));
        prop_assert!((energy * a * b / (a + b) - found.size).abs() < 1e-9);
    }

    #[test]
    fn the_unit_of_the_results_does_not_matter(seed in 0u64..100, scale in 1e-3..1e6f64) {
        let series = history(seed, &[(1000.0, 12), (900.0, 8)]);
        let scaled: Vec<f64> = series.iter().map(|value| value * scale).collect();
        let places = |series: &[f64]| change_points(series, settings(7)).iter().map(|p| p.position).collect::<Vec<_>>();
        prop_assert_eq!(places(&series), places(&scaled));
    }
}

#[test]
fn clearest_change_is_found_only_in_a_long_enough_series() {
    let settings = ChangePointSettings { permutations: 4_999, ..ChangePointSettings::seeded(1) };
    let fewest = settings.fewest_results();
    assert_eq!(fewest, 10);
    let found = |n: usize| {
        // Distinct values, so that no two orders are equal.
        let series: Vec<f64> =
            (0..n).map(|place| f64::from(place >= n / 2) * 1e3 + place as f64 * 1e-3).collect();
        change_points(&series, settings).len()
    };
    assert_eq!((found(fewest - 2), found(fewest)), (0, 1));
    let strict = ChangePointSettings { significance_ratio: 0.001, ..settings };
    assert!(strict.fewest_results() > fewest);
}
