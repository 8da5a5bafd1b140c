//! Waits for sockets with a resolution below a millisecond.
//!
//! A thin, safe wrapper around `epoll_pwait2`. The usual event libraries wait for whole milliseconds, which would show
//! in every start delay (`docs/decisions/002-own-poller.md`). Readiness is level-triggered: unread data is reported
//! again.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// Events fetched by one system call.
const EVENTS_PER_WAIT: usize = 256;

/// Token of the [`Waker`].
pub(crate) const WAKER_TOKEN: u64 = u64::MAX;

/// Readiness of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// An epoll instance with a buffer for its events.
pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
    waker: Arc<OwnedFd>,
    /// The kernel is older than 5.11 and knows only milliseconds.
    milliseconds_only: bool,
}

/// Wakes a [`Poller`] from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker {
    event: Arc<OwnedFd>,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        // SAFETY: no pointers are passed.
        let event = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor is new and has no other owner.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        let poller = Poller {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_PER_WAIT],
            ready: 0,
            waker: Arc::new(event),
            milliseconds_only: false,
        };
        poller.add(poller.waker.as_raw_fd(), WAKER_TOKEN)?;
        Ok(poller)
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker { event: Arc::clone(&self.waker) }
    }

    /// Watches a descriptor for input.
    pub(crate) fn add(&self, descriptor: RawFd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, token, false)
    }

    /// Starts or stops watching for output as well.
    pub(crate) fn set_writable(
        &self,
        descriptor: RawFd,
        token: u64,
        writable: bool,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, token, writable)
    }

    /// Stops watching. Call it before the descriptor is closed.
    pub(crate) fn remove(&self, descriptor: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, descriptor, 0, false)
    }

    fn control(
        &self,
        how: libc::c_int,
        descriptor: RawFd,
        token: u64,
        writable: bool,
    ) -> io::Result<()> {
        let output = if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: (libc::EPOLLIN | output) as u32, u64: token };
        // SAFETY: `event` is valid for the call; the kernel copies it.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), how, descriptor, &mut event) })?;
        Ok(())
    }

    /// Waits at most `timeout` and returns the number of events, to be read with [`event`](Self::event).
    /// An interruption by a signal counts as no event.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let result =
            if self.milliseconds_only { self.wait_ms(timeout) } else { self.wait_ns(timeout) };
        self.ready = match result {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) && !self.milliseconds_only => {
                self.milliseconds_only = true;
                return self.wait(timeout);
            }
            Err(error) => return Err(error),
        };
        Ok(self.ready)
    }

    fn wait_ns(&mut self, timeout: Duration) -> io::Result<libc::c_int> {
        let timeout = libc::timespec {
            tv_sec: timeout.as_secs() as libc::time_t,
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        };
        // Called by number, because glibc has no wrapper before 2.35, and musl has none. SAFETY: the buffer has room
        // for EVENTS_PER_WAIT events, `timeout` outlives the call, and there is no signal mask.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_PER_WAIT as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        check(result as libc::c_int)
    }

    /// Rounds down, so that the caller spins for the rest instead of starting late.
    fn wait_ms(&mut self, timeout: Duration) -> io::Result<libc::c_int> {
        let milliseconds = timeout.as_millis().min(60_000) as libc::c_int;
        // SAFETY: the buffer holds EVENTS_PER_WAIT events.
        check(unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_PER_WAIT as libc::c_int,
                milliseconds,
            )
        })
    }

    /// The event number `index` of the last wait.
    #[inline]
    pub(crate) fn event(&self, index: usize) -> Event {
        let event = self.events[..self.ready][index];
        let flags = event.events as libc::c_int;
        let failed = flags & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
        Event {
            token: event.u64,
            readable: failed || flags & libc::EPOLLIN != 0,
            writable: flags & libc::EPOLLOUT != 0,
        }
    }

    /// Resets the waker after its event.
    pub(crate) fn clear_waker(&self) {
        let mut count = [0u8; 8];
        // SAFETY: the buffer has the eight bytes that an eventfd writes. Failing means that it is quiet already.
        unsafe { libc::read(self.waker.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl Waker {
    /// Makes the current or next wait return.
    pub(crate) fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: an eventfd takes eight bytes. Failing means that the counter is full, so a wake-up is pending.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

/// Asks the kernel to end this thread's waits on time instead of up to 50 µs later.
pub(crate) fn set_precise_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches only this thread's timers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn a_wait_without_events_ends_after_its_timeout() {
        let mut poller = Poller::new().unwrap();
        let start = Instant::now();
        assert_eq!(poller.wait(Duration::from_micros(300)).unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_micros(300));
    }

    #[test]
    fn unread_input_is_reported_again_and_removal_ends_it() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(theirs.as_raw_fd(), 7).unwrap();
        ours.write_all(b"x").unwrap();
        for _ in 0..2 {
            assert_eq!(poller.wait(Duration::from_secs(5)).unwrap(), 1);
            assert_eq!(poller.event(0).token, 7);
            assert!(poller.event(0).readable && !poller.event(0).writable);
        }
        poller.remove(theirs.as_raw_fd()).unwrap();
        assert_eq!(poller.wait(Duration::ZERO).unwrap(), 0);
    }

    #[test]
    fn a_waker_ends_a_wait_from_another_thread_once() {
        let mut poller = Poller::new().unwrap();
        let waker = poller.waker();
        std::thread::spawn(move || waker.wake()).join().unwrap();
        assert_eq!(poller.wait(Duration::from_secs(5)).unwrap(), 1);
        assert_eq!(poller.event(0).token, WAKER_TOKEN);
        poller.clear_waker();
        assert_eq!(poller.wait(Duration::ZERO).unwrap(), 0);
    }
}
