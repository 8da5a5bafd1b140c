//! The blocks of YCSB's output: their lines, and the sources of the values.

use super::export::{Entry, Number};
use super::java_double::java_double;
use crate::error::ReportError;
use dyno_plan::operation::{INSERT, INSERT_BATCH, READ};
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
    let inserts = [INSERT, INSERT_BATCH].into_iter().find_map(|name| phase.operations.get(name));
    let succeeded = match (phase.name, inserts) {
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
        let title = block_name(name);
        let source = |clock| Source::new(run, phase, name, record, clock);
        let (service, response) = (source(Clock::Service), source(Clock::Response));
        let mut block = |title: &str, source, returns| {
            Block { title, source, options, returns }.measurement(entries)
        };
        match options.measurement_interval {
            MeasurementInterval::Op => block(&title, &service, true)?,
            MeasurementInterval::Intended => block(&title, &response, true)?,
            MeasurementInterval::Both => {
                block(&title, &service, true)?;
                block(&format!("Intended-{title}"), &response, false)?;
            }
        }
        if record.errors > 0 {
            entries.integer(&format!("{title}-FAILED"), "Operations", record.errors);
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
    let reads = phase.operations.get(READ).map_or(0, |read| read.count);
    entries.integer("VERIFY", "Return=OK", reads);
    if wrong > 0 {
        entries.integer("VERIFY", "Return=UNEXPECTED_STATE", wrong);
    }
}

/// YCSB's name of an operation: `read_modify_write` is `READ-MODIFY-WRITE`, and a batch is an `INSERT` of each document.
pub fn block_name(operation: &str) -> String {
    match operation {
        INSERT_BATCH => "INSERT".to_owned(),
        _ => operation.to_ascii_uppercase().replace('_', "-"),
    }
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

/// A block of one operation and one clock.
#[derive(Clone, Copy)]
struct Block<'a> {
    title: &'a str,
    source: &'a Source<'a>,
    options: &'a YcsbClientOptions,
    /// Whether it has the return codes.
    returns: bool,
}

impl Block<'_> {
    /// Writes the block, or both if there are two types.
    fn measurement(self, entries: &mut Entries) -> Result<(), ReportError> {
        match self.options.measurement_type {
            MeasurementType::HdrHistogram => self.hdr(entries),
            MeasurementType::Histogram => self.buckets(entries),
            MeasurementType::HdrHistogramAndHistogram => {
                Block { title: &format!("Hdr{}", self.title), ..self }.hdr(entries);
                let title = format!("Bucket{}", self.title);
                Block { title: &title, returns: false, ..self }.buckets(entries);
            }
            MeasurementType::TimeSeries => self.series(entries)?,
        }
        Ok(())
    }

    fn common(&self, entries: &mut Entries) {
        entries.integer(self.title, "Operations", self.source.operations);
        entries.double(self.title, "AverageLatency(us)", self.source.summary.mean);
    }

    /// In whole microseconds, truncated as in YCSB.
    fn extremes(&self, entries: &mut Entries) {
        let summary = self.source.summary;
        entries.integer(self.title, "MinLatency(us)", summary.min as u64);
        entries.integer(self.title, "MaxLatency(us)", summary.max as u64);
    }

    fn return_codes(&self, entries: &mut Entries) {
        let codes = [
            ("Return=OK", self.source.operations),
            ("Return=NOT_FOUND", self.source.not_found),
            ("Return=ERROR", self.source.failed),
        ];
        for (name, count) in codes {
            if self.returns && count > 0 {
                entries.integer(self.title, name, count);
            }
        }
    }

    fn hdr(&self, entries: &mut Entries) {
        self.common(entries);
        self.extremes(entries);
        for &percentile in &self.options.percentiles {
            let at = |histogram: &Histogram<u64>| histogram.value_at_quantile(percentile / 100.0);
            let name = format!("{}PercentileLatency(us)", ordinal(percentile));
            let value_us = self.source.histogram.map_or(0, at) / NS_PER_US;
            entries.integer(self.title, name, value_us);
        }
        self.return_codes(entries);
        if self.options.histogram_verbose {
            for (value_us, count) in microsecond_counts(self.source.histogram) {
                entries.double(self.title, value_us.to_string(), count as f64);
            }
        }
    }

    fn buckets(&self, entries: &mut Entries) {
        let mut buckets = vec![0u64; self.options.histogram_buckets as usize];
        let (mut overflow, mut count) = (0u64, 0u64);
        let mut squares = 0.0;
        for value in self.source.histogram.into_iter().flat_map(|h| h.iter_recorded()) {
            let here = value.count_since_last_iteration();
            let value_us = value.value_iterated_to() as f64 / NS_PER_US as f64;
            squares += value_us * value_us * here as f64;
            count += here;
            let index = (value.value_iterated_to() / NS_PER_MS) as usize;
            *buckets.get_mut(index).unwrap_or(&mut overflow) += here;
        }
        self.common(entries);
        let mean = self.source.summary.mean;
        let variance = squares / count.max(1) as f64 - mean * mean;
        // The mean is exact but the squares are not: rounding must not make a variance negative.
        entries.double(self.title, "LatencyVariance(us)", variance.max(0.0));
        self.extremes(entries);
        for (name, share) in
            [("95thPercentileLatency(us)", 0.95), ("99thPercentileLatency(us)", 0.99)]
        {
            if let Some(bucket) = bucket_at(&buckets, count, share) {
                entries.integer(self.title, name, bucket * 1_000);
            }
        }
        self.return_codes(entries);
        if self.options.histogram_verbose {
            for (index, count) in buckets.iter().enumerate() {
                entries.integer(self.title, index.to_string(), *count);
            }
            entries.integer(self.title, format!(">{}", self.options.histogram_buckets), overflow);
        }
    }

    fn series(&self, entries: &mut Entries) -> Result<(), ReportError> {
        self.common(entries);
        self.extremes(entries);
        self.return_codes(entries);
        for (start_ms, mean_us) in time_steps(self.source, self.options.timeseries_granularity_ms)?
        {
            entries.double(self.title, start_ms.to_string(), mean_us);
        }
        Ok(())
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

/// The first bucket with at least `share` of all values up to it; `None` if it is the overflow.
fn bucket_at(buckets: &[u64], count: u64, share: f64) -> Option<u64> {
    let mut below = 0;
    let reached = |bucket: &u64| {
        below += bucket;
        below as f64 / count as f64 >= share
    };
    buckets.iter().position(reached).map(|index| index as u64)
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
        assert_eq!(block_name("insert_batch"), "INSERT");
    }

    #[test]
    fn a_percentile_in_the_overflow_has_no_bucket() {
        assert_eq!(bucket_at(&[90, 5, 5], 100, 0.95), Some(1));
        assert_eq!(bucket_at(&[90, 5], 100, 0.95), Some(1));
        assert_eq!(bucket_at(&[90, 5], 100, 0.99), None);
        assert_eq!(bucket_at(&[], 0, 0.95), None);
    }
}
