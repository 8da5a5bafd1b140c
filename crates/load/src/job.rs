//! What one run of the workers is to do: who performs which operations, in which phases, and when.
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

/// What to do in one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpec {
    /// Purpose.
    pub kind: PhaseKind,
    /// Longest time; no limit when absent.
    pub duration: Option<Duration>,
    /// Operations; no limit when absent.
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

/// CPU time and memory of this process, as the caller reads them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessUsage {
    /// User-mode CPU time so far, in nanoseconds.
    pub user_ns: u64,
    /// Kernel-mode CPU time so far, in nanoseconds.
    pub system_ns: u64,
    /// Largest resident set so far, in bytes.
    pub max_rss_bytes: u64,
}

/// When failed operations are sent again. Only the load phase does that.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryRule {
    /// Further attempts after the first.
    pub limit: u32,
    /// Mean delay before a further attempt, in nanoseconds; the delay varies by ± 20 %.
    pub interval_ns: u64,
}

/// One deployment under load and the client of its own that loads it.
pub struct Pair {
    /// What the operations are. Each pair has its own: it knows which documents were inserted.
    pub workload: Arc<Workload>,
    /// What performs them.
    pub backend: Backend,
    /// Concurrent connections, at least 1.
    pub clients: usize,
    /// Worker threads, 1 to `clients`, the same in each pair.
    pub threads: usize,
    /// CPUs that the worker threads may use; those of this process when absent.
    pub cpus: Option<Vec<usize>>,
    /// Sets the memory policy of each worker thread before it begins; that of this process stays when absent.
    pub memory: Option<SetMemory>,
    /// Pin each worker thread to one of these CPUs.
    pub pin: bool,
}

impl Pair {
    /// A pair with the clients and threads that `plan` has for `workload`: those of its load phase or of its run.
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
/// With several pairs all of them start at the same moment and end together. The load phase is done by
/// each pair on its own; of the other phases the rate and the number of operations are those of one
/// pair, and the operations come from one sequence for all of them, so that none is left to run alone.
pub struct Job {
    /// At least one.
    pub pairs: Vec<Pair>,
    /// Phases in order: one, or a warm-up and a measure phase.
    pub phases: Vec<PhaseSpec>,
    /// When operations start.
    pub schedule: Schedule,
    /// The think time of a closed loop; other schedules have none.
    pub think: Think,
    /// Seed of the schedule and of the think times.
    pub seed: u64,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// A worker without any connection gives up after this time, or after `timeout` if that is longer.
    pub give_up: Duration,
    /// When failed operations are sent again.
    pub retry: RetryRule,
    /// End the run with the first operation that finally fails.
    pub abort_on_failure: bool,
    /// Time base of the run.
    pub clock: Clock,
    /// Set it to end the run early; the workers set it as well when a fault ends the run.
    pub stop: Arc<AtomicBool>,
    /// Reads the usage of this process, which windows then hold; else they hold the CPU time of the worker threads alone.
    pub usage: Option<fn() -> ProcessUsage>,
    /// Called when the starts of the phases are known, shortly before the first one.
    pub on_planned: Option<OnPlanned>,
    /// Called when all workers have started.
    pub on_started: Option<OnStarted>,
    /// Called when the last worker has ended, before its last window is passed on.
    pub on_ended: Option<OnEnded>,
    /// Asked for the start once all connections are made; at once when absent.
    pub start_barrier: Option<StartBarrier>,
    /// From the start of a phase to the first arrival of a constant schedule, in nanoseconds: several generators that load
    /// the same server take turns.
    pub arrival_offset_ns: u64,
}

impl Job {
    /// What `plan` says about the load phase if the workloads of `pairs` are loads, and else about its run.
    ///
    /// A load is a closed loop without think time and ends with the first operation that fails. Everything that a plan does not hold
    /// has a default, to be replaced by struct update: a clock that starts now, a stop flag of its own, no usage,
    /// no retries, no callbacks, no offset.
    pub fn from_plan(plan: &Plan, pairs: Vec<Pair>) -> Self {
        let client = &plan.client;
        let load_operations = pairs
            .iter()
            .filter_map(|pair| pair.workload.load_operations())
            .max();
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
        self.phases
            .iter()
            .any(|phase| phase.kind == PhaseKind::Load)
    }
}

/// Sets the memory policy of the thread that calls it, and answers what the kernel says.
pub type SetMemory = Arc<dyn Fn() -> std::io::Result<()> + Send + Sync>;

/// Waits, and gives the start in nanoseconds of the run's clock; one that has passed means at once. `None`: the run is not
/// wanted any more, and ends without a window.
pub type StartBarrier = Box<dyn FnOnce() -> Option<u64> + Send>;

/// Receives the kinds of the phases with their starts, in nanoseconds of the run's clock. The start of a
/// phase after one without a limit of time is `u64::MAX`.
pub type OnPlanned = Box<dyn FnOnce(&[(PhaseKind, u64)]) + Send>;

/// Receives the planned start of the first phase, and when the last worker first looked for work at or after it, both in
/// nanoseconds of the run's clock. It is called before the first window, and not at all if the run ends before its start.
pub type OnStarted = Box<dyn FnOnce(u64, u64) + Send>;

/// Told that every operation has ended and none will start. A run that ends with a fault may not tell it.
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
        plan.schedule = Schedule::Constant {
            rate_per_s: 10.0,
            max_start_delay: Span::from_secs(1),
        };
        plan
    }

    fn job(plan: &Plan, workload: Workload) -> Job {
        let (target, credentials) = dyno_plan::uri::parse("mongodb://127.0.0.1:1").unwrap();
        let backend = Backend::Wire(Connector::new(&target, credentials).unwrap());
        Job::from_plan(
            plan,
            vec![Pair::from_plan(plan, Arc::new(workload), backend)],
        )
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
            [
                phase(PhaseKind::Warmup, 2, None),
                phase(PhaseKind::Measure, 5, Some(1000))
            ]
        );
        assert_eq!(job.schedule, plan.schedule);
        assert_eq!(job.think.mean_ns, 3_000_000_000);
        assert_eq!((job.pairs[0].clients, job.pairs[0].threads), (3, 3));
        assert!(!job.abort_on_failure);
    }

    #[test]
    fn a_load_is_a_closed_loop_that_ends_at_the_first_failure() {
        let plan = plan();
        let task = LoadTask {
            first: 0,
            count: 100,
            batch: 30,
            keep_existing: false,
        };
        let workload = Workload::load(&plan, task, &Concerns::default()).unwrap();
        let job = job(&plan, workload);
        let load = PhaseSpec {
            kind: PhaseKind::Load,
            duration: None,
            operations: Some(4),
        };
        assert_eq!(job.phases, [load]);
        assert_eq!(job.schedule, Schedule::Closed {});
        assert_eq!(job.think.mean_ns, 0);
        assert_eq!((job.pairs[0].clients, job.pairs[0].threads), (8, 4));
        assert!(job.abort_on_failure);
    }
}
