//! Finds the series behind a curve: metrics of a machine, its data disk, network, processes, or the servers.

use super::grid::Grid;
use dyno_analyze::verdict::{Bench, TimeRange, united};
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::SourceKind;
use dyno_record::names::{CLIENT, Metric, checkpoint, cpu, network, process};

/// Largest number of servers and machines that are shown separately; more are combined or left out.
pub(super) const MOST_APART: usize = 4;

/// The kind of thing that a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The machine; the name of the metric is complete.
    Machine,
    /// The disk with the data.
    DataDisk,
    /// The network interface with the most traffic.
    Interface,
    /// The processes of servers and client.
    Process,
    /// A server's own metrics.
    Server,
}

/// How values of several servers are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// For amounts.
    Sum,
    /// For shares and times.
    Mean,
}

/// One thing that a metric describes, or several combined.
#[derive(Clone, Debug)]
pub(super) struct Instance<'a> {
    /// Label in the legend; empty if there is only one instance.
    pub(super) label: String,
    /// Table and instance name of each part.
    parts: Vec<(&'a MetricTable, String)>,
}

/// A metric of an instance: one value per row, with one table for each part.
type Column<'a> = (&'a MetricTable, Vec<f64>);

impl<'a> Instance<'a> {
    fn of(table: &'a MetricTable, name: impl Into<String>, label: impl Into<String>) -> Self {
        Instance { label: label.into(), parts: vec![(table, name.into())] }
    }

    /// The sum of the metrics for each part; empty if none was reported.
    pub(super) fn columns(&self, metrics: &[Metric]) -> Vec<Column<'a>> {
        self.parts
            .iter()
            .filter_map(|(table, name)| Some((*table, added(table, metrics, name)?)))
            .collect()
    }

    /// The sum of the metrics at the points of the charts, over all parts.
    pub(super) fn curve(
        &self,
        metrics: &[Metric],
        grid: Grid<'_>,
        how: Together,
    ) -> Vec<Option<f64>> {
        let parts =
            self.columns(metrics).into_iter().map(|(table, values)| grid.resample(table, &values));
        together(&parts.collect::<Vec<_>>(), how)
    }

    /// The share of each point's time in which a checkpoint ran.
    pub(super) fn checkpoints(&self, grid: Grid<'_>) -> Vec<Option<f64>> {
        let parts = self.parts.iter();
        let parts = parts.filter_map(|(table, name)| checkpoint_shares(table, name, grid));
        together(&parts.collect::<Vec<_>>(), Together::Mean)
    }
}

/// The row-wise sum of the metrics that were reported.
fn added(table: &MetricTable, metrics: &[Metric], instance: &str) -> Option<Vec<f64>> {
    let columns: Vec<&[f64]> =
        metrics.iter().filter_map(|metric| table.column(&metric.of(instance))).collect();
    let row = |row: usize| {
        let reported = columns.iter().map(|column| column[row]);
        let reported = reported.filter(|value| value.is_finite());
        reported.reduce(|sum, value| sum + value).unwrap_or(f64::NAN)
    };
    (!columns.is_empty()).then(|| (0..table.at_s.len()).map(row).collect())
}

/// The point-wise sum or mean over the parts that reported a value.
fn together(parts: &[Vec<Option<f64>>], how: Together) -> Vec<Option<f64>> {
    let points = parts.iter().map(Vec::len).max().unwrap_or(0);
    (0..points)
        .map(|point| {
            let reported: Vec<f64> = parts.iter().filter_map(|part| part[point]).collect();
            let sum = reported.iter().copied().reduce(|sum, value| sum + value)?;
            Some(match how {
                Together::Sum => sum,
                Together::Mean => sum / reported.len() as f64,
            })
        })
        .collect()
}

