//! The part of a worker that does no I/O: it decides when operations may start, and tracks operations in flight and the
//! recording window of a finished operation.
//!
//! Both backends drive the same core, so a schedule, a phase boundary or a latency means the same
//! with each. All times are nanoseconds of the run's [`Clock`](crate::clock::Clock) passed in by the
//! caller, which makes the core exact under test.
//!
//! An operation belongs to the phase of its intended start (open loop) or of its start (closed loop),
//! however late it ends; after the last phase's planned end the core waits for what is still due. An
//! operation of the warm-up that ends in the measure phase is counted in neither.

mod open_loop;

use crate::operation::Outcome;
use crate::recorder::{LATE_NS, Part, Times};
use crate::schedule::Share;
use crate::start_latch::StartLatch;
use dyno_plan::model::Schedule;
use dyno_plan::operation::{OperationId, Operations};
use dyno_record::model::{OwnCounts, PhaseKind};
use open_loop::{DueCounter, OpenLoop};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// Numbers taken at once from the shared counter, to reduce contention.
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

/// Configuration of a core.
pub(crate) struct CoreOptions {
    /// One or two phases, in order and without gap.
    pub(crate) phases: Vec<PhaseWindow>,
    pub(crate) schedule: Schedule,
    pub(crate) share: Share,
    /// Number of the worker among all pairs.
    pub(crate) worker: u64,
    pub(crate) seed: u64,
    pub(crate) window_ns: u64,
    /// Reads user and system CPU time of the calling thread so far, in nanoseconds.
    pub(crate) thread_usage: fn() -> (u64, u64),
    pub(crate) operations: Operations,
    /// Those that get statistics.
    pub(crate) counted: Vec<OperationId>,
    /// Reports the start of the worker, when it first looks for work at or after the planned start.
    pub(crate) latch: Option<Arc<StartLatch>>,
    pub(crate) parts: Sender<Handover>,
    pub(crate) spares: Receiver<Box<Part>>,
}

impl CoreOptions {
    fn new_part(&self) -> Box<Part> {
        Box::new(Part::new(&self.operations, &self.counted, self.window_ns))
    }
}

/// A full window for the collector.
#[derive(Debug)]
pub(crate) struct Handover {
    pub(crate) worker: u64,
    /// Absent only from a worker that panicked.
    pub(crate) part: Option<Box<Part>>,
    /// Whether this is the worker's last window.
    pub(crate) last: bool,
}

/// Permission to start one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// Number that, with the seed, determines the operation.
    pub(crate) number: u64,
    pub(crate) intended_ns: u64,
    phase: u8,
}

/// Whether an operation may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Start(Ticket),
    /// Not before this time.
    At(u64),
    /// No more operations will start.
    Never,
}

/// See the module.
pub(crate) struct Core {
    options: CoreOptions,
    open_loop: Option<OpenLoop>,
    /// Counts when arrivals become due; absent with a closed loop.
    due: Option<DueCounter>,
    numbers: NumberRange,
    stopped: bool,
    /// Whether the last phase reached its number of operations before its time limit.
    ended_by_count: bool,
    /// Index of the recorded phase.
    recording: usize,
    in_flight: [u32; 2],
    /// Clients that wait for their next start.
    thinking: u32,
    accounted_ns: u64,
    /// From here on, no arrival of the last phase starts.
    drain_end_ns: u64,
    boundary_ns: u64,
    /// Next time at which `tick` has work to do: the boundary, or later while idle after the end.
    wake_ns: u64,
    last_end_ns: u64,
    /// The recorded window. Call [`tick`](Core::tick) before you add to it.
    pub(crate) part: Box<Part>,
    last_usage_ns: (u64, u64),
}

/// Numbers taken from the shared counter and not used yet.
#[derive(Default)]
struct NumberRange {
    next: u64,
    end: u64,
    phase: usize,
}

/// When arrivals that still wait for a client after the last phase's planned end are dropped. Waiting caused by a stall
/// near the end should be measured, but not an ever-growing queue.
fn drain_end_ns(phases: &[PhaseWindow]) -> u64 {
    const SHORTEST_NS: u64 = 1_000_000_000;
    phases.last().map_or(u64::MAX, |last| {
        let length_ns = last.end_ns.saturating_sub(last.start_ns);
        last.end_ns.saturating_add(SHORTEST_NS.max(length_ns / 10))
    })
}

