//! The single thread of a responder: reads commands, waits until replies are due, and writes them.
//!
//! Without service times and stalls it is a bare epoll loop: one read and one write per readiness,
//! no clock, no allocation.

use super::behaviour::{Behaviour, Fault, FaultRule};
use super::counters::SharedCounters;
use super::parameters::Parameters;
use super::protocol::{self, Command, Request};
use super::replies::Replies;
use super::timing::{Timing, WakeUp};
use dyno_wire::bson::Document;
use dyno_wire::frame;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};
use std::time::{Duration, Instant};

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const TIMER: Token = Token(2);
const FIRST_CONNECTION: usize = 3;

/// Maximum sleep, so that a stop flag without a wake-up is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// One read takes 64 commands of a kilobyte; more only helps bulk loads.
const READ_BYTES: usize = 64 * 1024;
/// Above this, the responder stops reading from a client that does not read its replies.
const MAX_UNSENT_BYTES: usize = 1024 * 1024;
/// Start of a garbage reply: a length of -1.
const GARBAGE: [u8; 64] = [0xFF; 64];

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Distinguishes this connection from an earlier one in the same slot.
    id: u64,
    /// Beginning of an incomplete command.
    partial: Vec<u8>,
    /// Bytes that the socket did not accept.
    unsent: Vec<u8>,
    /// Close when `unsent` is out.
    closing: bool,
    /// Whether there may be more to read, but `unsent` is too long.
    reading_paused: bool,
}

/// A reply that is not due yet.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    due_ns: u64,
    /// Number of the command, unique.
    sequence: u64,
    index: usize,
    connection_id: u64,
    reply: Reply,
}

/// Progress of a waiting reply.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reply {
    /// To be made when it is due.
    ToMake { request: Request, fault: Option<Fault> },
    /// A complete message.
    Made(Vec<u8>),
}

/// State of the thread.
#[derive(Debug)]
pub(super) struct EventLoop {
    poll: Poll,
    waker: Arc<Waker>,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    wake_up: WakeUp,
    read_buffer: Box<[u8]>,
    service: ServiceDesk,
}

/// State for replies, separate from the connections so that both can be borrowed at once.
#[derive(Debug)]
struct ServiceDesk {
    replies: Replies,
    timing: Timing,
    parameters: Parameters,
    /// Configured rules.
    reported_faults: Vec<FaultRule>,
    /// Active rules: the parameters' rules, then the configured ones.
    faults: Vec<FaultRule>,
    counters: Arc<SharedCounters>,
    /// The earliest due time comes first, then the earliest arrival.
    pending: BinaryHeap<Reverse<Pending>>,
    /// Replies of one connection, written together.
    out: Vec<u8>,
    start: Instant,
    now_ns: u64,
    sequence: u64,
}

impl EventLoop {
    pub(super) fn new(
        mut listener: TcpListener,
        behaviour: Behaviour,
        counters: Arc<SharedCounters>,
    ) -> io::Result<Self> {
        behaviour.check()?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let wake_up = WakeUp::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        poll.registry().register(&mut SourceFd(&wake_up.raw_fd()), TIMER, Interest::READABLE)?;
        counters.documents.set(behaviour.documents);
        let mut service = ServiceDesk {
            replies: Replies::new(&behaviour).map_err(io::Error::other)?,
            timing: Timing::new(behaviour.service, behaviour.stall, behaviour.seed),
            parameters: Parameters::new(behaviour.parameters),
            reported_faults: behaviour.faults,
            faults: Vec::new(),
            counters,
            pending: BinaryHeap::new(),
            out: Vec::with_capacity(READ_BYTES),
            start: Instant::now(),
            now_ns: 0,
            sequence: 0,
        };
        service.apply_parameters();
        Ok(EventLoop {
            poll,
            waker,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            wake_up,
            read_buffer: vec![0; READ_BYTES].into(),
            service,
        })
    }

