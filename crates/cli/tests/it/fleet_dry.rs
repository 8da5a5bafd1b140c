//! A fleet dry run refuses the same plans as the run, with the same messages, and neither of them starts anything. Fake `ansible`
//! and `kubectl` programs report the hosts and record their callers.
use crate::common::{Bench, Finished, names};
use dyno_testkit::project_dir;

const PLAN: &str = r#"
base = "a"
name = "many"
[server]
kind = "mongod"
[client]
clients = 4
[fleet]
clients = ["clients"]
servers = ["servers"]
mapping = "pairs"
[fleet.kubernetes]
client_pods = 2
server_pods = 2
"#;

/// Two client hosts, two server hosts, three others, and one without an address.
const INVENTORY: &str = r#"{
"_meta": {"hostvars": {
  "c1": {"ansible_host": "127.0.0.1"}, "c2": {"ansible_host": "127.0.0.2"},
  "s1": {"ansible_host": "127.0.0.3"}, "s2": {"ansible_host": "127.0.0.4"},
  "o1": {"ansible_host": "127.0.0.5"}, "o2": {"ansible_host": "127.0.0.6"}, "o3": {"ansible_host": "127.0.0.7"},
  "lost": {"ansible_host": "no..such"}
}},
"clients": {"hosts": ["c1", "c2"]},
"servers": {"hosts": ["s1", "s2"]},
"others": {"hosts": ["o1", "o2", "o3"]},
"nowhere": {"hosts": ["lost"]}
}"#;

/// Log of called programs that would have changed something.
const CALLED: &str = "called";

fn script(bench: &Bench, name: &str, text: &str) {
    let path = bench.path("bin").join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
}

fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("bin")).unwrap();
    std::fs::write(bench.path("hosts.json"), INVENTORY).unwrap();
    std::fs::write(bench.path("many.toml"), PLAN).unwrap();
    let few = PLAN.replace("clients = 4", "clients = 1");
    std::fs::write(bench.path("few.toml"), few).unwrap();
    script(&bench, "ansible-inventory", "exec cat hosts.json");
    let called = bench.path(CALLED);
    let fails = format!("echo \"$0 $*\" >>{}\nexit 1", called.display());
    script(&bench, "ansible-playbook", &fails);
    script(&bench, "kubectl", &fails);
    bench
}

/// Options that name a fleet's hosts.
#[derive(Clone, Copy)]
enum Where {
    Hosts,
    /// The same options with another Redis or none.
    WithoutRedis,
    Pods,
}

impl Where {
    fn words(self) -> &'static [&'static str] {
        match self {
            // No process listens there.
            Where::Hosts => &["--inventory", "hosts.json", "--redis", "redis://127.0.0.1:1"],
            Where::WithoutRedis => &["--inventory", "hosts.json"],
            Where::Pods => &["--kubernetes"],
        }
    }
}

/// Runs `dyno fleet` with these arguments, starting with the verb.
fn fleet(bench: &Bench, place: Where, arguments: &[&str]) -> Finished {
    fleet_with(bench, place, &[], arguments)
}

/// The same with these environment variables.
fn fleet_with(
    bench: &Bench,
    place: Where,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Finished {
    let (verb, more) = arguments.split_first().unwrap();
    let mut command = bench.command(&[&["fleet", verb][..], place.words(), more].concat());
    let path = std::env::var("PATH").unwrap();
    command
        .env("PATH", format!("{}:{path}", bench.path("bin").display()))
        .env_remove("DYNO_REDIS")
        .env_remove("DYNO_REDIS_FILE")
        .envs(variables.iter().copied());
    Finished::from(command.output().unwrap())
}

/// The error message, without the preceding progress output.
#[track_caller]
fn message(ended: &Finished) -> &str {
    let start = ended.stderr.find("error: ");
    let text = &ended.stderr[start.unwrap_or_else(|| panic!("no error in:\n{}", ended.stderr))..];
    // The usage lists the options that were given.
    text.split("\n\nUsage:").next().unwrap_or(text)
}

type Words = &'static [&'static str];

