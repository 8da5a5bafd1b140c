//! Each rule on a bench with its fault, and on the same bench without one of the required figures.

use super::super::measures::Seen;
use super::super::rules::RULES;
use super::*;
use dyno_record::statement::Value;

/// Input of the verdict.
#[derive(Clone)]
struct Watched {
    document: RunDocument,
    tables: Vec<MetricTable>,
    windows: Vec<IntervalPoint>,
    operations: Vec<SeriesPoint>,
}

impl Watched {
    fn bench(&self) -> Bench<'_> {
        Bench {
            document: &self.document,
            tables: &self.tables,
            windows: &self.windows,
            operations: &self.operations,
        }
    }

    /// The bench without the series of a figure; `None` if it does not come from series.
    fn without(&self, measure: Measure) -> Option<Watched> {
        let mut rest = self.clone();
        loop {
            let bench = rest.bench();
            let read = Seen::new(&bench, bench.measured()?).read(measure);
            // If one series is missing, another may provide the figure.
            let Some(read) = read else {
                return Some(rest);
            };
            if read.series.is_empty() {
                return None;
            }
            for table in &mut rest.tables {
                let source = table.source.clone();
                let is_there = |id: &MetricId| !read.series.contains(&format!("{source}/{id}"));
                table.columns.retain(|id, _| is_there(id));
            }
        }
    }
}

impl From<Scene> for Watched {
    fn from(scene: Scene) -> Watched {
        Watched {
            document: scene.document(),
            tables: scene.tables(),
            windows: scene.windows(),
            operations: scene.operations(),
        }
    }
}

/// A bench with the fault of each rule, by its code.
fn faults() -> Vec<(&'static str, Watched)> {
    let cpu = "process.server.cpu_ratio";
    let all = "cpu.all.busy_ratio";
    let queue = well().with("queue.server.total_count", 40.0);
    let mut late = well().closed().with("process.client.workers_cpu_ratio", 0.6);
    late.start_delay_us = 400.0;
    let mut small =
        well().with("cache.server.hit_ratio", 0.8).with("cache.server.read_bytes_per_s", 40e6);
    small.cache_bytes = 64 << 20;
    let mut far = well().closed();
    far.round_trip_us = Some(220.0);
    let large = held_back()
        .with("disk.sda.write_per_s", 200.0)
        .with("disk.sda.write_bytes_per_s", 52_428_800.0);
    let mut faults: Vec<(&'static str, Watched)> = [
        ("cpu-throttled", well().with("cgroup.server.cpu_throttled_periods_ratio", 0.8)),
        ("cpu-stolen", well().with("cpu.all.steal_ratio", 0.12)),
        ("client", late.with("process.client.workers_wait_ratio", 0.38)),
        (
            "noisy-neighbour",
            well()
                .with("cpu.1.busy_ratio", 1.0)
                .with(all, 0.85)
                .with("process.server.cpu_wait_ratio", 0.8),
        ),
        ("swapping", well().with("paging.swap_in_bytes_per_s", 8e6)),
        ("memory-pressure", well().with("pressure.memory.some_ratio", 0.3)),
        ("network", well().with("network.eth0.sent_bytes_per_s", 120e6)),
        ("connection-storm", well().with("connections.server.created_per_s", 100.0)),
        ("disk-operations", held_back()),
        ("disk-bandwidth", large),
        ("slow-sync", durable()),
        ("cache-too-small", small),
        ("tickets", queue.clone().with("tickets.server.write_in_use_count", 127.0)),
        ("locks", queue),
        ("server-cpu", well().with(cpu, 1.9)),
        (
            "shared-cpu",
            well().closed().with(all, 0.98).with(cpu, 1.2).with("process.client.cpu_ratio", 0.7),
        ),
        (
            "interrupts-on-one-cpu",
            well()
                .with("cpu.1.busy_ratio", 0.99)
                .with("cpu.1.softirq_ratio", 0.8)
                .with(all, 0.6)
                .with("cpu.all.softirq_ratio", 0.4),
        ),
        ("busy-thread", well().with("process.server.busiest_thread_ratio", 0.98)),
        ("round-trip", far),
        ("too-few-clients", well().closed()),
    ]
    .map(|(code, scene)| (code, Watched::from(scene)))
    .into();
    faults.push(("checkpoint", checkpoint()));
    faults
}

/// Operations take three times as long while a checkpoint runs.
fn checkpoint() -> Watched {
    let running = well().changing("checkpoint.server.running_count", 0.0, 1.0);
    let mut watched = Watched::from(running);
    let operations = watched.operations.iter_mut();
    for point in operations.filter(|point| point.start_s >= 20.0) {
        point.response.mean_us *= 3.0;
    }
    watched
}

fn reported<'a>(verdict: &'a Verdict, code: &str) -> Option<&'a CauseFinding> {
    let code = format!("cause.{code}");
    verdict.causes.iter().find(|one| one.statement.code == code)
}

#[test]
fn every_rule_needs_all_figures_and_names_unwatched_ones() {
    let faults = faults();
    let healthy = well().judge();
    let mut problems = Vec::new();
    for rule in RULES {
        let code = rule.code;
        let fault = faults.iter().find(|(of, _)| *of == code);
        let (_, watched) = fault.unwrap_or_else(|| panic!("no bench has the fault of `{code}`"));
        let verdict = judge(&watched.bench(), &[]);
        let cause = reported(&verdict, code).unwrap_or_else(|| panic!("`{code}`: {verdict:#?}"));
        assert!(!cause.advice.is_empty(), "{cause:#?}");
        let because = Value::Statement(cause.evidence[0].statement.clone());
        assert_eq!(cause.statement.values["because"], because);
        assert!(cause.confidence > 0.0 && cause.confidence <= 1.0);
        assert!(reported(&healthy, code).is_none());
        // Another rule may decide the same cause.
        let is_alone = RULES.iter().all(|other| other.cause != rule.cause || other.code == code);
        for need in rule.needs.iter().filter(|need| !need.may_lack) {
            let Some(rest) = watched.without(need.measure) else {
                continue;
            };
            let rest = judge(&rest.bench(), &[]);
            let is_said = rest.not_watched.contains(&rule.cause) || !is_alone;
            if reported(&rest, code).is_some() || !is_said {
                problems.push(format!("`{code}` without {}: {rest:?}", need.measure.name()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
