//! Token that ends work early. The front end requests it, for instance on a signal.

use crate::error::{Error, Kind};
use dyno_load::connect::CancelCheck;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Requests an orderly end of the work that uses this token. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    requested: Arc<AtomicBool>,
    /// Flags of the running phases.
    linked: Arc<Mutex<Vec<Weak<AtomicBool>>>>,
}

impl Cancel {
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// Creates a token on a flag that other code, such as a signal handler, also sets. That code
    /// must soon call [`Cancel::cancel`], because running phases have flags of their own.
    pub fn with_flag(requested: Arc<AtomicBool>) -> Self {
        Cancel { requested, linked: Arc::default() }
    }

    /// Requests the end of the work.
    pub fn cancel(&self) {
        let linked = self.linked();
        self.requested.store(true, Ordering::SeqCst);
        for flag in linked.iter().filter_map(Weak::upgrade) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the end was requested.
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Check that ends the wait for a server once cancellation is requested.
    pub fn patience(&self) -> CancelCheck {
        let requested = Arc::clone(&self.requested);
        CancelCheck::new(move || requested.load(Ordering::Relaxed))
    }

    /// Fails if cancellation was requested.
    ///
    /// # Errors
    /// [`Kind::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        if self.requested() {
            return Err(Error::new(Kind::Interrupted, "interrupted"));
        }
        Ok(())
    }

    /// Creates a flag for one phase, set on cancellation. The load also sets it when it ends by
    /// itself, which must not count as a request.
    pub fn phase_flag(&self) -> Arc<AtomicBool> {
        let flag = Arc::new(AtomicBool::new(false));
        let mut linked = self.linked();
        linked.retain(|other| other.strong_count() > 0);
        linked.push(Arc::downgrade(&flag));
        // Checked under the lock, so that no request falls between the check and the link.
        if self.requested.load(Ordering::SeqCst) {
            flag.store(true, Ordering::Relaxed);
        }
        flag
    }

    fn linked(&self) -> MutexGuard<'_, Vec<Weak<AtomicBool>>> {
        self.linked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_phase_does_not_look_like_a_request() {
        let cancel = Cancel::new();
        cancel.phase_flag().store(true, Ordering::Relaxed);
        assert!(!cancel.requested());
        assert!(cancel.check().is_ok());
    }

    #[test]
    fn request_ends_running_and_later_phases() {
        let cancel = Cancel::new();
        let (running, over) = (cancel.phase_flag(), cancel.phase_flag());
        drop(over);
        assert!(!running.load(Ordering::Relaxed));
        cancel.clone().cancel();
        assert!(running.load(Ordering::Relaxed));
        assert!(cancel.phase_flag().load(Ordering::Relaxed));
        let error = cancel.check().expect_err("it was asked for");
        assert_eq!(error.kind, Kind::Interrupted);
    }
}
