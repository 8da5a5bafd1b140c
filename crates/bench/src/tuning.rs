//! Gain of the search of `dyno tune` compared with two other searches with the same number of comparisons: random settings, and one
//! setting after the other, as people tune by hand. The simulated server has known best settings; nothing is measured in real time,
//! so the figures are the same everywhere.

use anyhow::Result;
use dyno_analyze::search::tuning::space::{Parameter, Setting, defaults};
use dyno_analyze::search::tuning::{
    Comparison, Outcome, Purpose, Tuning, TuningResult, TuningSettings, TuningStep,
};
use dyno_report::page::plot::{Measure, Plot, PlotAxis, PlotMark, PlotSeries, Role, Stroke};
use dyno_report::page::{Page, Section, charts_of};
use dyno_testkit::simulate::{SURFACE, noisy_pairs, service_time, shortest_service_time};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::path::Path;

/// Numbers of comparisons of a search.
const BUDGETS: [usize; 8] = [3, 6, 9, 12, 16, 20, 30, 40];
/// Searches of each kind and number of comparisons.
const SEARCHES: u64 = 40;
/// Student's t quantile for the 95 % interval of their mean.
const OF_SEARCHES: f64 = 2.023;
/// Standard deviation of the logarithm of a run.
const NOISE: f64 = 0.05;
/// Pairs of runs for one comparison of a search.
const SEARCH_PAIRS: usize = 2;
/// Pairs of runs for a confirmation.
const CONFIRMATION_PAIRS: usize = 24;
/// Student's t quantile for the 95 % interval of a confirmation.
const OF_CONFIRMATION: f64 = 2.069;
/// Smallest gain of interest, as a logarithm.
const MARGIN: f64 = 0.04;

/// A kind of search; returns the confirmed settings after this many comparisons, if any.
type Search = fn(&mut Bench, u64, usize) -> Option<Setting>;

const SEARCHES_OF: [(&str, Role, Search); 3] = [
    ("dyno tune", Role::Measured, tuned),
    ("settings at random", Role::P99, at_random),
    ("one setting after the other", Role::Model, one_by_one),
];

/// The simulated server, measured with noise.
struct Bench {
    random: StdRng,
}

impl Bench {
    fn compare(&mut self, one: &Setting, other: &Setting, pairs: usize) -> Comparison {
        let truth = gain(one) - gain(other);
        let found = noisy_pairs(&mut self.random, truth, NOISE, pairs);
        Comparison {
            log_ratio: found.log_ratio,
            error: found.error,
            degrees_of_freedom: found.degrees_of_freedom,
        }
    }

    /// The candidate of a search, if it is significantly better than the defaults.
    fn confirmed(&mut self, candidate: Setting) -> Option<Setting> {
        let found = self.compare(&candidate, &defaults(&parameters()), CONFIRMATION_PAIRS);
        (found.log_ratio > OF_CONFIRMATION * found.error).then_some(candidate)
    }
}

fn parameters() -> Vec<Parameter> {
    let parameters = SURFACE.iter().map(|setting| match setting.is_ordered {
        true => Parameter::ordered(setting.values, setting.default),
        false => Parameter::choice(setting.values, setting.default),
    });
    parameters.collect()
}

/// True gain over the defaults, as a logarithm.
fn gain(setting: &Setting) -> f64 {
    (service_time(&defaults(&parameters())) / service_time(setting)).ln()
}

/// The search of `dyno tune`, with confirmation and removal of changes without effect.
fn tuned(bench: &mut Bench, seed: u64, comparisons: usize) -> Option<Setting> {
    let settings = TuningSettings { seed, trials: comparisons, margin: MARGIN };
    let mut tuning = Tuning::new(parameters(), settings);
    loop {
        match tuning.step() {
            TuningStep::Compare { purpose, one, other } => {
                let pairs = match purpose {
                    Purpose::Search => SEARCH_PAIRS,
                    Purpose::Confirm | Purpose::Ablate { .. } => CONFIRMATION_PAIRS,
                };
                tuning.record(Outcome::Compared(bench.compare(&one, &other, pairs)));
            }
            TuningStep::Done(TuningResult::Better { setting, .. }) => return Some(setting),
            TuningStep::Done(TuningResult::Nothing { .. }) => return None,
        }
    }
}

