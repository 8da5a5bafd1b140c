//! Which hooks of the kernel are used: for each thing that is observed, the best kind that the kernel
//! offers, and why not a better one. A pure function of what the kernel says, so that it can be tested
//! for kernels that are not here.

use crate::error::TraceError;
use crate::kernel::Kernel;
use crate::probes::{
    Attachment, block, by_section, faults, io_uring, process, syscall_points, syscalls, vfs_fentry,
    vfs_kprobe,
};
use crate::settings::Filter;
use dyno_record::io_trace::document::{HookKind, ProbeUse};
use dyno_record::io_trace::event::Operation;

/// Things that are observed, each by hooks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Watched {
    /// Beginning and end of processes.
    Processes,
    /// Reads and writes of one buffer.
    Transfers,
    /// Reads and writes of several buffers.
    Vectors,
    /// Syncs of a file.
    Syncs,
    /// Syncs of a part of a file.
    SyncRanges,
    /// Names that are changed.
    Names,
    /// Ways to move data that are only counted.
    Unseen,
    /// Requests of io_uring.
    IoUring,
    /// Page faults of mapped files.
    Faults,
    /// Requests of the block layer.
    Block,
}

impl Watched {
    /// All of them.
    pub const ALL: [Watched; 10] = [
        Watched::Processes,
        Watched::Transfers,
        Watched::Vectors,
        Watched::Syncs,
        Watched::SyncRanges,
        Watched::Names,
        Watched::Unseen,
        Watched::IoUring,
        Watched::Faults,
        Watched::Block,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Watched::Processes => "processes",
            Watched::Transfers => "read and write",
            Watched::Vectors => "readv and writev",
            Watched::Syncs => "fsync",
            Watched::SyncRanges => "sync_file_range",
            Watched::Names => "renaming and deleting",
            Watched::Unseen => "Linux AIO and copies within the kernel (counted only)",
            Watched::IoUring => "io_uring",
            Watched::Faults => "page faults of mapped files",
            Watched::Block => "block requests",
        }
    }

    /// Whether a filter asks for it.
    pub fn is_wanted(self, filter: &Filter, block: bool) -> bool {
        let transfers = filter.has(Operation::Read) || filter.has(Operation::Write);
        match self {
            Watched::Processes | Watched::Names => true,
            Watched::Transfers | Watched::Vectors | Watched::Unseen => transfers,
            Watched::Syncs | Watched::SyncRanges => filter.has(Operation::Sync),
            Watched::IoUring => transfers || filter.has(Operation::Sync),
            Watched::Faults => filter.has(Operation::Fault),
            Watched::Block => block,
        }
    }

    /// Whether a trace without it says nothing.
    fn is_indispensable(self) -> bool {
        matches!(
            self,
            Watched::Processes | Watched::Transfers | Watched::Syncs | Watched::Block
        )
    }
}

/// Ways to observe calls on files, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Functions of the kernel, by trampolines.
    Fentry,
    /// Functions of the kernel, by breakpoints.
    Kprobe,
    /// The two tracepoints that all system calls pass.
    SyscallPair,
    /// Two tracepoints of each system call, by tracefs.
    SyscallPoints,
}

impl Way {
    /// All of them, best first.
    pub const ALL: [Way; 4] = [
        Way::Fentry,
        Way::Kprobe,
        Way::SyscallPair,
        Way::SyscallPoints,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Way::Fentry => "fentry",
            Way::Kprobe => "kprobe",
            Way::SyscallPair => "tracepoints of all system calls",
            Way::SyscallPoints => "tracepoints of each system call",
        }
    }

    /// The kind in a record.
    pub fn kind(self) -> HookKind {
        match self {
            Way::Fentry => HookKind::Fentry,
            Way::Kprobe => HookKind::Kprobe,
            Way::SyscallPair | Way::SyscallPoints => HookKind::Tracepoint,
        }
    }
}

/// The hooks for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// What they observe.
    pub watched: Watched,
    /// Kind.
    pub kind: HookKind,
    /// How calls are observed; `None` of what is no call.
    pub way: Option<Way>,
    /// Names of functions or tracepoints.
    pub name: String,
    /// Why no better kind; `None` of the best.
    pub why_not_better: Option<String>,
    pub(crate) attachments: Vec<Attachment>,
}

