//! Costs of results: compared with counts on real servers, with the tracer and the kernel, and shown on every page.

use crate::common::{Bench, Finished, Responder, run_schema, tracing};
use dyno_record::io_trace::event::{BlockOperation, BlockRequest};
use dyno_record::io_trace::reader::TraceReader;
use dyno_testkit::fault::{FileSystem, LoopDisk, is_root};
use dyno_testkit::{go_before_others, mongod_program, or_skip};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A document of the plan: `_id` of 23 characters, and ten fields of 100 bytes. BSON lengths: a document has 5 bytes; each field
/// has its type, its name with a zero, and its value; a string has 5 bytes more than its characters, and binary data 5.
const DOCUMENT_BYTES: f64 = 5.0 + (1.0 + 4.0 + 5.0 + 23.0) + 10.0 * (1.0 + 7.0 + 5.0 + 100.0);

/// Largest ratio difference between two counts of the same quantity.
const AGREE_RATIO: f64 = 0.05;

/// Title of the costs section, and the label of the price in it.
const COSTS: &str = "Cost per operation";
const PRICE: &str = "price of a million";

fn assert_near(what: &str, found: f64, expected: f64, ratio: f64) {
    let difference = (found / expected - 1.0).abs();
    assert!(difference <= ratio, "{what}: {found}, expected {expected}");
}

#[track_caller]
fn consumption<'a>(document: &'a Value, phase: &str) -> &'a Value {
    let all = document["consumption"].as_array().unwrap();
    let found = all.iter().find(|one| one["phase"] == phase);
    found.unwrap_or_else(|| panic!("{all:#?}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn recorded(bench: &Bench, file: &str) -> Value {
    let text = std::fs::read_to_string(bench.path(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// One cost of a run.
fn cost(document: &Value, kind: &str) -> Option<f64> {
    let costs = document["analysis"]["figures"]["costs"]["values"].as_array().unwrap();
    let found = costs.iter().find(|cost| cost["kind"] == kind)?;
    Some(number(&found["value"]["value"]))
}

/// A run on a `mongod` with the smallest cache.
fn run_on(mongod: &Path) -> [&str; 6] {
    let mongod = mongod.to_str().unwrap();
    ["run", "a", "--mongod", mongod, "--cache", "256MiB"]
}

/// Bytes that a device had written, sampled every few milliseconds.
struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(f64, f64)>>,
}

impl Watch {
    fn start(device: &str) -> Watch {
        let name = Path::new(device).file_name().unwrap().to_str().unwrap();
        let path = format!("/sys/class/block/{name}/stat");
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut readings = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&path).unwrap();
                let sectors: f64 = text.split_whitespace().nth(6).unwrap().parse().unwrap();
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                readings.push((now.as_secs_f64(), sectors * 512.0));
                std::thread::sleep(Duration::from_millis(3));
            }
            readings
        });
        Watch { over, thread }
    }

    fn end(self) -> Vec<(f64, f64)> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn unix_s(time: &str) -> f64 {
    let time: jiff::Timestamp = time.parse().unwrap();
    time.as_nanosecond() as f64 / 1e9
}

fn at(readings: &[(f64, f64)], time_s: f64) -> f64 {
    let place = readings.partition_point(|(at_s, _)| *at_s < time_s);
    readings[place.min(readings.len() - 1)].1
}

/// Bytes that a device wrote between two instants, counted by the traced requests that completed then: the trace lasts longer
/// than the phase.
fn traced_bytes(trace: &Path, device: &str, [start_s, end_s]: [f64; 2]) -> f64 {
    let trace = TraceReader::open(trace).unwrap();
    let began_s = unix_s(&trace.document().started_at);
    let place = trace
        .document()
        .devices
        .iter()
        .map(|one| &one.name)
        .position(|name| name == device)
        .unwrap();
    let requests = trace.block().unwrap().flat_map(|batch| batch.unwrap());
    let is_counted = |one: &BlockRequest| {
        let done_s = began_s + (one.issue_ns as f64 + one.device_ns as f64) / 1e9;
        one.device as usize == place
            && one.operation == BlockOperation::Write
            && (start_s..end_s).contains(&done_s)
    };
    requests.filter(is_counted).map(|one| f64::from(one.bytes)).sum()
}

