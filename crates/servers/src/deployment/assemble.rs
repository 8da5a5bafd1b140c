//! Brings up a deployment step by step, each with a deadline and with checks of the processes.

use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

use bson::{Document, doc};

use super::layout::election_settings;
use super::replica_set::{PlannedMember, configuration, progress};
use super::{
    Deployment, DeploymentOptions, Instance, InstanceKind, Member, TAIL_LINES, launch,
    member_error, secured,
};
use crate::address;
use crate::admin_client::{AdminClient, COMMAND_NOT_FOUND};
use crate::secret::user_command;
use crate::settings::ServerRole;
use crate::{CommandFailure, ServerError, ServerOptions};
use dyno_plan::topology::Topology;

/// Interval of asking for a state: short compared to an election (seconds), and no noticeable load.
const ASK_INTERVAL: Duration = Duration::from_millis(50);

/// Interval of checking `interrupted` in between.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Time in which a server that no longer answers may turn out to have died.
const DEATH_GRACE: Duration = Duration::from_secs(2);

/// Context of the steps: clients, limits and interruption.
pub(super) struct StepContext<'a> {
    pub(super) admin: &'a mut dyn AdminClient,
    pub(super) interrupted: &'a dyn Fn() -> bool,
    pub(super) limit: Duration,
}

/// Options of a first start on loopback only: a server that does not listen there otherwise gets
/// its user this way.
fn on_loopback_first(server: &ServerOptions) -> Option<ServerOptions> {
    let reached = address::local(server.kind, server.listen);
    (server.plan.auth && !reached.is_loopback()).then(|| ServerOptions {
        listen: Ipv4Addr::LOCALHOST.into(),
        advertise: None,
        ..server.clone()
    })
}

impl Deployment {
    /// All steps from the first process to a deployment that is ready for use.
    pub(super) fn assemble(
        &mut self,
        planned: Vec<(Instance, ServerOptions)>,
        options: &DeploymentOptions,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        let alone = planned.len() == 1;
        let (routers, others): (Vec<_>, Vec<_>) =
            planned.into_iter().partition(|(instance, _)| instance.kind == InstanceKind::Router);
        let mut later = Vec::new();
        for (instance, mut server) in others {
            secured(&mut server, &self.secrets, options);
            let first = on_loopback_first(&server);
            let begun = first.as_ref().unwrap_or(&server);
            let running = launch(&instance, begun, alone, context.interrupted)?;
            if first.is_some() {
                later.push(self.members.len());
            }
            self.add(instance, server, running);
        }
        self.initiate_sets(context)?;
        self.make_users(context)?;
        for at in later {
            let Member { instance, options, server, .. } = &mut self.members[at];
            let moved = server.pause();
            moved
                .and_then(|_| server.resume(options, context.interrupted))
                .map_err(|source| member_error(&instance.name, source))?;
        }
        let config_servers = self.config_servers();
        for (instance, mut server) in routers {
            server.role = ServerRole::Router(config_servers.clone());
            secured(&mut server, &self.secrets, options);
            let running = launch(&instance, &server, alone, context.interrupted)?;
            self.add(instance, server, running);
        }
        if let (Topology::Sharded(cluster), Some(namespace)) =
            (self.topology.clone(), &options.collection)
        {
            self.make_cluster(&cluster, namespace, context)?;
        }
        Ok(())
    }

    pub(super) fn add(
        &mut self,
        instance: Instance,
        options: ServerOptions,
        server: crate::RunningServer,
    ) {
        self.members.push(Member { instance, options, server, is_primary: false, has_user: false });
    }

    /// Names of the replica sets in the order of their start.
    pub(super) fn sets(&self) -> Vec<String> {
        let mut sets: Vec<String> =
            self.members.iter().filter_map(|member| member.instance.set.clone()).collect();
        sets.dedup();
        sets
    }

    /// Positions of the members of a set.
    pub(super) fn positions(&self, set: &str) -> Vec<usize> {
        (0..self.members.len())
            .filter(|&at| self.members[at].instance.set.as_deref() == Some(set))
            .collect()
    }

    /// `SET/HOST:PORT,...`, as `addShard` and `--configdb` take it.
    pub(super) fn seed_list(&self, set: &str) -> String {
        let hosts: Vec<_> = self
            .positions(set)
            .into_iter()
            .map(|at| self.members[at].server.host().to_string())
            .collect();
        format!("{set}/{}", hosts.join(","))
    }

