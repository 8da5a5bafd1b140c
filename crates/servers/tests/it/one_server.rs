//! Life cycle of one server, of the embedded one and of a real `mongod`: start, use, stop, and the
//! leftovers after our death.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::units::{CacheSize, Span};
use dyno_servers::{DataDir, EMBEDDED_VERSION, ServerError, ServerOptions, start};
use dyno_testkit::{Skip, embedded_program, mongod_program, or_skip};
use tempfile::TempDir;

/// Name of the test below that runs as a separate process, and the variables that enable it.
const HOLDER_TEST: &str = "one_server::helper_that_holds_a_server";
const HOLDER_FOLDER: &str = "DYNO_TEST_HOLDER_FOLDER";
const HOLDER_KEEPS: &str = "DYNO_TEST_HOLDER_KEEPS";
const HOLDER_KIND: &str = "DYNO_TEST_HOLDER_KIND";

/// Server of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Embedded,
    Mongod,
}

impl Kind {
    pub(crate) fn program(self) -> Result<PathBuf, Skip> {
        match self {
            Kind::Embedded => embedded_program(),
            Kind::Mongod => mongod_program(),
        }
    }

    /// A plan with the smallest cache.
    pub(crate) fn plan(self) -> ServerPlan {
        let kind = match self {
            Kind::Embedded => ServerKind::Embedded,
            Kind::Mongod => ServerKind::Mongod,
        };
        ServerPlan { kind, cache: Some(CacheSize::Smallest), ..ServerPlan::default() }
    }

    fn options(self, data_dir: DataDir, folder: &Path) -> Result<ServerOptions, Skip> {
        let log = folder.join("logs/server.raw.log");
        let options = ServerOptions::from_plan(&self.plan(), self.program()?, data_dir, log);
        Ok(options.unwrap())
    }

    /// A file with its list of collections.
    fn catalog(self) -> &'static str {
        match self {
            Kind::Embedded => "secantus_collections.wt",
            Kind::Mongod => "_mdb_catalog.wt",
        }
    }
}

/// Tests of both servers: each runs with the embedded one and with a real `mongod`.
macro_rules! of_both {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(#[test]
            fn $test() {
                super::$test(super::Kind::Embedded);
            })+
        }

        mod mongod {
            $(#[test]
            fn $test() {
                super::$test(super::Kind::Mongod);
            })+
        }
    };
}

of_both!(
    dropping_it_stops_it_as_well,
    a_kept_folder_survives_and_is_opened_again,
    a_taken_port_is_named,
    an_open_data_folder_is_refused_with_its_process,
    folders_with_other_files_are_refused_untouched,
    nothing_is_left_after_we_are_killed,
    a_kept_folder_gets_a_last_checkpoint_after_we_are_killed,
);

fn is_refused(address: SocketAddr) -> bool {
    matches!(TcpStream::connect(address), Err(error) if error.kind() == ErrorKind::ConnectionRefused)
}

fn exists(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited too long for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn embedded_server_starts_with_its_settings_and_stops_cleanly() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("deep/data");
    let options = Kind::Embedded.options(DataDir::Temporary(data.clone()), folder.path());
    let Some(mut options) = or_skip(options) else {
        return;
    };
    options.plan.block_compressor = Some("zlib".into());
    options.plan.checkpoint_interval = Some(Span::from_secs(5));
    options.plan.durable_writes = true;
    let mut server = start(&options, &|| false).unwrap();

    assert!(server.address().ip().is_loopback());
    drop(TcpStream::connect(server.address()).unwrap());
    assert_eq!(server.version(), EMBEDDED_VERSION);
    assert_eq!(server.settings()["cache_bytes"], (64 << 20).to_string());
    assert_eq!(server.settings()["block_compressor"], "zlib");
    assert_eq!(server.data_dir(), data);
    assert!(data.join("WiredTiger").exists());
    assert!(server.log_tail(1)[0].contains("listening on"), "{:?}", server.log_tail(1));
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
    assert_eq!(left.len(), 1, "only the log is left: {left:?}");
}

fn dropping_it_stops_it_as_well(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let options = kind.options(DataDir::Temporary(data.clone()), folder.path());
    let Some(options) = or_skip(options) else {
        return;
    };
    let server = start(&options, &|| false).unwrap();
    let (address, process) = (server.address(), server.pid());
    drop(server);
    assert!(is_refused(address) && !exists(process) && !data.exists());
}

