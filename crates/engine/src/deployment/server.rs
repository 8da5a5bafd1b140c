//! The server under test as one client sees it: a single server or a deployment behind one
//! connection string, with a connection for set-up commands.

use crate::connector::connector_to;
use crate::deployment::locality;
use crate::environment::Environment;
use crate::error::{Error, refuse};
use dyno_load::backend::{self, driver::DriverTarget};
use dyno_load::connect::{self, CancelCheck, Connector, Control, TopologyKind};
use dyno_load::workload::Concerns;
use dyno_load::{prepare, probe};
use dyno_observe::doctor::{Product, RoundTrip, ServerFacts, Subject, network};
use dyno_plan::Plan;
use dyno_plan::model::{Backend, ServerKind};
use dyno_plan::task::Remote;
use dyno_plan::uri::{Credentials, Host, Target, TargetOptions, W};
use dyno_record::document::variant_name;
use dyno_record::model::ServerRecord;
use dyno_record::server::ServerMachine;
use dyno_servers::Member;
use dyno_wire::command::{Acknowledgement, WriteConcern};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of empty commands timed before a run, and their time limit.
const CHECK_COMMANDS: usize = 100;
const CHECK_LIMIT: Duration = Duration::from_millis(200);

/// Where to find a server program and where to put its files.
#[derive(Clone, Debug)]
pub struct ServerPaths<'a> {
    /// Search paths for programs.
    pub environment: &'a Environment,
    /// Path of the embedded server, if it was given.
    pub embedded: Option<&'a Path>,
    /// Folder for data, logs and secrets: the run directory, if there is a run.
    pub folder: &'a Path,
}

/// Data folder of a server that the plan starts, for its storage record.
pub fn data_folder(plan: &Plan, paths: &ServerPaths<'_>) -> Option<PathBuf> {
    (plan.server.kind != ServerKind::Uri).then(|| paths.data_dir(plan).path().to_owned())
}

/// Facts about a server that this program started.
#[derive(Debug)]
struct Started {
    process: u32,
    /// For clients.
    address: String,
    version: String,
    settings: BTreeMap<String, String>,
}

/// A usable server.
#[derive(Debug)]
pub struct ServerUnderTest {
    started: Option<Started>,
    /// The given connection string, without credentials.
    uri: String,
    /// With the hosts that the name service knows.
    target: Target,
    credentials: Option<Credentials>,
    connector: Connector,
    backend: Backend,
    local: bool,
}

impl ServerUnderTest {
    /// Connects to a server that is already running.
    pub fn running(plan: &Plan, remote: Remote, paths: &ServerPaths<'_>) -> Result<Self, Error> {
        let local = locality::is_local(&remote, paths.environment.hostname.as_deref());
        Self::reach(plan, remote, local, None)
    }

    /// Connects to the servers started for the plan. `member` is the process that represents them.
    pub fn started(plan: &Plan, remote: Remote, member: &Member) -> Result<Self, Error> {
        let server = member.server();
        let started = Started {
            process: server.pid(),
            address: server.host().to_string(),
            version: server.version().to_owned(),
            settings: server.settings().clone(),
        };
        Self::reach(plan, remote, true, Some(started))
    }

    fn reach(
        plan: &Plan,
        remote: Remote,
        local: bool,
        started: Option<Started>,
    ) -> Result<Self, Error> {
        let Remote { mut target, credentials } = remote;
        if plan.server.waits_for_journal() {
            target.options.write_concern.journal = Some(true);
        }
        let backend = plan.client.backend;
        let unusable = |error: connect::ConnectError| {
            Error::from(error).context("cannot use the connection string")
        };
        let uri = target.to_string();
        // All connections, of both backends, use the same answer of the name service.
        let (target, credentials) =
            connect::with_known_hosts(target, credentials, None).map_err(unusable)?;
        let connector = Connector::new(&control_target(&target, backend), credentials.clone())
            .map_err(unusable)?;
        Ok(ServerUnderTest { started, uri, target, credentials, connector, backend, local })
    }

