//! Finds and installs servers, starts them as child processes, waits until they can be used, and stops them again: one, or a
//! whole deployment of independent servers, a replica set or a sharded cluster.
//!
//! A server that is started here dies with us, also after `SIGKILL`, and leaves neither a port nor
//! a temporary folder behind. What is sent to it and what it does meanwhile is left to `load` and
//! `observe`; the commands that a deployment needs go through the caller's [`Commander`].

mod cache;
mod command_line;
mod commander;
mod deployment;
mod diagnose;
mod effective;
mod error;
mod install;
mod installed;
mod keeper;
mod locate;
mod log;
mod options;
pub mod placement;
mod secret;
mod server;
mod settings;
mod tls;
mod version;
mod watchdog;

pub use cache::{CacheDemand, CacheShares, MemoryShare, cache_shares, smallest_share};
pub use commander::{CommandFailure, Commander, Target};
pub use deployment::{
    Adjust, Deployment, DeploymentOptions, Duty, Encryption, EndedMember, FolderMapping, Instance,
    Member, MemberSettings, Namespace, instances, planned_caches,
};
pub use dyno_plan::topology::{
    Balancer, PreSplit, ReplicaSet, ShardKey, ShardKeyKind, Sharded, Topology, TopologyError,
};
pub use effective::{Deviation, deviations, read_back};
pub use error::ServerError;
pub use install::{
    InstallError, Installed, Installer, LICENCE, Machine, PINS, Pin, Wheel, default_pin, pin_of,
};
pub use installed::{InstalledServer, InstalledServers, Origin};
pub use locate::{
    Chosen, EmbeddedPlaces, Mongod, MongodPlaces, choose, locate_embedded, locate_mongod,
    locate_mongos,
};
pub use options::{DataDir, ServerOptions, ServerProgram};
pub use secret::random_text;
pub use server::{RunningServer, Stopped, start};
pub use settings::{MongodSettings, Role, Security, StorageEngine};
pub use tls::{TlsFiles, make_tls_files};
pub use version::{EMBEDDED_VERSION, Edition, Program, program_version};
pub use watchdog::GroupWatchdog;
