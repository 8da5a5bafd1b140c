//! The core with a simulated clock: results are exact to the nanosecond.

use super::*;
use crate::operation::OperationError;
use dyno_plan::operation::{Effect, Operation};
use dyno_plan::units::Span;
use dyno_record::interval::IntervalRecord;
use std::sync::mpsc::channel;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

struct Bench {
    core: Core,
    handovers: Receiver<Handover>,
}

fn window(kind: PhaseKind, start_ns: u64, end_ns: u64, operations: u64) -> PhaseWindow {
    PhaseWindow { kind, start_ns, end_ns, operations, numbers: Arc::new(AtomicU64::new(0)) }
}

fn constant(rate_per_s: f64, max_start_delay_s: u64) -> Schedule {
    Schedule::Constant { rate_per_s, max_start_delay: Span::from_secs(max_start_delay_s) }
}

fn bench(phases: Vec<PhaseWindow>, schedule: Schedule) -> Bench {
    let (parts, handovers) = channel();
    let (_, spares) = channel();
    let operations = Operations::from(vec![Operation::new("checkout", Effect::Update)]);
    let core = Core::new(CoreOptions {
        phases,
        schedule,
        share: Share { worker: 0, worker_count: 1, offset_ns: 0 },
        worker: 0,
        thread_usage: || (0, 0),
        seed: 1,
        window_ns: SECOND,
        counted: operations.id("checkout").into_iter().collect(),
        operations,
        latch: None,
        parts,
        spares,
    });
    Bench { core, handovers }
}

impl Bench {
    fn start(&mut self, now_ns: u64, free_since_ns: u64) -> Ticket {
        self.core.tick(now_ns);
        match self.core.next(now_ns, free_since_ns) {
            Next::Start(ticket) => {
                self.core.started(ticket, now_ns);
                ticket
            }
            other => panic!("nothing to start at {now_ns}: {other:?}"),
        }
    }

    fn end(&mut self, ticket: Ticket, send_ns: u64, end_ns: u64, outcome: Outcome) {
        let times = Times { intended_ns: ticket.intended_ns, send_ns, end_ns };
        let id = self.core.options.counted[0];
        self.core.ended(ticket, id, times, outcome);
    }

    fn finish(self, now_ns: u64) -> Vec<IntervalRecord> {
        self.core.finish(now_ns);
        self.handovers
            .iter()
            .filter_map(|handover| handover.part)
            .map(|part| {
                let mut interval = part.window();
                part.add_to(&mut interval);
                interval
            })
            .collect()
    }
}

#[test]
fn open_loop_starts_follow_the_schedule_for_late_callers() {
    let mut bench =
        bench(vec![window(PhaseKind::Measure, SECOND, 2 * SECOND, u64::MAX)], constant(100.0, 10));
    assert_eq!(bench.core.next(0, 0), Next::At(SECOND));
    for arrival in 0..100 {
        let ticket = bench.start(SECOND + 995 * MS, 0);
        assert_eq!(ticket.intended_ns, SECOND + arrival * 10 * MS);
        assert_eq!(ticket.number, arrival);
    }
    assert_eq!(bench.core.next(5 * SECOND, 0), Next::Never);
}

#[test]
fn a_phase_that_ends_by_time_lasts_as_long_as_planned() {
    let window = window(PhaseKind::Measure, SECOND, 2 * SECOND, u64::MAX);
    let mut bench = bench(vec![window], constant(10.0, 10));
    for arrival in 0..10 {
        let now_ns = SECOND + arrival * 100 * MS;
        let ticket = bench.start(now_ns, 0);
        bench.end(ticket, now_ns, now_ns + MS, Ok(1));
    }
    assert_eq!(bench.core.next(1901 * MS, 0), Next::Never);
    let intervals = bench.finish(1901 * MS);
    let duration_ns: u64 = intervals.iter().map(|i| i.duration_ns).sum();
    assert_eq!(duration_ns, SECOND);
}

