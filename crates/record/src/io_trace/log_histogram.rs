//! Histogram by powers of two, each divided into equal parts: small enough for one per file and operation, even in the
//! kernel, and precise enough for quantiles.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of parts per power of two, as bits: each of 256 parts is 0.4 % wide.
pub const MAX_PART_BITS: u8 = 8;

/// Counts of values by buckets of increasing width.
///
/// With `part_bits` 0, bucket 0 has the value 0 and bucket `i` the values from `2^(i-1)` up to but not including `2^i`.
/// Otherwise, each power of two is divided into `2^part_bits` equal parts, and each value below `2^part_bits` has its
/// own bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "HistogramRecord", into = "HistogramRecord")]
#[schemars(with = "HistogramRecord")]
pub struct LogHistogram {
    part_bits: u8,
    counts: Vec<u64>,
    total: u64,
}

impl LogHistogram {
    /// An empty histogram; `part_bits` is limited to [`MAX_PART_BITS`].
    pub fn new(part_bits: u8) -> LogHistogram {
        LogHistogram { part_bits: part_bits.min(MAX_PART_BITS), counts: Vec::new(), total: 0 }
    }

    /// A histogram with known counts by bucket, such as the kernel's.
    pub fn from_counts(part_bits: u8, counts: &[u64]) -> LogHistogram {
        let mut histogram = LogHistogram::new(part_bits);
        for (bucket, &count) in counts.iter().enumerate() {
            histogram.add_to_bucket(bucket, count);
        }
        histogram
    }

    /// Parts per power of two, as bits.
    pub fn part_bits(&self) -> u8 {
        self.part_bits
    }

    /// Counts by bucket, from bucket 0 to the last nonempty one.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The bucket of a value.
    pub fn bucket_of(part_bits: u8, value: u64) -> usize {
        let parts = 1u64 << part_bits;
        if value < parts {
            return value as usize;
        }
        let power = 63 - value.leading_zeros();
        let shift = power - u32::from(part_bits);
        ((u64::from(shift) + 1) * parts + ((value >> shift) - parts)) as usize
    }

    /// Smallest value of a bucket; `u64::MAX` beyond the last one.
    pub fn lower_bound(part_bits: u8, bucket: usize) -> u64 {
        let parts = 1u64 << part_bits;
        let bucket = bucket as u64;
        if bucket < parts {
            return bucket;
        }
        let shift = bucket / parts - 1;
        let value = u128::from(parts + bucket % parts) << shift.min(64);
        u64::try_from(value).unwrap_or(u64::MAX)
    }

    /// Counts a value once.
    pub fn add(&mut self, value: u64) {
        self.add_to_bucket(LogHistogram::bucket_of(self.part_bits, value), 1);
    }

    /// Counts `count` values of a bucket.
    pub fn add_to_bucket(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
        self.total += count;
    }

    /// Adds the counts of another histogram. With another number of parts, each bucket counts as its smallest value,
    /// which lowers values by at most a bucket's width.
    pub fn merge(&mut self, other: &LogHistogram) {
        for (bucket, &count) in other.counts.iter().enumerate() {
            let target = if other.part_bits == self.part_bits {
                bucket
            } else {
                let lower = LogHistogram::lower_bound(other.part_bits, bucket);
                LogHistogram::bucket_of(self.part_bits, lower)
            };
            self.add_to_bucket(target, count);
        }
    }

    /// Nonempty buckets: smallest value, smallest value of the next bucket, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, &count)| {
            let from = LogHistogram::lower_bound(self.part_bits, bucket);
            let below = LogHistogram::lower_bound(self.part_bits, bucket + 1);
            (from, below, count)
        })
    }

    /// Value below which a share of all values lies, by linear interpolation in its bucket; `None` for an empty
    /// histogram. The error is at most the width of a bucket.
    pub fn quantile(&self, ratio: f64) -> Option<f64> {
        let rank = ratio.clamp(0.0, 1.0) * self.total as f64;
        let mut before: u64 = 0;
        let mut last = None;
        for (from, below, count) in self.buckets() {
            let after = before + count;
            // A bucket of one value leaves nothing to interpolate.
            let width = below - from - 1;
            if after as f64 >= rank {
                let inside = (rank - before as f64) / count as f64;
                return Some(from as f64 + inside * width as f64);
            }
            before = after;
            last = Some((below - 1) as f64);
        }
        last
    }
}

