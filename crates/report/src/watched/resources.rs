//! A table of resource use during the measured time, for reports without charts and for screen readers.

use super::lines::{self, Of};
use crate::page::Section;
use crate::page::table::{Cell, Column, Table, Tone};
use dyno_analyze::verdict::{Bench, TimeRange};
use dyno_record::metrics::MetricTable;
use dyno_record::names::{Metric, cache, cpu, disk, pressure, process};
use dyno_record::quantity::{Quantity, Unit};

/// Mean over time and largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Used {
    mean: f64,
    maximum: f64,
}

/// Format of a value.
type Write = fn(f64) -> String;

fn share(value: f64) -> String {
    Quantity::ratio(value).to_string()
}

fn cpus(value: f64) -> String {
    format!("{} CPUs", Quantity::new(value, Unit::Parameter))
}

fn per_second(value: f64) -> String {
    format!("{}/s", Quantity::new(value, Unit::Parameter))
}

/// Rows of a machine: label, kind of instance, summed metrics, format.
const OF_MACHINE: [(&str, Of, &[Metric], Write); 4] = [
    ("CPUs busy", Of::Machine, &[cpu::ALL_BUSY_RATIO], share),
    ("disk utilization", Of::DataDisk, &[disk::UTILIZATION_RATIO], share),
    (
        "disk operations",
        Of::DataDisk,
        &[disk::READ_PER_S, disk::WRITE_PER_S, disk::FLUSH_PER_S],
        per_second,
    ),
    ("I/O pressure", Of::Machine, &[pressure::IO_SOME_RATIO], share),
];

/// Rows of the servers' caches.
const OF_CACHE: [(&str, &[Metric]); 2] =
    [("cache used", &[cache::USED_RATIO]), ("cache dirty", &[cache::DIRTY_RATIO])];

/// The section; `None` if no metric was reported.
pub(super) fn section(bench: &Bench<'_>, measured: TimeRange) -> Option<Section> {
    let machines = lines::machines(bench);
    let mut rows = Vec::new();
    for table in &machines {
        let place = match machines.len() {
            1 => String::new(),
            _ => format!(" ({})", table.source),
        };
        rows.extend(machine_rows(bench, table, measured, &place));
    }
    for (label, metrics) in OF_CACHE {
        for server in lines::servers(bench, cache::GROUP) {
            let each = server
                .columns(metrics)
                .into_iter()
                .filter_map(|(table, values)| used(table, &values, measured));
            // Of many combined servers, the fullest one is the most informative.
            let fullest = each.max_by(|a, b| a.mean.total_cmp(&b.mean));
            let name = format!("{} {label}", server.label).trim_start().to_owned();
            rows.extend(fullest.map(|used| row(name, used, share)));
        }
    }
    let columns =
        vec![Column::text("resource"), Column::number("mean", 200), Column::number("maximum", 190)];
    let label = "Resources during the measured time";
    (!rows.is_empty()).then(|| Section {
        title: label.into(),
        lead: "Means over the measured time, and the highest reading.".to_owned(),
        tables: vec![Table::new(label, columns, rows)],
        ..Section::default()
    })
}

fn machine_rows(
    bench: &Bench<'_>,
    table: &MetricTable,
    measured: TimeRange,
    place: &str,
) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let mut add = |label: String, columns: Vec<(&MetricTable, Vec<f64>)>, write: Write| {
        let used = columns.first().and_then(|(table, values)| used(table, values, measured));
        rows.extend(used.map(|used| row(label, used, write)));
    };
    for (index, (label, of, metrics, write)) in OF_MACHINE.into_iter().enumerate() {
        for one in lines::on_machine(bench, table, of, measured) {
            add(format!("{label}{place}"), one.columns(metrics), write);
        }
        if index == 0 {
            for process in lines::on_machine(bench, table, Of::Process, measured) {
                let name = format!("CPU of {}{place}", process.label);
                add(name, process.columns(&[process::CPU_RATIO]), cpus);
            }
        }
    }
    rows
}

fn row(label: String, used: Used, write: Write) -> Vec<Cell> {
    vec![Cell::new(label, Tone::Strong), write(used.mean).into(), write(used.maximum).into()]
}

/// Mean and maximum of the rows with their middle in the time range; `None` without values.
fn used(table: &MetricTable, values: &[f64], time_range: TimeRange) -> Option<Used> {
    let (mut sum, mut weight, mut maximum) = (0.0, 0.0, f64::NEG_INFINITY);
    for (row, value) in values.iter().enumerate() {
        let length_s = table.duration_s[row];
        let middle_s = table.at_s[row] - length_s / 2.0;
        if value.is_finite() && (time_range.start_s..time_range.end_s).contains(&middle_s) {
            sum += value * length_s;
            weight += length_s;
            maximum = maximum.max(*value);
        }
    }
    (weight > 0.0).then(|| Used { mean: sum / weight, maximum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn means_are_weighted_by_time_and_cover_the_measured_part() {
        let table = MetricTable {
            source: "host".into(),
            at_s: vec![1.0, 2.0, 5.0, 6.0],
            duration_s: vec![1.0, 1.0, 3.0, 1.0],
            columns: BTreeMap::new(),
        };
        let time_range = TimeRange { start_s: 1.0, end_s: 5.0 };
        let found = used(&table, &[99.0, 1.0, 5.0, 77.0], time_range).unwrap();
        let expected = Used { mean: 4.0, maximum: 5.0 };
        assert_eq!(found, expected);
        assert_eq!(used(&table, &[9.0, f64::NAN, f64::NAN, 9.0], time_range), None);
    }
}
