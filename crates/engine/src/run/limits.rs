//! Ends harmful runs early. Limits are checked in every window, so that a setting of `dyno tune`
//! that fails or stalls lasts only one or two windows. A run of a search for a higher rate also ends
//! once it is much slower than usual, which is not harmful.

use crate::error::{Error, Kind};
use dyno_record::interval::{IntervalRecord, OperationInterval};
use dyno_record::model::{Operations, PhaseKind};
use dyno_record::quantity::Quantity;
use dyno_record::responses::WindowResponses;

/// Fewest operations for judging a window.
const FEWEST_OPERATIONS: u64 = 20;

/// Share of the usual rate below which a server stalls.
const STALL_RATIO: f64 = 0.1;

/// Stalled windows in a row that end a run: a single one may be a checkpoint.
const STALLED_WINDOWS: u32 = 2;

/// Share of the usual rate below which the rest of a run does not matter to a search for a higher
/// rate, ...
const SLOW_RATIO: f64 = 0.5;

/// ... after this part of the run. Even if the rest had the usual rate, the whole run would still
/// be a quarter below it.
const SLOW_PART: f64 = 0.5;

/// Smallest available share of the machine's memory: below it the kernel begins to kill processes.
const LEAST_MEMORY_RATIO: f64 = 0.03;

/// Largest share of a server's memory limit (its control group's or the machine's) that it may use:
/// the page cache and other processes need the rest, and above the limit the kernel kills one of
/// them. All servers together may use the same share of the largest limit.
const MOST_SERVER_MEMORY_RATIO: f64 = 0.9;

/// Limit on slow operations in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongerLimit {
    /// Response time that counts as slow when exceeded.
    pub response_ns: u64,
    /// Largest share of slow operations.
    pub longer_ratio: f64,
}

/// Limits of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowLimits {
    /// Largest share of failed operations.
    pub failed_ratio: f64,
    /// Limits on slow operations.
    pub longer: Vec<LongerLimit>,
    /// Usual operations per second.
    pub usual_rate_per_s: f64,
    /// Share of the usual clients in this run, at most 1: fewer clients do fewer operations without
    /// a stall.
    pub client_ratio: f64,
    /// Whether the server stalls without any change, so that long times and a low rate in a window
    /// do not end a run.
    pub may_stall: bool,
    /// Whether the servers are on this machine, so that its memory counts.
    pub is_local: bool,
    /// Planned time of a run that may end because it is much slower than usual; `None` for others.
    pub if_slow_s: Option<f64>,
}

/// Active limits.
#[derive(Debug)]
pub(crate) struct LimitCheck {
    limits: WindowLimits,
    operations: Operations,
    /// Processes of the servers started here, with their memory limits.
    servers: Vec<(u32, u64)>,
    /// Reads the available share of the machine's memory.
    available_memory_ratio: fn() -> Option<f64>,
    stall: Stall,
    measured: Measured,
}

impl LongerLimit {
    /// Whether too many of all operations of a window took longer.
    fn is_broken_by(&self, longer: f64, all: f64) -> bool {
        all >= FEWEST_OPERATIONS as f64 && longer / all > self.longer_ratio
    }
}

impl WindowLimits {
    /// Starts to check the windows of a run with these operations, and the memory of its servers, which are
    /// these local processes.
    pub(crate) fn watch(self, operations: Operations, servers: &[u32]) -> LimitCheck {
        let known = servers
            .iter()
            .filter_map(|pid| Some((*pid, dyno_observe::doctor::processes::memory_of(*pid)?)));
        LimitCheck {
            limits: self,
            operations,
            servers: known.collect(),
            available_memory_ratio: dyno_observe::environment::available_memory_ratio,
            stall: Stall::default(),
            measured: Measured::default(),
        }
    }

