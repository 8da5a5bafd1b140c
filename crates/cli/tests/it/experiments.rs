//! Experiments end to end: their files, their output, and resuming after an interruption.

use crate::common::lab::kill;
use crate::common::{Bench, Finished, names, processes_with, signal, wait_for, wait_for_windows};
use dyno_testkit::{embedded_program, mongod_program, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Child;

/// Short runs of few documents.
const SHORT: [&str; 6] = ["--records", "200", "--duration", "1s", "--warmup", "0s"];

fn short<'a>(start: &[&'a str]) -> Vec<&'a str> {
    [start, &SHORT, &["--out", "x"]].concat()
}

fn document(bench: &Bench) -> Value {
    let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn points(document: &Value) -> &Vec<Value> {
    document["points"].as_array().unwrap()
}

/// Number of complete points.
fn done(bench: &Bench) -> usize {
    let document = document(bench);
    points(&document).iter().filter(|point| point.get("figures").is_some()).count()
}

#[track_caller]
fn assert_no_server(bench: &Bench) {
    let place = bench.folder.path().to_str().unwrap();
    wait_for("the end of the servers", || processes_with(place).is_empty());
    assert!(!bench.path("x/server-data").exists());
}

/// Waits until `finished` runs are done and another run is in the measure phase.
fn wait_for_run(bench: &Bench, finished: usize) {
    wait_for("a run under way", || {
        let runs = bench.path("x/runs");
        runs.is_dir()
            && names(&runs).len() > finished
            && bench.path("x/experiment.json").is_file()
            && done(bench) == finished
    });
}

/// Inode, time and size of every file below a folder.
fn traces(folder: &Path) -> BTreeMap<String, (u64, i64, i64, u64)> {
    let mut found = BTreeMap::new();
    for name in names(folder) {
        let path = folder.join(&name);
        let data = std::fs::metadata(&path).unwrap();
        if data.is_dir() {
            found.extend(
                traces(&path).into_iter().map(|(file, trace)| (format!("{name}/{file}"), trace)),
            );
        } else {
            let trace = (data.ino(), data.mtime(), data.mtime_nsec(), data.len());
            found.insert(name, trace);
        }
    }
    found
}

fn ended(child: Child) -> Finished {
    Finished::from(child.wait_with_output().unwrap())
}

#[test]
fn sweep_records_all_runs_and_prints_bounds_laws_and_knee() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments = short(&["sweep", "c", "--clients", "1,2,4,8", "--seed", "3", "--full"]);
    let finished = bench.dyno(&arguments).expect(0);
    for part in ["bound of the rate", "Little, N = X·R", "knee", "scalability law"] {
        assert!(finished.stdout.contains(part), "{part}: {}", finished.stdout);
    }
    let document = document(&bench);
    assert_eq!(document["status"], "complete");
    assert_eq!(done(&bench), 4);
    let mut directories: Vec<String> = points(&document)
        .iter()
        .map(|point| point["directory"].as_str().unwrap().to_owned())
        .collect();
    // In the order of the runs, which the seed decides.
    let number = |directory: &String| directory[5..8].parse::<usize>().unwrap();
    assert_eq!(directories.iter().map(number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    directories.sort();
    for directory in directories {
        bench.dyno(&["report", bench.path("x").join(&directory).to_str().unwrap()]).expect(0);
    }
    // The experiment is complete: the answer is found again without another run.
    let before = traces(&bench.path("x/runs"));
    bench.dyno(&["resume", "x"]).expect(0);
    assert_eq!(traces(&bench.path("x/runs")), before);
    assert_no_server(&bench);
}

#[test]
fn sweep_over_clients_and_rates_reports_a_block_for_each() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments = short(&["sweep", "c", "--clients", "1,2", "--rates", "100,200", "--full"]);
    let finished = bench.dyno(&arguments).expect(0);
    for part in ["X_max", "N*", "Closed loop: laws", "Open loop: laws", "p99 at that rate"] {
        assert!(finished.stdout.contains(part), "{part}: {}", finished.stdout);
    }
    let page = std::fs::read_to_string(bench.path("x/report.html")).unwrap();
    for plot in
        ["rate-over-clients", "response-over-clients", "response-over-rate", "achieved-over-rate"]
    {
        assert_eq!(page.matches(&format!("id=\"plot-{plot}\"")).count(), 1, "{plot}");
    }
    let axes_of = |answer: &Value| {
        let of = |block: &str| answer[block]["axis"].as_str().map(str::to_owned);
        (answer["kind"].as_str().unwrap().to_owned(), of("closed"), of("open"))
    };
    let blocks = |answer: &Value| {
        let expected = ("client.clients", "schedule.rate_per_s");
        let (kind, closed, open) = axes_of(answer);
        assert_eq!(kind, "blocks");
        assert_eq!((closed.as_deref(), open.as_deref()), (Some(expected.0), Some(expected.1)));
    };
    let before = document(&bench);
    blocks(&before["answer"]);
    // Only the deleted open-loop run is made again.
    let last = points(&before).last().unwrap()["directory"].as_str().unwrap();
    let others = points(&before).iter().map(|point| point["directory"].as_str().unwrap());
    let others: Vec<_> = others.filter(|one| *one != last).collect();
    let kept = || others.iter().map(|one| traces(&bench.path("x").join(one))).collect::<Vec<_>>();
    let known = kept();
    std::fs::remove_dir_all(bench.path("x").join(last)).unwrap();
    bench.dyno(&["resume", "x"]).expect(0);
    assert_eq!((kept(), done(&bench)), (known, 4));
    let mut after = document(&bench);
    blocks(&after["answer"]);
    // Without blocks the format is the older one: all points in one sweep, without an axis.
    after.as_object_mut().unwrap().remove("answer");
    for point in after["points"].as_array_mut().unwrap() {
        point.as_object_mut().unwrap().remove("block").unwrap();
    }
    std::fs::write(bench.path("x/experiment.json"), after.to_string()).unwrap();
    std::fs::remove_file(bench.path("x/SHA256SUMS")).unwrap();
    bench.dyno(&["resume", "x"]).expect(0);
    let old = document(&bench);
    assert_eq!(axes_of(&old["answer"]), ("sweep".to_owned(), None, None));
    assert_eq!(old["answer"]["axis"], Value::Null);
    assert_eq!(old["answer"]["levels"].as_array().unwrap().len(), 4);
    assert_no_server(&bench);
}

#[test]
fn sweep_over_a_server_setting_starts_a_server_per_value() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let caches = ["sweep", "c", "--set", "server.cache=64MiB,128MiB"];
    // Each server has the requested number of threads.
    let more = ["--set", "client.threads=3", "--repeat", "2"];
    bench.dyno(&short(&[&caches[..], &more].concat())).expect(0);
    let document = document(&bench);
    assert_eq!(document["axes"][0]["key"], "server.cache");
    let mut caches = Vec::new();
    for point in points(&document) {
        let run = bench.path("x").join(point["directory"].as_str().unwrap());
        let text = std::fs::read_to_string(run.join("run.json")).unwrap();
        let run: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(run["plan"]["client"]["threads"], 3);
        caches.push(run["plan"]["server"]["cache"].to_string());
    }
    caches.sort();
    assert_eq!(caches.len(), 4);
    assert!(caches[0] == caches[1] && caches[1] != caches[2] && caches[2] == caches[3]);
    assert_no_server(&bench);
}

