//! Slow operations. The server does not count them but writes them to its log, so new log lines are
//! searched for them.
//!
//! The server keeps the last 1024 lines. If more lines were written since the last search, the
//! share of slow operations in the remaining lines is extrapolated.

use super::ask::{Ask, AskError, refusal};
use super::fields::Fields;
use crate::health::Health;
use crate::watch::source::Reported;
use bson::{Bson, Document, doc};
use dyno_record::metrics::MetricId;
use dyno_record::names::slow;

/// Number of readings between two searches: an answer is up to some hundred kilobytes.
const PAUSE: u64 = 10;

const PART: &str = slow::GROUP;

/// State kept between two searches.
pub(crate) struct SlowOperations {
    all: MetricId,
    of_collection: MetricId,
    /// The collection under test, as log lines name it.
    namespace: String,
    readings: u64,
    /// Whether the server has such a log.
    is_there: bool,
    /// Time of the last search, and the number of lines written until then.
    before: Option<(f64, f64)>,
}

impl SlowOperations {
    /// For a server of this name, and the collection under load.
    pub(crate) fn new(instance: &str, database: &str, collection: &str) -> SlowOperations {
        SlowOperations {
            all: slow::OPERATIONS_PER_S.of(instance),
            of_collection: slow::COLLECTION_OPERATIONS_PER_S.of(instance),
            namespace: format!("\"ns\":\"{database}.{collection}\""),
            readings: 0,
            is_there: true,
            before: None,
        }
    }

    /// Searches the log, if it is time.
    ///
    /// # Errors
    /// The connection was lost: [`AskError::Lost`]; a refusal is reported as missing.
    pub(crate) fn read(
        &mut self,
        at_s: f64,
        ask: &mut dyn Ask,
        reported: &mut Reported,
    ) -> Result<(), AskError> {
        let is_due = self.readings.is_multiple_of(PAUSE);
        self.readings += 1;
        if !self.is_there || !is_due {
            return Ok(());
        }
        match ask.ask("admin", doc! { "getLog": "global" }) {
            Ok(answer) => match self.look(at_s, &answer, reported) {
                Ok(()) => {}
                Err(health) => self.end(health, reported),
            },
            Err(AskError::Refused { code, message }) => {
                self.end(refusal("getLog", code, &message), reported);
            }
            Err(lost @ AskError::Lost { .. }) => return Err(lost),
        }
        Ok(())
    }

    /// Reports the log as missing and stops asking for it.
    fn end(&mut self, health: Health, reported: &mut Reported) {
        self.is_there = false;
        reported.miss(PART, health);
    }

    fn look(
        &mut self,
        at_s: f64,
        answer: &Document,
        reported: &mut Reported,
    ) -> Result<(), Health> {
        let written = answer.number("totalLinesWritten").ok_or_else(|| {
            Health::unsupported("`getLog` does not report how many lines were written")
        })?;
        let lines = answer
            .get_array("log")
            .map_err(|_| Health::unsupported("the answer to `getLog` has no `log`"))?;
        let lines: Vec<&str> = lines.iter().filter_map(Bson::as_str).collect();
        if lines.last().is_some_and(|line| is_of_old_form(line)) {
            return Err(Health::unsupported("the log has the format used before MongoDB 4.4"));
        }
        let before = self.before.replace((at_s, written));
        let Some((before_s, written_before)) = before else {
            return Ok(());
        };
        let (duration_s, new) = (at_s - before_s, written - written_before);
        if duration_s <= 0.0 || new < 0.0 {
            return Ok(());
        }
        let left = new.min(lines.len() as f64);
        let per_s = |count: usize| {
            if left > 0.0 { count as f64 * new / left / duration_s } else { 0.0 }
        };
        let is_slow = |line: &&&str| is_slow_operation(line);
        let slow = || lines.iter().rev().take(left as usize).filter(is_slow);
        let of_collection = slow().filter(|line| line.contains(&self.namespace));
        reported.put(self.all.clone(), per_s(slow().count()));
        reported.put(self.of_collection.clone(), per_s(of_collection.count()));
        Ok(())
    }
}

/// Whether a log line is about a slow operation. Its message comes before the attributes, which may
/// contain any text from a client. The embedded server writes `TIME I COMMAND Slow query {…}`
/// instead of JSON.
fn is_slow_operation(line: &str) -> bool {
    let message = if line.starts_with('{') {
        line.split_once("\"msg\":\"").map(|(_, rest)| rest)
    } else {
        line.splitn(4, ' ').nth(3)
    };
    message.is_some_and(|rest| rest.starts_with("Slow query"))
}

/// Whether a line has the form `TIME I  COMMAND  [conn1] …`, in which slow operations do not have a
/// message of their own.
fn is_of_old_form(line: &str) -> bool {
    !line.starts_with('{')
        && line.split_whitespace().nth(3).is_some_and(|word| word.starts_with('['))
}
