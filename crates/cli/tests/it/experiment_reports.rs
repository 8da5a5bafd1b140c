//! Experiment reports: stored next to their runs, also after an interruption, and rendered again.

use crate::common::{Bench, names};
use dyno_record::experiment::{Experiment, Options, SCHEMA_VERSION, Verb};
use dyno_record::model::RunStatus;
use dyno_report::page::NO_ANSWER;
use dyno_testkit::{embedded_program, or_skip};
use std::collections::BTreeMap;
use std::path::Path;

fn write_empty(folder: &Path) {
    let document = Experiment {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".into(),
        verb: Verb::Sweep,
        question: "How does `a` respond to clients from 1 to 2?".into(),
        name: "a".into(),
        started_at: "2026-08-22T10:15:00Z".into(),
        status: RunStatus::Failed,
        ended_at: None,
        status_reason: Some("the server did not start".into()),
        plan: serde_json::json!({}),
        options: Options::default(),
        axes: Vec::new(),
        environment: None,
        hosts: BTreeMap::new(),
        server_machines: BTreeMap::new(),
        points: Vec::new(),
        answer: None,
        findings: Vec::new(),
        limits: Vec::new(),
        caveats: Vec::new(),
    };
    std::fs::create_dir_all(folder).unwrap();
    let text = serde_json::to_string(&document).unwrap();
    std::fs::write(folder.join("experiment.json"), text).unwrap();
}

#[test]
fn report_renders_an_experiment_by_its_folder_or_its_document() {
    let bench = Bench::new();
    write_empty(&bench.path("one"));
    for (format, start) in [
        ("human", "Sweep of workload a\n"),
        ("markdown", "# Sweep of workload a\n"),
        ("html", "<!doctype html>"),
        ("json", "{\n"),
    ] {
        for place in ["one", "one/experiment.json"] {
            let finished = bench.dyno(&["report", place, "--format", format]).expect(0);
            assert!(finished.stdout.starts_with(start), "{}", finished.stdout);
            assert!(finished.stdout.contains("the server did not start"));
        }
    }
    bench.dyno(&["report", "one", "--output", "copy.txt"]).expect(0);
    let copy = std::fs::read_to_string(bench.path("copy.txt")).unwrap();
    assert!(copy.contains(NO_ANSWER), "{copy}");
}

#[test]
fn formats_of_a_single_run_are_refused_for_an_experiment() {
    let bench = Bench::new();
    write_empty(&bench.path("one"));
    for format in ["ycsb", "kpi"] {
        let finished = bench.dyno(&["report", "one", "--format", format]).expect(2);
        finished.says(&format!("`{format}`")).says("`runs`");
    }
}

#[test]
fn a_sweep_leaves_its_reports_and_says_what_it_found() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let finished = bench
        .dyno(&[
            "sweep",
            "c",
            "--clients",
            "1,2",
            "--records",
            "300",
            "--duration",
            "2s",
            "--warmup",
            "0s",
            "--out",
            "one",
            "--full",
        ])
        .expect(0);
    assert!(finished.stdout.contains("Findings"), "{}", finished.stdout);
    assert!(finished.stdout.contains("highest rate"));
    let folder = bench.path("one");
    let text = std::fs::read_to_string(folder.join("experiment.json")).unwrap();
    let answers = ["\"recommended-clients\"", "\"indistinct-clients\""];
    assert!(answers.iter().any(|code| text.contains(code)), "{text}");
    let files = names(&folder);
    for name in ["experiment.json", "report.html", "report.md"] {
        assert!(files.contains(&name.to_owned()), "{files:?}");
    }
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    for run in names(&folder.join("runs")) {
        let link = format!("runs&#x2f;{run}&#x2f;report.html");
        assert!(page.contains(&link), "{link}");
        assert!(folder.join("runs").join(&run).join("report.html").is_file());
    }
    let markdown = std::fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(markdown.contains("## Caveats"), "{markdown}");
}
