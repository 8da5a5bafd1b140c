//! The thread that sends an agent's messages in order, and again after a lost connection. The controller skips repeated messages by
//! their number.

use super::{AgentOptions, LOOK_EVERY, Shared};
use crate::endpoint::Endpoint;
use redis::{Connection, RedisError};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Messages that wait while Redis does not answer: some minutes of windows, longer than any lease.
const WAITING: usize = 256;
/// A message on its way.
pub(super) struct Outgoing {
    pub(super) text: String,
    pub(super) blob: Vec<u8>,
}

/// Sending end of the queue.
#[derive(Debug)]
pub(super) struct Sender(Option<SyncSender<Outgoing>>);

impl Sender {
    /// Queues a message; `false` if the queue is full.
    pub(super) fn put(&self, message: Outgoing) -> bool {
        match self.0.as_ref().map(|queue| queue.try_send(message)) {
            Some(Ok(())) => true,
            Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) | None => false,
        }
    }

    /// Closes the queue; the thread ends when everything is sent.
    pub(super) fn close(&mut self) {
        self.0 = None;
    }
}

struct Queue {
    endpoint: Endpoint,
    stream: String,
    index: u32,
    shared: Arc<Shared>,
    keep_ms: u64,
    connection: Option<Connection>,
}

pub(super) fn start(
    options: &AgentOptions,
    shared: Arc<Shared>,
) -> (Sender, thread::JoinHandle<()>) {
    let (sender, receiver) = sync_channel(WAITING);
    let queue = Queue {
        endpoint: options.endpoint.clone(),
        stream: options.run.up(),
        index: options.index,
        keep_ms: super::listen::keep(shared.lease).as_millis() as u64,
        shared,
        connection: None,
    };
    let thread = thread::spawn(move || queue.run(&receiver));
    (Sender(Some(sender)), thread)
}

impl Queue {
    fn run(mut self, receiver: &Receiver<Outgoing>) {
        for (number, message) in (1_u64..).zip(receiver.iter()) {
            if !self.send(number, &message) {
                return;
            }
        }
    }

    /// Sends until Redis has the message; `false` if the run was aborted or Redis has gone.
    fn send(&mut self, number: u64, message: &Outgoing) -> bool {
        let began = Instant::now();
        loop {
            match self.try_send(number, message) {
                Ok(()) => return true,
                Err(error) => {
                    self.connection = None;
                    if began.elapsed() > self.shared.lease {
                        let gone = self.shared.redis_gone(format!("`{}`, {error}", self.endpoint));
                        self.shared.end(gone);
                        return false;
                    }
                    // After an abort, remaining messages are not worth a wait.
                    if self.shared.stop.load(Ordering::SeqCst) {
                        return false;
                    }
                    thread::sleep(LOOK_EVERY * 5);
                }
            }
        }
    }

    fn try_send(&mut self, number: u64, message: &Outgoing) -> Result<(), RedisError> {
        let connection = self.endpoint.kept(&mut self.connection, Duration::ZERO)?;
        let mut pipe = redis::pipe();
        let add = pipe.cmd("XADD").arg(&self.stream);
        add.arg("MAXLEN").arg("~").arg(self.shared.unread.load(Ordering::SeqCst));
        add.arg("*").arg("i").arg(self.index).arg("n").arg(number);
        add.arg("j").arg(&message.text);
        if !message.blob.is_empty() {
            add.arg("h").arg(&message.blob);
        }
        add.ignore();
        pipe.cmd("PEXPIRE").arg(&self.stream).arg(self.keep_ms).ignore();
        pipe.query::<()>(connection)
    }
}
