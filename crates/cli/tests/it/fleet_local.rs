//! A fleet with this machine as every host, through an inventory without SSH: real Ansible, Redis and agents, and a responder as
//! the server. For tests that do not need separate hosts, which are expensive.
use crate::common::{Bench, Finished, Responder, names, signal, wait_for, wait_for_windows};
use crate::elsewhere::{reported, scripted_exporter};
use crate::record_changes::assert_every_change_is_reported;
use dyno_testkit::{Skip, free_port, mongod_program, or_skip, project_dir};
use serde_json::Value;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const PLAN: &str = r#"
base = "read"
name = "local"
[data]
records = 1000
key_order = "ordered"
[client]
clients = 4
[phases]
warmup = "0s"
duration = "5s"
[schedule]
kind = "constant"
rate_per_s = 400
[observe]
host = false
server = false
[fleet]
clients = ["here"]
agents_per_host = 2
start_lead = "2s"
"#;

const INVENTORY: &str = "all:\n  hosts:\n    here:\n      ansible_connection: local\n      ansible_python_interpreter: '{{ ansible_playbook_python }}'\n";

/// A Redis and a responder, ended when this value is dropped.
struct Local {
    bench: Bench,
    redis: Child,
    port: u16,
    _responder: Responder,
}

impl Local {
    /// `None` with a printed reason if Ansible or Redis is missing.
    fn new() -> Option<Self> {
        let ansible = project_dir().join(".cache/python/bin/ansible-playbook");
        let redis = Command::new("redis-server").arg("--version").output();
        let is_there = ansible.exists() && redis.is_ok();
        let what = "no Ansible or `redis-server`";
        let skip = Skip::new(what, "run `scripts/setup.sh test`");
        or_skip(is_there.then_some(()).ok_or(skip))?;
        let bench = Bench::new();
        let port = free_port();
        let redis = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--loglevel", "warning"])
            .current_dir(bench.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for("redis", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        let responder = Responder::with_documents(&[]);
        let server = format!("[server]\nkind = \"uri\"\nuri = \"{}\"\n", responder.uri());
        std::fs::write(bench.path("local.toml"), PLAN.to_owned() + &server).unwrap();
        std::fs::write(bench.path("inventory.yml"), INVENTORY).unwrap();
        std::fs::create_dir(bench.path("hosts")).unwrap();
        Some(Local { bench, redis, port, _responder: responder })
    }

    /// A script that replaces the program with its name.
    fn install(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.bench.path("bin").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts `dyno fleet VERB` and leaves it running.
    fn spawn(&self, verb: &str, more: &[&str]) -> Child {
        let hosts = self.bench.path("hosts").display().to_string();
        let fixed = ["fleet", verb, "local.toml", "--inventory", "inventory.yml"];
        let places = ["--host-folder", &hosts];
        let mut command = self.bench.command(&[&fixed[..], &places, more].concat());
        let path = std::env::var("PATH").unwrap_or_default();
        let ansible = project_dir().join(".cache/python/bin");
        command
            // Fake programs of a test take precedence.
            .env(
                "PATH",
                format!("{}:{}:{path}", self.bench.path("bin").display(), ansible.display()),
            )
            .env("DYNO_REDIS", format!("redis://127.0.0.1:{}", self.port))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn redis_says(&self, command: &[&str]) -> String {
        let mut client = Command::new("redis-cli");
        client.args(["-p", &self.port.to_string()]).args(command);
        String::from_utf8(client.output().unwrap().stdout).unwrap()
    }

    /// The common start of a step, once the controller has announced it.
    fn start_of(&self, child: &mut Child, run: &str, step: &str) -> SystemTime {
        let key = format!("dyno:{run}:down");
        let mut at_ns = 0;
        wait_for("the word to start", || {
            let said = self.redis_says(&["XRANGE", &key, "-", "+"]);
            let wanted = format!("\"step\":\"{step}\",\"at_ns\":");
            let digits: String = said
                .split(&wanted)
                .nth(1)
                .unwrap_or_default()
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            at_ns = digits.parse().unwrap_or(0);
            if let Some(status) = child.try_wait().unwrap() {
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the fleet ended early: {status}\n{said}");
            }
            at_ns > 0
        });
        SystemTime::UNIX_EPOCH + Duration::from_nanos(at_ns)
    }

    fn signal_agent(&self, run: &str, index: u32, name: &str) {
        let file = format!("hosts/dyno-{run}/agent-{index}.pid");
        let pid = std::fs::read_to_string(self.bench.path(&file)).unwrap();
        let kill = Command::new("kill").args([&format!("-{name}"), pid.trim()]).status();
        assert!(kill.unwrap().success());
    }

    fn assert_clean(&self) {
        assert_eq!(self.redis_says(&["KEYS", "*"]).trim(), "");
        assert_eq!(names(&self.bench.path("hosts")), Vec::<String>::new());
    }

    fn document(&self, run: &str) -> Value {
        let text = std::fs::read_to_string(self.bench.path(run).join("run.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.redis.kill();
        let _ = self.redis.wait();
    }
}

fn sleep_until(instant: SystemTime) {
    let left = instant.duration_since(SystemTime::now());
    std::thread::sleep(left.unwrap_or_default());
}

#[test]
fn agent_that_starts_late_shortens_the_common_window() {
    let Some(local) = Local::new() else {
        return;
    };
    let mut child = local.spawn("run", &["--out", "late", "--fleet-run", "late"]);
    let start = local.start_of(&mut child, "late", "run");
    // The agent has received the announcement and waits.
    sleep_until(start - Duration::from_millis(800));
    local.signal_agent("late", 1, "STOP");
    sleep_until(start + Duration::from_millis(2500));
    local.signal_agent("late", 1, "CONT");
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let document = local.document("late");
    assert!(crate::common::run_schema().is_valid(&document));
    let fleet = &document["fleet"];
    let figure = |pointer: &str| fleet.pointer(pointer).and_then(Value::as_f64).unwrap();
    let (late_s, other_s) = (figure("/agents/1/start_late_s"), figure("/agents/0/start_late_s"));
    assert!(late_s >= 2.5, "{fleet}");
    // On a busy machine the other agent may be late as well, but nothing held it up.
    assert!(other_s < late_s - 1.0, "{fleet}");
    let skew_s = figure("/start_skew_s");
    assert!((skew_s - (late_s - other_s)).abs() < 0.5, "{fleet}");
    // Intervals, out of five, during which the late agent was present throughout.
    let first = figure("/common_first_interval");
    assert!(first >= 3.0 && first >= (late_s - 0.01).ceil(), "{fleet}");
    let common = figure("/common_intervals");
    assert!((1.0..=5.0 - first).contains(&common), "{fleet}");
    let reported = document["caveats"].as_array().unwrap().iter().find(|caveat| {
        let values = &caveat["values"];
        let reported_s = values["late"]["value"].as_f64().unwrap_or_default();
        caveat["code"] == "agent-late"
            && values["agent"]["value"] == 1.0
            && (reported_s - late_s).abs() < 0.01
    });
    assert!(reported.is_some(), "{}", document["caveats"]);
    assert_eq!(fleet["clients"], 4);
    local.assert_clean();
}

#[test]
fn fleet_reads_an_exporter_and_detects_a_changed_record() {
    let Some(local) = Local::new() else {
        return;
    };
    let short = ["--duration", "2s", "--set", "observe.host=true"];
    let exporter = scripted_exporter();
    let watching = ["--exporter", &exporter, "--observe-interval", "300ms"];
    let out = ["--out", "sums"];
    let child = local.spawn("run", &[&short[..], &watching, &out].concat());
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let document = local.document("sums");
    for kind in ["server_host_cpu", "disk"] {
        let (_, _, by) = reported(&document, kind).unwrap_or_else(|| panic!("{kind}: {document}"));
        let machine = (&by["source"], &by["machine"]);
        assert_eq!(machine, (&"node".into(), &"127.0.0.1".into()), "{kind}");
    }
    let of_hosts = names(&local.bench.path("sums/metrics")).into_iter();
    let of_hosts: Vec<String> = of_hosts.map(|name| format!("metrics/{name}")).collect();
    assert!(of_hosts.iter().any(|name| name.contains("/host-")), "{of_hosts:?}");
    let merged = ["run.json", "latency.hlog", "series/intervals.csv"];
    let all = of_hosts.iter().map(String::as_str).chain(merged);
    assert_every_change_is_reported(&local.bench, "sums", &all.collect::<Vec<_>>());
}

#[test]
fn parameters_set_by_an_agent_leave_no_revert_entry() {
    let Some(local) = Local::new() else {
        return;
    };
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let plan = std::fs::read_to_string(local.bench.path("local.toml")).unwrap();
    let (plan, _) = plan.split_once("[server]").unwrap();
    let plan = plan.replace("agents_per_host = 2", "servers = [\"here\"]");
    let server = "[server]\nkind = \"mongod\"\n[server.runtime_parameters]\nsyncdelay = \"30\"\n";
    std::fs::write(local.bench.path("local.toml"), plan + server).unwrap();
    let address = "      dyno_address: 127.0.0.1\n";
    std::fs::write(local.bench.path("inventory.yml"), INVENTORY.to_owned() + address).unwrap();
    let program = mongod.display().to_string();
    let long = ["--out", "set", "--duration", "10m", "--mongod", &program];
    let mut child = local.spawn("run", &long);
    wait_for_windows(&mut child, &local.bench.path("set"), 1);
    signal(&child, "KILL");
    child.wait().unwrap();
    assert!(!local.bench.path("state/doctor-undo.json").exists());
    let revert = ["doctor", "--revert", "--format", "json"];
    let reverted = local.bench.dyno(&revert).expect(0).json();
    assert_eq!(reverted["parameters"], Value::Array(Vec::new()));
    assert_eq!(reverted["refused"], 0);
    wait_for("the end of the agents", || names(&local.bench.path("hosts")).is_empty());
}

#[test]
fn agent_that_cannot_start_fails_the_run_at_once() {
    let Some(local) = Local::new() else {
        return;
    };
    // One of the two agents gets an unknown option.
    let script = "#!/bin/sh\nfor word; do case $word in */agent-1.pid) broken=1 ;; esac; done\n\
                  [ \"$1\" = --start ] && [ -n \"$broken\" ] && set -- \"$@\" --no-such-option\n\
                  exec /sbin/start-stop-daemon \"$@\"\n";
    local.install("start-stop-daemon", script);
    let child = local.spawn("run", &["--out", "broken"]);
    // A controller that only misses an agent waits for a minute, and prints another message.
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(3);
    ended.says("`agent-1`").says("at once").says("`here`");
    assert!(!local.bench.path("broken").exists());
    local.assert_clean();
}

/// Checks that an experiment's record and pages describe this machine as the only agent host.
#[track_caller]
fn assert_host_is_reported(local: &Local, experiment: &Value) {
    let hosts = experiment["hosts"].as_object().unwrap();
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    let (host, machine) = hosts.iter().next().unwrap();
    for name in ["kernel", "cpu_model", "memory_bytes"] {
        assert_eq!(machine[name], experiment["environment"][name], "{name}");
    }
    for form in [&["--full"][..], &["--format", "markdown"], &["--format", "html"]] {
        let report = [&["report", "most"][..], form].concat();
        let report = local.bench.dyno(&report).expect(0).stdout;
        for title in ["Machine of the controller", &format!("Machine {host}")] {
            assert!(report.contains(title), "{form:?}: {title}");
        }
    }
}

#[test]
fn a_search_for_the_maximum_begins_with_a_client_for_each_agent() {
    let Some(local) = Local::new() else {
        return;
    };
    let plan = std::fs::read_to_string(local.bench.path("local.toml")).unwrap();
    let closed = plan.replace("[schedule]\nkind = \"constant\"\nrate_per_s = 400\n", "");
    // More agents than the plan's number of clients, which does not matter here.
    let closed = closed.replace("clients = 4\n", "clients = 1\n");
    let closed = closed.replace("start_lead = \"2s\"", "start_lead = \"500ms\"");
    std::fs::write(local.bench.path("local.toml"), closed).unwrap();
    let few = local.spawn("xmax", &["--max-clients", "1", "--out", "few"]);
    Finished::from(few.wait_with_output().unwrap())
        .expect(2)
        .says("`--max-clients`")
        .says("at least 2");
    let more = ["--duration", "1s", "--max-clients", "4", "--repeat", "1", "--out", "most"];
    let child = local.spawn("xmax", &more);
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    let text = std::fs::read_to_string(local.bench.path("most/experiment.json")).unwrap();
    let experiment: Value = serde_json::from_str(&text).unwrap();
    let first = &experiment["points"][0];
    assert_eq!(first["settings"]["client.clients"], "2", "{first}");
    let answer = &experiment["answer"];
    let most = [&answer["x_max_per_s"], &answer["client_maximum_per_s"]];
    let most = most.iter().find_map(|most| most["value"].as_f64().or(most.as_f64()));
    assert!(most.is_some_and(|most| most > 0.0), "{answer}");
    assert_host_is_reported(&local, &experiment);
    local.assert_clean();
}

#[test]
fn plans_that_leave_an_agent_idle_are_refused_at_once() {
    let Some(local) = Local::new() else {
        return;
    };
    local.install("ansible-playbook", "#!/bin/sh\ntouch \"$0.ran\"\nexit 1\n");
    let refused = |verb: &str, more: &[&str], words: &str| {
        let child = local.spawn(verb, more);
        Finished::from(child.wait_with_output().unwrap()).expect(2).says(words);
    };
    let few = "`client.clients`";
    refused("run", &["--clients", "1", "--out", "few"], few);
    refused("sweep", &["--clients", "1,2", "--out", "few"], few);
    let each = ["--set", "fleet.amounts=per-agent", "--out", "each"];
    let objective = [&each[..], &["--p99", "5ms"]].concat();
    refused("slo", &objective, "`fleet.amounts`");
    // For a search, the plans of all workloads count, with every value of every knob.
    let plan = std::fs::read_to_string(local.bench.path("local.toml")).unwrap();
    let one = plan.replace("clients = 4\n", "clients = 1\n");
    let one = one.replace("name = \"local\"", "name = \"one\"");
    std::fs::write(local.bench.path("one.toml"), one).unwrap();
    let clients = "[[knobs]]\nname = 'clients'\ngroup = 'own'\nkey = 'client.clients'\nvalues = ['1', '4']\ndefault = '4'\n";
    std::fs::write(local.bench.path("knobs.toml"), clients).unwrap();
    let goal = ["--goal", "p99", "--rate", "400", "--out", "tuned"];
    let several = ["--across", "one.toml", "--knobs", "threads=2,4"];
    refused("tune", &[&goal[..], &several].concat(), few);
    let one_client = [&goal[..], &["--knobs", "./knobs.toml"]].concat();
    refused("tune", &one_client, few);
    refused("tune", &[&one_client[..], &["--dry-run"]].concat(), few);
    assert!(!local.bench.path("tuned").exists());
    let long = "a".repeat(57);
    let long = ["--fleet-run", &long, "--out", "long"];
    refused("run", &long, "57 characters");
    assert!(!local.bench.path("bin/ansible-playbook.ran").exists());
}

#[test]
fn an_interrupt_ends_a_playbook_and_cleans_up() {
    let Some(local) = Local::new() else {
        return;
    };
    let place = local.bench.path("bin").display().to_string();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*start.yml*) touch {place}/started; sleep 611 & wait ;;\n\
         *stop.yml*) touch {place}/stopped ;;\nesac\n"
    );
    local.install("ansible-playbook", &script);
    let child = local.spawn("run", &["--out", "early"]);
    wait_for("the playbook", || local.bench.path("bin/started").exists());
    let began = Instant::now();
    crate::common::signal(&child, "INT");
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert!(
        began.elapsed() < Duration::from_secs(300),
        "the fleet waited for the playbook, which takes 611 s"
    );
    ended.says("interrupted");
    assert!(local.bench.path("bin/stopped").exists());
    assert!(!local.bench.path("early").exists());
    // The processes received a signal; on a busy machine they may take a moment to end.
    wait_for("the end of the playbook", || {
        crate::common::processes_with("sleep\x00611").is_empty()
    });
    local.assert_clean();
}
