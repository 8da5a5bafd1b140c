//! Precise sleeping inside the runtime.

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A kernel timer inside the runtime. The runtime's own timers have millisecond resolution, so an open loop would have
/// to spin all the time, and its CPU time would be attributed to the driver.
pub(super) struct PreciseTimer {
    timer: AsyncFd<Timer>,
}

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl PreciseTimer {
    pub(super) fn new() -> std::io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: the value owns its descriptor, which stays open and unchanged during its lifetime.
        let timer = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE) }?;
        Ok(PreciseTimer { timer })
    }

    /// Sleeps for `length`, not 0. It can be dropped before its end.
    pub(super) async fn sleep(&self, length: Duration) {
        let once = Expiration::OneShot(TimeSpec::from_duration(length));
        if self.timer.get_ref().0.set(once, TimerSetTimeFlags::empty()).is_err() {
            return tokio::time::sleep(length).await;
        }
        // An earlier sleep may have left readiness behind, without data to read.
        while let Ok(mut ready) = self.timer.readable().await {
            if ready.try_io(|timer| timer.get_ref().0.wait().map_err(Into::into)).is_ok() {
                return;
            }
        }
    }
}
