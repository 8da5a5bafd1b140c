//! The token that ends work early. Who asks for it, such as a signal, is the front end's business.

use crate::error::{Error, Kind};
use dyno_load::connect::Patience;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Asks the work that was started with it to end orderly. Copies are the same token.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    requested: Arc<AtomicBool>,
    /// Flags of phases that run.
    linked: Arc<Mutex<Vec<Weak<AtomicBool>>>>,
}

impl Cancel {
    /// A token that nobody has used yet.
    pub fn new() -> Self {
        Cancel::default()
    }

    /// A token on a flag that something else sets too, such as a signal handler. Whoever sets that flag calls
    /// [`Cancel::cancel`] soon after: a phase that runs has a flag of its own.
    pub fn with_flag(requested: Arc<AtomicBool>) -> Self {
        Cancel {
            requested,
            linked: Arc::default(),
        }
    }

    /// Asks the work to end.
    pub fn cancel(&self) {
        let linked = self.linked();
        self.requested.store(true, Ordering::SeqCst);
        for flag in linked.iter().filter_map(Weak::upgrade) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Whether somebody has asked for the end.
    pub fn requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Ends the wait for a server once somebody has asked for the end.
    pub fn patience(&self) -> Patience {
        let requested = Arc::clone(&self.requested);
        Patience::new(move || requested.load(Ordering::Relaxed))
    }

    /// Goes on unless somebody has asked for the end.
    ///
    /// # Errors
    /// [`Kind::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        if self.requested() {
            return Err(Error::new(Kind::Interrupted, "interrupted"));
        }
        Ok(())
    }

    /// A flag for one phase, set when somebody asks for the end. The load sets it as well when it ends by itself,
    /// which must not look like a request.
    pub fn phase_flag(&self) -> Arc<AtomicBool> {
        let flag = Arc::new(AtomicBool::new(false));
        let mut linked = self.linked();
        linked.retain(|other| other.strong_count() > 0);
        linked.push(Arc::downgrade(&flag));
        // Looked at under the lock, so that no request falls between the look and the link.
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
    fn a_request_ends_phases_that_run_and_those_that_begin_later() {
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
