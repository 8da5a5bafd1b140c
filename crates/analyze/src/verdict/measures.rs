//! The figures that rules refer to, each defined once.

use super::bench::{Bench, Read, TimeRange, WeightedRow, is_server, mean, sum_on};
use super::by_servers;
use super::checkpoints;
use super::cpu_time::{host_cpus, largest_of_cpus, of_workers, others, processes, server_cpus};
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
    pub(super) fn read(self, bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
        let read = self.watched(bench, time_range)?;
        if !read.value.is_finite() || self.is_share() && !(0.0..=MOST_SHARE).contains(&read.value) {
            return None;
        }
        let value = read.value.min(if self.is_share() { 1.0 } else { f64::MAX });
        Some(read.with(value))
    }

    // Long, because it has an arm for each measure: the compiler checks completeness only in one match.
    fn watched(self, bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
        match self {
            Measure::ServerCpuRatio if bench.is_fleet() => {
                let of_host = bench.worst_host(|table| {
                    let used = sum_on(table, process::CPU_RATIO, is_server, time_range)?;
                    let share = used.value / host_cpus(bench, table, time_range)?;
                    Some(used.with(share))
                });
                of_host.or_else(|| by_servers::cpu_ratio(bench, time_range))
            }
            Measure::ServerCpuRatio => {
                match processes(bench, process::CPU_RATIO, is_server, time_range) {
                    Some(used) => {
                        let share = used.value / server_cpus(bench, time_range)?;
                        Some(used.with(share))
                    }
                    None => by_servers::cpu_ratio(bench, time_range),
                }
            }
            Measure::ClientWaitRatio => {
                of_workers(bench, &[process::WORKERS_WAIT_RATIO], time_range)
            }
            Measure::ClientFullRatio => {
                let both = [process::WORKERS_CPU_RATIO, process::WORKERS_WAIT_RATIO];
                of_workers(bench, &both, time_range)
            }
            Measure::StartDelayMs => {
                let response_us = bench.response_us(time_range).filter(|_| !is_closed(bench))?;
                let delay_us = response_us - bench.service_us(time_range, &[])?;
                Some(Read::of(delay_us.max(0.0) / 1e3))
            }
            Measure::WriteOverReadRatio => {
                let writes_us = bench.service_us(time_range, &WRITES)?;
                let reads_us = bench.service_us(time_range, &READS)?;
                Some(Read::of(writes_us / reads_us))
            }
            Measure::CheckpointSlowdownRatio => checkpoints::slowdown(bench, time_range),
            Measure::FlatterOperationsRatio => {
                let operations = variation(bench, OPERATIONS, time_range)?;
                let bytes = variation(bench, BYTES, time_range)?;
                let share = operations.value / bytes.value.max(1e-9);
                Some(operations.and(bytes, share))
            }
            Measure::ConnectionsPerOperationRatio => {
                let opened = Measure::ConnectionsPerS.read(bench, time_range)?;
                let share = opened.value / bench.rate_per_s(time_range)?.max(1e-9);
                Some(opened.with(share))
            }
            Measure::ServerWaitingCount if bench.is_fleet() => bench
                .worst_host(|table| sum_on(table, process::CPU_WAIT_RATIO, is_server, time_range))
                .or_else(|| bench.largest_elsewhere(pressure::CPU_SOME_RATIO, time_range)),
            Measure::ServerWaitingCount => {
                processes(bench, process::CPU_WAIT_RATIO, is_server, time_range)
                    .or_else(|| bench.largest_elsewhere(pressure::CPU_SOME_RATIO, time_range))
            }
            Measure::ServerBusiestThreadRatio => {
                bench.largest(process::BUSIEST_THREAD_RATIO, is_server, time_range)
            }
            Measure::HostBusyRatio => bench.host_mean(cpu::ALL_BUSY_RATIO, time_range),
            Measure::BusiestCpuRatio => largest_of_cpus(bench, cpu::BUSY_RATIO, time_range),
            Measure::BusiestInterruptsRatio => {
                largest_of_cpus(bench, cpu::SOFTIRQ_RATIO, time_range)
            }
            Measure::OthersCpuCount => others(bench, time_range),
            Measure::StealRatio => bench.host_mean(cpu::ALL_STEAL_RATIO, time_range),
            Measure::IowaitRatio => bench.host_mean(cpu::ALL_IOWAIT_RATIO, time_range),
            Measure::ServerThrottledRatio => throttled(bench, time_range),
            Measure::DiskSaturationRatio => {
                let pressure = bench.host_mean(pressure::IO_SOME_RATIO, time_range);
                let busy = bench.disk(disk::UTILIZATION_RATIO, time_range);
                pressure.into_iter().chain(busy).max_by(|a, b| a.value.total_cmp(&b.value))
            }
            Measure::DiskBackedUpRatio => backed_up(bench, time_range),
            Measure::DiskOperationsPerS => disk_mean(bench, OPERATIONS, time_range),
            Measure::DiskOperationsVariationRatio => variation(bench, OPERATIONS, time_range),
            Measure::DiskBytesPerS => disk_mean(bench, BYTES, time_range),
            Measure::DiskRequestBytes => {
                let bytes = disk_mean(bench, BYTES, time_range)?;
                let requests = disk_mean(bench, REQUESTS, time_range)?;
                let each = bytes.value / requests.value;
                (requests.value > 0.0).then(|| bytes.and(requests, each))
            }
            Measure::DiskBytesVariationRatio => variation(bench, BYTES, time_range),
            Measure::ReadBytesPerOperation => {
                let into_cache =
                    bench.sum_over(names::cache::READ_BYTES_PER_S, |_| true, time_range);
                let from_disk = || bench.disk(disk::READ_BYTES_PER_S, time_range);
                let read = into_cache.or_else(from_disk)?;
                let each = read.value / bench.rate_per_s(time_range).filter(|rate| *rate > 0.0)?;
                Some(read.with(each))
            }
            Measure::DataOverCacheRatio => {
                let server = &bench.document.server;
                let (data, cache) = (server.data_bytes? as f64, server.cache_bytes? as f64);
                (cache > 0.0).then(|| Read::of(data / cache))
            }
            Measure::CacheHitRatio => bench.smallest(names::cache::HIT_RATIO, time_range),
            Measure::ApplicationEvictionsPerS => {
                bench.sum_over(names::cache::EVICTED_BY_APPLICATION_PER_S, |_| true, time_range)
            }
            Measure::CheckpointRatio => checkpoints::ratio(bench, time_range),
            Measure::LogSyncMs => bench.largest(log::SYNC_MEAN_MS, |_| true, time_range),
            Measure::SyncsPerWrite => {
                // If a journal is synced on a schedule, whatever the writes request, the disk gives the same
                // number.
                let syncs = bench.sum_over(log::SYNCS_PER_S, |_| true, time_range);
                let flushes = || bench.disk(disk::FLUSH_PER_S, time_range);
                let syncs = syncs.or_else(flushes)?;
                let each =
                    syncs.value / writes_per_s(bench, time_range).filter(|rate| *rate > 0.0)?;
                Some(syncs.with(each))
            }
            Measure::TicketsRatio => {
                let reads = (tickets::READ_IN_USE_COUNT, tickets::READ_TOTAL_COUNT);
                let writes = (tickets::WRITE_IN_USE_COUNT, tickets::WRITE_TOTAL_COUNT);
                let both = [reads, writes].into_iter();
                let both =
                    both.filter_map(|(used, all)| bench.largest_share([used, all], time_range));
                both.max_by(|a, b| a.value.total_cmp(&b.value))
            }
            Measure::QueueCount => bench.sum_over(queue::TOTAL_COUNT, |_| true, time_range),
            Measure::QueuedRatio => {
                let queued = Measure::QueueCount.read(bench, time_range)?;
                // Operations of others also queue.
                let under_way = in_flight(bench, time_range)?.max(queued.value);
                let share = queued.value / under_way.max(1.0);
                Some(queued.with(share))
            }
            Measure::SwapBytesPerS => bench.worst_host(|table| {
                let swapped = mean(table, &paging::SWAP_IN_BYTES_PER_S.id(), time_range)?;
                let out = mean(table, &paging::SWAP_OUT_BYTES_PER_S.id(), time_range)?;
                let sum = swapped.value + out.value;
                Some(swapped.and(out, sum))
            }),
            Measure::MemoryPressureRatio => {
                bench.host_mean(pressure::MEMORY_SOME_RATIO, time_range)
            }
            Measure::AvailableMemoryRatio => {
                let shares = bench.server_hosts().filter_map(|table| {
                    let available = mean(table, &memory::AVAILABLE_BYTES.id(), time_range)?;
                    let total = mean(table, &memory::TOTAL_BYTES.id(), time_range)?;
                    let share = available.value / total.value;
                    Some(available.with(share))
                });
                shares.min_by(|a, b| a.value.total_cmp(&b.value))
            }
            Measure::NetworkRatio => network(bench, time_range),
            Measure::RoundTripRatio => {
                let round_trip_us = bench.document.server.round_trip_us?;
                Some(Read::of(round_trip_us / bench.service_us(time_range, &[])?))
            }
            Measure::ConnectionsPerS => {
                bench.sum_over(connections::CREATED_PER_S, |_| true, time_range)
            }
            Measure::InFlightRatio => {
                Some(Read::of(in_flight(bench, time_range)? / clients(bench)))
            }
            Measure::WriteServiceMs => Some(Read::of(bench.service_us(time_range, &WRITES)? / 1e3)),
            Measure::WritesPerS => writes_per_s(bench, time_range).map(Read::of),
            Measure::OperationsPerS => bench.rate_per_s(time_range).map(Read::of),
        }
    }
}

