//! Gathers the subject of the checks from the options, the server's answers, and the process table.
//! Facts that the server does not report stay empty.

use crate::deployment::locality;
use crate::deployment::server::{product_of, round_trip};
use crate::environment::Environment;
use crate::error::{Error, Kind};
use dyno_load::connect::{Connector, Control};
use dyno_load::{prepare, probe};
use dyno_observe::doctor::{OpenServer, Product, ServerFacts, Subject, network, processes};
use dyno_plan::task::Remote;
use dyno_plan::uri::Target;
use dyno_wire::handshake::Hello;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Observation time for other processes: at 100 ticks per second it resolves 4 % of a CPU.
const WATCH: Duration = Duration::from_millis(250);
/// Number of timed empty commands, and their time limit.
const COMMANDS: usize = 200;
const COMMANDS_LIMIT: Duration = Duration::from_secs(5);
/// Longest time for a question to the server.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);

/// Input of the checks.
#[derive(Clone, Default)]
pub struct CheckRequest {
    /// Root of the examined file system, `/` outside of tests.
    pub root: PathBuf,
    /// Connection string of a running server.
    pub uri: Option<String>,
    /// Process of a server without a connection string.
    pub server_pid: Option<u32>,
    /// Servers on this machine, at least 1.
    pub instances: u64,
    /// Cache of each server.
    pub cache_bytes: Option<u64>,
    pub server_version: Option<String>,
    /// Data folder; `None` for the folder that the server reports.
    pub data_dir: Option<PathBuf>,
    /// Size of the documents that will be loaded.
    pub planned_data_bytes: Option<u64>,
    /// Planned number of connections.
    pub connections: Option<u64>,
}

/// Gathers what the doctor needs to know about the machine's server.
///
/// # Errors
/// The server cannot be reached, or the process does not exist.
pub fn subject(request: &CheckRequest, environment: &Environment) -> Result<Subject, Error> {
    let root = request.root.as_path();
    let (mut server, reported) = match (&request.uri, request.server_pid) {
        (Some(uri), _) => {
            let (server, data_dir) = by_uri(uri, root, environment)?;
            (Some(server), data_dir)
        }
        (None, Some(pid)) => (Some(by_process(pid, root)?), None),
        (None, None) => (by_options(request), None),
    };
    if let Some(server) = &mut server {
        server.instances = request.instances;
        server.cache_bytes = request.cache_bytes.or(server.cache_bytes);
        server.version = request.server_version.clone().or(server.version.take());
    }
    Ok(Subject {
        data_dir: request.data_dir.clone().or(reported),
        planned_data_bytes: request.planned_data_bytes,
        connections: request.connections,
        found: match &server {
            None if root == Path::new("/") => found_servers(root),
            _ => Vec::new(),
        },
        server,
        watch: WATCH,
        own: Vec::new(),
    })
}

/// Facts about the local server that listens on a port. Facts that need a user stay empty.
pub fn of_port(port: u16, root: &Path) -> ServerFacts {
    let pid = network::listener_pid(root, port).ok();
    let open = network::listening(root, port).unwrap_or_default();
    let address = open.first().map(|ip| reachable(SocketAddr::new(*ip, port)));
    let mut way = address.and_then(way_to);
    let said = way.as_mut().and_then(|(_, control)| {
        control.set_limit(Some(QUESTION_LIMIT));
        prepare::server_facts(control).ok()
    });
    let said = said.unwrap_or_default();
    let authentication = way.and_then(|(target, _)| probe::requires_password(&target));
    ServerFacts {
        product: product_of(said.product.as_deref()),
        version: said.version,
        storage_engine: said.storage_engine,
        pid,
        address,
        cache_bytes: said.cache_bytes,
        authentication,
        ..ServerFacts::default()
    }
}