    /// Limits the search for the server: it ends when `cancel_check` says so.
    pub fn set_cancel_check(&mut self, cancel_check: CancelCheck) {
        self.connector.set_cancel_check(cancel_check);
    }

    /// Refuses options that the backend does not support. Contacts no server.
    pub fn check(&self) -> Result<(), Error> {
        match self.backend {
            Backend::Wire => Ok(()),
            Backend::Driver => Ok(DriverTarget::check(&self.target, self.credentials.as_ref())?),
        }
    }

    /// A connection for set-up commands.
    pub fn control(&self) -> Result<Control, Error> {
        let control = self.connector.control().and_then(|mut control| {
            control.check_ready()?;
            Ok(control)
        });
        control.map_err(|error| Error::from(error).context("cannot connect to the server"))
    }

    /// The backend that performs the operations.
    pub fn backend(&self) -> Result<backend::Backend, Error> {
        Ok(match self.backend {
            Backend::Wire => backend::Backend::Wire(self.connector.clone()),
            Backend::Driver => {
                let target = DriverTarget::new(&self.target, self.credentials.as_ref())?;
                backend::Backend::Driver(Box::new(target))
            }
        })
    }

    /// Read and write concerns of the operations, from the connection string.
    pub fn concerns(&self) -> Concerns {
        Concerns {
            read_preference: self.connector.read_preference(),
            ..concerns(&self.target.options)
        }
    }

    /// Record of the server, from its own reports.
    pub fn describe(&self, control: &mut Control, plan: &Plan) -> Result<ServerRecord, Error> {
        let facts = prepare::server_facts(control)?;
        check_durable(plan, facts.product.as_deref())?;
        let topology = self
            .connector
            .discover()
            .map_err(|error| Error::from(error).context("cannot find out the topology"))?;
        let mut record = ServerRecord {
            kind: variant_name(&plan.server.kind),
            address: control.endpoint().to_string(),
            version: facts.version,
            product: facts.product,
            storage_engine: facts.storage_engine,
            topology: Some(topology.kind.as_str().into()),
            local: self.local,
            cache_bytes: facts.cache_bytes,
            write_concern: write_concern_text(&self.target.options),
            read_concern: self
                .target
                .options
                .read_concern_level
                .clone()
                .unwrap_or_else(|| SERVER_DEFAULT.into()),
            settings: facts.settings,
            machine: self.machine(control, &topology.kind)?,
            ..ServerRecord::default()
        };
        if let Some(started) = &self.started {
            describe_started(started, plan, &mut record);
        }
        Ok(record)
    }

    /// Facts about a remote server's machine. A local machine is read directly.
    fn machine(
        &self,
        control: &mut Control,
        topology: &TopologyKind,
    ) -> Result<Option<ServerMachine>, Error> {
        if self.local {
            return Ok(None);
        }
        if *topology == TopologyKind::Sharded {
            let reason = "the server is a router, which reports only its own machine";
            return Ok(Some(ServerMachine {
                reason: Some(reason.to_owned()),
                ..ServerMachine::default()
            }));
        }
        Ok(Some(prepare::server_machine(control)?))
    }

    /// Servers to query: all members of a replica set, else the named servers.
    pub fn hosts(&self) -> Result<Vec<Host>, Error> {
        let control = self.control()?;
        let members = control.hello().hosts.iter();
        let members: Vec<Host> = members.filter_map(|member| host_of(member)).collect();
        let is_direct = self.target.options.direct_connection == Some(true);
        if members.is_empty() || is_direct {
            return Ok(match self.target.hosts.as_slice() {
                [] => vec![control.endpoint().host().clone()],
                named => named.to_vec(),
            });
        }
        Ok(members)
    }

    /// Connector that makes any number of connections.
    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// Connector with a short timeout to one server of the deployment, whatever its role.
    pub fn connector_to(&self, host: Host) -> Result<Connector, Error> {
        let target = control_target(&self.target, self.backend);
        connector_to(&target, self.credentials.clone(), host)
    }

