//! `server.storage` in a plan: the storage that is prepared for the servers' data and removed
//! afterwards.
//!
//! ```text
//! FILE-SYSTEM on DEVICE [LIMIT]                    ext4, xfs or btrfs on one device
//! raid0 FILE-SYSTEM on DEVICE,DEVICE[,…] [LIMIT]   RAID 0 of the kernel's `md`
//! btrfs-raid0 on DEVICE,DEVICE[,…] [LIMIT]         RAID 0 of btrfs itself
//! ```
//! A device is the path of a block device below `/dev`, or `loop:SIZE`: a file of that size behind
//! a loop device. The limit is `at N iops`, or `at N iops after TIME`, like a volume whose burst
//! credits last for that time.

use crate::names::choices;
use crate::units::{Bytes, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

choices! {
    /// File systems that can be created.
    FileSystem {
        /// ext4.
        Ext4 = "ext4", "ext4";
        /// XFS.
        Xfs = "xfs", "XFS";
        /// btrfs.
        Btrfs = "btrfs", "btrfs";
    }
}

/// How the devices form one file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// A file system on one device.
    Single(FileSystem),
    /// A file system on a RAID 0 of several devices, made by the kernel's `md`.
    Raid0(FileSystem),
    /// A btrfs that distributes data and metadata over several devices itself.
    BtrfsRaid0,
}

impl Volume {
    /// The file system that is mounted.
    pub fn file_system(self) -> FileSystem {
        match self {
            Volume::Single(file_system) | Volume::Raid0(file_system) => file_system,
            Volume::BtrfsRaid0 => FileSystem::Btrfs,
        }
    }
}

/// A device for a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// A block device, by its path.
    Block(String),
    /// A file of this size behind a loop device.
    Loop(Bytes),
}

/// Storage that is prepared for the servers of a run. The displayed text parses to the same value.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub struct Storage {
    /// How the devices form one file system.
    pub volume: Volume,
    /// One device, or at least two for a RAID 0.
    pub devices: Vec<Device>,
    /// Limit of each device for the servers; unlimited when absent.
    pub limit: Option<OperationLimit>,
}

/// A limit of a device's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationLimit {
    /// Largest number of reads per second, and of writes.
    pub per_s: u32,
    /// Time from the start of the servers until the limit applies; immediately when absent.
    pub after: Option<Span>,
}

/// A text is not a valid storage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a storage: {reason}; valid forms are `ext4 on loop:4GiB`, `xfs on /dev/nvme1n1 at 500 iops`, `raid0 xfs on /dev/sdb,/dev/sdc`, `btrfs-raid0 on /dev/sdb,/dev/sdc`"
)]
pub struct StorageTextError {
    pub text: String,
    pub reason: String,
}

/// Smallest file behind a loop device: enough for XFS and the journal of a server.
pub const LEAST_LOOP: Bytes = Bytes::from_mib(512);
/// Largest number of devices of a RAID 0; a larger number is probably a typing error.
const MOST_DEVICES: usize = 32;
const LOOP: &str = "loop:";
const RAID0: &str = "raid0 ";
const BTRFS_RAID0: &str = "btrfs-raid0";

impl Storage {
    /// Total size of all files behind loop devices.
    pub fn loop_bytes(&self) -> u64 {
        let sizes = self.devices.iter().map(|device| match device {
            Device::Loop(bytes) => bytes.0,
            Device::Block(_) => 0,
        });
        sizes.fold(0, u64::saturating_add)
    }

    /// Whether all devices are files behind loop devices.
    pub fn is_on_loop(&self) -> bool {
        self.devices.iter().all(|device| matches!(device, Device::Loop(_)))
    }
}

impl FromStr for Storage {
    type Err = StorageTextError;

