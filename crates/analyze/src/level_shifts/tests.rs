use super::*;
use dyno_testkit::simulate::{autoregressive, normal};

fn found(series: &[f64], seed: u64) -> LevelChanges {
    level_shifts(series, 1.0, seed)
}

/// Levels, each for a number of windows, with noise of this share of the level.
fn stepped(seed: u64, noise_ratio: f64, levels: &[(f64, usize)]) -> Vec<f64> {
    let levels: Vec<f64> = levels.iter().flat_map(|(level, count)| vec![*level; *count]).collect();
    let noise = normal(seed, levels.len());
    levels.iter().zip(noise).map(|(level, e)| level * (1.0 + noise_ratio * e)).collect()
}

/// A stationary load of 1000 with dips of 40 % that last 1 to 3 windows every 60.
fn with_dips(seed: u64, windows: usize) -> Vec<f64> {
    let start = (seed * 7 % 60) as usize;
    let mut series = stepped(seed, 0.05, &[(1_000.0, windows)]);
    for (place, value) in series.iter_mut().enumerate() {
        let since = (place + start) % 60;
        let length = 1 + (place + start) / 60 % 3;
        if since < length {
            *value *= 0.6;
        }
    }
    series
}

fn scaled(noise: Vec<f64>, noise_ratio: f64) -> Vec<f64> {
    noise.iter().map(|e| 1_000.0 * (noise_ratio * e).exp()).collect()
}

/// A heavy tail: values with this exponent of Pareto's distribution.
fn pareto(seed: u64, windows: usize, exponent: f64) -> Vec<f64> {
    let above = |e: &f64| crate::robust::normal_tail(*e).max(1e-12);
    normal(seed, windows).iter().map(|e| above(e).powf(-1.0 / exponent)).collect()
}

fn with_outlier(seed: u64, windows: usize) -> Vec<f64> {
    let mut series = stepped(seed, 0.05, &[(1_000.0, windows)]);
    series[(seed as usize * 13) % windows] *= if seed.is_multiple_of(2) { 50.0 } else { 0.01 };
    series
}

type Load = fn(u64, usize) -> Vec<f64>;

/// Stationary loads by name.
const STATIONARY: [(&str, Load); 8] = [
    ("white noise", |seed, n| scaled(normal(seed, n), 0.15)),
    ("autoregression 0.5", |seed, n| scaled(autoregressive(seed, n, 0.5), 0.15)),
    ("autoregression 0.8", |seed, n| scaled(autoregressive(seed, n, 0.8), 0.15)),
    ("autoregression 0.8 below 0", |seed, n| autoregressive(seed, n, 0.8)),
    ("dips", with_dips),
    ("lognormal", |seed, n| scaled(normal(seed, n), 1.0)),
    ("pareto", |seed, n| pareto(seed, n, 1.5)),
    ("outlier", with_outlier),
];

/// Numbers of series with a false change and with a false drift.
fn false_alarms(load: Load, windows: usize, series: u64) -> (usize, usize) {
    let changes = |seed| found(&load(seed + 10_000, windows), seed);
    let changes: Vec<LevelChanges> = (0..series).map(changes).collect();
    let shifts = changes.iter().filter(|one| !one.shifts.is_empty());
    let drifts = changes.iter().filter(|one| one.drift.is_some());
    (shifts.count(), drifts.count())
}

#[test]
fn stationary_loads_raise_no_more_false_alarms_than_stated() {
    for (name, load) in STATIONARY {
        let (short, long) = (false_alarms(load, 60, 100), false_alarms(load, 300, 100));
        let (shifts, drifts) = (short.0 + long.0, short.1 + long.1);
        // More than 6 of 200 have a probability of 0.4 % at 1 %.
        assert!(shifts <= 6, "{name}: {shifts} changes in 200 series");
        assert!(drifts <= 6, "{name}: {drifts} drifts in 200 series");
    }
}

