//! `dyno run` with several workloads: the runs, their documents, the table in every format, and refusals.

use crate::common::{Bench, Finished, Responder, assert_machine_is_reported};
use dyno_testkit::{embedded_program, mongod_program, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;

/// Short runs of few documents.
const SHORT: [&str; 8] =
    ["--records", "300", "--duration", "1s", "--warmup", "0s", "--clients", "2"];

fn json(bench: &Bench, path: &str) -> Value {
    let text = std::fs::read_to_string(bench.path(path)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The runs by workload and a setting in run order, and whether each run loaded documents.
fn runs(bench: &Bench, key: &str) -> Vec<(String, bool)> {
    let document = json(bench, "x/experiment.json");
    document["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| {
            let directory = point["directory"].as_str().unwrap();
            let run = json(bench, &format!("x/{directory}/run.json"));
            let mut phases = run["phases"].as_array().unwrap().iter();
            let workload = point["workload"].as_str().unwrap();
            let value = point["settings"][key].as_str().unwrap_or_default();
            (format!("{workload}{value}"), phases.any(|phase| phase["name"] == "load"))
        })
        .collect()
}

/// The lines of a CSV table, by column name.
fn table(text: &str) -> Vec<BTreeMap<&str, &str>> {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    lines
        .map(|cells| {
            assert_eq!(cells.len(), head.len(), "{cells:?}");
            head.iter().copied().zip(cells).collect()
        })
        .collect()
}

fn number(row: &BTreeMap<&str, &str>, column: &str) -> f64 {
    let text = row[column];
    text.parse().unwrap_or_else(|_| panic!("{column}: `{text}` in {row:?}"))
}

#[test]
fn workloads_of_a_suite_share_documents_and_one_table() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let unloaded = ["run", "a", "d", "--no-load", "--dry-run"];
    refused(&bench, &unloaded, "`--no-load`");
    let suite = ["run", "d", "a", "e", "--set", "client.batch=50,100"];
    let reported = ["--below", "10s", "--format", "csv", "--out", "x"];
    let arguments = [&suite[..], &SHORT, &reported].concat();
    let finished = bench.dyno(&arguments).expect(0);
    // Workloads that insert come last; d reuses the documents of a, and documents are loaded again after any workload that
    // inserts.
    let expected = [
        ("a50", true),
        ("d50", false),
        ("e50", true),
        ("a100", true),
        ("d100", false),
        ("e100", true),
    ];
    let expected = expected.map(|(run, loads)| (run.to_owned(), loads));
    assert_eq!(runs(&bench, "client.batch"), expected);
    let rows = table(&finished.stdout);
    let names: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {} {}", row["workload"], row["client.batch"], row["operation"]))
        .collect();
    // In the order of the command line.
    let operations = |workload: &str, operations: [&str; 2]| {
        let of = |batch: u32| operations.map(|name| format!("{workload} {batch} {name}"));
        [of(50), of(100)].concat()
    };
    let expected = [
        vec!["load 50 insert".to_owned(), "load 100 insert".to_owned()],
        operations("d", ["insert", "read"]),
        operations("a", ["read", "update"]),
        operations("e", ["insert", "scan"]),
    ];
    assert_eq!(names, expected.concat());
    for row in &rows {
        assert!(number(row, "rate_per_s") > 0.0 && number(row, "max_us") > 0.0);
        assert!(number(row, "p50_us") <= number(row, "p99_us"));
        assert_eq!((row["below_ratio"], row["failed"]), ("1.000000", "0"));
    }
    // The counts equal the counts of the runs.
    let document = json(&bench, "x/experiment.json");
    let run = json(&bench, "x/runs/001-a-batch-50/run.json");
    let measure = run["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure");
    let reads = &measure.unwrap()["operations"]["read"];
    let row = rows.iter().find(|row| row["workload"] == "a").unwrap();
    assert_eq!(row["succeeded"], reads["count"].to_string());
    assert_eq!(number(row, "max_us"), reads["response_time_us"]["max"].as_f64().unwrap());
    let relative = &document["answer"]["relative"]["levels"];
    assert_eq!(relative.as_array().unwrap().len(), 3, "{relative}");
    every_form(&bench);
    // The suite is complete: nothing is run again, and the answer is the same.
    bench.dyno(&["resume", "x"]).expect(0);
    assert_eq!(json(&bench, "x/experiment.json")["answer"], document["answer"]);
}

/// The table in every format, and a share that is requested later.
fn every_form(bench: &Bench) {
    let report = |more: &[&str]| bench.dyno(&[&["report", "x"][..], more].concat()).expect(0);
    let markdown = report(&["--format", "markdown"]).stdout;
    assert!(markdown.contains("| workload | client.batch |"), "{markdown}");
    let html = std::fs::read_to_string(bench.path("x/report.html")).unwrap();
    for part in ["the base", "Mean response", "below 10 s"] {
        assert!(html.contains(part), "{part}");
    }
    let human = report(&["--full"]).stdout;
    assert!(human.contains("Suite d-a-e\n"), "{human}");
    let environment = &json(bench, "x/experiment.json")["environment"];
    for page in [&markdown, &html, &human] {
        assert_machine_is_reported(environment, page);
    }
    let never = report(&["--below", "1ns", "--format", "csv"]).stdout;
    for row in table(&never) {
        assert_eq!(row["below_ratio"], "0.000000");
    }
}

/// Checks that the arguments are refused as bad input and leave nothing.
#[track_caller]
fn refused(bench: &Bench, arguments: &[&str], why: &str) -> Finished {
    let finished = bench.dyno(arguments).expect(2).says(why);
    assert!(!bench.path("experiments").exists() && !bench.path("runs").exists());
    finished
}

#[test]
fn invalid_suites_are_refused_before_the_first_run() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let on = |arguments: &[&str], why: &str| {
        let uri = ["--uri", &uri, "--records", "1000"];
        drop(refused(&bench, &[&["run"], arguments, &uri].concat(), why));
    };
    on(&["a", "c", "a"], "`a`");
    on(&["a", "no-such-plan"], "no-such-plan");
    on(&["d", "e", "a"], "`--fresh`");
    on(&["d", "--repeat", "2", "--dry-run"], "`--fresh`");
    on(&["a", "b", "--wsf"], "`--wsf`");
    on(&["a", "--set", "client.clients=1,x"], "client.clients");
    on(&["a", "b", "--below", "0"], "--below <TIME>");
    on(&["a", "b", "--format", "kpi"], "`kpi`");
    on(&["a", "--format", "csv"], "`dyno export RUN --to csv`");
    on(&["replica-set-compare", "a"], "`replica-set-compare`");
    on(&["a", "--repeat", "0"], "1..=1000");
    let other = ["sweep", "replica-set-compare", "--clients", "1,2"];
    refused(&bench, &other, "`replica-set-compare`").says("`dyno run`");
    std::fs::write(bench.path("mine.toml"), "name = \"mine\"\nworkloads = []\n").unwrap();
    on(&["mine.toml"], "`workloads`");
    on(&["a", "b", "--set", "server.cache=1GiB,2GiB"], "server.cache");
}

