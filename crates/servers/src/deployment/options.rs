//! Options for starting a deployment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use dyno_plan::model::Encryption;

use super::secrets::GivenSecrets;
use crate::placement::InstancePlacement;
use crate::{DataDir, MemoryShare, ServerOptions};

/// A collection with its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub database: String,
    pub collection: String,
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.database, self.collection)
    }
}

/// Everything that [`Deployment::start`](super::Deployment::start) needs in addition to the
/// topology.
#[derive(Clone, Debug)]
pub struct DeploymentOptions {
    /// Options of every server with data: its program, cache and other settings, and the limits of
    /// its start and stop. Ports, role, folders, log and security are filled in. `auth` creates a
    /// user with a random password. Without a cache, several servers share the memory of the host,
    /// see [`cache_shares`](crate::cache_shares).
    pub server: ServerOptions,
    /// Path of `mongos`; only for a sharded cluster.
    pub router: Option<PathBuf>,
    /// Data folders, several for several disks. `server.data_dir` decides whether they are
    /// temporary or kept.
    pub data_dirs: Vec<PathBuf>,
    /// Folder of the logs: `NAME.raw.log` contains the output of server NAME.
    pub log_dir: PathBuf,
    /// Folder for certificates and keys. It must not exist; it is created if there is a secret, and
    /// removed at the end.
    pub secrets_dir: PathBuf,
    /// Name of this host for the server certificate, in addition to 127.0.0.1, ::1, `localhost`,
    /// and the listening and advertised addresses.
    pub host_name: Option<String>,
    /// Secrets shared with other hosts. If absent, the secrets required by `auth` and `encryption`
    /// of the server's plan are created.
    pub secrets: Option<GivenSecrets>,
    /// The collection under test; a sharded cluster shards it.
    pub collection: Option<Namespace>,
    /// Memory of each server with data, for the computed caches. If absent, several servers share
    /// the machine's memory, and a single one uses its own default.
    pub memory: Option<Vec<MemoryShare>>,
    /// Longest time of one step after the processes have started, such as an election.
    pub step_limit: Duration,
    /// CPUs and memory of servers, by name; others inherit ours.
    pub seats: BTreeMap<String, InstancePlacement>,
}

impl DeploymentOptions {
    /// Options with the data folders of the server's plan, else that of `server`, logs next to its
    /// log, secrets next to its data folder, and a minute for each step.
    pub fn new(server: ServerOptions) -> DeploymentOptions {
        let data = server.data_dir.path().to_owned();
        let parent = |path: &std::path::Path| path.parent().map(PathBuf::from).unwrap_or_default();
        DeploymentOptions {
            router: None,
            log_dir: parent(&server.log_path),
            secrets_dir: parent(&data).join("server-secrets"),
            data_dirs: match server.plan.data_dirs.as_slice() {
                [] => vec![data],
                several => several.iter().map(PathBuf::from).collect(),
            },
            host_name: None,
            secrets: None,
            collection: None,
            memory: None,
            step_limit: Duration::from_secs(60),
            seats: BTreeMap::new(),
            server,
        }
    }

    /// Whether clients must present a certificate.
    pub(super) fn is_mutual(&self) -> bool {
        self.server.plan.encryption == Encryption::Mutual
    }

    /// Whether the data outlives the deployment.
    pub(super) fn keeps_data(&self) -> bool {
        matches!(self.server.data_dir, DataDir::Kept(_))
    }
}
