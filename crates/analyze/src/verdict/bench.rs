//! The data of a run over a time range: means of series, with the series that describe the server.

use crate::grouping::distinct;
use crate::robust::median;
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::{Effect, PhaseKind, RunDocument, SourceKind, SourceRecord};
use dyno_record::names::{self, Metric, cpu, disk, storage};
use dyno_record::reader::{IntervalPoint, SeriesPoint, WindowLatency};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;

/// A part of the measured time, in seconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeRange {
    pub start_s: f64,
    pub end_s: f64,
}

impl TimeRange {
    /// Length in seconds.
    pub fn length_s(self) -> f64 {
        self.end_s - self.start_s
    }

    /// Whether the range contains a time; the end is excluded.
    fn contains(self, at_s: f64) -> bool {
        at_s >= self.start_s && at_s < self.end_s
    }
}

/// A run with its observations.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    pub document: &'a RunDocument,
    /// Metrics of the sources.
    pub tables: &'a [MetricTable],
    /// Windows of all phases.
    pub windows: &'a [IntervalPoint],
    /// Operations in these windows.
    pub operations: &'a [SeriesPoint],
}

/// A mean and its source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) value: f64,
    pub(super) series: Vec<String>,
}

impl Read {
    pub(super) fn of(value: f64) -> Read {
        Read { value, series: Vec::new() }
    }

    /// The same series with another value.
    pub(super) fn with(self, value: f64) -> Read {
        Read { value, ..self }
    }

    /// The sum of two figures.
    pub(super) fn plus(self, other: Read) -> Read {
        let value = self.value + other.value;
        self.and(other, value)
    }

    /// A value from two figures.
    pub(super) fn and(self, other: Read, value: f64) -> Read {
        Read { value, series: distinct(self.series.into_iter().chain(other.series)) }
    }
}

/// Fewest rows of a time range for a statistic.
const FEWEST_ROWS: usize = 3;

impl<'a> Bench<'a> {
    /// The measured time that the windows cover.
    pub fn measured(&self) -> Option<TimeRange> {
        let mut measured = self.windows.iter().filter(|one| one.phase == PhaseKind::Measure);
        let first = measured.next()?;
        let last = measured.next_back().unwrap_or(first);
        Some(TimeRange { start_s: first.start_s, end_s: last.start_s + last.duration_s })
    }

