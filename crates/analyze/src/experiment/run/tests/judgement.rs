//! The table, the findings, the opportunities and the verdict agree on which resources are used up.

use super::*;
use crate::timeline::Timeline;
use crate::verdict::{Bench, Cause, judge};
use dyno_record::cpus::{AllowedCpus, CpuQuota};
use dyno_record::metrics::{MetricId, MetricTable};
use dyno_record::model::{Arrivals, SourceHealth, SourceKind, SourceRecord};
use dyno_record::reader::{IntervalPoint, SeriesPoint, WindowLatency};
use dyno_record::statement::Value;

/// CPUs of the machine.
const CPUS: f64 = 4.0;

/// CPU use of a run, in CPUs, and its limits.
#[derive(Clone, Copy, Debug)]
struct Scene {
    server: f64,
    client: f64,
    others: f64,
    disk: f64,
    /// CPUs of the server; the client has the last one.
    server_cpus: &'static str,
    quota: Option<f64>,
    is_closed: bool,
    waits: f64,
}

impl Scene {
    fn machine(self) -> f64 {
        self.server + self.client + self.others
    }

    fn server_share(self) -> f64 {
        let cpus = if self.server_cpus == "0-1" { 2.0 } else { 4.0 };
        self.server / self.quota.unwrap_or(cpus)
    }

    fn is_possible(self) -> bool {
        self.machine() <= CPUS && self.server_share() <= 1.0
    }

    fn run(self) -> (RunDocument, PhaseResponses) {
        let mut run = usual();
        let seconds = WINDOWS as f64;
        let document = &mut run.0;
        document.environment.machine_cpus = Some(4);
        let quota = self.quota.map(|cpus| CpuQuota { group: "/a".to_owned(), cpus });
        let allowed =
            AllowedCpus { cpus: self.server_cpus.to_owned(), quotas: quota.into_iter().collect() };
        let units = if self.server_cpus == "0-1" { 2 } else { 4 };
        document.resources = vec![
            ResourceUse {
                allowed: Some(allowed),
                ..resource(ResourceKind::ServerCpu, units, self.server * seconds)
            },
            ResourceUse {
                allowed: Some(AllowedCpus::new([3], None)),
                ..resource(ResourceKind::ClientCpuWait, 1, 0.0)
            },
            resource(ResourceKind::HostCpu, 4, self.machine() * seconds),
            resource(ResourceKind::Disk, 1, self.disk * seconds),
        ];
        let phase = &mut document.phases[0];
        phase.client.cpu_user_s = self.client * seconds;
        phase.client.cpu_system_s = 0.0;
        if !self.is_closed {
            phase.offered_rate_per_s = Some(phase.achieved_rate_per_s);
            document.plan["schedule"] = json!({"kind": "constant", "rate_per_s": RATE});
        }
        document.sources = vec![SourceRecord {
            name: "host".to_owned(),
            kind: SourceKind::Host,
            subject: "bench".to_owned(),
            machine: None,
            of_server: true,
            interval_s: 1.0,
            readings_per_row: 1,
            health: SourceHealth::Healthy,
            reason: None,
            missing: Vec::new(),
            readings: WINDOWS,
            missed: 0,
            outages: Vec::new(),
            cpu_s: 0.1,
            cpu_ratio: 0.001,
        }];
        run
    }

