//! Finished records that were changed later: every report warns, or fails with an error.

use crate::common::runs::MadeUp;
use crate::common::{Bench, Responder, reads, recorded};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A short run in the folder `r`.
fn record(bench: &Bench) {
    let responder = Responder::with_documents(&[]);
    let uri = responder.uri();
    let run = reads(&uri, &["--operations", "500", "--out", "r"]);
    bench.dyno(&run).expect(0);
}

fn flip(path: &Path, place: usize) {
    let mut content = fs::read(path).unwrap();
    content[place] ^= 1;
    fs::write(path, content).unwrap();
}

/// The mark of a changed record in this format: the code of the caveat, or its label.
fn mark(format: &str) -> &'static str {
    match format {
        "json" => "record-changed",
        _ => "record changed",
    }
}

/// The report of the folder in this format: its text or its error.
fn reported(bench: &Bench, format: &str) -> String {
    let report = bench.dyno(&["report", "r", "--format", format, "--full"]);
    report.stdout + &report.stderr
}

/// Checks a finished record of any kind: its report is free of warnings, and names each of these files after a change.
#[track_caller]
pub(crate) fn assert_every_change_is_reported(bench: &Bench, record: &str, files: &[&str]) {
    let report = || {
        let report = bench.dyno(&["report", record, "--format", "json"]);
        (report.code, report.stdout + &report.stderr)
    };
    let assert_sound = || {
        let (code, text) = report();
        assert_eq!(code, Some(0), "{text}");
        assert!(!text.contains("record-changed"), "{text}");
    };
    assert!(bench.path(record).join("SHA256SUMS").is_file());
    assert_sound();
    for file in files {
        let path = bench.path(record).join(file);
        let before = fs::read(&path).unwrap();
        flip(&path, before.len() / 2);
        let (code, text) = report();
        let is_reported = code != Some(0) || text.contains("record-changed");
        assert!(is_reported && text.contains(file), "{file}: {text}");
        fs::write(&path, before).unwrap();
    }
    assert_sound();
}

#[test]
fn changed_index_builds_and_messages_are_reported() {
    let bench = Bench::new();
    recorded::index_build(&bench, "b");
    let of_build =
        ["index-build.json", "before/trace.json", "before/calls-000.parquet", "before/SHA256SUMS"];
    assert_every_change_is_reported(&bench, "b", &of_build);
    recorded::messages(&bench, "t");
    let of_tail = [
        "tail.json",
        "cells/01-wire-to-wire-in-flight-1-pool-4/messages.parquet",
        "cells/01-wire-to-wire-in-flight-1-pool-4/receipts.parquet",
    ];
    assert_every_change_is_reported(&bench, "t", &of_tail);
}

#[test]
fn a_finished_run_has_checksums_that_sha256sum_understands() {
    let bench = Bench::new();
    record(&bench);
    let check = Command::new("sha256sum")
        .args(["-c", "--strict", "SHA256SUMS"])
        .current_dir(bench.path("r"))
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    let sums = fs::read_to_string(bench.path("r/SHA256SUMS")).unwrap();
    for name in ["run.json", "plan.toml", "latency.hlog", "series/sub-second.csv"] {
        assert!(sums.contains(&format!("  {name}\n")), "{name} in {sums}");
    }
    assert!(!sums.contains("report."), "{sums}");
    for format in ["human", "markdown", "json"] {
        let text = reported(&bench, format);
        assert!(!text.contains(mark(format)), "{text}");
    }
    // A record from before checksums were introduced.
    fs::remove_file(bench.path("r/SHA256SUMS")).unwrap();
    flip(&bench.path("r/plan.toml"), 3);
    assert!(!reported(&bench, "json").contains("record-changed"));
}

