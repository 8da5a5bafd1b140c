//! The servers of a session as one deployment: started for it and stopped after it, or already
//! running.

pub mod admin;
pub mod choice;
pub(crate) mod engine_configuration;
pub mod expected;
pub mod locality;
pub(crate) mod parameters;
pub mod placement;
mod restart;
pub mod server;
pub mod storage;

use crate::context::Context;
use crate::deployment::placement::HostPlacement;
use crate::deployment::server::{ServerPaths, ServerUnderTest, check_durable};
use crate::deployment::storage::StorageUnderTest;
use crate::error::{Error, Kind};
use admin::ControlAdminClient;
use dyno_load::connect::{Connector, Control};
use dyno_load::prepare;
use dyno_plan::Plan;
use dyno_plan::model::ServerKind;
use dyno_plan::task::Remote;
use dyno_plan::uri::{Host, has_option, with_option};
use dyno_record::model::{Caveat, CaveatKind, MemberRecord};
use dyno_record::server::ExperimentServer;
use dyno_record::statement;
use dyno_servers::placement::InstancePlacement;
use dyno_servers::{
    DataDir, Deployment, DeploymentOptions, EndedMember, GivenSecrets, InstanceKind, Member,
    MemberSettings, Namespace, ServerOptions, Stopped, Topology, instances, locate_mongos,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use restart::DataMember;

/// Longest wait for the settings of one server.
const READ_BACK_LIMIT: Duration = Duration::from_secs(10);

/// Longest time for each step of joining members on several hosts into a replica set.
const JOIN_LIMIT: Duration = Duration::from_secs(60);

/// Topology that a plan requests.
///
/// # Errors
/// The text is not a topology.
pub fn topology_of(plan: &Plan) -> Result<Topology, Error> {
    plan.server.topology().map_err(|error| {
        Error::from_cause(Kind::BadInput, error).with_hint("see docs/servers.md, Topologies")
    })
}

/// A server that is queried while the load runs.
pub struct WatchedServer {
    /// Name of its metrics.
    pub name: String,
    /// Address without credentials.
    pub address: String,
    /// Connects to the server.
    pub connector: Connector,
}

/// See the module.
#[derive(Debug)]
pub struct DeploymentUnderTest {
    deployment: Option<Deployment>,
    settings: Vec<MemberSettings>,
    /// Declared after the deployment, so that it outlives the servers.
    storage: Option<StorageUnderTest>,
    /// Whether its servers end with this program: this program or an agent started them.
    ends_with_program: bool,
    /// One for each client: the pairs, or the deployment as a whole.
    pub servers: Vec<ServerUnderTest>,
}

impl DeploymentUnderTest {
    /// Starts the plan's servers or connects to the running one. On an error only the logs remain.
    pub fn open(
        plan: &Plan,
        remote: Option<&Remote>,
        paths: &ServerPaths<'_>,
        placement: Option<&HostPlacement>,
        context: Context<'_>,
    ) -> Result<Self, Error> {
        let opened = Self::open_after(plan, remote, paths, placement, context, || Ok(()));
        opened.map(|(deployment, ())| deployment)
    }

    /// Like [`open`](Self::open), but calls `make` once the servers' storage exists and before they
    /// open their files.
    pub(crate) fn open_after<T>(
        plan: &Plan,
        remote: Option<&Remote>,
        paths: &ServerPaths<'_>,
        placement: Option<&HostPlacement>,
        context: Context<'_>,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        let remotes = match context.source {
            Some(source) => Some(source.servers(plan, remote, paths.embedded, context)?),
            None => remote.map(|remote| vec![remote.clone()]),
        };
        if let Some(remotes) = remotes {
            let made = make()?;
            let mut servers = Vec::new();
            for remote in remotes {
                let mut server = ServerUnderTest::running(plan, remote, paths)?;
                server.set_cancel_check(context.cancel.patience());
                servers.push(server);
            }
            let deployment = DeploymentUnderTest {
                deployment: None,
                settings: Vec::new(),
                storage: None,
                ends_with_program: remote.is_none(),
                servers,
            };
            return Ok((deployment, made));
        }
        Self::start_after(plan, paths, placement, None, context, make)
    }

    /// Starts the plan's servers with these secrets, or with new ones.
    pub fn open_with(
        plan: &Plan,
        paths: &ServerPaths<'_>,
        placement: Option<&HostPlacement>,
        secrets: Option<&GivenSecrets>,
        context: Context<'_>,
    ) -> Result<Self, Error> {
        let started = Self::start_after(plan, paths, placement, secrets, context, || Ok(()));
        started.map(|(deployment, ())| deployment)
    }

    fn start_after<T>(
        plan: &Plan,
        paths: &ServerPaths<'_>,
        placement: Option<&HostPlacement>,
        secrets: Option<&GivenSecrets>,
        context: Context<'_>,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        let interrupted = || context.cancel.requested();
        let note = |text: &str| context.note(text);
        let mut storage = StorageUnderTest::prepare(&plan.server, paths, &note, &interrupted)?;
        // If the servers do not start, this is undone before the storage is removed.
        let made = make()?;
        let (deployment, settings) = start(plan, paths, placement, secrets, &interrupted)?;
        if let Some(storage) = &mut storage {
            storage.limit(&data_processes(deployment.members()))?;
        }
        let mut servers = Vec::new();
        for (number, uri) in deployment.uris().iter().enumerate() {
            let remote = Remote {
                credentials: deployment.credentials().cloned(),
                ..Remote::parse(&with_options(uri, plan))?
            };
            let member = spokesman(&deployment, number);
            servers.push(ServerUnderTest::started(plan, remote, member)?);
        }
        let deployment = DeploymentUnderTest {
            deployment: Some(deployment),
            settings,
            storage,
            ends_with_program: true,
            servers,
        };
        Ok((deployment, made))
    }

    /// Starts one member of a replica set with its other members on other hosts. It is usable once
    /// [joined](Self::join).
    pub fn start_member(
        plan: &Plan,
        paths: &ServerPaths<'_>,
        placement: Option<&HostPlacement>,
        secrets: Option<&GivenSecrets>,
        number: usize,
        context: Context<'_>,
    ) -> Result<Self, Error> {
        let topology = topology_of(plan)?;
        let mut options = options(plan, &topology, paths, None)?;
        options.secrets = secrets.cloned();
        options.server.placement = placement.and_then(|place| place.of_server(0));
        let interrupted = || context.cancel.requested();
        let deployment = Deployment::start_member(&topology, &options, number, &interrupted)
            .map_err(|error| cannot_start(error, &topology, &options))?;
        Ok(DeploymentUnderTest {
            deployment: Some(deployment),
            settings: Vec::new(),
            storage: None,
            ends_with_program: true,
            servers: Vec::new(),
        })
    }

    /// Joins this member with the members of all `hosts`, which include it, in topology order.
    pub fn join(&mut self, hosts: &[String], context: Context<'_>) -> Result<(), Error> {
        let Some(deployment) = &mut self.deployment else {
            return Err(Error::new(Kind::Internal, "the deployment has no member to join"));
        };
        let interrupted = || context.cancel.requested();
        let mut admin = ControlAdminClient::default();
        deployment
            .join(hosts, JOIN_LIMIT, &mut admin, &interrupted)
            .map_err(|error| Error::from(error).context("cannot join the replica set"))?;
        self.settings = deployment.read_back(&mut admin, READ_BACK_LIMIT)?;
        Ok(())
    }

    /// Client addresses of the started servers.
    pub fn started_hosts(&self) -> Vec<String> {
        let deployment = self.deployment.as_ref();
        deployment.map_or_else(Vec::new, Deployment::hosts)
    }

    /// Connection strings of the started servers, one per client, without credentials.
    pub fn started_uris(&self) -> Vec<String> {
        let deployment = self.deployment.as_ref();
        deployment.map_or_else(Vec::new, Deployment::uris)
    }

    /// Connection string of the first started server, with credentials: a secret. `None` if it was
    /// already running.
    pub fn uri(&self, plan: &Plan) -> Option<String> {
        let deployment = self.deployment.as_ref()?;
        let uri = deployment.uris().into_iter().next()?;
        Some(deployment.with_credentials(&with_options(&uri, plan)))
    }

    /// Adds the reason to `failure` if a server ended.
    pub fn explain(&mut self, failure: Error) -> Error {
        let Some((_, ended)) = self.ended() else {
            return failure;
        };
        let name = ended.name;
        let mut failure = failure.context(format!("the server `{name}` ended ({})", ended.status));
        failure.log_tail = ended.log_tail;
        failure
    }

    /// Storage prepared for the servers; `None` if their data is on existing storage.
    pub fn storage(&self) -> Option<&StorageUnderTest> {
        self.storage.as_ref()
    }

    /// Connection strings, one per client, without credentials.
    pub fn uris(&self) -> Vec<String> {
        self.servers.iter().map(ServerUnderTest::uri).collect()
    }

    /// The server that ended by itself, if any: its client number if it has one, its name and its
    /// last log lines.
    pub fn ended(&mut self) -> Option<(Option<usize>, EndedMember)> {
        let deployment = self.deployment.as_mut()?;
        let ended = deployment.ended().ok().flatten()?;
        let is_pairs = matches!(deployment.topology(), Topology::Pairs { .. });
        let number = deployment
            .members()
            .iter()
            .position(|member| member.instance().name == ended.name)
            .filter(|_| is_pairs);
        Some((number, ended))
    }

    /// Processes of the data servers, in start order.
    pub fn processes(&self) -> Vec<u32> {
        data_processes(self.members())
    }

    /// Data folders of the data servers, in start order.
    pub fn data_folders(&self) -> Vec<PathBuf> {
        with_data(self.members()).map(|member| member.server().data_dir().to_owned()).collect()
    }

    /// Data folders on this machine: on prepared storage, as planned for started servers, or as
    /// running local servers report them in these settings.
    pub fn local_folders<'s>(
        &self,
        plan: &Plan,
        paths: &ServerPaths<'_>,
        settings: impl Iterator<Item = &'s BTreeMap<String, String>>,
    ) -> Vec<PathBuf> {
        match (&self.storage, self.is_started()) {
            (Some(storage), _) => vec![storage.data()],
            (None, true) => locality::planned_folders(plan, paths),
            (None, false) => locality::named_folders(settings),
        }
    }

    /// Address of the first started server, from this machine.
    pub fn first_address(&self) -> Option<SocketAddr> {
        self.members().first().map(|one| one.server().address())
    }

    /// Names and processes of all started servers.
    pub fn named_processes(&self) -> Vec<(String, u32)> {
        self.members()
            .iter()
            .map(|member| (member.instance().name.clone(), member.server().pid()))
            .collect()
    }

    /// Servers to watch while the load runs. Servers that cannot be found are left out.
    pub fn watched_servers(&self) -> Vec<WatchedServer> {
        let Some(speaker) = self.servers.first() else {
            return Vec::new();
        };
        let named: Vec<(&ServerUnderTest, String, Host)> = match &self.deployment {
            Some(_) => self
                .members()
                .iter()
                .map(name_and_host)
                .map(|(name, host)| (speaker, name, host))
                .collect(),
            None => self.named_hosts(),
        };
        named.into_iter().filter_map(watched_server).collect()
    }

    /// Watched servers with data; all that can be found if the deployment was already running.
    pub fn data_servers(&self) -> Vec<WatchedServer> {
        let Some(speaker) = self.servers.first().filter(|_| self.is_started()) else {
            return self.watched_servers();
        };
        let named = with_data(self.members()).map(name_and_host);
        named.filter_map(|(name, host)| watched_server((speaker, name, host))).collect()
    }

    /// Whether this program started its servers.
    pub fn is_started(&self) -> bool {
        self.deployment.is_some()
    }

    /// Whether its servers end with this program, so that no change to them outlives it.
    pub fn ends_with_program(&self) -> bool {
        self.ends_with_program
    }

    /// Servers that are already running, with their names; several are numbered.
    fn named_hosts(&self) -> Vec<(&ServerUnderTest, String, Host)> {
        let several = self.servers.len() > 1;
        let mut named = Vec::new();
        for (number, server) in self.servers.iter().enumerate() {
            let hosts = server.hosts().unwrap_or_default();
            let is_alone = hosts.len() == 1;
            for (member, host) in hosts.into_iter().enumerate() {
                let mut name = match is_alone {
                    true => "server".to_owned(),
                    false => format!("member-{member}"),
                };
                if several {
                    name = format!("{name}-{number}");
                }
                named.push((server, name, host));
            }
        }
        named
    }

    fn members(&self) -> &[Member] {
        self.deployment.as_ref().map_or(&[], Deployment::members)
    }

    /// Record of each process, and a caveat for each setting that differs from the request.
    pub fn describe(&self) -> (Vec<MemberRecord>, Vec<Caveat>) {
        let mut records = Vec::new();
        let mut caveats = Vec::new();
        for (member, settings) in self.members().iter().zip(&self.settings) {
            let caveat = |what: &dyno_servers::Deviation| {
                let statement = statement!(
                    "server-setting-differs",
                    server = &settings.name,
                    setting = what.setting.to_string(),
                    found = what.found.to_string(),
                    asked = what.asked.to_string()
                );
                Caveat::of_run(CaveatKind::ServerSetting, statement)
            };
            caveats.extend(settings.deviations.iter().map(caveat));
            records.push(MemberRecord {
                name: settings.name.clone(),
                address: member.server().host().to_string(),
                version: member.server().version().to_owned(),
                was_primary: member.was_primary(),
                asked: member.server().settings().clone(),
                found: settings.effective.clone(),
            });
        }
        (records, caveats)
    }

    /// Last log lines of the server, if there is only one.
    pub fn only_log_tail(&self, lines: usize) -> Vec<String> {
        match self.members() {
            [only] => only.server().log_tail(lines),
            _ => Vec::new(),
        }
    }

    /// Like [`stop`](Self::stop), but shows unusual endings as caveats.
    pub fn stop_and_tell(self, context: Context<'_>) -> Result<(), Error> {
        let (stopped, caveats) = self.stop();
        for caveat in caveats {
            context.caveat(&caveat.statement);
        }
        stopped
    }

    /// Stops the started servers and waits for their end. Adds a caveat for each server that had to
    /// be killed or had already ended.
    pub fn stop(self) -> (Result<(), Error>, Vec<Caveat>) {
        let Some(deployment) = self.deployment else {
            return (Ok(()), Vec::new());
        };
        let (stopped, caveats) = match deployment.stop() {
            Ok(stopped) => (Ok(()), stopped.iter().filter_map(ending_caveat).collect()),
            Err(error) => (Err(error.into()), Vec::new()),
        };
        let removed = self.storage.map_or(Ok(()), StorageUnderTest::remove);
        (stopped.and(removed), caveats)
    }
}