#[test]
#[ignore = "takes minutes: 3,200 series of each length"]
fn stationary_loads_of_any_length_keep_the_false_alarm_rate() {
    for windows in [20, 60, 120, 300, 600] {
        let rates: Vec<_> = STATIONARY
            .into_iter()
            .map(|(name, load)| (name, false_alarms(load, windows, 400)))
            .collect();
        // More than 11 of 400 have a probability of 0.1 % at 1 %.
        let most =
            |of: fn(&(usize, usize)) -> usize| rates.iter().map(|(_, found)| of(found)).max();
        assert!(most(|found| found.0) <= Some(11), "{windows} windows: {rates:?}");
        assert!(most(|found| found.1) <= Some(11), "{windows} windows: {rates:?}");
        let shifts: usize = rates.iter().map(|(_, found)| found.0).sum();
        assert!(shifts <= 32, "{windows} windows: {rates:?}");
    }
}

/// Number of 60 series with all these changes and no others, each within some windows of its position.
fn right(noise_ratio: f64, levels: &[(f64, usize)], within: usize) -> usize {
    let mut place = 0;
    let places: Vec<usize> = levels[..levels.len() - 1]
        .iter()
        .map(|(_, count)| {
            place += count;
            place
        })
        .collect();
    let is_right = |seed: &u64| {
        let shifts = found(&stepped(*seed, noise_ratio, levels), *seed).shifts;
        let near = |(shift, place): (&LevelShift, &usize)| shift.index.abs_diff(*place) <= within;
        shifts.len() == places.len() && shifts.iter().zip(&places).all(near)
    };
    (0..60).filter(is_right).count()
}

#[test]
fn step_of_20_percent_in_5_percent_noise_is_found_in_2_windows() {
    for levels in [[(1_000.0, 60), (800.0, 60)], [(1_000.0, 150), (1_200.0, 30)]] {
        let right = right(0.05, &levels, 2);
        assert!(right >= 57, "{levels:?}: {right} of 60");
    }
    // A minute of seconds contains less information about its memory.
    let right = right(0.05, &[(1_000.0, 40), (1_200.0, 20)], 2);
    assert!(right >= 51, "{right} of 60");
}

#[test]
fn a_collapse_to_a_fifth_is_found_at_its_window() {
    for levels in [[(1_000.0, 200), (200.0, 100)], [(5_000.0, 45), (1_000.0, 75)]] {
        let right = right(0.05, &levels, 1);
        assert!(right >= 58, "{levels:?}: {right} of 60");
    }
}

#[test]
fn several_steps_and_a_loss_with_its_recovery_are_found() {
    let stairs = [(1_000.0, 100), (800.0, 100), (600.0, 100)];
    let loss = [(1_000.0, 500), (500.0, 20), (1_000.0, 80)];
    let many = [(1_000.0, 60), (2_000.0, 60), (500.0, 60), (700.0, 60)];
    for levels in [&stairs[..], &loss[..], &many[..]] {
        let right = right(0.05, levels, 2);
        assert!(right >= 54, "{levels:?}: {right} of 60");
    }
}

#[test]
fn change_has_levels_time_and_possible_range() {
    let series = stepped(4, 0.05, &[(1_000.0, 100), (800.0, 100)]);
    let changes = level_shifts(&series, 10.0, 1);
    let shift = changes.shifts[0];
    assert!(
        (shift.before / 1_000.0 - 1.0).abs() < 0.02 && (shift.after / 800.0 - 1.0).abs() < 0.02
    );
    assert!((shift.after / shift.before - 0.8).abs() < 0.02 && shift.p_value_ratio < 1e-4);
    assert!((shift.earliest_index..=shift.latest_index).contains(&100), "{shift:?}");
    assert!(shift.latest_index - shift.earliest_index <= 6, "{shift:?}");
    assert_eq!(changes.drift, None);
}

#[test]
fn a_slow_drift_is_a_drift_and_not_steps() {
    for (over_series, windows) in [(0.3, 300), (3.0, 600), (-0.4, 300)] {
        let (mut reported, mut steps) = (0, 0);
        for seed in 0..40 {
            let noise = normal(seed, windows).into_iter().enumerate();
            let line = |place| 1_000.0 * (1.0 + over_series * place as f64 / windows as f64);
            let series: Vec<f64> = noise.map(|(i, e)| line(i) * (1.0 + 0.05 * e)).collect();
            let changes = found(&series, seed);
            steps += changes.shifts.len();
            let Some(drift) = changes.drift else { continue };
            reported += 1;
            let found = drift.over_series_ratio;
            assert!((found / over_series - 1.0).abs() < 0.3, "{seed}: {drift:?}");
            assert_eq!(drift.per_hour_ratio > 0.0, over_series > 0.0);
        }
        assert!(reported >= 38, "{over_series}: {reported} of 40");
        assert!(steps <= 2, "{over_series}: {steps} steps in 40 series");
    }
}

