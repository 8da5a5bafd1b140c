//! Which exporters watch the machine of a server.

use crate::deployment::locality;
use dyno_observe::reported_use::host_of;
use dyno_plan::model::ExporterPlan;
use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};

/// Whether an exporter is about the machine of a server: as the plan says, else if it has the address of one of `servers`. An
/// address of this machine where a tunnel listens may lead to any other, of which the plan has to say.
pub(super) fn is_of_server(
    exporter: &ExporterPlan,
    servers: &[String],
    hostname: Option<&str>,
) -> bool {
    let place = |address: &str| Place::of(address, hostname, locality::is_tunnel);
    exporter.of_server.unwrap_or_else(|| {
        let own = place(&exporter.url);
        let mut servers = servers.iter();
        servers.any(|server| own.is_that_of(&place(server)))
    })
}

/// The machine that an address leads to.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Here,
    /// Somewhere, by a tunnel.
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
            return if is_beyond {
                Place::Beyond
            } else {
                Place::Here
            };
        }
        Place::At { host, addresses }
    }

    fn is_that_of(&self, other: &Place) -> bool {
        match (self, other) {
            (Place::Here, Place::Here) => true,
            (
                Place::At { host, addresses },
                Place::At {
                    host: other,
                    addresses: others,
                },
            ) => host == other || !addresses.is_disjoint(others),
            _ => false,
        }
    }
}

/// The port of `http://db1:9100/metrics`, and of `db1:27017`.
fn port_of(address: &str) -> Option<u16> {
    let place = address.split_once("://").map_or(address, |(_, rest)| rest);
    let place = place.split(['/', '?']).next()?;
    place.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str) -> Place {
        Place::of(address, Some("bench-1"), |port| port == 7)
    }

    #[test]
    fn an_exporter_is_at_the_machine_of_a_server_that_has_its_address() {
        let server = place("10.0.0.2:27017");
        assert!(place("http://10.0.0.2:9100/metrics").is_that_of(&server));
        assert!(!place("http://10.0.0.3:9100/metrics").is_that_of(&server));
        assert!(!place("http://127.0.0.1:9100/metrics").is_that_of(&server));
        let sixth = place("[fd00::2]:27017");
        assert!(place("https://[fd00::2]:9100/metrics").is_that_of(&sixth));
        // A name that nobody knows is itself.
        let named = place("db.invalid:27017");
        assert!(place("http://DB.invalid/metrics?x=1").is_that_of(&named));
        assert!(!place("http://db2.invalid/metrics").is_that_of(&named));
    }

    #[test]
    fn a_tunnel_leads_to_no_machine_that_is_known() {
        let here = place("127.0.0.1:27017");
        assert!(place("http://localhost:9100/metrics").is_that_of(&here));
        assert!(place("http://Bench-1:9100/metrics").is_that_of(&here));
        assert!(!place("http://127.0.0.1:7/metrics").is_that_of(&here));
        assert!(!place("http://127.0.0.1:7/metrics").is_that_of(&place("127.0.0.1:7")));
    }
}
