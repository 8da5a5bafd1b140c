//! `dyno tail`, end to end with the embedded server and with drivers from the workspace or from scripts.

use crate::common::{Bench, Finished, assert_machine_is_reported, signal, wait_for};
use crate::record_changes::assert_every_change_is_reported;
use dyno_testkit::{Skip, embedded_program, mongod_program, or_skip, project_dir};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A bench on a machine with the embedded server and the driver `wire`; `None` otherwise.
pub(crate) fn bench() -> Option<Bench> {
    or_skip(embedded_program())?;
    bench_of_drivers()
}

fn bench_of_drivers() -> Option<Bench> {
    let run = project_dir().join("drivers/wire/run");
    let version = std::process::Command::new(run).arg("version").output();
    or_skip(match version {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Skip::new("the driver `wire` is not built", "run `make drivers`")),
    })?;
    Some(Bench::new())
}

fn document(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("tail.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Codes of the findings of a report.
fn codes(report: &Value) -> Vec<&str> {
    let codes =
        report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str());
    codes.map(Option::unwrap).collect()
}

#[test]
fn bad_options_are_refused_before_anything_is_done() {
    let bench = Bench::new();
    for (arguments, text) in [
        (&["tail", "tail-ridle"][..], "`tail-riddle`"),
        (&["tail", "--in-flight", "0"], "`tail.in_flight`"),
        (&["tail", "--in-flight", "some"], "`unbounded`"),
        (&["tail", "--pool", "5,0"], "`tail.pool`"),
        (&["tail", "--messages", "0"], "`tail.messages`"),
        // Counts have the syntax of document counts.
        (&["tail", "--messages", "1.5"], "`10k`"),
        (&["tail", "--write-concern", "all"], "`tail.write_concern`"),
        (&["tail", "--rate", "0"], "`tail.rate_per_s`"),
        (&["tail", "--producer", "../x"], "`tail.producers`"),
        (&["tail", "--pairs", "2"], "`--pairs`"),
        (&["tail", "--producer", "cobol", "--out", "x"], "`cobol`"),
        (&["tail", "--drivers", "nowhere", "--out", "x"], "nowhere"),
    ] {
        let finished = bench.dyno(arguments);
        assert!(matches!(finished.code, Some(2 | 3)), "{arguments:?} {finished:?}");
        finished.says(text);
        assert!(!bench.path("x").exists(), "{arguments:?}");
    }
}

#[test]
fn a_dry_run_prints_a_plan_that_only_tail_takes() {
    let bench = Bench::new();
    let plan = bench.dyno(&[
        "tail",
        "--producer",
        "node,go",
        "--consumer",
        "java",
        "--messages",
        "500",
        "--rate",
        "1000",
        "--in-flight",
        "1,unbounded",
        "--pool",
        "5,100",
        "--producers",
        "2",
        "--consumers",
        "3",
        "--size",
        "1KiB",
        "--capped-size",
        "1MiB",
        "--write-concern",
        "majority",
        "--mode",
        "poll",
        "--work",
        "5us",
        "--dry-run",
    ]);
    // On machines without these drivers, the error follows the plan.
    let can_run = !plan.stderr.contains("`make drivers`");
    let code = if can_run { 0 } else { 3 };
    let text = plan.expect(code).stdout.clone();
    for line in [
        "messages = 500",
        "rate_per_s = 1000.0",
        "producers_at_once = 2",
        "consumers_at_once = 3",
        "write_concern = \"majority\"",
        "mode = \"poll\"",
        "work = \"5us\"",
        "\"unbounded\"",
        "\"java\"",
    ] {
        assert!(text.contains(line), "`{line}` is not in {text}");
    }
    std::fs::write(bench.path("mine.toml"), &text).unwrap();
    bench.dyno(&["run", "mine.toml"]).expect(2).says("`dyno tail`");
    let again = bench.dyno(&["tail", "mine.toml", "--dry-run"]);
    assert_eq!(again.expect(code).stdout, text);
}

#[test]
fn one_command_measures_every_combination_and_reports_again() {
    let Some(bench) = bench() else { return };
    let finished = bench.dyno(&[
        "tail",
        "--producer",
        "wire",
        "--messages",
        "0.6k",
        "--in-flight",
        "1,unbounded",
        "--pool",
        "2,10",
        "--out",
        "x",
        "--format",
        "json",
        "--price",
        "0.36 USD/h",
    ]);
    let report = finished.expect(0).json();
    let costs = report["costs"].as_array().unwrap();
    assert_eq!(costs.len(), 4);
    for costs in costs {
        assert_eq!((&costs["basis"], &costs["basis_count"]), (&"message".into(), &600.into()));
        let of = |kind: &str| -> f64 {
            let found =
                costs["values"].as_array().unwrap().iter().find(|cost| cost["kind"] == kind);
            found.unwrap_or_else(|| panic!("{kind}: {costs}"))["value"]["value"].as_f64().unwrap()
        };
        assert!(of("server_cpu_us") > 0.0 && of("client_cpu_us") > 0.0, "{costs}");
        assert!(of("resident_bytes") > 1e6 && of("price_per_million") > 0.0, "{costs}");
    }
    let codes = codes(&report);
    assert!(codes.contains(&"missing-bound-is-the-cause"), "{codes:?}");
    let is_of_pool = |code: &&str| code.starts_with("pool-size-makes-");
    assert!(codes.iter().any(is_of_pool), "{codes:?}");
    let folder = bench.path("x");
    let found = document(&folder);
    assert_eq!(found["status"], "complete");
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let consumer = &cell["measured"]["consumers"][0];
        let sum = &consumer["sum"];
        assert_eq!(
            (&sum["received"], &sum["lost"], &sum["duplicated"]),
            (&600.into(), &0.into(), &0.into())
        );
        assert!(cell["measured"]["server"]["cpu_s"].as_f64().is_some());
        assert!(cell["measured"]["consumption"]["server_cpu_s"].as_f64() > Some(0.0));
        let name = cell["name"].as_str().unwrap();
        let kept = crate::common::names(&folder.join("cells").join(name));
        assert_eq!(kept, ["messages.parquet", "receipts.parquet"]);
    }
    assert_eq!(
        crate::common::names(&folder),
        [
            "SHA256SUMS",
            "cells",
            "plan.toml",
            "report.html",
            "report.md",
            "server-logs",
            "tail.json"
        ]
    );
    for format in ["human", "markdown", "json", "html"] {
        let report = bench.dyno(&["report", "x", "--full", "--format", format]);
        let report = report.expect(0);
        assert!(report.stdout.contains("wire"), "{format}");
        let has_costs = report.stdout.contains("per message");
        assert!(has_costs || format == "json", "{format}");
    }

    let drawn = bench.dyno(&["report", "x", "--pictures", "drawn"]).expect(0);
    drawn.says("`drawn`");
    let files = crate::common::names(&bench.path("drawn"));
    // Each cell whose latency grows has a picture of its own; on a busy machine also cells with one message in flight grow.
    let cause = |cell: &Value| {
        cell["measured"]["producers"][0]["verdict"]["cause"].as_str().unwrap().to_owned()
    };
    let causes: Vec<String> =
        report["tail"]["cells"].as_array().unwrap().iter().map(cause).collect();
    let is_growing = |cause: &&String| !matches!(cause.as_str(), "stationary" | "too_few");
    let growing = causes.iter().filter(is_growing).count();
    assert!(growing >= 1, "{causes:?}");
    assert_eq!(files.len(), 2 * (2 + growing), "{files:?} {causes:?}");
    let messages = "01-latency-against-message-number";
    assert_eq!(files[..2], [format!("{messages}.png"), format!("{messages}.svg")]);
    let svg = std::fs::read_to_string(bench.path(&format!("drawn/{messages}.svg"))).unwrap();
    assert_eq!(svg.matches("data:image/png").count(), 4, "each cell must have a panel");
    assert!(svg.contains("pool 2"), "{svg}");
    bench.dyno(&["report", "x", "--pictures", "drawn"]).expect(2).says("`drawn`");
    let csv = bench.dyno(&["export", "x", "--to", "csv"]).expect(0).stdout;
    let head = "cell,producer,producer_driver,consumer,consumer_driver,n,intended_ns,send_ns,acknowledged_ns,failed_ns,received_ns";
    assert_eq!(csv.lines().next(), Some(head));
    assert_eq!(csv.lines().count(), 1 + 4 * 600);
    let last: Vec<&str> = csv.lines().last().unwrap().split(',').collect();
    assert_eq!((last[2], last[4], last[5], last[9]), ("wire", "wire", "599", ""));
    let instant = |place: usize| last[place].parse::<i64>().unwrap();
    assert!(instant(6) <= instant(7) && instant(7) < instant(8) && instant(7) < instant(10));
    bench.dyno(&["export", "x", "--to", "hlog"]).expect(2).says("`--to csv`");
    let messages = format!("cells/{}/messages.parquet", cells[0]["name"].as_str().unwrap());
    let parts = ["tail.json", "plan.toml", &messages];
    assert_every_change_is_reported(&bench, "x", &parts);
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert_eq!(page.matches("<canvas").count(), 4, "each cell must have a picture");
    let (_, machine) = page.split_once("<h3>Machine</h3>").unwrap();
    let (machine, _) = machine.split_once("</section>").unwrap();
    assert_machine_is_reported(&found["environment"], machine);
    bench.dyno(&["report", "x/tail.json", "--format", "ycsb"]).expect(2);
}

