//! Maps values of sources to the points of the other charts, so that all share one axis.

use crate::page::time::TimeSeries;
use crate::rounding::rounded;
use dyno_record::metrics::MetricTable;

/// Digits of a value: more than a curve can show.
const DIGITS: i32 = 3;
/// Smallest share of a point's time that a row must cover to represent it, if the point has no row of its own.
const LEAST_OVERLAP: f64 = 0.5;

/// The points in time of the charts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid<'a> {
    start_s: &'a [f64],
    end_s: &'a [f64],
}

impl<'a> Grid<'a> {
    /// The points of the load charts. Points without a length separate phases.
    pub(super) fn new(time: &'a TimeSeries) -> Grid<'a> {
        Grid { start_s: &time.start_s, end_s: &time.end_s }
    }

    /// Start and end of each point.
    pub(super) fn points(self) -> impl Iterator<Item = (f64, f64)> + 'a {
        let ends = self.end_s.iter().copied();
        self.start_s.iter().copied().zip(ends)
    }

    /// One value per point from one value per row: the mean of the rows with their middle in the point, else the row that
    /// covers most of it.
    pub(super) fn resample(self, table: &MetricTable, values: &[f64]) -> Vec<Option<f64>> {
        let rows = Rows { table, values };
        self.points()
            .map(|(start_s, end_s)| {
                let value = (end_s > start_s).then(|| rows.value(start_s, end_s))??;
                Some(rounded(value, DIGITS))
            })
            .collect()
    }
}

/// Rows of a table with one value each.
struct Rows<'a> {
    table: &'a MetricTable,
    values: &'a [f64],
}

impl Rows<'_> {
    fn start_s(&self, row: usize) -> f64 {
        self.table.at_s[row] - self.table.duration_s[row]
    }

    /// The first row with its middle at or after this time.
    fn first_from(&self, time_s: f64) -> usize {
        let table = self.table;
        let ends = &table.at_s;
        // Rows are short compared with the run, so the first guess is nearly right.
        let mut row = ends.partition_point(|end_s| *end_s < time_s);
        while row < ends.len() && ends[row] - table.duration_s[row] / 2.0 < time_s {
            row += 1;
        }
        row
    }

    fn value(&self, start_s: f64, end_s: f64) -> Option<f64> {
        let (first, next) = (self.first_from(start_s), self.first_from(end_s));
        if first < next {
            return self.mean(first..next);
        }
        let neighbours = [first.checked_sub(1), Some(first)];
        let neighbours = neighbours.into_iter().flatten().filter(|row| *row < self.values.len());
        let overlap = |row: usize| self.table.at_s[row].min(end_s) - self.start_s(row).max(start_s);
        let best = neighbours.max_by(|a, b| overlap(*a).total_cmp(&overlap(*b)))?;
        let covers = overlap(best) >= LEAST_OVERLAP * (end_s - start_s);
        Some(self.values[best]).filter(|value| covers && value.is_finite())
    }

    /// Mean over time. A first reading covers no time, and counts only if it is the only one.
    fn mean(&self, rows: std::ops::Range<usize>) -> Option<f64> {
        let reported = rows.filter(|row| self.values[*row].is_finite());
        let (sum, weight) = reported.fold((0.0, 0.0), |(sum, weight), row| {
            let length_s = self.table.duration_s[row].max(1e-9);
            (sum + self.values[row] * length_s, weight + length_s)
        });
        (weight > 0.0).then(|| sum / weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Rows of `length_s` that end at these times.
    fn table(length_s: f64, at_s: Vec<f64>) -> MetricTable {
        MetricTable {
            source: "host".into(),
            duration_s: vec![length_s; at_s.len()],
            at_s,
            columns: BTreeMap::new(),
        }
    }

    fn time(points: &[(f64, f64)]) -> TimeSeries {
        TimeSeries {
            start_s: points.iter().map(|point| point.0).collect(),
            end_s: points.iter().map(|point| point.1).collect(),
            ..TimeSeries::default()
        }
    }

    #[test]
    fn grid_keeps_values_when_windows_start_at_other_times() {
        let time = time(&[(0.0, 1.0), (1.0, 2.0), (2.0, 2.0), (2.0, 3.0), (3.0, 4.0)]);
        let rows = table(1.0, vec![0.9, 1.9, 2.9]);
        let values = Grid::new(&time).resample(&rows, &[1.0, 5000.0, 3.0]);
        assert_eq!(values, [Some(1.0), Some(5000.0), None, Some(3.0), None]);
    }

    #[test]
    fn grid_averages_several_rows_and_repeats_a_long_one() {
        let time = time(&[(0.0, 2.0), (2.0, 4.0)]);
        let sub_second = table(0.5, (1..=8).map(|row| f64::from(row) / 2.0).collect());
        let values: Vec<f64> = (1..=8).map(f64::from).collect();
        let means = Grid::new(&time).resample(&sub_second, &values);
        assert_eq!(means, [Some(2.5), Some(6.5)]);
        let coarse = table(10.0, vec![10.0]);
        let same = Grid::new(&time).resample(&coarse, &[7.0]);
        assert_eq!(same, [Some(7.0), Some(7.0)]);
    }

    #[test]
    fn grid_has_a_gap_for_missing_values() {
        let time = time(&[(0.0, 1.0), (1.0, 2.0)]);
        let rows = table(1.0, vec![1.0, 2.0]);
        let values = Grid::new(&time).resample(&rows, &[f64::NAN, 2.0]);
        assert_eq!(values, [None, Some(2.0)]);
    }
}
