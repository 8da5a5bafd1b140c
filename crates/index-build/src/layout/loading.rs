//! Loads the documents in the order that a layout has.

use crate::layout::collection::{Collection, Shape};
use crate::layout::documents::Units;
use crate::layout::{Access, LayoutError};
use bson::Document;
use dyno_load::connect::Control;
use dyno_load::keys::Permutation;
use dyno_plan::index_build::Layout;
use std::sync::atomic::{AtomicU64, Ordering};

/// Documents of a command. With the largest usual documents a command stays below a megabyte.
const BATCH: u64 = 100;
/// Connections of the layout that loads with several at once.
const CONNECTIONS: u64 = 16;
/// Of so many documents of a churned collection one more is loaded and deleted again.
const DELETED_OF: u64 = 10;

/// Makes the collection and loads `count` documents into it; nothing for [`Layout::Existing`].
///
/// # Errors
/// [`LayoutError::NotEmpty`] if it has documents already; then, and only then, nothing was changed. After every other
/// error a part of the documents may be there.
pub fn load(
    access: &Access<'_>,
    collection: &Collection,
    layout: Layout,
    units: Units,
    count: u64,
) -> Result<(), LayoutError> {
    if layout == Layout::Existing {
        return Ok(());
    }
    let mut control = (access.connect)()?;
    if collection.shape(&mut control)?.is_some() {
        let documents = collection.count(&mut control)?;
        if documents > 0 {
            return Err(LayoutError::NotEmpty {
                namespace: collection.namespace(),
                documents,
            });
        }
    } else {
        collection.create(&mut control, &Shape::default())?;
    }
    let loading = Loading {
        access,
        collection,
        units,
        count,
        order: Permutation::new(count.max(1)),
    };
    match layout {
        Layout::Existing | Layout::Ordered => loading.insert(&mut control, count, |n| n)?,
        Layout::Shuffled => loading.insert(&mut control, count, |n| loading.order.at(n))?,
        Layout::Concurrent => loading.insert_at_once()?,
        Layout::Churned => loading.churn(&mut control)?,
    }
    let found = collection.count(&mut control)?;
    if found == count {
        Ok(())
    } else {
        Err(LayoutError::WrongCount {
            found,
            expected: count,
        })
    }
}

struct Loading<'a> {
    access: &'a Access<'a>,
    collection: &'a Collection,
    units: Units,
    count: u64,
    /// Numbers of documents in shuffled order.
    order: Permutation,
}

impl Loading<'_> {
    fn tell(&self, what: &str, done: u64) {
        (self.access.progress)(what, done, self.count);
    }

    /// Inserts the documents with the numbers that `number_at` gives for `0..count`.
    fn insert(
        &self,
        control: &mut Control,
        count: u64,
        number_at: impl Fn(u64) -> u64,
    ) -> Result<(), LayoutError> {
        for batch in batches(count) {
            self.access.check()?;
            let end = batch.end;
            let documents = batch.map(|place| self.units.unit(number_at(place)));
            self.collection.insert(control, documents.collect())?;
            self.tell("loading", end);
        }
        Ok(())
    }

    /// Each connection inserts every so-manieth batch of the shuffled order.
    fn insert_at_once(&self) -> Result<(), LayoutError> {
        let next = AtomicU64::new(0);
        let work = || -> Result<(), LayoutError> {
            let mut control = (self.access.connect)()?;
            loop {
                self.access.check()?;
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= self.count {
                    return Ok(());
                }
                let end = (first + BATCH).min(self.count);
                let documents = (first..end).map(|place| self.units.unit(self.order.at(place)));
                self.collection.insert(&mut control, documents.collect())?;
                self.tell("loading", end);
            }
        };
        std::thread::scope(|scope| {
            let workers: Result<Vec<_>, _> = (0..CONNECTIONS)
                .map(|_| std::thread::Builder::new().spawn_scoped(scope, work))
                .collect();
            let workers = workers.map_err(LayoutError::Thread)?;
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }

    /// Loads short documents and some that go away again, in order, and lets the short ones grow in shuffled order.
    fn churn(&self, control: &mut Control) -> Result<(), LayoutError> {
        for batch in batches(self.count) {
            self.access.check()?;
            let end = batch.end;
            let extra = batch
                .clone()
                .filter(|number| number % DELETED_OF == 0)
                .map(|number| self.units.unit(self.extra(number)));
            let extra: Vec<Document> = extra.collect();
            let short = batch.map(|number| self.units.short_unit(number)).collect();
            self.collection.insert(control, short)?;
            self.collection.insert(control, extra)?;
            self.tell("loading", end);
        }
        for batch in batches(self.count) {
            self.access.check()?;
            let end = batch.end;
            let numbers: Vec<u64> = batch.map(|place| self.order.at(place)).collect();
            let grown = numbers.iter().map(|number| self.units.unit(*number));
            self.collection.put(control, grown.collect())?;
            let deleted = numbers.iter().filter(|number| *number % DELETED_OF == 0);
            let deleted: Vec<i64> = deleted.map(|number| self.extra(*number) as i64).collect();
            self.collection.delete(control, &deleted)?;
            self.tell("updating", end);
        }
        Ok(())
    }

    /// Number of the document that is loaded with another one and deleted again.
    fn extra(&self, number: u64) -> u64 {
        self.count + number
    }
}

/// The numbers `0..count` in pieces.
fn batches(count: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..count.div_ceil(BATCH)).map(move |batch| batch * BATCH..((batch + 1) * BATCH).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_every_number_once() {
        for count in [0, 1, 99, 100, 101, 250] {
            let all: Vec<u64> = batches(count).flatten().collect();
            assert!(all.iter().copied().eq(0..count), "{count}");
        }
    }
}
