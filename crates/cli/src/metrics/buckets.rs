//! Classic Prometheus histogram buckets, filled from the histograms of the recording windows.

use hdrhistogram::Histogram;

/// Inclusive upper bounds in nanoseconds: steps of 1, 2.5 and 5 from 50 µs to 60 s, the end of the recorded range.
pub(crate) const BOUNDS_NS: [u64; 20] = [
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    25_000_000_000,
    50_000_000_000,
    60_000_000_000,
];

/// The bounds in seconds, without the last bucket, which is unbounded.
pub(crate) fn bounds_s() -> [f64; BOUNDS_NS.len()] {
    BOUNDS_NS.map(|bound| bound as f64 / 1e9)
}

/// Counts of latencies by bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    /// Not cumulative; the last bucket counts the values above all bounds.
    counts: [u64; BOUNDS_NS.len() + 1],
    sum_ns: u128,
}

impl Buckets {
    /// Adds the values of a window. A value equal to a bound within the histogram's three digits is counted below the
    /// bound.
    pub(crate) fn add(&mut self, values: &Histogram<u64>, sum_ns: u128) {
        for value in values.iter_recorded() {
            let lowest = values.lowest_equivalent(value.value_iterated_to());
            let bucket = BOUNDS_NS.partition_point(|bound| *bound < lowest);
            self.counts[bucket] += value.count_at_value();
        }
        self.sum_ns += sum_ns;
    }

    /// Counts by bucket, not cumulative.
    pub(crate) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of all values.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sum of the values in seconds.
    pub(crate) fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::interval::{HIGHEST_NS, latency_histogram};

    #[test]
    fn bounds_rise_to_the_end_of_the_recorded_range() {
        assert!(BOUNDS_NS.is_sorted());
        assert_eq!(BOUNDS_NS.last(), Some(&HIGHEST_NS));
        assert_eq!(bounds_s()[0], 0.000_05);
    }

    #[test]
    fn bounds_are_inclusive() {
        let mut values = latency_histogram();
        for (value, times) in [(0, 1), (50_000, 2), (51_000, 3), (1_000_000, 4)] {
            values.record_n(value, times).expect("the value is in range");
        }
        values.saturating_record(2 * HIGHEST_NS);
        let mut buckets = Buckets::default();
        buckets.add(&values, 4_253_000);
        buckets.add(&values, 1_000_000_000);
        let counts = buckets.counts();
        assert_eq!((counts[0], counts[1], counts[4]), (6, 6, 8));
        assert_eq!(counts[19], 2);
        assert_eq!(buckets.count(), 22);
        assert_eq!(buckets.sum_s(), 1.004_253);
    }
}
