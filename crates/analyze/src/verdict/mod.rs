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

/// Causes that limit a run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The load generator had no spare CPU time.
    Client,
    /// A kernel limit on the server's CPU time.
    CpuThrottled,
    /// The hypervisor gave CPU time to others.
    CpuStolen,
    /// Another process took CPU time that the server waited for.
    NoisyNeighbour,
    /// A disk that was fast and became slow under the same load.
    BurstCredits,
    /// The number of operations per second of the disk.
    DiskOperations,
    /// The bytes per second of the disk.
    DiskBandwidth,
    /// Writes wait until the disk has stored them durably.
    SlowSync,
    /// The server's cache is smaller than the requested data.
    CacheTooSmall,
    /// Checkpoints of the server.
    Checkpoint,
    /// Operations queue in the server for tickets or locks.
    Tickets,
    /// The machine of the server swaps.
    Swapping,
    /// Memory is short, and processes wait for it.
    MemoryPressure,
    /// The bandwidth of the network.
    Network,
    /// The network round trip takes most of the time.
    RoundTrip,
    /// Connections are opened continuously.
    ConnectionStorm,
    /// One CPU is busy with interrupts, or one server thread all the time, while others are not.
    OneCore,
    /// The server uses all CPU time that it may use.
    ServerCpu,
    /// Client and server use all CPU time of a shared machine.
    SharedCpu,
    /// Nothing is exhausted: more clients would raise the rate.
    TooFewClients,
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
