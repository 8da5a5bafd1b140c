//! What a run of a search will say, once that is certain before its end: that it breaks a limit by which whole runs are judged, or
//! that what is tried is far slower than usual, which is no harm.

use super::beyond;
use dyno_record::experiment::Objective;
use dyno_record::interval::IntervalRecord;
use dyno_record::quantity::Quantity;

/// Operations beyond a limit that do not count: shares of whole numbers are rounded, and half of an operation is none.
const ROUNDING: f64 = 0.5;

/// Share of the usual rate below which nothing that follows matters to a search for a higher one, ...
const SLOW_RATIO: f64 = 0.5;

/// ... once this part of the run is over. If the rest were as usual, the whole run would still be a quarter below it.
const SLOW_PART: f64 = 0.5;

/// Limits of a whole run of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchLimits {
    /// Largest share of all operations that may fail.
    pub failed_ratio: f64,
    /// Limits of response times. One of the mean ends no run early: no part of a run tells how much the rest lowers it.
    pub responses: Vec<Objective>,
    /// How long it measures; `None` if that is not planned, and so nothing is certain before its end.
    pub duration_s: Option<f64>,
    /// Whether it may end because it is slow.
    pub may_end_if_slow: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Foregone {
    limits: SearchLimits,
    measured_s: f64,
    /// Length of the last window.
    window_s: f64,
    succeeded: f64,
    failed: f64,
    percentiles: Vec<Percentile>,
}

/// A limit of a percentile, and the operations so far.
#[derive(Debug)]
struct Percentile {
    limit: Objective,
    /// Share of the operations that may take longer.
    longer_ratio: f64,
    longer: f64,
    timed: f64,
}

impl Percentile {
    /// `None` for a limit of the mean.
    fn new(limit: &Objective) -> Option<Percentile> {
        Some(Percentile {
            longer_ratio: limit.longer_ratio()?,
            limit: limit.clone(),
            longer: 0.0,
            timed: 0.0,
        })
    }

    fn take(&mut self, window: &IntervalRecord) {
        let (longer, all) = beyond(window, (self.limit.limit_us * 1e3) as u64);
        self.longer += longer;
        self.timed += all;
    }
}

impl Foregone {
    pub(super) fn new(limits: SearchLimits) -> Foregone {
        Foregone {
            percentiles: limits
                .responses
                .iter()
                .filter_map(Percentile::new)
                .collect(),
            limits,
            measured_s: 0.0,
            window_s: 0.0,
            succeeded: 0.0,
            failed: 0.0,
        }
    }

    /// Takes one more window of the measured time.
    pub(super) fn take(&mut self, window: &IntervalRecord) {
        self.window_s = window.duration_ns as f64 / 1e9;
        self.measured_s += self.window_s;
        self.succeeded += window.counts.succeeded as f64;
        self.failed += window.counts.failed as f64;
        for percentile in &mut self.percentiles {
            percentile.take(window);
        }
    }

    /// Which limit the whole run breaks, whatever is still to come at the usual rate.
    pub(super) fn violation(&self, usual_per_s: f64) -> Option<String> {
        let left_s = (self.limits.duration_s? - self.measured_s).max(0.0);
        let breaks = |part: f64, all: f64, limit_ratio: f64| {
            let rate_per_s = usual_per_s.max(all / self.measured_s);
            part > limit_ratio * (all + left_s * rate_per_s) + ROUNDING
        };
        let ended = self.succeeded + self.failed;
        if breaks(self.failed, ended, self.limits.failed_ratio) {
            let ratio = Quantity::ratio(self.failed / ended);
            return Some(format!("{ratio} of the operations failed"));
        }
        let mut percentiles = self.percentiles.iter();
        let broken = percentiles.find(|one| breaks(one.longer, one.timed, one.longer_ratio))?;
        let name = broken.limit.name();
        let limit = Quantity::microseconds(broken.limit.limit_us);
        let ratio = Quantity::ratio(broken.longer / broken.timed);
        Some(format!(
            "{name} is above {limit}: {ratio} of the operations took longer"
        ))
    }

