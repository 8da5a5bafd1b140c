//! `dyno fleet run --kubernetes` with a fake `kubectl`: it starts applied objects on this machine, with the environment and names
//! of the manifests. Not tested on a real cluster. Needs root.
use crate::common::secrets::{
    assert_not_in_redis, files_that_show, line_of_key, processes_that_show, words_of_bundle,
};
use crate::common::{Bench, Finished, names, wait_for, wait_for_windows};
use dyno_record::metrics::MetricId;
use dyno_testkit::{Skip, embedded, embedded_program, mongod_program, or_skip, project_dir};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

const PLAN: &str = r#"
base = "a"
name = "pods"
[server]
kind = "mongod"
[data]
records = 501
[client]
clients = 4
[schedule]
kind = "constant"
rate_per_s = 200
[phases]
warmup = "1s"
duration = "3s"
[observe]
server = false
[fleet]
lease = "10s"
[fleet.kubernetes]
client_pods = 2
"#;

/// `None` with a printed reason if namespaces cannot be created.
fn bench() -> Option<Bench> {
    let python = project_dir().join(".cache/python/bin/python3");
    let has_redis = Command::new("redis-server").arg("--version").output().is_ok();
    let needs = |holds: bool, what: &'static str, remedy: &'static str| {
        or_skip(holds.then_some(()).ok_or_else(|| Skip::new(what, remedy)))
    };
    needs(nix::unistd::Uid::effective().is_root(), "no root", "run as root")?;
    let what = "no Python of its own or no `redis-server`";
    needs(python.exists() && has_redis, what, "run `scripts/setup.sh test`")?;
    or_skip(embedded_program())?;
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("bin")).unwrap();
    std::fs::create_dir_all(bench.path("cluster")).unwrap();
    let script = project_dir().join("crates/cli/tests/it/common/kubectl.py");
    let kubectl = format!("#!/bin/sh\nexec {} {} \"$@\"\n", python.display(), script.display());
    let path = bench.path("bin/kubectl");
    std::fs::write(&path, kubectl).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    std::fs::write(bench.path("pods.toml"), PLAN).unwrap();
    Some(bench)
}

fn run(bench: &Bench, more: &[&str]) -> Output {
    fleet(bench, "run", more)
}

fn fleet(bench: &Bench, verb: &str, more: &[&str]) -> Output {
    // One cluster at a time: pods of two clusters would see each other's processes.
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    command(bench, verb, more).output().unwrap()
}

static CLUSTER: Mutex<()> = Mutex::new(());

fn command(bench: &Bench, verb: &str, more: &[&str]) -> Command {
    let fixed = ["fleet", verb, "pods.toml", "--kubernetes", "--out", "pods"];
    let mut command = bench.command(&[&fixed[..], more].concat());
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("{}:{path}", bench.path("bin").display()))
        .env("DYNO_TEST_CLUSTER", bench.path("cluster"))
        .env("DYNO_TEST_PROGRAM", env!("CARGO_BIN_EXE_dyno"))
        .env("DYNO_TEST_NUMBER", std::process::id().to_string());
    command
}

fn calls(bench: &Bench) -> Vec<String> {
    let calls = std::fs::read_to_string(bench.path("cluster/calls")).unwrap();
    calls.lines().map(str::to_owned).collect()
}

/// The run's record, and its text.
fn record(bench: &Bench) -> (Value, String) {
    let text = std::fs::read_to_string(bench.path("pods/run.json")).unwrap();
    (serde_json::from_str(&text).unwrap(), text)
}

fn assert_nothing_runs(bench: &Bench) {
    let left = names(&bench.path("cluster"));
    assert!(!left.iter().any(|name| name.ends_with(".pid")), "{left:?}");
}

