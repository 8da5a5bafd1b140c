//! The part of a worker that does no I/O: which operation may start when, what is in flight, and
//! which recording window a finished operation belongs to.
//!
//! Both backends drive the same core, so a schedule, a phase boundary or a latency means the same
//! with each. All times are nanoseconds of the run's [`Clock`](crate::clock::Clock) passed in by the
//! caller, which makes the core exact under test.
//!
//! An operation belongs to the phase of its intended start (open loop) or of its start (closed loop),
//! however late it ends; after the last phase's planned end the core waits for what is still due. An
//! operation of the warm-up that ends in the measure phase is counted in neither.

use crate::operation::{OperationKind, Outcome};
use crate::recorder::{LATE_NS, Part, Times};
use crate::schedule::{Arrivals, Share};
use crate::start_latch::StartLatch;
use dyno_plan::model::Schedule;
use dyno_record::model::PhaseKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Numbers taken at once from the counter that all workers share, so that they rarely meet there.
const NUMBER_BATCH: u64 = 64;

/// Set in the numbers of operations outside the measure phase, so that the measured sequence of
/// operations does not depend on the length of the warm-up.
pub(crate) const UNMEASURED_BIT: u64 = 1 << 62;

/// One phase as a worker sees it.
#[derive(Clone, Debug)]
pub(crate) struct PhaseWindow {
    pub(crate) kind: PhaseKind,
    pub(crate) start_ns: u64,
    /// Planned end; `u64::MAX` without a time limit.
    pub(crate) end_ns: u64,
    /// Operations to start over all workers; `u64::MAX` without a limit.
    pub(crate) operations: u64,
    /// Next number to hand out, shared by all workers (closed loop).
    pub(crate) numbers: Arc<AtomicU64>,
}

/// What a core is made from.
pub(crate) struct CoreOptions {
    /// One or two phases, in order and without gap.
    pub(crate) phases: Vec<PhaseWindow>,
    pub(crate) schedule: Schedule,
    pub(crate) share: Share,
    /// Number of the worker over all pairs.
    pub(crate) worker: u64,
    pub(crate) seed: u64,
    pub(crate) window_ns: u64,
    /// Reads user and system CPU time of the calling thread so far, in nanoseconds.
    pub(crate) thread_usage: fn() -> (u64, u64),
    pub(crate) kinds: Vec<OperationKind>,
    /// Where the worker reports that it has started, when it first looks for work at or after the start.
    pub(crate) latch: Option<Arc<StartLatch>>,
    pub(crate) parts: Sender<Handover>,
    pub(crate) spares: Receiver<Box<Part>>,
}

/// A full window on its way to the collector.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) worker: u64,
    /// Absent only from a worker that panicked.
    pub(crate) part: Option<Box<Part>>,
    /// Nothing follows from this worker.
    pub(crate) last: bool,
}

/// Permission to start one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Number that determines the operation, together with the seed.
    pub(crate) number: u64,
    pub(crate) intended_ns: u64,
    phase: u8,
}

/// Answer to "may an operation start now?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Yes, this one.
    Start(Ticket),
    /// Not before this time.
    At(u64),
    /// No more operations will start.
    Never,
}

/// See the module.
pub(crate) struct Core {
    phases: Vec<PhaseWindow>,
    open_loop: Option<OpenLoop>,
    /// Counts when arrivals become due; absent with a closed loop.
    due: Option<DueCounter>,
    numbers: NumberRange,
    stopped: bool,
    /// The last phase had all its operations before its time was up.
    ended_by_count: bool,
    /// Phase whose operations are recorded now.
    recording: usize,
    in_flight: [u32; 2],
    accounted_ns: u64,
    /// No arrival of the last phase starts from here on.
    drain_end_ns: u64,
    boundary_ns: u64,
    /// The next time at which `tick` has something to do: the boundary, or later while idle after the end.
    wake_ns: u64,
    window_ns: u64,
    last_end_ns: u64,
    part: Box<Part>,
    kinds: Vec<OperationKind>,
    worker: u64,
    thread_usage: fn() -> (u64, u64),
    last_usage_ns: (u64, u64),
    latch: Option<Arc<StartLatch>>,
    parts: Sender<Handover>,
    spares: Receiver<Box<Part>>,
}

