//! Reduces the CPU time of a process: by a kernel limit, or by a competing process.

use super::{FaultError, v1_controller, v2_with, write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Period of the limit in microseconds; the kernel's default.
const PERIOD_US: u64 = 100_000;

/// A CPU time limit for some processes.
#[derive(Debug)]
pub struct CpuQuota {
    group: PathBuf,
    parent: PathBuf,
    processes: Vec<u32>,
}

impl CpuQuota {
    /// Limits the processes to this number of CPUs together, such as 0.5.
    ///
    /// # Errors
    /// The kernel has no CPU controller, or rights are missing.
    pub fn new(processes: &[u32], cpus: f64) -> Result<CpuQuota, FaultError> {
        let v1 = v1_controller("cpu");
        let is_v1 = v1.is_some();
        let parent = v1
            .or_else(|| v2_with("cpu"))
            .ok_or(FaultError::Unsupported { what: "limit of CPU time" })?;
        let group = parent.join(format!("dyno-test-{}", std::process::id()));
        std::fs::create_dir_all(&group)
            .map_err(|source| FaultError::File { path: group.display().to_string(), source })?;
        let quota = CpuQuota { group, parent, processes: processes.to_vec() };
        let quota_us = (cpus * PERIOD_US as f64) as u64;
        if is_v1 {
            write(&quota.group.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
            write(&quota.group.join("cpu.cfs_quota_us"), &quota_us.to_string())?;
        } else {
            write(&quota.group.join("cpu.max"), &format!("{quota_us} {PERIOD_US}"))?;
        }
        for process in processes {
            write(&quota.group.join("cgroup.procs"), &process.to_string())?;
        }
        Ok(quota)
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        for process in &self.processes {
            // A process that has ended is in no group.
            let _ = write(&self.parent.join("cgroup.procs"), &process.to_string());
        }
        let _ = std::fs::remove_dir(&self.group);
    }
}

/// A process that keeps one CPU busy.
#[derive(Debug)]
pub struct Neighbour(Child);

impl Neighbour {
    /// Starts it on a CPU.
    ///
    /// # Errors
    /// `taskset` is missing, or the CPU does not exist.
    pub fn on_cpu(cpu: usize) -> Result<Neighbour, FaultError> {
        let arguments = ["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"];
        let child = Command::new("taskset")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        child.map(Neighbour).map_err(|error| FaultError::Command {
            command: format!("taskset {}", arguments.join(" ")),
            reason: error.to_string(),
        })
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