    fn table(self) -> MetricTable {
        let machine = self.machine() / CPUS;
        let throttled = f64::from(u8::from(self.quota.is_some() && self.server_share() > 0.9));
        let mut values = vec![
            ("cpu.all.busy_ratio".to_owned(), machine),
            ("cpu.all.user_ratio".to_owned(), machine),
            ("cpu.all.system_ratio".to_owned(), 0.0),
            ("cpu.all.steal_ratio".to_owned(), 0.0),
            ("pressure.io.some_ratio".to_owned(), self.disk),
            ("storage.sda.holds_data_count".to_owned(), 1.0),
            ("disk.sda.utilization_ratio".to_owned(), self.disk),
            ("process.server.cpu_wait_ratio".to_owned(), self.waits),
            ("process.client.workers_cpu_ratio".to_owned(), self.client),
            ("process.client.workers_wait_ratio".to_owned(), 0.0),
            ("process.client.workers_count".to_owned(), 1.0),
            ("cgroup.server.cpu_throttled_periods_ratio".to_owned(), throttled),
        ];
        for (process, used) in [("server", self.server), ("client", self.client)] {
            values.push((format!("process.{process}.cpu_ratio"), used));
            values.push((format!("process.{process}.cpu_user_ratio"), used));
            values.push((format!("process.{process}.cpu_system_ratio"), 0.0));
        }
        values.extend((0..4).map(|cpu| (format!("cpu.{cpu}.busy_ratio"), machine)));
        let rows = WINDOWS as usize;
        let column =
            |(name, value): (String, f64)| (MetricId::parse(&name).unwrap(), vec![value; rows]);
        MetricTable {
            source: "host".to_owned(),
            at_s: (1..=rows).map(|second| second as f64).collect(),
            duration_s: vec![1.0; rows],
            columns: values.into_iter().map(column).collect(),
        }
    }

    fn concluded(self) -> RunAnalysis {
        let (document, responses) = self.run();
        let windows: Vec<IntervalPoint> = (0..WINDOWS)
            .map(|second| IntervalPoint {
                phase: PhaseKind::Measure,
                index: second,
                start_s: second as f64,
                duration_s: 1.0,
                succeeded: RATE,
                failed: 0,
                gap_s: None,
                mean_in_flight: 8.0,
                arrivals: Arrivals::default(),
                reconnects: 0,
                cpu_user_s: 0.1,
                cpu_system_s: 0.1,
                max_rss_bytes: 0,
            })
            .collect();
        let of_window = |window: &IntervalPoint| SeriesPoint {
            phase: PhaseKind::Measure,
            index: window.index,
            start_s: window.start_s,
            duration_s: 1.0,
            operation: "read".to_owned(),
            count: RATE,
            errors: 0,
            documents: 0,
            clamped: 0,
            response: WindowLatency { mean_us: 200.0, ..WindowLatency::default() },
            service: WindowLatency { mean_us: 200.0, ..WindowLatency::default() },
        };
        let operations: Vec<SeriesPoint> = windows.iter().map(of_window).collect();
        let tables = [self.table()];
        let bench = Bench {
            document: &document,
            tables: &tables,
            windows: &windows,
            operations: &operations,
        };
        let verdict = judge(&bench, &[]);
        let analysis = analyze(&document, &responses, 1).unwrap();
        analysis.concluded(&document, Timeline::default(), Some(verdict), Vec::new())
    }
}

fn scenes() -> Vec<Scene> {
    let mut all = Vec::new();
    for server in [0.1, 0.28, 1.0, 1.9, 3.2] {
        for client in [0.1, 0.97] {
            for others in [0.0, 0.8, 2.0, 3.7] {
                for (server_cpus, quota) in
                    [("0-3", None), ("0-1", None), ("0-3", Some(0.3)), ("0-1", Some(2.0))]
                {
                    for (disk, is_closed, waits) in
                        [(0.1, true, 0.0), (0.1, true, 0.8), (0.1, false, 0.0), (0.95, true, 0.0)]
                    {
                        all.push(Scene {
                            server,
                            client,
                            others,
                            disk,
                            server_cpus,
                            quota,
                            is_closed,
                            waits,
                        });
                    }
                }
            }
        }
    }
    all.retain(|scene| scene.is_possible());
    all
}