    pub(super) fn started(&self) -> Instant {
        self.service.start
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Serves until `stop` is set.
    pub(super) fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        while !stop.load(atomic::Ordering::Acquire) {
            let timeout = self.prepare_poll()?;
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                // Interrupted by a signal: its handler may have set the flag.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            // One clock reading for all events of a poll: data that waited during another connection's write arrived
            // earlier.
            self.service.read_clock();
            for event in &events {
                match event.token() {
                    LISTENER => self.accept_all(),
                    WAKER | TIMER => {}
                    Token(token) => {
                        let index = token - FIRST_CONNECTION;
                        if event.is_writable() {
                            self.on_writable(index);
                        }
                        if event.is_readable() || event.is_read_closed() {
                            self.on_readable(index, event.is_read_closed());
                        }
                    }
                }
            }
            self.send_due();
        }
        Ok(())
    }

    /// Maximum sleep of the next poll.
    fn prepare_poll(&mut self) -> io::Result<Duration> {
        let Some(Reverse(next)) = self.service.pending.peek() else {
            return Ok(LONGEST_SLEEP);
        };
        let now_ns = nanoseconds_since(self.service.start);
        let near = self.wake_up.prepare(next.due_ns, now_ns)?;
        Ok(if near { Duration::ZERO } else { LONGEST_SLEEP })
    }

    fn accept_all(&mut self) {
        // Errors other than `WouldBlock` concern only one connection, or are temporary (too many open files).
        while let Ok((mut stream, _)) = self.listener.accept() {
            let index = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let token = Token(index + FIRST_CONNECTION);
            // Both at once: readiness is edge-triggered, so writability costs an event only after a full socket buffer
            // has drained.
            let interest = Interest::READABLE | Interest::WRITABLE;
            let registered = stream
                .set_nodelay(true)
                .and_then(|()| self.poll.registry().register(&mut stream, token, interest));
            if registered.is_err() {
                self.free.push(index);
                continue;
            }
            let counters = &self.service.counters;
            counters.connections.add(1);
            counters.open_connections.add(1);
            self.connections[index] = Some(Connection {
                stream,
                id: counters.connections.get(),
                partial: Vec::new(),
                unsent: Vec::new(),
                closing: false,
                reading_paused: false,
            });
        }
    }

    fn on_readable(&mut self, index: usize, until_end: bool) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        let open = connection.read_all(&mut self.read_buffer, until_end, index, &mut self.service);
        if !open {
            self.close(index);
        }
    }

    fn on_writable(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        if connection.unsent.is_empty() {
            return;
        }
        let mut open = connection.send(&[]);
        if open && connection.reading_paused && connection.unsent.len() <= MAX_UNSENT_BYTES {
            connection.reading_paused = false;
            open = connection.read_all(&mut self.read_buffer, true, index, &mut self.service);
        }
        if !open {
            self.close(index);
        }
    }

    /// Sends all replies that are due.
    fn send_due(&mut self) {
        if self.service.pending.is_empty() {
            return;
        }
        self.service.read_clock();
        while let Some(pending) = self.service.take_due() {
            let Some(connection) = self.connections[pending.index].as_mut() else {
                continue;
            };
            if connection.id != pending.connection_id {
                continue;
            }
            let mut out = std::mem::take(&mut self.service.out);
            let keep = match pending.reply {
                Reply::ToMake { request, fault } => self.service.answer(&mut out, &request, fault),
                Reply::Made(message) => {
                    self.service.give(&mut out, &message);
                    true
                }
            };
            let open = connection.send_and_clear(&mut out, keep);
            self.service.out = out;
            if !open {
                self.close(pending.index);
            }
        }
    }

    fn close(&mut self, index: usize) {
        if self.connections[index].take().is_some() {
            self.free.push(index);
            self.service.counters.open_connections.subtract(1);
        }
    }
}

