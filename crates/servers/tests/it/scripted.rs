//! Programs that misbehave in every way a server can: shell scripts instead of `mongod`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dyno_plan::model::{ServerKind, ServerPlan};
use dyno_plan::units::Bytes;
use dyno_servers::placement::{AchievedPlacement, InstancePlacement, Machine};
use dyno_servers::{DataDir, ServerError, ServerOptions, start};
use dyno_testkit::{Skip, or_skip};
use tempfile::TempDir;

/// First lines of a script that poses as `mongod` when asked for its version.
const MONGOD: &str =
    "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'db version v7.0.14'; exit 0; }\n";

/// The line by which `mongod` reports that it is ready, with the port as a shell variable.
const READY: &str = r#"echo "{\"s\":\"I\",  \"c\":\"NETWORK\",  \"id\":23016,   \"ctx\":\"listener\",\"msg\":\"Waiting for connections\",\"attr\":{\"port\":$port,\"ssl\":\"off\"}}""#;

struct Scripted {
    folder: TempDir,
}

impl Scripted {
    fn new(script: &str) -> Scripted {
        let scripted = Scripted { folder: TempDir::new().unwrap() };
        fs::write(scripted.program(), script).unwrap();
        fs::set_permissions(scripted.program(), fs::Permissions::from_mode(0o755)).unwrap();
        scripted
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("mongod")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn options(&self) -> ServerOptions {
        let plan = ServerPlan { kind: ServerKind::Mongod, ..ServerPlan::default() };
        ServerOptions::from_plan(
            &plan,
            self.program(),
            DataDir::Temporary(self.data()),
            self.folder.path().join("server.log"),
        )
        .unwrap()
    }

    fn error(&self) -> ServerError {
        let error = start(&self.options(), &|| false).unwrap_err();
        assert!(!self.data().exists(), "the folder is left after {error:?}");
        error
    }
}

fn python() -> Result<(), Skip> {
    match Command::new("python3").arg("--version").output() {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Skip::new(format!("cannot run `python3`: {error}"), "run `scripts/setup.sh test`"))
        }
    }
}

fn python_listener() -> String {
    // The shell cannot listen; the port is the argument after `--port`.
    format!(
        "{MONGOD}while [ \"$1\" != --port ]; do shift; done; port=$2\n\
         python3 -c 'import socket,sys,time\n\
         s=socket.create_server((\"127.0.0.1\",int(sys.argv[1])))\n\
         time.sleep(600)' \"$port\" & listener=$!\n\
         trap 'kill $listener; exit 0' TERM\n\
         {READY}\nwait\n"
    )
}

#[test]
fn mongod_is_ready_when_its_log_and_port_say_so() {
    if or_skip(python()).is_none() {
        return;
    }
    let scripted = Scripted::new(&python_listener());
    let server = start(&scripted.options(), &|| false).unwrap();
    assert_eq!(server.version(), "7.0.14");
    assert_eq!(server.settings()["block_compressor"], "snappy");
    assert_ne!(server.address().port(), 0);
    let stopped = server.stop().unwrap();
    assert!(stopped.status.success() && !stopped.killed);
    assert!(!scripted.data().exists());
}

#[test]
fn server_runs_where_it_is_placed() {
    if or_skip(python()).is_none() {
        return;
    }
    let machine = Machine::read(Path::new("/")).unwrap();
    let last = machine.allowed_cpus.last().unwrap();
    let place: InstancePlacement = last.to_string().parse().unwrap();
    let scripted = Scripted::new(&python_listener());
    let mut options = scripted.options();
    options.placement = Some(place.clone());
    let server = start(&options, &|| false).unwrap();
    let achieved = AchievedPlacement::read(server.pid(), Path::new("/")).unwrap();
    assert_eq!(achieved.deviations(&place), []);
    drop(server);
    // Our own threads stay where they were.
    let ours = Machine::read(Path::new("/")).unwrap().allowed_cpus;
    assert_eq!(ours, machine.allowed_cpus);
}

#[test]
fn impossible_placement_is_a_placement_error() {
    let scripted = Scripted::new(MONGOD);
    let mut options = scripted.options();
    options.placement = Some("65535@default".parse().unwrap());
    let error = start(&options, &|| false).unwrap_err();
    assert!(
        matches!(
            &error,
            ServerError::Placement { program: "mongod", placement, .. }
                if Some(placement) == options.placement.as_ref()
        ),
        "{error:?}"
    );
    assert!(error.hint().unwrap().contains("unavailable"));
    assert!(!scripted.data().exists());
}

#[test]
fn server_that_exits_at_once_shows_its_status_and_log() {
    let scripted = Scripted::new(&format!(
        "{MONGOD}for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do echo garbage $i; done\n\
         echo 'error while loading shared libraries: libcrypto.so.1.1' >&2; exit 127\n"
    ));
    let error = scripted.error();
    let ServerError::Exited { program, status, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*program, status.code()), ("mongod", Some(127)));
    let text = error.to_string();
    for part in ["`mongod`", "127", "\n    garbage 14\n    error while"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("garbage 3\n"), "only the last lines are shown: {text}");
    assert!(error.hint().unwrap().contains("library"));
}

