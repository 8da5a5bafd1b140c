//! Limits the operations per second of some processes on devices, with a control group of our own.

use super::StorageError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Prefix of the name of a control group; the process id and the group's number follow.
const GROUP: &str = "dyno-storage-";
/// File in which version 2 enables controllers for child groups.
const SUBTREE: &str = "cgroup.subtree_control";
/// Mount point of version 1 for devices.
const V1: &str = "/sys/fs/cgroup/blkio";
/// Possible mount points of version 2.
const V2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Process list of a group.
const PROCESSES: &str = "cgroup.procs";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A limit for processes. Reads and writes are limited separately.
#[derive(Debug)]
pub struct Throttle {
    group: PathBuf,
    /// The group of the processes after the limit ends.
    parent: PathBuf,
    /// Whether we enabled device limits for the parent's children.
    has_enabled: bool,
}

/// Refuses a system that cannot limit devices.
pub(super) fn check() -> Result<(), StorageError> {
    if is_v1() || v2().is_some() { Ok(()) } else { Err(StorageError::NoLimits) }
}

impl Throttle {
    /// Limits these processes and their children on each of the devices.
    pub(super) fn set(
        devices: &[String],
        per_s: u32,
        processes: &[u32],
    ) -> Result<Throttle, StorageError> {
        let (parent, has_enabled) = match is_v1() {
            true => (PathBuf::from(V1), false),
            false => v2_group()?,
        };
        remove_left(&parent, Path::new("/proc"));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{GROUP}{}-{number}", std::process::id());
        let throttle = Throttle { group: parent.join(name), parent, has_enabled };
        let failed = |what: &str| StorageError::step(format!("limit the device: {what}"));
        fs::create_dir(&throttle.group).map_err(failed("create a control group"))?;
        for (file, rule) in devices.iter().flat_map(|device| rules(device, per_s)) {
            fs::write(throttle.group.join(&file), rule)
                .map_err(failed(&format!("set `{file}`")))?;
        }
        for process in processes {
            fs::write(throttle.processes(), process.to_string())
                .map_err(failed("put the server into a control group"))?;
        }
        Ok(throttle)
    }

    /// The file that accepts process ids.
    pub(super) fn processes(&self) -> PathBuf {
        self.group.join(PROCESSES)
    }

    /// Its control group.
    pub(super) fn group(&self) -> &Path {
        &self.group
    }
}

/// Files of a group with the values to write, one after the other.
fn rules(device: &str, per_s: u32) -> Vec<(String, String)> {
    if is_v1() {
        let rule = |what: &str| {
            let file = format!("blkio.throttle.{what}_iops_device");
            (file, format!("{device} {per_s}"))
        };
        vec![rule("read"), rule("write")]
    } else {
        let rule = format!("{device} riops={per_s} wiops={per_s}");
        vec![("io.max".to_owned(), rule)]
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        let processes = fs::read_to_string(self.processes()).unwrap_or_default();
        for process in processes.lines() {
            // A process that has ended is in no group.
            let _ = fs::write(self.parent.join(PROCESSES), process);
        }
        if let Err(error) = fs::remove_dir(&self.group) {
            let group = self.group.display();
            tracing::warn!("cannot remove the control group `{group}`: {error}");
        }
        // Another process may need it.
        if self.has_enabled && groups(&self.parent).is_empty() {
            let _ = fs::write(self.parent.join(SUBTREE), "-io");
        }
    }
}

/// Our groups with their process ids.
fn groups(parent: &Path) -> Vec<(PathBuf, u32)> {
    let groups = fs::read_dir(parent).into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name();
        let (process, _) = name.to_str()?.strip_prefix(GROUP)?.split_once('-')?;
        Some((entry.path(), process.parse().ok()?))
    });
    groups.collect()
}

/// Removes the groups of killed processes.
fn remove_left(parent: &Path, processes: &Path) {
    for (group, process) in groups(parent) {
        if !processes.join(process.to_string()).exists()
            && let Err(error) = fs::remove_dir(&group)
        {
            let group = group.display();
            tracing::warn!(
                "cannot remove the control group `{group}`, which a killed process left: {error}"
            );
        }
    }
}

fn is_v1() -> bool {
    let v1 = Path::new(V1);
    v1.join("blkio.throttle.read_iops_device").exists() || v1.join("tasks").exists()
}

/// The root of version 2, if it can limit devices.
fn v2() -> Option<&'static Path> {
    V2.iter().map(Path::new).find(|root| {
        let controllers = fs::read_to_string(root.join("cgroup.controllers"));
        controllers.is_ok_and(|text| text.split_whitespace().any(|name| name == "io"))
    })
}

/// The root of version 2 after enabling device limits for its children, and whether we enabled
/// them.
fn v2_group() -> Result<(PathBuf, bool), StorageError> {
    let root = v2().ok_or(StorageError::NoLimits)?;
    let control = root.join(SUBTREE);
    let before = fs::read_to_string(&control).unwrap_or_default();
    let had_it = before.split_whitespace().any(|name| name == "io");
    if !had_it {
        fs::write(&control, "+io")
            .map_err(StorageError::step("enable device limits for control groups"))?;
    }
    Ok((root.to_owned(), !had_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_of_killed_processes_are_removed() {
        let root = tempfile::tempdir().unwrap();
        for name in ["dyno-storage-7-0", "dyno-storage-8-3", "other", "dyno-storage-x-1"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let processes = tempfile::tempdir().unwrap();
        fs::create_dir(processes.path().join("8")).unwrap();
        remove_left(root.path(), processes.path());
        let entries = fs::read_dir(root.path()).unwrap().flatten();
        let mut left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["dyno-storage-8-3", "dyno-storage-x-1", "other"]);
    }
}
