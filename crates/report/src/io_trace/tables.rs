//! Tables of a trace: the files, what changed between two traces, and the block layer.

use super::pairs::Pair;
use super::view::{TracePair, TraceView};
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::access_pattern::{AccessPatterns, BlockSummary, FilePattern};
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
    let columns = vec![
        Column::text("file"),
        Column::text("calls"),
        Column::number("number", 250),
        Column::number("bytes", 200),
        Column::number("median size", 120),
        Column::number("score", 249),
        Column::number("sequential", 180),
        Column::number("median seek", 190),
        Column::number("read again", 90),
        Column::number("touched", 80),
        Column::number("times its size", 150),
        Column::number("median latency", 170),
        Column::number("p99 latency", 160),
        Column::number("waited for the device", 175),
        Column::number("device bytes", 70),
        Column::number("failed", 60),
    ];
    let rows = shown.iter().enumerate().map(|(place, file)| {
        let is_first = shown[..place].iter().all(|other| other.file != file.file);
        row(file, is_first)
    });
    let rows = rows.collect();
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
        tables: vec![Table::new("Files", columns, rows)],
        notes,
        ..Section::default()
    }
}

fn is_reading(file: &FilePattern) -> bool {
    matches!(file.operation, Operation::Read | Operation::Fault)
}

fn row(file: &FilePattern, is_first: bool) -> Vec<Cell> {
    let failed = match file.errors {
        0 => Cell::default(),
        errors => Cell::new(Quantity::count(errors), Tone::Alarm),
    };
    let values = values(file);
    let mut cells = vec![
        Cell::new(file.label(), Tone::Strong).with_detail(name_or_words(file, is_first)),
        noun(file.operation).into(),
    ];
    cells.extend(values.into_iter().map(|(_, cell)| cell));
    cells.push(failed);
    cells
}

