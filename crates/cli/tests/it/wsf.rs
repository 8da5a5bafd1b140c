//! Parameters of the Workload Services Framework in environment variables, and receive packet steering for the duration of a run.

use crate::common::kpi::{assert_kpi_sh_finds, assert_scripts_read};
use crate::common::{Bench, Finished, Responder, reads, run_schema, signal, wait_for_windows};
use dyno_testkit::{embedded_program, or_skip};

/// `dyno` with these environment variables.
fn with(bench: &Bench, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = bench.command(arguments);
    command.envs(variables.iter().copied());
    Finished::from(command.output().unwrap())
}

fn dry_plan(variables: &[(&str, &str)], more: &[&str]) -> toml::Table {
    let bench = Bench::new();
    let arguments = [&["run", "--wsf", "--dry-run"], more].concat();
    let finished = with(&bench, variables, &arguments);
    assert!(bench.entries().is_empty());
    // The plan is printed even if this machine has too few cores, lacks such a network card or does not allow steering.
    let is_expected = match finished.code {
        Some(2) => finished.stderr.contains(" cores"),
        Some(3) => ["`eth7`", "/net/lo/"].iter().any(|part| finished.stderr.contains(part)),
        code => code == Some(0),
    };
    assert!(is_expected, "{:?} {}", finished.code, finished.stderr);
    finished.stdout.parse().unwrap()
}

#[test]
fn commands_of_the_wsf_manual_become_a_plan() {
    let variables = [
        ("CLIENT_SERVER_PAIR", "16"),
        ("CLIENT_COUNT", "3"),
        ("NUMACTL_OPTION", "1"),
        ("THREADS", "64"),
        ("NETWORK_RPS_TUNE_ENABLE", "true"),
        ("RECORD_COUNT", "4000000"),
        ("TESTCASE", "test_mongodb_ycsb_90read10update"),
    ];
    let plan = dry_plan(&variables, &[]);
    assert_eq!(plan["name"].as_str(), Some("90read10update"));
    let server = &plan["server"];
    assert_eq!(server["pairs"].as_integer(), Some(16));
    assert_eq!(server["placement"].as_str(), Some("spread client=none"));
    assert_eq!(server["receive_packet_steering"].as_str(), Some("lo"));
    assert_eq!(plan["client"]["clients"].as_integer(), Some(64));
    assert_eq!(plan["data"]["records"].as_integer(), Some(4_000_000));
    let bench = Bench::new();
    with(&bench, &variables, &["run", "--wsf", "--dry-run"])
        .says("warning: `CLIENT_COUNT=3`")
        .says("`dyno fleet run --wsf`")
        .says("--placement 'spread client=none'");
}

#[test]
fn documents_are_loaded_one_by_one_unless_a_batch_is_given() {
    let batch = |more: &[&str]| {
        let plan = dry_plan(&[("TESTCASE", "read")], more);
        plan["client"]["batch"].as_integer()
    };
    assert_eq!(batch(&[]), Some(1));
    assert_eq!(batch(&["--batch", "50"]), Some(50));
    assert_eq!(batch(&["-p", "batchsize=7"]), Some(7));
    assert_eq!(batch(&["-p", "mongodb.batchsize=7"]), Some(7));
    assert_eq!(batch(&["--set", "client.batch=9"]), Some(9));
}

#[test]
fn options_override_parameters() {
    let variables = [
        ("WORKLOAD_FILE", "write"),
        ("CLIENT_SERVER_PAIR", "4"),
        ("NUMACTL_OPTION", "5"),
        ("THREADS", "64"),
        ("RECORD_COUNT", "7"),
        ("MAX_EXECUTION_TIME", "60"),
        ("TARGET", "100"),
        ("FIELD_COUNT", "3"),
        ("DB_HOSTPATH", "/a%20/b"),
        ("NETWORK_RPS_TUNE_ENABLE", "true"),
    ];
    let options = [
        "read",
        "--pairs",
        "2",
        "--placement",
        "interleave",
        "--clients",
        "5",
        "--records",
        "9",
        "--duration",
        "2s",
        "--rate",
        "50",
        "-p",
        "fieldcount=4",
        "--data-dir",
        "/c",
        "--receive-packet-steering",
        "eth7=0",
    ];
    let plan = dry_plan(&variables, &options);
    assert_eq!(plan["name"].as_str(), Some("read"));
    let server = plan["server"].as_table().unwrap();
    assert_eq!(server["pairs"].as_integer(), Some(2));
    assert_eq!(server["placement"].as_str(), Some("interleave"));
    assert_eq!(server["data_dir"].as_str(), Some("/c"));
    assert!(!server.contains_key("data_dirs"));
    assert_eq!(server["receive_packet_steering"].as_str(), Some("eth7=0"));
    assert_eq!(plan["client"]["clients"].as_integer(), Some(5));
    assert_eq!(plan["data"]["records"].as_integer(), Some(9));
    assert_eq!(plan["data"]["field_count"].as_integer(), Some(4));
    assert_eq!(plan["phases"]["duration"].as_str(), Some("2s"));
    assert_eq!(plan["schedule"]["rate_per_s"].as_float(), Some(50.0));
}

