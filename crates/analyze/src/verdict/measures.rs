//! The figures that rules refer to, each defined once.

use super::bench::{Bench, Read, TimeRange, View, WeightedRow, is_server};
use super::by_servers;
use super::checkpoints;
use super::cpu_time::{host_cpus, largest_of_cpus, of_workers, others, server_cpus};
use dyno_record::document::variant_name;
use dyno_record::names::{
    self, Metric, cgroup, connections, cpu, disk, log, memory, network, paging, pressure, process,
    queue, tickets,
};
use dyno_record::plan::ScheduleKind;
use dyno_record::quantity::Unit;
use dyno_record::statement::Number;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;

/// A figure of a run's time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// CPU time of the servers, as a share of the CPUs that they may use; in a fleet, on the host with the
    /// largest share. For a remote machine without process data: all CPU time there, or the servers' own
    /// reports if they are known and most of the time is other work.
    ServerCpuRatio,
    /// Time in which worker threads of the client waited for a CPU, as a share of their time.
    ClientWaitRatio,
    /// Time in which worker threads of the client worked or waited for a CPU, as a share of their time; in a
    /// fleet, for the agent with the largest share.
    ClientFullRatio,
    /// Mean time from the due time of an open-loop operation until it was sent; undefined for closed loops. The
    /// generator waits by polling the clock, so it is busy long before it is late.
    StartDelayMs,
    /// Mean number of server threads that waited for a CPU. For a remote machine without process data: the
    /// share of time in which anything there waited for one, which is less.
    ServerWaitingCount,
    /// Share of time in which the busiest server thread worked.
    ServerBusiestThreadRatio,
    /// Share of CPU time that was not idle on the server's machine.
    HostBusyRatio,
    /// Utilization of the busiest CPU of the server's machine.
    BusiestCpuRatio,
    /// Share of its time that the CPU with the most interrupt work spent on interrupts, on the server's
    /// machine.
    BusiestInterruptsRatio,
    /// CPUs of the server's machine that were busy with neither the servers nor the client, interrupts or other
    /// machines. Kernel threads cannot be distinguished from other processes.
    OthersCpuCount,
    /// Share of CPU time that the hypervisor gave to others.
    StealRatio,
    /// Share of time in which the CPUs were idle and something waited for a disk.
    IowaitRatio,
    /// Share of periods in which the kernel throttled the servers at their CPU limit.
    ServerThrottledRatio,
    /// Share of time in which the data disk worked, or in which some process waited for I/O if that is larger.
    DiskSaturationRatio,
    /// Share of time in which requests waited for the data disk: in its queue, if the queue held more than one
    /// on average for a time that is long for any disk, or held back by a limit outside the disk, which is idle
    /// while processes wait.
    DiskBackedUpRatio,
    /// Reads, writes and flushes per second of the data disk.
    DiskOperationsPerS,
    /// Variation of the data disk's operations: standard deviation as a share of the mean.
    DiskOperationsVariationRatio,
    /// Bytes per second of the data disk.
    DiskBytesPerS,
    /// Variation of the data disk's bytes: standard deviation as a share of the mean.
    DiskBytesVariationRatio,
    /// Mean size of the reads and writes of the data disk.
    DiskRequestBytes,
    /// Bytes read into the server's cache per operation; from the data disk if the server does not report them.
    ReadBytesPerOperation,
    /// Size of the data as a share of the server's cache.
    DataOverCacheRatio,
    /// Pages that the server found in its cache, as a share of requested pages.
    CacheHitRatio,
    /// Pages evicted by application threads, per second.
    ApplicationEvictionsPerS,
    /// Share of time in which a checkpoint ran.
    CheckpointRatio,
    /// Mean time to sync the server's log.
    LogSyncMs,
    /// Syncs of the server's log per write.
    SyncsPerWrite,
    /// Service time of writes divided by the service time of reads.
    WriteOverReadRatio,
    /// Response times during checkpoints divided by response times at other times. `None` without enough of
    /// both.
    CheckpointSlowdownRatio,
    /// Variation of the data disk's operations divided by the variation of its bytes.
    FlatterOperationsRatio,
    /// Connections that the server accepted, per operation.
    ConnectionsPerOperationRatio,
    /// Share of tickets in use, the larger of reads and writes.
    TicketsRatio,
    /// Number of operations that queue in the server.
    QueueCount,
    /// Operations that queue in the server, as a share of the operations in flight.
    QueuedRatio,
    /// Bytes swapped in and out per second.
    SwapBytesPerS,
    /// Share of time in which processes waited for memory.
    MemoryPressureRatio,
    /// Available memory as a share of all memory.
    AvailableMemoryRatio,
    /// Traffic of the busiest interface as a share of its speed.
    NetworkRatio,
    /// Round trip of an empty command before the run, as a share of the mean service time.
    RoundTripRatio,
    /// Connections that the server accepted per second.
    ConnectionsPerS,
    /// Operations in flight as a share of the connections.
    InFlightRatio,
    /// Successful writes per second.
    WritesPerS,
    /// Mean service time of writes in milliseconds.
    WriteServiceMs,
    /// Successful operations per second.
    OperationsPerS,
}

