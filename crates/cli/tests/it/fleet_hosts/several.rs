//! Several servers on one host: each has CPUs, clients and a record of its own.

use super::*;

/// The figures of all servers make up those of the run, phase by phase.
fn assert_servers_make_up_the_whole(document: &Value) {
    for name in ["load", "measure"] {
        let merged = phase(&document["phases"], name);
        let instances = document["instances"].as_array().unwrap().iter();
        let own: Vec<&Value> = instances.map(|one| phase(&one["phases"], name)).collect();
        let sum = |figure: &str| -> u64 {
            let figures = own.iter().map(|one| one.pointer(figure).unwrap());
            figures.map(|figure| figure.as_u64().unwrap()).sum()
        };
        for figure in ["/succeeded", "/failed"] {
            let all = merged.pointer(figure).unwrap().as_u64().unwrap();
            assert_eq!(sum(figure), all, "{name} {figure}");
        }
        for operation in merged["operations"].as_object().unwrap().keys() {
            let figure = format!("/operations/{operation}/count");
            let all = merged.pointer(&figure).unwrap().as_u64().unwrap();
            assert_eq!(sum(&figure), all, "{name} {figure}");
        }
        let rate = |one: &Value| one["achieved_rate_per_s"].as_f64().unwrap();
        let rates: f64 = own.iter().map(|one| rate(one)).sum();
        // Servers load for as long as each takes.
        if name == "measure" {
            assert!((rates / rate(merged) - 1.0).abs() < 0.01, "{rates}");
        }
    }
}

/// The value of the only line of key figures with this label.
fn figure(text: &str, label: &str) -> f64 {
    let lines = text.lines().filter_map(|line| line.strip_prefix(label));
    let values: Vec<f64> = lines
        .map(|rest| rest.trim_start_matches(':').trim().parse().unwrap())
        .collect();
    assert_eq!(values.len(), 1, "{label}: {text}");
    values[0]
}

#[test]
fn each_server_of_a_host_has_its_place_and_figures() {
    let Some(hosts) = Hosts::up("several") else {
        return;
    };
    let variables = [
        (
            "TESTCASE",
            "test_static_ycsb_mongodb604_base_90read10update",
        ),
        ("CLIENT_SERVER_PAIR", "2"),
        ("CLIENT_COUNT", "2"),
        ("THREADS", "3"),
        ("TARGET", "150"),
        ("RECORD_COUNT", "1500"),
        ("MAX_EXECUTION_TIME", "4"),
        ("NUMACTL_OPTION", "2"),
        ("CORES", "0,1"),
        ("YCSB_CORES", "0"),
    ];
    // The inventory has two hosts of servers, and the workload one worker.
    let worker = r#"fleet.servers=["server1"]"#;
    let words = [
        "run", "--wsf", "--warmup", "1s", "--set", worker, "--out", "r",
    ];
    let mut command = hosts.command(&[&words[..], &["--format", "kpi"]].concat());
    let ended = Finished::from(command.envs(variables).output().unwrap()).expect(0);
    let document = document(&hosts.bench.path("r"));
    assert!(crate::common::run_schema().is_valid(&document));
    let fleet = &document["fleet"];
    assert_eq!(fleet["mapping"], "pairs");
    let servers = fleet["servers"].as_array().unwrap();
    let on: Vec<&str> = servers
        .iter()
        .map(|one| one["host"].as_str().unwrap())
        .collect();
    assert_eq!(on, ["server1", "server1"]);
    let cpus = |one: &Value| one["cpus"].as_u64().unwrap();
    let all: u64 = servers.iter().map(cpus).sum();
    assert_eq!(
        all,
        servers[0]["environment"]["cpus"].as_u64().unwrap_or(all)
    );
    let placement = &servers[0]["placement"];
    assert!(
        placement["request"].as_str().unwrap().contains("cores=0-1"),
        "{placement}"
    );
    let places = placement["instances"].as_array().unwrap();
    let achieved = placement["achieved"].as_array().unwrap();
    assert_eq!((places.len(), achieved.len()), (2, 2), "{placement}");
    for (place, cpu) in places.iter().zip(["0@", "1@"]) {
        assert!(place.as_str().unwrap().starts_with(cpu), "{place}");
    }
    assert_ne!(achieved[0], achieved[1], "{placement}");
    let doubts = document["caveats"].as_array().unwrap().iter();
    let placed_otherwise = |caveat: &&Value| caveat["code"] == "instance-placed-otherwise";
    assert_eq!(doubts.filter(placed_otherwise).count(), 0, "{document}");
    assert_servers_make_up_the_whole(&document);
    // 150/s on each server.
    let measure = phase(&document["phases"], "measure");
    assert_eq!(measure["offered_rate_per_s"], 300.0);
    assert_eq!(
        document["instances"][1]["phases"][2]["offered_rate_per_s"],
        150.0
    );
    // Each has a data set of its own, which one client loaded.
    for instance in document["instances"].as_array().unwrap() {
        assert_eq!(instance["server"]["documents"], 1500);
        let clients = format!("r/{}/run.json", instance["directory"].as_str().unwrap());
        let own: Value =
            serde_json::from_slice(&std::fs::read(hosts.bench.path(&clients)).unwrap()).unwrap();
        assert_eq!(own["plan"]["client"]["clients"], 3);
    }
    let kpi = &ended.stdout;
    let sum = figure(kpi, "*Sum of [RUN PHASE] Throughput(ops/sec)");
    let mean = figure(kpi, "Mean of [RUN PHASE] Throughput(ops/sec)");
    let rate = measure["achieved_rate_per_s"].as_f64().unwrap();
    assert!((sum / rate - 1.0).abs() < 1e-9, "{kpi}");
    assert!((2.0 * mean / sum - 1.0).abs() < 0.01, "{kpi}");
    assert_eq!(kpi.matches("Counter of [RUN PHASE]").count(), 2, "{kpi}");
    assert!(kpi.contains("Agent 1 on client2: "), "{kpi}");
    hosts.assert_clean();
}

