//! Options for starting a server: plain data, taken from a plan or set directly.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::units::Bytes;

use crate::ServerError;
use crate::placement::InstancePlacement;
use crate::settings::{Security, ServerRole};

/// Time limit for a server to stop: with kept data it may have a large checkpoint to write.
const KEPT_STOP_LIMIT: Duration = Duration::from_secs(60);
const TEMPORARY_STOP_LIMIT: Duration = Duration::from_secs(10);

/// The programs that can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerProgram {
    /// The embedded server, `secantusd-rs`.
    Embedded,
    /// MongoDB's own server, `mongod`, of versions 4.4 and later.
    Mongod,
    /// The router of a sharded cluster, `mongos`, of the same versions.
    Mongos,
}

impl ServerProgram {
    /// Name of the executable file, also used in messages.
    pub const fn executable(self) -> &'static str {
        match self {
            ServerProgram::Embedded => "secantusd-rs",
            ServerProgram::Mongod => "mongod",
            ServerProgram::Mongos => "mongos",
        }
    }

    /// The error of a setting or value that this program does not support.
    pub(crate) fn refuses(
        self,
        setting: &'static str,
        value: impl ToString,
        reason: impl Into<String>,
    ) -> ServerError {
        let (value, reason) = (value.to_string(), reason.into());
        ServerError::Setting { program: self.executable(), setting, value, reason }
    }
}

/// The data folder of a server, and whether it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataDir {
    /// Created for this server, removed with everything in it after the process has exited. The
    /// folder must not exist yet, or must be empty.
    Temporary(PathBuf),
    /// Belongs to the user: created if missing, never removed. It must be empty or contain a
    /// database of the same kind of server.
    Kept(PathBuf),
}

impl DataDir {
    /// Path of the folder.
    pub fn path(&self) -> &Path {
        match self {
            DataDir::Temporary(path) | DataDir::Kept(path) => path,
        }
    }
}

/// Everything that [`start`](crate::start) needs.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Kind of the server `program`.
    pub kind: ServerProgram,
    /// Path of the executable file, as found by [`locate_embedded`](crate::locate_embedded) or
    /// [`locate_mongod`](crate::locate_mongod).
    pub program: PathBuf,
    pub data_dir: DataDir,
    /// Compressors, journal, checkpoints, parameters and security as in a plan. Cache, addresses and
    /// role are fields of their own, because they differ between the servers of a deployment.
    pub plan: ServerPlan,
    /// File for the server's standard output and standard error. Its folder is created if missing;
    /// an existing file is appended to.
    pub log_path: PathBuf,
    /// Cache of the storage engine; the server's default if absent. At least 1 MiB for the embedded
    /// server, 256 MiB for `mongod`; `mongod` rounds down to a whole MiB.
    pub cache: Option<Bytes>,
    /// Address of this machine on which the server accepts connections, or the unspecified address
    /// for all of them. A `mongod` listens on loopback as well.
    pub listen: IpAddr,
    /// Name or address for clients and members; `listen` if absent.
    pub advertise: Option<String>,
    /// TCP port on that address; 0 selects a free one.
    pub port: u16,
    /// CPUs and memory of the process; inherited from us if absent.
    pub placement: Option<InstancePlacement>,
    /// Role in its deployment.
    pub role: ServerRole,
    /// Encryption, and trust between members.
    pub security: Security,
    /// Parent of a temporary data folder; removed with the last folder in it.
    pub empty_parent: Option<PathBuf>,
    /// Longest time from start to readiness, including recovery of a large data folder.
    pub start_limit: Duration,
    /// Time for the server to write its last checkpoint and exit; it is killed after that.
    pub stop_limit: Duration,
}

impl ServerOptions {
    /// Options with the settings of a plan, a free port, no placement and two minutes as the limit
    /// of the start. The limit of the stop is one minute with kept data and ten seconds otherwise.
    /// The topology is an argument of [`Deployment::start`](crate::Deployment::start).
    ///
    /// # Errors
    /// [`ServerError::NothingToStart`] if the plan uses a running server, or does not specify the
    /// kind of server.
    pub fn from_plan(
        plan: &ServerPlan,
        program: PathBuf,
        data_dir: DataDir,
        log_path: PathBuf,
    ) -> Result<ServerOptions, ServerError> {
        let kind = match plan.kind {
            ServerKind::Embedded => ServerProgram::Embedded,
            ServerKind::Mongod => ServerProgram::Mongod,
            ServerKind::Auto | ServerKind::Uri => return Err(ServerError::NothingToStart),
        };
        // Data that is thrown away needs no last checkpoint.
        let stop_limit = match data_dir {
            DataDir::Temporary(_) => TEMPORARY_STOP_LIMIT,
            DataDir::Kept(_) => KEPT_STOP_LIMIT,
        };
        Ok(ServerOptions {
            kind,
            program,
            data_dir,
            log_path,
            plan: plan.clone(),
            cache: plan.cache_bytes(),
            listen: plan.listen_address(),
            advertise: plan.advertise.clone(),
            port: 0,
            placement: None,
            role: ServerRole::Standalone,
            security: Security::default(),
            empty_parent: None,
            start_limit: Duration::from_secs(120),
            stop_limit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_plan::units::{CacheSize, Span};

    #[test]
    fn plan_gives_its_settings_and_its_kind() {
        let plan = ServerPlan {
            kind: ServerKind::Mongod,
            cache: Some(CacheSize::Of(Bytes(1 << 30))),
            block_compressor: Some("zstd".into()),
            checkpoint_interval: Some(Span::from_secs(30)),
            ..ServerPlan::default()
        };
        let options = ServerOptions::from_plan(
            &plan,
            "/usr/bin/mongod".into(),
            DataDir::Kept("/data".into()),
            "/logs/mongod.log".into(),
        )
        .unwrap();
        assert_eq!(options.kind, ServerProgram::Mongod);
        assert_eq!(options.cache, Some(Bytes(1 << 30)));
        assert_eq!(options.plan, plan);
        assert_eq!(options.port, 0);
    }

    #[test]
    fn plan_for_a_running_server_starts_nothing() {
        let plan = ServerPlan { kind: ServerKind::Uri, ..ServerPlan::default() };
        let refused = ServerOptions::from_plan(
            &plan,
            PathBuf::new(),
            DataDir::Temporary(PathBuf::new()),
            PathBuf::new(),
        );
        assert!(matches!(refused, Err(ServerError::NothingToStart)));
    }
}
