//! Skew of the keys in a run: the actual share of the hottest 1 % and 10 %.
//!
//! Memory is bounded for any number of documents: exact counters for up to four million, a sample above. All workers
//! share one table.

use dyno_record::model::KeyShares;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Documents with individual counters: at most 16 MiB of counters.
const EXACT_DOCUMENTS: u64 = 1 << 22;
/// Counters of the sample for more documents: 8 MiB.
const SAMPLE_BITS: u32 = 21;
/// Slots for hot documents in addition to the sample: 4 MiB. More slots lower the error, see [`ShareTable`].
const HELD_BITS: u32 = 18;
/// A held document counts as hot from this share of all draws (2^-18): colder documents are left to the sample, whose
/// documents then all have a low weight ...
const HOT_SHIFT: u32 = 18;
/// ... and from this number of draws: below it, the draws before it was held weigh too much.
const LEAST_HOT_DRAWS: u64 = 32;
/// Counters that are allocated together, when the first of them is needed.
const CHUNK_BITS: u32 = 16;
/// Slots of the held table for one hash value: one cache line.
const BUCKET: usize = 4;

/// Counts the draws of each document, and reads the hottest shares from the counts.
///
/// Up to 4 194 304 documents the counts are exact. Above, a document belongs to the sample when a
/// fixed permutation of its number says so, and only sampled documents have a counter. Whether a hot
/// document is in the sample would decide on the estimate, so documents that are drawn often are
/// found by chance and then held in a table of their own; the sample only has to say how the other
/// draws are spread. The total of the draws is exact.
///
/// Root mean square error of a share, from repeated runs with a zipfian of exponent 0.99 and 2 × 10^7
/// to 2 × 10^8 draws: 0.07 percentage points at 10^7 documents, 0.27 at 10^8; it grows with the square
/// root of the number of documents.
/// A run that inserts documents until they are twice those it started with (and more than the exact
/// limit) counts several documents as one.
#[derive(Debug)]
pub struct ShareTable {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    first: u64,
    documents: u64,
    counts: Counts,
    tallies: Mutex<Vec<Arc<Tally>>>,
}

#[derive(Debug)]
enum Counts {
    Exact(Counters),
    Sampled(Sample),
}

/// Draws of one worker, kept separate so that workers do not compete for a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Tally {
    draws: AtomicU64,
    /// Documents from the first to the highest drawn.
    extent: AtomicU64,
}

impl Table {
    fn tallies(&self) -> MutexGuard<'_, Vec<Arc<Tally>>> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ShareTable {
    /// A table for `count` documents (at least 1) from number `first`. Documents that are inserted
    /// behind them later are counted too.
    #[must_use]
    pub fn new(first: u64, count: u64) -> Self {
        let counts = if count <= EXACT_DOCUMENTS {
            Counts::Exact(Counters::new(EXACT_DOCUMENTS))
        } else {
            Counts::Sampled(Sample::new(count, SAMPLE_BITS, HELD_BITS))
        };
        ShareTable::with_counts(first, count, counts)
    }

    fn with_counts(first: u64, count: u64, counts: Counts) -> Self {
        ShareTable {
            table: Arc::new(Table {
                first,
                documents: count.max(1),
                counts,
                tallies: Mutex::default(),
            }),
        }
    }

