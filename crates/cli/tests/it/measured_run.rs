//! Runs against the responder with known behaviour: results, files, exit codes, interruptions.

use crate::common::{
    Bench, Finished, Responder, names, processes_with, reads, run_schema, signal, wait_for,
    wait_for_windows,
};
use dyno_testkit::{Skip, free_port, or_skip};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

fn phase<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|phase| phase["name"] == name)
        .unwrap_or_else(|| panic!("no phase {name}"))
}

#[test]
fn a_run_leaves_its_files_and_prints_the_document_alone() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let finished = bench
        .dyno(&reads(&responder.uri(), &["--operations", "2000", "--format", "json"]))
        .expect(0);
    let document = finished.json();
    run_schema().validate(&document).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(document["status"], "complete");
    assert_eq!(document["schema_version"], 1);
    let measure = phase(&document, "measure");
    for key in [
        "duration_s",
        "offered_rate_per_s",
        "achieved_rate_per_s",
        "errors",
        "client",
        "little_ratio",
    ] {
        assert!(measure.get(key).is_some(), "{key} is missing");
    }
    for key in ["cpu_user_s", "cpu_system_s", "cpu_us_per_operation", "max_rss_bytes"] {
        assert!(measure["client"][key].is_number(), "{key}");
    }
    let read = &measure["operations"]["read"];
    assert_eq!((read["count"].as_u64(), read["errors"].as_u64()), (Some(2000), Some(0)));
    for clock in ["response_time_us", "service_time_us", "start_delay_us"] {
        for level in ["mean", "min", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"] {
            assert!(read[clock][level].is_number(), "{clock} {level}");
        }
    }
    assert!(
        document["caveats"].as_array().unwrap().iter().all(|caveat| caveat["message"].is_string())
    );
    // A run of a few windows is analysed without claims about a server that was not observed.
    let analysis = &document["analysis"];
    assert_eq!(analysis["figures"]["succeeded"], 2000);
    assert!(analysis["operations"]["read"]["response_us"]["p99"]["value"].is_number());
    let mut measured = document["resources"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["phase"] == "measure");
    let is_watched = measured.any(|one| one["resource"] == "server_cpu");
    assert_eq!(analysis.get("bottleneck").is_some(), is_watched, "{analysis}");
    let runs = names(&bench.path("runs"));
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert!(runs[0].ends_with("-read"), "{runs:?}");
    let run = bench.path("runs").join(&runs[0]);
    assert_eq!(
        names(&run),
        [
            "SHA256SUMS",
            "latency.hlog",
            "metrics",
            "plan.toml",
            "report.html",
            "report.md",
            "run.json",
            "series"
        ]
    );
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    // The answer, the analysis and the caveat messages are computed from the folder each time and not stored in it.
    let mut recorded = document;
    for key in ["answer", "trust", "analysis"] {
        assert!(recorded.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    for caveat in recorded["caveats"].as_array_mut().unwrap() {
        let caveat = caveat.as_object_mut().unwrap();
        assert!(caveat.contains_key("code") && caveat.remove("message").is_some());
        caveat.remove("hint");
    }
    assert_eq!(kept, recorded);
    assert!(finished.stderr.contains("report.html"), "{}", finished.stderr);
}

#[test]
fn a_run_can_be_rendered_again_in_every_format() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let printed =
        bench.dyno(&reads(&responder.uri(), &["--operations", "500", "--out", "r"])).expect(0);
    assert_eq!(bench.dyno(&["report", "r"]).expect(0).stdout, printed.stdout);
    // One screen, which names the command for the rest.
    let lines = printed.stdout.lines().count();
    assert!((10..=45).contains(&lines), "{}", printed.stdout);
    let rest = printed.stdout.lines().last().unwrap();
    assert!(rest.contains("`dyno report r --full`") && rest.contains("r/report.html"), "{rest}");
    let full = bench.dyno(&["report", "r", "--full"]).expect(0).stdout;
    assert!(full.lines().count() > 60, "{full}");
    bench.dyno(&["report", "r", "-o", "whole.txt"]).expect(0);
    let kept = std::fs::read_to_string(bench.path("whole.txt")).unwrap();
    assert_eq!(kept, full);
    assert!(bench.dyno(&["report", "r", "--format", "markdown"]).expect(0).stdout.starts_with('#'));
    assert!(
        bench
            .dyno(&["report", "r", "--format", "ycsb"])
            .expect(0)
            .stdout
            .contains("[READ], Operations, 500\n")
    );
    assert_eq!(bench.dyno(&["report", "r", "--format", "json"]).expect(0).json()["name"], "read");
    bench.dyno(&["report", "r", "--format", "html", "--output", "page.html"]).expect(0);
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert_eq!(page, std::fs::read_to_string(bench.path("r/report.html")).unwrap());
}

