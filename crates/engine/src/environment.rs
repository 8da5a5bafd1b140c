//! Environment of the engine. The front end reads it once; the engine itself reads no environment
//! variables.

use std::ffi::OsString;
use std::path::PathBuf;

/// Programs, folders and facts of this machine.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Search path for programs, as in `PATH`.
    pub path: Option<OsString>,
    /// This program's executable, which starts itself for helpers; `None` if it is unknown.
    pub executable: Option<PathBuf>,
    /// Folder for state kept between runs.
    pub state_dir: Option<PathBuf>,
    /// Folder for installed files, such as servers.
    pub data_dir: Option<PathBuf>,
    /// Default `mongod` of plans that name none: a path or an installed version.
    pub mongod: Option<String>,
    /// Default path of the embedded server.
    pub embedded_server: Option<PathBuf>,
    pub home: ServerHome,
    /// Cores that this process may use, at least 1.
    pub cores: u32,
    /// Name of this machine.
    pub hostname: Option<String>,
}

/// Where servers are started, which decides where to look for their programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerHome {
    #[default]
    Here,
    /// On the hosts of a fleet, which get the embedded server from here, and have a `mongod` if the
    /// plan says so.
    Hosts,
    /// In pods with an image that contains a `mongod`.
    Pods,
}
