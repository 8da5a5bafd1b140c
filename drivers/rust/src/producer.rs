//! The producer: one task takes messages in turn and spawns a task for each insert.

use crate::code;
use crate::common::{Control, GRACE, Options, PRODUCER_SHIFT, SPIN_NS, Stamps, emit};
use mongodb::Collection;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use mongodb::options::{Acknowledgment, InsertOneOptions, WriteConcern};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

#[derive(Default)]
struct Counts {
    sent: AtomicI64,
    failed: AtomicI64,
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

/// False if the wait was ended by a request to stop. The runtime's timer has whole milliseconds.
async fn wait_until(control: &Control, now: impl Fn() -> i64, at_ns: i64) -> bool {
    loop {
        let left_ns = at_ns - now();
        if left_ns <= 0 || control.stopping() {
            return !control.stopping();
        }
        if left_ns > SPIN_NS {
            tokio::time::sleep(Duration::from_nanos(left_ns.min(100_000_000) as u64)).await;
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
    let producer = options.whole("producer");
    let pad = Binary {
        subtype: BinarySubtype::Generic,
        bytes: options.padding(),
    };
    let settings = InsertOneOptions::builder()
        .write_concern(write_concern(options))
        .build();
    let most = options
        .number("in-flight")
        .map_or(Semaphore::MAX_PERMITS, |most| most as usize);
    let slots = Arc::new(Semaphore::new(most));
    let counts = Arc::new(Counts::default());
    let mut running = tokio::task::JoinSet::new();
    let ready = Arc::clone(control);
    let _ = tokio::task::spawn_blocking(move || ready.ready()).await;
    for index in 0..options.whole("messages") {
        let due_ns = control.start_ns()
            + schedule
                .as_ref()
                .map_or(0, |schedule| schedule[index as usize]);
        if !wait_until(control, || clock.now(), due_ns).await {
            break;
        }
        let Some(slot) = take(&slots, control).await else {
            break;
        };
        let send_ns = clock.now();
        let intended_ns = if schedule.is_some() { due_ns } else { send_ns };
        let n = options.whole("first") + index;
        let message = doc! {
            "_id": (producer << PRODUCER_SHIFT) + n, "p": producer as i32, "n": n, "i": intended_ns,
            "s": send_ns, "pad": pad.clone(),
        };
        let insert = collection.clone();
        let (settings, stamps, counts) =
            (settings.clone(), Arc::clone(stamps), Arc::clone(&counts));
        running.spawn(async move {
            let inserted = insert.insert_one(message).with_options(settings).await;
            let ended_ns = clock.now();
            drop(slot);
            let answered_ns = if inserted.is_ok() { ended_ns } else { -ended_ns };
            stamps.write([n, intended_ns, send_ns, answered_ns]);
            let Err(error) = inserted else {
                counts.sent.fetch_add(1, Ordering::Relaxed);
                return;
            };
            if counts.failed.fetch_add(1, Ordering::Relaxed) < 20 {
                emit(&json!({ "event": "failed", "n": n, "code": code(&error), "message": error.to_string() }));
            }
        });
        while running.try_join_next().is_some() {}
    }
    while !control.stopping() {
        let next = tokio::time::timeout(Duration::from_millis(100), running.join_next()).await;
        if matches!(next, Ok(None)) {
            break;
        }
    }
    let rest = async { while running.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, rest).await;
    let (sent, failed) = (&counts.sent, &counts.failed);
    json!({
        "event": "done", "messages": sent.load(Ordering::Relaxed), "failed": failed.load(Ordering::Relaxed),
    })
}

/// A place for one more insert in flight; `None` after a request to stop.
async fn take(
    slots: &Arc<Semaphore>,
    control: &Control,
) -> Option<tokio::sync::OwnedSemaphorePermit> {
    while !control.stopping() {
        let acquired = tokio::time::timeout(
            Duration::from_millis(100),
            Arc::clone(slots).acquire_owned(),
        );
        if let Ok(slot) = acquired.await {
            return slot.ok();
        }
    }
    None
}
