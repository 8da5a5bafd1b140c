//! Density charts of a trace: offset over time, and latency over offset.

use super::pairs::Pair;
use super::tables::noun;
use super::view::{TracePair, TraceView};
use crate::page::density::{DensityAxis, DensityChart, DensityPanel, Edges, encode};
use crate::page::plot::Measure;
use crate::page::{Section, charts_of};
use dyno_analyze::access_pattern::{FilePattern, Grid, Pictures};
use dyno_record::io_trace::event::Operation;
use dyno_record::quantity::Quantity;

const COLOURS: &str = "The stronger the colour, the more calls, by the logarithm of their number.";

/// Rows above the largest latency: a power of two.
const LATENCY_ROOM: usize = 4;

/// Fewest calls with a known offset for a picture: a few dots are not a pattern.
const FEWEST_DRAWN: u64 = 16;

/// A grid to draw, with its file and the time that counts as 0.
pub(super) struct Drawn<'a> {
    label: &'a str,
    file: &'a FilePattern,
    pictures: &'a Pictures,
    zero_ns: i64,
}

/// Offset over time, with the time from the first call if there are two traces.
pub(super) fn offsets(drawn: &[Vec<Drawn<'_>>]) -> Option<Section> {
    section(
        "Where and when",
        "A dot is a call: its place in the file from bottom to top, its time from left to right. A rising line is a file read \
         from start to end; a cloud is a file read at random.",
        drawn.iter().map(|sides| offset_chart(sides)).collect(),
    )
}

/// Offset over time for one file of each server, side by side on the same axes, starting at the first call of all. `None` if
/// no file has a picture.
pub(super) fn offsets_of_servers(
    id: &str,
    servers: &[(&str, &FilePattern)],
    zero_ns: i64,
) -> Option<DensityChart> {
    let drawn: Vec<Drawn<'_>> = servers
        .iter()
        .filter(|(_, file)| file.placed_calls >= FEWEST_DRAWN)
        .filter_map(|&(label, file)| {
            Some(Drawn { label, file, pictures: file.pictures.as_deref()?, zero_ns })
        })
        .collect();
    let chart = || DensityChart { id: format!("offset-{id}"), ..offset_chart(&drawn) };
    (!drawn.is_empty()).then(chart)
}

/// Latency over offset.
pub(super) fn latencies(drawn: &[Vec<Drawn<'_>>]) -> Option<Section> {
    section(
        "How long, by place",
        "A dot is a call: its place in the file from left to right, its duration from bottom to top.",
        drawn.iter().map(|sides| latency_chart(sides)).collect(),
    )
}

fn section(title: &'static str, lead: &str, densities: Vec<DensityChart>) -> Option<Section> {
    (!densities.is_empty()).then(|| Section {
        title: title.into(),
        lead: lead.to_owned(),
        charts: charts_of(densities),
        ..Section::default()
    })
}

/// The files with enough calls for a picture, each alone.
pub(super) fn drawn<'a>(files: &[&'a FilePattern]) -> Vec<Vec<Drawn<'a>>> {
    let worth = files.iter().filter(|file| file.placed_calls >= FEWEST_DRAWN);
    let drawn = worth.filter_map(|file| {
        let pictures = file.pictures.as_deref()?;
        // The clock of the run, which the other charts use.
        Some(vec![Drawn { label: "", file, pictures, zero_ns: 0 }])
    });
    drawn.collect()
}

/// The files of two traces, side by side. Each begins at its own first call.
pub(super) fn drawn_pairs<'a>(pair: &TracePair<'_>, pairs: &[Pair<'a>]) -> Vec<Vec<Drawn<'a>>> {
    let first = |view: &TraceView<'_>| view.patterns.first_ns.unwrap_or(0);
    let zeros = [first(&pair.before), first(&pair.after)];
    let drawn = |pair: &Pair<'a>| {
        let drawn: Vec<Drawn<'a>> = pair
            .sides()
            .into_iter()
            .zip(zeros)
            .filter_map(|((label, file), zero_ns)| {
                let file = file?;
                Some(Drawn { label, file, pictures: file.pictures.as_deref()?, zero_ns })
            })
            .collect();
        let is_worth = |one: &Drawn<'_>| one.file.placed_calls >= FEWEST_DRAWN;
        drawn.iter().any(is_worth).then_some(drawn)
    };
    pairs.iter().filter_map(drawn).collect()
}

