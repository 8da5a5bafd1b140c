//! Requests of io_uring.

/// Tracepoint at the start of a request.
pub(crate) const SUBMIT: &str = "io_uring_submit_req";
/// Tracepoint at the end of a request.
pub(crate) const COMPLETE: &str = "io_uring_complete";

/// Programs for a kernel whose end tracepoint has this number of arguments; `None` if it does not report the request.
pub(crate) fn programs(arguments_of_complete: usize) -> Option<[&'static str; 2]> {
    match arguments_of_complete {
        3 => Some(["ring_submit", "ring_complete_entry"]),
        5.. => Some(["ring_submit", "ring_complete_result"]),
        _ => None,
    }
}
