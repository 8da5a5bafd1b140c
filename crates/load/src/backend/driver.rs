//! The worker loop of the `driver` backend: the official Rust driver performs the operations, so that
//! its cost is part of the numbers.
//!
//! The commands come from the same generator as those of the `wire` backend and are translated into
//! the driver's own calls before the send start, so both backends perform the same operations. Each
//! worker has its own single-threaded runtime and its own connection pool with one connection for each
//! of its clients. Retries of the driver are off unless the connection string asks for them: a retried
//! operation would hide a failure and count twice the time.

use super::{WorkerEnd, WorkerFault, WorkerSetup};
use crate::core::{Core, Next, Ticket};
use crate::error::LoadError;
use crate::operation::{OperationError, OperationKind, Outcome};
use crate::recorder::Times;
use crate::workload::{Begun, Generator};
use bson::{Document, RawDocument, RawDocumentBuf};
use dyno_plan::uri::{Credentials, Mechanism, Target};
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{AuthMechanism, ClientOptions, Credential};
use mongodb::{Client, Collection};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long before an intended start the worker stops sleeping and looks at the clock instead.
const SPIN_NS: u64 = 60_000;

/// How often the stop request is looked at.
const HOUSEKEEPING_NS: u64 = 20_000_000;

/// How long answers are waited for after the run was told to stop.
const STOP_DRAIN_NS: u64 = 1_000_000_000;

/// The deployment as the driver sees it.
#[derive(Clone)]
pub struct DriverTarget {
    options: ClientOptions,
}

impl DriverTarget {
    /// Refuses a connection string that the driver does not take; no server is asked.
    ///
    /// # Errors
    /// [`LoadError::DriverOption`], as that of [`new`](Self::new).
    pub fn check(target: &Target) -> Result<(), LoadError> {
        let runtime = runtime().map_err(LoadError::Thread)?;
        runtime.block_on(options_of(target)).map(drop)
    }

    /// Reads the connection string with the driver's own parser and checks that the server answers.
    ///
    /// # Errors
    /// [`LoadError::Driver`] if an option is not understood or the server cannot be reached.
    pub fn new(target: &Target, credentials: Option<&Credentials>) -> Result<Self, LoadError> {
        let runtime = runtime().map_err(LoadError::Thread)?;
        runtime.block_on(async {
            let mut options = options_of(target).await?;
            options.credential = credentials.map(credential);
            options.retry_reads = options.retry_reads.or(Some(false));
            options.retry_writes = options.retry_writes.or(Some(false));
            options.app_name = options.app_name.or_else(|| Some("mongodyno".into()));
            let client = Client::with_options(options.clone()).map_err(driver_error)?;
            let ping = bson::doc! { "ping": 1 };
            client
                .database("admin")
                .run_command(ping)
                .await
                .map_err(driver_error)?;
            client.shutdown().await;
            Ok(DriverTarget { options })
        })
    }
}

async fn options_of(target: &Target) -> Result<ClientOptions, LoadError> {
    let options = ClientOptions::parse(target.to_driver_uri()).await;
    options.map_err(|error| {
        match matches!(error.kind.as_ref(), ErrorKind::InvalidArgument { .. }) {
            true => LoadError::DriverOption(describe(&error)),
            false => driver_error(error),
        }
    })
}

fn driver_error(error: Error) -> LoadError {
    LoadError::Driver(describe(&error))
}

