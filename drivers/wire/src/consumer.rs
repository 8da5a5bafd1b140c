//! The consumer: a tailable cursor, a change stream, or a repeated query, on one connection.

use crate::common::{
    BACK_OFF_FIRST, BACK_OFF_LAST, CATCH_UP_NS, Clock, Control as Run, Counters, EMPTY_PAUSE, Lost,
    NO_BATCH, Options, POSITION_LOST, Stamps, producer_and_batch,
};
use crate::seen::Seen;
use crate::sight::{BLIND_AFTER_NS, Sight};
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
    /// The server's ID of the open cursor; 0 if it is dead.
    cursor: i64,
    open: bool,
    batch: VecDeque<Document>,
    batches: u32,
    token: Option<Document>,
    seen: Seen,
    sight: Sight,
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
            sight: Sight::new(BLIND_AFTER_NS),
            counters: Counters::default(),
            last_ns: 0,
            last_sent_ns: 0,
            catch_up_ns: None,
            back_off: BACK_OFF_FIRST,
        }
    }

    /// Runs a command that returns a cursor, on a new connection if the last one is broken.
    fn ask(&mut self, command: Document) -> Result<Document, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.connector)?,
        };
        let reply = connection.run(self.options.text("database"), command);
        let reply = reply.map_err(|error| described(&error))?;
        self.connection = Some(connection);
        reply.get_document("cursor").cloned().map_err(|error| (None, error.to_string()))
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
                .map(|document| document.get_document("fullDocument").unwrap_or(document).clone()),
        );
        self.batches += u32::from(!self.batch.is_empty());
    }

    /// Filter for all missing messages; without `newer`, only for overtaken ones.
    fn filter(&self, newer: bool) -> Document {
        let open = self.seen.open_ids();
        let newest = if newer { open.newer } else { Vec::new() };
        let mut clauses = vec![doc! { "_id": { "$in": open.overtaken } }];
        let ranges = open.older.into_iter().chain(newest);
        clauses.extend(ranges.map(|(above, below)| doc! { "_id": { "$gt": above, "$lt": below } }));
        doc! { "$or": clauses }
    }

    /// `everything`: read from the oldest message on, after a lost position.
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
            let now_ns = self.clock.now();
            self.sight.opened(now_ns);
            self.catch_up_ns = Some(now_ns + CATCH_UP_NS);
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
                Ok(None) if self.cursor != 0 => lost = self.blind().or(lost),
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

    /// Opens the source if it is closed, and reads one message; `None` if none is available.
    fn step(&mut self, lost: &mut Option<Lost>, idle: bool) -> Result<Option<Document>, Failure> {
        if !self.open {
            self.open(lost.as_ref().is_some_and(|lost| lost.reason == "position-lost"))?;
            if let Some(lost) = lost {
                lost.tell(self.clock.now());
            }
        } else if idle && self.is_tailable() && self.sight.asks(self.clock.now()) {
            self.catch_up(true)?;
        } else if self.catch_up_ns.is_some_and(|at| self.last_sent_ns > at) {
            self.catch_up_ns = None;
            self.catch_up(false)?;
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

    /// `batch` is the cursor's reply with the message; `None` if a query found it.
    fn receive(&mut self, document: &Document, batch: Option<u32>) {
        let received_ns = self.clock.now();
        self.last_ns = received_ns;
        self.back_off = BACK_OFF_FIRST;
        let number = |name| document.get_i64(name).unwrap_or(0);
        let producer = document.get_i32("p").unwrap_or(0);
        self.last_sent_ns = number("s").min(received_ns);
        let is_new = self.seen.accept(producer, number("n"), batch.is_none());
        if batch.is_some() {
            self.sight.heard(self.last_sent_ns, received_ns);
        } else if is_new {
            self.sight.found(self.last_sent_ns, received_ns);
        }
        if !is_new {
            return;
        }
        let last = producer_and_batch(producer, batch.unwrap_or(NO_BATCH));
        self.stamps.consumed([number("n"), number("s"), received_ns, last]);
        let delay_us = self.options.whole("delay-us").unsigned_abs();
        if delay_us > 0 {
            thread::sleep(Duration::from_micros(delay_us));
        }
    }

    /// Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
    fn catch_up(&mut self, newer: bool) -> Result<(), Failure> {
        let filter = self.filter(newer);
        let find = doc! { "find": self.options.text("collection"), "filter": filter };
        let mut field = "firstBatch";
        let mut command = find;
        loop {
            let cursor = self.ask(command)?;
            for value in cursor.get_array(field).into_iter().flatten() {
                value.as_document().into_iter().for_each(|document| self.receive(document, None));
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

    fn is_tailable(&self) -> bool {
        self.options.text("mode") == "tailable"
    }

    /// Closes a cursor that does not return messages that queries find.
    fn blind(&mut self) -> Option<Lost> {
        let now_ns = self.clock.now();
        let is_blind = self.is_tailable() && self.sight.is_blind(now_ns);
        is_blind.then(|| {
            self.kill();
            self.sight.lost(now_ns)
        })
    }

    /// Ends the cursor, also on the server.
    fn kill(&mut self) {
        self.open = false;
        let command =
            doc! { "killCursors": self.options.text("collection"), "cursors": [self.cursor] };
        // Drop a broken connection; the next command opens another one.
        self.connection = self.connection.take().and_then(|mut connection| {
            let killed = connection.run(self.options.text("database"), command);
            killed.is_ok().then_some(connection)
        });
    }

    /// The cursor is dead without an error: the tailable cursor found no message.
    fn ended(&mut self, lost: Option<Lost>) -> Lost {
        self.open = false;
        self.counters.empty += 1;
        thread::sleep(EMPTY_PAUSE);
        Lost {
            reason: "empty",
            code: None,
            message: "the cursor died without finding a message".to_owned(),
            reported: lost.is_some_and(|lost| lost.reason == "empty"),
            blind: None,
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
        Lost { reason, code, message, reported: false, blind: None }
    }
}
