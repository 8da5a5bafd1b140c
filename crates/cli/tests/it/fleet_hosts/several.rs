//! Several servers on one host: each has its own CPUs, clients and record.

use super::secured::{SECURED, listen_in, words};
use super::*;
use crate::common::kpi::{assert_kpi_sh_finds, assert_scripts_read};
use crate::common::secrets::{files_that_show, processes_that_show};
use dyno_servers::placement::{InstancePlacement, Machine, PreparedPlacement};
use dyno_testkit::mongod_program;

/// Checks that the figures of all servers add up to the run's figures, phase by phase.
fn assert_servers_make_up_the_whole(document: &Value) {
    for name in ["load", "measure"] {
        let merged = phase(&document["phases"], name);
        let own: Vec<&Value> = document["instances"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| phase(&one["phases"], name))
            .collect();
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
        // Each server's load phase has its own length.
        if name == "measure" {
            assert!((rates / rate(merged) - 1.0).abs() < 0.01, "{rates}");
        }
    }
}

/// The value on the only key-figure line with this label.
fn figure(text: &str, label: &str) -> f64 {
    let lines = text.lines().filter_map(|line| line.strip_prefix(label));
    let values: Vec<f64> =
        lines.map(|rest| rest.trim_start_matches(':').trim().parse().unwrap()).collect();
    assert_eq!(values.len(), 1, "{label}: {text}");
    values[0]
}

/// Checks that the key figures and the server records match the agents' records: with `pairs`, server *i* has the operations of
/// agent *i*. Returns the key figures.
fn assert_figures_are_those_of_the_agents(hosts: &Hosts, run: &str, document: &Value) -> String {
    for name in ["load", "measure"] {
        let merged = phase(&document["phases"], name);
        for figure in ["/succeeded", "/failed"] {
            let all = merged.pointer(figure).unwrap().as_u64().unwrap();
            assert_eq!(sum(document, name, figure), all, "{run}, {name} {figure}");
        }
    }
    let agents = document["fleet"]["agents"].as_array().unwrap().iter();
    let servers = document["instances"].as_array().unwrap();
    for (agent, server) in agents.zip(servers) {
        let own = phase(&agent["phases"], "measure")["operations"].as_object();
        let of_server = &phase(&server["phases"], "measure")["operations"];
        for (operation, own) in own.unwrap() {
            for figure in ["/count", "/errors", "/response_time_us/p99", "/service_time_us/max"] {
                let reported = of_server[operation].pointer(figure).unwrap();
                assert_eq!(own.pointer(figure).unwrap(), reported, "{run}, {operation} {figure}");
            }
        }
    }
    let report = hosts.bench.command(&["report", run, "--format", "kpi"]).output();
    let kpi = Finished::from(report.unwrap()).expect(0).stdout;
    let rate = phase(&document["phases"], "measure")["achieved_rate_per_s"].as_f64();
    let all = figure(&kpi, "*Sum of [RUN PHASE] Throughput(ops/sec)");
    assert!((all / rate.unwrap() - 1.0).abs() < 1e-9, "{kpi}");
    let mean = figure(&kpi, "Mean of [RUN PHASE] Throughput(ops/sec)");
    assert!((2.0 * mean / all - 1.0).abs() < 0.01, "{kpi}");
    assert_eq!(kpi.matches("[OVERALL RUN][").count(), 2, "{kpi}");
    assert!(kpi.contains("\n# Client host client2: "), "{kpi}");
    kpi
}

/// Whether memory policies can be set here: a kernel may lack NUMA support, and a container may forbid them.
fn has_memory_policies() -> bool {
    let place: InstancePlacement = "any@bind:0".parse().unwrap();
    PreparedPlacement::memory_of_client(&place).is_ok()
}

/// Checks that the kernel applies the memory policy.
fn assert_memory(achieved: &Value, policy: &str) {
    let is_there = achieved["memory"]["policies"]
        .as_array()
        .unwrap()
        .iter()
        .any(|one| one["policy"] == policy);
    assert!(is_there, "{achieved}");
}

