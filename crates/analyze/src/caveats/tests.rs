//! Both sides of every threshold.

use super::*;
use dyno_record::error_example::ErrorExample;
use dyno_record::model::{
    Arrivals, CaveatKind, ClientUsage, Effect, Environment, Event, EventRecord, InstanceRecord,
    LatencySummary, Operation, OperationRecord, PhaseKind, PhaseRecord, ResourceKind, ResourceUse,
    RunStatus, SCHEMA_VERSION, ServerRecord,
};
use dyno_record::verdict::{Change, CheckName, Level, Verdict};
use serde_json::json;

/// A run without any caveat: a remote server with more data than cache, and a fixed CPU.
fn sound() -> (RunDocument, Vec<IntervalTotals>) {
    let latency = |value: f64| LatencySummary {
        mean: value,
        p50: value,
        p99: value,
        ..LatencySummary::default()
    };
    let operation = OperationRecord {
        count: 300_000,
        errors: 0,
        rate_per_s: 10_000.0,
        documents: 300_000,
        clamped: 0,
        response_time_us: latency(500.0),
        service_time_us: latency(500.0),
        start_delay_us: latency(5.0),
    };
    let measure = PhaseRecord {
        name: PhaseKind::Measure,
        start_s: 0.0,
        duration_s: 30.0,
        offered_rate_per_s: None,
        achieved_rate_per_s: 10_000.0,
        succeeded: 300_000,
        failed: 0,
        operations: [("read".to_owned(), operation)].into(),
        errors: Default::default(),
        error_examples: Default::default(),
        arrivals: None,
        mean_think_time_us: None,
        client: ClientUsage {
            cpu_user_s: 3.0,
            cpu_system_s: 12.0,
            cpu_us_per_operation: 50.0,
            max_rss_bytes: 1 << 24,
        },
        mean_in_flight: 5.0,
        little_ratio: Some(1.0),
        keys: None,
        reconnects: 0,
        retries: 0,
        own: Default::default(),
    };
    let document = RunDocument {
        schema_version: SCHEMA_VERSION,
        dyno_version: "0.1.0".to_owned(),
        name: "sound".to_owned(),
        started_at: "2026-08-22T10:15:00Z".to_owned(),
        status: RunStatus::Complete,
        status_reason: None,
        plan: json!({
            "client": {"threads": 1},
            "data": {"records": 1000},
            "operations": {"read": 1.0},
            "schedule": {"kind": "closed"},
        }),
        operations: vec![
            Operation::new("read", Effect::Read),
            Operation::new("update", Effect::Update),
            Operation::new("insert", Effect::Insert),
            Operation::new("delete", Effect::Delete),
        ]
        .into(),
        environment: Environment {
            cpus: Some(4),
            cpu_governor: Some("performance".to_owned()),
            clock_source: Some("tsc".to_owned()),
            clock_read_ns: Some(22.0),
            ..Environment::default()
        },
        server: ServerRecord {
            kind: "uri".to_owned(),
            topology: Some("standalone".to_owned()),
            version: Some("7.0.14".to_owned()),
            cache_bytes: Some(1 << 30),
            data_bytes: Some((1 << 30) + 1),
            documents: Some(1000),
            write_concern: "w: 1".to_owned(),
            ..ServerRecord::default()
        },
        phases: vec![measure],
        instances: Vec::new(),
        fleet: None,
        placement: None,
        host_settings: Vec::new(),
        traces: Vec::new(),
        consumption: Vec::new(),
        resources: Vec::new(),
        sources: Vec::new(),
        collections: Vec::new(),
        secondary_indexes: None,
        checks: Vec::new(),
        dropped: Vec::new(),
        events: Vec::new(),
        caveats: Vec::new(),
        selfcheck: None,
    };
    let window = |i: u32| IntervalTotals {
        phase: PhaseKind::Measure,
        start_s: f64::from(i),
        duration_s: 1.0,
        succeeded: 10_000,
        failed: 0,
        gap_s: None,
        response_mean_us: Some(800.0),
        service_mean_us: Some(800.0),
        mean_in_flight: 4.0,
    };
    (document, (0..30).map(window).collect())
}

