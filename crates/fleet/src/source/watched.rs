//! Finds which running server is on which host with an agent.

use crate::inventory::Inventory;
use dyno_engine::context::Context;
use dyno_engine::deployment::server::{ServerPaths, ServerUnderTest};
use dyno_engine::{Error, refuse};
use dyno_load::prepare::server_facts;
use dyno_plan::Plan;
use dyno_plan::task::Remote;
use dyno_plan::uri::Host;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::path::Path;

/// Setting in which a server reports its data folder.
const DATA_FOLDER_SETTING: &str = "storage.dbPath";

/// A server that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunningServer {
    host: String,
    port: u16,
    /// Data folder as reported by the server; untrusted.
    folder: Option<String>,
}

impl RunningServer {
    /// `HOST:PORT`.
    pub(super) fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Value of `--watch` for the agent. Omits folders with unusual characters: a server may report anything, and Ansible processes
    /// the value. The agent then reads the command line of the process.
    pub(super) fn watch_word(&self) -> String {
        match self.folder.as_deref().filter(|folder| is_plain(folder)) {
            Some(folder) => format!("{}={folder}", self.port),
            None => self.port.to_string(),
        }
    }
}

/// Whether a folder is absolute and free of characters that Ansible or a shell interpret.
fn is_plain(folder: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "/._+@:=-".contains(c);
    folder.starts_with('/') && folder.chars().all(is_usual)
}

/// The data-bearing servers of a running deployment. Its `hosts` are the hosts to watch.
///
/// # Errors
/// The servers cannot be reached, or are behind routers that hide them.
pub(super) fn running_servers(
    plan: &Plan,
    remote: &Remote,
    hosts: &[String],
    context: Context<'_>,
) -> Result<Vec<RunningServer>, Error> {
    let paths =
        ServerPaths { environment: context.environment, embedded: None, folder: Path::new("") };
    let mut server = ServerUnderTest::running(plan, remote.clone(), &paths)?;
    server.set_cancel_check(context.cancel.patience());
    let is_mongos = server.control()?.hello().is_mongos;
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    if is_mongos {
        let text = "`fleet.servers` names hosts, but the connection string leads to a `mongos`, which does not report where the data is";
        return refuse(
            text,
            "remove `fleet.servers`, and add exporters of the shards to `observe.exporters`",
        );
    }
    let found = server.hosts()?.into_iter().filter_map(|host| match &host {
        Host::Tcp { host: name, port } => Some(RunningServer {
            host: name.clone(),
            port: *port,
            folder: data_folder(&server, host.clone()),
        }),
        // A socket is on each client, not on a named host.
        Host::Unix(_) => None,
    });
    Ok(found.collect())
}

/// A server's data folder; `None` if it does not report one or cannot be asked.
fn data_folder(server: &ServerUnderTest, host: Host) -> Option<String> {
    let mut control = server.connector_to(host).ok()?.control().ok()?;
    let facts = server_facts(&mut control).ok()?;
    facts.settings.get(DATA_FOLDER_SETTING).cloned()
}

/// All names and addresses of a host.
#[derive(Clone, Debug, Default)]
struct Place {
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

impl Place {
    fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Place {
        let mut place = Place::default();
        for name in names {
            let found = (name, 0).to_socket_addrs().into_iter().flatten();
            let found = found.map(|address| match address.ip() {
                own if own.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
                other => other,
            });
            place.addresses.extend(found);
            place.names.insert(name.to_ascii_lowercase());
        }
        place
    }