/// Numbers taken from the shared counter and not used yet.
#[derive(Default)]
struct NumberRange {
    next: u64,
    end: u64,
    phase: usize,
}

/// The schedule once more, to count the arrivals in the window in which they become due and not in the
/// one in which a client becomes free for them.
struct DueCounter {
    arrivals: Arrivals,
    /// Nothing that is due from here on counts: the run was stopped.
    until_ns: u64,
}

struct OpenLoop {
    arrivals: Arrivals,
    /// Phase that the next arrival belongs to.
    phase: usize,
    schedule: Schedule,
    share: Share,
    seed: u64,
    max_start_delay_ns: u64,
}

impl CoreOptions {
    fn due_counter(&self) -> Option<DueCounter> {
        let arrivals = match self.schedule {
            Schedule::Closed {} => return None,
            Schedule::Constant { .. } | Schedule::Poisson { .. } => {
                let start_ns = self.phases[0].start_ns;
                arrivals(&self.schedule, start_ns, self.share, self.seed, 0)
            }
        };
        Some(DueCounter {
            arrivals,
            until_ns: u64::MAX,
        })
    }
}

/// When the arrivals that still wait for a client after the last phase's planned end are given up. The
/// waiting that a stall near the end has caused is worth measuring; a queue that only grows is not.
fn drain_end_ns(phases: &[PhaseWindow]) -> u64 {
    const SHORTEST_NS: u64 = 1_000_000_000;
    phases.last().map_or(u64::MAX, |last| {
        let length_ns = last.end_ns.saturating_sub(last.start_ns);
        last.end_ns.saturating_add(SHORTEST_NS.max(length_ns / 10))
    })
}

impl OpenLoop {
    fn new(options: &CoreOptions) -> Option<Self> {
        let max_start_delay_ns = match &options.schedule {
            Schedule::Closed {} => return None,
            Schedule::Constant {
                max_start_delay, ..
            }
            | Schedule::Poisson {
                max_start_delay, ..
            } => u64::try_from(max_start_delay.0.as_nanos()).unwrap_or(u64::MAX),
        };
        Some(OpenLoop {
            arrivals: arrivals(
                &options.schedule,
                options.phases[0].start_ns,
                options.share,
                options.seed,
                0,
            ),
            phase: 0,
            schedule: options.schedule.clone(),
            share: options.share,
            seed: options.seed,
            max_start_delay_ns,
        })
    }

    /// Moves to the arrivals of the next phase.
    fn enter(&mut self, phase: usize, start_ns: u64) {
        self.phase = phase;
        self.arrivals = arrivals(&self.schedule, start_ns, self.share, self.seed, phase);
    }
}

fn arrivals(schedule: &Schedule, base_ns: u64, share: Share, seed: u64, phase: usize) -> Arrivals {
    match *schedule {
        Schedule::Constant { rate_per_s, .. } => Arrivals::constant(rate_per_s, base_ns, share),
        Schedule::Poisson { rate_per_s, .. } => {
            Arrivals::poisson(rate_per_s, base_ns, share, seed.wrapping_add(phase as u64))
        }
        Schedule::Closed {} => unreachable!("a closed loop has no arrivals"),
    }
}

impl Core {
    pub(crate) fn new(options: CoreOptions) -> Self {
        let mut part = Box::new(Part::new(&options.kinds, options.window_ns));
        let first = &options.phases[0];
        part.reset(first.kind, 0, first.start_ns);
        let boundary_ns = first_boundary_ns(
            first,
            first.start_ns,
            options.window_ns,
            options.phases.len() == 1,
        );
        Core {
            open_loop: OpenLoop::new(&options),
            numbers: NumberRange::default(),
            stopped: false,
            ended_by_count: false,
            recording: 0,
            in_flight: [0; 2],
            accounted_ns: first.start_ns,
            drain_end_ns: drain_end_ns(&options.phases),
            due: options.due_counter(),
            boundary_ns,
            // The start itself, although nothing may be due then: so late the worker is.
            wake_ns: first.start_ns,
            window_ns: options.window_ns,
            last_end_ns: first.start_ns,
            part,
            kinds: options.kinds,
            worker: options.worker,
            thread_usage: options.thread_usage,
            last_usage_ns: (0, 0),
            latch: options.latch,
            parts: options.parts,
            spares: options.spares,
            phases: options.phases,
        }
    }