#[test]
fn arrivals_that_waited_too_long_are_dropped_and_counted() {
    let mut bench =
        bench(vec![window(PhaseKind::Measure, 0, 10 * SECOND, u64::MAX)], constant(10.0, 1));
    // At 3.05 s, the arrivals up to 2.0 s have waited longer than 1 s.
    let ticket = bench.start(3 * SECOND + 50 * MS, 0);
    assert_eq!(ticket.intended_ns, 2 * SECOND + 100 * MS);
    bench.end(ticket, 3 * SECOND + 50 * MS, 3 * SECOND + 60 * MS, Ok(1));
    bench.core.stop(3 * SECOND + 60 * MS);
    let intervals = bench.finish(3 * SECOND + 70 * MS);
    let sum = |field: fn(&IntervalRecord) -> u64| intervals.iter().map(field).sum::<u64>();
    assert_eq!(sum(|interval| interval.counts.arrivals.started), 1);
    assert_eq!(sum(|interval| interval.counts.arrivals.late), 1);
    // 0.0 to 2.0 s were too late; 2.2 to 3.0 s were due when the run was stopped.
    assert_eq!(sum(|interval| interval.counts.arrivals.dropped), 21 + 9);
    assert_eq!(sum(|interval| interval.counts.arrivals.due), 31);
}

#[test]
fn operations_are_measured_by_their_intended_start() {
    let phases = vec![
        window(PhaseKind::Warmup, 0, SECOND, u64::MAX),
        window(PhaseKind::Measure, SECOND, 2 * SECOND, 1),
    ];
    let mut bench = bench(phases, constant(2.0, 10));
    let warm = bench.start(500 * MS, 0);
    let first = bench.start(500 * MS, 0);
    assert_eq!((warm.intended_ns, first.intended_ns), (0, 500 * MS));
    assert_ne!(warm.number & UNMEASURED_BIT, 0);
    bench.end(warm, 500 * MS, 900 * MS, Ok(1));
    let measured = bench.start(SECOND, 0);
    assert_eq!((measured.number, measured.intended_ns), (0, SECOND));
    bench.end(first, 500 * MS, 1500 * MS, Ok(1));
    bench.end(measured, SECOND, 3500 * MS, Ok(1));
    let intervals = bench.finish(4 * SECOND);
    let counts: Vec<_> = intervals
        .iter()
        .map(|i| (i.phase, i.index, i.counts.succeeded, i.duration_ns / MS))
        .collect();
    assert_eq!(
        counts,
        // `warm` ended in time; `first` ended in the measure phase and is counted in neither.
        [
            (PhaseKind::Warmup, 0, 1, 1000),
            // The last planned window is extended by one interval while operations end.
            (PhaseKind::Measure, 0, 0, 2000),
            (PhaseKind::Measure, 1, 1, 500),
        ]
    );
}

#[test]
fn in_flight_time_is_the_sum_of_service_times() {
    let mut bench = bench(vec![window(PhaseKind::Measure, 0, u64::MAX, 3)], Schedule::Closed {});
    let a = bench.start(100 * MS, 0);
    let b = bench.start(200 * MS, 0);
    bench.end(a, 100 * MS, 1300 * MS, Ok(1));
    let c = bench.start(1300 * MS, 1300 * MS);
    bench.end(b, 200 * MS, 1400 * MS, Err(OperationError::Timeout));
    bench.end(c, 1300 * MS, 2600 * MS, Ok(1));
    assert_eq!(bench.core.next(2600 * MS, 2600 * MS), Next::Never);
    let intervals = bench.finish(3 * SECOND);
    let in_flight: u128 = intervals.iter().map(|i| i.counts.in_flight_ns).sum();
    let busy: u128 = intervals.iter().map(|i| i.counts.busy_ns).sum();
    assert_eq!(in_flight, 3700 * u128::from(MS));
    assert_eq!(busy, in_flight);
    // The phase ended with its last operation, not with the worker's next check.
    assert_eq!(intervals.iter().map(|i| i.duration_ns).sum::<u64>(), 2600 * MS);
}