/// What the driver says, without the labels and the source that its own text goes on with.
fn describe(error: &Error) -> String {
    error.kind.to_string()
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn credential(credentials: &Credentials) -> Credential {
    let mechanism = credentials.mechanism.map(|mechanism| match mechanism {
        Mechanism::ScramSha1 => AuthMechanism::ScramSha1,
        Mechanism::ScramSha256 => AuthMechanism::ScramSha256,
    });
    let mut credential = Credential::default();
    credential.username = Some(credentials.username.clone());
    credential.password = Some(credentials.password().to_owned());
    credential.source = credentials.source.clone();
    credential.mechanism = mechanism;
    credential
}

/// A timer of the kernel inside the runtime. The runtime's own timers tick in milliseconds, so that an
/// open loop would have to spin all the time, and its CPU time would be taken for the driver's.
struct PreciseTimer {
    timer: AsyncFd<Timer>,
}

struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl PreciseTimer {
    fn new() -> std::io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // SAFETY: the value owns its descriptor, which stays open and the same as long as it lives.
        let timer = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE) }?;
        Ok(PreciseTimer { timer })
    }

    /// Sleeps for `length`, not 0. It can be dropped before its end.
    async fn sleep(&self, length: Duration) {
        let once = Expiration::OneShot(TimeSpec::from_duration(length));
        if self
            .timer
            .get_ref()
            .0
            .set(once, TimerSetTimeFlags::empty())
            .is_err()
        {
            return tokio::time::sleep(length).await;
        }
        // The readiness of an earlier sleep may be left over: then there is nothing to read yet.
        while let Ok(mut ready) = self.timer.readable().await {
            if ready
                .try_io(|timer| timer.get_ref().0.wait().map_err(Into::into))
                .is_ok()
            {
                return;
            }
        }
    }
}

type Documents = Collection<RawDocumentBuf>;

/// A command that has ended: whose it was, how, and when.
struct Ended {
    slot: usize,
    outcome: Outcome,
    /// The document of a read, to be checked.
    document: Option<RawDocumentBuf>,
    end_ns: u64,
}

type Command = Pin<Box<dyn Future<Output = Ended>>>;

struct InFlight {
    ticket: Ticket,
    begun: Begun,
    send_ns: u64,
    /// Send of the update of a read-modify-write, once its read has ended.
    update_send_ns: Option<u64>,
    failed: Option<OperationError>,
    retries_left: u32,
    /// Its command was handed to the driver at least once.
    sent: bool,
}

#[derive(Default)]
struct Slot {
    operation: Option<InFlight>,
    free_since_ns: u64,
    retry_at_ns: Option<u64>,
}

struct Worker {
    setup: WorkerSetup,
    core: Core,
    generator: Generator,
    documents: Documents,
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    commands: FuturesUnordered<Command>,
    timer: PreciseTimer,
    out: Vec<u8>,
    /// Operations that have begun and wait to be sent for the first time.
    waiting: usize,
    /// Since when no command has been answered, if none was since.
    unanswered_since_ns: Option<u64>,
    exhausted: bool,
    stopping_since_ns: Option<u64>,
    fault: Option<WorkerFault>,
}

/// Runs until nothing more starts and everything started has ended.
pub(crate) fn run(
    setup: WorkerSetup,
    core: Core,
    generator: Generator,
    target: DriverTarget,
    clients: usize,
) -> WorkerEnd {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return fail(core, &setup, WorkerFault::Poll(error)),
    };
    runtime.block_on(async {
        let mut options = target.options;
        options.max_pool_size = Some(clients as u32);
        options.min_pool_size = Some(clients as u32);
        let client = match Client::with_options(options) {
            Ok(client) => client,
            Err(error) => return fail(core, &setup, WorkerFault::Driver(describe(&error))),
        };
        let timer = match PreciseTimer::new() {
            Ok(timer) => timer,
            Err(error) => return fail(core, &setup, WorkerFault::Poll(error)),
        };
        let (database, collection) = generator.workload().namespace();
        let documents = client.database(database).collection(collection);
        let worker = Worker {
            setup,
            core,
            generator,
            documents,
            slots: (0..clients).map(|_| Slot::default()).collect(),
            free: (0..clients).collect(),
            commands: FuturesUnordered::new(),
            timer,
            out: Vec::new(),
            waiting: 0,
            unanswered_since_ns: None,
            exhausted: false,
            stopping_since_ns: None,
            fault: None,
        };
        let end = worker.run().await;
        client.shutdown().immediate(true).await;
        end
    })
}

fn fail(mut core: Core, setup: &WorkerSetup, fault: WorkerFault) -> WorkerEnd {
    setup.stop.store(true, Ordering::Relaxed);
    core.stop(setup.clock.now_ns());
    core.finish(setup.clock.now_ns());
    WorkerEnd { fault: Some(fault) }
}

