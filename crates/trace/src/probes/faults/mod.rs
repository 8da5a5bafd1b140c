//! Page faults of mapped files.

use super::{Attachment, Place, by_section};

/// Tracepoint that it needs.
pub(crate) const TRACEPOINT: &str = "mm_filemap_fault";

/// Its programs and their places.
pub(crate) fn attachments() -> Vec<Attachment> {
    let mut all = by_section(&["fault_begin", "fault_exit"]);
    all.push(Attachment {
        program: "fault_end",
        place: Place::MajorFault,
    });
    all
}
