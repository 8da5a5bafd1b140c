//! The task of agents on server hosts: start servers, or read running ones.

use super::watched::{RunningServer, on_hosts, running_servers};
use crate::inventory::Inventory;
use crate::permits::Permits;
use dyno_engine::context::Context;
use dyno_engine::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::task::Remote;

/// Task of the agents on server hosts, host by host.
pub(super) enum OnServers {
    /// Each agent starts servers.
    Start {
        /// Address on which the servers of each host listen.
        addresses: Vec<String>,
        /// Names and addresses of each host, for certificates.
        names: Vec<Vec<String>>,
    },
    /// Each agent reads servers that run already, and their machine.
    Watch {
        /// The servers of each host.
        hosts: Vec<Vec<RunningServer>>,
        /// Whether no server is on another host.
        is_whole: bool,
    },
}

impl Default for OnServers {
    /// No task.
    fn default() -> Self {
        OnServers::Watch { hosts: Vec::new(), is_whole: false }
    }
}

impl OnServers {
    pub(super) fn start(inventory: &Inventory, hosts: &[String]) -> Result<Self, Error> {
        let addresses = hosts.iter().map(|host| address(inventory, host));
        let addresses: Vec<String> = addresses.collect::<Result<_, _>>()?;
        let names = hosts.iter().zip(&addresses).map(|(host, address)| {
            let mut names: Vec<String> = vec![address.clone()];
            names.extend(inventory.names(host).into_iter().map(str::to_owned));
            names
        });
        Ok(OnServers::Start { names: names.collect(), addresses })
    }

    /// Names of each host on which servers are started.
    pub(super) fn names(&self) -> &[Vec<String>] {
        match self {
            OnServers::Start { names, .. } => names,
            OnServers::Watch { .. } => &[],
        }
    }

    /// Finds the running servers of each host. Warns about servers on other hosts, which are not read.
    pub(super) fn watch(
        plan: &Plan,
        remote: &Remote,
        inventory: &Inventory,
        hosts: &[String],
        context: Context<'_>,
    ) -> Result<Self, Error> {
        // A refused login must be reported before anything is copied to a host.
        let running = running_servers(plan, remote, hosts, context)?;
        if hosts.is_empty() {
            return Ok(OnServers::default());
        }
        let (hosts, others) = on_hosts(inventory, hosts, running)?;
        let is_whole = others.is_empty();
        if !is_whole {
            let others: Vec<String> = others.iter().map(RunningServer::address).collect();
            context.warning(format!(
                "cannot read the machine of {}: no host of `fleet.servers` has its address",
                others.join(", ")
            ));
        }
        Ok(OnServers::Watch { hosts, is_whole })
    }

    /// Arguments of each host's agent.
    pub(super) fn words(&self, permits: &Permits) -> Vec<Vec<String>> {
        match self {
            OnServers::Start { addresses, .. } => {
                let words = addresses.iter().map(|address| {
                    let mut words = vec!["--serve".to_owned()];
                    words.extend(permits.words_of_server(address));
                    words
                });
                words.collect()
            }
            OnServers::Watch { hosts, .. } => {
                let words = |server: &RunningServer| ["--watch".to_owned(), server.watch_word()];
                let of_host =
                    |servers: &Vec<RunningServer>| servers.iter().flat_map(words).collect();
                hosts.iter().map(of_host).collect()
            }
        }
    }

    /// Summary of the servers for people.
    pub(super) fn describe(&self, hosts: usize, servers: u32) -> String {
        match self {
            OnServers::Watch { .. } if hosts > 0 => {
                format!("watched servers on {}", counted(hosts, "host"))
            }
            OnServers::Watch { .. } => "running servers".to_owned(),
            OnServers::Start { .. } if servers as usize > hosts => {
                format!("{servers} servers on {}", counted(hosts, "host"))
            }
            OnServers::Start { .. } => counted(hosts, "server"),
        }
    }
}

/// `1 host`, `2 hosts`.
pub(super) fn counted(count: usize, name: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// Numeric address of a host, for servers to listen on.
fn address(inventory: &Inventory, host: &str) -> Result<String, Error> {
    use std::net::ToSocketAddrs;
    let name = inventory.address(host);
    let found = (name, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
    found.map(|found| found.ip().to_string()).ok_or_else(|| {
        Error::new(
            Kind::Environment,
            format!("cannot resolve `{name}`, the address of the host `{host}`"),
        )
        .with_hint("set `ansible_host` or `dyno_address` of the host in the inventory")
    })
}
