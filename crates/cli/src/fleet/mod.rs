//! A fleet behind a session: hosts that load servers for it, and hosts that servers are started on. Sessions and
//! experiments ask it for servers and for phases, and otherwise do not know it.

mod agent;
mod course;
mod hosts;
mod open;
mod record;
mod serve;
mod stage;

pub(crate) use agent::agent;
pub(crate) use course::Phases;
pub(crate) use record::caveats;

use crate::args::{HostArguments, RedisArguments};
use crate::exit::{Exit, Failure};
use crate::session::collection;
use crate::session::document::VERSION;
use crate::session::execute::Hands;
use crate::session::task::{self, Remote};
use crate::surroundings::Surroundings;
use dyno_fleet::FleetError;
use dyno_fleet::controller::{Controller, ControllerOptions, forget};
use dyno_fleet::endpoint::{Endpoint, EndpointSource};
use dyno_fleet::inventory::Inventory;
use dyno_fleet::names::RunName;
use dyno_fleet::protocol::Version;
use dyno_fleet::shares::shares;
use dyno_plan::Plan;
use dyno_plan::fleet::{Amounts, FleetPlan, Mapping};
use dyno_plan::model::ServerKind;
use dyno_plan::uri::redact;
use dyno_servers::{EmbeddedPlaces, locate_embedded};
use hosts::{Hosts, Started, Wanted};
use open::{Open, PrivateFolder};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Free disk that a client host needs for its program and logs, and a server host besides its data.
const NEEDED_DISK_BYTES: u64 = 64 << 20;
/// Longest time for the end of agents, and of servers that write their last checkpoint.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
const STOP_WITHIN: Duration = Duration::from_secs(90);

/// Version that all hosts must have.
fn version() -> Version {
    Version::of(VERSION)
}

fn run_name(text: &str) -> Result<RunName, Failure> {
    Ok(RunName::new(text)?)
}

/// Those who start servers meet under a name of their own.
fn servers_run(text: &str) -> Result<RunName, Failure> {
    run_name(&format!("{text}.servers"))
}

/// Error and causes in one line, without credentials.
fn reason(failure: &Failure) -> String {
    let mut text = redact(&format!("{:#}", failure.error));
    if let Some(last) = failure.log_tail.last() {
        text.push_str(&format!("; the last line of its log: {}", redact(last)));
    }
    text
}

/// A histogram whose values are outside of the bounds that all have: a bug.
fn unbounded(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::of(Exit::Internal, error)
}

/// Where Redis is.
fn endpoint(arguments: &RedisArguments, surroundings: &Surroundings) -> Result<Endpoint, Failure> {
    if arguments
        .redis
        .as_deref()
        .is_some_and(|url| url.contains('@'))
    {
        let text = "`--redis` holds a password, which every user of this machine can read there";
        return Err(Failure::new(Exit::BadInput, text).with_hint(
            "put the address into the variable `DYNO_REDIS`, or into a file that `DYNO_REDIS_FILE` names",
        ));
    }
    let text = arguments.redis.clone().or_else(|| {
        let secret = surroundings.redis.as_ref()?;
        Some(secret.reveal().to_owned())
    });
    Ok(Endpoint::find(&EndpointSource {
        text,
        file: surroundings.redis_file.clone(),
        authority: arguments.redis_ca.clone(),
    })?)
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let exit = match &error {
            FleetError::NoEndpoint
            | FleetError::EndpointText { .. }
            | FleetError::RunName { .. } => Exit::BadInput,
            FleetError::Interrupted => Exit::Interrupted,
            _ => Exit::Environment,
        };
        let hint = error.hint();
        let failure = Failure::of(exit, error);
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// What the hosts of a verb are. Nothing is done with them until servers are asked for.
pub(crate) struct Fleet<'a> {
    arguments: &'a HostArguments,
    surroundings: &'a Surroundings,
    state: RefCell<Option<Open>>,
}

impl<'a> Fleet<'a> {
    /// Nothing is done yet.
    pub(crate) fn new(arguments: &'a HostArguments, surroundings: &'a Surroundings) -> Self {
        Fleet {
            arguments,
            surroundings,
            state: RefCell::new(None),
        }
    }

