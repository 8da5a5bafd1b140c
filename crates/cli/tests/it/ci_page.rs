//! `docs/ci.md`: the workflow's steps run as they stand in the page, with the built program instead of the installed one, and
//! the table of minutes follows from the rule of `dyno ab`.

use crate::common::{Bench, Responder};
use dyno_analyze::comparison::pairs_needed;
use dyno_testkit::{go_before_others, project_dir};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;

fn page() -> String {
    std::fs::read_to_string(project_dir().join("docs/ci.md")).unwrap()
}

/// The shell steps of the workflow: their names and their scripts.
fn steps(page: &str) -> Vec<(String, String)> {
    let start = page.find("```yaml\n").unwrap() + "```yaml\n".len();
    let workflow = &page[start..];
    let workflow = &workflow[..workflow.find("```").unwrap()];
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut name = "";
    let mut is_script = false;
    for line in workflow.lines() {
        let indent = line.len() - line.trim_start().len();
        if let Some(found) = line.trim_start().strip_prefix("- name: ") {
            (name, is_script) = (found, false);
        } else if line.trim() == "run: |" {
            is_script = true;
            steps.push((name.to_owned(), String::new()));
        } else if is_script && indent >= 10 {
            let (_, script) = steps.last_mut().unwrap();
            script.push_str(&line[10..]);
            script.push('\n');
        } else {
            is_script = false;
        }
    }
    steps
}

