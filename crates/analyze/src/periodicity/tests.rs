use super::*;
use dyno_testkit::simulate::{autoregressive, normal};

fn found(series: &[f64], window_s: f64) -> Vec<Pattern> {
    periodic_patterns(series, PeriodicitySettings::for_windows(window_s)).unwrap()
}

fn scaled(noise: Vec<f64>, noise_ratio: f64) -> Vec<f64> {
    noise
        .iter()
        .map(|e| 1_000.0 * (noise_ratio * e).exp())
        .collect()
}

/// Uniform values between 0 and 1.
fn uniform(seed: u64, count: usize) -> Vec<f64> {
    normal(seed ^ 0x5eed, count)
        .iter()
        .map(|e| crate::robust::normal_tail(*e))
        .collect()
}

/// Multiplies what lies in `[start, start + length)` of windows of length 1; parts of windows in part.
fn apply(series: &mut [f64], start: f64, length: f64, factor: f64) {
    for place in 0..series.len() {
        let (from, to) = (place as f64, place as f64 + 1.0);
        let overlap = (to.min(start + length) - from.max(start)).max(0.0);
        series[place] *= 1.0 + (factor - 1.0) * overlap;
    }
}

fn random_bursts(seed: u64, n: usize) -> Vec<f64> {
    let mut series = scaled(normal(seed, n), 0.1);
    for pair in uniform(seed, n / 20).chunks_exact(2) {
        apply(&mut series, pair[0] * n as f64, 1.0 + 4.0 * pair[1], 0.4);
    }
    series
}

fn one_burst(seed: u64, n: usize) -> Vec<f64> {
    let mut series = scaled(normal(seed, n), 0.1);
    apply(&mut series, n as f64 * 0.4, n as f64 * 0.05, 3.0);
    for place in 0..n / 10 {
        series[place] = 1_000.0 * (series[place] / 1_000.0).powi(6);
    }
    series
}

type Load = fn(u64, usize) -> Vec<f64>;
const WITHOUT: [(&str, Load); 9] = [
    ("white noise", |seed, n| scaled(normal(seed, n), 0.1)),
    ("autoregression 0.5", |seed, n| {
        scaled(autoregressive(seed, n, 0.5), 0.1)
    }),
    ("autoregression 0.9", |seed, n| {
        scaled(autoregressive(seed, n, 0.9), 0.1)
    }),
    ("autoregression 0.98", |seed, n| {
        scaled(autoregressive(seed, n, 0.98), 0.1)
    }),
    ("lognormal", |seed, n| scaled(normal(seed, n), 1.0)),
    ("random bursts", random_bursts),
    ("one burst and a noisy part", one_burst),
    ("steps", |seed, n| {
        let mut s = scaled(normal(seed, n), 0.05);
        let len = s.len();
        for v in s[len / 3..].iter_mut() {
            *v *= 0.5;
        }
        for v in s[len * 2 / 3..].iter_mut() {
            *v *= 3.0;
        }
        s
    }),
    ("trend", |seed, n| {
        scaled(normal(seed, n), 0.05)
            .iter()
            .enumerate()
            .map(|(i, v)| v * (1.0 + i as f64 / n as f64))
            .collect()
    }),
];

#[test]
fn lab() {
    for n in [60, 200, 600] {
        for (name, load) in WITHOUT {
            let start = std::time::Instant::now();
            let alarms = (0..200)
                .filter(|seed| !found(&load(*seed, n), 1.0).is_empty())
                .count();
            eprintln!(
                "{n} {name}: {alarms} of 200, {:.2} ms",
                start.elapsed().as_secs_f64() * 1e3 / 200.0
            );
        }
    }
}

