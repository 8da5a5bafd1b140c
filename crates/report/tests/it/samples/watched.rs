//! A watched run whose disk was throttled halfway, with its analysis.

use crate::support::{Spread, closed_document, window};
use dyno_analyze::experiment::run::RunAnalysis;
use dyno_analyze::level_shifts::Drift;
use dyno_analyze::periodicity::NamedPattern;
use dyno_analyze::periodicity::Pattern;
use dyno_analyze::periodicity::PatternSource;
use dyno_analyze::timeline::Timeline;
use dyno_analyze::timeline::TimelineChange;
use dyno_analyze::timeline::TimelineDrift;
use dyno_analyze::timeline::TimelinePattern;
use dyno_analyze::timeline::TimelineSeries;
use dyno_analyze::verdict::Cause;
use dyno_analyze::verdict::CauseFinding;
use dyno_analyze::verdict::Evidence;
use dyno_analyze::verdict::Verdict;
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::{OutageRecord, PhaseKind, SourceHealth, SourceKind, SourceRecord};
use dyno_record::reader::Run;
use dyno_record::statement::Statement;
use serde_json::json;

/// Start of the measured time, and time when the disk was throttled, from the start of the run.
const MEASURED_S: u64 = 6;
const THROTTLED_S: u64 = 36;
/// End of the run.
const END_S: u64 = 66;

/// A run in which the disk gets slow after half of the measured time.
pub(crate) fn throttled() -> (Run, RunAnalysis) {
    let mut document = closed_document();
    document.plan["schedule"] = json!({"kind": "constant", "rate_per_s": 150.0});
    let mut spread = Spread(5);
    let mut windows = Vec::new();
    for start_s in 0..END_S {
        let (phase, index) = match start_s {
            0..3 => (PhaseKind::Load, start_s),
            3..MEASURED_S => (PhaseKind::Warmup, start_s - 3),
            _ => (PhaseKind::Measure, start_s - MEASURED_S),
        };
        let (us, count) = match is_slow(start_s) {
            true => (61_000, 9),
            false => (2_100, 75),
        };
        let window = window(phase, index, start_s);
        windows.push(match phase {
            PhaseKind::Load => window.operation("insert", &spread.values(4_000, 300)),
            _ => window
                .operation("read", &spread.values(us / 2, count))
                .operation("update", &spread.values(us, count))
                .arrivals(150, 150, 0, 0),
        });
    }
    let (mut run, analysis) = crate::support::analysed(document, &windows);
    run.document.sources = sources();
    run.metrics = vec![host(), server("server")];
    let analysis = RunAnalysis { verdict: Some(verdict()), timeline: Some(timeline()), ..analysis };
    (run, analysis)
}

/// The same run with so many servers that they are combined.
pub(crate) fn many_servers() -> (Run, RunAnalysis) {
    let (mut run, analysis) = throttled();
    run.metrics = vec![host()];
    run.metrics.extend((0..6).map(|number| server(&format!("pair-{number}"))));
    (run, analysis)
}

/// A run of an hour with repeated windows and rows.
pub(crate) fn hour() -> (Run, RunAnalysis) {
    let (mut run, analysis) = throttled();
    let (intervals, series) = (run.intervals.clone(), run.series.clone());
    let is_measured = |phase: PhaseKind| phase == PhaseKind::Measure;
    let span_s = (END_S - MEASURED_S) as f64;
    for copy in 1..60u64 {
        let shift_s = copy as f64 * span_s;
        let again = intervals.iter().filter(|one| is_measured(one.phase));
        run.intervals.extend(again.cloned().map(|mut one| {
            one.index += copy * (END_S - MEASURED_S);
            one.start_s += shift_s;
            one
        }));
        let again = series.iter().filter(|one| is_measured(one.phase));
        run.series.extend(again.cloned().map(|mut one| {
            one.index += copy * (END_S - MEASURED_S);
            one.start_s += shift_s;
            one
        }));
    }
    for table in &mut run.metrics {
        let rows = table.at_s.len();
        let row_s = table.at_s[rows - 1];
        for copy in 1..55 {
            let shift_s = f64::from(copy) * row_s;
            let later: Vec<f64> = table.at_s[..rows].iter().map(|at_s| at_s + shift_s).collect();
            table.at_s.extend(later);
            table.duration_s.extend_from_within(..rows);
        }
        for (place, values) in table.columns.values_mut().enumerate() {
            for row in rows..table.at_s.len() {
                // As many digits as a real machine reports.
                let noise = ((row * 7919 + place * 104_729) % 9973) as f64 / 9973.0;
                values.push(values[row % rows] * (0.9 + 0.2 * noise));
            }
        }
    }
    (run, analysis)
}

