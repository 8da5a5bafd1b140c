//! What can be observed in the kernel, and by which methods.

use dyno_record::io_trace::document::HookKind;

/// Things that are observed, each by hooks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookTarget {
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

impl HookTarget {
    /// All of them.
    pub const ALL: [HookTarget; 10] = [
        HookTarget::Processes,
        HookTarget::Transfers,
        HookTarget::Vectors,
        HookTarget::Syncs,
        HookTarget::SyncRanges,
        HookTarget::Names,
        HookTarget::Unseen,
        HookTarget::IoUring,
        HookTarget::Faults,
        HookTarget::Block,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            HookTarget::Processes => "processes",
            HookTarget::Transfers => "read and write",
            HookTarget::Vectors => "readv and writev",
            HookTarget::Syncs => "fsync",
            HookTarget::SyncRanges => "sync_file_range",
            HookTarget::Names => "renaming and deleting",
            HookTarget::Unseen => "Linux AIO and copies within the kernel (counted only)",
            HookTarget::IoUring => "io_uring",
            HookTarget::Faults => "page faults of mapped files",
            HookTarget::Block => "block requests",
        }
    }

    /// Whether a trace without it says nothing.
    pub(crate) fn is_indispensable(self) -> bool {
        matches!(
            self,
            HookTarget::Processes | HookTarget::Transfers | HookTarget::Syncs | HookTarget::Block
        )
    }
}

/// Ways to observe calls on files, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookMethod {
    /// Functions of the kernel, by trampolines.
    Fentry,
    /// Functions of the kernel, by breakpoints.
    Kprobe,
    /// The two tracepoints that all system calls pass.
    SyscallPair,
    /// Two tracepoints of each system call, by tracefs.
    SyscallPoints,
}

impl HookMethod {
    /// All of them, best first.
    pub const ALL: [HookMethod; 4] = [
        HookMethod::Fentry,
        HookMethod::Kprobe,
        HookMethod::SyscallPair,
        HookMethod::SyscallPoints,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            HookMethod::Fentry => "fentry",
            HookMethod::Kprobe => "kprobe",
            HookMethod::SyscallPair => "tracepoints of all system calls",
            HookMethod::SyscallPoints => "tracepoints of each system call",
        }
    }

    /// The kind in a record.
    pub fn kind(self) -> HookKind {
        match self {
            HookMethod::Fentry => HookKind::Fentry,
            HookMethod::Kprobe => HookKind::Kprobe,
            HookMethod::SyscallPair | HookMethod::SyscallPoints => HookKind::Tracepoint,
        }
    }
}
