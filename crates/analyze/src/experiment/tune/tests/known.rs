//! A simulated server with eight settings, of which three or none have an effect, searched as `dyno tune` does
//! it: the noise comes from the runs, and confirmations end by the width of their interval.

use super::*;
use dyno_testkit::simulate::{
    EFFECTIVE, SURFACE, SurfaceSetting, service_time, shortest_service_time,
};

/// Standard deviation of a run's logarithm.
const NOISE: f64 = 0.05;

/// The logarithm of the rate with these values, by their numbers.
type Truth = fn(&[usize]) -> f64;

fn slope(values: &[usize]) -> f64 {
    -service_time(values).ln()
}

fn flat(_: &[usize]) -> f64 {
    0.0
}

fn known(seed: u64, trials: u32) -> TuneOptions {
    let of_setting = |(place, setting): (usize, &SurfaceSetting)| {
        let key = format!("server.runtime_parameters.{place}");
        Knob {
            values: (0..setting.values).map(|value| value.to_string()).collect(),
            default: Some(setting.default),
            ordered: setting.is_ordered,
            ..knob(&place.to_string(), &key, None)
        }
    };
    TuneOptions {
        seed,
        trials: Some(trials),
        max_pairs: Some(24),
        knobs: SURFACE.iter().enumerate().map(of_setting).collect(),
        ..options(TuneGoal::Rate)
    }
}

/// The numbers of all values, if some are given by the numbers of their settings.
fn values(given: &BTreeMap<String, String>, prefix: &str) -> Vec<usize> {
    let of_setting = |(place, setting): (usize, &SurfaceSetting)| {
        let value = given.get(&format!("{prefix}{place}"));
        value.map_or(setting.default, |value| value.parse().unwrap())
    };
    SURFACE.iter().enumerate().map(of_setting).collect()
}

fn search(options: &TuneOptions, truth: Truth) -> TuneAnswer {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(options.seed + 1000);
    let mut run = |keys: &Keys| {
        let noise: f64 = StandardNormal.sample(&mut random);
        let log = truth(&values(keys, "server.runtime_parameters."));
        figures_of(TuneGoal::Rate, log + NOISE * noise)
    };
    let mut baseline = Baseline::new(options, 0);
    while !baseline.is_complete() {
        baseline.take(run(&Keys::new()));
    }
    let mut progress = TuneProgress::new(options, &baseline).unwrap();
    while let Some(TuneRun { keys, .. }) = progress.next_run() {
        let figures = run(&keys);
        progress.take(Ok(&figures)).unwrap();
    }
    progress.answer()
}

#[test]
fn three_of_eight_settings_that_count_are_found_and_no_others() {
    let found = (0..5).filter(|seed| {
        let options = known(*seed, 40);
        let answer = search(&options, slope);
        let changed: Vec<String> = answer.settings.keys().cloned().collect();
        let left = slope(&values(&answer.settings, "")) + shortest_service_time().ln();
        changed == EFFECTIVE.map(|place| place.to_string()) && left > -options.margin_ratio.ln_1p()
    });
    assert!(found.count() >= 4);
}

#[test]
fn no_gain_is_reported_when_none_of_eight_settings_counts() {
    let reported = (0..20).filter(|seed| {
        let answer = search(&known(*seed, 16), flat);
        // The visible gain is reported, whether or not it is relevant.
        assert!(answer.was_compared() && answer.visible_ratio > 0.0);
        !answer.settings.is_empty()
    });
    assert!(reported.count() <= 1);
}
