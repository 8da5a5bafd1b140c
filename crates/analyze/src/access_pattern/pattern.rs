//! What is known of the calls of one operation on one file.

use super::grid::Pictures;
use super::slices::Slices;
use dyno_record::io_trace::document::{FileKind, FileRole};
use dyno_record::io_trace::event::Operation;
use dyno_record::io_trace::log_histogram::LogHistogram;
use serde::Serialize;

/// Everything that follows from a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccessPatterns {
    /// Largest distance ahead of a stream at which a call still continues it.
    pub gap_bytes: u64,
    /// The part of the trace that was looked at; absent if it was all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Calls that were looked at, of all files.
    pub calls: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// When the first call began; absent without calls.
    pub first_ns: Option<i64>,
    /// When the last call ended.
    pub last_ns: Option<i64>,
    /// Calls on files beyond the number that is followed one by one, of which the totals are all
    /// that is known.
    pub unfollowed_calls: u64,
    /// Patterns by file and operation, most calls first.
    pub files: Vec<FilePattern>,
    /// What reached the devices; absent if the block layer was not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockSummary>,
}

impl AccessPatterns {
    /// The pattern of an operation on a file.
    pub fn of(&self, file: u32, operation: Operation) -> Option<&FilePattern> {
        let mut files = self.files.iter();
        files.find(|pattern| pattern.file == file && pattern.operation == operation)
    }
}

/// A part of a trace, from its zero on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Its start; calls that begin earlier are left out.
    pub from_ns: i64,
    /// Its end; calls that begin then or later are left out.
    pub to_ns: i64,
}

/// The calls of one operation on one file. What cannot be known from totals is absent where only
/// totals were recorded, and so is what needs more calls than there were.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilePattern {
    /// Number of the file in the trace.
    pub file: u32,
    /// The operation.
    pub operation: Operation,
    /// Name of the file without folders.
    pub name: String,
    /// What it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<FileRole>,
    /// Size of the file at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Calls, with those that failed.
    pub calls: u64,
    /// Bytes that were moved.
    pub bytes: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Calls that moved something at a place that is known: those that the order rests on.
    pub placed_calls: u64,
    /// From 0, random, to 1, sequential. Mean over the calls of what each is worth: 1 if it begins
    /// where a stream of at least four calls ended; if it begins further on, but within the gap, its
    /// size as a share of the way; half of that if the stream goes backward; else 0. The first call
    /// and calls at the same place again are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Share of the calls that continue a stream within the gap, forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential_ratio: Option<f64>,
    /// Share of the calls that begin exactly where a stream ended; of totals, where the call before
    /// on the same file ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjacent_ratio: Option<f64>,
    /// The streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamSummary>,
    /// Distances between calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeks: Option<SeekDistances>,
    /// Share of the bytes read whose pages were read before, to a page of 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread_ratio: Option<f64>,
    /// Bytes of all pages that were touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Bytes that were moved as multiples of the size of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amplification: Option<f64>,
    /// Bytes moved by a call.
    pub size_bytes: LogHistogram,
    /// Times from entry to exit.
    pub latency_ns: LogHistogram,
    /// Figures of these times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyFigures>,
    /// What came from the device and what from the page cache; absent if the block layer was not
    /// traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceShare>,
    /// Counts over time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<Slices>,
    /// Pictures; of the files with the most calls only.
    #[serde(skip)]
    pub pictures: Option<Box<Pictures>>,
}

impl FilePattern {
    /// What people call it: by what it holds, `sdu.units` or `sdu.units.field_1`, where that is known, else by its name.
    pub fn label(&self) -> String {
        let role = self.role.as_ref();
        let namespace = role
            .and_then(|role| Some((role.kind, role.namespace.as_deref()?, role.index.as_deref())));
        match namespace {
            Some((FileKind::Collection, namespace, _)) => namespace.to_owned(),
            Some((FileKind::Index, namespace, Some(index))) => format!("{namespace}.{index}"),
            _ => self.name.clone(),
        }
    }

    /// The median size of a call. Sizes are mostly round, so that it is the start of its bucket, or the
    /// mean where one bucket holds all.
    pub fn median_bytes(&self) -> Option<f64> {
        let all = self.size_bytes.count();
        let mut before = 0;
        for (from, _, count) in self.size_bytes.buckets() {
            before += count;
            if count == all {
                return Some(self.bytes as f64 / all as f64);
            }
            if before * 2 >= all {
                return Some(from as f64);
            }
        }
        None
    }