/// A time range of a run with cached measures: many rules use the same ones.
pub(super) struct Seen<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) time_range: TimeRange,
    read: RefCell<HashMap<Measure, Option<Read>>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(bench: &'a Bench<'a>, time_range: TimeRange) -> Self {
        Seen { bench, time_range, read: RefCell::default() }
    }

    /// The value of a measure; `None` if it was not watched.
    pub(super) fn read(&self, measure: Measure) -> Option<Read> {
        let mut known = self.read.borrow_mut();
        let read =
            known.entry(measure).or_insert_with(|| measure.read(self.bench, self.time_range));
        read.clone()
    }
}

/// A watched process without a limit is never throttled. The agent next to a server in a pod sees its process
/// but not its control group, so its throttling is unknown.
fn throttled(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let reported = bench.largest(cgroup::CPU_THROTTLED_PERIODS_RATIO, is_server, time_range);
    reported.or_else(|| {
        let group = bench.largest(cgroup::IO_LIMITED_COUNT, is_server, time_range);
        let is_seen = !bench.is_fleet() || group.is_some();
        let used = processes(bench, process::CPU_RATIO, is_server, time_range)?;
        is_seen.then(|| used.with(0.0))
    })
}

const OPERATIONS: &[Metric] = &[disk::READ_PER_S, disk::WRITE_PER_S, disk::FLUSH_PER_S];
const REQUESTS: &[Metric] = &[disk::READ_PER_S, disk::WRITE_PER_S];
const BYTES: &[Metric] = &[disk::READ_BYTES_PER_S, disk::WRITE_BYTES_PER_S];

