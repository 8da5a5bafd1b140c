//! Several servers as one deployment: started in order, joined into replica sets and a cluster,
//! stopped in order, and with nothing left behind.
//!
//! ```no_run
//! use dyno_servers::{AdminClient, Deployment, DeploymentOptions, ServerError, ServerOptions};
//! # fn example(server: ServerOptions, admin: &mut dyn AdminClient) -> Result<(), ServerError> {
//! let topology = "replica-set=3".parse()?;
//! let options = DeploymentOptions::new(server);
//! let mut deployment = Deployment::start(&topology, &options, admin, &|| false)?;
//! let uri = deployment.uri();
//! // ... the run, which asks `deployment.ended()` from time to time
//! deployment.stop()?;
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use dyno_plan::uri::Credentials;

use crate::admin_client::{AdminClient, Target};
use crate::child_guard::{POLL_INTERVAL, Stopped};
use crate::effective::{Deviation, deviations, read_back};
use crate::server::{RunningServer, start};
use crate::settings::Security;
use crate::tls::TlsFiles;
use crate::{ServerError, ServerOptions};
use dyno_plan::topology::Topology;

mod assemble;
mod joining;
mod layout;
mod options;
mod planning;
pub(crate) mod replica_set;
mod restart;
mod secrets;
mod sharding;
pub(crate) mod uri;

pub use layout::{Instance, InstanceKind, instances};
pub use options::{DeploymentOptions, Namespace};
pub use planning::planned_caches;
pub use secrets::{GivenSecrets, MemberKey};

use assemble::StepContext;
use planning::{check_programs, planned};
use secrets::Secrets;
use uri::ConnectionMode;

/// Lines of output that [`Deployment::ended`] returns.
const TAIL_LINES: usize = 12;

/// A deployment that is ready for use. Dropping it stops it like [`stop`](Deployment::stop).
#[derive(Debug)]
pub struct Deployment {
    topology: Topology,
    members: Vec<Member>,
    /// Removed after the last member has ended.
    secrets: Secrets,
    require_client_certificate: bool,
    program: &'static str,
    /// Data members of a set over several hosts, by their addresses for clients.
    set_hosts: Vec<String>,
    /// Longest time of one step after the processes have started.
    step_limit: Duration,
}

/// One server of a deployment.
#[derive(Debug)]
pub struct Member {
    instance: Instance,
    /// The options of its start, except for its port.
    options: ServerOptions,
    server: RunningServer,
    is_primary: bool,
    has_user: bool,
}

/// The effective settings of a server of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSettings {
    /// Its name within the deployment.
    pub name: String,
    /// Settings by name, as returned by [`read_back`].
    pub effective: BTreeMap<String, String>,
    /// Settings that differ from the requested ones.
    pub deviations: Vec<Deviation>,
}

/// A server of a deployment that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedMember {
    /// Its name within the deployment.
    pub name: String,
    pub status: ExitStatus,
    /// Its last lines of output.
    pub log_tail: Vec<String>,
}

impl Member {
    /// Its name and kind.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Its process.
    pub fn server(&self) -> &RunningServer {
        &self.server
    }

    /// Routers end first and config servers last, because the others query them; in a set the
    /// primary ends last.
    fn stop_rank(&self) -> (u8, bool) {
        let rank = match self.instance.kind {
            InstanceKind::Router => 0,
            InstanceKind::Arbiter | InstanceKind::Data => 1,
            InstanceKind::ConfigServer => 2,
        };
        (rank, self.is_primary)
    }

    /// Whether it was the primary of its set when the deployment was ready.
    pub fn was_primary(&self) -> bool {
        self.is_primary
    }
}

impl Deployment {
    /// Refuses what [`start`](Deployment::start) would refuse, if that can be checked before a
    /// server runs: topology, caches, settings, data folders, and the versions of the programs.
    /// Creates nothing.
    ///
    /// # Errors
    /// [`ServerError`], like a start.
    pub fn check(topology: &Topology, options: &DeploymentOptions) -> Result<(), ServerError> {
        topology.check()?;
        check_programs(topology, &planned(topology, options)?)
    }

