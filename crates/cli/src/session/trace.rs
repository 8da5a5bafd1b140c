//! Windows of a run in which other programs watch: starts each at its time, asks it to end, and keeps
//! what it wrote in the run directory.

use crate::exit::{Exit, Failure};
use dyno_load::clock::Clock;
use dyno_plan::model::{TracePhase, TracePlan};
use dyno_record::model::{PhaseKind, TraceRecord};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Folder of the traces in the run directory.
const TRACES: &str = "traces";
/// Time that a program has to write its results after it was asked to end. `perf record` on a large
/// machine takes seconds.
const END_LIMIT: Duration = Duration::from_secs(30);
/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Refuses programs that cannot be found before anything is started.
pub(crate) fn check(traces: &[TracePlan], path: Option<&OsStr>) -> Result<(), Failure> {
    for trace in traces {
        let program = trace.command.first().map_or("", String::as_str);
        if !can_be_found(program, path) {
            let message = format!(
                "trace `{}`: cannot find the program `{program}`",
                trace.name
            );
            return Err(
                Failure::new(Exit::Environment, message).with_hint("install it, or give its path")
            );
        }
    }
    Ok(())
}

fn can_be_found(program: &str, path: Option<&OsStr>) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|folder| folder.join(program).is_file())
    })
}

/// What the watching programs are told.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Run directory.
    pub(crate) run: PathBuf,
    /// Process ids of the servers that were started for the run.
    pub(crate) servers: Vec<u32>,
    pub(crate) clock: Clock,
}

/// The programs of phases that run under one load.
pub(crate) struct Watchers {
    threads: Vec<JoinHandle<TraceRecord>>,
    over: Arc<Over>,
}

/// Whether the phases have ended.
#[derive(Default)]
struct Over {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    /// Waits until then, or until the phases have ended; whether they have.
    fn wait_until(&self, due: Instant) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = due.saturating_duration_since(Instant::now());
        *self
            .changed
            .wait_timeout_while(over, wait, |over| !*over)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Watchers {
    /// None yet.
    pub(crate) fn new() -> Self {
        Watchers {
            threads: Vec::new(),
            over: Arc::default(),
        }
    }

    /// Programs for the phases that are about to start: their kinds and starts by the run's clock.
    pub(crate) fn start(
        &mut self,
        traces: &[TracePlan],
        phases: &[(PhaseKind, u64)],
        subject: &Subject,
    ) {
        for trace in traces {
            let kind = kind_of(trace.phase);
            let place = phases.iter().position(|(phase, _)| *phase == kind);
            let Some(place) = place else { continue };
            let end_ns = phases.get(place + 1).map(|(_, start_ns)| *start_ns);
            let window = Window::new(trace, phases[place].1, end_ns, subject.clock);
            let (trace, subject) = (trace.clone(), subject.clone());
            let over = Arc::clone(&self.over);
            self.threads.push(std::thread::spawn(move || {
                watch(&trace, window, &subject, &over)
            }));
        }
    }

    /// Ends what still runs and returns what became of each.
    pub(crate) fn end(self) -> Vec<TraceRecord> {
        self.over.end();
        let ended = self.threads.into_iter().map(JoinHandle::join);
        ended.filter_map(Result::ok).collect()
    }
}

fn kind_of(phase: TracePhase) -> PhaseKind {
    match phase {
        TracePhase::Load => PhaseKind::Load,
        TracePhase::Warmup => PhaseKind::Warmup,
        TracePhase::Measure => PhaseKind::Measure,
    }
}

/// When a program runs.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: Instant,
    /// Absent: until the phases end.
    end: Option<Instant>,
}

impl Window {
    fn new(
        trace: &TracePlan,
        phase_start_ns: u64,
        phase_end_ns: Option<u64>,
        clock: Clock,
    ) -> Self {
        let (now, now_ns) = (Instant::now(), clock.now_ns());
        let at = |time_ns: u64| now + Duration::from_nanos(time_ns.saturating_sub(now_ns));
        let start = at(phase_start_ns) + trace.from.0;
        let own_end = trace.length.map(|length| start + length.0);
        let phase_end = phase_end_ns.filter(|end_ns| *end_ns != u64::MAX).map(at);
        let end = match (own_end, phase_end) {
            (Some(own), Some(phase)) => Some(own.min(phase)),
            (own, phase) => own.or(phase),
        };
        Window { start, end }
    }
}

/// The life of one program.
fn watch(trace: &TracePlan, window: Window, subject: &Subject, over: &Over) -> TraceRecord {
    let directory = format!("{TRACES}/{}", trace.name);
    let mut record = TraceRecord {
        name: trace.name.clone(),
        command: trace.command.clone(),
        directory,
        start_s: None,
        end_s: None,
        outcome: "the phases ended before its window".to_owned(),
    };
    if over.wait_until(window.start) {
        return record;
    }
    let folder = subject.run.join(&record.directory);
    let now_s = || subject.clock.now_ns() as f64 / 1e9;
    record.start_s = Some(now_s());
    record.outcome = match spawn(trace, &folder, subject) {
        Err(error) => format!("could not be started: {error}"),
        Ok(mut child) => {
            let ended = attend(&mut child, window.end, over);
            ended.unwrap_or_else(|error| format!("could not be ended: {error}"))
        }
    };
    record.end_s = Some(now_s());
    record
}