fn kinds(document: &RunDocument, intervals: &[IntervalTotals]) -> Vec<CaveatKind> {
    caveats(document, intervals).iter().map(|caveat| caveat.kind).collect()
}

/// Caveat kinds of the sound run after a change.
fn after(change: impl FnOnce(&mut RunDocument)) -> Vec<CaveatKind> {
    let (mut document, intervals) = sound();
    change(&mut document);
    kinds(&document, &intervals)
}

/// Caveat messages of the sound run after a change.
fn messages(change: impl FnOnce(&mut RunDocument)) -> Vec<String> {
    let (mut document, intervals) = sound();
    change(&mut document);
    caveats(&document, &intervals).into_iter().map(|caveat| caveat.statement.to_string()).collect()
}

fn measure(document: &mut RunDocument) -> &mut PhaseRecord {
    &mut document.phases[0]
}

fn read(document: &mut RunDocument) -> &mut OperationRecord {
    measure(document).operations.get_mut("read").unwrap()
}

#[test]
fn uneven_server_shares_of_fixed_operations_are_a_caveat() {
    let shares = |limit: Option<u64>, counts: [u64; 2]| {
        after(|document| {
            document.plan["phases"] = json!({"operations": limit});
            for (number, count) in counts.into_iter().enumerate() {
                let mut phase = document.phases[0].clone();
                (phase.succeeded, phase.failed) = (count, 0);
                document.instances.push(InstanceRecord {
                    number: number as u64,
                    directory: format!("instances/{number}"),
                    server: ServerRecord::default(),
                    phases: vec![phase],
                });
            }
        })
        .contains(&CaveatKind::UnevenShares)
    };
    assert!(shares(Some(20_000), [37_426, 2_574]));
    assert!(shares(Some(20_000), [21_100, 18_900]));
    assert!(!shares(Some(20_000), [20_900, 19_100]));
    // Ended by time: their work is what they could do.
    assert!(!shares(Some(20_000), [37_000, 2_000]));
    assert!(!shares(None, [37_426, 2_574]));
}

/// An open loop that offers `rate_per_s`.
fn open_loop(document: &mut RunDocument, rate_per_s: f64, kind: &str) {
    document.plan["schedule"] = json!({"kind": kind, "rate_per_s": rate_per_s});
    let phase = measure(document);
    phase.offered_rate_per_s = Some(rate_per_s);
    phase.arrivals = Some(Arrivals { due: 300_000, started: 300_000, dropped: 0, late: 0 });
}

const NONE: [CaveatKind; 0] = [];

#[test]
fn a_sound_run_has_no_caveats() {
    let (document, intervals) = sound();
    assert_eq!(caveats(&document, &intervals), []);
}

#[test]
fn run_without_phases_has_only_the_partial_caveat() {
    let (mut document, _) = sound();
    document.phases.clear();
    assert_eq!(kinds(&document, &[]), NONE);
    document.status = RunStatus::Failed;
    assert_eq!(kinds(&document, &[]), [CaveatKind::Partial]);
}

#[test]
fn a_busy_client_is_the_bottleneck_of_a_closed_loop() {
    // 30 s on one worker: 27 s of CPU time are 90 %.
    assert_eq!(after(|d| measure(d).client.cpu_user_s = 14.99), NONE);
    assert_eq!(after(|d| measure(d).client.cpu_user_s = 15.0), [CaveatKind::GeneratorBottleneck]);
    // Two workers can fill two CPUs, but not on a machine with one.
    let two = |cpus: u64| {
        after(|d| {
            measure(d).client.cpu_user_s = 15.0;
            d.plan["client"]["threads"] = json!(2);
            d.environment.cpus = Some(cpus);
        })
    };
    assert_eq!(two(4), NONE);
    assert_eq!(two(1), [CaveatKind::GeneratorBottleneck]);
}

