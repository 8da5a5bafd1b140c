//! The consumer: a tailable cursor, a change stream, or a query again and again, on one connection.

use crate::common::{
    BACK_OFF_FIRST, BACK_OFF_LAST, CATCH_UP_NS, Clock, Control as Run, Counters, EMPTY_PAUSE, Lost,
    NO_BATCH, Options, POSITION_LOST, Stamps, WHEN_IDLE, producer_and_batch,
};
use crate::seen::Seen;
use crate::{connect, described};
use bson::{Document, doc};
use dyno_load::connect::{Connector, Control};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

type Failure = (Option<i32>, String);

pub(crate) struct Consumer<'a> {
    options: &'a Options,
    run: &'a Arc<Run>,
    stamps: &'a Stamps,
    connector: Connector,
    connection: Option<Control>,
    clock: Clock,
    /// The server's number of the open cursor; 0 when it is dead.
    cursor: i64,
    open: bool,
    batch: VecDeque<Document>,
    batches: u32,
    token: Option<Document>,
    seen: Seen,
    counters: Counters,
    last_ns: i64,
    last_sent_ns: i64,
    catch_up_ns: Option<i64>,
    back_off: Duration,
}

impl<'a> Consumer<'a> {
    pub(crate) fn new(
        options: &'a Options,
        run: &'a Arc<Run>,
        stamps: &'a Stamps,
        connector: Connector,
        first: Control,
    ) -> Self {
        Consumer {
            options,
            run,
            stamps,
            connector,
            connection: Some(first),
            clock: options.clock(),
            cursor: 0,
            open: false,
            batch: VecDeque::new(),
            batches: 0,
            token: None,
            seen: Seen::default(),
            counters: Counters::default(),
            last_ns: 0,
            last_sent_ns: 0,
            catch_up_ns: None,
            back_off: BACK_OFF_FIRST,
        }
    }