    /// A worker's access to the table.
    #[must_use]
    pub fn observer(&self) -> ShareObserver {
        let tally = Arc::new(Tally::default());
        let mut tallies = self.table.tallies();
        tallies.push(Arc::clone(&tally));
        ShareObserver {
            table: Arc::clone(&self.table),
            tally,
            // Any odd constant: workers differ, runs do not.
            random: (tallies.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        }
    }

    /// Shares of the draws so far; `None` before the first.
    ///
    /// The hottest 1 % are the 1 % of the documents (rounded up, those never drawn included) that
    /// were drawn most. With few draws per document this is more than their expected share: of a
    /// uniform distribution too, some documents are drawn more often than others.
    #[must_use]
    pub fn shares(&self) -> Option<KeyShares> {
        let (mut draws, mut documents) = (0, self.table.documents);
        for tally in self.table.tallies().iter() {
            draws += tally.draws.load(Relaxed);
            documents = documents.max(tally.extent.load(Relaxed));
        }
        if draws == 0 {
            return None;
        }
        let mut groups = match &self.table.counts {
            Counts::Exact(counters) => counters.groups(),
            Counts::Sampled(sample) => sample.groups(draws),
        };
        groups.sort_unstable_by(|a, b| b.draws_each.total_cmp(&a.draws_each));
        Some(KeyShares {
            draws,
            hottest_1_percent_ratio: hottest(&groups, documents.div_ceil(100)),
            hottest_10_percent_ratio: hottest(&groups, documents.div_ceil(10)),
        })
    }

    /// Forgets all draws, for the next phase. Draws by workers during the call may or may not count.
    pub fn reset(&self) {
        match &self.table.counts {
            Counts::Exact(counters) => counters.reset(),
            Counts::Sampled(sample) => sample.reset(),
        }
        for tally in self.table.tallies().iter() {
            tally.draws.store(0, Relaxed);
        }
    }
}

/// Counts the draws of one worker.
#[derive(Debug)]
pub struct ShareObserver {
    table: Arc<Table>,
    tally: Arc<Tally>,
    random: u64,
}

impl ShareObserver {
    /// Counts one draw of `document`. Costs a cache miss: about 15 ns with a million documents, 60 ns
    /// with a hundred million.
    #[inline]
    pub fn observe(&mut self, document: u64) {
        let index = document.saturating_sub(self.table.first);
        self.tally.draws.fetch_add(1, Relaxed);
        if index >= self.tally.extent.load(Relaxed) {
            self.tally.extent.store(index + 1, Relaxed);
        }
        match &self.table.counts {
            Counts::Exact(counters) => counters.count(index),
            Counts::Sampled(sample) => sample.count(index, &mut self.random),
        }
    }
}

/// Documents that were drawn equally often.
#[derive(Clone, Copy, Debug)]
struct Group {
    draws_each: f64,
    documents: f64,
}

/// Share of all draws that the `top` hottest documents got; `groups` go from hot to cold.
fn hottest(groups: &[Group], top: u64) -> f64 {
    let total: f64 = groups.iter().map(|group| group.draws_each * group.documents).sum();
    let mut places = top as f64;
    let mut draws = 0.0;
    for group in groups {
        let taken = group.documents.min(places);
        draws += taken * group.draws_each;
        places -= taken;
    }
    draws / total
}

/// An array of counters that is allocated in chunks.
#[derive(Debug)]
struct Counters {
    chunks: Box<[OnceLock<Box<[AtomicU32]>>]>,
    mask: u64,
}

impl Counters {
    /// `length` counters, a power of two; at least one chunk.
    fn new(length: u64) -> Self {
        let length = length.max(1 << CHUNK_BITS);
        Counters {
            chunks: (0..length >> CHUNK_BITS).map(|_| OnceLock::new()).collect(),
            mask: length - 1,
        }
    }

    /// Counts at `index`; beyond the end several indexes share a counter, which stops at its maximum.
    #[inline]
    fn count(&self, index: u64) {
        let index = index & self.mask;
        let chunk = self.chunks[(index >> CHUNK_BITS) as usize]
            .get_or_init(|| (0..1 << CHUNK_BITS).map(|_| AtomicU32::new(0)).collect());
        let counter = &chunk[(index & ((1 << CHUNK_BITS) - 1)) as usize];
        if counter.fetch_add(1, Relaxed) == u32::MAX {
            counter.store(u32::MAX, Relaxed);
        }
    }

    fn value(&self, index: u64) -> u32 {
        let index = index & self.mask;
        let chunk = self.chunks[(index >> CHUNK_BITS) as usize].get();
        chunk.map_or(0, |chunk| chunk[(index & ((1 << CHUNK_BITS) - 1)) as usize].load(Relaxed))
    }

    /// Number of counters with each value.
    fn groups(&self) -> Vec<Group> {
        self.groups_without(|_| false, u64::MAX)
    }

    /// Number of counters with each value, without the counters of at least `threshold` whose index `skip` selects.
    /// There are few different values: they must add up to the draws, so 10^9 draws have at most 45 000.
    fn groups_without(&self, skip: impl Fn(u64) -> bool, threshold: u64) -> Vec<Group> {
        let mut by_count = HashMap::<u32, u64>::new();
        for (number, chunk) in self.chunks.iter().enumerate() {
            for (offset, counter) in chunk.get().into_iter().flatten().enumerate() {
                let count = counter.load(Relaxed);
                let index = || ((number << CHUNK_BITS) + offset) as u64;
                if count > 0 && !(u64::from(count) >= threshold && skip(index())) {
                    *by_count.entry(count).or_default() += 1;
                }
            }
        }
        let group = |(count, documents)| Group {
            draws_each: f64::from(count),
            documents: documents as f64,
        };
        by_count.into_iter().map(group).collect()
    }

