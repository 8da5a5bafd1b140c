//! Checks the rate bound when server and client share all, some or no CPUs, with and without a quota, against the CPUs and quotas
//! that the test allows.

use crate::common::{Bench, Finished, Responder, control};
use bson::{Document, doc};
use dyno_testkit::fault::{CpuQuota, is_root};
use dyno_testkit::{Skip, mongod, mongod_with, or_skip};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// CPUs of the server and of the client.
const PLACES: [[&str; 2]; 4] = [["0", "0"], ["0", "1"], ["0-1", "1"], ["0-1", "0-1"]];

fn count(cpus: &str) -> f64 {
    match cpus {
        "0-1" => 2.0,
        _ => 1.0,
    }
}

fn place(process: u32, cpus: &str) {
    let number = process.to_string();
    let placed = Command::new("taskset").args(["-apc", cpus, &number]).output();
    assert!(placed.unwrap().status.success());
}

/// Reads from one worker thread for two seconds, limited to these CPUs.
fn run(bench: &Bench, cpus: &str, uri: &str, out: &str, more: &[&str]) -> Finished {
    let dyno = env!("CARGO_BIN_EXE_dyno");
    let pinned = ["-c", cpus, dyno, "run", "read", "--uri", uri, "--out", out];
    let short = [
        "-p",
        "insertorder=ordered",
        "--records",
        "1000",
        "--warmup",
        "0s",
        "--duration",
        "2s",
        "--clients",
        "8",
        "--threads",
        "1",
        "--format",
        "json",
    ];
    let all = [&pinned[..], &short, more].concat();
    let output = bench.command_of(Path::new("taskset"), &all).output();
    Finished::from(output.unwrap()).expect(0)
}

fn demand(analysis: &Value, name: &str) -> f64 {
    let mut found = analysis["figures"]["demands"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|demand| demand["name"] == name);
    found.next().unwrap()["demand_s"].as_f64().unwrap()
}

/// Checks that the bound is the lowest of three: the server's CPUs, the client's CPUs, and all of them together.
#[track_caller]
fn check(document: &Value, [server, client]: [&str; 2], quota: Option<f64>) {
    let analysis = &document["analysis"];
    let [of_server, of_client] = ["server CPU", "client CPU"].map(|name| demand(analysis, name));
    let server_cpus = quota.unwrap_or(f64::INFINITY).min(count(server));
    let mut truth = (server_cpus / of_server).min(1.0 / of_client);
    if (server, client) != ("0", "1") {
        let both = if server == client { count(server) } else { 2.0 };
        truth = truth.min(both / (of_server + of_client));
    }
    let bound = analysis["bottleneck"]["bound_per_s"].as_f64().unwrap();
    assert!((bound / truth - 1.0).abs() < 0.01, "{bound} and not {truth}: {analysis}");
    let recorded = &document["environment"];
    assert_eq!(recorded["allowed_cpus"]["cpus"], client);
    let machine = recorded["machine_cpus"].as_u64().unwrap();
    assert!(machine >= 2, "{recorded}");
    let resources = document["resources"].as_array().unwrap().iter();
    let mut resources = resources.filter(|one| one["resource"] == "server_cpu");
    let allowed = &resources.next_back().unwrap()["allowed"];
    assert_eq!(allowed["cpus"], server);
    assert_eq!(allowed["quotas"][0]["cpus"].as_f64(), quota);
    let reached = analysis["bottleneck"]["reached_ratio"].as_f64().unwrap();
    assert!(reached < 1.15, "{reached}: {analysis}");
    let verdict = analysis["verdict"]["causes"][0]["cause"].as_str();
    let mut bottleneck =
        analysis["findings"].as_array().unwrap().iter().filter(|one| one["code"] == "bottleneck");
    let said = &bottleneck.next().unwrap()["values"];
    let is_of_cpu = ["cpu_throttled", "server_cpu", "shared_cpu", "noisy_neighbour"];
    let is_nothing_near = said["is_near"] == false
        && said["used_up"].is_null()
        && said["is_beside_verdict"].is_null();
    let names_cpu = verdict.is_some_and(|cause| is_of_cpu.contains(&cause));
    assert!(!(names_cpu && is_nothing_near), "{said}, {verdict:?}");
}

