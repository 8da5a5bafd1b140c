//! From nothing to a fleet whose agents have come, on hosts or in pods.

use super::Fleet;
use super::checks::{deployments, is_set};
use super::cluster::Cluster;
use super::hosts::{Hosts, RedisAddress, Started, Wanted};
use super::on_servers::OnServers;
use super::open::{
    NEEDED_DISK_BYTES, Open, Places, PrivateFolder, needed_by_server, open_controller,
};
use super::secrets::FleetSecrets;
use super::watched::running_servers;
use crate::FleetError;
use crate::error::reason_with_log;
use crate::inventory::Inventory;
use crate::limits::raise_file_limit;
use crate::names::RunName;
use crate::options::absolute;
use crate::shares::shares;
use dyno_engine::context::Context;
use dyno_engine::deployment::choice;
use dyno_engine::environment::Environment;
use dyno_engine::{Error, Kind};
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::strangers;
use dyno_plan::task::Remote;
use dyno_plan::uri::redact;
use dyno_servers::locate_embedded;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest name of a run: those of its servers have up to 14 characters more, and names in Redis end at 64.
const MOST_CHARACTERS: usize = 50;

/// Refuses a name of a run that leaves no room for those of its servers.
///
/// # Errors
/// The name is longer than 50 characters.
pub fn check_run_name(given: &str) -> Result<(), Error> {
    if given.len() > MOST_CHARACTERS {
        let text = format!(
            "the name `{given}` of the run has {} characters, and may have {MOST_CHARACTERS}",
            given.len()
        );
        return Err(Error::new(Kind::BadInput, text).with_hint("shorten `--fleet-run`"));
    }
    Ok(())
}