impl Hook {
    /// As it is recorded.
    pub fn to_record(&self) -> ProbeUse {
        ProbeUse {
            what: self.watched.as_str().to_owned(),
            kind: self.kind,
            hook: self.name.clone(),
            why_not_better: self.why_not_better.clone(),
        }
    }
}

/// Something that cannot be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub watched: Watched,
    /// Why, for each kind of hook.
    pub reason: String,
}

/// The hooks for everything that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// What is observed, and how.
    pub hooks: Vec<Hook>,
    /// What cannot be.
    pub missing: Vec<Missing>,
}

/// Chooses hooks.
///
/// # Errors
/// Something without which a trace says nothing cannot be hooked.
pub fn choose(
    kernel: &dyn Kernel,
    filter: &Filter,
    block: bool,
    only: Option<Way>,
) -> Result<Choice, TraceError> {
    let mut choice = Choice::default();
    for watched in Watched::ALL {
        if !watched.is_wanted(filter, block) {
            continue;
        }
        // Where calls are observed by functions, the tracepoints that every system call passes would
        // be a cost for next to nothing.
        let by_functions = choice
            .hooks
            .iter()
            .any(|hook| hook.way.is_some_and(|way| way <= Way::Kprobe));
        match find(kernel, watched, only, by_functions) {
            Ok(hook) => choice.hooks.push(hook),
            Err(reason) if watched.is_indispensable() => {
                return Err(refusal(kernel, watched, reason));
            }
            Err(reason) => choice.missing.push(Missing { watched, reason }),
        }
    }
    Ok(choice)
}

fn refusal(kernel: &dyn Kernel, watched: Watched, reasons: String) -> TraceError {
    let by_call = !matches!(watched, Watched::Processes | Watched::Block);
    match kernel.tracefs() {
        Err(path) if by_call => TraceError::NoTracefs { path },
        _ => TraceError::NoHook {
            what: watched.as_str().to_owned(),
            reasons,
            needed: needed(watched),
        },
    }
}

/// What a kernel has to have for something without which a trace says nothing.
fn needed(watched: Watched) -> &'static str {
    match watched {
        Watched::Block => {
            "a kernel with CONFIG_BLOCK and CONFIG_BPF_EVENTS has it; `--no-block` leaves it out"
        }
        Watched::Processes => "a kernel with CONFIG_BPF_EVENTS has it",
        _ => {
            "a kernel with CONFIG_FTRACE_SYSCALLS, CONFIG_KPROBE_EVENTS, or trampolines for BPF \
             (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS) has one"
        }
    }
}

/// Since when there is a tracepoint; `None` of those that every kernel has on which the programs can be
/// loaded at all.
fn since(tracepoint: &str) -> Option<&'static str> {
    match tracepoint {
        // Before, it had another name and told less.
        io_uring::SUBMIT => Some("6.4"),
        faults::TRACEPOINT => Some("6.11"),
        _ => None,
    }
}

fn no_tracepoint(name: &str, reason: &str) -> String {
    match since(name) {
        Some(version) => {
            format!("tracepoint {name}: {reason}; it came with Linux {version}")
        }
        None => format!("tracepoint {name}: {reason}"),
    }
}

/// The best hook for something, or the reason against each kind.
///
/// # Errors
/// The reasons, if there is none.
pub fn find(
    kernel: &dyn Kernel,
    watched: Watched,
    only: Option<Way>,
    by_functions: bool,
) -> Result<Hook, String> {
    match watched {
        Watched::Processes => tracepoints(
            kernel,
            watched,
            &process::TRACEPOINTS,
            by_section(&process::PROGRAMS),
        ),
        Watched::Block => tracepoints(
            kernel,
            watched,
            &block::TRACEPOINTS,
            by_section(&block::PROGRAMS),
        ),
        Watched::Faults => tracepoints(
            kernel,
            watched,
            &[faults::TRACEPOINT],
            faults::attachments(),
        ),
        Watched::IoUring => ring(kernel),
        _ => call(kernel, watched, only, by_functions),
    }
}

