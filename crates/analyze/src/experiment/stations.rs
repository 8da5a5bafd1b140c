//! Stations that operations wait for: CPUs of server and client, and a disk with a known limit.

use super::machines;
use dyno_record::experiment::{Demand, DiskLimits, Figures, Level, SharedCpus};

/// Name of the CPUs that server and client share.
pub(super) const SHARED_CPUS: &str = "CPUs of server and client";

/// Whether server and client compete for CPUs, and for how many if known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharing {
    is_shared: bool,
    together: Option<SharedCpus>,
}

#[cfg(test)]
impl Sharing {
    /// Server and client may use the same CPUs.
    pub(super) const SAME: Sharing = Sharing { is_shared: true, together: None };
}

impl From<&Figures> for Sharing {
    fn from(figures: &Figures) -> Sharing {
        Sharing { is_shared: figures.shares_cpus, together: figures.shared_cpus }
    }
}

impl From<&Level> for Sharing {
    fn from(level: &Level) -> Sharing {
        Sharing { is_shared: level.shares_cpus, together: level.shared_cpus }
    }
}

/// The CPUs that operations wait for. If server and client compete for CPUs, these are one station, unless one
/// side's own limit is used up first: the client's threads, which may be fewer, its own CPUs, or a quota. Then
/// both are separate stations: the shared CPUs never saturate, and an operation's time at the client counts
/// once. Use by other processes is not included.
pub(super) fn cpus(demands: &[Demand], sharing: Sharing) -> Vec<Demand> {
    let of = |name: &str| demands.iter().find(|demand| demand.name == name);
    let servers = machines::server_cpus(demands);
    let (server, client) = (of("server CPU"), of("client CPU"));
    let both = server.zip(client).filter(|_| sharing.is_shared);
    let shared = both.map(|(server, client)| Demand {
        name: SHARED_CPUS.to_owned(),
        servers: match sharing.together {
            Some(together) => together.cpus,
            None => server.servers.max(client.servers),
        },
        quota: sharing.together.and_then(|together| together.quota),
        demand_s: server.demand_s + client.demand_s,
        uncertainty_ratio: server.uncertainty_ratio.max(client.uncertainty_ratio),
    });
    let one_binds = |shared: &Demand| {
        let mut own = server.into_iter().chain(client);
        own.any(|own| own.per_server_s() > shared.per_server_s())
    };
    match shared {
        Some(shared) if !one_binds(&shared) => vec![shared],
        _ => servers.into_iter().chain(client).cloned().collect(),
    }
}

/// The stations that operations wait for: CPUs, and the disk if its limit is known. The wait for any other disk
/// is a delay.
pub(super) fn stations(
    demands: &[Demand],
    sharing: Sharing,
    disk: Option<&DiskLimits>,
) -> Vec<Demand> {
    let disk = disk.and_then(|disk| disk.known.as_ref());
    let mut stations = cpus(demands, sharing);
    stations.extend(disk.map(|limit| limit.demand.clone()));
    stations
}

/// Whether the CPU time of the servers or of their machines is known, without which their limits are unknown.
pub(super) fn knows_server(demands: &[Demand]) -> bool {
    !machines::server_cpus(demands).is_empty()
}