    fn is_that_of(&self, other: &Place) -> bool {
        !self.names.is_disjoint(&other.names) || !self.addresses.is_disjoint(&other.addresses)
    }
}

/// The servers on each of these hosts, and those on no host.
///
/// # Errors
/// A host without a server.
pub(super) fn on_hosts(
    inventory: &Inventory,
    hosts: &[String],
    servers: Vec<RunningServer>,
) -> Result<(Vec<Vec<RunningServer>>, Vec<RunningServer>), Error> {
    let named: Vec<String> = servers.iter().map(RunningServer::address).collect();
    let places: Vec<Place> = hosts.iter().map(|host| Place::of(inventory.names(host))).collect();
    let mut all: Vec<Vec<RunningServer>> = hosts.iter().map(|_| Vec::new()).collect();
    let mut left = Vec::new();
    for server in servers {
        let is_called = |host: &String| {
            let names = [host.as_str(), inventory.address(host)];
            names.iter().any(|name| name.eq_ignore_ascii_case(&server.host))
        };
        let place = Place::of([server.host.as_str()]);
        // Several hosts may share an address, such as a tunnel's.
        let by_name = hosts.iter().position(is_called);
        let by_place = || places.iter().position(|own| place.is_that_of(own));
        match by_name.or_else(by_place) {
            Some(host) => all[host].push(server),
            None => left.push(server),
        }
    }
    if let Some(host) = all.iter().position(Vec::is_empty) {
        let text = format!(
            "`fleet.servers` names the host `{}`, but no server of the connection string is there: they are {}",
            hosts[host],
            named.join(", ")
        );
        return refuse(
            text,
            "set the host's `dyno_address` in the inventory to its server's address, or remove the host",
        );
    }
    Ok((all, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"_meta": {"hostvars": {
        "db1": {"ansible_host": "10.0.0.1", "dyno_address": "192.168.0.1"},
        "db2": {"ansible_host": "10.0.0.2"},
        "here": {"ansible_connection": "local"},
        "tunnel1": {"ansible_host": "127.0.0.1", "ansible_port": 2201},
        "tunnel2": {"ansible_host": "127.0.0.1", "ansible_port": 2202, "dyno_address": "127.0.0.2"}
    }}, "servers": {"hosts": ["db1", "db2", "here", "tunnel1", "tunnel2"]}}"#;

    fn server(host: &str, port: u16) -> RunningServer {
        RunningServer { host: host.to_owned(), port, folder: None }
    }

    /// The servers on each host, and those on no host.
    fn found(
        hosts: &[&str],
        servers: &[(&str, u16)],
    ) -> Result<(Vec<Vec<String>>, Vec<String>), Error> {
        let inventory = Inventory::parse(LIST).expect("valid");
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let servers = servers.iter().map(|(host, port)| server(host, *port));
        let texts =
            |all: Vec<RunningServer>| all.iter().map(RunningServer::address).collect::<Vec<_>>();
        let (all, left) = on_hosts(&inventory, &hosts, servers.collect())?;
        Ok((all.into_iter().map(texts).collect(), texts(left)))
    }

    #[test]
    fn server_is_matched_to_a_host_by_name_or_address() {
        let set = [("10.0.0.2", 1), ("192.168.0.1", 2), ("DB1", 3), ("fd00::9", 4)];
        let (of_hosts, left) = found(&["db1", "db2"], &set).expect("both have a server");
        assert_eq!(of_hosts, [vec!["192.168.0.1:2", "DB1:3"], vec!["10.0.0.2:1"]]);
        assert_eq!(left, ["[fd00::9]:4"]);
        let (of_hosts, _) = found(&["here"], &[("127.0.0.1", 1), ("::1", 2)]).expect("it has");
        assert_eq!(of_hosts, [["127.0.0.1:1", "[::1]:2"]]);
    }

    #[test]
    fn host_without_a_server_is_named_with_the_servers() {
        let error = found(&["db1", "db2"], &[("10.0.0.1", 27017)]).expect_err("nothing on db2");
        assert_eq!(error.kind, dyno_engine::Kind::BadInput);
        let text = error.to_string();
        assert!(text.contains("`db2`") && text.contains("10.0.0.1:27017"), "{text}");
        // Two names of one machine, which would count twice.
        assert!(found(&["db1", "db1"], &[("10.0.0.1", 1)]).is_err());
    }

    #[test]
    fn name_takes_precedence_over_a_shared_address() {
        let hosts = ["tunnel1", "tunnel2"];
        let (of_hosts, left) = found(&hosts, &[("127.0.0.2", 2), ("localhost", 1)]).expect("both");
        assert_eq!(of_hosts, [["localhost:1"], ["127.0.0.2:2"]]);
        assert_eq!(left, [""; 0]);
        let (of_hosts, _) = found(&hosts, &[("Tunnel2", 2), ("::1", 1)]).expect("both");
        assert_eq!(of_hosts, [["[::1]:1"], ["Tunnel2:2"]]);
    }

    #[test]
    fn agent_gets_the_port_and_folder_that_the_server_reports() {
        let mut server = server("db", 7);
        assert_eq!(server.watch_word(), "7");
        server.folder = Some("/data/a=b".into());
        assert_eq!(server.watch_word(), "7=/data/a=b");
    }

    #[test]
    fn folder_that_ansible_or_a_shell_could_evaluate_is_not_sent() {
        let mut server = server("db", 7);
        for folder in [
            "/data/{{ lookup('ansible.builtin.pipe', 'touch /tmp/x') }}",
            "/data/{% raw %}",
            "/data/{# x #}",
            "/data/two words",
            "/data/\"quoted\"",
            "/data/'quoted'",
            "/data/a;b",
            "/data/a\nb",
            "/data/$(touch x)",
            "/data/$HOME",
            "/data/`touch x`",
            "/data/ü",
            "data/db",
            "~/db",
            "",
        ] {
            server.folder = Some(folder.into());
            assert_eq!(server.watch_word(), "7", "{folder:?}");
        }
    }
}
