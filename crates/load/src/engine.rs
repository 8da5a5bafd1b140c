//! Threads, phases and the end of a run: makes the workers, merges what they hand over into
//! recording windows, and passes each window on as soon as all workers have left it.

use crate::awake::Waking;
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

/// One deployment under load and the client of its own that loads it.
pub struct Pair {
    /// What the operations are. Each pair has its own: it knows which documents were inserted.
    pub workload: Arc<Workload>,
    /// Who performs them.
    pub transporter: Transporter,
    /// Concurrent connections, at least 1.
    pub clients: usize,
    /// Worker threads, 1 to `clients`, the same in each pair.
    pub threads: usize,
    /// CPUs that the worker threads may use; those of this process when absent.
    pub cpus: Option<Vec<usize>>,
    /// Pin each worker thread to one of these CPUs.
    pub pin: bool,
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
    /// Seed of the schedule.
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
    /// Set it to end the run early; the engine sets it as well when it ends the run itself.
    pub stop: Arc<AtomicBool>,
    /// Reads the usage of this process.
    pub usage: fn() -> ProcessUsage,
    /// Told when the phases will start, shortly before they do.
    pub announce: Option<Announce>,
    /// Told when all workers are there.
    pub awake: Option<Awake>,
    /// Asked for the start once all connections are made; at once when absent.
    pub hold: Option<Hold>,
    /// From the start of a phase to the first arrival of a constant schedule, in nanoseconds: several generators that load
    /// the same server take turns.
    pub shift_ns: u64,
}

/// Waits, and gives the start in nanoseconds of the run's clock; one that has passed means at once. `None`: the run is not
/// wanted any more, and ends without a window.
pub type Hold = Box<dyn FnOnce() -> Option<u64> + Send>;

/// Receives the kinds of the phases with their starts, in nanoseconds of the run's clock. The start of a
/// phase after one without a limit of time is `u64::MAX`.
pub type Announce = Box<dyn FnOnce(&[(PhaseKind, u64)]) + Send>;

/// Receives the planned start of the first phase, and when the last worker first looked for work at or after it, both in
/// nanoseconds of the run's clock. It is told before the first window, and not at all if the run ends before its start.
pub type Awake = Box<dyn FnOnce(u64, u64) + Send>;

/// A time that can be added to others without overflow.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(u64::MAX / 4, |ns| ns.min(u64::MAX / 4))
}

/// One recording window, over all pairs and by pair.
pub struct Window {
    /// All pairs together: counts added, histograms merged, CPU time of the whole process.
    pub merged: IntervalRecord,
    /// By pair, if there are several: absent where a pair did not take part. After the load phase all
    /// have the length of `merged`, and a pair that has nothing more to do is there without content, so
    /// that rates of pairs add up to that of all. CPU time is that of the pair's worker threads.
    pub pairs: Vec<Option<IntervalRecord>>,
}

/// Receives the windows of a run.
pub type Sink<'a> =
    &'a mut dyn FnMut(Window) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Performs the phases of `job`. `sink` receives every recording window in order, on this thread; an
/// error from it ends the run and is returned after the workers have ended.
///
/// # Errors
/// [`LoadError`] if the connections cannot be made, a worker meets a fault that ends the run, or `sink` fails.
/// What was recorded until then has been passed to `sink`.
pub fn run(mut job: Job, sink: Sink<'_>) -> Result<(), LoadError> {
    let several = job.pairs.len() > 1;
    let mut links = Vec::with_capacity(job.pairs.len());
    for (place, pair) in job.pairs.iter().enumerate() {
        links.push(Link::open(pair).map_err(|error| of_pair(several, place, error))?);
    }
    let (parts, handovers) = channel();
    let pair_count = job.pairs.len();
    let start_ns = match job.hold.take() {
        Some(hold) => match hold() {
            Some(start_ns) => start_ns,
            None => return Ok(()),
        },
        None => 0,
    };
    let windows = phase_windows(&job, start_ns);
    if let (Some(announce), Some(phases)) = (job.announce.take(), windows.first()) {
        let starts: Vec<_> = phases
            .iter()
            .map(|phase| (phase.kind, phase.start_ns))
            .collect();
        announce(&starts);
    }
    let waking = waking(&mut job, &windows);
    let team = start_workers(&job, &windows, &mut links, parts, waking.as_ref())?;
    let mut collector = Collector::new(pair_count, team.pairs, team.spares, job.usage);
    let sunk = collector.collect(&handovers, sink, &job.stop);
    let fault = join(team.threads)?;
    drop(links);
    sunk?;
    fault.map_or(Ok(()), |(pair, fault)| {
        Err(of_pair(several, pair, LoadError::from(fault)))
    })
}

fn waking(job: &mut Job, windows: &[Vec<PhaseWindow>]) -> Option<Arc<Waking>> {
    let tell = job.awake.take()?;
    let start_ns = windows.first()?.first()?.start_ns;
    let workers = job.pairs.iter().map(|pair| pair.threads).sum();
    let told = Box::new(move |now_ns| tell(start_ns, now_ns));
    Some(Arc::new(Waking::new(workers, told)))
}