impl Fleet<'_> {
    /// Brings agents to all hosts.
    pub(super) fn open(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        (remote, embedded): (Option<&Remote>, Option<&Path>),
        context: Context<'_>,
    ) -> Result<Open, Error> {
        raise_file_limit();
        let endpoint = self.options.redis.endpoint()?;
        let folder = PrivateFolder::create()?;
        let found = self.hosts(fleet, &folder, context)?;
        let agent_hosts = found.agent_hosts(fleet);
        if !self.options.apply.is_empty() && found.servers.is_empty() {
            let text = "`--apply` is for the hosts of servers, and `fleet.servers` is empty";
            return Err(Error::new(Kind::BadInput, text).with_hint("name the hosts of the servers"));
        }
        let on_servers = found.on_servers(plan, remote, agent_hosts.len(), context)?;
        let found_servers = found.count(plan, remote)?;
        let Found {
            hosts,
            clients,
            servers,
            ..
        } = found;
        let run = self.run_of(plan)?;
        let keys = [RunName::new(&run)?, RunName::for_servers(&run)?];
        let is_set = is_set(plan, servers.len());
        let programs = self.programs(&run, &agent_hosts, &servers, &on_servers, is_set);
        warn_of_strangers(plan, &on_servers, context);
        let secrets = FleetSecrets::new(&self.needs.borrow())?;
        let needed = match on_servers {
            OnServers::Start { .. } => needed_by_server(plan),
            // Of a server that runs already nobody knows.
            OnServers::Watch { .. } => 0,
        };
        let meet = |run: &RunName, hosts: &[String], needed_disk_bytes| {
            let (run, hosts) = (run.clone(), hosts.to_vec());
            open_controller(&endpoint, run, fleet, hosts, needed_disk_bytes)
        };
        let client_controller = meet(&keys[0], &agent_hosts, NEEDED_DISK_BYTES)?;
        let server_controller = match servers.is_empty() {
            true => None,
            false => Some(meet(&keys[1], &servers, needed)?),
        };
        let wanted = Wanted {
            run: &run,
            programs: &programs,
            server_program: server_program(plan, &servers, embedded, context.environment)?,
            servers: &servers,
            secrets: secret_files(&secrets, agent_hosts.len(), &on_servers)?,
            redis: self.redis(),
            redis_ca: self.options.redis.authority.as_deref().map(absolute),
            base: &self.options.host_folder,
            program: own_program(context.environment)?,
        };
        context.note(format!(
            "run `{run}`: {} agents on {} hosts, {}",
            agent_hosts.len(),
            clients.len(),
            on_servers.describe(servers.len(), found_servers)
        ));
        let started = hosts.start(&wanted, context.cancel);
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
            on_servers,
            secrets,
            uris: Vec::new(),
            started: Vec::new(),
            misplaced: Vec::new(),
            changed: Vec::new(),
            endpoint,
            keys,
        };
        let begun = started.and_then(|()| open.gather(fleet.join_within.0, context));
        if let Err(mut error) = begun {
            let words = self.end(open, Some(&reason_with_log(&error)), context);
            error.log_tail.extend(missing_words(&error, words));
            return Err(error);
        }
        Ok(open)
    }

    /// Name of the run.
    fn run_of(&self, plan: &Plan) -> Result<String, Error> {
        let Some(given) = self.options.run.clone() else {
            return Ok(format!(
                "{}-{:x}-{:x}",
                plan.name.chars().take(30).collect::<String>(),
                std::process::id(),
                jiff::Timestamp::now().as_millisecond()
            ));
        };
        check_run_name(&given)?;
        Ok(given)
    }

    /// The same with pods of a cluster, where agents come after the servers: these have nodes of their own, which must be free.
    pub(super) fn open_cluster(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<Open, Error> {
        raise_file_limit();
        if let Some(remote) = remote {
            // One that does not let us in is told before there is a pod.
            running_servers(plan, remote, &[], context)?;
        }
        let run = self.run_of(plan)?;
        let (client_run, server_run) = (RunName::new(&run)?, RunName::for_servers(&run)?);
        let folder = PrivateFolder::create()?;
        let path = context.environment.path.clone();
        let permits = self.permits.borrow().clone();
        let secrets = FleetSecrets::new(&self.needs.borrow())?;
        let permits = (permits, secrets.of_client().is_some());
        let mut cluster = Cluster::new(plan, permits, &run, path, &folder.path)?;
        let pods = cluster.clients();
        context.note(format!("run `{run}`: {pods} agents in pods"));
        let met = cluster.meet(&secrets, context.cancel).and_then(|endpoint| {
            let hosts = (0..pods).map(|pod| format!("pod {pod}")).collect();
            let run = client_run.clone();
            let controller = open_controller(&endpoint, run, fleet, hosts, NEEDED_DISK_BYTES)?;
            Ok((endpoint, controller))
        });
        let logs = self.options.logs_folder();
        let (endpoint, controller) = match met {
            Ok(met) => met,
            Err(error) => {
                cluster.end(logs.as_deref(), context);
                return Err(error);
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
            on_servers: OnServers::Start {
                addresses: Vec::new(),
                names: Vec::new(),
            },
            secrets,
            uris: Vec::new(),
            started: Vec::new(),
            misplaced: Vec::new(),
            changed: Vec::new(),
            endpoint,
            keys: [client_run, server_run],
        })
    }

    /// Looks up the hosts of a plan, which servers are started on or run already.
    pub(super) fn hosts(
        &self,
        fleet: &FleetPlan,
        folder: &PrivateFolder,
        context: Context<'_>,
    ) -> Result<Found, Error> {
        let file = self.options.inventory.as_deref();
        let path = context.environment.path.as_deref();
        let hosts = Hosts::new(file.unwrap_or(Path::new("")), path, folder.path.clone())?;
        let inventory = hosts.inventory(context.cancel)?;
        let bad =
            |error| Error::from_cause(Kind::BadInput, error).with_hint("see `fleet` in the plan");
        let mut clients = inventory.hosts(&fleet.clients).map_err(bad)?;
        if let Some(wanted) = fleet.client_hosts {
            let found = clients.len();
            if wanted as usize > found {
                let text = format!(
                    "`fleet.client_hosts` is {wanted}, and `fleet.clients` has {found} hosts"
                );
                return Err(Error::new(Kind::BadInput, text));
            }
            clients.truncate(wanted as usize);
        }
        let servers = inventory.hosts(&fleet.servers).map_err(bad)?;
        Ok(Found {
            hosts,
            inventory,
            clients,
            servers,
        })
    }

    /// What is started where, and what it is permitted to do.
    fn programs(
        &self,
        run: &str,
        agents: &[String],
        servers: &[String],
        on_servers: &OnServers,
        is_set: bool,
    ) -> Vec<Started> {
        let mut permits = self.permits.borrow().clone();
        if let OnServers::Start { addresses, .. } = on_servers {
            // Without a server of the plan's own they load these.
            permits.targets.extend(addresses.iter().cloned());
            if is_set {
                permits.members.extend(addresses.iter().cloned());
            }
        }
        let words = |index: usize, more: Vec<String>| {
            let index = index.to_string();
            let mut words: Vec<String> =
                ["--run", run, "--index", &index].map(str::to_owned).into();
            if self.options.redis.insecure {
                words.push("--insecure-redis".to_owned());
            }
            words.extend(more);
            words
        };
        let agents = agents.iter().enumerate().map(|(index, host)| Started {
            name: agent_name(index),
            host: host.clone(),
            words: words(index, permits.words_of_client()),
        });
        let checks: Vec<&str> = self
            .options
            .apply
            .iter()
            .map(|check| check.as_str())
            .collect();
        let apply = match checks.is_empty() {
            true => Vec::new(),
            false => vec!["--apply".to_owned(), checks.join(",")],
        };
        let servers = servers.iter().zip(on_servers.words(&permits)).enumerate();
        let servers = servers.map(|(index, (host, more))| Started {
            name: server_name(index),
            host: host.clone(),
            words: words(index, [more, apply.clone()].concat()),
        });
        agents.chain(servers).collect()
    }

    /// The address of Redis for the hosts.
    fn redis(&self) -> RedisAddress {
        let redis = &self.options.redis;
        match redis.address() {
            Some(text) => RedisAddress::Text(text.to_owned()),
            None => {
                let file = redis.address_file.as_deref();
                RedisAddress::File(absolute(file.unwrap_or(Path::new(""))))
            }
        }
    }
}

