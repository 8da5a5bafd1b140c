//! Results of a search's run that are certain before its end: it breaks a limit on whole runs, or
//! it is much slower than usual, which is not harmful.

use super::beyond;
use dyno_analyze::stationary_part::longest_warm_up;
use dyno_analyze::windows::SHORT_WINDOW_RATIO;
use dyno_record::experiment::Objective;
use dyno_record::interval::IntervalRecord;
use dyno_record::quantity::Quantity;

/// Operations beyond a limit that do not count: shares of whole numbers are rounded, and half an
/// operation does not exist.
const ROUNDING: f64 = 0.5;

/// Share of the usual rate below which the rest of a run does not matter to a search for a higher
/// rate, ...
const SLOW_RATIO: f64 = 0.5;

/// ... after this part of the run. Even if the rest had the usual rate, the whole run would still
/// be a quarter below it.
const SLOW_PART: f64 = 0.5;

/// Limits of a whole run of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchLimits {
    /// Largest share of failed operations.
    pub failed_ratio: f64,
    /// Limits of response times. Limits of the mean never end a run early, because the rest of the
    /// run may lower it by any amount.
    pub responses: Vec<Objective>,
    /// Planned time of the measurement; without it nothing is certain before the end.
    pub duration_s: Option<f64>,
    /// Whether the run may end because it is slow.
    pub may_end_if_slow: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Foregone {
    limits: SearchLimits,
    /// Number of windows so far.
    windows: f64,
    measured_s: f64,
    /// Length of the longest window.
    window_s: f64,
    succeeded: f64,
    failed: f64,
    percentiles: Vec<Percentile>,
}

/// A limit of a percentile, and the windows so far.
#[derive(Debug)]
struct Percentile {
    limit: Objective,
    /// Share of operations that may take longer.
    longer_ratio: f64,
    windows: Vec<Timed>,
}

/// Operations of windows.
#[derive(Clone, Copy, Debug, Default)]
struct Timed {
    seconds: f64,
    /// Number of operations that took longer than the limit.
    longer: f64,
    all: f64,
}

impl Timed {
    fn and(self, other: Timed) -> Timed {
        Timed {
            seconds: self.seconds + other.seconds,
            longer: self.longer + other.longer,
            all: self.all + other.all,
        }
    }
}

/// Expected rest of the run.
#[derive(Clone, Copy)]
struct Rest {
    seconds: f64,
    usual_per_s: f64,
}

impl Rest {
    /// Whether `part` already exceeds the allowed share of all operations, including the expected
    /// ones.
    fn breaks(self, part: f64, all: f64, seconds: f64, limit_ratio: f64) -> bool {
        let rate_per_s = self.usual_per_s.max(all / seconds);
        part > limit_ratio * (all + self.seconds * rate_per_s) + ROUNDING
    }
}

impl Percentile {
    /// `None` for a limit of the mean.
    fn new(limit: &Objective) -> Option<Percentile> {
        Some(Percentile {
            longer_ratio: limit.longer_ratio()?,
            limit: limit.clone(),
            windows: Vec::new(),
        })
    }

    fn take(&mut self, window: &IntervalRecord, seconds: f64) {
        let (longer, all) = beyond(window, (self.limit.limit_us * 1e3) as u64);
        self.windows.push(Timed { seconds, longer, all });
    }

    /// Whether the limit is broken for every length of the excluded warm-up up to `longest_warm_up`
    /// windows.
    fn is_broken(&self, rest: Rest, longest_warm_up: usize) -> bool {
        let breaks = |part: Timed| {
            let Timed { seconds, longer, all } = part;
            rest.breaks(longer, all, seconds, self.longer_ratio)
        };
        let after = self.windows.get(longest_warm_up..).unwrap_or_default();
        let before = self.windows.iter().take(longest_warm_up);
        let mut part = after.iter().copied().fold(Timed::default(), Timed::and);
        breaks(part)
            && before.rev().all(|window| {
                part = part.and(*window);
                breaks(part)
            })
    }

    /// Share of the operations so far that took longer.
    fn measured_ratio(&self) -> f64 {
        let all = self.windows.iter().copied();
        let all = all.fold(Timed::default(), Timed::and);
        all.longer / all.all
    }
}

impl Foregone {
    pub(super) fn new(limits: SearchLimits) -> Foregone {
        Foregone {
            percentiles: limits.responses.iter().filter_map(Percentile::new).collect(),
            limits,
            windows: 0.0,
            measured_s: 0.0,
            window_s: 0.0,
            succeeded: 0.0,
            failed: 0.0,
        }
    }

