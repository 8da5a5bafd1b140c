//! Limits of control groups, versions 1 and 2, or both at once.
//!
//! A limit applies to everything below it, so each folder on the way from the group of this process
//! to the root is read. In a container the path may be the host's path, which does not exist
//! inside; the root of the mount is then the group itself.

use std::path::{Path, PathBuf};

use super::error::PlacementError;
use super::machine::Limits;
use super::read::optional;
use dyno_plan::placement::IdSet;

/// Version 1 writes "no limit" as the largest multiple of the page size below 2^63.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// Reads the limits of this process below `root`. Without control groups nothing is limited.
pub(super) fn read(root: &Path) -> Result<Limits, PlacementError> {
    let groups = optional(&root.join("proc/self/cgroup"))?.unwrap_or_default();
    let mut limits = Limits::default();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        for mount in mounts(root, controllers) {
            for folder in folders(&mount, path) {
                limits.tighten(&folder);
            }
        }
    }
    Ok(limits)
}

/// Possible mount points of the hierarchy with these controllers; version 2 has no controllers
/// here.
fn mounts(root: &Path, controllers: &str) -> Vec<PathBuf> {
    let base = root.join("sys/fs/cgroup");
    if controllers.is_empty() {
        let places = [base.clone(), base.join("unified")];
        let is_version_2 = |place: &PathBuf| place.join("cgroup.controllers").is_file();
        return places.into_iter().filter(is_version_2).collect();
    }
    let mut mounts: Vec<_> = controllers
        .split(',')
        .chain([controllers])
        .filter(|name| !name.starts_with("name="))
        .map(|name| base.join(name))
        .filter(|place| place.is_dir())
        .collect();
    mounts.dedup();
    mounts
}

/// The existing folders of the group and its parents.
fn folders(mount: &Path, path: &str) -> Vec<PathBuf> {
    // A path outside the namespace begins with `/..`.
    let names: Vec<_> = path.split('/').filter(|name| !name.is_empty() && *name != "..").collect();
    (0..=names.len())
        .map(|depth| mount.join(names[..depth].join("/")))
        .filter(|folder| folder.is_dir())
        .collect()
}

impl Limits {
    fn tighten(&mut self, folder: &Path) {
        let word = |name: &str| readable(&folder.join(name));
        let memory = [word("memory.max"), word("memory.limit_in_bytes")];
        for bytes in memory.into_iter().flatten().filter_map(|text| bytes(&text)) {
            self.memory_bytes = Some(self.memory_bytes.map_or(bytes, |old| old.min(bytes)));
        }
        let version_1 = word("cpu.cfs_quota_us").zip(word("cpu.cfs_period_us"));
        let version_1 = version_1.map(|(quota, period)| format!("{quota} {period}"));
        for cpus in [word("cpu.max"), version_1].into_iter().flatten() {
            if let Some(cpus) = quota(&cpus) {
                self.quota_cpus = Some(self.quota_cpus.map_or(cpus, |old| old.min(cpus)));
            }
        }
        let names = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
        narrow(&mut self.cpus, first_list(folder, names));
        let names = ["cpuset.mems.effective", "cpuset.effective_mems", "cpuset.mems"];
        narrow(&mut self.memory_nodes, first_list(folder, names));
    }
}

/// The text of a control group file. Depending on the type of the group, some files exist but
/// cannot be read; they then limit nothing.
fn readable(path: &Path) -> Option<String> {
    optional(path).unwrap_or_else(|error| {
        tracing::debug!(%error, "control group file skipped");
        None
    })
}

fn bytes(text: &str) -> Option<u64> {
    let bytes = text.parse().ok()?;
    (bytes < UNLIMITED_BYTES).then_some(bytes)
}

/// Converts `QUOTA PERIOD` in microseconds to CPUs; `None` for `max` and -1, which mean no limit.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let quota: u64 = quota.parse().ok()?;
    let period: u64 = period.trim().parse().ok().filter(|&period| period > 0)?;
    Some(quota as f64 / period as f64)
}

/// The set in the first of these files that exists and contains one.
fn first_list(folder: &Path, names: [&str; 3]) -> Option<IdSet> {
    names.into_iter().find_map(|name| {
        let set: IdSet = readable(&folder.join(name))?.parse().ok()?;
        // An empty cpuset means the parent's cpuset.
        (!set.is_empty()).then_some(set)
    })
}

fn narrow(known: &mut Option<IdSet>, found: Option<IdSet>) {
    if let Some(found) = found {
        *known = Some(match known.take() {
            Some(old) => old.intersection(&found),
            None => found,
        });
    }
}
