//! Life cycle of one server: folder, start, readiness, stop, cleanup.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use dyno_plan::uri::Host;
use nix::sys::signal::Signal;

use crate::address;
use crate::child_guard::{ChildGuard, POLL_INTERVAL, SpawnFailure, Stopped};
use crate::command_line::{self, CommandLine, HIDDEN_SETTINGS, Launch};
use crate::diagnose::{self, Cause};
use crate::installed::command_for;
use crate::log::Log;
use crate::memory_file::MemoryFile;
use crate::placement::PreparedPlacement;
use crate::version::{Program, program_version};
use crate::watchdog::Watchdog;
use crate::{DataDir, ServerError, ServerOptions, ServerProgram};

/// Lines of output in an error.
const ERROR_TAIL_LINES: usize = 12;

/// Another process can take a free port between our check and the start of the server.
const PORT_ATTEMPTS: u32 = 5;

/// Pause between two starts on the same port.
const PORT_PAUSE: Duration = Duration::from_millis(200);

/// Limit of connecting to our own address; a listening socket answers at once.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// A server that accepts connections. Dropping it stops it like [`stop`](RunningServer::stop).
#[derive(Debug)]
pub struct RunningServer {
    /// Dropped before `data_dir` and `watchdog`: the folder belongs to the process while it lives.
    guard: ChildGuard,
    data_dir: PreparedDir,
    log: Log,
    kind: ServerProgram,
    address: SocketAddr,
    public: String,
    version: String,
    settings: BTreeMap<String, String>,
    stop_limit: Duration,
    stopped: bool,
}

/// Starts a server and waits until it accepts connections.
///
/// `interrupted` is called every few milliseconds; when it returns `true`, the server is killed. On
/// an error only the log file is left behind.
///
/// # Errors
/// Any variant of [`ServerError`] except those of locating a program.
pub fn start(
    options: &ServerOptions,
    interrupted: &dyn Fn() -> bool,
) -> Result<RunningServer, ServerError> {
    // Before running a program, which may not even exist.
    command_line::check(options)?;
    let program = program_version(options.kind, &options.program)?;
    check(options, &program)?;
    let version = program.version;
    let mut log = Log::create(&options.log_path)?;
    let mut data_dir = PreparedDir::new(options)?;
    let most = match options.port {
        0 => PORT_ATTEMPTS,
        _ => 1,
    };
    let (guard, port, settings) =
        attempts(most, options, &version, &mut data_dir, &mut log, interrupted)?;
    Ok(RunningServer {
        guard,
        data_dir,
        log,
        kind: options.kind,
        address: (address::local(options.kind, options.listen), port).into(),
        public: address::public(options),
        version,
        settings,
        stop_limit: options.stop_limit,
        stopped: false,
    })
}

/// Checks of [`start`] that create nothing, for a program with a known version and checked
/// settings.
pub(crate) fn check(options: &ServerOptions, program: &Program) -> Result<(), ServerError> {
    command_line::check_version(options, program)?;
    check_folder(options).map(drop)
}

impl RunningServer {
    /// Where this machine reaches it: on loopback if it listens there.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients and members of its deployment reach it.
    pub fn host(&self) -> Host {
        Host::Tcp { host: self.public.clone(), port: self.address.port() }
    }

    /// Asks the process to end, and kills it after the limit; its data stays for
    /// [`resume`](RunningServer::resume).
    ///
    /// # Errors
    /// [`ServerError::Stop`] if the process cannot be signalled.
    pub(crate) fn pause(&mut self) -> Result<Stopped, ServerError> {
        let process = self.pid();
        let stopped = self.guard.stop(self.stop_limit);
        stopped.map_err(|source| ServerError::Stop { process, source })
    }

    /// Restarts a process after a pause on the same data with other options, such as another
    /// address. Program, data folder and log stay the same.
    ///
    /// # Errors
    /// The errors of [`start`].
    pub(crate) fn resume(
        &mut self,
        options: &ServerOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), ServerError> {
        let (guard, port, settings) = attempts(
            PORT_ATTEMPTS,
            options,
            &self.version,
            &mut self.data_dir,
            &mut self.log,
            interrupted,
        )?;
        self.guard = guard;
        self.address = (address::local(options.kind, options.listen), port).into();
        self.public = address::public(options);
        self.settings = settings;
        Ok(())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.guard.id()
    }

