//! Whether the measurement is a steady state, and how much of it was still a warm-up.

use super::facts::{Facts, of_measure};
use crate::experiment::figures::is_open;
use crate::stationary_part::{Stationarity, SteadyState, Subject, judge};
use crate::values::{percent, seconds};
use crate::windows::IntervalTotals;
use dyno_record::model::{Caveat, CaveatKind};
use dyno_record::statement;

/// Smallest reported change of the mean rate or mean response time by a warm-up: a run reports the windows that
/// its intervals exclude anyway.
const RELEVANT_WARM_UP_RATIO: f64 = 0.02;

/// The measure phase has no steady state.
pub(super) fn not_steady(facts: &Facts<'_>) -> Option<Caveat> {
    let windows = facts.measure_windows();
    let found = stationarity(facts, &windows);
    let subject = match found.subject {
        Subject::ResponseTime => "mean_response_time",
        Subject::Rate => "rate",
    };
    let statement = match found.verdict {
        SteadyState::Steady | SteadyState::Undecided => return None,
        SteadyState::Trend { change_ratio } => {
            let change = percent(of_first(change_ratio));
            statement!("trend", subject = subject, change = change)
        }
        SteadyState::Shift { position, change_ratio } => {
            let (before, after) = windows.split_at(position);
            let mean = match found.subject {
                Subject::ResponseTime => mean_response,
                Subject::Rate => mean_rate,
            };
            let change = || Some(mean(after)? / mean(before)? - 1.0);
            statement!(
                "shift",
                subject = subject,
                change = percent(change().unwrap_or(change_ratio)),
                after = seconds(length_s(before))
            )
        }
    };
    Some(of_measure(CaveatKind::NotSteady, statement))
}

/// A change between the two ends as a share of the first value instead of the mean, so that nothing falls by more
/// than 100 %.
fn of_first(change_ratio: f64) -> f64 {
    let first = 1.0 - change_ratio / 2.0;
    if first > 0.0 { change_ratio / first } else { change_ratio }
}

/// The start of the measure phase was still a warm-up.
pub(super) fn warm_up_measured(facts: &Facts<'_>) -> Option<Caveat> {
    let windows = facts.measure_windows();
    let found = stationarity(facts, &windows);
    let (warm_up, rest) = windows.split_at(found.part.start);
    let changes = |mean: fn(&[IntervalTotals]) -> Option<f64>| {
        let change_ratio = mean(rest)? / mean(&windows)? - 1.0;
        (change_ratio.abs() >= RELEVANT_WARM_UP_RATIO).then_some(change_ratio)
    };
    let (subject, change_ratio) = match changes(mean_rate) {
        Some(change_ratio) => ("rate", change_ratio),
        None => ("mean_response_time", changes(mean_response)?),
    };
    let said = statement!(
        "warm-up-measured",
        warm_up = seconds(length_s(warm_up)),
        subject = subject,
        change = percent(change_ratio)
    );
    Some(of_measure(CaveatKind::WarmUpMeasured, said))
}

fn stationarity(facts: &Facts<'_>, windows: &[IntervalTotals]) -> Stationarity {
    let rates: Vec<f64> =
        windows.iter().map(|window| window.succeeded as f64 / window.duration_s).collect();
    let responses: Option<Vec<f64>> = windows
        .iter()
        .map(|window| window.response_mean_us)
        .collect::<Option<_>>()
        .filter(|_| is_open(facts.document));
    judge(&rates, responses.as_deref())
}

fn length_s(windows: &[IntervalTotals]) -> f64 {
    windows.iter().map(|window| window.duration_s).sum()
}

fn mean_rate(windows: &[IntervalTotals]) -> Option<f64> {
    let succeeded: u64 = windows.iter().map(|window| window.succeeded).sum();
    (succeeded > 0).then(|| succeeded as f64 / length_s(windows))
}

fn mean_response(windows: &[IntervalTotals]) -> Option<f64> {
    let succeeded: u64 = windows.iter().map(|window| window.succeeded).sum();
    let sum_us: f64 = windows
        .iter()
        .filter_map(|window| Some(window.response_mean_us? * window.succeeded as f64))
        .sum();
    (succeeded > 0).then(|| sum_us / succeeded as f64)
}
