//! What the kernel offers: asked of the running kernel, or given by a test.

use crate::built::{Types, trial};
use crate::error::TraceError;
use std::path::Path;
use std::sync::OnceLock;

/// Where tracefs belongs.
pub const TRACEFS: &str = "/sys/kernel/tracing";
/// Where it was before Linux 4.1, and often still is as well.
const OLD_TRACEFS: &str = "/sys/kernel/debug/tracing";
/// The kernel's types.
pub const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// What a kernel offers.
pub trait Kernel {
    /// Whether this process may trace at all, and the kernel allows it.
    ///
    /// # Errors
    /// What is in the method.
    fn admits(&self) -> Result<(), TraceError>;
    /// Whether trampolines work.
    ///
    /// # Errors
    /// What the kernel said.
    fn fentry(&self) -> Result<(), String>;
    /// Whether breakpoints in functions work.
    ///
    /// # Errors
    /// What the kernel said.
    fn kprobe(&self) -> Result<(), String>;
    /// Whether there is a function that can be hooked.
    fn function(&self, name: &str) -> bool;
    /// The number of arguments of a tracepoint that programs can be attached to by its types.
    ///
    /// # Errors
    /// Why there is none.
    fn tracepoint(&self, name: &str) -> Result<usize, String>;
    /// Whether tracefs is mounted.
    ///
    /// # Errors
    /// Where it should be.
    fn tracefs(&self) -> Result<(), String>;
    /// Whether tracefs lists a tracepoint.
    ///
    /// # Errors
    /// Why it does not.
    fn point(&self, category: &str, name: &str) -> Result<(), String>;
}

/// The kernel that runs. Answers are asked for once and kept.
#[derive(Debug, Default)]
pub struct LiveKernel {
    fentry: OnceLock<Result<(), String>>,
    kprobe: OnceLock<Result<(), String>>,
    types: OnceLock<Types>,
}

impl LiveKernel {
    /// The kernel that runs.
    pub fn new() -> LiveKernel {
        LiveKernel::default()
    }

    fn types(&self) -> &Types {
        self.types.get_or_init(Types::of_kernel)
    }
}

/// Capabilities by their numbers, and what stands for them.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Which of the needed capabilities are missing, by the text of `/proc/self/status`.
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

/// The mode of the lockdown by the text of its file: `none [integrity] confidentiality`.
fn lockdown_mode(text: &str) -> &str {
    text.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or("none", |(mode, _)| mode)
}

/// The process numbers of the kernel are those of the first namespace, whose number never changes.
const FIRST_PROCESS_NAMESPACE: &str = "pid:[4026531836]";

impl Kernel for LiveKernel {
    fn admits(&self) -> Result<(), TraceError> {
        if !cfg!(feature = "ebpf") {
            return Err(TraceError::NotBuilt);
        }
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let missing = missing_capabilities(&status);
        if !missing.is_empty() {
            return Err(TraceError::NotPermitted {
                missing: missing.join(", "),
            });
        }
        let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
        if lockdown_mode(&lockdown) == "confidentiality" {
            return Err(TraceError::LockedDown {
                mode: "confidentiality".to_owned(),
            });
        }
        if !Path::new(TYPES).exists() {
            return Err(TraceError::NoTypes {
                path: TYPES.to_owned(),
            });
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
            Path::new(folder)
                .join("events")
                .join(category)
                .join(name)
                .exists()
        });
        if known {
            Ok(())
        } else {
            Err(format!("tracefs lists no {category}:{name}"))
        }
    }
}

/// Where tracefs is mounted.
fn events_folder() -> Option<&'static str> {
    [TRACEFS, OLD_TRACEFS]
        .into_iter()
        .find(|folder| Path::new(folder).join("events").exists())
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
        assert_eq!(
            lockdown_mode("none [integrity] confidentiality"),
            "integrity"
        );
        assert_eq!(lockdown_mode("[none] integrity confidentiality"), "none");
        assert_eq!(lockdown_mode(""), "none");
    }
}
