//! Tables of the parts of latency, the outcome of the messages, and resource use of the processes.

use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::messages::lines::{Line, label};
use dyno_analyze::messages::repeated::is_repeated;
use dyno_record::quantity::Quantity;
use dyno_record::tail::{
    BlindCursor, Cause, Cell as Measurement, CellStatus, Latency, Resources, TailDocument,
};

/// The tables with content.
pub(super) fn sections(document: &TailDocument, lines: &[Line<'_>]) -> Vec<Section> {
    if lines.is_empty() {
        return Vec::new();
    }
    vec![times(document, lines), sums(document), used(document, lines)]
}

/// The label of a line; with several producers, it includes the producer's number.
pub(super) fn name(document: &TailDocument, line: &Line<'_>) -> String {
    let label = label(document, line.cell);
    match line.measured.producers.len() {
        1 => label,
        _ => format!("{label} #{}", line.number),
    }
}

fn of(latency: Option<&Latency>, value: fn(&Latency) -> f64) -> Cell {
    let known = latency.filter(|latency| latency.count > 0);
    Cell::known(known.map(|latency| Quantity::microseconds(value(latency))))
}

fn times(document: &TailDocument, lines: &[Line<'_>]) -> Section {
    let columns = vec![
        Column::text("producer"),
        Column::text("latency"),
        Column::number("messages/s", 200),
        Column::number("median", u8::MAX),
        Column::number("p99", 220),
        Column::number("p99.9", 120),
        Column::number("max", 150),
        Column::number("wait, median", 90),
        Column::number("insert, median", 100),
        Column::number("delivery, median", 110),
    ];
    let rows = lines.iter().map(|line| {
        let (total, split) = (line.total(), &line.producer.split);
        let verdict = match line.producer.verdict.cause {
            Cause::Stationary => Cell::new("flat", Tone::Plain),
            Cause::TooFew => Cell::new("too few", Tone::Soft),
            Cause::MoreOfferedThanSent => Cell::new("grows: more offered than sent", Tone::Doubt),
            Cause::UnboundedInFlight => Cell::new("grows: unbounded in flight", Tone::Doubt),
            Cause::Server => Cell::new("grows: server", Tone::Doubt),
            Cause::Delivery => Cell::new("grows: delivery", Tone::Doubt),
        };
        let rate = line.producer.timeline.rates.acknowledged_per_s;
        vec![
            Cell::new(name(document, line), Tone::Strong),
            verdict,
            Quantity::per_second(rate).into(),
            of(total, |latency| latency.p50_us),
            of(total, |latency| latency.p99_us),
            of(total, |latency| latency.p99_9_us),
            of(total, |latency| latency.max_us),
            of(Some(&split.wait), |latency| latency.p50_us),
            of(Some(&split.acknowledged), |latency| latency.p50_us),
            of(line.delivery(), |latency| latency.p50_us),
        ]
    });
    Section {
        title: "Where the time went".into(),
        lead: "Latency is from intended to received; wait, insert and delivery are parts of it, and the last two overlap.".into(),
        tables: vec![Table::new("Where the time went", columns, rows.collect())],
        notes: vec![
            if is_repeated(document) {
                "The figures are for each repetition separately."
            } else {
                "Each cell was measured once, so the figures have no interval and small differences mean nothing. \
                 Use `--repeat` to get intervals."
            }
            .into(),
            "Producer, consumer and server share the CPUs of this machine, unless the server is on another one.".into(),
        ],
        ..Section::default()
    }
}

fn number(value: Option<u64>) -> Cell {
    Cell::known(value.map(Quantity::count))
}

/// A number that should be 0.
fn bad(value: u64, alarm: bool) -> Cell {
    let tone = match (value, alarm) {
        (0, _) => Tone::Plain,
        (_, true) => Tone::Alarm,
        (_, false) => Tone::Doubt,
    };
    Cell::new(Quantity::count(value), tone)
}

fn sums(document: &TailDocument) -> Section {
    let columns = vec![
        Column::text("cell"),
        Column::text("status"),
        Column::number("acknowledged", 200),
        Column::number("failed", 180),
        Column::number("no answer", 90),
        Column::number("received", u8::MAX),
        Column::number("lost", u8::MAX),
        Column::number("twice", u8::MAX),
        Column::number("reordered", 150),
        Column::number("skipped duplicates", 60),
        Column::number("caught up", 100),
        Column::number("blind", 120),
        Column::number("position lost", 110),
        Column::number("reopened", 80),
        Column::number("of these empty", 70),
    ];
    let rows = document.cells.iter().flat_map(|cell| rows_of(document, cell));
    Section {
        title: "Outcome of the messages".into(),
        lead: "Every message is accounted for: received and lost messages are the acknowledged ones, plus messages received although their insert \
               failed."
            .into(),
        tables: vec![Table::new("Outcome of the messages", columns, rows.collect())],
        ..Section::default()
    }
}

fn rows_of(document: &TailDocument, cell: &Measurement) -> Vec<Vec<Cell>> {
    let status = match cell.status {
        CellStatus::Complete => Cell::from("complete"),
        CellStatus::Partial => Cell::new("partial", Tone::Doubt),
        CellStatus::Failed => Cell::new("failed", Tone::Alarm),
    };
    let named = label(document, cell);
    let Some(measured) = &cell.measured else {
        let mut row = vec![Cell::new(named, Tone::Strong), status];
        row.resize(15, Cell::default());
        return vec![row];
    };
    let all = |of: fn(&dyno_record::tail::ProducerSum) -> u64| -> u64 {
        measured.producers.iter().map(|one| of(&one.sum)).sum()
    };
    let several = measured.consumers.len() > 1;
    let rows = measured.consumers.iter().enumerate().map(|(place, consumer)| {
        let sum = consumer.sum;
        let name = if several { format!("{named}, consumer {place}") } else { named.clone() };
        let alarm = cell.status != CellStatus::Partial;
        vec![
            Cell::new(name, Tone::Strong),
            status.clone(),
            number(Some(all(|sum| sum.acknowledged))),
            bad(all(|sum| sum.failed), true),
            bad(all(|sum| sum.unanswered), alarm),
            number(Some(sum.received)),
            bad(sum.lost, alarm),
            bad(sum.duplicated, true),
            number(Some(sum.reordered)),
            number(consumer.duplicates_skipped.filter(|count| *count > 0)),
            number(consumer.caught_up),
            blind(&consumer.blind),
            bad(consumer.position_lost.unwrap_or(0), false),
            number(consumer.reopened),
            number(consumer.reopened_empty),
        ]
    });
    rows.collect()
}

/// Total time in which cursors were blind.
fn blind(cursors: &[BlindCursor]) -> Cell {
    let all_s: f64 = cursors.iter().map(|cursor| cursor.blind_s).sum();
    if cursors.is_empty() {
        Cell::default()
    } else {
        Cell::new(Quantity::microseconds(all_s * 1e6), Tone::Doubt)
    }
}

/// CPU time per message, if known.
fn cpu_us(resources: Option<&Resources>, messages: u64) -> Option<f64> {
    let cpu_s = resources?.cpu_s?;
    (messages > 0).then(|| cpu_s * 1e6 / messages as f64)
}

fn used(document: &TailDocument, lines: &[Line<'_>]) -> Section {
    let columns = vec![
        Column::text("producer"),
        Column::number("CPU per message", u8::MAX),
        Column::number("memory", 200),
        Column::number("threads", 150),
        Column::number("processes", 70),
        Column::number("consumer: CPU per message", 120),
        Column::number("consumer: memory", 110),
        Column::number("server: CPU per message", 100),
    ];
    let cpu = |resources: Option<&Resources>, messages| {
        Cell::known(cpu_us(resources, messages).map(Quantity::microseconds))
    };
    let memory = |resources: Option<&Resources>| {
        let most = resources.and_then(Resources::most_rss_bytes);
        Cell::known(most.map(Quantity::bytes))
    };
    let rows = lines.iter().map(|line| {
        let own = Some(&line.producer.resources);
        let consumer = line.measured.consumers.first();
        let consumed = consumer.map(|consumer| &consumer.resources);
        let all: u64 = line.measured.producers.iter().map(|one| one.sum.acknowledged).sum();
        vec![
            Cell::new(name(document, line), Tone::Strong),
            cpu(own, line.producer.sum.acknowledged),
            memory(own),
            number(line.producer.resources.most_threads()),
            number(line.producer.resources.samples.iter().map(|sample| sample.processes).max()),
            cpu(consumed, consumer.map_or(0, |consumer| consumer.sum.received)),
            memory(consumed),
            cpu(line.measured.server.as_ref(), all),
        ]
    });
    Section {
        title: "Resource use of the processes".into(),
        lead: "CPU time from the start of the messages to the end of the process, per message; memory and threads are the highest \
               of five readings per second, including all child processes."
            .into(),
        tables: vec![Table::new("Resource use of the processes", columns, rows.collect())],
        ..Section::default()
    }
}
