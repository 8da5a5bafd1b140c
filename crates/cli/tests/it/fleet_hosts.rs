//! A controller, two servers and three clients on hosts made of namespaces: real Ansible, SSH and Redis, and the embedded server.
//! Successful runs are complete, failures are named, and no host keeps any files. Needs root.
mod disks;
mod secured;
mod several;
mod watched;

use crate::common::{Bench, Finished, LIMIT, names, processes_with, wait_for};
use dyno_testkit::{Skip, embedded_program, mongod_program, or_skip};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const CLIENTS: [&str; 3] = ["client1", "client2", "client3"];
const SERVERS: [&str; 2] = ["server1", "server2"];
const PASSWORD: &str = "a-password-of-tests";
/// Parent of the run directories on a host.
const PLACE: &str = "/var/tmp";

const PLAN: &str = r#"
base = "a"
name = "many"
[data]
records = 3001
[client]
clients = 12
[schedule]
kind = "constant"
rate_per_s = 900
[phases]
warmup = "1s"
duration = "8s"
[fleet]
clients = ["clients"]
servers = ["servers"]
mapping = "all-to-all"
lease = "10s"
"#;

/// One test at a time: the machine has few CPUs, and each test has many processes.
static ONE: Mutex<()> = Mutex::new(());

fn project() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().unwrap()
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Hosts and a Redis, removed when this value is dropped.
struct Hosts {
    folder: PathBuf,
    bench: Bench,
    redis: Child,
    _one: MutexGuard<'static, ()>,
}

impl Hosts {
    /// The same with a real `mongod`, returned by its path.
    fn with_mongod(name: &str) -> Option<(Self, String)> {
        let mongod = or_skip(mongod_program())?;
        Some((Hosts::up(name)?, mongod.display().to_string()))
    }

    /// `None` with a printed reason if the hosts cannot be created.
    fn up(name: &str) -> Option<Self> {
        let is_root = nix::unistd::Uid::effective().is_root();
        let needs = |holds: bool, what: &'static str, remedy: &'static str| {
            or_skip(holds.then_some(()).ok_or_else(|| Skip::new(what, remedy)))
        };
        needs(is_root, "no root", "run as root")?;
        let ansible = project().join(".cache/python/bin/ansible-playbook");
        let programs = ["/usr/sbin/sshd", "/usr/bin/redis-server"].map(Path::new);
        let is_there = ansible.exists() && programs.iter().all(|program| program.exists());
        let what = "no Ansible, `sshd` or `redis-server`";
        needs(is_there, what, "run `scripts/setup.sh test`")?;
        or_skip(embedded_program())?;
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = std::env::temp_dir().join(format!("dyno-fleet-{}-{name}", std::process::id()));
        let hosts = [&CLIENTS[..], &SERVERS].concat();
        let output = script(&folder, "up", &hosts);
        assert!(output.status.success(), "{}", text(&output));
        let address = std::fs::read_to_string(folder.join("controller")).unwrap();
        let bench = Bench::new();
        let url = format!("redis://:{PASSWORD}@{}:6379", address.trim());
        std::fs::write(bench.path("redis-url"), url).unwrap();
        std::fs::write(bench.path("many.toml"), PLAN).unwrap();
        // The copies for five hosts have no symbols.
        let program = bench.path("dyno");
        let mut strip = Command::new("strip");
        strip.arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_dyno"));
        assert!(strip.status().unwrap().success());
        Some(Hosts { redis: redis(address.trim()), folder, bench, _one: one })
    }