/// Counters are not read at the same instant: a share up to this counts as 1.
const MOST_SHARE: f64 = 1.1;

impl Measure {
    /// Its name in records.
    pub fn name(self) -> String {
        variant_name(&self)
    }

    /// A value with the unit at the end of the measure's name.
    pub fn number(self, value: f64) -> Number {
        let name = self.name();
        let is_in = |unit: &str| name.ends_with(unit);
        let (value, unit) = match () {
            () if self == Measure::WriteOverReadRatio => (value, Unit::Times),
            () if is_in("_ratio") => (value, Unit::Ratio),
            () if is_in("_ms") => (value * 1e3, Unit::Microseconds),
            () if is_in("_bytes_per_s") => (value, Unit::BytesPerSecond),
            () if is_in("_per_s") => (value, Unit::PerSecond),
            () if is_in("_bytes") || is_in("_bytes_per_operation") => (value, Unit::Bytes),
            () => (value, Unit::Plain),
        };
        Number::new(value, unit)
    }

    /// Whether it is a variation, which needs more than a few readings.
    pub(super) fn is_variation(self) -> bool {
        matches!(
            self,
            Measure::DiskOperationsVariationRatio
                | Measure::DiskBytesVariationRatio
                | Measure::FlatterOperationsRatio
        )
    }

    /// Whether it is a share of a whole, from 0 to 1.
    pub(super) fn is_share(self) -> bool {
        let is_comparison = matches!(
            self,
            Measure::WriteOverReadRatio
                | Measure::CheckpointSlowdownRatio
                | Measure::FlatterOperationsRatio
                | Measure::DataOverCacheRatio
                | Measure::ConnectionsPerOperationRatio
                | Measure::DiskOperationsVariationRatio
                | Measure::DiskBytesVariationRatio
        );
        self.name().ends_with("_ratio") && !is_comparison
    }

    /// Its value over a time range; `None` if it was not watched. A share clearly above 1 combines unrelated
    /// values and is also unknown.
    pub(super) fn read(self, view: &View<'_>) -> Option<Read> {
        let read = self.watched(view)?;
        if !read.value.is_finite() || self.is_share() && !(0.0..=MOST_SHARE).contains(&read.value) {
            return None;
        }
        let value = read.value.min(if self.is_share() { 1.0 } else { f64::MAX });
        Some(read.with(value))
    }

