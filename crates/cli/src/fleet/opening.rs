//! From nothing to a fleet whose agents have come, on hosts or in pods.

use super::checks::check_servers;
use super::cluster::Cluster;
use super::hosts::{Hosts, RedisAddress, Started, Wanted};
use super::open::{Open, Places, PrivateFolder};
use super::{Fleet, absolute, endpoint, reason, run_name, servers_run, version};
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use crate::session::{choice, collection};
use dyno_fleet::FleetError;
use dyno_fleet::controller::{Controller, ControllerOptions};
use dyno_fleet::inventory::Inventory;
use dyno_fleet::limits::raise_file_limit;
use dyno_fleet::shares::shares;
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerKind;
use dyno_plan::uri::redact;
use dyno_servers::locate_embedded;
use std::path::{Path, PathBuf};

/// Longest name of a run: those of its servers have up to 14 characters more, and names in Redis end at 64.
const MOST_CHARACTERS: usize = 50;

/// Free disk that a client host needs for its program and logs, and a server host besides its data.
const NEEDED_DISK_BYTES: u64 = 64 << 20;

/// Whether a name that somebody gave leaves room for those of servers.
pub(crate) fn check_run(given: &str) -> Result<(), Failure> {
    if given.len() > MOST_CHARACTERS {
        let text = format!(
            "the name `{given}` of the run has {} characters, and may have {MOST_CHARACTERS}",
            given.len()
        );
        return Err(Failure::new(Exit::BadInput, text).with_hint("shorten `--fleet-run`"));
    }
    Ok(())
}

/// Free disk that a server host needs, in bytes.
pub(super) fn needed_by_server(plan: &Plan) -> u64 {
    let data = collection::planned_bytes(&plan.data, plan.data.records).unwrap_or(0);
    NEEDED_DISK_BYTES.saturating_add(data)
}

