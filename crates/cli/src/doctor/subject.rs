//! Finds out what is to be checked: from the options, the server's answers, and the table of
//! processes. What the server does not say stays empty.

use crate::args::DoctorArguments;
use crate::exit::{Exit, Failure};
use crate::session::locality;
use crate::surroundings::Surroundings;
use dyno_load::connect::{Connector, Control};
use dyno_load::{prepare, probe};
use dyno_observe::doctor::{Product, RoundTrip, ServerFacts, Subject, network, processes};
use dyno_plan::task::Remote;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long other processes are watched: at 100 ticks per second this tells 4 % of a CPU.
const WATCH: Duration = Duration::from_millis(250);
/// Empty commands that are timed, and how long at most.
const COMMANDS: usize = 200;
const COMMANDS_LIMIT: Duration = Duration::from_secs(5);
/// Longest time for a question to the server.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);

/// What the options name.
pub(crate) fn subject(
    arguments: &DoctorArguments,
    surroundings: &Surroundings,
) -> Result<Subject, Failure> {
    let root = arguments.root.as_path();
    let (mut server, says) = match (&arguments.uri, arguments.server_pid) {
        (Some(uri), _) => {
            let (server, data_dir) = by_uri(uri, root, surroundings)?;
            (Some(server), data_dir)
        }
        (None, Some(pid)) => (Some(by_process(pid, root)?), None),
        (None, None) => (by_options(arguments), None),
    };
    if let Some(server) = &mut server {
        server.instances = arguments.instances;
        server.cache_bytes = arguments.cache.map(|size| size.0).or(server.cache_bytes);
        server.version = arguments.server_version.clone().or(server.version.take());
    }
    Ok(Subject {
        data_dir: arguments.data_dir.clone().or(says),
        planned_data_bytes: arguments.data_size.map(|size| size.0),
        connections: arguments.connections,
        server,
        watch: WATCH,
    })
}

/// A server that is only spoken of.
fn by_options(arguments: &DoctorArguments) -> Option<ServerFacts> {
    let named =
        arguments.server_version.is_some() || arguments.cache.is_some() || arguments.instances > 1;
    named.then(ServerFacts::default)
}

fn by_process(pid: u32, root: &Path) -> Result<ServerFacts, Failure> {
    let name = processes::name(root, pid).map_err(|health| {
        let reason = health
            .reason()
            .unwrap_or("it cannot be looked at")
            .to_owned();
        Failure::new(Exit::Environment, reason)
            .context(format!("there is no process {pid} to check"))
            .with_hint("`pgrep -a mongod` lists the servers")
    })?;
    let open = network::listening_of(root, pid).unwrap_or_default();
    Ok(ServerFacts {
        product: product_of_process(&name),
        pid: Some(pid),
        address: open.into_iter().min_by_key(SocketAddr::port).map(reachable),
        ..ServerFacts::default()
    })
}

/// An address to connect to, of one that is open.
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

/// Asks the server; also the folder of its data, if it is on this machine.
fn by_uri(
    uri: &str,
    root: &Path,
    surroundings: &Surroundings,
) -> Result<(ServerFacts, Option<PathBuf>), Failure> {
    let remote = Remote::parse(uri)?;
    let connector = Connector::new(&remote.target, remote.credentials.clone())
        .map_err(|error| Failure::from(error).context("cannot use the connection string"))?;
    let mut control = connector
        .control()
        .map_err(|error| Failure::from(error).context("cannot connect to the server"))?;
    control.set_limit(Some(QUESTION_LIMIT));
    let said = prepare::server_facts(&mut control)?;
    let address = control.endpoint().addresses().first().copied();
    let local = locality::is_local(&remote, surroundings.hostname.as_deref())
        || address.is_some_and(|at| is_own(at.ip()) && !locality::is_tunnel(at.port()));
    let data_dir = said
        .settings
        .get("storage.dbPath")
        .filter(|_| local)
        .map(PathBuf::from);
    let pid = address
        .filter(|_| local)
        .and_then(|at| network::listener_pid(root, at.port()).ok());
    let server = ServerFacts {
        product: product_of(said.product.as_deref()),
        version: said.version,
        storage_engine: said.storage_engine,
        local,
        pid,
        address,
        cache_bytes: said.cache_bytes,
        authentication: probe::asks_for_password(&remote.target),
        round_trip: round_trip(&mut control, COMMANDS, COMMANDS_LIMIT),
        ..ServerFacts::default()
    };
    Ok((server, data_dir))
}

/// A machine can bind its own addresses only.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// By the name in the server's build information.
pub(crate) fn product_of(product: Option<&str>) -> Product {
    match product {
        Some(name) if name.starts_with("secantus") => Product::Embedded,
        Some(name) if !name.starts_with("MongoDB") && name != "psmdb" => {
            Product::Other(name.to_owned())
        }
        _ => Product::MongoDb,
    }
}

/// Times empty commands; `None` if the server does not answer them.
pub(crate) fn round_trip(
    control: &mut Control,
    count: usize,
    limit: Duration,
) -> Option<RoundTrip> {
    let times = probe::round_trips(control, count, limit).ok()?;
    Some(RoundTrip {
        count: times.count,
        median_us: times.median_us,
        p99_us: times.p99_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_told_apart_by_what_they_say_and_by_their_process() {
        assert_eq!(product_of(None), Product::MongoDb);
        assert_eq!(product_of(Some("MongoDB enterprise")), Product::MongoDb);
        assert_eq!(product_of(Some("psmdb")), Product::MongoDb);
        assert_eq!(product_of(Some("secantus")), Product::Embedded);
        assert_eq!(
            product_of(Some("ferretdb")),
            Product::Other("ferretdb".into())
        );
        assert_eq!(product_of_process("mongod"), Product::MongoDb);
        assert_eq!(product_of_process("secantusd-rs"), Product::Embedded);
        assert_eq!(product_of_process("java"), Product::Other("java".into()));
    }

    #[test]
    fn own_addresses_are_those_that_can_be_bound() {
        assert!(is_own(Ipv4Addr::LOCALHOST.into()));
        // Reserved for documentation: no machine has it.
        assert!(!is_own(Ipv4Addr::new(192, 0, 2, 77).into()));
    }
}
