//! Key figures as the scripts of the Workload Services Framework read them.

use serde_json::Value;
use std::collections::BTreeMap;

/// The figures that the benchmark's list of key figures has: lines that begin with `#` are comments; the text before the first
/// colon is the key, if a space follows the colon; quotes are dropped; the last line of a key wins, and other lines are skipped.
fn listed(text: &str) -> BTreeMap<&str, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let figures = lines.filter_map(|line| {
        let (key, rest) = line.split_once(':')?;
        Some((key, rest.strip_prefix(' ')?.replace('"', "")))
    });
    figures.collect()
}

/// The list of two servers has each label of those scripts, with the figures of the record, and their arithmetic over the
/// servers gives the figures of all. The sum of the rates may be off by this share: phases of servers differ in length where
/// several agents load them.
#[track_caller]
pub(crate) fn assert_scripts_read(text: &str, document: &Value, share: f64) {
    let mut figures = listed(text);
    let mut take = |label: &str| -> f64 {
        let value = figures.remove(label);
        let value = value.unwrap_or_else(|| panic!("{label}: {text}"));
        value.parse().unwrap_or_else(|_| panic!("{label}: {text}"))
    };
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (number, instance) in document["instances"].as_array().unwrap().iter().enumerate() {
        let phases = instance["phases"].as_array().unwrap().iter();
        for (phase, name) in phases.zip(["LOAD", "RUN"]) {
            let rate = take(&format!("[OVERALL {name}][{number}] Throughput(ops/sec)"));
            assert!(rate > 0.0, "{text}");
            let kinds: &[(&str, &str, &str)] = if name == "LOAD" {
                &[("insert", "INSERT LOAD", "")]
            } else {
                &[("read", "READ", ","), ("update", "UPDATE", ",")]
            };
            for (kind, label, comma) in kinds {
                let latency = &phase["operations"][kind]["response_time_us"];
                for (comma, what, key) in [
                    ("", "AverageLatency(us)", "mean"),
                    (*comma, "MinLatency(us)", "min"),
                    (*comma, "MaxLatency(us)", "max"),
                    (*comma, "99thPercentileLatency(us)", "p99"),
                ] {
                    let label = format!("[{label}][{number}]{comma} {what}");
                    let value = take(&label);
                    let recorded = latency[key].as_f64().unwrap();
                    assert!(
                        (value - recorded).abs() <= 0.5,
                        "{label}: {value}, {recorded}"
                    );
                    if name == "RUN" && key == "p99" {
                        found.entry(*kind).or_default().push(value);
                    }
                }
            }
            if name == "RUN" {
                found.entry("rate").or_default().push(rate);
            }
        }
    }
    let sum = |of: &str| {
        found
            .get(of)
            .map_or(0.0, |values| values.iter().sum::<f64>())
    };
    for kind in ["insert", "read", "update"] {
        let mean = take(&format!("Mean of [RUN PHASE] P99 {kind} latency(us)"));
        // They have whole microseconds of each server.
        assert!((mean - sum(kind) / 2.0).abs() <= 0.5, "{text}");
        take(&format!("Merged [RUN PHASE] P99 {kind} latency(us)"));
    }
    for (label, value) in [
        ("*Sum of [RUN PHASE] Throughput(ops/sec)", sum("rate")),
        ("Mean of [RUN PHASE] Throughput(ops/sec)", sum("rate") / 2.0),
    ] {
        assert!((take(label) / value - 1.0).abs() < share, "{text}");
    }
    // The last of two servers.
    for counter in ["Counter of [LOAD_PHASE]", "Counter of [RUN_PHASE]"] {
        assert_eq!(take(counter), 1.0, "{text}");
    }
    assert!(figures.is_empty(), "{figures:?}");
}
