//! Detects blind tailable cursors; see "Blind cursors" in drivers/README.md.

use crate::common::{CATCH_UP_NS, Lost};

/// Interval of queries for missing messages while a cursor is silent.
const ASK_EVERY_NS: i64 = 1_000_000_000;
/// A cursor is blind if it still returns nothing this long after a query found messages that it missed.
pub(crate) const BLIND_AFTER_NS: i64 = 100_000_000;

pub(crate) struct Sight {
    blind_after_ns: i64,
    asked_ns: i64,
    heard_ns: i64,
    /// Messages sent later cannot have been skipped.
    after_ns: i64,
    /// Messages that queries found since the cursor's last one, and the send time of the oldest.
    missed: i64,
    missed_ns: i64,
    /// When a conclusive message was found.
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

    /// Records that the cursor returned a message.
    pub(crate) fn heard(&mut self, sent_ns: i64, now_ns: i64) {
        self.heard_ns = now_ns;
        self.after_ns = self.after_ns.max(sent_ns);
        (self.missed, self.missed_ns, self.suspect_ns) = (0, i64::MAX, None);
    }

    /// Whether it is time for a query while the cursor is silent.
    pub(crate) fn asks(&mut self, now_ns: i64) -> bool {
        let is_time = now_ns - self.asked_ns >= ASK_EVERY_NS;
        if is_time {
            self.asked_ns = now_ns;
        }
        is_time
    }

    /// Records that a query found a message that the cursor did not return.
    pub(crate) fn found(&mut self, sent_ns: i64, now_ns: i64) {
        self.missed += 1;
        self.missed_ns = self.missed_ns.min(sent_ns.max(self.heard_ns));
        if sent_ns > self.after_ns {
            self.suspect_ns.get_or_insert(now_ns);
        }
    }

    /// Whether the cursor, which returned nothing since the last query, is blind.
    pub(crate) fn is_blind(&self, now_ns: i64) -> bool {
        self.suspect_ns.is_some_and(|since| now_ns - since >= self.blind_after_ns)
    }

    /// Reason for opening the cursor again.
    pub(crate) fn lost(&self, now_ns: i64) -> Lost {
        Lost {
            reason: "blind",
            code: None,
            message: "the cursor did not return messages that queries found".to_owned(),
            reported: false,
            blind: Some((now_ns - self.missed_ns, self.missed)),
        }
    }
}
