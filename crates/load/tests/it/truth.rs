//! The measurement itself, with responders of known stalls, service times and faults.

use dyno_load::backend::Backend;
use dyno_load::clock::Clock;
use dyno_load::connect::Connector;
use dyno_load::job::{Job, Pair, PhaseSpec};
use dyno_load::responder::{
    Behaviour, Counters, Fault, FaultRule, Responder, Service, ServiceTime, Stall,
};
use dyno_load::workload::{Concerns, LoadTask, Workload};
use dyno_plan::Plan;
use dyno_plan::model::{KeyDistribution, OperationWeights, Schedule};
use dyno_plan::units::Span;
use dyno_record::accumulate::PhaseAccumulator;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::{PhaseKind, PhaseRecord};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The tests of this file load the machine and measure time, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// One load and its measurements.
pub(crate) struct Trial {
    behaviour: Behaviour,
    pub(crate) plan: Plan,
    pub(crate) clients: usize,
    pub(crate) threads: usize,
    pub(crate) warmup: Option<Duration>,
    pub(crate) duration: Option<Duration>,
    operations: Option<u64>,
    timeout: Duration,
    /// When the run is stopped.
    stop_after: Option<Duration>,
}

pub(crate) fn trial(behaviour: Behaviour) -> Trial {
    let mut plan = dyno_plan::builtin::find("read").unwrap();
    plan.data.records = 1000;
    Trial {
        behaviour,
        plan,
        clients: 16,
        threads: 1,
        warmup: None,
        duration: None,
        operations: None,
        timeout: Duration::from_secs(10),
        stop_after: None,
    }
}

impl Trial {
    pub(crate) fn run(self) -> (PhaseRecord, Counters) {
        let responder = Responder::start(self.behaviour.clone()).unwrap();
        let record = self.run_against(&responder.address().to_string());
        (record, responder.stop().unwrap())
    }

    /// Operations that ended in each 10 ms of the measure phase.
    pub(crate) fn ended_in_parts(self) -> Vec<u64> {
        let responder = Responder::start(self.behaviour.clone()).unwrap();
        let mut ended = Vec::new();
        let address = responder.address().to_string();
        self.perform(&address, self.mix(), PhaseKind::Measure, &mut |window| {
            ended.extend(window.sub_second.iter().map(|part| part.ended));
        });
        ended
    }

    fn mix(&self) -> Arc<Workload> {
        Arc::new(Workload::mix(&self.plan, &Concerns::default()).unwrap())
    }

    fn run_against(&self, address: &str) -> PhaseRecord {
        self.perform(address, self.mix(), PhaseKind::Measure, &mut |_| ())
    }

    /// `watch` receives the windows of the phase.
    fn perform(
        &self,
        address: &str,
        workload: Arc<Workload>,
        kind: PhaseKind,
        watch: &mut dyn FnMut(&IntervalRecord),
    ) -> PhaseRecord {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (target, credentials) = dyno_plan::uri::parse(&format!("mongodb://{address}")).unwrap();
        let mut phases = Vec::new();
        if self.warmup.is_some() {
            phases.push(PhaseSpec {
                kind: PhaseKind::Warmup,
                duration: self.warmup,
                operations: None,
            });
        }
        phases.push(PhaseSpec { kind, duration: self.duration, operations: self.operations });
        let offered = self.plan.schedule.rate_per_s();
        let stop = Arc::new(AtomicBool::new(false));
        if let Some(after) = self.stop_after {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                std::thread::sleep(after);
                stop.store(true, Ordering::Relaxed);
            });
        }
        let backend = Backend::Wire(Connector::new(&target, credentials).unwrap());
        let pair = Pair {
            clients: self.clients,
            threads: self.threads,
            ..Pair::from_plan(&self.plan, workload, backend)
        };
        let clock = Clock::start();
        let ended_s = Arc::new(Mutex::new(None));
        let reported = Arc::clone(&ended_s);
        let job = Job {
            phases,
            schedule: self.plan.schedule.clone(),
            timeout: self.timeout,
            abort_on_failure: false,
            stop,
            clock,
            on_ended: Some(Box::new(move || {
                *reported.lock().unwrap() = Some(clock.now_ns() as f64 / 1e9);
            })),
            ..Job::from_plan(&self.plan, vec![pair])
        };
        let mut phase = PhaseAccumulator::new(kind, offered);
        let mut reported_before_window = false;
        dyno_load::run(job, &mut |window| {
            let interval = window.merged;
            reported_before_window = ended_s.lock().unwrap().is_some();
            if interval.phase == kind {
                watch(&interval);
                phase.add(&interval)?;
            }
            Ok(())
        })
        .unwrap();
        let record = phase.to_record();
        // At this time, counters include the whole phase: at its end, or before if nothing more was due.
        let ended_s: Option<f64> = *ended_s.lock().unwrap();
        assert!(reported_before_window, "{ended_s:?}");
        let late_s = ended_s.unwrap() - record.start_s - record.duration_s;
        assert!((-0.1..3.0).contains(&late_s), "{late_s} {record:?}");
        record
    }
}

