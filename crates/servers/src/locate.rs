//! Finds the executable file of a server. Environment variables are passed as arguments.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::installed::is_name;
use crate::{InstalledServers, ServerError, ServerProgram};

/// Path of the embedded server below the project folder, as built by the set-up script.
const EMBEDDED_IN_PROJECT: &str = ".cache/secantus/bin/secantusd-rs";

/// Places to search for the embedded server, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddedSearch<'a> {
    /// A path named by the user. If it is set, nothing else is tried.
    pub explicit: Option<&'a Path>,
    /// Folder of our own executable file. The project's cache is searched in it and in all folders
    /// above it, and the server itself next to the executable.
    pub executable_dir: Option<&'a Path>,
    pub path_variable: Option<&'a OsStr>,
}

/// Finds the embedded server.
///
/// The current folder is never searched: a program planted in a shared folder must not run.
///
/// # Errors
/// [`ServerError::NotExecutable`] if the named file cannot be run, [`ServerError::NotFound`] with
/// all searched places if none was found.
pub fn locate_embedded(search: &EmbeddedSearch<'_>) -> Result<PathBuf, ServerError> {
    if let Some(path) = search.explicit {
        return named(path);
    }
    let mut candidates = Vec::new();
    if let Some(folder) = search.executable_dir {
        candidates.extend(folder.ancestors().map(|above| above.join(EMBEDDED_IN_PROJECT)));
        candidates.push(folder.join(ServerProgram::Embedded.executable()));
    }
    candidates.extend(on_path(search.path_variable, ServerProgram::Embedded));
    first_executable(ServerProgram::Embedded, candidates)
}

/// Places to search for `mongod`, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct MongodSearch<'a> {
    /// A path or an installed version that the user named for all runs.
    pub named: Option<&'a str>,
    pub path_variable: Option<&'a OsStr>,
    /// The servers installed by this program.
    pub installed: Option<&'a InstalledServers>,
}

/// A `mongod` program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mongod {
    pub program: PathBuf,
    /// Its name in a plan: its path, or the version of an installed one.
    pub name: String,
}

/// The server to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerChoice {
    /// MongoDB's own server.
    Mongod(Mongod),
    /// The embedded server.
    Embedded(PathBuf),
}

/// Chooses a server if its kind is not specified: a named server before a found one, and a `mongod`
/// before the embedded server.
///
/// # Errors
/// [`ServerError::NoServer`] if none was found; the errors of [`locate_mongod`] if one is named.
pub fn choose(
    mongod: &MongodSearch<'_>,
    embedded: &EmbeddedSearch<'_>,
) -> Result<ServerChoice, ServerError> {
    if mongod.named.is_none() && embedded.explicit.is_some() {
        return locate_embedded(embedded).map(ServerChoice::Embedded);
    }
    match locate_mongod(None, mongod) {
        Ok(found) => Ok(ServerChoice::Mongod(found)),
        Err(ServerError::NotFound { .. }) => {
            locate_embedded(embedded).map(ServerChoice::Embedded).map_err(|_| ServerError::NoServer)
        }
        Err(named) => Err(named),
    }
}

/// Finds `mongod`: the one named in the plan, else the one named for all runs, else the first one
/// on `PATH`, else an installed one.
///
/// # Errors
/// [`ServerError::NotInstalled`] for a missing version, and the errors of [`locate_embedded`].
pub fn locate_mongod(
    explicit: Option<&str>,
    search: &MongodSearch<'_>,
) -> Result<Mongod, ServerError> {
    let none = InstalledServers::default();
    let installed = search.installed.unwrap_or(&none);
    if let Some(text) = explicit.or(search.named) {
        let program = named(&installed.program(text)?)?;
        let name = if is_name(text) { text.to_owned() } else { text_of(&program) };
        return Ok(Mongod { program, name });
    }
    let on_path = on_path(search.path_variable, ServerProgram::Mongod);
    match (first_executable(ServerProgram::Mongod, on_path), installed.preferred()) {
        (Ok(program), _) => Ok(Mongod { name: text_of(&program), program }),
        (Err(_), Some(found)) => Ok(Mongod { program: named(&found.program)?, name: found.name }),
        (Err(error), None) => Err(error),
    }
}

/// A path as text for a plan. A path that is not UTF-8 is not found under this text, and is refused
/// then by name.
fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Finds `mongos`: the named file, else the one next to the `mongod` in use, so that their versions
/// match, else the first one on `PATH`.
///
/// # Errors
/// The errors of [`locate_embedded`].
pub fn locate_mongos(
    explicit: Option<&Path>,
    mongod: &Path,
    path_variable: Option<&OsStr>,
) -> Result<PathBuf, ServerError> {
    if let Some(path) = explicit {
        return named(path);
    }
    let mut candidates = vec![mongod.with_file_name(ServerProgram::Mongos.executable())];
    candidates.extend(on_path(path_variable, ServerProgram::Mongos));
    first_executable(ServerProgram::Mongos, candidates)
}

fn named(path: &Path) -> Result<PathBuf, ServerError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if is_executable(&path) { Ok(path) } else { Err(ServerError::NotExecutable { path }) }
}

/// Places on `PATH`. Relative entries are skipped for the reason given at [`locate_embedded`].
fn on_path(path_variable: Option<&OsStr>, program: ServerProgram) -> Vec<PathBuf> {
    path_variable
        .map(|value| std::env::split_paths(value).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program.executable()))
        .collect()
}