#[test]
fn every_change_of_a_finished_run_is_reported() {
    type Change = (&'static str, fn(&Path));
    let changes: [Change; 5] = [
        ("run.json", |run| {
            let path = run.join("run.json");
            let text = fs::read_to_string(&path).unwrap();
            let changed = text.replacen("\"succeeded\": 5", "\"succeeded\": 6", 1);
            assert_ne!(changed, text);
            fs::write(path, changed).unwrap();
        }),
        ("metrics/host.csv", |run| {
            let path = run.join("metrics/host.csv");
            let text = fs::read_to_string(&path).unwrap();
            let end = text.trim_end().rfind('\n').unwrap();
            fs::write(path, &text[..=end]).unwrap();
        }),
        ("series/intervals.csv", |run| {
            let path = run.join("series/intervals.csv");
            let last = fs::metadata(&path).unwrap().len() as usize - 2;
            flip(&path, last);
        }),
        ("latency.hlog", |run| {
            let path = run.join("latency.hlog");
            let half = fs::metadata(&path).unwrap().len() as usize / 2;
            flip(&path, half);
        }),
        ("SHA256SUMS", |run| flip(&run.join("SHA256SUMS"), 64)),
    ];
    for (name, change) in changes {
        let bench = Bench::new();
        record(&bench);
        change(&bench.path("r"));
        for format in ["human", "markdown", "json"] {
            let text = reported(&bench, format);
            let is_error = text.contains("error: ") && text.contains(name);
            let is_reported = text.contains(mark(format)) && text.contains(name);
            assert!(is_error || is_reported, "{name} as {format}: {text}");
        }
    }
}

#[test]
fn experiment_reports_changed_runs_and_refuses_to_resume() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let mut sweep = reads(&uri, &["--duration", "1s", "--clients", "1,2", "--out", "x"]);
    sweep[0] = "sweep";
    bench.dyno(&sweep).expect(0);
    let first = fs::read_dir(bench.path("x/runs")).unwrap().next().unwrap();
    let first = first.unwrap().path();
    let kept = || {
        ["SHA256SUMS", "experiment.json"].map(|name| fs::read(bench.path("x").join(name)).unwrap())
    };
    let before = kept();
    for name in ["latency.hlog", "series/intervals.csv", "SHA256SUMS", "run.json"] {
        let (file, aside) = (first.join(name), bench.path("aside"));
        fs::rename(&file, &aside).unwrap();
        let refused = || bench.dyno(&["resume", "x", "--uri", &uri]).expect(2);
        refused().says(name).says("hint: ");
        std::os::unix::fs::symlink(&aside, &file).unwrap();
        refused().says(name).says("hint: ");
        assert_eq!(kept(), before);
        fs::rename(&aside, &file).unwrap();
    }
    let table = first.join("windows.parquet");
    let [run, table] = [&first, &table].map(|path| path.to_str().unwrap());
    bench.dyno(&["export", run, "--to", "parquet", "-o", table]).expect(0);
    bench.dyno(&["resume", "x", "--uri", &uri]).expect(0);
    flip(&first.join("latency.hlog"), 200);
    let report = bench.dyno(&["report", "x", "--format", "json"]).expect(0);
    assert!(report.stdout.contains("record-changed"), "{}", report.stdout);
    let resumed = bench.dyno(&["resume", "x", "--uri", &uri]).expect(2);
    resumed.says("latency.hlog").says("hint: ");
}

#[test]
fn trace_output_has_no_checksums() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let leaves = "touch t; chmod 000 t; sleep 60";
    let more = ["--trace", leaves, "--duration", "1s", "--out", "r"];
    bench.dyno(&reads(&uri, &more)).expect(0);
    assert!(bench.path("r/traces/trace/t").exists());
    let sums = fs::read_to_string(bench.path("r/SHA256SUMS")).unwrap();
    assert!(sums.contains("run.json") && !sums.contains("traces"), "{sums}");
    fs::remove_dir_all(bench.path("r/traces")).unwrap();
    assert!(!reported(&bench, "json").contains("record-changed"));
}

#[test]
fn other_formats_warn_of_changed_runs_and_history_skips_them() {
    let bench = Bench::new();
    for day in 0..3 {
        MadeUp::new(1000).of_day(day).write(&bench.path(&format!("h/{day}")));
    }
    let path = bench.path("h/1/plan.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, text + "\n").unwrap();
    for command in [
        &["report", "h/1", "--format", "kpi"][..],
        &["report", "h/1", "--format", "ycsb"],
        &["export", "h/1", "--to", "csv"],
    ] {
        bench.dyno(command).expect(0).says("warning: ").says("`plan.toml`");
        let other = command.iter().map(|word| if *word == "h/1" { "h/2" } else { word });
        let other = bench.dyno(&other.collect::<Vec<_>>()).expect(0);
        assert!(!other.stderr.contains("warning: "), "{}", other.stderr);
    }
    let found = bench.dyno(&["history", "h", "--format", "json"]).expect(0);
    let found = found.says("warning: ").says("`1`").says("`plan.toml`").json();
    assert_eq!(found["runs"].as_array().unwrap().len(), 2);
    assert_eq!(found["left_out"].as_array().unwrap().len(), 1);
}

#[test]
fn files_of_a_record_that_are_not_plain_are_refused() {
    let bench = Bench::new();
    record(&bench);
    let report = || bench.dyno(&["report", "r", "--format", "json"]);
    report().expect(0);
    for file in
        ["run.json", "latency.hlog", "series/operations.csv", "metrics/host.csv", "SHA256SUMS"]
    {
        let path = bench.path("r").join(file);
        let aside = bench.path("aside");
        fs::rename(&path, &aside).unwrap();
        let is_refused = || {
            let report = report();
            report.code != Some(0)
                || report.stderr.contains(file)
                || report.stdout.contains("record-changed")
        };
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(is_refused(), "{file}");
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(is_refused(), "{file}");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    report().expect(0);
}
