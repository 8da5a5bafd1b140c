//! Resources that this process has used since it started.

use crate::health::{Health, Reading};
use crate::stat::{ProcessStat, cores};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Prefix of the names of the load engine's worker threads.
pub(crate) const WORKER: &str = "worker-";

/// CPU time and memory of this process, all threads included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode since the process started.
    pub user_ns: u64,
    /// CPU time in the kernel since the process started.
    pub system_ns: u64,
    /// Largest resident set so far.
    pub max_rss_bytes: u64,
    /// Current resident set; `None` without `/proc`.
    pub current_rss_bytes: Option<u64>,
}

/// Reads what this process has used. Costs one system call and one small file, so it is cheap
/// enough for once a second.
pub fn usage_self() -> Usage {
    let usage = getrusage(UsageWho::RUSAGE_SELF)
        .expect("the call fails only for a wrong argument, and this one is right");
    Usage {
        user_ns: nanoseconds(usage.user_time()),
        system_ns: nanoseconds(usage.system_time()),
        max_rss_bytes: u64::try_from(usage.max_rss()).unwrap_or(0) * 1024,
        current_rss_bytes: resident_bytes(Path::new("/"), "self", page_bytes()).ok(),
    }
}

fn nanoseconds(time: TimeVal) -> u64 {
    u64::try_from(time.num_nanoseconds()).unwrap_or(0)
}

/// CPU time of processes since the machine started.
#[derive(Clone, Copy, Debug)]
pub struct ProcessTime {
    /// Online CPUs.
    pub cpus: usize,
    all_s: f64,
    /// The part of this process and of its children that have ended.
    own_s: f64,
    read: Instant,
}

impl ProcessTime {
    /// Reads it now; `None` without `/proc`.
    pub fn read() -> Option<ProcessTime> {
        let of_children = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
        let of_this = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        let own_ns = [of_children, of_this]
            .map(|usage| nanoseconds(usage.user_time()) + nanoseconds(usage.system_time()));
        let text = fs::read_to_string("/proc/stat").ok()?;
        let ticks: Vec<u64> =
            cores(&text).map(|(_, core)| core.user + core.nice + core.system).collect();
        Some(ProcessTime {
            cpus: ticks.len(),
            all_s: ticks.iter().sum::<u64>() as f64 / ticks_per_s(),
            own_s: own_ns.iter().sum::<u64>() as f64 * 1e-9,
            read: Instant::now(),
        })
    }

    /// CPUs that other processes used on average since an earlier reading.
    pub fn of_others_since(&self, before: &ProcessTime) -> f64 {
        let others_s = (self.all_s - before.all_s) - (self.own_s - before.own_s);
        others_s.max(0.0) / (self.read - before.read).as_secs_f64()
    }
}

/// Size of a page of memory.
pub(crate) fn page_bytes() -> u64 {
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| u64::try_from(size).ok()).unwrap_or(4096)
}

/// Ticks per second of the kernel's CPU times.
pub(crate) fn ticks_per_s() -> f64 {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    ticks.map_or(100.0, |ticks| ticks as f64)
}

/// Resident memory of a process; `None` if it has ended.
pub fn resident_bytes_of(pid: u32) -> Option<u64> {
    resident_bytes(Path::new("/"), &pid.to_string(), page_bytes()).ok()
}

/// Start time of a live process, which distinguishes it from a later one with the same number.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let stat = ProcessStat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    (!stat.has_ended()).then_some(stat.start_ticks)
}

/// Reads the resident set: the second number of `statm`, in pages.
fn resident_bytes(root: &Path, process: &str, page_bytes: u64) -> Reading<u64> {
    let path = root.join(format!("proc/{process}/statm"));
    let text = fs::read_to_string(&path).map_err(|error| Health::from_io(&path, &error))?;
    let pages = text.split_ascii_whitespace().nth(1);
    let pages: Option<u64> = pages.and_then(|pages| pages.parse().ok());
    pages
        .map(|pages| pages * page_bytes)
        .ok_or_else(|| Health::not_understood(&path, "resident set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_set_is_the_second_number_of_statm() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/self");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("statm"), "2345 678 400 12 0 150 0\n").unwrap();
        assert_eq!(resident_bytes(root.path(), "self", 4096), Ok(678 * 4096));
        fs::write(folder.join("statm"), "2345\n").unwrap();
        assert!(matches!(resident_bytes(root.path(), "self", 4096), Err(Health::Degraded { .. })));
        fs::remove_file(folder.join("statm")).unwrap();
        assert!(matches!(
            resident_bytes(root.path(), "self", 4096),
            Err(Health::Unsupported { .. })
        ));
    }

    #[test]
    fn time_of_others_excludes_own_time() {
        let read = Instant::now();
        let before = ProcessTime { cpus: 2, all_s: 100.0, own_s: 10.0, read };
        let later = read + std::time::Duration::from_secs(2);
        let after = ProcessTime { cpus: 2, all_s: 106.0, own_s: 13.0, read: later };
        assert_eq!(after.of_others_since(&before), 1.5);
        // Coarse ticks may make it negative.
        let idle = ProcessTime { all_s: 102.9, ..after };
        assert_eq!(idle.of_others_since(&before), 0.0);
        assert!(ProcessTime::read().is_some_and(|now| now.cpus > 0 && now.all_s >= now.own_s));
    }

    #[test]
    fn work_shows_as_cpu_time_and_memory() {
        let before = usage_self();
        let mut data = vec![1u8; 64 << 20];
        // Some kernels count CPU time in ticks, so work until one shows.
        let mut after = usage_self();
        while after.user_ns + after.system_ns == before.user_ns + before.system_ns {
            data.iter_mut().for_each(|byte| *byte = std::hint::black_box(byte.wrapping_mul(3)));
            after = usage_self();
        }
        assert!(after.user_ns >= before.user_ns && after.system_ns >= before.system_ns);
        assert!(after.max_rss_bytes >= 64 << 20, "{after:?}");
        assert!(after.current_rss_bytes.unwrap() >= 64 << 20, "{after:?}");
        drop(data);
    }
}