impl Core {
    pub(crate) fn new(options: CoreOptions) -> Self {
        let mut part = options.new_part();
        let first = &options.phases[0];
        part.reset(first.kind, 0, first.start_ns);
        let boundary_ns =
            first_boundary_ns(first, first.start_ns, options.window_ns, options.phases.len() == 1);
        let open_loop =
            OpenLoop::new(&options.schedule, first.start_ns, options.share, options.seed);
        Core {
            due: open_loop
                .as_ref()
                .map(|open| DueCounter::new(open.arrivals_of(0, first.start_ns))),
            open_loop,
            numbers: NumberRange::default(),
            stopped: false,
            ended_by_count: false,
            recording: 0,
            in_flight: [0; 2],
            thinking: 0,
            accounted_ns: first.start_ns,
            drain_end_ns: drain_end_ns(&options.phases),
            boundary_ns,
            // The start itself, even if nothing is due then, to report how late the worker is.
            wake_ns: first.start_ns,
            last_end_ns: first.start_ns,
            part,
            last_usage_ns: (0, 0),
            options,
        }
    }

    /// Whether an operation may start on a client that has been free since `ready_ns`.
    #[inline]
    pub(crate) fn next(&mut self, now_ns: u64, ready_ns: u64) -> Next {
        if self.stopped {
            return Next::Never;
        }
        if self.open_loop.is_some() {
            self.next_open(now_ns)
        } else {
            self.next_closed(now_ns, ready_ns)
        }
    }

