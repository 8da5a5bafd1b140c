//! What is to be done, and against which server: a valid plan and, apart from it, the connection string with its
//! credentials.

use crate::error::PlanError;
use crate::file;
use crate::model::{Plan, ServerKind};
use crate::request::Setting;
use crate::uri::{self, Credentials, Host, Target};
use crate::validate::{validate, windows};
use serde::{Deserialize, Serialize};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Task {
    /// Valid, and without secrets.
    pub plan: Plan,
    /// The server that is already running; `None` if one is started.
    pub remote: Option<Remote>,
    /// What the person should know, one sentence each.
    pub warnings: Vec<String>,
    /// What is good to know, one sentence each.
    pub notes: Vec<String>,
    /// Worker threads when the number of clients is another one.
    pub threads: Threads,
    /// The server that is started, with its version and its path; `None` if none is started here.
    pub server: Option<String>,
}

/// How many worker threads a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// As many as somebody asked for.
    Given(u32),
    /// As many as there are cores for all clients together.
    Shared(u32),
}

impl Threads {
    /// Most threads of one client, at least 1, when `pairs` servers have one client each.
    pub fn most(self, pairs: u32) -> u32 {
        match self {
            Threads::Given(threads) => threads.max(1),
            Threads::Shared(threads) => (threads / pairs.max(1)).max(1),
        }
    }

    /// Gives a plan whose clients were changed its number of threads: at most one per connection.
    pub fn apply(self, plan: &mut Plan) {
        plan.client.threads = self
            .most(plan.server.pairs)
            .clamp(1, plan.client.clients.max(1));
    }
}

impl Task {
    /// The task of a plan that was resolved before. The address may be another one by now, and credentials are in `uri`
    /// alone. `threads` are as in the task of then.
    ///
    /// # Errors
    /// An address that is not valid, and the problems of the plan.
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

    /// The task with other values of single keys, as a point of an experiment has them, and what follows from them. A
    /// server that a key names is one of its own.
    ///
    /// # Errors
    /// All problems of the keys and of the plan.
    pub fn with_settings(&self, settings: &[Setting]) -> Result<Self, PlanError> {
        let mut plan = self.plan.clone();
        let value_of = |key: &str| settings.iter().rfind(|setting| setting.key == key);
        file::set(&mut plan, settings).map_err(PlanError::Invalid)?;
        if plan.server.kind != ServerKind::Mongod && value_of("server.mongod").is_none() {
            // The program was found for those that start a `mongod`.
            plan.server.mongod = None;
        }
        let is_other_server = settings.iter().any(|setting| chooses_server(&setting.key));
        plan.server.resolve_topology();
        if !settings.is_empty() && value_of("client.threads").is_none() {
            self.threads.apply(&mut plan);
        }
        check(&plan)?;
        let remote = match (value_of("server.uri"), &plan.server.uri) {
            (Some(_), Some(uri)) => Some(self.remote_at(uri)?),
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

    /// Changes the number of connections, and what follows from it.
    ///
    /// # Errors
    /// [`PlanError::Invalid`] if the plan is not valid with so many.
    pub fn set_clients(&mut self, clients: u32) -> Result<(), PlanError> {
        self.plan.client.clients = clients;
        self.threads.apply(&mut self.plan);
        check(&self.plan)
    }

    /// The plan as a file, with the server that was chosen for it.
    pub fn plan_text(&self) -> String {
        let text = file::to_toml(&self.plan);
        match &self.server {
            Some(server) => format!("# server: {server}\n{text}"),
            None => text,
        }
    }
}

/// All problems of the plan as an error.
///
/// # Errors
/// [`PlanError::Invalid`].
pub fn check(plan: &Plan) -> Result<(), PlanError> {
    let mut problems = validate(plan);
    problems.extend(windows::outside(plan));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(PlanError::Invalid(problems))
    }
}

/// Whether a key of the plan decides which server is started.
pub fn chooses_server(key: &str) -> bool {
    matches!(key, "server.kind" | "server.mongod")
}

/// A server that is already running. The credentials are here alone and not in a [`Plan`].
#[derive(Clone, Debug)]
pub struct Remote {
    /// Where it is, without secrets.
    pub target: Target,
    /// The user, if the connection string names one.
    pub credentials: Option<Credentials>,
}

impl Remote {
    /// Reads a connection string.
    ///
    /// # Errors
    /// [`PlanError::SeveralUris`], and [`PlanError::Uri`] for one that is not valid.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let parts = text.split_whitespace();
        let count = parts.filter(|part| part.contains("://")).count();
        if count > 1 {
            return Err(PlanError::SeveralUris { count });
        }
        // A line of a file or of another program's output may end in blanks.
        let (target, credentials) = uri::parse(text.trim())?;
        Ok(Remote {
            target,
            credentials,
        })
    }

    /// Makes the plan one for this server. Its database, unless it is `admin`, becomes that of the plan.
    pub(crate) fn aim(&self, plan: &mut Plan) {
        plan.server.kind = ServerKind::Uri;
        plan.server.uri = Some(self.target.to_string());
        let database = self.target.database.as_deref();
        if let Some(database) = database.filter(|database| *database != "admin") {
            plan.data.database = database.to_owned();
        }
    }

    /// Whether the server is on this machine, as far as its address tells. `hostname` is the name of this machine, and
    /// `is_tunnel` says whether a port of it is the near end of a way to another machine.
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