/// Server facts recorded by a run against a port that a program of this name holds: whether the server is on this machine, and the
/// parts of the machine that were not observed.
fn behind(program: &str) -> (bool, Vec<String>) {
    let bench = Bench::new();
    let path = bench.path(program);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dyno"), &path).unwrap();
    let responder = Responder::start_from(&path, &["--documents", "1000"]);
    let uri = responder.uri();
    let arguments = reads(&uri, &["--duration", "1200ms", "--format", "json"]);
    let document = bench.dyno(&arguments).expect(0).json();
    let host =
        document["sources"].as_array().unwrap().iter().find(|source| source["name"] == "host");
    let processes = host.unwrap()["missing"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|text| text.starts_with("process.server"));
    let is_local = document["server"]["local"].as_bool().unwrap();
    (is_local, processes.map(str::to_owned).collect())
}

#[test]
fn port_forwarder_is_not_mistaken_for_the_server() {
    assert_eq!(behind("mongod"), (true, vec![]));
    assert_eq!(behind("ssh"), (false, vec![]));
    let (is_local, missing) = behind("docker-proxy");
    assert!(is_local);
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("`docker-proxy`"), "{missing:?}");
}

#[test]
fn runs_that_start_together_have_folders_of_their_own() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let arguments = reads(&uri, &["--operations", "100", "--quiet"]);
    let children: Vec<_> = (0..4).map(|_| bench.spawn(&arguments)).collect();
    for child in children {
        Finished::from(child.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(names(&bench.path("runs")).len(), 4);
}

#[test]
fn verbose_prints_connections() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let finished = bench.dyno(&reads(&responder.uri(), &["--operations", "10", "-v"])).expect(0);
    assert!(finished.stderr.contains("connected"), "{}", finished.stderr);
}

#[test]
fn quiet_prints_nothing_when_a_run_succeeds() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let finished =
        bench.dyno(&reads(&responder.uri(), &["--operations", "100", "--quiet"])).expect(0);
    assert_eq!(finished.stderr, "");
}

#[test]
fn failures_beyond_the_tolerated_share_make_the_exit_status_1() {
    let bench = Bench::new();
    // The set-up also reads a few documents, fewer than meet the first fault.
    let faulty = || Responder::with_documents(&["--fault", "error=11600:20"]);
    let arguments = ["--operations", "1000", "--format", "json"];
    let responder = faulty();
    let strict = bench.dyno(&reads(&responder.uri(), &arguments)).expect(1).says(" of 1000 ");
    let measure = phase(&strict.json(), "measure").clone();
    let failed = measure["errors"]["server_11600"].as_u64().unwrap();
    assert_eq!(failed, 50);
    assert_eq!(measure["operations"]["read"]["count"].as_u64(), Some(950));
    let responder = faulty();
    let tolerant = [&arguments[..], &["--tolerate-errors", "5%"]].concat();
    bench.dyno(&reads(&responder.uri(), &tolerant)).expect(0);
}

