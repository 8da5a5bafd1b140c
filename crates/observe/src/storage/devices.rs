//! The devices at which the requests for a folder end, and how many requests each serves at once.

use super::device;
use crate::health::Reading;
use crate::host::{hypervisor, line};
use std::fs;
use std::path::{Path, PathBuf};

/// File system that may lie on several devices by itself.
const BTRFS: &str = "btrfs";

/// Unit of the kernel's counts of data, whatever the sector of the disk is.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// The devices that a device lies on: the disk of a partition, the members of an array or a volume, and the device with the file of
/// a loop device. All are folders in `/sys` without links.
pub(crate) fn below(root: &Path, device: &Path) -> Vec<PathBuf> {
    let disk = disk_of_partition(device);
    let mut found: Vec<PathBuf> = disk.into_iter().map(Path::to_owned).collect();
    found.extend(members(device));
    if let Ok(file) = fs::read_to_string(device.join("loop/backing_file")) {
        let file = Path::new(file.trim_end_matches('\n'));
        found.extend(
            super::device(root, file)
                .ok()
                .and_then(|(_, below)| below.ok()),
        );
    }
    found
}

/// The devices that the file system of a folder is made of: one, or several of btrfs.
pub(crate) fn of_file_system(root: &Path, folder: &Path) -> Reading<Vec<PathBuf>> {
    let (filesystem, found) = device(root, folder)?;
    let found = found?;
    let several = Some(filesystem).filter(|kind| kind == BTRFS);
    let several = several.and_then(|_| of_btrfs(root, &found));
    Ok(several.unwrap_or_else(|| vec![found]))
}

/// The devices at which requests end: those of the file system, and of an array or a volume its members. A loop device is one of its
/// own: its requests are operations on a file.
pub(crate) fn ends(root: &Path, folder: &Path) -> Reading<Vec<PathBuf>> {
    let mut found = Vec::new();
    for device in of_file_system(root, folder)? {
        descend(device, &mut found);
    }
    Ok(found)
}

fn descend(device: PathBuf, found: &mut Vec<PathBuf>) {
    let members = members(&device);
    if members.is_empty() && !found.contains(&device) {
        found.push(device);
    } else {
        members
            .into_iter()
            .for_each(|member| descend(member, found));
    }
}

/// Name of a device as in `/proc/diskstats`: `/sys` cannot have a slash in a name.
pub(crate) fn name(device: &Path) -> Option<String> {
    Some(device.file_name()?.to_str()?.replace('!', "/"))
}

/// How many requests a device serves at once: 1 if it serves one after the other, else the length of its queue. `None` where the
/// machine does not show it. What is behind a device that the kernel makes, such as a loop device, is not known; and a virtual
/// disk is rotational because nobody has said that it is not.
pub(crate) fn serves(root: &Path, device: &Path) -> Option<u64> {
    let disk = disk_of_partition(device).unwrap_or(device);
    let number = |file: &str| -> Option<u64> { line(disk, file).ok()?.parse().ok() };
    // SCSI and SATA have a length for each disk, which is the shorter one; NVMe and virtio that of the queue alone.
    let length = number("device/queue_depth").or_else(|| number("queue/nr_requests"))?;
    let is_made = !disk.join("device").exists();
    let is_rotational = number("queue/rotational")? != 0;
    match (length, is_made, is_rotational) {
        (1, ..) => Some(1),
        (_, true, _) => None,
        (_, false, true) => hypervisor(root).is_none().then_some(1),
        (length, false, false) => Some(length),
    }
}

/// The disk of a partition; `None` of any other device.
pub(crate) fn disk_of_partition(device: &Path) -> Option<&Path> {
    device
        .parent()
        .filter(|_| device.join("partition").exists())
}

/// Members of an array or a volume, in the order of their names.
fn members(device: &Path) -> Vec<PathBuf> {
    linked(&device.join("slaves"))
}

/// What the links in a folder lead to, in the order of their names.
fn linked(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut links: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    links.sort();
    let targets = links.into_iter();
    targets
        .filter_map(|link| link.canonicalize().ok())
        .collect()
}

/// All devices of the btrfs that has this one.
fn of_btrfs(root: &Path, device: &Path) -> Option<Vec<PathBuf>> {
    let file_systems = fs::read_dir(root.join("sys/fs").join(BTRFS)).ok()?;
    let mut devices =
        file_systems.filter_map(|entry| Some(linked(&entry.ok()?.path().join("devices"))));
    devices.find(|devices| devices.iter().any(|one| one == device))
}

#[cfg(test)]
pub(crate) mod tests;
