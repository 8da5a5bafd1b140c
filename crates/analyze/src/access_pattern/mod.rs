//! The order, frequency and positions of a program's file reads and writes, from a trace of its calls: one pass
//! over the calls, in memory that does not grow with their number.
//!
//! `streams` finds streams and computes the score. `device` distinguishes calls that the page cache answered
//! from calls that waited for a device. Unknown values are absent.

mod device;
mod finding;
mod grid;
mod pages;
mod pattern;
mod state;
mod streams;
mod totals;

pub use finding::{Activity, findings, order_statement};
pub use grid::{Axis, Grid};
pub use pages::PAGE_BYTES;
pub use pattern::{
    AccessPatterns, BlockSummary, DeviceShare, FilePattern, LatencyFigures, SeekDistances,
    StreamSummary, Window,
};
pub use streams::BACKWARD_CREDIT;

use device::{Matcher, Served};
use dyno_record::io_trace::document::TraceDocument;
use dyno_record::io_trace::event::{BlockOperation, BlockRequest, CallBatch, Operation};
use dyno_record::io_trace::log_histogram::LogHistogram;
use state::FileState;
use std::collections::HashSet;

/// Bits of subdivision per power of two in request times.
const BLOCK_PART_BITS: u8 = 4;
/// Highest file number with details; files beyond it have only totals.
const MOST_FILES: usize = 1 << 20;

/// Scope and detail of an analysis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Largest distance ahead of a stream at which a call still continues it.
    pub gap_bytes: u64,
    /// The part of the trace; by default all of it.
    pub window: Option<Window>,
    /// Number of pairs of file and operation that are followed call by call, those with the most calls first.
    pub followed: usize,
    /// Number of followed pairs with pictures.
    pub pictures: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            // Linux's default read-ahead: a smaller hole is read anyway.
            gap_bytes: 128 << 10,
            window: None,
            followed: 1000,
            pictures: 8,
        }
    }
}

/// Analyses a trace. Both kinds of events arrive approximately in the order of their ends; an error of either
/// iterator ends the analysis.
///
/// # Errors
/// The first error of an iterator.
pub fn analyze<E>(
    settings: Settings,
    document: &TraceDocument,
    calls: impl IntoIterator<Item = Result<CallBatch, E>>,
    block: impl IntoIterator<Item = Result<Vec<BlockRequest>, E>>,
) -> Result<AccessPatterns, E> {
    let mut analysis = Analysis::new(settings, document);
    feed(std::slice::from_mut(&mut analysis), calls, block)?;
    Ok(analysis.finish(document))
}

/// Analyses several parts of a trace in one pass; ignores `settings.window`.
///
/// # Errors
/// The first error of an iterator.
pub fn analyze_windows<E>(
    settings: Settings,
    windows: &[Window],
    document: &TraceDocument,
    calls: impl IntoIterator<Item = Result<CallBatch, E>>,
    block: impl IntoIterator<Item = Result<Vec<BlockRequest>, E>>,
) -> Result<Vec<AccessPatterns>, E> {
    let of_window = |&window| {
        let window = Some(window);
        Analysis::new(Settings { window, ..settings }, document)
    };
    let mut all: Vec<Analysis> = windows.iter().map(of_window).collect();
    feed(&mut all, calls, block)?;
    let finish = |analysis: Analysis| analysis.finish(document);
    Ok(all.into_iter().map(finish).collect())
}

/// Feeds a trace to analyses, each request before the calls that end after it.
fn feed<E>(
    all: &mut [Analysis],
    calls: impl IntoIterator<Item = Result<CallBatch, E>>,
    block: impl IntoIterator<Item = Result<Vec<BlockRequest>, E>>,
) -> Result<(), E> {
    let mut block = block.into_iter();
    let mut ended_ns = i64::MIN;
    for batch in calls {
        let batch = batch?;
        let until_ns = last_end(&batch);
        // Requests that a call waited for must be known before the call.
        while ended_ns <= until_ns {
            let Some(requests) = block.next() else {
                break;
            };
            let requests = requests?;
            ended_ns = ended_ns.max(requests.iter().map(end_of).max().unwrap_or(i64::MIN));
            for analysis in &mut *all {
                analysis.add_block(&requests);
            }
        }
        for analysis in &mut *all {
            analysis.add(&batch);
        }
    }
    for requests in block {
        let requests = requests?;
        for analysis in &mut *all {
            analysis.add_block(&requests);
        }
    }
    Ok(())
}

