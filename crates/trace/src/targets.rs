//! Targets that can be observed in the kernel, and methods to observe them.

use dyno_record::io_trace::document::HookKind;

/// Declares an enum with display names.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $words:literal,)* }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All variants in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// Display name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $words,)*
                }
            }
        }
    };
}

named! {
    /// Targets with their own hooks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    HookTarget {
        /// Start and end of processes.
        Processes = "processes",
        /// Reads and writes of one buffer.
        Transfers = "read and write",
        /// Reads and writes of several buffers.
        Vectors = "readv and writev",
        /// Syncs of a file.
        Syncs = "fsync",
        /// Syncs of a part of a file.
        SyncRanges = "sync_file_range",
        /// Changes of names.
        Names = "renaming and deleting",
        /// Ways to move data that are only counted.
        Unseen = "Linux AIO and copies within the kernel (counted only)",
        /// Requests of io_uring.
        IoUring = "io_uring",
        /// Page faults of mapped files.
        Faults = "page faults of mapped files",
        /// Requests of the block layer.
        Block = "block requests",
    }
}

impl HookTarget {
    /// Whether a trace is useless without the target.
    pub(crate) fn is_indispensable(self) -> bool {
        matches!(
            self,
            HookTarget::Processes | HookTarget::Transfers | HookTarget::Syncs | HookTarget::Block
        )
    }
}

named! {
    /// Methods to observe calls on files, best first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    HookMethod {
        /// Functions of the kernel, by trampolines.
        Fentry = "fentry",
        /// Functions of the kernel, by breakpoints.
        Kprobe = "kprobe",
        /// The two tracepoints of all system calls.
        SyscallPair = "tracepoints of all system calls",
        /// Two tracepoints for each system call, by tracefs.
        SyscallPoints = "tracepoints of each system call",
    }
}

impl HookMethod {
    /// Kind of hook in a record.
    pub fn kind(self) -> HookKind {
        match self {
            HookMethod::Fentry => HookKind::Fentry,
            HookMethod::Kprobe => HookKind::Kprobe,
            HookMethod::SyscallPair | HookMethod::SyscallPoints => HookKind::Tracepoint,
        }
    }
}
