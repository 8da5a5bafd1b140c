//! Disks on files, and limits of their operations.

use super::{FaultError, read, run, v1_controller, v2_with, write};
use std::path::{Path, PathBuf};

/// File system of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4.
    Ext4,
    /// XFS; needs `xfsprogs`, and at least 300 MiB.
    Xfs,
}

impl FileSystem {
    /// Name for `mount`.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }
}

/// A temporary disk: a sparse file behind a loop device, with a mounted file system.
#[derive(Debug)]
pub struct LoopDisk {
    device: String,
    /// Has the file and the mount point.
    folder: tempfile::TempDir,
}

impl LoopDisk {
    /// Creates a disk of `size_mib` MiB in `folder`, with direct I/O to the file, so that the page cache does not hold
    /// data twice.
    ///
    /// # Errors
    /// Missing rights or programs.
    pub fn new(
        folder: &Path,
        size_mib: u64,
        file_system: FileSystem,
    ) -> Result<LoopDisk, FaultError> {
        let file_error = |path: &Path| {
            let path = path.display().to_string();
            move |source| FaultError::File { path, source }
        };
        let folder = tempfile::tempdir_in(folder).map_err(file_error(folder))?;
        let image = folder.path().join("disk.img");
        let file = std::fs::File::create(&image).map_err(file_error(&image))?;
        file.set_len(size_mib << 20).map_err(file_error(&image))?;
        let mount_point = folder.path().join("mount");
        std::fs::create_dir(&mount_point).map_err(file_error(&mount_point))?;
        let image = image.display().to_string();
        let device = run("losetup", &["--find", "--show", "--direct-io=on", &image])
            .or_else(|_| run("losetup", &["--find", "--show", &image]))?;
        // From here on, dropping it cleans up.
        let disk = LoopDisk { device, folder };
        match file_system {
            FileSystem::Ext4 => run("mkfs.ext4", &["-q", "-F", &disk.device])?,
            FileSystem::Xfs => run("mkfs.xfs", &["-q", "-f", &disk.device])?,
        };
        run("mount", &[&disk.device, &mount_point.display().to_string()])?;
        Ok(disk)
    }

    /// The block device, such as `/dev/loop0`.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Mount point of its file system.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mount")
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let mount_point = self.path().display().to_string();
        // Errors mean that the mount or device does not exist, or that a process of the test still uses it.
        let _ =
            run("umount", &[&mount_point]).or_else(|_| run("umount", &["--lazy", &mount_point]));
        let _ = run("losetup", &["--detach", &self.device]);
    }
}

/// A limit of a device's operations per second, for all processes.
#[derive(Debug)]
pub struct DiskThrottle {
    rules: Vec<Rule>,
}

/// A kernel file with its value to restore.
#[derive(Debug)]
struct Rule {
    path: PathBuf,
    without: String,
}

impl DiskThrottle {
    /// Limits reads and writes of a device to this number per second each.
    ///
    /// # Errors
    /// The kernel has neither cgroup v1 `blkio` nor v2 `io` with limits, or rights are missing.
    pub fn new(device: &str, per_s: u64) -> Result<DiskThrottle, FaultError> {
        let number = device_number(device)?;
        let mut throttle = DiskThrottle { rules: Vec::new() };
        if let Some(root) = v1_controller("blkio") {
            for name in ["read", "write"] {
                let path = root.join(format!("blkio.throttle.{name}_iops_device"));
                write(&path, &format!("{number} {per_s}"))?;
                let without = format!("{number} 0");
                throttle.rules.push(Rule { path, without });
            }
            return Ok(throttle);
        }
        // The root of v2 has no limits: a group has them, and it must contain the caller's processes.
        let root = v2_with("io")
            .ok_or(FaultError::Unsupported { what: "limit of a device's operations" })?;
        let own = read(Path::new("/proc/self/cgroup"))?;
        let group = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let path = root.join(group.unwrap_or_default()).join("io.max");
        write(&path, &format!("{number} riops={per_s} wiops={per_s}"))?;
        let without = format!("{number} riops=max wiops=max");
        throttle.rules.push(Rule { path, without });
        Ok(throttle)
    }
}

impl Drop for DiskThrottle {
    fn drop(&mut self) {
        for rule in &self.rules {
            let _ = write(&rule.path, &rule.without);
        }
    }
}

/// `major:minor` of a block device.
fn device_number(device: &str) -> Result<String, FaultError> {
    let name = device.trim_start_matches("/dev/");
    let path = Path::new("/sys/class/block").join(name).join("dev");
    Ok(read(&path)?.trim().to_owned())
}
