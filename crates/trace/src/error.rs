//! Errors of tracing, with hints.

/// Subject of the error when the kernel rejects all programs.
pub(crate) const PROGRAMS: &str = "the programs";

/// Why tracing failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The program was built without the tracer.
    #[error("this program was built without the tracer")]
    NotBuilt,
    /// The user may not load programs into the kernel.
    #[error("tracing needs root, or the capabilities CAP_BPF and CAP_PERFMON; missing: {missing}")]
    NotPermitted {
        /// Missing privileges.
        missing: String,
    },
    /// Process IDs in the container differ from the kernel's.
    #[error("process IDs in this container differ from the kernel's")]
    ProcessNamespace,
    /// The kernel does not publish its types.
    #[error("the kernel does not publish its types: `{path}` is missing")]
    NoTypes {
        /// Expected location.
        path: String,
    },
    /// The kernel's lockdown mode forbids reading its memory.
    #[error("the kernel is locked down (`{mode}`) and does not allow reading its memory")]
    LockedDown { mode: String },
    /// tracefs is needed, but not mounted.
    #[error("`{path}` is not mounted, and these hooks need it")]
    NoTracefs {
        /// Expected mount point.
        path: String,
    },
    /// No hook is available for an indispensable target.
    #[error("the kernel offers no hook for {what}: {reasons}")]
    NoHook {
        /// Target.
        what: String,
        /// Reasons for each kind of hook.
        reasons: String,
        /// Kernel requirements.
        needed: &'static str,
    },
    /// A process does not exist.
    #[error("no process {process}")]
    NoProcess { process: u32 },
    /// A file name pattern is invalid.
    #[error("`{pattern}` is not a file name pattern: {reason}")]
    Pattern { pattern: String, reason: String },
    /// A setting is out of its range.
    #[error("{setting} must be {expected}")]
    Setting {
        setting: &'static str,
        /// Allowed values.
        expected: String,
    },
    /// The kernel refused a program or a hook.
    #[error("the kernel refused {what}: {reason}")]
    Refused { what: String, reason: String },
    /// A command could not be started.
    #[error("cannot start `{program}`: {reason}")]
    Command { program: String, reason: String },
}

impl TraceError {
    /// The kernel refused something, for this reason.
    pub fn refused(what: impl Into<String>, reason: impl ToString) -> TraceError {
        TraceError::Refused { what: what.into(), reason: reason.to_string() }
    }

    /// How to solve the problem; `None` if the message already says it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            TraceError::NotBuilt => {
                "build it with the feature `ebpf`: run `make`, or `cargo build --features ebpf` where clang, \
                 libelf and zlib are installed"
            }
            TraceError::NotPermitted { .. } => {
                "run it as root, or give the program the capabilities with \
                 `setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep dyno`"
            }
            TraceError::ProcessNamespace => {
                "run it outside the container, or start the container with the host's process \
                 numbers (`--pid=host`)"
            }
            TraceError::NoTypes { .. } => {
                "use a kernel built with CONFIG_DEBUG_INFO_BTF, as common \
                 distributions have shipped since 2021"
            }
            TraceError::LockedDown { .. } => {
                "boot with `lockdown=integrity` or without lockdown; secure boot may set it"
            }
            TraceError::NoTracefs { path } => {
                return Some(format!("mount it: `mount -t tracefs tracefs {path}`"));
            }
            TraceError::NoHook { needed, .. } => {
                return Some(format!("{needed}; `dyno doctor` lists the hooks"));
            }
            TraceError::Refused { what, .. } if what == PROGRAMS => {
                "the programs need Linux 5.13 or later"
            }
            TraceError::Pattern { .. } => {
                "`*` and `?` match characters, `**/` matches folders, `[a-c]` matches one of a set"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
