//! Options of a fleet and of its agents. Nothing here reads the environment or arguments.

use crate::FleetError;
use crate::endpoint::{self, Endpoint};
use crate::permits::Permits;
use dyno_engine::{Error, refuse};
use dyno_record::verdict::CheckName;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Marker file of a folder that was created for a run, and may be removed with its contents.
pub const MADE: &str = ".dyno-made";

/// A text that may hold a password; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Hidden(text.into())
    }

    /// The plain text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// How to find the Redis of a fleet.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Address from `--redis`, which every user of the machine can read; refused if it has a password.
    pub public_address: Option<Hidden>,
    /// Address from `DYNO_REDIS`, which may hold a password. Used without a public one.
    pub secret_address: Option<Hidden>,
    /// File named by `DYNO_REDIS_FILE`. Used without an address.
    pub address_file: Option<PathBuf>,
    /// Certificates (PEM) to trust with `rediss://`; default: the system's.
    pub authority: Option<PathBuf>,
    /// Accept a remote Redis without a password or without encryption.
    pub insecure: bool,
}

impl RedisOptions {
    /// The address, with its password.
    ///
    /// # Errors
    /// No address, or an unreadable file.
    pub(crate) fn address(&self) -> Result<String, FleetError> {
        let given = self.public_address.as_ref().or(self.secret_address.as_ref());
        match (given, &self.address_file) {
            (Some(address), _) => Ok(address.reveal().to_owned()),
            (None, Some(path)) => endpoint::read(path),
            (None, None) => Err(FleetError::NoEndpoint),
        }
    }

    /// Resolves the Redis endpoint.
    ///
    /// # Errors
    /// No address, an invalid one, a public one with a password, or an insecure one without `--insecure-redis`.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        let public = self.public_address.as_ref();
        if public.is_some_and(|address| address.reveal().contains('@')) {
            let text =
                "`--redis` holds a password, and every user of this machine can read arguments";
            return refuse(
                text,
                "use the environment variable `DYNO_REDIS`, or the file that `DYNO_REDIS_FILE` names",
            );
        }
        let endpoint = Endpoint::new(&self.address()?, self.authority.as_deref())?;
        match endpoint.weakness().filter(|_| !self.insecure) {
            None => Ok(endpoint),
            Some(weakness) => {
                let text = format!(
                    "Redis at `{endpoint}` is on another host, {weakness}: anyone who reaches it can give work to all agents"
                );
                refuse(
                    text,
                    "use `rediss://` and a password, or add `--insecure-redis` on a private network",
                )
            }
        }
    }
}

/// The hosts of a fleet, and how programs are deployed to them.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// Ansible inventory with the plan's hosts: a file, or host names with a comma.
    pub inventory: Option<PathBuf>,
    /// Use pods of `[fleet.kubernetes]` instead of hosts, in the current cluster of `kubectl`.
    pub kubernetes: bool,
    /// The meeting point. Pods have their own Redis.
    pub redis: RedisOptions,
    /// Run name in Redis and on the hosts; default: a new one.
    pub run: Option<String>,
    /// Folder for the logs of all hosts; by default logs are not kept.
    pub logs: Option<PathBuf>,
    /// Parent directory for the run directory on each host.
    pub host_folder: String,
    /// Doctor checks to apply on server hosts for the time of the run.
    pub apply: Vec<CheckName>,
}

impl FleetOptions {
    /// Absolute path of the log folder, for programs with another working folder.
    pub(crate) fn logs_folder(&self) -> Option<PathBuf> {
        self.logs.as_deref().map(absolute)
    }
}

/// Options of one agent.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    pub redis: RedisOptions,
    pub run: String,
    /// Number of this agent in the run, from 0.
    pub index: u32,
    /// Host name in the record; default: this host's name.
    pub host: Option<String>,
    /// Start servers instead of loading them.
    pub serve: bool,
    /// Servers on this machine that run already: read the host, and start nothing.
    pub watch: Vec<WatchedServer>,
    /// Folder for data and logs of servers.
    pub folder: PathBuf,
    /// Limits on work.
    pub permits: Permits,
    /// Doctor checks to apply on this host for the time of the run.
    pub apply: Vec<CheckName>,
    /// File with users and certificates of the servers, which may be `/dev/stdin`.
    pub secrets: Option<PathBuf>,
    /// Remove the folder when the controller or Redis has gone. It must hold [`MADE`].
    pub remove_folder: bool,
    /// Longest wait for Redis and the controller.
    pub join_within: Duration,
    /// Path of the embedded server, if given.
    pub embedded_server: Option<PathBuf>,
}

impl WorkerOptions {
    /// Whether the agent is on a server host, and loads nothing.
    pub(crate) fn is_of_server(&self) -> bool {
        self.serve || !self.watch.is_empty()
    }
}

/// A server on this machine that runs already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedServer {
    pub port: u16,
    /// Data folder; default: the one its process reports.
    pub folder: Option<PathBuf>,
}

/// The absolute path.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_password_is_refused_and_a_secret_one_is_not_shown() {
        let address = Hidden::new("redis://:secret@127.0.0.1:1");
        let public =
            RedisOptions { public_address: Some(address.clone()), ..RedisOptions::default() };
        let error = public.endpoint().expect_err("others can read it");
        assert_eq!(error.kind, dyno_engine::Kind::BadInput);
        let secret = RedisOptions { secret_address: Some(address), ..RedisOptions::default() };
        assert!(secret.endpoint().is_ok());
        assert!(!format!("{public:?} {secret:?} {error:?}").contains("secret@"));
    }

    #[test]
    fn address_file_is_used_without_a_text() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "rediss://:secret@cache\n").expect("written");
        let options =
            RedisOptions { address_file: Some(file.path().into()), ..RedisOptions::default() };
        assert_eq!(options.endpoint().expect("valid").to_string(), "cache:6379");
        let none = RedisOptions::default().endpoint().expect_err("nothing is given");
        assert!(none.hint.expect("present").contains("DYNO_REDIS"));
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
