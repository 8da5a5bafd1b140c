//! The response time law over target rates, with clients that wait for their slots, on each kind of server.

use crate::common::Bench;
use dyno_testkit::{embedded_program, mongod_program, or_skip};
use serde_json::Value;

/// Largest deviation from the law.
const AGREE_RATIO: f64 = 0.02;

/// Sweeps over eight target rates, and checks R = N/X − Z at each rate.
fn assert_law_at_each_rate(server: &[&str]) {
    let bench = Bench::new();
    let rates = "100,200,300,400,500,600,700,800";
    let throttled = ["sweep", "c", "--rates", rates, "--schedule", "throttled"];
    let short = ["--records", "200", "--duration", "1s", "--warmup", "0s"];
    let reported = ["--full", "--out", "x"];
    let finished = bench.dyno(&[&throttled[..], &short, &reported, server].concat()).expect(0);
    let law = "R = N/X − Z";
    assert!(finished.stdout.contains(law), "{}", finished.stdout);
    let page = std::fs::read_to_string(bench.path("x/report.html")).unwrap();
    assert!(page.contains("id=\"plot-response-time-law\""));
    let text = std::fs::read_to_string(bench.path("x/experiment.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let levels = document["answer"]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 8);
    for level in levels {
        let number = |name: &str| level[name].as_f64().unwrap();
        let checks = level["laws"].as_array().unwrap();
        let mut checks = checks.iter().filter(|one| one["law"] == "response_time");
        let check = checks.next().unwrap();
        assert_eq!(check["verdict"], "holds", "{check}");
        let difference = check["difference_ratio"].as_f64().unwrap();
        assert!(difference.abs() < AGREE_RATIO, "{check}");
        // Clients mostly wait for their slots: N / X alone is much larger than R.
        let cycle_us = 1e6 * number("clients") / number("offered_rate_per_s");
        assert!(number("think_mean_us") > 0.5 * cycle_us, "{level}");
    }
    assert!(!bench.path("x/server-data").exists());
}

#[test]
fn response_time_law_holds_on_the_embedded_server_at_each_rate() {
    if or_skip(embedded_program()).is_some() {
        assert_law_at_each_rate(&["--server", "embedded"]);
    }
}

#[test]
fn the_response_time_law_holds_on_a_mongod_at_each_target_rate() {
    if let Some(mongod) = or_skip(mongod_program()) {
        let mongod = mongod.to_str().unwrap();
        assert_law_at_each_rate(&["--mongod", mongod, "--cache", "256MiB"]);
    }
}
