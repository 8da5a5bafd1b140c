//! The consumer: a tailable cursor, a change stream, or a repeated query.

use crate::code;
use crate::common::{Control, EMPTY_PAUSE, Lost, NO_BATCH, Options, POSITION_LOST, Stamps};
use crate::reception::Reception;
use crate::sight::BLIND_AFTER_NS;
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
    control: &'a Arc<Control>,
    collection: Collection<Document>,
    source: Source,
    exhausted: bool,
    token: Option<ResumeToken>,
    reception: Reception<'a>,
}

impl<'a> Consumer<'a> {
    pub(crate) fn new(
        options: &'a Options,
        control: &'a Arc<Control>,
        stamps: &'a Stamps,
        collection: Collection<Document>,
    ) -> Self {
        // This driver hides empty answers; after this time, a later request has been answered.
        let blind_after_ns = BLIND_AFTER_NS + 2_000_000 * options.whole("await-ms");
        Consumer {
            control,
            collection,
            source: Source::Closed,
            exhausted: false,
            token: None,
            reception: Reception::new(options, stamps, blind_after_ns),
        }
    }

    /// `everything`: read from the oldest message on, after a lost position.
    pub(crate) async fn open(&mut self, everything: bool) -> Result<()> {
        let options = self.reception.options;
        let wait = Duration::from_millis(options.whole("await-ms") as u64);
        let batch_size = Some(options.whole("batch-size") as u32).filter(|size| *size > 0);
        let filter = self.reception.filter_of_source(everything);
        self.source = match options.text("mode") {
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
                    find.cursor_type(CursorType::TailableAwait).max_await_time(wait).await?
                } else {
                    find.sort(doc! { "_id": 1 }).await?
                }))
            }
        };
        self.exhausted = false;
        self.reception.opened();
        Ok(())
    }

    pub(crate) async fn run(&mut self) -> Value {
        let ready = Arc::clone(self.control);
        let _ = tokio::task::spawn_blocking(move || ready.ready()).await;
        let options = self.reception.options;
        let polls = options.text("mode") == "poll";
        self.reception.last_ns = self.control.start_ns();
        let (mut lost, mut idle) = (None, false);
        while self.reception.seen.count < options.whole("messages") && !self.control.stopping() {
            let step = self.step(&mut lost, idle).await;
            idle = !matches!(step, Ok(Some(_)));
            match step {
                Ok(Some(document)) => {
                    lost = None;
                    self.receive(&document, false).await;
                }
                Ok(None) if polls => {
                    self.source = Source::Closed;
                    let pause = Duration::from_millis(options.whole("poll-ms") as u64);
                    tokio::time::sleep(pause).await;
                }
                Ok(None) if self.is_dead() => lost = Some(self.ended(lost).await),
                Ok(None) => lost = self.blind().or(lost),
                Err(error) => lost = Some(self.broken(&error).await),
            }
            if idle && self.reception.is_idle() {
                self.control.set_exit_code(5);
                break;
            }
        }
        self.reception.counters.done(&self.reception.seen, polls)
    }

    /// Opens the source if it is closed, and reads one message; `None` if none is available.
    async fn step(&mut self, lost: &mut Option<Lost>, idle: bool) -> Result<Option<Document>> {
        if matches!(self.source, Source::Closed) {
            self.open(lost.as_ref().is_some_and(|lost| lost.reason == "position-lost")).await?;
            if let Some(lost) = lost {
                lost.tell(self.reception.clock.now());
            }
        } else if let Some(newer) = self.reception.catches_up(idle) {
            self.catch_up(newer).await?;
        }
        match &mut self.source {
            Source::Closed => Ok(None),
            Source::Cursor(cursor) if self.reception.options.text("mode") == "poll" => {
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
        let delay = self.reception.receive(document, by_query, NO_BATCH);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Queries for missing messages: overtaken ones once, early for each cursor, and all while it is silent.
    async fn catch_up(&mut self, newer: bool) -> Result<()> {
        let mut missing = self.collection.find(self.reception.filter(newer)).await?;
        while let Some(document) = missing.try_next().await? {
            self.receive(&document, true).await;
        }
        Ok(())
    }

    /// Closes a cursor that does not return messages that queries find.
    fn blind(&mut self) -> Option<Lost> {
        let lost = self.reception.blind()?;
        self.source = Source::Closed;
        Some(lost)
    }

    async fn ended(&mut self, lost: Option<Lost>) -> Lost {
        self.source = Source::Closed;
        tokio::time::sleep(EMPTY_PAUSE).await;
        self.reception.ended(lost)
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
        let (lost, pause) = self.reception.broken(reason, code, error.to_string());
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        lost
    }
}