#[test]
fn client_spinning_in_think_times_is_busy_only_when_late() {
    let with = |start_delay_us: f64| {
        after(|d| {
            measure(d).client.cpu_user_s = 15.0;
            measure(d).mean_think_time_us = Some(5_000.0);
            read(d).start_delay_us.p99 = start_delay_us;
        })
    };
    assert_eq!(with(20.0), NONE);
    assert_eq!(with(600.0), [CaveatKind::GeneratorBottleneck]);
}

#[test]
fn one_full_host_of_a_fleet_is_the_bottleneck_and_is_named() {
    use dyno_record::model::{FleetAgentRecord, FleetRecord};
    let agent = |host: &str, threads: u64, used_s: f64| {
        let mut phase = sound().0.phases[0].clone();
        (phase.client.cpu_user_s, phase.client.cpu_system_s) = (used_s, 0.0);
        FleetAgentRecord {
            host: host.into(),
            cpus: 4,
            threads,
            phases: vec![phase],
            ..FleetAgentRecord::default()
        }
    };
    let message = |agents: Vec<FleetAgentRecord>| {
        let (mut document, intervals) = sound();
        document.fleet = Some(FleetRecord { agents, ..FleetRecord::default() });
        let found = caveats(&document, &intervals);
        found
            .into_iter()
            .find(|caveat| caveat.kind == CaveatKind::GeneratorBottleneck)
            .map(|caveat| caveat.statement.to_string())
    };
    // 30 s: one host of three is full, although all together are not.
    let three =
        |used_s| message(vec![agent("a", 4, 10.0), agent("b", 4, used_s), agent("c", 4, 10.0)]);
    assert_eq!(three(107.0), None);
    let found = three(109.0).unwrap_or_default();
    assert!(found.contains("agent-cpus-busy (cpus: 4, host: b, used: 3.63)"), "{found}");
    // The CPUs of a host count once, and a thread fills one.
    let four = vec![agent("a", 4, 28.0); 4];
    assert!(message(four).is_some());
    assert!(message(vec![agent("a", 1, 28.0)]).is_some());
    assert_eq!(message(vec![agent("a", 2, 28.0)]), None);
}

#[test]
fn busy_client_that_keeps_its_schedule_is_spinning() {
    let busy = |late: u64| {
        after(|d| {
            open_loop(d, 10_000.0, "constant");
            measure(d).client.cpu_user_s = 17.0;
            measure(d).arrivals.as_mut().unwrap().late = late;
        })
    };
    assert_eq!(busy(3_000), NONE);
    assert_eq!(busy(3_001), [CaveatKind::GeneratorBottleneck, CaveatKind::LateStarts]);
}

/// Busy time of a resource in a measure phase of 30 s.
fn used(resource: ResourceKind, units: u64, busy_s: f64) -> ResourceUse {
    ResourceUse {
        phase: PhaseKind::Measure,
        resource,
        units,
        allowed: None,
        busy_s,
        duration_s: 30.0,
        reported: None,
        disks: Vec::new(),
    }
}

#[test]
fn client_short_of_cpu_is_the_bottleneck_beside_idle_cpus() {
    let with = |wait_s: f64, host_s: f64| {
        after(|d| {
            measure(d).client.cpu_user_s = 5.0;
            d.resources = vec![
                used(ResourceKind::ClientCpuWait, 1, wait_s),
                used(ResourceKind::HostCpu, 2, host_s),
            ];
        })
    };
    // Together with the client's own use (17 s, see the sound run): 90 % of 30 s on one worker.
    let own_s = 5.0 + 12.0;
    assert_eq!(with(27.0 - own_s - 0.1, 40.0), NONE);
    assert_eq!(with(27.1 - own_s, 40.0), [CaveatKind::GeneratorBottleneck]);
    assert_eq!(with(27.1 - own_s, 57.1), NONE);
}

#[test]
fn rate_near_the_selfcheck_rate_is_limited_by_the_client() {
    let with =
        |per_core: f64| after(|d| d.selfcheck = Some(json!({"max_rate_per_core_per_s": per_core})));
    assert_eq!(with(11_111.0), [CaveatKind::GeneratorBottleneck]);
    assert_eq!(with(11_112.0), NONE);
    assert_eq!(after(|d| d.selfcheck = Some(json!({}))), NONE);
    let beside = |level: &str| {
        let check = json!({"max_rate_per_core_per_s": 11_111.0, "other_load": {"level": level}});
        after(|d| d.selfcheck = Some(check))
    };
    assert_eq!(beside("warn"), [CaveatKind::GeneratorBottleneck]);
    assert_eq!(beside("fail"), NONE, "others took the CPU time that was measured");
}

