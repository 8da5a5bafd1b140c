//! Several servers in one run: together, one by one, and if one of them dies.

use crate::common::lab::Lab;
use crate::common::{Bench, Finished, processes_with, run_schema, wait_for, wait_for_windows};
use dyno_testkit::{embedded_program, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "run",
        "90read10update",
        "--pairs",
        "2",
        "--records",
        "1000",
        "--clients",
        "4",
        "--warmup",
        "0s",
        "--out",
        "r",
    ];
    [&fixed[..], more].concat()
}

fn measure(phases: &Value) -> &Value {
    phases.as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap()
}

/// The log that a client of the Workload Services Framework would have printed.
fn log_of(bench: &Bench, server: usize) -> String {
    let export = ["export", "r", "--to", "wsf-logs", "--output", "logs"];
    bench.dyno(&export).expect(0);
    let log = bench.path(&format!("logs/benchmark-{server}/output.logs"));
    std::fs::read_to_string(log).unwrap()
}

/// Successful operations of the measure phase, by the start of their window.
fn succeeded(run: &Path) -> BTreeMap<u64, u64> {
    let text = std::fs::read_to_string(run.join("series/intervals.csv")).unwrap();
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|cells| cells[place("phase")] == "measure")
        .map(|cells| {
            let number = |name: &str| cells[place(name)].parse().unwrap();
            (number("start_ns"), number("succeeded"))
        })
        .collect()
}

#[test]
fn paired_servers_are_reported_together_and_separately() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let document = bench.dyno(&run(&["--duration", "3s", "--format", "json"])).expect(0).json();
    run_schema().validate(&document).unwrap_or_else(|error| panic!("{error}"));
    let instances = document["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 2);
    assert_ne!(instances[0]["server"]["address"], instances[1]["server"]["address"]);
    assert_eq!(document["server"]["documents"], 2000);
    let rate = |phase: &Value| phase["achieved_rate_per_s"].as_f64().unwrap();
    let parts: f64 = instances.iter().map(|instance| rate(measure(&instance["phases"]))).sum();
    let whole = rate(measure(&document["phases"]));
    assert!((whole / parts - 1.0).abs() < 1e-9, "{whole} against {parts}");
    // The figures of the whole run and the demands of both servers are merged as well.
    let figures = &document["analysis"]["figures"];
    assert_eq!(figures["clients"], 8);
    let server =
        figures["demands"].as_array().unwrap().iter().find(|one| one["name"] == "server CPU");
    let demand_s = server.unwrap()["demand_s"].as_f64().unwrap();
    assert!(demand_s > 0.0);
    assert!(document["analysis"]["bottleneck"]["bound_per_s"].as_f64().unwrap() > 0.0);
    // For a single instance only the client's part is known.
    let one = ["report", "r/instances/1", "--format", "json"];
    let one = bench.dyno(&one).expect(0).json();
    assert!(
        one["analysis"]["findings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|finding| finding["code"] == "server-not-watched"),
        "{}",
        one["analysis"]
    );
    // The sum holds in every window, not only in total.
    let merged = succeeded(&bench.path("r"));
    let of = |number: &str| succeeded(&bench.path("r/instances").join(number));
    let (first, second) = (of("0"), of("1"));
    for (start_ns, count) in &merged {
        assert_eq!(*count, first[start_ns] + second[start_ns]);
    }
    assert!(!bench.path("r/server-data").exists());
    assert_eq!(processes_with(bench.path("r").to_str().unwrap()), Vec::<u32>::new());
    bench
        .dyno(&["report", "r/instances/1"])
        .expect(0)
        .stdout
        .contains("complete")
        .then_some(())
        .unwrap();
    // A batch of documents is not an insert, and the log for scripts does not call it one.
    let log = log_of(&bench, 1);
    assert!(log.starts_with("JOB_INDEX is 1\n"), "{log}");
    assert!(log.contains("[INSERT BATCH OF 100], Avera"), "{log}");
    assert!(!log.contains("[INSERT]"), "{log}");
    let one = ["export", "r/instances/1", "--to", "wsf-logs", "--output", "one"];
    let run = bench.path("r").canonicalize().unwrap();
    bench.dyno(&one).expect(2).says(&format!("`{}`", run.display()));
    assert!(!bench.path("one").exists());
    let whole = bench.dyno(&["report", "r", "--full"]).expect(0).stdout;
    assert!(whole.contains("Instances") && whole.contains("merged histograms"));
}

#[test]
fn killed_server_of_a_pair_is_named_and_the_record_is_kept() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let mut child = bench.spawn(&run(&["--duration", "10m"]));
    wait_for_windows(&mut child, &bench.path("r"), 3);
    let data = bench.path("r/server-data/pair-1");
    let server = *processes_with(data.to_str().unwrap())
        .iter()
        .find(|process| {
            std::fs::read_to_string(format!("/proc/{process}/comm"))
                .is_ok_and(|name| name.starts_with("secantusd"))
        })
        .unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &server.to_string()]).status();
    assert!(killed.unwrap().success());
    Finished::from(child.wait_with_output().unwrap())
        .expect(3)
        .says("instance 1")
        .says("(signal: 9")
        .says("last output");
    let place = bench.path("r/server-data");
    wait_for("the end of all servers", || processes_with(place.to_str().unwrap()).is_empty());
    assert!(!place.exists());
    let document = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "failed");
    assert_eq!(document["instances"].as_array().unwrap().len(), 2);
    bench.dyno(&["report", "r/instances/0"]).expect(0);
    let log = log_of(&bench, 0);
    assert!(log.starts_with("INCOMPLETE: "), "{log}");
    assert!(log.ends_with("YCSB run failed\n"), "{log}");
}

