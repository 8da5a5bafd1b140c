//! Prepares storage for servers and removes it afterwards: file systems on files behind loop
//! devices, or on named devices that are empty.
//!
//! The file system is mounted in a mount namespace of the preparing thread. Only this thread and
//! its later children see it: the threads that read the data folder, and the servers. A file loses
//! its name once its loop device holds it, and the loop device disappears with its last user. So if
//! this process is killed, mount, loop device and file are gone with it. A watchdog empties named
//! devices, as a normal end does.

mod capacity;
mod device;
mod error;
mod fio;
mod program;
mod throttle;

pub use capacity::{Counting, NamedCounters};
pub use device::BlockDevice;
pub use error::StorageError;
pub use fio::{MEASURING, StorageLimits, can_measure};
pub use throttle::Throttle;

use crate::watchdog::Watchdog;
use device::LABEL;
use dyno_plan::storage::{Device, FileSystem, Storage, Volume};
use dyno_plan::units::Bytes;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{major, minor};
use program::{Interrupted, run};
use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longest wait until the file system has no more users.
const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// Stripe of a RAID 0 in KiB: the default of `mdadm --create`.
const CHUNK: &str = "512";

thread_local! {
    /// Whether this thread has its own mounts.
    static HAS_OWN_MOUNTS: Cell<bool> = const { Cell::new(false) };
}

/// Prepared and mounted storage. Removed when dropped; its users must have ended by then.
#[derive(Debug)]
pub struct PreparedStorage {
    setting: Storage,
    /// Mount point.
    folder: PathBuf,
    devices: Vec<PreparedDevice>,
    /// The kernel's RAID 0 over the devices.
    array: Option<PathBuf>,
    is_mounted: bool,
    is_gone: bool,
    watchdog: Watchdog,
}

/// A device of the storage.
#[derive(Debug)]
struct PreparedDevice {
    block: BlockDevice,
    /// The file behind a loop device, which no longer has a name.
    image: Option<PathBuf>,
    /// Keeps a loop device while it is not mounted.
    held: Option<File>,
    /// Whether we began to write to it.
    is_written: bool,
}

