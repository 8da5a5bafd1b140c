//! What a caller decides about a fleet and about its agents. Nothing here is read from the environment or from arguments.

use crate::endpoint::Endpoint;
use crate::permits::Permits;
use dyno_engine::{Error, Kind};
use dyno_record::verdict::CheckName;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File in a folder that was made for a run, and may be removed with all that is in it.
pub const MADE: &str = ".dyno-made";

/// A text that may hold a password. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Hidden(text.into())
    }

    /// The text, for whoever needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Where the hosts of a fleet meet.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// The address from the option `--redis`, which every user of the machine can read: one with a password is refused.
    pub public_address: Option<Hidden>,
    /// The address from the variable `DYNO_REDIS`, which may hold a password. It counts if there is no public one.
    pub secret_address: Option<Hidden>,
    /// The file that `DYNO_REDIS_FILE` names. It counts if there is no address.
    pub address_file: Option<PathBuf>,
    /// Certificates (PEM) that Redis is trusted by with `rediss://`; those of the system when absent.
    pub authority: Option<PathBuf>,
    /// Take one on another host that asks for no password, or whose traffic is not encrypted.
    pub insecure: bool,
}

impl RedisOptions {
    /// The address as text, if it is not in a file.
    pub(crate) fn address(&self) -> Option<&str> {
        let address = self
            .public_address
            .as_ref()
            .or(self.secret_address.as_ref());
        address.map(Hidden::reveal)
    }

    /// Where Redis is.
    ///
    /// # Errors
    /// No address, one that is not valid, one with a password that others can read, and an insecure one that nobody asked for.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        let public = self.public_address.as_ref();
        if public.is_some_and(|address| address.reveal().contains('@')) {
            let text =
                "`--redis` holds a password, which every user of this machine can read there";
            return Err(Error::new(Kind::BadInput, text).with_hint(
                "put the address into the variable `DYNO_REDIS`, or into a file that `DYNO_REDIS_FILE` names",
            ));
        }
        let (file, authority) = (self.address_file.as_deref(), self.authority.as_deref());
        let endpoint = Endpoint::find(self.address(), file, authority)?;
        match endpoint.weakness().filter(|_| !self.insecure) {
            None => Ok(endpoint),
            Some(weakness) => {
                let text = format!(
                    "Redis at `{endpoint}` is on another host, {weakness}: whoever reaches it can give work to all agents"
                );
                Err(Error::new(Kind::BadInput, text).with_hint(
                    "use `rediss://` and a password, or say `--insecure-redis` in a network that nobody else is in",
                ))
            }
        }
    }
}

/// The hosts of a fleet, and how programs get there.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Inventory of Ansible with the hosts of the plan: a file, or names of hosts with a comma.
    pub inventory: Option<PathBuf>,
    /// Pods of `[fleet.kubernetes]` in place of hosts, in the cluster that `kubectl` is set to.
    pub kubernetes: bool,
    /// Where all meet. Pods have a Redis of their own.
    pub redis: RedisOptions,
    /// Name of the run in Redis and on the hosts; one of its own when absent.
    pub run: Option<String>,
    /// Folder that keeps the logs of all hosts; nothing is kept when absent.
    pub logs: Option<PathBuf>,
    /// Folder on each host that a folder for the run is made in, and taken away from.
    pub host_folder: String,
    /// Checks of the doctor whose advice is followed on the hosts of servers for the time of the run.
    pub apply: Vec<CheckName>,
}

impl FleetOptions {
    /// The folder for logs as programs with another working folder need it.
    pub(crate) fn logs_folder(&self) -> Option<PathBuf> {
        self.logs.as_deref().map(absolute)
    }
}

/// What one host does in a run of a fleet, and where it meets the others.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Where all meet.
    pub redis: RedisOptions,
    /// Name of the run.
    pub run: String,
    /// Number of this agent in the run, from 0.
    pub index: u32,
    /// Name of this host in the record; its own when absent.
    pub host: Option<String>,
    /// Start servers in place of loading them.
    pub serve: bool,
    /// Servers of somebody else on this machine: read the host, and start nothing.
    pub watch: Vec<WatchedServer>,
    /// Folder for data and logs of servers.
    pub folder: PathBuf,
    /// What work may ask for.
    pub permits: Permits,
    /// Checks of the doctor whose advice is followed on this host for the time of the run.
    pub apply: Vec<CheckName>,
    /// File with users and certificates of the servers, which may be `/dev/stdin`.
    pub secrets: Option<PathBuf>,
    /// Remove that folder when the controller or Redis has gone, and nobody else would. It must hold [`MADE`].
    pub remove_folder: bool,
    /// Longest wait for Redis and the controller.
    pub join_within: Duration,
    /// Path of the embedded server, if one was named.
    pub embedded_server: Option<PathBuf>,
}

impl WorkerOptions {
    /// Whether the agent is on the host of a server, and loads nothing.
    pub(crate) fn is_of_server(&self) -> bool {
        self.serve || !self.watch.is_empty()
    }
}

/// A server of somebody else on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedServer {
    /// The port that it listens on.
    pub port: u16,
    /// The folder of its data; that which its process names when absent.
    pub folder: Option<PathBuf>,
}

/// A path that means the same in every working folder.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_password_is_refused_and_a_secret_one_is_not_shown() {
        let address = Hidden::new("redis://:secret@127.0.0.1:1");
        let public = RedisOptions {
            public_address: Some(address.clone()),
            ..RedisOptions::default()
        };
        let error = public.endpoint().expect_err("others can read it");
        assert_eq!(error.kind, Kind::BadInput);
        let secret = RedisOptions {
            secret_address: Some(address),
            ..RedisOptions::default()
        };
        assert!(secret.endpoint().is_ok());
        assert!(!format!("{public:?} {secret:?} {error:?}").contains("secret@"));
    }

    #[test]
    fn remote_redis_needs_password_and_encryption_or_insecure() {
        let endpoint = |text: &str, insecure| {
            let options = RedisOptions {
                secret_address: Some(Hidden::new(text)),
                insecure,
                ..RedisOptions::default()
            };
            options.endpoint().map_err(|error| error.to_string())
        };
        for (text, lacks) in [
            ("redis://cache", [true, true]),
            ("redis://:secret@10.0.0.1", [false, true]),
            ("rediss://cache", [true, false]),
        ] {
            let error = endpoint(text, false).expect_err(text);
            let named = ["password", "encryption"].map(|part| error.contains(part));
            assert_eq!(named, lacks, "{error}");
            assert!(!error.contains("secret"), "{error}");
            assert!(endpoint(text, true).is_ok(), "{text}");
        }
        for text in [
            "rediss://:secret@cache",
            "redis://localhost",
            "redis://127.0.0.2:7",
            "redis://[::1]:7",
        ] {
            assert!(endpoint(text, false).is_ok(), "{text}");
        }
    }
}