#[test]
fn dry_run_lists_the_runs_of_a_suite_file() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let suite = "name = \"mine\"\nworkloads = [\"c\", \"b\"]\nrepeat = 2\n[set]\n\"client.clients\" = [1, 2]\n";
    std::fs::write(bench.path("mine.toml"), suite).unwrap();
    let uri = responder.uri();
    let arguments = ["run", "mine.toml", "--records", "1000", "--uri", &uri, "--dry-run"];
    let finished = bench.dyno(&arguments).expect(0);
    let lines = finished.stdout.lines();
    let runs: Vec<&str> = lines.filter(|line| line.starts_with("runs/")).collect();
    assert_eq!(
        runs,
        [
            "runs/001-c-clients-1  c client.clients=1",
            "runs/002-b-clients-1  b client.clients=1",
            "runs/003-c-clients-2  c client.clients=2",
            "runs/004-b-clients-2  b client.clients=2",
            "runs/005-c-clients-2  c client.clients=2",
            "runs/006-b-clients-2  b client.clients=2",
            "runs/007-c-clients-1  c client.clients=1",
            "runs/008-b-clients-1  b client.clients=1",
        ],
        "{}",
        finished.stdout
    );
    assert_eq!(bench.entries(), ["mine.toml"]);
    // Command-line options win.
    let once = [&arguments[..], &["--repeat", "1", "--set", "client.clients=3"]].concat();
    let finished = bench.dyno(&once).expect(0);
    let text = "runs/001-c  c\nruns/002-b  b\n";
    assert!(finished.stdout.ends_with(text), "{}", finished.stdout);
}

