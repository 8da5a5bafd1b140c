//! Latency histograms as lists of their nonzero counters. A window uses a few hundred of 27,000: reading, adding and
//! querying only these makes opening long runs many times faster.

use crate::interval::{LOWEST_NS, latency_histogram};
use hdrhistogram::Histogram;
use hdrhistogram::errors::AdditionError;
use std::ops::Range;
use std::sync::LazyLock;

/// Base-2 logarithms of the smallest step between two counters, and of half the counters of a bucket with
/// [`SIGNIFICANT_DIGITS`](crate::interval::SIGNIFICANT_DIGITS).
const STEP: u32 = LOWEST_NS.ilog2();
const HALF: u32 = 10;

/// Number of counters of a [`latency_histogram`].
static COUNTERS: LazyLock<u32> = LazyLock::new(|| {
    let counters = latency_histogram().distinct_values();
    u32::try_from(counters).unwrap_or(u32::MAX)
});

/// Nonzero counts of a [`latency_histogram`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SparseHistogram {
    /// Index and nonzero count of each counter, ascending.
    counts: Vec<(u32, u64)>,
}

/// Smallest value of a counter, and its number of values.
fn range(counter: u32) -> (u64, u64) {
    let (above, low) = (counter >> HALF, u64::from(counter & ((1 << HALF) - 1)));
    // The first bucket has both halves, all others only the upper half.
    match above.checked_sub(1) {
        None => (low << STEP, 1 << STEP),
        Some(bucket) => ((low + (1 << HALF)) << (bucket + STEP), 1 << (bucket + STEP)),
    }
}

fn highest(counter: u32) -> u64 {
    let (lowest, length) = range(counter);
    lowest + length - 1
}

impl SparseHistogram {
    /// An empty histogram with this capacity.
    pub(crate) fn with_capacity(counters: usize) -> Self {
        SparseHistogram { counts: Vec::with_capacity(counters) }
    }

    /// Adds the next counter, in ascending order; `None` if the histogram does not have it.
    pub(crate) fn push(&mut self, counter: u64, count: u64) -> Option<()> {
        let counter = u32::try_from(counter).ok().filter(|one| one < &COUNTERS)?;
        self.counts.push((counter, count));
        Some(())
    }

    /// Converts a histogram with other bounds.
    ///
    /// # Errors
    /// The histogram has values beyond these bounds.
    pub(crate) fn of_other(other: &Histogram<u64>) -> Result<SparseHistogram, AdditionError> {
        let mut own = latency_histogram();
        own.add(other)?;
        let mut sparse = SparseHistogram::default();
        let counters = 0..*COUNTERS;
        for (counter, count) in counters.map(|one| (one, own.count_at(range(one).0))) {
            if count > 0 {
                sparse.counts.push((counter, count));
            }
        }
        Ok(sparse)
    }

    /// Number of values.
    pub(crate) fn len(&self) -> u64 {
        let counts = self.counts.iter().map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    }

    /// The largest value of each nonzero counter, with its count.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(counter, count)| (highest(*counter), *count))
    }

    /// Like [`Histogram::value_at_quantile`].
    pub(crate) fn value_at_quantile(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.min(1.0) * self.len() as f64).ceil() as u64).max(1);
        let mut sum: u64 = 0;
        let mut found = self.counts.iter().filter_map(|(counter, count)| {
            sum = sum.saturating_add(*count);
            (sum >= wanted).then(|| highest(*counter))
        });
        found.next().unwrap_or(0)
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &SparseHistogram) {
        let own = std::mem::take(&mut self.counts);
        self.counts = merged(own, &other.counts);
    }

    /// Adds the counts to a [`latency_histogram`].
    pub(crate) fn add_to(&self, histogram: &mut Histogram<u64>) {
        for (counter, count) in &self.counts {
            histogram
                .record_n(range(*counter).0, *count)
                .expect("the counters belong to a latency histogram");
        }
    }

    /// Converts to a histogram with all counters.
    pub(crate) fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = latency_histogram();
        self.add_to(&mut histogram);
        histogram
    }
}