    /// May an operation start on a client that has been free since `free_since_ns`?
    #[inline]
    pub(crate) fn next(&mut self, now_ns: u64, free_since_ns: u64) -> Next {
        if self.stopped {
            return Next::Never;
        }
        if self.open_loop.is_some() {
            self.next_open(now_ns)
        } else {
            self.next_closed(now_ns, free_since_ns)
        }
    }

    fn next_closed(&mut self, now_ns: u64, free_since_ns: u64) -> Next {
        let phase = self.phase_at(now_ns);
        let window = &self.phases[phase];
        if now_ns < window.start_ns {
            return Next::At(window.start_ns);
        }
        if now_ns >= window.end_ns {
            return Next::Never;
        }
        if self.numbers.phase != phase || self.numbers.next == self.numbers.end {
            let batch = (window.operations / 1024).clamp(1, NUMBER_BATCH);
            let first = window.numbers.fetch_add(batch, Ordering::Relaxed);
            self.numbers = NumberRange {
                next: first,
                end: first + batch,
                phase,
            };
        }
        if self.numbers.next >= window.operations {
            self.ended_by_count = true;
            return Next::Never;
        }
        let number = self.numbers.next | unmeasured(window.kind);
        self.numbers.next += 1;
        Next::Start(Ticket {
            number,
            intended_ns: free_since_ns.max(window.start_ns),
            phase: phase as u8,
        })
    }

    fn next_open(&mut self, now_ns: u64) -> Next {
        self.drop_expired(now_ns);
        let Some(at) = self.next_arrival_ns() else {
            return Next::Never;
        };
        if at > now_ns {
            return Next::At(at);
        }
        let Some(open) = self.open_loop.as_mut() else {
            return Next::Never;
        };
        let number = open.arrivals.next_number() | unmeasured(self.phases[open.phase].kind);
        open.arrivals.advance();
        let counted = u64::from(open.phase == self.recording);
        self.part.arrivals_started += counted;
        self.part.arrivals_late += counted * u64::from(now_ns - at > LATE_NS);
        Next::Start(Ticket {
            number,
            intended_ns: at,
            phase: open.phase as u8,
        })
    }

    /// Intended start of the next arrival, in the next phase when this one has no more; `None` when
    /// the last one has no more, and with a closed loop.
    fn next_arrival_ns(&mut self) -> Option<u64> {
        let open = self.open_loop.as_mut()?;
        loop {
            let window = &self.phases[open.phase];
            let at = open.arrivals.next_ns();
            let is_late = at >= window.end_ns;
            if !is_late && open.arrivals.next_number() < window.operations {
                return Some(at);
            }
            self.ended_by_count = !is_late;
            let following = open.phase + 1;
            let start_ns = self.phases.get(following)?.start_ns;
            open.enter(following, start_ns);
        }
    }

    /// Counts the arrivals as dropped whose wait for a free client has become too long, and all that
    /// still wait some time after the end: a server that cannot keep up would prolong the phase without
    /// a limit.
    fn drop_expired(&mut self, now_ns: u64) {
        if now_ns >= self.drain_end_ns {
            return self.drop_arrivals(u64::MAX);
        }
        let longest_ns = self
            .open_loop
            .as_ref()
            .map_or(u64::MAX, |open| open.max_start_delay_ns);
        if let Some(latest_ns) = now_ns.checked_sub(longest_ns) {
            self.drop_arrivals(latest_ns);
        }
    }

    /// Counts the arrivals before `until_ns` as dropped.
    fn drop_arrivals(&mut self, until_ns: u64) {
        while self.next_arrival_ns().is_some_and(|at| at < until_ns)
            && let Some(open) = self.open_loop.as_mut()
        {
            open.arrivals.advance();
            self.part.arrivals_dropped += u64::from(open.phase == self.recording);
        }
    }

