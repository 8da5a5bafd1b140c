//! How busy the servers of a fleet and their disks were, by what the agents of their hosts read.

use dyno_observe::busy::Busy;
use dyno_observe::usage::busy_between;
use dyno_record::metrics::MetricId;
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse};
use dyno_record::names::{self, disk, process, storage};
use std::collections::BTreeMap;

/// Beats that one figure can stand for: readings may be lost, and a figure missing.
const MOST_BEATS: f64 = 3.5;

/// What kept the servers of one host busy.
#[derive(Debug)]
pub(super) struct ServerUse {
    beat_s: f64,
    cpu: Busy,
    /// Most processes of servers that were read at once.
    processes: usize,
    /// The devices that hold data, by their names.
    disks: BTreeMap<String, Busy>,
}

impl ServerUse {
    /// Nothing yet of a host that is to be read every `beat_s`.
    pub(super) fn new(beat_s: f64) -> Self {
        ServerUse {
            beat_s,
            cpu: Busy::default(),
            processes: 0,
            disks: BTreeMap::new(),
        }
    }

    /// A reading.
    pub(super) fn take(&mut self, at_s: f64, values: &[(MetricId, f64)]) {
        let of_server = values
            .iter()
            .filter(|(id, _)| process::CPU_RATIO.is(id) && id.instance() != Some(names::CLIENT));
        let busy: Vec<f64> = of_server.map(|(_, value)| *value).collect();
        self.processes = self.processes.max(busy.len());
        // Without one of several servers the rest is no figure of all.
        let is_whole = !busy.is_empty() && busy.len() == self.processes;
        let longest_s = self.beat_s * MOST_BEATS;
        let cpus = is_whole.then(|| busy.iter().sum());
        self.cpu.take(at_s, cpus, longest_s);
        // Of a device and those that it lies on, only the device of the file system: all have the same requests.
        let file_systems = values.iter().filter(|(id, _)| storage::FREE_BYTES.is(id));
        for (id, _) in file_systems {
            let device = id.instance();
            let mut shares = values
                .iter()
                .filter(|(id, _)| disk::UTILIZATION_RATIO.is(id) && id.instance() == device);
            let name = device.unwrap_or_default().to_owned();
            let share = shares.next().map(|(_, share)| *share);
            let disk = self.disks.entry(name).or_default();
            disk.take(at_s, share, longest_s);
        }
    }
}

/// The servers of all hosts in a phase as one resource with their `cpus`, and their disks as another. Each is there only if it
/// was read on all hosts.
pub(super) fn server_use<'a>(
    hosts: impl IntoIterator<Item = &'a ServerUse>,
    cpus: u64,
    phase: PhaseKind,
    start_s: f64,
    end_s: f64,
) -> Vec<ResourceUse> {
    let hosts: Vec<&ServerUse> = hosts.into_iter().collect();
    let beat_s = hosts.iter().map(|host| host.beat_s).fold(0.0, f64::max);
    let all = |resource, units: u64, each: &mut dyn Iterator<Item = &Busy>| {
        let each: Option<Vec<f64>> = each
            .map(|one| busy_between(one.readings(), beat_s, start_s, end_s))
            .collect();
        each.filter(|each| units > 0 && !each.is_empty())
            .map(|each| ResourceUse {
                phase,
                resource,
                units,
                busy_s: each.iter().sum(),
                duration_s: end_s - start_s,
                reported: None,
            })
    };
    let cpu = all(
        ResourceKind::ServerCpu,
        cpus,
        &mut hosts.iter().map(|host| &host.cpu),
    );
    let disks = hosts.iter().flat_map(|host| host.disks.values());
    let units = if hosts.iter().any(|host| host.disks.is_empty()) {
        0
    } else {
        disks.clone().count() as u64
    };
    let disk = all(ResourceKind::Disk, units, &mut disks.into_iter());
    cpu.into_iter().chain(disk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings from second 1 on, each about the second before it: CPUs, and how busy the disk was.
    fn host(busy: &[f64], disk: Option<&[f64]>) -> ServerUse {
        let mut host = ServerUse::new(1.0);
        let place = MetricId::of_instance("storage", "vda1", "free_bytes");
        let storage = disk.map(|_| (place, 1e9));
        let first: Vec<_> = storage.clone().into_iter().collect();
        host.take(1.0, &first);
        for (second, busy) in busy.iter().enumerate() {
            let id = |process| MetricId::of_instance("process", process, "cpu_ratio");
            let mut all = vec![
                (id("0"), busy / 2.0),
                (id("1"), busy / 2.0),
                (id("client"), 9.0),
            ];
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
        found
            .into_iter()
            .map(|one| (one.resource, one.units, rounded(one.busy_s)))
            .collect()
    }

    #[test]
    fn busy_time_is_that_of_all_servers_in_the_phase() {
        let disk = [1.0, 0.0, 0.5, 0.5, 0.0, 0.5];
        let hosts = [
            host(&[4.0, 1.0, 1.0, 1.0, 1.0, 4.0], Some(&disk)),
            host(&[2.0; 6], Some(&[0.25; 6])),
        ];
        // Half a second of 4 CPUs, four seconds of one; and two CPUs all the time. The disks: half a second, and one of four;
        // and a quarter of the time.
        let expected = [
            (ResourceKind::ServerCpu, 8, 2.0 + 4.0 + 9.0),
            (ResourceKind::Disk, 2, 0.5 + 1.0 + 4.5 / 4.0),
        ];
        assert_eq!(found(&hosts, 1.5, 6.0), expected);
    }

    #[test]
    fn what_is_not_seen_is_as_the_rest_if_it_is_little() {
        let hosts = [host(&[1.0; 9], None)];
        let cpu = |busy_s| vec![(ResourceKind::ServerCpu, 8, busy_s)];
        assert_eq!(found(&hosts, 1.0, 11.0), cpu(10.0), "a tenth is missing");
        assert_eq!(found(&hosts, 1.0, 13.0), [], "a quarter is missing");
        assert_eq!(found(&[], 1.0, 2.0), []);
        let silent = [host(&[1.0; 9], None), ServerUse::new(1.0)];
        assert_eq!(found(&silent, 1.0, 9.0), []);
    }

    #[test]
    fn disks_are_reported_where_all_hosts_have_one() {
        let hosts = [host(&[1.0; 9], Some(&[0.5; 9])), host(&[1.0; 9], None)];
        let kinds: Vec<_> = found(&hosts, 1.0, 9.0).iter().map(|one| one.0).collect();
        assert_eq!(kinds, [ResourceKind::ServerCpu]);
    }

    #[test]
    fn one_of_several_servers_that_is_not_read_leaves_a_hole() {
        let mut host = ServerUse::new(1.0);
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
