//! A real Prometheus reads runs that go on, and every query of every panel in `deploy/grafana/` is asked of it.

use crate::common::scrape::{Endpoint, get};
use crate::common::{Bench, Responder, reads, signal, wait_for};
use dyno_testkit::{Skip, embedded_program, free_port, or_skip, project_dir};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Starts of metrics' names that this bench may lack, and why. Queries about them must be valid all the same.
const MAY_BE_ABSENT: [(&str, &str); 10] = [
    (
        "dyno_cgroup_cpu_",
        "only where a control group limits a process",
    ),
    ("dyno_temperature_", "virtual machines have no sensors"),
    (
        "dyno_disk_read_await",
        "only when a read reached the disk: the data may be in memory",
    ),
    (
        "dyno_disk_flush_await",
        "only when a flush reached the disk",
    ),
    ("dyno_query_", "the embedded server does not tell it"),
    ("dyno_tickets_", "the embedded server does not tell it"),
    ("dyno_flow_control_", "the embedded server does not tell it"),
    (
        "dyno_asserts_regular",
        "the embedded server does not tell it",
    ),
    (
        "dyno_connections_active",
        "the embedded server does not tell it",
    ),
    ("dyno_replication_", "a single server has no members"),
];

/// Longest time until all queries find data.
const DATA_LIMIT: Duration = Duration::from_secs(240);

/// A program of Debian's package `prometheus`.
fn program(name: &str) -> Result<PathBuf, Skip> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    let missing = || Skip::new(format!("no `{name}`"), "run `scripts/setup.sh test`");
    found
        .into_iter()
        .find(|path| path.is_file())
        .ok_or_else(missing)
}

/// A Prometheus that reads these ports. It ends with this.
struct Prometheus {
    child: Child,
    port: u16,
}

impl Prometheus {
    fn start(program: &Path, folder: &Path, targets: &[u16]) -> Prometheus {
        let deployed = project_dir().join("deploy/prometheus/prometheus.yml");
        let targets: Vec<String> = targets
            .iter()
            .map(|port| format!("\"127.0.0.1:{port}\""))
            .collect();
        let configuration = fs::read_to_string(deployed)
            .unwrap()
            .replace("\"127.0.0.1:9464\"", &targets.join(", "))
            .replace("scrape_interval: 2s", "scrape_interval: 1s")
            .replace("scrape_timeout: 2s", "scrape_timeout: 1s");
        assert!(configuration.contains(&targets.join(", ")));
        let file = folder.join("prometheus.yml");
        fs::write(&file, configuration).unwrap();
        // It does not say which port it took, so it is told one that was free just now.
        let port = free_port();
        let child = Command::new(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("tsdb").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.join("prometheus.log")).unwrap())
            .spawn()
            .unwrap();
        let prometheus = Prometheus { child, port };
        wait_for("Prometheus", || get(port, "/-/ready").status == 200);
        prometheus
    }

    /// Asks for a query over the last minute: the values, or why it is not valid.
    fn ask(&self, query: &str) -> Result<Vec<f64>, String> {
        let now = jiff::Timestamp::now().as_second();
        let path = format!(
            "/api/v1/query_range?query={}&start={}&end={now}&step=1",
            encoded(query),
            now - 60
        );
        let answer = get(self.port, &path);
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

impl Drop for Prometheus {
    fn drop(&mut self) {
        signal(&self.child, "TERM");
        let _ = self.child.wait();
    }
}

fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Queries of all dashboards with the panel that they are from, as Grafana would ask them.
fn queries() -> Vec<(String, String)> {
    let folder = project_dir().join("deploy/grafana/dashboards");
    let mut found = Vec::new();
    for name in crate::common::names(&folder) {
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            if panel["type"] == "row" {
                continue;
            }
            let title = panel["title"].as_str().unwrap();
            let targets = panel["targets"].as_array().unwrap();
            assert!(!targets.is_empty(), "{name}: {title}");
            for target in targets {
                let query = target["expr"].as_str().unwrap();
                let query = query.replace("$__rate_interval", "10s");
                let asked = ["$phase", "$source", "$server"]
                    .iter()
                    .fold(query, |query, variable| query.replace(variable, ".+"));
                assert!(!asked.contains('$'), "{asked}");
                found.push((format!("{name}: {title}"), asked));
            }
        }
        for variable in dashboard["templating"]["list"].as_array().unwrap() {
            let Some(query) = variable["definition"].as_str() else {
                continue;
            };
            let metric = query.strip_prefix("label_values(").unwrap();
            let metric = metric.split(',').next().unwrap();
            found.push((format!("{name}: variable"), metric.to_owned()));
        }
    }
    found
}

