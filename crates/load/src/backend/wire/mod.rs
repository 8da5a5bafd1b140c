//! The worker loop of the `wire` backend: one thread, one epoll, many connections, one operation in
//! flight on each. Nothing is shared and nothing is allocated per operation.

mod connection;
mod encode;
mod retry;

use super::poller::{Poller, WAKER_TOKEN, set_precise_timers};
use super::reconnect::{Reconnector, Replacement};
use crate::clients::{CHECK_NS, Clients, Due, SPIN_NS, Start, WorkerSetup};
use crate::clock::Clock;
use crate::connect::{Connected, Retries};
use crate::core::Core;
use crate::error::LoadError;
use crate::generator::Generator;
use crate::operation::OperationError;
use connection::{Connection, Read};
use dyno_wire::command::Transaction;
use dyno_wire::compress::Scratch;
use dyno_wire::frame::{Frame, Opcode};
use dyno_wire::reply::{Refusal, Reply};
use encode::Encoder;
pub(crate) use encode::own_outcome;
use retry::{Again, ServerRetries};
use std::io;
use std::time::Duration;

/// Bytes read by one system call at most.
const READ_BYTES: usize = 256 * 1024;

/// State of a client's connection.
#[derive(Default)]
struct Slot {
    connection: Option<Connection>,
    /// Consecutive connection attempts that failed, and connections without a success.
    attempts: u32,
    /// Request ID of the command that waits for a reply.
    awaits: Option<i32>,
    /// Documents returned so far by the cursor in flight.
    scanned: u32,
    /// Whether the command that waits is a `getMore`.
    continues: bool,
    /// Retries that the server of the connection supports.
    server: ServerRetries,
    /// The client's session with the number of its last write.
    transaction: Transaction,
}

impl Slot {
    fn new() -> Self {
        Slot { transaction: retry::new_session(), ..Slot::default() }
    }
}

/// Buffers for input, separate from the worker so that both can be borrowed.
struct ReadBuffers {
    input: Vec<u8>,
    unpacking: Scratch,
}

/// The worker.
pub(crate) struct Worker {
    clock: Clock,
    clients: Clients,
    encoder: Encoder,
    poller: Poller,
    reconnector: Reconnector,
    /// By client.
    slots: Vec<Slot>,
    /// Retries of the connection string.
    retries: Retries,
    request_id: i32,
    out: Vec<u8>,
    packing: Scratch,
}

impl Worker {
    /// A worker with the given established connections.
    pub(crate) fn new(
        setup: WorkerSetup,
        core: Core,
        generator: Generator,
        poller: Poller,
        reconnector: Reconnector,
        (connections, retries): (Vec<Connected>, Retries),
    ) -> io::Result<Self> {
        let count = connections.len();
        let mut worker = Worker {
            clock: setup.clock,
            encoder: Encoder::new(generator.workload().clone()),
            clients: Clients::new(setup, core, generator, count),
            poller,
            reconnector,
            slots: (0..count).map(|_| Slot::new()).collect(),
            request_id: 0,
            retries,
            out: Vec::with_capacity(READ_BYTES),
            packing: Scratch::default(),
        };
        for (client, connected) in connections.into_iter().enumerate() {
            worker.install(client, connected)?;
            worker.clients.connected(client, 0);
        }
        Ok(worker)
    }

    /// Runs until no more operations start and all started ones have ended.
    pub(crate) fn run(mut self) -> Result<(), LoadError> {
        set_precise_timers();
        let mut buffers = ReadBuffers { input: vec![0; READ_BYTES], unpacking: Scratch::default() };
        let mut check_ns = 0;
        let end_ns = loop {
            let now_ns = self.clock.now_ns();
            self.clients.tick(now_ns);
            let next_start_ns = self.start_due(now_ns);
            if now_ns >= check_ns {
                // Starting may have taken long, and a timeout must not fire early.
                self.check_clients(self.clock.now_ns());
                check_ns = now_ns + CHECK_NS;
            }
            if self.clients.is_done(now_ns) {
                break now_ns;
            }
            let until_ns =
                next_start_ns.saturating_sub(SPIN_NS).min(check_ns).min(self.clients.wake_ns());
            if let Err(error) = self.wait_and_serve(until_ns, &mut buffers) {
                let now_ns = self.clock.now_ns();
                self.clients.end_run(LoadError::Poll(error));
                self.clients.stop(now_ns);
                break now_ns;
            }
        };
        self.clients.finish(end_ns)
    }

    /// Starts due operations on free clients. Returns the latest time for the next check.
    fn start_due(&mut self, mut now_ns: u64) -> u64 {
        loop {
            match self.clients.start_next(now_ns) {
                Start::Send(client) => self.perform(client),
                Start::At(at_ns) => return at_ns,
            }
            now_ns = self.clock.now_ns();
            self.clients.tick(now_ns);
        }
    }