/// Says which pair an error is about, if there are several.
fn of_pair(several: bool, pair: usize, error: LoadError) -> LoadError {
    if several {
        LoadError::Pair {
            pair,
            source: Box::new(error),
        }
    } else {
        error
    }
}

/// The connections of one pair before its workers take them, and the threads that replace them later.
struct Link {
    connections: Vec<Connected>,
    pool: Option<ReconnectPool>,
}

impl Link {
    fn open(pair: &Pair) -> Result<Self, LoadError> {
        Ok(match &pair.transporter {
            Transporter::Wire(connector) => Link {
                connections: connect_all(connector, pair.clients)?,
                pool: Some(ReconnectPool::start(connector).map_err(LoadError::Thread)?),
            },
            Transporter::Driver(_) => Link {
                connections: Vec::new(),
                pool: None,
            },
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

/// The running workers and the way to give windows back to them.
struct Team {
    threads: Vec<(usize, JoinHandle<WorkerEnd>)>,
    spares: Vec<Sender<Box<Part>>>,
    /// Pair of each worker.
    pairs: Vec<usize>,
}

/// The phases as the workers of each pair see them.
fn phase_windows(job: &Job, start_ns: u64) -> Vec<Vec<PhaseWindow>> {
    let start_ns = start_ns.max(job.clock.now_ns() + START_MARGIN_NS);
    let shared = windows_of_pair(job, start_ns);
    (0..job.pairs.len())
        .map(|_| {
            if is_load(job) {
                windows_of_pair(job, start_ns)
            } else {
                shared.clone()
            }
        })
        .collect()
}

/// Each pair loads all of its documents.
fn is_load(job: &Job) -> bool {
    job.phases.iter().any(|phase| phase.kind == PhaseKind::Load)
}

fn windows_of_pair(job: &Job, mut start_ns: u64) -> Vec<PhaseWindow> {
    let sharers = if is_load(job) { 1 } else { job.pairs.len() };
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
    links: &mut [Link],
    parts: Sender<Handover>,
    waking: Option<&Arc<Waking>>,
) -> Result<Team, LoadError> {
    let setup = WorkerSetup {
        clock: job.clock,
        stop: Arc::clone(&job.stop),
        timeout_ns: nanoseconds(job.timeout),
        unreachable_limit_ns: nanoseconds(job.give_up.max(job.timeout)),
        retry: job.retry,
        abort_on_failure: job.abort_on_failure,
    };
    let mut team = Team {
        threads: Vec::new(),
        spares: Vec::new(),
        pairs: Vec::new(),
    };
    for (place, (pair, link)) in job.pairs.iter().zip(links).enumerate() {
        for (thread, affinity) in affinities(pair)?.into_iter().enumerate() {
            let worker = team.threads.len();
            let (spare_sender, spares) = channel();
            let core = Core::new(CoreOptions {
                phases: windows[place].clone(),
                schedule: schedule_of(job),
                share: share(job, place, thread),
                worker: worker as u64,
                seed: job.seed,
                interval_ns: INTERVAL_NS,
                kinds: pair.workload.kinds(),
                thread_usage,
                waking: waking.cloned(),
                parts: parts.clone(),
                spares,
            });
            let body = worker_body(pair, thread, link, &setup, core)?;
            let farewell = Farewell {
                worker: worker as u64,
                parts: parts.clone(),
                stop: Arc::clone(&job.stop),
            };
            let started = std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .spawn(move || {
                    let _farewell = farewell;
                    pin_to(&affinity);
                    body()
                })
                .map_err(LoadError::Thread)?;
            team.threads.push((place, started));
            team.spares.push(spare_sender);
            team.pairs.push(place);
        }
    }
    Ok(team)
}

/// The schedule of all workers together.
fn schedule_of(job: &Job) -> Schedule {
    let mut schedule = job.schedule.clone();
    if let Schedule::Constant { rate_per_s, .. } | Schedule::Poisson { rate_per_s, .. } =
        &mut schedule
        && !is_load(job)
    {
        *rate_per_s *= job.pairs.len() as f64;
    }
    schedule
}

/// The part of the schedule that one worker has.
fn share(job: &Job, pair: usize, thread: usize) -> Share {
    let before: usize = job.pairs[..pair].iter().map(|pair| pair.threads).sum();
    if is_load(job) {
        Share {
            worker: thread as u64,
            worker_count: job.pairs[pair].threads as u64,
            shift_ns: job.shift_ns,
        }
    } else {
        Share {
            worker: (before + thread) as u64,
            worker_count: job.pairs.iter().map(|pair| pair.threads as u64).sum(),
            shift_ns: job.shift_ns,
        }
    }
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

/// What worker `thread` of a pair does. It takes its share of the connections from `link`.
fn worker_body(
    pair: &Pair,
    thread: usize,
    link: &mut Link,
    setup: &WorkerSetup,
    core: Core,
) -> Result<WorkerBody, LoadError> {
    let setup = setup.clone();
    let generator = Generator::new(Arc::clone(&pair.workload));
    let clients = pair.clients / pair.threads + usize::from(thread < pair.clients % pair.threads);
    match (&pair.transporter, &link.pool) {
        (Transporter::Driver(target), _) => {
            let target = target.as_ref().clone();
            Ok(Box::new(move || {
                driver::run(setup, core, generator, target, clients)
            }))
        }
        (Transporter::Wire(_), Some(pool)) => {
            let kept = link.connections.len().saturating_sub(clients);
            let connections = link.connections.split_off(kept);
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

/// The CPUs of each worker thread of a pair; empty where it may use those of the process.
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
    Ok((0..nix::sched::CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .collect())
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

/// User and system CPU time of the calling thread so far, in nanoseconds; zeros where it is not known.
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

/// Waits for all workers. The first fault, with the pair that it is about.
fn join(
    threads: Vec<(usize, JoinHandle<WorkerEnd>)>,
) -> Result<Option<(usize, WorkerFault)>, LoadError> {
    let mut fault = None;
    let mut panicked = false;
    for (pair, thread) in threads {
        match thread.join() {
            Ok(end) => fault = fault.or(end.fault.map(|fault| (pair, fault))),
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
    pair_count: usize,
    /// By pair: the phase that it took part in last.
    last_phases: Vec<Option<PhaseKind>>,
    spares: Vec<Sender<Box<Part>>>,
    usage: fn() -> ProcessUsage,
    last_usage: ProcessUsage,
}

#[derive(Default)]
struct WorkerQueue {
    pair: usize,
    parts: VecDeque<Box<Part>>,
    finished: bool,
}

impl Collector {
    fn new(
        pair_count: usize,
        pairs: Vec<usize>,
        spares: Vec<Sender<Box<Part>>>,
        usage: fn() -> ProcessUsage,
    ) -> Self {
        let queue = |pair| WorkerQueue {
            pair,
            ..WorkerQueue::default()
        };
        Collector {
            workers: pairs.into_iter().map(queue).collect(),
            pair_count,
            last_phases: vec![None; pair_count],
            spares,
            usage,
            last_usage: usage(),
        }
    }

    /// Receives until every worker has ended. After an error of `sink` it stops the run and throws the rest away.
    fn collect(
        &mut self,
        handovers: &Receiver<Handover>,
        sink: Sink<'_>,
        stop: &AtomicBool,
    ) -> Result<(), LoadError> {
        let mut failure = None;
        while let Ok(handover) = handovers.recv() {
            let queue = &mut self.workers[handover.worker as usize];
            queue.parts.extend(handover.part);
            queue.finished = handover.last;
            while let Some(window) = self.next_complete() {
                if failure.is_none()
                    && !is_void(&window.merged)
                    && let Err(error) = sink(window)
                {
                    stop.store(true, std::sync::atomic::Ordering::Relaxed);
                    failure = Some(LoadError::Sink(error));
                }
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// The earliest window if no worker can still add to it.
    fn next_complete(&mut self) -> Option<Window> {
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
        let mut by_pair: Vec<Option<MergedParts>> = Vec::new();
        if self.pair_count > 1 {
            by_pair.resize_with(self.pair_count, || None);
        }
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
            let mine = by_pair.get_mut(worker.pair);
            for sum in [Some(&mut merged), mine].into_iter().flatten() {
                sum.get_or_insert_with(|| MergedParts::like(&part))
                    .add(&part);
            }
            // A worker that has ended needs no window back.
            let _ = spares.send(part);
        }
        let merged = self.with_usage(merged?.into_interval());
        let pairs = by_pair
            .into_iter()
            .zip(&mut self.last_phases)
            .map(|(pair, last)| in_common_window(pair, last, &merged))
            .collect();
        Some(Window { merged, pairs })
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

/// The window of a pair, as long as that of all. When a pair has loaded its documents it is done, but in
/// other phases it counts until the last one has ended: it could have done more in that time.
fn in_common_window(
    pair: Option<MergedParts>,
    last_phase: &mut Option<PhaseKind>,
    merged: &IntervalRecord,
) -> Option<IntervalRecord> {
    let took_part = *last_phase == Some(merged.phase);
    if pair.is_some() {
        *last_phase = Some(merged.phase);
    }
    if merged.phase == PhaseKind::Load {
        return pair.map(MergedParts::into_interval);
    }
    let interval = match pair {
        Some(pair) => pair,
        None if took_part => MergedParts::empty(merged.phase, merged.index, merged.start_ns),
        None => return None,
    };
    Some(IntervalRecord {
        duration_ns: merged.duration_ns,
        ..interval.into_interval()
    })
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
