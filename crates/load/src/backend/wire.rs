//! The worker loop of the `wire` backend: one thread, one epoll, many connections, one operation in
//! flight on each. Nothing is shared and nothing is allocated per operation.

use super::poller::{Poller, WAKER_TOKEN, set_precise_timers};
use super::reconnect::{Fresh, Reconnector};
use super::{WorkerEnd, WorkerFault, WorkerSetup};
use crate::clock::SECOND_NS;
use crate::connect::{Connected, Transport};
use crate::core::{Core, Next, Ticket};
use crate::operation::{OperationError, OperationKind, Outcome};
use crate::recorder::Times;
use crate::workload::{Begun, Generator};
use dyno_wire::compress::{Compressor, Scratch};
use dyno_wire::frame::{Frame, Opcode};
use dyno_wire::reply::Reply;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long before an intended start the worker stops sleeping and looks at the clock instead. Longer
/// costs CPU at low rates, shorter lets the kernel's wake-up time show in the start delay.
const SPIN_NS: u64 = 60_000;

/// How often timeouts, retries and the stop request are looked at.
const HOUSEKEEPING_NS: u64 = 20_000_000;

/// How long answers are waited for after the run was told to stop.
const STOP_DRAIN_NS: u64 = SECOND_NS;

/// Bytes read by one system call at most.
const READ_BYTES: usize = 256 * 1024;

/// Part of an operation that one command performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The only or first command.
    First,
    /// Further batches of a scan.
    GetMore,
    /// The update of a read-modify-write.
    Update,
}

/// An operation that was started and has not ended.
struct InFlight {
    ticket: Ticket,
    begun: Begun,
    step: Step,
    request_id: i32,
    /// Send of the first command.
    send_ns: u64,
    /// Send of the current command, for statistics of a part.
    step_send_ns: u64,
    deadline_ns: u64,
    documents: u32,
    /// Failure of an earlier part.
    failed: Option<OperationError>,
    retries_left: u32,
    /// Set while a failed insert waits to be sent again, or any insert for a number.
    retry_at_ns: Option<u64>,
    /// Its command was sent at least once.
    sent: bool,
}

/// A live connection. Both buffers are empty except when a message does not fit into one system call.
struct Connection {
    transport: Transport,
    compressor: Option<Compressor>,
    input: Vec<u8>,
    output: Vec<u8>,
    watches_output: bool,
}

/// One client: a place for a connection and its operation.
struct Slot {
    connection: Option<Connection>,
    operation: Option<InFlight>,
    free_since_ns: u64,
    attempts: u32,
}

/// The worker.
pub(crate) struct Worker {
    setup: WorkerSetup,
    core: Core,
    generator: Generator,
    poller: Poller,
    reconnector: Reconnector,
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    connected: usize,
    down_since_ns: Option<u64>,
    request_id: i32,
    out: Vec<u8>,
    packing: Scratch,
    unpacking: Scratch,
    input: Vec<u8>,
    /// Operations that have begun and wait to be sent for the first time.
    waiting: usize,
    exhausted: bool,
    stopping_since_ns: Option<u64>,
    fault: Option<WorkerFault>,
}

impl Worker {
    /// A worker with the given established connections.
    pub(crate) fn new(
        setup: WorkerSetup,
        core: Core,
        generator: Generator,
        poller: Poller,
        reconnector: Reconnector,
        connections: Vec<Connected>,
    ) -> io::Result<Self> {
        let mut worker = Worker {
            setup,
            core,
            generator,
            poller,
            reconnector,
            slots: Vec::new(),
            free: VecDeque::with_capacity(connections.len()),
            connected: 0,
            down_since_ns: None,
            request_id: 0,
            out: Vec::with_capacity(READ_BYTES),
            packing: Scratch::default(),
            unpacking: Scratch::default(),
            input: vec![0; READ_BYTES],
            waiting: 0,
            exhausted: false,
            stopping_since_ns: None,
            fault: None,
        };
        for connected in connections {
            let slot = worker.slots.len();
            worker.slots.push(Slot {
                connection: None,
                operation: None,
                free_since_ns: 0,
                attempts: 0,
            });
            worker.install(slot, connected, 0)?;
        }
        Ok(worker)
    }