#[test]
fn seed_fixes_the_operations_for_any_number_of_clients() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let counts = |seed: &str, clients: &str| {
        let mut arguments = reads(
            &uri,
            &["--operations", "3000", "--format", "json", "--seed", seed, "--clients", clients],
        );
        arguments[1] = "f";
        let document = bench.dyno(&arguments).expect(0).json();
        let measure = phase(&document, "measure").clone();
        let count = |name: &str| measure["operations"][name]["count"].as_u64().unwrap();
        (
            count("read"),
            count("update"),
            measure["keys"]["hottest_1_percent_ratio"].as_f64().unwrap().to_bits(),
        )
    };
    let first = counts("5", "1");
    assert_eq!(counts("5", "7"), first);
    assert_ne!(counts("6", "1"), first);
}

#[test]
fn open_loop_offers_its_rate_and_reports_the_outcome() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    for schedule in ["constant", "poisson"] {
        let arguments =
            ["--rate", "500", "--schedule", schedule, "--duration", "2s", "--format", "json"];
        let document = bench.dyno(&reads(&responder.uri(), &arguments)).expect(0).json();
        let measure = phase(&document, "measure");
        assert_eq!(measure["offered_rate_per_s"], 500.0);
        let due = measure["arrivals"]["due"].as_u64().unwrap();
        let spread = if schedule == "constant" { 0 } else { 150 };
        assert!(due.abs_diff(1000) <= spread, "{schedule}: {due}");
        assert_eq!(measure["arrivals"]["started"].as_u64(), Some(due));
    }
}

#[test]
fn skew_counts_the_measure_phase_only() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let arguments = ["--rate", "1000", "--duration", "2s", "--format", "json"];
    let mut arguments =
        reads(&responder.uri(), &arguments).iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let warmup = arguments.iter().position(|word| word == "0s").unwrap();
    arguments[warmup] = "1s".into();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let document = bench.dyno(&arguments).expect(0).json();
    let draws = phase(&document, "measure")["keys"]["draws"].as_u64().unwrap();
    assert!((1_500..=2_000).contains(&draws), "{draws}");
}

#[test]
fn the_driver_performs_the_same_operations() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = format!("{}?directConnection=true", responder.uri());
    let arguments = ["--operations", "500", "--format", "json", "--backend", "driver"];
    let document = bench.dyno(&reads(&uri, &arguments)).expect(0).json();
    assert_eq!(phase(&document, "measure")["operations"]["read"]["count"].as_u64(), Some(500));
    assert_eq!(document["plan"]["client"]["backend"], "driver");
}

#[test]
fn interrupt_saves_the_measurements_and_is_reported() {
    for name in ["INT", "TERM"] {
        let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
        let uri = responder.uri();
        let mut child = bench.spawn(&reads(
            &uri,
            &["--duration", "10m", "--rate", "200", "--out", "r", "--format", "json"],
        ));
        wait_for_windows(&mut child, &bench.path("r"), 2);
        signal(&child, name);
        let finished =
            Finished::from(child.wait_with_output().unwrap()).expect(130).says("interrupted");
        let document = finished.json();
        assert_eq!(document["status"], "partial");
        assert!(
            document["caveats"]
                .as_array()
                .unwrap()
                .iter()
                .any(|caveat| caveat["kind"] == "partial")
        );
        assert!(phase(&document, "measure")["duration_s"].as_f64().unwrap() >= 2.0);
        bench.dyno(&["report", "r"]).expect(0);
    }
}

