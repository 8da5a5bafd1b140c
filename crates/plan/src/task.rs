//! What is to be done, and against which server: a valid plan and, apart from it, the connection string with its
//! credentials.

use crate::model::Plan;
use crate::resolve::PlanError;
use crate::uri::{self, Credentials, Host, Target};
use crate::validate::validate;
use serde::{Deserialize, Serialize};

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Task {
    /// Valid, and without secrets.
    pub plan: Plan,
    /// The server that runs already; `None` if one is started.
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
    /// Changes the number of connections, and what follows from it.
    ///
    /// # Errors
    /// [`PlanError::Invalid`] if the plan is not valid with so many.
    pub fn set_clients(&mut self, clients: u32) -> Result<(), PlanError> {
        self.plan.client.clients = clients;
        self.threads.apply(&mut self.plan);
        let problems = validate(&self.plan);
        if problems.is_empty() {
            Ok(())
        } else {
            Err(PlanError::Invalid(problems))
        }
    }

    /// The plan as a file, with the server that was chosen for it.
    pub fn plan_text(&self) -> String {
        let text = crate::file::to_toml(&self.plan);
        match &self.server {
            Some(server) => format!("# server: {server}\n{text}"),
            None => text,
        }
    }
}

/// A server that runs already. The credentials are here alone and not in a [`Plan`].
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

    /// Whether the server is on this machine, as far as its address tells. `hostname` is the name of this machine, and
    /// `is_tunnel` says whether a port of it is the near end of a way to another machine.
    pub fn is_local(&self, hostname: Option<&str>, is_tunnel: impl Fn(u16) -> bool) -> bool {
        !self.target.hosts.is_empty()
            && self.target.hosts.iter().all(|host| match host {
                Host::Unix(_) => true,
                Host::Tcp { host, port } => {
                    let is_here = host == "localhost"
                        || host
                            .parse()
                            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
                        || hostname.is_some_and(|name| name.eq_ignore_ascii_case(host));
                    is_here && !is_tunnel(*port)
                }
            })
    }
}
