//! A fleet whose agents have come, and its servers.

use super::cluster::{Cluster, Seen};
use super::hosts::Hosts;
use super::opening::needed_by_server;
use super::serve::Served;
use super::{plan_text, servers_run, version};
use crate::exit::{Exit, Failure};
use crate::session::execute::Hands;
use dyno_fleet::FleetError;
use dyno_fleet::controller::{Controller, ControllerOptions, Event};
use dyno_fleet::endpoint::Endpoint;
use dyno_fleet::names::RunName;
use dyno_fleet::protocol::{Registration, Stage, Work};
use dyno_fleet::shares::Share;
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerKind;
use dyno_plan::task::Remote;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest time of a look whether all have come.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Longest time to start servers, as of a local one with its recovery.
const SERVE_WITHIN: Duration = Duration::from_secs(180);

/// Where the programs of a run are.
pub(super) enum Places {
    /// On hosts, with the names of all of them.
    Hosts(Hosts, Vec<String>),
    /// In pods.
    Cluster(Box<Cluster>),
}

impl Places {
    fn is_cluster(&self) -> bool {
        matches!(self, Places::Cluster(_))
    }
}

/// A fleet whose agents have come.
pub(super) struct Open {
    pub(super) run: String,
    /// What hosts and agents were made ready for.
    pub(super) plan: FleetPlan,
    pub(super) kind: ServerKind,
    pub(super) places: Places,
    /// Folder of playbooks and secrets.
    pub(super) folder: PrivateFolder,
    pub(super) clients: Option<Controller>,
    pub(super) agents: Vec<Registration>,
    pub(super) servers: Option<Controller>,
    pub(super) server_hosts: Vec<Registration>,
    /// Addresses that servers listen on.
    pub(super) addresses: Vec<String>,
    /// Connection strings of the servers now.
    pub(super) uris: Vec<String>,
    /// Where all meet, and under which names.
    pub(super) endpoint: Endpoint,
    pub(super) keys: [RunName; 2],
}

impl Open {
    /// Waits until all have come.
    pub(super) fn gather(&mut self, within: Duration, hands: Hands<'_>) -> Result<(), Failure> {
        let until = Instant::now() + within;
        if let Some(servers) = &mut self.servers {
            self.server_hosts = gather(servers, within, until, hands)?;
        }
        if let Some(clients) = &mut self.clients {
            self.agents = gather(clients, within, until, hands)?;
        }
        Ok(())
    }

    /// Starts servers as the plan says, on all their hosts, in place of those that run there.
    pub(super) fn serve(&mut self, plan: &Plan, hands: Hands<'_>) -> Result<Vec<Seen>, Failure> {
        if let Places::Cluster(_) = &self.places {
            return self.serve_in_pods(plan, hands);
        }
        let uris = self.ask_servers(plan, hands)?;
        uris.into_iter()
            .map(|uri| Ok((Remote::parse(&uri)?, uri)))
            .collect()
    }

    /// The same in a cluster, which starts them by itself. Agents beside them read their nodes.
    fn serve_in_pods(&mut self, plan: &Plan, hands: Hands<'_>) -> Result<Vec<Seen>, Failure> {
        let Places::Cluster(cluster) = &mut self.places else {
            return Ok(Vec::new());
        };
        cluster.prepare_servers(plan, hands.interrupt)?;
        self.server_hosts.clear();
        if let Some(before) = self.servers.take() {
            // Their pods have gone.
            before.finish(Duration::ZERO)?;
        }
        let watchers = cluster.watchers(plan);
        if let Some((run, pods)) = &watchers {
            self.servers = Some(Controller::open(ControllerOptions {
                endpoint: self.endpoint.clone(),
                run: servers_run(run)?,
                version: version(),
                lease: self.plan.lease.0,
                hosts: pods.clone(),
                needed_disk_bytes: needed_by_server(plan),
            })?);
        }
        let served = cluster.serve(hands.interrupt);
        let seen = served.map_err(|mut failure| {
            failure.log_tail.extend(cluster.last_words("server"));
            failure
        })?;
        match self.watch_nodes(plan, hands) {
            Ok(()) => {}
            // They read, and others work: a run does not end for the sake of them.
            Err(failure) if is_absence(&failure) => {
                let text = format!("the nodes of the servers are not read: {:#}", failure.error);
                hands.messages.warning(&text);
                self.server_hosts.clear();
                if let Some(controller) = self.servers.take() {
                    controller.abort("not all have come", Duration::ZERO)?;
                }
            }
            Err(failure) => return Err(failure),
        }
        Ok(seen)
    }

    /// Waits for the agents beside the servers of a cluster, and lets them begin.
    fn watch_nodes(&mut self, plan: &Plan, hands: Hands<'_>) -> Result<(), Failure> {
        if let Some(controller) = &mut self.servers {
            let within = self.plan.join_within.0;
            self.server_hosts = gather(controller, within, Instant::now() + within, hands)?;
            self.ask_servers(plan, hands)?;
        }
        Ok(())
    }

