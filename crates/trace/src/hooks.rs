//! Chooses kernel hooks: for each target the best available kind, and why no better kind was used. The choice is a pure
//! function of a [`Kernel`], so tests can simulate other kernels.

use crate::error::TraceError;
use crate::kernel::Kernel;
use crate::probes::{
    Attachment, block, by_section, faults, io_uring, process, syscall_points, syscalls, vfs_fentry,
    vfs_kprobe,
};
use crate::settings::Filter;
use crate::targets::{HookMethod, HookTarget};
use dyno_record::io_trace::document::{HookKind, ProbeUse};

/// Hooks for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub target: HookTarget,
    pub kind: HookKind,
    /// Method for calls; `None` for targets that are not calls.
    pub method: Option<HookMethod>,
    /// Names of functions or tracepoints.
    pub name: String,
    /// Why no better kind was used; `None` for the best kind.
    pub why_not_better: Option<String>,
    pub(crate) attachments: Vec<Attachment>,
}

impl Hook {
    /// Converts to a record.
    pub fn to_record(&self) -> ProbeUse {
        ProbeUse {
            what: self.target.as_str().to_owned(),
            kind: self.kind,
            hook: self.name.clone(),
            why_not_better: self.why_not_better.clone(),
        }
    }
}

/// A target that cannot be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub target: HookTarget,
    /// Reason for each kind of hook.
    pub reason: String,
}

/// Hooks for all wanted targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub hooks: Vec<Hook>,
    /// Targets without a hook.
    pub missing: Vec<Missing>,
}

/// Chooses hooks.
///
/// # Errors
/// An indispensable target cannot be hooked.
pub fn choose(
    kernel: &dyn Kernel,
    filter: &Filter,
    block: bool,
    only: Option<HookMethod>,
) -> Result<Choice, TraceError> {
    let mut choice = Choice::default();
    for &target in HookTarget::ALL {
        if !filter.wants(target, block) {
            continue;
        }
        // If functions observe the calls, tracepoints on every system call would cost much and add almost nothing.
        let by_functions = choice
            .hooks
            .iter()
            .any(|hook| hook.method.is_some_and(|method| method <= HookMethod::Kprobe));
        match find(kernel, target, only, by_functions) {
            Ok(hook) => choice.hooks.push(hook),
            Err(reason) if target.is_indispensable() => {
                return Err(refusal(kernel, target, reason));
            }
            Err(reason) => choice.missing.push(Missing { target, reason }),
        }
    }
    Ok(choice)
}

fn refusal(kernel: &dyn Kernel, target: HookTarget, reasons: String) -> TraceError {
    let by_call = !matches!(target, HookTarget::Processes | HookTarget::Block);
    match kernel.tracefs() {
        Err(path) if by_call => TraceError::NoTracefs { path },
        _ => {
            TraceError::NoHook { what: target.as_str().to_owned(), reasons, needed: needed(target) }
        }
    }
}

/// Kernel requirements for an indispensable target.
fn needed(target: HookTarget) -> &'static str {
    match target {
        HookTarget::Block => {
            "use a kernel with CONFIG_BLOCK and CONFIG_BPF_EVENTS, or omit block requests with `--no-block`"
        }
        HookTarget::Processes => "use a kernel with CONFIG_BPF_EVENTS",
        _ => {
            "use a kernel with CONFIG_FTRACE_SYSCALLS, CONFIG_KPROBE_EVENTS, or trampolines for BPF \
             (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)"
        }
    }
}

/// Linux version that introduced a tracepoint; `None` if every kernel that can load the programs has it.
fn since(tracepoint: &str) -> Option<&'static str> {
    match tracepoint {
        // Older versions have another name and report less.
        io_uring::SUBMIT => Some("6.4"),
        faults::TRACEPOINT => Some("6.11"),
        _ => None,
    }
}

fn no_tracepoint(name: &str, reason: &str) -> String {
    match since(name) {
        Some(version) => {
            format!("tracepoint {name}: {reason}; available since Linux {version}")
        }
        None => format!("tracepoint {name}: {reason}"),
    }
}

