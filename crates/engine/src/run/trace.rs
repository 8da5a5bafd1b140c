//! Runs watching programs in parts of a run: starts each at its time, asks it to end, and keeps its
//! output in the run directory.

mod check;
mod group;
pub(crate) mod io;
mod program;

pub(crate) use check::{check, check_servers};

use dyno_load::clock::Clock;
use dyno_plan::command_words::without_secrets;
use dyno_plan::model::TracePlan;
use dyno_plan::units::Span;
use dyno_plan::uri::redact;
use dyno_record::model::{PhaseKind, TraceRecord};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Folder of the traces in the run directory.
const TRACES: &str = "traces";

/// Result of a watching program.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) record: TraceRecord,
    /// Failure with the program's last output; `None` if it succeeded.
    pub(crate) fault: Option<String>,
}

/// Facts for watching programs.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Run directory.
    pub(crate) run: PathBuf,
    /// Process ids of the servers started for the run.
    pub(crate) servers: Vec<u32>,
    pub(crate) clock: Clock,
}

/// The watching programs of phases under one load.
pub(crate) struct Watchers {
    threads: Vec<JoinHandle<Watched>>,
    /// The trace of file I/O, before and after its window is known.
    attached: Option<io::Attached>,
    traced: Option<io::RunTrace>,
    over: Arc<Over>,
}

/// Whether the phases have ended.
#[derive(Default)]
pub(super) struct Over {
    over: Mutex<bool>,
    changed: Condvar,
}

impl Over {
    /// Waits until the time or until the phases have ended. Returns whether they have.
    pub(super) fn wait_until(&self, due: Instant) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = due.saturating_duration_since(Instant::now());
        *self
            .changed
            .wait_timeout_while(over, wait, |over| !*over)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    pub(super) fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Watchers {
    /// Creates watchers without programs, optionally with a trace of file I/O.
    pub(crate) fn new(attached: Option<io::Attached>) -> Self {
        Watchers { threads: Vec::new(), attached, traced: None, over: Arc::default() }
    }

    /// Starts programs for the upcoming phases, given by kind and start on the run's clock.
    pub(crate) fn start(
        &mut self,
        traces: &[TracePlan],
        phases: &[(PhaseKind, u64)],
        subject: &Subject,
    ) {
        if let Some(attached) = self.attached.take() {
            self.traced = attached.start(phases, &self.over);
        }
        for trace in traces {
            let (from, length) = (trace.from, trace.length);
            let window = Window::new(trace.phase, from, length, phases, subject.clock);
            let Some(window) = window else { continue };
            let (trace, subject) = (trace.clone(), subject.clone());
            let over = Arc::clone(&self.over);
            self.threads.push(std::thread::spawn(move || watch(&trace, window, &subject, &over)));
        }
    }

    /// Ends all programs. Returns their results, and the unfinished trace of file I/O.
    pub(crate) fn end(self) -> (Vec<Watched>, Option<io::RunTrace>) {
        self.over.end();
        (
            self.threads.into_iter().map(JoinHandle::join).filter_map(Result::ok).collect(),
            self.traced,
        )
    }
}

/// Time range of a program.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: Instant,
    /// Absent: until the phases end.
    end: Option<Instant>,
}

impl Window {
    /// Time range of a program that starts `from` after its phase; `None` if the phase is not one
    /// of the upcoming ones.
    fn new(
        phase: PhaseKind,
        from: Span,
        length: Option<Span>,
        phases: &[(PhaseKind, u64)],
        clock: Clock,
    ) -> Option<Self> {
        let place = phases.iter().position(|(one, _)| *one == phase)?;
        let phase_end_ns = phases.get(place + 1).map(|(_, start_ns)| *start_ns);
        let (now, now_ns) = (Instant::now(), clock.now_ns());
        let at = |time_ns: u64| now + Duration::from_nanos(time_ns.saturating_sub(now_ns));
        let start = at(phases[place].1) + from.0;
        let own_end = length.map(|length| start + length.0);
        let phase_end = phase_end_ns.filter(|end_ns| *end_ns != u64::MAX).map(at);
        let end = match (own_end, phase_end) {
            (Some(own), Some(phase)) => Some(own.min(phase)),
            (own, phase) => own.or(phase),
        };
        Some(Window { start, end })
    }
}

