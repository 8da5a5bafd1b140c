//! `dyno ycsb` as a replacement for `bin/ycsb`: output that scripts read, and stricter checks.

use crate::common::{Bench, Finished, Responder};
use dyno_testkit::{embedded, or_skip};
use std::collections::BTreeMap;

/// The final output in the form that scripts read: three comma-separated fields.
fn parse(text: &str) -> BTreeMap<(String, String), f64> {
    let mut values = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(3, ", ").collect();
        let [metric, measurement, value] = fields[..] else { panic!("not three fields: `{line}`") };
        assert!(metric.starts_with('[') && metric.ends_with(']'), "{line}");
        let value = value.parse().unwrap_or_else(|error| panic!("{error}: `{line}`"));
        values.insert((metric.to_owned(), measurement.to_owned()), value);
    }
    values
}

fn value(values: &BTreeMap<(String, String), f64>, metric: &str, measurement: &str) -> f64 {
    let found = values.get(&(metric.to_owned(), measurement.to_owned()));
    *found.unwrap_or_else(|| panic!("no `{metric}, {measurement}` in {values:?}"))
}

fn workload(bench: &Bench, more: &str) -> String {
    let path = bench.path("workloada");
    let text = format!(
        "recordcount=500\noperationcount=400\nworkload=site.ycsb.workloads.CoreWorkload\n\
         readproportion=0.5\nupdateproportion=0.5\nrequestdistribution=zipfian\n{more}\n"
    );
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn load_and_run_print_what_ycsb_prints() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let url = format!("mongodb.url={}ycsb", server.uri());
    let file = workload(&bench, "");
    let common = ["mongodb", "-P", &file, "-p", &url, "-threads", "4"];
    let load = bench.dyno(&[&["ycsb", "load"], &common[..]].concat()).expect(0);
    let values = parse(&load.stdout);
    assert_eq!(value(&values, "[INSERT]", "Operations"), 500.0);
    assert_eq!(value(&values, "[INSERT]", "Return=OK"), 500.0);
    assert!(value(&values, "[OVERALL]", "Throughput(ops/sec)") > 0.0);
    let run = bench.dyno(&[&["ycsb", "run"], &common[..], &["-s"]].concat()).expect(0);
    assert!(run.stdout.starts_with("[OVERALL], RunTime(ms), "), "{}", run.stdout);
    let values = parse(&run.stdout);
    let operations =
        value(&values, "[READ]", "Operations") + value(&values, "[UPDATE]", "Operations");
    assert_eq!(operations, 400.0);
    for measurement in [
        "AverageLatency(us)",
        "MinLatency(us)",
        "MaxLatency(us)",
        "50thPercentileLatency(us)",
        "95thPercentileLatency(us)",
        "99thPercentileLatency(us)",
    ] {
        assert!(value(&values, "[READ]", measurement) > 0.0, "{measurement}");
    }
    let run =
        run.says("Command line: run mongodb").says("Loading workload...").says("Starting test.");
    run.says(" 0 sec: 0 operations; est completion in ").says("[READ: Count=");
    assert_eq!(bench.entries(), ["workloada"], "nothing is left in the working folder");
}

#[test]
fn the_last_batch_is_sent_and_every_document_counted() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let url = format!("mongodb.url={}ycsb", server.uri());
    let arguments =
        ["ycsb", "load", "mongodb", "-p", "recordcount=100", "-p", "batchsize=7", "-p", &url, "-s"];
    let finished = bench.dyno(&arguments).expect(0);
    let values = parse(&finished.stdout);
    assert_eq!(value(&values, "[INSERT]", "Operations"), 100.0);
    let uri = server.uri();
    let run = [
        "run",
        "read",
        "--records",
        "100",
        "--no-load",
        "--operations",
        "10",
        "--warmup",
        "0s",
        "--uri",
        &uri,
    ];
    bench.dyno(&run).expect(0);
}

#[test]
fn failed_operations_set_exit_status_1_and_do_not_count() {
    let (bench, responder) =
        (Bench::new(), Responder::start(&["--documents", "100", "--fault", "error=8000:4"]));
    let url = format!("mongodb.url={}", responder.uri());
    let arguments = [
        "ycsb",
        "run",
        "mongodb",
        "-p",
        "recordcount=100",
        "-p",
        "operationcount=400",
        "-p",
        "readproportion=1",
        "-p",
        "updateproportion=0",
        "-p",
        &url,
    ];
    let finished = bench.dyno(&arguments).expect(1).says("100 of 400").says("YCSB");
    let values = parse(&finished.stdout);
    assert_eq!(value(&values, "[READ]", "Return=OK"), 300.0);
    assert_eq!(value(&values, "[READ-FAILED]", "Operations"), 100.0);
    let seconds = value(&values, "[OVERALL]", "RunTime(ms)") / 1000.0;
    let counted = value(&values, "[OVERALL]", "Throughput(ops/sec)") * seconds;
    assert!((counted - 300.0).abs() < 1.0, "{counted}");
}

#[test]
fn failed_inserts_end_the_load_unless_told_to_continue() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let url = format!("mongodb.url={}ycsb", server.uri());
    let load = ["ycsb", "load", "mongodb", "-p", "recordcount=5000", "-p", &url];
    bench.dyno(&load).expect(0);
    let again = bench.dyno(&load).expect(1).says("DuplicateKey (11000)").says("insertstart");
    let failed = value(&parse(&again.stdout), "[INSERT-FAILED]", "Operations");
    assert!((1.0..5000.0).contains(&failed), "{failed}");
    let going_on =
        [&load[..], &["-p", "core_workload_insertion_keep_going_on_error=true"]].concat();
    let again = bench.dyno(&going_on).expect(1).says("5000 of 5000");
    assert_eq!(value(&parse(&again.stdout), "[INSERT-FAILED]", "Operations"), 5000.0);
}

