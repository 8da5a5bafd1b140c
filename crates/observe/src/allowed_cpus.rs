//! Which CPUs processes may use: by their affinity, which contains cpusets, and by the quotas of their control groups.

use crate::health::Reading;
use crate::host::{affinity, online_list};
use crate::watch::cpu_quota;
use dyno_record::cpus::AllowedCpus;
use std::path::Path;

/// The CPUs of a process, given by its number or `self`.
pub(crate) fn of_process(root: &Path, process: &str) -> Reading<AllowedCpus> {
    of_threads(root, process, &[format!("proc/{process}/status")])
}

/// The CPUs of some threads of a process, by the paths of their `status`.
pub(crate) fn of_threads(root: &Path, process: &str, statuses: &[String]) -> Reading<AllowedCpus> {
    let online = online_list(root).ok();
    let mut all = Vec::new();
    for status in statuses {
        all.extend(affinity(root, status, online.as_deref())?);
    }
    // Without control groups nothing limits CPU time.
    let quota = cpu_quota(root, &root.join(format!("proc/{process}")));
    Ok(AllowedCpus::new(all, quota.ok().flatten()))
}

/// The CPUs of several processes together; `None` if one of them cannot be read.
pub(crate) fn of_processes(root: &Path, processes: &[u32]) -> Option<AllowedCpus> {
    let each = processes.iter();
    let each = each.map(|process| of_process(root, &process.to_string()).ok());
    AllowedCpus::together(each.collect::<Option<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;

    const MOUNTS: &str = "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        2 0 0:2 / /cg/all rw - cgroup2 cgroup2 rw\n";

    fn machine() -> Fixture {
        Fixture::new()
            .with("sys/devices/system/cpu/online", "0-3\n")
            .with("proc/self/mountinfo", MOUNTS)
            .with("proc/7/status", "Name:\tx\nCpus_allowed_list:\t2-127\n")
            .with("proc/8/status", "Name:\tx\nCpus_allowed_list:\t0\n")
    }

    #[test]
    fn lowest_quota_on_the_path_counts_in_both_cgroup_versions() {
        let one = machine()
            .with("proc/7/cgroup", "3:cpu,cpuacct:/a/b\n0::/\n")
            .with("cg/cpu/a/cpu.cfs_quota_us", "30000\n")
            .with("cg/cpu/a/cpu.cfs_period_us", "100000\n")
            .with("cg/cpu/a/b/cpu.cfs_quota_us", "-1\n")
            .with("cg/cpu/a/b/cpu.cfs_period_us", "100000\n");
        let found = of_process(one.root(), "7").unwrap();
        assert_eq!((found.cpus.as_str(), found.quota()), ("2-3", Some(0.3)));
        assert_eq!(found.quotas[0].group, "/cg/cpu/a");
        let two = machine()
            .with("proc/self/mountinfo", MOUNTS.split_once('\n').unwrap().1)
            .with("proc/7/cgroup", "0::/a/b\n")
            .with("cg/all/a/cpu.max", "max 100000\n")
            .with("cg/all/a/b/cpu.max", "150000 100000\n");
        let found = of_process(two.root(), "7").unwrap();
        assert_eq!((found.quota(), found.quotas.len()), (Some(1.5), 1));
    }

    #[test]
    fn without_control_groups_there_is_no_quota() {
        let machine = machine();
        let found = of_processes(machine.root(), &[7, 8]).unwrap();
        assert_eq!((found.cpus.as_str(), found.quota()), ("0,2-3", None));
        assert_eq!(of_processes(machine.root(), &[7, 9]), None);
        assert_eq!(of_processes(machine.root(), &[]), None);
    }
}