    /// Whether the windows of a warm run break the limits on slow operations or on the rate.
    pub(crate) fn are_broken_by(&self, windows: &[WindowResponses]) -> bool {
        let mut stall = Stall::default();
        let mut counted = windows.iter().filter(|window| !window.is_outside);
        counted.any(|window| {
            let count_above = |limit_ns: u64| {
                let longer = window.response_ns.iter().filter(|(time_ns, _)| *time_ns > limit_ns);
                longer.map(|(_, count)| count).sum::<u64>() as f64
            };
            let all: u64 = window.response_ns.iter().map(|(_, count)| count).sum();
            let ended = (window.succeeded + window.failed) as f64;
            let is_stall = stall.take(window.duration_s, ended, self.usual_rate_per_s);
            let mut limits = self.longer.iter();
            let is_broken =
                |one: &LongerLimit| one.is_broken_by(count_above(one.response_ns), all as f64);
            is_stall || limits.any(is_broken)
        })
    }
}

/// Windows of the measured time so far.
#[derive(Debug, Default)]
struct Measured {
    seconds: f64,
    /// Length of the longest window.
    window_s: f64,
    succeeded: f64,
}

/// State of a stall.
#[derive(Debug, Default)]
struct Stall {
    /// Stalled windows in a row.
    windows: u32,
}

impl Stall {
    /// Adds a window with this many ended operations. Returns whether the stall is too long.
    fn take(&mut self, seconds: f64, ended: f64, usual_rate_per_s: f64) -> bool {
        // The last window of a phase may be very short.
        let stands_still = seconds >= 0.5 && ended < STALL_RATIO * usual_rate_per_s * seconds;
        self.windows = if stands_still { self.windows + 1 } else { 0 };
        self.windows >= STALLED_WINDOWS
    }
}

impl LimitCheck {
    /// Why the run must end after this window, if so.
    pub(crate) fn fault(&mut self, window: &IntervalRecord) -> Option<Error> {
        if window.phase == PhaseKind::Load {
            return None;
        }
        // A cold server may be slow.
        let is_warm = window.phase == PhaseKind::Measure;
        let stalls_count = is_warm && !self.limits.may_stall;
        let reason = failures(window, self.limits.failed_ratio)
            .or_else(|| self.memory())
            .or_else(|| self.server_memory())
            .or_else(|| self.longer(window).filter(|_| stalls_count))
            .or_else(|| self.stall(window).filter(|_| stalls_count));
        if is_warm {
            let seconds = window.duration_ns as f64 / 1e9;
            self.measured.seconds += seconds;
            self.measured.window_s = self.measured.window_s.max(seconds);
            self.measured.succeeded += window.counts.succeeded as f64;
        }
        reason.map(|reason| Error::new(Kind::CheckFailed, reason))
    }

    /// Why the run may end after the last window without a fault: it is much slower than usual.
    pub(crate) fn says_enough(&self) -> Option<String> {
        let duration_s = self.limits.if_slow_s?;
        let Measured { seconds, window_s, succeeded } = self.measured;
        let usual_per_s = self.limits.usual_rate_per_s;
        let rate_per_s = succeeded / seconds;
        // The next window has begun: ending in the last one saves nothing.
        let is_worth_it = seconds >= SLOW_PART * duration_s && seconds + window_s < duration_s;
        (is_worth_it && rate_per_s < SLOW_RATIO * usual_per_s).then(|| {
            format!(
                "certainly worse after {}: the rate was {}, before {}",
                Quantity::seconds(seconds),
                Quantity::per_second(rate_per_s),
                Quantity::per_second(usual_per_s)
            )
        })
    }

    /// Number of operations in a window that took longer than this, and of all operations. A read and
    /// the write that follows it count as two, without a third one for both, as in the percentiles of a
    /// run.
    fn beyond(&self, window: &IntervalRecord, limit_ns: u64) -> (f64, f64) {
        let (mut longer, mut all) = (0.0, 0.0);
        let counted = |one: &&OperationInterval| self.operations.is_summed(&one.name);
        for operation in window.operations.iter().filter(counted) {
            let count = operation.response.len() as f64;
            all += count;
            longer += count * (1.0 - operation.response.quantile_below(limit_ns));
        }
        (longer, all)
    }

