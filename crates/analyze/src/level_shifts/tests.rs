use super::*;
use dyno_testkit::simulate::{autoregressive, normal};

fn settings(seed: u64) -> LevelShiftSettings {
    LevelShiftSettings::seeded(1.0, seed)
}

fn found(series: &[f64], seed: u64) -> LevelChanges {
    level_shifts(series, settings(seed)).unwrap()
}

/// Levels, each held for a number of windows, with noise of this share of the level.
fn stepped(seed: u64, noise_ratio: f64, levels: &[(f64, usize)]) -> Vec<f64> {
    let levels: Vec<f64> = levels
        .iter()
        .flat_map(|(level, count)| vec![*level; *count])
        .collect();
    let noise = normal(seed, levels.len());
    levels
        .iter()
        .zip(noise)
        .map(|(level, e)| level * (1.0 + noise_ratio * e))
        .collect()
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
    noise
        .iter()
        .map(|e| 1_000.0 * (noise_ratio * e).exp())
        .collect()
}

/// Uniform values made from normal ones.
fn pareto(seed: u64, windows: usize, exponent: f64) -> Vec<f64> {
    let above = |e: &f64| crate::robust::normal_tail(*e).max(1e-12);
    normal(seed, windows)
        .iter()
        .map(|e| above(e).powf(-1.0 / exponent))
        .collect()
}

fn with_outlier(seed: u64, windows: usize) -> Vec<f64> {
    let mut series = stepped(seed, 0.05, &[(1_000.0, windows)]);
    series[(seed as usize * 13) % windows] *= if seed % 2 == 0 { 50.0 } else { 0.01 };
    series
}

type Load = fn(u64, usize) -> Vec<f64>;

/// Stationary loads by name.
const STATIONARY: [(&str, Load); 8] = [
    ("white noise", |seed, n| scaled(normal(seed, n), 0.15)),
    ("autoregression 0.5", |seed, n| {
        scaled(autoregressive(seed, n, 0.5), 0.15)
    }),
    ("autoregression 0.8", |seed, n| {
        scaled(autoregressive(seed, n, 0.8), 0.15)
    }),
    ("autoregression 0.8 below 0", |seed, n| {
        autoregressive(seed, n, 0.8)
    }),
    ("dips", with_dips),
    ("lognormal", |seed, n| scaled(normal(seed, n), 1.0)),
    ("pareto", |seed, n| pareto(seed, n, 1.5)),
    ("outlier", with_outlier),
];

fn false_alarms(load: Load, windows: usize, series: u64) -> (usize, usize) {
    let changes = |seed| found(&load(seed + 10_000, windows), seed);
    let changes: Vec<LevelChanges> = (0..series).map(changes).collect();
    let shifts = changes.iter().filter(|one| !one.shifts.is_empty()).count();
    let drifts = changes.iter().filter(|one| one.drift.is_some()).count();
    (shifts, drifts)
}

#[test]
fn lab() {
    for windows in [20, 60, 120, 300] {
        for (name, load) in STATIONARY {
            let start = std::time::Instant::now();
            let alarms = false_alarms(load, windows, 400);
            eprintln!(
                "{windows:5} {name:30} shifts {:4} drifts {:4} of 400, {:.2} ms each",
                alarms.0,
                alarms.1,
                start.elapsed().as_secs_f64() * 1e3 / 400.0
            );
        }
    }
}

fn place_rate(levels: &[(f64, usize)], noise: f64, within: usize) -> (usize, usize) {
    let expected: Vec<usize> = levels
        .iter()
        .scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum)
        })
        .collect();
    let expected = &expected[..levels.len() - 1];
    let mut right = 0;
    let mut drifts = 0;
    for seed in 0..100 {
        let found = found(&stepped(seed, noise, levels), seed);
        let ok = found.shifts.len() == expected.len()
            && found
                .shifts
                .iter()
                .zip(expected)
                .all(|(s, e)| s.index.abs_diff(*e) <= within);
        right += usize::from(ok);
        if !ok && seed < 20 {
            eprintln!("   {seed} {found:?}");
        }
        drifts += usize::from(found.drift.is_some());
    }
    (right, drifts)
}

#[test]
fn power_lab() {
    for (levels, noise, within) in [
        (vec![(1000.0, 10), (200.0, 10)], 0.05, 1),
        (vec![(1000.0, 20), (200.0, 20)], 0.05, 1),
        (vec![(1000.0, 20), (800.0, 20)], 0.05, 2),
        (vec![(1000.0, 40), (800.0, 20)], 0.05, 2),
        (vec![(1000.0, 60), (800.0, 60)], 0.05, 2),
        (vec![(1000.0, 200), (200.0, 100)], 0.05, 1),
        (vec![(1000.0, 100), (800.0, 100), (600.0, 100)], 0.05, 2),
        (vec![(1000.0, 100), (800.0, 20), (1000.0, 180)], 0.05, 2),
        (vec![(1000.0, 500), (500.0, 20), (1000.0, 80)], 0.05, 2),
        (vec![(1000.0, 300), (940.0, 300)], 0.02, 3),
        (
            vec![
                (1000.0, 60),
                (2000.0, 60),
                (500.0, 60),
                (700.0, 60),
                (1500.0, 60),
            ],
            0.05,
            2,
        ),
    ] {
        let start = std::time::Instant::now();
        let rate = place_rate(&levels, noise, within);
        eprintln!(
            "{levels:?} {noise} {rate:?} of 200 {:.2} ms",
            start.elapsed().as_secs_f64() * 1e3 / 200.0
        );
    }
    for (d, n) in [(0.1, 120), (0.3, 300), (1.0, 600), (3.0, 600)] {
        let mut shifts = [0; 4];
        let mut drifts = 0;
        let mut ratio = 0.0;
        for seed in 0..100 {
            let s: Vec<f64> = normal(seed, n)
                .iter()
                .enumerate()
                .map(|(i, e)| 1000.0 * (1.0 + d * i as f64 / n as f64) * (1.0 + 0.05 * e))
                .collect();
            let f = found(&s, seed);
            shifts[f.shifts.len().min(3)] += 1;
            drifts += usize::from(f.drift.is_some());
            ratio += f.drift.map_or(0.0, |d| d.over_series_ratio);
        }
        eprintln!(
            "drift {d} {n}: shifts {shifts:?} drifts {drifts} mean {}",
            ratio / drifts as f64
        );
    }
    for n in [7200] {
        let s: Vec<f64> = stepped(
            1,
            0.05,
            &[(1000.0, 2000), (500.0, 100), (1000.0, 3000), (1200.0, 2100)],
        );
        let start = std::time::Instant::now();
        eprintln!("{n} {:?} {:?}", found(&s, 1), start.elapsed());
        let s = scaled(autoregressive(3, 7200, 0.8), 0.1);
        let start = std::time::Instant::now();
        eprintln!("{n} {:?} {:?}", found(&s, 1), start.elapsed());
    }
}
