//! Role of a server in a deployment, and its secrets: plain data.

use std::path::PathBuf;

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
