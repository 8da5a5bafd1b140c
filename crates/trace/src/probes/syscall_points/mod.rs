//! System calls, by the tracepoints that tracefs lists.

use super::{AttachPoint, Attachment};
use crate::probes::syscalls;
use crate::targets::HookTarget;

/// Category of the tracepoints.
pub(crate) const CATEGORY: &str = "syscalls";

/// Programs of a target, and their attach points.
pub(crate) fn attachments(target: HookTarget) -> Vec<Attachment> {
    let both = |call: &syscalls::Syscall| {
        [("point_enter", "sys_enter_"), ("point_exit", "sys_exit_")].map(|(program, prefix)| {
            Attachment {
                program,
                point: AttachPoint::Point(CATEGORY, format!("{prefix}{}", call.name)),
            }
        })
    };
    syscalls::for_target(target).iter().flat_map(both).collect()
}