/// Serialized form of a histogram: its nonempty buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistogramRecord {
    /// Parts per power of two, as bits: 0 for whole powers of two.
    pub part_bits: u8,
    /// Nonempty buckets, ascending, in the unit of the histogram's name.
    pub buckets: Vec<BucketRecord>,
}

/// One bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BucketRecord {
    /// Smallest value.
    pub from: u64,
    /// Smallest value of the next bucket.
    pub below: u64,
    /// Number of values.
    pub count: u64,
}

impl From<LogHistogram> for HistogramRecord {
    fn from(histogram: LogHistogram) -> HistogramRecord {
        let buckets = histogram
            .buckets()
            .map(|(from, below, count)| BucketRecord { from, below, count })
            .collect();
        HistogramRecord { part_bits: histogram.part_bits, buckets }
    }
}

impl From<HistogramRecord> for LogHistogram {
    fn from(record: HistogramRecord) -> LogHistogram {
        let mut histogram = LogHistogram::new(record.part_bits);
        for bucket in record.buckets {
            let place = LogHistogram::bucket_of(histogram.part_bits, bucket.from);
            histogram.add_to_bucket(place, bucket.count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_without_parts_are_powers_of_two() {
        let buckets: Vec<usize> = [0, 1, 2, 3, 4, 7, 8, 1 << 40, u64::MAX]
            .iter()
            .map(|&value| LogHistogram::bucket_of(0, value))
            .collect();
        assert_eq!(buckets, [0, 1, 2, 2, 3, 3, 4, 41, 64]);
    }

    #[test]
    fn every_value_lies_within_the_bounds_of_its_bucket() {
        for part_bits in 0..=MAX_PART_BITS {
            for power in 0..64 {
                for value in [(1u64 << power) - 1, 1 << power, (1 << power) + 1] {
                    let bucket = LogHistogram::bucket_of(part_bits, value);
                    assert!(LogHistogram::lower_bound(part_bits, bucket) <= value);
                    let next = LogHistogram::lower_bound(part_bits, bucket + 1);
                    assert!(next > value || next == u64::MAX, "{part_bits} {value}");
                }
            }
        }
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_truth() {
        let mut histogram = LogHistogram::new(4);
        for value in 1..=10_000u64 {
            histogram.add(value * 1000);
        }
        for ratio in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let found = histogram.quantile(ratio).unwrap();
            let truth = ratio * 1e7;
            assert!((found / truth - 1.0).abs() < 1.0 / 16.0, "{ratio}: {found}");
        }
        assert_eq!(LogHistogram::new(4).quantile(0.5), None);
    }

    #[test]
    fn a_histogram_is_the_same_after_writing_and_reading() {
        let mut histogram = LogHistogram::new(3);
        for value in [0, 1, 7, 8, 9, 4096, 1 << 33, u64::MAX] {
            histogram.add(value);
        }
        let text = serde_json::to_string(&histogram).unwrap();
        let back: LogHistogram = serde_json::from_str(&text).unwrap();
        assert_eq!(back, histogram);
    }

    #[test]
    fn merging_keeps_all_counts_even_with_other_parts() {
        let mut fine = LogHistogram::new(4);
        let mut coarse = LogHistogram::new(0);
        for value in [3u64, 100, 5000, 70_000] {
            fine.add(value);
            coarse.add(value);
        }
        let mut sum = coarse.clone();
        sum.merge(&fine);
        assert_eq!(sum.count(), 8);
        assert_eq!(sum.counts().iter().max(), Some(&2));
    }
}
