//! Functions of the virtual file system, by trampolines.

use crate::hooks::Watched;

/// The functions and programs that observe something.
pub(crate) fn programs(
    watched: Watched,
) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match watched {
        Watched::Transfers => (
            &["vfs_read", "vfs_write"],
            &["fentry_read", "fexit_read", "fentry_write", "fexit_write"],
        ),
        Watched::Vectors => (
            &["vfs_readv", "vfs_writev"],
            &[
                "fentry_readv",
                "fexit_readv",
                "fentry_writev",
                "fexit_writev",
            ],
        ),
        Watched::Syncs => (&["vfs_fsync_range"], &["fentry_sync", "fexit_sync"]),
        _ => return None,
    })
}
