//! Faults that root can cause on one Linux machine, each removed on drop: a temporary disk with a file system, a limit
//! of its operations per second, a limit of CPU time, and a competing process on a CPU. [`faketime_library`] gives single
//! programs another clock.
//!
//! Tests and benchmarks of the verdict use them: the fault is known, so the finding can be checked.

mod clock;
mod cpu;
mod disk;

pub use clock::faketime_library;
pub use cpu::{CpuQuota, Neighbour};
pub use disk::{DiskThrottle, FileSystem, LoopDisk};

use std::io;
use std::path::Path;
use std::process::Command;

/// A fault could not be caused or removed.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// A program is missing or failed.
    #[error("`{command}` failed: {reason}")]
    Command { command: String, reason: String },
    /// A kernel file could not be read or written.
    #[error("cannot use `{path}`")]
    File { path: String, source: io::Error },
    /// The kernel does not support the control.
    #[error("this kernel has no {what}")]
    Unsupported { what: &'static str },
}

/// Whether this process may cause the faults.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Runs a program to its end and returns what it printed.
fn run(program: &str, arguments: &[&str]) -> Result<String, FaultError> {
    let command = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| FaultError::Command { command: command(), reason: error.to_string() })?;
    if !output.status.success() {
        return Err(FaultError::Command {
            command: command(),
            reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<(), FaultError> {
    std::fs::write(path, text)
        .map_err(|source| FaultError::File { path: path.display().to_string(), source })
}

fn read(path: &Path) -> Result<String, FaultError> {
    std::fs::read_to_string(path)
        .map_err(|source| FaultError::File { path: path.display().to_string(), source })
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