fn first_executable(
    program: ServerProgram,
    candidates: Vec<PathBuf>,
) -> Result<PathBuf, ServerError> {
    match candidates.iter().find(|path| is_executable(path)) {
        Some(path) => Ok(path.clone()),
        None => Err(ServerError::NotFound { program: program.executable(), tried: candidates }),
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn executable(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn project_cache_above_the_executable_precedes_path() {
        let folder = TempDir::new().unwrap();
        let cached = folder.path().join(EMBEDDED_IN_PROJECT);
        executable(&cached, 0o755);
        let bin = folder.path().join("bin");
        executable(&bin.join("secantusd-rs"), 0o755);
        let executable_dir = folder.path().join("target/release");
        let mut search = EmbeddedSearch {
            executable_dir: Some(&executable_dir),
            path_variable: Some(bin.as_os_str()),
            ..EmbeddedSearch::default()
        };
        assert_eq!(locate_embedded(&search).unwrap(), cached);
        search.executable_dir = None;
        assert_eq!(locate_embedded(&search).unwrap(), bin.join("secantusd-rs"));
    }

    #[test]
    fn router_next_to_the_server_is_preferred_to_path() {
        let folder = TempDir::new().unwrap();
        let (beside, path) = (folder.path().join("a"), folder.path().join("b"));
        executable(&path.join("mongos"), 0o755);
        let find = || locate_mongos(None, &beside.join("mongod"), Some(path.as_os_str()));
        assert_eq!(find().unwrap(), path.join("mongos"));
        executable(&beside.join("mongos"), 0o755);
        assert_eq!(find().unwrap(), beside.join("mongos"));
    }

    #[test]
    fn named_file_that_cannot_run_is_not_replaced() {
        let folder = TempDir::new().unwrap();
        let bin = folder.path().join("bin");
        executable(&bin.join("mongod"), 0o755);
        let named = folder.path().join("mongod");
        executable(&named, 0o644);
        let places =
            MongodSearch { path_variable: Some(bin.as_os_str()), ..MongodSearch::default() };
        let error = locate_mongod(named.to_str(), &places).unwrap_err();
        assert!(matches!(&error, ServerError::NotExecutable { path } if *path == named));
        assert!(error.hint().unwrap().contains("chmod"));
    }

    #[test]
    fn missing_server_gets_searched_paths_and_a_hint() {
        let error = locate_embedded(&EmbeddedSearch {
            path_variable: Some(OsStr::new("/nowhere/bin:relative")),
            ..EmbeddedSearch::default()
        })
        .unwrap_err();
        let ServerError::NotFound { program, tried } = &error else { panic!("{error:?}") };
        let place = PathBuf::from("/nowhere/bin/secantusd-rs");
        assert_eq!((*program, &tried[..]), ("secantusd-rs", &[place][..]));
        assert!(error.hint().unwrap().contains("`scripts/setup.sh embedded`"));
        let error = locate_mongod(None, &MongodSearch::default()).unwrap_err();
        assert!(error.to_string().contains("`PATH`"));
        assert!(error.hint().unwrap().contains("`dyno server install`"));
        let nowhere = choose(&MongodSearch::default(), &EmbeddedSearch::default());
        let error = nowhere.unwrap_err();
        assert!(matches!(error, ServerError::NoServer));
        let hint = error.hint().unwrap();
        for way in ["dyno server install", "--mongod PATH", "--uri", "embedded"] {
            assert!(hint.contains(way), "{hint}");
        }
    }

    #[test]
    fn named_servers_come_first_and_mongod_before_embedded() {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (named, found) = (at("named/mongod"), at("bin/mongod"));
        executable(&named, 0o755);
        executable(&found, 0o755);
        executable(&at("data/servers/7.0.14/bin/mongod"), 0o755);
        let note = r#"{"version": "7.0.14", "edition": "community", "source": "", "sha256": "",
            "licence": "", "installed_at": ""}"#;
        fs::write(at("data/servers/7.0.14/origin.json"), note).unwrap();
        let embedded_program = at("embedded/secantusd-rs");
        executable(&embedded_program, 0o755);
        let (bin, embedded_bin) = (at("bin"), at("embedded"));
        let data = at("data");
        let installed = InstalledServers::new(Some(&data));
        let mut mongod = MongodSearch {
            named: named.to_str(),
            path_variable: Some(bin.as_os_str()),
            installed: Some(&installed),
        };
        let mut embedded = EmbeddedSearch {
            explicit: Some(&embedded_program),
            executable_dir: None,
            path_variable: Some(embedded_bin.as_os_str()),
        };
        let program = |chosen: ServerChoice| match chosen {
            ServerChoice::Mongod(mongod) => (mongod.program, mongod.name),
            ServerChoice::Embedded(program) => (program, "embedded".to_owned()),
        };
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let chosen = program(choose(&mongod, &embedded).unwrap());
        assert_eq!(chosen, (named.clone(), text(&named)));
        mongod.named = Some("7.0.14");
        let chosen = program(choose(&mongod, &embedded).unwrap());
        let of_version = at("data/servers/7.0.14/bin/mongod");
        assert_eq!(chosen, (of_version.clone(), "7.0.14".to_owned()));
        mongod.named = None;
        let chosen = program(choose(&mongod, &embedded).unwrap());
        assert_eq!(chosen, (embedded_program.clone(), "embedded".to_owned()));
        embedded.explicit = None;
        let chosen = program(choose(&mongod, &embedded).unwrap());
        assert_eq!(chosen, (found.clone(), text(&found)));
        mongod.path_variable = None;
        let chosen = program(choose(&mongod, &embedded).unwrap());
        assert_eq!(chosen, (of_version, "7.0.14".to_owned()));
        mongod.installed = None;
        let chosen = program(choose(&mongod, &embedded).unwrap());
        assert_eq!(chosen, (embedded_program.clone(), "embedded".to_owned()));
        mongod.named = Some("8.0.4");
        let error = choose(&mongod, &embedded).unwrap_err();
        assert!(matches!(error, ServerError::NotInstalled { .. }), "{error}");
    }
}
