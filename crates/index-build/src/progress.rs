//! Progress messages of loading, copying and verifying.

use dyno_engine::observer::SharedObserver;
use dyno_record::quantity::Quantity;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of progress messages.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// Prints progress and remaining time periodically.
pub(crate) struct ProgressNotes<'a> {
    observer: &'a dyn SharedObserver,
    said: Mutex<Said>,
}

struct Said {
    last: Instant,
    /// Start of each part of the work.
    began: BTreeMap<String, Instant>,
}

impl<'a> ProgressNotes<'a> {
    pub(crate) fn new(observer: &'a dyn SharedObserver) -> Self {
        ProgressNotes {
            observer,
            said: Mutex::new(Said { last: Instant::now(), began: BTreeMap::new() }),
        }
    }

    /// Reports that `what` has processed `done` of `all` documents, on the named server if there are several.
    pub(crate) fn progress(&self, server: Option<&str>, what: &str, done: u64, all: u64) {
        let what = match server {
            Some(server) => format!("{server}: {what}"),
            None => what.to_owned(),
        };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let began = *said.began.entry(what.clone()).or_insert(now);
        if said.last.elapsed() >= SAY_EVERY {
            said.last = now;
            let rest = rest(now - began, done, all).map_or(String::new(), |rest| {
                format!(", about {} more", Quantity::seconds(rest.as_secs_f64()))
            });
            self.observer.note(&format!("{what}: {done} of {all} documents{rest}"));
        }
    }
}

/// Remaining time at the current rate; `None` while it is too early to estimate.
fn rest(elapsed: Duration, done: u64, all: u64) -> Option<Duration> {
    let is_reported = elapsed >= SAY_EVERY / 2 && done > 0 && done < all;
    is_reported.then(|| elapsed.mul_f64((all - done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_shown_after_some_progress() {
        let seconds = Duration::from_secs;
        assert_eq!(rest(seconds(10), 100, 400), Some(seconds(30)));
        assert_eq!(rest(seconds(1), 100, 400), None);
        assert_eq!(rest(seconds(10), 0, 400), None);
        assert_eq!(rest(seconds(10), 400, 400), None);
    }
}
