//! Tables of a trace: the files, their time slices, and the block layer.

use super::view::TraceView;
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
use dyno_analyze::access_pattern::{AccessPatterns, FilePattern, Window};
use dyno_record::io_trace::document::FileKind;
use dyno_record::io_trace::event::Operation;
use dyno_record::io_trace::log_histogram::LogHistogram;
use dyno_record::quantity::{Quantity, Unit};

/// Largest number of rows in the table of files.
const MOST_FILES: usize = 20;
/// Largest number of files with a table of time slices.
const MOST_SLICED: usize = 6;

/// The past tense of an operation.
pub(super) fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "was read",
        Operation::Write => "was written",
        Operation::Sync => "was synced",
        Operation::Fault => "was read by page faults",
    }
}

/// The plural noun of an operation.
pub(super) fn noun(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "reads",
        Operation::Write => "writes",
        Operation::Sync => "syncs",
        Operation::Fault => "page faults",
    }
}

/// The patterns with the most calls, up to the limit of rows.
pub(super) fn worth_showing(patterns: &AccessPatterns) -> Vec<&FilePattern> {
    patterns.files.iter().take(MOST_FILES).collect()
}

/// The section about files.
pub(super) fn files(shown: &[&FilePattern], patterns: &AccessPatterns) -> Section {
    let rows: Vec<(&FilePattern, bool)> = shown
        .iter()
        .enumerate()
        .map(|(place, file)| {
            let is_first = shown[..place].iter().all(|other| other.file != file.file);
            (*file, is_first)
        })
        .collect();
    let mut columns = Table::of(&rows)
        .text("file", |(file, is_first)| {
            Cell::new(file.label(), Tone::Strong).with_detail(name_or_words(file, *is_first))
        })
        .text("operation", |(file, _)| noun(file.operation));
    for figure in FIGURES {
        columns = columns.number(figure.0, figure.1, |(file, _)| cell(&figure, file));
    }
    let columns = columns.number("failed", 60, |(file, _)| match file.errors {
        0 => Cell::default(),
        errors => Cell::new(Quantity::count(errors), Tone::Alarm),
    });
    let mut notes = Vec::new();
    let hidden = patterns.files.len() - shown.len();
    if hidden > 0 {
        notes.push(format!(
            "The JSON report has {} with fewer calls.",
            Quantity::counted(hidden as u64, "more row")
        ));
    }
    if shown.iter().any(|file| file.device.is_none() && is_reading(file)) {
        notes.push(
            "The block layer was not traced, so calls answered by the page cache cannot be distinguished from calls that waited for a device."
                .to_owned(),
        );
    }
    Section {
        title: "Files".into(),
        lead: "Each operation on each file, the most frequent first.".into(),
        tables: vec![columns.table("Files")],
        notes,
        ..Section::default()
    }
}

fn is_reading(file: &FilePattern) -> bool {
    matches!(file.operation, Operation::Read | Operation::Fault)
}

/// The time slices of the files with the most calls.
pub(super) fn slices(shown: &[&FilePattern], view: &TraceView<'_>) -> Option<Section> {
    if view.slices.is_empty() {
        return None;
    }
    let start_s = view.document.start_s;
    let at = |ns: i64| Quantity::seconds(ns as f64 * 1e-9 - start_s);
    let table = |file: &&FilePattern| {
        let slices = view.slices.iter();
        let rows: Vec<(Window, &FilePattern)> = slices
            .filter_map(|slice| Some((slice.window?, slice.of(file.file, file.operation)?)))
            .collect();
        let mut columns = Table::of(&rows)
            .text("from", |(window, _)| at(window.from_ns))
            .text("to", |(window, _)| at(window.to_ns));
        for figure in FIGURES {
            columns = columns.number(figure.0, figure.1, |(_, known)| cell(&figure, known));
        }
        let label = format!("{} of {}", noun(file.operation), file.label());
        columns.known(label)
    };
    let tables = shown.iter().take(MOST_SLICED).filter_map(table);
    Some(Section {
        title: "Time slices".into(),
        lead: "The figures of each time slice, from the start of the trace; slices without calls are left out. \
               A call belongs to the slice in which it began; streams and previously read data start anew in each slice."
            .into(),
        tables: tables.collect(),
        ..Section::default()
    })
}