    fn longer(&self, window: &IntervalRecord) -> Option<String> {
        self.limits.longer.iter().find_map(|limit| {
            let (longer, all) = self.beyond(window, limit.response_ns);
            limit.is_broken_by(longer, all).then(|| {
                format!(
                    "{} of the operations in one second took longer than {}",
                    Quantity::ratio(longer / all),
                    Quantity::microseconds(limit.response_ns as f64 / 1e3)
                )
            })
        })
    }

    fn stall(&mut self, window: &IntervalRecord) -> Option<String> {
        let seconds = window.duration_ns as f64 / 1e9;
        let ended = (window.counts.succeeded + window.counts.failed) as f64;
        let usual_per_s = self.limits.usual_rate_per_s * self.limits.client_ratio;
        self.stall.take(seconds, ended, usual_per_s).then(|| {
            let rate = Quantity::per_second(ended / seconds);
            let usual = Quantity::per_second(usual_per_s);
            format!("the rate fell from {usual} to {rate}")
        })
    }

    fn memory(&self) -> Option<String> {
        if !self.limits.is_local {
            return None;
        }
        let available = (self.available_memory_ratio)()?;
        (available < LEAST_MEMORY_RATIO).then(|| {
            format!(
                "only {} of the memory of this machine is available",
                Quantity::ratio(available)
            )
        })
    }

    fn server_memory(&self) -> Option<String> {
        let mut all = (0, 0);
        for (pid, memory) in &self.servers {
            let taken = dyno_observe::process::resident_bytes_of(*pid).unwrap_or(0);
            let too_much = taken_of("a server", taken, *memory);
            if too_much.is_some() {
                return too_much;
            }
            all = (all.0 + taken, all.1.max(*memory));
        }
        taken_of("all servers", all.0, all.1)
    }
}

/// Why a server uses too much memory, if so.
fn taken_of(who: &str, taken: u64, memory: u64) -> Option<String> {
    (taken as f64 > memory as f64 * MOST_SERVER_MEMORY_RATIO).then(|| {
        format!(
            "the memory of {who} was {}, more than {} of {}",
            Quantity::bytes(taken),
            Quantity::ratio(MOST_SERVER_MEMORY_RATIO),
            Quantity::bytes(memory)
        )
    })
}