    /// Runs a command that answers with a cursor, on a new connection where the last one is broken.
    fn ask(&mut self, command: Document) -> Result<Document, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.connector)?,
        };
        let reply = connection.run(self.options.text("database"), command);
        let reply = reply.map_err(|error| described(&error))?;
        self.connection = Some(connection);
        reply
            .get_document("cursor")
            .cloned()
            .map_err(|error| (None, error.to_string()))
    }

    fn take(&mut self, cursor: &Document, field: &str) {
        self.cursor = cursor.get_i64("id").unwrap_or(0);
        if let Ok(token) = cursor.get_document("postBatchResumeToken") {
            self.token = Some(token.clone());
        }
        let documents = cursor.get_array(field).into_iter().flatten();
        self.batch.extend(
            documents
                .filter_map(|value| value.as_document())
                .map(|document| {
                    document
                        .get_document("fullDocument")
                        .unwrap_or(document)
                        .clone()
                }),
        );
        self.batches += u32::from(!self.batch.is_empty());
    }

    /// Everything but what came; without `newer` only what was overtaken.
    fn filter(&self, newer: bool) -> Document {
        let open = self.seen.open_ids();
        let newest = if newer { open.newer } else { Vec::new() };
        let mut clauses = vec![doc! { "_id": { "$in": open.overtaken } }];
        let ranges = open.older.into_iter().chain(newest);
        clauses.extend(ranges.map(|(above, below)| doc! { "_id": { "$gt": above, "$lt": below } }));
        doc! { "$or": clauses }
    }

    /// What a lost position left behind is read from the oldest message on: `everything`.
    pub(crate) fn open(&mut self, everything: bool) -> Result<(), Failure> {
        let filter = if everything || self.seen.count == 0 {
            doc! {}
        } else {
            self.filter(true)
        };
        let mode = self.options.text("mode");
        let mut command = doc! { "find": self.options.text("collection"), "filter": filter };
        match mode {
            "tailable" => {
                command.extend(doc! { "tailable": true, "awaitData": true });
            }
            "poll" => command.extend(doc! { "sort": { "_id": 1 } }),
            _ => {
                let mut stage = doc! {};
                if let Some(token) = self.token.clone() {
                    stage.insert("resumeAfter", token);
                }
                let pipeline = [
                    doc! { "$changeStream": stage },
                    doc! { "$match": { "operationType": "insert" } },
                ];
                let collection = self.options.text("collection");
                command =
                    doc! { "aggregate": collection, "pipeline": pipeline.to_vec(), "cursor": {} };
            }
        }
        match (self.options.whole("batch-size"), mode) {
            (0, _) => {}
            (size, "change-stream") => {
                command.insert("cursor", doc! { "batchSize": size as i32 });
            }
            (size, _) => {
                command.insert("batchSize", size as i32);
            }
        }
        let cursor = self.ask(command)?;
        if mode == "tailable" {
            self.catch_up_ns = Some(self.clock.now() + CATCH_UP_NS);
        }
        self.take(&cursor, "firstBatch");
        self.open = true;
        self.counters.opened += 1;
        Ok(())
    }

    pub(crate) fn run(&mut self) -> Value {
        self.run.ready();
        let polls = self.options.text("mode") == "poll";
        self.last_ns = self.run.start_ns();
        let (mut lost, mut idle) = (None, false);
        while self.seen.count < self.options.whole("messages") && !self.run.stopping() {
            let step = self.step(&mut lost, idle);
            idle = !matches!(step, Ok(Some(_)));
            match step {
                Ok(Some(document)) => {
                    lost = None;
                    self.receive(&document, Some(self.batches));
                }
                Ok(None) if self.cursor != 0 => {}
                Ok(None) if polls => {
                    self.open = false;
                    thread::sleep(Duration::from_millis(
                        self.options.whole("poll-ms").unsigned_abs(),
                    ));
                }
                Ok(None) => lost = Some(self.ended(lost)),
                Err(failure) => lost = Some(self.broken(failure)),
            }
            if idle && self.clock.now() - self.last_ns > self.options.idle_ns() {
                self.run.set_exit_code(5);
                break;
            }
        }
        self.counters.done(&self.seen, polls)
    }

    /// Opens what is closed and reads one message; `None` if there is none now.
    fn step(&mut self, lost: &mut Option<Lost>, idle: bool) -> Result<Option<Document>, Failure> {
        if !self.open {
            self.open(
                lost.as_ref()
                    .is_some_and(|lost| lost.reason == "position-lost"),
            )?;
            if let Some(lost) = lost {
                lost.tell(self.clock.now());
            }
        } else if self
            .catch_up_ns
            .is_some_and(|at| idle || self.last_sent_ns > at)
        {
            self.catch_up(idle)?;
        }
        if self.batch.is_empty() && self.cursor != 0 {
            let mut command =
                doc! { "getMore": self.cursor, "collection": self.options.text("collection") };
            if self.options.text("mode") != "poll" {
                command.insert("maxTimeMS", self.options.whole("await-ms"));
            }
            if self.options.whole("batch-size") > 0 {
                command.insert("batchSize", self.options.whole("batch-size") as i32);
            }
            let cursor = self.ask(command)?;
            self.take(&cursor, "nextBatch");
        }
        Ok(self.batch.pop_front())
    }

    /// `batch` is the reply that the cursor brought the message in, `None` if a query found it.
    fn receive(&mut self, document: &Document, batch: Option<u32>) {
        let received_ns = self.clock.now();
        self.last_ns = received_ns;
        self.back_off = BACK_OFF_FIRST;
        let number = |name| document.get_i64(name).unwrap_or(0);
        let producer = document.get_i32("p").unwrap_or(0);
        self.last_sent_ns = number("s").min(received_ns);
        if !self.seen.accept(producer, number("n"), batch.is_none()) {
            return;
        }
        let last = producer_and_batch(producer, batch.unwrap_or(NO_BATCH));
        self.stamps
            .consumed([number("n"), number("s"), received_ns, last]);
        let delay_us = self.options.whole("delay-us").unsigned_abs();
        if delay_us > 0 {
            thread::sleep(Duration::from_micros(delay_us));
        }
    }

    /// Asks for what is missing: for each cursor once early, and once when nothing more comes.
    fn catch_up(&mut self, newer: bool) -> Result<(), Failure> {
        self.catch_up_ns = (!newer).then_some(WHEN_IDLE);
        let filter = self.filter(newer);
        let find = doc! { "find": self.options.text("collection"), "filter": filter };
        let mut field = "firstBatch";
        let mut command = find;
        loop {
            let cursor = self.ask(command)?;
            for value in cursor.get_array(field).into_iter().flatten() {
                value
                    .as_document()
                    .into_iter()
                    .for_each(|document| self.receive(document, None));
            }
            let id = cursor.get_i64("id").unwrap_or(0);
            if id == 0 {
                break;
            }
            field = "nextBatch";
            command = doc! { "getMore": id, "collection": self.options.text("collection") };
        }
        Ok(())
    }

    /// The cursor is dead without an error: a tailable cursor found nothing at all.
    fn ended(&mut self, lost: Option<Lost>) -> Lost {
        self.open = false;
        self.counters.empty += 1;
        thread::sleep(EMPTY_PAUSE);
        Lost {
            reason: "empty",
            code: None,
            message: "the cursor found nothing and died".to_owned(),
            told: lost.is_some_and(|lost| lost.reason == "empty"),
        }
    }

    fn broken(&mut self, (code, message): Failure) -> Lost {
        self.open = false;
        self.batch.clear();
        self.connection = None;
        let reason = match code {
            Some(POSITION_LOST) => "position-lost",
            Some(_) => "other",
            None => "connection",
        };
        if reason == "position-lost" {
            self.counters.position_lost += 1;
        } else {
            thread::sleep(self.back_off);
            self.back_off = (2 * self.back_off).min(BACK_OFF_LAST);
        }
        Lost {
            reason,
            code,
            message,
            told: false,
        }
    }
}