/// Local servers that other machines can reach. Only root sees servers of other users.
fn found_servers(root: &Path) -> Vec<OpenServer> {
    let pids = std::fs::read_dir(root.join("proc"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let found = pids.filter_map(|pid: u32| {
        let name = processes::name(root, pid).ok()?;
        if matches!(product_of_process(&name), Product::Other(_)) {
            return None;
        }
        let mut addresses = network::listening_of(root, pid).ok()?;
        addresses.retain(|address| !address.ip().is_loopback());
        addresses.sort_by_key(SocketAddr::port);
        let way = way_to(reachable(*addresses.first()?));
        if way.as_ref().is_some_and(|(_, control)| serves_nothing(control.hello())) {
            return None;
        }
        let authentication = way.and_then(|(target, _)| probe::requires_password(&target));
        Some(OpenServer { pid, name, addresses, authentication })
    });
    found.collect()
}

/// Connects to a local server without a user, and with TLS if it does not answer without it.
fn way_to(address: SocketAddr) -> Option<(Target, Control)> {
    let reach = |options: &str| {
        let text =
            format!("mongodb://{address}/?directConnection=true&connectTimeoutMS=1000{options}");
        let target = Remote::parse(&text).ok()?.target;
        let control = Connector::new(&target, None).ok()?.control().ok()?;
        Some((target, control))
    };
    // The certificate need not be verified: nothing secret is sent.
    reach("").or_else(|| reach("&tls=true&tlsInsecure=true"))
}

/// Whether the server is a replica-set member without data, such as an arbiter, or is not ready.
fn serves_nothing(hello: &Hello) -> bool {
    hello.set_name.is_some() && !hello.is_writable_primary && !hello.secondary
}

/// Facts about a server known only from options.
fn by_options(request: &CheckRequest) -> Option<ServerFacts> {
    let is_described =
        request.server_version.is_some() || request.cache_bytes.is_some() || request.instances > 1;
    is_described.then(ServerFacts::default)
}

fn by_process(pid: u32, root: &Path) -> Result<ServerFacts, Error> {
    let name = processes::name(root, pid).map_err(|health| {
        let reason = health.reason().to_owned();
        Error::new(Kind::Environment, reason)
            .context(format!("cannot check process {pid}"))
            .with_hint("list the servers with `pgrep -a mongod`")
    })?;
    let open = network::listening_of(root, pid).unwrap_or_default();
    let address = open.into_iter().min_by_key(SocketAddr::port).map(reachable);
    Ok(ServerFacts {
        product: product_of_process(&name),
        pid: Some(pid),
        address,
        authentication: address
            .and_then(way_to)
            .and_then(|(target, _)| probe::requires_password(&target)),
        ..ServerFacts::default()
    })
}

/// Address to connect to, for an open address.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// The kernel keeps 15 letters of a name.
fn product_of_process(name: &str) -> Product {
    match name {
        "mongod" | "mongos" => Product::MongoDb,
        name if name.starts_with("secantusd") => Product::Embedded,
        name => Product::Other(name.to_owned()),
    }
}

/// Queries the server. Also returns its data folder, if it is on this machine.
fn by_uri(
    uri: &str,
    root: &Path,
    environment: &Environment,
) -> Result<(ServerFacts, Option<PathBuf>), Error> {
    let remote = Remote::parse(uri)?;
    let connector = Connector::new(&remote.target, remote.credentials.clone())
        .map_err(|error| Error::from(error).context("cannot use the connection string"))?;
    let mut control = connector
        .control()
        .map_err(|error| Error::from(error).context("cannot connect to the server"))?;
    control.set_limit(Some(QUESTION_LIMIT));
    let said = prepare::server_facts(&mut control)?;
    let address = control.endpoint().addresses().first().copied();
    let local = locality::is_local(&remote, environment.hostname.as_deref())
        || address.is_some_and(|at| is_own(at.ip()) && !locality::is_tunnel(at.port()));
    let data_dir = said.settings.get("storage.dbPath").filter(|_| local).map(PathBuf::from);
    let pid = address.filter(|_| local).and_then(|at| network::listener_pid(root, at.port()).ok());
    let server = ServerFacts {
        product: product_of(said.product.as_deref()),
        available_connections: prepare::available_connections(&mut control)?,
        tracing: prepare::active_tracing(&mut control, &said.settings)?,
        version: said.version,
        storage_engine: said.storage_engine,
        local,
        pid,
        address,
        cache_bytes: said.cache_bytes,
        authentication: probe::requires_password(&remote.target),
        round_trip: round_trip(&mut control, COMMANDS, COMMANDS_LIMIT),
        ..ServerFacts::default()
    };
    Ok((server, data_dir))
}

/// Whether an address belongs to this machine: only own addresses can be bound.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_is_recognized_by_reply_and_process_name() {
        assert_eq!(product_of(None), Product::MongoDb);
        assert_eq!(product_of(Some("MongoDB enterprise")), Product::MongoDb);
        assert_eq!(product_of(Some("psmdb")), Product::MongoDb);
        assert_eq!(product_of(Some("secantus")), Product::Embedded);
        assert_eq!(product_of(Some("ferretdb")), Product::Other("ferretdb".into()));
        assert_eq!(product_of_process("mongod"), Product::MongoDb);
        assert_eq!(product_of_process("secantusd-rs"), Product::Embedded);
        assert_eq!(product_of_process("java"), Product::Other("java".into()));
    }

    #[test]
    fn addresses_are_own_if_they_can_be_bound() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        // Reserved for documentation: no machine has it.
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 77).into()));
    }
}