/// Data settings of all runs, and whether each run started with a load phase.
fn loads(bench: &Bench, key: &str) -> Vec<(String, bool)> {
    let document = document(bench);
    let load = |point: &Value| {
        let run = bench.path("x").join(point["directory"].as_str().unwrap());
        let text = std::fs::read_to_string(run.join("run.json")).unwrap();
        let run: Value = serde_json::from_str(&text).unwrap();
        let loaded = run["phases"].as_array().unwrap().iter().any(|phase| phase["name"] == "load");
        (run["plan"]["data"][key].to_string(), loaded)
    };
    points(&document).iter().map(load).collect()
}

#[test]
fn run_loads_documents_only_when_they_differ() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let common = ["--duration", "1s", "--warmup", "0s", "--out", "x"];
    let bench = Bench::new();
    // Fewer documents than the previous run has left.
    let fewer = ["sweep", "c", "--set", "data.records=300,100", "--clients", "1,2"];
    let order = ["--order", "given"];
    bench.dyno(&[&fewer[..], &order, &common].concat()).expect(0);
    let of = |text: &str, loaded| (text.to_owned(), loaded);
    let expected = [of("300", true), of("300", false), of("100", true), of("100", false)];
    assert_eq!(loads(&bench, "records"), expected);
    assert_no_server(&bench);
    // A sample of a few documents cannot show this difference.
    let bench = Bench::new();
    let other = ["ab", "c", "--records", "200", "--set-b", "data.compressible_ratio=0.9"];
    let pairs = ["--max-pairs", "1"];
    bench.dyno(&[&other[..], &pairs, &common].concat()).expect(0);
    assert_eq!(loads(&bench, "compressible_ratio"), [of("0.0", true), of("0.9", true)]);
    assert_no_server(&bench);
}

