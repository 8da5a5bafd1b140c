//! `dyno export`: a recorded run in formats of other programs.

use crate::common::{Bench, Responder, reads};
use dyno_record::io_trace::document::{FileEntry, TraceDocument, TraceMode};
use dyno_record::io_trace::event::{Call, Operation};
use dyno_record::io_trace::writer::{PartLimits, TraceWriter};
use dyno_record::metrics::{MetricId, MetricsWriter, Reading};
use dyno_testkit::project_dir;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};

/// A bench with a run of two seconds, and a source that reported a disk value.
fn with_run() -> Bench {
    let (bench, responder) =
        (Bench::new(), Responder::with_documents(&["--fault", "error=11600:10"]));
    let uri = responder.uri();
    let more = [
        "--rate",
        "500",
        "--duration",
        "2s",
        "--out",
        "run",
        "--no-observe",
        "--tolerate-errors",
        "1",
    ];
    bench.dyno(&reads(&uri, &more)).expect(0);
    let phase = &document(&bench)["phases"][0];
    let start_s = phase["start_s"].as_f64().unwrap();
    let mut writer = MetricsWriter::new(&bench.path("run"), "db1", 1);
    for at in 1..=2 {
        let values = vec![
            (MetricId::of_instance("disk", "vda", "read_await_ms"), 1.5),
            (MetricId::of("memory", "free_bytes"), 1e9 * f64::from(at)),
        ];
        let reading = Reading { at_s: start_s + f64::from(at) * 0.5, duration_s: 0.5, values };
        writer.record(&reading).unwrap();
    }
    writer.finish().unwrap();
    bench
}

fn document(bench: &Bench) -> Value {
    serde_json::from_str(&fs::read_to_string(bench.path("run/run.json")).unwrap()).unwrap()
}

/// Values of a load generator metric, each with the length of its time range.
fn of_client(csv: &str, metric: &str) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for line in csv.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[4] == "client" && cells[5] == metric {
            found.push((cells[2].parse().unwrap(), cells[7].parse().unwrap()));
        }
    }
    found
}

#[test]
fn table_holds_rates_percentiles_and_metrics() {
    let bench = with_run();
    let csv = bench.dyno(&["export", "run", "--to", "csv"]).expect(0).stdout;
    let head = "time,at_s,duration_s,phase,source,metric,instance,value,unit";
    assert_eq!(csv.lines().next(), Some(head));
    assert!(csv.lines().all(|line| line.split(',').count() == 9));
    let phase = &document(&bench)["phases"][0];
    let count = |of: &[(f64, f64)]| of.iter().map(|(length, rate)| length * rate).sum::<f64>();
    let succeeded = count(&of_client(&csv, "operations_per_s"));
    assert!((succeeded - phase["succeeded"].as_f64().unwrap()).abs() < 0.01, "{succeeded}");
    let failed = count(&of_client(&csv, "failed_per_s"));
    assert!((failed - phase["failed"].as_f64().unwrap()).abs() < 0.01, "{failed}");
    let highest = of_client(&csv, "response_max_us");
    let highest = highest.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let known = phase["operations"]["read"]["response_time_us"]["max"].as_f64().unwrap();
    assert!((highest / known - 1.0).abs() < 0.002, "{highest} {known}");
    let observed = |line: &&str| line.contains(",db1,");
    let lines: Vec<&str> = csv.lines().filter(observed).collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].ends_with(",measure,db1,disk.read_await_ms,vda,1.5,ms"), "{}", lines[0]);
    assert!(lines[1].ends_with(",measure,db1,memory.free_bytes,,1000000000,bytes"), "{}", lines[1]);
    assert!(csv.lines().skip(1).all(|line| !line.ends_with(',')), "a metric has no unit");
}

