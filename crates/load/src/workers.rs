//! The threads of a run: connects, starts the workers, and passes on each recording window as soon as all workers have
//! left it.

use crate::backend::poller::Poller;
use crate::backend::reconnect::ReconnectPool;
use crate::backend::{Backend, driver, wire};
use crate::clients::WorkerSetup;
use crate::collector::{Collector, Sink, WINDOW_NS};
use crate::connect::{Connected, Connector};
use crate::core::{Core, CoreOptions, Handover, PhaseWindow};
use crate::error::LoadError;
use crate::generator::Generator;
use crate::job::{Job, Pair, SetMemory};
use crate::pace::Pace;
use crate::recorder::Part;
use crate::schedule::Share;
use crate::start_latch::StartLatch;

use dyno_plan::model::Schedule;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between creating the threads and the first intended start, so that all of them are waiting by then.
const START_MARGIN_NS: u64 = 20_000_000;

/// Number of threads for the first connections.
const CONNECT_THREADS: usize = 16;

/// The time in nanoseconds, limited so that sums do not overflow.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(u64::MAX / 4, |ns| ns.min(u64::MAX / 4))
}

/// Performs the phases of `job`. `sink` receives every recording window in order, on this thread; an
/// error from it ends the run and is returned after the workers have ended.
///
/// # Errors
/// [`LoadError`] if the connections cannot be made, a worker has a fatal error, or `sink` fails. Everything recorded
/// until then has been passed to `sink`.
pub fn run(mut job: Job, sink: Sink<'_>) -> Result<(), LoadError> {
    let several = job.pairs.len() > 1;
    let mut connections = Vec::with_capacity(job.pairs.len());
    for (place, pair) in job.pairs.iter().enumerate() {
        connections
            .push(PairConnections::open(pair).map_err(|error| of_pair(several, place, error))?);
    }
    let (parts, handovers) = channel();
    let pair_count = job.pairs.len();
    let start_ns = match job.start_barrier.take() {
        Some(barrier) => match barrier() {
            Some(start_ns) => start_ns,
            None => return Ok(()),
        },
        None => 0,
    };
    let windows = phase_windows(&job, start_ns);
    if let (Some(on_planned), Some(phases)) = (job.on_planned.take(), windows.first()) {
        let starts: Vec<_> = phases.iter().map(|phase| (phase.kind, phase.start_ns)).collect();
        on_planned(&starts);
    }
    let latch = start_latch(&mut job, &windows);
    let workers = start_workers(&job, &windows, &mut connections, parts, latch.as_ref())?;
    let on_ended = job.on_ended.take();
    let mut collector =
        Collector::new(pair_count, workers.pairs, workers.spares, job.usage, on_ended);
    let sunk = collector.collect(&handovers, sink, &job.stop);
    let fault = join(workers.threads)?;
    drop(connections);
    sunk?;
    fault.map_or(Ok(()), |(pair, fault)| Err(of_pair(several, pair, fault)))
}

/// Counts the started workers, if the job has a callback.
fn start_latch(job: &mut Job, windows: &[Vec<PhaseWindow>]) -> Option<Arc<StartLatch>> {
    let on_started = job.on_started.take()?;
    let start_ns = windows.first()?.first()?.start_ns;
    let workers = job.pairs.iter().map(|pair| pair.threads).sum();
    let last = Box::new(move |now_ns| on_started(start_ns, now_ns));
    Some(Arc::new(StartLatch::new(workers, last)))
}

/// Adds the pair to an error, if there are several.
fn of_pair(several: bool, pair: usize, error: LoadError) -> LoadError {
    if several { LoadError::Pair { pair, source: Box::new(error) } } else { error }
}

/// The connections of one pair before its workers take them, and the threads that replace them later.
struct PairConnections {
    connections: Vec<Connected>,
    pool: Option<ReconnectPool>,
}