#[test]
fn each_run_of_a_server_comparison_starts_its_own_server() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    // Two plans with different servers, and two identical plans.
    for (other, expected) in
        [(&["--set-b", "server.cache=128MiB"][..], [true; 4]), (&[], [true, false, false, false])]
    {
        let bench = Bench::new();
        let pairs = ["ab", "c", "--min-pairs", "2", "--max-pairs", "2"];
        // No pair is discarded and repeated.
        let any_steal = ["--max-steal", "100%"];
        let arguments = [&pairs[..], &any_steal, other].concat();
        bench.dyno(&short(&arguments)).expect(0);
        let loaded = loads(&bench, "records").into_iter();
        let loaded: Vec<bool> = loaded.map(|(_, loaded)| loaded).collect();
        assert_eq!(loaded, expected, "{other:?}");
        assert_no_server(&bench);
    }
}

#[test]
fn resume_runs_only_the_missing_points() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let child = bench.spawn(&short(&["sweep", "c", "--clients", "1,2,4"]));
    wait_for_run(&bench, 1);
    // Only this experiment can work in the folder.
    bench.dyno(&["resume", "x"]).expect(3).says("`dyno`").says("`x`").says("hint: ");
    signal(&child, "INT");
    ended(child).expect(130).says("error: interrupted").says("`dyno resume x`");
    let stopped = document(&bench);
    assert_eq!(stopped["status"], "partial");
    assert!(bench.path("x/report.html").is_file());
    assert_no_server(&bench);
    let first = points(&stopped)[0]["directory"].as_str().unwrap();
    let first = bench.path("x").join(first);
    let before = traces(&first);
    let resumed = bench.dyno(&["resume", "x"]).expect(0);
    assert!(!resumed.stderr.contains("run 1 of 3"), "{}", resumed.stderr);
    assert_eq!(traces(&first), before);
    assert_eq!((document(&bench)["status"].as_str(), done(&bench)), (Some("complete"), 3));
    // Only the deleted run is made again.
    let second = points(&stopped)[1]["directory"].as_str().unwrap();
    std::fs::remove_dir_all(bench.path("x").join(second)).unwrap();
    bench.dyno(&["resume", "x"]).expect(0).says(&format!("`{second}`"));
    assert_eq!((traces(&first), done(&bench)), (before, 3));
    assert_no_server(&bench);
}

#[test]
fn killed_sweep_resumes_only_with_its_own_plan() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let mut child = bench.spawn(&short(&["sweep", "c", "--clients", "1,2"]));
    wait_for_run(&bench, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let place = bench.folder.path().to_str().unwrap();
    wait_for("the end of the server", || processes_with(place).is_empty());
    let plan = std::fs::read_to_string(bench.path("x/plan.toml")).unwrap();
    let resume = |code| bench.dyno(&["resume", "x"]).expect(code);
    let other = plan.replace("records = 200", "records = 300");
    assert_ne!(other, plan);
    std::fs::write(bench.path("x/plan.toml"), other).unwrap();
    resume(2).says("`plan.toml`").says("hint: ");
    std::fs::write(bench.path("x/plan.toml"), format!("{plan}\nfuture = 1\n")).unwrap();
    resume(2).says("`observe.future`").says("hint: ");
    std::fs::remove_file(bench.path("x/plan.toml")).unwrap();
    resume(3).says("plan.toml").says("hint: ");
    std::fs::write(bench.path("x/plan.toml"), &plan).unwrap();
    let first = points(&document(&bench))[0]["directory"].clone();
    let first = bench.path("x").join(first.as_str().unwrap());
    let before = traces(&first);
    resume(0);
    assert_eq!((traces(&first), done(&bench)), (before, 2));
    assert_no_server(&bench);
}

