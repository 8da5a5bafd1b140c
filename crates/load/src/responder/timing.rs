//! When a reply is due: service times, the queue, stalls, and waking up at the right moment.
//!
//! All times are nanoseconds since the start of the responder.

use super::behaviour::{Service, ServiceTime, Stall};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

/// A sleep ends this long before the due time, and polling fills the rest. It is longer than a wake-up on an idle
/// virtual machine, and costs at most a tenth of a core at a thousand replies per second.
const POLL_AHEAD_NS: u64 = 100_000;

/// Computes due times from arrivals.
#[derive(Debug)]
pub(super) struct Timing {
    service: Service,
    /// Factor of service times.
    factor: f64,
    stall: Option<StallNs>,
    rng: Xoshiro256PlusPlus,
    /// End of the last service of the single queue.
    server_free_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct StallNs {
    every: u64,
    length: u64,
    first: u64,
}

impl Timing {
    pub(super) fn new(service: Service, stall: Option<Stall>, seed: u64) -> Self {
        Timing {
            service,
            factor: 1.0,
            stall: stall.map(|stall| StallNs {
                every: nanoseconds(stall.every),
                length: nanoseconds(stall.length),
                first: nanoseconds(stall.first),
            }),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            server_free_ns: 0,
        }
    }

    /// Sets the factor for service times of commands that arrive from now on.
    pub(super) fn set_factor(&mut self, factor: f64) {
        self.factor = factor;
    }

    /// Whether every reply is due on arrival, so that no clock is needed.
    pub(super) fn is_immediate(&self) -> bool {
        self.service == Service::Null && self.stall.is_none()
    }

    /// When the reply to a data command that arrived at `arrival_ns` is due.
    ///
    /// Called in the order of arrival. The single queue's times do not drift, because each service begins at a computed
    /// time, not at a wake-up.
    pub(super) fn data_due_ns(&mut self, arrival_ns: u64) -> u64 {
        let end_ns = match self.service {
            Service::Null => arrival_ns,
            Service::SingleQueue { time } => {
                let begin_ns = arrival_ns.max(self.server_free_ns);
                self.server_free_ns = begin_ns.saturating_add(self.draw_ns(time));
                self.server_free_ns
            }
            Service::Parallel { time } => arrival_ns.saturating_add(self.draw_ns(time)),
        };
        self.release_ns(end_ns)
    }

    /// When a reply that is ready at `ready_ns` may be sent: then, or at the end of the stall.
    pub(super) fn release_ns(&self, ready_ns: u64) -> u64 {
        let Some(stall) = self.stall else {
            return ready_ns;
        };
        let Some(since_first) = ready_ns.checked_sub(stall.first) else {
            return ready_ns;
        };
        let into_period = since_first % stall.every;
        if into_period < stall.length {
            ready_ns.saturating_add(stall.length - into_period)
        } else {
            ready_ns
        }
    }

