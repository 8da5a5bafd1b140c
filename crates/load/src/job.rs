//! The work of a run: who performs which operations, in which phases, and when.
//!
//! [`Job::from_plan`] is the only place where a plan becomes a job, so that a run on this host, an agent of a
//! fleet, the selfcheck and the benchmarks load a server in the same way.

use crate::backend::Backend;
use crate::clock::Clock;
use crate::pace::Think;
use crate::workload::Workload;
use dyno_plan::Plan;
use dyno_plan::model::Schedule;
use dyno_record::model::PhaseKind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpec {
    pub kind: PhaseKind,
    /// Maximum time; absent for no limit.
    pub duration: Option<Duration>,
    /// Number of operations; absent for no limit.
    pub operations: Option<u64>,
}

impl PhaseSpec {
    /// The warm-up, if `plan` has one, and the measure phase.
    pub fn run_from_plan(plan: &Plan) -> Vec<Self> {
        let phases = &plan.phases;
        let warmup = (!phases.warmup.0.is_zero()).then_some(PhaseSpec {
            kind: PhaseKind::Warmup,
            duration: Some(phases.warmup.0),
            operations: None,
        });
        let measure = PhaseSpec {
            kind: PhaseKind::Measure,
            duration: phases.duration.map(|duration| duration.0),
            operations: phases.operations,
        };
        warmup.into_iter().chain([measure]).collect()
    }
}

/// CPU time and memory of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// User-mode CPU time so far, in nanoseconds.
    pub user_ns: u64,
    /// Kernel-mode CPU time so far, in nanoseconds.
    pub system_ns: u64,
    /// Largest resident set so far, in bytes.
    pub max_rss_bytes: u64,
}

/// When failed operations are retried. Only the load phase retries.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryRule {
    /// Attempts after the first.
    pub limit: u32,
    /// Mean delay before a retry, in nanoseconds; the delay varies by ± 20 %.
    pub interval_ns: u64,
}

/// A deployment under load with its own client.
pub struct Pair {
    /// Each pair has its own workload, which tracks the inserted documents.
    pub workload: Arc<Workload>,
    pub backend: Backend,
    /// Concurrent connections, at least 1.
    pub clients: usize,
    /// Worker threads, 1 to `clients`, the same in each pair.
    pub threads: usize,
    /// CPUs of the worker threads; absent for the process's CPUs.
    pub cpus: Option<Vec<usize>>,
    /// Sets the memory policy of each worker thread before it starts; absent to keep the process's policy.
    pub memory: Option<SetMemory>,
    /// Whether to pin each worker thread to one of the CPUs.
    pub pin: bool,
}

impl Pair {
    /// A pair with `plan`'s numbers of clients and threads for `workload`: for its load phase or its run.
    pub fn from_plan(plan: &Plan, workload: Arc<Workload>, backend: Backend) -> Self {
        let client = &plan.client;
        let clients = match client.load_clients {
            Some(clients) if workload.is_load() => clients,
            _ => client.clients,
        };
        let clients = (clients as usize).max(1);
        Pair {
            workload,
            backend,
            clients,
            threads: (client.threads as usize).clamp(1, clients),
            cpus: None,
            memory: None,
            pin: client.pin,
        }
    }
}

/// One or two phases under one load.
///
/// All pairs start at the same moment and end together. Each pair performs the load phase on its own. In the other
/// phases, the rate and the number of operations are per pair, and all pairs take operations from one sequence, so that
/// no pair is left to run alone.
pub struct Job {
    /// At least one.
    pub pairs: Vec<Pair>,
    /// Phases in order: one, or a warm-up and a measure phase.
    pub phases: Vec<PhaseSpec>,
    /// When operations start.
    pub schedule: Schedule,
    /// Think time of a closed loop; unused by other schedules.
    pub think: Think,
    /// Seed of the schedule and the think times.
    pub seed: u64,
    /// Maximum wait for an answer.
    pub timeout: Duration,
    /// A worker without any connection gives up after this time, or after `timeout` if that is longer.
    pub give_up: Duration,
    /// When failed operations are retried.
    pub retry: RetryRule,
    /// Whether the first operation that finally fails ends the run.
    pub abort_on_failure: bool,
    pub clock: Clock,
    /// Ends the run early when set; workers also set it on a fatal error.
    pub stop: Arc<AtomicBool>,
    /// Reads the usage of this process for the windows; if absent, windows have only the CPU time of the worker
    /// threads.
    pub usage: Option<fn() -> ProcessUsage>,
    /// Called when the starts of the phases are known, shortly before the first one.
    pub on_planned: Option<OnPlanned>,
    /// Called when all workers have started.
    pub on_started: Option<OnStarted>,
    /// Called when the last worker has ended, before its last window is passed on.
    pub on_ended: Option<OnEnded>,
    /// Asked for the start once all connections are made; if absent, the run starts immediately.
    pub start_barrier: Option<StartBarrier>,
    /// Time from the start of a phase to the first arrival of a constant schedule, in nanoseconds, so that several
    /// generators for the same server take turns.
    pub arrival_offset_ns: u64,
}

