//! Counters that the kernel reports only per thread: time on a CPU and waiting for one, context
//! switches, and time waiting for disks. The files of a process contain only the first thread's
//! counters.
//! Sources: `Documentation/scheduler/sched-stats.rst` of Linux, `proc_pid_status(5)`.

use super::file::{Content, first_numbers, health, is_gone};
use super::present::Present;
use crate::health::Reading;
use crate::process::WORKER;
use crate::stat::ProcessStat;
use dyno_record::names::CLIENT;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Largest number of threads whose files are read: each active one has two or three files, at some
/// microseconds each. If there are more threads, only those with a number divisible by a power of
/// two are read and represent the others.
pub(super) const MOST_THREADS: u64 = 512;

/// Indexes of the counters of a thread.
pub(super) const RUN_NS: usize = 0;
pub(super) const WAIT_NS: usize = 1;
pub(super) const VOLUNTARY: usize = 2;
pub(super) const INVOLUNTARY: usize = 3;
pub(super) const IO_DELAY_TICKS: usize = 4;
type Totals = [u64; 5];

/// A thread at the previous reading.
#[derive(Clone, Copy, Debug)]
struct Thread {
    totals: Totals,
    /// The numbers of its `schedstat`, including how often it was put on a CPU.
    scheduled: [Option<u64>; 3],
    is_worker: bool,
}

/// The sampling interval: one of this many threads is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample(u64);

impl Default for Sample {
    fn default() -> Self {
        Sample(1)
    }
}

impl Sample {
    /// The sampling for this many threads. It becomes finer only once there are far fewer threads,
    /// so that it changes rarely.
    fn for_threads(self, threads: u64) -> Sample {
        let is_coarse = threads.saturating_mul(4) < MOST_THREADS * self.0;
        if threads > MOST_THREADS * self.0 || is_coarse {
            Sample(threads.div_ceil(MOST_THREADS).max(1).next_power_of_two())
        } else {
            self
        }
    }

    fn has(self, number: u32) -> bool {
        u64::from(number).is_multiple_of(self.0)
    }
}

/// The threads of a process.
#[derive(Debug, Default)]
pub(super) struct Threads {
    last_s: Option<f64>,
    /// Each thread that is read represents this many.
    sample: Sample,
    /// `None` if a thread is new.
    known: Present<u32, Option<Thread>>,
    content: Content,
    /// Buffer for the name of a file.
    name: String,
    /// Whether the process is the load generator, whose worker threads are counted separately.
    has_workers: bool,
}

/// CPU time and waits of the load generator's worker threads between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WorkerGrowth {
    /// Number of workers that existed at both readings.
    pub(super) count: f64,
    run_ns: f64,
    wait_ns: f64,
}

impl WorkerGrowth {
    /// The kernel counts a wait when it ends, so the part before the previous reading is
    /// subtracted.
    fn add(&mut self, duration_s: f64, grown: &Totals) {
        let all_ns = duration_s * 1e9;
        let run_ns = (grown[RUN_NS] as f64).min(all_ns);
        self.count += 1.0;
        self.run_ns += run_ns;
        self.wait_ns += (grown[WAIT_NS] as f64).min(all_ns - run_ns);
    }
}

/// Activity of a process's threads between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThreadGrowth {
    duration_s: f64,
    sums: Totals,
    busiest_ns: u64,
    pub(super) workers: WorkerGrowth,
    /// Time on CPUs since the process started, of the live threads.
    pub(super) total_run_ns: u64,
}

impl ThreadGrowth {
    /// Sum over the threads, per second.
    pub(super) fn per_s(&self, place: usize) -> f64 {
        self.sums[place] as f64 / self.duration_s
    }

    /// Scales the sums of the sampled threads to all threads.
    fn scale(&mut self, all: u64, seen: u64) {
        if seen < all && seen > 0 {
            let factor = all as f64 / seen as f64;
            for sum in &mut self.sums {
                *sum = (*sum as f64 * factor).round() as u64;
            }
            let workers = &mut self.workers;
            for sum in [&mut workers.count, &mut workers.run_ns, &mut workers.wait_ns] {
                *sum *= factor;
            }
        }
    }

    /// CPUs used by the worker threads, and the mean number of workers that waited for one.
    pub(super) fn workers_per_s(&self) -> [f64; 2] {
        let workers = &self.workers;
        [workers.run_ns, workers.wait_ns].map(|ns| ns / 1e9 / self.duration_s)
    }

    /// Share of the time in which the busiest thread had a CPU.
    pub(super) fn busiest_ratio(&self) -> f64 {
        self.busiest_ns as f64 / 1e9 / self.duration_s
    }
}

