//! Page faults of mapped files.

use crate::support::{Kept, can_trace, file_of, files, folder, python, python_in_steps};
use dyno_record::io_trace::document::TraceCaveatKind;
use dyno_record::io_trace::event::Operation;

#[test]
fn missing_pages_of_a_mapped_file_have_their_latency() {
    if !can_trace("missing_pages_of_a_mapped_file_have_their_latency") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 4 << 20);
    let script = r#"
import mmap, os, sys
fd = os.open(sys.argv[1] + "/data", os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
area = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
area.madvise(mmap.MADV_RANDOM)
for page in [7, 500, 3, 900]:
    assert area[page * 4096] == 7
"#;
    let everything = python(files("data"), folder.path(), script);
    let faults = everything.calls_on(&path, Operation::Fault);
    let pages: Vec<i64> = faults.iter().map(|call| call.offset / 4096).collect();
    assert_eq!(pages, [7, 500, 3, 900]);
    assert!(faults.iter().all(|call| call.latency_ns > 1000), "{faults:#?}");
    assert!(faults.iter().all(|call| call.requested == 4096));
}

#[test]
fn fault_on_a_page_in_memory_has_an_unknown_latency() {
    if !can_trace("fault_on_a_page_in_memory_has_an_unknown_latency") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 1 << 20);
    // Writing to a private mapping does not map pages around; its file is in memory.
    let _kept = Kept::pages(&path, &[5, 50]);
    let script = r#"
import mmap, os, sys
fd = os.open(sys.argv[1] + "/data", os.O_RDONLY)
area = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
for page in [5, 50]:
    area[page * 4096] = 1
"#;
    let everything = python(files("data"), folder.path(), script);
    let faults = everything.calls_on(&path, Operation::Fault);
    let pages: Vec<i64> = faults.iter().map(|call| call.offset / 4096).collect();
    assert_eq!(pages, [5, 50]);
    assert!(faults.iter().all(|call| call.latency_ns == 0));
    let caveats = &everything.traced.caveats;
    let reported = caveats.iter().find(|caveat| caveat.kind == TraceCaveatKind::Other).unwrap();
    assert!(reported.statement.number("faults") == Some(2.0), "{}", reported.statement);
}

#[test]
fn fault_without_an_end_does_not_get_a_foreign_one() {
    if !can_trace("fault_without_an_end_does_not_get_a_foreign_one") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 1 << 20);
    file_of(folder.path(), "other", 1 << 20);
    let _kept = Kept::pages(&path, &[5]);
    // The first fault finds its page in memory; the second waits for the device, on a file outside the filter.
    let script = r#"
import mmap, os, sys
data = os.open(sys.argv[1] + "/data", os.O_RDONLY)
other = os.open(sys.argv[1] + "/other", os.O_RDONLY)
os.fsync(other)
os.posix_fadvise(other, 0, 0, os.POSIX_FADV_DONTNEED)
private = mmap.mmap(data, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
cold = mmap.mmap(other, 0, prot=mmap.PROT_READ)
cold.madvise(mmap.MADV_RANDOM)
assert cold[4096] == 7
print(flush=True)
input()
private[5 * 4096] = 1
assert cold[100 * 4096] == 7
"#;
    let everything = python_in_steps(files("data"), folder.path(), script, |_| ());
    let faults = everything.calls_on(&path, Operation::Fault);
    let found: Vec<_> = faults.iter().map(|call| (call.offset / 4096, call.latency_ns)).collect();
    assert_eq!(found, [(5, 0)]);
}