    fn measured_commands(&self) -> impl Iterator<Item = &'a SeriesPoint> {
        let planned = &self.document.operations;
        let measured = self.operations.iter().filter(|one| one.phase == PhaseKind::Measure);
        measured.filter(|one| planned.is_summed(&one.operation))
    }

    /// The commands of the measured windows that had any, by window number.
    pub(crate) fn commands_by_window(&self) -> BTreeMap<u64, Vec<&'a SeriesPoint>> {
        let mut windows: BTreeMap<u64, Vec<&SeriesPoint>> = BTreeMap::new();
        for one in self.measured_commands().filter(|one| one.count > 0) {
            windows.entry(one.index).or_default().push(one);
        }
        windows
    }

    /// Tables of the machines that run a server.
    pub fn server_hosts(&self) -> impl Iterator<Item = &'a MetricTable> {
        self.tables_of(|source| source.of_server && source.kind != SourceKind::Server)
    }

    /// The first server table with CPUs: an exporter may report only a server.
    pub(crate) fn server_machine(&self) -> Option<&'a MetricTable> {
        let busy = cpu::ALL_BUSY_RATIO.id();
        self.server_hosts().find(|table| table.column(&busy).is_some())
    }

    /// Whether the servers run on other machines than the client.
    pub(super) fn is_elsewhere(&self) -> bool {
        let mut sources = self.document.sources.iter();
        !sources.any(|source| source.of_server && source.kind == SourceKind::Host)
    }

    /// The table of this machine.
    pub(super) fn client_host(&self) -> Option<&'a MetricTable> {
        self.tables_of(|source| source.kind == SourceKind::Host).next()
    }

    /// Usual length of a reading of the least frequently read source; 0 if there are no readings.
    pub(super) fn longest_reading_s(&self) -> f64 {
        let usual = |table: &MetricTable| median(table.duration_s.iter().copied());
        self.tables.iter().filter_map(usual).fold(0.0, f64::max)
    }

    /// Largest share of CPU time that the hypervisor took during the measurement, over the machines of client
    /// and servers; `None` if no machine reports it.
    pub fn stolen_ratio(&self) -> Option<f64> {
        let measured = self.measured()?;
        let id = cpu::ALL_STEAL_RATIO.id();
        let hosts = self.tables_of(|source| source.kind != SourceKind::Server);
        let stolen = hosts.filter_map(|table| {
            let column = table.column(&id)?;
            let known = rows(table, measured).filter(|row| column[*row].is_finite());
            let (sum, length_s) = known.fold((0.0, 0.0), |(sum, length_s), row| {
                let duration_s = table.duration_s[row];
                (sum + column[row] * duration_s, length_s + duration_s)
            });
            (length_s > 0.0).then(|| sum / length_s)
        });
        stolen.reduce(f64::max)
    }

    fn tables_of(
        &self,
        which: impl Fn(&SourceRecord) -> bool,
    ) -> impl Iterator<Item = &'a MetricTable> {
        let sources = &self.document.sources;
        self.tables.iter().filter(move |table| {
            let source = sources.iter().find(|source| source.name == table.source);
            source.is_some_and(&which)
        })
    }

    /// Whether fleet agents read the hosts: then there are processes of many machines, each with CPUs of its
    /// own.
    pub(super) fn is_fleet(&self) -> bool {
        self.document.sources.iter().any(|source| source.kind == SourceKind::Agent)
    }

    /// The largest value over the servers' machines: the worst one is the one that can be full.
    pub(super) fn worst_host(&self, of: impl Fn(&'a MetricTable) -> Option<Read>) -> Option<Read> {
        let all = self.server_hosts().filter_map(of);
        all.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The device of the data file system, if the machine reports it and has counters for it; otherwise the
    /// device of the servers' machines that was busiest over the whole measured time, so that all parts of a
    /// run refer to the same device.
    pub fn data_device(&self, time_range: TimeRange) -> Option<(&'a MetricTable, String)> {
        let hosts = || self.server_hosts();
        let marked = hosts().filter_map(|table| Some((table, marked_device(table)?)));
        let mut marked: Vec<(&MetricTable, String)> = marked.collect();
        let whole = self.measured().unwrap_or(time_range);
        // Of several servers with a disk each, use the busiest disk.
        let busy_ratio = |(table, device): &(&MetricTable, String)| {
            let id = disk::UTILIZATION_RATIO.of(device);
            mean(table, &id, whole).map_or(0.0, |read| read.value)
        };
        marked.sort_by(|a, b| busy_ratio(b).total_cmp(&busy_ratio(a)));
        if !marked.is_empty() {
            return Some(marked.swap_remove(0));
        }
        let busiest = hosts().flat_map(|table| {
            table.instances(disk::GROUP).into_iter().filter_map(move |device| {
                let id = disk::UTILIZATION_RATIO.of(device);
                Some((mean(table, &id, whole)?.value, table, device.to_owned()))
            })
        });
        let busiest = busiest.max_by(|a, b| a.0.total_cmp(&b.0));
        busiest.map(|(_, table, device)| (table, device))
    }
}

/// A time range of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) time_range: TimeRange,
}

impl<'a> Deref for View<'a> {
    type Target = Bench<'a>;

    fn deref(&self) -> &Bench<'a> {
        self.bench
    }
}

impl<'a> View<'a> {
    /// Mean of a metric, weighted by time; `None` with too few rows.
    pub(super) fn mean(&self, table: &MetricTable, id: &MetricId) -> Option<Read> {
        mean(table, id, self.time_range)
    }

    /// Sum of the means over instances of a metric in one table.
    pub(super) fn sum_on(
        &self,
        table: &MetricTable,
        metric: Metric,
        which: impl Fn(&str) -> bool,
    ) -> Option<Read> {
        let ids = table.columns_of(metric).map(|(id, _)| id);
        let ids = ids.filter(|id| which(id.instance().unwrap_or_default()));
        ids.filter_map(|id| self.mean(table, id)).reduce(Read::plus)
    }

    /// Successful operations per second.
    pub(super) fn rate_per_s(&self) -> Option<f64> {
        let inside = self.inside();
        let seconds: f64 = inside.iter().map(|one| one.duration_s).sum();
        let done: u64 = inside.iter().map(|one| one.succeeded).sum();
        (seconds > 0.0).then(|| done as f64 / seconds)
    }