#[test]
fn a_server_that_hangs_does_not_keep_an_interrupted_run() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let mut child = bench.spawn(&reads(
        &responder.uri(),
        &["--duration", "10m", "--clients", "4", "--out", "r", "--format", "json"],
    ));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    responder.signal("STOP");
    wait_for_windows(&mut child, &bench.path("r"), 4);
    signal(&child, "INT");
    let asked = Instant::now();
    let finished = Finished::from(child.wait_with_output().unwrap()).expect(130);
    responder.signal("CONT");
    assert!(asked.elapsed() < Duration::from_secs(30));
    let document = finished.json();
    let measure = phase(&document, "measure");
    assert_eq!(measure["errors"]["cancelled"], 4, "{}", measure["errors"]);
    let little = measure["little_ratio"].as_f64().unwrap();
    assert!((little - 1.0).abs() < 0.02, "{little}");
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let mut child = bench.spawn(&reads(&responder.uri(), &["--duration", "10m", "--out", "r"]));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    // Answers that a regular end would wait for do not arrive.
    responder.signal("STOP");
    let mut ended = None;
    wait_for("the end", || {
        signal(&child, "INT");
        std::thread::sleep(Duration::from_millis(20));
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    responder.signal("CONT");
    assert_eq!(ended.unwrap().code(), Some(130));
    // A regular end would have written its status.
    let document = std::fs::read_to_string(bench.path("r/run.json")).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["status"], "running");
    bench.dyno(&["report", "r"]).expect(0);
}

#[test]
fn a_report_into_a_device_does_not_replace_it() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    bench.dyno(&reads(&responder.uri(), &["--operations", "100", "--out", "r"])).expect(0);
    bench.dyno(&["report", "r", "--output", "/dev/full"]).expect(3).says("`/dev/full`");
    let kind = std::fs::metadata("/dev/full").unwrap().file_type();
    assert!(!kind.is_file());
    std::os::unix::fs::symlink("there.md", bench.path("link.md")).unwrap();
    std::fs::write(bench.path("there.md"), "").unwrap();
    bench
        .dyno(&["report", "r", "--format", "markdown", "--output", "link.md", "--force"])
        .expect(0);
    assert!(bench.path("link.md").is_symlink());
    assert!(std::fs::metadata(bench.path("there.md")).unwrap().len() > 100);
}

#[test]
fn a_killed_run_is_readable_up_to_its_last_window() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let mut child =
        bench.spawn(&reads(&uri, &["--duration", "10m", "--rate", "200", "--out", "r"]));
    wait_for_windows(&mut child, &bench.path("r"), 3);
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    let document = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "partial");
    assert!(phase(&document, "measure")["operations"]["read"]["count"].as_u64().unwrap() >= 500);
    assert!(bench.dyno(&["report", "r"]).expect(0).stdout.contains("partial"));
}

#[test]
fn unreachable_server_is_an_environment_error() {
    let bench = Bench::new();
    let port = free_port();
    let uri = format!("mongodb://me:secret@127.0.0.1:{port}/");
    let finished = bench.dyno(&reads(&uri, &["--operations", "5"])).expect(3);
    let finished = finished
        .says("error: ")
        .says(&format!("`127.0.0.1:{port}`"))
        .says("caused by: ")
        .says("hint: ");
    assert!(!finished.stderr.contains("secret"));
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn lost_server_ends_the_run_and_keeps_the_measurements() {
    let (bench, mut responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let mut child = bench.spawn(&reads(
        &uri,
        &["--duration", "10m", "--rate", "200", "--timeout", "200ms", "--out", "r"],
    ));
    wait_for_windows(&mut child, &bench.path("r"), 2);
    responder.kill();
    Finished::from(child.wait_with_output().unwrap())
        .expect(3)
        .says("error: ")
        .says("dyno report r");
    let document = bench.dyno(&["report", "r", "--format", "json"]).expect(0).json();
    assert_eq!(document["status"], "failed");
    assert!(
        document["status_reason"].as_str().unwrap().contains("connect"),
        "{}",
        document["status_reason"]
    );
    let caveats = document["caveats"].as_array().unwrap();
    let uncounted = |one: &serde_json::Value| one["code"] == "documents-not-counted";
    assert!(caveats.iter().any(uncounted), "{caveats:?}");
}

#[test]
fn a_folder_that_holds_a_run_is_not_touched() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let arguments = reads(&uri, &["--operations", "100", "--out", "r"]);
    bench.dyno(&arguments).expect(0);
    let before = std::fs::read(bench.path("r/run.json")).unwrap();
    bench.dyno(&arguments).expect(2).says("`r`").says("--out");
    assert_eq!(std::fs::read(bench.path("r/run.json")).unwrap(), before);
}

/// A small file system in memory; needs root.
struct SmallDisk<'a>(&'a std::path::Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a std::path::Path, size: &str) -> Option<Self> {
        std::fs::create_dir(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder)
            .output()
            .is_ok_and(|output| output.status.success());
        let skip = || Skip::new("no file system in memory", "run as root to test a full disk");
        or_skip(mounted.then_some(SmallDisk(folder)).ok_or_else(skip))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn full_disk_is_reported_before_the_run_starts() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    // No room at all, and room for the first file only.
    for (name, size) in [("full", "4k"), ("nearly-full", "8k")] {
        let disk = bench.path(name);
        let Some(_disk) = SmallDisk::mount(&disk, size) else {
            return;
        };
        std::fs::write(disk.join("filler"), [0; 4096]).unwrap();
        let out = format!("{name}/r");
        let finished = bench.dyno(&reads(&uri, &["--operations", "100", "--out", &out])).expect(3);
        finished.says("No space left on device").says("hint: ");
        assert_eq!(names(&disk), ["filler"]);
    }
}

