//! A disk for the data of one experiment: a file behind a loop device, that this process and the servers that it starts
//! see and nobody else, and how many requests per second a device takes from a server.
//!
//! The file system is mounted in a mount namespace of our own, the file has no name once the loop device has it, and the
//! limit is of a control group of our own. So when this process is killed, disk and file are gone with it, and the limit holds
//! for nobody: its empty group is removed by the next experiment.

use dyno_engine::{Error, Kind};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Name of the file, which goes away at once, and of the folder where its file system is mounted.
const IMAGE: &str = "disk.img";
const MOUNTED: &str = "disk";
/// Longest wait until nobody uses the file system any more.
const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// How the name of a control group begins; the number of the process follows.
const GROUP: &str = "dyno-index-build-";
/// Where control groups of version 2 say what their children can limit.
const SUBTREE: &str = "cgroup.subtree_control";
/// Where control groups of version 1 limit devices.
const V1: &str = "/sys/fs/cgroup/blkio";

/// See the module.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Such as `/dev/loop0`.
    device: String,
    /// The file behind it, which has no name any more.
    image: PathBuf,
    mounted: PathBuf,
}

impl Disk {
    /// Makes one of this size below `folder`. From here on this thread, and what it starts, have mounts of their own.
    pub(crate) fn make(folder: &Path, bytes: u64) -> Result<Disk, Error> {
        let folder =
            std::path::absolute(folder).map_err(|error| failed("use the folder", error))?;
        own_mounts()?;
        let image = folder.join(IMAGE);
        File::create_new(&image)
            .and_then(|file| file.set_len(bytes))
            .map_err(|error| failed("make its file", error))?;
        let attached = attach(&image);
        // The loop device has it open.
        let _ = fs::remove_file(&image);
        let device = attached?;
        let mounted = folder.join(MOUNTED);
        let disk = Disk {
            device,
            image,
            mounted,
        };
        // A device that is in use goes away with its last user, which after the mount is the mount. So nothing is left when
        // this process is killed.
        let held = File::open(&disk.device).map_err(|error| failed("open it", error))?;
        run("losetup", &["--detach", &disk.device])?;
        // Without a lazy initialisation that would be seen as load later.
        let quick = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-F", "-E", quick, &disk.device])?;
        fs::create_dir(&disk.mounted).map_err(|error| failed("make its folder", error))?;
        let source = Some(disk.device.as_str());
        let flags = MsFlags::MS_NOATIME;
        mount(source, &disk.mounted, Some("ext4"), flags, None::<&str>)
            .map_err(|error| failed("mount it", error.into()))?;
        drop(held);
        Ok(disk)
    }

    /// The folder for the data.
    pub(crate) fn data(&self) -> PathBuf {
        self.mounted.join("data")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let began = Instant::now();
        loop {
            match umount2(&self.mounted, MntFlags::empty()) {
                Err(nix::Error::EBUSY) if began.elapsed() < BUSY_LIMIT => {
                    sleep(Duration::from_millis(50));
                }
                Err(nix::Error::EBUSY) => {
                    let _ = umount2(&self.mounted, MntFlags::MNT_DETACH);
                    break;
                }
                _ => break,
            }
        }
        // The last user detaches it, so that somebody else may have it by now. Before it was mounted nothing else does.
        if has_file(Path::new("/"), &self.device, &self.image) {
            let _ = Command::new("losetup")
                .args(["--detach", &self.device])
                .output();
        }
        let _ = fs::remove_dir(&self.mounted);
    }
}

/// Whether this file, which has no name any more, is behind a loop device.
fn has_file(root: &Path, device: &str, image: &Path) -> bool {
    let Some(name) = Path::new(device).file_name() else {
        return false;
    };
    let file = root.join("sys/block").join(name).join("loop/backing_file");
    let expected = format!("{} (deleted)", image.display());
    fs::read_to_string(file).is_ok_and(|found| found.trim_end_matches('\n') == expected)
}

/// Gives this thread mounts of its own; others see none of what it mounts.
fn own_mounts() -> Result<(), Error> {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
        .map_err(|error| failed("have mounts of its own", error.into()))
}

fn attach(image: &Path) -> Result<String, Error> {
    let image = image.display().to_string();
    // With direct I/O the page cache of the file below answers nothing.
    run("losetup", &["--find", "--show", "--direct-io=on", &image])
        .or_else(|_| run("losetup", &["--find", "--show", &image]))
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot make a disk for the data: cannot {what}"))
        .with_hint("it needs root; leave `--iops` out to use the disk that is there")
}

/// What a program prints.
fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| {
            failed(&format!("run `{program}`"), error)
                .with_hint("install `util-linux`, `mount` and `e2fsprogs`")
        })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let error = std::io::Error::other(text(&output.stderr));
        Err(failed(&format!("run `{program}`"), error))
    }
}

