//! Detects when all workers of a run have actually started: a busy or paused machine lets them start late.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

type OnLast = Box<dyn FnOnce(u64) + Send>;

/// Counts started workers, and calls back with the last one.
pub(crate) struct StartLatch {
    left: AtomicUsize,
    latest_ns: AtomicU64,
    on_last: Mutex<Option<OnLast>>,
}

impl StartLatch {
    /// `on_last` receives the start of the last of `workers`, in nanoseconds of the run's clock.
    pub(crate) fn new(workers: usize, on_last: OnLast) -> Self {
        StartLatch {
            left: AtomicUsize::new(workers),
            latest_ns: AtomicU64::new(0),
            on_last: Mutex::new(Some(on_last)),
        }
    }

    /// Counts a started worker; each calls it once.
    #[cold]
    pub(crate) fn arrive(&self, now_ns: u64) {
        self.latest_ns.fetch_max(now_ns, Ordering::SeqCst);
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let mut on_last = self.on_last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(on_last) = on_last.take() {
                on_last(self.latest_ns.load(Ordering::SeqCst));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_last_worker_counts_in_any_order() {
        let (sender, reported) = channel();
        let latch = StartLatch::new(3, Box::new(move |at_ns| sender.send(at_ns).unwrap()));
        for at_ns in [20, 50] {
            latch.arrive(at_ns);
            assert!(reported.try_recv().is_err(), "one is missing");
        }
        latch.arrive(30);
        assert_eq!(reported.try_recv(), Ok(50));
    }
}
