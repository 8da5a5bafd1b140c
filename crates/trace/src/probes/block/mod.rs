//! Requests of the block layer.

/// Required tracepoints.
pub(crate) const TRACEPOINTS: [&str; 4] =
    ["block_rq_insert", "block_rq_issue", "block_rq_requeue", "block_rq_complete"];
/// Its programs.
pub(crate) const PROGRAMS: [&str; 4] =
    ["block_insert", "block_issue", "block_requeue", "block_complete"];