/// Random settings, each compared with the defaults; returns the best one observed.
fn at_random(bench: &mut Bench, seed: u64, comparisons: usize) -> Option<Setting> {
    let mut random = StdRng::seed_from_u64(seed);
    let base = defaults(&parameters());
    let mut best: Option<(f64, Setting)> = None;
    for _ in 0..comparisons {
        let drawn: Setting =
            SURFACE.iter().map(|setting| random.random_range(0..setting.values)).collect();
        let seen = bench.compare(&drawn, &base, SEARCH_PAIRS).log_ratio;
        if best.as_ref().is_none_or(|(highest, _)| seen > *highest) {
            best = Some((seen, drawn));
        }
    }
    bench.confirmed(best?.1)
}

/// One setting after the other in random order: compares both ends and their midpoints with the best so far, and keeps
/// improvements.
fn one_by_one(bench: &mut Bench, seed: u64, comparisons: usize) -> Option<Setting> {
    let mut order: Vec<usize> = (0..SURFACE.len()).collect();
    order.shuffle(&mut StdRng::seed_from_u64(seed));
    let tries = order.into_iter().flat_map(|place| {
        let (last, default) = (SURFACE[place].values - 1, SURFACE[place].default);
        let mut values = vec![0, default / 2, (default + last) / 2, last];
        values.dedup();
        values.retain(|value| *value != default);
        values.into_iter().map(move |value| (place, value))
    });
    let mut best = defaults(&parameters());
    for (place, value) in tries.take(comparisons) {
        let mut tried = best.clone();
        tried[place] = value;
        if bench.compare(&tried, &best, SEARCH_PAIRS).log_ratio > 0.0 {
            best = tried;
        }
    }
    bench.confirmed(best)
}

/// Mean true gain of confirmed settings, 0 without a confirmation, with the half-width of its 95 % interval.
fn mean_gain(search: Search, comparisons: usize) -> [f64; 2] {
    let gains = (0..SEARCHES).map(|seed| {
        let mut bench = Bench { random: StdRng::seed_from_u64(seed + 1000) };
        search(&mut bench, seed, comparisons).map_or(0.0, |setting| gain(&setting).exp_m1())
    });
    let gains: Vec<f64> = gains.collect();
    let count = gains.len() as f64;
    let mean = gains.iter().sum::<f64>() / count;
    let squares: f64 = gains.iter().map(|gain| (gain - mean).powi(2)).sum();
    let half = OF_SEARCHES * (squares / (count - 1.0) / count).sqrt();
    [mean, half]
}

/// Prints the table, and draws it into `folder`.
pub fn all(folder: &Path) -> Result<()> {
    let possible = (service_time(&defaults(&parameters())) / shortest_service_time() - 1.0) * 100.0;
    println!("confirmed gain in percent, at most {possible:.1}; means of {SEARCHES} searches");
    let labels = SEARCHES_OF.map(|(label, ..)| format!("{label:>30}"));
    println!("comparisons{}", labels.concat());
    let mut series = SEARCHES_OF.map(|(label, role, _)| {
        PlotSeries::curve(label, role, Stroke::LineAndPoints, std::iter::empty())
    });
    for comparisons in BUDGETS {
        print!("{comparisons:>11}");
        for ((_, _, search), series) in SEARCHES_OF.into_iter().zip(&mut series) {
            let [mean, half] = mean_gain(search, comparisons).map(|gain| gain * 100.0);
            print!("{:>30}", format!("{mean:.1} ± {half:.1}"));
            series.x.push(comparisons as f64);
            series.y.push(mean);
            series.low.push(Some(mean - half));
            series.high.push(Some(mean + half));
        }
        println!();
    }
    let plot = Plot {
        id: "plot-tuning".to_owned(),
        title: "Confirmed gain".to_owned(),
        caption: String::new(),
        x: PlotAxis::linear("comparisons of the search", Measure::Count),
        y: PlotAxis::linear("confirmed gain, percent", Measure::Count),
        series: series.into(),
        marks: vec![PlotMark::horizontal("at best".to_owned(), possible)],
    };
    let page = Page {
        sections: vec![Section { charts: charts_of([plot]), ..Section::default() }],
        ..Page::default()
    };
    for picture in dyno_pictures::pictures(&page)? {
        std::fs::write(folder.join("tuning.png"), dyno_pictures::png(&picture.svg)?)?;
    }
    Ok(())
}
