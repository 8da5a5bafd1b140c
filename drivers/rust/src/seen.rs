//! Received messages of a consumer, and the filter for missing ones: inserts in flight overtake each other.

use crate::common::PRODUCER_SHIFT;
use std::collections::{BTreeMap, HashSet};

/// Largest number of missing messages that a filter lists one by one; lower ones are requested as a range.
const NAMED: usize = 4096;
/// Numbers in one word of the record of received messages.
const WORD: i64 = 64;

#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) count: i64,
    pub(crate) duplicates: i64,
    producers: BTreeMap<i32, Progress>,
    /// Messages that a query found before the cursor returned them.
    queried: HashSet<(i32, i64)>,
}

struct Progress {
    newest: i64,
    /// One bit for each number, by `n / WORD`; empty words are omitted.
    came: BTreeMap<i64, u64>,
}

/// Ranges of `_id` (above, below; both excluded) and single ones.
#[derive(Default)]
pub(crate) struct OpenIds {
    /// Newer than all received messages.
    pub(crate) newer: Vec<(i64, i64)>,
    /// Older than the listed overtaken messages.
    pub(crate) older: Vec<(i64, i64)>,
    pub(crate) overtaken: Vec<i64>,
}

impl Progress {
    /// False if it was received before.
    fn mark(&mut self, n: i64) -> bool {
        let word = self.came.entry(n / WORD).or_default();
        let bit = 1 << (n % WORD);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.newest = self.newest.max(n);
        is_new
    }

    /// The newest overtaken messages, and the number below which there may be more.
    fn overtaken(&self) -> (Vec<i64>, i64) {
        let mut missing = Vec::new();
        let mut next = self.newest;
        while next >= 0 {
            let first = next - next % WORD;
            let word = self.came.get(&(next / WORD)).copied().unwrap_or(0);
            if word != u64::MAX {
                for n in (first..=next).rev() {
                    if word & (1 << (n % WORD)) == 0 {
                        missing.push(n);
                        if missing.len() == NAMED {
                            return (missing, n);
                        }
                    }
                }
            }
            next = first - 1;
        }
        (missing, 0)
    }
}

impl Seen {
    /// Whether the message is new. A message that the cursor returns after a query found it, or that a query finds
    /// again, does not count as a duplicate.
    pub(crate) fn accept(&mut self, producer: i32, n: i64, by_query: bool) -> bool {
        let state = self
            .producers
            .entry(producer)
            .or_insert(Progress { newest: -1, came: BTreeMap::new() });
        if state.mark(n) {
            if by_query {
                self.queried.insert((producer, n));
            }
            self.count += 1;
            return true;
        }
        if !by_query && !self.queried.remove(&(producer, n)) {
            self.duplicates += 1;
        }
        false
    }

    /// Messages that queries found and no cursor returned.
    pub(crate) fn caught_up(&self) -> usize {
        self.queried.len()
    }

    /// Filter for all missing messages.
    pub(crate) fn open_ids(&self) -> OpenIds {
        let mut open = OpenIds::default();
        let mut above = i64::MIN;
        for (producer, state) in &self.producers {
            let first = i64::from(*producer) << PRODUCER_SHIFT;
            if first > 0 {
                open.newer.push((above, first));
            }
            above = first + state.newest;
            let (overtaken, below) = state.overtaken();
            open.overtaken.extend(overtaken.iter().map(|n| first + n));
            if below > 0 {
                open.older.push((first - 1, first + below));
            }
        }
        open.newer.push((above, i64::MAX));
        open
    }
}
