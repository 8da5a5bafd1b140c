//! Data of scatter charts: values of a very large number of things in order. `web/src/scatter.ts` draws them with one panel
//! per series on shared axes, and zooms down to single values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Smallest representable value in nanoseconds; the values span the decades from 100 ns to 100 s.
const LEAST_NS: f64 = 100.0;
const DECADES: f64 = 9.0;
/// Steps over these decades; each is 0.03 % more than the one before.
const STEPS: f64 = 65_534.0;

/// One or more series on shared axes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScatterChart {
    /// Element name in the page.
    pub id: String,
    pub title: String,
    /// Description in one sentence.
    pub caption: String,
    /// Label of the counted things.
    pub x_label: &'static str,
    /// Label of the values; times use a logarithmic axis.
    pub y_label: &'static str,
    pub panels: Vec<ScatterPanel>,
}

/// One series of a scatter chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScatterPanel {
    pub label: String,
    /// Description for screen readers.
    pub words: String,
    /// Distance of neighbouring values on the horizontal axis.
    pub step: f64,
    /// Number of values, including missing ones.
    pub count: usize,
    /// Base64 of little-endian u16: 0 for a missing value, otherwise 1 plus [`level`].
    pub values: String,
}

/// The step of a time between the smallest and the largest representable value.
pub fn level(ns: i64) -> u16 {
    let decades = (ns.max(1) as f64 / LEAST_NS).log10() / DECADES;
    1 + (decades.clamp(0.0, 1.0) * STEPS).round() as u16
}

/// A panel of times by number. With more than `most` values, the first and the largest value represent each group of
/// neighbours.
pub fn panel(label: String, words: String, times_ns: &[Option<i64>], most: usize) -> ScatterPanel {
    let pairs = most.div_euclid(2).max(1);
    let shown: (f64, Vec<Option<i64>>) = if times_ns.len() > most {
        let group = times_ns.len().div_ceil(pairs);
        let values = times_ns.chunks(group).flat_map(|group| {
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
    ScatterPanel { label, words, step, count: values.len(), values: STANDARD.encode(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(panel: &ScatterPanel) -> Vec<u16> {
        let bytes = STANDARD.decode(&panel.values).unwrap();
        let pairs = bytes.chunks_exact(2);
        pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
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
