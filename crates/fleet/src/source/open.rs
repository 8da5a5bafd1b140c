//! A fleet with joined agents and its servers.

use super::checks::is_set;
use super::cluster::{Cluster, Seen};
use super::hosts::Hosts;
use super::on_servers::OnServers;
use super::secrets::FleetSecrets;
use crate::FleetError;
use crate::controller::{Controller, ControllerOptions, Event};
use crate::endpoint::Endpoint;
use crate::names::RunName;
use crate::protocol::{Registration, StartedServers, Step, Version, Work, plan_text};
use crate::shares::without_links;
use dyno_engine::context::Context;
use dyno_engine::{Cancel, Error, Kind, OrFault};
use dyno_plan::Plan;
use dyno_plan::fleet::FleetPlan;
use dyno_plan::model::ServerKind;
use dyno_plan::operation::Operations;
use dyno_record::model::{Caveat, HostSettingRecord, PlacementRecord, StorageRecord};
use dyno_record::quantity::Unit;
use dyno_record::statement::Number;
use dyno_servers::Watchdog;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Interval of the checks whether all agents have joined.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Longest time to start servers, the same as for a local one with recovery.
const SERVE_WITHIN: Duration = Duration::from_secs(180);

/// Opens a run for the agents of `hosts`.
pub(super) fn open_controller(
    endpoint: &Endpoint,
    run: RunName,
    fleet: &FleetPlan,
    hosts: Vec<String>,
    cancel: &Cancel,
) -> Result<Controller, Error> {
    Ok(Controller::open(ControllerOptions {
        endpoint: endpoint.clone(),
        run,
        version: Version::current(),
        lease: fleet.lease.0,
        hosts,
        cancel: cancel.clone(),
    })?)
}

/// Where the programs of a run are.
pub(super) enum Places {
    /// On hosts, with all host names.
    Hosts(Hosts, Vec<String>),
    Cluster(Box<Cluster>),
}

impl Places {
    fn is_cluster(&self) -> bool {
        matches!(self, Places::Cluster(_))
    }
}

/// A server that was started on a host.
pub(super) struct StartedServer {
    /// Number of the host.
    pub(super) host: usize,
    /// Connection string without credentials and files; for a member of a set over several hosts, its `HOST:PORT`.
    pub(super) place: String,
    /// CPUs that the servers of its host share, if they were placed.
    pub(super) cpus: Option<u32>,
    /// Placement of all servers of a host; with its first server only.
    pub(super) placement: Option<PlacementRecord>,
    /// Settings of a host that were changed; with its first server only.
    pub(super) host_settings: Vec<HostSettingRecord>,
    /// Storage of each of its data folders.
    pub(super) data_storage: Vec<StorageRecord>,
}

/// A fleet with joined agents.
pub(super) struct Open {
    pub(super) run: String,
    /// Fleet settings that hosts and agents were prepared for.
    pub(super) plan: FleetPlan,
    pub(super) kind: ServerKind,
    pub(super) places: Places,
    /// Folder of playbooks and secrets.
    pub(super) folder: PrivateFolder,
    pub(super) clients: Option<Controller>,
    pub(super) agents: Vec<Registration>,
    pub(super) servers: Option<Controller>,
    pub(super) server_hosts: Vec<Registration>,
    /// Task of the agents on the server hosts.
    pub(super) on_servers: OnServers,
    /// Users and certificates of the servers.
    pub(super) secrets: FleetSecrets,
    /// Connection strings of the current servers, without credentials and files.
    pub(super) uris: Vec<String>,
    /// Servers that were started on hosts, by number.
    pub(super) started: Vec<StartedServer>,
    /// Storage of the data folders of each host with watched servers.
    pub(super) watched_storage: Vec<Vec<StorageRecord>>,
    /// Deviations of servers and settings from the plan since the servers started.
    pub(super) misplaced: Vec<Caveat>,
    /// Settings that the newest run found changed on server hosts at its end.
    pub(super) changed: Vec<Caveat>,
    /// Meeting point, and the run names used there.
    pub(super) endpoint: Endpoint,
    pub(super) keys: [RunName; 2],
}

