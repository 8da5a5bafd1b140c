//! What the parts of the engine have at hand.

use crate::cancel::Cancel;
use crate::environment::Environment;
use crate::load_source::LoadSource;
use crate::observer::SharedObserver;
use dyno_record::statement::Statement;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Work that takes longer is told of.
const NOTED_AFTER: Duration = Duration::from_secs(1);

/// What work is done with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The place that it is done in.
    pub environment: &'a Environment,
    /// Ends it early.
    pub cancel: &'a Cancel,
    /// Is told what happens.
    pub observer: &'a dyn SharedObserver,
    /// Where the load comes from, if not from this process.
    pub source: Option<&'a dyn LoadSource>,
}

impl Context<'_> {
    /// Tells a person what is good to know.
    pub fn note(&self, text: impl AsRef<str>) {
        self.observer.note(text.as_ref());
    }

    /// Works, and tells a person what it is about if that takes longer than a moment.
    pub(crate) fn noting<T>(&self, text: &str, work: impl FnOnce() -> T) -> T {
        let observer = self.observer;
        noting_after(NOTED_AFTER, || observer.note(text), work)
    }

    /// Tells a person what should be looked at.
    pub fn warning(&self, text: impl AsRef<str>) {
        self.observer.warning(text.as_ref());
    }

    /// Tells a person of a reason to doubt what is measured.
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
