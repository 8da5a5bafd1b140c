//! What can go wrong with a server that we start, and what the user can do about it.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::commander::CommandFailure;
use crate::diagnose;
use crate::placement::{InstancePlacement, refusal_hint};
use dyno_plan::topology::TopologyError;

/// A server could not be found, started or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// No executable file at any of the places where the program is looked for.
    #[error("cannot find `{program}`: looked at {}", list(tried))]
    NotFound {
        /// Name of the program.
        program: &'static str,
        /// Every path that was looked at, in order.
        tried: Vec<PathBuf>,
    },
    /// No server at all: neither `mongod` nor the embedded one.
    #[error(
        "there is no server to start: no `mongod` on `PATH`, none installed, and no embedded server"
    )]
    NoServer,
    /// No version of this name is installed.
    #[error("there is no installed `mongod` `{name}`: {}", names(installed))]
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
    #[error("cannot start `{program}` on the place `{placement}`")]
    Place {
        /// Name of the server.
        program: &'static str,
        /// The place, as CPUs and memory policy.
        placement: InstancePlacement,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// `--version` did not give what this kind of server prints.
    #[error("`{}` is not a `{expected}`: `--version` gave `{output}`", program.display())]
    UnknownVersion {
        /// The program.
        program: PathBuf,
        /// Name of the expected server.
        expected: &'static str,
        /// Its first line of output.
        output: String,
    },
    /// The version cannot be driven.
    #[error("`{}` is version {version}, the oldest that can be started is {oldest}", program.display())]
    OldVersion {
        /// The program.
        program: PathBuf,
        /// Its version.
        version: String,
        /// The oldest supported version.
        oldest: &'static str,
    },
    /// The plan aims at a server that runs already, or leaves open which one is started.
    #[error("the plan names no kind of server that could be started")]
    NothingToStart,
    /// The server does not have this setting or not with this value.
    #[error("`{program}` cannot be started with `{setting}` = `{value}`: {reason}")]
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
    /// Another process has the data folder open.
    #[error("the data folder `{}` is in use by {}", path.display(), holder(*process))]
    DataDirInUse {
        /// The folder.
        path: PathBuf,
        /// The process, when it could be found out.
        process: Option<u32>,
    },
    /// Another process listens on the port.
    #[error("port {port} of {listen} is in use")]
    PortInUse {
        /// The address.
        listen: std::net::IpAddr,
        /// The port.
        port: u16,
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
    #[error("the server `{name}` of the deployment failed")]
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
    #[error("{step} was not over after {} s: {culprit}", waited.as_secs_f64())]
    Deadline {
        /// What was waited for.
        step: String,
        /// Which servers were not as needed, and how they were.
        culprit: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The memory does not hold the smallest cache of each server.
    #[error(
        "{instances} servers with a cache of at least {} MiB each do not fit into half of {} MiB of memory",
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
    #[error("cannot find out how much memory the servers can use")]
    Memory {
        /// What cannot be read.
        #[source]
        source: crate::placement::PlacementError,
    },
    /// Each server wants a data folder of its own, and there are fewer.
    #[error("{instances} servers with data need a folder each, {folders} were given")]
    TooFewFolders {
        /// Servers with data.
        instances: usize,
        /// Folders.
        folders: usize,
    },
    /// A certificate or a key could not be made.
    #[error("cannot make the secret file `{}`", path.display())]
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
    /// What the user can do, as one sentence without a final period; `None` when the error says all.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ServerError::NotFound { program, .. } if *program == "mongod" => {
                "`dyno server install` fetches one; or install MongoDB, or name the program with `--mongod PATH`, or use the embedded server"
            }
            ServerError::NotFound { program, .. } if *program == "mongos" => {
                "install the `mongos` of the same version as `mongod`, it is a package of its own"
            }
            ServerError::NotFound { .. } => {
                "run `scripts/setup.sh embedded` in the project folder, it builds the embedded server"
            }
            ServerError::NoServer => {
                "`dyno server install` fetches a `mongod`; or install MongoDB, or name a program with `--mongod PATH`, or aim at a server that runs with `--uri`, or build the embedded server with `scripts/setup.sh embedded`"
            }
            ServerError::NotInstalled { .. } => {
                "`dyno server install` fetches or takes one, `dyno server list --installed` shows them; the path of a program has a `/`"
            }
            ServerError::NotExecutable { .. } => "check the path, and `chmod +x` the file",
            ServerError::Spawn { source, .. } => return diagnose::spawn_hint(source),
            ServerError::Place { source, .. } => return refusal_hint(source),
            ServerError::UnknownVersion { .. } => "name another program",
            ServerError::OldVersion { .. } => {
                "use a newer version, or start it yourself and pass `--uri`"
            }
            ServerError::TemporaryNotEmpty { .. } | ServerError::ForeignDataDir { .. } => {
                "choose an empty folder or one that does not exist"
            }
            ServerError::DataDirInUse { .. } => {
                "stop the other server, or choose another `--data-dir`"
            }
            ServerError::PortInUse { .. } => "choose another port, or 0 for a free one",
            ServerError::Exited {
                status, log_tail, ..
            } => return diagnose::exit_hint(*status, log_tail),
            ServerError::NotReady { .. } => {
                "the log says what the server was doing; recovery of a large data folder takes time"
            }
            ServerError::Member { source, .. } => return source.hint(),
            ServerError::MemberEnded {
                status, log_tail, ..
            } => return diagnose::exit_hint(*status, log_tail),
            ServerError::Deadline { .. } => {
                "the logs of the servers say what they were doing; a slow host may need a longer limit"
            }
            ServerError::NoMemory { .. } => {
                "use fewer servers, or give `--cache` if they share the host with nothing else"
            }
            ServerError::TooFewFolders { .. } => {
                "name more data folders, or let the servers share them in turn"
            }
            ServerError::Setting {
                setting: "server.data_dir",
                ..
            } => {
                "choose an empty `--data-dir`; for an old database leave out `--auth` and `--topology`, or start its servers yourself and pass `--uri`"
            }
            ServerError::Prepare { source, .. } => return prepare_hint(source),
            ServerError::NothingToStart
            | ServerError::Memory { .. }
            | ServerError::Topology(_)
            | ServerError::Step { .. }
            | ServerError::Tls { .. }
            | ServerError::Setting { .. }
            | ServerError::Interrupted { .. }
            | ServerError::Stop { .. }
            | ServerError::Remove { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Why a folder or a file could not be made, by the answer of the system.
fn prepare_hint(source: &io::Error) -> Option<String> {
    let hint = match source.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "that is a file, or lies below one: name a folder, or one that does not exist"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that you may write to"
        }
        io::ErrorKind::StorageFull => "free some space, or choose another disk",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn list(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return "no place, as `PATH` is empty".to_owned();
    }
    let quoted: Vec<_> = paths
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    quoted.join(", ")
}

fn names(installed: &[String]) -> String {
    match installed.is_empty() {
        true => "nothing is installed".to_owned(),
        false => format!("installed are `{}`", installed.join("`, `")),
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
    use std::path::Path;

    #[test]
    fn a_data_folder_that_cannot_be_used_has_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let prepare = |path: &Path| ServerError::Prepare {
            path: path.to_owned(),
            source: std::fs::read_dir(path).unwrap_err(),
        };
        for path in [file.as_path(), &file.join("below")] {
            let hint = prepare(path).hint().unwrap();
            assert!(hint.contains("name a folder"), "{hint}");
        }
        assert_eq!(prepare(&folder.path().join("missing")).hint(), None);
    }

    #[test]
    fn an_old_database_that_is_not_taken_up_has_a_hint_and_other_settings_have_none() {
        let refused = |setting| ServerError::Setting {
            program: "mongod",
            setting,
            value: "x".into(),
            reason: "y".into(),
        };
        let hint = refused("server.data_dir").hint().unwrap();
        assert!(hint.contains("leave out `--auth`"), "{hint}");
        assert_eq!(refused("server.journal").hint(), None);
    }
}