/// Processes of the data servers, in start order.
pub fn data_processes(members: &[Member]) -> Vec<u32> {
    with_data(members).map(|member| member.server().pid()).collect()
}

/// Data servers, in start order: no arbiters, config servers or routers.
fn with_data(members: &[Member]) -> impl Iterator<Item = &Member> {
    let is_data = |member: &&Member| member.instance().kind == InstanceKind::Data;
    members.iter().filter(is_data)
}

fn watched_server(
    (speaker, name, host): (&ServerUnderTest, String, Host),
) -> Option<WatchedServer> {
    Some(WatchedServer {
        name,
        address: host.to_string(),
        connector: speaker.connector_to(host).ok()?,
    })
}

fn name_and_host(member: &Member) -> (String, Host) {
    let address = member.server().address();
    let host = Host::Tcp { host: address.ip().to_string(), port: address.port() };
    (member.instance().name.clone(), host)
}

/// Caveat for a server that ended in an unusual way.
fn ending_caveat((name, ending): &(String, Stopped)) -> Option<Caveat> {
    let statement = if ending.ended_early {
        let status = ending.status.to_string();
        statement!("server-had-ended", server = name, status = status)
    } else if ending.killed {
        statement!("server-was-killed", server = name)
    } else {
        return None;
    };
    Some(Caveat::of_run(CaveatKind::ServerSetting, statement))
}

