//! Resource use and waits of some processes: the server and the load generator.

use super::cgroup::ControlGroups;
use super::file::{Content, health, is_gone};
use super::hierarchy::Hierarchies;
use super::part::Part;
use super::threads::{INVOLUNTARY, IO_DELAY_TICKS, Threads, VOLUNTARY, WAIT_NS};
use crate::doctor::network::listener_pid;
use crate::health::{Health, Reading};
use crate::host::{field, number};
use crate::process::{page_bytes, ticks_per_s};
use crate::stat::ProcessStat;
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::names::{self, Metric};
use nix::sys::statfs::{PROC_SUPER_MAGIC, statfs};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether the kernel counts the time that threads wait for disks; off by default since 5.14.
const DELAY_ACCOUNTING: &str = "proc/sys/kernel/task_delayacct";

/// CPU time in ticks after which the finer counters must show work as well.
const SOME_WORK_TICKS: u64 = 10;

/// Initial time between searches for a restarted process; doubles after each unsuccessful search up
/// to [`LAST_PAUSE_S`].
const FIRST_PAUSE_S: f64 = 1.0;
const LAST_PAUSE_S: f64 = 30.0;

/// The watched processes.
pub(super) struct Processes {
    root: PathBuf,
    processes: Vec<Process>,
    /// Why the server's process is not among them.
    unknown: Option<Health>,
    /// Absent until they could be read.
    hierarchies: Option<Hierarchies>,
    /// Absent before the first reading.
    counts_delay: Option<Reading<u64>>,
}

struct Process {
    name: String,
    number: u32,
    /// Its folder in `/proc`.
    folder: PathBuf,
    /// Its start time: another process may get its number.
    start_ticks: Option<u64>,
    /// Set once it has ended.
    end: Option<Health>,
    /// The port on which its successor will listen.
    port: Option<u16>,
    /// Time of the next search for the successor, and the pause before it.
    next_look_s: f64,
    pause_s: f64,
    rates: Rates,
    threads: Threads,
    groups: ControlGroups,
    content: Content,
}

impl Processes {
    pub(super) fn new(
        root: &Path,
        processes: Vec<(String, u32)>,
        ports: &[(String, u16)],
        unknown: Option<Health>,
    ) -> Processes {
        let process = |(name, number): (String, u32)| {
            let port = ports.iter().find(|(known, _)| *known == name);
            Process::new(root, name, number, port.map(|(_, port)| *port))
        };
        Processes {
            root: root.to_owned(),
            processes: processes.into_iter().map(process).collect(),
            unknown,
            hierarchies: None,
            counts_delay: None,
        }
    }

    fn find_hierarchies(&mut self) -> Reading<()> {
        if self.hierarchies.is_none() {
            self.hierarchies = Some(Hierarchies::read(&self.root)?);
        }
        Ok(())
    }
}

impl Part for Processes {
    fn read(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        if let Some(health) = &self.unknown {
            reported.miss("process.server", health.clone());
        }
        if self.processes.is_empty() {
            return Ok(());
        }
        if let Err(health) = self.find_hierarchies() {
            reported.miss("cgroup", health);
        }
        let delay = self.counts_delay.get_or_insert_with(|| number(&self.root, DELAY_ACCOUNTING));
        let counts_delay = matches!(delay, Ok(1..));
        if !counts_delay {
            let reason = format!("the kernel does not count it, see `{DELAY_ACCOUNTING}`");
            reported.miss("process_delay", Health::Unsupported { reason });
        }
        let mut outcome = Ok(());
        for process in &mut self.processes {
            process.look_again(&self.root, at_s);
            let read = process.read(at_s, counts_delay, reported);
            if let (Ok(()), Some(hierarchies)) = (&read, &self.hierarchies) {
                process.groups.read(&process.folder, hierarchies, at_s, reported);
            }
            outcome = outcome.and(read);
        }
        outcome
    }
}

impl Process {
    fn new(root: &Path, name: String, number: u32, port: Option<u16>) -> Process {
        Process {
            folder: root.join(format!("proc/{number}")),
            start_ticks: None,
            end: None,
            port,
            next_look_s: 0.0,
            pause_s: 0.0,
            rates: Rates::default(),
            threads: Threads::of(&name),
            groups: ControlGroups::new(&name),
            content: Content::default(),
            name,
            number,
        }
    }

    /// Switches to the successor if the process has ended and the successor is found. Searches
    /// become less frequent because each one inspects all processes.
    fn look_again(&mut self, root: &Path, at_s: f64) {
        let Some(port) = self.port.filter(|_| self.end.is_some()) else {
            return;
        };
        if at_s < self.next_look_s {
            return;
        }
        self.pause_s = (self.pause_s * 2.0).clamp(FIRST_PAUSE_S, LAST_PAUSE_S);
        self.next_look_s = at_s + self.pause_s;
        if let Ok(number) = listener_pid(root, port) {
            let name = std::mem::take(&mut self.name);
            *self = Process::new(root, name, number, Some(port));
        }
    }