/// Contradictions between the parts of a page.
fn contradictions(scene: Scene) -> Vec<&'static str> {
    let found = scene.concluded();
    let verdict = found.verdict.as_ref().unwrap();
    let cause = verdict.causes.first().map(|one| one.cause);
    // An open loop that keeps its rate polls the clock for the next start.
    let spinning = if scene.is_closed { 0.0 } else { scene.client };
    let cpus = found.figures.resources.iter().filter(|one| one.name != "disk");
    let is_used_up = cpus.fold(scene.disk >= 0.7, |is_used_up, one| {
        let spinning = match one.name.as_str() {
            "client CPU" => spinning,
            "all CPUs of the machine" => spinning / CPUS,
            _ => 0.0,
        };
        is_used_up || one.busy_ratio - spinning >= 0.7
    });
    let exhausts = |cause: Cause| !matches!(cause, Cause::TooFewClients | Cause::RoundTrip);
    let is_exhausted = cause.is_some_and(exhausts);
    let codes: Vec<&str> = found.findings.iter().map(|one| one.statement.code.as_str()).collect();
    let bottleneck = found.findings.iter().find(|one| one.statement.code == "bottleneck");
    let values = &bottleneck.unwrap().statement.values;
    let is_near = values.get("is_near") == Some(&Value::Flag(true));
    let is_beside = values.contains_key("is_beside_verdict");
    let says_nothing_near = !is_near && !is_beside && !values.contains_key("used_up");
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what| {
        if holds {
            wrong.push(what);
        }
    };
    check(says_nothing_near && is_used_up, "nothing near, table");
    check(says_nothing_near && is_exhausted, "nothing near, verdict");
    let more = codes.contains(&"more-clients-could-raise");
    check(more && is_used_up, "more clients, table");
    check(more && is_exhausted, "more clients, verdict");
    let nothing = verdict.headline.code == "nothing-exhausted";
    check(nothing && is_used_up, "nothing exhausted, table");
    check(nothing && (is_near && !is_beside || cause.is_some()), "nothing exhausted, findings");
    check(cause == Some(Cause::TooFewClients) && is_used_up, "too few clients, table");
    check(
        scene.quota == Some(0.3) && scene.server > 0.25 && !is_near,
        "an exhausted quota is near",
    );
    wrong
}

#[test]
fn no_part_of_a_page_contradicts_another_on_saturation() {
    let scenes = scenes();
    assert!(scenes.len() > 150, "{}", scenes.len());
    let mut wrong = Vec::new();
    for scene in scenes {
        for what in contradictions(scene) {
            wrong.push(format!("{what}: {scene:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of them\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn cpus_exhausted_by_others_are_used_up() {
    let scene = Scene {
        server: 0.1,
        client: 0.1,
        others: 3.7,
        disk: 0.1,
        server_cpus: "0-3",
        quota: None,
        is_closed: true,
        waits: 0.0,
    };
    let found = scene.concluded();
    let verdict = found.verdict.unwrap();
    assert_eq!(verdict.headline.code, "used-up-without-cause");
    let codes = found.findings.iter().map(|one| one.statement.code.as_str());
    let codes: Vec<&str> = codes.collect();
    assert!(codes.contains(&"bottleneck") && !codes.contains(&"more-clients-could-raise"));
}

#[test]
fn a_quota_bounds_the_rate_and_the_use() {
    let scene = Scene {
        server: 0.28,
        client: 0.1,
        others: 0.0,
        disk: 0.1,
        server_cpus: "0-3",
        quota: Some(0.3),
        is_closed: true,
        waits: 0.0,
    };
    let found = scene.concluded();
    let bottleneck = found.bottleneck.unwrap();
    assert_eq!(bottleneck.demand.name, "server CPU");
    assert_eq!((bottleneck.demand.servers, bottleneck.demand.quota), (4, Some(0.3)));
    assert!((bottleneck.reached_ratio - 0.28 / 0.3).abs() < 0.01, "{bottleneck:?}");
    assert_eq!(found.verdict.unwrap().causes[0].cause, Cause::CpuThrottled);
}