#[test]
fn write_amplification_matches_the_tracer_and_the_device() {
    let Some(bench) = tracing() else { return };
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    if !is_root() {
        dyno_testkit::skip("no root to make a disk");
        return;
    }
    go_before_others();
    let disk = LoopDisk::new(Path::new("/dev/shm"), 3072, FileSystem::Ext4).unwrap();
    let data = disk.path().join("data");
    let watch = Watch::start(disk.device());
    let inserts = ["operations.read=0", "operations.update=0", "operations.insert=1", "trace=true"];
    let mut run = run_on(&mongod).to_vec();
    run.extend(["--data-dir", data.to_str().unwrap(), "--records", "5000", "--clients", "8"]);
    run.extend(["--warmup", "0s", "--duration", "15s", "--format", "json", "--out", "r"]);
    run.extend(inserts.iter().flat_map(|setting| ["--set", *setting]));
    let document = bench.dyno(&run).expect(0).json();
    let readings = watch.end();
    run_schema().validate(&document).unwrap();

    let used = consumption(&document, "measure");
    let device = &used["device"];
    let name = Path::new(disk.device()).file_name().unwrap().to_str().unwrap();
    assert_eq!(device["names"], serde_json::json!([name]));
    let counted = number(&device["written_bytes"]);
    let started_s = unix_s(document["started_at"].as_str().unwrap());
    let edges = ["start_s", "end_s"].map(|edge| started_s + number(&used[edge]));
    let [start, end] = edges.map(|edge_s| at(&readings, edge_s));
    assert_near("the device during the phase", counted, end - start, AGREE_RATIO);

    let traced = traced_bytes(&bench.path("r/io-trace"), name, edges);
    assert_near("the tracer", counted, traced, AGREE_RATIO);

    // The server has ended since then; it had almost nothing left to write.
    let deferred = number(&device["deferred_bytes"]);
    let all = readings.last().unwrap().1 - start;
    assert_near("the device until the end", counted + deferred, all, AGREE_RATIO);

    let costs = &document["analysis"]["figures"]["costs"];
    let mean = number(&costs["changed"]["mean_document_bytes"]);
    assert_near("the documents", mean, DOCUMENT_BYTES, 0.01);
    let inserted = number(&costs["changed"]["documents"]);
    let expected = all / (inserted * DOCUMENT_BYTES);
    let amplification = cost(&document, "write_amplification_ratio").unwrap();
    assert_near("write amplification", amplification, expected, AGREE_RATIO);
    assert!(amplification > 1.0, "{amplification}");
    // The kernel counts a process's writes when they reach memory; they reach the device later.
    let own = number(&used["server_written_bytes"]);
    assert_near("the server", own, counted + deferred, 0.2);
}

