//! The figures that rules speak of, each defined once.

use super::bench::{Bench, Read, TimeRange, WeightedRow, is_server, mean, sum_on};
use super::by_servers;
use super::checkpoints;
use super::cpu_time::{host_cpus, largest_of_cpus, of_workers, others, processes, server_cpus};
use dyno_record::document::variant_name;
use dyno_record::names::{
    self, Metric, cgroup, connections, cpu, disk, log, memory, network, paging, pressure, process,
    queue, tickets,
};
use dyno_record::quantity::Unit;
use dyno_record::statement::Number;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;

/// A figure about a stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// CPU time of the servers, as a share of the CPUs that they may use; in a fleet on the host where that is most. Where they
    /// run on another machine, of which no processes are told: of all that runs there, or what they report themselves where
    /// that is known and most of it is work of others.
    ServerCpuRatio,
    /// Time in which worker threads of the client waited for a CPU, as a share of their time.
    ClientWaitRatio,
    /// Time in which worker threads of the client worked or waited for a CPU, as a share of their time; in a fleet of the agent
    /// where that is most.
    ClientFullRatio,
    /// Time from when an operation of an open loop was due until it was sent, on average; a closed loop has none. The
    /// generator waits for the moment by looking at the clock, so that it is busy long before it is late.
    StartDelayMs,
    /// Threads of the servers that waited for a CPU, on average. Where they run on another machine, of which no processes
    /// are told: the share of time in which anything there waited for one, which is less.
    ServerWaitingCount,
    /// Time in which the busiest thread of the servers worked.
    ServerBusiestThreadRatio,
    /// CPU time of the server's machine that was not idle.
    HostBusyRatio,
    /// The busiest CPU of the server's machine.
    BusiestCpuRatio,
    /// The CPU of the server's machine that worked most for interrupts: that share of its time.
    BusiestInterruptsRatio,
    /// CPUs of the server's machine that were not idle and worked neither for the servers nor the client, nor for
    /// interrupts or other machines. Threads of the kernel cannot be told from other processes.
    OthersCpuCount,
    /// CPU time that the hypervisor gave to others.
    StealRatio,
    /// Time in which the CPUs were idle and something waited for a disk.
    IowaitRatio,
    /// Periods in which the kernel stopped the servers at their limit of CPU time.
    ServerThrottledRatio,
    /// The share of time in which the data's disk worked, or in which some process waited for I/O if that is more.
    DiskSaturationRatio,
    /// The share of time in which requests waited before the data's disk: in its queue, if that held more than one on
    /// average and kept them for a time that is long for any disk, or held back by a limit that the disk itself does not see, so that it is idle while processes wait.
    DiskBackedUpRatio,
    /// Reads, writes and flushes per second of the data's disk.
    DiskOperationsPerS,
    /// How much they vary: standard deviation as a share of the mean.
    DiskOperationsVariationRatio,
    /// Bytes per second of the data's disk.
    DiskBytesPerS,
    /// How much they vary: standard deviation as a share of the mean.
    DiskBytesVariationRatio,
    /// Mean size of the reads and writes of the data's disk.
    DiskRequestBytes,
    /// Bytes read into the server's cache for each operation; from the data's disk, where the server does not tell.
    ReadBytesPerOperation,
    /// Size of the data as a share of the server's cache.
    DataOverCacheRatio,
    /// Pages that the server found in its cache, as a share of those it asked for.
    CacheHitRatio,
    /// Pages evicted by threads of the application, per second.
    ApplicationEvictionsPerS,
    /// Time in which a checkpoint ran.
    CheckpointRatio,
    /// Mean time of a sync of the server's log.
    LogSyncMs,
    /// Syncs of the server's log for each write.
    SyncsPerWrite,
    /// Service time of writes as a share of that of reads.
    WriteOverReadRatio,
    /// Response times while a checkpoint runs as a share of those at other times. Nothing without enough of both.
    CheckpointSlowdownRatio,
    /// How much the operations of the data's disk vary, as a share of how much its bytes do.
    FlatterOperationsRatio,
    /// Connections that the server accepted, as a share of the operations.
    ConnectionsPerOperationRatio,
    /// Tickets in use of those there are, the larger of reads and writes.
    TicketsRatio,
    /// Operations that queue in the server.
    QueueCount,
    /// Operations that queue in the server, as a share of those under way.
    QueuedRatio,
    /// Bytes swapped in and out per second.
    SwapBytesPerS,
    /// Time in which processes waited for memory.
    MemoryPressureRatio,
    /// Memory that is available, as a share of all.
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

/// Counters are not read at the same instant: a share up to this counts as all.
const MOST_SHARE: f64 = 1.1;

impl Measure {
    /// Its name in records.
    pub fn name(self) -> String {
        variant_name(&self)
    }

    /// A value of it with its unit, which its name ends with.
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