    /// Sleeps until data arrives, or until `until_ns`.
    fn wait_and_serve(&mut self, until_ns: u64, buffers: &mut ReadBuffers) -> io::Result<()> {
        let sleep_ns = until_ns.saturating_sub(self.clock.now_ns());
        let ready = self.poller.wait(Duration::from_nanos(sleep_ns))?;
        for index in 0..ready {
            let event = self.poller.event(index);
            if event.token == WAKER_TOKEN {
                self.poller.clear_waker();
                self.install_replacements()?;
                continue;
            }
            let client = event.token as usize;
            if event.writable {
                self.flush(client);
            }
            if event.readable {
                self.receive(client, buffers);
            }
        }
        Ok(())
    }

    /// Timeouts, retries, the stop request, and the state of the connections.
    fn check_clients(&mut self, now_ns: u64) {
        for client in 0..self.clients.len() {
            match self.clients.due(client, now_ns) {
                Some(Due::Retry) => self.retry(client, now_ns),
                Some(Due::TimedOut) => self.disconnect(client, OperationError::Timeout, now_ns),
                None => {}
            }
        }
        self.clients.check(now_ns);
        let is_reachable = !self.clients.are_all_disconnected();
        self.clients.check_reachable(is_reachable, now_ns, || self.reconnector.last_error());
    }

    fn retry(&mut self, client: usize, now_ns: u64) {
        if self.clients.retry(client, now_ns) {
            self.perform(client);
        }
    }

    /// Sends the operation of a client, or the update of its read-modify-write.
    fn perform(&mut self, client: usize) {
        let Some(operation) = self.clients.operation(client) else {
            return;
        };
        let slot = &mut self.slots[client];
        let is_write = !operation.action.reads();
        let is_retryable =
            self.retries.writes && slot.server.takes_writes && operation.action.writes_once();
        if is_write
            && !is_retryable
            && let Some(first) = self.clients.resent_after(client)
        {
            // The server of the new connection would not recognize the write, and could apply it twice.
            let now_ns = self.clock.now_ns();
            if self.clients.ended(client, Err(first), now_ns) {
                self.perform(client);
            }
            return;
        }
        self.request_id = next_request_id(self.request_id);
        self.out.clear();
        let (in_transaction, starts) = self.encoder.in_transaction(operation);
        if starts || (is_retryable && self.clients.resent_after(client).is_none()) {
            slot.transaction.number += 1;
        }
        let transaction = (is_retryable || in_transaction).then_some(&slot.transaction);
        self.encoder.encode(operation, self.request_id, transaction, &mut self.out);
        let now_ns = self.clock.now_ns();
        self.clients.sent(client, now_ns);
        slot.awaits = Some(self.request_id);
        slot.scanned = 0;
        slot.continues = false;
        self.send(client, now_ns);
    }

    /// Passes `self.out` to the socket; the rest is sent when the socket is writable.
    fn send(&mut self, client: usize, now_ns: u64) {
        let Some(connection) = self.slots[client].connection.as_mut() else {
            return;
        };
        match connection.send(&self.out, &mut self.packing) {
            Ok(true) => {}
            Ok(false) => self.watch_output(client, true),
            Err(_) => self.disconnect(client, OperationError::Disconnected, now_ns),
        }
    }

    /// Sends the rest of an earlier [`send`](Self::send).
    fn flush(&mut self, client: usize) {
        let Some(connection) = self.slots[client].connection.as_mut() else {
            return;
        };
        match connection.flush() {
            Ok(true) => self.watch_output(client, false),
            Ok(false) => {}
            Err(_) => {
                let now_ns = self.clock.now_ns();
                self.disconnect(client, OperationError::Disconnected, now_ns);
            }
        }
    }

    fn watch_output(&mut self, client: usize, wanted: bool) {
        let Some(connection) = self.slots[client].connection.as_mut() else {
            return;
        };
        if connection.watch_output(&self.poller, client as u64, wanted).is_err() {
            let now_ns = self.clock.now_ns();
            self.disconnect(client, OperationError::Disconnected, now_ns);
        }
    }

    /// Reads available data and handles every complete message.
    fn receive(&mut self, client: usize, buffers: &mut ReadBuffers) {
        let ReadBuffers { input, unpacking } = buffers;
        while let Some(connection) = self.slots[client].connection.as_mut() {
            let read = connection.read(input);
            // A single clock reading: the end of this command, and the base of the next start.
            let now_ns = self.clock.now_ns();
            match read {
                Read::Bytes { count, is_last } => {
                    self.consume(client, &input[..count], unpacking, now_ns);
                    if is_last {
                        break;
                    }
                }
                Read::Nothing => break,
                Read::Interrupted => {}
                Read::Closed => self.disconnect(client, OperationError::Disconnected, now_ns),
            }
        }
        // Reading can make TLS want to answer (a key update).
        if let Some(connection) = &self.slots[client].connection
            && connection.wants_write()
        {
            self.watch_output(client, true);
        }
    }