fn constant(rate_per_s: f64) -> Schedule {
    Schedule::Constant { rate_per_s, max_start_delay: Span::from_secs(30) }
}

fn assert_near(measured: f64, expected: f64, tolerance: f64, what: &str) {
    let off = measured / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{what}: measured {measured}, expected {expected}, off by {:.2} %",
        off * 100.0
    );
}

fn assert_little(record: &PhaseRecord) {
    assert_near(record.little_ratio.unwrap(), 1.0, 0.02, "Little's law");
}

/// Maximum share of CPU time that a hypervisor may take during an attempt. A queue at four fifths of its capacity
/// amplifies it several times.
const MOST_STOLEN: f64 = 0.002;

/// CPU time of the machine in ticks since its start: total, and taken by the hypervisor.
fn cpu_ticks() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks = text.lines().next()?.split_ascii_whitespace().skip(1);
    let ticks: Vec<u64> = ticks.filter_map(|word| word.parse().ok()).collect();
    Some((ticks.iter().take(8).sum(), *ticks.get(7)?))
}

/// Share of the CPU time that the hypervisor took since then; 0 if unknown.
fn stolen_since(before: Option<(u64, u64)>) -> f64 {
    match (before, cpu_ticks()) {
        (Some(before), Some(now)) if now.0 > before.0 => {
            (now.1 - before.1) as f64 / (now.0 - before.0) as f64
        }
        _ => 0.0,
    }
}

/// Repeats a trial that depends on the clock until it succeeds. Other load on the machine can spoil attempts while it
/// lasts, so the pauses between attempts grow. A wrong measurement is wrong in every attempt. Attempts in which the
/// hypervisor took the CPUs do not count: if they are the majority, the test prints that and is skipped.
pub(crate) fn in_a_quiet_moment(attempt: impl Fn() -> Result<(), String>) {
    dyno_testkit::go_before_others();
    let mut failures = Vec::new();
    let mut disturbed = Vec::new();
    for pause_s in [0, 0, 1, 3, 8, 20, 40] {
        std::thread::sleep(Duration::from_secs(pause_s));
        let before = cpu_ticks();
        match (attempt(), stolen_since(before)) {
            (Ok(()), _) => return,
            (Err(failure), stolen) if stolen > MOST_STOLEN => {
                disturbed.push(format!("{failure}, {:.1} % stolen", 100.0 * stolen));
            }
            (Err(failure), _) => failures.push(failure),
        }
    }
    if disturbed.len() > failures.len() {
        dyno_testkit::skip(&format!(
            "the hypervisor took CPU time in most attempts: {disturbed:?}"
        ));
        return;
    }
    panic!("wrong in every attempt: {failures:#?}; disturbed: {disturbed:#?}");
}