#[test]
fn workflow_of_the_page_compares_and_writes_its_files() {
    let steps = steps(&page());
    let names: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Install dyno", "Compare"]);
    let (_, install) = &steps[0];
    assert_eq!(install.trim(), "pipx install mongodyno");
    let bench = Bench::new();
    let responders = [0, 1].map(|_| Responder::start(&["--service-us", "200"]));
    std::fs::create_dir(bench.path("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_dyno"), bench.path("bin/dyno")).unwrap();
    let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").unwrap());
    let summary = bench.path("summary.md");
    let output = bench
        .command_of(Path::new("bash"), &["-eo", "pipefail", "-c", &steps[1].1])
        .env("PATH", path)
        .env("BASELINE", responders[0].uri())
        .env("CANDIDATE", responders[1].uri())
        .env("DURATION", "1s")
        .env("TIME_LIMIT", "1s")
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let summary = std::fs::read_to_string(summary).unwrap();
    assert!(summary.starts_with("# Comparison of workload a\n\n**"), "{summary}");
    assert!(summary.contains("| **rate** |"), "{summary}");
    let html = std::fs::read_to_string(bench.path("comparison/report.html")).unwrap();
    assert!(html.starts_with("<!doctype html>"));
    let junit = std::fs::read_to_string(bench.path("dyno.xml")).unwrap();
    assert!(junit.contains(r#"tests="2""#), "{junit}");
    assert!(junit.contains(r#"name="p99=20%""#) && junit.contains(r#"name="rate=10%""#), "{junit}");
    // Any outcome is possible on a busy machine.
    let expected = match () {
        () if junit.contains("<failure") => 1,
        () if junit.contains("<error") => 5,
        () => 0,
    };
    assert_eq!(output.status.code(), Some(expected), "{errors}\n{junit}");
}

#[test]
fn ab_ends_with_the_outcome_of_its_limits() {
    go_before_others();
    let bench = Bench::new();
    let fast = Responder::start(&["--service-us", "200"]);
    let slow = Responder::start(&["--service-us", "4000"]);
    let compare = |a: &Responder, b: &Responder, pairs: &str, limit: &str| {
        let [uri_a, uri_b] = [a, b].map(|one| one.uri());
        let [of_a, of_both] = [uri_a, uri_b].map(|uri| format!("server.uri={uri}"));
        let plan = ["ab", "a", "--records", "100", "--warmup", "0s", "--duration", "1s"];
        let kind = ["--clients", "2", "--set-both", "server.kind=uri"];
        let sides = ["--set-both", &of_both, "--set-a", &of_a];
        let rules = ["--min-pairs", pairs, "--max-pairs", pairs, "--fail-if-worse", limit];
        bench.dyno(&[&plan[..], &kind, &sides, &rules].concat())
    };
    let slower = compare(&fast, &slow, "3", "mean=50%").expect(1);
    assert!(slower.stdout.starts_with("B is worse than allowed: mean"), "{}", slower.stdout);
    slower.says("`--fail-if-worse mean=50%`");
    compare(&slow, &fast, "3", "mean=50%").expect(0);
    // One pair does not show how much runs vary.
    let undecided = compare(&fast, &slow, "1", "mean=50%").expect(5);
    assert!(undecided.stdout.starts_with("Cannot tell"), "{}", undecided.stdout);
}

#[test]
fn resume_judges_the_limits_of_its_experiment() {
    let bench = Bench::new();
    let server = Responder::start(&["--service-us", "200"]);
    let uri = server.uri();
    let ab = ["ab", "c", "--uri", &uri, "--records", "100", "--warmup", "0s", "--duration", "3s"];
    let load = ["--rate", "200", "--set-b", "schedule.rate_per_s=300", "--clients", "2"];
    let rules = ["--max-pairs", "1", "--fail-if-worse", "mean=50%"];
    let files = ["--junit", "limits.xml", "--out", "x"];
    bench.dyno(&[&ab[..], &load, &rules, &files].concat()).expect(5);
    let document = || -> Value {
        let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let found = document();
    let schedules = [&found["plan"], &found["options"]["ab"]["plan_of_b"]];
    let schedules =
        schedules.map(|plan| [&plan["schedule"]["kind"], &plan["schedule"]["rate_per_s"]]);
    assert_eq!(json!(schedules), json!([["constant", 200.0], ["constant", 300.0]]));
    let judged = |found: &Value| {
        let [limit] = found["limits"].as_array().unwrap().as_slice() else { panic!("{found}") };
        assert_eq!((&limit["figure"], &limit["outcome"]), (&"mean".into(), &"undecided".into()));
        assert_eq!(limit["margin_ratio"], 0.5);
    };
    judged(&found);
    let page = bench.dyno(&["report", "x"]).expect(0).stdout;
    assert!(page.contains("B (rate_per_s 300)"), "{page}");
    let page = std::fs::read_to_string(bench.path("x/report.html")).unwrap();
    let address = uri.trim_start_matches("mongodb://").trim_end_matches('/');
    assert!(page.contains(&format!("mongod 7.0.0 at {address}")), "{page}");
    // The start's file and the limits are known; another file may be named.
    std::fs::remove_file(bench.path("limits.xml")).unwrap();
    let run = found["points"][1]["directory"].as_str().unwrap();
    std::fs::remove_dir_all(bench.path("x").join(run)).unwrap();
    bench.dyno(&["resume", "x"]).expect(5);
    judged(&document());
    bench.dyno(&["resume", "x", "--junit", "other.xml"]).expect(5);
    for file in ["limits.xml", "other.xml"] {
        let text = std::fs::read_to_string(bench.path(file)).unwrap();
        assert!(text.contains(r#"name="mean=50%""#), "{text}");
    }
}

#[test]
fn minutes_of_the_page_follow_from_the_rule() {
    /// Two runs of 10 s after 2 s of warm-up, and a second each for their start and end.
    const PAIR_S: f64 = 26.0;
    let page = page();
    let mut rows = 0;
    for line in page.lines().filter(|line| line.contains(" pairs, ") && line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let percent: f64 = cells[1].trim_end_matches(" %").parse().unwrap();
        for (margin, cell) in [0.05, 0.1, 0.2, 0.3_f64].into_iter().zip(&cells[3..]) {
            let pairs = pairs_needed(percent / 100.0, margin.ln_1p() / 3.0).unwrap();
            let minutes = (pairs as f64 * PAIR_S / 60.0).ceil();
            assert_eq!(*cell, format!("{pairs} pairs, {minutes} min"), "{line}");
        }
        rows += 1;
    }
    assert_eq!(rows, 3);
}
