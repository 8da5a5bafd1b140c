//! Assigns sources to machines: an exporter may share a server's machine, and a machine may have
//! several names.

use crate::deployment::locality;
use dyno_observe::reported_use::host_of;
use dyno_plan::model::ExporterPlan;
use dyno_record::model::{SourceKind, SourceRecord};
use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};

/// Whether an exporter is on the machine of a server: as the plan says, or if it has the address of
/// one of `servers`. A local address with a tunnel may lead anywhere, so the plan must say it.
pub(super) fn is_of_server(
    exporter: &ExporterPlan,
    servers: &[String],
    hostname: Option<&str>,
) -> bool {
    let place = |address: &str| Place::of(address, hostname, locality::is_tunnel);
    exporter.of_server.unwrap_or_else(|| {
        let own = place(&exporter.url);
        servers.iter().any(|server| own.is_that_of(&place(server)))
    })
}

/// Names the machine of each server and exporter. All addresses of a machine get the name of its
/// first source.
pub(super) fn name_machines(sources: &mut [SourceRecord], hostname: Option<&str>) {
    let mut known: Vec<(Place, String)> = Vec::new();
    let is_meant = |source: &&mut SourceRecord| {
        matches!(source.kind, SourceKind::Server | SourceKind::Exporter)
    };
    for source in sources.iter_mut().filter(is_meant) {
        let place = Place::of(&source.subject, hostname, locality::is_tunnel);
        let found = known.iter().find(|(other, _)| place.is_that_of(other));
        let name = match (found, &place) {
            (Some((_, name)), _) => name.clone(),
            // Behind a tunnel another port may lead to another machine.
            (None, Place::Beyond) => address_of(&source.subject).to_owned(),
            (None, _) => host_of(&source.subject).to_owned(),
        };
        source.machine = Some(name.clone());
        known.push((place, name));
    }
}

/// The machine behind an address.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Here,
    /// Anywhere, through a tunnel.
    Beyond,
    At {
        host: String,
        addresses: BTreeSet<IpAddr>,
    },
}

impl Place {
    fn of(address: &str, hostname: Option<&str>, is_tunnel: impl Fn(u16) -> bool) -> Place {
        let host = host_of(address).to_ascii_lowercase();
        let is_own_name = hostname.is_some_and(|own| own.eq_ignore_ascii_case(&host));
        let found = (host.as_str(), 0).to_socket_addrs();
        let addresses: BTreeSet<IpAddr> = found.into_iter().flatten().map(|one| one.ip()).collect();
        if is_own_name || addresses.iter().any(IpAddr::is_loopback) {
            let is_beyond = port_of(address).is_some_and(is_tunnel);
            return if is_beyond { Place::Beyond } else { Place::Here };
        }
        Place::At { host, addresses }
    }

    fn is_that_of(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Here, Place::Here) => true,
            (Place::At { host, addresses }, Place::At { host: other, addresses: others }) => {
                host == other || !addresses.is_disjoint(others)
            }
            _ => false,
        }
    }
}

/// The host and port of `http://db1:9100/metrics`, and of `db1:27017`.
fn address_of(address: &str) -> &str {
    let place = address.split_once("://").map_or(address, |(_, rest)| rest);
    place.split(['/', '?']).next().unwrap_or(place)
}

fn port_of(address: &str) -> Option<u16> {
    address_of(address).rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::SourceHealth;

    fn place(address: &str) -> Place {
        Place::of(address, Some("bench-1"), |port| port == 7)
    }

    #[test]
    fn exporter_belongs_to_the_server_machine_with_its_address() {
        let server = place("10.0.0.2:27017");
        assert!(place("http://10.0.0.2:9100/metrics").is_that_of(&server));
        assert!(!place("http://10.0.0.3:9100/metrics").is_that_of(&server));
        assert!(!place("http://127.0.0.1:9100/metrics").is_that_of(&server));
        let sixth = place("[fd00::2]:27017");
        assert!(place("https://[fd00::2]:9100/metrics").is_that_of(&sixth));
        // An unresolvable name is used as it is.
        let named = place("db.invalid:27017");
        assert!(place("http://DB.invalid/metrics?x=1").is_that_of(&named));
        assert!(!place("http://db2.invalid/metrics").is_that_of(&named));
    }

    #[test]
    fn machine_has_one_name_for_all_its_addresses() {
        let subjects = [
            (SourceKind::Host, "bench-1"),
            (SourceKind::Server, "127.0.0.1:27017"),
            (SourceKind::Server, "db.invalid:27017"),
            (SourceKind::Exporter, "http://localhost:9100/metrics"),
            (SourceKind::Exporter, "http://[::1]:9101/metrics"),
            (SourceKind::Exporter, "http://BENCH-1:9102/metrics"),
            (SourceKind::Exporter, "http://DB.invalid:9100/metrics"),
            (SourceKind::Exporter, "http://10.0.0.2:9100/metrics"),
        ];
        let source = |(kind, subject): (SourceKind, &str)| SourceRecord {
            name: subject.to_owned(),
            kind,
            subject: subject.to_owned(),
            machine: None,
            of_server: true,
            interval_s: 1.0,
            readings_per_row: 1,
            health: SourceHealth::Healthy,
            reason: None,
            missing: Vec::new(),
            readings: 1,
            missed: 0,
            outages: Vec::new(),
            cpu_s: 0.0,
            cpu_ratio: 0.0,
        };
        let mut sources = subjects.map(source);
        name_machines(&mut sources, Some("bench-1"));
        let names = sources.each_ref().map(|source| source.machine.as_deref());
        let here = Some("127.0.0.1");
        let expected = [
            None,
            here,
            Some("db.invalid"),
            here,
            here,
            here,
            Some("db.invalid"),
            Some("10.0.0.2"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn tunnel_leads_to_an_unknown_machine() {
        let here = place("127.0.0.1:27017");
        assert!(place("http://localhost:9100/metrics").is_that_of(&here));
        assert!(place("http://Bench-1:9100/metrics").is_that_of(&here));
        assert!(!place("http://127.0.0.1:7/metrics").is_that_of(&here));
        assert!(!place("http://127.0.0.1:7/metrics").is_that_of(&place("127.0.0.1:7")));
    }
}