    // Long, because it has an arm for each measure: the compiler checks completeness only in one match.
    fn watched(self, view: &View<'_>) -> Option<Read> {
        match self {
            Measure::ServerCpuRatio if view.is_fleet() => {
                let of_host = view.worst_host(|table| {
                    let used = view.sum_on(table, process::CPU_RATIO, is_server)?;
                    let share = used.value / host_cpus(view, table)?;
                    Some(used.with(share))
                });
                of_host.or_else(|| by_servers::cpu_ratio(view))
            }
            Measure::ServerCpuRatio => match view.sum_over(process::CPU_RATIO, is_server) {
                Some(used) => {
                    let share = used.value / server_cpus(view)?;
                    Some(used.with(share))
                }
                None => by_servers::cpu_ratio(view),
            },
            Measure::ClientWaitRatio => of_workers(view, &[process::WORKERS_WAIT_RATIO]),
            Measure::ClientFullRatio => {
                let both = [process::WORKERS_CPU_RATIO, process::WORKERS_WAIT_RATIO];
                of_workers(view, &both)
            }
            Measure::StartDelayMs => {
                let response_us = view.response_us().filter(|_| !is_closed(view))?;
                let delay_us = response_us - view.service_us(view.commands())?;
                Some(Read::of(delay_us.max(0.0) / 1e3))
            }
            Measure::WriteOverReadRatio => {
                let writes_us = view.service_us(view.commands_with(true))?;
                let reads_us = view.service_us(view.commands_with(false))?;
                Some(Read::of(writes_us / reads_us))
            }
            Measure::CheckpointSlowdownRatio => checkpoints::slowdown(view),
            Measure::FlatterOperationsRatio => {
                let operations = variation(view, OPERATIONS)?;
                let bytes = variation(view, BYTES)?;
                let share = operations.value / bytes.value.max(1e-9);
                Some(operations.and(bytes, share))
            }
            Measure::ConnectionsPerOperationRatio => {
                let opened = Measure::ConnectionsPerS.read(view)?;
                let share = opened.value / view.rate_per_s()?.max(1e-9);
                Some(opened.with(share))
            }
            Measure::ServerWaitingCount if view.is_fleet() => view
                .worst_host(|table| view.sum_on(table, process::CPU_WAIT_RATIO, is_server))
                .or_else(|| view.largest_elsewhere(pressure::CPU_SOME_RATIO)),
            Measure::ServerWaitingCount => view
                .sum_over(process::CPU_WAIT_RATIO, is_server)
                .or_else(|| view.largest_elsewhere(pressure::CPU_SOME_RATIO)),
            Measure::ServerBusiestThreadRatio => {
                view.largest(process::BUSIEST_THREAD_RATIO, is_server)
            }
            Measure::HostBusyRatio => view.host_mean(cpu::ALL_BUSY_RATIO),
            Measure::BusiestCpuRatio => largest_of_cpus(view, cpu::BUSY_RATIO),
            Measure::BusiestInterruptsRatio => largest_of_cpus(view, cpu::SOFTIRQ_RATIO),
            Measure::OthersCpuCount => others(view),
            Measure::StealRatio => view.host_mean(cpu::ALL_STEAL_RATIO),
            Measure::IowaitRatio => view.host_mean(cpu::ALL_IOWAIT_RATIO),
            Measure::ServerThrottledRatio => throttled(view),
            Measure::DiskSaturationRatio => {
                let pressure = view.host_mean(pressure::IO_SOME_RATIO);
                let busy = view.disk(disk::UTILIZATION_RATIO);
                pressure.into_iter().chain(busy).max_by(|a, b| a.value.total_cmp(&b.value))
            }
            Measure::DiskBackedUpRatio => backed_up(view),
            Measure::DiskOperationsPerS => disk_mean(view, OPERATIONS),
            Measure::DiskOperationsVariationRatio => variation(view, OPERATIONS),
            Measure::DiskBytesPerS => disk_mean(view, BYTES),
            Measure::DiskRequestBytes => {
                let bytes = disk_mean(view, BYTES)?;
                let requests = disk_mean(view, REQUESTS)?;
                let each = bytes.value / requests.value;
                (requests.value > 0.0).then(|| bytes.and(requests, each))
            }
            Measure::DiskBytesVariationRatio => variation(view, BYTES),
            Measure::ReadBytesPerOperation => {
                let into_cache = view.sum_over(names::cache::READ_BYTES_PER_S, |_| true);
                let from_disk = || view.disk(disk::READ_BYTES_PER_S);
                let read = into_cache.or_else(from_disk)?;
                let each = read.value / view.rate_per_s().filter(|rate| *rate > 0.0)?;
                Some(read.with(each))
            }
            Measure::DataOverCacheRatio => {
                let server = &view.document.server;
                let (data, cache) = (server.data_bytes? as f64, server.cache_bytes? as f64);
                (cache > 0.0).then(|| Read::of(data / cache))
            }
            Measure::CacheHitRatio => view.smallest(names::cache::HIT_RATIO),
            Measure::ApplicationEvictionsPerS => {
                view.sum_over(names::cache::EVICTED_BY_APPLICATION_PER_S, |_| true)
            }
            Measure::CheckpointRatio => checkpoints::ratio(view),
            Measure::LogSyncMs => view.largest(log::SYNC_MEAN_MS, |_| true),
            Measure::SyncsPerWrite => {
                // If a journal is synced on a schedule, whatever the writes request, the disk gives the same
                // number.
                let syncs = view.sum_over(log::SYNCS_PER_S, |_| true);
                let flushes = || view.disk(disk::FLUSH_PER_S);
                let syncs = syncs.or_else(flushes)?;
                let each = syncs.value / writes_per_s(view).filter(|rate| *rate > 0.0)?;
                Some(syncs.with(each))
            }
            Measure::TicketsRatio => {
                let reads = (tickets::READ_IN_USE_COUNT, tickets::READ_TOTAL_COUNT);
                let writes = (tickets::WRITE_IN_USE_COUNT, tickets::WRITE_TOTAL_COUNT);
                let both = [reads, writes].into_iter();
                let both = both.filter_map(|(used, all)| view.largest_share([used, all]));
                both.max_by(|a, b| a.value.total_cmp(&b.value))
            }
            Measure::QueueCount => view.sum_over(queue::TOTAL_COUNT, |_| true),
            Measure::QueuedRatio => {
                let queued = Measure::QueueCount.read(view)?;
                // Operations of others also queue.
                let under_way = in_flight(view)?.max(queued.value);
                let share = queued.value / under_way.max(1.0);
                Some(queued.with(share))
            }
            Measure::SwapBytesPerS => view.worst_host(|table| {
                let swapped = view.mean(table, &paging::SWAP_IN_BYTES_PER_S.id())?;
                Some(swapped.plus(view.mean(table, &paging::SWAP_OUT_BYTES_PER_S.id())?))
            }),
            Measure::MemoryPressureRatio => view.host_mean(pressure::MEMORY_SOME_RATIO),
            Measure::AvailableMemoryRatio => {
                let shares = view.server_hosts().filter_map(|table| {
                    let available = view.mean(table, &memory::AVAILABLE_BYTES.id())?;
                    let total = view.mean(table, &memory::TOTAL_BYTES.id())?;
                    let share = available.value / total.value;
                    Some(available.with(share))
                });
                shares.min_by(|a, b| a.value.total_cmp(&b.value))
            }
            Measure::NetworkRatio => network(view),
            Measure::RoundTripRatio => {
                let round_trip_us = view.document.server.round_trip_us?;
                Some(Read::of(round_trip_us / view.service_us(view.commands())?))
            }
            Measure::ConnectionsPerS => view.sum_over(connections::CREATED_PER_S, |_| true),
            Measure::InFlightRatio => Some(Read::of(in_flight(view)? / clients(view))),
            Measure::WriteServiceMs => {
                Some(Read::of(view.service_us(view.commands_with(true))? / 1e3))
            }
            Measure::WritesPerS => writes_per_s(view).map(Read::of),
            Measure::OperationsPerS => view.rate_per_s().map(Read::of),
        }
    }
}

