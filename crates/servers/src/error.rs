//! Errors of the servers that we start; `hint` contains the advice for the user.

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
    /// No executable file at any of the searched places.
    #[error("cannot find `{program}`: {}", list(tried))]
    NotFound {
        program: &'static str,
        /// Every path that was searched, in order.
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
        /// The requested name.
        name: String,
        /// The installed versions.
        installed: Vec<String>,
    },
    /// The named file is not an executable file.
    #[error("`{}` is not an executable file", path.display())]
    NotExecutable { path: PathBuf },
    /// The operating system refused to run the program.
    #[error("cannot run `{}`", program.display())]
    Spawn {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The operating system refused the CPUs or the memory of the placement.
    #[error("cannot start `{program}` with placement `{placement}`")]
    Placement {
        program: &'static str,
        placement: InstancePlacement,
        #[source]
        source: io::Error,
    },
    /// `--version` did not print the text of this kind of server.
    #[error("`{}` is not a `{expected}`: `--version` printed `{output}`", program.display())]
    UnknownVersion {
        program: PathBuf,
        expected: &'static str,
        /// Its first line of output.
        output: String,
    },
    /// The version is not supported.
    #[error("`{}` is version {version}; the oldest supported version is {oldest}", program.display())]
    OldVersion { program: PathBuf, version: String, oldest: &'static str },
    /// The plan uses a running server, or does not decide which one to start.
    #[error("the plan does not name a server to start")]
    NothingToStart,
    /// The server does not support this setting or this value.
    #[error("cannot start `{program}` with `{setting}` = `{value}`: {reason}")]
    Setting {
        program: &'static str,
        /// Name of the setting as in a plan.
        setting: &'static str,
        /// The refused value.
        value: String,
        /// Why it is refused or what is supported.
        reason: String,
    },
    /// A folder or file that the server needs could not be created or read.
    #[error("cannot prepare `{}`", path.display())]
    Prepare {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A temporary data folder contains files, which would be lost.
    #[error("the temporary data folder `{}` is not empty", path.display())]
    TemporaryNotEmpty { path: PathBuf },
    /// The data folder contains something other than a database of this server.
    #[error("the data folder `{}` contains {found}, not a database of `{program}`", path.display())]
    ForeignDataDir {
        path: PathBuf,
        /// Description of its content.
        found: &'static str,
        program: &'static str,
    },
    /// Root would leave files in another user's data.
    #[error("files in the data folder `{}` belong to the user {owner}, not to root", path.display())]
    ForeignOwner {
        path: PathBuf,
        /// User ID of the owner.
        owner: u32,
    },
    /// Another process has the data folder open.
    #[error("the data folder `{}` is in use by {}", path.display(), holder(*process))]
    DataDirInUse {
        path: PathBuf,
        /// The process, if it was found.
        process: Option<u32>,
    },
    /// Another process listens on the port.
    #[error("port {port} on {listen} is in use")]
    PortInUse { listen: std::net::IpAddr, port: u16 },
    /// This machine cannot listen on the address, for example because it does not have it.
    #[error("cannot listen on {listen}")]
    Listen {
        listen: std::net::IpAddr,
        #[source]
        source: io::Error,
    },
    /// The server ended before it was ready.
    #[error("`{program}` ended before it was ready: {status}{}", indented(log_tail))]
    Exited {
        program: &'static str,
        status: ExitStatus,
        /// Its last lines of output.
        log_tail: Vec<String>,
    },
    /// The server was not ready in time and was killed.
    #[error("`{program}` was not ready after {} s{}", waited.as_secs_f64(), indented(log_tail))]
    NotReady {
        program: &'static str,
        /// Duration of the wait.
        waited: Duration,
        /// Its last lines of output.
        log_tail: Vec<String>,
    },
    /// The caller gave up before the server was ready; the server was killed.
    #[error("interrupted while `{program}` was starting")]
    Interrupted { program: &'static str },
    /// The topology is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A server of a deployment could not be started or stopped.
    #[error("server `{name}` of the deployment failed")]
    Member {
        /// Name of the server within the deployment.
        name: String,
        #[source]
        source: Box<ServerError>,
    },
    /// A server of a deployment ended while the deployment was assembled.
    #[error("`{name}` ended while {step}: {status}{}", indented(log_tail))]
    MemberEnded {
        /// Name of the server within the deployment.
        name: String,
        /// The current step, such as `waiting for ...`.
        step: String,
        status: ExitStatus,
        /// Its last lines of output.
        log_tail: Vec<String>,
    },
    /// A server refused a step or did not answer.
    #[error("`{name}` failed while {step}")]
    Step {
        /// Name of the server within the deployment.
        name: String,
        /// The current step.
        step: String,
        /// The server's answer.
        #[source]
        source: CommandFailure,
    },
    /// A step timed out.
    #[error("timed out after {} s while {step}: {pending}", waited.as_secs_f64())]
    Deadline {
        /// The state that was awaited.
        step: String,
        /// The servers that were not ready, with their states.
        pending: String,
        /// Duration of the wait.
        waited: Duration,
    },
    /// The memory is too small for the smallest cache of each server.
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
    /// The memory shared by the servers is unknown.
    #[error("cannot determine how much memory the servers can use")]
    Memory {
        #[source]
        source: PlacementError,
    },
    /// Each server needs its own data folder, and there are fewer folders.
    #[error("{instances} servers with data need one folder each; {folders} given")]
    TooFewFolders {
        /// Servers with data.
        instances: usize,
        folders: usize,
    },
    /// A certificate could not be created.
    #[error("cannot create a certificate")]
    Certificate {
        #[source]
        source: io::Error,
    },
    /// The file of a certificate or of a key could not be created.
    #[error("cannot create the secret file `{}`", path.display())]
    Tls {
        /// The file or its folder.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The process could not be signalled or waited for.
    #[error("cannot stop process {process}")]
    Stop {
        process: u32,
        #[source]
        source: io::Error,
    },
    /// The temporary data folder could not be removed after the server had exited.
    #[error("cannot remove the temporary data folder `{}`", path.display())]
    Remove {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ServerError {
    /// Converts an I/O error of a needed folder or file, for `map_err`.
    pub(crate) fn prepare(path: &Path) -> impl Fn(io::Error) -> ServerError + Copy {
        move |source| ServerError::Prepare { path: path.to_owned(), source }
    }
}

/// Why a command gave no usable reply.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// The server answered with an error.
    #[error("the server answered with error {code}: {message}")]
    Refused {
        /// Its `code`, 0 if absent.
        code: i32,
        /// Its `errmsg`.
        message: String,
    },
    /// No connection, no encryption, no authentication, or no answer in time.
    #[error("no answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The reply lacks a field.
    #[error("the reply has no usable `{field}`")]
    Malformed {
        /// The missing field.
        field: &'static str,
    },
}

impl CommandFailure {
    /// The server's error code; `None` if it did not answer.
    pub fn code(&self) -> Option<i32> {
        match self {
            CommandFailure::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The failure reported by a reply with `ok` 0; `None` for a good reply.
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
    let quoted: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
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
    fn reply_is_good_when_its_ok_is_one_in_any_type() {
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