impl Worker {
    async fn run(mut self) -> WorkerEnd {
        let mut housekeeping_ns = 0;
        let end_ns = loop {
            let now_ns = self.setup.clock.now_ns();
            self.core.tick(now_ns);
            let next_start_ns = self.start_due(now_ns);
            if now_ns >= housekeeping_ns {
                self.keep_house(now_ns);
                housekeeping_ns = now_ns + HOUSEKEEPING_NS;
            }
            let drained = self.exhausted && self.core.in_flight() == 0 && self.waiting == 0;
            if drained
                || self
                    .stopping_since_ns
                    .is_some_and(|since| now_ns > since + STOP_DRAIN_NS)
            {
                break now_ns;
            }
            let until_ns = housekeeping_ns.min(self.core.wake_ns()).min(next_start_ns);
            if let Some(ended) = self.wait(until_ns).await {
                self.after_command(ended);
            }
        };
        self.cancel_all(end_ns);
        self.core.finish(end_ns);
        WorkerEnd { fault: self.fault }
    }

    /// Ends what is still under way when the worker stops waiting, so that it is counted.
    fn cancel_all(&mut self, now_ns: u64) {
        self.exhausted = true;
        for slot in 0..self.slots.len() {
            self.finish_part(slot, Err(OperationError::Cancelled), now_ns);
        }
    }

    /// The next command that ends, or nothing when `until_ns` is near.
    async fn wait(&mut self, until_ns: u64) -> Option<Ended> {
        let sleep_ns = until_ns
            .saturating_sub(SPIN_NS)
            .saturating_sub(self.setup.clock.now_ns());
        if sleep_ns == 0 {
            // Lets the runtime look at its sockets once, and comes back.
            tokio::task::yield_now().await;
            return self.commands.next().now_or_never().flatten();
        }
        let sleep = self.timer.sleep(Duration::from_nanos(sleep_ns));
        if self.commands.is_empty() {
            sleep.await;
            return None;
        }
        tokio::select! {
            ended = self.commands.next() => ended,
            () = sleep => None,
        }
    }

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

    fn keep_house(&mut self, now_ns: u64) {
        if self.stopping_since_ns.is_none() && self.setup.stop.load(Ordering::Relaxed) {
            self.stop(now_ns);
        }
        for slot in 0..self.slots.len() {
            if self.slots[slot]
                .retry_at_ns
                .is_some_and(|at_ns| now_ns >= at_ns)
            {
                self.repeat(slot, now_ns);
            }
        }
        if !self.exhausted && self.free.is_empty() && self.core.is_over(now_ns) {
            self.exhausted = true;
        }
    }

