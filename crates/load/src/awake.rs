//! When all workers of a run are really there: a machine that is too busy, or that stood still, lets them begin late.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

type Told = Box<dyn FnOnce(u64) + Send>;

/// Counts the workers that have begun, and tells when the last one has.
pub(crate) struct Waking {
    left: AtomicUsize,
    latest_ns: AtomicU64,
    told: Mutex<Option<Told>>,
}

impl Waking {
    /// `told` receives when the last of `workers` began, in nanoseconds of the run's clock.
    pub(crate) fn new(workers: usize, told: Told) -> Self {
        Waking {
            left: AtomicUsize::new(workers),
            latest_ns: AtomicU64::new(0),
            told: Mutex::new(Some(told)),
        }
    }

    /// One more worker is there; each says so once.
    #[cold]
    pub(crate) fn woke(&self, now_ns: u64) {
        self.latest_ns.fetch_max(now_ns, Ordering::SeqCst);
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(told) = told.take() {
                told(self.latest_ns.load(Ordering::SeqCst));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_last_worker_counts_in_whatever_order_they_say_so() {
        let (sender, told) = channel();
        let waking = Waking::new(3, Box::new(move |at_ns| sender.send(at_ns).unwrap()));
        for at_ns in [20, 50] {
            waking.woke(at_ns);
            assert!(told.try_recv().is_err(), "one is missing");
        }
        waking.woke(30);
        assert_eq!(told.try_recv(), Ok(50));
    }
}
