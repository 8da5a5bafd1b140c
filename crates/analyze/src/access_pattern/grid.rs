//! Pictures as counts in a grid of bounded size: its axes grow by doubling, so that neither the length of the
//! trace nor the size of the file must be known in advance.

/// Cells along the time axis; between half of them and all are used.
const TIME_CELLS: usize = 512;
/// Cells along the offset axis; between half of them and all are used.
const OFFSET_CELLS: usize = 256;
/// Initial width of a cell in time.
const FIRST_TIME_NS: u64 = 1 << 17;
/// Initial width of a cell of offsets.
const FIRST_OFFSET_BYTES: u64 = 4096;

/// An axis of equal cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Start of the first cell.
    pub origin: i64,
    /// Width of a cell.
    pub cell: u64,
    pub cells: usize,
}

impl Axis {
    /// The cell of a value; values before the origin belong to the first one.
    fn index(&self, value: i64) -> usize {
        let from_origin = value.saturating_sub(self.origin).max(0) as u64;
        usize::try_from(from_origin / self.cell).unwrap_or(usize::MAX)
    }
}

/// Counts over two axes, row by row of `y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    counts: Vec<u32>,
}

impl Grid {
    /// A picture of one operation on one file: nanoseconds from the trace's time zero from left to right, bytes
    /// from the start of the file from bottom to top.
    pub(super) fn offsets_over_time(start_ns: i64) -> Grid {
        let x = Axis { origin: start_ns, cell: FIRST_TIME_NS, cells: TIME_CELLS };
        let y = Axis { origin: 0, cell: FIRST_OFFSET_BYTES, cells: OFFSET_CELLS };
        Grid { x, y, counts: vec![0; x.cells * y.cells] }
    }

    /// Counts in the cell of column `x` and row `y`.
    pub fn count(&self, x: usize, y: usize) -> u32 {
        self.counts[y * self.x.cells + x]
    }

    /// The smallest part from the origins that contains all counts: columns and rows.
    pub fn used(&self) -> (usize, usize) {
        let (mut columns, mut rows) = (0, 0);
        for (row, counts) in self.counts.chunks(self.x.cells).enumerate() {
            if let Some(last) = counts.iter().rposition(|&count| count > 0) {
                columns = columns.max(last + 1);
                rows = row + 1;
            }
        }
        (columns, rows)
    }

    pub(super) fn add(&mut self, x: i64, y: i64) {
        while self.x.index(x) >= self.x.cells {
            self.halve_columns();
        }
        while self.y.index(y) >= self.y.cells {
            self.halve_rows();
        }
        let place = self.y.index(y) * self.x.cells + self.x.index(x);
        self.counts[place] = self.counts[place].saturating_add(1);
    }

    fn halve_columns(&mut self) {
        self.x.cell = self.x.cell.saturating_mul(2);
        let half = self.x.cells / 2;
        for row in self.counts.chunks_mut(self.x.cells) {
            for column in 0..half {
                row[column] = row[2 * column].saturating_add(row[2 * column + 1]);
            }
            row[half..].fill(0);
        }
    }

    fn halve_rows(&mut self) {
        self.y.cell = self.y.cell.saturating_mul(2);
        let (columns, half) = (self.x.cells, self.y.cells / 2);
        for row in 0..half {
            for column in 0..columns {
                let lower = self.counts[2 * row * columns + column];
                let upper = self.counts[(2 * row + 1) * columns + column];
                self.counts[row * columns + column] = lower.saturating_add(upper);
            }
        }
        self.counts[half * columns..].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_and_stay_in_place_while_the_axes_grow() {
        let mut grid = Grid::offsets_over_time(1000);
        for step in 0..10_000i64 {
            grid.add(1000 + step * 10_000_000, step * 1_000_000);
        }
        let (columns, rows) = grid.used();
        assert!(columns > TIME_CELLS / 2 && rows > OFFSET_CELLS / 2);
        let mut total = 0;
        for row in 0..rows {
            for column in 0..columns {
                let count = grid.count(column, row);
                total += count;
                if count > 0 {
                    // 100 bytes for each nanosecond/1000: the diagonal, up to a cell.
                    let start =
                        |axis: Axis, index| axis.origin as f64 + index as f64 * axis.cell as f64;
                    let bytes = (start(grid.x, column) - 1000.0) / 10.0;
                    let slack = (grid.x.cell / 10 + grid.y.cell) as f64;
                    assert!((bytes - start(grid.y, row)).abs() <= slack);
                }
            }
        }
        assert_eq!(total, 10_000);
    }
}
