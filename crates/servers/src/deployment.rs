//! Several servers as one deployment: started in order, joined into replica sets and a cluster,
//! stopped in order, and nothing left behind.
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
use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use dyno_plan::uri::Credentials;

use crate::admin_client::{AdminClient, Target};
use crate::child_guard::POLL_INTERVAL;
use crate::effective::{Deviation, deviations, read_back};
use crate::server::{RunningServer, Stopped, start};
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

pub use layout::{FolderMapping, Instance, InstanceKind, instances};
pub use options::{Adjust, DeploymentOptions, Encryption, Namespace};
pub use planning::planned_caches;
pub use secrets::{GivenSecrets, MemberKey};

use assemble::StepContext;
use planning::{check_elsewhere, check_programs, planned, planned_folders};
use secrets::Secrets;
use uri::ConnectionMode;

/// Lines of output that [`Deployment::ended`] gives.
const TAIL_LINES: usize = 12;

/// A deployment that can be used. Dropping it stops it as [`stop`](Deployment::stop) does.
#[derive(Debug)]
pub struct Deployment {
    topology: Topology,
    members: Vec<Member>,
    /// Removed after the last member has ended.
    secrets: Secrets,
    require_client_certificate: bool,
    program: &'static str,
    /// Data members of a set over several hosts, as clients reach them.
    set_hosts: Vec<String>,
    /// Longest time of one step after a start of processes.
    step_limit: Duration,
}

/// One server of a deployment.
#[derive(Debug)]
pub struct Member {
    instance: Instance,
    /// As it was started, but for its port.
    options: ServerOptions,
    server: RunningServer,
    is_primary: bool,
    has_user: bool,
}

/// What a server of a deployment really has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSettings {
    /// Its name within the deployment.
    pub name: String,
    /// Settings by name, as [`read_back`] gives them.
    pub effective: BTreeMap<String, String>,
    /// Where they are not as asked for.
    pub deviations: Vec<Deviation>,
}

