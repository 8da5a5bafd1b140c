//! Opens a fleet: deploys and starts agents, on hosts or in pods, until all have joined.

use super::Fleet;
use super::checks::is_set;
use super::cluster::Cluster;
use super::hosts::Wanted;
use super::on_servers::{OnServers, counted};
use super::open::{Open, Places, PrivateFolder, open_controller};
use super::ready::{Found, Ready, secret_files};
use super::secrets::FleetSecrets;
use super::watched::running_servers;
use crate::FleetError;
use crate::error::reason_with_log;
use crate::limits::raise_file_limit;
use crate::names::RunName;
use crate::options::absolute;
use dyno_engine::Error;
use dyno_engine::context::Context;
use dyno_engine::load_source::LoadSource;
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerPlan;
use dyno_plan::strangers;
use dyno_plan::task::Remote;
use dyno_plan::uri::redact;
use std::path::Path;

impl Fleet<'_> {
    /// Starts agents on all hosts.
    pub(super) fn open(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        (remote, embedded): (Option<&Remote>, Option<&Path>),
        context: Context<'_>,
    ) -> Result<Open, Error> {
        raise_file_limit();
        let ready = self.ready(plan, remote, embedded, context)?;
        self.check_shares(&[(plan, remote)], context)?;
        let found_servers = ready.found.count(plan, remote)?;
        let Ready { endpoint, found, run, keys, secrets, .. } = ready;
        let agent_hosts = found.agent_hosts(fleet);
        let on_servers = match (ready.on_servers, remote) {
            (None, Some(remote)) => {
                OnServers::watch(plan, remote, &found.inventory, &found.servers, context)?
            }
            (on_servers, _) => on_servers.unwrap_or_default(),
        };
        let Found { clients, servers, .. } = found;
        let is_set = is_set(plan, servers.len());
        let programs = self.programs(&run, &agent_hosts, &servers, &on_servers, is_set);
        warn_of_strangers(plan, &on_servers, context);
        let meet = |run: &RunName, hosts: &[String]| {
            open_controller(&endpoint, run.clone(), fleet, hosts.to_vec(), context.cancel)
        };
        let client_controller = meet(&keys[0], &agent_hosts)?;
        let server_controller =
            (!servers.is_empty()).then(|| meet(&keys[1], &servers)).transpose()?;
        let wanted = Wanted {
            run: &run,
            programs: &programs,
            server_program: ready.server_program,
            servers: &servers,
            secrets: secret_files(&secrets, agent_hosts.len(), &on_servers)?,
            redis: self.options.redis.address()?,
            redis_ca: self.options.redis.authority.as_deref().map(absolute),
            base: &self.options.host_folder,
            program: ready.program,
        };
        context.note(format!(
            "run `{run}`: {} on {}, {}",
            counted(agent_hosts.len(), "agent"),
            counted(clients.len(), "host"),
            on_servers.describe(servers.len(), found_servers)
        ));
        let folder = PrivateFolder::create()?;
        let hosts = self.hosts(&folder, context)?;
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
            watched_storage: Vec::new(),
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

    /// Like [`open`](Self::open) with pods of a cluster. Agents join after the servers, whose nodes must be free of them.
    pub(super) fn open_cluster(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        remote: Option<&Remote>,
        context: Context<'_>,
    ) -> Result<Open, Error> {
        raise_file_limit();
        let (run, [client_run, server_run]) = self.check_cluster(plan)?;
        self.check_shares(&[(plan, remote)], context)?;
        if let Some(remote) = remote {
            // A refused login must be reported before pods are created.
            running_servers(plan, remote, &[], context)?;
        }
        let folder = PrivateFolder::create()?;
        let path = context.environment.path.clone();
        let permits = self.permits.borrow().clone();
        let secrets = FleetSecrets::new(&self.needs.borrow())?;
        let permits = (permits, secrets.of_client().is_some());
        let mut cluster = Cluster::new(plan, permits, &run, path, &folder.path)?;
        let pods = cluster.clients();
        context.note(format!("run `{run}`: {} in pods", counted(pods as usize, "agent")));
        let met = cluster.meet(&secrets, context.cancel).and_then(|endpoint| {
            let hosts = (0..pods).map(|pod| format!("pod {pod}")).collect();
            let run = client_run.clone();
            let controller = open_controller(&endpoint, run, fleet, hosts, context.cancel)?;
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
            on_servers: OnServers::Start { addresses: Vec::new(), names: Vec::new() },
            secrets,
            uris: Vec::new(),
            started: Vec::new(),
            watched_storage: Vec::new(),
            misplaced: Vec::new(),
            changed: Vec::new(),
            endpoint,
            keys: [client_run, server_run],
        })
    }
}

/// Warns about servers that others can reach without a password.
fn warn_of_strangers(plan: &Plan, on_servers: &OnServers, context: Context<'_>) {
    if let OnServers::Start { addresses, .. } = on_servers {
        let warnings = addresses.iter().filter_map(|address| {
            strangers::warning(&ServerPlan { listen: Some(address.clone()), ..plan.server.clone() })
        });
        // The other servers have the same settings as the first one.
        warnings.take(1).for_each(|warning| context.warning(warning));
    }
}

/// Last log lines of the agents that did not join in time.
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
    wanted.map(|(name, line)| format!("{name}: {}", redact(&line))).collect()
}
