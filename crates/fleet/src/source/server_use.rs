//! Utilization of a fleet's servers and their disks, from readings of the agents on their hosts.

use dyno_observe::busy::{Busy, OF_DISK};
use dyno_observe::usage::busy_between;
use dyno_record::disk::DiskUse;
use dyno_record::metrics::MetricId;
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse};
use dyno_record::names::{self, process, storage};
use std::collections::BTreeMap;

/// Beats that one reading can cover, because readings may be lost.
const MOST_BEATS: f64 = 3.5;

/// Utilization of the servers of one host.
#[derive(Debug)]
pub(super) struct ServerUse {
    host: String,
    beat_s: f64,
    cpu: Busy,
    /// Largest number of server processes in one reading.
    processes: usize,
    /// Devices with data, by name.
    disks: BTreeMap<String, Disk>,
}

/// Readings of a device.
#[derive(Debug, Default)]
struct Disk {
    /// Requests that it serves at once, if requests end at this device and the host reports it.
    serves: Option<f64>,
    values: [Busy; OF_DISK.len()],
}

impl ServerUse {
    /// Starts for a host that is read every `beat_s` seconds.
    pub(super) fn new(host: &str, beat_s: f64) -> Self {
        ServerUse {
            host: host.to_owned(),
            beat_s,
            cpu: Busy::default(),
            processes: 0,
            disks: BTreeMap::new(),
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Adds a reading.
    pub(super) fn take(&mut self, at_s: f64, values: &[(MetricId, f64)]) {
        let of_server = values
            .iter()
            .filter(|(id, _)| process::CPU_RATIO.is(id) && id.instance() != Some(names::CLIENT));
        let busy: Vec<f64> = of_server.map(|(_, value)| *value).collect();
        self.processes = self.processes.max(busy.len());
        // Without one of the servers, a sum would be incomplete.
        let is_whole = !busy.is_empty() && busy.len() == self.processes;
        let longest_s = self.beat_s * MOST_BEATS;
        let cpus = is_whole.then(|| busy.iter().sum());
        self.cpu.take(at_s, cpus, longest_s);
        // Stacked devices see the same requests. Use the devices where requests end if the host reports them, otherwise the file
        // system's device.
        let is_reported =
            |(id, _): &&(MetricId, f64)| storage::FREE_BYTES.is(id) || storage::SERVES_COUNT.is(id);
        let devices: BTreeMap<&str, Option<f64>> = values
            .iter()
            .filter(is_reported)
            .map(|(id, value)| {
                let serves = storage::SERVES_COUNT.is(id).then_some(*value);
                (id.instance().unwrap_or_default(), serves)
            })
            .fold(BTreeMap::new(), |mut devices, (device, serves)| {
                let known = devices.entry(device).or_default();
                *known = known.or(serves);
                devices
            });
        for (device, serves) in devices {
            let disk = self.disks.entry(device.to_owned()).or_default();
            disk.serves = serves;
            for (metric, busy) in OF_DISK.iter().zip(&mut disk.values) {
                let id = metric.of(device);
                let value = values.iter().find(|(known, _)| *known == id);
                busy.take(at_s, value.map(|(_, value)| *value), longest_s);
            }
        }
    }

    /// Use of the disks; `None` without disks, or if one was not read.
    fn disk_use(&self, start_s: f64, end_s: f64) -> Option<Vec<DiskUse>> {
        let has_ends = self.disks.values().any(|disk| disk.serves.is_some());
        let those = self.disks.iter();
        let those = those.filter(|(_, disk)| disk.serves.is_some() == has_ends);
        let each = those.map(|(device, disk)| {
            let grown = disk
                .values
                .each_ref()
                .map(|one| busy_between(one.readings(), self.beat_s, start_s, end_s));
            let serves_several = disk.serves.map(|serves| serves > 1.0);
            DiskUse::of(Some(&self.host), device, serves_several, grown)
        });
        let found: Vec<DiskUse> = each.collect::<Option<_>>()?;
        (!found.is_empty()).then_some(found)
    }
}

/// Servers of all hosts in a phase as one resource with their `cpus`, and their disks as another. Each is present only if it was
/// read on all hosts.
pub(super) fn server_use<'a>(
    hosts: impl IntoIterator<Item = &'a ServerUse>,
    cpus: u64,
    phase: PhaseKind,
    start_s: f64,
    end_s: f64,
) -> Vec<ResourceUse> {
    let hosts: Vec<&ServerUse> = hosts.into_iter().collect();
    let beat_s = hosts.iter().map(|host| host.beat_s).fold(0.0, f64::max);
    let used = |resource, units: u64, busy_s: f64, disks| ResourceUse {
        phase,
        resource,
        units,
        allowed: None,
        busy_s,
        duration_s: end_s - start_s,
        reported: None,
        disks,
    };
    let busy_s = |host: &&ServerUse| busy_between(host.cpu.readings(), beat_s, start_s, end_s);
    let each_s: Option<Vec<f64>> = hosts.iter().map(busy_s).collect();
    let each_s = each_s.filter(|each_s| cpus > 0 && !each_s.is_empty());
    let cpu = each_s.map(|each_s| {
        let all_s = each_s.iter().sum();
        used(ResourceKind::ServerCpu, cpus, all_s, Vec::new())
    });
    let disks = hosts.iter().map(|host| host.disk_use(start_s, end_s));
    let disks: Option<Vec<Vec<DiskUse>>> = disks.collect();
    let disks = disks.map(|disks| disks.concat());
    let disk = disks.filter(|disks| !disks.is_empty()).map(|disks| {
        let all_s = disks.iter().map(|disk| disk.busy_s).sum();
        used(ResourceKind::Disk, disks.len() as u64, all_s, disks)
    });
    cpu.into_iter().chain(disk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings from second 1 on, each about the previous second: CPUs in use, and the busy share of the disk.
    fn host(busy: &[f64], disk: Option<&[f64]>) -> ServerUse {
        let mut host = ServerUse::new("db", 1.0);
        let place = MetricId::of_instance("storage", "vda1", "free_bytes");
        let storage = disk.map(|_| (place, 1e9));
        let first: Vec<_> = storage.clone().into_iter().collect();
        host.take(1.0, &first);
        for (second, busy) in busy.iter().enumerate() {
            let id = |process| MetricId::of_instance("process", process, "cpu_ratio");
            let mut all = vec![(id("0"), busy / 2.0), (id("1"), busy / 2.0), (id("client"), 9.0)];
            all.extend(storage.clone());
            for device in ["vda", "vda1"] {
                let id = MetricId::of_instance("disk", device, "utilization_ratio");
                all.extend(disk.map(|shares| (id, shares[second])));
            }
            host.take(second as f64 + 2.0, &all);
        }
        host
    }

    fn found(hosts: &[ServerUse], start_s: f64, end_s: f64) -> Vec<(ResourceKind, u64, f64)> {
        let found = server_use(hosts, 8, PhaseKind::Measure, start_s, end_s);
        let duration_s = end_s - start_s;
        assert!(found.iter().all(|one| one.duration_s == duration_s));
        let rounded = |busy_s: f64| (busy_s * 1e6).round() / 1e6;
        found.into_iter().map(|one| (one.resource, one.units, rounded(one.busy_s))).collect()
    }

    #[test]
    fn busy_time_covers_all_servers_in_the_phase() {
        let disk = [1.0, 0.0, 0.5, 0.5, 0.0, 0.5];
        let hosts =
            [host(&[4.0, 1.0, 1.0, 1.0, 1.0, 4.0], Some(&disk)), host(&[2.0; 6], Some(&[0.25; 6]))];
        // CPUs: half a second of 4 CPUs and four seconds of one; two CPUs all the time. Disks: half a second and one of four; a
        // quarter of the time.
        let expected = [
            (ResourceKind::ServerCpu, 8, 2.0 + 4.0 + 9.0),
            (ResourceKind::Disk, 2, 0.5 + 1.0 + 4.5 / 4.0),
        ];
        assert_eq!(found(&hosts, 1.5, 6.0), expected);
    }

    #[test]
    fn small_unseen_part_is_extrapolated_from_the_rest() {
        let hosts = [host(&[1.0; 9], None)];
        let cpu = |busy_s| vec![(ResourceKind::ServerCpu, 8, busy_s)];
        assert_eq!(found(&hosts, 1.0, 11.0), cpu(10.0), "a tenth is missing");
        assert_eq!(found(&hosts, 1.0, 13.0), [], "a quarter is missing");
        assert_eq!(found(&[], 1.0, 2.0), []);
        let silent = [host(&[1.0; 9], None), ServerUse::new("db", 1.0)];
        assert_eq!(found(&silent, 1.0, 9.0), []);
    }

    #[test]
    fn disks_are_reported_where_all_hosts_have_one() {
        let hosts = [host(&[1.0; 9], Some(&[0.5; 9])), host(&[1.0; 9], None)];
        let kinds: Vec<_> = found(&hosts, 1.0, 9.0).iter().map(|one| one.0).collect();
        assert_eq!(kinds, [ResourceKind::ServerCpu]);
    }

    #[test]
    fn array_members_are_listed_when_the_host_reports_them() {
        let mut host = ServerUse::new("db", 1.0);
        let of = |group, device, name, value| (MetricId::of_instance(group, device, name), value);
        for second in 0..=8 {
            host.take(
                f64::from(second),
                &[
                    of("storage", "md0", "free_bytes", 1e9),
                    of("storage", "sda", "serves_count", 1.0),
                    of("storage", "sdb", "serves_count", 32.0),
                    of("disk", "md0", "utilization_ratio", 0.9),
                    of("disk", "sda", "utilization_ratio", 0.75),
                    of("disk", "sda", "queue_count", 2.0),
                    of("disk", "sda", "read_per_s", 100.0),
                    of("disk", "sdb", "utilization_ratio", 0.5),
                ],
            );
        }
        let all = server_use([&host], 0, PhaseKind::Measure, 2.0, 6.0);
        let [disk] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!((disk.units, disk.busy_s), (2, 5.0));
        let first = DiskUse {
            host: Some("db".into()),
            device: "sda".into(),
            serves_several: Some(false),
            busy_s: 3.0,
            queued_s: Some(8.0),
            reads: Some(400.0),
            ..DiskUse::default()
        };
        let second = DiskUse {
            device: "sdb".into(),
            serves_several: Some(true),
            busy_s: 2.0,
            queued_s: None,
            reads: None,
            ..first.clone()
        };
        assert_eq!(disk.disks, [first, second]);
    }

    #[test]
    fn unread_server_of_several_leaves_a_gap() {
        let mut host = ServerUse::new("db", 1.0);
        let id = |process| MetricId::of_instance("process", process, "cpu_ratio");
        host.take(0.0, &[]);
        for second in 1..=10 {
            let both = [(id("0"), 1.0), (id("1"), 1.0)];
            let seen = if second < 5 { 2 } else { 1 };
            host.take(f64::from(second), &both[..seen]);
        }
        let cpu = |busy_s| vec![(ResourceKind::ServerCpu, 8, busy_s)];
        let hosts = [host];
        assert_eq!(found(&hosts, 0.0, 4.0), cpu(8.0));
        assert_eq!(found(&hosts, 0.0, 10.0), []);
    }
}
