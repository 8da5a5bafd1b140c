//! Why a trace cannot be made, and what to do about it.

/// What is refused when the kernel does not take the programs at all.
pub(crate) const PROGRAMS: &str = "the programs";

/// Why a trace cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The program was built without the tracer.
    #[error("this program was built without the tracer")]
    NotBuilt,
    /// The user may not load programs into the kernel.
    #[error("tracing needs root, or the capabilities CAP_BPF and CAP_PERFMON; missing: {missing}")]
    NotPermitted {
        /// What is missing.
        missing: String,
    },
    /// Process numbers here are not those of the kernel.
    #[error("process numbers in this container differ from those of the kernel")]
    ProcessNamespace,
    /// The kernel does not describe its types.
    #[error("the kernel does not describe its types: `{path}` is missing")]
    NoTypes {
        /// Where they would be.
        path: String,
    },
    /// The kernel is locked down against reading its memory.
    #[error("the kernel is locked down (`{mode}`) and does not allow reading its memory")]
    LockedDown {
        /// The mode that it reports.
        mode: String,
    },
    /// tracefs is needed and not there.
    #[error("`{path}` is not mounted, and these hooks need it")]
    NoTracefs {
        /// Where it belongs.
        path: String,
    },
    /// None of the hooks for something indispensable is possible.
    #[error("the kernel offers no hook for {what}: {reasons}")]
    NoHook {
        /// What would be hooked.
        what: String,
        /// Each kind with its reason.
        reasons: String,
        /// What the kernel would have to have.
        needed: &'static str,
    },
    /// A process does not exist.
    #[error("no process {process}")]
    NoProcess {
        /// Its number.
        process: u32,
    },
    /// A pattern of file names cannot be read.
    #[error("`{pattern}` is not a file name pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        reason: String,
    },
    /// A setting is out of its range.
    #[error("{setting} must be {expected}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it may be.
        expected: String,
    },
    /// The kernel refused a program, or a hook.
    #[error("the kernel refused {what}: {reason}")]
    Refused {
        /// What was refused.
        what: String,
        /// What it said.
        reason: String,
    },
    /// A command could not be started.
    #[error("cannot start `{program}`: {reason}")]
    Command {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
}

impl TraceError {
    /// What to do about it; `None` if the message says it already.
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
