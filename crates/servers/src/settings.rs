//! Settings specific to `mongod` and `mongos`, and the role of a server in a deployment: plain
//! data.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_plan::model::{self, ServerPlan};
use dyno_plan::units::Span;

use crate::tls::TlsFiles;

/// Role of a server in its deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerRole {
    /// Not part of a set or cluster.
    #[default]
    Standalone,
    /// Member of the replica set with this name, with data or as an arbiter.
    ReplicaSetMember(String),
    /// Member of a shard, which is the replica set with this name.
    ShardMember(String),
    /// Member of the replica set of config servers with this name.
    ConfigServer(String),
    /// `mongos` with the config servers `NAME/HOST:PORT,...`.
    Router(String),
}

impl ServerRole {
    /// Its name in messages.
    pub const fn name(&self) -> &'static str {
        match self {
            ServerRole::Standalone => "standalone",
            ServerRole::ReplicaSetMember(_) => "replica set member",
            ServerRole::ShardMember(_) => "shard member",
            ServerRole::ConfigServer(_) => "config server",
            ServerRole::Router(_) => "router",
        }
    }

    /// Name of its replica set.
    pub fn replica_set(&self) -> Option<&str> {
        match self {
            ServerRole::ReplicaSetMember(name)
            | ServerRole::ShardMember(name)
            | ServerRole::ConfigServer(name) => Some(name),
            ServerRole::Standalone | ServerRole::Router(_) => None,
        }
    }
}

/// Storage engines of `mongod`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageEngine {
    /// On disk, in every edition.
    #[default]
    WiredTiger,
    /// In memory, in MongoDB Enterprise and Percona Server.
    InMemory,
}

impl StorageEngine {
    /// Name in `--storageEngine` and in `serverStatus`.
    pub const fn name(self) -> &'static str {
        match self {
            StorageEngine::WiredTiger => "wiredTiger",
            StorageEngine::InMemory => "inMemory",
        }
    }
}

/// Settings that only `mongod` has. Absent means the server's default. In a deployment they apply
/// to servers with data, arbiters and config servers, but not to routers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MongodSettings {
    /// Whether to write a journal; on by default. It can be off only up to version 6.0 and outside
    /// replica sets.
    pub journal: Option<bool>,
    /// Longest time between two journal writes, 1 ms to 500 ms in whole milliseconds; 100 ms by
    /// default.
    pub journal_commit_interval: Option<Span>,
    /// Compressor of the journal: `none`, `snappy` (the default), `zlib` or `zstd`.
    pub journal_compressor: Option<String>,
    pub storage_engine: StorageEngine,
    /// Server parameters by name, as after `--setParameter`.
    pub parameters: BTreeMap<String, String>,
}

impl MongodSettings {
    /// The settings in a plan.
    pub fn from_plan(plan: &ServerPlan) -> MongodSettings {
        MongodSettings {
            journal: plan.journal,
            journal_commit_interval: plan.journal_commit_interval,
            journal_compressor: plan.journal_compressor.clone(),
            storage_engine: match plan.storage_engine {
                Some(model::StorageEngine::InMemory) => StorageEngine::InMemory,
                Some(model::StorageEngine::WiredTiger) | None => StorageEngine::WiredTiger,
            },
            parameters: plan.parameters.clone(),
        }
    }
}

/// Files for encryption and authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Security {
    /// Encrypts all connections.
    pub tls: Option<TlsFiles>,
    /// Whether clients must present a certificate; only with `tls`.
    pub require_client_certificate: bool,
    /// Key by which the members of a deployment trust each other; only `mongod` and `mongos`.
    pub key_file: Option<PathBuf>,
}