/// The server that represents client `number`: its own, else the primary, else the first with data.
fn spokesman(deployment: &Deployment, number: usize) -> &Member {
    let members = deployment.members();
    let data = || with_data(members);
    let chosen = match deployment.topology() {
        Topology::Standalone | Topology::Pairs { .. } | Topology::Split { .. } => {
            data().nth(number)
        }
        Topology::ReplicaSet(_) | Topology::Sharded(_) => {
            data().find(|member| member.was_primary()).or_else(|| data().next())
        }
    };
    chosen.unwrap_or(&members[0])
}

/// The connection string with the options that the plan adds.
pub fn with_options(uri: &str, plan: &Plan) -> String {
    let uri = match &plan.server.connection_options {
        Some(options) if uri.contains('?') => format!("{uri}&{options}"),
        Some(options) => format!("{uri}?{options}"),
        None => uri.to_owned(),
    };
    if plan.server.waits_for_journal() && !has_option(&uri, "journal") {
        with_option(&uri, "journal", "true")
    } else {
        uri
    }
}

/// Refuses plans that [`start`] would refuse, without running a server.
pub fn check(
    plan: &Plan,
    paths: &ServerPaths<'_>,
    placement: Option<&HostPlacement>,
) -> Result<(), Error> {
    let topology = topology_of(plan)?;
    let options = options(plan, &topology, paths, placement)?;
    Deployment::check(&topology, &options).map_err(|error| cannot_start(error, &topology, &options))
}

