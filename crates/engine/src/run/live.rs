//! State of a running run for other processes: `live.json` in its directory, rewritten with each
//! recording window, and an entry with the directory in the state folder.
//!
//! The run directory is locked during the run, so that files left by a killed process are
//! recognized as old.

use crate::files::{FOR_ALL, is_same, replace_file};
use crate::observer::{Expectation, Level, Notice, Observer};
use dyno_analyze::online_shift::OnlineShift;
use dyno_record::interval::{IntervalRecord, latency_histogram};
use dyno_record::model::{PhaseKind, PhaseRecord};
use dyno_record::plain_file;
use dyno_record::quantity::Quantity;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

/// State file in the run directory.
pub const LIVE: &str = "live.json";
/// Folder of the entries, in the state folder.
const RUNNING: &str = "running";
/// Most points of the rate timeline. Beyond that, neighbours are merged.
const MOST_POINTS: usize = 120;
/// Windows behind the current figures.
const RECENT: usize = 10;
/// Smallest change that is noticed during a run. The final analysis finds smaller ones.
const LEAST_CHANGE: f64 = 0.2;
/// Most notices: a bench that changes all the time must not fill the memory.
const MOST_NOTICES: usize = 200;

/// The state of a run for other processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveState {
    /// Name of the plan.
    pub name: String,
    /// The run directory.
    pub directory: PathBuf,
    /// The process that measures.
    pub process: u32,
    /// RFC 3339 in UTC.
    pub started_at: String,
    /// The current phase; absent before the first one.
    pub phase: Option<PhaseKind>,
    /// Time in this phase.
    pub elapsed_s: f64,
    /// Longest time of this phase.
    pub planned_s: Option<f64>,
    /// Planned operations of this phase.
    pub planned_operations: Option<u64>,
    /// Operations of this phase, or documents of the load phase.
    pub done: u64,
    /// Operations of this phase that failed.
    pub failed: u64,
    /// Of the last ten windows; absent before the first window of a phase.
    pub rate_per_s: Option<f64>,
    /// Median response time of the last ten windows.
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the response time of the last ten windows.
    pub response_p99_us: Option<f64>,
    /// Rate over the phase so far, evenly spaced.
    pub timeline_per_s: Vec<f64>,
    /// Notices so far, such as changes of level.
    pub notices: Vec<String>,
}

/// Keeps the state of a run up to date.
pub struct Live<'a> {
    state: LiveState,
    path: PathBuf,
    entry: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    recent: VecDeque<Recent>,
    timeline: RateHistory,
    /// Next observer, which also receives the notices.
    other: Box<dyn Observer + 'a>,
    /// Detect changes of the rate and of the mean response time during the measurement.
    lookouts: [Lookout; 2],
}

/// Detects changes of a figure.
struct Lookout {
    what: &'static str,
    write: fn(f64) -> Quantity,
    shift: OnlineShift,
}

impl Lookout {
    fn all() -> [Lookout; 2] {
        let lookout = |what, write| Lookout { what, write, shift: OnlineShift::new(LEAST_CHANGE) };
        [
            lookout("rate", Quantity::per_second),
            lookout("mean response time", Quantity::microseconds),
        ]
    }

    /// Adds the value of the window that ended at `end_s`. Returns a notice if it changed.
    fn look(&mut self, value: f64, end_s: f64, window_s: f64) -> Option<String> {
        let alarm = self.shift.push(value)?;
        let since = alarm.raised_after.saturating_sub(alarm.index_of_change);
        let at_s = (end_s - since as f64 * window_s).max(0.0);
        let verb = if alarm.after > alarm.before { "rose" } else { "fell" };
        Some(format!(
            "after {} of measuring the {} {verb} from {} to {}",
            Quantity::seconds(at_s),
            self.what,
            (self.write)(alarm.before),
            (self.write)(alarm.after)
        ))
    }
}

struct Recent {
    done: u64,
    duration_s: f64,
    response: Histogram<u64>,
}