#[test]
fn slow_closed_loop_turnaround_blames_the_client() {
    let with = |delay_us: f64, service_us: f64| {
        after(|d| {
            read(d).start_delay_us.p99 = delay_us;
            read(d).service_time_us.p50 = service_us;
        })
    };
    assert_eq!(with(100.0, 1_000.0), [CaveatKind::GeneratorBottleneck]);
    assert_eq!(with(99.9, 500.0), NONE);
    assert_eq!(with(100.0, 1_001.0), NONE);
    let open = after(|d| {
        open_loop(d, 10_000.0, "constant");
        read(d).start_delay_us.p99 = 5_000.0;
    });
    assert_eq!(open, NONE);
}

#[test]
fn one_dropped_arrival_is_reported() {
    let found = messages(|d| {
        open_loop(d, 10_000.0, "constant");
        measure(d).arrivals.as_mut().unwrap().dropped = 1;
    });
    assert_eq!(found, ["arrivals-never-sent (dropped: 1, due: 300,000, share: less than 0.1 %)"]);
}

#[test]
fn the_rate_may_fall_short_by_one_percent() {
    let with = |achieved: f64, kind: &str| {
        after(|d| {
            open_loop(d, 10_000.0, kind);
            measure(d).achieved_rate_per_s = achieved;
        })
    };
    assert_eq!(with(9_900.1, "constant"), NONE);
    assert_eq!(with(9_899.9, "constant"), [CaveatKind::RateNotAchieved]);
    assert_eq!(with(9_899.9, "poisson"), [CaveatKind::RateNotAchieved]);
}

#[test]
fn late_last_answers_are_not_a_shortfall_but_a_queue_is() {
    // 30 s of arrivals at 10,000/s, all answered, but only after 33 s.
    let with = |longest_service_us: f64| {
        after(|d| {
            open_loop(d, 10_000.0, "constant");
            measure(d).duration_s = 33.0;
            measure(d).achieved_rate_per_s = 300_000.0 / 33.0;
            read(d).service_time_us.max = longest_service_us;
        })
    };
    assert_eq!(with(3_000_000.0), NONE);
    assert_eq!(with(5_000.0), [CaveatKind::RateNotAchieved]);
}

#[test]
fn a_short_poisson_run_may_fall_short_by_chance() {
    // 900 arrivals: three standard deviations are 10 %.
    let with = |achieved: f64, kind: &str| {
        after(|d| {
            open_loop(d, 30.0, kind);
            measure(d).achieved_rate_per_s = achieved;
        })
    };
    assert_eq!(with(27.1, "poisson"), NONE);
    assert_eq!(with(26.9, "poisson"), [CaveatKind::RateNotAchieved]);
    assert_eq!(with(27.1, "constant"), [CaveatKind::RateNotAchieved]);
}

#[test]
fn short_throttled_run_may_miss_a_few_slots_by_chance() {
    // 300 slots of 16 clients: three standard deviations are six of them, 2 %.
    let with = |achieved: f64| {
        after(|d| {
            open_loop(d, 10.0, "throttled");
            d.plan["client"]["clients"] = json!(16);
            measure(d).arrivals = None;
            measure(d).achieved_rate_per_s = achieved;
        })
    };
    assert_eq!(with(9.81), NONE);
    assert_eq!(with(9.79), [CaveatKind::RateNotAchieved]);
}

#[test]
fn a_drifting_rate_is_not_steady() {
    let with = |change: f64| {
        let (document, mut intervals) = sound();
        for (i, window) in intervals.iter_mut().enumerate() {
            window.succeeded = (10_000.0 * (1.0 + change * i as f64 / 29.0)) as u64;
        }
        kinds(&document, &intervals)
    };
    assert_eq!(with(0.04), NONE);
    assert_eq!(with(0.10), [CaveatKind::NotSteady]);
    assert_eq!(with(-0.10), [CaveatKind::NotSteady]);
}