fn is_slow(start_s: u64) -> bool {
    start_s >= THROTTLED_S
}

/// One row per second over the whole run; each column is a function of the second.
fn table(source: &str, columns: &[(&str, &dyn Fn(u64) -> f64)]) -> MetricTable {
    let column = |(id, value): &(&str, &dyn Fn(u64) -> f64)| {
        let values = (0..END_S).map(value).collect();
        (MetricId::parse(id).unwrap(), values)
    };
    MetricTable {
        source: source.to_owned(),
        at_s: (1..=END_S).map(|end_s| end_s as f64 + 0.2).collect(),
        duration_s: vec![1.0; END_S as usize],
        columns: columns.iter().map(column).collect(),
    }
}

/// One value while the disk is fast, and another while it is slow, with a little noise.
fn level(fast: f64, slow: f64) -> impl Fn(u64) -> f64 {
    move |second| {
        let level = if is_slow(second) { slow } else { fast };
        level * (0.95 + 0.1 * ((second * 37 % 11) as f64 / 10.0))
    }
}

fn host() -> MetricTable {
    let mut table = table(
        "host",
        &[
            ("cpu.all.user_ratio", &level(0.31, 0.06)),
            ("cpu.all.nice_ratio", &|_| 0.0),
            ("cpu.all.system_ratio", &level(0.17, 0.04)),
            ("cpu.all.irq_ratio", &|_| 0.0),
            ("cpu.all.softirq_ratio", &level(0.02, 0.004)),
            ("cpu.all.steal_ratio", &|_| 0.0),
            ("cpu.all.iowait_ratio", &level(0.03, 0.41)),
            ("cpu.all.busy_ratio", &level(0.5, 0.1)),
            ("process.server.cpu_ratio", &level(0.64, 0.09)),
            ("process.server.cpu_wait_ratio", &level(0.05, 0.01)),
            ("process.server.resident_bytes", &|_| 412.0 * 1024.0 * 1024.0),
            ("process.client.cpu_ratio", &level(0.21, 0.04)),
            ("process.client.cpu_wait_ratio", &level(0.02, 0.0)),
            ("process.client.workers_cpu_ratio", &level(0.2, 0.04)),
            ("process.client.workers_wait_ratio", &level(0.02, 0.0)),
            ("process.client.workers_count", &|_| 1.0),
            ("process.client.resident_bytes", &|_| 19.0 * 1024.0 * 1024.0),
            ("pressure.io.some_ratio", &level(0.12, 0.93)),
            ("pressure.memory.some_ratio", &|_| 0.0),
            ("memory.available_bytes", &|second| 5e9 - 1e6 * second as f64),
            ("memory.cached_bytes", &|second| 2e9 + 1e6 * second as f64),
            ("paging.swap_in_bytes_per_s", &|_| 0.0),
            ("paging.swap_out_bytes_per_s", &|_| 0.0),
            ("storage.loop0.free_bytes", &|_| 9e9),
            ("disk.loop0.read_per_s", &level(12.0, 2.0)),
            ("disk.loop0.write_per_s", &level(192.0, 25.0)),
            ("disk.loop0.flush_per_s", &level(80.0, 10.0)),
            ("disk.loop0.read_bytes_per_s", &level(1.2e5, 2.1e4)),
            ("disk.loop0.write_bytes_per_s", &level(3.1e6, 3.9e5)),
            ("disk.loop0.write_await_ms", &level(0.42, 31.0)),
            ("disk.loop0.flush_await_ms", &level(1.9, 44.0)),
            ("disk.loop0.utilization_ratio", &level(0.31, 0.94)),
            ("network.lo.received_bytes_per_s", &level(3.4e5, 4.1e4)),
            ("network.lo.sent_bytes_per_s", &level(3.4e5, 4.1e4)),
            ("network.eth0.received_bytes_per_s", &|_| 900.0),
            ("network.eth0.sent_bytes_per_s", &|_| 700.0),
        ],
    );
    // A missed reading.
    for values in table.columns.values_mut() {
        values[50] = f64::NAN;
    }
    table
}

