//! A server with known behaviour: it supports enough of the MongoDB protocol for a load, answers with canned replies,
//! and follows its configuration (service time, queue, stalls, faults, server parameters).
//!
//! `dyno selfcheck` measures the generator with it, and tests compare measurements with its behaviour. It stores
//! nothing: documents are only counted.

mod behaviour;
mod counters;
mod event_loop;
mod parameters;
mod protocol;
mod replies;
mod timing;

pub use behaviour::{Behaviour, Fault, FaultRule, Parameter, Service, ServiceTime, Stall};
pub use counters::Counters;
pub use mio::net::TcpListener;

use counters::SharedCounters;
use event_loop::EventLoop;
use mio::Waker;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

/// A responder on its own thread. It ends with [`stop`](Self::stop) or when it is dropped.
#[derive(Debug)]
pub struct Responder {
    address: SocketAddr,
    started: Instant,
    counters: Arc<SharedCounters>,
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Responder {
    /// Starts a responder on a free TCP port of 127.0.0.1, ready for connections.
    ///
    /// Fails with `InvalidInput` if `behaviour` is contradictory, see [`Behaviour`].
    pub fn start(behaviour: Behaviour) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let address = listener.local_addr()?;
        let counters = Arc::new(SharedCounters::default());
        let mut event_loop = EventLoop::new(listener, behaviour, Arc::clone(&counters))?;
        let started = event_loop.started();
        let waker = event_loop.waker();
        let stop = Arc::new(AtomicBool::new(false));
        let thread_stop = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("responder".into())
            .spawn(move || event_loop.run(&thread_stop))?;
        Ok(Responder { address, started, counters, stop, waker, thread: Some(thread) })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The start of the responder, from which its stalls are counted.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Counters so far.
    ///
    /// They include every reply that a client has read.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters.snapshot()
    }

    /// Closes all connections and returns the counters, or the error that ended the responder earlier.
    pub fn stop(mut self) -> io::Result<Counters> {
        self.join()?;
        Ok(self.counters.snapshot())
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        self.stop.store(true, Ordering::Release);
        // Without the wake-up, the thread checks the flag slightly later.
        let _ = self.waker.wake();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the responder's thread panicked")))
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Serves on the calling thread until `stop` is set: the responder as a separate process.
///
/// `stop` is checked every 100 ms and whenever a signal arrives.
pub fn serve(
    listener: TcpListener,
    behaviour: Behaviour,
    stop: &AtomicBool,
) -> io::Result<Counters> {
    let counters = Arc::new(SharedCounters::default());
    EventLoop::new(listener, behaviour, Arc::clone(&counters))?.run(stop)?;
    Ok(counters.snapshot())
}

#[cfg(test)]
mod tests;
