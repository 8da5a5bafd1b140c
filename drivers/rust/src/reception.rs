//! What a consumer does with messages and lost sources, whatever reads them.

use crate::common::{
    BACK_OFF_FIRST, BACK_OFF_LAST, CATCH_UP_NS, Clock, Counters, Lost, Options, Stamps,
    producer_and_batch,
};
use crate::seen::Seen;
use crate::sight::Sight;
use bson::{Document, doc};
use std::time::Duration;

pub(crate) struct Reception<'a> {
    pub(crate) options: &'a Options,
    stamps: &'a Stamps,
    pub(crate) clock: Clock,
    pub(crate) seen: Seen,
    sight: Sight,
    pub(crate) counters: Counters,
    pub(crate) last_ns: i64,
    last_sent_ns: i64,
    catch_up_ns: Option<i64>,
    back_off: Duration,
}

impl<'a> Reception<'a> {
    pub(crate) fn new(options: &'a Options, stamps: &'a Stamps, blind_after_ns: i64) -> Self {
        Reception {
            options,
            stamps,
            clock: options.clock(),
            seen: Seen::default(),
            sight: Sight::new(blind_after_ns),
            counters: Counters::default(),
            last_ns: 0,
            last_sent_ns: 0,
            catch_up_ns: None,
            back_off: BACK_OFF_FIRST,
        }
    }

    fn is_tailable(&self) -> bool {
        self.options.text("mode") == "tailable"
    }

    /// Filter for all missing messages; without `newer`, only for overtaken ones.
    pub(crate) fn filter(&self, newer: bool) -> Document {
        let open = self.seen.open_ids();
        let newest = if newer { open.newer } else { Vec::new() };
        let mut clauses = vec![doc! { "_id": { "$in": open.overtaken } }];
        let ranges = open.older.into_iter().chain(newest);
        clauses.extend(ranges.map(|(above, below)| doc! { "_id": { "$gt": above, "$lt": below } }));
        doc! { "$or": clauses }
    }

    /// Filter for a source that is opened now. `everything`: read from the oldest message on, after a lost position.
    pub(crate) fn filter_of_source(&self, everything: bool) -> Document {
        if everything || self.seen.count == 0 {
            doc! {}
        } else {
            self.filter(true)
        }
    }

    pub(crate) fn opened(&mut self) {
        if self.is_tailable() {
            let now_ns = self.clock.now();
            self.sight.opened(now_ns);
            self.catch_up_ns = Some(now_ns + CATCH_UP_NS);
        }
        self.counters.opened += 1;
    }

    /// Whether to query for missing messages before the next one is read: with `true`, for all, while the cursor is
    /// silent (`idle`); with `false`, for overtaken ones, once and early for each cursor.
    pub(crate) fn catches_up(&mut self, idle: bool) -> Option<bool> {
        if idle && self.is_tailable() && self.sight.asks(self.clock.now()) {
            return Some(true);
        }
        let is_due = self.catch_up_ns.is_some_and(|at| self.last_sent_ns > at);
        is_due.then(|| {
            self.catch_up_ns = None;
            false
        })
    }

    /// Takes a message of the cursor's reply `batch`, or one that a query found. Returns the delay after it.
    pub(crate) fn receive(&mut self, document: &Document, by_query: bool, batch: u32) -> Duration {
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
            return Duration::ZERO;
        }
        let last = producer_and_batch(producer, batch);
        self.stamps.consumed([number("n"), number("s"), received_ns, last]);
        Duration::from_micros(self.options.whole("delay-us").unsigned_abs())
    }

    /// Why to close a cursor that does not return messages that queries find.
    pub(crate) fn blind(&self) -> Option<Lost> {
        let now_ns = self.clock.now();
        let is_blind = self.is_tailable() && self.sight.is_blind(now_ns);
        is_blind.then(|| self.sight.lost(now_ns))
    }

    /// The cursor is dead without an error: the tailable cursor found no message.
    pub(crate) fn ended(&mut self, lost: Option<Lost>) -> Lost {
        self.counters.empty += 1;
        Lost {
            reason: "empty",
            code: None,
            message: "the cursor died without finding a message".to_owned(),
            reported: lost.is_some_and(|lost| lost.reason == "empty"),
            blind: None,
        }
    }

    /// Reason for opening the source again after an error, and the pause before.
    pub(crate) fn broken(
        &mut self,
        reason: &'static str,
        code: Option<i32>,
        message: String,
    ) -> (Lost, Duration) {
        let pause = if reason == "position-lost" {
            self.counters.position_lost += 1;
            Duration::ZERO
        } else {
            let pause = self.back_off;
            self.back_off = (2 * pause).min(BACK_OFF_LAST);
            pause
        };
        (Lost { reason, code, message, reported: false, blind: None }, pause)
    }

    /// Whether no message came for the longest time.
    pub(crate) fn is_idle(&self) -> bool {
        self.clock.now() - self.last_ns > self.options.idle_ns()
    }
}