    fn config_servers(&self) -> String {
        self.members
            .iter()
            .find(|member| member.instance.kind == InstanceKind::ConfigServer)
            .and_then(|member| member.instance.set.clone())
            .map(|set| self.seed_list(&set))
            .unwrap_or_default()
    }

    /// Initiates all sets before waiting, so that the elections overlap.
    fn initiate_sets(&mut self, context: &mut StepContext<'_>) -> Result<(), ServerError> {
        let sets = self.sets();
        for set in &sets {
            let positions = self.positions(set);
            let config = self.members[positions[0]].instance.kind == InstanceKind::ConfigServer;
            let document = configuration(set, &self.wanted(&positions), config);
            let step = format!("initiating the replica set `{set}`");
            let command = doc! { "replSetInitiate": document };
            self.command(context, positions[0], &step, "admin", command)?;
        }
        for set in &sets {
            self.wait_for_set(set, context)?;
        }
        Ok(())
    }

    fn wanted(&self, positions: &[usize]) -> Vec<PlannedMember<'_>> {
        (0..)
            .zip(positions)
            .map(|(index, &at)| PlannedMember {
                name: &self.members[at].instance.name,
                host: self.members[at].server.host().to_string(),
                election: election_settings(&self.topology, index),
            })
            .collect()
    }

    /// Waits until a set is complete, and returns the position of its primary.
    pub(super) fn wait_for_set(
        &mut self,
        set: &str,
        context: &mut StepContext<'_>,
    ) -> Result<usize, ServerError> {
        let positions = self.positions(set);
        let step = format!("waiting for a primary and all members of the replica set `{set}`");
        let primary = self.wait(context, &step, |deployment, context| {
            let status = deployment.ask(context, positions[0], doc! { "replSetGetStatus": 1 });
            let status =
                status.map_err(|failure| deployment.describe_failure(positions[0], &failure))?;
            progress(&status, &deployment.wanted(&positions)).map(|primary| positions[primary])
        })?;
        let step = format!("waiting for `hello` from the primary of `{set}`");
        self.wait(context, &step, |deployment, context| {
            match deployment.hello(context, primary) {
                Ok(true) => Ok(()),
                Ok(false) => Err(deployment.describe(primary, "does not accept writes yet")),
                Err(failure) => Err(deployment.describe_failure(primary, &failure)),
            }
        })?;
        for at in positions {
            self.members[at].is_primary = at == primary;
        }
        Ok(primary)
    }

    /// Whether a member accepts writes. Versions before 4.4.2 know only the older name.
    fn hello(&self, context: &mut StepContext<'_>, at: usize) -> Result<bool, CommandFailure> {
        match self.ask(context, at, doc! { "hello": 1 }) {
            Err(failure) if failure.code() == Some(COMMAND_NOT_FOUND) => {
                let reply = self.ask(context, at, doc! { "isMaster": 1 })?;
                Ok(reply.get_bool("ismaster").unwrap_or(false))
            }
            reply => Ok(reply?.get_bool("isWritablePrimary").unwrap_or(false)),
        }
    }

    /// Creates the user on every server that accepts writes, through the localhost exception of a
    /// server without users. Shards get the user as well: that closes the exception, and their
    /// settings can be read. The cluster's own user is created through a router later.
    fn make_users(&mut self, context: &mut StepContext<'_>) -> Result<(), ServerError> {
        if self.secrets.credentials.is_none() {
            return Ok(());
        }
        for at in 0..self.members.len() {
            let member = &self.members[at];
            let takes_writes = member.instance.set.is_none() || member.is_primary;
            if takes_writes && member.instance.kind == InstanceKind::Data {
                self.make_user(at, context)?;
            }
        }
        Ok(())
    }

    /// Creates the user on one server; the members of its set have the user when this returns.
    pub(super) fn make_user(
        &mut self,
        at: usize,
        context: &mut StepContext<'_>,
    ) -> Result<(), ServerError> {
        if self.secrets.credentials.is_none() {
            return Ok(());
        }
        let holders: Vec<usize> = match self.members[at].instance.set.clone() {
            None => vec![at],
            Some(set) => {
                let mut holders = self.positions(&set);
                holders.retain(|&at| self.members[at].instance.kind == InstanceKind::Data);
                holders
            }
        };
        let everybody = match self.members[at].instance.set {
            None => 0,
            Some(_) => i32::try_from(holders.len()).unwrap_or(1),
        };
        let command = self.user_command(everybody, context.limit);
        self.command(context, at, "creating the user", "admin", command)?;
        for at in holders {
            self.members[at].has_user = true;
        }
        Ok(())
    }

    /// The command that creates the user and waits until `holders` members of a set have it; 0
    /// outside of sets.
    pub(super) fn user_command(&self, holders: i32, limit: Duration) -> Document {
        let Some(credentials) = &self.secrets.credentials else {
            return Document::new();
        };
        let mut command = user_command(credentials);
        if holders > 0 {
            let timeout = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
            command.insert("writeConcern", doc! { "w": holders, "wtimeout": timeout });
        }
        command
    }

    /// Sends a command to `admin`; the caller judges the result.
    pub(super) fn ask(
        &self,
        context: &mut StepContext<'_>,
        at: usize,
        command: Document,
    ) -> Result<Document, CommandFailure> {
        let target = self.target(&self.members[at]);
        context.admin.run(target, "admin", command, context.limit)
    }

    /// Sends a command whose failure ends the start.
    pub(super) fn command(
        &mut self,
        context: &mut StepContext<'_>,
        at: usize,
        step: &str,
        database: &str,
        command: Document,
    ) -> Result<Document, ServerError> {
        self.check_running(context, step)?;
        let target = self.target(&self.members[at]);
        let reply = context.admin.run(target, database, command, context.limit);
        let source = match reply {
            Ok(reply) => return Ok(reply),
            Err(source) => source,
        };
        // A server that died says more in its log than the broken connection does, and a connection
        // may break some time before the process ends.
        let failed = Instant::now();
        self.check_running(context, step)?;
        while source.code().is_none() && failed.elapsed() < DEATH_GRACE {
            thread::sleep(LOOK_INTERVAL);
            self.check_running(context, step)?;
        }
        Err(ServerError::Step {
            name: self.members[at].instance.name.clone(),
            step: step.to_owned(),
            source,
        })
    }

    /// Repeats `condition` until it holds, a server ends, or the limit is over. Its error says why
    /// it does not hold yet.
    pub(super) fn wait<T>(
        &mut self,
        context: &mut StepContext<'_>,
        step: &str,
        mut condition: impl FnMut(&mut Self, &mut StepContext<'_>) -> Result<T, String>,
    ) -> Result<T, ServerError> {
        let begin = Instant::now();
        loop {
            self.check_running(context, step)?;
            let pending = match condition(self, context) {
                Ok(value) => return Ok(value),
                Err(pending) => pending,
            };
            self.check_running(context, step)?;
            if begin.elapsed() > context.limit {
                return Err(ServerError::Deadline {
                    step: step.to_owned(),
                    pending,
                    waited: context.limit,
                });
            }
            let asked = Instant::now();
            while asked.elapsed() < ASK_INTERVAL && !(context.interrupted)() {
                thread::sleep(LOOK_INTERVAL);
            }
        }
    }

    /// Stops here if the caller gave up or a server has ended.
    fn check_running(&mut self, context: &StepContext<'_>, step: &str) -> Result<(), ServerError> {
        if (context.interrupted)() {
            return Err(ServerError::Interrupted { program: self.program });
        }
        for member in &mut self.members {
            if let Some(status) = member.server.exit_status()? {
                return Err(ServerError::MemberEnded {
                    name: member.instance.name.clone(),
                    step: step.to_owned(),
                    status,
                    log_tail: member.server.log_tail(TAIL_LINES),
                });
            }
        }
        Ok(())
    }

    /// A failure with its cause, as the reason why a wait continues.
    pub(super) fn describe_failure(&self, at: usize, failure: &CommandFailure) -> String {
        let mut text = failure.to_string();
        let mut cause = std::error::Error::source(failure);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        format!("`{}`: {text}", self.members[at].instance.name)
    }

    pub(super) fn describe(&self, at: usize, what: &str) -> String {
        format!("`{}` {what}", self.members[at].instance.name)
    }
}