    /// Starts the agents of a cluster, once its servers have their nodes. On hosts they have come before.
    pub(super) fn start_clients(&mut self, hands: Hands<'_>) -> Result<(), Failure> {
        let Places::Cluster(cluster) = &self.places else {
            return Ok(());
        };
        let Some(clients) = self.clients.as_mut().filter(|_| self.agents.is_empty()) else {
            return Ok(());
        };
        let within = self.plan.join_within.0;
        let come = cluster
            .start(hands.interrupt)
            .and_then(|()| gather(clients, within, Instant::now() + within, hands));
        self.agents = come.map_err(|mut failure| {
            failure.log_tail.extend(cluster.last_words("client"));
            failure
        })?;
        Ok(())
    }

    /// Lets the agents of the servers do what the plan says, and returns what each has started.
    fn ask_servers(&mut self, plan: &Plan, hands: Hands<'_>) -> Result<Vec<String>, Failure> {
        let Some(controller) = &mut self.servers else {
            return Ok(Vec::new());
        };
        let count = self.server_hosts.len() as u32;
        let shares: Vec<Share> = (0..count)
            .map(|index| Share {
                index,
                agents: count,
                links: Vec::new(),
            })
            .collect();
        let work = Work {
            plan: plan_text(plan),
            servers: self.addresses.clone(),
            stages: vec![Stage::Serve],
            ..Work::default()
        };
        controller.give(work, &shares)?;
        let until = Instant::now() + SERVE_WITHIN;
        let mut uris = vec![None; count as usize];
        while uris.iter().any(Option::is_none) {
            hands.interrupt.check()?;
            if Instant::now() >= until {
                let waiting = (0..count).filter(|index| uris[*index as usize].is_none());
                return Err(FleetError::Late {
                    step: "serving".into(),
                    within: SERVE_WITHIN,
                    waiting: waiting.map(|index| controller.name(index)).collect(),
                }
                .into());
            }
            match controller.next(LOOK_EVERY)? {
                Some(Event::Gone { error, .. }) => {
                    return Err(Failure::from(error).context("cannot start the servers"));
                }
                Some(Event::Done { agent, summary, .. }) => {
                    let served: Served = serde_json::from_value(summary)
                        .map_err(|error| Failure::of(Exit::Internal, error))?;
                    uris[agent as usize] = Some(served.uri);
                }
                _ => {}
            }
        }
        Ok(uris.into_iter().flatten().collect())
    }

    /// Whether agents are started on hosts, several on each if the plan says so.
    pub(super) fn is_on_hosts(&self) -> bool {
        !self.places.is_cluster()
    }

    /// A server host that has gone, or failed; in a cluster, the agent beside a server. It is looked for during `within`.
    pub(super) fn server_fault(&mut self, within: Duration) -> Result<Option<Failure>, Failure> {
        let Some(controller) = &mut self.servers else {
            return Ok(None);
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match controller.next(left.max(Duration::from_millis(1)))? {
                Some(Event::Gone { error, .. }) => {
                    let what = match (&error, self.places.is_cluster()) {
                        (_, true) => "the node of a server is not read any more",
                        (FleetError::Lost { .. }, false) => "a server host is lost",
                        (_, false) => "the server of a host is lost",
                    };
                    return Ok(Some(Failure::from(error).context(what)));
                }
                None if Instant::now() >= until => return Ok(None),
                _ => {}
            }
        }
    }
}

/// Whether somebody has not come, or did not stay.
fn is_absence(failure: &Failure) -> bool {
    let error = failure.error.downcast_ref::<FleetError>();
    error.is_some_and(|error| {
        matches!(
            error,
            FleetError::Late { .. } | FleetError::Lost { .. } | FleetError::Failed { .. }
        )
    })
}

/// Waits until the agents of a controller have come.
fn gather(
    controller: &mut Controller,
    within: Duration,
    until: Instant,
    hands: Hands<'_>,
) -> Result<Vec<Registration>, Failure> {
    loop {
        hands.interrupt.check()?;
        match controller.gather(LOOK_EVERY) {
            Ok(all) => return Ok(all),
            Err(FleetError::Late { step, waiting, .. }) if Instant::now() >= until => {
                return Err(FleetError::Late {
                    step,
                    within,
                    waiting,
                }
                .into());
            }
            Err(FleetError::Late { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A folder that goes away with this value, and that nobody else can read.
pub(super) struct PrivateFolder(pub(super) PathBuf);

impl PrivateFolder {
    pub(super) fn create() -> Result<Self, Failure> {
        use std::os::unix::fs::DirBuilderExt;
        let name = format!(
            "dyno-fleet-{}-{:x}",
            std::process::id(),
            jiff::Timestamp::now().as_nanosecond()
        );
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| {
            Failure::of(Exit::Environment, error)
                .context(format!("cannot make `{}`", path.display()))
        })?;
        Ok(PrivateFolder(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
