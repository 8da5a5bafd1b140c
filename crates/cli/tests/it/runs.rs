//! `dyno runs`, and shortened names of runs in other commands.

use crate::common::runs::MadeUp;
use crate::common::{Bench, names};
use dyno_record::model::RunStatus;
use std::fs::{self, File};

/// Three runs and an experiment with one run, in the order of time.
fn recorded() -> Bench {
    let bench = Bench::new();
    MadeUp { tags: &["base", "nightly"], ..MadeUp::new(1000) }
        .of_day(0)
        .write(&bench.path("runs/2026-01-01T12-00-00-a"));
    MadeUp { name: "b", product: Some("Other"), ..MadeUp::new(2000) }
        .of_day(1)
        .write(&bench.path("runs/2026-01-02T12-00-00-b"));
    let stopped = MadeUp { tags: &["nightly"], status: RunStatus::Partial, ..MadeUp::new(1000) };
    stopped.of_day(2).write(&bench.path("runs/2026-01-03T12-00-00-a"));
    let experiment = bench.path("experiments/2026-01-04T12-00-00-slo-a");
    MadeUp::new(1000).of_day(3).write(&experiment.join("runs/001-a"));
    let document = serde_json::json!({
        "schema_version": 1, "dyno_version": "0.1.0", "verb": "slo", "question": "", "name": "a",
        "started_at": "2026-01-04T12:00:00Z", "status": "complete", "plan": {}, "options": {},
        "axes": [],
        "points": [{ "settings": {}, "repeat": 0, "directory": "runs/001-a" }],
    });
    fs::write(experiment.join("experiment.json"), document.to_string()).unwrap();
    // Neither is a record.
    fs::create_dir_all(bench.path("runs/other")).unwrap();
    fs::write(bench.path("runs/other/run.json"), r#"{"title": "a dashboard"}"#).unwrap();
    fs::write(bench.path("runs/notes.txt"), "mine").unwrap();
    bench
}

/// Names of the listed records.
fn listed(bench: &Bench, filter: &[&str]) -> Vec<String> {
    let arguments = [&["runs", "--format", "json"], filter].concat();
    let found = bench.dyno(&arguments).expect(0).json();
    let names = found.as_array().unwrap().iter().map(|one| {
        let name = one["directory"].as_str().unwrap().rsplit('/').next().unwrap();
        name["2026-01-".len()..].replace("T12-00-00", "")
    });
    names.collect()
}

#[test]
fn runs_lists_the_newest_first() {
    let bench = recorded();
    assert_eq!(listed(&bench, &[]), ["04-slo-a", "03-a", "02-b", "01-a"]);
    // A folder of a record is the record.
    assert_eq!(listed(&bench, &["runs/2026-01-02T12-00-00-b"]), ["02-b"]);
    let found = bench.dyno(&["runs", "--format", "json"]).expect(0).json();
    assert_eq!(found[0]["kind"], "experiment");
    assert_eq!((&found[0]["verb"], &found[0]["runs"]), (&"slo".into(), &1.into()));
    assert_eq!(found[0]["server"]["kind"], "embedded");
    assert_eq!(found[1]["status"], "partial");
    assert_eq!((&found[2]["name"], &found[2]["operation"]), (&"b".into(), &"read".into()));
    let rate = found[2]["rate_per_s"].as_f64().unwrap();
    assert!((rate - 2000.0).abs() < 40.0, "{rate}");
    assert!(found[2]["response_p99_us"].as_f64().unwrap() > 2000.0);
    assert_eq!(found[3]["tags"], serde_json::json!(["base", "nightly"]));
    let text = bench.dyno(&["runs"]).expect(0).stdout;
    for shown in ["2026-01-02T12-00-00-b", "slo a, 1 run", "partial", "base nightly", "Other"] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
    assert!(!text.contains("001-a") && !text.contains("other"), "{text}");
}

#[test]
fn tag_names_its_only_run() {
    let bench = recorded();
    let found = bench.dyno(&["report", "base", "--format", "json"]).expect(0).json();
    let named = bench.dyno(&["report", "01-01", "--format", "json"]).expect(0).json();
    assert_eq!(found, named);
    bench.dyno(&["compare", "base", "01-01"]).expect(2).says("same record");
    let several = bench.dyno(&["report", "nightly"]).expect(2);
    several.says("`2026-01-03T12-00-00-a`").says("`2026-01-01T12-00-00-a`");
    bench.dyno(&["report", "weekly"]).expect(2).says("`weekly`");
}

#[test]
fn filters_of_runs_combine() {
    let bench = recorded();
    for (filter, wanted) in [
        (&["--plan", "b"][..], &["02-b"][..]),
        (&["--tag", "nightly"], &["03-a", "01-a"]),
        (&["--tag", "nightly", "--tag", "base"], &["01-a"]),
        (&["--server", "other"], &["02-b"]),
        (&["--since", "2026-01-02", "--until", "2026-01-03"], &["03-a", "02-b"]),
        (&["--until", "2026-01-02T12:00:00Z"], &["01-a"]),
        (&["--plan", "a", "--since", "2026-01-04"], &["04-slo-a"]),
        (&["experiments"], &["04-slo-a"]),
        (&["--plan", "x"], &[]),
    ] {
        assert_eq!(listed(&bench, filter), wanted, "{filter:?}");
    }
    bench.dyno(&["runs", "--plan", "x"]).expect(0).says("`runs`");
    bench.dyno(&["runs", "--since", "soon"]).expect(2).says("`7d`");
    bench.dyno(&["runs", "nowhere"]).expect(2).says("`nowhere`").says("hint: ");
}

#[test]
fn prune_deletes_only_the_listed_runs() {
    let bench = recorded();
    let kept = bench.path("runs/2026-01-01T12-00-00-a/notes.txt");
    fs::write(&kept, "mine").unwrap();
    let busy = bench.path("runs/busy");
    MadeUp { status: RunStatus::Running, ..MadeUp::new(1000) }.of_day(0).write(&busy);
    let lock = File::open(&busy).unwrap();
    lock.lock().unwrap();
    // Nobody can answer.
    bench.dyno(&["runs", "--prune"]).expect(2).says("--yes");
    assert_eq!(names(&bench.path("runs")).len(), 6);
    bench.dyno(&["runs", "--yes"]).expect(2);
    bench.dyno(&["runs", "b-0102", "--prune", "--yes"]).expect(0).says("deleted 1 run, ");
    assert!(!bench.path("runs/2026-01-02T12-00-00-b").exists());
    let finished = bench.dyno(&["runs", "--prune", "--yes", "--until", "2026-01-01"]).expect(0);
    finished.says("busy").says("notes.txt").says("deleted 1 run, ");
    assert_eq!(names(kept.parent().unwrap()), ["notes.txt"]);
    assert!(busy.join("run.json").exists());
    bench.dyno(&["runs", "--prune", "--yes"]).expect(0).says("1 run and 1 experiment");
    assert_eq!(names(&bench.path("experiments")), Vec::<String>::new());
    let left = ["2026-01-01T12-00-00-a", "busy", "notes.txt", "other"];
    assert_eq!(names(&bench.path("runs")), left);
}

#[test]
fn prune_refuses_a_run_of_an_experiment() {
    let bench = recorded();
    let inside = "experiments/2026-01-04T12-00-00-slo-a/runs";
    for folder in [inside, &format!("{inside}/001-a")] {
        bench.dyno(&["runs", folder, "--prune", "--yes"]).expect(3).says("whole experiment");
        assert!(bench.path(inside).join("001-a/run.json").exists());
    }
}

#[test]
fn names_may_be_shortened_wherever_a_run_is_named() {
    let bench = recorded();
    for name in ["b", "b-02", "02T12", "runs/2026-01-02", "runs/2026-01-02T12-00-00-b/run.json"] {
        let document = bench.dyno(&["report", name, "--format", "json"]).expect(0).json();
        assert_eq!(document["name"], "b", "{name}");
    }
    bench.dyno(&["export", "b-02", "--to", "hlog"]).expect(0);
    bench.dyno(&["compare", "01-01", "a-0101"]).expect(2).says("same record");
    MadeUp::new(1000).of_day(4).write(&bench.path("runs/2026-01-05T12-00-00-a"));
    let found = bench.dyno(&["compare", "01-01", "a-0105", "--format", "json"]).expect(0).json();
    assert_eq!(found["runs"], serde_json::json!([1, 1]));
    bench.dyno(&["status", "b-02"]).expect(1);
    bench.dyno(&["resume", "slo", "--format", "csv"]).expect(2).says("table");
    let ambiguous = bench.dyno(&["report", "2026-01-0"]).expect(2);
    ambiguous.says("`2026-01-02T12-00-00-b`").says("`2026-01-04T12-00-00-slo-a`");
    for command in [&["report", "x"][..], &["export", "x", "--to", "csv"], &["compare", "b", "x"]] {
        bench.dyno(command).expect(2).says("`x`").says("`dyno runs`");
    }
}

#[test]
fn report_without_a_name_shows_the_newest() {
    let bench = recorded();
    fs::remove_dir_all(bench.path("experiments")).unwrap();
    for name in [&[][..], &["latest"]] {
        let arguments = [&["report"], name, &["--format", "json"]].concat();
        let document = bench.dyno(&arguments).expect(0).json();
        assert_eq!(document["started_at"], "2026-01-03T12:00:00Z");
    }
    Bench::new().dyno(&["report"]).expect(2).says("no runs").says("hint: ");
}
