//! Shared helpers of the end-to-end tests: the program in a folder of its own, the responder as a process, and checks of the
//! files they leave.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

pub(crate) mod kpi;
pub(crate) mod lab;
pub(crate) mod recorded;
pub(crate) mod runs;
pub(crate) mod scrape;
pub(crate) mod secrets;

use dyno_load::connect::{Connector, Control};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest time that any step may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The program with its own working folder and state folder.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_dyno")), arguments)
    }

    /// The same command with a copy of the program.
    pub(crate) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("DYNO_STATE_DIR", self.path("state"))
            .env("TMPDIR", self.folder.path())
            // Servers and programs installed on this machine must not influence the tests.
            .env("DYNO_DATA_DIR", self.path("installed"))
            .env("DYNO_NO_INSTALL", "1")
            .env_remove("DYNO_MONGOD")
            .env_remove("DYNO_URI")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        if let Ok(program) = dyno_testkit::embedded_program() {
            command.env("DYNO_EMBEDDED_SERVER", program);
        }
        command
    }

    /// Runs the program to its end.
    pub(crate) fn dyno(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// Starts the program and leaves it running.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Names of the entries in the working folder.
    pub(crate) fn entries(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

/// A bench on a machine that can trace; `None` with a printed reason otherwise. With `DYNO_REQUIRE_TRACE` a machine that cannot
/// trace is a failure.
pub(crate) fn tracing() -> Option<Bench> {
    let bench = Bench::new();
    let doctor = bench.dyno(&["doctor", "--format", "json"]);
    let tracing = doctor.json()["tracing"].clone();
    let reason = tracing["reason"].as_str().unwrap_or("").to_owned();
    if tracing["possible"] == true {
        return Some(bench);
    }
    dyno_testkit::skip_tracing(&format!("this machine cannot trace: {reason}"));
    None
}

/// Built-in plans with YCSB's documents, whose number `--records` sets.
pub(crate) fn ycsb_plans() -> impl Iterator<Item = &'static str> {
    let is_own = |name: &str| dyno_plan::builtin::find(name).unwrap().is_own();
    dyno_plan::builtin::names().filter(move |name| !is_own(name))
}

/// A connection to a server for set-up commands.
pub(crate) fn control(uri: &str) -> Control {
    let (target, credentials) = dyno_plan::uri::parse(uri).unwrap();
    Connector::new(&target, credentials).unwrap().control().unwrap()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not in:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.stdout))
    }
}

/// The responder as a separate process, which ends when this value is dropped.
pub(crate) struct Responder {
    child: Child,
    pub(crate) address: String,
}

impl Responder {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Responder::start_from(Path::new(env!("CARGO_BIN_EXE_dyno")), arguments)
    }

    /// Starts the responder from another path, whose last part becomes the process name.
    pub(crate) fn start_from(program: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .arg("responder")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        Responder { child, address }
    }

    /// A responder that looks like a collection with the documents of [`READS`].
    pub(crate) fn with_documents(arguments: &[&str]) -> Self {
        Responder::start(&[&["--documents", "1000"], arguments].concat())
    }

    pub(crate) fn uri(&self) -> String {
        format!("mongodb://{}/", self.address)
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Short reads from few documents.
pub(crate) const READS: [&str; 8] =
    ["run", "read", "--records", "1000", "-p", "insertorder=ordered", "--warmup", "0s"];

/// Arguments of a run of reads against a responder.
pub(crate) fn reads<'a>(uri: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&READS[..], &["--uri", uri], more].concat()
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a run has recorded this many windows. Panics with the output of a run that ends earlier.
#[track_caller]
pub(crate) fn wait_for_windows(child: &mut Child, run: &Path, windows: usize) {
    let path = run.join("series/intervals.csv");
    wait_for("recorded windows", || {
        let is_there =
            || std::fs::read_to_string(&path).is_ok_and(|text| text.lines().count() > windows);
        let status = child.try_wait().unwrap();
        if let Some(status) = status.filter(|_| !is_there()) {
            let mut said = String::new();
            if let Some(mut stderr) = child.stderr.take() {
                stderr.read_to_string(&mut said).unwrap();
            }
            panic!("the run ended before it recorded {windows} windows: {status}\n{said}");
        }
        is_there()
    });
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Signals the whole process group that the child leads, as a terminal does.
pub(crate) fn signal_group(child: &Child, name: &str) {
    let group = format!("-{}", child.id());
    let status = Command::new("kill").args([&format!("-{name}"), "--", &group]).status();
    assert!(status.unwrap().success());
}

/// Processes with this text in their command line.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if process != std::process::id() && String::from_utf8_lossy(&line).contains(text) {
            found.push(process);
        }
    }
    found
}

/// The committed schema of run documents.
pub(crate) fn run_schema() -> jsonschema::Validator {
    let path = dyno_testkit::project_dir().join("crates/record/schema/run.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

/// Checks that a page shows the CPU model and the kernel of its record's machine.
#[track_caller]
pub(crate) fn assert_machine_is_reported(environment: &Value, page: &str) {
    let fact = |name: &str| environment[name].as_str().unwrap_or_else(|| panic!("{environment}"));
    // Formats escape some characters differently, and lines break between words.
    let words = fact("cpu_model").split(|character: char| !character.is_alphanumeric());
    let longest = words.max_by_key(|word| word.len()).unwrap();
    let release = fact("kernel").split_whitespace().last().unwrap();
    for word in [longest, release] {
        assert!(page.contains(word), "{word}: {page}");
    }
}
