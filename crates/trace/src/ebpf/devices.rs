//! Block devices below a file system, and their names.

use dyno_record::io_trace::document::BlockDevice;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Device number as the kernel encodes it.
pub(super) fn kernel_number(major: u32, minor: u32) -> u32 {
    major << 20 | minor & 0xf_ffff
}

/// Major and minor number from the kernel's encoding.
pub(super) fn parts(number: u32) -> (u32, u32) {
    (number >> 20, number & 0xf_ffff)
}

/// Parses `MAJOR:MINOR`, as in sysfs and mountinfo.
pub(super) fn parse(text: &str) -> Option<u32> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(kernel_number(major.parse().ok()?, minor.parse().ok()?))
}

/// All devices below a file system's device: the disk of a partition, and the members of a combined device.
pub(super) fn reached_from(number: u32, mountinfo: &str) -> Vec<u32> {
    let first = match parts(number) {
        // File systems such as btrfs have a number without a device.
        (0, _) => source_of(number, mountinfo),
        _ => Some(number),
    };
    let mut found: Vec<u32> = first.into_iter().collect();
    let mut next = 0;
    while next < found.len() {
        for below in below(found[next]) {
            if !found.contains(&below) {
                found.push(below);
            }
        }
        next += 1;
    }
    found
}

fn below(number: u32) -> Vec<u32> {
    let folder = folder_of(number);
    let mut numbers = Vec::new();
    if folder.join("partition").exists() {
        numbers.extend(number_in(&folder.join("../dev")));
    }
    for entry in std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten() {
        numbers.extend(number_in(&entry.path().join("dev")));
    }
    numbers
}

fn folder_of(number: u32) -> PathBuf {
    let (major, minor) = parts(number);
    let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // The parent folder is the disk's only after the link is resolved.
    link.canonicalize().unwrap_or(link)
}

fn number_in(file: &Path) -> Option<u32> {
    parse(&std::fs::read_to_string(file).ok()?)
}

/// Device from which a file system was mounted.
fn source_of(number: u32, mountinfo: &str) -> Option<u32> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let line =
        mountinfo.lines().find(|line| line.split(' ').nth(2).and_then(parse) == Some(number))?;
    let (_, after) = line.split_once(" - ")?;
    let metadata = std::fs::metadata(after.split(' ').nth(1)?).ok()?;
    metadata.file_type().is_block_device().then(|| {
        let device = metadata.rdev();
        kernel_number(libc::major(device), libc::minor(device))
    })
}

/// Devices in the order of their first use.
#[derive(Debug, Default)]
pub(super) struct DeviceTable {
    indexes: HashMap<u32, u32>,
    pub(super) devices: Vec<BlockDevice>,
}

impl DeviceTable {
    /// Index of a device, assigned on first use.
    pub(super) fn index_of(&mut self, number: u32) -> u32 {
        *self.indexes.entry(number).or_insert_with(|| {
            let (major, minor) = parts(number);
            let name = folder_of(number)
                .file_name()
                .and_then(|name| name.to_str())
                .filter(|name| !name.contains(':'))
                .unwrap_or_default()
                .to_owned();
            self.devices.push(BlockDevice { major, minor, name });
            self.devices.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_match_the_kernel() {
        assert_eq!(parse("254:1\n"), Some(254 << 20 | 1));
        assert_eq!(parts(parse("8:1048575").unwrap()), (8, 1_048_575));
        assert_eq!(parse("254"), None);
    }

    #[test]
    fn virtual_device_is_found_by_its_mount() {
        let mountinfo = "30 1 0:45 / /data rw - btrfs /dev/null rw\n";
        assert_eq!(source_of(parse("0:45").unwrap(), mountinfo), None);
        assert!(reached_from(parse("0:46").unwrap(), mountinfo).is_empty());
        assert_eq!(reached_from(parse("8:1").unwrap(), "")[0], parse("8:1").unwrap());
    }

    #[test]
    fn each_device_has_one_place() {
        let mut table = DeviceTable::default();
        assert_eq!(table.index_of(1 << 20), 0);
        assert_eq!(table.index_of(2 << 20), 1);
        assert_eq!(table.index_of(1 << 20), 0);
        assert_eq!(table.devices.len(), 2);
    }
}
