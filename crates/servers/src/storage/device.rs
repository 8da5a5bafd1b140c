//! Checks block devices before anything is written: only an empty device without users is accepted.

use super::StorageError;
use super::program::{self, Interrupted};
use nix::sys::stat::{major, minor};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Label of the file systems that we create, by which leftovers are recognized.
pub(super) const LABEL: &str = "dyno-storage";

/// An existing block device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its path with links resolved.
    pub path: PathBuf,
    /// `major:minor`.
    pub number: String,
    pub bytes: u64,
}

/// The device at a path, unless it is not a device, has content or is in use.
pub(super) fn check(
    named: &str,
    interrupted: Interrupted<'_>,
) -> Result<BlockDevice, StorageError> {
    let refused =
        |reason: String| StorageError::Refused { device: named.to_owned(), reason, is_ours: false };
    let device = look(named, Path::new("/")).map_err(refused)?;
    // The kernel refuses exclusive access to a device that is mounted, swap, a member of a volume,
    // or claimed by a program.
    let alone = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&device.path);
    if let Err(error) = alone {
        return Err(refused(match error.raw_os_error() {
            Some(libc::EBUSY) => "it is in use by the kernel or by another program".to_owned(),
            _ => format!("it cannot be opened: {error}"),
        }));
    }
    let path = device.path.to_string_lossy();
    let found = program::run("wipefs", &["--parsable", &path], interrupted)?;
    let signatures = signatures(&found);
    if signatures.is_empty() {
        return Ok(device);
    }
    let is_ours = signatures.iter().all(|one| one.label == LABEL);
    let kinds: Vec<String> = signatures.iter().map(Signature::to_string).collect();
    Err(StorageError::Refused {
        device: named.to_owned(),
        reason: format!("it holds {}", kinds.join(" and ")),
        is_ours,
    })
}

/// A mark of a device's content.
#[derive(Debug, PartialEq, Eq)]
struct Signature<'a> {
    label: &'a str,
    kind: &'a str,
}

impl std::fmt::Display for Signature<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.label {
            "" => write!(formatter, "`{}`", self.kind),
            label => write!(formatter, "`{}` with the label `{label}`", self.kind),
        }
    }
}

/// Lines of `wipefs --parsable`: offset, UUID, label and type, separated by commas.
fn signatures(text: &str) -> Vec<Signature<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut found = Vec::new();
    for line in lines {
        let mut fields = line.splitn(3, ',').skip(2);
        let rest = fields.next().unwrap_or(line);
        // A label may contain commas, a type does not.
        let (label, kind) = rest.rsplit_once(',').unwrap_or(("", rest));
        let signature = Signature { label, kind };
        if !line.trim().is_empty() && !found.contains(&signature) {
            found.push(signature);
        }
    }
    found
}

/// The device and the kernel's information about it below `root`, or why it cannot be used.
fn look(named: &str, root: &Path) -> Result<BlockDevice, String> {
    let path = fs::canonicalize(named).map_err(|error| error.to_string())?;
    let metadata = fs::metadata(&path).map_err(|error| error.to_string())?;
    if !metadata.file_type().is_block_device() {
        return Err("it is not a block device".to_owned());
    }
    // Options of `mount` take a list of paths.
    let is_plain = |path: &str| !path.contains(|c: char| c == ',' || c.is_control());
    if !path.to_str().is_some_and(is_plain) {
        return Err(
            "its path has a comma, a control character or bytes that are not UTF-8".to_owned()
        );
    }
    let number = format!("{}:{}", major(metadata.rdev()), minor(metadata.rdev()));
    let bytes = unused(&number, root)?;
    Ok(BlockDevice { path, number, bytes })
}