    /// Its version without prefix, such as `7.0.14`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The settings of its start, with the known defaults; `server default` if the default depends
    /// on the machine. Names end in their unit.
    pub fn settings(&self) -> &BTreeMap<String, String> {
        &self.settings
    }

    /// The last `lines` lines of its output.
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        self.log.tail(lines)
    }

    /// Absolute path of its data folder.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir.path
    }

    /// Exit status if it has ended by itself; `None` while it runs.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if the process cannot be checked.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>, ServerError> {
        let process = self.pid();
        self.guard.exit_status().map_err(|source| ServerError::Stop { process, source })
    }

    /// Asks the server to end, waits until it has written its last checkpoint and exited, kills it
    /// after the limit, and removes a temporary data folder.
    ///
    /// # Errors
    /// [`ServerError::Stop`] if the process cannot be signalled, [`ServerError::Remove`] if it has
    /// exited but its folder cannot be removed.
    pub fn stop(mut self) -> Result<Stopped, ServerError> {
        self.end()
    }

    fn end(&mut self) -> Result<Stopped, ServerError> {
        self.stopped = true;
        let ended = self.pause()?;
        self.data_dir.remove()?;
        Ok(ended)
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        if let Err(error) = self.end() {
            tracing::warn!(program = self.kind.executable(), %error, "server not stopped cleanly");
        }
    }
}

/// A data folder that is ready for the server, with its watchdog.
#[derive(Debug)]
struct PreparedDir {
    path: PathBuf,
    temporary: bool,
    empty_parent: Option<PathBuf>,
    watchdog: Watchdog,
}

impl PreparedDir {
    fn new(options: &ServerOptions) -> Result<PreparedDir, ServerError> {
        let path = check_folder(options)?;
        let prepare = ServerError::prepare(options.data_dir.path());
        let temporary = matches!(options.data_dir, DataDir::Temporary(_));
        let watchdog = Watchdog::start(
            temporary.then_some(path.as_path()),
            options.empty_parent.as_deref(),
            options.stop_limit,
        )
        .map_err(prepare)?;
        fs::create_dir_all(&path).map_err(prepare)?;
        Ok(PreparedDir { path, temporary, empty_parent: options.empty_parent.clone(), watchdog })
    }

    /// Removes a temporary folder. The process must be gone.
    fn remove(&mut self) -> Result<(), ServerError> {
        if !std::mem::take(&mut self.temporary) {
            return Ok(());
        }
        match fs::remove_dir_all(&self.path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(ServerError::Remove { path: self.path.clone(), source })
            }
            _ => {
                // Fails while other folders are in it.
                if let Some(parent) = &self.empty_parent {
                    let _ = fs::remove_dir(parent);
                }
                Ok(())
            }
        }
    }
}

impl Drop for PreparedDir {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, "temporary data folder left behind");
        }
    }
}

/// The owner of a file in a folder, if this user is root and the owner is not: files of root would
/// lock the owner out of the database, and root would follow the owner's links. Other users are
/// limited by the system.
fn foreign_owner(folder: &Path) -> Option<u32> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let entries = fs::read_dir(folder).ok()?.flatten();
    let owners = entries.filter_map(|entry| Some(entry.metadata().ok()?.uid()));
    owners.into_iter().find(|owner| *owner != 0)
}

/// The absolute path of a data folder that is empty, missing, or suitable for this kind of server.
fn check_folder(options: &ServerOptions) -> Result<PathBuf, ServerError> {
    let path = options.data_dir.path();
    let prepare = ServerError::prepare(path);
    let path = std::path::absolute(path).map_err(prepare)?;
    if let Some(owner) = foreign_owner(&path) {
        return Err(ServerError::ForeignOwner { path, owner });
    }
    let files = names_in(&path).map_err(prepare)?;
    if matches!(options.data_dir, DataDir::Temporary(_)) && !files.is_empty() {
        return Err(ServerError::TemporaryNotEmpty { path });
    }
    match foreign_content(options.kind, &files) {
        Some(found) => {
            Err(ServerError::ForeignDataDir { path, found, program: options.kind.executable() })
        }
        None => Ok(path),
    }
}