#[test]
fn repetitions_are_rounds_in_random_order_and_have_intervals() {
    let Some(bench) = bench() else { return };
    let fixed = ["tail", "--producer", "wire", "--messages", "300"];
    let rounds = ["--in-flight", "1,4", "--pool", "5,10", "--repeat", "3"];
    let finished = bench.dyno(&[&fixed[..], &rounds, &["--out", "x", "--format", "json"]].concat());
    let report = finished.expect(0).json();
    let repeated = report["repeated"].as_array().unwrap();
    assert_eq!(repeated.len(), 4);
    for one in repeated {
        assert_eq!(one["repetitions"], 3);
        assert!(one["median_us"]["value"].as_f64().unwrap() > 0.0);
    }
    let codes = codes(&report);
    assert!(codes.contains(&"differences-beyond-intervals"), "{codes:?}");
    let cells = report["tail"]["cells"].as_array().unwrap().clone();
    let order: Vec<String> = cells
        .iter()
        .map(|cell| {
            let settings = &cell["settings"];
            format!("{} {}", settings["in_flight"], settings["pool"])
        })
        .collect();
    assert_eq!(order.len(), 12);
    for (round, part) in (1..).zip(order.chunks(4)) {
        let mut all = part.to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4, "{part:?}");
        let cells = cells.iter().filter(|cell| cell["repetition"] == round);
        assert_eq!(cells.count(), 4);
    }
    assert!(order[..4] != order[4..8] || order[4..8] != order[8..], "{order:?}");
    let table = bench.dyno(&["report", "x", "--format", "csv"]).expect(0).stdout.clone();
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.starts_with("producer,number,consumer,in_flight,pool,repetitions,median_us,"));
    bench.dyno(&["tail", "--repeat", "0", "--out", "y"]).expect(2).says("`tail.repeat`");
}