/// Counts for all counters of a [`latency_histogram`], which sums many windows without a list for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct DenseCounts {
    counts: Vec<u64>,
    /// Counters outside of it are 0.
    used: Range<usize>,
}

impl DenseCounts {
    /// Adds the counts of a histogram.
    pub(crate) fn add(&mut self, other: &SparseHistogram) {
        let (Some((first, _)), Some((last, _))) = (other.counts.first(), other.counts.last())
        else {
            return;
        };
        let (first, end) = (*first as usize, *last as usize + 1);
        self.used = match self.used.is_empty() {
            true => first..end,
            false => self.used.start.min(first)..self.used.end.max(end),
        };
        self.counts.resize(*COUNTERS as usize, 0);
        for (counter, count) in &other.counts {
            let own = &mut self.counts[*counter as usize];
            *own = own.saturating_add(*count);
        }
    }

    /// The counts since the last call.
    pub(crate) fn take(&mut self) -> SparseHistogram {
        let used = std::mem::take(&mut self.used);
        let mut counts = Vec::with_capacity(used.len());
        for (counter, count) in (used.start as u32..).zip(&mut self.counts[used]) {
            if *count > 0 {
                counts.push((counter, std::mem::take(count)));
            }
        }
        SparseHistogram { counts }
    }
}

/// Merges two lists of counts with ascending keys.
pub(crate) fn merged<K: Ord + Copy>(own: Vec<(K, u64)>, other: &[(K, u64)]) -> Vec<(K, u64)> {
    let mut all = Vec::with_capacity(own.len() + other.len());
    let mut other = other.iter().copied().peekable();
    for (key, count) in own {
        while let Some(before) = other.next_if(|(next, _)| *next < key) {
            all.push(before);
        }
        let same = other.next_if(|(next, _)| *next == key);
        let more = same.map_or(0, |(_, count)| count);
        all.push((key, count.saturating_add(more)));
    }
    all.extend(other);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u64)]) -> (SparseHistogram, Histogram<u64>) {
        let mut dense = latency_histogram();
        for (value, count) in values {
            dense.record_n(*value, *count).unwrap();
        }
        (SparseHistogram::of_other(&dense).unwrap(), dense)
    }

    #[test]
    fn counters_equal_the_library_s() {
        let mut all = latency_histogram();
        for counter in 0..*COUNTERS {
            all.record(range(counter).0).unwrap();
        }
        let known: Vec<(u64, u64)> = all
            .iter_recorded()
            .map(|value| {
                let highest = value.value_iterated_to();
                (all.lowest_equivalent(highest), highest)
            })
            .collect();
        let own = (0..*COUNTERS).map(|counter| (range(counter).0, highest(counter)));
        assert_eq!(own.collect::<Vec<_>>(), known);
    }

    #[test]
    fn percentiles_and_sums_equal_the_library_s() {
        let (mut sparse, mut dense) = of(&[(0, 3), (900, 1), (1_500_000, 500), (2_000_000_000, 7)]);
        let (more, other) = of(&[(1_500_000, 4), (70_000, 9), (59_000_000_000, 1)]);
        sparse.merge(&more);
        dense.add(&other).unwrap();
        assert_eq!(sparse.to_histogram(), dense);
        assert_eq!(sparse.len(), dense.len());
        for quantile in [0.001, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let expected = dense.value_at_quantile(quantile);
            assert_eq!(sparse.value_at_quantile(quantile), expected, "{quantile}");
        }
        let recorded = dense.iter_recorded();
        let buckets = recorded.map(|value| (value.value_iterated_to(), value.count_at_value()));
        assert!(sparse.buckets().eq(buckets));
        assert_eq!(SparseHistogram::default().value_at_quantile(0.5), 0);
    }
}
