//! A real `mongod` that is already running on its own host, and an agent there that only reads.

use super::*;
use dyno_record::metrics::{MetricId, read};
use std::time::{Duration, SystemTime};

/// CPU times, with the instants at which they were read.
type CpuTimes = Vec<(SystemTime, f64)>;

/// CPU time of a process in seconds, from `/proc`.
fn cpu_time_s(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(')').unwrap();
    let ticks = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|word| word.parse::<u64>().unwrap()).sum();
    ticks as f64 / 100.0
}

/// CPU time used between two instants.
fn between_s(times: &CpuTimes, from: SystemTime, to: SystemTime) -> f64 {
    let at = |wanted: SystemTime| {
        let next = times.iter().position(|(at, _)| *at > wanted).unwrap();
        let [(a, a_s), (b, b_s)] = [times[next - 1], times[next]];
        let share =
            wanted.duration_since(a).unwrap().div_duration_f64(b.duration_since(a).unwrap());
        a_s + (b_s - a_s) * share
    };
    at(to) - at(from)
}

/// Use of a resource in the measure phase.
fn measured<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let found = document["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["phase"] == "measure" && one["resource"] == kind);
    found.unwrap_or_else(|| panic!("no {kind}: {}", document["resources"]))
}

/// CPU time in the measure phase as the server reported it.
fn reported_s(run: &Path, from_s: f64, to_s: f64) -> f64 {
    let (tables, _) = read(run).unwrap();
    let table = tables.iter().find(|table| table.source == "server").unwrap();
    let columns = ["user_ratio", "system_ratio"].map(|name| {
        let id = MetricId::parse(&format!("server_cpu.server.{name}")).unwrap();
        table.column(&id).unwrap()
    });
    let rows = table.at_s.iter().zip(&table.duration_s).enumerate();
    let of_row = |(row, (at_s, duration_s)): (usize, (&f64, &f64))| {
        let within_s = at_s.min(to_s) - (at_s - duration_s).max(from_s);
        let cpus: f64 = columns.iter().map(|column| column[row]).sum();
        if cpus.is_finite() { cpus * within_s.max(0.0) } else { 0.0 }
    };
    rows.map(of_row).sum()
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let is_near = (found - expected).abs() <= 0.05 * expected;
    assert!(is_near, "{found} is not within 5 % of {expected}");
}

#[test]
fn running_server_is_read_by_an_agent_on_its_host() {
    let Some((hosts, program)) = Hosts::with_mongod("watched") else {
        return;
    };
    let address = std::fs::read_to_string(hosts.folder.join("server1/address")).unwrap();
    let address = address.trim();
    let data = hosts.bench.path("data");
    std::fs::create_dir(&data).unwrap();
    let start = format!(
        "{program} --dbpath {} --logpath {} --bind_ip {address} --wiredTigerCacheSizeGB 0.25 --fork",
        data.display(),
        hosts.bench.path("mongod.log").display()
    );
    let started = hosts.ssh("server1", &start);
    assert!(started.status.success(), "{}", text(&started));
    let [process] = processes_with(data.to_str().unwrap())[..] else {
        panic!("it does not run");
    };
    let uri = format!("mongodb://{address}:27017/");
    let aimed = ["--uri", &uri, "--set", "fleet.mapping=deployment"];
    let clients = ["--set", "fleet.clients=[\"client1\"]"];
    let both = hosts.run("run", &[&aimed[..], &clients, &["--out", "both"]].concat());
    both.expect(2).says("`fleet.servers`").says("`server2`").says(&format!("{address}:27017"));

    let one = ["--set", "fleet.servers=[\"server1\"]"];
    let more = ["--rate", "2000", "--observe-interval", "200ms"];
    let out = ["--out", "watched"];
    let mut child = hosts.spawn("run", &[&aimed[..], &clients, &one, &more, &out].concat());
    let mut times = CpuTimes::new();
    while child.try_wait().unwrap().is_none() {
        times.push((SystemTime::now(), cpu_time_s(process)));
        std::thread::sleep(Duration::from_millis(20));
    }
    // The server keeps running after the run, which has not started it.
    times.push((SystemTime::now(), cpu_time_s(process)));
    Finished::from(child.wait_with_output().unwrap()).expect(0);
    hosts.assert_clean();

    let run = hosts.bench.path("watched");
    let document = document(&run);
    assert!(crate::common::run_schema().is_valid(&document));
    let started: jiff::Timestamp = document["started_at"].as_str().unwrap().parse().unwrap();
    let measure = phase(&document["phases"], "measure");
    let from_s = measure["start_s"].as_f64().unwrap();
    let to_s = from_s + measure["duration_s"].as_f64().unwrap();
    let at = |offset_s| SystemTime::from(started) + Duration::from_secs_f64(offset_s);
    let cpu = measured(&document, "server_cpu");
    let busy_s = cpu["busy_s"].as_f64().unwrap();
    assert_near(busy_s, between_s(&times, at(from_s), at(to_s)));
    assert_near(busy_s, reported_s(&run, from_s, to_s));
    assert_eq!(cpu["reported"]["machine"], "server1");
    let disk = &measured(&document, "disk")["disks"][0];
    assert!(disk["device"].is_string() && disk["host"] == "server1", "{disk}");
    let server = &document["fleet"]["servers"][0];
    assert_eq!(server["address"], format!("{address}:27017"));
    assert!(server["environment"]["data_storage"].is_object(), "{server}");
    // The server's version and options were read from the server itself: checks depend on them.
    for check in ["huge_pages", "bind_address"] {
        let verdict = server["environment"]["doctor"]
            .as_array()
            .unwrap()
            .iter()
            .find(|verdict| verdict["check"] == check)
            .unwrap();
        assert_ne!(verdict["level"], "unknown", "{verdict}");
    }
    // The data folder was read from the server, and everything was measured.
    let source = document["sources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|source| source["name"] == "host-server1")
        .unwrap();
    assert!(source["of_server"] == true && source["health"] == "healthy", "{source}");
    let report = hosts.bench.dyno(&["report", "watched", "--format", "json"]);
    let analysis = &report.json()["analysis"];
    let demands = analysis["figures"]["demands"].to_string();
    assert!(demands.contains("\"server CPU\"") && demands.contains("\"disk\""), "{demands}");
    assert!(analysis["bottleneck"]["demand"]["name"].is_string(), "{analysis}");
    // An operation's costs equal its demands.
    let used = document["consumption"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["phase"] == "measure")
        .unwrap();
    assert_eq!(used["server_cpu_s"].as_f64(), Some(busy_s));
    assert_eq!(used["every_s"], 0.2);
    let costs = analysis["figures"]["costs"]["values"].as_array().unwrap();
    let cost_us = |kind: &str| {
        let cost = costs.iter().find(|cost| cost["kind"] == kind).unwrap();
        cost["value"]["value"].as_f64().unwrap()
    };
    let operations = measure["succeeded"].as_f64().unwrap();
    assert_near(cost_us("server_cpu_us"), busy_s * 1e6 / operations);
    assert!(cost_us("device_written_bytes") >= 0.0);
}