#[test]
fn environment_is_ignored_without_the_option() {
    let bench = Bench::new();
    let variables = [("CLIENT_SERVER_PAIR", "x"), ("THREADS", "64")];
    let finished = with(&bench, &variables, &["run", "a", "--dry-run"]).expect(0);
    let plan: toml::Table = finished.stdout.parse().unwrap();
    assert_eq!(plan["client"]["clients"].as_integer(), Some(16));
}

#[test]
fn all_problems_are_named_at_once_and_nothing_is_left() {
    let bench = Bench::new();
    let variables = [
        ("CLIENT_SERVER_PAIR", "x"),
        ("INSERT_ORDER", "hased"),
        ("HERO_FEATURE_QAT", "true"),
        ("CUSTOMER_NUMAOPT_SERVER", "-N 0,1"),
    ];
    let mut finished = with(&bench, &variables, &["run", "--wsf"]).expect(2);
    for (name, _) in variables {
        finished = finished.says(&format!("`{name}`"));
    }
    finished.says("`hashed`?");
    assert!(bench.entries().is_empty());
}

#[test]
fn problems_of_the_plan_name_the_parameters_behind_them() {
    let bench = Bench::new();
    let variables = [("INSERT_START", "9"), ("RECORD_COUNT", "5")];
    with(&bench, &variables, &["run", "--wsf"]).expect(2).says("`INSERT_START`");
    with(&bench, &[("WORKLOAD_FILE", "load_1k")], &["run", "--wsf"])
        .expect(2)
        .says("`WORKLOAD_FILE`")
        .says("`load_1k`");
}

#[test]
fn running_server_ignores_server_parameters() {
    let variables = [("CACHE_SIZE_GB", "2"), ("THREADS", "3")];
    let plan = dry_plan(&variables, &["--uri", "mongodb://h/"]);
    assert_eq!(plan["server"]["kind"].as_str(), Some("uri"));
    assert!(plan["server"].get("cache").is_none());
    assert_eq!(plan["client"]["clients"].as_integer(), Some(3));
    let bench = Bench::new();
    std::fs::write(
        bench.path("there.toml"),
        "[server]\nkind = \"uri\"\nuri = \"mongodb://h\"\n[operations]\nread = 1\n",
    )
    .unwrap();
    let arguments = ["run", "there.toml", "--wsf", "--dry-run"];
    let finished = with(&bench, &variables, &arguments).expect(0).says("`CACHE_SIZE_GB`");
    assert!(!finished.stderr.contains("CLIENT_SERVER_PAIR"));
}

#[test]
fn trace_windows_are_passed_to_the_trace_program() {
    let variables = [("EVENT_TRACE_PARAMS", "time,3,4")];
    let plan = dry_plan(&variables, &["--trace", "cat"]);
    let trace = &plan["traces"][0];
    assert_eq!(trace["from"].as_str(), Some("3s"));
    assert_eq!(trace["for"].as_str(), Some("4s"));
    let plan = dry_plan(&variables, &["pkm"]);
    assert_eq!(plan["traces"][0]["from"].as_str(), Some("3s"));
    let bench = Bench::new();
    with(&bench, &variables, &["run", "--wsf", "--dry-run"])
        .expect(0)
        .says("`EVENT_TRACE_PARAMS`")
        .says("`--trace`");
}

#[test]
fn a_trace_outside_of_its_run_is_refused_with_the_variable() {
    let bench = Bench::new();
    let short = [("TESTCASE", "test_mongodb_ycsb_pkm"), ("MAX_EXECUTION_TIME", "180")];
    for more in [&["--dry-run"][..], &[]] {
        with(&bench, &short, &[&["run", "--wsf"], more].concat())
            .expect(2)
            .says("`traces[0].from` is `5m`")
            .says("`MAX_EXECUTION_TIME`");
    }
    let window = [("EVENT_TRACE_PARAMS", "time,300,300"), ("MAX_EXECUTION_TIME", "180")];
    let traced = ["run", "--wsf", "--trace", "cat", "--dry-run"];
    with(&bench, &window, &traced).expect(2).says("`EVENT_TRACE_PARAMS`");
    let whole = [short[0], ("JOURNAL_ENABLED", "true"), ("RECORD_COUNT", "1000")];
    let dry = with(&bench, &whole, &["run", "--wsf=defaults", "--dry-run"]).expect(0);
    let whole: toml::Table = dry.stdout.parse().unwrap();
    assert_eq!(whole["phases"]["duration"].as_str(), Some("12m"));
    let counted = [("TESTCASE", "test_mongodb_ycsb_pkm"), ("OPERATION_COUNT", "1000")];
    // An operation count may end the phase earlier.
    with(&bench, &counted, &["run", "--wsf", "--dry-run"])
        .expect(0)
        .says("`traces[0].from` is `5m`");
    assert!(bench.entries().is_empty());
}

