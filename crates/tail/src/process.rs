//! One producer or consumer as a child process: start, readiness, start signal, output and end.
//!
//! A child cannot outlive this process: the kernel kills it when the thread that started it ends, and its own children are in its
//! process group, which is killed with it. The starting thread must therefore live until the child's end.

use crate::error::TailError;
use crate::lines::lines;
use crate::resources;
use dyno_plan::uri::redact;
use dyno_record::tail::BlindCursor;
use dyno_servers::set_death_signal;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time to end for a process that has closed its output.
const CLOSED_LIMIT: Duration = Duration::from_secs(20);
/// Lines of standard error to keep: the last ones name the cause.
const ERROR_LINES: usize = 5;

/// A running producer or consumer. On drop, it is killed with all its descendants.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
    ended: Option<ExitStatus>,
    cpu_s: Option<f64>,
    events: Vec<Value>,
}

/// End of a process.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// JSON lines after `ready`.
    pub events: Vec<Value>,
    /// Last lines of standard error.
    pub errors: String,
}

impl Ending {
    /// A number of the last event, if that is `done`.
    pub fn done(&self, field: &str) -> Option<u64> {
        let last = self.events.last()?;
        (last.get("event")? == "done").then(|| last.get(field)?.as_u64())?
    }

    /// Cursors that the consumer found blind.
    pub fn blind(&self) -> Vec<BlindCursor> {
        let reported = self.events.iter().filter(|event| event["reason"] == "blind");
        let cursors = reported.filter_map(|event| {
            Some(BlindCursor {
                blind_s: event["blind_ns"].as_f64()? / 1e9,
                found: event["found"].as_u64()?,
            })
        });
        cursors.collect()
    }

    /// The driver's first reported insert failure: its message, with the server's code if there is one.
    pub fn failure(&self) -> Option<String> {
        let is_failure = |event: &&Value| event["event"] == "failed";
        let failed = self.events.iter().find(is_failure)?;
        let message = redact(failed["message"].as_str()?.trim());
        Some(match failed["code"].as_i64() {
            Some(code) => format!("{message} (code {code})"),
            None => message,
        })
    }
}

impl Process {
    /// Starts `command role arguments…`, with the connection string only in the environment, where other users cannot see it. `name` is
    /// for messages: `producer 0 (python)`.
    ///
    /// # Errors
    /// [`TailError::Process`].
    pub fn start(
        name: &str,
        mut command: Command,
        role: &str,
        arguments: &[OsString],
        uri: &str,
    ) -> Result<Process, TailError> {
        command.arg(role).args(arguments).env("DYNO_URI", uri);
        Process::spawn(name, command)
    }

    /// Starts a command that follows the contract after it has read its connection string as the first line.
    ///
    /// # Errors
    /// [`TailError::Process`].
    pub(crate) fn start_there(
        name: &str,
        command: Command,
        uri: &str,
    ) -> Result<Process, TailError> {
        let mut process = Process::spawn(name, command)?;
        process.say(uri)?;
        Ok(process)
    }

