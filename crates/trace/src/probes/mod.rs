//! The probes: one folder each, with what runs in the kernel (`*.bpf.c`) and, in Rust, its programs
//! and what they are attached to. `tracer.bpf.c` makes one object of all, `shared.bpf.h` has what they
//! share, `kernel.bpf.h` the fields of the kernel that they read.

pub(crate) mod block;
pub(crate) mod faults;
pub(crate) mod io_uring;
pub(crate) mod process;
pub(crate) mod syscall_points;
pub(crate) mod syscalls;
pub(crate) mod vfs_fentry;
pub(crate) mod vfs_kprobe;

/// Where a program is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachPoint {
    /// Where its section says: a tracepoint by its types, or a function by a trampoline.
    Section,
    /// The entry of a function.
    Entry(&'static str),
    /// The return of a function.
    Return(&'static str),
    /// A tracepoint that tracefs lists.
    Point(&'static str, String),
    /// The end of a page fault that had to wait for a device, on every CPU.
    MajorFault,
}

/// A program, and where it is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// Name of the program.
    pub(crate) program: &'static str,
    /// Where it is attached.
    pub(crate) point: AttachPoint,
}

/// Programs whose sections say where they belong.
pub(crate) fn by_section(programs: &[&'static str]) -> Vec<Attachment> {
    let attach = |&program| Attachment {
        program,
        point: AttachPoint::Section,
    };
    programs.iter().map(attach).collect()
}
