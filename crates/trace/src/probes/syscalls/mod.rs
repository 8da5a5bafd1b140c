//! System calls and the layout of their arguments.

use crate::targets::HookTarget;
#[cfg(feature = "ebpf")]
use dyno_record::io_trace::event::Operation;

/// Tracepoints that all system calls pass.
pub(crate) const TRACEPOINTS: [&str; 2] = ["sys_enter", "sys_exit"];
/// The programs for them.
pub(crate) const PROGRAMS: [&str; 2] = ["syscall_enter", "syscall_exit"];

// As in `shared.bpf.h`.
const READ: u8 = 0;
const WRITE: u8 = 1;
const SYNC: u8 = 2;
const VECTOR: u8 = 0x04;
const POSITION: u8 = 0x08;
const RANGE: u8 = 0x10;
const CALL: u8 = 0x20;
const NAME: u8 = 0x40;
const UNSEEN: u8 = 0x80;

/// An observed system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syscall {
    /// Name in the tracepoints.
    pub(crate) name: &'static str,
    /// Number on this machine.
    pub(crate) number: i64,
    /// How the probes handle it.
    pub(crate) code: u8,
}

impl Syscall {
    const fn new(name: &'static str, number: i64, code: u8) -> Syscall {
        Syscall { name, number, code }
    }

    /// Operation on a file; `None` if it is not a call on a file.
    #[cfg(feature = "ebpf")]
    pub(crate) fn operation(&self) -> Option<Operation> {
        match self.code & CALL {
            0 => None,
            _ => Operation::from_number(self.code & 3),
        }
    }
}

const TRANSFERS: &[Syscall] = &[
    Syscall::new("read", libc::SYS_read, CALL | READ),
    Syscall::new("pread64", libc::SYS_pread64, CALL | READ | POSITION),
    Syscall::new("write", libc::SYS_write, CALL | WRITE),
    Syscall::new("pwrite64", libc::SYS_pwrite64, CALL | WRITE | POSITION),
];
const VECTORS: &[Syscall] = &[
    Syscall::new("readv", libc::SYS_readv, CALL | READ | VECTOR),
    Syscall::new("preadv", libc::SYS_preadv, CALL | READ | VECTOR | POSITION),
    Syscall::new("preadv2", libc::SYS_preadv2, CALL | READ | VECTOR | POSITION),
    Syscall::new("writev", libc::SYS_writev, CALL | WRITE | VECTOR),
    Syscall::new("pwritev", libc::SYS_pwritev, CALL | WRITE | VECTOR | POSITION),
    Syscall::new("pwritev2", libc::SYS_pwritev2, CALL | WRITE | VECTOR | POSITION),
];
const SYNCS: &[Syscall] = &[
    Syscall::new("fsync", libc::SYS_fsync, CALL | SYNC),
    Syscall::new("fdatasync", libc::SYS_fdatasync, CALL | SYNC),
];
const SYNC_RANGES: &[Syscall] =
    &[Syscall::new("sync_file_range", libc::SYS_sync_file_range, CALL | SYNC | RANGE)];
// Calls that change names; the lowest bits encode the argument layout.
const NAMES: &[Syscall] = &[
    #[cfg(target_arch = "x86_64")]
    Syscall::new("rename", libc::SYS_rename, NAME),
    Syscall::new("renameat", libc::SYS_renameat, NAME | 1),
    Syscall::new("renameat2", libc::SYS_renameat2, NAME | 1),
    #[cfg(target_arch = "x86_64")]
    Syscall::new("unlink", libc::SYS_unlink, NAME | 2),
    Syscall::new("unlinkat", libc::SYS_unlinkat, NAME | 3),
];
// Calls that are only counted: Linux AIO, and copies within the kernel.
const UNSEEN_CALLS: &[Syscall] = &[
    Syscall::new("io_submit", libc::SYS_io_submit, UNSEEN),
    Syscall::new("sendfile64", libc::SYS_sendfile, UNSEEN | 1),
    Syscall::new("splice", libc::SYS_splice, UNSEEN | 1),
    Syscall::new("copy_file_range", libc::SYS_copy_file_range, UNSEEN | 1),
];

/// System calls of a target.
pub(crate) fn for_target(target: HookTarget) -> &'static [Syscall] {
    match target {
        HookTarget::Transfers => TRANSFERS,
        HookTarget::Vectors => VECTORS,
        HookTarget::Syncs => SYNCS,
        HookTarget::SyncRanges => SYNC_RANGES,
        HookTarget::Names => NAMES,
        HookTarget::Unseen => UNSEEN_CALLS,
        _ => &[],
    }
}
