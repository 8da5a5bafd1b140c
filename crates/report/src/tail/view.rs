//! An experiment with its messages, as read from the records.

use dyno_analyze::messages::CellLatencies;
use dyno_record::tail::TailDocument;

/// An experiment with its messages.
#[derive(Clone, Copy, Debug)]
pub struct TailView<'a> {
    pub document: &'a TailDocument,
    /// Messages of its cells; a missing cell has no picture.
    pub messages: &'a [CellLatencies],
}