/// A time range of a run with cached measures: many rules use the same ones.
pub(super) struct Seen<'a> {
    view: View<'a>,
    read: RefCell<HashMap<Measure, Option<Read>>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(bench: &'a Bench<'a>, time_range: TimeRange) -> Self {
        Seen { view: View { bench, time_range }, read: RefCell::default() }
    }

    /// The value of a measure; `None` if it was not watched.
    pub(super) fn read(&self, measure: Measure) -> Option<Read> {
        let mut known = self.read.borrow_mut();
        known.entry(measure).or_insert_with(|| measure.read(&self.view)).clone()
    }
}

impl<'a> Deref for Seen<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

/// A watched process without a limit is never throttled. The agent next to a server in a pod sees its process
/// but not its control group, so its throttling is unknown.
fn throttled(view: &View<'_>) -> Option<Read> {
    let reported = view.largest(cgroup::CPU_THROTTLED_PERIODS_RATIO, is_server);
    reported.or_else(|| {
        let group = view.largest(cgroup::IO_LIMITED_COUNT, is_server);
        let is_seen = !view.is_fleet() || group.is_some();
        let used = view.sum_over(process::CPU_RATIO, is_server)?;
        is_seen.then(|| used.with(0.0))
    })
}

const OPERATIONS: &[Metric] = &[disk::READ_PER_S, disk::WRITE_PER_S, disk::FLUSH_PER_S];
const REQUESTS: &[Metric] = &[disk::READ_PER_S, disk::WRITE_PER_S];
const BYTES: &[Metric] = &[disk::READ_BYTES_PER_S, disk::WRITE_BYTES_PER_S];

fn clients(bench: &Bench<'_>) -> f64 {
    bench.document.clients().unwrap_or(1).max(1) as f64
}

