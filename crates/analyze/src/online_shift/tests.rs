use super::*;
use dyno_testkit::simulate::{autoregressive, normal};

fn alarms(series: impl IntoIterator<Item = f64>) -> Vec<Alarm> {
    let mut watch = OnlineShift::new(0.05);
    series
        .into_iter()
        .filter_map(|value| watch.push(value))
        .collect()
}

/// A level of 1000 and then another, with noise of this share.
fn stepped(seed: u64, noise_ratio: f64, quiet: usize, after: f64, more: usize) -> Vec<f64> {
    let noise = normal(seed, quiet + more).into_iter().enumerate();
    let level = |place| if place < quiet { 1_000.0 } else { after };
    noise
        .map(|(place, e)| level(place) * (1.0 + noise_ratio * e))
        .collect()
}

fn scaled(noise: Vec<f64>, noise_ratio: f64) -> Vec<f64> {
    noise
        .iter()
        .map(|e| 1_000.0 * (noise_ratio * e).exp())
        .collect()
}

fn with_dips(seed: u64, windows: usize) -> Vec<f64> {
    let mut series = stepped(seed, 0.05, windows, 0.0, 0);
    for (place, value) in series.iter_mut().enumerate() {
        if place % 60 < 1 + place / 60 % 3 {
            *value *= 0.6;
        }
    }
    series
}

fn with_outliers(seed: u64, windows: usize) -> Vec<f64> {
    let mut series = stepped(seed, 0.05, windows, 0.0, 0);
    for (place, value) in series.iter_mut().enumerate() {
        if (place as u64 * 7_919 + seed * 31) % 997 == 0 {
            *value *= if place % 2 == 0 { 20.0 } else { 0.01 };
        }
    }
    series
}

fn pareto(seed: u64, windows: usize) -> Vec<f64> {
    let above = |e: &f64| crate::robust::normal_tail(*e).max(1e-12);
    normal(seed, windows)
        .iter()
        .map(|e| above(e).powf(-1.0 / 1.5))
        .collect()
}

type Load = fn(u64, usize) -> Vec<f64>;

const STATIONARY: [(&str, Load); 8] = [
    ("white noise", |seed, n| scaled(normal(seed, n), 0.15)),
    ("autoregression 0.5", |seed, n| {
        scaled(autoregressive(seed, n, 0.5), 0.15)
    }),
    ("autoregression 0.8", |seed, n| {
        scaled(autoregressive(seed, n, 0.8), 0.15)
    }),
    ("autoregression 0.9", |seed, n| {
        scaled(autoregressive(seed, n, 0.9), 0.15)
    }),
    ("dips", with_dips),
    ("lognormal", |seed, n| scaled(normal(seed, n), 1.0)),
    ("pareto", pareto),
    ("outliers", with_outliers),
];

#[test]
fn lab() {
    for windows in [600, 20_000] {
        for (name, load) in STATIONARY {
            let start = std::time::Instant::now();
            let runs = 2_000_000 / windows as u64;
            let alarms: usize = (0..runs)
                .map(|seed| alarms(load(seed, windows)).len())
                .sum();
            eprintln!(
                "{windows} {name}: {alarms} in {}; {:?}",
                runs as usize * windows,
                start.elapsed()
            );
        }
    }
    for (noise, after, quiet, correlation) in [
        (0.05, 200.0, 120, 0.0),
        (0.05, 200.0, 300, 0.0),
        (0.05, 5_000.0, 300, 0.0),
        (0.05, 800.0, 120, 0.0),
        (0.05, 800.0, 300, 0.0),
        (0.05, 1200.0, 300, 0.0),
        (0.05, 1200.0, 1500, 0.0),
        (0.05, 800.0, 600, 0.5),
        (0.05, 800.0, 600, 0.8),
    ] {
        let mut delays = Vec::new();
        let mut exact = 0;
        for seed in 0..300 {
            let e = autoregressive(seed, quiet + 200, correlation);
            let s: Vec<f64> = e
                .iter()
                .enumerate()
                .map(|(i, e)| (if i < quiet { 1000.0 } else { after }) * (1.0 + noise * e))
                .collect();
            let found = alarms(s);
            if let Some(a) = found.first() {
                delays.push(a.raised_after as i64 - quiet as i64);
                exact += usize::from(a.index_of_change.abs_diff(quiet as u64) <= 1);
            }
        }
        delays.sort();
        eprintln!(
            "{noise} {after} {quiet} {correlation}: {} found, delays median {} p95 {} worst {}; exact {exact}",
            delays.len(),
            delays[delays.len() / 2],
            delays[delays.len() * 95 / 100],
            delays[delays.len() - 1]
        );
    }
}
