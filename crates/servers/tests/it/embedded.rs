//! The life of the real embedded server: start, use, stop, and what is left after our death.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::units::{Bytes, Span};
use dyno_servers::{DataDir, EMBEDDED_VERSION, ServerError, ServerOptions, start};
use dyno_testkit::{embedded_program, or_skip};
use tempfile::TempDir;

/// Name of the test below that is run as a process of its own, and the variable that arms it.
const HOLDER_TEST: &str = "embedded::helper_that_holds_a_server";
const HOLDER_FOLDER: &str = "DYNO_TEST_HOLDER_FOLDER";
const HOLDER_KEEPS: &str = "DYNO_TEST_HOLDER_KEEPS";

fn options(program: PathBuf, data_dir: DataDir, folder: &Path) -> ServerOptions {
    let plan = ServerPlan {
        kind: ServerKind::Embedded,
        cache: Some(Bytes(64 << 20)),
        ..ServerPlan::default()
    };
    ServerOptions::from_plan(&plan, program, data_dir, folder.join("logs/server.log")).unwrap()
}

fn is_refused(address: SocketAddr) -> bool {
    matches!(TcpStream::connect(address), Err(error) if error.kind() == ErrorKind::ConnectionRefused)
}

fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "waited too long for: {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_starts_with_its_settings_and_leaves_nothing_after_its_stop() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("deep/data");
    let mut options = options(program, DataDir::Temporary(data.clone()), folder.path());
    options.block_compressor = Some("zlib".into());
    options.checkpoint_interval = Some(Span::from_secs(5));
    options.sync_on_commit = true;
    let mut server = start(&options, &|| false).unwrap();

    assert!(server.address().ip().is_loopback());
    drop(TcpStream::connect(server.address()).unwrap());
    assert_eq!(server.version(), EMBEDDED_VERSION);
    assert_eq!(server.settings()["cache_bytes"], (64 << 20).to_string());
    assert_eq!(server.settings()["block_compressor"], "zlib");
    assert_eq!(server.data_dir(), data);
    assert!(data.join("WiredTiger").exists());
    assert!(
        server.log_tail(1)[0].contains("listening on"),
        "{:?}",
        server.log_tail(1)
    );
    assert_eq!(server.exit_status().unwrap(), None);
    let command = fs::read_to_string(format!("/proc/{}/cmdline", server.pid())).unwrap();
    assert!(command.contains("--block-compressor\0zlib\0"), "{command}");

    let (address, process) = (server.address(), server.pid());
    let stopped = server.stop().unwrap();
    assert!(stopped.status.success() && !stopped.killed && !stopped.ended_early);
    assert!(is_refused(address));
    assert!(!exists(process));
    assert!(!data.exists());
    let left: Vec<_> = fs::read_dir(folder.path().join("logs")).unwrap().collect();
    assert_eq!(left.len(), 1, "the log alone is left: {left:?}");
}

#[test]
fn dropping_it_stops_it_as_well() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = start(
        &options(program, DataDir::Temporary(data.clone()), folder.path()),
        &|| false,
    )
    .unwrap();
    let (address, process) = (server.address(), server.pid());
    drop(server);
    assert!(is_refused(address) && !exists(process) && !data.exists());
}

#[test]
fn a_kept_folder_survives_and_is_opened_again() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let options = options(program, DataDir::Kept(data.clone()), folder.path());
    for _ in 0..2 {
        let stopped = start(&options, &|| false).unwrap().stop().unwrap();
        assert!(stopped.status.success());
        assert!(data.join("secantus_collections.wt").exists());
    }
}

#[test]
fn a_taken_port_is_named() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let data = folder.path().join("data");
    let mut options = options(program, DataDir::Temporary(data.clone()), folder.path());
    options.port = taken.local_addr().unwrap().port();
    let error = start(&options, &|| false).unwrap_err();
    assert!(
        matches!(error, ServerError::PortInUse { port, .. } if port == options.port),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!("port {} of 127.0.0.1 is in use", options.port)
    );
    assert!(error.hint().unwrap().contains("port"));
    assert!(!data.exists());
}

#[test]
fn a_data_folder_that_another_server_has_open_is_named_with_that_process() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let data = DataDir::Kept(folder.path().join("data"));
    let first = start(
        &options(program.clone(), data.clone(), folder.path()),
        &|| false,
    )
    .unwrap();
    let error = start(&options(program, data.clone(), folder.path()), &|| false).unwrap_err();
    let ServerError::DataDirInUse { path, process } = &error else {
        panic!("unexpected {error:?}");
    };
    assert_eq!((path.as_path(), *process), (data.path(), Some(first.pid())));
    assert!(
        error
            .to_string()
            .ends_with(&format!("is in use by process {}", first.pid()))
    );
    // The first one is not disturbed.
    drop(TcpStream::connect(first.address()).unwrap());
}