    /// Runs until nothing more starts and everything started has ended.
    pub(crate) fn run(mut self) -> WorkerEnd {
        set_precise_timers();
        let mut housekeeping_ns = 0;
        let end_ns = loop {
            let now_ns = self.setup.clock.now_ns();
            self.core.tick(now_ns);
            let next_start_ns = self.start_due(now_ns);
            if now_ns >= housekeeping_ns {
                // Starting may have taken long, and a timeout must not come early.
                self.keep_house(self.setup.clock.now_ns());
                housekeeping_ns = now_ns + HOUSEKEEPING_NS;
            }
            if self.is_done(now_ns) {
                break now_ns;
            }
            let until_ns = next_start_ns
                .saturating_sub(SPIN_NS)
                .min(housekeeping_ns)
                .min(self.core.wake_ns());
            if let Err(error) = self.wait_and_serve(until_ns) {
                self.fault = Some(WorkerFault::Poll(error));
                self.setup.stop.store(true, Ordering::Relaxed);
                let now_ns = self.setup.clock.now_ns();
                self.stop(now_ns);
                break now_ns;
            }
        };
        self.cancel_all(end_ns);
        self.core.finish(end_ns);
        WorkerEnd { fault: self.fault }
    }

    fn is_done(&self, now_ns: u64) -> bool {
        let drained = self.exhausted && self.core.in_flight() == 0 && self.waiting == 0;
        drained
            || self
                .stopping_since_ns
                .is_some_and(|since_ns| now_ns > since_ns + STOP_DRAIN_NS)
    }

    /// Ends what is still under way when the worker stops waiting, so that it is counted.
    fn cancel_all(&mut self, now_ns: u64) {
        self.exhausted = true;
        for slot in 0..self.slots.len() {
            self.fail_in_flight(slot, OperationError::Cancelled, now_ns);
        }
    }

    /// Starts what is due on free clients. Returns when to look again at the latest.
    fn start_due(&mut self, now_ns: u64) -> u64 {
        let mut now_ns = now_ns;
        while !self.exhausted
            && let Some(&slot) = self.free.front()
        {
            match self.core.next(now_ns, self.slots[slot].free_since_ns) {
                Next::Start(ticket) => {
                    self.free.pop_front();
                    self.start(slot, ticket);
                    now_ns = self.setup.clock.now_ns();
                    self.core.tick(now_ns);
                }
                Next::At(at_ns) => return at_ns,
                Next::Never => self.exhausted = true,
            }
        }
        u64::MAX
    }

    /// Sleeps until there is something to read, or until `until_ns`.
    fn wait_and_serve(&mut self, until_ns: u64) -> io::Result<()> {
        let sleep_ns = until_ns.saturating_sub(self.setup.clock.now_ns());
        let ready = self.poller.wait(Duration::from_nanos(sleep_ns))?;
        for index in 0..ready {
            let event = self.poller.event(index);
            if event.token == WAKER_TOKEN {
                self.poller.clear_waker();
                self.install_fresh()?;
                continue;
            }
            let slot = event.token as usize;
            if event.writable {
                self.flush(slot);
            }
            if event.readable {
                self.receive(slot);
            }
        }
        Ok(())
    }

    /// Timeouts, retries, the stop request, and the state of the connections.
    fn keep_house(&mut self, now_ns: u64) {
        if self.stopping_since_ns.is_none() && self.setup.stop.load(Ordering::Relaxed) {
            self.stop(now_ns);
        }
        for slot in 0..self.slots.len() {
            let Some(operation) = &mut self.slots[slot].operation else {
                continue;
            };
            match operation.retry_at_ns {
                Some(at_ns) if now_ns >= at_ns => self.retry(slot, now_ns),
                Some(_) => {}
                None if now_ns >= operation.deadline_ns => {
                    self.disconnect(slot, OperationError::Timeout, now_ns);
                }
                None => {}
            }
        }
        // Only a free client asks for the next operation, and there may be none to learn that it was the last.
        if !self.exhausted && self.free.is_empty() && self.core.is_over(now_ns) {
            self.exhausted = true;
        }
        self.watch_reachability(now_ns);
    }

    /// Starts nothing more; what is under way has a moment to end.
    fn stop(&mut self, now_ns: u64) {
        self.core.stop(now_ns);
        self.stopping_since_ns = Some(now_ns);
        self.exhausted = true;
    }

    fn watch_reachability(&mut self, now_ns: u64) {
        if self.connected > 0 {
            self.down_since_ns = None;
            return;
        }
        let since_ns = *self.down_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns > self.setup.unreachable_limit_ns && self.fault.is_none() {
            self.fault = Some(WorkerFault::Unreachable(self.reconnector.last_error()));
            self.setup.stop.store(true, Ordering::Relaxed);
        }
    }

