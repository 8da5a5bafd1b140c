//! Writes the tables of the record with each message.

use crate::error::TailError;
use crate::messages::{Entry, Fate, Produced};
use crate::stamps::Received;
use dyno_record::messages::{
    Columns, MESSAGE_COLUMNS, MESSAGES, RECEIPT_COLUMNS, RECEIPTS, write as write_table,
};
use std::path::Path;

/// Receipts of all consumers, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Receipts(Columns<5>);

impl Receipts {
    pub(crate) fn add(&mut self, consumer: usize, received: &Received) {
        let row = [
            consumer as i64,
            i64::from(received.producer),
            received.n as i64,
            received.received_ns,
            received.batch.map_or(-1, i64::from),
        ];
        for (column, value) in self.0.iter_mut().zip(row) {
            column.push(value);
        }
    }
}

/// Writes both tables.
pub(crate) fn write(
    folder: &Path,
    producers: &[Produced],
    receipts: Receipts,
) -> Result<(), TailError> {
    let mut sent: Columns<5> = Default::default();
    for (producer, produced) in producers.iter().enumerate() {
        let answered = |entry: &Entry| match entry.fate() {
            Fate::Failed => -entry.end_ns(),
            _ => entry.end_ns(),
        };
        let entries = produced.entries.iter().enumerate();
        for (n, entry) in entries.filter(|(_, entry)| entry.fate() != Fate::Unanswered) {
            let row =
                [producer as i64, n as i64, entry.intended_ns, entry.send_ns, answered(entry)];
            for (column, value) in sent.iter_mut().zip(row) {
                column.push(value);
            }
        }
    }
    write_table(&folder.join(MESSAGES), MESSAGE_COLUMNS, &sent)?;
    write_table(&folder.join(RECEIPTS), RECEIPT_COLUMNS, &receipts.0)?;
    Ok(())
}