impl Threads {
    /// The threads of the process with this name in metrics.
    pub(super) fn of(process: &str) -> Threads {
        Threads { has_workers: process == CLIENT, ..Threads::default() }
    }

    /// Chooses which of the threads are read. After the choice changes, the next reading is a first
    /// one.
    fn choose(&mut self, threads: u64) {
        let sample = self.sample.for_threads(threads);
        if sample != self.sample {
            *self = Threads { sample, has_workers: self.has_workers, ..Threads::default() };
        }
    }

    /// Reads the files of the `threads` threads of the process whose folder in `/proc` is
    /// `process`; files with the disk delay only if the kernel counts it. `None` at the first
    /// reading. Activity of threads that ended since the previous reading is lost.
    pub(super) fn read(
        &mut self,
        process: &Path,
        threads: u64,
        at_s: f64,
        with_delay: bool,
    ) -> Reading<Option<ThreadGrowth>> {
        self.choose(threads);
        let folder = process.join("task");
        let failed = |error: io::Error| health(&folder, &error);
        let entries = fs::read_dir(&folder).map_err(failed)?;
        // Opening files relative to this folder saves resolving the path from the root.
        let tasks = File::open(&folder).map_err(failed)?;
        let before_s = self.last_s.replace(at_s);
        let mut growth = ThreadGrowth {
            duration_s: before_s.map_or(0.0, |before_s| at_s - before_s),
            sums: Totals::default(),
            busiest_ns: 0,
            workers: WorkerGrowth::default(),
            total_run_ns: 0,
        };
        let (mut all, mut seen) = (0_u64, 0_u64);
        self.known.begin();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            all += 1;
            if !self.sample.has(number) {
                continue;
            }
            seen += 1;
            let before = *self.known.see(&number, || None);
            let read = self.thread(&tasks, number, before.as_ref(), with_delay);
            let Some(thread) = read.map_err(failed)? else {
                continue;
            };
            *self.known.see(&number, || None) = Some(thread);
            growth.total_run_ns += thread.totals[RUN_NS];
            let grown = grown(&thread.totals, before.map(|before| before.totals).as_ref());
            for (sum, grown) in growth.sums.iter_mut().zip(grown) {
                *sum += grown;
            }
            growth.busiest_ns = growth.busiest_ns.max(grown[RUN_NS]);
            // A new worker covers only a part of the time.
            if thread.is_worker && before.is_some() {
                growth.workers.add(growth.duration_s, &grown);
            }
        }
        self.known.end();
        growth.scale(all, seen);
        Ok((growth.duration_s > 0.0).then_some(growth))
    }

    /// The counters of a thread; `None` if it has ended.
    fn thread(
        &mut self,
        tasks: &File,
        number: u32,
        before: Option<&Thread>,
        with_delay: bool,
    ) -> io::Result<Option<Thread>> {
        // Kernels without it lack this file; the process's reader reports that.
        let text = self.text(tasks, number, "schedstat")?;
        let scheduled = first_numbers(text.unwrap_or(""));
        // A thread without CPU time since then did nothing else either. If CPU time is not counted,
        // it is 0.
        let has_run = scheduled[RUN_NS].is_some_and(|run_ns| run_ns > 0);
        if let Some(before) = before.filter(|before| has_run && before.scheduled == scheduled) {
            return Ok(Some(*before));
        }
        let is_worker = match before {
            Some(before) if before.is_worker => true,
            // A thread gets its name after it was started.
            _ => self.has_workers && self.is_worker(tasks, number)?,
        };
        let mut totals = Totals::default();
        totals[RUN_NS] = scheduled[RUN_NS].unwrap_or(0);
        totals[WAIT_NS] = scheduled[WAIT_NS].unwrap_or(0);
        let Some(status) = self.text(tasks, number, "status")? else {
            return Ok(None);
        };
        [totals[VOLUNTARY], totals[INVOLUNTARY]] = switches(status);
        if with_delay && let Some(text) = self.text(tasks, number, "stat")? {
            let stat = ProcessStat::parse(text);
            totals[IO_DELAY_TICKS] = stat.and_then(|stat| stat.io_delay_ticks).unwrap_or(0);
        }
        Ok(Some(Thread { totals, scheduled, is_worker }))
    }

    fn is_worker(&mut self, tasks: &File, thread: u32) -> io::Result<bool> {
        let name = self.text(tasks, thread, "comm")?;
        Ok(name.is_some_and(|name| name.starts_with(WORKER)))
    }

    /// A file of a thread; `None` if it does not exist.
    fn text(&mut self, tasks: &File, thread: u32, file: &str) -> io::Result<Option<&str>> {
        self.name.clear();
        write!(self.name, "{thread}/{file}").expect("writing to a string cannot fail");
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let read = openat(tasks, self.name.as_str(), flags, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|file| self.content.read_piece(&File::from(file)));
        match read {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Voluntary and involuntary context switches of a thread, from the last lines of its `status`.
fn switches(status: &str) -> [u64; 2] {
    let mut found = [0; 2];
    for line in status.lines().rev() {
        let Some((name, count)) = line.split_once(':') else {
            continue;
        };
        let count = count.trim().parse().unwrap_or(0);
        match name {
            "nonvoluntary_ctxt_switches" => found[1] = count,
            "voluntary_ctxt_switches" => {
                found[0] = count;
                break;
            }
            _ => {}
        }
    }
    found
}

/// Growth of the totals. A thread that is new, or reuses the number of an ended one, has grown by
/// all of its totals.
fn grown(totals: &Totals, before: Option<&Totals>) -> Totals {
    let Some(before) = before else {
        return *totals;
    };
    let mut grown = Totals::default();
    for place in 0..grown.len() {
        match totals[place].checked_sub(before[place]) {
            Some(growth) => grown[place] = growth,
            None => return *totals,
        }
    }
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Health;
    use crate::host::tests::Fixture;

    /// Files of a thread: time on a CPU, time waiting, switches, ticks of delay.
    fn thread(
        fixture: Fixture,
        number: u32,
        [run_ns, wait_ns, voluntary, involuntary, delay]: Totals,
    ) -> Fixture {
        let file = |name: &str| format!("proc/7/task/{number}/{name}");
        let delay = format!("7 (x) S{} 0 {delay} 0\n", " 1".repeat(37));
        fixture
            .with(&file("schedstat"), &format!("{run_ns} {wait_ns} 9\n"))
            .with(
                &file("status"),
                &format!(
                    "Name:\tx\nvoluntary_ctxt_switches:\t{voluntary}\n\
                     nonvoluntary_ctxt_switches:\t{involuntary}\nx86_Thread_features:\t\n"
                ),
            )
            .with(&file("stat"), &delay)
    }

    fn read(threads: &mut Threads, fixture: &Fixture, at_s: f64) -> Option<ThreadGrowth> {
        let process = fixture.root().join("proc/7");
        let count = fs::read_dir(process.join("task")).unwrap().count() as u64;
        threads.read(&process, count, at_s, true).unwrap()
    }

    #[test]
    fn thread_counters_are_summed_and_the_busiest_is_found() {
        let mut threads = Threads::default();
        let fixture = thread(Fixture::new(), 7, [1_000, 0, 10, 5, 3]);
        let fixture = thread(fixture, 8, [2_000, 500, 1, 1, 0]);
        assert_eq!(read(&mut threads, &fixture, 1.0), None);
        let fixture = thread(fixture, 7, [500_001_000, 100, 14, 6, 53]);
        let fixture = thread(fixture, 8, [1_500_002_000, 400_000_500, 3, 2, 0]);
        let growth = read(&mut threads, &fixture, 3.0).unwrap();
        assert_eq!(growth.sums, [2_000_000_000, 400_000_100, 6, 2, 50]);
        assert_eq!(growth.busiest_ratio(), 0.75);
        assert_eq!(growth.per_s(VOLUNTARY), 3.0);
        assert_eq!(growth.total_run_ns, 2_000_003_000);
    }

    #[test]
    fn client_workers_are_counted_separately() {
        let mut threads = Threads::of(CLIENT);
        let mut others = Threads::of("server");
        let fixture = thread(Fixture::new(), 7, [1_000, 0, 0, 0, 0]);
        let fixture = thread(fixture, 8, [0, 0, 0, 0, 0]).with("proc/7/task/8/comm", "worker-0\n");
        let fixture = fixture.with("proc/7/task/7/comm", "dyno\n");
        read(&mut threads, &fixture, 1.0);
        read(&mut others, &fixture, 1.0);
        // The other threads waited longer than one thread could.
        let fixture = thread(fixture, 7, [1_000, 1_500_000_000, 1, 0, 0]);
        let fixture = thread(fixture, 8, [200_000_000, 300_000_000, 1, 0, 0]);
        // A new worker does not cover the whole time.
        let fixture = thread(fixture, 9, [1_000_000_000, 0, 1, 0, 0])
            .with("proc/7/task/9/comm", "worker-1\n");
        let growth = read(&mut threads, &fixture, 2.0).unwrap();
        assert_eq!(growth.sums[WAIT_NS], 1_800_000_000);
        assert_eq!(growth.workers.count, 1.0);
        assert_eq!(growth.workers_per_s(), [0.2, 0.3]);
        let fixture = thread(fixture, 8, [300_000_000, 4_300_000_000, 2, 0, 0]);
        let growth = read(&mut threads, &fixture, 3.0).unwrap();
        assert_eq!((growth.workers.count, growth.workers_per_s()), (2.0, [0.1, 0.9]));
        read(&mut others, &fixture, 2.0);
        let growth = read(&mut others, &fixture, 3.0).unwrap();
        assert_eq!(growth.workers, WorkerGrowth::default());
    }

    #[test]
    fn new_thread_counts_from_its_start_and_ended_one_stops() {
        let mut threads = Threads::default();
        let fixture = thread(Fixture::new(), 7, [100, 0, 0, 0, 0]);
        let fixture = thread(fixture, 8, [50, 0, 0, 0, 0]);
        read(&mut threads, &fixture, 1.0);
        fs::remove_dir_all(fixture.root().join("proc/7/task/8")).unwrap();
        let fixture = thread(fixture, 9, [30, 0, 4, 0, 0]);
        assert_eq!(read(&mut threads, &fixture, 2.0).unwrap().sums, [30, 0, 4, 0, 0]);
        // The number is reused.
        let fixture = thread(fixture, 9, [10, 0, 1, 0, 0]);
        assert_eq!(read(&mut threads, &fixture, 3.0).unwrap().sums, [10, 0, 1, 0, 0]);
    }

    #[test]
    fn thread_without_new_cpu_time_is_skipped_if_it_is_counted() {
        let mut threads = Threads::default();
        let fixture = thread(Fixture::new(), 7, [100, 0, 5, 0, 0]);
        let fixture = thread(fixture, 8, [0, 0, 5, 0, 0]);
        read(&mut threads, &fixture, 1.0);
        let fixture = thread(fixture, 7, [100, 0, 6, 0, 0]);
        let fixture = thread(fixture, 8, [0, 0, 7, 0, 0]);
        let growth = read(&mut threads, &fixture, 2.0).unwrap();
        assert_eq!(growth.sums, [0, 0, 2, 0, 0]);
        // Growth that was skipped is reported once the thread runs.
        let fixture = thread(fixture, 7, [130, 0, 9, 0, 0]);
        let growth = read(&mut threads, &fixture, 3.0).unwrap();
        assert_eq!(growth.sums, [30, 0, 4, 0, 0]);
    }

    #[test]
    fn sampled_threads_stand_for_very_many() {
        let many = MOST_THREADS * 3;
        let process = |fixture: &Fixture| fixture.root().join("proc/7");
        let files = |fixture: Fixture, factor: u64| {
            let numbers = 8..16_u32;
            numbers.fold(fixture, |fixture, number| {
                let odd = u64::from(number % 4 != 0);
                thread(fixture, number, [1_000 * factor, 200 * factor * (1 + odd), 0, 0, 0])
            })
        };
        let mut threads = Threads::default();
        let fixture = files(Fixture::new(), 1);
        let mut read = |fixture: &Fixture, many: u64, at_s: f64| {
            threads.read(&process(fixture), many, at_s, false).unwrap()
        };
        assert_eq!(read(&fixture, many, 1.0), None);
        let fixture = files(fixture, 11);
        // Two of the eight are read and represent four each.
        let growth = read(&fixture, many, 2.0).unwrap();
        assert_eq!(growth.sums[..2], [8 * 10_000, 8 * 2_000]);
        // A few threads fewer change nothing; with far fewer, all of them are read, which starts
        // anew.
        assert!(read(&fixture, MOST_THREADS, 3.0).is_some());
        assert_eq!(read(&fixture, 8, 4.0), None);
        let fixture = files(fixture, 21);
        let growth = read(&fixture, 8, 5.0).unwrap();
        assert_eq!(growth.sums[..2], [8 * 10_000, 2 * 2_000 + 6 * 4_000]);
    }

    #[test]
    fn missing_thread_files_report_nothing() {
        let fixture = Fixture::new().with("proc/7/task/7/other", "");
        let mut threads = Threads::default();
        read(&mut threads, &fixture, 1.0);
        assert_eq!(read(&mut threads, &fixture, 2.0).unwrap().sums, [0; 5]);
        let gone = threads.read(&fixture.root().join("proc/8"), 1, 3.0, false);
        assert!(matches!(gone, Err(Health::Unsupported { .. })));
    }
}