    /// Windows with their middle in a time range.
    pub(super) fn inside(&self) -> Vec<&'a IntervalPoint> {
        self.windows
            .iter()
            .filter(|one| one.phase == PhaseKind::Measure)
            .filter(|one| self.time_range.contains(one.start_s + one.duration_s / 2.0))
            .collect()
    }

    /// Database commands in windows with their middle in a time range: a read-modify-write appears as its
    /// parts.
    pub(super) fn commands(&self) -> impl Iterator<Item = &'a SeriesPoint> {
        let (measured, time_range) = (self.measured_commands(), self.time_range);
        measured.filter(move |one| time_range.contains(one.start_s + one.duration_s / 2.0))
    }

    /// Those of the commands that write, or that read.
    pub(super) fn commands_with(&self, writes: bool) -> impl Iterator<Item = &'a SeriesPoint> {
        let planned = &self.document.operations;
        let effect = |one: &&SeriesPoint| Some(planned.find(&one.operation)?.effect);
        self.commands()
            .filter(move |one| effect(one).is_some_and(|effect| (effect != Effect::Read) == writes))
    }

    /// Mean service time of these commands in microseconds.
    pub(super) fn service_us(&self, of: impl Iterator<Item = &'a SeriesPoint>) -> Option<f64> {
        mean_us(of, |one| one.service)
    }

    /// Mean response time of all operations in microseconds.
    pub(super) fn response_us(&self) -> Option<f64> {
        mean_us(self.commands(), |one| one.response)
    }

    /// The largest mean of a metric over the servers' machines, if they are not this machine: the busiest of
    /// several is the one that can be full.
    pub(super) fn largest_elsewhere(&self, metric: Metric) -> Option<Read> {
        if !self.is_elsewhere() {
            return None;
        }
        let all = self.server_hosts().filter_map(|table| self.mean(table, &metric.id()));
        all.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Mean of a metric over a time range, on the server machine with the largest mean.
    pub(super) fn host_mean(&self, metric: Metric) -> Option<Read> {
        self.worst_host(|table| self.mean(table, &metric.id()))
    }

    /// Sum of the means over instances, for all tables with this metric.
    pub(super) fn sum_over(&self, metric: Metric, which: impl Fn(&str) -> bool) -> Option<Read> {
        self.each(metric, which).into_iter().reduce(Read::plus)
    }

    /// The instance with the largest mean.
    pub(super) fn largest(&self, metric: Metric, which: impl Fn(&str) -> bool) -> Option<Read> {
        self.each(metric, which).into_iter().max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// One metric as a share of another metric of the same instance; the largest over the instances.
    pub(super) fn largest_share(&self, [part, whole]: [Metric; 2]) -> Option<Read> {
        let shares = self.tables.iter().flat_map(|table| {
            let ids = table.columns_of(part).map(|(id, _)| id);
            ids.filter_map(|id| {
                let part = self.mean(table, id)?;
                let whole = self.mean(table, &whole.of(id.instance()?))?;
                let share = part.value / whole.value;
                (whole.value > 0.0).then(|| part.and(whole, share))
            })
        });
        shares.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The instance with the smallest mean.
    pub(super) fn smallest(&self, metric: Metric) -> Option<Read> {
        let all = self.each(metric, |_| true).into_iter();
        all.min_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The means of this metric for all instances. If the servers report it themselves, exporter values are
    /// left out: they describe the same servers.
    fn each(&self, metric: Metric, which: impl Fn(&str) -> bool) -> Vec<Read> {
        let of_kind = |is_server: bool| {
            let tables =
                self.tables_of(move |source| (source.kind == SourceKind::Server) == is_server);
            let mut found = Vec::new();
            for table in tables {
                let ids = table.columns_of(metric).map(|(id, _)| id);
                for id in ids.filter(|id| which(id.instance().unwrap_or_default())) {
                    found.extend(self.mean(table, id));
                }
            }
            found
        };
        let own = of_kind(true);
        if own.is_empty() { of_kind(false) } else { own }
    }

    /// Mean of a metric of the data device.
    pub(super) fn disk(&self, metric: Metric) -> Option<Read> {
        let (table, device) = self.data_device(self.time_range)?;
        self.mean(table, &disk_metric(table, &device, metric))
    }

    /// Sum of some metrics of the data device row by row, weighted by the length of the reading: the last
    /// reading of a run is often short.
    pub(super) fn disk_rows(&self, metrics: &[Metric]) -> Option<(Vec<WeightedRow>, Vec<String>)> {
        let (table, device) = self.data_device(self.time_range)?;
        let columns: Vec<(String, &[f64])> = metrics
            .iter()
            .filter_map(|metric| {
                let id = disk_metric(table, &device, *metric);
                Some((format!("{}/{id}", table.source), table.column(&id)?))
            })
            .collect();
        if columns.is_empty() {
            return None;
        }
        let rows: Vec<WeightedRow> = rows(table, self.time_range)
            .map(|row| WeightedRow {
                value: columns.iter().map(|(_, column)| column[row]).sum(),
                duration_s: table.duration_s[row],
            })
            .filter(|row| row.value.is_finite() && row.duration_s > 0.0)
            .collect();
        let series = columns.into_iter().map(|(name, _)| name).collect();
        (rows.len() >= FEWEST_ROWS).then_some((rows, series))
    }
}

/// A value of a reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WeightedRow {
    pub(super) value: f64,
    /// Length of the reading.
    pub(super) duration_s: f64,
}

/// A metric of a device, or of the underlying device if the device does not report it: the flushes of a
/// partition are counted only on its disk.
fn disk_metric(table: &MetricTable, device: &str, metric: Metric) -> MetricId {
    let own = metric.of(device);
    if table.column(&own).is_some() {
        return own;
    }
    let mut below = table.instances(storage::GROUP).into_iter().filter_map(|device| {
        let mark = storage::HOLDS_DATA_COUNT.of(device);
        let id = metric.of(device);
        table.column(&mark).and(table.column(&id)).map(|_| id)
    });
    below.next().unwrap_or(own)
}

/// Mean of a kind of latency over operations, weighted by their number; `None` without operations.
pub(crate) fn mean_us<'a>(
    points: impl Iterator<Item = &'a SeriesPoint>,
    latency: fn(&SeriesPoint) -> WindowLatency,
) -> Option<f64> {
    let (sum_us, count) = points.fold((0.0, 0), |(sum_us, count), one| {
        let time_us = latency(one).mean_us * one.count as f64;
        (sum_us + time_us, count + one.count)
    });
    (count > 0).then(|| sum_us / count as f64)
}

/// The device that a machine reports to hold the data, with figures of its own. Of several stacked devices, the
/// one with the file system: the devices below hold the data without being reported.
fn marked_device(table: &MetricTable) -> Option<String> {
    let tells = |metric: Metric, device: &str| table.column(&metric.of(device)).is_some();
    let mut marked = table.instances(storage::GROUP);
    marked.retain(|device| {
        tells(storage::HOLDS_DATA_COUNT, device) && tells(disk::UTILIZATION_RATIO, device)
    });
    let has_files = |device: &&&str| tells(storage::FREE_BYTES, device);
    let device = marked.iter().find(has_files).or_else(|| marked.first());
    device.map(|device| (*device).to_owned())
}

/// Whether a process is the load generator, by its metric name.
pub(super) fn is_client(process: &str) -> bool {
    process == names::CLIENT
}

/// Whether a process is a server.
pub(super) fn is_server(process: &str) -> bool {
    !is_client(process)
}

/// CPUs that other processes used, from the use of all processes and of the known ones, each in user mode and
/// in the kernel. Both exclude interrupts and stolen time. The modes are separate because kernels that count by
/// ticks add interrupt time to the interrupted process: the known processes can have more kernel time than
/// exists, and the excess must not reduce the others' user time.
pub(crate) fn of_others(all: [f64; 2], known: [f64; 2]) -> f64 {
    let rest = |kind: usize| (all[kind] - known[kind]).max(0.0);
    rest(0) + rest(1)
}

/// The CPUs of a machine by their metric names.
pub(crate) fn cpus(table: &MetricTable) -> Vec<&str> {
    let mut cpus = table.instances(cpu::GROUP);
    cpus.retain(|cpu| *cpu != names::ALL_CPUS);
    cpus
}

/// Rows with their middle in a time range.
fn rows(table: &MetricTable, time_range: TimeRange) -> impl Iterator<Item = usize> + '_ {
    (0..table.at_s.len())
        .filter(move |row| time_range.contains(table.at_s[*row] - table.duration_s[*row] / 2.0))
}

fn mean(table: &MetricTable, id: &MetricId, time_range: TimeRange) -> Option<Read> {
    let column = table.column(id)?;
    let (mut sum, mut weight, mut count) = (0.0, 0.0, 0);
    for row in rows(table, time_range).filter(|row| column[*row].is_finite()) {
        sum += column[row] * table.duration_s[row];
        weight += table.duration_s[row];
        count += 1;
    }
    (count >= FEWEST_ROWS && weight > 0.0)
        .then(|| Read { value: sum / weight, series: vec![format!("{}/{id}", table.source)] })
}