fn namespace(plan: &Plan) -> Namespace {
    Namespace { database: plan.data.database.clone(), collection: plan.data.collection.clone() }
}

/// Refuses unusable connection strings without connecting.
pub fn check_remote(plan: &Plan, remote: &Remote, paths: &ServerPaths<'_>) -> Result<(), Error> {
    // The name service has the rest of the string.
    if remote.target.srv.is_some() {
        return Ok(());
    }
    ServerUnderTest::running(plan, remote.clone(), paths)?.check()
}

fn cannot_start(
    error: dyno_servers::ServerError,
    topology: &Topology,
    options: &DeploymentOptions,
) -> Error {
    let program = options.server.kind.executable();
    let what = match topology {
        Topology::Standalone => format!("the server `{program}`"),
        _ => format!("the servers `{program}` of `{topology}`"),
    };
    Error::from(error).context(format!("cannot start {what}"))
}

/// Starts the deployment, with these secrets or with new ones, and reads its settings back. Polls
/// `interrupted` until it is ready.
pub fn start(
    plan: &Plan,
    paths: &ServerPaths<'_>,
    placement: Option<&HostPlacement>,
    secrets: Option<&GivenSecrets>,
    interrupted: &dyn Fn() -> bool,
) -> Result<(Deployment, Vec<MemberSettings>), Error> {
    let topology = topology_of(plan)?;
    let mut options = options(plan, &topology, paths, placement)?;
    options.secrets = secrets.cloned();
    let mut admin = ControlAdminClient::default();
    let deployment = Deployment::start(&topology, &options, &mut admin, interrupted)
        .map_err(|error| cannot_start(error, &topology, &options))?;
    let settings = deployment.read_back(&mut admin, READ_BACK_LIMIT)?;
    Ok((deployment, settings))
}