impl Fleet<'_> {
    /// Brings agents to all hosts.
    pub(super) fn open(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        embedded: Option<&Path>,
        hands: Hands<'_>,
    ) -> Result<Open, Failure> {
        raise_file_limit();
        let endpoint = endpoint(&self.arguments.redis, self.surroundings)?;
        let folder = PrivateFolder::create()?;
        let found = self.hosts(fleet, &folder, hands)?;
        let agents = found.agents(fleet);
        let Found {
            hosts,
            inventory,
            clients,
            servers,
        } = found;
        // Who would have nothing to do is told before anything is placed.
        let of_each = if servers.is_empty() { 1 } else { servers.len() };
        shares(plan, agents, of_each as u32).map_err(|error| Failure::of(Exit::BadInput, error))?;
        let run = self.run_of(plan)?;
        let (client_run, server_run) = (run_name(&run)?, servers_run(&run)?);
        let keys = [client_run.clone(), server_run.clone()];
        let programs = self.programs(&run, fleet, &clients, &servers);
        let controller = |run, hosts: &[String], needed| {
            Controller::open(ControllerOptions {
                endpoint: endpoint.clone(),
                run,
                version: version(),
                lease: fleet.lease.0,
                hosts: hosts.to_vec(),
                needed_disk_bytes: needed,
            })
        };
        let per_host = fleet.agents_per_host as usize;
        let agent_hosts: Vec<String> = clients
            .iter()
            .flat_map(|host| std::iter::repeat_n(host.clone(), per_host))
            .collect();
        let client_controller = controller(client_run, &agent_hosts, NEEDED_DISK_BYTES)?;
        let server_controller = match servers.is_empty() {
            true => None,
            false => Some(controller(server_run, &servers, needed_by_server(plan))?),
        };
        let addresses = servers
            .iter()
            .map(|host| address(&inventory, host))
            .collect::<Result<_, _>>()?;
        let wanted = Wanted {
            run: &run,
            programs: &programs,
            server_program: self.server_program(plan, &servers, embedded)?,
            servers: &servers,
            redis: self.redis(),
            redis_ca: self.arguments.redis.redis_ca.clone().map(absolute),
            base: &self.arguments.host_folder,
            program: self.surroundings.executable.clone().ok_or_else(|| {
                Failure::new(Exit::Environment, "the path of this program is not known")
            })?,
        };
        hands.messages.note(&format!(
            "run `{run}`: {} agents on {} hosts, {} servers",
            agent_hosts.len(),
            clients.len(),
            servers.len()
        ));
        let started = hosts.start(&wanted, hands.interrupt);
        let mut open = Open {
            run,
            plan: fleet.clone(),
            kind: plan.server.kind,
            places: Places::Hosts(hosts, clients.iter().chain(&servers).cloned().collect()),
            folder,
            clients: Some(client_controller),
            agents: Vec::new(),
            servers: server_controller,
            server_hosts: Vec::new(),
            addresses,
            uris: Vec::new(),
            endpoint,
            keys,
        };
        let begun = started.and_then(|()| open.gather(fleet.join_within.0, hands));
        if let Err(mut failure) = begun {
            let words = self.end(open, &reason(&failure), hands);
            failure.log_tail.extend(missing_words(&failure, words));
            return Err(failure);
        }
        Ok(open)
    }

    /// Name of the run.
    fn run_of(&self, plan: &Plan) -> Result<String, Failure> {
        let Some(given) = self.arguments.run.clone() else {
            return Ok(format!(
                "{}-{:x}-{:x}",
                plan.name.chars().take(30).collect::<String>(),
                std::process::id(),
                jiff::Timestamp::now().as_millisecond()
            ));
        };
        check_run(&given)?;
        Ok(given)
    }

    /// The same with pods of a cluster, where agents come after the servers: these have nodes of their own, which must be free.
    pub(super) fn open_cluster(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        hands: Hands<'_>,
    ) -> Result<Open, Failure> {
        raise_file_limit();
        let run = self.run_of(plan)?;
        let (client_run, server_run) = (run_name(&run)?, servers_run(&run)?);
        let folder = PrivateFolder::create()?;
        let path = self.surroundings.path.clone();
        let mut cluster = Cluster::new(plan, &run, path, &folder.0)?;
        let pods = cluster.clients();
        hands
            .messages
            .note(&format!("run `{run}`: {pods} agents in pods"));
        let met = cluster.meet(hands.interrupt).and_then(|endpoint| {
            let controller = Controller::open(ControllerOptions {
                endpoint: endpoint.clone(),
                run: client_run.clone(),
                version: version(),
                lease: fleet.lease.0,
                hosts: (0..pods).map(|pod| format!("pod {pod}")).collect(),
                needed_disk_bytes: NEEDED_DISK_BYTES,
            })?;
            Ok((endpoint, controller))
        });
        let logs = self.arguments.logs.clone().map(absolute);
        let (endpoint, controller) = match met {
            Ok(met) => met,
            Err(failure) => {
                cluster.end(logs.as_deref(), hands);
                return Err(failure);
            }
        };
        Ok(Open {
            run,
            plan: fleet.clone(),
            kind: plan.server.kind,
            places: Places::Cluster(Box::new(cluster)),
            folder,
            clients: Some(controller),
            agents: Vec::new(),
            servers: None,
            server_hosts: Vec::new(),
            addresses: Vec::new(),
            uris: Vec::new(),
            endpoint,
            keys: [client_run, server_run],
        })
    }

    /// What is started where. Agents of a host follow each other.
    fn programs(
        &self,
        run: &str,
        fleet: &FleetPlan,
        clients: &[String],
        servers: &[String],
    ) -> Vec<Started> {
        let word = |text: &str| text.to_owned();
        let mut programs = Vec::new();
        let indices = 0_u32..;
        let hosts = clients
            .iter()
            .flat_map(|host| std::iter::repeat_n(host, fleet.agents_per_host as usize));
        for (index, host) in indices.zip(hosts) {
            programs.push(Started {
                name: format!("agent-{index}"),
                host: host.clone(),
                words: vec![word("--run"), word(run), word("--index"), index.to_string()],
            });
        }
        for (index, host) in servers.iter().enumerate() {
            programs.push(Started {
                name: format!("server-{index}"),
                host: host.clone(),
                words: vec![
                    word("--run"),
                    word(run),
                    word("--index"),
                    index.to_string(),
                    word("--serve"),
                ],
            });
        }
        programs
    }

    /// The embedded server is copied; `mongod` must be on the hosts.
    fn server_program(
        &self,
        plan: &Plan,
        servers: &[String],
        embedded: Option<&Path>,
    ) -> Result<Option<PathBuf>, Failure> {
        if servers.is_empty() || plan.server.kind != ServerKind::Embedded {
            return Ok(None);
        }
        let found = locate_embedded(&choice::embedded_places(embedded, self.surroundings))?;
        Ok(Some(absolute(found)))
    }

    /// Looks up the hosts of a plan.
    pub(super) fn hosts(
        &self,
        fleet: &FleetPlan,
        folder: &PrivateFolder,
        hands: Hands<'_>,
    ) -> Result<Found, Failure> {
        let file = self.arguments.inventory.as_deref();
        let path = self.surroundings.path.as_deref();
        let hosts = Hosts::new(file.unwrap_or(Path::new("")), path, folder.0.clone())?;
        let inventory = hosts.inventory(hands.interrupt)?;
        let bad = |error| Failure::of(Exit::BadInput, error).with_hint("see `fleet` in the plan");
        let clients = inventory.hosts(&fleet.clients).map_err(bad)?;
        let servers = inventory.hosts(&fleet.servers).map_err(bad)?;
        check_servers(fleet, &servers)?;
        Ok(Found {
            hosts,
            inventory,
            clients,
            servers,
        })
    }

    /// The address of Redis for the hosts.
    fn redis(&self) -> RedisAddress {
        let given = &self.arguments.redis.redis;
        let secret = self.surroundings.redis.as_ref();
        let text = given
            .as_deref()
            .or_else(|| secret.map(|secret| secret.reveal()));
        match text {
            Some(text) => RedisAddress::Text(text.to_owned()),
            None => {
                let file = self.surroundings.redis_file.clone();
                RedisAddress::File(absolute(file.unwrap_or_default()))
            }
        }
    }
}

