//! Requests of the block layer.

use crate::support::{
    Everything, KEEP, can_trace, file_of, files, folder, has, python, skip, trace,
};
use dyno_record::io_trace::event::{BlockOperation, Call, Operation};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn only_reads_past_the_page_cache_reach_the_device() {
    if !can_trace("only_reads_past_the_page_cache_reach_the_device") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 8 << 20);
    let script = r#"
import os, sys
fd = os.open(sys.argv[1] + "/data", os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
places = [(i * 37 % 2048) * 4096 for i in range(50)]
for place in places:
    os.pread(fd, 4096, place)
for place in places:
    keep(fd, place)
for place in places:
    os.pread(fd, 4096, place)
"#;
    let everything = python(files("data"), folder.path(), &(KEEP.to_owned() + script));
    let reads = everything.calls_on(&path, Operation::Read);
    assert_eq!(reads.len(), 100);
    let process = reads[0].process;
    // Within calls only: between them, the program itself may be paged in again.
    let requests = |calls: &[Call]| {
        let within = everything.block.iter().filter(|request| {
            request.operation == BlockOperation::Read
                && request.process == process
                && calls.iter().any(|call| {
                    let end = call.start_ns + call.latency_ns as i64;
                    (call.start_ns..end).contains(&request.issue_ns)
                })
        });
        within.count()
    };
    assert_all_but_unreported(&everything, requests(&reads[..50]), 50);
    assert_eq!(requests(&reads[50..]), 0);
    let first = everything.block.iter().find(|request| request.process == process).unwrap();
    assert!(first.device_ns > 0 && first.bytes > 0);
    let device = &everything.traced.devices[first.device as usize];
    assert!(!device.name.is_empty(), "{device:?}");
}

/// In some sandboxes the kernel does not report the end of requests that is an interrupt of the sandbox's own threads.
/// The missing requests are counted and are at most one or two of many.
#[track_caller]
fn assert_all_but_unreported(everything: &Everything, seen: usize, made: usize) {
    let missing = made as u64 - seen as u64;
    let counted = everything.traced.unended_requests;
    assert!(
        missing <= counted.min(2),
        "{missing} missing, {counted} counted: {:#?} {:#?}",
        everything.calls,
        everything.block
    );
}

#[test]
fn requests_for_files_outside_the_filter_are_not_recorded() {
    if !can_trace("requests_for_files_outside_the_filter_are_not_recorded") {
        return;
    }
    let folder = folder();
    file_of(folder.path(), "left-out", 1 << 20);
    let script = r#"
import mmap, os, sys
fd = os.open(sys.argv[1] + "/left-out", os.O_RDONLY | os.O_DIRECT)
os.fsync(fd)
block = mmap.mmap(-1, 4096)
for i in range(50):
    os.preadv(fd, [block], i * 4096)
"#;
    let everything = python(files("data"), folder.path(), script);
    assert!(everything.block.is_empty(), "{:?}", everything.block);
    assert!(everything.traced.devices.is_empty());
    assert_eq!(everything.traced.block_requests, 0);
}

/// A loop device over a file, removed on drop.
struct Loop {
    device: PathBuf,
}

