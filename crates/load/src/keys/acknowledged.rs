//! Numbers of the documents that a run inserts, and the number up to which all are answered.
//!
//! All workers share it without a lock: readers must not ask for a document whose insert is in flight.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Bits per word of the ring.
const WORD_BITS: u64 = 64;
/// Default window: insert numbers that may be outstanding after the oldest unanswered one. At up to 100 000 inserts per
/// second, an insert may hang for 10 s without blocking others; costs 128 KiB.
pub const DEFAULT_WINDOW: u64 = 1 << 20;

/// Hands out document numbers in order, and tracks which are answered.
///
/// The ring has one bit per number of the window. Its meaning alternates: in even rounds of the ring a set bit is an
/// answered insert, in odd rounds a cleared one. So no bit has to be reset while workers run, and no number is lost or
/// counted twice.
#[derive(Debug)]
pub struct InsertCounter {
    next: AtomicU64,
    /// All numbers below are answered. Only grows.
    limit: AtomicU64,
    ring: Box<[AtomicU64]>,
    first: u64,
}

impl InsertCounter {
    /// The first number handed out is `first`: documents below it exist already.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self::with_window(first, DEFAULT_WINDOW)
    }

    /// As [`new`](Self::new), with room for `window` numbers, rounded up to a power of two of at least 64.
    #[must_use]
    pub fn with_window(first: u64, window: u64) -> Self {
        let words = window.div_ceil(WORD_BITS).next_power_of_two();
        InsertCounter {
            next: AtomicU64::new(first),
            limit: AtomicU64::new(first),
            ring: (0..words).map(|_| AtomicU64::new(0)).collect(),
            first,
        }
    }

    /// A new document number, each handed out once; `None` while the window is full, that is, while the oldest
    /// unanswered insert is a whole window behind. The caller must wait for an answer (or timeout) and ask again.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.next
            .try_update(SeqCst, SeqCst, |next| {
                // `limit` is read after `next`, so it can lie ahead of it.
                let outstanding = next.saturating_sub(self.limit.load(SeqCst));
                (outstanding < self.window()).then_some(next + 1)
            })
            .ok()
    }

    /// The largest number up to which every insert is answered; `first - 1` before the first
    /// answer (0 when `first` is 0, although nothing exists then).
    #[must_use]
    #[inline]
    pub fn newest_acknowledged(&self) -> u64 {
        self.limit.load(SeqCst).saturating_sub(1)
    }

    /// All documents with numbers below this are answered.
    #[must_use]
    #[inline]
    pub fn answered_below(&self) -> u64 {
        self.limit.load(SeqCst)
    }

    /// Numbers handed out so far.
    #[cfg(test)]
    #[must_use]
    pub fn handed_out(&self) -> u64 {
        self.next.load(SeqCst) - self.first
    }

    fn window(&self) -> u64 {
        self.ring.len() as u64 * WORD_BITS
    }

    /// Word and bit of a number, and whether a set bit means "answered" in its round of the ring.
    #[inline]
    fn place(&self, number: u64) -> (&AtomicU64, u64, bool) {
        // Counted from `first`: the ring is all zeros when its round 0 begins.
        let index = number - self.first;
        let slot = index % self.window();
        let word = &self.ring[(slot / WORD_BITS) as usize];
        (word, slot % WORD_BITS, (index / self.window()).is_multiple_of(2))
    }

    /// Insert `number` has ended. A number that is not outstanding is ignored.
    ///
    /// A failed insert counts as answered, as in YCSB: otherwise one failure would hide every later document and block
    /// the window. Reads of the gap are counted as not found.
    pub fn acknowledge(&self, number: u64) {
        // An older number would be mistaken for a later one at the same place in the ring.
        if number < self.limit.load(SeqCst) || number >= self.next.load(SeqCst) {
            return;
        }
        let (word, bit, set_means_answered) = self.place(number);
        if set_means_answered {
            word.fetch_or(1 << bit, SeqCst);
        } else {
            word.fetch_and(!(1 << bit), SeqCst);
        }
        self.advance();
    }

    /// Moves the limit over all numbers answered without a gap.
    ///
    /// Sequentially consistent order is needed: of two workers that answer neighbouring numbers in
    /// different words, at least one must see the other's bit. A stale reading does no harm, because
    /// the limit never returns to an old value and the exchange fails.
    fn advance(&self) {
        loop {
            let limit = self.limit.load(SeqCst);
            let (word, bit, set_means_answered) = self.place(limit);
            let answered = if set_means_answered { word.load(SeqCst) } else { !word.load(SeqCst) };
            let run = u64::from((answered >> bit).trailing_ones());
            if run == 0 {
                return;
            }
            // A worker that loses the exchange checks again: the winner may have read the word too early.
            let _ = self.limit.compare_exchange(limit, limit + run, SeqCst, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::testing::generator;
    use rand::RngExt;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn numbers_follow_each_other_from_the_first() {
        let counter = InsertCounter::new(1000);
        assert_eq!(counter.newest_acknowledged(), 999);
        assert_eq!([counter.next(), counter.next()], [Some(1000), Some(1001)]);
        assert_eq!(counter.newest_acknowledged(), 999);
        assert_eq!(counter.handed_out(), 2);
    }

    #[test]
    fn a_gap_hides_later_numbers_until_it_is_closed() {
        let counter = InsertCounter::new(10);
        for _ in 0..200 {
            counter.next().unwrap();
        }
        for number in 11..210 {
            counter.acknowledge(number);
            assert_eq!(counter.newest_acknowledged(), 9);
        }
        counter.acknowledge(10);
        assert_eq!(counter.newest_acknowledged(), 209);
    }

    #[test]
    fn a_full_window_gives_no_number_until_the_oldest_is_answered() {
        let counter = InsertCounter::with_window(5, 64);
        let numbers: Vec<u64> = std::iter::from_fn(|| counter.next()).collect();
        assert_eq!(numbers, (5..69).collect::<Vec<_>>());
        counter.acknowledge(6);
        assert_eq!(counter.next(), None);
        counter.acknowledge(5);
        assert_eq!([counter.next(), counter.next(), counter.next()], [Some(69), Some(70), None]);
    }

    #[test]
    fn answers_in_random_order_over_many_rounds_leave_no_gap() {
        let mut rng = generator(91);
        let counter = InsertCounter::with_window(77, 128);
        let mut outstanding = Vec::new();
        let mut answered = std::collections::HashSet::new();
        let mut newest = 76;
        for _ in 0..20_000 {
            if outstanding.is_empty() || rng.random_bool(0.5) {
                outstanding.extend(counter.next());
            }
            if !outstanding.is_empty() && rng.random_bool(0.55) {
                let number = outstanding.swap_remove(rng.random_range(0..outstanding.len()));
                counter.acknowledge(number);
                answered.insert(number);
            }
            while answered.contains(&(newest + 1)) {
                newest += 1;
            }
            assert_eq!(counter.newest_acknowledged(), newest);
        }
        assert!(counter.handed_out() > 1000, "the ring went round");
    }

    #[test]
    fn numbers_answered_twice_or_never_handed_out_are_ignored() {
        let counter = InsertCounter::with_window(0, 64);
        counter.acknowledge(3);
        for _ in 0..64 {
            counter.next().unwrap();
        }
        counter.acknowledge(0);
        counter.acknowledge(0);
        assert_eq!(counter.newest_acknowledged(), 0);
        counter.acknowledge(1);
        counter.acknowledge(1);
        assert_eq!(counter.newest_acknowledged(), 1);
    }

    #[test]
    fn workers_that_race_lose_no_number_and_never_see_the_future() {
        const WORKERS: usize = 4;
        const EACH: usize = 100_000;
        let counter = InsertCounter::with_window(1, 256);
        // `done[n]` is set before `n` is acknowledged, so everything up to the newest must be set.
        let done: Vec<AtomicBool> = (0..=WORKERS * EACH).map(|n| AtomicBool::new(n == 0)).collect();
        std::thread::scope(|scope| {
            for worker in 0..WORKERS {
                let (counter, done) = (&counter, &done);
                scope.spawn(move || {
                    let mut held = Vec::new();
                    let mut left = EACH;
                    let mut checked = 0;
                    while left > 0 || !held.is_empty() {
                        let number = if left > 0 { counter.next() } else { None };
                        if let Some(number) = number {
                            left -= 1;
                            held.push(number);
                        }
                        // Out of order, and in bursts that differ between the workers.
                        if held.len() > 3 + worker || number.is_none() {
                            while let Some(number) = held.pop() {
                                assert!(
                                    !done[number as usize].swap(true, SeqCst),
                                    "{number} twice"
                                );
                                counter.acknowledge(number);
                            }
                        }
                        let newest = counter.newest_acknowledged() as usize;
                        assert!(newest >= checked, "the limit went back");
                        assert!(done[checked..=newest].iter().all(|d| d.load(SeqCst)));
                        checked = newest;
                    }
                });
            }
        });
        assert_eq!(counter.newest_acknowledged() as usize, WORKERS * EACH);
    }
}
