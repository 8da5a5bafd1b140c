//! Skew of the keys in a run: the actual share of the hottest 1 % and 10 %.
//!
//! All workers share one table with a counter for each document, so memory limits the number of documents.

use dyno_record::model::KeyShares;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Largest number of documents with counters, which then need 32 MiB.
const MOST_DOCUMENTS: u64 = 1 << 22;
/// Counters that are allocated together, when the first of them is needed.
const CHUNK_BITS: u32 = 16;

/// Counts the draws of each document.
#[derive(Debug)]
pub struct ShareTable {
    first: u64,
    documents: u64,
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// Whether a document without a counter was drawn.
    has_uncounted: AtomicBool,
}

impl ShareTable {
    /// A table for `count` documents (at least 1) from number `first`, and for documents that are inserted behind them
    /// later. `None` if there are too many.
    #[must_use]
    pub fn new(first: u64, count: u64) -> Option<Self> {
        (count <= MOST_DOCUMENTS).then(|| ShareTable {
            first,
            documents: count,
            chunks: (0..MOST_DOCUMENTS >> CHUNK_BITS).map(|_| OnceLock::new()).collect(),
            has_uncounted: AtomicBool::new(false),
        })
    }

    /// Counts one draw of `document`. Costs a cache miss: about 15 ns with a million documents.
    #[inline]
    pub fn observe(&self, document: u64) {
        let index = document.saturating_sub(self.first);
        let Some(chunk) = self.chunks.get((index >> CHUNK_BITS) as usize) else {
            // All workers read this cache line: write it once only.
            if !self.has_uncounted.load(Relaxed) {
                self.has_uncounted.store(true, Relaxed);
            }
            return;
        };
        let chunk = chunk.get_or_init(|| (0..1 << CHUNK_BITS).map(|_| AtomicU64::new(0)).collect());
        chunk[(index & ((1 << CHUNK_BITS) - 1)) as usize].fetch_add(1, Relaxed);
    }

    /// Shares of the draws so far; `None` before the first, and if later inserts exceeded the limit.
    ///
    /// The hottest 1 % are the 1 % of the documents (rounded up, those never drawn included) that
    /// were drawn most. With few draws per document this is more than their expected share: of a
    /// uniform distribution too, some documents are drawn more often than others.
    #[must_use]
    pub fn shares(&self) -> Option<KeyShares> {
        let (mut by_draws, mut documents) = (BTreeMap::<u64, u64>::new(), self.documents);
        for (number, chunk) in self.chunks.iter().enumerate() {
            for (offset, counter) in chunk.get().into_iter().flatten().enumerate() {
                let draws = counter.load(Relaxed);
                if draws > 0 {
                    *by_draws.entry(draws).or_default() += 1;
                    documents = documents.max(((number << CHUNK_BITS) + offset + 1) as u64);
                }
            }
        }
        let draws: u64 = by_draws.iter().map(|(each, documents)| each * documents).sum();
        let share = |top| hottest(&by_draws, top) as f64 / draws as f64;
        (draws > 0 && !self.has_uncounted.load(Relaxed)).then(|| KeyShares {
            draws,
            hottest_1_percent_ratio: share(documents.div_ceil(100)),
            hottest_10_percent_ratio: share(documents.div_ceil(10)),
        })
    }
}

/// Draws of the `places` hottest documents, given the number of documents by their draws.
fn hottest(by_draws: &BTreeMap<u64, u64>, mut places: u64) -> u64 {
    let mut draws = 0;
    for (each, documents) in by_draws.iter().rev() {
        let taken = places.min(*documents);
        draws += taken * each;
        places -= taken;
    }
    draws
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::scrambled_zipfian::ScrambledZipfian;
    use crate::keys::testing::{generator, top_share};

    #[test]
    fn shares_are_exact() {
        let documents = 1_000_000;
        let zipfian = ScrambledZipfian::new(0, documents);
        let table = ShareTable::new(0, documents).unwrap();
        let mut rng = generator(121);
        let mut counts = vec![0_u32; documents as usize];
        for _ in 0..3_000_000 {
            let document = zipfian.draw(&mut rng);
            counts[document as usize] += 1;
            table.observe(document);
        }
        let shares = table.shares().unwrap();
        assert_eq!(shares.draws, 3_000_000);
        for (share, part) in
            [(shares.hottest_1_percent_ratio, 100), (shares.hottest_10_percent_ratio, 10)]
        {
            let truth = top_share(&counts, documents.div_ceil(part) as usize);
            assert!((share - truth).abs() < 1e-12, "{share} for {truth}");
        }
    }

    #[test]
    fn documents_inserted_later_are_counted() {
        let table = ShareTable::new(100, 10).unwrap();
        (100..1100).for_each(|document| table.observe(document));
        let shares = table.shares().unwrap();
        assert_eq!(shares.draws, 1000);
        assert!((shares.hottest_1_percent_ratio - 0.01).abs() < 1e-12);
        assert!((shares.hottest_10_percent_ratio - 0.1).abs() < 1e-12);
    }

    #[test]
    fn few_documents_have_at_least_one_hottest() {
        let table = ShareTable::new(0, 3).unwrap();
        [0, 0, 0, 1].into_iter().for_each(|document| table.observe(document));
        assert!((table.shares().unwrap().hottest_1_percent_ratio - 0.75).abs() < 1e-12);
    }

    #[test]
    fn too_many_documents_and_no_draws_have_no_shares() {
        assert!(ShareTable::new(0, MOST_DOCUMENTS + 1).is_none());
        let table = ShareTable::new(7, MOST_DOCUMENTS).unwrap();
        assert_eq!(table.shares(), None);
        table.observe(7 + MOST_DOCUMENTS - 1);
        assert_eq!(table.shares().unwrap().draws, 1);
        table.observe(7 + MOST_DOCUMENTS);
        assert_eq!(table.shares(), None, "an inserted document has no counter");
    }

    #[test]
    fn workers_count_into_one_table() {
        let table = ShareTable::new(0, 1000).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50_000).for_each(|i| table.observe(i % 1000 / 10)));
            }
        });
        let shares = table.shares().unwrap();
        // A hundred documents got all draws, in equal parts.
        assert_eq!((shares.draws, shares.hottest_10_percent_ratio), (200_000, 1.0));
        assert!((shares.hottest_1_percent_ratio - 0.1).abs() < 1e-12);
    }
}
