//! Faults that one Linux machine can be given as root, each taken back when it is dropped: a disk of its own with a
//! file system, a limit of its operations per second, a limit of CPU time, a neighbour on a CPU, a cold cache; and for one
//! program, by anybody, a wall clock that steps.
//!
//! They are for tests and benches of the verdict: what is provoked is known, so that what is found can be judged.

mod clock;
mod cpu;
mod disk;

pub use clock::{SteppedClock, faketime_library};
pub use cpu::{CpuQuota, Neighbour};
pub use disk::{DiskThrottle, FileSystem, LoopDisk, drop_page_cache};

use std::io;
use std::path::Path;
use std::process::Command;

/// A fault could not be provoked, or not be taken back.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// A program is missing or failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// What was run.
        command: String,
        /// What it said.
        reason: String,
    },
    /// A file of the kernel could not be read or written.
    #[error("cannot use `{path}`")]
    File {
        /// The file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The kernel has no such control.
    #[error("this kernel has no {what}")]
    Unsupported {
        /// What is missing.
        what: &'static str,
    },
}

/// Whether this process may provoke them.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Runs a program to its end and returns what it printed.
fn run(program: &str, arguments: &[&str]) -> Result<String, FaultError> {
    let command = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| FaultError::Command {
            command: command(),
            reason: error.to_string(),
        })?;
    if !output.status.success() {
        return Err(FaultError::Command {
            command: command(),
            reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), FaultError> {
    std::fs::write(path, text).map_err(|source| FaultError::File {
        path: path.display().to_string(),
        source,
    })
}

fn read(path: &Path) -> Result<String, FaultError> {
    std::fs::read_to_string(path).map_err(|source| FaultError::File {
        path: path.display().to_string(),
        source,
    })
}

/// Where a controller of cgroup v1 is mounted.
fn v1_controller(name: &str) -> Option<std::path::PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        let has_it = options.split(',').any(|option| option == name);
        (kind == "cgroup" && has_it).then(|| place.into())
    })
}

/// Where cgroup v2 is mounted, if it has a controller.
fn v2_with(controller: &str) -> Option<std::path::PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, kind) = (fields.next()?, fields.next()?);
        let place = Path::new(place);
        let controllers = std::fs::read_to_string(place.join("cgroup.controllers")).ok()?;
        let has_it = controllers.split_whitespace().any(|one| one == controller);
        (kind == "cgroup2" && has_it).then(|| place.to_owned())
    })
}
