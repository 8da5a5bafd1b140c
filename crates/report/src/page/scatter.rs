//! Scatters: a value of each of very many things in their order, as data. They are drawn by `web/src/scatter.ts`, one panel
//! for each series on the same axes, and can be zoomed into down to single values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Smallest value that is told apart, in nanoseconds, and the decades above it: 100 ns to 100 s.
const LEAST_NS: f64 = 100.0;
const DECADES: f64 = 9.0;
/// Steps between them: each is 0.03 % more than the one before.
const STEPS: f64 = 65_534.0;

/// One or more series on the same axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScatterChart {
    /// Its name in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// What the horizontal axis counts.
    pub x_label: &'static str,
    /// What the vertical axis is; times on a logarithmic axis.
    pub y_label: &'static str,
    /// The series.
    pub panels: Vec<ScatterPanel>,
}

/// One series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScatterPanel {
    /// What it is.
    pub label: String,
    /// What it shows, for those who cannot see it.
    pub words: String,
    /// Distance of neighbouring values on the horizontal axis.
    pub step: f64,
    /// How many values follow, with those that are not there.
    pub count: usize,
    /// Base64 of little-endian u16: 0 where there is no value, else 1 and what [`level`] gives.
    pub values: String,
}

/// A time as a step between the smallest and the largest one.
pub fn level(ns: i64) -> u16 {
    let decades = (ns.max(1) as f64 / LEAST_NS).log10() / DECADES;
    1 + (decades.clamp(0.0, 1.0) * STEPS).round() as u16
}

/// A panel of times by number; with more than `most` values every group of neighbours is shown by its first one and its
/// largest one.
pub fn panel(label: String, words: String, times_ns: &[Option<i64>], most: usize) -> ScatterPanel {
    let pairs = most.div_euclid(2).max(1);
    let shown: (f64, Vec<Option<i64>>) = if times_ns.len() > most {
        let group = times_ns.len().div_ceil(pairs);
        let groups = times_ns.chunks(group);
        let values = groups.flat_map(|group| {
            let first = group.iter().flatten().next().copied();
            [first, group.iter().flatten().max().copied()]
        });
        (group as f64 / 2.0, values.collect())
    } else {
        (1.0, times_ns.to_vec())
    };
    let (step, values) = shown;
    let levels = values.iter().map(|time| time.map_or(0, level));
    let bytes: Vec<u8> = levels.flat_map(u16::to_le_bytes).collect();
    ScatterPanel {
        label,
        words,
        step,
        count: values.len(),
        values: STANDARD.encode(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(panel: &ScatterPanel) -> Vec<u16> {
        let bytes = STANDARD.decode(&panel.values).unwrap();
        let pairs = bytes.chunks_exact(2);
        pairs
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect()
    }

    #[test]
    fn scatter_stores_times_as_steps_and_omits_missing_ones() {
        let made = panel(
            String::new(),
            String::new(),
            &[Some(-5), Some(100), None, Some(1_000_000), Some(i64::MAX)],
            10,
        );
        let found = levels(&made);
        assert_eq!((found[0], found[1], found[2], found[4]), (1, 1, 0, 65_535));
        let back = 100.0 * 10f64.powf(f64::from(found[3] - 1) / STEPS * DECADES);
        assert!((back / 1e6 - 1.0).abs() < 0.001, "{back}");
    }

    #[test]
    fn scatter_keeps_the_largest_of_many_values() {
        let mut times = vec![Some(1000); 1000];
        times[777] = Some(1_000_000_000);
        let made = panel(String::new(), String::new(), &times, 100);
        assert!(made.count <= 100);
        assert_eq!(levels(&made).into_iter().max(), Some(level(1_000_000_000)));
        assert!((made.step * made.count as f64 - 1000.0).abs() < 21.0);
    }
}