    /// Handles the complete messages in the earlier rest and `bytes`, and keeps the new rest.
    fn consume(&mut self, client: usize, bytes: &[u8], unpacking: &mut Scratch, now_ns: u64) {
        let Some(connection) = self.slots[client].connection.as_mut() else {
            return;
        };
        if connection.input.is_empty() {
            let used = self.handle_messages(client, bytes, unpacking, now_ns);
            if let Some(connection) = self.slots[client].connection.as_mut() {
                connection.input.extend_from_slice(&bytes[used..]);
            }
            return;
        }
        let mut pending = std::mem::take(&mut connection.input);
        pending.extend_from_slice(bytes);
        let used = self.handle_messages(client, &pending, unpacking, now_ns);
        if let Some(connection) = self.slots[client].connection.as_mut() {
            pending.drain(..used);
            connection.input = pending;
        }
    }

    /// Handles complete messages at the front of `bytes` and returns their length.
    fn handle_messages(
        &mut self,
        client: usize,
        bytes: &[u8],
        unpacking: &mut Scratch,
        now_ns: u64,
    ) -> usize {
        let mut used = 0;
        while used < bytes.len() {
            match dyno_wire::frame::parse(&bytes[used..]) {
                Ok(None) => break,
                Ok(Some(frame)) if self.handle_frame(client, &frame, unpacking, now_ns) => {
                    used += frame.length;
                }
                Ok(Some(_)) | Err(_) => {
                    self.disconnect(client, OperationError::Protocol, now_ns);
                    return bytes.len();
                }
            }
        }
        used
    }

    /// Returns whether the message was the answer to the operation in flight.
    fn handle_frame(
        &mut self,
        client: usize,
        frame: &Frame<'_>,
        unpacking: &mut Scratch,
        now_ns: u64,
    ) -> bool {
        let body = match frame.opcode {
            Opcode::Message => frame.body,
            Opcode::Compressed => match unpacking.decompress(frame.body) {
                Ok((Opcode::Message, body)) => body,
                _ => return false,
            },
            Opcode::Reply | Opcode::Query => return false,
        };
        let slot = &mut self.slots[client];
        if slot.awaits != Some(frame.response_to) {
            return false;
        }
        match dyno_wire::reply::read(body) {
            Ok(reply) => {
                slot.awaits = None;
                self.handle_reply(client, &reply, now_ns);
                true
            }
            Err(_) => false,
        }
    }

    fn handle_reply(&mut self, client: usize, reply: &Reply<'_>, now_ns: u64) {
        let Some(operation) = self.clients.operation(client) else {
            return;
        };
        let mut outcome = self.encoder.outcome(operation, reply);
        if let Err(error) = outcome
            && let Some(refusal) = reply.refusal()
        {
            return self.handle_refusal(client, error, (reply, refusal), now_ns);
        }
        let slot = &mut self.slots[client];
        let limit = operation.action.cursor_limit(operation.count);
        if !slot.continues
            && operation.command.is_some()
            && let Ok(document) = reply.document()
        {
            // Of a cursor, the first batch.
            self.clients.keep_reply(client, document.as_bytes());
        }
        if limit > 0 {
            match outcome {
                // An empty batch is a failure only if it is the first one.
                Err(OperationError::NotFound) if slot.scanned > 0 => outcome = Ok(0),
                _ => {}
            }
            if let Ok(count) = &mut outcome {
                slot.scanned += *count;
                *count = slot.scanned;
                let cursor_id = reply.cursor.as_ref().map_or(0, |cursor| cursor.id);
                if cursor_id != 0 && slot.scanned < limit {
                    return self.get_more(client, cursor_id, now_ns);
                }
            }
        }
        if outcome.is_ok() {
            slot.attempts = 0;
        }
        if self.clients.ended(client, outcome, now_ns) {
            self.perform(client);
        }
    }

