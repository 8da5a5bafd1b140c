//! Helpers for the tracer tests.

use dyno_record::io_trace::document::FileEntry;
use dyno_record::io_trace::event::{BlockRequest, Call, Operation};
use dyno_trace::kernel::Kernel;
use dyno_trace::{LiveKernel, Settings, Sink, Traced, Tracer};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Whether tracing is possible here. If not, the test is skipped with a message, unless `DYNO_REQUIRE_TRACE` is set.
pub(crate) fn can_trace(test: &str) -> bool {
    let Err(refusal) = LiveKernel::new().admits() else {
        return true;
    };
    skip(test, &format!("this machine cannot trace: {refusal}"));
    false
}

/// Skips a test with a message, or fails if skipping is not allowed.
pub(crate) fn skip(test: &str, reason: &str) {
    dyno_testkit::skip_tracing(&format!("{reason} ({test})"));
}

/// Whether a program that a test needs is installed; otherwise skips the test.
pub(crate) fn has(program: &str, test: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        skip(test, &format!("`{program}` is not installed"));
    }
    found
}

/// A folder on a disk, not in memory.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Everything that a trace reported.
#[derive(Default)]
pub(crate) struct Everything {
    pub(crate) calls: Vec<Call>,
    pub(crate) block: Vec<BlockRequest>,
    pub(crate) traced: Traced,
}

impl Sink for Everything {
    fn calls(&mut self, calls: &[Call]) {
        self.calls.extend(calls);
    }

    fn block(&mut self, requests: &[BlockRequest]) {
        self.block.extend(requests);
    }
}

impl Everything {
    /// The file with this path, under any of its names.
    pub(crate) fn file(&self, path: &Path) -> (u32, &FileEntry) {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = path.to_string_lossy();
        let found =
            self.traced.files.iter().position(|file| {
                file.name == *text || file.names.iter().any(|name| *name == *text)
            });
        let place = found.unwrap_or_else(|| panic!("{text} is not in {:#?}", self.traced.files));
        (place as u32, &self.traced.files[place])
    }

    /// Calls of an operation on a file, in the order of their starts.
    pub(crate) fn calls_on(&self, path: &Path, operation: Operation) -> Vec<Call> {
        let (file, _) = self.file(path);
        let mut calls: Vec<Call> = self
            .calls
            .iter()
            .filter(|call| call.file == file && call.operation == operation)
            .copied()
            .collect();
        calls.sort_by_key(|call| call.start_ns);
        calls
    }
}

/// Waits for a child while tracing.
pub(crate) fn wait(tracer: &mut Tracer, sink: &mut Everything, mut child: Child) -> ExitStatus {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        tracer.poll(sink, Duration::from_millis(20)).unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("the traced command does not end");
        }
    }
}

/// Traces a command from start to end.
pub(crate) fn trace(settings: Settings, command: &mut Command) -> Everything {
    let mut sink = Everything::default();
    let mut tracer = Tracer::start(settings).unwrap_or_else(|error| panic!("{error}"));
    let child = tracer.spawn(command).unwrap();
    let status = wait(&mut tracer, &mut sink, child);
    sink.traced = tracer.stop(&mut sink).unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(sink.traced.lost_calls, 0);
    sink
}

/// Settings for files that match a pattern.
pub(crate) fn files(pattern: impl Into<String>) -> Settings {
    let mut settings = Settings::default();
    settings.filter.files = vec![pattern.into()];
    settings
}

/// Traces a Python script that gets a folder as its argument.
pub(crate) fn python(settings: Settings, folder: &Path, script: &str) -> Everything {
    trace(settings, Command::new("python3").arg("-c").arg(script).arg(folder))
}

/// For scripts: `keep(fd, at)` keeps a page of an open file in the page cache, from which the kernel may otherwise
/// evict it at any time.
pub(crate) const KEEP: &str = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def keep(fd, at):
    page = libc.mmap(None, 4096, 1, 1, fd, at)
    assert libc.mlock(page, 4096) == 0, os.strerror(ctypes.get_errno())
"#;

/// Keeps pages of a file in the page cache until it is dropped.
pub(crate) struct Kept {
    keeper: Child,
}

impl Kept {
    /// Returns when the pages are cached.
    pub(crate) fn pages(path: &Path, pages: &[u64]) -> Kept {
        let script = r#"
import sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for page in sys.argv[2:]:
    keep(fd, int(page) * 4096)
print(flush=True)
sys.stdin.read()
"#;
        let mut command = Command::new("python3");
        command.args(["-c", &(KEEP.to_owned() + script)]).arg(path);
        command.args(pages.iter().map(u64::to_string));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().unwrap();
        let mut line = String::new();
        let output = keeper.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "\n", "cannot keep the pages");
        Kept { keeper }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // The script ends at end of input.
        drop(self.keeper.stdin.take());
        let _ended = self.keeper.wait();
    }
}

/// Creates a file of the given size in a folder.
pub(crate) fn file_of(folder: &Path, name: &str, bytes: usize) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, vec![7; bytes]).unwrap();
    path
}

/// Traces a Python script in steps: at each stop it prints a line and reads one. At each stop, all events so far are
/// collected, and `between` is called with the number of the stop.
pub(crate) fn python_in_steps(
    settings: Settings,
    folder: &Path,
    script: &str,
    mut between: impl FnMut(usize),
) -> Everything {
    let mut everything = Everything::default();
    let mut tracer = Tracer::start(settings).unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new("python3");
    command.arg("-c").arg(script).arg(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = tracer.spawn(&mut command).unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    for (number, line) in output.lines().enumerate() {
        line.unwrap();
        tracer.poll(&mut everything, Duration::from_millis(1)).unwrap();
        between(number);
        input.write_all(b"\n").unwrap();
    }
    let status = wait(&mut tracer, &mut everything, child);
    everything.traced = tracer.stop(&mut everything).unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(everything.traced.lost_calls, 0);
    everything
}