/// Whether the run is a closed loop in which clients always have an operation.
pub(super) fn is_closed(bench: &Bench<'_>) -> bool {
    let mut phases = bench.document.phases.iter();
    bench.document.recorded_plan().schedule_kind() == Some(ScheduleKind::Closed)
        && phases.all(|phase| phase.mean_think_time_us.is_none())
}

fn disk_mean(view: &View<'_>, metrics: &[Metric]) -> Option<Read> {
    let (rows, series) = view.disk_rows(metrics)?;
    let value = mean_over_time(&rows, |value| value);
    Some(Read { value, series })
}

fn variation(view: &View<'_>, metrics: &[Metric]) -> Option<Read> {
    let (rows, series) = view.disk_rows(metrics)?;
    let mean = mean_over_time(&rows, |value| value);
    let variance = mean_over_time(&rows, |value| (value - mean).powi(2));
    (mean > 0.0).then(|| Read { value: variance.sqrt() / mean, series })
}

/// The mean of the readings, weighted by their length.
fn mean_over_time(rows: &[WeightedRow], of: impl Fn(f64) -> f64) -> f64 {
    let sum: f64 = rows.iter().map(|row| of(row.value) * row.duration_s).sum();
    sum / rows.iter().map(|row| row.duration_s).sum::<f64>()
}

/// Mean number of requests in the disk and its queue from which some wait.
const QUEUED: f64 = 1.5;
/// Mean request time from which requests wait in the queue. A fast disk works on many requests at once: its
/// queue and utilization show the demand, not whether it could do more.
const LONG_S: f64 = 1e-3;
/// Utilization up to which a disk counts as idle.
const IDLE: f64 = 0.25;

fn backed_up(view: &View<'_>) -> Option<Read> {
    let busy = view.disk(disk::UTILIZATION_RATIO)?;
    let queue = view.disk(disk::QUEUE_COUNT);
    if let Some(queue) = queue
        && queue.value >= QUEUED
        && request_s(view, queue.value).is_none_or(|each_s| each_s >= LONG_S)
    {
        let share = busy.value;
        return Some(busy.and(queue, share));
    }
    // Prefer the machine with this disk.
    let there = view.data_device(view.time_range);
    let waited = there
        .and_then(|(table, _)| view.mean(table, &pressure::IO_SOME_RATIO.id()))
        .or_else(|| view.host_mean(pressure::IO_SOME_RATIO));
    let held_back = waited.filter(|_| busy.value <= IDLE);
    Some(match held_back {
        Some(waited) => {
            let share = (waited.value - busy.value).max(0.0);
            waited.and(busy, share)
        }
        None => busy.with(0.0),
    })
}

/// Mean number of operations in flight.
fn in_flight(view: &View<'_>) -> Option<f64> {
    let inside = view.inside();
    let seconds: f64 = inside.iter().map(|one| one.duration_s).sum();
    let busy = inside.iter().map(|one| one.mean_in_flight * one.duration_s);
    (seconds > 0.0).then(|| busy.sum::<f64>() / seconds)
}

/// Mean time of a request in the disk and its queue, by Little's law.
fn request_s(view: &View<'_>, queue: f64) -> Option<f64> {
    let per_s = disk_mean(view, REQUESTS)?.value;
    (per_s > 0.0).then(|| queue / per_s)
}

fn writes_per_s(view: &View<'_>) -> Option<f64> {
    let seconds: f64 = view.inside().iter().map(|one| one.duration_s).sum();
    let writes: u64 = view.commands_with(true).map(|one| one.count).sum();
    (seconds > 0.0).then(|| writes as f64 / seconds)
}

fn network(view: &View<'_>) -> Option<Read> {
    let shares = view.tables.iter().flat_map(|table| {
        table.instances(network::GROUP).into_iter().filter_map(move |interface| {
            let of = |metric: Metric| view.mean(table, &metric.of(interface));
            let speed = of(network::SPEED_BYTES_PER_S)?.value;
            let (received, sent) =
                (of(network::RECEIVED_BYTES_PER_S)?, of(network::SENT_BYTES_PER_S)?);
            // A link has its full speed in each direction.
            let busier = if received.value > sent.value { received } else { sent };
            let share = busier.value / speed;
            (speed > 0.0).then(|| busier.with(share))
        })
    });
    shares.max_by(|a, b| a.value.total_cmp(&b.value))
}
