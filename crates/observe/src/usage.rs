//! Busy time of CPUs and disks during a phase: kernel counters that are read about once a second
//! and interpolated linearly.

mod disks;

use self::disks::DiskSampler;
use crate::allowed_cpus;
use crate::process::{WORKER, ticks_per_s};
use crate::stat::{CpuTimes, ProcessStat, cores};
use dyno_record::cpus::AllowedCpus;
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse};
use std::path::{Path, PathBuf};

/// Share of a phase that may be unobserved, at both ends together.
const SLACK_RATIO: f64 = 0.2;
/// Share of a short phase that may be unobserved if the readings are far apart.
const MOST_SLACK_RATIO: f64 = 0.4;
/// Time that a reading may take in addition to its interval.
const READING_SLACK_S: f64 = 0.2;
/// Readings of a sampler are taken about once a second.
const SAMPLING_S: f64 = 1.0;

/// Counters of busy time; each is absent if it cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counters {
    /// CPU time of the servers' processes, user and system.
    server_cpu_s: Option<f64>,
    /// Time in which CPUs of the machine were not idle, summed over all CPUs.
    host_cpu_s: Option<f64>,
    /// Time in which worker threads of this process waited for a CPU.
    client_wait_s: Option<f64>,
}

/// Selects one of the counters.
type Counter = fn(&Counters) -> Option<f64>;

/// Reads the counters of some servers, their machine and their disks.
#[derive(Debug)]
pub struct UsageSampler {
    root: PathBuf,
    servers: Vec<u32>,
    /// CPU time of each server's process as of its last reading.
    server_ticks: Vec<Option<u64>>,
    disks: DiskSampler,
    ticks_per_s: f64,
    /// Largest number of worker threads seen at once.
    workers: u64,
    /// The CPUs of the servers and of the worker threads, as of the last reading.
    server_cpus: Option<AllowedCpus>,
    worker_cpus: Option<AllowedCpus>,
    samples: Vec<(f64, Counters)>,
}

impl UsageSampler {
    /// A sampler for these processes on this machine, and for the devices that hold `data_folders`.
    /// The file tree is below `root`, which is `/` except in tests.
    pub fn new(root: &Path, servers: &[u32], data_folders: &[PathBuf]) -> Self {
        UsageSampler {
            root: root.to_owned(),
            servers: servers.to_vec(),
            server_ticks: vec![None; servers.len()],
            disks: DiskSampler::new(root, data_folders),
            ticks_per_s: ticks_per_s(),
            workers: 0,
            server_cpus: None,
            worker_cpus: None,
            samples: Vec::new(),
        }
    }

    /// Reads the counters. `at_s` is the time now, from the start of the run; it must not decrease.
    pub fn sample(&mut self, at_s: f64) {
        let counters = Counters {
            server_cpu_s: self.server_cpu_s(),
            host_cpu_s: self.host_cpu_s(),
            client_wait_s: self.client_wait_s(),
        };
        self.disks.sample(at_s);
        let threads = self.worker_threads();
        if threads.len() as u64 > self.workers || self.worker_cpus.is_none() {
            self.workers = self.workers.max(threads.len() as u64);
            self.worker_cpus = self.cpus_of(&threads);
        }
        self.server_cpus =
            allowed_cpus::of_processes(&self.root, &self.servers).or(self.server_cpus.take());
        self.samples.push((at_s, counters));
    }

    /// Busy time of each resource from `start_s` to `end_s`. Readings must cover the phase, or at
    /// least come near both ends; the unobserved part is assumed to be like the rest.
    pub fn between(&self, phase: PhaseKind, start_s: f64, end_s: f64) -> Vec<ResourceUse> {
        let workers = Some(self.workers).filter(|workers| *workers > 0);
        let server_cpus = self.server_cpus.as_ref().and_then(AllowedCpus::set);
        let server_cpus = server_cpus.map(|set| set.len() as u64);
        let kinds: [(ResourceKind, Counter, Option<u64>); 3] = [
            (ResourceKind::ServerCpu, |c| c.server_cpu_s, server_cpus),
            (ResourceKind::HostCpu, |c| c.host_cpu_s, self.host_cpus()),
            (ResourceKind::ClientCpuWait, |c| c.client_wait_s, workers),
        ];
        let mut uses: Vec<ResourceUse> = kinds
            .into_iter()
            .filter_map(|(resource, counter, units)| {
                Some(ResourceUse {
                    phase,
                    resource,
                    units: units?,
                    allowed: match resource {
                        ResourceKind::ServerCpu => self.server_cpus.clone(),
                        ResourceKind::ClientCpuWait => self.worker_cpus.clone(),
                        _ => None,
                    },
                    busy_s: self.busy_s(counter, start_s, end_s)?,
                    duration_s: end_s - start_s,
                    reported: None,
                    disks: Vec::new(),
                })
            })
            .collect();
        uses.extend(self.disk_use(phase, start_s, end_s));
        uses
    }