impl Open {
    /// Waits until all agents have joined.
    pub(super) fn gather(&mut self, within: Duration, context: Context<'_>) -> Result<(), Error> {
        if let Some(servers) = &mut self.servers {
            self.server_hosts = servers.gather(within)?;
            for server in &self.server_hosts {
                for text in &server.host.not_applied {
                    context.warning(format!("on `{}`: {text}", server.host.name));
                }
            }
        }
        if let Some(clients) = &mut self.clients {
            self.agents = clients.gather(within)?;
        }
        Ok(())
    }

    /// Starts the plan's servers on all their hosts, replacing running ones.
    pub(super) fn serve(&mut self, plan: &Plan, context: Context<'_>) -> Result<Vec<Seen>, Error> {
        if let Places::Cluster(_) = &self.places {
            return self.serve_in_pods(plan, context);
        }
        let started = self.ask_servers(plan, Step::Serve, context)?;
        let is_set = is_set(plan, self.server_hosts.len());
        self.started.clear();
        self.misplaced.clear();
        let mut uris = Vec::new();
        for (host, mut one) in started.into_iter().enumerate() {
            self.check_host(host, &mut one, context);
            let before = self.started.len();
            self.misplaced.extend(one.caveats.into_iter().map(|caveat| {
                let on_host = caveat.statement.number("instance").unwrap_or(0.0);
                let number = Number::new(before as f64 + on_host, Unit::Exact);
                Caveat { statement: caveat.statement.with("instance", number), ..caveat }
            }));
            let (mut placement, mut settings) = (one.placement, one.host_settings);
            let places = if is_set { &one.hosts } else { &one.uris };
            let mut storage = dealt(one.data_storage, places.len()).into_iter();
            self.started.extend(places.iter().map(|place| StartedServer {
                data_storage: storage.next().unwrap_or_default(),
                host,
                place: place.clone(),
                cpus: one.cpus,
                placement: placement.take(),
                host_settings: std::mem::take(&mut settings),
            }));
            uris.extend(one.uris);
        }
        if is_set {
            let joined = self.ask_servers(plan, Step::Join, context)?;
            let joined = joined.into_iter().flat_map(|one| one.uris);
            uris = joined.take(1).collect();
        }
        let seen = |uri: String| Ok((self.secrets.remote(&uri, &plan.server)?, uri));
        uris.into_iter().map(seen).collect()
    }

    /// Clears the settings that an earlier run on the same servers read back.
    pub(super) fn forget_looks(&mut self) {
        self.changed.clear();
        for setting in self.started.iter_mut().flat_map(|server| &mut server.host_settings) {
            setting.at_end = None;
        }
    }

    /// Reads back the settings of server hosts at the end of a run. A host that has gone or does not answer in time is a warning.
    pub(super) fn look(&mut self, plan: &Plan, context: Context<'_>) -> Result<(), Error> {
        let going = self.servers.as_ref().map_or(0, Controller::going);
        let is_set = self.started.iter().any(|server| !server.host_settings.is_empty());
        // A host that has gone reverts its settings itself.
        if !is_set || going < self.server_hosts.len() || context.cancel.requested() {
            return Ok(());
        }
        let seen = match self.ask_servers(plan, Step::Look, context) {
            Err(error) if is_absence(&error) => {
                context
                    .warning(format!("cannot read back the settings of server hosts: {error:#}"));
                return Ok(());
            }
            seen => seen?,
        };
        read_back(seen, &mut self.started, &mut self.changed);
        Ok(())
    }