#[test]
fn a_temporary_folder_with_files_and_a_kept_one_with_other_files_are_refused_untouched() {
    let Some(program) = or_skip(embedded_program()) else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let thesis = folder.path().join("data/thesis.tex");
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(&thesis, "years of work").unwrap();
    let data = folder.path().join("data");
    let refused = |data_dir| {
        start(&options(program.clone(), data_dir, folder.path()), &|| {
            false
        })
        .unwrap_err()
    };
    let error = refused(DataDir::Temporary(data.clone()));
    assert!(
        matches!(error, ServerError::TemporaryNotEmpty { .. }),
        "{error:?}"
    );
    let error = refused(DataDir::Kept(data));
    assert!(
        matches!(
            error,
            ServerError::ForeignDataDir {
                found: "other files",
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(fs::read_to_string(thesis).unwrap(), "years of work");
}

#[test]
fn settings_in_the_environment_do_not_reach_it() {
    let Some(holder) = Holder::start(false, &[("SECANTUS_DISABLE_OPLOG", "1")]) else {
        return;
    };
    let environment = fs::read(format!("/proc/{}/environ", holder.server)).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains(HOLDER_FOLDER), "{environment}");
    assert!(
        !environment.contains("SECANTUS_DISABLE_OPLOG"),
        "{environment}"
    );
}

#[test]
fn nothing_is_left_after_we_are_killed() {
    let Some(mut holder) = Holder::start(false, &[]) else {
        return;
    };
    assert!(holder.data().exists() && exists(holder.server) && !is_refused(holder.address));
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    wait_for("the end of the server", || !exists(holder.server));
    wait_for("the folder to go", || !holder.data().exists());
    assert!(is_refused(holder.address));
}

#[test]
fn a_kept_folder_gets_a_last_checkpoint_after_we_are_killed() {
    let Some(mut holder) = Holder::start(true, &[]) else {
        return;
    };
    // The storage engine replaces this file with each checkpoint. Its time tells the old from the new one, once the
    // clock of the file system has moved on; its number does not, because a freed number is given out again.
    let checkpoint = holder.data().join("WiredTiger.turtle");
    let written = || fs::metadata(&checkpoint).unwrap().modified().unwrap();
    let before = written();
    std::thread::sleep(Duration::from_millis(50));
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    wait_for("the end of the server", || !exists(holder.server));
    assert!(is_refused(holder.address));
    assert!(written() > before, "no checkpoint since {before:?}");
}

/// A process that has started a server and waits.
struct Holder {
    process: Child,
    server: u32,
    address: SocketAddr,
    folder: TempDir,
}

impl Holder {
    fn start(keeps: bool, environment: &[(&str, &str)]) -> Option<Holder> {
        or_skip(embedded_program())?;
        let folder = TempDir::new().unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", HOLDER_TEST, "--ignored", "--nocapture"])
            .env(HOLDER_FOLDER, folder.path())
            .env(HOLDER_KEEPS, keeps.to_string())
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let line = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap)
            .find_map(|line| line.split_once("holding ").map(|(_, rest)| rest.to_owned()))
            .expect("the helper starts its server");
        let (server, address) = line.split_once(' ').unwrap();
        Some(Holder {
            server: server.parse().unwrap(),
            address: address.parse().unwrap(),
            process,
            folder,
        })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The folder must outlive the server that writes to it.
        wait_for("the end of the server", || !exists(self.server));
    }
}

#[test]
#[ignore = "a helper process, started by other tests"]
#[allow(clippy::print_stdout, reason = "the other process reads it")]
fn helper_that_holds_a_server() {
    let folder = PathBuf::from(std::env::var_os(HOLDER_FOLDER).expect("started by another test"));
    let data = folder.join("data");
    let data_dir = match std::env::var(HOLDER_KEEPS).unwrap().as_str() {
        "true" => DataDir::Kept(data),
        _ => DataDir::Temporary(data),
    };
    let program = embedded_program().unwrap();
    let server = start(&options(program, data_dir, &folder), &|| false).unwrap();
    println!("holding {} {}", server.pid(), server.address());
    // Until the other process ends or kills us.
    let _ = std::io::stdin().read(&mut [0]);
}