#[test]
fn a_closed_loop_client_is_due_when_it_became_free() {
    let mut bench =
        bench(vec![window(PhaseKind::Measure, 10 * MS, SECOND, u64::MAX)], Schedule::Closed {});
    assert_eq!(bench.core.next(0, 0), Next::At(10 * MS));
    assert_eq!(bench.start(12 * MS, 0).intended_ns, 10 * MS);
    assert_eq!(bench.start(30 * MS, 25 * MS).intended_ns, 25 * MS);
    assert_eq!(bench.core.next(SECOND, SECOND), Next::Never);
}

#[test]
fn closed_loop_workers_share_numbers_without_repetition() {
    let shared = window(PhaseKind::Measure, 0, u64::MAX, 1000);
    let mut benches = [
        bench(vec![shared.clone()], Schedule::Closed {}),
        bench(vec![shared], Schedule::Closed {}),
    ];
    let mut numbers = Vec::new();
    loop {
        let mut ended = 0;
        for bench in &mut benches {
            match bench.core.next(MS, MS) {
                Next::Start(ticket) => numbers.push(ticket.number),
                _ => ended += 1,
            }
        }
        if ended == 2 {
            break;
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
}

#[test]
fn a_closed_loop_is_over_without_a_free_client_to_ask() {
    let phases = || vec![window(PhaseKind::Measure, 0, 2 * SECOND, 1)];
    let mut by_count = bench(phases(), Schedule::Closed {});
    assert!(!by_count.core.is_over(0));
    let ticket = by_count.start(0, 0);
    assert!(by_count.core.is_over(MS));
    by_count.end(ticket, 0, 5 * MS, Err(OperationError::Disconnected));
    assert_eq!(by_count.finish(9 * SECOND)[0].duration_ns, 5 * MS);
    let mut by_time = bench(phases(), Schedule::Closed {});
    assert!(!by_time.core.is_over(2 * SECOND - 1));
    assert!(by_time.core.is_over(2 * SECOND));
}

#[test]
fn an_open_loop_ends_when_its_last_arrival_waited_too_long() {
    let window = window(PhaseKind::Measure, 0, 2 * SECOND, u64::MAX);
    let mut bench = bench(vec![window], constant(10.0, 1));
    let ticket = bench.start(0, 0);
    bench.end(ticket, 0, MS, Err(OperationError::Disconnected));
    // No client is free from here on; the last of 20 arrivals is due at 1.9 s.
    for now_ns in (0..=29).map(|tenth| tenth * 100 * MS) {
        bench.core.tick(now_ns);
        assert!(!bench.core.is_over(now_ns), "{now_ns}");
    }
    bench.core.tick(2950 * MS);
    assert!(bench.core.is_over(2950 * MS));
    let intervals = bench.finish(2950 * MS);
    let sum = |field: fn(&IntervalRecord) -> u64| intervals.iter().map(field).sum::<u64>();
    assert_eq!(sum(|interval| interval.counts.arrivals.dropped), 19);
    // Waiting in vain is not part of the phase.
    assert_eq!(sum(|interval| interval.duration_ns), 2 * SECOND);
    assert_eq!(intervals.len(), 2);
}

#[test]
fn operations_far_beyond_the_end_have_their_own_windows() {
    let window = window(PhaseKind::Measure, 0, 30 * SECOND, u64::MAX);
    let mut bench = bench(vec![window], constant(0.1, 60));
    for tenth in 0..325 {
        bench.core.tick(tenth * 100 * MS);
    }
    // A connection comes back at 32.5 s.
    for _ in 0..3 {
        let ticket = bench.start(32_500 * MS, 0);
        bench.end(ticket, 32_500 * MS, 32_600 * MS, Ok(1));
    }
    let intervals = bench.finish(33 * SECOND);
    let windows: Vec<_> = intervals
        .iter()
        .skip(28)
        .map(|i| (i.start_ns / MS, i.duration_ns / MS, i.counts.succeeded))
        .collect();
    assert_eq!(
        windows,
        [(28_000, 1000, 0), (29_000, 2000, 0), (31_000, 1000, 0), (32_000, 600, 3)]
    );
}

#[test]
fn a_backlog_of_the_warm_up_is_dropped_where_it_ends() {
    let phases = vec![
        window(PhaseKind::Warmup, 0, SECOND, u64::MAX),
        window(PhaseKind::Measure, SECOND, 2 * SECOND, u64::MAX),
    ];
    let mut bench = bench(phases, constant(10.0, 60));
    // Nothing could be started for the first 1.05 s.
    let ticket = bench.start(1050 * MS, 0);
    assert_eq!((ticket.intended_ns, ticket.number), (SECOND, 0));
    bench.end(ticket, 1050 * MS, 1060 * MS, Ok(1));
    bench.core.stop(1060 * MS);
    let intervals = bench.finish(1060 * MS);
    let counts: Vec<_> = intervals
        .iter()
        .map(|i| {
            (i.phase, i.counts.arrivals.due, i.counts.arrivals.started, i.counts.arrivals.dropped)
        })
        .collect();
    assert_eq!(counts, [(PhaseKind::Warmup, 10, 0, 10), (PhaseKind::Measure, 1, 1, 0)]);
}

#[test]
fn arrivals_are_due_in_the_window_of_their_intended_start() {
    let window = window(PhaseKind::Measure, 0, 3 * SECOND, u64::MAX);
    let mut bench = bench(vec![window], constant(10.0, 60));
    bench.core.tick(SECOND);
    // All 30 arrivals start late, in the last window.
    bench.core.tick(2900 * MS);
    for _ in 0..30 {
        let ticket = bench.start(2900 * MS, 0);
        bench.end(ticket, 2900 * MS, 2950 * MS, Ok(1));
    }
    assert_eq!(bench.core.next(3 * SECOND, 0), Next::Never);
    let intervals = bench.finish(3 * SECOND);
    let due: Vec<_> = intervals.iter().map(|i| i.counts.arrivals.due).collect();
    assert_eq!(due, [10, 10, 10]);
    let started: Vec<_> = intervals.iter().map(|i| i.counts.arrivals.started).collect();
    assert_eq!(started, [0, 0, 30]);
}

#[test]
fn a_queue_that_only_grows_is_given_up_after_the_end() {
    let window = window(PhaseKind::Measure, 0, 20 * SECOND, u64::MAX);
    let mut bench = bench(vec![window], constant(10.0, 3600));
    let late = bench.start(21_900 * MS, 0);
    assert_eq!(late.intended_ns, 0);
    bench.end(late, 21_900 * MS, 21_990 * MS, Ok(1));
    assert!(!bench.core.is_over(21_990 * MS));
    assert!(bench.core.is_over(22 * SECOND));
    let intervals = bench.finish(22 * SECOND);
    let sum = |field: fn(&IntervalRecord) -> u64| intervals.iter().map(field).sum::<u64>();
    assert_eq!(sum(|interval| interval.counts.arrivals.due), 200);
    assert_eq!(sum(|interval| interval.counts.arrivals.dropped), 199);
}

#[test]
fn a_stop_counts_due_operations_behind_a_warm_up_backlog() {
    let phases = vec![
        window(PhaseKind::Warmup, 0, SECOND, u64::MAX),
        window(PhaseKind::Measure, SECOND, 9 * SECOND, u64::MAX),
    ];
    let mut bench = bench(phases, constant(10.0, 60));
    bench.core.tick(SECOND);
    bench.core.tick(2 * SECOND);
    bench.core.stop(2 * SECOND);
    let intervals = bench.finish(2 * SECOND);
    let due: u64 = intervals
        .iter()
        .filter(|interval| interval.phase == PhaseKind::Measure)
        .map(|interval| interval.counts.arrivals.due)
        .sum();
    assert_eq!(due, 11);
}

#[test]
fn a_failure_counts_in_the_phase_but_has_no_latency() {
    let mut bench =
        bench(vec![window(PhaseKind::Measure, 0, SECOND, u64::MAX)], Schedule::Closed {});
    let ticket = bench.start(MS, 0);
    bench.end(ticket, MS, 5 * MS, Err(OperationError::Server(8000)));
    let intervals = bench.finish(2 * SECOND);
    assert_eq!((intervals[0].counts.succeeded, intervals[0].counts.failed), (0, 1));
    assert_eq!(intervals[0].operations[0].response.len(), 0);
}