    /// Lets agents read running servers as the plan says. Unreadable sources and lost agents are warnings.
    pub(super) fn watch(&mut self, plan: &Plan, context: Context<'_>) -> Result<(), Error> {
        let going = self.servers.as_ref().map_or(0, Controller::going);
        // After the loss of one agent, the others continue with their last task.
        if going < self.server_hosts.len() {
            return Ok(());
        }
        let started = match self.ask_servers(plan, Step::Serve, context) {
            Err(error) if is_absence(&error) => {
                context.warning(format!("cannot read the machines of the servers: {error:#}"));
                return Ok(());
            }
            started => started?,
        };
        for (host, mut one) in started.into_iter().enumerate() {
            self.check_host(host, &mut one, context);
            self.keep_storage(host, one.data_storage);
            let name = self.server_hosts.get(host).map_or("", |host| &host.host.name);
            for text in one.unread {
                context.warning(format!("on `{name}`: {text}"));
            }
            if let Some(lack) = one.lacks_room {
                return Err(Error::new(Kind::Environment, format!("`{name}`: {lack}")));
            }
        }
        Ok(())
    }

    /// Stores the data storage of a watched host. An agent that continues unchanged reports none.
    fn keep_storage(&mut self, host: usize, storage: Vec<StorageRecord>) {
        let count = self.watched_storage.len().max(host + 1);
        self.watched_storage.resize(count, Vec::new());
        if !storage.is_empty() {
            self.watched_storage[host] = storage;
        }
    }

    /// Stores the results of a host's checks after its servers started. Settings that could not be changed for them are warnings.
    fn check_host(&mut self, host: usize, started: &mut StartedServers, context: Context<'_>) {
        let Some(host) = self.server_hosts.get_mut(host) else {
            return;
        };
        let host = &mut host.host;
        if started.doctor.is_empty() {
            return;
        }
        host.checked(std::mem::take(&mut started.doctor));
        let left = std::mem::take(&mut started.not_applied);
        for text in left.iter().filter(|text| !host.not_applied.contains(text)) {
            context.warning(format!("on `{}`: {text}", host.name));
        }
        host.not_applied = left;
    }

    /// Like [`serve`](Self::serve) in a cluster, which starts the servers itself. Agents next to them read their nodes.
    fn serve_in_pods(&mut self, plan: &Plan, context: Context<'_>) -> Result<Vec<Seen>, Error> {
        let Places::Cluster(cluster) = &mut self.places else {
            return Ok(Vec::new());
        };
        cluster.prepare_servers(plan, &self.secrets, context.cancel)?;
        self.server_hosts.clear();
        if let Some(before) = self.servers.take() {
            // The pods of the previous servers have gone.
            before.finish(Duration::ZERO)?;
        }
        let watchers = cluster.watchers(plan);
        if let Some((run, pods)) = &watchers {
            let (run, pods) = (RunName::for_servers(run)?, pods.clone());
            let controller =
                open_controller(&self.endpoint, run, &self.plan, pods, context.cancel)?;
            self.servers = Some(controller);
        }
        let served = cluster.serve(plan, &self.secrets, context.cancel);
        let seen = served.map_err(|mut error| {
            error.log_tail.extend(cluster.last_words("server"));
            error
        })?;
        let watchers = self.servers.as_mut();
        let joined = watchers.map(|one| one.gather(self.plan.join_within.0)).transpose();
        match joined.map_err(Error::from) {
            Ok(hosts) => self.server_hosts = hosts.unwrap_or_default(),
            // These agents only read, so their absence does not end a run.
            Err(error) if is_absence(&error) => {
                context.warning(format!("cannot read the nodes of the servers: {error:#}"));
                if let Some(controller) = self.servers.take() {
                    controller.abort("not all agents joined", Duration::ZERO)?;
                }
            }
            Err(error) => return Err(error),
        }
        self.watch(plan, context)?;
        Ok(seen)
    }

    /// Starts a cluster's client agents once its servers have their nodes. On hosts they have joined before.
    pub(super) fn start_clients(&mut self, context: Context<'_>) -> Result<(), Error> {
        let Places::Cluster(cluster) = &self.places else {
            return Ok(());
        };
        let Some(clients) = self.clients.as_mut().filter(|_| self.agents.is_empty()) else {
            return Ok(());
        };
        let within = self.plan.join_within.0;
        let come = cluster.start(context.cancel).and_then(|()| Ok(clients.gather(within)?));
        self.agents = come.map_err(|mut error| {
            error.log_tail.extend(cluster.last_words("client"));
            error
        })?;
        Ok(())
    }

