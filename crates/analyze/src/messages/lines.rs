//! The producers of an experiment, and what they are called.

use dyno_record::quantity::Quantity;
use dyno_record::statement;
use dyno_record::statement::Statement;
use dyno_record::tail::{
    Cause, Cell, CellStatus, DeliverySplit, InFlight, Latency, Measured, ProducerRecord,
    TailDocument,
};
use std::collections::BTreeSet;

/// A producer of a cell, with what it is called.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its cell.
    pub cell: &'a Cell,
    /// What was measured in it.
    pub measured: &'a Measured,
    /// Number of the producer.
    pub number: usize,
    /// What it did.
    pub producer: &'a ProducerRecord,
}

impl<'a> Line<'a> {
    /// Intended → received by the first consumer, if a message of it was received.
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

    /// CPU time of the producer for each acknowledged message, in microseconds, if it is known.
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

    /// Whether it did all that it was to do: what one did that failed is not to be compared.
    pub(super) fn is_whole(&self) -> bool {
        self.cell.status == CellStatus::Complete
    }

    pub(super) fn grows(&self) -> bool {
        !matches!(
            self.producer.verdict.cause,
            Cause::Stationary | Cause::TooFew
        )
    }
}

/// All producers that were measured, in the order of their cells.
pub fn lines(document: &TailDocument) -> Vec<Line<'_>> {
    let measured = document.cells.iter().filter_map(|cell| {
        let measured = cell.measured.as_ref()?;
        Some((cell, measured))
    });
    let lines = measured.flat_map(|(cell, measured)| {
        let producers = measured.producers.iter().enumerate();
        producers.map(move |(number, producer)| Line {
            cell,
            measured,
            number,
            producer,
        })
    });
    lines.collect()
}

/// What a cell is called: its combination, and which repetition of it.
pub fn label(document: &TailDocument, cell: &Cell) -> String {
    let combination = combination(document, cell);
    match cell.repetition {
        None => combination,
        Some(repetition) => format!("{combination}, repetition {repetition}"),
    }
}

/// What all repetitions of a cell are called: its producer, and of the rest what is not the same for all cells.
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
        label.push_str(&format!(
            ", pool {}",
            Quantity::exact(cell.settings.pool as f64)
        ));
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