/// Names of the files in a folder; empty if it does not exist.
fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Content that makes a folder unsuitable for this kind of server. Both kinds store WiredTiger
/// files, but neither can read the other's files, and a server that tries may change them.
fn foreign_content(kind: ServerProgram, files: &[String]) -> Option<&'static str> {
    let has = |name: &str| files.iter().any(|file| file == name);
    // Exists in a fresh file system.
    if files.iter().all(|file| file == "lost+found") {
        return None;
    }
    if !has("WiredTiger") {
        return Some("other files");
    }
    match kind {
        ServerProgram::Embedded if has("_mdb_catalog.wt") => Some("a database of `mongod`"),
        ServerProgram::Mongod if has("secantus_collections.wt") => {
            Some("a database of `secantusd-rs`")
        }
        _ => None,
    }
}

/// Starts the process, repeatedly up to a limit if its port is in use. A free port that was taken
/// in between is replaced by another one; a fixed port is tried once more, because another
/// process's connection may have used it briefly.
fn attempts(
    most: u32,
    options: &ServerOptions,
    version: &str,
    data_dir: &mut PreparedDir,
    log: &mut Log,
    interrupted: &dyn Fn() -> bool,
) -> Result<(ChildGuard, u16, BTreeMap<String, String>), ServerError> {
    let mut attempts = 1;
    loop {
        log.restart();
        match attempt(options, version, data_dir, log, interrupted) {
            Err(ServerError::PortInUse { .. }) if attempts < most => {
                attempts += 1;
                if options.port != 0 {
                    std::thread::sleep(PORT_PAUSE);
                }
            }
            other => return other,
        }
    }
}

/// One start of the process, until it accepts connections.
fn attempt(
    options: &ServerOptions,
    version: &str,
    data_dir: &mut PreparedDir,
    log: &Log,
    interrupted: &dyn Fn() -> bool,
) -> Result<(ChildGuard, u16, BTreeMap<String, String>), ServerError> {
    let config = MemoryFile::new(c"empty.toml", "")
        .map_err(ServerError::prepare(Path::new("empty.toml")))?;
    let port = match (options.kind, options.port) {
        (ServerProgram::Mongod | ServerProgram::Mongos, 0) => free_port(options)?,
        (_, port) => port,
    };
    let line = command_line::command_line(
        options,
        Launch { version, data_dir: &data_dir.path, empty_config: config.path(), port },
    )?;
    let mut guard = spawn(options, &line, log)?;
    tracing::debug!(
        program = %options.program.display(),
        arguments = ?line.arguments,
        process = guard.id(),
        log = %options.log_path.display(),
        "started"
    );
    data_dir.watchdog.watch(guard.id()).map_err(ServerError::prepare(&data_dir.path))?;
    let port = wait_until_ready(options, &mut guard, log, port, &data_dir.path, interrupted)?;
    tracing::debug!(port, "accepts connections");
    Ok((guard, port, line.settings))
}

fn spawn(
    options: &ServerOptions,
    line: &CommandLine,
    log: &Log,
) -> Result<ChildGuard, ServerError> {
    let mut command = command_for(&options.program);
    command.args(&line.arguments).stdin(Stdio::null()).stdout(log.writer()?).stderr(log.writer()?);
    for name in HIDDEN_SETTINGS.split(' ') {
        command.env_remove(name);
    }
    // Kept data deserves a last checkpoint. Temporary data needs none, and a killed server is
    // certain to be gone.
    let death_signal = match options.data_dir {
        DataDir::Temporary(_) => Signal::SIGKILL,
        DataDir::Kept(_) => Signal::SIGTERM,
    };
    let placement = options.placement.as_ref().map(PreparedPlacement::new);
    ChildGuard::spawn(command, death_signal, placement).map_err(|failure| match failure {
        SpawnFailure::Placement(source) => ServerError::Placement {
            program: options.kind.executable(),
            placement: options.placement.clone().unwrap_or_default(),
            source,
        },
        SpawnFailure::Program(source) => {
            ServerError::Spawn { program: options.program.clone(), source }
        }
    })
}