/// An expected refusal: place, exit code, arguments, and parts of the message.
type Case = (Where, i32, Words, Words);

#[track_caller]
fn assert_refused_alike((place, code, arguments, expected): Case) {
    let bench = bench();
    let before = bench.entries();
    let dry = fleet(&bench, place, &[arguments, &["--dry-run"]].concat());
    let run = fleet(&bench, place, arguments);
    let what = arguments.join(" ");
    assert_eq!(run.code, Some(code), "{what}\n{}", run.stderr);
    assert_eq!(dry.code, run.code, "{what}\n{}", dry.stderr);
    assert_eq!(message(&dry), message(&run), "{what}");
    for part in expected {
        assert!(message(&dry).contains(part), "{what}\n{}", dry.stderr);
    }
    // No program was called and no run started.
    let mut left = bench.entries();
    left.retain(|name| name != "state");
    assert_eq!(left, before, "{what}");
}

#[test]
fn a_plan_that_does_not_fit_the_hosts_is_refused_without_a_run() {
    let run = |more: Words, expected: Words| (Where::Hosts, 2, more, expected);
    let cases: &[Case] = &[
        run(&["run", "many.toml", "--clients", "1"], &["`client.clients`", "at least 2"]),
        run(&["run", "many.toml", "--operations", "1"], &["`phases.operations`", "at least 4"]),
        run(
            &["run", "many.toml", "--set", r#"fleet.servers=["others"]"#],
            &["2 agents", "3 servers"],
        ),
        run(
            &["run", "many.toml", "--set", "fleet.mapping=table", "--set", "fleet.table=[[0],[2]]"],
            &["`fleet.table`", "server 2"],
        ),
        run(&["run", "many.toml", "--set", r#"fleet.clients=["nobody"]"#], &["`nobody`"]),
        run(
            &["run", "many.toml", "--set", "fleet.client_hosts=3"],
            &["`fleet.client_hosts`", "2 hosts"],
        ),
        run(
            &["run", "many.toml", "--set", "fleet.mapping=deployment"],
            &["`fleet.mapping`", "2 hosts"],
        ),
        run(
            &[
                "run",
                "many.toml",
                "--set",
                "fleet.mapping=deployment",
                "--topology",
                "replica-set=3",
            ],
            &["`server.topology`", "3 members", "2 hosts"],
        ),
        run(
            &["run", "many.toml", "--set", "fleet.mapping=deployment", "--topology", "sharded=2x1"],
            &["`fleet.mapping`", "2 hosts"],
        ),
        (
            Where::Hosts,
            3,
            &["run", "many.toml", "--set", r#"fleet.servers=["lost"]"#],
            &["`no..such`", "`lost`"],
        ),
        run(
            &[
                "run",
                "many.toml",
                "--uri",
                "mongodb://127.0.0.1:1/",
                "--set",
                "fleet.mapping=deployment",
                "--set",
                "fleet.servers=[]",
                "--apply",
                "max_map_count",
            ],
            &["`--apply`", "`fleet.servers`"],
        ),
    ];
    cases.iter().copied().for_each(assert_refused_alike);
}

#[test]
fn servers_that_cannot_start_are_refused_without_a_run() {
    let run = |more: Words, expected: Words| (Where::Hosts, 2, more, expected);
    let cases: &[Case] = &[
        run(
            &[
                "run",
                "many.toml",
                "--pairs",
                "2",
                "--set",
                r#"server.data_dirs=["/data/a"]"#,
                "--set",
                "server.disk_mapping=direct",
            ],
            &["2 servers", "1 given"],
        ),
        run(
            &["run", "many.toml", "--pairs", "2", "--placement", "custom=0@default"],
            &["1 placement", "2 instances"],
        ),
        run(&["run", "many.toml", "--placement", "spread client=same"], &["`client=same`"]),
        run(
            &["run", "many.toml", "--set", "server.storage=ext4 on loop:1GiB"],
            &["`server.storage`"],
        ),
        run(&["run", "many.toml", "--cache", "1MiB"], &["`server.cache`", "256 MiB"]),
        (
            Where::Hosts,
            3,
            &["run", "many.toml", "--set", "server.kind=embedded", "--embedded-server", "none"],
            &["/none`", "executable"],
        ),
        run(
            &["run", "many.toml", "--mongod", "/opt/{{ version }}/mongod"],
            &["{{ version }}", "Ansible"],
        ),
        run(&["run", "many.toml", "--set", r#"server.listen="10.0.0.1""#], &["`server.listen`"]),
        run(
            &[
                "run",
                "many.toml",
                "--set",
                "fleet.mapping=deployment",
                "--uri",
                "mongodb://127.0.0.1:1/?tls=true&tlsCAFile=none.pem",
            ],
            &["`none.pem`"],
        ),
    ];
    cases.iter().copied().for_each(assert_refused_alike);
}

#[test]
fn invalid_redis_and_run_name_are_refused_without_a_run() {
    let run = |more: Words, expected: Words| (Where::WithoutRedis, 2, more, expected);
    let cases: &[Case] = &[
        run(&["run", "many.toml"], &["`DYNO_REDIS_FILE`"]),
        run(&["run", "many.toml", "--redis", "http://127.0.0.1"], &["`redis://`", "`rediss://`"]),
        run(
            &["soak", "many.toml", "--redis", "redis://192.0.2.1"],
            &["`192.0.2.1:6379`", "`--insecure-redis`"],
        ),
        (
            Where::Hosts,
            2,
            &[
                "run",
                "many.toml",
                "--fleet-run",
                "a-name-that-has-many-more-characters-than-a-run-may-have",
            ],
            &["56 characters", "50"],
        ),
        (Where::Hosts, 2, &["run", "many.toml", "--fleet-run", "a*"], &["`a*`"]),
    ];
    cases.iter().copied().for_each(assert_refused_alike);
}

#[test]
fn an_experiment_is_refused_without_its_runs() {
    let run = |more: Words, expected: Words| (Where::Hosts, 2, more, expected);
    let cases: &[Case] = &[
        run(&["sweep", "many.toml", "--clients", "1,4"], &["`client.clients`", "at least 2"]),
        run(&["sweep", "many.toml", "--set", "server.pairs=1,2"], &["1 placement", "2 instances"]),
        run(
            &["sweep", "many.toml", "--set", "fleet.agents_per_host=1,2"],
            &["`[fleet]`", "`dyno compare`"],
        ),
        run(&["xmax", "many.toml", "--max-clients", "1"], &["`--max-clients`", "at least 2"]),
        run(
            &["slo", "many.toml", "--p99", "5ms", "--set", "fleet.amounts=per-agent"],
            &["`fleet.amounts`", "`in-all`"],
        ),
        run(&["ab", "many.toml", "--set-b", "server.cache=1MiB"], &["`server.cache`", "256 MiB"]),
    ];
    for (place, code, arguments, expected) in cases.iter().copied() {
        // This placement is for one server.
        let more: Words = match arguments.contains(&"server.pairs=1,2") {
            true => &["--placement", "custom=0@default"],
            false => &[],
        };
        let arguments: Words = [arguments, more].concat().leak();
        assert_refused_alike((place, code, arguments, expected));
    }
}

#[test]
fn invalid_pods_are_refused_without_a_run() {
    let run = |more: Words, expected: Words| (Where::Pods, 2, more, expected);
    let cases: &[Case] = &[
        run(&["run", "a"], &["`[fleet]`"]),
        run(
            &["run", "many.toml", "--set", "fleet.mapping=deployment"],
            &["`fleet.mapping`", "`fleet.kubernetes`", "2 servers"],
        ),
        run(
            &["run", "many.toml", "--data-dir", "/data/a"],
            &["`server.data_dir`\n", "hint: ", "`fleet.kubernetes.disks`"],
        ),
        run(
            &["run", "many.toml", "--receive-packet-steering", "eth0"],
            &["`server.receive_packet_steering`\n", "hint: ", "pods"],
        ),
        run(
            &["run", "many.toml", "--mongod", "8.0.4"],
            &["`server.mongod`\n", "hint: ", "`fleet.kubernetes.server_image`"],
        ),
        run(&["run", "many.toml", "--apply", "max_map_count"], &["--apply", "--kubernetes"]),
        run(&["run", "many.toml", "--redis", "redis://127.0.0.1:1"], &["--redis", "--kubernetes"]),
        run(&["run", "many.toml", "--host-folder", "/data"], &["--host-folder", "--kubernetes"]),
        run(
            &["run", "many.toml", "--set", "fleet.agents_per_host=2"],
            &["`fleet.agents_per_host`", "`--kubernetes`"],
        ),
        run(
            &["run", "many.toml", "--set", "fleet.client_hosts=1"],
            &["`fleet.client_hosts`", "`--kubernetes`"],
        ),
        run(&["run", "many.toml", "--clients", "1"], &["`client.clients`", "at least 2"]),
    ];
    cases.iter().copied().for_each(assert_refused_alike);
}

#[test]
fn dry_run_accepts_valid_plans_and_calls_nothing() {
    let cases: &[(Where, &[&str])] = &[
        (Where::Hosts, &["run", "many.toml"]),
        (
            Where::Hosts,
            &[
                "run",
                "many.toml",
                "--pairs",
                "2",
                "--placement",
                "custom=0@default/1@default client=nodes=0@interleave:all",
            ],
        ),
        (
            Where::Hosts,
            &[
                "run",
                "many.toml",
                "--set",
                "fleet.mapping=deployment",
                "--topology",
                "replica-set=2",
                "--auth",
                "--tls",
                "--set",
                r#"server.data_dirs=["/data/a"]"#,
                "--set",
                "server.disk_mapping=direct",
            ],
        ),
        (Where::Hosts, &["run", "many.toml", "--apply", "max_map_count"]),
        (Where::Hosts, &["sweep", "many.toml", "--clients", "2,4", "--tls"]),
        // Its number of clients, one, does not matter.
        (Where::Hosts, &["xmax", "few.toml", "--max-clients", "8"]),
        (Where::Pods, &["run", "many.toml"]),
        (Where::Pods, &["sweep", "many.toml", "--clients", "2,4"]),
    ];
    for (place, arguments) in cases.iter().copied() {
        let bench = bench();
        let before = bench.entries();
        let dry = fleet(&bench, place, &[arguments, &["--dry-run"]].concat());
        dry.expect(0);
        let mut left = bench.entries();
        left.retain(|name| name != "state");
        assert_eq!(left, before, "{}", arguments.join(" "));
        // The run fails when it waits for its agents, which do not exist.
        let run = fleet(&bench, place, arguments).expect(3);
        match place {
            Where::Pods => assert!(names(bench.folder.path()).contains(&CALLED.to_owned())),
            _ => assert!(message(&run).contains("Redis"), "{}", run.stderr),
        }
    }
}

#[test]
fn wsf_parameters_load_an_existing_deployment() {
    let bench = bench();
    let plan = |more: &[&str]| {
        let servers = ["run", "--wsf", "--set", "fleet.servers=[]"];
        let dry = fleet(&bench, Where::Hosts, &[&servers[..], more, &["--dry-run"]].concat());
        dry.expect(0).stdout.parse::<toml::Table>().unwrap()
    };
    let uri = ["--uri", "mongodb://127.0.0.1:1/"];
    let aimed = plan(&uri);
    // Omitted parameters have default values.
    let mapping = aimed["fleet"].get("mapping").map_or("deployment", |one| one.as_str().unwrap());
    assert_eq!(mapping, "deployment", "{aimed}");
    assert!(aimed["server"].get("pairs").is_none_or(|pairs| pairs.as_integer() == Some(1)));
}

#[test]
fn wsf_test_case_with_traces_is_refused_by_its_name() {
    let case = [("TESTCASE", "test_static_ycsb_mongodb604_base_pkm")];
    let arguments = ["run", "--wsf", "--dry-run"];
    fleet_with(&bench(), Where::Hosts, &case, &arguments)
        .expect(2)
        .says("`TESTCASE` is `test_static_ycsb_mongodb604_base_pkm`")
        .says("`EVENT_TRACE_PARAMS`");
}

/// The worker host of the framework's manual, and its three client hosts.
const WORKER: &str = r#"{
"_meta": {"hostvars": {
  "c1": {"ansible_host": "127.0.0.1"}, "c2": {"ansible_host": "127.0.0.2"}, "c3": {"ansible_host": "127.0.0.3"},
  "s1": {"ansible_host": "127.0.0.4"}
}},
"clients": {"hosts": ["c1", "c2", "c3"]},
"servers": {"hosts": ["s1"]}
}"#;

/// Shell words that set variables.
fn variables(text: &str) -> Vec<(&str, &str)> {
    text.split_whitespace().filter_map(|word| word.split_once('=')).collect()
}

#[test]
fn commands_of_the_wsf_manual_give_the_expected_plans() {
    let manual = std::fs::read_to_string(project_dir().join("docs/wsf.md")).unwrap();
    let exported = manual.lines().find(|line| line.starts_with("export DYNO_REDIS_FILE="));
    let mut common = variables(exported.unwrap());
    common.retain(|(name, _)| *name != "DYNO_REDIS_FILE");
    let typed = manual.lines().find_map(|line| line.strip_prefix("fleet=\"dyno fleet run "));
    let typed = typed.unwrap().trim_end_matches('"');
    let typed = typed.replace("--inventory inventory.yml ", "");
    let words: Vec<&str> = ["run", "--dry-run"].into_iter().chain(typed.split(' ')).collect();
    let commands = manual.lines().filter_map(|line| line.strip_suffix(" $fleet"));
    let commands: Vec<&str> = commands.collect();
    let spread = "spread client=none";
    let on_node = "node=0 client=none";
    let expected =
        [(16, spread, None), (16, on_node, None), (16, spread, Some("auto")), (8, on_node, None)];
    // The other commands are for pods.
    assert_eq!(commands.len(), 2 * expected.len(), "{commands:?}");
    for (command, (pairs, placement, steering)) in commands.into_iter().zip(expected) {
        let bench = bench();
        std::fs::write(bench.path("hosts.json"), WORKER).unwrap();
        let all = [common.clone(), variables(command)].concat();
        let dry = fleet_with(&bench, Where::Hosts, &all, &words).expect(0);
        let plan: toml::Table = dry.stdout.parse().unwrap();
        let text = |table: &str, key: &str| plan[table].get(key).and_then(toml::Value::as_str);
        let number =
            |table: &str, key: &str| plan[table].get(key).and_then(toml::Value::as_integer);
        assert_eq!(plan["name"].as_str(), Some("90read10update"), "{command}");
        assert_eq!(number("server", "pairs"), Some(pairs), "{command}");
        assert_eq!(text("server", "kind"), Some("mongod"), "{command}");
        assert_eq!(text("server", "placement"), Some(placement), "{command}");
        assert_eq!(text("server", "receive_packet_steering"), steering, "{command}");
        assert_eq!(plan["server"]["journal"].as_bool(), Some(false), "{command}");
        assert_eq!(number("fleet", "client_hosts"), Some(3), "{command}");
        assert_eq!(text("fleet", "mapping"), Some("pairs"), "{command}");
        assert_eq!(text("fleet", "amounts"), Some("per-server"), "{command}");
        assert_eq!(number("client", "clients"), Some(64), "{command}");
        assert_eq!(number("data", "records"), Some(4_000_000), "{command}");
        assert_eq!(number("phases", "operations"), Some(4_000_000), "{command}");
        assert_eq!(text("phases", "duration"), Some("3m"), "{command}");
        // No program was called, and nothing is left.
        assert!(!bench.path(CALLED).exists(), "{command}");
        assert!(!bench.path("runs").exists(), "{command}");
    }
}

#[test]
fn commands_of_the_wsf_manual_give_manifests_for_pods() {
    let manual = std::fs::read_to_string(project_dir().join("docs/wsf.md")).unwrap();
    let (_, section) = manual.split_once("## On Kubernetes").unwrap();
    let lines = || section.lines();
    let exported = lines().find(|line| line.starts_with("export ")).unwrap();
    let typed = lines().find_map(|line| line.strip_prefix("fleet=\"dyno fleet run "));
    let typed = typed.unwrap().trim_end_matches('"').replace("--kubernetes ", "");
    let commands = lines().filter_map(|line| line.strip_suffix(" $fleet"));
    let expected =
        [(16, "none"), (16, "node=0 client=none"), (16, "none"), (8, "node=0 client=none")];
    let commands: Vec<&str> = commands.collect();
    assert_eq!(commands.len(), expected.len(), "{commands:?}");
    for (command, (pairs, placement)) in commands.into_iter().zip(expected) {
        let bench = bench();
        let all = [variables(exported), variables(command)].concat();
        let words: Vec<&str> = ["run", "--dry-run"].into_iter().chain(typed.split(' ')).collect();
        let dry = fleet_with(&bench, Where::Pods, &all, &words).expect(0);
        let plan: toml::Table = dry.stdout.parse().unwrap();
        let pods = plan["fleet"]["kubernetes"].get("client_pods");
        let pods = pods.and_then(toml::Value::as_integer);
        // Omitted parameters have default values.
        assert_eq!(pods.unwrap_or(3), 3, "{command}");
        assert_eq!(plan["server"]["pairs"].as_integer(), Some(pairs), "{command}");
        assert_eq!(plan["server"]["placement"].as_str(), Some(placement), "{command}");
        assert!(!bench.path(CALLED).exists(), "{command}");
        let mut render =
            bench.command(&["fleet", "render", "kubernetes", "--wsf=defaults", "--out", "m"]);
        render.envs(all);
        let rendered = Finished::from(render.output().unwrap()).expect(0);
        assert_eq!(rendered.stdout.lines().count(), 5, "{}", rendered.stdout);
        let servers = std::fs::read_to_string(bench.path("m/servers.yaml")).unwrap();
        assert_eq!(servers.matches("name: \"mongod-").count() as i64, pairs, "{command}");
    }
}

#[test]
fn unsupported_variables_of_pods_are_all_refused_by_name() {
    let given = [
        ("CLIENT_COUNT", "2"),
        ("NUMACTL_OPTION", "2"),
        ("CORES", "0-3"),
        ("YCSB_CORES", "4-7"),
        ("JOURNAL_ENABLED", "false"),
        ("DB_HOSTPATH", "/data"),
    ];
    let arguments = ["run", "--wsf", "--dry-run"];
    let mut refused = fleet_with(&bench(), Where::Pods, &given, &arguments).expect(2);
    for name in ["CORES", "YCSB_CORES", "JOURNAL_ENABLED", "DB_HOSTPATH"] {
        refused = refused.says(&format!("`{name}` is `"));
    }
    // Servers that are already running ignore all of these variables.
    let aimed = [&arguments[..], &["--uri", "mongodb://127.0.0.1:1/"]].concat();
    fleet_with(&bench(), Where::Pods, &given, &aimed).expect(0);
}