#[test]
fn lost_messages_fail_the_check_and_are_kept() {
    let Some(bench) = bench() else { return };
    let finished = bench.dyno(&[
        "tail",
        "--producer",
        "wire",
        "--messages",
        "300",
        "--capped-size",
        "4KiB",
        "--work",
        "10ms",
        "--set",
        "tail.idle=2s",
        "--out",
        "x",
        "--format",
        "json",
    ]);
    let finished = finished.expect(1).says("consumer 0 (wire)");
    let report = finished.json();
    assert_eq!(report["tail"]["status"], "failed");
    let findings = report["findings"].to_string();
    assert!(findings.contains("CappedPositionLost"), "{findings}");
}

#[test]
fn every_driver_that_is_built_passes_messages_through_a_mongod() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let Some(bench) = bench_of_drivers() else {
        return;
    };
    let pass = |folder: &str, more: &[&str]| {
        let fixed = ["tail", "--mongod", mongod.to_str().unwrap(), "--out", folder];
        let small = ["--cache", "256MiB", "--messages", "100", "--rate", "200"];
        bench.dyno(&[&fixed[..], &small, more].concat()).expect(0);
        let document = document(&bench.path(folder));
        assert_eq!(document["status"], "complete");
        let cells = document["cells"].as_array().unwrap().clone();
        for cell in &cells {
            let sum = &cell["measured"]["consumers"][0]["sum"];
            assert_eq!(
                (&sum["received"], &sum["lost"], &sum["duplicated"]),
                (&100.into(), &0.into(), &0.into()),
                "{}",
                cell["name"]
            );
        }
        cells
    };
    // By default all available drivers are measured.
    let cells = pass("producers", &[]);
    let names: Vec<&str> =
        cells.iter().map(|cell| cell["settings"]["producers"][0].as_str().unwrap()).collect();
    assert!(names.contains(&"wire"), "{names:?}");
    let consumers = ["--producer", "wire", "--consumer", &names.join(",")];
    assert_eq!(pass("consumers", &consumers).len(), names.len());
}

