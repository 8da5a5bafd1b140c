//! What the engine needs to know of the place that it works in. The front end reads it once; the engine itself reads no
//! environment variables.

use std::ffi::OsString;
use std::path::PathBuf;

/// Programs, folders and facts of this machine.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Folders that programs are looked for in, as in `PATH`.
    pub path: Option<OsString>,
    /// The executable file of this program, which starts itself for helpers; absent where it is unknown.
    pub executable: Option<PathBuf>,
    /// Folder for what is kept between runs.
    pub state_dir: Option<PathBuf>,
    /// Folder for what is installed, such as servers.
    pub data_dir: Option<PathBuf>,
    /// The `mongod` for all runs, unless a plan names another: a path, or the version of an installed one.
    pub mongod: Option<String>,
    /// Path of the embedded server for all runs, unless another is named.
    pub embedded_server: Option<PathBuf>,
    /// Where servers are started.
    pub home: ServerHome,
    /// Cores that this process may use, at least 1.
    pub cores: u32,
    /// Name of this machine.
    pub hostname: Option<String>,
}

/// Where servers are started, which decides where their programs are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerHome {
    /// On this machine.
    #[default]
    Here,
    /// On the hosts of a fleet, which get the embedded server from here, and have a `mongod` if the plan says so.
    Hosts,
    /// In pods, whose image has a `mongod`.
    Pods,
}
