//! What the kernel reports of each thread only: time on a CPU and waiting for one, context switches, and time
//! waiting for disks. The files of a process have the first thread's alone.
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

/// Most threads whose files are read: each that did something has two or three, at some microseconds each. Of more the ones
/// with numbers that a power of two divides stand for the others.
pub(super) const MOST_THREADS: u64 = 512;

/// Places of the counters of a thread.
pub(super) const RUN_NS: usize = 0;
pub(super) const WAIT_NS: usize = 1;
pub(super) const VOLUNTARY: usize = 2;
pub(super) const INVOLUNTARY: usize = 3;
pub(super) const IO_DELAY_TICKS: usize = 4;
type Totals = [u64; 5];

/// A thread at the reading before.
#[derive(Clone, Copy, Debug)]
struct Thread {
    totals: Totals,
    /// What its `schedstat` said, with the times that it was put on a CPU.
    scheduled: [Option<u64>; 3],
    is_worker: bool,
}

/// Of how many threads one is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample(u64);

impl Default for Sample {
    fn default() -> Self {
        Sample(1)
    }
}

impl Sample {
    /// The one for so many threads. It becomes finer only once there are far fewer, so that it seldom changes.
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
    /// Each thread that is looked at stands for so many.
    sample: Sample,
    /// `None` if a thread is new.
    known: Present<u32, Option<Thread>>,
    content: Content,
    /// Room for the name of a file.
    name: String,
    /// Whether the process is the load generator, whose worker threads are counted separately.
    has_workers: bool,
}

/// CPU time and waits of the load generator's worker threads between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WorkerGrowth {
    /// Those that were there at both readings.
    pub(super) count: f64,
    run_ns: f64,
    wait_ns: f64,
}

impl WorkerGrowth {
    /// The kernel counts a wait when it ends: the part before the last reading is left out.
    fn add(&mut self, duration_s: f64, grown: &Totals) {
        let all_ns = duration_s * 1e9;
        let run_ns = (grown[RUN_NS] as f64).min(all_ns);
        self.count += 1.0;
        self.run_ns += run_ns;
        self.wait_ns += (grown[WAIT_NS] as f64).min(all_ns - run_ns);
    }
}

/// What the threads of a process did between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ThreadGrowth {
    duration_s: f64,
    sums: Totals,
    busiest_ns: u64,
    pub(super) workers: WorkerGrowth,
    /// Time on CPUs since the process was started, of the threads that are alive.
    pub(super) total_run_ns: u64,
}

impl ThreadGrowth {
    /// Sum over the threads, per second.
    pub(super) fn per_s(&self, place: usize) -> f64 {
        self.sums[place] as f64 / self.duration_s
    }

    /// Makes the sums of some threads those of all.
    fn scale(&mut self, all: u64, seen: u64) {
        if seen < all && seen > 0 {
            let factor = all as f64 / seen as f64;
            for sum in &mut self.sums {
                *sum = (*sum as f64 * factor).round() as u64;
            }
            let workers = &mut self.workers;
            for sum in [
                &mut workers.count,
                &mut workers.run_ns,
                &mut workers.wait_ns,
            ] {
                *sum *= factor;
            }
        }
    }

    /// CPUs that the worker threads used, and how many of them waited for one.
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
        Threads {
            has_workers: process == CLIENT,
            ..Threads::default()
        }
    }

    /// Chooses which threads are read of so many. After a change of that the next reading is a first one.
    fn choose(&mut self, threads: u64) {
        let sample = self.sample.for_threads(threads);
        if sample != self.sample {
            *self = Threads {
                sample,
                has_workers: self.has_workers,
                ..Threads::default()
            };
        }
    }

    /// Reads the files of the threads, of which there are `threads`, of the process whose folder in `/proc` is `process`; those with the delay by disks only
    /// if the kernel counts it. `None` at the first reading. What threads did that ended since the reading before is lost.
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
        // The files are opened from here, which saves the way from the root for each.
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
        // Kernels without it have no such file, which the process tells.
        let text = self.text(tasks, number, "schedstat")?;
        let scheduled = first_numbers(text.unwrap_or(""));
        // One that had no CPU since did nothing else either. Where it is not counted, it is 0.
        let has_run = scheduled[RUN_NS].is_some_and(|run_ns| run_ns > 0);
        if let Some(before) = before.filter(|before| has_run && before.scheduled == scheduled) {
            return Ok(Some(*before));
        }
        let is_worker = match before {
            Some(before) if before.is_worker => true,
            // It gets its name after it was started.
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
        Ok(Some(Thread {
            totals,
            scheduled,
            is_worker,
        }))
    }

    fn is_worker(&mut self, tasks: &File, thread: u32) -> io::Result<bool> {
        let name = self.text(tasks, thread, "comm")?;
        Ok(name.is_some_and(|name| name.starts_with(WORKER)))
    }

    /// A file of a thread; `None` if it is not there.
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