/// Checkpoints are reported at their end, with their length, and while they run.
fn checkpoint_shares(
    table: &MetricTable,
    instance: &str,
    grid: Grid<'_>,
) -> Option<Vec<Option<f64>>> {
    let column = |metric: Metric| added(table, &[metric], instance);
    let ended = column(checkpoint::BUSY_RATIO);
    let running = column(checkpoint::RUNNING_COUNT);
    if ended.is_none() && running.is_none() {
        return None;
    }
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (row, (at_s, length_s)) in table.at_s.iter().zip(&table.duration_s).enumerate() {
        let of_row = |column: &Option<Vec<f64>>| column.as_ref().map_or(0.0, |column| column[row]);
        if of_row(&ended) > 0.0 {
            spans.push((at_s - of_row(&ended) * length_s, *at_s));
        }
        // At the time of the reading it runs; its earlier time is reported when it ends.
        if of_row(&running) > 0.0 {
            spans.push((at_s - length_s / 2.0, at_s + length_s / 2.0));
        }
    }
    let spans = united(spans);
    let share = |(start_s, end_s): (f64, f64)| {
        let overlaps = spans.iter().map(|span| (span.1.min(end_s) - span.0.max(start_s)).max(0.0));
        let share = overlaps.sum::<f64>() / (end_s - start_s);
        (end_s > start_s).then(|| (share * 1e3).round() / 1e3)
    };
    Some(grid.points().map(share).collect())
}

/// Machines of servers, and the machine of the client if it is another one. For a fleet it is the busiest client machine,
/// as only that one may be saturated.
pub(super) fn machines<'a>(bench: &Bench<'a>) -> Vec<&'a MetricTable> {
    let mut machines: Vec<&MetricTable> = bench.server_hosts().take(MOST_APART).collect();
    let tables = || bench.tables.iter();
    let is_of = |table: &MetricTable, kind: SourceKind| {
        bench.document.sources.iter().any(|source| {
            source.name == table.source
                && source.kind == kind
                && !(source.of_server && kind == SourceKind::Agent)
        })
    };
    let of_fleet = tables().filter(|table| is_of(table, SourceKind::Agent));
    let client = of_fleet
        .max_by(|a, b| busy_ratio(a).total_cmp(&busy_ratio(b)))
        .or_else(|| tables().find(|table| is_of(table, SourceKind::Host)));
    if let Some(client) = client.filter(|table| !is_among(&machines, table)) {
        machines.push(client);
    }
    machines
}

/// Mean CPU utilization of a machine over its readings; 0 without readings.
fn busy_ratio(table: &MetricTable) -> f64 {
    let column = table.column(&cpu::ALL_BUSY_RATIO.id());
    let known = column.into_iter().flatten().filter(|value| value.is_finite());
    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Whether `tables` contains the same table.
fn is_among(tables: &[&MetricTable], table: &MetricTable) -> bool {
    tables.iter().any(|one| one.source == table.source)
}

/// Instances of a metric on a machine.
pub(super) fn on_machine<'a>(
    bench: &Bench<'a>,
    table: &'a MetricTable,
    of: Of,
    measured: TimeRange,
) -> Vec<Instance<'a>> {
    match of {
        Of::Machine => vec![Instance::of(table, "", "")],
        Of::DataDisk => {
            let device = data_device(bench, table, measured);
            device.map(|device| Instance::of(table, device, "")).into_iter().collect()
        }
        Of::Interface => {
            let interface = busiest_interface(table);
            interface.map(|name| Instance::of(table, name, "")).into_iter().collect()
        }
        Of::Process => processes(table),
        Of::Server => Vec::new(),
    }
}

/// The disk that holds the data of the servers on a machine.
pub(super) fn data_device(
    bench: &Bench<'_>,
    table: &MetricTable,
    measured: TimeRange,
) -> Option<String> {
    let alone = Bench { tables: std::slice::from_ref(table), ..*bench };
    alone.data_device(measured).map(|(_, device)| device)
}

/// The network interface with the most traffic.
pub(super) fn busiest_interface(table: &MetricTable) -> Option<&str> {
    let bytes = |name: &&str| {
        let metrics = [network::RECEIVED_BYTES_PER_S, network::SENT_BYTES_PER_S];
        let values = added(table, &metrics, name).unwrap_or_default();
        let reported = values.into_iter().filter(|value| value.is_finite());
        reported.sum::<f64>()
    };
    table.instances(network::GROUP).into_iter().max_by(|a, b| bytes(a).total_cmp(&bytes(b)))
}

