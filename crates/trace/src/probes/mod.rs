//! The probes, one folder each: the kernel part (`*.bpf.c`), and a Rust module with its programs and attach points.
//! `tracer.bpf.c` combines all kernel parts into one object, `shared.bpf.h` has shared code, and `kernel.bpf.h` the
//! kernel fields that they read.

pub(crate) mod block;
pub(crate) mod faults;
pub(crate) mod io_uring;
pub(crate) mod process;
pub(crate) mod syscall_points;
pub(crate) mod syscalls;
pub(crate) mod vfs_fentry;
pub(crate) mod vfs_kprobe;

/// Attach point of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachPoint {
    /// From its section: a tracepoint by its types, or a function by a trampoline.
    Section,
    /// The entry of a function.
    Entry(&'static str),
    /// The return of a function.
    Return(&'static str),
    /// A tracepoint that tracefs lists.
    Point(&'static str, String),
    /// End of a page fault that had to wait for a device, on every CPU.
    MajorFault,
}

/// A program and its attach point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) program: &'static str,
    pub(crate) point: AttachPoint,
}

/// Programs with attach points from their sections.
pub(crate) fn by_section(programs: &[&'static str]) -> Vec<Attachment> {
    let attach = |&program| Attachment { program, point: AttachPoint::Section };
    programs.iter().map(attach).collect()
}