    /// Gives up when no command has been answered for too long: the driver would try for ever.
    fn watch_reachability(&mut self, outcome: Outcome, now_ns: u64) {
        if !matches!(
            outcome,
            Err(OperationError::Timeout | OperationError::Disconnected)
        ) {
            self.unanswered_since_ns = None;
            return;
        }
        let since_ns = *self.unanswered_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns > self.setup.unreachable_limit_ns && self.fault.is_none() {
            self.fault = Some(WorkerFault::Unreachable(None));
            self.setup.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Starts nothing more; what is under way has a moment to end.
    fn stop(&mut self, now_ns: u64) {
        self.core.stop(now_ns);
        self.stopping_since_ns = Some(now_ns);
        self.exhausted = true;
    }

    fn start(&mut self, slot: usize, ticket: Ticket) {
        self.out.clear();
        let begun = self.generator.begin(ticket.number, 0, &mut self.out);
        let call = if begun.waiting {
            None
        } else {
            Some(call(begun.kind, &self.out))
        };
        let send_ns = self.setup.clock.now_ns();
        self.slots[slot].operation = Some(InFlight {
            ticket,
            begun,
            send_ns,
            update_send_ns: None,
            failed: None,
            retries_left: self.setup.retry.limit,
            sent: call.is_some(),
        });
        let Some(call) = call else {
            self.waiting += 1;
            self.slots[slot].retry_at_ns = Some(send_ns + HOUSEKEEPING_NS);
            return;
        };
        self.core.tick(send_ns);
        self.core.started(ticket, send_ns);
        self.push(slot, call);
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
        let ticket = operation.ticket;
        self.waiting -= 1;
        self.core.tick(now_ns);
        self.core.started(ticket, now_ns);
    }

    fn repeat(&mut self, slot: usize, now_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        self.out.clear();
        let number = operation.ticket.number;
        if !self
            .generator
            .repeat(&mut operation.begun, number, 0, &mut self.out)
        {
            self.slots[slot].retry_at_ns = Some(now_ns + HOUSEKEEPING_NS);
            return;
        }
        let kind = operation.begun.kind;
        self.slots[slot].retry_at_ns = None;
        let call = call(kind, &self.out);
        self.mark_sent(slot, self.setup.clock.now_ns());
        self.push(slot, call);
    }

    fn push(&mut self, slot: usize, call: Result<Call, OperationError>) {
        let documents = self.documents.clone();
        let (clock, timeout) = (
            self.setup.clock,
            Duration::from_nanos(self.setup.timeout_ns),
        );
        let keep_existing = self.generator.workload().keeps_existing()
            || self.slots[slot]
                .operation
                .as_ref()
                .is_some_and(|operation| operation.begun.may_exist);
        self.commands.push(Box::pin(async move {
            let performed = async { call?.perform(&documents, keep_existing).await };
            let result = tokio::time::timeout(timeout, performed)
                .await
                .unwrap_or(Err(OperationError::Timeout));
            let (outcome, document) = match result {
                Ok((count, document)) => (Ok(count), document),
                Err(error) => (Err(error), None),
            };
            Ended {
                slot,
                outcome,
                document,
                end_ns: clock.now_ns(),
            }
        }));
    }

    fn after_command(&mut self, ended: Ended) {
        let Ended {
            slot,
            mut outcome,
            document,
            end_ns,
        } = ended;
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        if let (Ok(_), Some(document)) = (outcome, document)
            && let Err(error) = self.generator.check(&operation.begun, document.as_bytes())
        {
            outcome = Err(error);
        }
        self.watch_reachability(outcome, end_ns);
        self.finish_part(slot, outcome, end_ns);
    }

    /// The command of an operation has ended: the operation ends, or its update begins.
    fn finish_part(&mut self, slot: usize, outcome: Outcome, end_ns: u64) {
        let Some(operation) = &mut self.slots[slot].operation else {
            return;
        };
        if operation.begun.kind != OperationKind::ReadModifyWrite {
            return self.end(slot, outcome, end_ns);
        }
        let (ticket, begun) = (operation.ticket, operation.begun);
        match operation.update_send_ns {
            None => {
                let times = Times {
                    intended_ns: ticket.intended_ns,
                    send_ns: operation.send_ns,
                    end_ns,
                };
                operation.failed = outcome.err();
                self.core
                    .part_ended(ticket, OperationKind::Read, times, outcome);
                // As with the other backend: on a connection that is gone nothing follows.
                if outcome.is_err_and(OperationError::ends_pair) {
                    return self.end(slot, outcome, end_ns);
                }
                self.out.clear();
                self.generator
                    .update_after_read(&begun, ticket.number, 0, &mut self.out);
                let update = call(OperationKind::Update, &self.out);
                if let Some(operation) = &mut self.slots[slot].operation {
                    operation.update_send_ns = Some(self.setup.clock.now_ns());
                }
                self.push(slot, update);
            }
            Some(send_ns) => {
                let times = Times {
                    intended_ns: send_ns,
                    send_ns,
                    end_ns,
                };
                let whole = operation.failed.map_or(outcome, Err);
                self.core
                    .part_ended(ticket, OperationKind::Update, times, outcome);
                self.end(slot, whole, end_ns);
            }
        }
    }

    fn end(&mut self, slot: usize, outcome: Outcome, end_ns: u64) {
        if let Err(error) = outcome
            && self.schedule_retry(slot, error, end_ns)
        {
            return;
        }
        // What was never sent ends here all the same.
        self.mark_sent(slot, end_ns);
        let Some(operation) = self.slots[slot].operation.take() else {
            return;
        };
        self.generator.settle(&operation.begun, outcome.is_ok());
        let ticket = operation.ticket;
        let times = Times {
            intended_ns: ticket.intended_ns,
            send_ns: operation.send_ns,
            end_ns,
        };
        self.core
            .ended(ticket, operation.begun.kind, times, outcome);
        if let Err(error) = outcome
            && self.setup.abort_on_failure
            && self.fault.is_none()
            && error != OperationError::Cancelled
        {
            self.fault = Some(WorkerFault::Operation {
                kind: operation.begun.kind,
                error,
            });
            self.setup.stop.store(true, Ordering::Relaxed);
            self.stop(end_ns);
        }
        self.slots[slot].free_since_ns = end_ns;
        self.free.push_back(slot);
    }

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
        self.slots[slot].retry_at_ns = Some(now_ns + delay_ns);
        true
    }
}

/// A command as a call of the driver.
enum Call {
    FindOne {
        filter: Document,
        projection: Option<Document>,
    },
    Find {
        filter: Document,
        sort: Document,
        limit: i64,
        projection: Option<Document>,
    },
    Update {
        filter: Document,
        update: Document,
    },
    Replace {
        filter: Document,
        document: RawDocumentBuf,
    },
    Insert(RawDocumentBuf),
    InsertMany(Vec<RawDocumentBuf>),
    Delete(Document),
    /// A batch of upserts, for which the driver has no call on servers before 8.0.
    Command(Document),
}

/// Translates the bytes of a command. An error would be a bug of the encoder; it is counted, not hidden.
fn call(kind: OperationKind, message: &[u8]) -> Result<Call, OperationError> {
    decode(kind, message).ok_or(OperationError::Protocol)
}

fn decode(kind: OperationKind, message: &[u8]) -> Option<Call> {
    let frame = dyno_wire::frame::parse(message).ok()??;
    let message = frame.message().ok()?;
    let command = RawDocument::from_bytes(message.document).ok()?;
    let mut sequence = Vec::new();
    for section in message.sequences() {
        let mut rest = section.documents;
        while !rest.is_empty() {
            let (document, after) = dyno_wire::bson::Document::split(rest).ok()?;
            sequence.push(RawDocumentBuf::from_bytes(document.as_bytes().to_vec()).ok()?);
            rest = after;
        }
    }
    let part = |name: &str| {
        command
            .get_document(name)
            .ok()
            .and_then(|part| Document::try_from(part).ok())
    };
    Some(match kind {
        OperationKind::Read | OperationKind::ReadModifyWrite => Call::FindOne {
            filter: part("filter")?,
            projection: part("projection"),
        },
        OperationKind::Scan => Call::Find {
            filter: part("filter")?,
            sort: part("sort")?,
            limit: i64::from(command.get_i32("limit").ok()?),
            projection: part("projection"),
        },
        OperationKind::Update => {
            let statement = Document::try_from(sequence.first()?.as_ref()).ok()?;
            Call::Update {
                filter: statement.get_document("q").ok()?.clone(),
                update: statement.get_document("u").ok()?.clone(),
            }
        }
        OperationKind::Delete => {
            let statement = Document::try_from(sequence.first()?.as_ref()).ok()?;
            Call::Delete(statement.get_document("q").ok()?.clone())
        }
        OperationKind::Insert if command.get_str("update").is_ok() => {
            let statement = sequence.first()?;
            let document = statement.get_document("u").ok()?;
            Call::Replace {
                filter: Document::try_from(statement.get_document("q").ok()?).ok()?,
                document: document.to_owned(),
            }
        }
        OperationKind::Insert => Call::Insert(sequence.into_iter().next()?),
        OperationKind::InsertBatch if command.get_str("update").is_ok() => {
            let mut command = Document::try_from(command).ok()?;
            command.remove("$db");
            let updates: Option<Vec<Document>> = sequence
                .iter()
                .map(|update| Document::try_from(update.as_ref()).ok())
                .collect();
            command.insert("updates", updates?);
            Call::Command(command)
        }
        OperationKind::InsertBatch => Call::InsertMany(sequence),
    })
}

type Performed = Result<(u32, Option<RawDocumentBuf>), OperationError>;

impl Call {
    async fn perform(self, documents: &Documents, keep_existing: bool) -> Performed {
        match self {
            Call::FindOne { filter, projection } => {
                let mut find = documents.find_one(filter);
                if let Some(projection) = projection {
                    find = find.projection(projection);
                }
                match find.await.map_err(classify)? {
                    Some(document) => Ok((1, Some(document))),
                    None => Err(OperationError::NotFound),
                }
            }
            Call::Find {
                filter,
                sort,
                limit,
                projection,
            } => {
                let mut find = documents.find(filter).sort(sort).limit(limit);
                if let Some(projection) = projection {
                    find = find.projection(projection);
                }
                let mut cursor = find.await.map_err(classify)?;
                let mut count = 0;
                while cursor.advance().await.map_err(classify)? {
                    count += 1;
                }
                if count == 0 {
                    Err(OperationError::NotFound)
                } else {
                    Ok((count, None))
                }
            }
            Call::Update { filter, update } => {
                let result = documents
                    .update_one(filter, update)
                    .await
                    .map_err(classify)?;
                if result.matched_count == 0 {
                    Err(OperationError::NotFound)
                } else {
                    Ok((1, None))
                }
            }
            Call::Replace { filter, document } => {
                documents
                    .replace_one(filter, document)
                    .upsert(true)
                    .await
                    .map_err(classify)?;
                Ok((1, None))
            }
            Call::Insert(document) => {
                let result = documents.insert_one(document).await;
                match result {
                    Ok(_) => Ok((1, None)),
                    Err(error) if keep_existing && only_duplicates(&error) => Ok((0, None)),
                    Err(error) => Err(classify(error)),
                }
            }
            Call::InsertMany(batch) => {
                let count = batch.len() as u32;
                match documents.insert_many(batch).ordered(false).await {
                    Ok(_) => Ok((count, None)),
                    Err(error) if keep_existing && only_duplicates(&error) => {
                        Ok((count.saturating_sub(failed_inserts(&error)), None))
                    }
                    Err(error) => Err(classify(error)),
                }
            }
            Call::Delete(filter) => {
                let result = documents.delete_one(filter).await.map_err(classify)?;
                if result.deleted_count == 0 {
                    Err(OperationError::NotFound)
                } else {
                    Ok((1, None))
                }
            }
            Call::Command(command) => perform_command(documents, command).await,
        }
    }
}

async fn perform_command(documents: &Documents, command: Document) -> Performed {
    let database = documents.client().database(&documents.namespace().db);
    let reply = database.run_command(command).await.map_err(classify)?;
    if let Ok(errors) = reply.get_array("writeErrors")
        && let Some(first) = errors.first().and_then(|error| error.as_document())
    {
        return Err(OperationError::Server(first.get_i32("code").unwrap_or(0)));
    }
    let n = reply.get_i32("n").map_err(|_| OperationError::Protocol)?;
    Ok((u32::try_from(n).unwrap_or(0), None))
}

const DUPLICATE_KEY: i32 = 11000;

fn only_duplicates(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(failure)) => failure.code == DUPLICATE_KEY,
        ErrorKind::InsertMany(failure) => {
            failure.write_concern_error.is_none()
                && failure
                    .write_errors
                    .as_ref()
                    .is_some_and(|errors| errors.iter().all(|error| error.code == DUPLICATE_KEY))
        }
        _ => false,
    }
}

