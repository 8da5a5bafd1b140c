//! Runs one watching program in its own process group: starts it, asks it to end, and kills
//! everything that it started.

use super::{Over, Subject, group};
use dyno_plan::model::TracePlan;
use dyno_servers::Watchdog;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time for a program to write its results after the request to end. `perf record` on a large
/// machine takes seconds.
const END_LIMIT: Duration = Duration::from_secs(30);
/// The same after the death of this process, when the results belong to no run.
const ORPHAN_LIMIT: Duration = Duration::from_secs(2);
/// Interval between checks of a program.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// File with the unmodified output of a program, including any secrets.
pub(super) const OUTPUT: &str = "output.raw.log";
/// Most bytes to search for the last lines of output.
const TAIL_LIMIT_BYTES: u64 = 4 * 1024;
/// Lines of output in a message.
const TAIL_LINES: usize = 3;
/// Status of a shell with a command that was ended by signal 2 (`SIGINT`).
const INTERRUPTED: i32 = 128 + 2;

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ending {
    /// In words.
    pub(super) outcome: String,
    /// Whether it ran to the end of its window without an error.
    pub(super) is_sound: bool,
}

impl Ending {
    /// An ending that is a fault.
    pub(super) fn fault(outcome: String) -> Self {
        Ending { outcome, is_sound: false }
    }
}

/// Runs a program from now to the end of its window, or of the phases.
pub(super) fn run(
    trace: &TracePlan,
    folder: &Path,
    subject: &Subject,
    end: Option<Instant>,
    over: &Over,
) -> Ending {
    let started = Instant::now();
    match Program::start(trace, folder, subject) {
        Err(error) => Ending::fault(format!("cannot be started: {error}")),
        Ok(mut program) => program
            .attend(started, end, over)
            .unwrap_or_else(|error| Ending::fault(format!("cannot be ended: {error}"))),
    }
}

/// Last lines of a program's output as one line; empty without output.
pub(super) fn last_words(log: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_LIMIT_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_LIMIT_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join(" / ")
}

/// A running program. Dropping this ends its whole group.
struct Program {
    child: Child,
    group: Pid,
    /// Ends the group if this process cannot; exits with the group.
    _watchdog: Watchdog,
}

impl Program {
    fn start(trace: &TracePlan, folder: &Path, subject: &Subject) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let log = File::create_new(folder.join(OUTPUT))?;
        let mut command = command(trace, folder, subject)?;
        command.stdout(log.try_clone()?).stderr(log);
        let watchdog = Watchdog::of_group(ORPHAN_LIMIT)?;
        let child = command.spawn()?;
        let number = i32::try_from(child.id()).expect("process numbers are positive `i32`");
        let watched = watchdog.watch_group(child.id());
        let program = Program { child, group: Pid::from_raw(number), _watchdog: watchdog };
        watched.map(|()| program)
    }

    /// Waits for the end of its window, then ends it.
    fn attend(
        &mut self,
        started: Instant,
        end: Option<Instant>,
        over: &Over,
    ) -> io::Result<Ending> {
        loop {
            if self.has_ended()? {
                let status = self.bury()?;
                let ran_s = started.elapsed().as_secs_f64();
                return Ok(Ending::fault(format!(
                    "ended by itself after {ran_s:.1} s, before the end of its window: {status}"
                )));
            }
            let is_due = end.is_some_and(|end| Instant::now() >= end);
            let next = Instant::now() + LOOK;
            if is_due || over.wait_until(end.map_or(next, |end| end.min(next))) {
                return self.finish();
            }
        }
    }

    /// Asks it to end, and waits for its end.
    fn finish(&mut self) -> io::Result<Ending> {
        // The whole group: a shell does not pass signals on, and some end before their commands do.
        let _ = killpg(self.group, Signal::SIGINT);
        let asked = Instant::now();
        while asked.elapsed() < END_LIMIT {
            if self.has_ended()? && !group::has_listeners(self.group.as_raw()) {
                let status = self.bury()?;
                return Ok(Ending {
                    outcome: format!("ended at the end of its window: {status}"),
                    is_sound: obeyed(status),
                });
            }
            std::thread::sleep(LOOK);
        }
        self.bury()?;
        Ok(Ending::fault(format!(
            "killed, because it did not end within {} s",
            END_LIMIT.as_secs()
        )))
    }

    /// Whether the first process has ended. It stays a zombie, so that no other process gets its
    /// number, which is also the group's.
    fn has_ended(&self) -> io::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(waitid(Id::Pid(self.group), flags)? != WaitStatus::StillAlive)
    }

    /// Kills the rest of the group: background processes of a shell ignore `SIGINT`.
    fn bury(&mut self) -> io::Result<ExitStatus> {
        let _ = killpg(self.group, Signal::SIGKILL);
        self.child.wait()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After an error it may still run.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.bury();
        }
    }
}

fn command(trace: &TracePlan, folder: &Path, subject: &Subject) -> io::Result<Command> {
    let (program, arguments) =
        trace.command.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let servers: Vec<String> = subject.servers.iter().map(u32::to_string).collect();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env("DYNO_SERVER_PIDS", servers.join(","))
        .env("DYNO_CLIENT_PID", std::process::id().to_string())
        .stdin(Stdio::null())
        .process_group(0);
    // The watchdog does not know a process that was started a moment before our death.
    dyno_servers::set_death_signal(&mut command, Signal::SIGINT);
    Ok(command)
}

/// Whether a status shows that the program ended as requested.
fn obeyed(status: ExitStatus) -> bool {
    status.success()
        || status.signal() == Some(Signal::SIGINT as i32)
        || status.code() == Some(INTERRUPTED)
}