#[test]
fn a_disk_that_fills_up_ends_the_run_and_keeps_what_fits() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let disk = bench.path("disk");
    // The first documents fit, even with a long machine description, and so do the records of a few seconds.
    let Some(_disk) = SmallDisk::mount(&disk, "64k") else {
        return;
    };
    let uri = responder.uri();
    let finished = bench.dyno(&reads(&uri, &["--duration", "10m", "--out", "disk/r"])).expect(3);
    finished.says("cannot record").says("No space left on device").says("free space");
    let document = bench.dyno(&["report", "disk/r", "--format", "json"]).expect(0).json();
    assert!(
        ["failed", "partial"].contains(&document["status"].as_str().unwrap()),
        "{}",
        document["status"]
    );
    assert!(phase(&document, "measure")["operations"]["read"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn responder_reports_a_taken_port() {
    let (bench, responder) = (Bench::new(), Responder::start(&[]));
    let port = responder.address.rsplit(':').next().unwrap();
    bench.dyno(&["responder", "--port", port]).expect(3).says(port).says("--port");
}

#[test]
fn a_selfcheck_is_kept_and_goes_into_later_runs() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let output = bench.dyno(&["selfcheck", "--duration", "300ms", "--format", "json"]);
    let mut check = output.json();
    // Other tests may load the machine.
    if check["other_load"]["level"] == "fail" {
        output.expect(3).says("not kept").says("--no-save");
        assert!(!bench.path("state/selfcheck.json").exists());
        check["other_load"]["level"] = "pass".into();
        std::fs::create_dir_all(bench.path("state")).unwrap();
        std::fs::write(bench.path("state/selfcheck.json"), check.to_string()).unwrap();
    } else {
        output.expect(0);
    }
    assert!(check["max_rate_per_core_per_s"].as_f64().unwrap() > 1000.0);
    assert!(check["closed_loop"]["cpu_us_per_operation"].as_f64().unwrap() > 0.0);
    let offered: Vec<_> = check["constant_rates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| &rate["offered_rate_per_s"])
        .collect();
    assert_eq!(offered, [1_000.0, 10_000.0, 20_000.0]);
    assert_eq!(names(&bench.path("state")), ["selfcheck.json"]);
    let run = bench
        .dyno(&reads(&responder.uri(), &["--operations", "100", "--format", "json"]))
        .expect(0)
        .json();
    assert_eq!(run["selfcheck"], check);
    assert!(
        bench
            .dyno(&["selfcheck", "--duration", "100ms", "--no-save"])
            .expect(0)
            .stdout
            .contains("start delay")
    );
}

#[test]
fn trace_window_keeps_the_output_of_another_program() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let trace =
        "trap 'echo asked; exit 0' INT; echo $DYNO_CLIENT_PID; while :; do sleep 0.02; done";
    let arguments = ["--duration", "1s", "--trace", trace, "--out", "r", "--format", "json"];
    let document = bench.dyno(&reads(&responder.uri(), &arguments)).expect(0).json();
    run_schema().validate(&document).unwrap_or_else(|error| panic!("{error}"));
    let record = &document["traces"][0];
    assert!(record["outcome"].as_str().unwrap().contains("exit status: 0"), "{record}");
    let length_s = record["end_s"].as_f64().unwrap() - record["start_s"].as_f64().unwrap();
    assert!(length_s >= 0.8, "{record}");
    let printed = std::fs::read_to_string(bench.path("r/traces/trace/output.raw.log")).unwrap();
    assert!(printed.ends_with("asked\n"), "{printed}");
}

#[test]
fn missing_trace_program_is_refused_before_the_run() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    std::fs::write(
        bench.path("plan.toml"),
        "base = \"read\"\n[[traces]]\nname = \"x\"\ncommand = [\"no-such-program\"]\n",
    )
    .unwrap();
    bench
        .dyno(&["run", "plan.toml", "--uri", &responder.uri(), "--out", "r"])
        .expect(3)
        .says("`no-such-program`");
    assert!(!bench.path("r").exists());
}

