//! The runs before any change: how long a run takes, and what ends one that does harm.

use super::across;
use crate::error::Error;
use crate::experiment::campaign::Campaign;
use crate::experiment::points::WhichPlan;
use crate::run::limits::{SearchLimits, WindowLimits};
use dyno_analyze::experiment::tune::Baseline;
use dyno_plan::model::PhasePlan;
use dyno_record::experiment::{Figures, TuneGoal, TuneOptions};
use std::time::Instant;

/// How many times the 99th percentile before any change an operation may take, where no limit is given.
const LONGER: f64 = 20.0;

/// Those of one workload.
pub(super) struct FirstRuns {
    pub(super) baseline: Baseline,
    /// Time of each of them that was made now.
    pub(super) run_s: Vec<f64>,
}

/// Makes those of all workloads, or takes them from an experiment that goes on.
pub(super) fn measure(
    campaign: &mut Campaign<'_>,
    plans: &[WhichPlan],
) -> Result<Vec<FirstRuns>, Error> {
    let of_each = across::options(campaign)?;
    let (mut all, mut number) = (Vec::new(), 0);
    for (which, options) in plans.iter().zip(&of_each) {
        let mut first = FirstRuns {
            baseline: Baseline::new(options, number),
            run_s: Vec::new(),
        };
        while !first.baseline.is_complete() {
            let point = campaign.document.points.get(number);
            let is_new = point.is_none_or(|point| point.figures.is_none());
            let begin = Instant::now();
            let figures = campaign.measure(&[], which, number)?;
            let run_s = begin.elapsed().as_secs_f64();
            let stolen_ratio = first.baseline.take(figures);
            if is_new {
                first.run_s.push(run_s);
                campaign.note_set_aside(stolen_ratio);
            }
            number += 1;
        }
        all.push(first);
    }
    Ok(all)
}

/// What ends a run that does harm, and what ends one of the search besides.
pub(super) fn limits(
    options: &TuneOptions,
    baseline: &[Figures],
    is_local: bool,
    phases: &PhasePlan,
    may_end_if_slow: bool,
) -> WindowLimits {
    let count = baseline.len().max(1) as f64;
    let rates = baseline.iter().map(|figures| figures.rate_per_s.value);
    let p99 = baseline
        .iter()
        .filter_map(|figures| figures.percentile("p99"));
    let p99_us = p99.map(|p99| p99.value).fold(0.0, f64::max);
    // A window is short: what the whole run is judged by is the limit itself, before its end if that is certain.
    let limit_us = options
        .p99_limit_us
        .map_or(p99_us * LONGER, |limit| limit * 2.0);
    WindowLimits {
        failed_ratio: options.failed_ratio.max(0.01),
        response_ns: (limit_us * 1e3) as u64,
        usual_rate_per_s: rates.sum::<f64>() / count,
        is_local,
        search: Some(SearchLimits {
            failed_ratio: options.failed_ratio,
            p99_ns: options.p99_limit_us.map(|limit| (limit * 1e3) as u64),
            duration_s: phases.duration.map(|length| length.0.as_secs_f64()),
            may_end_if_slow: may_end_if_slow && options.goal == TuneGoal::Rate,
        }),
    }
}
