//! The producers of an experiment, and their labels.

use dyno_record::quantity::Quantity;
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::tail::{
    Cause, Cell, CellStatus, DeliverySplit, InFlight, Latency, Measured, ProducerRecord,
    TailDocument,
};
use std::collections::BTreeSet;

/// A producer of a cell with its label.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    pub cell: &'a Cell,
    /// Measurements of the cell.
    pub measured: &'a Measured,
    pub number: usize,
    pub producer: &'a ProducerRecord,
}

impl<'a> Line<'a> {
    /// Intended → received by the first consumer, if it received a message.
    pub fn total(&self) -> Option<&'a Latency> {
        self.at_first_consumer(|delivery| &delivery.total)
    }

    /// Send → received by the first consumer.
    pub fn delivery(&self) -> Option<&'a Latency> {
        self.at_first_consumer(|delivery| &delivery.delivery)
    }

    fn at_first_consumer(&self, part: fn(&DeliverySplit) -> &Latency) -> Option<&'a Latency> {
        let consumer = self.measured.consumers.first()?;
        let latency = part(consumer.deliveries.get(self.number)?);
        (latency.count > 0).then_some(latency)
    }

    /// CPU time of the producer per acknowledged message, in microseconds, if known.
    pub fn cpu_us(&self) -> Option<f64> {
        let messages = self.producer.sum.acknowledged;
        let cpu_s = self.producer.resources.cpu_s?;
        (messages > 0).then(|| cpu_s * 1e6 / messages as f64)
    }

    /// Whether it is the same producer in another repetition of the same combination.
    pub(super) fn repeats(&self, other: &Line<'_>) -> bool {
        self.number == other.number && self.cell.settings == other.cell.settings
    }

    pub(super) fn median_us(&self) -> Option<f64> {
        self.total().map(|total| total.p50_us)
    }

    /// Whether it completed its work: failed producers are not compared.
    pub(super) fn is_whole(&self) -> bool {
        self.cell.status == CellStatus::Complete
    }

    pub(super) fn grows(&self) -> bool {
        !matches!(self.producer.verdict.cause, Cause::Stationary | Cause::TooFew)
    }
}

/// All measured producers, in the order of their cells.
pub fn lines(document: &TailDocument) -> Vec<Line<'_>> {
    let measured = document.cells.iter().filter_map(|cell| {
        let measured = cell.measured.as_ref()?;
        Some((cell, measured))
    });
    let lines = measured.flat_map(|(cell, measured)| {
        measured.producers.iter().enumerate().map(move |(number, producer)| Line {
            cell,
            measured,
            number,
            producer,
        })
    });
    lines.collect()
}

/// Label of a cell: its combination and repetition.
pub fn label(document: &TailDocument, cell: &Cell) -> String {
    let combination = combination(document, cell);
    match cell.repetition {
        None => combination,
        Some(repetition) => format!("{combination}, repetition {repetition}"),
    }
}

/// Common label of a cell's repetitions: its producer, and the other settings that differ between cells.
pub fn combination(document: &TailDocument, cell: &Cell) -> String {
    let differs = |of: &dyn Fn(&Cell) -> String| {
        let values: BTreeSet<String> = document.cells.iter().map(of).collect();
        values.len() > 1
    };
    let mut label = cell.settings.producers.first().cloned().unwrap_or_default();
    let consumer = |cell: &Cell| cell.settings.consumers.first().cloned().unwrap_or_default();
    if differs(&consumer) {
        label.push_str(&format!(" → {}", consumer(cell)));
    }
    if differs(&|cell| bound(cell.settings.in_flight)) {
        label.push_str(&format!(", {}", bound(cell.settings.in_flight)));
    }
    if differs(&|cell| cell.settings.pool.to_string()) {
        label.push_str(&format!(", pool {}", Quantity::exact(cell.settings.pool as f64)));
    }
    label
}

/// A bound on inserts in flight in words.
pub fn bound(in_flight: InFlight) -> String {
    match in_flight {
        InFlight::Bounded(bound) => format!("{} in flight", Quantity::exact(bound as f64)),
        InFlight::Unbounded => "unbounded".to_owned(),
    }
}

/// A producer by its cell.
pub(super) fn named(document: &TailDocument, line: &Line<'_>) -> Statement {
    let label = label(document, line.cell);
    match line.measured.producers.len() {
        1 => statement!("cell", cell = label),
        _ => statement!("producer-of-cell", cell = label, producer = line.number),
    }
}
