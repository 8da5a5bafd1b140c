//! The producer: lanes that take messages in turn, and a pool of connections.

use crate::common::{
    Clock, Control as Run, GRACE, Options, PRODUCER_SHIFT, SPIN_NS, Stamps, emit, fail,
};
use crate::{connect, described};
use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use dyno_load::connect::{Connector, Control, ControlError};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

struct Producer {
    options: Options,
    run: Arc<Run>,
    stamps: Arc<Stamps>,
    clock: Clock,
    schedule: Option<Vec<i64>>,
    pad: Binary,
    concern: Document,
    pool: Pool,
    next: AtomicI64,
    lanes: AtomicI64,
}

/// Idle connections, and how many more may be made.
struct Pool {
    connector: Connector,
    state: Mutex<(Vec<Control>, i64)>,
    returned: Condvar,
}

impl Pool {
    fn take(&self) -> Result<Control, (Option<i32>, String)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(connection) = state.0.pop() {
                return Ok(connection);
            }
            if state.1 > 0 {
                state.1 -= 1;
                drop(state);
                return connect(&self.connector).inspect_err(|_| self.give(None));
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// `None` for a broken connection.
    fn give(&self, connection: Option<Control>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match connection {
            Some(connection) => state.0.push(connection),
            None => state.1 += 1,
        }
        self.returned.notify_one();
    }
}

pub(crate) fn run(
    options: Options,
    run: &Arc<Run>,
    stamps: &Arc<Stamps>,
    connector: Connector,
    first: Control,
    schedule: Option<Vec<i64>>,
) -> Value {
    let mut concern = match options.number("write-concern") {
        Some(nodes) => doc! { "w": nodes as i32 },
        None => doc! { "w": "majority" },
    };
    if let Ok(journal) = options.text("journal").parse::<bool>() {
        concern.insert("j", journal);
    }
    // If unbounded, due messages wait for a lane, in front of the pool.
    let wanted = options.number("in-flight").unwrap_or(options.whole("pool"));
    let lanes = wanted.min(options.whole("messages"));
    let producer = Arc::new(Producer {
        clock: options.clock(),
        pad: Binary { subtype: BinarySubtype::Generic, bytes: options.padding() },
        concern,
        pool: Pool {
            connector,
            state: Mutex::new((vec![first], options.whole("pool") - 1)),
            returned: Condvar::new(),
        },
        next: AtomicI64::new(0),
        lanes: AtomicI64::new(lanes),
        options,
        run: Arc::clone(run),
        stamps: Arc::clone(stamps),
        schedule,
    });
    run.ready();
    for _ in 0..lanes {
        let producer = Arc::clone(&producer);
        let lane = thread::Builder::new().spawn(move || {
            producer.lane();
            producer.lanes.fetch_sub(1, Ordering::SeqCst);
        });
        if let Err(error) = lane {
            fail(1, &format!("cannot start {lanes} threads: {error}"));
        }
    }
    let mut stopped = None;
    while producer.lanes.load(Ordering::SeqCst) > 0 {
        thread::sleep(Duration::from_millis(1));
        if run.stopping() && stopped.get_or_insert_with(Instant::now).elapsed() > GRACE {
            break;
        }
    }
    stamps.close()
}

impl Producer {
    fn lane(&self) {
        let closed = self.schedule.is_none() && self.options.number("in-flight").is_some();
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.options.whole("messages") {
                return;
            }
            let after = self.schedule.as_ref().map_or(0, |schedule| schedule[index as usize]);
            let due_ns = self.run.start_ns() + after;
            if !self.wait_until(due_ns) {
                return;
            }
            let send_ns = self.clock.now();
            let intended_ns = if closed { send_ns } else { due_ns };
            self.send(self.options.whole("first") + index, intended_ns, send_ns);
        }
    }

    /// False if a stop request ended the wait.
    fn wait_until(&self, at_ns: i64) -> bool {
        loop {
            let left_ns = at_ns - self.clock.now();
            if left_ns <= 0 || self.run.stopping() {
                return !self.run.stopping();
            }
            if left_ns > SPIN_NS {
                let pause_ns = (left_ns - SPIN_NS).min(100_000_000);
                thread::sleep(Duration::from_nanos(pause_ns.unsigned_abs()));
            }
        }
    }

    fn send(&self, n: i64, intended_ns: i64, send_ns: i64) {
        let producer = self.options.whole("producer");
        let message = doc! {
            "_id": (producer << PRODUCER_SHIFT) + n, "p": producer as i32, "n": n, "i": intended_ns,
            "s": send_ns, "pad": self.pad.clone(),
        };
        let command = doc! {
            "insert": self.options.text("collection"), "documents": [message],
            "writeConcern": self.concern.clone(),
        };
        let inserted = self.pool.take().and_then(|mut connection| {
            let answer = connection.run(self.options.text("database"), command);
            let is_good = matches!(answer, Ok(_) | Err(ControlError::Server { .. }));
            self.pool.give(is_good.then_some(connection));
            answer.map_err(|error| described(&error))
        });
        let ended_ns = self.clock.now();
        let answered_ns = if inserted.is_ok() { ended_ns } else { -ended_ns };
        let tell = self.stamps.produced([n, intended_ns, send_ns, answered_ns]);
        if let Err((code, message)) = inserted
            && tell
        {
            emit(&json!({ "event": "failed", "n": n, "code": code, "message": message }));
        }
    }
}
