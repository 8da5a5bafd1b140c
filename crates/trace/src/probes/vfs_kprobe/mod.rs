//! Functions of the virtual file system, by breakpoints.

use super::{Attachment, Place};
use crate::hooks::Watched;

/// The functions that observe something, with the program of their entry and of their return.
pub(crate) fn functions(watched: Watched) -> &'static [(&'static str, &'static str, &'static str)] {
    match watched {
        Watched::Transfers => &[
            ("vfs_read", "kprobe_read", "kprobe_return"),
            ("vfs_write", "kprobe_write", "kprobe_return"),
        ],
        Watched::Vectors => &[
            ("vfs_readv", "kprobe_readv", "kprobe_return"),
            ("vfs_writev", "kprobe_writev", "kprobe_return"),
        ],
        Watched::Syncs => &[("vfs_fsync_range", "kprobe_sync", "kprobe_sync_return")],
        _ => &[],
    }
}

/// Programs and places of such functions.
pub(crate) fn attachments(watched: Watched) -> Vec<Attachment> {
    let both = |&(function, entry, back): &(&'static str, &'static str, &'static str)| {
        [
            Attachment {
                program: entry,
                place: Place::Entry(function),
            },
            Attachment {
                program: back,
                place: Place::Return(function),
            },
        ]
    };
    functions(watched).iter().flat_map(both).collect()
}
