//! Functions of the virtual file system, by breakpoints.

use super::{AttachPoint, Attachment};
use crate::targets::HookTarget;

/// Functions of a target, with the programs for their entry and return.
pub(crate) fn functions(
    target: HookTarget,
) -> &'static [(&'static str, &'static str, &'static str)] {
    match target {
        HookTarget::Transfers => &[
            ("vfs_read", "kprobe_read", "kprobe_return"),
            ("vfs_write", "kprobe_write", "kprobe_return"),
        ],
        HookTarget::Vectors => &[
            ("vfs_readv", "kprobe_readv", "kprobe_return"),
            ("vfs_writev", "kprobe_writev", "kprobe_return"),
        ],
        HookTarget::Syncs => &[("vfs_fsync_range", "kprobe_sync", "kprobe_sync_return")],
        _ => &[],
    }
}

/// Programs for these functions, and their attach points.
pub(crate) fn attachments(target: HookTarget) -> Vec<Attachment> {
    let both = |&(function, entry, back): &(&'static str, &'static str, &'static str)| {
        [
            Attachment { program: entry, point: AttachPoint::Entry(function) },
            Attachment { program: back, point: AttachPoint::Return(function) },
        ]
    };
    functions(target).iter().flat_map(both).collect()
}