/// The files of secrets by the names of the programs that they are for.
fn secret_files(
    secrets: &FleetSecrets,
    agents: usize,
    on_servers: &OnServers,
) -> Result<BTreeMap<String, String>, Error> {
    let mut files = BTreeMap::new();
    if let Some(text) = secrets.of_client() {
        files.extend((0..agents).map(|index| (agent_name(index), text.clone())));
    }
    for (index, names) in on_servers.names().iter().enumerate() {
        let text = secrets.of_server(names)?;
        files.extend(text.map(|text| (server_name(index), text)));
    }
    Ok(files)
}

fn agent_name(index: usize) -> String {
    format!("agent-{index}")
}

fn server_name(index: usize) -> String {
    format!("server-{index}")
}

/// Tells that servers are started where others reach them without a password.
fn warn_of_strangers(plan: &Plan, on_servers: &OnServers, context: Context<'_>) {
    if let OnServers::Start { addresses, .. } = on_servers {
        let warnings = addresses.iter().filter_map(|address| {
            strangers::warning(&ServerPlan {
                listen: Some(address.clone()),
                ..plan.server.clone()
            })
        });
        // The others are as open as the first one.
        warnings
            .take(1)
            .for_each(|warning| context.warning(warning));
    }
}

fn own_program(environment: &Environment) -> Result<PathBuf, Error> {
    let own = environment.executable.clone();
    own.ok_or_else(|| Error::new(Kind::Environment, "the path of this program is not known"))
}

/// The embedded server is copied; `mongod` must be on the hosts.
fn server_program(
    plan: &Plan,
    servers: &[String],
    embedded: Option<&Path>,
    environment: &Environment,
) -> Result<Option<PathBuf>, Error> {
    if servers.is_empty() || plan.server.kind != ServerKind::Embedded {
        return Ok(None);
    }
    let found = locate_embedded(&choice::embedded_places(embedded, environment))?;
    Ok(Some(absolute(&found)))
}

/// The hosts of clients and of servers that a plan names.
pub(super) struct Found {
    hosts: Hosts,
    inventory: Inventory,
    clients: Vec<String>,
    pub(super) servers: Vec<String>,
}

impl Found {
    /// Servers that are loaded: each host has as many as the plan says; those that run already are one deployment.
    fn count(&self, plan: &Plan, remote: Option<&Remote>) -> Result<u32, Error> {
        match (remote, &plan.fleet) {
            (None, Some(fleet)) => deployments(plan, fleet, self.servers.len() as u32),
            _ => Ok(1),
        }
    }

    pub(super) fn agents(&self, fleet: &FleetPlan) -> u32 {
        self.clients.len() as u32 * fleet.agents_per_host
    }

    /// What is done on the hosts of servers. A host that would have nothing to do is refused before anything is placed.
    fn on_servers(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        agents: usize,
        context: Context<'_>,
    ) -> Result<OnServers, Error> {
        shares(plan, agents as u32, self.count(plan, remote)?)
            .map_err(|error| Error::from_cause(Kind::BadInput, error))?;
        match remote {
            Some(remote) => OnServers::watch(plan, remote, &self.inventory, &self.servers, context),
            None => OnServers::start(&self.inventory, &self.servers),
        }
    }

    /// The host of each agent; agents of a host follow each other.
    fn agent_hosts(&self, fleet: &FleetPlan) -> Vec<String> {
        let per_host = fleet.agents_per_host as usize;
        let hosts = self.clients.iter();
        hosts
            .flat_map(|host| std::iter::repeat_n(host.clone(), per_host))
            .collect()
    }
}

/// What those said last in their logs that somebody waited for in vain.
fn missing_words(failure: &Error, words: Vec<(String, String)>) -> Vec<String> {
    let Some(FleetError::Late { waiting, .. }) = failure.cause.downcast_ref::<FleetError>() else {
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
