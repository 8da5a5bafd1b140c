//! The limits of a process by its control groups, and the time lost to them. Any group on the way
//! to the root may set a limit, so all of them are read.
//!
//! Sources: `Documentation/admin-guide/cgroup-v2.rst`, `Documentation/scheduler/sched-bwc.rst` and
//! `Documentation/admin-guide/cgroup-v1/` of Linux.

use super::file::{Content, first_numbers, health};
use super::hierarchy::{Groups, Hierarchies, Version};
use crate::health::{Health, Reading};
use crate::watch::rates::Rates;
use crate::watch::source::Reported;
use dyno_record::cpus::CpuQuota;
use dyno_record::metrics::MetricId;
use dyno_record::names::cgroup;
use nix::errno::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Name of this part of the source in `missing`.
const PART: &str = cgroup::GROUP;

/// Version 1 expresses "no limit" as the largest number of whole pages: everything beyond any
/// machine's memory.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Files of version 1 with the rules that throttle disk requests.
const THROTTLE_FILES: [&str; 4] = [
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// The control groups of one process.
pub(super) struct ControlGroups {
    name: String,
    /// Content of `/proc/PID/cgroup` from which the groups were found.
    membership: String,
    cpu: Option<Groups>,
    /// Totals of each folder of the `cpu` controller with a limit.
    throttling: Rates,
    memory: Option<Groups>,
    io: Option<Groups>,
    content: Content,
}

impl ControlGroups {
    /// The groups of a process, by its name in metrics.
    pub(super) fn new(name: &str) -> ControlGroups {
        ControlGroups {
            name: name.to_owned(),
            membership: String::new(),
            cpu: None,
            throttling: Rates::default(),
            memory: None,
            io: None,
            content: Content::default(),
        }
    }

    /// Reads the groups of the process whose folder in `/proc` is `process`.
    pub(super) fn read(
        &mut self,
        process: &Path,
        hierarchies: &Hierarchies,
        at_s: f64,
        reported: &mut Reported,
    ) {
        if let Err(health) = self.find(&process.join("cgroup"), hierarchies) {
            return reported.miss(PART, health);
        }
        let outcomes = [
            self.report_cpu(at_s, reported),
            self.report_memory(reported),
            self.report_io(reported),
        ];
        for health in outcomes.into_iter().filter_map(Result::err) {
            reported.miss(PART, health);
        }
        let found = [("cpu", &self.cpu), ("memory", &self.memory), ("io", &self.io)];
        for (controller, groups) in found {
            if groups.is_none() {
                let reason =
                    format!("no control group of `{}` for {controller} is visible", self.name);
                reported.miss(PART, Health::Unsupported { reason });
            }
        }
    }

    /// Finds the groups if the process is new or was moved to others.
    fn find(&mut self, path: &Path, hierarchies: &Hierarchies) -> Reading<()> {
        let read = self.content.read(path);
        let membership = read.map_err(|error| health(path, &error))?;
        if membership == self.membership {
            return Ok(());
        }
        self.membership = membership.to_owned();
        self.cpu = hierarchies.groups("cpu", membership);
        self.memory = hierarchies.groups("memory", membership);
        self.io = hierarchies
            .groups("blkio", membership)
            .filter(|groups| groups.version == Version::One)
            .or_else(|| hierarchies.groups("io", membership));
        Ok(())
    }

    fn report_cpu(&mut self, at_s: f64, reported: &mut Reported) -> Reading<()> {
        let Some(groups) = &self.cpu else {
            return Ok(());
        };
        let mut lowest = f64::INFINITY;
        let (mut throttled, mut throttled_periods) = (None, None);
        self.throttling.begin(at_s);
        for folder in &groups.folders {
            let Some(limit) = cpu_limit(&mut self.content, groups.version, folder)? else {
                continue;
            };
            lowest = lowest.min(limit);
            let totals = throttling(&mut self.content, groups.version, folder)?;
            let folder = folder.to_string_lossy();
            let mut growth = |name: &str, total: Option<u64>| {
                let id = MetricId::of_instance(PART, &folder, name);
                self.throttling.growth(&id, total? as f64)
            };
            let all = growth("periods", totals.periods).filter(|periods| *periods > 0.0);
            let exhausted = growth("throttled", totals.throttled);
            let grown_us = growth("throttled_us", Some(totals.throttled_us));
            if let Some((us, duration_s)) = grown_us.zip(self.throttling.duration_s()) {
                *throttled.get_or_insert(0.0) += us / duration_s / 1e6;
            }
            if let Some((exhausted, all)) = exhausted.zip(all) {
                let ratio: f64 = exhausted / all;
                throttled_periods = Some(ratio.max(throttled_periods.unwrap_or(0.0)));
            }
        }
        let limit = lowest.is_finite().then_some(lowest);
        reported.put_if_known(cgroup::CPU_LIMIT_COUNT.of(&self.name), limit);
        reported.put_if_known(cgroup::CPU_THROTTLED_RATIO.of(&self.name), throttled);
        let id = cgroup::CPU_THROTTLED_PERIODS_RATIO.of(&self.name);
        reported.put_if_known(id, throttled_periods);
        Ok(())
    }

    fn report_memory(&mut self, reported: &mut Reported) -> Reading<()> {
        let Some(groups) = &self.memory else {
            return Ok(());
        };
        if let Some((limit, folder)) = lowest_memory(&mut self.content, groups)? {
            let file = match groups.version {
                Version::One => "memory.usage_in_bytes",
                Version::Two => "memory.current",
            };
            let used = number(&mut self.content, &folder.join(file))?;
            reported.put(cgroup::MEMORY_LIMIT_BYTES.of(&self.name), limit as f64);
            let used = used.map(|used| used as f64);
            reported.put_if_known(cgroup::MEMORY_USED_BYTES.of(&self.name), used);
        }
        Ok(())
    }

    fn report_io(&mut self, reported: &mut Reported) -> Reading<()> {
        let Some(groups) = &self.io else {
            return Ok(());
        };
        let mut rules = 0;
        for folder in &groups.folders {
            rules += match groups.version {
                Version::One => rules_of_one(&mut self.content, folder)?,
                Version::Two => rules_of_two(&mut self.content, folder)?,
            };
        }
        reported.put(cgroup::IO_LIMITED_COUNT.of(&self.name), rules as f64);
        Ok(())
    }
}

/// Reads a file that may be absent: the root of a tree has no limits, and a group may lack a
/// controller or be gone.
fn optional<'a>(content: &'a mut Content, path: &Path) -> Reading<Option<&'a str>> {
    match content.read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => Ok(None),
        Err(error) => Err(health(path, &error)),
    }
}

