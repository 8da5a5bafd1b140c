//! Servers that this program cannot read by itself: reports of servers and exporters become service demands in every experiment,
//! and the demands match the real load.

use crate::common::{Bench, Finished, Responder, names, signal, wait_for};
use bson::{Document, doc};
use dyno_record::metrics::{MetricTable, read};
use dyno_record::names::{cpu, disk, process, server_cpu};
use dyno_testkit::fault::is_root;
use dyno_testkit::{Skip, mongod, mongod_program, or_skip, scripted};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Number of CPUs that the scripted server keeps busy, and number of its CPUs.
const SERVER_CPUS: f64 = 0.75;
const CPUS: i32 = 4;
/// Busy share of the scripted disk with the data; the other disk is busier.
const DISK: f64 = 0.3;

/// On a busy machine, readings of such a short phase are late by some hundredths of it.
const LATE: f64 = 0.1;

/// A server that reports a CPU time of `SERVER_CPUS` times its uptime, in front of a responder.
fn scripted_server(responder: &Responder) -> String {
    let start = Instant::now();
    let answer = move |command: &Document| -> Option<Document> {
        let us = start.elapsed().as_micros() as f64 * SERVER_CPUS;
        match command.keys().next()?.as_str() {
            "serverStatus" => Some(doc! {
                "uptimeMillis": start.elapsed().as_millis() as i64,
                "extra_info": { "user_time_us": (us * 0.8) as i64, "system_time_us": (us * 0.2) as i64 },
                "ok": 1,
            }),
            "hostInfo" => Some(doc! { "system": { "numCores": CPUS }, "ok": 1 }),
            "getCmdLineOpts" => {
                let parsed = doc! { "storage": { "dbPath": "/var/lib/mongodb" } };
                Some(doc! { "parsed": parsed, "ok": 1 })
            }
            _ => None,
        }
    };
    let port = scripted::serve_before(responder.address.parse().unwrap(), answer);
    format!("mongodb://127.0.0.1:{port}/")
}

/// A `node_exporter` with two disks; `vdb` has the file system with the data.
pub(crate) fn scripted_exporter() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let start = Instant::now();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let s = start.elapsed().as_secs_f64();
            let body = format!(
                "node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {}\n\
                 node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {}\n\
                 node_disk_io_time_seconds_total{{device=\"vda\"}} {}\n\
                 node_disk_io_time_seconds_total{{device=\"vdb\"}} {}\n\
                 node_filesystem_avail_bytes{{device=\"/dev/vda1\",mountpoint=\"/\"}} 1e9\n\
                 node_filesystem_avail_bytes{{device=\"/dev/vdb1\",mountpoint=\"/var/lib\"}} 1e9\n",
                s * 0.5,
                s * 0.5,
                s * 0.9,
                s * DISK,
            );
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("node=http://{address}/metrics")
}

/// The run documents below a folder.
fn runs_below(folder: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(runs_below(&path));
        } else if path.ends_with("run.json") {
            let text = std::fs::read_to_string(path).unwrap();
            found.push(serde_json::from_str(&text).unwrap());
        }
    }
    found
}

/// The reported use of a resource in the measure phase: busy units, number of units, and source.
pub(crate) fn reported(document: &Value, kind: &str) -> Option<(f64, u64, Value)> {
    let found = document["resources"]
        .as_array()?
        .iter()
        .find(|one| one["phase"] == "measure" && one["resource"] == kind)?;
    let number = |key: &str| found[key].as_f64().unwrap();
    let busy = number("busy_s") / number("duration_s");
    let device = found["disks"][0]["device"].clone();
    let mut by = found["reported"].clone();
    by["device"] = device;
    Some((busy, number("units") as u64, by))
}

#[track_caller]
fn assert_near(found: f64, expected: f64, share: f64) {
    let is_near = (found - expected).abs() <= share * expected;
    assert!(is_near, "{found} is not within {share} of {expected}");
}

