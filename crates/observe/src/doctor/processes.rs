//! Readers of `/proc/PID`: limits, CPUs, huge pages, memory policy, and other processes' CPU use.

use crate::health::{Health, Reading};
use crate::host::{self, affinity, field, line, text};
use crate::process::ticks_per_s;
use crate::stat::ProcessStat;
use crate::watch::memory_limit;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Limits of a process that are in force; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files that it may open.
    pub open_files: Option<u64>,
    /// Processes and threads that its user may have.
    pub processes: Option<u64>,
}

/// Huge pages of our own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnHugePages {
    /// Whether it may have any (`PR_SET_THP_DISABLE` is inherited by the processes that we start).
    pub allowed: bool,
    /// Amount of its memory in huge pages; `None` if the kernel does not report it.
    pub used_bytes: Option<u64>,
}

/// How the memory of a process is distributed over NUMA nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// On the node of the CPU that touches it first.
    Local,
    /// Alternating over several nodes.
    Interleaved,
    /// On chosen nodes, in the kernel's notation, such as `bind:0`.
    Chosen(String),
}

/// A process that used CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyProcess {
    pub pid: u32,
    pub name: String,
    /// CPU time divided by elapsed time; 1 is one CPU.
    pub cpu_ratio: f64,
}

/// Name of a process.
///
/// # Errors
/// The reason why it cannot be read; the process may not exist.
pub fn name(root: &Path, pid: u32) -> Reading<String> {
    line(root, &format!("proc/{pid}/comm"))
}

/// Identifies the current boot: kernel settings made before it are lost.
///
/// # Errors
/// The reason why it cannot be read.
pub fn boot_id(root: &Path) -> Reading<String> {
    line(root, "proc/sys/kernel/random/boot_id")
}

pub(super) fn limits(root: &Path, path: &str) -> Reading<Limits> {
    let text = text(root, path)?;
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|rest| rest.split_ascii_whitespace().next());
        match word {
            Some("unlimited") => Ok(None),
            Some(number) => number.parse().map(Some).map_err(|_| ()),
            None => Err(()),
        }
        .map_err(|()| Health::not_understood(&root.join(path), name))
    };
    Ok(Limits { open_files: soft("Max open files")?, processes: soft("Max processes")? })
}

pub(super) fn cpus(root: &Path, path: &str) -> Reading<Vec<u64>> {
    affinity(root, path, None)
}

pub(super) fn huge_pages_allowed(root: &Path, path: &str) -> Reading<bool> {
    let text = text(root, path)?;
    match field(&text, "THP_enabled") {
        Some("1") => Ok(true),
        Some("0") => Ok(false),
        // Kernels before 5.0 do not have the line.
        _ => Err(Health::not_understood(&root.join(path), "`THP_enabled`")),
    }
}

pub(super) fn own_huge_pages(root: &Path) -> Reading<OwnHugePages> {
    let allowed = huge_pages_allowed(root, "proc/self/status")?;
    let rollup = text(root, "proc/self/smaps_rollup").unwrap_or_default();
    let kibibytes = field(&rollup, "AnonHugePages").and_then(|value| value.strip_suffix("kB"));
    let kibibytes = kibibytes.and_then(|number| number.trim().parse::<u64>().ok());
    Ok(OwnHugePages { allowed, used_bytes: kibibytes.map(|kibibytes| kibibytes * 1024) })
}

/// The policy of the mapping that holds the most memory.
pub(super) fn policy(root: &Path, path: &str) -> Reading<MemoryPolicy> {
    let text = text(root, path)?;
    let anonymous = |line: &str| -> u64 {
        let pages = line.split(' ').find_map(|word| word.strip_prefix("anon="));
        pages.and_then(|pages| pages.parse().ok()).unwrap_or(0)
    };
    let largest = text.lines().max_by_key(|line| anonymous(line));
    let word = largest.and_then(|line| line.split(' ').nth(1));
    match word {
        Some("default" | "local") => Ok(MemoryPolicy::Local),
        Some(word) if word.starts_with("interleave") || word.starts_with("weighted") => {
            Ok(MemoryPolicy::Interleaved)
        }
        Some(word) => Ok(MemoryPolicy::Chosen(word.to_owned())),
        None => Err(Health::not_understood(&root.join(path), "mappings")),
    }
}

/// Memory that a process may use: the limit of its control groups or the machine's memory; `None` if
/// the kernel does not report it.
pub fn memory_of(pid: u32) -> Option<u64> {
    let root = Path::new("/");
    let machine = host::memory_bytes(root).ok()?;
    let limit = memory_limit(root, &root.join(format!("proc/{pid}")));
    Some(limit.ok().flatten().map_or(machine, |limit| limit.min(machine)))
}

