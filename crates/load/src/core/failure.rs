//! Failure messages and retries in the recorded window.

use super::Core;
use crate::operation::{OperationError, OperationKind};
use dyno_record::error_example::ErrorExample;

impl Core {
    /// Keeps the message of a failure that is the first of its kind in the window.
    pub(crate) fn note_example(
        &mut self,
        kind: OperationKind,
        error: OperationError,
        now_ns: u64,
        example: impl FnOnce() -> ErrorExample,
    ) {
        self.tick(now_ns);
        self.part.note_example(kind, error, example);
    }

    /// Message of the first failure of this kind in the window.
    pub(crate) fn example(
        &self,
        kind: OperationKind,
        error: OperationError,
    ) -> Option<&ErrorExample> {
        self.part.example(kind, error)
    }

    /// Records that a command will be sent again.
    pub(crate) fn retried(&mut self) {
        self.part.retries += 1;
    }
}