/// Finds the best hook for a target.
///
/// # Errors
/// The reason against each kind of hook.
pub fn find(
    kernel: &dyn Kernel,
    target: HookTarget,
    only: Option<HookMethod>,
    by_functions: bool,
) -> Result<Hook, String> {
    match target {
        HookTarget::Processes => {
            tracepoints(kernel, target, &process::TRACEPOINTS, by_section(&process::PROGRAMS))
        }
        HookTarget::Block => {
            tracepoints(kernel, target, &block::TRACEPOINTS, by_section(&block::PROGRAMS))
        }
        HookTarget::Faults => {
            tracepoints(kernel, target, &[faults::TRACEPOINT], faults::attachments())
        }
        HookTarget::IoUring => ring(kernel),
        _ => call(kernel, target, only, by_functions),
    }
}

fn tracepoints(
    kernel: &dyn Kernel,
    target: HookTarget,
    names: &[&str],
    attachments: Vec<Attachment>,
) -> Result<Hook, String> {
    for name in names {
        kernel.tracepoint(name).map_err(|reason| no_tracepoint(name, &reason))?;
    }
    Ok(Hook {
        target,
        kind: HookKind::Tracepoint,
        method: None,
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
        format!("tracepoint {} does not report the request before Linux 5.18", io_uring::COMPLETE)
    })?;
    tracepoints(
        kernel,
        HookTarget::IoUring,
        &[io_uring::SUBMIT, io_uring::COMPLETE],
        by_section(&programs),
    )
}

fn call(
    kernel: &dyn Kernel,
    target: HookTarget,
    only: Option<HookMethod>,
    by_functions: bool,
) -> Result<Hook, String> {
    let mut methods = HookMethod::ALL.to_vec();
    if by_functions {
        methods.swap(2, 3);
    }
    let mut reasons = Vec::new();
    for method in methods {
        // Targets without a function are observed by system calls, even if another method is requested.
        let functionless = vfs_fentry::programs(target).is_none() && method > HookMethod::Kprobe;
        let asked =
            only.is_none_or(|only| only == method || only <= HookMethod::Kprobe && functionless);
        let found = if asked {
            by_method(kernel, target, method)
        } else {
            Err(Some("not requested".to_owned()))
        };
        match found {
            Ok((name, attachments)) => {
                return Ok(Hook {
                    target,
                    kind: method.kind(),
                    method: Some(method),
                    name,
                    why_not_better: (!reasons.is_empty()).then(|| reasons.join("; ")),
                    attachments,
                });
            }
            Err(Some(reason)) => reasons.push(format!("{}: {reason}", method.as_str())),
            Err(None) => {}
        }
    }
    Err(reasons.join("; "))
}

type Found = Result<(String, Vec<Attachment>), Option<String>>;

/// `Err(None)`: the method does not apply to this target.
fn by_method(kernel: &dyn Kernel, target: HookTarget, method: HookMethod) -> Found {
    match method {
        HookMethod::Fentry => {
            let (functions, programs) = vfs_fentry::programs(target).ok_or(None)?;
            kernel.fentry().map_err(Some)?;
            need_functions(kernel, functions)?;
            Ok((functions.join(", "), by_section(programs)))
        }
        HookMethod::Kprobe => {
            let functions: Vec<&str> =
                vfs_kprobe::functions(target).iter().map(|&(name, ..)| name).collect();
            if functions.is_empty() {
                return Err(None);
            }
            kernel.kprobe().map_err(Some)?;
            need_functions(kernel, &functions)?;
            Ok((functions.join(", "), vfs_kprobe::attachments(target)))
        }
        HookMethod::SyscallPair => {
            for name in syscalls::TRACEPOINTS {
                kernel.tracepoint(name).map_err(Some)?;
            }
            Ok((syscalls::TRACEPOINTS.join(", "), by_section(&syscalls::PROGRAMS)))
        }
        HookMethod::SyscallPoints => {
            kernel.tracefs().map_err(|path| Some(format!("`{path}` is not mounted")))?;
            let names: Vec<&str> =
                syscalls::for_target(target).iter().map(|call| call.name).collect();
            for name in &names {
                let point = format!("sys_enter_{name}");
                kernel.point(syscall_points::CATEGORY, &point).map_err(Some)?;
            }
            Ok((
                format!("syscalls:sys_enter_/sys_exit_{}", names.join(", ")),
                syscall_points::attachments(target),
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
