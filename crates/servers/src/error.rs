//! What can go wrong with a server that we start. What the user can do about it is in `hint`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use bson::{Bson, Document};

use crate::placement::{InstancePlacement, PlacementError};
use dyno_plan::topology::TopologyError;

/// A server could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No executable file at any of the places where the program is looked for.
    #[error("cannot find `{program}`: {}", list(tried))]
    NotFound {
        /// Name of the program.
        program: &'static str,
        /// Every path that was looked at, in order.
        tried: Vec<PathBuf>,
    },
    /// No server at all: neither `mongod` nor the embedded one.
    #[error(
        "no server to start: `mongod` is neither on `PATH` nor installed, and the embedded server was not found"
    )]
    NoServer,
    /// No version of this name is installed.
    #[error("`mongod` `{name}` is not installed; {}", names(installed))]
    NotInstalled {
        /// What was asked for.
        name: String,
        /// What is installed.
        installed: Vec<String>,
    },
    /// The file that was named is not an executable file.
    #[error("`{}` is not an executable file", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused to run the program.
    #[error("cannot run `{}`", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The operating system refused the CPUs or the memory of the placement.
    #[error("cannot start `{program}` with placement `{placement}`")]
    Placement {
        /// Name of the server.
        program: &'static str,
        /// The CPUs and the memory policy.
        placement: InstancePlacement,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// `--version` did not give what this kind of server prints.
    #[error("`{}` is not a `{expected}`: `--version` printed `{output}`", program.display())]
    UnknownVersion {
        /// The program.
        program: PathBuf,
        /// Name of the expected server.
        expected: &'static str,
        /// Its first line of output.
        output: String,
    },
    /// The version cannot be driven.
    #[error("`{}` is version {version}; the oldest supported version is {oldest}", program.display())]
    OldVersion {
        /// The program.
        program: PathBuf,
        /// Its version.
        version: String,
        /// The oldest supported version.
        oldest: &'static str,
    },
    /// The plan aims at a server that is already running, or leaves open which one is started.
    #[error("the plan does not name a server to start")]
    NothingToStart,
    /// The server does not have this setting or not with this value.
    #[error("cannot start `{program}` with `{setting}` = `{value}`: {reason}")]
    Setting {
        /// Name of the server.
        program: &'static str,
        /// Name of the setting as in a plan.
        setting: &'static str,
        /// The refused value.
        value: String,
        /// What is possible instead.
        reason: String,
    },
    /// A folder or file that the server needs could not be made or read.
    #[error("cannot prepare `{}`", path.display())]
    Prepare {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A temporary data folder holds files, which would be lost.
    #[error("the temporary data folder `{}` is not empty", path.display())]
    TemporaryNotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The data folder holds something that is not a database of this server.
    #[error("the data folder `{}` holds {found}, not a database of `{program}`", path.display())]
    ForeignDataDir {
        /// The folder.
        path: PathBuf,
        /// What is in it.
        found: &'static str,
        /// Name of the server.
        program: &'static str,
    },
    /// Root would leave files in the data of somebody else.
    #[error("files in the data folder `{}` belong to the user {owner}, not to root", path.display())]
    ForeignOwner {
        /// The folder.
        path: PathBuf,
        /// Number of its owner.
        owner: u32,
    },
    /// Another process has the data folder open.
    #[error("the data folder `{}` is in use by {}", path.display(), holder(*process))]
    DataDirInUse {
        /// The folder.
        path: PathBuf,
        /// The process, when it could be found out.
        process: Option<u32>,
    },
    /// Another process listens on the port.
    #[error("port {port} on {listen} is in use")]
    PortInUse {
        /// The address.
        listen: std::net::IpAddr,
        /// The port.
        port: u16,
    },
    /// This machine cannot listen on the address, as when it has it not.
    #[error("cannot listen on {listen}")]
    Listen {
        /// The address.
        listen: std::net::IpAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server ended before it could be used.
    #[error(
        "`{program}` ended before it was ready: {status}{}",
        indented(log_tail)
    )]
    Exited {
        /// Name of the server.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// Its last lines of output.
        log_tail: Vec<String>,
    },
    /// The server was not ready in time and was killed.
    #[error("`{program}` was not ready after {} s{}", waited.as_secs_f64(), indented(log_tail))]
    NotReady {
        /// Name of the server.
        program: &'static str,
        /// How long it was waited for.
        waited: Duration,
        /// Its last lines of output.
        log_tail: Vec<String>,
    },
    /// The caller gave up before the server was ready; the server was killed.
    #[error("interrupted while `{program}` was starting")]
    Interrupted {
        /// Name of the server.
        program: &'static str,
    },
    /// The description of the deployment cannot be right.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A server of a deployment could not be started or stopped.
    #[error("server `{name}` of the deployment failed")]
    Member {
        /// Name of the server within the deployment.
        name: String,
        /// Why.
        #[source]
        source: Box<ServerError>,
    },
    /// A server of a deployment ended while the deployment was made.
    #[error("`{name}` ended while {step}: {status}{}", indented(log_tail))]
    MemberEnded {
        /// Name of the server within the deployment.
        name: String,
        /// What was being done, as `waiting for ...`.
        step: String,
        /// How it ended.
        status: ExitStatus,
        /// Its last lines of output.
        log_tail: Vec<String>,
    },
    /// A server refused a step or did not answer.
    #[error("`{name}` failed while {step}")]
    Step {
        /// Name of the server within the deployment.
        name: String,
        /// What was being done.
        step: String,
        /// What it answered.
        #[source]
        source: CommandFailure,
    },
    /// A step was not over in time.
    #[error("timed out after {} s while {step}: {pending}", waited.as_secs_f64())]
    Deadline {
        /// What was waited for.
        step: String,
        /// Which servers were not as needed, and how they were.
        pending: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The memory does not hold the smallest cache of each server.
    #[error(
        "{instances} servers with a cache of at least {} MiB each do not fit in half of the {} MiB of memory",
        smallest_bytes >> 20,
        memory_bytes >> 20
    )]
    NoMemory {
        /// Servers with a cache.
        instances: u64,
        /// Smallest cache of each.
        smallest_bytes: u64,
        /// Memory of the host.
        memory_bytes: u64,
    },
    /// The memory that servers share is not known.
    #[error("cannot determine how much memory the servers can use")]
    Memory {
        /// What cannot be read.
        #[source]
        source: PlacementError,
    },
    /// Each server wants a data folder of its own, and there are fewer.
    #[error("{instances} servers with data need one folder each; {folders} given")]
    TooFewFolders {
        /// Servers with data.
        instances: usize,
        /// Folders.
        folders: usize,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file of a certificate or of a key could not be made.
    #[error("cannot create the secret file `{}`", path.display())]
    Tls {
        /// The file or its folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The process could not be signalled or waited for.
    #[error("cannot stop process {process}")]
    Stop {
        /// The process.
        process: u32,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The temporary data folder could not be removed after the server had exited.
    #[error("cannot remove the temporary data folder `{}`", path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ServerError {
    /// What the error of a folder or file that the server needs becomes, for `map_err`.
    pub(crate) fn prepare(path: &Path) -> impl Fn(io::Error) -> ServerError + Copy {
        move |source| ServerError::Prepare {
            path: path.to_owned(),
            source,
        }
    }
}

/// Why a command gave no usable reply.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// Its `code`, 0 when it gave none.
        code: i32,
        /// Its `errmsg`.
        message: String,
    },
    /// No connection, no encryption, no authentication, or no answer in time.
    #[error("no answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The reply lacks something.
    #[error("the reply has no usable `{field}`")]
    Malformed {
        /// What is missing.
        field: &'static str,
    },
}