/// The number in a file; `None` if the file is absent or contains a word.
fn number(content: &mut Content, path: &Path) -> Reading<Option<u64>> {
    let text = optional(content, path)?;
    Ok(text.and_then(|text| text.trim().parse().ok()))
}

/// The lowest CPU quota among the groups of the process whose folder in `/proc` is `process`;
/// `None` without a quota.
pub(crate) fn cpu_quota(root: &Path, process: &Path) -> Reading<Option<CpuQuota>> {
    let mut content = Content::default();
    let Some(groups) = groups_of(root, process, "cpu", &mut content)? else {
        return Ok(None);
    };
    let mut lowest: Option<CpuQuota> = None;
    for folder in &groups.folders {
        let Some(cpus) = cpu_limit(&mut content, groups.version, folder)? else {
            continue;
        };
        if lowest.as_ref().is_none_or(|lowest| cpus < lowest.cpus) {
            let group = Path::new("/").join(folder.strip_prefix(root).unwrap_or(folder));
            let group = group.display().to_string();
            lowest = Some(CpuQuota { group, cpus });
        }
    }
    Ok(lowest)
}

/// The lowest memory limit among the groups of the process whose folder in `/proc` is `process`;
/// `None` without a limit.
pub(crate) fn memory_limit(root: &Path, process: &Path) -> Reading<Option<u64>> {
    let mut content = Content::default();
    let Some(groups) = groups_of(root, process, "memory", &mut content)? else {
        return Ok(None);
    };
    Ok(lowest_memory(&mut content, &groups)?.map(|(limit, _)| limit))
}