#[test]
fn server_that_is_never_ready_is_killed_after_the_limit() {
    let scripted = Scripted::new(&format!(
        "{MONGOD}echo starting; echo $$ >\"${{0%/*}}/pid\"\ntrap '' TERM\nwhile :; do sleep 1; done\n"
    ));
    let mut options = scripted.options();
    options.start_limit = Duration::from_millis(500);
    let error = start(&options, &|| false).unwrap_err();
    let ServerError::NotReady { program, waited, log_tail } = &error else { panic!("{error:?}") };
    assert_eq!((*program, *waited), ("mongod", options.start_limit));
    assert_eq!(log_tail, &["starting"]);
    let text = error.to_string();
    assert!(text.contains("0.5 s") && text.contains("\n    starting"), "{text}");
    let process = fs::read_to_string(scripted.folder.path().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(process.trim()).exists());
    assert!(!scripted.data().exists());
}

#[test]
fn ready_line_without_a_listener_is_not_believed() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let scripted = Scripted::new(&format!("{MONGOD}port={port}\n{READY}\nexec sleep 600\n"));
    let mut options = scripted.options();
    options.start_limit = Duration::from_millis(500);
    let error = start(&options, &|| false).unwrap_err();
    assert!(matches!(error, ServerError::NotReady { .. }), "{error:?}");
}

#[test]
fn interrupted_start_leaves_nothing() {
    let scripted = Scripted::new(&format!("{MONGOD}exec sleep 600\n"));
    let error = start(&scripted.options(), &|| true).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted { .. }), "{error:?}");
    assert!(!scripted.data().exists());
}

#[test]
fn port_taken_in_between_is_replaced_by_another() {
    let scripted = Scripted::new(&format!(
        "{MONGOD}while [ \"$1\" != --port ]; do shift; done\n\
         echo $2 >>\"${{0%/*}}/ports\"; echo 'SocketException: Address already in use'; exit 48\n"
    ));
    let error = scripted.error();
    assert!(matches!(error, ServerError::PortInUse { .. }), "{error:?}");
    let ports = fs::read_to_string(scripted.folder.path().join("ports")).unwrap();
    assert_eq!(ports.lines().count(), 5);

    let mut options = scripted.options();
    options.port = 27017;
    let error = start(&options, &|| false).unwrap_err();
    assert!(matches!(error, ServerError::PortInUse { port: 27017, .. }), "{error:?}");
    let ports = fs::read_to_string(scripted.folder.path().join("ports")).unwrap();
    assert_eq!(ports.lines().count(), 6, "a port that the user chose is tried once");
}

#[test]
fn second_attempt_is_judged_by_its_own_output() {
    let scripted = Scripted::new(&format!(
        "{MONGOD}mark=\"${{0%/*}}/tried\"\n\
         [ -e \"$mark\" ] && {{ echo 'no such option'; exit 2; }}\n\
         : >\"$mark\"; echo 'SocketException: Address already in use'; exit 48\n"
    ));
    let error = scripted.error();
    assert!(
        matches!(&error, ServerError::Exited { log_tail, .. } if log_tail == &["no such option"]),
        "{error:?}"
    );
}

#[test]
fn server_that_dies_in_mid_run_is_noticed() {
    if or_skip(python()).is_none() {
        return;
    }
    let scripted = Scripted::new(&python_listener());
    let mut server = start(&scripted.options(), &|| false).unwrap();
    assert_eq!(server.exit_status().unwrap(), None);
    let process = nix::unistd::Pid::from_raw(server.pid().cast_signed());
    // The whole group: the listener is a child of the script.
    nix::sys::signal::killpg(process, nix::sys::signal::Signal::SIGKILL).unwrap();
    while server.exit_status().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(server.stop().unwrap().ended_early);
    assert!(!scripted.data().exists());
}

#[test]
fn unusable_program_files_get_different_hints() {
    let scripted = Scripted::new("\u{7f}ELF but not really");
    let error = scripted.error();
    assert!(matches!(error, ServerError::Spawn { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("architecture"));

    fs::set_permissions(scripted.program(), fs::Permissions::from_mode(0o644)).unwrap();
    let error = scripted.error();
    assert!(error.hint().unwrap().contains("permissions"), "{error:?}");

    let error = Scripted::new("#!/nowhere/interpreter\n").error();
    assert!(error.hint().unwrap().contains("interpreter"), "{error:?}");
}

#[test]
fn old_and_foreign_versions_are_refused_early() {
    let error = Scripted::new("#!/bin/sh\necho 'db version v4.2.25'\n").error();
    assert!(
        matches!(&error, ServerError::OldVersion { version, .. } if version == "4.2.25"),
        "{error:?}"
    );
    let error = Scripted::new("#!/bin/sh\necho 'mongos version v7.0.14'\n").error();
    assert!(matches!(error, ServerError::UnknownVersion { .. }), "{error:?}");
}

#[test]
fn unsupported_settings_are_refused_before_anything_runs() {
    let scripted = Scripted::new("#!/bin/sh\n: >\"${0%/*}/was-run\"\n");
    let mut options = scripted.options();
    options.cache = Some(Bytes(1 << 20));
    let error = start(&options, &|| false).unwrap_err();
    assert!(matches!(error, ServerError::Setting { setting: "server.cache", .. }), "{error:?}");
    assert!(!scripted.folder.path().join("was-run").exists());
    assert!(!scripted.data().exists());
}
