//! System calls, by the tracepoints that tracefs lists.

use super::{Attachment, Place};
use crate::hooks::Watched;
use crate::probes::syscalls;

/// Category of the tracepoints.
pub(crate) const CATEGORY: &str = "syscalls";

/// Programs and places for something.
pub(crate) fn attachments(watched: Watched) -> Vec<Attachment> {
    let both = |call: &syscalls::Syscall| {
        [("point_enter", "sys_enter_"), ("point_exit", "sys_exit_")].map(|(program, prefix)| {
            Attachment {
                program,
                place: Place::Point(CATEGORY, format!("{prefix}{}", call.name)),
            }
        })
    };
    syscalls::of(watched).iter().flat_map(both).collect()
}
