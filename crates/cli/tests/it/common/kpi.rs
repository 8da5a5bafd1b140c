//! Key figures as the scripts of the Workload Services Framework read them.

use super::names;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

/// The figures in the benchmark's list of key figures: lines that begin with `#` are comments; the text before the first colon is
/// the key, if a space follows the colon; quotes are dropped; the last line of a key wins, and other lines are skipped.
fn listed(text: &str) -> BTreeMap<&str, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let figures = lines.filter_map(|line| {
        let (key, rest) = line.split_once(':')?;
        Some((key, rest.strip_prefix(' ')?.replace('"', "")))
    });
    figures.collect()
}

/// Checks that the list of two servers has each label of those scripts with the figures of the record, and that the scripts'
/// arithmetic over the servers gives the figures of all. The sum of the rates may be off by this share: phases of servers differ
/// in length if several agents load them.
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
                    assert!((value - recorded).abs() <= 0.5, "{label}: {value}, {recorded}");
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
    let sum = |of: &str| found.get(of).map_or(0.0, |values| values.iter().sum::<f64>());
    for kind in ["insert", "read", "update"] {
        let mean = take(&format!("Mean of [RUN PHASE] P99 {kind} latency(us)"));
        // The scripts have whole microseconds for each server.
        assert!((mean - sum(kind) / 2.0).abs() <= 0.5, "{text}");
        take(&format!("Merged [RUN PHASE] P99 {kind} latency(us)"));
    }
    for (label, value) in [
        ("*Sum of [RUN PHASE] Throughput(ops/sec)", sum("rate")),
        ("Mean of [RUN PHASE] Throughput(ops/sec)", sum("rate") / 2.0),
    ] {
        assert!((take(label) / value - 1.0).abs() < share, "{text}");
    }
    // The last line of a key wins, and is about the second server.
    for counter in ["Counter of [LOAD_PHASE]", "Counter of [RUN_PHASE]"] {
        assert_eq!(take(counter), 1.0, "{text}");
    }
    assert!(figures.is_empty(), "{figures:?}");
}

const LATENCIES: [&str; 4] =
    ["AverageLatency(us)", "MinLatency(us)", "MaxLatency(us)", "99thPercentileLatency(us)"];

/// Reads the folders of the benchmark's clients like its `kpi.sh`, and returns the figures by their printed labels. Sizes are
/// added up. In the output of a client, markers separate load from run, and some figures of some YCSB blocks count. A figure of
/// all clients is the sum or the mean over their files; a figure that a file lacks counts as 0.
fn found_by_kpi_sh(folder: &Path) -> BTreeMap<String, f64> {
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    let clients = names(folder);
    for client in &clients {
        let client = folder.join(client);
        let sizes = read_to_string(client.join("ycsb_output.json")).unwrap();
        let sizes: Value = serde_json::from_str(&sizes).unwrap();
        for (label, key) in [
            ("Total storageSize", "storageSize"),
            ("Total IndexSize", "totalIndexSize"),
            ("Total Size", "totalSize"),
        ] {
            *found.entry(label.to_owned()).or_default() += sizes[key].as_f64().unwrap_or(0.0);
        }
        read_log(&read_to_string(client.join("output.logs")).unwrap(), &mut found);
    }
    let count = clients.len() as f64;
    let sum = |begin: &str, end: &str| -> f64 {
        let own =
            found.iter().filter(|(label, _)| label.starts_with(begin) && label.ends_with(end));
        own.map(|(_, value)| value).sum()
    };
    let of_kinds = [("insert", "[INSERT RUN]"), ("read", "[READ]"), ("update", "[UPDATE]")];
    let mut of_all: Vec<(String, f64)> = of_kinds
        .map(|(kind, block)| {
            let label = format!("Mean of [RUN PHASE] P99 {kind} latency(us)");
            (label, sum(block, "99thPercentileLatency(us)") / count)
        })
        .into();
    let rates = sum("[OVERALL RUN]", "Throughput(ops/sec)");
    of_all.push(("Mean of [RUN PHASE] Throughput(ops/sec)".into(), rates / count));
    of_all.push(("*Sum of [RUN PHASE] Throughput(ops/sec)".into(), rates));
    found.extend(of_all);
    found
}

/// The part of [`found_by_kpi_sh`] that reads the output of one client.
fn read_log(log: &str, found: &mut BTreeMap<String, f64>) {
    let (mut job, mut phase) = ("-1", "LOAD");
    for line in log.lines() {
        if line.contains("JOB_INDEX is") {
            job = line.split(' ').nth(2).unwrap();
        }
        for name in ["LOAD", "RUN"] {
            if line.contains(&format!("[{name}_PHASE]")) {
                phase = name;
            }
            if line.contains(&format!("YCSB {} succeeded", name.to_lowercase())) {
                found.insert(format!("[{name} PHASE RC][{job}](return code)"), 0.0);
            }
        }
        let parts: Vec<&str> = line.split(", ").collect();
        let [block, figure, value] = parts[..] else {
            continue;
        };
        let is_latency = LATENCIES.contains(&figure);
        let label = match block {
            "[OVERALL]" if figure == "Throughput(ops/sec)" => {
                format!("[OVERALL {phase}][{job}] {figure}")
            }
            "[INSERT]" if is_latency => format!("[INSERT {phase}][{job}] {figure}"),
            "[READ]" | "[UPDATE]" if is_latency => {
                let comma = if figure.starts_with("Average") { "" } else { "," };
                format!("{block}[{job}]{comma} {figure}")
            }
            _ => continue,
        };
        found.insert(label, value.parse().unwrap());
    }
}

/// Checks that the benchmark's own script finds the key figures of the run and the sizes of its record in these logs of two
/// servers, and nothing else. Times may be off by a microsecond, because YCSB drops fractions, and rates by this share, because
/// YCSB computes them from whole milliseconds.
#[track_caller]
pub(crate) fn assert_kpi_sh_finds(folder: &Path, text: &str, document: &Value, share: f64) {
    let mut found = found_by_kpi_sh(folder);
    let mut take = |label: &str| found.remove(label).unwrap_or_else(|| panic!("{label}: {text}"));
    for (label, value) in listed(text) {
        // The script does not merge histograms, and counts files in the order in which it finds them.
        if label.starts_with("Merged ") || label.starts_with("Counter ") {
            continue;
        }
        let value: f64 = value.parse().unwrap();
        let is_rate = label.ends_with("Throughput(ops/sec)");
        let limit = if is_rate { share * value } else { 1.0 };
        let own = take(label);
        assert!((own - value).abs() <= limit, "{label}: {own}, {value}");
    }
    for (phase, job) in [("LOAD", 0), ("LOAD", 1), ("RUN", 0), ("RUN", 1)] {
        take(&format!("[{phase} PHASE RC][{job}](return code)"));
    }
    // Absent if no server reported its collection.
    let ends = document["collections"].as_array().into_iter().flatten();
    let ends: Vec<&Value> = ends.filter(|one| one["at"] == "end").collect();
    let reported = |size: &str| -> f64 {
        let sizes = ends.iter().map(|one| one["statistics"][size].as_f64());
        sizes.map(|size| size.unwrap_or(0.0)).sum()
    };
    let (storage, indexes) = (reported("storage_bytes"), reported("indexes_bytes"));
    assert_eq!(take("Total storageSize"), storage, "{document}");
    assert_eq!(take("Total IndexSize"), indexes, "{document}");
    assert_eq!(take("Total Size"), storage + indexes, "{document}");
    assert!(found.is_empty(), "{found:?}");
}
