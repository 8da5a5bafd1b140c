//! What can go wrong with storage that is prepared, and what the user can do about it.

use std::io;
use std::path::PathBuf;

/// Storage could not be prepared, used or taken away.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The device may not be used: it is none, or holds something.
    #[error("`{device}` cannot be used for `server.storage`: {reason}")]
    Refused {
        /// As it was named.
        device: String,
        /// What it is or holds.
        reason: String,
        /// Whether a killed process of ours has left what it holds.
        is_ours: bool,
    },
    /// Mounts and devices belong to root.
    #[error("`server.storage` needs root: file systems are made and mounted")]
    NotRoot,
    /// A program is missing.
    #[error("`server.storage` needs the program `{program}`, which is not installed")]
    NoProgram {
        /// Its name.
        program: &'static str,
        /// Package of Debian that has it.
        package: &'static str,
    },
    /// The kernel has no RAID of its own.
    #[error("this kernel has no `md`, which `raid0` needs")]
    NoMd,
    /// The files behind loop devices could outgrow the disk that they lie on.
    #[error("files of {needed} do not fit into `{}`, which has {free} free", folder.display())]
    NoSpace {
        /// Folder of the files.
        folder: PathBuf,
        /// Size of all of them.
        needed: dyno_plan::units::Bytes,
        /// What is free there.
        free: dyno_plan::units::Bytes,
    },
    /// The kernel limits no devices.
    #[error("this system has no control groups that limit the operations of a device")]
    NoLimits,
    /// A step failed.
    #[error("cannot {step}")]
    Step {
        /// What was tried.
        step: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The caller gave up.
    #[error("interrupted while the storage was prepared")]
    Interrupted,
}

impl StorageError {
    /// What the user can do, as one sentence without a final period; `None` when the error says all.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            StorageError::Refused {
                device,
                is_ours: true,
                ..
            } => format!(
                "a `dyno` that was killed has left it there: `wipefs --all {device}` empties the device"
            ),
            StorageError::Refused { .. } => {
                "name an empty device, or a file: `loop:4GiB`; nothing was written".to_owned()
            }
            StorageError::NotRoot => {
                "run `dyno` as root, or leave `server.storage` out to use a disk that is there"
                    .to_owned()
            }
            StorageError::NoProgram { package, .. } => {
                format!("install the package `{package}`")
            }
            StorageError::NoMd => {
                "use `btrfs-raid0`, which is another implementation and has other figures"
                    .to_owned()
            }
            StorageError::NoSpace { .. } => {
                "choose smaller files, or another folder with `--out`".to_owned()
            }
            StorageError::NoLimits => {
                "it needs version 1 with `blkio`, or version 2 with `io`; or leave out `at … iops`"
                    .to_owned()
            }
            StorageError::Step { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                "it needs all rights of root: to mount, to make loop devices, to set limits; a container lacks them unless it is privileged".to_owned()
            }
            StorageError::Step { .. } | StorageError::Interrupted => return None,
        })
    }

    /// Makes an error of a step.
    pub(super) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> StorageError {
        let step = step.into();
        move |source| StorageError::Step { step, source }
    }
}