#[test]
fn pods_are_applied_waited_for_collected_and_deleted() {
    let Some(bench) = bench() else {
        return;
    };
    // The phase is long enough that two readings of the node may come late.
    let more = ["--host-logs", "logs", "--duration", "8s"];
    let ended = Finished::from(run(&bench, &more)).expect(0);
    let (document, text) = record(&bench);
    assert_eq!(document["status"], "complete");
    assert_eq!(document["server"]["documents"], 501, "loaded in parts");
    let hosts: Vec<&Value> = document["fleet"]["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["host"])
        .collect();
    assert_eq!(hosts, ["node-0/0", "node-1/1"]);
    let server = &document["fleet"]["servers"][0];
    assert_eq!(server["host"], "node-9/dyno-server-0");
    // The server agent read its node and its server process, and the client agents read their own.
    let sources = document["sources"].as_array().unwrap();
    let node = |source: &&Value| source["name"] == "host-node-9_dyno-server-0";
    let node = sources.iter().find(node).unwrap_or_else(|| panic!("{sources:?}"));
    assert_eq!(node["health"], "healthy", "{node}");
    assert_eq!(node["of_server"], true);
    assert!(node["readings"].as_u64().unwrap() >= 3, "{node}");
    // The controller is a separate machine, although a server port is forwarded to it.
    let of_server = |source: &&Value| source["of_server"] == true;
    assert_eq!(sources.iter().filter(of_server).count(), 1, "{sources:?}");
    let file = bench.path("pods/metrics/host-node-9_dyno-server-0.csv");
    let metrics = std::fs::read_to_string(file).unwrap();
    assert!(metrics.contains("process.server-0.resident_bytes"), "{metrics}");
    // For the laws: the CPUs of the server, and its disk, unless its folder is in memory.
    let used = document["resources"].as_array().unwrap().iter();
    let used = used.filter(|one| one["phase"] == "measure");
    let kinds: Vec<&Value> = used.map(|one| &one["resource"]).collect();
    let (tables, _) = dyno_record::metrics::read(&bench.path("pods")).unwrap();
    let table = tables.iter().find(|table| node["name"] == table.source);
    let table = table.unwrap();
    let has_disk = table.instances("storage").iter().any(|device| {
        let id = MetricId::of_instance("disk", device, "utilization_ratio");
        table.column(&id).is_some()
    });
    let expected: &[&str] = if has_disk { &["server_cpu", "disk"] } else { &["server_cpu"] };
    assert_eq!(kinds, expected);
    // The secret is passed on standard input, and is stored nowhere else.
    let secret = std::fs::read_to_string(bench.path("cluster/secret.json")).unwrap();
    let secret: Value = serde_json::from_str(&secret).unwrap();
    let password = secret["password"].as_str().unwrap();
    let calls = calls(&bench);
    let mut secrets = calls.iter().filter(|call| call.ends_with(" -f -"));
    // No annotation contains a copy of the secret.
    let is_by_server = |call: &String| call.contains(" apply --server-side ");
    assert!(secrets.next().is_some_and(is_by_server), "{calls:?}");
    assert!(secrets.all(is_by_server), "{calls:?}");
    assert!(!calls.join("\n").contains(password));
    assert!(!text.contains(password) && !ended.stderr.contains(password));
    // All applied objects are deleted, the namespace last.
    let deleted: Vec<&str> = calls
        .iter()
        .filter_map(|call| call.split(" delete ").nth(1))
        .filter_map(|rest| {
            rest.split(' ').find(|word| word.contains("dyno-redis") || word.ends_with(".yaml"))
        })
        .map(|path| path.rsplit('/').next().unwrap())
        .collect();
    let expected = [
        "clients.yaml",
        "servers.yaml",
        "redis.yaml",
        "network.yaml",
        "dyno-redis",
        "00-namespace.yaml",
    ];
    assert_eq!(deleted, expected);
    assert_eq!(names(&bench.path("logs")), ["client.log", "redis.log", "server.log"]);
    assert_nothing_runs(&bench);
    let left = bench.entries();
    assert!(!left.iter().any(|name| name.starts_with("dyno-fleet")), "{left:?}");
}

#[test]
fn servers_of_a_later_run_have_agents_of_their_own() {
    let Some(bench) = bench() else {
        return;
    };
    let set = ["--set", "server.cache=256MiB,512MiB"];
    Finished::from(fleet(&bench, "sweep", &set)).expect(0);
    let runs = names(&bench.path("pods/runs"));
    assert_eq!(runs.len(), 2, "{runs:?}");
    for run in runs {
        let text = std::fs::read_to_string(bench.path("pods/runs").join(run).join("run.json"));
        let document: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let sources = document["sources"].as_array().unwrap();
        let node = |source: &&Value| source["name"] == "host-node-9_dyno-server-0";
        let node = sources.iter().find(node).unwrap();
        assert_eq!(node["health"], "healthy", "{node}");
        assert!(node["readings"].as_u64().unwrap() >= 3, "{node}");
    }
    assert_nothing_runs(&bench);
}

#[test]
fn servers_of_one_pod_share_the_disk_of_its_node() {
    let Some(bench) = bench() else {
        return;
    };
    let more =
        ["--pairs", "2", "--set", "fleet.kubernetes.disks=0", "--set", "fleet.mapping=pairs"];
    Finished::from(run(&bench, &more)).expect(0);
    let (document, _) = record(&bench);
    assert!(crate::common::run_schema().is_valid(&document));
    assert_eq!(document["status"], "complete", "{document}");
    assert_eq!(document["server"]["documents"], 2 * 501);
    assert_eq!(document["instances"].as_array().unwrap().len(), 2);
    let servers = document["fleet"]["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2);
    for (number, server) in servers.iter().enumerate() {
        assert_eq!(server["host"], "node-9/dyno-server-0", "{server}");
        let port = format!(":{}/", 27_017 + number);
        assert!(server["address"].as_str().unwrap().contains(&port), "{server}");
        let storage = server["data_storage"].as_array().unwrap();
        assert_eq!(storage.len(), 1, "{server}");
        let folder = format!("/server-{number}");
        assert!(storage[0]["path"].as_str().unwrap().ends_with(&folder), "{server}");
    }
    // One agent reads the node of both servers, and queried both for their version and options.
    let sources = document["sources"].as_array().unwrap();
    let of_server = sources.iter().filter(|source| source["of_server"] == true);
    let of_server: Vec<&Value> = of_server.collect();
    assert_eq!(of_server.len(), 1, "{sources:?}");
    assert_eq!(of_server[0]["health"], "healthy", "{sources:?}");
    let mut checks = servers[0]["environment"]["doctor"].as_array().unwrap().iter();
    let huge_pages = checks.find(|one| one["check"] == "huge_pages").unwrap();
    assert_ne!(huge_pages["level"], "unknown", "{huge_pages}");
    assert_nothing_runs(&bench);
}

#[test]
fn run_continues_without_the_server_agent() {
    let Some(bench) = bench() else {
        return;
    };
    let cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = command(&bench, "run", &["--duration", "10s"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let readings = bench.path("pods/metrics/host-node-9_dyno-server-0.csv");
    let mut has_ended = false;
    wait_for("readings of the node", || {
        has_ended = child.try_wait().unwrap().is_some();
        readings.exists() || has_ended
    });
    if has_ended {
        panic!("it ended early: {:?}", child.wait_with_output().unwrap());
    }
    let agent = std::fs::read_to_string(bench.path("cluster/server-watch.pid")).unwrap();
    let killed = Command::new("kill").args(["-KILL", agent.trim()]).status();
    assert!(killed.unwrap().success());
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(0);
    drop(cluster);
    ended.says("warning: ").says("agent 0 on `node-9/dyno-server-0`");
    let (document, _) = record(&bench);
    assert_eq!(document["status"], "complete");
    let mut of_server =
        document["sources"].as_array().unwrap().iter().filter(|source| source["of_server"] == true);
    let node = of_server.next().unwrap();
    assert_ne!(node["health"], "healthy", "{node}");
    let reported = document["caveats"]
        .as_array()
        .unwrap()
        .iter()
        .any(|caveat| caveat.to_string().contains("host-node-9_dyno-server-0"));
    assert!(reported, "{}", document["caveats"]);
    assert_nothing_runs(&bench);
}

#[test]
fn pods_load_an_existing_server() {
    let Some((bench, server)) = bench().zip(or_skip(embedded())) else {
        return;
    };
    let uri = format!("server.uri=\"{}\"", server.uri());
    let more = ["--set", "server.kind=\"uri\"", "--set", &uri];
    Finished::from(run(&bench, &more)).expect(0);
    let (document, _) = record(&bench);
    assert_eq!(document["status"], "complete");
    assert_eq!(document["server"]["documents"], 501);
    assert_eq!(document["fleet"]["agents"].as_array().unwrap().len(), 2);
    let applied: Vec<String> = calls(&bench)
        .iter()
        .filter(|call| call.contains(" apply "))
        .filter_map(|call| call.split(" -f ").nth(1))
        .map(|path| path.rsplit('/').next().unwrap().to_owned())
        .collect();
    let expected = ["00-namespace.yaml", "-", "network.yaml", "redis.yaml", "clients.yaml"];
    assert_eq!(applied, expected, "no server is started");
    let calls = calls(&bench);
    let of_servers = |call: &&String| call.contains("servers.yaml");
    assert_eq!(calls.iter().find(of_servers), None, "no server is deleted");
    assert_nothing_runs(&bench);
}

/// The answer of the pods' Redis to a command.
fn redis_says(bench: &Bench, command: &[&str]) -> String {
    let secret = std::fs::read_to_string(bench.path("cluster/secret.json")).unwrap();
    let secret: Value = serde_json::from_str(&secret).unwrap();
    let number = std::process::id();
    let host = format!("127.{}.{}.2", 100 + number % 100, number / 100 % 250);
    let mut client = Command::new("redis-cli");
    client.env("REDISCLI_AUTH", secret["password"].as_str().unwrap()).args(["-h", &host]);
    let output = client.args(command).output().unwrap();
    // Histograms are not text.
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A server of others on this machine, ended when this value is dropped.
struct Standing<'a>(&'a Bench);

impl Standing<'_> {
    /// The server, and its connection string.
    fn start(bench: &Bench) -> (Standing<'_>, String) {
        let start = ["server", "start", "--server", "embedded", "--auth", "--tls"];
        Finished::from(bench.command(&start).output().unwrap()).expect(0);
        let standing = Standing(bench);
        let status = bench.command(&["server", "status", "--uri"]).output();
        let uri = Finished::from(status.unwrap()).expect(0).stdout;
        (standing, uri.trim().to_owned())
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        let _ = self.0.command(&["server", "stop"]).output();
    }
}

/// The secrets, which only pods that mount a `Secret` may read.
fn secret_words(bench: &Bench) -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(bench.path(path)).unwrap();
    let mut words = words_of_bundle(&read("cluster/secrets/dyno-agents/secrets"));
    assert_eq!(words.len(), 2, "a password and the key of the clients");
    words.push(line_of_key(&read("cluster/secrets/dyno-servers/server.pem")));
    words
}

/// Starts the fleet with secured servers, and searches for their secrets during the load and afterwards.
fn load_secured_servers(bench: &Bench, encryption: &str, mongod: Option<&std::path::Path>) {
    let cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let encryption = format!("server.encryption={encryption}");
    let more = [
        "--auth",
        "--set",
        &encryption,
        "--set",
        "server.connection_options=w=1",
        "--host-logs",
        "logs",
    ];
    let mut command = command(bench, "run", &more);
    if let Some(mongod) = mongod {
        command.env("DYNO_TEST_POD_MONGOD", mongod);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for_windows(&mut child, &bench.path("pods"), 2);
    let words = secret_words(bench);
    assert_eq!(processes_that_show(&words), Vec::<String>::new());
    assert_not_in_redis(|command| redis_says(bench, command), &words);
    let mounted = bench.path("cluster/secrets").display().to_string();
    let files = files_that_show(bench.folder.path(), &words);
    assert!(files.len() == 2 && files.iter().all(|file| file.starts_with(&mounted)), "{files:?}");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(0);
    drop(cluster);
    for word in &words {
        assert!(!ended.stderr.contains(word) && !ended.stdout.contains(word));
    }
    let (document, _) = record(bench);
    assert!(crate::common::run_schema().is_valid(&document));
    assert_eq!(document["status"], "complete", "{document}");
    assert_eq!(document["server"]["documents"], 501);
    assert_eq!(document["server"]["write_concern"], "w=1");
    let phases = document["phases"].as_array().unwrap();
    assert!(phases.iter().all(|phase| phase["failed"] == 0), "{phases:?}");
    assert_eq!(document["fleet"]["agents"].as_array().unwrap().len(), 2);
    // Deleted with everything else.
    assert_eq!(files_that_show(bench.folder.path(), &words), Vec::<String>::new());
    assert_eq!(names(&bench.path("cluster/secrets")), Vec::<String>::new());
    let calls = calls(bench);
    let deleted = calls.iter().filter(|call| {
        call.ends_with(" delete secret dyno-redis dyno-agents dyno-servers --ignore-not-found")
    });
    assert_eq!(deleted.count(), 1, "{calls:?}");
    assert_nothing_runs(bench);
}

#[test]
fn secured_servers_in_pods_leak_no_secret() {
    let Some(bench) = bench() else {
        return;
    };
    load_secured_servers(&bench, "server", None);
}

#[test]
fn a_mongod_takes_the_arguments_of_a_secured_pod() {
    let Some((bench, mongod)) = bench().zip(or_skip(mongod_program())) else {
        return;
    };
    load_secured_servers(&bench, "mutual", Some(&mongod));
}

#[test]
fn pods_verify_an_existing_secured_deployment() {
    let Some(bench) = bench() else {
        return;
    };
    let (_standing, uri) = Standing::start(&bench);
    let uri = uri.as_str();
    let (_, rest) = uri.split_once("//dyno:").unwrap();
    let password = vec![rest.split_once('@').unwrap().0.to_owned()];
    let _cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    let spawn = |uri: &str| {
        let mut command = command(&bench, "run", &["--set", "server.kind=\"uri\""]);
        command.env("DYNO_URI", uri);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // A wrong password is reported before any pod exists.
    let wrong = uri.replace(&password[0], "not-the-password");
    let ended = Finished::from(spawn(&wrong).wait_with_output().unwrap()).expect(3);
    ended.says("user `dyno`");
    assert!(!bench.path("cluster/calls").exists());

    let mut child = spawn(uri);
    wait_for_windows(&mut child, &bench.path("pods"), 2);
    // The controller's own environment belongs to the user.
    let own = format!("/proc/{}/environ", child.id());
    let shown = processes_that_show(&password);
    assert!(shown.iter().all(|path| *path == own), "{shown:?}");
    assert_not_in_redis(|command| redis_says(&bench, command), &password);
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let (document, _) = record(&bench);
    assert_eq!(document["status"], "complete", "{document}");
    assert_eq!(document["server"]["documents"], 501);
    let files = files_that_show(bench.folder.path(), &password);
    let of_server = bench.path("state").display().to_string();
    assert!(files.iter().all(|file| file.starts_with(&of_server)), "{files:?}");
    assert_nothing_runs(&bench);
}

#[test]
fn failed_rollout_is_reported_and_manifests_are_deleted() {
    let Some(bench) = bench() else {
        return;
    };
    let script = "#!/bin/sh\necho \"$*\" >>\"$DYNO_TEST_CLUSTER/calls\"\n\
                  case \"$*\" in *rollout*) echo 'no node has room' >&2; exit 1 ;; esac\n";
    std::fs::write(bench.path("bin/kubectl"), script).unwrap();
    let ended = Finished::from(run(&bench, &[])).expect(3);
    ended.says("`deployment/dyno-redis`").says("no node has room");
    let calls = calls(&bench);
    assert!(calls.last().unwrap().contains("00-namespace.yaml"), "{calls:?}");
    assert!(!bench.path("pods").exists());
}
