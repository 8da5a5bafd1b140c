//! Blocking exchange of commands and replies on one connection, with a time limit.
//!
//! Used for the few commands before a connection is passed to the event loop, and for set-up commands.

use super::endpoint::Endpoint;
use super::error::{ConnectError, Source};
use super::transport::Transport;
use dyno_plan::uri::Host;
use dyno_wire::frame::{self, Opcode};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Smallest reading buffer.
const READ_BYTES: usize = 16 * 1024;

/// End of a time limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    at: Option<Instant>,
    limit: Option<Duration>,
}

impl Deadline {
    /// `limit` from now; never without a limit.
    pub(super) fn after(limit: Option<Duration>) -> Self {
        Deadline { at: limit.and_then(|limit| Instant::now().checked_add(limit)), limit }
    }

    /// Remaining time, at least a millisecond (0 would mean no limit to the system).
    pub(super) fn remaining(&self) -> io::Result<Option<Duration>> {
        let Some(at) = self.at else { return Ok(None) };
        match at.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Ok(Some(left.max(Duration::from_millis(1)))),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }

    /// The whole time limit in milliseconds; 0 without a limit.
    pub(super) fn limit_ms(&self) -> u64 {
        let limit_ms = self.limit.map_or(0, |limit| limit.as_millis());
        u64::try_from(limit_ms).unwrap_or(u64::MAX)
    }
}

/// Why a command was not answered.
#[derive(Debug, Error)]
pub(super) enum ExchangeError {
    /// The connection failed; `UnexpectedEof` if the server closed it.
    #[error("the connection failed")]
    Io(#[source] io::Error),
    /// The answer violates the protocol.
    #[error("the reply is malformed")]
    Malformed(#[source] Source),
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        ExchangeError::Io(error)
    }
}

impl ExchangeError {
    /// Converts to a connection error.
    pub(super) fn into_connect_error(
        self,
        endpoint: &Host,
        step: &'static str,
        deadline: Deadline,
        tls: bool,
    ) -> ConnectError {
        let endpoint = endpoint.clone();
        match self {
            ExchangeError::Malformed(source) => ConnectError::Protocol { endpoint, step, source },
            ExchangeError::Io(source) => io_error(source, endpoint, step, deadline, tls),
        }
    }
}

/// Classifies a network error by possible remedies.
pub(super) fn io_error(
    source: io::Error,
    endpoint: Host,
    step: &'static str,
    deadline: Deadline,
    tls: bool,
) -> ConnectError {
    if let Some(error) = source.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        let source = error.clone().into();
        return ConnectError::Tls { endpoint, source };
    }
    match source.kind() {
        // A socket with a time limit reports it as `WouldBlock`.
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            ConnectError::TimedOut { endpoint, step, limit_ms: deadline.limit_ms() }
        }
        ErrorKind::ConnectionRefused => ConnectError::Refused { endpoint, source },
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            ConnectError::Closed { endpoint, step, tls, certificate: false, before: 0 }
        }
        _ => ConnectError::Io { endpoint, step, source },
    }
}

/// Interval between checks whether a waiting caller has cancelled.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Tells whether the caller has cancelled.
#[derive(Clone)]
pub struct CancelCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl CancelCheck {
    /// `is_cancelled` is called about ten times per second.
    pub fn new(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        CancelCheck(Arc::new(is_cancelled))
    }

    pub(super) fn is_cancelled(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for CancelCheck {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CancelCheck")
    }
}

/// One connection with at most one command in flight.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) endpoint: Endpoint,
    transport: Transport,
    request: Vec<u8>,
    received: Vec<u8>,
    last_request_id: i32,
    cancel_check: Option<CancelCheck>,
}

impl Session {
    pub(super) fn new(endpoint: Endpoint, transport: Transport) -> Self {
        Session {
            endpoint,
            transport,
            request: Vec::new(),
            received: Vec::new(),
            last_request_id: 0,
            cancel_check: None,
        }
    }

    /// Waits for answers only until the caller cancels.
    pub(super) fn set_cancel_check(&mut self, cancel_check: CancelCheck) {
        self.cancel_check = Some(cancel_check);
    }

    pub(super) fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }

    /// Returns the connection, which must not have unread data.
    pub(super) fn into_transport(self) -> io::Result<Transport> {
        if !self.received.is_empty() {
            return Err(ErrorKind::InvalidData.into());
        }
        self.transport.set_timeouts(None)?;
        Ok(self.transport)
    }

    /// Sends the message that `write` appends (given a request ID) and returns the body of the answer (flags and
    /// sections).
    pub(super) fn exchange(
        &mut self,
        deadline: Deadline,
        write: impl FnOnce(&mut Vec<u8>, i32),
    ) -> Result<Vec<u8>, ExchangeError> {
        self.last_request_id = self.last_request_id.wrapping_add(1);
        self.request.clear();
        write(&mut self.request, self.last_request_id);
        self.send(deadline)?;
        self.receive(deadline)
    }

    fn send(&mut self, deadline: Deadline) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.request.len() || self.transport.wants_write() {
            self.transport.set_timeouts(deadline.remaining()?)?;
            let result = match &self.request[sent..] {
                [] => self.flush(),
                bytes => self.transport.write(bytes),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => sent += result?,
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        self.transport.flush_pending()?;
        if self.transport.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(0)
    }

    fn receive(&mut self, deadline: Deadline) -> Result<Vec<u8>, ExchangeError> {
        loop {
            let malformed = |error: frame::FrameError| ExchangeError::Malformed(error.into());
            if let Some(frame) = frame::parse(&self.received).map_err(malformed)? {
                if frame.opcode != Opcode::Message || frame.response_to != self.last_request_id {
                    let source = "message is not the answer to the command".into();
                    return Err(ExchangeError::Malformed(source));
                }
                let (body, length) = (frame.body.to_vec(), frame.length);
                self.received.drain(..length);
                return Ok(body);
            }
            let needed = frame::needed(&self.received).map_err(malformed)?;
            self.read_more(needed.clamp(READ_BYTES, 1 << 20), deadline)?;
        }
    }

    fn read_more(&mut self, bytes: usize, deadline: Deadline) -> io::Result<()> {
        let start = self.received.len();
        self.received.resize(start + bytes, 0);
        let result = loop {
            let limited = deadline.remaining().and_then(|left| {
                let slice = match &self.cancel_check {
                    Some(_) => Some(left.map_or(LOOK_INTERVAL, |left| left.min(LOOK_INTERVAL))),
                    None => left,
                };
                self.transport.set_timeouts(slice)
            });
            if let Err(error) = limited {
                break Err(error);
            }
            match self.transport.read(&mut self.received[start..]) {
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_pause(&error) && self.cancel_check.is_some() => {
                    if self.cancel_check.as_ref().is_some_and(CancelCheck::is_cancelled) {
                        let given_up = "the caller no longer waits for the answer";
                        break Err(io::Error::other(given_up));
                    }
                }
                result => break result,
            }
        };
        let count = *result.as_ref().unwrap_or(&0);
        self.received.truncate(start + count);
        result.map(|_| ())
    }
}

/// Whether a read ended by its timeout.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
