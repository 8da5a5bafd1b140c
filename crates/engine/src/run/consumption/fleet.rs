//! Consumption of a fleet's phases. Agents read their machines at their own times, and the
//! controller receives each phase's counter growth as the utilization of servers and devices.

use dyno_record::consumption::{Consumption, Counted, DeviceUse, Unknown};
use dyno_record::disk::DiskUse;
use dyno_record::model::{PhaseKind, ResourceKind, ResourceUse};

/// Reason for values that agents never count.
const NOT_COUNTED: &str = "the agents of a fleet do not count it";

/// Reason for unknown deferred writes.
const NOT_ASKED: &str = "the servers of a fleet do not write their pending changes early";

/// Reason for a value that some agents did not read.
const NOT_READ: &str = "not all server hosts were read";

/// Consumption of a phase from the agents' readings, which are `every_s` apart; `None` if they read
/// nothing.
pub(in crate::run) fn of_resources(
    resources: &[ResourceUse],
    phase: PhaseKind,
    [start_s, end_s]: [f64; 2],
    servers: usize,
    every_s: f64,
) -> Option<Consumption> {
    let of =
        |kind| resources.iter().filter(move |used| used.phase == phase && used.resource == kind);
    let cpus: Vec<f64> = of(ResourceKind::ServerCpu).map(|used| used.busy_s).collect();
    let disks: Vec<&DiskUse> = of(ResourceKind::Disk).flat_map(|used| &used.disks).collect();
    let device = device(&disks);
    if cpus.is_empty() && device.is_none() {
        return None;
    }
    let mut unknown: Vec<Unknown> = [
        (cpus.is_empty(), Counted::ServerCpu, NOT_READ),
        (device.is_none(), Counted::Device, NOT_READ),
        (device.is_some(), Counted::Deferred, NOT_ASKED),
        (true, Counted::ContextSwitches, NOT_COUNTED),
        (true, Counted::Memory, NOT_COUNTED),
        (true, Counted::CacheMisses, NOT_COUNTED),
        (true, Counted::JournalSyncs, NOT_COUNTED),
        (true, Counted::Network, NOT_COUNTED),
        (true, Counted::Energy, NOT_COUNTED),
    ]
    .into_iter()
    .filter(|(is_unknown, ..)| *is_unknown)
    .map(|(_, what, reason)| Unknown { what, reason: reason.to_owned() })
    .collect();
    if device.as_ref().is_some_and(|device| device.flushes.is_none()) {
        unknown.push(Unknown {
            what: Counted::Flushes,
            reason: "the hosts do not count them".to_owned(),
        });
    }
    Some(Consumption {
        phase,
        start_s,
        end_s,
        every_s: Some(every_s),
        processes: if cpus.is_empty() { 0 } else { servers as u64 },
        server_cpu_s: (!cpus.is_empty()).then(|| cpus.iter().sum()),
        device,
        unknown,
        ..Consumption::default()
    })
}

/// All devices together; `None` without any, and if one was not read.
fn device(disks: &[&DiskUse]) -> Option<DeviceUse> {
    let sum = |of: fn(&DiskUse) -> Option<f64>| -> Option<u64> {
        let sum: Option<f64> = disks.iter().map(|disk| of(disk)).sum();
        sum.map(|sum| sum.round() as u64)
    };
    let name = |disk: &&DiskUse| match &disk.host {
        Some(host) => format!("{} on {host}", disk.device),
        None => disk.device.clone(),
    };
    (!disks.is_empty()).then_some(())?;
    Some(DeviceUse {
        names: disks.iter().map(name).collect(),
        read_bytes: sum(|disk| disk.read_bytes)?,
        read_requests: sum(|disk| disk.reads)?,
        written_bytes: sum(|disk| disk.write_bytes)?,
        write_requests: sum(|disk| disk.writes)?,
        flushes: sum(|disk| disk.flushes),
        deferred_bytes: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::ReportedBy;

    fn used(resource: ResourceKind, busy_s: f64, disks: Vec<DiskUse>) -> ResourceUse {
        ResourceUse {
            phase: PhaseKind::Measure,
            resource,
            units: 2,
            allowed: None,
            busy_s,
            duration_s: 10.0,
            reported: Some(ReportedBy { source: "host-db".into(), machine: "db".into() }),
            disks,
        }
    }

    fn disk(host: &str, writes: f64, flushes: Option<f64>) -> DiskUse {
        let grown = [1.0, 2.0, 0.0, writes, 0.0, 0.0, 4096.0 * writes].map(Some);
        DiskUse { flushes, ..DiskUse::of(Some(host), "vda", None, grown).unwrap() }
    }

    fn measured(resources: &[ResourceUse]) -> Option<Consumption> {
        of_resources(resources, PhaseKind::Measure, [1.0, 11.0], 3, 1.0)
    }

    #[test]
    fn machines_and_devices_are_added_up() {
        let mut warmup = used(ResourceKind::ServerCpu, 99.0, Vec::new());
        warmup.phase = PhaseKind::Warmup;
        let resources = [
            warmup,
            used(ResourceKind::ServerCpu, 3.0, Vec::new()),
            used(ResourceKind::ServerHostCpu, 7.0, Vec::new()),
            used(ResourceKind::ServerCpu, 1.5, Vec::new()),
            used(ResourceKind::Disk, 1.0, vec![disk("a", 10.0, Some(2.0))]),
            used(ResourceKind::Disk, 1.0, vec![disk("b", 5.6, Some(1.0))]),
        ];
        let found = measured(&resources).unwrap();
        assert_eq!((found.server_cpu_s, found.processes), (Some(4.5), 3));
        assert_eq!((found.start_s, found.end_s, found.every_s), (1.0, 11.0, Some(1.0)));
        let device = found.device.unwrap();
        assert_eq!(device.names, ["vda on a", "vda on b"]);
        assert_eq!((device.write_requests, device.flushes), (16, Some(3)));
        assert_eq!(device.written_bytes, (4096.0f64 * 15.6).round() as u64);
    }

    #[test]
    fn unread_counters_are_unknown() {
        assert_eq!(measured(&[]), None);
        let unread = DiskUse { writes: None, ..disk("b", 1.0, None) };
        let resources = [
            used(ResourceKind::ServerCpu, 3.0, Vec::new()),
            used(ResourceKind::Disk, 1.0, vec![disk("a", 10.0, None), unread]),
        ];
        let found = measured(&resources).unwrap();
        assert_eq!(found.device, None);
        let reason = |what| found.unknown.iter().find(|one| one.what == what);
        assert_eq!(reason(Counted::Device).unwrap().reason, NOT_READ);
        assert_eq!(reason(Counted::ServerCpu), None);
        assert_eq!(reason(Counted::Network).unwrap().reason, NOT_COUNTED);
        let found = measured(&resources[1..]);
        assert_eq!(found, None, "nothing was read");
        let whole = used(ResourceKind::Disk, 1.0, vec![disk("a", 1.0, None)]);
        let found = measured(&[whole]).unwrap();
        assert_eq!((found.server_cpu_s, found.processes), (None, 0));
        assert!(found.unknown.iter().any(|one| one.what == Counted::Flushes));
    }
}