/// The part of a file's identity that its label leaves out: its name, once, or its content if the label is the name.
fn name_or_words(file: &FilePattern, is_first: bool) -> Option<String> {
    if file.label() != file.name {
        return is_first.then(|| file.name.clone());
    }
    let role = file.role.as_ref()?;
    let kind = match role.kind {
        FileKind::Index => "index",
        FileKind::Collection => "collection",
        FileKind::Journal => "journal",
        FileKind::Other => return role.words.clone(),
    };
    Some(role.words.clone().unwrap_or_else(|| kind.to_owned()))
}

/// A figure of a file: title, rank, value and format.
type Figure = (&'static str, u8, fn(&FilePattern) -> Option<f64>, fn(f64) -> String);

const FIGURES: [Figure; 13] = [
    ("calls", 250, |file| Some(file.calls as f64), count),
    ("bytes", 200, |file| Some(file.bytes as f64), bytes),
    ("median size", 120, FilePattern::median_bytes, bytes),
    ("score", 249, |file| file.score, |score| format!("{score:.2}")),
    ("sequential", 180, |file| file.sequential_ratio, ratio),
    ("median seek", 190, FilePattern::median_seek_bytes, bytes),
    ("read again", 90, |file| file.reread_ratio, ratio),
    ("touched", 80, |file| file.working_set_bytes.map(|bytes| bytes as f64), bytes),
    ("times its size", 150, |file| file.amplification, times),
    ("median latency", 170, |file| file.latency.map(|l| l.p50_ns / 1e3), microseconds),
    ("p99 latency", 160, |file| file.latency.map(|l| l.p99_ns / 1e3), microseconds),
    ("waited for the device", 175, |file| Some(file.device.as_ref()?.waiting_ratio), ratio),
    ("device bytes", 70, |file| Some(file.device.as_ref()?.device_ratio), ratio),
];

fn count(value: f64) -> String {
    Quantity::new(value, Unit::Count).to_string()
}

fn bytes(value: f64) -> String {
    Quantity::new(value, Unit::Bytes).to_string()
}

fn ratio(value: f64) -> String {
    Quantity::ratio(value).to_string()
}

fn times(value: f64) -> String {
    Quantity::new(value, Unit::Parameter).to_string()
}

fn microseconds(value: f64) -> String {
    Quantity::microseconds(value).to_string()
}

/// A figure of a file; empty if unknown.
fn cell(&(_, _, value, write): &Figure, file: &FilePattern) -> Cell {
    Cell::known(value(file).map(write))
}

fn devices(view: &TraceView<'_>) -> String {
    let names: Vec<String> = view
        .document
        .devices
        .iter()
        .map(|device| {
            if device.name.is_empty() {
                format!("{}:{}", device.major, device.minor)
            } else {
                device.name.clone()
            }
        })
        .collect();
    names.join(", ")
}

/// The section about the block layer; `None` if nothing reached a device.
pub(super) fn block(view: &TraceView<'_>) -> Option<Section> {
    let block = view.patterns.block.as_ref()?;
    let matched = block.matched_bytes as f64 / block.read_bytes as f64;
    let matched = (block.read_bytes > 0).then(|| Quantity::ratio(matched));
    let mut rows = vec![
        ("reads", block.reads, block.read_bytes, &block.read_ns, matched),
        ("writes", block.writes, block.written_bytes, &block.write_ns, None),
    ];
    rows.retain(|(_, requests, ..)| *requests > 0);
    let at = |times: &LogHistogram, ratio| {
        let ns = times.quantile(ratio);
        Cell::known(ns.map(|ns| Quantity::microseconds(ns / 1e3)))
    };
    let table = Table::of(&rows)
        .text("requests", |(what, ..)| *what)
        .number("number", 255, |(_, requests, ..)| Quantity::count(*requests))
        .number("bytes", 250, |(_, _, bytes, ..)| Quantity::bytes(*bytes))
        .number("median in the queue", 200, |_| at(&block.queue_ns, 0.5))
        .number("p99 in the queue", 190, |_| at(&block.queue_ns, 0.99))
        .number("median on the device", 240, |(.., times, _)| at(times, 0.5))
        .number("p99 on the device", 230, |(.., times, _)| at(times, 0.99))
        .number("by traced calls", 150, |(.., matched)| Cell::known(*matched));
    let devices = devices(view);
    table.known("Block layer").map(|table| Section {
        title: "Block layer".into(),
        lead: format!(
            "Requests to the devices ({devices}) by all processes during the trace. Times in the queue cover reads and writes \
             together."
        ),
        tables: vec![table],
        ..Section::default()
    })
}