    /// Why nothing that follows matters.
    pub(super) fn slowness(&self, usual_per_s: f64) -> Option<String> {
        let duration_s = self.limits.duration_s?;
        let rate_per_s = self.succeeded / self.measured_s;
        let is_slow = self.limits.may_end_if_slow && rate_per_s < SLOW_RATIO * usual_per_s;
        // The window that follows has begun: ending in the last one saves nothing.
        let is_worth_it = self.measured_s + self.window_s < duration_s;
        (is_slow && is_worth_it && self.measured_s >= SLOW_PART * duration_s).then(|| {
            format!(
                "certainly worse after {}: the rate was {}, of {} before",
                Quantity::seconds(self.measured_s),
                Quantity::per_second(rate_per_s),
                Quantity::per_second(usual_per_s)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::WindowLimits;
    use super::super::tests::{limits, window};
    use super::*;
    use dyno_record::model::PhaseKind::{self, Measure, Warmup};

    /// Limits of runs of ten seconds, of which 1,000 operations per second are usual.
    fn searched(responses: &[Objective], duration_s: Option<f64>) -> WindowLimits {
        WindowLimits {
            search: Some(SearchLimits {
                failed_ratio: 0.001,
                responses: responses.to_vec(),
                duration_s,
                may_end_if_slow: true,
            }),
            ..limits()
        }
    }

    fn p99() -> WindowLimits {
        searched(&[Objective::of_percentile(99.0, 2_500.0)], Some(10.0))
    }

    /// After how many windows a run ends, and why: by a fault, or because it says enough.
    fn end(limits: WindowLimits, windows: &[IntervalRecord]) -> Option<(usize, bool, String)> {
        let mut check = limits.watch(&[]);
        let mut after = (1..).zip(windows);
        after.find_map(|(number, window)| match check.fault(window) {
            Some(fault) => Some((number, true, fault.reason())),
            None => Some((number, false, check.says_enough()?)),
        })
    }

    /// Windows with 1,000 operations each, of which so many take longer than the limit of the p99, and not longer than the one that
    /// ends any run.
    fn longer(phase: PhaseKind, counts: [u64; 10]) -> Vec<IntervalRecord> {
        let of_count = |count: &u64| window(phase, &[(1, 1_000 - count), (3, *count)], 0);
        counts.iter().map(of_count).collect()
    }

    #[test]
    fn a_p99_that_the_rest_of_the_run_cannot_bring_below_its_limit_ends_it() {
        // Of 10,000 operations 100 may take longer: a stall of one window is made up for, and more than that is not.
        let stall = [5, 46, 5, 5, 5, 5, 5, 5, 5, 5];
        assert_eq!(end(p99(), &longer(Measure, stall)), None);
        let twice = [19; 10];
        let (windows, is_fault, reason) = end(p99(), &longer(Measure, twice)).unwrap();
        assert_eq!((windows, is_fault), (6, true));
        assert!(reason.contains("p99 is above 2.50 ms: 1.9"), "{reason}");
        let ten_times = [49, 49, 49, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(end(p99(), &longer(Measure, ten_times)).unwrap().0, 3);
        // What the answer rests on goes on to its end, and so does a warm-up, and a run of unknown length.
        assert_eq!(end(limits(), &longer(Measure, twice)), None);
        assert_eq!(end(p99(), &longer(Warmup, twice)), None);
        let unknown = searched(&[Objective::of_percentile(99.0, 2_500.0)], None);
        assert_eq!(end(unknown, &longer(Measure, twice)), None);
    }

    #[test]
    fn the_first_of_several_percentiles_that_is_broken_for_certain_ends_a_run_and_a_mean_never_does()
     {
        let mean = Objective {
            statistic: "mean".into(),
            limit_us: 1.0,
        };
        let median = Objective::of_percentile(50.0, 900.0);
        let high = Objective::of_percentile(99.9, 2_500.0);
        let all = [mean, median, high.clone()];
        let ended = |responses: &[Objective], count| {
            let windows = longer(Measure, [count; 10]);
            end(searched(responses, Some(10.0)), &windows)
        };
        // Every operation takes longer than the limit of the median, which is certain after half of the run.
        let (windows, is_fault, reason) = ended(&all, 1).unwrap();
        assert_eq!((windows, is_fault), (6, true));
        assert!(reason.contains("p50 is above 900 µs: 100 %"), "{reason}");
        // Of 10,000 operations 10 may take longer than the p99.9.
        let (windows, _, reason) = ended(&all, 4).unwrap();
        assert_eq!(windows, 3);
        assert!(reason.contains("p99.9 is above 2.50 ms: 0.4"), "{reason}");
        assert_eq!(ended(&[high], 1), None);
    }

    #[test]
    fn failures_between_what_is_tolerated_and_what_ends_any_run_end_one_of_the_search() {
        let failing = |failed: [u64; 10]| {
            let windows = failed.iter();
            let windows = windows.map(|failed| window(Measure, &[(1, 1_000 - failed)], *failed));
            windows.collect::<Vec<_>>()
        };
        assert_eq!(end(p99(), &failing([1; 10])), None);
        let (windows, is_fault, reason) = end(p99(), &failing([5; 10])).unwrap();
        assert_eq!((windows, is_fault), (3, true));
        assert!(
            reason.contains("0.50 % of the operations failed"),
            "{reason}"
        );
    }

    #[test]
    fn less_than_half_of_the_usual_rate_in_half_of_the_run_is_enough_and_no_harm() {
        let rates = |rates: [u64; 10]| rates.map(|rate| window(Measure, &[(1, rate)], 0));
        let (windows, is_fault, reason) = end(p99(), &rates([400; 10])).unwrap();
        assert_eq!((windows, is_fault), (5, false));
        let told = "certainly worse after 5.0 s: the rate was 400.0/s, of 1,000/s before";
        assert_eq!(reason, told);
        // A stall at the start is made up for, one at the end is too late to save anything.
        let start = [
            200, 200, 200, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000,
        ];
        assert_eq!(end(p99(), &rates(start)), None);
        let late = [600, 600, 600, 600, 600, 600, 600, 600, 110, 110];
        assert_eq!(end(p99(), &rates(late)), None);
        assert_eq!(end(limits(), &rates([400; 10])), None);
    }
}