#[test]
fn running_servers_cannot_be_pairs() {
    Bench::new().dyno(&["run", "a", "--pairs", "2", "--uri", "mongodb://127.0.0.1:1/"]).expect(2);
    Bench::new().dyno(&["run", "a", "--pairs", "0"]).expect(2);
}

#[test]
fn servers_are_put_on_their_cpus_and_the_record_says_so() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = allowed.trim().split([',', '-']).next().unwrap().to_owned();
    let placement = format!("cores={first} client=none");
    let bench = Bench::new();
    let fixed = ["run", "read", "--records", "500", "--warmup", "0s", "--operations", "2000"];
    let more = ["--placement", &placement, "--format", "json", "--out", "r"];
    let document = bench.dyno(&[&fixed[..], &more].concat()).expect(0).json();
    run_schema().validate(&document).unwrap_or_else(|error| panic!("{error}"));
    let threads = document["placement"]["achieved"][0]["threads"].as_array().unwrap();
    assert!(threads.iter().all(|group| group["cpus"] == first.as_str()), "{threads:?}");
    assert!(
        document["caveats"]
            .as_array()
            .unwrap()
            .iter()
            .all(|caveat| caveat["kind"] != "server_setting")
    );
}

#[test]
fn impossible_placement_is_refused_before_anything_starts() {
    let bench = Bench::new();
    bench.dyno(&["run", "a", "--placement", "spred", "--out", "r"]).expect(2);
    bench
        .dyno(&["run", "a", "--pairs", "64", "--placement", "cores-per-instance=64", "--out", "r"])
        .expect(2)
        .says("hint:");
    assert!(!bench.path("r").exists());
    let picture = bench.dyno(&["server", "plan", "--pairs", "2"]).expect(0);
    assert!(picture.stdout.contains("node 0"), "{}", picture.stdout);
    assert!(picture.stdout.contains("`pair-1`: "), "{}", picture.stdout);
}

#[test]
fn server_plan_shows_the_servers_a_start_would_create() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let lab = Lab::new("7.0.14");
    let bench = &lab.bench;
    let shown = |more: &[&str]| {
        let fixed = ["server", "plan"];
        bench.dyno(&[&fixed[..], more].concat()).expect(0).stdout
    };
    let alone = shown(&["--server", "embedded"]);
    let cache = alone.lines().find(|line| line.contains("`server`"));
    assert!(cache.unwrap().contains("secantusd-rs"), "{alone}");
    let set = ["--topology", "replica-set=2+1", "--mongod", &lab.mongod];
    let set = shown(&[&set[..], &["--set", "server.cache=300MiB"]].concat());
    assert!(set.contains("`member-1`: 300 MiB"), "{set}");
    assert!(set.contains("`arbiter-0`: 256 MiB"), "{set}");
    let given = shown(&["--pairs", "2", "--cache", "100MiB"]);
    assert!(given.contains("`pair-1`: 100 MiB"), "{given}");
    std::fs::write(bench.path("lab.toml"), "base = \"a\"\n[server]\npairs = 3\n").unwrap();
    let plan = shown(&["lab.toml"]);
    assert!(plan.contains("`pair-2`"), "{plan}");
}

#[test]
fn server_status_reports_the_placement() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    bench.dyno(&["server", "start", "--placement", "cores=0"]).expect(0);
    let state = bench.dyno(&["server", "status", "--format", "json"]);
    let human = bench.dyno(&["server", "status"]);
    bench.dyno(&["server", "stop"]).expect(0);
    let placement = &state.expect(0).json()["placement"];
    assert!(placement["request"].as_str().unwrap().contains("cores=0"));
    assert_eq!(placement["achieved"].as_array().unwrap().len(), 1);
    assert_eq!(placement["deviations"], serde_json::json!([]));
    assert!(human.expect(0).stdout.contains("cores=0"));
}