    /// Whether no further operation can start, also for a caller that has no free client to ask
    /// [`next`](Self::next) for.
    pub(crate) fn is_over(&mut self, now_ns: u64) -> bool {
        if self.stopped {
            return true;
        }
        if self.open_loop.is_some() {
            self.drop_expired(now_ns);
            return self.next_arrival_ns().is_none();
        }
        let phase = self.phase_at(now_ns);
        let window = &self.phases[phase];
        if phase + 1 < self.phases.len() {
            return false;
        }
        let mine_used = self.numbers.phase != phase
            || self.numbers.next == self.numbers.end
            || self.numbers.next >= window.operations;
        if mine_used && window.numbers.load(Ordering::Relaxed) >= window.operations {
            self.ended_by_count = true;
            return true;
        }
        now_ns >= window.end_ns
    }

    fn phase_at(&self, now_ns: u64) -> usize {
        let last = self.phases.len() - 1;
        self.phases
            .iter()
            .position(|window| now_ns < window.end_ns)
            .unwrap_or(last)
    }

    /// Brings the recording windows up to `now_ns`. Call it with every new clock reading before
    /// anything is recorded at that time.
    #[inline]
    pub(crate) fn tick(&mut self, now_ns: u64) {
        if now_ns < self.wake_ns {
            return;
        }
        if let Some(latch) = self.latch.take() {
            latch.arrive(now_ns);
        }
        while now_ns >= self.boundary_ns && !self.idles_after_end() {
            self.roll();
        }
        self.wake_ns = if now_ns < self.boundary_ns {
            self.boundary_ns
        } else {
            now_ns + self.window_ns
        };
    }

    /// After the planned end of the run with nothing under way: no window is worth beginning, as the
    /// phase does not last longer because the worker still waits for a connection.
    fn idles_after_end(&self) -> bool {
        self.recording + 1 == self.phases.len()
            && self.boundary_ns > self.phases[self.recording].end_ns
            && self.in_flight[self.recording] == 0
    }

    /// The next time at which [`tick`](Self::tick) has something to do.
    #[inline]
    pub(crate) fn wake_ns(&self) -> u64 {
        self.wake_ns
    }

    /// An operation was sent.
    #[inline]
    pub(crate) fn started(&mut self, ticket: Ticket, now_ns: u64) {
        while now_ns >= self.boundary_ns {
            self.roll();
        }
        self.account(now_ns);
        self.in_flight[usize::from(ticket.phase)] += 1;
    }

    /// A whole operation ended, with statistics under `kind`.
    #[inline]
    pub(crate) fn ended(
        &mut self,
        ticket: Ticket,
        kind: OperationKind,
        times: Times,
        outcome: Outcome,
    ) {
        self.tick(times.end_ns);
        self.account(times.end_ns);
        self.in_flight[usize::from(ticket.phase)] -= 1;
        if usize::from(ticket.phase) == self.recording {
            self.last_end_ns = self.last_end_ns.max(times.end_ns);
            self.part.record(kind, times, outcome);
            self.part.finish(times, outcome.is_ok());
        }
    }

    /// A part of an operation ended (the read or the update of a read-modify-write).
    #[inline]
    pub(crate) fn part_ended(
        &mut self,
        ticket: Ticket,
        kind: OperationKind,
        times: Times,
        outcome: Outcome,
    ) {
        self.tick(times.end_ns);
        if usize::from(ticket.phase) == self.recording {
            self.part.record(kind, times, outcome);
        }
    }

    /// A connection was replaced.
    pub(crate) fn reconnected(&mut self) {
        self.part.reconnects += 1;
    }