    /// A deployment without servers.
    fn new(
        topology: &Topology,
        options: &DeploymentOptions,
        needs_key: bool,
    ) -> Result<Deployment, ServerError> {
        Ok(Deployment {
            topology: topology.clone(),
            members: Vec::new(),
            secrets: Secrets::make(options, needs_key)?,
            require_client_certificate: options.is_mutual(),
            program: options.server.kind.executable(),
            set_hosts: Vec::new(),
            step_limit: options.step_limit,
        })
    }

    /// Starts all servers of `topology` and joins them.
    ///
    /// `interrupted` is called every few milliseconds; when it returns `true`, everything is
    /// stopped. On an error only the log files are left behind.
    ///
    /// # Errors
    /// [`ServerError`]; errors of one server are a [`ServerError::Member`] with its name.
    pub fn start(
        topology: &Topology,
        options: &DeploymentOptions,
        admin: &mut dyn AdminClient,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Deployment, ServerError> {
        topology.check()?;
        let planned = planned(topology, options)?;
        let needs_key = planned.iter().any(|(instance, _)| instance.set.is_some());
        let mut deployment = Deployment::new(topology, options, needs_key)?;
        let mut context = StepContext { admin, interrupted, limit: options.step_limit };
        deployment.assemble(planned, options, &mut context)?;
        Ok(deployment)
    }

    /// The addresses of the servers for clients, in the order of their start.
    pub fn hosts(&self) -> Vec<String> {
        self.members.iter().map(|member| member.server.host().to_string()).collect()
    }

    /// The topology of the deployment.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// All servers in the order of their start.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The first server that ended by itself, with its last lines of output; `None` while all run.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if a process cannot be checked.
    pub fn ended(&mut self) -> Result<Option<EndedMember>, ServerError> {
        for member in &mut self.members {
            if let Some(status) = member.server.exit_status()? {
                return Ok(Some(EndedMember {
                    name: member.instance.name.clone(),
                    status,
                    log_tail: member.server.log_tail(TAIL_LINES),
                }));
            }
        }
        Ok(None)
    }

    /// The connection string of the run, without user and password. With several pairs it is the
    /// first pair's, see [`uris`](Deployment::uris).
    pub fn uri(&self) -> String {
        self.uris().swap_remove(0)
    }

    /// One connection string per client: one for each independent server, else a single one.
    pub fn uris(&self) -> Vec<String> {
        let hosts = |kind| -> Vec<_> {
            self.members
                .iter()
                .filter(|member| member.instance.kind == kind)
                .map(|member| member.server.host().to_string())
                .collect()
        };
        let data = match self.set_hosts.as_slice() {
            [] => hosts(InstanceKind::Data),
            joined => joined.to_vec(),
        };
        match &self.topology {
            Topology::Standalone | Topology::Pairs { .. } | Topology::Split { .. } => data
                .iter()
                .map(|host| self.uri_of(std::slice::from_ref(host), ConnectionMode::Direct))
                .collect(),
            Topology::ReplicaSet(_) => {
                let set = self.members.first().and_then(|one| one.instance.set.as_deref());
                vec![self.uri_of(&data, ConnectionMode::ReplicaSet(set.unwrap_or_default()))]
            }
            Topology::Sharded(_) => {
                vec![self.uri_of(&hosts(InstanceKind::Router), ConnectionMode::Routers)]
            }
        }
    }

    fn uri_of(&self, hosts: &[String], mode: ConnectionMode<'_>) -> String {
        let tls = self.secrets.tls.as_ref();
        uri::uri(hosts, mode, tls, self.require_client_certificate)
    }

    /// Adds the user and the password of this deployment to `uri`; unchanged without
    /// authentication. The result must not appear in messages or files.
    pub fn with_credentials(&self, uri: &str) -> String {
        match &self.secrets.credentials {
            Some(credentials) => uri::with_credentials(uri, credentials),
            None => uri.to_owned(),
        }
    }

    /// The user that was created; `None` without authentication.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.secrets.credentials.as_ref()
    }

    /// The certificates that were created; `None` without encryption.
    pub fn tls(&self) -> Option<&TlsFiles> {
        self.secrets.tls.as_ref()
    }