/// The name of a chart in the page: the file's number is unique with its operation.
fn id(kind: &str, drawn: &[Drawn<'_>]) -> String {
    let file = drawn[0].file;
    format!("{kind}-{}-{}-{}", drawn.len(), file.file, file.operation.as_str())
}

fn title(drawn: &[Drawn<'_>], of: &str) -> String {
    let mut names: Vec<String> = drawn.iter().map(|one| one.file.label()).collect();
    names.dedup();
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{of} of {}", names.join(", then "))
}

fn capital(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "Reads",
        Operation::Write => "Writes",
        Operation::Sync => "Syncs",
        Operation::Fault => "Page faults",
    }
}

fn offset_chart(drawn: &[Drawn<'_>]) -> DensityChart {
    let most = most(drawn, |pictures| &pictures.offset_by_time);
    let panels: Vec<DensityPanel> = drawn
        .iter()
        .map(|one| {
            let grid = &one.pictures.offset_by_time;
            let (columns, rows) = grid.used();
            let first = first_column(grid, one.zero_ns).min(columns);
            let x_edges = Edges::Even {
                start: match one.zero_ns {
                    0 => grid.x.origin as f64 * 1e-9,
                    // Within the width of a cell.
                    _ => 0.0,
                },
                step: grid.x.cell as f64 * 1e-9,
                count: columns - first,
            };
            let edges = (x_edges, bytes_edges(&grid.y, rows));
            panel(one, grid, first, edges, most)
        })
        .collect();
    let start = panels.iter().map(|panel| start(&panel.x_edges));
    let start = start.fold(f64::INFINITY, f64::min);
    DensityChart {
        id: id("offset", drawn),
        title: title(drawn, capital(drawn[0].file.operation)),
        caption: COLOURS.to_owned(),
        counted: noun(drawn[0].file.operation),
        x: DensityAxis {
            label: "time (s)",
            measure: Measure::Seconds,
            start,
            end: end(&panels, |panel| &panel.x_edges),
            is_logarithmic: false,
        },
        y: DensityAxis {
            label: "place in the file",
            measure: Measure::Bytes,
            start: 0.0,
            end: end(&panels, |panel| &panel.y_edges),
            is_logarithmic: false,
        },
        most,
        panels,
    }
}

fn latency_chart(drawn: &[Drawn<'_>]) -> DensityChart {
    let most = most(drawn, |pictures| &pictures.latency_by_offset);
    let us_of_row = |row| Pictures::latency_of_row(row) as f64 / 1e3;
    let rows_of = |one: &Drawn<'_>| {
        let grid = &one.pictures.latency_by_offset;
        let (columns, rows) = grid.used();
        let has_calls = |row: &usize| (0..columns).any(|column| grid.count(column, *row) > 0);
        ((0..rows).find(has_calls).unwrap_or(0), rows)
    };
    let first = drawn.iter().map(|one| rows_of(one).0).min().unwrap_or(0);
    let last = drawn.iter().map(|one| rows_of(one).1).max().unwrap_or(1);
    // Space around the values, without which a single latency would fill the picture.
    let (first, last) = (first.saturating_sub(LATENCY_ROOM), last + LATENCY_ROOM);
    let panels: Vec<DensityPanel> = drawn
        .iter()
        .map(|one| {
            let grid = &one.pictures.latency_by_offset;
            let (columns, rows) = grid.used();
            let listed = Edges::Listed((0..=rows).map(us_of_row).collect());
            panel(one, grid, 0, (bytes_edges(&grid.x, columns), listed), most)
        })
        .collect();
    DensityChart {
        id: id("latency", drawn),
        title: title(drawn, &format!("{} by duration", capital(drawn[0].file.operation))),
        caption: COLOURS.to_owned(),
        counted: noun(drawn[0].file.operation),
        x: DensityAxis {
            label: "place in the file",
            measure: Measure::Bytes,
            start: 0.0,
            end: end(&panels, |panel| &panel.x_edges),
            is_logarithmic: false,
        },
        y: DensityAxis {
            label: "latency",
            measure: Measure::Time,
            start: us_of_row(first),
            end: us_of_row(last),
            is_logarithmic: true,
        },
        most,
        panels,
    }
}

/// The column of the instant that counts as 0; there are no calls before it.
fn first_column(grid: &Grid, zero_ns: i64) -> usize {
    match zero_ns {
        0 => 0,
        zero_ns => {
            let before = zero_ns.saturating_sub(grid.x.origin).max(0).unsigned_abs();
            usize::try_from(before / grid.x.cell).unwrap_or(usize::MAX)
        }
    }
}

fn bytes_edges(axis: &dyno_analyze::access_pattern::Axis, count: usize) -> Edges {
    Edges::Even { start: axis.origin as f64, step: axis.cell as f64, count }
}

fn start(edges: &Edges) -> f64 {
    match edges {
        Edges::Even { start, .. } => *start,
        Edges::Listed(edges) => edges.first().copied().unwrap_or(0.0),
    }
}

fn end(panels: &[DensityPanel], edges: impl Fn(&DensityPanel) -> &Edges) -> f64 {
    panels.iter().map(|panel| edges(panel).end()).fold(0.0, f64::max)
}

/// The largest count of a cell, over all pictures of a chart.
fn most<'a>(drawn: &[Drawn<'a>], grid: impl Fn(&'a Pictures) -> &'a Grid) -> u32 {
    let counts = drawn.iter().map(|one| {
        let grid = grid(one.pictures);
        let (columns, rows) = grid.used();
        let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
        cells.map(|(column, row)| grid.count(column, row)).max().unwrap_or(0)
    });
    counts.max().unwrap_or(0)
}

fn panel(
    one: &Drawn<'_>,
    grid: &Grid,
    first: usize,
    (x_edges, y_edges): (Edges, Edges),
    most: u32,
) -> DensityPanel {
    let (columns, rows) = (x_edges.count(), y_edges.count());
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
    DensityPanel {
        label: one.label.to_owned(),
        words: words(one),
        cells: encode(cells.map(|(column, row)| grid.count(first + column, row)), most),
        x_edges,
        y_edges,
    }
}

/// Description of a picture for screen readers.
fn words(one: &Drawn<'_>) -> String {
    let file = one.file;
    let mut words = format!(
        "{} {} of {}",
        Quantity::count(file.placed_calls),
        noun(file.operation),
        file.label()
    );
    if let Some(score) = file.score {
        words += &format!(", score {score:.2}");
    }
    if !one.label.is_empty() {
        words = format!("{}: {words}", one.label);
    }
    words
}
