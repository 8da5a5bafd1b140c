//! Recording windows, and the selection for figures over time.

use dyno_record::model::PhaseKind;
use dyno_record::reader::{IntervalPoint, Run};
use std::collections::BTreeMap;

/// A window shorter than this share of the usual length is the rest of a phase; its rate says little.
const SHORT_WINDOW_RATIO: f64 = 0.5;

/// Totals of one recording window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalTotals {
    /// Phase that the window belongs to.
    pub phase: PhaseKind,
    /// Start in seconds, from the start of the run.
    pub start_s: f64,
    /// Length in seconds.
    pub duration_s: f64,
    /// Logical operations that succeeded.
    pub succeeded: u64,
    /// Logical operations that failed.
    pub failed: u64,
    /// For merged windows: start and end of the longest time in which windows had no success.
    pub gap_s: Option<(f64, f64)>,
    /// Mean response time of successful operations; `None` without any.
    pub response_mean_us: Option<f64>,
    /// Mean service time of successful operations; `None` without any.
    pub service_mean_us: Option<f64>,
    /// Time average of the operations in flight.
    pub mean_in_flight: f64,
}

impl IntervalTotals {
    /// The windows of a run.
    pub fn of_run(run: &Run) -> Vec<IntervalTotals> {
        let mut times: BTreeMap<(PhaseKind, u64), (u64, [f64; 2])> = BTreeMap::new();
        for point in &run.series {
            let (count, sums_us) = times.entry((point.phase, point.index)).or_default();
            *count += point.count;
            for (sum_us, latency) in sums_us.iter_mut().zip([&point.response, &point.service]) {
                *sum_us += latency.mean_us * point.count as f64;
            }
        }
        let of_point = |point: &IntervalPoint| {
            let time = times.get(&(point.phase, point.index)).filter(|(count, _)| *count > 0);
            let means_us = time.map(|(count, sums_us)| sums_us.map(|sum| sum / *count as f64));
            IntervalTotals {
                phase: point.phase,
                start_s: point.start_s,
                duration_s: point.duration_s,
                succeeded: point.succeeded,
                failed: point.failed,
                gap_s: point.gap_s,
                mean_in_flight: point.mean_in_flight,
                response_mean_us: means_us.map(|[response_us, _]| response_us),
                service_mean_us: means_us.map(|[_, service_us]| service_us),
            }
        };
        run.intervals.iter().map(of_point).collect()
    }

    /// Appends the next window.
    pub(crate) fn append(&mut self, next: &IntervalTotals) {
        let succeeded = self.succeeded + next.succeeded;
        let mean_us = |of: fn(&IntervalTotals) -> Option<f64>| {
            let sum_us = |one: &IntervalTotals| Some(of(one)? * one.succeeded as f64);
            let sums = [sum_us(self), sum_us(next)].into_iter().flatten();
            sums.reduce(|a, b| a + b).map(|sum_us| sum_us / succeeded as f64)
        };
        let means_us = [mean_us(|one| one.response_mean_us), mean_us(|one| one.service_mean_us)];
        [self.response_mean_us, self.service_mean_us] = means_us;
        self.succeeded = succeeded;
        let in_flight_s =
            self.mean_in_flight * self.duration_s + next.mean_in_flight * next.duration_s;
        self.mean_in_flight = in_flight_s / (self.duration_s + next.duration_s);
        self.duration_s += next.duration_s;
        self.failed += next.failed;
    }
}

/// Windows of a phase in order, with each short one added to the previous one: the only definition of the
/// windows for figures over time.
pub(crate) fn join_short<T>(
    windows: impl Iterator<Item = T>,
    duration_s: impl Fn(&T) -> f64,
    append: impl Fn(&mut T, &T),
) -> Vec<T> {
    let windows: Vec<T> = windows.collect();
    // The last planned window may be longer while its operations end.
    let mut lengths_s: Vec<f64> = windows.iter().map(&duration_s).collect();
    lengths_s.sort_by(f64::total_cmp);
    let usual_s = lengths_s.get(lengths_s.len() / 2).copied().unwrap_or(0.0);
    let mut joined: Vec<T> = Vec::with_capacity(windows.len());
    for window in windows {
        match joined.last_mut() {
            Some(last) if duration_s(&window) < usual_s * SHORT_WINDOW_RATIO => {
                append(last, &window);
            }
            _ => joined.push(window),
        }
    }
    joined
}
