//! What a run of a search will say, once that is certain before its end: that it breaks a limit by which whole runs are judged, or
//! that what is tried is far slower than usual, which is no harm.

use super::beyond;
use dyno_record::interval::IntervalRecord;
use dyno_record::quantity::Quantity;

/// Share of the operations that may take longer than their 99th percentile.
const BEYOND_P99_RATIO: f64 = 0.01;

/// Share of the usual rate below which nothing that follows matters to a search for a higher one, ...
const SLOW_RATIO: f64 = 0.5;

/// ... once this part of the run is over. If the rest were as usual, the whole run would still be a quarter below it.
const SLOW_PART: f64 = 0.5;

/// Limits of a whole run of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLimits {
    /// Largest share of all operations that may fail.
    pub failed_ratio: f64,
    /// Longest 99th percentile of the response time.
    pub p99_ns: Option<u64>,
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
    longer: f64,
    timed: f64,
}

impl Foregone {
    pub(super) fn new(limits: SearchLimits) -> Foregone {
        Foregone {
            limits,
            measured_s: 0.0,
            window_s: 0.0,
            succeeded: 0.0,
            failed: 0.0,
            longer: 0.0,
            timed: 0.0,
        }
    }

    /// Takes one more window of the measured time.
    pub(super) fn take(&mut self, window: &IntervalRecord) {
        self.window_s = window.duration_ns as f64 / 1e9;
        self.measured_s += self.window_s;
        self.succeeded += window.counts.succeeded as f64;
        self.failed += window.counts.failed as f64;
        if let Some(limit_ns) = self.limits.p99_ns {
            let (longer, all) = beyond(window, limit_ns);
            self.longer += longer;
            self.timed += all;
        }
    }

    /// Which limit the whole run breaks, whatever is still to come at the usual rate.
    pub(super) fn violation(&self, usual_per_s: f64) -> Option<String> {
        let left_s = (self.limits.duration_s? - self.measured_s).max(0.0);
        let breaks = |part: f64, all: f64, limit_ratio: f64| {
            let rate_per_s = usual_per_s.max(all / self.measured_s);
            part > limit_ratio * (all + left_s * rate_per_s)
        };
        let ended = self.succeeded + self.failed;
        if breaks(self.failed, ended, self.limits.failed_ratio) {
            let ratio = Quantity::ratio(self.failed / ended);
            return Some(format!("{ratio} of the operations failed"));
        }
        let limit = Quantity::microseconds(self.limits.p99_ns? as f64 / 1e3);
        breaks(self.longer, self.timed, BEYOND_P99_RATIO).then(|| {
            let ratio = Quantity::ratio(self.longer / self.timed);
            format!("p99 is above {limit}: {ratio} of the operations took longer")
        })
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
    use super::super::tests::{LIMITS, window};
    use super::*;
    use dyno_record::model::PhaseKind::{self, Measure, Warmup};

    /// Limits of runs of ten seconds, of which 1,000 operations per second are usual.
    const SEARCHED: WindowLimits = WindowLimits {
        search: Some(SearchLimits {
            failed_ratio: 0.001,
            p99_ns: Some(2_500_000),
            duration_s: Some(10.0),
            may_end_if_slow: true,
        }),
        ..LIMITS
    };

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
        assert_eq!(end(SEARCHED, &longer(Measure, stall)), None);
        let twice = [19; 10];
        let (windows, is_fault, reason) = end(SEARCHED, &longer(Measure, twice)).unwrap();
        assert_eq!((windows, is_fault), (6, true));
        assert!(reason.contains("p99 is above 2.50 ms: 1.9"), "{reason}");
        let ten_times = [49, 49, 49, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(end(SEARCHED, &longer(Measure, ten_times)).unwrap().0, 3);
        // What the answer rests on goes on to its end, and so does a warm-up, and a run of unknown length.
        assert_eq!(end(LIMITS, &longer(Measure, twice)), None);
        assert_eq!(end(SEARCHED, &longer(Warmup, twice)), None);
        let search = SEARCHED.search.map(|limits| SearchLimits {
            duration_s: None,
            ..limits
        });
        let unknown = WindowLimits { search, ..SEARCHED };
        assert_eq!(end(unknown, &longer(Measure, twice)), None);
    }

    #[test]
    fn failures_between_what_is_tolerated_and_what_ends_any_run_end_one_of_the_search() {
        let failing = |failed: [u64; 10]| {
            let windows = failed.iter();
            let windows = windows.map(|failed| window(Measure, &[(1, 1_000 - failed)], *failed));
            windows.collect::<Vec<_>>()
        };
        assert_eq!(end(SEARCHED, &failing([1; 10])), None);
        let (windows, is_fault, reason) = end(SEARCHED, &failing([5; 10])).unwrap();
        assert_eq!((windows, is_fault), (3, true));
        assert!(
            reason.contains("0.50 % of the operations failed"),
            "{reason}"
        );
    }

    #[test]
    fn less_than_half_of_the_usual_rate_in_half_of_the_run_is_enough_and_no_harm() {
        let rates = |rates: [u64; 10]| rates.map(|rate| window(Measure, &[(1, rate)], 0));
        let (windows, is_fault, reason) = end(SEARCHED, &rates([400; 10])).unwrap();
        assert_eq!((windows, is_fault), (5, false));
        let told = "certainly worse after 5.0 s: the rate was 400.0/s, of 1,000/s before";
        assert_eq!(reason, told);
        // A stall at the start is made up for, one at the end is too late to save anything.
        let start = [
            200, 200, 200, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000,
        ];
        assert_eq!(end(SEARCHED, &rates(start)), None);
        let late = [600, 600, 600, 600, 600, 600, 600, 600, 110, 110];
        assert_eq!(end(SEARCHED, &rates(late)), None);
        assert_eq!(end(LIMITS, &rates([400; 10])), None);
    }
}
