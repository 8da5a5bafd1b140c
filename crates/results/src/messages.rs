//! Opens tail experiments: the document and the latency of every message.

use crate::ResultsError;
use dyno_analyze::caveats::failed_checks;
use dyno_analyze::messages::CellLatencies;
use dyno_record::Document;
use dyno_record::messages::{MESSAGE_COLUMNS, MESSAGES, RECEIPT_COLUMNS, RECEIPTS, read};
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::sums;
use dyno_record::tail::TailDocument;
use std::path::Path;

/// Folder of the cells, inside the experiment's folder.
pub const CELLS: &str = "cells";

/// A tail experiment with the latencies of its messages.
pub struct AnalysedMessages {
    pub document: TailDocument,
    /// Cells with readable message tables.
    pub cells: Vec<CellLatencies>,
}

impl AnalysedMessages {
    /// Reads an experiment and the messages of its cells. Skips cells with unreadable tables, and
    /// adds a caveat if the record was changed after it finished.
    ///
    /// # Errors
    /// [`ResultsError::Record`] if the document or the checksums cannot be read.
    pub fn open(folder: &Path) -> Result<Self, ResultsError> {
        let mut document = TailDocument::read(folder)?;
        document.caveats.extend(sums::check(folder)?.statement());
        document.caveats.extend(of_machine(&document));
        let measured = document.cells.iter().filter(|cell| cell.measured.is_some());
        let cells = measured.filter_map(|cell| {
            let producers = cell.settings.producers.len();
            let folder = folder.join(CELLS).join(&cell.name);
            Some(CellLatencies {
                cell: cell.name.clone(),
                latencies_ns: latencies_ns(&folder, producers, cell.settings.messages).ok()?,
            })
        });
        Ok(AnalysedMessages { cells: cells.collect(), document })
    }
}

/// Caveats for failed machine checks, and for producers, consumers and server that share the
/// machine.
fn of_machine(document: &TailDocument) -> Vec<Statement> {
    let Some(environment) = &document.environment else {
        return Vec::new();
    };
    let is_here = document.cells.iter().all(|cell| cell.settings.is_here());
    let shared = statement!("client-and-server-share-machine", cpus = environment.cpus);
    let checks = failed_checks(environment).into_iter();
    let checks = checks.map(|caveat| caveat.statement);
    Some(shared).filter(|_| is_here).into_iter().chain(checks).collect()
}

/// Time from the intended send of each message to its receipt by the first consumer, by producer
/// and message number; `None` if it is unknown.
fn latencies_ns(
    folder: &Path,
    producers: usize,
    messages: u64,
) -> Result<Vec<Vec<Option<i64>>>, ResultsError> {
    let [producer, n, intended_ns, _, _] = read(&folder.join(MESSAGES), MESSAGE_COLUMNS)?;
    let [consumer, of, number, received_ns, _] = read(&folder.join(RECEIPTS), RECEIPT_COLUMNS)?;
    let messages = usize::try_from(messages).unwrap_or(usize::MAX);
    // A changed record may name producers and messages that do not exist.
    let place = |producer: i64, n: i64| {
        let producer = usize::try_from(producer).ok().filter(|p| *p < producers)?;
        let n = usize::try_from(n).ok().filter(|n| *n < messages)?;
        Some((producer, n))
    };
    let longest = n.iter().max().and_then(|n| usize::try_from(*n).ok());
    let room = longest.map_or(0, |longest| messages.min(longest.saturating_add(1)));
    let mut intended = vec![vec![None; room]; producers];
    for ((producer, n), intended_ns) in producer.into_iter().zip(n).zip(intended_ns) {
        if let Some((producer, n)) = place(producer, n) {
            intended[producer][n] = Some(intended_ns);
        }
    }
    let mut latencies = vec![vec![None; room]; producers];
    for row in 0..consumer.len() {
        let Some((producer, n)) = place(of[row], number[row]) else {
            continue;
        };
        let Some(slot) = latencies[producer].get_mut(n) else {
            continue;
        };
        if consumer[row] == 0 && slot.is_none() {
            *slot = intended[producer][n].map(|intended_ns| received_ns[row] - intended_ns);
        }
    }
    Ok(latencies)
}
