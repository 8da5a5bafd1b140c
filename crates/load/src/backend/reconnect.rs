//! Replaces broken connections in the background.
//!
//! Connecting, TLS and authentication block and may take long, so a few threads do them and pass the result to the
//! requesting worker. A client's attempts are spaced by an increasing delay.

use super::poller::Waker;
use crate::connect::{ConnectError, Connected, Connector};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of connecting threads. More would only help if connecting is slow and many connections break at once.
const THREADS: usize = 4;
/// Delay before the second attempt in a row; the first is immediate.
const FIRST_DELAY: Duration = Duration::from_millis(20);
/// Longest delay between attempts.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// A new connection for a client.
pub(crate) struct Replacement {
    pub(crate) client: usize,
    pub(crate) connected: Connected,
}

struct Request {
    client: usize,
    attempts: u32,
    reply: Sender<Replacement>,
    waker: Waker,
}

#[derive(Default)]
struct State {
    /// By the time when they are due, and by their number.
    requests: BTreeMap<(Instant, u64), Request>,
    pushed: u64,
    closed: bool,
    last_error: Option<Arc<ConnectError>>,
}

impl State {
    fn push(&mut self, request: Request) {
        self.pushed += 1;
        let due = Instant::now() + delay(request.attempts);
        self.requests.insert((due, self.pushed), request);
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The threads; dropping the pool asks them to end, but does not wait: a thread may be connecting to a server that does
/// not answer, and its result is not needed.
pub(crate) struct ReconnectPool {
    shared: Arc<Shared>,
}

/// One worker's access to the pool.
pub(crate) struct Reconnector {
    shared: Arc<Shared>,
    reply: Sender<Replacement>,
    replacements: Receiver<Replacement>,
    waker: Waker,
}

impl ReconnectPool {
    pub(crate) fn start(connector: &Connector) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let pool = ReconnectPool { shared: Arc::clone(&shared) };
        for _ in 0..THREADS {
            let (shared, connector) = (Arc::clone(&shared), connector.clone());
            std::thread::Builder::new()
                .name("reconnect".into())
                .stack_size(256 * 1024)
                .spawn(move || serve(&shared, &connector))?;
        }
        Ok(pool)
    }

    pub(crate) fn reconnector(&self, waker: Waker) -> Reconnector {
        let (reply, replacements) = channel();
        Reconnector { shared: Arc::clone(&self.shared), reply, replacements, waker }
    }
}

impl Drop for ReconnectPool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl Reconnector {
    /// Asks for a connection for `client` after `attempts` failed or short-lived ones.
    pub(crate) fn request(&self, client: usize, attempts: u32) {
        let request =
            Request { client, attempts, reply: self.reply.clone(), waker: self.waker.clone() };
        self.shared.lock().push(request);
        self.shared.changed.notify_one();
    }

    /// The next new connection, if there is one.
    pub(crate) fn take(&self) -> Option<Replacement> {
        self.replacements.try_recv().ok()
    }

    /// Why the last attempt failed.
    pub(crate) fn last_error(&self) -> Option<Arc<ConnectError>> {
        self.shared.lock().last_error.clone()
    }
}

fn delay(attempts: u32) -> Duration {
    match attempts {
        0 => Duration::ZERO,
        attempts => FIRST_DELAY.saturating_mul(1 << (attempts - 1).min(10)).min(LONGEST_DELAY),
    }
}

fn serve(shared: &Shared, connector: &Connector) {
    while let Some(request) = next_due(shared) {
        match connector.connect() {
            Ok(connected) => {
                // The worker may have ended; dropping the connection closes it.
                let _ = request.reply.send(Replacement { client: request.client, connected });
                request.waker.wake();
            }
            Err(error) => {
                let mut state = shared.lock();
                state.last_error = Some(Arc::new(error));
                let attempts = request.attempts.saturating_add(1);
                state.push(Request { attempts, ..request });
            }
        }
    }
}

/// Waits until the earliest request is due; `None` when the pool is closed.
fn next_due(shared: &Shared) -> Option<Request> {
    let mut state = shared.lock();
    loop {
        if state.closed {
            return None;
        }
        let now = Instant::now();
        let first = state.requests.first_key_value();
        let wait = first.map(|((due, _), _)| due.saturating_duration_since(now));
        state = match wait {
            Some(Duration::ZERO) => {
                return state.requests.pop_first().map(|(_, request)| request);
            }
            Some(wait) => {
                shared.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_spaced_by_a_growing_and_bounded_delay() {
        assert_eq!(delay(0), Duration::ZERO);
        assert_eq!(delay(1), Duration::from_millis(20));
        assert_eq!(delay(2), Duration::from_millis(40));
        assert_eq!(delay(30), LONGEST_DELAY);
    }
}