/// Documents of a batch that were refused.
fn failed_inserts(error: &Error) -> u32 {
    match error.kind.as_ref() {
        ErrorKind::InsertMany(failure) => failure
            .write_errors
            .as_ref()
            .map_or(0, |errors| errors.len() as u32),
        _ => 0,
    }
}

fn classify(error: Error) -> OperationError {
    match error.kind.as_ref() {
        ErrorKind::Command(failure) => OperationError::Server(failure.code),
        ErrorKind::Write(WriteFailure::WriteError(failure)) => OperationError::Server(failure.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(failure)) => {
            OperationError::WriteConcern(failure.code)
        }
        ErrorKind::InsertMany(failure) => {
            match (&failure.write_errors, &failure.write_concern_error) {
                (Some(errors), _) if !errors.is_empty() => OperationError::Server(errors[0].code),
                (_, Some(failure)) => OperationError::WriteConcern(failure.code),
                _ => OperationError::Driver,
            }
        }
        ErrorKind::Io(cause) if cause.kind() == std::io::ErrorKind::TimedOut => {
            OperationError::Timeout
        }
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => OperationError::Disconnected,
        ErrorKind::ServerSelection { .. } => OperationError::Disconnected,
        ErrorKind::InvalidResponse { .. } => OperationError::Protocol,
        _ => OperationError::Driver,
    }
}
