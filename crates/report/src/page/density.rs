//! Data of density charts: counts at each place of two axes. `web/src/density.ts` draws them; several panels can be side by
//! side with the same axes and colours.

use super::plot::Measure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Levels between the lightest and the darkest colour; 0 means an empty cell.
const LEVELS: f64 = 254.0;

/// An axis of a density chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DensityAxis {
    /// Label with its unit.
    pub label: &'static str,
    pub measure: Measure,
    pub start: f64,
    pub end: f64,
}

/// One panel of a density chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DensityPanel {
    /// Name, if there are several panels.
    pub label: String,
    /// Description for screen readers.
    pub words: String,
    /// Starts of the columns, and the end of the last one.
    pub x_edges: Edges,
    /// Starts of the rows from the bottom, and the end of the last one.
    pub y_edges: Edges,
    /// Levels of the cells, row by row from the bottom, as base64 of bytes: a level, or 0 followed by the number of empty
    /// cells from there on.
    pub cells: String,
}

/// Edges of columns or rows of equal width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Edges {
    pub start: f64,
    /// Width of each cell.
    pub step: f64,
    /// Number of cells.
    pub count: usize,
}

impl Edges {
    /// End of the last cell.
    pub fn end(&self) -> f64 {
        self.start + self.step * self.count as f64
    }
}

/// One or more density panels with the same axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DensityChart {
    /// Element name in the page.
    pub id: String,
    pub title: String,
    /// Description in one sentence.
    pub caption: String,
    /// The counted things, such as `reads`.
    pub counted: &'static str,
    pub x: DensityAxis,
    pub y: DensityAxis,
    /// The largest count of a cell, which gets the darkest colour. Colours follow the logarithm of the count.
    pub most: u32,
    pub panels: Vec<DensityPanel>,
}

/// Encodes cells for a page.
pub(crate) fn encode(counts: impl Iterator<Item = u32>, most: u32) -> String {
    let scale = LEVELS / f64::from(most.max(1)).ln_1p();
    let mut bytes = Vec::new();
    let mut empty: u8 = 0;
    for count in counts {
        if count == 0 {
            empty += 1;
            if empty == u8::MAX {
                bytes.extend([0, empty]);
                empty = 0;
            }
            continue;
        }
        if empty > 0 {
            bytes.extend([0, empty]);
            empty = 0;
        }
        let level = (f64::from(count).ln_1p() * scale).round().min(LEVELS);
        bytes.push(1 + level as u8);
    }
    if empty > 0 {
        bytes.extend([0, empty]);
    }
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_cells_are_counted_and_the_most_is_the_darkest() {
        let counts = std::iter::repeat_n(0, 300).chain([1, 1000, 0]);
        let bytes = STANDARD.decode(encode(counts, 1000)).unwrap();
        assert_eq!(bytes, [0, 255, 0, 45, 26, 255, 0, 1]);
    }

    #[test]
    fn edges_know_their_end() {
        assert_eq!(Edges { start: 1.0, step: 0.5, count: 4 }.end(), 3.0);
    }
}