#[test]
fn output_goes_where_the_properties_say() {
    let (bench, responder) = (Bench::new(), Responder::start(&["--documents", "100"]));
    let url = format!("mongodb.url={}", responder.uri());
    let prefix = format!("hdrhistogram.output.path={}/", bench.folder.path().display());
    let arguments = [
        "ycsb",
        "run",
        "mongodb",
        "-p",
        "recordcount=100",
        "-p",
        "operationcount=200",
        "-p",
        &url,
        "-p",
        "exportfile=result.json",
        "-p",
        "exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter",
        "-p",
        "hdrhistogram.fileoutput=true",
        "-p",
        &prefix,
        "--out",
        "kept",
    ];
    let finished = bench.dyno(&arguments).expect(0);
    assert_eq!(finished.stdout, "");
    let text = std::fs::read_to_string(bench.path("result.json")).unwrap();
    let entries: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(entries.iter().any(|entry| entry["metric"] == "OVERALL"), "{text}");
    assert!(
        std::fs::read_to_string(bench.path("READ.hdr"))
            .unwrap()
            .starts_with("#[Logging for: READ]")
    );
    bench.dyno(&["report", "kept"]).expect(0);
}

#[test]
fn credentials_are_hidden_and_differences_are_reported() {
    let (bench, responder) = (Bench::new(), Responder::start(&["--documents", "70"]));
    let url = format!("mongodb.url={}", responder.uri());
    let arguments = [
        "ycsb",
        "run",
        "mongodb",
        "-jvm-args",
        "-Xmx1g",
        "-p",
        "recordcount=100",
        "-p",
        "operationcount=50",
        "-p",
        &url,
        "-p",
        "mongodb.password=secret",
    ];
    let finished = bench.dyno(&arguments);
    assert!(!finished.stderr.contains("secret"), "{}", finished.stderr);
    let without = bench.dyno(&arguments[..arguments.len() - 2]).expect(0);
    without.says("`-jvm-args`").says(" 70 ").says("`recordcount`");
}

#[test]
fn unknown_names_can_be_allowed() {
    let (bench, responder) = (Bench::new(), Responder::start(&["--documents", "100"]));
    let url = format!("mongodb.url={}", responder.uri());
    let arguments = [
        "ycsb",
        "run",
        "mongodb",
        "-p",
        "recordcount=100",
        "-p",
        "operationcount=50",
        "-p",
        &url,
        "-p",
        "colour=red",
    ];
    bench.dyno(&arguments).expect(2).says("colour");
    bench.dyno(&[&arguments[..], &["--lenient"]].concat()).expect(0).says("colour");
}

#[test]
fn own_server_can_be_requested() {
    if or_skip(dyno_testkit::embedded_program()).is_none() {
        return;
    }
    let bench = Bench::new();
    let arguments = [
        "ycsb",
        "run",
        "mongodb",
        "-p",
        "recordcount=100",
        "-p",
        "operationcount=50",
        "-p",
        "dyno.server=embedded",
    ];
    let finished: Finished = bench.dyno(&arguments).expect(0);
    let values = parse(&finished.stdout);
    assert_eq!(
        value(&values, "[READ]", "Operations") + value(&values, "[UPDATE]", "Operations"),
        50.0
    );
    assert!(bench.entries().is_empty(), "{:?}", bench.entries());
}

#[test]
fn launcher_options_and_latin1_files_work_as_in_ycsb() {
    let (bench, responder) = (Bench::new(), Responder::start(&["--documents", "100"]));
    let text = b"# Gr\xf6\xdfe\nrecordcount=100\noperationcount=50\nlabel=\xfcber\n";
    std::fs::write(bench.path("latin1"), text).unwrap();
    let url = format!("mongodb.url={}", responder.uri());
    let words = ["run", "mongodb", "-jvm-args=-Xms4g -Xmx8g", "-P", "latin1", "-s", "-p", &url];
    bench.dyno(&[&["ycsb", "-cp", "/x"], &words[..]].concat()).expect(0).says("\u{fc}ber");
    let wide: Vec<u8> = "recordcount=100".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(bench.path("wide.properties"), wide).unwrap();
    for arguments in [
        &["run", "wide.properties", "--dry-run"][..],
        &["ycsb", "run", "mongodb", "-P", "wide.properties"],
    ] {
        bench.dyno(arguments).expect(2).says("UTF-16").says("hint: ").says("UTF-8");
    }
}

#[test]
fn ycsb_hint_names_a_working_option() {
    let Some(server) = or_skip(embedded()) else {
        return;
    };
    let bench = Bench::new();
    let file = workload(&bench, "");
    let url = format!("mongodb.url={}ycsb", server.uri());
    let common = ["mongodb", "-P", &file, "-p", &url];
    let load = [&["ycsb", "load"], &common[..]].concat();
    bench.dyno(&load).expect(0);
    let preference = ["-p", "mongodb.readPreference=NEAREST"];
    let run = [&["ycsb", "run"], &common[..], &preference].concat();
    let refused = bench
        .dyno(&run)
        .expect(2)
        .says("`mongodb.readPreference` is `NEAREST`")
        .says("`-p dyno.backend=driver`");
    assert!(!refused.stderr.contains("--backend"), "{}", refused.stderr);
    let advised = [&run[..], &["-p", "dyno.backend=driver"]].concat();
    bench.dyno(&advised).expect(0);
}