#[test]
fn experiment_survives_a_server_that_cannot_start_on_resume() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let mut child = bench.spawn(&short(&["sweep", "c", "--clients", "1,2"]));
    wait_for("the document", || bench.path("x/experiment.json").is_file());
    child.kill().unwrap();
    child.wait().unwrap();
    let place = bench.folder.path().to_str().unwrap();
    wait_for("the end of the server", || processes_with(place).is_empty());
    // Remains of the killed process, whatever they are.
    std::fs::create_dir_all(bench.path("x/server-data/left")).unwrap();
    let missing = ["resume", "x", "--embedded-server", "/no/such/program"];
    bench.dyno(&missing).expect(3).says("/no/such/program");
    assert_eq!(document(&bench)["status"], "failed");
    bench.dyno(&["resume", "x"]).expect(0);
    assert_eq!(done(&bench), 2);
    assert_no_server(&bench);
}

#[test]
fn a_run_directory_elsewhere_is_never_removed() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    bench.dyno(&short(&["sweep", "c", "--clients", "1"])).expect(0);
    std::fs::create_dir(bench.path("mine")).unwrap();
    std::fs::write(bench.path("mine/file"), "x").unwrap();
    let absolute = bench.path("mine").to_str().unwrap().to_owned();
    for place in ["../mine", "runs/../../mine", &absolute, "runs/a/../../../mine"] {
        let mut document = document(&bench);
        document["points"][0]["directory"] = place.into();
        document["points"][0].as_object_mut().unwrap().remove("figures");
        std::fs::write(bench.path("x/experiment.json"), document.to_string()).unwrap();
        bench.dyno(&["resume", "x"]).expect(2).says(&format!("`{place}`"));
    }
    assert!(bench.path("mine/file").is_file());
}

#[test]
fn ab_runs_each_side_with_its_own_threads() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments = [
        "ab",
        "c",
        "--clients",
        "4",
        "--set-b",
        "client.threads=3",
        "--set-a",
        "client.threads=2",
        "--max-pairs",
        "1",
        "--margin",
        "10%",
    ];
    // One pair with one window per run.
    bench.dyno(&short(&arguments)).expect(0).says("warning: ").says("`--duration`");
    let document = document(&bench);
    assert_eq!(document["answer"], Value::Null);
    let threads: Vec<(&Value, &Value)> = points(&document)
        .iter()
        .map(|point| (&point["side"], &point["figures"]["threads"]))
        .collect();
    assert_eq!(threads, [(&"a".into(), &2.into()), (&"b".into(), &3.into())]);
    assert_no_server(&bench);
}

#[test]
fn run_keeps_its_record_when_its_server_dies() {
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let long = [
        "sweep",
        "c",
        "--clients",
        "1,2",
        "--records",
        "200",
        "--warmup",
        "0s",
        "--duration",
        "10m",
        "--order",
        "given",
        "--out",
        "x",
    ];
    let mut child = bench.spawn(&long);
    let run = bench.path("x/runs/001-clients-1");
    wait_for_windows(&mut child, &run, 2);
    let place = bench.path("x/server-data");
    for process in processes_with(place.to_str().unwrap()) {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        if name.starts_with("secantusd") {
            kill(process);
        }
    }
    // The other point gets another server.
    wait_for_windows(&mut child, &bench.path("x/runs/002-clients-2"), 2);
    signal(&child, "INT");
    ended(child).expect(130).says("`dyno resume x`");
    let document = document(&bench);
    assert_eq!(document["status"], "partial");
    let problem = points(&document)[0]["problem"].as_str().unwrap();
    assert!(problem.contains("`x/runs/001-clients-1`"), "{problem}");
    assert!(run.join("run.json").is_file());
    assert_no_server(&bench);
}

#[test]
fn sweep_continues_when_the_server_of_a_point_cannot_start() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let bench = Bench::new();
    // The start fails without any earlier sign.
    let broken = bench.path("broken");
    let says = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec '{}' --version\nexit 1\n",
        mongod.display()
    );
    std::fs::write(&broken, says).unwrap();
    std::fs::set_permissions(&broken, Permissions::from_mode(0o755)).unwrap();
    let programs = format!("server.mongod={},{}", broken.display(), mongod.display());
    let arguments = ["sweep", "c", "--set", &programs, "--cache", "256MiB"];
    let arguments = [&arguments[..], &["--order", "given"]].concat();
    let check = |finished: Finished| {
        finished.expect(3).says("1 of 2").says("`runs/001-");
        assert_eq!(done(&bench), 1);
        let document = document(&bench);
        assert!(points(&document)[0]["problem"].is_string());
        assert!(points(&document)[1]["figures"].is_object());
    };
    check(bench.dyno(&short(&arguments)));
    // The point stays one point that fails when it is tried again.
    check(bench.dyno(&["resume", "x"]));
    assert_no_server(&bench);
}
