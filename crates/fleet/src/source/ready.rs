//! Checks and facts about a plan's hosts before anything is copied to them; a dry run ends here.

use super::checks::{check_servers, deployments, is_set};
use super::hosts::{Hosts, Started, check_words};
use super::on_servers::OnServers;
use super::open::PrivateFolder;
use super::secrets::FleetSecrets;
use super::{Fleet, cluster};
use crate::endpoint::Endpoint;
use crate::inventory::Inventory;
use crate::names::RunName;
use crate::options::absolute;
use dyno_engine::context::Context;
use dyno_engine::deployment::choice;
use dyno_engine::environment::Environment;
use dyno_engine::{Error, Kind, refuse};
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerKind;
use dyno_plan::task::Remote;
use dyno_servers::locate_embedded;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest run name: server suffixes add up to 14 characters, and names in Redis end at 64.
const MOST_CHARACTERS: usize = 50;

/// Refuses a run name that leaves no room for the suffixes of its servers.
///
/// # Errors
/// The name is longer than 50 characters.
pub fn check_run_name(given: &str) -> Result<(), Error> {
    if given.len() > MOST_CHARACTERS {
        let text = format!(
            "the run name `{given}` has {} characters; the maximum is {MOST_CHARACTERS}",
            given.len()
        );
        return refuse(text, "shorten `--fleet-run`");
    }
    Ok(())
}

/// Checked facts about a plan's hosts.
pub(super) struct Ready {
    pub(super) endpoint: Endpoint,
    pub(super) found: Found,
    /// Run name on the hosts, and the run names in Redis.
    pub(super) run: String,
    pub(super) keys: [RunName; 2],
    /// Task of the server hosts; `None` until running servers have been asked.
    pub(super) on_servers: Option<OnServers>,
    pub(super) secrets: FleetSecrets,
    /// Server program, if it is copied to the server hosts.
    pub(super) server_program: Option<PathBuf>,
    /// This program's file.
    pub(super) program: PathBuf,
}