/// The size of a device if the kernel shows no use of it.
fn unused(number: &str, root: &Path) -> Result<u64, String> {
    let folder = root.join("sys/dev/block").join(number);
    let names = |folder: &Path| -> Vec<String> {
        let names = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.collect()
    };
    let holders = names(&folder.join("holders"));
    if !holders.is_empty() {
        return Err(format!("it is a member of `{}`", holders.join("`, `")));
    }
    let mut parts = names(&folder);
    parts.retain(|name| folder.join(name).join("partition").exists());
    if !parts.is_empty() {
        return Err(format!("it has partitions: `{}`", parts.join("`, `")));
    }
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mounted = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(2);
        let is_it = fields.next() == Some(number);
        fields.nth(1).filter(|_| is_it)
    });
    if let Some(place) = mounted {
        return Err(format!("it is mounted at `{place}`"));
    }
    let line = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    if line("ro").trim() == "1" {
        return Err("it is read-only".to_owned());
    }
    let sectors: u64 = line("size").trim().parse().unwrap_or(0);
    match sectors {
        0 => Err("it has no size".to_owned()),
        sectors => Ok(sectors * SECTOR_BYTES),
    }
}

/// Unit of sizes in `/sys/block`, regardless of the device's sectors.
const SECTOR_BYTES: u64 = 512;

/// The device number for a limit: the whole disk's number, because partitions have no limits.
pub(super) fn disk_number(number: &str, root: &Path) -> Option<String> {
    let folder = fs::canonicalize(root.join("sys/dev/block").join(number)).ok()?;
    let disk = match folder.join("partition").exists() {
        true => folder.parent()?.to_owned(),
        false => folder,
    };
    let number = fs::read_to_string(disk.join("dev")).ok()?;
    Some(number.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let text =
            "# offset,uuid,label,type\n0x0,u-1,my,data,xfs\n0x1fe,,,dos\n0x200,,,gpt\n0x9,,,gpt\n";
        let found: Vec<(&str, &str)> =
            signatures(text).iter().map(|signature| (signature.label, signature.kind)).collect();
        assert_eq!(found, [("my,data", "xfs"), ("", "dos"), ("", "gpt")]);
        assert_eq!(signatures(""), []);
        assert_eq!(signatures("# offset,uuid,label,type"), []);
    }

    #[test]
    fn devices_in_use_are_refused_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/dev/block/8:16");
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let assert_reason = |part: &str| {
            let reason = unused("8:16", root.path()).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        };
        assert_reason("no size");
        write("sys/dev/block/8:16/size", "2048\n");
        assert_eq!(unused("8:16", root.path()), Ok(1 << 20));
        write("sys/dev/block/8:16/ro", "1\n");
        assert_reason("read");
        write("proc/self/mountinfo", "29 27 8:16 / /data rw - xfs /dev/sdb rw\n");
        assert_reason("mounted at `/data`");
        write("sys/dev/block/8:16/sdb1/partition", "1\n");
        assert_reason("`sdb1`");
        fs::create_dir_all(folder.join("holders/md0")).unwrap();
        assert_reason("`md0`");
    }

    #[test]
    fn partition_is_limited_by_the_number_of_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/devices/pci0/block/sdb");
        let links = root.path().join("sys/dev/block");
        fs::create_dir_all(disk.join("sdb1")).unwrap();
        fs::create_dir_all(&links).unwrap();
        fs::write(disk.join("dev"), "8:16\n").unwrap();
        fs::write(disk.join("sdb1/dev"), "8:17\n").unwrap();
        fs::write(disk.join("sdb1/partition"), "1\n").unwrap();
        std::os::unix::fs::symlink(&disk, links.join("8:16")).unwrap();
        std::os::unix::fs::symlink(disk.join("sdb1"), links.join("8:17")).unwrap();
        for number in ["8:16", "8:17"] {
            let found = disk_number(number, root.path());
            assert_eq!(found.as_deref(), Some("8:16"), "{number}");
        }
        assert_eq!(disk_number("8:32", root.path()), None);
    }

    #[test]
    fn paths_that_are_not_block_devices_are_refused() {
        for (named, reason) in
            [("/dev/null", "block device"), ("/dev/no-such-disk", "No such file")]
        {
            let error = look(named, Path::new("/")).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
