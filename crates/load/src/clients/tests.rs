//! The clients with a simulated clock.

use super::*;
use crate::core::{CoreOptions, Handover, PhaseWindow};
use crate::operation::Action;
use crate::pace::Think;
use crate::schedule::Share;
use crate::workload::{Concerns, LoadTask, Workload};
use dyno_plan::model::{Schedule, ThinkTime};
use dyno_plan::operation::{INSERT, READ, READ_MODIFY_WRITE, UPDATE};
use dyno_record::interval::IntervalRecord;
use dyno_record::model::PhaseKind;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, channel};

const MS: u64 = 1_000_000;

struct Bench {
    clients: Clients,
    handovers: Receiver<Handover>,
}

/// `count` connected clients that perform one kind of operation in a closed loop.
fn bench(name: &str, count: usize, operations: u64, retry: RetryRule) -> Bench {
    let phase = window(PhaseKind::Measure, 0, u64::MAX, operations);
    bench_of(name, count, vec![phase], retry, Schedule::Closed {}, NO_THINKING)
}

const NO_THINKING: Think = Think { mean_ns: 0, distribution: ThinkTime::Constant };

fn window(kind: PhaseKind, start_ns: u64, end_ns: u64, operations: u64) -> PhaseWindow {
    PhaseWindow { kind, start_ns, end_ns, operations, numbers: Arc::new(AtomicU64::new(0)) }
}

fn bench_of(
    name: &str,
    count: usize,
    phases: Vec<PhaseWindow>,
    retry: RetryRule,
    schedule: Schedule,
    think: Think,
) -> Bench {
    let mut plan = dyno_plan::builtin::find("read").unwrap();
    plan.data.records = 100;
    plan.operations.read = f64::from(name == READ);
    plan.operations.read_modify_write = f64::from(name == READ_MODIFY_WRITE);
    let workload = if name == INSERT {
        let task = LoadTask { first: 0, count: 100, batch: 1, keep_existing: false };
        Workload::load(&plan, task, &Concerns::default()).unwrap()
    } else {
        Workload::mix(&plan, &Concerns::default()).unwrap()
    };
    let (parts, handovers) = channel();
    let (_, spares) = channel();
    let pace = Pace::new(&schedule, think, count, 1);
    let core = Core::new(CoreOptions {
        phases,
        schedule,
        share: Share { worker: 0, worker_count: 1, offset_ns: 0 },
        worker: 0,
        seed: 1,
        window_ns: SECOND_NS,
        thread_usage: || (0, 0),
        operations: workload.operations.clone(),
        counted: workload.counted(),
        latch: None,
        parts,
        spares,
    });
    let setup = WorkerSetup {
        clock: Clock::start(),
        stop: Arc::new(AtomicBool::new(false)),
        timeout_ns: 100 * MS,
        unreachable_limit_ns: 1000 * MS,
        retry,
        abort_on_failure: false,
        pace,
    };
    let generator = Generator::new(Arc::new(workload));
    let mut clients = Clients::new(setup, core, generator, count);
    for client in 0..count {
        clients.connected(client, 0);
    }
    Bench { clients, handovers }
}

/// Clients that read from time 0 on, with think time.
fn thinking(count: usize, distribution: ThinkTime) -> Bench {
    let phases = vec![window(PhaseKind::Measure, 0, u64::MAX, u64::MAX)];
    let think = Think { mean_ns: 5 * MS, distribution };
    let retry = RetryRule::default();
    bench_of(READ, count, phases, retry, Schedule::Closed {}, think)
}

/// Clients that read at a target rate.
fn throttled(count: usize, rate_per_s: f64, phases: Vec<PhaseWindow>) -> Bench {
    let schedule = Schedule::Throttled { rate_per_s };
    let retry = RetryRule::default();
    bench_of(READ, count, phases, retry, schedule, NO_THINKING)
}