pub(crate) fn near(measured: f64, expected: f64, tolerance: f64, what: &str) -> Result<(), String> {
    let off = measured / expected - 1.0;
    let text =
        format!("{what}: measured {measured}, expected {expected}, off by {:.2} %", off * 100.0);
    if off.abs() <= tolerance { Ok(()) } else { Err(text) }
}

#[test]
fn a_stall_shows_in_response_time_and_not_in_service_time() {
    // One arrival in ten meets a stall of 200 ms and waits uniformly up to its end.
    in_a_quiet_moment(|| {
        let mut trial = trial(Behaviour {
            stall: Some(Stall::new(Duration::from_secs(2), Duration::from_millis(200))),
            ..Behaviour::default()
        });
        trial.plan.schedule = constant(1000.0);
        trial.clients = 8;
        // Longer than a stall, so that the measure phase has two complete ones wherever it begins.
        trial.warmup = Some(Duration::from_millis(400));
        trial.duration = Some(Duration::from_secs(4));
        let (record, _) = trial.run();
        let read = &record.operations["read"];
        assert_eq!(read.count, 4000);
        assert_little(&record);
        near(read.response_time_us.p95, 100_000.0, 0.05, "response time p95")?;
        near(read.response_time_us.p99, 180_000.0, 0.05, "response time p99")?;
        let service_us = read.service_time_us.p99;
        if service_us < 20_000.0 { Ok(()) } else { Err(format!("service time p99 {service_us}")) }
    });
}

/// Mean response time of a queue with fixed service time for exactly the arrivals of the engine's schedule (Lindley's
/// recursion): the expected value of this sample, not only of the population.
fn lindley_mean_us(seed: u64, rate_per_s: f64, service_us: f64, duration_s: f64) -> (f64, u64) {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut arrival_us, mut free_us, mut sum_us, mut count) = (0.0, 0.0, 0.0, 0);
    loop {
        let u: f64 = rng.random();
        arrival_us += -(1.0 - u).ln() * 1e6 / rate_per_s;
        if arrival_us >= duration_s * 1e6 {
            return (sum_us / count as f64, count);
        }
        free_us = f64::max(free_us, arrival_us) + service_us;
        sum_us += free_us - arrival_us;
        count += 1;
    }
}

fn queue_with_load(utilization: f64) {
    // Long compared with the tolerance for wake-up times, which are 0.1 ms on a virtual machine.
    let service = Duration::from_millis(4);
    let rate_per_s = utilization / service.as_secs_f64();
    in_a_quiet_moment(|| {
        let mut trial = trial(Behaviour {
            service: Service::SingleQueue { time: ServiceTime::Fixed(service) },
            ..Behaviour::default()
        });
        trial.plan.schedule =
            Schedule::Poisson { rate_per_s, max_start_delay: Span::from_secs(30) };
        trial.clients = 64;
        trial.duration = Some(Duration::from_secs(5));
        let (expected_us, count) = lindley_mean_us(trial.plan.client.seed, rate_per_s, 4000.0, 5.0);
        let (record, _) = trial.run();
        let read = &record.operations["read"];
        assert_eq!(read.count, count);
        assert_little(&record);
        near(read.response_time_us.mean, expected_us, 0.05, "mean response time")
    });
}

#[test]
fn response_time_at_half_load_matches_queueing_theory() {
    queue_with_load(0.5);
}

#[test]
fn response_time_at_four_fifths_load_matches_queueing_theory() {
    queue_with_load(0.8);
}

#[test]
fn lindley_agrees_with_pollaczek_and_khinchine() {
    for (utilization, expected_us) in [(0.5, 1500.0), (0.8, 3000.0)] {
        let (mean_us, _) = lindley_mean_us(1, utilization * 1000.0, 1000.0, 4000.0);
        assert_near(mean_us, expected_us, 0.02, "mean of the recursion");
    }
}