    /// Ends an operation that the server refused, or schedules it to be sent again.
    #[cold]
    fn handle_refusal(
        &mut self,
        client: usize,
        mut error: OperationError,
        (reply, refusal): (&Reply<'_>, Refusal<'_>),
        now_ns: u64,
    ) {
        self.clients.note_example(client, error, now_ns, || retry::example(refusal));
        self.clients.note_labels(client, retry::transaction_labels(reply));
        let (is_read, server) = (self.reads(client), self.slots[client].server);
        let again = retry::again(reply, is_read, server);
        if let Some(again) = again
            && self.may_resend(client)
        {
            let delay_ns = match again {
                Again::Later => self.clients.random_delay_ns(retry::LONGEST_DELAY_NS),
                Again::Here | Again::Elsewhere => 0,
            };
            if self.clients.resend(client, error, now_ns, delay_ns) {
                match again {
                    Again::Elsewhere => self.replace_connection(client, error, now_ns),
                    Again::Here => self.retry(client, now_ns),
                    Again::Later => {}
                }
                return;
            }
        }
        // If the first attempt at a write may have been applied, a second attempt that is refused as a whole does not
        // prove the opposite. A failure in `writeErrors` does: the server would have recognized a write that it had
        // applied.
        let is_refused_write = !is_read && !reply.ok;
        if let Some(first) = self.clients.resent_after(client)
            && (reply.labels.no_writes_performed || (is_refused_write && first.is_unsure()))
        {
            error = first;
        }
        if again == Some(Again::Elsewhere) && !retry::SHUTDOWN.contains(&refusal.code) {
            self.replace_connection(client, error, now_ns);
        } else if self.clients.ended(client, Err(error), now_ns) {
            self.perform(client);
        }
    }

    /// Whether the command in flight of a client reads.
    fn reads(&self, client: usize) -> bool {
        let operation = self.clients.operation(client);
        operation.is_some_and(|operation| operation.action.reads())
    }

    /// Whether the server would recognize a second attempt at the command in flight of a client.
    fn writes_once(&self, client: usize) -> bool {
        let operation = self.clients.operation(client);
        operation.is_some_and(|operation| operation.action.writes_once())
    }

    /// Whether the connection string allows sending a client's command in flight again.
    fn may_resend(&self, client: usize) -> bool {
        let slot = &self.slots[client];
        if self.reads(client) {
            // The next batch of a cursor is on the server that has its cursor.
            self.retries.reads && slot.scanned == 0
        } else {
            self.writes_once(client) && self.retries.writes && slot.server.takes_writes
        }
    }

    /// Asks for the next batch of a cursor.
    fn get_more(&mut self, client: usize, cursor_id: i64, now_ns: u64) {
        self.request_id = next_request_id(self.request_id);
        self.out.clear();
        if let Some(operation) = self.clients.operation(client) {
            let transaction = Some(&self.slots[client].transaction);
            let (id, out) = (self.request_id, &mut self.out);
            self.encoder.encode_get_more(operation, cursor_id, id, transaction, out);
        }
        self.slots[client].awaits = Some(self.request_id);
        self.slots[client].continues = true;
        self.send(client, now_ns);
    }

    /// Closes a failed connection, and requests a new one. Its operation is sent again or fails.
    fn disconnect(&mut self, client: usize, error: OperationError, now_ns: u64) {
        if error == OperationError::Disconnected
            && self.slots[client].connection.is_some()
            && self.may_resend(client)
        {
            // An operation that waits to be sent again does not end with its connection.
            let _ = self.clients.resend(client, error, now_ns, 0);
        }
        self.replace_connection(client, error, now_ns);
    }

    /// Closes a connection and requests a new one to the current primary. Unless its operation waits to be sent again,
    /// it fails.
    fn replace_connection(&mut self, client: usize, error: OperationError, now_ns: u64) {
        let slot = &mut self.slots[client];
        let Some(connection) = slot.connection.take() else {
            return;
        };
        // Closing the descriptor ends the watch as well; an error here changes nothing.
        let _ = self.poller.remove(connection.descriptor());
        drop(connection);
        slot.awaits = None;
        self.clients.disconnected(client, error, now_ns);
        let attempts = self.slots[client].attempts;
        self.slots[client].attempts += 1;
        self.reconnector.request(client, attempts);
    }

    fn install_replacements(&mut self) -> io::Result<()> {
        while let Some(Replacement { client, connected }) = self.reconnector.take() {
            let now_ns = self.clock.now_ns();
            self.install(client, connected)?;
            if self.clients.reconnected(client, now_ns) {
                self.perform(client);
            }
        }
        Ok(())
    }

    fn install(&mut self, client: usize, connected: Connected) -> io::Result<()> {
        self.slots[client].server = ServerRetries::of(&connected.hello);
        let connection = Connection::new(connected)?;
        self.poller.add(connection.descriptor(), client as u64)?;
        self.slots[client].connection = Some(connection);
        Ok(())
    }
}

/// The next request ID; IDs are not negative and wrap around.
fn next_request_id(last: i32) -> i32 {
    last.wrapping_add(1) & i32::MAX
}