    /// How an [`AdminClient`] connects to a member. Arbiters have no users and are reached without
    /// credentials.
    pub fn target(&self, member: &Member) -> Target<'_> {
        Target {
            address: member.server.address(),
            tls: self.secrets.tls.as_ref(),
            credentials: if member.has_user { self.secrets.credentials.as_ref() } else { None },
        }
    }

    /// Reads the settings of all servers and compares them with the requested ones. A member that
    /// does not know the user yet is asked again until `limit`.
    ///
    /// # Errors
    /// [`ServerError::Step`] with the member that does not report its settings.
    pub fn read_back(
        &self,
        admin: &mut dyn AdminClient,
        limit: Duration,
    ) -> Result<Vec<MemberSettings>, ServerError> {
        let begin = Instant::now();
        let mut all = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let asked = member.server.settings();
            let parameters: Vec<&str> =
                asked.keys().filter_map(|name| name.strip_prefix("parameter.")).collect();
            let effective = loop {
                match read_back(admin, self.target(member), &parameters, limit) {
                    Ok(found) => break found,
                    Err(_) if begin.elapsed() < limit && member.has_user => {
                        thread::sleep(POLL_INTERVAL);
                    }
                    Err(source) => {
                        return Err(ServerError::Step {
                            name: member.instance.name.clone(),
                            step: "reading back its settings".to_owned(),
                            source,
                        });
                    }
                }
            };
            all.push(MemberSettings {
                name: member.instance.name.clone(),
                deviations: deviations(asked, &effective),
                effective,
            });
        }
        Ok(all)
    }

    /// Stops routers, shards and config servers in this order, in each set the primary last, and
    /// removes temporary folders and secrets. Continues after an error.
    ///
    /// # Errors
    /// The first error of a member, as [`ServerError::Member`], or of removing the secrets.
    pub fn stop(mut self) -> Result<Vec<(String, Stopped)>, ServerError> {
        self.end()
    }

    fn end(&mut self) -> Result<Vec<(String, Stopped)>, ServerError> {
        let mut members = std::mem::take(&mut self.members);
        members.sort_by_key(Member::stop_rank);
        let mut stopped = Vec::new();
        let mut failure = None;
        while let Some(rank) = members.first().map(Member::stop_rank) {
            let rest = members.partition_point(|member| member.stop_rank() == rank);
            let later = members.split_off(rest);
            let ending = members.into_iter();
            let ending = ending.map(|member| (member.instance.name, member.server));
            for ended in end_together(ending.collect(), RunningServer::stop) {
                match ended {
                    Ok(ended) => stopped.push(ended),
                    Err(error) => {
                        failure.get_or_insert(error);
                    }
                }
            }
            members = later;
        }
        let removed = self.secrets.remove();
        match failure {
            Some(error) => Err(error),
            None => removed.map(|()| stopped),
        }
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "deployment not stopped cleanly");
        }
    }
}

/// Stops named servers concurrently: each may have a checkpoint to write, or hang.
fn end_together<S: Send>(
    servers: Vec<(String, S)>,
    end: fn(S) -> Result<Stopped, ServerError>,
) -> Vec<Result<(String, Stopped), ServerError>> {
    thread::scope(|scope| {
        let ending: Vec<_> = servers
            .into_iter()
            .map(|(name, server)| (name, scope.spawn(move || end(server))))
            .collect();
        ending
            .into_iter()
            .map(|(name, handle)| match handle.join() {
                Ok(Ok(ended)) => Ok((name, ended)),
                Ok(Err(source)) => Err(member_error(&name, source)),
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

fn member_error(name: &str, source: ServerError) -> ServerError {
    match source {
        ServerError::Interrupted { .. } => source,
        _ => ServerError::Member { name: name.to_owned(), source: Box::new(source) },
    }
}

/// Adds the secrets to the options of one server.
fn secured(server: &mut ServerOptions, secrets: &Secrets, options: &DeploymentOptions) {
    server.security = Security {
        tls: secrets.tls.clone(),
        require_client_certificate: options.is_mutual(),
        key_file: match server.role {
            crate::ServerRole::Standalone => None,
            _ => secrets.key_file.clone(),
        },
    };
}

/// Starts one planned server.
fn launch(
    instance: &Instance,
    server: &ServerOptions,
    alone: bool,
    interrupted: &dyn Fn() -> bool,
) -> Result<RunningServer, ServerError> {
    start(server, interrupted)
        .map_err(|source| if alone { source } else { member_error(&instance.name, source) })
}
