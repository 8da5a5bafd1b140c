//! What a run knows of its bench over a stretch of time: means of series, and which of them are about the
//! server.

use crate::robust::median;
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::{PhaseKind, RunDocument, SourceKind, SourceRecord};
use dyno_record::names::{self, Metric, cpu, disk, storage};
use dyno_record::reader::{IntervalPoint, SeriesPoint, WindowLatency};
use dyno_record::responses::READ_MODIFY_WRITE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A part of the measured time, from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeRange {
    /// Start.
    pub start_s: f64,
    /// End.
    pub end_s: f64,
}

impl TimeRange {
    /// Its length.
    pub fn length_s(self) -> f64 {
        self.end_s - self.start_s
    }

    /// Whether a time lies in it; its end does not.
    fn contains(self, at_s: f64) -> bool {
        at_s >= self.start_s && at_s < self.end_s
    }
}

/// A run with what was watched.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// The run.
    pub document: &'a RunDocument,
    /// What the sources told.
    pub tables: &'a [MetricTable],
    /// Its windows, of all phases.
    pub windows: &'a [IntervalPoint],
    /// Its operations in these windows.
    pub operations: &'a [SeriesPoint],
}

/// A mean with where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Read {
    pub(super) value: f64,
    pub(super) series: Vec<String>,
}

impl Read {
    pub(super) fn of(value: f64) -> Read {
        Read {
            value,
            series: Vec::new(),
        }
    }

    /// The same series with another value.
    pub(super) fn with(self, value: f64) -> Read {
        Read { value, ..self }
    }

    /// Two figures put together.
    pub(super) fn and(self, other: Read, value: f64) -> Read {
        let mut series = self.series;
        for one in other.series {
            if !series.contains(&one) {
                series.push(one);
            }
        }
        Read { value, series }
    }
}

/// Rows of a stretch that a statistic needs at least.
const FEWEST_ROWS: usize = 3;

impl<'a> Bench<'a> {
    /// The measured time, as far as the windows tell.
    pub fn measured(&self) -> Option<TimeRange> {
        let mut measured = self
            .windows
            .iter()
            .filter(|one| one.phase == PhaseKind::Measure);
        let first = measured.next()?;
        let last = measured.next_back().unwrap_or(first);
        Some(TimeRange {
            start_s: first.start_s,
            end_s: last.start_s + last.duration_s,
        })
    }

    /// Successful operations per second.
    pub(super) fn rate_per_s(&self, time_range: TimeRange) -> Option<f64> {
        let inside = self.inside(time_range);
        let seconds: f64 = inside.iter().map(|one| one.duration_s).sum();
        let done: u64 = inside.iter().map(|one| one.succeeded).sum();
        (seconds > 0.0).then(|| done as f64 / seconds)
    }

