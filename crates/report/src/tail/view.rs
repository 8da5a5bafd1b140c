//! An experiment with its messages, as it comes from the records.

use dyno_record::tail::TailDocument;

/// Every message of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellMessages {
    /// Name of the cell.
    pub cell: String,
    /// Intended → received by the first consumer, in nanoseconds, by producer and sequence number; `None` where a message
    /// has no such time.
    pub latencies_ns: Vec<Vec<Option<i64>>>,
}

/// An experiment with its messages.
#[derive(Clone, Copy, Debug)]
pub struct TailView<'a> {
    /// The experiment.
    pub document: &'a TailDocument,
    /// Messages of its cells; one that is missing has no picture.
    pub messages: &'a [CellMessages],
}
