//! Session and number of a retryable write, patched into its encoded command.

use super::CommandSet;
use crate::bson::ElementWriter;

/// A session with numbered writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// UUID.
    pub session: [u8; 16],
    /// Number of the write; it increases with each write.
    pub number: i64,
}

/// `lsid: {id: UUID("…")}` up to the UUID.
pub(super) const SESSION_START: &[u8] = b"\x03lsid\0\x1e\0\0\0\x05id\0\x10\0\0\0\x04";
/// From the end of the UUID to the number: the end of `lsid`, and `txnNumber`.
pub(super) const NUMBER_START: &[u8] = b"\0\x12txnNumber\0";

/// Writes an empty session and number into a command.
pub(super) fn write(writer: &mut ElementWriter<'_>) {
    let empty = Transaction::default();
    writer.document("lsid", |session| {
        session.uuid("id", &empty.session);
    });
    writer.i64("txnNumber", empty.number);
}

/// Offset of the session in a command.
pub(super) fn place(command: &[u8]) -> Option<usize> {
    command.windows(SESSION_START.len()).position(|bytes| bytes == SESSION_START)
}

impl CommandSet {
    /// Sets the session and number of a write. Without `CommandOptions::retryable_writes`, nothing changes.
    #[inline]
    pub fn set_transaction(&self, message: &mut [u8], transaction: &Transaction) {
        let Some(place) = self.transaction else {
            return;
        };
        let session = place + SESSION_START.len();
        let number = session + transaction.session.len() + NUMBER_START.len();
        message[session..session + 16].copy_from_slice(&transaction.session);
        message[number..number + 8].copy_from_slice(&transaction.number.to_le_bytes());
    }
}