fn make_driver(drivers: &Path, name: &str, text: &str) {
    let folder = drivers.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let run = folder.join("run");
    std::fs::write(&run, text).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn drivers_that_monitor_poll_the_embedded_server() {
    let Some(bench) = bench() else { return };
    let wire = project_dir().join("drivers/wire/run");
    let reported = |name: &str| bench.path(&format!("{name}.uri"));
    for (name, monitors) in [("calm", "false"), ("watching", "true")] {
        let text = format!(
            "#!/bin/sh\n\
             [ $1 = version ] && {{ {wire} version | sed 's/\"monitors\":false/\"monitors\":{monitors}/'; exit; }}\n\
             [ $1 = produce ] && echo $DYNO_URI >{reported}\n\
             DYNO_URI=${{DYNO_URI%[?&]serverMonitoringMode=poll}} exec {wire} \"$@\"\n",
            wire = wire.display(),
            reported = reported(name).display(),
        );
        make_driver(&bench.path("drivers"), name, &text);
    }
    let arguments = [
        "tail",
        "--drivers",
        "drivers",
        "--consumer",
        "calm",
        "--messages",
        "200",
        "--out",
        "x",
        "--full",
    ];
    let finished = bench.dyno(&arguments).expect(0);
    assert!(finished.stdout.contains("to poll"), "{}", finished.stdout);
    assert_eq!(document(&bench.path("x"))["polls_heartbeats"], true);
    let uri = |name| std::fs::read_to_string(reported(name)).unwrap();
    let polls = "serverMonitoringMode=poll\n";
    assert!(uri("watching").ends_with(polls), "{}", uri("watching"));
    assert!(!uri("calm").contains(polls), "{}", uri("calm"));
}

#[test]
fn wire_needs_no_folder_of_drivers() {
    let bench = Bench::new();
    let alone = bench.path("dyno");
    std::fs::copy(env!("CARGO_BIN_EXE_dyno"), &alone).unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = bench.command_of(&alone, arguments);
        Finished::from(command.env_remove("DYNO_DRIVERS").output().unwrap())
    };
    let version = ask(&["driver-wire", "version"]).expect(0);
    let version: Value = serde_json::from_str(&version.stdout).unwrap();
    assert_eq!((&version["contract"], &version["driver"]), (&1.into(), &"dyno-wire".into()));
    ask(&["driver-wire", "dance"]).expect(2).says("`dance`");
    let missing = ask(&["tail", "--producer", "go", "--dry-run"]);
    missing.expect(2).says("`go`").says("hint: ").says("`make drivers`");
    let elsewhere = ask(&["tail", "--producer", "wire", "--producer-host", "a", "--dry-run"]);
    elsewhere.expect(2).says("`--host-drivers DIR`");
    let Some(mongod) = or_skip(mongod_program()) else { return };
    let fixed = ["tail", "--mongod", mongod.to_str().unwrap(), "--out", "x", "--cache", "256MiB"];
    ask(&[&fixed[..], &["--messages", "100", "--rate", "500"]].concat()).expect(0).says("`wire`");
    let cells = document(&bench.path("x"))["cells"].as_array().unwrap().clone();
    assert_eq!(cells.len(), 1);
    let sum = &cells[0]["measured"]["consumers"][0]["sum"];
    assert_eq!((&sum["received"], &sum["lost"]), (&100.into(), &0.into()));
}

#[test]
fn own_driver_is_a_folder_and_a_broken_one_is_named() {
    let Some(bench) = bench() else { return };
    let make = |name: &str, text: &str| make_driver(&bench.path("drivers"), name, text);
    let wire = project_dir().join("drivers/wire/run");
    let wire = wire.display();
    make("mine", &format!("#!/bin/sh\nexec {wire} \"$@\"\n"));
    make(
        "broken",
        &format!(
            "#!/bin/sh\n[ \"$1\" = version ] && exec {wire} version\necho out of ideas >&2\nexit 1\n"
        ),
    );
    make("absent", "#!/bin/sh\necho no toolchain here >&2\nexit 3\n");
    let arguments =
        ["tail", "--drivers", "drivers", "--consumer", "mine", "--messages", "200", "--out", "x"];
    bench.dyno(&arguments).expect(1).says("no toolchain here").says("out of ideas");
    let found = document(&bench.path("x"));
    let statuses: Vec<&str> = found["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["status"].as_str().unwrap())
        .collect();
    // `broken`, `mine`, and `wire` inside the program.
    assert_eq!(statuses, ["failed", "complete", "complete"]);
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let Some(bench) = bench() else { return };
    let mut child = bench
        .command(&[
            "tail",
            "--producer",
            "wire",
            "--messages",
            "400",
            "--in-flight",
            "1,2",
            "--rate",
            "100",
            "--out",
            "x",
        ])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(bench.path("said")).unwrap())
        .spawn()
        .unwrap();
    let said = bench.path("said");
    wait_for("the second cell", || std::fs::read_to_string(&said).unwrap().contains("2 of 2"));
    std::thread::sleep(Duration::from_secs(2));
    signal(&child, "INT");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "the run did not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(130));
    let found = document(&bench.path("x"));
    assert_eq!(found["status"], "partial");
    let cells = found["cells"].as_array().unwrap();
    assert_eq!((&cells[0]["status"], &cells[1]["status"]), (&"complete".into(), &"partial".into()));
    assert!(bench.path("x/report.html").is_file());
}
