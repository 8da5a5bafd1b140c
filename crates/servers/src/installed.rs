//! The servers installed by this program: one folder per version, with `bin/mongod`, its own
//! libraries in `lib/` if the system lacks them, and a note about its origin.

use std::cmp::Ordering;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::install::PINS;
use crate::{Edition, ServerError, ServerProgram};

/// The note in the folder of a version. A folder without it is not ours.
pub(crate) const NOTE: &str = "origin.json";

/// Libraries installed with a server, next to its `bin` folder.
pub(crate) const LIBRARIES: &str = "lib";

/// Origin of an installed server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Version as printed by the server.
    pub version: String,
    /// Edition, which identifies the builder.
    pub edition: Edition,
    /// Revision of its source, if it reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git_version: Option<String>,
    /// Package or file that it was taken from.
    pub source: String,
    /// SHA-256 of `bin/mongod`, in hexadecimal digits.
    pub sha256: String,
    /// Licence of the server.
    pub licence: String,
    /// Time of the installation, as RFC 3339.
    pub installed_at: String,
}

/// An installed server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledServer {
    /// Its name: the version, plus the edition for Enterprise.
    pub name: String,
    pub program: PathBuf,
    pub origin: Origin,
}

/// The folder of all installed servers.
#[derive(Clone, Debug, Default)]
pub struct InstalledServers {
    folder: Option<PathBuf>,
}

impl InstalledServers {
    /// Servers below the data folder of this program; none without such a folder.
    pub fn new(data_folder: Option<&Path>) -> Self {
        InstalledServers { folder: data_folder.map(|folder| folder.join("servers")) }
    }

    /// Servers in a folder.
    pub(crate) fn in_folder(folder: &Path) -> Self {
        InstalledServers { folder: Some(folder.to_owned()) }
    }

    /// Folder of the servers, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// All installed servers, the oldest version first. An unreadable folder counts as empty.
    pub fn list(&self) -> Vec<InstalledServer> {
        let entries = self.folder.iter().flat_map(fs::read_dir).flatten().flatten();
        let mut all: Vec<InstalledServer> =
            entries.filter_map(|entry| self.find(entry.file_name().to_str()?)).collect();
        all.sort_by(|a, b| by_version(&a.name, &b.name));
        all
    }

    /// The server with this name.
    pub fn find(&self, name: &str) -> Option<InstalledServer> {
        if !is_name(name) {
            return None;
        }
        let folder = self.folder.as_ref()?.join(name);
        let origin = serde_json::from_slice(&fs::read(folder.join(NOTE)).ok()?).ok()?;
        Some(InstalledServer {
            name: name.to_owned(),
            program: folder.join("bin").join(ServerProgram::Mongod.executable()),
            origin,
        })
    }

    /// The server to start by default: the version that is installed by default, else the newest.
    pub fn preferred(&self) -> Option<InstalledServer> {
        self.find(PINS[0].version).or_else(|| self.list().into_iter().next_back())
    }

    /// The `mongod` that a plan names by a path or by the name of an installed server. A text that
    /// begins with a digit and contains no `/` is a name.
    ///
    /// # Errors
    /// [`ServerError::NotInstalled`] with the installed names.
    pub fn program(&self, text: &str) -> Result<PathBuf, ServerError> {
        if !is_name(text) {
            return Ok(text.into());
        }
        match self.find(text) {
            Some(found) => Ok(found.program),
            None => Err(self.not_installed(text)),
        }
    }

    /// Error for a name that is not installed.
    pub(crate) fn not_installed(&self, name: &str) -> ServerError {
        ServerError::NotInstalled {
            name: name.to_owned(),
            installed: self.list().into_iter().map(|one| one.name).collect(),
        }
    }
}

/// Longest name of an installed server.
const LONGEST_NAME: usize = 64;

/// Whether a text is the name of an installed server and not a path.
pub fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
}