fn spawn(trace: &TracePlan, folder: &Path, subject: &Subject) -> io::Result<Child> {
    fs::create_dir_all(folder)?;
    let log = File::create(folder.join("output.log"))?;
    let (program, arguments) = trace
        .command
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let servers: Vec<String> = subject.servers.iter().map(u32::to_string).collect();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env("DYNO_SERVER_PIDS", servers.join(","))
        .env("DYNO_CLIENT_PID", std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    // SAFETY: between fork and exec only one system call is made; it touches no memory of ours.
    unsafe {
        command
            .pre_exec(|| nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).map_err(io::Error::from));
    }
    command.spawn()
}

/// Lets a program run to the end of its window, then ends it. How it ended, in words.
fn attend(child: &mut Child, end: Option<Instant>, over: &Over) -> io::Result<String> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(format!("ended by itself: {status}"));
        }
        let is_due = end.is_some_and(|end| Instant::now() >= end);
        let next = Instant::now() + LOOK;
        if is_due || over.wait_until(end.map_or(next, |end| end.min(next))) {
            return finish(child);
        }
    }
}

fn finish(child: &mut Child) -> io::Result<String> {
    // The whole group: a shell does not pass signals on.
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let _ = killpg(group, Signal::SIGINT);
    let asked = Instant::now();
    while asked.elapsed() < END_LIMIT {
        if let Some(status) = child.try_wait()? {
            return Ok(ending(status));
        }
        std::thread::sleep(LOOK);
    }
    let _ = killpg(group, Signal::SIGKILL);
    child.wait()?;
    Ok(format!(
        "killed, because it did not end within {} s",
        END_LIMIT.as_secs()
    ))
}

fn ending(status: ExitStatus) -> String {
    format!("ended at the end of its window: {status}")
}

/// Whether a program did what it was for: it ran, and nobody had to kill it.
pub(crate) fn is_sound(record: &TraceRecord) -> bool {
    record.start_s.is_some()
        && !record.outcome.starts_with("could not")
        && !record.outcome.starts_with("killed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::units::Span;

    fn trace(command: &[&str], from_ms: u64, length_ms: Option<u64>) -> TracePlan {
        let span = |ms| Span(Duration::from_millis(ms));
        TracePlan {
            name: "t".into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            phase: TracePhase::Measure,
            from: span(from_ms),
            length: length_ms.map(span),
        }
    }

    fn subject(run: &Path) -> Subject {
        Subject {
            run: run.to_owned(),
            servers: vec![12, 34],
            clock: Clock::start(),
        }
    }

    #[test]
    fn a_program_runs_in_its_window_and_its_output_is_kept() {
        let run = tempfile::tempdir().expect("a folder");
        let subject = subject(run.path());
        let script =
            "trap 'echo end; exit 0' INT; echo $DYNO_SERVER_PIDS; while :; do sleep 0.01; done";
        let mut watchers = Watchers::new();
        let traces = [trace(&["sh", "-c", script], 100, Some(300))];
        watchers.start(&traces, &[(PhaseKind::Measure, 0)], &subject);
        let log = run.path().join("traces/t/output.log");
        let begin = Instant::now();
        while !fs::read_to_string(&log).is_ok_and(|text| text.ends_with("end\n")) {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(LOOK);
        }
        let records = watchers.end();
        let record = &records[0];
        assert!(is_sound(record), "{record:?}");
        assert_eq!(
            fs::read_to_string(log).expect("it is there"),
            "12,34\nend\n"
        );
        let (start_s, end_s) = (
            record.start_s.expect("it ran"),
            record.end_s.expect("it ended"),
        );
        assert!(start_s >= 0.1 && end_s - start_s >= 0.3, "{record:?}");
    }

    #[test]
    fn the_end_of_the_phases_ends_a_program_and_keeps_a_later_one_from_starting() {
        let run = tempfile::tempdir().expect("a folder");
        let subject = subject(run.path());
        let mut watchers = Watchers::new();
        let mut late = trace(&["sleep", "600"], 600_000, None);
        late.name = "late".into();
        let traces = [trace(&["sleep", "600"], 0, None), late];
        watchers.start(&traces, &[(PhaseKind::Measure, 0)], &subject);
        let folder = run.path().join("traces/t");
        let begin = Instant::now();
        while !folder.join("output.log").exists() {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(LOOK);
        }
        let records = watchers.end();
        assert!(records[0].outcome.contains("signal: 2"), "{records:?}");
        assert_eq!(records[1].start_s, None);
        assert!(!is_sound(&records[1]));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_before_the_run() {
        let traces = [trace(&["no-such-program"], 0, None)];
        let failure = check(&traces, Some(OsStr::new("/usr/bin"))).expect_err("it is missing");
        assert_eq!(failure.exit, Exit::Environment);
        assert!(failure.error.to_string().contains("no-such-program"));
        assert!(check(&[trace(&["/bin/sh"], 0, None)], None).is_ok());
    }
}
