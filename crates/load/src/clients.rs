//! The clients of a worker, each with at most one operation: starting, retrying and ending it.
//!
//! Both backends drive this state machine and do the sending. It reads no clock and does no I/O: a backend asks
//! it for work with [`start_next`](Clients::start_next), makes the command of [`operation`](Clients::operation)
//! ready, says when it was [`sent`](Clients::sent) and how it [`ended`](Clients::ended).

mod failure;
mod steps;

use crate::clock::{Clock, SECOND_NS};
use crate::connect::ConnectError;
use crate::core::{Core, Next, Ticket};
use crate::error::LoadError;
use crate::generator::{Generator, Operation};
use crate::job::RetryRule;
use crate::operation::{Action, OperationError, Outcome};
use crate::own::TransactionLabels;
use crate::pace::{Pace, Turn};
use crate::recorder::Times;
use dyno_plan::operation::OperationId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time before an intended start during which a worker spins instead of sleeping. Longer costs CPU time at low rates;
/// shorter adds the kernel's wake-up time to the start delay.
pub(crate) const SPIN_NS: u64 = 60_000;

/// Interval between checks for timeouts, retries and the stop request.
pub(crate) const CHECK_NS: u64 = 20_000_000;

/// Maximum wait for answers after a request to stop the run.
const STOP_DRAIN_NS: u64 = SECOND_NS;

/// Configuration of a worker.
#[derive(Clone)]
pub(crate) struct WorkerSetup {
    pub(crate) clock: Clock,
    /// Ends the run; set from outside, or by a worker with a fatal error.
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) timeout_ns: u64,
    /// Time without any connection after which a worker gives up.
    pub(crate) unreachable_limit_ns: u64,
    pub(crate) retry: RetryRule,
    pub(crate) abort_on_failure: bool,
    pub(crate) pace: Pace,
}

/// What a worker should start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Send the operation of this client.
    Send(usize),
    /// Nothing starts before this time.
    At(u64),
}

/// Due action of a client without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Its operation may be sent, again or for the first time: see [`Clients::retry`].
    Retry,
    /// Its answer did not arrive in time.
    TimedOut,
}

/// An operation in flight.
struct InFlight {
    ticket: Ticket,
    /// The operation, or the current part of a read-modify-write.
    operation: Operation,
    /// Send of the first command.
    send_ns: u64,
    /// Send of the command in flight.
    command_send_ns: u64,
    deadline_ns: u64,
    failed: Option<OperationError>,
    /// Whether an earlier command of the operation has ended: the read of a read-modify-write, or another step.
    continues: bool,
    retries_left: u32,
    /// Set while a failed command waits to be sent again, or an insert waits for its document.
    retry_at_ns: Option<u64>,
    /// Failure of the first attempt if the command in flight is sent again.
    resent: Option<OperationError>,
    /// Whether the next command waits for a new connection.
    awaits_connection: bool,
    /// Labels of the failed command.
    labels: TransactionLabels,
    /// Whether a command of the operation was sent.
    sent: bool,
}

impl InFlight {
    fn times(&self, end_ns: u64) -> Times {
        Times { intended_ns: self.ticket.intended_ns, send_ns: self.send_ns, end_ns }
    }

    /// Times of the command in flight. One that is not the first is due when the one before it has ended, which is also
    /// when it is sent.
    fn command_times(&self, end_ns: u64) -> Times {
        if !self.continues {
            return self.times(end_ns);
        }
        Times { intended_ns: self.command_send_ns, send_ns: self.command_send_ns, end_ns }
    }
}

/// One client: whether it can send, and its operation.
#[derive(Default)]
struct Client {
    connected: bool,
    in_flight: Option<InFlight>,
    free_since_ns: u64,
    /// When it starts its next operation, in a closed loop with waits.
    turn: Turn,
    /// Whether its current wait is being counted.
    thinks: bool,
}

/// See the module.
pub(crate) struct Clients {
    setup: WorkerSetup,
    core: Core,
    generator: Generator,
    clients: Vec<Client>,
    /// Connected clients that can begin an operation; the one that has been free longest comes first.
    free: VecDeque<usize>,
    /// Connected clients that wait for their turn; the next one comes first.
    thinking: BinaryHeap<Reverse<(u64, usize)>>,
    /// Operations that have begun but are not sent yet.
    unsent: usize,
    /// No further operation starts.
    exhausted: bool,
    stopping_since_ns: Option<u64>,
    unreachable_since_ns: Option<u64>,
    fault: Option<LoadError>,
}

