//! File systems and devices that hold data folders.

use crate::health::Health;
use crate::storage::{self, devices};
use crate::watch::source::Reported;
use dyno_record::names;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Data folders with their file systems and devices.
pub(super) struct DataFolders {
    root: PathBuf,
    folders: Vec<Folder>,
    /// Devices that hold data, with the number of folders on them.
    devices: BTreeMap<String, u64>,
    /// Devices that finally serve requests, with their concurrency.
    serves: BTreeMap<String, u64>,
    /// What could not be determined about the folders.
    missing: Option<Health>,
}

struct Folder {
    path: PathBuf,
    /// Number of the file system, to notice when another one is mounted there.
    number: Option<u64>,
    /// Name of the file system in metrics; absent if an earlier folder is on the same one.
    name: Option<String>,
}

impl DataFolders {
    pub(super) fn new(root: &Path, folders: Vec<PathBuf>) -> DataFolders {
        let folder = |path| Folder { path, number: None, name: None };
        DataFolders {
            root: root.to_owned(),
            folders: folders.into_iter().map(folder).collect(),
            devices: BTreeMap::new(),
            serves: BTreeMap::new(),
            missing: None,
        }
    }

    /// Whether a device, by its name in `/proc/diskstats`, holds data.
    pub(super) fn is_on(&self, device: &str) -> bool {
        self.devices.contains_key(device)
    }

    /// Reports the space on the file systems and the devices that hold data.
    pub(super) fn report(&mut self, reported: &mut Reported) {
        if self.has_changed() {
            self.find();
        }
        for folder in &self.folders {
            let Some(name) = &folder.name else {
                continue;
            };
            let existing = storage::nearest_existing(&folder.path);
            if let Some((free_bytes, total_bytes)) = storage::space(&existing) {
                reported.put(names::storage::FREE_BYTES.of(name), free_bytes as f64);
                let total = (total_bytes > 0).then_some(total_bytes as f64);
                let share = total.map(|total| free_bytes as f64 / total);
                reported.put_if_known(names::storage::FREE_RATIO.of(name), share);
            }
        }
        for (device, count) in &self.devices {
            reported.put(names::storage::HOLDS_DATA_COUNT.of(device), *count as f64);
        }
        for (device, count) in &self.serves {
            reported.put(names::storage::SERVES_COUNT.of(device), *count as f64);
        }
        if let Some(health) = &self.missing {
            reported.miss("storage", health.clone());
        }
    }

    /// Whether a file system was mounted or unmounted below a folder since the last check.
    fn has_changed(&mut self) -> bool {
        let mut has_changed = false;
        for folder in &mut self.folders {
            let there = fs::metadata(storage::nearest_existing(&folder.path));
            let number = there.ok().map(|there| there.dev());
            has_changed |= number.is_none() || number != folder.number;
            folder.number = number;
        }
        has_changed
    }

    fn find(&mut self) {
        self.devices.clear();
        self.serves.clear();
        self.missing = None;
        let mut reported: Vec<(Option<u64>, String)> = Vec::new();
        for folder in &mut self.folders {
            folder.name = None;
            let (filesystem, _) = match storage::device(&self.root, &folder.path) {
                Ok(found) => found,
                Err(health) => {
                    self.missing.get_or_insert(health);
                    continue;
                }
            };
            let mut chained = Vec::new();
            match devices::of_file_system(&self.root, &folder.path) {
                Ok(found) => {
                    for device in found {
                        chain(&self.root, &device, &mut chained);
                    }
                }
                Err(health) => {
                    self.missing.get_or_insert(health);
                }
            }
            for device in devices::ends(&self.root, &folder.path).unwrap_or_default() {
                let serves = devices::serves(&self.root, &device);
                self.serves.extend(devices::name(&device).zip(serves));
            }
            let known = reported.iter().any(|(number, _)| *number == folder.number);
            if !known {
                let name = chained.first().cloned().unwrap_or(filesystem);
                let name = free_name(&reported, &name);
                folder.name = Some(name.clone());
                reported.push((folder.number, name));
            }
            for device in chained {
                *self.devices.entry(device).or_default() += 1;
            }
        }
    }
}

/// The name, with a number if another file system has the same name, such as a second `tmpfs`.
fn free_name(reported: &[(Option<u64>, String)], name: &str) -> String {
    let is_free = |name: &String| !reported.iter().any(|(_, known)| known == name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| name.to_owned())
}

