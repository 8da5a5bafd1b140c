//! Calls of simple programs: each kind of system call, followed through threads, children and names.

use crate::support::{can_trace, files, folder, python};
use dyno_record::io_trace::event::{Call, Operation};
use dyno_trace::targets::HookMethod;
use dyno_trace::{TraceError, Tracer};

fn offsets(calls: &[Call]) -> Vec<(i64, u64, i64)> {
    calls.iter().map(|call| (call.offset, call.requested, call.returned)).collect()
}

const EVERY_CALL: &str = r#"
import os, sys
path = sys.argv[1] + "/data"
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 1000)
os.write(fd, b"y" * 24)
os.pwrite(fd, b"z" * 10, 5000)
os.pwritev(fd, [b"a" * 7, b"b" * 8], 8192)
os.writev(fd, [b"c" * 3, b"d" * 4])
os.fsync(fd)
os.fdatasync(fd)
os.lseek(fd, 100, 0)
os.read(fd, 50)
os.read(fd, 60)
os.pread(fd, 20, 4000)
os.preadv(fd, [bytearray(11), bytearray(12)], 300)
os.readv(fd, [bytearray(5), bytearray(6)])
os.pread(fd, 4096, 8200)
os.pread(fd, 10, 1 << 40)
os.close(fd)
fd = os.open(path, os.O_WRONLY | os.O_APPEND)
os.write(fd, b"e" * 9)
os.pwrite(fd, b"f" * 9, 0)
"#;

/// Both system call methods, which work without kernel functions, and the best method.
fn methods() -> [Option<HookMethod>; 3] {
    [None, Some(HookMethod::SyscallPair), Some(HookMethod::SyscallPoints)]
}

#[test]
fn every_system_call_has_its_offset_and_sizes() {
    if !can_trace("every_system_call_has_its_offset_and_sizes") {
        return;
    }
    for method in methods() {
        let folder = folder();
        let mut settings = files("data");
        settings.method = method;
        let tracer = Tracer::start(settings.clone());
        if let Err(TraceError::NoTracefs { path }) = tracer {
            dyno_testkit::skip_tracing(&format!("{path} is not mounted"));
            continue;
        }
        drop(tracer);
        let everything = python(settings, folder.path(), EVERY_CALL);
        let path = folder.path().join("data");
        let writes = offsets(&everything.calls_on(&path, Operation::Write));
        let expected = [
            (0, 1000, 1000),
            (1000, 24, 24),
            (5000, 10, 10),
            (8192, 15, 15),
            (1024, 7, 7),
            (8207, 9, 9),
            (8216, 9, 9),
        ];
        assert_eq!(writes, expected, "{method:?}");
        let reads = offsets(&everything.calls_on(&path, Operation::Read));
        let expected = [
            (100, 50, 50),
            (150, 60, 60),
            (4000, 20, 20),
            (300, 23, 23),
            (210, 11, 11),
            (8200, 4096, 7),
            (1 << 40, 10, 0),
        ];
        assert_eq!(reads, expected, "{method:?}");
        let syncs = everything.calls_on(&path, Operation::Sync);
        assert_eq!(offsets(&syncs), [(-1, 0, 0), (-1, 0, 0)], "{method:?}");
        assert!(syncs[0].latency_ns > 0);
    }
}

#[test]
fn calls_that_fail_have_their_error() {
    if !can_trace("calls_that_fail_have_their_error") {
        return;
    }
    let folder = folder();
    let script = r#"
import os, sys
fd = os.open(sys.argv[1] + "/data", os.O_WRONLY | os.O_CREAT)
os.write(fd, b"x")
try:
    os.read(fd, 10)
except OSError:
    pass
"#;
    let everything = python(files("data"), folder.path(), script);
    let reads = everything.calls_on(&folder.path().join("data"), Operation::Read);
    assert_eq!(offsets(&reads)[0].2, -i64::from(libc::EBADF));
    let totals = &everything.traced.totals;
    let errors = totals.iter().find(|total| total.operation == Operation::Read).unwrap();
    assert_eq!((errors.calls, errors.errors, errors.bytes), (1, 1, 0));
}

#[test]
fn only_requested_operations_and_sizes_are_traced() {
    if !can_trace("only_requested_operations_and_sizes_are_traced") {
        return;
    }
    let folder = folder();
    let mut settings = files("data");
    settings.filter.operations = vec![Operation::Write, Operation::Sync];
    settings.filter.smallest_bytes = 10;
    let everything = python(settings, folder.path(), EVERY_CALL);
    let path = folder.path().join("data");
    assert!(everything.calls_on(&path, Operation::Read).is_empty());
    let sizes: Vec<u64> =
        everything.calls_on(&path, Operation::Write).iter().map(|call| call.requested).collect();
    assert_eq!(sizes, [1000, 24, 10, 15]);
    assert_eq!(everything.calls_on(&path, Operation::Sync).len(), 2);
}