/// Checks that the two servers of a host use one separate CPU each; `placement` is the first server's placement.
fn assert_places(placement: &Value, request: &str) {
    let asked = placement["request"].as_str().unwrap();
    assert!(asked.contains(request), "{placement}");
    let places = placement["instances"].as_array().unwrap();
    let achieved = placement["achieved"].as_array().unwrap();
    assert_eq!((places.len(), achieved.len()), (2, 2), "{placement}");
    for ((place, achieved), cpu) in places.iter().zip(achieved).zip(["0", "1"]) {
        let (cpus, memory) = place.as_str().unwrap().split_once('@').unwrap();
        assert_eq!(cpus, cpu, "{placement}");
        let groups = achieved["threads"].as_array().unwrap();
        assert!(!groups.is_empty(), "{placement}");
        assert!(groups.iter().all(|group| group["cpus"] == cpu), "{placement}");
        if memory.contains(':') {
            assert_memory(achieved, memory);
        }
    }
}

/// Checks that every host placed everything as planned.
fn assert_all_as_planned(document: &Value) {
    let mut caveats = document["caveats"].as_array().unwrap().iter();
    let code = |caveat: &Value| caveat["code"].as_str().unwrap().to_owned();
    assert!(!caveats.any(|caveat| code(caveat).ends_with("placed-otherwise")), "{document}");
}

/// Checks that each server has its own CPU, and that the clients of each host are placed as planned.
fn assert_placed(document: &Value, (cpus, memory): (&str, &str)) {
    let fleet = &document["fleet"];
    assert_eq!(fleet["mapping"], "pairs");
    let servers = fleet["servers"].as_array().unwrap();
    let on: Vec<&str> = servers.iter().map(|one| one["host"].as_str().unwrap()).collect();
    assert_eq!(on, ["server1", "server1"]);
    let cpus_of = |one: &Value| one["cpus"].as_u64().unwrap();
    let all: u64 = servers.iter().map(cpus_of).sum();
    assert_eq!(all, servers[0]["environment"]["cpus"].as_u64().unwrap_or(all));
    assert_places(&servers[0]["placement"], "cores=0-1");
    for agent in fleet["agents"].as_array().unwrap() {
        let placement = &agent["placement"];
        let planned = serde_json::json!([format!("{cpus}@{memory}")]);
        assert_eq!(placement["clients"], planned, "{agent}");
        assert_eq!(placement["clients_as_planned"], true, "{agent}");
        let achieved = &placement["achieved"][0];
        let groups = achieved["threads"].as_array().unwrap();
        assert_eq!(groups.len(), 1, "{placement}");
        assert_eq!(groups[0]["cpus"], cpus, "{placement}");
        if memory.contains(':') {
            assert_memory(achieved, memory);
        }
    }
    assert_all_as_planned(document);
}

/// A benchmark case: one worker with two servers on separate CPUs, and two client hosts.
struct Case {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    documents: u64,
    clients: u64,
}

const CASES: [Case; 2] = [
    Case {
        name: "90read10update",
        variables: &[
            ("THREADS", "3"),
            ("TARGET", "150"),
            ("RECORD_COUNT", "1500"),
            ("MAX_EXECUTION_TIME", "2"),
        ],
        documents: 1500,
        clients: 3,
    },
    Case { name: "gated", variables: &[], documents: 1000, clients: 1 },
];

/// Options that start a real `mongod` if available, instead of the embedded server.
pub(super) fn real_servers() -> Vec<String> {
    match mongod_program() {
        Ok(program) => {
            let program = program.display().to_string();
            let options = ["--mongod", &program, "--cache", "256MiB"];
            options.map(str::to_owned).into()
        }
        Err(_) => Vec::new(),
    }
}

/// Checks that nothing is left of a run with [`real_servers`].
pub(super) fn assert_all_clean(hosts: &Hosts) {
    hosts.assert_clean();
    let left = hosts.ssh("server1", "pgrep -l mongod");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}