/// The hosts of clients and of servers that a plan names.
pub(super) struct Found {
    hosts: Hosts,
    inventory: Inventory,
    clients: Vec<String>,
    pub(super) servers: Vec<String>,
}

impl Found {
    pub(super) fn agents(&self, fleet: &FleetPlan) -> u32 {
        self.clients.len() as u32 * fleet.agents_per_host
    }
}

/// Address of a host as a number, which servers can listen on.
fn address(inventory: &Inventory, host: &str) -> Result<String, Failure> {
    use std::net::ToSocketAddrs;
    let name = inventory.address(host);
    let found = (name, 0)
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next());
    found.map(|found| found.ip().to_string()).ok_or_else(|| {
        Failure::new(
            Exit::Environment,
            format!("`{name}`, of the host `{host}`, has no address"),
        )
        .with_hint("give it `ansible_host` or `dyno_address` in the inventory")
    })
}

/// What those said last in their logs that somebody waited for in vain.
fn missing_words(failure: &Failure, words: Vec<(String, String)>) -> Vec<String> {
    let Some(FleetError::Late { waiting, .. }) = failure.error.downcast_ref::<FleetError>() else {
        return Vec::new();
    };
    // `agent 1 on `host` (…)`, whose log is `host-agent-1.log` or `host-server-1.log`.
    let names = waiting.iter().filter_map(|who| {
        let (number, rest) = who.strip_prefix("agent ")?.split_once(" on `")?;
        let (host, _) = rest.split_once('`')?;
        Some(["agent", "server"].map(|kind| format!("{host}-{kind}-{number}.log")))
    });
    let names: Vec<String> = names.flatten().collect();
    let wanted = words.into_iter().filter(|(name, _)| names.contains(name));
    wanted
        .map(|(name, line)| format!("{name}: {}", redact(&line)))
        .collect()
}
