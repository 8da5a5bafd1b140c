//! Loads the documents in the order of a layout.

use crate::layout::collection::{Collection, Shape};
use crate::layout::documents::Units;
use crate::layout::share::{Share, hash_of};
use crate::layout::{Access, LayoutError};
use bson::Document;
use dyno_load::connect::Control;
use dyno_load::keys::Permutation;
use dyno_plan::index_build::Layout;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Documents of a command. With the largest usual documents, a command stays below a megabyte.
const BATCH: u64 = 100;
/// Connections of the layout that loads in parallel.
const CONNECTIONS: u64 = 16;
/// A churned collection gets one extra document, deleted again, for each of this many.
const DELETED_OF: u64 = 10;
/// Chunks that move to a server; the same number moves away.
const CHUNKS: usize = 32;

/// Documents to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    pub layout: Layout,
    pub units: Units,
    /// Documents on all servers: those with an `_id` below it.
    pub count: u64,
    /// Documents of this server.
    pub share: Share,
}

/// Creates the collection and loads documents into it; does nothing for [`Layout::Existing`].
///
/// # Errors
/// [`LayoutError::NotEmpty`] if it already contains documents; only then nothing was changed. After any other error, some documents
/// may be loaded.
pub fn load(access: &Access<'_>, collection: &Collection, load: Load) -> Result<(), LayoutError> {
    let Load { layout, units, count, share } = load;
    if layout == Layout::Existing {
        return Ok(());
    }
    let mut control = (access.connect)()?;
    if collection.shape(&mut control)?.is_some() {
        let documents = collection.count(&mut control)?;
        if documents > 0 {
            return Err(LayoutError::NotEmpty { namespace: collection.namespace(), documents });
        }
    } else {
        collection.create(&mut control, &Shape::default())?;
    }
    let loading =
        Loading { access, collection, units, count, share, order: Permutation::new(count.max(1)) };
    match layout {
        Layout::Existing | Layout::Ordered => loading.insert(&mut control, |n| n)?,
        Layout::Shuffled => loading.insert(&mut control, |n| loading.order.at(n))?,
        Layout::Concurrent => loading.insert_at_once()?,
        Layout::Churned => loading.churn(&mut control)?,
        Layout::Migrated => loading.migrate(&mut control)?,
    }
    let found = collection.count(&mut control)?;
    let expected = share.of(count);
    if found == expected { Ok(()) } else { Err(LayoutError::WrongCount { found, expected }) }
}

struct Loading<'a> {
    access: &'a Access<'a>,
    collection: &'a Collection,
    units: Units,
    count: u64,
    share: Share,
    /// Numbers of documents in shuffled order.
    order: Permutation,
}

