//! Readers of the network between client and server: open ports, their owners, and the route.

use crate::health::{Health, Reading};
use crate::host::{container, line, text};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// State of a listening socket.
const LISTEN: &str = "0A";

/// Network route to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub interface: String,
    pub kind: RouteKind,
}

/// Kinds of network interfaces, distinguished by their effect on the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Inside this machine's kernel.
    Loopback,
    /// A software bridge, such as a container engine's.
    Bridge,
    /// One end of a pair whose other end is outside this container.
    Pair,
    /// A network card, or an interface that looks like one.
    Card,
}

struct Listener {
    address: SocketAddr,
    inode: u64,
}

/// Addresses on which a port is open on this machine.
///
/// # Errors
/// Nothing listens there, or the open ports cannot be read.
pub fn listening(root: &Path, port: u16) -> Reading<Vec<IpAddr>> {
    let found = listeners(root, port)?;
    if found.is_empty() {
        let reason = format!("nothing listens on port {port} of this machine");
        return Err(Health::Unsupported { reason });
    }
    Ok(found.into_iter().map(|listener| listener.address.ip()).collect())
}

/// Process that has a port of this machine open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Its short name, as the kernel keeps it: at most 15 characters.
    pub name: String,
    /// How it forwards connections, if it is not a server itself.
    pub relay: Option<Relay>,
}

/// Programs that accept connections for a server and forward them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relay {
    /// To a container of this machine.
    Container,
    /// Through a tunnel or a proxy, usually to another machine.
    Tunnel,
}

/// Short names of such programs.
const RELAYS: [(&str, Relay); 24] = [
    ("docker-proxy", Relay::Container),
    ("rootlessport", Relay::Container),
    ("rootlesskit", Relay::Container),
    ("rootlesskit-doc", Relay::Container),
    ("slirp4netns", Relay::Container),
    ("pasta", Relay::Container),
    // Its name on processors with these instructions.
    ("pasta.avx2", Relay::Container),
    ("passt", Relay::Container),
    ("passt.avx2", Relay::Container),
    // Reserves the port of a Podman container, while the kernel forwards the connections.
    ("conmon", Relay::Container),
    ("gvproxy", Relay::Container),
    ("ssh", Relay::Tunnel),
    ("sshd", Relay::Tunnel),
    ("sshd-session", Relay::Tunnel),
    ("kubectl", Relay::Tunnel),
    ("session-manager", Relay::Tunnel),
    ("cloudflared", Relay::Tunnel),
    ("socat", Relay::Tunnel),
    ("haproxy", Relay::Tunnel),
    ("nginx", Relay::Tunnel),
    ("envoy", Relay::Tunnel),
    ("stunnel", Relay::Tunnel),
    ("stunnel4", Relay::Tunnel),
    ("mongobetween", Relay::Tunnel),
];

impl Relay {
    /// Identifies the relay by the short name of its program.
    pub(super) fn from_name(name: &str) -> Option<Relay> {
        let mut known = RELAYS.iter();
        let (_, relay) = known.find(|(known, _)| *known == name)?;
        Some(*relay)
    }
}

/// Process that listens on a port of this machine, whether it is a server or not. Without
/// privileges, sockets of other users' processes are not visible.
///
/// # Errors
/// The reason why it is not found.
pub fn holder(root: &Path, port: u16) -> Reading<Holder> {
    let inodes: Vec<String> = listeners(root, port)?
        .iter()
        .map(|listener| format!("socket:[{}]", listener.inode))
        .collect();
    let reason = format!("no process that can be inspected listens on port {port}");
    let nobody = || Health::unsupported(&reason);
    if inodes.is_empty() {
        return Err(nobody());
    }
    let folder = root.join("proc");
    let entries = fs::read_dir(&folder).map_err(|error| Health::from_io(&folder, &error))?;
    let mut pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let holds = |pid: &u32| {
        let files = fs::read_dir(folder.join(format!("{pid}/fd")));
        files.is_ok_and(|files| {
            files.flatten().any(|file| {
                fs::read_link(file.path()).is_ok_and(|target| {
                    inodes.iter().any(|inode| target.as_os_str() == inode.as_str())
                })
            })
        })
    };
    let pid = pids.find(holds).ok_or_else(nobody)?;
    let name = line(root, &format!("proc/{pid}/comm"))?;
    Ok(Holder { pid, relay: Relay::from_name(&name), name })
}

