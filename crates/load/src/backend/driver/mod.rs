//! The worker loop of the `driver` backend: the official Rust driver performs the operations, so the numbers include
//! its cost.
//!
//! Operations come from the same generator as in the `wire` backend and become driver calls before the send start. Each
//! worker has its own single-threaded runtime and its own connection pool with one connection per client. Driver
//! retries are off unless the connection string enables them: a retried operation would hide a failure and include the
//! time of both attempts.

mod call;
mod target;
mod timer;

pub use target::DriverTarget;

use crate::clients::{CHECK_NS, Clients, Due, SPIN_NS, Start, WorkerSetup};
use crate::clock::Clock;
use crate::core::Core;
use crate::error::LoadError;
use crate::generator::Generator;
use crate::operation::{OperationError, Outcome};
use crate::own::TransactionLabels;
use crate::workload::Workload;
use bson::RawDocumentBuf;
use call::{Caller, Documents};
use dyno_record::error_example::ErrorExample;
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use mongodb::{Client, ClientSession};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use target::{describe, runtime};
use timer::PreciseTimer;

/// A call that has ended, with its client, result and time.
struct Ended {
    client: usize,
    outcome: Outcome,
    example: Option<ErrorExample>,
    labels: TransactionLabels,
    /// The client's session for transactions.
    session: Option<ClientSession>,
    /// The document of a read, for the integrity check, or the reply to an own command.
    document: Option<RawDocumentBuf>,
    end_ns: u64,
}

type PendingCall = Pin<Box<dyn Future<Output = Ended>>>;

struct Worker {
    clock: Clock,
    timeout: Duration,
    clients: Clients,
    caller: Caller,
    workload: Arc<Workload>,
    documents: Documents,
    /// Sessions for transactions, by client; absent before the first one, and while a call has it.
    sessions: Vec<Option<ClientSession>>,
    calls: FuturesUnordered<PendingCall>,
    timer: PreciseTimer,
}

/// Runs until no more operations start and all started ones have ended.
pub(crate) fn run(
    setup: WorkerSetup,
    core: Core,
    generator: Generator,
    target: DriverTarget,
    client_count: usize,
) -> Result<(), LoadError> {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return fail(core, &setup, LoadError::Poll(error)),
    };
    runtime.block_on(async {
        let mut options = target.options;
        options.max_pool_size = Some(client_count as u32);
        options.min_pool_size = Some(client_count as u32);
        let client = match Client::with_options(options) {
            Ok(client) => client,
            Err(error) => return fail(core, &setup, LoadError::Driver(describe(&error))),
        };
        let timer = match PreciseTimer::new() {
            Ok(timer) => timer,
            Err(error) => return fail(core, &setup, LoadError::Poll(error)),
        };
        let workload = Arc::clone(generator.workload());
        let (database, collection) = workload.namespace();
        let documents = client.database(database).collection(collection);
        let worker = Worker {
            clock: setup.clock,
            timeout: Duration::from_nanos(setup.timeout_ns),
            clients: Clients::new(setup, core, generator, client_count),
            caller: Caller::new(Arc::clone(&workload)),
            workload,
            documents,
            sessions: (0..client_count).map(|_| None).collect(),
            calls: FuturesUnordered::new(),
            timer,
        };
        let end = worker.run().await;
        client.shutdown().immediate(true).await;
        end
    })
}

fn fail(mut core: Core, setup: &WorkerSetup, fault: LoadError) -> Result<(), LoadError> {
    setup.stop.store(true, Ordering::Relaxed);
    core.stop(setup.clock.now_ns());
    core.finish(setup.clock.now_ns());
    Err(fault)
}

