//! `--metrics`: values that readers receive during a run.

use crate::common::scrape::{Endpoint, get, get_with};
use crate::common::{Bench, Responder, reads, signal, wait_for};
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-of-this-test-0123";

/// The value of a sample, by its name with all labels.
fn value(text: &str, sample: &str) -> Option<f64> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    values.next()?.parse().ok()
}

#[test]
fn counters_rise_while_a_run_is_in_progress() {
    let (bench, responder) =
        (Bench::new(), Responder::with_documents(&["--fault", "error=11600:10"]));
    let uri = responder.uri();
    let more = ["--metrics", "127.0.0.1:0", "--rate", "500", "--duration", "10m", "--out", "run"];
    let mut endpoint = Endpoint::spawn(&mut bench.command(&reads(&uri, &more)));
    let operations = "dyno_operations_total{phase=\"measure\",operation=\"read\"}";
    let reported = || get(endpoint.port, "/metrics").body;
    wait_for("operations", || value(&reported(), operations).is_some());
    let first = value(&reported(), operations).unwrap();
    wait_for("more operations", || value(&reported(), operations).unwrap() > first);
    let text = reported();
    assert_eq!(value(&text, "dyno_phase{phase=\"measure\"}"), Some(1.0));
    assert_eq!(value(&text, "dyno_phase{phase=\"load\"}"), Some(0.0));
    assert_eq!(value(&text, "dyno_offered_rate_per_second"), Some(500.0));
    let labels = "{phase=\"measure\",operation=\"read\"";
    let succeeded = value(&text, operations).unwrap();
    for clock in ["response_time", "service_time", "start_delay"] {
        let sample = |end: &str| value(&text, &format!("dyno_{clock}_seconds_{end}"));
        assert_eq!(sample(&format!("count{labels}}}")), Some(succeeded));
        assert_eq!(sample(&format!("bucket{labels},le=\"+Inf\"}}")), Some(succeeded));
        assert!(sample(&format!("sum{labels}}}")).unwrap() > 0.0);
    }
    let errors =
        "dyno_operation_errors_total{phase=\"measure\",operation=\"read\",kind=\"server_11600\"}";
    let failed = value(&text, errors).unwrap();
    assert!((failed / (failed + succeeded) - 0.1).abs() < 0.02, "{failed} of {succeeded}");
    let timeouts = errors.replace("server_11600", "timeout");
    assert_eq!(value(&text, &timeouts), Some(0.0));
    let due = value(&text, "dyno_arrivals_total{state=\"due\"}").unwrap();
    assert!(due >= succeeded + failed, "{due}");
    assert!(text.contains("dyno_run_info{name=\"read\"") && text.contains("status=\"running\""));
    signal(&endpoint.child, "INT");
    let ended = endpoint.child.wait().unwrap();
    assert_eq!(ended.code(), Some(130));
    assert!(TcpStream::connect(("127.0.0.1", endpoint.port)).is_err());
}

#[test]
fn metrics_format_follows_the_accept_header() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = ["--metrics", "127.0.0.1:0", "--rate", "100", "--duration", "10m"];
    let endpoint = Endpoint::spawn(&mut bench.command(&reads(&uri, &more)));
    let open = "application/openmetrics-text;version=1.0.0";
    let reported = get_with(endpoint.port, "/metrics", &[("Accept", open)]);
    assert!(
        reported.head.contains("application/openmetrics-text; version=1.0.0"),
        "{}",
        reported.head
    );
    assert!(reported.body.ends_with("# EOF\n"), "{}", reported.body);
    let reported = get(endpoint.port, "/metrics");
    assert!(reported.head.contains("text/plain; version=0.0.4"), "{}", reported.head);
    assert_eq!(get(endpoint.port, "/").status, 404);
    assert_eq!(get(endpoint.port, "/run.json").status, 404);
    let long = "x".repeat(100_000);
    assert_ne!(get_with(endpoint.port, "/metrics", &[("X-Long", &long)]).status, 200);
    assert_eq!(get(endpoint.port, "/metrics").status, 200);
}