impl Connection {
    /// Reads and serves available data; false when the connection is to be closed.
    fn read_all(
        &mut self,
        buffer: &mut [u8],
        until_end: bool,
        index: usize,
        service: &mut ServiceDesk,
    ) -> bool {
        loop {
            if self.unsent.len() > MAX_UNSENT_BYTES {
                self.reading_paused = true;
                return true;
            }
            let n = match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            if self.closing {
                continue;
            }
            if !self.serve(&buffer[..n], index, service) {
                return false;
            }
            // A short read has emptied the socket, and new data raises a new event. The end of the stream does not, if
            // it came with the data.
            if n < buffer.len() && !until_end {
                return true;
            }
        }
    }

    /// Serves all complete commands, keeps the rest; false when the connection is to be closed.
    fn serve(&mut self, bytes: &[u8], index: usize, service: &mut ServiceDesk) -> bool {
        let mut out = std::mem::take(&mut service.out);
        let (used, keep) = if self.partial.is_empty() {
            let (used, keep) = service.serve_all(bytes, &mut out, index, self.id);
            self.partial.extend_from_slice(&bytes[used..]);
            (0, keep)
        } else {
            self.partial.extend_from_slice(bytes);
            service.serve_all(&self.partial, &mut out, index, self.id)
        };
        self.partial.drain(..used);
        let open = self.send_and_clear(&mut out, keep);
        service.out = out;
        open
    }

    /// Sends `out` and empties it, then closes unless `keep`; false when the connection is to be
    /// closed at once.
    fn send_and_clear(&mut self, out: &mut Vec<u8>, keep: bool) -> bool {
        self.closing |= !keep;
        let open = self.send(out);
        out.clear();
        open
    }

    /// Sends the unsent rest and then `bytes`, until the socket is full.
    fn send(&mut self, bytes: &[u8]) -> bool {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            let mut unsent = std::mem::take(&mut self.unsent);
            let sent = write_some(&mut self.stream, &unsent);
            unsent.drain(..*sent.as_ref().unwrap_or(&0));
            self.unsent = unsent;
            return sent.is_ok() && !(self.closing && self.unsent.is_empty());
        }
        let Ok(sent) = write_some(&mut self.stream, bytes) else {
            return false;
        };
        self.unsent.extend_from_slice(&bytes[sent..]);
        !(self.closing && self.unsent.is_empty())
    }
}

