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
use crate::units::Span;

/// Keys whose values affect the durability of acknowledged writes, whatever a knob file says.
const DURABILITY: [&str; 6] = [
    "server.durable_writes",
    "server.journal",
    "server.journal_commit_interval",
    "server.storage_engine",
    "server.topology",
    CONNECTION_OPTIONS,
];

/// Key for the time between checkpoints at the start of a server.
const CHECKPOINT_INTERVAL: &str = "server.checkpoint_interval";

/// Parameter of `mongod` for the longest time between two journal writes, in milliseconds.
const JOURNAL_PARAMETER: &str = "journalCommitInterval";

/// Parameter of `mongod` for the time between two checkpoints, in seconds.
const CHECKPOINT_PARAMETER: &str = "syncdelay";

/// The interval after which acknowledged writes are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interval {
    /// Time between two journal writes.
    Journal,
    /// Time between two checkpoints, without a journal.
    Checkpoint,
}

impl Interval {
    /// The interval that a key sets.
    fn of(key: &str) -> Option<Interval> {
        match parameter(key) {
            Some(JOURNAL_PARAMETER) => Some(Interval::Journal),
            Some(CHECKPOINT_PARAMETER) => Some(Interval::Checkpoint),
            _ => (key == CHECKPOINT_INTERVAL).then_some(Interval::Checkpoint),
        }
    }

    /// Its default, in its unit.
    const fn usual(self) -> f64 {
        match self {
            Interval::Journal => 100.0,
            Interval::Checkpoint => 60.0,
        }
    }

    /// The duration that a value means.
    fn length(self, value: &str) -> Option<f64> {
        match self {
            // In older servers, 0 means the default.
            Interval::Journal => {
                number(value).map(|own| if own > 0.0 { own } else { self.usual() })
            }
            Interval::Checkpoint => {
                let seconds = value.parse::<f64>().ok().or_else(|| {
                    let span = value.parse::<Span>().ok()?;
                    Some(span.0.as_secs_f64())
                })?;
                // 0 disables checkpoints.
                Some(if seconds > 0.0 { seconds } else { f64::INFINITY })
            }
        }
    }

    /// Whether a value makes acknowledged writes durable later than this limit.
    fn is_longer(self, value: &str, limit: f64) -> bool {
        self.length(value).is_none_or(|own| own > limit)
    }
}

/// The server parameter that a key sets, at run time or at the start.
fn parameter(key: &str) -> Option<&str> {
    [RUNTIME_PARAMETERS, PARAMETERS].into_iter().find_map(|group| key.strip_prefix(group))
}

/// Whether a value of this key makes acknowledged writes less durable than the default, whatever a
/// knob file says.
fn weakens(key: &str, value: &str) -> bool {
    let interval = Interval::of(key).filter(|interval| *interval == Interval::Journal);
    interval.is_some_and(|interval| interval.is_longer(value, interval.usual()))
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

    /// Compares the knob's values with the servers' values before any change. Values that make
    /// acknowledged writes less durable than on some server are marked if that is allowed;
    /// otherwise they are removed and returned. If another server already has such a value, no
    /// value remains, because all servers get the same values. Held-back values that are not less
    /// durable than on any server are added.
    pub fn resolve_durability(&mut self, now: &[&str], is_allowed: bool) -> Vec<String> {
        if Interval::of(&self.key) != Some(Interval::Journal) {
            return Vec::new();
        }
        self.resolve(Interval::Journal, now, is_allowed)
    }

    /// Like [`resolve_durability`](Self::resolve_durability) for the checkpoint intervals of
    /// servers without a journal, which lose all writes since the last checkpoint.
    pub fn resolve_checkpoints(&mut self, now: &[&str], is_allowed: bool) -> Vec<String> {
        if now.is_empty() || Interval::of(&self.key) != Some(Interval::Checkpoint) {
            return Vec::new();
        }
        self.resolve(Interval::Checkpoint, now, is_allowed)
    }

    fn resolve(&mut self, interval: Interval, now: &[&str], is_allowed: bool) -> Vec<String> {
        let own = now.iter().filter_map(|value| interval.length(value));
        // The default counts only if no value is known.
        let limit = own.reduce(f64::min).unwrap_or(interval.usual());
        self.release(limit);
        let has = |value: &str, now: &&str| interval.length(value) == interval.length(now);
        let is_weaker = |value: &&String| {
            let set = self.set(value);
            // A value that all servers already have is not a change.
            interval.is_longer(&set, limit) && !now.iter().all(|now| has(&set, now))
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

    /// Adds the held-back journal intervals that do not exceed a limit.
    fn release(&mut self, limit_ms: f64) {
        let held_back = std::mem::take(&mut self.held_back);
        if self.runtime_parameter() != Some(JOURNAL_PARAMETER) {
            return;
        }
        for value in held_back {
            if !Interval::Journal.is_longer(&self.set(&value), limit_ms) {
                self.add(&value);
            }
        }
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
