//! State of one operation on one file during the analysis.

use super::Settings;
use super::device::Served;
use super::grid::Grid;
use super::pages::{PAGE_BYTES, PageSet};
use super::pattern::{DeviceShare, FilePattern, LatencyFigures, SeekDistances, StreamSummary};
use super::streams::{Relation, StreamCounts, Streams};
use dyno_record::io_trace::document::FileEntry;
use dyno_record::io_trace::event::{Call, Operation};
use dyno_record::io_trace::log_histogram::LogHistogram;

/// Bits of subdivision per power of two in latencies: buckets are 3 % wide.
const LATENCY_PART_BITS: u8 = 5;
/// Bits of subdivision per power of two in sizes.
const SIZE_PART_BITS: u8 = 3;
/// Bits of subdivision per power of two in distances.
const SEEK_PART_BITS: u8 = 3;
/// Fewest calls that could continue a stream for a score.
const FEWEST_JUDGED: u64 = 8;

/// More than a call can move; a damaged record must not keep the bitmap busy for hours.
const MOST_CALL_BYTES: u64 = 4 << 30;

pub(super) struct FileState {
    streams: Streams,
    pages: PageSet,
    reread_pages: u64,
    touched_pages: u64,
    calls: u64,
    bytes: u64,
    errors: u64,
    size_bytes: LogHistogram,
    latency_ns: LogHistogram,
    latency_sum_ns: u64,
    latency_max_ns: u64,
    no_seek: u64,
    seek_forward: LogHistogram,
    seek_backward: LogHistogram,
    moving_calls: u64,
    waiting_calls: u64,
    waited: u64,
    shared: u64,
    device_bytes: u64,
    picture: Option<Box<Grid>>,
}

impl FileState {
    pub(super) fn new(settings: &Settings, start_ns: i64, has_picture: bool) -> FileState {
        FileState {
            streams: Streams::new(settings.gap_bytes),
            pages: PageSet::default(),
            reread_pages: 0,
            touched_pages: 0,
            calls: 0,
            bytes: 0,
            errors: 0,
            size_bytes: LogHistogram::new(SIZE_PART_BITS),
            latency_ns: LogHistogram::new(LATENCY_PART_BITS),
            latency_sum_ns: 0,
            latency_max_ns: 0,
            no_seek: 0,
            seek_forward: LogHistogram::new(SEEK_PART_BITS),
            seek_backward: LogHistogram::new(SEEK_PART_BITS),
            moving_calls: 0,
            waiting_calls: 0,
            waited: 0,
            shared: 0,
            device_bytes: 0,
            picture: has_picture.then(|| Box::new(Grid::offsets_over_time(start_ns))),
        }
    }

    pub(super) fn add(&mut self, call: &Call, served: Served) {
        let bytes = call.bytes();
        self.calls += 1;
        self.bytes += bytes;
        self.errors += u64::from(call.returned < 0);
        self.latency_ns.add(call.latency_ns);
        self.latency_sum_ns += call.latency_ns;
        self.latency_max_ns = self.latency_max_ns.max(call.latency_ns);
        if call.returned >= 0 {
            self.size_bytes.add(bytes);
        }
        if bytes > 0 {
            self.moving_calls += 1;
            self.waiting_calls += u64::from(served.waited > 0);
            self.waited += served.waited;
            self.shared += served.shared;
            self.device_bytes += served.bytes;
            if call.offset >= 0 {
                self.place(call, bytes);
            }
        }
    }

