//! The blocks of YCSB's output: their lines, and the sources of the values.

use super::export::{Entry, Number};
use super::java_double::java_double;
use crate::error::ReportError;
use dyno_plan::ycsb::{MeasurementInterval, MeasurementType, YcsbClientOptions};
use dyno_record::model::{LatencySummary, OperationRecord, PhaseKind, PhaseRecord};
use dyno_record::reader::{Run, SeriesPoint, WindowLatency};
use hdrhistogram::Histogram;

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

/// The list of entries under construction.
#[derive(Default)]
pub(super) struct Entries(Vec<Entry>);

impl Entries {
    pub(super) fn into_vec(self) -> Vec<Entry> {
        self.0
    }

    fn push(&mut self, metric: &str, measurement: impl Into<String>, value: Number) {
        self.0.push(Entry { metric: metric.into(), measurement: measurement.into(), value });
    }

    fn integer(&mut self, metric: &str, measurement: impl Into<String>, value: u64) {
        self.push(metric, measurement, Number::Integer(value));
    }

    fn double(&mut self, metric: &str, measurement: impl Into<String>, value: f64) {
        self.push(metric, measurement, Number::Double(value));
    }
}

/// Run time, throughput, and the totals of a garbage collector that does not exist.
pub(super) fn overall(entries: &mut Entries, phase: &PhaseRecord) {
    let runtime_ms = (phase.duration_s * 1_000.0).round() as u64;
    let succeeded = match (phase.name, phase.operations.get("insert")) {
        (PhaseKind::Load, Some(insert)) => operations_of(phase, insert) as f64,
        _ => (phase.achieved_rate_per_s * phase.duration_s).round(),
    };
    let throughput = match runtime_ms {
        0 => 0.0,
        _ => 1_000.0 * succeeded / runtime_ms as f64,
    };
    entries.integer("OVERALL", "RunTime(ms)", runtime_ms);
    entries.double("OVERALL", "Throughput(ops/sec)", throughput);
    entries.integer("TOTAL_GCs", "Count", 0);
    entries.integer("TOTAL_GC_TIME", "Time(ms)", 0);
    entries.double("TOTAL_GC_TIME_%", "Time(%)", 0.0);
}

/// One block or more per operation.
pub(super) fn operations(
    entries: &mut Entries,
    run: &Run,
    phase: &PhaseRecord,
    options: &YcsbClientOptions,
) -> Result<(), ReportError> {
    for (name, record) in &phase.operations {
        let block = block_name(name);
        let source = |clock| Source::new(run, phase, name, record, clock);
        match options.measurement_interval {
            MeasurementInterval::Op => {
                measurement(entries, &block, &source(Clock::Service), options, true)?;
            }
            MeasurementInterval::Intended => {
                measurement(entries, &block, &source(Clock::Response), options, true)?;
            }
            MeasurementInterval::Both => {
                measurement(entries, &block, &source(Clock::Service), options, true)?;
                let intended = format!("Intended-{block}");
                measurement(entries, &intended, &source(Clock::Response), options, false)?;
            }
        }
        if record.errors > 0 {
            entries.integer(&format!("{block}-FAILED"), "Operations", record.errors);
        }
    }
    Ok(())
}

/// Counts of values that were verified on reading, if verification was on.
pub(super) fn verify(entries: &mut Entries, run: &Run, phase: &PhaseRecord) {
    let is_checked = run.document.recorded_plan().data.is_some_and(|data| data.integrity);
    let wrong = phase.errors.get("integrity").copied().unwrap_or(0);
    if !is_checked && wrong == 0 {
        return;
    }
    let reads = phase.operations.get("read").map_or(0, |read| read.count);
    entries.integer("VERIFY", "Return=OK", reads);
    if wrong > 0 {
        entries.integer("VERIFY", "Return=UNEXPECTED_STATE", wrong);
    }
}

/// `read_modify_write` is `READ-MODIFY-WRITE`.
fn block_name(operation: &str) -> String {
    operation.to_ascii_uppercase().replace('_', "-")
}

/// Operations as YCSB counts them: in the load phase, each document is an operation.
fn operations_of(phase: &PhaseRecord, record: &OperationRecord) -> u64 {
    match phase.name {
        PhaseKind::Load => record.documents.max(record.count),
        _ => record.count,
    }
}

#[derive(Clone, Copy)]
enum Clock {
    Service,
    Response,
}

/// Data of one block.
struct Source<'a> {
    operations: u64,
    summary: &'a LatencySummary,
    /// Absent if no operation succeeded.
    histogram: Option<&'a Histogram<u64>>,
    series: Vec<&'a SeriesPoint>,
    clock: Clock,
    not_found: u64,
    failed: u64,
}

