//! Whether what was measured is a steady state, and how much of it was still a warm-up.

use super::{Facts, IntervalTotals, about_phase};
use crate::experiment::figures::is_open;
use crate::stationary_part::{Stationarity, Subject, judge};
use crate::steady_state::SteadyState;
use dyno_record::model::{Caveat, CaveatKind, PhaseKind};
use dyno_record::quantity::Quantity;

/// A warm-up that changes the mean rate or the mean response time by less is not worth a caveat: what is left out of
/// the intervals of a run is told there anyway.
const RELEVANT_WARM_UP_RATIO: f64 = 0.02;

/// The measure phase has no steady state.
pub(super) fn not_steady(facts: &Facts<'_>) -> Vec<Caveat> {
    let windows = facts.full_measure_windows();
    let found = stationarity(facts, &windows);
    let subject = match found.subject {
        Subject::ResponseTime => "the mean response time",
        Subject::Rate => "the rate",
    };
    let message = match found.verdict {
        SteadyState::Steady | SteadyState::Undecided => return Vec::new(),
        SteadyState::Trend { change_ratio } => format!(
            "{subject} {} by {} from start to end of the phase",
            rose(change_ratio),
            Quantity::ratio(change_ratio.abs())
        ),
        SteadyState::Step { change_ratio } => format!(
            "{subject} {} by {} from the first half of the phase to the second",
            rose(change_ratio),
            Quantity::ratio(change_ratio.abs())
        ),
        SteadyState::Shift {
            position,
            change_ratio,
        } => format!(
            "{subject} {} by {} after {:.0} s of the phase",
            rose(change_ratio),
            Quantity::ratio(change_ratio.abs()),
            length_s(&windows[..position])
        ),
    };
    vec![about_phase(
        CaveatKind::NotSteady,
        PhaseKind::Measure,
        message,
        "use a longer `--warmup`, and a `--duration` of several checkpoints (60 s each)",
    )]
}

/// The start of the measure phase was still a warm-up.
pub(super) fn warm_up_measured(facts: &Facts<'_>) -> Vec<Caveat> {
    let windows = facts.full_measure_windows();
    let found = stationarity(facts, &windows);
    let (warm_up, rest) = windows.split_at(found.part.start);
    let changes = |mean: fn(&[&IntervalTotals]) -> Option<f64>| {
        let change_ratio = mean(rest)? / mean(&windows)? - 1.0;
        (change_ratio.abs() >= RELEVANT_WARM_UP_RATIO).then_some(change_ratio)
    };
    let change = match changes(mean_rate) {
        Some(change_ratio) => Some(("rate", change_ratio)),
        None => changes(mean_response).map(|change_ratio| ("mean response time", change_ratio)),
    };
    let Some((subject, change_ratio)) = change else {
        return Vec::new();
    };
    vec![about_phase(
        CaveatKind::WarmUpMeasured,
        PhaseKind::Measure,
        format!(
            "the first {:.0} s of the measured phase were still a warm-up: without them the {subject} is {} {}",
            length_s(warm_up),
            Quantity::ratio(change_ratio.abs()),
            if change_ratio > 0.0 {
                "higher"
            } else {
                "lower"
            }
        ),
        "use a longer `--warmup`; intervals and comparisons leave the warm-up out, the totals of the phase have it",
    )]
}

fn stationarity(facts: &Facts<'_>, windows: &[&IntervalTotals]) -> Stationarity {
    let rates: Vec<f64> = windows
        .iter()
        .map(|window| window.succeeded as f64 / window.duration_s)
        .collect();
    let responses: Option<Vec<f64>> = windows
        .iter()
        .map(|window| window.response_mean_us)
        .collect::<Option<_>>()
        .filter(|_| is_open(facts.document));
    judge(&rates, responses.as_deref())
}

fn length_s(windows: &[&IntervalTotals]) -> f64 {
    windows.iter().map(|window| window.duration_s).sum()
}

fn mean_rate(windows: &[&IntervalTotals]) -> Option<f64> {
    let succeeded: u64 = windows.iter().map(|window| window.succeeded).sum();
    (succeeded > 0).then(|| succeeded as f64 / length_s(windows))
}

fn mean_response(windows: &[&IntervalTotals]) -> Option<f64> {
    let succeeded: u64 = windows.iter().map(|window| window.succeeded).sum();
    let sum_us: f64 = windows
        .iter()
        .filter_map(|window| Some(window.response_mean_us? * window.succeeded as f64))
        .sum();
    (succeeded > 0).then(|| sum_us / succeeded as f64)
}

fn rose(change_ratio: f64) -> &'static str {
    match change_ratio > 0.0 {
        true => "rose",
        false => "fell",
    }
}
