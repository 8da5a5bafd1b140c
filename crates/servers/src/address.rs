//! The listening addresses of a server, the address for this machine, and the advertised address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;

use crate::{ServerOptions, ServerProgram};

/// Addresses that a server binds. A `mongod` or `mongos` that others reach listens on loopback as
/// well, because the first user can be created only there. The embedded server binds one address.
pub(crate) fn bound(kind: ServerProgram, listen: IpAddr) -> Vec<IpAddr> {
    match kind {
        ServerProgram::Embedded => vec![listen],
        _ if listen == Ipv6Addr::UNSPECIFIED => vec![listen, Ipv4Addr::UNSPECIFIED.into()],
        _ if listen.is_loopback() || listen.is_unspecified() => vec![listen],
        _ => vec![Ipv4Addr::LOCALHOST.into(), listen],
    }
}

/// The address by which this machine reaches a server that listens on `listen`: loopback if
/// possible.
pub(crate) fn local(kind: ServerProgram, listen: IpAddr) -> IpAddr {
    match (kind, listen) {
        (_, own) if own.is_loopback() => own,
        (ServerProgram::Embedded, IpAddr::V6(Ipv6Addr::UNSPECIFIED)) => Ipv6Addr::LOCALHOST.into(),
        (ServerProgram::Embedded, own) if !own.is_unspecified() => own,
        _ => Ipv4Addr::LOCALHOST.into(),
    }
}

/// The name or address that clients and members use.
pub(crate) fn public(options: &ServerOptions) -> String {
    let own = || options.listen.to_string();
    let public = options.advertise.clone().unwrap_or_else(own);
    public.to_ascii_lowercase()
}

/// Names and addresses in a server's certificate, in addition to the names of loopback: the host
/// name, the advertised name, and the listening address, or all addresses of the machine if the
/// server listens on all.
///
/// # Errors
/// The addresses of the machine cannot be read.
pub(crate) fn certificate_names(
    options: &ServerOptions,
    host_name: Option<&str>,
) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = host_name.map(str::to_owned).into_iter().collect();
    names.push(public(options));
    if options.listen.is_unspecified() {
        let mut own: Vec<IpAddr> = own_addresses()?.into_iter().map(|(_, own)| own).collect();
        own.sort();
        own.dedup();
        names.extend(own.iter().map(IpAddr::to_string));
    } else {
        names.push(options.listen.to_string());
    }
    Ok(names)
}

/// All addresses of this machine, each with the name of its network interface.
///
/// # Errors
/// The kernel does not report them.
pub fn own_addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let found = getifaddrs().map_err(io::Error::from)?;
    let addresses = found.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|own| IpAddr::V4(own.ip()));
        let own = v4.or_else(|| address.as_sockaddr_in6().map(|own| IpAddr::V6(own.ip())))?;
        Some((interface.interface_name, own))
    });
    Ok(addresses.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reachable_mongod_listens_on_loopback_as_well() {
        let of = |kind, listen: &str| {
            let listen = listen.parse().unwrap();
            let bound: Vec<_> = bound(kind, listen).iter().map(IpAddr::to_string).collect();
            (bound.join(","), local(kind, listen).to_string())
        };
        for (listen, expected, reached) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
            ("127.0.0.2", "127.0.0.2", "127.0.0.2"),
            ("::1", "::1", "::1"),
            ("10.0.0.1", "127.0.0.1,10.0.0.1", "127.0.0.1"),
            ("fd00::1", "127.0.0.1,fd00::1", "127.0.0.1"),
            ("0.0.0.0", "0.0.0.0", "127.0.0.1"),
            ("::", "::,0.0.0.0", "127.0.0.1"),
        ] {
            for kind in [ServerProgram::Mongod, ServerProgram::Mongos] {
                assert_eq!(of(kind, listen), (expected.into(), reached.into()));
            }
        }
        for (listen, reached) in [
            ("127.0.0.1", "127.0.0.1"),
            ("10.0.0.1", "10.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("::", "::1"),
        ] {
            let embedded = of(ServerProgram::Embedded, listen);
            assert_eq!(embedded, (listen.into(), reached.into()));
        }
    }

    #[test]
    fn this_machine_has_a_loopback_address() {
        let loopback = ("lo".to_owned(), Ipv4Addr::LOCALHOST.into());
        assert!(own_addresses().unwrap().contains(&loopback));
    }
}
