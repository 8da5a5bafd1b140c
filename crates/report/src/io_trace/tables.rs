//! Tables of a trace: the files, what changed between two traces, and the block layer.

use super::pairs::Pair;
use super::view::{TracePair, TraceView};
use crate::page::Section;
use crate::page::table::{Cell, Table, Tone};
use dyno_analyze::access_pattern::{AccessPatterns, BlockSummary, FilePattern, Window};
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
            "{} more rows with fewer calls are in the JSON report.",
            Quantity::count(hidden as u64)
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

/// A figure of a file: title, rank, whether the quotient of two is shown, value and format.
type Figure = (&'static str, u8, bool, fn(&FilePattern) -> Option<f64>, fn(f64) -> String);

const FIGURES: [Figure; 13] = [
    ("calls", 250, true, |file| Some(file.calls as f64), count),
    ("bytes", 200, true, |file| Some(file.bytes as f64), bytes),
    ("median size", 120, true, FilePattern::median_bytes, bytes),
    ("score", 249, false, |file| file.score, |score| format!("{score:.2}")),
    ("sequential", 180, false, |file| file.sequential_ratio, ratio),
    ("median seek", 190, false, FilePattern::median_seek_bytes, bytes),
    ("read again", 90, false, |file| file.reread_ratio, ratio),
    ("touched", 80, true, |file| file.working_set_bytes.map(|bytes| bytes as f64), bytes),
    ("times its size", 150, true, |file| file.amplification, times),
    ("median latency", 170, true, |file| file.latency.map(|l| l.p50_ns / 1e3), microseconds),
    ("p99 latency", 160, true, |file| file.latency.map(|l| l.p99_ns / 1e3), microseconds),
    ("waited for the device", 175, false, |file| Some(file.device.as_ref()?.waiting_ratio), ratio),
    ("device bytes", 70, false, |file| Some(file.device.as_ref()?.device_ratio), ratio),
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
fn cell(&(_, _, _, value, write): &Figure, file: &FilePattern) -> Cell {
    Cell::known(value(file).map(write))
}

/// The files of two traces, with a row per figure.
pub(super) fn pairs(pairs: &[Pair<'_>]) -> Section {
    let table = |pair: &Pair<'_>| {
        let known = |file: Option<&FilePattern>, figure: &Figure| {
            file.map_or_else(Cell::default, |file| cell(figure, file))
        };
        let name = |file: Option<&FilePattern>| Cell::known(file.map(|file| &file.name));
        let names = ["file".into(), name(pair.before), name(pair.after), Cell::default()];
        let rows = FIGURES.iter().map(|figure| {
            let &(title, _, is_compared, value, _) = figure;
            let both = pair.before.and_then(value).zip(pair.after.and_then(value));
            let quotient = both.filter(|(before, _)| is_compared && *before > 0.0);
            let quotient = quotient.map(|(before, after)| times(after / before));
            let [before, after] = [pair.before, pair.after].map(|file| known(file, figure));
            [title.into(), before, after, Cell::known(quotient)]
        });
        let rows = std::iter::once(names).chain(rows);
        let rows: Vec<[Cell; 4]> =
            rows.filter(|row| !row[1].text.is_empty() || !row[2].text.is_empty()).collect();
        let label = format!("{} of {}", noun(pair.any().operation), pair.name().replace('`', ""));
        Table::of(&rows)
            .text(&label, |row| Cell::new(&row[0].text, Tone::Strong))
            .number("before", 255, |row| row[1].clone())
            .number("after", 255, |row| row[2].clone())
            .number("after ÷ before", 100, |row| row[3].clone())
            .table(label)
    };
    Section {
        title: "Files".into(),
        lead: "The operations on each file, before and after.".into(),
        tables: pairs.iter().map(table).collect(),
        ..Section::default()
    }
}

/// The section about the block layer.
pub(super) fn block(view: &TraceView<'_>) -> Option<Section> {
    let block = view.patterns.block.as_ref()?;
    block_section(&[("", block)], devices(view))
}

/// The section about the block layer for two traces.
pub(super) fn block_pair(pair: &TracePair<'_>) -> Option<Section> {
    let before = pair.before.patterns.block.as_ref()?;
    let after = pair.after.patterns.block.as_ref()?;
    let devices = devices(&pair.after);
    block_section(&[("before", before), ("after", after)], devices)
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

/// `None` if nothing reached a device.
fn block_section(blocks: &[(&str, &BlockSummary)], devices: String) -> Option<Section> {
    let mut rows = Vec::new();
    for (name, block) in blocks {
        let matched = block.matched_bytes as f64 / block.read_bytes as f64;
        let matched = (block.read_bytes > 0).then(|| Quantity::ratio(matched));
        let (reads, writes) = (block.reads, block.writes);
        rows.push((name, "reads", reads, block.read_bytes, &block.read_ns, block, matched));
        rows.push((name, "writes", writes, block.written_bytes, &block.write_ns, block, None));
    }
    rows.retain(|(_, _, requests, ..)| *requests > 0);
    let at = |times: &LogHistogram, ratio| {
        let ns = times.quantile(ratio);
        Cell::known(ns.map(|ns| Quantity::microseconds(ns / 1e3)))
    };
    let table = Table::of(&rows)
        .text("", |(name, ..)| Cell::new(name, Tone::Strong))
        .text("requests", |(_, what, ..)| *what)
        .number("number", 255, |(_, _, requests, ..)| Quantity::count(*requests))
        .number("bytes", 250, |(_, _, _, bytes, ..)| Quantity::bytes(*bytes))
        .number("median in the queue", 200, |(.., block, _)| at(&block.queue_ns, 0.5))
        .number("p99 in the queue", 190, |(.., block, _)| at(&block.queue_ns, 0.99))
        .number("median on the device", 240, |(.., times, _, _)| at(times, 0.5))
        .number("p99 on the device", 230, |(.., times, _, _)| at(times, 0.99))
        .number("by traced calls", 150, |(.., matched)| Cell::known(*matched));
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