#[test]
fn slow_readers_do_not_delay_the_run() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = ["--metrics", "127.0.0.1:0", "--rate", "200", "--duration", "3s", "--out", "run"];
    let mut endpoint = Endpoint::spawn(&mut bench.command(&reads(&uri, &more)));
    let idle: Vec<TcpStream> =
        (0..60).map(|_| TcpStream::connect(("127.0.0.1", endpoint.port)).unwrap()).collect();
    // They do not delay a scraper either.
    let began = Instant::now();
    assert_eq!(get(endpoint.port, "/metrics").status, 200);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let ended = endpoint.child.wait().unwrap();
    assert_eq!(ended.code(), Some(0));
    drop(idle);
    let document = fs::read_to_string(bench.path("run/run.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["status"], "complete");
    assert!(document["phases"][0]["duration_s"].as_f64().unwrap() < 4.0);
}

/// Files below a folder that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(text) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn token_is_required_and_never_written() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let more = [
        "--metrics",
        "0.0.0.0:0",
        "--rate",
        "200",
        "--duration",
        "2s",
        "--out",
        "run",
        "--verbose",
    ];
    let mut command = bench.command(&reads(&uri, &more));
    let mut endpoint = Endpoint::spawn(command.env("DYNO_METRICS_TOKEN", TOKEN));
    assert_eq!(get(endpoint.port, "/metrics").status, 401);
    let wrong = format!("Bearer {}x", &TOKEN[1..]);
    assert_eq!(get_with(endpoint.port, "/", &[("Authorization", &wrong)]).status, 401);
    let right = format!("Bearer {TOKEN}");
    let reported = get_with(endpoint.port, "/metrics", &[("Authorization", &right)]);
    assert_eq!(reported.status, 200);
    assert!(!reported.body.contains(TOKEN));
    assert_eq!(endpoint.child.wait().unwrap().code(), Some(0));
    let mut output = String::new();
    endpoint.child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(!output.contains(TOKEN) && !endpoint.errors().contains(TOKEN));
    assert_eq!(holding(bench.folder.path(), TOKEN), [""; 0]);
}

#[test]
fn unusable_endpoint_ends_the_command_before_it_starts() {
    let bench = Bench::new();
    let run = |more: &[&str]| bench.dyno(&[&["run", "a"], more].concat());
    run(&["--metrics", "0.0.0.0:9464"]).expect(2).says("--metrics-token");
    run(&["--metrics", "0.0.0.0:9464", "--dry-run"]).expect(2);
    run(&["--metrics", "9464"]).expect(2);
    let alone = run(&["--metrics-token", TOKEN]).expect(2).says("--metrics");
    assert!(!alone.stderr.contains(TOKEN), "{}", alone.stderr);
    let short = run(&["--metrics", "0.0.0.0:0", "--metrics-token", "tiny-secret"]).expect(2);
    assert!(!short.stderr.contains("tiny-secret"), "{}", short.stderr);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in [&["run", "a"][..], &["soak", "a"], &["sweep", "a", "--clients", "1,2"]] {
        // No server listens there: the endpoint is opened before the server is queried.
        let metrics = ["--uri", "mongodb://127.0.0.1:1/", "--metrics", &address];
        bench.dyno(&[command, &metrics].concat()).expect(3).says(&address).says("hint: ");
    }
    assert_eq!(bench.entries(), [""; 0]);
}

#[test]
fn bad_input_is_refused_before_the_endpoint_opens() {
    let bench = Bench::new();
    let exporter = "name = \"node\"\nurl = \"https://localhost:9100/metrics\"\ntoken_file = \"no-such-file\"\n";
    let plan = format!("base = \"c\"\n[[observe.exporters]]\n{exporter}");
    fs::write(bench.path("p.toml"), plan).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in [
        &["run", "p.toml"][..],
        &["sweep", "p.toml", "--clients", "1,2"],
        &["ab", "p.toml", "p.toml"],
    ] {
        for endpoint in [&address, "127.0.0.1:0"] {
            let metrics = ["--metrics", endpoint];
            let finished = bench.dyno(&[command, &metrics].concat()).expect(2);
            assert_eq!(finished.stderr.matches("no-such-file").count(), 1);
            assert!(!finished.stderr.contains("127.0.0.1"), "{}", finished.stderr);
        }
    }
    assert_eq!(bench.entries(), ["p.toml"]);
}

#[test]
fn metrics_cover_all_runs_of_an_experiment() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let arguments = [
        "sweep",
        "read",
        "--uri",
        &uri,
        "--records",
        "1000",
        "-p",
        "insertorder=ordered",
        "--clients",
        "1,2",
        "--warmup",
        "0s",
        "--duration",
        "2s",
        "--order",
        "given",
        "--metrics",
        "127.0.0.1:0",
    ];
    let mut endpoint = Endpoint::spawn(&mut bench.command(&arguments));
    let reported = || get(endpoint.port, "/metrics").body;
    let operations = "dyno_operations_total{phase=\"measure\",operation=\"read\"}";
    wait_for("the first run", || reported().contains("directory=\"001-"));
    wait_for("operations of it", || value(&reported(), operations).is_some());
    let first = value(&reported(), operations).unwrap();
    wait_for("the second run", || reported().contains("directory=\"002-"));
    assert!(value(&reported(), operations).unwrap() >= first);
    assert_eq!(endpoint.child.wait().unwrap().code(), Some(0));
}