#[test]
fn servers_are_started_and_measured_as_the_parameters_say() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let variables = [
        ("CLIENT_SERVER_PAIR", "2"),
        ("THREADS", "2"),
        ("RECORD_COUNT", "500"),
        ("OPERATION_COUNT", "1000"),
        ("RUN_SINGLE_NODE", "true"),
        ("TESTCASE", "test_static_ycsb_mongodb604_base_50read50update"),
    ];
    let arguments = ["run", "--wsf", "--warmup", "0s", "--out", "r", "--format", "kpi"];
    let finished = with(&bench, &variables, &arguments).expect(0);
    let document = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    let measured = &document["phases"][1];
    assert_eq!(measured["succeeded"], 2000);
    assert_eq!(document["instances"][1]["phases"][0]["operations"]["insert"]["documents"], 500);
    assert_scripts_read(&finished.stdout, &document, 1e-6);
    let logs = ["export", "r", "--to", "wsf-logs"];
    bench.dyno(&logs).expect(2).says("--output");
    let logs = [&logs[..], &["--output", "logs"]].concat();
    bench.dyno(&logs).expect(0);
    assert_kpi_sh_finds(&bench.path("logs"), &finished.stdout, &document, 0.05);
    bench.dyno(&logs).expect(2).says("`logs`");
}

#[test]
fn missing_network_card_is_refused_before_anything_starts() {
    let bench = Bench::new();
    let responder = Responder::with_documents(&[]);
    let uri = responder.uri();
    bench
        .dyno(&reads(&uri, &["--operations", "10", "--receive-packet-steering", "no-such-card"]))
        .expect(3)
        .says("`no-such-card`")
        .says("lo");
    assert!(bench.entries().iter().all(|name| name == "runs"));
    bench
        .dyno(&reads(&uri, &["--receive-packet-steering", "../lo"]))
        .expect(2)
        .says("`server.receive_packet_steering`");
}

const LO: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";

/// Whether this machine allows packet steering, checked without a change.
fn may_steer() -> bool {
    let Ok(now) = std::fs::read_to_string(LO) else {
        return false;
    };
    std::fs::write(LO, now).is_ok()
}

fn steered() -> String {
    std::fs::read_to_string(LO).unwrap().trim().to_owned()
}

/// The mask of the last CPU of this machine, or of another CPU if it is already set.
fn other_cpu() -> String {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let last = online.trim().rsplit([',', '-']).next().unwrap().to_owned();
    let mask: u128 = u128::from_str_radix(&steered().replace(',', ""), 16).unwrap();
    match last.parse::<u32>() {
        Ok(cpu) if mask != 1 << cpu => last,
        _ => "0".into(),
    }
}

/// One test covers all ends of a run, because there is only one `lo`.
#[test]
fn packet_steering_is_restored_however_a_run_ends() {
    let bench = Bench::new();
    let responder = Responder::with_documents(&[]);
    let uri = responder.uri();
    let card = format!("lo={}", other_cpu());
    if !may_steer() {
        bench
            .dyno(&reads(&uri, &["--operations", "10", "--receive-packet-steering", &card]))
            .expect(3)
            .says("/net/lo/");
        return;
    }
    let before = steered();
    let long = ["--duration", "60s", "--receive-packet-steering", &card, "--out"];
    let journal = bench.path("state/doctor-undo.json");

    let options = ["--operations", "100", "--receive-packet-steering", &card, "--format", "json"];
    let document = bench.dyno(&reads(&uri, &options)).expect(0).json();
    assert_eq!(steered(), before);
    let queue = &document["host_settings"][0];
    assert_eq!(queue["file"], LO);
    assert_eq!(queue["before"], before.as_str());
    assert_ne!(queue["set"], before.as_str());
    assert_eq!(queue["at_end"], queue["set"]);
    run_schema().validate(&document).map_err(|e| e.to_string()).unwrap();
    assert!(!journal.exists());

    let mut child = bench.spawn(&reads(&uri, &[&long[..], &["interrupted"]].concat()));
    wait_for_windows(&mut child, &bench.path("interrupted"), 1);
    assert_ne!(steered(), before);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert_eq!(steered(), before);
    assert!(!journal.exists());

    let mut child = bench.spawn(&reads(&uri, &[&long[..], &["killed"]].concat()));
    wait_for_windows(&mut child, &bench.path("killed"), 1);
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    assert_ne!(steered(), before);
    assert!(journal.exists());
    bench.dyno(&["doctor", "--revert"]).expect(0);
    assert_eq!(steered(), before);
    assert!(!journal.exists());
    let report = bench.dyno(&["report", "killed", "--format", "json"]);
    let report = report.expect(0).json();
    assert_eq!(report["host_settings"][0]["name"], "receive_packet_steering");
}
