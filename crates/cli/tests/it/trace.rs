//! `dyno trace` and traces in plans, end to end. On machines that cannot trace, the tests print a reason and are skipped, or fail
//! with `DYNO_REQUIRE_TRACE`.

use crate::common::{Bench, Finished, names, signal, tracing, wait_for};
use dyno_testkit::{embedded, embedded_program, mongod_program, or_skip};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Page size of the test file in bytes.
const PAGE: u64 = 4096;
/// Pages of the test file.
const PAGES: u64 = 256;

/// A file of [`PAGES`] pages.
fn data(bench: &Bench) -> String {
    let path = bench.path("data.bin");
    std::fs::write(&path, vec![7_u8; (PAGE * PAGES) as usize]).unwrap();
    path.to_str().unwrap().to_owned()
}

fn document(bench: &Bench, folder: &str) -> Value {
    let path = bench.path(folder).join("trace.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Traces a program into the folder `t`.
fn traced(bench: &Bench, options: &[&str], program: &[&str]) -> Finished {
    let fixed = ["trace", "--out", "t"];
    bench.dyno(&[&fixed[..], options, &["--"], program].concat())
}

/// Calls of one operation on files with this name suffix, by the totals of the document.
fn calls(document: &Value, file: &str, operation: &str) -> u64 {
    let files = document["files"].as_array().unwrap();
    let is_meant = |number: &Value| {
        let entry = &files[number.as_u64().unwrap() as usize];
        entry["name"].as_str().unwrap().ends_with(file)
    };
    document["totals"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|total| total["operation"] == operation && is_meant(&total["file"]))
        .map(|total| total["calls"].as_u64().unwrap())
        .sum()
}

fn dd(file: &str, more: &[&str]) -> Vec<String> {
    let fixed =
        [&format!("if={file}"), "of=/dev/null", "bs=4096", "status=none"].map(str::to_owned);
    let more = more.iter().map(|word| (*word).to_owned());
    ["dd".to_owned()].into_iter().chain(fixed).chain(more).collect()
}

fn words(program: &[String]) -> Vec<&str> {
    program.iter().map(String::as_str).collect()
}

#[test]
fn a_trace_needs_a_subject() {
    let bench = Bench::new();
    bench.dyno(&["trace"]).expect(2).says("--pid PID");
    bench.dyno(&["trace", "--pid", "0"]).expect(2);
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn invalid_trace_targets_are_refused_and_leave_nothing() {
    let Some(bench) = tracing() else { return };
    bench.dyno(&["trace", "--pid", "999999999"]).expect(2).says("999999999");
    bench.dyno(&["trace", "--", "/nowhere/at-all"]).expect(2).says("`/nowhere/at-all`");
    let wrong = ["trace", "--file", "[a", "--", "true"];
    bench.dyno(&wrong).expect(2).says("`[a`");
    let odd = ["trace", "--buffer", "3MiB", "--", "true"];
    bench.dyno(&odd).expect(2).says("1 GiB");
    let nobody = ["trace", "--server", "127.0.0.1:1"];
    bench.dyno(&nobody).expect(3).says("`127.0.0.1:1`");
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn missing_privileges_are_named() {
    let Some(bench) = tracing() else { return };
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(env!("CARGO_BIN_EXE_dyno"))
        .args(["trace", "--out", "t", "--", "true"])
        .current_dir(bench.folder.path());
    let finished = Finished::from(command.output().unwrap());
    finished.expect(3).says("CAP_BPF").says("`setcap ");
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn a_program_is_traced_from_its_first_instruction_to_its_end() {
    let Some(bench) = tracing() else { return };
    let program = dd(&data(&bench), &[]);
    let finished = traced(&bench, &["--format", "json"], &words(&program)).expect(0);
    let document = document(&bench, "t");
    // The last call returns the end of the file.
    assert_eq!(calls(&document, "data.bin", "read"), PAGES + 1);
    assert_eq!(document["lost_calls"], 0);
    let report = finished.json();
    let files = report["access_patterns"]["files"].as_array().unwrap();
    let is_data = |file: &&Value| file["name"].as_str().unwrap().ends_with("data.bin");
    let pattern = files.iter().find(is_data).unwrap();
    assert!(pattern["score"].as_f64().unwrap() > 0.95, "{pattern}");
    let kept = names(&bench.path("t"));
    for name in ["trace.json", "calls-000.parquet", "files.parquet", "report.html", "report.md"] {
        assert!(kept.contains(&name.to_owned()), "{name} is not in {kept:?}");
    }
}

#[test]
fn trace_keeps_only_the_requested_calls() {
    let Some(bench) = tracing() else { return };
    let file = data(&bench);
    let copy = bench.path("copy.bin");
    let output = format!("of={}", copy.display());
    let program = ["dd", &format!("if={file}"), &output, "bs=4096", "conv=fsync", "status=none"];
    traced(&bench, &["--writes", "--file", "copy.*"], &program).expect(0);
    let document = document(&bench, "t");
    assert_eq!(calls(&document, "copy.bin", "write"), PAGES);
    assert_eq!(calls(&document, "copy.bin", "sync"), 0);
    assert_eq!(calls(&document, "data.bin", "read"), 0);
    assert_eq!(document["calls"].as_u64(), Some(PAGES));
    let options = ["trace", "--out", "u", "--fsync", "--file", "copy.*", "--"];
    bench.dyno(&[&options[..], &program].concat()).expect(0);
    let document = document_of(&bench.path("u"));
    assert_eq!(calls(&document, "copy.bin", "sync"), 1);
    assert_eq!(document["calls"].as_u64(), Some(1));
}

fn document_of(folder: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join("trace.json")).unwrap()).unwrap()
}

#[test]
fn kernel_counts_match_the_recorded_calls() {
    let Some(bench) = tracing() else { return };
    let program = dd(&data(&bench), &[]);
    traced(&bench, &["--aggregated", "--file", "data.bin"], &words(&program)).expect(0);
    let document = document(&bench, "t");
    assert_eq!(document["mode"], "aggregated");
    assert_eq!(calls(&document, "data.bin", "read"), PAGES + 1);
    let total = &document["totals"][0];
    assert_eq!(total["bytes"].as_u64(), Some(PAGE * PAGES));
    assert_eq!(total["sequential_calls"].as_u64(), Some(PAGES));
    assert!(!names(&bench.path("t")).iter().any(|name| name.starts_with("calls-")));
}

#[test]
fn failing_program_is_reported_and_its_trace_kept() {
    let Some(bench) = tracing() else { return };
    let finished = traced(&bench, &[], &["sh", "-c", "exit 7"]).expect(1);
    finished.says("`sh`").says("exit status: 7");
    assert!(bench.path("t/report.html").is_file());
}

#[test]
fn a_program_is_asked_to_end_after_its_time() {
    let Some(bench) = tracing() else { return };
    let script = "trap 'exit 0' INT; while :; do sleep 0.05; done";
    traced(&bench, &["--for", "300ms"], &["sh", "-c", script]).expect(0);
    let duration_s = document(&bench, "t")["duration_s"].as_f64().unwrap();
    assert!((0.3..60.0).contains(&duration_s), "{duration_s}");
}

#[test]
fn secrets_of_a_program_are_not_kept() {
    let Some(bench) = tracing() else { return };
    let program = ["true", "mongodb://me:geheim@db/shop"];
    let finished = traced(&bench, &[], &program).expect(0);
    assert!(!finished.stdout.contains("geheim"), "{}", finished.stdout);
    assert_eq!(document(&bench, "t")["target"]["command"][1], "mongodb://***@db/shop");
    for name in names(&bench.path("t")) {
        let bytes = std::fs::read(bench.path("t").join(&name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("geheim"), "{name}");
    }
}

/// A process that reads the same page repeatedly.
struct Reader(std::process::Child);

impl Reader {
    fn start(file: &str) -> Reader {
        let script =
            format!("while :; do dd if={file} of=/dev/null bs=4096 count=1 status=none; done");
        let child = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn();
        Reader(child.unwrap())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn ctrl_c_ends_the_trace_of_a_process_normally() {
    let Some(bench) = tracing() else { return };
    let reader = Reader::start(&data(&bench));
    let process = reader.0.id().to_string();
    let child = bench.spawn(&["trace", "--pid", &process, "--out", "t"]);
    wait_for("the first calls", || bench.path("t/calls-000.parquet.open").exists());
    signal(&child, "INT");
    let finished = Finished::from(child.wait_with_output().unwrap()).expect(0);
    assert!(finished.stdout.contains("data.bin"), "{}", finished.stdout);
    assert!(calls(&document(&bench, "t"), "data.bin", "read") > 0);
}

#[test]
fn signal_before_the_end_sets_the_exit_code() {
    let Some(bench) = tracing() else { return };
    let reader = Reader::start(&data(&bench));
    let process = reader.0.id().to_string();
    let child = bench.spawn(&["trace", "--pid", &process, "--out", "t", "--for", "10m"]);
    wait_for("the first calls", || bench.path("t/calls-000.parquet.open").exists());
    signal(&child, "TERM");
    Finished::from(child.wait_with_output().unwrap()).expect(130);
    assert!(bench.path("t/report.html").is_file());
}

#[test]
fn killed_trace_is_readable_up_to_its_last_closed_part() {
    let Some(bench) = tracing() else { return };
    let reader = Reader::start(&data(&bench));
    let process = reader.0.id().to_string();
    let mut child = bench.spawn(&["trace", "--pid", &process, "--out", "t"]);
    wait_for("a closed part", || bench.path("t/calls-000.parquet").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    bench.dyno(&["report", "t", "--full"]).expect(0);
    let report = bench.dyno(&["report", "t", "--format", "json"]).expect(0);
    assert!(report.stdout.contains("\"trace-not-ended\""), "{}", report.stdout);
}

#[test]
fn a_trace_ends_with_the_process() {
    let Some(bench) = tracing() else { return };
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let process = sleeper.id().to_string();
    let child = bench.spawn(&["trace", "--pid", &process, "--out", "t"]);
    // The folder exists before the process is followed; the document names the process once it is followed.
    wait_for("the process to be followed", || {
        let document = std::fs::read_to_string(bench.path("t/trace.json"));
        document.is_ok_and(|text| text.contains(&process))
    });
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    Finished::from(child.wait_with_output().unwrap()).expect(0);
}

#[test]
fn trace_is_rendered_in_all_but_the_run_formats() {
    let Some(bench) = tracing() else { return };
    let program = dd(&data(&bench), &[]);
    let first = traced(&bench, &[], &words(&program)).expect(0);
    let again = bench.dyno(&["report", "t"]).expect(0);
    assert_eq!(again.stdout, first.stdout);
    let html = bench.dyno(&["report", "t/trace.json", "--format", "html"]).expect(0);
    assert_eq!(html.stdout, std::fs::read_to_string(bench.path("t/report.html")).unwrap());
    bench.dyno(&["report", "t", "--format", "kpi"]).expect(2).says("a trace");
    let twice = ["trace", "--out", "t", "--", "true"];
    bench.dyno(&twice).expect(2).says("found");
}

#[test]
fn server_is_traced_by_its_address_with_file_roles() {
    let Some(bench) = tracing() else { return };
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let address = server.address().to_string();
    let out = bench.path("t");
    let tracer = bench.spawn(&["trace", "--server", &address, "--out", "t"]);
    wait_for("the folder", || out.join("trace.json").exists());
    let uri = format!("mongodb://{address}/");
    let load = ["load", "a", "--uri", &uri, "--records", "2000", "--quiet"];
    bench.dyno(&load).expect(0);
    signal(&tracer, "INT");
    Finished::from(tracer.wait_with_output().unwrap()).expect(0);
    let document = document(&bench, "t");
    assert!(document["calls"].as_u64().unwrap() > 0);
    let files = document["files"].as_array().unwrap();
    let journal = files.iter().find(|file| file["role"]["kind"] == "journal");
    let journal = journal.unwrap_or_else(|| panic!("{files:#?}"));
    assert!(journal["name"].as_str().unwrap().contains("WiredTigerLog."), "{journal}");
}

/// The file of a trace with this kind of content and collection.
#[track_caller]
fn file_of<'a>(document: &'a Value, kind: &str, namespace: &str) -> &'a Value {
    let files = document["files"].as_array().unwrap();
    let found = files
        .iter()
        .find(|file| file["role"]["kind"] == kind && file["role"]["namespace"] == namespace);
    found.unwrap_or_else(|| panic!("{files:#?}"))
}

#[test]
fn files_of_a_mongod_are_known_by_their_collections_and_indexes() {
    let Some(bench) = tracing() else { return };
    // The server writes diagnostic data more often than by default, so that a short trace includes it.
    let often = ("diagnosticDataCollectionPeriodMillis", "100");
    let server = dyno_testkit::mongod_with(|options| {
        let parameters = &mut options.plan.parameters;
        parameters.insert(often.0.into(), often.1.into());
        options.plan.checkpoint_interval = Some(dyno_plan::units::Span::from_secs(1));
    });
    let Some(server) = or_skip(server) else {
        return;
    };
    let address = server.address().to_string();
    let tracer = bench.spawn(&["trace", "--server", &address, "--out", "t"]);
    wait_for("the folder", || bench.path("t/trace.json").exists());
    let uri = format!("mongodb://{address}/");
    let run = ["run", "a", "--uri", &uri, "--records", "2000", "--quiet"];
    let more = ["--duration", "4s", "--warmup", "0s", "--out", "r"];
    bench.dyno(&[&run[..], &more].concat()).expect(0);
    signal(&tracer, "INT");
    Finished::from(tracer.wait_with_output().unwrap()).expect(0);
    let document = document(&bench, "t");
    let collection = file_of(&document, "collection", "ycsb.usertable");
    let name = collection["name"].as_str().unwrap();
    assert!(name.contains("/collection-"), "{name}");
    let index = file_of(&document, "index", "ycsb.usertable");
    assert_eq!(index["role"]["index"], "_id_");
    // A checkpoint writes the collection, commits write the journal, and neither is diagnostic data of the server.
    let written = |name: &str| calls(&document, name, "write");
    let file_name = name.rsplit('/').next().unwrap();
    assert!(written(file_name) > 0, "{document:#}");
    let files = document["files"].as_array().unwrap();
    let of_words = |words: &str| {
        files.iter().find(|file| {
            let reported = file["role"]["words"].as_str().unwrap_or_default();
            reported.contains(words)
        })
    };
    for words in ["write-ahead log", "FTDC"] {
        let file = of_words(words).unwrap_or_else(|| panic!("{words}: {files:#?}"));
        assert!(file["role"]["namespace"].is_null(), "{file}");
    }
}

#[test]
fn a_plan_traces_a_mongod_on_the_clock_of_the_run() {
    let Some(bench) = tracing() else { return };
    let Some(program) = or_skip(mongod_program()) else {
        return;
    };
    let started = ["--mongod", program.to_str().unwrap(), "--cache", "256MiB"];
    // Collections are only written by checkpoints, and read from the cache.
    let often = ["--set", "server.checkpoint_interval=1s"];
    let more = ["--set", "trace=true", "--format", "json"];
    let run = [&["run", "a"][..], &SMALL, &started, &often, &more].concat();
    let run = bench.dyno(&run).expect(0).json();
    let trace = &run["traces"][0];
    let length_s = trace["end_s"].as_f64().unwrap() - trace["start_s"].as_f64().unwrap();
    assert!(length_s > 1.5, "{trace}");
    let document = document(&bench, "run/io-trace");
    assert!(document["calls"].as_u64().unwrap() > 0);
    file_of(&document, "collection", "ycsb.usertable");
}

const SMALL: [&str; 8] = ["--records", "500", "--duration", "2s", "--warmup", "1s", "--out", "run"];

#[test]
fn a_plan_traces_its_server_on_the_clock_of_the_run() {
    let Some(bench) = tracing() else { return };
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let more = ["--set", "trace=true", "--format", "json"];
    let finished = bench.dyno(&[&["run", "a"][..], &SMALL, &more].concat()).expect(0);
    let run = finished.json();
    let trace = &run["traces"][0];
    assert_eq!(trace["directory"], "io-trace");
    let (start_s, end_s) = (trace["start_s"].as_f64().unwrap(), trace["end_s"].as_f64().unwrap());
    let measure =
        run["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap();
    let measure_s = measure["start_s"].as_f64().unwrap();
    assert!((start_s - measure_s).abs() < 1.0, "{start_s} {measure_s}");
    assert!(end_s - start_s > 1.5, "{trace}");
    let document = document(&bench, "run/io-trace");
    assert!(document["calls"].as_u64().unwrap() > 0);
    assert_eq!(document["start_s"].as_f64(), Some(start_s));
    let duration_s = document["duration_s"].as_f64().unwrap();
    assert!((duration_s - (end_s - start_s)).abs() < 1e-6, "{duration_s}");
    assert!(bench.path("run/io-trace/report.html").is_file());
    let report = std::fs::read_to_string(bench.path("run/report.md")).unwrap();
    let report = report.replace('\\', "");
    assert!(report.contains("in io-trace/"), "{report}");
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("id=\"offset-1-"), "no picture of the trace");
}

#[test]
fn a_trace_in_a_plan_has_a_window() {
    let Some(bench) = tracing() else { return };
    if or_skip(embedded_program()).is_none() {
        return;
    }
    let plan = "base = \"a\"\n[trace]\nfrom = \"500ms\"\nfor = \"700ms\"\nmode = \"aggregated\"\n";
    std::fs::write(bench.path("p.toml"), plan).unwrap();
    let more = ["--format", "json"];
    let finished = bench.dyno(&[&["run", "p.toml"][..], &SMALL, &more].concat()).expect(0);
    let record = finished.json();
    let trace = &record["traces"][0];
    let measured = record["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|phase| phase["name"] == "measure")
        .unwrap();
    let at_s = |value: &Value| value.as_f64().unwrap() - measured["start_s"].as_f64().unwrap();
    let (start_s, end_s) = (at_s(&trace["start_s"]), at_s(&trace["end_s"]));
    // On a busy machine the trace may start late, but its window ends on time.
    assert!(start_s > 0.499 && end_s > 1.199, "{trace}");
    assert!(end_s - start_s < 1.5, "{trace}");
    assert_eq!(document(&bench, "run/io-trace")["mode"], "aggregated");
}

#[test]
fn plan_trace_of_a_running_server_is_refused() {
    let bench = Bench::new();
    let run = ["run", "a", "--uri", "mongodb://127.0.0.1:1/", "--set", "trace=true"];
    bench.dyno(&run).expect(2).says("`dyno trace --server URI`");
    assert!(bench.entries().iter().all(|name| name != "runs"), "{:?}", bench.entries());
}

/// A control group that limits reads from the disk of a folder to this rate; removed when dropped.
struct Limit(std::path::PathBuf);

impl Limit {
    fn of(folder: &Path, reads_per_s: u32) -> Option<Limit> {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(folder).ok()?.dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let link = format!("/sys/dev/block/{major}:{minor}");
        let link = Path::new(&link).canonicalize().ok()?;
        let disk = if link.join("partition").exists() { link.parent()?.to_owned() } else { link };
        let number = std::fs::read_to_string(disk.join("dev")).ok()?;
        let name = format!("dyno-trace-cli-{}", std::process::id());
        let limit = Limit(Path::new("/sys/fs/cgroup/blkio").join(name));
        std::fs::create_dir(&limit.0).ok()?;
        let rule = format!("{} {reads_per_s}", number.trim());
        std::fs::write(limit.0.join("blkio.throttle.read_iops_device"), rule).ok()?;
        Some(limit)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _done = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn throttled_reads_count_as_waiting_for_the_device() {
    let Some(bench) = tracing() else { return };
    let file = data(&bench);
    let Some(limit) = Limit::of(bench.folder.path(), 20) else {
        dyno_testkit::skip_tracing("no control group limits a device here");
        return;
    };
    let script = format!(
        r#"
import mmap, os
fd = os.open("{file}", os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
open("{}/cgroup.procs", "w").write(str(os.getpid()))
for i in range(64):
    os.pread(fd, 4096, i * 3 * 4096)
"#,
        limit.0.display()
    );
    let program = ["python3", "-c", &script];
    let options = ["--reads", "--file", "data.bin", "--format", "json"];
    let report = traced(&bench, &options, &program).expect(0).json();
    let device = &report["access_patterns"]["files"][0]["device"];
    let ratio = device["waiting_ratio"].as_f64().unwrap();
    // The first read happens before the tracer knows the device.
    assert!(ratio > 0.95, "{device}");
    let bytes = device["device_ratio"].as_f64().unwrap();
    assert!((0.95..1.05).contains(&bytes), "{device}");
}

#[test]
fn reports_of_a_trace_take_a_gap_a_window_and_slices() {
    let Some(bench) = tracing() else { return };
    let file = data(&bench);
    // Every fourth page: sequential only if the report allows such a gap.
    let script = format!(
        "import os, time\nfd = os.open('{file}', os.O_RDONLY)\n\
         for i in range(64):\n    os.pread(fd, 4096, i * 4 * 4096)\n    time.sleep(0.01)"
    );
    let program = ["python3", "-c", &script];
    let options = ["--file", "data.bin", "--gap", "4KiB", "--cost", "--format", "json"];
    let first = traced(&bench, &options, &program).expect(0).json();
    assert_eq!(document(&bench, "t")["gap_bytes"], 4096);
    assert!(document(&bench, "t")["cost"]["programs"].is_array());
    let file_of = |report: &Value| report["access_patterns"]["files"][0].clone();
    let sequential = |report: &Value| file_of(report)["sequential_ratio"].as_f64().unwrap();
    assert_eq!(sequential(&first), 0.0);
    let again = bench.dyno(&["report", "t", "--format", "json"]).expect(0).json();
    assert_eq!(again["access_patterns"]["gap_bytes"], 4096);
    assert_eq!(sequential(&again), 0.0);
    let wide = ["report", "t", "--format", "json", "--gap", "64KiB"];
    let wide = bench.dyno(&wide).expect(0).json();
    assert!(sequential(&wide) > 0.9, "{}", file_of(&wide));
    // The slices add up to the whole, and a window is a part of it.
    let pieces = ["report", "t", "--format", "json", "--slices", "200ms"];
    let pieces = bench.dyno(&pieces).expect(0).json();
    let slices = pieces["slices"].as_array().unwrap();
    assert!(slices.len() >= 3, "{}", slices.len());
    let calls = |part: &Value| part["calls"].as_u64().unwrap();
    assert_eq!(slices.iter().map(calls).sum::<u64>(), 64);
    let from = slices.iter().position(|slice| calls(slice) > 0).unwrap();
    let window = format!("{}ms..{}ms", from * 200, (from + 1) * 200);
    let part = ["report", "t", "--format", "json", "--window", &window];
    let part = bench.dyno(&part).expect(0).json();
    assert_eq!(calls(&part["access_patterns"]), calls(&slices[from]));
    let lines = |more: &[&str]| {
        let full = ["report", "t", "--full"];
        let report = bench.dyno(&[&full[..], more].concat()).expect(0);
        report.stdout.lines().count()
    };
    assert!(lines(&["--slices", "200ms"]) > lines(&[]));
    let wrong = ["report", "t", "--slices", "1us"];
    bench.dyno(&wrong).expect(2).says("pieces");
}
