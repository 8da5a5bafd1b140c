//! Processes whose calls are traced.

use crate::support::{Everything, can_trace, file_of, files, folder, has, python, wait};
use dyno_record::io_trace::event::Operation;
use dyno_trace::{Settings, TraceError, Tracer};
use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn children_and_threads_are_followed() {
    if !can_trace("children_and_threads_are_followed") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 1 << 20);
    let script = r#"
import os, subprocess, sys, threading
path = sys.argv[1] + "/data"
fd = os.open(path, os.O_RDONLY)
threads = [threading.Thread(target=os.pread, args=(fd, 100, 1000 * i)) for i in range(1, 5)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
if os.fork() == 0:
    os.pread(fd, 100, 5000)
    os.execvp("dd", ["dd", "if=" + path, "of=/dev/null", "bs=100", "skip=60", "count=1", "status=none"])
os.wait()
subprocess.run(["sh", "-c", "dd if=%s bs=100 skip=70 count=1 status=none | cat > /dev/null" % path])
"#;
    let everything = python(files("data"), folder.path(), script);
    let reads = everything.calls_on(&path, Operation::Read);
    let mut offsets: Vec<i64> = reads.iter().map(|call| call.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [1000, 2000, 3000, 4000, 5000, 6000, 7000]);
    let of_threads: Vec<_> = reads.iter().filter(|call| call.offset <= 4000).collect();
    let processes: HashSet<u32> = of_threads.iter().map(|call| call.process).collect();
    let threads: HashSet<u32> = of_threads.iter().map(|call| call.thread).collect();
    assert_eq!((processes.len(), threads.len()), (1, 4));
    let processes: HashSet<u32> = reads.iter().map(|call| call.process).collect();
    assert_eq!(processes.len(), 3);
}

#[test]
fn running_process_is_followed_with_its_children() {
    if !can_trace("running_process_is_followed_with_its_children") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 10_000);
    let script = format!("read _; cat {} > /dev/null; read _", path.display());
    let mut child = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut settings = files("data");
    settings.filter.processes = vec![child.id()];
    let mut tracer = Tracer::start(settings).unwrap();
    // The same file, read by a process that is not traced.
    std::fs::read(&path).unwrap();
    child.stdin.take().unwrap().write_all(b"\n\n").unwrap();
    let mut everything = Everything::default();
    wait(&mut tracer, &mut everything, child);
    let known = tracer.files();
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].short_name(), "data");
    everything.traced = tracer.stop(&mut everything).unwrap();
    let reads = everything.calls_on(&path, Operation::Read);
    let bytes: u64 = reads.iter().map(dyno_record::io_trace::event::Call::bytes).sum();
    assert_eq!(bytes, 10_000);
    assert!(reads.iter().all(|call| call.process != std::process::id()));
}

#[test]
fn sqlite_is_traced_as_it_is() {
    let test = "sqlite_is_traced_as_it_is";
    if !can_trace(test) || !has("python3", test) {
        return;
    }
    let folder = folder();
    let script = r#"
import sqlite3, sys
base = sqlite3.connect(sys.argv[1] + "/base.db")
base.execute("pragma cache_size = 10")
base.execute("create table t (id integer primary key, text text)")
for block in range(5):
    base.executemany("insert into t values (?, ?)", [(block * 1000 + i, "x" * 500) for i in range(1000)])
    base.commit()
assert base.execute("select count(*) from t where text like '%y%'").fetchone() == (0,)
"#;
    let everything = python(files("base.db*"), folder.path(), script);
    let path = folder.path().join("base.db");
    let reads = everything.calls_on(&path, Operation::Read);
    let pages: HashSet<i64> =
        reads.iter().filter(|call| call.requested == 4096).map(|call| call.offset).collect();
    let (_, file) = everything.file(&path);
    let size = file.bytes.unwrap();
    // The scan reads every page; a few are in SQLite's small cache.
    assert!(pages.iter().all(|offset| offset % 4096 == 0));
    assert!(pages.len() as u64 >= size / 4096 - 10, "{} of {size} bytes", pages.len());
    assert!(everything.calls_on(&path, Operation::Sync).len() >= 5);
    let (_, journal) = everything.file(&folder.path().join("base.db-journal"));
    assert!(journal.deleted);
}

#[test]
fn a_process_that_does_not_exist_is_refused() {
    if !can_trace("a_process_that_does_not_exist_is_refused") {
        return;
    }
    let mut settings = Settings::default();
    settings.filter.processes = vec![u32::MAX];
    let refusal = Tracer::start(settings).unwrap_err();
    assert_eq!(refusal, TraceError::NoProcess { process: u32::MAX });
}

#[test]
fn a_command_that_cannot_be_started_is_named() {
    if !can_trace("a_command_that_cannot_be_started_is_named") {
        return;
    }
    let mut tracer = Tracer::start(files("data")).unwrap();
    let refusal = tracer.spawn(&mut Command::new("/no/such/program")).unwrap_err();
    let message = refusal.to_string();
    assert!(message.starts_with("cannot start `/no/such/program`"), "{message}");
}