/// Waits for the window of a program, then runs it.
fn watch(trace: &TracePlan, window: Window, subject: &Subject, over: &Over) -> Watched {
    let directory = format!("{TRACES}/{}", trace.name);
    let mut record = TraceRecord {
        name: trace.name.clone(),
        command: without_secrets(&trace.command),
        directory,
        start_s: None,
        end_s: None,
        outcome: "the phases ended before its window".to_owned(),
    };
    if over.wait_until(window.start) {
        let fault = Some(record.outcome.clone());
        return Watched { record, fault };
    }
    let folder = subject.run.join(&record.directory);
    let now_s = || subject.clock.now_ns() as f64 / 1e9;
    record.start_s = Some(now_s());
    let ending = program::run(trace, &folder, subject, window.end, over);
    record.end_s = Some(now_s());
    record.outcome = ending.outcome;
    let fault = (!ending.is_sound).then(|| {
        let last = redact(&program::last_words(&folder.join(program::OUTPUT)));
        match last.as_str() {
            "" => record.outcome.clone(),
            last => format!("{}; last output: {last}", record.outcome),
        }
    });
    Watched { record, fault }
}

#[cfg(test)]
mod tests {
    use super::program::LOOK;
    use super::*;
    use std::fs;
    use std::path::Path;

    fn trace(command: &[&str], from_ms: u64, length_ms: Option<u64>) -> TracePlan {
        let span = |ms| Span(Duration::from_millis(ms));
        TracePlan {
            name: "t".into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            phase: PhaseKind::Measure,
            from: span(from_ms),
            length: length_ms.map(span),
        }
    }

    fn subject(run: &Path) -> Subject {
        Subject { run: run.to_owned(), servers: vec![12, 34], clock: Clock::start() }
    }

    #[test]
    fn a_program_runs_in_its_window() {
        let run = tempfile::tempdir().expect("a folder");
        let traces = [trace(&["sleep", "600"], 100, Some(300))];
        let mut watchers = Watchers::new(None);
        watchers.start(&traces, &[(PhaseKind::Measure, 0)], &subject(run.path()));
        let thread = watchers.threads.remove(0);
        let watched = thread.join().expect("it does not panic");
        assert!(watched.fault.is_none(), "{watched:?}");
        let record = watched.record;
        assert!(record.outcome.contains("signal: 2"), "{record:?}");
        // It may start late on a busy machine, but its window still ends in time.
        let (start_s, end_s) = (record.start_s.unwrap(), record.end_s.unwrap());
        assert!(start_s >= 0.1 && end_s >= 0.4, "{record:?}");
    }

    #[test]
    fn the_output_of_a_program_is_kept_until_its_end() {
        let run = tempfile::tempdir().expect("a folder");
        let script =
            "trap 'echo end; exit 0' INT; echo $DYNO_SERVER_PIDS; while :; do sleep 0.01; done";
        let (watched, output) = ended_once_ready(run.path(), script);
        assert!(watched.fault.is_none(), "{watched:?}");
        assert_eq!(output, "12,34\nend\n");
    }

