//! Ports for programs that do not report the port they chose.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// Ports that the system assigns only on request: below `ip_local_port_range`.
const PORTS: std::ops::Range<u16> = 20_000..32_768;

/// A port that is currently unused.
///
/// It is found without opening a socket: a process that another test starts at that time would inherit a copy of the
/// socket until its program runs, so the port would be taken for the server that needs it, or the copy would accept
/// clients that wait for the server.
///
/// # Panics
/// If all are in use.
pub fn free_port() -> u16 {
    let used: HashSet<u16> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .flat_map(|path| used_ports(&std::fs::read_to_string(path).unwrap_or_default()))
        .collect();
    let count = u64::from(PORTS.end - PORTS.start);
    // Each process uses another order, so that two that search at once choose different ports.
    let first = RandomState::new().hash_one(std::process::id()) % count;
    let all = (0..count).map(|step| PORTS.start + ((first + step) % count) as u16);
    let mut free = all.filter(|port| !used.contains(port));
    free.next().expect("a port is free")
}

/// Local ports in `/proc/net/tcp`: the second column is an address and a port in hexadecimal digits.
fn used_ports(table: &str) -> Vec<u16> {
    let column = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let port = |address: String| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    table.lines().skip(1).filter_map(column).filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_free_port_is_unused_and_can_be_taken() {
        let port = free_port();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert!(used_ports(&table).contains(&port), "{port}:\n{table}");
    }
}