/// Writes until the socket is full; returns the number of bytes written.
#[inline]
fn write_some(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => written += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

impl ServiceDesk {
    fn read_clock(&mut self) {
        if !self.timing.is_immediate() {
            self.now_ns = nanoseconds_since(self.start);
        }
    }

    fn take_due(&mut self) -> Option<Pending> {
        if self.pending.peek()?.0.due_ns > self.now_ns {
            return None;
        }
        self.pending.pop().map(|Reverse(pending)| pending)
    }

    /// Serves the complete commands at the front of `bytes`: returns their length, and whether the connection stays
    /// open.
    fn serve_all(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        index: usize,
        connection_id: u64,
    ) -> (usize, bool) {
        let mut used = 0;
        loop {
            let asked = match frame::parse(&bytes[used..]) {
                Ok(None) => return (used, true),
                Ok(Some(frame)) => {
                    used += frame.length;
                    protocol::read(&frame)
                }
                Err(_) => None,
            };
            let Some((request, document)) = asked else {
                self.counters.malformed.add(1);
                return (used, false);
            };
            let fault = self.admit(request.command);
            let due_ns = self.due_ns(request.command);
            if matches!(request.command, Command::GetParameter | Command::SetParameter) {
                let message = self.use_parameters(&request, document);
                if due_ns > self.now_ns {
                    self.wait(due_ns, index, connection_id, Reply::Made(message));
                } else {
                    self.give(out, &message);
                }
            } else if due_ns > self.now_ns {
                self.wait(due_ns, index, connection_id, Reply::ToMake { request, fault });
            } else if !self.answer(out, &request, fault) {
                return (used, false);
            }
        }
    }

    fn wait(&mut self, due_ns: u64, index: usize, connection_id: u64, reply: Reply) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.pending.push(Reverse(Pending { due_ns, sequence, index, connection_id, reply }));
    }

    /// Executes a command on parameters and returns its reply as a message, empty if none is wanted. It runs on
    /// arrival, so that a new value applies to all later commands, even during a stall.
    fn use_parameters(&mut self, request: &Request, command: Document<'_>) -> Vec<u8> {
        let reply = if request.command == Command::SetParameter {
            let reply = self.parameters.set(command);
            self.apply_parameters();
            reply
        } else {
            self.parameters.get(command)
        };
        let mut message = Vec::new();
        if request.wants_reply {
            self.replies.append_document(&mut message, request, &reply);
        }
        message
    }

    /// Applies the values of the parameters.
    fn apply_parameters(&mut self) {
        self.timing.set_factor(self.parameters.factor());
        self.faults.clear();
        self.faults.extend(self.parameters.fault());
        self.faults.extend(&self.reported_faults);
    }

    /// Appends a message from [`use_parameters`](Self::use_parameters).
    fn give(&self, out: &mut Vec<u8>, message: &[u8]) {
        out.extend_from_slice(message);
        let count =
            if message.is_empty() { &self.counters.unacknowledged } else { &self.counters.replies };
        count.add(1);
    }

    /// Counts a command, and returns its fault.
    #[inline]
    fn admit(&mut self, command: Command) -> Option<Fault> {
        self.counters.commands.add(1);
        if !command.is_data() {
            return None;
        }
        self.counters.data_commands.add(1);
        let number = self.counters.data_commands.get();
        let rule = self.faults.iter().find(|rule| number.is_multiple_of(rule.every))?;
        Some(rule.kind)
    }

    #[inline]
    fn due_ns(&mut self, command: Command) -> u64 {
        if self.timing.is_immediate() {
            self.now_ns
        } else if command.is_data() {
            self.timing.data_due_ns(self.now_ns)
        } else {
            self.timing.release_ns(self.now_ns)
        }
    }

    /// Appends the client's reply; false when its connection is to be closed afterwards.
    #[inline]
    fn answer(&mut self, out: &mut Vec<u8>, request: &Request, fault: Option<Fault>) -> bool {
        let start = out.len();
        match fault {
            None => self.apply(request.command),
            Some(fault) => {
                self.counters.faults.add(1);
                match fault {
                    Fault::Hang => return true,
                    Fault::Drop => return false,
                    Fault::Garbage => {
                        out.extend_from_slice(&GARBAGE);
                        return true;
                    }
                    _ => {}
                }
            }
        }
        if !request.wants_reply {
            self.counters.unacknowledged.add(1);
            return true;
        }
        self.replies.append(out, request, fault, self.counters.documents.get());
        match fault {
            Some(Fault::Truncate) => {
                out.truncate(start + (out.len() - start) / 2);
                return false;
            }
            Some(Fault::WrongResponseTo) => {
                for byte in &mut out[start + 8..start + 12] {
                    *byte = !*byte;
                }
            }
            _ => self.counters.replies.add(1),
        }
        true
    }

    /// The effect of a command on the count of documents.
    #[inline]
    fn apply(&mut self, command: Command) {
        match command {
            Command::Insert { documents } => {
                self.counters.inserted.add(u64::from(documents));
                self.counters.documents.add(u64::from(documents));
            }
            Command::Delete { statements } => {
                self.counters.documents.subtract(u64::from(statements))
            }
            Command::Drop => self.counters.documents.set(0),
            _ => {}
        }
    }
}

fn nanoseconds_since(start: Instant) -> u64 {
    // 584 years.
    start.elapsed().as_nanos() as u64
}