impl Loading<'_> {
    fn tell(&self, what: &str, done: u64) {
        (self.access.progress)(what, done, self.count);
    }

    /// Ranges of `0..count` that each contain about as many documents of this server as a command takes.
    fn batches(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        batches(self.count, BATCH * self.share.servers())
    }

    /// The documents of these that belong to this server.
    fn own(&self, numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        let own = numbers.filter(|number| self.share.has(*number as i64));
        own.collect()
    }

    fn units(&self, numbers: &[u64]) -> Vec<Document> {
        let units = numbers.iter().map(|number| self.units.unit(*number));
        units.collect()
    }

    /// Inserts the documents in the order of the numbers from `number_at` for `0..count`.
    fn insert(
        &self,
        control: &mut Control,
        number_at: impl Fn(u64) -> u64,
    ) -> Result<(), LayoutError> {
        for batch in self.batches() {
            self.access.check()?;
            let end = batch.end;
            let numbers = self.own(batch.map(&number_at));
            self.collection.insert(control, self.units(&numbers))?;
            self.tell("loading", end);
        }
        Ok(())
    }

    /// Inserts in parallel: each connection takes every n-th batch of the shuffled order.
    fn insert_at_once(&self) -> Result<(), LayoutError> {
        let pieces: Vec<Range<u64>> = self.batches().collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), LayoutError> {
            let mut control = (self.access.connect)()?;
            loop {
                self.access.check()?;
                let piece = pieces.get(next.fetch_add(1, Ordering::Relaxed));
                let Some(batch) = piece.cloned() else {
                    return Ok(());
                };
                let end = batch.end;
                let numbers = self.own(batch.map(|place| self.order.at(place)));
                self.collection.insert(&mut control, self.units(&numbers))?;
                self.tell("loading", end);
            }
        };
        std::thread::scope(|scope| {
            let workers: Result<Vec<_>, _> = (0..CONNECTIONS)
                .map(|_| std::thread::Builder::new().spawn_scoped(scope, work))
                .collect();
            let workers = workers.map_err(LayoutError::Thread)?;
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })
    }

    /// Loads short documents and extra ones in order, deletes the extra ones, and grows the others in shuffled order.
    fn churn(&self, control: &mut Control) -> Result<(), LayoutError> {
        for batch in self.batches() {
            self.access.check()?;
            let end = batch.end;
            let numbers = self.own(batch);
            let extra = numbers.iter().filter(|number| *number % DELETED_OF == 0);
            let extra: Vec<u64> = extra.map(|number| self.extra(*number)).collect();
            let short = numbers.iter().map(|number| self.units.short_unit(*number));
            self.collection.insert(control, short.collect())?;
            self.collection.insert(control, self.units(&extra))?;
            self.tell("loading", end);
        }
        for batch in self.batches() {
            self.access.check()?;
            let end = batch.end;
            let numbers = self.own(batch.map(|place| self.order.at(place)));
            self.collection.put(control, self.units(&numbers))?;
            let deleted = numbers.iter().filter(|number| *number % DELETED_OF == 0);
            let deleted: Vec<i64> = deleted.map(|number| self.extra(*number) as i64).collect();
            self.collection.delete(control, &deleted)?;
            self.tell("updating", end);
        }
        Ok(())
    }

    /// Loads half of the documents and as many foreign ones, in order. Then, chunk by chunk, the other half arrives, and foreign
    /// ones are deleted.
    ///
    /// This is the effect of chunk migrations on a shard that gives as many as it gets. The giver sends a chunk's documents in
    /// record order (`_cloneRecordIds` in MongoDB's `migration_chunk_cloner_source.cpp` is sorted), and deletes them in the order
    /// of the shard key, the hash.
    fn migrate(&self, control: &mut Control) -> Result<(), LayoutError> {
        let mut chunks: Vec<Vec<u64>> = vec![Vec::new(); CHUNKS];
        for batch in self.batches() {
            self.access.check()?;
            let end = batch.end;
            let documents = self.own(batch).into_iter().map(|number| match chunk_of(number) {
                None => self.units.unit(number),
                Some(chunk) => {
                    chunks[chunk].push(number);
                    self.units.unit(self.extra(number))
                }
            });
            let documents = documents.collect();
            self.collection.insert(control, documents)?;
            self.tell("loading", end);
        }
        let mut moved = 0;
        for mut chunk in chunks {
            for batch in chunk.chunks(BATCH as usize) {
                self.access.check()?;
                self.collection.insert(control, self.units(batch))?;
            }
            chunk.sort_unstable_by_key(|number| hash_of(self.extra(*number) as i64));
            for batch in chunk.chunks(BATCH as usize) {
                self.access.check()?;
                let deleted = batch.iter().map(|number| self.extra(*number) as i64);
                self.collection.delete(control, &deleted.collect::<Vec<_>>())?;
            }
            moved += chunk.len() as u64;
            self.tell("moving", moved * self.share.servers());
        }
        Ok(())
    }

    /// Number of the extra document that is loaded with another one and deleted again.
    fn extra(&self, number: u64) -> u64 {
        self.count + number
    }
}

/// The chunk in which a document arrives; `None` for the half that exists from the start. Other digits of the hash select the
/// server.
fn chunk_of(number: u64) -> Option<usize> {
    let hash = hash_of(number as i64) as u64;
    (hash & 1 == 1).then_some((hash >> 1) as usize % CHUNKS)
}

/// Ranges of `0..count` of this size.
fn batches(count: u64, size: u64) -> impl Iterator<Item = Range<u64>> {
    (0..count.div_ceil(size)).map(move |batch| batch * size..((batch + 1) * size).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_each_servers_documents_arrive_in_chunks() {
        for share in [Share::ALL, Share::new(0, 2), Share::new(3, 4)] {
            let own: Vec<u64> = (0..64_000).filter(|n| share.has(*n as i64)).collect();
            let mut counts = [0u64; CHUNKS];
            for chunk in own.iter().filter_map(|number| chunk_of(*number)) {
                counts[chunk] += 1;
            }
            let moved: u64 = counts.iter().sum();
            assert!((2 * moved).abs_diff(own.len() as u64) * 20 < own.len() as u64, "{moved}");
            let mean = moved / CHUNKS as u64;
            let is_fair = |count: &u64| count.abs_diff(mean) * 2 < mean;
            assert!(counts.iter().all(is_fair), "{counts:?}");
        }
    }

    #[test]
    fn batches_hold_every_number_once() {
        for count in [0, 1, 99, 100, 101, 250] {
            let all: Vec<u64> = batches(count, 100).flatten().collect();
            assert!(all.iter().copied().eq(0..count), "{count}");
        }
    }
}