    /// The distance that half of the calls do not exceed.
    pub fn median_seek_bytes(&self) -> Option<f64> {
        self.seeks.as_ref().and_then(|seeks| seeks.median_bytes)
    }
}

/// The streams of an operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StreamSummary {
    /// Streams of at least four calls.
    pub streams: u64,
    /// Mean number of calls that continue one.
    pub mean_calls: f64,
    /// Share of the calls of streams that continue another one than the call before did: 0 for one
    /// stream, near 1 for streams that take turns.
    pub interleaved_ratio: f64,
    /// Share of the calls that continue a stream backward.
    pub backward_ratio: f64,
    /// Share of the calls that begin where a recent call began, reading the same again.
    pub repeated_ratio: f64,
}

/// Distances from the end of the stream that a call continues, or else of the call before it on the
/// same file, to its start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeekDistances {
    /// Calls without a distance.
    pub none: u64,
    /// Distances of calls further on in the file.
    pub forward_bytes: LogHistogram,
    /// Distances of calls further back.
    pub backward_bytes: LogHistogram,
    /// Share of all calls that are further on, or without a distance.
    pub forward_ratio: f64,
    /// The distance, in either direction, that half of the calls do not exceed.
    pub median_bytes: Option<f64>,
}

impl SeekDistances {
    pub(super) fn new(none: u64, forward: LogHistogram, backward: LogHistogram) -> SeekDistances {
        let all = none + forward.count() + backward.count();
        let mut together = LogHistogram::new(forward.part_bits());
        together.merge(&forward);
        together.merge(&backward);
        // The value 0 has bucket 0 in every histogram.
        together.add_to_bucket(0, none);
        SeekDistances {
            forward_ratio: (none + forward.count()) as f64 / all.max(1) as f64,
            median_bytes: together.quantile(0.5),
            none,
            forward_bytes: forward,
            backward_bytes: backward,
        }
    }
}

/// Figures of times from entry to exit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Arithmetic mean, exact.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: f64,
    /// 90th percentile.
    pub p90_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// 99.9th percentile.
    pub p99_9_ns: f64,
    /// Largest; of totals, the end of the last bucket.
    pub max_ns: f64,
}

impl LatencyFigures {
    pub(super) fn new(times: &LogHistogram, sum_ns: u64, max_ns: Option<u64>) -> Option<Self> {
        let max_ns = max_ns.map(|max| max as f64).or(times.quantile(1.0))?;
        let at = |ratio| times.quantile(ratio).map(|value| value.min(max_ns));
        Some(LatencyFigures {
            mean_ns: sum_ns as f64 / times.count() as f64,
            p50_ns: at(0.5)?,
            p90_ns: at(0.9)?,
            p99_ns: at(0.99)?,
            p99_9_ns: at(0.999)?,
            max_ns,
        })
    }
}

/// What came from the device and what from the page cache, by requests of the same process that
/// overlap with the calls in time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeviceShare {
    /// Calls during which a request ended that they waited for.
    pub waiting_calls: u64,
    /// These as a share of the calls that read something.
    pub waiting_ratio: f64,
    /// Bytes of the requests that calls set off, read-ahead included.
    pub device_bytes: u64,
    /// These as a share of the bytes that were read. Above 1 the kernel read more than was asked
    /// for; 0 means that all came from the page cache.
    pub device_ratio: f64,
    /// Share of the requests waited for that could belong to another call of the process too.
    pub ambiguous_ratio: f64,
}

/// Requests of the block layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockSummary {
    /// Requests that read.
    pub reads: u64,
    /// Bytes of these.
    pub read_bytes: u64,
    /// Requests that wrote.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Times from the queue to the device, of all.
    pub queue_ns: LogHistogram,
    /// Times on the device, of those that read.
    pub read_ns: LogHistogram,
    /// Times on the device, of those that wrote.
    pub write_ns: LogHistogram,
    /// Sizes of all that read.
    pub read_size_bytes: LogHistogram,
    /// Bytes read that belong to a call that was traced.
    pub matched_bytes: u64,
    /// Of these, bytes of requests that threads of the kernel made for traced calls.
    pub handed_on_bytes: u64,
    /// Bytes that traced calls asked devices for and of which no request is known.
    pub unseen_bytes: u64,
}
