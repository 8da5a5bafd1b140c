//! Traces with known figures: an index build that reads a collection at random, and the same build after its records were
//! put in order.

use dyno_analyze::access_pattern::AccessPatterns;
use dyno_analyze::access_pattern::Settings;
use dyno_analyze::access_pattern::analyze;
use dyno_record::io_trace::document::{
    BlockDevice, FileEntry, FileKind, FileRole, HookKind, ProbeUse, ProgramCost, TraceCaveat,
    TraceCaveatKind, TraceCost, TraceDocument, TraceMode,
};
use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call, CallBatch, Operation};
use dyno_record::io_trace::totals::FileTotals;
use dyno_record::statement::Statement;
use std::convert::Infallible;

const BLOCK: i64 = 32 << 10;
const CALLS: i64 = 2000;
const COLLECTION: u32 = 0;
const INDEX: u32 = 1;

#[derive(Clone)]
pub(crate) struct Traced {
    pub(crate) document: TraceDocument,
    pub(crate) patterns: AccessPatterns,
}

fn file(name: &str, inode: u64, kind: FileKind, index: Option<&str>) -> FileEntry {
    FileEntry {
        device_major: 254,
        device_minor: 1,
        inode,
        generation: None,
        name: format!("/data/{name}"),
        names: Vec::new(),
        deleted: false,
        bytes: Some((CALLS * BLOCK) as u64),
        role: Some(FileRole {
            kind,
            namespace: Some("sdu.docs".to_owned()),
            index: index.map(str::to_owned),
            words: None,
        }),
    }
}

fn document() -> TraceDocument {
    let mut document = TraceDocument::new("0.1.0", "2026-08-22T10:15:00Z", TraceMode::Events);
    document.complete = true;
    document.start_s = 1.0;
    document.target.processes = vec![4711];
    document.target.name = Some("embedded server".to_owned());
    document.probes = vec![ProbeUse {
        what: "reads".to_owned(),
        kind: HookKind::Tracepoint,
        hook: "syscalls/sys_enter_pread64".to_owned(),
        why_not_better: Some("fentry is refused".to_owned()),
    }];
    document.block_traced = true;
    document.devices = vec![BlockDevice { major: 254, minor: 0, name: "vda".to_owned() }];
    document.cost = Some(TraceCost {
        programs: vec![ProgramCost {
            name: "enter_pread64".to_owned(),
            runs: 4600,
            run_time_ns: 1_380_000,
        }],
    });
    document
}

fn call(number: i64, offset: i64, latency_ns: u64, file: u32) -> Call {
    Call {
        start_ns: 1_000_000_000 + number,
        latency_ns,
        offset,
        requested: BLOCK as u64,
        returned: BLOCK,
        file,
        process: 4711,
        thread: 4712,
        operation: if file == INDEX { Operation::Write } else { Operation::Read },
        fetched: -1,
    }
}

/// Reads at these places, each `latency_ns` long: one in `cached` comes from the page cache, and a write to the index
/// follows every tenth read.
fn traced(
    mut document: TraceDocument,
    offsets: impl Iterator<Item = i64>,
    latency_ns: u64,
    cached: usize,
) -> Traced {
    let (mut calls, mut block) = (Vec::new(), Vec::new());
    let mut now = 0;
    for (number, offset) in offsets.enumerate() {
        let number = number as i64;
        let from_cache = number as usize % cached == cached - 1;
        let varied = latency_ns + (number as u64 * 7919 % 1000) * latency_ns / 1000;
        let latency = if from_cache { 4_000 + varied % 1000 } else { varied };
        let read = call(now, offset, latency, COLLECTION);
        if !from_cache {
            block.push(BlockRequest {
                issue_ns: read.start_ns + 3_000,
                queue_ns: 1_000,
                device_ns: latency - 5_000,
                sector: offset as u64 / 512,
                bytes: BLOCK as u32,
                device: 0,
                operation: BlockOperation::Read,
                process: 4711,
            });
        }
        calls.push(read);
        now += latency as i64 + 20_000;
        if number % 10 == 0 {
            calls.push(call(now, number / 10 * BLOCK, 15_000, INDEX));
            now += 30_000;
        }
    }
    document.duration_s = now as f64 * 1e-9;
    analysed(document, calls, block)
}

