//! Facts about the machine that resolution needs; each is read only if the plan needs it.

use crate::model::ServerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Why the machine lacks something that a plan needs.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// The machine that does or starts the work. [`HostFacts`] is an implementation with fixed values.
pub trait Host {
    /// Cores that the client may use, at least 1.
    fn cores(&self) -> u32;

    /// Name of the machine.
    fn hostname(&self) -> Option<&str>;

    /// Base folder of relative paths.
    ///
    /// # Errors
    /// The folder does not exist or may not be read.
    fn folder(&self) -> io::Result<PathBuf>;

    /// Whether a local port is the near end of a tunnel to another machine.
    fn is_tunnel(&self, port: u16) -> bool;

    /// Finds the server to start.
    ///
    /// # Errors
    /// No server was found, or the named server does not exist or cannot be run.
    fn server(&self, wanted: &WantedServer<'_>) -> Result<FoundServer, HostError>;
}

/// The requested server.
#[derive(Clone, Copy, Debug)]
pub struct WantedServer<'a> {
    /// [`ServerKind::Auto`], [`ServerKind::Embedded`] or [`ServerKind::Mongod`].
    pub kind: ServerKind,
    /// The named `mongod`: a path, or the version of an installed one.
    pub mongod: Option<&'a str>,
    /// The named embedded server.
    pub embedded: Option<&'a Path>,
}

/// The server to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServer {
    /// [`ServerKind::Embedded`] or [`ServerKind::Mongod`].
    pub kind: ServerKind,
    /// Name of this `mongod` in a plan: its path, or the version of an installed one.
    pub mongod: Option<String>,
    /// Program, version and path as text; `None` if it was not examined, because it starts on
    /// another machine or does not exist yet.
    pub description: Option<String>,
}

impl FoundServer {
    /// A server that was not examined.
    pub fn unseen(kind: ServerKind) -> Self {
        FoundServer { kind, mongod: None, description: None }
    }
}

/// Fixed facts of a machine: a fleet host, or a machine described by a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Cores that the client may use, at least 1.
    pub cores: u32,
    pub hostname: Option<String>,
    /// Base folder of relative paths.
    pub folder: PathBuf,
    /// Local ports that are near ends of tunnels to other machines.
    pub tunnels: BTreeSet<u16>,
    /// Available servers, the preferred one first.
    pub servers: Vec<FoundServer>,
}

/// No available server matches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no server `{wanted}` is known on this machine")]
pub struct NoSuchServer {
    /// The requested `mongod` or kind.
    pub wanted: String,
}

impl Host for HostFacts {
    fn cores(&self) -> u32 {
        self.cores.max(1)
    }

    fn hostname(&self) -> Option<&str> {
        self.hostname.as_deref()
    }

    fn folder(&self) -> io::Result<PathBuf> {
        Ok(self.folder.clone())
    }

    fn is_tunnel(&self, port: u16) -> bool {
        self.tunnels.contains(&port)
    }

    fn server(&self, wanted: &WantedServer<'_>) -> Result<FoundServer, HostError> {
        let fits = |server: &&FoundServer| {
            (wanted.kind == ServerKind::Auto || wanted.kind == server.kind)
                && wanted.mongod.is_none_or(|name| server.mongod.as_deref() == Some(name))
        };
        self.servers.iter().find(fits).cloned().ok_or_else(|| {
            let wanted = match wanted.mongod {
                Some(name) => name.to_owned(),
                None => wanted.kind.as_str().to_owned(),
            };
            NoSuchServer { wanted }.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_matching_server_is_chosen() {
        let mongod = FoundServer {
            kind: ServerKind::Mongod,
            mongod: Some("6.0.27".into()),
            description: Some("`mongod` 6.0.27".into()),
        };
        let host = HostFacts {
            cores: 0,
            hostname: None,
            folder: "/".into(),
            tunnels: BTreeSet::new(),
            servers: vec![mongod.clone(), FoundServer::unseen(ServerKind::Embedded)],
        };
        let find = |kind, name| host.server(&WantedServer { kind, mongod: name, embedded: None });
        assert_eq!(find(ServerKind::Auto, None).unwrap(), mongod);
        assert_eq!(find(ServerKind::Mongod, Some("6.0.27")).unwrap(), mongod);
        let embedded = find(ServerKind::Embedded, None).unwrap();
        assert_eq!(embedded.kind, ServerKind::Embedded);
        let error = find(ServerKind::Mongod, Some("8.0.3")).unwrap_err();
        assert!(error.to_string().contains("`8.0.3`"), "{error}");
        assert_eq!(host.cores(), 1);
    }
}
