//! Density charts of a trace: offset over time.

use super::tables::noun;
use crate::page::density::{DensityAxis, DensityChart, DensityPanel, Edges, encode};
use crate::page::plot::Measure;
use crate::page::{Section, charts_of};
use dyno_analyze::access_pattern::{FilePattern, Grid};
use dyno_record::io_trace::event::Operation;
use dyno_record::quantity::Quantity;

const COLOURS: &str = "The stronger the colour, the more calls, by the logarithm of their number.";

/// Fewest calls with a known offset for a picture: a few dots are not a pattern.
const FEWEST_DRAWN: u64 = 16;

/// A grid to draw, with its file and the time that counts as 0.
pub(super) struct Drawn<'a> {
    label: &'a str,
    file: &'a FilePattern,
    grid: &'a Grid,
    zero_ns: i64,
}

/// Offset over time of the files with enough calls for a picture.
pub(super) fn of_files(files: &[&FilePattern]) -> Option<Section> {
    let worth = files.iter().filter(|file| file.placed_calls >= FEWEST_DRAWN);
    // The clock of the run, which the other charts use.
    let drawn = worth.filter_map(|file| Drawn::new("", file, 0));
    where_and_when(drawn.map(|one| offset_chart(&[one])).collect())
}

/// The section with pictures of offsets over time; absent without pictures.
pub(crate) fn where_and_when(charts: Vec<DensityChart>) -> Option<Section> {
    (!charts.is_empty()).then(|| Section {
        title: "Where and when".into(),
        lead: "A dot is a call: its place in the file from bottom to top, its time from left to right. A rising line is a file \
               read from start to end; a cloud is a file read at random."
            .into(),
        charts: charts_of(charts),
        ..Section::default()
    })
}

/// Offset over time of the files of several servers or builds, side by side on the same axes, each with its name and with the
/// time that counts as 0. `None` if no file has a picture.
pub(crate) fn offsets_beside(
    id: &str,
    files: &[(&str, &FilePattern, i64)],
) -> Option<DensityChart> {
    let worth = files.iter().filter(|(_, file, _)| file.placed_calls >= FEWEST_DRAWN);
    let drawn: Vec<Drawn<'_>> =
        worth.filter_map(|&(label, file, zero_ns)| Drawn::new(label, file, zero_ns)).collect();
    let chart = || DensityChart { id: format!("offset-{id}"), ..offset_chart(&drawn) };
    (!drawn.is_empty()).then(chart)
}

impl<'a> Drawn<'a> {
    fn new(label: &'a str, file: &'a FilePattern, zero_ns: i64) -> Option<Drawn<'a>> {
        Some(Drawn { label, file, grid: file.picture.as_deref()?, zero_ns })
    }
}

fn title(drawn: &[Drawn<'_>]) -> String {
    let mut names: Vec<String> = drawn.iter().map(|one| one.file.label()).collect();
    names.dedup();
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("{} of {}", capital(drawn[0].file.operation), names.join(", then "))
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
    let (file, most) = (drawn[0].file, drawn.iter().map(most).max().unwrap_or(0));
    let panels: Vec<DensityPanel> = drawn
        .iter()
        .map(|one| {
            let grid = one.grid;
            let (columns, rows) = grid.used();
            let first = first_column(grid, one.zero_ns).min(columns);
            let x_edges = Edges {
                start: match one.zero_ns {
                    0 => grid.x.origin as f64 * 1e-9,
                    // Within the width of a cell.
                    _ => 0.0,
                },
                step: grid.x.cell as f64 * 1e-9,
                count: columns - first,
            };
            let edges = (x_edges, bytes_edges(&grid.y, rows));
            panel(one, first, edges, most)
        })
        .collect();
    let start = panels.iter().map(|panel| panel.x_edges.start);
    let start = start.fold(f64::INFINITY, f64::min);
    DensityChart {
        // The number of a file is unique with its operation.
        id: format!("offset-1-{}-{}", file.file, file.operation.as_str()),
        title: title(drawn),
        caption: COLOURS.to_owned(),
        counted: noun(file.operation),
        x: DensityAxis {
            label: "time (s)",
            measure: Measure::Seconds,
            start,
            end: end(&panels, |panel| &panel.x_edges),
        },
        y: DensityAxis {
            label: "place in the file",
            measure: Measure::Bytes,
            start: 0.0,
            end: end(&panels, |panel| &panel.y_edges),
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
    Edges { start: axis.origin as f64, step: axis.cell as f64, count }
}

fn end(panels: &[DensityPanel], edges: impl Fn(&DensityPanel) -> &Edges) -> f64 {
    panels.iter().map(|panel| edges(panel).end()).fold(0.0, f64::max)
}

/// The largest count of a cell.
fn most(drawn: &Drawn<'_>) -> u32 {
    let (columns, rows) = drawn.grid.used();
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
    cells.map(|(column, row)| drawn.grid.count(column, row)).max().unwrap_or(0)
}

fn panel(
    one: &Drawn<'_>,
    first: usize,
    (x_edges, y_edges): (Edges, Edges),
    most: u32,
) -> DensityPanel {
    let (columns, rows) = (x_edges.count, y_edges.count);
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
    DensityPanel {
        label: one.label.to_owned(),
        words: words(one),
        cells: encode(cells.map(|(column, row)| one.grid.count(first + column, row)), most),
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