/// The responder takes two milliseconds for each operation, one after the other, for one client.
#[test]
fn below_ratio_matches_a_known_service_time() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&["--service-us", "2000"]));
    let uri = responder.uri();
    let on = ["--uri", &uri, "--records", "1000", "--clients", "1"];
    let length = ["--duration", "2s", "--warmup", "0s", "--out", "x"];
    let suite = ["run", "c", "--below", "1ms", "--format", "csv"];
    let finished = bench.dyno(&[&suite[..], &on, &length].concat()).expect(0);
    let rows = table(&finished.stdout);
    assert_eq!(rows.len(), 1, "{}", finished.stdout);
    assert_eq!((rows[0]["operation"], rows[0]["below_ratio"]), ("read", "0.000000"));
    assert!((1_900.0..20_000.0).contains(&number(&rows[0], "mean_us")));
    let later = bench.dyno(&["report", "x", "--below", "1s", "--format", "csv"]).expect(0);
    assert_eq!(table(&later.stdout)[0]["below_ratio"], "1.000000");
}

#[test]
fn one_workload_without_lists_is_an_ordinary_run() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let on = ["--uri", &uri, "--records", "1000", "--operations", "100"];
    let run = ["run", "c", "--set", "client.clients=2", "--warmup", "0s", "--out", "x"];
    bench.dyno(&[&run[..], &on].concat()).expect(0);
    assert!(bench.path("x/run.json").exists() && !bench.path("x/experiment.json").exists());
    bench.dyno(&["report", "x", "--below", "1ms"]).expect(2).says("`--below`");
    bench.dyno(&["report", "x", "--format", "csv"]).expect(2).says("`dyno export RUN --to csv`");
}

#[test]
fn suite_compares_a_replica_set_with_a_standalone_mongod() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let bench = Bench::new();
    let suite = ["run", "a", "b", "c", "d", "e", "f"];
    let on = ["--mongod", mongod.to_str().unwrap(), "--cache", "256MiB"];
    let settings = ["--set", "server.topology=standalone;replica-set=3"];
    let short = ["--records", "300", "--operations", "400", "--warmup", "0s"];
    let reported = ["--clients", "2", "--format", "csv", "--out", "x"];
    let arguments = [&suite[..], &on, &settings, &short, &reported].concat();
    let finished = bench.dyno(&arguments).expect(0);
    let rows = table(&finished.stdout);
    let of = |topology: &str| rows.iter().filter(|row| row["server.topology"] == topology).count();
    // The load and each kind of operation have a row. F has three kinds: the parts of a read-modify-write count in addition to
    // the whole.
    assert_eq!((of("standalone"), of("replica-set=3")), (13, 13), "{}", finished.stdout);
    // Each topology has one deployment, even if the documents are restored.
    let members = |directory: &str| {
        let run = json(&bench, &format!("x/runs/{directory}/run.json"));
        run["server"]["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|member| member["address"].to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(members("007-a-topology-replica-set_3").len(), 3);
    assert_eq!(members("007-a-topology-replica-set_3"), members("012-e-topology-replica-set_3"));
    let loads = runs(&bench, "server.topology");
    let loads: Vec<bool> = loads.iter().map(|(_, loads)| *loads).collect();
    // A, B, C, F and D share the documents of one load, and E has its own load.
    let of_each = [true, false, false, false, false, true];
    assert_eq!(loads, [of_each, of_each].concat());
}

/// No real Percona Server is available here: a fake server runs its engine, and the suite compares it.
#[test]
fn suite_compares_the_engines_of_percona_server() {
    let lab = crate::common::lab::Lab::new("6.0.11-8");
    let suite = ["run", "storage-engine-compare", "--mongod", &lab.mongod];
    let short = ["--records", "100", "--operations", "50", "--warmup", "0s"];
    let reported = ["--repeat", "1", "--format", "csv", "--out", "r"];
    let said = lab.bench.dyno(&[&suite[..], &short, &reported].concat());
    let said = said.expect(0).stdout;
    assert!(said.contains("wired-tiger") && said.contains("in-memory"), "{said}");
    let document: Value = recorded(&lab.bench, "r/experiment.json");
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 12, "six workloads on two engines");
    for point in points {
        let run = format!("r/{}/run.json", point["directory"].as_str().unwrap());
        let run: Value = recorded(&lab.bench, &run);
        let engine = match point["settings"]["server.storage_engine"].as_str() {
            Some("in-memory") => "inMemory",
            _ => "wiredTiger",
        };
        assert_eq!(run["server"]["settings"]["storage_engine"], engine, "{run}");
    }
    let mut wrong = lab.fake_mongod.violations();
    // A sample of existing documents; a run does not need it.
    wrong.retain(|text| !text.contains("$sample"));
    assert_eq!(wrong, Vec::<String>::new());
}

fn recorded(bench: &Bench, path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(bench.path(path)).unwrap()).unwrap()
}
