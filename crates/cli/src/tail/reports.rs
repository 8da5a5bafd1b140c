//! What an experiment with messages means: its cells, and every message of them, put into words, tables and pictures.

use crate::exit::Failure;
use dyno_analyze::messages::record::TailDocument;
use dyno_record::messages::{MESSAGE_COLUMNS, MESSAGES, RECEIPT_COLUMNS, RECEIPTS, read};
use dyno_report::RenderOptions;
use dyno_report::experiment::ExperimentFormat;
use dyno_report::tail::{CellMessages, TailView, render};
use dyno_tail::document;
use std::path::Path;

/// Folder of the cells, in that of the experiment.
pub(crate) const CELLS: &str = "cells";

/// An experiment with its messages.
pub(crate) struct AnalysedTail {
    document: TailDocument,
    messages: Vec<CellMessages>,
}

impl AnalysedTail {
    /// Reads the one in a folder. A cell whose tables cannot be read has no picture of its messages.
    pub(crate) fn of(folder: &Path) -> Result<AnalysedTail, Failure> {
        let document = document::read(folder)?;
        let cells = document.cells.iter().filter(|cell| cell.measured.is_some());
        let messages = cells.filter_map(|cell| {
            let producers = cell.settings.producers.len();
            let folder = folder.join(CELLS).join(&cell.name);
            Some(CellMessages {
                cell: cell.name.clone(),
                latencies_ns: latencies_ns(&folder, producers, cell.settings.messages).ok()?,
            })
        });
        Ok(AnalysedTail {
            messages: messages.collect(),
            document,
        })
    }

    /// In one of the forms.
    pub(crate) fn render(
        &self,
        format: ExperimentFormat,
        options: &RenderOptions,
    ) -> Result<String, Failure> {
        let view = TailView {
            document: &self.document,
            messages: &self.messages,
        };
        Ok(render(&view, format, options)?)
    }
}

/// From when each message was intended until the first consumer had it, by producer and number; `None` where it has no
/// such time.
fn latencies_ns(
    folder: &Path,
    producers: usize,
    messages: u64,
) -> Result<Vec<Vec<Option<i64>>>, Failure> {
    let [producer, n, intended_ns, _, _] = read(&folder.join(MESSAGES), MESSAGE_COLUMNS)?;
    let [consumer, of, number, received_ns, _] = read(&folder.join(RECEIPTS), RECEIPT_COLUMNS)?;
    let messages = usize::try_from(messages).unwrap_or(usize::MAX);
    // A record that somebody changed may name what there is not.
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