#[test]
fn trace_takes_any_shell_command_and_reports_its_failure() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let run = |command: &str, folder: &str| {
        let window = ["--duration", "500ms", "--format", "json"];
        let trace = ["--trace", command, "--out", folder];
        let arguments = [window, trace].concat();
        bench.dyno(&reads(&responder.uri(), &arguments))
    };
    let reported = |finished: Finished| {
        let document = finished.expect(0).json();
        let failed = document["caveats"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|caveat| caveat["code"] == "trace-failed");
        let faults = failed.filter_map(|caveat| caveat["values"]["fault"].as_str());
        faults.map(str::to_owned).collect::<Vec<String>>()
    };
    for command in ["FOO=1 sleep 600", "cd / && sleep 600"] {
        assert_eq!(reported(run(command, command)), Vec::<String>::new());
    }
    let failed = reported(run("FOO=1 no-such-program", "failed").says("trace `trace` failed: "));
    assert!(failed[0].contains("exit status: 127"), "{failed:?}");
    assert!(failed[0].contains("not found"), "{failed:?}");
    run("no-such-program", "missing").expect(3).says("`no-such-program`");
    assert!(!bench.path("missing").exists());
    run("echo $DYNO_SERVER_PIDS", "none").expect(2).says("needs a server that dyno starts");
}

#[test]
fn trace_programs_end_when_dyno_is_killed() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let marked = bench.path("its-input");
    std::fs::write(&marked, "").unwrap();
    let marked = marked.to_str().unwrap();
    // In the background of a shell, and in a pipeline.
    let command = format!("tail -f {marked} & tail -f {marked} | cat");
    let arguments = ["--duration", "10m", "--trace", &command, "--out", "r"];
    let child = bench.spawn(&reads(&responder.uri(), &arguments));
    let tails = || {
        let all = processes_with(marked).into_iter();
        let is_tail = |process: &u32| {
            std::fs::read_to_string(format!("/proc/{process}/comm"))
                .is_ok_and(|name| name.trim() == "tail")
        };
        all.filter(is_tail).count()
    };
    wait_for("both run", || tails() == 2);
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    wait_for("nothing is left", || tails() == 0);
}

#[test]
fn file_size_limit_ends_the_run_like_a_full_disk() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let run = reads(&uri, &["--duration", "10m", "--out", "r"]);
    // In blocks of 1 KiB: the run document fits even with a long machine description.
    let limited =
        [&["-c", "ulimit -f 64; exec \"$@\"", "limited", env!("CARGO_BIN_EXE_dyno")], &run[..]]
            .concat();
    let mut command = bench.command_of(std::path::Path::new("bash"), &limited);
    let finished = Finished::from(command.output().unwrap()).expect(3);
    finished.says("cannot record").says("File too large");
    let document = bench.dyno(&["report", "r", "--format", "json"]);
    assert_ne!(document.expect(0).json()["status"], "complete");
}
