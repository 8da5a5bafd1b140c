//! Histograms for resampling: few buckets, and fast merging of any selection.

use std::collections::BTreeMap;

/// Counts by value of one recording interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseHistogram {
    counts: BTreeMap<u64, u64>,
    sum: f64,
}

impl SparseHistogram {
    /// A histogram from values and their counts, such as the recorded buckets of an HDR histogram with their
    /// highest equivalent values. Values may be repeated.
    pub fn from_counts(counts: impl IntoIterator<Item = (u64, u64)>) -> SparseHistogram {
        let mut histogram = SparseHistogram::default();
        for (value, count) in counts {
            if count > 0 {
                *histogram.counts.entry(value).or_default() += count;
                histogram.sum += value as f64 * count as f64;
            }
        }
        histogram
    }

    /// Sets the exact sum of the values, which bucket values only approximate.
    pub fn with_sum(mut self, sum: f64) -> SparseHistogram {
        self.sum = sum;
        self
    }

    /// Number of values recorded.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Number of values below `limit`.
    pub fn below(&self, limit: u64) -> u64 {
        self.counts.range(..limit).map(|(_, count)| count).sum()
    }

    /// Arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.sum / total as f64)
    }
}

/// The histograms of many intervals over one common list of buckets.
#[derive(Clone, Debug)]
pub(crate) struct HistogramTable {
    values: Vec<u64>,
    /// Per interval: bucket number and count.
    rows: Vec<Vec<(usize, u64)>>,
    /// Per interval: number of values and their sum.
    totals: Vec<(f64, f64)>,
    /// Per interval and group of [`GROUP`] buckets: its start in the row, and its number of values.
    groups: Vec<Vec<(usize, u64)>>,
}

/// Buckets that the search for a percentile skips at once.
const GROUP: usize = 64;