/// Server that listens on a port of this machine.
///
/// # Errors
/// The reason why it is not found: no listening process can be inspected, or a program forwards the
/// connections, so the server is elsewhere.
pub fn listener_pid(root: &Path, port: u16) -> Reading<u32> {
    let Holder { pid, name, relay } = holder(root, port)?;
    let where_to = match relay {
        None => return Ok(pid),
        Some(Relay::Container) => "a container",
        Some(Relay::Tunnel) => "another address",
    };
    let reason =
        format!("port {port} belongs to `{name}`, which forwards connections to {where_to}");
    Err(Health::Unsupported { reason })
}

/// Addresses on which a process of this machine waits for connections.
///
/// # Errors
/// The reason why they are not found.
pub fn listening_of(root: &Path, pid: u32) -> Reading<Vec<SocketAddr>> {
    let folder = root.join(format!("proc/{pid}/fd"));
    let files = fs::read_dir(&folder).map_err(|error| Health::from_io(&folder, &error))?;
    let targets: Vec<PathBuf> =
        files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).collect();
    let holds = |listener: &Listener| {
        let name = format!("socket:[{}]", listener.inode);
        targets.iter().any(|target| target.as_os_str() == name.as_str())
    };
    let all = all_listeners(root)?;
    Ok(all.into_iter().filter(holds).map(|listener| listener.address).collect())
}

fn listeners(root: &Path, port: u16) -> Reading<Vec<Listener>> {
    let mut all = all_listeners(root)?;
    all.retain(|listener| listener.address.port() == port);
    Ok(all)
}

fn all_listeners(root: &Path) -> Reading<Vec<Listener>> {
    let old = text(root, "proc/net/tcp");
    let new = text(root, "proc/net/tcp6");
    // Machines without IPv6 do not have the second file.
    let tables = match (old, new) {
        (Err(health), Err(_)) => return Err(health),
        (old, new) => [old.unwrap_or_default(), new.unwrap_or_default()],
    };
    let open = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (address, port) = words.next()?.split_once(':')?;
        let state = words.nth(1)?;
        let inode = words.nth(5)?.parse().ok()?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let address = SocketAddr::new(parse_address(address)?, port);
        (state == LISTEN).then_some(Listener { address, inode })
    };
    let lines = tables.iter().flat_map(|table| table.lines());
    Ok(lines.filter_map(open).collect())
}

/// Parses an address written as 32-bit words in the machine's byte order.
fn parse_address(hexadecimal: &str) -> Option<IpAddr> {
    let word = |index: usize| {
        let digits = hexadecimal.get(index * 8..index * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hexadecimal.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?);
            }
            let address = Ipv6Addr::from(bytes);
            Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
        }
        _ => None,
    }
}

/// The interface through which the kernel would send to an address.
pub(super) fn route(root: &Path, address: IpAddr) -> Reading<Route> {
    if address.is_loopback() {
        return Ok(Route { interface: "lo".to_owned(), kind: RouteKind::Loopback });
    }
    let IpAddr::V4(address) = address else {
        return Err(Health::unsupported("IPv6 routes are not read"));
    };
    let path = "proc/net/route";
    let table = text(root, path)?;
    let interface = interface_of(&table, address)
        .ok_or_else(|| Health::not_understood(&root.join(path), "route to the server"))?;
    Ok(Route { kind: kind_of(root, &interface), interface })
}

/// The route with the longest mask that covers the address.
fn interface_of(table: &str, address: Ipv4Addr) -> Option<String> {
    let address = u32::from_ne_bytes(address.octets());
    let number = |word: &str| u32::from_str_radix(word, 16).ok();
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (interface, destination, mask) = (words.first()?, words.get(1)?, words.get(7)?);
            let (destination, mask) = (number(destination)?, number(mask)?);
            (address & mask == destination).then(|| (mask.count_ones(), (*interface).to_owned()))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, interface)| interface)
}

