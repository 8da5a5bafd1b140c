//! Converts a latency histogram and its exact sum to the figures of reports.

use crate::model::LatencySummary;
use hdrhistogram::Histogram;

/// Nanoseconds in a microsecond.
const NS_PER_US: f64 = 1_000.0;

/// Summarizes a histogram of nanoseconds in microseconds.
///
/// The mean is `sum_ns` divided by the number of values, so it is not affected by the histogram's rounding. The other
/// figures come from the histogram: percentiles and maximum are the largest value of their bucket, and the minimum is
/// the smallest value of its bucket. Their errors are therefore at most the histogram's resolution, and min ≤ p50 ≤ … ≤
/// max always holds. All are 0 for an empty histogram.
pub fn latency_summary(histogram: &Histogram<u64>, sum_ns: u128) -> LatencySummary {
    if histogram.is_empty() {
        return LatencySummary::default();
    }
    // A percentile is the upper end of its bucket, but the maximum of a bucket of zeros is 0.
    let quantile_us = |quantile: f64| {
        histogram.value_at_quantile(quantile).min(histogram.max()) as f64 / NS_PER_US
    };
    LatencySummary {
        mean: mean_us(sum_ns, histogram.len()),
        min: histogram.min() as f64 / NS_PER_US,
        p50: quantile_us(0.5),
        p90: quantile_us(0.9),
        p95: quantile_us(0.95),
        p99: quantile_us(0.99),
        p99_9: quantile_us(0.999),
        p99_99: quantile_us(0.9999),
        max: histogram.max() as f64 / NS_PER_US,
    }
}

/// Mean in microseconds of `count` values with the sum `sum_ns`; 0 without values.
pub(crate) fn mean_us(sum_ns: u128, count: u64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    // Dividing before converting would lose the fraction, and converting first would lose the last digits of sums above
    // 2^53 ns (104 days): the remainder is converted separately.
    let count = u128::from(count);
    ((sum_ns / count) as f64 + (sum_ns % count) as f64 / count as f64) / NS_PER_US
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_zeros_are_zero() {
        let mut histogram = crate::interval::latency_histogram();
        histogram.record(0).unwrap();
        assert_eq!(latency_summary(&histogram, 0), LatencySummary::default());
    }
    use crate::interval::latency_histogram;

    #[test]
    fn an_empty_histogram_gives_zeros() {
        assert_eq!(latency_summary(&latency_histogram(), 0), LatencySummary::default());
    }

    #[test]
    fn percentiles_of_one_to_a_hundred_milliseconds_are_known() {
        let mut histogram = latency_histogram();
        for millisecond in 1..=100u64 {
            histogram.record(millisecond * 1_000_000).unwrap();
        }
        let summary = latency_summary(&histogram, 5_050 * 1_000_000);
        assert_eq!(summary.mean, 50_500.0);
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.001;
        assert!(near(summary.min, 1_000.0), "{summary:?}");
        assert!(near(summary.p50, 50_000.0), "{summary:?}");
        assert!(near(summary.p90, 90_000.0), "{summary:?}");
        assert!(near(summary.p95, 95_000.0), "{summary:?}");
        assert!(near(summary.p99, 99_000.0), "{summary:?}");
        assert!(near(summary.p99_9, 100_000.0), "{summary:?}");
        assert!(near(summary.p99_99, 100_000.0), "{summary:?}");
        assert!(near(summary.max, 100_000.0), "{summary:?}");
    }

    #[test]
    fn the_mean_comes_from_the_sum_and_not_from_the_buckets() {
        let mut histogram = latency_histogram();
        histogram.record(1_234_567).unwrap();
        histogram.record(1_234_568).unwrap();
        let summary = latency_summary(&histogram, 1_234_567 + 1_234_568);
        assert_eq!(summary.mean, 1_234.567_5);
    }

    #[test]
    fn the_mean_of_a_huge_sum_keeps_its_digits() {
        // 2^60 + 1 is not a double; its quotient by 2^30 is exact.
        let sum_ns = (1u128 << 60) + (1 << 29);
        assert_eq!(mean_us(sum_ns, 1 << 30), (f64::from(1u32 << 30) + 0.5) / 1_000.0);
        assert_eq!(mean_us(5, 0), 0.0);
    }

    #[test]
    fn order_statistics_never_decrease() {
        let mut histogram = latency_histogram();
        histogram.record(777).unwrap();
        let summary = latency_summary(&histogram, 777);
        assert!(summary.min <= summary.p50 && summary.p50 <= summary.p99_99);
        assert!(summary.p99_99 <= summary.max);
        assert!(summary.min <= summary.mean && summary.mean <= summary.max);
    }
}