    fn reset(&self) {
        self.chunks
            .iter()
            .filter_map(OnceLock::get)
            .flatten()
            .for_each(|counter| counter.store(0, Relaxed));
    }
}

/// Counters for a sample of the documents, and slots for the hot ones.
#[derive(Debug)]
struct Sample {
    /// Documents are `0..2^domain_bits`; later documents are folded into this range.
    domain_bits: u32,
    sample_bits: u32,
    cold: Counters,
    held: Box<[Held]>,
    occupied: AtomicU64,
}

/// Slot of a hot document.
#[derive(Debug, Default)]
#[repr(align(16))]
struct Held {
    /// Number of the document plus 1; 0 when free. Set once.
    tag: AtomicU64,
    draws: AtomicU64,
}

impl Sample {
    fn new(documents: u64, sample_bits: u32, held_bits: u32) -> Self {
        let domain_bits = documents.next_power_of_two().trailing_zeros().max(sample_bits);
        Sample {
            domain_bits,
            sample_bits,
            cold: Counters::new(1 << sample_bits),
            held: (0..1 << held_bits).map(|_| Held::default()).collect(),
            occupied: AtomicU64::new(0),
        }
    }

    #[inline]
    fn count(&self, index: u64, random: &mut u64) {
        let place = scramble(index, self.domain_bits);
        self.hold(place, random);
        // A fixed part of a permutation of all documents is a fair sample, and its positions index the counters.
        if place < 1 << self.sample_bits {
            self.cold.count(place);
        }
    }

    /// Counts a draw of a held document, or decides randomly whether to hold it from now on.
    #[inline]
    fn hold(&self, place: u64, random: &mut u64) {
        for held in self.bucket(place) {
            let mut tag = held.tag.load(Relaxed);
            if tag == 0 {
                if !self.admits(random) {
                    return;
                }
                tag = match held.tag.compare_exchange(0, place + 1, Relaxed, Relaxed) {
                    Ok(_) => {
                        self.occupied.fetch_add(1, Relaxed);
                        place + 1
                    }
                    Err(taken) => taken,
                };
            }
            if tag == place + 1 {
                held.draws.fetch_add(1, Relaxed);
                return;
            }
        }
    }

    /// Buckets are found by the high bits, because the low part of the domain is the sample.
    #[inline]
    fn bucket(&self, place: u64) -> &[Held] {
        let buckets = self.held.len() / BUCKET;
        let hash = place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let bucket = ((hash * buckets as u64) >> 32) as usize;
        &self.held[bucket * BUCKET..][..BUCKET]
    }

    /// One draw in 8 takes a slot early in the run, and ever fewer later: the hottest documents come early, and slots
    /// remain for documents that show only in a long run.
    #[inline]
    fn admits(&self, random: &mut u64) -> bool {
        let eighths = self.occupied.load(Relaxed) * 8 / self.held.len() as u64;
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 20) & ((8 << (2 * eighths)) - 1) == 0
    }

    /// Exact groups of documents that were held long enough, and for all others the sampled documents scaled to the
    /// remaining draws.
    fn groups(&self, draws: u64) -> Vec<Group> {
        let threshold = (draws >> HOT_SHIFT).max(LEAST_HOT_DRAWS);
        let hot: HashMap<u64, u64> = self
            .held
            .iter()
            .map(|held| (held.tag.load(Relaxed), held.draws.load(Relaxed)))
            .filter(|&(tag, draws)| tag != 0 && draws >= threshold)
            .map(|(tag, draws)| (tag - 1, draws))
            .collect();
        let missed = self.missed_per_hot_document(&hot);
        let hot_group = |&draws: &u64| Group { draws_each: draws as f64 + missed, documents: 1.0 };
        let mut groups: Vec<Group> = hot.values().map(hot_group).collect();
        let hot_draws: f64 = groups.iter().map(|group| group.draws_each).sum();
        let cold = self.cold.groups_without(|place| hot.contains_key(&place), threshold);
        let sampled: f64 = cold.iter().map(|group| group.draws_each * group.documents).sum();
        let left = (draws as f64 - hot_draws).max(0.0);
        if sampled == 0.0 {
            // The sample did not see any of the few draws: most likely each drew a different document.
            groups.push(Group { draws_each: 1.0, documents: left });
            return groups;
        }
        let documents_per_sampled = (1_u64 << (self.domain_bits - self.sample_bits)) as f64;
        groups.extend(cold.iter().map(|group| Group {
            draws_each: group.draws_each * left / (sampled * documents_per_sampled),
            documents: group.documents * documents_per_sampled,
        }));
        groups
    }