/// The time slices of the files with the most calls.
pub(super) fn slices(shown: &[&FilePattern], view: &TraceView<'_>) -> Option<Section> {
    if view.slices.is_empty() {
        return None;
    }
    let start_s = view.document.start_s;
    let table = |file: &&FilePattern| {
        let mut columns = vec![Column::text("from"), Column::text("to")];
        let names = values(file).into_iter().map(|(name, _)| name);
        columns.extend(names.zip((0u8..).map(|place| 200 - place)).map(
            |(name, rank)| match name {
                "score" => Column::number(name, 250),
                _ => Column::number(name, rank),
            },
        ));
        let rows = view.slices.iter().filter_map(|slice| {
            let window = slice.window?;
            let at = |ns: i64| Cell::from(Quantity::seconds(ns as f64 * 1e-9 - start_s));
            let mut cells = vec![at(window.from_ns), at(window.to_ns)];
            let known = slice.of(file.file, file.operation)?;
            cells.extend(values(known).into_iter().map(|(_, cell)| cell));
            Some(cells)
        });
        let label = format!("{} of {}", noun(file.operation), file.label());
        Table::new(label, columns, rows.collect())
    };
    let tables = shown.iter().take(MOST_SLICED).map(table);
    Some(Section {
        title: "Time slices".into(),
        lead: "The figures of each time slice, from the start of the trace; slices without calls are left out. \
               A call belongs to the slice in which it began; streams and previously read data start anew in each slice."
            .into(),
        tables: tables.filter(|table| !table.rows.is_empty()).collect(),
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

/// The named figures of a file; unknown ones are empty.
fn values(file: &FilePattern) -> Vec<(&'static str, Cell)> {
    let of = |value: Option<f64>, unit| Cell::known(value.map(|value| Quantity::new(value, unit)));
    let latency = |ns: Option<f64>| of(ns.map(|ns| ns / 1e3), Unit::Microseconds);
    let (device, score) = (file.device.as_ref(), file.score.map(|score| format!("{score:.2}")));
    let (waited, from_device) = (device.map(|d| d.waiting_ratio), device.map(|d| d.device_ratio));
    vec![
        ("calls", Quantity::count(file.calls).into()),
        ("bytes", Quantity::bytes(file.bytes).into()),
        ("median size", of(file.median_bytes(), Unit::Bytes)),
        ("score", Cell::known(score)),
        ("sequential", of(file.sequential_ratio, Unit::Ratio)),
        ("median seek", of(file.median_seek_bytes(), Unit::Bytes)),
        ("read again", of(file.reread_ratio, Unit::Ratio)),
        ("touched", Cell::known(file.working_set_bytes.map(Quantity::bytes))),
        ("times its size", of(file.amplification, Unit::Parameter)),
        ("median latency", latency(file.latency.map(|l| l.p50_ns))),
        ("p99 latency", latency(file.latency.map(|l| l.p99_ns))),
        ("waited for the device", of(waited, Unit::Ratio)),
        ("device bytes", of(from_device, Unit::Ratio)),
    ]
}

/// The files of two traces, with a row per figure.
pub(super) fn pairs(pairs: &[Pair<'_>]) -> Section {
    let table = |pair: &Pair<'_>| {
        let figures = |file: Option<&FilePattern>| file.map(values).unwrap_or_default();
        let (before, after) = (figures(pair.before), figures(pair.after));
        let value = |list: &[(&str, Cell)], place: usize| {
            let cell = list.get(place).map(|(_, cell)| cell.clone());
            cell.unwrap_or_default()
        };
        let names = values(pair.any()).into_iter().map(|(name, _)| name);
        let rows = names.enumerate().map(|(place, name)| {
            vec![
                Cell::new(name, Tone::Strong),
                value(&before, place),
                value(&after, place),
                Cell::known(change(pair, name)),
            ]
        });
        let names = vec![
            Cell::new("file", Tone::Strong),
            Cell::known(pair.before.map(|file| &file.name)),
            Cell::known(pair.after.map(|file| &file.name)),
            Cell::default(),
        ];
        let rows = std::iter::once(names).chain(rows);
        let rows = rows.filter(|row| !row[1].text.is_empty() || !row[2].text.is_empty());
        let name = pair.name().replace('`', "");
        let label = format!("{} of {name}", noun(pair.any().operation));
        let columns = vec![
            Column::text(label.clone()),
            Column::number("before", 255),
            Column::number("after", 255),
            Column::number("after ÷ before", 100),
        ];
        Table::new(label, columns, rows.collect())
    };
    Section {
        title: "Files".into(),
        lead: "The operations on each file, before and after.".into(),
        tables: pairs.iter().map(table).collect(),
        ..Section::default()
    }
}

/// The quotient of a figure, if it has one.
fn change(pair: &Pair<'_>, name: &str) -> Option<Quantity> {
    let of = |file: &FilePattern| match name {
        "calls" => Some(file.calls as f64),
        "bytes" => Some(file.bytes as f64),
        "median size" => file.median_bytes(),
        "touched" => file.working_set_bytes.map(|bytes| bytes as f64),
        "times its size" => file.amplification,
        "median latency" => file.latency.map(|latency| latency.p50_ns),
        "p99 latency" => file.latency.map(|latency| latency.p99_ns),
        _ => None,
    };
    let both = pair.before.and_then(of).zip(pair.after.and_then(of));
    let (before, after) = both.filter(|(before, _)| *before > 0.0)?;
    Some(Quantity::new(after / before, Unit::Parameter))
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
    let columns = vec![
        Column::text(""),
        Column::text("requests"),
        Column::number("number", 255),
        Column::number("bytes", 250),
        Column::number("median in the queue", 200),
        Column::number("p99 in the queue", 190),
        Column::number("median on the device", 240),
        Column::number("p99 on the device", 230),
        Column::number("by traced calls", 150),
    ];
    let mut rows = Vec::new();
    for (name, block) in blocks {
        let matched = block.matched_bytes as f64 / block.read_bytes as f64;
        let matched = (block.read_bytes > 0).then(|| Quantity::ratio(matched));
        let reads = (block.reads, block.read_bytes, &block.read_ns);
        let writes = (block.writes, block.written_bytes, &block.write_ns);
        rows.push(block_row(name, "reads", reads, &block.queue_ns, matched));
        rows.push(block_row(name, "writes", writes, &block.queue_ns, None));
    }
    rows.retain(|row| row[2].text != "0");
    (!rows.is_empty()).then(|| Section {
        title: "Block layer".into(),
        lead: format!(
            "Requests to the devices ({devices}) by all processes during the trace. Times in the queue cover reads and writes \
             together."
        ),
        tables: vec![Table::new("Block layer", columns, rows)],
        ..Section::default()
    })
}

fn block_row(
    name: &str,
    what: &str,
    (count, bytes, times): (u64, u64, &LogHistogram),
    queue: &LogHistogram,
    matched: Option<Quantity>,
) -> Vec<Cell> {
    let at = |times: &LogHistogram, ratio| {
        let ns = times.quantile(ratio);
        Cell::known(ns.map(|ns| Quantity::microseconds(ns / 1e3)))
    };
    vec![
        Cell::new(name, Tone::Strong),
        what.into(),
        Quantity::count(count).into(),
        Quantity::bytes(bytes).into(),
        at(queue, 0.5),
        at(queue, 0.99),
        at(times, 0.5),
        at(times, 0.99),
        Cell::known(matched),
    ]
}
