//! Every built-in plan, with every verb that takes it, on every kind of server: a dry run resolves the plan, or prints why the
//! run would be refused. A dry run refuses the same plans as the run.

use crate::common::lab::Lab;
use crate::common::{Bench, Finished, tracing};
use dyno_plan::builtin;
use dyno_testkit::fault::is_root;
use dyno_testkit::{embedded_program, mongod_program, or_skip};

/// No process listens there, and a dry run does not connect.
const NOBODY: &str = "mongodb://127.0.0.1:1/";

/// Ways to name a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Embedded,
    Mongod,
    Uri,
}

/// A dry run and its expected refusal, if any: exit code and a token of the error.
struct Case {
    verb: Vec<&'static str>,
    plan: &'static str,
    kind: Kind,
    refused: Option<(i32, &'static str)>,
}

/// Workload verbs with their required options.
fn workload_verbs() -> Vec<Vec<&'static str>> {
    vec![
        vec!["run"],
        vec!["soak"],
        vec!["load"],
        vec!["sweep", "--clients", "1,2"],
        vec!["xmax"],
        vec!["slo", "--p99", "5ms"],
        vec!["ab"],
        vec!["server", "plan"],
    ]
}

fn cases(can_trace: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [Kind::Embedded, Kind::Mongod, Kind::Uri] {
        let verbs = workload_verbs();
        let workloads =
            verbs.iter().flat_map(|verb| builtin::names().map(move |plan| (verb.clone(), plan)));
        let index_builds = builtin::INDEX_BUILDS.names().map(|plan| (vec!["index-build"], plan));
        let messages =
            builtin::TAILS.names().map(|plan| (vec!["tail", "--producer", "wire"], plan));
        let suites = builtin::suites().map(|plan| (vec!["run"], plan));
        for (verb, plan) in workloads.chain(index_builds).chain(messages).chain(suites) {
            let starts_servers = verb[0] == "server";
            if starts_servers && kind == Kind::Uri {
                continue;
            }
            let refused = match (verb[0], plan, kind) {
                ("load", _, Kind::Embedded | Kind::Mongod) => Some((2, "`--data-dir DIR`")),
                (_, "storage-compare", Kind::Uri) => Some((2, "`data.fresh`")),
                ("run" | "soak" | "sweep" | "xmax" | "slo" | "ab", "storage-compare", _)
                    if !is_root() =>
                {
                    Some((3, "`data.page_cache`"))
                }
                ("xmax", "insert-benchmark", _) => Some((2, "`[schedule]`")),
                ("index-build", _, _) if !can_trace => Some((3, "hint: ")),
                ("index-build", "existing", Kind::Embedded | Kind::Mongod) => {
                    Some((2, "`existing`"))
                }
                _ => None,
            };
            let refused = refused.or_else(|| suite_refusal(plan, kind));
            cases.push(Case { verb, plan, kind, refused });
        }
    }
    cases
}

/// The refusal of a suite on a server without the compared feature.
fn suite_refusal(plan: &str, kind: Kind) -> Option<(i32, &'static str)> {
    match (plan, kind) {
        ("replica-set-compare", Kind::Embedded) => Some((2, "`server.topology` = `replica-set=3`")),
        ("replica-set-compare", Kind::Uri) => Some((2, "`server.topology`")),
        ("storage-engine-compare", Kind::Uri) => Some((2, "`server.storage_engine`")),
        ("storage-engine-compare", Kind::Embedded) => Some((2, "in-memory engine")),
        ("storage-engine-compare", Kind::Mongod) => Some((2, "Percona Server")),
        ("version-compare", Kind::Embedded | Kind::Uri) => Some((3, "`6.0.5`")),
        _ => None,
    }
}

fn dry_run(bench: &Bench, mongod: &str, case: &Case) -> Finished {
    let mut arguments = case.verb.clone();
    arguments.push(case.plan);
    // The versions of this suite are not installed here, and two paths of one program count as two values.
    let twice = format!("server.mongod={mongod};/{mongod}");
    match case.kind {
        Kind::Mongod if case.plan == "version-compare" => {
            arguments.extend(["--server", "mongod", "--set", &twice]);
        }
        Kind::Embedded => arguments.extend(["--server", "embedded"]),
        Kind::Mongod => arguments.extend(["--server", "mongod"]),
        Kind::Uri => arguments.extend(["--uri", NOBODY]),
    }
    if case.kind == Kind::Mongod && case.plan != "version-compare" {
        arguments.extend(["--mongod", mongod]);
    }
    if case.verb[0] != "server" {
        arguments.push("--dry-run");
    }
    bench.dyno(&arguments)
}

