//! Pictures of a trace in texts: offset over time in a few lines of characters.

use super::pairs::Pair;
use super::pictures::{Drawn, drawn, drawn_pairs};
use super::tables::noun;
use super::view::TracePair;
use crate::page::Sketch;
use dyno_analyze::access_pattern::{FilePattern, Grid};
use dyno_record::quantity::Quantity;

/// Size in characters without labels; with labels it fits into 80 columns.
const COLUMNS: usize = 60;
const ROWS: usize = 12;
/// Width of the labels on the left.
const LABELS: usize = 10;
/// Largest number of files with a picture in a text.
const MOST_FILES: usize = 3;
/// From an empty cell to the fullest one.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Pictures of the files with the most calls.
pub(super) fn sketches(files: &[&FilePattern]) -> Vec<Sketch> {
    let drawn = drawn(files).take(MOST_FILES);
    drawn.map(|one| sketch(&one, &Frame::of(&[&one]))).collect()
}

/// Pictures of two traces, one below the other, on the same axes.
pub(super) fn pair_sketches(pair: &TracePair<'_>, pairs: &[Pair<'_>]) -> Vec<Sketch> {
    let mut sketches = Vec::new();
    for both in drawn_pairs(pair, pairs).iter().take(MOST_FILES) {
        sketches.extend(framed(both));
    }
    sketches
}

/// Pictures below each other, on the same axes.
pub(super) fn framed(drawn: &[Drawn<'_>]) -> Vec<Sketch> {
    let frame = Frame::of(&drawn.iter().collect::<Vec<_>>());
    drawn.iter().map(|one| sketch(one, &frame)).collect()
}

/// The axes of one or more pictures: time relative to each zero, and offset.
struct Frame {
    start_ns: f64,
    end_ns: f64,
    end_bytes: f64,
}

impl Frame {
    fn of(drawn: &[&Drawn<'_>]) -> Frame {
        let mut frame =
            Frame { start_ns: f64::INFINITY, end_ns: f64::NEG_INFINITY, end_bytes: 1.0 };
        for one in drawn {
            let grid = &one.pictures.offset_by_time;
            let (columns, rows) = grid.used();
            let zero_ns = one.zero_ns as f64;
            let start_ns = match one.zero_ns {
                0 => grid.x.start_of(0),
                // No call comes before it.
                _ => (grid.x.start_of(0) - zero_ns).max(0.0),
            };
            frame.start_ns = frame.start_ns.min(start_ns);
            frame.end_ns = frame.end_ns.max(grid.x.start_of(columns) - zero_ns);
            frame.end_bytes = frame.end_bytes.max(grid.y.start_of(rows));
        }
        frame
    }

    /// The character that contains the middle of a cell.
    fn place(&self, grid: &Grid, zero_ns: i64, column: usize, row: usize) -> (usize, usize) {
        let at_ns = grid.x.start_of(column) + grid.x.cell as f64 / 2.0 - zero_ns as f64;
        let at_bytes = grid.y.start_of(row) + grid.y.cell as f64 / 2.0;
        let across = (at_ns - self.start_ns) / (self.end_ns - self.start_ns);
        let up = at_bytes / self.end_bytes;
        let place = |share: f64, cells: usize| ((share * cells as f64) as usize).min(cells - 1);
        (place(across, COLUMNS), place(up, ROWS))
    }
}

fn sketch(one: &Drawn<'_>, frame: &Frame) -> Sketch {
    let grid = &one.pictures.offset_by_time;
    let (columns, rows) = grid.used();
    let mut counts = [[0u64; COLUMNS]; ROWS];
    for row in 0..rows {
        for column in 0..columns {
            let (x, y) = frame.place(grid, one.zero_ns, column, row);
            counts[y][x] += u64::from(grid.count(column, row));
        }
    }
    let most = counts.iter().flatten().copied().max().unwrap_or(0);
    let mut lines = Vec::new();
    for (row, counts) in counts.iter().enumerate().rev() {
        let label = match row {
            row if row == ROWS - 1 => Quantity::bytes(frame.end_bytes as u64).to_string(),
            0 => "0 B".to_owned(),
            _ => String::new(),
        };
        let shades: String = counts.iter().map(|&count| shade(count, most)).collect();
        lines.push(format!("{label:>LABELS$} │{shades}│"));
    }
    let at = |ns: f64| Quantity::seconds(ns * 1e-9).to_string();
    let (start, end) = (at(frame.start_ns), at(frame.end_ns));
    let room = COLUMNS.saturating_sub(start.chars().count());
    lines.push(format!("{:LABELS$}  {start}{end:>room$}", ""));
    let label = match one.label {
        "" => String::new(),
        label => format!("{label}: "),
    };
    Sketch {
        title: format!(
            "{label}{} of {} by place and time",
            noun(one.file.operation),
            one.file.label()
        ),
        lines,
    }
}

fn shade(count: u64, most: u64) -> char {
    if count == 0 {
        return SHADES[0];
    }
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    SHADES[((share * 4.0).ceil() as usize).clamp(1, 4)]
}