/// Compares names by their numbers, then as text: `10.0` comes after `9.0`, and `6.0.5-4` after
/// `6.0.5`.
fn by_version(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        let parts = text.split(|c: char| !c.is_ascii_digit());
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

/// A command that runs a server program. If we installed the program with its own libraries, it
/// finds them without a wrapper script.
pub(crate) fn command_for(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some(folder) = libraries_of(program) {
        command.env("LD_LIBRARY_PATH", folder);
    }
    command
}

fn libraries_of(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?.parent()?;
    let libraries = folder.join(LIBRARIES);
    (folder.join(NOTE).is_file() && libraries.is_dir()).then_some(libraries)
}

/// Writes the note into a folder that is being assembled.
pub(crate) fn write_note(folder: &Path, origin: &Origin) -> io::Result<()> {
    let text = serde_json::to_string_pretty(origin).map_err(io::Error::other)?;
    fs::write(folder.join(NOTE), text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn install(data: &Path, name: &str, has_libraries: bool) {
        let folder = data.join("servers").join(name);
        fs::create_dir_all(folder.join("bin")).unwrap();
        if has_libraries {
            fs::create_dir_all(folder.join(LIBRARIES)).unwrap();
        }
        let origin = Origin {
            version: name.to_owned(),
            edition: Edition::Community,
            git_version: None,
            source: "a test".to_owned(),
            sha256: String::new(),
            licence: String::new(),
            installed_at: String::new(),
        };
        write_note(&folder, &origin).unwrap();
    }

    #[test]
    fn default_version_is_preferred_then_the_newest() {
        let data = TempDir::new().unwrap();
        let servers = InstalledServers::new(Some(data.path()));
        assert_eq!(servers.preferred(), None);
        for name in ["7.0.2", "7.0.14", "10.0.1", "6.0.11-8"] {
            install(data.path(), name, false);
        }
        let names: Vec<String> = servers.list().into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["6.0.11-8", "7.0.2", "7.0.14", "10.0.1"]);
        assert_eq!(servers.preferred().unwrap().name, "10.0.1");
        install(data.path(), PINS[0].version, false);
        assert_eq!(servers.preferred().unwrap().name, PINS[0].version);
    }

    #[test]
    fn folder_without_a_note_is_not_installed() {
        let data = TempDir::new().unwrap();
        fs::create_dir_all(data.path().join("servers/6.0.5/bin")).unwrap();
        fs::create_dir_all(data.path().join("servers/.staging/bin")).unwrap();
        assert_eq!(InstalledServers::new(Some(data.path())).list(), []);
    }

    #[test]
    fn names_and_paths_of_servers_are_distinguished() {
        let data = TempDir::new().unwrap();
        install(data.path(), "7.0.14", false);
        let servers = InstalledServers::new(Some(data.path()));
        for path in ["mongod", "./6.0.5", "/opt/6.0.5/mongod", "../6.0.5"] {
            assert_eq!(servers.program(path).unwrap(), Path::new(path));
        }
        let found = servers.program("7.0.14").unwrap();
        assert_eq!(found, data.path().join("servers/7.0.14/bin/mongod"));
        let error = servers.program("8.0.4").unwrap_err();
        let ServerError::NotInstalled { name, installed } = &error else { panic!("{error:?}") };
        assert_eq!((name.as_str(), &installed[..]), ("8.0.4", &["7.0.14".to_owned()][..]));
        assert!(error.hint().unwrap().contains("`dyno server install"));
    }

    #[test]
    fn only_servers_installed_with_libraries_get_them() {
        let data = TempDir::new().unwrap();
        install(data.path(), "6.0.27", true);
        install(data.path(), "6.0.5", false);
        let servers = InstalledServers::new(Some(data.path()));
        let libraries = |name: &str| libraries_of(&servers.program(name).unwrap());
        let own = data.path().join("servers/6.0.27/lib");
        assert_eq!(libraries("6.0.27"), Some(own));
        assert_eq!(libraries("6.0.5"), None);
        // Like a system's server, which finds its libraries itself.
        fs::create_dir_all(data.path().join("usr/bin")).unwrap();
        fs::create_dir_all(data.path().join("usr/lib")).unwrap();
        assert_eq!(libraries_of(&data.path().join("usr/bin/mongod")), None);
    }
}
