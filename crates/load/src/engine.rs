//! Threads, phases and the end of a run: makes the workers, merges what they hand over into
//! recording windows, and passes each window on as soon as all workers have left it.

use crate::backend::poller::Poller;
use crate::backend::reconnect::ReconnectPool;
use crate::backend::{RetryRule, WorkerEnd, WorkerFault, WorkerSetup, driver, wire};
use crate::clock::{Clock, SECOND_NS};
use crate::connect::{Connected, Connector};
use crate::core::{Core, CoreOptions, Handover, PhaseWindow};
use crate::error::LoadError;
use crate::operation::OperationKind;
use crate::recorder::{MergedParts, Part};
use crate::schedule::Share;
use crate::workload::{Generator, Workload};
use dyno_plan::model::Schedule;
use dyno_record::interval::IntervalRecord;
use dyno_record::model::PhaseKind;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Length of a recording window.
pub const INTERVAL_NS: u64 = SECOND_NS;

/// Time between making the threads and the first intended start, so that all of them are waiting by then.
const START_MARGIN_NS: u64 = 20_000_000;

/// A worker without any connection gives up after this time, or after the operation timeout if that is longer.
const UNREACHABLE_LIMIT_NS: u64 = 30 * SECOND_NS;

/// Threads that make the first connections.
const CONNECT_THREADS: usize = 16;

/// What to do in one phase.
#[derive(Clone, Copy, Debug)]
pub struct PhaseSpec {
    /// Purpose.
    pub kind: PhaseKind,
    /// Longest time; no limit when absent.
    pub duration: Option<Duration>,
    /// Operations; no limit when absent.
    pub operations: Option<u64>,
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

/// Who performs the operations.
pub enum Transporter {
    /// Our own protocol path.
    Wire(Connector),
    /// The official driver.
    Driver(Box<driver::DriverTarget>),
}

/// One or two phases under one load.
pub struct Job {
    /// What the operations are.
    pub workload: Arc<Workload>,
    /// Who performs them.
    pub transporter: Transporter,
    /// Phases in order: one, or a warm-up and a measure phase.
    pub phases: Vec<PhaseSpec>,
    /// When operations start.
    pub schedule: Schedule,
    /// Concurrent connections, at least 1.
    pub clients: usize,
    /// Worker threads, 1 to `clients`.
    pub threads: usize,
    /// Pin each worker thread to one core.
    pub pin: bool,
    /// Seed of the schedule.
    pub seed: u64,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// When failed operations are sent again.
    pub retry: RetryRule,
    /// End the run with the first operation that finally fails.
    pub abort_on_failure: bool,
    /// Time base of the run.
    pub clock: Clock,
    /// Set it to end the run early; the engine sets it as well when it ends the run itself.
    pub stop: Arc<AtomicBool>,
    /// Reads the usage of this process.
    pub usage: fn() -> ProcessUsage,
}

/// Performs the phases of `job`. `sink` receives every recording window in order, on this thread; an
/// error from it ends the run and is returned after the workers have ended.
///
/// # Errors
/// [`LoadError`] if the connections cannot be made, a worker meets a fault that ends the run, or `sink` fails.
/// What was recorded until then has been passed to `sink`.
pub fn run(
    job: Job,
    sink: &mut dyn FnMut(IntervalRecord) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
) -> Result<(), LoadError> {
    let connections = match &job.transporter {
        Transporter::Wire(connector) => connect_all(connector, job.clients)?,
        Transporter::Driver(_) => Vec::new(),
    };
    let pool = match &job.transporter {
        Transporter::Wire(connector) => {
            Some(ReconnectPool::start(connector).map_err(LoadError::Thread)?)
        }
        Transporter::Driver(_) => None,
    };
    let (parts, handovers) = channel();
    let team = start_workers(&job, connections, pool.as_ref(), parts)?;
    let mut collector = Collector::new(team.spares, job.usage);
    let sunk = collector.collect(&handovers, sink, &job.stop);
    let fault = join(team.threads)?;
    drop(pool);
    sunk?;
    fault.map_or(Ok(()), |fault| Err(LoadError::from(fault)))
}

fn connect_all(connector: &Connector, clients: usize) -> Result<Vec<Connected>, LoadError> {
    let threads = clients.min(CONNECT_THREADS);
    let results: Vec<Result<Vec<Connected>, LoadError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    (thread..clients)
                        .step_by(threads)
                        .map(|_| connector.connect().map_err(LoadError::Connect))
                        .collect()
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or(Err(LoadError::WorkerPanicked)))
            .collect()
    });
    let mut connections = Vec::with_capacity(clients);
    for result in results {
        connections.extend(result?);
    }
    Ok(connections)
}

