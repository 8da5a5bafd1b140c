//! Tracks the traced processes.

/// Required tracepoints.
pub(crate) const TRACEPOINTS: [&str; 2] = ["sched_process_fork", "sched_process_exit"];
/// Its programs.
pub(crate) const PROGRAMS: [&str; 2] = ["process_fork", "process_exit"];
