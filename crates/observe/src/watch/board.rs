//! What the sources reported last, for those who look while the run goes on.

use dyno_record::metrics::Reading;
use dyno_record::model::SourceRecord;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// How well it can be read so far.
    pub record: SourceRecord,
    /// The last good reading; absent before the first, and while the source cannot be read.
    pub reading: Option<Reading>,
}

/// A notice board that can be shared: copies are the same board.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Vec<Latest>>>);

impl Board {
    /// The state of all sources, in the order in which they were named.
    pub fn look(&self) -> Vec<Latest> {
        self.entries().clone()
    }

    pub(crate) fn pin(&self, latest: Latest) -> usize {
        let mut entries = self.entries();
        entries.push(latest);
        entries.len() - 1
    }

    pub(crate) fn change(&self, place: usize, change: impl FnOnce(&mut Latest)) {
        if let Some(latest) = self.entries().get_mut(place) {
            change(latest);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Latest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
