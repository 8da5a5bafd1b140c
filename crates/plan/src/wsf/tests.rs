//! The complete mapping, and its table against the documentation.

use super::mapping::CASES;
use super::*;
use crate::builtin;
use crate::file;
use crate::host::{FoundServer, HostFacts};
use crate::model::{Plan, ServerKind};
use crate::request::Request;
use crate::resolve::resolve;
use crate::validate::validate;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn here(pairs: &[(&str, &str)]) -> Parameters {
    Parameters { given: map(pairs), ..Parameters::default() }
}

#[track_caller]
fn applied(pairs: &[(&str, &str)]) -> WsfSettings {
    apply(&here(pairs), None).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// All problems in one text.
#[track_caller]
fn refused(pairs: &[(&str, &str)]) -> String {
    let problems = apply(&here(pairs), None).expect_err("it should be refused");
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

fn key<'a>(settings: &'a WsfSettings, name: &str) -> Option<&'a str> {
    let found = settings.keys.iter().find(|setting| setting.name == name);
    found.map(|setting| setting.value.as_str())
}

fn property<'a>(settings: &'a WsfSettings, name: &str) -> Option<&'a str> {
    let found = settings.properties.iter().find(|setting| setting.name == name);
    found.map(|setting| setting.value.as_str())
}

fn placement(pairs: &[(&str, &str)]) -> String {
    let settings = applied(pairs);
    key(&settings, "server.placement").unwrap_or("-").to_owned()
}