/// Waits for the line in which the server names its port, and for an answer on that port. The line
/// ensures that no other process answers.
fn wait_until_ready(
    options: &ServerOptions,
    guard: &mut ChildGuard,
    log: &Log,
    asked_port: u16,
    data_dir: &Path,
    interrupted: &dyn Fn() -> bool,
) -> Result<u16, ServerError> {
    let program = options.kind.executable();
    let reached = address::local(options.kind, options.listen);
    let begin = Instant::now();
    loop {
        // The status is read before the log, so that the log of a dead process is complete.
        let status = guard
            .exit_status()
            .map_err(|source| ServerError::Stop { process: guard.id(), source })?;
        if let Some(status) = status {
            return Err(failure(options, log, status, asked_port, data_dir));
        }
        if let Some(port) = diagnose::announced_port(options.kind, &log.text())
            && TcpStream::connect_timeout(&(reached, port).into(), CONNECT_LIMIT).is_ok()
        {
            return Ok(port);
        }
        if interrupted() {
            return Err(ServerError::Interrupted { program });
        }
        if begin.elapsed() > options.start_limit {
            return Err(ServerError::NotReady {
                program,
                waited: options.start_limit,
                log_tail: log.tail(ERROR_TAIL_LINES),
            });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn failure(
    options: &ServerOptions,
    log: &Log,
    status: ExitStatus,
    port: u16,
    data_dir: &Path,
) -> ServerError {
    match diagnose::cause(&log.text()) {
        Cause::PortInUse => ServerError::PortInUse { listen: options.listen, port },
        Cause::DataDirInUse => ServerError::DataDirInUse {
            path: data_dir.to_owned(),
            process: diagnose::lock_holder(data_dir),
        },
        Cause::Other => ServerError::Exited {
            program: options.kind.executable(),
            status,
            log_tail: log.tail(ERROR_TAIL_LINES),
        },
    }
}

/// A port that is free on the advertised address. On loopback another program may use it: then the
/// start is repeated.
pub(crate) fn free_port(options: &ServerOptions) -> Result<u16, ServerError> {
    let listen = options.listen;
    TcpListener::bind((listen, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|source| ServerError::Listen { listen, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_refuses_a_data_folder_of_another_user() {
        let folder = tempfile::tempdir().unwrap();
        let plan = dyno_plan::model::ServerPlan {
            kind: dyno_plan::model::ServerKind::Mongod,
            ..Default::default()
        };
        let data_dir = DataDir::Kept(folder.path().into());
        let options =
            ServerOptions::from_plan(&plan, "/bin/server".into(), data_dir, "/log".into()).unwrap();
        assert!(check_folder(&options).is_ok());
        // Only root can change owners. An empty folder contains no database.
        if nix::unistd::geteuid().is_root() {
            let give_away =
                |path: &Path| std::os::unix::fs::chown(path, Some(65534), None).unwrap();
            give_away(folder.path());
            let file = folder.path().join("WiredTiger");
            fs::write(&file, "").unwrap();
            assert!(check_folder(&options).is_ok());
            give_away(&file);
            let refused = check_folder(&options);
            assert!(matches!(refused, Err(ServerError::ForeignOwner { owner: 65534, .. })));
        }
    }

    fn names(files: &[&str]) -> Vec<String> {
        files.iter().map(|&file| file.to_owned()).collect()
    }

    #[test]
    fn data_folder_must_be_empty_or_hold_the_same_kind_of_database() {
        let fits = |kind, files: &[&str]| foreign_content(kind, &names(files)).is_none();
        let secantus = ["WiredTiger", "WiredTiger.lock", "secantus_collections.wt"];
        let mongod = ["WiredTiger", "_mdb_catalog.wt", "mongod.lock"];
        assert!(fits(ServerProgram::Embedded, &[]));
        assert!(fits(ServerProgram::Mongod, &["lost+found"]));
        assert!(fits(ServerProgram::Embedded, &secantus));
        assert!(fits(ServerProgram::Mongod, &mongod));
        assert!(!fits(ServerProgram::Embedded, &mongod));
        assert!(!fits(ServerProgram::Mongod, &secantus));
        assert!(!fits(ServerProgram::Mongod, &["thesis.tex"]));
    }
}