    fn disk_use(&self, phase: PhaseKind, start_s: f64, end_s: f64) -> Option<ResourceUse> {
        let disks = self.disks.between(start_s, end_s);
        (!disks.is_empty()).then(|| ResourceUse {
            phase,
            resource: ResourceKind::Disk,
            units: disks.len() as u64,
            allowed: None,
            busy_s: disks.iter().map(|disk| disk.busy_s).sum(),
            duration_s: end_s - start_s,
            reported: None,
            disks,
        })
    }

    fn busy_s(&self, counter: Counter, start_s: f64, end_s: f64) -> Option<f64> {
        let readings: Vec<(f64, f64)> = self
            .samples
            .iter()
            .filter_map(|(at_s, counters)| Some((*at_s, counter(counters)?)))
            .collect();
        busy_between(&readings, SAMPLING_S, start_s, end_s)
    }

    /// CPU time of all servers. A member that has ended keeps its last value while others run.
    fn server_cpu_s(&mut self) -> Option<f64> {
        let root = &self.root;
        let mut is_running = false;
        for (process, known) in self.servers.iter().zip(&mut self.server_ticks) {
            let text = std::fs::read_to_string(root.join(format!("proc/{process}/stat"))).ok();
            let stat = text.as_deref().and_then(ProcessStat::parse);
            let ticks = stat.map(|stat| stat.user_ticks + stat.system_ticks);
            // Fewer ticks belong to a later process with the same number.
            let ticks = ticks.filter(|ticks| Some(*ticks) >= *known);
            is_running |= ticks.is_some();
            *known = ticks.or(*known);
        }
        let ticks: Option<u64> = self.server_ticks.iter().copied().sum();
        ticks.filter(|_| is_running).map(|ticks| ticks as f64 / self.ticks_per_s)
    }

    fn host_cpu_s(&self) -> Option<f64> {
        let times = CpuTimes::of_all(&self.read("proc/stat")?)?;
        Some(times.busy() as f64 / self.ticks_per_s)
    }

    /// Sums the second field of `schedstat`: the time on a run queue in nanoseconds.
    /// Source: Documentation/scheduler/sched-stats.rst of Linux.
    fn client_wait_s(&self) -> Option<f64> {
        let threads = self.worker_threads();
        let wait_ns: Option<u64> = threads
            .iter()
            .map(|thread| {
                let text = self.read(&format!("proc/self/task/{thread}/schedstat"))?;
                text.split_whitespace().nth(1)?.parse::<u64>().ok()
            })
            .sum();
        wait_ns.filter(|_| !threads.is_empty()).map(|ns| ns as f64 / 1e9)
    }

    /// Threads of this process with the names of the load engine's workers.
    fn worker_threads(&self) -> Vec<u32> {
        let Ok(tasks) = std::fs::read_dir(self.root.join("proc/self/task")) else {
            return Vec::new();
        };
        tasks
            .filter_map(|task| {
                let thread = task.ok()?.file_name().to_str()?.parse().ok()?;
                let name = self.read(&format!("proc/self/task/{thread}/comm"))?;
                name.starts_with(WORKER).then_some(thread)
            })
            .collect()
    }

    /// The CPUs of all worker threads together: each may be pinned to different ones.
    fn cpus_of(&self, threads: &[u32]) -> Option<AllowedCpus> {
        let status = |thread: &u32| format!("proc/self/task/{thread}/status");
        let statuses: Vec<String> = threads.iter().map(status).collect();
        let known = || allowed_cpus::of_threads(&self.root, "self", &statuses).ok();
        (!threads.is_empty()).then(known)?
    }

    fn host_cpus(&self) -> Option<u64> {
        let text = self.read("proc/stat")?;
        Some(cores(&text).count() as u64).filter(|count| *count > 0)
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }
}