fn may_be_absent(query: &str) -> bool {
    MAY_BE_ABSENT.iter().any(|(start, _)| query.contains(start))
}

#[test]
fn every_query_of_every_dashboard_finds_what_runs_tell() {
    let Some(prometheus) = or_skip(program("prometheus")) else {
        return;
    };
    let Some(_) = or_skip(embedded_program()) else {
        return;
    };
    let bench = Bench::new();
    // One run with host and server, and one with a server that answers with errors.
    let arguments = [
        "run",
        "a",
        "--records",
        "2000",
        "--clients",
        "4",
        "--rate",
        "400",
        "--warmup",
        "2s",
        "--duration",
        "10m",
        "--metrics",
        "127.0.0.1:0",
        "--out",
        "watched",
    ];
    let watched = Endpoint::spawn(&mut bench.command(&arguments));
    let responder = Responder::with_documents(&["--fault", "error=11600:10"]);
    let uri = responder.uri();
    let more = [
        "--rate",
        "100",
        "--duration",
        "10m",
        "--metrics",
        "127.0.0.1:0",
        "--no-observe",
        "--out",
        "failing",
    ];
    let failing = Endpoint::spawn(&mut bench.command(&reads(&uri, &more)));
    let prometheus = Prometheus::start(
        &prometheus,
        bench.folder.path(),
        &[watched.port, failing.port],
    );
    let has = |query: &str| prometheus.ask(query).is_ok_and(|values| !values.is_empty());
    for name in ["watched", "failing"] {
        let query = format!("dyno_run_info{{directory=\"{name}\"}}");
        wait_for(&format!("run `{name}`"), || has(&query));
    }
    let mut without_data = queries();
    for (start, _) in MAY_BE_ABSENT {
        let is_asked = |(_, query): &(String, String)| query.contains(start);
        assert!(
            without_data.iter().any(is_asked),
            "no panel is about `{start}`"
        );
    }
    // Rates need two readings, and a server's log is looked at now and then.
    let deadline = Instant::now() + DATA_LIMIT;
    loop {
        without_data.retain(|(place, query)| {
            let values = prometheus.ask(query);
            values
                .unwrap_or_else(|error| panic!("{place}: `{query}`: {error}"))
                .is_empty()
        });
        let missing = without_data
            .iter()
            .filter(|(_, query)| !may_be_absent(query));
        if missing.count() == 0 {
            break;
        }
        assert!(Instant::now() < deadline, "no data: {without_data:#?}");
        std::thread::sleep(Duration::from_secs(1));
    }
    check_by_promtool(&watched);
}

/// What the tool of Prometheus has to say of the metrics.
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
    child
        .stdin
        .take()
        .unwrap()
        .write_all(metrics.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn an_export_becomes_a_database_of_prometheus() {
    let Some(promtool) = or_skip(program("promtool")) else {
        return;
    };
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = ["--rate", "500", "--duration", "3s", "--out", "run"];
    bench.dyno(&reads(&uri, &more)).expect(0);
    bench
        .dyno(&["export", "run", "--to", "openmetrics", "--output", "run.om"])
        .expect(0);
    let output = Command::new(&promtool)
        .args([
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "run.om",
            "blocks",
        ])
        .current_dir(bench.folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // Without this folder the tool takes it for no database.
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
