//! Which values of a knob make acknowledged writes less durable: by its key, by its file, and by what servers have now.

use super::file::KnobPlan;
use super::range::number;
use super::{Allowed, CONNECTION_OPTIONS, Knob, PARAMETERS, RUNTIME_PARAMETERS, invalid};
use crate::error::PlanError;
use crate::problem::Problem;

/// Keys whose values decide whether acknowledged writes last, whatever a file says of them.
const DURABILITY: [&str; 6] = [
    "server.durable_writes",
    "server.journal",
    "server.journal_commit_interval",
    "server.storage_engine",
    "server.topology",
    CONNECTION_OPTIONS,
];

/// The parameter of `mongod` with the longest time between two writes of its journal.
const JOURNAL_INTERVAL: &str = "journalCommitInterval";

/// What it is by default, in milliseconds.
const JOURNAL_INTERVAL_MS: f64 = 100.0;

/// The time between two writes of the journal that a value means, in milliseconds: older servers have 0 for the default.
fn interval_ms(value: &str) -> Option<f64> {
    number(value).map(|own| if own > 0.0 { own } else { JOURNAL_INTERVAL_MS })
}

/// Whether a key sets the time between two writes of the journal.
fn is_interval(key: &str) -> bool {
    let mut parameters = [RUNTIME_PARAMETERS, PARAMETERS].into_iter();
    parameters.any(|all| key.strip_prefix(all) == Some(JOURNAL_INTERVAL))
}

/// Whether this value of this key makes acknowledged writes less durable than `limit_ms` between two writes of the journal do,
/// whatever a file says of it.
fn weakens(key: &str, value: &str, limit_ms: f64) -> bool {
    is_interval(key) && interval_ms(value).is_none_or(|own| own > limit_ms)
}

impl Knob {
    /// The parameter whose value is asked of running servers: the one that it sets, or the time between two writes of the journal
    /// that servers are started with.
    pub fn told_parameter(&self) -> Option<&str> {
        let of_start = self.key.strip_prefix(PARAMETERS);
        let of_start = of_start.filter(|name| *name == JOURNAL_INTERVAL);
        self.runtime_parameter().or(of_start)
    }

    /// Compares its values with those that servers have of its parameter before any change. Values with which acknowledged
    /// writes are less durable than on one of them are marked if that is allowed, and else taken out and returned. If another of
    /// the servers has one of these, no value is left to be tried: the same values are tried on all servers. Values that were
    /// held back and are no less durable than on any of them join the others.
    pub fn settle_durability(&mut self, now: &[&str], is_allowed: bool) -> Vec<String> {
        let own_ms = now.iter().filter_map(|value| interval_ms(value));
        // What is usual counts only as long as nothing is known.
        let limit_ms = own_ms.reduce(f64::min).unwrap_or(JOURNAL_INTERVAL_MS);
        self.release(limit_ms);
        let has = |value: &str, now: &&str| interval_ms(value) == interval_ms(now);
        let is_weaker = |value: &&String| {
            let set = self.set(value);
            // What all servers have is no change.
            weakens(&self.key, &set, limit_ms) && !now.iter().all(|now| has(&set, now))
        };
        let weaker: Vec<String> = self.values.iter().filter(is_weaker).cloned().collect();
        if is_allowed {
            if is_interval(&self.key) {
                self.less_durable = weaker;
            }
            return Vec::new();
        }
        let is_of_a_server = |value: &String| now.iter().any(|now| has(&self.set(value), now));
        let mut kept = self.values.clone();
        if weaker.iter().any(is_of_a_server) {
            kept.clear();
        }
        kept.retain(|value| !weaker.contains(value));
        self.retain(&kept);
        weaker
    }

    /// Puts the times between two writes of the journal that were held back and are not above a limit among its values.
    fn release(&mut self, limit_ms: f64) {
        let held_back = std::mem::take(&mut self.held_back);
        if self.runtime_parameter() != Some(JOURNAL_INTERVAL) {
            return;
        }
        for value in held_back {
            if !weakens(&self.key, &self.set(&value), limit_ms) {
                self.add(&value);
            }
        }
    }
}

/// Says of a knob which of its values are less durable: these, and those that weaken its key. `name` stands for it in an error if
/// that is not allowed.
pub(super) fn mark_less_durable(
    knob: &mut Knob,
    weaker: &[String],
    name: &str,
    allowed: Allowed,
) -> Result<(), PlanError> {
    let values = knob.values.iter();
    let is_weaker = |value: &&String| {
        weaker.contains(value) || weakens(&knob.key, &knob.set(value), JOURNAL_INTERVAL_MS)
    };
    let own: Vec<String> = values.filter(is_weaker).cloned().collect();
    match own.first().filter(|_| !allowed.durability) {
        Some(value) => Err(less_durable(&format!("{name}={value}"))),
        None => {
            knob.less_durable = own;
            Ok(())
        }
    }
}

pub(super) fn less_durable(what: &str) -> PlanError {
    let problem = Problem::new(format!(
        "`{what}` may make acknowledged writes less durable"
    ));
    invalid(problem.with_hint("give `--allow durability` if that is what you want"))
}

/// Whether a knob decides if acknowledged writes last, whatever its file says.
pub(super) fn decides_durability(plan: &KnobPlan) -> bool {
    // Of the options of a connection string these do not.
    let is_name = |value: &String| value.chars().all(|c| c.is_ascii_alphanumeric());
    let is_compressor = plan.key == CONNECTION_OPTIONS
        && plan
            .text
            .as_ref()
            .is_some_and(|text| text == "compressors={}")
        && plan.values.iter().all(is_name);
    DURABILITY.contains(&plan.key.as_str()) && !is_compressor
}