#[test]
fn response_times_that_drift_at_an_offered_rate_are_not_steady() {
    let with = |is_open: bool| {
        let (mut document, mut intervals) = sound();
        if is_open {
            document.phases[0].offered_rate_per_s = Some(10_000.0);
        }
        for (i, window) in intervals.iter_mut().enumerate() {
            window.response_mean_us = Some(800.0 * (1.0 + i as f64 / 29.0));
        }
        kinds(&document, &intervals)
    };
    assert!(!with(false).contains(&CaveatKind::NotSteady));
    assert!(with(true).contains(&CaveatKind::NotSteady));
}

#[test]
fn warm_up_in_the_measurement_is_reported_with_its_length() {
    let (document, mut intervals) = sound();
    for (i, window) in intervals.iter_mut().enumerate().take(5) {
        window.succeeded = 6_000 + 500 * i as u64;
    }
    let found = caveats(&document, &intervals);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, CaveatKind::WarmUpMeasured);
    assert_eq!(
        found[0].statement.to_string(),
        "warm-up-measured (change: 5.3 %, subject: rate, warm_up: 5 s)"
    );
}

#[test]
fn a_collapse_is_named_with_its_place() {
    let (document, mut intervals) = sound();
    for window in intervals.iter_mut().skip(24) {
        window.succeeded = 5_000;
    }
    let found = caveats(&document, &intervals);
    assert_eq!(found[0].kind, CaveatKind::NotSteady);
    assert!(found[0].statement.to_string().contains("after: 24 s"), "{found:?}");
    assert_eq!(found[0].statement.number("change"), Some(-0.5));
}

#[test]
fn drift_is_never_below_minus_100_percent() {
    let (document, mut intervals) = sound();
    for (i, window) in intervals.iter_mut().enumerate() {
        window.succeeded = 10_000 - 340 * i as u64;
    }
    let found = caveats(&document, &intervals);
    let change = found[0].statement.number("change").unwrap();
    assert!((-1.0..-0.8).contains(&change), "{change}");
}

#[test]
fn windows_of_other_phases_and_cut_ones_do_not_count() {
    let (document, intervals) = sound();
    let with = |count: usize, extra: IntervalTotals| {
        let mut windows = intervals[..count].to_vec();
        windows.push(extra);
        kinds(&document, &windows)
    };
    let cut = IntervalTotals { duration_s: 0.2, succeeded: 100, ..intervals[0] };
    let load = IntervalTotals { phase: PhaseKind::Load, succeeded: 5, ..intervals[0] };
    assert_eq!(with(10, cut), NONE);
    assert_eq!(with(9, cut), [CaveatKind::TooFewIntervals]);
    assert_eq!(with(9, load), [CaveatKind::TooFewIntervals]);
    // A stall with completed operations counts, and does not shorten the others.
    let long = IntervalTotals {
        duration_s: 2.0 * intervals[0].duration_s,
        succeeded: 2 * intervals[0].succeeded,
        ..intervals[0]
    };
    assert_eq!(with(9, long), NONE);
}

#[test]
fn a_percentile_needs_ten_values_beyond_it() {
    assert_eq!(after(|d| read(d).count = 100_000), NONE);
    let message = |count: u64| messages(|d| read(d).count = count).join("");
    assert!(message(99_999).contains("operation: read, percentile: p99.9)"));
    assert!(message(9_999).contains("operation: read, percentile: p99)"));
    assert!(message(999).contains("operation: read, percentile: p95)"));
    assert!(message(99).contains("sound-up-to (operation: read)"));
}

#[test]
fn ratios_beyond_two_percent_break_littles_law() {
    assert_eq!(after(|d| measure(d).little_ratio = Some(1.0199)), NONE);
    assert_eq!(after(|d| measure(d).little_ratio = Some(0.9801)), NONE);
    assert_eq!(after(|d| measure(d).little_ratio = Some(1.0201)), [CaveatKind::LittleLaw]);
    assert_eq!(after(|d| measure(d).little_ratio = Some(0.9799)), [CaveatKind::LittleLaw]);
    assert_eq!(after(|d| measure(d).little_ratio = None), NONE);
}

