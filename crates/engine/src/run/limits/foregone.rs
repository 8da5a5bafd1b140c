//! What a run of a search will say, once that is certain before its end: that it breaks a limit by which whole runs are judged, or
//! that what is tried is far slower than usual, which is no harm.

use super::beyond;
use dyno_analyze::online_share::OnlineShare;
use dyno_record::interval::IntervalRecord;
use dyno_record::quantity::Quantity;

/// Share of the operations that may take longer than their 99th percentile.
const BEYOND_P99_RATIO: f64 = 0.01;

/// Share of the usual rate below which nothing that follows matters to a search for a higher one.
const SLOW_RATIO: f64 = 0.5;

/// Windows in a row below it.
const SLOW_WINDOWS: u32 = 3;

/// Limits of a whole run of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLimits {
    /// Largest share of all operations that may fail.
    pub failed_ratio: f64,
    /// Longest 99th percentile of the response time.
    pub p99_ns: Option<u64>,
    /// Length of a run that ends early if it is slow; `None` if none does.
    pub slow_length_s: Option<f64>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Foregone {
    limits: SearchLimits,
    failed: OnlineShare,
    longer: OnlineShare,
    succeeded: f64,
    measured_s: f64,
    slow: u32,
}

impl Foregone {
    pub(super) fn new(limits: SearchLimits) -> Foregone {
        Foregone {
            limits,
            failed: OnlineShare::new(limits.failed_ratio),
            longer: OnlineShare::new(BEYOND_P99_RATIO),
            succeeded: 0.0,
            measured_s: 0.0,
            slow: 0,
        }
    }

    /// Which limit the whole run breaks for certain, after one more window.
    pub(super) fn violation(&mut self, window: &IntervalRecord) -> Option<String> {
        let counts = &window.counts;
        let ended = counts.succeeded + counts.failed;
        if let Some(ratio) = self.failed.push(counts.failed as f64, ended as f64) {
            let ratio = Quantity::ratio(ratio);
            return Some(format!("{ratio} of the operations failed"));
        }
        let limit_ns = self.limits.p99_ns?;
        let (longer, all) = beyond(window, limit_ns);
        let ratio = Quantity::ratio(self.longer.push(longer, all)?);
        let limit = Quantity::microseconds(limit_ns as f64 / 1e3);
        Some(format!(
            "p99 is above {limit} for certain: {ratio} of the operations took longer"
        ))
    }

    /// Why nothing that follows matters, after one more window.
    pub(super) fn slowness(&mut self, window: &IntervalRecord, usual_per_s: f64) -> Option<String> {
        let length_s = self.limits.slow_length_s?;
        let succeeded = window.counts.succeeded as f64;
        let window_s = window.duration_ns as f64 / 1e9;
        self.succeeded += succeeded;
        self.measured_s += window_s;
        let least_per_s = SLOW_RATIO * usual_per_s;
        let is_slow = succeeded < least_per_s * window_s;
        self.slow = if is_slow { self.slow + 1 } else { 0 };
        let rate_per_s = self.succeeded / self.measured_s;
        // The window that follows has begun: to end in the last one saves nothing.
        let is_worth_it = self.measured_s + window_s < length_s;
        let is_certain = self.slow >= SLOW_WINDOWS && rate_per_s < least_per_s;
        (is_certain && is_worth_it).then(|| {
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

    const SEARCHED: WindowLimits = WindowLimits {
        search: Some(SearchLimits {
            failed_ratio: 0.001,
            p99_ns: Some(2_500_000),
            slow_length_s: Some(10.0),
        }),
        ..LIMITS
    };

    /// After how many windows a run ends, and why: by a fault, or because it says enough.
    fn end(limits: WindowLimits, windows: &[IntervalRecord]) -> Option<(usize, bool, String)> {
        let mut check = limits.watch(&[]);
        let mut after = (1..).zip(windows);
        after.find_map(|(number, window)| match check.fault(window) {
            Some(fault) => Some((number, true, fault.reason())),
            None => Some((number, false, check.says_enough(window)?)),
        })
    }

    /// A minute of windows with 1,000 operations each, of which so many by turns take longer than the limit of the p99, and not
    /// longer than the one that ends any run.
    fn longer(phase: PhaseKind, counts: [u64; 5]) -> Vec<IntervalRecord> {
        let of_count = |count: &u64| window(phase, &[(1, 1_000 - count), (3, *count)], 0);
        counts.iter().cycle().take(60).map(of_count).collect()
    }

    #[test]
    fn a_p99_that_is_above_its_limit_for_certain_ends_a_run_of_the_search() {
        let below = longer(Measure, [5, 14, 8, 11, 7]);
        assert_eq!(end(SEARCHED, &below), None);
        let twice = longer(Measure, [16, 24, 19, 22, 19]);
        let (windows, is_fault, reason) = end(SEARCHED, &twice).unwrap();
        assert!((3..=8).contains(&windows) && is_fault, "{windows}");
        assert!(reason.contains("p99 is above 2.50 ms"), "{reason}");
        // What the answer rests on goes on to its end, and so does a warm-up.
        assert_eq!(end(LIMITS, &twice), None);
        assert_eq!(end(SEARCHED, &longer(Warmup, [20; 5])), None);
    }

    #[test]
    fn failures_between_what_is_tolerated_and_what_ends_any_run_end_one_of_the_search() {
        let failing = |counts: [u64; 5]| {
            let of_count = |count: &u64| window(Measure, &[(1, 1_000 - count)], *count);
            let all = counts.iter().cycle().take(60).map(of_count);
            all.collect::<Vec<_>>()
        };
        assert_eq!(end(SEARCHED, &failing([1, 0, 2, 0, 1])), None);
        let (windows, is_fault, reason) = end(SEARCHED, &failing([5, 4, 6, 5, 5])).unwrap();
        assert!((3..=8).contains(&windows) && is_fault, "{windows}");
        assert!(
            reason.contains("0.50 % of the operations failed"),
            "{reason}"
        );
    }

    #[test]
    fn less_than_half_of_the_usual_rate_in_three_windows_is_enough_and_no_harm() {
        let rates = |rates: &[u64]| {
            let windows = rates.iter().map(|rate| window(Measure, &[(1, *rate)], 0));
            windows.collect::<Vec<_>>()
        };
        let (windows, is_fault, reason) = end(SEARCHED, &rates(&[400; 10])).unwrap();
        assert_eq!((windows, is_fault), (3, false));
        let told = "certainly worse after 3.0 s: the rate was 400.0/s, of 1,000/s before";
        assert_eq!(reason, told);
        // A stall ends, is made up for by what was before it, or lasts to the end anyway.
        assert_eq!(end(SEARCHED, &rates(&[400, 400, 900, 400, 400, 900])), None);
        assert_eq!(end(SEARCHED, &rates(&[900, 900, 900, 300, 300, 300])), None);
        let late = [400, 400, 600, 400, 400, 600, 400, 400, 400, 400];
        assert_eq!(end(SEARCHED, &rates(&late)), None);
        assert_eq!(end(LIMITS, &rates(&[400; 10])), None);
    }
}
