//! Identity of the file of a call, whatever happens to its name.

use crate::support::{Everything, can_trace, file_of, files, folder, python, python_in_steps};
use dyno_record::io_trace::document::TraceMode;
use dyno_record::io_trace::event::Operation;
use dyno_trace::{Settings, Tracer};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const RENAMED_AND_DELETED: &str = r#"
import os, sys
os.chdir(sys.argv[1])
fd = os.open("one", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 10)
os.rename("one", "two")
os.write(fd, b"x" * 10)
os.mkdir("below")
folder = os.open("below", os.O_RDONLY)
os.rename("two", "three", dst_dir_fd=folder)
os.unlink("three", dir_fd=folder)
os.write(fd, b"x" * 10)
os.close(fd)
"#;

#[test]
fn a_file_keeps_its_names_through_renaming_and_deleting() {
    if !can_trace("a_file_keeps_its_names_through_renaming_and_deleting") {
        return;
    }
    let folder = folder();
    let everything = python(files("one"), folder.path(), RENAMED_AND_DELETED);
    assert_renamed_and_deleted(&everything, folder.path());
}

#[test]
fn names_are_known_after_their_process_ended() {
    if !can_trace("names_are_known_after_their_process_ended") {
        return;
    }
    let folder = folder();
    let mut everything = Everything::default();
    let mut tracer = Tracer::start(files("one")).unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", RENAMED_AND_DELETED]).arg(folder.path());
    assert!(tracer.spawn(&mut command).unwrap().wait().unwrap().success());
    everything.traced = tracer.stop(&mut everything).unwrap();
    assert_renamed_and_deleted(&everything, folder.path());
}

fn assert_renamed_and_deleted(everything: &Everything, folder: &Path) {
    let root = folder.canonicalize().unwrap();
    let (_, file) = everything.file(&folder.join("one"));
    let names = ["one", "two", "below/three"].map(|name| root.join(name).display().to_string());
    assert_eq!(file.names, names);
    assert_eq!(file.name, names[2]);
    assert!(file.deleted);
    let writes = everything.calls_on(&folder.join("one"), Operation::Write);
    assert_eq!(writes.len(), 3);
}

#[test]
fn files_that_reused_an_inode_are_distinct() {
    if !can_trace("files_that_reused_an_inode_are_distinct") {
        return;
    }
    let folder = folder();
    // The file system reuses the number soon, but not predictably, and another program may get it: then the script
    // makes another pair.
    let script = r#"
import os, sys
os.chdir(sys.argv[1])
for pair in range(100):
    fd = os.open("first%d" % pair, os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 11)
    inode = os.fstat(fd).st_ino
    os.close(fd)
    os.unlink("first%d" % pair)
    for attempt in range(100):
        fd = os.open("second%d" % pair, os.O_RDWR | os.O_CREAT)
        if os.fstat(fd).st_ino == inode:
            os.write(fd, b"y" * 22)
            sys.exit(0)
        os.close(fd)
        os.rename("second%d" % pair, "other%d-%d" % (pair, attempt))
sys.exit(1)
"#;
    let everything = python(files("*"), folder.path(), script);
    let pair = (0..100).find(|pair| folder.path().join(format!("second{pair}")).exists());
    let names = ["first", "second"].map(|name| format!("{name}{}", pair.unwrap()));
    let (first, one) = everything.file(&folder.path().join(&names[0]));
    let (second, two) = everything.file(&folder.path().join(&names[1]));
    assert_ne!(first, second);
    assert_eq!(one.inode, two.inode);
    assert_ne!(one.generation, two.generation);
    assert_eq!((one.deleted, two.deleted), (true, false));
    let sizes = |name: &str| {
        let calls = everything.calls_on(&folder.path().join(name), Operation::Write);
        calls.iter().map(|call| call.returned).collect::<Vec<_>>()
    };
    assert_eq!((sizes(&names[0]), sizes(&names[1])), (vec![11], vec![22]));
}

#[test]
fn files_that_match_no_pattern_are_left_out() {
    if !can_trace("files_that_match_no_pattern_are_left_out") {
        return;
    }
    let folder = folder();
    let script = r#"
import os, sys
os.chdir(sys.argv[1])
for name in ["a.wt", "b.log", "c.wt"]:
    fd = os.open(name, os.O_RDWR | os.O_CREAT)
    for i in range(100):
        os.write(fd, b"x")
"#;
    let everything = python(files("*.wt"), folder.path(), script);
    let mut names: Vec<&str> =
        everything.traced.files.iter().map(|file| file.short_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a.wt", "c.wt"]);
    assert_eq!(everything.traced.calls, 200);
    assert_eq!(everything.traced.lost_calls, 0);
}

#[test]
fn files_outside_the_filter_are_not_reported_again() {
    if !can_trace("files_outside_the_filter_are_not_reported_again") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "other", 4096);
    let mut settings = files("no-such-file");
    settings.ring_bytes = 1 << 20;
    let mut tracer = Tracer::start(settings).unwrap();
    let mut everything = Everything::default();
    // After the first line the verdict exists; the following calls would fill the buffer many times.
    let script = format!(
        "import os\nfd = os.open({path:?}, 0)\nos.pread(fd, 1, 0)\nprint(flush=True)\ninput()\n\
         for i in range(40000): os.pread(fd, 1, 0)"
    );
    let mut command = Command::new("python3");
    command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = tracer.spawn(&mut command).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    tracer.poll(&mut everything, Duration::from_millis(1)).unwrap();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
    let traced = tracer.stop(&mut everything).unwrap();
    assert_eq!((traced.calls, traced.lost_calls), (0, 0));
    assert!(traced.files.is_empty());
}

