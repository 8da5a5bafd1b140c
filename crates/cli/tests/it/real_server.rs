//! Whole runs with the embedded server: starting, loading, checking, refusing, and cleaning up.

use crate::common::ycsb_plans;
use crate::common::{Bench, Finished, names, processes_with, signal, wait_for, wait_for_windows};
use dyno_testkit::{embedded, embedded_program, embedded_with, or_skip};
use serde_json::Value;

const SMALL: [&str; 6] = ["--records", "300", "--operations", "200", "--warmup", "0s"];

fn small<'a>(workload: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", workload][..], &SMALL, more].concat()
}

fn count(document: &Value, phase: &str, operation: &str) -> u64 {
    let phase = document["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["name"] == phase)
        .unwrap();
    phase["operations"][operation]["count"].as_u64().unwrap_or(0)
}

#[test]
fn one_command_starts_loads_measures_and_leaves_only_the_run() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let finished = bench.dyno(&small("a", &["--format", "json"])).expect(0);
    let document = finished.json();
    crate::common::run_schema().validate(&document).unwrap_or_else(|error| panic!("{error}"));
    let server = &document["server"];
    assert_eq!(
        (server["kind"].as_str(), server["documents"].as_u64()),
        (Some("embedded"), Some(300))
    );
    assert_eq!(server["topology"], "standalone");
    assert!(server["data_bytes"].as_u64().unwrap() > 300_000);
    assert_eq!(count(&document, "measure", "read") + count(&document, "measure", "update"), 200);
    assert!(document["environment"]["data_storage"]["filesystem"].is_string());
    let run = bench.path("runs").join(&names(&bench.path("runs"))[0]);
    assert!(!names(&run).contains(&"server-data".to_owned()), "{:?}", names(&run));
    assert_eq!(names(&run.join("server-logs")), ["server.raw.log"]);
    assert!(processes_with(bench.folder.path().to_str().unwrap()).is_empty());
}

#[test]
fn every_built_in_workload_runs() {
    let Some(_) = or_skip(embedded_program()) else {
        return;
    };
    let bench = Bench::new();
    for workload in ycsb_plans() {
        let mut more = vec!["--format", "json", "--out", workload];
        if !dyno_testkit::fault::is_root() {
            more.extend(["--set", "data.page_cache=keep"]);
        }
        let finished = bench.dyno(&small(workload, &more)).expect(0);
        let document = finished.json();
        assert_eq!(document["name"], workload);
        let measure = document["phases"].as_array().unwrap().last().unwrap();
        let operations = measure["operations"].as_object().unwrap();
        let errors: u64 =
            operations.values().map(|operation| operation["errors"].as_u64().unwrap()).sum();
        assert_eq!(errors, 0, "{workload}");
        assert!(measure["achieved_rate_per_s"].as_f64().unwrap() > 0.0, "{workload}");
        let caveats = document["caveats"].as_array().unwrap();
        assert!(
            caveats.iter().all(|caveat| caveat["kind"] != "document_count"),
            "{workload}: {caveats:?}"
        );
    }
}

#[test]
fn values_are_checked_when_the_plan_asks_for_it() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    let aimed = ["--uri", &uri, "--format", "json"];
    let plain = bench.dyno(&small("a", &aimed)).expect(0).json();
    assert_eq!(count(&plain, "load", "insert_batch"), 3);
    let checked = [&aimed[..], &["-p", "dataintegrity=true"]].concat();
    bench.dyno(&small("a", &checked)).expect(3).says("`data.integrity`").says("--fresh");
    let fresh = [&checked[..], &["--fresh"]].concat();
    let document = bench.dyno(&small("a", &fresh)).expect(0).json();
    assert!(count(&document, "measure", "read") > 50);
}

#[test]
fn second_run_reuses_the_data_and_refuses_changed_data() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    let aimed = ["--uri", &*uri, "--format", "json"];
    bench.dyno(&small("a", &aimed)).expect(0);
    let again = bench.dyno(&small("a", &aimed)).expect(0).says(" 300 ").json();
    assert_eq!(again["phases"].as_array().unwrap().len(), 1, "the second run must not load");
    let inserting = bench.dyno(&small("d", &aimed)).expect(0).json();
    let inserted = count(&inserting, "measure", "insert");
    assert!(inserted > 0);
    let found = 300 + inserted;
    let runs = names(&bench.path("runs")).len();
    bench
        .dyno(&small("a", &aimed))
        .expect(3)
        .says(&format!(" {found} "))
        .says(" 300")
        .says(&format!("`--records {found}`"))
        .says("--fresh");
    assert_eq!(names(&bench.path("runs")).len(), runs, "a refused run leaves no folder");
    bench
        .dyno(&[
            "run",
            "a",
            "--records",
            &found.to_string(),
            "--operations",
            "50",
            "--warmup",
            "0s",
            "--uri",
            &uri,
        ])
        .expect(0);
    bench.dyno(&small("a", &[&aimed[..], &["-p", "fieldcount=3"]].concat())).expect(3);
    bench.dyno(&small("a", &[&aimed[..], &["--fresh"]].concat())).expect(0);
}

#[test]
fn documents_of_another_shape_are_refused_with_the_difference() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    bench.dyno(&small("a", &["--uri", &uri])).expect(0);
    for (property, found) in [
        ("fieldcount=3", "10 fields"),
        ("fieldlength=50", "100 bytes"),
        ("insertorder=ordered", "hashed"),
        ("fieldnameprefix=f", "`f0`"),
    ] {
        bench.dyno(&small("a", &["--uri", &uri, "-p", property])).expect(3).says(found);
    }
}

