//! The threads that read the sources.

use crate::watch::board::Board;
use crate::watch::intake::Intake;
use crate::watch::source::Source;
use dyno_record::model::{SourceHealth, SourceRecord};
use nix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the end of a run waits for a source that is being read.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A last reading is taken if the previous one is older than this share of the interval.
const LAST_READING_RATIO: f64 = 0.2;

/// The time since the start of the run, in seconds, on the clock of the recording windows.
pub type Now = Arc<dyn Fn() -> f64 + Send + Sync>;

/// How readings are stored.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    pub run_directory: PathBuf,
    /// Number of readings per row of a file; more than 1 in long runs.
    pub readings_per_row: u64,
    /// Interval of syncing written data to the disk; `None` syncs only at the end.
    pub sync_every: Option<Duration>,
}

/// Reads sources until it is ended.
pub struct Watcher {
    board: Board,
    threads: Vec<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Watcher {
    /// Starts to read the sources, at once and then each `interval`.
    pub fn start(
        sources: Vec<Box<dyn Source>>,
        interval: Duration,
        output: &OutputOptions,
        now: &Now,
    ) -> Watcher {
        let board = Board::default();
        let mut threads = Vec::new();
        for source in sources {
            let intake = Intake::new(&board, source.description(), interval, output);
            let (end, ended) = mpsc::channel();
            let slot = intake.slot().clone();
            let mut reader = Reader { source, intake, interval, now: Arc::clone(now) };
            let name = "observer".to_owned();
            let thread = std::thread::Builder::new().name(name);
            match thread.spawn(move || reader.run(&ended)) {
                Ok(handle) => threads.push((end, handle)),
                Err(error) => slot.change(|record| {
                    record.health = SourceHealth::Failed;
                    record.reason = Some(format!("cannot start a thread: {error}"));
                }),
            }
        }
        Watcher { board, threads }
    }

    /// The latest reports of the sources.
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Ends reading with a last reading of each source, and returns their records. A source that
    /// hangs is left behind.
    pub fn end(self) -> Vec<SourceRecord> {
        let mut handles = Vec::new();
        for (end, handle) in self.threads {
            // A thread that panicked does not listen.
            let _ = end.send(());
            handles.push(handle);
        }
        let deadline = Instant::now() + END_LIMIT;
        for handle in handles {
            while !handle.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
            if handle.is_finished() {
                let _ = handle.join();
            }
        }
        let latest = self.board.look();
        latest.into_iter().map(|latest| latest.record).collect()
    }
}

/// One source with its thread's state.
struct Reader {
    source: Box<dyn Source>,
    intake: Intake,
    interval: Duration,
    now: Now,
}

impl Reader {
    fn run(&mut self, ended: &mpsc::Receiver<()>) {
        let start = Instant::now();
        let started_s = (self.now)();
        let mut tick: u32 = 0;
        loop {
            self.read(started_s);
            tick += 1;
            let mut late = 0;
            while start + self.interval * tick < Instant::now() {
                tick += 1;
                late += 1;
            }
            if late > 0 {
                self.intake.slot().change(|record| record.missed += late);
            }
            let pause = (start + self.interval * tick).saturating_duration_since(Instant::now());
            match ended.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let last_s = self.intake.last_s();
        let age_s = last_s.map_or(f64::MAX, |last_s| (self.now)() - last_s);
        if age_s > self.interval.as_secs_f64() * LAST_READING_RATIO {
            self.read(started_s);
        }
        self.intake.finish();
        let written_s = thread_cpu_s();
        self.intake.slot().change(|record| record.cpu_s = written_s);
    }

    fn read(&mut self, started_s: f64) {
        let at_s = (self.now)();
        match self.source.read(at_s) {
            Ok(reported) => self.intake.take(at_s, reported.values, &reported.missing),
            Err(health) => self.intake.miss(at_s, &health),
        }
        let lasted_s = (self.now)() - started_s;
        self.intake.cost(thread_cpu_s(), lasted_s);
    }
}

/// CPU time of this thread, in seconds; 0 if the system does not report.
pub fn thread_cpu_s() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{Health, Reading as Result};
    use crate::watch::source::{Description, Reported};
    use dyno_record::metrics::{self, MetricId};
    use dyno_record::model::SourceKind;
    use std::sync::Mutex;

    const INTERVAL: Duration = Duration::from_millis(5);