    /// Whether it says how much something varies, for which a few readings are too few.
    pub(super) fn is_variation(self) -> bool {
        matches!(
            self,
            Measure::DiskOperationsVariationRatio
                | Measure::DiskBytesVariationRatio
                | Measure::FlatterOperationsRatio
        )
    }

    /// Whether it is a part of a whole, from 0 to 1.
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

    /// Its value over a stretch; `None` where it was not watched. A share that is clearly more than its whole is of two things
    /// that do not belong together, and is not known either.
    pub(super) fn read(self, bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
        let read = self.watched(bench, time_range)?;
        if !read.value.is_finite() || self.is_share() && !(0.0..=MOST_SHARE).contains(&read.value) {
            return None;
        }
        let value = read.value.min(if self.is_share() { 1.0 } else { f64::MAX });
        Some(read.with(value))
    }

    // Long, as it has an arm for each measure: cut in parts, none would be complete by the compiler's word.
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
                let response_us = bench
                    .response_us(time_range)
                    .filter(|_| !is_closed(bench))?;
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
                let all = pressure.into_iter().chain(busy);
                all.max_by(|a, b| a.value.total_cmp(&b.value))
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
            Measure::ApplicationEvictionsPerS => bench.sum_over(
                names::cache::EVICTED_BY_APPLICATION_PER_S,
                |_| true,
                time_range,
            ),
            Measure::CheckpointRatio => checkpoints::ratio(bench, time_range),
            Measure::LogSyncMs => bench.largest(log::SYNC_MEAN_MS, |_| true, time_range),
            Measure::SyncsPerWrite => {
                // Of a journal that is synced now and then, whatever the writes want, the disk tells the same.
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
                // Operations of others queue as well.
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

/// A stretch of a run with the measures that were read of it: many rules speak of the same ones.
pub(super) struct Seen<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) time_range: TimeRange,
    read: RefCell<HashMap<Measure, Option<Read>>>,
}

impl<'a> Seen<'a> {
    pub(super) fn new(bench: &'a Bench<'a>, time_range: TimeRange) -> Self {
        Seen {
            bench,
            time_range,
            read: RefCell::default(),
        }
    }

    /// The value of a measure; `None` where it was not watched.
    pub(super) fn read(&self, measure: Measure) -> Option<Read> {
        let mut known = self.read.borrow_mut();
        let read = known
            .entry(measure)
            .or_insert_with(|| measure.read(self.bench, self.time_range));
        read.clone()
    }
}

/// A process that was watched and has no limit is never stopped at one. The agent beside a server in a pod sees its process and
/// not its group, so that there nothing is known.
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

/// A closed loop whose clients always have an operation.
pub(super) fn is_closed(bench: &Bench<'_>) -> bool {
    let mut phases = bench.document.phases.iter();
    bench.document.recorded_plan().schedule.is_closed()
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
    (mean > 0.0).then(|| Read {
        value: variance.sqrt() / mean,
        series,
    })
}

/// Each reading weighs as long as it is.
fn mean_over_time(rows: &[WeightedRow], of: impl Fn(f64) -> f64) -> f64 {
    let sum: f64 = rows.iter().map(|row| of(row.value) * row.duration_s).sum();
    sum / rows.iter().map(|row| row.duration_s).sum::<f64>()
}

/// Mean number of requests in the disk and its queue from which on some wait.
const QUEUED: f64 = 1.5;
/// Mean time of a request from which on a queue is one that is waited in. A fast disk works on many requests at once: its
/// queue and its utilization say how much it is asked for, and not that it has no more to give.
const LONG_S: f64 = 1e-3;
/// Share of its time up to which a disk is idle.
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
    // Of the machine with that disk, if it tells.
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

/// Operations under way on average.
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
    let seconds: f64 = bench
        .inside(time_range)
        .iter()
        .map(|one| one.duration_s)
        .sum();
    let writes = bench
        .commands(time_range)
        .filter(|one| WRITES.contains(&one.operation.as_str()));
    let writes: u64 = writes.map(|one| one.count).sum();
    (seconds > 0.0).then(|| writes as f64 / seconds)
}

fn network(bench: &Bench<'_>, time_range: TimeRange) -> Option<Read> {
    let tables = bench.tables.iter();
    let shares = tables.flat_map(|table| {
        table
            .instances(network::GROUP)
            .into_iter()
            .filter_map(move |interface| {
                let of = |metric: Metric| mean(table, &metric.of(interface), time_range);
                let speed = of(network::SPEED_BYTES_PER_S)?.value;
                let (received, sent) = (
                    of(network::RECEIVED_BYTES_PER_S)?,
                    of(network::SENT_BYTES_PER_S)?,
                );
                // A link carries its speed in each direction.
                let busier = if received.value > sent.value {
                    received
                } else {
                    sent
                };
                let share = busier.value / speed;
                (speed > 0.0).then(|| busier.with(share))
            })
    });
    shares.max_by(|a, b| a.value.total_cmp(&b.value))
}