/// A limit of the requests per second that a device takes from some processes, reads and writes each.
#[derive(Debug)]
pub(crate) struct Limit {
    group: PathBuf,
    /// Where the processes go when it ends.
    parent: PathBuf,
    /// Whether the children of the parent had no limits of devices before.
    has_enabled: bool,
}

impl Limit {
    /// Limits these processes at the device that holds `folder`.
    pub(crate) fn set(folder: &Path, per_s: u32, processes: &[u32]) -> Result<Limit, Error> {
        let device = super::figures::device_of(folder).ok_or_else(|| {
            let text = "the device of the data is not known, so that it cannot be limited";
            Error::new(Kind::Environment, text)
        })?;
        let number = fs::read_to_string(Path::new("/sys/class/block").join(&device).join("dev"))
            .map_err(|error| unlimited("find the number of the device", error))?;
        let number = number.trim();
        let name = format!("{GROUP}{}", std::process::id());
        let v1 = Path::new(V1);
        let is_v1 =
            v1.join("blkio.throttle.read_iops_device").exists() || v1.join("tasks").exists();
        let (parent, has_enabled, rules) = if is_v1 {
            let rule = |what: &str| {
                let file = format!("blkio.throttle.{what}_iops_device");
                (file, format!("{number} {per_s}"))
            };
            (v1.to_owned(), false, vec![rule("read"), rule("write")])
        } else {
            let rule = format!("{number} riops={per_s} wiops={per_s}");
            let (parent, has_enabled) = v2_group()?;
            (parent, has_enabled, vec![("io.max".to_owned(), rule)])
        };
        remove_left(&parent, Path::new("/proc"));
        let limit = Limit {
            group: parent.join(name),
            parent,
            has_enabled,
        };
        fs::create_dir(&limit.group).map_err(|error| unlimited("make a control group", error))?;
        for (file, rule) in rules {
            fs::write(limit.group.join(&file), rule)
                .map_err(|error| unlimited(&format!("set `{file}`"), error))?;
        }
        for process in processes {
            fs::write(limit.group.join("cgroup.procs"), process.to_string())
                .map_err(|error| unlimited("put the server into a control group", error))?;
        }
        Ok(limit)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let processes = fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines() {
            // A process that has ended is in no group.
            let _ = fs::write(self.parent.join("cgroup.procs"), process);
        }
        if let Err(error) = fs::remove_dir(&self.group) {
            let group = self.group.display();
            tracing::warn!("cannot remove the control group `{group}`: {error}");
        }
        // Another experiment may need it.
        if self.has_enabled && groups(&self.parent).is_empty() {
            let _ = fs::write(self.parent.join(SUBTREE), "-io");
        }
    }
}

/// Groups of experiments with the numbers of their processes.
fn groups(parent: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let groups = entries.filter_map(|entry| {
        let name = entry.file_name();
        let process = name.to_str()?.strip_prefix(GROUP)?.parse().ok()?;
        Some((entry.path(), process))
    });
    groups.collect()
}

/// Removes the groups of processes that were killed.
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

/// The root group of version 2, with limits of devices for its children, and whether these had none before.
fn v2_group() -> Result<(PathBuf, bool), Error> {
    let unsupported = || {
        let text = "this system has no control groups that limit the requests to a device";
        Error::new(Kind::Environment, text)
            .with_hint("it needs version 1 with `blkio`, or version 2 with `io`")
    };
    let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        .into_iter()
        .map(Path::new)
        .find(|root| {
            let controllers = fs::read_to_string(root.join("cgroup.controllers"));
            controllers.is_ok_and(|text| text.split_whitespace().any(|name| name == "io"))
        })
        .ok_or_else(unsupported)?;
    let control = root.join(SUBTREE);
    let before = fs::read_to_string(&control).unwrap_or_default();
    let had_it = before.split_whitespace().any(|name| name == "io");
    if !had_it {
        fs::write(&control, "+io")
            .map_err(|error| unlimited("give control groups the limits of devices", error))?;
    }
    Ok((root.to_owned(), !had_it))
}

fn unlimited(what: &str, error: std::io::Error) -> Error {
    Error::from_cause(Kind::Environment, error)
        .context(format!("cannot limit the disk: cannot {what}"))
        .with_hint(
            "it needs root and control groups with limits for block devices (`blkio` or `io`)",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_device_that_somebody_else_has_by_now_is_not_ours() {
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
    fn groups_of_killed_processes_are_removed_and_no_others() {
        let root = tempfile::tempdir().unwrap();
        for name in [
            "dyno-index-build-7",
            "dyno-index-build-8",
            "other",
            "dyno-index-build-x",
        ] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let processes = tempfile::tempdir().unwrap();
        fs::create_dir(processes.path().join("8")).unwrap();
        remove_left(root.path(), processes.path());
        let entries = fs::read_dir(root.path()).unwrap().flatten();
        let mut left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["dyno-index-build-8", "dyno-index-build-x", "other"]);
    }
}
