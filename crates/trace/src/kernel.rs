//! Features of a kernel: the running one, or a simulated one.

use crate::built::{Types, trial};
use crate::error::TraceError;
use std::path::Path;
use std::sync::OnceLock;

/// Mount point of tracefs.
pub const TRACEFS: &str = "/sys/kernel/tracing";
/// Mount point of tracefs before Linux 4.1, which often still exists.
const OLD_TRACEFS: &str = "/sys/kernel/debug/tracing";
/// The kernel's types.
pub const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Features of a kernel.
pub trait Kernel {
    /// Whether this process and the kernel allow tracing.
    ///
    /// # Errors
    /// The reason against tracing.
    fn admits(&self) -> Result<(), TraceError>;
    /// Whether trampolines work.
    ///
    /// # Errors
    /// The kernel's error.
    fn fentry(&self) -> Result<(), String>;
    /// Whether breakpoints in functions work.
    ///
    /// # Errors
    /// The kernel's error.
    fn kprobe(&self) -> Result<(), String>;
    /// Whether a function exists and can be hooked.
    fn function(&self, name: &str) -> bool;
    /// Number of arguments of a tracepoint to which programs can be attached by its types.
    ///
    /// # Errors
    /// Why the tracepoint is unavailable.
    fn tracepoint(&self, name: &str) -> Result<usize, String>;
    /// Whether tracefs is mounted.
    ///
    /// # Errors
    /// The expected mount point.
    fn tracefs(&self) -> Result<(), String>;
    /// Whether tracefs lists a tracepoint.
    ///
    /// # Errors
    /// Why the tracepoint is unavailable.
    fn point(&self, category: &str, name: &str) -> Result<(), String>;
}

/// The running kernel. Answers are cached.
#[derive(Debug, Default)]
pub struct LiveKernel {
    fentry: OnceLock<Result<(), String>>,
    kprobe: OnceLock<Result<(), String>>,
    types: OnceLock<Types>,
}

impl LiveKernel {
    /// The running kernel.
    pub fn new() -> LiveKernel {
        LiveKernel::default()
    }

    fn types(&self) -> &Types {
        self.types.get_or_init(Types::of_kernel)
    }
}

/// Needed capabilities by number, and capabilities that imply them.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Missing capabilities according to the text of `/proc/self/status`.
fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|text| u64::from_str_radix(text.trim(), 16).ok())
        .unwrap_or(0);
    if effective & CAP_SYS_ADMIN != 0 {
        return Vec::new();
    }
    [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(bit, _)| effective & bit == 0)
        .map(|(_, name)| name)
        .collect()
}

/// Lockdown mode from the text of its file: `none [integrity] confidentiality`.
fn lockdown_mode(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("none", |(mode, _)| mode)
}

/// The first process namespace, whose number is fixed, has the kernel's process IDs.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";

impl Kernel for LiveKernel {
    fn admits(&self) -> Result<(), TraceError> {
        if !cfg!(feature = "ebpf") {
            return Err(TraceError::NotBuilt);
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let missing = missing_capabilities(&status);
        if !missing.is_empty() {
            return Err(TraceError::NotPermitted { missing: missing.join(", ") });
        }
        let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
        if lockdown_mode(&lockdown) == "confidentiality" {
            return Err(TraceError::LockedDown { mode: "confidentiality".to_owned() });
        }
        if !Path::new(TYPES).exists() {
            return Err(TraceError::NoTypes { path: TYPES.to_owned() });
        }
        match std::fs::read_link("/proc/self/ns/pid") {
            Ok(namespace) if namespace != Path::new(FIRST_PROCESS_NAMESPACE) => {
                Err(TraceError::ProcessNamespace)
            }
            _ => Ok(()),
        }
    }

    fn fentry(&self) -> Result<(), String> {
        self.fentry.get_or_init(trial::fentry).clone()
    }

    fn kprobe(&self) -> Result<(), String> {
        self.kprobe.get_or_init(trial::kprobe).clone()
    }

    fn function(&self, name: &str) -> bool {
        self.types().function(name)
    }

    fn tracepoint(&self, name: &str) -> Result<usize, String> {
        let found = self.types().tracepoint(name);
        found.ok_or_else(|| format!("the kernel has no tracepoint {name}"))
    }

    fn tracefs(&self) -> Result<(), String> {
        match events_folder() {
            Some(_) => Ok(()),
            None => Err(TRACEFS.to_owned()),
        }
    }

    fn point(&self, category: &str, name: &str) -> Result<(), String> {
        let known = events_folder().is_some_and(|folder| {
            Path::new(folder).join("events").join(category).join(name).exists()
        });
        if known { Ok(()) } else { Err(format!("tracefs lists no {category}:{name}")) }
    }
}

/// Where tracefs is mounted.
fn events_folder() -> Option<&'static str> {
    [TRACEFS, OLD_TRACEFS].into_iter().find(|folder| Path::new(folder).join("events").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status() {
        let status = |bits: u64| format!("Name:\tdyno\nCapEff:\t{bits:016x}\n");
        assert_eq!(missing_capabilities(&status(0)), ["CAP_BPF", "CAP_PERFMON"]);
        assert_eq!(missing_capabilities(&status(CAP_BPF)), ["CAP_PERFMON"]);
        assert!(missing_capabilities(&status(CAP_BPF | CAP_PERFMON)).is_empty());
        assert!(missing_capabilities(&status(CAP_SYS_ADMIN)).is_empty());
        assert_eq!(missing_capabilities(""), ["CAP_BPF", "CAP_PERFMON"]);
    }

    #[test]
    fn the_lockdown_is_the_mode_in_brackets() {
        assert_eq!(lockdown_mode("none [integrity] confidentiality"), "integrity");
        assert_eq!(lockdown_mode("[none] integrity confidentiality"), "none");
        assert_eq!(lockdown_mode(""), "none");
    }
}