/// The plan for the settings.
#[track_caller]
fn plan(pairs: &[(&str, &str)]) -> Plan {
    let request = Request { wsf: Some(here(pairs)), ..Request::default() };
    let host = HostFacts {
        cores: 8,
        hostname: None,
        folder: "/".into(),
        tunnels: BTreeSet::new(),
        servers: vec![
            FoundServer::unseen(ServerKind::Embedded),
            FoundServer::unseen(ServerKind::Mongod),
        ],
    };
    match resolve(&request, &host) {
        Ok(task) => task.plan,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn without_parameters_the_load_has_the_framework_defaults() {
    let settings = applied(&[]);
    assert_eq!(settings.workload, "90read10update");
    assert_eq!(key(&settings, "server.pairs"), Some("3"));
    assert_eq!(key(&settings, "server.placement"), Some("interleave"));
    assert_eq!(property(&settings, "threadcount"), Some("10"));
    assert_eq!(settings.keys.len() + settings.properties.len(), 3);
    assert!(settings.keys.iter().all(|setting| !setting.given));
    assert_eq!(settings.warnings, Vec::<String>::new());
    let notes = settings.notes.join("\n");
    for part in ["`CLIENT_SERVER_PAIR=3`", "`RECORD_COUNT`", "`JOURNAL_ENABLED`"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn the_gate_and_plan_files_keep_their_own_shape() {
    let gated = applied(&[("TESTCASE", "test_static_ycsb_mongodb604_base_gated")]);
    assert_eq!(gated.workload, "gated");
    assert_eq!(key(&gated, "server.pairs"), None);
    assert_eq!(gated.properties, []);
    let file = apply(&here(&[("RECORD_COUNT", "5")]), Some("mine.toml")).unwrap();
    assert_eq!(file.workload, "mine.toml");
    assert_eq!(file.keys, []);
    assert_eq!(property(&file, "recordcount"), Some("5"));
}

#[test]
fn every_test_case_is_a_built_in_plan() {
    for case in CASES {
        let name = format!("test_aws_ycsb_mongodb700_base_{case}");
        let settings = applied(&[("TESTCASE", &name)]);
        assert_eq!(settings.workload, case);
        assert_eq!(settings.workload_variable, Some("TESTCASE"));
        assert!(builtin::find(case).is_some(), "{case}");
    }
    for (name, part) in [
        ("test_x_iaa", "Accelerator"),
        ("test_x_30write60read10insert", "1.1"),
        ("test_x_reed", "`read`"),
        ("test_x_nothing", "`90read10update`"),
    ] {
        let text = refused(&[("TESTCASE", name)]);
        assert!(text.contains("`TESTCASE`") && text.contains(part), "{text}");
    }
}

#[test]
fn workload_file_is_a_built_in_plan_or_a_path() {
    for (file, workload) in [
        ("90Read10Update", "90read10update"),
        ("NA", "90read10update"),
        ("50Read50Update", "50read50update"),
        ("conf/workloada_combined", "conf/workloada_combined"),
    ] {
        assert_eq!(applied(&[("WORKLOAD_FILE", file)]).workload, workload);
    }
    let both = applied(&[("WORKLOAD_FILE", "read"), ("TESTCASE", "x_write")]);
    assert_eq!(both.workload, "write");
    assert!(both.warnings.iter().any(|text| text.contains("WORKLOAD_FILE")));
    let named = apply(&here(&[("WORKLOAD_FILE", "read")]), Some("pkm")).unwrap();
    assert_eq!(named.workload, "pkm");
    assert!(named.warnings[0].starts_with("`WORKLOAD_FILE`"));
}

#[test]
fn parameters_of_ycsb_become_a_plan() {
    let plan = plan(&[
        ("THREADS", "64"),
        ("RECORD_COUNT", "4000000"),
        ("OPERATION_COUNT", "80000000"),
        ("MAX_EXECUTION_TIME", "180"),
        ("TARGET", "500"),
        ("INSERT_START", "10"),
        ("INSERT_COUNT", "0"),
        ("INSERT_ORDER", "SEQUENTIAL"),
        ("READ_PROPORTION", "0.5"),
        ("UPDATE_PROPORTION", "0.2"),
        ("INSERT_PROPORTION", "0.1"),
        ("SCAN_PROPORTION", "0.1"),
        ("READ_MODIFY_WRITE_PROPORTION", "0.1"),
        ("REQUEST_DISTRIBUTION", "Latest"),
        ("FIELD_COUNT", "20"),
        ("FIELD_LENGTH", "200"),
        ("FIELD_NAME_PREFIX", "f"),
        ("READ_ALL_FIELDS", "FALSE"),
        ("WRITE_ALL_FIELDS", "true"),
        ("MIN_SCANLENGTH", "2"),
        ("MAX_SCANLENGTH", "50"),
        ("SCAN_LENGTH_DISTRIBUTION", "ZIPFIAN"),
        ("ZERO_PADDING", "12"),
    ]);
    assert_eq!(plan.client.clients, 64);
    assert_eq!(plan.data.records, 4_000_000);
    assert_eq!(plan.phases.operations, Some(80_000_000));
    assert_eq!(plan.phases.duration, Some(Span::from_secs(180)));
    let text = file::to_toml(&plan);
    for part in [
        "rate_per_s = 500.0",
        "insert_start = 10",
        "key_order = \"ordered\"",
        "read_modify_write = 0.1",
        "distribution = \"latest\"",
        "field_count = 20",
        "bytes = 200",
        "field_name_prefix = \"f\"",
        "read_all_fields = false",
        "write_all_fields = true",
        "min_scan_length = 2",
        "max_scan_length = 50",
        "scan_length_distribution = \"zipfian\"",
        "zero_padding = 12",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("insert_count"), "{text}");
}

#[test]
fn parameters_of_the_servers_become_a_plan() {
    let plan = plan(&[
        ("CLIENT_SERVER_PAIR", "4"),
        ("TLS_FLAG", "1"),
        ("CACHE_SIZE_GB", "1.5"),
        ("JOURNAL_ENABLED", "false"),
        ("JOURNAL_COMPRESSOR", "zstd"),
        ("COLLECTIONCONFIG_BLOCKCOMPRESSOR", "ZLIB"),
        ("DB_HOSTPATH", "/mnt/disk1%20/mnt/disk2"),
        ("DISK_SPEC", "true"),
    ]);
    let text = file::to_toml(&plan);
    for part in [
        "pairs = 4",
        "encryption = \"server\"",
        "journal = false",
        "journal_compressor = \"zstd\"",
        "block_compressor = \"zlib\"",
        "disk_mapping = \"direct\"",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert_eq!(plan.server.cache_bytes().map(|cache| cache.0), Some(3 << 29));
    assert_eq!(plan.server.data_dirs, ["/mnt/disk1", "/mnt/disk2"]);
}

#[test]
fn tls_flag_may_be_a_number_or_a_word() {
    for (flag, encryption) in [("0", "off"), ("false", "off"), ("1", "server"), ("True", "server")]
    {
        let settings = applied(&[("TLS_FLAG", flag)]);
        assert_eq!(key(&settings, "server.encryption"), Some(encryption), "{flag}");
    }
    for flag in ["yes", "2", "01", "-1"] {
        let problem = refused(&[("TLS_FLAG", flag)]);
        assert!(
            problem.contains("`TLS_FLAG`") && problem.contains(&format!("`{flag}`")),
            "{problem}"
        );
    }
}

#[test]
fn replica_set_has_one_member() {
    let settings = applied(&[
        ("REPLICA_SET", "true"),
        ("CLIENT_SERVER_PAIR", "1"),
        ("JOURNAL_ENABLED", "false"),
    ]);
    assert_eq!(key(&settings, "server.topology"), Some("replica-set=1"));
    assert_eq!(key(&settings, "server.pairs"), None);
    assert_eq!(key(&settings, "server.journal"), None);
    assert!(settings.warnings.iter().any(|text| text.contains("journal")));
    for more in [&[][..], &[("CLIENT_SERVER_PAIR", "2")]] {
        let text = refused(&[&[("REPLICA_SET", "true")], more].concat());
        for part in ["`REPLICA_SET`", "`CLIENT_SERVER_PAIR=1`"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn data_folders_are_one_or_several() {
    let one = applied(&[("DB_HOSTPATH", "/mnt/disk1")]);
    assert_eq!(key(&one, "server.data_dir"), Some("/mnt/disk1"));
    assert_eq!(key(&one, "server.data_dirs"), None);
    assert!(refused(&[("DB_HOSTPATH", "/a%20")]).starts_with("`DB_HOSTPATH`"));
    let text = refused(&[("DISK_SPEC", "true")]);
    assert!(text.starts_with("`DISK_SPEC`") && text.contains("`DB_HOSTPATH`"), "{text}");
}

#[test]
fn options_of_placement_become_policies() {
    let option = |value: &'static str| ("NUMACTL_OPTION", value);
    let node = ("SELECT_NUMA_NODE", "1");
    let cores = ("CORES", "0-7");
    let each = ("CORE_NUMS_EACH_INSTANCE", "4");
    let clients = ("YCSB_CORES", "8-15");
    for (given, policy) in [
        (&[option("0")][..], "interleave"),
        (&[option("1")], "spread client=none"),
        (&[option("2")], "node=0 client=other"),
        (&[option("2"), node], "node=1 client=other"),
        (&[option("2"), node, cores], "cores=0-7 client=other"),
        (&[option("2"), clients], "node=0 client=8-15"),
        (&[option("3"), each], "cores-per-instance=4 client=other"),
        (&[option("4"), each, clients], "cores-per-instance=4,smt client=8-15"),
        (&[option("5")], "none"),
        (&[clients], "interleave client=8-15"),
        (&[option("1"), clients], "spread client=8-15"),
    ] {
        assert_eq!(placement(given), policy, "{given:?}");
        assert_eq!(applied(given).warnings, Vec::<String>::new(), "{given:?}");
    }
}

#[test]
fn custom_options_of_numactl_replace_the_others() {
    let server = ("CUSTOMER_NUMAOPT_SERVER", "-N 0 -M 0");
    assert_eq!(placement(&[server]), "node=0 client=none");
    let client = ("CUSTOMER_NUMAOPT_CLIENT", "-N 1 -M 1");
    assert_eq!(placement(&[server, client]), "node=0 client=other");
    let one = ("CLIENT_SERVER_PAIR", "1");
    let cores = ("CUSTOMER_NUMAOPT_SERVER", "numactl -C 0-3 -m 0");
    assert_eq!(placement(&[one, cores]), "custom=0-3@bind:0");
    let settings = applied(&[one, cores, ("NUMACTL_OPTION", "2"), ("CORES", "4-7")]);
    let warnings = settings.warnings.join("\n");
    assert!(warnings.contains("`NUMACTL_OPTION`") && warnings.contains("`CORES`"), "{warnings}");
    let text = refused(&[("CUSTOMER_NUMAOPT_SERVER", "-N 0,1 -m 0,1")]);
    assert!(text.contains("`CUSTOMER_NUMAOPT_SERVER`") && text.contains("--placement"), "{text}");
    assert!(refused(&[("CUSTOMER_NUMAOPT_CLIENT", "-N 1")]).contains("`CUSTOMER_NUMAOPT_CLIENT`"));
}

#[test]
fn incomplete_or_unused_placement_is_reported() {
    let text = refused(&[("NUMACTL_OPTION", "3")]);
    assert!(text.contains("`CORE_NUMS_EACH_INSTANCE`"), "{text}");
    let text = refused(&[("NUMACTL_OPTION", "3"), ("CORE_NUMS_EACH_INSTANCE", "x")]);
    assert_eq!(text.lines().count(), 1, "{text}");
    for (name, value) in
        [("CORES", "0-3"), ("SELECT_NUMA_NODE", "1"), ("CORE_NUMS_EACH_INSTANCE", "2")]
    {
        let warnings = applied(&[(name, value)]).warnings;
        assert!(warnings[0].starts_with(&format!("`{name}`")), "{name}");
    }
    assert_eq!(applied(&[("SELECT_NUMA_NODE", "0")]).warnings, Vec::<String>::new());
}

#[test]
fn trace_windows_are_phases_or_times() {
    let window = |text| applied(&[("EVENT_TRACE_PARAMS", text)]).trace.unwrap();
    let run = window("roi,RUN_PHASE,benchmark-finish");
    assert_eq!((run.phase, run.length), (PhaseKind::Measure, None));
    assert_eq!(window("roi,RUN PHASE,benchmark-finish"), run);
    assert_eq!(window("roi,LOAD_PHASE,RUN_PHASE").phase, PhaseKind::Load);
    let times = window("time,300,5m");
    assert_eq!(times.from, Span::from_secs(300));
    assert_eq!(times.length, Some(Span::from_secs(300)));
    for text in ["time,300", "time,1,0", "roi,RUN_PHASE", "time,a,b"] {
        let message = refused(&[("EVENT_TRACE_PARAMS", text)]);
        assert!(message.contains("`EVENT_TRACE_PARAMS`"), "{message}");
    }
    assert_eq!(applied(&[]).trace, None);
}

#[test]
fn unsupported_values_are_refused_and_defaults_are_not() {
    for variable in VARIABLES {
        let Treatment::Refused(reason, instead) = variable.treatment else {
            continue;
        };
        let text = refused(&[(variable.name, "true")]);
        assert!(text.contains(&format!("`{}`", variable.name)) && text.contains(reason), "{text}");
        assert!(text.contains(instead), "{text}");
        applied(&[(variable.name, variable.default.unwrap())]);
    }
}

#[test]
fn values_without_effect_give_a_warning_except_defaults() {
    for variable in VARIABLES {
        let Treatment::NoEffect(reason) = variable.treatment else {
            continue;
        };
        let value = match (variable.form, variable.default) {
            (Form::Boolean, Some("true")) => "false",
            (Form::Boolean, _) => "true",
            _ => "7",
        };
        let warnings = applied(&[(variable.name, value)]).warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let begin = format!("`{}`", variable.name);
        assert!(warnings[0].starts_with(&begin), "{warnings:?}");
        assert!(warnings[0].ends_with(reason), "{warnings:?}");
        if let Some(default) = variable.default {
            assert!(applied(&[(variable.name, default)]).warnings.is_empty());
        }
    }
}

#[test]
fn every_given_parameter_changes_the_result() {
    for variable in VARIABLES {
        let name = variable.name;
        // A parameter that depends on another one is given with it.
        let (value, more): (&str, &[(&str, &str)]) = match name {
            "TESTCASE" => ("x_read", &[]),
            "WORKLOAD_FILE" => ("read", &[]),
            "TLS_FLAG" => ("1", &[]),
            "CORES" => ("0-3", &[("NUMACTL_OPTION", "2")]),
            "SELECT_NUMA_NODE" => ("1", &[("NUMACTL_OPTION", "2")]),
            "CORE_NUMS_EACH_INSTANCE" => ("2", &[("NUMACTL_OPTION", "4")]),
            "CUSTOMER_NUMAOPT_SERVER" | "CUSTOMER_NUMAOPT_CLIENT" => ("-l", &[]),
            "EVENT_TRACE_PARAMS" => ("time,1,2", &[]),
            "DISK_SPEC" => ("true", &[("DB_HOSTPATH", "/a%20/b%20/c")]),
            "RUN_SINGLE_NODE" => ("true", &[]),
            "REPLICA_SET" => ("true", &[("CLIENT_SERVER_PAIR", "1")]),
            "KERNEL_SETTING_OPTIMIZED"
            | "PROCESS_MANAGEMENT_FORK"
            | "KUBERNETES_RESOURCE_REQUESTS" => ("false", &[]),
            _ => match variable.form {
                Form::Whole(..) | Form::Number | Form::Positive => ("2", &[]),
                Form::Boolean => ("true", &[]),
                Form::Word(words) => (words[1], &[]),
                Form::Cpus => ("0-3", &[]),
                Form::Text => ("text", &[]),
            },
        };
        let without = apply(&here(more), None);
        let with = apply(&here(&[&[(name, value)], more].concat()), None);
        assert_ne!(with, without, "`{name}={value}` does nothing");
    }
}

#[test]
fn wrong_value_is_one_problem_that_names_the_parameter() {
    for variable in VARIABLES {
        let wrong = match variable.form {
            Form::Text => "a\u{7}b",
            _ => "?",
        };
        let text = refused(&[(variable.name, wrong)]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(&format!("`{}`", variable.name)), "{text}");
    }
    let text = refused(&[("INSERT_ORDER", "hased"), ("RECORD_COUNT", "0")]);
    // In the list of all words, and as the nearest one.
    assert_eq!(text.matches("`hashed`").count(), 2, "{text}");
    assert!(text.contains("`RECORD_COUNT`"), "{text}");
    for (name, value) in [
        ("CACHE_SIZE_GB", "0"),
        ("NUMACTL_OPTION", "6"),
        ("CORES", "3-1"),
        ("READ_PROPORTION", "-1"),
        ("TARGET", "NaN"),
        ("INSERT_ORDER", "RANDOM"),
        ("YCSB_MEASUREMENT_TYPE", "RAW"),
    ] {
        assert!(refused(&[(name, value)]).contains(name), "{name}");
    }
}

#[test]
fn empty_value_is_absent() {
    let all: Vec<(&str, &str)> = VARIABLES.iter().map(|variable| (variable.name, " ")).collect();
    assert_eq!(applied(&all), applied(&[]));
}

#[test]
fn plan_problems_name_the_parameters_behind_them() {
    let settings = applied(&[("INSERT_START", "9"), ("RECORD_COUNT", "5")]);
    let mut problems = [
        Problem::new("`data.insert_start` is 9").about(["data.insert_start"]),
        Problem::new("`server.pairs` is wrong").about(["server.pairs"]),
        Problem::new("`client.batch` is wrong").about(["client.batch"]),
    ];
    settings.explain(&mut problems);
    for part in ["`insertstart`", "`INSERT_START`"] {
        assert!(problems[0].message.contains(part), "{}", problems[0]);
    }
    for part in ["`CLIENT_SERVER_PAIR`", "by default"] {
        assert!(problems[1].message.contains(part), "{}", problems[1]);
    }
    assert_eq!(problems[2].message, "`client.batch` is wrong");

    let settings = applied(&[("INSERT_COUNT", "9"), ("RECORD_COUNT", "5")]);
    let mut plan = builtin::find("a").unwrap();
    (plan.data.records, plan.data.insert_count) = (5, Some(9));
    let mut problems = validate(&plan);
    settings.explain(&mut problems);
    let text = format!("{problems:?}");
    assert!(text.contains("`insertcount` comes from `INSERT_COUNT`"), "{text}");
}

#[test]
fn parameters_in_pods_are_kept_or_refused_by_name() {
    let on_pods = |pairs: &[(&str, &str)]| {
        let parameters =
            Parameters { on_hosts: true, on_pods: true, all_defaults: true, ..here(pairs) };
        apply(&parameters, None).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    let refused = |pairs: &[(&str, &str)]| -> Vec<String> {
        let problems = on_pods(pairs).refused_by_pods;
        problems.iter().map(Problem::to_string).collect()
    };
    let all = on_pods(&[("CLIENT_COUNT", "3"), ("NETWORK_RPS_TUNE_ENABLE", "true")]);
    assert_eq!(all.refused_by_pods, []);
    assert_eq!(key(&all, "fleet.kubernetes.client_pods"), Some("3"));
    for name in
        ["fleet.clients", "fleet.client_hosts", "server.journal", "server.receive_packet_steering"]
    {
        assert_eq!(key(&all, name), None, "{name}");
    }
    let warned = |name: &str| all.warnings.iter().any(|one| one.contains(name));
    assert!(warned("`JOURNAL_ENABLED=false`") && warned("`NETWORK_RPS_TUNE_ENABLE`"));
    for (option, placement) in
        [("0", "interleave"), ("1", "none"), ("2", "node=0 client=none"), ("5", "none")]
    {
        let placed = on_pods(&[("NUMACTL_OPTION", option)]);
        assert_eq!(key(&placed, "server.placement"), Some(placement), "{option}");
        assert_eq!(placed.refused_by_pods, [], "{option}");
    }
    let cores = on_pods(&[("NUMACTL_OPTION", "3"), ("CORE_NUMS_EACH_INSTANCE", "6")]);
    assert_eq!(key(&cores, "fleet.kubernetes.server_cpus"), Some("6"));
    for (given, name) in [
        (&[("NUMACTL_OPTION", "2"), ("CORES", "0-3")][..], "CORES"),
        (&[("YCSB_CORES", "0-3")], "YCSB_CORES"),
        (&[("CUSTOMER_NUMAOPT_CLIENT", "-N 0")], "CUSTOMER_NUMAOPT_CLIENT"),
        (&[("CUSTOMER_NUMAOPT_SERVER", "-l")], "CUSTOMER_NUMAOPT_SERVER"),
        (&[("NUMACTL_OPTION", "4"), ("CORE_NUMS_EACH_INSTANCE", "6")], "NUMACTL_OPTION"),
        (&[("JOURNAL_ENABLED", "false")], "JOURNAL_ENABLED"),
        (&[("DB_HOSTPATH", "/data")], "DB_HOSTPATH"),
        (&[("REPLICA_SET", "true"), ("CLIENT_SERVER_PAIR", "1")], "REPLICA_SET"),
    ] {
        let problems = refused(given);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with(&format!("`{name}` is `")), "{problems:?}");
    }
}

#[test]
fn fleet_takes_hosts_from_the_inventory_and_amounts_per_server() {
    let on_hosts = |pairs: &[(&str, &str)], workload: Option<&str>| {
        let parameters = Parameters { on_hosts: true, ..here(pairs) };
        apply(&parameters, workload)
    };
    let settings = on_hosts(&[("CLIENT_COUNT", "2"), ("CLIENT_SERVER_PAIR", "4")], None).unwrap();
    assert_eq!(key(&settings, "server.pairs"), Some("4"));
    assert_eq!(key(&settings, "fleet.client_hosts"), Some("2"));
    assert_eq!(key(&settings, "fleet.clients"), Some(r#"["clients"]"#));
    assert_eq!(key(&settings, "fleet.amounts"), Some("per-server"));
    assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    let set = on_hosts(&[("REPLICA_SET", "true"), ("CLIENT_SERVER_PAIR", "1")], None).unwrap();
    assert_eq!(key(&set, "fleet.mapping"), Some("deployment"));
    let steered = on_hosts(&[("NETWORK_RPS_TUNE_ENABLE", "true")], None).unwrap();
    let card = key(&steered, "server.receive_packet_steering");
    assert_eq!(card, Some("auto"), "the card that the servers listen on");
    // Clients are on other machines than the servers, with other nodes and cores.
    for (given, expected) in [
        (&[("NUMACTL_OPTION", "1")][..], "spread client=none"),
        (&[("NUMACTL_OPTION", "2")], "node=0 client=none"),
        (&[("NUMACTL_OPTION", "2"), ("YCSB_CORES", "0-3")], "node=0 client=0-3"),
        (
            &[("NUMACTL_OPTION", "4"), ("CORE_NUMS_EACH_INSTANCE", "2")],
            "cores-per-instance=2,smt client=none",
        ),
        (
            &[("NUMACTL_OPTION", "2"), ("CUSTOMER_NUMAOPT_CLIENT", "-C 0-3 -l")],
            "node=0 client=0-3@local",
        ),
        (
            &[("NUMACTL_OPTION", "2"), ("CUSTOMER_NUMAOPT_CLIENT", "numactl -N 0 -m 0")],
            "node=0 client=nodes=0@bind:0",
        ),
        (
            &[("NUMACTL_OPTION", "1"), ("CUSTOMER_NUMAOPT_CLIENT", "--interleave=all")],
            "spread client=any@interleave:all",
        ),
    ] {
        let placed = on_hosts(given, None).unwrap();
        assert_eq!(key(&placed, "server.placement"), Some(expected));
    }
    for options in ["-N 0 -C 0", "-m 0 -i 1", "-p 0-1"] {
        let given = [("NUMACTL_OPTION", "2"), ("CUSTOMER_NUMAOPT_CLIENT", options)];
        let problems = on_hosts(&given, None).expect_err("it is refused");
        let text = problems[0].to_string();
        assert!(
            text.contains("`CUSTOMER_NUMAOPT_CLIENT`") && text.contains("`YCSB_CORES=LIST`"),
            "{text}"
        );
    }
    // A plan file has its own table.
    let own = on_hosts(&[("CLIENT_COUNT", "2")], Some("own.toml")).unwrap();
    assert_eq!((key(&own, "fleet.clients"), key(&own, "fleet.client_hosts")), (None, Some("2")));
    // Nothing is traced there.
    for window in ["time,3,4", "roi,RUN_PHASE"] {
        let settings = on_hosts(&[("EVENT_TRACE_PARAMS", window)], None).unwrap();
        assert_eq!(settings.trace, None);
        let [warning] = settings.warnings.as_slice() else { panic!("{:?}", settings.warnings) };
        assert!(
            warning.starts_with("`EVENT_TRACE_PARAMS`") && warning.contains("fleet"),
            "{warning}"
        );
    }
    for (name, value) in [
        ("CLIENT_COUNT", "0"),
        ("RUN_SINGLE_NODE", "true"),
        ("TESTCASE", "test_static_ycsb_mongodb604_base_pkm"),
        ("WORKLOAD_FILE", "pkm"),
    ] {
        let problems = on_hosts(&[(name, value)], None).expect_err("it is refused");
        assert!(problems[0].message.contains(name), "{problems:?}");
    }
}

#[test]
fn manual_defaults_apply_unless_a_value_is_given() {
    let with = |pairs: &[(&str, &str)]| {
        let parameters = Parameters { all_defaults: true, ..here(pairs) };
        apply(&parameters, None).unwrap_or_else(|problems| panic!("{problems:?}"))
    };
    let all = with(&[]);
    let sizes = ["recordcount", "operationcount", "maxexecutiontime"];
    let sizes = sizes.map(|name| property(&all, name));
    assert_eq!(sizes, [Some("4000000"), Some("4000000"), Some("180")]);
    assert_eq!(key(&all, "server.journal"), Some("false"));
    assert!(all.notes.iter().any(|note| note.contains("`MAX_EXECUTION_TIME=180`")));
    let some = with(&[("RECORD_COUNT", "1000"), ("JOURNAL_ENABLED", "true")]);
    assert_eq!(property(&some, "recordcount"), Some("1000"));
    assert_eq!(key(&some, "server.journal"), Some("true"));
    let gate = with(&[("TESTCASE", "gated")]);
    assert_eq!(property(&gate, "recordcount"), None);
    // Its trace begins after five minutes.
    let pkm = with(&[("TESTCASE", "pkm")]);
    let sizes = ["recordcount", "operationcount", "maxexecutiontime"];
    let sizes = sizes.map(|name| property(&pkm, name));
    assert_eq!(sizes, [Some("4000000"), None, None]);
    // Default values that pods do not support.
    let off = [("JOURNAL_ENABLED", "false")];
    for (settings, is_noted) in [(&all, true), (&some, false), (&with(&off), false), (&gate, false)]
    {
        let noted = settings
            .notes
            .iter()
            .any(|note| note.contains("6.1") && note.contains("`JOURNAL_ENABLED=true`"));
        assert_eq!(noted, is_noted, "{:?}", settings.notes);
    }
}

#[test]
fn keys_and_properties_of_the_table_exist() {
    let schema = file::schema();
    for variable in VARIABLES {
        match variable.treatment {
            Treatment::Property(name) => assert!(ycsb::find(name).is_some(), "{name}"),
            Treatment::Plan(key) => {
                let (table, key) = key.split_once('.').unwrap();
                assert_eq!(table, "server");
                let known = &schema["$defs"]["ServerPlan"]["properties"];
                assert!(known[key].is_object(), "{key}");
            }
            _ => {}
        }
    }
}

/// Names in capital letters in the first cells of the tables of `docs/wsf.md`.
fn documented() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wsf.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut names = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cell = line.trim_matches('|').split('|').next().unwrap_or_default();
        for name in cell.split('`').skip(1).step_by(2) {
            let capital = |c: char| c.is_ascii_uppercase() || c == '_';
            if name.len() > 2 && name.chars().all(capital) {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[test]
fn documentation_has_exactly_the_parameters_of_the_table() {
    let table: BTreeSet<String> =
        VARIABLES.iter().map(|variable| variable.name.to_owned()).collect();
    assert_eq!(table.len(), VARIABLES.len(), "a name is listed twice");
    let documented = documented();
    let missing: Vec<_> = table.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&table).collect();
    assert_eq!((missing, unknown), (vec![], vec![]));
}
