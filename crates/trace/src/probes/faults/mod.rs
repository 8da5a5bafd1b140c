//! Page faults of mapped files.

use super::{AttachPoint, Attachment, by_section};

/// Required tracepoint.
pub(crate) const TRACEPOINT: &str = "mm_filemap_fault";

/// Programs and their attach points.
pub(crate) fn attachments() -> Vec<Attachment> {
    let mut all = by_section(&["fault_begin", "fault_exit"]);
    all.push(Attachment { program: "fault_end", point: AttachPoint::MajorFault });
    all
}
