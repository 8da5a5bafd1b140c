//! The devices that finally serve the requests for a folder, their counters, and their concurrency.

use super::device;
use crate::health::Reading;
use crate::host::{hypervisor, line};
pub use dyno_record::disk::DeviceCounters;
use std::fs;
use std::path::{Path, PathBuf};

/// File system that may span several devices by itself.
const BTRFS: &str = "btrfs";

/// Unit of the kernel's counts of data, regardless of the disk's sector size.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// A block device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name as in `/proc/diskstats`.
    pub name: String,
    /// Its folder in `/sys`, without links.
    folder: PathBuf,
}

impl Device {
    fn of(folder: PathBuf) -> Option<Device> {
        Some(Device { name: name(&folder)?, folder })
    }

    /// Whether it is a hard disk, if the machine shows this. A hard disk serves adjacent requests
    /// faster.
    pub fn is_hard_disk(&self) -> bool {
        is_hard_disk(Path::new("/"), &self.folder)
    }

    /// Its current counters.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn counters(&self) -> Result<DeviceCounters, String> {
        counters(&self.folder)
    }
}

/// The devices of a folder's file system: one, or several for btrfs; none without a device, such as
/// in memory.
pub fn devices_of_file_system(folder: &Path) -> Vec<Device> {
    let found = of_file_system(Path::new("/"), folder).unwrap_or_default();
    found.into_iter().filter_map(Device::of).collect()
}

/// The devices that finally serve the requests for a folder: of an array or a volume its members;
/// none without a device.
pub fn devices_at_end(folder: &Path) -> Vec<Device> {
    let found = ends(Path::new("/"), folder).unwrap_or_default();
    found.into_iter().filter_map(Device::of).collect()
}

/// The counters of the device with this folder in `/sys`. Source of the fields:
/// `Documentation/block/stat.rst` of Linux.
pub(crate) fn counters(device: &Path) -> Result<DeviceCounters, String> {
    let path = device.join("stat");
    let text =
        fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    parse_counters(&text).ok_or_else(|| format!("cannot parse `{}`", path.display()))
}

fn parse_counters(text: &str) -> Option<DeviceCounters> {
    let fields: Vec<u64> =
        text.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(DeviceCounters {
        reads: *fields.first()?,
        read_bytes: fields.get(2)? * SECTOR_BYTES,
        writes: *fields.get(4)?,
        written_bytes: fields.get(6)? * SECTOR_BYTES,
        busy_ms: *fields.get(9)?,
        queued_ms: *fields.get(10)?,
        flushes: fields.get(15).copied(),
    })
}

/// The devices below a device: the disk of a partition, the members of an array or a volume, and
/// the device with the file of a loop device. All are folders in `/sys` without links.
pub(crate) fn below(root: &Path, device: &Path) -> Vec<PathBuf> {
    let disk = disk_of_partition(device);
    let mut found: Vec<PathBuf> = disk.into_iter().map(Path::to_owned).collect();
    found.extend(members(device));
    if let Ok(file) = fs::read_to_string(device.join("loop/backing_file")) {
        let file = Path::new(file.trim_end_matches('\n'));
        found.extend(super::device(root, file).ok().and_then(|(_, below)| below.ok()));
    }
    found
}

/// The devices of a folder's file system: one, or several for btrfs.
pub(crate) fn of_file_system(root: &Path, folder: &Path) -> Reading<Vec<PathBuf>> {
    let (filesystem, found) = device(root, folder)?;
    let found = found?;
    let several = Some(filesystem).filter(|kind| kind == BTRFS);
    let several = several.and_then(|_| of_btrfs(root, &found));
    Ok(several.unwrap_or_else(|| vec![found]))
}

/// The devices that finally serve requests: the file system's devices, or the members of an array
/// or a volume. A loop device is not resolved: its requests are operations on a file.
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
        members.into_iter().for_each(|member| descend(member, found));
    }
}

/// Name of a device as in `/proc/diskstats`: names in `/sys` cannot contain a slash.
pub(crate) fn name(device: &Path) -> Option<String> {
    Some(device.file_name()?.to_str()?.replace('!', "/"))
}

/// Number of requests that a device serves at once: 1 if it serves them one after the other, else
/// the length of its queue. `None` if the machine does not show it. What serves a device made by
/// the kernel, such as a loop device, is unknown. A virtual disk is rotational only by default, so
/// its concurrency is unknown as well.
pub(crate) fn serves(root: &Path, device: &Path) -> Option<u64> {
    let disk = disk_of_partition(device).unwrap_or(device);
    let number = |file: &str| -> Option<u64> { line(disk, file).ok()?.parse().ok() };
    // SCSI and SATA have a shorter limit per disk; NVMe and virtio only have the queue's limit.
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

/// Whether a device is rotational, and neither made by the kernel nor a virtual disk.
fn is_hard_disk(root: &Path, device: &Path) -> bool {
    let disk = disk_of_partition(device).unwrap_or(device);
    let is_rotational = line(disk, "queue/rotational").is_ok_and(|text| text != "0");
    is_rotational && disk.join("device").exists() && hypervisor(root).is_none()
}

/// The disk of a partition; `None` for any other device.
pub(crate) fn disk_of_partition(device: &Path) -> Option<&Path> {
    device.parent().filter(|_| device.join("partition").exists())
}

/// Members of an array or a volume, in the order of their names.
fn members(device: &Path) -> Vec<PathBuf> {
    linked(&device.join("slaves"))
}

/// Targets of the links in a folder, in the order of the links' names.
fn linked(folder: &Path) -> Vec<PathBuf> {
    let mut links: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    links.sort();
    links.into_iter().filter_map(|link| link.canonicalize().ok()).collect()
}

/// All devices of the btrfs that contains this one.
fn of_btrfs(root: &Path, device: &Path) -> Option<Vec<PathBuf>> {
    let file_systems = fs::read_dir(root.join("sys/fs").join(BTRFS)).ok()?;
    let mut devices =
        file_systems.filter_map(|entry| Some(linked(&entry.ok()?.path().join("devices"))));
    devices.find(|devices| devices.iter().any(|one| one == device))
}

#[cfg(test)]
pub(crate) mod tests;
