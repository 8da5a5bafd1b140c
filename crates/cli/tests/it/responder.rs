//! `dyno responder` as a server for reproducible measurements: every plan, both backends, and the effect of a stall on
//! percentiles.

use crate::common::{Bench, Responder, ycsb_plans};
use serde_json::Value;

/// Plans that start and prepare their own server, take minutes because of their trace window, or need documents of a shape that
/// the responder does not create.
const OF_OWN_SERVERS: [&str; 3] = ["pkm", "storage-compare", "insert-benchmark"];

fn measured(document: &Value) -> &Value {
    let measure =
        document["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure");
    measure.expect("the run must have a measure phase")
}

#[test]
fn built_in_workloads_run_on_a_responder_by_both_backends() {
    let bench = Bench::new();
    let names: Vec<&str> = ycsb_plans().filter(|name| !OF_OWN_SERVERS.contains(name)).collect();
    assert!(names.len() >= 12, "{names:?}");
    for backend in ["wire", "driver"] {
        // Loaded by the first plan and dropped by each later one.
        let responder = Responder::start(&[]);
        for name in &names {
            let more = [
                "--records",
                "1000",
                "--operations",
                "300",
                "--clients",
                "2",
                "--warmup",
                "0s",
                "--fresh",
                "--format",
                "json",
                "--backend",
                backend,
            ];
            let uri = responder.uri();
            let arguments = [&["run", *name, "--uri", &uri], &more[..]].concat();
            let document = bench.dyno(&arguments).expect(0).json();
            let measure = measured(&document);
            for (operation, record) in measure["operations"].as_object().unwrap() {
                assert_eq!(record["errors"], 0, "{name} {backend} {operation}");
            }
            let errors = measure["errors"].as_object().map_or(0, |all| all.len());
            assert_eq!(errors, 0, "{name} {backend}: {}", measure["errors"]);
        }
    }
}

#[test]
fn plan_that_differs_from_the_responder_is_refused() {
    let (bench, responder) = (Bench::new(), Responder::with_documents(&[]));
    let uri = responder.uri();
    let refused =
        bench.dyno(&["run", "c", "--uri", &uri, "--records", "1000", "-p", "fieldcount=3"]);
    let refused = refused.expect(3);
    assert!(refused.stderr.contains("10 fields"), "{}", refused.stderr);
}

#[test]
fn contradictory_parameters_are_refused_before_listening() {
    let bench = Bench::new();
    for (parameters, reason) in [
        (&["p=1,best=2"][..], "`weight`"),
        (&["p=0,best=2,weight=1"], "above 0"),
        (&["p=1", "p=2"], "twice"),
        (&["p=1,worst=2"], "`worst`"),
    ] {
        let options = parameters.iter().flat_map(|text| ["--parameter", text]);
        let arguments: Vec<&str> = std::iter::once("responder").chain(options).collect();
        let refused = bench.dyno(&arguments).expect(2).says(reason);
        assert_eq!(refused.stdout, "", "it listened");
    }
}

/// The walk-through of `docs/measuring.md` with shorter stalls: one arrival in ten meets a stall and waits, with a uniform
/// distribution, up to its end.
#[test]
fn stalls_show_in_open_loops_and_hide_in_closed_ones() {
    let bench = Bench::new();
    let mut last = String::new();
    // Other load on the machine may add to a percentile.
    for _ in 0..5 {
        let responder =
            Responder::with_documents(&["--stall-every", "2s", "--stall-length", "200ms"]);
        let uri = responder.uri();
        let common = [
            "run",
            "c",
            "--uri",
            &uri,
            "--records",
            "1000",
            "--warmup",
            "0s",
            "--duration",
            "8s",
            "--clients",
            "16",
            "--format",
            "json",
        ];
        let response_ms = |more: &[&str]| {
            let document = bench.dyno(&[&common[..], more].concat()).expect(0).json();
            let times = &measured(&document)["operations"]["read"]["response_time_us"];
            ["p95", "p99"].map(|level| times[level].as_f64().unwrap() / 1e3)
        };
        let [p95_ms, p99_ms] = response_ms(&["--rate", "1000"]);
        let [_, closed_p99_ms] = response_ms(&[]);
        last = format!("p95 {p95_ms} ms, p99 {p99_ms} ms; closed loop p99 {closed_p99_ms} ms");
        let is_near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.1;
        if is_near(p95_ms, 100.0) && is_near(p99_ms, 180.0) && closed_p99_ms < 20.0 {
            return;
        }
    }
    panic!("p95 100 ms and p99 180 ms are due: {last}");
}