    fn place(&mut self, call: &Call, bytes: u64) {
        let bytes = bytes.min(MOST_CALL_BYTES);
        let offset = call.offset as u64;
        let first = offset / PAGE_BYTES;
        let last = offset.saturating_add(bytes - 1) / PAGE_BYTES;
        let again = self.pages.touch(first, last);
        let placed = self.streams.place(call.offset, bytes, again == 0);
        // A stream of calls smaller than a page touches a page repeatedly without rereading anything.
        let goes_on = matches!(placed.relation, Relation::Adjacent | Relation::Near);
        let is_split = goes_on && again > 0 && !offset.is_multiple_of(PAGE_BYTES);
        self.reread_pages += again - u64::from(is_split);
        self.touched_pages += last - first + 1 - u64::from(is_split);
        let distance = placed.distance.unsigned_abs();
        match placed.distance {
            _ if placed.relation == Relation::First => {}
            0 => self.no_seek += 1,
            1.. => self.seek_forward.add(distance),
            _ => self.seek_backward.add(distance),
        }
        if let Some(picture) = &mut self.picture {
            picture.add(call.start_ns, call.offset);
        }
    }

    pub(super) fn finish(
        self,
        (file, operation): (u32, Operation),
        entry: Option<&FileEntry>,
        block_traced: bool,
    ) -> FilePattern {
        let file_bytes = entry.and_then(|entry| entry.bytes);
        let counts = self.streams.counts;
        let judged = (counts.judged() >= FEWEST_JUDGED).then(|| counts.judged() as f64);
        let placed = counts.placed;
        let touched = self.pages.touched();
        let reread = (self.touched_pages > 0 && touched.is_some())
            .then(|| self.reread_pages as f64 / self.touched_pages as f64);
        let device = self.device_share(operation, block_traced);
        let forward = (counts.continued - counts.backward) as f64;
        FilePattern {
            file,
            operation,
            name: entry.map_or_else(|| format!("file {file}"), |e| e.short_name().to_owned()),
            role: entry.and_then(|entry| entry.role.clone()),
            file_bytes,
            calls: self.calls,
            bytes: self.bytes,
            errors: self.errors,
            placed_calls: placed,
            score: judged.map(|judged| (counts.credit / judged).clamp(0.0, 1.0)),
            sequential_ratio: judged.map(|judged| forward / judged),
            adjacent_ratio: judged.map(|judged| counts.adjacent as f64 / judged),
            streams: judged.map(|judged| streams(&counts, judged)),
            seeks: (placed > 1)
                .then(|| SeekDistances::new(self.no_seek, self.seek_forward, self.seek_backward)),
            reread_ratio: reread.filter(|_| operation != Operation::Sync),
            working_set_bytes: touched.filter(|&pages| pages > 0).map(|pages| pages * PAGE_BYTES),
            amplification: amplification(self.bytes, file_bytes),
            latency: LatencyFigures::new(
                &self.latency_ns,
                self.latency_sum_ns,
                Some(self.latency_max_ns),
            ),
            size_bytes: self.size_bytes,
            latency_ns: self.latency_ns,
            device,
            picture: self.picture.filter(|_| placed > 0),
        }
    }

    fn device_share(&self, operation: Operation, block_traced: bool) -> Option<DeviceShare> {
        let is_reading = matches!(operation, Operation::Read | Operation::Fault);
        if !block_traced || !is_reading || self.moving_calls == 0 {
            return None;
        }
        Some(DeviceShare {
            waiting_calls: self.waiting_calls,
            waiting_ratio: self.waiting_calls as f64 / self.moving_calls as f64,
            device_bytes: self.device_bytes,
            device_ratio: self.device_bytes as f64 / self.bytes.max(1) as f64,
            ambiguous_ratio: self.shared as f64 / (self.waited + self.shared).max(1) as f64,
        })
    }
}

fn streams(counts: &StreamCounts, judged: f64) -> StreamSummary {
    StreamSummary {
        streams: counts.runs,
        mean_calls: counts.continued as f64 / counts.runs.max(1) as f64,
        interleaved_ratio: counts.switches as f64 / counts.continued.max(1) as f64,
        backward_ratio: counts.backward as f64 / judged,
        repeated_ratio: counts.repeats as f64 / counts.placed as f64,
    }
}

pub(super) fn amplification(bytes: u64, file_bytes: Option<u64>) -> Option<f64> {
    let size = file_bytes.filter(|&size| size > 0)?;
    Some(bytes as f64 / size as f64)
}