    /// Windows whose middle lies in a stretch of the measured time.
    pub(super) fn inside(&self, time_range: TimeRange) -> Vec<&'a IntervalPoint> {
        let windows = self.windows.iter();
        windows
            .filter(|one| one.phase == PhaseKind::Measure)
            .filter(|one| time_range.contains(one.start_s + one.duration_s / 2.0))
            .collect()
    }

    /// Commands of the database in windows whose middle lies in a stretch of the measured time: a read-modify-write is
    /// there by its parts.
    pub(super) fn commands(&self, time_range: TimeRange) -> impl Iterator<Item = &'a SeriesPoint> {
        let measured = self.measured_commands();
        measured.filter(move |one| time_range.contains(one.start_s + one.duration_s / 2.0))
    }

    fn measured_commands(&self) -> impl Iterator<Item = &'a SeriesPoint> {
        let points = self.operations.iter();
        points.filter(|one| one.phase == PhaseKind::Measure && one.operation != READ_MODIFY_WRITE)
    }

    /// The commands of the measured windows that did any, by the number of the window.
    pub(crate) fn commands_by_window(&self) -> BTreeMap<u64, Vec<&'a SeriesPoint>> {
        let mut windows: BTreeMap<u64, Vec<&SeriesPoint>> = BTreeMap::new();
        for one in self.measured_commands().filter(|one| one.count > 0) {
            windows.entry(one.index).or_default().push(one);
        }
        windows
    }

    /// Mean service time of these operations in microseconds; of all if none is named.
    pub(super) fn service_us(&self, time_range: TimeRange, names: &[&str]) -> Option<f64> {
        let is_meant =
            |one: &&SeriesPoint| names.is_empty() || names.contains(&one.operation.as_str());
        mean_us(self.commands(time_range).filter(is_meant), |one| {
            one.service
        })
    }

    /// Mean response time of all operations in microseconds.
    pub(super) fn response_us(&self, time_range: TimeRange) -> Option<f64> {
        mean_us(self.commands(time_range), |one| one.response)
    }

    /// Tables of machines that a server runs on.
    pub fn server_hosts(&self) -> impl Iterator<Item = &'a MetricTable> {
        self.tables_of(|source| source.of_server && source.kind != SourceKind::Server)
    }

    /// The first of them that tells its CPUs: an exporter may tell of a server alone.
    pub(crate) fn server_machine(&self) -> Option<&'a MetricTable> {
        let busy = cpu::ALL_BUSY_RATIO.id();
        self.server_hosts()
            .find(|table| table.column(&busy).is_some())
    }

    /// Where the servers run on other machines than this one, the largest mean of a metric of these: the busiest of several
    /// is the one that can be full.
    pub(super) fn largest_elsewhere(&self, metric: Metric, time_range: TimeRange) -> Option<Read> {
        if !self.is_elsewhere() {
            return None;
        }
        let all = self
            .server_hosts()
            .filter_map(|table| mean(table, &metric.id(), time_range));
        all.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Whether the servers run on other machines than the client.
    pub(super) fn is_elsewhere(&self) -> bool {
        let mut sources = self.document.sources.iter();
        !sources.any(|source| source.of_server && source.kind == SourceKind::Host)
    }

    /// The table of this machine.
    pub(super) fn client_host(&self) -> Option<&'a MetricTable> {
        self.tables_of(|source| source.kind == SourceKind::Host)
            .next()
    }

    /// Usual length of a reading of the source that is read least often; 0 where nothing was read.
    pub(super) fn longest_reading_s(&self) -> f64 {
        let usual = |table: &MetricTable| median(table.duration_s.iter().copied());
        let usual = self.tables.iter().filter_map(usual);
        usual.fold(0.0, f64::max)
    }

    /// Share of the CPU time that the hypervisor took while the run measured, on the machine of client or servers that
    /// lost most; `None` where no machine tells.
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

    /// Whether hosts were read by agents of a fleet: then processes of many machines are told, each with CPUs of its own.
    pub(super) fn is_fleet(&self) -> bool {
        let mut sources = self.document.sources.iter();
        sources.any(|source| source.kind == SourceKind::Agent)
    }

    /// The largest of what the machines of servers say: that of several which is worst is the one that can be full.
    pub(super) fn worst_host(&self, of: impl Fn(&'a MetricTable) -> Option<Read>) -> Option<Read> {
        let all = self.server_hosts().filter_map(of);
        all.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// Mean over a stretch of a metric, on that machine of a server where it is largest.
    pub(super) fn host_mean(&self, metric: Metric, time_range: TimeRange) -> Option<Read> {
        self.worst_host(|table| mean(table, &metric.id(), time_range))
    }

    /// Of all tables with this metric the sum of the means over instances.
    pub(super) fn sum_over(
        &self,
        metric: Metric,
        which: impl Fn(&str) -> bool,
        time_range: TimeRange,
    ) -> Option<Read> {
        let mut total: Option<Read> = None;
        for read in self.each(metric, which, time_range) {
            total = Some(match total {
                None => read,
                Some(sum) => {
                    let value = sum.value + read.value;
                    sum.and(read, value)
                }
            });
        }
        total
    }

    /// The instance with the largest mean.
    pub(super) fn largest(
        &self,
        metric: Metric,
        which: impl Fn(&str) -> bool,
        time_range: TimeRange,
    ) -> Option<Read> {
        let all = self.each(metric, which, time_range).into_iter();
        all.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// One metric as a share of another of the same instance, of the instance where that is most.
    pub(super) fn largest_share(
        &self,
        [part, whole]: [Metric; 2],
        time_range: TimeRange,
    ) -> Option<Read> {
        let shares = self.tables.iter().flat_map(|table| {
            let ids = table.columns_of(part).map(|(id, _)| id);
            ids.filter_map(|id| {
                let part = mean(table, id, time_range)?;
                let whole = mean(table, &whole.of(id.instance()?), time_range)?;
                let share = part.value / whole.value;
                (whole.value > 0.0).then(|| part.and(whole, share))
            })
        });
        shares.max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The instance with the smallest mean.
    pub(super) fn smallest(&self, metric: Metric, time_range: TimeRange) -> Option<Read> {
        let all = self.each(metric, |_| true, time_range).into_iter();
        all.min_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The means of this metric of all instances. Where the servers tell them themselves, what exporters tell is left
    /// out: it is about the same servers.
    fn each(
        &self,
        metric: Metric,
        which: impl Fn(&str) -> bool,
        time_range: TimeRange,
    ) -> Vec<Read> {
        let of_kind = |is_server: bool| {
            let tables =
                self.tables_of(move |source| (source.kind == SourceKind::Server) == is_server);
            let mut found = Vec::new();
            for table in tables {
                let ids = table.columns_of(metric).map(|(id, _)| id);
                for id in ids.filter(|id| which(id.instance().unwrap_or_default())) {
                    found.extend(mean(table, id, time_range));
                }
            }
            found
        };
        let own = of_kind(true);
        if own.is_empty() { of_kind(false) } else { own }
    }

    /// The device of the file system that holds the data, where the machine tells that and counts what the device does;
    /// else the one of the servers' machines that was busiest over the whole measured time, so that all parts of a run
    /// are about the same one.
    pub fn data_device(&self, time_range: TimeRange) -> Option<(&'a MetricTable, String)> {
        let hosts = || self.server_hosts();
        let marked = hosts().filter_map(|table| Some((table, marked_device(table)?)));
        let mut marked: Vec<(&MetricTable, String)> = marked.collect();
        let whole = self.measured().unwrap_or(time_range);
        // Of several servers with a disk each, that of the busiest one.
        let busy_ratio = |(table, device): &(&MetricTable, String)| {
            let id = disk::UTILIZATION_RATIO.of(device);
            mean(table, &id, whole).map_or(0.0, |read| read.value)
        };
        marked.sort_by(|a, b| busy_ratio(b).total_cmp(&busy_ratio(a)));
        if !marked.is_empty() {
            return Some(marked.swap_remove(0));
        }
        let busiest = hosts().flat_map(|table| {
            let devices = table.instances(disk::GROUP).into_iter();
            devices.filter_map(move |device| {
                let id = disk::UTILIZATION_RATIO.of(device);
                Some((mean(table, &id, whole)?.value, table, device.to_owned()))
            })
        });
        let busiest = busiest.max_by(|a, b| a.0.total_cmp(&b.0));
        busiest.map(|(_, table, device)| (table, device))
    }

    /// Mean of a metric of the data device.
    pub(super) fn disk(&self, metric: Metric, time_range: TimeRange) -> Option<Read> {
        let (table, device) = self.data_device(time_range)?;
        mean(table, &disk_metric(table, &device, metric), time_range)
    }

    /// Sum of some metrics of the data device row by row, each with the length of its reading: the last one of a run is
    /// often a short one, and must not weigh as much as the others.
    pub(super) fn disk_rows(
        &self,
        metrics: &[Metric],
        time_range: TimeRange,
    ) -> Option<(Vec<WeightedRow>, Vec<String>)> {
        let (table, device) = self.data_device(time_range)?;
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
        let rows: Vec<WeightedRow> = rows(table, time_range)
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
    /// Time that it is about.
    pub(super) duration_s: f64,
}

/// A metric of a device. Of a device that does not tell it that of one below it that holds the data as well: the flushes of
/// a partition are counted on its disk alone.
fn disk_metric(table: &MetricTable, device: &str, metric: Metric) -> MetricId {
    let own = metric.of(device);
    if table.column(&own).is_some() {
        return own;
    }
    let mut below = table
        .instances(storage::GROUP)
        .into_iter()
        .filter_map(|device| {
            let mark = storage::HOLDS_DATA_COUNT.of(device);
            let id = metric.of(device);
            table.column(&mark).and(table.column(&id)).map(|_| id)
        });
    below.next().unwrap_or(own)
}

/// Mean of a kind of latency over operations, each weighted by its number; nothing without any.
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

/// The device that a machine says to hold data, with figures of its own. Of several that lie on each other the one with
/// the file system: those below it hold the data, too, but have none that is told.
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

/// Whether a process is the load generator, by its name in metrics.
pub(super) fn is_client(process: &str) -> bool {
    process == names::CLIENT
}

/// Whether a process is a server.
pub(super) fn is_server(process: &str) -> bool {
    !is_client(process)
}

/// CPUs that others used, where all processes together used so many in user mode and in the kernel, and those that are
/// known so many. Interrupts and stolen time are in neither. The two kinds are told apart because kernels that count by ticks
/// add the time of an interrupt to the process that it hits: the known ones can have more time in the kernel than there is,
/// which must not be taken from what others did in user mode.
pub(crate) fn of_others(all: [f64; 2], known: [f64; 2]) -> f64 {
    let rest = |kind: usize| (all[kind] - known[kind]).max(0.0);
    rest(0) + rest(1)
}

/// The CPUs of a machine by their names in metrics.
pub(crate) fn cpus(table: &MetricTable) -> Vec<&str> {
    let mut cpus = table.instances(cpu::GROUP);
    cpus.retain(|cpu| *cpu != names::ALL_CPUS);
    cpus
}

/// Sum of the means over instances of a metric that one table tells.
pub(super) fn sum_on(
    table: &MetricTable,
    metric: Metric,
    which: impl Fn(&str) -> bool,
    time_range: TimeRange,
) -> Option<Read> {
    let ids = table.columns_of(metric).map(|(id, _)| id);
    let ids = ids.filter(|id| which(id.instance().unwrap_or_default()));
    let reads = ids.filter_map(|id| mean(table, id, time_range));
    reads.reduce(|sum, read| {
        let value = sum.value + read.value;
        sum.and(read, value)
    })
}

/// Rows whose time lies in a stretch with its middle.
fn rows(table: &MetricTable, time_range: TimeRange) -> impl Iterator<Item = usize> + '_ {
    (0..table.at_s.len())
        .filter(move |row| time_range.contains(table.at_s[*row] - table.duration_s[*row] / 2.0))
}

/// Mean over time of a metric in a stretch; nothing with too few rows.
pub(super) fn mean(table: &MetricTable, id: &MetricId, time_range: TimeRange) -> Option<Read> {
    let column = table.column(id)?;
    let (mut sum, mut weight, mut count) = (0.0, 0.0, 0);
    for row in rows(table, time_range).filter(|row| column[*row].is_finite()) {
        sum += column[row] * table.duration_s[row];
        weight += table.duration_s[row];
        count += 1;
    }
    (count >= FEWEST_ROWS && weight > 0.0).then(|| Read {
        value: sum / weight,
        series: vec![format!("{}/{id}", table.source)],
    })
}
