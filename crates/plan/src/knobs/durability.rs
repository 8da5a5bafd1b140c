//! Decides which values of a knob make acknowledged writes less durable: by its key, by its file,
//! and by the servers' current values.

use super::file::KnobPlan;
use super::range::number;
use super::{
    Allowed, CONNECTION_OPTIONS, ENGINE_CONFIGURATION, Knob, PARAMETERS, RUNTIME_PARAMETERS,
    invalid,
};
use crate::error::PlanError;
use crate::problem::Problem;

/// Keys whose values affect the durability of acknowledged writes, whatever a knob file says.
const DURABILITY: [&str; 6] = [
    "server.durable_writes",
    "server.journal",
    "server.journal_commit_interval",
    "server.storage_engine",
    "server.topology",
    CONNECTION_OPTIONS,
];

/// Keys for the time between checkpoints: a server without a journal loses all writes since the
/// last one.
const CHECKPOINT_INTERVAL: [&str; 3] = [
    "server.checkpoint_interval",
    "server.runtime_parameters.syncdelay",
    "server.parameters.syncdelay",
];

/// Parameter of `mongod` for the longest time between two journal writes, in milliseconds.
const JOURNAL_PARAMETER: &str = "journalCommitInterval";

/// Default of [`JOURNAL_PARAMETER`].
const USUAL_MS: f64 = 100.0;

/// The time between two journal writes that a value means; in older servers, 0 means the default.
fn interval_ms(value: &str) -> Option<f64> {
    number(value).map(|own| if own > 0.0 { own } else { USUAL_MS })
}

/// Whether a value makes acknowledged writes durable later than this limit.
fn is_longer(value: &str, limit_ms: f64) -> bool {
    interval_ms(value).is_none_or(|own| own > limit_ms)
}

/// The server parameter that a key sets, at run time or at the start.
fn parameter(key: &str) -> Option<&str> {
    [RUNTIME_PARAMETERS, PARAMETERS].into_iter().find_map(|group| key.strip_prefix(group))
}

/// Whether a value of this key makes acknowledged writes less durable than the default, whatever a
/// knob file says.
fn weakens(key: &str, value: &str) -> bool {
    parameter(key) == Some(JOURNAL_PARAMETER) && is_longer(value, USUAL_MS)
        || parameter(key) == Some(ENGINE_CONFIGURATION) && turns_journal_off(value)
}

/// Whether options of the engine disable its journal. JSON notation is accepted as well.
fn turns_journal_off(options: &str) -> bool {
    let written = options.chars().filter(|c| !c.is_whitespace() && *c != '"').map(|c| match c {
        ':' => '=',
        '{' => '(',
        other => other,
    });
    let written: String = written.collect();
    let log = written.split_once("log=(");
    let mut off = ["enabled=false", "enabled=0"].into_iter();
    log.is_some_and(|(_, rest)| off.any(|off| rest.contains(off)))
}

impl Knob {
    /// The parameter to query on running servers: the one that the knob sets, or the time between
    /// two journal writes at the start.
    pub fn reported_parameter(&self) -> Option<&str> {
        let of_start = self.key.strip_prefix(PARAMETERS);
        let of_start = of_start.filter(|name| *name == JOURNAL_PARAMETER);
        self.runtime_parameter().or(of_start)
    }

    /// Whether its longer values lose acknowledged writes on a server without a journal.
    pub fn is_checkpoint_interval(&self) -> bool {
        CHECKPOINT_INTERVAL.contains(&self.key.as_str())
    }

    /// Compares the journal intervals of the knob with the servers' values before any change.
    /// Values that make acknowledged writes less durable than on some server are marked if that is
    /// allowed; otherwise they are removed and returned. If another server already has such a
    /// value, no value remains, because all servers get the same values.
    pub fn resolve_durability(&mut self, now: &[&str], is_allowed: bool) -> Vec<String> {
        if parameter(&self.key) != Some(JOURNAL_PARAMETER) {
            return Vec::new();
        }
        // The default counts only if no value is known.
        let own = now.iter().filter_map(|value| interval_ms(value));
        let limit_ms = own.reduce(f64::min).unwrap_or(USUAL_MS);
        let has = |value: &str, now: &&str| interval_ms(value) == interval_ms(now);
        let is_weaker = |value: &&String| {
            let set = self.set(value);
            // A value that all servers already have is not a change.
            is_longer(&set, limit_ms) && !now.iter().all(|now| has(&set, now))
        };
        let weaker: Vec<String> = self.values.iter().filter(is_weaker).cloned().collect();
        if is_allowed {
            self.less_durable = weaker;
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
}

/// Marks the less durable values of a knob: the given ones, and the values that weaken its key.
/// `name` names the knob in the error if they are not allowed.
pub(super) fn mark_less_durable(
    knob: &mut Knob,
    weaker: &[String],
    name: &str,
    allowed: Allowed,
) -> Result<(), PlanError> {
    let values = knob.values.iter();
    let is_weaker =
        |value: &&String| weaker.contains(value) || weakens(&knob.key, &knob.set(value));
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
    let problem = Problem::new(format!("`{what}` may make acknowledged writes less durable"));
    invalid(problem.with_hint("use `--allow durability` to allow it"))
}

/// Whether a knob affects the durability of acknowledged writes, whatever its file says.
pub(super) fn decides_durability(plan: &KnobPlan) -> bool {
    // Options of a connection string do not.
    let is_name = |value: &String| value.chars().all(|c| c.is_ascii_alphanumeric());
    let is_compressor = plan.key == CONNECTION_OPTIONS
        && plan.text.as_ref().is_some_and(|text| text == "compressors={}")
        && plan.values.iter().all(is_name);
    DURABILITY.contains(&plan.key.as_str()) && !is_compressor
}