    #[test]
    fn end_of_phases_stops_a_program_and_prevents_later_ones() {
        let run = tempfile::tempdir().expect("a folder");
        let subject = subject(run.path());
        let mut watchers = Watchers::new(None);
        let mut late = trace(&["sleep", "600"], 600_000, None);
        late.name = "late".into();
        let traces = [trace(&["sleep", "600"], 0, None), late];
        watchers.start(&traces, &[(PhaseKind::Measure, 0)], &subject);
        let folder = run.path().join("traces/t");
        let begin = Instant::now();
        while !folder.join(program::OUTPUT).exists() {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(LOOK);
        }
        let watched = watchers.end().0;
        let outcome = &watched[0].record.outcome;
        assert!(outcome.contains("signal: 2"), "{outcome}");
        assert!(watched[0].fault.is_none(), "{watched:?}");
        assert_eq!(watched[1].record.start_s, None);
        assert!(watched[1].fault.is_some());
    }
    /// Runs a script until it has printed a whole line, and then ends its window. Returns the
    /// output. A window that ends by the clock may end before a shell on a busy machine has set its
    /// traps.
    fn ended_once_ready(run: &Path, script: &str) -> (Watched, String) {
        let mut watchers = Watchers::new(None);
        let traces = [trace(&["sh", "-c", script], 0, None)];
        watchers.start(&traces, &[(PhaseKind::Measure, 0)], &subject(run));
        let log = run.join("traces/t").join(program::OUTPUT);
        let begin = Instant::now();
        while !fs::read_to_string(&log).is_ok_and(|text| text.ends_with('\n')) {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(LOOK);
        }
        let watched = watchers.end().0.remove(0);
        (watched, fs::read_to_string(log).expect("it is there"))
    }

    /// Runs one command for a window of the measure phase.
    fn watched(run: &Path, command: &[&str], length_ms: u64) -> Watched {
        let mut watchers = Watchers::new(None);
        let traces = [trace(command, 0, Some(length_ms))];
        watchers.start(&traces, &[(PhaseKind::Measure, 0)], &subject(run));
        let thread = watchers.threads.remove(0);
        thread.join().expect("it does not panic")
    }

    /// Whether a process is alive and not a zombie.
    fn is_alive(process: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| !"ZX".contains(state))
    }

    #[test]
    fn program_ending_before_its_window_is_a_fault_with_its_output() {
        let run = tempfile::tempdir().expect("a folder");
        let script = "echo no permission; exit 3";
        let watched = watched(run.path(), &["sh", "-c", script], 600_000);
        let fault = watched.fault.expect("it is one");
        assert!(fault.contains("its window"), "{fault}");
        assert!(fault.contains("exit status: 3"), "{fault}");
        assert!(fault.ends_with("no permission"), "{fault}");
    }

    #[test]
    fn fault_omits_secrets_that_a_program_printed() {
        let run = tempfile::tempdir().expect("a folder");
        let script = "echo mongodb://u:hunter2@h/ TOKEN=hunter2; exit 3";
        let watched = watched(run.path(), &["sh", "-c", script], 600_000);
        let fault = watched.fault.expect("it is one");
        assert!(fault.contains("@h/") && !fault.contains("hunter2"), "{fault}");
    }

    #[test]
    fn bad_status_at_window_end_is_a_fault_except_of_an_interrupt() {
        for (status, is_fault) in [(0, false), (1, true), (130, false)] {
            // A new one each time: earlier output would look like that of a ready script.
            let run = tempfile::tempdir().expect("a folder");
            let script = format!("trap 'exit {status}' INT; echo; while :; do sleep 0.01; done");
            let (watched, _) = ended_once_ready(run.path(), &script);
            assert_eq!(watched.fault.is_some(), is_fault, "{watched:?}");
        }
    }

    #[test]
    fn program_that_outlives_its_shell_can_write_its_results() {
        let run = tempfile::tempdir().expect("a folder");
        // The shell does not wait: `SIGINT` ends it at once.
        let slow =
            "trap \"sleep 0.5; echo results; exit 0\" INT; echo; while :; do sleep 0.01; done";
        let (_, output) = ended_once_ready(run.path(), &format!("sh -c '{slow}'; true"));
        assert_eq!(output, "\nresults\n");
    }

    #[test]
    fn background_processes_of_a_shell_end_with_it() {
        let run = tempfile::tempdir().expect("a folder");
        let script = "sleep 600 & echo $!; wait";
        let (watched, process) = ended_once_ready(run.path(), script);
        assert!(watched.fault.is_none(), "{watched:?}");
        let begin = Instant::now();
        while is_alive(process.trim()) {
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(LOOK);
        }
    }
}
