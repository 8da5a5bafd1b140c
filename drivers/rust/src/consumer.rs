//! The consumer: a tailable cursor, a change stream, or a repeated query.

use crate::code;
use crate::common::{
    BACK_OFF_FIRST, BACK_OFF_LAST, CATCH_UP_NS, Clock, Control, Counters, EMPTY_PAUSE, Lost,
    NO_BATCH, Options, POSITION_LOST, Stamps, producer_and_batch,
};
use crate::seen::Seen;
use crate::sight::{BLIND_AFTER_NS, Sight};
use futures_util::TryStreamExt;
use mongodb::action::Action;
use mongodb::bson::{Document, doc};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::{ChangeStreamEvent, ResumeToken};
use mongodb::error::{Error, ErrorKind, Result};
use mongodb::options::CursorType;
use mongodb::{Collection, Cursor};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A tailable cursor that returned nothing for this long is silent.
const SILENT: Duration = Duration::from_millis(100);

enum Source {
    Closed,
    Cursor(Box<Cursor<Document>>),
    Stream(ChangeStream<ChangeStreamEvent<Document>>),
}

pub(crate) struct Consumer<'a> {
    options: &'a Options,
    control: &'a Arc<Control>,
    stamps: &'a Stamps,
    collection: Collection<Document>,
    clock: Clock,
    source: Source,
    exhausted: bool,
    token: Option<ResumeToken>,
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
        control: &'a Arc<Control>,
        stamps: &'a Stamps,
        collection: Collection<Document>,
    ) -> Self {
        Consumer {
            options,
            control,
            stamps,
            collection,
            clock: options.clock(),
            source: Source::Closed,
            exhausted: false,
            token: None,
            seen: Seen::default(),
            // This driver hides empty answers; after this time, a later request has been answered.
            sight: Sight::new(BLIND_AFTER_NS + 2_000_000 * options.whole("await-ms")),
            counters: Counters::default(),
            last_ns: 0,
            last_sent_ns: 0,
            catch_up_ns: None,
            back_off: BACK_OFF_FIRST,
        }
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
    pub(crate) async fn open(&mut self, everything: bool) -> Result<()> {
        let wait = Duration::from_millis(self.options.whole("await-ms") as u64);
        let batch_size = Some(self.options.whole("batch-size") as u32).filter(|size| *size > 0);
        let filter = if everything || self.seen.count == 0 {
            doc! {}
        } else {
            self.filter(true)
        };
        self.source = match self.options.text("mode") {
            "change-stream" => {
                let inserts = [doc! { "$match": { "operationType": "insert" } }];
                let watch = self.collection.watch().pipeline(inserts).max_await_time(wait);
                Source::Stream(
                    watch
                        .optional(batch_size, |watch, size| watch.batch_size(size))
                        .optional(self.token.clone(), |watch, token| watch.resume_after(token))
                        .await?,
                )
            }
            mode => {
                let find = self
                    .collection
                    .find(filter)
                    .optional(batch_size, |find, size| find.batch_size(size));
                Source::Cursor(Box::new(if mode == "tailable" {
                    let cursor =
                        find.cursor_type(CursorType::TailableAwait).max_await_time(wait).await?;
                    let now_ns = self.clock.now();
                    self.sight.opened(now_ns);
                    self.catch_up_ns = Some(now_ns + CATCH_UP_NS);
                    cursor
                } else {
                    find.sort(doc! { "_id": 1 }).await?
                }))
            }
        };
        self.exhausted = false;
        self.counters.opened += 1;
        Ok(())
    }

    pub(crate) async fn run(&mut self) -> Value {
        let ready = Arc::clone(self.control);
        let _ = tokio::task::spawn_blocking(move || ready.ready()).await;
        let polls = self.options.text("mode") == "poll";
        self.last_ns = self.control.start_ns();
        let (mut lost, mut idle) = (None, false);
        while self.seen.count < self.options.whole("messages") && !self.control.stopping() {
            let step = self.step(&mut lost, idle).await;
            idle = !matches!(step, Ok(Some(_)));
            match step {
                Ok(Some(document)) => {
                    lost = None;
                    self.receive(&document, false).await;
                }
                Ok(None) if polls => {
                    self.source = Source::Closed;
                    let pause = Duration::from_millis(self.options.whole("poll-ms") as u64);
                    tokio::time::sleep(pause).await;
                }
                Ok(None) if self.is_dead() => lost = Some(self.ended(lost).await),
                Ok(None) => lost = self.blind().or(lost),
                Err(error) => lost = Some(self.broken(&error).await),
            }
            if idle && self.clock.now() - self.last_ns > self.options.idle_ns() {
                self.control.set_exit_code(5);
                break;
            }
        }
        self.counters.done(&self.seen, polls)
    }

    /// Opens the source if it is closed, and reads one message; `None` if none is available.
    async fn step(&mut self, lost: &mut Option<Lost>, idle: bool) -> Result<Option<Document>> {
        if matches!(self.source, Source::Closed) {
            self.open(lost.as_ref().is_some_and(|lost| lost.reason == "position-lost")).await?;
            if let Some(lost) = lost {
                lost.tell(self.clock.now());
            }
        } else if idle && self.is_tailable() && self.sight.asks(self.clock.now()) {
            self.catch_up(true).await?;
        } else if self.catch_up_ns.is_some_and(|at| self.last_sent_ns > at) {
            self.catch_up_ns = None;
            self.catch_up(false).await?;
        }
        match &mut self.source {
            Source::Closed => Ok(None),
            Source::Cursor(cursor) if self.options.text("mode") == "poll" => {
                cursor.try_next().await
            }
            Source::Cursor(cursor) => {
                // The stream of a tailable cursor continues through empty replies. Dropping this future loses
                // nothing: pending data stays in the cursor.
                match tokio::time::timeout(SILENT, cursor.try_next()).await {
                    Ok(document) => {
                        let document = document?;
                        self.exhausted = document.is_none();
                        Ok(document)
                    }
                    Err(_) => Ok(None),
                }
            }
            Source::Stream(stream) => {
                let event = stream.next_if_any().await?;
                self.token = stream.resume_token();
                Ok(event.and_then(|event| event.full_document))
            }
        }
    }

    fn is_dead(&self) -> bool {
        match &self.source {
            Source::Closed => true,
            Source::Cursor(_) => self.exhausted,
            Source::Stream(stream) => !stream.is_alive(),
        }
    }

    async fn receive(&mut self, document: &Document, by_query: bool) {
        let received_ns = self.clock.now();
        self.last_ns = received_ns;
        self.back_off = BACK_OFF_FIRST;
        let number = |name| document.get_i64(name).unwrap_or(0);
        let producer = document.get_i32("p").unwrap_or(0);
        self.last_sent_ns = number("s").min(received_ns);
        let is_new = self.seen.accept(producer, number("n"), by_query);
        if !by_query {
            self.sight.heard(self.last_sent_ns, received_ns);
        } else if is_new {
            self.sight.found(self.last_sent_ns, received_ns);
        }
        if !is_new {
            return;
        }
        let last = producer_and_batch(producer, NO_BATCH);
        self.stamps.consumed([number("n"), number("s"), received_ns, last]);
        let delay_us = self.options.whole("delay-us") as u64;
        if delay_us > 0 {
            tokio::time::sleep(Duration::from_micros(delay_us)).await;
        }
    }

    /// Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
    async fn catch_up(&mut self, newer: bool) -> Result<()> {
        let mut missing = self.collection.find(self.filter(newer)).await?;
        while let Some(document) = missing.try_next().await? {
            self.receive(&document, true).await;
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
            self.source = Source::Closed;
            self.sight.lost(now_ns)
        })
    }

    /// The cursor is dead without an error: the tailable cursor found no message.
    async fn ended(&mut self, lost: Option<Lost>) -> Lost {
        self.source = Source::Closed;
        self.counters.empty += 1;
        tokio::time::sleep(EMPTY_PAUSE).await;
        Lost {
            reason: "empty",
            code: None,
            message: "the cursor died without finding a message".to_owned(),
            reported: lost.is_some_and(|lost| lost.reason == "empty"),
            blind: None,
        }
    }

    async fn broken(&mut self, error: &Error) -> Lost {
        self.source = Source::Closed;
        let code = code(error);
        let reason = match &*error.kind {
            _ if code == Some(POSITION_LOST) => "position-lost",
            ErrorKind::Io(_)
            | ErrorKind::ConnectionPoolCleared { .. }
            | ErrorKind::ServerSelection { .. } => "connection",
            _ => "other",
        };
        if reason == "position-lost" {
            self.counters.position_lost += 1;
        } else {
            tokio::time::sleep(self.back_off).await;
            self.back_off = (2 * self.back_off).min(BACK_OFF_LAST);
        }
        Lost { reason, code, message: error.to_string(), reported: false, blind: None }
    }
}
