//! Requests of io_uring.

/// Tracepoint of a request that begins.
pub(crate) const SUBMIT: &str = "io_uring_submit_req";
/// Tracepoint of a request that is done.
pub(crate) const COMPLETE: &str = "io_uring_complete";

/// The programs for a kernel whose tracepoint of the end has so many arguments; `None` of a form that
/// does not report the request.
pub(crate) fn programs(arguments_of_complete: usize) -> Option<[&'static str; 2]> {
    match arguments_of_complete {
        3 => Some(["ring_submit", "ring_complete_entry"]),
        5.. => Some(["ring_submit", "ring_complete_result"]),
        _ => None,
    }
}
