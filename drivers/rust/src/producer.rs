//! The producer: one task takes messages in turn. With one insert in flight it sends them itself, otherwise it spawns
//! a task for each insert.

use crate::code;
use crate::common::{Control, GRACE, Options, PRODUCER_SHIFT, SPIN_NS, Stamps, emit};
use mongodb::Collection;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use mongodb::options::{Acknowledgment, InsertOneOptions, WriteConcern};
use serde_json::{Value, json};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Interval;

/// The runtime's timer has whole milliseconds and may be one late, so it is too coarse this close to an intended
/// start.
const TIMER_NS: i64 = 2_000_000;
/// Interval of the checks for a stop request.
const LOOK: Duration = Duration::from_millis(100);

/// State shared by all inserts.
struct Sender {
    collection: Collection<Document>,
    settings: InsertOneOptions,
    stamps: Arc<Stamps>,
    clock: crate::common::Clock,
    producer: i64,
    pad: Binary,
}

impl Sender {
    /// Without a schedule, the intended start is the send start.
    async fn send(&self, n: i64, due_ns: Option<i64>) {
        let send_ns = self.clock.now();
        let intended_ns = due_ns.unwrap_or(send_ns);
        let message = doc! {
            "_id": (self.producer << PRODUCER_SHIFT) + n, "p": self.producer as i32, "n": n, "i": intended_ns,
            "s": send_ns, "pad": self.pad.clone(),
        };
        let insert = self.collection.insert_one(message);
        let inserted = insert.with_options(self.settings.clone()).await;
        let ended_ns = self.clock.now();
        let answered_ns = if inserted.is_ok() { ended_ns } else { -ended_ns };
        let tell = self.stamps.produced([n, intended_ns, send_ns, answered_ns]);
        if let Err(error) = inserted
            && tell
        {
            emit(
                &json!({ "event": "failed", "n": n, "code": code(&error), "message": error.to_string() }),
            );
        }
    }
}

fn write_concern(options: &Options) -> WriteConcern {
    let mut concern = WriteConcern::builder().build();
    concern.w = Some(match options.number("write-concern") {
        Some(nodes) => Acknowledgment::Nodes(nodes as u32),
        None => Acknowledgment::Majority,
    });
    concern.journal = options.text("journal").parse().ok();
    concern
}

/// False if a stop request ended the wait.
async fn wait_until(control: &Control, now: impl Fn() -> i64, at_ns: i64) -> bool {
    loop {
        let left_ns = at_ns - now();
        if left_ns <= 0 || control.stopping() {
            return !control.stopping();
        }
        if left_ns > TIMER_NS {
            let pause_ns = (left_ns - TIMER_NS).min(100_000_000);
            tokio::time::sleep(Duration::from_nanos(pause_ns.unsigned_abs())).await;
        } else if left_ns > SPIN_NS {
            // Other tasks continue in another thread.
            let pause = Duration::from_nanos((left_ns - SPIN_NS).unsigned_abs());
            tokio::task::block_in_place(|| std::thread::sleep(pause));
        }
    }
}

/// Waits for the work; after a stop request, only for a limited time. One timer serves all messages.
async fn unless_stopped<T>(
    work: impl Future<Output = T>,
    control: &Control,
    look: &mut Interval,
    grace: Duration,
) -> Option<T> {
    let mut work = pin!(work);
    let mut stopped = None;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            _ = look.tick() => {}
        }
        if control.stopping() && stopped.get_or_insert_with(Instant::now).elapsed() >= grace {
            return None;
        }
    }
}

pub(crate) async fn run(
    options: &Options,
    control: &Arc<Control>,
    stamps: &Arc<Stamps>,
    collection: &Collection<Document>,
    schedule: Option<Vec<i64>>,
) -> Value {
    let clock = options.clock();
    let sender = Arc::new(Sender {
        collection: collection.clone(),
        settings: InsertOneOptions::builder().write_concern(write_concern(options)).build(),
        stamps: Arc::clone(stamps),
        clock,
        producer: options.whole("producer"),
        pad: Binary { subtype: BinarySubtype::Generic, bytes: options.padding() },
    });
    let most = options.number("in-flight");
    let permits = most.map_or(Semaphore::MAX_PERMITS, |most| most as usize);
    let slots = Arc::new(Semaphore::new(permits));
    let mut running = JoinSet::new();
    let mut look = tokio::time::interval(LOOK);
    let ready = Arc::clone(control);
    let _ = tokio::task::spawn_blocking(move || ready.ready()).await;
    for index in 0..options.whole("messages") {
        let due_ns =
            schedule.as_ref().map(|schedule| control.start_ns() + schedule[index as usize]);
        let wake_ns = due_ns.unwrap_or_else(|| control.start_ns());
        if !wait_until(control, || clock.now(), wake_ns).await {
            break;
        }
        let n = options.whole("first") + index;
        if most == Some(1) {
            let insert = sender.send(n, due_ns);
            if unless_stopped(insert, control, &mut look, GRACE).await.is_none() {
                break;
            }
            continue;
        }
        let slot = Arc::clone(&slots).acquire_owned();
        let slot = unless_stopped(slot, control, &mut look, Duration::ZERO).await;
        let Some(Ok(slot)) = slot else { break };
        let sender = Arc::clone(&sender);
        running.spawn(async move {
            sender.send(n, due_ns).await;
            drop(slot);
        });
        while running.try_join_next().is_some() {}
    }
    let rest = async { while running.join_next().await.is_some() {} };
    unless_stopped(rest, control, &mut look, GRACE).await;
    stamps.close()
}
