//! The storage of a folder: mount, device and the device's settings.

pub(crate) mod devices;

use crate::health::{Health, Reading};
use crate::host::{line, selected, text};
use dyno_record::model::StorageRecord;
use dyno_record::mounts::unescaped;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The fields of a `mountinfo` line that are used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `major:minor` of the device; the major number is 0 without a block device of its own.
    device_number: String,
    /// The folder of the file system that is visible at the mount point.
    pub(crate) part: PathBuf,
    pub(crate) mount_point: PathBuf,
    /// Options of the mount and of the file system, separated by commas.
    pub(crate) options: String,
    pub(crate) filesystem: String,
    source: String,
}

/// Describes the storage of a folder; if it does not exist yet, of its nearest existing parent.
/// Values that cannot be read stay empty; an error means that even the mount is unknown.
pub(crate) fn storage(root: &Path, folder: &Path) -> Reading<StorageRecord> {
    let existing = nearest_existing(folder);
    let mount = mount(root, &existing)?;
    let queue = queue_folder(root, &mount);
    let setting = |name: &str| line(queue.as_deref()?, name).ok();
    Ok(StorageRecord {
        path: folder.display().to_string(),
        device: mount.source.starts_with("/dev/").then(|| mount.source.clone()),
        readahead_bytes: setting("read_ahead_kb")
            .and_then(|text| text.parse::<u64>().ok())
            .map(|kibibytes| kibibytes * 1024),
        // Devices with only one scheduler print its name without brackets.
        scheduler: setting("scheduler").map(|text| selected(&text).unwrap_or(text)),
        rotational: setting("rotational").and_then(|text| match text.as_str() {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }),
        filesystem: Some(mount.filesystem),
        mount_options: Some(mount.options),
        free_bytes: free_bytes(&existing),
        capacities: BTreeMap::new(),
        prepared: None,
    })
}

/// Where the file system of a folder is mounted.
pub(crate) fn mount_point(root: &Path, folder: &Path) -> Reading<PathBuf> {
    Ok(mount(root, &nearest_existing(folder))?.mount_point)
}

/// The folder with the queue settings of a folder's device, as an absolute path in `root`.
pub(crate) fn queue(root: &Path, folder: &Path) -> Reading<PathBuf> {
    let mount = mount(root, &nearest_existing(folder))?;
    let queue = queue_folder(root, &mount).filter(|queue| queue.exists());
    let below = |queue: PathBuf| {
        let root = root.canonicalize().ok()?;
        Some(Path::new("/").join(queue.strip_prefix(root).ok()?))
    };
    queue.and_then(below).ok_or_else(|| no_device(&mount.source))
}

/// The file system type of a folder, and the folder in `/sys` of its device, which may be a
/// partition, or the reason why there is none.
pub(crate) fn device(root: &Path, folder: &Path) -> Reading<(String, Reading<PathBuf>)> {
    let mount = mount(root, &nearest_existing(folder))?;
    let device = device_folder(root, &mount).ok_or_else(|| no_device(&mount.source));
    Ok((mount.filesystem, device))
}

fn no_device(source: &str) -> Health {
    Health::Unsupported { reason: format!("`{source}` is not a block device") }
}

/// Options of the mount at a mount point.
pub(crate) fn mount_options(root: &Path, mount_point: &Path) -> Reading<String> {
    Ok(mount(root, mount_point)?.options)
}

fn mount(root: &Path, existing: &Path) -> Reading<Mount> {
    let mountinfo = text(root, "proc/self/mountinfo")?;
    mount_of(&mountinfo, existing).ok_or_else(|| {
        Health::not_understood(&root.join("proc/self/mountinfo"), "mount of the folder")
    })
}

/// The folder with links resolved, or its nearest parent that exists.
pub(crate) fn nearest_existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let found = absolute.ancestors().find_map(|path| path.canonicalize().ok());
    found.unwrap_or(absolute)
}