impl Bench {
    fn send(&mut self, client: usize, now_ns: u64) {
        assert_eq!(self.clients.start_next(now_ns), Start::Send(client));
        self.clients.sent(client, now_ns);
    }

    /// Time until which no client has anything to send.
    fn next_turn(&mut self, now_ns: u64) -> u64 {
        match self.clients.start_next(now_ns) {
            Start::At(at_ns) => at_ns,
            Start::Send(client) => panic!("client {client} has a turn at {now_ns}"),
        }
    }

    /// Sends the operation of a client and ends it. Returns whether the next one is due then.
    fn perform(&mut self, client: usize, send_ns: u64, end_ns: u64) -> bool {
        self.send(client, send_ns);
        self.clients.ended(client, Ok(1), end_ns)
    }

    /// The recorded measure phase as one window.
    fn recorded(self, now_ns: u64) -> IntervalRecord {
        self.clients.finish(now_ns).unwrap();
        let mut all = IntervalRecord::empty(PhaseKind::Measure, 0, 0);
        for part in self.handovers.iter().filter_map(|handover| handover.part) {
            if part.phase == PhaseKind::Measure {
                part.add_to(&mut all);
            }
        }
        all
    }

    /// Operations that succeeded and failed, by name.
    fn finish(self, now_ns: u64) -> Vec<(&'static str, u64, u64)> {
        self.clients.finish(now_ns).unwrap();
        let part = self.handovers.iter().last().unwrap().part.unwrap();
        let mut interval = part.window();
        part.add_to(&mut interval);
        let known =
            |name: &str| [READ, UPDATE, INSERT, READ_MODIFY_WRITE].into_iter().find(|k| *k == name);
        interval
            .operations
            .iter()
            .map(|one| (known(&one.name).unwrap(), one.response.len(), one.errors))
            .collect()
    }
}

#[test]
fn a_client_that_has_ended_an_operation_begins_the_next_one() {
    let mut bench = bench(READ, 1, 2, RetryRule::default());
    bench.send(0, MS);
    assert_eq!(bench.clients.start_next(MS), Start::At(u64::MAX));
    assert!(bench.clients.ended(0, Ok(1), 2 * MS));
    bench.clients.sent(0, 2 * MS);
    assert!(!bench.clients.is_done(2 * MS));
    assert!(!bench.clients.ended(0, Ok(1), 3 * MS), "that was the last");
    assert!(bench.clients.is_done(3 * MS));
    assert_eq!(bench.finish(4 * MS), [("read", 2, 0)]);
}

#[test]
fn read_modify_write_counts_as_read_update_and_itself() {
    let mut bench = bench(READ_MODIFY_WRITE, 1, 1, RetryRule::default());
    bench.send(0, MS);
    assert!(bench.clients.ended(0, Ok(1), 2 * MS));
    let update = bench.clients.operation(0).unwrap();
    assert_eq!(update.action, Action::Update);
    bench.clients.sent(0, 2 * MS);
    assert!(!bench.clients.ended(0, Ok(1), 3 * MS));
    assert_eq!(
        bench.finish(4 * MS),
        [("read", 1, 0), ("update", 1, 0), ("read_modify_write", 1, 0)]
    );
}

#[test]
fn read_modify_write_stops_when_its_connection_is_lost() {
    let mut bench = bench(READ_MODIFY_WRITE, 1, 1, RetryRule::default());
    bench.send(0, MS);
    bench.clients.disconnected(0, OperationError::Disconnected, 2 * MS);
    assert!(bench.clients.operation(0).is_none());
    assert!(bench.clients.are_all_disconnected());
    assert_eq!(bench.finish(4 * MS), [("read", 0, 1), ("read_modify_write", 0, 1)]);
}

#[test]
fn update_is_not_counted_when_its_read_is_refused() {
    let mut bench = bench(READ_MODIFY_WRITE, 1, 1, RetryRule::default());
    bench.send(0, MS);
    let stepped_down = OperationError::Server(10_107);
    bench.clients.disconnected(0, stepped_down, 2 * MS);
    assert!(bench.clients.operation(0).is_none());
    assert_eq!(bench.finish(4 * MS), [("read", 0, 1), ("read_modify_write", 0, 1)]);
}

