//! Losses are counted, and the reported possibilities are correct.

use crate::support::{Everything, can_trace, file_of, files, folder};
use dyno_record::io_trace::document::TraceCaveatKind;
use dyno_trace::targets::{HookMethod, HookTarget};
use dyno_trace::{LiveKernel, TraceError, Tracer, possibilities};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

#[test]
fn calls_that_find_the_buffer_full_are_counted() {
    if !can_trace("calls_that_find_the_buffer_full_are_counted") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 4096);
    let mut settings = files("data");
    settings.ring_bytes = 1 << 20;
    let mut tracer = Tracer::start(settings).unwrap();
    let script =
        format!("import os\nfd = os.open({path:?}, 0)\nfor i in range(50000): os.pread(fd, 10, i)");
    let mut child = tracer.spawn(Command::new("python3").args(["-c", &script])).unwrap();
    // The buffer is not emptied during this time.
    assert!(child.wait().unwrap().success());
    let mut everything = Everything::default();
    let traced = tracer.stop(&mut everything).unwrap();
    assert!(traced.lost_calls > 20_000, "{}", traced.lost_calls);
    // Files first seen when the buffer was already full are counted with each try.
    let seen = traced.calls + traced.lost_calls;
    assert!((50_000..50_010).contains(&seen), "{seen}");
    assert_eq!(traced.calls, everything.calls.len() as u64);
    let kinds: Vec<_> = traced.caveats.iter().map(|caveat| caveat.kind).collect();
    assert!(kinds.contains(&TraceCaveatKind::LostEvents), "{kinds:?}");
}

#[test]
fn possible_methods_work_and_the_others_are_refused() {
    if !can_trace("possible_methods_work_and_the_others_are_refused") {
        return;
    }
    let reported = possibilities(&LiveKernel::new());
    assert_eq!(reported.refusal, None);
    assert_eq!(reported.methods.len(), HookMethod::ALL.len());
    for (method, possible) in reported.methods {
        println!("{method:?}: {possible:?}");
        let mut settings = files("data");
        settings.method = Some(method);
        let started = Tracer::start(settings).map(drop);
        assert_eq!(started.is_ok(), possible.is_ok(), "{method:?}: {possible:?}, {started:?}");
        if let Err(refusal) = started {
            let expected =
                matches!(refusal, TraceError::NoHook { .. } | TraceError::NoTracefs { .. });
            assert!(expected, "{refusal}");
        }
    }
    let processes =
        reported.targets.iter().find(|each| each.target == HookTarget::Processes).unwrap();
    assert!(processes.hook.is_ok());
}

#[test]
fn pending_calls_leave_room_for_calls_on_traced_files() {
    if !can_trace("pending_calls_leave_room_for_calls_on_traced_files") {
        return;
    }
    let folder = folder();
    let script = r#"
import os, sys
os.chdir(sys.argv[1])
traced = os.open("a.wt", os.O_RDWR | os.O_CREAT)
other = os.open("b.tmp", os.O_RDWR | os.O_CREAT)
os.pwrite(traced, b"x", 0)
print(flush=True)
input()
for i in range(20000):
    os.pwrite(other, b"x", 0)
for i in range(1000):
    os.pwrite(traced, b"x", 0)
"#;
    let mut settings = files("*.wt");
    settings.ring_bytes = 1 << 20;
    let mut everything = Everything::default();
    let mut tracer = Tracer::start(settings).unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(folder.path());
    let mut script =
        Stopped::at_its_first_line(&mut command, |command| tracer.spawn(command).unwrap());
    // From here on the buffer is not read: calls on the second file fill their share of it.
    tracer.poll(&mut everything, Duration::ZERO).unwrap();
    script.go_on_to_the_end();
    let traced = tracer.stop(&mut everything).unwrap();
    assert_eq!((traced.calls, traced.lost_calls), (1001, 0));
}

#[test]
fn requests_of_other_processes_leave_room_for_traced_calls() {
    if !can_trace("requests_of_other_processes_leave_room_for_traced_calls") {
        return;
    }
    let folder = folder();
    let path = file_of(folder.path(), "data", 4096);
    let script = r#"
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
def stop():
    print(flush=True)
    input()
stop()
os.pread(fd, 1, 0)
stop()
for i in range(300):
    os.pread(fd, 1, 0)
"#;
    let mut settings = files("data");
    settings.ring_bytes = 1 << 16;
    let mut everything = Everything::default();
    let mut tracer = Tracer::start(settings).unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(&path);
    let mut script = Stopped::at_its_first_line(&mut command, |command| command.spawn().unwrap());
    tracer.follow(script.child.id()).unwrap();
    script.go_on_to_the_next_line();
    tracer.poll(&mut everything, Duration::ZERO).unwrap();
    read_from_the_device(&path, 1500);
    script.go_on_to_the_end();
    let traced = tracer.stop(&mut everything).unwrap();
    assert_eq!((traced.calls, traced.lost_calls), (301, 0));
    assert!(traced.lost_block_requests > 500, "{}", traced.lost_block_requests);
}

/// A program that runs in steps: at each stop it prints a line and reads one.
struct Stopped {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stopped {
    fn at_its_first_line(
        command: &mut Command,
        start: impl FnOnce(&mut Command) -> Child,
    ) -> Stopped {
        let mut child = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        Stopped { child, lines }
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    fn go_on_to_the_next_line(&mut self) {
        self.go_on();
        self.lines.next().unwrap().unwrap();
    }

    fn go_on_to_the_end(&mut self) {
        self.go_on();
        assert!(self.child.wait().unwrap().success());
    }
}

/// Reads the first block of a file `times` times, bypassing the page cache.
fn read_from_the_device(path: &Path, times: u32) {
    #[repr(align(4096))]
    struct Block([u8; 4096]);
    let mut block = Block([0; 4096]);
    let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
    for _ in 0..times {
        file.read_exact_at(&mut block.0, 0).unwrap();
    }
}
