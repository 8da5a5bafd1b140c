//! The consumer: a tailable cursor, a change stream, or a repeated query, on one connection.

use crate::common::{Control as Run, EMPTY_PAUSE, Lost, NO_BATCH, Options, POSITION_LOST, Stamps};
use crate::reception::Reception;
use crate::sight::BLIND_AFTER_NS;
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
    run: &'a Arc<Run>,
    connector: Connector,
    connection: Option<Control>,
    /// The server's ID of the open cursor; 0 if it is dead.
    cursor: i64,
    open: bool,
    batch: VecDeque<Document>,
    batches: u32,
    token: Option<Document>,
    reception: Reception<'a>,
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
            run,
            connector,
            connection: Some(first),
            cursor: 0,
            open: false,
            batch: VecDeque::new(),
            batches: 0,
            token: None,
            reception: Reception::new(options, stamps, BLIND_AFTER_NS),
        }
    }

    /// Runs a command that returns a cursor, on a new connection if the last one is broken.
    fn ask(&mut self, command: Document) -> Result<Document, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.connector)?,
        };
        let reply = connection.run(self.reception.options.text("database"), command);
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

    /// `everything`: read from the oldest message on, after a lost position.
    pub(crate) fn open(&mut self, everything: bool) -> Result<(), Failure> {
        let options = self.reception.options;
        let filter = self.reception.filter_of_source(everything);
        let (mode, collection) = (options.text("mode"), options.text("collection"));
        let mut command = doc! { "find": collection, "filter": filter };
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
                command =
                    doc! { "aggregate": collection, "pipeline": pipeline.to_vec(), "cursor": {} };
            }
        }
        match (options.whole("batch-size"), mode) {
            (0, _) => {}
            (size, "change-stream") => {
                command.insert("cursor", doc! { "batchSize": size as i32 });
            }
            (size, _) => {
                command.insert("batchSize", size as i32);
            }
        }
        let cursor = self.ask(command)?;
        self.reception.opened();
        self.take(&cursor, "firstBatch");
        self.open = true;
        Ok(())
    }

    pub(crate) fn run(&mut self) -> Value {
        self.run.ready();
        let options = self.reception.options;
        let polls = options.text("mode") == "poll";
        self.reception.last_ns = self.run.start_ns();
        let (mut lost, mut idle) = (None, false);
        while self.reception.seen.count < options.whole("messages") && !self.run.stopping() {
            let step = self.step(&mut lost, idle);
            idle = !matches!(step, Ok(Some(_)));
            match step {
                Ok(Some(document)) => {
                    lost = None;
                    self.receive(&document, false);
                }
                Ok(None) if self.cursor != 0 => lost = self.blind().or(lost),
                Ok(None) if polls => {
                    self.open = false;
                    thread::sleep(Duration::from_millis(options.whole("poll-ms").unsigned_abs()));
                }
                Ok(None) => lost = Some(self.ended(lost)),
                Err(failure) => lost = Some(self.broken(failure)),
            }
            if idle && self.reception.is_idle() {
                self.run.set_exit_code(5);
                break;
            }
        }
        self.reception.counters.done(&self.reception.seen, polls)
    }

    /// Opens the source if it is closed, and reads one message; `None` if none is available.
    fn step(&mut self, lost: &mut Option<Lost>, idle: bool) -> Result<Option<Document>, Failure> {
        if !self.open {
            self.open(lost.as_ref().is_some_and(|lost| lost.reason == "position-lost"))?;
            if let Some(lost) = lost {
                lost.tell(self.reception.clock.now());
            }
        } else if let Some(newer) = self.reception.catches_up(idle) {
            self.catch_up(newer)?;
        }
        if self.batch.is_empty() && self.cursor != 0 {
            let options = self.reception.options;
            let mut command =
                doc! { "getMore": self.cursor, "collection": options.text("collection") };
            if options.text("mode") != "poll" {
                command.insert("maxTimeMS", options.whole("await-ms"));
            }
            if options.whole("batch-size") > 0 {
                command.insert("batchSize", options.whole("batch-size") as i32);
            }
            let cursor = self.ask(command)?;
            self.take(&cursor, "nextBatch");
        }
        Ok(self.batch.pop_front())
    }

    fn receive(&mut self, document: &Document, by_query: bool) {
        let batch = if by_query { NO_BATCH } else { self.batches };
        let delay = self.reception.receive(document, by_query, batch);
        if !delay.is_zero() {
            thread::sleep(delay);
        }
    }

    /// Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
    fn catch_up(&mut self, newer: bool) -> Result<(), Failure> {
        let collection = self.reception.options.text("collection");
        let mut field = "firstBatch";
        let mut command = doc! { "find": collection, "filter": self.reception.filter(newer) };
        loop {
            let cursor = self.ask(command)?;
            for value in cursor.get_array(field).into_iter().flatten() {
                value.as_document().into_iter().for_each(|document| self.receive(document, true));
            }
            let id = cursor.get_i64("id").unwrap_or(0);
            if id == 0 {
                break;
            }
            field = "nextBatch";
            command = doc! { "getMore": id, "collection": collection };
        }
        Ok(())
    }

    /// Closes a cursor that does not return messages that queries find.
    fn blind(&mut self) -> Option<Lost> {
        let lost = self.reception.blind()?;
        self.kill();
        Some(lost)
    }

    /// Ends the cursor, also on the server.
    fn kill(&mut self) {
        self.open = false;
        let options = self.reception.options;
        let command = doc! { "killCursors": options.text("collection"), "cursors": [self.cursor] };
        // Drop a broken connection; the next command opens another one.
        self.connection = self.connection.take().and_then(|mut connection| {
            let killed = connection.run(options.text("database"), command);
            killed.is_ok().then_some(connection)
        });
    }

    fn ended(&mut self, lost: Option<Lost>) -> Lost {
        self.open = false;
        thread::sleep(EMPTY_PAUSE);
        self.reception.ended(lost)
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
        let (lost, pause) = self.reception.broken(reason, code, message);
        thread::sleep(pause);
        lost
    }
}
