//! Shared context of engine operations.

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::load_source::LoadSource;
use crate::observer::SharedObserver;
use dyno_record::statement::Statement;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Print a note for operations that take longer than this.
const NOTED_AFTER: Duration = Duration::from_secs(1);

/// Shared context of an engine operation.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub environment: &'a Environment,
    pub cancel: &'a Cancel,
    pub observer: &'a dyn SharedObserver,
    /// Source of the load, if not this process.
    pub source: Option<&'a dyn LoadSource>,
}

impl Context<'_> {
    /// Notifies the user of a useful fact.
    pub fn note(&self, text: impl AsRef<str>) {
        self.observer.note(text.as_ref());
    }

    /// Runs `work`, and notes `text` if it takes longer than a moment.
    pub(crate) fn noting<T>(&self, text: &str, work: impl FnOnce() -> T) -> T {
        let observer = self.observer;
        noting_after(NOTED_AFTER, || observer.note(text), work)
    }

    /// Warns the user.
    pub fn warning(&self, text: impl AsRef<str>) {
        self.observer.warning(text.as_ref());
    }

    /// Shows the user a reason to doubt the results.
    pub fn caveat(&self, caveat: &Statement) {
        self.observer.caveat(caveat);
    }
}

fn noting_after<T>(moment: Duration, note: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(moment) == Err(RecvTimeoutError::Timeout) {
                note();
            }
        });
        let result = work();
        drop(working);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn long_operations_are_announced_and_short_ones_are_not() {
        let reported = AtomicBool::new(false);
        let note = || reported.store(true, Ordering::Relaxed);
        assert_eq!(noting_after(Duration::from_secs(60), note, || 7), 7);
        assert!(!reported.load(Ordering::Relaxed));
        let is_reported = || {
            while !reported.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        };
        noting_after(Duration::from_millis(1), note, is_reported);
        assert!(reported.load(Ordering::Relaxed));
    }
}
