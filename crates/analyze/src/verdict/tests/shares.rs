//! Shares are between 0 and 1, and a cause has the times in which it held.

use super::super::measures::{Measure, Seen};
use super::super::rules::RULES;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn watched(tables: &mut [MetricTable], name: &str, from: usize, values: f64) {
    let id = MetricId::parse(name).unwrap();
    let table = tables.iter_mut().find(|table| table.columns.contains_key(&id)).unwrap();
    table.columns.get_mut(&id).unwrap()[from..].fill(values);
}

fn judged(scene: &Scene, tables: &[MetricTable]) -> Verdict {
    let document = scene.document();
    let (windows, operations) = (scene.windows(), scene.operations());
    let bench = Bench { document: &document, tables, windows: &windows, operations: &operations };
    judge(&bench, &[])
}

#[test]
fn waits_of_other_threads_do_not_count_as_worker_waits() {
    // Threads other than the worker waited for longer than one thread can.
    let scene = well()
        .closed()
        .with("process.client.cpu_wait_ratio", 1.04)
        .with("process.client.workers_wait_ratio", 0.02);
    let causes = scene.judge().causes;
    assert!(causes.iter().all(|one| one.cause != Cause::Client), "{causes:#?}");
    // Older records do not have metrics of worker threads.
    let mut tables = scene.tables();
    for table in &mut tables {
        table.columns.retain(|id, _| !id.to_string().contains("workers"));
    }
    let verdict = judged(&scene, &tables);
    assert!(verdict.not_watched.contains(&Cause::Client), "{verdict:#?}");
}

#[test]
fn cause_is_reported_for_the_time_in_which_it_held() {
    // Its mean over the run is above the bound; from 28 s on it is idle, and a neighbour takes CPU time from
    // the server.
    let scene = well()
        .closed()
        .with("process.client.workers_cpu_ratio", 0.5)
        .with("process.client.workers_wait_ratio", 0.5)
        .with("cpu.1.busy_ratio", 1.0)
        .with("cpu.all.busy_ratio", 0.85)
        .with("process.server.cpu_wait_ratio", 0.8);
    let mut scene = scene;
    scene.start_delay_us = 400.0;
    let mut tables = scene.tables();
    watched(&mut tables, "process.client.workers_wait_ratio", 30, 0.01);
    let causes = judged(&scene, &tables).causes;
    let times: Vec<_> =
        causes.iter().map(|one| (one.cause, one.start_s, one.end_s, one.spans.len())).collect();
    assert_eq!(times, [(Cause::Client, 0.0, 30.0, 0), (Cause::NoisyNeighbour, 30.0, 40.0, 0)]);
    let of_client = &causes[0].evidence[0];
    assert_eq!((of_client.value, of_client.end_s), (1.0, 30.0));
}

#[test]
fn limit_of_one_server_does_not_limit_all() {
    let mut scene = well().with("process.server.cpu_ratio", 0.3);
    for (name, value) in [("cgroup.server.cpu_limit_count", 0.4), ("process.other.cpu_ratio", 1.0)]
    {
        scene.host.push((name, value, value));
    }
    let (document, tables) = (scene.document(), scene.tables());
    let (windows, operations) = (scene.windows(), scene.operations());
    let bench =
        Bench { document: &document, tables: &tables, windows: &windows, operations: &operations };
    let seen = Seen::new(&bench, bench.measured().unwrap());
    // 1.3 CPUs of two: the second server may use all of them.
    let share = seen.read(Measure::ServerCpuRatio).unwrap().value;
    assert!((share - 0.65).abs() < 1e-9, "{share}");
}

/// Possible and impossible values of a machine's counters.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..1.0f64,
        4 => 0.0..4.0f64,
        2 => 0.0..1e9f64,
        1 => Just(f64::NAN),
        1 => Just(0.0),
        1 => -1.0..0.0f64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn shares_are_between_zero_and_one(
        values in vec((value(), value()), 64),
        is_closed: bool,
        in_flight in 0.0..100.0f64,
        round_trip_us in 0.0..1e4f64,
        change_at in 1..SECONDS,
    ) {
        let mut scene = if is_closed { well().closed() } else { well() };
        (scene.in_flight, scene.round_trip_us) = (in_flight, Some(round_trip_us));
        scene.host.push(("cgroup.server.cpu_limit_count", 1.0, 1.0));
        let mut tables = scene.tables();
        let mut values = values.iter().cycle();
        for table in &mut tables {
            for column in table.columns.values_mut() {
                let (before, after) = values.next().unwrap();
                column[..change_at].fill(*before);
                column[change_at..].fill(*after);
            }
        }
        let document = scene.document();
        let (windows, operations) = (scene.windows(), scene.operations());
        let bench = Bench {
            document: &document,
            tables: &tables,
            windows: &windows,
            operations: &operations,
        };
        let seen = Seen::new(&bench, bench.measured().unwrap());
        let conditions = RULES.iter().flat_map(|rule| rule.needs.iter().chain(rule.supports));
        for condition in conditions {
            let measure = condition.measure;
            let Some(read) = seen.read(measure) else { continue };
            prop_assert!(read.value.is_finite(), "{} = {}", measure.name(), read.value);
            if measure.is_share() {
                prop_assert!((0.0..=1.0).contains(&read.value), "{} = {}", measure.name(), read.value);
            }
        }
        for cause in judge(&bench, &[]).causes {
            prop_assert!(cause.start_s < cause.end_s, "{cause:?}");
            for (one, next) in cause.spans.iter().zip(cause.spans.iter().skip(1)) {
                prop_assert!(one.start_s < one.end_s && one.end_s < next.start_s, "{cause:?}");
            }
        }
    }
}