/// `dyno fleet VERB --wsf` on one worker with two servers on separate CPUs, and on two client hosts.
fn worker(
    hosts: &Hosts,
    test_case: &str,
    variables: &[(&str, &str)],
    (verb, more): (&str, &[&str]),
) -> Finished {
    let test_case = format!("test_static_ycsb_mongodb604_base_{test_case}");
    let fixed = [
        ("TESTCASE", test_case.as_str()),
        ("CLIENT_SERVER_PAIR", "2"),
        ("CLIENT_COUNT", "2"),
        ("NUMACTL_OPTION", "2"),
        ("CORES", "0,1"),
        ("YCSB_CORES", "1"),
    ];
    // The inventory has two server hosts, and the workload has one worker.
    let one = ["--set", r#"fleet.servers=["server1"]"#];
    let real = real_servers();
    let real: Vec<&str> = real.iter().map(String::as_str).collect();
    let words = [&[verb, "--wsf", "--warmup", "0s"][..], &one, &real[..], more].concat();
    let mut command = hosts.command(&words);
    let variables = fixed.iter().chain(variables).copied();
    Finished::from(command.envs(variables).output().unwrap()).expect(0)
}

/// Checks that the servers are of the requested kind.
fn assert_kind(document: &Value) {
    if !real_servers().is_empty() {
        assert_eq!(document["plan"]["server"]["kind"], "mongod");
    }
}

impl Case {
    /// Runs the case with and without a password, and with and without TLS, on the same hosts.
    fn run(&self, hosts: &Hosts) -> Vec<(String, Value)> {
        let more = [
            "--set",
            "server.auth=false,true",
            "--set",
            "server.encryption=off,server",
            "--out",
            self.name,
        ];
        worker(hosts, self.name, self.variables, ("sweep", &more));
        let runs = names(&hosts.bench.path(self.name).join("runs"));
        let runs = runs.into_iter().map(|run| {
            let run = format!("{}/runs/{run}", self.name);
            let document = document(&hosts.bench.path(&run));
            (run, document)
        });
        runs.collect()
    }

    fn check(&self, hosts: &Hosts) {
        let runs = self.run(hosts);
        let mut settings = Vec::new();
        for (run, document) in &runs {
            assert_eq!(document["status"], "complete", "{document}");
            assert!(crate::common::run_schema().is_valid(document));
            let server = &document["plan"]["server"];
            let setting = ["auth", "encryption"].map(|key| match &server[key] {
                Value::Null => "default".to_owned(),
                value => value.to_string(),
            });
            settings.push(setting.join(" "));
            assert_kind(document);
            assert_placed(document, ("1", "default"));
            assert_servers_make_up_the_whole(document);
            assert_figures_are_those_of_the_agents(hosts, run, document);
            // Each server has its own data set, which one client host loaded.
            for instance in document["instances"].as_array().unwrap() {
                assert_eq!(instance["server"]["documents"], self.documents);
                let own = hosts.bench.path(run);
                let own = own.join(instance["directory"].as_str().unwrap());
                let own = super::document(&own);
                assert_eq!(own["plan"]["client"]["clients"], self.clients);
            }
        }
        settings.sort();
        settings.dedup();
        assert_eq!(settings.len(), 4, "{settings:?}");
        assert_all_clean(hosts);
        for (_, document) in &runs {
            let measure = phase(&document["phases"], "measure");
            assert_eq!(measure["failed"], 0, "{measure}");
            match self.name {
                "gated" => assert_eq!(measure["succeeded"], 2 * 10_000),
                // 150/s on each server.
                _ => {
                    assert_eq!(measure["offered_rate_per_s"], 300.0);
                    let own = &document["instances"][1]["phases"];
                    assert_eq!(phase(own, "measure")["offered_rate_per_s"], 150.0);
                }
            }
        }
    }
}

#[test]
fn each_server_of_a_host_has_its_own_placement_and_figures() {
    let Some(hosts) = Hosts::up("several") else {
        return;
    };
    CASES.iter().for_each(|case| case.check(&hosts));
}

#[test]
fn benchmark_scripts_read_the_output_of_a_run_on_hosts() {
    let Some(hosts) = Hosts::up("printed") else {
        return;
    };
    let mut variables = vec![
        ("THREADS", "2"),
        ("RECORD_COUNT", "500"),
        // Enough operations that a difference in the agents' start times does not matter.
        ("OPERATION_COUNT", "5000"),
    ];
    let machine = Machine::read(Path::new("/")).unwrap();
    let of_node = machine.node(0).map(|node| node.cpus.intersection(&machine.allowed_cpus));
    let of_node = of_node.unwrap_or_default().to_string();
    let clients = match has_memory_policies() {
        true => {
            variables.push(("CUSTOMER_NUMAOPT_CLIENT", "numactl -N 0 -m 0"));
            (of_node.as_str(), "bind:0")
        }
        false => ("1", "default"),
    };
    let run = ("run", &["--format", "kpi", "--out", "printed"][..]);
    let printed = worker(&hosts, "50read50update", &variables, run).stdout;
    let document = document(&hosts.bench.path("printed"));
    assert_eq!(document["status"], "complete", "{document}");
    assert_kind(&document);
    assert_placed(&document, clients);
    let measure = phase(&document["phases"], "measure");
    // The operations are counted per server.
    assert_eq!((&measure["succeeded"], &measure["failed"]), (&10_000.into(), &0.into()));
    for instance in document["instances"].as_array().unwrap() {
        assert_eq!(instance["server"]["documents"], 500);
    }
    assert_scripts_read(&printed, &document, 0.02);
    let logs = ["export", "printed", "--to", "wsf-logs", "--output", "logs"];
    hosts.bench.dyno(&logs).expect(0);
    assert_kpi_sh_finds(&hosts.bench.path("logs"), &printed, &document, 0.02);
    for client in ["# Client host client1: ", "# Client host client2: "] {
        assert_eq!(printed.matches(client).count(), 1, "{printed}");
    }
    assert_all_clean(&hosts);
}

#[test]
fn table_maps_clients_to_four_servers_on_two_hosts() {
    let Some(hosts) = Hosts::up("table") else {
        return;
    };
    let of_clients = [[0, 3], [1, 2]];
    let placement = match has_memory_policies() {
        true => "custom=0@bind:0/1@bind:0",
        false => "cores=0-1",
    };
    let more = [
        "--placement",
        placement,
        "--set",
        r#"fleet.clients=["client1","client2"]"#,
        "--pairs",
        "2",
        "--set",
        "fleet.mapping=table",
        "--set",
        "fleet.table=[[0,3],[1,2]]",
        "--out",
        "table",
    ];
    hosts.run("run", &more).expect(0);
    let document = document(&hosts.bench.path("table"));
    assert!(crate::common::run_schema().is_valid(&document));
    assert_eq!(document["status"], "complete", "{document}");
    let fleet = &document["fleet"];
    assert_eq!(fleet["mapping"], "table");
    let on: Vec<&str> = fleet["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["host"].as_str().unwrap())
        .collect();
    assert_eq!(on, ["server1", "server1", "server2", "server2"]);
    // Each host placed its own servers, and reports the placements with its first server.
    for (first, second) in [(0, 1), (2, 3)] {
        assert_places(&fleet["servers"][first]["placement"], placement);
        assert_eq!(fleet["servers"][second]["placement"], Value::Null);
    }
    assert_all_as_planned(&document);
    assert_servers_make_up_the_whole(&document);
    let instances = document["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 4);
    for instance in instances {
        assert_eq!(instance["server"]["documents"], 3001);
    }
    // The operations of an agent are the operations of its servers.
    let agents = fleet["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 2);
    for (agent, own) in agents.iter().zip(of_clients) {
        let [first, second] = own;
        let share = agent["share"].as_str().unwrap();
        let expected = format!("6 clients on server {first}, {second} at 450");
        assert!(share.contains(&expected), "{share}");
        for name in ["load", "measure"] {
            let operations = phase(&agent["phases"], name)["operations"].as_object();
            for (operation, figures) in operations.unwrap() {
                let count = |server: usize| {
                    let of_server = &phase(&instances[server]["phases"], name)["operations"];
                    of_server[operation]["count"].as_u64().unwrap()
                };
                let both: u64 = own.map(count).iter().sum();
                assert_eq!(figures["count"], both, "{share}, {name} {operation}");
            }
        }
    }
    assert_refused_before_the_load(&hosts);
    hosts.assert_clean();
}

/// Checks that a client host without the CPUs of a placement is named and ends the run.
fn assert_refused_before_the_load(hosts: &Hosts) {
    let more = [
        "--placement",
        "none client=any@bind:4095",
        "--set",
        r#"fleet.clients=["client1"]"#,
        "--set",
        r#"fleet.servers=["server1"]"#,
        "--out",
        "unfit",
    ];
    let ended = hosts.run("run", &more);
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    ended
        .says("`client1`")
        .says("`client=any@bind:4095` (`server.placement`)")
        .says("`dyno server plan`");
    let run = hosts.bench.path("unfit");
    if run.exists() {
        let document = document(&run);
        assert!(
            document["phases"].as_array().unwrap().iter().all(|one| one["succeeded"] == 0),
            "{document}"
        );
    }
}

/// Content of a kernel file on a host.
fn kernel(hosts: &Hosts, host: &str, file: &str) -> String {
    text(&hosts.ssh(host, &format!("cat {file}"))).trim().to_owned()
}

/// The network card of the server host.
fn card(hosts: &Hosts) -> String {
    let cards = text(&hosts.ssh("server1", "ls /sys/class/net"));
    cards.split_whitespace().find(|name| *name != "lo").unwrap().to_owned()
}

/// The CPUs that receive the card's packets.
fn queue(card: &str) -> String {
    format!("/sys/class/net/{card}/queues/rx-0/rps_cpus")
}

const MAP_COUNT: &str = "/proc/sys/vm/max_map_count";

/// Sets the kernel's default, which the doctor advises against; dropping this value restores the previous setting.
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

/// Checks that an aborted run leaves no process, no folder and no secret, on any host or here.
fn assert_nothing_left(hosts: &Hosts, seen: &Path) {
    hosts.assert_clean_but_redis();
    let left = hosts.ssh("server1", "pgrep -l mongod");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    let secrets = words(seen);
    assert_eq!(processes_that_show(&secrets), Vec::<String>::new());
    let mut files = files_that_show(hosts.bench.folder.path(), &secrets);
    files.retain(|file| !file.ends_with("listening/seen"));
    assert_eq!(files, Vec::<String>::new());
    let wanted: String = secrets.iter().map(|word| format!(" -e '{word}'")).collect();
    let look = format!("grep -rlsF{wanted} {PLACE} /etc /run /dev/shm");
    for host in ["client1", "client2", "server1"] {
        let found = hosts.ssh(host, &look);
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{host}");
    }
}

#[test]
fn server_host_settings_are_restored_however_a_run_ends() {
    // The advice depends on the kind of server, and there is little advice for the embedded server.
    let Some((hosts, program)) = Hosts::with_mongod("settings") else {
        return;
    };
    let card = card(&hosts);
    let queue = queue(&card);
    let _low = LowMapCount::set();
    let of_host = || (kernel(&hosts, "server1", &queue), kernel(&hosts, "server1", MAP_COUNT));
    let before = of_host();
    let seen = listen_in(&hosts);
    let fixed = [
        "--set",
        r#"fleet.servers=["server1"]"#,
        "--set",
        r#"fleet.clients=["client1"]"#,
        "--mongod",
        &program,
        "--cache",
        "256MiB",
        "--pairs",
        "2",
        "--set",
        "server.receive_packet_steering=auto=0",
        "--apply",
        // No one queries the servers there.
        "max_map_count,round_trip",
    ];
    let run = |name: &str| {
        let mut child = hosts.spawn("run", &[&fixed[..], &SECURED, &["--out", name]].concat());
        hosts.wait_for_load(&hosts.bench.path(name), &mut child);
        let during = of_host();
        assert!(during.0.ends_with('1') && during.1 == "128000", "{during:?}");
        child
    };
    // In order; the record has the settings that were made.
    let ended = Finished::from(run("whole").wait_with_output().unwrap()).expect(0);
    assert_eq!(of_host(), before, "{}", ended.stderr);
    let document = document(&hosts.bench.path("whole"));
    let server = &document["fleet"]["servers"][0];
    let file = server["host_settings"][0]["file"].as_str().unwrap();
    assert!(file.contains(&format!("/{card}/")), "{server}");
    let said = |check: &str, what: &str| {
        let verdict = server["environment"]["doctor"]
            .as_array()
            .unwrap()
            .iter()
            .find(|verdict| verdict["check"] == check);
        verdict.unwrap()[what].as_str().unwrap().to_owned()
    };
    let level = |check: &str| said(check, "level");
    assert_eq!(level("max_map_count"), "pass", "{server}");
    // Checks that depend on the servers have their data: program, caches, processes and folders.
    for check in ["huge_pages", "cache_memory", "bind_address", "filesystem"] {
        assert_ne!(level(check), "unknown", "{check}: {server}");
    }
    // Advice for this version, before 8.0.
    let version = document["server"]["version"].as_str().unwrap();
    let (major, _) = version.split_once('.').unwrap();
    if major.parse::<u32>().unwrap() < 8 {
        assert_eq!(said("huge_pages", "advised"), "`never`", "{server}");
    }
    // The servers listen on the network with a password.
    assert_eq!(level("bind_address"), "pass", "{server}");
    // Checks that still failed at the end and could not be applied.
    let queue = &server["host_settings"][0];
    assert_eq!(queue["at_end"], queue["set"], "{server}");
    let left = "`round_trip` (unknown): nothing to change";
    assert_eq!(server["not_applied"], serde_json::json!([left]));
    ended.says(&format!("on `server1`: {left}"));
    let report = ["report", "whole", "--format", "markdown"];
    let report = Finished::from(hosts.bench.command(&report).output().unwrap()).expect(0);
    let reported = format!("Not changed on server1: {left}.");
    assert!(report.stdout.contains(&reported), "{}", report.stdout);
    hosts.assert_clean();
    // One of two servers is killed: the run fails, and the other server ends as well.
    let child = run("server");
    let kill = hosts.ssh("server1", "kill -9 $(pgrep mongod | head --lines=1)");
    assert!(kill.status.success(), "{}", text(&kill));
    let ended = Finished::from(child.wait_with_output().unwrap()).expect(3);
    let ended = ended.says("signal: 9").says("`server1`");
    assert_eq!(super::document(&hosts.bench.path("server"))["status"], "failed");
    assert_eq!(of_host(), before, "{}", ended.stderr);
    hosts.assert_clean();
    assert_nothing_left(&hosts, &seen);
    // The server agent is killed: the controller reverts the settings.
    let child = run("killed");
    let own = format!("{PLACE}/dyno-*");
    let kill_agent = format!("kill -9 $(cat {own}/server-0.pid)");
    let killed = hosts.ssh("server1", &kill_agent);
    assert!(killed.status.success(), "{}", text(&killed));
    let ended = Finished::from(child.wait_with_output().unwrap());
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(of_host(), before, "{}", ended.stderr);
    hosts.assert_clean();
    assert_nothing_left(&hosts, &seen);
    // The controller is killed: the agent reverts the settings and removes its folder.
    let mut child = run("alone");
    child.kill().unwrap();
    child.wait().unwrap();
    let look = format!("ls {PLACE}; pgrep -l 'dyno|mongod'");
    wait_for("the agents", || {
        let hosts = ["client1", "server1"].map(|host| text(&hosts.ssh(host, &look)));
        let left = hosts.concat();
        !left.contains("dyno") && !left.contains("mongod")
    });
    assert_eq!(of_host(), before);
    assert_nothing_left(&hosts, &seen);
    hosts.assert_keys_expire();
    // Both are killed: the settings stay until the command of the manual is run on the host.
    let mut child = run("both");
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = hosts.ssh("server1", &kill_agent);
    assert!(killed.status.success(), "{}", text(&killed));
    assert_ne!(of_host(), before);
    let revert = format!("{own}/dyno doctor --revert --state-dir {own}/state");
    let reverted = hosts.ssh("server1", &revert);
    assert!(reverted.status.success(), "{}", text(&reverted));
    assert_eq!(of_host(), before);
    // The servers and the other agent end by themselves, and only the folder with that state is left.
    wait_for("the end of the servers", || {
        let client = text(&hosts.ssh("client1", &look));
        let server = hosts.ssh("server1", "pgrep 'dyno|mongod'");
        let is_left = client.contains("dyno") || client.contains("mongod");
        !is_left && server.status.code() == Some(1)
    });
    let removed = hosts.ssh("server1", &format!("rm -r {own}"));
    assert!(removed.status.success(), "{}", text(&removed));
    assert_nothing_left(&hosts, &seen);
    hosts.assert_keys_expire();
}

/// The test changes only per-host settings: another test changes settings of the whole machine at the same time.
#[test]
fn packet_steering_is_restored_however_a_run_breaks() {
    let Some((hosts, program)) = Hosts::with_mongod("broken") else {
        return;
    };
    let queue = queue(&card(&hosts));
    let of_host = || kernel(&hosts, "server1", &queue);
    let before = of_host();
    let seen = listen_in(&hosts);
    let fixed = [
        "--set",
        r#"fleet.servers=["server1"]"#,
        "--set",
        r#"fleet.clients=["client1","client2"]"#,
        "--mongod",
        &program,
        "--cache",
        "256MiB",
        "--pairs",
        "2",
        "--set",
        "server.receive_packet_steering=auto=0",
    ];
    let run = |name: &str, duration: &str| {
        let more = ["--duration", duration, "--out", name];
        let mut child = hosts.spawn("run", &[&fixed[..], &SECURED, &more].concat());
        hosts.wait_for_load(&hosts.bench.path(name), &mut child);
        let during = of_host();
        assert!(during.ends_with('1') && during != before, "{during}");
        child
    };
    let ended = |child: Child, name: &str, code: i32, status: &str| {
        let ended = Finished::from(child.wait_with_output().unwrap()).expect(code);
        let document = document(&hosts.bench.path(name));
        assert_eq!(document["status"], status, "{}", ended.stderr);
        ended
    };
    // One of two loading agents is killed: the other agent continues to the end.
    let child = run("client", "12s");
    let kill = format!("kill -KILL $(cat {PLACE}/dyno-*/agent-1.pid)");
    assert!(hosts.ssh("client2", &kill).status.success());
    ended(child, "client", 3, "failed").says("agent 1 on `client2`");
    assert_eq!(of_host(), before);
    hosts.assert_clean();
    assert_nothing_left(&hosts, &seen);
    // Ctrl-C.
    let child = run("interrupted", "60s");
    crate::common::signal(&child, "INT");
    ended(child, "interrupted", 130, "partial").says("interrupted`");
    assert_eq!(of_host(), before);
    hosts.assert_clean();
    assert_nothing_left(&hosts, &seen);
    // The server host is disconnected: it cleans up by itself.
    let child = run("cut", "60s");
    assert!(script(&hosts.folder, "cut", &["server1"]).status.success());
    ended(child, "cut", 3, "failed").says("on `server1`").says("silent");
    assert!(script(&hosts.folder, "mend", &["server1"]).status.success());
    let look = format!("ls -d {PLACE}/dyno-*; pgrep 'dyno|mongod'");
    wait_for("the end of the servers", || {
        let left = hosts.ssh("server1", &look);
        left.status.code() == Some(1) && left.stdout.is_empty()
    });
    assert_eq!(of_host(), before);
    assert_nothing_left(&hosts, &seen);
    hosts.assert_keys_expire();
    // Redis ends, and is not restarted.
    let child = run("redis", "60s");
    crate::common::signal(&hosts.redis, "KILL");
    ended(child, "redis", 3, "failed").says("Redis").says("not answer");
    assert_eq!(of_host(), before);
    assert_nothing_left(&hosts, &seen);
}