#[test]
fn failures_are_reported_with_their_kinds_and_share() {
    let (mut document, mut intervals) = sound();
    measure(&mut document).errors =
        [("timeout".to_owned(), 4), ("server_11000".to_owned(), 2)].into();
    intervals[3].failed = 6;
    let found = caveats(&document, &intervals);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].phase), (CaveatKind::Errors, Some(PhaseKind::Measure)));
    assert_eq!(
        found[0].statement.to_string(),
        "operations-failed (all: 300,006, failed: 6, kinds: [errors-of-kind (count: 2, kind: server_11000), \
         errors-of-kind (count: 4, kind: timeout)], share: less than 0.1 %)"
    );
}

#[test]
fn failures_have_the_servers_error_name() {
    let (mut document, mut intervals) = sound();
    let phase = measure(&mut document);
    phase.errors = [("server_13".to_owned(), 6)].into();
    let example = ErrorExample::new(Some(13), "Unauthorized", "not authorized");
    phase.error_examples = [("server_13".to_owned(), example)].into();
    intervals[3].failed = 6;
    let found = caveats(&document, &intervals)[0].statement.to_string();
    assert!(found.contains("name: Unauthorized"), "{found}");
}

#[test]
fn wrong_values_are_reported_apart_from_other_failures() {
    let found = after(|d| measure(d).errors = [("integrity".to_owned(), 1)].into());
    assert_eq!(found, [CaveatKind::Integrity, CaveatKind::Errors]);
}

#[test]
fn single_unexpected_events_are_reported() {
    assert_eq!(after(|d| read(d).clamped = 1), [CaveatKind::ClampedValues]);
    assert_eq!(after(|d| measure(d).reconnects = 1), [CaveatKind::Reconnects]);
    assert_eq!(after(|d| d.status = RunStatus::Partial), [CaveatKind::Partial]);
    let running = messages(|d| {
        d.status = RunStatus::Running;
        d.status_reason = Some("killed".to_owned());
    });
    assert_eq!(running, ["run-has-not-ended (reason: killed)"]);
}

#[test]
fn the_number_of_documents_must_be_the_planned_one() {
    let with = |found: u64, operation: &str| {
        after(|d| {
            d.server.documents = Some(found);
            d.server.write_concern = "j: true".to_owned();
            d.plan["operations"] = json!({ operation: 1.0 });
        })
    };
    assert_eq!(with(999, "read"), [CaveatKind::DocumentCount]);
    assert_eq!(with(1001, "read"), [CaveatKind::DocumentCount]);
    assert_eq!(with(1001, "insert"), NONE);
    assert_eq!(with(999, "insert"), [CaveatKind::DocumentCount]);
    assert_eq!(with(999, "delete"), NONE);
}

#[test]
fn data_up_to_the_size_of_the_cache_fits() {
    assert_eq!(after(|d| d.server.data_bytes = Some(1 << 30)), [CaveatKind::FitsInCache]);
    assert_eq!(after(|d| d.server.data_bytes = None), NONE);
}

#[test]
fn chosen_compressor_needs_data_that_shows_its_effect() {
    let with = |compressor: Option<&str>, compressible_ratio: f64, data_bytes: u64| {
        let found = messages(|d| {
            d.plan["server"] = json!({"block_compressor": compressor});
            d.plan["data"]["compressible_ratio"] = json!(compressible_ratio);
            d.server.data_bytes = Some(data_bytes);
        });
        found.into_iter().find(|said| said.starts_with("compression"))
    };
    let (cached, larger) = (1 << 30, (1 << 30) + 1);
    assert_eq!(with(None, 0.0, cached), None);
    assert_eq!(with(Some("zstd"), 0.5, larger), None);
    for (compressible_ratio, data_bytes, reasons) in [
        (0.0, larger, "is_random: true"),
        (0.5, cached, "is_cached: true"),
        (0.0, cached, "is_cached: true, is_random: true"),
    ] {
        let found = with(Some("zstd"), compressible_ratio, data_bytes).expect("a caveat");
        assert!(found.contains(reasons), "{found}");
    }
}