impl Clients {
    /// `count` clients that are not connected.
    pub(crate) fn new(setup: WorkerSetup, core: Core, generator: Generator, count: usize) -> Self {
        let start_ns = core.phase_start_ns(0);
        let client = |place: usize| Client {
            turn: (setup.pace).first(start_ns, core.worker() << 32 | place as u64),
            ..Client::default()
        };
        Clients {
            clients: (0..count).map(client).collect(),
            setup,
            core,
            generator,
            free: VecDeque::with_capacity(count),
            thinking: BinaryHeap::with_capacity(count),
            unsent: 0,
            exhausted: false,
            stopping_since_ns: None,
            unreachable_since_ns: None,
            fault: None,
        }
    }

    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Brings the recording windows up to `now_ns`.
    #[inline]
    pub(crate) fn tick(&mut self, now_ns: u64) {
        self.core.tick(now_ns);
    }

    /// When [`tick`](Self::tick) is due next.
    #[inline]
    pub(crate) fn wake_ns(&self) -> u64 {
        self.core.wake_ns()
    }

    /// Marks a client as able to send.
    pub(crate) fn connected(&mut self, client: usize, now_ns: u64) {
        let state = &mut self.clients[client];
        state.connected = true;
        state.free_since_ns = now_ns;
        if state.in_flight.is_none() {
            self.begin_wait(client, now_ns);
            self.line_up(client, now_ns);
        }
    }

    /// Queues a connected client without an operation: to wait for its turn, or for an operation.
    #[inline]
    fn line_up(&mut self, client: usize, now_ns: u64) {
        if self.is_due(client, now_ns) {
            self.free.push_back(client);
        } else {
            let due_ns = self.clients[client].turn.due_ns;
            self.thinking.push(Reverse((due_ns, client)));
        }
    }

    /// Whether the turn of a client has come.
    #[inline]
    fn is_due(&mut self, client: usize, now_ns: u64) -> bool {
        let turn = &mut self.clients[client].turn;
        if self.setup.pace.waits() {
            *turn = (self.setup.pace).in_phase(*turn, self.core.phase_start_ns(now_ns));
        }
        turn.due_ns <= now_ns
    }

    /// The intended start of the next operation of a client.
    #[inline]
    fn intended_ns(&self, client: usize) -> u64 {
        let state = &self.clients[client];
        (self.setup.pace).intended_ns(state.turn, state.free_since_ns)
    }

    /// Starts counting the wait of a client that could send.
    #[inline]
    fn begin_wait(&mut self, client: usize, now_ns: u64) {
        if self.setup.pace.waits() && !std::mem::replace(&mut self.clients[client].thinks, true) {
            self.core.think_begins(now_ns);
        }
    }

    #[inline]
    fn end_wait(&mut self, client: usize, now_ns: u64) {
        if std::mem::take(&mut self.clients[client].thinks) {
            self.core.think_ends(now_ns);
        }
    }

    /// Handles the replacement of a client's lost connection. Returns whether it has a command to send again now.
    #[must_use]
    pub(crate) fn reconnected(&mut self, client: usize, now_ns: u64) -> bool {
        self.core.tick(now_ns);
        self.core.part.counts.reconnects += 1;
        self.connected(client, now_ns);
        let in_flight = self.clients[client].in_flight.as_ref();
        let waits = in_flight.is_some_and(|it| {
            (it.resent.is_some() || it.awaits_connection) && it.retry_at_ns.is_some()
        });
        waits && self.retry(client, now_ns)
    }

    /// Handles the loss of a client's connection; its command in flight fails with `error`.
    pub(crate) fn disconnected(&mut self, client: usize, error: OperationError, now_ns: u64) {
        self.clients[client].connected = false;
        self.free.retain(|&free| free != client);
        self.thinking.retain(|Reverse((_, other))| *other != client);
        self.core.tick(now_ns);
        self.end_wait(client, now_ns);
        if let Some(in_flight) = &self.clients[client].in_flight
            && in_flight.retry_at_ns.is_none()
        {
            // A client without a connection sends nothing.
            let _ = self.ended(client, Err(error), now_ns);
        }
    }