    /// Port of the server, if the connection string names only one.
    pub fn port(&self) -> Option<u16> {
        match self.target.hosts.as_slice() {
            [Host::Tcp { port, .. }] => Some(*port),
            _ => None,
        }
    }

    /// Whether the server is on this machine, judged by its address.
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// Connection string for clients, without credentials.
    pub fn uri(&self) -> String {
        self.uri.clone()
    }

    /// Address, without credentials.
    pub fn address(&self) -> String {
        match &self.started {
            Some(started) => started.address.clone(),
            None => self.uri.clone(),
        }
    }

    /// Record of this machine, with the `dyno doctor` checks of it and of the server. `data_dir` is
    /// the server's data folder if it is local; `instances` servers of this kind share the machine.
    ///
    /// # Errors
    /// The server does not answer a question.
    pub fn environment(
        &self,
        control: &mut Control,
        plan: &Plan,
        data_dir: Option<PathBuf>,
        instances: u64,
    ) -> Result<dyno_record::model::Environment, Error> {
        let record = self.describe(control, plan)?;
        let server = Some(self.checked(control, &record, instances));
        Ok(dyno_observe::environment::examine(Subject { data_dir, server, ..Subject::default() }))
    }

    /// Facts about the server for the machine checks, including the round trip of a few empty
    /// commands. `instances` servers of this kind share the machine.
    pub fn checked(
        &self,
        control: &mut Control,
        record: &ServerRecord,
        instances: u64,
    ) -> ServerFacts {
        let address = control.endpoint().addresses().first().copied();
        let local_address = address.filter(|_| self.local);
        let listener = || network::listener_pid(Path::new("/"), local_address?.port()).ok();
        ServerFacts {
            product: match record.kind.as_str() {
                "embedded" => Product::Embedded,
                _ => product_of(record.product.as_deref()),
            },
            version: record.version.clone(),
            storage_engine: record.storage_engine.clone(),
            local: self.local,
            pid: self.started.as_ref().map(|started| started.process).or_else(listener),
            address,
            cache_bytes: record.cache_bytes,
            authentication: probe::requires_password(&self.target),
            round_trip: round_trip(control, CHECK_COMMANDS, CHECK_LIMIT),
            available_connections: prepare::available_connections(control).ok().flatten(),
            tracing: prepare::active_tracing(control, &record.settings).ok().flatten(),
            instances,
        }
    }
}

/// Refuses durable writes on a running server that acknowledges them too early.
pub fn check_durable(plan: &Plan, product: Option<&str>) -> Result<(), Error> {
    if !plan.server.waits_for_journal() || product_of(product) != Product::Embedded {
        return Ok(());
    }
    let text = "`server.durable_writes` is not possible with this server: the embedded server acknowledges `journal=true` before the write is on its disk";
    refuse(
        text,
        "start it with `--sync-on-commit` and leave `server.durable_writes` out, or let `dyno` start it",
    )
}

/// Product by the name in the server's build information.
pub fn product_of(product: Option<&str>) -> Product {
    match product {
        Some(name) if name.starts_with("secantus") => Product::Embedded,
        Some(name) if !name.starts_with("MongoDB") && name != "psmdb" => {
            Product::Other(name.to_owned())
        }
        _ => Product::MongoDb,
    }
}

/// Times empty commands; `None` if the server does not answer them.
pub fn round_trip(control: &mut Control, count: usize, limit: Duration) -> Option<RoundTrip> {
    let times = probe::round_trips(control, count, limit).ok()?;
    Some(RoundTrip { count: times.count, median_us: times.median_us, p99_us: times.p99_us })
}

/// Address of a member in the form `host:port`.
fn host_of(member: &str) -> Option<Host> {
    let (host, port) = member.rsplit_once(':')?;
    Some(Host::Tcp {
        host: host.trim_matches(['[', ']']).to_ascii_lowercase(),
        port: port.parse().ok()?,
    })
}