#[test]
fn kernel_views_are_not_files() {
    if !can_trace("kernel_views_are_not_files") {
        return;
    }
    let folder = folder();
    let script = "open('/proc/self/stat').read(); open('/sys/kernel/uevent_seqnum').read()";
    let everything = python(Settings::default(), folder.path(), script);
    let files = &everything.traced.files;
    let views =
        files.iter().filter(|file| file.name.starts_with("/proc") || file.name.starts_with("/sys"));
    assert_eq!(views.count(), 0);
    assert!(!files.is_empty(), "python reads files of its own");
    assert!(files.iter().all(|file| file.name.starts_with('/')));
}

const RENAMED: &str = r#"
import os, sys
os.chdir(sys.argv[1])
def stop():
    print(flush=True)
    input()
fd = os.open("a.tmp", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x")
stop()
os.write(fd, b"x")
if os.path.exists("rename-yourself"):
    os.rename("a.tmp", "a.wt")
stop()
for i in range(100):
    os.write(fd, b"y" * 10)
"#;

#[test]
fn file_renamed_into_the_pattern_is_traced_from_then_on() {
    if !can_trace("file_renamed_into_the_pattern_is_traced_from_then_on") {
        return;
    }
    for by_itself in [true, false] {
        let folder = folder();
        if by_itself {
            file_of(folder.path(), "rename-yourself", 0);
        }
        let (from, to) = (folder.path().join("a.tmp"), folder.path().join("a.wt"));
        let everything = python_in_steps(files("*.wt"), folder.path(), RENAMED, |stop| {
            // The renaming process is not traced; only the file shows the new name.
            if stop == 1 && !by_itself {
                std::fs::rename(&from, &to).unwrap();
            }
        });
        let writes = everything.calls_on(&to, Operation::Write);
        let sizes: Vec<i64> = writes.iter().map(|call| call.returned).collect();
        assert_eq!(sizes, vec![10; 100], "by itself: {by_itself}");
        let (_, file) = everything.file(&to);
        assert_eq!(file.names.len(), 2, "{file:?}");
    }
}

#[test]
fn alternating_names_of_a_file_do_not_fill_the_buffer() {
    if !can_trace("alternating_names_of_a_file_do_not_fill_the_buffer") {
        return;
    }
    let folder = folder();
    let script = r#"
import os, sys
os.chdir(sys.argv[1])
first = os.open("a.tmp", os.O_RDWR | os.O_CREAT)
os.link("a.tmp", "b.tmp")
second = os.open("b.tmp", os.O_RDWR)
for i in range(5000):
    os.pwrite(first, b"x", 0)
    os.pwrite(second, b"x", 0)
"#;
    let mut settings = files("*.wt");
    settings.ring_bytes = 1 << 20;
    let everything = python(settings, folder.path(), script);
    assert!(everything.traced.files.is_empty());
}

#[test]
fn totals_of_omitted_or_deleted_files_leave_room_for_others() {
    if !can_trace("totals_of_omitted_or_deleted_files_leave_room_for_others") {
        return;
    }
    // More files than the table of totals can hold.
    let script = r#"
import os, sys
os.chdir(sys.argv[1])
for i in range(4000):
    if i % 400 == 0:
        print(flush=True)
        input()
    fd = os.open("%d.tmp" % i, os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 10)
    if i % 2 or sys.argv[1].endswith("deleted"):
        os.unlink("%d.tmp" % i)
        os.write(fd, b"x" * 10)
    os.close(fd)
fd = os.open("last.wt", os.O_RDWR | os.O_CREAT)
os.write(fd, b"x" * 100)
"#;
    for (name, patterns, calls, bytes) in
        [("left-out", "*.wt", 1, 100), ("deleted", "*", 8001, 80_100)]
    {
        let folder = folder();
        let inner = folder.path().join(name);
        std::fs::create_dir(&inner).unwrap();
        let mut settings = files(format!("**/{name}/{patterns}"));
        settings.mode = TraceMode::Aggregated;
        settings.block = false;
        let everything = python_in_steps(settings, &inner, script, |_| ());
        let totals = &everything.traced.totals;
        assert_eq!(totals.iter().map(|total| total.calls).sum::<u64>(), calls, "{name}");
        assert_eq!(totals.iter().map(|total| total.bytes).sum::<u64>(), bytes, "{name}");
        let sliced = totals.iter().flat_map(|total| &total.slices);
        assert_eq!(sliced.map(|slice| slice.calls).sum::<u64>(), calls, "{name}");
    }
}