/// A server of a deployment that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedMember {
    /// Its name within the deployment.
    pub name: String,
    /// How it ended.
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

    /// Routers end first and config servers last, as the others ask them; in a set the primary last.
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
    /// Refuses what [`start`](Deployment::start) would refuse, as far as that is known before a server runs: topology,
    /// caches, settings, data folders, and what the programs say of themselves. Makes nothing.
    ///
    /// # Errors
    /// [`ServerError`], as those of a start.
    pub fn check(topology: &Topology, options: &DeploymentOptions) -> Result<(), ServerError> {
        topology.check()?;
        check_programs(topology, &planned(topology, options)?)
    }

    /// As [`check`](Deployment::check), for servers of other machines, of which nothing is known here: topology, settings, and how
    /// many data folders there are. With `over_machines` each member has a machine for itself.
    ///
    /// # Errors
    /// [`ServerError`], as those of a start there.
    pub fn check_elsewhere(
        topology: &Topology,
        options: &DeploymentOptions,
        over_machines: bool,
    ) -> Result<(), ServerError> {
        topology.check()?;
        check_elsewhere(topology, options, over_machines)
    }

    /// The data folder of each server with data, in the order of their start, whether it is there or not. With `member` it is that of
    /// this member alone, whose machine has no other.
    ///
    /// # Errors
    /// [`ServerError::TooFewFolders`].
    pub fn planned_folders(
        topology: &Topology,
        options: &DeploymentOptions,
        member: Option<usize>,
    ) -> Result<Vec<PathBuf>, ServerError> {
        planned_folders(topology, options, member)
    }

    /// Starts all servers of `topology` and joins them.
    ///
    /// `interrupted` is asked every few milliseconds; when it gives `true` everything is stopped.
    /// Nothing is left behind on an error but the log files.
    ///
    /// # Errors
    /// [`ServerError`]; those of one server are a [`ServerError::Member`] with its name.
    pub fn start(
        topology: &Topology,
        options: &DeploymentOptions,
        admin: &mut dyn AdminClient,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Deployment, ServerError> {
        topology.check()?;
        let planned = planned(topology, options)?;
        let needs_key = planned.iter().any(|(instance, _)| instance.set.is_some());
        let mut deployment = Deployment {
            topology: topology.clone(),
            members: Vec::new(),
            secrets: Secrets::make(options, needs_key)?,
            require_client_certificate: options.encryption
                == Encryption::On {
                    require_client_certificate: true,
                },
            program: options.server.kind.executable(),
            set_hosts: Vec::new(),
            step_limit: options.step_limit,
        };
        let mut context = StepContext {
            admin,
            interrupted,
            limit: options.step_limit,
        };
        deployment.assemble(planned, options, &mut context)?;
        Ok(deployment)
    }

    /// Where clients reach each server, in the order of their start.
    pub fn hosts(&self) -> Vec<String> {
        let members = self.members.iter();
        members
            .map(|member| member.server.host().to_string())
            .collect()
    }

    /// What was started.
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
    /// [`ServerError::Stop`] when a process cannot be looked at.
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

    /// The connection string of the run, without user and password; that of the first pair when
    /// there are several, see [`uris`](Deployment::uris).
    pub fn uri(&self) -> String {
        self.uris().swap_remove(0)
    }

    /// One connection string per client: one for each of independent servers, else one.
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
                let set = self
                    .members
                    .first()
                    .and_then(|one| one.instance.set.as_deref());
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

    /// `uri` with the user and the password of this deployment in it; unchanged without
    /// authentication. Keep it out of messages and files.
    pub fn with_credentials(&self, uri: &str) -> String {
        match &self.secrets.credentials {
            Some(credentials) => uri::with_credentials(uri, credentials),
            None => uri.to_owned(),
        }
    }

    /// The user that was made; `None` without authentication.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.secrets.credentials.as_ref()
    }

    /// The certificates that were made; `None` without encryption.
    pub fn tls(&self) -> Option<&TlsFiles> {
        self.secrets.tls.as_ref()
    }

    /// How an [`AdminClient`] reaches one of the members. Arbiters hold no users and are reached
    /// without one.
    pub fn target(&self, member: &Member) -> Target<'_> {
        Target {
            address: member.server.address(),
            tls: self.secrets.tls.as_ref(),
            credentials: if member.has_user {
                self.secrets.credentials.as_ref()
            } else {
                None
            },
        }
    }

    /// Reads the settings of all servers back and compares them with what was asked for. A member
    /// that does not know the user yet is asked again until `limit` is over.
    ///
    /// # Errors
    /// [`ServerError::Step`] with the member that does not report.
    pub fn read_back(
        &self,
        admin: &mut dyn AdminClient,
        limit: Duration,
    ) -> Result<Vec<MemberSettings>, ServerError> {
        let begin = Instant::now();
        let mut all = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let asked = member.server.settings();
            let parameters: Vec<&str> = asked
                .keys()
                .filter_map(|name| name.strip_prefix("parameter."))
                .collect();
            let effective = loop {
                match read_back(admin, self.target(member), &parameters, limit) {
                    Ok(found) => break found,
                    Err(_) if begin.elapsed() < limit && member.has_user => {
                        thread::sleep(POLL_INTERVAL);
                    }
                    Err(source) => {
                        return Err(ServerError::Step {
                            name: member.instance.name.clone(),
                            step: "reading its settings back".to_owned(),
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
    /// removes temporary folders and secrets. Goes on after an error.
    ///
    /// # Errors
    /// The first error of a member, as [`ServerError::Member`], or of the secrets.
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

/// Ends named servers side by side: each may have a checkpoint to write, or hang.
fn end_together<S: Send>(
    servers: Vec<(String, S)>,
    end: fn(S) -> Result<Stopped, ServerError>,
) -> Vec<Result<(String, Stopped), ServerError>> {
    thread::scope(|scope| {
        let servers = servers.into_iter();
        let ending: Vec<_> = servers
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
        _ => ServerError::Member {
            name: name.to_owned(),
            source: Box::new(source),
        },
    }
}

/// Adds the secrets to the options of one server.
fn secured(server: &mut ServerOptions, secrets: &Secrets, options: &DeploymentOptions) {
    server.security = Security {
        tls: secrets.tls.clone(),
        require_client_certificate: options.encryption
            == Encryption::On {
                require_client_certificate: true,
            },
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
    start(server, interrupted).map_err(|source| {
        if alone {
            source
        } else {
            member_error(&instance.name, source)
        }
    })
}