    /// Reports the result of a closure of the reading's number.
    struct Scripted<F>(&'static str, u64, F);

    impl<F: FnMut(u64) -> Result<Reported> + Send> Source for Scripted<F> {
        fn description(&self) -> Description {
            Description {
                name: self.0.to_owned(),
                kind: SourceKind::Host,
                subject: "a machine".to_owned(),
                of_server: false,
            }
        }

        fn read(&mut self, _: f64) -> Result<Reported> {
            self.1 += 1;
            (self.2)(self.1)
        }
    }

    fn value(value: f64) -> Reported {
        Reported { values: vec![(MetricId::of("a", "x"), value)], missing: Vec::new() }
    }

    fn failed() -> Health {
        Health::Failed { reason: "it is gone".to_owned() }
    }

    /// Watches until the record of the first source satisfies a condition, and returns the records
    /// and the folder.
    fn watch(
        sources: Vec<Box<dyn Source>>,
        is_enough: impl Fn(&SourceRecord) -> bool,
    ) -> (Vec<SourceRecord>, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("there is room");
        let output = OutputOptions {
            run_directory: folder.path().to_owned(),
            readings_per_row: 1,
            sync_every: None,
        };
        let origin = Instant::now();
        let now: Now = Arc::new(move || origin.elapsed().as_secs_f64());
        let watcher = Watcher::start(sources, INTERVAL, &output, &now);
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_enough(&watcher.board().look()[0].record) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        (watcher.end(), folder)
    }

    #[test]
    fn readings_are_kept_with_contiguous_times() {
        let source = Scripted("host", 0, |number| Ok(value(number as f64)));
        let (records, folder) = watch(vec![Box::new(source)], |one| one.readings >= 5);
        let record = &records[0];
        assert_eq!(record.health, SourceHealth::Healthy);
        assert!(record.readings >= 5 && record.cpu_s > 0.0, "{record:?}");
        let (tables, _) = metrics::read(folder.path()).expect("they can be read");
        let table = &tables[0];
        assert_eq!(table.at_s.len() as u64, record.readings);
        assert_eq!(table.duration_s[0], 0.0);
        for row in 1..table.at_s.len() {
            let joined = table.at_s[row] - table.at_s[row - 1];
            assert!((joined - table.duration_s[row]).abs() < 1e-5);
        }
        let values = table.column(&MetricId::of("a", "x")).expect("it was reported");
        assert_eq!(values[..5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn outage_is_reported_with_its_times_and_reading_resumes() {
        let script = |number| match number {
            2 | 3 => Err(failed()),
            _ => Ok(value(1.0)),
        };
        let (records, folder) =
            watch(vec![Box::new(Scripted("server", 0, script))], |one| one.readings >= 4);
        let record = &records[0];
        assert_eq!(record.health, SourceHealth::Degraded);
        assert_eq!(record.outages.len(), 1);
        let outage = &record.outages[0];
        assert!(outage.end_s.expect("it came back") > outage.start_s);
        assert_eq!(outage.reason, "it is gone");
        let (tables, _) = metrics::read(folder.path()).expect("they can be read");
        // The values after the outage do not cover its time.
        assert_eq!(tables[0].at_s.len() as u64, record.readings);
    }

    #[test]
    fn source_that_never_works_is_failed_or_unsupported() {
        let unsupported = || Health::Unsupported { reason: "no such file".to_owned() };
        let sources: Vec<Box<dyn Source>> = vec![
            Box::new(Scripted("a", 0, |_| Err(failed()))),
            Box::new(Scripted("b", 0, move |_| Err(unsupported()))),
        ];
        let (records, folder) = watch(sources, |one| one.missed >= 3);
        assert_eq!(records[0].health, SourceHealth::Failed);
        assert_eq!(records[1].health, SourceHealth::Unsupported);
        assert_eq!(records[1].reason.as_deref(), Some("no such file"));
        assert_eq!(records[0].outages.len(), 1);
        assert!(!folder.path().join(metrics::FOLDER).exists());
    }

    #[test]
    fn absent_part_is_reported_but_not_a_fault() {
        let script = |_| {
            let mut reported = value(1.0);
            let reason = "no sensor".to_owned();
            reported.miss("temperature", Health::Unsupported { reason });
            Ok(reported)
        };
        let (records, _folder) =
            watch(vec![Box::new(Scripted("host", 0, script))], |one| one.readings >= 3);
        assert_eq!(records[0].health, SourceHealth::Healthy);
        assert_eq!(records[0].missing, ["temperature: no sensor"]);
    }

    #[test]
    fn hanging_source_delays_neither_others_nor_the_end() {
        let (release, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let hangs = move |_| {
            let _ = wait.lock().map(|wait| wait.recv());
            Err(failed())
        };
        let sources: Vec<Box<dyn Source>> = vec![
            Box::new(Scripted("host", 0, |number| Ok(value(number as f64)))),
            Box::new(Scripted("server", 0, hangs)),
        ];
        let (records, _folder) = watch(sources, |one| one.readings >= 5);
        assert!(records[0].readings >= 5);
        assert_eq!(records[1].readings, 0);
        drop(release);
    }

    #[test]
    fn full_disk_degrades_the_source_and_the_run_continues() {
        let folder = tempfile::tempdir().expect("there is room");
        // A file instead of the metrics folder.
        std::fs::write(folder.path().join(metrics::FOLDER), "").expect("there is room");
        let output = OutputOptions {
            run_directory: folder.path().to_owned(),
            readings_per_row: 1,
            sync_every: None,
        };
        let source = Scripted("host", 0, |_| Ok(value(1.0)));
        let now: Now = Arc::new(|| 1.0);
        let records = Watcher::start(vec![Box::new(source)], INTERVAL, &output, &now).end();
        assert_eq!(records[0].health, SourceHealth::Degraded);
        assert!(records[0].reason.as_deref().is_some_and(|reason| reason.contains("cannot")));
    }
}