/// Context switches that a thread asked for and those that it did not, from its `status`, where they are among the
/// last lines.
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

/// A thread that is new, or has the number of one that ended, has done all that it did since the reading before.
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
    fn threads_are_added_up_and_the_busiest_is_found() {
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
    fn workers_of_the_client_are_counted_by_themselves() {
        let mut threads = Threads::of(CLIENT);
        let mut others = Threads::of("server");
        let fixture = thread(Fixture::new(), 7, [1_000, 0, 0, 0, 0]);
        let fixture = thread(fixture, 8, [0, 0, 0, 0, 0]).with("proc/7/task/8/comm", "worker-0\n");
        let fixture = fixture.with("proc/7/task/7/comm", "dyno\n");
        read(&mut threads, &fixture, 1.0);
        read(&mut others, &fixture, 1.0);
        // The others waited for longer than there is time for one thread.
        let fixture = thread(fixture, 7, [1_000, 1_500_000_000, 1, 0, 0]);
        let fixture = thread(fixture, 8, [200_000_000, 300_000_000, 1, 0, 0]);
        // A worker that is new says nothing of all the time.
        let fixture = thread(fixture, 9, [1_000_000_000, 0, 1, 0, 0])
            .with("proc/7/task/9/comm", "worker-1\n");
        let growth = read(&mut threads, &fixture, 2.0).unwrap();
        assert_eq!(growth.sums[WAIT_NS], 1_800_000_000);
        assert_eq!(growth.workers.count, 1.0);
        assert_eq!(growth.workers_per_s(), [0.2, 0.3]);
        let fixture = thread(fixture, 8, [300_000_000, 4_300_000_000, 2, 0, 0]);
        let growth = read(&mut threads, &fixture, 3.0).unwrap();
        assert_eq!(
            (growth.workers.count, growth.workers_per_s()),
            (2.0, [0.1, 0.9])
        );
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
        assert_eq!(
            read(&mut threads, &fixture, 2.0).unwrap().sums,
            [30, 0, 4, 0, 0]
        );
        // The number is used again.
        let fixture = thread(fixture, 9, [10, 0, 1, 0, 0]);
        assert_eq!(
            read(&mut threads, &fixture, 3.0).unwrap().sums,
            [10, 0, 1, 0, 0]
        );
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
        // What was not looked at is reported once the thread runs.
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
                thread(
                    fixture,
                    number,
                    [1_000 * factor, 200 * factor * (1 + odd), 0, 0, 0],
                )
            })
        };
        let mut threads = Threads::default();
        let fixture = files(Fixture::new(), 1);
        let mut read = |fixture: &Fixture, many: u64, at_s: f64| {
            threads.read(&process(fixture), many, at_s, false).unwrap()
        };
        assert_eq!(read(&fixture, many, 1.0), None);
        let fixture = files(fixture, 11);
        // Two of the eight were looked at, and stand for four each.
        let growth = read(&fixture, many, 2.0).unwrap();
        assert_eq!(growth.sums[..2], [8 * 10_000, 8 * 2_000]);
        // A few fewer change nothing; with far fewer all of them are read, which begins anew.
        assert!(read(&fixture, MOST_THREADS, 3.0).is_some());
        assert_eq!(read(&fixture, 8, 4.0), None);
        let fixture = files(fixture, 21);
        let growth = read(&fixture, 8, 5.0).unwrap();
        assert_eq!(growth.sums[..2], [8 * 10_000, 2 * 2_000 + 6 * 4_000]);
    }

    #[test]
    fn threads_report_nothing_without_their_files() {
        let fixture = Fixture::new().with("proc/7/task/7/other", "");
        let mut threads = Threads::default();
        read(&mut threads, &fixture, 1.0);
        assert_eq!(read(&mut threads, &fixture, 2.0).unwrap().sums, [0; 5]);
        let gone = threads.read(&fixture.root().join("proc/8"), 1, 3.0, false);
        assert!(matches!(gone, Err(Health::Unsupported { .. })));
    }
}