/// The servers on a machine, combined if there are many, and the client.
fn processes(table: &MetricTable) -> Vec<Instance<'_>> {
    let (clients, servers): (Vec<&str>, Vec<&str>) =
        table.instances(process::GROUP).into_iter().partition(|name| *name == CLIENT);
    let one = |name: &str| Instance::of(table, name, name);
    let servers = servers.into_iter().map(one).collect();
    let mut found = few(servers);
    found.extend(clients.into_iter().map(one));
    found
}

/// All servers that report metrics of a group.
pub(super) fn servers<'a>(bench: &Bench<'a>, group: &str) -> Vec<Instance<'a>> {
    let all = bench.tables.iter().flat_map(|table| {
        table.instances(group).into_iter().map(move |name| Instance::of(table, name, name))
    });
    let mut found = few(all.collect());
    if let [only] = found.as_mut_slice()
        && only.parts.len() == 1
    {
        only.label = String::new();
    }
    found
}

/// Combines the instances if a chart cannot show them all.
fn few(instances: Vec<Instance<'_>>) -> Vec<Instance<'_>> {
    if instances.len() <= MOST_APART {
        return instances;
    }
    let label = format!("{} servers", instances.len());
    let parts = instances.into_iter().flat_map(|one| one.parts).collect();
    vec![Instance { label, parts }]
}

/// Source and metric name of a series that is written as `SOURCE/METRIC`.
pub(super) fn source_and_id(series: &str) -> Option<(&str, MetricId)> {
    let (source, id) = series.split_once('/')?;
    Some((source, MetricId::parse(id)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::time::TimeSeries;

    /// One row per second with these columns.
    fn table(columns: &[(&str, &[f64])]) -> MetricTable {
        let rows = columns[0].1.len();
        let column =
            |(id, values): &(&str, &[f64])| (MetricId::parse(id).unwrap(), values.to_vec());
        MetricTable {
            source: "server".into(),
            at_s: (1..=rows).map(|row| row as f64).collect(),
            duration_s: vec![1.0; rows],
            columns: columns.iter().map(column).collect(),
        }
    }

    #[test]
    fn checkpoint_is_shown_over_its_whole_duration() {
        // A checkpoint of 2.5 s that ends in the fifth row and was seen running twice.
        let table = table(&[
            ("checkpoint.server.busy_ratio", &[0.0, 0.0, 0.0, 0.0, 2.5, 0.0]),
            ("checkpoint.server.running_count", &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]),
        ]);
        let time = TimeSeries {
            start_s: (0..6).map(f64::from).collect(),
            end_s: (1..7).map(f64::from).collect(),
            ..TimeSeries::default()
        };
        let shares = checkpoint_shares(&table, "server", Grid::new(&time)).unwrap();
        let expected = [0.0, 0.0, 0.5, 1.0, 1.0, 0.0].map(Some);
        assert_eq!(shares, expected);
        assert!(checkpoint_shares(&table, "other", Grid::new(&time)).is_none());
    }

    #[test]
    fn sum_omits_missing_parts() {
        let table = table(&[
            ("cpu.all.irq_ratio", &[0.1, f64::NAN]),
            ("cpu.all.softirq_ratio", &[0.2, f64::NAN]),
        ]);
        let metrics = [cpu::ALL_IRQ_RATIO, cpu::ALL_SOFTIRQ_RATIO, cpu::ALL_STEAL_RATIO];
        let sum = added(&table, &metrics, "").unwrap();
        assert!((sum[0] - 0.3).abs() < 1e-12 && sum[1].is_nan());
        assert!(added(&table, &[cpu::ALL_STEAL_RATIO], "").is_none());
    }

    #[test]
    fn servers_are_summed_when_a_chart_cannot_show_them_all() {
        let table = table(&[("cpu.all.irq_ratio", &[0.1])]);
        let some = |count: usize| {
            let name = |n: usize| Instance::of(&table, format!("pair-{n}"), format!("pair-{n}"));
            few((0..count).map(name).collect())
        };
        assert_eq!(some(4).len(), 4);
        let all = some(5);
        assert_eq!((all.len(), all[0].label.as_str()), (1, "5 servers"));
        let parts = [vec![Some(1.0), None], vec![Some(2.0), Some(5.0)]];
        assert_eq!(together(&parts, Together::Sum), [Some(3.0), Some(5.0)]);
        assert_eq!(together(&parts, Together::Mean), [Some(1.5), Some(5.0)]);
    }
}