fn end_of(request: &BlockRequest) -> i64 {
    request.issue_ns.saturating_add(request.device_ns as i64)
}

fn last_end(batch: &CallBatch) -> i64 {
    batch
        .start_ns
        .iter()
        .zip(&batch.latency_ns)
        .map(|(start, latency)| start.saturating_add(*latency as i64))
        .max()
        .unwrap_or(i64::MIN)
}

/// An analysis in progress.
pub struct Analysis {
    settings: Settings,
    start_ns: i64,
    /// Files and operations to follow; in order of appearance if the totals are unknown.
    chosen: Option<Chosen>,
    /// By file number, then by operation number.
    files: Vec<[Option<Box<FileState>>; Operation::ALL.len()]>,
    followed: usize,
    matcher: Matcher,
    block: BlockSummary,
    calls: u64,
    bytes: u64,
    span: Option<(i64, i64)>,
    unfollowed_calls: u64,
}

impl Analysis {
    /// An analysis of a trace with the document as it was written at the start.
    pub fn new(settings: Settings, document: &TraceDocument) -> Analysis {
        let from_ns = settings.window.map(|window| window.from_ns);
        Analysis {
            settings,
            start_ns: from_ns.unwrap_or((document.start_s * 1e9) as i64),
            chosen: chosen(&settings, document),
            files: Vec::new(),
            followed: 0,
            matcher: Matcher::default(),
            block: empty_block_summary(),
            calls: 0,
            bytes: 0,
            span: None,
            unfollowed_calls: 0,
        }
    }

    /// Adds requests of the block layer. Requests that ended before a call must be added before it.
    pub fn add_block(&mut self, requests: &[BlockRequest]) {
        for request in requests {
            if self.is_outside(request.issue_ns) {
                continue;
            }
            self.matcher.add(request);
            let bytes = u64::from(request.bytes);
            let block = &mut self.block;
            block.queue_ns.add(request.queue_ns);
            match request.operation {
                BlockOperation::Read => {
                    block.reads += 1;
                    block.read_bytes += bytes;
                    block.read_ns.add(request.device_ns);
                    block.read_size_bytes.add(bytes);
                }
                BlockOperation::Write => {
                    block.writes += 1;
                    block.written_bytes += bytes;
                    block.write_ns.add(request.device_ns);
                }
                BlockOperation::Flush => block.flushes += 1,
                BlockOperation::Discard => {}
            }
        }
    }

    /// Adds calls in the order of their ends.
    pub fn add(&mut self, batch: &CallBatch) {
        for call in batch.iter() {
            if self.is_outside(call.start_ns) {
                continue;
            }
            let end_ns = call.start_ns.saturating_add(call.latency_ns as i64);
            self.calls += 1;
            self.bytes += call.bytes();
            let (first, last) = self.span.unwrap_or((call.start_ns, end_ns));
            self.span = Some((first.min(call.start_ns), last.max(end_ns)));
            let is_reading = matches!(call.operation, Operation::Read | Operation::Fault);
            let served = if is_reading { self.matcher.serve(&call) } else { Served::default() };
            self.block.matched_bytes += served.bytes;
            self.block.handed_on_bytes += served.handed_on;
            match self.state(call.file, call.operation) {
                Some(state) => state.add(&call, served),
                None => self.unfollowed_calls += 1,
            }
        }
    }

    fn is_outside(&self, at_ns: i64) -> bool {
        let window = self.settings.window.as_ref();
        window.is_some_and(|window| !(window.from_ns..window.to_ns).contains(&at_ns))
    }