/// Tries all placements of a server in turn under this quota.
fn check_places(process: u32, uri: &str, quota: Option<f64>, more: &[&str]) {
    let bench = Bench::new();
    let mut limited = None;
    if let Some(cpus) = quota {
        let group = CpuQuota::new(&[process], cpus);
        let none = |_| Skip::new("control groups limit no CPU time here", "use a group with `cpu`");
        limited = or_skip(group.map_err(none));
        if limited.is_none() {
            return;
        }
    }
    for (number, [server, client]) in PLACES.into_iter().enumerate() {
        place(process, server);
        let out = format!("run-{number}");
        let ran = run(&bench, client, uri, &out, more);
        check(&ran.json(), [server, client], quota);
    }
    drop(limited);
}

fn two_cpus() -> Result<(), Skip> {
    match std::thread::available_parallelism().map_or(1, usize::from) {
        1 => Err(Skip::new("one CPU", "run on a machine with two")),
        _ => Ok(()),
    }
}

fn root() -> Result<(), Skip> {
    is_root().then_some(()).ok_or(Skip::new("no root", "run as root"))
}

#[test]
fn the_bound_follows_the_cpus_of_a_responder_and_the_client() {
    if or_skip(two_cpus()).is_some() {
        let responder = Responder::with_documents(&[]);
        check_places(responder.process(), &responder.uri(), None, &[]);
    }
}

// The placements run one after the other because there is only one control group.
#[test]
fn the_bound_follows_the_quota_of_a_server() {
    if or_skip(two_cpus().and(root())).is_none() {
        return;
    }
    let responder = Responder::with_documents(&[]);
    check_places(responder.process(), &responder.uri(), Some(0.2), &[]);
    if let Some(server) = or_skip(mongod()) {
        check_places(server.pid(), &server.uri(), Some(0.3), &["--fresh"]);
    }
}

#[test]
fn the_bound_follows_the_cpus_of_a_mongod_and_the_client() {
    if or_skip(two_cpus()).is_some()
        && let Some(server) = or_skip(mongod())
    {
        check_places(server.pid(), &server.uri(), None, &["--fresh"]);
    }
}

#[test]
fn server_cpu_is_known_to_a_user_without_server_status() {
    let Some(server) = or_skip(mongod_with(|options| options.plan.auth = true)) else {
        return;
    };
    let address = server.address();
    let add = |uri: &str, user: &str, role: Document| {
        let command = doc! { "createUser": user, "pwd": "p", "roles": [role] };
        control(uri).run("admin", command).unwrap();
    };
    let root = doc! { "role": "root", "db": "admin" };
    add(&server.uri(), "root", root);
    let write = doc! { "role": "readWrite", "db": "bench" };
    add(&format!("mongodb://root:p@{address}/"), "app", write);
    let bench = Bench::new();
    let uri = format!("mongodb://app:p@{address}/bench?authSource=admin");
    let short = ["--records", "300", "--warmup", "0s", "--duration", "6s", "--clients", "1"];
    let run = [&["run", "a", "--format", "json", "--out", "r"][..], &short].concat();
    let mut command = bench.command(&run);
    let ran = Finished::from(command.env("DYNO_URI", uri).output().unwrap());
    let document = ran.expect(0).json();
    let analysis = &document["analysis"];
    let server_s = demand(analysis, "server CPU");
    // The costs and the demands are read from the same process.
    let costs = analysis["figures"]["costs"].to_string();
    assert!(server_s > 0.0 && costs.contains("cpu"), "{costs}");
    assert!(analysis["bottleneck"].is_object(), "{analysis}");
    let codes: Vec<&str> = analysis["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["code"].as_str())
        .collect();
    assert!(!codes.contains(&"server-not-watched"), "{codes:?}");
    let unknown = analysis["verdict"]["not_watched"].to_string();
    assert!(!unknown.contains("server_cpu"), "{unknown}");
}