/// Space that a process without privileges may still use.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    space(folder).map(|(free_bytes, _)| free_bytes)
}

/// Like [`free_bytes`], with the size of the file system.
pub(crate) fn space(folder: &Path) -> Option<(u64, u64)> {
    let stat = nix::sys::statvfs::statvfs(folder).ok()?;
    let unit = stat.fragment_size();
    Some((stat.blocks_available() * unit, stat.blocks() * unit))
}

/// All mounts that are visible to this process.
pub(crate) fn mounts(root: &Path) -> Reading<Vec<Mount>> {
    let mountinfo = text(root, "proc/self/mountinfo")?;
    Ok(mountinfo.lines().filter_map(parse_mount).collect())
}

/// The mount with the longest mount point above the path; of several mounts on one point the last
/// one, because it hides the others.
fn mount_of(mountinfo: &str, path: &Path) -> Option<Mount> {
    mountinfo
        .lines()
        .filter_map(parse_mount)
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())
}

/// Fields of a line: id, parent, device number, root, mount point, options, optional fields, `-`,
/// type, source, options of the file system.
fn parse_mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    let device_number = before.next()?.to_owned();
    let part = PathBuf::from(unescaped(before.next()?));
    let mount_point = PathBuf::from(unescaped(before.next()?));
    let own_options = before.next()?;
    let mut after = after.split(' ');
    let filesystem = after.next()?.to_owned();
    let source = unescaped(after.next()?);
    let mut options: Vec<&str> = Vec::new();
    for option in own_options.split(',').chain(after.next()?.split(',')) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount { device_number, part, mount_point, options: options.join(","), filesystem, source })
}

/// The folder with the queue settings of the device. A partition has its disk's settings.
fn queue_folder(root: &Path, mount: &Mount) -> Option<PathBuf> {
    let device = device_folder(root, mount)?;
    let disk = if device.join("partition").exists() { device.parent()?.to_owned() } else { device };
    Some(disk.join("queue"))
}