#[test]
fn mongod_run_records_every_cost() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    go_before_others();
    let bench = Bench::new();
    let fixed = run_on(&mongod);
    let small = ["--records", "2000", "--duration", "3s", "--warmup", "1s", "--clients", "4"];
    let reported = ["--price", "0.504 USD/h", "--format", "json", "--out", "r"];
    let document = bench.dyno(&[&fixed[..], &small, &reported].concat()).expect(0).json();
    run_schema().validate(&document).unwrap();
    for phase in ["load", "warmup", "measure"] {
        let used = consumption(&document, phase);
        assert!(number(&used["server_cpu_s"]) > 0.0, "{used:#}");
        assert!(number(&used["network"]["received_bytes"]) > 0.0, "{used:#}");
    }
    let measure = document["phases"].as_array().unwrap().last().unwrap();
    let used = consumption(&document, "measure");
    // Costs are read at the ends of the phase, not at the ends of its windows.
    assert!((number(&used["start_s"]) - number(&measure["start_s"])).abs() < 0.1, "{used:#}");
    let length_s = number(&used["end_s"]) - number(&used["start_s"]);
    assert!((length_s - number(&measure["duration_s"])).abs() < 0.1, "{used:#}");
    // The first phase is read before it starts, so none of it is missed.
    let warmup = &document["phases"].as_array().unwrap()[1];
    let read = &consumption(&document, "warmup")["read"]["kernel_at_start"];
    assert!(number(&read["until_s"]) <= number(&warmup["start_s"]), "{read:#}");
    let finished = number(&measure["succeeded"]);
    let cpu = cost(&document, "server_cpu_us").unwrap();
    // The missed start is assumed to equal the rest.
    let read = &used["read"]["kernel_at_start"];
    let read_s = f64::midpoint(number(&read["from_s"]), number(&read["until_s"]));
    let duration_s = number(&measure["duration_s"]);
    let held_s = duration_s - (read_s - number(&measure["start_s"]));
    let used_us = number(&used["server_cpu_s"]) * 1e6 * duration_s / held_s;
    assert_near("server CPU", cpu, used_us / finished, 1e-9);
    // An answer with a document of more than 1,000 bytes, or an update with one field of 100 bytes.
    assert!(cost(&document, "sent_bytes").unwrap() > 500.0);
    assert!(cost(&document, "received_bytes").unwrap() > 100.0);
    // A client that waits for its answer makes its connection thread wait.
    assert!(cost(&document, "context_switches_count").unwrap() > 0.5);
    // The journal of acknowledged updates is synced at least every 100 ms; the documents fit into the cache.
    assert!(cost(&document, "journal_sync_us").unwrap() > 0.0);
    assert!(cost(&document, "cache_misses_count").unwrap() < 0.5);
    // No checkpoint has written all documents during such a short run.
    assert_eq!(cost(&document, "space_amplification_ratio"), None);
    assert!(cost(&document, "peak_resident_bytes") >= cost(&document, "resident_bytes"));
    let rate = number(&document["analysis"]["figures"]["rate_per_s"]["value"]);
    let price = cost(&document, "price_per_million").unwrap();
    assert_near("price", price, 0.504 / 3600.0 / rate * 1e6, 1e-9);
    assert_eq!(document["analysis"]["figures"]["costs"]["currency"], "USD");
    // Every format shows the same costs.
    for (format, said) in [("human", COSTS), ("markdown", "server CPU"), ("html", PRICE)] {
        let report = bench.dyno(&["report", "r", "--full", "--format", format]).expect(0);
        assert!(report.stdout.contains(said), "{format}: {}", report.stdout);
    }
}

#[test]
fn members_of_a_replica_set_are_added_up() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let bench = Bench::new();
    let fixed = run_on(&mongod);
    let small = [
        "--records",
        "500",
        "--duration",
        "2s",
        "--warmup",
        "0s",
        "--clients",
        "2",
        // A disk on a machine with other tests may stall.
        "--timeout",
        "1m",
    ];
    let reported = ["--set", "server.topology=replica-set=3", "--format", "json", "--out", "r"];
    let document = bench.dyno(&[&fixed[..], &small, &reported].concat()).expect(0).json();
    let used = consumption(&document, "measure");
    assert_eq!((&used["processes"], &used["servers"]), (&3.into(), &3.into()));
    let report = bench.dyno(&["report", "r", "--full"]).expect(0);
    assert!(report.stdout.contains("3 servers"), "{}", report.stdout);
}

fn embedded(bench: &Bench, more: &[&str]) -> Finished {
    let small = ["--records", "500", "--duration", "1s", "--warmup", "0s", "--clients", "2"];
    bench.dyno(&[more, &small[..], &["--server", "embedded"]].concat())
}