    /// The servers of a plan: started on their hosts, or those that run already. The first call brings agents to all hosts.
    pub(crate) fn servers(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        embedded: Option<&Path>,
        hands: Hands<'_>,
    ) -> Result<Vec<Remote>, Failure> {
        let fleet = check(plan, remote)?;
        let mut state = self.state.borrow_mut();
        if state.is_none() {
            *state = Some(self.open(plan, fleet, embedded, hands)?);
        }
        let open = state.as_mut().expect("it was opened just now");
        let remotes = match remote {
            Some(remote) => vec![remote.clone()],
            None => open.serve(plan, hands)?,
        };
        // Who would have nothing to do is told before anything is recorded.
        shares(plan, open.agents.len() as u32, remotes.len() as u32)
            .map_err(|error| Failure::of(Exit::BadInput, error))?;
        open.uris = remotes.iter().map(|one| one.target.to_string()).collect();
        Ok(remotes)
    }

    fn open(
        &self,
        plan: &Plan,
        fleet: &FleetPlan,
        embedded: Option<&Path>,
        hands: Hands<'_>,
    ) -> Result<Open, Failure> {
        let endpoint = endpoint(&self.arguments.redis, self.surroundings)?;
        let folder = PrivateFolder::create()?;
        let path = self.surroundings.path.as_deref();
        let hosts = Hosts::new(&self.arguments.inventory, path, folder.0.clone())?;
        let inventory = hosts.inventory()?;
        let bad = |error| Failure::of(Exit::BadInput, error).with_hint("see `fleet` in the plan");
        let clients = inventory.hosts(&fleet.clients).map_err(bad)?;
        let servers = inventory.hosts(&fleet.servers).map_err(bad)?;
        check_servers(fleet, &servers)?;
        let run = match &self.arguments.run {
            Some(name) => name.clone(),
            None => format!(
                "{}-{:x}-{:x}",
                plan.name.chars().take(30).collect::<String>(),
                std::process::id(),
                jiff::Timestamp::now().as_millisecond()
            ),
        };
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
        let data = collection::planned_bytes(&plan.data, plan.data.records).unwrap_or(0);
        let mut open = Open {
            clients: Some(controller(client_run, &agent_hosts, NEEDED_DISK_BYTES)?),
            agents: Vec::new(),
            servers: match servers.is_empty() {
                true => None,
                false => Some(controller(
                    server_run,
                    &servers,
                    NEEDED_DISK_BYTES.saturating_add(data),
                )?),
            },
            server_hosts: Vec::new(),
            addresses: servers
                .iter()
                .map(|host| address(&inventory, host))
                .collect::<Result<_, _>>()?,
            uris: Vec::new(),
            endpoint: endpoint.clone(),
            keys,
            names: clients.iter().chain(&servers).cloned().collect(),
            run,
            hosts,
            _folder: folder,
        };
        let wanted = Wanted {
            run: &open.run,
            programs: &programs,
            server_program: self.server_program(plan, &servers, embedded)?,
            servers: &servers,
            redis_file: self.redis_file(&open._folder.0)?,
            redis_ca: self.arguments.redis.redis_ca.clone().map(absolute),
            base: &self.arguments.host_folder,
            program: self.surroundings.executable.clone().ok_or_else(|| {
                Failure::new(Exit::Environment, "the path of this program is not known")
            })?,
        };
        hands.messages.note(&format!(
            "run `{}`: {} agents on {} hosts, {} servers",
            open.run,
            agent_hosts.len(),
            clients.len(),
            servers.len()
        ));
        let begun = open.hosts.start(&wanted);
        let begun = begun.and_then(|()| open.gather(fleet.join_within.0, hands));
        if let Err(failure) = begun {
            self.end(open, &reason(&failure), hands);
            return Err(failure);
        }
        Ok(open)
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
        let executable = self.surroundings.executable.as_deref();
        let found = locate_embedded(&EmbeddedPlaces {
            explicit: embedded,
            executable_dir: executable.and_then(Path::parent),
            path_variable: self.surroundings.path.as_deref(),
        })?;
        Ok(Some(absolute(found)))
    }

    /// The address of Redis for the hosts, in a file that only this person can read.
    fn redis_file(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let given = &self.arguments.redis.redis;
        let secret = self.surroundings.redis.as_ref();
        let text = given
            .as_deref()
            .or_else(|| secret.map(|secret| secret.reveal()));
        let (Some(text), path) = (text, folder.join("redis-url")) else {
            let file = self.surroundings.redis_file.clone();
            return Ok(absolute(file.unwrap_or_default()));
        };
        std::fs::write(&path, text).map_err(|error| {
            Failure::of(Exit::Environment, error).context("cannot keep the address of Redis")
        })?;
        Ok(path)
    }

    /// Ends agents and servers in order, and takes everything away from the hosts.
    pub(crate) fn close(&self, hands: Hands<'_>) {
        if let Some(open) = self.state.borrow_mut().take() {
            self.end(open, "", hands);
        }
    }