/// Growth of a busy time counter from `start_s` to `end_s`, from readings taken about every
/// `interval_s`: instants in order, in seconds, and values. The unobserved part at the ends is
/// assumed to be like the rest. `None` if it is more than a fifth, or, if the interval is long for
/// the time range, more than one interval or two fifths.
pub fn busy_between(
    readings: &[(f64, f64)],
    interval_s: f64,
    start_s: f64,
    end_s: f64,
) -> Option<f64> {
    let (first, last) = (readings.first()?.0, readings.last()?.0);
    let length_s = end_s - start_s;
    // The last reading may be an interval before the end: threads end with their phase, and agents
    // of other hosts keep their interval.
    let interval_slack_s = (interval_s + READING_SLACK_S).min(length_s * MOST_SLACK_RATIO);
    let slack_s = (length_s * SLACK_RATIO).max(interval_slack_s);
    let unseen_s = (first - start_s).max(0.0) + (end_s - last).max(0.0);
    if length_s <= 0.0 || unseen_s > slack_s {
        return None;
    }
    let (from_s, to_s) = (start_s.max(first), end_s.min(last));
    let busy_s = at(readings, to_s)? - at(readings, from_s)?;
    Some(busy_s * length_s / (to_s - from_s))
}

/// The value of a counter at a time between its readings.
fn at(readings: &[(f64, f64)], time_s: f64) -> Option<f64> {
    let after = readings.partition_point(|(at_s, _)| *at_s < time_s);
    let (right_s, right) = *readings.get(after)?;
    if after == 0 || right_s <= time_s {
        return Some(right);
    }
    let (left_s, left) = readings[after - 1];
    Some(left + (right - left) * (time_s - left_s) / (right_s - left_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> (tempfile::TempDir, UsageSampler) {
        let root = tempfile::tempdir().expect("there is room");
        let folder = root.path().join("proc/7");
        std::fs::create_dir_all(&folder).expect("it is new");
        std::fs::write(folder.join("status"), "Name:\tx\nCpus_allowed_list:\t0-2,5\n")
            .expect("it is new");
        let sampler = UsageSampler::new(root.path(), &[7], &[]);
        (root, sampler)
    }

    #[test]
    fn workers_that_wait_for_a_cpu_are_counted() {
        let (root, mut sampler) = fixture();
        for (thread, name) in [(11, "worker-0\n"), (12, "worker-1\n"), (13, "dyno\n")] {
            let folder = root.path().join(format!("proc/self/task/{thread}"));
            std::fs::create_dir_all(&folder).expect("it is new");
            std::fs::write(folder.join("comm"), name).expect("it is new");
        }
        for (at_s, wait_ns) in [(0.0, 0_u64), (2.0, 500_000_000)] {
            for thread in [11, 12, 13] {
                let path = root.path().join(format!("proc/self/task/{thread}/schedstat"));
                std::fs::write(path, format!("9 {wait_ns} 5\n")).expect("there is room");
            }
            sampler.sample(at_s);
        }
        let uses = sampler.between(PhaseKind::Measure, 0.0, 2.0);
        let wait = uses
            .iter()
            .find(|one| one.resource == ResourceKind::ClientCpuWait)
            .map(|one| (one.units, one.busy_s));
        assert_eq!(wait, Some((2, 1.0)));
    }

    #[test]
    fn workers_count_up_to_their_last_reading_in_a_short_phase() {
        let (root, mut sampler) = fixture();
        let task = root.path().join("proc/self/task/11");
        std::fs::create_dir_all(&task).expect("there is room");
        std::fs::write(task.join("comm"), "worker-0\n").expect("there is room");
        for second in 0..4u64 {
            let text = format!("9 {} 5\n", second * 500_000_000);
            std::fs::write(task.join("schedstat"), text).expect("there is room");
            sampler.sample(second as f64);
        }
        std::fs::remove_dir_all(&task).expect("it was there");
        sampler.sample(4.2);
        let wait = |start_s: f64, end_s: f64| {
            let uses = sampler.between(PhaseKind::Measure, start_s, end_s);
            uses.into_iter()
                .find(|one| one.resource == ResourceKind::ClientCpuWait)
                .map(|one| one.busy_s)
        };
        // Half of the observed time.
        let found = wait(0.0, 4.1).expect("a second at the end may be unseen");
        assert!((found - 2.05).abs() < 1e-9, "{found}");
        assert_eq!(wait(0.0, 5.0), None);
    }

    fn set(root: &Path, server: u64, host: u64) {
        let stat = format!("7 (my (server) x) S 1 1 1 0 -1 0 0 0 0 0 {server} 50 0 0 20 0 1 0 9");
        std::fs::write(root.join("proc/7/stat"), stat).expect("there is room");
        let stat =
            format!("cpu  {host} 0 0 999 999 0 0 0 0 0\ncpu0 1 0 0 0\ncpu1 1 0 0 0\nintr 5\n");
        std::fs::write(root.join("proc/stat"), stat).expect("there is room");
    }

    #[test]
    fn busy_time_is_the_difference_of_start_and_end() {
        let (root, mut sampler) = fixture();
        for (at_s, server, host) in [(0.0, 0, 0), (2.0, 100, 400), (4.0, 300, 500), (6.0, 900, 900)]
        {
            set(root.path(), server, host);
            sampler.sample(at_s);
        }
        let uses = sampler.between(PhaseKind::Measure, 1.0, 5.0);
        let of = |kind| {
            let found = uses.iter().find(|one| one.resource == kind);
            found.map(|one| (one.units, one.busy_s, one.duration_s))
        };
        // 50 ticks at 1 s, 600 at 5 s, a hundred ticks a second.
        assert_eq!(of(ResourceKind::ServerCpu), Some((4, 5.5, 4.0)));
        assert_eq!(of(ResourceKind::HostCpu), Some((2, 5.0, 4.0)));
        assert_eq!(of(ResourceKind::Disk), None);
        assert_eq!(of(ResourceKind::ClientCpuWait), None);
    }

    #[test]
    fn member_that_ended_keeps_its_cpu_time() {
        let (root, _) = fixture();
        let folder = |process: u32| root.path().join(format!("proc/{process}"));
        std::fs::create_dir_all(folder(8)).expect("it is new");
        std::fs::copy(folder(7).join("status"), folder(8).join("status")).expect("it is new");
        let set = |process: u32, ticks: u64| {
            let stat = format!("{process} (x) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 9");
            std::fs::write(folder(process).join("stat"), stat).expect("there is room");
        };
        let mut sampler = UsageSampler::new(root.path(), &[7, 8], &[]);
        for (at_s, first, second) in [(0.0, 0, Some(0)), (1.0, 100, Some(200)), (2.0, 300, None)] {
            set(7, first);
            match second {
                Some(ticks) => set(8, ticks),
                None => std::fs::remove_dir_all(folder(8)).expect("it was there"),
            }
            sampler.sample(at_s);
        }
        let uses = sampler.between(PhaseKind::Measure, 0.0, 2.0);
        let server = uses.iter().find(|one| one.resource == ResourceKind::ServerCpu);
        let busy_s = server.expect("a member runs").busy_s;
        assert!((busy_s - 500.0 / ticks_per_s()).abs() < 1e-9, "{busy_s}");
    }

    #[test]
    fn use_is_unknown_without_readings_at_both_ends() {
        let (root, mut sampler) = fixture();
        assert_eq!(sampler.between(PhaseKind::Measure, 0.0, 1.0), []);
        for at_s in [0.0, 5.0] {
            set(root.path(), 10, 10);
            sampler.sample(at_s);
        }
        assert_eq!(sampler.between(PhaseKind::Measure, 4.0, 10.0), []);
        assert_eq!(sampler.between(PhaseKind::Measure, 0.0, 5.2).len(), 2);
        // The server ended: its counter is gone.
        std::fs::remove_file(root.path().join("proc/7/stat")).expect("it was there");
        sampler.sample(10.0);
        let uses = sampler.between(PhaseKind::Measure, 5.0, 10.0);
        assert_eq!(uses.len(), 1, "{uses:?}");
    }

    #[test]
    fn this_machine_can_be_read() {
        let own = std::process::id();
        let mut sampler = UsageSampler::new(Path::new("/"), &[own], &[PathBuf::from("/")]);
        sampler.sample(0.0);
        sampler.sample(1.0);
        let uses = sampler.between(PhaseKind::Measure, 0.0, 1.0);
        assert!(uses.len() >= 2, "{uses:?}");
    }
}
