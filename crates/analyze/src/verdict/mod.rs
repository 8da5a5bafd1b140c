//! The causes that limited a run: rules over the watched figures, with evidence.
//!
//! A rule names a cause and the conditions that must hold together over a part of the measured time; further
//! conditions raise its confidence. Rules are data (`rules.rs`), and their figures are defined once
//! ([`measures::Measure`]). An unwatched figure decides nothing: a rule without its figure stays silent.

mod bench;
mod by_servers;
mod checkpoints;
mod cpu_time;
mod judge;
mod measures;
mod rules;
#[cfg(test)]
mod tests;

pub use bench::{Bench, TimeRange};
pub(crate) use bench::{cpus, mean_us, of_others};
pub use checkpoints::united;
pub use judge::{codes, judge};
pub use measures::Measure;
pub use rules::Cause;

use dyno_record::statement::Statement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The causes that limited the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// First line of a report.
    pub headline: Statement,
    /// Causes, the one that explains most first.
    pub causes: Vec<CauseFinding>,
    /// Causes that could be neither found nor ruled out because they were not watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_watched: Vec<Cause>,
}

impl Verdict {
    /// Whether the run was long enough and watched, so that the absence of a cause is also meaningful.
    pub fn is_reached(&self) -> bool {
        !["too-short-for-verdict", "nothing-watched"].contains(&self.headline.code.as_str())
    }
}

/// A cause with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseFinding {
    pub cause: Cause,
    #[serde(flatten)]
    pub statement: Statement,
    /// Start of the time in which it held, from the start of the run.
    pub start_s: f64,
    /// End of the time in which it held.
    pub end_s: f64,
    /// The parts of that time in which it held, in order; empty if it held throughout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<TimeRange>,
    /// Confidence: above 0, up to 1. It rates the rule and its evidence and is not a probability.
    pub confidence: f64,
    pub evidence: Vec<Evidence>,
    /// Suggested actions.
    pub advice: Vec<Statement>,
}

/// A figure that supports a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The figure as a sentence.
    #[serde(flatten)]
    pub statement: Statement,
    /// Name of the measure.
    pub measure: String,
    pub value: f64,
    /// Source series, as `SOURCE/METRIC`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// Start of its time range, from the start of the run.
    pub start_s: f64,
    /// End of its time range.
    pub end_s: f64,
}