fn kind_of(root: &Path, interface: &str) -> RouteKind {
    let folder = format!("sys/class/net/{interface}");
    let number = |name: &str| line(root, &format!("{folder}/{name}")).ok();
    if interface == "lo" {
        RouteKind::Loopback
    } else if root.join(&folder).join("bridge").exists() {
        RouteKind::Bridge
    } else if interface.starts_with("veth")
        // The other end of a pair has another number; inside a container, it is in the host.
        || (container(root).is_some() && number("iflink") != number("ifindex"))
    {
        RouteKind::Pair
    } else {
        RouteKind::Card
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::Fixture;
    use std::os::unix::fs::symlink;

    /// One open port on all addresses, one on the loopback address, one connection.
    #[cfg(target_endian = "little")]
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 00000000:6989 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n\
   1: 0100007F:698A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0\n\
   2: 0100007F:698B 0100007F:99E9 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0\n";
    const TCP6: &str = "  sl  local_address remote_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode\n\
   0: 00000000000000000000000001000000:6989 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4714 1 0 100 0 0 10 0\n";

    #[cfg(target_endian = "little")]
    #[test]
    fn open_ports_are_found_in_both_tables() {
        let fixture = Fixture::new().with("proc/net/tcp", TCP).with("proc/net/tcp6", TCP6);
        let root = fixture.root();
        assert_eq!(
            listening(root, 27017),
            Ok(vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::LOCALHOST)])
        );
        assert_eq!(listening(root, 27018), Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
        // A connection is not an open port.
        assert!(matches!(listening(root, 27019), Err(Health::Unsupported { .. })));
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn listening_process_is_found_by_its_socket() {
        let fixture = Fixture::new().with("proc/net/tcp", TCP);
        for (pid, target) in [(7, "socket:[4713]"), (8, "socket:[4712]")] {
            let folder = fixture.root().join(format!("proc/{pid}/fd"));
            fs::create_dir_all(&folder).unwrap();
            symlink(target, folder.join("3")).unwrap();
            fs::write(folder.with_file_name("comm"), "mongod\n").unwrap();
        }
        assert_eq!(listener_pid(fixture.root(), 27018), Ok(8));
        assert!(listener_pid(fixture.root(), 27017).is_err());

        let name = |name: &str| fs::write(fixture.root().join("proc/8/comm"), name).unwrap();
        let relays = [
            ("docker-proxy", Relay::Container, "a container"),
            ("ssh", Relay::Tunnel, "another address"),
        ];
        for (program, relay, where_to) in relays {
            name(&format!("{program}\n"));
            let found = holder(fixture.root(), 27018).unwrap();
            assert_eq!((found.pid, found.relay), (8, Some(relay)));
            let found = listener_pid(fixture.root(), 27018);
            let Err(Health::Unsupported { reason }) = found else {
                panic!("{found:?}");
            };
            let quoted = format!("`{program}`");
            for part in ["27018", quoted.as_str(), where_to] {
                assert!(reason.contains(part), "{part}: {reason}");
            }
        }
    }

    #[test]
    fn own_port_is_found_on_this_machine() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let port = address.port();
        let root = Path::new("/");
        let ours = listening_of(root, std::process::id()).unwrap();
        assert!(ours.contains(&address), "{ours:?}");
        assert_eq!(listener_pid(root, port), Ok(std::process::id()));
        assert_eq!(listening(root, port), Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn longest_mask_decides_the_route() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        let fixture = Fixture::new()
            .with("proc/net/route", table)
            .with("sys/class/net/docker0/bridge/bridge_id", "8000\n")
            .with("sys/class/net/eth0/ifindex", "2\n")
            .with("sys/class/net/eth0/iflink", "9\n");
        let kind = |root: &Path, address: &str| {
            let route = route(root, address.parse().unwrap()).unwrap();
            (route.interface, route.kind)
        };
        let root = fixture.root();
        assert_eq!(kind(root, "172.17.0.2"), ("docker0".to_owned(), RouteKind::Bridge));
        assert_eq!(kind(root, "10.0.0.9"), ("eth0".to_owned(), RouteKind::Card));
        assert_eq!(kind(root, "127.0.0.1"), ("lo".to_owned(), RouteKind::Loopback));
        assert!(route(root, "fe80::1".parse().unwrap()).is_err());
        let inside = fixture.with(".dockerenv", "");
        assert_eq!(kind(inside.root(), "10.0.0.9"), ("eth0".to_owned(), RouteKind::Pair));
    }
}