    fn ssh(&self, host: &str, command: &str) -> Output {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.folder.join("ssh_config"));
        ssh.args([host, command]).output().unwrap()
    }

    /// Starts `dyno fleet VERB` with the plan of these tests and leaves it running.
    fn spawn(&self, verb: &str, more: &[&str]) -> Child {
        let words = [&[verb, "many.toml"], more].concat();
        self.command(&words).spawn().unwrap()
    }

    /// `dyno fleet` on these hosts.
    fn command(&self, more: &[&str]) -> Command {
        let inventory = self.folder.join("inventory.yml").display().to_string();
        let (verb, more) = more.split_first().unwrap();
        let fixed = ["fleet", verb, "--inventory", &inventory, "--insecure-redis"];
        let mut command =
            self.bench.command_of(&self.bench.path("dyno"), &[&fixed[..], more].concat());
        let path = std::env::var("PATH").unwrap_or_default();
        let ansible = project().join(".cache/python/bin");
        command
            // Fake programs of a test take precedence.
            .env(
                "PATH",
                format!("{}:{}:{path}", self.bench.path("listening").display(), ansible.display()),
            )
            .env("DYNO_REDIS_FILE", self.bench.path("redis-url"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, verb: &str, more: &[&str]) -> Finished {
        Finished::from(self.spawn(verb, more).wait_with_output().unwrap())
    }

    /// Waits until the load runs.
    fn wait_for_load(&self, run: &Path, child: &mut Child) {
        crate::common::wait_for_windows(child, run, 4);
    }

    /// Checks that no run data is left on the hosts, in Redis, or in files of this machine.
    fn assert_clean(&self) {
        assert_eq!(self.redis_says(&["KEYS", "*"]), "", "keys are left");
        self.assert_clean_but_redis();
    }

    fn redis_says(&self, command: &[&str]) -> String {
        let mut client = Command::new("redis-cli");
        client.env("REDISCLI_AUTH", PASSWORD).args(["-h", &self.address()]);
        let output = client.args(command).output().unwrap();
        text(&output).trim().to_owned()
    }

    /// Checks that keys expire if a host writes them after the end of its run.
    fn assert_keys_expire(&self) {
        for key in self.redis_says(&["KEYS", "*"]).lines() {
            let left_s: i64 = self.redis_says(&["TTL", key]).parse().unwrap();
            assert!(left_s != -1 && left_s <= 60, "{key}: {left_s}");
        }
    }

    /// The same check with servers of others still running.
    fn assert_clean_of_runs(&self) {
        assert_eq!(self.redis_says(&["KEYS", "*"]), "", "keys are left");
        for host in CLIENTS.iter().chain(&SERVERS) {
            let look = format!("ls -d {PLACE}/dyno-* 2>/dev/null; pgrep -f '[d]yno agent'");
            let left = self.ssh(host, &look);
            assert_eq!(left.status.code(), Some(1), "{host}: {}", text(&left));
            assert_eq!(text(&left), "", "{host}");
        }
    }

    fn assert_clean_but_redis(&self) {
        for host in CLIENTS.iter().chain(&SERVERS) {
            let output = self.ssh(host, &format!("ls {PLACE}; pgrep -l 'dyno|secantusd'"));
            let left = text(&output);
            // Exit status of `pgrep`; any other status means that the check itself failed.
            assert!(matches!(output.status.code(), Some(0 | 1)), "{host}: {left}");
            assert!(!left.contains("dyno") && !left.contains("secantusd"), "{host}: {left}");
        }
        let left = names(self.bench.folder.path());
        assert!(!left.iter().any(|name| name.starts_with("dyno-fleet")), "{left:?}");
    }

    fn address(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("controller")).unwrap();
        text.trim().to_owned()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = self.redis.kill();
        let _ = self.redis.wait();
        script(&self.folder, "down", &[]);
    }
}

fn script(folder: &Path, verb: &str, names: &[&str]) -> Output {
    let mut command = Command::new(project().join("scripts/namespaces.sh"));
    command.arg(verb).arg(folder).args(names).output().unwrap()
}

/// A Redis at an address that the hosts reach.
fn redis(address: &str) -> Child {
    let mut child = Command::new("redis-server")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let settings = format!(
        "port 6379\nbind {address}\nrequirepass {PASSWORD}\nsave \"\"\nappendonly no\nloglevel warning\n"
    );
    let mut input = child.stdin.take().unwrap();
    input.write_all(settings.as_bytes()).unwrap();
    drop(input);
    wait_for("redis", || std::net::TcpStream::connect((address, 6379)).is_ok());
    child
}

fn document(run: &Path) -> Value {
    let text = std::fs::read_to_string(run.join("run.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn phase<'a>(phases: &'a Value, name: &str) -> &'a Value {
    phases.as_array().unwrap().iter().find(|phase| phase["name"] == name).unwrap()
}

/// Files below a folder that contain a text.
fn files_with(folder: &Path, wanted: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, wanted));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(wanted) {
            found.push(path);
        }
    }
    found
}

/// A figure in one phase, summed over all agents.
fn sum(document: &Value, name: &str, figure: &str) -> u64 {
    let figures = document["fleet"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| phase(&agent["phases"], name).pointer(figure).unwrap());
    figures.map(|figure| figure.as_u64().unwrap()).sum()
}