#[test]
fn a_parquet_file_holds_the_same_rows_with_types() {
    let bench = with_run();
    bench.dyno(&["export", "run", "--to", "parquet"]).expect(2).says("--output");
    let arguments = ["export", "run", "--to", "parquet", "--output", "run.parquet"];
    bench.dyno(&arguments).expect(0);
    let csv = bench.dyno(&["export", "run", "--to", "csv"]).expect(0).stdout;
    let file = SerializedFileReader::new(File::open(bench.path("run.parquet")).unwrap()).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), csv.lines().count() - 1);
    for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
        let cells: Vec<&str> = line.split(',').collect();
        let time: jiff::Timestamp = cells[0].parse().unwrap();
        assert_eq!(row.get_timestamp_micros(0).unwrap(), time.as_microsecond());
        assert_eq!(row.get_double(7).unwrap(), cells[7].parse::<f64>().unwrap());
        for (column, cell) in
            [(3, cells[3]), (4, cells[4]), (5, cells[5]), (6, cells[6]), (8, cells[8])]
        {
            // An absent text is a null.
            let text = row.get_string(column).map_or("", String::as_str);
            assert_eq!(text, cell, "{line}");
        }
    }
}

#[test]
fn hlog_export_copies_the_log_and_refuses_a_damaged_run() {
    let bench = with_run();
    let log = bench.path("run/latency.hlog");
    let arguments = ["export", "run", "--to", "hlog", "--phase", "measure", "--output", "a.hlog"];
    bench.dyno(&arguments).expect(0);
    let original = fs::read_to_string(&log).unwrap();
    assert_eq!(fs::read_to_string(bench.path("a.hlog")).unwrap(), original);
    bench.dyno(&arguments).expect(2).says("`--force`");
    bench.dyno(&[&arguments[..], &["--force"]].concat()).expect(0);
    bench.dyno(&["export", "run", "--to", "csv", "--phase", "measure"]).expect(2);
    bench.dyno(&["export", "nowhere", "--to", "csv"]).expect(2);
    fs::write(&log, original.replace("HISTFAAA", "HISTF!!!")).unwrap();
    let before = bench.entries();
    bench.dyno(&["export", "run", "--to", "hlog", "--output", "b.hlog"]).expect(3);
    assert_eq!(bench.entries(), before);
}

#[test]
fn metrics_with_times_are_whole_and_in_order() {
    let bench = with_run();
    let text = bench.dyno(&["export", "run", "--to", "openmetrics"]).expect(0).stdout;
    assert!(text.ends_with("# EOF\n"));
    let mut families = BTreeSet::new();
    let mut last: Option<(String, f64)> = None;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert!(families.insert(kind.to_owned()), "{kind} is there twice");
        }
        if line.starts_with('#') {
            continue;
        }
        let mut parts = line.rsplitn(3, ' ');
        let time: f64 = parts.next().unwrap().parse().unwrap();
        let _: f64 = parts.next().unwrap().parse().unwrap();
        let series = parts.next().unwrap();
        if let Some((known, before)) = &last
            && known == series
        {
            assert!(time > *before, "{line}");
        }
        last = Some((series.to_owned(), time));
    }
    let phase = &document(&bench)["phases"][0];
    let sample = "dyno_operations_total{phase=\"measure\",operation=\"read\"} ";
    let total = text.lines().filter_map(|line| line.strip_prefix(sample)).next_back();
    let total = total.unwrap().split(' ').next().unwrap();
    assert_eq!(total, phase["succeeded"].to_string());
    let disk = "dyno_disk_read_await_seconds{source=\"db1\",device=\"vda\"} 0.0015 ";
    assert_eq!(text.matches(disk).count(), 2);
}

#[test]
fn annotations_have_the_phases_with_their_times() {
    let bench = with_run();
    let found = bench.dyno(&["export", "run", "--to", "annotations"]).expect(0).json();
    let (document, found) = (document(&bench), found.as_array().unwrap().clone());
    let phase = found.iter().find(|one| one["tags"][1] == "phase").unwrap();
    assert_eq!(phase["tags"], serde_json::json!(["dyno", "phase", "measure"]));
    let started: jiff::Timestamp = document["started_at"].as_str().unwrap().parse().unwrap();
    let start_s = document["phases"][0]["start_s"].as_f64().unwrap();
    let expected = started.as_millisecond() as f64 + start_s * 1e3;
    assert!((phase["time"].as_f64().unwrap() - expected).abs() <= 1.0);
    let length = phase["timeEnd"].as_i64().unwrap() - phase["time"].as_i64().unwrap();
    let duration = document["phases"][0]["duration_s"].as_f64().unwrap() * 1e3;
    assert!((length as f64 - duration).abs() <= 1.0);
    let caveat = found.iter().find(|one| one["tags"][1] == "caveat").unwrap();
    assert!(caveat["text"].as_str().is_some_and(|text| !text.is_empty()));
}