    fn next_request_id(&mut self) -> i32 {
        self.request_id = self.request_id.wrapping_add(1) & i32::MAX;
        self.request_id
    }

    /// Begins the operation of `ticket` on a free client.
    fn start(&mut self, slot: usize, ticket: Ticket) {
        let request_id = self.next_request_id();
        self.out.clear();
        let begun = self
            .generator
            .begin(ticket.number, request_id, &mut self.out);
        let send_ns = self.setup.clock.now_ns();
        self.slots[slot].operation = Some(InFlight {
            ticket,
            begun,
            step: Step::First,
            request_id,
            send_ns,
            step_send_ns: send_ns,
            deadline_ns: send_ns + self.setup.timeout_ns,
            documents: 0,
            failed: None,
            retries_left: self.setup.retry.limit,
            retry_at_ns: begun.waiting.then_some(send_ns + HOUSEKEEPING_NS),
            sent: !begun.waiting,
        });
        if begun.waiting {
            self.waiting += 1;
            return;
        }
        self.core.tick(send_ns);
        self.core.started(ticket, send_ns);
        self.send(slot, send_ns);
    }

    /// Sends an operation again after a failure, or for the first time when it had to wait for a number.
    fn retry(&mut self, slot: usize, now_ns: u64) {
        let request_id = self.next_request_id();
        self.out.clear();
        let has_connection = self.slots[slot].connection.is_some();
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        if !has_connection {
            // Without a connection an attempt fails as well, or the wait would have no end.
            let is_hopeless = operation.sent || now_ns >= operation.deadline_ns;
            operation.retry_at_ns = Some(now_ns + HOUSEKEEPING_NS);
            if is_hopeless {
                self.end(slot, Err(OperationError::Disconnected), now_ns);
            }
            return;
        }
        let number = operation.ticket.number;
        if !self
            .generator
            .repeat(&mut operation.begun, number, request_id, &mut self.out)
        {
            operation.retry_at_ns = Some(now_ns + HOUSEKEEPING_NS);
            return;
        }
        let send_ns = self.setup.clock.now_ns();
        operation.request_id = request_id;
        operation.retry_at_ns = None;
        operation.deadline_ns = send_ns + self.setup.timeout_ns;
        self.mark_sent(slot, send_ns);
        self.send(slot, send_ns);
    }

    /// Notes the first send of an operation that had to wait for it.
    fn mark_sent(&mut self, slot: usize, now_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        if operation.sent {
            return;
        }
        operation.sent = true;
        operation.send_ns = now_ns;
        operation.step_send_ns = now_ns;
        let ticket = operation.ticket;
        self.waiting -= 1;
        self.core.tick(now_ns);
        self.core.started(ticket, now_ns);
    }

    /// Hands `self.out` to the socket; what does not fit is kept and sent when there is room.
    fn send(&mut self, slot: usize, now_ns: u64) {
        let Some(connection) = self.slots[slot].connection.as_mut() else {
            return;
        };
        let bytes: &[u8] = match connection.compressor {
            None => &self.out,
            // A server must take plain messages as well.
            Some(compressor) => self
                .packing
                .compress(compressor, &self.out)
                .unwrap_or(&self.out),
        };
        match write_all(&mut connection.transport, bytes) {
            Ok(sent) if sent == bytes.len() && !connection.transport.wants_write() => {}
            Ok(sent) => {
                connection.output.clear();
                connection.output.extend_from_slice(&bytes[sent..]);
                self.watch_output(slot, true);
            }
            Err(_) => self.disconnect(slot, OperationError::Disconnected, now_ns),
        }
    }

    /// Sends what was left over by [`send`](Self::send).
    fn flush(&mut self, slot: usize) {
        let Some(connection) = self.slots[slot].connection.as_mut() else {
            return;
        };
        let result = write_all(&mut connection.transport, &connection.output);
        match result {
            Ok(sent) => {
                connection.output.drain(..sent);
                let flushed = connection.transport.flush_pending();
                if connection.output.is_empty()
                    && flushed.is_ok()
                    && !connection.transport.wants_write()
                {
                    self.watch_output(slot, false);
                }
            }
            Err(_) => {
                let now_ns = self.setup.clock.now_ns();
                self.disconnect(slot, OperationError::Disconnected, now_ns);
            }
        }
    }