#[test]
fn three_clients_load_two_servers_as_one() {
    let Some(hosts) = Hosts::up("whole") else {
        return;
    };
    let run = hosts.bench.path("whole");
    let mut child = hosts.spawn("run", &["--out", "whole", "--host-logs", "logs", "--full"]);
    hosts.wait_for_load(&run, &mut child);
    // All agents run now, on all hosts.
    assert!(!processes_with("--remove-folder").is_empty());
    let secret = processes_with(PASSWORD);
    assert!(secret.is_empty(), "{secret:?}");
    let mode = hosts.ssh("client1", &format!("stat -c %a {PLACE}/dyno-*/redis-url"));
    assert_eq!(text(&mode).trim(), "400");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(0);
    assert!(ended.stdout.contains("agent 2 on client3"), "{}", ended.stdout);
    let document = document(&run);
    assert!(crate::common::run_schema().is_valid(&document));
    assert_eq!(document["status"], "complete", "{document}");
    let fleet = &document["fleet"];
    assert_eq!(fleet["agents"].as_array().unwrap().len(), 3);
    assert_eq!(fleet["servers"].as_array().unwrap().len(), 2);
    // Every client host was checked.
    for agent in fleet["agents"].as_array().unwrap() {
        let verdicts = agent["environment"]["doctor"].as_array();
        let verdicts = verdicts.unwrap_or_else(|| panic!("{agent}"));
        assert!(!verdicts.is_empty(), "{agent}");
        for verdict in verdicts {
            let is_said = |key: &str| verdict[key].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_said("check") && is_said("level") && is_said("found"), "{verdict}");
        }
    }
    // The merged result is the sum of the agents' own records, in each phase.
    for name in ["load", "warmup", "measure"] {
        let merged = phase(&document["phases"], name);
        for figure in ["/succeeded", "/failed"] {
            let all = merged.pointer(figure).unwrap().as_u64().unwrap();
            assert_eq!(sum(&document, name, figure), all, "{name} {figure}");
        }
        let operations = merged["operations"].as_object().unwrap();
        for (operation, figures) in operations {
            let count = format!("/operations/{operation}/count");
            assert_eq!(sum(&document, name, &count), figures["count"].as_u64().unwrap());
        }
    }
    // Each document is loaded once on each of the independent servers.
    assert_eq!(document["server"]["documents"], 2 * 3001);
    let measure = phase(&document["phases"], "measure");
    let rate = measure["achieved_rate_per_s"].as_f64().unwrap();
    assert!((rate - 900.0).abs() < 45.0, "{rate}");
    assert!(fleet["common_intervals"].as_u64().unwrap() >= 6, "{fleet}");
    // For the laws, the servers of both hosts are one resource.
    let used = document["resources"].as_array().unwrap().iter();
    let mut used = used.filter(|one| one["phase"] == "measure");
    let server = used.next().unwrap_or_else(|| panic!("{document}"));
    assert_eq!(server["resource"], "server_cpu");
    let cpus = |server: &Value| server["cpus"].as_u64().unwrap();
    let all: u64 = fleet["servers"].as_array().unwrap().iter().map(cpus).sum();
    assert_eq!(server["units"], all);
    let number = |name: &str| server[name].as_f64().unwrap();
    let most_s = all as f64 * number("duration_s");
    assert!((0.01..most_s).contains(&number("busy_s")), "{server}");
    let fleet_caveats = |caveat: &&Value| caveat["kind"] == "fleet";
    assert_eq!(
        document["caveats"].as_array().unwrap().iter().filter(fleet_caveats).count(),
        0,
        "{document}"
    );
    assert_hosts_are_watched(&run, &document);
    assert!(run.join("report.html").is_file());
    let logs = names(&hosts.bench.path("logs"));
    assert!(logs.contains(&"client1-agent-0.log".to_owned()), "{logs:?}");
    hosts.assert_clean();
    for folder in ["whole", "logs", "state"] {
        let reported = files_with(&hosts.bench.path(folder), PASSWORD);
        assert!(reported.is_empty(), "{reported:?}");
    }
}

/// Checks that every host was read by its agent during the run.
fn assert_hosts_are_watched(run: &Path, document: &Value) {
    let (tables, _) = dyno_record::metrics::read(run).unwrap();
    let sources = document["sources"].as_array().unwrap().iter();
    let of_agents: Vec<&Value> = sources.filter(|source| source["kind"] == "agent").collect();
    assert_eq!(of_agents.len(), CLIENTS.len() + SERVERS.len());
    let of_kind = |kind: &str| {
        document["sources"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|source| source["kind"] == kind)
            .count()
    };
    assert_eq!(of_kind("server"), SERVERS.len(), "one source per server");
    let measure = phase(&document["phases"], "measure");
    let start_s = measure["start_s"].as_f64().unwrap();
    let end_s = start_s + measure["duration_s"].as_f64().unwrap();
    for host in CLIENTS.iter().chain(&SERVERS) {
        let name = format!("host-{host}");
        let source = of_agents.iter().find(|source| source["name"] == *name);
        let source = source.unwrap_or_else(|| panic!("{name}: {of_agents:?}"));
        assert_eq!(source["health"], "healthy", "{source}");
        let (readings, missed) = (&source["readings"], &source["missed"]);
        assert!(missed.as_u64() <= readings.as_u64().map(|all| all / 4), "{source}");
        assert_eq!(source["of_server"], SERVERS.contains(host), "{source}");
        let table = tables.iter().find(|table| table.source == name).unwrap();
        let inside = table.at_s.iter().filter(|at_s| (start_s..end_s).contains(at_s));
        let planned = end_s - start_s;
        assert!(inside.count() as f64 > planned / 2.0, "{name}: {:?}", table.at_s);
        let process = if SERVERS.contains(host) {
            "process.server.cpu_ratio"
        } else {
            "process.client.cpu_ratio"
        };
        for metric in ["cpu.all.busy_ratio", process] {
            let id = dyno_record::metrics::MetricId::parse(metric).unwrap();
            assert!(table.column(&id).is_some(), "{name} has no {metric}");
        }
    }
}