impl<'a> Source<'a> {
    fn new(
        run: &'a Run,
        phase: &PhaseRecord,
        name: &str,
        record: &'a OperationRecord,
        clock: Clock,
    ) -> Self {
        let distribution = run.distribution(phase.name, name);
        let of_operation =
            |point: &&SeriesPoint| point.phase == phase.name && point.operation == name;
        let not_found = not_found(phase, record);
        Source {
            operations: operations_of(phase, record),
            summary: match clock {
                Clock::Service => &record.service_time_us,
                Clock::Response => &record.response_time_us,
            },
            histogram: distribution.map(|latency| match clock {
                Clock::Service => &latency.service,
                Clock::Response => &latency.response,
            }),
            series: run.series.iter().filter(of_operation).collect(),
            clock,
            not_found,
            failed: record.errors - not_found,
        }
    }

    fn latency_of(&self, point: &'a SeriesPoint) -> &'a WindowLatency {
        match self.clock {
            Clock::Service => &point.service,
            Clock::Response => &point.response,
        }
    }
}

/// Failures of an operation that were `not_found`. A run counts kinds per phase and failures per operation, so this is
/// known if no other operation failed or all failures are of that kind; otherwise they count as `ERROR`, which every script
/// must handle.
fn not_found(phase: &PhaseRecord, record: &OperationRecord) -> u64 {
    let of_kind = phase.errors.get("not_found").copied().unwrap_or(0);
    let other_kinds = phase.errors.values().sum::<u64>() - of_kind;
    let others_failed = phase.operations.values().map(|o| o.errors).sum::<u64>() > record.errors;
    match (others_failed, other_kinds) {
        (_, 0) => record.errors,
        (false, _) => of_kind.min(record.errors),
        (true, _) => 0,
    }
}

/// The block or blocks of one operation and one clock.
fn measurement(
    entries: &mut Entries,
    block: &str,
    source: &Source<'_>,
    options: &YcsbClientOptions,
    returns: bool,
) -> Result<(), ReportError> {
    match options.measurement_type {
        MeasurementType::HdrHistogram => hdr_block(entries, block, source, options, returns),
        MeasurementType::Histogram => bucket_block(entries, block, source, options, returns),
        MeasurementType::HdrHistogramAndHistogram => {
            hdr_block(entries, &format!("Hdr{block}"), source, options, returns);
            bucket_block(entries, &format!("Bucket{block}"), source, options, false);
        }
        MeasurementType::TimeSeries => series_block(entries, block, source, options, returns)?,
    }
    Ok(())
}

/// Whole microseconds, truncated as in YCSB.
fn whole_us(us: f64) -> u64 {
    us as u64
}

fn common(entries: &mut Entries, block: &str, source: &Source<'_>) {
    entries.integer(block, "Operations", source.operations);
    entries.double(block, "AverageLatency(us)", source.summary.mean);
}

fn extremes(entries: &mut Entries, block: &str, source: &Source<'_>) {
    let summary = source.summary;
    entries.integer(block, "MinLatency(us)", whole_us(summary.min));
    entries.integer(block, "MaxLatency(us)", whole_us(summary.max));
}

fn return_codes(entries: &mut Entries, block: &str, source: &Source<'_>, wanted: bool) {
    let codes = [
        ("Return=OK", source.operations),
        ("Return=NOT_FOUND", source.not_found),
        ("Return=ERROR", source.failed),
    ];
    for (name, count) in codes {
        if wanted && count > 0 {
            entries.integer(block, name, count);
        }
    }
}

fn hdr_block(
    entries: &mut Entries,
    block: &str,
    source: &Source<'_>,
    options: &YcsbClientOptions,
    returns: bool,
) {
    common(entries, block, source);
    extremes(entries, block, source);
    for &percentile in &options.percentiles {
        let at = |histogram: &Histogram<u64>| histogram.value_at_quantile(percentile / 100.0);
        let name = format!("{}PercentileLatency(us)", ordinal(percentile));
        let value_us = source.histogram.map_or(0, at) / NS_PER_US;
        entries.integer(block, name, value_us);
    }
    return_codes(entries, block, source, returns);
    if options.histogram_verbose {
        for (value_us, count) in microsecond_counts(source.histogram) {
            entries.double(block, value_us.to_string(), count as f64);
        }
    }
}

/// The recorded values in whole microseconds with their counts, ascending.
fn microsecond_counts(histogram: Option<&Histogram<u64>>) -> Vec<(u64, u64)> {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for value in histogram.into_iter().flat_map(|h| h.iter_recorded()) {
        let value_us = value.value_iterated_to() / NS_PER_US;
        let count = value.count_since_last_iteration();
        match counts.last_mut() {
            Some((last_us, last)) if *last_us == value_us => *last += count,
            _ => counts.push((value_us, count)),
        }
    }
    counts
}

/// `50th`, `1st`, `99.9`: only whole numbers get an English ending.
fn ordinal(percentile: f64) -> String {
    if percentile.fract() != 0.0 {
        return java_double(percentile);
    }
    let number = percentile as u64;
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn bucket_block(
    entries: &mut Entries,
    block: &str,
    source: &Source<'_>,
    options: &YcsbClientOptions,
    returns: bool,
) {
    let mut buckets = vec![0u64; options.histogram_buckets as usize];
    let (mut overflow, mut count) = (0u64, 0u64);
    let mut squares = 0.0;
    for value in source.histogram.into_iter().flat_map(|h| h.iter_recorded()) {
        let here = value.count_since_last_iteration();
        let value_us = value.value_iterated_to() as f64 / NS_PER_US as f64;
        squares += value_us * value_us * here as f64;
        count += here;
        let index = (value.value_iterated_to() / NS_PER_MS) as usize;
        *buckets.get_mut(index).unwrap_or(&mut overflow) += here;
    }
    common(entries, block, source);
    let mean = source.summary.mean;
    let variance = squares / count.max(1) as f64 - mean * mean;
    // The mean is exact but the squares are not: rounding must not make a variance negative.
    entries.double(block, "LatencyVariance(us)", variance.max(0.0));
    extremes(entries, block, source);
    for (name, share) in [("95thPercentileLatency(us)", 0.95), ("99thPercentileLatency(us)", 0.99)]
    {
        if let Some(bucket) = bucket_at(&buckets, count, share) {
            entries.integer(block, name, bucket * 1_000);
        }
    }
    return_codes(entries, block, source, returns);
    if options.histogram_verbose {
        for (index, count) in buckets.iter().enumerate() {
            entries.integer(block, index.to_string(), *count);
        }
        entries.integer(block, format!(">{}", options.histogram_buckets), overflow);
    }
}

/// The first bucket with at least `share` of all values up to it; `None` if it is the overflow.
fn bucket_at(buckets: &[u64], count: u64, share: f64) -> Option<u64> {
    let mut below = 0;
    let reached = |bucket: &u64| {
        below += bucket;
        below as f64 / count as f64 >= share
    };
    buckets.iter().position(reached).map(|index| index as u64)
}

fn series_block(
    entries: &mut Entries,
    block: &str,
    source: &Source<'_>,
    options: &YcsbClientOptions,
    returns: bool,
) -> Result<(), ReportError> {
    common(entries, block, source);
    extremes(entries, block, source);
    return_codes(entries, block, source, returns);
    for (start_ms, mean_us) in time_steps(source, options.timeseries_granularity_ms)? {
        entries.double(block, start_ms.to_string(), mean_us);
    }
    Ok(())
}

/// Mean latency per step, by the start of the step in milliseconds since the first window with operations. Windows are not
/// divided, so steps cannot be shorter than windows.
fn time_steps(source: &Source<'_>, granularity_ms: u64) -> Result<Vec<(u64, f64)>, ReportError> {
    let to_ms = |seconds: f64| (seconds * 1_000.0).round() as u64;
    let worked = || source.series.iter().filter(|point| point.count > 0);
    let Some(first) = worked().next() else {
        return Ok(Vec::new());
    };
    let windows_ms = worked().map(|point| to_ms(point.duration_s));
    let window_ms = windows_ms.max().unwrap_or(0);
    if granularity_ms == 0 || granularity_ms < window_ms {
        return Err(ReportError::GranularityTooFine { granularity_ms, window_ms });
    }
    let mut steps: Vec<(u64, f64, u64)> = Vec::new();
    for point in worked() {
        let since_first = to_ms(point.start_s - first.start_s);
        let start_ms = since_first / granularity_ms * granularity_ms;
        let sum_us = source.latency_of(point).mean_us * point.count as f64;
        match steps.last_mut() {
            Some((last_ms, sum, count)) if *last_ms == start_ms => {
                *sum += sum_us;
                *count += point.count;
            }
            _ => steps.push((start_ms, sum_us, point.count)),
        }
    }
    let mean = |(start_ms, sum_us, count)| (start_ms, sum_us / count as f64);
    Ok(steps.into_iter().map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_percentiles_get_an_english_ending() {
        for (percentile, expected) in [
            (1.0, "1st"),
            (2.0, "2nd"),
            (3.0, "3rd"),
            (4.0, "4th"),
            (11.0, "11th"),
            (12.0, "12th"),
            (13.0, "13th"),
            (21.0, "21st"),
            (50.0, "50th"),
            (95.0, "95th"),
            (100.0, "100th"),
            (99.9, "99.9"),
            (99.99, "99.99"),
        ] {
            assert_eq!(ordinal(percentile), expected);
        }
    }

    #[test]
    fn operations_have_the_names_that_ycsb_uses() {
        assert_eq!(block_name("read_modify_write"), "READ-MODIFY-WRITE");
        assert_eq!(block_name("scan"), "SCAN");
    }

    #[test]
    fn a_percentile_in_the_overflow_has_no_bucket() {
        assert_eq!(bucket_at(&[90, 5, 5], 100, 0.95), Some(1));
        assert_eq!(bucket_at(&[90, 5], 100, 0.95), Some(1));
        assert_eq!(bucket_at(&[90, 5], 100, 0.99), None);
        assert_eq!(bucket_at(&[], 0, 0.95), None);
    }
}
