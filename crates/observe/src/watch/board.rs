//! Latest reports of the sources, for display during the run.

use dyno_record::metrics::Reading;
use dyno_record::model::SourceRecord;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The latest state of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    /// Its health so far.
    pub record: SourceRecord,
    /// The last good reading; absent before the first one and while the source cannot be read.
    pub reading: Option<Reading>,
}

/// A shared notice board: clones show the same content.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Vec<Latest>>>);

impl Board {
    /// The latest state of all sources, in the order in which they were named.
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