/// The folder of a device in `/sys`, with links resolved.
fn device_folder(root: &Path, mount: &Mount) -> Option<PathBuf> {
    let by_number = root.join("sys/dev/block").join(&mount.device_number);
    // File systems over several devices have a device number of their own; their source names one
    // device.
    let by_name = || {
        let device = Path::new(mount.source.strip_prefix("/dev/")?);
        let name = fs::canonicalize(root.join("dev").join(device)).ok();
        let name = name.as_deref().unwrap_or(device).file_name()?.to_owned();
        Some(root.join("sys/class/block").join(name))
    };
    by_number.canonicalize().ok().or_else(|| by_name()?.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    const MOUNTS: &str = "\
27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw,discard
28 27 0:40 / /tmp rw,nosuid shared:5 - tmpfs tmpfs rw,size=1k
29 27 8:16 / /data rw,noatime shared:7 master:1 - xfs /dev/sdb rw,noatime,attr2
30 27 0:50 / /data/with\\040blank rw - btrfs /dev/mapper/pool rw,ssd
31 27 9:1 / /twice rw - ext4 /dev/old rw
32 27 9:2 / /twice rw - ext4 /dev/new rw
";

    fn source(path: &str) -> String {
        mount_of(MOUNTS, Path::new(path)).unwrap().source
    }

    #[test]
    fn longest_mount_point_wins_by_whole_names() {
        assert_eq!(source("/home/x"), "/dev/vda1");
        assert_eq!(source("/data"), "/dev/sdb");
        assert_eq!(source("/data/db"), "/dev/sdb");
        assert_eq!(source("/database"), "/dev/vda1");
        assert_eq!(source("/data/with blank/db"), "/dev/mapper/pool");
        assert_eq!(source("/twice/db"), "/dev/new");
    }

    #[test]
    fn optional_fields_are_skipped_and_options_joined_once() {
        let mount = mount_of(MOUNTS, Path::new("/data")).unwrap();
        assert_eq!(mount.filesystem, "xfs");
        assert_eq!(mount.options, "rw,noatime,attr2");
        assert_eq!(mount.device_number, "8:16");
    }

    /// A machine whose root is a partition of `vda`.
    fn machine() -> Fixture {
        let disk = "sys/devices/pci0/block/vda";
        let fixture = Fixture::new()
            .with("proc/self/mountinfo", MOUNTS)
            .with(&format!("{disk}/vda1/partition"), "1\n")
            .with(&format!("{disk}/queue/read_ahead_kb"), "128\n")
            .with(&format!("{disk}/queue/scheduler"), "none [mq-deadline] bfq\n")
            .with(&format!("{disk}/queue/rotational"), "0\n");
        let links = fixture.root().join("sys/dev/block");
        fs::create_dir_all(&links).unwrap();
        symlink(fixture.root().join(disk).join("vda1"), links.join("254:1")).unwrap();
        fixture
    }

    #[test]
    fn partition_has_the_settings_of_its_disk() {
        let fixture = machine();
        // A nonexistent folder has the storage of the root.
        let storage = storage(fixture.root(), Path::new("/no-such-folder-anywhere/db")).unwrap();
        assert_eq!(storage.path, "/no-such-folder-anywhere/db");
        assert_eq!(storage.device.as_deref(), Some("/dev/vda1"));
        assert_eq!(storage.filesystem.as_deref(), Some("ext4"));
        assert_eq!(storage.mount_options.as_deref(), Some("rw,relatime,discard"));
        assert_eq!(storage.readahead_bytes, Some(128 * 1024));
        assert_eq!(storage.scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!(storage.rotational, Some(false));
        assert!(storage.free_bytes.is_some());
    }

    #[test]
    fn file_system_without_device_leaves_the_device_empty() {
        let fixture = machine().with("proc/self/mountinfo", "1 1 0:40 / / rw - tmpfs tmpfs rw\n");
        let storage = storage(fixture.root(), Path::new("/")).unwrap();
        assert_eq!(storage.filesystem.as_deref(), Some("tmpfs"));
        assert_eq!(
            (storage.device, storage.readahead_bytes, storage.rotational),
            (None, None, None)
        );
    }

    #[test]
    fn file_system_with_its_own_number_is_found_by_its_source() {
        let fixture =
            machine().with("proc/self/mountinfo", "1 1 0:50 / / rw - btrfs /dev/vdb rw\n");
        let queue = "sys/devices/pci0/block/vdb/queue/read_ahead_kb";
        let fixture = fixture.with(queue, "16\n");
        let links = fixture.root().join("sys/class/block");
        fs::create_dir_all(&links).unwrap();
        symlink(fixture.root().join("sys/devices/pci0/block/vdb"), links.join("vdb")).unwrap();
        let storage = storage(fixture.root(), Path::new("/")).unwrap();
        assert_eq!(storage.readahead_bytes, Some(16 * 1024));
    }

    #[test]
    fn storage_is_unknown_without_a_mount_table() {
        let fixture = Fixture::new();
        assert!(matches!(storage(fixture.root(), Path::new("/")), Err(Health::Unsupported { .. })));
        let fixture = fixture.with("proc/self/mountinfo", "garbage\n");
        assert!(matches!(storage(fixture.root(), Path::new("/")), Err(Health::Degraded { .. })));
    }

    proptest! {
        #[test]
        fn parsing_any_mount_table_does_not_panic(text in "\\PC*", line in "[0-9: \
            /a-z\\\\,-]{0,80}") {
            let _ = mount_of(&text, Path::new("/a"));
            let _ = mount_of(&line, Path::new("/a"));
        }

        #[test]
        fn escaped_names_are_restored(name in "[a-z \\\\\t]{1,12}") {
            let escaped: String = name
                .chars()
                .map(|c| if c.is_ascii_lowercase() { c.to_string() } else { format!("\\{:03o}", c as u32) })
                .collect();
            prop_assert_eq!(unescaped(&escaped), name);
        }
    }
}
