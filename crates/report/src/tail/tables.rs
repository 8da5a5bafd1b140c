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

/// Whether the latency grows, and why.
fn trend(cause: Cause) -> Cell {
    match cause {
        Cause::Stationary => Cell::new("flat", Tone::Plain),
        Cause::TooFew => Cell::new("too few", Tone::Soft),
        Cause::MoreOfferedThanSent => Cell::new("grows: more offered than sent", Tone::Doubt),
        Cause::UnboundedInFlight => Cell::new("grows: unbounded in flight", Tone::Doubt),
        Cause::Server => Cell::new("grows: server", Tone::Doubt),
        Cause::Delivery => Cell::new("grows: delivery", Tone::Doubt),
    }
}

fn times(document: &TailDocument, lines: &[Line<'_>]) -> Section {
    let table = Table::of(lines)
        .text("producer", |line| Cell::new(name(document, line), Tone::Strong))
        .text("latency", |line| trend(line.producer.verdict.cause))
        .number("messages/s", 200, |line| {
            Quantity::per_second(line.producer.timeline.rates.acknowledged_per_s)
        })
        .number("median", u8::MAX, |line| of(line.total(), |latency| latency.p50_us))
        .number("p99", 220, |line| of(line.total(), |latency| latency.p99_us))
        .number("p99.9", 120, |line| of(line.total(), |latency| latency.p99_9_us))
        .number("max", 150, |line| of(line.total(), |latency| latency.max_us))
        .number("wait, median", 90, |line| {
            of(Some(&line.producer.split.wait), |latency| latency.p50_us)
        })
        .number("insert, median", 100, |line| {
            of(Some(&line.producer.split.acknowledged), |latency| latency.p50_us)
        })
        .number("delivery, median", 110, |line| of(line.delivery(), |latency| latency.p50_us))
        .table("Where the time went");
    Section {
        title: "Where the time went".into(),
        lead: "Latency is from intended to received; wait, insert and delivery are parts of it, and the last two overlap.".into(),
        tables: vec![table],
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
    let cpu = |resources: Option<&Resources>, messages: u64| {
        Cell::known(cpu_us(resources, messages).map(Quantity::microseconds))
    };
    let memory = |resources: Option<&Resources>| {
        let most = resources.and_then(Resources::most_rss_bytes);
        Cell::known(most.map(Quantity::bytes))
    };
    let table = Table::of(lines)
        .text("producer", |line| Cell::new(name(document, line), Tone::Strong))
        .number("CPU per message", u8::MAX, |line| {
            cpu(Some(&line.producer.resources), line.producer.sum.acknowledged)
        })
        .number("memory", 200, |line| memory(Some(&line.producer.resources)))
        .number("threads", 150, |line| number(line.producer.resources.most_threads()))
        .number("processes", 70, |line| {
            number(line.producer.resources.samples.iter().map(|sample| sample.processes).max())
        })
        .number("consumer: CPU per message", 120, |line| {
            let consumer = line.measured.consumers.first();
            cpu(consumer.map(|one| &one.resources), consumer.map_or(0, |one| one.sum.received))
        })
        .number("consumer: memory", 110, |line| {
            memory(line.measured.consumers.first().map(|one| &one.resources))
        })
        .number("server: CPU per message", 100, |line| {
            let all = line.measured.producers.iter().map(|one| one.sum.acknowledged);
            cpu(line.measured.server.as_ref(), all.sum())
        })
        .table("Resource use of the processes");
    Section {
        title: "Resource use of the processes".into(),
        lead: "CPU time from the start of the messages to the end of the process, per message; memory and threads are the highest \
               of five readings per second, including all child processes."
            .into(),
        tables: vec![table],
        ..Section::default()
    }
}