fn server(name: &str) -> MetricTable {
    let id = |text: &str| text.replace("{}", name);
    let columns: [(String, &dyn Fn(u64) -> f64); 12] = [
        (id("cache.{}.used_ratio"), &|second| 0.2 + 0.005 * second as f64),
        (id("cache.{}.dirty_ratio"), &level(0.03, 0.06)),
        (id("cache.{}.read_bytes_per_s"), &level(8.0e4, 1.0e4)),
        (id("cache.{}.written_bytes_per_s"), &level(2.6e6, 3.0e5)),
        (id("cache.{}.evicted_by_application_per_s"), &|_| 0.0),
        (id("checkpoint.{}.running_count"), &|second| f64::from(u8::from(second % 20 == 11))),
        (id("checkpoint.{}.busy_ratio"), &|second| match second % 20 {
            12 => 1.6,
            _ => 0.0,
        }),
        (id("log.{}.sync_mean_ms"), &level(1.9, 44.0)),
        (id("log.{}.syncing_ratio"), &level(0.15, 0.42)),
        (id("queue.{}.total_count"), &|_| 0.0),
        (id("connections.{}.current_count"), &|_| 35.0),
        (id("connections.{}.created_per_s"), &|second| f64::from(u8::from(second == 3)) * 8.0),
    ];
    let columns: Vec<(&str, &dyn Fn(u64) -> f64)> =
        columns.iter().map(|(id, value)| (id.as_str(), *value)).collect();
    table(name, &columns)
}

fn sources() -> Vec<SourceRecord> {
    let source = SourceRecord {
        name: "host".into(),
        kind: SourceKind::Host,
        subject: "bench-1".into(),
        machine: None,
        of_server: true,
        interval_s: 1.0,
        readings_per_row: 1,
        health: SourceHealth::Healthy,
        reason: None,
        missing: vec!["temperature: no sensor that can be read".into()],
        readings: 66,
        missed: 0,
        outages: Vec::new(),
        cpu_s: 0.142,
        cpu_ratio: 0.00215,
    };
    let server = SourceRecord {
        name: "server".into(),
        kind: SourceKind::Server,
        subject: "127.0.0.1:27018".into(),
        health: SourceHealth::Degraded,
        reason: Some("no answer for 3.0 s".into()),
        missing: vec![
            "tickets: `wiredTiger.concurrentTransactions` is not in `serverStatus`".into(),
            "flow_control: `flowControl` is not in `serverStatus`".into(),
        ],
        readings: 63,
        missed: 3,
        outages: vec![OutageRecord {
            start_s: 40.0,
            end_s: Some(43.0),
            reason: "the server did not answer within 1 s".into(),
        }],
        cpu_s: 0.066,
        cpu_ratio: 0.001,
        ..source.clone()
    };
    vec![source, server]
}

fn evidence(text: &str, measure: &str, value: f64, series: &[&str], from_s: u64) -> Evidence {
    Evidence {
        statement: Statement::recorded(text),
        measure: measure.into(),
        value,
        series: series.iter().map(|one| (*one).to_owned()).collect(),
        start_s: from_s as f64,
        end_s: if from_s == MEASURED_S { THROTTLED_S } else { END_S } as f64,
    }
}