    /// Ends everything: in order without a reason. What could not be ended is said.
    fn end(&self, mut open: Open, reason: &str, hands: Hands<'_>) {
        let mut left = Vec::new();
        // Servers last: agents may still talk to them.
        let both = [
            (open.clients.take(), LEAVE_WITHIN),
            (open.servers.take(), STOP_WITHIN),
        ];
        for (controller, within) in both {
            let Some(controller) = controller else {
                continue;
            };
            let ended = match reason {
                "" => controller.finish(within),
                reason => controller.abort(reason, within),
            };
            match ended {
                Ok(silent) => left.extend(silent),
                Err(error) => hands.messages.warning(&error.to_string()),
            }
        }
        for agent in &left {
            hands
                .messages
                .warning(&format!("{agent} did not say that it ended"));
        }
        let logs = self.arguments.logs.clone().map(absolute);
        let base = &self.arguments.host_folder;
        if let Err(failure) = open
            .hosts
            .stop(&open.run, base, &open.names, logs.as_deref())
        {
            hands.messages.warning(&format!("{:#}", failure.error));
            for line in &failure.log_tail {
                hands.messages.warning(line);
            }
        }
        // Now that nobody is there any more: an agent may have said why it ended after its controller had gone.
        for run in &open.keys {
            if let Err(error) = forget(&open.endpoint, run) {
                hands.messages.warning(&error.to_string());
            }
        }
    }

    /// Offered rate of all agents together.
    pub(crate) fn offered_rate_per_s(&self, plan: &Plan) -> Option<f64> {
        Some(plan.schedule.rate_per_s()? * self.multiple(plan))
    }

    /// Operations of all agents together, when the plan says this many.
    pub(crate) fn in_all(&self, plan: &Plan, operations: u64) -> u64 {
        operations.saturating_mul(self.multiple(plan) as u64)
    }

    /// What amounts of the plan are to be multiplied by.
    fn multiple(&self, plan: &Plan) -> f64 {
        let state = self.state.borrow();
        let agents = state.as_ref().map_or(1, |open| open.agents.len());
        match plan.fleet.as_ref().map(|fleet| fleet.amounts) {
            Some(Amounts::PerAgent) => agents as f64,
            Some(Amounts::InAll) | None => 1.0,
        }
    }

    /// Performs phases on the whole fleet; see [`course`].
    pub(crate) fn perform(
        &self,
        phases: &Phases<'_>,
        hands: Hands<'_>,
        sink: dyno_load::engine::Sink<'_>,
    ) -> Result<(), Failure> {
        let offered = self.offered_rate_per_s(phases.plan);
        let mut state = self.state.borrow_mut();
        let open = state
            .as_mut()
            .ok_or_else(|| Failure::new(Exit::Internal, "the fleet has not been opened"))?;
        course::perform(open, phases, offered, hands, sink)
    }
}

/// The plan as it goes to agents: what is about the fleet is settled.
fn plan_text(plan: &Plan) -> String {
    let mut plan = plan.clone();
    plan.fleet = None;
    dyno_plan::file::to_toml(&plan)
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
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

/// What a fleet cannot do, or what cannot be done without one.
fn check<'a>(plan: &'a Plan, remote: Option<&Remote>) -> Result<&'a FleetPlan, Failure> {
    let bad = |text: &str| Failure::new(Exit::BadInput, text.to_owned());
    let Some(fleet) = &plan.fleet else {
        return Err(bad("the plan has no table `[fleet]`")
            .with_hint("see docs/fleet.md; `dyno run` needs none"));
    };
    if fleet.clients.is_empty() {
        return Err(bad("`fleet.clients` names no host"));
    }
    if remote.is_some_and(|remote| remote.credentials.is_some()) {
        return Err(bad(
            "credentials of servers are not given to the hosts of a fleet",
        ));
    }
    if remote.is_some() && !fleet.servers.is_empty() {
        return Err(bad(
            "`fleet.servers` has no effect on servers that run already",
        ));
    }
    if let Some(key) = record::unsupported(plan) {
        return Err(bad(&format!(
            "`{key}` is about one machine, and cannot be part of a fleet"
        )));
    }
    task::check(plan)?;
    Ok(fleet)
}

fn check_servers(fleet: &FleetPlan, servers: &[String]) -> Result<(), Failure> {
    if fleet.mapping == Mapping::Deployment && servers.len() > 1 {
        let text = format!(
            "`fleet.mapping` is `deployment`, and {} hosts are named for its servers",
            servers.len()
        );
        return Err(Failure::new(Exit::BadInput, text).with_hint(
            "name one host, or map clients to independent servers by `pairs` or `all-to-all`",
        ));
    }
    Ok(())
}
