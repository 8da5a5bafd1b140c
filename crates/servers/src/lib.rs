//! Finds and installs servers, starts them as child processes, waits until they are ready, and
//! stops them: one server, or a deployment of independent servers, a replica set or a sharded
//! cluster.
//!
//! A server that is started here dies with this process, even after `SIGKILL`, and leaves neither a
//! port nor a temporary folder behind. `load` and `observe` use and watch it; the commands that a
//! deployment needs go through the caller's [`AdminClient`].

mod address;
mod admin_client;
mod cache;
mod child_guard;
mod command_line;
mod death_signal;
mod deployment;
mod diagnose;
mod effective;
mod error;
mod hint;
mod install;
mod installed;
mod locate;
mod log;
mod memory_file;
mod options;
pub mod placement;
mod secret;
mod server;
mod settings;
pub mod storage;
mod tls;
mod version;
mod watchdog;

pub use address::own_addresses;
pub use admin_client::{AdminClient, Target};
pub use cache::{MemoryShare, cache_shares, smallest_share};
pub use child_guard::Stopped;
pub use command_line::tls_arguments;
pub use death_signal::set_death_signal;
pub use deployment::{
    Deployment, DeploymentOptions, EndedMember, GivenSecrets, Instance, InstanceKind, Member,
    MemberKey, MemberSettings, Namespace, instances, planned_caches,
};
pub use dyno_plan::topology::{
    Balancer, PreSplit, ReplicaSet, ShardKey, ShardKeyKind, Sharded, Topology, TopologyError,
};
pub use effective::{Deviation, deviations, read_back};
pub use error::{CommandFailure, ServerError};
pub use install::{
    InstallError, Installed, Installer, LICENCE, PINS, Pin, Platform, Wheel, default_pin, find_pin,
};
pub use installed::{InstalledServer, InstalledServers, Origin, is_name as is_installed_name};
pub use locate::{
    EmbeddedSearch, Mongod, MongodSearch, ServerChoice, choose, locate_embedded, locate_mongod,
    locate_mongos,
};
pub use memory_file::MemoryFile;
pub use options::{DataDir, ServerOptions, ServerProgram};
pub use secret::{random_credentials, random_text, user_command};
pub use server::{RunningServer, start};
pub use settings::{Security, ServerRole};
pub use tls::{Authority, Certificates, Identity, TlsFiles};
pub use version::{EMBEDDED_VERSION, Edition, Program, program_version};
pub use watchdog::Watchdog;