    /// Sends the servers' agents the plan, and returns their reports.
    fn ask_servers(
        &mut self,
        plan: &Plan,
        step: Step,
        context: Context<'_>,
    ) -> Result<Vec<StartedServers>, Error> {
        // Reading back starts no server.
        let starts_servers = self.starts_servers() && step != Step::Look;
        let is_set = starts_servers && is_set(plan, self.server_hosts.len());
        let Some(controller) = &mut self.servers else {
            return Ok(Vec::new());
        };
        let count = self.server_hosts.len() as u32;
        let work = Work {
            plan: plan_text(plan),
            servers: match &self.on_servers {
                OnServers::Start { .. } if step == Step::Join => {
                    self.started.iter().map(|server| server.place.clone()).collect()
                }
                OnServers::Start { addresses, .. } => addresses.clone(),
                OnServers::Watch { .. } => Vec::new(),
            },
            is_set,
            steps: vec![step],
            ..Work::default()
        };
        // Agents of servers send no windows.
        controller.give(work, Operations::default(), &without_links(count))?;
        let until = Instant::now() + SERVE_WITHIN;
        let mut all: Vec<Option<StartedServers>> = (0..count).map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            context.cancel.check()?;
            if Instant::now() >= until {
                let waiting = (0..count).filter(|index| all[*index as usize].is_none());
                return Err(FleetError::Late {
                    step: step.to_string(),
                    within: SERVE_WITHIN,
                    waiting: waiting.map(|index| controller.name(index)).collect(),
                }
                .into());
            }
            match controller.next(LOOK_EVERY)? {
                Some(Event::Gone { agent, error }) => {
                    context.warning(loss(error, starts_servers)?);
                    all[agent as usize] = Some(StartedServers::default());
                }
                Some(Event::Done { agent, summary, .. }) => {
                    let started: StartedServers = serde_json::from_value(summary)
                        .map_err(|error| Error::from_cause(Kind::Internal, error))?;
                    all[agent as usize] = Some(started);
                }
                _ => {}
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// Whether agents run on hosts, where the plan may ask for several on each.
    pub(super) fn is_on_hosts(&self) -> bool {
        !self.places.is_cluster()
    }

    /// Whether agents start servers, which end with them.
    pub(super) fn starts_servers(&self) -> bool {
        self.is_on_hosts() && matches!(self.on_servers, OnServers::Start { .. })
    }

    /// Error of a server host (or of an agent that watches one) that has gone or failed within `within`.
    pub(super) fn server_fault(&mut self, within: Duration) -> Result<Option<Error>, Error> {
        let is_cluster = self.places.is_cluster();
        let Some(controller) = &mut self.servers else {
            return Ok(None);
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match controller.next(left.max(Duration::from_millis(1)))? {
                Some(Event::Gone { error, .. }) => {
                    let what = match (&error, &self.on_servers) {
                        _ if is_cluster => "lost the reader of a server's node",
                        (_, OnServers::Watch { .. }) => "lost the reader of a server's machine",
                        (FleetError::Lost { .. }, _) => "lost a server host",
                        _ => "lost the server of a host",
                    };
                    return Ok(Some(Error::from(error).context(what)));
                }
                None if Instant::now() >= until => return Ok(None),
                _ => {}
            }
        }
    }
}

/// Divides a host's storage among its servers. With one entry for each server, each gets its own; a deployment with several servers
/// gets all of it, in the first place.
pub(super) fn dealt(all: Vec<StorageRecord>, servers: usize) -> Vec<Vec<StorageRecord>> {
    match all.len() == servers {
        true => all.into_iter().map(|one| vec![one]).collect(),
        false => vec![all],
    }
}

/// Replaces the earlier reports of each server host by the settings read back at the end of a run.
fn read_back(seen: Vec<StartedServers>, started: &mut [StartedServer], changed: &mut Vec<Caveat>) {
    changed.clear();
    for (host, one) in seen.into_iter().enumerate() {
        let mut of_host = started.iter_mut().filter(|one| one.host == host);
        // The settings are recorded with the host's first server. A lost agent reports none.
        if let Some(first) = of_host.next().filter(|_| !one.host_settings.is_empty()) {
            first.host_settings = one.host_settings;
        }
        changed.extend(one.caveats);
    }
}

/// Warning about the loss of an agent that only reads; the others continue.
///
/// # Errors
/// The agent was to start servers.
fn loss(error: FleetError, starts_servers: bool) -> Result<String, Error> {
    match starts_servers {
        true => Err(Error::from(error).context("cannot start the servers")),
        false => Ok(format!("cannot read the machine of a server: {error}")),
    }
}

/// Whether an agent did not join, or did not stay.
fn is_absence(error: &Error) -> bool {
    let error = error.cause.downcast_ref::<FleetError>();
    error.is_some_and(|error| {
        matches!(
            error,
            FleetError::Late { .. } | FleetError::Lost { .. } | FleetError::Failed { .. }
        )
    })
}

/// A private folder that is deleted with this value or with this program.
pub(super) struct PrivateFolder {
    pub(super) path: PathBuf,
    /// Dropped after the folder is deleted.
    _watchdog: Watchdog,
}

impl PrivateFolder {
    pub(super) fn create() -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt;
        let name = format!(
            "dyno-fleet-{}-{:x}",
            std::process::id(),
            jiff::Timestamp::now().as_nanosecond()
        );
        let path = std::env::temp_dir().join(name);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.or_fault(Kind::Environment, || format!("cannot create `{}`", path.display()))?;
        let watchdog = Watchdog::of_folder(&path);
        let watchdog = watchdog.or_fault(Kind::Environment, || {
            let _ = std::fs::remove_dir(&path);
            format!("cannot watch over `{}`", path.display())
        })?;
        Ok(PrivateFolder { path, _watchdog: watchdog })
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::model::CaveatKind;
    use dyno_record::statement::Statement;

    #[test]
    fn value_read_back_replaces_the_hosts_earlier_report() {
        let setting = |value: u32| HostSettingRecord {
            name: "receive_packet_steering".into(),
            file: "rps_cpus".into(),
            before: "0".into(),
            set: "1".into(),
            at_end: Some(value.to_string()),
        };
        let server = |host, value: Option<u32>| StartedServer {
            host,
            place: "db:27017".into(),
            cpus: None,
            placement: None,
            host_settings: value.map(setting).into_iter().collect(),
            data_storage: Vec::new(),
        };
        // Three hosts; the first has two servers, and the agent of the last is lost.
        let mut started =
            [server(0, Some(0)), server(0, None), server(1, Some(0)), server(2, Some(0))];
        let caveat = Caveat::of_run(CaveatKind::Fleet, Statement::new("changed"));
        let looks = || {
            let seen = [1, 2].map(|value| StartedServers {
                host_settings: vec![setting(value)],
                caveats: (value == 2).then(|| caveat.clone()).into_iter().collect(),
                ..StartedServers::default()
            });
            seen.into_iter().chain([StartedServers::default()]).collect::<Vec<_>>()
        };
        let mut changed = Vec::new();
        for run in 1..=3 {
            read_back(looks(), &mut started, &mut changed);
            assert_eq!(changed, std::slice::from_ref(&caveat), "run {run} on the same servers");
        }
        let found = started.map(|server| server.host_settings);
        assert_eq!(found, [vec![setting(1)], Vec::new(), vec![setting(2)], vec![setting(0)]]);
    }

    #[test]
    fn lost_agent_ends_a_run_only_if_it_starts_servers() {
        let lost = || FleetError::Lost {
            index: 1,
            host: "db".into(),
            silent: Duration::from_secs(10),
            last: "joined".into(),
        };
        let warning = loss(lost(), false).expect("the run continues");
        assert!(warning.contains("`db`") && !warning.contains("start"), "{warning}");
        let error = loss(lost(), true).expect_err("no server");
        assert!(error.to_string().contains("start"), "{error}");
        assert_eq!(error.kind, Kind::Environment);
    }
}