    fn next_closed(&mut self, now_ns: u64, ready_ns: u64) -> Next {
        let phase = self.phase_at(now_ns);
        let window = &self.options.phases[phase];
        if now_ns < window.start_ns {
            return Next::At(window.start_ns);
        }
        if now_ns >= window.end_ns {
            return Next::Never;
        }
        if self.numbers.phase != phase || self.numbers.next == self.numbers.end {
            let batch = (window.operations / 1024).clamp(1, NUMBER_BATCH);
            let first = window.numbers.fetch_add(batch, Ordering::Relaxed);
            self.numbers = NumberRange { next: first, end: first + batch, phase };
        }
        if self.numbers.next >= window.operations {
            self.ended_by_count = true;
            return Next::Never;
        }
        let number = self.numbers.next | unmeasured(window.kind);
        self.numbers.next += 1;
        Next::Start(Ticket {
            number,
            intended_ns: ready_ns.max(window.start_ns),
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
        let number = open.arrivals.next_number() | unmeasured(self.options.phases[open.phase].kind);
        open.arrivals.advance();
        let counted = u64::from(open.phase == self.recording);
        self.part.counts.arrivals.started += counted;
        self.part.counts.arrivals.late += counted * u64::from(now_ns - at > LATE_NS);
        Next::Start(Ticket { number, intended_ns: at, phase: open.phase as u8 })
    }

    /// Intended start of the next arrival, possibly in the next phase; `None` after the last arrival, and with a closed
    /// loop.
    fn next_arrival_ns(&mut self) -> Option<u64> {
        let open = self.open_loop.as_mut()?;
        loop {
            let window = &self.options.phases[open.phase];
            let at = open.arrivals.next_ns();
            let is_late = at >= window.end_ns;
            if !is_late && open.arrivals.next_number() < window.operations {
                return Some(at);
            }
            self.ended_by_count = !is_late;
            let following = open.phase + 1;
            let start_ns = self.options.phases.get(following)?.start_ns;
            open.enter(following, start_ns);
        }
    }

    /// Drops arrivals that have waited too long for a free client, and all that still wait some time after the end,
    /// because a server that cannot keep up would prolong the phase without limit.
    fn drop_expired(&mut self, now_ns: u64) {
        if now_ns >= self.drain_end_ns {
            return self.drop_arrivals(u64::MAX);
        }
        let longest_ns = self.open_loop.as_ref().map_or(u64::MAX, |open| open.max_start_delay_ns);
        if let Some(latest_ns) = now_ns.checked_sub(longest_ns) {
            self.drop_arrivals(latest_ns);
        }
    }

    /// Drops the arrivals before `until_ns`.
    fn drop_arrivals(&mut self, until_ns: u64) {
        while self.next_arrival_ns().is_some_and(|at| at < until_ns)
            && let Some(open) = self.open_loop.as_mut()
        {
            open.arrivals.advance();
            self.part.counts.arrivals.dropped += u64::from(open.phase == self.recording);
        }
    }

    /// Whether no more operations can start, for callers without a free client for [`next`](Self::next).
    pub(crate) fn is_over(&mut self, now_ns: u64) -> bool {
        if self.stopped {
            return true;
        }
        if self.open_loop.is_some() {
            self.drop_expired(now_ns);
            return self.next_arrival_ns().is_none();
        }
        let phase = self.phase_at(now_ns);
        let window = &self.options.phases[phase];
        if phase + 1 < self.options.phases.len() {
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
        let last = self.options.phases.len() - 1;
        self.options.phases.iter().position(|window| now_ns < window.end_ns).unwrap_or(last)
    }

    /// Start of the phase of operations that start now, or of the first phase.
    pub(crate) fn phase_start_ns(&self, now_ns: u64) -> u64 {
        self.options.phases[self.phase_at(now_ns)].start_ns
    }

    /// Number of the worker over all pairs.
    pub(crate) fn worker(&self) -> u64 {
        self.options.worker
    }

    /// Brings the recording windows up to `now_ns`. Call it with every new clock reading before
    /// anything is recorded at that time.
    #[inline]
    pub(crate) fn tick(&mut self, now_ns: u64) {
        if now_ns < self.wake_ns {
            return;
        }
        if let Some(latch) = self.options.latch.take() {
            latch.arrive(now_ns);
        }
        while now_ns >= self.boundary_ns && !self.idles_after_end() {
            self.roll();
        }
        self.wake_ns = if now_ns < self.boundary_ns {
            self.boundary_ns
        } else {
            now_ns + self.options.window_ns
        };
    }

    /// Whether the worker idles after the planned end: a worker that still waits for a connection must not begin new
    /// windows, which would prolong the phase.
    fn idles_after_end(&self) -> bool {
        self.recording + 1 == self.options.phases.len()
            && self.boundary_ns > self.options.phases[self.recording].end_ns
            && self.in_flight[self.recording] == 0
    }

    /// The next time at which [`tick`](Self::tick) has work to do.
    #[inline]
    pub(crate) fn wake_ns(&self) -> u64 {
        self.wake_ns
    }

    /// Records that an operation was sent.
    #[inline]
    pub(crate) fn started(&mut self, ticket: Ticket, now_ns: u64) {
        while now_ns >= self.boundary_ns {
            self.roll();
        }
        self.account(now_ns);
        self.in_flight[usize::from(ticket.phase)] += 1;
    }

    /// Records the end of a whole operation, with statistics under `id`.
    #[inline]
    pub(crate) fn ended(
        &mut self,
        ticket: Ticket,
        id: OperationId,
        times: Times,
        outcome: Outcome,
    ) {
        self.tick(times.end_ns);
        self.account(times.end_ns);
        self.in_flight[usize::from(ticket.phase)] -= 1;
        if usize::from(ticket.phase) == self.recording {
            self.last_end_ns = self.last_end_ns.max(times.end_ns);
            self.part.record(id, times, outcome);
            self.part.finish(times, outcome.is_ok());
        }
    }

    /// Records the end of a part of an operation (the read or the update of a read-modify-write).
    #[inline]
    pub(crate) fn part_ended(
        &mut self,
        ticket: Ticket,
        id: OperationId,
        times: Times,
        outcome: Outcome,
    ) {
        self.tick(times.end_ns);
        if usize::from(ticket.phase) == self.recording {
            self.part.record(id, times, outcome);
        }
    }

    /// Counts an event of an operation, if the window belongs to its phase.
    pub(crate) fn count(
        &mut self,
        ticket: Ticket,
        now_ns: u64,
        count: impl FnOnce(&mut OwnCounts),
    ) {
        self.tick(now_ns);
        if usize::from(ticket.phase) == self.recording {
            count(&mut self.part.counts.own);
        }
    }

    /// Records that a client begins to wait for its next start.
    #[inline]
    pub(crate) fn think_begins(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.thinking += 1;
    }

    /// Records the end of a client's wait: it has sent an operation, or has lost its connection.
    #[inline]
    pub(crate) fn think_ends(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.thinking -= 1;
    }

    /// Stops starting operations.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        if self.stopped {
            return;
        }
        self.tick(now_ns);
        // Count arrivals that are due and will never be sent before abandoning the schedule.
        self.drop_arrivals(now_ns.saturating_add(1));
        if let Some(due) = &mut self.due {
            due.until_ns = now_ns.saturating_add(1);
        }
        self.stopped = true;
        let planned_end_ns = self.options.phases[self.recording].end_ns;
        self.last_end_ns = self.last_end_ns.max(now_ns.min(planned_end_ns));
    }

    /// Number of operations in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight[0] + self.in_flight[1]
    }