fn tracepoints(
    kernel: &dyn Kernel,
    watched: Watched,
    names: &[&str],
    attachments: Vec<Attachment>,
) -> Result<Hook, String> {
    for name in names {
        kernel
            .tracepoint(name)
            .map_err(|reason| no_tracepoint(name, &reason))?;
    }
    Ok(Hook {
        watched,
        kind: HookKind::Tracepoint,
        way: None,
        name: names.join(", "),
        why_not_better: None,
        attachments,
    })
}

fn ring(kernel: &dyn Kernel) -> Result<Hook, String> {
    let arguments = kernel
        .tracepoint(io_uring::COMPLETE)
        .map_err(|reason| format!("tracepoint {}: {reason}", io_uring::COMPLETE))?;
    let programs = io_uring::programs(arguments).ok_or_else(|| {
        format!(
            "tracepoint {} of this kernel does not tell the request, as it does since Linux 5.18",
            io_uring::COMPLETE
        )
    })?;
    tracepoints(
        kernel,
        Watched::IoUring,
        &[io_uring::SUBMIT, io_uring::COMPLETE],
        by_section(&programs),
    )
}

fn call(
    kernel: &dyn Kernel,
    watched: Watched,
    only: Option<Way>,
    by_functions: bool,
) -> Result<Hook, String> {
    let mut ways = Way::ALL.to_vec();
    if by_functions {
        ways.swap(2, 3);
    }
    let mut reasons = Vec::new();
    for way in ways {
        // What no function does is observed by system calls, whatever is asked for.
        let functionless = vfs_fentry::programs(watched).is_none() && way > Way::Kprobe;
        let asked = only.is_none_or(|only| only == way || only <= Way::Kprobe && functionless);
        let found = if asked {
            by_way(kernel, watched, way)
        } else {
            Err(Some("not wanted".to_owned()))
        };
        match found {
            Ok((name, attachments)) => {
                return Ok(Hook {
                    watched,
                    kind: way.kind(),
                    way: Some(way),
                    name,
                    why_not_better: (!reasons.is_empty()).then(|| reasons.join("; ")),
                    attachments,
                });
            }
            Err(Some(reason)) => reasons.push(format!("{}: {reason}", way.as_str())),
            Err(None) => {}
        }
    }
    Err(reasons.join("; "))
}

type Found = Result<(String, Vec<Attachment>), Option<String>>;

/// `Err(None)`: the way is none for this.
fn by_way(kernel: &dyn Kernel, watched: Watched, way: Way) -> Found {
    match way {
        Way::Fentry => {
            let (functions, programs) = vfs_fentry::programs(watched).ok_or(None)?;
            kernel.fentry().map_err(Some)?;
            need_functions(kernel, functions)?;
            Ok((functions.join(", "), by_section(programs)))
        }
        Way::Kprobe => {
            let functions: Vec<&str> = vfs_kprobe::functions(watched)
                .iter()
                .map(|&(name, ..)| name)
                .collect();
            if functions.is_empty() {
                return Err(None);
            }
            kernel.kprobe().map_err(Some)?;
            need_functions(kernel, &functions)?;
            Ok((functions.join(", "), vfs_kprobe::attachments(watched)))
        }
        Way::SyscallPair => {
            for name in syscalls::TRACEPOINTS {
                kernel.tracepoint(name).map_err(Some)?;
            }
            Ok((
                syscalls::TRACEPOINTS.join(", "),
                by_section(&syscalls::PROGRAMS),
            ))
        }
        Way::SyscallPoints => {
            kernel
                .tracefs()
                .map_err(|path| Some(format!("`{path}` is not mounted")))?;
            let names: Vec<&str> = syscalls::of(watched).iter().map(|call| call.name).collect();
            for name in &names {
                let point = format!("sys_enter_{name}");
                kernel
                    .point(syscall_points::CATEGORY, &point)
                    .map_err(Some)?;
            }
            Ok((
                format!("syscalls:sys_enter_/sys_exit_{}", names.join(", ")),
                syscall_points::attachments(watched),
            ))
        }
    }
}

fn need_functions(kernel: &dyn Kernel, functions: &[&str]) -> Result<(), Option<String>> {
    match functions.iter().find(|name| !kernel.function(name)) {
        Some(name) => Err(Some(format!("the kernel has no function {name}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