fn analysed(mut document: TraceDocument, calls: Vec<Call>, block: Vec<BlockRequest>) -> Traced {
    (document.calls, document.block_requests) = (calls.len() as u64, block.len() as u64);
    let batch: CallBatch = calls.into_iter().collect();
    let events: [Result<CallBatch, Infallible>; 1] = [Ok(batch)];
    let patterns = match analyze(Settings::default(), &document, events, [Ok(block)]) {
        Ok(patterns) => patterns,
        Err(never) => match never {},
    };
    Traced { document, patterns }
}

/// Every block of the collection once, in a reproducible random order.
fn scattered() -> impl Iterator<Item = i64> {
    let mut blocks: Vec<i64> = (0..CALLS).collect();
    let mut state: u64 = 88_172_645_463_325_252;
    for place in (1..blocks.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        blocks.swap(place, (state % (place as u64 + 1)) as usize);
    }
    blocks.into_iter().map(|block| block * BLOCK)
}

pub(crate) fn random_scan() -> Traced {
    let mut document = document();
    document.files = vec![
        file("collection-7.wt", 20, FileKind::Collection, None),
        file("index-8.wt", 21, FileKind::Index, Some("a_1")),
    ];
    document.lost_calls = 3;
    document.caveats = vec![
        TraceCaveat {
            kind: TraceCaveatKind::LostEvents,
            statement: Statement::recorded("3 calls were lost because the buffer was full")
                .with("hint", "give it more room"),
        },
        TraceCaveat {
            kind: TraceCaveatKind::NotObserved,
            statement: Statement::recorded("page faults of mapped files were not observed"),
        },
    ];
    traced(document, scattered(), 5_000_000, 10)
}

pub(crate) fn sequential_scan() -> Traced {
    let mut document = document();
    document.files = vec![
        file("collection-11.wt", 30, FileKind::Collection, None),
        file("index-12.wt", 31, FileKind::Index, Some("a_1")),
    ];
    traced(document, (0..CALLS).map(|number| number * BLOCK), 400_000, 4)
}

/// Two servers that build at the same time: one reads at random, the other from start to end.
pub(crate) fn two_servers() -> Traced {
    const OTHER: u32 = 2;
    let mut document = document();
    document.files = vec![
        file("split-0/collection-7.wt", 40, FileKind::Collection, None),
        file("split-0/index-8.wt", 41, FileKind::Index, Some("a_1")),
        file("split-1/collection-7.wt", 42, FileKind::Collection, None),
    ];
    let calls = scattered().enumerate().flat_map(|(number, offset)| {
        let number = number as i64;
        let now = number * 4_000_000;
        [
            call(now, offset, 3_000_000, COLLECTION),
            call(now + 1_000, number * BLOCK, 200_000, OTHER),
        ]
    });
    document.duration_s = CALLS as f64 * 0.004;
    document.block_traced = false;
    analysed(document, calls.collect(), Vec::new())
}

/// The random scan as totals counted by the kernel.
pub(crate) fn aggregated() -> Traced {
    let mut document = random_scan().document;
    document.mode = TraceMode::Aggregated;
    document.block_traced = false;
    let mut totals = FileTotals::new(COLLECTION, Operation::Read, 0);
    let mut previous = None;
    for offset in scattered() {
        totals.add(&call(0, offset, 5_000_000, COLLECTION), previous);
        previous = Some(offset + BLOCK);
    }
    document.totals = vec![totals];
    finished(document)
}

pub(crate) fn empty() -> Traced {
    finished(document())
}

fn finished(document: TraceDocument) -> Traced {
    let none: [Result<CallBatch, Infallible>; 0] = [];
    let patterns = match analyze(Settings::default(), &document, none, []) {
        Ok(patterns) => patterns,
        Err(never) => match never {},
    };
    Traced { document, patterns }
}