impl<'a> Live<'a> {
    /// Publishes the run when its first phase begins. Without a writable state folder, the run can
    /// only be found by its directory, which must not stop the measurement.
    pub fn new(
        directory: &Path,
        name: &str,
        started_at: String,
        state_dir: Option<&Path>,
        other: Box<dyn Observer + 'a>,
    ) -> Live<'a> {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let state = LiveState {
            name: name.to_owned(),
            process: std::process::id(),
            started_at,
            directory: directory.clone(),
            ..LiveState::default()
        };
        Live {
            entry: None,
            state_dir: state_dir.map(Path::to_owned),
            path: directory.join(LIVE),
            state,
            recent: VecDeque::new(),
            timeline: RateHistory::default(),
            other,
            lookouts: Lookout::all(),
        }
    }

    /// Notices if this window differs from the earlier ones.
    fn look_out(&mut self, interval: &IntervalRecord, rate_per_s: f64) {
        let (sum_ns, count) = interval.operations.iter().fold((0.0, 0), |(sum_ns, count), one| {
            (sum_ns + one.response_sum_ns as f64, count + one.response.len())
        });
        let mean_us = (count > 0).then(|| sum_ns / count as f64 / 1e3);
        let window_s = interval.duration_ns as f64 / 1e9;
        let values = [Some(rate_per_s), mean_us];
        for (lookout, value) in self.lookouts.iter_mut().zip(values) {
            // Without operations there is no response time, but the window still counts.
            let value = value.unwrap_or(f64::NAN);
            let Some(text) = lookout.look(value, self.state.elapsed_s, window_s) else {
                continue;
            };
            self.other.notice(&Notice::of_text(Level::Note, &text));
            if self.state.notices.len() < MOST_NOTICES {
                self.state.notices.push(text);
            }
        }
    }

    /// Replaces the file, so that readers find the old or the new state. A failure must not end a
    /// run.
    fn write(&self) {
        let Ok(text) = serde_json::to_vec(&self.state) else {
            return;
        };
        let _ = replace_file(&self.path, &text, FOR_ALL);
    }
}

impl Observer for Live<'_> {
    fn pass_on(&mut self, tell: &mut dyn FnMut(&mut dyn Observer)) {
        tell(&mut *self.other);
    }

    fn phase_started(&mut self, expected: &Expectation) {
        self.other.phase_started(expected);
        if self.entry.is_none()
            && let Some(state_dir) = &self.state_dir
        {
            self.entry = make_entry(state_dir, &self.state.directory);
        }
        let state = &mut self.state;
        state.phase = Some(expected.kind);
        state.planned_s = expected.duration.map(|duration| duration.as_secs_f64());
        state.planned_operations = expected.operations;
        (state.elapsed_s, state.done, state.failed) = (0.0, 0, 0);
        (state.rate_per_s, state.response_p50_us, state.response_p99_us) = (None, None, None);
        state.timeline_per_s.clear();
        self.recent.clear();
        self.timeline = RateHistory::default();
        self.lookouts = Lookout::all();
        self.write();
    }

    fn window(&mut self, interval: &IntervalRecord) {
        self.other.window(interval);
        let duration_s = interval.duration_ns as f64 / 1e9;
        let mut response = match self.recent.len() {
            RECENT => self.recent.pop_front().map(|mut oldest| {
                oldest.response.reset();
                oldest.response
            }),
            _ => None,
        }
        .unwrap_or_else(latency_histogram);
        for operation in &interval.operations {
            // All latency histograms have the same bounds, so adding cannot fail.
            let _ = response.add(&operation.response);
        }
        let done = interval.progress();
        self.recent.push_back(Recent { done, duration_s, response });
        self.timeline.add(done as f64, duration_s);
        let recent_s: f64 = self.recent.iter().map(|recent| recent.duration_s).sum();
        let recent_done: u64 = self.recent.iter().map(|recent| recent.done).sum();
        let mut all = latency_histogram();
        for recent in &self.recent {
            let _ = all.add(&recent.response);
        }
        let percentile = |p| (!all.is_empty()).then(|| all.value_at_quantile(p) as f64 / 1e3);
        let state = &mut self.state;
        state.elapsed_s += duration_s;
        state.done += done;
        state.failed += interval.counts.failed;
        state.rate_per_s = (recent_s > 0.0).then(|| recent_done as f64 / recent_s);
        state.response_p50_us = percentile(0.5);
        state.response_p99_us = percentile(0.99);
        state.timeline_per_s = self.timeline.per_s();
        if interval.phase == PhaseKind::Measure && duration_s > 0.5 {
            self.look_out(interval, done as f64 / duration_s);
        }
        self.write();
    }

    fn phase_ended(&mut self, phase: &PhaseRecord) {
        self.other.phase_ended(phase);
        self.write();
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        // The run is over, and the other files have its results.
        for path in std::iter::once(&self.path).chain(&self.entry) {
            let _ = std::fs::remove_file(path);
        }
        // Removes the folders if they are empty.
        if let (Some(_), Some(state_dir)) = (&self.entry, &self.state_dir) {
            let _ = std::fs::remove_dir(state_dir.join(RUNNING));
            let _ = std::fs::remove_dir(state_dir);
        }
    }
}