#[test]
fn power_lab() {
    let show = |name: &str,
                count: u64,
                window_s: f64,
                series: &dyn Fn(u64) -> Vec<f64>,
                period_s: f64| {
        let mut right = 0;
        let mut extra = 0;
        let mut none = 0;
        let mut covered = 0;
        let start = std::time::Instant::now();
        let mut example = None;
        for seed in 0..count {
            let f = found(&series(seed), window_s);
            none += usize::from(f.is_empty());
            let r = f
                .iter()
                .find(|p| (p.period_s - period_s).abs() <= period_s / 60.0);
            right += usize::from(r.is_some());
            covered +=
                usize::from(r.is_some_and(|p| (p.period_s - period_s).abs() <= p.uncertainty_s));
            extra += f.len().saturating_sub(1);
            if r.is_none() && seed < 10 {
                eprintln!("  {seed}: {f:?}");
            }
            example = f.first().copied();
        }
        eprintln!(
            "{name}: right {right} (covered {covered}) of {count}, none {none}, extra {extra}, {:.1} ms; {example:?}",
            start.elapsed().as_secs_f64() * 1e3 / count as f64
        );
    };
    let dips = |seed: u64, n: usize, depth: f64, noise: f64, ar: f64, jitter: f64, walk: bool| {
        let mut s = scaled(autoregressive(seed, n, ar), noise);
        let u = uniform(seed, n);
        let mut t = 60.0 * u[0];
        let mut grid = t;
        for j in u.iter().skip(1) {
            if t >= n as f64 {
                break;
            }
            apply(&mut s, t, 2.0, 1.0 - depth);
            grid += 60.0;
            let d = 60.0 * jitter * (2.0 * j - 1.0);
            t = if walk { t + 60.0 + d } else { grid + d };
        }
        s
    };
    show(
        "dips 50 % in 5 %",
        50,
        1.0,
        &|s| dips(s, 600, 0.5, 0.05, 0.0, 0.0, false),
        60.0,
    );
    show(
        "dips 20 % in 5 %",
        50,
        1.0,
        &|s| dips(s, 600, 0.2, 0.05, 0.0, 0.0, false),
        60.0,
    );
    show(
        "dips 30 % in AR.8 10 %",
        50,
        1.0,
        &|s| dips(s, 600, 0.3, 0.1, 0.8, 0.0, false),
        60.0,
    );
    show(
        "dips 50 % 5 min",
        50,
        1.0,
        &|s| dips(s, 300, 0.5, 0.05, 0.0, 0.0, false),
        60.0,
    );
    show(
        "dips 50 % jitter grid",
        50,
        1.0,
        &|s| dips(s, 600, 0.5, 0.05, 0.0, 0.05, false),
        60.0,
    );
    show(
        "dips 50 % jitter walk",
        50,
        1.0,
        &|s| dips(s, 600, 0.5, 0.05, 0.0, 0.05, true),
        60.0,
    );
    show(
        "dips 50 % hour jitter walk",
        5,
        1.0,
        &|s| dips(s, 3600, 0.5, 0.05, 0.0, 0.05, true),
        60.0,
    );
    let flushes = |seed: u64, jitter: f64, walk: bool| {
        let mut s = scaled(normal(seed, 6000), 0.2);
        let u = uniform(seed, 700);
        let mut t = 10.0 * u[0];
        let mut grid = t;
        for j in u.iter().skip(1) {
            if t >= 6000.0 {
                break;
            }
            apply(&mut s, t, 1.0, 2.0);
            grid += 10.0;
            let d = 10.0 * jitter * (2.0 * j - 1.0);
            t = if walk { t + 10.0 + d } else { grid + d };
        }
        s
    };
    show("flush", 3, 0.01, &|s| flushes(s, 0.0, false), 0.1);
    show("flush jitter", 3, 0.01, &|s| flushes(s, 0.05, false), 0.1);
    show("flush walk", 3, 0.01, &|s| flushes(s, 0.05, true), 0.1);
    show(
        "two: 60",
        20,
        1.0,
        &|seed| {
            let mut s = dips(seed, 600, 0.5, 0.05, 0.0, 0.0, false);
            let mut t = 3.0;
            while t < 600.0 {
                apply(&mut s, t, 2.0, 1.5);
                t += 17.0;
            }
            s
        },
        60.0,
    );
    show(
        "two: 17",
        20,
        1.0,
        &|seed| {
            let mut s = dips(seed, 600, 0.5, 0.05, 0.0, 0.0, false);
            let mut t = 3.0;
            while t < 600.0 {
                apply(&mut s, t, 2.0, 1.5);
                t += 17.0;
            }
            s
        },
        17.0,
    );
    show(
        "wave",
        20,
        1.0,
        &|seed| {
            scaled(normal(seed, 600), 0.1)
                .iter()
                .enumerate()
                .map(|(i, v)| v * (1.0 + 0.3 * (i as f64 * std::f64::consts::TAU / 60.0).sin()))
                .collect()
        },
        60.0,
    );
    show(
        "half",
        20,
        1.0,
        &|seed| {
            scaled(normal(seed, 600), 0.1)
                .iter()
                .enumerate()
                .map(|(i, v)| if i % 100 < 50 { *v } else { v * 0.8 })
                .collect()
        },
        100.0,
    );
}
