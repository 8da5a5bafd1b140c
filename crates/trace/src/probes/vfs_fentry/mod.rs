//! Functions of the virtual file system, by trampolines.

use crate::targets::HookTarget;

/// Functions and programs of a target.
pub(crate) fn programs(
    target: HookTarget,
) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match target {
        HookTarget::Transfers => (
            &["vfs_read", "vfs_write"],
            &["fentry_read", "fexit_read", "fentry_write", "fexit_write"],
        ),
        HookTarget::Vectors => (
            &["vfs_readv", "vfs_writev"],
            &["fentry_readv", "fexit_readv", "fentry_writev", "fexit_writev"],
        ),
        HookTarget::Syncs => (&["vfs_fsync_range"], &["fentry_sync", "fexit_sync"]),
        _ => return None,
    })
}