fn a_kept_folder_survives_and_is_opened_again(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let options = kind.options(DataDir::Kept(data.clone()), folder.path());
    let Some(options) = or_skip(options) else {
        return;
    };
    for _ in 0..2 {
        let stopped = start(&options, &|| false).unwrap().stop().unwrap();
        assert!(stopped.status.success());
        assert!(data.join(kind.catalog()).exists());
    }
}

fn a_taken_port_is_named(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let data = folder.path().join("data");
    let options = kind.options(DataDir::Temporary(data.clone()), folder.path());
    let Some(mut options) = or_skip(options) else {
        return;
    };
    options.port = taken.local_addr().unwrap().port();
    let error = start(&options, &|| false).unwrap_err();
    assert!(
        matches!(error, ServerError::PortInUse { listen, port }
            if listen == options.listen && port == options.port),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("port"));
    assert!(!data.exists());
}

fn an_open_data_folder_is_refused_with_its_process(kind: Kind) {
    let folder = TempDir::new().unwrap();
    let data = DataDir::Kept(folder.path().join("data"));
    let Some(options) = or_skip(kind.options(data.clone(), folder.path())) else {
        return;
    };
    let first = start(&options, &|| false).unwrap();
    let error = start(&options, &|| false).unwrap_err();
    let ServerError::DataDirInUse { path, process } = &error else {
        panic!("unexpected {error:?}");
    };
    assert_eq!((path.as_path(), *process), (data.path(), Some(first.pid())));
    let process = first.pid().to_string();
    assert!(error.to_string().contains(&process), "{error}");
    // The first server is not disturbed.
    drop(TcpStream::connect(first.address()).unwrap());
}

fn folders_with_other_files_are_refused_untouched(kind: Kind) {
    if or_skip(kind.program()).is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let thesis = folder.path().join("data/thesis.tex");
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(&thesis, "years of work").unwrap();
    let data = folder.path().join("data");
    let refused = |data_dir| {
        let options = kind.options(data_dir, folder.path()).unwrap();
        start(&options, &|| false).unwrap_err()
    };
    let error = refused(DataDir::Temporary(data.clone()));
    assert!(matches!(error, ServerError::TemporaryNotEmpty { .. }), "{error:?}");
    let error = refused(DataDir::Kept(data));
    assert!(matches!(error, ServerError::ForeignDataDir { found: "other files", .. }), "{error:?}");
    assert_eq!(fs::read_to_string(thesis).unwrap(), "years of work");
}

#[test]
fn environment_settings_do_not_reach_the_server() {
    let Some(holder) = Holder::start(Kind::Embedded, false, &[("SECANTUS_DISABLE_OPLOG", "1")])
    else {
        return;
    };
    let environment = fs::read(format!("/proc/{}/environ", holder.server)).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains(HOLDER_FOLDER), "{environment}");
    assert!(!environment.contains("SECANTUS_DISABLE_OPLOG"), "{environment}");
}

fn nothing_is_left_after_we_are_killed(kind: Kind) {
    let Some(mut holder) = Holder::start(kind, false, &[]) else {
        return;
    };
    assert!(holder.data().exists() && exists(holder.server) && !is_refused(holder.address));
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    wait_for("the end of the server", || !exists(holder.server));
    wait_for("the folder to go", || !holder.data().exists());
    assert!(is_refused(holder.address));
}

fn a_kept_folder_gets_a_last_checkpoint_after_we_are_killed(kind: Kind) {
    let Some(mut holder) = Holder::start(kind, true, &[]) else {
        return;
    };
    // The storage engine replaces this file with each checkpoint. Once the file system's clock has
    // advanced, the file's time distinguishes the old file from the new one; its number does not,
    // because a freed number is reused.
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
    fn start(kind: Kind, keeps: bool, environment: &[(&str, &str)]) -> Option<Holder> {
        or_skip(kind.program())?;
        let folder = TempDir::new().unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", HOLDER_TEST, "--ignored", "--nocapture"])
            .env(HOLDER_FOLDER, folder.path())
            .env(HOLDER_KEEPS, keeps.to_string())
            .env(HOLDER_KIND, format!("{kind:?}"))
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
    let kind = match std::env::var(HOLDER_KIND).unwrap().as_str() {
        "Mongod" => Kind::Mongod,
        _ => Kind::Embedded,
    };
    let options = kind.options(data_dir, &folder).unwrap();
    let server = start(&options, &|| false).unwrap();
    println!("holding {} {}", server.pid(), server.address());
    // Until the other process ends or kills us.
    let _ = std::io::stdin().read(&mut [0]);
}