/// All cases with this `mongod`.
fn try_all(bench: &Bench, mongod: &str) {
    let can_trace = tracing().is_some();
    for case in cases(can_trace) {
        let finished = dry_run(bench, mongod, &case);
        let name = format!("{:?} {} {:?}", case.verb, case.plan, case.kind);
        match case.refused {
            None => assert_eq!(finished.code, Some(0), "{name}: {}", finished.stderr),
            Some((code, words)) => {
                assert_eq!(finished.code, Some(code), "{name}: {}", finished.stderr);
                assert!(finished.stderr.contains(words), "{name}: {}", finished.stderr);
            }
        }
    }
    assert!(!bench.path("runs").exists() && !bench.path("experiments").exists());
}

#[test]
fn every_built_in_plan_resolves_or_is_refused_on_every_server() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let lab = Lab::new("7.0.14");
    try_all(&lab.bench, &lab.mongod);
    assert!(lab.processes("--dbpath").is_empty());
}

#[test]
fn every_built_in_plan_resolves_on_a_mongod_or_is_refused() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    if or_skip(embedded_program()).is_none() {
        return;
    }
    try_all(&Bench::new(), mongod.to_str().unwrap());
}

#[test]
fn storage_compare_settings_follow_the_server_kind() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let lab = Lab::new("7.0.14");
    let keep = ["--set", "data.page_cache=keep", "--dry-run"];
    let resolved = |more: &[&str]| {
        let run = [&["run", "storage-compare"], more, &keep].concat();
        let plan: toml::Table = lab.bench.dyno(&run).expect(0).stdout.parse().unwrap();
        assert_eq!(plan["server"]["cache"].as_str(), Some("smallest"));
        assert_eq!(plan["server"]["durable_writes"].as_bool(), Some(true));
        plan["data"]["records"].as_integer().unwrap()
    };
    let embedded = resolved(&["--server", "embedded"]);
    let mongod = resolved(&["--mongod", &lab.mongod]);
    assert_eq!((embedded, mongod), (201_327, 805_307));
}

/// A network card that does not exist on any machine.
const CARD: &str = "no-such-card";

/// Checks that a dry run with these arguments and the run itself are refused with the same message.
#[track_caller]
fn refused_alike(bench: &Bench, arguments: &[&str], code: i32, words: &str) {
    let dry = bench.dyno(&[arguments, &["--dry-run"]].concat());
    let dry = dry.expect(code).says(words);
    let wet = bench.dyno(arguments).expect(code).says(words);
    // A run prints its progress before the error. Free space differs between the two, and so does the list of network cards,
    // because tests of hosts add and remove cards.
    let error = |finished: &Finished| {
        let (_, error) = finished.stderr.split_once("error: ").unwrap();
        let (reason, hint) = error.split_once("hint: ").unwrap_or((error, ""));
        let hint = if words == CARD { "" } else { hint };
        format!("{reason}{hint}").replace(|c: char| c.is_ascii_digit() || c == '.', "")
    };
    assert_eq!(error(&dry), error(&wet), "{arguments:?}");
}