impl Worker {
    async fn run(mut self) -> Result<(), LoadError> {
        // The driver connects by itself when a call needs it.
        for client in 0..self.clients.len() {
            self.clients.connected(client, 0);
        }
        let mut check_ns = 0;
        let end_ns = loop {
            let now_ns = self.clock.now_ns();
            self.clients.tick(now_ns);
            let next_start_ns = self.start_due(now_ns);
            if now_ns >= check_ns {
                self.check_clients(now_ns);
                check_ns = now_ns + CHECK_NS;
            }
            if self.clients.is_done(now_ns) {
                break now_ns;
            }
            let until_ns = check_ns.min(self.clients.wake_ns()).min(next_start_ns);
            if let Some(ended) = self.wait(until_ns).await {
                self.after_call(ended);
            }
        };
        self.clients.finish(end_ns)
    }

    /// The next call that ends, or `None` shortly before `until_ns`.
    async fn wait(&mut self, until_ns: u64) -> Option<Ended> {
        let sleep_ns = until_ns.saturating_sub(SPIN_NS).saturating_sub(self.clock.now_ns());
        if sleep_ns == 0 {
            // Yield once so that the runtime polls its sockets.
            tokio::task::yield_now().await;
            return self.calls.next().now_or_never().flatten();
        }
        let sleep = self.timer.sleep(Duration::from_nanos(sleep_ns));
        if self.calls.is_empty() {
            sleep.await;
            return None;
        }
        tokio::select! {
            ended = self.calls.next() => ended,
            () = sleep => None,
        }
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

    /// Retries and the stop request.
    fn check_clients(&mut self, now_ns: u64) {
        for client in 0..self.clients.len() {
            // Every call has its own time limit.
            if self.clients.due(client, now_ns) == Some(Due::Retry)
                && self.clients.retry(client, now_ns)
            {
                self.perform(client);
            }
        }
        self.clients.check(now_ns);
    }

    /// Passes a client's operation, or the update of its read-modify-write, to the driver.
    fn perform(&mut self, client: usize) {
        let Some(operation) = self.clients.operation(client) else {
            return;
        };
        let call = self.caller.call(operation);
        let keep_existing = self.workload.keeps_existing() || operation.may_exist;
        let documents = self.documents.clone();
        let (clock, timeout) = (self.clock, self.timeout);
        self.clients.sent(client, clock.now_ns());
        let mut session = self.sessions[client].take();
        self.calls.push(Box::pin(async move {
            let performed = call.perform(&documents, keep_existing, &mut session);
            let result = tokio::time::timeout(timeout, performed)
                .await
                .unwrap_or_else(|_| Err(OperationError::Timeout.into()));
            let end_ns = clock.now_ns();
            let nothing = TransactionLabels::default();
            let (outcome, document, example, labels) = match result {
                Ok((count, document)) => (Ok(count), document, None, nothing),
                Err(failure) => (Err(failure.error), None, failure.example, failure.labels),
            };
            // A call that was given up leaves its transaction in an unknown state.
            let session = session.filter(|_| outcome != Err(OperationError::Timeout));
            Ended { client, outcome, example, labels, session, document, end_ns }
        }));
    }

    fn after_call(&mut self, ended: Ended) {
        let Ended { client, mut outcome, example, labels, session, document, end_ns } = ended;
        self.sessions[client] = session;
        self.clients.note_labels(client, labels);
        if let (Err(error), Some(example)) = (outcome, example) {
            self.clients.note_example(client, error, end_ns, || example);
        }
        if self.workload.own.is_some()
            && let Some(reply) = &document
        {
            self.clients.keep_reply(client, reply.as_bytes());
        }
        if let Some(operation) = self.clients.operation(client)
            && let Some(document) = document
            && self.workload.data.integrity
            && let Err(error) = self.caller.check(operation.document, document.as_bytes())
        {
            outcome = Err(error);
        }
        // The driver would retry forever.
        let is_reachable =
            !matches!(outcome, Err(OperationError::Timeout | OperationError::Disconnected));
        self.clients.check_reachable(is_reachable, end_ns, || None);
        if self.clients.ended(client, outcome, end_ns) {
            self.perform(client);
        }
    }
}