fn options(
    plan: &Plan,
    topology: &Topology,
    paths: &ServerPaths<'_>,
    placement: Option<&HostPlacement>,
) -> Result<DeploymentOptions, Error> {
    let path = paths.environment.path.as_deref();
    let program = choice::program(plan, paths.embedded, paths.environment)?;
    let router = match topology {
        Topology::Sharded(_) if plan.server.kind == ServerKind::Mongod => {
            let named = plan.server.mongos.as_deref().map(Path::new);
            Some(locate_mongos(named, &program, path)?)
        }
        _ => None,
    };
    let log = paths.folder.join("server-logs").join("server.raw.log");
    let server = ServerOptions::from_plan(&plan.server, program, paths.data_dir(plan), log)?;
    let mut options = DeploymentOptions::new(server);
    options.router = router;
    options.secrets_dir = paths.folder.join("server-secrets");
    options.host_name.clone_from(&paths.environment.hostname);
    options.collection = Some(namespace(plan));
    if let Some(placement) = placement {
        options.memory = placement.memory();
        options.seats = seats(topology, placement);
    }
    Ok(options)
}

/// Places of the data servers, by name; the system places the other servers.
fn seats(topology: &Topology, place: &HostPlacement) -> BTreeMap<String, InstancePlacement> {
    let all = instances(topology);
    let data = all.into_iter().filter(|one| one.kind == InstanceKind::Data);
    data.enumerate()
        .filter_map(|(number, instance)| Some((instance.name, place.of_server(number)?)))
        .collect()
}

