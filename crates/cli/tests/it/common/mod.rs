//! What the end-to-end tests share: the program in a folder of its own, the responder as a process,
//! and looks at what they leave.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests outside of test functions"
)]

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

/// Longest time that anything may take here.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The program with a working folder and a state folder of its own.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench {
            folder: TempDir::new().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_dyno")), arguments)
    }

    /// A copy of the program.
    pub(crate) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("DYNO_STATE_DIR", self.path("state"))
            .env("TMPDIR", self.folder.path())
            // What this machine has installed must not decide what is tested.
            .env("DYNO_DATA_DIR", self.path("installed"))
            .env_remove("DYNO_MONGOD")
            .env_remove("DYNO_URI")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        if let Ok(program) = dyno_testkit::embedded_program() {
            command.env("DYNO_EMBEDDED_SERVER", program);
        }
        command
    }

    /// Runs to the end.
    pub(crate) fn dyno(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    /// Starts and goes on.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Names of what is in the working folder.
    pub(crate) fn entries(&self) -> Vec<String> {
        names(self.folder.path())
    }
}

/// A bench on a machine that can trace; `None`, with a line that says why, where it cannot. With
/// `DYNO_REQUIRE_TRACE` that is a failure.
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

/// A connection to a server for set-up commands.
pub(crate) fn control(uri: &str) -> Control {
    let (target, credentials) = dyno_plan::uri::parse(uri).unwrap();
    Connector::new(&target, credentials)
        .unwrap()
        .control()
        .unwrap()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
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
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "`{text}` is not in:\n{}",
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.stdout))
    }
}

/// The responder as a process of its own. It ends with this.
pub(crate) struct Responder {
    child: Child,
    pub(crate) address: String,
}

impl Responder {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Responder::start_from(Path::new(env!("CARGO_BIN_EXE_dyno")), arguments)
    }

    /// Starts it from another path, whose last part is the name of the process then.
    pub(crate) fn start_from(program: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .arg("responder")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim_end()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
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

/// Short reads of few documents.
pub(crate) const READS: [&str; 8] = [
    "run",
    "read",
    "--records",
    "1000",
    "-p",
    "insertorder=ordered",
    "--warmup",
    "0s",
];

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

/// Waits until a run has recorded this many windows. A run that ends before is told with what it said.
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
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// To the whole group of processes that the child leads, as a terminal does.
pub(crate) fn signal_group(child: &Child, name: &str) {
    let group = format!("-{}", child.id());
    let status = Command::new("kill")
        .args([&format!("-{name}"), "--", &group])
        .status();
    assert!(status.unwrap().success());
}

/// Processes whose command line holds this text.
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

/// The CPU's model and the kernel, which a record has of its machine, are on a page of it.
#[track_caller]
pub(crate) fn assert_machine_is_reported(environment: &Value, page: &str) {
    let fact = |name: &str| {
        environment[name]
            .as_str()
            .unwrap_or_else(|| panic!("{environment}"))
    };
    // Forms have other letters for some characters, and lines end between words.
    let words = fact("cpu_model").split(|character: char| !character.is_alphanumeric());
    let longest = words.max_by_key(|word| word.len()).unwrap();
    let release = fact("kernel").split_whitespace().last().unwrap();
    for word in [longest, release] {
        assert!(page.contains(word), "{word}: {page}");
    }
}