    fn draw_ns(&mut self, time: ServiceTime) -> u64 {
        let ns = match time {
            ServiceTime::Fixed(time) => nanoseconds(time) as f64,
            ServiceTime::Exponential { mean } => {
                let u: f64 = self.rng.random();
                -(-u).ln_1p() * nanoseconds(mean) as f64
            }
        };
        (ns * self.factor) as u64
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// A timer that makes the event loop's poll return shortly before a due time, to the microsecond;
/// the timeout of epoll itself counts in milliseconds.
#[derive(Debug)]
pub(super) struct WakeUp {
    timer: TimerFd,
    armed_for_ns: Option<u64>,
}

impl WakeUp {
    pub(super) fn new() -> nix::Result<Self> {
        Ok(WakeUp {
            timer: TimerFd::new(
                ClockId::CLOCK_MONOTONIC,
                TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
            )?,
            armed_for_ns: None,
        })
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.timer.as_fd().as_raw_fd()
    }

    /// Prepares a poll that is to end in time for `due_ns`; true when it is so near that the poll
    /// must not sleep at all.
    ///
    /// The timer is never read: setting it again clears expirations.
    pub(super) fn prepare(&mut self, due_ns: u64, now_ns: u64) -> nix::Result<bool> {
        let left_ns = due_ns.saturating_sub(now_ns);
        if left_ns <= POLL_AHEAD_NS {
            return Ok(true);
        }
        if self.armed_for_ns != Some(due_ns) {
            let sleep = TimeSpec::from_duration(Duration::from_nanos(left_ns - POLL_AHEAD_NS));
            self.timer.set(Expiration::OneShot(sleep), TimerSetTimeFlags::empty())?;
            self.armed_for_ns = Some(due_ns);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn fixed(ms: u64) -> ServiceTime {
        ServiceTime::Fixed(Duration::from_millis(ms))
    }

    #[test]
    fn the_single_queue_serves_one_after_the_other() {
        let mut timing = Timing::new(Service::SingleQueue { time: fixed(5) }, None, 1);
        let due: Vec<u64> =
            [10, 11, 12, 40].iter().map(|at| timing.data_due_ns(at * MS) / MS).collect();
        assert_eq!(due, [15, 20, 25, 45]);
    }

    #[test]
    fn parallel_servers_do_not_wait_for_each_other() {
        let mut timing = Timing::new(Service::Parallel { time: fixed(5) }, None, 1);
        let due: Vec<u64> =
            [10, 11, 12].iter().map(|at| timing.data_due_ns(at * MS) / MS).collect();
        assert_eq!(due, [15, 16, 17]);
    }

    #[test]
    fn the_single_queue_under_poisson_arrivals_is_m_d_1() {
        // Mean response = s + rho s / (2 (1 - rho)): 3 s at a load of 80 %.
        let mut timing = Timing::new(Service::SingleQueue { time: fixed(1) }, None, 1);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut arrival, mut sum) = (0.0, 0.0);
        let n = 1_000_000;
        for _ in 0..n {
            arrival += -(-rng.random::<f64>()).ln_1p() / 0.8 * MS as f64;
            sum += timing.data_due_ns(arrival as u64) as f64 - arrival;
        }
        let mean = sum / f64::from(n) / MS as f64;
        assert!((mean - 3.0).abs() < 0.06, "{mean}");
    }

    #[test]
    fn exponential_service_times_have_their_mean_and_spread() {
        let mean = Duration::from_millis(2);
        let time = ServiceTime::Exponential { mean };
        let mut timing = Timing::new(Service::Parallel { time }, None, 3);
        let times: Vec<f64> =
            (0..200_000).map(|_| timing.data_due_ns(0) as f64 / MS as f64).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let above = times.iter().filter(|&&t| t > 2.0).count() as f64 / times.len() as f64;
        assert!((mean - 2.0).abs() < 0.02, "{mean}");
        assert!((above - (-1.0_f64).exp()).abs() < 0.005, "{above}");
    }

    #[test]
    fn a_factor_stretches_the_services_of_what_arrives_later() {
        let mut queue = Timing::new(Service::SingleQueue { time: fixed(4) }, None, 1);
        let mut due = |factor: f64, at: u64| {
            queue.set_factor(factor);
            queue.data_due_ns(at * MS) / MS
        };
        // The second waits for the first, whose service keeps its length.
        assert_eq!([due(2.5, 0), due(1.0, 1), due(1.25, 100)], [10, 14, 105]);
        let mean = Duration::from_millis(2);
        let exponential = Service::Parallel { time: ServiceTime::Exponential { mean } };
        let draws = |factor: f64| {
            let mut timing = Timing::new(exponential, None, 3);
            timing.set_factor(factor);
            [0; 1000].map(|at| timing.data_due_ns(at) as f64)
        };
        for (plain, stretched) in draws(1.0).into_iter().zip(draws(3.5)) {
            assert!((stretched - 3.5 * plain).abs() <= 5.0, "{plain} {stretched}");
        }
    }

    #[test]
    fn a_service_without_end_is_never_done() {
        let mut timing = Timing::new(Service::SingleQueue { time: fixed(1) }, None, 1);
        timing.set_factor(f64::INFINITY);
        assert_eq!([5, 6].map(|at| timing.data_due_ns(at)), [u64::MAX; 2]);
    }

    #[test]
    fn replies_due_in_a_stall_leave_at_its_end() {
        let stall = Stall::new(Duration::from_secs(10), Duration::from_secs(1));
        let mut timing = Timing::new(Service::Null, Some(stall), 1);
        let due: Vec<u64> = [0, 500, 9_999, 10_000, 10_400, 10_999, 11_000, 20_000, 35_000]
            .iter()
            .map(|at| timing.data_due_ns(at * MS) / MS)
            .collect();
        assert_eq!(due, [0, 500, 9_999, 11_000, 11_000, 11_000, 11_000, 21_000, 35_000]);
    }

    #[test]
    fn the_first_stall_can_be_moved() {
        let stall = Stall {
            first: Duration::from_secs(3),
            ..Stall::new(Duration::from_secs(10), Duration::from_secs(1))
        };
        let timing = Timing::new(Service::Null, Some(stall), 1);
        assert_eq!(timing.release_ns(3_200 * MS), 4_000 * MS);
        assert_eq!(timing.release_ns(10_200 * MS), 10_200 * MS);
        assert_eq!(timing.release_ns(13_200 * MS), 14_000 * MS);
    }

    #[test]
    fn only_a_responder_without_times_needs_no_clock() {
        assert!(Timing::new(Service::Null, None, 1).is_immediate());
        let stall = Stall::new(Duration::from_secs(10), Duration::from_secs(1));
        assert!(!Timing::new(Service::Null, Some(stall), 1).is_immediate());
        assert!(!Timing::new(Service::Parallel { time: fixed(1) }, None, 1).is_immediate());
    }
}
