//! A fleet behind a session: hosts that load servers for it, and hosts that servers are started on. Sessions and
//! experiments ask it for servers and for phases, and otherwise do not know it.

mod agent;
mod checks;
mod cluster;
mod course;
mod hosts;
mod open;
mod opening;
mod program;
mod record;
mod relays;
mod serve;
mod server_use;
mod stage;
mod watch;

pub(crate) use agent::agent;
pub(crate) use checks::{check_amounts, check_same};
pub(crate) use course::Phases;
pub(crate) use opening::check_run;
pub(crate) use record::caveats;
pub(crate) use relays::Relays;

use crate::args::{HostArguments, RedisArguments};
use crate::exit::{Exit, Failure};
use crate::session::document::VERSION;
use crate::session::execute::Hands;
use crate::surroundings::Surroundings;
use checks::{check, check_fits};
use dyno_fleet::FleetError;
use dyno_fleet::controller::{Controller, forget};
use dyno_fleet::endpoint::{Endpoint, EndpointSource};
use dyno_fleet::names::RunName;
use dyno_fleet::protocol::Version;
use dyno_fleet::shares::{least_clients, shares};
use dyno_plan::Plan;
use dyno_plan::fleet::Amounts;
use dyno_plan::task::Remote;
use dyno_plan::uri::redact;
use open::{Open, Places, PrivateFolder};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    size: Cell<Option<Size>>,
}

/// How many take part.
#[derive(Clone, Copy, Debug)]
struct Size {
    agents: u32,
    servers: u32,
}

impl<'a> Fleet<'a> {
    /// Nothing is done yet.
    pub(crate) fn new(arguments: &'a HostArguments, surroundings: &'a Surroundings) -> Self {
        Fleet {
            arguments,
            surroundings,
            state: RefCell::new(None),
            size: Cell::new(None),
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
        let fleet = check(plan, remote, self.arguments.kubernetes)?;
        let mut state = self.state.borrow_mut();
        if state.is_none() {
            *state = Some(match self.arguments.kubernetes {
                true => self.open_cluster(plan, fleet, hands)?,
                false => self.open(plan, fleet, embedded, hands)?,
            });
        }
        let open = state.as_mut().expect("it was opened just now");
        check_fits(plan, Some(&open.plan), open.kind)?;
        let seen = match remote {
            Some(remote) => vec![(remote.clone(), remote.target.to_string())],
            None => open.serve(plan, hands)?,
        };
        open.start_clients(hands)?;
        let (remotes, uris): (Vec<Remote>, Vec<String>) = seen.into_iter().unzip();
        // Who would have nothing to do is told before anything is recorded.
        shares(plan, open.agents.len() as u32, remotes.len() as u32)
            .map_err(|error| Failure::of(Exit::BadInput, error))?;
        open.uris = uris;
        Ok(remotes)
    }

    /// How many agents and servers a plan has, before anything of it is started.
    fn size(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        hands: Hands<'_>,
    ) -> Result<Size, Failure> {
        if let Some(size) = self.size.get() {
            return Ok(size);
        }
        let fleet = check(plan, remote, self.arguments.kubernetes)?;
        let (agents, servers) = match self.arguments.kubernetes {
            true => {
                let pods = cluster::table(fleet)?;
                (pods.client_pods, pods.server_pods * pods.disks)
            }
            false => {
                let folder = PrivateFolder::create()?;
                let found = self.hosts(fleet, &folder, hands)?;
                (found.agents(fleet), found.servers.len() as u32)
            }
        };
        let servers = if remote.is_some() { 1 } else { servers };
        let size = Size { agents, servers };
        self.size.set(Some(size));
        Ok(size)
    }

    /// Refuses plans in which somebody of the fleet would have nothing to do, before anything is started.
    pub(crate) fn check_shares<'p>(
        &self,
        plans: impl Iterator<Item = (&'p Plan, Option<&'p Remote>)>,
        hands: Hands<'_>,
    ) -> Result<(), Failure> {
        for (plan, remote) in plans {
            let size = self.size(plan, remote, hands)?;
            shares(plan, size.agents, size.servers)
                .map_err(|error| Failure::of(Exit::BadInput, error))?;
        }
        Ok(())
    }

