//! Densities: how often something happened at each place of two axes, as data. They are drawn by
//! `web/src/density.ts`. Several of them can stand side by side, on the same axes and in the same colours.

use super::plot::Measure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Levels between the lightest and the darkest colour; 0 is left for empty cells.
const LEVELS: f64 = 254.0;

/// An axis of a density.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DensityAxis {
    /// What it is, with its unit.
    pub label: &'static str,
    /// What its numbers are.
    pub measure: Measure,
    /// Where it begins.
    pub start: f64,
    /// Where it ends.
    pub end: f64,
    /// Whether it is logarithmic.
    pub is_logarithmic: bool,
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DensityPanel {
    /// What it is, where there are several.
    pub label: String,
    /// What it shows, for those who cannot see it.
    pub words: String,
    /// Where its columns begin and, last, where the last one ends.
    pub x_edges: Edges,
    /// Where its rows begin, from the bottom, and where the last one ends.
    pub y_edges: Edges,
    /// Levels of the cells, row by row from the bottom, as base64 of bytes: a level, or 0 and how many
    /// cells are empty from there on.
    pub cells: String,
}

/// Ends of columns or rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Edges {
    /// Cells of one width.
    Even {
        /// Where the first one begins.
        start: f64,
        /// How wide each is.
        step: f64,
        /// How many there are.
        count: usize,
    },
    /// Where each one begins, and where the last one ends.
    Listed(Vec<f64>),
}

impl Edges {
    /// How many cells there are.
    pub fn count(&self) -> usize {
        match self {
            Edges::Even { count, .. } => *count,
            Edges::Listed(edges) => edges.len().saturating_sub(1),
        }
    }

    /// Where the last one ends.
    pub fn end(&self) -> f64 {
        match self {
            Edges::Even { start, step, count } => start + step * *count as f64,
            Edges::Listed(edges) => edges.last().copied().unwrap_or(0.0),
        }
    }
}

/// One or more pictures on the same axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DensityChart {
    /// Its name in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// What is counted, such as `reads`.
    pub counted: &'static str,
    /// The horizontal axis.
    pub x: DensityAxis,
    /// The vertical axis.
    pub y: DensityAxis,
    /// The largest count of a cell: the darkest colour. Colours go by the logarithm of the count.
    pub most: u32,
    /// The pictures.
    pub panels: Vec<DensityPanel>,
}

/// Cells as they stand in a page.
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
    fn edges_know_their_number_and_their_end() {
        let even = Edges::Even {
            start: 1.0,
            step: 0.5,
            count: 4,
        };
        assert_eq!((even.count(), even.end()), (4, 3.0));
        let listed = Edges::Listed(vec![1.0, 2.0, 4.0]);
        assert_eq!((listed.count(), listed.end()), (2, 4.0));
    }
}