/// The running workers and the way to give windows back to them.
struct Team {
    threads: Vec<JoinHandle<WorkerEnd>>,
    spares: Vec<Sender<Box<Part>>>,
}

fn phase_windows(job: &Job) -> Vec<PhaseWindow> {
    let mut start_ns = job.clock.now_ns() + START_MARGIN_NS;
    job.phases
        .iter()
        .map(|phase| {
            let length_ns = phase.duration.map_or(u64::MAX, |length| {
                u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
            });
            let window = PhaseWindow {
                kind: phase.kind,
                start_ns,
                end_ns: start_ns.saturating_add(length_ns),
                operations: phase.operations.unwrap_or(u64::MAX),
                numbers: Arc::new(AtomicU64::new(0)),
            };
            start_ns = window.end_ns;
            window
        })
        .collect()
}

fn start_workers(
    job: &Job,
    connections: Vec<Connected>,
    pool: Option<&ReconnectPool>,
    parts: Sender<Handover>,
) -> Result<Team, LoadError> {
    let kinds = job.workload.kinds();
    let setup = WorkerSetup {
        clock: job.clock,
        stop: Arc::clone(&job.stop),
        timeout_ns: u64::try_from(job.timeout.as_nanos()).unwrap_or(u64::MAX / 4),
        unreachable_limit_ns: UNREACHABLE_LIMIT_NS
            .max(u64::try_from(job.timeout.as_nanos()).unwrap_or(u64::MAX / 4)),
        retry: job.retry,
        abort_on_failure: job.abort_on_failure,
    };
    let cores = if job.pin {
        allowed_cores()?
    } else {
        Vec::new()
    };
    let windows = phase_windows(job);
    let mut team = Team {
        threads: Vec::new(),
        spares: Vec::new(),
    };
    let mut remaining = connections;
    for worker in 0..job.threads {
        let clients = job.clients / job.threads + usize::from(worker < job.clients % job.threads);
        let (spare_sender, spares) = channel();
        let core = Core::new(CoreOptions {
            phases: windows.clone(),
            schedule: job.schedule.clone(),
            share: Share {
                worker: worker as u64,
                worker_count: job.threads as u64,
            },
            seed: job.seed,
            interval_ns: INTERVAL_NS,
            kinds: kinds.clone(),
            parts: parts.clone(),
            spares,
        });
        let generator = Generator::new(Arc::clone(&job.workload));
        let core_number = cores.get(worker % cores.len().max(1)).copied();
        let mine = remaining.split_off(remaining.len().saturating_sub(clients));
        let body = worker_body(job, &setup, core, generator, mine, clients, pool)?;
        let farewell = Farewell {
            worker: worker as u64,
            parts: parts.clone(),
            stop: Arc::clone(&job.stop),
        };
        let thread = std::thread::Builder::new()
            .name(format!("worker-{worker}"))
            .spawn(move || {
                let _farewell = farewell;
                pin_to(core_number);
                body()
            })
            .map_err(LoadError::Thread)?;
        team.threads.push(thread);
        team.spares.push(spare_sender);
    }
    Ok(team)
}

/// Ends the run when a worker panics: its windows would be waited for in vain.
struct Farewell {
    worker: u64,
    parts: Sender<Handover>,
    stop: Arc<AtomicBool>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            // Without a collector there is nobody to tell.
            let _ = self.parts.send(Handover {
                worker: self.worker,
                part: None,
                last: true,
            });
        }
    }
}

type WorkerBody = Box<dyn FnOnce() -> WorkerEnd + Send>;

fn worker_body(
    job: &Job,
    setup: &WorkerSetup,
    core: Core,
    generator: Generator,
    connections: Vec<Connected>,
    clients: usize,
    pool: Option<&ReconnectPool>,
) -> Result<WorkerBody, LoadError> {
    let setup = setup.clone();
    match (&job.transporter, pool) {
        (Transporter::Driver(target), _) => {
            let target = target.as_ref().clone();
            Ok(Box::new(move || {
                driver::run(setup, core, generator, target, clients)
            }))
        }
        (Transporter::Wire(_), Some(pool)) => {
            let poller = Poller::new().map_err(LoadError::Poll)?;
            let reconnector = pool.reconnector(poller.waker());
            let worker =
                wire::Worker::new(setup, core, generator, poller, reconnector, connections)
                    .map_err(LoadError::Poll)?;
            Ok(Box::new(move || worker.run()))
        }
        (Transporter::Wire(_), None) => unreachable!("the wire backend always has a pool"),
    }
}