impl HistogramTable {
    pub(crate) fn new<'a>(histograms: impl Iterator<Item = &'a SparseHistogram> + Clone) -> Self {
        let mut values: Vec<u64> =
            histograms.clone().flat_map(|histogram| histogram.counts.keys().copied()).collect();
        values.sort_unstable();
        values.dedup();
        let bucket = |value: &u64| {
            values.binary_search(value).expect("the list has the values of all histograms")
        };
        let row = |histogram: &SparseHistogram| -> Vec<(usize, u64)> {
            histogram.counts.iter().map(|(value, count)| (bucket(value), *count)).collect()
        };
        let total = |histogram: &SparseHistogram| (histogram.total() as f64, histogram.sum);
        let totals = histograms.clone().map(total).collect();
        let rows: Vec<Vec<(usize, u64)>> = histograms.map(row).collect();
        let group = |row: &Vec<(usize, u64)>| {
            let starts = (0..=values.len().div_ceil(GROUP)).map(|group| {
                let start = row.partition_point(|(bucket, _)| *bucket < group * GROUP);
                let end = row.partition_point(|(bucket, _)| *bucket < (group + 1) * GROUP);
                (start, row[start..end].iter().map(|(_, count)| count).sum())
            });
            starts.collect()
        };
        let groups = rows.iter().map(group).collect();
        Self { values, rows, totals, groups }
    }

    /// The smallest value that at least this share of the intervals' values does not exceed, each interval with
    /// its multiplicity; `None` without counts.
    pub(crate) fn quantile(
        &self,
        intervals: impl Iterator<Item = usize>,
        quantile: f64,
    ) -> Option<f64> {
        let intervals: Vec<usize> = intervals.collect();
        let mut sums = vec![0; self.values.len().div_ceil(GROUP)];
        for interval in &intervals {
            for (sum, (_, count)) in sums.iter_mut().zip(&self.groups[*interval]) {
                *sum += count;
            }
        }
        let total: u64 = sums.iter().sum();
        // Rounding in the product must not exceed the next whole number.
        let rank = (quantile * total as f64 * (1.0 - 1e-12)).ceil().max(1.0) as u64;
        let mut seen = 0;
        let group = sums.iter().position(|sum| {
            seen += sum;
            seen >= rank
        })?;
        seen -= sums[group];
        let mut counts = [0; GROUP];
        for interval in &intervals {
            let groups = &self.groups[*interval];
            for (bucket, count) in &self.rows[*interval][groups[group].0..groups[group + 1].0] {
                counts[bucket % GROUP] += count;
            }
        }
        let place = counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        self.values.get(group * GROUP + place).map(|value| *value as f64)
    }

    /// Per interval: excess of the number of values above `limit` over the share `1 − quantile` of them. The
    /// sum of this series is about 0 at the quantile of all intervals, and it has the quantile's
    /// autocorrelation.
    pub(crate) fn excess(&self, limit: f64, quantile: f64) -> Vec<f64> {
        let first_above = self.values.partition_point(|value| *value as f64 <= limit);
        let excess = |row: &Vec<(usize, u64)>| {
            let total: u64 = row.iter().map(|(_, count)| count).sum();
            let above = row.iter().filter(|(bucket, _)| *bucket >= first_above);
            let above: u64 = above.map(|(_, count)| count).sum();
            above as f64 - (1.0 - quantile) * total as f64
        };
        self.rows.iter().map(excess).collect()
    }

    /// Per interval: sum of the values minus `mean` times their number.
    pub(crate) fn sum_excess(&self, mean: f64) -> Vec<f64> {
        self.totals.iter().map(|(count, sum)| sum - mean * count).collect()
    }

    /// Number of values in all intervals.
    pub(crate) fn total(&self) -> f64 {
        self.totals.iter().map(|(count, _)| count).sum()
    }

    /// The mean over intervals, each with its multiplicity; `None` without counts.
    pub(crate) fn mean(&self, intervals: impl Iterator<Item = usize>) -> Option<f64> {
        let (mut count, mut sum) = (0.0, 0.0);
        for interval in intervals {
            count += self.totals[interval].0;
            sum += self.totals[interval].1;
        }
        (count > 0.0).then(|| sum / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> HistogramTable {
        let histograms = [
            SparseHistogram::from_counts([(10, 1), (20, 2), (10, 1), (99, 0)]),
            SparseHistogram::from_counts([(20, 1), (30, 3)]),
            SparseHistogram::default(),
        ];
        assert_eq!(histograms[0].total(), 4);
        assert_eq!([10, 11, 21].map(|limit| histograms[0].below(limit)), [0, 2, 4]);
        HistogramTable::new(histograms.iter())
    }

    #[test]
    fn merged_counts_give_the_quantiles_of_all_values() {
        let table = table();
        // 10 10 20 20 20 30 30 30
        for (quantile, expected) in
            [(0.0, 10.0), (0.25, 10.0), (0.26, 20.0), (0.625, 20.0), (0.63, 30.0), (1.0, 30.0)]
        {
            assert_eq!(table.quantile(0..3, quantile), Some(expected), "{quantile}");
        }
        assert_eq!(table.mean(0..3), Some(170.0 / 8.0));
        assert_eq!(table.quantile([0, 0].into_iter(), 0.5), Some(10.0));
        assert_eq!(table.quantile(2..3, 0.5), None);
        assert_eq!(table.mean(2..3), None);
    }

    #[test]
    fn quantiles_of_many_buckets_are_those_of_all_values() {
        let histograms: Vec<SparseHistogram> = (0..7_u64)
            .map(|one| {
                SparseHistogram::from_counts((0..300).map(|n| (n * (one + 1), (n + one) % 5)))
            })
            .collect();
        let table = HistogramTable::new(histograms.iter());
        let drawn = [3, 0, 3, 6, 1];
        let counts = drawn.iter().flat_map(|one| &histograms[*one].counts);
        let each = counts.flat_map(|(value, count)| std::iter::repeat_n(*value, *count as usize));
        let mut all: Vec<u64> = each.collect();
        all.sort_unstable();
        for place in 1..=all.len() {
            let quantile = place as f64 / all.len() as f64;
            let found = table.quantile(drawn.into_iter(), quantile);
            assert_eq!(found, Some(all[place - 1] as f64), "{place}");
        }
    }

    #[test]
    fn excess_over_a_quantile_adds_up_to_zero() {
        let table = table();
        assert_eq!(table.excess(20.0, 0.5), [-2.0, 1.0, 0.0]);
        assert_eq!(table.excess(20.0, 0.625).iter().sum::<f64>(), 0.0);
        assert_eq!(table.sum_excess(21.25).iter().sum::<f64>(), 0.0);
    }
}