#[test]
fn dry_run_refuses_what_the_start_of_a_mongod_refuses() {
    let lab = Lab::new("7.0.14");
    let bench = &lab.bench;
    let mongod = lab.mongod.as_str();
    let with = |more: &[&'static str]| [&["run", "a", "--mongod", mongod][..], more].concat();
    for (more, words) in [
        (&["--cache", "64MiB"][..], "256 MiB"),
        (&["--set", "server.journal=false"], "`server.journal`"),
        (&["--set", "server.storage_engine=in-memory"], "`server.storage_engine`"),
        (&["--set", "server.journal_commit_interval=2s"], "500 ms"),
        (&["--topology", "replica-set=3,priorities=1/2"], "priorities"),
        (&["--placement", "cores-per-instance=4096"], "too few cores"),
    ] {
        refused_alike(bench, &with(more), 2, words);
    }
    // The folder contains data of others.
    std::fs::create_dir(bench.path("data")).unwrap();
    std::fs::write(bench.path("data/letter.txt"), "hello").unwrap();
    refused_alike(bench, &with(&["--data-dir", "data"]), 3, "/data`");
    // A missing program, and a program that is not a `mongod`.
    refused_alike(bench, &["run", "a", "--mongod", "nowhere"], 3, "nowhere");
    refused_alike(bench, &["run", "a", "--mongod", "/bin/ls"], 3, "/bin/ls");
    // Points of an experiment are checked before the first one runs.
    let sweep = ["sweep", "c", "--mongod", mongod, "--set", "server.cache=256MiB,1MiB"];
    refused_alike(bench, &sweep, 2, "256 MiB");
    let ab = ["ab", "c", "--mongod", mongod, "--set-b", "server.journal=false"];
    refused_alike(bench, &ab, 2, "`server.journal`");
    let tail = ["tail", "--producer", "wire", "--mongod", mongod, "--cache", "1MiB"];
    refused_alike(bench, &tail, 2, "256 MiB");
    let plan = ["server", "plan", "--mongod", mongod, "--cache", "1MiB"];
    bench.dyno(&plan).expect(2).says("256 MiB");
    assert!(lab.processes("--dbpath").is_empty());
}

#[test]
fn dry_run_refuses_what_the_run_refuses_before_connecting() {
    let bench = Bench::new();
    let with = |more: &[&'static str]| [&["run", "a", "--uri", NOBODY][..], more].concat();
    let fresh = ["--no-load", "--set", "data.fresh=collection"];
    refused_alike(&bench, &with(&fresh), 2, "`data.fresh`");
    let trace = ["--set", "trace=true"];
    refused_alike(&bench, &with(&trace), 2, "`dyno trace --server URI`");
    let card = ["--set", "server.receive_packet_steering=no-such-card"];
    refused_alike(&bench, &with(&card), 3, CARD);
    std::fs::create_dir(bench.path("old")).unwrap();
    std::fs::write(bench.path("old/run.json"), "{}").unwrap();
    refused_alike(&bench, &with(&["--out", "old"]), 2, "`run.json`");
    let least = ["soak", "a", "--uri", NOBODY, "--least-free", "1000TiB", "--out", "r"];
    refused_alike(&bench, &least, 3, "`--least-free`");
    let elsewhere = ["run", "a", "--uri", "mongodb://db.invalid/", "--set", "data.page_cache=drop"];
    refused_alike(&bench, &elsewhere, 2, "`data.page_cache`");
    let reading = ["run", "a", "--uri", "mongodb://127.0.0.1:1/?readPreference=secondary"];
    refused_alike(&bench, &reading, 2, "readPreference");
    let tail = ["tail", "--producer", "wire", "--consumer", "no-such-driver", "--uri", NOBODY];
    refused_alike(&bench, &tail, 2, "no-such-driver");
}

#[test]
fn load_settings_are_refused_for_index_builds_and_messages() {
    let bench = Bench::new();
    let exporter = "observe.exporters=[{name=\"node\",url=\"http://127.0.0.1:1/metrics\"}]";
    for verb in [&["index-build", "shuffled"][..], &["tail", "--producer", "wire"]] {
        for (setting, key) in [
            (exporter, "`observe.exporters`"),
            ("client.think_time=5ms", "`client.think_time`"),
            ("schedule={kind=\"constant\",rate_per_s=5}", "`schedule.kind`"),
        ] {
            let arguments = [verb, &["--uri", NOBODY, "--set", setting]].concat();
            refused_alike(&bench, &arguments, 2, key);
        }
    }
}

#[test]
fn dry_run_refuses_what_an_index_build_refuses() {
    let Some(bench) = tracing() else { return };
    let elsewhere = ["index-build", "shuffled", "--uri", "mongodb://db.invalid/", "--warm"];
    refused_alike(&bench, &elsewhere, 2, "db.invalid");
    let disk =
        ["index-build", "shuffled", "--uri", NOBODY, "--warm", "--storage", "xfs on loop:1GiB"];
    refused_alike(&bench, &disk, 2, "`server.storage`");
    std::fs::create_dir(bench.path("full")).unwrap();
    std::fs::write(bench.path("full/file"), "").unwrap();
    let full = ["index-build", "shuffled", "--uri", NOBODY, "--warm", "--out", "full"];
    refused_alike(&bench, &full, 2, "`full`");
}