    fn state(&mut self, file: u32, operation: Operation) -> Option<&mut FileState> {
        let place = file as usize;
        if place >= MOST_FILES {
            return None;
        }
        if place >= self.files.len() {
            self.files.resize_with(place + 1, Default::default);
        }
        let slot = &mut self.files[place][operation as usize];
        if slot.is_none() {
            let key = (file, operation);
            let (is_followed, has_pictures) = match &self.chosen {
                Some((followed, pictures)) => (followed.contains(&key), pictures.contains(&key)),
                None => {
                    (self.followed < self.settings.followed, self.followed < self.settings.pictures)
                }
            };
            if !is_followed {
                return None;
            }
            self.followed += 1;
            let state = FileState::new(&self.settings, self.start_ns, has_pictures);
            *slot = Some(Box::new(state));
        }
        slot.as_deref_mut()
    }

    /// The result, with names and sizes of files from the document as it is at the end. Files with only totals
    /// have no details.
    pub fn finish(mut self, document: &TraceDocument) -> AccessPatterns {
        self.block.unseen_bytes = self.matcher.owed_bytes();
        let mut files = Vec::new();
        for (file, states) in self.files.into_iter().enumerate() {
            for (state, operation) in states.into_iter().zip(Operation::ALL) {
                let entry = document.files.get(file);
                files.extend(state.map(|state| {
                    state.finish((file as u32, operation), entry, document.block_traced)
                }));
            }
        }
        // Totals cover the whole trace and say nothing about a part of it.
        if self.settings.window.is_none() {
            let known: HashSet<_> = files.iter().map(|f| (f.file, f.operation)).collect();
            let totals = document.totals.iter();
            let rest = totals.filter(|totals| !known.contains(&(totals.file, totals.operation)));
            files.extend(rest.map(|totals| totals::pattern(totals, document)));
        }
        files.sort_by_key(|pattern| std::cmp::Reverse(pattern.calls));
        let from_totals = self.calls == 0;
        let sum = |of: fn(&FilePattern) -> u64| files.iter().map(of).sum();
        AccessPatterns {
            gap_bytes: self.settings.gap_bytes,
            window: self.settings.window,
            calls: if from_totals { sum(|f| f.calls) } else { self.calls },
            bytes: if from_totals { sum(|f| f.bytes) } else { self.bytes },
            first_ns: self.span.map(|(first, _)| first),
            last_ns: self.span.map(|(_, last)| last),
            unfollowed_calls: self.unfollowed_calls,
            block: document.block_traced.then_some(self.block),
            files,
        }
    }
}

/// The pairs of file and operation with the most calls, and the pairs with pictures. Syncs have no position
/// that could be drawn.
type Chosen = (HashSet<(u32, Operation)>, HashSet<(u32, Operation)>);

fn chosen(settings: &Settings, document: &TraceDocument) -> Option<Chosen> {
    if document.totals.is_empty() {
        return None;
    }
    let mut totals: Vec<_> = document.totals.iter().collect();
    totals.sort_by_key(|totals| (std::cmp::Reverse(totals.calls), totals.file));
    let keys = totals.iter().map(|totals| (totals.file, totals.operation));
    let drawn = keys.clone().filter(|(_, operation)| *operation != Operation::Sync);
    Some((keys.take(settings.followed).collect(), drawn.take(settings.pictures).collect()))
}

fn empty_block_summary() -> BlockSummary {
    BlockSummary {
        reads: 0,
        read_bytes: 0,
        writes: 0,
        written_bytes: 0,
        flushes: 0,
        queue_ns: LogHistogram::new(BLOCK_PART_BITS),
        read_ns: LogHistogram::new(BLOCK_PART_BITS),
        write_ns: LogHistogram::new(BLOCK_PART_BITS),
        read_size_bytes: LogHistogram::new(BLOCK_PART_BITS),
        matched_bytes: 0,
        handed_on_bytes: 0,
        unseen_bytes: 0,
    }
}