impl Fleet<'_> {
    /// Looks up a plan's hosts, and collects their programs. Changes nothing on them.
    ///
    /// # Errors
    /// Anything that would make a run on them fail.
    pub(super) fn ready(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        embedded: Option<&Path>,
        context: Context<'_>,
    ) -> Result<Ready, Error> {
        let endpoint = self.options.redis.endpoint()?;
        let fleet = plan.fleet.clone().unwrap_or_default();
        let found = self.found(&fleet, context)?;
        if !self.options.apply.is_empty() && found.servers.is_empty() {
            let text = "`--apply` needs server hosts, but `fleet.servers` is empty";
            return refuse(text, "name the server hosts in `fleet.servers`");
        }
        check_servers(plan, remote, found.servers.len() as u32)?;
        let on_servers = match remote {
            Some(_) => None,
            None => Some(OnServers::start(&found.inventory, &found.servers)?),
        };
        let (run, keys) = self.run_of(plan)?;
        let secrets = FleetSecrets::new(&self.needs.borrow())?;
        let agents = found.agent_hosts(&fleet);
        let unasked = OnServers::default();
        let known = on_servers.as_ref().unwrap_or(&unasked);
        secret_files(&secrets, agents.len(), known)?;
        let is_set = is_set(plan, found.servers.len());
        let programs = self.programs(&run, &agents, &found.servers, known, is_set);
        programs.iter().try_for_each(check_words)?;
        Ok(Ready {
            server_program: server_program(plan, &found.servers, embedded, context.environment)?,
            program: own_program(context.environment)?,
            endpoint,
            found,
            run,
            keys,
            on_servers,
            secrets,
        })
    }

    /// Checks that pod manifests can be rendered. Returns the run name and the run names in Redis.
    pub(super) fn check_cluster(&self, plan: &Plan) -> Result<(String, [RunName; 2]), Error> {
        let named = self.run_of(plan)?;
        cluster::check(plan, &self.permits.borrow(), &named.0)?;
        Ok(named)
    }

    /// The run name, and the run names in Redis.
    fn run_of(&self, plan: &Plan) -> Result<(String, [RunName; 2]), Error> {
        let run = match &self.options.run {
            Some(given) => {
                check_run_name(given)?;
                given.clone()
            }
            None => format!(
                "{}-{:x}-{:x}",
                plan.name.chars().take(30).collect::<String>(),
                std::process::id(),
                jiff::Timestamp::now().as_millisecond()
            ),
        };
        let keys = [RunName::new(&run)?, RunName::for_servers(&run)?];
        Ok((run, keys))
    }

    /// Looks up a plan's client and server hosts. Reads the inventory once.
    pub(super) fn found(&self, fleet: &FleetPlan, context: Context<'_>) -> Result<Found, Error> {
        if let Some((known, found)) = &*self.found.borrow()
            && known == fleet
        {
            return Ok(found.clone());
        }
        let folder = PrivateFolder::create()?;
        let inventory = self.hosts(&folder, context)?.inventory(context.cancel)?;
        let bad =
            |error| Error::from_cause(Kind::BadInput, error).with_hint("check `fleet` in the plan");
        let mut clients = inventory.hosts(&fleet.clients).map_err(bad)?;
        if let Some(wanted) = fleet.client_hosts {
            let found = clients.len();
            if wanted as usize > found {
                let text = format!(
                    "`fleet.client_hosts` is {wanted}, but `fleet.clients` has {found} hosts"
                );
                return Err(Error::new(Kind::BadInput, text));
            }
            clients.truncate(wanted as usize);
        }
        let servers = inventory.hosts(&fleet.servers).map_err(bad)?;
        let found = Found { inventory, clients, servers };
        self.found.replace(Some((fleet.clone(), found.clone())));
        Ok(found)
    }

    /// Ansible with the inventory.
    pub(super) fn hosts(
        &self,
        folder: &PrivateFolder,
        context: Context<'_>,
    ) -> Result<Hosts, Error> {
        let file = self.options.inventory.as_deref();
        let path = context.environment.path.as_deref();
        Hosts::new(file.unwrap_or(Path::new("")), path, folder.path.clone())
    }

    /// The programs of each host, with their permits.
    pub(super) fn programs(
        &self,
        run: &str,
        agents: &[String],
        servers: &[String],
        on_servers: &OnServers,
        is_set: bool,
    ) -> Vec<Started> {
        let mut permits = self.permits.borrow().clone();
        if let OnServers::Start { addresses, .. } = on_servers {
            // Agents load the started servers if the plan names none.
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
        let checks: Vec<&str> = self.options.apply.iter().map(|check| check.as_str()).collect();
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
}

/// Secret files, by the name of the program that gets them.
pub(super) fn secret_files(
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

fn own_program(environment: &Environment) -> Result<PathBuf, Error> {
    let own = environment.executable.clone();
    own.ok_or_else(|| Error::new(Kind::Environment, "cannot find the path of this program"))
}

/// The embedded server, which is copied; `mongod` must be installed on the hosts.
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

/// The client and server hosts of a plan.
#[derive(Clone)]
pub(super) struct Found {
    pub(super) inventory: Inventory,
    pub(super) clients: Vec<String>,
    pub(super) servers: Vec<String>,
}

impl Found {
    /// Number of servers to load: as planned for each host, or one deployment of running servers.
    pub(super) fn count(&self, plan: &Plan, remote: Option<&Remote>) -> Result<u32, Error> {
        match (remote, &plan.fleet) {
            (None, Some(fleet)) => deployments(plan, fleet, self.servers.len() as u32),
            _ => Ok(1),
        }
    }

    pub(super) fn agents(&self, fleet: &FleetPlan) -> u32 {
        self.clients.len() as u32 * fleet.agents_per_host
    }

    /// The host of each agent; agents of one host are adjacent.
    pub(super) fn agent_hosts(&self, fleet: &FleetPlan) -> Vec<String> {
        let per_host = fleet.agents_per_host as usize;
        self.clients.iter().flat_map(|host| std::iter::repeat_n(host.clone(), per_host)).collect()
    }
}