#[test]
fn step_on_a_drift_is_reported_with_the_drift() {
    let mut both = 0;
    for seed in 0..20 {
        let noise = normal(seed, 400).into_iter().enumerate();
        let line = |place: usize| {
            let level = if place < 250 { 1_000.0 } else { 400.0 };
            level * (0.001 * place as f64).exp()
        };
        let series: Vec<f64> = noise.map(|(i, e)| line(i) * (1.0 + 0.03 * e)).collect();
        let changes = found(&series, seed);
        let is_step = changes.shifts.len() == 1 && changes.shifts[0].index.abs_diff(250) <= 1;
        let drift = changes.drift.map_or(0.0, |drift| drift.over_series_ratio);
        both += usize::from(is_step && (0.4..0.6).contains(&drift));
    }
    assert!(both >= 18, "{both} of 20");
}

#[test]
fn changes_below_the_least_ratio_are_not_reported() {
    let series = stepped(2, 0.01, &[(1_000.0, 150), (970.0, 150)]);
    assert_eq!(found(&series, 1).shifts, []);
    let series = stepped(2, 0.01, &[(1_000.0, 150), (930.0, 150)]);
    assert_eq!(found(&series, 1).shifts.len(), 1);
}

#[test]
fn server_death_leaves_a_level_of_zero() {
    let mut series = stepped(3, 0.05, &[(1_000.0, 100), (1.0, 50)]);
    series[100..].fill(0.0);
    let shifts = found(&series, 1).shifts;
    assert_eq!((shifts.len(), shifts[0].index, shifts[0].after), (1, 100, 0.0));
}

#[test]
fn same_seed_gives_the_same_answer_in_any_unit() {
    let series = stepped(5, 0.05, &[(1_000.0, 80), (900.0, 80)]);
    let first = found(&series, 3);
    assert_eq!(first, found(&series, 3));
    let micros: Vec<f64> = series.iter().map(|value| value * 1e6).collect();
    let places =
        |changes: &LevelChanges| changes.shifts.iter().map(|s| s.index).collect::<Vec<_>>();
    assert_eq!(places(&first), places(&found(&micros, 3)));
}

#[test]
fn constant_short_and_broken_series_have_no_changes() {
    assert_eq!(found(&[7.0; 100], 1), LevelChanges::default());
    assert_eq!(found(&[0.0; 100], 1), LevelChanges::default());
    let mut short = [1.0; 19];
    short[10..].fill(9.0);
    assert_eq!(found(&short, 1), LevelChanges::default());
    let mut broken = stepped(1, 0.05, &[(1_000.0, 50), (200.0, 50)]);
    broken[4] = f64::NAN;
    assert_eq!(found(&broken, 1), LevelChanges::default());
}

#[test]
fn two_hours_of_seconds_with_changes_are_searched() {
    let levels = [(1_000.0, 2_000), (500.0, 100), (1_000.0, 3_000), (1_200.0, 2_100)];
    let shifts = found(&stepped(1, 0.05, &levels), 1).shifts;
    let places: Vec<usize> = shifts.iter().map(|shift| shift.index).collect();
    assert_eq!(places, [2_000, 2_100, 5_100]);
}

#[test]
fn reported_levels_match_the_measured_ones() {
    // A disk that is throttled after two minutes: response times climb for ten windows to a multiple.
    let flat = stepped(3, 0.1, &[(1_200.0, 121)]);
    let climb = (1..=10).map(|step| 1.1e6 * f64::from(step));
    let queue = stepped(4, 0.05, &[(1.15e7, 120)]);
    let series: Vec<f64> = flat.into_iter().chain(climb).chain(queue).collect();
    let shifts = found(&series, 7).shifts;
    let first = shifts.iter().find(|shift| shift.index >= 100).expect("a change");
    assert!((first.index as i64 - 121).abs() <= 1, "{shifts:?}");
    assert!((first.before / 1_200.0 - 1.0).abs() < 0.2, "{shifts:?}");
    for shift in &shifts {
        assert!(shift.before > 900.0 && shift.after < 1.3e7, "{shift:?}");
    }
}