/// Adds the names of a device and of the devices below it: the disk of a partition, the members of
/// an array or volume, and the device with the file of a loop device.
fn chain(root: &Path, device: &Path, names: &mut Vec<String>) {
    let Some(name) = devices::name(device) else {
        return;
    };
    if names.contains(&name) {
        return;
    }
    names.push(name);
    for lower in devices::below(root, device) {
        chain(root, &lower, names);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_values, missing, names, value};
    use super::*;
    use crate::host::tests::Fixture;
    use std::os::unix::fs::symlink;

    /// A machine with the root on a partition, and a folder on a loop device whose file is there.
    fn machine() -> Fixture {
        let block = "sys/devices/virtual/block";
        let fixture = Fixture::new()
            .with("data/db/x", "")
            .with("sys/devices/pci0/block/vda/vda1/partition", "1\n")
            .with(&format!("{block}/loop3/loop/backing_file"), "/no-such-file.img\n")
            .with(&format!("{block}/dm-0/size"), "1\n");
        let root = fixture.root().to_owned();
        let number = |number: &str, device: &str| {
            let links = root.join("sys/dev/block");
            fs::create_dir_all(&links).unwrap();
            symlink(root.join(device), links.join(number)).unwrap();
        };
        number("254:1", "sys/devices/pci0/block/vda/vda1");
        number("7:3", &format!("{block}/loop3"));
        number("253:0", &format!("{block}/dm-0"));
        let slaves = root.join(block).join("dm-0/slaves");
        fs::create_dir_all(&slaves).unwrap();
        symlink(root.join(block).join("loop3"), slaves.join("loop3")).unwrap();
        let data = root.canonicalize().unwrap().join("data");
        let mounts = format!(
            "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n2 1 7:3 / {} rw - xfs /dev/loop3 rw\n",
            data.display()
        );
        fixture.with("proc/self/mountinfo", &mounts)
    }

    fn report(folders: &mut DataFolders) -> Reported {
        let mut reported = Reported::default();
        folders.report(&mut reported);
        reported
    }

    #[test]
    fn loop_device_and_the_disk_below_it_hold_the_data() {
        let fixture = machine();
        let folder = fixture.root().join("data/db");
        let mut folders = DataFolders::new(fixture.root(), vec![folder]);
        let reported = report(&mut folders);
        assert_eq!(
            names(&reported, "storage."),
            [
                "storage.loop3.free_bytes",
                "storage.loop3.free_ratio",
                "storage.loop3.holds_data_count",
                "storage.vda.holds_data_count",
                "storage.vda1.holds_data_count",
            ]
        );
        assert_values(&reported, &[("storage.loop3.holds_data_count", 1.0)]);
        let ratio = value(&reported, "storage.loop3.free_ratio").unwrap();
        assert!(ratio > 0.0 && ratio <= 1.0, "{ratio}");
        assert!(folders.is_on("vda") && !folders.is_on("vdb"));
        assert_eq!(reported.missing, []);
    }

    #[test]
    fn folders_on_one_file_system_are_reported_once_and_counted() {
        let fixture = machine();
        let folder = |name: &str| fixture.root().join("data").join(name);
        let folders = vec![folder("db"), folder("not-yet/there")];
        let reported = report(&mut DataFolders::new(fixture.root(), folders));
        assert_eq!(names(&reported, "storage.loop3.free_bytes").len(), 1);
        assert_values(
            &reported,
            &[("storage.loop3.holds_data_count", 2.0), ("storage.vda.holds_data_count", 2.0)],
        );
    }

    #[test]
    fn volume_data_is_on_its_members() {
        let fixture = machine();
        let device = fixture.root().join("sys/devices/virtual/block/dm-0");
        let mut names = Vec::new();
        chain(fixture.root(), &device.canonicalize().unwrap(), &mut names);
        assert_eq!(names, ["dm-0", "loop3", "vda1", "vda"]);
    }

    #[test]
    fn file_system_without_device_is_reported_by_its_type() {
        let fixture = machine().with("proc/self/mountinfo", "1 0 0:40 / / rw - tmpfs tmpfs rw\n");
        let reported = report(&mut DataFolders::new(fixture.root(), vec!["/".into()]));
        assert_eq!(
            names(&reported, "storage."),
            ["storage.tmpfs.free_bytes", "storage.tmpfs.free_ratio"]
        );
        assert!(matches!(missing(&reported, "storage"), Some(Health::Unsupported { .. })));
        let known = [(None, "tmpfs".to_owned()), (None, "tmpfs-2".to_owned())];
        assert_eq!(free_name(&known, "tmpfs"), "tmpfs-3");
    }
}