    /// Mean number of draws that a hot document had before it was held, from the hot documents that
    /// are in the sample, where all their draws are counted.
    fn missed_per_hot_document(&self, hot: &HashMap<u64, u64>) -> f64 {
        let sampled = hot.iter().filter(|&(&place, _)| place < 1 << self.sample_bits);
        let (missed, documents) = sampled.fold((0, 0), |(missed, documents), (&place, &held)| {
            let all = u64::from(self.cold.value(place));
            (missed + all.saturating_sub(held), documents + 1)
        });
        if documents == 0 { 0.0 } else { missed as f64 / f64::from(documents) }
    }

    /// Held documents stay: hot documents are likely to remain hot.
    fn reset(&self) {
        self.cold.reset();
        self.held.iter().for_each(|held| held.draws.store(0, Relaxed));
    }
}

/// A permutation of `0..2^bits` (at least 2 bits) that looks random: every step can be undone.
#[inline]
fn scramble(index: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let mut x = index & mask;
    for multiplier in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        x ^= x >> (bits / 2);
        x = x.wrapping_mul(multiplier) & mask;
    }
    x ^ (x >> (bits / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::permutation::Permutation;
    use crate::keys::scrambled_zipfian::ScrambledZipfian;
    use crate::keys::testing::{generator, top_share};
    use crate::keys::uniform::Uniform;
    use crate::keys::zipfian_exact::ExactZipfian;
    use rand::rngs::Xoshiro256PlusPlus;

    /// Draws into `table` and into plain counters; the estimate and the truth.
    fn compare(
        table: &ShareTable,
        documents: u64,
        draws: u32,
        mut draw: impl FnMut(&mut Xoshiro256PlusPlus) -> u64,
    ) -> [(f64, f64); 2] {
        let mut rng = generator(121);
        let mut counts = vec![0_u32; documents as usize];
        let mut observer = table.observer();
        for _ in 0..draws {
            let document = draw(&mut rng);
            counts[document as usize] += 1;
            observer.observe(document);
        }
        let shares = table.shares().unwrap();
        assert_eq!(shares.draws, u64::from(draws));
        let truth = |part: u64| top_share(&counts, documents.div_ceil(part) as usize);
        [(shares.hottest_1_percent_ratio, truth(100)), (shares.hottest_10_percent_ratio, truth(10))]
    }

    #[test]
    fn the_shares_of_up_to_four_million_documents_are_exact() {
        let documents = 1_000_000;
        let zipfian = ScrambledZipfian::new(0, documents);
        let table = ShareTable::new(0, documents);
        for (estimate, truth) in compare(&table, documents, 3_000_000, |rng| zipfian.draw(rng)) {
            assert!((estimate - truth).abs() < 1e-12, "{estimate} for {truth}");
        }
    }

    #[test]
    fn the_shares_of_more_documents_are_estimated_closely() {
        let documents = 10_000_000;
        let zipfian = ExactZipfian::new(0, documents, 0.99).unwrap();
        let uniform = Uniform::new(0, documents);
        let table = ShareTable::new(0, documents);
        for (estimate, truth) in compare(&table, documents, 5_000_000, |rng| zipfian.draw(rng)) {
            assert!((estimate - truth).abs() < 0.004, "zipfian: {estimate} for {truth}");
        }
        let table = ShareTable::new(0, documents);
        for (estimate, truth) in compare(&table, documents, 5_000_000, |rng| uniform.draw(rng)) {
            assert!((estimate - truth).abs() < 0.004, "uniform: {estimate} for {truth}");
        }
    }

    #[test]
    fn one_hot_document_is_found_whether_it_is_in_the_sample_or_not() {
        let documents = 10_000_000;
        let spread = Permutation::new(documents);
        for hot in 0..20 {
            let table = ShareTable::new(0, documents);
            let mut observer = table.observer();
            for i in 0..100_000 {
                // Every second draw goes to the hot document, the others each to another one.
                observer.observe(if i % 2 == 0 { spread.at(hot) } else { spread.at(100 + i) });
            }
            // 100 000 documents are 1 %, and only 50 001 were drawn at all.
            let shares = table.shares().unwrap();
            assert!((shares.hottest_1_percent_ratio - 1.0).abs() < 1e-9);
            let one = hottest(&sorted_groups(&table, 100_000), 1);
            assert!((one - 0.5).abs() < 0.01, "document {hot}: {one}");
        }
    }

    fn sorted_groups(table: &ShareTable, draws: u64) -> Vec<Group> {
        let Counts::Sampled(sample) = &table.table.counts else {
            panic!("the table is exact");
        };
        let mut groups = sample.groups(draws);
        groups.sort_by(|a, b| b.draws_each.total_cmp(&a.draws_each));
        groups
    }

    #[test]
    fn a_hundred_billion_documents_take_bounded_memory() {
        let documents = 100_000_000_000;
        let table = ShareTable::new(7, documents);
        let mut rng = generator(122);
        let uniform = Uniform::new(7, documents);
        let mut observer = table.observer();
        for _ in 0..200_000 {
            observer.observe(uniform.draw(&mut rng));
        }
        let Counts::Sampled(sample) = &table.table.counts else {
            panic!("the table is exact");
        };
        let bytes = size_of_val(&*sample.held) + sample.cold.chunks.len() * (4 << CHUNK_BITS);
        assert!(bytes <= 16 << 20, "{bytes}");
        assert!(table.shares().unwrap().hottest_1_percent_ratio <= 1.0);
    }

    #[test]
    fn documents_inserted_later_are_counted() {
        let table = ShareTable::new(100, 10);
        let mut observer = table.observer();
        for document in 100..1100 {
            observer.observe(document);
        }
        let shares = table.shares().unwrap();
        assert_eq!(shares.draws, 1000);
        assert!((shares.hottest_1_percent_ratio - 0.01).abs() < 1e-12);
        assert!((shares.hottest_10_percent_ratio - 0.1).abs() < 1e-12);
    }

    #[test]
    fn few_documents_have_at_least_one_hottest() {
        let table = ShareTable::new(0, 3);
        let mut observer = table.observer();
        [0, 0, 0, 1].into_iter().for_each(|document| observer.observe(document));
        assert!((table.shares().unwrap().hottest_1_percent_ratio - 0.75).abs() < 1e-12);
    }

    #[test]
    fn no_draws_have_no_shares_even_after_a_reset() {
        for count in [100, 100_000_000] {
            let table = ShareTable::new(0, count);
            assert_eq!(table.shares(), None);
            let mut observer = table.observer();
            (0..1000).for_each(|i| observer.observe(i % 7));
            assert_eq!(table.shares().unwrap().draws, 1000);
            table.reset();
            assert_eq!(table.shares(), None);
            observer.observe(3);
            let shares = table.shares().unwrap();
            assert_eq!((shares.draws, shares.hottest_1_percent_ratio), (1, 1.0));
        }
    }

    #[test]
    fn workers_count_into_one_table() {
        let table = ShareTable::new(0, 1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mut observer = table.observer();
                scope.spawn(move || (0..50_000).for_each(|i| observer.observe(i % 1000 / 10)));
            }
        });
        let shares = table.shares().unwrap();
        // A hundred documents got all draws, in equal parts.
        assert_eq!((shares.draws, shares.hottest_10_percent_ratio), (200_000, 1.0));
        assert!((shares.hottest_1_percent_ratio - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_full_counter_stays_full() {
        let counters = Counters::new(1);
        counters.count(5);
        counters.chunks[0].get().unwrap()[5].store(u32::MAX, Relaxed);
        counters.count(5);
        assert_eq!(counters.groups()[0].draws_each, f64::from(u32::MAX));
    }

    #[test]
    fn scrambling_is_a_permutation_for_odd_and_even_widths() {
        for bits in [2, 7, 12, 17] {
            let mut seen = vec![false; 1 << bits];
            (0..1 << bits).for_each(|index| seen[scramble(index, bits) as usize] = true);
            assert!(seen.iter().all(|&reached| reached), "{bits} bits");
        }
    }
}
