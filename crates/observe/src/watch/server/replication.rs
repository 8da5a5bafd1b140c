//! Lag of the members of a replica set behind their primary, as reported by the watched server.

use super::ask::{Ask, AskError, refusal};
use super::fields::{Fields, at};
use crate::health::Health;
use crate::watch::source::Reported;
use bson::{Bson, Document, doc};
use dyno_record::names::replication;
use std::time::{Duration, Instant};

/// A question that takes longer is not asked at every reading.
const EXPENSIVE: Duration = Duration::from_millis(20);

/// Number of readings between questions while they are expensive.
const PAUSE: u64 = 5;

/// Code of a command that the server does not know.
const COMMAND_NOT_FOUND: i32 = 59;

/// `state` of a member that accepts writes.
const PRIMARY: f64 = 1.0;

/// The part that is missing without a replica set.
const PART: &str = replication::GROUP;

/// Whether to ask, and how often.
#[derive(Debug, Default)]
pub(crate) struct Replication {
    membership: Membership,
    is_expensive: bool,
    readings: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Membership {
    /// Not asked yet.
    #[default]
    Unknown,
    /// The server is in a replica set.
    Member,
    /// It is not in a replica set, or does not report it.
    Outside,
}

impl Replication {
    /// Asks, if it is time, and adds the values of the answer.
    ///
    /// # Errors
    /// The connection was lost: [`AskError::Lost`]; a refusal is reported as missing.
    pub(crate) fn read(
        &mut self,
        ask: &mut dyn Ask,
        reported: &mut Reported,
    ) -> Result<(), AskError> {
        if self.membership == Membership::Unknown {
            self.membership = membership(ask, reported)?;
        }
        let is_due = !self.is_expensive || self.readings.is_multiple_of(PAUSE);
        self.readings += 1;
        if self.membership != Membership::Member || !is_due {
            return Ok(());
        }
        let start = Instant::now();
        let answer = ask.ask("admin", doc! { "replSetGetStatus": 1 });
        self.is_expensive = start.elapsed() > EXPENSIVE;
        match answer {
            Ok(status) => report(&status, reported),
            Err(AskError::Refused { code, message }) => {
                // It would refuse again, and log a line each time.
                self.membership = Membership::Outside;
                reported.miss(PART, refusal("replSetGetStatus", code, &message));
            }
            Err(lost @ AskError::Lost { .. }) => return Err(lost),
        }
        Ok(())
    }
}

fn membership(ask: &mut dyn Ask, reported: &mut Reported) -> Result<Membership, AskError> {
    let answer = match ask.ask("admin", doc! { "hello": 1 }) {
        Err(AskError::Refused { code: COMMAND_NOT_FOUND, .. }) => {
            ask.ask("admin", doc! { "isMaster": 1 })
        }
        other => other,
    };
    let health = match answer {
        Ok(hello) if hello.contains_key("setName") => return Ok(Membership::Member),
        Ok(_) => Health::unsupported("the server is not a member of a replica set"),
        Err(AskError::Refused { code, message }) => refusal("hello", code, &message),
        Err(lost) => return Err(lost),
    };
    reported.miss(PART, health);
    Ok(Membership::Outside)
}

/// Adds state and lag of each member in an answer to `replSetGetStatus`.
fn report(status: &Document, reported: &mut Reported) {
    let no_members = Vec::new();
    let members = status.get_array("members").unwrap_or(&no_members);
    let members: Vec<&Document> = members.iter().filter_map(Bson::as_document).collect();
    let primary = members.iter().find(|member| member.number("state") == Some(PRIMARY));
    for member in &members {
        let name = member.get_str("name").unwrap_or_default();
        let state = member.number("state");
        reported.put_if_known(replication::STATE_COUNT.of(name), state);
        let is_up = member.number("health") != Some(0.0);
        let lag_s = primary.and_then(|primary| lag_s(primary, member));
        let lag_s = lag_s.filter(|_| is_up);
        reported.put_if_known(replication::LAG_S.of(name), lag_s);
    }
    if members.is_empty() {
        let reason = "the answer to `replSetGetStatus` has no `members`".to_owned();
        reported.miss(PART, Health::Degraded { reason });
    }
}

/// Seconds from the member's last applied operation to the primary's. In milliseconds if both
/// report such times (MongoDB 4.4), else in whole seconds. The primary's knowledge of itself may be
/// older than its knowledge of a member: that is not a lag.
fn lag_s(primary: &Document, member: &Document) -> Option<f64> {
    let between = |field| {
        let (Bson::DateTime(ahead), Bson::DateTime(behind)) =
            (at(primary, field)?, at(member, field)?)
        else {
            return None;
        };
        let lag_ms = ahead.timestamp_millis() - behind.timestamp_millis();
        Some((lag_ms as f64 / 1000.0).max(0.0))
    };
    between("lastAppliedWallTime").or_else(|| between("optimeDate"))
}