    fn spawn(name: &str, mut command: Command) -> Result<Process, TailError> {
        let failed = |source| TailError::Process { process: name.to_owned(), source };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        set_death_signal(&mut command, Signal::SIGKILL);
        let mut child = command.spawn().map_err(failed)?;
        let (sender, lines) = channel();
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&errors);
        let readers = vec![
            read_lines(child.stdout.take(), move |line| {
                // After a drop of the process, nothing receives.
                let _ = sender.send(line);
            }),
            read_lines(child.stderr.take(), move |line| {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == ERROR_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }),
        ];
        Ok(Process {
            name: name.to_owned(),
            input: child.stdin.take(),
            child,
            lines,
            errors,
            readers,
            ended: None,
            cpu_s: None,
            events: Vec::new(),
        })
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits up to `limit` for the line `ready`; `false` if it does not arrive.
    ///
    /// # Errors
    /// [`TailError::Ended`], [`TailError::Contract`] for another line.
    pub fn is_ready(&mut self, limit: Duration) -> Result<bool, TailError> {
        match self.lines.recv_timeout(limit) {
            Ok(line) if line == "ready" => Ok(true),
            Ok(line) => Err(TailError::Contract {
                driver: self.name.clone(),
                reason: format!("its first line is not `ready` but `{line}`"),
            }),
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.wait(CLOSED_LIMIT)?;
                Err(self.ended_with(&ended))
            }
        }
    }

    /// Answers `ready` with the common start on the chosen clock.
    ///
    /// # Errors
    /// [`TailError::Process`].
    pub fn say_start(&mut self, at_ns: i64) -> Result<(), TailError> {
        self.say(&format!("start {at_ns}"))
    }

    /// Asks it to end in order.
    ///
    /// # Errors
    /// [`TailError::Process`].
    pub fn say_stop(&mut self) -> Result<(), TailError> {
        self.say("stop")
    }

    fn say(&mut self, line: &str) -> Result<(), TailError> {
        let said = match &mut self.input {
            Some(input) => writeln!(input, "{line}").and_then(|()| input.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        said.map_err(|source| TailError::Process { process: self.name.clone(), source })
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// [`TailError::Process`].
    pub fn has_ended(&mut self) -> Result<bool, TailError> {
        if self.ended.is_none() {
            // Usage is no longer readable after the process was waited for.
            self.cpu_s = resources::cpu_s_of(self.child.id()).or(self.cpu_s);
            self.ended = self
                .child
                .try_wait()
                .map_err(|source| TailError::Process { process: self.name.clone(), source })?;
        }
        Ok(self.ended.is_some())
    }

    /// Whether it has ended with an exit code other than 0.
    ///
    /// # Errors
    /// [`TailError::Process`].
    pub fn has_failed(&mut self) -> Result<bool, TailError> {
        Ok(self.has_ended()? && self.ended.is_some_and(|status| !status.success()))
    }

    /// CPU time of the process and its reaped children, from its start to its end or the last [`has_ended`](Self::has_ended);
    /// `None` if that was never called.
    pub fn cpu_s(&self) -> Option<f64> {
        self.cpu_s
    }

    /// Waits for its end; at the deadline, the process keeps running.
    ///
    /// # Errors
    /// [`TailError::Deadline`], [`TailError::Process`], [`TailError::Contract`] for a line that is not JSON.
    pub fn wait(&mut self, limit: Duration) -> Result<Ending, TailError> {
        let deadline = std::time::Instant::now() + limit;
        while !self.has_ended()? {
            if std::time::Instant::now() >= deadline {
                return Err(self.late("did not end", limit));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Descendants would keep its output open.
        self.kill_group();
        for reader in self.readers.drain(..) {
            // A reader that panicked keeps the lines read so far.
            let _ = reader.join();
        }
        for line in self.lines.try_iter() {
            let event = serde_json::from_str(&line).map_err(|_| TailError::Contract {
                driver: self.name.clone(),
                reason: format!("a line is not JSON: `{line}`"),
            })?;
            self.events.push(event);
        }
        Ok(Ending {
            code: self.ended.and_then(|status| status.code()),
            events: self.events.clone(),
            errors: self.errors(),
        })
    }

    /// Kills it with all its descendants.
    pub fn kill(&mut self) {
        // The child is still unreaped, so its process ID was not reused.
        self.kill_group();
        // It may have ended.
        let _ = self.child.kill();
        if let Ok(status) = self.child.wait() {
            self.ended = Some(status);
        }
    }

    fn kill_group(&self) {
        let group = Pid::from_raw(self.child.id() as i32);
        // The group may have ended.
        let _ = killpg(group, Signal::SIGKILL);
    }

    fn errors(&self) -> String {
        let kept = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        redact(&kept.iter().cloned().collect::<Vec<_>>().join("; "))
    }

    /// Error for a missed deadline.
    pub(crate) fn late(&self, what: &'static str, limit: Duration) -> TailError {
        TailError::Deadline { process: self.name.clone(), what, limit_s: limit.as_secs() }
    }

    /// Error for an unexpected end.
    pub fn ended_with(&self, ending: &Ending) -> TailError {
        TailError::Ended {
            process: self.name.clone(),
            ended: match ending.code {
                Some(code) => format!("exit code {code}"),
                None => "a signal".to_owned(),
            },
            message: if ending.errors.is_empty() {
                "nothing on standard error".to_owned()
            } else {
                ending.errors.clone()
            },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
        }
    }
}

fn read_lines(
    stream: Option<impl Read + Send + 'static>,
    take: impl FnMut(String) + Send + 'static,
) -> JoinHandle<()> {
    std::thread::spawn(move || stream.into_iter().flat_map(lines).for_each(take))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SOON: Duration = Duration::from_secs(20);

    fn script(text: &str) -> (tempfile::TempDir, Process) {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        std::fs::write(&run, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
        let process =
            Process::start("producer 0 (sh)", Command::new(&run), "produce", &[], "mongodb://x");
        (folder, process.unwrap())
    }

    #[test]
    fn first_failed_insert_is_shown_without_credentials() {
        let ending = |events: &[Value]| Ending {
            code: Some(0),
            events: events.to_vec(),
            errors: String::new(),
        };
        let failed = |code: Value, message: &str| serde_json::json!({"event": "failed", "n": 7, "code": code, "message": message});
        let done = serde_json::json!({"event": "done", "messages": 7, "failed": 2});
        let first = failed(112.into(), "WriteConflict at mongodb://me:secret@h\n");
        let second = failed(Value::Null, "gone");
        let reported = ending(&[first, second.clone(), done.clone()]).failure();
        assert_eq!(reported.as_deref(), Some("WriteConflict at mongodb://***@h (code 112)"));
        assert_eq!(ending(&[second, done.clone()]).failure().as_deref(), Some("gone"));
        assert_eq!(ending(&[done]).failure(), None);
    }

    #[test]
    fn blind_cursors_differ_from_other_reopened_cursors() {
        let reopened = |reason: &str| serde_json::json!({"event": "reopened", "reason": reason, "at_ns": 9, "code": null});
        let mut blind = reopened("blind");
        blind["blind_ns"] = 1_250_000_000_u64.into();
        blind["found"] = 201.into();
        let ending = Ending {
            code: Some(0),
            events: vec![reopened("empty"), blind, reopened("connection")],
            errors: String::new(),
        };
        let expected = BlindCursor { blind_s: 1.25, found: 201 };
        assert_eq!(ending.blind(), [expected]);
    }

    #[test]
    fn process_gets_ready_starts_and_is_read_to_its_end() {
        let (_folder, mut process) = script(
            "echo ready; read line; echo \"{\\\"event\\\":\\\"done\\\",\\\"messages\\\":7,\\\"line\\\":\\\"$line $DYNO_URI $*\\\"}\"",
        );
        assert!(process.is_ready(SOON).unwrap());
        process.say_start(123).unwrap();
        let ending = process.wait(SOON).unwrap();
        assert_eq!(ending.code, Some(0));
        assert_eq!(ending.done("messages"), Some(7));
        // The connection string is not among the arguments.
        assert_eq!(ending.events[0]["line"], "start 123 mongodb://x produce");
    }

    #[test]
    fn early_end_of_a_process_has_its_cause() {
        let (_folder, mut process) = script("echo first >&2; echo no server >&2; exit 4");
        let error = process.is_ready(SOON).unwrap_err();
        let TailError::Ended { process, ended, message } = error else {
            panic!("{error}");
        };
        assert_eq!(process, "producer 0 (sh)");
        assert_eq!(ended, "exit code 4");
        assert_eq!(message, "first; no server");
    }

    #[test]
    fn wrong_or_missing_first_line_is_an_error() {
        let (_folder, mut process) = script("echo hello; sleep 60");
        let error = process.is_ready(SOON).unwrap_err().to_string();
        assert!(error.contains("not `ready` but `hello`"), "{error}");
        let (_folder, mut process) = script("sleep 60");
        assert!(!process.is_ready(Duration::from_millis(50)).unwrap());
    }

    #[test]
    fn children_are_killed_with_their_process() {
        let (folder, mut process) =
            script("sleep 60 & echo $! > \"$0.child\"; echo ready; sleep 60");
        assert!(process.is_ready(SOON).unwrap());
        let child = std::fs::read_to_string(folder.path().join("run.child")).unwrap();
        let late = process.wait(Duration::from_millis(20));
        assert!(matches!(late, Err(TailError::Deadline { .. })), "{late:?}");
        drop(process);
        let stat = format!("/proc/{}/stat", child.trim());
        let deadline = std::time::Instant::now() + SOON;
        // A killed process stays a zombie until init reaps it.
        while std::fs::read_to_string(&stat).is_ok_and(|line| !line.contains(") Z ")) {
            assert!(std::time::Instant::now() < deadline, "{stat} still exists");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