fn groups_of(
    root: &Path,
    process: &Path,
    controller: &str,
    content: &mut Content,
) -> Reading<Option<Groups>> {
    let path = process.join("cgroup");
    let membership = content.read(&path).map_err(|error| health(&path, &error))?;
    Ok(Hierarchies::read(root)?.groups(controller, membership))
}

/// The lowest memory limit among groups, and the folder of the group that has it.
fn lowest_memory<'g>(
    content: &mut Content,
    groups: &'g Groups,
) -> Reading<Option<(u64, &'g PathBuf)>> {
    let file = match groups.version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    };
    let mut lowest = None;
    for folder in &groups.folders {
        // Without a limit the content is `max`.
        let limit = number(content, &folder.join(file))?;
        let limit = limit.filter(|limit| *limit < NO_LIMIT_BYTES).map(|limit| (limit, folder));
        lowest = lowest.into_iter().chain(limit).min_by_key(|(limit, _)| *limit);
    }
    Ok(lowest)
}

/// The number of CPUs that a group may use; `None` without a limit.
fn cpu_limit(content: &mut Content, version: Version, folder: &Path) -> Reading<Option<f64>> {
    let (quota, period) = match version {
        Version::One => {
            // Without a limit the quota is -1.
            let quota = number(content, &folder.join("cpu.cfs_quota_us"))?;
            let period = match quota {
                Some(_) => number(content, &folder.join("cpu.cfs_period_us"))?,
                None => None,
            };
            (quota, period)
        }
        Version::Two => {
            // Quota and period; without a limit the quota is `max`.
            let text = optional(content, &folder.join("cpu.max"))?;
            let [quota, period] = first_numbers(text.unwrap_or(""));
            (quota, period)
        }
    };
    let period = period.filter(|period| *period > 0);
    Ok(quota.zip(period).map(|(quota, period)| quota as f64 / period as f64))
}

/// Totals of a group with a CPU limit.
struct Throttling {
    periods: Option<u64>,
    /// Periods in which the group exhausted its quota.
    throttled: Option<u64>,
    /// Time that its CPUs were throttled.
    throttled_us: u64,
}

fn throttling(content: &mut Content, version: Version, folder: &Path) -> Reading<Throttling> {
    let path = folder.join("cpu.stat");
    let text = optional(content, &path)?.unwrap_or("");
    let total = |name: &str| -> Option<u64> {
        let mut totals = text.lines().filter_map(|line| line.split_once(' '));
        totals.find(|(known, _)| *known == name)?.1.trim().parse().ok()
    };
    let throttled_us = match version {
        Version::One => total("throttled_time").map(|ns| ns / 1000),
        Version::Two => total("throttled_usec"),
    };
    Ok(Throttling {
        periods: total("nr_periods"),
        throttled: total("nr_throttled"),
        throttled_us: throttled_us
            .ok_or_else(|| Health::not_understood(&path, "throttled time"))?,
    })
}

/// Each line is a device with one limit.
fn rules_of_one(content: &mut Content, folder: &Path) -> Reading<usize> {
    let mut rules = 0;
    for file in THROTTLE_FILES {
        let text = optional(content, &folder.join(file))?;
        rules += text.unwrap_or("").lines().filter(|line| !line.trim().is_empty()).count();
    }
    Ok(rules)
}

/// Each line is a device with four limits, such as `8:16 rbps=max wbps=1048576 riops=max wiops=max`.
fn rules_of_two(content: &mut Content, folder: &Path) -> Reading<usize> {
    let text = optional(content, &folder.join("io.max"))?;
    let limits = text.unwrap_or("").split_ascii_whitespace();
    let is_set = |limit: &&str| limit.split_once('=').is_some_and(|(_, value)| value != "max");
    Ok(limits.filter(is_set).count())
}

#[cfg(test)]
mod tests;
