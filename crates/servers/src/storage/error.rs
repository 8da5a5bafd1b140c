//! Errors of preparing storage, with advice for the user.

use std::io;
use std::path::PathBuf;

/// Storage could not be prepared, used or removed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The device is not usable or not empty.
    #[error("`{device}` cannot be used for `server.storage`: {reason}")]
    Refused {
        /// As named by the user.
        device: String,
        reason: String,
        /// Whether the content was left behind by a killed process of ours.
        is_ours: bool,
    },
    /// Mounts and devices require root.
    #[error("`server.storage` needs root to create and mount file systems")]
    NotRoot,
    #[error("`server.storage` needs the program `{program}`, which is not installed")]
    NoProgram {
        program: &'static str,
        /// Debian package that contains it.
        package: &'static str,
    },
    /// The kernel does not support RAID.
    #[error("`raid0` needs `md`, which this kernel lacks")]
    NoMd,
    /// The files behind loop devices could outgrow their disk.
    #[error("files of {needed} do not fit into `{}`, which has {free} free", folder.display())]
    NoSpace {
        /// Folder of the files.
        folder: PathBuf,
        /// Total size of the files.
        needed: dyno_plan::units::Bytes,
        /// Free space there.
        free: dyno_plan::units::Bytes,
    },
    /// The kernel cannot limit devices.
    #[error("this system has no control group that can limit a device's operations")]
    NoLimits,
    #[error("cannot {step}")]
    Step {
        step: String,
        #[source]
        source: io::Error,
    },
    /// The caller gave up.
    #[error("interrupted while the storage was prepared")]
    Interrupted,
}

impl StorageError {
    /// Advice for the user as one sentence without a final period; `None` if the error is
    /// sufficient.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            StorageError::Refused { device, is_ours: true, .. } => format!(
                "a killed `dyno` left it behind: empty the device with `wipefs --all {device}`"
            ),
            StorageError::Refused { .. } => {
                "name an empty device, or a file: `loop:4GiB`; nothing was written".to_owned()
            }
            StorageError::NotRoot => {
                "run `dyno` as root, or remove `server.storage` from the plan to use an existing \
                    disk"
                    .to_owned()
            }
            StorageError::NoProgram { package, .. } => {
                format!("install the package `{package}`")
            }
            StorageError::NoMd => {
                "use `btrfs-raid0`, which is a different implementation with different performance"
                    .to_owned()
            }
            StorageError::NoSpace { .. } => {
                "choose smaller files, or another folder with `--out`".to_owned()
            }
            StorageError::NoLimits => {
                "enable control groups version 1 with `blkio` or version 2 with `io`, or remove \
                    `at … iops`"
                    .to_owned()
            }
            StorageError::Step { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                "run as root with all capabilities, to mount, create loop devices and set limits; \
                    a container must be privileged"
                    .to_owned()
            }
            StorageError::Step { .. } | StorageError::Interrupted => return None,
        })
    }

    /// Converts an I/O error of a step.
    pub(super) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> StorageError {
        let step = step.into();
        move |source| StorageError::Step { step, source }
    }
}
