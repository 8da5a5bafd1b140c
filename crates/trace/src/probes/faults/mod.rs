//! Page faults of mapped files.

use super::{AttachPoint, Attachment, by_section};

/// Tracepoint that it needs.
pub(crate) const TRACEPOINT: &str = "mm_filemap_fault";

/// Its programs and where they are attached.
pub(crate) fn attachments() -> Vec<Attachment> {
    let mut all = by_section(&["fault_begin", "fault_exit"]);
    all.push(Attachment {
        program: "fault_end",
        point: AttachPoint::MajorFault,
    });
    all
}
