//! Busy time of remote server machines in a phase, from the metrics of a run: exporters report
//! their CPUs and disks, `serverStatus` the servers' processes. Reads nothing new from those
//! machines.

use crate::busy::{Busy, OF_DISK};
use crate::usage::busy_between;
use dyno_record::disk::DiskUse;
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::{
    PhaseKind, ReportedBy, ResourceKind, ResourceUse, SourceKind, SourceRecord,
};
use dyno_record::names::{self, Metric, cpu, disk, server_cpu, storage};
use std::collections::BTreeMap;

/// Rows without a value that the next row can cover. A late reading, or one after failed readings,
/// covers all the time since the previous one, however long that is.
const MOST_MISSING_ROWS: f64 = 2.5;

/// `serverStatus` as the source of a resource's use.
pub const SERVER_STATUS: &str = "serverStatus";

/// Prefixes of the names of devices that are not disks.
const NO_DISKS: [&str; 6] = ["loop", "ram", "zram", "sr", "fd", "nbd"];

/// A phase of a run.
#[derive(Clone, Copy, Debug)]
pub struct PhaseTime {
    pub phase: PhaseKind,
    /// Time from the start of the run.
    pub start_s: f64,
    /// Time from the start of the run.
    pub end_s: f64,
}

/// The sources of a run with the metrics that they reported.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    pub sources: &'a [SourceRecord],
    pub tables: &'a [MetricTable],
}

/// Resource use of server machines, as reported by exporters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    /// Busy time of CPUs and disks.
    pub uses: Vec<ResourceUse>,
    /// Disks of exporters for which the disk with the data is unknown.
    pub unknown_disks: Vec<UnknownDisk>,
}

/// The disks of a machine if it is unknown which of them holds the data.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownDisk {
    pub source: String,
    /// The disks with their busy share of the phase, the busiest first: it stands for the data's
    /// disk.
    pub disks: Vec<(String, f64)>,
}

/// CPU time of some of the servers.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialCpu {
    /// Names of the servers that did not report it for the whole phase.
    pub missing: Vec<String>,
    /// Number of the other servers.
    pub observed: usize,
    /// CPUs that these used.
    pub cpus: f64,
}

impl Watched<'_> {
    /// The CPU time of the servers' processes, machine by machine. Empty unless all servers
    /// reported their CPU time and number of CPUs: a sum without one of them would be misleading.
    pub fn server_cpu(&self, time: PhaseTime) -> Vec<ResourceUse> {
        let mut machines: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for source in self.of_kind(SourceKind::Server) {
            let Some((busy_s, cpus)) = self.process(source, time) else {
                return Vec::new();
            };
            let (sum_s, most) = machines.entry(machine_of(source)).or_default();
            *sum_s += busy_s;
            *most = cpus.max(*most);
        }
        machines
            .into_iter()
            .map(|(machine, (busy_s, cpus))| {
                let reported =
                    ReportedBy { source: SERVER_STATUS.to_owned(), machine: machine.to_owned() };
                time.used(ResourceKind::ServerCpu, cpus as u64, busy_s, reported)
            })
            .collect()
    }

    /// The CPU time of the servers that reported it, if some did and others did not.
    pub fn partial_server_cpu(&self, time: PhaseTime) -> Option<PartialCpu> {
        let (mut missing, mut busy_s) = (Vec::new(), Vec::new());
        for source in self.of_kind(SourceKind::Server) {
            match self.process(source, time) {
                Some((one_s, _)) => busy_s.push(one_s),
                None => missing.push(source.name.clone()),
            }
        }
        (!busy_s.is_empty() && !missing.is_empty()).then(|| PartialCpu {
            missing,
            observed: busy_s.len(),
            cpus: busy_s.iter().sum::<f64>() / (time.end_s - time.start_s),
        })
    }

    /// CPUs and disks of the servers' machines, as reported by exporters there. If a machine has
    /// several exporters, the first one that reports CPUs counts for CPUs, and the first one that
    /// reports disks for disks.
    pub fn machines(&self, time: PhaseTime) -> Machines {
        let mut found = Machines::default();
        let (mut with_cpus, mut with_disks) = (Vec::new(), Vec::new());
        for source in self.of_kind(SourceKind::Exporter) {
            let machine = machine_of(source);
            let Some(table) = self.table(source) else {
                continue;
            };
            let reported = ReportedBy { source: source.name.clone(), machine: machine.to_owned() };
            let cpus = cpus(table);
            let grown_s = |id: &MetricId| busy_s(source, table, &[id], time);
            let busy_s = grown_s(&cpu::ALL_BUSY_RATIO.id());
            if let Some(busy_s) = busy_s.filter(|_| !with_cpus.contains(&machine)) {
                // The metric is a share of all CPUs.
                let busy_s = busy_s * cpus as f64;
                let kind = ResourceKind::ServerHostCpu;
                found.uses.push(time.used(kind, cpus, busy_s, reported.clone()));
                with_cpus.push(machine);
            }
            if with_disks.contains(&machine) {
                continue;
            }
            let of_disk = |device: &str, metric: Metric| grown_s(&metric.of(device));
            let mut disks: Vec<(&str, f64)> = disks(table)
                .filter_map(|name| Some((name, of_disk(name, disk::UTILIZATION_RATIO)?)))
                .collect();
            disks.sort_by(|a, b| b.1.total_cmp(&a.1));
            let holds_data = |name: &str| {
                let mark = storage::HOLDS_DATA_COUNT.of(name);
                table.column(&mark).is_some()
            };
            let of_data = |(name, _): &&(&str, f64)| holds_data(name);
            let mut chosen: Vec<&(&str, f64)> = disks.iter().filter(of_data).collect();
            if chosen.is_empty() {
                chosen.extend(disks.first());
            }
            let uses = chosen.iter().filter_map(|(name, _)| {
                let grown = OF_DISK.map(|metric| of_disk(name, metric));
                // The exporter does not report how many requests a disk serves at once.
                DiskUse::of(Some(machine), name, None, grown)
            });
            let uses: Vec<DiskUse> = uses.collect();
            if !uses.is_empty() {
                with_disks.push(machine);
                let busy_s = uses.iter().map(|disk| disk.busy_s).sum();
                let units = uses.len() as u64;
                found.uses.push(ResourceUse {
                    disks: uses,
                    ..time.used(ResourceKind::Disk, units, busy_s, reported)
                });
            }
            let is_known = chosen.iter().all(|(name, _)| holds_data(name)) || disks.len() == 1;
            if !is_known {
                let share = |(name, busy_s): &(&str, f64)| {
                    ((*name).to_owned(), busy_s / (time.end_s - time.start_s))
                };
                found.unknown_disks.push(UnknownDisk {
                    source: source.name.clone(),
                    disks: disks.iter().map(share).collect(),
                });
            }
        }
        found
    }

    /// CPU time of a server's process in a phase, and the number of its CPUs.
    fn process(&self, source: &SourceRecord, time: PhaseTime) -> Option<(f64, f64)> {
        let table = self.table(source)?;
        let name = &source.name;
        let parts = [server_cpu::USER_RATIO, server_cpu::SYSTEM_RATIO].map(|one| one.of(name));
        let busy_s = busy_s(source, table, &[&parts[0], &parts[1]], time)?;
        let cpus = table.column(&server_cpu::CPUS_COUNT.of(name))?;
        let cpus = cpus.iter().rev().find(|count| **count >= 1.0)?;
        Some((busy_s, *cpus))
    }

    fn of_kind(&self, kind: SourceKind) -> impl Iterator<Item = &SourceRecord> {
        let of_server = self.sources.iter().filter(|source| source.of_server);
        of_server.filter(move |source| source.kind == kind)
    }

    fn table(&self, source: &SourceRecord) -> Option<&MetricTable> {
        self.tables.iter().find(|table| table.source == source.name)
    }
}

