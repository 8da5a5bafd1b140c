//! Whether a tailable cursor that is silent is blind: "Blind cursors" in drivers/README.md.

use crate::common::{CATCH_UP_NS, Lost};

/// While a cursor is silent, what is missing is asked for so often.
const ASK_EVERY_NS: i64 = 1_000_000_000;
/// So long after a query that found what the cursor lacks, a cursor that still brings nothing is blind.
pub(crate) const BLIND_AFTER_NS: i64 = 100_000_000;

pub(crate) struct Sight {
    blind_after_ns: i64,
    asked_ns: i64,
    heard_ns: i64,
    /// What was sent later cannot have been skipped.
    after_ns: i64,
    /// Messages that queries found since the cursor's last one, and the start of the oldest.
    missed: i64,
    missed_ns: i64,
    /// When one was found that proves something.
    suspect_ns: Option<i64>,
}

impl Sight {
    pub(crate) fn new(blind_after_ns: i64) -> Self {
        Sight {
            blind_after_ns,
            asked_ns: 0,
            heard_ns: 0,
            after_ns: 0,
            missed: 0,
            missed_ns: i64::MAX,
            suspect_ns: None,
        }
    }

    pub(crate) fn opened(&mut self, now_ns: i64) {
        self.after_ns = now_ns + CATCH_UP_NS;
        self.heard(0, now_ns);
    }

    /// The cursor has brought a message.
    pub(crate) fn heard(&mut self, sent_ns: i64, now_ns: i64) {
        self.heard_ns = now_ns;
        self.after_ns = self.after_ns.max(sent_ns);
        (self.missed, self.missed_ns, self.suspect_ns) = (0, i64::MAX, None);
    }

    /// Whether it is time for a query; the cursor is silent.
    pub(crate) fn asks(&mut self, now_ns: i64) -> bool {
        let is_time = now_ns - self.asked_ns >= ASK_EVERY_NS;
        if is_time {
            self.asked_ns = now_ns;
        }
        is_time
    }

    /// A query found a message that the cursor has not brought.
    pub(crate) fn found(&mut self, sent_ns: i64, now_ns: i64) {
        self.missed += 1;
        self.missed_ns = self.missed_ns.min(sent_ns.max(self.heard_ns));
        if sent_ns > self.after_ns {
            self.suspect_ns.get_or_insert(now_ns);
        }
    }

    /// The cursor, asked after the last query, has brought nothing.
    pub(crate) fn is_blind(&self, now_ns: i64) -> bool {
        self.suspect_ns
            .is_some_and(|since| now_ns - since >= self.blind_after_ns)
    }

    /// Why the cursor is opened again.
    pub(crate) fn lost(&self, now_ns: i64) -> Lost {
        Lost {
            reason: "blind",
            code: None,
            message: "the cursor did not bring what queries found".to_owned(),
            reported: false,
            blind: Some((now_ns - self.missed_ns, self.missed)),
        }
    }
}
