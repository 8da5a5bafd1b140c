//! Which values of a knob make acknowledged writes less durable: by its key, by its file, and by what servers have now.

use super::file::KnobPlan;
use super::range::number;
use super::{
    Allowed, CONNECTION_OPTIONS, ENGINE_CONFIGURATION, Knob, PARAMETERS, RUNTIME_PARAMETERS,
    invalid,
};
use crate::error::PlanError;
use crate::problem::Problem;
use crate::units::Span;

/// Keys whose values decide whether acknowledged writes last, whatever a file says of them.
const DURABILITY: [&str; 6] = [
    "server.durable_writes",
    "server.journal",
    "server.journal_commit_interval",
    "server.storage_engine",
    "server.topology",
    CONNECTION_OPTIONS,
];

/// Key of the time between checkpoints that a server is started with.
const CHECKPOINT_INTERVAL: &str = "server.checkpoint_interval";

/// The parameter of `mongod` with the longest time between two writes of its journal, in milliseconds.
const JOURNAL_PARAMETER: &str = "journalCommitInterval";

/// Its parameter with the time between two checkpoints, in seconds.
const CHECKPOINT_PARAMETER: &str = "syncdelay";

/// After what time acknowledged writes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interval {
    /// That between two writes of the journal.
    Journal,
    /// That between two checkpoints, where there is no journal.
    Checkpoint,
}

impl Interval {
    /// The one that a key sets.
    fn of(key: &str) -> Option<Interval> {
        match parameter(key) {
            Some(JOURNAL_PARAMETER) => Some(Interval::Journal),
            Some(CHECKPOINT_PARAMETER) => Some(Interval::Checkpoint),
            _ => (key == CHECKPOINT_INTERVAL).then_some(Interval::Checkpoint),
        }
    }

    /// What it is by default, in its unit.
    const fn usual(self) -> f64 {
        match self {
            Interval::Journal => 100.0,
            Interval::Checkpoint => 60.0,
        }
    }

    /// The time that a value means.
    fn length(self, value: &str) -> Option<f64> {
        match self {
            // Older servers have 0 for the default.
            Interval::Journal => {
                number(value).map(|own| if own > 0.0 { own } else { self.usual() })
            }
            Interval::Checkpoint => {
                let seconds = value.parse::<f64>().ok().or_else(|| {
                    let span = value.parse::<Span>().ok()?;
                    Some(span.0.as_secs_f64())
                })?;
                // With 0 there is none.
                Some(if seconds > 0.0 {
                    seconds
                } else {
                    f64::INFINITY
                })
            }
        }
    }

    /// Whether acknowledged writes last later with a value than with this time.
    fn is_longer(self, value: &str, limit: f64) -> bool {
        self.length(value).is_none_or(|own| own > limit)
    }
}

/// The parameter of a server that a key sets, while it runs or by its start.
fn parameter(key: &str) -> Option<&str> {
    let mut groups = [RUNTIME_PARAMETERS, PARAMETERS].into_iter();
    groups.find_map(|group| key.strip_prefix(group))
}

/// Whether a value of this key makes acknowledged writes less durable than they usually are, whatever a file says of it.
fn weakens(key: &str, value: &str) -> bool {
    let interval = Interval::of(key).filter(|interval| *interval == Interval::Journal);
    interval.is_some_and(|interval| interval.is_longer(value, interval.usual()))
        || parameter(key) == Some(ENGINE_CONFIGURATION) && turns_journal_off(value)
}

/// Whether options of the engine turn its journal off. They may be written as JSON, too.
fn turns_journal_off(options: &str) -> bool {
    let written = options
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '"')
        .map(|c| match c {
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
    /// The parameter whose value is asked of running servers: the one that it sets, or the time between two writes of the journal
    /// that servers are started with.
    pub fn reported_parameter(&self) -> Option<&str> {
        let of_start = self.key.strip_prefix(PARAMETERS);
        let of_start = of_start.filter(|name| *name == JOURNAL_PARAMETER);
        self.runtime_parameter().or(of_start)
    }

    /// Compares its values with those that servers have of its parameter before any change. Values with which acknowledged
    /// writes are less durable than on one of them are marked if that is allowed, and else taken out and returned. If another of
    /// the servers has one of these, no value is left to be tried: the same values are tried on all servers. Values that were
    /// held back and are no less durable than on any of them join the others.
    pub fn resolve_durability(&mut self, now: &[&str], is_allowed: bool) -> Vec<String> {
        if Interval::of(&self.key) != Some(Interval::Journal) {
            return Vec::new();
        }
        self.resolve(Interval::Journal, now, is_allowed)
    }

    /// As [`resolve_durability`](Self::settle_durability), by the times between checkpoints of servers without a journal, on which
    /// what was written since the last one is lost.
    pub fn resolve_checkpoints(&mut self, now: &[&str], is_allowed: bool) -> Vec<String> {
        if now.is_empty() || Interval::of(&self.key) != Some(Interval::Checkpoint) {
            return Vec::new();
        }
        self.resolve(Interval::Checkpoint, now, is_allowed)
    }

    fn resolve(&mut self, interval: Interval, now: &[&str], is_allowed: bool) -> Vec<String> {
        let own = now.iter().filter_map(|value| interval.length(value));
        // What is usual counts only as long as nothing is known.
        let limit = own.reduce(f64::min).unwrap_or(interval.usual());
        self.release(limit);
        let has = |value: &str, now: &&str| interval.length(value) == interval.length(now);
        let is_weaker = |value: &&String| {
            let set = self.set(value);
            // What all servers have is no change.
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

    /// Puts the times between two writes of the journal that were held back and are not above a limit among its values.
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

/// Says of a knob which of its values are less durable: these, and those that weaken its key. `name` stands for it in an error if
/// that is not allowed.
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