impl PhaseTime {
    fn used(
        self,
        resource: ResourceKind,
        units: u64,
        busy_s: f64,
        reported: ReportedBy,
    ) -> ResourceUse {
        ResourceUse {
            phase: self.phase,
            resource,
            units,
            allowed: None,
            busy_s,
            duration_s: self.end_s - self.start_s,
            reported: Some(reported),
            disks: Vec::new(),
        }
    }
}

/// Busy time in a phase, summed from metrics that are shares of time; `None` if too little of the
/// phase was observed.
fn busy_s(
    source: &SourceRecord,
    table: &MetricTable,
    ids: &[&MetricId],
    time: PhaseTime,
) -> Option<f64> {
    let columns: Vec<&[f64]> = ids.iter().map(|id| table.column(id)).collect::<Option<_>>()?;
    let row_s = source.interval_s * source.readings_per_row as f64;
    let mut busy = Busy::default();
    for (row, at_s) in table.at_s.iter().enumerate() {
        let share: f64 = columns.iter().map(|column| column[row]).sum();
        let longest_s = table.duration_s[row] + row_s * MOST_MISSING_ROWS;
        busy.take(*at_s, share.is_finite().then_some(share), longest_s);
    }
    busy_between(busy.readings(), row_s, time.start_s, time.end_s)
}

fn cpus(table: &MetricTable) -> u64 {
    table.instances(cpu::GROUP).into_iter().filter(|cpu| *cpu != names::ALL_CPUS).count() as u64
}

fn disks(table: &MetricTable) -> impl Iterator<Item = &str> {
    table
        .instances(disk::GROUP)
        .into_iter()
        .filter(|name| !NO_DISKS.iter().any(|begin| name.starts_with(begin)))
}

/// The name of a source's machine. Records of earlier versions contain only its address.
fn machine_of(source: &SourceRecord) -> &str {
    let machine = source.machine.as_deref();
    machine.unwrap_or_else(|| host_of(&source.subject))
}

/// The host of an address: `db1` of `db1:27017` and of `http://db1:9100/metrics`. A path is a
/// socket's path here.
pub fn host_of(address: &str) -> &str {
    let place = address.split_once("://").map_or(address, |(_, rest)| rest);
    if place.starts_with('/') {
        return "localhost";
    }
    let place = place.split(['/', '?']).next().unwrap_or(place);
    match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        // More than one colon without brackets: an IPv6 address without a port.
        None if place.matches(':').count() > 1 => place,
        None => place.split(':').next().unwrap_or(place),
    }
}

#[cfg(test)]
mod tests;