    fn read(&mut self, at_s: f64, counts_delay: bool, reported: &mut Reported) -> Reading<()> {
        let stat = self.stat()?;
        self.rates.begin(at_s);
        self.report_cpu(&stat, reported);
        let [read, written] = self.io_bytes(reported).map_or([None; 2], |bytes| bytes.map(Some));
        let totals = [
            (names::process::MINOR_FAULTS_PER_S, Some(stat.minor_faults)),
            (names::process::MAJOR_FAULTS_PER_S, Some(stat.major_faults)),
            (names::process::READ_BYTES_PER_S, read),
            (names::process::WRITE_BYTES_PER_S, written),
        ];
        for (metric, total) in totals {
            reported.put_rate(&mut self.rates, metric.of(&self.name), total, 1.0);
        }
        let resident = stat.resident_pages.map(|pages| (pages * page_bytes()) as f64);
        reported.put_if_known(names::process::RESIDENT_BYTES.of(&self.name), resident);
        reported.put(names::process::THREADS_COUNT.of(&self.name), stat.threads as f64);
        let id = names::process::OPEN_FILES_COUNT.of(&self.name);
        reported.note("process_open_files", id, open_files(&self.folder.join("fd")));
        self.report_threads(&stat, at_s, counts_delay, reported);
        Ok(())
    }

    fn report_cpu(&mut self, stat: &ProcessStat, reported: &mut Reported) {
        let mut share = |metric: Metric, ticks: u64| {
            let id = metric.of(&self.name);
            let share = self.rates.per_s(&id, ticks as f64).map(|ticks| ticks / ticks_per_s());
            reported.put_if_known(id, share);
            share
        };
        let user = share(names::process::CPU_USER_RATIO, stat.user_ticks);
        let system = share(names::process::CPU_SYSTEM_RATIO, stat.system_ticks);
        let both = user.zip(system).map(|(user, system)| user + system);
        reported.put_if_known(names::process::CPU_RATIO.of(&self.name), both);
    }

    /// Its counters, if it is still the same process.
    fn stat(&mut self) -> Reading<ProcessStat> {
        if let Some(health) = &self.end {
            return Err(health.clone());
        }
        let path = self.folder.join("stat");
        let stat = match self.content.read(&path) {
            Ok(text) => ProcessStat::parse(text)
                .ok_or_else(|| Health::not_understood(&path, "counters of a process"))?,
            Err(error) if is_gone(&error) => return Err(self.end()),
            Err(error) => return Err(health(&path, &error)),
        };
        let start_ticks = *self.start_ticks.get_or_insert(stat.start_ticks);
        if stat.has_ended() || stat.start_ticks != start_ticks {
            return Err(self.end());
        }
        Ok(stat)
    }

    fn end(&mut self) -> Health {
        let what = match self.start_ticks {
            Some(_) => "has ended",
            None => "is not there",
        };
        let reason = format!("process {} of `{}` {what}", self.number, self.name);
        let health = Health::Degraded { reason };
        self.end.insert(health).clone()
    }

    /// Bytes read from and written to disks so far, without the page cache.
    fn io_bytes(&mut self, reported: &mut Reported) -> Option<[u64; 2]> {
        let path = self.folder.join("io");
        let found = self.content.read(&path).map_err(|error| health(&path, &error));
        let bytes = found.and_then(|text| {
            let of = |name| field(text, name)?.parse::<u64>().ok();
            let both = of("read_bytes").zip(of("write_bytes"));
            both.map(|(read, written)| [read, written])
                .ok_or_else(|| Health::not_understood(&path, "count of bytes"))
        });
        bytes.map_err(|health| reported.miss("process_io", health)).ok()
    }

    fn report_threads(
        &mut self,
        stat: &ProcessStat,
        at_s: f64,
        counts_delay: bool,
        reported: &mut Reported,
    ) {
        let read = self.threads.read(&self.folder, stat.threads, at_s, counts_delay);
        let growth = match read {
            Ok(Some(growth)) => growth,
            Ok(None) => return,
            Err(health) => return reported.miss("process_threads", health),
        };
        let mut put = |metric: Metric, value: f64| reported.put(metric.of(&self.name), value);
        put(names::process::VOLUNTARY_SWITCHES_PER_S, growth.per_s(VOLUNTARY));
        put(names::process::INVOLUNTARY_SWITCHES_PER_S, growth.per_s(INVOLUNTARY));
        if counts_delay {
            put(names::process::DELAY_IO_RATIO, growth.per_s(IO_DELAY_TICKS) / ticks_per_s());
        }
        let has_worked = stat.user_ticks + stat.system_ticks >= SOME_WORK_TICKS;
        if growth.total_run_ns == 0 && has_worked {
            let reason = "the kernel does not count the time of threads".to_owned();
            return reported.miss("process_wait", Health::Unsupported { reason });
        }
        let mut put = |metric: Metric, value: f64| reported.put(metric.of(&self.name), value);
        put(names::process::CPU_WAIT_RATIO, growth.per_s(WAIT_NS) / 1e9);
        put(names::process::BUSIEST_THREAD_RATIO, growth.busiest_ratio());
        if growth.workers.count > 0.0 {
            let [run, wait] = growth.workers_per_s();
            put(names::process::WORKERS_CPU_RATIO, run);
            put(names::process::WORKERS_WAIT_RATIO, wait);
            put(names::process::WORKERS_COUNT, growth.workers.count);
        }
    }
}

/// Number of open files. Kernels since 6.2 report it as the size of the folder; otherwise the
/// folder is listed.
fn open_files(folder: &Path) -> Reading<f64> {
    let failed = |error: io::Error| health(folder, &error);
    let size = fs::metadata(folder).map_err(failed)?.len();
    let is_of_kernel =
        || statfs(folder).is_ok_and(|found| found.filesystem_type() == PROC_SUPER_MAGIC);
    if size > 0 && is_of_kernel() {
        return Ok(size as f64);
    }
    Ok(fs::read_dir(folder).map_err(failed)?.count() as f64)
}

#[cfg(test)]
mod tests;