    /// Begins a due operation on the client that has been free longest. Repeat until there is nothing to send.
    #[inline]
    pub(crate) fn start_next(&mut self, now_ns: u64) -> Start {
        let next_turn_ns = self.free_the_due(now_ns);
        while !self.exhausted
            && let Some(&client) = self.free.front()
        {
            match self.core.next(now_ns, self.intended_ns(client)) {
                Next::Start(ticket) => {
                    self.free.pop_front();
                    if self.start(client, ticket, now_ns) {
                        return Start::Send(client);
                    }
                    if self.clients[client].in_flight.is_none() {
                        // Operations without commands must not keep the worker from its connections and its clock.
                        return Start::At(now_ns);
                    }
                }
                Next::At(at_ns) => return Start::At(at_ns.min(next_turn_ns)),
                Next::Never => self.exhausted = true,
            }
        }
        Start::At(if self.exhausted { u64::MAX } else { next_turn_ns })
    }

    /// Frees the clients whose turn has come, in order. Returns the time of the next turn.
    #[inline]
    fn free_the_due(&mut self, now_ns: u64) -> u64 {
        while let Some(&Reverse((due_ns, client))) = self.thinking.peek() {
            if due_ns > now_ns {
                return due_ns;
            }
            self.thinking.pop();
            self.line_up(client, now_ns);
        }
        u64::MAX
    }

    /// Returns whether the operation can be sent now. One that has nothing to send ends at once.
    #[inline]
    fn start(&mut self, client: usize, ticket: Ticket, now_ns: u64) -> bool {
        let operation = self.generator.next(ticket.number);
        let (waits, over) = (operation.awaits_document(), operation.over);
        self.unsent += 1;
        self.clients[client].in_flight = Some(InFlight {
            ticket,
            operation,
            send_ns: now_ns,
            command_send_ns: now_ns,
            deadline_ns: now_ns + self.setup.timeout_ns,
            failed: None,
            continues: false,
            retries_left: self.setup.retry.limit,
            retry_at_ns: waits.then_some(now_ns + CHECK_NS),
            resent: None,
            awaits_connection: false,
            labels: TransactionLabels::default(),
            sent: false,
        });
        if let Some(outcome) = over {
            self.end_operation(client, outcome, now_ns);
            self.line_up(client, now_ns);
        }
        !waits && over.is_none()
    }

    /// The operation, or its part, whose command a client has to send or has sent.
    #[inline]
    pub(crate) fn operation(&self, client: usize) -> Option<&Operation> {
        let in_flight = self.clients[client].in_flight.as_ref()?;
        Some(&in_flight.operation)
    }

    /// Marks a client's command as sent: its service time begins.
    #[inline]
    pub(crate) fn sent(&mut self, client: usize, now_ns: u64) {
        let Some(in_flight) = &mut self.clients[client].in_flight else {
            return;
        };
        if in_flight.resent.is_some() {
            // The time of a command that is sent again includes its first attempt.
            return;
        }
        in_flight.command_send_ns = now_ns;
        if !in_flight.continues {
            in_flight.deadline_ns = now_ns + self.setup.timeout_ns;
        }
        self.mark_sent(client, now_ns);
    }

    #[inline]
    fn mark_sent(&mut self, client: usize, now_ns: u64) {
        if let Some(in_flight) = &mut self.clients[client].in_flight
            && !in_flight.sent
        {
            in_flight.sent = true;
            in_flight.send_ns = now_ns;
            self.unsent -= 1;
            self.core.tick(now_ns);
            self.core.started(in_flight.ticket, now_ns);
            self.end_wait(client, now_ns);
        }
    }