impl Loop {
    fn over(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(file)
            .output()
            .ok()?;
        let device = PathBuf::from(String::from_utf8(made.stdout).ok()?.trim());
        made.status.success().then_some(Loop { device })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _done = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

/// A control group that limits reads per second on a device, removed on drop.
struct Slow {
    folder: PathBuf,
}

impl Slow {
    fn device(number: &str, reads_per_s: u32) -> Option<Slow> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number_of_test = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("dyno-trace-test-{}-{number_of_test}", std::process::id());
        let folder = Path::new("/sys/fs/cgroup/blkio").join(name);
        std::fs::create_dir(&folder).ok()?;
        let slow = Slow { folder };
        let limit = slow.folder.join("blkio.throttle.read_iops_device");
        std::fs::write(limit, format!("{number} {reads_per_s}")).ok()?;
        Some(slow)
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        let _done = std::fs::remove_dir(&self.folder);
    }
}

/// Disk of a folder, as `MAJOR:MINOR`.
fn disk_of(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(folder).ok()?.dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let link = Path::new(&link).canonicalize().ok()?;
    let disk = if link.join("partition").exists() { link.parent()?.to_owned() } else { link };
    Some(std::fs::read_to_string(disk.join("dev")).ok()?.trim().to_owned())
}

#[test]
fn device_time_separates_a_slow_device_from_a_slow_program() {
    let test = "device_time_separates_a_slow_device_from_a_slow_program";
    if !can_trace(test) || !has("losetup", test) {
        return;
    }
    let folder = folder();
    let image = file_of(folder.path(), "image", 16 << 20);
    Command::new("sync").arg(&image).status().unwrap();
    let slow = disk_of(folder.path()).and_then(|disk| Slow::device(&disk, 5));
    let (Some(slow), Some(device)) = (slow, Loop::over(&image)) else {
        skip(test, "no loop device, or no control group that limits one");
        return;
    };
    // The wait for the limited disk is device time of the loop device above it: 200 ms per read, which is long compared
    // with CPU waits even on a busy machine.
    let script = r#"
import mmap, os, sys
open(sys.argv[2] + "/cgroup.procs", "w").write(str(os.getpid()))
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
block = mmap.mmap(-1, 4096)
for i in range(12):
    os.preadv(fd, [block], i * 65536)
"#;
    let settings = files(device.device.display().to_string());
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(&device.device).arg(&slow.folder);
    let everything = trace(settings, &mut command);
    let reads = everything.calls_on(&device.device, Operation::Read);
    assert_eq!(reads.len(), 12);
    let name = device.device.file_name().unwrap().to_string_lossy().into_owned();
    let devices = &everything.traced.devices;
    let place = devices.iter().position(|device| device.name == name).unwrap();
    let requests: Vec<_> = everything
        .block
        .iter()
        .filter(|request| request.device as usize == place)
        .filter(|request| request.process == reads[0].process)
        .collect();
    assert_all_but_unreported(&everything, requests.len(), 12);
    let device_ns: u64 = requests.iter().map(|request| request.device_ns).sum();
    let call_ns: u64 = reads.iter().map(|call| call.latency_ns).sum();
    let mean_ms = device_ns as f64 / requests.len() as f64 / 1e6;
    println!("{mean_ms} ms per request; {} ms in calls", call_ns / 1_000_000);
    // The first few may pass at once.
    assert!(mean_ms > 120.0, "{mean_ms} ms");
    assert!(device_ns as f64 > 0.7 * call_ns as f64, "{call_ns} ns");
}

#[test]
fn device_requests_of_a_read_are_known_when_handed_on() {
    let test = "device_requests_of_a_read_are_known_when_handed_on";
    if !can_trace(test) {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 8 << 20);
    let Some(slow) = disk_of(folder.path()).and_then(|disk| Slow::device(&disk, 20)) else {
        skip(test, "no control group that limits a device");
        return;
    };
    // Under the limit, a kernel thread issues most of the requests.
    let script = format!(
        r#"
import mmap, os, sys
fd = os.open(sys.argv[1] + "/data", os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
open("{}/cgroup.procs", "w").write(str(os.getpid()))
direct = os.open(sys.argv[1] + "/data", os.O_RDONLY | os.O_DIRECT)
block = mmap.mmap(-1, 4096)
for i in range(30):
    os.preadv(direct, [block], i * 65536)
for i in range(30, 60):
    os.pread(fd, 4096, i * 65536)
for i in range(30, 60):
    keep(fd, i * 65536)
for i in range(30, 60):
    os.pread(fd, 4096, i * 65536)
"#,
        slow.folder.display()
    );
    let everything = python(files("data"), folder.path(), &(KEEP.to_owned() + &script));
    let reads = everything.calls_on(&path, Operation::Read);
    let fetched: Vec<i64> = reads.iter().map(|call| call.fetched).collect();
    assert_eq!(fetched, [vec![4096; 60], vec![0; 30]].concat());
    let process = reads[0].process;
    let handed_on = everything
        .block
        .iter()
        .filter(|request| request.operation == BlockOperation::Read && request.process != process);
    let handed_on = handed_on.count();
    assert!(handed_on >= 15, "only {handed_on} were handed on: the limit does not limit");
}
