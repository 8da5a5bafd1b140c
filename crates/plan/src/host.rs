//! What resolution has to know of the machine, and looks at only where the plan needs it.

use crate::model::ServerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Why the machine has not what a plan needs.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// The machine that the work is done on, or begun from. [`HostFacts`] is one that is known beforehand.
pub trait Host {
    /// Cores that the client may use, at least 1.
    fn cores(&self) -> u32;

    /// Name of the machine.
    fn hostname(&self) -> Option<&str>;

    /// Folder that relative paths start from.
    ///
    /// # Errors
    /// It is gone, or may not be read.
    fn folder(&self) -> io::Result<PathBuf>;

    /// Whether a port of the machine is the near end of a way to another one.
    fn is_tunnel(&self, port: u16) -> bool;

    /// Finds the server that is started.
    ///
    /// # Errors
    /// There is none, or the one that is named is not there or cannot be run.
    fn server(&self, wanted: &WantedServer<'_>) -> Result<FoundServer, HostError>;
}

/// Which server is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WantedServer<'a> {
    /// Its kind: [`ServerKind::Auto`], [`ServerKind::Embedded`] or [`ServerKind::Mongod`].
    pub kind: ServerKind,
    /// The `mongod` that is named: a path, or the version of an installed one.
    pub mongod: Option<&'a str>,
    /// The embedded server that is named.
    pub embedded: Option<&'a Path>,
}

/// Which server is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServer {
    /// Its kind: [`ServerKind::Embedded`] or [`ServerKind::Mongod`].
    pub kind: ServerKind,
    /// What a plan calls this `mongod`: its path, or the version of an installed one.
    pub mongod: Option<String>,
    /// Program, version and path in words; `None` if it was not seen, because it is started elsewhere or is not there yet.
    pub description: Option<String>,
}

impl FoundServer {
    /// A server that was not looked for.
    pub fn unseen(kind: ServerKind) -> Self {
        FoundServer {
            kind,
            mongod: None,
            description: None,
        }
    }
}

/// A machine that is known beforehand: one of a fleet, or one that a program describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Cores that the client may use, at least 1.
    pub cores: u32,
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Folder that relative paths start from.
    pub folder: PathBuf,
    /// Ports that are near ends of ways to other machines.
    pub tunnels: BTreeSet<u16>,
    /// Servers that can be started, the preferred one first.
    pub servers: Vec<FoundServer>,
}

/// Nothing that can be started fits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no server `{wanted}` is known on this machine")]
pub struct NoSuchServer {
    /// The `mongod` that was named, or the kind.
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
                && wanted
                    .mongod
                    .is_none_or(|name| server.mongod.as_deref() == Some(name))
        };
        let found = self.servers.iter().find(fits).cloned();
        found.ok_or_else(|| {
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
    fn the_first_known_server_that_fits_is_chosen() {
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
        let find = |kind, name| {
            host.server(&WantedServer {
                kind,
                mongod: name,
                embedded: None,
            })
        };
        assert_eq!(find(ServerKind::Auto, None).unwrap(), mongod);
        assert_eq!(find(ServerKind::Mongod, Some("6.0.27")).unwrap(), mongod);
        let embedded = find(ServerKind::Embedded, None).unwrap();
        assert_eq!(embedded.kind, ServerKind::Embedded);
        let error = find(ServerKind::Mongod, Some("8.0.3")).unwrap_err();
        assert!(error.to_string().contains("`8.0.3`"), "{error}");
        assert_eq!(host.cores(), 1);
    }
}