    /// Adds a window of the measured time.
    pub(super) fn take(&mut self, window: &IntervalRecord) {
        let seconds = window.duration_ns as f64 / 1e9;
        self.window_s = self.window_s.max(seconds);
        self.measured_s += seconds;
        self.windows += 1.0;
        self.succeeded += window.counts.succeeded as f64;
        self.failed += window.counts.failed as f64;
        // A short last window must not decide.
        if seconds >= self.window_s * SHORT_WINDOW_RATIO {
            for percentile in &mut self.percentiles {
                percentile.take(window, seconds);
            }
        }
    }

    /// The limit that the whole run breaks, assuming the usual rate for the rest.
    pub(super) fn violation(&self, usual_per_s: f64) -> Option<String> {
        let duration_s = self.limits.duration_s?;
        let rest = Rest { seconds: (duration_s - self.measured_s).max(0.0), usual_per_s };
        let ended = self.succeeded + self.failed;
        let failed_ratio = self.limits.failed_ratio;
        if rest.breaks(self.failed, ended, self.measured_s, failed_ratio) {
            let ratio = Quantity::ratio(self.failed / ended);
            return Some(format!("{ratio} of the operations failed"));
        }
        // The slow windows may be a warm-up that the figures exclude.
        let planned = self.windows * duration_s.max(self.measured_s) / self.measured_s;
        let longest = longest_warm_up(planned.ceil() as usize);
        let broken = self.percentiles.iter().find(|one| one.is_broken(rest, longest))?;
        let name = broken.limit.name();
        let limit = Quantity::microseconds(broken.limit.limit_us);
        let ratio = Quantity::ratio(broken.measured_ratio());
        Some(format!("{name} is above {limit}: {ratio} of the operations took longer"))
    }

