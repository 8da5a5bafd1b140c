//! The merged result is the sum of its parts, whichever agents are late, lost or out of step.

use super::*;
use dyno_record::interval::{
    ErrorCount, OperationInterval, SubSecondPart, WindowCounts, latency_histogram,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn window(phase: PhaseKind, index: u64, values_us: &[u64]) -> IntervalRecord {
    let mut response = latency_histogram();
    for value in values_us {
        response.record(value * 1_000).expect("in bounds");
    }
    let count = values_us.len() as u64;
    IntervalRecord {
        duration_ns: SECOND,
        operations: vec![OperationInterval {
            name: "read".into(),
            service: response.clone(),
            start_delay: latency_histogram(),
            response,
            response_sum_ns: values_us.iter().map(|value| u128::from(*value) * 1_000).sum(),
            service_sum_ns: 0,
            start_delay_sum_ns: 0,
            documents: count,
            errors: 1,
            clamped: 0,
        }],
        errors: vec![ErrorCount {
            operation: "read".into(),
            kind: "timeout".into(),
            count: 1,
            example: None,
        }],
        counts: WindowCounts { succeeded: count, failed: 1, ..WindowCounts::default() },
        sub_second: vec![SubSecondPart { ended: count, failed: 0, response_sum_ns: 1 }],
        ..IntervalRecord::empty(phase, index, index * SECOND)
    }
}

fn measure(index: u64, values_us: &[u64]) -> IntervalRecord {
    window(PhaseKind::Measure, index, values_us)
}

fn merger(agents: u32) -> Merger {
    let mut merger = Merger::new(MergeOptions {
        interval_ns: SECOND,
        lag: 4,
        servers: vec![vec![0]; agents as usize],
    });
    for agent in 0..agents {
        merger.begun(agent, Began::default());
    }
    merger
}

fn began(late_ns: i64, uncertainty_ns: u64, windows_from_ns: i64) -> Began {
    Began { late_ns, uncertainty_ns, windows_from_ns }
}

#[test]
fn interval_closes_when_all_agents_have_passed_it() {
    let mut merger = merger(2);
    merger.add(0, 0, measure(0, &[10, 20])).expect("added");
    merger.add(0, 0, measure(1, &[10])).expect("added");
    assert!(merger.closed().expect("merged").is_empty());
    merger.add(1, 0, measure(0, &[1000])).expect("added");
    let closed = merger.closed().expect("merged");
    assert_eq!(closed.len(), 1);
    let first = &closed[0];
    assert!(first.is_common);
    assert_eq!((first.window.counts.succeeded, first.window.counts.failed), (3, 2));
    assert_eq!(first.window.operations[0].response.len(), 3);
    assert_eq!(first.window.operations[0].response_sum_ns, 1_030_000);
    assert_eq!(first.window.errors[0].count, 2);
    assert_eq!(first.window.sub_second[0].ended, 3);
    assert_eq!(merger.open.len(), 1);
}

#[test]
fn server_finished_by_an_agent_delays_nothing() {
    let mut merger = Merger::new(MergeOptions { servers: vec![vec![0, 1]], ..merger(1).options });
    merger.begun(0, Began::default());
    merger.add(0, 0, measure(0, &[10])).expect("added");
    merger.add(0, 1, measure(0, &[10])).expect("added");
    merger.add(0, 0, measure(1, &[10])).expect("added");
    assert_eq!(merger.closed().expect("merged").len(), 1, "server 1 is awaited");
    merger.server_done(0, 1);
    let closed = merger.closed().expect("merged");
    assert_eq!((closed.len(), closed[0].is_common), (1, false));
    merger.add(0, 0, measure(2, &[10])).expect("added");
    assert_eq!(merger.closed().expect("merged").len(), 1);
    let (_, outcome) = merger.finish().expect("merged");
    assert_eq!(outcome.agents[0].succeeded, 4);
}

#[test]
fn slow_agent_delays_few_intervals_and_loses_nothing() {
    let mut merger = merger(2);
    for index in 0..10 {
        merger.add(0, 0, measure(index, &[10])).expect("added");
    }
    let closed = merger.closed().expect("merged");
    assert_eq!(closed.len(), 6, "all that are 4 or more behind");
    assert!(closed.iter().all(|merged| !merged.is_common));
    assert_eq!(merger.open.len(), 4);
    merger.add(1, 0, measure(0, &[30])).expect("added");
    let (_, outcome) = merger.finish().expect("merged");
    let each = outcome.agents.iter().map(|agent| agent.succeeded);
    assert_eq!((outcome.late_windows, each.sum::<u64>()), (1, 11));
    assert_eq!(outcome.common.intervals, 0);
}

#[test]
fn last_interval_of_a_phase_waits_for_all_agents() {
    let mut merger = merger(2);
    merger.add(0, 0, window(PhaseKind::Warmup, 0, &[1])).expect("added");
    merger.add(0, 0, measure(0, &[1])).expect("added");
    assert!(merger.closed().expect("merged").is_empty());
    merger.add(1, 0, window(PhaseKind::Warmup, 0, &[1])).expect("added");
    let closed = merger.closed().expect("merged");
    assert_eq!((closed.len(), closed[0].window.phase), (1, PhaseKind::Warmup));
}

#[test]
fn rate_comes_from_the_window_in_which_all_measured() {
    let mut merger = merger(2);
    // One agent begins a second late and ends a second later, alone and faster.
    merger.begun(0, began(1_000, 500, 0));
    merger.begun(1, began(1_000_200_000, 700, 1_000_200_000));
    let late = |index, values: &[u64]| {
        let mut window = measure(index, values);
        window.start_ns += 1_000_200_000;
        window
    };
    for index in 0..5 {
        merger.add(0, 0, measure(index, &[10; 100])).expect("added");
    }
    for index in 0..4 {
        merger.add(1, 0, late(index, &[10; 50])).expect("added");
    }
    merger.add(1, 0, late(4, &[10; 900])).expect("added");
    let (last, outcome) = merger.finish().expect("merged");
    let common: Vec<u64> =
        last.iter().filter(|merged| merged.is_common).map(|merged| merged.window.index).collect();
    assert_eq!(common, [1, 2, 3, 4]);
    assert_eq!((outcome.common.first_interval, outcome.common.intervals), (1, 4));
    assert_eq!((outcome.common.last_interval, outcome.measured_intervals), (4, 6));
    assert_eq!(outcome.common.rate_per_s, 150.0);
    assert_eq!((outcome.start_skew_ns, outcome.start_skew_uncertainty_ns), (1_000_199_000, 1_200));
    assert_eq!(outcome.agents[0].ended_early, 1);
}

#[test]
fn late_agent_does_not_count_before_its_actual_start() {
    let mut merger = merger(2);
    merger.begun(0, began(9_000_000, 500, 0));
    // It stalled; its windows stay where they were planned.
    merger.begun(1, began(2_500_000_000, 700, 0));
    for index in 0..5 {
        merger.add(0, 0, measure(index, &[10; 100])).expect("added");
        merger.add(1, 0, measure(index, &[10; 50])).expect("added");
    }
    let (_, outcome) = merger.finish().expect("merged");
    assert_eq!((outcome.common.first_interval, outcome.common.intervals), (3, 2));
    assert_eq!(outcome.start_skew_ns, 2_491_000_000);
    let late: Vec<u64> = outcome.agents.iter().map(|agent| agent.late_intervals).collect();
    assert_eq!(late, [0, 3]);
}

#[test]
fn windows_out_of_step_or_of_unknown_start_are_not_common() {
    for begun in [Some(began(0, 1, 400_000_000)), None] {
        let mut merger = merger(1);
        merger.agents[0].began = None;
        if let Some(begun) = begun {
            merger.begun(0, begun);
        }
        merger.add(0, 0, measure(1, &[10])).expect("added");
        let (_, outcome) = merger.finish().expect("merged");
        assert_eq!(outcome.common.intervals, 0, "{begun:?}");
    }
}

#[test]
fn lost_agent_is_marked_and_delays_no_other() {
    let mut merger = merger(3);
    for agent in 0..3 {
        merger.add(agent, 0, measure(0, &[10])).expect("added");
    }
    merger.lost(2, "silent");
    merger.lost(2, "something else");
    for agent in 0..2 {
        merger.add(agent, 0, measure(1, &[10])).expect("added");
        merger.ended(agent);
    }
    let closed = merger.closed().expect("merged");
    let common: Vec<bool> = closed.iter().map(|merged| merged.is_common).collect();
    assert_eq!(common, [true, false]);
    let (_, outcome) = merger.finish().expect("merged");
    assert_eq!(outcome.common.intervals, 1);
    let lost = outcome.agents.iter().map(|agent| agent.lost.as_deref());
    let expected = [None, None, Some("silent")];
    assert_eq!(lost.collect::<Vec<_>>(), expected);
}

#[test]
fn partial_window_counts_in_sums_but_not_in_the_rate() {
    let mut merger = merger(1);
    merger.add(0, 0, measure(0, &[10; 10])).expect("added");
    let mut last = measure(1, &[10; 4]);
    last.duration_ns = SECOND / 2;
    merger.add(0, 0, last).expect("added");
    let (last, outcome) = merger.finish().expect("merged");
    assert_eq!((outcome.common.intervals, outcome.common.rate_per_s), (1, 10.0));
    let merged = last.iter().map(|merged| merged.window.counts.succeeded);
    assert_eq!((merged.sum::<u64>(), outcome.agents[0].succeeded), (14, 14));
}

#[test]
fn memory_is_independent_of_the_run_length() {
    let mut merger = merger(3);
    for index in 0..500 {
        // One agent sends nothing.
        merger.add(0, 0, measure(index, &[10])).expect("added");
        merger.add(1, 0, measure(index, &[10])).expect("added");
        merger.closed().expect("merged");
        assert!(merger.open.len() <= 5);
    }
}

#[test]
fn server_windows_add_up_to_the_total_and_wait_for_each_other() {
    let mut merger = Merger::new(MergeOptions {
        interval_ns: SECOND,
        lag: 4,
        servers: vec![vec![0, 2], vec![2]],
    });
    for agent in 0..2 {
        merger.begun(agent, Began::default());
    }
    merger.add(0, 0, measure(0, &[10])).expect("added");
    merger.add(1, 2, measure(0, &[20, 30])).expect("added");
    assert!(merger.closed().expect("merged").is_empty(), "one is missing");
    merger.add(0, 2, measure(0, &[40])).expect("added");
    // A window of a server that the agent does not load is ignored.
    merger.add(1, 0, measure(0, &[50])).expect("left out");
    let closed = merger.closed().expect("merged");
    let first = &closed[0];
    assert!(first.is_common);
    assert_eq!(first.window.counts.succeeded, 4);
    let of_server = |server: u32| first.servers[&server].counts.succeeded;
    assert_eq!((of_server(0), of_server(2)), (1, 3));
    let (_, outcome) = merger.finish().expect("merged");
    let each = outcome.agents.iter().map(|agent| agent.succeeded);
    assert_eq!(each.collect::<Vec<_>>(), [2, 2]);
    assert_eq!((outcome.common.succeeded, outcome.agents[0].late_intervals), (4, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn merged_result_is_the_sum_of_windows_in_any_order(
        order in Just((0..24_u64).collect::<Vec<_>>()).prop_shuffle(),
        close_at in proptest::collection::vec(any::<bool>(), 24),
    ) {
        let mut merger = merger(4);
        // Late windows count only with their agent.
        let (mut expected, mut all) = (latency_histogram(), 0);
        let mut windows = Vec::new();
        for (step, number) in order.iter().enumerate() {
            let (agent, index) = ((number % 4) as u32, number / 4);
            let values: Vec<u64> = (0..=*number).map(|value| 10 + value * number).collect();
            let late = merger.late_windows;
            merger.add(agent, 0, measure(index, &values)).expect("added");
            all += values.len() as u64;
            for value in values.iter().filter(|_| merger.late_windows == late) {
                expected.record(value * 1_000).expect("in bounds");
            }
            if close_at[step] {
                windows.extend(merger.closed().expect("merged"));
            }
        }
        let (last, outcome) = merger.finish().expect("merged");
        windows.extend(last);
        let mut found = latency_histogram();
        for merged in &windows {
            found.add(&merged.window.operations[0].response).expect("the same bounds");
        }
        prop_assert!(found == expected);
        prop_assert_eq!(outcome.agents.iter().map(|agent| agent.succeeded).sum::<u64>(), all);
        let in_windows: u64 = windows.iter().map(|merged| merged.window.counts.succeeded).sum();
        prop_assert_eq!(in_windows, expected.len());
        prop_assert!(windows.is_sorted_by_key(|merged| merged.window.index));
    }
}