/// Checks that a series shows every cost of its runs in JSON, on the page and in Markdown.
#[track_caller]
fn assert_series_has_all_costs(bench: &Bench) {
    let series = |format: &str| bench.dyno(&["history", "runs", "--format", format]).expect(0);
    let kinds = |costs: &Value| -> Vec<String> {
        costs
            .as_array()
            .unwrap()
            .iter()
            .map(|cost| cost["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    let document = series("json").json();
    let runs = document["runs"].as_array().unwrap();
    for run in runs {
        let folder = format!("runs/{}", run["directory"].as_str().unwrap());
        let report = bench.dyno(&["report", &folder, "--format", "json"]).expect(0);
        let own = kinds(&report.json()["analysis"]["figures"]["costs"]["values"]);
        assert_eq!(kinds(&run["costs"]), own);
        assert!(own.len() >= 5, "{own:?}");
    }
    for format in ["html", "markdown"] {
        let text = series(format).stdout;
        let (_, costs) = text.split_once(COSTS).expect(format);
        for label in ["client CPU", "context switches", "server memory", PRICE] {
            assert!(costs.contains(label), "{format}: {label}");
        }
    }
}

#[test]
fn comparisons_suites_and_series_report_costs() {
    let bench = Bench::new();
    let price = ["--price", "0.504/h"];
    for out in ["runs/1", "runs/2"] {
        // Long enough for comparing windows.
        let run = [
            "run",
            "c",
            "--records",
            "500",
            "--duration",
            "12s",
            "--warmup",
            "0s",
            "--server",
            "embedded",
        ];
        bench.dyno(&[&run[..], &["--out", out], &price].concat()).expect(0);
    }
    let history = bench.dyno(&["history", "runs"]).expect(0);
    assert!(history.stdout.contains("server CPU"), "{}", history.stdout);
    assert!(history.stdout.contains(PRICE), "{}", history.stdout);
    assert_series_has_all_costs(&bench);
    let compared = bench.dyno(&["compare", "runs/1", "runs/2", "--format", "markdown"]).expect(0);
    assert!(compared.stdout.contains("| **server CPU** |"), "{}", compared.stdout);

    let sides = [
        "--set-a",
        "price.per_h=1",
        "--set-b",
        "price.per_h=2",
        "--min-pairs",
        "2",
        "--max-pairs",
        "2",
        "--out",
        "ab",
    ];
    embedded(&bench, &[&["ab", "c"], &sides[..]].concat());
    let answer: Value = recorded(&bench, "ab/experiment.json");
    let costs = answer["answer"]["costs"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let ratio = |kind: &str| {
        let found = costs.iter().find(|cost| cost["kind"] == kind);
        found.map(|cost| number(&cost["ratio"]["value"]))
    };
    assert!(ratio("server_cpu_us").is_some(), "{costs:#?}");
    // Twice the price of an hour, divided by the ratio of the rates.
    let rate = &answer["answer"]["comparisons"][0];
    assert_eq!(rate["statistic"], "rate");
    let found = ratio("price_per_million").unwrap_or_else(|| panic!("{costs:#?}"));
    assert_near("price", found, 2.0 / number(&rate["ratio"]["value"]), 1e-9);
    let report = bench.dyno(&["report", "ab", "--full"]).expect(0);
    assert!(report.stdout.contains(&COSTS.to_lowercase()), "{}", report.stdout);

    let suite = embedded(&bench, &[&["run", "b", "c", "--out", "suite"], &price[..]].concat());
    suite.expect(0);
    let report = bench.dyno(&["report", "suite", "--full"]).expect(0);
    assert!(report.stdout.contains(COSTS), "{}", report.stdout);
}

#[test]
fn invalid_price_is_refused() {
    let bench = Bench::new();
    bench.dyno(&["run", "a", "--price", "cheap"]).expect(2).says("0.504/h");
    let wrong = ["run", "a", "--set", "price.per_h=-1", "--dry-run"];
    bench.dyno(&wrong).expect(2).says("`price.per_h`");
}

/// Loads in order, creates the indexes, and inserts during range reads.
fn insert_benchmark(bench: &Bench, server: &[&str], rates: [(&str, f64); 2]) {
    let small = ["--records", "1000", "--duration", "4s", "--warmup", "1s"];
    let reported = ["--format", "json", "--out", "r"];
    let offered: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let total = offered.to_string();
    let shares = rates.map(|(kind, rate)| format!("operations.{kind}={rate}"));
    let rates_set = ["--rate", &total, "--set", &shares[0], "--set", &shares[1]];
    let run = [&["run", "insert-benchmark"], server, &rates_set, &small, &reported].concat();
    let document = bench.dyno(&run).expect(0).json();
    run_schema().validate(&document).unwrap();
    let measure = document["phases"].as_array().unwrap().last().unwrap();
    // Each kind of operation has its own rate: its share of the offered rate, up to a few operations. A busy machine may do fewer
    // operations of all kinds.
    assert_eq!(number(&measure["offered_rate_per_s"]), offered);
    let done: f64 =
        rates.iter().map(|(kind, _)| number(&measure["operations"][kind]["count"])).sum();
    assert!(done > offered, "{done}");
    for (kind, rate) in rates {
        let count = number(&measure["operations"][kind]["count"]);
        let share = done * rate / offered;
        assert!((count - share).abs() <= 6.0, "{kind}: {count} of {done}");
    }
    // From 1 to 10 entries in each index.
    let scan = &measure["operations"]["scan"];
    let entries = number(&scan["documents"]) / number(&scan["count"]);
    assert!((4.5..6.5).contains(&entries), "{entries}");
    assert_eq!(measure["errors"], serde_json::json!({}));
    let indexes = &document["secondary_indexes"];
    assert_eq!(indexes["keys"].as_array().map(Vec::len), Some(3), "{indexes}");
    assert!(number(&indexes["build_s"]) > 0.0);
}

#[test]
fn the_insert_benchmark_runs_on_the_embedded_server() {
    // Its scans take milliseconds.
    let server = ["--server", "embedded"];
    insert_benchmark(&Bench::new(), &server, [("insert", 10.0), ("scan", 40.0)]);
}

#[test]
fn the_insert_benchmark_runs_on_a_mongod_with_its_indexes() {
    let Some(mongod) = or_skip(mongod_program()) else {
        return;
    };
    let bench = Bench::new();
    let program = mongod.to_str().unwrap();
    // A fifth of the plan's rates: a busy machine achieves them too.
    let rates = [("insert", 20.0), ("scan", 200.0)];
    let server = ["--mongod", program, "--cache", "256MiB"];
    insert_benchmark(&bench, &server, rates);
    let document: Value = recorded(&bench, "r/run.json");
    let names =
        document["collections"].as_array().unwrap().last().unwrap()["statistics"]["index_bytes"]
            .as_object()
            .unwrap();
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    assert_eq!(names, ["_id_", "field0_field1", "field0_field3_field1", "field2_field0_field1"]);
}

#[test]
fn invalid_indexes_are_refused() {
    let bench = Bench::new();
    for (indexes, said) in [
        (r#"["field99"]"#, "`field99`"),
        (r#"["field1,field1"]"#, "twice"),
        (r#"["field1", "field1"]"#, "`data.indexes[1]`"),
        (r#"["_id"]"#, "already"),
    ] {
        let setting = format!("data.indexes={indexes}");
        let run = ["run", "a", "--dry-run", "--set", &setting];
        bench.dyno(&run).expect(2).says(said);
    }
}

#[test]
fn a_load_alone_has_the_price_of_a_million_documents() {
    let (bench, responder) = (Bench::new(), Responder::start(&[]));
    let uri = responder.uri();
    let load = ["load", "a", "--uri", &uri, "--records", "2000"];
    let reported = ["--price", "0.504 USD/h", "--format", "markdown", "--out", "l"];
    let said = bench.dyno(&[&load[..], &reported].concat()).expect(0).stdout;
    let row = said.lines().find(|line| line.contains(PRICE));
    let row = row.unwrap_or_else(|| panic!("{said}"));
    assert!(row.contains("USD"), "{row}");
}