impl Job {
    /// The job of `plan`: its load phase if the workloads of `pairs` are loads, otherwise its run. A load is a closed
    /// loop without think time and ends with the first failed operation.
    ///
    /// Everything outside the plan has a default that struct update can replace: a clock that starts now, its own stop
    /// flag, no usage, no retries, no callbacks, no offset.
    pub fn from_plan(plan: &Plan, pairs: Vec<Pair>) -> Self {
        let client = &plan.client;
        let load_operations = pairs.iter().filter_map(|pair| pair.workload.load_operations()).max();
        let load_phase = load_operations.map(|operations| PhaseSpec {
            kind: PhaseKind::Load,
            duration: None,
            operations: Some(operations),
        });
        Job {
            pairs,
            schedule: match load_phase {
                Some(_) => Schedule::Closed {},
                None => plan.schedule.clone(),
            },
            think: Think {
                mean_ns: match (load_phase, client.mean_think_time()) {
                    (None, Some(mean)) => u64::try_from(mean.0.as_nanos()).unwrap_or(u64::MAX),
                    _ => 0,
                },
                distribution: client.think_time_distribution.unwrap_or_default(),
            },
            abort_on_failure: load_phase.is_some(),
            phases: match load_phase {
                Some(phase) => vec![phase],
                None => PhaseSpec::run_from_plan(plan),
            },
            seed: client.seed,
            timeout: client.timeout.0,
            give_up: client.give_up.0,
            retry: RetryRule::default(),
            clock: Clock::start(),
            stop: Arc::new(AtomicBool::new(false)),
            usage: None,
            on_planned: None,
            on_started: None,
            on_ended: None,
            start_barrier: None,
            arrival_offset_ns: 0,
        }
    }

    /// Each pair loads all of its documents.
    pub(crate) fn is_load(&self) -> bool {
        self.phases.iter().any(|phase| phase.kind == PhaseKind::Load)
    }
}

/// Sets the memory policy of the calling thread, and returns the kernel's result.
pub type SetMemory = Arc<dyn Fn() -> std::io::Result<()> + Send + Sync>;

/// Waits, and returns the start in nanoseconds of the run's clock; a time in the past means immediately. `None` cancels
/// the run, which then ends without a window.
pub type StartBarrier = Box<dyn FnOnce() -> Option<u64> + Send>;

/// Receives the kinds and starts of the phases, in nanoseconds of the run's clock. After a phase without a time limit,
/// the start of the next phase is `u64::MAX`.
pub type OnPlanned = Box<dyn FnOnce(&[(PhaseKind, u64)]) + Send>;

/// Receives the planned start of the first phase, and the time when the last worker first looked for work at or after
/// it, both in nanoseconds of the run's clock. It is called before the first window, and not at all if the run ends
/// before its start.
pub type OnStarted = Box<dyn FnOnce(u64, u64) + Send>;

/// Called when every operation has ended and none will start. It may not be called if the run ends with an error.
pub type OnEnded = Box<dyn FnOnce() + Send>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Connector;
    use crate::workload::{Concerns, LoadTask};
    use dyno_plan::units::Span;

    fn plan() -> Plan {
        let mut plan = dyno_plan::builtin::find("a").unwrap();
        plan.data.records = 100;
        plan.client.clients = 3;
        plan.client.load_clients = Some(8);
        plan.client.threads = 4;
        plan.phases.warmup = Span::from_secs(2);
        plan.phases.duration = Some(Span::from_secs(5));
        plan.phases.operations = Some(1000);
        plan.client.think_time = Some(Span::from_secs(3));
        plan.schedule =
            Schedule::Constant { rate_per_s: 10.0, max_start_delay: Span::from_secs(1) };
        plan
    }

    fn job(plan: &Plan, workload: Workload) -> Job {
        let (target, credentials) = dyno_plan::uri::parse("mongodb://127.0.0.1:1").unwrap();
        let backend = Backend::Wire(Connector::new(&target, credentials).unwrap());
        Job::from_plan(plan, vec![Pair::from_plan(plan, Arc::new(workload), backend)])
    }

    #[test]
    fn a_run_has_phases_schedule_and_clients_of_its_plan() {
        let plan = plan();
        let job = job(&plan, Workload::mix(&plan, &Concerns::default()).unwrap());
        let phase = |kind, seconds, operations| PhaseSpec {
            kind,
            duration: Some(Duration::from_secs(seconds)),
            operations,
        };
        assert_eq!(
            job.phases,
            [phase(PhaseKind::Warmup, 2, None), phase(PhaseKind::Measure, 5, Some(1000))]
        );
        assert_eq!(job.schedule, plan.schedule);
        assert_eq!(job.think.mean_ns, 3_000_000_000);
        assert_eq!((job.pairs[0].clients, job.pairs[0].threads), (3, 3));
        assert!(!job.abort_on_failure);
    }

    #[test]
    fn a_load_is_a_closed_loop_that_ends_at_the_first_failure() {
        let plan = plan();
        let task = LoadTask { first: 0, count: 100, batch: 30, keep_existing: false };
        let workload = Workload::load(&plan, task, &Concerns::default()).unwrap();
        let job = job(&plan, workload);
        let load = PhaseSpec { kind: PhaseKind::Load, duration: None, operations: Some(4) };
        assert_eq!(job.phases, [load]);
        assert_eq!(job.schedule, Schedule::Closed {});
        assert_eq!(job.think.mean_ns, 0);
        assert_eq!((job.pairs[0].clients, job.pairs[0].threads), (8, 4));
        assert!(job.abort_on_failure);
    }
}