#[test]
fn early_acknowledgement_is_stated_for_writes() {
    let with = |concern: &str, topology: &str| {
        messages(|d| {
            d.server.write_concern = concern.to_owned();
            d.server.topology = Some(topology.to_owned());
            d.plan["operations"] = json!({"read": 0.5, "update": 0.5});
        })
    };
    let journal = "writes-not-durable";
    assert!(with("{ w: 0 }", "standalone")[0].starts_with("writes-not-acknowledged"));
    assert!(with("w=1", "replica_set")[0].starts_with(journal));
    assert!(with("server default", "standalone")[0].starts_with(journal));
    assert_eq!(with("server default", "replica_set"), NO_MESSAGES);
    assert_eq!(with("{\"w\": \"majority\"}", "sharded"), NO_MESSAGES);
    assert_eq!(with("w: 1, j: true", "standalone"), NO_MESSAGES);
    let synced = after(|d| {
        d.plan["operations"] = json!({"insert": 1.0});
        d.plan["server"] = json!({"durable_writes": true});
    });
    assert_eq!(synced, NONE);
}

#[test]
fn unjournaled_writes_are_durable_only_at_checkpoints() {
    let with = |concern: &str, settings: &[(&str, &str)]| {
        messages(|d| {
            d.server.write_concern = concern.to_owned();
            d.server.topology = Some("standalone".to_owned());
            d.server.settings = settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            d.plan["operations"] = json!({"update": 1.0});
        })
    };
    let off = ("storage.journal.enabled", "false");
    let usual = with("w=1", &[off]);
    assert!(usual[0].starts_with("writes-without-journal (interval: 60"), "{usual:?}");
    let shorter = with("w=1", &[off, ("parameter.syncdelay", "20.0")]);
    assert!(shorter[0].contains("interval: 20"), "{shorter:?}");
    assert!(with("w=1", &[("journal", "false")])[0].starts_with("writes-without-journal"));
    assert!(with("w=0", &[off])[0].starts_with("writes-not-acknowledged"));
    assert!(with("w=1", &[("journal", "true")])[0].starts_with("writes-not-durable"));
}

#[test]
fn tls_without_verification_is_reported() {
    let with = |options: &str| {
        messages(|d| d.plan["server"] = json!({"uri": format!("mongodb://***@h/db{options}")}))
    };
    for sound in
        ["", "?tls=true", "?tls=true&tlsAllowInvalidHostnames=false", "?appName=tlsInsecure"]
    {
        assert_eq!(with(sound), NO_MESSAGES, "{sound}");
    }
    let weak = with("?tls=true&tlsinsecure=true&w=1");
    let expected = "tls-not-verified (number: 1, options: [`tlsInsecure`])";
    assert_eq!(weak, [expected]);
    let both = "?tlsAllowInvalidHostnames=true&tlsAllowInvalidCertificates=true";
    assert!(with(both)[0].contains("number: 2"));
    assert_eq!(messages(|d| d.plan["server"] = json!({})), NO_MESSAGES);
}

const NO_MESSAGES: [String; 0] = [];

#[test]
fn slow_clock_is_reported() {
    assert_eq!(after(|d| d.environment.clock_read_ns = Some(100.0)), NONE);
    assert_eq!(after(|d| d.environment.clock_read_ns = Some(100.1)), [CaveatKind::ClockCoarse]);
}

fn verdict(check: CheckName, level: Level) -> Verdict {
    Verdict {
        check,
        level,
        found: "60".to_owned(),
        advised: "0 or 1".to_owned(),
        why: "it is slow".to_owned(),
        change: Some(Change { command: "sysctl".to_owned(), actions: Vec::new() }),
    }
}