/// The rate over a phase in a bounded number of points of equal length.
#[derive(Debug, Default)]
pub struct RateHistory {
    /// Operations and seconds of each point.
    points: Vec<(f64, f64)>,
    windows_per_point: usize,
    windows: usize,
}

impl RateHistory {
    /// Adds the operations of a window.
    pub fn add(&mut self, done: f64, duration_s: f64) {
        self.windows_per_point = self.windows_per_point.max(1);
        match self.points.last_mut() {
            Some(last) if self.windows < self.windows_per_point => {
                last.0 += done;
                last.1 += duration_s;
                self.windows += 1;
            }
            _ => {
                self.points.push((done, duration_s));
                self.windows = 1;
            }
        }
        if self.points.len() > MOST_POINTS {
            self.points = self
                .points
                .chunks(2)
                .map(|pair| pair.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1)))
                .collect();
            // Their number is odd, so that the point that was just begun stays alone.
            self.windows_per_point *= 2;
        }
    }

    /// Rates, evenly spaced in time.
    pub fn per_s(&self) -> Vec<f64> {
        let rate = |(done, seconds): &(f64, f64)| if *seconds > 0.0 { done / seconds } else { 0.0 };
        self.points.iter().map(rate).collect()
    }
}

/// Bars for a line of text, from zero to the largest value; at most `width` of them.
pub fn sparkline(values: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let per_bar = values.len().div_ceil(width.max(1)).max(1);
    let means: Vec<f64> = values
        .chunks(per_bar)
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64)
        .collect();
    let largest = means.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let share = if largest > 0.0 { value / largest } else { 0.0 };
        BARS[((share * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    means.iter().map(bar).collect()
}

/// Adds an entry for the run directory to the state folder.
fn make_entry(state_dir: &Path, directory: &Path) -> Option<PathBuf> {
    let folder = state_dir.join(RUNNING);
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join(std::process::id().to_string());
    // The file is replaced, so that a link in the folder cannot redirect the write.
    replace_file(&path, directory.as_os_str().as_encoded_bytes(), FOR_ALL).ok()?;
    Some(path)
}

/// This user's running runs. Removes entries of processes that were killed.
pub fn running(state_dir: &Path) -> Vec<LiveState> {
    let Ok(entries) = std::fs::read_dir(state_dir.join(RUNNING)) else {
        return Vec::new();
    };
    let mut states: Vec<LiveState> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            // Entries are named after processes. Other files are left by a process that was killed
            // while writing.
            let name = path.file_name()?.to_str()?;
            name.parse::<u32>().ok()?;
            let directory = PathBuf::from(std::fs::read_to_string(&path).ok()?);
            let state = read(&directory);
            if state.is_none() && !is_locked(&directory) {
                let _ = std::fs::remove_file(&path);
            }
            state
        })
        .collect();
    states.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    states
}

/// State of the run in a directory, if it is running.
pub fn read(directory: &Path) -> Option<LiveState> {
    let text = plain_file::read(&directory.join(LIVE)).ok()?;
    let mut state: LiveState = serde_json::from_slice(&text).ok()?;
    // The file may name the folder of another run, so use the requested one.
    state.directory = std::path::absolute(directory).ok()?;
    is_locked(directory).then_some(state)
}

/// Whether this process holds the lock of the run directory. Any user can write any number into
/// `live.json` of their own folder, but the kernel lists the locks of each process by open file
/// (proc_pid_fdinfo(5)).
pub fn is_locked_by(directory: &Path, process: u32) -> bool {
    let wanted = std::fs::metadata(directory);
    let Some(wanted) = wanted.ok().filter(Metadata::is_dir) else {
        return false;
    };
    let process = PathBuf::from(format!("/proc/{process}"));
    let files = std::fs::read_dir(process.join("fd"));
    files.into_iter().flatten().flatten().any(|file| {
        let is_wanted = std::fs::metadata(file.path()).is_ok_and(|open| is_same(&open, &wanted));
        let facts = process.join("fdinfo").join(file.file_name());
        let facts = is_wanted.then(|| std::fs::read_to_string(facts).unwrap_or_default());
        facts.is_some_and(|facts| {
            let mut locks = facts.lines().filter(|line| line.starts_with("lock:"));
            locks.any(|lock| lock.contains("FLOCK") && lock.contains("WRITE"))
        })
    })
}

