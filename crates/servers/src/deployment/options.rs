//! Options for starting a deployment.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dyno_plan::model::{self, DiskMapping, ServerPlan};

use super::layout::{FolderMapping, Instance};
use super::secrets::GivenSecrets;
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

/// Whether connections are encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Unencrypted.
    #[default]
    Off,
    /// Encrypted, with certificates that are created for the deployment.
    On {
        /// Whether clients must present the client certificate.
        require_client_certificate: bool,
    },
}

/// Changes the options of one server before it starts.
pub type Adjust = Arc<dyn Fn(&Instance, &mut ServerOptions) + Send + Sync>;

/// Everything that [`Deployment::start`](super::Deployment::start) needs in addition to the
/// topology.
#[derive(Clone)]
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
    /// How servers are assigned to `data_dirs`.
    pub mapping: FolderMapping,
    /// Folder of the logs: `NAME.raw.log` contains the output of server NAME.
    pub log_dir: PathBuf,
    /// Folder for certificates and keys. It must not exist; it is created if there is a secret, and
    /// removed at the end.
    pub secrets_dir: PathBuf,
    pub encryption: Encryption,
    /// Name of this host for the server certificate, in addition to 127.0.0.1, ::1, `localhost`,
    /// and the listening and advertised addresses.
    pub host_name: Option<String>,
    /// Secrets shared with other hosts. If absent, the secrets required by `server.auth` and
    /// `encryption` are created.
    pub secrets: Option<GivenSecrets>,
    /// The collection under test; a sharded cluster shards it.
    pub collection: Option<Namespace>,
    /// Memory of each server with data, for the computed caches. If absent, several servers share
    /// the machine's memory, and a single one uses its own default.
    pub memory: Option<Vec<MemoryShare>>,
    /// Longest time of one step after the processes have started, such as an election.
    pub step_limit: Duration,
    /// Called for each server before it starts, for example to place it on cores.
    pub adjust: Option<Adjust>,
}

impl DeploymentOptions {
    /// Options with the data folder of `server`, logs next to its log, `secrets` next to its data
    /// folder, no encryption, and a minute for each step.
    pub fn new(server: ServerOptions) -> DeploymentOptions {
        let data = server.data_dir.path().to_owned();
        let parent = |path: &std::path::Path| path.parent().map(PathBuf::from).unwrap_or_default();
        DeploymentOptions {
            router: None,
            log_dir: parent(&server.log_path),
            secrets_dir: parent(&data).join("server-secrets"),
            data_dirs: vec![data],
            mapping: FolderMapping::RoundRobin,
            encryption: Encryption::Off,
            host_name: None,
            secrets: None,
            collection: None,
            memory: None,
            step_limit: Duration::from_secs(60),
            adjust: None,
            server,
        }
    }

    /// Like [`new`](DeploymentOptions::new), with the data folders and the encryption of a plan.
    pub fn from_plan(plan: &ServerPlan, server: ServerOptions) -> DeploymentOptions {
        let mut options = DeploymentOptions::new(server);
        if !plan.data_dirs.is_empty() {
            options.data_dirs = plan.data_dirs.iter().map(PathBuf::from).collect();
        }
        options.mapping = match plan.disk_mapping {
            DiskMapping::RoundRobin => FolderMapping::RoundRobin,
            DiskMapping::Direct => FolderMapping::Direct,
        };
        options.encryption = match plan.encryption {
            model::Encryption::Off => Encryption::Off,
            model::Encryption::Server => Encryption::On { require_client_certificate: false },
            model::Encryption::Mutual => Encryption::On { require_client_certificate: true },
        };
        options
    }

    /// Whether the data outlives the deployment.
    pub(super) fn keeps_data(&self) -> bool {
        matches!(self.server.data_dir, DataDir::Kept(_))
    }
}

impl fmt::Debug for DeploymentOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeploymentOptions")
            .field("server", &self.server)
            .field("router", &self.router)
            .field("data_dirs", &self.data_dirs)
            .field("mapping", &self.mapping)
            .field("log_dir", &self.log_dir)
            .field("secrets_dir", &self.secrets_dir)
            .field("encryption", &self.encryption)
            .field("host_name", &self.host_name)
            .field("secrets", &self.secrets)
            .field("collection", &self.collection)
            .field("memory", &self.memory)
            .field("step_limit", &self.step_limit)
            .field("adjust", &self.adjust.is_some())
            .finish()
    }
}
