//! Pictures as counts in a grid of bounded size: its axes grow by doubling, so that neither the length of the
//! trace nor the size of the file must be known in advance.

use dyno_record::io_trace::log_histogram::LogHistogram;

/// Cells along the time axis; between half of them and all are used.
const TIME_CELLS: usize = 512;
/// Cells along the offset axis; between half of them and all are used.
const OFFSET_CELLS: usize = 256;
/// Bits of subdivision per power of two of the latency.
const LATENCY_PART_BITS: u8 = 2;
/// The shortest and longest distinguished latency, as powers of two of nanoseconds.
const LATENCY_POWERS: (u32, u32) = (8, 36);
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

    /// Start of a cell.
    pub fn start_of(&self, index: usize) -> f64 {
        self.origin as f64 + index as f64 * self.cell as f64
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
    fn new(x: Axis, y: Axis) -> Grid {
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

    fn add(&mut self, x: i64, y: i64) {
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

/// The pictures of one operation on one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pictures {
    /// Nanoseconds from the trace's time zero from left to right, bytes from the start of the file from bottom
    /// to top.
    pub offset_by_time: Grid,
    /// Bytes from the start of the file from left to right, and from bottom to top a latency scale with
    /// subdivided powers of two: [`Pictures::latency_of_row`].
    pub latency_by_offset: Grid,
}

impl Pictures {
    pub(super) fn new(start_ns: i64) -> Pictures {
        let offset = Axis { origin: 0, cell: FIRST_OFFSET_BYTES, cells: OFFSET_CELLS };
        let time = Axis { origin: start_ns, cell: FIRST_TIME_NS, cells: TIME_CELLS };
        let rows = (LATENCY_POWERS.1 - LATENCY_POWERS.0) << LATENCY_PART_BITS;
        let latency = Axis { origin: 0, cell: 1, cells: rows as usize };
        Pictures {
            offset_by_time: Grid::new(time, offset),
            latency_by_offset: Grid::new(offset, latency),
        }
    }

    pub(super) fn add(&mut self, start_ns: i64, offset: i64, latency_ns: u64) {
        self.offset_by_time.add(start_ns, offset);
        self.latency_by_offset.add(offset, latency_row(latency_ns));
    }

    /// The smallest latency of a row, in nanoseconds. The first row also contains shorter ones, and the last
    /// one longer ones.
    pub fn latency_of_row(row: usize) -> u64 {
        let first = LogHistogram::bucket_of(LATENCY_PART_BITS, 1 << LATENCY_POWERS.0);
        LogHistogram::lower_bound(LATENCY_PART_BITS, first + row)
    }
}

fn latency_row(latency_ns: u64) -> i64 {
    let longest = (1u64 << LATENCY_POWERS.1) - 1;
    let clamped = latency_ns.clamp(1 << LATENCY_POWERS.0, longest);
    let first = LogHistogram::bucket_of(LATENCY_PART_BITS, 1 << LATENCY_POWERS.0);
    (LogHistogram::bucket_of(LATENCY_PART_BITS, clamped) - first) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_and_stay_in_place_while_the_axes_grow() {
        let mut pictures = Pictures::new(1000);
        for step in 0..10_000i64 {
            pictures.add(1000 + step * 10_000_000, step * 1_000_000, 5000);
        }
        let grid = &pictures.offset_by_time;
        let (columns, rows) = grid.used();
        assert!(columns > TIME_CELLS / 2 && rows > OFFSET_CELLS / 2);
        let mut total = 0;
        for row in 0..rows {
            for column in 0..columns {
                let count = grid.count(column, row);
                total += count;
                if count > 0 {
                    // 100 bytes for each nanosecond/1000: the diagonal, up to a cell.
                    let bytes = (grid.x.start_of(column) - 1000.0) / 10.0;
                    let slack = (grid.x.cell / 10 + grid.y.cell) as f64;
                    assert!((bytes - grid.y.start_of(row)).abs() <= slack);
                }
            }
        }
        assert_eq!(total, 10_000);
    }

    #[test]
    fn latencies_are_in_the_rows_of_their_power_of_two() {
        assert_eq!(latency_row(0), 0);
        assert_eq!(latency_row(u64::MAX), 111);
        for latency in [300, 5_000, 123_456, 2_000_000_000] {
            let row = latency_row(latency) as usize;
            assert!(Pictures::latency_of_row(row) <= latency);
            assert!(Pictures::latency_of_row(row + 1) > latency);
        }
    }
}