#[test]
fn a_failed_operation_is_retried_as_often_as_the_rule_allows() {
    let retry = RetryRule { limit: 1, interval_ns: 10 * MS };
    let mut bench = bench(INSERT, 1, 1, retry);
    bench.send(0, MS);
    assert!(!bench.clients.ended(0, Err(OperationError::Timeout), 2 * MS));
    assert_eq!(bench.clients.due(0, 2 * MS), None);
    assert_eq!(bench.clients.due(0, 20 * MS), Some(Due::Retry));
    assert!(bench.clients.retry(0, 20 * MS));
    assert!(bench.clients.operation(0).unwrap().may_exist);
    bench.clients.sent(0, 20 * MS);
    assert_eq!(bench.clients.due(0, 121 * MS), Some(Due::TimedOut));
    assert!(!bench.clients.ended(0, Err(OperationError::Timeout), 121 * MS));
    assert_eq!(bench.finish(130 * MS), [("insert", 0, 1)]);
}

#[test]
fn a_server_without_answers_ends_the_run() {
    let mut bench = bench(READ, 1, 1, RetryRule::default());
    bench.clients.check_reachable(false, MS, || None);
    bench.clients.check_reachable(false, 1000 * MS, || None);
    assert!(!bench.clients.setup.stop.load(Ordering::Relaxed));
    bench.clients.check_reachable(false, 1002 * MS, || None);
    assert!(bench.clients.setup.stop.load(Ordering::Relaxed));
    bench.clients.check(1010 * MS);
    assert!(bench.clients.is_done(1010 * MS));
}

#[test]
fn a_client_thinks_between_its_answer_and_its_next_operation() {
    let mut bench = thinking(1, ThinkTime::Constant);
    let first_ns = bench.next_turn(0);
    assert!((1..5 * MS).contains(&first_ns), "{first_ns}");
    assert!(!bench.perform(0, first_ns, first_ns + 2 * MS));
    let due_ns = first_ns + 7 * MS;
    assert_eq!(bench.next_turn(first_ns + 2 * MS), due_ns);
    assert_eq!(bench.next_turn(due_ns - 1), due_ns);
    // The timer is late by 30 µs.
    let late_ns = due_ns + 30_000;
    assert!(!bench.perform(0, late_ns, late_ns + MS));
    let recorded = bench.recorded(late_ns + 2 * MS);
    let read = &recorded.operations[0];
    assert_eq!(read.response_sum_ns, u128::from(3 * MS + 30_000));
    assert_eq!(read.service_sum_ns, u128::from(3 * MS));
    assert_eq!(read.start_delay_sum_ns, 30_000);
    // The waits before the first send, between the operations, and after the last answer.
    let waited_ns = first_ns + 5 * MS + 30_000 + MS;
    assert_eq!(recorded.counts.thinking_ns, u128::from(waited_ns));
}

#[test]
fn clients_start_in_the_order_of_their_turns() {
    let mut bench = thinking(20, ThinkTime::Exponential);
    let mut now_ns = 0;
    let mut starts = Vec::new();
    while starts.len() < 1000 {
        match bench.clients.start_next(now_ns) {
            Start::Send(client) => {
                bench.clients.sent(client, now_ns);
                starts.push((now_ns, client));
                assert!(!bench.clients.ended(client, Ok(1), now_ns));
            }
            Start::At(at_ns) => {
                assert!(at_ns > now_ns, "a client was due before");
                now_ns = at_ns;
            }
        }
    }
    // All clients progress: after 50 think times each, they have about the same number of operations.
    let of_client = |client| starts.iter().filter(|(_, other)| *other == client).count();
    assert!((0..20).all(|client| (20..100).contains(&of_client(client))));
    let recorded = bench.recorded(now_ns);
    assert_eq!(recorded.operations[0].start_delay_sum_ns, 0);
    assert_eq!(recorded.counts.thinking_ns, 20 * u128::from(now_ns));
}