const WRITES: [&str; 3] = ["insert", "update", "delete"];
const READS: [&str; 2] = ["read", "scan"];

fn clients(bench: &Bench<'_>) -> f64 {
    bench.document.clients().unwrap_or(1).max(1) as f64
}

/// Whether the run is a closed loop in which clients always have an operation.
pub(super) fn is_closed(bench: &Bench<'_>) -> bool {
    let mut phases = bench.document.phases.iter();
    bench.document.recorded_plan().schedule_kind() == Some(ScheduleKind::Closed)
        && phases.all(|phase| phase.mean_think_time_us.is_none())
}

fn disk_mean(bench: &Bench<'_>, metrics: &[Metric], time_range: TimeRange) -> Option<Read> {
    let (rows, series) = bench.disk_rows(metrics, time_range)?;
    let value = mean_over_time(&rows, |value| value);
    Some(Read { value, series })
}

fn variation(bench: &Bench<'_>, metrics: &[Metric], time_range: TimeRange) -> Option<Read> {
    let (rows, series) = bench.disk_rows(metrics, time_range)?;
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

fn backed_up(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let busy = bench.disk(disk::UTILIZATION_RATIO, time_range)?;
    let queue = bench.disk(disk::QUEUE_COUNT, time_range);
    if let Some(queue) = queue
        && queue.value >= QUEUED
        && request_s(bench, queue.value, time_range).is_none_or(|each_s| each_s >= LONG_S)
    {
        let share = busy.value;
        return Some(busy.and(queue, share));
    }
    // Prefer the machine with this disk.
    let there = bench.data_device(time_range);
    let waited = there
        .and_then(|(table, _)| mean(table, &pressure::IO_SOME_RATIO.id(), time_range))
        .or_else(|| bench.host_mean(pressure::IO_SOME_RATIO, time_range));
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
fn in_flight(bench: &Bench<'_>, time_range: TimeRange) -> Option<f64> {
    let inside = bench.inside(time_range);
    let seconds: f64 = inside.iter().map(|one| one.duration_s).sum();
    let busy = inside.iter().map(|one| one.mean_in_flight * one.duration_s);
    (seconds > 0.0).then(|| busy.sum::<f64>() / seconds)
}

/// Mean time of a request in the disk and its queue, by Little's law.
fn request_s(bench: &Bench<'_>, queue: f64, time_range: TimeRange) -> Option<f64> {
    let per_s = disk_mean(bench, REQUESTS, time_range)?.value;
    (per_s > 0.0).then(|| queue / per_s)
}

fn writes_per_s(bench: &Bench<'_>, time_range: TimeRange) -> Option<f64> {
    let seconds: f64 = bench.inside(time_range).iter().map(|one| one.duration_s).sum();
    let writes = bench.commands(time_range).filter(|one| WRITES.contains(&one.operation.as_str()));
    let writes: u64 = writes.map(|one| one.count).sum();
    (seconds > 0.0).then(|| writes as f64 / seconds)
}

fn network(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let shares = bench.tables.iter().flat_map(|table| {
        table.instances(network::GROUP).into_iter().filter_map(move |interface| {
            let of = |metric: Metric| mean(table, &metric.of(interface), time_range);
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