/// What a host says of a file of the kernel.
fn kernel(hosts: &Hosts, host: &str, file: &str) -> String {
    text(&hosts.ssh(host, &format!("cat {file}")))
        .trim()
        .to_owned()
}

const MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// The default of the kernel, which the doctor advises against; what was there before comes back when this is dropped.
struct LowMapCount(String);

impl LowMapCount {
    fn set() -> Self {
        let before = std::fs::read_to_string(MAP_COUNT).unwrap();
        std::fs::write(MAP_COUNT, "65530").unwrap();
        LowMapCount(before)
    }
}

impl Drop for LowMapCount {
    fn drop(&mut self) {
        let _ = std::fs::write(MAP_COUNT, self.0.trim());
    }
}

#[test]
fn settings_of_the_hosts_of_servers_come_back_whatever_ends_the_run() {
    let Some(hosts) = Hosts::up("settings") else {
        return;
    };
    let card = text(&hosts.ssh("server1", "ls /sys/class/net"));
    let card = card
        .split_whitespace()
        .find(|name| *name != "lo")
        .unwrap()
        .to_owned();
    let queue = format!("/sys/class/net/{card}/queues/rx-0/rps_cpus");
    let _low = LowMapCount::set();
    let of_host = || {
        (
            kernel(&hosts, "server1", &queue),
            kernel(&hosts, "server1", MAP_COUNT),
        )
    };
    let before = of_host();
    let words = [
        "--set",
        r#"fleet.servers=["server1"]"#,
        "--set",
        "server.receive_packet_steering=auto=0",
        "--apply",
        "max_map_count",
    ];
    let run = |name: &str| {
        let mut child = hosts.spawn("run", &[&words[..], &["--out", name]].concat());
        hosts.wait_for_load(&hosts.bench.path(name), &mut child);
        let during = of_host();
        assert!(
            during.0.ends_with('1') && during.1 == "128000",
            "{during:?}"
        );
        child
    };
    // In order; the record has what was set.
    let ended = Finished::from(run("whole").wait_with_output().unwrap()).expect(0);
    assert_eq!(of_host(), before, "{}", ended.stderr);
    let document = document(&hosts.bench.path("whole"));
    let server = &document["fleet"]["servers"][0];
    assert_eq!(
        server["packet_steering"]["interface"],
        card.as_str(),
        "{server}"
    );
    let checks = server["environment"]["doctor"].as_array().unwrap().iter();
    let mut checks = checks.filter(|verdict| verdict["check"] == "max_map_count");
    assert_eq!(checks.next().unwrap()["level"], "pass", "{server}");
    hosts.assert_clean();
    // The agent of the server is killed: the controller takes it back.
    let child = run("killed");
    let killed = hosts.ssh(
        "server1",
        &format!("kill -9 $(cat {PLACE}/dyno-*/server-0.pid)"),
    );
    assert!(killed.status.success(), "{}", text(&killed));
    let ended = Finished::from(child.wait_with_output().unwrap());
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(of_host(), before, "{}", ended.stderr);
    // The controller is killed: the agent takes it back, and its folder away.
    let mut child = run("alone");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the agents", || {
        !text(&hosts.ssh("server1", &format!("ls {PLACE}"))).contains("dyno-")
    });
    assert_eq!(of_host(), before);
    hosts.assert_keys_expire();
}