/// Checks that the server's process was read in most of these runs, and that the disk was as busy as the exporter reported. If
/// too little of a short phase was seen, the run has no value.
#[track_caller]
fn assert_reported(verb: &str, runs: &[Value], fewest: usize) {
    assert!(runs.len() >= fewest, "{verb}: {} runs", runs.len());
    let mut known = 0;
    for run in runs {
        let node = run["sources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|source| source["name"] == "node")
            .unwrap();
        assert_eq!(node["of_server"], true, "{verb}: {node}");
        // This machine is read directly and needs no report.
        assert_eq!(reported(run, "server_host_cpu"), None);
        let both = reported(run, "server_cpu").zip(reported(run, "disk"));
        let Some(((server, _, by_server), (disk, disks, by_node))) = both else {
            continue;
        };
        known += 1;
        // The responder reports another CPU time itself.
        assert!(server > 0.0 && by_server["source"].is_null(), "{by_server}");
        assert_near(disk, DISK, LATE);
        assert_eq!((disks, &by_node["device"]), (1, &"vdb".into()));
    }
    assert!(known * 2 >= runs.len(), "{verb}: {known} of {} runs", runs.len());
}

/// Reads of few documents from this server, observed through this exporter.
fn watched<'a>(uri: &'a str, exporter: &'a str) -> Vec<&'a str> {
    let data = ["--records", "1000", "-p", "insertorder=ordered"];
    let length = ["--duration", "2s", "--warmup", "0s", "--out", "r"];
    let watching = ["--exporter", exporter, "--observe-interval", "300ms"];
    [&["--uri", uri][..], &data, &length, &watching].concat()
}

#[test]
fn experiments_read_exporters_and_server_reports() {
    // The server is slow so that searches do not load the machine.
    let responder = Responder::with_documents(&["--service-us", "2000"]);
    let (uri, exporter) = (scripted_server(&responder), scripted_exporter());
    let verbs: [(&str, usize); 8] = [
        ("run read --clients 2", 1),
        ("run read --clients 2 --repeat 2", 2),
        ("soak read --clients 2", 1),
        ("sweep read --clients 1,2", 2),
        ("sweep read --rates 50,100", 2),
        ("xmax read --max-clients 2 --repeat 1", 3),
        ("slo read --p99 100ms --clients 2 --resolution 30%", 2),
        ("ab read --clients 2 --set-b client.seed=2 --min-pairs 2 --max-pairs 2", 4),
    ];
    for (verb, fewest) in verbs {
        let bench = Bench::new();
        let words: Vec<&str> = verb.split(' ').collect();
        bench.dyno(&[&words[..], &watched(&uri, &exporter)].concat()).expect(0);
        assert_reported(verb, &runs_below(&bench.path("r")), fewest);
    }
}

#[test]
fn tune_reads_exporters_and_server_reports() {
    let responder = Responder::with_documents(&["--service-us", "2000"]);
    let (uri, exporter) = (scripted_server(&responder), scripted_exporter());
    let bench = Bench::new();
    let clients = "name = 'clients'\ngroup = 'own'\nkey = 'client.clients'\n";
    let values = "values = ['1', '2']\ndefault = '1'\n";
    let knobs = format!("[[knobs]]\n{clients}{values}");
    std::fs::write(bench.path("knobs.toml"), knobs).unwrap();
    let search = ["tune", "read", "--clients", "1", "--knobs", "./knobs.toml"];
    let child = bench.spawn(&[&search[..], &watched(&uri, &exporter)].concat());
    // Some runs use the initial settings, others the settings that the search tries.
    let runs = bench.path("r/runs");
    wait_for("seven runs", || runs.exists() && names(&runs).len() >= 7);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    let mut runs = runs_below(&bench.path("r"));
    runs.retain(|run| run["status"] == "complete");
    assert_reported("tune", &runs, 6);
}

/// Caveat codes of a run.
fn caveats(run: &Value) -> Vec<String> {
    run["caveats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|caveat| caveat["code"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn plan_selects_the_data_disks_of_an_exporter() {
    let responder = Responder::with_documents(&[]);
    let (uri, exporter) = (scripted_server(&responder), scripted_exporter());
    let (_, url) = exporter.split_once('=').unwrap();
    let run = |disk: &str| {
        let bench = Bench::new();
        let exporter = format!("name = \"node\"\nurl = \"{url}\"\ndisk = {disk}\n");
        let plan = format!("base = \"read\"\n[[observe.exporters]]\n{exporter}");
        std::fs::write(bench.path("plan.toml"), plan).unwrap();
        let load = ["run", "plan.toml", "--records", "1000", "-p", "insertorder=ordered"];
        let length = ["--duration", "2s", "--warmup", "0s", "--uri", &uri, "--format", "json"];
        let watching = ["--observe-interval", "300ms"];
        bench.dyno(&[&load[..], &length, &watching].concat()).expect(0).json()
    };
    let named = run("'vda'");
    let (busy, _, by) = reported(&named, "disk").unwrap();
    assert_near(busy, 0.9, LATE);
    assert_eq!(by["device"], "vda");
    assert!(!caveats(&named).contains(&"disk-of-data-unknown".to_owned()));
    // Members of an array count as separate disks.
    let members = run("['vdb', 'vda']");
    let (busy, units, _) = reported(&members, "disk").unwrap();
    assert_near(busy, 0.9 + DISK, LATE);
    assert_eq!(units, 2);
    assert!(!caveats(&members).contains(&"disk-of-data-unknown".to_owned()));
    // A missing disk is reported, and the busiest disk is used instead.
    let missing = run("'sdz'");
    assert_eq!(reported(&missing, "disk").unwrap().2["device"], "vda");
    let reported = caveats(&missing);
    for code in ["disk-of-data-unknown", "source-watched-in-part"] {
        assert!(reported.contains(&code.to_owned()), "{reported:?}");
    }
}

/// Busy CPUs, or CPU time of a process, in the measure phase, from a table that this program read itself.
fn own_reading(table: &MetricTable, id: &dyno_record::metrics::MetricId, run: &Value) -> f64 {
    let phase =
        run["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap();
    let start_s = phase["start_s"].as_f64().unwrap();
    let end_s = start_s + phase["duration_s"].as_f64().unwrap();
    let column = table.column(id).unwrap();
    let (mut busy_s, mut seen_s) = (0.0, 0.0);
    for (row, at_s) in table.at_s.iter().enumerate() {
        let begin_s = at_s - table.duration_s[row];
        let within_s = at_s.min(end_s) - begin_s.max(start_s);
        if within_s > 0.0 && column[row].is_finite() {
            busy_s += column[row] * within_s;
            seen_s += within_s;
        }
    }
    busy_s / seen_s
}

fn table(run: &Path, source: &str) -> MetricTable {
    let (tables, _) = read(run).unwrap();
    tables.into_iter().find(|table| table.source == source).unwrap()
}

fn document(run: &Path) -> Value {
    let text = std::fs::read_to_string(run.join("run.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn reported_server_cpu_time_matches_the_process() {
    let Some(server) = or_skip(mongod()) else {
        return;
    };
    let (bench, uri) = (Bench::new(), server.uri());
    let load = ["run", "c", "--records", "1000", "--clients", "4"];
    let length = ["--warmup", "1s", "--duration", "6s", "--out", "r"];
    let watching = ["--observe-interval", "200ms", "--uri", &uri];
    bench.dyno(&[&load[..], &length, &watching].concat()).expect(0);
    let run = document(&bench.path("r"));
    let (busy, _, by) = reported(&run, "server_cpu").unwrap();
    assert!(by["source"].is_null(), "{by}");
    let own = table(&bench.path("r"), "host");
    let of_process = own_reading(&own, &process::CPU_RATIO.of("server"), &run);
    assert!(of_process > 0.05, "{of_process}");
    assert_near(busy, of_process, 0.05);
    let reported = table(&bench.path("r"), "server");
    let parts = [server_cpu::USER_RATIO, server_cpu::SYSTEM_RATIO];
    let parts = parts.map(|part| own_reading(&reported, &part.of("server"), &run));
    assert_near(parts.iter().sum(), of_process, 0.05);
}

/// A host with its own network. Its programs end when it is dropped.
struct Machine {
    name: String,
    address: String,
    children: Vec<Child>,
}

fn ip(arguments: &str) {
    let words: Vec<&str> = arguments.split(' ').collect();
    let output = Command::new("ip").args(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {said}");
}

impl Machine {
    fn new() -> Machine {
        let number = std::process::id();
        let (name, link) = (format!("dyno-elsewhere-{number}"), format!("dye{}", number % 100_000));
        let network = format!("10.199.{}", number % 250);
        ip(&format!("netns add {name}"));
        let machine = Machine { address: format!("{network}.2"), children: Vec::new(), name };
        let name = &machine.name;
        ip(&format!("link add {link} type veth peer name eth0 netns {name}"));
        ip(&format!("address add {network}.1/30 dev {link}"));
        ip(&format!("link set {link} up"));
        ip(&format!("-n {name} address add {network}.2/30 dev eth0"));
        ip(&format!("-n {name} link set eth0 up"));
        machine
    }

    /// Starts a program on the host, and waits until it listens on the port.
    fn start(&mut self, program: &Path, arguments: &[&str], port: u16) {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        let child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.children.push(child);
        let address = (self.address.as_str(), port);
        let listens = || std::net::TcpStream::connect(address).is_ok();
        wait_for(&format!("port {port}"), listens);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for child in &mut self.children {
            signal(child, "TERM");
            let _ = child.wait();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Programs that the bench needs for a server on a separate machine.
fn programs() -> Option<[PathBuf; 2]> {
    let root = if is_root() { Ok(()) } else { Err(Skip::new("no root", "run it as root")) };
    or_skip(root)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places =
        std::env::split_paths(&path).map(|folder| folder.join("prometheus-node-exporter"));
    let exporter = places.find(|path| path.is_file());
    let missing = Skip::new("no `prometheus-node-exporter`", "run `scripts/setup.sh test`");
    Some([or_skip(mongod_program())?, or_skip(exporter.ok_or(missing))?])
}

/// Name of the CPU demand of the server's machine.
const SERVER_MACHINE: &str = "all CPUs of the server's machine";

#[test]
fn remote_server_demands_match_its_exporter() {
    let Some([mongod, exporter]) = programs() else {
        return;
    };
    let (bench, mut machine) = (Bench::new(), Machine::new());
    let (address, data) = (machine.address.clone(), bench.path("data"));
    std::fs::create_dir(&data).unwrap();
    let log = bench.path("mongod.log");
    let places = ["--dbpath", data.to_str().unwrap(), "--logpath", log.to_str().unwrap()];
    let small = ["--wiredTigerCacheSizeGB", "0.25", "--port", "27017", "--bind_ip", &address];
    machine.start(&mongod, &[&places[..], &small].concat(), 27017);
    let listen = format!("--web.listen-address={address}:9100");
    machine.start(&exporter, &[&listen], 9100);
    // Writes wait for the disk, so that the disk has work.
    let uri = format!("mongodb://{address}/?journal=true");
    let node = format!("node=http://{address}:9100/metrics");
    let load = ["run", "a", "--records", "1000", "--clients", "4", "--uri", &uri];
    let length = ["--warmup", "1s", "--duration", "8s", "--out", "r", "--format", "json"];
    let other = scripted_exporter().replace("node=", "other=");
    let watching = ["--observe-interval", "200ms", "--exporter", &node, "--exporter", &other];
    let run = bench.dyno(&[&load[..], &length, &watching].concat()).expect(0).json();

    // The exporter sees the whole machine, which is this one.
    let own = table(&bench.path("r"), "host");
    let whole = own_reading(&own, &cpu::ALL_BUSY_RATIO.id(), &run);
    let (busy, cpus, by) = reported(&run, "server_host_cpu").unwrap();
    assert_eq!((&by["source"], by["machine"].as_str()), (&"node".into(), Some(address.as_str())));
    assert_near(busy, whole * cpus as f64, 0.05);
    // The process is a part of the machine.
    let (process, _, by) = reported(&run, "server_cpu").unwrap();
    assert_eq!(
        (&by["source"], by["machine"].as_str()),
        (&"serverStatus".into(), Some(address.as_str()))
    );
    assert!(process > 0.02 && process < busy, "{process} of {busy}");
    // Its disk is a part too: this program has read it as a disk of the machine.
    let (on_disk, disks, by) = reported(&run, "disk").unwrap();
    let device = by["device"].as_str().unwrap();
    let own_disk = own_reading(&own, &disk::UTILIZATION_RATIO.of(device), &run);
    assert!(disks == 1 && own_disk > 0.05, "{own_disk} of {by}");
    assert_near(on_disk, own_disk, 0.05);
    // The plan does not say what the exporter at the other address observes.
    let unknown = run["caveats"].as_array().unwrap().iter();
    let mut unknown = unknown.filter(|caveat| caveat["code"] == "exporter-of-unknown-machine");
    assert_eq!(unknown.next().unwrap()["values"]["source"], "other");
    assert!(unknown.next().is_none());

    let stations = |run: &Value| -> Vec<String> {
        run["analysis"]["stations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    // The exporter's machine data, in the record and on the page.
    let (machine, environment) = (&run["server"]["machine"], &run["environment"]);
    assert_eq!(machine["kernel"], environment["kernel"], "{machine}");
    assert_eq!(machine["hostname"], environment["hostname"], "{machine}");
    assert!(machine["cpus"].as_u64() >= Some(1), "{machine}");
    let memory = |of: &Value| of["memory_bytes"].as_f64().unwrap();
    assert_near(memory(machine), memory(environment), 0.05);
    let page = bench.dyno(&["report", "r", "--full"]).expect(0).stdout;
    assert!(page.contains("Machine of "), "{page}");

    let analysis = &run["analysis"];
    assert_eq!(stations(&run)[..2], ["server CPU", "client CPU"]);
    // Demands of an operation, from our own readings and the rate.
    let phase =
        run["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap();
    let rate_per_s = phase["achieved_rate_per_s"].as_f64().unwrap();
    let demands = analysis["figures"]["demands"].as_array().unwrap();
    for (name, busy) in [(SERVER_MACHINE, whole * cpus as f64), ("disk", own_disk)] {
        let demand = demands.iter().find(|demand| demand["name"] == name);
        let demand = demand.unwrap_or_else(|| panic!("{name}: {demands:?}"));
        assert_near(demand["demand_s"].as_f64().unwrap(), busy / rate_per_s, 0.05);
    }
    assert!(analysis["bottleneck"]["bound_per_s"].as_f64().unwrap() > 0.0);
    assert!(!analysis["verdict"]["headline"]["text"].as_str().unwrap().is_empty());
    // Without a report by the server, the machine's value is used.
    let blind = ["--no-observe", "--exporter", &node, "--no-load"];
    let length = ["--warmup", "1s", "--duration", "4s", "--out", "b", "--format", "json"];
    let run = bench.dyno(&[&load[..], &length, &blind].concat()).expect(0).json();
    assert_eq!(reported(&run, "server_cpu"), None);
    assert_eq!(stations(&run)[0], SERVER_MACHINE);
    assert!(run["analysis"]["bottleneck"].is_object());
}