#[test]
fn a_rate_is_kept_to_the_operation() {
    in_a_quiet_moment(|| {
        let mut trial = trial(Behaviour::default());
        trial.plan.schedule = constant(5000.0);
        trial.threads = 2;
        trial.warmup = Some(Duration::from_millis(300));
        trial.duration = Some(Duration::from_secs(2));
        let (record, _) = trial.run();
        assert_eq!(record.operations["read"].count, 10_000);
        let arrivals = record.arrivals.unwrap();
        assert_eq!((arrivals.due, arrivals.started, arrivals.dropped), (10_000, 10_000, 0));
        // Its time ends with the last answer, which other load on the machine may delay.
        near(record.achieved_rate_per_s, 5000.0, 0.01, "achieved rate")
    });
}

#[test]
fn arrivals_beyond_the_longest_delay_are_dropped() {
    // The queue serves 100/s, the schedule offers 400/s.
    let mut trial = trial(Behaviour {
        service: Service::SingleQueue { time: ServiceTime::Fixed(Duration::from_millis(10)) },
        ..Behaviour::default()
    });
    trial.clients = 4;
    trial.plan.schedule =
        Schedule::Constant { rate_per_s: 400.0, max_start_delay: Span(Duration::from_millis(200)) };
    trial.duration = Some(Duration::from_secs(2));
    let (record, counters) = trial.run();
    let arrivals = record.arrivals.unwrap();
    assert_eq!(arrivals.due, 800);
    assert_eq!(arrivals.started + arrivals.dropped, 800);
    assert_eq!(arrivals.started, counters.data_commands);
    assert!(arrivals.dropped > 400, "{arrivals:?}");
    let read = &record.operations["read"];
    assert!(read.start_delay_us.max <= 201_000.0, "{:?}", read.start_delay_us);
}

fn count_faults(kind: Fault, expected: &str, timeout: Duration) {
    let mut trial =
        trial(Behaviour { faults: vec![FaultRule { every: 50, kind }], ..Behaviour::default() });
    trial.operations = Some(2000);
    trial.clients = 4;
    trial.threads = 2;
    trial.timeout = timeout;
    let (record, counters) = trial.run();
    let read = &record.operations["read"];
    assert_eq!(counters.data_commands, 2000);
    assert_eq!(record.errors.get(expected), Some(&40), "{kind:?}: {:?}", record.errors);
    assert_eq!(record.errors.len(), 1, "{kind:?}: {:?}", record.errors);
    assert_eq!((read.count, read.errors), (1960, 40), "{kind:?}");
    assert_near(
        record.achieved_rate_per_s * record.duration_s,
        1960.0,
        1e-9,
        "successes in the rate",
    );
    assert_little(&record);
}

#[test]
fn server_errors_are_counted_exactly() {
    count_faults(Fault::ErrorCode(50), "server_50", Duration::from_secs(10));
}

#[test]
fn dropped_connections_are_counted_exactly_and_replaced() {
    count_faults(Fault::Drop, "disconnected", Duration::from_secs(10));
}

#[test]
fn truncated_replies_are_counted_exactly() {
    count_faults(Fault::Truncate, "disconnected", Duration::from_secs(10));
}

#[test]
fn garbage_is_counted_exactly() {
    count_faults(Fault::Garbage, "protocol", Duration::from_secs(10));
}

#[test]
fn replies_to_another_command_are_counted_exactly() {
    count_faults(Fault::WrongResponseTo, "protocol", Duration::from_secs(10));
}

#[test]
fn missing_documents_are_counted_exactly() {
    count_faults(Fault::NotFound, "not_found", Duration::from_secs(10));
}

#[test]
fn commands_without_an_answer_are_timeouts() {
    count_faults(Fault::Hang, "timeout", Duration::from_millis(100));
}