    /// Hands over the rest. `now_ns` is the time at which the worker had nothing more to do.
    pub(crate) fn finish(mut self, now_ns: u64) {
        // If it ends by count or by a request to stop, a phase ends with its last operation, not with the worker's last
        // check. If it ends by time, it ends as planned, even if nothing was due at the end.
        let planned_end_ns = match self.options.phases[self.recording].end_ns {
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
        self.part.thinking_at_end = self.thinking;
        let nothing = Box::new(Part::new(&Operations::default(), &[], 0));
        let mut part = std::mem::replace(&mut self.part, nothing);
        self.take_usage(&mut part);
        let handover = Handover { worker: self.options.worker, part: Some(part), last: true };
        // The collector is gone only if the run was abandoned.
        let _ = self.options.parts.send(handover);
    }

    #[inline]
    fn account(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.accounted_ns);
        self.part.counts.in_flight_ns +=
            u128::from(self.in_flight[self.recording]) * u128::from(elapsed_ns);
        self.part.counts.thinking_ns += u128::from(self.thinking) * u128::from(elapsed_ns);
        self.accounted_ns = self.accounted_ns.max(now_ns);
    }

    #[cold]
    fn roll(&mut self) {
        let boundary_ns = self.boundary_ns;
        self.account(boundary_ns);
        let window = &self.options.phases[self.recording];
        let phase_ended =
            boundary_ns >= window.end_ns && self.recording + 1 < self.options.phases.len();
        if phase_ended {
            // A backlog of the warm-up is not carried into the measure phase.
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
        let kind = self.options.phases[self.recording].kind;
        let spare = self.options.spares.try_recv();
        let mut fresh = spare.unwrap_or_else(|_| self.options.new_part());
        fresh.reset(kind, index, boundary_ns);
        let mut full = std::mem::replace(&mut self.part, fresh);
        full.end_ns = boundary_ns;
        self.take_usage(&mut full);
        self.boundary_ns = self.next_boundary_ns(boundary_ns);
        self.wake_ns = self.boundary_ns;
        // See `finish`: the collector may be gone.
        let _ = self.options.parts.send(Handover {
            worker: self.options.worker,
            part: Some(full),
            last: false,
        });
    }

    /// Counts the arrivals of the recorded phase that are due before `until_ns`.
    fn count_due(&mut self, until_ns: u64) {
        let Some(due) = &mut self.due else { return };
        let window = &self.options.phases[self.recording];
        let until_ns = until_ns.min(due.until_ns).min(window.end_ns);
        while due.arrivals.next_ns() < until_ns && due.arrivals.next_number() < window.operations {
            due.arrivals.advance();
            self.part.counts.arrivals.due += 1;
        }
    }

    /// Continues with the arrivals of the current phase.
    fn count_next_phase(&mut self) {
        let (Some(due), Some(open)) = (&mut self.due, &self.open_loop) else {
            return;
        };
        let start_ns = self.options.phases[self.recording].start_ns;
        due.arrivals = open.arrivals_of(self.recording, start_ns);
    }

    /// Adds the CPU time that this thread used since the last window.
    fn take_usage(&mut self, part: &mut Part) {
        let (user_ns, system_ns) = (self.options.thread_usage)();
        part.counts.cpu_user_ns = user_ns.saturating_sub(self.last_usage_ns.0);
        part.counts.cpu_system_ns = system_ns.saturating_sub(self.last_usage_ns.1);
        self.last_usage_ns = (user_ns, system_ns);
    }

    fn next_boundary_ns(&self, from_ns: u64) -> u64 {
        let is_last = self.recording + 1 == self.options.phases.len();
        first_boundary_ns(
            &self.options.phases[self.recording],
            from_ns,
            self.options.window_ns,
            is_last,
        )
    }
}

/// End of the window that begins at `from_ns`.
///
/// The last window of a run is extended by up to one interval while operations in flight end: a separate window with a
/// few operations and microseconds would show a meaningless rate.
fn first_boundary_ns(window: &PhaseWindow, from_ns: u64, window_ns: u64, is_last: bool) -> u64 {
    let next_ns = from_ns + window_ns;
    match (next_ns >= window.end_ns && from_ns < window.end_ns, is_last) {
        (true, true) => window.end_ns + window_ns,
        (true, false) => window.end_ns,
        (false, _) => next_ns,
    }
}

fn unmeasured(kind: PhaseKind) -> u64 {
    if kind == PhaseKind::Measure { 0 } else { UNMEASURED_BIT }
}

#[cfg(test)]
mod tests;