#[test]
fn failed_checks_are_reported_once_and_others_are_not() {
    let failing = |check| after(|d| d.environment.doctor = vec![verdict(check, Level::Fail)]);
    assert_eq!(failing(CheckName::Swappiness), [CaveatKind::MachineSetting]);
    assert_eq!(failing(CheckName::CpuGovernor), [CaveatKind::CpuFrequency]);
    assert_eq!(failing(CheckName::OtherLoad), [CaveatKind::OtherLoad]);
    assert_eq!(failing(CheckName::SharedCores), NONE);
    let warned = verdict(CheckName::Swappiness, Level::Warn);
    assert_eq!(after(|d| d.environment.doctor = vec![warned]), NONE);
    let text = messages(|d| {
        d.environment.doctor = vec![verdict(CheckName::Swappiness, Level::Fail)];
    });
    assert_eq!(
        text,
        [
            "check-fails (advised: 0 or 1, change: sysctl, check: swappiness, found: 60, why: it is slow)"
        ]
    );
}

#[test]
fn measured_use_by_others_replaces_the_check_before_the_run() {
    let with = |host_s: f64| {
        let found = messages(|d| {
            measure(d).client.cpu_user_s = 5.0;
            d.environment.doctor = vec![verdict(CheckName::OtherLoad, Level::Fail)];
            d.resources = vec![
                used(ResourceKind::ServerCpu, 4, 20.0),
                used(ResourceKind::HostCpu, 4, host_s),
            ];
        });
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    };
    // With 17 s of the client: 5 % of 120 s are 6 s.
    let used = with(20.0 + 17.0 + 6.1);
    assert!(used.starts_with("cpus-used-by-others (cpus: 4, others: 0.203, "), "{used}");
    assert!(with(20.0 + 17.0 + 5.9).starts_with("check-fails"));
}

#[test]
fn use_by_others_is_measured_in_a_load() {
    let (mut document, _) = sound();
    let mut resources =
        vec![used(ResourceKind::ServerCpu, 4, 20.0), used(ResourceKind::HostCpu, 4, 80.0)];
    resources.iter_mut().for_each(|one| one.phase = PhaseKind::Load);
    document.resources = resources;
    document.environment.doctor = vec![verdict(CheckName::OtherLoad, Level::Fail)];
    document.phases[0].name = PhaseKind::Load;
    let found = caveats(&document, &[]);
    let of_others: Vec<_> = found.iter().filter(|one| one.kind == CaveatKind::OtherLoad).collect();
    let [one] = of_others.as_slice() else { panic!("{found:?}") };
    assert_eq!(one.phase, Some(PhaseKind::Load));
    // 80 s less 20 s of the server and 15 s of the client, of 4 CPUs for 30 s.
    assert_eq!(one.statement.number("share"), Some(0.375));
}

#[test]
fn client_stopped_in_the_measure_phase_is_reported() {
    let stop = |at_s| EventRecord { at_s, event: Event::ClientStopped { length_s: 2.0 } };
    let (mut document, intervals) = sound();
    document.events = vec![stop(12.1), stop(20.0)];
    let found = caveats(&document, &intervals);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(one.kind, CaveatKind::ClientStopped);
    assert_eq!(one.statement.number("total"), Some(4.0));
    let said = one.statement.to_string();
    assert_eq!(said.matches("client-stopped-at").count(), 2, "{said}");
    assert_eq!(said.matches("in_flight: 4").count(), 2, "{said}");
    // After the phase.
    assert_eq!(after(|document| document.events = vec![stop(40.0)]), NONE);
}

#[test]
fn missed_rate_names_the_outage_when_it_held_operations_back() {
    let (mut document, mut intervals) = sound();
    open_loop(&mut document, 12_000.0, "constant");
    let is_marked = |document: &RunDocument, intervals: &[IntervalTotals]| {
        let found = caveats(document, intervals);
        let missed = found.iter().find(|one| one.kind == CaveatKind::RateNotAchieved);
        let missed = missed.expect("a shortfall");
        missed.statement.values.contains_key("outage")
    };
    assert!(!is_marked(&document, &intervals));
    intervals[10..15].iter_mut().for_each(|one| one.succeeded = 0);
    assert!(is_marked(&document, &intervals));
}
