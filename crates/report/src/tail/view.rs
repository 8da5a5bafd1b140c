//! An experiment with its messages, as read from the records.

use dyno_record::tail::TailDocument;

/// All messages of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellMessages {
    pub cell: String,
    /// Intended → received by the first consumer, in nanoseconds, by producer and sequence number; `None` for a message
    /// without this time.
    pub latencies_ns: Vec<Vec<Option<i64>>>,
}

/// An experiment with its messages.
#[derive(Clone, Copy, Debug)]
pub struct TailView<'a> {
    pub document: &'a TailDocument,
    /// Messages of its cells; a missing cell has no picture.
    pub messages: &'a [CellMessages],
}
