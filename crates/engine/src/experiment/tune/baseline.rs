//! Runs before any change: their duration, and the limits that end harmful runs.

use super::across;
use crate::error::Error;
use crate::experiment::objectives::completed;
use crate::experiment::points::WhichPlan;
use crate::experiment::runner::ExperimentRunner;
use crate::run::limits::{LongerLimit, WindowLimits};
use dyno_analyze::experiment::tune::Baseline;
use dyno_plan::model::PhasePlan;
use dyno_record::experiment::{CLIENTS, Figures, Keys, Objective, TuneGoal, TuneOptions};
use std::time::Instant;

/// Response times up to this multiple of the p99 before any change are allowed, without a limit of
/// the user.
const LONGER: f64 = 20.0;

/// In a window, operations may exceed their limit by this factor, ...
const BEYOND_LIMIT: f64 = 2.0;

/// ... and a larger share may take longer than the percentile allows, by this factor, because a
/// window is short, ...
const MORE_BEYOND: f64 = 5.0;

/// ... but at least this share: a high percentile allows few operations, such as those during a
/// checkpoint.
const LEAST_LONGER_RATIO: f64 = 0.05;

/// First runs of one workload.
pub(super) struct FirstRuns {
    pub(super) baseline: Baseline,
    /// Duration of each run made by this process.
    pub(super) run_s: Vec<f64>,
}

/// Makes the first runs of all workloads, or takes them from a resumed experiment.
pub(super) fn measure(
    runner: &mut ExperimentRunner<'_>,
    plans: &[WhichPlan],
) -> Result<Vec<FirstRuns>, Error> {
    let of_each = across::options(runner)?;
    let (mut all, mut number) = (Vec::new(), 0);
    for (which, options) in plans.iter().zip(&of_each) {
        let mut first = FirstRuns { baseline: Baseline::new(options, number), run_s: Vec::new() };
        while !first.baseline.is_complete() {
            let point = runner.document.points.get(number);
            let is_new = point.is_none_or(|point| point.figures.is_none());
            let begin = Instant::now();
            let figures = runner.measure(Keys::new(), which, number)?;
            let run_s = begin.elapsed().as_secs_f64();
            let figures = completed(runner, &options.responses, figures, number)?;
            let stolen_ratio = first.baseline.take(figures);
            if is_new {
                first.run_s.push(run_s);
                runner.note_set_aside(stolen_ratio);
            }
            number += 1;
        }
        all.push(first);
    }
    Ok(all)
}

/// Share of the planned clients in a run with these keys, at most 1.
pub(super) fn client_ratio(keys: &Keys, planned: u32) -> f64 {
    let clients = keys.get(CLIENTS).and_then(|value| value.parse::<f64>().ok());
    clients.map_or(1.0, |clients| (clients / f64::from(planned.max(1))).min(1.0))
}

/// Whether a run before any change already breaks the limits, which is then not the fault of the
/// settings.
pub(super) fn stalls(
    runner: &ExperimentRunner<'_>,
    baseline: &Baseline,
    limits: &WindowLimits,
) -> Result<bool, Error> {
    for place in baseline.places() {
        if limits.are_broken_by(&runner.responses_of(place)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Limits that end harmful runs, and slow ones of the search.
pub(super) fn limits(
    options: &TuneOptions,
    baseline: &[Figures],
    is_local: bool,
    phases: &PhasePlan,
    may_end_if_slow: bool,
) -> WindowLimits {
    let if_slow = may_end_if_slow && options.goal == TuneGoal::Rate;
    let count = baseline.len().max(1) as f64;
    let rates = baseline.iter().map(|figures| figures.rate_per_s.value);
    let p99 = baseline.iter().filter_map(|figures| figures.percentile("p99"));
    let p99_us = p99.map(|p99| p99.value).fold(0.0, f64::max);
    WindowLimits {
        failed_ratio: options.failed_ratio.max(0.01),
        longer: of_window(&options.responses, p99_us),
        usual_rate_per_s: rates.sum::<f64>() / count,
        client_ratio: 1.0,
        may_stall: false,
        is_local,
        if_slow_s: phases.duration.filter(|_| if_slow).map(|length| length.0.as_secs_f64()),
    }
}

/// Limits of response times in a window. Windows are short: the actual limit applies to the whole
/// run.
fn of_window(responses: &[Objective], p99_us: f64) -> Vec<LongerLimit> {
    let limit = |time_us: f64, longer_ratio: f64| LongerLimit {
        response_ns: (time_us * 1e3) as u64,
        longer_ratio,
    };
    let of_percentile = |one: &Objective| {
        let longer_ratio = (one.longer_ratio()? * MORE_BEYOND).max(LEAST_LONGER_RATIO);
        // In a window all operations may exceed the limit of a median or a mean.
        (longer_ratio < 1.0).then(|| limit(one.limit_us * BEYOND_LIMIT, longer_ratio))
    };
    let limits: Vec<LongerLimit> = responses.iter().filter_map(of_percentile).collect();
    if !limits.is_empty() {
        return limits;
    }
    // Times far above those before any change are harmful, unless a limit allows them.
    let allowed_us = responses.iter().map(|one| one.limit_us * BEYOND_LIMIT);
    let longest_us = allowed_us.fold(p99_us * LONGER, f64::max);
    vec![limit(longest_us, LEAST_LONGER_RATIO)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_allows_five_times_the_share_of_each_percentile() {
        let of = |responses: &[Objective]| {
            let limits = of_window(responses, 1_000.0).into_iter();
            let limits = limits.map(|limit| (limit.response_ns, limit.longer_ratio));
            limits.collect::<Vec<_>>()
        };
        let percentile = |percent| Objective::of_percentile(percent, 5_000.0);
        let mean = |limit_us| Objective { statistic: "mean".into(), limit_us };
        assert_eq!(of(&[percentile(99.0)]), [(10_000_000, 0.05)]);
        assert_eq!(of(&[percentile(95.0)]), [(10_000_000, 0.25)]);
        // One of 20 operations is more than five times the share that a p99.9 allows.
        assert_eq!(of(&[percentile(99.9)]), [(10_000_000, 0.05)]);
        let several = [50.0, 90.0, 99.0].map(percentile);
        assert_eq!(of(&several), [(10_000_000, 0.5), (10_000_000, 0.05)]);
        // 20 times the earlier p99, or the value that a limit allows if it is larger.
        let before = [(20_000_000, 0.05)];
        assert_eq!(of(&[]), before);
        assert_eq!(of(&[percentile(80.0), mean(2_000.0)]), before);
        assert_eq!(of(&[mean(30_000.0)]), [(60_000_000, 0.05)]);
    }

    #[test]
    fn client_ratio_is_a_share_of_the_planned_clients() {
        let of = |key, value: &str| {
            let keys = [("server.cache", "1GiB"), (key, value)];
            let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
            client_ratio(&keys.into(), 32)
        };
        assert_eq!(of(CLIENTS, "8"), 0.25);
        assert_eq!(of(CLIENTS, "64"), 1.0);
        assert_eq!(of("server.journal", "8"), 1.0);
    }
}