fn failures(window: &IntervalRecord, most_ratio: f64) -> Option<String> {
    let counts = &window.counts;
    let ended = counts.succeeded + counts.failed;
    let ratio = counts.failed as f64 / ended.max(1) as f64;
    (ended >= FEWEST_OPERATIONS && ratio > most_ratio)
        .then(|| format!("{} of the operations in one second failed", Quantity::ratio(ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::interval::{WindowCounts, latency_histogram};

    fn limits() -> WindowLimits {
        WindowLimits {
            failed_ratio: 0.01,
            longer: vec![LongerLimit { response_ns: 5_000_000, longer_ratio: 0.05 }],
            usual_rate_per_s: 1_000.0,
            client_ratio: 1.0,
            may_stall: false,
            is_local: false,
            if_slow_s: None,
        }
    }

    fn window(phase: PhaseKind, times_ms: &[(u64, u64)], failed: u64) -> IntervalRecord {
        let mut response = latency_histogram();
        for (time_ms, count) in times_ms {
            response.record_n(time_ms * 1_000_000, *count).unwrap();
        }
        let succeeded = response.len();
        let operation = OperationInterval {
            name: "read".into(),
            service: response.clone(),
            start_delay: latency_histogram(),
            response,
            response_sum_ns: 0,
            service_sum_ns: 0,
            start_delay_sum_ns: 0,
            documents: succeeded,
            errors: failed,
            clamped: 0,
        };
        IntervalRecord {
            duration_ns: 1_000_000_000,
            operations: vec![operation],
            counts: WindowCounts { succeeded, failed, ..WindowCounts::default() },
            ..IntervalRecord::empty(phase, 0, 0)
        }
    }

    fn assert_names(reason: &str, parts: &[&str]) {
        for part in parts {
            assert!(reason.contains(part), "`{part}`: {reason}");
        }
    }

    fn fault(windows: &[IntervalRecord]) -> Option<String> {
        let mut check = limits().watch(Operations::default(), &[]);
        let faults = windows.iter().map(|window| check.fault(window));
        faults.map(|fault| fault.map(|fault| fault.reason())).last().flatten()
    }

    #[test]
    fn one_window_of_failures_or_of_long_times_is_enough() {
        use PhaseKind::{Load, Measure, Warmup};
        assert_eq!(fault(&[window(Measure, &[(1, 990), (6, 40)], 10)]), None);
        let failed = fault(&[window(Warmup, &[(1, 900)], 100)]).unwrap();
        assert_names(&failed, &["10.0 %", "failed"]);
        let longer = fault(&[window(Measure, &[(1, 900), (6, 100)], 0)]).unwrap();
        assert_names(&longer, &["5.00 ms"]);
        assert_eq!(fault(&[window(Warmup, &[(1, 900), (6, 100)], 0)]), None);
        assert_eq!(fault(&[window(Load, &[(1, 900)], 900)]), None);
    }

    #[test]
    fn each_time_limit_has_its_own_share() {
        let mut limits = limits();
        limits.longer.push(LongerLimit { response_ns: 2_000_000, longer_ratio: 0.5 });
        let mut check = limits.watch(Operations::default(), &[]);
        let mut fault = |times_ms: &[(u64, u64)]| {
            let fault = check.fault(&window(PhaseKind::Measure, times_ms, 0));
            fault.map(|fault| fault.reason())
        };
        assert_eq!(fault(&[(1, 510), (3, 450), (6, 40)]), None);
        let half = fault(&[(1, 490), (3, 510)]).unwrap();
        assert_names(&half, &["51.0 %", "2.00 ms"]);
        let few = fault(&[(1, 900), (6, 100)]).unwrap();
        assert_names(&few, &["5.00 ms"]);
    }

    #[test]
    fn stalled_server_is_given_one_window() {
        let slow = || window(PhaseKind::Measure, &[(1, 50)], 0);
        let usual = window(PhaseKind::Measure, &[(1, 1_000)], 0);
        assert_eq!(fault(&[slow()]), None);
        assert_eq!(fault(&[slow(), usual, slow()]), None);
        let stalled = fault(&[slow(), slow()]).unwrap();
        assert_names(&stalled, &["50.00/s", "1,000/s"]);
        // With 1 client of 32 the rate is a fraction of the usual one.
        let few = WindowLimits { client_ratio: 1.0 / 32.0, ..limits() };
        let has_stalled = |operations| {
            let mut check = few.clone().watch(Operations::default(), &[]);
            let window = || window(PhaseKind::Measure, &[(1, operations)], 0);
            check.fault(&window());
            check.fault(&window()).is_some()
        };
        assert_eq!((has_stalled(50), has_stalled(2)), (false, true));
    }

    /// A recorded window with this many operations of 1 ms and of 6 ms.
    fn recorded(short: u64, long: u64) -> WindowResponses {
        WindowResponses {
            duration_s: 1.0,
            succeeded: short + long,
            response_ns: vec![(1_000_000, short), (6_000_000, long)],
            ..WindowResponses::default()
        }
    }

    #[test]
    fn baseline_behaviour_of_the_server_does_not_end_a_run() {
        let is_usual = |windows: &[WindowResponses]| !limits().are_broken_by(windows);
        assert!(is_usual(&[recorded(1_000, 50), recorded(50, 0), recorded(1_000, 0)]));
        assert!(!is_usual(&[recorded(1_000, 0), recorded(50, 0), recorded(50, 0)]));
        assert!(!is_usual(&[recorded(900, 100)]));
        let slow = || window(PhaseKind::Measure, &[(1, 10), (6, 40)], 0);
        let stalling = WindowLimits { may_stall: true, ..limits() };
        let mut check = stalling.watch(Operations::default(), &[]);
        assert!((0..3).all(|_| check.fault(&slow()).is_none()));
        assert!(limits().watch(Operations::default(), &[]).fault(&slow()).is_some());
        // Failures still count.
        let failed = window(PhaseKind::Measure, &[(1, 900)], 100);
        assert!(check.fault(&failed).is_some());
    }

    #[test]
    fn low_memory_ends_the_run_only_when_servers_are_local() {
        let usual = window(PhaseKind::Warmup, &[(1, 1_000)], 0);
        let fault = |is_local, available: fn() -> Option<f64>| {
            let limits = WindowLimits { is_local, ..limits() };
            let mut check = limits.watch(Operations::default(), &[]);
            check.available_memory_ratio = available;
            check.fault(&usual).map(|fault| fault.reason())
        };
        let reason = fault(true, || Some(0.029)).expect("it is less than 3 %");
        assert_names(&reason, &["2.90 %", "memory"]);
        assert_eq!(fault(true, || Some(0.031)), None);
        assert_eq!(fault(true, || None), None);
        assert_eq!(fault(false, || Some(0.029)), None);
    }

    #[test]
    fn server_memory_above_its_limit_ends_the_run() {
        let own = std::process::id();
        let mut check = limits().watch(Operations::default(), &[own]);
        let usual = window(PhaseKind::Measure, &[(1, 1_000)], 0);
        assert!(check.fault(&usual).is_none());
        let [(_, memory)] = check.servers.as_mut_slice() else {
            panic!("{check:?}");
        };
        *memory = dyno_observe::process::resident_bytes_of(own).unwrap();
        let warm = window(PhaseKind::Warmup, &[(1, 1_000)], 0);
        let fault = check.fault(&warm).expect("it is more than 90 % of that");
        let share = Quantity::ratio(MOST_SERVER_MEMORY_RATIO).to_string();
        assert_names(&fault.reason(), &["a server", "memory", &share]);
        assert!(check.fault(&window(PhaseKind::Load, &[(1, 9)], 0)).is_none());
        // Each uses less than its limit, but all together more than the machine has.
        let taken = dyno_observe::process::resident_bytes_of(own).unwrap();
        check.servers = vec![(own, taken * 3 / 2); 2];
        let reason = check.fault(&usual).map(|fault| fault.reason());
        assert!(reason.is_some_and(|reason| reason.contains("all servers")));
    }

    #[test]
    fn half_the_usual_rate_in_half_a_run_ends_it_without_harm() {
        let end = |limits: WindowLimits, rates: [u64; 10]| {
            let mut check = limits.watch(Operations::default(), &[]);
            (1..).zip(rates).find_map(|(number, rate)| {
                let fault = check.fault(&window(PhaseKind::Measure, &[(1, rate)], 0));
                assert!(fault.is_none());
                Some((number, check.says_enough()?))
            })
        };
        let search = WindowLimits { if_slow_s: Some(10.0), ..limits() };
        let (windows, reason) = end(search.clone(), [400; 10]).unwrap();
        assert_eq!(windows, 5);
        assert_names(&reason, &["5.0 s", "400.0/s", "1,000/s"]);
        // A stall at the start is made up for; one at the end is too late to save time.
        let start = [200, 200, 200, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000];
        assert_eq!(end(search.clone(), start), None);
        let late = [600, 600, 600, 600, 600, 600, 600, 600, 110, 110];
        assert_eq!(end(search, late), None);
        assert_eq!(end(limits(), [400; 10]), None);
    }
}