    fn from_str(text: &str) -> Result<Self, StorageTextError> {
        parse(text).map_err(|reason| StorageTextError { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Storage, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (words, limit) = match words.as_slice() {
        [rest @ .., "at", number, "iops"] => (rest, Some(limit(number, None)?)),
        [rest @ .., "at", number, "iops", "after", time] => {
            (rest, Some(limit(number, Some(time))?))
        }
        rest => (rest, None),
    };
    let on = words.iter().position(|word| *word == "on");
    let on = on.ok_or("it does not say on which device")?;
    let volume = volume(&words[..on])?;
    let devices = words[on + 1..].join(" ");
    // A blank after a comma is harmless; any other would join two names.
    let devices = devices.split(',').map(|text| device(text.trim()));
    let devices: Vec<Device> = devices.collect::<Result<_, _>>()?;
    let is_single = matches!(volume, Volume::Single(_));
    match devices.len() {
        2.. if is_single => return Err("several devices need `raid0` or `btrfs-raid0`".into()),
        1 if !is_single => return Err("a RAID 0 needs two devices or more".into()),
        1..=MOST_DEVICES => {}
        count => return Err(format!("it has {count} devices, at most {MOST_DEVICES}")),
    }
    for (number, device) in devices.iter().enumerate() {
        if let Device::Block(path) = device
            && devices[..number].contains(device)
        {
            return Err(format!("it contains `{path}` twice"));
        }
    }
    Ok(Storage { volume, devices, limit })
}

fn limit(number: &str, after: Option<&str>) -> Result<OperationLimit, String> {
    let per_s = number.parse().ok().filter(|number| *number > 0);
    let per_s =
        per_s.ok_or_else(|| format!("`{number}` is not a number of operations per second"))?;
    let after = after.map(|time| match time.parse::<Span>() {
        Ok(span) if span.0.is_zero() => Err(format!("`after {time}` has no delay: omit it")),
        span => span.map_err(|error| error.to_string()),
    });
    let after = after.transpose()?;
    Ok(OperationLimit { per_s, after })
}

fn volume(words: &[&str]) -> Result<Volume, String> {
    let file_system = |name: &str| {
        let mut known = FileSystem::NAMES.iter();
        let found = known.find(|(_, known, _)| *known == name);
        found
            .map(|(file_system, ..)| *file_system)
            .ok_or_else(|| format!("`{name}` is not a file system: ext4, xfs or btrfs"))
    };
    match words {
        [BTRFS_RAID0] => Ok(Volume::BtrfsRaid0),
        [name] => file_system(name).map(Volume::Single),
        ["raid0", name] => file_system(name).map(Volume::Raid0),
        [] => Err("it does not name a file system".into()),
        other => Err(format!("`{}` is unknown", other.join(" "))),
    }
}

fn device(text: &str) -> Result<Device, String> {
    if let Some(size) = text.strip_prefix(LOOP) {
        let size: Bytes =
            size.parse().map_err(|error: crate::units::UnitError| error.to_string())?;
        return if size >= LEAST_LOOP {
            Ok(Device::Loop(size))
        } else {
            Err(format!("`{text}` is too small for a server: at least `loop:{LEAST_LOOP}`"))
        };
    }
    let name = text.strip_prefix("/dev/").unwrap_or_default();
    let is_path = !name.is_empty() && name.split('/').all(|part| !["", ".", ".."].contains(&part));
    if is_path && !text.contains([' ', ';']) {
        Ok(Device::Block(text.to_owned()))
    } else {
        Err(format!("`{text}` is not a device: a path below `/dev`, or `loop:SIZE`"))
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Block(path) => formatter.write_str(path),
            Device::Loop(size) => write!(formatter, "{LOOP}{size}"),
        }
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Volume::Single(file_system) => formatter.write_str(file_system.as_str()),
            Volume::Raid0(file_system) => write!(formatter, "{RAID0}{}", file_system.as_str()),
            Volume::BtrfsRaid0 => formatter.write_str(BTRFS_RAID0),
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices: Vec<String> = self.devices.iter().map(Device::to_string).collect();
        write!(formatter, "{} on {}", self.volume, devices.join(","))?;
        if let Some(OperationLimit { per_s, after }) = self.limit {
            write!(formatter, " at {per_s} iops")?;
            if let Some(after) = after {
                write!(formatter, " after {after}")?;
            }
        }
        Ok(())
    }
}

impl JsonSchema for Storage {
    fn schema_name() -> Cow<'static, str> {
        "Storage".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Storage that is prepared for the servers, such as `ext4 on loop:4GiB`, `xfs on /dev/nvme1n1 at 500 iops`, `raid0 xfs on /dev/sdb,/dev/sdc` or `btrfs-raid0 on /dev/sdb,/dev/sdc`.",
            "type": "string",
            "pattern": r"^\s*(btrfs-raid0|(raid0\s+)?(ext4|xfs|btrfs))\s+on\s+\S.*$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn reason(text: &str) -> String {
        text.parse::<Storage>().expect_err(text).reason
    }

    #[test]
    fn each_form_is_read() {
        for text in [
            "ext4 on loop:4GiB",
            "xfs on /dev/nvme1n1 at 500 iops",
            "xfs on loop:4GiB at 60 iops after 10m",
            "raid0 xfs on /dev/sdb,/dev/sdc",
            "btrfs-raid0 on loop:2GiB,loop:2GiB",
            "btrfs on /dev/disk/by-id/wwn-0x5000",
        ] {
            assert_eq!(text.parse::<Storage>().expect(text).to_string(), text);
        }
        let storage: Storage = "  xfs  on loop:1024MiB  at 90 iops ".parse().expect("blanks");
        assert_eq!(storage.to_string(), "xfs on loop:1GiB at 90 iops");
        let storage: Storage = "btrfs-raid0 on loop:1GiB, loop:2GiB".parse().expect("a blank");
        assert_eq!(storage.loop_bytes(), 3 << 30);
        assert!(storage.is_on_loop() && storage.limit.is_none());
        assert_eq!(storage.volume.file_system(), FileSystem::Btrfs);
    }

    #[test]
    fn malformed_storage_is_refused_with_the_reason() {
        for (text, part) in [
            ("", "which device"),
            ("ext4", "which device"),
            ("on /dev/sdb", "file system"),
            ("ntfs on /dev/sdb", "`ntfs`"),
            ("raid5 xfs on /dev/sdb,/dev/sdc", "`raid5 xfs`"),
            ("xfs on /dev/sdb,/dev/sdc", "`raid0`"),
            ("raid0 xfs on /dev/sdb", "two devices"),
            ("btrfs-raid0 on /dev/sdb", "two devices"),
            ("raid0 xfs on /dev/sdb,/dev/sdb", "twice"),
            ("xfs on sdb", "`sdb`"),
            ("xfs on /dev/../etc/x", "`/dev/../etc/x`"),
            ("xfs on /dev/", "`/dev/`"),
            ("xfs on", "``"),
            ("xfs on /dev/sd b", "`/dev/sd b`"),
            ("xfs on /home/disk.img", "`/home/disk.img`"),
            ("xfs on /dev/sdb,", "``"),
            ("ext4 on loop:many", "`many`"),
            ("ext4 on loop:100MiB", "`loop:512MiB`"),
            ("ext4 on loop:4GiB at 0 iops", "`0`"),
            ("ext4 on loop:4GiB at fast iops", "`fast`"),
            ("ext4 on loop:4GiB at 60 iops after 0s", "`after 0s`"),
            ("ext4 on loop:4GiB at 60 iops after noon", "`noon`"),
        ] {
            let reason = reason(text);
            assert!(reason.contains(part), "{text}: {reason}");
        }
        let many = vec!["loop:1GiB"; MOST_DEVICES + 1].join(",");
        assert!(reason(&format!("btrfs-raid0 on {many}")).contains("33"));
    }

    fn devices() -> impl Strategy<Value = Device> {
        prop_oneof![
            "[a-z]{1,8}[0-9]{0,3}(/[a-z0-9.:-]{1,9}[a-z])?"
                .prop_map(|name| Device::Block(format!("/dev/{name}"))),
            (512_u64..1 << 40).prop_map(|mebibytes| Device::Loop(Bytes(mebibytes << 20))),
        ]
    }

    proptest! {
        #[test]
        fn displayed_storage_is_read_back(
            first in devices(),
            more in proptest::collection::vec(devices(), 1..4),
            limit in proptest::option::of((1_u32.., proptest::option::of(1_u64..1 << 40))),
            kind in 0..3,
            file_system in 0..3_usize,
        ) {
            let (file_system, ..) = FileSystem::NAMES[file_system];
            let volume = match kind {
                0 => Volume::Single(file_system),
                1 => Volume::Raid0(file_system),
                _ => Volume::BtrfsRaid0,
            };
            let mut devices = vec![first];
            if kind > 0 {
                devices.extend(more);
                let mut blocks: Vec<String> = devices.iter().map(Device::to_string).collect();
                blocks.retain(|text| text.starts_with("/dev/"));
                let all = blocks.len();
                blocks.sort();
                blocks.dedup();
                prop_assume!(blocks.len() == all);
            }
            let limit = limit.map(|(per_s, after_ms)| {
                let after = after_ms.map(|after_ms| Span(Duration::from_millis(after_ms)));
                OperationLimit { per_s, after }
            });
            let storage = Storage { volume, devices, limit };
            prop_assert_eq!(storage.to_string().parse(), Ok(storage));
        }

        #[test]
        fn no_text_panics(text in "(raid0 |btrfs-raid0|xfs| on |loop:|/dev/a|,| at | iops| after |[0-9]s?| |.){0,12}") {
            if let Ok(storage) = text.parse::<Storage>() {
                prop_assert_eq!(storage.to_string().parse(), Ok(storage));
            }
        }
    }
}
