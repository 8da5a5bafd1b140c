//! A small trace with events that follow from their numbers.

use dyno_record::io_trace::document::{
    BlockDevice, FileEntry, FileKind, FileRole, HookKind, ProbeUse, ProgramCost, SCHEMA_VERSION,
    TraceCaveat, TraceCaveatKind, TraceCost, TraceDocument, TraceFilter, TraceMode, TraceTarget,
};
use dyno_record::io_trace::event::{BlockOperation, BlockRequest, Call, Operation};
use dyno_record::io_trace::totals::{FileTotals, TimeSlice};
use dyno_record::statement;

/// The call of a number.
pub(crate) fn call(number: u32) -> Call {
    let n = i64::from(number);
    Call {
        start_ns: n * 50_000 - 100_000,
        latency_ns: 1000 + u64::from(number % 7) * 31,
        offset: if number % 11 == 10 { -1 } else { (n * 7919) % 100 * 4096 },
        requested: 4096,
        returned: if number % 13 == 12 { -5 } else { 4096 },
        file: number % 2,
        process: 100,
        thread: 100 + number % 3,
        operation: Operation::ALL[(number % 4) as usize],
        fetched: i64::from(number % 3) * 4096 - 1,
    }
}

/// The request of a number.
pub(crate) fn block(number: u32) -> BlockRequest {
    BlockRequest {
        issue_ns: i64::from(number) * 60_000,
        queue_ns: u64::from(number % 5) * 100,
        device_ns: 20_000 + u64::from(number),
        sector: u64::from(number) * 8 + (1 << 40),
        bytes: 4096,
        device: 0,
        operation: BlockOperation::ALL[(number % 4) as usize],
        process: 100 * (number % 2),
    }
}

fn files() -> Vec<FileEntry> {
    let collection = FileEntry {
        device_major: 254,
        device_minor: 1,
        inode: 4711,
        generation: Some(3),
        name: "/data/collection-7.wt".to_owned(),
        names: vec!["/data/new.wt".to_owned(), "/data/collection-7.wt".to_owned()],
        deleted: false,
        bytes: Some(409_600),
        role: Some(FileRole {
            kind: FileKind::Collection,
            namespace: Some("ycsb.usertable".to_owned()),
            index: None,
            words: None,
        }),
    };
    let other = FileEntry {
        inode: 4712,
        generation: None,
        name: "/data/x".to_owned(),
        names: Vec::new(),
        deleted: true,
        bytes: None,
        role: None,
        ..collection.clone()
    };
    vec![collection, other]
}

/// A document in which everything has a value.
pub(crate) fn document() -> TraceDocument {
    let mut document = TraceDocument::new("0.1.0", "2026-08-22T10:15:00Z", TraceMode::Events);
    assert_eq!(document.schema_version, SCHEMA_VERSION);
    document.zero_monotonic_ns = 123_456_789;
    document.start_s = 0.5;
    document.duration_s = 1.0 / 3.0;
    document.target = TraceTarget {
        processes: vec![100],
        command: Some(vec!["fio".to_owned(), "job.fio".to_owned()]),
        name: Some("fio".to_owned()),
    };
    document.filter = TraceFilter {
        files: vec!["*.wt".to_owned()],
        operations: vec![Operation::Read, Operation::Write],
        smallest_bytes: 512,
    };
    document.probes = vec![ProbeUse {
        what: "read".to_owned(),
        kind: HookKind::Tracepoint,
        hook: "syscalls/sys_enter_pread64".to_owned(),
        why_not_better: Some("fentry is refused".to_owned()),
    }];
    document.block_traced = true;
    document.lost_calls = 2;
    document.files = files();
    let mut totals = FileTotals::new(0, Operation::Read, 0);
    totals.add(&call(0), None);
    totals.slices.push(TimeSlice {
        start_ns: 0,
        duration_ns: 1_000_000_000,
        calls: 1,
        bytes: 4096,
        latency_sum_ns: 1000,
    });
    document.totals = vec![totals];
    document.devices = vec![BlockDevice { major: 254, minor: 0, name: "vda".to_owned() }];
    document.cost = Some(TraceCost {
        programs: vec![ProgramCost {
            name: "enter_pread64".to_owned(),
            runs: 80,
            run_time_ns: 23_000,
        }],
    });
    document.caveats = vec![TraceCaveat {
        kind: TraceCaveatKind::LostEvents,
        statement: statement!("events-lost", events = 2u64),
    }];
    document
}
