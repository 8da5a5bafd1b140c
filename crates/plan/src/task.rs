//! A task: a valid plan and its server, with the connection string and its credentials kept
//! separate from the plan.

use crate::error::PlanError;
use crate::file;
use crate::model::{Plan, ServerKind};
use crate::request::{Keys, Setting};
use crate::uri::{self, Credentials, Host, Target};
use crate::validate::{validate, windows};
use serde::{Deserialize, Serialize};

/// A plan that is complete, checked and ready to run on this host.
#[derive(Clone, Debug)]
pub struct Task {
    /// Valid, and without secrets.
    pub plan: Plan,
    /// The running server; `None` if one is started.
    pub remote: Option<Remote>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
    /// Notes for the user, one sentence each.
    pub notes: Vec<String>,
    /// Number of worker threads if the number of clients changes.
    pub threads: Threads,
    /// The server to start, with its version and path; `None` if none is started here.
    pub server: Option<String>,
}

/// Number of worker threads of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// The explicitly requested number.
    Given(u32),
    /// The number of cores, shared by all clients.
    Shared(u32),
}

impl Threads {
    /// Largest number of threads of one client, at least 1, if `pairs` servers have one client
    /// each.
    pub fn most(self, pairs: u32) -> u32 {
        match self {
            Threads::Given(threads) => threads.max(1),
            Threads::Shared(threads) => (threads / pairs.max(1)).max(1),
        }
    }

    /// Sets the number of threads after a change of the clients: at most one per connection.
    pub fn apply(self, plan: &mut Plan) {
        plan.client.threads = self.most(plan.server.pairs).clamp(1, plan.client.clients.max(1));
    }
}

impl Task {
    /// Creates a task from a plan that was resolved before. The address may have changed, and only
    /// `uri` contains credentials. `threads` is taken from the earlier task.
    ///
    /// # Errors
    /// An invalid address, and the problems of the plan.
    pub fn from_plan(
        mut plan: Plan,
        threads: Option<Threads>,
        uri: Option<&str>,
    ) -> Result<Self, PlanError> {
        let mut warnings = Vec::new();
        let remote = match (uri, &plan.server.uri) {
            (Some(uri), Some(known)) => {
                let remote = Remote::parse(uri)?;
                let target = remote.target.to_string();
                if target != *known {
                    let text = format!(
                        "the finished runs used `{known}`; the remaining ones use `{target}`"
                    );
                    warnings.push(text);
                    remote.aim(&mut plan);
                }
                Some(remote)
            }
            (None, Some(known)) => Some(Remote::parse(known)?),
            (Some(_), None) => {
                warnings.push("`--uri` has no effect: the experiment starts its servers".into());
                None
            }
            (None, None) => None,
        };
        check(&plan)?;
        Ok(Task {
            threads: threads.unwrap_or(Threads::Given(plan.client.threads)),
            plan,
            remote,
            warnings,
            notes: Vec::new(),
            server: None,
        })
    }

    /// The task with new values of single keys, as for a point of an experiment, and of dependent
    /// values. If a key names a server, the point has its own server.
    ///
    /// # Errors
    /// All problems of the keys and of the plan.
    pub fn with_keys(&self, keys: &Keys) -> Result<Self, PlanError> {
        let mut plan = self.plan.clone();
        let settings = keys.iter().map(|(key, text)| Setting::from_text(key, text));
        let settings: Vec<Setting> = settings.collect();
        file::set(&mut plan, &settings).map_err(PlanError::Invalid)?;
        if plan.server.kind != ServerKind::Mongod && !keys.contains_key("server.mongod") {
            // The program was found for the kinds that start a `mongod`.
            plan.server.mongod = None;
        }
        let is_other_server = keys.keys().any(|key| chooses_server(key));
        plan.server.resolve_topology();
        if !keys.is_empty() && !keys.contains_key("client.threads") {
            self.threads.apply(&mut plan);
        }
        check(&plan)?;
        let remote = match &plan.server.uri {
            Some(uri) if keys.contains_key("server.uri") => Some(self.remote_at(uri)?),
            _ => self.remote.clone(),
        };
        Ok(Task {
            plan,
            remote,
            warnings: Vec::new(),
            notes: Vec::new(),
            threads: self.threads,
            server: self.server.clone().filter(|_| !is_other_server),
        })
    }

    /// A server at another address. Credentials belong to the server that they were given for.
    fn remote_at(&self, uri: &str) -> Result<Remote, PlanError> {
        let named = Remote::parse(uri)?;
        let known = self.remote.as_ref();
        let known = known.filter(|known| known.target.to_string() == named.target.to_string());
        Ok(known.cloned().unwrap_or(named))
    }

    /// Changes the number of connections, and dependent values.
    ///
    /// # Errors
    /// [`PlanError::Invalid`] if the plan is invalid with this number.
    pub fn set_clients(&mut self, clients: u32) -> Result<(), PlanError> {
        self.plan.client.clients = clients;
        self.threads.apply(&mut self.plan);
        check(&self.plan)
    }

    /// The plan as a file, with a comment about the chosen server.
    pub fn plan_text(&self) -> String {
        let text = file::to_toml(&self.plan);
        match &self.server {
            Some(server) => format!("# server: {server}\n{text}"),
            None => text,
        }
    }
}

/// Returns all problems of the plan as an error.
///
/// # Errors
/// [`PlanError::Invalid`].
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let mut problems = validate(plan);
    problems.extend(windows::outside(plan));
    if problems.is_empty() { Ok(()) } else { Err(PlanError::Invalid(problems)) }
}

/// Whether a key of the plan decides which server is started.
pub fn chooses_server(key: &str) -> bool {
    matches!(key, "server.kind" | "server.mongod")
}

/// A running server. Only this type contains the credentials, a [`Plan`] does not.
#[derive(Clone, Debug)]
pub struct Remote {
    /// Its address and options, without secrets.
    pub target: Target,
    /// The user, if the connection string names one.
    pub credentials: Option<Credentials>,
}

impl Remote {
    /// Parses a connection string.
    ///
    /// # Errors
    /// [`PlanError::SeveralUris`], and [`PlanError::Uri`] for an invalid one.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let count = text.split_whitespace().filter(|part| part.contains("://")).count();
        if count > 1 {
            return Err(PlanError::SeveralUris { count });
        }
        // A line of a file or of another program's output may end in blanks.
        let (target, credentials) = uri::parse(text.trim())?;
        Ok(Remote { target, credentials })
    }

    /// Aims the plan at this server. Its database, unless it is `admin`, becomes the plan's.
    pub(crate) fn aim(&self, plan: &mut Plan) {
        plan.server.kind = ServerKind::Uri;
        plan.server.uri = Some(self.target.to_string());
        let database = self.target.database.as_deref();
        if let Some(database) = database.filter(|database| *database != "admin") {
            plan.data.database = database.to_owned();
        }
    }

    /// Whether the address shows that the server is on this machine. `hostname` is the name of this
    /// machine, and `is_tunnel` says whether a local port is the near end of a tunnel to another
    /// machine.
    pub fn is_local(&self, hostname: Option<&str>, is_tunnel: impl Fn(u16) -> bool) -> bool {
        !self.target.hosts.is_empty()
            && self.target.hosts.iter().all(|server| match server {
                Host::Unix(_) => true,
                Host::Tcp { host, port } => {
                    let is_here = server.is_loopback()
                        || hostname.is_some_and(|name| name.eq_ignore_ascii_case(host));
                    is_here && !is_tunnel(*port)
                }
            })
    }
}