    /// Starts nothing more.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        if self.stopped {
            return;
        }
        self.tick(now_ns);
        // Arrivals that are due and will never be sent are counted before the schedule is abandoned.
        self.drop_arrivals(now_ns.saturating_add(1));
        if let Some(due) = &mut self.due {
            due.until_ns = now_ns.saturating_add(1);
        }
        self.stopped = true;
        let planned_end_ns = self.phases[self.recording].end_ns;
        self.last_end_ns = self.last_end_ns.max(now_ns.min(planned_end_ns));
    }

    /// Operations sent and not ended.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight[0] + self.in_flight[1]
    }

    /// Hands over what is left. `now_ns` is when the worker found nothing more to do.
    pub(crate) fn finish(mut self, now_ns: u64) {
        // By its count or a request to stop a phase ends with its last operation, not with the worker's last
        // look; by its time it ends as planned, also when nothing more was due before.
        let planned_end_ns = match self.phases[self.recording].end_ns {
            u64::MAX => now_ns,
            end_ns => end_ns,
        };
        let end_ns = if self.ended_by_count || self.stopped {
            self.last_end_ns
        } else {
            self.last_end_ns.max(planned_end_ns)
        };
        while self.boundary_ns < end_ns {
            self.roll();
        }
        let end_ns = end_ns.max(self.part.start_ns);
        self.account(end_ns);
        self.count_due(u64::MAX);
        self.part.end_ns = end_ns;
        let mut part = std::mem::replace(&mut self.part, Box::new(Part::new(&[], 0)));
        self.take_usage(&mut part);
        let handover = Handover {
            worker: self.worker,
            part: Some(part),
            last: true,
        };
        // The collector is gone only when the run was abandoned: nobody is left to tell.
        let _ = self.parts.send(handover);
    }

    #[inline]
    fn account(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.accounted_ns);
        self.part.in_flight_ns +=
            u128::from(self.in_flight[self.recording]) * u128::from(elapsed_ns);
        self.accounted_ns = self.accounted_ns.max(now_ns);
    }

    #[cold]
    fn roll(&mut self) {
        let boundary_ns = self.boundary_ns;
        self.account(boundary_ns);
        let window = &self.phases[self.recording];
        let phase_ended = boundary_ns >= window.end_ns && self.recording + 1 < self.phases.len();
        if phase_ended {
            // What the warm-up could not start is not carried into the measured time.
            self.drop_arrivals(boundary_ns);
        }
        self.count_due(boundary_ns);
        let index = if phase_ended {
            self.recording += 1;
            self.count_next_phase();
            0
        } else {
            self.part.index + 1
        };
        let kind = self.phases[self.recording].kind;
        let mut fresh = self
            .spares
            .try_recv()
            .unwrap_or_else(|_| Box::new(Part::new(&self.kinds, self.window_ns)));
        fresh.reset(kind, index, boundary_ns);
        let mut full = std::mem::replace(&mut self.part, fresh);
        full.end_ns = boundary_ns;
        self.take_usage(&mut full);
        self.boundary_ns = self.next_boundary_ns(boundary_ns);
        self.wake_ns = self.boundary_ns;
        // See `finish`: without a collector there is nobody to tell.
        let _ = self.parts.send(Handover {
            worker: self.worker,
            part: Some(full),
            last: false,
        });
    }

    /// Counts the arrivals of the recorded phase that are due before `until_ns`.
    fn count_due(&mut self, until_ns: u64) {
        let Some(due) = &mut self.due else { return };
        let window = &self.phases[self.recording];
        let until_ns = until_ns.min(due.until_ns).min(window.end_ns);
        while due.arrivals.next_ns() < until_ns && due.arrivals.next_number() < window.operations {
            due.arrivals.advance();
            self.part.arrivals_due += 1;
        }
    }

    /// Goes on to count those of the phase that is recorded now.
    fn count_next_phase(&mut self) {
        let (Some(due), Some(open)) = (&mut self.due, &self.open_loop) else {
            return;
        };
        let start_ns = self.phases[self.recording].start_ns;
        due.arrivals = arrivals(
            &open.schedule,
            start_ns,
            open.share,
            open.seed,
            self.recording,
        );
    }

    /// Adds the CPU time that this thread took since the last window.
    fn take_usage(&mut self, part: &mut Part) {
        let (user_ns, system_ns) = (self.thread_usage)();
        part.cpu_user_ns = user_ns.saturating_sub(self.last_usage_ns.0);
        part.cpu_system_ns = system_ns.saturating_sub(self.last_usage_ns.1);
        self.last_usage_ns = (user_ns, system_ns);
    }

    fn next_boundary_ns(&self, from_ns: u64) -> u64 {
        let is_last = self.recording + 1 == self.phases.len();
        first_boundary_ns(
            &self.phases[self.recording],
            from_ns,
            self.window_ns,
            is_last,
        )
    }
}