/// Refuses what [`PreparedStorage::prepare`] would refuse, if that can be checked before anything
/// is created: missing rights and programs, devices with content, and files that do not fit into
/// `folder`.
///
/// # Errors
/// [`StorageError`].
pub fn check(setting: &Storage, folder: &Path) -> Result<Vec<BlockDevice>, StorageError> {
    if !nix::unistd::geteuid().is_root() {
        return Err(StorageError::NotRoot);
    }
    let file_system = setting.volume.file_system();
    let (make, package) = match file_system {
        FileSystem::Ext4 => ("mkfs.ext4", "e2fsprogs"),
        FileSystem::Xfs => ("mkfs.xfs", "xfsprogs"),
        FileSystem::Btrfs => ("mkfs.btrfs", "btrfs-progs"),
    };
    let is_array = matches!(setting.volume, Volume::Raid0(_));
    for (program, package, is_needed) in [
        ("losetup", "mount", setting.loop_bytes() > 0),
        ("wipefs", "util-linux", true),
        (make, package, true),
        ("mdadm", "mdadm", is_array && has_md()),
    ] {
        if is_needed && !program::is_there(program) {
            return Err(StorageError::NoProgram { program, package });
        }
    }
    if is_array && !has_md() {
        return Err(StorageError::NoMd);
    }
    if setting.limit.is_some() {
        throttle::check()?;
    }
    check_space(setting, folder)?;
    let mut blocks: Vec<BlockDevice> = Vec::new();
    for named in setting.devices.iter().filter_map(path_of) {
        let block = device::check(named, &|| false)?;
        if blocks.contains(&block) {
            return Err(StorageError::Refused {
                device: named.to_owned(),
                reason: "`server.storage` also contains it under another name".to_owned(),
                is_ours: false,
            });
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// The path of a named device.
fn path_of(device: &Device) -> Option<&str> {
    match device {
        Device::Block(path) => Some(path),
        Device::Loop(_) => None,
    }
}

/// Whether the kernel supports RAID itself or through a module.
fn has_md() -> bool {
    Path::new("/proc/mdstat").exists()
        || run("modprobe", &["--dry-run", "raid0"], &|| false).is_ok()
}

/// Refuses files that could fill up their disk, which would fail in the middle of a run.
fn check_space(setting: &Storage, folder: &Path) -> Result<(), StorageError> {
    let needed = setting.loop_bytes();
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let existing = folder.ancestors().find(|folder| folder.is_dir());
    let stat = existing.and_then(|folder| nix::sys::statvfs::statvfs(folder).ok());
    let Some(stat) = stat.filter(|_| needed > 0) else {
        return Ok(());
    };
    let free = stat.blocks_available() * stat.fragment_size();
    if needed <= free {
        return Ok(());
    }
    Err(StorageError::NoSpace { folder, needed: Bytes(needed), free: Bytes(free >> 20 << 20) })
}

impl PreparedStorage {
    /// Prepares the storage of a plan and mounts it at `folder`, which is created; files behind
    /// loop devices are next to it. From here on, this thread and its children have their own
    /// mounts. `interrupted` is called every few milliseconds.
    ///
    /// # Errors
    /// [`StorageError`]; nothing is left behind.
    pub fn prepare(
        setting: &Storage,
        folder: &Path,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<PreparedStorage, StorageError> {
        let folder = std::path::absolute(folder).map_err(StorageError::step("use the folder"))?;
        if folder.to_str().is_none() {
            let source = io::Error::other("its path is not valid UTF-8");
            let step = format!("use the folder `{}`", folder.display());
            return Err(StorageError::step(step)(source));
        }
        let beside = folder.parent().map(Path::to_owned).unwrap_or_default();
        let mut named = check(setting, &beside)?.into_iter();
        own_mounts()?;
        let watchdog = Watchdog::of_storage().map_err(StorageError::step("start a watchdog"))?;
        let mut storage = PreparedStorage {
            setting: setting.clone(),
            folder,
            devices: Vec::new(),
            array: None,
            is_mounted: false,
            is_gone: false,
            watchdog,
        };
        fs::create_dir_all(&storage.folder).map_err(StorageError::step("create its folder"))?;
        storage.tell("mount", &storage.folder);
        for (number, device) in setting.devices.iter().enumerate() {
            let prepared = match device {
                Device::Loop(bytes) => {
                    let image = beside.join(format!("storage-{number}.img"));
                    loop_device(image, bytes.0)?
                }
                Device::Block(_) => PreparedDevice {
                    block: named.next().expect("each was checked"),
                    image: None,
                    held: None,
                    is_written: false,
                },
            };
            storage.devices.push(prepared);
        }
        storage.format(interrupted)?;
        storage.mount()?;
        Ok(storage)
    }

    /// Creates the file system.
    fn format(&mut self, interrupted: Interrupted<'_>) -> Result<(), StorageError> {
        for number in 0..self.devices.len() {
            let device = &mut self.devices[number];
            device.is_written = true;
            if device.image.is_none() {
                self.tell("wipe", &self.devices[number].block.path);
            }
        }
        if matches!(self.setting.volume, Volume::Raid0(_)) {
            self.assemble(interrupted)?;
        }
        let targets = self.targets();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let (program, options): (_, &[&str]) = match self.setting.volume {
            // A lazy initialisation would appear as load later.
            Volume::Single(FileSystem::Ext4) | Volume::Raid0(FileSystem::Ext4) => {
                ("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"])
            }
            Volume::Single(FileSystem::Xfs) | Volume::Raid0(FileSystem::Xfs) => {
                ("mkfs.xfs", &["-q"])
            }
            Volume::Single(FileSystem::Btrfs) | Volume::Raid0(FileSystem::Btrfs) => {
                ("mkfs.btrfs", &["-q"])
            }
            Volume::BtrfsRaid0 => ("mkfs.btrfs", &["-q", "-d", "raid0", "-m", "raid0"]),
        };
        let arguments = [options, &["-L", LABEL], &targets].concat();
        run(program, &arguments, interrupted).map(drop)
    }

    /// Joins the devices to a RAID 0 that leaves no marks on them.
    fn assemble(&mut self, interrupted: Interrupted<'_>) -> Result<(), StorageError> {
        let is_free = |number: &u32| !Path::new(&format!("/sys/block/md{number}")).exists();
        let number = (0..=127).rev().find(is_free).unwrap_or_default();
        let array = format!("/dev/md{number}");
        let members = self.member_paths();
        let count = format!("--raid-devices={}", members.len());
        let chunk = format!("--chunk={CHUNK}");
        let members = members.iter().map(String::as_str);
        let arguments = ["--quiet", "--build", &array, "--level=0", &chunk, &count];
        let arguments: Vec<&str> = arguments.into_iter().chain(members).collect();
        run("mdadm", &arguments, interrupted)?;
        self.tell("array", Path::new(&array));
        self.array = Some(array.into());
        Ok(())
    }

    fn mount(&mut self) -> Result<(), StorageError> {
        let targets = self.targets();
        let file_system = self.setting.volume.file_system().as_str();
        // Without a daemon, btrfs needs the names of all members to find them.
        let members: Vec<String> = match self.setting.volume {
            Volume::BtrfsRaid0 => targets.iter().map(|path| format!("device={path}")).collect(),
            _ => Vec::new(),
        };
        let members = members.join(",");
        let options = (!members.is_empty()).then_some(members.as_str());
        let source = Some(targets[0].as_str());
        // Reads write no access times.
        let flags = MsFlags::MS_NOATIME;
        mount(source, &self.folder, Some(file_system), flags, options)
            .map_err(|error| StorageError::step("mount the file system")(error.into()))?;
        self.is_mounted = true;
        for device in &mut self.devices {
            device.held = None;
        }
        Ok(())
    }

    /// The block devices of the file system.
    fn targets(&self) -> Vec<String> {
        match &self.array {
            Some(array) => vec![array.display().to_string()],
            None => self.member_paths(),
        }
    }

    /// Paths of the devices, such as `/dev/loop0`.
    pub fn member_paths(&self) -> Vec<String> {
        self.devices.iter().map(|device| device.block.path.display().to_string()).collect()
    }

    /// Total size of all devices.
    pub fn bytes(&self) -> u64 {
        self.devices.iter().map(|device| device.block.bytes).sum()
    }

    /// The folder for the servers' data, which the servers create.
    pub fn data(&self) -> PathBuf {
        self.folder.join(DATA)
    }

    /// Limits the operations of these processes and their children to the plan's number, until the
    /// returned limit is dropped. `None` without a limit in the plan.
    ///
    /// # Errors
    /// [`StorageError::Step`] and [`StorageError::NoLimits`].
    pub fn throttle(&self, processes: &[u32]) -> Result<Option<Throttle>, StorageError> {
        let Some(limit) = self.setting.limit else {
            return Ok(None);
        };
        let numbers: Option<Vec<String>> = self
            .devices
            .iter()
            .map(|device| device::disk_number(&device.block.number, Path::new("/")))
            .collect();
        let throttle =
            Throttle::set(&numbers.ok_or(StorageError::NoLimits)?, limit.per_s, processes)?;
        self.tell("group", throttle.group());
        Ok(Some(throttle))
    }

    /// The limit of operations that applies from the start of the servers on.
    pub fn limit_per_s(&self) -> Option<u32> {
        let limit = self.setting.limit.filter(|limit| limit.after.is_none())?;
        Some(limit.per_s)
    }

    /// Time from the start of the servers until the plan's limit applies; `None` without a limit,
    /// or if it applies at once.
    pub fn limited_after(&self) -> Option<Duration> {
        Some(self.setting.limit?.after?.0)
    }

    /// Measures the storage with `fio`, under the plan's limit if that applies at once, and the
    /// capacity of each device without a limit, by its counters. Nothing else may use the storage
    /// at the same time.
    ///
    /// # Errors
    /// [`StorageError::NoProgram`] without `fio`, and errors of measuring.
    pub fn measure(
        &self,
        counting: Counting<'_>,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<StorageLimits, StorageError> {
        if !can_measure() {
            return Err(StorageError::NoProgram { program: fio::FIO, package: fio::FIO });
        }
        fio::measure(self, counting, interrupted)
    }

    /// Unmounts the storage and empties the devices. Its users must have ended.
    ///
    /// # Errors
    /// [`StorageError::Step`] with the part that remains.
    pub fn remove(mut self) -> Result<(), StorageError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), StorageError> {
        if std::mem::replace(&mut self.is_gone, true) {
            return Ok(());
        }
        let mut failure = None;
        if std::mem::take(&mut self.is_mounted) {
            unmount(&self.folder);
        }
        if let Some(array) = self.array.take() {
            let array = array.display().to_string();
            failure = run("mdadm", &["--quiet", "--stop", &array], &|| false).err();
        }
        for device in &mut self.devices {
            let path = device.block.path.display().to_string();
            device.held = None;
            match &device.image {
                // The last user detaches the loop device, so it may have another owner by now.
                // Before it was mounted, nothing else detaches it.
                Some(image) if has_file(Path::new("/"), &path, image) => {
                    let _ = run("losetup", &["--detach", &path], &|| false);
                }
                None if device.is_written => {
                    let wiped = run("wipefs", &["--quiet", "--all", &path], &|| false);
                    failure = failure.or(wiped.err());
                }
                _ => {}
            }
        }
        let removed = fs::remove_dir(&self.folder);
        failure = failure
            .or(removed.map_err(StorageError::step("remove the folder of the storage")).err());
        failure.map_or(Ok(()), Err)
    }

    /// Tells the watchdog what to remove after our death. A dead watchdog removes nothing, which is
    /// not a reason to end the run.
    fn tell(&self, word: &'static str, path: &Path) {
        let _ = self.watchdog.send_path(word, path);
    }
}

/// Name of the data folder on the storage.
const DATA: &str = "data";

impl Drop for PreparedStorage {
    fn drop(&mut self) {
        if let Err(error) = self.take_away() {
            tracing::warn!(%error, "storage not removed cleanly");
        }
    }
}

fn unmount(folder: &Path) {
    let began = Instant::now();
    loop {
        match umount2(folder, MntFlags::empty()) {
            Err(nix::Error::EBUSY) if began.elapsed() < BUSY_LIMIT => {
                sleep(Duration::from_millis(50));
            }
            Err(nix::Error::EBUSY) => {
                let _ = umount2(folder, MntFlags::MNT_DETACH);
                return;
            }
            _ => return,
        }
    }
}

/// Creates a file behind a loop device, which disappears with its last user.
fn loop_device(image: PathBuf, bytes: u64) -> Result<PreparedDevice, StorageError> {
    let file = File::create_new(&image).and_then(|file| file.set_len(bytes));
    file.map_err(StorageError::step(format!("make `{}`", image.display())))?;
    let name = image.display().to_string();
    let attach = |options: &[&str]| {
        let arguments = [&["--find", "--show"], options, &[&*name]].concat();
        run("losetup", &arguments, &|| false)
    };
    // With direct I/O, the page cache of the file below answers nothing.
    let attached = attach(&["--direct-io=on"]).or_else(|_| attach(&[]));
    // The loop device keeps the file open.
    let _ = fs::remove_file(&image);
    let path = attached?;
    let opened = File::open(&path).and_then(|file| Ok((file.metadata()?.rdev(), file)));
    let opened = opened.map_err(StorageError::step(format!("open `{path}`")));
    // A device in use is detached when its last user closes it, which after mounting is the mount.
    // So nothing is left behind if this process is killed.
    run("losetup", &["--detach", &path], &|| false)?;
    let (number, held) = opened?;
    Ok(PreparedDevice {
        block: BlockDevice {
            path: path.into(),
            number: format!("{}:{}", major(number), minor(number)),
            bytes,
        },
        image: Some(image),
        held: Some(held),
        is_written: false,
    })
}

/// Whether this file, which no longer has a name, is behind a loop device.
fn has_file(root: &Path, device: &str, image: &Path) -> bool {
    let Some(name) = Path::new(device).file_name() else {
        return false;
    };
    let file = root.join("sys/block").join(name).join("loop/backing_file");
    let expected = format!("{} (deleted)", image.display());
    fs::read_to_string(file).is_ok_and(|found| found.trim_end_matches('\n') == expected)
}

/// Gives this thread its own mounts; others do not see what it mounts.
fn own_mounts() -> Result<(), StorageError> {
    if HAS_OWN_MOUNTS.get() {
        return Ok(());
    }
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
        .map_err(|error| StorageError::step("create a mount namespace")(io::Error::from(error)))?;
    HAS_OWN_MOUNTS.set(true);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reused_loop_device_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/block/loop3/loop");
        fs::create_dir_all(&folder).unwrap();
        let image = Path::new("/x/disk.img");
        let is_ours = || has_file(root.path(), "/dev/loop3", image);
        assert!(!is_ours());
        fs::write(folder.join("backing_file"), "/x/disk.img (deleted)\n").unwrap();
        assert!(is_ours());
        fs::write(folder.join("backing_file"), "/home/other.img\n").unwrap();
        assert!(!is_ours());
    }

    #[test]
    fn files_that_do_not_fit_are_refused() {
        let setting: Storage = "ext4 on loop:4000TiB".parse().unwrap();
        let folder = std::env::temp_dir().join("no/such/folder");
        let error = check_space(&setting, &folder).unwrap_err();
        assert!(matches!(error, StorageError::NoSpace { .. }), "{error:?}");
        let setting: Storage = "ext4 on /dev/sdb".parse().unwrap();
        assert!(check_space(&setting, &folder).is_ok());
    }
}