    /// Handles the end of a client's command. Returns whether the client has a command to send now: the update of its
    /// read-modify-write, the next step of its operation, or its next operation.
    #[must_use]
    pub(crate) fn ended(&mut self, client: usize, outcome: Outcome, now_ns: u64) -> bool {
        let state = &mut self.clients[client];
        let is_connected = state.connected;
        let Some(in_flight) = &mut state.in_flight else {
            return false;
        };
        if let Action::Command { .. } = in_flight.operation.action {
            return self.command_ended(client, outcome, now_ns);
        }
        if in_flight.operation.planned.parts.is_none() {
            return self.finish_operation(client, outcome, now_ns);
        }
        let (ticket, counts_as) = (in_flight.ticket, in_flight.operation.counts_as);
        self.core.part_ended(ticket, counts_as, in_flight.command_times(now_ns), outcome);
        if in_flight.continues {
            let whole = in_flight.failed.map_or(outcome, Err);
            return self.finish_operation(client, whole, now_ns);
        }
        // A lost connection ends the pair, but an update that was not sent does not count as failed.
        if !is_connected || outcome.is_err_and(OperationError::ends_pair) {
            return self.finish_operation(client, outcome, now_ns);
        }
        in_flight.failed = outcome.err();
        in_flight.continues = true;
        in_flight.resent = None;
        in_flight.operation = self.generator.update_after(&in_flight.operation);
        true
    }

    /// Ends the operation of a client; the client begins its next one at once if one is due.
    fn finish_operation(&mut self, client: usize, outcome: Outcome, now_ns: u64) -> bool {
        if let Err(error) = outcome
            && self.schedule_retry(client, error, now_ns)
        {
            return false;
        }
        self.end_operation(client, outcome, now_ns);
        if !self.clients[client].connected {
            return false;
        }
        // In an open loop, a waiting arrival goes to the client that has been free longest.
        if self.free.is_empty() && !self.exhausted && self.is_due(client, now_ns) {
            match self.core.next(now_ns, self.intended_ns(client)) {
                Next::Start(ticket) => return self.start(client, ticket, now_ns),
                Next::At(_) => {}
                Next::Never => self.exhausted = true,
            }
        }
        self.line_up(client, now_ns);
        false
    }

    /// Records the end of a client's operation. A connected client begins to wait for its next one.
    fn end_operation(&mut self, client: usize, outcome: Outcome, now_ns: u64) {
        // An operation that was never sent must also end.
        self.mark_sent(client, now_ns);
        let state = &mut self.clients[client];
        let Some(in_flight) = &mut state.in_flight else {
            return;
        };
        let (id, number) = (in_flight.operation.planned.id, in_flight.ticket.number);
        if self.generator.needs_replies(&in_flight.operation) {
            self.core.count(in_flight.ticket, now_ns, |own| own.reply_operations += 1);
        }
        self.generator.finished(&mut in_flight.operation);
        self.core.ended(in_flight.ticket, id, in_flight.times(now_ns), outcome);
        state.in_flight = None;
        state.free_since_ns = now_ns;
        state.turn = self.setup.pace.next(state.turn, number, now_ns);
        let is_connected = state.connected;
        if let Err(error) = outcome {
            self.note_failure(id, error, now_ns);
        }
        if is_connected {
            self.begin_wait(client, now_ns);
        }
    }

    fn note_failure(&mut self, id: OperationId, error: OperationError, now_ns: u64) {
        if self.setup.abort_on_failure && self.fault.is_none() && error != OperationError::Cancelled
        {
            let example = self.core.part.example(id, error).cloned();
            let name = self.core.part.operations[id].name.clone();
            self.end_run(LoadError::Operation { name, error, example });
            self.stop(now_ns);
        }
    }

    /// Returns whether the failed operation will be sent again.
    fn schedule_retry(&mut self, client: usize, error: OperationError, now_ns: u64) -> bool {
        let Some(in_flight) = &mut self.clients[client].in_flight else {
            return false;
        };
        if in_flight.retries_left == 0
            || self.stopping_since_ns.is_some()
            || error == OperationError::Cancelled
        {
            return false;
        }
        let delay_ns = self.generator.retry_delay_ns(self.setup.retry.interval_ns);
        in_flight.retries_left -= 1;
        in_flight.resent = None;
        in_flight.deadline_ns = now_ns + delay_ns + self.setup.timeout_ns;
        self.generator.repeat(&mut in_flight.operation);
        in_flight.operation.may_exist |= in_flight.sent && error.is_unsure();
        in_flight.retry_at_ns = Some(now_ns + delay_ns);
        true
    }

    /// Whether it is time for a client to send again, or to stop waiting for its answer.
    pub(crate) fn due(&self, client: usize, now_ns: u64) -> Option<Due> {
        let in_flight = self.clients[client].in_flight.as_ref()?;
        match in_flight.retry_at_ns {
            Some(at_ns) => (now_ns >= at_ns).then_some(Due::Retry),
            None => (now_ns >= in_flight.deadline_ns).then_some(Due::TimedOut),
        }
    }