    fn watch_output(&mut self, slot: usize, wanted: bool) {
        let Some(connection) = self.slots[slot].connection.as_mut() else {
            return;
        };
        if connection.watches_output == wanted {
            return;
        }
        connection.watches_output = wanted;
        let descriptor = connection.transport.as_raw_fd();
        if self
            .poller
            .set_writable(descriptor, slot as u64, wanted)
            .is_err()
        {
            let now_ns = self.setup.clock.now_ns();
            self.disconnect(slot, OperationError::Disconnected, now_ns);
        }
    }

    /// Reads what has arrived and handles every whole message.
    fn receive(&mut self, slot: usize) {
        // The buffer is taken out of `self` for the time in which messages in it are handled.
        let mut input = std::mem::take(&mut self.input);
        while let Some(connection) = self.slots[slot].connection.as_mut() {
            let read = connection.transport.read(&mut input);
            // One clock reading: the end of this command, and the base of the next start.
            let now_ns = self.setup.clock.now_ns();
            match read {
                Ok(0) => self.disconnect(slot, OperationError::Disconnected, now_ns),
                Ok(count) => {
                    // A plain socket that gave less than asked for is empty; asking again would cost a
                    // system call to learn that. Decrypted bytes are invisible to epoll, so TLS asks on.
                    let drained = count < input.len() && !connection.transport.is_tls();
                    self.consume(slot, &input[..count], now_ns);
                    if drained {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.disconnect(slot, OperationError::Disconnected, now_ns),
            }
        }
        // Reading can make TLS want to answer (a key update).
        if let Some(connection) = &self.slots[slot].connection
            && connection.transport.wants_write()
        {
            self.watch_output(slot, true);
        }
        self.input = input;
    }

    /// Handles the whole messages in `bytes`, after what earlier reads left over, and keeps the rest.
    fn consume(&mut self, slot: usize, bytes: &[u8], now_ns: u64) {
        let Some(connection) = self.slots[slot].connection.as_mut() else {
            return;
        };
        if connection.input.is_empty() {
            let used = self.handle_messages(slot, bytes, now_ns);
            if let Some(connection) = self.slots[slot].connection.as_mut() {
                connection.input.extend_from_slice(&bytes[used..]);
            }
            return;
        }
        let mut pending = std::mem::take(&mut connection.input);
        pending.extend_from_slice(bytes);
        let used = self.handle_messages(slot, &pending, now_ns);
        if let Some(connection) = self.slots[slot].connection.as_mut() {
            pending.drain(..used);
            connection.input = pending;
        }
    }

    /// Handles whole messages at the front of `bytes` and returns how many bytes they had.
    fn handle_messages(&mut self, slot: usize, bytes: &[u8], now_ns: u64) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            match dyno_wire::frame::parse(&bytes[used..]) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let length = frame.length;
                    if !self.handle_frame(slot, &frame, now_ns) {
                        self.disconnect(slot, OperationError::Protocol, now_ns);
                        return bytes.len();
                    }
                    used += length;
                }
                Err(_) => {
                    self.disconnect(slot, OperationError::Protocol, now_ns);
                    return bytes.len();
                }
            }
        }
        used
    }

    /// Returns whether the message was the answer to the operation in flight.
    fn handle_frame(&mut self, slot: usize, frame: &Frame<'_>, now_ns: u64) -> bool {
        match frame.opcode {
            Opcode::Message => self.handle_body(slot, frame.response_to, frame.body, now_ns),
            Opcode::Compressed => {
                // Taken out of `self` for the time in which the unpacked message is handled.
                let mut unpacking = std::mem::take(&mut self.unpacking);
                let handled = match unpacking.decompress(frame.body) {
                    Ok((Opcode::Message, body)) => {
                        self.handle_body(slot, frame.response_to, body, now_ns)
                    }
                    _ => false,
                };
                self.unpacking = unpacking;
                handled
            }
            Opcode::Reply | Opcode::Query => false,
        }
    }

    fn handle_body(&mut self, slot: usize, response_to: i32, body: &[u8], now_ns: u64) -> bool {
        match dyno_wire::reply::read(body) {
            Ok(reply) => self.handle_reply(slot, response_to, &reply, now_ns),
            Err(_) => false,
        }
    }

    /// Returns whether the message was the answer to the operation in flight.
    fn handle_reply(
        &mut self,
        slot: usize,
        response_to: i32,
        reply: &Reply<'_>,
        now_ns: u64,
    ) -> bool {
        let Some(operation) = &mut self.slots[slot].operation else {
            return false;
        };
        if operation.request_id != response_to || operation.retry_at_ns.is_some() {
            return false;
        }
        let kind = operation.begun.kind;
        match (kind, operation.step) {
            (OperationKind::Scan, _) => self.after_scan_batch(slot, reply, now_ns),
            (OperationKind::ReadModifyWrite, Step::First) => {
                self.after_read_of_pair(slot, reply, now_ns)
            }
            (OperationKind::ReadModifyWrite, _) => self.after_update_of_pair(slot, reply, now_ns),
            _ => {
                let outcome = self.generator.outcome(&operation.begun, kind, reply);
                self.end(slot, outcome, now_ns);
            }
        }
        true
    }

    fn after_scan_batch(&mut self, slot: usize, reply: &Reply<'_>, now_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        let outcome = self
            .generator
            .outcome(&operation.begun, OperationKind::Scan, reply);
        let cursor_id = reply.cursor.as_ref().map_or(0, |cursor| cursor.id);
        match outcome {
            // An empty batch is a failure only if it is the first one.
            Err(OperationError::NotFound) if operation.documents > 0 => {}
            Err(error) => return self.end(slot, Err(error), now_ns),
            Ok(count) => operation.documents += count,
        }
        if cursor_id == 0 || operation.documents >= operation.begun.limit {
            let documents = operation.documents;
            return self.end(slot, Ok(documents), now_ns);
        }
        operation.step = Step::GetMore;
        let request_id = self.next_request_id();
        self.out.clear();
        self.generator
            .get_more(cursor_id, request_id, &mut self.out);
        if let Some(operation) = &mut self.slots[slot].operation {
            operation.request_id = request_id;
        }
        self.send(slot, now_ns);
    }

    fn after_read_of_pair(&mut self, slot: usize, reply: &Reply<'_>, now_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        let outcome = self
            .generator
            .outcome(&operation.begun, OperationKind::Read, reply);
        let times = Times {
            intended_ns: operation.ticket.intended_ns,
            send_ns: operation.send_ns,
            end_ns: now_ns,
        };
        self.core
            .part_ended(operation.ticket, OperationKind::Read, times, outcome);
        operation.failed = outcome.err();
        operation.step = Step::Update;
        let (number, begun) = (operation.ticket.number, operation.begun);
        let request_id = self.next_request_id();
        self.out.clear();
        self.generator
            .update_after_read(&begun, number, request_id, &mut self.out);
        let send_ns = self.setup.clock.now_ns();
        if let Some(operation) = &mut self.slots[slot].operation {
            operation.request_id = request_id;
            operation.step_send_ns = send_ns;
        }
        self.send(slot, send_ns);
    }

    fn after_update_of_pair(&mut self, slot: usize, reply: &Reply<'_>, now_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        let outcome = self
            .generator
            .outcome(&operation.begun, OperationKind::Update, reply);
        self.end_update_of_pair(slot, outcome, now_ns);
    }

    fn end_update_of_pair(&mut self, slot: usize, outcome: Outcome, now_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        // The update is due as soon as the read has ended, which is when it is sent.
        let times = Times {
            intended_ns: operation.step_send_ns,
            send_ns: operation.step_send_ns,
            end_ns: now_ns,
        };
        self.core
            .part_ended(operation.ticket, OperationKind::Update, times, outcome);
        let whole = operation.failed.map_or(outcome, Err);
        self.end(slot, whole, now_ns);
    }

    /// The operation of a client has ended; the client starts its next one at once if one is due.
    fn end(&mut self, slot: usize, outcome: Outcome, now_ns: u64) {
        if let Err(error) = outcome
            && self.schedule_retry(slot, error, now_ns)
        {
            return;
        }
        // What was never sent ends here all the same.
        self.mark_sent(slot, now_ns);
        let Some(operation) = self.slots[slot].operation.take() else {
            return;
        };
        self.generator.settle(&operation.begun, outcome.is_ok());
        let times = Times {
            intended_ns: operation.ticket.intended_ns,
            send_ns: operation.send_ns,
            end_ns: now_ns,
        };
        self.core
            .ended(operation.ticket, operation.begun.kind, times, outcome);
        if outcome.is_ok() {
            self.slots[slot].attempts = 0;
        }
        if let Err(error) = outcome {
            self.note_failure(operation.begun.kind, error, now_ns);
        }
        self.slots[slot].free_since_ns = now_ns;
        if self.slots[slot].connection.is_none() {
            return;
        }
        // In an open loop an arrival that has waited goes to the client that has waited longest.
        if !self.free.is_empty() || self.exhausted {
            self.free.push_back(slot);
            return;
        }
        match self.core.next(now_ns, now_ns) {
            Next::Start(ticket) => self.start(slot, ticket),
            Next::At(_) => self.free.push_back(slot),
            Next::Never => {
                self.exhausted = true;
                self.free.push_back(slot);
            }
        }
    }

    fn note_failure(&mut self, kind: OperationKind, error: OperationError, now_ns: u64) {
        if self.setup.abort_on_failure && self.fault.is_none() && error != OperationError::Cancelled
        {
            self.fault = Some(WorkerFault::Operation { kind, error });
            self.setup.stop.store(true, Ordering::Relaxed);
            self.stop(now_ns);
        }
    }

    /// Returns whether the failed operation will be sent again.
    fn schedule_retry(&mut self, slot: usize, error: OperationError, now_ns: u64) -> bool {
        if self.stopping_since_ns.is_some() || error == OperationError::Cancelled {
            return false;
        }
        let delay_ns = self.generator.retry_delay_ns(self.setup.retry.interval_ns);
        let Some(operation) = &mut self.slots[slot].operation else {
            return false;
        };
        if operation.retries_left == 0 {
            return false;
        }
        operation.retries_left -= 1;
        operation.begun.may_exist |= operation.sent && error.is_unsure();
        operation.retry_at_ns = Some(now_ns + delay_ns);
        true
    }

    /// Closes a connection, ends its operation as failed, and asks for a new connection.
    fn disconnect(&mut self, slot: usize, error: OperationError, now_ns: u64) {
        let Some(connection) = self.slots[slot].connection.take() else {
            return;
        };
        // Closing the descriptor ends the watch as well; an error here changes nothing.
        let _ = self.poller.remove(connection.transport.as_raw_fd());
        drop(connection);
        self.connected -= 1;
        self.free.retain(|&free| free != slot);
        self.core.tick(now_ns);
        if let Some(operation) = &self.slots[slot].operation
            && operation.retry_at_ns.is_none()
        {
            self.fail_in_flight(slot, error, now_ns);
        }
        let attempts = self.slots[slot].attempts;
        self.slots[slot].attempts += 1;
        self.reconnector.request(slot, attempts);
    }

    /// Ends the operation in flight as failed, with the parts of a read-modify-write where they belong.
    fn fail_in_flight(&mut self, slot: usize, error: OperationError, now_ns: u64) {
        let Some(operation) = &self.slots[slot].operation else {
            return;
        };
        if operation.begun.kind != OperationKind::ReadModifyWrite {
            return self.end(slot, Err(error), now_ns);
        }
        if operation.step == Step::Update {
            return self.end_update_of_pair(slot, Err(error), now_ns);
        }
        let times = Times {
            intended_ns: operation.ticket.intended_ns,
            send_ns: operation.send_ns,
            end_ns: now_ns,
        };
        self.core
            .part_ended(operation.ticket, OperationKind::Read, times, Err(error));
        self.end(slot, Err(error), now_ns);
    }

    fn install_fresh(&mut self) -> io::Result<()> {
        while let Some(Fresh { slot, connected }) = self.reconnector.take() {
            let now_ns = self.setup.clock.now_ns();
            self.core.tick(now_ns);
            self.core.reconnected();
            self.install(slot, connected, now_ns)?;
        }
        Ok(())
    }

    fn install(&mut self, slot: usize, connected: Connected, now_ns: u64) -> io::Result<()> {
        connected.transport.set_nonblocking(true)?;
        self.poller
            .add(connected.transport.as_raw_fd(), slot as u64)?;
        self.slots[slot].connection = Some(Connection {
            transport: connected.transport,
            compressor: connected.compressor,
            input: Vec::new(),
            output: Vec::new(),
            watches_output: false,
        });
        self.connected += 1;
        self.slots[slot].free_since_ns = now_ns;
        if self.slots[slot].operation.is_none() {
            self.free.push_back(slot);
        }
        Ok(())
    }
}

/// Writes until everything is written or the socket is full; returns how much was taken.
fn write_all(transport: &mut Transport, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match transport.write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