#[test]
fn a_client_without_a_connection_does_not_think() {
    let mut bench = thinking(1, ThinkTime::Constant);
    let first_ns = bench.next_turn(0);
    assert!(!bench.perform(0, first_ns, first_ns));
    // The client waited for one of the five milliseconds.
    let lost_ns = first_ns + MS;
    bench.clients.disconnected(0, OperationError::Disconnected, lost_ns);
    assert_eq!(bench.next_turn(lost_ns), u64::MAX);
    assert!(!bench.clients.reconnected(0, lost_ns + 2 * MS));
    assert_eq!(bench.next_turn(lost_ns + 2 * MS), first_ns + 5 * MS);
    let end_ns = first_ns + 5 * MS;
    assert!(!bench.perform(0, end_ns, end_ns));
    // The client was disconnected for two of the five milliseconds.
    let waited_ns = u128::from(first_ns + 3 * MS);
    assert_eq!(bench.recorded(end_ns).counts.thinking_ns, waited_ns);
}

#[test]
fn a_late_throttled_client_catches_up_and_then_waits() {
    let phases = vec![window(PhaseKind::Measure, 0, u64::MAX, u64::MAX)];
    let mut bench = throttled(1, 100.0, phases);
    let slot = |first_ns: u64, number: u64| first_ns + number * 10 * MS;
    let first_ns = bench.next_turn(0);
    assert!(first_ns < 10 * MS);
    // Two slots pass before the answer.
    assert!(bench.perform(0, first_ns, slot(first_ns, 2) + MS));
    let late_ns = slot(first_ns, 2) + MS;
    bench.clients.sent(0, late_ns);
    assert!(bench.clients.ended(0, Ok(1), late_ns + MS));
    bench.clients.sent(0, late_ns + MS);
    assert!(!bench.clients.ended(0, Ok(1), late_ns + 2 * MS));
    assert_eq!(bench.next_turn(late_ns + 2 * MS), slot(first_ns, 3));
    let recorded = bench.recorded(late_ns + 2 * MS);
    let read = &recorded.operations[0];
    // From their slots: 21, 12 and 3 ms; sent 0, 11 and 2 ms after them.
    assert_eq!(read.response_sum_ns, u128::from(36 * MS));
    assert_eq!(read.start_delay_sum_ns, u128::from(13 * MS));
    assert_eq!(read.service_sum_ns, u128::from(23 * MS));
    // It waited only for its first slot.
    assert_eq!(recorded.counts.thinking_ns, u128::from(first_ns));
    assert_eq!(recorded.counts.arrivals.due, 0);
}

#[test]
fn a_throttled_client_does_not_catch_up_on_the_warm_up() {
    let phases = vec![
        window(PhaseKind::Warmup, 0, 100 * MS, u64::MAX),
        window(PhaseKind::Measure, 100 * MS, u64::MAX, u64::MAX),
    ];
    let mut bench = throttled(1, 100.0, phases);
    let first_ns = bench.next_turn(0);
    // Ten slots of the warm-up pass before the answer, and two of the measured time.
    let end_ns = first_ns + 115 * MS;
    assert!(bench.perform(0, first_ns, end_ns));
    bench.clients.sent(0, end_ns);
    assert!(bench.clients.ended(0, Ok(1), end_ns + MS));
    bench.clients.sent(0, end_ns + MS);
    assert!(!bench.clients.ended(0, Ok(1), end_ns + 2 * MS));
    assert_eq!(bench.next_turn(end_ns + 2 * MS), first_ns + 120 * MS);
    let recorded = bench.recorded(end_ns + 2 * MS);
    let read = &recorded.operations[0];
    assert_eq!(read.response.len(), 2);
    assert_eq!(read.start_delay_sum_ns, u128::from((15 + 6) * MS));
}