#[test]
fn killed_client_is_named_and_the_others_continue() {
    let Some(hosts) = Hosts::up("killed") else {
        return;
    };
    let run = hosts.bench.path("killed");
    let mut child = hosts.spawn("run", &["--out", "killed", "--duration", "15s"]);
    hosts.wait_for_load(&run, &mut child);
    let kill = format!("kill -KILL $(cat {PLACE}/dyno-*/agent-1.pid)");
    assert!(hosts.ssh("client2", &kill).status.success());
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(3);
    assert!(ended.stderr.contains("agent 1 on `client2`"), "{}", ended.stderr);
    let document = document(&run);
    assert_eq!(document["status"], "failed");
    let lost = &document["fleet"]["agents"][1];
    assert!(lost["lost"].as_str().unwrap().contains("silent"), "{lost}");
    let share = lost["share"].as_str().unwrap();
    for part in ["4 clients", "server 0", "300"] {
        assert!(share.contains(part), "{share}");
    }
    // The other agents continued to the end.
    let measure = phase(&document["phases"], "measure");
    assert!(measure["duration_s"].as_f64().unwrap() > 14.0, "{measure}");
    assert_eq!(phase(&document["fleet"]["agents"][0]["phases"], "measure")["failed"], 0);
    let caveats = document["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|caveat| caveat["kind"] == "fleet"), "{caveats:?}");
    hosts.assert_clean();
}

#[test]
fn disconnected_server_host_ends_the_run_and_cleans_up() {
    let Some(hosts) = Hosts::up("cut") else {
        return;
    };
    let run = hosts.bench.path("cut");
    let mut child = hosts.spawn("run", &["--out", "cut", "--duration", "60s"]);
    hosts.wait_for_load(&run, &mut child);
    let began = Instant::now();
    assert!(script(&hosts.folder, "cut", &["server2"]).status.success());
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(3);
    // A host may stall for half a minute, and each query to it may wait as long.
    assert!(began.elapsed() < 2 * LIMIT, "{:?}", began.elapsed());
    ended.says("on `server2`").says("silent");
    assert_eq!(document(&run)["status"], "failed");
    assert!(script(&hosts.folder, "mend", &["server2"]).status.success());
    wait_for("the end of the server", || {
        let left = hosts.ssh("server2", &format!("ls -d {PLACE}/dyno-*; pgrep secantusd"));
        left.status.code() == Some(1) && left.stdout.is_empty()
    });
    hosts.assert_clean_but_redis();
    hosts.assert_keys_expire();
}

#[test]
fn controller_cleans_up_when_interrupted_or_killed() {
    let Some(hosts) = Hosts::up("ended") else {
        return;
    };
    let mut child = hosts.spawn("run", &["--out", "interrupted", "--duration", "60s"]);
    hosts.wait_for_load(&hosts.bench.path("interrupted"), &mut child);
    crate::common::signal(&child, "INT");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(130);
    ended.says("interrupted`");
    assert_eq!(document(&hosts.bench.path("interrupted"))["status"], "partial");
    hosts.assert_clean();

    let mut child = hosts.spawn("run", &["--out", "killed", "--duration", "60s"]);
    hosts.wait_for_load(&hosts.bench.path("killed"), &mut child);
    crate::common::signal(&child, "KILL");
    child.wait().unwrap();
    for host in CLIENTS.iter().chain(&SERVERS) {
        wait_for("the end of all agents", || {
            let left = hosts.ssh(host, &format!("ls -d {PLACE}/dyno-*; pgrep 'dyno|secantusd'"));
            left.status.code() == Some(1) && left.stdout.is_empty()
        });
    }
    hosts.assert_keys_expire();
}

#[test]
fn unreachable_host_is_named_before_the_load_phase() {
    let Some(hosts) = Hosts::up("away") else {
        return;
    };
    assert!(script(&hosts.folder, "cut", &["client3"]).status.success());
    let ended = hosts.run("run", &["--out", "away"]).expect(3);
    assert!(ended.stderr.contains("`client3`"), "{}", ended.stderr);
    assert!(!hosts.bench.path("away").exists());
    assert!(script(&hosts.folder, "mend", &["client3"]).status.success());
    hosts.assert_clean();
}