impl CommandFailure {
    /// Reads the code of the server; `None` when it did not answer.
    pub fn code(&self) -> Option<i32> {
        match self {
            CommandFailure::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The failure that a reply with `ok` = 0 reports; `None` for a good reply.
    pub fn from_reply(reply: &Document) -> Option<CommandFailure> {
        let ok = match reply.get("ok") {
            Some(Bson::Double(ok)) => *ok == 1.0,
            Some(Bson::Int32(ok)) => *ok == 1,
            Some(Bson::Boolean(ok)) => *ok,
            _ => false,
        };
        (!ok).then(|| CommandFailure::Refused {
            code: reply.get_i32("code").unwrap_or(0),
            message: reply.get_str("errmsg").unwrap_or_default().to_owned(),
        })
    }
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "`PATH` is empty".to_owned();
    }
    let quoted: Vec<_> = paths
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    format!("looked at {}", quoted.join(", "))
}

fn names(installed: &[String]) -> String {
    if installed.is_empty() {
        "nothing is installed".to_owned()
    } else {
        format!("installed: `{}`", installed.join("`, `"))
    }
}

fn holder(process: Option<u32>) -> String {
    match process {
        Some(process) => format!("process {process}"),
        None => "another process".to_owned(),
    }
}

fn indented(lines: &[String]) -> String {
    if lines.is_empty() {
        return "; it printed nothing".to_owned();
    }
    let lines: Vec<_> = lines.iter().map(|line| format!("\n    {line}")).collect();
    format!("; its last output:{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_reply_is_good_when_its_ok_is_one_in_any_type() {
        for reply in [doc! { "ok": 1.0 }, doc! { "ok": 1 }, doc! { "ok": true }] {
            assert!(CommandFailure::from_reply(&reply).is_none(), "{reply}");
        }
        let failed = doc! { "ok": 0.0, "code": 94, "errmsg": "no replset config" };
        let failure = CommandFailure::from_reply(&failed).unwrap();
        assert_eq!(failure.code(), Some(94));
        assert!(
            matches!(&failure, CommandFailure::Refused { message, .. } if message == "no replset config"),
            "{failure:?}"
        );
        assert!(CommandFailure::from_reply(&doc! {}).is_some());
    }
}