/// Whether a process is at work in the folder of a run or an experiment.
pub fn is_locked(directory: &Path) -> bool {
    let file = File::open(directory);
    file.is_ok_and(|file| file.try_lock_shared().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::interval::WindowCounts;

    fn window(index: u64, succeeded: u64) -> IntervalRecord {
        IntervalRecord {
            duration_ns: 1_000_000_000,
            counts: WindowCounts { succeeded, failed: 1, ..WindowCounts::default() },
            ..IntervalRecord::empty(PhaseKind::Measure, index, index * 1_000_000_000)
        }
    }

    #[test]
    fn run_is_listed_only_while_it_is_running() {
        let (state_dir, run) = (
            tempfile::tempdir().expect("there is room"),
            tempfile::tempdir().expect("there is room"),
        );
        let claimed = crate::folder::ClaimedFolder::open(run.path()).expect("it is free");
        let mut live = Live::new(
            run.path(),
            "a",
            "2026-01-01T00:00:00Z".into(),
            Some(state_dir.path()),
            Box::new(()),
        );
        live.phase_started(&Expectation {
            kind: PhaseKind::Measure,
            duration: Some(std::time::Duration::from_secs(60)),
            operations: None,
        });
        for index in 0..20 {
            live.window(&window(index, if index < 10 { 100 } else { 50 }));
        }
        let seen = running(state_dir.path());
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].done, seen[0].failed, seen[0].elapsed_s), (1_500, 20, 20.0));
        assert_eq!(seen[0].rate_per_s, Some(50.0));
        assert_eq!(seen[0].timeline_per_s.len(), 20);
        live.phase_started(&Expectation {
            kind: PhaseKind::Measure,
            duration: None,
            operations: None,
        });
        let next = read(run.path()).expect("it is running");
        let figures = (next.rate_per_s, next.response_p50_us, next.timeline_per_s.len());
        assert_eq!(figures, (None, None, 0), "of the phase before");
        assert!(is_locked_by(run.path(), std::process::id()));
        drop((live, claimed));
        assert!(!is_locked_by(run.path(), std::process::id()));
        assert_eq!(running(state_dir.path()), []);
        assert_eq!(read(run.path()), None);
    }

    #[test]
    fn entry_of_a_killed_process_is_removed() {
        let state_dir = tempfile::tempdir().expect("there is room");
        let folder = state_dir.path().join(RUNNING);
        std::fs::create_dir_all(&folder).expect("there is room");
        let run = tempfile::tempdir().expect("there is room");
        let left_behind = serde_json::to_vec(&LiveState::default()).expect("it is plain data");
        std::fs::write(run.path().join(LIVE), left_behind).expect("there is room");
        let entry = folder.join("1");
        std::fs::write(&entry, run.path().as_os_str().as_encoded_bytes()).expect("there is room");
        assert_eq!(read(run.path()), None);
        assert_eq!(running(state_dir.path()), []);
        assert!(!entry.exists());
    }

    #[test]
    fn entry_is_not_written_through_a_link_and_partials_are_skipped() {
        let state_dir = tempfile::tempdir().expect("there is room");
        let folder = state_dir.path().join(RUNNING);
        std::fs::create_dir_all(&folder).expect("there is room");
        let other = state_dir.path().join("other");
        std::fs::write(&other, "theirs").expect("there is room");
        let run = tempfile::tempdir().expect("there is room");
        let place = folder.join(std::process::id().to_string());
        std::os::unix::fs::symlink(&other, &place).expect("it can be made");
        let entry = make_entry(state_dir.path(), run.path()).expect("it can be written");
        assert!(entry == place && !entry.is_symlink());
        let kept = std::fs::read_to_string(&other).expect("it is there");
        assert_eq!(kept, "theirs");
        let half = folder.join(".dyno-x1");
        std::fs::write(&half, "/no/such/run").expect("there is room");
        assert_eq!(running(state_dir.path()), []);
        assert!(half.exists(), "its writer may be at work");
    }

    #[test]
    fn rate_history_of_a_long_phase_is_bounded_and_even() {
        let mut timeline = RateHistory::default();
        for window in 0..10_000 {
            timeline.add(if window < 5_000 { 100.0 } else { 20.0 }, 1.0);
        }
        let points = timeline.per_s();
        assert!(
            points.len() > MOST_POINTS / 2 - 2 && points.len() <= MOST_POINTS,
            "{}",
            points.len()
        );
        assert_eq!((points[0], points[points.len() - 2]), (100.0, 20.0));
        let half = points.iter().filter(|rate| **rate > 60.0).count() as f64;
        assert!((half / points.len() as f64 - 0.5).abs() < 0.03);
        let done: f64 = timeline.points.iter().map(|(done, _)| done).sum();
        assert_eq!(done, 600_000.0);
    }

    #[test]
    fn bars_go_from_zero_to_the_largest_value() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0], 10), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0], 10), "▁▁");
        assert_eq!(sparkline(&[], 10), "");
        assert_eq!(sparkline(&vec![1.0; 1_000], 40).chars().count(), 40);
    }
}
