//! Access patterns of the calls of one operation on one file.

use super::grid::Grid;
use dyno_record::io_trace::document::{FileKind, FileRole};
use dyno_record::io_trace::event::Operation;
use dyno_record::io_trace::log_histogram::LogHistogram;
use serde::Serialize;

/// Results of a trace analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccessPatterns {
    /// Largest distance ahead of a stream at which a call still continues it.
    pub gap_bytes: u64,
    /// The analysed part of the trace; absent if it is the whole trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Analysed calls on all files.
    pub calls: u64,
    /// Bytes that these calls moved.
    pub bytes: u64,
    /// Start of the first call; absent without calls.
    pub first_ns: Option<i64>,
    /// End of the last call.
    pub last_ns: Option<i64>,
    /// Calls on files beyond the limit of followed files, for which only totals are known.
    pub unfollowed_calls: u64,
    /// Patterns by file and operation, most calls first.
    pub files: Vec<FilePattern>,
    /// Requests that reached the devices; absent if the block layer was not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<BlockSummary>,
}

impl AccessPatterns {
    /// The pattern of an operation on a file.
    pub fn of(&self, file: u32, operation: Operation) -> Option<&FilePattern> {
        self.files.iter().find(|pattern| pattern.file == file && pattern.operation == operation)
    }
}

/// A part of a trace, relative to the trace's time zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Start; calls that begin earlier are excluded.
    pub from_ns: i64,
    /// End; calls that begin then or later are excluded.
    pub to_ns: i64,
}

/// The calls of one operation on one file. Figures are absent if they cannot be computed from recorded totals
/// or need more calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilePattern {
    /// Number of the file in the trace.
    pub file: u32,
    pub operation: Operation,
    /// Name of the file without directories.
    pub name: String,
    /// Content of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<FileRole>,
    /// Size of the file at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    /// Calls, including failed ones.
    pub calls: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Calls that moved bytes at a known position, which define the order.
    pub placed_calls: u64,
    /// Score from 0, random, to 1, sequential. Mean of the calls' values: 1 if a call begins where a stream of
    /// at least four calls ended; if it begins further on, but within the gap, its size as a share of the
    /// distance; half of that if the stream goes backward; otherwise 0. The first call and calls at the same
    /// position again are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Share of the calls that continue a stream within the gap, forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential_ratio: Option<f64>,
    /// Share of the calls that begin exactly where a stream ended; with only totals, where the previous call on
    /// the same file ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adjacent_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeks: Option<SeekDistances>,
    /// Share of the bytes read from pages that were read before, at a page size of 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread_ratio: Option<f64>,
    /// Bytes of all touched pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Moved bytes as a multiple of the file size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amplification: Option<f64>,
    /// Bytes per call.
    pub size_bytes: LogHistogram,
    /// Times from entry to exit.
    pub latency_ns: LogHistogram,
    /// Statistics of the latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyFigures>,
    /// Shares of device and page cache; absent if the block layer was not traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceShare>,
    /// Offsets over time; only for the files with the most calls.
    #[serde(skip)]
    pub picture: Option<Box<Grid>>,
}

impl FilePattern {
    /// Display name: the content, `sdu.units` or `sdu.units.field_1`, if known, otherwise the file name.
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

    /// The median size of a call. Sizes are mostly round, so this is the start of its bucket, or the mean if
    /// one bucket contains all.
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
    /// Mean number of calls that continue a stream.
    pub mean_calls: f64,
    /// Share of the streams' calls that continue another stream than the previous call: 0 for one stream, near
    /// 1 for alternating streams.
    pub interleaved_ratio: f64,
    /// Share of the calls that continue a stream backward.
    pub backward_ratio: f64,
    /// Share of the calls that begin where a recent call began, reading the same bytes again.
    pub repeated_ratio: f64,
}

/// Distances to the start of a call from the end of the stream that it continues, or else of the previous call
/// on the same file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeekDistances {
    /// Calls without a distance.
    pub none: u64,
    /// Distances of calls further ahead in the file.
    pub forward_bytes: LogHistogram,
    /// Distances of calls further back.
    pub backward_bytes: LogHistogram,
    /// Share of all calls further ahead, or without a distance.
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

/// Statistics of the times from entry to exit.
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
    /// Maximum; with only totals, the end of the last bucket.
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

/// Shares of device and page cache, by requests of the same process that overlap with the calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DeviceShare {
    /// Calls that waited for a request that ended during the call.
    pub waiting_calls: u64,
    /// Waiting calls as a share of the calls that read something.
    pub waiting_ratio: f64,
    /// Bytes of the requests that calls triggered, including read-ahead.
    pub device_bytes: u64,
    /// These bytes as a share of the bytes that were read. Above 1 the kernel read more than requested; 0 means
    /// that all came from the page cache.
    pub device_ratio: f64,
    /// Share of the awaited requests that could also belong to another call of the process.
    pub ambiguous_ratio: f64,
}

/// Requests of the block layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockSummary {
    /// Number of read requests.
    pub reads: u64,
    /// Bytes of the read requests.
    pub read_bytes: u64,
    /// Number of write requests.
    pub writes: u64,
    /// Bytes of the write requests.
    pub written_bytes: u64,
    pub flushes: u64,
    /// Times from the queue to the device, of all requests.
    pub queue_ns: LogHistogram,
    /// Times of read requests on the device.
    pub read_ns: LogHistogram,
    /// Times of write requests on the device.
    pub write_ns: LogHistogram,
    /// Sizes of read requests.
    pub read_size_bytes: LogHistogram,
    /// Bytes of read requests that belong to a traced call.
    pub matched_bytes: u64,
    /// Bytes of requests that kernel threads made for traced calls, included in the matched bytes.
    pub handed_on_bytes: u64,
    /// Bytes that traced calls requested from devices without a known request.
    pub unseen_bytes: u64,
}
