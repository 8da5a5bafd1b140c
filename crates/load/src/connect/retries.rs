//! Retries that a connection string enables.

use super::Connector;

/// Commands that are sent again after a failure that allows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retries {
    /// `retryReads=true`.
    pub(crate) reads: bool,
    /// `retryWrites=true`.
    pub(crate) writes: bool,
}

impl Connector {
    /// Retries of the connection string. Drivers default to both, this backend to none.
    pub(crate) fn retries(&self) -> Retries {
        let options = &self.inner.options;
        Retries {
            reads: options.retry_reads == Some(true),
            writes: options.retry_writes == Some(true),
        }
    }
}