impl PairConnections {
    fn open(pair: &Pair) -> Result<Self, LoadError> {
        Ok(match &pair.backend {
            Backend::Wire(connector) => PairConnections {
                connections: connect_all(connector, pair.clients)?,
                pool: Some(ReconnectPool::start(connector).map_err(LoadError::Thread)?),
            },
            Backend::Driver(_) => PairConnections { connections: Vec::new(), pool: None },
        })
    }
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

/// The running workers, and the channels that return windows to them.
struct Workers {
    threads: Vec<(usize, JoinHandle<Result<(), LoadError>>)>,
    spares: Vec<Sender<Box<Part>>>,
    /// Pair of each worker.
    pairs: Vec<usize>,
}

/// The phases of each pair's workers.
fn phase_windows(job: &Job, start_ns: u64) -> Vec<Vec<PhaseWindow>> {
    let start_ns = start_ns.max(job.clock.now_ns() + START_MARGIN_NS);
    let shared = windows_of_pair(job, start_ns);
    (0..job.pairs.len())
        .map(|_| if job.is_load() { windows_of_pair(job, start_ns) } else { shared.clone() })
        .collect()
}

fn windows_of_pair(job: &Job, mut start_ns: u64) -> Vec<PhaseWindow> {
    let sharers = if job.is_load() { 1 } else { job.pairs.len() };
    job.phases
        .iter()
        .map(|phase| {
            let length_ns = phase
                .duration
                .map_or(u64::MAX, |length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
            let window = PhaseWindow {
                kind: phase.kind,
                start_ns,
                end_ns: start_ns.saturating_add(length_ns),
                operations: phase
                    .operations
                    .map_or(u64::MAX, |count| count.saturating_mul(sharers as u64)),
                numbers: Arc::new(AtomicU64::new(0)),
            };
            start_ns = window.end_ns;
            window
        })
        .collect()
}

fn start_workers(
    job: &Job,
    windows: &[Vec<PhaseWindow>],
    connections: &mut [PairConnections],
    parts: Sender<Handover>,
    latch: Option<&Arc<StartLatch>>,
) -> Result<Workers, LoadError> {
    let mut workers = Workers { threads: Vec::new(), spares: Vec::new(), pairs: Vec::new() };
    for (place, (pair, link)) in job.pairs.iter().zip(connections).enumerate() {
        let setup = worker_setup(job, pair);
        for (thread, affinity) in affinities(pair)?.into_iter().enumerate() {
            let worker = workers.threads.len();
            let (spare_sender, spares) = channel();
            let core = Core::new(CoreOptions {
                phases: windows[place].clone(),
                schedule: schedule_of(job),
                share: share(job, place, thread),
                worker: worker as u64,
                seed: job.seed,
                window_ns: WINDOW_NS,
                operations: pair.workload.operations.clone(),
                counted: pair.workload.counted(),
                thread_usage,
                latch: latch.cloned(),
                parts: parts.clone(),
                spares,
            });
            let body = worker_body(pair, thread, link, &setup, core)?;
            let guard = PanicGuard {
                worker: worker as u64,
                parts: parts.clone(),
                stop: Arc::clone(&job.stop),
            };
            let memory = pair.memory.clone();
            let started = std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .spawn(move || {
                    let _guard = guard;
                    pin_to(&affinity);
                    set_memory(memory.as_ref());
                    body()
                })
                .map_err(LoadError::Thread)?;
            workers.threads.push((place, started));
            workers.spares.push(spare_sender);
            workers.pairs.push(place);
        }
    }
    Ok(workers)
}

fn worker_setup(job: &Job, pair: &Pair) -> WorkerSetup {
    WorkerSetup {
        clock: job.clock,
        stop: Arc::clone(&job.stop),
        timeout_ns: nanoseconds(job.timeout),
        unreachable_limit_ns: nanoseconds(job.give_up.max(job.timeout)),
        retry: job.retry,
        abort_on_failure: job.abort_on_failure,
        pace: Pace::new(&job.schedule, job.think, pair.clients, job.seed),
    }
}

/// The schedule of all workers together.
fn schedule_of(job: &Job) -> Schedule {
    let mut schedule = job.schedule.clone();
    if let Schedule::Constant { rate_per_s, .. } | Schedule::Poisson { rate_per_s, .. } =
        &mut schedule
        && !job.is_load()
    {
        *rate_per_s *= job.pairs.len() as f64;
    }
    schedule
}

/// The schedule share of one worker.
fn share(job: &Job, pair: usize, thread: usize) -> Share {
    // Each pair loads by itself; otherwise, all workers take turns.
    let (before, sharers) = if job.is_load() {
        (&[][..], &job.pairs[pair..=pair])
    } else {
        (&job.pairs[..pair], &job.pairs[..])
    };
    let threads = |pairs: &[Pair]| pairs.iter().map(|pair| pair.threads as u64).sum::<u64>();
    Share {
        worker: threads(before) + thread as u64,
        worker_count: threads(sharers),
        offset_ns: job.arrival_offset_ns,
    }
}

/// Ends the run if a worker panics, because its windows would never come.
struct PanicGuard {
    worker: u64,
    parts: Sender<Handover>,
    stop: Arc<AtomicBool>,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
            // The collector may be gone.
            let _ = self.parts.send(Handover { worker: self.worker, part: None, last: true });
        }
    }
}

