//! Priority on shared machines.

/// About ten times the CPU time of other programs.
const NICE: i32 = -10;

/// Runs this thread, and the threads and processes that it starts afterwards, before other programs if root requests
/// it. A server that waits for a CPU is slower than specified, and a competing process is a separate fault.
///
/// A real-time priority would be too much: two busy tests with one leave 50 ms of each second to all others, whose
/// clients then stand still.
pub fn go_before_others() {
    // SAFETY: the call takes numbers only; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