/// Adds facts that the server does not report: the embedded server reports the version of MongoDB
/// that it imitates.
fn describe_started(started: &Started, plan: &Plan, record: &mut ServerRecord) {
    if plan.server.kind == ServerKind::Embedded {
        if let Some(reported) = record.version.replace(started.version.clone()) {
            record.settings.insert("reported_version".into(), reported);
        }
        record.product.get_or_insert_with(|| "secantusd-rs".into());
    }
    record.cache_bytes = record.cache_bytes.or(plan.server.cache_bytes().map(|cache| cache.0));
    record.settings.extend(started.settings.clone());
}

/// Connection string for our own connections. Options that only the driver supports concern its
/// operations, not the set-up commands.
fn control_target(target: &Target, backend: Backend) -> Target {
    let mut target = target.clone();
    if backend == Backend::Driver {
        target.unsupported_by_wire.clear();
    }
    target
}

const SERVER_DEFAULT: &str = "server default";

fn concerns(options: &TargetOptions) -> Concerns {
    let given = &options.write_concern;
    let write = (!given.is_empty()).then(|| WriteConcern {
        w: given.w.as_ref().map(|w| match w {
            W::Number(members) => Acknowledgement::Number(*members),
            W::Majority => Acknowledgement::Majority,
            W::Tag(name) => Acknowledgement::Tag(name.clone()),
        }),
        journal: given.journal,
        wtimeout_ms: given.wtimeout_ms,
    });
    Concerns { write, read_level: options.read_concern_level.clone(), read_preference: None }
}

/// As in a connection string: `w=majority, journal=true`.
fn write_concern_text(options: &TargetOptions) -> String {
    let given = &options.write_concern;
    let w = given.w.as_ref().map(|w| match w {
        W::Number(members) => format!("w={members}"),
        W::Majority => "w=majority".into(),
        W::Tag(name) => format!("w={name}"),
    });
    let journal = given.journal.map(|journal| format!("journal={journal}"));
    let timeout = given.wtimeout_ms.map(|timeout_ms| format!("wtimeoutMS={timeout_ms}"));
    let parts: Vec<String> = [w, journal, timeout].into_iter().flatten().collect();
    if parts.is_empty() { SERVER_DEFAULT.into() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(query: &str) -> TargetOptions {
        Remote::parse(&format!("mongodb://h/?{query}")).expect("it is valid").target.options
    }

    #[test]
    fn concerns_are_sent_only_when_requested() {
        let options = options("");
        let concerns = concerns(&options);
        assert_eq!((concerns.write, concerns.read_level), (None, None));
        assert_eq!(write_concern_text(&options), "server default");
    }

    #[test]
    fn connection_string_sets_the_durability_of_writes() {
        let options = options("w=majority&journal=true&wtimeoutMS=100&readConcernLevel=local");
        let concerns = concerns(&options);
        let write = concerns.write.expect("it was asked for");
        assert_eq!(
            (write.w, write.journal, write.wtimeout_ms),
            (Some(Acknowledgement::Majority), Some(true), Some(100))
        );
        assert_eq!(concerns.read_level.as_deref(), Some("local"));
        assert_eq!(write_concern_text(&options), "w=majority, journal=true, wtimeoutMS=100");
    }

    #[test]
    fn set_up_accepts_driver_options_but_wire_backend_does_not() {
        let target =
            Remote::parse("mongodb://h/?readPreference=secondary").expect("it is valid").target;
        assert!(Connector::new(&control_target(&target, Backend::Driver), None).is_ok());
        let failure = Error::from(
            Connector::new(&control_target(&target, Backend::Wire), None)
                .expect_err("not honoured"),
        );
        assert_eq!(failure.kind, crate::error::Kind::BadInput);
        assert!(failure.cause.to_string().contains("readPreference"));
    }
}
