//! A real Prometheus reads a run in progress and a real `node_exporter`, and answers every query of every panel in
//! `deploy/grafana/`.

use crate::common::scrape::{Endpoint, get};
use crate::common::{Bench, Responder, reads, signal, wait_for};
use dyno_testkit::{Skip, free_port, mongod_program, or_skip, project_dir};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Prefixes of metrics that a machine may always lack. Queries about them must still be valid, and the panel's description says
/// when they have no data.
const MAY_BE_ABSENT: [&str; 2] = ["dyno_cgroup_cpu_", "dyno_temperature_"];

/// Prefix of a metric that is absent if no disk flushes a cache of its own.
const OF_FLUSHES: &str = "dyno_disk_flush_await";

/// Longest time until all queries find data.
const DATA_LIMIT: Duration = Duration::from_secs(120);

/// A program from Debian's Prometheus packages.
fn program(name: &str) -> Result<PathBuf, Skip> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    let missing = || Skip::new(format!("no `{name}`"), "run `scripts/setup.sh test`");
    found.into_iter().find(|path| path.is_file()).ok_or_else(missing)
}

/// A program that listens on a port of this machine, ended when this value is dropped.
struct Service {
    child: Child,
    port: u16,
}

impl Service {
    /// Starts the program with its address as the last argument, and waits until it answers on this path.
    fn start(command: &mut Command, folder: &Path, path: &str) -> Service {
        // The program does not print the port it took, so it gets a port that was free just now.
        let port = free_port();
        let child = command
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join(format!("{port}.log"))).unwrap())
            .spawn()
            .unwrap();
        let service = Service { child, port };
        wait_for(path, || get(port, path).status == 200);
        service
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        signal(&self.child, "TERM");
        let _ = self.child.wait();
    }
}

/// Writes to the disk below the build, and reads from it with direct I/O, until dropped.
struct BusyDisk(Child);