type WorkerBody = Box<dyn FnOnce() -> Result<(), LoadError> + Send>;

/// Body of worker `thread` of a pair. It takes its share of the connections from `link`.
fn worker_body(
    pair: &Pair,
    thread: usize,
    link: &mut PairConnections,
    setup: &WorkerSetup,
    core: Core,
) -> Result<WorkerBody, LoadError> {
    let setup = setup.clone();
    let generator = Generator::new(Arc::clone(&pair.workload));
    let clients = pair.clients / pair.threads + usize::from(thread < pair.clients % pair.threads);
    match (&pair.backend, &link.pool) {
        (Backend::Driver(target), _) => {
            let target = target.as_ref().clone();
            Ok(Box::new(move || driver::run(setup, core, generator, target, clients)))
        }
        (Backend::Wire(connector), Some(pool)) => {
            let kept = link.connections.len().saturating_sub(clients);
            let connections = link.connections.split_off(kept);
            let poller = Poller::new().map_err(LoadError::Poll)?;
            let reconnector = pool.reconnector(poller.waker());
            let link = (connections, connector.retries());
            let worker = wire::Worker::new(setup, core, generator, poller, reconnector, link)
                .map_err(LoadError::Poll)?;
            Ok(Box::new(move || worker.run()))
        }
        (Backend::Wire(_), None) => unreachable!("the wire backend always has a pool"),
    }
}

/// CPUs of each worker thread of a pair; empty to use the process's CPUs.
fn affinities(pair: &Pair) -> Result<Vec<Vec<usize>>, LoadError> {
    let cpus = match (&pair.cpus, pair.pin) {
        (Some(cpus), _) => cpus.clone(),
        (None, true) => allowed_cores()?,
        (None, false) => Vec::new(),
    };
    Ok((0..pair.threads)
        .map(|thread| {
            if pair.pin && !cpus.is_empty() {
                vec![cpus[thread % cpus.len()]]
            } else {
                cpus.clone()
            }
        })
        .collect())
}

fn allowed_cores() -> Result<Vec<usize>, LoadError> {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .map_err(|source| LoadError::Pin(source.into()))?;
    Ok((0..nix::sched::CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

fn pin_to(cpus: &[usize]) {
    if cpus.is_empty() {
        return;
    }
    let mut set = nix::sched::CpuSet::new();
    let pinned = cpus
        .iter()
        .try_for_each(|&cpu| set.set(cpu))
        .and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set));
    if let Err(error) = pinned {
        tracing::warn!("cannot pin a worker to the cores {cpus:?}: {error}");
    }
}

fn set_memory(memory: Option<&SetMemory>) {
    if let Some(Err(error)) = memory.map(|set| set()) {
        tracing::warn!("cannot set the memory policy of a worker: {error}");
    }
}

/// User and system CPU time of the calling thread so far, in nanoseconds; zeros if unknown.
fn thread_usage() -> (u64, u64) {
    let Ok(usage) = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD)
    else {
        return (0, 0);
    };
    let ns = |time: nix::sys::time::TimeVal| {
        let us = time.tv_sec() * 1_000_000 + time.tv_usec();
        u64::try_from(us).unwrap_or(0) * 1_000
    };
    (ns(usage.user_time()), ns(usage.system_time()))
}

/// Waits for all workers. Returns the first error, with its pair.
fn join(
    threads: Vec<(usize, JoinHandle<Result<(), LoadError>>)>,
) -> Result<Option<(usize, LoadError)>, LoadError> {
    let mut fault = None;
    let mut panicked = false;
    for (pair, thread) in threads {
        match thread.join() {
            Ok(end) => fault = fault.or(end.err().map(|fault| (pair, fault))),
            Err(_) => panicked = true,
        }
    }
    if panicked { Err(LoadError::WorkerPanicked) } else { Ok(fault) }
}