#[test]
fn a_stop_counts_operations_in_flight_as_cancelled() {
    let hang = FaultRule { every: 1, kind: Fault::Hang };
    for weights in [
        OperationWeights { read: 1.0, ..OperationWeights::default() },
        OperationWeights { read_modify_write: 1.0, ..OperationWeights::default() },
    ] {
        let mut trial = trial(Behaviour { faults: vec![hang], ..Behaviour::default() });
        trial.plan.operations = weights;
        trial.clients = 4;
        trial.threads = 2;
        trial.duration = Some(Duration::from_secs(60));
        trial.stop_after = Some(Duration::from_millis(300));
        let (record, _) = trial.run();
        assert_eq!(record.errors.get("cancelled"), Some(&4), "{record:?}");
        assert_eq!(record.operations["read"].errors, 4);
        assert_little(&record);
    }
}

#[test]
fn a_phase_ends_as_planned_when_the_server_has_gone() {
    for schedule in [
        Schedule::Closed {},
        Schedule::Constant { rate_per_s: 200.0, max_start_delay: Span(Duration::from_millis(500)) },
    ] {
        let mut trial = trial(Behaviour::default());
        trial.plan.schedule = schedule;
        trial.duration = Some(Duration::from_secs(2));
        let responder = Responder::start(trial.behaviour.clone()).unwrap();
        let address = responder.address().to_string();
        let end = std::thread::spawn(move || {
            while responder.counters().data_commands < 100 {
                std::thread::sleep(Duration::from_millis(1));
            }
            responder.stop().unwrap()
        });
        let record = trial.run_against(&address);
        end.join().unwrap();
        assert_eq!(record.duration_s, 2.0, "{record:?}");
        assert!(record.operations["read"].count > 0);
        if let Some(arrivals) = record.arrivals {
            assert_eq!(arrivals.due, 400);
            assert_eq!(arrivals.started + arrivals.dropped, 400);
        }
    }
}

#[test]
fn a_read_modify_write_counts_once_plus_its_parts() {
    let mut trial = trial(Behaviour::default());
    trial.plan.operations =
        OperationWeights { read_modify_write: 1.0, ..OperationWeights::default() };
    trial.operations = Some(500);
    let (record, counters) = trial.run();
    let count = |name: &str| record.operations[name].count;
    assert_eq!((count("read_modify_write"), count("read"), count("update")), (500, 500, 500));
    assert_eq!(counters.data_commands, 1000);
    assert_near(
        record.achieved_rate_per_s * record.duration_s,
        500.0,
        1e-9,
        "operations in the rate",
    );
    assert_little(&record);
}

#[test]
fn a_load_inserts_every_document_once() {
    let mut trial = trial(Behaviour::default());
    trial.plan.data.records = 1234;
    trial.plan.keys = KeyDistribution::Uniform {};
    let responder = Responder::start(trial.behaviour.clone()).unwrap();
    let task = LoadTask { first: 0, count: 1234, batch: 100, keep_existing: false };
    let workload = Arc::new(Workload::load(&trial.plan, task, &Concerns::default()).unwrap());
    trial.operations = workload.load_operations();
    let address = responder.address().to_string();
    let record = trial.perform(&address, workload, PhaseKind::Load, &mut |_| ());
    assert_eq!(record.operations["insert_batch"].count, 13);
    assert_eq!(record.operations["insert_batch"].documents, 1234);
    assert_eq!(responder.stop().unwrap().inserted, 1234);
}

#[test]
fn a_closed_loop_of_one_client_measures_service_time() {
    let mut trial = trial(Behaviour {
        service: Service::Parallel { time: ServiceTime::Fixed(Duration::from_millis(5)) },
        ..Behaviour::default()
    });
    trial.clients = 1;
    trial.operations = Some(200);
    let (record, _) = trial.run();
    let read = &record.operations["read"];
    assert!(read.service_time_us.min >= 4_990.0, "{:?}", read.service_time_us);
    assert_near(read.service_time_us.p50, 5000.0, 0.05, "median service time");
    assert_near(record.mean_in_flight, 1.0, 0.02, "in flight");
}