/// Processes that use a smaller share of one CPU are not listed.
const BUSY_RATIO: f64 = 0.02;

/// Measures the CPU time of all processes except `own`.
pub(super) fn busy(root: &Path, watch: Duration, own: &[u32]) -> Reading<Vec<BusyProcess>> {
    if watch.is_zero() {
        return Err(Health::unsupported("processes were not watched"));
    }
    let before = cpu_ticks(root)?;
    let start = Instant::now();
    std::thread::sleep(watch);
    let seconds = start.elapsed().as_secs_f64();
    let after = cpu_ticks(root)?;
    let mut busy: Vec<BusyProcess> = after
        .into_iter()
        .filter(|(pid, _)| !own.contains(pid))
        .filter_map(|(pid, ticks)| {
            // A process that started in between has used all of its time since.
            let earlier = before.get(&pid).copied().unwrap_or(0);
            let cpu_ratio = ticks.saturating_sub(earlier) as f64 / ticks_per_s() / seconds;
            if cpu_ratio < BUSY_RATIO {
                return None;
            }
            Some(BusyProcess { pid, name: name(root, pid).ok()?, cpu_ratio })
        })
        .collect();
    busy.sort_by(|one, other| other.cpu_ratio.total_cmp(&one.cpu_ratio));
    Ok(busy)
}

/// CPU time of every process.
fn cpu_ticks(root: &Path) -> Reading<BTreeMap<u32, u64>> {
    let folder = root.join("proc");
    let entries = fs::read_dir(&folder).map_err(|error| Health::from_io(&folder, &error))?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // A process may end between the listing and the reading.
    let of = |pid: u32| {
        let stat = fs::read_to_string(folder.join(format!("{pid}/stat"))).ok()?;
        let stat = ProcessStat::parse(&stat)?;
        Some((pid, stat.user_ticks + stat.system_ticks))
    };
    Ok(pids.filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     \n\
Max processes             unlimited            96365                processes \n\
Max open files            1024                 524288               files     \n";

    #[test]
    fn limits_are_soft_limits_and_may_be_absent() {
        let fixture = Fixture::new().with("proc/7/limits", LIMITS);
        assert_eq!(
            limits(fixture.root(), "proc/7/limits"),
            Ok(Limits { open_files: Some(1024), processes: None })
        );
        let half = Fixture::new().with("proc/7/limits", "Max open files 1 1 files\n");
        assert!(matches!(limits(half.root(), "proc/7/limits"), Err(Health::Degraded { .. })));
    }

    #[test]
    fn memory_policy_comes_from_the_largest_mapping() {
        let read = |text: &str| {
            let fixture = Fixture::new().with("proc/7/numa_maps", text);
            policy(fixture.root(), "proc/7/numa_maps")
        };
        let heap = "55a0 default file=/usr/bin/mongod mapped=9\n7f00 interleave:0-1 anon=4000 dirty=4000 N0=2000\n";
        assert_eq!(read(heap), Ok(MemoryPolicy::Interleaved));
        assert_eq!(
            read("1 bind:0 anon=5\n2 default anon=4\n"),
            Ok(MemoryPolicy::Chosen("bind:0".to_owned()))
        );
        assert_eq!(read("1 default anon=5\n"), Ok(MemoryPolicy::Local));
        assert!(read("").is_err());
    }

    #[test]
    fn smallest_limit_of_a_group_and_its_parents_counts() {
        let limit = |fixture: &Fixture| {
            let root = fixture.root();
            memory_limit(root, &root.join("proc/self"))
        };
        let mounts = "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let fixture = Fixture::new()
            .with("proc/self/mountinfo", mounts)
            .with("proc/self/cgroup", "0::/a/b\n")
            .with("sys/fs/cgroup/a/memory.max", "1000\n")
            .with("sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit(&fixture), Ok(Some(1000)));
        let mounts = "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n";
        let old = Fixture::new()
            .with("proc/self/mountinfo", mounts)
            .with("proc/self/cgroup", "3:cpu,memory:/x\n1:name=systemd:/y\n")
            .with("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(&old), Ok(None));
    }

    #[test]
    fn other_busy_process_is_listed_and_we_are_not() {
        let mut child =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let own = [std::process::id()];
        let found = (0..50).find_map(|_| {
            let busy = busy(Path::new("/"), Duration::from_millis(100), &own).unwrap();
            assert!(busy.iter().all(|process| process.pid != std::process::id()));
            busy.into_iter().find(|process| process.pid == child.id())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.is_some_and(|process| process.cpu_ratio < 2.0));
    }
}