    /// Why the rest of the run does not matter.
    pub(super) fn slowness(&self, usual_per_s: f64) -> Option<String> {
        let duration_s = self.limits.duration_s?;
        let rate_per_s = self.succeeded / self.measured_s;
        let is_slow = self.limits.may_end_if_slow && rate_per_s < SLOW_RATIO * usual_per_s;
        // The next window has begun: ending in the last one saves nothing.
        let is_worth_it = self.measured_s + self.window_s < duration_s;
        (is_slow && is_worth_it && self.measured_s >= SLOW_PART * duration_s).then(|| {
            format!(
                "certainly worse after {}: the rate was {}, before {}",
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
    use super::super::tests::{assert_names, limits, window};
    use super::*;
    use dyno_record::model::PhaseKind::{self, Measure, Warmup};

    /// Limits for runs of ten seconds with a usual rate of 1,000 operations per second.
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

    /// Number of windows until a run ends, and why: with a fault, or because the result is certain.
    fn end(limits: WindowLimits, windows: &[IntervalRecord]) -> Option<(usize, bool, String)> {
        let mut check = limits.watch(&[]);
        let mut after = (1..).zip(windows);
        after.find_map(|(number, window)| match check.fault(window) {
            Some(fault) => Some((number, true, fault.reason())),
            None => Some((number, false, check.says_enough()?)),
        })
    }

    /// Windows with 1,000 operations each. The given number takes longer than the limit of the p99,
    /// but not longer than the limit that ends any run.
    fn longer(phase: PhaseKind, counts: &[u64]) -> Vec<IntervalRecord> {
        let of_count = |count: &u64| window(phase, &[(1, 1_000 - count), (3, *count)], 0);
        counts.iter().map(of_count).collect()
    }

    #[test]
    fn run_ends_when_p99_can_no_longer_meet_its_limit() {
        // Of 10,000 operations 100 may take longer: the rest makes up for a stall of one window,
        // but not for more.
        let stall = [5, 46, 5, 5, 5, 5, 5, 5, 5, 5];
        assert_eq!(end(p99(), &longer(Measure, &stall)), None);
        let twice = [19; 10];
        let (windows, is_fault, reason) = end(p99(), &longer(Measure, &twice)).unwrap();
        assert_eq!((windows, is_fault), (6, true));
        assert_names(&reason, &["p99", "2.50 ms", "1.9"]);
        let ten_times = [49, 49, 49, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(end(p99(), &longer(Measure, &ten_times)).unwrap().0, 3);
        // Runs that decide the answer are not ended, nor are warm-ups and runs of unknown length.
        assert_eq!(end(limits(), &longer(Measure, &twice)), None);
        assert_eq!(end(p99(), &longer(Warmup, &twice)), None);
        let unknown = searched(&[Objective::of_percentile(99.0, 2_500.0)], None);
        assert_eq!(end(unknown, &longer(Measure, &twice)), None);
    }

    #[test]
    fn possible_warm_up_outside_the_figures_does_not_end_a_run() {
        // Of ten windows the first may be excluded, and of the operations after it 90 may take
        // longer.
        let ended = |counts: [u64; 10]| end(p99(), &longer(Measure, &counts)).map(|end| end.0);
        assert_eq!(ended([150, 5, 5, 5, 5, 5, 5, 5, 5, 5]), None);
        assert_eq!(ended([150, 45, 46, 0, 0, 0, 0, 0, 0, 0]), Some(3));
        // The windows after the warm-up break the limit, but all windows together meet it.
        assert_eq!(ended([0, 19, 19, 19, 19, 19, 0, 0, 0, 0]), None);
        // Of 20 windows nine may be excluded, and of the operations after them 110 may take longer.
        let twenty = searched(&[Objective::of_percentile(99.0, 2_500.0)], Some(20.0));
        let ended = |transient: usize| {
            let counts: Vec<u64> = (0..20).map(|place| 50 * u64::from(place < transient)).collect();
            end(twenty.clone(), &longer(Measure, &counts)).map(|end| end.0)
        };
        assert_eq!((ended(9), ended(11), ended(12)), (None, None, Some(12)));
    }

    #[test]
    fn short_last_window_ends_no_run() {
        let mut windows = longer(Measure, &[10; 10]);
        windows.push(IntervalRecord { duration_ns: 400_000_000, ..window(Measure, &[(3, 20)], 0) });
        let limits = searched(&[Objective::of_percentile(99.0, 2_500.0)], Some(10.4));
        assert_eq!(end(limits, &windows), None);
    }

    #[test]
    fn certainly_broken_percentile_ends_a_run_and_a_mean_does_not() {
        let mean = Objective { statistic: "mean".into(), limit_us: 1.0 };
        let median = Objective::of_percentile(50.0, 900.0);
        let high = Objective::of_percentile(99.9, 2_500.0);
        let all = [mean, median, high.clone()];
        let ended = |responses: &[Objective], count| {
            let windows = longer(Measure, &[count; 10]);
            end(searched(responses, Some(10.0)), &windows)
        };
        // Every operation takes longer than the limit of the median, which is certain after half of
        // the run.
        let (windows, is_fault, reason) = ended(&all, 1).unwrap();
        assert_eq!((windows, is_fault), (6, true));
        assert_names(&reason, &["p50", "900 µs", "100 %"]);
        // Of 10,000 operations 10 may take longer than the p99.9, and without the first window 9 of
        // 9,000.
        let (windows, _, reason) = ended(&all, 4).unwrap();
        assert_eq!(windows, 4);
        assert_names(&reason, &["p99.9", "2.50 ms", "0.4"]);
        assert_eq!(ended(&[high], 1), None);
    }

    #[test]
    fn failures_above_tolerance_end_a_search_run_early() {
        let failing = |failed: [u64; 10]| {
            let windows = failed.iter();
            let windows = windows.map(|failed| window(Measure, &[(1, 1_000 - failed)], *failed));
            windows.collect::<Vec<_>>()
        };
        assert_eq!(end(p99(), &failing([1; 10])), None);
        let (windows, is_fault, reason) = end(p99(), &failing([5; 10])).unwrap();
        assert_eq!((windows, is_fault), (3, true));
        assert_names(&reason, &["0.50 %", "failed"]);
    }

    #[test]
    fn half_the_usual_rate_in_half_a_run_ends_it_without_harm() {
        let rates = |rates: [u64; 10]| rates.map(|rate| window(Measure, &[(1, rate)], 0));
        let (windows, is_fault, reason) = end(p99(), &rates([400; 10])).unwrap();
        assert_eq!((windows, is_fault), (5, false));
        assert_names(&reason, &["5.0 s", "400.0/s", "1,000/s"]);
        // A stall at the start is made up for; one at the end is too late to save time.
        let start = [200, 200, 200, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000];
        assert_eq!(end(p99(), &rates(start)), None);
        let late = [600, 600, 600, 600, 600, 600, 600, 600, 110, 110];
        assert_eq!(end(p99(), &rates(late)), None);
        assert_eq!(end(limits(), &rates([400; 10])), None);
    }
}