    /// Fewest clients of a plan with which everybody has something to do.
    pub(crate) fn least_clients(
        &self,
        plan: &Plan,
        remote: Option<&Remote>,
        hands: Hands<'_>,
    ) -> Result<u32, Failure> {
        let size = self.size(plan, remote, hands)?;
        let least = least_clients(plan, size.agents, size.servers).unwrap_or(1);
        Ok(u32::try_from(least).unwrap_or(u32::MAX))
    }

    /// Whether hosts of clients or servers are lost, so that no other run can be like those before.
    pub(crate) fn has_lost_hosts(&self) -> bool {
        let state = self.state.borrow();
        let open = state.as_ref();
        let going =
            |controller: &Option<Controller>| controller.as_ref().map_or(0, Controller::going);
        open.is_some_and(|open| {
            // In pods the agent beside a server is not the server.
            going(&open.clients) < open.agents.len()
                || open.is_on_hosts() && going(&open.servers) < open.server_hosts.len()
        })
    }

    /// Ends agents and servers in order, and takes everything away from the hosts.
    pub(crate) fn close(&self, hands: Hands<'_>) {
        if let Some(open) = self.state.borrow_mut().take() {
            self.end(open, "", hands);
        }
    }

    /// Ends everything: in order without a reason. What could not be ended is said. With a reason, the last line of each log
    /// is returned, by the name of its file.
    fn end(&self, mut open: Open, reason: &str, hands: Hands<'_>) -> Vec<(String, String)> {
        let mut left = Vec::new();
        let mut is_redis_gone = false;
        // Servers last: agents may still talk to them.
        let both = [
            (open.clients.take(), LEAVE_WITHIN),
            (open.servers.take(), STOP_WITHIN),
        ];
        for (controller, within) in both {
            let Some(controller) = controller.filter(|_| !is_redis_gone) else {
                continue;
            };
            let ended = match reason {
                "" => controller.finish(within),
                reason => controller.abort(reason, within),
            };
            match ended {
                Ok(silent) => left.extend(silent),
                Err(FleetError::RedisGone { .. }) => {
                    is_redis_gone = true;
                    let text = "Redis has gone: agents end by their lease, and keys expire";
                    hands.messages.warning(text);
                }
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
        let (hosts, names) = match &mut open.places {
            Places::Hosts(hosts, names) => (hosts, names),
            // Redis goes with all others.
            Places::Cluster(cluster) => {
                cluster.end(logs.as_deref(), hands);
                return Vec::new();
            }
        };
        let own = open.folder.0.join("logs");
        let logs = logs.or((!reason.is_empty()).then_some(own));
        if let Err(failure) = hosts.stop(&open.run, base, names, logs.as_deref()) {
            hands.messages.warning(&format!("{:#}", failure.error));
            for line in &failure.log_tail {
                hands.messages.warning(line);
            }
        }
        // Now that nobody is there any more: an agent may have said why it ended after its controller had gone.
        for run in open.keys.iter().filter(|_| !is_redis_gone) {
            if let Err(error) = forget(&open.endpoint, run) {
                hands.messages.warning(&error.to_string());
            }
        }
        logs.filter(|_| !reason.is_empty())
            .map_or_else(Vec::new, |logs| last_lines(&logs))
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
        sink: dyno_load::Sink<'_>,
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

/// The last line of each log in a folder, by the name of its file.
fn last_lines(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let line = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = std::fs::read(entry.path()).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Some((name, text.lines().next_back()?.to_owned()))
    };
    entries.filter_map(line).collect()
}