/// End of the window that begins at `from_ns`.
///
/// The last window of a run goes on for up to one more interval while the operations that are under way
/// end: a window of a few operations and microseconds of its own would show a rate that means nothing.
fn first_boundary_ns(window: &PhaseWindow, from_ns: u64, window_ns: u64, is_last: bool) -> u64 {
    let next_ns = from_ns + window_ns;
    match (next_ns >= window.end_ns && from_ns < window.end_ns, is_last) {
        (true, true) => window.end_ns + window_ns,
        (true, false) => window.end_ns,
        (false, _) => next_ns,
    }
}

fn unmeasured(kind: PhaseKind) -> u64 {
    if kind == PhaseKind::Measure {
        0
    } else {
        UNMEASURED_BIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::OperationError;
    use crate::recorder::MergedParts;
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
        PhaseWindow {
            kind,
            start_ns,
            end_ns,
            operations,
            numbers: Arc::new(AtomicU64::new(0)),
        }
    }

    fn constant(rate_per_s: f64, max_start_delay_s: u64) -> Schedule {
        Schedule::Constant {
            rate_per_s,
            max_start_delay: Span::from_secs(max_start_delay_s),
        }
    }

    fn bench(phases: Vec<PhaseWindow>, schedule: Schedule) -> Bench {
        let (parts, handovers) = channel();
        let (_, spares) = channel();
        let core = Core::new(CoreOptions {
            phases,
            schedule,
            share: Share {
                worker: 0,
                worker_count: 1,
                offset_ns: 0,
            },
            worker: 0,
            thread_usage: || (0, 0),
            seed: 1,
            window_ns: SECOND,
            kinds: vec![OperationKind::Read],
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
            let times = Times {
                intended_ns: ticket.intended_ns,
                send_ns,
                end_ns,
            };
            self.core.ended(ticket, OperationKind::Read, times, outcome);
        }

        fn finish(self, now_ns: u64) -> Vec<IntervalRecord> {
            self.core.finish(now_ns);
            self.handovers
                .iter()
                .filter_map(|handover| handover.part)
                .map(|part| {
                    let mut merged = MergedParts::like(&part);
                    merged.add(&part);
                    merged.into_interval()
                })
                .collect()
        }
    }

    #[test]
    fn open_loop_starts_are_the_schedule_however_late_the_caller_asks() {
        let mut bench = bench(
            vec![window(PhaseKind::Measure, SECOND, 2 * SECOND, u64::MAX)],
            constant(100.0, 10),
        );
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
        let mut bench = bench(
            vec![window(PhaseKind::Measure, 0, 10 * SECOND, u64::MAX)],
            constant(10.0, 1),
        );
        // At 3.05 s, the arrivals up to 2.0 s have waited longer than 1 s.
        let ticket = bench.start(3 * SECOND + 50 * MS, 0);
        assert_eq!(ticket.intended_ns, 2 * SECOND + 100 * MS);
        bench.end(ticket, 3 * SECOND + 50 * MS, 3 * SECOND + 60 * MS, Ok(1));
        bench.core.stop(3 * SECOND + 60 * MS);
        let intervals = bench.finish(3 * SECOND + 70 * MS);
        let sum = |field: fn(&IntervalRecord) -> u64| intervals.iter().map(field).sum::<u64>();
        assert_eq!(sum(|interval| interval.arrivals_started), 1);
        assert_eq!(sum(|interval| interval.arrivals_late), 1);
        // 0.0 to 2.0 s were too late; 2.2 to 3.0 s were due when the run was stopped.
        assert_eq!(sum(|interval| interval.arrivals_dropped), 21 + 9);
        assert_eq!(sum(|interval| interval.arrivals_due), 31);
    }

    #[test]
    fn an_operation_is_measured_by_its_intended_start_and_not_by_its_end() {
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
            .map(|i| (i.phase, i.index, i.succeeded, i.duration_ns / MS))
            .collect();
        assert_eq!(
            counts,
            // `warm` ended in time; `first` ended in the measure phase and is counted in neither.
            [
                (PhaseKind::Warmup, 0, 1, 1000),
                // The last planned window goes on for one more interval while operations end.
                (PhaseKind::Measure, 0, 0, 2000),
                (PhaseKind::Measure, 1, 1, 500),
            ]
        );
    }

    #[test]
    fn in_flight_time_equals_the_sum_of_the_service_times_of_the_phase() {
        let mut bench = bench(
            vec![window(PhaseKind::Measure, 0, u64::MAX, 3)],
            Schedule::Closed {},
        );
        let a = bench.start(100 * MS, 0);
        let b = bench.start(200 * MS, 0);
        bench.end(a, 100 * MS, 1300 * MS, Ok(1));
        let c = bench.start(1300 * MS, 1300 * MS);
        bench.end(b, 200 * MS, 1400 * MS, Err(OperationError::Timeout));
        bench.end(c, 1300 * MS, 2600 * MS, Ok(1));
        assert_eq!(bench.core.next(2600 * MS, 2600 * MS), Next::Never);
        let intervals = bench.finish(3 * SECOND);
        let in_flight: u128 = intervals.iter().map(|i| i.in_flight_ns).sum();
        let busy: u128 = intervals.iter().map(|i| i.busy_ns).sum();
        assert_eq!(in_flight, 3700 * u128::from(MS));
        assert_eq!(busy, in_flight);
        // The phase ended with its last operation, not when the worker looked again.
        assert_eq!(
            intervals.iter().map(|i| i.duration_ns).sum::<u64>(),
            2600 * MS
        );
    }

    #[test]
    fn a_closed_loop_client_is_due_when_it_became_free() {
        let mut bench = bench(
            vec![window(PhaseKind::Measure, 10 * MS, SECOND, u64::MAX)],
            Schedule::Closed {},
        );
        assert_eq!(bench.core.next(0, 0), Next::At(10 * MS));
        assert_eq!(bench.start(12 * MS, 0).intended_ns, 10 * MS);
        assert_eq!(bench.start(30 * MS, 25 * MS).intended_ns, 25 * MS);
        assert_eq!(bench.core.next(SECOND, SECOND), Next::Never);
    }

    #[test]
    fn numbers_of_a_closed_loop_are_shared_by_all_workers_without_repetition() {
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
    fn an_open_loop_is_over_when_the_last_arrival_has_waited_too_long() {
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
        assert_eq!(sum(|interval| interval.arrivals_dropped), 19);
        // Waiting in vain is not a part of the phase.
        assert_eq!(sum(|interval| interval.duration_ns), 2 * SECOND);
        assert_eq!(intervals.len(), 2);
    }

    #[test]
    fn operations_that_start_long_after_the_planned_end_are_in_windows_of_their_own() {
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
            .map(|i| (i.start_ns / MS, i.duration_ns / MS, i.succeeded))
            .collect();
        assert_eq!(
            windows,
            [
                (28_000, 1000, 0),
                (29_000, 2000, 0),
                (31_000, 1000, 0),
                (32_000, 600, 3)
            ]
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
                (
                    i.phase,
                    i.arrivals_due,
                    i.arrivals_started,
                    i.arrivals_dropped,
                )
            })
            .collect();
        assert_eq!(
            counts,
            [
                (PhaseKind::Warmup, 10, 0, 10),
                (PhaseKind::Measure, 1, 1, 0)
            ]
        );
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
        let due: Vec<_> = intervals.iter().map(|i| i.arrivals_due).collect();
        assert_eq!(due, [10, 10, 10]);
        let started: Vec<_> = intervals.iter().map(|i| i.arrivals_started).collect();
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
        assert_eq!(sum(|interval| interval.arrivals_due), 200);
        assert_eq!(sum(|interval| interval.arrivals_dropped), 199);
    }

    #[test]
    fn a_stop_counts_what_was_due_in_the_measure_phase_behind_a_backlog_of_the_warm_up() {
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
            .map(|interval| interval.arrivals_due)
            .sum();
        assert_eq!(due, 11);
    }

    #[test]
    fn a_failure_counts_in_the_phase_but_has_no_latency() {
        let mut bench = bench(
            vec![window(PhaseKind::Measure, 0, SECOND, u64::MAX)],
            Schedule::Closed {},
        );
        let ticket = bench.start(MS, 0);
        bench.end(ticket, MS, 5 * MS, Err(OperationError::Server(8000)));
        let intervals = bench.finish(2 * SECOND);
        assert_eq!((intervals[0].succeeded, intervals[0].failed), (0, 1));
        assert_eq!(intervals[0].operations[0].response.len(), 0);
    }
}