impl BusyDisk {
    fn start() -> BusyDisk {
        let work = "file=$(mktemp --tmpdir=\"$1\") && exec 3<>\"$file\" && rm \"$file\" && file=/proc/self/fd/3 || exit 1
            while kill -0 \"$2\"; do
                dd if=/dev/zero of=$file bs=4k count=64 conv=notrunc,fsync
                dd if=$file of=/dev/null bs=4k count=64 iflag=direct
                sleep 0.3
            done";
        // It also ends if the test is killed.
        let test = std::process::id().to_string();
        let mut command = Command::new("sh");
        command.args(["-c", work, "sh", env!("CARGO_TARGET_TMPDIR"), &test]);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        BusyDisk(quiet.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for BusyDisk {
    fn drop(&mut self) {
        signal(&self.0, "TERM");
        let _ = self.0.wait();
    }
}

/// Flushes of all disks so far. Source of the column: `Documentation/admin-guide/iostats.rst` of Linux.
fn flushes() -> u64 {
    let text = fs::read_to_string("/proc/diskstats").unwrap();
    let of_disk = |line: &str| line.split_ascii_whitespace().nth(18)?.parse::<u64>().ok();
    text.lines().filter_map(of_disk).sum()
}

/// Inventory of a fleet with this machine as every host.
const INVENTORY: &str = "
clients:
  hosts:
    client1: {dyno_address: 127.0.0.1}
servers:
  hosts:
    server1: {dyno_address: 127.0.0.1}
observers:
  hosts:
    observer1:
      ansible_connection: local
      ansible_python_interpreter: '{{ ansible_playbook_python }}'
";

struct Prometheus(Service);

impl Prometheus {
    /// Starts it with the deployed configuration, except for the ports.
    fn start(program: &Path, folder: &Path, dyno: u16, node: u16) -> Prometheus {
        let deployed = project_dir().join("deploy/prometheus/prometheus.yml");
        let mut configuration = fs::read_to_string(deployed).unwrap();
        for (usual, port) in [("127.0.0.1:9464", dyno), ("127.0.0.1:9100", node)] {
            assert_eq!(configuration.matches(&format!("\"{usual}\"")).count(), 1);
            configuration = configuration.replace(usual, &format!("127.0.0.1:{port}"));
        }
        let file = folder.join("prometheus.yml");
        fs::write(&file, configuration).unwrap();
        Prometheus::start_with(program, folder, &file)
    }

    fn start_with(program: &Path, folder: &Path, file: &Path) -> Prometheus {
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg("--log.level=warn");
        Prometheus(Service::start(&mut command, folder, "/-/ready"))
    }

    /// Whether the last scrape of this job on this machine succeeded.
    fn is_up(&self, labels: &str) -> bool {
        let values = self.ask(&format!("up{{{labels}}}")).unwrap();
        values.last() == Some(&1.0)
    }

    /// Runs a query over the last minute: the values, or the error.
    fn ask(&self, query: &str) -> Result<Vec<f64>, String> {
        let now = jiff::Timestamp::now().as_second();
        let path = format!(
            "/api/v1/query_range?query={}&start={}&end={now}&step=1",
            encoded(query),
            now - 60
        );
        let answer = get(self.0.port, &path);
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        let mut values = Vec::new();
        for series in answer["data"]["result"].as_array().unwrap() {
            for point in series["values"].as_array().unwrap() {
                let value: f64 = point[1].as_str().unwrap().parse().unwrap();
                values.extend((!value.is_nan()).then_some(value));
            }
        }
        Ok(values)
    }
}

fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// A query of a dashboard.
#[derive(Debug)]
struct Asked {
    /// The panel that contains the query.
    place: String,
    query: String,
}

impl Asked {
    fn may_be_absent(&self) -> bool {
        MAY_BE_ABSENT.iter().any(|start| self.query.contains(start))
    }
}

/// Queries of all dashboards, in the form in which Grafana sends them.
fn queries() -> Vec<Asked> {
    let deployed = project_dir().join("deploy/grafana");
    let source = deployed.join("provisioning/datasources/prometheus.yaml");
    let source = fs::read_to_string(source).unwrap();
    let source = source.split_once("timeInterval: ").unwrap().1;
    let interval = source.lines().next().unwrap();
    let folder = deployed.join("dashboards");
    let mut found = Vec::new();
    for name in crate::common::names(&folder) {
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            if panel["type"] != "row" {
                found.extend(queries_of(panel, &name, interval));
            }
        }
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            let Some(query) = variable["definition"].as_str() else {
                continue;
            };
            let metric = query.strip_prefix("label_values(").unwrap();
            found.push(Asked {
                place: format!("{name}: variable"),
                query: metric.split(',').next().unwrap().to_owned(),
            });
        }
    }
    found
}

/// Queries of a panel. `usual` is the time between two readings, unless a query has its own.
fn queries_of(panel: &Value, dashboard: &str, usual: &str) -> Vec<Asked> {
    let place = format!("{dashboard}: {}", panel["title"].as_str().unwrap());
    let targets = panel["targets"].as_array().unwrap();
    assert!(!targets.is_empty(), "{place}");
    let asked = targets.iter().map(|target| {
        let interval = target["interval"].as_str().unwrap_or(usual);
        let interval_s: u64 = interval.strip_suffix('s').unwrap().parse().unwrap();
        let query = target["expr"].as_str().unwrap();
        let query = query.replace("$__rate_interval", &format!("{}s", 4 * interval_s));
        let query = ["$phase", "$source", "$server", "$instance"]
            .iter()
            .fold(query, |query, variable| query.replace(variable, ".+"));
        assert!(!query.contains('$'), "{query}");
        let asked = Asked { place: place.clone(), query };
        let is_described = panel["description"].as_str().is_some();
        assert!(is_described || !asked.may_be_absent(), "{asked:?}");
        asked
    });
    asked.collect()
}

#[test]
fn every_dashboard_query_finds_data_on_a_healthy_run() {
    let programs = (
        or_skip(program("prometheus")),
        or_skip(program("prometheus-node-exporter")),
        or_skip(mongod_program()),
    );
    let (Some(prometheus), Some(node_exporter), Some(mongod)) = programs else {
        return;
    };
    let bench = Bench::new();
    let folder = bench.folder.path();
    let node = Service::start(&mut Command::new(node_exporter), folder, "/metrics");
    let server = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
    // A single member reports everything that a server of a set reports.
    let set = ["--topology", "replica-set=1"];
    let load = ["--records", "2000", "--clients", "4", "--rate", "400"];
    let phases = ["--warmup", "0s", "--duration", "10m"];
    let metrics = ["--metrics", "127.0.0.1:0", "--out", "watched"];
    let run = ["run", "a"];
    let arguments = [&run[..], &server, &set, &load, &phases, &metrics].concat();
    let watched = Endpoint::spawn(&mut bench.command(&arguments));
    let prometheus = Prometheus::start(&prometheus, folder, watched.port, node.port);
    let (_disk, flushed) = (BusyDisk::start(), flushes());
    let may_be_absent = |asked: &Asked| {
        asked.may_be_absent() || asked.query.contains(OF_FLUSHES) && flushes() == flushed
    };
    let mut without_data = queries();
    for start in MAY_BE_ABSENT.into_iter().chain([OF_FLUSHES]) {
        let is_asked = |asked: &Asked| asked.query.contains(start);
        assert!(without_data.iter().any(is_asked), "no panel is about `{start}`");
    }
    // Rates need two readings, and a server's log is read only occasionally.
    let deadline = Instant::now() + DATA_LIMIT;
    loop {
        without_data.retain(|asked| {
            let values = prometheus.ask(&asked.query);
            values
                .unwrap_or_else(|error| panic!("{}: `{}`: {error}", asked.place, asked.query))
                .is_empty()
        });
        if without_data.iter().all(may_be_absent) {
            break;
        }
        assert!(Instant::now() < deadline, "no data: {without_data:#?}");
        std::thread::sleep(Duration::from_secs(1));
    }
    check_by_promtool(&watched);
}

/// The configuration that the role `observers` writes for the inventory, read by Prometheus.
#[test]
fn ansible_prometheus_scrapes_the_run_and_every_host() {
    let ansible = project_dir().join(".cache/python/bin/ansible");
    let is_there = ansible.exists().then_some(());
    let missing = || Skip::new("no Ansible", "run `scripts/setup.sh test`");
    let programs = (
        or_skip(program("prometheus")),
        or_skip(program("prometheus-node-exporter")),
        or_skip(is_there.ok_or_else(missing)),
    );
    let (Some(prometheus), Some(node_exporter), Some(())) = programs else {
        return;
    };
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let folder = bench.folder.path();
    let node = Service::start(&mut Command::new(node_exporter), folder, "/metrics");
    let token = "a-token-of-this-test";
    let token_file = folder.join("token");
    fs::write(&token_file, token).unwrap();
    let uri = responder.uri();
    let metrics = ["--metrics", "127.0.0.1:0", "--metrics-token", token];
    let load = ["--rate", "100", "--duration", "10m"];
    let arguments = reads(&uri, &[&load[..], &metrics].concat());
    let watched = Endpoint::spawn(&mut bench.command(&arguments));
    assert_eq!(get(watched.port, "/metrics").status, 401);

    let file = folder.join("of-the-role.yml");
    let values = serde_json::json!({
        "dyno_metrics_targets": [format!("127.0.0.1:{}", watched.port)],
        "dyno_metrics_token_file": token_file,
        "dyno_node_port": node.port,
    });
    render_role(&ansible, folder, &file, &values);
    let prometheus = Prometheus::start_with(&prometheus, folder, &file);
    for labels in
        ["job=\"dyno\"", "job=\"clients\",host=\"client1\"", "job=\"servers\",host=\"server1\""]
    {
        wait_for(labels, || prometheus.is_up(labels));
    }
}

/// Writes the Prometheus configuration by Ansible, with these values instead of the role's defaults.
fn render_role(ansible: &Path, folder: &Path, file: &Path, values: &Value) {
    let role = project_dir().join("deploy/ansible/roles/observers");
    let inventory = folder.join("inventory.yml");
    fs::write(&inventory, INVENTORY).unwrap();
    let template = role.join("templates/prometheus.yml.j2");
    let task = format!("src={} dest={}", template.display(), file.display());
    let output = Command::new(ansible)
        .args(["observer1", "--module-name", "ansible.builtin.template"])
        .args(["--args", &task, "--inventory"])
        .arg(inventory)
        .arg("--extra-vars")
        .arg(format!("@{}", role.join("defaults/main.yml").display()))
        .args(["--extra-vars", &values.to_string()])
        .env("ANSIBLE_HOME", folder.join("ansible"))
        .env("ANSIBLE_LOCAL_TEMP", folder.join("ansible/local"))
        .env("ANSIBLE_REMOTE_TMP", folder.join("ansible/remote"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Checks the metrics with `promtool`.
fn check_by_promtool(endpoint: &Endpoint) {
    let Some(promtool) = or_skip(program("promtool")) else {
        return;
    };
    let metrics = get(endpoint.port, "/metrics").body;
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn export_becomes_a_prometheus_database() {
    let Some(promtool) = or_skip(program("promtool")) else {
        return;
    };
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = ["--rate", "500", "--duration", "3s", "--out", "run"];
    bench.dyno(&reads(&uri, &more)).expect(0);
    bench.dyno(&["export", "run", "--to", "openmetrics", "--output", "run.om"]).expect(0);
    let output = Command::new(&promtool)
        .args(["tsdb", "create-blocks-from", "openmetrics", "run.om", "blocks"])
        .current_dir(bench.folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // Without this folder the tool does not accept it as a database.
    fs::create_dir(bench.path("blocks/wal")).unwrap();
    let dump = Command::new(&promtool)
        .args(["tsdb", "dump", "blocks"])
        .current_dir(bench.folder.path())
        .output()
        .unwrap();
    let dump = String::from_utf8_lossy(&dump.stdout).into_owned();
    let text = fs::read_to_string(bench.path("run.om")).unwrap();
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(dump.lines().count(), samples);
    assert!(dump.contains("__name__=\"dyno_operations_total\""));
}