    /// Returns whether the operation of a client should be sent now, after a failure or, if it had to wait for its
    /// document, for the first time.
    #[must_use]
    pub(crate) fn retry(&mut self, client: usize, now_ns: u64) -> bool {
        let state = &mut self.clients[client];
        let Some(in_flight) = &mut state.in_flight else {
            return false;
        };
        in_flight.retry_at_ns = Some(now_ns + CHECK_NS);
        if let Some(error) = in_flight.resent {
            let is_over = now_ns >= in_flight.deadline_ns;
            if is_over || state.connected {
                in_flight.retry_at_ns = None;
            }
            return match (is_over, state.connected) {
                (false, is_connected) => is_connected,
                (true, true) => self.ended(client, Err(error), now_ns),
                (true, false) => self.ended(client, Err(OperationError::Disconnected), now_ns),
            };
        }
        if !state.connected {
            // Without a connection an attempt fails as well, or the wait would never end.
            let is_hopeless =
                (in_flight.sent && !in_flight.awaits_connection) || now_ns >= in_flight.deadline_ns;
            return is_hopeless
                && self.finish_operation(client, Err(OperationError::Disconnected), now_ns);
        }
        in_flight.awaits_connection = false;
        if !self.generator.take_document(&mut in_flight.operation) {
            // An operation whose own new documents let others wait must not wait without a limit.
            let is_over = in_flight.continues && now_ns >= in_flight.deadline_ns;
            return is_over && self.finish_operation(client, Err(OperationError::Timeout), now_ns);
        }
        in_flight.retry_at_ns = None;
        match in_flight.operation.over {
            Some(outcome) => self.finish_operation(client, outcome, now_ns),
            None => true,
        }
    }

    /// Checks for a stop request and for the end of the run. Call it every [`CHECK_NS`].
    pub(crate) fn check(&mut self, now_ns: u64) {
        if self.stopping_since_ns.is_none() && self.setup.stop.load(Ordering::Relaxed) {
            self.stop(now_ns);
        }
        // Only a free client asks for the next operation, but none may be free to learn that there are no more.
        if !self.exhausted && self.free.is_empty() && self.core.is_over(now_ns) {
            self.exhausted = true;
        }
    }

    /// Tracks whether the server answers; ends the run after too long a time without an answer.
    pub(crate) fn check_reachable(
        &mut self,
        is_reachable: bool,
        now_ns: u64,
        last_error: impl FnOnce() -> Option<Arc<ConnectError>>,
    ) {
        if is_reachable {
            self.unreachable_since_ns = None;
            return;
        }
        let since_ns = *self.unreachable_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns > self.setup.unreachable_limit_ns {
            self.end_run(LoadError::Unreachable(last_error()));
        }
    }

    /// Whether no client is connected.
    pub(crate) fn are_all_disconnected(&self) -> bool {
        self.clients.iter().all(|client| !client.connected)
    }

    /// Ends the run of all workers. Only the first error is reported.
    pub(crate) fn end_run(&mut self, fault: LoadError) {
        self.fault.get_or_insert(fault);
        self.setup.stop.store(true, Ordering::Relaxed);
    }

    /// Stops starting operations; operations in flight may end within a short time.
    pub(crate) fn stop(&mut self, now_ns: u64) {
        self.core.stop(now_ns);
        self.stopping_since_ns = Some(now_ns);
        self.exhausted = true;
    }

    /// Whether no more operations start, and all started ones have ended or timed out.
    pub(crate) fn is_done(&self, now_ns: u64) -> bool {
        let drained = self.exhausted && self.core.in_flight() == 0 && self.unsent == 0;
        drained || self.stopping_since_ns.is_some_and(|since_ns| now_ns > since_ns + STOP_DRAIN_NS)
    }

    /// Ends and counts the operations in flight, and hands over the last window. Returns the error with which the
    /// worker ended the run, if any.
    pub(crate) fn finish(mut self, now_ns: u64) -> Result<(), LoadError> {
        self.exhausted = true;
        for client in 0..self.clients.len() {
            // No more operations start.
            let _ = self.ended(client, Err(OperationError::Cancelled), now_ns);
        }
        self.core.finish(now_ns);
        self.fault.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
