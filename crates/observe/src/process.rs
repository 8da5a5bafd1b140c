//! Resources that this process has used since it started.

use crate::health::{Health, Reading};
use crate::stat::ProcessStat;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::{SysconfVar, sysconf};
use std::fs;
use std::path::Path;

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