impl ServerPaths<'_> {
    /// Data folder: the user's own, or one that is removed with the servers.
    pub fn data_dir(&self, plan: &Plan) -> DataDir {
        let server = &plan.server;
        match server.data_dir.as_ref().or(server.data_dirs.first()) {
            Some(folder) => DataDir::Kept(folder.into()),
            None => DataDir::Temporary(
                storage::data_folder(server, self.folder)
                    .unwrap_or_else(|| self.folder.join("server-data")),
            ),
        }
    }
}

/// Server record of an experiment, with the start options from `deployment`.
pub fn describe(
    control: &mut Control,
    plan: &Plan,
    deployment: Option<&DeploymentUnderTest>,
    started: bool,
) -> Result<ExperimentServer, Error> {
    let facts = prepare::server_facts(control)?;
    check_durable(plan, facts.product.as_deref())?;
    let mut settings = facts.settings;
    let members = deployment.map_or(&[][..], DeploymentUnderTest::members);
    for member in with_data(members) {
        settings.extend(member.server().settings().clone());
    }
    let kind = match (started, plan.server.kind) {
        (true, ServerKind::Embedded) => Some("secantusd-rs".to_owned()),
        (true, ServerKind::Mongod) => Some("mongod".to_owned()),
        _ => None,
    };
    Ok(ExperimentServer {
        product: kind.or(facts.product).unwrap_or_else(|| "MongoDB server".to_owned()),
        version: facts.version,
        address: control.endpoint().to_string(),
        started,
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use crate::environment::Environment;
    use crate::observer::Unobserved;
    use tempfile::TempDir;

    #[test]
    fn preparation_failure_comes_before_a_server_start() {
        let (environment, cancel) = (Environment::default(), Cancel::new());
        let folder = TempDir::new().unwrap();
        let context = Context {
            environment: &environment,
            cancel: &cancel,
            observer: &Unobserved,
            source: None,
        };
        let paths =
            ServerPaths { environment: &environment, embedded: None, folder: folder.path() };
        let mut plan = plan("standalone");
        plan.server.mongod = Some("/no/such/mongod".into());
        let refused = |make: fn() -> Result<(), Error>| {
            let opened = DeploymentUnderTest::open_after(&plan, None, &paths, None, context, make);
            opened.map(drop).unwrap_err().reason()
        };
        let not_made = refused(|| Err(Error::new(Kind::Environment, "it cannot be made")));
        assert_eq!(not_made, "it cannot be made");
        let not_started = refused(|| Ok(()));
        assert!(not_started.contains("mongod"), "{not_started}");
    }

    fn plan(topology: &str) -> Plan {
        let mut plan = dyno_plan::builtin::find("a").expect("it is built in");
        plan.server.kind = ServerKind::Mongod;
        plan.server.topology = Some(topology.into());
        plan
    }

    #[test]
    fn options_of_the_plan_join_the_connection_string() {
        let mut plan = plan("standalone");
        assert_eq!(with_options("mongodb://h/", &plan), "mongodb://h/");
        plan.server.connection_options = Some("w=majority".into());
        assert_eq!(with_options("mongodb://h/", &plan), "mongodb://h/?w=majority");
        assert_eq!(
            with_options("mongodb://h/?tls=true", &plan),
            "mongodb://h/?tls=true&w=majority"
        );
        plan.server.durable_writes = true;
        let durable = "mongodb://h/?w=majority&journal=true";
        assert_eq!(with_options("mongodb://h/", &plan), durable);
        plan.server.connection_options = Some("j=true".into());
        assert_eq!(with_options("mongodb://h/", &plan), "mongodb://h/?j=true");
        plan.server.connection_options = None;
        plan.server.kind = ServerKind::Embedded;
        assert_eq!(with_options("mongodb://h/", &plan), "mongodb://h/");
    }
}