#[test]
fn a_load_that_was_cut_short_is_completed() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let uri = server.uri();
    let part =
        ["load", "a", "--records", "300", "--uri", &uri, "--batch", "7", "-p", "insertcount=100"];
    let first = bench.dyno(&[&part[..], &["--format", "json"]].concat()).expect(0).json();
    assert_eq!(count(&first, "load", "insert_batch"), 15);
    assert_eq!(first["server"]["documents"], 100);
    bench.dyno(&small("a", &["--uri", &uri, "--no-load"])).expect(3).says(" 100 ").says(" 300");
    let whole = bench.dyno(&small("a", &["--uri", &uri, "--format", "json"])).expect(0);
    assert!(whole.stderr.contains("100 of 300"), "{}", whole.stderr);
    assert_eq!(whole.json()["server"]["documents"], 300);
    bench.dyno(&["load", "a", "--records", "300", "--uri", &uri]).expect(0).says(" 300 ");
    bench.dyno(&small("a", &["--uri", &uri, "--no-load"])).expect(0);
}

#[test]
fn data_dir_is_kept_after_the_run() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    bench.dyno(&["load", "a", "--records", "200", "--data-dir", "data", "--out", "l"]).expect(0);
    let document = bench
        .dyno(&[
            "run",
            "a",
            "--records",
            "200",
            "--operations",
            "50",
            "--warmup",
            "0s",
            "--data-dir",
            "data",
            "--no-load",
            "--format",
            "json",
        ])
        .expect(0)
        .json();
    assert_eq!(document["server"]["documents"], 200);
    assert!(bench.path("data").is_dir());
}

#[test]
fn wrong_credentials_are_refused_without_printing_them() {
    let Some(server) = or_skip(embedded_with(|options| options.plan.auth = true)) else {
        return;
    };
    let bench = Bench::new();
    let uri = format!("mongodb://me:secret@{}/", server.address());
    for backend in ["wire", "driver"] {
        let finished = bench.dyno(&small("a", &["--uri", &uri, "--backend", backend])).expect(3);
        let finished = finished.says("`me`").says("`admin`").says("hint: ");
        assert!(!finished.stderr.contains("secret"), "{}", finished.stderr);
    }
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn a_missing_embedded_server_says_how_to_get_it() {
    let bench = Bench::new();
    // A copy of the program does not find a project above it.
    let program = bench.path("dyno");
    std::fs::copy(env!("CARGO_BIN_EXE_dyno"), &program).unwrap();
    let output = std::process::Command::new(&program)
        .args(["run", "a", "--operations", "5", "--server", "embedded"])
        .current_dir(bench.folder.path())
        .env_clear()
        .output();
    Finished::from(output.unwrap())
        .expect(3)
        .says("`secantusd-rs`")
        .says("hint: ")
        .says("`scripts/setup.sh embedded`");
    assert_eq!(bench.entries(), ["dyno"]);
    bench
        .dyno(&["run", "a", "--embedded-server", "/no/such/program"])
        .expect(3)
        .says("`/no/such/program`");
    assert_eq!(bench.entries(), ["dyno"]);
}

#[test]
fn interrupt_stops_our_server_and_saves_the_run() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments =
        ["run", "a", "--records", "300", "--duration", "10m", "--warmup", "0s", "--out", "r"];
    let mut child = bench.spawn(&arguments);
    wait_for_windows(&mut child, &bench.path("r"), 3);
    signal(&child, "INT");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert!(processes_with(bench.folder.path().to_str().unwrap()).is_empty());
    assert!(!bench.path("r/server-data").exists());
    assert!(bench.dyno(&["report", "r"]).expect(0).stdout.contains("partial"));
}

#[test]
fn a_killed_run_leaves_no_server_and_a_readable_record() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments =
        ["run", "a", "--records", "300", "--duration", "10m", "--warmup", "0s", "--out", "r"];
    let mut child = bench.spawn(&arguments);
    wait_for_windows(&mut child, &bench.path("r"), 3);
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    let folder = bench.folder.path().to_str().unwrap().to_owned();
    wait_for("the server to end", || processes_with(&folder).is_empty());
    wait_for("the data to be removed", || !bench.path("r/server-data").exists());
    assert_eq!(
        bench.dyno(&["report", "r", "--format", "json"]).expect(0).json()["status"],
        "partial"
    );
}

#[test]
fn server_that_dies_in_a_run_is_reported_with_its_output() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments =
        ["run", "a", "--records", "300", "--duration", "10m", "--warmup", "0s", "--out", "r"];
    let mut child = bench.spawn(&arguments);
    wait_for_windows(&mut child, &bench.path("r"), 3);
    let servers = processes_with(bench.path("r/server-data").to_str().unwrap());
    let server = servers.iter().find(|&&process| {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        name.starts_with("secantusd")
    });
    let killed =
        std::process::Command::new("kill").args(["-9", &server.unwrap().to_string()]).status();
    assert!(killed.unwrap().success());
    let finished = Finished::from(child.wait_with_output().unwrap()).expect(3);
    finished.says("(signal: 9").says("last output").says("dyno report r");
    assert!(!bench.path("r/server-data").exists());
    let document = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "failed");
    // The record has the failures that the clients saw.
    let lost = document["phases"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|phase| phase["errors"]["disconnected"].as_u64())
        .sum::<u64>();
    assert!(lost > 0, "{document}");
}