fn verdict() -> Verdict {
    let text = "Disk IOPS ceiling reached at 37.0 IOPS after 30.0 s: burst credits exhausted or volume throttled.";
    let disk = [
        "host/disk.loop0.read_per_s",
        "host/disk.loop0.write_per_s",
        "host/disk.loop0.flush_per_s",
    ];
    let (fast, slow) = (MEASURED_S, THROTTLED_S);
    let burst = CauseFinding {
        cause: Cause::BurstCredits,
        statement: Statement::recorded(text),
        start_s: slow as f64,
        end_s: END_S as f64,
        spans: Vec::new(),
        confidence: 0.9,
        evidence: vec![
            evidence("the disk did 284/s before", "disk_operations_per_s", 284.0, &disk, fast),
            evidence(
                "and 37.0/s after, with a variation of 3.2 %",
                "disk_operations_per_s",
                37.0,
                &disk,
                slow,
            ),
            evidence(
                "after that, requests waited in front of it 93 % of the time",
                "disk_backed_up_ratio",
                0.93,
                &["host/pressure.io.some_ratio", "host/disk.loop0.utilization_ratio"],
                slow,
            ),
            evidence(
                "the rate went from 150/s to 18.0/s; 150/s were offered throughout",
                "operations_per_s",
                18.0,
                &[],
                slow,
            ),
        ],
        advice: vec![
            Statement::recorded(
                "check the volume's burst credit balance, or use several volumes (`RAID 0`)",
            ),
            Statement::recorded("measure for longer than the credits last"),
        ],
    };
    let cache = CauseFinding {
        cause: Cause::CacheTooSmall,
        statement: Statement::recorded(
            "The server's cache does not hold the requested data: the data size is 118 % of the cache.",
        ),
        start_s: fast as f64,
        end_s: slow as f64,
        spans: Vec::new(),
        confidence: 0.6,
        evidence: vec![
            evidence(
                "the data size is 118 % of the cache",
                "data_over_cache_ratio",
                1.18,
                &[],
                fast,
            ),
            evidence(
                "533 B were read into the cache for each operation",
                "read_bytes_per_operation",
                533.0,
                &["server/cache.server.read_bytes_per_s"],
                fast,
            ),
        ],
        advice: vec![Statement::new("advice.raise-cache")],
    };
    Verdict {
        headline: Statement::recorded(text),
        causes: vec![burst, cache],
        not_watched: vec![Cause::CpuThrottled, Cause::Network, Cause::Tickets],
    }
}

fn timeline() -> Timeline {
    let change = |series, at_s: f64, before, after, p_value_ratio| TimelineChange {
        series,
        at_s,
        earliest_s: at_s - 1.0,
        latest_s: at_s + 1.0,
        before,
        after,
        p_value_ratio,
    };
    let drift = |series, over_series_ratio| TimelineDrift {
        series,
        drift: Drift { per_hour_ratio: 1e9, over_series_ratio, p_value_ratio: 0.0093 },
    };
    Timeline {
        changes: vec![
            change(TimelineSeries::DiskOperationsPerS, 36.2, 284.0, 37.0, 1e-37),
            change(TimelineSeries::RatePerS, 37.0, 150.0, 17.49, 7e-61),
            change(TimelineSeries::ResponseMeanUs, 52.0, 61_000.0, 74_300.0, 0.0042),
        ],
        drifts: vec![
            // A series with a change would report the same again.
            drift(TimelineSeries::RatePerS, -0.3),
            drift(TimelineSeries::ResponseP99Us, 0.124),
        ],
        patterns: vec![TimelinePattern {
            series: TimelineSeries::ResponseMeanUs,
            pattern: Pattern {
                period_s: 20.0,
                uncertainty_s: 0.2,
                phase_s: 6.0,
                height: 4_000.0,
                height_ratio: Some(2.0),
                affected_ratio: 0.1,
                occurrences: 3,
                p_value_ratio: 1e-9,
            },
            name: Some(NamedPattern {
                source: PatternSource::Checkpoint,
                correlation: 0.91,
                inside: 0.85,
                outside: 0.03,
            }),
        }],
    }
}