/// A recorded run with a disk throttled in the middle: from 150 operations per second to a tenth.
#[test]
fn annotations_have_the_changes_of_a_run_with_their_times() {
    let run = project_dir().join("crates/analyze/tests/recorded-faults/burst-credits");
    let text = fs::read_to_string(run.join("run.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let started: jiff::Timestamp = document["started_at"].as_str().unwrap().parse().unwrap();
    let (bench, run) = (Bench::new(), run.to_str().unwrap());
    let exported = bench.dyno(&["export", run, "--to", "annotations"]).expect(0).json();
    let changes: Vec<&Value> =
        exported.as_array().unwrap().iter().filter(|one| one["tags"][1] == "change").collect();
    // The change begins with the first slow window.
    let fell_ms = started.as_millisecond() as f64 + 25_777.0;
    for series in ["rate", "disk_operations"] {
        let tags = serde_json::json!(["dyno", "change", series]);
        let change = changes.iter().find(|one| one["tags"] == tags);
        let change = change.unwrap_or_else(|| panic!("{series}: {changes:#?}"));
        let time_ms = change["time"].as_f64().unwrap();
        assert!((time_ms - fell_ms).abs() <= 1_000.0, "{fell_ms}: {change}");
        assert_eq!(change["timeEnd"], Value::Null);
    }
    let of_rate = changes.iter().find(|one| one["tags"][2] == "rate").unwrap();
    let text = of_rate["text"].as_str().unwrap();
    assert!(text.contains("150.0/s"), "{text}");
    // The report shows the same changes.
    let report = bench.dyno(&["report", run, "--format", "json"]).expect(0);
    let found = report.json()["analysis"]["timeline"]["changes"].clone();
    let origin_ms = started.as_millisecond() as f64;
    let of_report = found.as_array().unwrap().iter();
    let of_report = of_report.map(|one| origin_ms + one["at_s"].as_f64().unwrap() * 1e3);
    let times = changes.iter().map(|one| one["time"].as_f64().unwrap());
    for (time_ms, expected_ms) in times.clone().zip(of_report.clone()) {
        assert!((time_ms - expected_ms).abs() <= 1.0, "{changes:#?}");
    }
    assert_eq!(times.count(), of_report.count());
}

#[test]
fn a_trace_is_exported_call_by_call() {
    let bench = Bench::new();
    let file = |name: &str| FileEntry {
        device_major: 8,
        device_minor: 0,
        inode: 1,
        generation: None,
        name: name.to_owned(),
        names: Vec::new(),
        deleted: false,
        bytes: None,
        role: None,
    };
    let document = TraceDocument {
        files: vec![file("/data/a,b.wt"), file("=HYPERLINK(\"x\")")],
        ..TraceDocument::new("0.0.0", "2026-01-01T00:00:00Z", TraceMode::Events)
    };
    let call = |file: u32, offset: i64, returned: i64| Call {
        start_ns: 1_000,
        latency_ns: 250,
        offset,
        requested: 4096,
        returned,
        file,
        process: 7,
        thread: 8,
        operation: Operation::Read,
        fetched: -1,
    };
    let limits = PartLimits { rows: 10, age: std::time::Duration::from_secs(60) };
    let mut writer = TraceWriter::create(&bench.path("trace"), &document, limits).unwrap();
    writer.calls(&[call(0, 8192, 512), call(1, -1, -5)]).unwrap();
    writer.finish(document).unwrap();
    let exported = bench.dyno(&["export", "trace", "--to", "csv"]).expect(0);
    assert_eq!(
        exported.stdout,
        "start_ns,latency_ns,operation,file,offset_bytes,requested_bytes,returned_bytes,errno,fetched_bytes,process,thread\n\
         1000,250,read,\"/data/a,b.wt\",8192,4096,512,,,7,8\n\
         1000,250,read,\"'=HYPERLINK(\"\"x\"\")\",,4096,,5,,7,8\n"
    );
    bench
        .dyno(&["export", "trace/trace.json", "--to", "parquet", "--output", "t.parquet"])
        .expect(0);
    bench
        .dyno(&["export", "trace", "--to", "hlog"])
        .expect(2)
        .says("`trace`")
        .says("`--to parquet`");
}