#[test]
fn totals_are_made_of_the_same_calls_in_both_modes() {
    use dyno_record::io_trace::document::TraceMode;
    if !can_trace("totals_are_made_of_the_same_calls_in_both_modes") {
        return;
    }
    let counts = |mode| {
        let folder = folder();
        let mut settings = files("data");
        settings.mode = mode;
        let everything = python(settings, folder.path(), EVERY_CALL);
        let totals = everything.traced.totals.iter().map(|total| {
            let forward: Vec<_> = total.seek_forward_bytes.buckets().collect();
            let backward: Vec<_> = total.seek_backward_bytes.buckets().collect();
            let counts = (total.calls, total.bytes, total.errors, total.sequential_calls);
            (total.operation, counts, forward, backward)
        });
        let mut totals: Vec<_> = totals.collect();
        totals.sort_by_key(|total| total.0);
        (everything.traced.calls, totals)
    };
    let events = counts(TraceMode::Events);
    assert_eq!(events.0, 16);
    assert_eq!(counts(TraceMode::Aggregated), events);
}

#[test]
fn probe_cost_is_reported_when_requested() {
    if !can_trace("probe_cost_is_reported_when_requested") {
        return;
    }
    let folder = folder();
    let mut settings = files("data");
    settings.measure_cost = true;
    let everything = python(settings, folder.path(), EVERY_CALL);
    let cost = everything.traced.cost.unwrap();
    let programs: Vec<_> = cost.programs.iter().filter(|program| program.runs >= 16).collect();
    assert!(programs.len() >= 2, "{cost:?}");
    assert!(programs.iter().all(|program| program.run_time_ns > 0));
    assert!(!everything.traced.probes.is_empty());
}

/// A handmade io_uring ring, with functions to submit an entry and to wait for results.
const RING: &str = r#"
import ctypes, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
params = bytearray(120)
ring = libc.syscall(425, 8, (ctypes.c_char * 120).from_buffer(params))
assert ring >= 0, ctypes.get_errno()
entries, results = struct.unpack_from("II", params, 0)
tail_at, mask_at = struct.unpack_from("II", params, 44)
array_at, = struct.unpack_from("I", params, 64)
head_at, done_at = struct.unpack_from("II", params, 80)
end_at, = struct.unpack_from("I", params, 100)
rings = mmap.mmap(ring, max(array_at + entries * 4, end_at + results * 16))
slots = mmap.mmap(ring, entries * 64, offset=0x10000000)
buffer = ctypes.create_string_buffer(4096)
def submit(opcode, flags, fd, length, wait):
    tail, = struct.unpack_from("I", rings, tail_at)
    mask, = struct.unpack_from("I", rings, mask_at)
    place = tail & mask
    slots[place * 64:place * 64 + 64] = struct.pack(
        "<BBHiQQIIQHHIQQ", opcode, flags, 0, fd, 0, ctypes.addressof(buffer) if opcode == 22 else 0, length, 0, 0, 0, 0, 0, 0, 0)
    struct.pack_into("I", rings, array_at + place * 4, place)
    struct.pack_into("I", rings, tail_at, tail + 1)
    assert libc.syscall(426, ring, 1, wait, 1, None, 0) == 1
    # All results are taken.
    rings[head_at:head_at + 4] = rings[done_at:done_at + 4]
"#;

#[test]
fn request_without_a_result_does_not_get_a_foreign_one() {
    if !can_trace("request_without_a_result_does_not_get_a_foreign_one") {
        return;
    }
    let folder = folder();
    let path = crate::support::file_of(folder.path(), "data", 1 << 16);
    // The advices, which are not reads, reuse the memory of the first read.
    let script = format!(
        r#"{RING}
fd = os.open(sys.argv[1] + "/data", os.O_RDONLY)
READ, ADVICE, NO_RESULT = 22, 24, 1 << 6
submit(READ, NO_RESULT, fd, 4096, 0)
for i in range(32):
    submit(ADVICE, 0, fd, 0, 1)
submit(READ, 0, fd, 100, 1)
"#
    );
    let everything = python(files("data"), folder.path(), &script);
    let reads = everything.calls_on(&path, Operation::Read);
    assert_eq!(offsets(&reads), [(0, 100, 100)]);
}