fn allowed_cores() -> Result<Vec<usize>, LoadError> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .map_err(|source| LoadError::Pin(source.into()))?;
    Ok((0..nix::sched::CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect())
}

fn pin_to(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    let mut set = nix::sched::CpuSet::new();
    let pinned = set
        .set(cpu)
        .and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set));
    if let Err(error) = pinned {
        tracing::warn!("cannot pin a worker to core {cpu}: {error}");
    }
}

fn join(threads: Vec<JoinHandle<WorkerEnd>>) -> Result<Option<WorkerFault>, LoadError> {
    let mut fault = None;
    let mut panicked = false;
    for thread in threads {
        match thread.join() {
            Ok(end) => fault = fault.or(end.fault),
            Err(_) => panicked = true,
        }
    }
    if panicked {
        Err(LoadError::WorkerPanicked)
    } else {
        Ok(fault)
    }
}

/// Merges the windows of all workers.
struct Collector {
    workers: Vec<WorkerQueue>,
    spares: Vec<Sender<Box<Part>>>,
    usage: fn() -> ProcessUsage,
    last_usage: ProcessUsage,
}

#[derive(Default)]
struct WorkerQueue {
    parts: VecDeque<Box<Part>>,
    finished: bool,
}

impl Collector {
    fn new(spares: Vec<Sender<Box<Part>>>, usage: fn() -> ProcessUsage) -> Self {
        let workers = spares.iter().map(|_| WorkerQueue::default()).collect();
        Collector {
            workers,
            spares,
            usage,
            last_usage: usage(),
        }
    }

    /// Receives until every worker has ended. After an error of `sink` it stops the run and throws the rest away.
    fn collect(
        &mut self,
        handovers: &Receiver<Handover>,
        sink: &mut dyn FnMut(
            IntervalRecord,
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
        stop: &AtomicBool,
    ) -> Result<(), LoadError> {
        let mut failure = None;
        while let Ok(handover) = handovers.recv() {
            let queue = &mut self.workers[handover.worker as usize];
            queue.parts.extend(handover.part);
            queue.finished = handover.last;
            while let Some(interval) = self.next_complete() {
                if failure.is_none()
                    && !is_void(&interval)
                    && let Err(error) = sink(interval)
                {
                    stop.store(true, std::sync::atomic::Ordering::Relaxed);
                    failure = Some(LoadError::Sink(error));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The earliest window if no worker can still add to it.
    fn next_complete(&mut self) -> Option<IntervalRecord> {
        if self
            .workers
            .iter()
            .any(|worker| worker.parts.is_empty() && !worker.finished)
        {
            return None;
        }
        // Windows of a later phase start later, so the start alone orders them.
        let start_ns = self
            .workers
            .iter()
            .filter_map(|worker| worker.parts.front())
            .map(|part| part.start_ns)
            .min()?;
        let mut merged: Option<MergedParts> = None;
        for (worker, spares) in self.workers.iter_mut().zip(&self.spares) {
            if worker
                .parts
                .front()
                .is_none_or(|part| part.start_ns != start_ns)
            {
                continue;
            }
            let Some(part) = worker.parts.pop_front() else {
                continue;
            };
            merged
                .get_or_insert_with(|| MergedParts::like(&part))
                .add(&part);
            // A worker that has ended needs no window back.
            let _ = spares.send(part);
        }
        merged.map(|merged| self.with_usage(merged.into_interval()))
    }

    fn with_usage(&mut self, mut interval: IntervalRecord) -> IntervalRecord {
        let usage = (self.usage)();
        interval.cpu_user_ns = usage.user_ns.saturating_sub(self.last_usage.user_ns);
        interval.cpu_system_ns = usage.system_ns.saturating_sub(self.last_usage.system_ns);
        interval.max_rss_bytes = usage.max_rss_bytes;
        self.last_usage = usage;
        interval
    }
}

/// A last window without length or content: the phase ended with the window before.
fn is_void(interval: &IntervalRecord) -> bool {
    interval.duration_ns == 0
        && interval.succeeded + interval.failed + interval.arrivals_due + interval.reconnects == 0
}

/// Kinds that need statistics when `weighted` kinds are performed.
pub(crate) fn recorded_kinds(weighted: &[OperationKind]) -> Vec<OperationKind> {
    let mut kinds = weighted.to_vec();
    if kinds.contains(&OperationKind::ReadModifyWrite) {
        kinds.extend([OperationKind::Read, OperationKind::Update]);
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
